//! Rehearsals: what a pull would take, found without writing anything.

use std::collections::HashSet;

use super::ResultsError;
use super::pull_candidates::{NewResult, Pulled};
use ce_git::Mirror;
use ce_model::digest::ObjectId;
use ce_storage::{Entry, Record, Storage};

/// A pull that takes nothing.
pub(super) struct Rehearsal<'a> {
    storage: &'a Storage,
    mirror: &'a Mirror,
    /// The short names of the calls and tables that would be taken.
    coming: HashSet<String>,
}

impl<'a> Rehearsal<'a> {
    pub(super) fn new(storage: &'a Storage, mirror: &'a Mirror) -> Self {
        Self { storage, mirror, coming: HashSet::new() }
    }

    /// Counts the results that would be taken, of which calls come first, then tables, then jobs.
    pub(super) fn rehearse(
        &mut self,
        new: &[NewResult],
        pulled: &mut Pulled,
    ) -> Result<(), ResultsError> {
        let jobs = new.iter().filter(|it| matches!(it.record, Record::Job(_)));
        let literals = jobs.flat_map(|it| it.files.iter().map(|(_, id)| id.clone()));
        self.mirror.fetch_files(&literals.collect::<Vec<ObjectId>>())?;
        for result in new {
            let Record::Job(job) = &result.record else {
                self.coming.insert(result.entry.short());
                pulled.count(result);
                continue;
            };
            let literals = self.literals(result)?;
            let is_coming = |file: &str| {
                let result = Entry::of_file(file).map(|it| it.short());
                literals.contains(file) || result.is_some_and(|it| self.coming.contains(&it))
            };
            match self.storage.importer().check_job(job, &is_coming)? {
                Ok(_) => pulled.count(result),
                Err(missing) => pulled.refuse_job(result.entry.short(), missing),
            }
        }
        Ok(())
    }

    /// The literals of a job that would be put into their places.
    fn literals<'b>(&self, job: &'b NewResult) -> Result<HashSet<&'b str>, ResultsError> {
        let mut literals = HashSet::new();
        for ((file, _), contents) in job.files.iter().zip(job.contents(self.mirror)?) {
            if self.storage.importer().accepts_literal(file, &contents)? {
                literals.insert(file.name.as_str());
            }
        }
        Ok(literals)
    }
}
