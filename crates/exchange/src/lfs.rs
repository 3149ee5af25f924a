//! Large results: a results repository with the setting `lfs SIZE` has values above that size as Git LFS objects, and pointers to
//! them in `large/`. In their places they are away, so a program that does not know pointers sees them as known and not here.
//!
//! An object is in its store before any reference leads to its pointer: here by a copy that was hashed, elsewhere by the
//! server's word when it is asked again. Received objects are compared with the record, in a clone by `fetch`.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{self, Output};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use ce_files::manifest::ValuePiece;
use ce_files::umask;
use ce_git::{
    LfsPointer, LfsRemote, LfsScratch, LfsStore, LfsUse, Mirror, MirrorError, MirrorKind,
};
use ce_model::digest::ObjectId;
use ce_model::resources::parse_size;
use ce_storage::{ExpectedFile, Storage, large_name};
use rayon::prelude::*;
use sha2::{Digest as _, Sha256};

use crate::join::without;
use crate::pushed::Withheld;
use crate::repository::{Finder, GIT_ATTRIBUTES, stored_size};
use crate::secrets::{SecretScan, Secrets};
use crate::{ExchangeProgress, ResultsError};

/// The directory of pointers.
const LARGE: &str = "large";

/// The file with the settings of a results repository.
const SETTINGS: &str = "settings";

/// The settings of a results repository for `git lfs`.
pub(super) const CONFIG: &str = ".lfsconfig";

/// The greatest size of that file, in bytes.
const MAX_SETTINGS: u64 = 64 << 10;

/// The least size from which values can be objects, in bytes: no pointer is as large.
const MIN_LARGE: u64 = LfsPointer::MAX + 1;

/// The size of objects that wait to be sent, or are fetched at once, in bytes, and their number.
const WAITING_BYTES: u64 = 1 << 30;
const WAITING: usize = 1000;

/// Returns how many objects, or groups of them, with these sizes are fetched at once: at least one, if there are any. All
/// of them are in a directory of our own then.
pub(super) fn at_once(sizes: impl Iterator<Item = u64>) -> usize {
    let mut bytes = 0_u64;
    let fits = |(at, size): (usize, u64)| {
        bytes = bytes.saturating_add(size);
        (at == 0 || at < WAITING && bytes <= WAITING_BYTES).then_some(())
    };
    sizes.enumerate().map_while(fits).count()
}

/// A leftover in a store of at least this age belongs to a push that was killed.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);

/// The files at the top of a repository whose values above a size are objects: with the line for `large/`, `git lfs` knows the
/// pointers, and no clone fetches objects by itself.
pub(super) fn top(size: u64) -> [(&'static str, String); 3] {
    let attributes = format!("{GIT_ATTRIBUTES}/large/** filter=lfs diff=lfs merge=lfs -text\n");
    [
        (".gitattributes", attributes),
        (CONFIG, "[lfs]\n\tfetchexclude = *\n".to_owned()),
        (SETTINGS, format!("lfs {size}\n")),
    ]
}

/// The tree of an inbox without settings, which only users who push to the results make, and without pointers to
/// objects that the repository does not have: without these, calls are away. Entries of the known tree are skipped.
/// `None` if nothing is left.
pub(super) fn without_settings(
    storage: &Storage,
    mirror: &Mirror,
    known: &ObjectId,
    inbox: &ObjectId,
) -> Result<Option<ObjectId>, ResultsError> {
    let mut there = Finder::new(mirror, Some(known.clone()));
    let mut new = Vec::new();
    for (path, id) in Finder::new(mirror, Some(inbox.clone())).files_in(LARGE)? {
        if there.file(&path)?.as_ref() != Some(&id) {
            new.push((path, id));
        }
    }
    mirror.fetch_files(&new.iter().map(|(_, id)| id.clone()).collect::<Vec<_>>())?;
    let mut pointers = Vec::with_capacity(new.len());
    for (path, id) in new {
        let text = mirror.contents(&id, LfsPointer::MAX)?.unwrap_or_default();
        pointers.push((path, LfsPointer::parse(&text)));
    }
    let stored = pointers.iter().filter_map(|(_, pointer)| pointer.clone()).collect();
    let stored = stored_objects(storage, mirror, stored)?;
    let lost = pointers.iter().filter(|(_, it)| it.as_ref().is_none_or(|it| !stored.contains(it)));
    let mut left_out = vec![".gitattributes", CONFIG, SETTINGS];
    left_out.extend(lost.map(|(path, _)| path.as_str()));
    let mut writer = mirror.writer();
    let tree = without(mirror, &mut writer, inbox, left_out)?;
    writer.finish().map_err(|error| mirror.own(error))?;
    Ok(tree)
}

/// Reads the least size of values that become objects in a repository; `None` if no values do. A line that this program
/// could have written may be wrong if it is replaced.
pub(super) fn setting(
    mirror: &Mirror,
    there: &mut Finder<'_>,
    is_replaced: bool,
) -> Result<Option<u64>, ResultsError> {
    let Some(entry) = there.find(SETTINGS)? else { return Ok(None) };
    let unreadable = || ResultsError::SettingsFile(mirror.url().to_owned());
    if entry.kind != MirrorKind::Blob {
        return Err(unreadable());
    }
    mirror.fetch_files(std::slice::from_ref(&entry.id))?;
    let text = mirror.contents(&entry.id, MAX_SETTINGS)?.ok_or_else(unreadable)?;
    let text = String::from_utf8_lossy(&text);
    let (mut sizes, mut wrong) = (Vec::new(), None);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        let value = value.trim();
        let parsed = value.parse().ok().or_else(|| parse_size(value).ok());
        match parsed.filter(|size| name == "lfs" && *size >= MIN_LARGE) {
            Some(size) => sizes.push(size),
            None if name == "lfs" && is_replaced => {}
            // A line that this program does not know may be a rule for users who push.
            None => drop(wrong.get_or_insert(line.to_owned())),
        }
    }
    match (wrong, &sizes[..]) {
        (Some(line), _) => Err(ResultsError::Settings { url: mirror.url().to_owned(), line }),
        (None, [_, _, ..]) if !is_replaced => {
            Err(ResultsError::TwoSettings(mirror.url().to_owned()))
        }
        (None, [size]) => Ok(Some(*size)),
        (None, _) => Ok(None),
    }
}

