//! Control groups: the kernel ends what uses more memory than its group may have. Each execution with a limit gets one,
//! where this process may make any.
//!
//! In the second version the whole group is ended at once. In the first one the kernel ends one process at a time, so the count
//! of those says whether the limit was met, whatever the rest of the execution has made of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Pid;

/// The beginning of the names of groups. The process that made one and a number follow.
const PREFIX: &str = "ce-";

/// The number of attempts, a millisecond apart, to remove a group.
const MOMENT: usize = 100;

/// The limit of a group that is made to see whether one can be made.
const TRIAL: u64 = 1 << 30;

/// The two kinds of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    First,
    Second,
}

impl Version {
    /// The file with the limit.
    pub(super) const fn limit(self) -> &'static str {
        match self {
            Self::First => "memory.limit_in_bytes",
            Self::Second => "memory.max",
        }
    }

    /// The file with the number of processes that the kernel has ended.
    const fn events(self) -> &'static str {
        match self {
            Self::First => "memory.oom_control",
            Self::Second => "memory.events",
        }
    }

    /// Further settings, as far as the kernel has them: nothing is swapped, and the group ends as one.
    const fn settings(self) -> &'static [(&'static str, Option<&'static str>)] {
        match self {
            // The same as the limit: memory and swap together.
            Self::First => &[("memory.memsw.limit_in_bytes", None)],
            Self::Second => &[("memory.swap.max", Some("0")), ("memory.oom.group", Some("1"))],
        }
    }
}

/// A group of the kernel's, as a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GroupDirectory {
    path: PathBuf,
    version: Version,
}

impl GroupDirectory {
    /// The number of processes of it that the kernel has ended for want of memory; `None` if the kernel does not count them.
    fn kills(&self) -> Option<u64> {
        let text = fs::read_to_string(self.path.join(self.version.events())).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
    }
}

/// Makes groups for executions.
#[derive(Debug, Default)]
pub(super) struct ControlGroups {
    /// Where groups are made, once that was looked for.
    place: OnceLock<Option<GroupDirectory>>,
}

impl ControlGroups {
    /// Makes a group that may have this memory, in bytes; `None` where that is not possible.
    pub(super) fn limited(&self, bytes: u64) -> Option<ControlGroup> {
        let place = self.place.get_or_init(find_place).as_ref()?;
        ControlGroup::make(place, bytes).ok()
    }
}

/// A group for one execution. It is removed when it is dropped; its processes must have ended.
#[derive(Debug)]
pub(super) struct ControlGroup(GroupDirectory);

impl ControlGroup {
    fn make(place: &GroupDirectory, limit: u64) -> io::Result<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let path = loop {
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            let path = place.path.join(format!("{PREFIX}{}-{number}", process::id()));
            match fs::create_dir(&path) {
                // Of a process with the same number in another namespace.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => break made.map(|()| path)?,
            }
        };
        let directory = GroupDirectory { path, version: place.version };
        let group = Self(directory);
        let GroupDirectory { path, version } = &group.0;
        fs::write(path.join(version.limit()), limit.to_string())?;
        for (file, value) in version.settings() {
            let value = value.map_or_else(|| limit.to_string(), str::to_owned);
            let _older_kernel = fs::write(path.join(file), value);
        }
        // Without a count it would not be known what the limit has ended.
        group.0.kills().map(|_| group).ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// Adds a process. What it starts from now on belongs to the group, too.
    pub(super) fn add(&self, process: Pid) -> io::Result<()> {
        fs::write(self.0.path.join("cgroup.procs"), process.as_raw_nonzero().to_string())
    }

    /// Whether the kernel has ended a process of it for want of memory.
    pub(super) fn has_run_out(&self) -> bool {
        self.0.kills().is_some_and(|kills| kills > 0)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for _ in 0..MOMENT {
            match fs::remove_dir(&self.0.path) {
                // A killed process takes a moment to go.
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    thread::sleep(Duration::from_millis(1));
                }
                // Another run removes what is left.
                _ => return,
            }
        }
    }
}

/// The number of processes that the kernel has ended for want of memory in the group of this process, such as a job of a scheduler.
pub(super) fn own_kills() -> Option<u64> {
    own_groups().iter().find_map(GroupDirectory::kills)
}

/// The groups of this process that account for memory.
fn own_groups() -> Vec<GroupDirectory> {
    let read = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
    directories(&read("cgroup"), &read("mountinfo"))
}

