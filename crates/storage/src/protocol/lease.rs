//! Leases, by which each call is executed by one run at a time; and garbage collection roots: names that runs use, announced
//! before they are looked up, so that they are not collected meanwhile.
//!
//! A lease is a file in `running/` that names a run. It is a hard link to a file of that run, so it
//! is created atomically, and only if it does not exist. Leases save work and nothing more: the
//! correctness of outputs never depends on them. A file system without hard links has no leases.
//!
//! Runs at different commits of one tree do not execute a call at the same time if the result of one will serve the other. What
//! an isolated execution makes serves all of them; what another one makes serves those that trust trees. So two more leases,
//! which all versions of a tree share, say how their holder executes: whoever isolates has the one, whoever trusts trees the other.
//!
//! A run appends the names that it uses to a file in its private directory, waits as long as the gate is closed, and then looks them
//! up. A collection removes records, closes the gate, reads the roots, and only then takes files away. So one of the two notices
//! the other before anything is taken away. The gate is a lease, so that of a collection that has died is open.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::Storage;
use super::call::Call;
use super::run::{CurrentRun, Holder};
use crate::disk::{FileId, IoContext, Linked, Result, Root, StorageError, lock, patience};
use crate::paths::{
    DIGITS, Entry, GATE, LEASES, RUNS, ResultName, RunName, roots_file, roots_size, size_of_roots,
    split_member, task_input,
};
use crate::records::JobRecord;
use ce_model::digest::Digest;

/// The number of attempts to acquire a lease that others acquire and release.
const MAX_ATTEMPTS: usize = 10;

/// The right to execute a call, released when dropped.
#[derive(Debug)]
pub struct Lease<'a> {
    leases: Leases<'a>,
    paths: Vec<PathBuf>,
}

/// How a run executes a call, and what serves it in place of that.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionMode {
    /// It isolates the call: its result serves all versions of the tree.
    pub isolates: bool,
    /// It trusts trees: what others of that opinion execute without isolation serves it, too.
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
        // Where there are no leases, the call is executed without one.
        let acquired = self.acquire_file(&name.room(LEASES));
        acquired.unwrap_or_else(|_| Ok(Lease { leases: *self, paths: Vec::new() }))
    }

    /// Acquires the lease of a call, and those that other versions of its tree look at. Returns who executes it for one of them
    /// now, if the result will serve this one.
    ///
    /// Who trusts trees begins with their lease: of two of these, one has both, or has looked at both.
    ///
    /// # Errors
    ///
    /// Returns the run that is to be waited for, and the name of its lease. Then none is held, so nobody waits with a lease.
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
    /// Fails where there are no leases.
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

    /// Removes the lease of a dead run, which is this file. One that was released and is another run's now, or was taken over
    /// meanwhile, stays: so it is moved to a private name, which only one run can do, and moved back if it is another one.
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

    /// The same, as this host knows it: over a network, that may be what was so a moment ago.
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
        // This run releases its leases. One that exists belongs to another call that turned out to
        // be the same.
        let own = run == *self.run.name();
        let alive =
            own || self.run.is_alive(&run, &self.root.disk, &self.root.path(&run.directory()));
        Ok(alive.then(|| Holder::new(&run, own)))
    }
}

impl Lease<'_> {
    /// Whether this run still holds it: another run may have taken this one for dead, and have it
    /// now.
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
            // This run itself would wait for one that is left.
            drop(self.give_back(&path).or_else(|_| self.give_back(&path)));
        }
    }
}

/// The interval at which a closed gate is looked at. A collection only reads names and moves files while it is closed.
const POLL: Duration = Duration::from_millis(5);

/// The part of a run's patience after which the user is told that it waits.
const TELL: u32 = 30;

/// Names that are in use: files, results, and directories with everything in them.
#[derive(Debug, Default)]
pub struct GcRoots {
    names: HashSet<String>,
    /// How many bytes of the announcements of each run were read.
    read: HashMap<RunName, usize>,
}

