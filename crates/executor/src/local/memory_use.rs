//! The memory that the processes of an execution use, as the kernel's files about processes have it.
//!
//! The sum of what each process has counts pages that processes share since a fork once for each. It is cheap, and only a sum above the limit
//! leads to the question that is not: how much that is if shared pages are divided. Pages of files do not count: the kernel
//! takes them back when memory is short.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{StatFs, statfs};
use rustix::param::page_size;
use rustix::process::Pid;

use crate::process_tree::processes;
use crate::sandbox::HOME;

/// Exact sums take at most one of so many parts of the time.
const RARELY: u32 = 20;

/// The longest time between two exact sums.
const LONGEST: Duration = Duration::from_secs(5);

/// The kernel's number of the file system in memory.
const TMPFS: u64 = 0x0102_1994;

/// The memory of one execution.
#[derive(Debug)]
pub(super) struct MemoryUse {
    /// In bytes.
    limit: u64,
    leader: Pid,
    root: Pid,
    /// Directories of its own on the disk.
    directories: Vec<PathBuf>,
    /// When it may be summed exactly again.
    next: Option<Instant>,
}

impl MemoryUse {
    /// The memory of the processes below `root`, in which `leader` leads the execution, and of files in these directories.
    pub(super) const fn new(limit: u64, leader: Pid, root: Pid, directories: Vec<PathBuf>) -> Self {
        Self { limit, leader, root, directories, next: None }
    }

    /// The memory that it may have, in bytes.
    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether it is more than the limit.
    pub(super) fn is_too_much(&mut self) -> bool {
        let mut all = processes(self.root);
        if self.root == self.leader {
            all.push(self.leader);
        }
        let (mut rough, mut shared) = (0, 0);
        for resident in all.iter().map(|process| Resident::of(*process)) {
            rough += resident.own();
            shared += resident.shared;
        }
        // Without a root of its own, it has the directories of the host.
        let is_isolated = self.root != self.leader;
        let own = |name: &str| format!("/proc/{}/root{name}", self.leader.as_raw_nonzero());
        let in_memory =
            |name: &str| if is_isolated { used_in_memory(Path::new(&own(name))) } else { 0 };
        let (shm, home) = (in_memory("/dev/shm"), in_memory(HOME));
        let files = self.directories.iter().map(|it| files_in_memory(it)).sum::<u64>() + home;
        let began = Instant::now();
        if rough + shm.max(shared) + files <= self.limit || self.next.is_some_and(|it| began < it) {
            return false;
        }
        let (mut own, mut shared) = (0, 0);
        for process in all {
            let share = Share::of(process);
            own += share.own;
            shared += share.shared;
        }
        self.next = Some(began + (began.elapsed() * RARELY).min(LONGEST));
        // Files in /dev/shm that processes map are in both.
        own + shm.max(shared) + files > self.limit
    }
}

/// The bytes in a field of a file of the kernel's, such as `MemTotal:`, whose unit is kB.
pub(super) fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The peak resident memory of this process in bytes, if the kernel says so. A process that it starts has had it, too, for the kernel:
/// until it has replaced this program by another one.
pub fn own_peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    field(&status, "VmHWM:").unwrap_or(0)
}

/// The memory of a process, in bytes. Nothing, if it has ended.
#[derive(Default)]
struct Resident {
    all: u64,
    /// Pages of files, and of memory that is shared on purpose.
    shared: u64,
}

impl Resident {
    /// Pages that belong to no file.
    const fn own(&self) -> u64 {
        self.all.saturating_sub(self.shared)
    }

    fn of(process: Pid) -> Self {
        let text = fs::read_to_string(format!("/proc/{}/statm", process.as_raw_nonzero()));
        let text = text.unwrap_or_default();
        let mut pages = text.split(' ').skip(1).map(|it| it.parse().unwrap_or(0));
        let mut bytes = || pages.next().unwrap_or(0) * page_size() as u64;
        Self { all: bytes(), shared: bytes() }
    }
}

/// The share of a process in the memory of all: a page that several have counts in parts.
struct Share {
    /// Pages that belong to no file.
    own: u64,
    /// Pages of files in memory.
    shared: u64,
}

impl Share {
    fn of(process: Pid) -> Self {
        let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", process.as_raw_nonzero()));
        let text = text.unwrap_or_default();
        let bytes = |name| field(&text, name);
        match (bytes("Pss_Anon:"), bytes("Pss_Shmem:")) {
            (Some(own), Some(shared)) => Self { own, shared },
            // An older kernel, or a process that hides its memory.
            _ => {
                let own = bytes("Pss:").unwrap_or_else(|| Resident::of(process).own());
                Self { own, shared: 0 }
            }
        }
    }
}

/// The memory that a file system in memory uses, in bytes. Nothing, if it is not one.
fn used_in_memory(directory: &Path) -> u64 {
    in_memory(directory).map_or(0, |it| (it.f_blocks - it.f_bfree) * it.f_bsize as u64)
}

/// The memory that files below a directory use, in bytes. Nothing, if its file system is not in memory.
fn files_in_memory(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    if in_memory(directory).is_none() {
        return 0;
    }
    let (mut bytes, mut waiting) = (0, vec![directory.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            bytes += about.blocks() * 512;
            if about.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    bytes
}

fn in_memory(directory: &Path) -> Option<StatFs> {
    statfs(directory).ok().filter(|it| it.f_type as u64 == TMPFS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_count_only_if_they_are_in_memory() {
        let Ok(memory) = tempfile::tempdir_in("/dev/shm") else { return };
        if in_memory(memory.path()).is_none() {
            return;
        }
        fs::create_dir(memory.path().join("below")).unwrap();
        fs::write(memory.path().join("below/file"), vec![1; 1 << 20]).unwrap();
        let bytes = files_in_memory(memory.path());
        assert!((1 << 20..2 << 20).contains(&bytes), "{bytes}");
        assert_eq!(files_in_memory(Path::new("/proc/self")), 0);
    }
}
