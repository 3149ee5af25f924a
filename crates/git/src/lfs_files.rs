//! The filters that the attributes of a commit give to its files, and the files that Git LFS keeps elsewhere: the commit has pointers in
//! their place.

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use gix::attrs::search::{MetadataCollection, Outcome};
use gix::attrs::{Search, StateRef};
use gix::bstr::{BStr, ByteSlice};
use gix::glob::pattern::Case;
use gix::objs::tree::EntryKind;

use super::commit_snapshot::{PathStep, Snapshot, TreePath};
use super::draft::TreeEntry;
use super::errors::SnapshotError;
use super::lfs::{LfsPointer, LfsStore};
use super::opening::LFS;
use ce_files::cache::{Cache, FileStat, Table};
use ce_model::exit::Explain;

/// The file of a directory with the attributes of files there and below.
const ATTRIBUTES: &str = ".gitattributes";

/// The most verified objects that are in the cache.
const MAX_VERIFIED: usize = 4096;

/// A file of a commit that Git LFS keeps elsewhere.
#[derive(Clone, Debug)]
pub struct LfsFile {
    /// Its path below the directory that was searched; empty for a file itself.
    pub path: PathBuf,
    /// The pointer to its contents.
    pub pointer: LfsPointer,
    /// Its path in the repository that has it.
    inside: PathBuf,
    /// Where the contents may be: in the repository, or in its work tree.
    places: Vec<PathBuf>,
}

/// The contents of a file are not on this host.
#[derive(Debug, thiserror::Error)]
#[error("the file {} is kept by Git LFS, and its object {} is not in this clone", path.display(), &oid[..12])]
pub struct AbsentLfsObject {
    /// The path of the file in its repository.
    path: PathBuf,
    oid: String,
}

impl Explain for AbsentLfsObject {
    fn hint(&self) -> Option<String> {
        Some(format!("git lfs pull --include={:?}", self.path.display().to_string()))
    }
}

impl LfsFile {
    /// Finds a file with the contents, by their SHA-256. A file that was verified is not read again until its stat is another one.
    ///
    /// # Errors
    ///
    /// Fails if this clone does not have them.
    pub fn object(&self, cache: Option<&Cache>) -> Result<&Path, AbsentLfsObject> {
        let found = self.places.iter().find(|place| is_verified(&self.pointer, place, cache));
        let absent =
            || AbsentLfsObject { path: self.inside.clone(), oid: self.pointer.oid.clone() };
        found.map(PathBuf::as_path).ok_or_else(absent)
    }
}

/// Whether a file has the bytes of an object.
fn is_verified(pointer: &LfsPointer, file: &Path, cache: Option<&Cache>) -> bool {
    let began = SystemTime::now();
    let Ok(stat) = FileStat::of(file) else { return false };
    let table = cache.map(|cache| Table::open(cache, "lfs", MAX_VERIFIED));
    let key = [pointer.oid.as_bytes(), file.as_os_str().as_encoded_bytes()];
    let is_current = |known: &FileStat| *known == stat;
    if table.as_ref().is_some_and(|it| it.look_up::<FileStat, ()>(&key, is_current).hit().is_some())
    {
        return true;
    }
    let is_object = pointer.is_of(file).unwrap_or(false);
    if let Some(table) = table.filter(|_| is_object && !stat.is_racy(began)) {
        table.insert(&key, &stat, &());
    }
    is_object
}

/// The attributes that a commit gives to the files of its repository.
#[derive(Default)]
struct CommitAttributes {
    search: Search,
    names: MetadataCollection,
    /// Whether each file with attributes names filters.
    files: Vec<bool>,
}

impl CommitAttributes {
    /// Adds the attributes that a directory has, given by its path in the repository.
    fn push(&mut self, dir: &Path, contents: &[u8]) {
        let (source, is_root) = (dir.join(ATTRIBUTES), dir.as_os_str().is_empty());
        let root = Some(Path::new(""));
        // Git passes over lines that it cannot read, too.
        drop(self.search.add_patterns_buffer(contents, source, root, &mut self.names, is_root));
        self.files.push(contents.contains_str("filter"));
    }

    fn pop(&mut self) {
        self.search.pop_pattern_list();
        self.files.pop();
    }

    /// The filter of a file.
    fn filter_of(&self, path: &Path) -> Option<String> {
        if !self.files.contains(&true) {
            return None;
        }
        let mut outcome = Outcome::default();
        outcome.initialize_with_selection(&self.names, ["filter"]);
        let path: &BStr = path.as_os_str().as_encoded_bytes().as_bstr();
        self.search.pattern_matching_relative_path(
            path,
            Case::Sensitive,
            Some(false),
            &mut outcome,
        );
        outcome.iter_selected().find_map(|found| match found.assignment.state {
            StateRef::Value(name) => Some(name.as_bstr().to_string()),
            StateRef::Set | StateRef::Unset | StateRef::Unspecified => None,
        })
    }
}

