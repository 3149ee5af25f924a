//! The manifest of a directory: its entries, the text that it is written as, and the rules that it must obey; its members, and the
//! difference of two.
//!
//! The parser is strict: a text that is accepted is what [`Manifest::write`] writes.

use std::cmp::Ordering;
use std::fmt;
use std::io::{self, Write};

use ce_model::digest::{Blake3, Digest, Hasher, Sha1};

use super::{LinkFault, PathFault, check_link, check_path, escape, shown, unescape};

/// The size of the pieces in which a text is hashed, in bytes.
const PIECE: usize = 64 << 10;

/// The contents of a directory: its files, its symbolic links, and the empty directories in it.
///
/// The entries are sorted by the bytes of their paths, each path occurs once, and no path leads through
/// another entry. So equal directories have equal manifests, byte for byte. doc/formats.md defines the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    entries: Vec<ManifestEntry<Digest>>,
}

/// Returns the digest of a text that begins with this line and has a line for each entry.
pub(super) fn digest<C>(
    header: &str,
    entries: &[ManifestEntry<C>],
    contents: impl Fn(&C) -> String,
) -> Digest {
    let mut hasher = Hasher::default();
    let mut text = format!("{header}\n");
    for entry in entries {
        entry.write(&contents, &mut text);
        if text.len() >= PIECE {
            hasher.update(text.as_bytes());
            text.clear();
        }
    }
    hasher.update(text.as_bytes());
    hasher.finish()
}

/// Returns the hash of a text that begins with this line and has a line for each entry.
pub(super) fn hash<C>(
    header: &str,
    entries: &[ManifestEntry<C>],
    contents: impl Fn(&C) -> String,
) -> Blake3 {
    let mut text = format!("{header}\n");
    entries.iter().for_each(|entry| entry.write(&contents, &mut text));
    Blake3::hash_bytes(text.as_bytes())
}

impl Manifest {
    /// Returns the manifest of a directory that has these entries, in any order.
    ///
    /// # Errors
    ///
    /// Fails if no directory has them. The error names the line that the entry would have.
    pub fn new(mut entries: Vec<ManifestEntry<Digest>>) -> Result<Self, ManifestError> {
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        let mut order = PathOrder::default();
        for (at, entry) in entries.iter().enumerate() {
            let checked = check_entry(entry).and_then(|()| order.check(&entries[..at], entry));
            checked.map_err(|fault| ManifestError { line: at + 2, fault })?;
        }
        Ok(Self { entries })
    }

    /// Returns the manifest of entries that were checked and are sorted.
    pub(super) const fn of_sorted(entries: Vec<ManifestEntry<Digest>>) -> Self {
        Self { entries }
    }

    /// The entries, sorted by the bytes of their paths.
    pub fn entries(&self) -> &[ManifestEntry<Digest>] {
        &self.entries
    }

    /// Returns the size of all files together, in bytes. A file counts once for each of its names.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().fold(0, |sum: u64, entry| match &entry.kind {
            EntryKind::File { contents, .. } => sum.saturating_add(contents.size),
            EntryKind::Link { .. } | EntryKind::Empty => sum,
        })
    }

    /// Writes the text, line by line.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut line = format!("{HEADER}\n");
        for entry in &self.entries {
            out.write_all(line.as_bytes())?;
            line.clear();
            entry.write(contents, &mut line);
        }
        out.write_all(line.as_bytes())
    }

    /// Returns the digest of the text: the identity of the directory.
    pub fn digest(&self) -> Digest {
        Digest { bytes: Some(self.bytes()), ..digest(HEADER, &self.entries, contents) }
    }
}

/// The first line of every manifest.
pub const HEADER: &str = "compeval directory 1";

/// An entry of a directory. `C` is the known part of the contents of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestEntry<C> {
    /// The path in the directory: names of any bytes, with `/` between them.
    pub path: Box<[u8]>,
    pub kind: EntryKind<C>,
}

