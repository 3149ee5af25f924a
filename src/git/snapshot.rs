//! A commit of a repository, read from its objects: paths as in a checkout of it, and of its
//! submodules at the commits that it records.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use gix::ObjectId;
use gix::objs::tree::EntryKind;

use super::repositories::Repositories;
use super::revision;
use super::{GitResult, from, object_id, top};
use crate::digest;

/// How many links are followed before there are too many.
const LINKS: usize = 40;

/// A commit, and the directory in it that paths are relative to.
#[derive(Debug)]
pub struct Snapshot {
    repositories: Repositories,
    commit: ObjectId,
    directory: PathBuf,
    /// A submodule that is at another commit than the one that is recorded, and that other one.
    moved: Option<(PathBuf, ObjectId)>,
    /// The trees that were read.
    trees: RefCell<HashMap<ObjectId, Rc<Entries>>>,
    /// Whether trees hold links or submodules, themselves or anywhere below.
    linked: RefCell<HashMap<ObjectId, bool>>,
}

type Entries = HashMap<OsString, (EntryKind, ObjectId)>;

/// What has some path in a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Where it really is, without links.
    pub place: PathBuf,
    /// Where it is in the innermost repository.
    pub inside: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// The commit of the innermost repository.
    pub commit: digest::ObjectId,
    /// The id of the tree or blob.
    pub id: digest::ObjectId,
}

/// What an entry of a commit is, links aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A file.
    File {
        /// It may be executed.
        executable: bool,
    },
}

/// Why something is not to be had from a commit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// No commit is called so.
    #[error("there is no commit {rev} in {}", repository.display())]
    Revision {
        /// What was asked for.
        rev: String,
        /// The repository.
        repository: PathBuf,
        /// What gix says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Nothing has this path.
    #[error("does not exist")]
    Missing,
    /// A file stands on the way.
    #[error("is not a directory")]
    NotADirectory,
    /// A link leads out of the repository.
    #[error("leads out of the repository, to {}", .0.display())]
    Outside(PathBuf),
    /// Links lead to links without end.
    #[error("has too many levels of links")]
    Links,
    /// Nothing tells which submodule is meant.
    #[error("there is no submodule that holds {}", path.display())]
    Submodule {
        /// What it should hold.
        path: PathBuf,
        /// Why.
        source: Box<Self>,
    },
    /// The task's own repository holds this.
    #[error("it is the task's own")]
    Own,
    /// The submodule is not there.
    #[error("is a submodule of which the commit {commit} is not cloned")]
    NotCloned {
        /// The first digits of its commit.
        commit: String,
    },
    /// Git's data could not be read.
    #[error("the repository cannot be read: {0}")]
    Git(Box<dyn std::error::Error + Send + Sync>),
}

impl SnapshotError {
    /// What the user can do about it, if that is not plain.
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Revision { .. } => Some("git log tells the commits that there are"),
            Self::NotCloned { .. } => {
                Some("git submodule update --init --recursive, or git fetch in the submodule")
            }
            _ => None,
        }
    }
}

impl Snapshot {
    /// Opens a revision of the repository that a directory is in, or is.
    ///
    /// # Errors
    ///
    /// Fails if there is no such revision, or the repository cannot be read.
    pub fn open(dir: &Path, rev: &str) -> Result<Self, SnapshotError> {
        let repositories = Repositories::open(dir).map_err(SnapshotError::Git)?;
        let repository = || repositories.task.git_dir().to_owned();
        let wrong = |source| SnapshotError::Revision {
            rev: rev.to_owned(),
            repository: repository(),
            source,
        };
        let commit = revision::commit(&repositories.task, dir, rev).map_err(wrong)?;
        let real = dir.canonicalize().map_err(|error| SnapshotError::Git(error.into()))?;
        let directory = top(&real).and_then(|top| real.strip_prefix(top).ok().map(Path::to_owned));
        Ok(Self {
            repositories,
            commit,
            directory: directory.unwrap_or_default(),
            moved: None,
            trees: RefCell::default(),
            linked: RefCell::default(),
        })
    }

    /// The same with a submodule at another commit, given by its place in the repository.
    ///
    /// # Errors
    ///
    /// Never fails for an id that Git has made.
    pub fn with(self, place: &Path, commit: &digest::ObjectId) -> Result<Self, SnapshotError> {
        let commit = from(commit).map_err(SnapshotError::Git)?;
        Ok(Self { moved: Some((place.to_owned(), commit)), ..self })
    }

