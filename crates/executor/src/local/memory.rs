//! The memory that this host has for executions.

use std::fs;
use std::path::Path;

/// The part of the memory that is left to everything else.
const REST: u64 = 32;

/// The memory that all executions together may reserve, in bytes, if it is known.
pub(super) fn for_executions() -> Option<u64> {
    memory(Path::new("/")).map(|memory| memory - memory / REST)
}

/// The memory of the host whose root this is, or the limit of the control groups of this process if that is less.
fn memory(root: &Path) -> Option<u64> {
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    let total = read("proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kilobytes.checked_mul(1024)
    });
    let groups = read("proc/self/cgroup").unwrap_or_default();
    let mut limits: Vec<u64> = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { continue };
        let (mount, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            names if names.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        // In a container, the mount may be that of the group itself.
        for place in Path::new(group.trim_start_matches('/')).ancestors() {
            let limit = fs::read_to_string(root.join(mount).join(place).join(file));
            limits.extend(limit.ok().and_then(|text| text.trim().parse::<u64>().ok()));
        }
    }
    total.into_iter().chain(limits).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_the_least_of_all_limits() {
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
