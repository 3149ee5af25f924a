//! The contents of the storage: every record, and every file without one.
//!
//! A survey is a sorted list of names. The files may not exist any more when they are read, since
//! others work on the storage at the same time. Symbolic links in the place of directories are left
//! out, and listed separately.
//!
//! A survey also finds files of the wrong kind: a directory where the storage has a file, or the reverse. Values are compared
//! with their records elsewhere. Quarantine, exports and directories of no known name are not checked.

use std::collections::{BTreeMap, HashSet};
use std::fs;

use Expected::{Any, Closed, Directory, File};
use rustix::fs::FileType;

use super::Maintenance;
use crate::disk::{ForeignEntry, Result, StorageError};
use crate::paths::{
    AWAY, COLLECTED, COMMITS, DIRECTORIES, Entry, FAILED, GATE, IDENTITY, LEASES, LEDGER, LOGS,
    MANIFESTS, OWNER, PINS, QUARANTINE, RECORDS, REPOSITORIES, REVOKED, ROOMS, RUN_LOGS, RUNS,
    ResultName, RunName, SIGNERS, SUSPENDED, TABLES, TASK_INPUTS, TREES, is_value,
};
use crate::protocol::{Storage, other_owner};
use crate::records::{
    CallRecord, Defect, FailureRecord, Finding, Provenance, RecordState, Tombstone,
};
use ce_model::digest::{DIRTY, Digest};
use ce_model::name::ComputationName;

/// Lists the contents of a storage.
#[derive(Clone, Copy, Debug)]
pub struct Survey<'a> {
    pub(super) storage: &'a Storage,
}

