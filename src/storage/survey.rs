//! The contents of the storage: every record, and every file without one.
//!
//! A survey is a list of names, sorted; what they name may be gone when it is looked at, since
//! others work on the storage at the same time. It leaves out symbolic links in the place of
//! directories, which are listed apart.

use std::collections::HashSet;

use super::check::{Defect, Finding};
use super::disk::NotOwn;
use super::find::Read;
use super::record::{CallRecord, InputRecord, JobRecord};
use super::run::{ROOM, RunName};
use super::scheme::{RECORDS, ResultName};
use super::site::ROOMS;
use super::{Result, Storage, StorageError};

/// Where the task inputs are.
pub(super) const TASK_INPUTS: &str = "tinputs";

/// The room of pins.
pub(super) const PINS: &str = "pinned";

/// A result that has a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// A call.
    Call(ResultName),
    /// A job.
    Job(ResultName),
    /// A task input: its name below the directory of all of them.
    TaskInput(String),
}

/// The record of any result.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// Of a call.
    Call(CallRecord),
    /// Of a job.
    Job(JobRecord),
    /// Of a task input.
    TaskInput(InputRecord),
}

impl Entry {
    /// The name of its record, relative to the storage.
    pub fn record(&self) -> String {
        self.room(RECORDS)
    }

    /// The name of a record of it that is kept in another room.
    pub(super) fn room(&self, room: &str) -> String {
        match self {
            Self::Call(name) | Self::Job(name) => name.record_in(room),
            Self::TaskInput(place) => format!("{TASK_INPUTS}/{room}/{place}.json"),
        }
    }

    /// The call that has a name without a room.
    pub fn of_call(short: &str) -> Option<Self> {
        ResultName::of_short(short).map(Self::Call)
    }

    /// The result that a file belongs to, going by its name.
    pub fn of_file(file: &str) -> Option<Self> {
        if let Some(place) = file.strip_prefix(TASK_INPUTS) {
            return Some(Self::TaskInput(place.strip_prefix('/')?.to_owned()));
        }
        let name = ResultName::of_output(file)?;
        match file.get(..2)? {
            "c_" => Some(Self::Call(name)),
            "t_" => Some(Self::Job(name)),
            _ => None,
        }
    }

    /// The version of its computation or task as its name shows it; `None` of a task input.
    pub fn version(&self) -> Option<&str> {
        match self {
            Self::Call(name) | Self::Job(name) => Some(name.version()),
            Self::TaskInput(_) => None,
        }
    }

    /// The name of a file of it; a task input has but one.
    pub fn file(&self, number: usize) -> String {
        match self {
            Self::Call(name) | Self::Job(name) => name.output(number),
            Self::TaskInput(place) => format!("{TASK_INPUTS}/{place}"),
        }
    }
}

