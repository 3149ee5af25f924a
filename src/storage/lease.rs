//! Leases: who computes a call now, so that nobody else does.
//!
//! A lease is a file in `running/` that names a run: a hard link to a file of that run, made in one
//! step, and only if nobody else has it. It saves work and nothing more: whether a call's outputs
//! are right never depends on it. A file system that knows no hard links has no leases.

use std::path::{Path, PathBuf};

use super::run::{Holder, RunName};
use super::{Result, ResultName, Storage};

/// How often a lease that others take and give back is tried for.
const MAX_ATTEMPTS: usize = 10;

/// The right to compute a call, given back when dropped.
#[derive(Debug)]
pub struct Lease<'a> {
    storage: &'a Storage,
    path: Option<PathBuf>,
}

impl Storage {
    /// Takes the lease of a call, or tells who has it.
    ///
    /// A lease of a run that is no more is taken over.
    ///
    /// # Errors
    ///
    /// Returns the run that has it.
    pub fn lease(&self, name: &ResultName) -> Result<Lease<'_>, Holder> {
        let free = Lease { storage: self, path: None };
        let Ok((own, path)) = self.lease_files(name) else { return Ok(free) };
        // Again: a lease that is given back between the two steps is free.
        for _ in 0..MAX_ATTEMPTS {
            match self.disk.link(&own, &path) {
                Ok(true) => return Ok(Lease { storage: self, path: Some(path) }),
                Ok(false) => {}
                Err(_) => return Ok(free),
            }
            let Ok(lease) = self.disk.id(&path) else { return Ok(free) };
            if let Some(holder) = self.holder(name) {
                return Err(holder);
            }
            // One that was not there was given back, and may be somebody else's by now; so may one
            // that was taken over meanwhile.
            if lease.is_some() && self.disk.id(&path).ok() == Some(lease) {
                drop(self.disk.remove(&path));
            }
        }
        Ok(free)
    }

    /// The file that names this run, and where a link to it is a call's lease.
    fn lease_files(&self, name: &ResultName) -> Result<(PathBuf, PathBuf)> {
        Ok((self.appear()?.to_owned(), self.place(&name.room("running"))?))
    }

    /// Who computes a call now: a run that has its lease, and lives.
    pub fn holder(&self, name: &ResultName) -> Option<Holder> {
        let text = self.disk.read(&self.path(&name.room("running"))).ok()??;
        let run: RunName = std::str::from_utf8(&text).ok()?.trim().parse().ok()?;
        // This run gives its leases back; one that is there is another call's, which turned out to
        // be the same.
        let own = run == *self.run.name();
        let alive = own || self.run.is_alive(&run, &self.disk, &self.directory_of(&run));
        alive.then(|| Holder::new(&run, own))
    }
}

impl Lease<'_> {
    /// Whether it is still this run's: somebody who took this run for dead may have it now.
    fn is_own(&self, path: &Path) -> Result<bool> {
        let own = self.storage.path(self.storage.run.directory()).join("run");
        let (own, lease) = (self.storage.disk.metadata(&own)?, self.storage.disk.metadata(path)?);
        Ok(own.zip(lease).is_some_and(|(own, lease)| own.id().1 == lease.id().1))
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(path) = &self.path
            && self.is_own(path).unwrap_or(false)
        {
            drop(self.storage.disk.remove(path));
        }
    }
}
