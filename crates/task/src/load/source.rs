//! The sources of a task: a commit, or the commit that a work tree would become.
//!
//! Both return the same for the same task. They return handles of directories, so that no long path
//! is resolved from its beginning, however deep a workflow is.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::{fs, io};

use ce_files::cache::Cache;
use ce_git::{
    AbsentLfsObject, Changes, Kind, LfsFile, LfsPointer, Snapshot, SnapshotError, TreeId, TreePath,
};
use ce_model::digest::ObjectId;
use ce_model::name::TreeName;
use ce_model::task::{FileContents, RecordedTree, WORKFLOW_TEXT};
use ce_model::text_file::{self, TextError};

use super::problems::LoadFault;

/// The greatest size of a file that is read whole, in bytes.
const MAX_SIZE: u64 = text_file::MAX_FILE as u64;

/// The same for a file with points of a sweep, or a text.
const MAX_POINTS_SIZE: u64 = text_file::MAX_POINTS_FILE as u64;

/// The identity of a directory, however it is reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Identity {
    /// The number of the place of a directory.
    Place(u32),
    /// The Git tree of a directory without links, which means the same everywhere.
    Tree(TreeId),
}

/// An entry of a directory.
#[derive(Debug)]
pub(super) enum Located {
    /// A directory.
    Directory {
        /// The directory.
        dir: TreePath,
        identity: Identity,
    },
    /// A file.
    File {
        /// It may be executed.
        executable: bool,
    },
}

/// The version of a computation's directory or file.
#[derive(Debug)]
pub(super) struct SourceVersion {
    /// The commit of the innermost repository.
    pub(super) commit: ObjectId,
    /// The tree of the directory, or the blob of the file.
    pub(super) tree: ObjectId,
    /// The tree is not the commit's.
    pub(super) dirty: bool,
    /// The directory or file, if it is dirty or in a repository of its own that may not be committed.
    pub(super) checked_out: Option<PathBuf>,
}

/// A source of a task.
pub(super) trait TaskSource {
    /// Returns the commit of the task.
    fn commit(&mut self) -> Result<ObjectId, LoadFault>;

    /// Returns the directory of the task.
    fn task(&mut self) -> Result<TreePath, LoadFault>;

    /// Returns the entry with this name in a directory, following links.
    fn find(&mut self, dir: &TreePath, name: &str) -> Result<Located, LoadFault>;

    /// Whether the entry with this name in a directory, following links, is in that directory.
    fn holds(&mut self, dir: &TreePath, name: &str) -> Result<bool, LoadFault>;

    /// Lists the names in a directory, in any order.
    fn list(&mut self, dir: &TreePath) -> Result<Vec<OsString>, LoadFault>;

    /// Returns the contents of a file of at most this many bytes, following links.
    fn read_at_most(&mut self, dir: &TreePath, name: &str, most: u64)
    -> Result<Vec<u8>, LoadFault>;

    /// Returns the contents of a file of at most 1 MiB, following links.
    fn read(&mut self, dir: &TreePath, name: &str) -> Result<Vec<u8>, LoadFault> {
        self.read_at_most(dir, name, MAX_SIZE)
    }

    /// The same for a file with points of a sweep, or a text, of at most 64 MiB.
    fn read_points(&mut self, dir: &TreePath, name: &str) -> Result<Vec<u8>, LoadFault> {
        self.read_at_most(dir, name, MAX_POINTS_SIZE)
    }

    /// Returns the version of the computation in a directory.
    fn version(&mut self, dir: &TreePath) -> Result<SourceVersion, LoadFault>;

    /// Returns the version of the computation in a file with this name in a directory, following links.
    fn file_version(&mut self, dir: &TreePath, name: &str) -> Result<SourceVersion, LoadFault>;

    /// Returns the version of a computation that stands in the text of the workflow, given by the file that it is.
    fn text_version(&mut self, name: &str, file: &str) -> Result<SourceVersion, LoadFault>;

