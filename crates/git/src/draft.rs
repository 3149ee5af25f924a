//! A draft: the commit that a work tree would become if all of it were added. It has the contents of the files, not the
//! staged ones. Ignored files are not in it.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read as _};
use std::ops::Bound;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use gix::bstr::{BStr, ByteSlice};
use gix::filter::Pipeline;
use gix::index::entry::Mode;
use gix::objs::tree::{Editor, EntryKind};
use gix::objs::{Kind, Tree, compute_hash};
use gix::worktree::stack::state::attributes::Source;
use gix::{ObjectId, Repository};

use super::GitResult;
use super::attributes::unsupported;
use super::objects::{blob, object, tree_of};
use super::opening::{NoRepository, is_repository, own_index};
use super::uncommitted_changes::{Changes, changes};

/// A work tree as it stands. Each file is read once, so all statements about it are about the same bytes.
pub(super) struct Draft {
    /// The top of the work tree.
    top: PathBuf,
    /// The repository, which keeps the draft's objects in memory. `None` for a directory that is in no repository.
    repository: Option<Repository>,
    /// The paths that differ from the commit, relative to the top. Without a repository, all do.
    changed: BTreeSet<PathBuf>,
    /// Files, and directories of files, that Git ignores: relative to the top.
    ignored: Vec<PathBuf>,
    index: OnceCell<gix::index::File>,
    read: RefCell<HashMap<PathBuf, DraftFile>>,
    /// Repositories in the work tree, by their paths.
    nested: RefCell<BTreeMap<PathBuf, NestedDraft>>,
    /// Directories that no link leads to.
    reached: RefCell<HashSet<PathBuf>>,
}

/// An entry of a tree.
#[derive(Clone, Debug)]
pub(super) struct TreeEntry {
    pub(super) name: OsString,
    pub(super) kind: EntryKind,
    /// The id of the blob, tree or commit. For a draft, the id of the tree that the commit has there, or the null id.
    pub(super) id: ObjectId,
    /// The draft differs from the commit here, or below.
    pub(super) is_draft: bool,
}

/// A file of a draft that was read. The repository has its contents.
#[derive(Clone, Copy, Debug)]
struct DraftFile {
    kind: EntryKind,
    id: ObjectId,
}

/// A repository in a work tree that is not just a commit which is recorded there.
#[derive(Clone)]
pub(super) struct NestedDraft {
    /// Its commit at HEAD, if it has one, and the tree of that commit.
    pub(super) head: Option<(ObjectId, ObjectId)>,
    pub(super) draft: Rc<Draft>,
}

/// The entries of a tree, sorted by name.
pub(super) fn tree_entries(repository: &Repository, id: ObjectId) -> GitResult<Vec<TreeEntry>> {
    let mut entries = Vec::new();
    for entry in object(repository, id)?.try_into_tree()?.iter() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.filename()).to_owned();
        let (kind, id) = (entry.kind(), entry.object_id());
        entries.push(TreeEntry { name, kind, id, is_draft: false });
    }
    // Git sorts directories as if their names ended with a slash.
    entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

impl std::fmt::Debug for Draft {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Draft").field("top", &self.top).field("changed", &self.changed).finish()
    }
}

impl Draft {
    /// The draft of a work tree with these changes, which are relative to its top.
    pub(super) fn new(repository: &Repository, changes: &Changes) -> Self {
        // Without its filter, a file counts with its own contents.
        let filtered = changes.filtered.iter().map(|it| &it.path);
        let top = repository.workdir().unwrap_or(repository.git_dir()).to_owned();
        Self {
            repository: Some(repository.clone().with_object_memory()),
            changed: changes.changed.iter().chain(filtered).cloned().collect(),
            ignored: changes.ignored.clone(),
            ..Self::outside(&top)
        }
    }

    /// The files of a directory that is in no repository.
    pub(super) fn outside(dir: &Path) -> Self {
        Self {
            top: dir.to_owned(),
            repository: None,
            changed: BTreeSet::new(),
            ignored: Vec::new(),
            index: OnceCell::new(),
            read: RefCell::default(),
            nested: RefCell::default(),
            reached: RefCell::default(),
        }
    }

    /// The repository that has the objects of the draft and of its commit.
    pub(super) fn repository(&self) -> Option<&Repository> {
        self.repository.as_ref()
    }

