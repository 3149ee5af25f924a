//! The numbers that calls, tables and task inputs have on a page, by which its values refer to their makers.

use std::collections::HashMap;

use serde::Serialize;

use super::{PageShape, TaskScope};
use crate::digest::Digest;
use crate::evaluate::Evaluation;
use crate::plan::CallId;
use crate::questions::history::{History, Subject};
use crate::storage::records::JobRecord;
use crate::storage::{Entry, Record, ResultName, Storage};

/// What made a value: a call, a table or a task input, by its number on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueOrigin {
    /// A task input.
    Input(usize),
    /// A call.
    Call(usize),
    /// A table.
    Table(usize),
}

/// A file or directory that was read or made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PageValue {
    /// The name of the input or output in the computation, or its number.
    pub name: String,
    /// Its name in the storage, if it is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its SHA-1.
    pub sha1: String,
    /// Its size in bytes.
    pub size: u64,
    /// What made it, if that is on the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<ValueOrigin>,
    /// The name of the task input that it is in a job with its reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Its number among the outputs of that.
    #[serde(skip)]
    pub(super) number: usize,
}

/// A task input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PageInput {
    /// Its name in the storage.
    pub file: String,
    /// Its SHA-1.
    pub sha1: String,
    /// Its size in bytes.
    pub size: u64,
}

/// The name of the input of a job with some contents.
pub(super) fn role_in(job: &JobRecord, digest: &Digest) -> Option<String> {
    let input = job.inputs.iter().find(|input| input.digest == *digest)?;
    Some(input.name.to_string())
}

/// The short name of a call of a task. One whose inputs are not all known has no name yet: it has its number.
pub(super) fn name_of(evaluation: &Evaluation, call: CallId) -> Option<String> {
    let outcome = evaluation.outcome(call)?;
    let mut inputs = evaluation.plan.inputs(call).iter();
    Some(match outcome.known().is_some() || inputs.all(|it| evaluation.digest(*it).is_some()) {
        true => outcome.name().short(),
        false => format!("call {} of the task", call.index()),
    })
}

/// See the module.
#[derive(Debug)]
pub(super) struct PageIndex<'a> {
    storage: &'a Storage,
    history: &'a History,
    calls: HashMap<String, usize>,
    tables: HashMap<String, usize>,
    inputs: Vec<PageInput>,
    numbers_of_inputs: HashMap<String, usize>,
    /// The jobs that have a call, by its short name.
    jobs: HashMap<&'a str, Vec<&'a JobRecord>>,
    /// The names of the inputs and the outputs of a computation, by the directory of the version.
    names: HashMap<String, [Option<Vec<String>>; 2]>,
}

impl<'a> PageIndex<'a> {
    pub(super) fn new(storage: &'a Storage, history: &'a History) -> Self {
        let mut jobs: HashMap<&str, Vec<&JobRecord>> = HashMap::new();
        for (_, record) in history.results() {
            let Record::Job(job) = record else { continue };
            for call in &job.calls {
                jobs.entry(call).or_default().push(job);
            }
        }
        let (calls, tables, numbers_of_inputs, names) = Default::default();
        let inputs = Vec::new();
        Self { storage, history, calls, tables, inputs, numbers_of_inputs, jobs, names }
    }

