//! Leases of graphics processors: of all runs of the same user on a host, one at a time uses each.
//!
//! Each has a file, locked by the run that uses it. Who takes some has the file `gpus` alone until it has them all, so that
//! nobody waits for one and keeps another waiting for the rest. The system releases all when a process ends, in whatever way.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread;

use super::host::{POLL, is_taken, lock_file};
use crate::ended::ExecuteError;
use crate::invocation::VISIBLE_GPUS;

/// The graphics processors of this host that this run may use.
#[derive(Debug, Default)]
pub(super) struct Gpus {
    names: OnceLock<Vec<String>>,
    /// The directory of the locked files; without one, this run knows of no other.
    directory: Option<PathBuf>,
    /// Held by the execution of this run that takes some.
    gate: Mutex<()>,
    state: Mutex<GpuState>,
}

#[derive(Debug, Default)]
struct GpuState {
    /// The names of those that executions of this run have.
    taken: BTreeSet<String>,
    /// What is yet to be told.
    notice: Option<String>,
    has_told: bool,
    has_warned: bool,
}

/// Graphics processors that an execution has, given back when dropped.
pub(super) struct GpuLease {
    gpus: Arc<Gpus>,
    names: BTreeSet<String>,
    files: Vec<File>,
}

impl Gpus {
    /// Shares them with all runs that lock files in the same directory, which need not exist.
    pub(super) fn in_directory(directory: Option<PathBuf>) -> Self {
        Self { directory, ..Self::default() }
    }

    /// The names of all.
    pub(super) fn names(&self) -> &[String] {
        let visible = || env::var(VISIBLE_GPUS).ok();
        self.names.get_or_init(|| names(visible().as_deref(), Path::new("/dev")))
    }

    /// Takes so many. Waits until they are free, if it `waits`, and returns `None` otherwise.
    ///
    /// # Errors
    ///
    /// Fails as soon as `is_cancelled`, or at once if there are not so many.
    pub(super) fn lease(
        self: &Arc<Self>,
        count: u32,
        waits: bool,
        is_cancelled: impl Fn() -> bool,
    ) -> Result<Option<GpuLease>, ExecuteError> {
        let gpus = Arc::clone(self);
        let mut lease = GpuLease { gpus, names: BTreeSet::new(), files: Vec::new() };
        let count = count as usize;
        if count == 0 {
            return Ok(Some(lease));
        }
        if count > self.names().len() {
            let there = self.names().len();
            return Err(ExecuteError::Refused(format!("it asks for {count} gpus of {there}")));
        }
        let _gate = match (waits, self.gate.try_lock()) {
            (_, Ok(gate)) => gate,
            (_, Err(TryLockError::Poisoned(gate))) => gate.into_inner(),
            (true, Err(TryLockError::WouldBlock)) => {
                self.gate.lock().unwrap_or_else(PoisonError::into_inner)
            }
            (false, Err(TryLockError::WouldBlock)) => return Ok(None),
        };
        let gate = self.poll(waits, &is_cancelled, || self.try_lock("gpus"))?;
        let Some(gate) = gate else { return Ok(None) };
        let taken = self.poll(waits, &is_cancelled, || {
            lease.extend(count);
            (lease.names.len() == count).then_some(())
        });
        gate.iter().for_each(unlock);
        Ok(taken?.map(|()| lease))
    }

    /// Returns what the user should know by now, each thing once.
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

    /// Locks a file, unless another run has locked it. Without files, nobody else counts.
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
            state.notice =
                Some("waiting: a call asks for gpus, and other runs have them".to_owned());
        }
    }

    fn warn(&self, directory: &Path, error: &io::Error) {
        let mut state = self.lock();
        if !state.has_warned {
            state.has_warned = true;
            let place = directory.display();
            state.notice = Some(format!(
                "warning: other runs on this host may use the same gpus: no file in {place} can be locked: {error}\n  try: check who may write there"
            ));
        }
    }

    fn lock(&self) -> MutexGuard<'_, GpuState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GpuLease {
    /// The names of those that it has, in the order of the host.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.gpus.names().iter();
        names.filter(|name| self.names.contains(*name)).cloned().collect()
    }

    /// Takes those that are free, until there are so many.
    fn extend(&mut self, count: usize) {
        let gpus = Arc::clone(&self.gpus);
        for name in gpus.names() {
            // Files of this run are not opened again: where locks are those of a process, that would release them.
            if self.names.len() == count || gpus.lock().taken.contains(name) {
                continue;
            }
            // A name may be a path.
            let file = format!("gpu-{}", name.replace('/', "_"));
            if let Some(file) = gpus.try_lock(&file) {
                self.files.extend(file);
                gpus.lock().taken.insert(name.clone());
                self.names.insert(name.clone());
            }
        }
    }
}

impl Drop for GpuLease {
    fn drop(&mut self) {
        self.files.iter().for_each(unlock);
        let mut state = self.gpus.lock();
        state.taken.retain(|name| !self.names.contains(name));
    }
}

/// Unlocks a file, also where a process that is being started has it open.
fn unlock(file: &File) {
    // A file that cannot be unlocked is so when it is closed.
    drop(file.unlock());
}

/// The names of the graphics processors: those that are visible, else those that there are.
fn names(visible: Option<&str>, devices: &Path) -> Vec<String> {
    let Some(visible) = visible else {
        let entries = fs::read_dir(devices).into_iter().flatten().filter_map(Result::ok);
        let is_gpu = |name: &str| {
            name.strip_prefix("nvidia").is_some_and(|number| number.parse::<u32>().is_ok())
        };
        let count = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_gpu)).count();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_visible_count_or_those_that_there_are() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["nvidia1", "nvidia0", "nvidiactl", "nvidia-uvm", "null"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(names(None, dir.path()), ["0", "1"]);
        assert_eq!(names(Some("3, GPU-ab,3,-1,2"), dir.path()), ["3", "GPU-ab"]);
        assert_eq!(names(Some(""), dir.path()), [""; 0]);
    }

    fn gpus(directory: Option<&Path>) -> Arc<Gpus> {
        let gpus = Arc::new(Gpus::in_directory(directory.map(Path::to_owned)));
        gpus.names.set(["3", "MIG-1/2", "5"].map(str::to_owned).into()).unwrap();
        gpus
    }

    #[test]
    fn no_two_executions_have_the_same_ones() {
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
        // Who gives up keeps nothing, nor who does not wait.
        assert!(other.lease(1, false, never).unwrap().is_none());
        assert!(matches!(other.lease(1, true, || true), Err(ExecuteError::Interrupted)));
        assert!(matches!(other.lease(4, true, never), Err(ExecuteError::Refused(_))));
        drop((two, rest));
        assert_eq!(other.lease(3, true, never).unwrap().unwrap().names(), ["3", "MIG-1/2", "5"]);
        assert_eq!((run.notice(), other.notice()), (None, None));
    }

    #[test]
    fn who_waits_for_several_is_next() {
        let dir = tempfile::tempdir().unwrap();
        let (run, other) = (gpus(Some(dir.path())), gpus(Some(dir.path())));
        let held = run.lease(2, true, || false).unwrap().unwrap();
        thread::scope(|scope| {
            let all = scope.spawn(|| other.lease(3, true, || false).unwrap().unwrap().names());
            // It has taken the one that is free, and says that it waits.
            while other.notice().is_none() {
                thread::yield_now();
            }
            drop(held);
            assert_eq!(all.join().unwrap().len(), 3);
        });
    }

    #[test]
    fn without_files_executions_of_one_run_agree() {
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
}
