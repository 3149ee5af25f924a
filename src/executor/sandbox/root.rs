//! The root of one execution: nothing but what is bound into it.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount_bind_recursive, unmount};
use rustix::process::{chdir, pivot_root};

use super::cell::{Bind, Cell, HOME, Mode, TMP};
use super::mounts::{Failed, NEW, OLD, QUIET, at, below, bind_read_only, memory, restrict};
use super::system::Part;

/// Builds the root, below `/new`. This process has a mount namespace of its own.
pub(super) fn build(system: &[Part], cell: &Cell) -> Result<(), Failed> {
    memory(NEW, c"mode=0755")?;
    for part in system {
        match part {
            Part::Link { name, to } => {
                directory(name.parent().unwrap_or(name))?;
                let link = below(NEW, name);
                symlink(to, &link).map_err(at("link", link))?;
            }
            Part::Bound { name, prepared } => {
                let target = directory(name)?;
                mount_bind_recursive(prepared, &target).map_err(at("bind", target))?;
            }
        }
    }
    memory(below(NEW, Path::new("/dev/shm")), c"mode=1777")?;
    memory(directory(Path::new(HOME))?, c"mode=0700")?;
    let tmp = directory(Path::new("/var"))?.join("tmp");
    symlink(Path::new("..").join(TMP.trim_start_matches('/')), &tmp).map_err(at("link", tmp))?;
    cell.binds.iter().try_for_each(bind)
}

/// Shows a path of the host.
fn bind(bind: &Bind) -> Result<(), Failed> {
    let source = below(OLD, &bind.source);
    let about = source.metadata().map_err(at("find", &bind.source))?;
    let target = if about.is_dir() { directory(&bind.target)? } else { file(&bind.target)? };
    match bind.mode {
        Mode::Read => bind_read_only(&source, &target, QUIET),
        Mode::Write => {
            mount_bind_recursive(&source, &target).map_err(at("bind", &bind.source))?;
            restrict(&target, QUIET)
        }
    }
}

/// Makes `/new` the root, read-only, lets go of everything else, and goes to a directory.
pub(super) fn enter(directory: &str) -> Result<(), Failed> {
    restrict(Path::new(NEW), MountFlags::RDONLY | QUIET)?;
    chdir(NEW).map_err(at("enter", NEW))?;
    pivot_root(".", ".").map_err(at("take as root", NEW))?;
    unmount(".", UnmountFlags::DETACH).map_err(at("let go of", OLD))?;
    chdir(directory).map_err(at("enter", directory))
}

/// A directory of the new root, made if it is not there.
fn directory(path: &Path) -> Result<PathBuf, Failed> {
    let target = below(NEW, path);
    let made = DirBuilder::new().recursive(true).mode(0o755).create(&target);
    made.map_err(at("make", path))?;
    Ok(target)
}

/// A file of the new root that something can be bound to.
fn file(path: &Path) -> Result<PathBuf, Failed> {
    let target = below(NEW, path);
    if fs::symlink_metadata(&target).is_ok() {
        return Ok(target);
    }
    directory(path.parent().unwrap_or(path))?;
    match File::create_new(&target) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(at("make", path)(error)),
        _ => Ok(target),
    }
}