/// The outcome of staging a value that is to be an object.
#[derive(Clone, Debug)]
pub(super) enum StagedObject {
    /// It is an object with this pointer, or will be one after it was sent.
    Object(LfsPointer),
    /// It is not here, or not as recorded.
    Damaged,
    /// It seems to hold a secret: in which member of a directory, and what.
    Secret(String, String),
}

impl StagedObject {
    /// The pointer to it, or the reason why the value of this file is withheld.
    pub(super) fn pointer(&self, file: &ExpectedFile) -> Result<&LfsPointer, Withheld> {
        let name = file.name.clone();
        match self {
            Self::Object(pointer) => Ok(pointer),
            Self::Damaged => Err(Withheld::Damaged { file: name }),
            Self::Secret(member, what) => {
                Err(Withheld::Secret { file: name + member, what: what.clone() })
            }
        }
    }
}

/// A value of a push to which the repository has a pointer.
pub(super) struct StoredLarge<'a> {
    pub(super) pointer: ObjectId,
    pub(super) file: &'a ExpectedFile,
    /// The repository does not have all results that rely on it yet.
    pub(super) is_relied_on: bool,
}

/// The destination of objects.
#[derive(Debug)]
enum ObjectSink {
    /// Nowhere.
    None,
    /// Into the store of a repository on this host.
    Store(LfsStore),
    /// Into a directory of our own, from which they are sent.
    Scratch(PathBuf),
}

/// The large values of a push.
#[derive(Debug)]
pub(super) struct LargeUploads {
    /// The store of the repository, if it is on this host.
    store: Option<LfsStore>,
    sink: ObjectSink,
    /// The repository that they are sent to, if it is on another host, and the scratch repository that they are sent from.
    remote: Option<(LfsRemote, LfsScratch)>,
    /// The outcome for each value, by the name of its pointer.
    staged: HashMap<String, StagedObject>,
    /// The objects that wait to be sent.
    waiting: Vec<LfsPointer>,
    /// The objects that an interrupted push has put into the store, by the value.
    known: HashMap<String, LfsPointer>,
    /// The file in which they are noted.
    journal: PathBuf,
    /// The size of the new objects, in bytes.
    pub(super) bytes: u64,
    /// Their number.
    pub(super) objects: usize,
}

