//! The ends of programs: their exit codes, which scripts of users depend on, and the errors that end them early.

use std::process::ExitCode;
use std::sync::Arc;
use std::{error, fmt};

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

/// Implements [`Explain`](trait@Explain): see the documentation of the crate.
pub use ce_explain::Explain;

/// An error, with advice for its user.
pub trait Explain: error::Error + Send + Sync {
    /// Returns the kind of exit that it causes. By default, the input of the user is wrong.
    fn exit(&self) -> Exit {
        Exit::Malformed
    }

    /// Returns advice for the user, unless it is obvious or not known.
    fn hint(&self) -> Option<String> {
        None
    }
}

impl<E: Explain> Explain for Arc<E> {
    fn exit(&self) -> Exit {
        (**self).exit()
    }

    fn hint(&self) -> Option<String> {
        (**self).hint()
    }
}

/// The reason why a program ends early: any error that explains itself.
pub struct Error(Box<dyn Explain>);

impl Error {
    /// The exit code for it.
    pub fn exit(&self) -> Exit {
        self.0.exit()
    }

    /// Returns advice for the user, unless it is obvious or not known.
    pub fn hint(&self) -> Option<String> {
        self.0.hint()
    }

    /// The error itself, if it has this type.
    pub fn downcast_ref<E: error::Error + 'static>(&self) -> Option<&E> {
        let error: &(dyn error::Error + 'static) = &*self.0;
        error.downcast_ref()
    }
}

impl<E: Explain + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.0.source()
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

    #[derive(Debug, thiserror::Error, Explain)]
    #[error("it is wrong")]
    #[exit(Storage)]
    enum Derived {
        #[hint("write {name:?}, not {{}}")]
        Named { name: String },
        #[exit(if *_0 > 1 { Exit::Failed } else { Exit::Done })]
        #[hint("more than {}, or {_0}", _0 - 1)]
        Counted(u8),
        #[exit(Missing)]
        #[hint(None)]
        Silent,
    }

    #[derive(Debug, thiserror::Error, Explain)]
    #[error("it is wrong")]
    #[hint(_0.hint())]
    struct Around(Derived);

    #[test]
    fn exits_and_hints_are_derived_from_attributes() {
        let explained = |error: &dyn Explain| (error.exit(), error.hint());
        let hint = |text: &str| Some(text.to_owned());
        let named = Derived::Named { name: "x".into() };
        assert_eq!(explained(&named), (Exit::Storage, hint("write \"x\", not {}")));
        let counted = explained(&Derived::Counted(7));
        assert_eq!(counted, (Exit::Failed, hint("more than 6, or 7")));
        assert_eq!(explained(&Derived::Silent), (Exit::Missing, None));
        assert_eq!(explained(&Around(named)), (Exit::Malformed, hint("write \"x\", not {}")));
    }
}
