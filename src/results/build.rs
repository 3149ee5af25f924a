//! A tree of files, from their paths.

use std::collections::BTreeMap;

use super::layout::{MAX_PATH, is_record, may_hold_records};
use crate::digest::ObjectId;
use crate::git::{Mirror, MirrorEntry, MirrorError, MirrorKind, PackWriter};

/// NewFiles with their paths.
pub(super) type NewFiles = BTreeMap<String, ObjectId>;

/// Says whether a path counts.
type PathRule = fn(&str) -> bool;

/// A directory that is written from its files.
#[derive(Debug, Default)]
struct Directory {
    directories: BTreeMap<String, Self>,
    files: Vec<(String, ObjectId)>,
}

/// Writes the tree that has these files. No path leads through another one.
pub(super) fn build(
    mirror: &Mirror,
    writer: &mut PackWriter<'_>,
    files: &NewFiles,
) -> Result<ObjectId, MirrorError> {
    let mut top = Directory::default();
    for (path, id) in files {
        let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut at = &mut top;
        for directory in directories.split('/').filter(|it| !it.is_empty()) {
            at = at.directories.entry(directory.to_owned()).or_default();
        }
        at.files.push((name.to_owned(), id.clone()));
    }
    write(mirror, writer, top)
}

/// Writes a directory. No name in the storage has more than a few slashes, so this goes not deep.
fn write(
    mirror: &Mirror,
    writer: &mut PackWriter<'_>,
    Directory { directories, files }: Directory,
) -> Result<ObjectId, MirrorError> {
    let mut entries = Vec::with_capacity(directories.len() + files.len());
    for (name, directory) in directories {
        let id = write(mirror, writer, directory)?;
        entries.push(MirrorEntry { name, kind: MirrorKind::Tree, id });
    }
    let files = files.into_iter();
    entries.extend(files.map(|(name, id)| MirrorEntry { name, kind: MirrorKind::Blob, id }));
    writer.tree(&entries).map_err(|error| mirror.own(error))
}

/// Trees that were read, to find paths in them.
#[derive(Debug)]
pub(super) struct Finder<'a> {
    mirror: &'a Mirror,
    top: Option<ObjectId>,
    read: BTreeMap<String, Option<BTreeMap<String, MirrorEntry>>>,
}

impl<'a> Finder<'a> {
    /// Finds paths below a tree; nothing is below none.
    pub(super) fn new(mirror: &'a Mirror, top: Option<ObjectId>) -> Self {
        Self { mirror, top, read: BTreeMap::new() }
    }

    /// The entry of this path.
    pub(super) fn find(&mut self, path: &str) -> Result<Option<MirrorEntry>, MirrorError> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok(self.directory(directory)?.and_then(|entries| entries.get(name)).cloned())
    }

    /// The plain file of this path.
    pub(super) fn file(&mut self, path: &str) -> Result<Option<ObjectId>, MirrorError> {
        let found = self.find(path)?;
        Ok(found.filter(|it| it.kind == MirrorKind::Blob).map(|it| it.id))
    }

    /// The paths and ids of all records, in the order of their paths.
    pub(super) fn records(&mut self) -> Result<Vec<(String, ObjectId)>, MirrorError> {
        self.files("", (is_record, may_hold_records))
    }

    /// The paths and ids of all files below a directory, in the order of their paths.
    pub(super) fn files_in(
        &mut self,
        directory: &str,
    ) -> Result<Vec<(String, ObjectId)>, MirrorError> {
        self.files(directory, (|_| true, |_| true))
    }

    /// The paths and ids of files below a directory.
    fn files(
        &mut self,
        top: &str,
        (is_wanted, is_entered): (PathRule, PathRule),
    ) -> Result<Vec<(String, ObjectId)>, MirrorError> {
        let mut records = Vec::new();
        let mut waiting = vec![top.to_owned()];
        while let Some(directory) = waiting.pop() {
            for entry in self.directory(&directory)?.into_iter().flat_map(BTreeMap::values) {
                let path = match &*directory {
                    "" => entry.name.clone(),
                    directory => format!("{directory}/{}", entry.name),
                };
                match entry.kind {
                    MirrorKind::Blob if is_wanted(&path) => records.push((path, entry.id.clone())),
                    MirrorKind::Tree if is_entered(&path) && path.len() <= MAX_PATH => {
                        waiting.push(path);
                    }
                    _ => {}
                }
            }
        }
        records.sort();
        Ok(records)
    }

    /// The entries of a directory.
    fn directory(
        &mut self,
        path: &str,
    ) -> Result<Option<&BTreeMap<String, MirrorEntry>>, MirrorError> {
        if !self.read.contains_key(path) {
            let tree = match path {
                "" => self.top.clone(),
                path => self.find(path)?.filter(|it| it.kind == MirrorKind::Tree).map(|it| it.id),
            };
            let entries = tree.map(|tree| self.mirror.entries(&tree)).transpose()?;
            let entries = entries.map(|entries| {
                entries.into_iter().map(|entry| (entry.name.clone(), entry)).collect()
            });
            self.read.insert(path.to_owned(), entries);
        }
        Ok(self.read[path].as_ref())
    }
}