impl<'a> Survey<'a> {
    /// The survey of a storage.
    pub const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Returns all results with a record, sorted by name: calls, jobs, tables, task inputs.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        self.entries_in(RECORDS)
    }

    /// Returns all tables with a record, sorted by name.
    pub fn tables(&self) -> Result<Vec<ResultName>> {
        self.tables_in(RECORDS)
    }

    fn tables_in(&self, room: &str) -> Result<Vec<ResultName>> {
        let tables = self.files_of(TABLES, room)?;
        Ok(tables.iter().filter_map(|name| ResultName::of_record_in(room, name)).collect())
    }

    /// Returns all results with a record in a room, sorted by name.
    pub(crate) fn entries_in(&self, room: &str) -> Result<Vec<Entry>> {
        let mut entries = self.results_in(room, "c_", Entry::Call)?;
        entries.append(&mut self.results_in(room, "t_", Entry::Job)?);
        entries.extend(self.tables_in(room)?.into_iter().map(Entry::Table));
        let prefix = format!("{TASK_INPUTS}/{room}/");
        entries.extend(self.files_of(TASK_INPUTS, room)?.iter().filter_map(|name| {
            let place = name.strip_prefix(&prefix)?.strip_suffix(".json")?;
            Some(Entry::TaskInput(place.to_owned()))
        }));
        entries.sort_by_cached_key(Entry::record);
        Ok(entries)
    }

    /// Returns all jobs with a record.
    pub fn jobs(&self) -> Result<Vec<Entry>> {
        self.results_in(RECORDS, "t_", Entry::Job)
    }

    /// Counts the recorded calls that have read one of these values. Records that cannot be read do not count.
    pub fn readers(&self, values: &[Digest]) -> Result<usize> {
        let names = self.results_in(RECORDS, "c_", std::convert::identity)?;
        Ok(names
            .iter()
            .filter(|name| {
                let record = self.storage.records().read::<CallRecord>(&name.record());
                let record = record.ok().and_then(RecordState::ok);
                record.is_some_and(|it| it.inputs.iter().any(|input| values.contains(input)))
            })
            .count())
    }

    /// Returns the calls whose last execution failed, sorted by name, with their failures.
    pub fn failures(&self) -> Result<Vec<(ResultName, FailureRecord)>> {
        let mut failures = Vec::new();
        for name in self.results_in(FAILED, "c_", std::convert::identity)? {
            if let RecordState::Valid(record) =
                self.storage.records().read(&name.record_in(FAILED))?
            {
                failures.push((name, record));
            }
        }
        Ok(failures)
    }

    /// Returns the names of all calls with a place of suspended ones, whether or not the index has them.
    pub fn suspended(&self) -> Result<Vec<ResultName>> {
        let mut suspended = Vec::new();
        for directory in self.directories("c_")? {
            let places = self.storage.root.values(&format!("{directory}/{SUSPENDED}"), is_value)?;
            suspended.extend(places.iter().filter_map(|place| ResultName::of_suspended(place)));
        }
        Ok(suspended)
    }

    /// Returns the findings on suspended calls: records that cannot be understood, calls that the index has lost, and what dead
    /// runs have left of calls that are over.
    pub fn suspended_findings(&self) -> Result<Vec<Finding>> {
        let suspensions = self.storage.suspensions();
        let mut findings = Vec::new();
        for name in self.suspended()? {
            let defect = match suspensions.read(&name) {
                Err(error) => Defect::Unreadable(error),
                Ok(None) => Defect::SpoiledSuspension,
                Ok(Some(it)) if suspensions.is_over(&it)? => Defect::Leftover,
                Ok(Some(it)) if !suspensions.is_indexed(&it)? => Defect::Unindexed,
                Ok(Some(_)) => continue,
            };
            findings.push(Finding { name: name.suspended_place(), defect });
        }
        Ok(findings)
    }

    /// Returns all calls or jobs with a record in a room.
    pub(crate) fn results_in<T>(
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

    /// Returns the outputs, files of tables and task inputs without a record.
    pub fn orphans(&self, entries: &[Entry]) -> Result<Vec<Finding>> {
        let known: HashSet<&Entry> = entries.iter().collect();
        let mut orphans = Vec::new();
        let root = &self.storage.root;
        let mut note = |name: String, entry: &Entry| -> Result<()> {
            // A result that was published since the survey has a record now.
            let orphan = !known.contains(entry) && !self.has(&entry.record())?;
            orphans.extend(orphan.then_some(Finding { name, defect: Defect::Orphan }));
            Ok(())
        };
        for (prefix, entry) in [("c_", Entry::Call as fn(_) -> _), ("t_", Entry::Job)] {
            for directory in self.directories(prefix)? {
                for room in root.own_names(&directory)?.iter().filter(|room| is_number(room)) {
                    for name in root.values(&format!("{directory}/{room}"), is_value)? {
                        if let Some(result) = ResultName::of_output(&name) {
                            note(name, &entry(result))?;
                        }
                    }
                }
            }
        }
        for room in root.own_names(TABLES)?.iter().filter(|room| room.len() == 2) {
            for digits in root.own_names(&format!("{TABLES}/{room}"))? {
                let table = format!("{TABLES}/{room}/{digits}");
                for name in root.own_names(&table)?.iter().map(|part| format!("{table}/{part}")) {
                    if let Some(entry) = Entry::of_file(&name) {
                        note(name, &entry)?;
                    }
                }
            }
        }
        for room in root.own_names(TASK_INPUTS)?.iter().filter(|room| room.len() == 2) {
            for name in root.values(&format!("{TASK_INPUTS}/{room}"), is_value)? {
                let place = name[TASK_INPUTS.len() + 1..].to_owned();
                note(name, &Entry::TaskInput(place))?;
            }
        }
        Ok(orphans)
    }

    /// Returns the calls that are marked as away.
    pub fn marked_away(&self) -> Result<HashSet<ResultName>> {
        let mut marked = HashSet::new();
        for directory in self.directories("c_")? {
            let markers = self.files_in(&format!("{directory}/{AWAY}"))?;
            marked.extend(markers.iter().filter_map(|name| ResultName::of_marker(name)));
        }
        Ok(marked)
    }

    /// Returns the marks of results that are away, except marks beside a record.
    pub fn lost_markers(&self) -> Result<Vec<Finding>> {
        let mut lost = Vec::new();
        for prefix in ["c_", "t_"] {
            for directory in self.directories(prefix)? {
                for name in self.files_in(&format!("{directory}/{AWAY}"))? {
                    let result = ResultName::of_marker(&name);
                    if !result.map_or(Ok(false), |result| self.has(&result.record()))? {
                        lost.push(Finding { name, defect: Defect::Marker });
                    }
                }
            }
        }
        Ok(lost)
    }

    /// Whether there is a record. A file behind a link does not count.
    fn has(&self, record: &str) -> Result<bool> {
        match self.storage.has(record) {
            Err(error) if error.is_foreign() => Ok(false),
            has => has,
        }
    }

    /// Whether a run of this name has ended. A text that names no run counts as ended.
    fn has_ended(&self, text: &str) -> bool {
        let Storage { root, run: own, .. } = self.storage;
        match text.trim().parse::<RunName>() {
            Ok(run) => {
                own.is_over(&run) || !own.is_alive(&run, &root.disk, &root.path(&run.directory()))
            }
            Err(()) => true,
        }
    }

    /// Returns the private directories and the leases of runs that have ended.
    pub fn leftovers(&self) -> Result<Vec<Finding>> {
        let root = &self.storage.root;
        let mut findings = Vec::new();
        let runs = root.own_names(RUNS)?.into_iter().map(|run| format!("{RUNS}/{run}"));
        for name in runs.filter(|name| *name != GATE && self.has_ended(&name[RUNS.len() + 1..])) {
            findings.push(Finding { name, defect: Defect::Leftover });
        }
        let mut leases = vec![GATE.to_owned()];
        for directory in self.directories("c_")? {
            leases.append(&mut self.files_in(&format!("{directory}/{LEASES}"))?);
        }
        for name in leases {
            let text = match root.disk.read(&root.path(&name)) {
                // It names no run.
                Err(error) if error.is_foreign() => Some(Vec::new()),
                text => text?,
            };
            // A lease that was released meanwhile is not there any more.
            if let Some(text) = text
                && self.has_ended(&String::from_utf8_lossy(&text))
            {
                findings.push(Finding { name, defect: Defect::Lease });
            }
        }
        Ok(findings)
    }

    /// Returns the names of the users whose ended runs have left directories that only these may enter, each with the number of such
    /// runs. The next run of the user removes them.
    pub fn left_by_others(&self) -> Result<BTreeMap<String, usize>> {
        let mut left = BTreeMap::new();
        for run in self.storage.root.own_names(RUNS)?.into_iter().filter(|it| self.has_ended(it)) {
            let directory = self.storage.root.path(&format!("{RUNS}/{run}"));
            if let Some(owner) = other_owner(self.storage, &directory) {
                *left.entry(user_name(owner)).or_default() += 1;
            }
        }
        Ok(left)
    }

    /// Returns the files of the ledger that are not named by their contents. They are evidence of nothing.
    pub fn forged(&self) -> Result<Vec<Finding>> {
        let ledger = self.storage.ledger();
        let mut findings = Vec::new();
        for name in ledger.names()? {
            if !ledger.is_right(&name)? {
                findings.push(Finding { name, defect: Defect::Forged });
            }
        }
        Ok(findings)
    }

    /// Checks that no symbolic link stands in the place of a directory: results behind it may have
    /// been made from others in this storage.
    ///
    /// # Errors
    ///
    /// Fails with the first link.
    pub fn check_no_links(&self) -> Result<()> {
        match self.links()?.first() {
            Some(link) => Err(StorageError::Io {
                doing: "delete anything beside",
                path: self.storage.path(&link.name),
                source: ForeignEntry::Link.into(),
            }),
            None => Ok(()),
        }
    }

    /// Returns the symbolic links that stand in the place of directories, sorted by name. Every other
    /// survey leaves them out.
    pub fn links(&self) -> Result<Vec<Finding>> {
        let mut links = Vec::new();
        let mut look = |directory: &str| -> Result<Vec<String>> {
            let mut own = Vec::new();
            for (name, is_link) in self.storage.root.disk.names(&self.storage.path(directory))? {
                let name = if directory.is_empty() { name } else { format!("{directory}/{name}") };
                if !is_link {
                    own.push(name);
                } else if is_place_of_directory(&name) {
                    links.push(Finding { name, defect: Defect::Link });
                }
            }
            Ok(own)
        };
        for owner in look("")? {
            if has_versions(&owner) || owner == TABLES {
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

    /// Returns the directories of all versions of all computations, or of all tasks.
    pub(crate) fn directories(&self, prefix: &str) -> Result<Vec<String>> {
        let mut directories = Vec::new();
        let root = &self.storage.root;
        for owner in root.own_names("")?.iter().filter(|name| name.starts_with(prefix)) {
            let versions = root.own_names(owner)?;
            directories.extend(versions.iter().map(|version| format!("{owner}/{version}")));
        }
        Ok(directories)
    }

    /// Returns the names of all files in a room of task inputs or tables; none if their directory is a symbolic link.
    fn files_of(&self, top: &str, room: &str) -> Result<Vec<String>> {
        let metadata = self.storage.root.disk.metadata(&self.storage.path(top))?;
        if metadata.is_some_and(|it| it.is_link()) {
            Ok(Vec::new())
        } else {
            self.files_in(&format!("{top}/{room}"))
        }
    }

    /// Returns the names of all files in a room, relative to the storage; none if it is a symbolic
    /// link. Unreadable pins are an error, since the results that they protect would be collected.
    fn files_in(&self, room: &str) -> Result<Vec<String>> {
        match self.storage.root.files(room) {
            Err(error) if error.is_foreign() && !room.ends_with(PINS) => Ok(Vec::new()),
            files => files,
        }
    }
}

/// The kind of result that a name stands for.
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
    /// Reads one directory for each part, regardless of the number of results.
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
        let root = &self.storage.root;
        let found: Vec<String> = match (parts.len(), kind) {
            (0, _) => {
                let names = root.own_names("")?.into_iter().filter(|name| is_named(name));
                names.map(|name| format!("{name}/")).collect()
            }
            (1, _) => {
                let versions =
                    root.own_names(directory)?.into_iter().filter(|name| may_be_version(name));
                versions.map(|version| format!("{directory}/{version}/")).collect()
            }
            (2, NameKind::Output) => {
                let rooms = root.own_names(directory)?.into_iter().filter(|name| is_number(name));
                rooms.map(|room| format!("{directory}/{room}/")).collect()
            }
            (2, _) => {
                let records = root.own_names(&format!("{directory}/{RECORDS}"))?;
                let calls = records.iter().filter_map(|record| record.strip_suffix(".json"));
                calls.map(|call| format!("{directory}/{call}")).collect()
            }
            (3, NameKind::Output) if is_number(parts[2]) => root
                .own_names(directory)?
                .iter()
                .map(|name| format!("{directory}/{name}"))
                .collect(),
            _ => Vec::new(),
        };
        Ok(found.into_iter().filter(|name| name.starts_with(text)).collect())
    }
}

/// Whether a name at the top of the storage belongs to a directory with versions.
fn has_versions(name: &str) -> bool {
    name.starts_with("c_") || name.starts_with("t_")
}

/// Whether a name of at most three parts, which [`Survey::links`] looks at, is the place of a directory.
fn is_place_of_directory(name: &str) -> bool {
    let top = name.split('/').next().unwrap_or_default();
    (has_versions(top) || ROOMS.contains(&top)) && !name.ends_with(".json")
}

/// Whether a directory may belong to a version: a commit and perhaps a tree, or a tree that is not committed.
fn may_be_version(name: &str) -> bool {
    let digits = name.strip_prefix(DIRTY).unwrap_or(name);
    digits.bytes().all(|it| it.is_ascii_hexdigit() || it == b'-')
}

/// A call that succeeded once.
#[derive(Clone, Debug, PartialEq)]
pub struct PastCall {
    pub name: ResultName,
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
        argv.get(number + 1)
    }
}

