//! Trees: their files, to write them somewhere else than into a work tree, and their differences, as in `git diff --stat`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{fs, io, thread};

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::diff::blob::{Algorithm, Diff, InternedInput};
use gix::objs::tree::{Editor, EntryKind};
use gix::objs::{Kind as ObjectKind, Tree, WriteTo};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::{GitResult, from, object_id};
use crate::commit_snapshot::{Kind, Snapshot, TreePath};
use crate::errors::SnapshotError;
use crate::head::Heads;
use crate::lfs_files::LfsFile;
use crate::objects::{self, object, tree_of};
use crate::submodules::Repositories;
use crate::text_computations;
use ce_model::declaration::Declaration;
use ce_model::digest;
use ce_model::task::Computation;

/// The repository of a task and its submodules, to be asked by several threads.
///
/// A blob in place of a tree is a computation in one file: a directory with only that file, as `exec`.
#[derive(Debug)]
pub struct Trees {
    dir: PathBuf,
    /// The tree that the directory must have as it stands, or the blob of the file, if that is wanted, too.
    draft: Option<digest::ObjectId>,
    repositories: Mutex<Option<Repositories>>,
}

/// The code of a computation: a commit that has it, and the tree of its directory, or the blob of its file. The file of a computation that
/// stands in a text is a blob of no repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code<'a> {
    pub commit: &'a digest::ObjectId,
    pub tree: &'a digest::ObjectId,
}

impl<'a> From<&'a Computation> for Code<'a> {
    fn from(computation: &'a Computation) -> Self {
        Self { commit: &computation.commit, tree: &computation.tree }
    }
}

/// A file of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeFile {
    /// Its path in the tree.
    pub path: PathBuf,
    /// Its kind, with its contents or target.
    pub kind: TreeFileKind,
}

/// The kind of a file of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeFileKind {
    /// A file, with its contents.
    Plain(Vec<u8>),
    /// A file that may be executed.
    Executable(Vec<u8>),
    /// A file with the contents of another one, which Git LFS keeps.
    Object {
        /// The path of the other file.
        file: PathBuf,
        /// It may be executed.
        executable: bool,
    },
    /// A symbolic link, with its target.
    Link(PathBuf),
}

/// A directory has changed.
#[derive(Debug, thiserror::Error)]
#[error("{} has changed since the task was loaded: run it again", .0.display())]
pub struct Changed(PathBuf);

/// A submodule in a tree is not cloned.
#[derive(Debug, thiserror::Error)]
#[error("{} is a submodule that is not cloned", .0.display())]
pub struct NotCloned(PathBuf);

/// A file's kind and the id of its contents.
pub(super) type FileEntry = (EntryKind, ObjectId);

