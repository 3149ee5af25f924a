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

use super::call::Call;
use super::{Storage, Unrecorded};
use crate::disk::{Result, lock};
use crate::layout::ComputationVersion;
use crate::records::{CallRecord, Published, Stamp};
use ce_files::cache::{FileStat, Table};
use ce_model::digest::{Blake3, Digest};
use ce_model::task::name::TaskName;

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
    /// The digest and the stamp of each output.
    outputs: Box<[(Digest, Stamp)]>,
    /// Whether it was a hit.
    #[serde(skip)]
    used: AtomicBool,
}

impl Storage {
    /// Loads the cached records of a task's calls, and uses them from now on.
    pub fn load_record_cache(&self, task: &TaskName) {
        let mut current = self.record_cache.write().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_none_or(|current| current.task != *task)
            && let Some(cache) = &self.ingest.cache
            && let Some(table) = Table::open(cache, "records", MAX_TASKS).of_this_program()
        {
            let opened = SystemTime::now();
            let entry = table.look_up(&self.record_key(task), |()| true).hit();
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
    pub fn save_record_cache(&self) {
        let current = self.record_cache.write().unwrap_or_else(PoisonError::into_inner).take();
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
        let (used, unused): (Vec<_>, Vec<_>) =
            records.iter().partition(|(_, record)| record.used.load(Ordering::Relaxed));
        let found = used.len() + read.len();
        if found < MIN_RECORDS || (read.len() <= found / MIN_FOUND_PER_MISS && new.is_empty()) {
            return;
        }
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
        table.insert(&self.record_key(task), &(), &(directories, records));
    }

    /// Returns the outputs of a call, if its record is cached.
    pub(crate) fn cached_record(
        &self,
        name: &str,
        call: Call<'_>,
    ) -> Result<Option<Vec<Published>>> {
        if self.unrecorded == Unrecorded::Refuse {
            // The cache does not say which calls were adopted.
            return Ok(None);
        }
        let current = self.record_cache.read().unwrap_or_else(PoisonError::into_inner);
        let Some(current) = current.as_ref() else { return Ok(None) };
        let is_unchanged = self.is_unchanged(name, current);
        if current.records.is_empty() {
            return Ok(None);
        }
        let record = current.records.get(&key(name, call.version, call.inputs));
        let Some(CachedRecord { stat, outputs, used }) = record else { return Ok(None) };
        let is_current = is_unchanged
            || self.root.disk.metadata(&self.path(name))?.is_some_and(|now| now.stat() == *stat);
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
    pub(crate) fn cache_record(
        &self,
        name: &str,
        stat: FileStat,
        taken: SystemTime,
        record: &CallRecord,
    ) {
        let current = self.record_cache.read().unwrap_or_else(PoisonError::into_inner);
        let Some(current) = current.as_ref().filter(|_| !stat.is_racy(taken)) else { return };
        let outputs = record.outputs.iter().map(|it| (it.digest, it.stamp)).collect();
        let key = key(name, record.version(), &record.inputs);
        let record = CachedRecord { stat, outputs, used: AtomicBool::new(true) };
        lock(&current.read).insert(key, record);
    }

    /// The key of a task's records.
    fn record_key<'a>(&'a self, task: &'a TaskName) -> [&'a [u8]; 2] {
        [self.root.disk.root().as_os_str().as_bytes(), task.as_str().as_bytes()]
    }

    /// The stat of a directory; `None` if it does not exist.
    fn directory_stat(&self, directory: &str) -> Option<FileStat> {
        self.root.disk.directory_stat(&self.path(directory)).ok()?
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
    Blake3::of(&bytes)
}

#[cfg(test)]
mod tests;