impl Storage {
    /// Returns everything that has a record, sorted by name: calls, task inputs, jobs.
    ///
    /// # Errors
    ///
    /// Fails if a directory cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        self.entries_in(RECORDS)
    }

    /// Returns every result that has a record in a room, sorted by name.
    pub(super) fn entries_in(&self, room: &str) -> Result<Vec<Entry>> {
        let mut entries = self.results_in(room, "c_", Entry::Call)?;
        entries.append(&mut self.results_in(room, "t_", Entry::Job)?);
        let prefix = format!("{TASK_INPUTS}/{room}");
        let task_inputs = self.path(TASK_INPUTS);
        let is_link = self.disk.metadata(&task_inputs)?.is_some_and(|it| it.is_link());
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

    /// Returns the names of the results that have a record in a room.
    pub(super) fn results_in<T>(
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

    /// Reads the record of an entry.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or only a newer version can.
    pub fn read_entry(&self, entry: &Entry) -> Result<Read<Record>> {
        self.read_entry_in(RECORDS, entry)
    }

    /// Reads the record of an entry that is kept in a room.
    pub(super) fn read_entry_in(&self, room: &str, entry: &Entry) -> Result<Read<Record>> {
        let name = entry.room(room);
        Ok(match entry {
            Entry::Call(_) => self.record(&name)?.map(Record::Call),
            Entry::Job(_) => self.record(&name)?.map(Record::Job),
            Entry::TaskInput(_) => self.record(&name)?.map(Record::TaskInput),
        })
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
                && self.disk.metadata(&self.path(&entry.record()))?.is_none();
            orphans.extend(orphan.then_some(Finding { name, defect: Defect::Orphan }));
            Ok(())
        };
        for (prefix, entry) in [("c_", Entry::Call as fn(_) -> _), ("t_", Entry::Job)] {
            for directory in self.directories(prefix)? {
                for room in self.own(&directory)?.iter().filter(|room| is_number(room)) {
                    for name in self.files(&format!("{directory}/{room}"))? {
                        ResultName::of_output(&name).map_or(Ok(()), |it| note(name, &entry(it)))?;
                    }
                }
            }
        }
        for room in self.own(TASK_INPUTS)?.iter().filter(|room| room.len() == 2) {
            for name in self.files(&format!("{TASK_INPUTS}/{room}"))? {
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
                self.run.is_over(&run)
                    || !self.run.is_alive(&run, &self.disk, &self.directory_of(&run))
            }
            Err(()) => true,
        };
        let rooms = self.own(ROOM)?.into_iter().filter(|room| gone(room));
        let leftover = |room| Finding { name: format!("{ROOM}/{room}"), defect: Defect::Leftover };
        let mut findings: Vec<Finding> = rooms.map(leftover).collect();
        for directory in self.directories("c_")? {
            for name in self.files_in(&format!("{directory}/running"))? {
                let text = match self.disk.read(&self.path(&name)) {
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
                path: self.path(&link.name),
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
            for (name, is_link) in self.disk.names(&self.path(directory))? {
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
            } else if [TASK_INPUTS, ROOM].contains(&&*owner) {
                look(&owner)?;
            }
        }
        links.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(links)
    }

    /// Returns the directories of all computations, or tasks, at all commits.
    pub(super) fn directories(&self, prefix: &str) -> Result<Vec<String>> {
        let mut directories = Vec::new();
        for owner in self.own("")?.into_iter().filter(|name| name.starts_with(prefix)) {
            let commits = self.own(&owner)?.into_iter();
            directories.extend(commits.map(|commit| format!("{owner}/{commit}")));
        }
        Ok(directories)
    }

    /// Returns the names in a directory, sorted.
    pub(super) fn below(&self, directory: &str) -> Result<Vec<String>> {
        let names = self.disk.names(&self.path(directory))?.into_iter();
        Ok(names.map(|(name, _)| name).collect())
    }

    /// Returns the names in a directory that are no symbolic links, sorted; none if it is one itself.
    pub(super) fn own(&self, directory: &str) -> Result<Vec<String>> {
        match self.disk.names(&self.path(directory)) {
            Err(error) if error.is_not_own() => Ok(Vec::new()),
            names => {
                Ok(names?.into_iter().filter(|(_, is_link)| !is_link).map(|it| it.0).collect())
            }
        }
    }

    /// Returns the names of all files in a room, relative to the storage; none if it is a symbolic
    /// link. Pins that cannot be read are an error: what they protect would be collected.
    fn files_in(&self, room: &str) -> Result<Vec<String>> {
        match self.files(room) {
            Err(error) if error.is_not_own() && !room.ends_with(PINS) => Ok(Vec::new()),
            files => files,
        }
    }

    /// Returns the names of all files below a directory, relative to the storage.
    pub(super) fn files(&self, directory: &str) -> Result<Vec<String>> {
        let files = self.disk.walk(&self.path(directory))?;
        Ok(files.into_iter().map(|file| format!("{directory}/{file}")).collect())
    }
}

fn is_number(room: &str) -> bool {
    room.len() == 2 && room.bytes().all(|digit| digit.is_ascii_digit())
}