impl Trees {
    /// The trees that the repository of a task has, given by any directory in it.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), draft: None, repositories: Mutex::default() }
    }

    /// The same with the tree that a directory has as it stands, or the blob of a file, committed or not. It must have been
    /// this tree before: otherwise nothing is found.
    pub fn as_it_stands(dir: &Path, tree: &digest::ObjectId) -> Self {
        Self { draft: Some(tree.clone()), ..Self::new(dir) }
    }

    /// The tree of a directory in the work tree, which must be this tree, and the files in it that Git LFS keeps elsewhere.
    pub fn of_draft(dir: &Path, tree: &digest::ObjectId) -> GitResult<(Self, Vec<LfsFile>)> {
        let snapshot = Heads::default().draft_snapshot(dir)?;
        let (place, repositories) = draft(&snapshot, dir, tree)?;
        let repositories = Mutex::new(Some(repositories));
        let trees = Self { draft: Some(tree.clone()), dir: dir.to_owned(), repositories };
        Ok((trees, snapshot.lfs_files(&place)?))
    }

    /// The trees that a computation must be taken from, if it is checked out: one with uncommitted changes, or one in a repository that the
    /// task's does not know.
    pub fn checked_out(computation: &Computation) -> Option<Self> {
        let place = computation.checked_out.as_deref()?;
        Some(match computation.dirty {
            true => Self::as_it_stands(place, &computation.tree),
            false => Self::new(place),
        })
    }

    /// The directory that they were given by.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The trees of repositories that are open.
    pub(super) fn from_repositories(place: PathBuf, repositories: Repositories) -> Self {
        Self { dir: place, draft: None, repositories: Mutex::new(Some(repositories)) }
    }

    /// Passes all files of a tree, and of the submodules in it, to a function, in any order. Several threads read a
    /// large tree, and call the function at the same time.
    ///
    /// The files are as Git records them: nothing converts or replaces their contents. Empty directories
    /// are left out.
    ///
    /// # Errors
    ///
    /// Fails if Git's data cannot be read, a submodule is not cloned, or the function fails.
    pub fn files(
        &self,
        tree: &digest::ObjectId,
        tell: &(dyn Fn(TreeFile) -> io::Result<()> + Sync),
    ) -> GitResult<()> {
        if self.draft.is_some() {
            // A copy of the repositories would copy the contents of all files that are not committed.
            return self.with(|it| {
                let files: Vec<(PathBuf, FileEntry)> = listing(it, tree)?.into_iter().collect();
                tell_parts(it, &files, &AtomicUsize::new(0), tell)
            });
        }
        let (files, repositories) = self.with(|it| Ok((listing(it, tree)?, it.clone())))?;
        let files: Vec<(PathBuf, FileEntry)> = files.into_iter().collect();
        let next = &AtomicUsize::new(0);
        let tell_files = |repositories| {
            let told = tell_parts(&repositories, &files, next, tell);
            if told.is_err() {
                next.store(files.len(), Ordering::Relaxed);
            }
            told
        };
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        thread::scope(|scope| {
            let mut others = Vec::new();
            for _ in 1..cores.min(files.len().div_ceil(PART)) {
                let repositories = repositories.clone();
                let builder = thread::Builder::new();
                // Without another thread, this thread does all the work.
                let Ok(other) = builder.spawn_scoped(scope, || tell_files(repositories)) else {
                    break;
                };
                others.push(other);
            }
            let mut told = tell_files(repositories.clone());
            for other in others {
                told = told.and(other.join().unwrap_or_else(|it| resume_unwind(it)));
            }
            told
        })
    }

    /// Returns the contents of a file.
    pub fn blob(&self, id: &digest::ObjectId) -> GitResult<Vec<u8>> {
        self.with(|repositories| blob(repositories, from(id)?))
    }

    /// Passes all files of a computation to a function, as [`files`](Self::files) does.
    pub fn code_files(
        &self,
        code: Code<'_>,
        tell: &(dyn Fn(TreeFile) -> io::Result<()> + Sync),
    ) -> GitResult<()> {
        self.find_code(code)?;
        self.files(code.tree, tell)
    }

    /// Whether the directory of a computation has a file of this name at its top. One in one file has the files that it declares.
    pub fn has_file(&self, code: Code<'_>, name: &str) -> GitResult<bool> {
        if let Some(declaration) = self.declaration(code)? {
            return Ok(declaration.file(name).is_some());
        }
        let id = from(code.tree)?;
        self.with(|repositories| {
            let found = object(repositories.required_repository_of(id)?, id)?.try_into_tree()?;
            let entry = found.find_entry(name);
            Ok(entry.is_some_and(|entry| entry.inner.mode.is_blob_or_symlink()))
        })
    }

    /// Returns the declaration of a computation in one file; `None` for a directory.
    pub fn declaration(&self, code: Code<'_>) -> GitResult<Option<Declaration>> {
        self.find_code(code)?;
        let id = from(code.tree)?;
        self.with(|repositories| {
            let found = object(repositories.required_repository_of(id)?, id)?;
            let is_file = found.kind == ObjectKind::Blob;
            Ok(is_file.then(|| Declaration::parse(&found.data).unwrap_or_default()))
        })
    }

    /// Whether a directory has exactly the files of a computation.
    pub fn are_in(&self, dir: &Path, code: Code<'_>) -> GitResult<bool> {
        let id = from(code.tree)?;
        let Some(found) = entries_in(dir, id.kind())? else { return Ok(false) };
        // Each submodule is a directory, and the tree has its commit.
        if found == file_alone(id) || id_of(&found, id.kind())? == id {
            return Ok(true);
        }
        self.find_code(code)?;
        Ok(found == self.with(|it| listing(it, code.tree))?)
    }

    /// Lets the repositories have the code of a computation, wherever it stands.
    fn find_code(&self, code: Code<'_>) -> GitResult<()> {
        self.with(|repositories| repositories.find_code(from(code.commit)?, from(code.tree)?))
    }

    /// Does something with the repositories, which are opened at the first time.
    pub(super) fn with<T>(&self, act: impl FnOnce(&Repositories) -> GitResult<T>) -> GitResult<T> {
        let mut opened = self.repositories.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.is_none() {
            *opened = Some(self.open()?);
        }
        opened.as_ref().map_or_else(|| Err("it was not opened".into()), act)
    }

    fn open(&self) -> GitResult<Repositories> {
        let Some(tree) = &self.draft else { return Repositories::open(&self.dir) };
        let snapshot = Heads::default().draft_within(&self.dir, &self.dir)?;
        Ok(draft(&snapshot, &self.dir, tree)?.1)
    }
}

