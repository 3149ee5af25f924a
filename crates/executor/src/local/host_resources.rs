//! Resources that runs of the same user share on a host: the right to be alone, graphics processors, and memory.
//!
//! There are two locked files for each host. `executions` is shared by all runs that execute something, and an
//! exclusive execution has it alone. A run that waits for that has the `gate` alone: as long as it is taken, other runs
//! begin nothing new, so the waiting run is not starved.
//!
//! Each graphics processor has a file, locked by the run that uses it, and so has each processor that a call is pinned to. A run that
//! takes some has the file `gpus` or `cpus` alone until it has them all. So no two runs wait for processors that the other one holds. The system releases all locks
//! when a process ends, in any way.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{self, Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use super::control_groups::{MemoryGroup, Version, memory_groups};
use super::memory_use::field;
use crate::executor::ExecuteError;
use crate::invocation::VISIBLE_GPUS;
use ce_files::umask;

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
    /// The reason why locks are not available, until an exclusive execution reports it.
    failure: Option<String>,
    /// The message that is yet to be reported.
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
            let entered =
                if exclusive { state.enter_alone(&mut has_gate) } else { state.enter_beside() };
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

    /// Returns the next message for the user, if any, each one once.
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
            *has_gate = match &self.files {
                _ if self.is_exclusive => false,
                None => true,
                Some(files) => is_taken(files.gate.try_lock())?,
            };
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

    /// Continues without locks, which are not available.
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
            let why = if exclusive {
                "a call is exclusive, and other runs execute on this host"
            } else {
                "another run on this host has an exclusive call"
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
fn lock_file(directory: &Path, name: &str) -> io::Result<File> {
    umask::create_private_dirs(directory)?;
    umask::new_file().create(true).append(true).open(directory.join(name))
}

/// Whether a lock was taken; another process may have it.
fn is_taken(locked: Result<(), TryLockError>) -> io::Result<bool> {
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

/// The processors of one kind that this host has and this run may use: no two executions have the same one.
#[derive(Debug)]
pub(super) struct HostUnits {
    /// The name of one of them, such as `gpu`. Messages and locked files have it.
    word: &'static str,
    /// Their names, in the order in which they are taken.
    names: LazyLock<Vec<String>, Box<dyn FnOnce() -> Vec<String> + Send>>,
    /// The directory of the locked files; without one, this run knows of no other.
    directory: Option<PathBuf>,
    /// An execution of this run that takes some holds the lock.
    gate: Mutex<()>,
    state: Mutex<UnitState>,
}

#[derive(Debug, Default)]
struct UnitState {
    /// The names of processors that executions of this run have.
    taken: BTreeSet<String>,
    /// The message that is yet to be reported.
    notice: Option<String>,
    has_told: bool,
    has_warned: bool,
}

/// Processors that an execution has, given back when dropped.
pub(super) struct UnitLease {
    units: Arc<HostUnits>,
    names: BTreeSet<String>,
    files: Vec<File>,
}

impl HostUnits {
    /// Shares them with all runs that lock files in the same directory, which need not exist. Their names are found when they are needed.
    pub(super) fn new(
        word: &'static str,
        find_names: impl FnOnce() -> Vec<String> + Send + 'static,
        directory: Option<PathBuf>,
    ) -> Self {
        let names = LazyLock::new(Box::new(find_names) as Box<_>);
        let (gate, state) = (Mutex::default(), Mutex::default());
        Self { word, names, directory, gate, state }
    }

    /// The graphics processors of this host, or the ones that the user's variable names.
    pub(super) fn gpus(directory: Option<PathBuf>) -> Self {
        let find_names = || names(env::var(VISIBLE_GPUS).ok().as_deref(), Path::new("/dev"));
        Self::new("gpu", find_names, directory)
    }

    /// The names of those that executions of this run have.
    pub(super) fn taken(&self) -> BTreeSet<String> {
        self.lock().taken.clone()
    }

    /// The names of all.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Leases `count` of them. If they are not free, waits for them if it `waits`, and returns `None` otherwise.
    ///
    /// # Errors
    ///
    /// Fails as soon as `is_cancelled`, or at once if the host has fewer.
    pub(super) fn lease(
        self: &Arc<Self>,
        count: u32,
        waits: bool,
        is_cancelled: impl Fn() -> bool,
    ) -> Result<Option<UnitLease>, ExecuteError> {
        let units = Arc::clone(self);
        let mut lease = UnitLease { units, names: BTreeSet::new(), files: Vec::new() };
        let count = count as usize;
        if count == 0 {
            return Ok(Some(lease));
        }
        if count > self.names().len() {
            let there = self.names().len();
            let word = self.word;
            return Err(ExecuteError::Refused(format!("it asks for {count} {word}s of {there}")));
        }
        let _gate = match (waits, self.gate.try_lock()) {
            (_, Ok(gate)) => gate,
            (_, Err(sync::TryLockError::Poisoned(gate))) => gate.into_inner(),
            (true, Err(sync::TryLockError::WouldBlock)) => {
                self.gate.lock().unwrap_or_else(PoisonError::into_inner)
            }
            (false, Err(sync::TryLockError::WouldBlock)) => return Ok(None),
        };
        let gate = self.poll(waits, &is_cancelled, || self.try_lock(&format!("{}s", self.word)))?;
        let Some(gate) = gate else { return Ok(None) };
        let taken = self.poll(waits, &is_cancelled, || {
            lease.extend(count);
            (lease.names.len() == count).then_some(())
        });
        gate.iter().for_each(unlock);
        Ok(taken?.map(|()| lease))
    }

    /// Returns the next message for the user, if any, each one once.
    pub(super) fn notice(&self) -> Option<String> {
        self.lock().notice.take()
    }

    /// Tries again and again, until there is something or `is_cancelled`; or once, unless it `waits`.
    fn poll<T>(
        &self,
        waits: bool,
        is_cancelled: impl Fn() -> bool,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> Result<Option<T>, ExecuteError> {
        let mut has_waited = false;
        while !is_cancelled() {
            let result = attempt();
            if result.is_some() || !waits {
                return Ok(result);
            }
            if has_waited {
                self.tell_of_waiting();
            }
            has_waited = true;
            thread::sleep(POLL);
        }
        Err(ExecuteError::Interrupted)
    }

    /// Locks a file, unless another run has locked it. Without files, other runs do not count.
    fn try_lock(&self, file: &str) -> Option<Option<File>> {
        let Some(directory) = &self.directory else { return Some(None) };
        let locked = lock_file(directory, file).and_then(|file| {
            let is_taken = is_taken(file.try_lock())?;
            Ok(is_taken.then_some(Some(file)))
        });
        locked.unwrap_or_else(|error| {
            self.warn(directory, &error);
            Some(None)
        })
    }

    fn tell_of_waiting(&self) {
        let mut state = self.lock();
        if !state.has_told {
            state.has_told = true;
            let word = self.word;
            state.notice =
                Some(format!("waiting: a call asks for {word}s, and other runs have them"));
        }
    }

    fn warn(&self, directory: &Path, error: &io::Error) {
        let mut state = self.lock();
        if !state.has_warned {
            state.has_warned = true;
            let (place, word) = (directory.display(), self.word);
            state.notice = Some(format!(
                "warning: other runs on this host may use the same {word}s: no file in {place} can be locked: {error}\n  try: check who may write there"
            ));
        }
    }

    fn lock(&self) -> MutexGuard<'_, UnitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnitLease {
    /// The names of its processors, in the order of the host.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.units.names().iter();
        names.filter(|name| self.names.contains(*name)).cloned().collect()
    }

    /// Takes free processors until it has `count`.
    fn extend(&mut self, count: usize) {
        let units = Arc::clone(&self.units);
        for name in units.names() {
            // Files of this run are not opened again: where locks belong to a process, that would release them.
            if self.names.len() == count || units.lock().taken.contains(name) {
                continue;
            }
            // A name may be a path.
            let file = format!("{}-{}", units.word, name.replace('/', "_"));
            if let Some(file) = units.try_lock(&file) {
                self.files.extend(file);
                units.lock().taken.insert(name.clone());
                self.names.insert(name.clone());
            }
        }
    }
}

impl Drop for UnitLease {
    fn drop(&mut self) {
        self.files.iter().for_each(unlock);
        let mut state = self.units.lock();
        state.taken.retain(|name| !self.names.contains(name));
    }
}

/// Unlocks a file, also where a process that is being started has it open.
fn unlock(file: &File) {
    // A file that cannot be unlocked is so when it is closed.
    drop(file.unlock());
}

/// The names of the graphics processors: the visible ones, or else all.
fn names(visible: Option<&str>, devices: &Path) -> Vec<String> {
    let Some(visible) = visible else {
        let mut count = 0;
        for entry in fs::read_dir(devices).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("nvidia"));
            count += usize::from(number.is_some_and(|number| number.parse::<u32>().is_ok()));
        }
        return (0..count).map(|number| number.to_string()).collect();
    };
    let mut names: Vec<String> = Vec::new();
    // As the driver reads it, the first wrong one ends the list.
    for name in visible.split(',').map(str::trim).take_while(|it| !it.is_empty() && *it != "-1") {
        if !names.iter().any(|other| other == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The part of the memory that is left to everything else.
const REST: u64 = 32;

/// The memory that all executions together may reserve, in bytes, if it is known.
pub(super) fn memory_for_executions() -> Option<u64> {
    memory(Path::new("/")).map(|memory| memory - memory / REST)
}

/// The memory of the host whose root this is, or the limit of the control groups of this process if that is less.
fn memory(root: &Path) -> Option<u64> {
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    let total = read("proc/meminfo").and_then(|text| field(&text, "MemTotal:"));
    let groups = read("proc/self/cgroup").unwrap_or_default();
    let mut limits: Vec<u64> = Vec::new();
    for MemoryGroup { version, path } in memory_groups(&groups) {
        let mount = match version {
            Version::First => "sys/fs/cgroup/memory",
            Version::Second => "sys/fs/cgroup",
        };
        // In a container, the group itself may be mounted.
        for place in Path::new(path.trim_start_matches('/')).ancestors() {
            let limit = fs::read_to_string(root.join(mount).join(place).join(version.limit()));
            limits.extend(limit.ok().and_then(|text| text.trim().parse::<u64>().ok()));
        }
    }
    total.into_iter().chain(limits).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_gpus_count_and_by_default_all_of_the_host() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["nvidia1", "nvidia0", "nvidiactl", "nvidia-uvm", "null"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(names(None, dir.path()), ["0", "1"]);
        assert_eq!(names(Some("3, GPU-ab,3,-1,2"), dir.path()), ["3", "GPU-ab"]);
        assert_eq!(names(Some(""), dir.path()), [""; 0]);
    }

    fn gpus(directory: Option<&Path>) -> Arc<HostUnits> {
        let find_names = || ["3", "MIG-1/2", "5"].map(str::to_owned).into();
        Arc::new(HostUnits::new("gpu", find_names, directory.map(Path::to_owned)))
    }

    #[test]
    fn no_two_executions_have_the_same_gpu() {
        let dir = tempfile::tempdir().unwrap();
        let (run, other) = (gpus(Some(dir.path())), gpus(Some(dir.path())));
        let never = || false;
        assert!(run.lease(0, true, never).unwrap().unwrap().names().is_empty());
        let one = run.lease(1, true, never).unwrap().unwrap();
        let two = other.lease(1, true, never).unwrap().unwrap();
        assert_eq!([one.names(), two.names()], [["3"], ["MIG-1/2"]]);
        drop(one);
        let rest = run.lease(2, true, never).unwrap().unwrap();
        assert_eq!(rest.names(), ["3", "5"]);
        // An execution that gives up or does not wait keeps nothing.
        assert!(other.lease(1, false, never).unwrap().is_none());
        assert!(matches!(other.lease(1, true, || true), Err(ExecuteError::Interrupted)));
        assert!(matches!(other.lease(4, true, never), Err(ExecuteError::Refused(_))));
        drop((two, rest));
        assert_eq!(other.lease(3, true, never).unwrap().unwrap().names(), ["3", "MIG-1/2", "5"]);
        assert_eq!((run.notice(), other.notice()), (None, None));
    }

    #[test]
    fn a_run_that_waits_for_several_gpus_is_next() {
        let dir = tempfile::tempdir().unwrap();
        let (run, other) = (gpus(Some(dir.path())), gpus(Some(dir.path())));
        let held = run.lease(2, true, || false).unwrap().unwrap();
        thread::scope(|scope| {
            let all = scope.spawn(|| other.lease(3, true, || false).unwrap().unwrap().names());
            // It has taken the free GPU, and says that it waits.
            while other.notice().is_none() {
                thread::yield_now();
            }
            drop(held);
            assert_eq!(all.join().unwrap().len(), 3);
        });
    }

    #[test]
    fn gpus_are_leased_within_a_run_without_lock_files() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        for (directory, warns) in [(None, false), (Some(file.as_path()), true)] {
            let run = gpus(directory);
            let leases = [1, 2].map(|count| run.lease(count, true, || false).unwrap().unwrap());
            assert_eq!(leases.map(|it| it.names().join(",")), ["3", "MIG-1/2,5"]);
            assert_eq!(run.notice().is_some_and(|it| it.contains("the same gpus")), warns);
            assert_eq!(run.notice(), None);
        }
    }

    #[test]
    fn the_memory_is_the_smallest_limit() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        assert_eq!(memory(root), None);
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/meminfo", "MemFree: 1 kB\nMemTotal:       4096 kB\n");
        assert_eq!(memory(root), Some(4 << 20));
        write("proc/self/cgroup", "4:cpu,memory:/jobs/7\n0::/user/mine\n");
        write("sys/fs/cgroup/user/mine/memory.max", "max\n");
        assert_eq!(memory(root), Some(4 << 20));
        write("sys/fs/cgroup/user/memory.max", "3145728\n");
        assert_eq!(memory(root), Some(3 << 20));
        write("sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes", "2097152\n");
        assert_eq!(memory(root), Some(2 << 20));
    }
}
