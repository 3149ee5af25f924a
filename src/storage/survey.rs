//! What the storage holds: every record, and every file that has none.
//!
//! A survey is a list of names, sorted; what they name may be gone when it is looked at, since
//! others work on the storage at the same time.

use std::collections::HashSet;
use std::path::Path;

use super::check::{Fault, Finding};
use super::find::Read;
use super::record::{CallRecord, InputRecord, JobRecord};
use super::run::{ROOM, RunName};
use super::scheme::ResultName;
use super::{Result, Storage, disk};

/// Where the task inputs are.
const TASK_INPUTS: &str = "tinputs";

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
        match self {
            Self::Call(name) | Self::Job(name) => name.record(),
            Self::TaskInput(place) => format!("{TASK_INPUTS}/record/{place}.json"),
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
        let mut entries = Vec::new();
        for (prefix, entry) in [("c_", Entry::Call as fn(_) -> _), ("t_", Entry::Job)] {
            for directory in self.directories(prefix)? {
                let records = self.files(&format!("{directory}/record"))?;
                entries.extend(records.iter().filter_map(|n| ResultName::of_record(n)).map(entry));
            }
        }
        let records = self.files(&format!("{TASK_INPUTS}/record"))?;
        let place = |name: &String| {
            let name = name.strip_prefix(TASK_INPUTS)?.strip_prefix("/record/")?;
            Some(Entry::TaskInput(name.strip_suffix(".json")?.to_owned()))
        };
        entries.extend(records.iter().filter_map(place));
        entries.sort_by_cached_key(Entry::record);
        Ok(entries)
    }

    /// Reads the record of an entry.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or only a newer version can.
    pub fn read_entry(&self, entry: &Entry) -> Result<Read<Record>> {
        fn any<T>(read: Read<T>, record: fn(T) -> Record) -> Read<Record> {
            match read {
                Read::Record(it) => Read::Record(record(it)),
                Read::Spoiled => Read::Spoiled,
                Read::Absent => Read::Absent,
            }
        }
        let name = entry.record();
        Ok(match entry {
            Entry::Call(_) => any(self.record(&name)?, Record::Call),
            Entry::Job(_) => any(self.record(&name)?, Record::Job),
            Entry::TaskInput(_) => any(self.record(&name)?, Record::TaskInput),
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
            // What was published since the survey has a record by now.
            let orphan =
                !known.contains(entry) && disk::metadata(&self.path(&entry.record()))?.is_none();
            orphans.extend(orphan.then_some(Finding { name, fault: Fault::Orphan }));
            Ok(())
        };
        for (prefix, entry) in [("c_", Entry::Call as fn(_) -> _), ("t_", Entry::Job)] {
            for directory in self.directories(prefix)? {
                for room in self.below(&directory)?.iter().filter(|room| is_number(room)) {
                    for name in self.files(&format!("{directory}/{room}"))? {
                        let file = &name[directory.len() + room.len() + 2..];
                        let record = format!("{directory}/record/{file}.json");
                        ResultName::of_record(&record)
                            .map_or(Ok(()), |it| note(name, &entry(it)))?;
                    }
                }
            }
        }
        for room in self.below(TASK_INPUTS)?.iter().filter(|room| room.len() == 2) {
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
            Ok(run) => self.run.is_over(&run) || !self.run.is_alive(&run, &self.directory_of(&run)),
            Err(()) => true,
        };
        let rooms = self.below(ROOM)?.into_iter().filter(|room| gone(room));
        let leftover = |room| Finding { name: format!("{ROOM}/{room}"), fault: Fault::Leftover };
        let mut findings: Vec<Finding> = rooms.map(leftover).collect();
        for directory in self.directories("c_")? {
            for name in self.files(&format!("{directory}/running"))? {
                // A lease that is given back meanwhile is none.
                if let Some(text) = disk::read(&self.path(&name))?
                    && gone(&String::from_utf8_lossy(&text))
                {
                    findings.push(Finding { name, fault: Fault::Lease });
                }
            }
        }
        Ok(findings)
    }

    /// Returns the directories of all computations, or tasks, at all commits.
    pub(super) fn directories(&self, prefix: &str) -> Result<Vec<String>> {
        let mut directories = Vec::new();
        for owner in self.below("")?.into_iter().filter(|name| name.starts_with(prefix)) {
            let commits = self.below(&owner)?.into_iter();
            directories.extend(commits.map(|commit| format!("{owner}/{commit}")));
        }
        Ok(directories)
    }

    /// Returns the names in a directory, sorted.
    fn below(&self, directory: &str) -> Result<Vec<String>> {
        let paths = disk::list(&self.path(directory))?;
        let name = |path: &Path| path.file_name()?.to_str().map(str::to_owned);
        let mut names: Vec<String> = paths.iter().filter_map(|path| name(path)).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the names of all files below a directory, relative to the storage.
    pub(super) fn files(&self, directory: &str) -> Result<Vec<String>> {
        let files = disk::walk(&self.path(directory))?;
        Ok(files.into_iter().map(|file| format!("{directory}/{file}")).collect())
    }
}

fn is_number(room: &str) -> bool {
    room.len() == 2 && room.bytes().all(|digit| digit.is_ascii_digit())
}