/// A group of a process that accounts for memory, as its file `cgroup` names it.
pub(super) struct MemoryGroup<'a> {
    pub(super) version: Version,
    pub(super) path: &'a str,
}

/// Finds the groups that account for memory in a file `cgroup`.
pub(super) fn memory_groups(groups: &str) -> impl Iterator<Item = MemoryGroup<'_>> {
    groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let version = match controllers {
            "" => Version::Second,
            _ => controllers.split(',').any(|it| it == "memory").then_some(Version::First)?,
        };
        Some(MemoryGroup { version, path })
    })
}

/// Finds the groups of a process in its files `cgroup` and `mountinfo`.
fn directories(groups: &str, mounts: &str) -> Vec<GroupDirectory> {
    let mut found = Vec::new();
    for MemoryGroup { version, path } in memory_groups(groups) {
        let mounted = mounts.lines().find_map(|line| {
            let (place, kind) = line.split_once(" - ")?;
            let (root, mount_point) = {
                let mut fields = place.split(' ').skip(3);
                (fields.next()?, fields.next()?)
            };
            let mut kind = kind.split(' ');
            let (kind, options) = (kind.next()?, kind.nth(1).unwrap_or_default());
            let is_wanted = match version {
                Version::First => kind == "cgroup" && options.split(',').any(|it| it == "memory"),
                Version::Second => kind == "cgroup2",
            };
            let below = Path::new(path).strip_prefix(root).ok().filter(|_| is_wanted)?;
            Some(Path::new(mount_point).join(below))
        });
        found.extend(mounted.map(|path| GroupDirectory { path, version }));
    }
    found
}

/// Finds the group in which groups with a limit can be made: that of this process, or the one above it. In the second version only a
/// group that hands its memory on has such groups in it, and it holds no processes itself.
fn find_place() -> Option<GroupDirectory> {
    let places = own_groups().into_iter().flat_map(|own| {
        let above =
            own.path.parent().map(|path| GroupDirectory { path: path.to_owned(), ..own.clone() });
        let above = above.filter(|_| own.version == Version::Second);
        std::iter::once(own).chain(above)
    });
    let mut places = places.filter(|place| {
        let handed_on = || fs::read_to_string(place.path.join("cgroup.subtree_control"));
        place.version == Version::First
            || handed_on().is_ok_and(|text| text.split_whitespace().any(|it| it == "memory"))
    });
    places.find(|place| {
        remove_left(&place.path);
        place.path.join(place.version.events()).exists() && ControlGroup::make(place, TRIAL).is_ok()
    })
}

/// Removes groups of processes that have ended without doing so.
fn remove_left(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
        if let Some((process, _)) = process
            && process.parse::<u32>().is_ok()
            && !Path::new("/proc").join(process).exists()
        {
            let _in_use = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(groups: &str, mounts: &str) -> Vec<(String, Version)> {
        let found = directories(groups, mounts).into_iter();
        found.map(|it| (it.path.display().to_string(), it.version)).collect()
    }

    #[test]
    fn a_process_finds_its_groups_below_their_mount_points() {
        let second =
            "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
        assert_eq!(
            found("0::/user.slice/a.scope\n", second),
            [("/sys/fs/cgroup/user.slice/a.scope".to_owned(), Version::Second)]
        );
        let first = "35 31 0:32 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n\
                     36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu";
        assert_eq!(
            found("4:memory:/docker/1/job\n3:cpu:/\n0::/\n", first),
            [("/sys/fs/cgroup/memory/job".to_owned(), Version::First)]
        );
        assert_eq!(found("4:memory:/other\n", first), [], "it is not below what is mounted");
        assert_eq!(found("", ""), []);
    }

    #[test]
    fn a_group_says_whether_the_kernel_has_ended_one_of_its_processes() {
        let dir = tempfile::tempdir().unwrap();
        for (version, text) in [
            (Version::First, "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
            (Version::Second, "low 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 1\n"),
        ] {
            let path = dir.path().to_owned();
            fs::write(path.join(version.events()), text).unwrap();
            assert_eq!(GroupDirectory { path, version }.kills(), Some(2));
        }
        fs::write(dir.path().join("memory.oom_control"), "under_oom 0\n").unwrap();
        let path = dir.path().to_owned();
        assert_eq!(GroupDirectory { path, version: Version::First }.kills(), None);
    }
}
