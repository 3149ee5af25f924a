//! Insertion, validation and eviction of cached records.

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
    let inputs = (0..calls).map(|number| [Digest::of(number.to_string().as_bytes())]);
    let place = CachedResults { dir: tempfile::tempdir().unwrap(), inputs: inputs.collect() };
    let storage = place.dir.path().join("storage");
    let storage = Storage::open(&storage, Unrecorded::Adopt, Durability::Unsynced).unwrap();
    for at in 0..calls {
        let (output, digest) = (place.output(at), Digest::of(b"text"));
        fs::create_dir_all(output.parent().unwrap()).unwrap();
        fs::write(&output, "text").unwrap();
        let modified_ns = FileStat::of(&output).unwrap().modified_ns;
        let outputs = vec![Published { digest, stamp: Stamp::Modified(modified_ns) }];
        let record = place.call(at).record(outputs, Origin::Adopted);
        storage.records().put(&place.name(at).record(), &record).unwrap();
    }
    // Whatever happens there shows by the clock.
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
        Call { version: ComputationVersion::example(), inputs: &self.inputs[at], outputs: &NAMES }
    }

    fn name(&self, at: usize) -> ResultName {
        match self.open(false).find(self.call(at)).unwrap() {
            Found::Hit(outputs) | Found::Away(outputs) | Found::Archived(outputs) => outputs.name,
            Found::Absent { name, .. } | Found::Unsettled(name) => name,
        }
    }

    fn record(&self, at: usize) -> PathBuf {
        self.open(false).path(&self.name(at).record())
    }

    fn output(&self, at: usize) -> PathBuf {
        self.open(false).path(&self.name(at).output(0))
    }

    /// Finds all calls in an evaluation that began so long from now; returns what is cached.
    fn evaluate(&self, later: Duration) -> Option<RecordCache> {
        self.evaluate_and(later, || ())
    }

    /// Does the same, and something at the end of the evaluation.
    fn evaluate_and(&self, later: Duration, act: impl FnOnce()) -> Option<RecordCache> {
        let (storage, task) = (self.open(true), "t".parse().unwrap());
        storage.load_record_cache(&task);
        let taken = SystemTime::now() + later;
        storage.record_cache.write().unwrap().as_mut().unwrap().opened = taken;
        for at in 0..self.inputs.len() {
            let name = self.name(at).record();
            if storage.cached_record(&name, self.call(at)).unwrap().is_none() {
                let (stat, record) = storage.records().read_at(&name).unwrap().unwrap();
                storage.cache_record(&name, stat, taken, &record.unwrap());
            }
        }
        act();
        storage.save_record_cache();
        storage.load_record_cache(&task);
        storage.record_cache.write().unwrap().take().filter(|it| !it.records.is_empty())
    }

    /// Finds each call, with the cache or without.
    fn find(&self, caching: bool) -> Vec<Found> {
        let storage = self.open(caching);
        storage.load_record_cache(&"t".parse().unwrap());
        (0..self.inputs.len()).map(|at| storage.find(self.call(at)).unwrap()).collect()
    }
}

const HOUR: Duration = Duration::from_secs(3600);

/// Changes a file in place, but neither its size nor its time.
fn alter(path: &Path) {
    let (known, modified) = (FileStat::of(path).unwrap(), path.metadata().unwrap().modified());
    let modified = modified.unwrap();
    let text = fs::read_to_string(path).unwrap();
    // Until that shows by the clock.
    while FileStat::of(path).unwrap() == known {
        fs::write(path, text.replace('t', "T")).unwrap();
        File::open(path).unwrap().set_modified(modified).unwrap();
    }
}

#[test]
fn whatever_changes_is_seen() {
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
    let is_absent = |at: &usize| !matches!(found[*at], Found::Hit(_));
    assert_eq!((0..MIN_RECORDS).filter(is_absent).collect::<Vec<_>>(), [1, 2, 4, 5, 6, 7]);
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
