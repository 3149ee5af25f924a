//! Finding files in trees by their paths.

use std::collections::BTreeMap;

use super::layout::{MAX_PATH, is_record, may_hold_records};
use ce_git::{Mirror, MirrorEntry, MirrorError, MirrorKind};
use ce_model::digest::ObjectId;

/// Says whether a path counts.
type PathRule = fn(&str) -> bool;

/// Trees that were read, to find paths in them.
#[derive(Debug)]
pub(super) struct Finder<'a> {
    mirror: &'a Mirror,
    top: Option<ObjectId>,
    /// The entries of each directory, by name; none of one that is not there.
    read: BTreeMap<String, Option<Vec<MirrorEntry>>>,
}

impl<'a> Finder<'a> {
    /// Finds paths below a tree; nothing is below none.
    pub(super) fn new(mirror: &'a Mirror, top: Option<ObjectId>) -> Self {
        Self { mirror, top, read: BTreeMap::new() }
    }

    /// The entry of this path.
    pub(super) fn find(&mut self, path: &str) -> Result<Option<MirrorEntry>, MirrorError> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let Some(entries) = self.directory(directory)? else { return Ok(None) };
        let at = entries.binary_search_by(|entry| entry.name.as_str().cmp(name));
        Ok(at.ok().map(|at| entries[at].clone()))
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
            for entry in self.directory(&directory)?.into_iter().flatten() {
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
    fn directory(&mut self, path: &str) -> Result<Option<&Vec<MirrorEntry>>, MirrorError> {
        if !self.read.contains_key(path) {
            let tree = match path {
                "" => self.top.clone(),
                path => self.find(path)?.filter(|it| it.kind == MirrorKind::Tree).map(|it| it.id),
            };
            let mut entries = tree.map(|tree| self.mirror.entries(&tree)).transpose()?;
            if let Some(entries) = &mut entries {
                // Git sorts directories otherwise.
                entries.sort_by(|one, other| one.name.cmp(&other.name));
            }
            self.read.insert(path.to_owned(), entries);
        }
        Ok(self.read[path].as_ref())
    }
}
