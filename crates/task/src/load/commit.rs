//! A task as a commit of its repository records it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::problems::LoadFault;
use super::source::{DirectoryVersion, Identity, Located, TaskSource};
use ce_git::{Changes, Kind, Snapshot, SnapshotError, TreePath};
use ce_model::digest::ObjectId;
use ce_model::task::name::TreeName;
use ce_model::task::workflow::{FileContents, RecordedTree};

impl From<SnapshotError> for LoadFault {
    fn from(error: SnapshotError) -> Self {
        match error {
            SnapshotError::Missing => Self::Missing,
            SnapshotError::NotADirectory => Self::NotADirectory,
            SnapshotError::Outside(target) => Self::Outside(target),
            other => Self::Snapshot(other),
        }
    }
}

impl TaskSource for Snapshot {
    type Dir = TreePath;

    fn commit(&mut self) -> Result<ObjectId, LoadFault> {
        Ok(Self::commit(self)?)
    }

    fn task(&mut self) -> Result<TreePath, LoadFault> {
        Ok(Self::find(self, Path::new(""))?)
    }

    fn place(&self, dir: &TreePath) -> PathBuf {
        dir.place()
    }

    fn find(&mut self, dir: &TreePath, name: &str) -> Result<Located<TreePath>, LoadFault> {
        let dir = self.entry(dir, OsStr::new(name))?;
        if let Kind::File { executable } = dir.kind() {
            return Ok(Located::File { plain: true, executable });
        }
        let identity = match self.is_linked(&dir)? {
            true => Identity::Place(self.number(&dir)),
            false => Identity::Tree(dir.tree()),
        };
        Ok(Located::Directory { dir, identity, outside: false })
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
        let contents = Self::read(self, &file)?;
        if contents.len() as u64 > most {
            return Err(LoadFault::too_large(most));
        }
        Ok(contents)
    }

    fn version(&mut self, dir: &TreePath) -> Result<DirectoryVersion, LoadFault> {
        let (commit, tree) = (dir.commit()?, dir.id()?);
        Ok(DirectoryVersion { commit, tree, dirty: false, checked_out: None })
    }

    fn contents(&mut self, dir: &TreePath, name: &str) -> Result<FileContents, LoadFault> {
        Ok(FileContents::Blob(self.entry(dir, OsStr::new(name))?.id()?))
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
