//! Checking and writing a package: aside first, and renamed when it is complete.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{BadFile, PackageError, PackagedFile, PackagedResult, Packer, README};
use crate::History;
use ce_files::manifest::Scan;
use ce_model::digest::Digest;
use ce_storage::records::Defect;
use ce_storage::{Maintenance, Storage};

/// The right of the owner to write.
const WRITE: u32 = 0o200;

/// How a package has the files of the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageKind {
    /// As copies, which the user may change. They share their room where the file system can do that.
    Copies,
    /// As symbolic links.
    Links,
}

/// The files of a package, which are as recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Package {
    /// The results.
    pub results: Vec<PackagedResult>,
    /// Their files.
    pub files: Vec<PackagedFile>,
}

impl Package {
    /// Reads all files of a package to their ends, and compares them with their records.
    ///
    /// # Errors
    ///
    /// Fails if one of them is away or damaged, or `stop` was set.
    pub fn check(
        packer: Packer<'_>,
        storage: &Storage,
        history: &History,
        stop: &AtomicBool,
    ) -> Result<Self, PackageError> {
        let (results, files, mut bad) = packer.found();
        let mut seen = HashSet::new();
        for file in files.iter().filter(|file| seen.insert(&file.holder)) {
            let Some(subject) = history.subject(&file.holder) else { continue };
            let defect = Maintenance::new(storage).check_unless(stop, subject.promise);
            if let Some(defect) = defect.map_err(|_| PackageError::Stopped)? {
                bad.push(BadFile::new(file.holder.clone(), defect.to_string()));
            }
        }
        match bad.is_empty() {
            true => Ok(Self { results, files }),
            false => Err(PackageError::Bad(bad)),
        }
    }

    /// Makes the package at a path where nothing is, or an empty directory.
    ///
    /// # Errors
    ///
    /// Fails if something else is there, a file cannot be written, or `stop` was set. Then nothing was made.
    pub fn write(
        &self,
        storage: &Storage,
        (dir, kind): (&Path, PackageKind),
        readme: &str,
        stop: &AtomicBool,
    ) -> Result<(), PackageError> {
        let aside = Aside::new(dir)?;
        let top = storage.path("").canonicalize().map_err(write_error(dir))?;
        for file in &self.files {
            if stop.load(Ordering::Relaxed) {
                return Err(PackageError::Stopped);
            }
            let to = aside.path.join(&file.path);
            let from = top.join(&file.file);
            let make = || {
                fs::create_dir_all(to.parent().unwrap_or(&to))?;
                match kind {
                    PackageKind::Links => symlink(&from, &to),
                    PackageKind::Copies => copy(&from, &to),
                }
            };
            let made = make();
            let part = match (&made, kind) {
                (Ok(()), PackageKind::Copies) => Some(&to),
                (Ok(()), PackageKind::Links) => None,
                (Err(_), _) => Some(&from),
            };
            let is_whole = part.is_none_or(|part| is_whole(part, &file.contents, stop));
            if stop.load(Ordering::Relaxed) {
                return Err(PackageError::Stopped);
            }
            // A collection may have removed it since it was checked, or be doing that.
            if !is_whole || !from.exists() {
                let gone = BadFile::new(file.holder.clone(), Defect::Missing.to_string());
                return Err(PackageError::Bad(vec![gone]));
            }
            made.map_err(write_error(&dir.join(&file.path)))?;
        }
        let page = dir.join(README);
        fs::write(aside.path.join(README), readme).map_err(write_error(&page))?;
        aside.publish(dir)
    }
}

/// Whether a package can be made at a path.
///
/// # Errors
///
/// Fails if something other than an empty directory is there, or it is in the storage.
pub fn vacant(storage: &Storage, dir: &Path) -> Result<(), PackageError> {
    let shown = || dir.display().to_string();
    if dir.file_name().is_none() || dir == Path::new("-") {
        return Err(PackageError::NoName(shown()));
    }
    let is_vacant = match dir.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(write_error(dir)(error)),
        Ok(metadata) => {
            metadata.is_dir() && fs::read_dir(dir).is_ok_and(|mut it| it.next().is_none())
        }
    };
    if !is_vacant {
        return Err(PackageError::Occupied(shown()));
    }
    let parent = parent(dir).canonicalize().map_err(write_error(dir))?;
    let top = storage.path("").canonicalize();
    match top.is_ok_and(|top| parent.starts_with(top)) {
        true => Err(PackageError::Inside(shown())),
        false => Ok(()),
    }
}

/// A directory beside the package, removed unless it becomes the package.
struct Aside {
    path: PathBuf,
}

impl Aside {
    fn new(dir: &Path) -> Result<Self, PackageError> {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        // Long names of packages leave no room for more.
        let name: String = name.chars().take(40).collect();
        let mut number = 0_u32;
        loop {
            let path = parent(dir).join(format!(".{name}.{}-{number}.part", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(write_error(dir)(error)),
            }
        }
    }

    fn publish(self, dir: &Path) -> Result<(), PackageError> {
        // An empty directory is replaced, and nothing else.
        fs::rename(&self.path, dir).map_err(write_error(dir))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.path));
    }
}

/// Whether all of a directory is there: one that is removed meanwhile lacks parts, and so does its copy. A file is copied as it was when
/// it was opened.
fn is_whole(path: &Path, contents: &Digest, stop: &AtomicBool) -> bool {
    let read = || Scan::at(path, stop)?.read(stop, &AtomicU64::new(0));
    !contents.is_directory() || read().is_ok_and(|manifest| manifest.digest() == *contents)
}

fn parent(dir: &Path) -> &Path {
    match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => dir,
    }
}

fn write_error(path: &Path) -> impl FnOnce(io::Error) -> PackageError {
    move |source| PackageError::Write { path: path.display().to_string(), source }
}

/// Copies a file or directory, which was checked. The copies may be written.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !fs::metadata(from)?.is_dir() {
        fs::copy(from, to)?;
        let mode = fs::metadata(to)?.permissions().mode();
        return fs::set_permissions(to, fs::Permissions::from_mode(mode | WRITE));
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        // Links of a value stay within it.
        match entry.file_type()?.is_symlink() {
            true => symlink(fs::read_link(entry.path())?, to)?,
            false => copy(&entry.path(), &to)?,
        }
    }
    Ok(())
}
