//! Errors of storage operations, hints for the user, and fault injection.
//!
//! In a build with debug assertions, any operation of the storage can fail. `CE_FAULT=7:ENOSPC` makes the seventh operation of
//! the process fail once, `7-9:ENOTCONN` that one and the two after it, `7+:EIO` that one and all after it, `7:KILL` kills the
//! process there, and `7:STOP` stops it, until it gets SIGCONT; `ERRORS` lists the other errors. A release build ignores the
//! variable.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::ForeignEntry;
use ce_files::beneath::advice;
use ce_files::manifest::{DirectoryError, ManifestError};
use ce_files::state::StateError;
use ce_model::exit::{Exit, Explain};
use ce_model::humanize::{duration, quoted_path};

/// An error of an operation on the storage.
#[derive(Debug, thiserror::Error, Explain)]
#[exit(Storage)]
pub enum StorageError {
    /// The operating system refused.
    #[error("cannot {doing} {}", path.display())]
    #[hint(advice(doing, source).map(str::to_owned))]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// There is no storage at this path.
    #[error("cannot open the storage {}", path.display())]
    #[exit(if matches!(**source, NoStorage::NoParent(_)) { Exit::Malformed } else { Exit::Storage })]
    #[hint(Some(source.hint(path)))]
    NoStorage {
        path: PathBuf,
        /// The reason.
        source: Box<NoStorage>,
    },
    /// A directory cannot be a value.
    #[error("{} cannot be a value", path.display())]
    #[exit(if matches!(**source, DirectoryError::Refused(_)) { Exit::Malformed } else { Exit::Storage })]
    #[hint(directory_hint(source))]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: Box<DirectoryError>,
    },
    /// A record was written by a newer version of this program.
    #[error("{} has format {format}, and this version reads up to {newest}", path.display())]
    #[hint("use the newer version that wrote it")]
    Format {
        /// The record.
        path: PathBuf,
        format: u32,
        /// The newest format that this version reads.
        newest: u32,
    },
    /// A record cannot be written as JSON.
    #[error("cannot write the record {}", path.display())]
    #[hint(None)]
    Record {
        /// The record.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
    /// The storage was waited for, and does not answer.
    #[error("the storage {} has not answered for {}", path.display(), duration((*seconds).into()))]
    #[hint(
        "check its server and whether it is still mounted, then run the same command again: finished calls are kept"
    )]
    Away {
        /// The storage, as the user has named it.
        path: PathBuf,
        /// The number of seconds that it was waited for.
        seconds: f32,
        /// Its last answer.
        source: io::Error,
    },
    /// The storage existed when it was opened, and does not any more.
    #[error("the storage {} has vanished", .0.display())]
    #[hint("check whether it was moved, removed or unmounted; it still has all finished calls")]
    Vanished(PathBuf),
    /// Others change the same result faster than it can be read.
    #[error("{} keeps changing while it is read", .0.display())]
    #[hint("wait until nothing writes to it, then run this again")]
    Unsteady(PathBuf),
    /// A result that was found has been collected since.
    #[error("{} has just been collected", .0.display())]
    #[hint("run its task again, which makes it again")]
    Collected(PathBuf),
    /// A directory is not where it was when it was first used.
    #[error("{} was moved or removed while it was used", .0.display())]
    #[hint("move it back: what was published meanwhile is in it; then run this again")]
    Moved(PathBuf),
    /// The contents of a file have changed since it was found.
    #[error("{} was changed or removed while it was needed", .0.display())]
    #[hint("find out what changes files of the storage, then run this again")]
    Changed(PathBuf),
    /// The user asked to stop.
    #[error("interrupted")]
    #[hint(None)]
    Interrupted,
    /// The outputs of a sweep cannot be put into one directory.
    #[error("the outputs of a sweep cannot be put into one directory")]
    #[hint("rename the output that does not fit, where it is made")]
    Gathered(#[source] Box<ManifestError>),
    /// No place for exports is private.
    #[error("there is no private place for the files of computations")]
    #[hint(_0.hint())]
    NotPrivate(#[source] Box<StateError>),
    /// All forty digits of a SHA-1 are the same for different contents.
    #[error("{} belongs to other inputs that have the same SHA-1", .0.display())]
    #[hint("evaluate it in another storage")]
    Collision(PathBuf),
}

/// What to try if a directory cannot be a value.
fn directory_hint(source: &DirectoryError) -> Option<String> {
    match source {
        DirectoryError::Io { source, .. } => advice("read", source).map(str::to_owned),
        DirectoryError::Write { source, .. } => advice("write", source).map(str::to_owned),
        source => source.hint(),
    }
}

/// The reason why a path is not a storage's.
#[derive(Debug, thiserror::Error)]
pub enum NoStorage {
    /// The path does not exist.
    #[error("there is no such directory")]
    Absent {
        /// A storage with a similar path.
        similar: Option<PathBuf>,
    },
    /// The directory above it does not exist, so it is not made.
    #[error("the directory {} does not exist", .0.display())]
    NoParent(PathBuf),
    /// A symbolic link in the path leads nowhere.
    #[error("{} is a symbolic link to {}, which does not exist", link.display(), target.display())]
    Dangling {
        link: PathBuf,
        /// The path that it leads to.
        target: PathBuf,
    },
    /// The directory has other contents.
    #[error("it holds other things, and neither tinputs/ nor results in c_NAME/ or t_NAME/")]
    Other {
        /// The storage that it is in.
        around: Option<PathBuf>,
    },
}

impl NoStorage {
    /// A hint for the user.
    pub fn hint(&self, path: &Path) -> String {
        match self {
            Self::Absent { similar: Some(similar) } => {
                format!("did you mean {}?", similar.display())
            }
            Self::Absent { similar: None } => {
                "check whether it was moved or unmounted; only ce run and ce pull make a storage"
                    .to_owned()
            }
            Self::NoParent(parent) => format!(
                "correct the path, or mount the file system that has it; to make a storage there, mkdir -p {}",
                quoted_path(parent)
            ),
            Self::Dangling { .. } => {
                "correct the link, or make the directory that it leads to".to_owned()
            }
            Self::Other { around: Some(storage) } => {
                format!("it is in the storage {}: give that", storage.display())
            }
            Self::Other { around: None } if path.join("objects").is_dir() => {
                "it is a Git repository: a storage is given before a repository".to_owned()
            }
            Self::Other { around: None } => format!(
                "give another directory, or an empty one; or, to make this one a storage, mkdir {}",
                quoted_path(&path.join("tinputs"))
            ),
        }
    }
}

impl StorageError {
    /// Whether there is no storage, but may be one soon: its place is empty, or not recognisable as a storage yet.
    pub(crate) fn is_yet_to_be_made(&self) -> bool {
        matches!(self, Self::NoStorage { source, .. } if matches!(**source, NoStorage::Absent { .. }))
    }

    /// Whether the file system is read-only.
    pub fn is_read_only(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == ErrorKind::ReadOnlyFilesystem)
    }

    /// Whether the user lacks the permission to write.
    pub fn may_not_write(&self) -> bool {
        use io::ErrorKind::PermissionDenied;
        let denied = matches!(self, Self::Io { source, .. } if source.kind() == PermissionDenied);
        denied || self.is_read_only()
    }

    /// Whether a symbolic link or special file is in the way.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self, Self::Io { source, .. } if ForeignEntry::from_error(source).is_some())
    }

    /// Whether a file is in the place of a directory.
    pub(crate) fn is_behind_a_file(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == ErrorKind::NotADirectory)
    }

    /// Whether an operation failed on a path, or on one below it.
    pub fn is_about(&self, place: &Path) -> bool {
        matches!(self, Self::Io { path, .. } | Self::Directory { path, .. } if path.starts_with(place))
    }

    /// Whether a file has as many hard links as it may have.
    pub(crate) fn is_too_many_links(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == ErrorKind::TooManyLinks)
    }

    /// Whether the disk or the quota is full.
    pub(crate) fn is_full(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, Self::Io { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded))
    }
}

