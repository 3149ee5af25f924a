//! What records say that were read before: what looks as it did is not read again.
//!
//! It is kept in the user's cache for the calls of a task that were found in a storage. The name of
//! a record cannot come to mean another file, nor be taken away, without a change of the directory
//! that holds it. So one look at that stands for many at records.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::find::Call;
use super::record::{CallRecord, Published};
use super::version::{OfVersion, Version};
use super::{Result, Storage, Unrecorded, lock};
use crate::cache::Stamp;
use crate::digest::{Blake3, Digest};
use crate::name::TaskName;

/// Where they are in the cache.
const RECORDS: &str = "records";

/// Fewer records are read as fast as they are remembered.
const WORTH: usize = 256;

/// What part of the records may have to be read until all of them are remembered anew: one of so many.
const PART: usize = 8;

/// How many tasks have their records remembered.
const MOST: usize = 32;

/// What is known of the records of a task's calls while that is evaluated.
#[derive(Debug)]
pub(super) struct Recalled {
    task: TaskName,
    began: SystemTime,
    known: Known,
    learned: Mutex<Learned>,
}

/// What is kept.
#[derive(Debug, Default, Deserialize)]
struct Known {
    directories: HashMap<String, Directory>,
    records: HashMap<Key, Said>,
}

/// A directory of records.
#[derive(Debug, Deserialize, Serialize)]
struct Directory {
    stamp: Stamp,
    /// Whether it looks as it did, once that was asked.
    #[serde(skip)]
    steady: OnceLock<bool>,
}

#[derive(Debug, Default)]
struct Learned {
    /// Directories that do not look as they did, or are not known: how they looked before any record
    /// in them was read.
    directories: HashMap<String, Option<Stamp>>,
    records: HashMap<Key, Said>,
}

/// What a call is known by: the hash of its record's name and of its inputs.
type Key = Blake3;

/// What the record of a call said.
#[derive(Debug, Deserialize, Serialize)]
struct Said {
    /// What the record was when it was read.
    record: Stamp,
    /// What each output contains, and when it was last written.
    outputs: Box<[(Digest, i64)]>,
    /// Whether it was asked for.
    #[serde(skip)]
    used: AtomicBool,
}

impl Storage {
    /// Lets it believe what the records of a task's calls said the last time, until they change.
    pub fn recall_records(&self, task: &TaskName) {
        let mut recalled = self.recalled.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(cache) = self.intake.cache()
            && recalled.as_ref().is_none_or(|recalled| recalled.task != *task)
        {
            let (task, began) = (task.clone(), SystemTime::now());
            let known = cache.recall(RECORDS, &self.place_of(&task)).unwrap_or_default();
            *recalled = Some(Recalled { task, began, known, learned: Mutex::default() });
        }
    }

    /// Remembers what the records said that were found since, if enough of that is not remembered yet.
    pub fn remember_records(&self) {
        let recalled = self.recalled.write().unwrap_or_else(PoisonError::into_inner).take();
        let Some((cache, recalled)) = self.intake.cache().zip(recalled) else { return };
        let Recalled { task, began, known, learned } = recalled;
        let learned = learned.into_inner().unwrap_or_else(PoisonError::into_inner);
        let settled = self.settled(&learned, began);
        let (used, rest): (Vec<_>, Vec<_>) =
            known.records.iter().partition(|(_, said)| said.used.load(Ordering::Relaxed));
        let found = used.len() + learned.records.len();
        let news = learned.records.len() > found / PART || !settled.is_empty();
        if found < WORTH || !news {
            return;
        }
        // What was not asked for may be of another version, or of other inputs. It is not known whether
        // it is in a directory that has changed.
        let asked = |it: &Directory| it.steady.get().copied();
        let keeps_rest = rest.len() <= found
            && known.directories.values().all(|directory| asked(directory) != Some(false));
        let steady = known.directories.iter().filter(|(_, it)| asked(it).unwrap_or(keeps_rest));
        let settled = settled.iter().map(|(name, directory)| (*name, directory));
        let directories: HashMap<&String, &Directory> = steady.chain(settled).collect();
        // What was read last is what counts.
        let rest = rest.into_iter().filter(|_| keeps_rest);
        let records: HashMap<&Key, &Said> = rest.chain(used).chain(&learned.records).collect();
        cache.remember(RECORDS, &self.place_of(&task), &(directories, records), MOST);
    }