impl Snapshot {
    /// Returns the files that Git LFS keeps elsewhere, of a directory and all below it, or a file itself. A file that differs in a draft is
    /// among them if it is a pointer, as `git add` would leave it.
    pub fn lfs_files(&self, place: &TreePath) -> Result<Vec<LfsFile>, SnapshotError> {
        let (step, mut found) = (place.step(), Vec::new());
        let mut attributes = self.attributes_around(step)?;
        let base = step.place();
        match step.kind {
            EntryKind::Tree => self.search(step, &base, &mut attributes, &mut found)?,
            _ => self.look(step, &base, &attributes, &mut found)?,
        }
        Ok(found)
    }

    /// Returns the filter that attributes of the commit give to a file.
    pub fn filter_of(&self, file: &TreePath) -> Result<Option<String>, SnapshotError> {
        Ok(self.attributes_around(file.step())?.filter_of(&file.inside()))
    }

    /// Whether a file of a work tree has the bytes of a file of the commit, as they are.
    pub fn has_bytes(&self, file: &TreePath, checked_out: &Path) -> Result<bool, SnapshotError> {
        let found = fs::read(checked_out).map_err(|error| SnapshotError::Git(error.into()))?;
        Ok(self.read(file)? == found)
    }

    /// The attributes of the directories around something, up to the top of its repository.
    fn attributes_around(&self, step: &PathStep) -> Result<CommitAttributes, SnapshotError> {
        let mut attributes = CommitAttributes::default();
        let mut around: Vec<&Rc<PathStep>> = Vec::new();
        let mut next = step.above.as_ref().filter(|_| !step.root);
        while let Some(above) = next {
            around.push(above);
            next = above.above.as_ref().filter(|_| !above.root);
        }
        for dir in around.into_iter().rev() {
            self.push_attributes(dir, &mut attributes)?;
        }
        Ok(attributes)
    }

    /// Adds the attributes that a directory has. Returns false if it has none.
    fn push_attributes(
        &self,
        dir: &Rc<PathStep>,
        attributes: &mut CommitAttributes,
    ) -> Result<bool, SnapshotError> {
        let has_attributes = self.entries(dir)?.iter().any(|entry| {
            let is_file = matches!(entry.kind, EntryKind::Blob | EntryKind::BlobExecutable);
            entry.name == ATTRIBUTES && is_file
        });
        if has_attributes {
            let file = self.child(dir, ATTRIBUTES.as_ref())?;
            let contents = self.contents(&file)?;
            attributes.push(&dir.inside(), &contents);
        }
        Ok(has_attributes)
    }

    fn search(
        &self,
        dir: &Rc<PathStep>,
        base: &Path,
        attributes: &mut CommitAttributes,
        found: &mut Vec<LfsFile>,
    ) -> Result<(), SnapshotError> {
        let has_attributes = self.push_attributes(dir, attributes)?;
        for TreeEntry { name, kind, .. } in self.entries(dir)?.iter() {
            match kind {
                EntryKind::Tree => self.search(&self.child(dir, name)?, base, attributes, found)?,
                EntryKind::Commit => {
                    let submodule = match self.child(dir, name) {
                        // Whoever reads it reports that.
                        Err(SnapshotError::NotCloned { .. }) => continue,
                        submodule => submodule?,
                    };
                    // The attributes of a repository are its own.
                    let mut own = CommitAttributes::default();
                    self.search(&submodule, base, &mut own, found)?;
                }
                EntryKind::Blob | EntryKind::BlobExecutable => {
                    if attributes.files.contains(&true) {
                        self.look(&self.child(dir, name)?, base, attributes, found)?;
                    }
                }
                EntryKind::Link => {}
            }
        }
        if has_attributes {
            attributes.pop();
        }
        Ok(())
    }

    /// Adds a file if Git LFS keeps it.
    fn look(
        &self,
        file: &Rc<PathStep>,
        base: &Path,
        attributes: &CommitAttributes,
        found: &mut Vec<LfsFile>,
    ) -> Result<(), SnapshotError> {
        let inside = file.inside();
        if attributes.filter_of(&inside).as_deref() != Some(LFS) {
            return Ok(());
        }
        let look = |repository: &gix::Repository| {
            let size = match self.draft_size(file) {
                Some(size) => size,
                None => repository.find_header(file.id)?.size(),
            };
            Ok((size, repository.git_dir().to_owned(), repository.workdir().map(Path::to_owned)))
        };
        let (size, git_dir, top) =
            self.with_repository_at(file, look).map_err(SnapshotError::Git)?;
        if size > LfsPointer::MAX {
            return Ok(());
        }
        let Some(pointer) = LfsPointer::parse(&self.contents(file)?) else { return Ok(()) };
        let store = LfsStore::of(&git_dir).map_err(SnapshotError::Git)?;
        let mut places = vec![pointer.path(&store.objects())];
        places.extend(top.map(|top| top.join(&inside)));
        let path = file.place().strip_prefix(base).unwrap_or(&inside).to_owned();
        found.push(LfsFile { path, pointer, inside, places });
        Ok(())
    }
}