fn is_number(room: &str) -> bool {
    room.len() == 2 && room.bytes().all(|digit| digit.is_ascii_digit())
}

/// The kind of entry that belongs in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// A directory whose entries have places, too.
    Directory,
    /// A directory with anything in it.
    Closed,
    /// A plain file.
    File,
    /// Anything.
    Any,
}

/// The directories whose files are named by hashes. The first two digits are a directory.
const HASHED: [&str; 4] = [MANIFESTS, DIRECTORIES, LEDGER, SIGNERS];

impl Survey<'_> {
    /// Returns the places of the layout in which something of another kind is, sorted.
    pub fn unlike(&self) -> Result<Vec<Finding>> {
        let root = &self.storage.root;
        let mut findings = Vec::new();
        let mut open = vec![String::new()];
        while let Some(directory) = open.pop() {
            for (name, kind) in root.disk.kinds(&root.path(&directory))? {
                let name = if directory.is_empty() { name } else { format!("{directory}/{name}") };
                let defect = match (expected(&name), kind) {
                    (Any, _) | (Closed, FileType::Directory) | (File, FileType::RegularFile) => {
                        continue;
                    }
                    (Directory, FileType::Directory) => {
                        open.push(name);
                        continue;
                    }
                    (Directory | Closed, FileType::Symlink) => Defect::Link,
                    (Directory | Closed, _) => Defect::NotADirectory,
                    (File, _) => Defect::NotAFile,
                };
                findings.push(Finding { name, defect });
            }
        }
        findings.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(findings)
    }
}

