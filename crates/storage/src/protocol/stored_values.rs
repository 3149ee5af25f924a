//! Values in the storage: read, sealed and unpacked; members of directories; and archives, which are directories as a results
//! repository holds them.

use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::task_inputs::{Inputs, line_of, read_short};
use super::{Storage, Stored};
use crate::disk::{IoContext, MAX_TEXT_FILE, Result, StorageError, ValueMetadata};
use crate::paths::ResultName;
use crate::records::{CallRecord, ExpectedFile, Origin, Published, Stamp};
use ce_files::attributes::Sealing;
use ce_files::manifest::{
    DirectoryArchive, EntryKind, Manifest, ManifestError, ManifestMember, Scan, ValuePiece,
};
use ce_model::digest::{Digest, Hasher, PIECE};
use ce_model::exit::Explain;
use ce_model::name::MemberPath;
use ce_model::suggest::nearest;

/// The reason why a value has no such member.
#[derive(Debug, thiserror::Error, Explain)]
pub enum MemberError {
    /// Nothing has that path.
    #[error("there is no {path} in the directory {}", directory.display())]
    #[hint(Some(missing_member_hint(directory, nearest.as_deref())))]
    Missing {
        path: MemberPath,
        directory: PathBuf,
        /// A path in it that may be meant.
        nearest: Option<String>,
    },
    /// The value is a file.
    #[error("there is no {path} in {}, which is a file", file.display())]
    #[hint("take the file itself, without a node of kind member")]
    NotADirectory { path: MemberPath, file: PathBuf },
    /// It is a directory that cannot be a value.
    #[error("{} cannot be a value for itself: {source}", directory.display())]
    #[hint("take the directory around it")]
    Refused {
        directory: PathBuf,
        /// The reason.
        source: ManifestError,
    },
    /// Its name cannot be one in the storage.
    #[error("the path of {path} in {} is not UTF-8, or has control characters", directory.display())]
    #[hint("rename it where the directory is made")]
    Name {
        /// The path that was asked for.
        path: MemberPath,
        directory: PathBuf,
    },
    /// The storage cannot be read.
    #[error(transparent)]
    #[hint(_0.hint())]
    Storage(#[from] StorageError),
}

/// What to try if nothing in a directory has a path.
fn missing_member_hint(directory: &Path, nearest: Option<&str>) -> String {
    match nearest {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("ls {} shows what is there", directory.display()),
    }
}

/// A directory whose members are read.
#[derive(Debug)]
pub struct OpenedValue {
    /// The directory; for a link, its target.
    directory: Stored,
    manifest: Manifest,
    /// The state in which it was found to be the recorded one; `None` if it is not stored yet.
    scan: Option<Scan>,
}

/// Values in the storage: members of directories, and archives.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    storage: &'a Storage,
}

impl<'a> Values<'a> {
    pub(super) const fn new(storage: &'a Storage) -> Self {
        Self { storage }
    }

    /// Reads a file if it has these contents; `None` if it does not exist or has other contents.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or is larger than a record may be.
    pub fn contents(&self, file: &ExpectedFile) -> Result<Option<Vec<u8>>> {
        let read = self.storage.root.disk.read_one(&self.storage.path(&file.name));
        let read = match read {
            Err(error) if error.is_foreign() => None,
            read => read?,
        };
        Ok(read.map(|(_, contents)| contents).filter(|it| Digest::hash_bytes(it) == file.digest))
    }

    /// Returns the text of a value: its contents without one final newline, UTF-8 of at most 4096 bytes without control characters. `None` if
    /// it is something else.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read, or is not what was found.
    pub fn text(&self, file: &Stored) -> Result<Option<Arc<str>>> {
        let digest = &file.digest;
        if digest.is_directory() || digest.size > MAX_TEXT_FILE {
            return Ok(None);
        }
        if let Some(known) = self.storage.root.texts.get(digest) {
            return Ok(known);
        }
        let expected = ExpectedFile { name: file.name.clone(), digest: *digest, waiting: None };
        match self.contents(&expected)? {
            Some(contents) => Ok(self.storage.root.texts.note(*digest, &contents)),
            None => Err(StorageError::Changed(self.storage.path(&file.name))),
        }
    }

