//! What Git records: the only folder that names gix.
//!
//! Reads repositories and changes nothing in them. Knows nothing of tasks and the storage, but for
//! where a task's repository keeps the names that its workflows read.

mod config;
mod diff;
mod draft;
mod head;
mod log;
mod range;
mod reach;
mod repositories;
mod revision;
mod same;
mod snapshot;
mod spot;
mod standing;
mod status;
mod trees;

use std::error::Error;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub use self::config::{Config, ConfigError};
pub use self::diff::{FileChange, Lines};
pub use self::head::{Head, HeadError, Heads, top};
pub use self::log::{Log, LogLine};
pub use self::range::Range;
pub use self::reach::{Reach, ReachError};
pub use self::snapshot::{Snapshot, SnapshotError};
pub use self::spot::{Kind, Spot, TreeId};
pub use self::standing::Standing;
pub use self::status::Changes;
pub use self::trees::{Changed, TreeFile, TreeFileKind, Trees};
use crate::digest::ObjectId;

type GitResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Opens a repository as git would: with the user's configuration, and not if it belongs to
/// somebody else whom `safe.directory` does not name. But an id is what it names, whatever
/// `git replace` would put in its place.
fn open(path: &Path) -> GitResult<gix::Repository> {
    let options = gix::open::Options::default().bail_if_untrusted(true);
    Ok(gix::open_opts(path, options.config_overrides(["core.useReplaceRefs=false"]))?)
}

/// The path that Git writes in bytes.
fn to_path(path: &gix::bstr::BStr) -> PathBuf {
    Path::new(OsStr::from_bytes(path)).to_owned()
}

fn from(id: &ObjectId) -> GitResult<gix::ObjectId> {
    Ok(gix::ObjectId::from_hex(id.full().as_bytes())?)
}

fn object_id(id: gix::ObjectId) -> GitResult<ObjectId> {
    Ok(id.to_string().parse()?)
}
