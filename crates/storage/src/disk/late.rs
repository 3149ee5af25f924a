//! Asking again: a network file system may answer late, with what was so a moment ago, or not at all for a while.
//!
//! [`persist`] is the only place that judges such errors. An answer that may be old is asked for again, a few times within a
//! second or two, with directories that are opened anew by their paths. If the storage itself is away, a run or a worker waits
//! for it, for a minute, and goes on where it was.
//!
//! An operation that failed may have been done all the same. So each attempt is told whether it is the first one.

use std::io;
use std::path::Path;
use std::sync::PoisonError;
use std::thread;

use rustix::io::Errno;

use super::network::FileSystemKind;
use super::outage::{AWAY, Patience, Pauses, patience, source};
use super::{Disk, Doing, Result, StorageError, is_absent};

/// The part of a run's patience for which an answer that may be old is asked for again.
const STALE: u32 = 24;

/// The parts of it that are the first and the longest pause before an answer is asked for again.
const STALE_PAUSES: [u32; 2] = [6000, 160];

/// What it means that nothing has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// There is nothing, as far as is known.
    Answer,
    /// There should be something: the answer may be old.
    Doubt,
}

/// What an error says of a file system.
enum Lateness {
    /// Nothing.
    No,
    /// The answer may be old.
    Stale,
    /// The storage is away.
    Away,
}

impl StorageError {
    /// Whether it is this error of the operating system.
    pub(super) fn is(&self, errno: Errno) -> bool {
        source(self).and_then(io::Error::raw_os_error) == Some(errno.raw_os_error())
    }

    /// Whether it may say that the storage itself does not answer.
    pub fn may_be_away(&self) -> bool {
        AWAY.into_iter().chain([Errno::IO]).any(|errno| self.is(errno))
    }
}

/// Does something with a storage that is yet to be opened, and waits if it is away.
pub(crate) fn persist_at<T>(
    root: &Path,
    patience: &Patience,
    mut act: impl FnMut() -> Result<T>,
) -> Result<T> {
    let mut disk = Disk::absent(root.to_owned());
    disk.kind = FileSystemKind::of_nearest(root);
    disk.wait_with(patience.clone(), root.to_owned());
    disk.persist(Absence::Answer, |_| act())
}

/// Opens the directory at a path, which was just made.
pub(crate) fn open_made(path: &Path) -> Result<Disk> {
    persist(None, Absence::Doubt, |_| {
        let disk = Disk::open(&path.canonicalize().doing("open the storage", path)?)?;
        match disk.is_there() {
            true => Ok(disk),
            false => Err(Errno::NOENT.into()).doing("open the storage", path),
        }
    })
}

/// Does something until it is done, or there is no use in trying again. It is told whether it was tried before.
///
/// Without a disk, nothing is known but that an answer may be old.
pub(super) fn persist<T>(
    disk: Option<&Disk>,
    absence: Absence,
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
        match lateness(disk, absence, &error) {
            Lateness::No => return Err(error),
            Lateness::Stale => {
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
            Lateness::Away => {}
        }
        let Some(disk) = disk else { return Err(error) };
        disk.outlast(error, away.get_or_insert_with(Disk::waiting_pauses))?;
    }
}

/// What an error says of the file system.
fn lateness(disk: Option<&Disk>, absence: Absence, error: &StorageError) -> Lateness {
    let Some(cause) = source(error) else { return Lateness::No };
    let errno = cause.raw_os_error();
    let is_one = |known: &Errno| errno == Some(known.raw_os_error());
    match disk {
        _ if is_one(&Errno::STALE) => Lateness::Stale,
        disk if is_one(&Errno::NOTEMPTY) && disk.is_none_or(Disk::is_on_network) => Lateness::Stale,
        Some(disk) if absence == Absence::Doubt && disk.is_on_network() && is_absent(cause) => {
            Lateness::Stale
        }
        None if absence == Absence::Doubt && is_absent(cause) => Lateness::Stale,
        Some(_) if AWAY.iter().any(is_one) => Lateness::Away,
        Some(disk) if is_one(&Errno::IO) && disk.is_on_network() && disk.outages.awaits() => {
            // Its server may have come back since.
            if disk.answers() { Lateness::Stale } else { Lateness::Away }
        }
        _ => Lateness::No,
    }
}

impl Disk {
    /// Closes all open directories: each is opened anew by its path.
    pub(super) fn forget_open(&self) {
        self.directories.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Does something until it is done, or there is no use in trying again.
    pub(super) fn persist<T>(
        &self,
        absence: Absence,
        act: impl FnMut(bool) -> Result<T>,
    ) -> Result<T> {
        persist(Some(self), absence, act)
    }

    /// Waits for the storage if it is away.
    ///
    /// # Errors
    ///
    /// Fails if it does not come back.
    pub(crate) fn await_answer(&self) -> Result<()> {
        self.persist(Absence::Answer, |_| {
            super::attempt_once("look at", self.root(), || self.ask())
        })?;
        self.outages.end();
        Ok(())
    }

    /// Reads something as a whole, from its beginning each time.
    pub(crate) fn read_whole<T>(&self, mut read: impl FnMut() -> Result<T>) -> Result<T> {
        self.persist(Absence::Answer, |_| read())
    }

    /// Looks for something with a name until the answer agrees with a listing of its directory. On a network file system, what
    /// is known of a name may be old; what a directory lists that is opened anew is not.
    pub(crate) fn look_anew<T>(
        &self,
        path: &Path,
        mut look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        if !self.is_on_network() {
            return look();
        }
        let agreed = self.persist(Absence::Answer, |_| {
            let found = look()?;
            match found.is_some() == self.is_listed(path)? {
                true => Ok(found),
                false => Err(Errno::STALE.into()).doing("look at", path),
            }
        });
        match agreed {
            // What is not listed is not there, and what cannot be seen cannot be used.
            Err(error) if error.is(Errno::STALE) => Ok(None),
            agreed => agreed,
        }
    }

    /// Whether a directory, which is opened anew, has an entry with this path.
    pub(crate) fn is_listed(&self, path: &Path) -> Result<bool> {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return Ok(true) };
        let mut is_listed = false;
        self.each_entry(dir, |entry, _| {
            is_listed |= entry == name;
            !is_listed
        })?;
        Ok(is_listed)
    }

    /// Looks for something that should be there: if it is not, it may not be visible yet.
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
            None if self.is_on_network() => {}
            found => return Ok(found),
        }
        let mut looked = || look()?.ok_or_else(absent);
        match self.persist(Absence::Doubt, |_| looked()) {
            Err(error) if error.is(Errno::NOENT) => Ok(None),
            found => found.map(Some),
        }
    }
}
