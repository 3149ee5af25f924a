//! The contents of the storage: every record, and every file without one.
//!
//! A survey is a list of names, sorted; what they name may be gone when it is looked at, since
//! others work on the storage at the same time. It leaves out symbolic links in the place of
//! directories, which are listed apart.

use std::collections::HashSet;

use crate::storage::disk::{NotOwn, Result, StorageError};
use crate::storage::layout::{
    Entry, FAILED, LEASES, PINS, RECORDS, ROOMS, RUNS, ResultName, RunName, TASK_INPUTS,
};
use crate::storage::records::{Defect, FailureRecord, Finding, Read};
use crate::storage::store::Storage;

/// Lists what is in a storage.
#[derive(Clone, Copy, Debug)]
pub struct Survey<'a> {
    pub(super) storage: &'a Storage,
}

impl<'a> Survey<'a> {
    /// The survey of a storage.
    pub const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Returns everything that has a record, sorted by name: calls, task inputs, jobs.
    ///
    /// # Errors
    ///
    /// Fails if a directory cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        self.entries_in(RECORDS)
    }

    /// Returns every result that has a record in a room, sorted by name.
    pub(in crate::storage) fn entries_in(&self, room: &str) -> Result<Vec<Entry>> {
        let mut entries = self.results_in(room, "c_", Entry::Call)?;
        entries.append(&mut self.results_in(room, "t_", Entry::Job)?);
        let prefix = format!("{TASK_INPUTS}/{room}");
        let task_inputs = self.storage.path(TASK_INPUTS);
        let is_link = self.storage.root.disk.metadata(&task_inputs)?.is_some_and(|it| it.is_link());
        let records = if is_link { Vec::new() } else { self.files_in(&prefix)? };
        let place = |name: &String| {
            let name = name.strip_prefix(&prefix)?.strip_prefix('/')?;
            Some(Entry::TaskInput(name.strip_suffix(".json")?.to_owned()))
        };
        entries.extend(records.iter().filter_map(place));
        entries.sort_by_cached_key(Entry::record);
        Ok(entries)
    }

    /// Returns every job that has a record.
    ///
    /// # Errors
    ///
    /// Fails if a directory cannot be read.
    pub fn jobs(&self) -> Result<Vec<Entry>> {
        self.results_in(RECORDS, "t_", Entry::Job)
    }

    /// Returns the calls that failed last, sorted by name, with their failures.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn failures(&self) -> Result<Vec<(ResultName, FailureRecord)>> {
        let mut failures = Vec::new();
        for name in self.results_in(FAILED, "c_", std::convert::identity)? {
            if let Read::Record(record) = self.storage.records().read(&name.record_in(FAILED))? {
                failures.push((name, record));
            }
        }
        Ok(failures)
    }

    /// Returns the names of the results that have a record in a room.
    pub(in crate::storage) fn results_in<T>(
        &self,
        room: &str,
        prefix: &str,
        entry: fn(ResultName) -> T,
    ) -> Result<Vec<T>> {
        let mut results = Vec::new();
        for directory in self.directories(prefix)? {
            let records = self.files_in(&format!("{directory}/{room}"))?;
            let names = records.iter().filter_map(|name| ResultName::of_record_in(room, name));
            results.extend(names.map(entry));
        }
        Ok(results)
    }

    /// Returns the outputs and task inputs that nobody recorded.
    ///
    /// # Errors
    ///
    /// Fails if a directory cannot be read.
    pub fn orphans(&self, entries: &[Entry]) -> Result<Vec<Finding>> {
        let known: HashSet<&Entry> = entries.iter().collect();
        let mut orphans = Vec::new();
        let mut note = |name: String, entry: &Entry| {
            // A result that was published since the survey has a record by now.
            let orphan = !known.contains(entry)
                && self.storage.root.disk.metadata(&self.storage.path(&entry.record()))?.is_none();
            orphans.extend(orphan.then_some(Finding { name, defect: Defect::Orphan }));
            Ok(())
        };
        for (prefix, entry) in [("c_", Entry::Call as fn(_) -> _), ("t_", Entry::Job)] {
            for directory in self.directories(prefix)? {
                for room in
                    self.storage.root.own_names(&directory)?.iter().filter(|room| is_number(room))
                {
                    for name in self.storage.root.files(&format!("{directory}/{room}"))? {
                        ResultName::of_output(&name).map_or(Ok(()), |it| note(name, &entry(it)))?;
                    }
                }
            }
        }
        for room in self.storage.root.own_names(TASK_INPUTS)?.iter().filter(|room| room.len() == 2)
        {
            for name in self.storage.root.files(&format!("{TASK_INPUTS}/{room}"))? {
                let place = name[TASK_INPUTS.len() + 1..].to_owned();
                note(name, &Entry::TaskInput(place))?;
            }
        }
        Ok(orphans)
    }

    /// Returns what runs that are gone have left: private directories, and leases.
    ///
    /// # Errors
    ///
    /// Fails if a directory or a lease cannot be read.
    pub fn leftovers(&self) -> Result<Vec<Finding>> {
        let gone = |text: &str| match text.trim().parse::<RunName>() {
            Ok(run) => {
                self.storage.run.is_over(&run)
                    || !self.storage.run.is_alive(
                        &run,
                        &self.storage.root.disk,
                        &self.storage.root.path(&run.directory()),
                    )
            }
            Err(()) => true,
        };
        let rooms = self.storage.root.own_names(RUNS)?.into_iter().filter(|room| gone(room));
        let leftover = |room| Finding { name: format!("{RUNS}/{room}"), defect: Defect::Leftover };
        let mut findings: Vec<Finding> = rooms.map(leftover).collect();
        for directory in self.directories("c_")? {
            for name in self.files_in(&format!("{directory}/{LEASES}"))? {
                let text = match self.storage.root.disk.read(&self.storage.path(&name)) {
                    // It names no run.
                    Err(error) if error.is_not_own() => Some(Vec::new()),
                    text => text?,
                };
                // A lease that is given back meanwhile is none.
                if let Some(text) = text
                    && gone(&String::from_utf8_lossy(&text))
                {
                    findings.push(Finding { name, defect: Defect::Lease });
                }
            }
        }
        Ok(findings)
    }

    /// Checks that no symbolic link stands in the place of a directory: behind it may be results that
    /// were made from others in this storage.
    ///
    /// # Errors
    ///
    /// Fails with the first link.
    pub fn check_no_links(&self) -> Result<()> {
        match self.links()?.first() {
            Some(link) => Err(StorageError::Io {
                doing: "delete anything beside",
                path: self.storage.path(&link.name),
                source: NotOwn::Link.into(),
            }),
            None => Ok(()),
        }
    }

    /// Returns the symbolic links that stand in the place of directories, sorted by name. Every other
    /// survey leaves them out.
    ///
    /// # Errors
    ///
    /// Fails if a directory cannot be read.
    pub fn links(&self) -> Result<Vec<Finding>> {
        let has_versions = |name: &str| name.starts_with("c_") || name.starts_with("t_");
        let is_place = |name: &str| {
            let top = name.split('/').next().unwrap_or_default();
            (has_versions(top) || ROOMS.contains(&top)) && !name.ends_with(".json")
        };
        let mut links = Vec::new();
        let mut look = |directory: &str| -> Result<Vec<String>> {
            let mut own = Vec::new();
            for (name, is_link) in self.storage.root.disk.names(&self.storage.path(directory))? {
                let name = if directory.is_empty() { name } else { format!("{directory}/{name}") };
                if !is_link {
                    own.push(name);
                } else if is_place(&name) {
                    links.push(Finding { name, defect: Defect::Link });
                }
            }
            Ok(own)
        };
        for owner in look("")? {
            if has_versions(&owner) {
                for version in look(&owner)? {
                    look(&version)?;
                }
            } else if [TASK_INPUTS, RUNS].contains(&&*owner) {
                look(&owner)?;
            }
        }
        links.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(links)
    }

    /// Returns the directories of all computations, or tasks, at all commits.
    pub(in crate::storage) fn directories(&self, prefix: &str) -> Result<Vec<String>> {
        let mut directories = Vec::new();
        for owner in
            self.storage.root.own_names("")?.into_iter().filter(|name| name.starts_with(prefix))
        {
            let commits = self.storage.root.own_names(&owner)?.into_iter();
            directories.extend(commits.map(|commit| format!("{owner}/{commit}")));
        }
        Ok(directories)
    }

    /// Returns the names of all files in a room, relative to the storage; none if it is a symbolic
    /// link. Pins that cannot be read are an error: what they protect would be collected.
    fn files_in(&self, room: &str) -> Result<Vec<String>> {
        match self.storage.root.files(room) {
            Err(error) if error.is_not_own() && !room.ends_with(PINS) => Ok(Vec::new()),
            files => files,
        }
    }
}

fn is_number(room: &str) -> bool {
    room.len() == 2 && room.bytes().all(|digit| digit.is_ascii_digit())
}
