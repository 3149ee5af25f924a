//! Steps that launchers are made of: mounts are bound, restricted and listed, and each error says what failed.

use std::ffi::{CStr, OsString};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use composefs_ioctls::mount::mount_setattr_idmap;
use rustix::fs::{CWD, StatVfsMountFlags, statvfs};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind, mount_bind_recursive,
    mount_remount, move_mount, open_tree,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::launcher_processes::{StepError, at};

/// Neither set-user-id programs nor devices.
pub(super) const QUIET: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// The directory of the host's file system in the launcher.
pub(super) const OLD: &str = "/old";

/// The directory of the root for executions in the launcher.
pub(super) const SYSTEM: &str = "/system";

/// The directory for other mounts.
pub(super) const NEW: &str = "/new";

/// The step that fails if a path leads elsewhere than when it was verified.
pub(crate) const VERIFY: &str = "find again";

/// A path of a root, as it is named outside of it.
pub(super) fn below(root: impl AsRef<Path>, path: &Path) -> PathBuf {
    root.as_ref().join(path.strip_prefix("/").unwrap_or(path))
}

/// Returns the path of an open file or directory, even if another one has its name by now.
pub(super) fn opened(fd: &OwnedFd) -> PathBuf {
    below(OLD, Path::new(&format!("/proc/self/fd/{}", fd.as_raw_fd())))
}

/// Returns a directory of a root, made if it is not there.
pub(super) fn directory(root: &str, path: &Path) -> Result<PathBuf, StepError> {
    let target = below(root, path);
    let made = DirBuilder::new().recursive(true).mode(0o755).create(&target);
    made.map_err(at("make", path))?;
    Ok(target)
}

/// Mounts an empty file system in memory.
pub(super) fn memory(target: impl AsRef<Path>, options: &CStr) -> Result<(), StepError> {
    let target = target.as_ref();
    mount("tmpfs", target, "tmpfs", QUIET, options).map_err(at("mount memory on", target))
}

/// Mounts a path once more, in no place yet, and exchanges the owners of its files by a user namespace. Fails where the file
/// system or the kernel cannot do that.
pub(super) fn exchanged(source: &Path, owners: &OwnedFd) -> io::Result<OwnedFd> {
    let mount = detached(source, true, None)?;
    mount_setattr_idmap(&mount, owners)?;
    Ok(mount)
}

/// Mounts a path once more, in no place yet, or that with everything that is mounted below it. With a user namespace, the owners of
/// its files are exchanged by that; where the file system cannot do that, they are shown as they are.
pub(super) fn detached(
    source: &Path,
    recursive: bool,
    owners: Option<&OwnedFd>,
) -> rustix::io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    flags.set(OpenTreeFlags::AT_RECURSIVE, recursive);
    let mount = open_tree(CWD, source, flags)?;
    let _as_they_are = owners.map(|owners| mount_setattr_idmap(&mount, owners));
    Ok(mount)
}

/// Gives a mount a place.
pub(super) fn attach(mount: &OwnedFd, target: &Path) -> rustix::io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_SYMLINKS;
    move_mount(mount, "", CWD, target, flags)
}

/// Moves this process into a mount namespace.
pub(super) fn join(mounts: &OwnedFd) -> Result<(), StepError> {
    move_into_link_name_space(mounts.as_fd(), Some(LinkNameSpaceType::Mount))
        .map_err(at("enter namespaces", ""))
}

/// Binds a path, or that with everything that is mounted below it, as [`detached`] does.
pub(super) fn bind_mount(
    source: &Path,
    target: &Path,
    recursive: bool,
    owners: Option<&OwnedFd>,
) -> rustix::io::Result<()> {
    // Older kernels know only this.
    if owners.is_none() {
        return if recursive {
            mount_bind_recursive(source, target)
        } else {
            mount_bind(source, target)
        };
    }
    attach(&detached(source, recursive, owners)?, target)
}

