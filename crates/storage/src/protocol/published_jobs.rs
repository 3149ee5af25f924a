//! Jobs: the outputs of a whole task, under the commit of the task.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::slice;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize, Serializer};

use super::{InputSource, Storage, Stored, Unrecorded};
use crate::disk::{Result, StorageError};
use crate::paths::{COLLECTED, Entry, RECORDS, ResultName, TaskVersion, link_to, split_member};
use crate::records::{
    Format, JobInput, JobOutput, JobRecord, JobRevision, Provenance, Published, Record, RecordState,
};
use ce_model::digest::{Digest, ObjectId};
use ce_model::name::{InputName, TaskName};

/// A finished job.
#[derive(Debug)]
pub struct Job<'a> {
    pub task: TaskVersion<'a>,
    /// The symbolic names of its inputs, in order.
    pub names: &'a [InputName],
    pub inputs: &'a [Digest],
    /// The literals that its workflow reads.
    pub literals: &'a [Stored],
    /// The ranges of literals that are the files and texts of the commit, or that sheets among its inputs name, as far as they are known.
    pub own: &'a [[usize; 2]],
    /// The ranges of literals that sheets among its inputs name.
    pub named: &'a [[usize; 2]],
    /// The revisions by which it has found commits, other than full commit ids.
    pub revisions: &'a [JobRevision],
    /// Its outputs, in order.
    pub outputs: &'a [Stored],
    /// Whether some of these are known and deliberately not here.
    pub is_away: bool,
    pub calls: Vec<&'a ResultName>,
}

/// The record of a job without the names of its calls, which may be many.
#[derive(Deserialize)]
#[expect(dead_code, reason = "a record without one of these is spoiled")]
struct JobSummary {
    format: Format,
    task: TaskName,
    commit: ObjectId,
    place: Option<String>,
    inputs: Vec<JobInput>,
    literals: Option<Vec<JobOutput>>,
    #[serde(default)]
    own: Vec<[usize; 2]>,
    #[serde(default)]
    revisions: Vec<JobRevision>,
    outputs: Vec<JobOutput>,
    calls: Vec<IgnoredAny>,
    recorded: Option<Provenance>,
}

impl JobSummary {
    /// Whether this is the record of a task's job from these inputs.
    fn is_of(&self, task: TaskVersion<'_>, inputs: &[Digest]) -> bool {
        self.task == *task.name
            && self.commit == *task.commit
            && self.place.is_some()
            && self.place.as_deref() == task.place
            && self.inputs.iter().map(|input| &input.digest).eq(inputs)
    }

    /// The literals that do not come from the commit, if literals are recorded.
    fn literals_that_may_change(&self) -> Option<Vec<&JobOutput>> {
        let literals = self.literals.as_ref()?;
        let mut may_change = vec![true; literals.len()];
        for [begin, end] in &self.own {
            may_change.get_mut(*begin..*end)?.fill(false);
        }
        let literals = literals.iter().zip(may_change).filter(|(_, may_change)| *may_change);
        Some(literals.map(|(literal, _)| literal).collect())
    }
}

impl Job<'_> {
    fn recorded_inputs(&self) -> Vec<JobInput> {
        self.names
            .iter()
            .zip(self.inputs)
            .map(|(name, digest)| JobInput { name: name.clone(), digest: *digest })
            .collect()
    }

    fn recorded(files: &[Stored]) -> Vec<JobOutput> {
        files
            .iter()
            .map(|file| JobOutput { file: file.name.clone(), digest: file.digest })
            .collect()
    }
}

/// The short names of calls, made one by one when they are written.
struct ShortNames<'a>(&'a [&'a ResultName]);

impl Serialize for ShortNames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|call| call.short()))
    }
}

/// Whether a user's input can be read more than once.
fn is_read_again(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() || metadata.is_dir())
}

/// The jobs of a version of a task. A clone of its repository may have stored them under another name: a task at the top of a repository is
/// called like the directory of the clone.
#[derive(Debug)]
pub struct TaskJobs<'a> {
    jobs: Jobs<'a>,
    task: TaskVersion<'a>,
    /// The other names under which there are jobs of this commit, once they were looked for.
    others: OnceCell<Vec<TaskName>>,
}

