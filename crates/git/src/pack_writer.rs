//! Writing many objects: into packs, since a file for each would cost ten times the time and the space. And directories
//! that are to be written, with up to millions of files.

use std::collections::{BTreeMap, HashSet};
use std::io::{Cursor, Write as _};
use std::sync::atomic::AtomicBool;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use gix::hash::ObjectId;
use gix::objs::tree::{EntryKind, EntryRef};
use gix::objs::{Commit, Kind, TreeRef, WriteTo};
use gix::progress::Discard;
use gix_pack as pack;
use gix_pack::data::output;

use super::{GitResult, from, object_id};
use ce_files::umask;
use ce_model::digest;

/// The size of a pack, compressed, in bytes. It is in memory before it is written.
const PACK: usize = 8 << 20;

/// The space in a pack for the header of each object, in bytes.
const HEADER: usize = 12;

/// The number of objects that are moved into a pack at once.
const PART: usize = 256;

/// The name under which results are committed: the commits of one result are the same, regardless of who makes them.
const AUTHOR: (&str, &str) = ("compeval", "");

/// An entry of a directory in a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorEntry {
    pub name: String,
    pub kind: MirrorKind,
    pub id: digest::ObjectId,
}

/// The kind of an entry of a directory in a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirrorKind {
    /// A directory.
    Tree,
    /// A plain file.
    Blob,
    /// Something else: an executable file, a link, a submodule.
    Other,
}

/// A commit to be written.
#[derive(Debug)]
pub struct NewCommit<'a> {
    pub tree: &'a digest::ObjectId,
    /// Its parents, in order.
    pub parents: &'a [digest::ObjectId],
    pub message: &'a str,
    /// When it was made, in seconds since 1970.
    pub seconds: i64,
}

/// Writes objects into packs of a repository. They are there once `finish` has returned.
#[derive(Debug)]
pub struct PackWriter<'a> {
    repository: &'a gix::Repository,
    entries: Vec<output::Entry>,
    bytes: usize,
    written: HashSet<ObjectId>,
    /// Compresses all objects. One for each would leave hundreds of megabytes of the heap in fragments that are not used again.
    encoder: ZlibEncoder<Vec<u8>>,
}

impl<'a> PackWriter<'a> {
    pub(super) fn new(repository: &'a gix::Repository) -> Self {
        let encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        Self { repository, entries: Vec::new(), bytes: 0, written: HashSet::new(), encoder }
    }

    /// Writes a file. Returns its id.
    pub fn file(&mut self, contents: &[u8]) -> GitResult<digest::ObjectId> {
        self.object(Kind::Blob, contents)
    }

    /// Writes a directory. Returns its id.
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot be written, or an entry is not a file or a directory.
    pub fn tree(&mut self, entries: &[MirrorEntry]) -> GitResult<digest::ObjectId> {
        let ids = entries.iter().map(|it| from(&it.id)).collect::<GitResult<Vec<_>>>()?;
        let mut refs = Vec::with_capacity(entries.len());
        for (MirrorEntry { name, kind, .. }, id) in entries.iter().zip(&ids) {
            let kind = match kind {
                MirrorKind::Tree => EntryKind::Tree,
                MirrorKind::Blob => EntryKind::Blob,
                MirrorKind::Other => return Err(format!("{name} is not a plain file").into()),
            };
            refs.push(entry(name, kind, id));
        }
        object_id(self.sorted_tree(refs)?)
    }

    /// Writes a directory whose entries have any order. The last of several entries with the same name counts. Returns its
    /// id.
    fn sorted_tree(&mut self, mut entries: Vec<EntryRef<'_>>) -> GitResult<ObjectId> {
        entries.reverse();
        entries.sort();
        entries.dedup_by_key(|it| it.filename);
        let tree = TreeRef { entries };
        let mut text = Vec::with_capacity(tree.size().try_into()?);
        tree.write_to(&mut text)?;
        drop(tree);
        self.write(Kind::Tree, &text)
    }

    /// Writes a commit. Returns its id.
    pub fn commit(&mut self, commit: &NewCommit<'_>) -> GitResult<digest::ObjectId> {
        let (name, email) = AUTHOR;
        let time = gix::date::Time::new(commit.seconds, 0);
        let author = gix::actor::Signature { name: name.into(), email: email.into(), time };
        let parents = commit.parents.iter().map(from).collect::<GitResult<Vec<_>>>()?;
        let commit = Commit {
            tree: from(commit.tree)?,
            parents: parents.into(),
            author: author.clone(),
            committer: author,
            encoding: None,
            message: commit.message.into(),
            extra_headers: Vec::new(),
        };
        let mut text = Vec::new();
        commit.write_to(&mut text)?;
        self.object(Kind::Commit, &text)
    }

    /// Makes everything that was written readable.
    pub fn finish(mut self) -> GitResult<()> {
        self.flush()
    }

    fn object(&mut self, kind: Kind, data: &[u8]) -> GitResult<digest::ObjectId> {
        object_id(self.write(kind, data)?)
    }

    fn write(&mut self, kind: Kind, data: &[u8]) -> GitResult<ObjectId> {
        let hash = self.repository.object_hash();
        let id = gix::objs::compute_hash(hash, kind, data)?;
        // A new object is nowhere: looking for packs that others have added meanwhile takes longer than to write it.
        if !self.written.contains(&id) && !self.repository.objects.exists_without_refresh(&id) {
            // Not once it is full: a caller that has written a large file last has that in memory, too, until then.
            if self.bytes >= PACK {
                self.flush()?;
            }
            self.encoder.write_all(data)?;
            let mut compressed_data = self.encoder.reset(Vec::new())?;
            compressed_data.shrink_to_fit();
            self.bytes += compressed_data.len();
            self.entries.push(output::Entry {
                id,
                kind: output::entry::Kind::Base(kind),
                decompressed_size: data.len(),
                compressed_data,
            });
            self.written.insert(id);
        }
        Ok(id)
    }