    /// Finds the contents of the file with this name in a directory, following links.
    fn contents(&mut self, dir: &TreePath, name: &str) -> Result<FileContents, LoadFault>;

    /// The fault of a file of the task that is not there, given by its path.
    fn missing_file(&mut self, path: &str) -> LoadFault {
        LoadFault::NoFile { path: path.to_owned(), nearest: None }
    }

    /// Finds the commit of a repository that the commit of the task records: the task's own, or a
    /// submodule's. [`LoadFault::Missing`] if there is no such submodule.
    fn recorded(&mut self, name: &TreeName) -> Result<RecordedTree, LoadFault>;

    /// Returns the uncommitted changes of all files that were read, and ignored files beside them.
    fn changes(&mut self) -> Result<Changes, LoadFault>;

    /// Enters a directory.
    fn enter(&mut self, dir: &TreePath, name: &str) -> Result<TreePath, LoadFault> {
        match self.find(dir, name)? {
            Located::Directory { dir, .. } => Ok(dir),
            Located::File { .. } => Err(LoadFault::NotADirectory),
        }
    }
}

impl From<SnapshotError> for LoadFault {
    fn from(error: SnapshotError) -> Self {
        match error {
            SnapshotError::Missing => Self::Missing,
            SnapshotError::NotADirectory => Self::NotADirectory,
            SnapshotError::NotAFile => Self::NotAFile,
            SnapshotError::Outside(target) => Self::Outside(target),
            SnapshotError::Git(source) => match source.downcast::<io::Error>() {
                Ok(error) => Self::read(*error),
                Err(source) => Self::Snapshot(SnapshotError::Git(source)),
            },
            other => Self::Snapshot(other),
        }
    }
}

/// The contents of a file of a commit, or of a draft.
pub(super) fn contents(snapshot: &Snapshot, file: &TreePath) -> Result<FileContents, LoadFault> {
    match snapshot.lfs_files(file)?.pop() {
        Some(large) => Ok(FileContents::Large(object(&large)?)),
        None => Ok(FileContents::Blob(snapshot.id(file)?)),
    }
}

/// The text of a workflow in which computations stand: they must be found again.
pub(super) fn workflow_text(snapshot: &Snapshot) -> Result<TreePath, LoadFault> {
    let text = snapshot.find(Path::new(WORKFLOW_TEXT))?;
    if let Some(pointer) = snapshot.lfs_files(&text)?.pop() {
        return Err(LoadFault::Pointer(pointer.path));
    }
    match text.place() {
        place if ce_git::is_text_name(&place) => Ok(text),
        place => Err(LoadFault::TextName(place)),
    }
}

/// The file with the contents of one that Git LFS keeps. A signal ends a program that loads a task.
pub(super) fn object(file: &LfsFile) -> Result<PathBuf, AbsentLfsObject> {
    static NEVER: AtomicBool = AtomicBool::new(false);
    file.object(Cache::of_user().as_ref(), &NEVER).map(Path::to_owned)
}

impl TaskSource for Snapshot {
    fn commit(&mut self) -> Result<ObjectId, LoadFault> {
        Ok(Self::commit(self)?)
    }

    fn task(&mut self) -> Result<TreePath, LoadFault> {
        Ok(Self::find(self, Path::new(""))?)
    }

    fn find(&mut self, dir: &TreePath, name: &str) -> Result<Located, LoadFault> {
        let dir = self.entry(dir, OsStr::new(name))?;
        if let Kind::File { executable } = dir.kind() {
            return Ok(Located::File { executable });
        }
        let identity = if self.is_linked(&dir)? {
            Identity::Place(self.number(&dir))
        } else {
            Identity::Tree(dir.tree())
        };
        Ok(Located::Directory { dir, identity })
    }

    fn holds(&mut self, dir: &TreePath, name: &str) -> Result<bool, LoadFault> {
        Ok(self.entry(dir, OsStr::new(name))?.is_below(dir))
    }

    fn list(&mut self, dir: &TreePath) -> Result<Vec<OsString>, LoadFault> {
        Ok(Self::list(self, dir)?)
    }