/// Binds a path, with everything that is mounted below it, so that nothing can be written there.
pub(super) fn bind_read_only(
    source: &Path,
    target: &Path,
    flags: MountFlags,
    owners: Option<&OwnedFd>,
) -> Result<(), StepError> {
    let flags = flags | MountFlags::RDONLY;
    match bind_mount(source, target, false, owners) {
        Ok(()) => restrict(target, flags),
        // Something is mounted below it, which may not be taken away.
        Err(Errno::INVAL) => {
            bind_mount(source, target, true, owners).map_err(at("bind", source))?;
            restrict(target, flags)?;
            mounted_below(target)?.iter().try_for_each(|mounted| restrict(mounted, flags))
        }
        Err(error) => Err(at("bind", source)(error)),
    }
}

/// Adds flags to a mount. The flags that it has may be locked: then they are said again.
pub(super) fn restrict(target: &Path, flags: MountFlags) -> Result<(), StepError> {
    let again = |more| mount_remount(target, MountFlags::BIND | flags | more, "");
    let restricted = match again(MountFlags::empty()) {
        Err(Errno::PERM) => {
            let had = statvfs(target).map_err(at("look at", target))?.f_flag;
            let pairs = [
                (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
                (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
                (StatVfsMountFlags::NODEV, MountFlags::NODEV),
                (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
                (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
                (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
                (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
            ];
            let more = pairs.into_iter().filter(|(flag, _)| had.contains(*flag));
            again(more.map(|(_, flag)| flag).collect())
        }
        other => other,
    };
    restricted.map_err(at("restrict", target))
}

/// A mount, as `mountinfo` lists it.
struct Mount {
    id: u64,
    /// The mount that it is on.
    parent: u64,
    name: PathBuf,
}

impl Mount {
    /// Reads a line.
    fn parse(line: &[u8]) -> Option<Self> {
        let mut words = line.split(|byte| *byte == b' ');
        let id = number(words.next()?)?;
        let parent = number(words.next()?)?;
        // After the device and the part of its file system that is mounted.
        let name = unescape(words.nth(2)?);
        Some(Self { id, parent, name })
    }

    /// Whether another mount, on the same one, is between it and its name.
    fn is_covered(&self, all: &[Self]) -> bool {
        let is_covered = all.iter().any(|other| {
            other.parent == self.parent
                && other.id != self.id
                && other.id != other.parent
                && self.name.starts_with(&other.name)
        });
        let parent = all.iter().find(|other| other.id == self.parent && other.id != self.id);
        is_covered || parent.is_some_and(|parent| parent.is_covered(all))
    }
}

/// All mount points below a path that a name leads to, in the launcher's file system.
pub(super) fn mounted_below(path: &Path) -> Result<Vec<PathBuf>, StepError> {
    let table = below(OLD, Path::new("/proc/self/mountinfo"));
    let text = fs::read(&table).map_err(at("read", &table))?;
    let all: Vec<Mount> = text.split(|byte| *byte == b'\n').filter_map(Mount::parse).collect();
    let below = all.iter().filter(|it| it.name.starts_with(path) && it.name != path);
    Ok(below.filter(|it| !it.is_covered(&all)).map(|it| it.name.clone()).collect())
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Spaces, tabs, newlines and backslashes are written in octal.
fn unescape(name: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((first, after)) = rest.split_first() {
        let code = after
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 8).ok());
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_that_no_name_leads_to_is_covered() {
        let text = "1 1 0:1 / / rw\n2 1 0:2 / /a rw\n3 2 0:3 / /a/b rw\n4 3 0:4 / /a/b/c rw\n\
                    5 2 0:5 / /a/bc rw\n6 1 0:6 / /d/e rw\n7 1 0:7 / /d rw\n8 7 0:8 / /d/f rw\n\
                    9 3 0:9 / /a/b rw";
        let all: Vec<Mount> = text.lines().filter_map(|it| Mount::parse(it.as_bytes())).collect();
        let covered = all.iter().filter(|it| it.is_covered(&all)).map(|it| it.id);
        assert_eq!(covered.collect::<Vec<_>>(), [4, 6], "below a mount on the same place");
    }

    #[test]
    fn names_of_mount_points_are_unescaped() {
        assert_eq!(unescape(b"/a\\040b\\134c\\9"), Path::new("/a b\\c\\9"));
        assert_eq!(below(OLD, Path::new("/proc")), Path::new("/old/proc"));
    }
}