/// The path of a directory or file in a draft, and its repositories. It must have this tree or blob, or be a text with a computation that has
/// this blob.
fn draft(
    snapshot: &Snapshot,
    dir: &Path,
    tree: &digest::ObjectId,
) -> GitResult<(TreePath, Repositories)> {
    let changed = || Changed(dir.to_owned());
    let place = match snapshot.find(Path::new("")) {
        Err(SnapshotError::Missing | SnapshotError::NotADirectory) => return Err(changed().into()),
        place => place?,
    };
    if snapshot.id(&place)? == *tree {
        let repositories = snapshot.repositories_of(&place)?;
        return Ok((place, repositories));
    }
    if place.kind() == Kind::Directory {
        return Err(changed().into());
    }
    let (files, id) = (text_computations::files(&snapshot.read(&place)?), from(tree)?);
    for file in files {
        if text_computations::id_of(&file, id.kind())? == id {
            let repositories = snapshot.repositories_of(&place)?;
            repositories.keep(&[file])?;
            return Ok((place, repositories));
        }
    }
    Err(changed().into())
}

/// The number of files that a thread reads before it looks for more.
const PART: usize = 64;

/// Passes the files that no other thread has begun to a function.
fn tell_parts(
    repositories: &Repositories,
    files: &[(PathBuf, FileEntry)],
    next: &AtomicUsize,
    tell: &(dyn Fn(TreeFile) -> io::Result<()> + Sync),
) -> GitResult<()> {
    while let Some(part) = files.chunks(PART).nth(next.fetch_add(1, Ordering::Relaxed)) {
        for (path, (kind, id)) in part {
            tell(file(repositories, path, *kind, *id)?)?;
        }
    }
    Ok(())
}

/// The least size of a file that cannot be in a Git tree: 4 GiB.
const TOO_LARGE: u64 = 1 << 32;

/// Returns the Git tree that a directory has as it stands, by the hash of `like`. `None` if something in it can be in no
/// tree. Submodules are directories like others.
pub fn tree_in(dir: &Path, like: &digest::ObjectId) -> GitResult<Option<digest::ObjectId>> {
    let hash = from(like)?.kind();
    let Some(found) = entries_in(dir, hash)? else { return Ok(None) };
    object_id(id_of(&found, hash)?).map(Some)
}

/// Whether a directory as it stands has just the files of a tree without submodules, or of the blob of one file.
pub fn is_in(dir: &Path, tree: &digest::ObjectId) -> GitResult<bool> {
    let id = from(tree)?;
    let Some(found) = entries_in(dir, id.kind())? else { return Ok(false) };
    Ok(found == file_alone(id) || id_of(&found, id.kind())? == id)
}

/// The name of the program of a computation, and of its file if that is all.
const EXEC: &str = "exec";

/// The files of a computation in one file, given by its blob.
fn file_alone(id: ObjectId) -> BTreeMap<PathBuf, FileEntry> {
    [(EXEC.into(), (EntryKind::BlobExecutable, id))].into()
}

