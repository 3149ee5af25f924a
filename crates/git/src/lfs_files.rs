//! The filters that the attributes of a commit give to its files, and the files that Git LFS keeps elsewhere: the commit has pointers in
//! their place.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use gix::objs::tree::EntryKind;

use super::attributes::{ATTRIBUTES, CommitAttributes, LFS};
use super::commit_snapshot::{PathStep, Snapshot, TreePath};
use super::draft::TreeEntry;
use super::errors::SnapshotError;
use super::lfs::{LfsPointer, LfsStore};
use ce_files::cache::{Cache, FileStat, Table};
use ce_model::exit::Explain;
use ce_model::humanize::counted;

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
#[derive(Debug, thiserror::Error, Explain)]
#[error("the file {} is kept by Git LFS, and its object {} is not in this clone", path.display(), &oid[..12])]
#[hint("git lfs pull --include={:?}", path.display().to_string())]
pub struct AbsentLfsObject {
    /// The path of the file in its repository.
    path: PathBuf,
    oid: String,
}

impl LfsFile {
    /// Finds a file with the contents, by their SHA-256. A file that was verified is not read again until its stat is another one.
    ///
    /// # Errors
    ///
    /// Fails if this clone does not have them, or `stop` is set.
    pub fn object(
        &self,
        cache: Option<&Cache>,
        stop: &AtomicBool,
    ) -> Result<&Path, AbsentLfsObject> {
        let found = self.places.iter().find(|it| is_verified(&self.pointer, it, cache, stop));
        let absent =
            || AbsentLfsObject { path: self.inside.clone(), oid: self.pointer.oid.clone() };
        found.map(PathBuf::as_path).ok_or_else(absent)
    }

    /// Whether a file of the right size is where the contents may be. Its bytes are not read.
    pub fn may_be_here(&self) -> bool {
        let has_size = |file: &PathBuf| {
            fs::metadata(file).is_ok_and(|it| it.is_file() && it.len() == self.pointer.size)
        };
        self.places.iter().any(has_size)
    }
}

/// The contents of files of trees are not on this host.
#[derive(Debug, thiserror::Error, Explain)]
#[error("the objects that Git LFS keeps of {} are not in this clone: {}", counted(_0.len(), "file"), named(_0))]
#[hint("git lfs pull, or git lfs pull --include=PATH, in the repository of each")]
pub struct AbsentLfsObjects(Vec<PathBuf>);

/// The number of files that are named.
const MOST_NAMED: usize = 20;

impl AbsentLfsObjects {
    /// The error of these files, each named once. `None` without any.
    pub fn new(absent: Vec<LfsFile>) -> Option<Self> {
        let paths: BTreeSet<PathBuf> = absent.into_iter().map(|file| file.inside).collect();
        (!paths.is_empty()).then(|| Self(paths.into_iter().collect()))
    }
}

fn named(paths: &[PathBuf]) -> String {
    let first = paths.iter().take(MOST_NAMED).map(|path| path.display().to_string());
    let more = paths.len().saturating_sub(MOST_NAMED);
    let more = (more > 0).then(|| format!("and {more} more"));
    first.chain(more).collect::<Vec<_>>().join(", ")
}

/// Whether a file has the bytes of an object.
fn is_verified(
    pointer: &LfsPointer,
    file: &Path,
    cache: Option<&Cache>,
    stop: &AtomicBool,
) -> bool {
    let began = SystemTime::now();
    let Ok(stat) = FileStat::read(file) else { return false };
    let table = cache.map(|cache| Table::open(cache, "lfs", MAX_VERIFIED));
    let key = [pointer.oid.as_bytes(), file.as_os_str().as_encoded_bytes()];
    let is_current = |known: &FileStat| *known == stat;
    if table.as_ref().is_some_and(|it| it.look_up::<FileStat, ()>(&key, is_current).hit().is_some())
    {
        return true;
    }
    let is_object = pointer.is_of(file, stop).unwrap_or(false);
    if let Some(table) = table.filter(|_| is_object && !stat.is_racy(began)) {
        table.insert(&key, &stat, &());
    }
    is_object
}

impl Snapshot {
    /// Returns the files that Git LFS keeps elsewhere, of a directory and all below it, or a file itself; sorted. A file that differs in a
    /// draft is among them if it is a pointer, as `git add` would leave it. Submodules that are not cloned are passed over.
    pub fn lfs_files(&self, place: &TreePath) -> Result<Vec<LfsFile>, SnapshotError> {
        self.find_lfs_files(place, false)
    }

    /// Does the same.
    ///
    /// # Errors
    ///
    /// Fails if this clone lacks a file, as a partial clone may.
    pub fn lfs_files_of_all(&self, place: &TreePath) -> Result<Vec<LfsFile>, SnapshotError> {
        self.find_lfs_files(place, self.is_partial())
    }

