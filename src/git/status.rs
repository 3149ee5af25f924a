//! What is not committed: the difference between a directory and the commit at HEAD.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gix::bstr::{BString, ByteSlice};
use gix::dir::entry::Status;
use gix::dir::walk::EmissionMode;
use gix::objs::tree::{Editor, EntryKind};
use gix::objs::{Tree, WriteTo};
use gix::status::index_worktree::Item as Change;
use gix::status::{Item, Submodule, UntrackedFiles, tree_index::TrackRenames};
use gix::{ObjectId, Repository};

use super::{GitResult, to_path};

/// How a directory differs from the commit at HEAD: files relative to the top of the work tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// What is modified, staged, deleted, or neither tracked nor ignored; sorted.
    pub changed: Vec<PathBuf>,
    /// What is ignored: files, and directories of which everything is; sorted.
    pub ignored: Vec<PathBuf>,
}

impl Changes {
    /// Makes all paths absolute, given the top of the work tree.
    pub(super) fn below(self, top: &Path) -> Self {
        let join = |paths: Vec<PathBuf>| paths.iter().map(|path| top.join(path)).collect();
        Self { changed: join(self.changed), ignored: join(self.ignored) }
    }
}

/// Returns how a directory, relative to the top of the work tree, differs from HEAD.
pub(super) fn changes(repository: &Repository, dir: &Path) -> GitResult<Changes> {
    let status = repository
        .status(gix::progress::Discard)?
        .untracked_files(UntrackedFiles::Files)
        .dirwalk_options(|options| options.emit_ignored(Some(EmissionMode::CollapseDirectory)))
        .index_worktree_submodules(Submodule::Given {
            ignore: gix::submodule::config::Ignore::None,
            check_dirty: false,
        })
        .index_worktree_rewrites(None)
        // Each look is small, and there may be many: to begin threads takes longer than it saves.
        .index_worktree_options_mut(|options| options.thread_limit = Some(1))
        .tree_index_track_renames(TrackRenames::Disabled);
    let mut changes = Changes::default();
    for item in status.into_iter(pattern(dir))? {
        let item = item?;
        let path = to_path(item.location());
        match &item {
            Item::IndexWorktree(Change::DirectoryContents { entry, .. }) => match entry.status {
                Status::Ignored(_) => changes.ignored.push(path),
                Status::Untracked => changes.changed.push(path),
                Status::Pruned | Status::Tracked => {}
            },
            // Nothing but the index would change.
            Item::IndexWorktree(change) if change.summary().is_none() => {}
            Item::IndexWorktree(_) | Item::TreeIndex(_) => changes.changed.push(path),
        }
    }
    changes.changed.sort_unstable();
    changes.changed.dedup();
    changes.ignored.sort_unstable();
    Ok(changes)
}

/// The pattern of everything in a directory, whatever characters its name has.
fn pattern(dir: &Path) -> Option<BString> {
    let dir = dir.as_os_str().as_bytes();
    (!dir.is_empty()).then(|| [b":(top,literal)", dir].concat().into())
}

/// Returns the id that the tree of a directory would have if all changes in it were committed.
///
/// `recorded` is the tree that HEAD has there, if any; what is changed is relative to the
/// directory. Nothing is written.
pub(super) fn tree_as_it_stands<'a>(
    repository: &Repository,
    dir: &Path,
    recorded: Option<ObjectId>,
    changed: impl Iterator<Item = &'a Path>,
) -> GitResult<ObjectId> {
    let kind = repository.object_hash();
    let root = match recorded {
        Some(id) => Tree::from(repository.find_tree(id)?.decode()?),
        None => Tree::empty(),
    };
    let mut editor = Editor::new(root, &repository.objects, kind);
    let (mut filters, index) = repository.filter_pipeline(None)?;
    let top = repository.workdir().unwrap_or(repository.git_dir());
    for inside in changed {
        let parts = || inside.iter().map(|part| part.as_bytes().as_bstr());
        let path = dir.join(inside);
        let full = top.join(&path);
        let Ok(metadata) = fs::symlink_metadata(&full) else {
            editor.remove(parts())?;
            continue;
        };
        let (entry, blob) = if metadata.is_symlink() {
            let target = fs::read_link(&full)?;
            (EntryKind::Link, target.as_os_str().as_bytes().to_vec())
        } else {
            let executable = metadata.permissions().mode() & 0o100 != 0;
            let entry = if executable { EntryKind::BlobExecutable } else { EntryKind::Blob };
            let mut converted = filters.convert_to_git(fs::File::open(&full)?, &path, &index)?;
            let mut blob = Vec::new();
            std::io::Read::read_to_end(&mut converted, &mut blob)?;
            (entry, blob)
        };
        let id = gix::objs::compute_hash(kind, gix::objs::Kind::Blob, &blob)?;
        editor.upsert(parts(), entry, id)?;
    }
    editor.write(|tree| {
        let mut data = Vec::new();
        tree.write_to(&mut data)?;
        Ok(gix::objs::compute_hash(kind, gix::objs::Kind::Tree, &data)?)
    })
}
