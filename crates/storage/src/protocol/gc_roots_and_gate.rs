//! Garbage collection roots: names that runs use, announced before they are looked up, so that they are not collected meanwhile; and the
//! gate that a collection closes.
//!
//! A run appends the names that it uses to a file in its private directory, waits as long as the gate is closed, and
//! then looks them up. A collection removes records, closes the gate, reads the roots, and only then takes files away.
//! So one of the two notices the other before anything is taken away. The gate is a lease, so it is open once the
//! collection has died.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::Storage;
use super::lease::Lease;
use crate::disk::{IoContext, Result, lock, patience};
use crate::paths::{
    DIGITS, Entry, GATE, RUNS, RunName, roots_file, roots_size, size_of_roots, split_member,
    task_input,
};
use crate::records::JobRecord;
use ce_model::digest::Digest;

/// The interval at which a closed gate is looked at. A collection only reads names and moves files while it is closed.
const POLL: Duration = Duration::from_millis(5);

/// The part of a run's patience after which the run reports that it waits.
const TELL: u32 = 30;

/// Names that are in use: files, results, and directories with everything in them.
#[derive(Debug, Default)]
pub struct GcRoots {
    names: HashSet<String>,
    /// The number of bytes of the announcements of each run that were read.
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

    /// Announces that this run is going to look for results with these names, or below them. The files that it finds then
    /// stay.
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
            // Files that are listed from now on stay, so older listings are dropped.
            names
                .iter()
                .for_each(|name| self.storage.root.disk.forget_listed(&self.storage.path(name)));
        }
        Ok(())
    }

    /// Adds to the announcements of this run. On a network file system, their total size is in the name of a file:
    /// others may see an older version of a file, but list all names.
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

    /// Returns the announcements of a run.
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
                // A lease that this run could not give back is its own.
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
    /// Adds the names in a run's announcements that were not added before. An incomplete last line is read again.
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::disk::Disk;
    use crate::{Durability, Unrecorded};

    #[test]
    fn a_root_protects_a_directory_and_its_contents_only() {
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
    fn a_truncated_name_does_not_spoil_the_next_one() {
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
    fn over_a_network_an_announcement_is_read_as_a_whole_or_not_at_all() {
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
        let names = fs::read_dir(&directory).unwrap().map(|it| it.unwrap().file_name());
        let sizes: Vec<_> = names.filter_map(|it| it.into_string().ok()).collect();
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
        // For a while, another file is seen in place of the live one, as an old state would be.
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
        assert!(began.elapsed() > patience() / 60, "it was asked for again");
    }
}
