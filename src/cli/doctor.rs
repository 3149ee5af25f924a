//! `ce doctor`: whether a storage can keep its promises here, and a sandbox hold.

use std::io::Write;

use clap::Parser;

use super::place::StorageDir;
use super::{Tool, say};
use crate::doctor;
use crate::report::{self, GradeCounts};
use ce_evaluate::session::{BeginError, Error, OutputError, Stop};
use ce_model::exit::Exit;

/// Probe whether a storage can keep its promises on this file system and host
///
/// Tries the operations of a storage in a private directory below its tmp/, which is removed at the
/// end. A missing storage is made, and removed as well. Explains what would break, and why small
/// calls are slow. Then a computation tries to break out of its sandbox: without a storage, that is
/// all. Existing files of the storage are not touched.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
pub struct Doctor {
    /// Print one JSON object for each probe
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    storage: StorageDir,
}

const EXIT_CODES: &str = "\
Exit codes: 0 all promises can be kept, 2 the arguments are wrong, 5 a promise cannot be \
kept, 130/143 interrupted.";

impl Tool for Doctor {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let stop = Stop::watch().map_err(BeginError::new)?;
        let tell = if self.json { report::diagnosis_json } else { report::diagnosis };
        let mut findings = GradeCounts::default();
        let storage = self.storage.if_any()?;
        for diagnosis in doctor::examine(storage.as_deref()) {
            if let Some(signal) = stop.caught() {
                say("ce", &"interrupted: the files of the probes are removed");
                return Ok(Exit::Interrupted(signal));
            }
            findings.add(&diagnosis);
            // Each as soon as it is known: on a file system that hangs, the last one tells where.
            tell(&diagnosis, out).and_then(|()| out.flush()).map_err(OutputError)?;
        }
        say("ce", &findings);
        let promises = match (&storage, findings.broken) {
            (Some(_), 0) => "a storage can keep all its promises here",
            (Some(_), _) => "a storage cannot keep all its promises here",
            (None, 0) => "no file system was probed: ce doctor STORAGE does that, too",
            (None, _) => "isolation does not hold here",
        };
        say("ce", &promises);
        Ok(if findings.broken > 0 { Exit::Storage } else { Exit::Done })
    }
}
