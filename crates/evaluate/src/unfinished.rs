//! Calls that were not executed to their end, which they are not to blame for.

use std::fmt;

use ce_model::exit::Explain;
use ce_storage::ResultName;

/// The reason why a call was not executed to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfinished {
    /// It has started something that goes on elsewhere.
    #[error("it is suspended: {0}")]
    Suspended(SuspendedCall),
    /// Each time, the worker that executed it ended; in words, how the last one did.
    #[error("it was lost: {0}")]
    Lost(String),
    /// The executor lacks something that it needs; in words, what.
    #[error("it was refused: {0}")]
    Refused(String),
}

/// A call that has started something which goes on elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuspendedCall {
    /// The name under which it was begun; another commit's, if that began it.
    pub name: ResultName,
    /// What is known of it, in words.
    pub line: Option<String>,
    /// Whether this run would continue it.
    pub continues: bool,
}

impl fmt::Display for SuspendedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.line.as_deref().unwrap_or("what it has started goes on elsewhere"))
    }
}

impl Explain for Unfinished {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Suspended(_) => "ce status lists suspended calls; a later run continues them",
            Self::Lost(_) => "run the same command again: nothing is remembered of it",
            Self::Refused(_) => {
                "run it where that is to be had; ce doctor says what this host lacks"
            }
        };
        Some(hint.to_owned())
    }
}
