//! The root of an execution that has one of its own: the entries of a directory, which is an input.
//!
//! The mount points of the sandbox take precedence over entries of the same name. No link of the directory is
//! followed here: in the launcher, it might lead out of the root.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags, fstat, openat, readlinkat};
use rustix::io::Errno;

use super::mounts::{
    NEW, OLD, QUIET, StepError, VERIFY, at, below, bind_read_only, directory, opened,
};
use super::spec::SandboxSpec;
use crate::files::open_verified;

/// The mount points of a sandbox.
struct Points<'a> {
    /// Those that every execution has.
    own: Vec<&'a Path>,
    /// Those of its inputs, and of what `access` grants.
    bound: Vec<&'a Path>,
}

impl Points<'_> {
    /// Whether an entry of this name is not to be shown.
    fn cover(&self, name: &Path) -> bool {
        self.own.contains(&name) || self.bound.contains(&name)
    }

    /// Whether one of them is below this name.
    fn are_below(&self, name: &Path) -> bool {
        self.own.iter().chain(&self.bound).any(|point| point.starts_with(name))
    }
}

/// Shows the entries of the root that an execution has, read-only. `own` are the mount points that every
/// execution has.
///
/// A directory that has a mount point below it is made in memory, and its entries are shown in it.
pub(super) fn show<'a>(
    spec: &'a SandboxSpec,
    own: impl Iterator<Item = &'a Path>,
    owners: Option<&OwnedFd>,
) -> Result<(), StepError> {
    let missing = || at("find", "the root")(Errno::NOENT);
    let (root, id) = spec.root().and_then(|root| Some((root, root.id?))).ok_or_else(missing)?;
    let points = Points {
        own: own.collect(),
        bound: spec.binds.iter().map(|bind| bind.target.as_path()).collect(),
    };
    let top = open_verified(&below(OLD, &root.source), id).map_err(at(VERIFY, &root.source))?;
    let mut left = vec![(top, PathBuf::from("/"))];
    while let Some((place, name)) = left.pop() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let entries = openat(&place, ".", flags, Mode::empty()).and_then(Dir::new);
        for entry in entries.map_err(at("list", &name))? {
            let entry = entry.map_err(at("list", &name))?;
            let word = OsStr::from_bytes(entry.file_name().to_bytes());
            let name = name.join(word);
            if word == "." || word == ".." || points.cover(&name) {
                continue;
            }
            if let Some(deeper) = show_entry(&place, &name, &points, owners)? {
                left.push((deeper, name));
            }
        }
    }
    Ok(())
}

/// Shows an entry of a directory. Returns a directory of which the entries are to be shown instead.
fn show_entry(
    place: &OwnedFd,
    name: &Path,
    points: &Points<'_>,
    owners: Option<&OwnedFd>,
) -> Result<Option<OwnedFd>, StepError> {
    let word = name.file_name().unwrap_or_default();
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let entry = openat(place, word, flags, Mode::empty()).map_err(at("find", name))?;
    let stat = fstat(&entry).map_err(at("look at", name))?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    let target = below(NEW, name);
    if points.are_below(name) {
        return match kind {
            FileType::Directory => directory(NEW, name).map(|_| Some(entry)),
            _ if points.bound.iter().any(|point| point.starts_with(name)) => {
                Err(at("show what access grants below a link or file of the root:", name)(
                    Errno::LOOP,
                ))
            }
            _ => Ok(None),
        };
    }
    match kind {
        FileType::Symlink => {
            let to = readlinkat(&entry, "", Vec::new()).map_err(at("read the link", name))?;
            symlink(OsStr::from_bytes(to.to_bytes()), target).map_err(at("link", name))?;
            return Ok(None);
        }
        FileType::Directory => drop(directory(NEW, name)?),
        _ => drop(File::create_new(&target).map_err(at("make", name))?),
    }
    bind_read_only(&opened(&entry), &target, QUIET, owners)?;
    Ok(None)
}
