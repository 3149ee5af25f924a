//! Uncommitted changes: the difference between a work tree and a commit.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gix::bstr::{BStr, BString, ByteSlice};
use gix::dir::entry::Status;
use gix::dir::walk::EmissionMode;
use gix::fs::FileSnapshot;
use gix::index::entry::stat::Options;
use gix::index::entry::{Flags, Mode, Stat};
use gix::status::Submodule;
use gix::status::index_worktree::Item as Change;
use gix::submodule::config::Ignore;
use gix::worktree::IndexPersistedOrInMemory;
use gix::worktree::stack::state::ignore;
use gix::{ObjectId, Repository};

use super::attributes::{Drivers, LFS, unsupported};
use super::discovery::top;
use super::lfs::LfsPointer;
use super::objects::{blob, object, tree_of};
use super::opening::{is_repository, own_index};
use super::{GitResult, to_path};

/// The differences of a directory from the commit at HEAD: files relative to the top of the work
/// tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Paths that are modified, staged, deleted, or untracked without being ignored; sorted.
    pub changed: Vec<PathBuf>,
    /// Ignored files, and directories with only ignored files; sorted.
    pub ignored: Vec<PathBuf>,
    /// Changed files with an external filter: only the filter could show whether Git made them from the recorded ones.
    /// Sorted.
    pub filtered: Vec<Filtered>,
    /// Files were read that have not changed, since the index has stats that they no longer have.
    pub is_stale: bool,
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
        Self { changed: join(self.changed), ignored: join(self.ignored), filtered, ..self }
    }

    /// Makes all paths relative to the top of the work tree.
    pub(super) fn inside(&self, top: &Path) -> Self {
        let inside = |paths: &[PathBuf]| {
            paths
                .iter()
                .filter_map(|path| path.strip_prefix(top).ok().map(Path::to_owned))
                .collect()
        };
        let mut filtered = self.filtered.clone();
        filtered.retain_mut(|it| {
            let path = it.path.strip_prefix(top).map(Path::to_owned);
            path.map(|path| it.path = path).is_ok()
        });
        let (changed, ignored) = (inside(&self.changed), inside(&self.ignored));
        Self { changed, ignored, filtered, is_stale: self.is_stale }
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
            is_stale: self.is_stale,
        }
    }
}

/// Returns how a directory, relative to the top of the work tree, differs from a commit, if there is one yet.
///
/// Finds the changes on the disk, and staged ones: no setting and no flag of the index hides one. Files that a sparse
/// checkout leaves out do not count as changed.
pub(super) fn changes(
    repository: &Repository,
    commit: Option<ObjectId>,
    dir: &Path,
) -> GitResult<Changes> {
    find_changes(repository, commit, dir).map_err(|error| {
        let cause = own_index(repository).and_then(|index| {
            let files = index.entries().iter().filter(|entry| entry.mode.contains(Mode::FILE));
            unsupported(repository, &index, files.map(|entry| entry.path(&index)))
        });
        cause.ok().flatten().map_or(error, Into::into)
    })
}