impl LargeUploads {
    /// Prepares to put values into the store of a repository; nothing is put anywhere if it is dry.
    pub(super) fn new(mirror: &Mirror, dry: bool) -> Result<Self, ResultsError> {
        let journal = mirror.beside("lfs");
        let remote = mirror.lfs()?;
        let store = remote.store(LfsUse::Push)?;
        let (sink, remote) = match &store {
            _ if dry => (ObjectSink::None, None),
            Some(store) => {
                remove_rests(store);
                (ObjectSink::Store(store.clone()), None)
            }
            None => {
                let scratch = LfsScratch::new(&mirror.beside("lfs-objects"));
                let scratch = scratch.map_err(|error| mirror.own(error))?;
                (ObjectSink::Scratch(scratch.objects()), Some((remote, scratch)))
            }
        };
        let known = fs::read_to_string(&journal).unwrap_or_default();
        let known = known.lines().filter_map(|line| {
            let (value, pointer) = line.split_once('\t')?;
            let (oid, size) = pointer.split_once('\t')?;
            Some((value.to_owned(), LfsPointer::new(oid, size.parse().ok()?)?))
        });
        let known = known.collect();
        let (staged, waiting) = (HashMap::new(), Vec::new());
        Ok(Self { store, sink, remote, staged, waiting, known, journal, bytes: 0, objects: 0 })
    }

    /// Returns the outcome for a value.
    pub(super) fn staged(&self, file: &ExpectedFile) -> Option<&StagedObject> {
        self.staged.get(&large_name(&file.digest))
    }

    /// The values whose objects the store of the repository has lost. Only a store on this host is looked into: a
    /// server would have to be asked for all of them at each push.
    ///
    /// An object on which new results rely is read, and compared with its pointer, which takes less than the copy that they
    /// would need otherwise: about a second for a GiB. Only the size of the others is compared, or each push would read the
    /// whole store.
    pub(super) fn lost<'f>(
        &self,
        storage: &Storage,
        mirror: &Mirror,
        stored: &[StoredLarge<'f>],
    ) -> Result<Vec<&'f ExpectedFile>, ResultsError> {
        let Some(objects) = self.store.as_ref().map(LfsStore::objects) else {
            return Ok(Vec::new());
        };
        mirror.fetch_files(&stored.iter().map(|it| it.pointer.clone()).collect::<Vec<_>>())?;
        let mut pointers = Vec::with_capacity(stored.len());
        for large @ StoredLarge { pointer, file, .. } in stored {
            let text = mirror.contents(pointer, LfsPointer::MAX)?.unwrap_or_default();
            let pointer = LfsPointer::parse(&text);
            let pointer = pointer.filter(|it| it.size == stored_size(&file.digest));
            pointers.extend(pointer.map(|pointer| (large, pointer)));
        }
        let lost = pointers.par_iter().with_max_len(1).map(|(large, pointer)| {
            let path = pointer.path(&objects);
            let is_there = if large.is_relied_on {
                is_object(storage, &path, pointer)?
            } else {
                has_size(&path, pointer.size)
            };
            Ok((!is_there).then_some(large.file))
        });
        lost.filter_map(Result::transpose).collect()
    }

    /// Puts values into the store, on all cores, or into the directory that they are sent from. Many waiting values are
    /// sent.
    pub(super) fn stage(
        &mut self,
        storage: &Storage,
        files: &[&ExpectedFile],
        secrets: Option<&Secrets>,
        progress: &ExchangeProgress,
    ) -> Result<(), ResultsError> {
        let mut names = HashSet::new();
        let new = files.iter().filter(|file| {
            let name = large_name(&file.digest);
            !self.staged.contains_key(&name) && names.insert(name)
        });
        let new: Vec<&&ExpectedFile> = new.collect();
        if new.is_empty() {
            return Ok(());
        }
        let journal = match self.sink {
            ObjectSink::Store(_) => {
                let journal = umask::new_file().create(true).append(true).open(&self.journal);
                Some(Mutex::new(journal.map_err(|source| large(&self.journal, source))?))
            }
            ObjectSink::None | ObjectSink::Scratch(_) => None,
        };
        let stager =
            Stager { storage, secrets, sink: &self.sink, known: &self.known, journal, progress };
        let staged = new.par_iter().with_max_len(1).map(|file| stager.stage(file));
        let staged: Vec<StagedObject> = staged.collect::<Result<_, _>>()?;
        for (file, staged) in new.iter().zip(staged) {
            if let StagedObject::Object(pointer) = &staged {
                self.bytes += pointer.size;
                self.objects += 1;
                self.waiting.push(pointer.clone());
            }
            self.staged.insert(large_name(&file.digest), staged);
        }
        let bytes: u64 = self.waiting.iter().map(|it| it.size).sum();
        if bytes > WAITING_BYTES || self.waiting.len() > WAITING { self.send() } else { Ok(()) }
    }

    /// Sends all that wait.
    pub(super) fn send(&mut self) -> Result<(), ResultsError> {
        let waiting = std::mem::take(&mut self.waiting);
        let Some((remote, scratch)) = &self.remote else { return Ok(()) };
        let oids: Vec<String> = waiting.iter().map(|it| it.oid.clone()).collect();
        remote.upload(scratch, &oids)?;
        for pointer in &waiting {
            // It is a copy or a link. If this fails, it is removed with the directory.
            let _removed = fs::remove_file(pointer.path(&scratch.objects()));
        }
        Ok(())
    }

    /// Removes the journal with which an interrupted push would have been continued.
    pub(super) fn end(&self) {
        // A remaining journal only makes the next push check objects that the store has.
        let _removed = fs::remove_file(&self.journal);
    }
}

