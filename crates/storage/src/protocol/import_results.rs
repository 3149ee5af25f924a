//! Results from elsewhere: they are published like results of an execution, but nothing was executed here.

use super::call_lookup::{Call, Found, Outputs};
use super::stored_values::{SharedContents, SharedValue};
use super::{Job, Precedence, PublishError, Sealed, Stage, Storage, Stored};
use crate::disk::{Result, StorageError};
use crate::paths::{DIGITS, ResultName, is_users_file, task_input};
use crate::records::{
    CallRecord, ExpectedFile, JobOutput, JobRecord, LongText, Origin, Published, SharedOrigin,
    Stamp, TableRecord,
};
use ce_model::digest::Digest;

/// The outcome of importing a result from elsewhere.
#[derive(Debug)]
pub enum Import<T> {
    /// It can be published, or was.
    New(T),
    /// It is here already.
    Known,
    /// Another result has its place here, and stays.
    Differs,
    /// Its files are not as its record says.
    Damaged,
}

/// A call from elsewhere, whose outputs are in a stage.
#[derive(Debug)]
pub struct ImportedCall<'a> {
    record: CallRecord,
    name: ResultName,
    sealed: Sealed<'a>,
}

/// A call from elsewhere whose outputs stay there. It is marked as away.
#[derive(Debug)]
pub struct AwayCall<'a> {
    storage: &'a Storage,
    record: CallRecord,
    name: ResultName,
}

/// A file that a job from elsewhere names, and that is not here as the job names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPart {
    /// Its name, relative to the storage.
    pub file: String,
    /// Whether the name has other contents here.
    pub is_other: bool,
}

/// The location of the outputs of a job from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOutputs {
    /// All of them are here.
    Here,
    /// Some of them are away.
    Away,
}

/// Publication of results from elsewhere: calls, literals, jobs and tables.
#[derive(Clone, Copy, Debug)]
pub struct Importer<'a> {
    storage: &'a Storage,
}

