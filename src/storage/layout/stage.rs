//! Names in the private directory of a call that is being executed.

use super::{RUNS, RunName};

/// Where an output waits to be moved to its place.
pub(in crate::storage) fn waiting(stage: &str, number: usize) -> String {
    format!("{stage}.{number:02}")
}

/// Whether outputs may have waited there: in the private directory of a run, and nowhere else.
pub(in crate::storage) fn is_stage(stage: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    match stage.split('/').collect::<Vec<_>>()[..] {
        [RUNS, run, slot, call] => {
            run.parse::<RunName>().is_ok() && is_number(slot) && is_number(call)
        }
        _ => false,
    }
}

/// How the names of records end in a stage.
pub(in crate::storage) const RECORD: &str = ".record";

/// The directory that `exec` works in.
pub(in crate::storage) const WORK: &str = "work";

/// The directory where a sandboxed `exec` leaves its outputs.
pub(in crate::storage) const OUTBOX: &str = "out";

/// The name of the file that takes what `exec` prints.
pub const LOG: &str = "log";