    /// Gives calls their numbers.
    pub(super) fn number_calls<'n>(&mut self, names: impl Iterator<Item = &'n String>) {
        self.calls = names.enumerate().map(|(at, name)| (name.clone(), at)).collect();
    }

    /// Gives tables their numbers.
    pub(super) fn number_tables(&mut self, names: impl Iterator<Item = String>) {
        self.tables = names.enumerate().map(|(at, name)| (name, at)).collect();
    }

    /// The number of a call.
    pub(super) fn call(&self, name: &str) -> Option<usize> {
        self.calls.get(name).copied()
    }

    /// The inputs that were asked for.
    pub(super) fn inputs(self) -> Vec<PageInput> {
        self.inputs
    }

    /// The name that an input of a call has as a task input, in the first job that has both.
    pub(super) fn role(&self, call: &str, digest: &Digest) -> Option<String> {
        self.jobs.get(call)?.iter().find_map(|job| role_in(job, digest))
    }

    /// The recorded result with this short name.
    pub(super) fn subject(&self, name: &str) -> Option<Subject<'a>> {
        self.history.subject(&Entry::of_short(name)?.file(0))
    }

    /// A value with this name in the storage, or else the first recorded one with its contents.
    pub(super) fn value(&mut self, name: String, file: &str, digest: &Digest) -> PageValue {
        let subject = self.history.recorded(file, digest);
        let number = subject.map_or(0, |subject| subject.number);
        let from = subject.and_then(|subject| self.origin(subject));
        let file = match subject {
            // A member of a directory has a name that is longer.
            Some(subject) if !file.starts_with(&subject.promise.name) => {
                Some(subject.promise.name.clone())
            }
            _ => Some(file.to_owned()).filter(|file| !file.is_empty()),
        };
        let (sha1, size) = (digest.sha1.full(), digest.total());
        PageValue { name, file, sha1, size, from, role: None, number }
    }

    /// What made a recorded file.
    fn origin(&mut self, subject: Subject<'a>) -> Option<ValueOrigin> {
        match (subject.entry, subject.record) {
            (Entry::Call(name), _) => self.call(&name.short()).map(ValueOrigin::Call),
            (Entry::Table(name), _) => {
                self.tables.get(&name.short()).copied().map(ValueOrigin::Table)
            }
            (Entry::TaskInput(_), _) => Some(ValueOrigin::Input(self.number_of_input(subject))),
            (Entry::Job(_), Record::Job(job)) => {
                let output = job.outputs.get(subject.number)?;
                let maker = self.history.recorded(&output.file, &output.digest)?;
                match maker.entry {
                    Entry::Job(_) => None,
                    _ => self.origin(maker),
                }
            }
            (Entry::Job(_), _) => None,
        }
    }

    fn number_of_input(&mut self, subject: Subject<'_>) -> usize {
        let file = &subject.promise.name;
        if let Some(number) = self.numbers_of_inputs.get(file) {
            return *number;
        }
        let digest = &subject.promise.digest;
        let (sha1, size) = (digest.sha1.full(), digest.total());
        self.inputs.push(PageInput { file: file.clone(), sha1, size });
        self.numbers_of_inputs.insert(file.clone(), self.inputs.len() - 1);
        self.inputs.len() - 1
    }

    /// The name of an input or output in the computation of a call; or its number, if names are not known any more.
    pub(super) fn name_of(&mut self, call: &str, number: usize, is_output: bool) -> String {
        let directory = call.rsplit_once('/').map_or(call, |(directory, _)| directory);
        if !self.names.contains_key(directory) {
            let name = ResultName::of_short(call);
            let names = name.map_or_else(Default::default, |name| {
                [self.storage.input_names(&name), self.storage.output_names(&name)]
            });
            self.names.insert(directory.to_owned(), names);
        }
        let names = self.names[directory][usize::from(is_output)].as_ref();
        names.and_then(|names| names.get(number)).cloned().unwrap_or_else(|| format!("{number:02}"))
    }

    /// Takes the names of inputs and outputs from a task, since a storage may not know them.
    pub(super) fn add_names(&mut self, evaluation: &Evaluation) {
        for (call, _) in evaluation.plan.calls() {
            let (Some(computation), Some(outcome)) =
                (evaluation.computation(call), evaluation.outcome(call))
            else {
                continue;
            };
            let short = outcome.name().short();
            let directory = short.rsplit_once('/').map_or("", |(directory, _)| directory);
            if !self.names.contains_key(directory) {
                let names = [&computation.inputs, &computation.outputs];
                let names =
                    names.map(|names| Some(names.iter().map(ToString::to_string).collect()));
                self.names.insert(directory.to_owned(), names);
            }
        }
    }

    /// The shapes of the drawing of a task, with the numbers of their calls.
    pub(super) fn shapes_of_task(&self, task: &TaskScope<'_>) -> Vec<PageShape> {
        let numbers = |calls: &[CallId]| {
            let names = calls.iter().filter_map(|call| name_of(task.evaluation, *call));
            names.filter_map(|name| self.call(&name)).collect()
        };
        let shape = |(label, calls): &(String, &[CallId])| PageShape {
            label: label.clone(),
            calls: numbers(calls),
        };
        task.shapes.iter().map(shape).collect()
    }
}

impl PageValue {
    /// A value that is not there, whose contents are not known.
    pub(super) const fn unknown(name: String, file: Option<String>) -> Self {
        Self { name, file, sha1: String::new(), size: 0, from: None, role: None, number: 0 }
    }
}