    /// The commit.
    ///
    /// # Errors
    ///
    /// Never fails for an id that Git has made.
    pub fn commit(&self) -> Result<digest::ObjectId, SnapshotError> {
        object_id(self.commit).map_err(SnapshotError::Git)
    }

    /// Tells what has this path, following links.
    ///
    /// # Errors
    ///
    /// Fails if nothing has it, or Git's data cannot be read.
    pub fn find(&self, path: &Path) -> Result<Spot, SnapshotError> {
        self.way(path)?.spot(&self.directory)
    }

    /// The innermost submodule that holds a path: its place in the repository, and its commit.
    pub(super) fn submodule(&self, path: &Path) -> Result<(PathBuf, ObjectId), SnapshotError> {
        let way = self.way(path)?;
        let (_, _, commit) = way.here();
        if commit == self.commit {
            return Err(SnapshotError::Own);
        }
        let outside = way.steps.iter().rposition(|step| step.3 != commit);
        let names = way.steps.iter().take(outside.map_or(0, |at| at + 1) + 1);
        Ok((names.map(|(name, ..)| name).collect(), commit))
    }

    fn way(&self, path: &Path) -> Result<Way<'_>, SnapshotError> {
        let mut way = Way::new(self)?;
        let mut left: VecDeque<OsString> = parts(&self.directory.join(path));
        let mut links = 0;
        while let Some(part) = left.pop_front() {
            if let Some(target) = way.enter(&part)? {
                links += 1;
                if links > LINKS {
                    return Err(SnapshotError::Links);
                }
                if target.is_absolute() {
                    return Err(SnapshotError::Outside(target));
                }
                for part in parts(&target).into_iter().rev() {
                    left.push_front(part);
                }
            }
        }
        Ok(way)
    }

    /// Lists the names in a directory, in any order.
    ///
    /// # Errors
    ///
    /// Fails if Git's data cannot be read.
    pub fn list(&self, directory: &Spot) -> Result<Vec<OsString>, SnapshotError> {
        let id = from(&directory.id).map_err(SnapshotError::Git)?;
        Ok(self.entries(id)?.keys().cloned().collect())
    }

    /// Returns the contents of a file.
    ///
    /// # Errors
    ///
    /// Fails if Git's data cannot be read.
    pub fn read(&self, file: &Spot) -> Result<Vec<u8>, SnapshotError> {
        let id = from(&file.id).map_err(SnapshotError::Git)?;
        self.blob(id).map_err(SnapshotError::Git)
    }

    /// Whether a directory holds links or submodules, itself or anywhere below. One that holds none
    /// means the same wherever it is.
    ///
    /// # Errors
    ///
    /// Fails if Git's data cannot be read.
    pub fn is_linked(&self, directory: &Spot) -> Result<bool, SnapshotError> {
        let root = from(&directory.id).map_err(SnapshotError::Git)?;
        let mut stack = vec![root];
        while let Some(&id) = stack.last() {
            if self.linked.borrow().contains_key(&id) {
                stack.pop();
                continue;
            }
            let entries = self.entries(id)?;
            let (mut linked, mut open) = (false, false);
            for (kind, below) in entries.values() {
                match kind {
                    EntryKind::Link | EntryKind::Commit => linked = true,
                    EntryKind::Tree => match self.linked.borrow().get(below) {
                        Some(known) => linked |= known,
                        None => {
                            stack.push(*below);
                            open = true;
                        }
                    },
                    EntryKind::Blob | EntryKind::BlobExecutable => {}
                }
            }
            if linked || !open {
                self.linked.borrow_mut().insert(id, linked);
            }
        }
        Ok(self.linked.borrow().get(&root).copied().unwrap_or(true))
    }

    fn entries(&self, id: ObjectId) -> Result<Rc<Entries>, SnapshotError> {
        if let Some(known) = self.trees.borrow().get(&id) {
            return Ok(Rc::clone(known));
        }
        let read = || -> GitResult<Entries> {
            let repository = self.repositories.needed(id)?;
            let tree = repository.find_tree(id)?;
            let entry = |entry: gix::object::tree::EntryRef<'_, '_>| {
                let name = OsStr::from_bytes(entry.filename()).to_owned();
                (name, (entry.kind(), entry.object_id()))
            };
            Ok(tree.iter().map(|it| it.map(entry)).collect::<Result<_, _>>()?)
        };
        let entries = Rc::new(read().map_err(SnapshotError::Git)?);
        self.trees.borrow_mut().insert(id, Rc::clone(&entries));
        Ok(entries)
    }

    fn blob(&self, id: ObjectId) -> GitResult<Vec<u8>> {
        let repository = self.repositories.needed(id)?;
        Ok(repository.find_blob(id)?.take_data())
    }

    /// The tree of a commit of this repository or a submodule.
    fn tree(&self, commit: ObjectId) -> Result<ObjectId, SnapshotError> {
        let read = || -> GitResult<Option<ObjectId>> {
            let Some(repository) = self.repositories.having(commit)? else { return Ok(None) };
            Ok(Some(repository.find_commit(commit)?.tree_id()?.detach()))
        };
        let missing = || SnapshotError::NotCloned {
            commit: commit.to_hex_with_len(digest::SHORT).to_string(),
        };
        read().map_err(SnapshotError::Git)?.ok_or_else(missing)
    }
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.map(|part| part.as_os_str().to_owned()).collect()
}

