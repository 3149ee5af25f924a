//! The limits of executions: how long one may take, and how much memory its processes may have together. What meets a limit is
//! ended.
//!
//! The kernel limits the memory of a control group, where one can be made. A thread looks at the processes, too, but not beside an exclusive
//! execution, which it would disturb.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{io, mem};

use rustix::process::Pid;

use super::control_groups::{ControlGroup, ControlGroups, own_kills};
use super::memory_use::MemoryUse;
use super::process_groups::{GRACE, ask_to_end, kill};
use crate::invocation::Invocation;
use crate::process_tree::processes;

/// The interval at which memory is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// A limit that an execution has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetLimit {
    Time(Duration),
    /// In bytes.
    Memory(u64),
}

/// Limits executions of this host.
#[derive(Debug, Default)]
pub(super) struct Limiter {
    groups: ControlGroups,
    /// Whether the memory of an execution was not limited, until that is reported.
    unlimited: AtomicBool,
    has_told: AtomicBool,
}

impl Limiter {
    /// Prepares the limits of an execution.
    ///
    /// # Errors
    ///
    /// Fails if no thread can be started: then nothing is executed.
    pub(super) fn prepare(&self, invocation: &Invocation) -> io::Result<Limits> {
        let memory = invocation.memory_limit;
        let group = memory.and_then(|bytes| self.groups.limited(bytes));
        if memory.is_some() && invocation.exclusive && group.is_none() {
            self.unlimited.store(true, Ordering::Relaxed);
        }
        let is_watched = memory.is_some() && !invocation.exclusive && invocation.span.is_none();
        let has_watch = is_watched || invocation.limit.is_some();
        let watch = has_watch.then(|| LimitWatch::start(invocation.limit)).transpose()?;
        let kills = if memory.is_some() && group.is_none() { own_kills() } else { None };
        let directories = [&invocation.work, &invocation.outbox].map(|it| it.path.clone()).into();
        Ok(Limits { memory, group, is_watched, watch, directories, kills })
    }

    /// Returns the message that memory was not limited, once.
    pub(super) fn notice(&self) -> Option<String> {
        let is_new =
            self.unlimited.load(Ordering::Relaxed) && !self.has_told.swap(true, Ordering::Relaxed);
        is_new.then(|| {
            "the memory of exclusive calls is not limited: no control group can be made here, and nothing is watched beside them"
                .to_owned()
        })
    }
}

/// The limits of one execution.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// The memory, in bytes.
    memory: Option<u64>,
    group: Option<ControlGroup>,
    /// Whether its memory is watched.
    is_watched: bool,
    watch: Option<LimitWatch>,
    /// Directories of its own, whose files may be in memory.
    directories: Vec<PathBuf>,
    /// The number of processes beside this one that the kernel had ended for want of memory.
    kills: Option<u64>,
}

impl Limits {
    /// Waits for an execution that has just begun. `leader` leads its process group, and `root` is above all of its processes, or is
    /// the leader. Returns the limit that it has met.
    pub(super) fn during<T>(
        &mut self,
        leader: Pid,
        root: Pid,
        wait: impl FnOnce() -> T,
    ) -> (T, Option<MetLimit>) {
        let limit = self.memory.filter(|_| self.is_watched || self.group.is_some());
        let mut processes = limit
            .map(|limit| MemoryUse::new(limit, leader, root, mem::take(&mut self.directories)));
        if self.group.as_ref().is_some_and(|group| add_all(group, leader).is_err()) {
            self.group = None;
            self.kills = own_kills();
        }
        // The group does not count memory that was used before. Without a watch this is the only look.
        if let Some(used) = processes.as_mut().filter(|_| !self.is_watched)
            && used.is_too_much()
        {
            kill(leader);
            return (wait(), Some(MetLimit::Memory(used.limit())));
        }
        let Some(LimitWatch { begun, thread }) = self.watch.take() else { return (wait(), None) };
        let processes = processes.filter(|_| self.is_watched);
        let memory =
            processes.map(|processes| WatchedMemory { processes, group: self.group.take() });
        // The thread takes it.
        let _taken = begun.send((leader, memory));
        let waited = wait();
        drop(begun);
        let (met, memory) = thread.join().unwrap_or_default();
        self.group = self.group.take().or_else(|| memory?.group);
        (waited, met)
    }

    /// The limit of memory, if the kernel has ended a process of the execution for want of it. All of them have ended.
    pub(super) fn met_by_memory(&self) -> Option<MetLimit> {
        let has_run_out = match &self.group {
            Some(group) => group.has_run_out(),
            // It may have been another process of the same job. Then too much is executed again.
            None => self.kills.is_some_and(|before| own_kills().is_some_and(|now| now > before)),
        };
        self.memory.filter(|_| has_run_out).map(MetLimit::Memory)
    }
}

/// Adds a process that has just been started, and what it has started so far.
fn add_all(group: &ControlGroup, leader: Pid) -> io::Result<()> {
    group.add(leader)?;
    for process in processes(leader) {
        // It may have ended.
        let _gone = group.add(process);
    }
    Ok(())
}

