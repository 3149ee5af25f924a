//! Leases: who computes a call now, so that nobody else does.
//!
//! A lease is a symbolic link in `running/` that names a run: made in one step, and only if nobody
//! else has it. It saves work and nothing more: whether a call's outputs are right never depends
//! on it. A file system that knows no symbolic links has no leases.

use std::path::PathBuf;

use super::run::{Holder, RunName};
use super::{ResultName, Storage, disk};

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
    pub fn lease(&self, name: &ResultName) -> Result<Lease<'_>, Holder> {
        let free = Lease { storage: self, path: None };
        let Ok(path) = self.place(&name.room("running")) else {
            return Ok(free);
        };
        let Ok(directory) = self.run_directory() else {
            return Ok(free);
        };
        self.run.begin_to_beat(&directory);
        let own = self.run.name().to_string();
        // Twice: a lease that is given back between the two steps is free.
        for _ in 0..2 {
            match disk::symlink(&own, &path) {
                Ok(true) => {
                    return Ok(Lease { storage: self, path: Some(path) });
                }
                Ok(false) => {}
                Err(_) => return Ok(free),
            }
            if let Some(holder) = self.holder(name) {
                return Err(holder);
            }
            drop(disk::remove(&path));
        }
        Ok(free)
    }

    /// Who computes a call now: another run that has its lease, and lives.
    pub fn holder(&self, name: &ResultName) -> Option<Holder> {
        let path = self.path(&name.room("running"));
        let run: RunName = disk::read_symlink(&path).ok()??.to_str()?.parse().ok()?;
        let alive = run != *self.run.name() && self.run.is_alive(&run, &self.directory_of(&run));
        alive.then(|| Holder::from(&run))
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let Some(path) = &self.path else { return };
        // Somebody who took this run for dead may have it now.
        let own = self.storage.run.name().to_string();
        if let Ok(Some(target)) = disk::read_symlink(path)
            && target.as_os_str() == own.as_str()
        {
            drop(disk::remove(path));
        }
    }
}
