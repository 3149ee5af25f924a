//! Why a file or a call is not found among the records of a storage.

use jiff::Timestamp;

use ce_model::exit::Explain;
use ce_model::humanize::counted;

/// The least number of digits that identify a content.
pub const MIN_DIGITS: usize = 4;

/// How many calls an error names.
const NAMED: usize = 20;

/// The reason why a file has no history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// No recorded file has this name.
    #[error("{0} has no record")]
    Unknown(String),
    /// The call that makes it is suspended.
    #[error("{file} is not there yet: the call {call} is suspended since {since:.0}")]
    Suspended {
        /// The requested file.
        file: String,
        /// The short name of the call.
        call: String,
        /// When it was begun.
        since: Timestamp,
    },
    /// The call that makes it has failed.
    #[error("{file} was not made: the call {call} failed at {at:.0}: {reason}")]
    Failed {
        /// The requested file.
        file: String,
        /// The short name of the call.
        call: String,
        /// When that was recorded.
        at: Timestamp,
        /// The reason, in words.
        reason: String,
    },
    /// The file was collected.
    #[error("{file} was collected at {at:.0} by {user} on {host}")]
    Collected {
        /// The requested file.
        file: String,
        /// The time of the collection.
        at: Timestamp,
        /// The user who collected it.
        user: String,
        /// The host that collected it.
        host: String,
    },
    /// Nothing is known of a call.
    #[error("{0} is no call that has ended or is executed now")]
    NoCall(String),
    /// The inputs of several calls have these digits.
    #[error("the inputs of {} calls begin with {digits}: {}", found.len(), found.join(", "))]
    Calls {
        /// The requested digits.
        digits: String,
        /// The short names of those calls.
        found: Vec<String>,
    },
    /// Several calls have this name.
    #[error("{} calls are named {text}: {}", found.len(), list(found))]
    CallsOf {
        /// The requested name: that of a computation, or a label.
        text: String,
        /// The short names of those calls, with the texts that they read.
        found: Vec<String>,
    },
    /// A label has a computation that other labels have, too, so a call of that may be theirs.
    #[error("{} of {computation}, the computation of {label}: {}", counted(found.len(), "call"), list(found))]
    SharedComputation {
        /// The requested label.
        label: String,
        /// The name of the computation.
        computation: String,
        /// The short names of its calls, with the texts that they read.
        found: Vec<String>,
    },
    /// Too few digits are given.
    #[error("{0} is too short: {MIN_DIGITS} or more digits of a SHA-1 name a result")]
    TooShort(String),
    /// Several contents have these digits.
    #[error("the SHA-1 of {} contents begin with {digits}: {}", found.len(), found.join(", "))]
    Ambiguous {
        /// The requested digits.
        digits: String,
        /// The SHA-1 of those contents.
        found: Vec<String>,
    },
}

/// The first of some names.
fn list(names: &[String]) -> String {
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    names[..names.len().min(NAMED)].join(", ") + &more
}

impl Explain for HistoryError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Ambiguous { .. } | Self::Calls { .. } => Some("give more digits"),
            Self::CallsOf { .. } => Some("give the name of one of them, without what it has read"),
            Self::SharedComputation { .. } => Some(
                "give the name of one of them: other labels have that computation, too, and no record tells the label of a call",
            ),
            Self::TooShort(_) => Some("give more digits, or the path of an output in the storage"),
            Self::NoCall(_) => {
                Some("ce log lists calls, and ce status those that are executed now")
            }
            Self::Unknown(_) => Some("give the path of an output or task input, or its SHA-1"),
            Self::Failed { .. } => {
                Some("give --log, too: ce show --log prints what exec has printed")
            }
            Self::Suspended { .. } => Some("ce status --ask says how it stands"),
            Self::Collected { .. } => Some("run its task again, which makes it again"),
        };
        hint.map(str::to_owned)
    }
}
