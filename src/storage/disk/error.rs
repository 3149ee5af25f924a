//! Why the storage could not do what it was asked for, and what to try.

use std::io;
use std::path::{Path, PathBuf};

use super::{NotOwn, advice};

/// Why the storage could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The operating system refused.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// The operation.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// There is no storage at this path.
    #[error("cannot open the storage {}", path.display())]
    NoStorage {
        /// The path.
        path: PathBuf,
        /// The kind of site that is there.
        source: Box<NoStorage>,
    },
    /// A record was written by a newer version of this program.
    #[error("{} has format {format}, and this version reads up to {newest}", path.display())]
    Format {
        /// The record.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// The newest format that this version reads.
        newest: u32,
    },
    /// A record cannot be written as JSON.
    #[error("cannot write the record {}", path.display())]
    Record {
        /// The record.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// It was there when it was opened.
    #[error("the storage {} has vanished", .0.display())]
    Vanished(PathBuf),
    /// Others change the same result faster than it can be looked at.
    #[error("{} keeps changing while it is read", .0.display())]
    Unsteady(PathBuf),
    /// A result is gone that was there just now.
    #[error("{} has just been collected", .0.display())]
    Collected(PathBuf),
    /// A directory is not where it was when it was first used.
    #[error("{} was moved or removed while it was used", .0.display())]
    Moved(PathBuf),
    /// A file does not have the contents any more that were found in it.
    #[error("{} was changed or removed while it was needed", .0.display())]
    Changed(PathBuf),
    /// Somebody asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// All forty digits of a SHA-1 are the same for different contents.
    #[error("{} belongs to other inputs that have the same SHA-1", .0.display())]
    Collision(PathBuf),
}

/// Why a path is not that of a storage.
#[derive(Debug, thiserror::Error)]
pub enum NoStorage {
    /// Nothing is there.
    #[error("there is no such directory")]
    Absent {
        /// A storage with a similar path.
        similar: Option<PathBuf>,
    },
    /// The directory has other things in it.
    #[error("it holds other things, and neither tinputs/ nor results in c_NAME/ or t_NAME/")]
    Other,
}

impl NoStorage {
    /// A hint what the user can do about it.
    pub fn hint(&self, path: &Path) -> String {
        match self {
            Self::Absent { similar: Some(similar) } => {
                format!("did you mean {}?", similar.display())
            }
            Self::Absent { similar: None } => {
                "check whether it was moved or unmounted; only ce run makes a storage".to_owned()
            }
            Self::Other => {
                let make = path.join("tinputs");
                format!(
                    "give another directory, or an empty one; or, to make this one a storage, mkdir {}",
                    make.display()
                )
            }
        }
    }
}

impl StorageError {
    /// Whether nothing at all can be written.
    pub fn is_read_only(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::ReadOnlyFilesystem)
    }

    /// Whether the user may not write.
    pub(in crate::storage) fn may_not_write(&self) -> bool {
        use io::ErrorKind::PermissionDenied;
        let denied = matches!(self, Self::Io { source, .. } if source.kind() == PermissionDenied);
        denied || self.is_read_only()
    }

    /// Whether something is in the way that is not the storage's own.
    pub(in crate::storage) fn is_not_own(&self) -> bool {
        matches!(self, Self::Io { source, .. } if NotOwn::of(source).is_some())
    }

    /// Whether an operation failed on a path, or on one below it.
    pub(in crate::storage) fn is_about(&self, place: &Path) -> bool {
        matches!(self, Self::Io { path, .. } if path.starts_with(place))
    }

    /// Whether there is no room left.
    pub(crate) fn is_full(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, Self::Io { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded))
    }

    /// A hint what the user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Io { doing, source, .. } => advice(doing, source),
            Self::Vanished(_) => Some(
                "check whether it was moved, removed or unmounted; it still has all finished calls",
            ),
            Self::Moved(_) => {
                Some("move it back: what was published meanwhile is in it; then run this again")
            }
            Self::Changed(_) => {
                Some("find out what changes files of the storage, then run this again")
            }
            Self::Format { .. } => Some("use the newer version that wrote it"),
            Self::NoStorage { .. }
            | Self::Record { .. }
            | Self::Unsteady(_)
            | Self::Collected(_)
            | Self::Interrupted
            | Self::Collision(_) => None,
        }
    }
}
