//! A process and all that it has started, and the processors that they are bound to.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

/// The descendants of a process.
pub(crate) fn processes(root: Pid) -> Vec<Pid> {
    let mut found = vec![root];
    let mut at = 0;
    while let Some(process) = found.get(at) {
        let threads = fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero()));
        for thread in threads.into_iter().flatten().flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|it| it.parse().ok());
            found.extend(children.filter_map(Pid::from_raw));
        }
        at += 1;
    }
    found.remove(0);
    found
}

/// Binds a process and all that it has started to these processors, unless there are none.
pub(crate) fn bind_below(root: Pid, processors: &[usize]) {
    if processors.is_empty() {
        return;
    }
    let processors = processors.iter().copied().collect();
    threads_below(root).into_iter().for_each(|thread| bind(Some(thread), &processors));
}

/// Binds a thread, or this one, to processors. One that has ended, or belongs to another user, stays as it is.
pub(crate) fn bind(thread: Option<Pid>, processors: &BTreeSet<usize>) {
    let mut set = CpuSet::new();
    processors.iter().filter(|number| **number < CpuSet::MAX_CPU).for_each(|it| set.set(*it));
    let _bound = sched_setaffinity(thread, &set);
}

/// The threads of a process and of all that it has started.
pub(crate) fn threads_below(root: Pid) -> Vec<Pid> {
    let all = [root].into_iter().chain(processes(root));
    let threads = all.flat_map(|process| {
        let threads = fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero()));
        threads
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|thread| Pid::from_raw(thread.file_name().to_str()?.parse().ok()?))
    });
    threads.collect()
}
