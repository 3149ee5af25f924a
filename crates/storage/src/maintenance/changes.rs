//! What was recorded since the last look, without listing what cannot have changed.
//!
//! A directory with the same stat has the same entries, unless it is racy, or on a network file system. All others are
//! listed again.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::SystemTime;

use rustix::fs::FileType;

use crate::disk::Result;
use crate::layout::{Entry, RECORDS, ResultName, SUSPENDED, TABLES, TASK_INPUTS, is_value};
use crate::store::{Storage, Suspension};
use ce_files::cache::FileStat;

/// Finds what was recorded since it looked last; at first, everything.
#[derive(Debug)]
pub struct RecordWatch<'a> {
    storage: &'a Storage,
    /// The directories that it has listed.
    listed: HashMap<String, Listed>,
    /// The places of suspended calls.
    suspended: BTreeSet<String>,
    /// The results that it has returned.
    returned: HashSet<Entry>,
}

/// A directory that was listed.
#[derive(Debug)]
struct Listed {
    /// Its stat before, and when it was taken.
    stat: Option<FileStat>,
    taken: SystemTime,
    /// The directories in it.
    below: Vec<String>,
}

/// What was recorded since the last look.
#[derive(Debug, Default)]
pub struct NewRecords {
    /// Results, in any order.
    pub entries: Vec<Entry>,
    /// Suspended calls whose record is another.
    pub suspended: Vec<Suspension>,
}

impl<'a> RecordWatch<'a> {
    /// Has not looked at the storage yet.
    pub fn new(storage: &'a Storage) -> Self {
        let (listed, suspended, returned) = <_>::default();
        Self { storage, listed, suspended, returned }
    }

    /// Returns what was recorded since the last look, but for results that are known.
    ///
    /// # Errors
    ///
    /// Fails if a directory or the record of a suspended call cannot be read.
    pub fn look(&mut self, is_known: impl Fn(&Entry) -> bool) -> Result<NewRecords> {
        let mut entries = Vec::new();
        let mut returned = std::mem::take(&mut self.returned);
        let mut places = Vec::new();
        let mut note = |file: String| {
            let entry = recorded(&file);
            entries.extend(entry.filter(|it| !is_known(it) && returned.insert(it.clone())));
        };
        for owner in self.storage.root.own_names("")? {
            let is_call = owner.starts_with("c_");
            if !is_call && !owner.starts_with("t_") {
                continue;
            }
            self.list(&owner, |_| false, &mut |_| ())?;
            let versions = self.listed.get(&owner).map(|it| it.below.clone());
            for version in versions.unwrap_or_default() {
                self.visit(format!("{version}/{RECORDS}"), |_| false, &mut note)?;
                if is_call {
                    let suspended = format!("{version}/{SUSPENDED}");
                    self.visit(suspended, is_value, &mut |place| places.push(place))?;
                }
            }
        }
        for room in [TABLES, TASK_INPUTS] {
            self.visit(format!("{room}/{RECORDS}"), |_| false, &mut note)?;
        }
        self.returned = returned;
        self.suspended.extend(places);
        Ok(NewRecords { entries, suspended: self.changed_suspensions()? })
    }

    /// Returns the suspended calls whose places have changed: their records are in these.
    fn changed_suspensions(&mut self) -> Result<Vec<Suspension>> {
        let mut changed = Vec::new();
        for place in self.suspended.clone() {
            if self.list(&place, |_| false, &mut |_| ())?
                && let Some(name) = ResultName::of_suspended(&place)
            {
                changed.extend(self.storage.suspensions().read(&name)?);
            }
        }
        Ok(changed)
    }

    /// Lists those of a directory, and of all below it, that may have changed.
    fn visit(
        &mut self,
        directory: String,
        is_file: fn(&str) -> bool,
        note: &mut impl FnMut(String),
    ) -> Result<()> {
        let mut waiting = vec![directory];
        while let Some(next) = waiting.pop() {
            self.list(&next, is_file, note)?;
            let below = self.listed.get(&next).map(|listed| listed.below.iter().cloned());
            waiting.extend(below.into_iter().flatten());
        }
        Ok(())
    }

    /// Lists a directory if it may have changed, and passes on the files in it. Returns whether it was listed.
    ///
    /// What stands in the place of a record is a file, as in all surveys; what is behind a link is not there.
    fn list(
        &mut self,
        directory: &str,
        is_file: fn(&str) -> bool,
        note: &mut impl FnMut(String),
    ) -> Result<bool> {
        let disk = &self.storage.root.disk;
        let path = self.storage.path(directory);
        let taken = SystemTime::now();
        let stat = match disk.directory_stat(&path) {
            Err(error) if error.is_not_own() => return Ok(false),
            stat => stat?,
        };
        let is_same =
            |it: &Listed| it.stat == stat && stat.is_none_or(|stat| !stat.is_racy(it.taken));
        if !disk.is_on_network() && self.listed.get(directory).is_some_and(is_same) {
            return Ok(false);
        }
        let mut below = Vec::new();
        for (name, kind) in disk.kinds(&path)? {
            let is_directory = kind == FileType::Directory && !name.ends_with(".json");
            let is_directory = is_directory && !is_file(&name);
            let name = format!("{directory}/{name}");
            if is_directory { below.push(name) } else { note(name) }
        }
        self.listed.insert(directory.to_owned(), Listed { stat, taken, below });
        Ok(true)
    }
}

/// The result whose record has this name.
fn recorded(name: &str) -> Option<Entry> {
    let place = name.strip_prefix(TASK_INPUTS).and_then(|it| it.strip_prefix('/'));
    let Some(place) = place.and_then(|it| it.strip_prefix(RECORDS)?.strip_prefix('/')) else {
        return Entry::of_record(name);
    };
    Some(Entry::TaskInput(place.strip_suffix(".json")?.to_owned()))
}
