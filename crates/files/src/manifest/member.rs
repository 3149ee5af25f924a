//! Members of a directory, and the difference of two directories, by their manifests.

use std::cmp::Ordering;
use std::fmt;

use ce_model::digest::Digest;

use super::format::{EntryKind, Manifest, ManifestEntry, ManifestError};
use super::path::shown;

/// The greatest number of symbolic links on the way to a member.
const MAX_LINKS: usize = 40;

/// A file or directory within a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestMember {
    /// Its own path, which leads through no symbolic link.
    pub path: Box<[u8]>,
    /// Its digest.
    pub digest: Digest,
}

impl Manifest {
    /// Returns the file or directory with this path, in which each symbolic link is followed.
    /// `None` if there is none.
    ///
    /// # Errors
    ///
    /// Fails if it is a directory that cannot be a value for itself: a link in it leads out of it.
    pub fn member(&self, path: &[u8]) -> Result<Option<ManifestMember>, ManifestError> {
        let Some(path) = self.resolve(path) else { return Ok(None) };
        if let Some(EntryKind::File { contents, .. }) = self.entry(&path) {
            return Ok(Some(ManifestMember { digest: *contents, path: path.into() }));
        }
        let below = self.below(&path);
        if below.is_empty() && self.entry(&path).is_none() && !path.is_empty() {
            return Ok(None);
        }
        let skipped = if path.is_empty() { 0 } else { path.len() + 1 };
        let digest = Self::new(
            below
                .iter()
                .map(|entry| ManifestEntry {
                    path: entry.path[skipped..].into(),
                    kind: entry.kind.clone(),
                })
                .collect(),
        )?
        .digest();
        Ok(Some(ManifestMember { path: path.into(), digest }))
    }

    /// The entry with this path.
    pub(super) fn entry(&self, path: &[u8]) -> Option<&EntryKind<Digest>> {
        let at = self.entries().binary_search_by(|entry| (*entry.path).cmp(path)).ok()?;
        Some(&self.entries()[at].kind)
    }

    /// The entries below a directory.
    fn below(&self, directory: &[u8]) -> &[ManifestEntry<Digest>] {
        if directory.is_empty() {
            return self.entries();
        }
        let prefix = [directory, b"/"].concat();
        let begin = self.entries().partition_point(|entry| *entry.path < *prefix);
        let rest = &self.entries()[begin..];
        &rest[..rest.partition_point(|entry| entry.path.starts_with(&prefix))]
    }

    /// Follows the links in a path.
    fn resolve(&self, path: &[u8]) -> Option<Vec<u8>> {
        let parts = |path: &[u8]| -> Vec<Vec<u8>> {
            path.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec).collect()
        };
        let (mut done, mut left, mut links) = (Vec::new(), parts(path), 0);
        while let Some(part) = left.pop() {
            match &*part {
                b"" | b"." => continue,
                b".."
                    if done.is_empty()
                        || matches!(self.entry(&done), Some(EntryKind::File { .. })) =>
                {
                    return None;
                }
                b".." => {
                    let end = done.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                    done.truncate(end);
                    continue;
                }
                _ => {}
            }
            let around = done.len();
            if around > 0 {
                done.push(b'/');
            }
            done.extend_from_slice(&part);
            if let Some(EntryKind::Link { target }) = self.entry(&done) {
                links += 1;
                if links > MAX_LINKS {
                    return None;
                }
                left.extend(parts(target));
                done.truncate(around);
            }
        }
        Some(done)
    }
}

/// A path with different entries in two directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryDifference<'a> {
    /// The path.
    pub path: &'a [u8],
    /// The entry in each directory, if there is one.
    pub entries: [Option<&'a EntryKind<Digest>>; 2],
}

impl Manifest {
    /// Returns the differences of another directory from this one, sorted by path.
    pub fn differences<'a>(&'a self, other: &'a Self) -> Vec<EntryDifference<'a>> {
        let (mut old, mut new) = (self.entries(), other.entries());
        let mut all = Vec::new();
        loop {
            let order = match (old.first(), new.first()) {
                (None, None) => return all,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(one), Some(other)) => one.path.cmp(&other.path),
            };
            let one = if order.is_le() { old.split_off_first() } else { None };
            let other = if order.is_ge() { new.split_off_first() } else { None };
            if one != other {
                let path = one.or(other).map(|entry| &*entry.path).unwrap_or_default();
                let entries = [one, other].map(|entry| entry.map(|entry| &entry.kind));
                all.push(EntryDifference { path, entries });
            }
        }
    }
}

impl fmt::Display for EntryDifference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.entries {
            [Some(_), None] => "is missing",
            [None, _] => "was added",
            [Some(_), Some(_)] => "was changed",
        };
        write!(f, "{} {what}", shown(self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::HEADER;
    use super::*;

    fn manifest(lines: &str) -> Manifest {
        let digest = Digest::of(b"");
        let empty = format!("0 {} {}", digest.sha1.full(), digest.blake3.full());
        Manifest::parse(format!("{HEADER}\n{}", lines.replace("EMPTY", &empty)).as_bytes()).unwrap()
    }

    fn member(whole: &Manifest, path: &str) -> Option<(String, Digest)> {
        let member = whole.member(path.as_bytes()).unwrap()?;
        Some((String::from_utf8(member.path.into()).unwrap(), member.digest))
    }

    #[test]
    fn a_member_is_a_file_or_the_manifest_of_what_is_below() {
        let whole = manifest(
            "file EMPTY a\nfile EMPTY a.b\ndir b/none\nfile EMPTY b/x\nlink ../b/x\tc/up\n\
             link b\tlink\nlink loop\tloop\n",
        );
        let (file, inner) = (Digest::of(b""), manifest("dir none\nfile EMPTY x\n").digest());
        for (path, own, digest) in [
            ("a", "a", file),
            ("b/x", "b/x", file),
            ("b", "b", inner),
            ("link", "b", inner),
            ("link/x", "b/x", file),
            ("c/up", "b/x", file),
            ("b/none", "b/none", manifest("").digest()),
        ] {
            assert_eq!(member(&whole, path), Some((own.to_owned(), digest)), "{path}");
        }
        for none in
            ["a/..", "a/../b", "..", "b/../..", "x", "a/x", "b/none/x", "b/y", "loop", "lin", "a."]
        {
            assert_eq!(member(&whole, none), None, "{none}");
        }
        assert!(whole.member(b"c").is_err(), "its link leads out of it");
    }
}
