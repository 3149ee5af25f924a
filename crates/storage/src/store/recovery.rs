//! Recovery: a killed run leaves its private directory in `tmp/`.
//!
//! A run that finds the directory of a dead run of the same host moves published outputs to their
//! places, and removes the rest.

use std::ffi::OsStr;
use std::path::Path;

use super::Storage;
use super::call::Call;
use super::run;
use crate::layout::{DIGITS, GATE, RECORD, RUNS, ResultName, RunName};
use crate::records::CallRecord;
use ce_model::digest::Digest;

impl Storage {
    /// Finishes and removes the leftovers of dead runs of this host. Failures are harmless.
    pub(crate) fn recover(&self) {
        for directory in self.root.disk.list(&self.path(RUNS)).unwrap_or_default() {
            let name = directory.file_name().and_then(OsStr::to_str);
            if directory == self.path(GATE) {
                // That of a collection that has died is acquired, and released.
                drop(self.leases().acquire_file(GATE));
            }
            let Some(Ok(run)) = name.map(str::parse) else {
                continue;
            };
            if self.is_over(&run, &directory) {
                for slot in self.root.disk.list(&directory).unwrap_or_default() {
                    let files = self.root.disk.list(&slot).unwrap_or_default();
                    files.iter().filter(|path| is_record(path)).for_each(|it| self.finish(it));
                }
                drop(self.root.disk.remove_tree(&directory));
            }
        }
    }

    fn is_over(&self, run: &RunName, directory: &Path) -> bool {
        if self.run.is_over(run) || !self.run.may_precede(run) {
            return self.run.is_over(run);
        }
        let own = self.run.appear(&self.root).ok().and_then(Path::parent);
        own.is_some_and(|own| run::is_timed_out(&self.root.disk, directory, own))
    }

    /// Moves the outputs of a published execution to their places.
    fn finish(&self, record: &Path) {
        let Ok(Some(text)) = self.root.disk.read(record) else {
            return;
        };
        let Ok(record) = serde_json::from_slice::<CallRecord>(&text) else {
            return;
        };
        let version = record.version();
        let names: Vec<String> = record.outputs.iter().map(|it| kind(&it.digest)).collect();
        let call = Call { version, inputs: &record.inputs, outputs: &names };
        for directory in version.directories() {
            for digits in DIGITS {
                let name = ResultName::new(&directory, call.inputs, digits);
                // Reading the state moves staged outputs, if this execution is the recorded one.
                drop(self.state(&name, call));
            }
        }
    }
}

/// A name for an output that says whether it is a directory.
fn kind(digest: &Digest) -> String {
    if digest.is_directory() { "/".to_owned() } else { String::new() }
}

fn is_record(path: &Path) -> bool {
    path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.ends_with(RECORD))
}
