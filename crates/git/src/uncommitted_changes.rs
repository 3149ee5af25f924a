//! Uncommitted changes: the difference between a directory and the commit at HEAD, and the tree that it would have with them.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gix::bstr::{BString, ByteSlice};
use gix::dir::entry::Status;
use gix::dir::walk::EmissionMode;
use gix::fs::FileSnapshot;
use gix::index::entry::{Flags, Mode};
use gix::objs::Tree;
use gix::objs::tree::{Editor, EntryKind};
use gix::status::Submodule;
use gix::status::index_worktree::Item as Change;
use gix::submodule::config::Ignore;
use gix::worktree::IndexPersistedOrInMemory;
use gix::worktree::stack::state::attributes::Source;
use gix::worktree::stack::state::ignore;
use gix::{ObjectId, Repository};

use super::discovery::top;
use super::opening::{Drivers, index_path, is_blob};
use super::submodules::{object, tree_of};
use super::{GitResult, to_path};

/// The differences of a directory from the commit at HEAD: files relative to the top of the work
/// tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Paths that are modified, staged, deleted, or neither tracked nor ignored; sorted.
    pub changed: Vec<PathBuf>,
    /// Ignored files, and directories of which everything is ignored; sorted.
    pub ignored: Vec<PathBuf>,
    /// Files with an external filter that differ from the recorded ones; sorted. They are changed,
    /// too, unless the index says that Git has made them so.
    pub filtered: Vec<Filtered>,
}

/// A file with an external filter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Filtered {
    /// The file.
    pub path: PathBuf,
    /// The name of the filter.
    pub filter: String,
}

impl Changes {
    /// Makes all paths absolute, given the top of the work tree.
    pub(super) fn below(self, top: &Path) -> Self {
        let join = |paths: Vec<PathBuf>| paths.iter().map(|path| top.join(path)).collect();
        let mut filtered = self.filtered;
        filtered.iter_mut().for_each(|it| it.path = top.join(&it.path));
        Self { changed: join(self.changed), ignored: join(self.ignored), filtered }
    }

    /// The changes in a directory.
    pub(super) fn within(&self, dir: &Path) -> Self {
        let within = |paths: &[PathBuf]| {
            paths.iter().filter(|path| path.starts_with(dir)).cloned().collect::<Vec<_>>()
        };
        let filtered = self.filtered.iter().filter(|it| it.path.starts_with(dir));
        Self {
            changed: within(&self.changed),
            ignored: within(&self.ignored),
            filtered: filtered.cloned().collect(),
        }
    }
}

/// Returns how a directory, relative to the top of the work tree, differs from HEAD.
///
/// Finds the changes on the disk: no setting and no flag of the index hides one.
pub(super) fn changes(repository: &Repository, dir: &Path) -> GitResult<Changes> {
    let mut index = own_index(repository)?;
    for entry in index.entries_mut() {
        let hidden = Flags::ASSUME_VALID | Flags::SKIP_WORKTREE;
        entry.flags.remove(hidden | Flags::FSMONITOR_VALID | Flags::UPTODATE);
    }
    let filtered = filtered(repository, &index, dir)?;
    let staged = staged(repository, &index, dir)?;
    let submodules: Vec<(PathBuf, ObjectId)> = (index.entries().iter())
        .filter(|entry| entry.mode == Mode::COMMIT)
        .map(|entry| (to_path(entry.path(&index)), entry.id))
        .filter(|(path, _)| path.starts_with(dir))
        .collect();
    let walk = repository
        .dirwalk_options()?
        .emit_untracked(EmissionMode::Matching)
        .emit_ignored(Some(EmissionMode::CollapseDirectory));
    let status = repository
        .status(gix::progress::Discard)?
        // One that is shared: several threads have it, and it may be large.
        .index(IndexPersistedOrInMemory::Persisted(FileSnapshot::new(index).into()))
        // It knows only those that `.gitmodules` names.
        .index_worktree_submodules(Submodule::Given { ignore: Ignore::All, check_dirty: true })
        .index_worktree_rewrites(None)
        .index_worktree_options_mut(|options| {
            options.dirwalk_options = Some(walk);
            // Each look is small, and there may be many: to begin threads takes longer than it saves.
            options.thread_limit = Some(1);
        });
    let mut changes = Changes { filtered, changed: staged, ..Changes::default() };
    for change in status.into_index_worktree_iter(pattern(dir))? {
        let change = change?;
        let path = to_path(change.rela_path());
        match &change {
            Change::DirectoryContents { entry, .. } => match entry.status {
                Status::Ignored(_) => changes.ignored.push(path),
                Status::Untracked => changes.changed.push(path),
                Status::Pruned | Status::Tracked => {}
            },
            // Only the index would change.
            _ if change.summary().is_none() => {}
            _ => changes.changed.push(path),
        }
    }
    for (path, recorded) in submodules {
        if differs(&work_dir(repository).join(&path), recorded)? {
            changes.changed.push(path);
        }
    }
    changes.changed.sort_unstable();
    changes.changed.dedup();
    changes.ignored.sort_unstable();
    Ok(changes)
}

