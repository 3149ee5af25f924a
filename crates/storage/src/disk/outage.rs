//! A storage that is away: its server does not answer. Runs and workers wait for it, for a minute.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, fstatfs, open};
use rustix::io::Errno;

use super::{Disk, Result, StorageError, fault, lock};

/// How long a run waits for a storage that is away.
const PATIENCE: Duration = Duration::from_secs(60);

/// The parts of it that are the first and the longest pause before it is looked whether the storage is back.
const AWAY_PAUSES: [u32; 2] = [600, 30];

/// How often it is looked meanwhile whether the user asks to stop.
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

/// How long a run waits for a storage that is away. A build with debug assertions obeys `CE_PATIENCE`, in seconds.
pub(crate) fn patience() -> Duration {
    static TIME: OnceLock<Option<Duration>> = OnceLock::new();
    if !cfg!(debug_assertions) {
        return PATIENCE;
    }
    TIME.get_or_init(|| {
        let seconds = std::env::var("CE_PATIENCE").ok()?.parse().ok()?;
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

/// What a run or a worker is told of a storage that it waits for: it is away, or a collection takes results away.
#[derive(Clone, Debug)]
pub enum Outage {
    /// This collection has closed the gate for a while.
    Collection {
        /// The storage.
        storage: PathBuf,
        /// The process.
        holder: String,
    },
    /// It does not answer, for this reason, and is waited for.
    Began {
        /// The storage.
        storage: PathBuf,
        /// The reason.
        why: String,
        /// For how long.
        most: Duration,
    },
    /// It answers again, after this time.
    Over {
        /// The storage.
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
    /// Tells the user.
    pub tell: Arc<dyn Fn(&Outage) + Send + Sync>,
}

impl fmt::Debug for Patience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patience").field("stop", &self.stop).finish_non_exhaustive()
    }
}

/// The times when a storage was away.
#[derive(Debug, Default)]
pub(super) struct Outages {
    /// Who waits for it, and how the user has named it. Nobody else waits.
    patience: OnceLock<(Patience, PathBuf)>,
    /// Since when it is away.
    since: Mutex<Option<Instant>>,
    /// How often it went away or came back.
    changes: AtomicU64,
    /// What it answered last, if it was waited for and did not come back.
    given_up: OnceLock<i32>,
}

impl Outages {
    /// Whether anybody waits for a storage that is away.
    pub(super) fn awaits(&self) -> bool {
        self.patience.get().is_some() && self.given_up.get().is_none()
    }

    /// Notes that the storage is away, and tells that once. Returns since when it is.
    pub(super) fn begin(&self, (patience, storage): &(Patience, PathBuf), why: &io::Error) {
        let mut since = lock(&self.since);
        if since.is_none() {
            *since = Some(Instant::now());
            self.changes.fetch_add(1, Ordering::AcqRel);
            let (storage, why) = (storage.clone(), why.to_string());
            (patience.tell)(&Outage::Began { storage, why, most: self::patience() });
        }
    }

    /// Notes that the storage has answered.
    pub(super) fn end(&self) {
        let began = lock(&self.since).take();
        if let (Some(began), Some((patience, storage))) = (began, self.patience.get()) {
            self.changes.fetch_add(1, Ordering::AcqRel);
            let storage = storage.clone();
            (patience.tell)(&Outage::Over { storage, after: began.elapsed() });
        }
    }
}

impl Disk {
    /// Waits for the storage from now on whenever it is away. The user has named it like this.
    pub(crate) fn wait_with(&self, patience: Patience, shown: PathBuf) {
        // Who has begun to wait goes on.
        let _is_first = self.outages.patience.set((patience, shown)).is_ok();
    }

    /// Tells whoever waits for the storage that it waits for a collection.
    pub(crate) fn tell_of_collection(&self, holder: String) {
        if let Some((patience, storage)) = self.outages.patience.get() {
            (patience.tell)(&Outage::Collection { storage: storage.clone(), holder });
        }
    }

    /// How often the storage went away or came back.
    pub(crate) fn outages(&self) -> u64 {
        self.outages.changes.load(Ordering::Acquire)
    }

    /// The error of a storage that was waited for, and did not come back.
    pub(crate) fn away(&self) -> Option<StorageError> {
        let source = io::Error::from_raw_os_error(*self.outages.given_up.get()?);
        let (_, path) = self.outages.patience.get()?;
        Some(StorageError::Away { path: path.clone(), seconds: patience().as_secs_f32(), source })
    }

    /// The pauses before it is looked whether the storage is back.
    pub(super) fn waiting_pauses() -> Pauses {
        Pauses::new(patience(), AWAY_PAUSES)
    }

    /// Waits until the storage answers. Returns the error of the operation if nobody waits.
    pub(super) fn outlast(&self, error: StorageError, pauses: &mut Pauses) -> Result<()> {
        let outages = &self.outages;
        let (Some(waiting), Some(why)) = (outages.patience.get(), source(&error)) else {
            return Err(error);
        };
        let stop = &waiting.0.stop;
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

    /// Whether the storage answers: its server is asked, whatever is cached here.
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
