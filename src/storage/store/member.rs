//! Members: files and directories within a directory that is a value.

use std::path::PathBuf;

use super::{Storage, Stored};
use crate::manifest::{Manifest, ManifestError, ManifestMember};
use crate::storage::disk::{Result, SeenValue, StorageError};
use crate::storage::records::Stamp;
use crate::task::name::{MemberPath, nearest};

/// The reason why a value has no such member.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// Nothing has that path.
    #[error("there is no {path} in the directory {}", directory.display())]
    Missing {
        /// The path.
        path: MemberPath,
        /// The directory.
        directory: PathBuf,
        /// A path in it that may be meant.
        nearest: Option<String>,
    },
    /// The value is a file.
    #[error("there is no {path} in {}, which is a file", file.display())]
    NotADirectory {
        /// The path.
        path: MemberPath,
        /// The file.
        file: PathBuf,
    },
    /// It is a directory that cannot be a value.
    #[error("{} cannot be a value for itself: {source}", directory.display())]
    Refused {
        /// The directory.
        directory: PathBuf,
        /// The reason.
        source: ManifestError,
    },
    /// Its name cannot be one in the storage: it is not UTF-8.
    #[error("the path of {path} in {} is not UTF-8", directory.display())]
    Name {
        /// The path that was asked for.
        path: MemberPath,
        /// The directory.
        directory: PathBuf,
    },
    /// The storage cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl MemberError {
    /// A hint for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { nearest: Some(nearest), .. } => {
                Some(format!("did you mean {nearest}?"))
            }
            Self::Missing { directory, .. } => {
                Some(format!("ls {} shows what is there", directory.display()))
            }
            Self::Storage(error) => error.hint().map(str::to_owned),
            Self::NotADirectory { .. } | Self::Refused { .. } | Self::Name { .. } => None,
        }
    }
}

impl Storage {
    /// Returns a member of a value that was found, by the manifest of that. Symbolic links on the way are
    /// followed within it. The name of the member goes on after that of the directory.
    ///
    /// # Errors
    ///
    /// Fails if there is no such member, or it cannot be a value.
    pub fn member(
        &self,
        value: &Stored,
        manifest: &Manifest,
        path: &MemberPath,
    ) -> Result<Stored, MemberError> {
        let name = self.root.maker(&value.name)?;
        let found = self.future_member(&Stored { name, ..value.clone() }, manifest, path)?;
        let place = self.root.path(&found.name);
        let stamp = match self.root.disk.see(&place, &self.ingest.stop)? {
            Some(SeenValue::File(metadata)) => Stamp::Modified(metadata.modified_ns()),
            Some(SeenValue::Directory(scan, _)) => Stamp::Scanned(scan.stamp()),
            None | Some(SeenValue::Other) => return Err(StorageError::Changed(place).into()),
        };
        Ok(Stored { stamp, ..found })
    }

    /// Returns a member of a directory that may not be stored yet. Its stamp is unknown.
    ///
    /// # Errors
    ///
    /// Fails like [`Storage::member`].
    pub fn future_member(
        &self,
        value: &Stored,
        manifest: &Manifest,
        path: &MemberPath,
    ) -> Result<Stored, MemberError> {
        let shown = self.shown(&value.name);
        if !value.digest.is_directory() {
            return Err(MemberError::NotADirectory { path: path.clone(), file: shown });
        }
        let found = manifest.member(path.as_str().as_bytes()).map_err(|source| {
            MemberError::Refused { directory: shown.join(path.as_str()), source }
        })?;
        let Some(ManifestMember { path: own, digest }) = found else {
            let paths = manifest.entries().iter().filter_map(|it| str::from_utf8(&it.path).ok());
            let paths: Vec<String> = paths.map(str::to_owned).collect();
            let nearest = nearest(path.as_str(), &paths);
            return Err(MemberError::Missing { path: path.clone(), directory: shown, nearest });
        };
        let Ok(own) = std::str::from_utf8(&own) else {
            return Err(MemberError::Name { path: path.clone(), directory: shown });
        };
        let name = format!("{}/{own}", value.name);
        Ok(Stored { name, digest, stamp: Stamp::Modified(0) })
    }
}
