//! Whether directories are still where they were when they were opened.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use rustix::fs::fstat;
use rustix::io::Errno;

use super::{Disk, NotOwn, beneath, is_absent};

impl Disk {
    /// Whether the path of the top directory still leads to the one that was opened.
    pub(crate) fn is_in_place(&self) -> bool {
        self.is_certain(|| match rustix::fs::stat(&self.root) {
            Ok(stat) => self.id == Some((stat.st_dev, stat.st_ino)),
            // Any other error counts as "the same": the operations themselves will fail.
            Err(error) => self.id.is_some() && error != Errno::NOENT,
        })
    }

    /// Whether something holds that should: if it does not, that may be an old answer.
    fn is_certain(&self, holds: impl Fn() -> bool) -> bool {
        self.surely(|| Ok(holds().then_some(()))).is_ok_and(|found| found.is_some())
    }

    /// Returns the path of an open directory that leads to another directory now, if there is one
    /// among those that stay.
    pub(crate) fn moved(&self, stays: impl Fn(&[u8]) -> bool) -> Option<PathBuf> {
        let known = self.directories.read().unwrap_or_else(PoisonError::into_inner);
        // It may be that they are asked for again, and closed meanwhile.
        let known: Vec<_> = known
            .iter()
            .filter(|(inside, _)| stays(inside))
            .map(|(inside, directory)| (inside.clone(), Arc::clone(directory)))
            .collect();
        let (moved, _) =
            known.iter().find(|(inside, directory)| !self.leads_to(inside, directory))?;
        Some(self.root.join(OsStr::from_bytes(moved)))
    }

    /// Whether a path leads to another directory now than when it was opened.
    pub(crate) fn is_moved(&self, path: &Path) -> bool {
        let Ok(inside) = self.inside(path) else { return false };
        self.known(inside).is_some_and(|directory| !self.leads_to(inside, &directory))
    }

    /// Whether a path below the top leads to an open directory.
    fn leads_to(&self, inside: &[u8], directory: &OwnedFd) -> bool {
        let id = |directory: &OwnedFd| fstat(directory).map(|stat| (stat.st_dev, stat.st_ino)).ok();
        let Some(top) = &self.top else { return false };
        self.is_certain(|| match beneath::open(top, OsStr::from_bytes(inside)) {
            Ok(now) => id(&now) == id(directory),
            // Any other error does not say that it was moved: the operations themselves will fail.
            Err(error) => !is_absent(&error) && NotOwn::of(&error).is_none(),
        })
    }
}
