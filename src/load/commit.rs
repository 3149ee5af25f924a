//! A task as a commit of its repository records it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::problem::Fault;
use super::source::{Found, Identity, MOST, Source, Version};
use crate::digest::ObjectId;
use crate::git::{Changes, Kind, Snapshot, SnapshotError, Spot};

impl From<SnapshotError> for Fault {
    fn from(error: SnapshotError) -> Self {
        match error {
            SnapshotError::Missing => Self::Missing,
            SnapshotError::NotADirectory => Self::NotADirectory,
            SnapshotError::Outside(target) => Self::Outside(target),
            other => Self::Snapshot(other),
        }
    }
}

impl Source for Snapshot {
    type Dir = Spot;

    fn commit(&mut self) -> Result<ObjectId, Fault> {
        Ok(Self::commit(self)?)
    }

    fn task(&mut self) -> Result<Spot, Fault> {
        Ok(Self::find(self, Path::new(""))?)
    }

    fn place(&self, dir: &Spot) -> PathBuf {
        dir.place()
    }

    fn find(&mut self, dir: &Spot, name: &str) -> Result<Found<Spot>, Fault> {
        let dir = self.entry(dir, OsStr::new(name))?;
        if let Kind::File { executable } = dir.kind() {
            return Ok(Found::File { plain: true, executable });
        }
        let identity = match self.is_linked(&dir)? {
            true => Identity::Place(self.number(&dir)),
            false => Identity::Tree(dir.tree()),
        };
        Ok(Found::Directory { dir, identity, outside: false })
    }

    fn holds(&mut self, dir: &Spot, name: &str) -> Result<bool, Fault> {
        Ok(self.entry(dir, OsStr::new(name))?.is_below(dir))
    }

    fn list(&mut self, dir: &Spot) -> Result<Vec<OsString>, Fault> {
        Ok(Self::list(self, dir)?)
    }

    fn read(&mut self, dir: &Spot, name: &str) -> Result<Vec<u8>, Fault> {
        let file = self.entry(dir, OsStr::new(name))?;
        if file.kind() == Kind::Directory {
            return Err(Fault::NotAFile);
        }
        let contents = Self::read(self, &file)?;
        if contents.len() as u64 > MOST {
            return Err(Fault::too_large());
        }
        Ok(contents)
    }

    fn version(&mut self, dir: &Spot) -> Result<Version, Fault> {
        let (commit, tree) = (dir.commit()?, dir.id()?);
        Ok(Version { commit, tree, dirty: false, checked_out: None })
    }

    fn changes(&mut self) -> Result<Changes, Fault> {
        Ok(Changes::default())
    }
}
