//! Why a value that no call makes cannot be had.

use std::error::Error;

use ce_files::manifest::ManifestFault;
use ce_git::{AbsentLfsObject, AbsentObject, Changed, NotCloned, SourceError};
use ce_model::exit::Explain;
use ce_model::name::TreeName;
use ce_model::plan::WrongValue;
use ce_model::template::NoText;
use ce_storage::{MemberError, StorageError};
use ce_task::load::LoadFault;

/// The reason why a value that no call makes cannot be had.
#[derive(Debug, thiserror::Error, Explain)]
pub enum ValueError {
    /// The commit, the directory or the repository does not exist.
    #[error(transparent)]
    #[hint(_0.hint())]
    Source(#[from] SourceError),
    /// The value that should say which commit is wanted is not a text.
    #[error("the revision of {name} cannot be used: {fault}")]
    #[hint("write a commit id, a tag or a branch")]
    Revision {
        /// The tree, as the task names it.
        name: String,
        fault: NoText,
    },
    /// The value that should say which commit is wanted is a directory.
    #[error("the revision of {0} cannot be used: it is a directory")]
    #[hint("write a commit id, a tag or a branch")]
    Directory(String),
    /// Git's data cannot be read.
    #[error(transparent)]
    #[hint(Some(hint_for_git(&**_0)))]
    Git(Box<dyn Error + Send + Sync>),
    /// A tree that is a value cannot be read either.
    #[error("the tree {name} cannot be read")]
    #[hint(Some(hint_for_tree(name, &**source)))]
    Unreadable {
        /// The tree, as the task names it.
        name: String,
        /// The error of Git.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The contents of a file in a tree are not in this clone.
    #[error(transparent)]
    #[hint(_0.hint())]
    LargeFile(#[from] AbsentLfsObject),
    /// The tree has an entry that no value has.
    #[error("the Git tree {tree} cannot be a value: {fault}")]
    #[hint("name a directory of the repository that is without this entry")]
    Entry {
        /// The first digits of its id.
        tree: String,
        fault: ManifestFault,
    },
    /// A directory has no such member.
    #[error(transparent)]
    #[hint(_0.hint())]
    Member(MemberError),
    /// A value is wrong at a point of a sweep.
    #[error(transparent)]
    #[hint(_0.hint())]
    Wrong(WrongValue),
    /// A file is not in the storage.
    #[error("{0} is not in the storage")]
    #[hint("run the task that makes it, or copy it there; its name is in the node")]
    NoLiteral(String),
    /// The file that a sheet of files names is not in the storage.
    #[error("the file {0} of a sheet is not in the storage")]
    #[hint("give the task the sheet with paths; or pull the results that were made from it")]
    NoContents(String),
    /// A file of the task cannot be read.
    #[error("the task's file {path} cannot be read: {fault}")]
    #[hint(fault.downcast_ref::<LoadFault>().and_then(Explain::hint))]
    OwnFile {
        path: String,
        /// The cause.
        fault: Box<dyn Error + Send + Sync>,
    },
    /// The storage could not be read or written.
    #[error(transparent)]
    #[exit(Storage)]
    #[hint(_0.hint())]
    Storage(#[from] StorageError),
}

impl ValueError {
    /// Names the tree whose data Git cannot read.
    pub(super) fn name_tree(self, name: &TreeName) -> Self {
        match self {
            Self::Git(source) => Self::Unreadable { name: name.to_string(), source },
            other => other,
        }
    }

    /// Whether the storage is to blame.
    pub const fn is_storage(&self) -> bool {
        matches!(self, Self::Storage(_))
    }

    /// Whether the data of a repository cannot be read, which may be gone.
    pub fn is_unreadable(&self) -> bool {
        match self {
            Self::Git(_) | Self::Unreadable { .. } => true,
            Self::Source(error) => error.is_unreadable(),
            Self::OwnFile { fault, .. } => fault
                .downcast_ref()
                .is_none_or(|it| matches!(it, LoadFault::Snapshot(_) | LoadFault::Read(_))),
            _ => false,
        }
    }

    /// Whether a repository as a whole is to blame, at any commit.
    pub const fn is_of_repository(&self) -> bool {
        matches!(self, Self::Source(error) if error.is_of_repository())
    }

    /// Whether the user asked to stop.
    pub const fn is_interrupted(&self) -> bool {
        matches!(self, Self::Storage(StorageError::Interrupted))
    }
}

fn hint_for_git(source: &(dyn Error + Send + Sync + 'static)) -> String {
    if source.is::<AbsentObject>() {
        fetching_all()
    } else if source.is::<Changed>() {
        "run the same command again".to_owned()
    } else {
        "git fsck says whether the repository is damaged".to_owned()
    }
}

fn hint_for_tree(name: &str, source: &(dyn Error + Send + Sync + 'static)) -> String {
    if source.is::<NotCloned>() {
        let repository = name.split(':').next().unwrap_or(name);
        format!("git submodule update --init --recursive in the repository {repository}")
    } else if source.is::<AbsentObject>() {
        fetching_all()
    } else {
        format!("git fsck in the repository of {name} says whether it is damaged")
    }
}

/// Describes in words how to get what a partial clone has left out.
fn fetching_all() -> String {
    "git fetch --refetch --no-filter there, or clone it again without --filter".to_owned()
}
