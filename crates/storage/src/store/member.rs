//! Members: files and directories within a directory that is a value.

use std::path::{Path, PathBuf};

use super::{Storage, Stored};
use crate::disk::{Result, SeenValue, StorageError};
use crate::records::{Published, Stamp};
use ce_files::manifest::{
    DirectoryArchive, EntryKind, Manifest, ManifestError, ManifestMember, Scan,
};
use ce_model::digest::Digest;
use ce_model::exit::Explain;
use ce_model::task::name::{MemberPath, nearest};

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
    /// Its name cannot be one in the storage.
    #[error("the path of {path} in {} is no UTF-8, or has control characters", directory.display())]
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

impl Explain for MemberError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { nearest: Some(nearest), .. } => {
                Some(format!("did you mean {nearest}?"))
            }
            Self::Missing { directory, .. } => {
                Some(format!("ls {} shows what is there", directory.display()))
            }
            Self::Storage(error) => error.hint(),
            Self::NotADirectory { .. } => {
                Some("take the file itself, without a node of kind member".to_owned())
            }
            Self::Refused { .. } => Some("take the directory around it".to_owned()),
            Self::Name { .. } => Some("rename it where the directory is made".to_owned()),
        }
    }
}

/// A directory of which members are read.
#[derive(Debug)]
pub struct OpenedValue {
    /// The directory; of a link, that which it leads to.
    directory: Stored,
    manifest: Manifest,
    /// The state in which it was found to be the recorded one; `None` if it is not stored yet.
    scan: Option<Scan>,
}

impl Storage {
    /// Opens a value that was found. Its stamp decides whether it still has the same contents, as when it was
    /// found. Of a file nothing is a member.
    ///
    /// # Errors
    ///
    /// Fails if it was changed or replaced meanwhile, or the storage cannot be read.
    pub fn open_value(&self, value: &Stored) -> Result<OpenedValue> {
        let Stored { name, digest, stamp } = value;
        let directory = Stored { name: self.root.maker(name)?, ..value.clone() };
        if !digest.is_directory() {
            return Ok(OpenedValue { directory, manifest: Manifest::default(), scan: None });
        }
        let path = self.root.path(&directory.name);
        let changed = || StorageError::Changed(path.clone());
        let manifest = self.manifest(name, digest)?.ok_or_else(changed)?;
        let published = Published { digest: *digest, stamp: *stamp };
        match self.root.disk.see(&path, &self.ingest.stop)? {
            Some(seen) if self.ingest.unchanged(&self.root.disk, &path, &seen, &published)? => {
                let SeenValue::Directory(scan, _) = seen else { return Err(changed()) };
                Ok(OpenedValue { directory, manifest, scan: Some(scan) })
            }
            _ => Err(changed()),
        }
    }

    /// Opens a directory that is not stored yet, but has this manifest.
    pub const fn open_future(&self, directory: Stored, manifest: Manifest) -> OpenedValue {
        OpenedValue { directory, manifest, scan: None }
    }

    /// Opens a directory that is in its archive only, and is not unpacked.
    ///
    /// # Errors
    ///
    /// Fails if the archive was changed meanwhile, or the storage cannot be read.
    pub fn open_archived(&self, directory: Stored) -> Result<OpenedValue> {
        let archive = self.root.archive(&directory.digest)?.unwrap_or_default();
        match DirectoryArchive::parse(&archive, &directory.digest) {
            Some(archive) => Ok(self.open_future(directory, archive.into_manifest())),
            None => Err(StorageError::Changed(self.root.path(&directory.name))),
        }
    }

    /// Returns a member of a value. Symbolic links on the way are followed within it. The name of the member
    /// goes on after that of the directory. Its stamp is that with which the directory was opened.
    ///
    /// # Errors
    ///
    /// Fails if there is no such member, or it cannot be a value.
    pub fn member(&self, value: &OpenedValue, path: &MemberPath) -> Result<Stored, MemberError> {
        let OpenedValue { directory: Stored { name, digest, .. }, manifest, scan } = value;
        let shown = self.shown(name);
        if !digest.is_directory() {
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
        let stamp = match scan {
            Some(scan) if digest.is_directory() => Some(Stamp::Scanned(scan.stamp_of(&own))),
            Some(scan) => scan.modified_ns(&own).map(Stamp::Modified),
            None => Some(Stamp::Unknown),
        };
        let own = str::from_utf8(&own).ok().filter(|own| !own.contains(char::is_control));
        match (own, stamp) {
            (Some(own), Some(stamp)) => Ok(Stored { name: format!("{name}/{own}"), digest, stamp }),
            (Some(_), None) => Err(StorageError::Changed(self.root.path(name)).into()),
            (None, _) => Err(MemberError::Name { path: path.clone(), directory: shown }),
        }
    }

    /// Returns a member of a value with these contents, if there is one.
    pub fn member_with(&self, value: &OpenedValue, digest: &Digest) -> Option<Stored> {
        let entries = value.manifest.entries().iter();
        let mut paths = entries.flat_map(|entry| {
            let path = Path::new(str::from_utf8(&entry.path).unwrap_or_default());
            let may_be = match &entry.kind {
                EntryKind::File { contents, .. } => contents == digest,
                EntryKind::Empty => digest.is_directory(),
                EntryKind::Link { .. } => false,
            };
            let around = path.ancestors().skip(1).filter(|_| digest.is_directory());
            may_be.then_some(path).into_iter().chain(around).filter_map(Path::to_str)
        });
        paths.find_map(|path| {
            let member = self.member(value, &path.parse().ok()?).ok()?;
            (member.digest == *digest).then_some(member)
        })
    }
}
