//! Results that another commit has: of the same directory, from the same inputs.
//!
//! A commit that did not touch a computation costs nothing. Each version of a computation leaves its
//! name under the tree of its directory, so a source is found without looking through the storage.
//! Only what ran isolated is taken over: it could see nothing else.

use std::cmp::Reverse;
use std::path::Path;
use std::sync::Arc;

use super::find::{Call, CallState, Outputs};
use super::publish::Sealed;
use super::record::{CallRecord, Execution, Origin, Published};
use super::scheme::{DIGITS, RECORDS, ResultName};
use super::version::{ComputationVersion, OfVersion};
use super::{Result, Storage, lock};
use crate::digest::ObjectId;
use crate::name::ComputationName;

/// How many other versions are looked at, the newest first.
const MAX_VERSIONS: usize = 16;

/// A result of the same call under another version.
#[derive(Debug)]
pub struct Equivalent {
    /// Its outputs.
    pub outputs: Outputs,
    record: CallRecord,
}

impl Storage {
    /// Looks for a result of the same call under another version of the same tree. A result that cannot
    /// be read is passed over: the call can be executed.
    ///
    /// # Errors
    ///
    /// Fails if the call's own place in the storage cannot be read.
    pub fn find_equivalent(&self, call: Call<'_>) -> Result<Option<Equivalent>> {
        let own = self.directory_of_version(call.version)?;
        let computation = call.version.computation;
        let Ok(versions) = self.versions(call.version) else { return Ok(None) };
        let directories = versions.iter().map(|version| format!("c_{computation}/{version}"));
        let mut names = directories.filter(|directory| **directory != *own).flat_map(|directory| {
            DIGITS.map(|digits| ResultName::new(&directory, call.inputs, digits))
        });
        Ok(names.find_map(|name| self.source(&name, call).ok().flatten()))
    }

    /// Returns a call's result under the name that it has in another version, if it serves.
    fn source(&self, name: &ResultName, call: Call<'_>) -> Result<Option<Equivalent>> {
        let read = self.record::<CallRecord>(&name.record())?.ok();
        let Some(record) = read.filter(|it| serves(it, call)) else { return Ok(None) };
        let theirs = Call { version: record.version(), ..call };
        if theirs.version.may_be_in(name.directory())
            && let CallState::Hit(outputs) = self.state(name, theirs)?
        {
            return Ok(Some(Equivalent { outputs, record }));
        }
        Ok(None)
    }

    /// The versions that have results of a computation's tree, the newest first.
    fn versions(&self, version: ComputationVersion<'_>) -> Result<Arc<[String]>> {
        let directory = notes(version.computation, version.tree);
        if let Some(known) = lock(&self.versions).get(&directory) {
            return Ok(Arc::clone(known));
        }
        let mut versions = Vec::new();
        for path in self.disk.list(&self.path(&directory))? {
            let name = path.file_name().and_then(|name| name.to_str());
            // A version that is gone by now is no source.
            if let (Some(name), Some(metadata)) = (name, self.disk.metadata(&path)?) {
                versions.push((Reverse(metadata.modified_ns()), name.to_owned()));
            }
        }
        versions.sort_unstable();
        let versions: Arc<[String]> =
            versions.into_iter().take(MAX_VERSIONS).map(|(_, version)| version).collect();
        lock(&self.versions).insert(directory, Arc::clone(&versions));
        Ok(versions)
    }

    /// Records that there are results of a version where a result has its name. Failing to do so costs
    /// executions, and nothing else.
    pub(super) fn note_version(&self, version: ComputationVersion<'_>, result: &ResultName) {
        let name = note(version.computation, version.tree, result);
        let path = self.path(&name);
        if lock(&self.made).insert(path.clone()) && self.place(&name).is_ok() {
            drop(self.disk.write(&path, b""));
        }
    }

    /// Removes the name of a version that has no results any more.
    pub(super) fn forget_version(&self, name: &ResultName, record: &CallRecord) -> Result<()> {
        if !self.disk.is_empty(&self.path(&name.room_itself(RECORDS)))? {
            return Ok(());
        }
        let note = note(&record.computation, &record.tree, name);
        match self.disk.remove(&self.path(&note)) {
            Err(error) if error.is_not_own() => Ok(()),
            removed => removed,
        }
    }

    /// Takes a result over for a call: links to its outputs, and a record that names it.
    ///
    /// Returns `None` if it is not there any more, or cannot be read.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn take_over(&self, call: Call<'_>, source: &Equivalent) -> Result<Option<Sealed<'_>>> {
        match self.link_source(call, source) {
            Err(error) if error.is_about(&self.path(source.outputs.name.directory())) => Ok(None),
            taken => taken,
        }
    }

    fn link_source(&self, call: Call<'_>, source: &Equivalent) -> Result<Option<Sealed<'_>>> {
        let Origin::Executed { execution, .. } = &source.record.origin else { return Ok(None) };
        let stage = self.stage(source.record.outputs.len())?;
        let mut outputs = Vec::with_capacity(source.record.outputs.len());
        for (number, output) in source.record.outputs.iter().enumerate() {
            let from = self.path(&source.outputs.name.output(number));
            let Some(output) = link_or_copy(self, &from, &stage.output(number), output)? else {
                return Ok(None);
            };
            self.unsynced.note(&stage.output(number));
            outputs.push(output);
        }
        // A result without its log is a result all the same.
        let log = self.path(&source.outputs.name.room("log"));
        if self.disk.exists(&log).unwrap_or(false) {
            self.disk.remove(&stage.log())?;
            match self.disk.link_or_copy(&log, &stage.log()) {
                Err(error) if error.may_not_write() || error.is_about(&log) => {
                    self.disk.remove(&stage.log())?;
                }
                linked => drop(linked?),
            }
        }
        let taken_over = Some(source.outputs.name.short());
        let execution = Execution { taken_over, ..execution.clone() };
        let origin = Origin::Executed { stage: stage.name.clone(), execution };
        stage.write_record(&self.call_record(call, outputs.clone(), origin))?;
        Ok(Some(Sealed { stage, files: outputs.into() }))
    }
}

/// Where versions of a computation's tree leave their names.
fn notes(computation: &ComputationName, tree: &ObjectId) -> String {
    format!("c_{computation}/commits/{}", tree.full())
}

/// The file that says that there are results of a tree where a result has its name.
fn note(computation: &ComputationName, tree: &ObjectId, result: &ResultName) -> String {
    format!("{}/{}", notes(computation, tree), result.version())
}

/// Whether a record is of the very call, and could not depend on anything else.
fn serves(record: &CallRecord, call: Call<'_>) -> bool {
    let isolated = match &record.origin {
        Origin::Executed { execution, .. } => execution.is_isolated(),
        Origin::Adopted => false,
    };
    isolated
        && record.computation == *call.version.computation
        && record.tree == *call.version.tree
        && record.inputs == call.inputs
}

/// Gives a published file another name; returns `None` if it is not the published one.
fn link_or_copy(
    storage: &Storage,
    from: &Path,
    to: &Path,
    file: &Published,
) -> Result<Option<Published>> {
    if storage.disk.link(from, to).unwrap_or(false) {
        return Ok(storage.is_published(to, file)?.then_some(*file));
    }
    if storage.disk.metadata(from)?.is_none() {
        return Ok(None);
    }
    let digest = storage.disk.copy(from, to)?;
    let modified_ns = storage.disk.seal(to)?;
    Ok((digest == file.digest).then_some(Published { digest, modified_ns }))
}