impl<'a> Importer<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Marks a call from elsewhere as away, whose outputs stay there. It may be published when that is durable, after the next
    /// [`flush`](Storage::flush).
    pub fn mark_import(&self, record: &CallRecord) -> Result<Import<AwayCall<'a>>> {
        let Origin::Shared(shared) = &record.origin else { return Ok(Import::Damaged) };
        let digests: Vec<Digest> = record.outputs.iter().map(|it| it.digest).collect();
        let names = names(&digests);
        let call = Call { version: record.version(), inputs: &record.inputs, outputs: &names };
        let name = match self.storage.calls().find(call)? {
            Found::Hit(found) | Found::Away(found) | Found::Archived(found) => {
                return Ok(compared(&found, &digests));
            }
            Found::Unsettled(_) => return Ok(Import::Differs),
            Found::Absent { name, .. } => name,
        };
        self.storage.gc_roots().announce([name.short()])?;
        self.storage.evictions().mark_away(&name)?;
        let origin = Origin::Shared(SharedOrigin { stage: None, ..shared.clone() });
        let record = call.record(
            digests
                .iter()
                .map(|digest| Published { digest: *digest, stamp: Stamp::Unknown })
                .collect(),
            origin,
        );
        Ok(Import::New(AwayCall { storage: self.storage, record, name }))
    }

    /// Writes the outputs and the log of a call from elsewhere into a stage. A directory is given as an archive. They
    /// are durable after the next [`flush`](Storage::flush), and may be published then.
    pub fn stage_import(
        &self,
        record: &CallRecord,
        outputs: &[SharedContents],
        log: &[u8],
    ) -> Result<Import<ImportedCall<'a>>> {
        let Origin::Shared(shared) = &record.origin else { return Ok(Import::Damaged) };
        let digests: Vec<Digest> = record.outputs.iter().map(|it| it.digest).collect();
        let values = outputs.iter().zip(&digests);
        let values: Option<Vec<_>> =
            values.map(|(it, digest)| SharedValue::of_shared(it, digest)).collect();
        let Some(values) = values.filter(|_| outputs.len() == digests.len()) else {
            return Ok(Import::Damaged);
        };
        let names = names(&digests);
        let call = Call { version: record.version(), inputs: &record.inputs, outputs: &names };
        let name = match self.storage.calls().find(call)? {
            Found::Hit(found) | Found::Archived(found) => return Ok(compared(&found, &digests)),
            // A call that is away is brought back, if its outputs are the same.
            Found::Away(found) if has(&found, &digests) => found.name,
            Found::Away(_) | Found::Unsettled(_) => return Ok(Import::Differs),
            Found::Absent { name, .. } => name,
        };
        self.storage.gc_roots().announce([name.short()])?;
        let stage = Stage::new(self.storage, outputs.len())?;
        let mut files = Vec::with_capacity(outputs.len());
        for ((path, value), digest) in stage.outputs().zip(&values).zip(&digests) {
            let Some(file) = self.storage.values().write_shared(&path, value, digest)? else {
                return Ok(Import::Damaged);
            };
            self.storage.root.unsynced.note(&path);
            files.push(file);
        }
        self.storage.root.disk.remove(&stage.log())?;
        self.storage.root.disk.write(&stage.log(), log)?;
        let shared = SharedOrigin { stage: Some(stage.name.clone()), ..shared.clone() };
        let own = call.record(files.clone(), Origin::Shared(shared));
        stage.write_record(&own)?;
        let sealed = Sealed { stage, files: files.into() };
        Ok(Import::New(ImportedCall { record: own, name, sealed }))
    }

    /// Puts a literal of a job from elsewhere into its place, if nothing is there.
    pub fn import_literal(&self, file: &ExpectedFile, contents: &[u8]) -> Result<Import<()>> {
        let Some(value) = SharedValue::parse(contents, &file.digest) else {
            return Ok(Import::Damaged);
        };
        if !is_users_file(&file.name) {
            return Ok(Import::Damaged);
        }
        let private = self.storage.root.private_path()?;
        if !self.storage.values().write_literal(&private, &value, &file.digest)? {
            self.storage.root.disk.remove_tree(&private)?;
            return Ok(Import::Damaged);
        }
        let place = self.storage.root.place(&file.name)?;
        if self.storage.root.disk.rename_new(&private, &place)? {
            self.storage.root.unsynced.note_entry(&place);
            return Ok(Import::New(()));
        }
        self.storage.root.disk.remove_tree(&private)?;
        let there = self.storage.inputs().literal(&file.name)?;
        let is_same = there.is_some_and(|there| there.digest == file.digest);
        Ok(if is_same { Import::Known } else { Import::Differs })
    }

    /// Stores an output of a job from elsewhere that is one of its task inputs, texts, files or trees. It is named by
    /// its contents.
    pub fn import_input(&self, file: &ExpectedFile, contents: &[u8]) -> Result<Import<()>> {
        let Some(value) = SharedValue::parse(contents, &file.digest) else {
            return Ok(Import::Damaged);
        };
        let inputs = self.storage.inputs();
        if inputs.expected(file.digest)?.1 {
            return Ok(Import::Known);
        }
        let stored = inputs.publish(|copy| {
            let written = self.storage.values().write_shared(copy, &value, &file.digest)?;
            written.map(|it| it.digest).ok_or_else(|| StorageError::Moved(copy.to_owned()))
        })?;
        // The names of others may have more digits here.
        Ok(if stored.file.name == file.name { Import::New(()) } else { Import::Differs })
    }

    /// Whether contents from elsewhere match a task input.
    pub fn accepts_input(&self, file: &ExpectedFile, contents: &[u8]) -> bool {
        SharedValue::parse(contents, &file.digest).is_some()
    }

    /// Whether contents from elsewhere could be put into the place of a literal: they are the recorded ones, and nothing is there.
    pub fn accepts_literal(&self, file: &ExpectedFile, contents: &[u8]) -> Result<bool> {
        let is_recorded = SharedValue::parse(contents, &file.digest).is_some();
        Ok(is_recorded && !self.storage.root.disk.exists(&self.storage.root.path(&file.name))?)
    }

    /// Publishes a job from elsewhere, or returns the files that it lacks here.
    pub fn import_job(&self, record: &JobRecord) -> Result<std::result::Result<(), MissingPart>> {
        let outputs = match self.check_job(record, &|_| false)? {
            Ok(outputs) => outputs,
            Err(missing) => return Ok(Err(missing)),
        };
        let calls: Vec<ResultName> =
            record.calls.iter().filter_map(|call| ResultName::of_short(call)).collect();
        let (names, inputs): (Vec<_>, Vec<_>) =
            record.inputs.iter().map(|it| (it.name.clone(), it.digest)).unzip();
        self.storage.jobs().publish(&Job {
            task: record.version(),
            names: &names,
            inputs: &inputs,
            literals: &unstamped(record.literals.as_deref().unwrap_or_default()),
            own: &[],
            named: &record.named,
            revisions: &record.revisions,
            outputs: &unstamped(&record.outputs),
            is_away: outputs == JobOutputs::Away,
            calls: calls.iter().collect(),
        })?;
        Ok(Ok(()))
    }

    /// Checks that everything is here that a job from elsewhere needs, except for files that are `coming`. Task inputs may be missing, and so
    /// may files and trees of the task's repository, which have such names: a run makes them again.
    pub fn check_job(
        &self,
        record: &JobRecord,
        coming: &dyn Fn(&str) -> bool,
    ) -> Result<std::result::Result<JobOutputs, MissingPart>> {
        if let Some(call) = record.calls.iter().find(|it| ResultName::of_short(it).is_none()) {
            return Ok(Err(MissingPart { file: call.clone(), is_other: false }));
        }
        let needed = |files: &[JobOutput]| -> Vec<JobOutput> {
            files.iter().filter(|it| !coming(&it.file)).cloned().collect()
        };
        let mut literals = needed(record.literals.as_deref().unwrap_or_default());
        literals.retain(|it| !DIGITS.into_iter().any(|to| task_input(&it.digest, to) == it.file));
        if let Some(missing) = self.first_missing(&literals)? {
            return Ok(Err(missing));
        }
        let outputs = needed(&record.outputs);
        Ok(match self.first_missing(&outputs)? {
            None => Ok(JobOutputs::Here),
            Some(_) if self.storage.jobs().are_known(&outputs)? => Ok(JobOutputs::Away),
            Some(missing) => Err(missing),
        })
    }

    /// Publishes a table from elsewhere.
    pub fn import_table(
        &self,
        record: &TableRecord,
        table: &[u8],
        recipe: Vec<u8>,
    ) -> Result<Import<()>> {
        let (recipe, table) = (LongText::of_bytes(recipe), LongText::of_bytes(table));
        let is_recorded = *recipe.digest() == record.recipe.digest
            && record.outputs.iter().map(|it| it.digest).eq([*table.digest()]);
        if !is_recorded {
            return Ok(Import::Damaged);
        }
        let published = self.storage.tables().publish(&recipe, &table, None)?;
        Ok(match compared(&published, &[*table.digest()]) {
            Import::Known => Import::New(()),
            other => other,
        })
    }

    /// The first of these files that is not here with the recorded contents.
    fn first_missing(&self, files: &[JobOutput]) -> Result<Option<MissingPart>> {
        for JobOutput { file, digest } in files {
            let found = self.storage.inputs().literal(file)?;
            if found.as_ref().is_none_or(|it| it.digest != *digest) {
                return Ok(Some(MissingPart { file: file.clone(), is_other: found.is_some() }));
            }
        }
        Ok(None)
    }
}

