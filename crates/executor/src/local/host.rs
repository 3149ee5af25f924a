//! The host lock: an exclusive execution is alone on the host, as far as runs of the same user go.
//!
//! There are two locked files for each host. `executions` is shared by all runs that execute something, and an exclusive
//! execution has it alone. Who waits for that has the `gate` alone: as long as it is taken, other runs begin nothing new, so
//! that nobody waits forever. The system releases both when a process ends, in whatever way.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::ended::ExecuteError;

/// The interval at which locks of other runs are polled, and at which a run that executes looks whether others wait.
pub(super) const POLL: Duration = Duration::from_millis(50);

/// The executions of this run, and of others on this host.
#[derive(Debug, Default)]
pub(super) struct HostLock {
    /// The directory of the locked files; without one, this run knows of no other.
    directory: Option<PathBuf>,
    state: Mutex<HostState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct HostState {
    is_opened: bool,
    /// The locked files, if they can be locked.
    files: Option<LockedFiles>,
    /// The number of executions of this run.
    running: usize,
    /// Whether an execution of this run is exclusive, or waits with the gate.
    is_exclusive: bool,
    /// When it was last looked whether another run waits.
    looked: Option<Instant>,
    /// Why there are no locked files, until an exclusive execution tells.
    failure: Option<String>,
    /// What is yet to be told.
    notice: Option<String>,
    has_told: bool,
}

#[derive(Debug)]
struct LockedFiles {
    gate: File,
    executions: File,
}

/// The right to execute, given back when dropped.
pub(super) struct Turn {
    host: Arc<HostLock>,
    exclusive: bool,
}

impl HostLock {
    /// Shares the host with all runs that lock files in the same directory, which need not exist.
    pub(super) fn in_directory(directory: Option<PathBuf>) -> Self {
        Self { directory, ..Self::default() }
    }

    /// Lets an execution begin: beside others, unless one of them is exclusive or waits to be; or alone. Waits until it may, if it
    /// `waits`, and returns `None` otherwise.
    ///
    /// # Errors
    ///
    /// Fails as soon as `is_cancelled`.
    pub(super) fn enter(
        self: &Arc<Self>,
        exclusive: bool,
        waits: bool,
        is_cancelled: impl Fn() -> bool,
    ) -> Result<Option<Turn>, ExecuteError> {
        let mut state = self.lock();
        state.open(self.directory.as_deref());
        let mut has_gate = false;
        while !is_cancelled() {
            let entered = match exclusive {
                true => state.enter_alone(&mut has_gate),
                false => state.enter_beside(),
            };
            let entered = entered.unwrap_or_else(|error| {
                state.give_up(self.directory.as_deref(), &error);
                false
            });
            if exclusive && let Some(failure) = state.failure.take() {
                state.notice = Some(failure);
            }
            if entered {
                state.running += 1;
                return Ok(Some(Turn { host: Arc::clone(self), exclusive }));
            }
            if !waits {
                break;
            }
            let waited = self.changed.wait_timeout(state, POLL);
            let timeout;
            (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            if timeout.timed_out() && state.files.is_some() {
                state.tell_of_waiting(exclusive);
            }
        }
        if has_gate {
            state.leave_gate();
            self.changed.notify_all();
        }
        if is_cancelled() { Err(ExecuteError::Interrupted) } else { Ok(None) }
    }

    /// Returns what the user should know by now, each thing once.
    pub(super) fn notice(&self) -> Option<String> {
        self.lock().notice.take()
    }

    fn lock(&self) -> MutexGuard<'_, HostState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HostState {
    /// Begins an execution beside others, unless one of them is exclusive or waits to be.
    fn enter_beside(&mut self) -> io::Result<bool> {
        if self.is_exclusive {
            return Ok(false);
        }
        let now = Instant::now();
        let is_recent = self.looked.is_some_and(|looked| now.duration_since(looked) < POLL);
        let Some(files) = self.files.as_ref().filter(|_| self.running == 0 || !is_recent) else {
            return Ok(true);
        };
        if !is_taken(files.gate.try_lock_shared())? {
            return Ok(false);
        }
        files.gate.unlock()?;
        let entered = self.running > 0 || is_taken(files.executions.try_lock_shared())?;
        self.looked = entered.then_some(now);
        Ok(entered)
    }

    /// Begins an execution that is alone. From the time when it has the gate, nothing else begins.
    fn enter_alone(&mut self, has_gate: &mut bool) -> io::Result<bool> {
        if !*has_gate {
            let is_first =
                || self.files.as_ref().map_or(Ok(true), |it| is_taken(it.gate.try_lock()));
            *has_gate = !self.is_exclusive && is_first()?;
            self.is_exclusive |= *has_gate;
        }
        if !*has_gate || self.running > 0 {
            return Ok(false);
        }
        let Some(files) = &self.files else { return Ok(true) };
        let entered = is_taken(files.executions.try_lock())?;
        if entered {
            files.gate.unlock()?;
        }
        Ok(entered)
    }

    /// Lets other executions begin in place of an exclusive one that has the gate.
    fn leave_gate(&mut self) {
        self.is_exclusive = false;
        self.unlock(|files| &files.gate);
    }

    fn unlock(&self, file: fn(&LockedFiles) -> &File) {
        // A file that cannot be unlocked is so when this process ends.
        drop(self.files.as_ref().map(|files| file(files).unlock()));
    }

    /// Opens the locked files, the first time.
    fn open(&mut self, directory: Option<&Path>) {
        if !self.is_opened {
            self.is_opened = true;
            match directory.map(LockedFiles::open).transpose() {
                Ok(files) => self.files = files,
                Err(error) => self.give_up(directory, &error),
            }
        }
    }

    /// Goes on without locks, which cannot be had.
    fn give_up(&mut self, directory: Option<&Path>, error: &io::Error) {
        self.files = None;
        let place = directory.unwrap_or(Path::new("")).display();
        self.failure = Some(format!(
            "warning: other runs on this host are not waited for: no file in {place} can be locked: {error}\n  try: check who may write there"
        ));
    }

    fn tell_of_waiting(&mut self, exclusive: bool) {
        if !self.has_told {
            self.has_told = true;
            let why = match exclusive {
                true => "a call is exclusive, and other runs execute on this host",
                false => "another run on this host has an exclusive call",
            };
            self.notice = Some(format!("waiting: {why}"));
        }
    }
}

impl LockedFiles {
    fn open(directory: &Path) -> io::Result<Self> {
        let [gate, executions] = ["gate", "executions"].map(|name| lock_file(directory, name));
        Ok(Self { gate: gate?, executions: executions? })
    }
}

/// Opens a file to be locked. Neither the file nor its directory need exist.
pub(super) fn lock_file(directory: &Path, name: &str) -> io::Result<File> {
    fs::create_dir_all(directory)?;
    File::options().create(true).append(true).open(directory.join(name))
}

/// Whether a lock was taken; another process may have it.
pub(super) fn is_taken(locked: Result<(), TryLockError>) -> io::Result<bool> {
    match locked {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.host.lock();
        state.running -= 1;
        if self.exclusive {
            state.is_exclusive = false;
        }
        if state.running == 0 {
            state.unlock(|files| &files.executions);
            self.host.changed.notify_all();
        }
    }
}
