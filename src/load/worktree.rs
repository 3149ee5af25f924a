//! A task as it is checked out.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::Uncommitted;
use super::problem::Fault;
use super::source::{Found, Identity, MOST, Source, Version};
use crate::digest::ObjectId;
use crate::git::{self, Changes, Head, HeadError, Heads, Standing};

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
    /// Where links led to that are in the repository: real paths.
    linked: BTreeSet<PathBuf>,
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
            linked: BTreeSet::new(),
        }
    }
}

impl WorkTree {
    /// Where all repositories stand that were looked at.
    pub(super) fn standings(&self) -> Option<Vec<Standing>> {
        self.heads.standings()
    }
}

impl Source for WorkTree {
    /// Its real path, relative to the task.
    type Dir = Rc<Path>;

    fn commit(&mut self) -> Result<ObjectId, Fault> {
        // A task that is not recorded at all has no place in the commit.
        match self.uncommitted {
            Uncommitted::Evaluate => Ok(self.heads.commit(&self.task)?),
            _ => Ok(self.heads.of(&self.task)?.commit),
        }
    }

    fn task(&mut self) -> Result<Rc<Path>, Fault> {
        Ok(Path::new("").into())
    }

    fn place(&self, dir: &Rc<Path>) -> PathBuf {
        dir.to_path_buf()
    }

    fn find(&mut self, dir: &Rc<Path>, name: &str) -> Result<Found<Rc<Path>>, Fault> {
        let Reached { place, metadata, outside } = self.reach(&dir.join(name))?;
        if metadata.is_dir() {
            let identity = Identity::Inode(metadata.dev(), metadata.ino());
            return Ok(Found::Directory { dir: place.into(), identity, outside });
        }
        let executable = metadata.permissions().mode() & 0o111 != 0;
        Ok(Found::File { plain: metadata.is_file(), executable })
    }

    fn list(&mut self, dir: &Rc<Path>) -> Result<Vec<OsString>, Fault> {
        let entries = fs::read_dir(self.task.join(dir)).map_err(Fault::read)?;
        entries.map(|entry| Ok(entry.map_err(Fault::read)?.file_name())).collect()
    }

    fn read(&mut self, dir: &Rc<Path>, name: &str) -> Result<Vec<u8>, Fault> {
        let Reached { place, metadata, outside } = self.reach(&dir.join(name))?;
        if outside {
            return Err(Fault::Outside(place));
        }
        if !metadata.is_file() {
            return Err(Fault::NotAFile);
        }
        let path = self.task.join(place);
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

    fn version(&mut self, dir: &Rc<Path>) -> Result<Version, Fault> {
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
                let ignored = changes.ignored.into_iter().filter(|path| is_read(path));
                self.changed.extend(changes.changed.into_iter().chain(ignored));
            }
            self.note_changes_behind_links()?;
        }
        let inside = |path: &PathBuf| path.strip_prefix(&self.task).unwrap_or(path).to_owned();
        let sorted = |paths: &[PathBuf]| {
            let paths: BTreeSet<PathBuf> = paths.iter().map(inside).collect();
            paths.into_iter().collect()
        };
        Ok(Changes { changed: sorted(&self.changed), ignored: sorted(&self.ignored) })
    }
}

/// Whether something in a workflow is read, by its name: that Git ignores it does not matter then.
fn is_read(path: &Path) -> bool {
    let name = |path: &Path| path.file_name().map(|name| name.as_encoded_bytes().to_owned());
    let in_inputs = path.parent().and_then(name).as_deref() == Some(b"inputs");
    match name(path).as_deref() {
        Some(b"workflow" | b"kind" | b"value" | b"inputs" | b"outputs") => true,
        Some([b'.', ..]) | None => false,
        Some(_) => in_inputs,
    }
}

/// What a path leads to.
struct Reached {
    /// Where it really is, relative to the task.
    place: PathBuf,
    metadata: Metadata,
    /// It is not in the task's repository.
    outside: bool,
}

impl WorkTree {
    /// Follows a link, if something is one.
    fn reach(&mut self, path: &Path) -> Result<Reached, Fault> {
        let full = self.task.join(path);
        let metadata = fs::symlink_metadata(&full).map_err(Fault::read)?;
        if !metadata.is_symlink() {
            return Ok(Reached { place: path.to_owned(), metadata, outside: false });
        }
        let real = full.canonicalize().map_err(Fault::read)?;
        let metadata = fs::metadata(&real).map_err(Fault::read)?;
        let outside = !real.starts_with(&self.repository);
        let place = real.strip_prefix(&self.task).unwrap_or(&real).to_owned();
        if !outside {
            self.linked.insert(real);
        }
        Ok(Reached { place, metadata, outside })
    }

    /// Notes what is not committed of what is linked to from elsewhere.
    fn note_changes_behind_links(&mut self) -> Result<(), HeadError> {
        // All that is in one directory at the top is looked at together.
        let top = |path: &PathBuf| {
            let inside = path.strip_prefix(&self.repository).ok()?;
            Some(self.repository.join(inside.components().next()?))
        };
        let scopes: BTreeSet<PathBuf> = self.linked.iter().filter_map(top).collect();
        for scope in scopes {
            let changes = self.heads.changes(&scope, &scope)?;
            let moved = self.heads.moved(&scope, &self.task)?;
            let below = |path: &Path| path.ancestors().any(|above| self.linked.contains(above));
            let above = |path: &Path| {
                let mut after = self.linked.range(path.to_owned()..);
                after.next().is_some_and(|linked| linked.starts_with(path))
            };
            let found = changes.changed.into_iter().chain(moved);
            let found = found.filter(|path| below(path) || above(path));
            let read = |path: &PathBuf| above(path) || below(path) && is_read(path);
            self.changed.extend(found.chain(changes.ignored.into_iter().filter(read)));
        }
        Ok(())
    }

    /// Returns what is not committed in a computation, and notes it.
    fn changes_in(&mut self, dir: &Path) -> Result<Changes, HeadError> {
        let changes = self.heads.changes(dir, dir.parent().unwrap_or(dir))?;
        self.changed.extend(self.heads.moved(dir, &self.task)?);
        self.changed.extend_from_slice(&changes.changed);
        self.ignored.extend_from_slice(&changes.ignored);
        Ok(changes)
    }
}