/// Puts values into a store.
struct Stager<'a> {
    storage: &'a Storage,
    secrets: Option<&'a Secrets>,
    sink: &'a ObjectSink,
    known: &'a HashMap<String, LfsPointer>,
    journal: Option<Mutex<File>>,
    progress: &'a ExchangeProgress,
}

impl Stager<'_> {
    fn stage(&self, file: &ExpectedFile) -> Result<StagedObject, ResultsError> {
        // A value that was put there without a search for secrets is searched now.
        let scanned = if self.secrets.is_some() { "scanned" } else { "any" };
        let value = format!("{} {} {scanned}", large_name(&file.digest), file.digest.blake3.full());
        if let (Some(pointer), ObjectSink::Store(store)) = (self.known.get(&value), self.sink)
            && is_object(self.storage, &pointer.path(&store.objects()), pointer)?
        {
            self.progress.advance_bytes(pointer.size);
            return Ok(StagedObject::Object(pointer.clone()));
        }
        let temporary = match self.sink {
            ObjectSink::None => None,
            ObjectSink::Store(store) => Some(Temporary::new(&store.dir.join("tmp"), store.shared)?),
            // A plain file is sent from where it is.
            ObjectSink::Scratch(_) if !file.digest.is_directory() => None,
            ObjectSink::Scratch(objects) => Some(Temporary::new(objects, 0)?),
        };
        let (out, scan) = (temporary.as_ref(), self.secrets.map(SecretScan::new));
        let mut copy = ObjectCopy { out, scan, ..ObjectCopy::default() };
        let is_recorded = self.storage.values().pieces(file, &mut |piece| {
            if let ValuePiece::Bytes(bytes) = piece {
                self.progress.advance_bytes(bytes.len() as u64);
            }
            copy.add(piece)
        })?;
        if let Some(source) = copy.failed {
            return Err(large(temporary.as_ref().map_or(Path::new(""), |it| &it.path), source));
        }
        if let Some((member, what)) = copy.scan.and_then(SecretScan::finish) {
            return Ok(StagedObject::Secret(member, what));
        }
        if !is_recorded {
            return Ok(StagedObject::Damaged);
        }
        let pointer = LfsPointer { oid: digits(copy.sha256), size: copy.size };
        match (self.sink, temporary) {
            (ObjectSink::Store(store), Some(temporary)) => {
                temporary.publish(self.storage, &pointer, store)?;
                let line = format!("{value}\t{}\t{}\n", pointer.oid, pointer.size);
                if let Some(journal) = &self.journal {
                    let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
                    // Without it, an interrupted push copies once more.
                    let _noted = journal.write_all(line.as_bytes());
                }
            }
            (ObjectSink::Scratch(objects), temporary) => {
                let place = pointer.path(objects);
                make_dirs(place.parent().unwrap_or(objects), 0)?;
                let put = match temporary {
                    Some(temporary) => fs::rename(&temporary.path, &place),
                    None => match symlink(self.storage.path(&file.name), &place) {
                        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                        put => put,
                    },
                };
                put.map_err(|source| large(&place, source))?;
            }
            (ObjectSink::None | ObjectSink::Store(_), _) => {}
        }
        Ok(StagedObject::Object(pointer))
    }
}

/// A value on its way into an object.
#[derive(Default)]
struct ObjectCopy<'a> {
    sha256: Sha256,
    size: u64,
    out: Option<&'a Temporary>,
    scan: Option<SecretScan<'a>>,
    failed: Option<io::Error>,
}

