//! The record cache: the contents of the records of a task's calls, which need not be read again.
//!
//! It has an entry for each storage and task. The name of a record cannot come to mean another
//! file, nor be removed, without a change of its directory. So one `stat` of a directory is enough
//! for all records in it. If it has changed, each record has a `stat` of its own.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::call_lookup::Call;
use super::{Storage, Unrecorded};
use crate::disk::{Result, lock};
use crate::paths::ComputationVersion;
use crate::records::{CallRecord, Published, Stamp};
use ce_files::cache::{FileStat, Table};
use ce_model::digest::{Blake3, Digest};
use ce_model::name::TaskName;

/// The least number of found records that are cached. Reading fewer is as fast as reading an entry.
const MIN_RECORDS: usize = 256;

/// An entry is replaced if fewer records than this were found for each that was missing from it.
const MIN_FOUND_PER_MISS: usize = 8;

/// The number of tasks in the cache.
const MAX_TASKS: usize = 32;

/// The records of a task's calls during its evaluation.
#[derive(Debug)]
pub(crate) struct RecordCache {
    table: Table,
    task: TaskName,
    opened: SystemTime,
    /// The entry: directories of records, and records.
    directories: HashMap<String, FileStat>,
    records: HashMap<Key, CachedRecord>,
    /// Records that were read since.
    read: Mutex<HashMap<Key, CachedRecord>>,
    /// The stat of each directory before any record in it was used, and whether it is the cached
    /// one.
    seen: Mutex<HashMap<String, (Option<FileStat>, bool)>>,
}

/// The hash of a record's name and of its call.
type Key = Blake3;

/// The contents of the record of a call.
#[derive(Debug, Deserialize, Serialize)]
struct CachedRecord {
    /// The stat of the record when it was read.
    stat: FileStat,
    outputs: Box<[(Digest, Stamp)]>,
    /// Whether it was a hit.
    #[serde(skip)]
    used: AtomicBool,
}

impl CachedRecord {
    /// Whether it was a hit.
    fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }
}

/// The records of calls that need not be read again.
#[derive(Clone, Copy, Debug)]
pub struct CachedRecords<'a> {
    storage: &'a Storage,
}

