//! A task as it is checked out.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::Uncommitted;
use super::problem::Fault;
use super::source::{Found, Identity, MOST, Source, Version};
use crate::digest::ObjectId;
use crate::git::{self, Changes, Head, HeadError, Heads};

/// A task that is checked out.
#[derive(Debug)]
pub(super) struct WorkTree {
    task: PathBuf,
    repository: PathBuf,
    heads: Heads,
    uncommitted: Uncommitted,
    /// What is not committed and matters, relative to the task.
    changed: Vec<PathBuf>,
    /// What an `exec` could read that no commit records, relative to the task.
    ignored: Vec<PathBuf>,
}

impl WorkTree {
    /// The task in a directory, given by its real path.
    pub(super) fn new(task: &Path, uncommitted: Uncommitted) -> Self {
        Self {
            task: task.to_owned(),
            repository: git::top(task).unwrap_or_else(|| task.to_owned()),
            heads: Heads::default(),
            uncommitted,
            changed: Vec::new(),
            ignored: Vec::new(),
        }
    }
}

impl Source for WorkTree {
    fn commit(&mut self) -> Result<ObjectId, Fault> {
        // A task that is not recorded at all has no place in the commit.
        match self.uncommitted {
            Uncommitted::Evaluate => Ok(self.heads.commit(&self.task)?),
            _ => Ok(self.heads.of(&self.task)?.commit),
        }
    }

    fn find(&mut self, path: &Path) -> Result<Found, Fault> {
        let full = self.task.join(path);
        let mut metadata = fs::symlink_metadata(&full).map_err(Fault::read)?;
        let (mut place, mut outside) = (path.to_owned(), false);
        if metadata.is_symlink() {
            let real = full.canonicalize().map_err(Fault::read)?;
            metadata = fs::metadata(&real).map_err(Fault::read)?;
            outside = !real.starts_with(&self.repository);
            place = real.strip_prefix(&self.task).unwrap_or(&real).to_owned();
        }
        if metadata.is_dir() {
            let identity = Identity::Inode(metadata.dev(), metadata.ino());
            return Ok(Found::Directory { place, identity, outside });
        }
        let executable = metadata.permissions().mode() & 0o111 != 0;
        Ok(Found::File { plain: metadata.is_file(), executable })
    }

    fn list(&mut self, dir: &Path) -> Result<Vec<OsString>, Fault> {
        let entries = fs::read_dir(self.task.join(dir)).map_err(Fault::read)?;
        entries.map(|entry| Ok(entry.map_err(Fault::read)?.file_name())).collect()
    }

    fn read(&mut self, path: &Path) -> Result<Vec<u8>, Fault> {
        let path = self.task.join(path);
        let metadata = fs::metadata(&path).map_err(Fault::read)?;
        if !metadata.is_file() {
            return Err(Fault::NotAFile);
        }
        let mut contents = Vec::with_capacity(metadata.len().min(MOST) as usize + 1);
        let file = File::open(&path).map_err(Fault::read)?;
        file.take(MOST + 1).read_to_end(&mut contents).map_err(Fault::read)?;
        if contents.len() as u64 > MOST {
            return Err(Fault::read(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "more than 1 MiB",
            )));
        }
        Ok(contents)
    }

    fn version(&mut self, dir: &Path) -> Result<Version, Fault> {
        let real = self.task.join(dir).canonicalize().map_err(Fault::read)?;
        if self.uncommitted == Uncommitted::Evaluate {
            let changes = self.changes_in(&real)?;
            if !changes.changed.is_empty() {
                let commit = self.heads.commit(&real)?;
                let tree = self.heads.tree_as_it_stands(&real, &changes)?;
                return Ok(Version { commit, tree, dirty: true, checked_out: Some(real) });
            }
        }
        let Head { commit, tree } = self.heads.of(&real)?;
        match self.uncommitted {
            Uncommitted::Refuse => {
                let Changes { changed, .. } = self.changes_in(&real)?;
                if !changed.is_empty() {
                    let inside = |path: &PathBuf| path.strip_prefix(&real).ok().map(Path::to_owned);
                    return Err(Fault::Uncommitted(changed.iter().filter_map(inside).collect()));
                }
            }
            Uncommitted::Warn => drop(self.changes_in(&real)?),
            Uncommitted::Evaluate | Uncommitted::Ignore => {}
        }
        Ok(Version { commit, tree, dirty: false, checked_out: Some(real) })
    }

    fn changes(&mut self) -> Result<Changes, Fault> {
        if self.uncommitted != Uncommitted::Ignore {
            for part in ["workflow", "inputs"] {
                let part = self.task.join(part);
                let changes = self.heads.changes(&part, &part)?;
                self.changed.extend(changes.changed);
            }
        }
        let inside = |path: &PathBuf| path.strip_prefix(&self.task).unwrap_or(path).to_owned();
        let sorted = |paths: &[PathBuf]| {
            let paths: BTreeSet<PathBuf> = paths.iter().map(inside).collect();
            paths.into_iter().collect()
        };
        Ok(Changes { changed: sorted(&self.changed), ignored: sorted(&self.ignored) })
    }
}

impl WorkTree {
    /// Returns what is not committed in a computation, and notes it.
    fn changes_in(&mut self, dir: &Path) -> Result<Changes, HeadError> {
        let changes = self.heads.changes(dir, dir.parent().unwrap_or(dir))?;
        self.changed.extend(self.heads.moved(dir, &self.task)?);
        self.changed.extend_from_slice(&changes.changed);
        self.ignored.extend_from_slice(&changes.ignored);
        Ok(changes)
    }
}
