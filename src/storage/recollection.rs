//! What records say that were read before: what looks as it did is not read again.
//!
//! It is kept in the user's cache for the calls of a task that were found in a storage. The name of
//! a record cannot come to mean another file, nor be taken away, without a change of the directory
//! that holds it. So one look at that stands for many at records.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::find::Call;
use super::record::{CallRecord, Published};
use super::{Result, Storage, disk, lock};
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

/// What was remembered of records when an evaluation began, and what was learned since.
#[derive(Debug, Default)]
pub(super) struct Recollection {
    known: RwLock<Option<Known>>,
    learned: Mutex<Learned>,
}

#[derive(Debug)]
struct Known {
    /// When that was.
    began: SystemTime,
    /// Directories of records that look as they did.
    steady: BTreeSet<String>,
    records: HashMap<Key, Said>,
}

#[derive(Debug, Default)]
struct Learned {
    /// Directories in which records were looked for.
    directories: BTreeSet<String>,
    records: HashMap<Key, Said>,
}

/// What is kept.
#[derive(Default, Deserialize)]
struct Kept {
    directories: BTreeMap<String, Stamp>,
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

impl Learned {
    fn looked_in(&mut self, directory: &str) {
        if !self.directories.contains(directory) {
            self.directories.insert(directory.to_owned());
        }
    }
}

impl Storage {
    /// Lets it believe what the records of a task's calls said the last time, until they change.
    pub fn recall_records(&self, task: &TaskName) {
        let Some(cache) = self.intake.cache() else { return };
        let began = SystemTime::now();
        let Kept { directories, records } =
            cache.recall(RECORDS, &self.place_of(task)).unwrap_or_default();
        let steady = directories.into_iter().filter(|(dir, then)| self.look(dir) == Some(*then));
        let known = Known { began, steady: steady.map(|(dir, _)| dir).collect(), records };
        *self.recollection.known.write().unwrap_or_else(PoisonError::into_inner) = Some(known);
        *lock(&self.recollection.learned) = Learned::default();
    }

    /// Remembers what the records said that were found, if enough of that is not remembered yet.
    pub fn remember_records(&self, task: &TaskName) {
        let known = self.recollection.known.read().unwrap_or_else(PoisonError::into_inner);
        let Some((cache, known)) = self.intake.cache().zip(known.as_ref()) else { return };
        let learned = lock(&self.recollection.learned);
        let used = known.records.iter().filter(|(_, said)| said.used.load(Ordering::Relaxed));
        let records: HashMap<&Key, &Said> = used.chain(&learned.records).collect();
        let settled = |dir: &String| {
            let now = self.look(dir).filter(|now| now.settled(known.began))?;
            Some((dir.clone(), now))
        };
        let directories = known.steady.union(&learned.directories);
        let directories: BTreeMap<_, _> = directories.filter_map(settled).collect();
        let news = learned.records.len() > records.len() / PART
            || directories.keys().any(|dir| !known.steady.contains(dir));
        if news && records.len() >= WORTH {
            cache.remember(RECORDS, &self.place_of(task), &(directories, records), MOST);
        }
    }

    /// Returns the outputs of a call that its record tells, if that is remembered.
    pub(super) fn said(&self, name: &str, call: Call<'_>) -> Result<Option<Vec<Published>>> {
        let known = self.recollection.known.read().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = known.as_ref().filter(|known| !known.records.is_empty()) else {
            return Ok(None);
        };
        let said = known.records.get(&key(name, call.inputs));
        let Some(Said { record, outputs, used }) = said else { return Ok(None) };
        if !known.steady.contains(directory(name)) {
            let now = disk::metadata(&self.path(name))?;
            if now.is_none_or(|now| Stamp::of(&now) != *record) {
                return Ok(None);
            }
            lock(&self.recollection.learned).looked_in(directory(name));
        }
        used.store(true, Ordering::Relaxed);
        let published = |&(digest, modified_ns): &_| Published { digest, modified_ns };
        Ok(Some(outputs.iter().map(published).collect()))
    }