/// Returns the files below a directory. These must be the files of a tree.
pub fn files_in(dir: &Path) -> GitResult<Vec<TreeFile>> {
    let found = entries_in(dir, gix::hash::Kind::Sha1)?.unwrap_or_default();
    let mut files = Vec::with_capacity(found.len());
    for (path, (kind, _)) in found {
        let place = dir.join(&path);
        let kind = match kind {
            EntryKind::Link => TreeFileKind::Link(fs::read_link(place)?),
            EntryKind::BlobExecutable => TreeFileKind::Executable(fs::read(place)?),
            _ => TreeFileKind::Plain(fs::read(place)?),
        };
        files.push(TreeFile { path, kind });
    }
    Ok(files)
}

/// The files below a directory; `None` if something in it can be in no tree, such as a FIFO.
fn entries_in(
    dir: &Path,
    hash: gix::hash::Kind,
) -> GitResult<Option<BTreeMap<PathBuf, FileEntry>>> {
    let mut found = BTreeMap::new();
    let mut rooms = vec![dir.to_owned()];
    while let Some(room) = rooms.pop() {
        for entry in fs::read_dir(room)? {
            let path = entry?.path();
            let metadata = fs::symlink_metadata(&path)?;
            if metadata.is_dir() {
                rooms.push(path);
                continue;
            }
            if !metadata.is_symlink() && (!metadata.is_file() || metadata.len() >= TOO_LARGE) {
                return Ok(None);
            }
            let (kind, contents) = if metadata.is_symlink() {
                (EntryKind::Link, fs::read_link(&path)?.into_os_string().into_vec())
            } else if metadata.permissions().mode() & 0o100 != 0 {
                (EntryKind::BlobExecutable, fs::read(&path)?)
            } else {
                (EntryKind::Blob, fs::read(&path)?)
            };
            let id = gix::objs::compute_hash(hash, ObjectKind::Blob, &contents)?;
            found.insert(path.strip_prefix(dir)?.to_owned(), (kind, id));
        }
    }
    Ok(Some(found))
}

/// The id of the tree that has just these files.
fn id_of(files: &BTreeMap<PathBuf, FileEntry>, hash: gix::hash::Kind) -> GitResult<ObjectId> {
    let mut editor = Editor::new(Tree::empty(), &gix::objs::find::Never, hash);
    for (path, (kind, id)) in files {
        editor.upsert(path.iter().map(|part| part.as_bytes().as_bstr()), *kind, *id)?;
    }
    editor.write(|tree| {
        let mut data = Vec::new();
        tree.write_to(&mut data)?;
        Ok(gix::objs::compute_hash(hash, ObjectKind::Tree, &data)?)
    })
}

fn file(
    repositories: &Repositories,
    path: &Path,
    kind: EntryKind,
    id: ObjectId,
) -> GitResult<TreeFile> {
    let contents = blob(repositories, id)?;
    let kind = match kind {
        EntryKind::Link => TreeFileKind::Link(OsString::from_vec(contents).into()),
        EntryKind::BlobExecutable => TreeFileKind::Executable(contents),
        _ => TreeFileKind::Plain(contents),
    };
    Ok(TreeFile { path: path.to_owned(), kind })
}

fn listing(
    repositories: &Repositories,
    tree: &digest::ObjectId,
) -> GitResult<BTreeMap<PathBuf, FileEntry>> {
    let mut files = BTreeMap::new();
    let mut trees = vec![(PathBuf::new(), from(tree)?)];
    while let Some((dir, id)) = trees.pop() {
        let repository = repositories.required_repository_of(id)?;
        let found = object(repository, id)?;
        if dir.as_os_str().is_empty() && found.kind == ObjectKind::Blob {
            return Ok(file_alone(id));
        }
        for entry in found.try_into_tree()?.iter() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.filename());
            if !is_file_name(name) {
                return Err(format!(
                    "the tree {id} has an entry {name:?}, which is not a file name"
                )
                .into());
            }
            let path = dir.join(name);
            match entry.kind() {
                EntryKind::Tree => trees.push((path, entry.object_id())),
                EntryKind::Commit => {
                    let commit = entry.object_id();
                    let repository = repositories.repository_of(commit)?;
                    let repository = repository.ok_or_else(|| NotCloned(path.clone()))?;
                    trees.push((path, tree_of(repository, commit)?));
                }
                kind => drop(files.insert(path, (kind, entry.object_id()))),
            }
        }
    }
    Ok(files)
}

