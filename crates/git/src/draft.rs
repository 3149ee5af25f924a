//! The tree that a directory would have if all changes in it were committed. Its objects are made in
//! memory: nothing is written.

use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use gix::bstr::ByteSlice;
use gix::objs::Tree;
use gix::objs::tree::{Editor, EntryKind};
use gix::worktree::stack::state::attributes::Source;
use gix::{ObjectId, Repository};

use super::GitResult;
use super::repositories::{object, tree_of};
use super::status::{changes, is_repository, own_index, top};

/// A tree, and where its objects are.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) tree: ObjectId,
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
            let full = top(&memory).join(&path);
            // A directory in the place of a file is represented by its files.
            let here = fs::symlink_metadata(&full).ok();
            let Some(metadata) = here.filter(|it| !it.is_dir() || is_repository(&full)) else {
                editor.remove(parts())?;
                continue;
            };
            let (entry, id) = if metadata.is_dir() {
                let (kind, draft) = submodule(&full)?;
                nested.extend(draft.repositories);
                (kind, draft.tree)
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
        Ok(Self { tree, repositories: [vec![memory], nested].concat() })
    }
}

/// The entry of a repository in a repository: its commit, or with changes beyond that, a directory.
fn submodule(dir: &Path) -> GitResult<(EntryKind, Draft)> {
    let repository = super::open(dir)?;
    let commit = repository.head()?.id().map(gix::Id::detach);
    let changes = changes(&repository, Path::new(""))?;
    let recorded = match commit {
        Some(commit) if changes.changed.is_empty() => {
            let draft = Draft { tree: commit, repositories: vec![repository] };
            return Ok((EntryKind::Commit, draft));
        }
        Some(commit) => Some(tree_of(&repository, commit)?),
        None => None,
    };
    let filtered = changes.filtered.iter().map(|it| it.path.as_path());
    let changed = changes.changed.iter().map(std::path::PathBuf::as_path).chain(filtered);
    Ok((EntryKind::Tree, Draft::new(&repository, Path::new(""), recorded, changed)?))
}
