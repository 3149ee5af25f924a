//! Network file systems: stale answers, and outages of their servers.
//!
//! A network file system may return stale answers, or none for a while. [`retry`] is the only place that judges such errors.
//! It repeats an operation whose answer may be stale a few times within a second or two, and opens the directories anew by their
//! paths. During an outage of the server, a run or a worker waits for a minute, and then continues.
//!
//! An operation that failed may have been performed nevertheless. So each attempt knows whether it is the first one.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fmt, io, thread};

use rustix::fs::{Mode, OFlags, fstatfs, open, openat};
use rustix::io::Errno;

#[cfg(test)]
use super::file_system_kinds;
use super::file_system_kinds::FileSystemKind;
use super::{Disk, IoContext, Result, StorageError, ValueMetadata, fault, is_absent, lock};
use ce_files::is_leased;

#[cfg(test)]
impl Disk {
    /// Takes its file system for one of several hosts.
    pub(crate) const fn put_on_network(&mut self) {
        self.kind = file_system_kinds::NETWORK;
    }

    /// Takes its file system for an unknown one.
    pub(crate) const fn put_on_unknown(&mut self) {
        self.kind = file_system_kinds::UNKNOWN;
    }
}

/// The part of a run's patience for which an answer that may be old is asked for again.
const STALE: u32 = 24;

/// The parts of it that are the first and the longest pause before an answer is asked for again.
const STALE_PAUSES: [u32; 2] = [6000, 160];

/// The reaction to a name that nothing has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnNotFound {
    /// Accept the answer.
    Accept,
    /// Try again: something should have it, so the answer may be stale.
    Retry,
}

/// The meaning of an error for a network file system.
enum Transience {
    /// Nothing.
    No,
    /// The answer may be old.
    Stale,
    /// The storage is away.
    Outage,
}

impl StorageError {
    /// Whether it is this error of the operating system.
    pub(super) fn is(&self, errno: Errno) -> bool {
        source(self).and_then(io::Error::raw_os_error) == Some(errno.raw_os_error())
    }

    /// Whether a file could not be opened since another program holds a lease on it, which says nothing of the file.
    pub fn is_leased(&self) -> bool {
        source(self).is_some_and(is_leased)
    }

    /// Whether it may say that the storage itself does not answer.
    pub fn may_be_away(&self) -> bool {
        AWAY.into_iter().chain([Errno::IO]).any(|errno| self.is(errno))
    }
}

/// Does something with a storage that is yet to be opened, and waits if it is away.
pub(crate) fn retry_at<T>(
    root: &Path,
    patience: &Patience,
    mut act: impl FnMut() -> Result<T>,
) -> Result<T> {
    let mut disk = Disk::absent(root.to_owned());
    disk.kind = FileSystemKind::of_nearest(root);
    disk.wait_with(patience.clone(), root.to_owned());
    disk.retry(OnNotFound::Accept, |_| act())
}

/// Opens the directory at a path, which was just made.
///
/// Two hosts may make it at once. On some network file systems, one of the hosts then knows it by an identity that does not
/// last: every operation by this identity is stale forever. So it is opened for a listing, which asks the server, and
/// opened anew by its path until that succeeds.
pub(crate) fn open_created(path: &Path) -> Result<Disk> {
    retry(None, OnNotFound::Retry, |_| {
        let disk = Disk::open(&path.canonicalize().context("open the storage", path)?)?;
        let Some(top) = &disk.top else {
            return Err(Errno::NOENT.into()).context("open the storage", path);
        };
        if disk.may_show_late() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let listed = openat(top, ".", flags, Mode::empty());
            drop(listed.map_err(Into::into).context("open the storage", path)?);
        }
        Ok(disk)
    })
}

/// Repeats an operation until it succeeds, or another attempt would be futile. The argument of `act` says whether it
/// was tried before.
///
/// Without a disk, nothing is known but that an answer may be old.
pub(super) fn retry<T>(
    disk: Option<&Disk>,
    on_not_found: OnNotFound,
    mut act: impl FnMut(bool) -> Result<T>,
) -> Result<T> {
    let (mut stale, mut away, mut again) = (None, None, false);
    loop {
        let error = match act(again) {
            Ok(done) => {
                if let Some(disk) = disk.filter(|_| away.is_some()) {
                    disk.outages.end();
                }
                return Ok(done);
            }
            Err(error) => error,
        };
        again = true;
        match lateness(disk, on_not_found, &error) {
            Transience::No => return Err(error),
            Transience::Stale => {
                let pauses =
                    stale.get_or_insert_with(|| Pauses::new(patience() / STALE, STALE_PAUSES));
                if let Some(pause) = pauses.next() {
                    thread::sleep(pause);
                    if let Some(disk) = disk {
                        disk.forget_open();
                    }
                    continue;
                }
                let is_away = disk.is_some_and(|disk| disk.outages.awaits() && !disk.answers());
                if !is_away || !error.is(Errno::STALE) {
                    return Err(error);
                }
            }
            Transience::Outage => {}
        }
        let Some(disk) = disk else { return Err(error) };
        disk.outlast(error, away.get_or_insert_with(Disk::waiting_pauses))?;
    }
}

