//! Names in the private directory of a call that is being executed.

use super::{RUNS, RunName};

/// The name of an output that waits to be moved to its place.
pub(crate) fn waiting(stage: &str, number: usize) -> String {
    format!("{stage}.{number:02}")
}

/// Whether this may be the name of a stage: one in the private directory of a run.
pub(crate) fn is_stage(stage: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    match stage.split('/').collect::<Vec<_>>()[..] {
        [RUNS, run, slot, call] => {
            run.parse::<RunName>().is_ok() && is_number(slot) && is_number(call)
        }
        _ => false,
    }
}

/// The ending of the names of records in a stage.
pub(crate) const RECORD: &str = ".record";

/// The working directory of `exec`.
pub(crate) const WORK: &str = "work";

/// The directory where a sandboxed `exec` leaves its outputs.
pub(crate) const OUTBOX: &str = "out";

/// The name of the file with the standard output and error of `exec`.
pub const LOG: &str = "log";