impl ObjectCopy<'_> {
    fn add(&mut self, piece: ValuePiece<'_>) -> ControlFlow<()> {
        match piece {
            ValuePiece::File(path) => self.scan.iter_mut().for_each(|scan| scan.begin(path)),
            ValuePiece::Bytes(bytes) => {
                self.sha256.update(bytes);
                self.size += bytes.len() as u64;
                self.scan.iter_mut().for_each(|scan| scan.add(bytes));
                self.failed = self.out.and_then(|out| (&out.file).write_all(bytes).err());
            }
        }
        let is_secret = self.scan.as_ref().is_some_and(SecretScan::has_found);
        if is_secret || self.failed.is_some() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// A file that becomes an object, or is removed.
#[derive(Debug)]
struct Temporary {
    path: PathBuf,
    file: File,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // It has another name if it has become an object.
        let _removed = fs::remove_file(&self.path);
    }
}

/// The prefix of the names of files that are not objects yet.
const TEMPORARY: &str = "compeval-";

impl Temporary {
    fn new(dir: &Path, shared: u32) -> Result<Self, ResultsError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        make_dirs(dir, shared)?;
        let path = loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = dir.join(format!("{TEMPORARY}{}-{number}", process::id()));
            // One of another host or process may have the name.
            match umask::new_file().read(true).write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Self { path, file }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => break large(&path, source),
            }
        };
        Err(path)
    }

    /// Makes it an object of a store, unless that has it. One with other bytes is replaced.
    fn publish(
        &self,
        storage: &Storage,
        pointer: &LfsPointer,
        store: &LfsStore,
    ) -> Result<(), ResultsError> {
        let place = pointer.path(&store.objects());
        if is_object(storage, &place, pointer)? {
            return Ok(());
        }
        let dir = place.parent().unwrap_or(&place);
        make_dirs(dir, store.shared)?;
        let put = || {
            if store.shared != 0 {
                let mode = self.file.metadata()?.permissions().mode() | store.shared;
                self.file.set_permissions(fs::Permissions::from_mode(mode & 0o777))?;
            }
            self.file.sync_all()?;
            fs::rename(&self.path, &place)?;
            File::open(dir)?.sync_all()
        };
        put().map_err(|source| large(&place, source))
    }
}

/// Makes a directory and its parents, with the permissions of a shared repository.
fn make_dirs(dir: &Path, shared: u32) -> Result<(), ResultsError> {
    if dir.is_dir() {
        return Ok(());
    }
    if let Some(above) = dir.parent() {
        make_dirs(above, shared)?;
    }
    let made = umask::create_dir(dir).and_then(|()| match shared {
        0 => Ok(()),
        shared => {
            // Users who may read may also enter, and new files belong to the group.
            let enter = (shared >> 2 & 0o011) | 0o2000;
            let mode = fs::metadata(dir)?.permissions().mode() | shared | enter;
            fs::set_permissions(dir, fs::Permissions::from_mode(mode & 0o7777))
        }
    });
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(large(dir, error)),
        _ => Ok(()),
    }
}

/// Removes what pushes have left that were killed long ago.
fn remove_rests(store: &LfsStore) {
    let Ok(entries) = fs::read_dir(store.dir.join("tmp")) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes());
        let modified = entry.metadata().and_then(|it| it.modified()).ok();
        let age = modified.and_then(|it| SystemTime::now().duration_since(it).ok());
        if is_ours && age.is_some_and(|age| age > OLD) {
            // Another user's stays.
            let _removed = fs::remove_file(entry.path());
        }
    }
}

/// Whether there is a plain file with this size.
pub(super) fn has_size(path: &Path, size: u64) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| it.is_file() && it.len() == size)
}

/// Whether there is a plain file with this size that we may read.
pub(super) fn is_readable(path: &Path, size: u64) -> bool {
    has_size(path, size) && File::open(path).is_ok()
}

/// Whether a plain file has the bytes of an object.
///
/// # Errors
///
/// Fails if the user asked to stop. Returns false for a file that cannot be read.
fn is_object(storage: &Storage, path: &Path, pointer: &LfsPointer) -> Result<bool, ResultsError> {
    let inputs = storage.inputs();
    let is_object =
        has_size(path, pointer.size) && pointer.is_of(path, inputs.stop()).unwrap_or(false);
    inputs.go_on()?;
    Ok(is_object)
}