/// The memory of an execution, as it is watched.
#[derive(Debug)]
struct WatchedMemory {
    processes: MemoryUse,
    group: Option<ControlGroup>,
}

impl WatchedMemory {
    /// Whether it is more than the limit, or the kernel has ended a process for that reason.
    fn is_too_much(&mut self) -> bool {
        self.group.as_ref().is_some_and(ControlGroup::has_run_out) || self.processes.is_too_much()
    }
}

/// An execution that a thread is to watch.
type Begun = (Pid, Option<WatchedMemory>);

/// A thread that ends a process group which meets a limit. It is there before the group: where no thread can be started, nothing is
/// executed.
#[derive(Debug)]
struct LimitWatch {
    /// Takes the execution, and is closed at its end.
    begun: Sender<Begun>,
    /// Returns the limit that was met, and the memory.
    thread: JoinHandle<(Option<MetLimit>, Option<WatchedMemory>)>,
}

impl LimitWatch {
    fn start(time: Option<Duration>) -> io::Result<Self> {
        let (begun, execution) = channel::<Begun>();
        let watch = move || {
            let Ok((leader, mut memory)) = execution.recv() else { return Default::default() };
            (watch(leader, time, memory.as_mut(), &execution), memory)
        };
        let thread = thread::Builder::new().name("limits".to_owned()).spawn(watch)?;
        Ok(Self { begun, thread })
    }
}

/// Ends a group when it meets a limit. Returns which one.
fn watch(
    group: Pid,
    time: Option<Duration>,
    mut memory: Option<&mut WatchedMemory>,
    ended: &Receiver<Begun>,
) -> Option<MetLimit> {
    let is_over = |pause| !matches!(ended.recv_timeout(pause), Err(RecvTimeoutError::Timeout));
    let began = Instant::now();
    loop {
        let left = time.map(|time| time.saturating_sub(began.elapsed()));
        let look = memory.is_some().then_some(LOOK);
        if is_over(left.into_iter().chain(look).min()?) {
            return None;
        }
        if let Some(memory) = memory.as_mut()
            && memory.is_too_much()
        {
            kill(group);
            return Some(MetLimit::Memory(memory.processes.limit()));
        }
        if let Some(time) = time.filter(|time| began.elapsed() >= *time) {
            ask_to_end(group);
            if !is_over(GRACE) {
                kill(group);
            }
            return Some(MetLimit::Time(time));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, ExitStatus};

    use super::*;

    /// Assigns 20 MB to a variable of a shell.
    const HOG: &str = r"x=$(head -c 20000000 /dev/zero | tr '\0' x)";

    const MEGABYTE: u64 = 1 << 20;

    /// Limits that a thread watches.
    fn watched(memory: u64) -> Limits {
        let watch = LimitWatch::start(None).ok();
        Limits { memory: Some(memory), is_watched: true, watch, ..Limits::default() }
    }

    /// Executes a script, whose `$1` is the hog. Returns its end, and the limit that it has met.
    fn execute(mut limits: Limits, script: &str) -> (ExitStatus, Option<MetLimit>) {
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", script, "sh", HOG]).process_group(0).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let (end, met) = limits.during(pid, pid, || child.wait().unwrap());
        (end, limits.met_by_memory().or(met))
    }

    #[test]
    fn what_uses_too_much_memory_is_ended_with_all_that_it_has_started() {
        for script in ["eval \"$1\"; sleep 600", "sh -c \"$1; sleep 600\"; exit 0"] {
            let (end, met) = execute(watched(10 * MEGABYTE), script);
            assert_eq!(met, Some(MetLimit::Memory(10 * MEGABYTE)), "{script}");
            assert!(!end.success());
        }
    }

    #[test]
    fn memory_that_processes_share_counts_once() {
        let forks = "eval \"$1\"; for i in 1 2 3 4 5 6 7 8; do (sleep 1; :) & done; wait";
        let (end, met) = execute(watched(100 * MEGABYTE), forks);
        assert_eq!((end.success(), met), (true, None));
    }

    #[test]
    fn a_child_that_the_kernel_ends_ends_the_call_whatever_its_parent_says() {
        let limiter = Limiter::default();
        for status in [0, 1] {
            // Most users can make no group.
            let Some(group) = limiter.groups.limited(10 * MEGABYTE) else { return };
            let limits = Limits { group: Some(group), ..watched(10 * MEGABYTE) };
            // It is in its group before it begins.
            let script = format!("sleep 0.2; sh -c \"$1; :\" 2>/dev/null; exit {status}");
            let (_, met) = execute(limits, &script);
            assert_eq!(met, Some(MetLimit::Memory(10 * MEGABYTE)));
        }
    }

    #[test]
    fn what_stays_below_its_limits_is_left_alone() {
        let group = Limiter::default().groups.limited(64 * MEGABYTE);
        let limits = Limits { group, ..watched(64 * MEGABYTE) };
        let (end, met) = execute(limits, "sleep 0.6");
        assert_eq!((end.success(), met), (true, None));
    }
}