    /// Notes what a record says that was read at that time or later, if a change since would show.
    pub(super) fn note_record(
        &self,
        name: &str,
        stamp: Stamp,
        taken: SystemTime,
        record: &CallRecord,
    ) {
        if self.intake.cache().is_none() || !stamp.settled(taken) {
            return;
        }
        let outputs = record.outputs.iter().map(|it| (it.digest, it.modified_ns)).collect();
        let (key, used) = (key(name, &record.inputs), AtomicBool::new(true));
        let mut learned = lock(&self.recollection.learned);
        learned.looked_in(directory(name));
        learned.records.insert(key, Said { record: stamp, outputs, used });
    }

    /// What the records of a task's calls are known by in the cache.
    fn place_of<'a>(&'a self, task: &'a TaskName) -> [&'a [u8]; 2] {
        [self.root.as_os_str().as_bytes(), task.as_str().as_bytes()]
    }

    /// What a directory looks like now, if it is there.
    fn look(&self, directory: &str) -> Option<Stamp> {
        Some(Stamp::of(&disk::metadata(&self.path(directory)).ok()??))
    }
}

/// The directory of a record.
fn directory(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(directory, _)| directory)
}

fn key(name: &str, inputs: &[Digest]) -> Key {
    let mut bytes = Vec::with_capacity((1 + inputs.len()) * size_of::<Digest>() + name.len());
    for Digest { sha1, blake3, size } in inputs {
        bytes.extend_from_slice(sha1.bytes());
        bytes.extend_from_slice(blake3.bytes());
        bytes.extend_from_slice(&size.to_le_bytes());
    }
    bytes.extend_from_slice(name.as_bytes());
    Blake3::of(&bytes)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;
    use crate::cache::Cache;
    use crate::storage::record::Origin;
    use crate::storage::{Durability, Found, ResultName, Unrecorded};
    use crate::workflow::Computation;

    /// A storage with the results of some calls, and a cache.
    struct Place {
        dir: TempDir,
        computation: Computation,
        inputs: Vec<[Digest; 1]>,
    }

    fn place(calls: usize) -> Place {
        let computation = Computation {
            name: "it".parse().unwrap(),
            commit: "0".repeat(40).parse().unwrap(),
            tree: "1".repeat(40).parse().unwrap(),
            dirty: false,
            inputs: vec!["a".to_owned()],
            outputs: vec!["b".to_owned()],
            access: Default::default(),
            checked_out: None,
        };
        let inputs = (0..calls).map(|number| [Digest::of(number.to_string().as_bytes())]);
        let place =
            Place { dir: tempfile::tempdir().unwrap(), computation, inputs: inputs.collect() };
        let storage = place.dir.path().join("storage");
        let storage = Storage::open(&storage, Unrecorded::Refuse, Durability::Unsynced).unwrap();
        for at in 0..calls {
            let (output, digest) = (place.output(at), Digest::of(b"text"));
            fs::create_dir_all(output.parent().unwrap()).unwrap();
            fs::write(&output, "text").unwrap();
            let modified_ns = disk::modified_ns(&output.metadata().unwrap());
            let outputs = vec![Published { digest, modified_ns }];
            let record = storage.call_record(place.call(at), outputs, Origin::Adopted);
            storage.put_record(&place.name(at).record(), &record).unwrap();
        }
        // Whatever happens there shows by the clock.
        let records = File::open(place.record(0).parent().unwrap()).unwrap();
        records.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        place
    }

    impl Place {
        fn open(&self, remembering: bool) -> Storage {
            let cache = remembering.then(|| Cache::at(self.dir.path().join("cache")));
            let storage = self.dir.path().join("storage");
            Storage::inspect(&storage, Unrecorded::Refuse).unwrap().remembering(cache)
        }

        fn call(&self, at: usize) -> Call<'_> {
            Call { computation: &self.computation, inputs: &self.inputs[at] }
        }

        fn name(&self, at: usize) -> ResultName {
            match self.open(false).find(self.call(at)).unwrap() {
                Found::Hit(outputs) => outputs.name,
                Found::Absent(name) => name,
            }
        }

        fn record(&self, at: usize) -> PathBuf {
            self.open(false).path(&self.name(at).record())
        }

        fn output(&self, at: usize) -> PathBuf {
            self.open(false).path(&self.name(at).output(0))
        }

        /// Finds all calls in an evaluation that began so long from now; returns what is remembered.
        fn evaluate(&self, later: Duration) -> Option<Kept> {
            let (storage, task) = (self.open(true), "t".parse().unwrap());
            storage.recall_records(&task);
            let taken = SystemTime::now() + later;
            storage.recollection.known.write().unwrap().as_mut().unwrap().began = taken;
            for at in 0..self.inputs.len() {
                let name = self.name(at).record();
                if storage.said(&name, self.call(at)).unwrap().is_none() {
                    let (stamp, record) = storage.record_at(&name).unwrap().unwrap();
                    storage.note_record(&name, stamp, taken, &record.unwrap());
                }
            }
            storage.remember_records(&task);
            storage.intake.cache().unwrap().recall(RECORDS, &storage.place_of(&task))
        }

        /// Finds each call, with what is remembered or without.
        fn find(&self, remembering: bool) -> Vec<Found> {
            let storage = self.open(remembering);
            storage.recall_records(&"t".parse().unwrap());
            (0..self.inputs.len()).map(|at| storage.find(self.call(at)).unwrap()).collect()
        }
    }

    const HOUR: Duration = Duration::from_secs(3600);

    /// Changes a file in place, but neither its size nor its time.
    fn alter(path: &Path) {
        let known = path.metadata().unwrap();
        let text = fs::read_to_string(path).unwrap();
        // Until that shows by the clock.
        while Stamp::of(&path.metadata().unwrap()) == Stamp::of(&known) {
            fs::write(path, text.replace('t', "T")).unwrap();
            File::open(path).unwrap().set_modified(known.modified().unwrap()).unwrap();
        }
    }

    #[test]
    fn whatever_changes_is_seen() {
        let place = place(WORTH);
        let kept = place.evaluate(HOUR).unwrap();
        assert_eq!((kept.records.len(), kept.directories.len()), (WORTH, 1));
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
        let is_absent = |at: &usize| matches!(found[*at], Found::Absent(_));
        assert_eq!((0..WORTH).filter(is_absent).collect::<Vec<_>>(), [1, 2, 4, 5, 6, 7]);
    }

    #[test]
    fn a_record_in_a_directory_that_looks_as_it_did_is_not_looked_at() {
        let place = place(WORTH);
        place.evaluate(HOUR).unwrap();
        alter(&place.record(0));
        assert!(matches!(place.find(true)[0], Found::Hit(_)));
        File::create(place.record(0).with_file_name("new")).unwrap();
        assert!(matches!(place.find(true)[0], Found::Absent(_)));
    }

    #[test]
    fn inputs_that_share_twelve_digits_are_told_apart() {
        let mut place = place(WORTH);
        place.evaluate(HOUR).unwrap();
        let mut other = place.inputs[0][0];
        other.size += 1;
        place.inputs[0] = [other];
        let found = place.find(true);
        assert!(found[0] == place.find(false)[0] && matches!(found[0], Found::Absent(_)));
    }

    #[test]
    fn what_has_just_changed_and_what_is_little_is_not_remembered() {
        assert!(place(WORTH).evaluate(Duration::ZERO).is_none());
        assert!(place(WORTH - 1).evaluate(HOUR).is_none());
    }

    #[test]
    fn what_is_new_is_remembered_as_soon_as_its_directory_settles() {
        let mut place = place(WORTH + 1);
        let last = place.inputs.pop().unwrap();
        place.evaluate(HOUR).unwrap();
        place.inputs.push(last);
        File::create(place.record(0).with_file_name("new")).unwrap();
        assert_eq!(place.evaluate(Duration::ZERO).unwrap().records.len(), WORTH);
        assert_eq!(place.evaluate(HOUR).unwrap().records.len(), WORTH + 1);
    }
}
