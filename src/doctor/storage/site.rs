//! Where probes work: the private directory of a run, as every run has one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::refused;
use crate::doctor::Diagnosis;
use crate::storage::disk::{self, Disk, Doing, is_absent};
use crate::storage::disk::{Result, StorageError};
use crate::storage::layout::RUNS;
use crate::storage::store::run::OwnRun;

/// A private directory; it and all that had to be made for it go with this.
#[derive(Debug)]
pub(super) struct ProbeSite {
    /// The storage, as the user named it.
    pub(super) storage: PathBuf,
    /// The name of the private directory, relative to the storage.
    run: String,
    /// The private directory, or why it cannot be used.
    dir: Result<PathBuf, StorageError>,
    /// The directories that were not there before, the outermost first.
    made: Vec<PathBuf>,
    next: AtomicU64,
    disk: Disk,
}

impl ProbeSite {
    /// Makes the directory, and the storage if it is not there.
    pub(super) fn new(storage: &Path) -> Self {
        let run = OwnRun::new().directory().to_owned();
        // Without what means nothing: paths below it are told by their beginning.
        let storage = &storage.components().collect::<PathBuf>();
        let dir = storage.join(&run);
        let made = absent(&dir);
        let (made, dir) = match made {
            Ok(made) => (made, make(storage, &dir).map(|()| dir)),
            Err(error) => (Vec::new(), Err(error)),
        };
        let opened = match &dir {
            Ok(_) => Disk::open(storage),
            Err(_) => Ok(Disk::absent(storage.to_owned())),
        };
        let (disk, dir) = match opened {
            Ok(disk) => (disk, dir),
            Err(error) => (Disk::absent(storage.to_owned()), Err(error)),
        };
        let (storage, next) = (storage.to_owned(), AtomicU64::new(0));
        let mut site = Self { storage, run, dir, made, next, disk };
        if site.is_writable()
            && let Err(error) = site.file()
        {
            drop(site.clear());
            site.dir = Err(error);
        }
        site
    }

    pub(super) const fn is_writable(&self) -> bool {
        self.dir.is_ok()
    }

    /// Whether there was no storage before.
    pub(super) fn is_new(&self) -> bool {
        self.made.contains(&self.storage)
    }

    /// The directory nearest to the storage that is there: its own if it can be written.
    pub(super) fn nearest(&self) -> &Path {
        let is_dir = |dir: &&Path| dir.is_dir();
        let own = self.dir.as_deref().ok();
        let nearest = || self.storage.ancestors().find(is_dir);
        own.or_else(nearest).unwrap_or_else(|| Path::new("."))
    }

    /// The private directory, for probes that are asked only if it is there.
    pub(super) fn dir(&self) -> &Path {
        self.dir.as_deref().unwrap_or(&self.storage)
    }

    /// What reaches the storage's files.
    pub(super) const fn disk(&self) -> &Disk {
        &self.disk
    }

    /// A path that nothing has ever had.
    pub(super) fn fresh(&self) -> PathBuf {
        self.dir().join(self.next.fetch_add(1, Ordering::Relaxed).to_string())
    }

    /// A new small file, of other contents than all others.
    pub(super) fn file(&self) -> Result<PathBuf> {
        let path = self.fresh();
        self.disk.write(&path, path.as_os_str().as_encoded_bytes()).map(|()| path)
    }

    /// A new empty directory.
    pub(super) fn room(&self) -> Result<PathBuf> {
        let path = self.fresh();
        self.disk.make_dir(&path).map(|()| path)
    }

    /// Removes what a probe has made: on a small disk the next one needs the room.
    pub(super) fn tidy(&self) {
        if let Ok(dir) = &self.dir {
            let paths = self.disk.list(dir).unwrap_or_default();
            paths.iter().for_each(|path| drop(self.disk.remove_tree(path)));
        }
    }

    /// A text in which the private directory is called as in the documentation.
    pub(super) fn shown(&self, text: &str) -> String {
        text.replace(&self.run, &format!("{RUNS}/RUN"))
    }

    /// Removes the private directory, and what was made for it and nobody else uses.
    fn clear(&self) -> Result<()> {
        let removed = self.dir.as_deref().map_or(Ok(()), |dir| self.disk.remove_tree(dir));
        // Another run may have begun to use them.
        self.made.iter().rev().for_each(|dir| drop(fs::remove_dir(dir)));
        removed
    }
}

/// Makes the private directory, as a run would: in a storage that is there, with the rights of that.
fn make(storage: &Path, dir: &Path) -> Result<()> {
    if storage.is_dir() { Disk::open(storage)?.make_dirs(dir) } else { disk::make_dirs(dir) }
}

/// The directories above one that are not there, the outermost first.
fn absent(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut absent = Vec::new();
    for above in dir.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
        match fs::symlink_metadata(above) {
            Ok(_) => break,
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(error).doing("look at", above),
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

/// Whether a run can begin to work.
pub(super) fn writing(site: &ProbeSite) -> Diagnosis {
    told(site.dir.as_ref().map(|_| site.is_new()))
}

fn told(made: Result<bool, &StorageError>) -> Diagnosis {
    let probe = "writing";
    match made {
        Ok(true) => Diagnosis::ok(probe, "the storage is not there yet, and can be made"),
        Ok(false) => Diagnosis::ok(probe, "directories and files can be made"),
        Err(error) => {
            let hint = error.hint().unwrap_or("name a directory that can be made and written");
            let means = "nothing can be computed into this storage; -n shows what is there";
            refused(probe, error, means, hint)
        }
    }
}

/// Whether what a run has left can be cleared away.
pub(super) fn removing(site: &ProbeSite) -> Diagnosis {
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

    use super::super::tests::{error, said};
    use super::*;
    use crate::doctor::Grade;

    #[test]
    fn a_storage_that_cannot_be_written_says_what_still_works() {
        let told = told(Err(&error(ErrorKind::ReadOnlyFilesystem)));
        let (grade, text) = said(&told);
        assert_eq!(grade, Some(Grade::Broken));
        assert!(text.contains("-n shows what is there"), "{text}");
        let hint = told.trouble.unwrap().hint.unwrap();
        assert_eq!(hint, "mount it for writing; ce-run -n writes nothing");
    }

    #[test]
    fn what_others_have_put_there_stays() {
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
    fn a_file_is_no_storage() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for path in [file.path(), &file.path().join("storage")] {
            let site = ProbeSite::new(path);
            assert!(!site.is_writable());
            assert_eq!(writing(&site).grade(), Some(Grade::Broken));
            assert_eq!(Some(site.nearest()), file.path().parent());
        }
    }
}
