//! The exit codes of all programs, which scripts of users depend on.

use std::process::ExitCode;

/// The end of a program, as the shell sees it.
///
/// If several apply, the first one in this order is returned: [`Storage`](Self::Storage),
/// [`Failed`](Self::Failed), [`Malformed`](Self::Malformed), [`Suspended`](Self::Suspended), [`Missing`](Self::Missing), [`Done`](Self::Done). A program
/// that was interrupted always returns that. A panic (101) is a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All outputs exist.
    Done,
    /// A call failed.
    Failed,
    /// The arguments or the task are wrong.
    Malformed,
    /// Nothing was to be started, and something is missing.
    Missing,
    /// A call has started something that goes on elsewhere.
    Suspended,
    /// The storage could not be read or written, or is corrupt.
    Storage,
    /// Another process ended, a command of the user or the run that should go on in the background, and the program
    /// ends with the same number.
    Ended(u8),
    /// A signal of this number ended the program: 128 is added, as shells do.
    Interrupted(u8),
}

impl Exit {
    /// The number that the shell sees.
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Malformed => 2,
            Self::Missing => 3,
            Self::Suspended => 4,
            Self::Storage => 5,
            Self::Ended(code) => code,
            Self::Interrupted(signal) => 128_u8.saturating_add(signal),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_documented_ones() {
        let codes = [
            Exit::Done,
            Exit::Failed,
            Exit::Malformed,
            Exit::Missing,
            Exit::Suspended,
            Exit::Storage,
            Exit::Interrupted(2),
            Exit::Interrupted(15),
            Exit::Ended(101),
        ]
        .map(Exit::code);
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 130, 143, 101]);
    }
}
