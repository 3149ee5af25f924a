//! Which calls a run executes, and where: others find there what they print.
//!
//! A run that lives says so once a second, if that has changed. Calls that are over by then cost nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use crate::disk::{Disk, lock};
use crate::layout::ResultName;

/// The file in the private directory of a run that lists its executions: the name of a stage, and the short name of a call, in
/// each line.
pub(super) const EXECUTING: &str = "executing";

/// The calls that a run executes.
#[derive(Debug, Default)]
pub(super) struct Executing(Mutex<Executions>);

#[derive(Debug, Default)]
struct Executions {
    /// The short names of calls by the names of their stages.
    calls: BTreeMap<String, String>,
    is_changed: bool,
}

impl Executing {
    /// Notes that a call is executed in a stage.
    pub(super) fn begin(&self, stage: &str, name: &ResultName) {
        let mut executions = lock(&self.0);
        executions.calls.insert(stage.to_owned(), name.short());
        executions.is_changed = true;
    }

    /// Notes that an execution is over, if there was one in this stage.
    pub(super) fn end(&self, stage: &str) {
        let mut executions = lock(&self.0);
        executions.is_changed |= executions.calls.remove(stage).is_some();
    }

    /// Writes the list into the directory of the run, if it has changed.
    pub(super) fn note(&self, disk: &Disk, directory: &Path) {
        let mut executions = lock(&self.0);
        if !std::mem::take(&mut executions.is_changed) {
            return;
        }
        let line = |(stage, call): (&String, &String)| format!("{stage} {call}\n");
        let text: String = executions.calls.iter().map(line).collect();
        drop(executions);
        let new = directory.join("executing.new");
        // Without the list, nobody can follow a log.
        let written = disk.write(&new, text.as_bytes());
        drop(written.and_then(|()| disk.rename(&new, &directory.join(EXECUTING))));
    }
}