fn find_changes(
    repository: &Repository,
    commit: Option<ObjectId>,
    dir: &Path,
) -> GitResult<Changes> {
    let mut index = own_index(repository)?;
    let staged = staged(repository, commit, &index, dir)?;
    let mut left_out = HashSet::new();
    index.remove_entries(|_, path, entry| {
        if entry.flags.contains(Flags::SKIP_WORKTREE) {
            left_out.insert(to_path(path));
        }
        entry.mode == Mode::DIR
    });
    for entry in index.entries_mut() {
        let hidden = Flags::ASSUME_VALID | Flags::SKIP_WORKTREE;
        entry.flags.remove(hidden | Flags::FSMONITOR_VALID | Flags::UPTODATE);
    }
    let submodules: Vec<(PathBuf, ObjectId)> = (index.entries().iter())
        .filter(|entry| entry.mode == Mode::COMMIT)
        .map(|entry| (to_path(entry.path(&index)), entry.id))
        .filter(|(path, _)| path.starts_with(dir))
        .collect();
    let walk = repository
        .dirwalk_options()?
        .emit_untracked(EmissionMode::Matching)
        .emit_ignored(Some(EmissionMode::CollapseDirectory));
    // A shared copy: several threads have it, and it may be large.
    let index = FileSnapshot::new(index).into();
    let status = repository
        .status(gix::progress::Discard)?
        .index(IndexPersistedOrInMemory::Persisted(Arc::clone(&index)))
        // It knows only the submodules that `.gitmodules` names.
        .index_worktree_submodules(Submodule::Given { ignore: Ignore::All, check_dirty: true })
        .index_worktree_rewrites(None)
        .index_worktree_options_mut(|options| {
            options.dirwalk_options = Some(walk);
            // Each look is small, and there may be many: to begin threads takes longer than it saves.
            options.thread_limit = Some(1);
        });
    let mut changes = Changes { changed: staged, ..Changes::default() };
    let mut modified = Vec::new();
    for change in status.into_index_worktree_iter(pattern(repository, dir))? {
        let change = change?;
        let path = to_path(change.rela_path());
        match &change {
            Change::DirectoryContents { entry, .. } => match entry.status {
                Status::Ignored(_) => changes.ignored.push(path),
                Status::Untracked => changes.changed.push(path),
                Status::Pruned | Status::Tracked => {}
            },
            // Only the index would change.
            _ if change.summary().is_none() => changes.is_stale = true,
            _ if left_out.contains(&path) && is_absent(&work_dir(repository).join(&path)) => {}
            _ => modified.push(path),
        }
    }
    judge_filtered(repository, &index, modified, &mut changes)?;
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

fn is_absent(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// A signal ends a program that looks for changes.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Adds files whose contents differ from the index. For some, only a filter can show what Git would record. The filter
/// of Git LFS is the only known one: the pointer names the file's object.
fn judge_filtered(
    repository: &Repository,
    index: &gix::index::File,
    modified: Vec<PathBuf>,
    changes: &mut Changes,
) -> GitResult<()> {
    let mut drivers = None;
    for path in modified {
        let full = work_dir(repository).join(&path);
        let name: &BStr = path.as_os_str().as_bytes().as_bstr();
        let entry = index.entry_by_path(name).filter(|it| it.mode.contains(Mode::FILE));
        let is_file = full.symlink_metadata().is_ok_and(|it| it.is_file());
        if let Some(entry) = entry.filter(|_| is_file) {
            let drivers = match &mut drivers {
                Some(drivers) => drivers,
                None => drivers.insert(Drivers::read(repository, index)?),
            };
            match drivers.of_file(name)? {
                Some(filter) if filter == LFS => {
                    let pointer = LfsPointer::parse(&blob(repository, entry.id)?);
                    if pointer.is_some_and(|it| it.is_of(&full, &NEVER).unwrap_or(false)) {
                        changes.is_stale = true;
                        continue;
                    }
                }
                // Even if it is as young as the index: its source cannot be found in any other way.
                Some(filter) if drivers.is_program(&filter) && has_stat(&full, entry)? => continue,
                Some(filter) if drivers.is_program(&filter) => {
                    changes.filtered.push(Filtered { path: path.clone(), filter });
                }
                Some(_) | None => {}
            }
        }
        changes.changed.push(path);
    }
    changes.filtered.sort_unstable();
    Ok(())
}

/// The path of a directory within the work tree that it is in, if Git would add its files with the others there.
///
/// `None` if it is not in a repository, is the top of one, or is ignored; or if this cannot be determined: only a
/// warning may depend on it.
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

/// Finds the paths in a directory that the index records in another way than a commit.
///
/// It reads the trees of that directory only. gix would read all trees of the commit.
fn staged(
    repository: &Repository,
    commit: Option<ObjectId>,
    index: &gix::index::State,
    dir: &Path,
) -> GitResult<Vec<PathBuf>> {
    let mut committed = committed(repository, commit, dir)?;
    let mut staged = Vec::new();
    for entry in index.entries() {
        let path = to_path(entry.path(index));
        if entry.mode == Mode::DIR {
            // The tree of a directory that a sparse checkout leaves out.
            committed.retain(|it, _| !it.starts_with(&path));
            if tree_at(repository, commit, &path)? != Some(entry.id)
                && (path.starts_with(dir) || dir.starts_with(&path))
            {
                staged.push(path);
            }
        } else if path.starts_with(dir) && committed.remove(&path) != Some((entry.mode, entry.id)) {
            staged.push(path);
        }
    }
    staged.extend(committed.into_keys());
    Ok(staged)
}

/// The tree that a commit has at a path.
fn tree_at(
    repository: &Repository,
    commit: Option<ObjectId>,
    path: &Path,
) -> GitResult<Option<ObjectId>> {
    let Some(commit) = commit else { return Ok(None) };
    let root = object(repository, tree_of(repository, commit)?)?.try_into_tree()?;
    let entry = root.lookup_entry_by_path(path)?;
    Ok(entry.filter(|entry| entry.mode().is_tree()).map(|entry| entry.object_id()))
}

/// Returns the entries that a commit has in a directory, or for its path: everything but trees.
fn committed(
    repository: &Repository,
    commit: Option<ObjectId>,
    dir: &Path,
) -> GitResult<HashMap<PathBuf, (Mode, ObjectId)>> {
    let Some(commit) = commit else { return Ok(HashMap::new()) };
    let root = object(repository, tree_of(repository, commit)?)?.try_into_tree()?;
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

/// Whether a file has the stat that the index has of it, to the nanosecond.
fn has_stat(file: &Path, entry: &gix::index::Entry) -> GitResult<bool> {
    let stat = Stat::from_fs(&gix::index::fs::Metadata::from_path_no_follow(file)?)?;
    let exactly = Options { use_nsec: true, ..Options::default() };
    Ok(entry.stat.matches(&stat, exactly))
}

/// Whether a submodule, if it is checked out, is not just the commit that is recorded.
fn differs(submodule: &Path, recorded: ObjectId) -> GitResult<bool> {
    if !is_repository(submodule) {
        return Ok(false);
    }
    let repository = super::open(submodule)?;
    let head = repository.head()?.id().map(gix::Id::detach);
    Ok(head != Some(recorded) || !changes(&repository, head, Path::new(""))?.changed.is_empty())
}

fn work_dir(repository: &Repository) -> &Path {
    repository.workdir().unwrap_or(repository.git_dir())
}

/// Returns the pattern of everything in a directory, whose name is taken literally. The environment may say that all patterns are
/// (`GIT_LITERAL_PATHSPECS`).
fn pattern(repository: &Repository, dir: &Path) -> Option<BString> {
    let is_literal = repository.config_snapshot().boolean("gitoxide.pathspec.literal");
    let magic: &[u8] = if is_literal == Some(true) { b"" } else { b":(top,literal)" };
    let dir = dir.as_os_str().as_bytes();
    (!dir.is_empty()).then(|| [magic, dir].concat().into())
}