    /// The repository of the work tree, and the repositories in it that no commit records. A copy has its own memory.
    pub(super) fn repositories(&self) -> Vec<Repository> {
        let own = self.repository.iter().cloned();
        own.chain(self.nested.borrow().values().flat_map(|it| it.draft.repositories())).collect()
    }

    /// The repository at the top of a work tree in this one.
    pub(super) fn nested(&self, path: &Path) -> GitResult<NestedDraft> {
        if let Some(known) = self.nested.borrow().get(path) {
            return Ok(known.clone());
        }
        let repository = super::open(&self.top.join(path))?;
        let commit = repository.head()?.id().map(gix::Id::detach);
        let tree = commit.map(|commit| tree_of(&repository, commit)).transpose()?;
        let draft = Self::new(&repository, &changes(&repository, commit, Path::new(""))?);
        let nested = NestedDraft { head: commit.zip(tree), draft: Rc::new(draft) };
        self.nested.borrow_mut().insert(path.to_owned(), nested.clone());
        Ok(nested)
    }

    /// Whether a path differs from the commit.
    pub(super) fn is_changed(&self, path: &Path) -> bool {
        self.repository.is_none() || self.changed.contains(path)
    }

    /// Whether something at a path, or below it, differs from the commit.
    pub(super) fn has_changes(&self, path: &Path) -> bool {
        self.repository.is_none()
            || self.changed_below(path).next().is_some()
            || self.is_changed(path)
    }