/// Returns the meaning of an error for the file system.
fn lateness(disk: Option<&Disk>, on_not_found: OnNotFound, error: &StorageError) -> Transience {
    let Some(cause) = source(error) else { return Transience::No };
    let errno = cause.raw_os_error();
    let is_one = |known: &Errno| errno == Some(known.raw_os_error());
    match disk {
        _ if is_one(&Errno::STALE) => Transience::Stale,
        disk if is_one(&Errno::NOTEMPTY) && disk.is_none_or(Disk::is_on_network) => {
            Transience::Stale
        }
        Some(disk)
            if on_not_found == OnNotFound::Retry && disk.may_show_late() && is_absent(cause) =>
        {
            Transience::Stale
        }
        None if on_not_found == OnNotFound::Retry && is_absent(cause) => Transience::Stale,
        Some(_) if AWAY.iter().any(is_one) => Transience::Outage,
        Some(disk) if is_one(&Errno::IO) && disk.is_on_network() && disk.outages.awaits() => {
            // Its server may have come back since.
            if disk.answers() { Transience::Stale } else { Transience::Outage }
        }
        _ => Transience::No,
    }
}

impl Disk {
    /// Closes all open directories: each is opened anew by its path.
    pub(super) fn forget_open(&self) {
        self.directories.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Repeats an operation until it succeeds, or another attempt would be futile.
    pub(super) fn retry<T>(
        &self,
        on_not_found: OnNotFound,
        act: impl FnMut(bool) -> Result<T>,
    ) -> Result<T> {
        retry(Some(self), on_not_found, act)
    }

    /// Waits for the storage if it is away.
    ///
    /// # Errors
    ///
    /// Fails if it does not come back.
    pub(crate) fn await_answer(&self) -> Result<()> {
        self.retry(OnNotFound::Accept, |_| {
            super::attempt_once("look at", self.root(), || self.ask())
        })?;
        self.outages.end();
        Ok(())
    }

    /// Reads something as a whole, from its beginning each time.
    pub(crate) fn read_whole<T>(&self, mut read: impl FnMut() -> Result<T>) -> Result<T> {
        self.retry(OnNotFound::Accept, |_| read())
    }

    /// Looks for something with a name until the answer agrees with a listing of its directory. On a network file system, the known
    /// state of a name may be old; the listing of a directory that is opened anew is not.
    ///
    /// Names that were listed after this run had announced them stay, so a directory with many names is not listed for each.
    pub(crate) fn look_anew<T>(
        &self,
        path: &Path,
        mut look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        if !self.may_show_late() {
            return look();
        }
        let agreed = self.retry(OnNotFound::Accept, |again| {
            let found = look()?;
            let is_known = found.is_some() && !again && self.listings.has(path);
            if is_known || found.is_some() == self.is_listed(path)? {
                Ok(found)
            } else {
                Err(Errno::STALE.into()).context("look at", path)
            }
        });
        match agreed {
            // A name that is not listed does not exist, and a file that cannot be seen cannot be used.
            Err(error) if error.is(Errno::STALE) => Ok(None),
            agreed => agreed,
        }
    }

    /// Looks at a value as it is now, also on a network file system.
    pub(crate) fn see_anew(&self, path: &Path, stop: &AtomicBool) -> Result<Option<ValueMetadata>> {
        self.look_anew(path, || self.see(path, stop))
    }

    /// Whether something has this path now, also on a network file system.
    pub(crate) fn exists_anew(&self, path: &Path) -> Result<bool> {
        Ok(self.look_anew(path, || self.metadata(path))?.is_some())
    }

    /// Whether a directory, which is opened anew, has an entry with this path.
    pub(crate) fn is_listed(&self, path: &Path) -> Result<bool> {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return Ok(true) };
        let before = self.listings.changes();
        let names: HashSet<OsString> =
            self.entries(dir)?.into_iter().map(|(name, _)| name).collect();
        let is_listed = names.contains(name);
        self.listings.insert(dir, names, before);
        Ok(is_listed)
    }

    /// Forgets the listings of directories that contain this path, or are below it.
    pub(crate) fn forget_listed(&self, path: &Path) {
        if self.may_show_late() {
            self.listings.forget(path);
        }
    }

