//! Fetching on demand: a clone of a results repository gets outputs that are away, if it has pointers to their Git LFS
//! objects.
//!
//! Objects come from the clone itself, if `git lfs` has put them there, or from the repository, many at once: each start of `git lfs` takes
//! longer than a small object. Nothing is in its place before it was compared with the record.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use ce_git::{LfsPointer, LfsRemote, LfsStore, Prompts};
use ce_history::package::AbsentFile;
use ce_model::digest::Digest;
use ce_model::exit::Error as ExplainedError;
use ce_storage::{Durability, Entry, Outputs, Record, Storage, StorageError, large_name};

use crate::lfs::{LargeSource, at_once, has_size, is_readable, large};
use crate::repository::stored_size;
use crate::{ExchangeProgress, ResultsError};

/// The longest time after `git lfs` at which a signal arrives here, and the interval at which it is looked for.
const ARRIVES: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(5);

/// A value that is away in a clone of a results repository.
struct AwayValue {
    /// Its name in the storage.
    name: String,
    digest: Digest,
    from: ObjectOrigin,
}

/// The place from which a clone can take a value that is a Git LFS object.
enum ObjectOrigin {
    /// Its pointer.
    Pointer(LfsPointer),
    /// Its bytes, which `git lfs` has put into the place of the pointer.
    File(PathBuf),
}

impl ObjectOrigin {
    /// Finds the pointer or file that a clone has for a value, if any.
    fn find(storage: &Storage, digest: &Digest) -> Result<Option<Self>, ResultsError> {
        let path = storage.path(&large_name(digest));
        let Ok(metadata) = fs::symlink_metadata(&path) else { return Ok(None) };
        let text = match metadata.len() {
            len if metadata.is_file() && len <= LfsPointer::MAX => {
                fs::read(&path).map_err(|source| large(&path, source))?
            }
            _ => Vec::new(),
        };
        let pointer = LfsPointer::parse(&text);
        Ok(match pointer.filter(|it| it.size == stored_size(digest)) {
            Some(pointer) => Some(Self::Pointer(pointer)),
            None => has_size(&path, stored_size(digest)).then_some(Self::File(path)),
        })
    }
}

impl AwayValue {
    /// The missing values among these. `None` if a clone has neither a pointer nor a file for one of them.
    fn all(
        storage: &Storage,
        values: &[(String, Digest)],
    ) -> Result<Option<Vec<Self>>, ResultsError> {
        let mut away = Vec::new();
        for (name, digest) in values {
            if !storage.has(name)? {
                let Some(from) = ObjectOrigin::find(storage, digest)? else { return Ok(None) };
                away.push(Self { name: name.clone(), digest: *digest, from });
            }
        }
        Ok(Some(away))
    }

    const fn pointer(&self) -> Option<&LfsPointer> {
        match &self.from {
            ObjectOrigin::Pointer(pointer) => Some(pointer),
            ObjectOrigin::File(_) => None,
        }
    }

    /// Brings it from the clone itself. Returns whether the clone has it.
    fn bring_from_clone(&self, storage: &Storage) -> Result<bool, StorageError> {
        let object = match &self.from {
            ObjectOrigin::File(path) => Some(path.clone()),
            ObjectOrigin::Pointer(pointer) => {
                LfsStore::open(&storage.path("")).ok().map(|own| pointer.path(&own.objects()))
            }
        };
        match object.filter(|path| is_readable(path, stored_size(&self.digest))) {
            Some(object) => storage.values().bring(&self.name, &self.digest, &object),
            None => Ok(false),
        }
    }

    /// Brings it from the repository.
    fn bring(&self, storage: &Storage, source: &LargeSource) -> Result<(), ResultsError> {
        let Some(pointer) = self.pointer() else {
            return Err(self.lost("another file is in the place of its pointer".to_owned()));
        };
        let object = source.object(pointer).map_err(|why| self.lost(why))?;
        if storage.values().bring(&self.name, &self.digest, &object)? {
            return Ok(());
        }
        let (file, pointer) = (self.name.clone(), large_name(&self.digest));
        Err(ResultsError::WrongObject { file, pointer })
    }

