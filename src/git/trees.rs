//! The files of trees, for whoever wants them somewhere else than in a work tree.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use gix::ObjectId;
use gix::objs::tree::EntryKind;

use super::repositories::Repositories;
use super::{GitResult, from};
use crate::digest;

/// The repository of a task and its submodules, to be asked by several threads.
#[derive(Debug)]
pub struct Trees {
    dir: PathBuf,
    repositories: Mutex<Option<Repositories>>,
}

/// A file of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeFile {
    /// Its path in the tree.
    pub path: PathBuf,
    /// What it is.
    pub kind: TreeFileKind,
}

/// What a file of a tree is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeFileKind {
    /// A file, with its contents.
    Plain(Vec<u8>),
    /// A file that may be executed.
    Executable(Vec<u8>),
    /// A symbolic link, with its target.
    Link(PathBuf),
}

/// A file's kind and the id of its contents.
pub(super) type Entry = (EntryKind, ObjectId);

impl Trees {
    /// The trees that the repository of a task has, given by any directory in it.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), repositories: Mutex::default() }
    }

    /// Tells all files of a tree, and of the submodules in it, in the order of their paths.
    ///
    /// # Errors
    ///
    /// Fails if Git's data cannot be read, or whoever is told does.
    pub fn files(
        &self,
        tree: &digest::ObjectId,
        tell: &mut dyn FnMut(TreeFile) -> io::Result<()>,
    ) -> GitResult<()> {
        self.with(|repositories| {
            for (path, (kind, id)) in listing(repositories, tree)? {
                let contents = blob(repositories, id)?;
                let kind = match kind {
                    EntryKind::Link => TreeFileKind::Link(OsString::from_vec(contents).into()),
                    EntryKind::BlobExecutable => TreeFileKind::Executable(contents),
                    _ => TreeFileKind::Plain(contents),
                };
                tell(TreeFile { path, kind })?;
            }
            Ok(())
        })
    }

    /// Whether a directory has exactly the files of a tree.
    ///
    /// # Errors
    ///
    /// Fails if Git's data or the directory cannot be read.
    pub fn are_in(&self, dir: &Path, tree: &digest::ObjectId) -> GitResult<bool> {
        let mut expected = self.with(|repositories| listing(repositories, tree))?;
        let mut rooms = vec![dir.to_owned()];
        while let Some(room) = rooms.pop() {
            for entry in fs::read_dir(room)? {
                let path = entry?.path();
                let metadata = fs::symlink_metadata(&path)?;
                if metadata.is_dir() {
                    rooms.push(path);
                    continue;
                }
                let inside = path.strip_prefix(dir).unwrap_or(&path);
                let Some((kind, id)) = expected.remove(inside) else { return Ok(false) };
                let (found, contents) = if metadata.is_symlink() {
                    (EntryKind::Link, fs::read_link(&path)?.into_os_string().into_vec())
                } else if metadata.permissions().mode() & 0o100 != 0 {
                    (EntryKind::BlobExecutable, fs::read(&path)?)
                } else {
                    (EntryKind::Blob, fs::read(&path)?)
                };
                let hash = gix::objs::compute_hash(id.kind(), gix::objs::Kind::Blob, &contents)?;
                if (found, hash) != (kind, id) {
                    return Ok(false);
                }
            }
        }
        Ok(expected.is_empty())
    }

    /// Does something with the repositories, which are opened at the first time.
    pub(super) fn with<T>(&self, act: impl FnOnce(&Repositories) -> GitResult<T>) -> GitResult<T> {
        let mut opened = self.repositories.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.is_none() {
            *opened = Some(Repositories::open(&self.dir)?);
        }
        opened.as_ref().map_or_else(|| Err("it was not opened".into()), act)
    }
}

pub(super) fn listing(
    repositories: &Repositories,
    tree: &digest::ObjectId,
) -> GitResult<BTreeMap<PathBuf, Entry>> {
    let mut files = BTreeMap::new();
    let mut trees = vec![(PathBuf::new(), from(tree)?)];
    while let Some((dir, id)) = trees.pop() {
        let repository = repositories.needed(id)?;
        for entry in repository.find_tree(id)?.iter() {
            let entry = entry?;
            let path = dir.join(OsStr::from_bytes(entry.filename()));
            match entry.kind() {
                EntryKind::Tree => trees.push((path, entry.object_id())),
                EntryKind::Commit => {
                    let commit = entry.object_id();
                    let repository = repositories.having(commit)?;
                    let repository = repository.ok_or_else(|| {
                        format!("{} is a submodule that is not cloned", path.display())
                    })?;
                    trees.push((path, repository.find_commit(commit)?.tree_id()?.detach()));
                }
                kind => drop(files.insert(path, (kind, entry.object_id()))),
            }
        }
    }
    Ok(files)
}

pub(super) fn blob(repositories: &Repositories, id: ObjectId) -> GitResult<Vec<u8>> {
    let repository = repositories.needed(id)?;
    Ok(repository.find_blob(id)?.take_data())
}
