//! What can end any program early: the system refuses it something, or the user interrupts it.

use std::error;
use std::io;
use std::path::Path;

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