    /// Looks for an entry that should exist: if it is missing, it may not be visible yet.
    pub(crate) fn surely<T>(
        &self,
        mut look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let absent = || StorageError::Io {
            doing: "look at",
            path: self.root.clone(),
            source: Errno::NOENT.into(),
        };
        match look()? {
            None if self.may_show_late() => {}
            found => return Ok(found),
        }
        match self.retry(OnNotFound::Retry, |_| look()?.ok_or_else(absent)) {
            Err(error) if error.is(Errno::NOENT) => Ok(None),
            found => found.map(Some),
        }
    }
}

/// The names that directories have listed.
#[derive(Debug, Default)]
pub(super) struct Listings(Mutex<KnownNames>);

#[derive(Debug, Default)]
struct KnownNames {
    /// By the paths of the directories.
    names: HashMap<PathBuf, HashSet<OsString>>,
    /// The number of times that something was forgotten.
    changes: u64,
}

impl Listings {
    /// Whether something with this path was listed.
    fn has(&self, path: &Path) -> bool {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return false };
        lock(&self.0).names.get(dir).is_some_and(|names| names.contains(name))
    }

    fn changes(&self) -> u64 {
        lock(&self.0).changes
    }

    /// Caches the listing of a directory, unless something was forgotten since it was opened.
    fn insert(&self, dir: &Path, names: HashSet<OsString>, before: u64) {
        let mut known = lock(&self.0);
        if known.changes == before {
            known.names.insert(dir.to_owned(), names);
        }
    }

    fn forget(&self, path: &Path) {
        let mut known = lock(&self.0);
        known.changes += 1;
        known.names.retain(|dir, _| !dir.starts_with(path) && !path.starts_with(dir));
    }
}

/// The time for which a run waits for a storage that is away. Unit tests wait for a shorter one.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 12 } else { 60 });

/// The parts of it that are the first and the longest pause before it is looked whether the storage is back.
const AWAY_PAUSES: [u32; 2] = [600, 30];

/// The interval at which it is looked meanwhile whether the user asks to stop.
const LOOK: Duration = Duration::from_millis(50);

/// The errors that say that the storage itself is away.
pub(super) const AWAY: [Errno; 12] = [
    Errno::NOTCONN,
    Errno::HOSTDOWN,
    Errno::HOSTUNREACH,
    Errno::NETDOWN,
    Errno::NETUNREACH,
    Errno::NETRESET,
    Errno::TIMEDOUT,
    Errno::CONNABORTED,
    Errno::CONNREFUSED,
    Errno::CONNRESET,
    Errno::SHUTDOWN,
    Errno::REMOTEIO,
];

/// Returns the time for which a run waits for a storage that is away. A build with debug assertions obeys `CE_PATIENCE`, in
/// seconds.
pub(crate) fn patience() -> Duration {
    static TIME: OnceLock<Option<Duration>> = OnceLock::new();
    if !cfg!(debug_assertions) {
        return PATIENCE;
    }
    TIME.get_or_init(|| {
        let seconds = env::var("CE_PATIENCE").ok()?.parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    })
    .unwrap_or(PATIENCE)
}

/// Pauses that double, within a time that begins with the first of them.
pub(super) struct Pauses {
    end: Instant,
    next: Duration,
    longest: Duration,
}

impl Pauses {
    pub(super) fn new(time: Duration, [first, longest]: [u32; 2]) -> Self {
        let end = Instant::now() + time;
        Self { end, next: patience() / first, longest: patience() / longest }
    }

    /// The next pause; `None` if the time is over.
    pub(super) fn next(&mut self) -> Option<Duration> {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        (Instant::now() < self.end).then_some(pause)
    }
}

/// The error of the operating system that an error comes from.
pub(super) fn source(error: &StorageError) -> Option<&io::Error> {
    match error {
        StorageError::Io { source, .. } => Some(source),
        _ => None,
    }
}

/// An event that is reported to a run or a worker about a storage that it waits for: the storage is away, or a collection takes
/// results away.
#[derive(Clone, Debug)]
pub enum Outage {
    /// This collection has closed the gate for a while.
    Collection {
        storage: PathBuf,
        /// The process.
        holder: String,
    },
    /// It does not answer, for this reason, and is waited for.
    Began {
        storage: PathBuf,
        /// The reason.
        why: String,
        /// For how long.
        most: Duration,
    },
    /// It answers again, after this time.
    Over {
        storage: PathBuf,
        /// The time.
        after: Duration,
    },
}

/// The will to wait for a storage that is away.
#[derive(Clone)]
pub struct Patience {
    /// Becomes true when the user asks to stop.
    pub stop: Arc<AtomicBool>,
    /// Reports an outage to the user.
    pub tell: Arc<dyn Fn(&Outage) + Send + Sync>,
}

impl fmt::Debug for Patience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patience").field("stop", &self.stop).finish_non_exhaustive()
    }
}