/// The GC roots of all runs, and the gate that a collection closes.
#[derive(Clone, Copy, Debug)]
pub struct RootRegistry<'a> {
    storage: &'a Storage,
}

impl<'a> RootRegistry<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Announces that this run is going to look for these names, or below them. What it finds then stays.
    ///
    /// Nothing is announced in a storage that cannot be written: nothing can be collected from it.
    /// If the storage is full, used files may be collected, and a call that reads them then fails.
    pub fn announce(&self, names: impl IntoIterator<Item = String>) -> Result<()> {
        let names: Vec<String> = names.into_iter().collect();
        if self.storage.root.writable
            && !names.is_empty()
            && self.storage.run.appear(&self.storage.root).is_ok()
        {
            // A write that failed may have left half a name before.
            let text: String = names.iter().map(|name| format!("{name}\n")).collect();
            drop(self.write(&format!("\n{text}")));
            self.await_gate()?;
            // What is listed from now on stays.
            names
                .iter()
                .for_each(|name| self.storage.root.disk.forget_listed(&self.storage.path(name)));
        }
        Ok(())
    }

    /// Adds to what this run has announced. On a network file system, the size of all of it is in the name of a file: others
    /// may see an older version of a file, but list all names.
    fn write(&self, text: &str) -> Result<()> {
        let (disk, directory) = (&self.storage.root.disk, self.storage.run.directory());
        let mut announced = lock(&self.storage.run.announced);
        disk.append(&self.storage.path(&roots_file(directory)), text.as_bytes())?;
        let before = *announced;
        *announced += text.len();
        if disk.may_show_late() {
            let [old, new] =
                [before, *announced].map(|size| self.storage.path(&roots_size(directory, size)));
            if before == 0 || !disk.rename(&old, &new)? {
                disk.write(&new, b"")?;
            }
        }
        Ok(())
    }

    /// Returns what a run has announced.
    fn announced_by(&self, run: &RunName) -> Result<Vec<u8>> {
        let (disk, directory) = (&self.storage.root.disk, run.directory());
        let file = self.storage.path(&roots_file(&directory));
        let read = disk.surely(|| {
            let text = disk.read(&file)?.unwrap_or_default();
            let is_whole = !disk.may_show_late()
                || self
                    .storage
                    .root
                    .names(&directory)?
                    .iter()
                    .all(|it| size_of_roots(it) <= text.len());
            Ok(is_whole.then_some(text))
        });
        read?.ok_or_else(|| Errno::STALE.into()).context("read", &file)
    }

    /// Returns the roots of all other living runs.
    pub fn read(&self) -> Result<GcRoots> {
        let mut roots = GcRoots::default();
        self.add_to(&mut roots)?;
        Ok(roots)
    }

    /// Adds what other living runs have announced since these roots were read.
    pub fn add_to(&self, roots: &mut GcRoots) -> Result<()> {
        for room in self.storage.root.names(RUNS)? {
            let Ok(run) = room.parse::<RunName>() else { continue };
            let alive = run != *self.storage.run.name()
                && !self.storage.run.is_over(&run)
                && self.storage.run.is_alive(
                    &run,
                    &self.storage.root.disk,
                    &self.storage.root.path(&run.directory()),
                );
            if alive {
                let text = self.announced_by(&run)?;
                roots.add_announced(run, &text);
            }
        }
        Ok(())
    }

    /// Closes the gate until the lease is released. Waits as long as another collection has closed it.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be closed: then nothing may be taken away.
    pub fn close_gate(&self) -> Result<Lease<'a>> {
        loop {
            match self.storage.leases().acquire_file(GATE)? {
                Ok(lease) => return Ok(lease),
                // One that this run could not give back is its own.
                Err(holder) if holder.own => {
                    return Ok(self.storage.leases().lease_at(self.storage.path(GATE)));
                }
                Err(_) => thread::sleep(POLL),
            }
        }
    }

    /// Waits as long as a collection of another process has closed the gate. A run that was asked to stop does not wait.
    pub(super) fn await_gate(&self) -> Result<()> {
        let began = Instant::now();
        while let Some(holder) = self.storage.leases().gate_holder()?.filter(|holder| !holder.own)
            && !self.storage.hasher.stop.load(Ordering::Relaxed)
        {
            if began.elapsed() >= patience() / TELL {
                self.storage.run.tell_of_collection(&self.storage.root.disk, &holder);
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}

impl GcRoots {
    /// Adds what a run has announced, of which some was added before. A line without an end is read again.
    fn add_announced(&mut self, run: RunName, announced: &[u8]) {
        let read = self.read.entry(run).or_default();
        let new = announced.get(*read..).unwrap_or_default();
        *read += new.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let text = String::from_utf8_lossy(new);
        self.names.extend(text.lines().filter(|name| !name.is_empty()).map(str::to_owned));
    }

    /// The number of names.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// Adds results as a whole.
    pub fn add(&mut self, entries: impl IntoIterator<Item = Entry>) {
        self.names.extend(entries.into_iter().map(|entry| entry.short()));
    }

    /// Adds the calls and the inputs of a job, and the values that it names.
    pub fn add_job(&mut self, job: &JobRecord) {
        self.names.extend(job.calls.iter().cloned());
        let values = job.outputs.iter().chain(job.literals.iter().flatten());
        self.names.extend(values.map(|value| split_member(&value.file).0.to_owned()));
        self.add_inputs(job.inputs.iter().map(|it| &it.digest));
    }

    /// Adds the task inputs with these contents.
    pub fn add_inputs<'d>(&mut self, inputs: impl Iterator<Item = &'d Digest>) {
        self.names.extend(inputs.flat_map(|input| DIGITS.map(|digits| task_input(input, digits))));
    }

    /// Whether a result with this number of files, or one of its files, is in use.
    pub fn has(&self, entry: &Entry, files: usize) -> bool {
        self.names.contains(&entry.short())
            || (0..files).map(|number| entry.file(number)).any(|file| self.has_file(&file))
    }

    /// Whether a file, or a directory above it, is in use.
    pub(crate) fn has_file(&self, file: &str) -> bool {
        let ends = file.match_indices('/').map(|(at, _)| at).chain([file.len()]);
        ends.map(|end| &file[..end]).any(|name| self.names.contains(name))
    }
}

impl Leases<'_> {
    /// The living run that has closed the gate. On a network file system, what is known of the lease may be old, or missing: so it
    /// is there if it is listed, and its holder is asked for again before it counts as dead.
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
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;
    use crate::disk::Disk;
    use crate::{Durability, Unrecorded};

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

    #[test]
    fn a_directory_is_in_use_with_all_in_it_and_nothing_beside_it() {
        let names = ["c_add/123", "t_a/1/00/x"].map(str::to_owned).into();
        let roots = GcRoots { names, ..GcRoots::default() };
        for used in ["c_add/123", "c_add/123/00/a_b", "t_a/1/00/x"] {
            assert!(roots.has_file(used), "{used}");
        }
        for free in ["c_add", "c_add/1234/00/a_b", "t_a/1/00/xy", "t_a/1/01/x"] {
            assert!(!roots.has_file(free), "{free}");
        }
    }

    /// Opens a storage whose file system counts as one of a network, or as one of an unknown kind.
    fn late(directory: &Path, put: fn(&mut Disk)) -> Storage {
        let open = Storage::open(directory, Unrecorded::Adopt, Durability::Unsynced);
        let mut storage = open.unwrap();
        put(Arc::get_mut(&mut storage.root.disk).unwrap());
        storage
    }

    /// The file systems that may show late what others have written.
    const LATE: [fn(&mut Disk); 2] = [Disk::put_on_network, Disk::put_on_unknown];

    #[test]
    fn half_a_name_does_not_spoil_the_next_one() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Storage::open(dir.path(), Unrecorded::Adopt, Durability::Unsynced).unwrap();
        let (run, other) = (open(), open());
        run.gc_roots().announce(["c_add/123".to_owned()]).unwrap();
        let file = dir.path().join(run.run.directory()).join("uses");
        // The disk was full.
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text + "c_mu").unwrap();
        run.gc_roots().announce(["t_a/1".to_owned()]).unwrap();
        let roots = other.gc_roots().read().unwrap();
        assert!(roots.has_file("c_add/123") && roots.has_file("t_a/1/00/x"));
    }

    #[test]
    fn over_a_network_what_a_run_has_announced_is_read_as_a_whole_or_not_at_all() {
        LATE.into_iter().for_each(announcements_are_read_as_a_whole);
    }

    fn announcements_are_read_as_a_whole(put: fn(&mut Disk)) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("tinputs")).unwrap();
        let (run, other) = (late(dir.path(), put), late(dir.path(), put));
        let has = |name: &str| other.gc_roots().read().map(|roots| roots.has_file(name));
        run.gc_roots().announce(["c_add/123".to_owned()]).unwrap();
        assert!(has("c_add/123/00/a").unwrap());
        let directory = dir.path().join(run.run.directory());
        let [file, old, new] = ["uses", "old", "new"].map(|name| directory.join(name));
        fs::copy(&file, &old).unwrap();
        run.gc_roots().announce(["t_a/1".to_owned()]).unwrap();
        assert!(has("t_a/1/00/x").unwrap());
        let names = || fs::read_dir(&directory).unwrap().map(|it| it.unwrap().file_name());
        let sizes: Vec<_> = names().filter_map(|it| it.into_string().ok()).collect();
        let sizes: Vec<&String> = sizes.iter().filter(|it| it.starts_with("uses-")).collect();
        assert_eq!(sizes, [&format!("uses-{}", "\nc_add/123\n\nt_a/1\n".len())]);
        // An older version of the file is shown for a while, or for good.
        fs::rename(&file, &new).unwrap();
        fs::copy(&old, &file).unwrap();
        thread::scope(|scope| {
            let read = scope.spawn(|| has("t_a/1/00/x"));
            fs::rename(&new, &file).unwrap();
            assert!(read.join().unwrap().unwrap());
        });
        fs::rename(&old, &file).unwrap();
        assert!(has("c_add/123/00/a").is_err(), "nothing may be taken away");
    }

    #[test]
    fn a_gate_that_cannot_be_closed_is_an_error_and_one_that_was_left_is_closed_again() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("tinputs")).unwrap();
        let storage = Storage::open(dir.path(), Unrecorded::Adopt, Durability::Unsynced).unwrap();
        let gate = storage.gc_roots().close_gate().unwrap();
        let again = storage.gc_roots().close_gate().unwrap();
        drop((gate, again));
        assert!(!dir.path().join(GATE).exists());
        fs::create_dir(dir.path().join(GATE)).unwrap();
        assert!(storage.gc_roots().close_gate().is_err());
    }

    #[test]
    fn over_a_network_a_gate_that_is_listed_is_closed_until_its_holder_is_surely_dead() {
        LATE.into_iter().for_each(a_listed_gate_is_closed);
    }

    fn a_listed_gate_is_closed(put: fn(&mut Disk)) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("tinputs")).unwrap();
        let (run, other) = (late(dir.path(), put), late(dir.path(), put));
        assert!(run.leases().gate_holder().unwrap().is_none(), "there is none");
        let gate = other.gc_roots().close_gate().unwrap();
        let holder = run.leases().gate_holder().unwrap().unwrap();
        assert!(!holder.own);
        // What was there before is seen for a while.
        let [live, path] = ["live", GATE].map(|name| dir.path().join(name));
        fs::rename(&path, &live).unwrap();
        fs::write(&path, "host-0-1-1-1\n").unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| run.leases().gate_holder());
            fs::rename(&live, &path).unwrap();
            assert_eq!(waiting.join().unwrap().unwrap(), Some(holder));
        });
        drop(gate);
        fs::write(&path, "host-0-1-1-1\n").unwrap();
        let began = Instant::now();
        assert!(run.leases().gate_holder().unwrap().is_none(), "its holder is dead");
        assert!(began.elapsed() > Duration::from_secs(1), "it was asked for again");
    }
}
