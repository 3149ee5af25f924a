//! The outputs on a page, and what it is about.

use std::cmp::Reverse;

use serde::Serialize;

use super::PageScope;
use super::index::{PageIndex, PageValue, role_in};
use ce_history::Subject;
use ce_storage::{Entry, Record, Storage};

/// An output of a job, or a file that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PageOutput {
    /// The name of the task, if it is an output of one.
    pub task: String,
    /// The short name of the job or result that it is of.
    pub of: String,
    /// The commit of the task.
    pub commit: String,
    /// The inputs of the job: their names and short digests.
    pub inputs: Vec<(String, String)>,
    /// The file, and what made it. Its SHA-1 is empty if it is not known.
    pub value: PageValue,
}

/// The outputs of a page: those of the task, of the results that were asked for, or of all jobs of the storage, the newest
/// first.
pub(super) fn of(
    scope: &PageScope<'_>,
    wanted: &[&(Entry, Record)],
    index: &mut PageIndex<'_>,
) -> Vec<PageOutput> {
    match scope {
        PageScope::Task(task) => {
            let evaluation = task.evaluation;
            let inputs = evaluation.task.inputs.iter().enumerate();
            let inputs = inputs.filter_map(|(at, name)| {
                let digest = evaluation.files.inputs.get(at)?.as_ref()?.file.digest;
                Some((name.to_string(), digest.sha1.short()))
            });
            let inputs: Vec<(String, String)> = inputs.collect();
            let outputs = evaluation.plan.outputs().iter().enumerate();
            let output = |(number, source): (usize, &ce_model::plan::Source)| {
                let (name, file) = (format!("{number:02}"), evaluation.name(*source));
                let value = match (evaluation.digest(*source), file) {
                    (Some(digest), file) => index.value(name, &file.unwrap_or_default(), &digest),
                    (None, file) => PageValue::unknown(name, file),
                };
                PageOutput {
                    task: evaluation.task.name.to_string(),
                    of: String::new(),
                    commit: evaluation.task.commit.full().to_owned(),
                    inputs: inputs.clone(),
                    value,
                }
            };
            outputs.map(output).collect()
        }
        PageScope::Results(subjects) => {
            subjects.iter().flat_map(|subject| of_result(*subject, index)).collect()
        }
        PageScope::Storage => {
            let is_job = |it: &&&(Entry, Record)| matches!(it.0, Entry::Job(_));
            let mut jobs: Vec<&(Entry, Record)> = wanted.iter().filter(is_job).copied().collect();
            jobs.sort_by_key(|(_, record)| Reverse(record.at()));
            let mut outputs = Vec::new();
            for (entry, record) in jobs {
                if let Record::Job(_) = record {
                    let files = entry.expected_files(record);
                    for (number, promise) in files.iter().enumerate() {
                        outputs
                            .extend(of_result(Subject { promise, number, entry, record }, index));
                    }
                }
            }
            outputs
        }
    }
}

fn of_result(subject: Subject<'_>, index: &mut PageIndex<'_>) -> Option<PageOutput> {
    let Subject { promise, number, entry, record } = subject;
    let name = format!("{number:02}");
    let (task, commit, inputs, value) = match record {
        Record::Job(job) => {
            let inputs = job.inputs.iter().map(|it| (it.name.to_string(), it.digest.sha1.short()));
            let output = job.outputs.get(number)?;
            let mut value = index.value(name, &output.file, &output.digest);
            value.file = Some(promise.name.clone());
            value.role = role_in(job, &output.digest);
            (job.task.to_string(), job.commit.full().to_owned(), inputs.collect(), value)
        }
        _ => {
            let value = index.value(name, &promise.name, &promise.digest);
            (String::new(), String::new(), Vec::new(), value)
        }
    };
    Some(PageOutput { task, of: entry.short(), commit, inputs, value })
}

/// What a page is about, and facts about that.
pub(super) fn title(scope: &PageScope<'_>, storage: &Storage) -> (String, Vec<(String, String)>) {
    let place = storage.path("");
    let place = place.canonicalize().unwrap_or(place);
    let name = place.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_else(|| "storage".to_owned());
    let fact = |fact: &str, text: String| (fact.to_owned(), text);
    let of_storage = fact("storage", name.clone());
    match scope {
        PageScope::Storage => (name, Vec::new()),
        PageScope::Task(task) => {
            let it = &task.evaluation.task;
            let commit = fact("commit", it.commit.short().to_owned());
            (it.name.to_string(), vec![commit, of_storage])
        }
        PageScope::Results([subject]) => {
            let title = match subject.record {
                Record::Job(job) => job.task.to_string(),
                Record::Call(call) => call.computation.to_string(),
                Record::Table(_) | Record::TaskInput(_) => subject.entry.short(),
            };
            (title, vec![fact("result", subject.entry.short()), of_storage])
        }
        PageScope::Results(subjects) => (format!("{} results", subjects.len()), vec![of_storage]),
    }
}
