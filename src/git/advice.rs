//! What several errors of repositories say to try.

use std::fmt::Display;

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

/// What to try if a repository cannot be read.
pub(super) const fn unreadable() -> &'static str {
    "git status says what is wrong, or git fsck whether it is damaged"
}