/// The path of a directory within the work tree that it is in, if Git would add its files with the others there.
///
/// `None` if it is in none, is the top of one, or is ignored; or if that cannot be found out: no more than a warning may depend
/// on it.
pub fn unignored(dir: &Path) -> Option<PathBuf> {
    find_unignored(dir).ok().flatten()
}

fn find_unignored(dir: &Path) -> GitResult<Option<PathBuf>> {
    let real = dir.canonicalize()?;
    let Some(top) = top(&real).filter(|top| *top != real) else { return Ok(None) };
    let path = real.strip_prefix(&top)?;
    let repository = super::open(&top)?;
    let index = own_index(&repository)?;
    let source = ignore::Source::WorktreeThenIdMappingIfNotSkipped;
    let mut ignored = repository.excludes(&index, None, source)?;
    let is_ignored = ignored.at_path(path, Some(Mode::DIR))?.is_excluded();
    Ok((!is_ignored).then(|| path.to_owned()))
}

/// Finds the paths in a directory that the index records in another way than HEAD.
///
/// It reads the trees of that directory only. gix would read all trees of the commit.
fn staged(
    repository: &Repository,
    index: &gix::index::State,
    dir: &Path,
) -> GitResult<Vec<PathBuf>> {
    let mut committed = committed(repository, dir)?;
    let mut staged = Vec::new();
    for entry in index.entries() {
        let path = to_path(entry.path(index));
        if path.starts_with(dir) && committed.remove(&path) != Some((entry.mode, entry.id)) {
            staged.push(path);
        }
    }
    staged.extend(committed.into_keys());
    Ok(staged)
}

/// Returns the entries that HEAD has in a directory, or for its path: everything but trees.
fn committed(repository: &Repository, dir: &Path) -> GitResult<HashMap<PathBuf, (Mode, ObjectId)>> {
    let root = repository.head_tree_id_or_empty()?.object()?.into_tree();
    let tree = if dir.as_os_str().is_empty() {
        root
    } else {
        match root.lookup_entry_by_path(dir)? {
            None => return Ok(HashMap::new()),
            Some(entry) if entry.mode().is_tree() => entry.object()?.into_tree(),
            Some(entry) => {
                let mode = entry.mode().kind().into();
                return Ok([(dir.to_owned(), (mode, entry.object_id()))].into());
            }
        }
    };
    let entries = tree.traverse().breadthfirst.files()?;
    let entries = entries.into_iter().filter(|entry| !entry.mode.is_tree());
    let entries = entries.map(|entry| {
        let path = dir.join(to_path(entry.filepath.as_ref()));
        (path, (Mode::from(entry.mode.kind()), entry.oid))
    });
    Ok(entries.collect())
}

/// Reads the index into a private copy, which may be large.
pub(super) fn own_index(repository: &Repository) -> GitResult<gix::index::File> {
    let (path, hash) = (index_path(repository), repository.object_hash());
    if path.exists() {
        return Ok(gix::index::File::at(path, hash, false, Default::default())?);
    }
    Ok(gix::index::File::from_state(gix::index::State::new(hash), path))
}

/// Finds the files below a directory that have an external filter, and contain something else than
/// the index has.
fn filtered(
    repository: &Repository,
    index: &gix::index::State,
    dir: &Path,
) -> GitResult<Vec<Filtered>> {
    let Some(mut drivers) = Drivers::of(repository, index)? else { return Ok(Vec::new()) };
    let mut filtered = Vec::new();
    for entry in index.entries().iter().filter(|it| it.mode.contains(Mode::FILE)) {
        let path = to_path(entry.path(index));
        if path.starts_with(dir)
            && let Some(filter) = drivers.of_file(entry.path(index))?
        {
            let full = work_dir(repository).join(&path);
            if full.is_file() && !full.is_symlink() && !is_blob(repository, &full, entry.id)? {
                filtered.push(Filtered { path, filter });
            }
        }
    }
    filtered.sort_unstable();
    filtered.dedup();
    Ok(filtered)
}

/// Whether a submodule, if it is checked out, is not just the commit that is recorded.
fn differs(submodule: &Path, recorded: ObjectId) -> GitResult<bool> {
    if !is_repository(submodule) {
        return Ok(false);
    }
    let repository = super::open(submodule)?;
    let head = repository.head()?.id().map(gix::Id::detach);
    Ok(head != Some(recorded) || !changes(&repository, Path::new(""))?.changed.is_empty())
}