/// Returns the kind of entry that belongs in a place. All directories above it must be in the layout. A name that the
/// layout does not have is a user's own.
fn expected(name: &str) -> Expected {
    let parts: Vec<&str> = name.split('/').collect();
    let (top, inner) = (parts[0], &parts[1..]);
    let (is_call, is_task) = (top.starts_with("c_"), top.starts_with("t_"));
    match inner {
        [] if is_call || is_task || ROOMS.contains(&top) || top == DIRECTORIES => Directory,
        ["commits", rest @ ..] if is_call => match rest {
            [] | ["running"] => Directory,
            [tree] if is_digits(tree) => Directory,
            [_, _] => File,
            _ => Any,
        },
        [version, rest @ ..] if (is_call || is_task) && is_version(version) => of_version(rest),
        [COMMITS, rest @ ..] if top == TASK_INPUTS => match rest {
            [] => Directory,
            [shard] if is_shard(shard) => Directory,
            [_, file] if file.ends_with(".json") => File,
            _ => Any,
        },
        [shard, rest @ ..] if top == TASK_INPUTS => of_shard(shard, rest, Any),
        [shard, rest @ ..] if top == TABLES => match rest {
            [_, "00" | "recipe"] if is_shard(shard) => File,
            _ => of_shard(shard, rest, Directory),
        },
        _ if name == GATE => File,
        [run, rest @ ..] if top == RUNS => of_run(run, rest),
        [run, rest @ ..] if top == RUN_LOGS && run.parse::<RunName>().is_ok() => match rest {
            [] => Directory,
            ["log" | "job.json"] => File,
            _ => Any,
        },
        [QUARANTINE] if top == TREES || top == LEDGER => Closed,
        [tree] if top == TREES && is_digits(tree) => Closed,
        [shard, rest @ ..] if HASHED.contains(&top) && is_shard(shard) => match rest {
            [] => Directory,
            [file] if is_digits(file.split('.').next().unwrap_or_default()) => File,
            _ => Any,
        },
        _ if name == IDENTITY => File,
        [file] if top == REPOSITORIES && file.ends_with(".json") => File,
        [key] if top == SUSPENDED && key.split('-').next().is_some_and(is_digits) => File,
        [.., file] if top == REVOKED && file.ends_with(".json") => File,
        [_, ..] if top == REVOKED => Directory,
        _ => Any,
    }
}

