//! Execution in the allocation of a worker: of several hosts or tasks, or by a launcher.
//!
//! `exec` sees the allocation, and starts steps in it; or a launcher starts `exec` on every task. Slurm starts the processes of a
//! step, so no sandbox holds them, and no process group: all steps are ended with the call.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::groups::Groups;
use super::orphans::Orphans;
use super::outside::{self, Starter};
use super::over::Over;
use crate::ended::ExecuteError;
use crate::invocation::{Invocation, Span};
use crate::log::{TAIL, tail};
use crate::slurm::{Allocation, StatusFiles};
use crate::tasks::TaskStatuses;

/// Executes, and waits until nothing of the execution runs any more, on any host, as far as Slurm knows.
pub(super) fn execute(
    groups: &Groups,
    orphans: &Orphans,
    allocation: &Allocation,
    (span, invocation): (&Span, &Invocation),
) -> Result<Over, ExecuteError> {
    allocation.prepare();
    let launched = launcher(allocation, span, invocation)?;
    let (launcher, files) = launched.map_or((Vec::new(), None), |(it, files)| (it, Some(files)));
    let starter = Starter { launcher, hides_allocation: false };
    let ended = outside::execute(groups, orphans, invocation, &starter);
    // Also after an error: exec may have been executed.
    let is_over = allocation.end_steps(|| groups.is_killed());
    let statuses = files.map(|files| files.take());
    let mut over = ended?;
    over.left_behind |= !is_over;
    if let Some(statuses) = statuses {
        // These are of the launcher itself.
        (over.user, over.system, over.peak) = (Duration::ZERO, Duration::ZERO, 0);
        over.tasks = TaskStatuses(statuses);
        over.said = last_error(&invocation.log());
    }
    Ok(over)
}

/// The last error of the launcher in a log.
fn last_error(log: &Path) -> Option<String> {
    let text = String::from_utf8_lossy(&tail(log, TAIL).ok()?).into_owned();
    let mut errors =
        text.lines().filter(|line| line.starts_with("srun: ") && line.contains("error: "));
    errors.next_back().map(str::to_owned)
}

/// The words that start `exec` on every task, if it asks for that.
fn launcher(
    allocation: &Allocation,
    span: &Span,
    invocation: &Invocation,
) -> Result<Option<(Vec<OsString>, StatusFiles)>, ExecuteError> {
    let refused = |error| ExecuteError::Refused(format!("it cannot be launched: {error}"));
    let launch = || allocation.launcher(span, &invocation.work.path, &invocation.outbox.path);
    span.launcher.map(|_| launch().map_err(refused)).transpose()
}