pub(super) fn is_repository(dir: &Path) -> bool {
    dir.join(".git").symlink_metadata().is_ok()
}

fn work_dir(repository: &Repository) -> &Path {
    repository.workdir().unwrap_or(repository.git_dir())
}

/// Returns the pattern of everything in a directory, whose name is taken literally.
fn pattern(dir: &Path) -> Option<BString> {
    let dir = dir.as_os_str().as_bytes();
    (!dir.is_empty()).then(|| [b":(top,literal)", dir].concat().into())
}

/// A tree or blob, and where its objects are.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) object: ObjectId,
    /// The repository of the work tree, which has the new objects in memory, and those in it that no
    /// commit records.
    pub(super) repositories: Vec<Repository>,
}

impl Draft {
    /// Makes the tree of a directory. `recorded` is its tree at HEAD, if there is one; changed
    /// paths are relative to the directory.
    ///
    /// Each changed file is read once, so its blob has exactly the contents that were read.
    pub(super) fn new<'a>(
        repository: &Repository,
        dir: &Path,
        recorded: Option<ObjectId>,
        changed: impl Iterator<Item = &'a Path>,
    ) -> GitResult<Self> {
        let memory = repository.clone().with_object_memory();
        let mut nested = Vec::new();
        let root = match recorded {
            Some(id) => Tree::from(object(&memory, id)?.try_into_tree()?.decode()?),
            None => Tree::empty(),
        };
        let mut editor = Editor::new(root, &memory.objects, memory.object_hash());
        let index = own_index(&memory)?;
        let attributes = memory.attributes_only(&index, Source::WorktreeThenIdMapping)?;
        let mut filters = gix::filter::Pipeline::new(&memory, attributes.detach())?;
        for inside in changed {
            let parts = || inside.iter().map(|part| part.as_bytes().as_bstr());
            let path = dir.join(inside);
            let full = work_dir(&memory).join(&path);
            // A directory in the place of a file is represented by its files.
            let here = fs::symlink_metadata(&full).ok();
            let Some(metadata) = here.filter(|it| !it.is_dir() || is_repository(&full)) else {
                editor.remove(parts())?;
                continue;
            };
            let (entry, id) = if metadata.is_dir() {
                let (kind, draft) = submodule(&full)?;
                nested.extend(draft.repositories);
                (kind, draft.object)
            } else if metadata.is_symlink() {
                let target = fs::read_link(&full)?;
                (EntryKind::Link, memory.write_blob(target.as_os_str().as_bytes())?.detach())
            } else {
                let executable = metadata.permissions().mode() & 0o100 != 0;
                let entry = if executable { EntryKind::BlobExecutable } else { EntryKind::Blob };
                let mut converted =
                    filters.convert_to_git(fs::File::open(&full)?, &path, &index)?;
                let mut blob = Vec::new();
                converted.read_to_end(&mut blob)?;
                (entry, memory.write_blob(blob)?.detach())
            };
            editor.upsert(parts(), entry, id)?;
        }
        let tree =
            editor.write(|tree| -> GitResult<_> { Ok(memory.write_object(tree)?.detach()) })?;
        drop((editor, filters, index));
        Ok(Self { object: tree, repositories: [vec![memory], nested].concat() })
    }

    /// Goes on from the tree of a directory to an entry of it.
    pub(super) fn narrow(&mut self, name: &OsStr) -> GitResult<()> {
        let tree = object(&self.repositories[0], self.object)?.try_into_tree()?;
        let entry = tree.lookup_entry_by_path(Path::new(name))?;
        self.object = entry.ok_or("it is not there any more")?.object_id();
        Ok(())
    }
}

/// The entry of a repository in a repository: its commit, or with changes beyond that, a directory.
fn submodule(dir: &Path) -> GitResult<(EntryKind, Draft)> {
    let repository = super::open(dir)?;
    let commit = repository.head()?.id().map(gix::Id::detach);
    let changes = changes(&repository, Path::new(""))?;
    let recorded = match commit {
        Some(commit) if changes.changed.is_empty() => {
            let draft = Draft { object: commit, repositories: vec![repository] };
            return Ok((EntryKind::Commit, draft));
        }
        Some(commit) => Some(tree_of(&repository, commit)?),
        None => None,
    };
    let filtered = changes.filtered.iter().map(|it| it.path.as_path());
    let changed = changes.changed.iter().map(PathBuf::as_path).chain(filtered);
    Ok((EntryKind::Tree, Draft::new(&repository, Path::new(""), recorded, changed)?))
}
