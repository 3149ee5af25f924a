//! Walks along a path of the host, one component at a time, by descriptor.
//!
//! A computation can put a symbolic link wherever it may write. A granted path or a mount point of a sandbox must not
//! lead through such a link. So no link is followed by the kernel here: each caller decides which ones count.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, fstatfs, mkdirat, open, openat, readlinkat};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use ce_model::exit::Explain;

/// The largest number of links on a path, as the kernel has it.
const MAX_LINKS: usize = 40;

/// The mode bit of a directory whose entries only their owners may remove.
const STICKY: u32 = 0o1000;

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// Of files.
    Files,
    /// Of processes of the host.
    Processes,
    /// Of objects that control the kernel.
    Kernel,
}

/// Returns the kind of the file system of an open file or directory.
///
/// # Errors
///
/// Fails if it cannot be asked.
pub fn file_system(place: BorrowedFd<'_>) -> io::Result<FileSystem> {
    // The type has another width on other architectures.
    let number = fstatfs(place)?.f_type as i64;
    Ok(match number {
        PROC => FileSystem::Processes,
        _ if KERNEL.contains(&number) => FileSystem::Kernel,
        _ => FileSystem::Files,
    })
}

/// The number by which a file system of processes is known.
const PROC: i64 = 0x9fa0;

/// The numbers by which file systems are known that control the kernel: sysfs, cgroup, cgroup2, debugfs, tracefs, securityfs, configfs,
/// bpf, efivarfs, selinuxfs and pstore.
const KERNEL: [i64; 11] = [
    0x6265_6572,
    0x0027_e0eb,
    0x6367_7270,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0x6265_6570,
    0xcafe_4a11,
    0xde5e_81e4,
    0xf97c_ff8c,
    0x6165_676c,
];