/// The kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind<C> {
    /// A file.
    File {
        /// The known facts of its contents.
        contents: C,
        /// Its owner may execute it.
        executable: bool,
    },
    /// A symbolic link.
    Link {
        /// Its target, which is relative and within the directory.
        target: Box<[u8]>,
    },
    /// An empty directory.
    Empty,
}

impl<C> ManifestEntry<C> {
    /// Appends the entry's line, in which `contents` describes a file's contents.
    pub(super) fn write(&self, contents: impl Fn(&C) -> String, text: &mut String) {
        match &self.kind {
            EntryKind::File { contents: known, executable } => {
                text.push_str(if *executable { "exec " } else { "file " });
                text.push_str(&contents(known));
                text.push(' ');
            }
            EntryKind::Link { target } => {
                text.push_str("link ");
                escape(target, text);
                text.push('\t');
            }
            EntryKind::Empty => text.push_str("dir "),
        }
        escape(&self.path, text);
        text.push('\n');
    }
}

/// Writes the contents of a file as a manifest does.
pub(super) fn contents(Digest { size, sha1, blake3, .. }: &Digest) -> String {
    format!("{size} {} {}", sha1.full(), blake3.full())
}

impl Manifest {
    /// Reads the text of a manifest.
    ///
    /// # Errors
    ///
    /// Fails unless the text is the very one that [`Manifest::write`] writes for the entries.
    pub fn parse(text: &[u8]) -> Result<Self, ManifestError> {
        if text == HEADER.as_bytes() {
            return Err(ManifestError { line: 1, fault: ManifestFault::Cut });
        }
        let rest = text.strip_prefix(HEADER.as_bytes()).and_then(|rest| rest.strip_prefix(b"\n"));
        let mut rest = rest.ok_or(ManifestError { line: 1, fault: ManifestFault::Header })?;
        let (mut entries, mut order) = (Vec::new(), PathOrder::default());
        while !rest.is_empty() {
            let line = entries.len() + 2;
            let end = rest.iter().position(|byte| *byte == b'\n');
            let end = end.ok_or(ManifestError { line, fault: ManifestFault::Cut })?;
            let entry = parse_line(&rest[..end]).map_err(|fault| ManifestError { line, fault })?;
            order.check(&entries, &entry).map_err(|fault| ManifestError { line, fault })?;
            entries.push(entry);
            rest = &rest[end + 1..];
        }
        Ok(Self::of_sorted(entries))
    }
}

/// Reads a line without its newline.
fn parse_line(line: &[u8]) -> Result<ManifestEntry<Digest>, ManifestFault> {
    let (path, kind) = split_line(line).ok_or(ManifestFault::Form)?;
    let path = unescape(path).ok_or(ManifestFault::Escape)?;
    let kind = match kind {
        EntryKind::Link { target } => {
            EntryKind::Link { target: unescape(&target).ok_or(ManifestFault::Escape)? }
        }
        kind => kind,
    };
    let entry = ManifestEntry { path, kind };
    let mut expected = String::new();
    entry.write(contents, &mut expected);
    if expected.as_bytes().strip_suffix(b"\n") != Some(line) {
        return Err(ManifestFault::Spelling(expected.trim_end_matches('\n').to_owned()));
    }
    check_entry(&entry)?;
    Ok(entry)
}

/// Takes a line apart. Path and target are still spelled as in the line.
fn split_line(line: &[u8]) -> Option<(&[u8], EntryKind<Digest>)> {
    let mut words = line.splitn(2, |byte| *byte == b' ');
    let (word, rest) = (words.next()?, words.next()?);
    match word {
        b"file" | b"exec" => {
            let mut words = rest.splitn(4, |byte| *byte == b' ');
            let size = str::from_utf8(words.next()?).ok()?.parse().ok()?;
            let sha1 = Sha1::from_digits(words.next()?)?;
            let blake3 = Blake3::from_digits(words.next()?)?;
            let contents = Digest { sha1, blake3, size, bytes: None };
            Some((words.next()?, EntryKind::File { contents, executable: word == b"exec" }))
        }
        b"link" => {
            let tab = rest.iter().position(|byte| *byte == b'\t')?;
            Some((&rest[tab + 1..], EntryKind::Link { target: rest[..tab].into() }))
        }
        b"dir" => Some((rest, EntryKind::Empty)),
        _ => None,
    }
}

