//! Warnings about a task: what does no harm, and may not be meant.

use std::fmt;
use std::path::PathBuf;

use super::words::{committing, listed, place};
use ce_model::exit::Explain;
use ce_model::expand::Lookalike;

/// A harmless oddity at a place in the task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// The path, relative to the task.
    pub path: PathBuf,
    /// The oddity.
    pub oddity: WarningKind,
}

/// The kind of a warning.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum WarningKind {
    /// A file is not read where it is.
    #[error("nothing reads this")]
    Unread,
    /// Git ignores a file in the directory of a computation.
    #[error("is ignored by Git: no commit records it, and no exec sees it")]
    Ignored,
    /// Files have uncommitted changes.
    #[error("has uncommitted changes: {}", listed(.0))]
    Uncommitted(Vec<PathBuf>),
    /// There are lines after the first one.
    #[error("only the first line is read")]
    MoreLines,
    /// Two texts of a column look like one number, and are two levels.
    #[error(
        "{:?} and {:?} of {} are different texts, and so different levels",
        .0.first, .0.second, .0.column
    )]
    Lookalike(Lookalike),
}

impl Explain for WarningKind {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Unread => "remove it, or correct its name",
            Self::Ignored => "move it elsewhere, or take its name out of .gitignore and commit it",
            Self::Uncommitted(_) => committing(),
            Self::MoreLines => "remove the other lines",
            Self::Lookalike(_) => "spell them alike if one level is meant",
        };
        Some(hint.to_owned())
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", place(&self.path, None), self.oddity)
    }
}
