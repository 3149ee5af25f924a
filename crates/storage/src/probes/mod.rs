//! Probes of the abilities of the file system and of the host that the storage needs.
//!
//! Each file has one topic: a measurement, by operations of `disk` where possible, and a pure function that interprets
//! the result. So broken file systems can be tested without having any. Probes work in the private directory of a run,
//! and leave no files.

mod file_system;
mod permissions;
mod timing;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::disk;
use super::disk::{Disk, IoContext, Result, StorageError, is_absent};
use super::paths::RUNS;
use super::protocol::heartbeat::CurrentRun;
use ce_model::exit::Explain;
use ce_model::probe_diagnosis::Diagnosis;

/// The hint if a file system lacks an ability.
const ELSEWHERE: &str = "put the storage on another file system: a local one of Linux, or NFS";

type Probe = fn(&ProbeSite) -> Diagnosis;

/// Probes of any directory.
const ANYWHERE: [Probe; 5] =
    [writing, file_system::kind, file_system::space, timing::processes, permissions::sharing];

/// Probes of a writable directory. The last one removes the files of all.
const WRITABLE: [Probe; 15] = [
    file_system::mounts,
    file_system::exclusive_files,
    file_system::hard_links,
    file_system::replacing,
    file_system::moving,
    timing::flushing,
    file_system::long_names,
    file_system::case,
    file_system::characters,
    timing::time_stamps,
    timing::clock,
    permissions::read_only,
    permissions::programs,
    permissions::copying,
    removing,
];

/// Probes of a storage, performed one at a time.
///
/// They work in a private directory in `tmp/`. A missing storage is created as a run would create
/// it, and removed again.
#[derive(Debug)]
pub struct Probes {
    site: ProbeSite,
    next: usize,
}

impl Probes {
    /// Prepares to probe the file system under a storage.
    pub fn new(storage: &Path) -> Self {
        Self { site: ProbeSite::new(storage), next: 0 }
    }
}

impl Iterator for Probes {
    type Item = Diagnosis;

    fn next(&mut self) -> Option<Diagnosis> {
        let rest = if self.site.is_writable() { &WRITABLE[..] } else { &[] };
        let probe = ANYWHERE.iter().chain(rest).nth(self.next)?;
        self.next += 1;
        let mut diagnosis = probe(&self.site);
        self.site.tidy();
        diagnosis.found = self.site.shown(&diagnosis.found);
        Some(diagnosis)
    }
}

/// The diagnosis for an error: its consequences and a hint, unless the disk is full.
fn refused(probe: &'static str, error: &StorageError, means: &str, hint: &str) -> Diagnosis {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let found = Diagnosis::ok(probe, format!("{error}{cause}"));
    if error.is_full() {
        let means = "there is not even room for a probe, so nothing can be told of this";
        return found.broken(means).hint("make room, then probe again");
    }
    found.broken(means).hint(hint)
}

/// A private directory. It is removed at the end, with all directories that were created for it.
#[derive(Debug)]
struct ProbeSite {
    /// The storage, as the user named it.
    storage: PathBuf,
    /// The name of the private directory, relative to the storage.
    run: String,
    /// The private directory, or the reason why it cannot be used.
    dir: Result<PathBuf, StorageError>,
    /// The directories that were created, the outermost first.
    made: Vec<PathBuf>,
    next: AtomicU64,
    disk: Disk,
}

impl ProbeSite {
    /// Creates the directory, and the storage if it does not exist.
    fn new(storage: &Path) -> Self {
        let run = CurrentRun::new().directory().to_owned();
        // In its shortest form: paths below it are recognised by this prefix.
        let storage = &storage.components().collect::<PathBuf>();
        let dir = storage.join(&run);
        let mut site = Self {
            storage: storage.to_owned(),
            run,
            dir: Ok(dir.clone()),
            made: Vec::new(),
            next: AtomicU64::new(0),
            disk: Disk::absent(storage.to_owned()),
        };
        let prepared = absent(&dir).and_then(|absent| {
            site.made = absent;
            make(storage, &dir)?;
            site.disk = Disk::open(storage)?;
            Ok(())
        });
        if let Err(error) = prepared {
            site.dir = Err(error);
        }
        if site.is_writable()
            && let Err(error) = site.file()
        {
            drop(site.clear());
            site.dir = Err(error);
        }
        site
    }

    const fn is_writable(&self) -> bool {
        self.dir.is_ok()
    }

    /// Whether there was no storage before.
    fn is_new(&self) -> bool {
        self.made.contains(&self.storage)
    }

    /// The private directory, or else the nearest existing directory to the storage.
    fn nearest(&self) -> &Path {
        self.dir
            .as_deref()
            .ok()
            .or_else(|| self.storage.ancestors().find(|dir| dir.is_dir()))
            .unwrap_or_else(|| Path::new("."))
    }

    /// The private directory. Must exist.
    fn dir(&self) -> &Path {
        self.dir.as_deref().unwrap_or(&self.storage)
    }

    /// The disk of the storage.
    const fn disk(&self) -> &Disk {
        &self.disk
    }

    /// A new path, which was never used.
    fn fresh(&self) -> PathBuf {
        self.dir().join(self.next.fetch_add(1, Ordering::Relaxed).to_string())
    }

    /// A new small file with unique contents.
    fn file(&self) -> Result<PathBuf> {
        let path = self.fresh();
        self.disk.write(&path, path.as_os_str().as_encoded_bytes()).map(|()| path)
    }

    /// A new empty directory.
    fn room(&self) -> Result<PathBuf> {
        let path = self.fresh();
        self.disk.make_dir(&path).map(|()| path)
    }