    /// The directories that look as they did before any record in them was read, and would not if they
    /// had been changed since.
    fn settled<'a>(&self, learned: &'a Learned, began: SystemTime) -> Vec<(&'a String, Directory)> {
        let settled = |(name, before): (&'a String, &Option<Stamp>)| {
            let stamp = before.filter(|it| it.settled(began) && self.look(name) == Some(*it))?;
            Some((name, Directory { stamp, steady: OnceLock::new() }))
        };
        learned.directories.iter().filter_map(settled).collect()
    }

    /// Returns the outputs of a call that its record tells, if that is remembered.
    pub(super) fn said(&self, name: &str, call: Call<'_>) -> Result<Option<Vec<Published>>> {
        if self.unrecorded == Unrecorded::Refuse {
            // What is remembered does not say what was adopted.
            return Ok(None);
        }
        let recalled = self.recalled.read().unwrap_or_else(PoisonError::into_inner);
        let Some(recalled) = recalled.as_ref() else { return Ok(None) };
        let is_steady = self.is_steady(recalled, directory(name));
        let records = &recalled.known.records;
        if records.is_empty() {
            return Ok(None);
        }
        let said = records.get(&key(name, call.version, call.inputs));
        let Some(Said { record, outputs, used }) = said else { return Ok(None) };
        if !is_steady {
            let now = self.disk.metadata(&self.path(name))?;
            if now.is_none_or(|now| now.stamp() != *record) {
                return Ok(None);
            }
        }
        used.store(true, Ordering::Relaxed);
        let published = |&(digest, modified_ns): &_| Published { digest, modified_ns };
        Ok(Some(outputs.iter().map(published).collect()))
    }

    /// Whether a directory of records looks as it did. If it does not, how it looks now is noted.
    fn is_steady(&self, recalled: &Recalled, directory: &str) -> bool {
        let steady =
            |it: &Directory| *it.steady.get_or_init(|| self.look(directory) == Some(it.stamp));
        if recalled.known.directories.get(directory).is_some_and(steady) {
            return true;
        }
        let mut learned = lock(&recalled.learned);
        if !learned.directories.contains_key(directory) {
            learned.directories.insert(directory.to_owned(), self.look(directory));
        }
        false
    }

    /// Notes what a record says that was read at that time or later, if a change since would show.
    pub(super) fn note_record(
        &self,
        name: &str,
        stamp: Stamp,
        taken: SystemTime,
        record: &CallRecord,
    ) {
        let recalled = self.recalled.read().unwrap_or_else(PoisonError::into_inner);
        let Some(recalled) = recalled.as_ref().filter(|_| stamp.settled(taken)) else { return };
        let outputs = record.outputs.iter().map(|it| (it.digest, it.modified_ns)).collect();
        let (key, used) = (key(name, record.version(), &record.inputs), AtomicBool::new(true));
        let said = Said { record: stamp, outputs, used };
        lock(&recalled.learned).records.insert(key, said);
    }

    /// What the records of a task's calls are known by in the cache.
    fn place_of<'a>(&'a self, task: &'a TaskName) -> [&'a [u8]; 2] {
        [self.disk.root().as_os_str().as_bytes(), task.as_str().as_bytes()]
    }

    /// What a directory looks like now, if it is there.
    fn look(&self, directory: &str) -> Option<Stamp> {
        self.disk.directory_stamp(&self.path(directory)).ok()?
    }
}

/// The directory of a record.
fn directory(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(directory, _)| directory)
}

fn key(name: &str, version: Version<'_>, inputs: &[Digest]) -> Key {
    let Version { computation: _, commit, tree, dirty } = version;
    let mut bytes = Vec::with_capacity((3 + inputs.len()) * size_of::<Digest>() + name.len());
    // The name says which computation.
    bytes.extend_from_slice(if dirty { b"dirty" } else { commit.full().as_bytes() });
    bytes.extend_from_slice(tree.full().as_bytes());
    for Digest { sha1, blake3, size } in inputs {
        bytes.extend_from_slice(sha1.bytes());
        bytes.extend_from_slice(blake3.bytes());
        bytes.extend_from_slice(&size.to_le_bytes());
    }
    bytes.extend_from_slice(name.as_bytes());
    Blake3::of(&bytes)
}

#[cfg(test)]
mod tests;