    /// Returns the manifest of a directory with this name: the kept one, or by reading the directory or the archive that a clone of a
    /// results repository has of it. `None` if there is no such directory any more.
    pub fn manifest(&self, name: &str, digest: &Digest) -> Result<Option<Manifest>> {
        if let Some(kept) = self.storage.root.manifest(digest)? {
            return Ok(Some(kept));
        }
        let Some(read) = self.storage.root.read_manifest(name, &self.storage.hasher.stop)? else {
            let archive = self.storage.root.archive(digest)?;
            let archive = archive.as_ref().and_then(|it| DirectoryArchive::parse(it, digest));
            return Ok(archive.map(DirectoryArchive::into_manifest));
        };
        let read = Some(read).filter(|manifest| manifest.digest() == *digest);
        if let Some(manifest) = read.as_ref().filter(|_| self.storage.root.writable) {
            // If it cannot be kept, the directory is read again the next time.
            drop(self.storage.root.keep_manifest(digest, manifest));
        }
        Ok(read)
    }

    /// Whether a value exists and is still the published one.
    pub(crate) fn is_published(&self, name: &str, value: &Published) -> Result<bool> {
        self.storage.hasher.is_published(&self.storage.root, name, value)
    }

    /// Makes a directory at a private path read-only, except its top, hashes it, and keeps its manifest. A directory
    /// that a computation has made has a `sealing`.
    pub(super) fn seal(
        &self,
        path: &Path,
        sealing: Option<&mut Sealing<'_>>,
        stop: &AtomicBool,
    ) -> Result<Published> {
        let root = &self.storage.root;
        root.disk.seal_directory(path, sealing)?;
        let scan = root.disk.surely(|| root.disk.scan(path, stop))?;
        let scan = scan.ok_or_else(|| StorageError::Moved(path.to_owned()))?;
        let manifest = root.disk.read_whole(|| {
            let read = scan.read(stop, &AtomicU64::new(0));
            read.map_err(|error| StorageError::of_directory(path, error))
        })?;
        let digest = manifest.digest();
        root.keep_manifest(&digest, &manifest)?;
        root.sync_all()?;
        Ok(Published { digest, stamp: Stamp::Scanned(scan.stamp()) })
    }

