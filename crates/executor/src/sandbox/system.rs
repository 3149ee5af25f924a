//! The files that all executions of a launcher share: the host's programs and libraries, read-only.
//!
//! A launcher has its own file system in memory: `/old` is the host's, `/system` is the common part
//! of the root of executions, and `/new` is for other mounts.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change,
};
use rustix::process::{chdir, geteuid, pivot_root};

use super::mounts::{
    OLD, QUIET, SYSTEM, StepError, at, below, directory, memory, mounted_below, restrict,
};
use super::spec::TMP;

/// The `/proc` of the namespace's init.
pub(super) const PROC: &str = "/system/proc";

/// The directories of programs, libraries and their configuration. A link on the host is a link in
/// the sandbox. A root that `access` names takes their place.
pub(super) const PROGRAMS: [&str; 11] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
];

/// Directories that describe processors and memory.
pub(super) const HARDWARE: [&str; 2] = ["/sys/devices/system/cpu", "/sys/devices/system/node"];

/// The devices that do no harm.
pub(crate) const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// Files of `/proc` with data on all processes of the host, or on keyrings.
pub(crate) const TELLING: [&str; 4] = ["keys", "key-users", "sched_debug", "timer_list"];

/// A part of the system, by its name.
#[derive(Debug)]
pub(super) enum Part {
    /// A symbolic link.
    Link {
        /// Its path.
        name: PathBuf,
        /// Its target, relative to that.
        to: PathBuf,
    },
    /// A mount in the launcher's root for executions.
    Mounted(PathBuf),
}

impl Part {
    /// Its path.
    pub(super) fn name(&self) -> &Path {
        match self {
            Self::Link { name, .. } | Self::Mounted(name) => name,
        }
    }

    /// Whether it is of the host's programs and libraries.
    pub(super) fn is_program(&self) -> bool {
        PROGRAMS.iter().any(|name| self.name() == Path::new(name))
    }
}

/// Moves a launcher, which has a mount namespace, into a file system of its own.
///
/// If executions are nobody, the kernel hides what only root may read.
pub(super) fn prepare(devices: &[PathBuf], nobody: bool) -> Result<Vec<Part>, StepError> {
    let everything = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", everything).map_err(at("make private the mounts below", "/"))?;
    memory("/tmp", c"mode=0755")?;
    for directory in ["/tmp/old", "/tmp/system", "/tmp/new"] {
        fs::create_dir(directory).map_err(at("make", directory))?;
    }
    pivot_root("/tmp", "/tmp/old").map_err(at("take as root", "/tmp"))?;
    chdir("/").map_err(at("enter", "/"))?;
    memory(SYSTEM, c"mode=0755")?;
    let name = Path::new("/var/tmp");
    let mut parts = vec![Part::Link { name: name.into(), to: relative(name, Path::new(TMP)) }];
    for name in PROGRAMS.iter().chain(&HARDWARE).map(Path::new) {
        let host = below(OLD, name);
        let Ok(about) = host.symlink_metadata() else {
            continue;
        };
        parts.push(if about.is_symlink() {
            let to = host.read_link().map_err(at("read the link", name))?;
            Part::Link { name: name.into(), to: relative(name, &to) }
        } else {
            bind(name, nobody)?;
            Part::Mounted(name.into())
        });
    }
    let dev = Path::new(SYSTEM).join("dev");
    make_devices(&dev, devices, nobody)?;
    for mounted in mounted_below(Path::new(SYSTEM))? {
        // Mounts from /dev keep their device nodes.
        let flags = if mounted.starts_with(&dev) { MountFlags::NOSUID } else { QUIET };
        restrict(&mounted, MountFlags::RDONLY | flags)?;
    }
    parts.extend(["/dev", "/proc"].map(|name| Part::Mounted(name.into())));
    Ok(parts)
}

/// The target of a link, in a form that means the same below another root.
fn relative(name: &Path, to: &Path) -> PathBuf {
    let Ok(to) = to.strip_prefix("/") else {
        return to.to_owned();
    };
    // The root and the link itself are no steps.
    let steps = name.components().count().saturating_sub(2);
    (0..steps).map(|_| Path::new("..")).chain([to]).collect()
}

/// Binds a part of the host's system.
fn bind(name: &Path, nobody: bool) -> Result<(), StepError> {
    let target = directory(SYSTEM, name)?;
    mount_bind_recursive(below(OLD, name), &target).map_err(at("bind", name))?;
    if name == Path::new("/etc") && geteuid().is_root() && !nobody {
        hide_secrets(&target)?;
    }
    Ok(())
}

