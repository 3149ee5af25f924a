//! The storages that a repository has used: the repository remembers them, so a storage that has vanished is not made
//! again silently.
//!
//! The memory is a file in Git's directory, which all work trees share: a line for each path and id of a storage. A storage at a path that is
//! not remembered is a new one. At a path that is, it must have one of the remembered ids. Where nothing can be written, nothing is
//! remembered.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Error;
use ce_files::manifest::shown;
use ce_files::umask;
use ce_git::common_directory;
use ce_model::exit::Explain;
use ce_model::humanize::quoted_path;
use ce_model::system_hints;
use ce_storage::{NoStorage, Storage, StorageError, StorageId, StorageIdentity, Unrecorded};

/// The file, in Git's common directory.
const FILE: &str = "compeval/storages";

/// Its first line.
const HEAD: &str = "compeval storages 1";

/// The reason why a configured storage is not used.
#[derive(Debug, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum KnownStorageError {
    /// The storage that the repository has used is missing.
    #[error("the storage {} is gone: it is not mounted, or was moved or removed, since this repository has used it", .0.display())]
    #[hint(Some(putting_back(_0)))]
    Gone(PathBuf),
    /// There is another one.
    #[error("{} is not the storage that this repository has used there: that is not mounted, or was replaced", .0.display())]
    #[hint(Some(putting_back(_0)))]
    Replaced(PathBuf),
    /// The memory cannot be read.
    #[error("cannot read {}", path.display())]
    #[hint(system_hints::for_reading(path, source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The memory has a format that this version does not know.
    #[error("{} does not begin with the line {HEAD:?}", .0.display())]
    #[hint(
        "use the newer version of CompEval that wrote it; if it is damaged, remove it: it is made anew"
    )]
    Format(PathBuf),
}

/// Describes in words how to have the storage at a path again, or a new one.
fn putting_back(path: &Path) -> String {
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty() && !it.exists());
    let make = parent.map(|it| format!("mkdir -p {}, and ", quoted_path(it)));
    format!(
        "mount its file system, or put the storage back: it has all results; to compute them again in a new one, {}give --new-storage to ce run or ce pull",
        make.unwrap_or_default()
    )
}

/// The record of a repository about the storages that it has used.
#[derive(Debug)]
pub struct KnownStorages {
    file: PathBuf,
    /// The lines, without the first one.
    lines: Vec<String>,
}

