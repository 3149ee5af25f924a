//! What is kept, what is believed, and what is forgotten.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::cache::Cache;
use crate::storage::record::Origin;
use crate::storage::{Durability, Found, ResultName};
use crate::workflow::Computation;

/// A storage with the results of some calls, and a cache.
struct Place {
    dir: TempDir,
    computation: Computation,
    inputs: Vec<[Digest; 1]>,
}

fn place(calls: usize) -> Place {
    let computation = Computation::example();
    let inputs = (0..calls).map(|number| [Digest::of(number.to_string().as_bytes())]);
    let place = Place { dir: tempfile::tempdir().unwrap(), computation, inputs: inputs.collect() };
    let storage = place.dir.path().join("storage");
    let storage = Storage::open(&storage, Unrecorded::Adopt, Durability::Unsynced).unwrap();
    for at in 0..calls {
        let (output, digest) = (place.output(at), Digest::of(b"text"));
        fs::create_dir_all(output.parent().unwrap()).unwrap();
        fs::write(&output, "text").unwrap();
        let modified_ns = Stamp::of(&output.metadata().unwrap()).modified_ns;
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
        Storage::inspect(&storage, Unrecorded::Adopt).unwrap().remembering(cache)
    }

    fn call(&self, at: usize) -> Call<'_> {
        Call {
            version: Version::of(&self.computation),
            inputs: &self.inputs[at],
            outputs: self.computation.outputs.len(),
        }
    }

    fn name(&self, at: usize) -> ResultName {
        match self.open(false).find(self.call(at)).unwrap() {
            Found::Hit(outputs) => outputs.name,
            Found::Absent { name, .. } | Found::Unsettled(name) => name,
        }
    }

    fn record(&self, at: usize) -> PathBuf {
        self.open(false).path(&self.name(at).record())
    }

    fn output(&self, at: usize) -> PathBuf {
        self.open(false).path(&self.name(at).output(0))
    }

    /// Finds all calls in an evaluation that began so long from now; returns what is remembered.
    fn evaluate(&self, later: Duration) -> Option<Known> {
        self.evaluate_and(later, || ())
    }

    /// Does the same, and something at the end of the evaluation.
    fn evaluate_and(&self, later: Duration, act: impl FnOnce()) -> Option<Known> {
        let (storage, task) = (self.open(true), "t".parse().unwrap());
        storage.recall_records(&task);
        let taken = SystemTime::now() + later;
        storage.recalled.write().unwrap().as_mut().unwrap().began = taken;
        for at in 0..self.inputs.len() {
            let name = self.name(at).record();
            if storage.said(&name, self.call(at)).unwrap().is_none() {
                let (stamp, record) = storage.record_at(&name).unwrap().unwrap();
                storage.note_record(&name, stamp, taken, &record.unwrap());
            }
        }
        act();
        storage.remember_records();
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
    let is_absent = |at: &usize| !matches!(found[*at], Found::Hit(_));
    assert_eq!((0..WORTH).filter(is_absent).collect::<Vec<_>>(), [1, 2, 4, 5, 6, 7]);
}

#[test]
fn a_record_in_a_directory_that_looks_as_it_did_is_not_looked_at() {
    let place = place(WORTH);
    place.evaluate(HOUR).unwrap();
    alter(&place.record(0));
    assert!(matches!(place.find(true)[0], Found::Hit(_)));
    File::create(place.record(0).with_file_name("new")).unwrap();
    assert!(matches!(place.find(true)[0], Found::Absent { .. }));
}

#[test]
fn inputs_that_share_twelve_digits_are_told_apart() {
    let mut place = place(WORTH);
    place.evaluate(HOUR).unwrap();
    let mut other = place.inputs[0][0];
    other.size += 1;
    place.inputs[0] = [other];
    let found = place.find(true);
    assert!(found[0] == place.find(false)[0] && matches!(found[0], Found::Absent { .. }));
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

#[test]
fn what_was_not_asked_for_is_kept_unless_it_may_have_changed() {
    let mut place = place(2 * WORTH);
    let others = place.inputs.split_off(WORTH);
    place.evaluate(HOUR).unwrap();
    let some = std::mem::replace(&mut place.inputs, others);
    assert_eq!(place.evaluate(HOUR).unwrap().records.len(), 2 * WORTH);
    place.inputs = some;
    assert_eq!(place.evaluate(HOUR).unwrap().records.len(), 2 * WORTH);
    File::create(place.record(0).with_file_name("new")).unwrap();
    assert_eq!(place.evaluate(HOUR).unwrap().records.len(), WORTH);
}

#[test]
fn a_directory_that_changes_meanwhile_is_not_remembered() {
    let place = place(WORTH);
    assert!(!place.dir.path().join("cache").exists(), "nothing is known yet");
    let new = place.record(0).with_file_name("new");
    let kept = place.evaluate_and(HOUR, || drop(File::create(new).unwrap())).unwrap();
    assert_eq!((kept.records.len(), kept.directories.len()), (WORTH, 0));
}