impl<'a> CachedRecords<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Loads the cached records of a task's calls, and uses them from now on.
    pub fn load(&self, task: &TaskName) {
        let mut current = self.storage.record_cache.write().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_none_or(|current| current.task != *task)
            && let Some(cache) = &self.storage.hasher.cache
            && let Some(table) = Table::open(cache, "records", MAX_TASKS).of_this_program()
        {
            let opened = SystemTime::now();
            let entry = table.look_up(&self.key_of(task), |()| true).hit();
            let (directories, records) = entry.unwrap_or_default();
            *current = Some(RecordCache {
                table,
                task: task.clone(),
                opened,
                directories,
                records,
                read: Mutex::default(),
                seen: Mutex::default(),
            });
        }
    }

    /// Saves the records found since then, if enough of them are new to the cache.
    pub fn save(&self) {
        let current =
            self.storage.record_cache.write().unwrap_or_else(PoisonError::into_inner).take();
        let Some(current) = current else { return };
        let RecordCache { table, task, opened, directories, records, read, seen } = &current;
        let read = lock(read);
        let seen = lock(seen);
        // Directories that are new to the cache, and have not changed since, not even unnoticed.
        let new: Vec<_> = seen
            .iter()
            .filter(|(_, (_, is_unchanged))| !is_unchanged)
            .filter_map(|(name, (stat, _))| Some((name, stat.as_ref()?)))
            .filter(|(name, stat)| {
                !stat.is_racy(*opened) && self.directory_stat(name).as_ref() == Some(*stat)
            })
            .collect();
        let found = records.values().filter(|record| record.is_used()).count() + read.len();
        if found < MIN_RECORDS || (read.len() <= found / MIN_FOUND_PER_MISS && new.is_empty()) {
            return;
        }
        let (used, unused): (Vec<_>, Vec<_>) =
            records.iter().partition(|(_, record)| record.is_used());
        // An unused record may be of another version, or of other inputs. Its directory is not
        // known, so a change of any directory evicts it.
        let is_unchanged = |name: &String| seen.get(name).map(|(_, is_unchanged)| *is_unchanged);
        let keep_unused = unused.len() <= found
            && directories.keys().all(|name| is_unchanged(name) != Some(false));
        let old = directories.iter().filter(|(name, _)| is_unchanged(name).unwrap_or(keep_unused));
        let directories: HashMap<&String, &FileStat> = old.chain(new).collect();
        // A record that was read again replaces the cached one.
        let unused = unused.into_iter().filter(|_| keep_unused);
        let records: HashMap<&Key, &CachedRecord> = unused.chain(used).chain(&*read).collect();
        table.insert(&self.key_of(task), &(), &(directories, records));
    }

    /// Returns the outputs of a call, if its record is cached.
    pub(crate) fn find(&self, name: &str, call: Call<'_>) -> Result<Option<Box<[Published]>>> {
        if self.storage.unrecorded == Unrecorded::Refuse {
            // The cache does not say which calls were adopted.
            return Ok(None);
        }
        let current = self.storage.record_cache.read().unwrap_or_else(PoisonError::into_inner);
        let Some(current) = current.as_ref() else { return Ok(None) };
        let is_unchanged = self.is_unchanged(name, current);
        if current.records.is_empty() {
            return Ok(None);
        }
        let record = current.records.get(&key(name, call.version, call.inputs));
        let Some(CachedRecord { stat, outputs, used }) = record else { return Ok(None) };
        let is_current = is_unchanged
            || self
                .storage
                .root
                .disk
                .metadata(&self.storage.path(name))?
                .is_some_and(|now| now.stat() == *stat);
        if !is_current {
            return Ok(None);
        }
        used.store(true, Ordering::Relaxed);
        let outputs = outputs.iter();
        Ok(Some(outputs.map(|&(digest, stamp)| Published { digest, stamp }).collect()))
    }

    /// Whether the stat of a record's directory is the cached one. It is read once.
    fn is_unchanged(&self, record: &str, current: &RecordCache) -> bool {
        let directory = record.rsplit_once('/').map_or("", |(directory, _)| directory);
        let mut seen = lock(&current.seen);
        if let Some((_, is_unchanged)) = seen.get(directory) {
            return *is_unchanged;
        }
        let now = self.directory_stat(directory);
        let is_unchanged = now.is_some() && now.as_ref() == current.directories.get(directory);
        seen.insert(directory.to_owned(), (now, is_unchanged));
        is_unchanged
    }

    /// Inserts a record that was read at this time or later, unless it is racy.
    pub(crate) fn insert(
        &self,
        name: &str,
        stat: FileStat,
        taken: SystemTime,
        record: &CallRecord,
    ) {
        let current = self.storage.record_cache.read().unwrap_or_else(PoisonError::into_inner);
        let Some(current) = current.as_ref().filter(|_| !stat.is_racy(taken)) else { return };
        let outputs = record.outputs.iter().map(|it| (it.digest, it.stamp)).collect();
        let key = key(name, record.version(), &record.inputs);
        let record = CachedRecord { stat, outputs, used: AtomicBool::new(true) };
        lock(&current.read).insert(key, record);
    }

    /// The key of a task's records.
    fn key_of<'t>(&'t self, task: &'t TaskName) -> [&'t [u8]; 2] {
        [self.storage.root.disk.root().as_os_str().as_bytes(), task.as_str().as_bytes()]
    }

    /// The stat of a directory; `None` if it does not exist.
    fn directory_stat(&self, directory: &str) -> Option<FileStat> {
        self.storage.root.disk.directory_stat(&self.storage.path(directory)).ok()?
    }
}