#[cfg(not(debug_assertions))]
pub(crate) use self::none::fault;
#[cfg(debug_assertions)]
pub(crate) use self::some::fault;

#[cfg(not(debug_assertions))]
mod none {
    /// Injects no fault.
    #[inline(always)]
    pub(crate) const fn fault() -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(debug_assertions)]
mod some {
    use std::io::{self, Write};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustix::io::Errno;
    use rustix::process::{Signal, getpid, kill_process};

    /// The errors that can be injected, by name.
    const ERRORS: [(&str, Errno); 11] = [
        ("EACCES", Errno::ACCESS),
        ("EDQUOT", Errno::DQUOT),
        ("EHOSTDOWN", Errno::HOSTDOWN),
        ("EIO", Errno::IO),
        ("ENAMETOOLONG", Errno::NAMETOOLONG),
        ("ENOENT", Errno::NOENT),
        ("ENOSPC", Errno::NOSPC),
        ("ENOTCONN", Errno::NOTCONN),
        ("ENOTEMPTY", Errno::NOTEMPTY),
        ("EROFS", Errno::ROFS),
        ("ESTALE", Errno::STALE),
    ];

    /// The signals that can be sent to this process, by name.
    const SIGNALS: [(&str, Signal); 2] = [("KILL", Signal::KILL), ("STOP", Signal::STOP)];

    #[derive(Clone, Copy)]
    struct InjectedFault {
        first: u64,
        last: u64,
        what: Result<Signal, Errno>,
    }

    fn parse(text: &str) -> Option<InjectedFault> {
        let (at, error) = text.split_once(':')?;
        let (first, last) = match (at.strip_suffix('+'), at.split_once('-')) {
            (Some(first), _) => (first.parse().ok()?, u64::MAX),
            (None, Some((first, last))) => (first.parse().ok()?, last.parse().ok()?),
            (None, None) => (at.parse().ok()?, at.parse().ok()?),
        };
        let signal =
            SIGNALS.iter().find(|(known, _)| *known == error).map(|(_, signal)| Ok(*signal));
        Some(InjectedFault {
            first,
            last,
            what: signal
                .or_else(|| Some(Err(ERRORS.iter().find(|(known, _)| *known == error)?.1)))?,
        })
    }

    /// Counts this operation, and fails if a fault is injected into it.
    pub(crate) fn fault() -> io::Result<()> {
        static FAULT: OnceLock<Option<InjectedFault>> = OnceLock::new();
        static OPERATIONS: AtomicU64 = AtomicU64::new(0);
        let fault = FAULT.get_or_init(|| parse(&std::env::var("CE_FAULT").ok()?));
        let Some(InjectedFault { first, last, what }) = *fault else { return Ok(()) };
        let now = OPERATIONS.fetch_add(1, Ordering::Relaxed) + 1;
        if !(first..=last).contains(&now) {
            return Ok(());
        }
        if now == first {
            drop(writeln!(io::stderr(), "fault at operation {now}"));
        }
        match what {
            Err(error) => Err(error.into()),
            Ok(signal) => Ok(kill_process(getpid(), signal)?),
        }
    }
}
