//! Directories that are to be written, of which there may be millions of files.

use std::collections::BTreeMap;

use gix::hash::ObjectId;
use gix::objs::Tree;
use gix::objs::tree::{Entry, EntryKind};

use super::pack::PackWriter;
use super::{GitResult, from};
use ce_model::digest;

/// New files with their paths, in directories. No path leads through another one.
#[derive(Debug, Default)]
pub struct UnwrittenTree {
    directories: BTreeMap<Box<str>, Self>,
    /// The names of the files, one after the other: an allocation for each would double their size.
    names: String,
    /// The length of the name of each file, and its id, in any order. Of those with the same name, the last one counts.
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
    /// Fails if Git has no such ids, or the name is longer than any file system allows.
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
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot be written.
    pub fn write(self, writer: &mut PackWriter<'_>) -> GitResult<digest::ObjectId> {
        super::object_id(self.written(writer)?)
    }

    /// No name in the storage has more than a few slashes, so this goes not deep. Each directory is dropped once it is written.
    fn written(self, writer: &mut PackWriter<'_>) -> GitResult<ObjectId> {
        let Self { directories, names, files } = self;
        let mut names = &names[..];
        let named = files.into_iter().map(|(length, id)| {
            let (name, rest) = names.split_at(length.into());
            names = rest;
            (name, id)
        });
        let mut files: Vec<(&str, ObjectId)> = named.collect();
        files.sort_by_key(|(name, _)| *name);
        let mut tree = Tree { entries: Vec::with_capacity(directories.len() + files.len()) };
        for (name, id) in files {
            let entry = entry(name, EntryKind::Blob, id);
            match tree.entries.last_mut() {
                Some(last) if last.filename == entry.filename => *last = entry,
                _ => tree.entries.push(entry),
            }
        }
        for (name, directory) in directories {
            let id = directory.written(writer)?;
            tree.entries.push(entry(&name, EntryKind::Tree, id));
        }
        writer.sorted_tree(tree)
    }
}

fn entry(name: &str, kind: EntryKind, oid: ObjectId) -> Entry {
    Entry { mode: kind.into(), filename: name.into(), oid }
}
