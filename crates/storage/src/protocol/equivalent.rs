//! Equivalent results and failures of other commits: of the same directory, from the same inputs.
//!
//! A commit that does not touch a computation costs nothing. Each version of a computation is
//! listed under the tree of its directory, so equivalents are found without a search of the
//! storage. Isolated executions are taken over, since they could read nothing else; others if the
//! user trusts the tree.

use std::path::Path;

use super::call::{Call, CallState, Outputs};
use super::{Sealed, Storage, Unrecorded};
use crate::disk::Result;
use crate::paths::{
    ComputationVersion, DIGITS, FAILED, RECORDS, ResultName, link_to, note, waiting,
};
use crate::records::{CallRecord, FailureRecord, Published, Stamp};

/// Which results of other versions of the same tree are taken over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Takeover {
    /// Those of isolated executions, which depend on the tree and the inputs alone.
    #[default]
    Isolated,
    /// Also those that were executed in this storage without isolation: that they depend on nothing else is trusted.
    Tree,
}

/// A result of the same call under another version.
#[derive(Debug)]
pub struct Equivalent {
    /// Its outputs.
    pub outputs: Outputs,
    /// Where these are. Only those that are here can be taken over; of the others, the digests are known.
    pub whereabouts: OutputLocation,
    record: CallRecord,
}

impl Equivalent {
    /// Whether it can be taken over.
    pub fn is_here(&self) -> bool {
        self.whereabouts == OutputLocation::Here
    }

    /// Whether outputs of it are deliberately not here.
    pub fn is_away(&self) -> bool {
        self.whereabouts == OutputLocation::Away
    }
}

/// Where the outputs of a call are that has a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum OutputLocation {
    /// All of them are here.
    Here,
    /// Some are archives, in a storage that is only read.
    Archived,
    /// Some are deliberately not here.
    Away,
}

/// Results and failures of other commits that stand for those of a call.
#[derive(Clone, Copy, Debug)]
pub struct Equivalents<'a> {
    storage: &'a Storage,
}

