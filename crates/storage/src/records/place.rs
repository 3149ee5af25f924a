//! The places of values: a directory may be another result's, and stand behind a symbolic link.
//!
//! Directories have one name only. So an output of a job, or one that was taken over from another
//! commit, is a link to the directory of the call that made it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::disk::{Result, Root, StorageError};
use crate::layout::{archive_name, linked, manifest};
use ce_files::manifest::{DirectoryArchive, Manifest};
use ce_model::digest::Digest;

impl Root {
    /// Returns the name of the value itself: that which a link with this name leads to, or the name.
    pub(crate) fn maker(&self, name: &str) -> Result<String> {
        let target = self.disk.link_target(&self.path(name))?;
        let maker = target.as_ref().and_then(|it| linked(name, it.to_str()?));
        Ok(maker.unwrap_or(name).to_owned())
    }

    /// Returns the path of a value, which is no link unless something else has put it there.
    pub(crate) fn value(&self, name: &str, digest: &Digest) -> Result<PathBuf> {
        // Files are found by one look. They never are links.
        match digest.is_directory() {
            true => Ok(self.path(&self.maker(name)?)),
            false => Ok(self.path(name)),
        }
    }

    /// Keeps the manifest of a directory, so that the directory need not be read for it.
    pub(crate) fn keep_manifest(&self, digest: &Digest, contents: &Manifest) -> Result<()> {
        let name = manifest(digest);
        if self.disk.exists(&self.path(&name))? {
            return Ok(());
        }
        let mut text = Vec::new();
        // Writing to memory cannot fail.
        drop(contents.write(&mut text));
        let private = self.private_path()?;
        self.disk.write_sealed(&private, &text, 0o444)?;
        let place = self.place(&name)?;
        self.disk.rename(&private, &place)?;
        self.unsynced.note_new(&place);
        Ok(())
    }

    /// Returns the manifest of a directory if the storage has it.
    pub(crate) fn manifest(&self, digest: &Digest) -> Result<Option<Manifest>> {
        let Some(text) = self.disk.read(&self.path(&manifest(digest)))? else { return Ok(None) };
        let parsed = Manifest::parse(&text).ok();
        Ok(parsed.filter(|manifest| manifest.digest() == *digest))
    }

    /// Reads the archive of a directory, if the storage is a clone of a results repository and has it.
    pub(crate) fn archive(&self, digest: &Digest) -> Result<Option<Vec<u8>>> {
        let path = self.path(&archive_name(digest));
        let is_plain = |size| size == DirectoryArchive::size(digest);
        match self.disk.metadata(&path) {
            Ok(Some(metadata)) if metadata.is_file() && is_plain(metadata.len()) => {}
            Err(error) if !error.is_not_own() => return Err(error),
            _ => return Ok(None),
        }
        let archive = self.disk.read(&path)?;
        Ok(archive.filter(|archive| DirectoryArchive::parse(archive, digest).is_some()))
    }

    /// Reads a directory, and returns its manifest. `None` if there is no such directory.
    pub(crate) fn read_manifest(&self, name: &str, stop: &AtomicBool) -> Result<Option<Manifest>> {
        let path = self.path(&self.maker(name)?);
        let Some(scan) = self.disk.scan(&path, stop)? else { return Ok(None) };
        let read = scan.linked().read(stop, &AtomicU64::new(0));
        read.map(Some).map_err(|error| StorageError::of_directory(&path, error))
    }
}

/// How many differences are named.
const NAMED: usize = 5;

/// Lists the differences of a directory from what is recorded, the first few of them.
pub(crate) fn differences(recorded: &Manifest, found: &Manifest) -> String {
    let all = recorded.differences(found);
    let named: Vec<String> = all.iter().take(NAMED).map(ToString::to_string).collect();
    let more = match all.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    named.join(", ") + &more
}