/// Whether a directory can have an entry with this name. Git checks out no other, but keeps any.
fn is_file_name(name: &OsStr) -> bool {
    let name = name.as_bytes();
    !matches!(name, b"" | b"." | b".." | b".git") && !name.contains(&b'/')
}

pub(super) fn blob(repositories: &Repositories, id: ObjectId) -> GitResult<Vec<u8>> {
    objects::blob(repositories.required_repository_of(id)?, id)
}

/// The number of bytes that are searched for zero bytes, as by Git.
const LOOKED_AT: usize = 8000;

/// A file that differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Its path in the trees.
    pub path: PathBuf,
    /// The numbers of inserted and deleted lines; `None` if it is not a text.
    pub lines: Option<LineCounts>,
}

/// The numbers of inserted and deleted lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Lines that only the new file has.
    pub inserted: u32,
    /// Lines that only the old file had.
    pub deleted: u32,
}

impl Serialize for FileChange {
    /// The numbers of lines are null for a file that is not a text.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut change = serializer.serialize_struct("FileChange", 3)?;
        change.serialize_field("path", &self.path.to_string_lossy())?;
        change.serialize_field("inserted", &self.lines.map(|it| it.inserted))?;
        change.serialize_field("deleted", &self.lines.map(|it| it.deleted))?;
        change.end()
    }
}

impl Trees {
    /// Returns the files that differ between an old version of a computation and a new one, in the order of their
    /// paths; `None` if one is not there. A file under a new name is a new file.
    pub fn diff(&self, [old, new]: [Code<'_>; 2]) -> GitResult<Option<Vec<FileChange>>> {
        self.with(|repositories| {
            for code in [old, new] {
                let tree = from(code.tree)?;
                repositories.find_code(from(code.commit)?, tree)?;
                if repositories.repository_of(tree)?.is_none() {
                    return Ok(None);
                }
            }
            let read = |entry: Option<FileEntry>| match entry {
                Some((_, id)) => blob(repositories, id),
                None => Ok(Vec::new()),
            };
            let mut removed = listing(repositories, old.tree)?;
            let mut changes = Vec::new();
            for (path, new) in listing(repositories, new.tree)? {
                let old = removed.remove(&path);
                if old != Some(new) {
                    changes.push(FileChange { path, lines: lines(&read(old)?, &read(Some(new))?) });
                }
            }
            for (path, old) in removed {
                changes.push(FileChange { path, lines: lines(&read(Some(old))?, b"") });
            }
            changes.sort_unstable_by(|one, other| one.path.cmp(&other.path));
            Ok(Some(changes))
        })
    }
}

/// Counts the inserted and deleted lines between two texts; `None` if one is not a text.
fn lines(old: &[u8], new: &[u8]) -> Option<LineCounts> {
    if [old, new].iter().any(|text| text.iter().take(LOOKED_AT).any(|byte| *byte == 0)) {
        return None;
    }
    let diff = Diff::compute(Algorithm::MyersMinimal, &InternedInput::new(old, new));
    Some(LineCounts { inserted: diff.count_additions(), deleted: diff.count_removals() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_text_are_counted_and_lines_of_binary_files_are_not() {
        let counted = |old: &str, new: &str| {
            lines(old.as_bytes(), new.as_bytes()).map(|it| (it.inserted, it.deleted))
        };
        assert_eq!(counted("a\nb\nc\n", "a\nB\nc\nd\n"), Some((2, 1)));
        assert_eq!(counted("", "a\n"), Some((1, 0)));
        assert_eq!(counted("a\n", "a"), Some((1, 1)));
        assert_eq!(counted("a\n", "a\0"), None);
    }
}