    /// Removes the files of a probe: on a small disk the next one needs the space.
    fn tidy(&self) {
        if let Ok(dir) = &self.dir {
            let paths = self.disk.list(dir).unwrap_or_default();
            paths.iter().for_each(|path| drop(self.disk.remove_tree(path)));
        }
    }

    /// Replaces the name of the private directory in a text by `tmp/RUN`.
    fn shown(&self, text: &str) -> String {
        text.replace(&self.run, &format!("{RUNS}/RUN"))
    }

    /// Removes the private directory, and the empty directories that were created for it.
    fn clear(&self) -> Result<()> {
        let removed = self.dir.as_deref().map_or(Ok(()), |dir| self.disk.remove_tree(dir));
        // Another run may use them now.
        self.made.iter().rev().for_each(|dir| drop(fs::remove_dir(dir)));
        removed
    }
}

/// Creates the private directory as a run would: in an existing storage, with the rights of that.
fn make(storage: &Path, dir: &Path) -> Result<()> {
    if storage.is_dir() { Disk::open(storage)?.make_dirs(dir) } else { disk::make_dirs(dir) }
}

/// Returns the missing directories above one, the outermost first.
fn absent(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut absent = Vec::new();
    for above in dir.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
        match fs::symlink_metadata(above) {
            Ok(_) => break,
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(error).context("look at", above),
        }
        absent.insert(0, above.to_owned());
    }
    Ok(absent)
}

impl Drop for ProbeSite {
    fn drop(&mut self) {
        drop(self.clear());
    }
}

/// Probes whether a run can work in the storage.
fn writing(site: &ProbeSite) -> Diagnosis {
    diagnose(site.dir.as_ref().map(|_| site.is_new()), site.storage.is_dir())
}

fn diagnose(made: Result<bool, &StorageError>, is_there: bool) -> Diagnosis {
    let probe = "writing";
    match made {
        Ok(true) => Diagnosis::ok(probe, "the storage is not there yet, and can be made"),
        Ok(false) => Diagnosis::ok(probe, "directories and files can be made"),
        Err(error) => {
            // Advice on the contents of a storage does not help if there is no storage.
            let hint = error.hint().filter(|_| is_there || !error.is_behind_a_file());
            let hint =
                hint.unwrap_or_else(|| "name a directory that can be made and written".to_owned());
            let means = "nothing can be computed into this storage; -n shows what is there";
            refused(probe, error, means, &hint)
        }
    }
}

/// Probes whether the files of a run can be removed.
fn removing(site: &ProbeSite) -> Diagnosis {
    let probe = "removing";
    drop(site.room().and_then(|room| site.disk.make_dir(&room.join("below"))));
    match site.clear() {
        Ok(()) => Diagnosis::ok(probe, "the files of the probes are removed"),
        Err(error) => {
            let means = "leftovers of runs stay, and take room";
            refused(probe, &error, means, "remove it by hand")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;
    use ce_model::probe_diagnosis::Grade;

    /// An error as the operating system gives it.
    pub(super) fn error(kind: ErrorKind) -> StorageError {
        StorageError::Io { doing: "link to", path: "a".into(), source: kind.into() }
    }

    /// The severity, and the words of a diagnosis.
    pub(super) fn summary(diagnosis: &Diagnosis) -> (Option<Grade>, String) {
        let trouble = diagnosis.trouble.as_ref();
        let means = trouble.map_or("", |trouble| &trouble.means);
        (diagnosis.grade(), format!("{}; {means}", diagnosis.found))
    }

    #[test]
    fn a_full_disk_is_not_reported_as_an_unsupported_operation() {
        let (grade, text) = summary(&refused("a", &error(ErrorKind::Unsupported), "no links", "b"));
        assert_eq!(grade, Some(Grade::Broken));
        assert_eq!(text, "cannot link to a: unsupported; no links");
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
            let (grade, text) = summary(&refused("a", &error(kind), "no links", "b"));
            assert_eq!(grade, Some(Grade::Broken));
            assert!(text.contains("; there is not even room for a probe"), "{text}");
        }
    }

    #[test]
    fn probing_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let storage = dir.path().join("a/b/storage");
        let probes = Probes::new(&storage).collect::<Vec<_>>();
        assert_eq!(probes.len(), ANYWHERE.len() + WRITABLE.len());
        assert!(!dir.path().join("a").exists());
        let mut names: Vec<&str> = probes.iter().map(|probe| probe.probe).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), probes.len(), "each has a name of its own");
    }

    #[test]
    fn a_storage_that_cannot_be_written_says_what_still_works() {
        let told = diagnose(Err(&error(ErrorKind::ReadOnlyFilesystem)), true);
        let (grade, text) = summary(&told);
        assert_eq!(grade, Some(Grade::Broken));
        assert!(text.contains("-n shows what is there"), "{text}");
        let hint = told.trouble.unwrap().hint.unwrap();
        assert_eq!(hint, "mount it for writing, or use a storage of your own");
    }

    #[test]
    fn files_of_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let storage = dir.path().join("storage");
        let site = ProbeSite::new(&storage);
        assert_eq!(writing(&site).found, "the storage is not there yet, and can be made");
        fs::write(storage.join("tmp/mine"), "").unwrap();
        drop(site);
        let disk = Disk::open(dir.path()).unwrap();
        let left = disk.walk(dir.path()).unwrap();
        assert_eq!(left, ["storage/tmp/mine"]);
        assert_eq!(writing(&ProbeSite::new(&storage)).found, "directories and files can be made");
    }

    #[test]
    fn a_file_cannot_be_a_storage() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for path in [file.path(), &file.path().join("storage")] {
            let site = ProbeSite::new(path);
            assert!(!site.is_writable());
            assert_eq!(writing(&site).grade(), Some(Grade::Broken));
            assert_eq!(Some(site.nearest()), file.path().parent());
        }
    }
}