/// A process that waits for a storage whenever it is away.
#[derive(Debug)]
pub(super) struct WaitingProcess {
    patience: Patience,
    /// The user's name for the storage.
    shown: PathBuf,
}

/// The times when a storage was away.
#[derive(Debug, Default)]
pub(super) struct Outages {
    /// The process that waits for it. Unset if no process waits.
    waiting: OnceLock<WaitingProcess>,
    /// Since when it is away.
    since: Mutex<Option<Instant>>,
    /// The number of times that it went away or came back.
    changes: AtomicU64,
    /// The error number of its last answer, if it was waited for and did not come back.
    given_up: OnceLock<i32>,
}

impl Outages {
    /// Whether a process waits for a storage that is away.
    pub(super) fn awaits(&self) -> bool {
        self.waiting.get().is_some() && self.given_up.get().is_none()
    }

    /// Notes that the storage is away, and reports it once.
    pub(super) fn begin(&self, waiting: &WaitingProcess, why: &io::Error) {
        let mut since = lock(&self.since);
        if since.is_none() {
            *since = Some(Instant::now());
            self.changes.fetch_add(1, Ordering::AcqRel);
            let (storage, why) = (waiting.shown.clone(), why.to_string());
            (waiting.patience.tell)(&Outage::Began { storage, why, most: patience() });
        }
    }

    /// Notes that the storage has answered.
    pub(super) fn end(&self) {
        let began = lock(&self.since).take();
        if let (Some(began), Some(waiting)) = (began, self.waiting.get()) {
            self.changes.fetch_add(1, Ordering::AcqRel);
            let storage = waiting.shown.clone();
            (waiting.patience.tell)(&Outage::Over { storage, after: began.elapsed() });
        }
    }
}

impl Disk {
    /// Whether who waits for the storage has asked to stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.outages.waiting.get().is_some_and(|it| it.patience.stop.load(Ordering::Relaxed))
    }

    /// Waits for the storage from now on whenever it is away. `shown` is the user's name for it.
    pub(crate) fn wait_with(&self, patience: Patience, shown: PathBuf) {
        // The first patience counts: a process that has begun to wait keeps it.
        let _is_first = self.outages.waiting.set(WaitingProcess { patience, shown }).is_ok();
    }

    /// Reports to the user who waits for the storage that a collection is waited for.
    pub(crate) fn tell_of_collection(&self, holder: String) {
        if let Some(WaitingProcess { patience, shown }) = self.outages.waiting.get() {
            (patience.tell)(&Outage::Collection { storage: shown.clone(), holder });
        }
    }

    /// Returns the number of times that the storage went away or came back.
    pub(crate) fn outages(&self) -> u64 {
        self.outages.changes.load(Ordering::Acquire)
    }

    /// The error of a storage that was waited for, and did not come back.
    pub(crate) fn away(&self) -> Option<StorageError> {
        let source = io::Error::from_raw_os_error(*self.outages.given_up.get()?);
        let path = self.outages.waiting.get()?.shown.clone();
        Some(StorageError::Away { path, seconds: patience().as_secs_f32(), source })
    }

    /// The pauses before it is looked whether the storage is back.
    pub(super) fn waiting_pauses() -> Pauses {
        Pauses::new(patience(), AWAY_PAUSES)
    }

    /// Waits until the storage answers. Returns the error of the operation if no process waits.
    pub(super) fn outlast(&self, error: StorageError, pauses: &mut Pauses) -> Result<()> {
        let outages = &self.outages;
        let (Some(waiting), Some(why)) = (outages.waiting.get(), source(&error)) else {
            return Err(error);
        };
        let stop = &waiting.patience.stop;
        if let Some(away) = self.away() {
            return Err(away);
        }
        if stop.load(Ordering::Relaxed) {
            return Err(StorageError::Interrupted);
        }
        outages.begin(waiting, why);
        loop {
            let Some(pause) = pauses.next() else {
                outages.given_up.get_or_init(|| why.raw_os_error().unwrap_or_default());
                return Err(self.away().unwrap_or(error));
            };
            let over = Instant::now() + pause;
            while let left = over.saturating_duration_since(Instant::now())
                && !left.is_zero()
            {
                if stop.load(Ordering::Relaxed) {
                    return Err(StorageError::Interrupted);
                }
                thread::sleep(left.min(LOOK));
            }
            if let Some(away) = self.away() {
                return Err(away);
            }
            if self.answers() {
                self.forget_open();
                return Ok(());
            }
        }
    }

    /// Whether the storage answers: its server is asked, regardless of caches here.
    pub(super) fn answers(&self) -> bool {
        fault().and_then(|()| self.ask()).is_ok()
    }

    /// Asks the server of the storage for something that is not cached here.
    pub(super) fn ask(&self) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match open(&self.root, flags, Mode::empty()).and_then(fstatfs) {
            // A storage that was moved or removed is not away.
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
