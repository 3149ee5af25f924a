//! How a program ends that ends early.

use std::io;

use super::Error;
use crate::evaluate::EvaluateError;
use crate::exit::Exit;
use crate::questions::collect::RepositoryError;
use crate::questions::table::SweepTableError;
use crate::storage::StorageError;
use crate::storage::maintenance::verify::VerifyError;

/// Whether the user has given a wrong path, or one that nobody lets them read. Any other error is the system's.
fn may_be_mended(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, IsADirectory, NotADirectory, NotFound, PermissionDenied};
    matches!(
        error.kind(),
        InvalidFilename | IsADirectory | NotADirectory | NotFound | PermissionDenied
    )
}

impl Error {
    /// The exit code for it.
    #[expect(clippy::too_many_lines, reason = "each variant is named: a new one needs a decision")]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Bisect(error) => error.exit(),
            Self::Suspension(error) => error.exit(),
            Self::Inspection(error) => error.exit(),
            Self::Interrupted(signal) => Exit::Interrupted(*signal),
            Self::Submit(_) => Exit::Missing,
            Self::Edit(error) if error.is_of_system() => Exit::Storage,
            Self::Tree(error) if error.is_storage() => Exit::Storage,
            Self::Results(error) => error.exit(),
            Self::Package(error) => error.exit(),
            Self::Table(SweepTableError::Columns(_)) => Exit::Malformed,
            Self::Evaluate(EvaluateError::Output(error)) if !error.is_storage() => Exit::Failed,
            Self::InputValue { source: StorageError::Io { source, .. }, .. }
                if may_be_mended(source) =>
            {
                Exit::Malformed
            }
            Self::InputValue { source: error, .. }
            | Self::Storage(error)
            | Self::Evaluate(EvaluateError::Storage(error)) => error.exit(),
            Self::Load(_)
            | Self::History(_)
            | Self::Reach(_)
            | Self::Repository(
                RepositoryError::Reach(_)
                | RepositoryError::None
                | RepositoryError::Lost(_)
                | RepositoryError::Unknown(_),
            )
            | Self::Verify(VerifyError::NoRecord(_))
            | Self::Config(_)
            | Self::Slurm(_)
            | Self::NotInJob(_)
            | Self::Edit(_)
            | Self::Misfits { .. }
            | Self::NoStorage
            | Self::NoResults
            | Self::Inputs { .. }
            | Self::UnknownInput { .. }
            | Self::OwnFile { .. }
            | Self::InputTwice(_)
            | Self::Tree(_)
            | Self::UnknownRepository { .. }
            | Self::RepositoryTwice(_)
            | Self::NotGiven(_)
            | Self::GivenAndRanged(_)
            | Self::RangedTwice(_)
            | Self::Product(_)
            | Self::ReadPoints { .. }
            | Self::Points { .. }
            | Self::NoPoints(_)
            | Self::Sweep(_)
            | Self::Selection(_)
            | Self::Sheet(_)
            | Self::Versions(_)
            | Self::NoInput { .. }
            | Self::RevisionOrPath { .. }
            | Self::Commits(_)
            | Self::List(_)
            | Self::Test { .. }
            | Self::Input { .. }
            | Self::Directory { .. }
            | Self::NothingToPin(_)
            | Self::ResultPath(_)
            | Self::NoCallGiven
            | Self::AllAndOne(_)
            | Self::NoCall(_)
            | Self::NoJob(_)
            | Self::NotAudited(..)
            | Self::AuditedTwice(..)
            | Self::NotAPage(_)
            | Self::Picture(_) => Exit::Malformed,
            Self::Table(SweepTableError::Read(_))
            | Self::Repository(RepositoryError::Storage(_))
            | Self::Evaluate(_)
            | Self::Verify(VerifyError::Storage(_))
            | Self::Write { .. }
            | Self::Program { .. }
            | Self::Convert { .. }
            | Self::Begin(_)
            | Self::Output(_) => Exit::Storage,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn only_what_the_user_can_mend_is_wrong_input() {
        let exit = |kind: io::ErrorKind| {
            let path = PathBuf::from("data/d");
            let source = StorageError::Io { doing: "read", path, source: kind.into() };
            Error::InputValue { name: "x".to_owned(), source }.exit()
        };
        assert_eq!(exit(io::ErrorKind::PermissionDenied), Exit::Malformed);
        assert_eq!(exit(io::ErrorKind::NotFound), Exit::Malformed);
        assert_eq!(exit(io::ErrorKind::StaleNetworkFileHandle), Exit::Storage);
        assert_eq!(exit(io::ErrorKind::Other), Exit::Storage);
    }
}