    fn read_at_most(
        &mut self,
        dir: &TreePath,
        name: &str,
        most: u64,
    ) -> Result<Vec<u8>, LoadFault> {
        let file = self.entry(dir, OsStr::new(name))?;
        if file.kind() == Kind::Directory {
            return Err(LoadFault::NotAFile);
        }
        // A file of a work tree may be too large to be read.
        let mut contents = Vec::new();
        let mut size = self.size(&file).unwrap_or_default();
        if size <= most {
            contents = Self::read(self, &file)?;
            if LfsPointer::parse(&contents).is_some()
                && let Some(large) = self.lfs_files(&file)?.pop()
                && large.pointer.size <= most
            {
                contents = fs::read(object(&large)?).map_err(LoadFault::read)?;
            }
            size = contents.len() as u64;
        }
        if size > most { Err(LoadFault::too_large(most)) } else { Ok(contents) }
    }

    fn version(&mut self, dir: &TreePath) -> Result<SourceVersion, LoadFault> {
        if let Some(pointer) = self.lfs_files_of_all(dir)?.pop() {
            return Err(LoadFault::Pointer(pointer.path));
        }
        let (commit, tree) = (dir.commit()?, self.id(dir)?);
        Ok(SourceVersion { commit, tree, dirty: false, checked_out: None })
    }

    fn file_version(&mut self, dir: &TreePath, name: &str) -> Result<SourceVersion, LoadFault> {
        let file = self.entry(dir, OsStr::new(name))?;
        self.version(&file)
    }

    fn text_version(&mut self, _: &str, file: &str) -> Result<SourceVersion, LoadFault> {
        let text = workflow_text(self)?;
        let (commit, tree) = (text.commit()?, self.id_of_contents(&text, file)?);
        Ok(SourceVersion { commit, tree, dirty: false, checked_out: None })
    }

    fn contents(&mut self, dir: &TreePath, name: &str) -> Result<FileContents, LoadFault> {
        contents(self, &self.entry(dir, OsStr::new(name))?)
    }

    fn recorded(&mut self, name: &TreeName) -> Result<RecordedTree, LoadFault> {
        let commit = match name.source() {
            "." => Self::commit(self)?,
            place => match self.submodule_commit(Path::new(place)) {
                Err(error @ (SnapshotError::Git(_) | SnapshotError::NotCloned { .. })) => {
                    return Err(error.into());
                }
                commit => commit.map_err(|_| LoadFault::Missing)?,
            },
        };
        Ok(RecordedTree { commit, uncommitted: None })
    }

    fn changes(&mut self) -> Result<Changes, LoadFault> {
        Ok(Changes::default())
    }
}

/// Returns the lines of a list, each trimmed.
///
/// # Errors
///
/// Fails if the file cannot be read, is not a text, or has an empty line within the list. Each
/// fault has the number of its line, counted from one; zero is the whole file.
pub(super) fn parse_lines(
    file: Result<Vec<u8>, LoadFault>,
) -> Result<Vec<String>, Vec<(usize, LoadFault)>> {
    let contents = file.map_err(|fault| vec![(0, fault)])?;
    match text_file::lines(&contents) {
        Ok(lines) => Ok(lines.into_iter().map(str::to_owned).collect()),
        Err(errors) => Err(errors.into_iter().map(|(at, error)| (at, error.into())).collect()),
    }
}

/// Returns the first line, trimmed, and whether there are others.
pub(super) fn parse_line(file: Result<Vec<u8>, LoadFault>) -> Result<(String, bool), LoadFault> {
    let contents = file?;
    let (line, more) = text_file::line(&contents)?;
    Ok((line.to_owned(), more))
}

/// Returns a file that is any text, as it is.
pub(super) fn parse_text(file: Result<Vec<u8>, LoadFault>) -> Result<String, LoadFault> {
    String::from_utf8(file?).map_err(|_| LoadFault::Text(TextError::NotText))
}
