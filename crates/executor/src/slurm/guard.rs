//! Becomes another program that is asked to end when the process dies that has started it, in whatever way.
//!
//! `srun` ends its step when it gets TERM. Without this, a step would go on in an allocation whose worker was killed.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// The hidden first argument that makes this program a guard.
const GUARD: &str = "--guard";

/// The status of a program that cannot be executed, as shells have it.
const NOT_EXECUTED: u8 = 127;

/// The words before a program and its arguments that make it end with this process: with the thread that starts it.
pub(super) fn words() -> [OsString; 3] {
    ["/proc/self/exe".into(), GUARD.into(), std::process::id().to_string().into()]
}

/// Becomes another program, if the first argument is the hidden one.
pub(crate) fn hidden(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.next()? != GUARD {
        return None;
    }
    let parent = arguments.next()?.to_str()?.parse::<i32>().ok()?;
    let mut command = Command::new(arguments.next()?);
    command.args(arguments);
    let followed = set_parent_process_death_signal(Some(Signal::TERM));
    // It may have died before.
    let is_alive = getppid().is_some_and(|pid| pid.as_raw_nonzero().get() == parent);
    if followed.is_err() || !is_alive {
        return Some(ExitCode::FAILURE);
    }
    let error = command.exec();
    let program = command.get_program().display();
    // It is the log of a call.
    drop(std::io::Write::write_fmt(
        &mut std::io::stderr(),
        format_args!("{program} cannot be executed: {error}\n"),
    ));
    Some(NOT_EXECUTED.into())
}
