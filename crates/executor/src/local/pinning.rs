//! Processors that executions have for themselves.
//!
//! An execution is started by a thread that is bound to its processors, so it is bound to them from its beginning. Meanwhile everything
//! else of this run leaves them: its own threads, idle launchers, and other executions that have not chosen processors themselves. What
//! is started later inherits that.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::getpid;
use rustix::thread::{CpuSet, sched_getaffinity};

use super::host_resources::{HostUnits, UnitLease};
use super::host_samples::usable_processors;
use crate::executor::ExecuteError;
use crate::process_tree::{bind, threads_below};

/// The processors that this run may use.
#[derive(Debug)]
pub(super) struct Processors {
    units: Arc<HostUnits>,
    usable: BTreeSet<usize>,
    /// The processors of everything that is not pinned.
    rest: Mutex<BTreeSet<usize>>,
}

/// Processors that an execution has for itself, given back when dropped.
pub(super) struct PinnedProcessors {
    processors: Arc<Processors>,
    lease: Option<UnitLease>,
}

impl Processors {
    /// Shares the usable ones with all runs that lock files in the same directory, which need not exist.
    pub(super) fn in_directory(directory: Option<PathBuf>) -> Self {
        let usable = usable_processors().unwrap_or_default();
        let all: BTreeSet<usize> = usable.iter().copied().collect();
        let find_names = move || {
            let ordered = ordered(&usable, Path::new("/sys/devices/system/cpu"));
            ordered.iter().map(ToString::to_string).collect()
        };
        let units = Arc::new(HostUnits::new("cpu", find_names, directory));
        Self { units, rest: Mutex::new(all.clone()), usable: all }
    }

    /// The number of processors that can be pinned.
    pub(super) fn count(&self) -> usize {
        self.usable.len()
    }

    /// Returns the next message for the user, if any, each one once.
    pub(super) fn notice(&self) -> Option<String> {
        self.units.notice()
    }

    /// Leases `count` processors, as [`HostUnits::lease`] does.
    ///
    /// # Errors
    ///
    /// Fails as soon as `is_cancelled`, or at once if the host has fewer.
    pub(super) fn lease(
        self: &Arc<Self>,
        count: u32,
        waits: bool,
        is_cancelled: impl Fn() -> bool,
    ) -> Result<Option<PinnedProcessors>, ExecuteError> {
        let Some(lease) = self.units.lease(count, waits, is_cancelled)? else { return Ok(None) };
        let pinned = PinnedProcessors { processors: Arc::clone(self), lease: Some(lease) };
        if count > 0 {
            self.leave(&BTreeSet::new());
        }
        Ok(Some(pinned))
    }

    /// Lets everything of this run that is not pinned leave the processors that are, and use the ones that were given back.
    fn leave(&self, given_back: &BTreeSet<usize>) {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let pinned: BTreeSet<usize> =
            self.units.taken().iter().filter_map(|name| name.parse().ok()).collect();
        let free: BTreeSet<usize> = self.usable.difference(&pinned).copied().collect();
        let next = if free.is_empty() { self.usable.clone() } else { free };
        for thread in threads_below(getpid()) {
            let Ok(set) = sched_getaffinity(Some(thread)) else { continue };
            let has: BTreeSet<usize> =
                (0..CpuSet::MAX_CPU).filter(|number| set.is_set(*number)).collect();
            let is_own_choice = has != self.usable && has != *rest && has != *given_back;
            if has == *rest || !has.is_subset(&pinned) && !is_own_choice {
                bind(Some(thread), &next);
            }
        }
        *rest = next;
    }
}

impl PinnedProcessors {
    /// Their numbers, in order.
    pub(super) fn numbers(&self) -> Vec<usize> {
        let names = self.lease.iter().flat_map(UnitLease::names);
        let mut numbers: Vec<usize> = names.filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }
}

impl Drop for PinnedProcessors {
    fn drop(&mut self) {
        let numbers: BTreeSet<usize> = self.numbers().into_iter().collect();
        drop(self.lease.take());
        if !numbers.is_empty() {
            self.processors.leave(&numbers);
        }
    }
}

/// This thread is bound to some processors until this is dropped, and what it starts stays so.
pub(super) struct BoundThread<'a>(Option<&'a Processors>);

impl<'a> BoundThread<'a> {
    /// Binds it to some of these processors, unless there are no numbers.
    pub(super) fn to(processors: &'a Processors, numbers: &[usize]) -> Self {
        if numbers.is_empty() {
            return Self(None);
        }
        bind(None, &numbers.iter().copied().collect());
        Self(Some(processors))
    }
}

impl Drop for BoundThread<'_> {
    fn drop(&mut self) {
        // Others may have been pinned or given back meanwhile.
        if let Some(processors) = self.0 {
            bind(None, &processors.rest.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// Orders processors as they are taken: one of each core, the last core first, and then the ones that share a core with one before. The
/// kernel has more work of its own on the first ones.
fn ordered(usable: &[usize], devices: &Path) -> Vec<usize> {
    let core = |number: usize| {
        let path = format!("cpu{number}/topology/thread_siblings_list");
        fs::read_to_string(devices.join(path)).unwrap_or_else(|_| number.to_string())
    };
    let mut of_core: HashMap<String, usize> = HashMap::new();
    let mut ordered: Vec<(usize, usize)> = Vec::new();
    for number in usable.iter().rev() {
        let before = of_core.entry(core(*number)).or_default();
        ordered.push((*before, *number));
        *before += 1;
    }
    ordered.sort_by_key(|(before, _)| *before);
    ordered.into_iter().map(|(_, number)| number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_of_different_cores_come_first() {
        let devices = tempfile::tempdir().unwrap();
        for (number, siblings) in [(0, "0,4"), (1, "1,5"), (4, "0,4"), (5, "1,5")] {
            let topology = devices.path().join(format!("cpu{number}/topology"));
            fs::create_dir_all(&topology).unwrap();
            fs::write(topology.join("thread_siblings_list"), siblings).unwrap();
        }
        assert_eq!(ordered(&[0, 1, 4, 5], devices.path()), [5, 4, 1, 0]);
        assert_eq!(ordered(&[0, 1, 4], devices.path()), [4, 1, 0]);
        assert_eq!(ordered(&[2, 3], devices.path()), [3, 2], "nothing is known of cores");
    }

    #[test]
    fn a_thread_is_bound_until_its_execution_has_started() {
        let usable = usable_processors().unwrap();
        let last = *usable.last().unwrap();
        let processors = Processors::in_directory(None);
        let bound = BoundThread::to(&processors, &[last]);
        assert_eq!(usable_processors().unwrap(), [last]);
        drop(bound);
        assert_eq!(usable_processors().unwrap(), usable);
        drop(BoundThread::to(&processors, &[]));
        assert_eq!(usable_processors().unwrap(), usable);
    }
}
