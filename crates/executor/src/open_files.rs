//! The limit of open files of this process. It is raised as far as executions need it; they get the user's own limit back.
//!
//! Programs that close all files that they may have, or wait by `select`, take a high limit badly. So it is raised no further, and not
//! inherited.

use std::env;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// The number of other open files, beside the files of executions and the directories of the storage.
const OTHERS: u64 = 64;

/// The directories of the storage that are kept open at most. They take at most a fourth of the limit.
const DIRECTORIES: u64 = 200;

/// The open files of an execution: the pipes of its launcher, its lease, and files that are open while it begins and
/// ends.
const EACH: u64 = 6;

/// The variable that passes the limit of executions to a launcher.
const VARIABLE: &str = "COMPEVAL_OPEN_FILES";

/// The limit that the user has set, if it was raised.
static ORIGINAL: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit so that this many executions may run at once. Returns how many may, if those are fewer: the user's hard limit
/// allows no more.
pub fn raise_open_files(executions: NonZeroUsize) -> NonZeroUsize {
    let limit = getrlimit(Resource::Nofile);
    let (current, most) = (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX));
    let wanted = needed(executions).min(most);
    let raised = Rlimit { current: Some(wanted), ..limit };
    let is_raised = wanted > current && setrlimit(Resource::Nofile, raised).is_ok();
    if is_raised {
        // Later sessions of this process find a limit that was raised.
        let _first = ORIGINAL.set(limit);
    }
    possible(if is_raised { wanted } else { current }).min(executions)
}

/// The files that are open while executions run.
fn needed(executions: NonZeroUsize) -> u64 {
    let executions = u64::try_from(executions.get()).unwrap_or(u64::MAX);
    executions.saturating_mul(EACH).saturating_add(OTHERS + DIRECTORIES)
}

/// The number of executions that may run at once with a limit.
fn possible(limit: u64) -> NonZeroUsize {
    let left = limit.saturating_sub((limit / 4).min(DIRECTORIES) + OTHERS);
    let possible = usize::try_from(left / EACH).unwrap_or(usize::MAX);
    NonZeroUsize::new(possible).unwrap_or(NonZeroUsize::MIN)
}

/// The variable of a launcher that is to lower its limit, if that was raised.
pub(crate) fn variable() -> Option<(&'static str, OsString)> {
    let limit = ORIGINAL.get()?.current?;
    Some((VARIABLE, limit.to_string().into()))
}

/// Lowers the limit of this process, a launcher, to the one that executions have.
pub(crate) fn lower_as_told() {
    if let Some(limit) = env::var(VARIABLE).ok().and_then(|limit| limit.parse().ok()) {
        let limit = Rlimit { current: Some(limit), ..getrlimit(Resource::Nofile) };
        // It may always be lowered.
        let _lowered = setrlimit(Resource::Nofile, limit);
    }
}

/// Gives a process that was started the limit that the user has set.
pub(crate) fn lower(process: Pid) {
    if let Some(limit) = ORIGINAL.get() {
        // It may have ended, or have become another user.
        let _gone = prlimit(Some(process), Resource::Nofile, *limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_needed_limit_allows_the_requested_executions() {
        for executions in [1, 4, 140, 1000, 1_000_000] {
            let executions = NonZeroUsize::new(executions).unwrap();
            assert!(possible(needed(executions)) >= executions);
        }
        assert_eq!(possible(0), NonZeroUsize::MIN);
        assert_eq!([256, 1024, 4096].map(|limit| possible(limit).get()), [21, 126, 638]);
        assert!(possible(u64::MAX).get() > 1_000_000 && needed(NonZeroUsize::MAX) == u64::MAX);
    }
}