/// The reason why a text is not a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct ManifestError {
    /// The number of the line, from 1.
    pub line: usize,
    pub fault: ManifestFault,
}

/// A fault of a line of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestFault {
    /// The text does not begin as a manifest.
    #[error("expected {HEADER:?}")]
    Header,
    /// The text ends within a line.
    #[error("the newline at its end is missing")]
    Cut,
    /// It is not a line of a manifest.
    #[error(
        "expected \"file SIZE SHA1 BLAKE3 PATH\", the same with exec, \"link TARGET<tab>PATH\" or \"dir PATH\""
    )]
    Form,
    /// A `\` is not followed by `xHH`.
    #[error("a \\ does not begin \\xHH")]
    Escape,
    /// The line could be understood, and is written in another way.
    #[error("not written as manifests are; expected {0:?}")]
    Spelling(String),
    /// An entry cannot have this path.
    #[error("the path {} {fault}", shown(path))]
    Path { path: Box<[u8]>, fault: PathFault },
    /// The link leads out of the directory.
    #[error("the link {} leads to {}, {fault}", shown(path), shown(target))]
    Link { path: Box<[u8]>, target: Box<[u8]>, fault: LinkFault },
    /// The line before has the same path.
    #[error("the path {} occurs twice", shown(.0))]
    Duplicate(Box<[u8]>),
    /// The path sorts before the path of the line before.
    #[error("the path {} must come before the path of the previous line", shown(.0))]
    PathOrder(Box<[u8]>),
    /// A path that leads through an entry that is not a directory, or an empty one.
    #[error("the path {} leads through {}, an entry of its own", shown(path), shown(through))]
    Through {
        path: Box<[u8]>,
        /// The path of the other entry.
        through: Box<[u8]>,
    },
}

/// Checks an entry for itself.
pub(super) fn check_entry<C>(entry: &ManifestEntry<C>) -> Result<(), ManifestFault> {
    let path = &entry.path;
    check_path(path).map_err(|fault| ManifestFault::Path { path: path.clone(), fault })?;
    if let EntryKind::Link { target } = &entry.kind {
        check_link(path, target).map_err(|fault| ManifestFault::Link {
            path: path.clone(),
            target: target.clone(),
            fault,
        })?;
    }
    Ok(())
}

/// Checks entries against the entries before them.
///
/// Between `a` and `a/b` there may be others, such as `a.c`. All of them begin with the bytes of `a`, so
/// it is enough to remember the entries whose paths the last path begins with.
#[derive(Debug, Default)]
pub(super) struct PathOrder {
    /// The numbers of these entries; the path of each begins with the path of the one before.
    beginnings: Vec<usize>,
}

impl PathOrder {
    /// Checks the path of the entry that follows these.
    pub(super) fn check<C>(
        &mut self,
        before: &[ManifestEntry<C>],
        entry: &ManifestEntry<C>,
    ) -> Result<(), ManifestFault> {
        let path = &entry.path;
        match before.last().map(|last| last.path.cmp(path)) {
            None | Some(Ordering::Less) => {}
            Some(Ordering::Equal) => return Err(ManifestFault::Duplicate(path.clone())),
            Some(Ordering::Greater) => {
                return Err(ManifestFault::PathOrder(path.clone()));
            }
        }
        while self.beginnings.last().is_some_and(|at| !path.starts_with(&before[*at].path)) {
            self.beginnings.pop();
        }
        if let Some(at) =
            self.beginnings.iter().find(|at| path.get(before[**at].path.len()) == Some(&b'/'))
        {
            let (path, through) = (path.clone(), before[*at].path.clone());
            return Err(ManifestFault::Through { path, through });
        }
        self.beginnings.push(before.len());
        Ok(())
    }
}

