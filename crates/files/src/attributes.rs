//! Attributes of files and directories that are not part of a value: owner, mode, flags, extended attributes, access
//! control lists and times. Sealing replaces the attributes that a computation has set by this run's, so a reader sees
//! only the value.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{
    AtFlags, FileType, Gid, IFlags, Mode, Stat, Timespec, Timestamps, Uid, chownat, fchmod, fchown,
    flistxattr, flistxattr_query, fremovexattr, fstat, futimens, ioctl_getflags, ioctl_setflags,
    utimensat,
};
use rustix::io::Errno;

/// The flags of a file that its owner may set, or root, and that can be cleared at any time.
const FLAGS: IFlags = IFlags::APPEND
    .union(IFlags::COMPRESSED)
    .union(IFlags::DIRSYNC)
    .union(IFlags::IMMUTABLE)
    .union(IFlags::NOATIME)
    .union(IFlags::NODUMP)
    .union(IFlags::NOTAIL)
    .union(IFlags::SECURE_REMOVAL)
    .union(IFlags::SYNC)
    .union(IFlags::TOPDIR)
    .union(IFlags::UNRM);

/// The nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;

/// The owner that sealed files and directories get, and the times: each has a time of its own, so that the stamp of a directory shows
/// when two of its files are exchanged.
#[derive(Debug)]
pub struct Sealing<'a> {
    user: u32,
    group: u32,
    /// In nanoseconds since 1970.
    next: i64,
    /// Whether to stop.
    stop: &'a AtomicBool,
}

impl<'a> Sealing<'a> {
    /// Sealed files get the owner and the group of this directory, which the run has made. Once `stop` is set,
    /// directories are not sealed any further.
    pub fn like(directory: impl AsFd, stop: &'a AtomicBool) -> Result<Self, Errno> {
        let Stat { st_uid: user, st_gid: group, .. } = fstat(directory)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self { user, group, next: i64::try_from(since.as_nanos()).unwrap_or_default(), stop })
    }

    /// Whether to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Gives an open file or directory these attributes, and this mode.
    ///
    /// # Errors
    ///
    /// Fails with `EPERM` or `EACCES` if an attribute cannot be removed. A copy of the file does not have it.
    pub fn set(&mut self, file: impl AsFd, mode: Mode) -> Result<(), Errno> {
        let file = file.as_fd();
        clear_flags(file)?;
        let stat = fstat(file)?;
        if !self.owns(&stat) {
            fchown(file, Some(Uid::from_raw(self.user)), Some(Gid::from_raw(self.group)))?;
        }
        let is_changed = remove_extended_attributes(file, &stat)?;
        if is_changed || stat.st_mode & 0o7777 != mode.as_raw_mode() {
            fchmod(file, mode)?;
        }
        futimens(file, &self.times())
    }

    /// Gives a symbolic link in a directory these attributes: it has no mode.
    pub(crate) fn set_link(
        &mut self,
        directory: &OwnedFd,
        name: &[u8],
        stat: &Stat,
    ) -> Result<(), Errno> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        if !self.owns(stat) {
            let (user, group) = (Uid::from_raw(self.user), Gid::from_raw(self.group));
            chownat(directory, name, Some(user), Some(group), flags)?;
        }
        utimensat(directory, name, &self.times(), flags)
    }

    const fn owns(&self, stat: &Stat) -> bool {
        stat.st_uid == self.user && stat.st_gid == self.group
    }

    const fn times(&mut self) -> Timestamps {
        let time = Timespec { tv_sec: self.next / SECOND, tv_nsec: self.next % SECOND };
        self.next += 1;
        Timestamps { last_access: time, last_modification: time }
    }
}

/// Clears the flags of a file, where the file system has any.
fn clear_flags(file: BorrowedFd<'_>) -> Result<(), Errno> {
    match ioctl_getflags(file) {
        Ok(flags) if flags.intersects(FLAGS) => match ioctl_setflags(file, flags - FLAGS) {
            // The file system does not let one go that it has given to the file.
            Err(Errno::INVAL) => Ok(()),
            cleared => cleared,
        },
        _ => Ok(()),
    }
}

/// Removes the extended attributes of a file that a computation may have set, and its access control lists. Returns whether there were
/// any. Labels of the host's security policy and of file systems stay: every file has them.
fn remove_extended_attributes(file: BorrowedFd<'_>, stat: &Stat) -> Result<bool, Errno> {
    let size = match flistxattr_query(file) {
        Ok(0) | Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(false),
        size => size?,
    };
    let mut names = vec![0; size];
    let size = flistxattr(file, &mut names[..])?;
    let names = names[..size]
        .split_inclusive(|byte| *byte == 0)
        .filter_map(|name| CStr::from_bytes_with_nul(name).ok());
    let made: Vec<&CStr> = names.filter(|name| is_made(name.to_bytes())).collect();
    if made.is_empty() {
        return Ok(false);
    }
    // To change attributes of users needs the right to write.
    let mode = stat.st_mode & 0o777 | 0o600;
    fchmod(file, Mode::from_raw_mode(mode))?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
        // Removing capabilities in this way needs no privilege.
        fchown(file, Some(Uid::from_raw(stat.st_uid)), None)?;
    }
    for name in made {
        match fremovexattr(file, name) {
            Ok(()) | Err(Errno::NODATA) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Whether an extended attribute may be one that a computation has set.
fn is_made(name: &[u8]) -> bool {
    [&b"user."[..], b"trusted.", b"security.capability", b"system.posix_acl_"]
        .iter()
        .any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use rustix::fs::{XattrFlags, fsetxattr};

    use super::*;

    #[test]
    fn attributes_set_by_the_owner_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, go_on) = (dir.path().join("file"), AtomicBool::new(false));
        let mut sealing = Sealing::like(File::open(dir.path()).unwrap(), &go_on).unwrap();
        let mut times = Vec::new();
        for mode in [0o6755, 0o1444, 0o000, 0o4000] {
            fs::write(&path, "contents").unwrap();
            let file = File::open(&path).unwrap();
            // A file system may support none of these. Then none needs to be removed.
            let _no_attributes = fsetxattr(&file, "user.mark", b"x", XattrFlags::empty());
            let _no_flags = ioctl_setflags(&file, IFlags::NODUMP | IFlags::NOATIME);
            file.set_permissions(Permissions::from_mode(mode)).unwrap();
            file.set_modified(UNIX_EPOCH).unwrap();
            sealing.set(&file, Mode::from_raw_mode(0o444)).unwrap();
            let (about, own) = (file.metadata().unwrap(), dir.path().metadata().unwrap());
            assert_eq!(
                (about.mode() & 0o7777, about.uid(), about.gid()),
                (0o444, own.uid(), own.gid())
            );
            assert!(matches!(flistxattr_query(&file), Ok(0) | Err(Errno::NOTSUP)));
            assert!(!ioctl_getflags(&file).is_ok_and(|flags| flags.intersects(FLAGS)));
            times.push((about.mtime(), about.mtime_nsec()));
            fs::remove_file(&path).unwrap();
        }
        assert!(times[0].0 > 0 && times.is_sorted_by(|one, other| one < other), "{times:?}");
    }

    #[test]
    fn attributes_set_by_the_host_stay() {
        for made in ["user.x", "trusted.x", "security.capability", "system.posix_acl_default"] {
            assert!(is_made(made.as_bytes()), "{made}");
        }
        for other in ["security.selinux", "security.ima", "system.nfs4_acl", "lustre.lov"] {
            assert!(!is_made(other.as_bytes()), "{other}");
        }
    }
}
