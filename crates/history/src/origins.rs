//! The origins of results: everything that they were made from.

use std::collections::HashMap;

use super::History;
use ce_storage::{Entry, Record};

impl History {
    /// Returns for each result whether it is one of these, or one of these was made from it. The origins of tables
    /// count if [recipes were read](Self::with_recipes).
    pub fn with_origins<'a>(&'a self, wanted: impl Iterator<Item = &'a Entry>) -> Vec<bool> {
        let places: HashMap<&Entry, usize> =
            self.results.iter().enumerate().map(|(at, (entry, _))| (entry, at)).collect();
        let mut found = vec![false; self.results.len()];
        let mut stack: Vec<usize> = wanted.filter_map(|entry| places.get(entry).copied()).collect();
        while let Some(at) = stack.pop() {
            if !std::mem::replace(&mut found[at], true) {
                let (entry, record) = &self.results[at];
                let origins = self.origins(entry, record);
                stack.extend(origins.iter().filter_map(|origin| places.get(origin)));
                stack.extend(self.made_from.get(&at).into_iter().flatten());
            }
        }
        found
    }

    /// Returns the results that the directories of a result are links to, directly or by way of others.
    pub fn linked(&self, entry: &Entry) -> Vec<Entry> {
        let mut linked: Vec<Entry> = Vec::new();
        let mut next = Some(entry.clone());
        while let Some(entry) = next.take() {
            let subject = self.subject(&entry.file(0));
            if let Some(Record::Call(call)) = subject.map(|subject| subject.record)
                && let Some(source) = call.linked()
                && !linked.contains(&source)
            {
                linked.push(source.clone());
                next = Some(source);
            }
        }
        linked
    }

    /// The results that a result was made from directly. For a job, all its calls; for a table none, since its recipe
    /// names them.
    pub(super) fn origins(&self, entry: &Entry, record: &Record) -> Vec<Entry> {
        match record {
            Record::Table(_) | Record::TaskInput(_) => Vec::new(),
            Record::Call(call) => {
                let inputs = call.inputs.iter().enumerate();
                let inputs =
                    inputs.filter_map(|(number, digest)| self.input(entry, call, number, digest));
                inputs.map(|subject| subject.entry.clone()).chain(call.linked()).collect()
            }
            Record::Job(job) => {
                let calls = job.calls.iter().filter_map(|call| Entry::of_short(call));
                let outputs = job.outputs.iter().filter_map(|output| self.subject(&output.file));
                let inputs = job.inputs.iter().filter_map(|it| self.maker(&it.digest, None));
                let files = outputs.chain(inputs).map(|subject| subject.entry.clone());
                calls.chain(files).collect()
            }
        }
    }
}
