//! The contents of outputs on a page.
//!
//! A page holds the contents of outputs as far as there is room, and nothing that looks like a secret. Text of outputs is
//! data: no markup is made of it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ce_exchange::Secrets;
use ce_files::manifest::{EntryKind, Manifest};
use ce_model::digest::Digest;
use ce_model::file_format::FileFormat;

/// The largest number of files of a directory that are listed, and copied beside a page.
pub const MEMBERS: usize = 10_000;

/// The contents of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputContents {
    pub format: FileFormat,
    /// The size in bytes.
    pub size: u64,
    /// The contents, or why they are not on the page.
    pub held: Result<Vec<u8>, NotHeld>,
}

impl OutputContents {
    /// The contents of an output with this name that are not on the page.
    pub(super) fn not_held(name: &str, digest: &Digest, why: NotHeld) -> Self {
        Self { format: FileFormat::detect(name, b""), size: digest.total(), held: Err(why) }
    }
}

/// The copy of a file beside a page. Paths are relative to the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyBeside {
    pub path: String,
    /// The name under which a browser saves it.
    pub saved_as: String,
    /// The page that shows it, if it is a picture that a browser must not open directly.
    pub shown_on: Option<String>,
}

/// A file or a symbolic link in a directory that is an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageMember {
    /// Its path in the directory, which may be any bytes.
    pub path: Box<[u8]>,
    /// The target of a link.
    pub target: Option<Box<[u8]>>,
    /// The size of a file in bytes.
    pub size: u64,
    /// Its contents, if they are a picture or the first table of the directory; else `None`, or why the page must not have them.
    pub contents: Option<OutputContents>,
    /// Its copy, if there is one.
    pub beside: Option<CopyBeside>,
}

impl PageMember {
    /// Its path as a text, for people.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }

    /// The place of its contents, if its directory is at this path.
    pub fn source(&self, dir: &Path) -> PathBuf {
        dir.join(OsStr::from_bytes(&self.path))
    }

    /// Whether it is copied beside a page: a file whose contents are not known to hold a secret.
    pub fn is_copied(&self) -> bool {
        let held = self.contents.as_ref().map(|contents| &contents.held);
        self.target.is_none() && !matches!(held, Some(Err(NotHeld::Secret(_))))
    }

    /// Notes that the page must not have its contents.
    pub fn leave_out(&mut self, why: NotHeld) {
        let (format, size) = (FileFormat::Other, self.size);
        self.contents = Some(OutputContents { format, size, held: Err(why) });
    }
}

/// The reason why contents are not on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotHeld {
    /// They are not in the storage.
    Absent,
    /// They are not in the storage, which is a clone of a results repository that can fetch them.
    Away,
    /// They are a directory.
    Directory,
    /// They have no room.
    TooLarge,
    /// They seem to hold a secret of this kind.
    Secret(String),
}

/// The room for contents on a page, and the secrets that must not be there.
#[derive(Debug)]
pub(super) struct ContentsRoom {
    left: u64,
    secrets: Secrets,
}

impl ContentsRoom {
    /// Room for this number of bytes.
    pub(super) fn new(bytes: u64) -> Self {
        Self { left: bytes, secrets: Secrets::of_environment() }
    }

    /// Reads the contents of an output with this name, if there is room for them.
    pub(super) fn contents(
        &mut self,
        name: &str,
        digest: Digest,
        read: impl FnOnce() -> Option<Vec<u8>>,
    ) -> OutputContents {
        let not_held = |why| OutputContents::not_held(name, &digest, why);
        if digest.is_directory() {
            return not_held(NotHeld::Directory);
        }
        let size = digest.total();
        if size > self.left {
            return not_held(NotHeld::TooLarge);
        }
        let Some(contents) = read() else { return not_held(NotHeld::Absent) };
        if let Some(what) = self.secrets.find(&contents) {
            return not_held(NotHeld::Secret(what));
        }
        self.left -= size;
        OutputContents { format: FileFormat::detect(name, &contents), size, held: Ok(contents) }
    }