/// The greatest number of symbolic links on the way to a member.
const MAX_LINKS: usize = 40;

/// A file or directory within a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestMember {
    /// Its own path, which leads through no symbolic link.
    pub path: Box<[u8]>,
    pub digest: Digest,
}

impl Manifest {
    /// Returns the file or directory with this path, in which each symbolic link is followed. `None` if it does not
    /// exist.
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
        let (mut done, mut left, mut links) = (Vec::new(), parts_from_end(path), 0);
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
                left.extend(parts_from_end(target));
                done.truncate(around);
            }
        }
        Some(done)
    }
}

/// The parts of a path, the last one first.
fn parts_from_end(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec).collect()
}

/// A path with different entries in two directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryDifference<'a> {
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
    use super::*;

    /// The digest of `a\n`, as a line has it.
    const A: &str = "2 3f786850e387550fdab836ed7e6dc881de23001b \
        b5d1f6ab1ca0da8c5d2de0aabd3e7e8a1ddc0a3b3b3c6a8a8a3e3e3e3e3e3e3e";

    fn parse(lines: &str) -> Result<Manifest, ManifestError> {
        Manifest::parse(format!("{HEADER}\n{}", lines.replace("DIGEST", A)).as_bytes())
    }

    #[test]
    fn an_accepted_manifest_is_written_again_byte_for_byte() {
        for lines in [
            "",
            "file DIGEST a\n",
            "file DIGEST a\nfile DIGEST a.b\nexec DIGEST ab/c\ndir b\nlink ../a\tc/d\nfile DIGEST \\x20\\xff\n",
            "dir a/b\nlink \\x09\ta0\nfile DIGEST é\n",
        ] {
            // The last path of the second one is less than the others.
            let mut lines: Vec<&str> = lines.split_inclusive('\n').collect();
            lines.sort_by_key(|line| unescape(line.rsplit([' ', '\t']).next().unwrap().as_bytes()));
            let text = lines.concat();
            let manifest = parse(&text).unwrap();
            let mut written = Vec::new();
            manifest.write(&mut written).unwrap();
            let text = format!("{HEADER}\n{}", text.replace("DIGEST", A));
            assert_eq!(String::from_utf8(written).unwrap(), text);
            let bytes = Some(manifest.bytes());
            assert_eq!(manifest.digest(), Digest { bytes, ..Digest::hash_bytes(text.as_bytes()) });
            assert_eq!(Manifest::new(manifest.entries().to_vec()).unwrap(), manifest);
        }
    }

    #[test]
    fn an_invalid_manifest_is_refused_with_the_number_of_its_line() {
        for (lines, line, fault) in [
            ("dir a", 2, "the newline at its end is missing"),
            ("dir a\n\n", 3, "expected \"file SIZE"),
            ("dirs a\n", 2, "expected \"file SIZE"),
            ("file 2 a\n", 2, "expected \"file SIZE"),
            ("file -2 DIGEST a\n", 2, "expected \"file SIZE"),
            ("link a b\n", 2, "expected \"file SIZE"),
            ("dir a\r\n", 2, r#"expected "dir a\\x0d""#),
            ("dir a b\n", 2, r#"expected "dir a\\x20b""#),
            ("dir \\x61\n", 2, r#"expected "dir a""#),
            ("dir \\xc3\\xa9\n", 2, r#"expected "dir é""#),
            ("dir \\x5C\n", 2, r#"expected "dir \\x5c""#),
            ("link a\tb\tc\n", 2, r#"expected "link a\tb\\x09c""#),
            ("dir \\n\n", 2, r"a \ does not begin \xHH"),
            ("dir ../a\n", 2, "the path ../a has a component . or .."),
            ("dir /a\n", 2, "the path /a is absolute"),
            ("dir a//b\n", 2, "the path a//b has an empty component"),
            ("dir \n", 2, "the path  has an empty component"),
            ("dir \\x00\n", 2, r"the path \x00 has a zero byte"),
            ("dir a/.git\n", 2, "the path a/.git has a component .git"),
            ("link /etc\ta\n", 2, "the link a leads to /etc, which is an absolute path"),
            ("link ..\ta\n", 2, "the link a leads to .., which is outside"),
            ("dir a\ndir a\n", 3, "the path a occurs twice"),
            ("dir a\nlink x\ta\n", 3, "the path a occurs twice"),
            ("dir b\ndir a\n", 3, "the path a must come before"),
            ("dir a\nfile DIGEST a/b\n", 3, "the path a/b leads through a, an entry"),
            ("dir a\ndir a.b\ndir a.b.c\ndir a/b\n", 5, "the path a/b leads through a, an entry"),
            ("link x\ta/b\ndir a/b/c\n", 3, "the path a/b/c leads through a/b, an entry"),
        ] {
            let error = parse(lines).unwrap_err();
            let told = error.to_string();
            let line = format!("line {line}: ");
            assert!(told.starts_with(&line) && told.contains(fault), "{lines:?}: {told}");
        }
        let large = format!("file 0{A} a\n");
        assert!(parse(&large).unwrap_err().to_string().contains("expected \"file 2 3f"));
        assert!(parse(&large.replace("02 ", "99999999999999999999 ")).is_err());
        for text in ["", "compeval directory 2\n", "compeval directory 1 \n", "\u{feff}compeval"] {
            let error = Manifest::parse(text.as_bytes()).unwrap_err();
            assert_eq!((error.line, error.fault), (1, ManifestFault::Header), "{text:?}");
        }
        let cut = Manifest::parse(HEADER.as_bytes()).unwrap_err();
        assert_eq!((cut.line, cut.fault), (1, ManifestFault::Cut));
    }

    /// The manifest of empty directories, or the line that is wrong.
    fn of_empty(paths: &[&str]) -> Result<Manifest, usize> {
        let entries = paths
            .iter()
            .map(|path| ManifestEntry { path: path.as_bytes().into(), kind: EntryKind::Empty });
        Manifest::new(entries.collect()).map_err(|error| error.line)
    }

    #[test]
    fn impossible_entries_are_refused() {
        assert_eq!(*of_empty(&["b", "a"]).unwrap().entries()[0].path, *b"a");
        assert_eq!(of_empty(&["b", "a"]), of_empty(&["a", "b"]));
        assert_eq!(of_empty(&["a/b", "a"]), Err(3));
        assert_eq!(of_empty(&["a", "a"]), Err(3));
        assert_eq!(of_empty(&["", "a"]), Err(2));
    }

    fn with_empty_files(lines: &str) -> Manifest {
        let digest = Digest::hash_bytes(b"");
        let empty = format!("0 {} {}", digest.sha1.full(), digest.blake3.full());
        Manifest::parse(format!("{HEADER}\n{}", lines.replace("EMPTY", &empty)).as_bytes()).unwrap()
    }

    fn member(whole: &Manifest, path: &str) -> Option<(String, Digest)> {
        let member = whole.member(path.as_bytes()).unwrap()?;
        Some((String::from_utf8(member.path.into()).unwrap(), member.digest))
    }

    #[test]
    fn a_member_is_a_file_or_the_manifest_of_a_directory() {
        let whole = with_empty_files(
            "file EMPTY a\nfile EMPTY a.b\ndir b/none\nfile EMPTY b/x\nlink ../b/x\tc/up\n\
             link b\tlink\nlink loop\tloop\n",
        );
        let (file, inner) =
            (Digest::hash_bytes(b""), with_empty_files("dir none\nfile EMPTY x\n").digest());
        for (path, own, digest) in [
            ("a", "a", file),
            ("b/x", "b/x", file),
            ("b", "b", inner),
            ("link", "b", inner),
            ("link/x", "b/x", file),
            ("c/up", "b/x", file),
            ("b/none", "b/none", with_empty_files("").digest()),
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