/// Returns the kind of entry that belongs in a place in the directory of a version of a computation or a task.
fn of_version(rest: &[&str]) -> Expected {
    match rest {
        [] => Directory,
        [OWNER] => File,
        [QUARANTINE, ..] => Closed,
        [room] if is_number(room) => Directory,
        // A value, unless its name has more parts.
        [room, .., last] if is_number(room) => {
            if is_value(last) {
                Any
            } else {
                Directory
            }
        }
        [RECORDS | COLLECTED | PINS | FAILED | LOGS | AWAY | LEASES | SUSPENDED] => Directory,
        [RECORDS | COLLECTED | PINS, .., last] => match last {
            record if record.ends_with(".json") => File,
            other => {
                if is_value(other) {
                    Any
                } else {
                    Directory
                }
            }
        },
        [FAILED | LOGS | AWAY | LEASES, .., last] => {
            if is_value(last) {
                File
            } else {
                Directory
            }
        }
        [SUSPENDED, .., "work" | "own"] => Closed,
        [SUSPENDED, .., "log" | "state.json"] => File,
        [SUSPENDED, .., before, _] if is_value(before) => Any,
        [SUSPENDED, ..] => Directory,
        _ => Any,
    }
}

/// Returns the kind of entry that belongs in a directory whose names have two digits of a hash in front, beside its rooms.
fn of_shard(shard: &str, rest: &[&str], value: Expected) -> Expected {
    match (shard, rest) {
        (QUARANTINE, _) => Closed,
        (RECORDS | COLLECTED | PINS, [] | [_]) => Directory,
        (RECORDS | COLLECTED | PINS, [.., last]) if last.ends_with(".json") => File,
        (shard, []) if is_shard(shard) => Directory,
        (shard, [name]) if is_shard(shard) && is_digits(name) => value,
        _ => Any,
    }
}

