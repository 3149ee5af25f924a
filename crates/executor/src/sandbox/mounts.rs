//! Steps that launchers are made of: mounts are bound, restricted and listed, and each error says what failed.

use std::ffi::{CStr, OsString};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ce_files::walk::{FileSystem, file_system, open_below, open_mount_point};
use composefs_ioctls::mount::mount_setattr_idmap;
use rustix::fs::{CWD, FileType, Mode, OFlags, StatVfsMountFlags, fstat, open, statvfs};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind_recursive,
    mount_change, mount_remount, move_mount, open_tree,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::launcher_processes::{OLD, StepError, at, below};
use super::spec::Bind;
use crate::invocation::open_verified;

/// Disables set-user-id programs and devices.
pub(super) const QUIET: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// The directory of the root for executions in the launcher.
pub(super) const SYSTEM: &str = "/system";

/// The directory for other mounts.
pub(super) const NEW: &str = "/new";

/// The step that fails if a path leads elsewhere than when it was verified.
pub(crate) const VERIFY: &str = "find again";

/// Returns the path of an open file or directory, even if another one has its name now.
pub(super) fn opened(fd: &OwnedFd) -> PathBuf {
    below(OLD, Path::new(&format!("/proc/self/fd/{}", fd.as_raw_fd())))
}

/// Opens a directory of the launcher as a place.
pub(super) fn open_place(path: &str) -> Result<OwnedFd, StepError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).map_err(at("open", path))
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

/// Mounts a directory once more, in no place yet, and exchanges the owners of its files by a user namespace. Fails where the file
/// system or the kernel cannot do that.
pub(super) fn exchanged(source: &OwnedFd, owners: &OwnedFd) -> io::Result<OwnedFd> {
    let mount = detached(source, true, None)?;
    mount_setattr_idmap(&mount, owners)?;
    Ok(mount)
}

/// Mounts a file or directory once more, in no place yet, or it with everything that is mounted below it. With a user namespace, the
/// owners of its files are exchanged by that; where the file system cannot do that, they are shown as they are.
pub(super) fn detached(
    source: &OwnedFd,
    recursive: bool,
    owners: Option<&OwnedFd>,
) -> rustix::io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    flags.set(OpenTreeFlags::AT_RECURSIVE, recursive);
    let mount = open_tree(source, "", flags)?;
    let _as_they_are = owners.map(|owners| mount_setattr_idmap(&mount, owners));
    Ok(mount)
}