/// The reason why a granted path is not shown.
#[derive(Debug, thiserror::Error, Explain)]
pub enum GrantError {
    /// A user other than root has made a link on the path, or could have.
    #[error("{} is a symbolic link that a computation could have made", link.display())]
    #[hint("grant the path that it leads to, {}", instead.display())]
    Link {
        link: PathBuf,
        /// The same file or directory, by a path without links.
        instead: PathBuf,
    },
    /// It leads to the root directory, to processes of the host or to files that control its kernel.
    #[error("{} leads to {}, which cannot be granted", path.display(), place.display())]
    #[hint("grant the files that it needs")]
    Forbidden {
        /// The granted path.
        path: PathBuf,
        /// The place that it leads to.
        place: PathBuf,
    },
    /// It cannot be found.
    #[error("cannot find {}", path.display())]
    #[hint("ls -l shows what is there, and who may read it")]
    Find {
        /// The granted path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The links on granted paths that count: root has made them, and no computation of root can have.
#[derive(Clone, Debug, Default)]
pub struct TrustedLinks {
    /// The devices and inodes of directories that computations may write.
    written: Vec<(u64, u64)>,
}

impl TrustedLinks {
    /// Links that computations cannot have made which may write these paths below the root.
    pub fn find(root: BorrowedFd<'_>, written: &[PathBuf]) -> Self {
        let written = written.iter().filter_map(|path| {
            let mut walk = PathWalk::new(root).ok()?;
            walk.along(path, |_, _| Ok(())).ok()?;
            Some(*walk.directory())
        });
        Self { written: written.map(|it| (it.st_dev, it.st_ino)).collect() }
    }

    /// Whether a link in the last of these nested directories counts.
    fn contain_link_in(&self, directories: &[&Stat]) -> bool {
        directories.last().is_some_and(|holder| holder.st_uid == 0 && is_closed(holder))
            && !directories.iter().any(|it| self.written.contains(&(it.st_dev, it.st_ino)))
    }
}

/// Whether only its owner may write a directory.
const fn is_closed(directory: &Stat) -> bool {
    directory.st_mode & 0o022 == 0
}

/// The directory of devices.
const DEVICES: &str = "/dev";

/// Finds a granted device, or a directory of devices. Links lead only from one place of `/dev` to another.
///
/// # Errors
///
/// Fails if the path leads elsewhere, or through a directory in which others may make links, such as `/dev/shm`.
pub fn open_device(root: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, GrantError> {
    let mut outside = None;
    let found = PathWalk::new(root).and_then(|mut walk| {
        walk.along(path, |walk, entry| {
            let holder = walk.path();
            if entry.is_link() && !(holder.starts_with(DEVICES) && is_closed(walk.directory())) {
                outside = Some(holder.join(&entry.name));
            }
            Ok(())
        })?;
        outside =
            outside.take().or_else(|| Some(walk.path()).filter(|it| !it.starts_with(DEVICES)));
        Ok(walk.end())
    });
    match (found, outside) {
        (_, Some(place)) => Err(GrantError::Forbidden { path: path.to_owned(), place }),
        (found, None) => found.map_err(|source| GrantError::Find { path: path.to_owned(), source }),
    }
}

/// Finds the file or directory of a granted path, below a directory that stands for the root of the host. Returns a descriptor that is a
/// place, and cannot be read, and its path without links. Directories that are mounted on demand are mounted.
///
/// # Errors
///
/// Fails if a link on the path is not one of the trusted ones, or if the path leads to the root itself, to a file system of processes or,
/// for writing, to one of the kernel's objects.
pub fn open_granted(
    root: BorrowedFd<'_>,
    path: &Path,
    writes: bool,
    trusted: &TrustedLinks,
) -> Result<(OwnedFd, PathBuf), GrantError> {
    let mut doubtful = None;
    let mut is_of_process = false;
    let walked = PathWalk::new(root).and_then(|mut walk| {
        walk.along(path, |walk, entry| {
            if !entry.is_link() {
                return Ok(());
            }
            is_of_process |= file_system(walk.last())? == FileSystem::Processes;
            if doubtful.is_none() && !trusted.contain_link_in(&walk.directories()) {
                doubtful = Some(walk.path().join(&entry.name));
            }
            Ok(())
        })?;
        let place = walk.path();
        let is_forbidden = walk.below.is_empty()
            || match file_system(walk.last())? {
                FileSystem::Files => false,
                FileSystem::Processes => true,
                FileSystem::Kernel => writes,
            };
        Ok((walk.end(), place, is_forbidden))
    });
    let (found, place, is_forbidden) =
        walked.map_err(|source| GrantError::Find { path: path.to_owned(), source })?;
    match doubtful {
        _ if is_forbidden || is_of_process => {
            Err(GrantError::Forbidden { path: path.to_owned(), place })
        }
        Some(link) => Err(GrantError::Link { link, instead: place }),
        None => Ok((found, place)),
    }
}

/// Returns the place of a mount point below a directory in memory, and makes it if it is not there. Links are followed
/// only if they are in that memory: an existing mount may be a computation's.
///
/// # Errors
///
/// Fails with `ELOOP` at any other link.
pub fn open_mount_point(root: BorrowedFd<'_>, path: &Path, is_dir: bool) -> io::Result<OwnedFd> {
    let mut walk = PathWalk::new(root)?;
    walk.makes = Some(is_dir);
    walk.along(path, |walk, entry| {
        let is_own = walk.directory().st_dev == walk.root.stat.st_dev;
        if entry.is_link() && !is_own { Err(Errno::LOOP.into()) } else { Ok(()) }
    })?;
    Ok(walk.end())
}

/// Opens a file or directory below another as a place.
///
/// # Errors
///
/// Fails with `ELOOP` at any link.
pub fn open_below(directory: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let mut walk = PathWalk::new(directory)?;
    walk.along(path, |_, entry| if entry.is_link() { Err(Errno::LOOP.into()) } else { Ok(()) })?;
    Ok(walk.end())
}

/// Whether only a user and root can redirect the path of a directory, or change its entries. All directories on the path, and on the
/// targets of its links, must belong to the user or root, and others must not be able to write in them. A sticky directory may be writable
/// if the next entry on the path belongs to the user or root. A directory that cannot be examined counts as in reach.
pub fn is_out_of_reach(path: &Path, user: u32) -> bool {
    let is_owner = |it: &Stat| it.st_uid == user || is_root(it.st_uid);
    let check = || -> io::Result<bool> {
        let root = open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let mut walk = PathWalk::new(root.as_fd())?;
        walk.along(path, |walk, entry| {
            let directory = walk.directory();
            let stays =
                is_closed(directory) || directory.st_mode & STICKY != 0 && is_owner(&entry.stat);
            if is_owner(directory) && stays { Ok(()) } else { Err(Errno::PERM.into()) }
        })?;
        Ok(is_owner(walk.directory()) && is_closed(walk.directory()))
    };
    check().unwrap_or(false)
}

/// The number by which a user namespace shows users that it does not have.
const UNKNOWN_USER: u32 = 65534;

/// Whether a user id is root's. In a container that does not have root, root's directories seem to belong to an unknown user.
fn is_root(user: u32) -> bool {
    let has_root = || {
        let map = fs::read_to_string("/proc/self/uid_map");
        map.map_or(true, |map| map.lines().any(|line| line.split_whitespace().next() == Some("0")))
    };
    user == 0 || user == UNKNOWN_USER && !has_root()
}

/// A file or directory on a path, and its name in the one before it.
#[derive(Debug)]
struct WalkedEntry {
    name: OsString,
    place: OwnedFd,
    stat: Stat,
}

impl WalkedEntry {
    fn is_link(&self) -> bool {
        FileType::from_raw_mode(self.stat.st_mode) == FileType::Symlink
    }
}

/// A walk that has come to a file or directory.
#[derive(Debug)]
struct PathWalk {
    /// Without a name.
    root: WalkedEntry,
    /// The steps below the root.
    below: Vec<WalkedEntry>,
    /// Whether entries that are not there are made: directories, and at the end a directory or, if this is false, a file.
    makes: Option<bool>,
}

impl PathWalk {
    fn new(root: BorrowedFd<'_>) -> io::Result<Self> {
        let place = fcntl_dupfd_cloexec(root, 0)?;
        let root = WalkedEntry { name: OsString::new(), stat: fstat(&place)?, place };
        Ok(Self { root, below: Vec::new(), makes: None })
    }

    /// The current place.
    fn last(&self) -> BorrowedFd<'_> {
        self.below.last().unwrap_or(&self.root).place.as_fd()
    }

    /// The stat of the current directory.
    fn directory(&self) -> &Stat {
        &self.below.last().unwrap_or(&self.root).stat
    }

    /// All directories that lead to it, from the root on.
    fn directories(&self) -> Vec<&Stat> {
        [&self.root].into_iter().chain(&self.below).map(|step| &step.stat).collect()
    }

    /// Its path, without links.
    fn path(&self) -> PathBuf {
        let names = self.below.iter().map(|step| step.name.as_os_str());
        [OsStr::new("/")].into_iter().chain(names).collect()
    }

    fn end(mut self) -> OwnedFd {
        self.below.pop().unwrap_or(self.root).place
    }

    /// Continues along a path, and asks about each entry before it is entered or, if it is a link, followed. A link
    /// leads nowhere above the root.
    fn along(
        &mut self,
        path: &Path,
        mut look: impl FnMut(&Self, &WalkedEntry) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut rest: VecDeque<OsString> = names(path);
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                self.below.pop();
                continue;
            }
            let place = self.enter(&name, rest.is_empty())?;
            let entry = WalkedEntry { name, stat: fstat(&place)?, place };
            look(self, &entry)?;
            if !entry.is_link() {
                self.below.push(entry);
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(Errno::LOOP.into());
            }
            let text = readlinkat(&entry.place, "", Vec::new())?;
            let text = Path::new(OsStr::from_bytes(text.to_bytes()));
            if text.is_absolute() {
                self.below.clear();
            }
            let mut ahead = names(text);
            ahead.append(&mut rest);
            rest = ahead;
        }
        Ok(())
    }

