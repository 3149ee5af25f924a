//! What a run leaves behind when it dies: its private directory in `tmp/`.
//!
//! A run that finds the directory of a dead one on the same host puts in place what was already
//! decided, and removes the rest.

use std::ffi::OsStr;
use std::path::Path;

use super::find::Call;
use super::record::CallRecord;
use super::run::{self, ROOM, RunName};
use super::scheme::{DIGITS, ResultName};
use super::stage::RECORD;
use super::{Storage, disk};
use crate::workflow::Computation;

impl Storage {
    /// Clears away what dead runs of this host have left. Failing to do so harms nothing.
    pub(super) fn clear_leftovers(&self) {
        for directory in disk::list(&self.path(ROOM)).unwrap_or_default() {
            let name = directory.file_name().and_then(OsStr::to_str);
            let Some(Ok(run)) = name.map(str::parse) else {
                continue;
            };
            if self.is_over(&run, &directory) {
                let slots = disk::list(&directory).unwrap_or_default().into_iter();
                let files = slots.flat_map(|slot| disk::list(&slot).unwrap_or_default());
                files.filter(|path| is_record(path)).for_each(|record| self.finish(&record));
                drop(disk::remove_tree(&directory));
            }
        }
    }

    fn is_over(&self, run: &RunName, directory: &Path) -> bool {
        let is_silent = || {
            let own = self.appear().ok().and_then(Path::parent);
            own.is_some_and(|own| run::is_silent(directory, own))
        };
        self.run.is_over(run) || self.run.may_precede(run) && is_silent()
    }

    /// Moves the outputs of an execution that had won to their places.
    fn finish(&self, record: &Path) {
        let Ok(Some(text)) = disk::read(record) else {
            return;
        };
        let Ok(record) = serde_json::from_slice::<CallRecord>(&text) else {
            return;
        };
        let computation = Computation {
            name: record.computation.clone(),
            commit: record.commit.clone(),
            tree: record.tree.clone(),
            dirty: record.dirty,
            inputs: Vec::new(),
            outputs: vec![String::new(); record.outputs.len()],
            access: Default::default(),
            checked_out: None,
        };
        let call = Call { computation: &computation, inputs: &record.inputs };
        for digits in DIGITS {
            let name = ResultName::of_call(&computation, call.inputs, digits);
            // Looking at the call moves what is waiting, if this execution is the recorded one.
            drop(self.state(&name, call));
        }
    }
}

fn is_record(path: &Path) -> bool {
    path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.ends_with(RECORD))
}
