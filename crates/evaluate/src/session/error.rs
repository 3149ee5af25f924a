//! Errors that can end any program: the system refuses it something, the user interrupts it, or a path names no result.

use std::path::{Path, PathBuf};
use std::{error, io};

use ce_model::exit::{Exit, Explain};
use ce_model::hints;

/// Threads or signals are not to be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot start threads or watch signals")]
pub struct BeginError(#[source] Box<dyn error::Error + Send + Sync>);

impl BeginError {
    /// The error for this reason.
    pub fn new(reason: impl Into<Box<dyn error::Error + Send + Sync>>) -> Self {
        Self(reason.into())
    }
}

impl Explain for BeginError {
    fn exit(&self) -> Exit {
        Exit::Storage
    }

    fn hint(&self) -> Option<String> {
        Some(hints::raising_limits())
    }
}

/// Standard output could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the standard output")]
pub struct OutputError(#[source] pub io::Error);

impl Explain for OutputError {
    fn exit(&self) -> Exit {
        Exit::Storage
    }

    fn hint(&self) -> Option<String> {
        Some("look at where it leads to: df and ls -l say whether it can be written".to_owned())
    }
}

/// A file of the user's could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}")]
pub struct WriteError {
    /// The file.
    pub path: String,
    /// Why.
    pub source: io::Error,
}

impl Explain for WriteError {
    fn exit(&self) -> Exit {
        Exit::Storage
    }

    fn hint(&self) -> Option<String> {
        hints::for_writing(Path::new(&self.path), &self.source)
    }
}

/// A signal of this number came while inputs were read.
#[derive(Debug, thiserror::Error)]
#[error("interrupted while inputs are read")]
pub struct Interrupted(pub u8);

impl Explain for Interrupted {
    fn exit(&self) -> Exit {
        Exit::Interrupted(self.0)
    }
}

/// The reason why a path names no result.
#[derive(Debug, thiserror::Error)]
pub enum ResultPathError {
    /// It is a storage.
    #[error("{} is a storage, and no result in it is given", .0.display())]
    Storage(PathBuf),
    /// It leads into a storage, to a place where no results are.
    #[error("{} is in the storage {}, and not where results are", path.display(), storage.display())]
    Elsewhere {
        /// The path.
        path: PathBuf,
        /// The storage.
        storage: PathBuf,
    },
    /// It leads through no storage.
    #[error("{} is in no storage, and Git's configuration has no compeval.storage", .0.display())]
    Nowhere(PathBuf),
}

/// What to try if no result is named.
pub fn naming_results() -> String {
    "give a file of each result, after the storage".to_owned()
}

impl Explain for ResultPathError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Storage(_) => return Some(naming_results()),
            Self::Elsewhere { .. } => {
                "give a file in c_NAME/CCID/NN/, t_NAME/CCID/NN/ or tinputs/ of the storage; ce log lists calls"
            }
            Self::Nowhere(_) => {
                "give the path of a file in a storage, or give the storage before the name of the file"
            }
        };
        Some(hint.to_owned())
    }
}
