//! What a paper needs to name a result.

use std::cmp::Reverse;
use std::path::Path;

use jiff::Timestamp;

use super::{FileMaker, OutputNames};
use crate::{History, Subject};
use ce_git::{Config, ConfigError, Snapshot};
use ce_model::digest::Digest;
use ce_storage::records::CallRecord;
use ce_storage::{Entry, Record, Storage, StorageError};

/// What a paper needs to name a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Citation {
    /// What it is an output of: `task arith`, `computation add`, `a table of points`; `None` of a task input.
    pub maker: Option<String>,
    /// The name of the output, or its number if the name is not known.
    pub output: String,
    /// The commit of the task or the computation, in full.
    pub commit: Option<String>,
    /// The computation had uncommitted changes.
    pub dirty: bool,
    /// The URL of the repository that has the commit, without a password.
    pub repository: Option<String>,
    /// The inputs: their names, or else their numbers.
    pub inputs: Vec<(String, Digest)>,
    /// The digest of the file.
    pub digest: Digest,
    /// The version of CompEval that has recorded it, or else of this one.
    pub compeval: String,
    /// When it was executed, or else recorded, if that is known.
    pub at: Option<Timestamp>,
    /// The repository of results that is configured, without a password.
    pub results: Option<String>,
}

impl Citation {
    /// Describes a file. An output of a call that is that of a job, too, is described as the newest such job's.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn of(
        storage: &Storage,
        history: &History,
        file: Subject<'_>,
    ) -> Result<Self, StorageError> {
        let subject = job_output(history, file).unwrap_or(file);
        let made = FileMaker::of(storage, history, subject)?;
        let output = match subject.record {
            Record::Job(_) => {
                history.parents(storage, subject)?.into_iter().find_map(|it| it.subject)
            }
            _ => Some(subject),
        };
        let output = output.unwrap_or(subject);
        let output = OutputNames::new(storage).of(output, output.number);
        let (maker, commit, inputs, recorded) = match subject.record {
            Record::Job(job) => {
                let inputs = job.inputs.iter().map(|it| (it.name.to_string(), it.digest));
                let maker = format!("task {}", job.task);
                (Some(maker), Some(&job.commit), inputs.collect(), job.recorded.as_ref())
            }
            Record::Call(call) => {
                let maker = format!("computation {}", call.computation);
                let inputs = inputs(storage, subject.entry, call);
                (Some(maker), Some(&call.commit), inputs, call.recorded.as_ref())
            }
            Record::Table(table) => {
                (Some("a sweep".to_owned()), None, Vec::new(), table.recorded.as_ref())
            }
            Record::TaskInput(input) => (None, None, Vec::new(), Some(&input.recorded)),
        };
        let (at, dirty) = match made {
            FileMaker::Call { at, dirty, .. } => (at, dirty),
            FileMaker::Table | FileMaker::TaskInput | FileMaker::Unknown => (None, false),
        };
        let own = || env!("CARGO_PKG_VERSION").to_owned();
        Ok(Self {
            maker,
            output: output.trim_end_matches('/').to_owned(),
            commit: commit.map(|it| it.full().to_owned()),
            dirty,
            repository: None,
            inputs,
            digest: file.promise.digest,
            compeval: recorded.map_or_else(own, |it| it.compeval.clone()),
            at: at.or(recorded.map(|it| it.at)),
            results: None,
        })
    }

    /// Adds what the repository says that a directory is in: its own URL if it has the commit, and that of results. A
    /// directory that is in none says nothing.
    ///
    /// # Errors
    ///
    /// Fails if a setting is wrong.
    pub fn with_repository(mut self, dir: &Path) -> Result<Self, ConfigError> {
        let Ok(config) = Config::of(dir) else { return Ok(self) };
        let has = |commit: &String| Snapshot::open(dir, commit).is_ok();
        self.repository = config.origin().filter(|_| self.commit.as_ref().is_some_and(has));
        self.results = config.shown_results()?;
        Ok(self)
    }

    /// What the result is, in words.
    pub fn title(&self) -> String {
        match &self.maker {
            Some(maker) => format!("Output {} of {maker}", self.output),
            None => "A task input".to_owned(),
        }
    }
}

/// The output of the newest job that is this file.
fn job_output<'a>(history: &'a History, file: Subject<'_>) -> Option<Subject<'a>> {
    let jobs = history.results().iter().filter_map(|(entry, record)| match record {
        Record::Job(job) => Some((entry, job)),
        Record::Call(_) | Record::Table(_) | Record::TaskInput(_) => None,
    });
    let outputs = jobs.filter_map(|(entry, job)| {
        let number = job.outputs.iter().position(|it| it.file == file.promise.name)?;
        Some((Reverse(job.recorded.as_ref().map(|it| it.at)), entry.file(number)))
    });
    history.subject(&outputs.min()?.1)
}

/// The inputs of a call, with their names in the computation, or their numbers.
fn inputs(storage: &Storage, entry: &Entry, call: &CallRecord) -> Vec<(String, Digest)> {
    let names = match entry {
        Entry::Call(name) => storage.input_names(name),
        Entry::Job(_) | Entry::Table(_) | Entry::TaskInput(_) => None,
    };
    let names = names.filter(|names| names.len() == call.inputs.len());
    let name = |at: usize| names.as_ref().map_or_else(|| format!("{at:02}"), |it| it[at].clone());
    call.inputs.iter().enumerate().map(|(at, digest)| (name(at), *digest)).collect()
}
