//! Leases: who computes a call now, so that nobody else does.
//!
//! A lease is a file in `running/` that names a run: a hard link to a file of that run, made in one
//! step, and only if nobody else has it. It saves work and nothing more: whether a call's outputs
//! are right never depends on it. A file system that knows no hard links has no leases.

use std::path::{Path, PathBuf};

use super::run::{Holder, OwnRun};
use crate::storage::disk::{Result, Root};
use crate::storage::layout::{LEASES, ResultName, RunName};

/// How often a lease that others take and give back is tried for.
const MAX_ATTEMPTS: usize = 10;

/// The right to compute a call, given back when dropped.
#[derive(Debug)]
pub struct Lease<'a> {
    leases: Leases<'a>,
    path: Option<PathBuf>,
}

/// The leases of calls.
#[derive(Clone, Copy, Debug)]
pub struct Leases<'a> {
    root: &'a Root,
    run: &'a OwnRun,
}

impl<'a> Leases<'a> {
    pub(super) const fn new(root: &'a Root, run: &'a OwnRun) -> Self {
        Self { root, run }
    }

    /// Acquires the lease of a call, or returns its holder.
    ///
    /// A lease of a run that is no more is taken over.
    ///
    /// # Errors
    ///
    /// Returns the run that has it.
    pub fn acquire(&self, name: &ResultName) -> Result<Lease<'a>, Holder> {
        let free = Lease { leases: *self, path: None };
        let Ok((own, path)) = self.lease_files(name) else { return Ok(free) };
        // Again: a lease that is given back between the two steps is free.
        for _ in 0..MAX_ATTEMPTS {
            match self.root.disk.link(&own, &path) {
                Ok(true) => return Ok(Lease { leases: *self, path: Some(path) }),
                Ok(false) => {}
                Err(_) => return Ok(free),
            }
            let Ok(lease) = self.root.disk.id(&path) else { return Ok(free) };
            if let Some(holder) = self.holder(name) {
                return Err(holder);
            }
            // One that was not there was given back, and may be somebody else's by now; so may one
            // that was taken over meanwhile.
            if lease.is_some() && self.root.disk.id(&path).ok() == Some(lease) {
                drop(self.root.disk.remove(&path));
            }
        }
        Ok(free)
    }

    /// The file that names this run, and where a link to it is a call's lease.
    fn lease_files(&self, name: &ResultName) -> Result<(PathBuf, PathBuf)> {
        Ok((self.run.appear(self.root)?.to_owned(), self.root.place(&name.room(LEASES))?))
    }

    /// Who computes a call now: a run that has its lease, and lives.
    pub fn holder(&self, name: &ResultName) -> Option<Holder> {
        let text = self.root.disk.read(&self.root.path(&name.room(LEASES))).ok()??;
        let run: RunName = std::str::from_utf8(&text).ok()?.trim().parse().ok()?;
        // This run gives its leases back; one that is there is another call's, which turned out to
        // be the same.
        let own = run == *self.run.name();
        let alive =
            own || self.run.is_alive(&run, &self.root.disk, &self.root.path(&run.directory()));
        alive.then(|| Holder::new(&run, own))
    }
}

impl Lease<'_> {
    /// Whether it is still this run's: somebody who took this run for dead may have it now.
    fn is_own(&self, path: &Path) -> Result<bool> {
        let Leases { root, run } = self.leases;
        let own = root.path(run.directory()).join("run");
        let (own, lease) = (root.disk.metadata(&own)?, root.disk.metadata(path)?);
        Ok(own.zip(lease).is_some_and(|(own, lease)| own.id().1 == lease.id().1))
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(path) = &self.path
            && self.is_own(path).unwrap_or(false)
        {
            drop(self.leases.root.disk.remove(path));
        }
    }
}
