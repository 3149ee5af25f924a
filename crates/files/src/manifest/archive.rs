//! Archives: a directory in one file, for storing it where modes and empty directories are lost.
//!
//! An archive is the text of the manifest, an empty line, and the contents of all files in the order of the manifest, with
//! nothing between them. So equal directories have equal archives, byte for byte.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use ce_model::digest::{Digest, Hasher, PIECE};
use rustix::fs::{Mode, OFlags, openat};

use super::format::{EntryKind, Manifest, ManifestEntry};
use super::hash_files::{FileCopy, make_way};
use super::scan::{Descent, Scan};
use super::{DirectoryError, split_path};
use crate::open_leased;

/// The end of the manifest and the empty line after it. No manifest has an empty line.
const END: &[u8] = b"\n\n";

/// The archive of a directory, after a check: manifest and files match its digest.
#[derive(Debug)]
pub struct DirectoryArchive<'a> {
    manifest: Manifest,
    /// The contents of all files.
    contents: &'a [u8],
}

impl<'a> DirectoryArchive<'a> {
    /// The size of the archive of a directory with this digest, in bytes.
    pub const fn size(digest: &Digest) -> u64 {
        let Digest { size, bytes, .. } = digest;
        let bytes = match bytes {
            Some(bytes) => *bytes,
            None => 0,
        };
        size.saturating_add(1).saturating_add(bytes)
    }

    /// Reads an archive. `None` unless it is the archive of the directory with this digest, from the first byte to the last.
    pub fn parse(archive: &'a [u8], digest: &Digest) -> Option<Self> {
        let end = archive.windows(END.len()).position(|bytes| bytes == END)?;
        let (text, contents) = (&archive[..=end], &archive[end + END.len()..]);
        let manifest = Manifest::parse(text).ok()?;
        if manifest.digest() != *digest || contents.len() as u64 != manifest.bytes() {
            return None;
        }
        let archive = Self { manifest, contents };
        let is_whole = archive.entries().all(|(entry, contents)| match &entry.kind {
            EntryKind::File { contents: known, .. } => Digest::hash_bytes(contents) == *known,
            EntryKind::Link { .. } | EntryKind::Empty => true,
        });
        is_whole.then_some(archive)
    }

    /// The manifest of the directory.
    pub fn into_manifest(self) -> Manifest {
        self.manifest
    }

    /// The entries in the order of the manifest, each with its contents if it is a file.
    pub fn entries(&self) -> impl Iterator<Item = (&ManifestEntry<Digest>, &'a [u8])> {
        let mut rest = self.contents;
        self.manifest.entries().iter().map(move |entry| {
            let size = match &entry.kind {
                EntryKind::File { contents, .. } => contents.size,
                EntryKind::Link { .. } | EntryKind::Empty => 0,
            };
            // The sizes have the sum that the contents have.
            let (contents, later) = rest.split_at(usize::try_from(size).unwrap_or(rest.len()));
            rest = later;
            (entry, contents)
        })
    }

    /// Writes everything into an empty directory. Files are read-only, directories are not.
    pub fn unpack(&self, to: &OwnedFd) -> Result<(), DirectoryError> {
        let mut descent = Descent::new(to)?;
        for (entry, contents) in self.entries() {
            let directory = make_way(&mut descent, entry)?;
            if let EntryKind::File { executable, .. } = entry.kind {
                let copy = FileCopy::new(&directory, &entry.path, executable)?;
                let written = copy.file.write_all_at(contents, 0);
                written.map_err(|source| DirectoryError::write(&entry.path, source))?;
            }
        }
        Ok(())
    }
}