    /// Opens an entry of the last directory, or makes it if that is wanted.
    fn enter(&self, name: &OsStr, is_last: bool) -> io::Result<OwnedFd> {
        match (open_entry(self.last(), name), self.makes) {
            (Err(Errno::NOENT), Some(is_dir)) => {
                if is_last && !is_dir {
                    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                    openat(self.last(), name, flags, Mode::from_raw_mode(0o644))?;
                } else {
                    mkdirat(self.last(), name, Mode::from_raw_mode(0o755))?;
                }
                Ok(open_entry(self.last(), name)?)
            }
            (entry, _) => Ok(entry?),
        }
    }
}

/// The names in a path, without dots.
fn names(path: &Path) -> VecDeque<OsString> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    names.collect()
}

/// Opens an entry of a directory as a place. A directory is mounted if that is done on demand.
fn open_entry(directory: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        let opened = match openat(directory, name, flags | OFlags::DIRECTORY, Mode::empty()) {
            Err(Errno::NOTDIR) => openat(directory, name, flags, Mode::empty()),
            opened => opened,
        };
        // A server that is asked may be interrupted, or may ask to be asked again.
        if !matches!(opened, Err(Errno::INTR | Errno::AGAIN)) {
            return opened;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    use rustix::process::geteuid;

    use super::*;

    /// A directory that stands for the root of a host, with a secret, and a link to it that its owner has made.
    fn host() -> (tempfile::TempDir, OwnedFd) {
        let dir = tempfile::tempdir().unwrap();
        for name in ["data", "secret", "open"] {
            fs::create_dir(dir.path().join(name)).unwrap();
            fs::set_permissions(dir.path().join(name), Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(dir.path().join("secret/key"), "secret").unwrap();
        symlink("/secret", dir.path().join("data/ref")).unwrap();
        symlink("../../../../secret", dir.path().join("data/up")).unwrap();
        symlink("ring", dir.path().join("data/ring")).unwrap();
        let root = File::open(dir.path()).unwrap().into();
        (dir, root)
    }

    /// A user that has made nothing here.
    const STRANGER: u32 = 12345;

    fn trusted(root: &OwnedFd, written: &[&str]) -> TrustedLinks {
        let written: Vec<PathBuf> = written.iter().map(Into::into).collect();
        TrustedLinks::find(root.as_fd(), &written)
    }

    fn granted(root: &OwnedFd, path: &str, trusted: &TrustedLinks) -> Result<u64, GrantError> {
        let (found, _) = open_granted(root.as_fd(), Path::new(path), true, trusted)?;
        Ok(fstat(&found).unwrap().st_ino)
    }

    #[test]
    fn only_links_that_root_made_and_no_computation_can_make_are_followed() {
        let (dir, root) = host();
        let data = dir.path().join("data");
        let secret = fs::metadata(dir.path().join("secret")).unwrap().ino();
        let is_root = geteuid().is_root();
        for link in ["/data/ref", "/data/up"] {
            let check = |written: &[&str], is_trusted: bool| match granted(
                &root,
                link,
                &trusted(&root, written),
            ) {
                Ok(found) => assert!(is_trusted && found == secret, "{link} {written:?}"),
                Err(GrantError::Link { link: told, instead }) => {
                    assert!(!is_trusted, "{link} {written:?}");
                    assert_eq!(told, Path::new(link));
                    assert_eq!(instead, Path::new("/secret"));
                }
                Err(other) => panic!("{other}"),
            };
            check(&[], is_root);
            check(&["/open", "/secret"], is_root);
            check(&["/data"], false);
            check(&["/open", "/"], false);
            for mode in [0o775, 0o757, 0o1777] {
                fs::set_permissions(&data, Permissions::from_mode(mode)).unwrap();
                check(&[], false);
            }
            fs::set_permissions(&data, Permissions::from_mode(0o755)).unwrap();
            if is_root {
                // Another user may redirect it anywhere.
                chown(&data, Some(STRANGER), None).unwrap();
                check(&[], false);
                chown(&data, Some(0), None).unwrap();
            }
        }
    }

    #[test]
    fn devices_are_in_dev_and_nowhere_else() {
        let (dir, root) = host();
        for name in ["dev", "dev/disk", "dev/shm"] {
            fs::create_dir(dir.path().join(name)).unwrap();
            fs::set_permissions(dir.path().join(name), Permissions::from_mode(0o755)).unwrap();
        }
        fs::set_permissions(dir.path().join("dev/shm"), Permissions::from_mode(0o1777)).unwrap();
        fs::write(dir.path().join("dev/sda"), "").unwrap();
        for (link, to) in [
            ("dev/disk/one", "../sda"),
            ("dev/lab", "/secret"),
            ("dev/away", "lab/key"),
            ("dev/shm/one", "../sda"),
            ("open/back", "/dev/sda"),
            ("dev/around", "/open/back"),
        ] {
            symlink(to, dir.path().join(link)).unwrap();
        }
        let open = |path: &str| open_device(root.as_fd(), Path::new(path));
        assert!(
            open("/dev/sda").is_ok() && open("/dev/disk/one").is_ok() && open("/dev/disk").is_ok()
        );
        for path in ["/dev/lab", "/dev/away", "/dev/shm/one", "/dev/around", "/secret"] {
            assert!(matches!(open(path), Err(GrantError::Forbidden { .. })), "{path}");
        }
        assert!(matches!(open("/dev/none"), Err(GrantError::Find { .. })));
    }

    #[test]
    fn a_granted_path_is_neither_the_root_nor_above_it() {
        let (dir, root) = host();
        let trusted = trusted(&root, &[]);
        symlink("/", dir.path().join("data/root")).unwrap();
        symlink("../..", dir.path().join("data/above")).unwrap();
        for path in ["/", "/data/root", "/data/above"] {
            let found = granted(&root, path, &trusted);
            assert!(matches!(found, Err(GrantError::Forbidden { .. })), "{path}: {found:?}");
        }
        for (path, error) in [("/data/ring", Errno::LOOP), ("/secret/key/x", Errno::NOTDIR)] {
            let Err(GrantError::Find { source, .. }) = granted(&root, path, &trusted) else {
                panic!("{path} was found")
            };
            assert_eq!(source.raw_os_error(), Some(error.raw_os_error()), "{path}");
        }
    }

    #[test]
    fn a_path_that_others_can_redirect_is_within_their_reach() {
        let top = tempfile::tempdir().unwrap();
        let (own, top) = (geteuid().as_raw(), top.path().canonicalize().unwrap());
        let place = top.join("a/b/c");
        fs::create_dir_all(&place).unwrap();
        fs::create_dir(top.join("open")).unwrap();
        let set = |name: &str, mode: u32| {
            fs::set_permissions(top.join(name), Permissions::from_mode(mode)).unwrap();
        };
        for name in ["a", "a/b", "a/b/c"] {
            set(name, 0o755);
        }
        symlink(&place, top.join("link")).unwrap();
        symlink(&place, top.join("open/link")).unwrap();
        let is_safe = |path: &str| is_out_of_reach(&top.join(path), own);
        let paths = ["a/b/c", "link", "a/b/../b/c", "open/link", "open/../a/b"];
        set("open", 0o700);
        assert_eq!(paths.map(is_safe), [true; 5]);
        set("open", 0o770);
        assert_eq!(paths.map(is_safe), [true, true, true, false, true]);
        set("open", 0o1777);
        assert_eq!(paths.map(is_safe), [true; 5], "only its owner removes an entry");
        for (open, safe) in [("a/b/c", false), ("a/b", false), ("a", false)] {
            for mode in [0o775, 0o757] {
                set(open, mode);
                assert_eq!((is_safe("a/b/c"), is_safe("link")), (safe, safe), "{open} {mode:o}");
            }
            set(open, 0o755);
        }
        set("a/b", 0o1777);
        assert_eq!((is_safe("a/b/c"), is_safe("a/b")), (true, false));
        assert!(!is_safe("a/nothing"), "it cannot be looked at");
        if own == 0 {
            chown(top.join("a"), Some(STRANGER), None).unwrap();
            assert!(!is_safe("a/b/c"), "its owner may change it");
        }
    }

    #[test]
    fn processes_of_the_host_are_not_granted() {
        let root = File::open("/").unwrap().into();
        let trusted = trusted(&root, &[]);
        for path in ["/proc", "/proc/self/root", "/proc/1/cwd", "/proc/sys/kernel"] {
            let found = granted(&root, path, &trusted);
            assert!(found.is_err(), "{path}");
        }
        let read = open_granted(root.as_fd(), Path::new("/sys"), false, &trusted);
        if Path::new("/sys/kernel").exists() {
            assert!(read.is_ok() && granted(&root, "/sys", &trusted).is_err());
        }
    }

    #[test]
    fn mount_points_are_made_through_links_in_memory_only() {
        let (dir, root) = host();
        // All is on one file system here, so all of it stands for the memory.
        let made = open_mount_point(root.as_fd(), Path::new("/data/ref/new/file"), false).unwrap();
        let file = dir.path().join("secret/new/file");
        assert_eq!(fstat(&made).unwrap().st_ino, fs::metadata(file).unwrap().ino());
        open_mount_point(root.as_fd(), Path::new("/data/up/dir"), true).unwrap();
        assert!(dir.path().join("secret/dir").is_dir(), "no link leads above the root");
        // A computation's file system is another one.
        let Ok(shm) = tempfile::tempdir_in("/dev/shm") else { return };
        if shm.path().metadata().unwrap().dev() != dir.path().metadata().unwrap().dev() {
            symlink(dir.path(), shm.path().join("link")).unwrap();
            let host: OwnedFd = File::open("/").unwrap().into();
            open_mount_point(host.as_fd(), &shm.path().join("link/x"), true).unwrap_err();
            assert!(!dir.path().join("x").exists());
            open_mount_point(host.as_fd(), &shm.path().join("new/x"), true).unwrap();
            assert!(shm.path().join("new/x").is_dir());
        }
    }
}
