//! A task as a commit of its repository records it.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use super::problem::Fault;
use super::source::{Found, Identity, MOST, Source, Version};
use crate::digest::ObjectId;
use crate::git::{Changes, Kind, Snapshot, SnapshotError};

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
    fn commit(&mut self) -> Result<ObjectId, Fault> {
        Ok(Self::commit(self)?)
    }

    fn find(&mut self, path: &Path) -> Result<Found, Fault> {
        let spot = Self::find(self, path)?;
        Ok(match spot.kind() {
            Kind::Directory => {
                let place = spot.place();
                let identity = if self.is_linked(&spot)? {
                    Identity::Place(place.clone())
                } else {
                    Identity::Tree(spot.id()?)
                };
                Found::Directory { place, identity, outside: false }
            }
            Kind::File { executable } => Found::File { plain: true, executable },
        })
    }

    fn list(&mut self, dir: &Path) -> Result<Vec<OsString>, Fault> {
        let spot = Self::find(self, dir)?;
        match spot.kind() {
            Kind::Directory => Ok(Self::list(self, &spot)?),
            Kind::File { .. } => Err(Fault::NotADirectory),
        }
    }

    fn read(&mut self, path: &Path) -> Result<Vec<u8>, Fault> {
        let spot = Self::find(self, path)?;
        if spot.kind() == Kind::Directory {
            return Err(Fault::NotAFile);
        }
        let contents = Self::read(self, &spot)?;
        if contents.len() as u64 > MOST {
            return Err(Fault::read(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "more than 1 MiB",
            )));
        }
        Ok(contents)
    }

    fn version(&mut self, dir: &Path) -> Result<Version, Fault> {
        let spot = Self::find(self, dir)?;
        let (commit, tree) = (spot.commit()?, spot.id()?);
        Ok(Version { commit, tree, dirty: false, checked_out: None })
    }

    fn changes(&mut self) -> Result<Changes, Fault> {
        Ok(Changes::default())
    }
}
