//! Reading Git repositories: the only folder that names gix.
//!
//! Repositories are never changed. Tasks and the storage are unknown here, except for the place of
//! the names that workflows read.

mod advice;
mod command;
mod config;
mod diff;
mod draft;
mod drivers;
mod editor;
mod head;
mod history;
mod home;
mod ignored;
mod log;
mod mirror;
mod opening;
mod pack;
mod parameters;
mod range;
mod reach;
mod references;
mod repo_state;
mod repositories;
mod revision;
mod same;
mod shallow;
mod snapshot;
mod snapshot_error;
mod source_repository;
mod status;
mod tree_path;
mod trees;
mod unreadable;
mod unwritten_tree;
mod url;

use std::error::Error;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub use self::command::Prompts;
pub use self::config::{Config, ConfigEntry, ConfigError};
pub use self::diff::{FileChange, LineCounts};
pub use self::editor::{create, editor, private_dir};
pub use self::head::{Head, HeadError, Heads, around, top};
pub use self::history::{CommitFilter, CommitHistory, CommitHistoryError};
pub use self::home::Home;
pub use self::ignored::unignored;
pub use self::log::{ChangeLog, LogLine};
pub use self::mirror::{
    CommitSignature, Mirror, MirrorCommit, MirrorError, RefUpdate, RemoteRef, SignatureKind,
};
use self::opening::open;
pub use self::pack::{BlobHash, MirrorEntry, MirrorKind, NewCommit, PackWriter};
pub use self::range::{Commit, Range};
pub use self::reach::{ReachError, ReachableSet};
pub use self::references::references;
pub use self::repo_state::RepoState;
pub use self::repositories::AbsentObject;
pub use self::snapshot::Snapshot;
pub use self::snapshot_error::SnapshotError;
pub use self::source_repository::{SourceError, SourceRepositories, SourceRepository};
pub use self::status::{Changes, Filtered};
pub use self::tree_path::{Kind, TreeId, TreePath};
pub use self::trees::{Changed, NotCloned, TreeFile, TreeFileKind, Trees, files_in, tree_in};
pub use self::unreadable::UnreadableRepository;
pub use self::unwritten_tree::UnwrittenTree;
use ce_model::digest::ObjectId;

/// What an operation of Git returns.
pub type GitResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

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