    /// Lists the files and links of a directory with this manifest, at a path. Pictures are read, and the first table, as far as there is room.
    pub(super) fn members(&mut self, dir: &Path, manifest: &Manifest) -> Vec<PageMember> {
        let mut members = Vec::new();
        for entry in manifest.entries() {
            let (target, digest) = match &entry.kind {
                EntryKind::File { contents, .. } => (None, Some(*contents)),
                EntryKind::Link { target } => (Some(target.clone()), None),
                EntryKind::Empty => continue,
            };
            let size = digest.map_or(0, |digest| digest.size);
            let path = entry.path.clone();
            members.push((PageMember { path, target, size, contents: None, beside: None }, digest));
        }
        members.sort_by(|(a, _), (b, _)| natural(&a.path).cmp(&natural(&b.path)));
        let mut has_table = false;
        for (member, digest) in &mut members {
            let target = member.target.as_deref().unwrap_or_default();
            let secret = self.secrets.find(&member.path).or_else(|| self.secrets.find(target));
            if let Some(what) = secret {
                (member.path, member.target) = (b"...".as_slice().into(), None);
                member.leave_out(NotHeld::Secret(what));
                continue;
            }
            let Some(digest) = digest else { continue };
            let name = member.shown();
            let is_picture = FileFormat::may_be_picture(&name);
            if !is_picture && (has_table || !FileFormat::may_be_table(&name)) {
                continue;
            }
            let left = self.left;
            let contents =
                self.contents(&name, *digest, || read_member(&member.source(dir), digest));
            let is_shown = match (&contents.held, contents.format) {
                (Err(_), _) => is_picture || matches!(contents.held, Err(NotHeld::Secret(_))),
                (Ok(_), FileFormat::Table(_)) => !std::mem::replace(&mut has_table, true),
                (Ok(_), format) => matches!(format, FileFormat::Picture(_)),
            };
            if is_shown {
                member.contents = Some(contents);
            } else {
                self.left = left;
            }
        }
        members.into_iter().map(|(member, _)| member).collect()
    }
}

/// The parts of a path by which people sort: numbers count as such, so `p2` is before `p10`.
fn natural(path: &[u8]) -> Vec<(&[u8], usize, &[u8])> {
    let parts = path.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit());
    let parts = parts.map(|part| match part[0] {
        b'0'..=b'9' => {
            let zeros = part.iter().take_while(|byte| **byte == b'0').count();
            (b"0".as_slice(), part.len() - zeros, &part[zeros..])
        }
        _ => (part, 0, b"".as_slice()),
    });
    parts.collect()
}

/// Reads a file of a directory if it has these contents.
pub(super) fn read_member(path: &Path, digest: &Digest) -> Option<Vec<u8>> {
    let metadata = path.symlink_metadata().ok()?;
    let contents = (metadata.is_file() && metadata.len() == digest.size).then(|| fs::read(path));
    contents?.ok().filter(|contents| Digest::hash_bytes(contents) == *digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_contents_take_room_and_secrets_are_not_embedded() {
        let mut room = ContentsRoom::new(60);
        let mut held = |text: &str| {
            let contents = text.as_bytes().to_vec();
            room.contents("text", Digest::hash_bytes(&contents), || Some(contents)).held
        };
        let token = format!("a ghp_{} b", "x".repeat(36));
        assert_eq!(held(&token), Err(NotHeld::Secret("a token of GitHub".to_owned())));
        assert_eq!(held(&"x".repeat(61)), Err(NotHeld::TooLarge));
        assert_eq!(held(&"x".repeat(60)), Ok(vec![b'x'; 60]));
        assert_eq!(held("x"), Err(NotHeld::TooLarge));
        let absent = ContentsRoom::new(9).contents("text", Digest::hash_bytes(b"x"), || None);
        assert_eq!((absent.held, absent.size), (Err(NotHeld::Absent), 1));
    }

    #[test]
    fn numbers_in_paths_count_as_such() {
        let mut paths = ["p10", "p2", "p02b", "p", "q1/p10", "q1/p9", "q01"].map(str::as_bytes);
        paths.sort_by_key(|path| natural(path));
        assert_eq!(paths, ["p", "p2", "p02b", "p10", "q01", "q1/p9", "q1/p10"].map(str::as_bytes));
    }
}