    fn find_lfs_files(
        &self,
        place: &TreePath,
        are_required: bool,
    ) -> Result<Vec<LfsFile>, SnapshotError> {
        let mut found = Vec::new();
        let require = |is_draft: bool, id| match are_required && !is_draft {
            true => self.with_repository_of(id, |_| Ok(())).map_err(SnapshotError::Git),
            false => Ok(()),
        };
        let base = place.step().place();
        let mut steps = vec![Rc::clone(place.step())];
        while let Some(step) = steps.pop() {
            if step.kind != EntryKind::Tree {
                require(step.is_draft, step.id)?;
                found.extend(self.lfs_file(&step, &base, self.attributes_of(&step)?.as_ref())?);
                continue;
            }
            let attributes = self.attributes_in(&step)?;
            for TreeEntry { name, kind, id, is_draft } in self.entries(&step)?.iter() {
                match kind {
                    EntryKind::Tree => steps.push(self.child(&step, name)?),
                    EntryKind::Commit => match self.child(&step, name) {
                        // The reader of the file reports that.
                        Err(SnapshotError::NotCloned { .. }) => {}
                        submodule => steps.push(submodule?),
                    },
                    EntryKind::Blob | EntryKind::BlobExecutable => {
                        require(*is_draft, *id)?;
                        if attributes.names_filters {
                            let file = self.child(&step, name)?;
                            found.extend(self.lfs_file(&file, &base, &attributes)?);
                        }
                    }
                    EntryKind::Link => require(*is_draft, *id)?,
                }
            }
        }
        found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    /// Returns the files around a path that say what attributes it has, and that differ in a draft, by their paths in the repository.
    pub fn changed_attributes(&self, place: &TreePath) -> Vec<PathBuf> {
        let Some(draft) = place.step().draft() else { return Vec::new() };
        let inside = place.inside();
        let around = inside.ancestors().skip(1).map(|dir| dir.join(ATTRIBUTES));
        around.filter(|it| draft.is_changed(it)).collect()
    }

    /// Returns the filter that attributes of the commit give to a file.
    pub fn filter_of(&self, file: &TreePath) -> Result<Option<String>, SnapshotError> {
        Ok(self.attributes_of(file.step())?.filter_of(&file.inside()))
    }

    /// Whether a file of a work tree has the bytes of a file of the commit, as they are.
    pub fn has_bytes(&self, file: &TreePath, checked_out: &Path) -> Result<bool, SnapshotError> {
        let found = fs::read(checked_out).map_err(|error| SnapshotError::Git(error.into()))?;
        Ok(self.read(file)? == found)
    }

    /// The attributes in the directory of a file.
    fn attributes_of(&self, file: &PathStep) -> Result<Rc<CommitAttributes>, SnapshotError> {
        let around = file.above.as_ref();
        around.map_or_else(|| Ok(Rc::default()), |around| self.attributes_in(around))
    }

    /// The attributes in a directory. The directories of its repository around it contribute to them.
    fn attributes_in(&self, dir: &Rc<PathStep>) -> Result<Rc<CommitAttributes>, SnapshotError> {
        let (mut known, mut unknown) = (Rc::default(), Vec::new());
        let mut next = Some(dir);
        while let Some(dir) = next {
            if let Some(attributes) = dir.attributes.get() {
                known = Rc::clone(attributes);
                break;
            }
            unknown.push(dir);
            next = dir.above.as_ref().filter(|_| !dir.root);
        }
        for dir in unknown.into_iter().rev() {
            let kind = match self.entry_of(dir, ATTRIBUTES.as_ref()) {
                Err(SnapshotError::Missing) => None,
                entry => Some(entry?.kind),
            };
            match kind {
                Some(EntryKind::Blob | EntryKind::BlobExecutable) => {
                    let file = self.child(dir, ATTRIBUTES.as_ref())?;
                    let own = self.contents(&file)?;
                    let mut attributes = CommitAttributes::clone(&known);
                    attributes.add(&dir.inside(), &own);
                    known = attributes.into();
                }
                // Git follows no link there.
                Some(EntryKind::Tree | EntryKind::Link | EntryKind::Commit) | None => {}
            }
            known = Rc::clone(dir.attributes.get_or_init(|| known));
        }
        Ok(known)
    }

    /// Returns a file if Git LFS keeps it, given the attributes in its directory.
    fn lfs_file(
        &self,
        file: &PathStep,
        base: &Path,
        attributes: &CommitAttributes,
    ) -> Result<Option<LfsFile>, SnapshotError> {
        let inside = file.inside();
        if attributes.filter_of(&inside).as_deref() != Some(LFS) {
            return Ok(None);
        }
        let look = |repository: &gix::Repository| {
            let size = match self.draft_size(file) {
                Some(size) => size,
                None => repository.find_header(file.id)?.size(),
            };
            Ok((size, repository.git_dir().to_owned(), repository.workdir().map(Path::to_owned)))
        };
        let looked = self.with_repository_at(file, look);
        let (size, git_dir, top) = looked.map_err(SnapshotError::Git)?;
        if size > LfsPointer::MAX {
            return Ok(None);
        }
        let Some(pointer) = LfsPointer::parse(&self.contents(file)?) else { return Ok(None) };
        let store = LfsStore::open(&git_dir).map_err(SnapshotError::Git)?;
        let mut places = vec![pointer.path(&store.objects())];
        places.extend(top.map(|top| top.join(&inside)));
        let path = file.place().strip_prefix(base).unwrap_or(&inside).to_owned();
        Ok(Some(LfsFile { path, pointer, inside, places }))
    }
}