impl<'a> Equivalents<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Looks for a result of the same call under another version of the same tree: one that is here, or else archived,
    /// or else away. An unreadable result is skipped, since the call can be executed.
    pub fn find_equivalent(&self, call: Call<'_>) -> Result<Option<Equivalent>> {
        let mut other: Option<Equivalent> = None;
        let here = self.find_elsewhere(call, |name| {
            let found = self.source(name, call).ok().flatten()?;
            if found.whereabouts == OutputLocation::Here {
                return Some(found);
            }
            if other.as_ref().is_none_or(|it| found.whereabouts < it.whereabouts) {
                other = Some(found);
            }
            None
        });
        Ok(here?.or(other))
    }

    /// Looks for a failure of the same call under another version of the same tree. Like a result it counts only if the
    /// execution was isolated. Returns it with its name. An unreadable one is skipped, since the call can be executed.
    pub fn find_equivalent_failure(
        &self,
        call: Call<'_>,
    ) -> Result<Option<(ResultName, FailureRecord)>> {
        self.find_elsewhere(call, |name| {
            let failure =
                self.storage.records().read::<FailureRecord>(&name.record_in(FAILED)).ok()?.ok()?;
            let is_same = failure.computation == *call.version.computation
                && failure.tree.as_ref() == Some(call.version.tree)
                && failure.inputs == call.inputs;
            (failure.is_isolated() && is_same).then(|| (name.clone(), failure))
        })
    }

    /// Returns the first value that a function finds under the names that a call has at other versions of the same tree.
    fn find_elsewhere<T>(
        &self,
        call: Call<'_>,
        mut find: impl FnMut(&ResultName) -> Option<T>,
    ) -> Result<Option<T>> {
        let own = self.storage.versions.directory(&self.storage.root, call.version)?;
        let Ok(versions) = self.storage.versions.of_tree(&self.storage.root, call.version) else {
            return Ok(None);
        };
        let directories =
            versions.iter().map(|version| format!("c_{}/{version}", call.version.computation));
        let mut names = directories.filter(|directory| **directory != *own).flat_map(|directory| {
            DIGITS.map(|digits| ResultName::new(&directory, call.inputs, digits))
        });
        Ok(names.find_map(|name| find(&name)))
    }

    /// Looks for results of other versions anew, the next time.
    pub fn forget_versions(&self, version: ComputationVersion<'_>) {
        self.storage.versions.forget(version);
    }

    /// Looks for results of other versions that may have been published since the last look.
    pub fn refresh_versions(&self, version: ComputationVersion<'_>) {
        self.storage.versions.refresh(&self.storage.root, version);
    }

    /// Whether an execution serves all versions of its tree, isolated or not.
    pub fn trusts_trees(&self) -> bool {
        self.storage.takeover == Takeover::Tree && self.storage.unrecorded == Unrecorded::Adopt
    }

    /// Returns a result under the name of another version, if it is equivalent to a call's.
    fn source(&self, name: &ResultName, call: Call<'_>) -> Result<Option<Equivalent>> {
        let Some(record) = self.storage.records().read::<CallRecord>(&name.record())?.ok() else {
            return Ok(None);
        };
        let theirs = Call { version: record.version(), ..call };
        if !self.serves(&record, call) || !theirs.version.may_be_in(name.directory()) {
            return Ok(None);
        }
        let (outputs, whereabouts) = match self.storage.state(name, theirs)? {
            CallState::Hit(outputs) => (outputs, OutputLocation::Here),
            // Nothing would record that a tree was trusted.
            _ if !record.origin.is_isolated() => return Ok(None),
            CallState::Archived(outputs) => (outputs, OutputLocation::Archived),
            CallState::Away(_, outputs) => (outputs, OutputLocation::Away),
            _ => return Ok(None),
        };
        Ok(Some(Equivalent { outputs, whereabouts, record }))
    }

    /// Lists the version of a result under its tree. A failure only costs executions.
    pub(crate) fn note_version(&self, version: ComputationVersion<'_>, result: &ResultName) {
        let name = note(version.computation, version.tree, result);
        let path = self.storage.path(&name);
        if self.storage.root.first_made(&path) && self.storage.root.place(&name).is_ok() {
            drop(self.storage.root.disk.write(&path, b""));
        }
    }

    /// The name of the file that lists the version of a result under its tree.
    pub fn note_of(&self, result: &ResultName, record: &CallRecord) -> String {
        note(&record.computation, &record.tree, result)
    }

    /// Removes a version without results from the list under its tree.
    pub(crate) fn forget_version(&self, name: &ResultName, record: &CallRecord) -> Result<()> {
        if !self.storage.root.disk.is_empty(&self.storage.path(&name.room_itself(RECORDS)))? {
            return Ok(());
        }
        let note = note(&record.computation, &record.tree, name);
        match self.storage.root.disk.remove(&self.storage.path(&note)) {
            Err(error) if error.is_foreign() => Ok(()),
            removed => removed,
        }
    }

    /// Takes over a result for a call: makes links to its outputs, and a record that names it.
    ///
    /// Returns `None` if it does not exist any more, or cannot be read.
    pub fn take_over(&self, call: Call<'_>, source: &Equivalent) -> Result<Option<Sealed<'a>>> {
        match self.link_source(call, source) {
            Err(error) if error.is_about(&self.storage.path(source.outputs.name.directory())) => {
                Ok(None)
            }
            taken => taken,
        }
    }

    fn link_source(&self, call: Call<'_>, source: &Equivalent) -> Result<Option<Sealed<'a>>> {
        if !self.keeps(source)? {
            return Ok(None);
        }
        let stage = self.storage.stage(source.record.outputs.len())?;
        let from = source.outputs.name.short();
        let Some(origin) = source.record.origin.of_take_over(&stage.name, from) else {
            return Ok(None);
        };
        let mut outputs = Vec::with_capacity(source.record.outputs.len());
        for (number, output) in source.record.outputs.iter().enumerate() {
            let from = source.outputs.name.output(number);
            let Some(output) =
                take_one(self.storage, &from, &waiting(&stage.name, number), output)?
            else {
                return Ok(None);
            };
            if !output.digest.is_directory() {
                self.storage.root.unsynced.note(&stage.output(number));
            }
            outputs.push(output);
        }
        // The log is not necessary.
        let log = self.storage.path(&source.outputs.name.log());
        if self.storage.root.disk.exists(&log).unwrap_or(false) {
            self.storage.root.disk.remove(&stage.log())?;
            match self.storage.root.disk.link_or_copy(&log, &stage.log()) {
                Err(error) if error.may_not_write() || error.is_about(&log) => {
                    self.storage.root.disk.remove(&stage.log())?;
                }
                linked => drop(linked?),
            }
        }
        stage.write_record(&call.record(outputs.clone(), origin))?;
        Ok(Some(Sealed { stage, files: outputs.into() }))
    }
}

impl<'a> Equivalents<'a> {
    /// Whether a result serves all versions of the same tree: its execution could not depend on anything else, or is trusted
    /// not to.
    pub fn serves_tree(&self, record: &CallRecord) -> bool {
        record.origin.is_isolated() || self.trusts_trees() && record.execution().is_some()
    }

    /// Whether a record is of this call, and serves its version.
    fn serves(&self, record: &CallRecord, call: Call<'_>) -> bool {
        self.serves_tree(record)
            && record.computation == *call.version.computation
            && record.tree == *call.version.tree
            && record.inputs == call.inputs
    }

    /// Announces the makers of directories, which become links to them. Returns whether they have
    /// records still: then no collection removes them.
    fn keeps(&self, source: &Equivalent) -> Result<bool> {
        let name = &source.outputs.name;
        for (number, output) in source.record.outputs.iter().enumerate() {
            if output.digest.is_directory() {
                let maker = self.storage.root.maker(&name.output(number))?;
                let Some((maker, ..)) = ResultName::maker(&maker) else { return Ok(false) };
                self.storage.announce_roots([maker.short(), name.short()])?;
                for result in [&maker, name] {
                    if !self.storage.root.disk.exists_anew(&self.storage.path(&result.record()))? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }
}

/// Gives a published value another name. Returns `None` if it is not the published one any more.
///
/// A file is linked to, or copied. A directory gets a symbolic link, since it has only one name.
fn take_one(
    storage: &Storage,
    from: &str,
    to: &str,
    value: &Published,
) -> Result<Option<Published>> {
    let root = &storage.root;
    let (source, place) = (root.path(from), root.path(to));
    if value.digest.is_directory() {
        let target = link_to(to, &root.maker(from)?);
        root.disk.symbolic_link(Path::new(&target), &place)?;
        return Ok(storage.is_published(to, value)?.then_some(*value));
    }
    if root.disk.link(&source, &place).unwrap_or(false) {
        return Ok(storage.is_published(to, value)?.then_some(*value));
    }
    if root.disk.metadata(&source)?.is_none() {
        return Ok(None);
    }
    let digest = root.disk.copy(&source, &place)?;
    let stamp = Stamp::Modified(root.disk.seal(&place)?);
    Ok((digest == value.digest).then_some(Published { digest, stamp }))
}
