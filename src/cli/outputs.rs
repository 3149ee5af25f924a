//! Outputs in a directory of the user: of a run, and of a job that was stored before.

use std::path::Path;

use ce_evaluate::session::{Error, Stop};
use ce_history::output_directory::{OtherOutputs, OutputToWrite, OutputsError, update_outputs};
use ce_model::exit::Exit;
use ce_report::{changed_outputs, outputs_not_updated, say};
use ce_storage::Storage;

/// Writes outputs into a directory, and says what has changed there, unless only warnings are wanted. Returns an end of the program if the user
/// has interrupted it.
pub(super) fn write_outputs(
    program: &str,
    storage: &Storage,
    dir: &Path,
    outputs: Vec<OutputToWrite>,
    others: OtherOutputs,
    stop: &Stop,
    only_warnings: bool,
) -> Result<Option<Exit>, Error> {
    let changes = match update_outputs(&storage.path(""), dir, outputs, others, &stop.asked) {
        Err(OutputsError::Stopped) if let Some(signal) = stop.caught() => {
            say(program, &OutputsError::Stopped);
            return Ok(Some(Exit::Interrupted(signal)));
        }
        changes => changes?,
    };
    if !only_warnings {
        say(program, &changed_outputs(dir, &changes));
    }
    outputs_not_updated(dir, &changes).iter().for_each(|line| say(program, line));
    Ok(None)
}