    /// Opens a value that was found. Its stamp decides whether it still has the same contents, as when it was found. A file
    /// has no members.
    ///
    /// # Errors
    ///
    /// Fails if it was changed or replaced meanwhile, or the storage cannot be read.
    pub fn open_value(&self, value: &Stored) -> Result<OpenedValue> {
        let Stored { name, digest, stamp } = value;
        let directory = Stored { name: self.storage.root.maker(name)?, ..value.clone() };
        if !digest.is_directory() {
            return Ok(OpenedValue { directory, manifest: Manifest::default(), scan: None });
        }
        let path = self.storage.root.path(&directory.name);
        let changed = || StorageError::Changed(path.clone());
        let manifest = self.manifest(name, digest)?.ok_or_else(changed)?;
        let published = Published { digest: *digest, stamp: *stamp };
        match self.storage.root.disk.see(&path, &self.storage.hasher.stop)? {
            Some(seen)
                if self.storage.hasher.unchanged(
                    &self.storage.root.disk,
                    &path,
                    &seen,
                    &published,
                )? =>
            {
                let ValueMetadata::Directory(scan, _) = seen else { return Err(changed()) };
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
        let archive = self.storage.root.archive(&directory.digest)?.unwrap_or_default();
        match DirectoryArchive::parse(&archive, &directory.digest) {
            Some(archive) => Ok(self.open_future(directory, archive.into_manifest())),
            None => Err(StorageError::Changed(self.storage.root.path(&directory.name))),
        }
    }

    /// Returns a member of a value. Symbolic links on the way are followed within it. The name of the member begins
    /// with the directory's name. Its stamp is the one with which the directory was opened.
    ///
    /// # Errors
    ///
    /// Fails if there is no such member, or it cannot be a value.
    pub fn member(&self, value: &OpenedValue, path: &MemberPath) -> Result<Stored, MemberError> {
        let OpenedValue { directory: Stored { name, digest, .. }, manifest, scan } = value;
        let shown = self.storage.shown(name);
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
            (Some(_), None) => Err(StorageError::Changed(self.storage.root.path(name)).into()),
            (None, _) => Err(MemberError::Name { path: path.clone(), directory: shown }),
        }
    }

    /// Returns a member of any value with these contents, if there is one.
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

/// A value as a results repository holds it: a file, or the archive of a directory.
#[derive(Debug)]
pub enum SharedContents {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// A file with its bytes, outside of the storage. It is not held in memory.
    Object(PathBuf),
}

/// A value as a results repository holds it. It was compared with its digest, unless it is an object.
#[derive(Debug)]
pub(super) enum SharedValue<'a> {
    /// A file with its bytes, which are compared when they are copied.
    Object(&'a Path),
    /// A file.
    File(&'a [u8]),
    /// A directory.
    Directory(DirectoryArchive<'a>),
}

impl<'a> SharedValue<'a> {
    /// Reads a value. `None` unless it has this digest.
    pub(super) fn parse(contents: &'a [u8], digest: &Digest) -> Option<Self> {
        if digest.is_directory() {
            DirectoryArchive::parse(contents, digest).map(Self::Directory)
        } else {
            (Digest::hash_bytes(contents) == *digest).then_some(Self::File(contents))
        }
    }

    /// Reads a value that may be an object. `None` if it is known not to have this digest.
    pub(super) fn of_shared(contents: &'a SharedContents, digest: &Digest) -> Option<Self> {
        match contents {
            SharedContents::Bytes(bytes) => Self::parse(bytes, digest),
            SharedContents::Object(path) => Some(Self::Object(path)),
        }
    }
}

impl<'a> Values<'a> {
    /// Returns the text of a value that is one short line, without its newline. `None` if it has other contents than these, or
    /// cannot be read.
    pub fn short_text(&self, name: &str, digest: &Digest) -> Option<String> {
        if digest.is_directory() || digest.size > Inputs::SHORT_TEXT {
            return None;
        }
        let contents = read_short(&self.storage.root, name)?;
        (Digest::hash_bytes(&contents) == *digest).then(|| line_of(contents))?
    }

    /// Reads a value as a results repository holds it: a file, or the archive of a directory, in memory. `None` if the
    /// value does not exist, or is not the recorded one.
    pub fn shared_contents(&self, file: &ExpectedFile) -> Result<Option<Vec<u8>>> {
        if file.digest.is_directory() {
            self.archive(&file.name, &file.digest)
        } else {
            self.contents(file)
        }
    }

    /// Passes a value on as a results repository holds it, piece by piece. Returns whether it was the recorded one,
    /// which is known only at the end. False also if the value does not exist, or once the function breaks.
    pub fn pieces(
        &self,
        file: &ExpectedFile,
        each: &mut dyn FnMut(ValuePiece<'_>) -> ControlFlow<()>,
    ) -> Result<bool> {
        let (root, stop) = (&self.storage.root, &self.storage.hasher.stop);
        if !file.digest.is_directory() {
            let path = self.storage.path(&file.name);
            let Some(opened) = root.disk.lines(&path)? else { return Ok(false) };
            let found = pass_on(opened.into_inner(), stop, each).context("read", &path)?;
            return Ok(found == Some(file.digest));
        }
        let path = root.value(&file.name, &file.digest)?;
        let scan = match root.disk.scan(&path, stop) {
            Ok(Some(scan)) => scan,
            Ok(None) => {
                // A clone may have its archive.
                let Some(archive) = root.archive(&file.digest)? else { return Ok(false) };
                return Ok(each(ValuePiece::Bytes(&archive)).is_continue());
            }
            Err(StorageError::Directory { .. }) => return Ok(false),
            Err(error) if error.is_foreign() => return Ok(false),
            Err(error) => return Err(error),
        };
        let Some(manifest) = self.manifest(&file.name, &file.digest)? else { return Ok(false) };
        match scan.pieces(&manifest, stop, each) {
            Ok(is_recorded) => Ok(is_recorded),
            Err(error) => match StorageError::of_directory(&path, error) {
                // It changes.
                StorageError::Directory { .. } => Ok(false),
                error => Err(error),
            },
        }
    }

    fn archive(&self, name: &str, digest: &Digest) -> Result<Option<Vec<u8>>> {
        let (root, stop) = (&self.storage.root, &self.storage.hasher.stop);
        let path = root.value(name, digest)?;
        let scan = match root.disk.scan(&path, stop) {
            Ok(Some(scan)) => scan,
            // Something was put into it that no value has, or something else has its place.
            Err(StorageError::Directory { .. }) => return Ok(None),
            Err(error) if error.is_foreign() => return Ok(None),
            // A clone may have its archive.
            Ok(None) => return root.archive(digest),
            Err(error) => return Err(error),
        };
        if Some(scan.bytes()) != digest.bytes {
            return Ok(None);
        }
        let archive = match scan.archive(stop) {
            Ok(archive) => archive,
            Err(error) => match StorageError::of_directory(&path, error) {
                // It changes.
                StorageError::Directory { .. } => return Ok(None),
                error => return Err(error),
            },
        };
        let is_recorded = DirectoryArchive::parse(&archive, digest).is_some();
        Ok(is_recorded.then_some(archive))
    }

    /// Unpacks an output of a call from elsewhere that is a directory and is not there, if the storage is a clone of a results
    /// repository and has its archive. It appears whole. An output that cannot be unpacked is found missing next.
    pub(super) fn unpack_output(&self, name: &ResultName, number: usize, record: &CallRecord) {
        let digest = &record.outputs[number].digest;
        let may_be = matches!(record.origin, Origin::Shared(_)) && digest.is_directory();
        if may_be && self.storage.root.writable {
            drop(self.unpack(&name.output(number), digest));
        }
    }

    /// Unpacks a directory with this name that is not there, if the storage is a clone of a results repository and has its archive.
    pub fn unpack(&self, file: &str, digest: &Digest) -> Result<()> {
        let root = &self.storage.root;
        if root.disk.metadata(&root.path(file))?.is_some() {
            return Ok(());
        }
        match self.unpacked(digest)? {
            Some(private) => self.reveal(&private, file, digest),
            None => Ok(()),
        }
    }

    /// Returns a path in this run's own directory, where nothing is.
    pub fn private_path(&self) -> Result<PathBuf> {
        self.storage.root.private_path()
    }

    /// Puts the value with this name, which is not there, into its place, from a file with its bytes. It appears whole. Returns
    /// false if these are others, or the file system cannot hold it.
    pub fn bring(&self, name: &str, digest: &Digest, object: &Path) -> Result<bool> {
        let root = &self.storage.root;
        let private = root.private_path()?;
        let written = self.write_shared(&private, &SharedValue::Object(object), digest);
        if !matches!(written, Ok(Some(_))) {
            root.disk.remove_tree(&private)?;
            return written.map(|_| false);
        }
        root.sync(&private)?;
        self.reveal(&private, name, digest)?;
        Ok(true)
    }

    /// Moves a value from a private path to its place, unless another run was faster.
    fn reveal(&self, private: &Path, name: &str, digest: &Digest) -> Result<()> {
        let root = &self.storage.root;
        let place = root.place(name)?;
        if !root.disk.rename_new(private, &place)? {
            return root.disk.remove_tree(private);
        }
        if digest.is_directory() {
            root.disk.seal_top(&place)?;
        }
        root.unsynced.note_entry(&place);
        Ok(())
    }

    /// Unpacks a directory that the storage has in its archive to a private path, read-only except its top. `None` if
    /// there is no archive, or the file system cannot hold the directory.
    pub(super) fn unpacked(&self, digest: &Digest) -> Result<Option<PathBuf>> {
        let root = &self.storage.root;
        let Some(contents) = root.archive(digest)? else { return Ok(None) };
        let Some(value) = SharedValue::parse(&contents, digest) else { return Ok(None) };
        let private = root.private_path()?;
        let written = self.write_shared(&private, &value, digest);
        if matches!(written, Ok(Some(_))) {
            return Ok(Some(private));
        }
        root.disk.remove_tree(&private)?;
        written.map(|_| None)
    }

    /// Writes a literal to a private path, durably: users may remove their own copies. Returns false if the file system
    /// cannot hold it.
    pub(super) fn write_literal(
        &self,
        path: &Path,
        value: &SharedValue<'_>,
        digest: &Digest,
    ) -> Result<bool> {
        let root = &self.storage.root;
        match value {
            SharedValue::File(contents) => {
                root.disk.write(path, contents)?;
                root.sync(path)?;
                Ok(true)
            }
            SharedValue::Directory(archive) => {
                if !root.disk.unpack(archive, path)? {
                    return Ok(false);
                }
                let scan = root.disk.surely(|| root.disk.scan(path, &self.storage.hasher.stop))?;
                let scan = scan.ok_or_else(|| StorageError::Moved(path.to_owned()))?;
                root.sync_all()?;
                Ok(self.storage.hasher.directory_digest(path, &scan)? == *digest)
            }
            // No literal is an object.
            SharedValue::Object(_) => Ok(false),
        }
    }

    /// Writes a value to a private path, read-only except the top of a directory. `None` if the file system cannot hold
    /// it.
    pub(super) fn write_shared(
        &self,
        path: &Path,
        value: &SharedValue<'_>,
        digest: &Digest,
    ) -> Result<Option<Published>> {
        let disk = &self.storage.root.disk;
        match value {
            SharedValue::File(contents) => {
                disk.write(path, contents)?;
                let stamp = Stamp::Modified(disk.seal(path)?);
                Ok(Some(Published { digest: *digest, stamp }))
            }
            SharedValue::Object(object) => self.write_object(path, object, digest),
            SharedValue::Directory(archive) => {
                if !disk.unpack(archive, path)? {
                    return Ok(None);
                }
                // It was in memory.
                let sealed = self.seal(path, None, &AtomicBool::new(false))?;
                // A file system may change names.
                Ok((sealed.digest == *digest).then_some(sealed))
            }
        }
    }

    /// Writes a value from a file with its bytes to a private path. `None` if these are others, or the file system cannot hold it.
    fn write_object(
        &self,
        path: &Path,
        object: &Path,
        digest: &Digest,
    ) -> Result<Option<Published>> {
        let (disk, stop) = (&self.storage.root.disk, &self.storage.hasher.stop);
        let mut object = File::open(object).context("read", object)?;
        if digest.is_directory() {
            if !disk.unpack_object(&mut BufReader::with_capacity(PIECE, object), digest, path)? {
                return Ok(None);
            }
            let sealed = self.seal(path, None, stop)?;
            return Ok((sealed.digest == *digest).then_some(sealed));
        }
        let mut found = None;
        disk.write_by(path, |out| {
            let mut written = Ok(());
            found = pass_on(&mut object, stop, &mut |piece| {
                let ValuePiece::Bytes(piece) = piece else { return ControlFlow::Continue(()) };
                written = out.write_all(piece);
                if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            written
        })?;
        if found != Some(*digest) {
            self.storage.inputs().go_on()?;
            return Ok(None);
        }
        let stamp = Stamp::Modified(disk.seal(path)?);
        Ok(Some(Published { digest: *digest, stamp }))
    }
}

/// Passes all bytes on, and returns their digest; `None` once the function breaks, or when it was interrupted.
fn pass_on(
    mut from: impl Read,
    stop: &AtomicBool,
    each: &mut dyn FnMut(ValuePiece<'_>) -> ControlFlow<()>,
) -> std::io::Result<Option<Digest>> {
    let (mut hasher, mut piece) = (Hasher::default(), vec![0; PIECE]);
    loop {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let count = match from.read(&mut piece) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if count == 0 {
            return Ok(Some(hasher.finish()));
        }
        hasher.update(&piece[..count]);
        if each(ValuePiece::Bytes(&piece[..count])).is_break() {
            return Ok(None);
        }
    }
}
