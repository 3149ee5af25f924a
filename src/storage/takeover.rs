//! Results that another commit has: of the same directory, from the same inputs.
//!
//! A commit that did not touch a computation costs nothing. Each version of a computation leaves its
//! name under the tree of its directory, so a source is found without looking through the storage.
//! Only what ran isolated is taken over: it could see nothing else.

use std::cmp::Reverse;
use std::path::Path;
use std::sync::Arc;

use super::find::{Call, Outputs, State};
use super::publish::Sealed;
use super::record::{CallRecord, Execution, Origin, Published};
use super::scheme::{DIGITS, RECORDS, ResultName};
use super::{Result, Storage, disk, lock};
use crate::workflow::{Computation, version};

/// How many other versions are looked at, the newest first.
const VERSIONS: usize = 16;

/// A result of the same call under another version.
#[derive(Debug)]
pub struct Source {
    /// Its outputs.
    pub outputs: Outputs,
    record: CallRecord,
}

impl Storage {
    /// Looks for a result of the same call under another version of the same tree.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn same_elsewhere(&self, call: Call<'_>) -> Result<Option<Source>> {
        let own = call.computation.version();
        for version in self.versions(call.computation)?.iter().filter(|it| **it != own) {
            for digits in DIGITS {
                let name = ResultName::of_version(call.computation, version, call.inputs, digits);
                let read = self.record::<CallRecord>(&name.record())?.ok();
                if let Some(record) = read.filter(|it| serves(it, call))
                    && let State::Hit(outputs) = self.state(&name, call)?
                {
                    return Ok(Some(Source { outputs, record }));
                }
            }
        }
        Ok(None)
    }

    /// The versions that have results of a computation's tree, the newest first.
    fn versions(&self, computation: &Computation) -> Result<Arc<[String]>> {
        let directory = directory(computation);
        if let Some(known) = lock(&self.versions).get(&directory) {
            return Ok(Arc::clone(known));
        }
        let mut versions = Vec::new();
        for path in disk::list(&self.path(&directory))? {
            let name = path.file_name().and_then(|name| name.to_str());
            // What is gone by now is no source.
            if let (Some(name), Some(metadata)) = (name, disk::metadata(&path)?) {
                versions.push((Reverse(disk::modified_ns(&metadata)), name.to_owned()));
            }
        }
        versions.sort_unstable();
        let versions: Arc<[String]> =
            versions.into_iter().take(VERSIONS).map(|(_, version)| version).collect();
        lock(&self.versions).insert(directory, Arc::clone(&versions));
        Ok(versions)
    }

    /// Notes that there are results of a computation under its version. Failing to do so costs
    /// executions, and nothing else.
    pub(super) fn note_version(&self, computation: &Computation) {
        let name = format!("{}/{}", directory(computation), computation.version());
        let path = self.path(&name);
        if lock(&self.made).insert(path.clone()) && self.place(&name).is_ok() {
            drop(disk::write(&path, b""));
        }
    }

    /// Removes the name of a version that has no results any more.
    pub(super) fn forget_version(&self, name: &ResultName, record: &CallRecord) -> Result<()> {
        if !disk::is_empty(&self.path(&name.room_itself(RECORDS)))? {
            return Ok(());
        }
        let CallRecord { computation, commit, tree, dirty, .. } = record;
        let version = version(commit, tree, *dirty);
        let directory = format!("c_{computation}/commits/{}", tree.full());
        disk::remove(&self.path(&format!("{directory}/{version}")))
    }

    /// Takes a result over for a call: links to its outputs, and a record that names it.
    ///
    /// Returns `None` if it is not there any more.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn take_over(&self, call: Call<'_>, source: &Source) -> Result<Option<Sealed<'_>>> {
        let Origin::Executed { execution, .. } = &source.record.origin else { return Ok(None) };
        let stage = self.stage(source.record.outputs.len())?;
        let mut outputs = Vec::with_capacity(source.record.outputs.len());
        for (number, output) in source.record.outputs.iter().enumerate() {
            let from = self.path(&source.outputs.name.output(number));
            let Some(output) = link_or_copy(&from, &stage.output(number), output)? else {
                return Ok(None);
            };
            self.unsynced.note(&stage.output(number));
            outputs.push(output);
        }
        // Without what it printed it is a result all the same.
        let log = self.path(&source.outputs.name.room("log"));
        let has_log = disk::metadata(&log)?.is_some();
        if has_log && disk::metadata(&stage.log())?.is_some() {
            disk::remove(&stage.log())?;
        }
        if has_log {
            disk::link(&log, &stage.log())?;
        }
        let taken_over = Some(source.outputs.name.short());
        let execution = Execution { taken_over, ..execution.clone() };
        let origin = Origin::Executed { stage: stage.name.clone(), execution };
        stage.write_record(&self.call_record(call, outputs, origin))?;
        Ok(Some(Sealed { stage, digests: source.outputs.digests.clone() }))
    }
}

/// Where versions of a computation's tree leave their names.
fn directory(computation: &Computation) -> String {
    format!("c_{}/commits/{}", computation.name, computation.tree.full())
}

/// Whether a record is of the very call, and could not depend on anything else.
fn serves(record: &CallRecord, call: Call<'_>) -> bool {
    let isolated = match &record.origin {
        Origin::Executed { execution, .. } => execution.is_isolated(),
        Origin::Adopted => false,
    };
    isolated && record.tree == call.computation.tree && record.inputs == call.inputs
}

/// Gives a published file another name; returns `None` if it is not the published one.
fn link_or_copy(from: &Path, to: &Path, file: &Published) -> Result<Option<Published>> {
    if disk::link(from, to).unwrap_or(false) {
        return Ok(disk::is_published(to, file)?.then_some(*file));
    }
    if disk::metadata(from)?.is_none() {
        return Ok(None);
    }
    let digest = disk::copy(from, to)?;
    let modified_ns = disk::seal(to)?;
    Ok((digest == file.digest).then_some(Published { digest, modified_ns }))
}
