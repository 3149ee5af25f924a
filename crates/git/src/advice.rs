//! What several errors of repositories say to try.

use std::error::Error;
use std::fmt::Display;
use std::iter;

/// What to try if a repository belongs to another user.
pub(super) fn trusting(repository: impl Display) -> String {
    format!("if you trust it: git config --global --add safe.directory {repository}")
}

/// What to try if a directory is in no repository.
pub(super) const fn no_repository() -> &'static str {
    "give the path of a work tree or of a bare repository"
}

/// Returns advice for a task that is in no repository.
pub(super) const fn no_task_repository() -> &'static str {
    "run this in the repository of a task, or name a task with --task"
}

/// What to try if a repository cannot be read, by the cause.
pub(super) fn unreadable(source: &(dyn Error + 'static)) -> &'static str {
    let mut causes = iter::successors(Some(source), |&error| error.source());
    match causes.any(|error| lacks_object(&error.to_string())) {
        true => {
            "git fetch --refetch --no-filter, or clone it again without --filter; git fsck lists what is missing"
        }
        false => "git status says what is wrong, or git fsck whether it is damaged",
    }
}

/// Whether an error says that an object is missing, in our words or in those of gix.
fn lacks_object(text: &str) -> bool {
    [("the object ", " is missing"), ("An object with id ", " could not be found")]
        .iter()
        .any(|(begin, end)| text.contains(begin) && text.contains(end))
}