    fn flush(&mut self) -> GitResult<()> {
        let entries = std::mem::take(&mut self.entries);
        // A buffer that grows is in memory twice.
        let size = std::mem::take(&mut self.bytes) + HEADER * (entries.len() + 4);
        let buffer = Vec::with_capacity(size);
        if entries.is_empty() {
            return Ok(());
        }
        let (hash, version) = (self.repository.object_hash(), pack::data::Version::V2);
        let count = u32::try_from(entries.len())?;
        // Each object is dropped once it is in the pack.
        let mut entries = entries.into_iter();
        let parts = std::iter::from_fn(|| {
            let part: Vec<output::Entry> = entries.by_ref().take(PART).collect();
            (!part.is_empty()).then_some(Ok::<_, gix::Error>(part))
        });
        let mut writer = output::bytes::FromEntriesIter::new(parts, buffer, count, version, hash);
        for written in writer.by_ref() {
            written?;
        }
        let mut packed = writer.into_write();
        packed.flush()?;
        let dir = self.repository.objects.store_ref().path().join("pack");
        umask::as_user(|| {
            pack::Bundle::write_to_directory(
                &mut Cursor::new(packed),
                Some(&dir),
                &mut Discard,
                &AtomicBool::new(false),
                None::<gix::objs::find::Never>,
                hash,
                pack::bundle::write::Options::default(),
            )
        })?;
        Ok(())
    }
}

/// The way in which a repository names files by their contents. Threads can share it.
#[derive(Clone, Copy, Debug)]
pub struct BlobHash(pub(super) gix::hash::Kind);

impl BlobHash {
    /// The id that a file of these contents has. `None` if they are made to collide with others.
    pub fn compute_id(self, contents: &[u8]) -> Option<digest::ObjectId> {
        object_id(gix::objs::compute_hash(self.0, Kind::Blob, contents).ok()?).ok()
    }
}

/// New files with their paths, in directories. No path is a directory of another one.
#[derive(Debug, Default)]
pub struct UnwrittenTree {
    directories: BTreeMap<Box<str>, Self>,
    /// The names of the files, one after the other: an allocation for each would double their size.
    names: String,
    /// The length of the name of each file, and its id, in any order.
    files: Vec<(u16, ObjectId)>,
}

impl UnwrittenTree {
    /// A tree without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether it has no files.
    pub fn is_empty(&self) -> bool {
        self.directories.is_empty() && self.files.is_empty()
    }

    /// Adds a file.
    ///
    /// # Errors
    ///
    /// Fails if Git cannot have such ids, or the name is longer than any file system allows.
    pub fn insert(&mut self, path: &str, id: &digest::ObjectId) -> GitResult<()> {
        let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut at = self;
        for directory in directories.split('/').filter(|it| !it.is_empty()) {
            at = at.directories.entry(directory.into()).or_default();
        }
        at.files.push((name.len().try_into()?, from(id)?));
        at.names.push_str(name);
        Ok(())
    }

    /// Writes its directories. Returns its id.
    pub fn write(self, writer: &mut PackWriter<'_>) -> GitResult<digest::ObjectId> {
        object_id(self.written(writer)?)
    }

    /// No name in the storage has more than a few slashes, so this goes not deep. Each directory is dropped once it is written.
    fn written(self, writer: &mut PackWriter<'_>) -> GitResult<ObjectId> {
        let Self { directories, names, files } = self;
        let mut written = Vec::with_capacity(directories.len());
        for (name, directory) in directories {
            written.push((name, directory.written(writer)?));
        }
        let mut names = &names[..];
        let mut entries = Vec::with_capacity(files.len() + written.len());
        for (length, id) in &files {
            let (name, rest) = names.split_at((*length).into());
            names = rest;
            entries.push(entry(name, EntryKind::Blob, id));
        }
        entries.extend(written.iter().map(|(name, id)| entry(name, EntryKind::Tree, id)));
        writer.sorted_tree(entries)
    }
}

fn entry<'a>(name: &'a str, kind: EntryKind, oid: &'a ObjectId) -> EntryRef<'a> {
    EntryRef { mode: kind.into(), filename: name.into(), oid }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_new_objects_looks_for_no_packs_of_others() {
        let dir = tempfile::tempdir().unwrap();
        let repository = gix::init_bare(dir.path()).unwrap();
        let mut writer = PackWriter::new(&repository);
        let ids: Vec<_> =
            (0..100).map(|it| writer.file(format!("{it}\n").as_bytes()).unwrap()).collect();
        writer.finish().unwrap();
        let looks = repository.objects.store_ref().metrics().num_refreshes;
        assert!(looks <= 1, "{looks} looks for 100 objects");
        for id in ids {
            assert!(repository.has_object(from(&id).unwrap()), "{id:?}");
        }
    }

    fn resident() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
    }

    #[test]
    fn writing_many_objects_fragments_no_memory() {
        let dir = tempfile::tempdir().unwrap();
        let repository = gix::init_bare(dir.path()).unwrap();
        let mut writer = PackWriter::new(&repository);
        let mut files = UnwrittenTree::new();
        let before = resident();
        for it in 0..10_000 {
            let id = writer.file(format!("{it}\n").repeat(20).as_bytes()).unwrap();
            files.insert(&format!("{}/{it}", it % 100), &id).unwrap();
        }
        let grown = resident().saturating_sub(before);
        assert!(grown < 32 << 10, "{grown} KiB for 10,000 objects");
    }
}