    fn lost(&self, why: String) -> ResultsError {
        ResultsError::Lost { file: self.name.clone(), pointer: large_name(&self.digest), why }
    }
}

/// The outputs of a call, with their names in the storage.
fn named(outputs: &Outputs) -> Vec<(String, Digest)> {
    let files = outputs.files.iter().enumerate();
    files.map(|(number, file)| (outputs.name.output(number), file.digest)).collect()
}

/// Whether a clone of a results repository has a value as a Git LFS object that it can fetch.
pub fn is_fetched_on_demand(storage: &Storage, digest: &Digest) -> bool {
    ObjectOrigin::find(storage, digest).is_ok_and(|it| it.is_some())
}

/// Whether outputs of a call that are away would be fetched and all of them are files.
///
/// # Errors
///
/// Fails if the storage cannot be read.
pub fn can_fetch_files(storage: &Storage, outputs: &Outputs) -> Result<bool, ResultsError> {
    let away = AwayValue::all(storage, &named(outputs))?;
    Ok(away.is_some_and(|away| away.iter().all(|it| !it.digest.is_directory())))
}

/// Whether outputs of a call that are away can be fetched, or only an attempt shows it.
pub fn may_fetch(storage: &Storage, outputs: &Outputs) -> bool {
    AwayValue::all(storage, &named(outputs)).map_or(true, |away| away.is_some())
}

/// Brings the outputs of calls that are away in a clone of a results repository into their places. Returns whether the
/// outputs of a call are here, for as many of the first calls as are fetched at once. False if the clone lacks a
/// pointer to an output.
pub fn fetch_outputs(
    storage: &Storage,
    calls: &[&Outputs],
    prompts: Prompts,
) -> Vec<Result<bool, Arc<ResultsError>>> {
    let calls: Vec<_> = calls.iter().map(|outputs| named(outputs)).collect();
    fetch_values(storage, &calls, prompts)
}

/// Does the same for groups of values with their names in the storage. If nothing could be fetched, all have the same error.
pub fn fetch_values(
    storage: &Storage,
    groups: &[Vec<(String, Digest)>],
    prompts: Prompts,
) -> Vec<Result<bool, Arc<ResultsError>>> {
    let size = |values: &Vec<(String, Digest)>| values.iter().map(|it| stored_size(&it.1)).sum();
    let groups = &groups[..at_once(groups.iter().map(size))];
    let groups: Vec<_> = groups.iter().map(|values| lacking(storage, values)).collect();
    let lacking: Vec<&AwayValue> = groups.iter().flatten().flatten().flatten().collect();
    let source = lacking.first().map(|_| fetched(storage, &lacking, prompts).map_err(Arc::new));
    let bring = |values: &[AwayValue]| {
        values.iter().try_for_each(|value| match &source {
            Some(Ok(source)) => value.bring(storage, source).map_err(Arc::new),
            Some(Err(failed)) => Err(Arc::clone(failed)),
            None => Ok(()),
        })
    };
    let brought = |group: Result<Option<Vec<AwayValue>>, ResultsError>| match group? {
        Some(values) => bring(&values).map(|()| true),
        None => Ok(false),
    };
    groups.into_iter().map(brought).collect()
}

/// Brings values from the clone itself. Returns the values that it does not have, or `None` if it lacks a pointer to
/// one.
fn lacking(
    storage: &Storage,
    values: &[(String, Digest)],
) -> Result<Option<Vec<AwayValue>>, ResultsError> {
    let Some(away) = AwayValue::all(storage, values)?.filter(|_| storage.is_writable()) else {
        return Ok(None);
    };
    let mut lacking = Vec::new();
    for value in away {
        if !value.bring_from_clone(storage)? {
            lacking.push(value);
        }
    }
    Ok(Some(lacking))
}