    fn changed_below<'a>(&'a self, dir: &'a Path) -> impl Iterator<Item = (&'a Path, &'a Path)> {
        let after = self.changed.range::<Path, _>((Bound::Excluded(dir), Bound::Unbounded));
        after.map_while(move |path| Some((path.as_path(), path.strip_prefix(dir).ok()?)))
    }

    /// The entries of a directory, sorted by name, given the commit's entries there.
    pub(super) fn entries(&self, dir: &Path, recorded: &[TreeEntry]) -> GitResult<Vec<TreeEntry>> {
        let mut changed: BTreeMap<OsString, bool> = BTreeMap::new();
        match self.repository {
            Some(_) => {
                for (_, inside) in self.changed_below(dir) {
                    let mut parts = inside.components();
                    let Some(first) = parts.next() else { continue };
                    let is_itself = parts.next().is_none();
                    *changed.entry(first.as_os_str().to_owned()).or_default() |= is_itself;
                }
            }
            None => {
                for entry in fs::read_dir(self.top.join(dir))? {
                    let name = entry?.file_name();
                    if name != ".git" {
                        changed.insert(name, true);
                    }
                }
            }
        }
        let known = |name: &OsString| {
            let at = recorded.binary_search_by(|entry| entry.name.cmp(name)).ok()?;
            Some(&recorded[at])
        };
        let mut entries: Vec<TreeEntry> =
            recorded.iter().filter(|entry| !changed.contains_key(&entry.name)).cloned().collect();
        for (name, is_itself) in changed {
            if let Some((kind, id)) = self.entry(&dir.join(&name), is_itself, known(&name))? {
                entries.push(TreeEntry { name, kind, id, is_draft: true });
            }
        }
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    /// The entry at a path that differs, with the id of the tree that the commit has there, or the null id.
    fn entry(
        &self,
        path: &Path,
        is_itself: bool,
        recorded: Option<&TreeEntry>,
    ) -> GitResult<Option<(EntryKind, ObjectId)>> {
        let Some(metadata) = self.look(path)? else { return Ok(None) };
        let (full, hash) = (self.top.join(path), self.hash());
        if metadata.is_dir() {
            if is_itself && self.repository.is_some() && is_repository(&full) {
                return Ok(Some((EntryKind::Commit, hash.null())));
            }
            let tree = recorded.filter(|entry| entry.kind == EntryKind::Tree).map(|entry| entry.id);
            // No tree has a directory without files.
            let has_files = self.has_files(path, tree)?;
            return Ok(has_files.then(|| (EntryKind::Tree, tree.unwrap_or(hash.null()))));
        }
        // A file that Git does not list is ignored.
        if !is_itself || self.is_ignored(path) {
            return Ok(None);
        }
        Ok(Some((self.kind(path, &metadata)?, hash.null())))
    }

    /// Whether a directory has a file: one that differs and is there, or one of the commit that does not differ.
    fn has_files(&self, dir: &Path, recorded: Option<ObjectId>) -> GitResult<bool> {
        let Some(repository) = &self.repository else { return Ok(true) };
        for (path, _) in self.changed_below(dir) {
            let found = self.look(path)?.filter(|_| !self.is_ignored(path));
            if found.is_some_and(|it| !it.is_dir() || is_repository(&self.top.join(path))) {
                return Ok(true);
            }
        }
        let mut trees: Vec<(PathBuf, ObjectId)> =
            recorded.into_iter().map(|id| (dir.to_owned(), id)).collect();
        while let Some((dir, id)) = trees.pop() {
            for TreeEntry { name, kind, id, .. } in tree_entries(repository, id)? {
                let path = dir.join(name);
                match kind {
                    EntryKind::Tree => trees.push((path, id)),
                    EntryKind::Blob
                    | EntryKind::BlobExecutable
                    | EntryKind::Link
                    | EntryKind::Commit => {
                        if !self.is_changed(&path) {
                            return Ok(true);
                        }
                    }
                }
            }
        }
        Ok(false)
    }

    /// Looks at the entry at a path, without following a link. `None` if nothing does, or if a directory on the way is a
    /// link.
    fn look(&self, path: &Path) -> io::Result<Option<Metadata>> {
        let mut reached = self.reached.borrow_mut();
        let above = path.ancestors().skip(1).filter(|it| !it.as_os_str().is_empty());
        let unknown: Vec<&Path> = above.take_while(|dir| !reached.contains(*dir)).collect();
        if unknown.iter().any(|dir| self.top.join(dir).is_symlink()) {
            return Ok(None);
        }
        reached.extend(unknown.into_iter().map(Path::to_owned));
        match fs::symlink_metadata(self.top.join(path)) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn is_ignored(&self, path: &Path) -> bool {
        self.ignored.iter().any(|ignored| path.starts_with(ignored))
    }

    /// The kind of a file or link. A pipe or a device counts as a file that cannot be read.
    fn kind(&self, path: &Path, metadata: &Metadata) -> GitResult<EntryKind> {
        if metadata.is_symlink() {
            return Ok(EntryKind::Link);
        }
        let executable = match &self.repository {
            Some(repository) if !repository.filesystem_options()?.executable_bit => {
                let path: &BStr = path.as_os_str().as_bytes().as_bstr();
                let entry = self.index()?.entry_by_path(path);
                entry.is_some_and(|entry| entry.mode == Mode::FILE_EXECUTABLE)
            }
            Some(_) => metadata.permissions().mode() & 0o100 != 0,
            None => metadata.permissions().mode() & 0o111 != 0,
        };
        Ok(if executable { EntryKind::BlobExecutable } else { EntryKind::Blob })
    }

    fn hash(&self) -> gix::hash::Kind {
        self.repository.as_ref().map_or(gix::hash::Kind::Sha1, Repository::object_hash)
    }

    fn index(&self) -> GitResult<&gix::index::File> {
        if let (None, Some(repository)) = (self.index.get(), &self.repository) {
            drop(self.index.set(own_index(repository)?));
        }
        self.index.get().ok_or_else(|| NoRepository(self.top.clone()).into())
    }

    /// The size of a file on the disk, in bytes.
    pub(super) fn size(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::symlink_metadata(self.top.join(path))?.len())
    }

    /// The bytes that Git would record of a file that differs, or the target of a link. `None` if nothing that a tree can have is there.
    pub(super) fn contents(&self, path: &Path) -> GitResult<Option<Vec<u8>>> {
        let Some(file) = self.file(path, &mut None)? else { return Ok(None) };
        match &self.repository {
            Some(repository) => blob(repository, file.id).map(Some),
            None => self.read_plain(path, file.kind).map(Some),
        }
    }

    /// Reads a file or link that differs, unless it was read before. `None` if nothing that a tree can have is there.
    fn file<'a>(
        &'a self,
        path: &Path,
        filters: &mut Option<Pipeline<'a>>,
    ) -> GitResult<Option<DraftFile>> {
        if let Some(known) = self.read.borrow().get(path) {
            return Ok(Some(*known));
        }
        let Some(metadata) = self.look(path)? else { return Ok(None) };
        if !(metadata.is_file() || metadata.is_symlink()) || self.is_ignored(path) {
            return Ok(None);
        }
        let kind = self.kind(path, &metadata)?;
        let id = match (&self.repository, kind) {
            (None, _) => compute_hash(self.hash(), Kind::Blob, &self.read_plain(path, kind)?)?,
            (Some(repository), EntryKind::Link) => {
                repository.write_blob(self.read_plain(path, kind)?)?.detach()
            }
            (Some(repository), _) => {
                let index = self.index()?;
                let filters = match filters {
                    Some(filters) => filters,
                    None => {
                        let attributes =
                            repository.attributes_only(index, Source::WorktreeThenIdMapping)?;
                        filters.insert(Pipeline::new(repository, attributes.detach())?)
                    }
                };
                let file = File::open(self.top.join(path))?;
                let converted = filters.convert_to_git(file, path, index);
                let mut converted = converted.map_err(|error| -> Box<dyn Error + Send + Sync> {
                    let name: &BStr = path.as_os_str().as_bytes().as_bstr();
                    let cause = unsupported(repository, index, [name].into_iter());
                    cause.ok().flatten().map_or_else(|| error.into(), Into::into)
                })?;
                // What grows takes twice as much as it holds.
                let mut contents = Vec::with_capacity(usize::try_from(metadata.len())?);
                converted.read_to_end(&mut contents)?;
                repository.write_blob(&contents)?.detach()
            }
        };
        let file = DraftFile { kind, id };
        self.read.borrow_mut().insert(path.to_owned(), file);
        Ok(Some(file))
    }

    /// Reads a file or the target of a link as it is.
    fn read_plain(&self, path: &Path, kind: EntryKind) -> GitResult<Vec<u8>> {
        let full = self.top.join(path);
        Ok(match kind {
            EntryKind::Link => fs::read_link(&full)?.into_os_string().into_vec(),
            EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Tree | EntryKind::Commit => {
                fs::read(&full)?
            }
        })
    }

    /// The tree or blob at a path, given the entry that the commit has there.
    pub(super) fn object(
        &self,
        path: &Path,
        recorded: Option<(ObjectId, EntryKind)>,
    ) -> GitResult<ObjectId> {
        if self.look(path)?.is_some_and(|metadata| metadata.is_dir()) {
            let tree = |(id, kind)| {
                let is_tree = matches!(kind, EntryKind::Tree | EntryKind::Commit);
                is_tree.then_some(id)
            };
            return self.tree(path, recorded.and_then(tree));
        }
        match recorded {
            Some((id, _)) if !self.is_changed(path) => Ok(id),
            _ => Ok(self.file(path, &mut None)?.ok_or("it is not there any more")?.id),
        }
    }

    /// Makes the tree of a directory, given the one that the commit has there.
    fn tree(&self, dir: &Path, recorded: Option<ObjectId>) -> GitResult<ObjectId> {
        let repository = self.repository.as_ref().ok_or_else(|| NoRepository(self.top.clone()))?;
        let root = match recorded {
            Some(id) => Tree::from(object(repository, id)?.try_into_tree()?.decode()?),
            None => Tree::empty(),
        };
        let mut editor = Editor::new(root, &repository.objects, repository.object_hash());
        let mut filters = None;
        for (path, inside) in self.changed_below(dir) {
            let full = self.top.join(path);
            let parts = || inside.iter().map(|part| -> &BStr { part.as_bytes().as_bstr() });
            // A directory in the place of a file is represented by its files.
            let is_reached = self.look(path)?.is_some();
            let entry = if is_reached && is_repository(&full) {
                Some(self.repository_at(path)?)
            } else {
                self.file(path, &mut filters)?.map(|file| (file.kind, file.id))
            };
            match entry {
                Some((kind, id)) => editor.upsert(parts(), kind, id)?,
                None => editor.remove(parts())?,
            };
        }
        editor.write(|tree| Ok(repository.write_object(tree)?.detach()))
    }

    /// The entry of a repository in the work tree: its commit, or with changes beyond that, its tree.
    fn repository_at(&self, path: &Path) -> GitResult<(EntryKind, ObjectId)> {
        let NestedDraft { head, draft } = self.nested(path)?;
        match head {
            Some((commit, _)) if draft.changed.is_empty() => Ok((EntryKind::Commit, commit)),
            head => {
                let tree = draft.tree(Path::new(""), head.map(|(_, tree)| tree))?;
                Ok((EntryKind::Tree, tree))
            }
        }
    }
}
