//! Leases, by which each call is executed by one run at a time.
//!
//! A lease is a file in `running/` that names a run. It is a hard link to a file of that run, so it
//! is created atomically, and only if it does not exist. Leases save work and nothing more: the
//! correctness of outputs never depends on them. A file system without hard links has no leases.
//!
//! Runs at different commits of one tree do not execute a call at the same time if the result of one will serve the
//! other. The result of an isolated execution serves all of them. Any other result serves only runs that trust trees.
//! So all versions of a tree share two more leases: a run that isolates holds one, and a run that trusts trees the
//! other.

use std::path::{Path, PathBuf};

use super::call_lookup::Call;
use super::heartbeat::{CurrentRun, Holder};
use crate::disk::{FileId, Linked, Result, Root, StorageError, lock};
use crate::paths::{GATE, LEASES, ResultName, RunName};

/// The number of attempts to acquire a lease that others acquire and release.
const MAX_ATTEMPTS: usize = 10;

/// The right to execute a call, released when dropped.
#[derive(Debug)]
pub struct Lease<'a> {
    leases: Leases<'a>,
    paths: Vec<PathBuf>,
}

/// The way in which a run executes a call, and what serves it in place of that.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionMode {
    /// It isolates the call: its result serves all versions of the tree.
    pub isolates: bool,
    /// It trusts trees: unisolated results of other runs that trust trees serve it, too.
    pub trusts_trees: bool,
}

/// The leases of calls.
#[derive(Clone, Copy, Debug)]
pub struct Leases<'a> {
    pub(super) root: &'a Root,
    run: &'a CurrentRun,
}

impl<'a> Leases<'a> {
    pub(super) const fn new(root: &'a Root, run: &'a CurrentRun) -> Self {
        Self { root, run }
    }

    /// Acquires the lease of a call, or returns its holder.
    ///
    /// The lease of a run that has ended is taken over.
    ///
    /// # Errors
    ///
    /// Returns the run that holds it.
    pub fn acquire(&self, name: &ResultName) -> Result<Lease<'a>, Holder> {
        // If the storage has no leases, the call is executed without one.
        let acquired = self.acquire_file(&name.room(LEASES));
        acquired.unwrap_or_else(|_| Ok(Lease { leases: *self, paths: Vec::new() }))
    }

    /// Acquires the lease of a call, and the leases that other versions of its tree look at. Fails if a run executes it
    /// for such a version now and the result will serve this one.
    ///
    /// A run that trusts trees begins with their lease: of two such runs, one has both leases, or has looked at both.
    ///
    /// # Errors
    ///
    /// Returns the run that is to be waited for, and the name of its lease. Then no lease is held, so no run waits with
    /// a lease.
    pub fn acquire_for_tree(
        &self,
        name: &ResultName,
        call: Call<'_>,
        mode: ExecutionMode,
    ) -> Result<Lease<'a>, (ResultName, Holder)> {
        let acquire = |name: ResultName| self.acquire(&name).map_err(|holder| (name, holder));
        let [isolated, trusted] = ResultName::of_all_versions(call.version, call.inputs);
        let mut own = acquire(name.clone())?;
        if mode.trusts_trees {
            own.paths.append(&mut acquire(trusted)?.paths);
        }
        if mode.isolates {
            own.paths.append(&mut acquire(isolated)?.paths);
        } else if let Some(holder) = self.holder(&isolated) {
            return Err((isolated, holder));
        }
        Ok(own)
    }

    /// Acquires the lease that is this file, or returns its holder.
    ///
    /// # Errors
    ///
    /// Fails where leases do not work.
    pub(super) fn acquire_file(&self, file: &str) -> Result<Result<Lease<'a>, Holder>> {
        let own = self.run.appear(self.root)?;
        let path = self.root.place(file)?;
        let mut left = None;
        // A lease that is released between the two steps is free at the next attempt.
        for _ in 0..MAX_ATTEMPTS {
            if self.link(own, &path)? {
                return Ok(Ok(self.lease_at(path)));
            }
            let lease = self.root.disk.id(&path)?;
            if let Some(holder) = self.holder_of_file(file)? {
                return Ok(Err(holder));
            }
            if let Some(lease) = lease {
                left = self.take_from_dead(&path, lease).err();
            }
        }
        Err(left.unwrap_or(StorageError::Unsteady(path)))
    }

    /// Removes the lease of a dead run, which is this file. A lease that was released and belongs to another run now, or
    /// was taken over meanwhile, stays: so it is moved to a private name, which only one run can do, and moved back if it
    /// is another lease.
    fn take_from_dead(&self, path: &Path, lease: FileId) -> Result<()> {
        let disk = &self.root.disk;
        if disk.metadata(path)?.is_some_and(|it| !it.is_file()) {
            return disk.remove(path);
        }
        let private = self.root.private_path()?;
        if !disk.rename(path, &private)? {
            return Ok(());
        }
        if disk.id(&private)? != Some(lease) {
            disk.rename_new(&private, path)?;
        }
        disk.remove(&private)
    }

    /// The lease at this path, which is a link to the file of this run.
    pub(super) fn lease_at(&self, path: PathBuf) -> Lease<'a> {
        Lease { leases: *self, paths: vec![path] }
    }

    /// Links a lease to the file of this run. Returns whether it was free.
    fn link(&self, own: &Path, path: &Path) -> Result<bool> {
        match self.link_once(own, path) {
            // A file may have 65,000 links on one file system, and a hundred on another, which says that it is full.
            Err(error) if error.is_full() || error.is_too_many_links() => {
                self.run.renew_file(&self.root.disk, own)?;
                self.link_once(own, path)
            }
            linked => linked,
        }
    }

    fn link_once(&self, own: &Path, path: &Path) -> Result<bool> {
        let disk = &self.root.disk;
        if !disk.is_on_network() {
            return Ok(disk.link_as(own, path)? == Linked::New);
        }
        // Over a network, a link may be made and reported as failed: then it leads to this run's file, and no other call of
        // this run has it.
        let mut held = lock(&self.run.held);
        let is_free = match disk.link_as(own, path)? {
            Linked::New => true,
            Linked::Same => !held.contains(path),
            Linked::Taken => false,
        };
        if is_free {
            held.insert(path.to_owned());
        }
        Ok(is_free)
    }

    /// Returns the run that executes a call now: it has the lease, and is alive, as far as is known.
    pub fn holder(&self, name: &ResultName) -> Option<Holder> {
        self.holder_of_file(&name.room(LEASES)).ok().flatten()
    }

    /// Returns the living run that has the lease that is this file.
    ///
    /// # Errors
    ///
    /// Fails if that is not known: then it may be alive.
    pub(super) fn holder_of_file(&self, file: &str) -> Result<Option<Holder>> {
        if file == GATE { self.gate_holder() } else { self.holder_as_known(file) }
    }

    /// The living run that has closed the gate. On a network file system, the known state of the lease may be old, or
    /// missing: so it exists if it is listed, and its holder is read again before it counts as dead.
    pub(super) fn gate_holder(&self) -> Result<Option<Holder>> {
        let disk = &self.root.disk;
        if !disk.may_show_late() {
            return self.holder_as_known(GATE);
        }
        let path = self.root.path(GATE);
        let holder = disk.surely(|| {
            if disk.is_listed(&path)? {
                Ok(self.holder_as_known(GATE)?.map(Some))
            } else {
                Ok(Some(None))
            }
        });
        Ok(holder?.flatten())
    }

    /// The same, as this host knows it: over a network, this may be a moment old.
    pub(super) fn holder_as_known(&self, file: &str) -> Result<Option<Holder>> {
        let text = match self.root.disk.read(&self.root.path(file)) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(None),
            // Something else is in its place.
            Err(error) if error.is_foreign() => return Ok(None),
            Err(error) => return Err(error),
        };
        let run = std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok());
        let Some(run): Option<RunName> = run else { return Ok(None) };
        // This run releases its leases. An existing lease belongs to another call that turned out to be the same.
        let own = run == *self.run.name();
        let alive =
            own || self.run.is_alive(&run, &self.root.disk, &self.root.path(&run.directory()));
        Ok(alive.then(|| Holder::new(&run, own)))
    }
}

