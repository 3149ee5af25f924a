//! Logs of calls: what `exec` has printed, and prints while it is being executed, wherever that is.

use std::io::Write;
use std::thread;
use std::time::Duration;

use super::{Error, OutputError, Stop};
use ce_history::HistoryError;
use ce_storage::{ResultName, Storage};

/// The pause between two looks at a log.
const PAUSE: Duration = Duration::from_millis(50);

/// Prints what a call has printed. With `follows`, goes on until no run executes it any more, or the user asks to stop. What it
/// prints is read from the storage, so the execution may be on another host.
///
/// # Errors
///
/// Fails if nothing is known of the call, the storage cannot be read, or the output not be written.
pub fn print_log(
    storage: &Storage,
    name: &ResultName,
    follows: bool,
    stop: &Stop,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let (mut execution, mut printed) = (None, 0);
    let mut is_known = false;
    loop {
        let held = storage.leases().holder(name).is_some();
        let running = storage.logs().running_log(name)?.filter(|_| held);
        if let Some((number, log)) = &running {
            if execution.as_ref().is_some_and(|known| known != number) {
                printed = 0;
            }
            execution = Some(number.clone());
            printed += copy(storage, log, printed, out)?;
        }
        is_known |= held;
        if stop.caught().is_some() {
            return Ok(());
        }
        if !(held && follows) {
            if running.is_none() || follows {
                break;
            }
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
    match storage.logs().kept_log(name)? {
        Some(log) => copy(storage, &log, printed, out).map(drop),
        None if is_known || storage.logs().is_known(name)? => Ok(()),
        None => Err(HistoryError::NoCall(name.short()).into()),
    }
}

/// Prints what a log has from a byte on. Returns how much that is.
fn copy(storage: &Storage, log: &str, from: u64, out: &mut dyn Write) -> Result<u64, Error> {
    let mut copied = 0;
    loop {
        let piece = storage.logs().read_log(log, from + copied)?;
        if piece.is_empty() {
            out.flush().map_err(OutputError)?;
            return Ok(copied);
        }
        out.write_all(&piece).map_err(OutputError)?;
        copied += piece.len() as u64;
    }
}