/// The way to a path: the entries from the root to where it has come.
struct Way<'a> {
    snapshot: &'a Snapshot,
    /// Names, what they are, and the commit that each is in.
    steps: Vec<(OsString, EntryKind, ObjectId, ObjectId)>,
    root: ObjectId,
}

impl<'a> Way<'a> {
    fn new(snapshot: &'a Snapshot) -> Result<Self, SnapshotError> {
        let root = snapshot.tree(snapshot.commit)?;
        Ok(Self { snapshot, steps: Vec::new(), root })
    }

    /// Where it has come: what that is, and the commit that it is in.
    fn here(&self) -> (EntryKind, ObjectId, ObjectId) {
        match self.steps.last() {
            Some((_, kind, id, commit)) => (*kind, *id, *commit),
            None => (EntryKind::Tree, self.root, self.snapshot.commit),
        }
    }

    /// Goes on to an entry of the directory; if that is a link, returns its target and stays.
    fn enter(&mut self, part: &OsStr) -> Result<Option<PathBuf>, SnapshotError> {
        if part == ".." {
            let inside = self.steps.pop().is_some();
            return if inside { Ok(None) } else { Err(SnapshotError::Outside("..".into())) };
        }
        let (kind, id, commit) = self.here();
        if kind != EntryKind::Tree {
            return Err(SnapshotError::NotADirectory);
        }
        let entries = self.snapshot.entries(id)?;
        let &(kind, id) = entries.get(part).ok_or(SnapshotError::Missing)?;
        let step = match kind {
            EntryKind::Link => {
                let target = self.snapshot.blob(id).map_err(SnapshotError::Git)?;
                return Ok(Some(OsString::from_vec(target).into()));
            }
            EntryKind::Commit => {
                let names = self.steps.iter().map(|(name, ..)| name.as_os_str());
                let place: PathBuf = names.chain([part]).collect();
                let moved = self.snapshot.moved.as_ref().filter(|(moved, _)| *moved == place);
                let commit = moved.map_or(id, |(_, commit)| *commit);
                (part.to_owned(), EntryKind::Tree, self.snapshot.tree(commit)?, commit)
            }
            EntryKind::Tree | EntryKind::Blob | EntryKind::BlobExecutable => {
                (part.to_owned(), kind, id, commit)
            }
        };
        self.steps.push(step);
        Ok(None)
    }

    fn spot(&self, directory: &Path) -> Result<Spot, SnapshotError> {
        let (kind, id, commit) = self.here();
        let place: PathBuf = self.steps.iter().map(|(name, ..)| name).collect();
        // A submodule itself is the root of its repository.
        let roots = usize::from(commit != self.snapshot.commit);
        let inside = self.steps.iter().filter(|(.., within)| *within == commit).skip(roots);
        let kind = match kind {
            EntryKind::Tree => Kind::Directory,
            kind => Kind::File { executable: kind == EntryKind::BlobExecutable },
        };
        Ok(Spot {
            place: relative(&place, directory),
            inside: inside.map(|(name, ..)| name).collect(),
            kind,
            commit: object_id(commit).map_err(SnapshotError::Git)?,
            id: object_id(id).map_err(SnapshotError::Git)?,
        })
    }
}

/// A path relative to a directory, both relative to the same root.
fn relative(path: &Path, directory: &Path) -> PathBuf {
    let (mut path, mut directory) =
        (path.components().peekable(), directory.components().peekable());
    while path.peek().is_some() && path.peek() == directory.peek() {
        path.next();
        directory.next();
    }
    directory.map(|_| Component::ParentDir).chain(path).collect()
}