impl TaskJobs<'_> {
    /// Whether there may be a usable one, whatever its inputs are. Without one, inputs need not be read.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn has_any(&self) -> Result<bool> {
        if self.jobs.storage.unrecorded == Unrecorded::Refuse {
            // The record of a job does not say which calls were adopted.
            return Ok(false);
        }
        Ok(self.jobs.has_records(self.task)? || !self.others()?.is_empty())
    }

    /// Returns the outputs of a job, which are outputs of calls and tables, if the job is done, they all exist as recorded, and its
    /// revisions name the same commits, which a function tells. The outputs of other calls are not checked.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn find(
        &self,
        inputs: &[Digest],
        names_commit: &dyn Fn(&JobRevision) -> bool,
    ) -> Result<Option<Vec<JobOutput>>> {
        if let Some(found) = self.jobs.find(self.task, inputs, names_commit)? {
            return Ok(Some(found));
        }
        for name in self.others()? {
            let task = TaskVersion { name, ..self.task };
            if let Some(found) = self.jobs.find(task, inputs, names_commit)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn others(&self) -> Result<&[TaskName]> {
        if let Some(known) = self.others.get() {
            return Ok(known);
        }
        let mut others = Vec::new();
        if self.task.place == Some("") {
            for directory in self.jobs.storage.root.own_names("")? {
                let name = directory.strip_prefix("t_").and_then(|name| name.parse().ok());
                if let Some(name) = name.filter(|name| name != self.task.name)
                    && self.jobs.has_records(TaskVersion { name: &name, ..self.task })?
                {
                    others.push(name);
                }
            }
        }
        Ok(self.others.get_or_init(|| others))
    }
}

/// The jobs of a storage.
#[derive(Clone, Copy, Debug)]
pub struct Jobs<'a> {
    storage: &'a Storage,
}