/// Fetches the objects of values from the repository that a clone is from. Some may not be there.
fn fetched(
    storage: &Storage,
    values: &[&AwayValue],
    prompts: Prompts,
) -> Result<LargeSource, ResultsError> {
    let inputs = storage.inputs();
    inputs.go_on()?;
    let clone = storage.path("");
    let remote = match LfsRemote::of_clone(&clone, prompts) {
        Ok(remote) => remote.ok_or(ResultsError::NoOrigin)?,
        Err(source) => return Err(ResultsError::Origin { clone, source }),
    };
    let mut source = LargeSource::new(remote, storage.values().private_path()?)?;
    let pointers = values.iter().filter_map(|value| value.pointer().cloned());
    source.fetch(&pointers.collect::<Vec<_>>(), &|| inputs.go_on().is_err())?;
    let began = Instant::now();
    // Ctrl-C at a terminal is for `git lfs` and for us, and may not have arrived here yet.
    while source.is_interrupted() && inputs.go_on().is_ok() && began.elapsed() < ARRIVES {
        thread::sleep(LOOK);
    }
    inputs.go_on()?;
    // A signal that ended only `git lfs` is not a request to stop this program.
    Ok(source)
}

/// The files that were fetched for a package.
#[derive(Debug)]
pub struct FetchedFiles {
    /// The number of Git LFS objects.
    pub objects: usize,
    /// The size of these, in bytes.
    pub bytes: u64,
    /// As long as it is open, no collection removes its announced results.
    _storage: Storage,
}

/// Brings the files that a package needs into their places, as far as a clone of a results repository has archives of
/// them or can fetch them. Outputs of jobs become links to their values, also if the values came after the job was
/// away. Returns `None` and writes nothing if no file is needed.
///
/// # Errors
///
/// Fails if the storage cannot be written, an object is not available or differs from the record, or `stop` was set.
pub fn fetch_files(
    storage: &Storage,
    absent: &[AbsentFile<'_>],
    stop: &Arc<AtomicBool>,
    progress: &ExchangeProgress,
) -> Result<Option<FetchedFiles>, ExplainedError> {
    let (mut objects, mut archives, mut jobs) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for AbsentFile { file, value } in absent {
        let (name, digest) = (value.file(), *value.digest);
        let is_archived = storage.inputs().is_archived(&digest)?;
        let is_of_clone = is_archived || is_fetched_on_demand(storage, &digest);
        if !storage.has(&name)? {
            if !is_of_clone {
                continue;
            }
            if is_archived { &mut archives } else { &mut objects }.insert(name, digest);
        }
        if let (Entry::Job(name), Record::Job(job)) = (file.entry, file.record)
            && (is_of_clone || storage.evictions().is_marked_away(name)?)
        {
            jobs.push((name, job));
        }
    }
    if objects.is_empty() && archives.is_empty() && jobs.is_empty() {
        return Ok(None);
    }
    jobs.dedup_by_key(|(name, _)| *name);
    let storage = Storage::existing(storage.shown_place())?.into_writable(Durability::Synced)?;
    let storage = storage.until(Arc::clone(stop));
    let names = absent.iter().flat_map(|it| [it.file.entry.short(), it.value.entry.short()]);
    storage.gc_roots().announce(names)?;
    for (name, digest) in &archives {
        storage.values().unpack(name, digest)?;
    }
    let bytes = objects.values().map(stored_size).sum();
    let objects: Vec<_> = objects.into_iter().map(|value| vec![value]).collect();
    progress.begin("fetching large outputs", objects.len());
    let mut rest = &objects[..];
    while !rest.is_empty() {
        let fetched = fetch_values(&storage, rest, Prompts::Off);
        progress.advance(fetched.len());
        rest = &rest[fetched.len()..];
        fetched.into_iter().collect::<Result<Vec<bool>, _>>()?;
    }
    for (name, job) in jobs {
        storage.jobs().link(name, job)?;
    }
    storage.flush()?;
    Ok(Some(FetchedFiles { objects: objects.len(), bytes, _storage: storage }))
}