/// Makes a mount, and all below it, private: later mounts of the host would not have its flags.
pub(super) fn make_private(mount: &Path) -> rustix::io::Result<()> {
    mount_change(mount, MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
}

/// Opens a file or directory that is shown to an execution.
pub(super) fn open_source(bind: &Bind) -> Result<OwnedFd, StepError> {
    match bind.id {
        Some(id) => open_verified(&below(OLD, &bind.source), id).map_err(at(VERIFY, &bind.source)),
        // A path that has become a link meanwhile is not followed.
        None => {
            open_below(open_place(OLD)?.as_fd(), &bind.source).map_err(at("find", &bind.source))
        }
    }
}

/// Attaches a mount at a path. A link there is not followed.
pub(super) fn attach(mount: &OwnedFd, target: &Path) -> rustix::io::Result<()> {
    move_mount(mount, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

/// Moves this process into a mount namespace.
pub(super) fn join(mounts: &OwnedFd) -> Result<(), StepError> {
    move_into_link_name_space(mounts.as_fd(), Some(LinkNameSpaceType::Mount))
        .map_err(at("enter namespaces", ""))
}

/// A file or directory that is shown below the root of an execution.
#[derive(Clone, Copy)]
pub(super) struct Shown<'a> {
    pub(super) source: &'a OwnedFd,
    /// The path below the root.
    pub(super) target: &'a Path,
    /// Whether it is shown with everything that is mounted below it.
    pub(super) recursive: bool,
    pub(super) flags: MountFlags,
    /// The user namespace by which owners of files are exchanged.
    pub(super) owners: Option<&'a OwnedFd>,
}

/// Mounts a file or directory below a root, which is a directory in the launcher's memory. An existing mount there may
/// be a computation's, so no link in it is followed.
pub(super) fn show(root: &str, shown: Shown<'_>) -> Result<(), StepError> {
    let Shown { source, target, recursive, flags, owners } = shown;
    let kind = fstat(source).map_err(at("look at", target))?.st_mode;
    let is_dir = FileType::from_raw_mode(kind) == FileType::Directory;
    let top = open_place(root)?;
    let point = || open_mount_point(top.as_fd(), target, is_dir).map_err(at("make", target));
    let place = point()?;
    let mut is_recursive = recursive;
    let shown = loop {
        match detached(source, is_recursive, owners) {
            Ok(mount) => {
                let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH
                    | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
                move_mount(&mount, "", &place, "", flags).map_err(at("bind", target))?;
                break mount;
            }
            // Something is mounted below it, which may not be taken away.
            Err(Errno::INVAL) if !is_recursive => is_recursive = true,
            // Older kernels.
            Err(Errno::NOSYS) => {
                mount_bind_recursive(opened(source), opened(&place)).map_err(at("bind", target))?;
                is_recursive = true;
                break point()?;
            }
            Err(error) => return Err(at("bind", target)(error)),
        }
    };
    make_private(&opened(&shown)).map_err(at("make private", target))?;
    restrict(&opened(&shown), flags)?;
    if is_recursive {
        let name = below(root, target);
        for inner in mounts_below(&name)? {
            let path = inner.name.strip_prefix(&name).unwrap_or(&inner.name);
            let found = open_below(shown.as_fd(), path).map_err(at("find", &inner.name))?;
            if mount_id(&found)? != inner.id {
                return Err(at("find again", &inner.name)(Errno::STALE));
            }
            let kind = file_system(found.as_fd()).map_err(at("look at", &inner.name))?;
            if kind == FileSystem::Processes {
                // These are of the host.
                let empty = QUIET | MountFlags::RDONLY;
                mount("tmpfs", opened(&found), "tmpfs", empty, c"mode=0555")
                    .map_err(at("cover", &inner.name))?;
            }
            let closed = match kind {
                FileSystem::Processes | FileSystem::Kernel => MountFlags::RDONLY,
                FileSystem::Files => MountFlags::empty(),
            };
            restrict(&opened(&found), flags | closed)?;
        }
    }
    Ok(())
}

/// The number of the mount that an open file or directory is on.
fn mount_id(place: &OwnedFd) -> Result<u64, StepError> {
    let path = below(OLD, Path::new(&format!("/proc/self/fdinfo/{}", place.as_raw_fd())));
    let text = fs::read(&path).map_err(at("read", &path))?;
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"mnt_id:"));
    let number = line.and_then(|digits| number(digits.trim_ascii()));
    number.ok_or(Errno::IO).map_err(at("read", path))
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
#[derive(Debug)]
pub(super) struct Mount {
    id: u64,
    /// The mount that it is on.
    parent: u64,
    /// The place where it is mounted.
    pub(super) name: PathBuf,
    /// Whether nothing can be written there.
    pub(super) is_read_only: bool,
}

impl Mount {
    /// Reads a line.
    fn parse(line: &[u8]) -> Option<Self> {
        let mut words = line.split(|byte| *byte == b' ');
        let id = number(words.next()?)?;
        let parent = number(words.next()?)?;
        // After the device and the part of its file system that is mounted.
        let name = unescape(words.nth(2)?);
        let is_read_only = words.next()?.split(|byte| *byte == b',').any(|word| word == b"ro");
        Some(Self { id, parent, name, is_read_only })
    }

    /// Whether no name leads to it: it is hidden, or another mount is on its root.
    fn is_covered(&self, all: &[Self]) -> bool {
        let mut others = all.iter().filter(|other| other.id != self.id);
        others.any(|other| other.parent == self.id && other.name == self.name)
            || self.is_hidden(all)
    }

    /// Whether another mount hides its name: a mount on the same parent whose name is a prefix of this name, or a mount
    /// that hides the parent.
    fn is_hidden(&self, all: &[Self]) -> bool {
        let is_behind = all.iter().any(|other| {
            other.parent == self.parent
                && other.id != self.id
                && other.id != other.parent
                && self.name.starts_with(&other.name)
        });
        let parent = all.iter().find(|other| other.id == self.parent && other.id != self.id);
        is_behind || parent.is_some_and(|parent| parent.is_hidden(all))
    }
}

/// All mounts below a path that a name leads to, in the launcher's file system.
pub(super) fn mounts_below(path: &Path) -> Result<Vec<Mount>, StepError> {
    let mut all = read_mounts(&below(OLD, Path::new(MOUNTINFO)))?;
    let is_below = |it: &Mount| it.name.starts_with(path) && it.name != path;
    let found: Vec<u64> =
        all.iter().filter(|it| is_below(it) && !it.is_covered(&all)).map(|it| it.id).collect();
    all.retain(|it| found.contains(&it.id));
    Ok(all)
}

/// The list of mounts of a process, for itself.
pub(super) const MOUNTINFO: &str = "/proc/self/mountinfo";

/// Reads a list of mounts.
pub(super) fn read_mounts(table: &Path) -> Result<Vec<Mount>, StepError> {
    let text = fs::read(table).map_err(at("read", table))?;
    Ok(text.split(|byte| *byte == b'\n').filter_map(Mount::parse).collect())
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
    fn a_mount_that_no_path_reaches_counts_as_covered() {
        let text = "1 1 0:1 / / rw\n2 1 0:2 / /a rw\n3 2 0:3 / /a/b rw\n4 3 0:4 / /a/b/c rw\n\
                    5 2 0:5 / /a/bc rw\n6 1 0:6 / /d/e rw\n7 1 0:7 / /d rw\n8 7 0:8 / /d/f rw\n\
                    9 3 0:9 / /a/b rw\n10 2 0:9 / /a/x rw\n11 10 0:9 / /a/x rw";
        let all: Vec<Mount> = text.lines().filter_map(|it| Mount::parse(it.as_bytes())).collect();
        let covered = all.iter().filter(|it| it.is_covered(&all)).map(|it| it.id);
        assert_eq!(covered.collect::<Vec<_>>(), [3, 4, 6, 10], "below a mount on the same place");
    }

    #[test]
    fn names_of_mount_points_are_unescaped() {
        assert_eq!(unescape(b"/a\\040b\\134c\\9"), Path::new("/a b\\c\\9"));
        assert_eq!(below(OLD, Path::new("/proc")), Path::new("/old/proc"));
    }
}