impl<'a> Jobs<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Returns the digests of inputs, with which a job is found. `None` if an input can be read only once.
    pub fn inputs(&self, inputs: &[InputSource]) -> Result<Option<Vec<Digest>>> {
        let files: Vec<PathBuf> = InputSource::files(inputs.iter()).collect();
        self.storage
            .hasher
            .look_together(&files, || inputs.iter().map(|input| self.input(input)).collect())
    }

    /// The jobs of a version of a task.
    pub const fn of(self, task: TaskVersion<'a>) -> TaskJobs<'a> {
        TaskJobs { jobs: self, task, others: OnceCell::new() }
    }

    /// Whether there are records of jobs of a task at this commit.
    fn has_records(&self, task: TaskVersion<'_>) -> Result<bool> {
        for directory in task.directories() {
            let records = self.storage.path(&format!("{directory}/{RECORDS}"));
            if self.storage.root.disk.exists(&records)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the digest of an input, unless it can be read only once.
    fn input(&self, input: &InputSource) -> Result<Option<Digest>> {
        let hasher = &self.storage.hasher;
        Ok(match input {
            InputSource::Bytes(contents) => Some(Digest::hash_bytes(contents)),
            InputSource::File(path) => match hasher.small_digest_of(path) {
                Some(digest) => Some(digest),
                None if is_read_again(path) => Some(hasher.read_to_digest(path)?),
                // A pipe can be read only once, and not here.
                None => None,
            },
        })
    }

    /// Returns the outputs of a job that is stored under this name of its task.
    fn find(
        &self,
        task: TaskVersion<'_>,
        inputs: &[Digest],
        names_commit: &dyn Fn(&JobRevision) -> bool,
    ) -> Result<Option<Vec<JobOutput>>> {
        for name in task.names(inputs) {
            if let RecordState::Valid(record) =
                self.storage.records().read::<JobSummary>(&name.record())?
                && record.is_of(task, inputs)
                && record.revisions.iter().all(names_commit)
                && self.has_literals(record.literals_that_may_change())?
                && !self.has_revoked_call(&name)?
            {
                return self.outputs_there(record.outputs);
            }
        }
        Ok(None)
    }

    /// Whether any outputs of a call of a job are revoked: its record does not say which ones it was made from.
    fn has_revoked_call(&self, job: &ResultName) -> Result<bool> {
        let revoked = self.storage.revocations().index()?;
        if revoked.is_empty() {
            return Ok(false);
        }
        let record = self.storage.records().read::<JobRecord>(&job.record())?.ok();
        let Some(JobRecord { calls, .. }) = record else { return Ok(false) };
        let entries: Vec<Entry> = calls.iter().filter_map(|call| Entry::of_short(call)).collect();
        let here = revoked.revoked_among(self.storage, &entries)?;
        Ok(revoked.first_of(&calls, &here).is_some())
    }

    /// Whether the literals of a job are recorded, and have the same contents still.
    fn has_literals(&self, literals: Option<Vec<&JobOutput>>) -> Result<bool> {
        let Some(mut literals) = literals else { return Ok(false) };
        // The number of open directories is limited, so files of one directory are taken together.
        literals.sort_unstable_by_key(|literal| &literal.file);
        let files: Vec<PathBuf> = literals.iter().map(|it| self.storage.path(&it.file)).collect();
        self.storage.hasher.look_together(&files, || {
            for JobOutput { file, digest } in literals {
                if self.storage.inputs().literal(file)?.is_none_or(|it| it.digest != *digest) {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    /// Returns these files, if they are all outputs of calls or tables, as recorded there.
    fn outputs_there(&self, outputs: Vec<JobOutput>) -> Result<Option<Vec<JobOutput>>> {
        for JobOutput { file, digest } in &outputs {
            match self.published(file)? {
                Some(known) if self.has(file, &known, digest)? => {}
                _ => return Ok(None),
            }
        }
        Ok(Some(outputs))
    }

    /// Returns an output of a call or table as it is recorded.
    fn published(&self, file: &str) -> Result<Option<Published>> {
        let Some(entry) = Entry::of_file(file) else { return Ok(None) };
        if matches!(entry, Entry::Job(_) | Entry::TaskInput(_)) {
            return Ok(None);
        }
        let record = self.storage.records().read_entry(&entry)?.ok();
        let outputs = match record.filter(|record| entry.fits(record)) {
            Some(Record::Call(call)) => call.outputs,
            Some(Record::Table(table)) => table.outputs,
            _ => return Ok(None),
        };
        let value = split_member(file).0;
        Ok((0..outputs.len()).find(|number| entry.file(*number) == value).map(|it| outputs[it]))
    }

    /// Whether a published value, or a member of it, is there with this digest.
    fn has(&self, file: &str, published: &Published, digest: &Digest) -> Result<bool> {
        let (value, member) = split_member(file);
        if !self.storage.values().is_published(value, published)? {
            return Ok(false);
        }
        let Some(member) = member else { return Ok(published.digest == *digest) };
        let manifest = self.storage.values().manifest(value, &published.digest)?;
        let found = manifest.and_then(|it| it.member(member.as_bytes()).ok()?);
        Ok(found.is_some_and(|found| found.digest == *digest))
    }

    /// Stores the outputs of a job under its own name, with its record. Returns that name.
    ///
    /// The outputs are links to files of the storage.
    pub fn publish(&self, job: &Job<'_>) -> Result<ResultName> {
        let inputs = job.recorded_inputs();
        let outputs = Job::recorded(job.outputs);
        let literals = Job::recorded(job.literals);
        let names = job.task.names(job.inputs);
        for name in &names {
            match self.storage.records().read::<JobSummary>(&name.record())? {
                // A record without the path of its task may be of another task, unless it has the
                // same outputs.
                RecordState::Valid(known)
                    if known.inputs != inputs
                        || known.commit != *job.task.commit
                        || known.place.is_some() && known.place.as_deref() != job.task.place
                        || known.place.is_none() && known.outputs != outputs =>
                {
                    continue;
                }
                RecordState::Valid(known)
                    if known.outputs == outputs
                        && known.revisions == job.revisions
                        && known.literals.as_ref().is_none_or(|known| *known == literals) =>
                {
                    self.link_outputs(name, &outputs, job.is_away)?;
                }
                RecordState::Valid(_) | RecordState::Spoiled | RecordState::Absent => {
                    self.link_outputs(name, &outputs, job.is_away)?;
                    let named = inputs.iter().map(|it| &it.digest);
                    let named = named.chain(outputs.iter().chain(&literals).map(|it| &it.digest));
                    let format = match job.revisions {
                        [] => Format::for_values(named),
                        [..] => Format::REVISIONS,
                    };
                    let record = JobRecord {
                        format,
                        task: job.task.name.clone(),
                        commit: job.task.commit.clone(),
                        place: job.task.place.map(str::to_owned),
                        inputs,
                        literals: Some(literals),
                        own: job.own.to_vec(),
                        named: job.named.to_vec(),
                        revisions: job.revisions.to_vec(),
                        outputs,
                        calls: ShortNames(&job.calls),
                        recorded: Some(Provenance::now()),
                    };
                    self.storage.records().put_long(&name.record(), &record)?;
                    let tombstone = self.storage.path(&name.record_in(COLLECTED));
                    self.storage.root.disk.remove(&tombstone)?;
                }
            }
            return Ok(name.clone());
        }
        let last = names.last().map(ResultName::record).unwrap_or_default();
        Err(StorageError::Collision(self.storage.path(&last)))
    }

    /// Links outputs of a recorded job that are here now. Only outputs of calls and tables are linked.
    pub fn link(&self, name: &ResultName, record: &JobRecord) -> Result<()> {
        let mut is_away = false;
        for (number, output) in record.outputs.iter().enumerate() {
            let is_known = self.are_known(slice::from_ref(output))?;
            if is_known && self.storage.has(&output.file)? {
                self.link_output(name, number, output)?;
            } else {
                is_away = true;
            }
        }
        if is_away { Ok(()) } else { self.storage.evictions().unmark_away(name) }
    }

    /// Links the outputs that are here. A job that lacks outputs is marked before.
    fn link_outputs(&self, name: &ResultName, outputs: &[JobOutput], is_away: bool) -> Result<()> {
        if is_away {
            self.storage.evictions().mark_away(name)?;
        }
        for (number, output) in outputs.iter().enumerate() {
            if !is_away || self.storage.has(&output.file)? {
                self.link_output(name, number, output)?;
            }
        }
        if is_away { Ok(()) } else { self.storage.evictions().unmark_away(name) }
    }

    fn link_output(&self, name: &ResultName, number: usize, output: &JobOutput) -> Result<()> {
        let (disk, JobOutput { file, digest }) = (&self.storage.root.disk, output);
        let place = self.storage.root.place(&name.output(number))?;
        if digest.is_directory() {
            self.link_directory(name, number, file)?;
            self.storage.root.unsynced.note_entry(&place);
            return Ok(());
        }
        let from = self.storage.path(file);
        // If the link fails for another reason, a copy may succeed.
        let linked = disk.link(&from, &place).unwrap_or(false)
            || disk.id(&place)?.is_some_and(|place| disk.id(&from).ok() == Some(Some(place)));
        if !linked && !self.is_the_output(&place, digest)? {
            if disk.metadata(&place)?.is_some_and(|it| it.is_dir()) {
                self.set_aside(name, number, &place)?;
            }
            self.replace(&from, &place)?;
        }
        self.storage.root.unsynced.note_new(&place);
        Ok(())
    }

    /// Whether these files are known: outputs of calls with these digests, which are here or away.
    pub(super) fn are_known(&self, outputs: &[JobOutput]) -> Result<bool> {
        for JobOutput { file, digest } in outputs {
            let (value, member) = split_member(file);
            let Some(known) = self.published(file)? else { return Ok(false) };
            let is_away = match ResultName::of_output(value) {
                Some(result) => self.storage.evictions().is_marked_away(&result)?,
                None => false,
            };
            // The former contents of a directory that is away may not be known here.
            let is_it = known.digest == *digest || member.is_some() && is_away;
            if !is_it || !is_away && !self.has(file, &known, digest)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes a symbolic link to a directory. Another link in its place is replaced; anything else goes to
    /// quarantine.
    fn link_directory(&self, job: &ResultName, number: usize, output: &str) -> Result<()> {
        let root = &self.storage.root;
        let name = job.output(number);
        let (place, target) = (root.path(&name), link_to(&name, &root.maker(output)?));
        match root.disk.link_target(&place)? {
            Some(found) if *found == *target => return Ok(()),
            Some(_) => {}
            None if root.disk.exists(&place)? => self.set_aside(job, number, &place)?,
            None => {}
        }
        let link = root.private_path()?;
        root.disk.symbolic_link(Path::new(&target), &link)?;
        root.disk.rename(&link, &place).map(drop)
    }

    fn set_aside(&self, job: &ResultName, number: usize, place: &Path) -> Result<()> {
        let root = &self.storage.root;
        let part = format!("{number:02}");
        root.disk.quarantine(place, &root.quarantine_place(&job.quarantine(), &part)?)
    }

    fn is_the_output(&self, place: &Path, digest: &Digest) -> Result<bool> {
        let disk = &self.storage.root.disk;
        let metadata = disk.metadata(place)?;
        let same_size = metadata.is_some_and(|it| it.is_file() && it.len() == digest.size);
        Ok(same_size && disk.digest(place)? == *digest)
    }

    /// Replaces a file by a link to, or a copy of, a stored file: the name promises its contents.
    fn replace(&self, from: &Path, place: &Path) -> Result<()> {
        let disk = &self.storage.root.disk;
        let copy = self.storage.root.private_path()?;
        if !disk.link(from, &copy).unwrap_or(false) {
            disk.copy(from, &copy)?;
            disk.seal(&copy)?;
        }
        disk.rename(&copy, place).map(drop)
    }
}