impl DirectoryArchive<'_> {
    /// Reads the archive of the directory with this digest piece by piece, and writes everything into an empty
    /// directory. Returns false if it is another one, or not an archive: then the written files are useless.
    pub fn unpack_from(
        archive: &mut dyn Read,
        digest: &Digest,
        to: &OwnedFd,
    ) -> Result<bool, DirectoryError> {
        let failed = |source| DirectoryError::Io { path: [].into(), source };
        let mut text = Vec::new();
        (&mut *archive)
            .take(digest.size.saturating_add(1))
            .read_to_end(&mut text)
            .map_err(failed)?;
        let is_ended = text.pop() == Some(b'\n');
        let Ok(manifest) = Manifest::parse(&text) else { return Ok(false) };
        if !is_ended || manifest.digest() != *digest {
            return Ok(false);
        }
        let mut descent = Descent::new(to)?;
        for entry in manifest.entries() {
            let directory = make_way(&mut descent, entry)?;
            let EntryKind::File { contents, executable } = &entry.kind else { continue };
            let mut copy = FileCopy::new(&directory, &entry.path, *executable)?;
            let mut hasher = Hasher::default();
            let mut rest = (&mut *archive).take(contents.size);
            read_pieces(&mut rest, &entry.path, |piece| {
                hasher.update(piece);
                let written = copy.file.write_all(piece);
                written.map_err(|source| DirectoryError::write(&entry.path, source))?;
                Ok(ControlFlow::Continue(()))
            })?;
            if hasher.finish() != *contents {
                return Ok(false);
            }
        }
        // Not one byte more.
        Ok(archive.read(&mut [0]).map_err(failed)? == 0)
    }
}

/// Reads the file with this path in pieces, unless the function breaks. Returns whether it was read to its end.
fn read_pieces(
    from: &mut dyn Read,
    path: &[u8],
    mut each: impl FnMut(&[u8]) -> Result<ControlFlow<()>, DirectoryError>,
) -> Result<bool, DirectoryError> {
    let mut piece = vec![0; PIECE];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(true),
            Ok(count) => {
                if each(&piece[..count])?.is_break() {
                    return Ok(false);
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(source) => return Err(DirectoryError::Io { path: path.into(), source }),
        }
    }
}