/// All digits of a hash.
fn digits(sha256: Sha256) -> String {
    sha256.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The error of a file of a store.
pub(super) fn large(path: &Path, source: io::Error) -> ResultsError {
    ResultsError::Large { path: path.to_owned(), source }
}

/// The source of objects.
#[derive(Debug)]
pub(super) struct LargeSource {
    remote: LfsRemote,
    /// The store of a repository on this host.
    store: Option<LfsStore>,
    /// The place of the directory into which they are fetched from another host, and the directory.
    place: PathBuf,
    scratch: Option<LfsScratch>,
    /// The output of `git lfs`, if it has failed.
    failed: Option<Output>,
}

impl LargeSource {
    /// Prepares to fetch objects of a repository. `place` is the path of a directory of our own, which is made if it is needed.
    pub(super) fn new(remote: LfsRemote, place: PathBuf) -> Result<Self, MirrorError> {
        let store = remote.store(LfsUse::Fetch)?;
        Ok(Self { remote, store, place, scratch: None, failed: None })
    }

    /// Fetches objects, in place of the previous ones, until it is to be stopped. Some objects may be missing there.
    ///
    /// # Errors
    ///
    /// Fails if `git lfs` is needed and not installed.
    pub(super) fn fetch(
        &mut self,
        pointers: &[LfsPointer],
        is_stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), MirrorError> {
        (self.scratch, self.failed) = (None, None);
        if self.store.is_some() || pointers.is_empty() {
            return Ok(());
        }
        let scratch = LfsScratch::new(&self.place).map_err(|source| MirrorError::Own {
            dir: self.place.clone(),
            url: self.remote.url().to_owned(),
            source,
        })?;
        self.failed = self.remote.download(&scratch, pointers, is_stopped)?;
        self.scratch = Some(scratch);
        Ok(())
    }

    /// Whether a signal has ended `git lfs`.
    pub(super) fn is_interrupted(&self) -> bool {
        let status = self.failed.as_ref().map(|output| output.status);
        // `git` is ended by it, or has waited for its program, which says so.
        let signal = status.and_then(|it| it.signal().or_else(|| it.code()?.checked_sub(128)));
        signal.is_some_and(|signal| [1, 2, 15].contains(&signal))
    }

    /// The file of an object that was fetched, or why it is not here.
    pub(super) fn object(&self, pointer: &LfsPointer) -> Result<PathBuf, String> {
        let store = self.store.as_ref().map(LfsStore::objects);
        let objects = store.or_else(|| self.scratch.as_ref().map(LfsScratch::objects));
        let place = objects.map(|objects| pointer.path(&objects));
        if let Some(place) = place.as_ref().filter(|place| is_readable(place, pointer.size)) {
            return Ok(place.clone());
        }
        let unreadable = place.and_then(|place| {
            let error = File::open(&place).err()?;
            let is_there = error.kind() != io::ErrorKind::NotFound;
            is_there.then(|| format!("{} cannot be read: {error}", place.display()))
        });
        let said = |output| self.remote.not_fetched(output, pointer).to_string();
        let why = unreadable.or_else(|| self.failed.as_ref().map(said));
        Err(why.unwrap_or_else(|| "the repository does not have it".to_owned()))
    }
}

/// The pointer to a value as it is here; `None` if it is not here, or not as recorded.
pub(super) fn pointer_of(
    storage: &Storage,
    file: &ExpectedFile,
) -> Result<Option<LfsPointer>, ResultsError> {
    let mut copy = ObjectCopy::default();
    let is_recorded = storage.values().pieces(file, &mut |piece| copy.add(piece))?;
    Ok(is_recorded.then(|| LfsPointer { oid: digits(copy.sha256), size: copy.size }))
}

/// Returns which of these objects a repository has: each is fetched, and compared with its pointer.
pub(super) fn stored_objects(
    storage: &Storage,
    mirror: &Mirror,
    pointers: HashSet<LfsPointer>,
) -> Result<HashSet<LfsPointer>, ResultsError> {
    let mut stored = HashSet::new();
    if pointers.is_empty() {
        return Ok(stored);
    }
    let mut source = LargeSource::new(mirror.lfs()?, mirror.beside("lfs-objects"))?;
    let mut rest: Vec<LfsPointer> = pointers.into_iter().collect();
    while !rest.is_empty() {
        let part: Vec<LfsPointer> = rest.drain(..at_once(rest.iter().map(|it| it.size))).collect();
        source.fetch(&part, &|| storage.inputs().go_on().is_err())?;
        for pointer in part {
            if let Ok(object) = source.object(&pointer)
                && is_object(storage, &object, &pointer)?
            {
                stored.insert(pointer);
            }
        }
    }
    Ok(stored)
}
