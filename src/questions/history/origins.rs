//! The origins of results: everything that they were made from.

use std::collections::HashMap;

use super::History;
use crate::storage::{Entry, Record};

impl History {
    /// Returns for each result whether it is one of these, or one of these was made from it.
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
            }
        }
        found
    }

    /// The results that a result was made from directly. For a job, all its calls.
    fn origins(&self, entry: &Entry, record: &Record) -> Vec<Entry> {
        match record {
            Record::TaskInput(_) => Vec::new(),
            Record::Call(call) => {
                let inputs = call.inputs.iter().enumerate();
                inputs
                    .filter_map(|(number, digest)| self.input(entry, call, number, digest))
                    .map(|subject| subject.entry.clone())
                    .collect()
            }
            Record::Job(job) => {
                let calls = job.calls.iter().filter_map(|call| Entry::of_call(call));
                let outputs = job.outputs.iter().filter_map(|output| self.subject(&output.file));
                let inputs = job.inputs.iter().filter_map(|it| self.maker(&it.digest, None));
                let files = outputs.chain(inputs).map(|subject| subject.entry.clone());
                calls.chain(files).collect()
            }
        }
    }
}