impl KnownStorages {
    /// Reads the memory of the repository that a directory is in, or is; `None` outside a repository.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub fn read(dir: &Path) -> Result<Option<Self>, Error> {
        // Callers that need the repository report its errors.
        let Ok(Some(git)) = common_directory(dir) else { return Ok(None) };
        Ok(Some(Self::parse(git.join(FILE))?))
    }

    fn parse(file: PathBuf) -> Result<Self, KnownStorageError> {
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if is_absent(&error) => String::new(),
            Err(source) => return Err(KnownStorageError::Read { path: file, source }),
        };
        let mut lines = text.lines().map(str::to_owned);
        match lines.next() {
            Some(head) if head != HEAD => Err(KnownStorageError::Format(file)),
            _ => Ok(Self { file, lines: lines.collect() }),
        }
    }

    /// Checks that the storage at a path exists, if the repository remembers one there, and that it is the same storage.
    ///
    /// # Errors
    ///
    /// Fails if it is gone, or is another one, or cannot be read.
    pub fn check(&self, storage: &Path) -> Result<(), Error> {
        if self.ids(storage).is_empty() {
            return Ok(());
        }
        match Storage::inspect(storage, Unrecorded::Refuse) {
            Ok(found) if found.availability().was_there() => self.check_open(&found),
            Ok(_) => Err(KnownStorageError::Gone(storage.to_owned()).into()),
            // Who opens it waits until its server answers, and checks it then.
            Err(error) if error.may_be_away() => Ok(()),
            Err(StorageError::NoStorage { path, source }) => Err(match *source {
                NoStorage::Other { .. } => KnownStorageError::Replaced(path),
                NoStorage::Absent { .. } | NoStorage::NoParent(_) | NoStorage::Dangling { .. } => {
                    KnownStorageError::Gone(path)
                }
            }
            .into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Checks that an opened storage is the one that the repository remembers at its path, if any.
    ///
    /// # Errors
    ///
    /// Fails if it is another one, or cannot be read.
    pub fn check_open(&self, storage: &Storage) -> Result<(), Error> {
        let path = storage.shown_place();
        let known = self.ids(path);
        if known.is_empty() {
            return Ok(());
        }
        let found = StorageIdentity::new(storage).read()?;
        if found.is_some_and(|id| known.contains(&id)) {
            return Ok(());
        }
        Err(KnownStorageError::Replaced(path.to_owned()).into())
    }

    /// The ids of the storages that are remembered at a path.
    fn ids(&self, storage: &Path) -> Vec<StorageId> {
        let places = places(storage);
        let entries = self.lines.iter().filter_map(|line| line.split_once(' '));
        let here = entries.filter(|(_, path)| places.iter().any(|place| place == path));
        here.filter_map(|(id, _)| StorageId::parse(id)).collect()
    }

    /// Remembers a storage that may be written. For a user who may not write in Git's directory, nothing is remembered; if that fails
    /// otherwise, the user is warned: the results count more.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read or written.
    pub fn remember(&mut self, storage: &Storage, warn: impl FnOnce(&str)) -> Result<(), Error> {
        let Some(id) = StorageIdentity::new(storage).ensure()? else { return Ok(()) };
        let lines = places(storage.shown_place()).into_iter().map(|place| format!("{id} {place}"));
        let new: Vec<String> = lines.filter(|line| !self.lines.contains(line)).collect();
        if new.is_empty() {
            return Ok(());
        }
        self.lines.extend(new);
        // With a lost id it would count as another storage.
        storage.flush()?;
        if let Err(error) = self.write()
            && !is_denied(&error)
        {
            let file = self.file.display();
            warn(&format!(
                "warning: cannot write {file}, so it will not be noticed if the storage vanishes: {error}\n  try: make room there, or remove what is in its place"
            ));
        }
        Ok(())
    }

    /// Replaces the file as a whole: of several runs at once, the last one counts, and the others remember their storages the next time.
    fn write(&self) -> io::Result<()> {
        self.file.parent().map_or(Ok(()), umask::create_dir_all)?;
        // Hosts may share the directory, so the number of the process is not enough.
        let number = RandomState::new().build_hasher().finish();
        let aside = self.file.with_extension(format!("{number:016x}.new"));
        let written = umask::new_file().write(true).create_new(true).open(&aside);
        let written = written.and_then(|file| self.write_to(file));
        let renamed = written.and_then(|()| fs::rename(&aside, &self.file));
        renamed.inspect_err(|_| drop(fs::remove_file(&aside)))
    }

    fn write_to(&self, mut file: File) -> io::Result<()> {
        let lines = [HEAD].into_iter().chain(self.lines.iter().map(String::as_str));
        file.write_all(lines.map(|line| format!("{line}\n")).collect::<String>().as_bytes())?;
        file.sync_all()
    }
}

/// Whether nothing is there.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Whether the user may not write there.
fn is_denied(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

/// The places that the path of a storage stands for, as they are written: its real path, and its own, which may be a link that is not
/// there while its file system is not mounted.
fn places(path: &Path) -> Vec<String> {
    let Ok(path) = std::path::absolute(path) else { return Vec::new() };
    let named = path.parent().zip(path.file_name()).map(|(above, name)| real(above).join(name));
    let mut places: Vec<String> = [Some(real(&path)), named]
        .into_iter()
        .flatten()
        .map(|place| shown(place.as_os_str().as_bytes()))
        .collect();
    places.dedup();
    places
}

/// The path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let mut above = path.ancestors();
    let real = above.find_map(|it| Some((it.canonicalize().ok()?, path.strip_prefix(it).ok()?)));
    real.map_or_else(|| path.to_owned(), |(real, rest)| real.join(rest).components().collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use ce_storage::Durability;

    use super::super::jobs_and_points::record_use;
    use super::*;

    #[test]
    fn a_place_is_known_by_all_of_its_paths_also_while_it_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("disk/first line\n")).unwrap();
        symlink("disk", top.join("link")).unwrap();
        symlink("first line\n", top.join("disk/current")).unwrap();
        let text = |name: &str| format!("{}/{name}", top.display());
        let both = [text("disk/first\\x20line\\x0a"), text("disk/current")];
        assert_eq!(places(&top.join("link/current/")), both);
        assert_eq!(places(&top.join("disk/../link/first line\n")), both[..1]);
        fs::remove_file(top.join("disk/current")).unwrap();
        assert_eq!(places(&top.join("link/current")), both[1..]);
        assert_eq!(places(&top.join("link/a/b")), [text("disk/a/b")]);
    }

    #[test]
    fn a_storage_that_answers_late_must_be_the_one_that_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let [task, place] = ["task", "disk"].map(|name| dir.path().join(name));
        let git = Command::new("git").args(["init", "-q"]).arg(&task).status();
        assert!(git.unwrap().success());
        let open = || Storage::open(&place, Unrecorded::Adopt, Durability::Unsynced).unwrap();
        let use_it = |accepts_new| record_use(&open(), &task, accepts_new, |_| {});
        use_it(false).unwrap();
        use_it(false).unwrap();
        fs::rename(&place, dir.path().join("away")).unwrap();
        let error = use_it(false).unwrap_err();
        assert!(error.to_string().contains("is not the storage that"), "{error}");
        assert!(!place.join("repositories").exists(), "nothing is recorded in it");
        use_it(true).unwrap();
        use_it(false).unwrap();
    }

    #[test]
    fn a_list_of_storages_of_another_format_is_neither_read_nor_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("storages");
        fs::write(&file, "compeval storages 2\n").unwrap();
        assert!(matches!(KnownStorages::parse(file.clone()), Err(KnownStorageError::Format(_))));
        let known = KnownStorages { file: file.clone(), lines: vec!["0 /a".to_owned()] };
        known.write().unwrap();
        assert_eq!(KnownStorages::parse(file).unwrap().lines, known.lines);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}