/// A piece of a value as a results repository holds it.
#[derive(Clone, Copy, Debug)]
pub enum ValuePiece<'a> {
    /// The contents of the file with this path in a directory begin.
    File(&'a [u8]),
    /// The next bytes.
    Bytes(&'a [u8]),
}

impl Scan {
    /// Reads all files of a directory with this manifest, and passes its archive on piece by piece. Returns false if it is another
    /// directory, or once the function breaks.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read, and once `stop` is set.
    pub fn pieces(
        &self,
        manifest: &Manifest,
        stop: &AtomicBool,
        each: &mut dyn FnMut(ValuePiece<'_>) -> ControlFlow<()>,
    ) -> Result<bool, DirectoryError> {
        let mut text = Vec::new();
        // Writing to memory cannot fail.
        drop(manifest.write(&mut text));
        text.push(b'\n');
        if self.entries.len() != manifest.entries().len()
            || each(ValuePiece::Bytes(&text)).is_break()
        {
            return Ok(false);
        }
        let mut descent = Descent::new(&self.top)?;
        for (ManifestEntry { path, kind }, recorded) in self.entries.iter().zip(manifest.entries())
        {
            let is_same = *path == recorded.path
                && match (kind, &recorded.kind) {
                    (
                        EntryKind::File { executable, .. },
                        EntryKind::File { contents, executable: recorded },
                    ) if executable == recorded => {
                        descent.go_to(split_path(path).0)?;
                        each(ValuePiece::File(path)).is_continue()
                            && has_contents(descent.directory(), path, contents, stop, each)?
                    }
                    (EntryKind::Link { target }, EntryKind::Link { target: recorded }) => {
                        target == recorded
                    }
                    (EntryKind::Empty, EntryKind::Empty) => true,
                    _ => false,
                };
            if !is_same {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The function that is called with each piece, until it breaks.
type EachPiece<'a> = dyn FnMut(ValuePiece<'_>) -> ControlFlow<()> + 'a;

/// Passes a file on, and returns whether it has these contents.
fn has_contents(
    directory: &OwnedFd,
    path: &[u8],
    contents: &Digest,
    stop: &AtomicBool,
    each: &mut EachPiece<'_>,
) -> Result<bool, DirectoryError> {
    let mut hasher = Hasher::default();
    // A file that grows is read no further.
    let mut file = open(directory, path)?.take(contents.size.saturating_add(1));
    let is_whole = read_pieces(&mut file, path, |piece| {
        if stop.load(Ordering::Relaxed) {
            return Err(DirectoryError::Interrupted);
        }
        hasher.update(piece);
        Ok(each(ValuePiece::Bytes(piece)))
    })?;
    Ok(is_whole && hasher.finish() == *contents)
}

impl Scan {
    /// Reads all files, and returns the archive of the directory as it was scanned. It is held in memory.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or has another size than when it was scanned, and once `stop` is set.
    pub fn archive(&self, stop: &AtomicBool) -> Result<Vec<u8>, DirectoryError> {
        let mut descent = Descent::new(&self.top)?;
        let (mut entries, mut all) = (Vec::with_capacity(self.entries.len()), Vec::new());
        for ManifestEntry { path, kind } in &self.entries {
            if stop.load(Ordering::Relaxed) {
                return Err(DirectoryError::Interrupted);
            }
            let kind = match kind {
                EntryKind::File { contents, executable } => {
                    descent.go_to(split_path(path).0)?;
                    let begin = all.len();
                    read(descent.directory(), path, contents.size, &mut all)?;
                    let contents = Digest::hash_bytes(&all[begin..]);
                    EntryKind::File { contents, executable: *executable }
                }
                EntryKind::Link { target } => EntryKind::Link { target: target.clone() },
                EntryKind::Empty => EntryKind::Empty,
            };
            entries.push(ManifestEntry { path: path.clone(), kind });
        }
        let mut archive = Vec::with_capacity(all.len());
        // Writing to memory cannot fail.
        drop(Manifest::of_sorted(entries).write(&mut archive));
        archive.push(b'\n');
        archive.append(&mut all);
        Ok(archive)
    }
}

/// Opens a file of a directory.
fn open(directory: &OwnedFd, path: &[u8]) -> Result<File, DirectoryError> {
    // If it is a FIFO now, opening it does not wait.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let name = split_path(path).1;
    let file = open_leased(|| false, || openat(directory, name, flags, Mode::empty()));
    Ok(file.map_err(|error| DirectoryError::from_errno(path, error))?.into())
}

/// Appends the contents of a file that should have this size.
fn read(
    directory: &OwnedFd,
    path: &[u8],
    size: u64,
    all: &mut Vec<u8>,
) -> Result<(), DirectoryError> {
    let read = open(directory, path)?.take(size.saturating_add(1)).read_to_end(all);
    match read.map_err(|source| DirectoryError::Io { path: path.into(), source })? {
        read if read as u64 == size => Ok(()),
        _ => Err(DirectoryError::Changed(path.into())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use super::*;

    fn open_dir(path: &Path) -> OwnedFd {
        File::open(path).unwrap().into()
    }

    fn scan(path: &Path) -> Scan {
        Scan::at(path, &AtomicBool::new(false)).unwrap()
    }

    /// A directory with all kinds of entries, its archive and its digest.
    fn example() -> (Vec<u8>, Digest) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("b/none")).unwrap();
        for (name, text) in [("a", "one\n\ntwo"), ("b/empty", ""), ("b.run", "#!/bin/sh\n")] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        fs::set_permissions(dir.path().join("b.run"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("../a", dir.path().join("b/link")).unwrap();
        let archive = scan(dir.path()).archive(&AtomicBool::new(false)).unwrap();
        let manifest = scan(dir.path()).read(&AtomicBool::new(false), &Default::default());
        (archive, manifest.unwrap().digest())
    }

    #[test]
    fn an_unpacked_directory_has_the_same_archive() {
        let (archive, digest) = example();
        assert_eq!(archive.len() as u64, DirectoryArchive::size(&digest));
        let dir = tempfile::tempdir().unwrap();
        DirectoryArchive::parse(&archive, &digest).unwrap().unpack(&open_dir(dir.path())).unwrap();
        assert_eq!(scan(dir.path()).archive(&AtomicBool::new(false)).unwrap(), archive);
        let end = archive.windows(2).position(|bytes| bytes == END).unwrap();
        assert_eq!(archive[end + 2..], *b"one\n\ntwo#!/bin/sh\n", "in the order of the manifest");
    }

    /// Unpacks an archive piece by piece. Returns whether it matches the digest.
    fn unpacks(archive: &[u8], digest: &Digest) -> bool {
        let dir = tempfile::tempdir().unwrap();
        let unpacked =
            DirectoryArchive::unpack_from(&mut &*archive, digest, &open_dir(dir.path())).unwrap();
        if unpacked {
            assert_eq!(scan(dir.path()).archive(&AtomicBool::new(false)).unwrap(), archive);
        }
        unpacked
    }

    #[test]
    fn an_archive_is_checked_byte_by_byte() {
        let (archive, digest) = example();
        assert!(unpacks(&archive, &digest));
        for at in 0..archive.len() {
            let mut other = archive.clone();
            other[at] ^= 1;
            assert!(!unpacks(&other, &digest), "byte {at}");
            assert!(!unpacks(&archive[..at], &digest), "{at} bytes");
        }
        assert!(!unpacks(&[&*archive, b"\n"].concat(), &digest), "longer");
        let dir = tempfile::tempdir().unwrap();
        let parsed = DirectoryArchive::parse(&archive, &digest).unwrap();
        parsed.unpack(&open_dir(dir.path())).unwrap();
        let manifest = parsed.into_manifest();
        let passed = |dir: &Path| {
            let (mut all, mut paths) = (Vec::new(), Vec::new());
            let is_whole = scan(dir).pieces(&manifest, &AtomicBool::new(false), &mut |piece| {
                match piece {
                    ValuePiece::File(path) => paths.push(path.to_vec()),
                    ValuePiece::Bytes(bytes) => all.extend_from_slice(bytes),
                }
                ControlFlow::Continue(())
            });
            is_whole.unwrap().then_some((all, paths))
        };
        let paths = [b"a".to_vec(), b"b.run".to_vec(), b"b/empty".to_vec()];
        assert_eq!(passed(dir.path()).unwrap(), (archive, paths.to_vec()));
        fs::set_permissions(dir.path().join("a"), fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(dir.path().join("a"), "one\n\ntwO").unwrap();
        assert_eq!(passed(dir.path()), None, "a file is another one");
        fs::remove_file(dir.path().join("a")).unwrap();
        assert_eq!(passed(dir.path()), None, "a file is missing");
    }

    #[test]
    fn an_archive_with_any_changed_byte_is_refused() {
        let (archive, digest) = example();
        for at in 0..archive.len() {
            let mut other = archive.clone();
            other[at] ^= 1;
            assert!(DirectoryArchive::parse(&other, &digest).is_none(), "byte {at}");
            assert!(DirectoryArchive::parse(&archive[..at], &digest).is_none(), "{at} bytes");
        }
        let longer = [&*archive, b"\n"].concat();
        assert!(DirectoryArchive::parse(&longer, &digest).is_none());
        let other = Digest { bytes: digest.bytes.map(|it| it + 1), ..digest };
        assert!(DirectoryArchive::parse(&archive, &other).is_none(), "another size in the record");
        assert!(
            DirectoryArchive::parse(&archive, &Digest { bytes: None, ..digest }).is_none(),
            "a file"
        );
    }

    #[test]
    fn no_entry_of_an_archive_leads_out() {
        let (one, up) = (Digest::hash_bytes(b"1"), "../".repeat(3));
        let file = |path: &str| format!("file {} {path}\n", super::super::format::contents(&one));
        let texts = [
            file("../x"),
            file("/x"),
            file("a/../../x"),
            file("./x"),
            file("a//x"),
            file(".."),
            format!("link {up}x\ta\n"),
            "link /x\ta\n".to_owned(),
            format!("link b\ta\n{}", file("a/x")),
            "dir ..\n".to_owned(),
        ];
        for text in texts {
            let text = format!("{}\n{text}", super::super::format::HEADER);
            let contents = if text.contains("\nfile ") { "1" } else { "" };
            let archive = format!("{text}\n{contents}");
            let digest = Digest {
                bytes: Some(contents.len() as u64),
                ..Digest::hash_bytes(text.as_bytes())
            };
            assert!(DirectoryArchive::parse(archive.as_bytes(), &digest).is_none(), "{text}");
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir(dir.path().join("in")).unwrap();
            let to = open_dir(&dir.path().join("in"));
            let unpacked = DirectoryArchive::unpack_from(&mut archive.as_bytes(), &digest, &to);
            assert!(!unpacked.unwrap(), "{text}");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "{text}");
        }
        let text = format!("{}\n{}", super::super::format::HEADER, file("x"));
        let digest = Digest { bytes: Some(1), ..Digest::hash_bytes(text.as_bytes()) };
        assert!(unpacks(format!("{text}\n1").as_bytes(), &digest), "only the names are wrong");
    }

    #[test]
    fn an_empty_directory_has_an_archive() {
        let dir = tempfile::tempdir().unwrap();
        let archive = scan(dir.path()).archive(&AtomicBool::new(false)).unwrap();
        assert_eq!(archive, b"compeval directory 1\n\n");
        let digest = Manifest::default().digest();
        assert_eq!(DirectoryArchive::parse(&archive, &digest).unwrap().entries().count(), 0);
    }
}
