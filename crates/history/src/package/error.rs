//! Why results are not exported.

use std::io;
use std::path::Path;

use ce_model::exit::{Exit, Explain};
use ce_model::hints;

/// The greatest number of bad files that an error names.
const NAMED: usize = 20;

/// A file that cannot be exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFile {
    /// Its name in the storage.
    pub name: String,
    /// Why, in words.
    pub why: String,
}

impl BadFile {
    pub(super) const fn new(name: String, why: String) -> Self {
        Self { name, why }
    }
}

/// The reason why results are not exported. Nothing was made then.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// The directory is there, and not empty.
    #[error("{0} exists, and is no empty directory")]
    Occupied(String),
    /// The directory has no name, such as `..`, or that of standard output, `-`.
    #[error("{0} is no name of a new directory")]
    NoName(String),
    /// The directory would be in the storage.
    #[error("{0} is in the storage")]
    Inside(String),
    /// Files are away or damaged.
    #[error("nothing is exported, since files cannot be: {}", list(.0))]
    Bad(Vec<BadFile>),
    /// A file could not be made.
    #[error("cannot write {path}")]
    Write {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The user has interrupted it.
    #[error("interrupted: nothing is exported")]
    Stopped,
}

fn list(bad: &[BadFile]) -> String {
    let mut list: Vec<String> =
        bad.iter().take(NAMED).map(|BadFile { name, why }| format!("{name}: {why}")).collect();
    if bad.len() > NAMED {
        list.push(format!("and {} more", bad.len() - NAMED));
    }
    list.join("; ")
}

impl Explain for PackageError {
    fn exit(&self) -> Exit {
        match self {
            Self::Occupied(_) | Self::NoName(_) | Self::Inside(_) => Exit::Malformed,
            Self::Bad(_) | Self::Write { .. } | Self::Stopped => Exit::Storage,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Occupied(_) | Self::NoName(_) => "give a directory that does not exist",
            Self::Inside(_) => "give a directory beside it",
            Self::Bad(_) => {
                "ce run makes again what is away or was collected, and after ce verify --repair what is \
                 damaged; without --all, intermediate results are not needed"
            }
            Self::Write { path, source } => return hints::for_writing(Path::new(path), source),
            Self::Stopped => "run the same command again: nothing was made",
        };
        Some(hint.to_owned())
    }
}