impl AwayCall<'_> {
    /// Makes the call known.
    pub fn publish(self) -> Result<Import<()>> {
        let Self { storage, record, name } = self;
        let is_new = storage.records().put_new(&name.record(), &record)?;
        storage.calls().note_published(&name);
        if is_new {
            storage.equivalents().note_version(record.version(), &name);
            return Ok(Import::New(()));
        }
        // Another run was faster.
        let known = storage.records().read::<CallRecord>(&name.record())?.ok();
        let is_same = known.is_some_and(|it| it.inputs == record.inputs && has_same(&it, &record));
        Ok(if is_same { Import::Known } else { Import::Differs })
    }
}

/// Whether two records have the same outputs.
fn has_same(one: &CallRecord, other: &CallRecord) -> bool {
    let [one, other] = [one, other].map(|it| it.outputs.iter().map(|output| output.digest));
    one.eq(other)
}

impl ImportedCall<'_> {
    /// Makes the call visible.
    pub fn publish(self) -> Result<Import<()>> {
        let Self { record, name, sealed } = self;
        let digests: Vec<Digest> = record.outputs.iter().map(|it| it.digest).collect();
        let names = names(&digests);
        let call = Call { version: record.version(), inputs: &record.inputs, outputs: &names };
        let published = match sealed.publish(call, &name, Precedence::Recorded) {
            Ok(published) => published,
            Err(PublishError::Storage(error)) => return Err(error),
            Err(_) => return Ok(Import::Differs),
        };
        Ok(match compared(&published, &digests) {
            Import::Known => Import::New(()),
            other => other,
        })
    }
}

/// Values without a known stamp.
fn unstamped(files: &[JobOutput]) -> Vec<Stored> {
    files
        .iter()
        .map(|it| Stored { name: it.file.clone(), digest: it.digest, stamp: Stamp::Unknown })
        .collect()
}

/// Names of outputs with these digests, which distinguish files from directories.
fn names(digests: &[Digest]) -> Vec<String> {
    digests.iter().map(|it| if it.is_directory() { "/" } else { "" }.to_owned()).collect()
}

/// Whether the outputs here are equal to these.
fn compared<T>(found: &Outputs, digests: &[Digest]) -> Import<T> {
    if has(found, digests) { Import::Known } else { Import::Differs }
}

/// Whether outputs have these digests.
fn has(found: &Outputs, digests: &[Digest]) -> bool {
    found.files.iter().map(|it| it.digest).eq(digests.iter().copied())
}
