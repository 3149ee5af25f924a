//! Directories as values: the manifest of a directory, and how a directory is read.
//!
//! A directory is identified by its [`Manifest`]: a text with a line for each file, symbolic link and
//! empty directory in it. The SHA-1 and the BLAKE3 of that text are the directory's. Times, owners and
//! modes are no part of it, except whether the owner may execute a file.
//!
//! A [`Scan`] walks a directory and reads no file. It knows what of it cannot be part of a value, and how
//! many bytes there are, and its stamps tell whether anything has changed. [`Scan::read`] then reads
//! each file once, on all cores, and returns the manifest.
//!
//! Everything is reached from a descriptor of the directory, through no symbolic link. Nothing recurses,
//! so directories may be nested as deep as the file system allows. The module knows neither
//! workflows nor the storage.

mod archive;
mod format;
mod path;
mod read;
mod scan;
mod seal;

use std::{fmt, io};

use ce_model::exit::Explain;
use rustix::io::Errno;

pub use self::archive::{DirectoryArchive, ValuePiece};
pub use self::format::{
    EntryDifference, EntryKind, HEADER, Manifest, ManifestEntry, ManifestError, ManifestFault,
    ManifestMember,
};
pub use self::path::{LinkFault, PathFault, check_link, check_path, shown};
pub use self::scan::Scan;
pub use self::seal::{seal, sealed_directory};

/// The largest number of entries that an error names.
const NAMED: usize = 10;

/// The reason why a directory could not be read. Paths are relative to it, and spelled as in a manifest.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The operating system refused.
    #[error("cannot read {}", place(path))]
    Io {
        /// The path; empty for the directory itself.
        path: Box<[u8]>,
        /// The cause.
        source: io::Error,
    },
    /// The operating system refused to write a copy of it.
    #[error("cannot write the copy of {}", place(path))]
    Write {
        /// The path; empty for the directory itself.
        path: Box<[u8]>,
        /// The cause.
        source: io::Error,
    },
    /// Entries that cannot be part of a value, sorted by their paths.
    #[error("{}", Refused::list(.0))]
    Refused(Vec<Refused>),
    /// An entry was changed, replaced or removed while the directory was read.
    #[error("{} was changed while it was read", place(.0))]
    Changed(Box<[u8]>),
    /// Somebody asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// An entry that cannot be part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its path in the directory.
    pub path: Box<[u8]>,
    /// The reason why it cannot.
    pub why: Refusal,
}

/// The reason why an entry cannot be part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is called `.git`.
    Repository,
    /// It is something like `a FIFO`.
    Kind(&'static str),
    /// It is a symbolic link that leads out of the directory.
    Link {
        /// Its target.
        target: Box<[u8]>,
        /// The way in which it leads out.
        fault: LinkFault,
    },
}

/// The name of an entry in a message.
fn place(path: &[u8]) -> String {
    if path.is_empty() { "the directory itself".to_owned() } else { shown(path) }
}

impl DirectoryError {
    /// The meaning of an error of the operating system for an entry that existed just now.
    fn of(path: &[u8], error: Errno) -> Self {
        match error {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO | Errno::INVAL => {
                Self::Changed(path.into())
            }
            error => Self::Io { path: path.into(), source: error.into() },
        }
    }

    /// A failure to write the copy of an entry.
    fn write(path: &[u8], source: io::Error) -> Self {
        Self::Write { path: path.into(), source }
    }

    /// The same error of the copy.
    pub fn writing(self) -> Self {
        match self {
            Self::Io { path, source } => Self::Write { path, source },
            Self::Changed(path) => Self::Write { path, source: Errno::STALE.into() },
            other => other,
        }
    }

    /// Whether a file system does not have a name that was to be written: it is too long, is no text, or is that of another
    /// entry, too, where upper and lower case are one.
    pub fn is_of_names(&self) -> bool {
        const NONE: [Errno; 3] = [Errno::NAMETOOLONG, Errno::ILSEQ, Errno::EXIST];
        match self {
            Self::Io { source, .. } | Self::Write { source, .. } => {
                Errno::from_io_error(source).is_some_and(|error| NONE.contains(&error))
            }
            Self::Changed(_) => true,
            Self::Refused(_) | Self::Interrupted => false,
        }
    }
}

impl Explain for DirectoryError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Io { .. } => Some("ls -l shows who may read it"),
            Self::Write { .. } => Some("df and ls -ld show whether there is room, and who may write"),
            Self::Interrupted => None,
            Self::Changed(_) => Some("wait until nothing writes to it, then run this again"),
            Self::Refused(refused) => refused.first().map(|first| match first.why {
                Refusal::Repository => "use a copy without .git: git archive HEAD | tar -x -C COPY",
                Refusal::Kind(_) => "remove what is neither a file, a directory nor a link",
                Refusal::Link { .. } => {
                    "make links relative and keep them within the directory, or copy what they lead to"
                }
            }),
        };
        hint.map(str::to_owned)
    }
}

impl Refused {
    /// Describes the first few in words.
    fn list(refused: &[Self]) -> String {
        match refused {
            [one] => one.to_string(),
            _ => {
                let lines = refused.iter().take(NAMED).map(|one| format!("\n    {one}"));
                let lines: String = lines.collect();
                let more = match refused.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    more => format!("\n    and {more} more"),
                };
                format!("{} entries cannot be part of a value:{lines}{more}", refused.len())
            }
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = shown(&self.path);
        match &self.why {
            Refusal::Repository => {
                write!(f, "{path} belongs to a Git repository, which cannot be part of a value")
            }
            Refusal::Kind(kind) => write!(f, "{path} is {kind}, which cannot be part of a value"),
            Refusal::Link { target, fault } => {
                write!(f, "{path} is a symbolic link to {}, {fault}", shown(target))
            }
        }
    }
}
