//! Reading Git repositories: the only folder that names gix.
//!
//! Repositories are never changed. Tasks and the storage are unknown here, except for the place of
//! the names that workflows read.

mod attributes;
mod command;
mod commit_snapshot;
mod config;
mod discovery;
mod draft;
mod errors;
mod head;
mod history;
mod lfs;
mod lfs_files;
mod mirror;
mod objects;
mod opening;
mod pack_writer;
mod reachability;
mod revision;
mod source_repository;
mod submodules;
mod text_computations;
mod trees;
mod uncommitted_changes;
mod url;
mod workflow_use;

use std::error::Error;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub use self::command::{Prompts, REPOSITORY_VARIABLES};
pub use self::commit_snapshot::{Kind, Snapshot, TreeId, TreePath};
pub use self::config::{Config, ConfigEntry, ConfigError};
pub use self::discovery::{Home, around, common_directory, create, link_out_of_repository, top};
pub use self::errors::{SnapshotError, UnreadableRepository};
pub use self::head::{Head, HeadError, Heads, RepoState};
pub use self::history::{
    ChangeLog, Commit, CommitFilter, CommitHistory, CommitHistoryError, LastChange, LogLine, Range,
};
pub use self::lfs::{LfsPointer, LfsRemote, LfsScratch, LfsStore, LfsUse};
pub use self::lfs_files::{AbsentLfsObject, AbsentLfsObjects, LfsFile};
pub use self::mirror::{
    CommitSignature, Mirror, MirrorCommit, MirrorError, RefUpdate, RemoteRef, SignatureKind,
};
pub use self::objects::AbsentObject;
use self::opening::open;
pub use self::pack_writer::{
    BlobHash, MirrorEntry, MirrorKind, NewCommit, PackWriter, UnwrittenTree,
};
pub use self::reachability::{ReachError, ReachableSet, UnreadableWorkflow};
pub use self::revision::references;
pub use self::source_repository::{SourceError, SourceRepositories, SourceRepository};
pub use self::text_computations::is_text_name;
pub use self::trees::{
    Changed, Code, FileChange, LineCounts, NotCloned, TreeFile, TreeFileKind, Trees, files_in,
    is_in, tree_in,
};
pub use self::uncommitted_changes::{Changes, Filtered, unignored};
pub use self::workflow_use::OpenInputs;
use ce_model::digest::ObjectId;

/// The result of an operation of Git.
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