/// Returns the kind of entry that belongs in a place in the private directory of a run.
fn of_run(run: &str, rest: &[&str]) -> Expected {
    match rest {
        [] if run.parse::<RunName>().is_ok() => Directory,
        ["run" | "uses" | "beat" | "state.json" | "executing" | "worker.json"] => File,
        ["queue" | "claims" | "answers"] | ["queue" | "claims", _] => Directory,
        ["queue" | "claims", _, _] | ["answers", _] => File,
        ["slurm" | "scheduler"] => Closed,
        _ => Any,
    }
}

/// The name of a user of this host, or the number if it is not in the list of local users.
fn user_name(user: u32) -> String {
    let number = user.to_string();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut users = users.lines().map(|line| line.split(':'));
    let name = users.find_map(|mut fields| {
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| format!("user {number}"))
}

fn is_shard(name: &str) -> bool {
    name.len() == 2 && is_digits(name)
}

fn is_digits(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Whether a directory may belong to a version, judged by its name.
fn is_version(name: &str) -> bool {
    name.strip_prefix(DIRTY).unwrap_or(name).split('-').all(is_digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_of_the_layout_has_one_kind_of_entry() {
        for (name, kind) in [
            ("c_x", Directory),
            ("c_x/commits/0123/abcd", File),
            ("c_x/notes", Any),
            ("c_x/commits/running/0123", File),
            ("c_x/0123/01", Directory),
            ("c_x/0123/01/ab_cd", Any),
            ("c_x/0123/01/ab_/cd", Any),
            ("c_x/0123/record/ab_", Directory),
            ("c_x/0123/record/ab_/cd.json", File),
            ("c_x/0123/log/ab_cd", File),
            ("c_x/0123/suspended/ab_cd", Directory),
            ("c_x/0123/suspended/ab_cd/own", Closed),
            ("c_x/0123/suspended/ab_cd/log", File),
            ("c_x/0123/aside/ab_cd", Closed),
            ("t_x/0123/version.json", File),
            ("tinputs/ab/cd", Any),
            ("tinputs/commits/ab", Directory),
            ("tinputs/commits/ab/cd-ef.json", File),
            ("tinputs/record/ab/cd.json", File),
            ("tables/ab/cd", Directory),
            ("tables/ab/mine", Any),
            ("tables/ab/cd/recipe", File),
            ("tables/ab/cd/01", Any),
            ("tables/record/ab/cd.json", File),
            ("ledger/ab/cd.ndjson", File),
            ("signers/ab/cd.json", File),
            ("trees/abcd", Closed),
            ("trees/aside", Closed),
            ("manifests/ab/cd", File),
            ("repositories/ab.json", File),
            ("repositories/storage", File),
            ("suspended/ab", File),
            ("revoked/c_x/01/record/ab/cd.json", File),
            ("tmp/collecting", File),
            ("tmp/h-b-1-2-t", Directory),
            ("tmp/h-b-1-2-t/beat", File),
            ("tmp/h-b-1-2-t/0", Any),
            ("runs/h-b-1-2-t/log", File),
            ("mine", Any),
            ("README.md", Any),
        ] {
            assert_eq!(expected(name), kind, "{name}");
        }
    }
}
