//! Lookup in the records: results by the beginning of their names, past calls by records and tombstones, and new records.
//!
//! [`RecordWatch`] returns the records that were added since the last look. It does not list a directory again whose stat has
//! not changed, unless that is racy, or the file system is a network one.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::SystemTime;

use rustix::fs::FileType;

use super::{Maintenance, Survey};
use crate::disk::Result;
use crate::paths::{
    COLLECTED, Entry, RECORDS, ResultName, SUSPENDED, TABLES, TASK_INPUTS, is_value,
};
use crate::protocol::{Storage, Suspension};
use crate::records::{CallRecord, Provenance, RecordState, Tombstone};
use ce_files::cache::FileStat;
use ce_model::digest::DIRTY;
use ce_model::name::ComputationName;

/// What a name stands for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NameKind {
    /// A call with a record: `c_NAME/CCID/INPUTS`.
    Call,
    /// A job with a record: `t_NAME/TCID/INPUTS`.
    Job,
    /// An output of a call or of a job: `c_NAME/CCID/NN/INPUTS`.
    Output,
}

impl Maintenance<'_> {
    /// Returns the names that a text may become, sorted, each up to its next slash. A part without an alternative is
    /// passed.
    ///
    /// Reads one directory for each part, whatever the number of results.
    pub fn names_from(&self, text: &str, kind: NameKind) -> Result<Vec<String>> {
        let mut text = text.to_owned();
        loop {
            let names = self.continued(&text, kind)?;
            match &names[..] {
                [only] if only.ends_with('/') => text.clone_from(only),
                _ => return Ok(names),
            }
        }
    }

    /// The names that a text may become, up to the next slash.
    fn continued(&self, text: &str, kind: NameKind) -> Result<Vec<String>> {
        let prefixes: &[&str] = match kind {
            NameKind::Call => &["c_"],
            NameKind::Job => &["t_"],
            NameKind::Output => &["c_", "t_"],
        };
        let is_named = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let directory = text.rsplit_once('/').map_or("", |(directory, _)| directory);
        let parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
        let is_within = parts.first().is_none_or(|first| is_named(first));
        if !is_within || parts.iter().any(|part| part.starts_with('.')) {
            return Ok(Vec::new());
        }
        let names = |directory: &str| self.storage.root.own_names(directory);
        let is_room = |name: &str| name.len() == 2 && name.bytes().all(|it| it.is_ascii_digit());
        let found: Vec<String> = match (parts.len(), kind) {
            (0, _) => {
                let names = names("")?.into_iter().filter(|name| is_named(name));
                names.map(|name| format!("{name}/")).collect()
            }
            (1, _) => {
                let versions = names(directory)?.into_iter().filter(|name| is_version(name));
                versions.map(|version| format!("{directory}/{version}/")).collect()
            }
            (2, NameKind::Output) => {
                let rooms = names(directory)?.into_iter().filter(|name| is_room(name));
                rooms.map(|room| format!("{directory}/{room}/")).collect()
            }
            (2, _) => {
                let records = names(&format!("{directory}/{RECORDS}"))?;
                let calls = records.iter().filter_map(|record| record.strip_suffix(".json"));
                calls.map(|call| format!("{directory}/{call}")).collect()
            }
            (3, NameKind::Output) if is_room(parts[2]) => {
                names(directory)?.iter().map(|name| format!("{directory}/{name}")).collect()
            }
            _ => Vec::new(),
        };
        Ok(found.into_iter().filter(|name| name.starts_with(text)).collect())
    }
}

/// Whether a directory is that of a version: of a commit and perhaps a tree, or of a tree that is not committed.
fn is_version(name: &str) -> bool {
    let digits = name.strip_prefix(DIRTY).unwrap_or(name);
    digits.bytes().all(|it| it.is_ascii_hexdigit() || it == b'-')
}

/// A call that succeeded once.
#[derive(Clone, Debug, PartialEq)]
pub struct PastCall {
    /// Its name.
    pub name: ResultName,
    /// Its record.
    pub record: CallRecord,
    /// The collection of its outputs, if they were collected.
    pub collected: Option<Provenance>,
}

/// The record or tombstone of a call that succeeded once, not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastCallRef {
    name: ResultName,
    collected: bool,
}

impl Survey<'_> {
    /// Returns the records and tombstones of all calls of a computation, sorted by version. Counts
    /// the directories that cannot be read.
    pub fn traces(&self, computation: &ComputationName, unread: &mut usize) -> Vec<PastCallRef> {
        let mut traces = Vec::new();
        let mut counted = |names: Result<Vec<String>>| {
            names.unwrap_or_else(|_| {
                *unread += 1;
                Vec::new()
            })
        };
        let owner = format!("c_{computation}");
        for version in counted(self.storage.root.names(&owner)) {
            for (room, collected) in [(RECORDS, false), (COLLECTED, true)] {
                let records =
                    counted(self.storage.root.files(&format!("{owner}/{version}/{room}")));
                let names = records.iter().filter_map(|it| ResultName::of_record_in(room, it));
                traces.extend(names.map(|name| PastCallRef { name, collected }));
            }
        }
        traces
    }

    /// Reads a record or tombstone; `None` if it is spoiled or does not exist any more.
    pub fn past_call(&self, trace: &PastCallRef) -> Result<Option<PastCall>> {
        let PastCallRef { name, collected } = trace;
        let name = name.clone();
        if *collected {
            let tombstone: RecordState<Tombstone<CallRecord>> =
                self.storage.records().read(&name.record_in(COLLECTED))?;
            return Ok(tombstone.ok().map(|Tombstone { record, collected }| PastCall {
                name,
                record,
                collected: Some(collected),
            }));
        }
        let record: RecordState<CallRecord> = self.storage.records().read(&name.record())?;
        Ok(record.ok().map(|record| PastCall { name, record, collected: None }))
    }

    /// Reads the record of a call, or its tombstone if it was collected.
    pub fn record_or_tombstone(&self, name: &ResultName) -> Result<Option<CallRecord>> {
        for collected in [false, true] {
            let trace = PastCallRef { name: name.clone(), collected };
            if let Some(PastCall { record, .. }) = self.past_call(&trace)? {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }
}

impl PastCall {
    /// The file of an input, as in the record, if the call was executed.
    pub fn input(&self, number: usize) -> Option<&str> {
        let argv = &self.record.execution()?.argv;
        argv.get(number + 1).map(String::as_str)
    }
}

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
            Err(error) if error.is_foreign() => return Ok(false),
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
