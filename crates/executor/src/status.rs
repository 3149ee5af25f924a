//! How a process ended.

use std::fmt;
use std::time::Duration;

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// By itself, with this status; zero is success.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// By this signal, which it got after this time limit.
    TimedOut(i32, Duration),
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "it ended with exit status {code}"),
            Self::Killed(signal) => write!(f, "it was killed by signal {signal}"),
            Self::TimedOut(_, limit) => write!(f, "it timed out after {} s", limit.as_secs_f64()),
        }
    }
}