fn key(name: &str, version: ComputationVersion<'_>, inputs: &[Digest]) -> Key {
    let ComputationVersion { computation: _, commit, tree, dirty } = version;
    let mut bytes = Vec::with_capacity((3 + inputs.len()) * size_of::<Digest>() + name.len());
    // The computation is part of the name.
    bytes.extend_from_slice(if dirty { b"dirty" } else { commit.full().as_bytes() });
    bytes.extend_from_slice(tree.full().as_bytes());
    for Digest { sha1, blake3, size, bytes: directory } in inputs {
        bytes.extend_from_slice(sha1.bytes());
        bytes.extend_from_slice(blake3.bytes());
        bytes.extend_from_slice(&size.to_le_bytes());
        bytes.push(u8::from(directory.is_some()));
    }
    bytes.extend_from_slice(name.as_bytes());
    Blake3::hash_bytes(&bytes)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;
    use crate::records::Origin;
    use crate::{Durability, Found, ResultName};
    use ce_files::cache::Cache;

    /// A storage with the results of some calls, and a cache.
    struct CachedResults {
        dir: TempDir,
        inputs: Vec<[Digest; 1]>,
    }

    fn place(calls: usize) -> CachedResults {
        let inputs = (0..calls).map(|number| [Digest::hash_bytes(number.to_string().as_bytes())]);
        let place = CachedResults { dir: tempfile::tempdir().unwrap(), inputs: inputs.collect() };
        let storage = place.dir.path().join("storage");
        let storage = Storage::open(&storage, Unrecorded::Adopt, Durability::Unsynced).unwrap();
        for at in 0..calls {
            let (output, digest) = (place.output(at), Digest::hash_bytes(b"text"));
            fs::create_dir_all(output.parent().unwrap()).unwrap();
            fs::write(&output, "text").unwrap();
            let modified_ns = FileStat::read(&output).unwrap().modified_ns;
            let outputs = vec![Published { digest, stamp: Stamp::Modified(modified_ns) }];
            let record = place.call(at).record(outputs, Origin::Adopted);
            storage.records().put(&place.name(at).record(), &record).unwrap();
        }
        // The directory gets an old time, so that each later change of it shows in its time.
        let records = File::open(place.record(0).parent().unwrap()).unwrap();
        records.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        place
    }

    static NAMES: [String; 1] = [String::new()];

    impl CachedResults {
        fn open(&self, caching: bool) -> Storage {
            let cache = caching.then(|| Cache::at(self.dir.path().join("cache")));
            let storage = self.dir.path().join("storage");
            Storage::inspect(&storage, Unrecorded::Adopt).unwrap().with_cache(cache)
        }

        fn call(&self, at: usize) -> Call<'_> {
            Call {
                version: ComputationVersion::example(),
                inputs: &self.inputs[at],
                outputs: &NAMES,
            }
        }

        fn name(&self, at: usize) -> ResultName {
            match self.open(false).calls().find(self.call(at)).unwrap() {
                Found::Hit(outputs) | Found::Away(outputs) | Found::Archived(outputs) => {
                    outputs.name
                }
                Found::Absent { name, .. } | Found::Unsettled(name) => name,
            }
        }

        fn record(&self, at: usize) -> PathBuf {
            self.open(false).path(&self.name(at).record())
        }

        fn output(&self, at: usize) -> PathBuf {
            self.open(false).path(&self.name(at).output(0))
        }

        /// Finds all calls in an evaluation that begins `later`. Returns the cache.
        fn evaluate(&self, later: Duration) -> Option<RecordCache> {
            self.evaluate_and(later, || ())
        }

        /// Does the same, and something at the end of the evaluation.
        fn evaluate_and(&self, later: Duration, act: impl FnOnce()) -> Option<RecordCache> {
            let (storage, task) = (self.open(true), "t".parse().unwrap());
            storage.cached_records().load(&task);
            let taken = SystemTime::now() + later;
            storage.record_cache.write().unwrap().as_mut().unwrap().opened = taken;
            for at in 0..self.inputs.len() {
                let name = self.name(at).record();
                if storage.cached_records().find(&name, self.call(at)).unwrap().is_none() {
                    let (stat, record) = storage.records().read_at(&name).unwrap().unwrap();
                    storage.cached_records().insert(&name, stat, taken, &record.unwrap());
                }
            }
            act();
            storage.cached_records().save();
            storage.cached_records().load(&task);
            storage.record_cache.write().unwrap().take().filter(|it| !it.records.is_empty())
        }

        /// Finds each call, with the cache or without.
        fn find(&self, caching: bool) -> Vec<Found> {
            let storage = self.open(caching);
            storage.cached_records().load(&"t".parse().unwrap());
            (0..self.inputs.len()).map(|at| storage.calls().find(self.call(at)).unwrap()).collect()
        }
    }

    const HOUR: Duration = Duration::from_secs(3600);

    /// Changes a file in place without changing its size or time.
    fn alter(path: &Path) {
        let (known, modified) =
            (FileStat::read(path).unwrap(), path.metadata().unwrap().modified());
        let modified = modified.unwrap();
        let text = fs::read_to_string(path).unwrap();
        // Until that shows by the clock.
        while FileStat::read(path).unwrap() == known {
            fs::write(path, text.replace('t', "T")).unwrap();
            File::open(path).unwrap().set_modified(modified).unwrap();
        }
    }

    #[test]
    fn every_change_of_a_record_is_noticed() {
        let place = place(MIN_RECORDS);
        let kept = place.evaluate(HOUR).unwrap();
        assert_eq!((kept.records.len(), kept.directories.len()), (MIN_RECORDS, 1));
        assert_eq!(place.find(true), place.find(false));

        fs::remove_file(place.record(1)).unwrap();
        fs::remove_file(place.record(2)).unwrap();
        fs::copy(place.record(3), place.record(2)).unwrap();
        alter(&place.record(4));
        fs::remove_file(place.output(5)).unwrap();
        fs::write(place.output(6), "tex").unwrap();
        fs::write(place.output(7), "best").unwrap();
        File::open(place.output(8)).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let found = place.find(true);
        assert_eq!(found, place.find(false));
        assert_eq!(
            (0..MIN_RECORDS).filter(|at| !matches!(found[*at], Found::Hit(_))).collect::<Vec<_>>(),
            [1, 2, 4, 5, 6, 7]
        );
    }

    #[test]
    fn a_record_in_a_directory_that_looks_as_it_did_is_not_looked_at() {
        let place = place(MIN_RECORDS);
        place.evaluate(HOUR).unwrap();
        alter(&place.record(0));
        assert!(matches!(place.find(true)[0], Found::Hit(_)));
        File::create(place.record(0).with_file_name("new")).unwrap();
        assert!(matches!(place.find(true)[0], Found::Absent { .. }));
    }

    #[test]
    fn inputs_that_share_twelve_digits_are_told_apart() {
        let mut place = place(MIN_RECORDS);
        place.evaluate(HOUR).unwrap();
        let mut other = place.inputs[0][0];
        other.size += 1;
        place.inputs[0] = [other];
        let found = place.find(true);
        assert!(found[0] == place.find(false)[0] && matches!(found[0], Found::Absent { .. }));
    }

    #[test]
    fn racy_records_and_few_records_are_not_cached() {
        assert!(place(MIN_RECORDS).evaluate(Duration::ZERO).is_none());
        assert!(place(MIN_RECORDS - 1).evaluate(HOUR).is_none());
    }

    #[test]
    fn new_records_are_cached_as_soon_as_their_directory_is_not_racy() {
        let mut place = place(MIN_RECORDS + 1);
        let last = place.inputs.pop().unwrap();
        place.evaluate(HOUR).unwrap();
        place.inputs.push(last);
        File::create(place.record(0).with_file_name("new")).unwrap();
        assert_eq!(place.evaluate(Duration::ZERO).unwrap().records.len(), MIN_RECORDS);
        assert_eq!(place.evaluate(HOUR).unwrap().records.len(), MIN_RECORDS + 1);
    }

    #[test]
    fn unused_records_are_kept_unless_they_may_have_changed() {
        let mut place = place(2 * MIN_RECORDS);
        let others = place.inputs.split_off(MIN_RECORDS);
        place.evaluate(HOUR).unwrap();
        let some = std::mem::replace(&mut place.inputs, others);
        assert_eq!(place.evaluate(HOUR).unwrap().records.len(), 2 * MIN_RECORDS);
        place.inputs = some;
        assert_eq!(place.evaluate(HOUR).unwrap().records.len(), 2 * MIN_RECORDS);
        File::create(place.record(0).with_file_name("new")).unwrap();
        assert_eq!(place.evaluate(HOUR).unwrap().records.len(), MIN_RECORDS);
    }

    #[test]
    fn a_directory_that_changes_meanwhile_is_not_cached() {
        let place = place(MIN_RECORDS);
        assert!(!place.dir.path().join("cache").exists(), "nothing is cached yet");
        let new = place.record(0).with_file_name("new");
        let kept = place.evaluate_and(HOUR, || drop(File::create(new).unwrap())).unwrap();
        assert_eq!((kept.records.len(), kept.directories.len()), (MIN_RECORDS, 0));
    }
}