impl Lease<'_> {
    /// Whether this run still holds it: another run may have taken this run for dead, and hold it now.
    fn is_own(&self, path: &Path) -> Result<bool> {
        let Leases { root, run } = self.leases;
        let own = root.disk.id(&root.path(run.directory()).join("run"))?;
        let Some((_, lease)) = root.disk.id(path)? else { return Ok(false) };
        Ok(own.iter().chain(&*lock(&run.earlier)).any(|(_, own)| *own == lease))
    }

    /// Whether this run still holds all of it.
    pub fn is_held(&self) -> Result<bool> {
        self.paths.iter().try_fold(true, |held, path| Ok(held && self.is_own(path)?))
    }

    /// Gives it back.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be given back: then no other run has it as long as this one lives.
    pub fn release(mut self) -> Result<()> {
        let mut released = Ok(());
        while let Some(path) = self.paths.pop() {
            released = released.and(self.give_back(&path));
        }
        released
    }

    fn give_back(&self, path: &Path) -> Result<()> {
        let Leases { root, run } = self.leases;
        let mut held = root.disk.is_on_network().then(|| lock(&run.held));
        if self.is_own(path)? {
            root.disk.remove(path)?;
        }
        if let Some(held) = &mut held {
            held.remove(path);
        }
        Ok(())
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        while let Some(path) = self.paths.pop() {
            // This run itself would wait for a lease that is left.
            drop(self.give_back(&path).or_else(|_| self.give_back(&path)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{Durability, Storage, Unrecorded};

    #[test]
    fn leases_that_are_links_to_several_files_are_all_of_this_run() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("tinputs")).unwrap();
        let storage = Storage::open(dir.path(), Unrecorded::Adopt, Durability::Unsynced).unwrap();
        let names = ["c_a/1/2", "c_a/1/3"].map(|name| ResultName::of_short(name).unwrap());
        let first = storage.leases().acquire(&names[0]).unwrap();
        let own = storage.run.appear(&storage.root).unwrap();
        storage.run.renew_file(&storage.root.disk, own).unwrap();
        let second = storage.leases().acquire(&names[1]).unwrap();
        let path = |name: &ResultName| storage.path(&name.room(LEASES));
        let [one, other] = names.each_ref().map(|it| storage.root.disk.id(&path(it)).unwrap());
        assert!(one.is_some() && other.is_some() && one != other);
        assert!(names.iter().all(|name| storage.leases().holder(name).unwrap().own));
        first.release().unwrap();
        second.release().unwrap();
        assert!(names.iter().all(|name| !path(name).exists()));
    }
}
