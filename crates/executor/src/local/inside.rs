//! Execution in a sandbox, by one of its launchers.

use rustix::process::Signal;

use super::groups::Groups;
use super::over::{Over, is_unborn};
use crate::ended::{ExecuteError, Isolation};
use crate::invocation::Invocation;
use crate::sandbox::error::SandboxError;
use crate::sandbox::pool::{Sandbox, lacking, refused, specify};
use crate::tasks::TaskStatuses;

/// Executes, and waits until nothing of the execution runs any more.
pub(super) fn execute(
    groups: &Groups,
    sandbox: &Sandbox,
    invocation: &Invocation,
) -> Result<Over, ExecuteError> {
    let broken = |error| match groups.is_cancelled() {
        true => ExecuteError::Interrupted,
        false => ExecuteError::Isolate(error),
    };
    let spec = specify(invocation).map_err(ExecuteError::Isolate)?;
    let mut launcher = sandbox.ask(invocation, &spec).map_err(broken)?;
    let leader = match launcher.begin() {
        Ok(leader) => leader,
        Err(error @ SandboxError::Lost(_)) => return Err(broken(error)),
        Err(error) => {
            sandbox.give_back(launcher);
            return Err(refused(&spec, invocation, error));
        }
    };
    let (waited, late) = groups.wait(leader, invocation.limit, || launcher.wait());
    let ended = waited.map_err(broken)?;
    // Its launcher has not reaped it yet.
    let is_unborn = ended == -Signal::KILL.as_raw() && is_unborn(leader);
    let used = launcher.end().map_err(broken)?;
    sandbox.give_back(launcher);
    let code = (ended >= 0).then_some(ended);
    let lacking = if code == Some(0) { Vec::new() } else { lacking(&spec) };
    Ok(Over {
        code,
        signal: (ended < 0).then_some(-ended),
        late,
        user: used.user,
        system: used.system,
        peak: used.peak,
        left_behind: false,
        passed_on: false,
        is_unborn,
        isolation: Isolation::Namespaces,
        lacking,
        tasks: TaskStatuses::default(),
        said: None,
    })
}