/// Makes a /dev of the devices that do no harm, and of those that are granted.
fn make_devices(dev: &Path, granted: &[PathBuf], nobody: bool) -> Result<(), StepError> {
    fs::create_dir(dev).map_err(at("make", dev))?;
    mount("tmpfs", dev, "tmpfs", MountFlags::NOSUID, c"mode=0755").map_err(at("mount", dev))?;
    let usual = DEVICES.iter().map(|name| Path::new("/dev").join(name));
    for name in usual.chain(granted.iter().cloned()) {
        let source = below(OLD, &name);
        let target = dev.join(name.strip_prefix("/dev").unwrap_or(&name));
        let parent = target.parent().unwrap_or(dev);
        fs::create_dir_all(parent).map_err(at("make", parent))?;
        if nobody && granted.contains(&name) && copy_devices(&source, &target).is_ok() {
            continue;
        }
        if source.is_dir() {
            fs::create_dir_all(&target).map_err(at("make", &target))?;
        } else {
            File::create(&target).map_err(at("make", &target))?;
        }
        mount_bind_recursive(&source, &target).map_err(at("bind", &name))?;
    }
    for (name, to) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        let link = dev.join(name);
        symlink(format!("/proc/self/fd{to}"), &link).map_err(at("link", link))?;
    }
    let shm = dev.join("shm");
    fs::create_dir(&shm).map_err(at("make", shm))
}

/// Makes devices that nobody may use as root may use those of the host: one, or those of a directory. Links in it stay links. A file
/// system of its own is left out.
fn copy_devices(source: &Path, target: &Path) -> io::Result<()> {
    let granted = fs::metadata(source)?;
    let device = granted.dev();
    let mut left = vec![(source.to_owned(), target.to_owned(), granted)];
    while let Some((source, target, about)) = left.pop() {
        let kind = FileType::from_raw_mode(about.mode());
        match kind {
            _ if about.dev() != device => return Err(io::ErrorKind::CrossesDevices.into()),
            FileType::CharacterDevice | FileType::BlockDevice => {
                mknodat(CWD, &target, kind, Mode::empty(), about.rdev())?;
                fs::set_permissions(&target, Permissions::from_mode(0o666))?;
            }
            FileType::Directory => {
                fs::create_dir_all(&target)?;
                for entry in fs::read_dir(&source)? {
                    let entry = entry?;
                    left.push((entry.path(), target.join(entry.file_name()), entry.metadata()?));
                }
            }
            FileType::Symlink => symlink(fs::read_link(&source)?, &target)?,
            _ => {}
        }
    }
    Ok(())
}

/// Covers what only root may read by now: an ordinary user would not see it either.
pub(super) fn hide_secrets(etc: &Path) -> Result<(), StepError> {
    let mut left = vec![etc.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).map_err(at("list", &directory))? {
            let entry = entry.map_err(at("list", &directory))?;
            let about = entry.metadata().map_err(at("look at", entry.path()))?;
            let (path, mode) = (entry.path(), about.permissions().mode());
            if about.is_dir() && mode & 0o5 != 0o5 {
                memory(&path, c"mode=0555")?;
            } else if about.is_dir() {
                left.push(path);
            } else if about.is_file() && mode & 0o4 == 0 {
                cover(&path)?;
            }
        }
    }
    Ok(())
}

/// Covers files of `/proc` with data on others, and those that only root may read.
pub(super) fn cover_proc() -> Result<(), StepError> {
    let (telling, mut secret) = (TELLING.map(|name| Path::new(PROC).join(name)), Vec::new());
    if geteuid().is_root() {
        for entry in fs::read_dir(PROC).map_err(at("list", PROC))? {
            let path = entry.map_err(at("list", PROC))?.path();
            // A process may have ended meanwhile.
            let about = fs::symlink_metadata(&path).ok();
            let is_secret =
                about.is_some_and(|it| it.is_file() && it.permissions().mode() & 0o4 == 0);
            secret.extend((is_secret && !telling.contains(&path)).then_some(path));
        }
    }
    let there = telling.iter().filter(|path| path.exists());
    there.chain(&secret).try_for_each(|path| cover(path))
}

/// Covers a file with an empty one. Where it is bound without devices, it cannot be opened either.
fn cover(path: &Path) -> Result<(), StepError> {
    mount_bind("/old/dev/null", path).map_err(at("cover", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_the_same_place_below_another_root() {
        let leads = |name: &str, to: &str| relative(Path::new(name), Path::new(to));
        assert_eq!(leads("/bin", "usr/bin"), Path::new("usr/bin"));
        assert_eq!(leads("/bin", "/usr/bin"), Path::new("usr/bin"));
        assert_eq!(leads("/run/current-system", "/nix/s"), Path::new("../nix/s"));
    }
}
