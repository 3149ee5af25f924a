//! A task that is checked out. It is read from the commit, and the work tree is only asked whether it differs; or it is read from the draft
//! of its next commit.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ce_git::{
    Changes, Filtered, HeadError, Heads, Kind, RepoState, Snapshot, SnapshotError, TreePath,
};
use ce_model::digest::ObjectId;
use ce_model::name::TreeName;
use ce_model::task::{FileContents, LIBRARY, RecordedTree, TextComputation, WORKFLOW_TEXT};

use super::computations::{self, RESOURCES_FILE, name_of_file};
use super::problems::LoadFault;
use super::source::{self, Located, SourceVersion, TaskSource};
use super::{OWN, Uncommitted};

/// A task that is checked out.
#[derive(Debug)]
pub(super) struct Checkout {
    /// The real path of its directory.
    task: PathBuf,
    /// The top of the work tree.
    repository: PathBuf,
    heads: Heads,
    snapshot: Snapshot,
    /// The commit at HEAD and the computations in its text, once a draft has asked for them.
    committed: Option<(Snapshot, Vec<TextComputation>)>,
    /// It is read as the work tree stands, with uncommitted changes.
    is_draft: bool,
    uncommitted: Uncommitted,
    /// Files with uncommitted changes that matter.
    changed: Vec<PathBuf>,
    /// Ignored files that an `exec` could read.
    ignored: Vec<PathBuf>,
}

impl Checkout {
    /// The task in a directory as the commit at HEAD has it. A change of the work tree that matters is refused, or noted.
    pub(super) fn committed(task: &Path, mut heads: Heads) -> Result<Self, HeadError> {
        heads.find_head(task)?;
        let snapshot = heads.snapshot(task)?;
        Ok(Self::new(task, heads, snapshot, Uncommitted::Refuse))
    }

    /// The task in a directory, with uncommitted changes.
    pub(super) fn draft(
        task: &Path,
        mut heads: Heads,
        uncommitted: Uncommitted,
    ) -> Result<Self, HeadError> {
        let snapshot = heads.draft_snapshot(task)?;
        Ok(Self { is_draft: true, ..Self::new(task, heads, snapshot, uncommitted) })
    }

    /// The source of a task that was loaded before, at the commit that was at HEAD then, or from a draft of the next one.
    pub(super) fn of_task(
        dir: &Path,
        commit: &ObjectId,
        uncommitted: Uncommitted,
        is_draft: bool,
    ) -> Result<Self, HeadError> {
        let heads = Heads::at(dir, commit)?;
        if is_draft { Self::draft(dir, heads, uncommitted) } else { Self::committed(dir, heads) }
    }

    fn new(task: &Path, heads: Heads, snapshot: Snapshot, uncommitted: Uncommitted) -> Self {
        Self {
            task: task.to_owned(),
            repository: ce_git::top(task).unwrap_or_else(|| task.to_owned()),
            heads,
            snapshot,
            committed: None,
            is_draft: false,
            uncommitted,
            changed: Vec::new(),
            ignored: Vec::new(),
        }
    }

    /// The states of all repositories that were read.
    pub(super) fn repository_states(&self) -> Option<Vec<RepoState>> {
        self.heads.repository_states()
    }

    /// Whether it would take as long again to find that nothing has changed, since unchanged files were read.
    pub(super) fn is_stale(&self) -> bool {
        self.heads.is_stale()
    }

    /// Whether HEAD is still the commit that was read.
    pub(super) fn stands(&mut self) -> bool {
        self.heads.stands(&self.task).unwrap_or(true)
    }

    /// Whether anything in the work tree differs from the commit.
    pub(super) fn has_changes(&mut self) -> bool {
        let changes = self.heads.changes(&self.repository, &self.repository);
        changes.is_ok_and(|changes| !changes.changed.is_empty())
    }

    /// The path of a file, relative to the task if it is in it.
    fn inside(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.task).unwrap_or(path).to_owned()
    }

    /// The real path of a directory or file in the work tree.
    fn real(&self, place: &TreePath) -> PathBuf {
        self.repository.join(place.whole_place())
    }

    /// A repository on the disk around something that the task's repository has by itself. Its changes are not known.
    fn overlaid_by(&self, place: &TreePath) -> Option<PathBuf> {
        let top = ce_git::top(&self.real(place))?;
        let own = self.repository.join(place.repository_place());
        (top != own && top.starts_with(&own)).then(|| self.inside(&top.join(".git")))
    }

    /// The changed files around something that say what attributes it has: these decide whether a pointer stands for its object.
    fn changed_attributes(&self, place: &TreePath) -> Vec<PathBuf> {
        let top = self.repository.join(place.repository_place());
        let changed = self.snapshot.changed_attributes(place).into_iter();
        changed.map(|path| top.join(path)).collect()
    }

    /// The changes at a path, which are looked for in all of a directory around it. A draft knows all of them.
    fn changes_at(&mut self, path: &Path, around: &Path) -> Result<Changes, HeadError> {
        let scope = if self.is_draft { &self.repository } else { around };
        self.heads.changes(path, scope)
    }

    /// Returns the version of a computation, and notes its uncommitted changes. `entry` is its name in the library.
    fn version_of(
        &mut self,
        place: &TreePath,
        library: &Path,
        entry: &str,
    ) -> Result<SourceVersion, LoadFault> {
        let real = self.real(place);
        if let Some(repository) = self.overlaid_by(place) {
            return Err(LoadFault::Uncommitted(vec![repository]));
        }
        let changes = self.changes_at(&real, real.parent().unwrap_or(&real))?;
        self.changed.extend(self.heads.displaced_submodule(&real, &self.task)?);
        self.changed.extend_from_slice(&changes.changed);
        self.changed.extend(self.changed_attributes(place));
        self.ignored.extend(changes.ignored.iter().cloned());
        if place.is_draft() && self.uncommitted != Uncommitted::Evaluate {
            match place.kind() {
                Kind::Directory => self.heads.find_head(&real)?,
                Kind::File { .. } => self.heads.of_file(&real)?,
            };
        }
        if self.uncommitted == Uncommitted::Refuse {
            refuse(&real, &changes)?;
            let name = name_of_file(entry).unwrap_or(entry);
            if let Some(other) = self.uncommitted_namesake(library, name, Some(entry))? {
                return Err(LoadFault::Uncommitted(vec![other]));
            }
        }
        if !place.is_draft() {
            let version = self.snapshot.version(place)?;
            // The task's repository need not know another one that is not committed yet.
            let is_nested = self.is_draft && !place.repository_place().as_os_str().is_empty();
            return Ok(SourceVersion { checked_out: is_nested.then_some(real), ..version });
        }
        let (commit, tree) = (self.heads.commit(&real)?, self.snapshot.id(place)?);
        Ok(SourceVersion { commit, tree, dirty: true, checked_out: Some(real) })
    }

    /// The version that the computation of this name has at HEAD, wherever it stands there.
    fn version_at_head(&mut self, name: &str) -> Option<SourceVersion> {
        if self.committed.is_none() {
            let mut snapshot = self.heads.snapshot(&self.task).ok()?;
            let texts = computations::text_computations(&mut snapshot);
            self.committed = Some((snapshot, texts));
        }
        let (snapshot, texts) = self.committed.as_mut()?;
        computations::version_of(snapshot, texts, name)
    }

    /// Another file of the library, with uncommitted changes, that has the name of a computation and may be executed. Committed, both would
    /// be the computation. `entry` is its own file or directory, unless it stands in the text.
    fn uncommitted_namesake(
        &mut self,
        library: &Path,
        name: &str,
        entry: Option<&str>,
    ) -> Result<Option<PathBuf>, HeadError> {
        let changes = self.changes_at(library, library)?;
        let is_namesake = |path: &&PathBuf| {
            let file = path.file_name().and_then(OsStr::to_str).filter(|file| Some(*file) != entry);
            path.parent() == Some(library)
                && file.is_some_and(|file| file == name || name_of_file(file) == Some(name))
                && path.metadata().is_ok_and(|it| it.is_file() && it.mode() & 0o111 != 0)
        };
        let directory = library.join(name);
        let is_in_namesake = |path: &&PathBuf| Some(name) != entry && path.starts_with(&directory);
        let mut changed = changes.changed.iter();
        let found = changed.find(|path| is_namesake(path) || is_in_namesake(path));
        Ok(found.map(|path| self.inside(path)))
    }

    /// Notes uncommitted changes of files that links lead to.
    fn note_changes_behind_links(&mut self) -> Result<(), HeadError> {
        let linked: BTreeSet<PathBuf> =
            self.snapshot.linked().iter().map(|place| self.repository.join(place)).collect();
        // Targets in the same top directory are checked together.
        let tops: BTreeSet<PathBuf> = linked
            .iter()
            .filter_map(|path| path.strip_prefix(&self.repository).ok()?.components().next())
            .map(|top| self.repository.join(top))
            .collect();
        for scope in tops {
            let changes = self.changes_at(&scope, &scope)?;
            let moved = self.heads.displaced_submodule(&scope, &self.task)?;
            let below = |path: &Path| path.ancestors().any(|above| linked.contains(above));
            let above = |path: &Path| {
                let mut after = linked.range(path.to_owned()..);
                after.next().is_some_and(|linked| linked.starts_with(path))
            };
            let changed = changes.changed.into_iter().chain(moved);
            self.changed.extend(changed.filter(|path| below(path) || above(path)));
        }
        Ok(())
    }
}

impl TaskSource for Checkout {
    fn commit(&mut self) -> Result<ObjectId, LoadFault> {
        // A task that was never committed has no tree in the commit.
        match self.uncommitted {
            Uncommitted::Evaluate => Ok(self.heads.commit(&self.task)?),
            Uncommitted::Refuse | Uncommitted::Warn | Uncommitted::Ignore => {
                Ok(self.heads.find_head(&self.task)?.commit)
            }
        }
    }

    fn task(&mut self) -> Result<TreePath, LoadFault> {
        self.snapshot.task()
    }

    fn find(&mut self, dir: &TreePath, name: &str) -> Result<Located, LoadFault> {
        TaskSource::find(&mut self.snapshot, dir, name)
    }

    fn holds(&mut self, dir: &TreePath, name: &str) -> Result<bool, LoadFault> {
        self.snapshot.holds(dir, name)
    }

    fn list(&mut self, dir: &TreePath) -> Result<Vec<OsString>, LoadFault> {
        TaskSource::list(&mut self.snapshot, dir)
    }

    fn read_at_most(
        &mut self,
        dir: &TreePath,
        name: &str,
        most: u64,
    ) -> Result<Vec<u8>, LoadFault> {
        self.snapshot.read_at_most(dir, name, most)
    }

    fn version(&mut self, dir: &TreePath) -> Result<SourceVersion, LoadFault> {
        // Named by its own place: a link to it is among those that were followed.
        let real = self.real(dir);
        let entry = real.file_name().and_then(OsStr::to_str).unwrap_or_default();
        self.version_of(dir, real.parent().unwrap_or(&real), entry)
    }

    fn file_version(&mut self, dir: &TreePath, name: &str) -> Result<SourceVersion, LoadFault> {
        let file = self.snapshot.entry(dir, OsStr::new(name))?;
        self.version_of(&file, &self.real(dir), name)
    }

    fn text_version(&mut self, name: &str, file: &str) -> Result<SourceVersion, LoadFault> {
        let text = source::workflow_text(&self.snapshot)?;
        let real = self.real(&text);
        let tree = self.snapshot.id_of_contents(&text, file)?;
        let library = self.task.join(LIBRARY);
        // A draft has both.
        if !self.is_draft
            && let Some(other) = self.uncommitted_namesake(&library, name, None)?
        {
            return Err(LoadFault::Uncommitted(vec![other]));
        }
        if !text.is_draft() {
            let is_nested = self.is_draft && !text.repository_place().as_os_str().is_empty();
            let (commit, checked_out) = (text.commit()?, is_nested.then_some(real));
            return Ok(SourceVersion { commit, tree, dirty: false, checked_out });
        }
        // Most of a text that differs is what it was, or stood elsewhere.
        if let Some(committed) = self.version_at_head(name).filter(|it| it.tree == tree) {
            return Ok(committed);
        }
        if self.uncommitted != Uncommitted::Evaluate {
            self.heads.of_file(&real)?;
        }
        if self.uncommitted == Uncommitted::Refuse {
            return Err(LoadFault::Uncommitted(vec![WORKFLOW_TEXT.into()]));
        }
        let commit = self.heads.commit(&real)?;
        Ok(SourceVersion { commit, tree, dirty: true, checked_out: Some(real) })
    }

    fn missing_file(&mut self, path: &str) -> LoadFault {
        let place = self.task.join(path);
        let changes = self.changes_at(&place, &place);
        match changes.is_ok_and(|it| !self.is_draft && it.changed.contains(&place)) {
            true => LoadFault::UncommittedFile,
            false => LoadFault::NoFile { path: path.to_owned(), nearest: None },
        }
    }

    fn contents(&mut self, dir: &TreePath, name: &str) -> Result<FileContents, LoadFault> {
        let file = self.snapshot.entry(dir, OsStr::new(name))?;
        let real = self.real(&file);
        if let Some(repository) = self.overlaid_by(&file) {
            return Err(LoadFault::Uncommitted(vec![repository]));
        }
        // Another target of a link is a change, too.
        let paths: BTreeSet<PathBuf> = [self.real(dir).join(name), real.clone()].into();
        let mut changed = Vec::new();
        changed.extend(self.heads.displaced_submodule(&real, &self.task)?);
        for path in paths {
            let around = path.parent().filter(|around| !self.task.starts_with(around));
            let changes = self.changes_at(&path, around.unwrap_or(&path))?;
            let filter = changes.filtered.into_iter().find(|it| it.path == path);
            if let (Uncommitted::Refuse, Some(Filtered { filter, .. })) = (self.uncommitted, filter)
            {
                return Err(LoadFault::Filtered { files: vec![name.into()], filter });
            }
            changed.extend(changes.changed.contains(&path).then_some(path));
        }
        changed.extend(self.changed_attributes(&file));
        // A work tree of another commit says nothing about this one.
        let is_changed = !changed.is_empty() && (self.is_draft || self.stands());
        self.changed.extend(changed.into_iter().filter(|_| is_changed));
        match (is_changed, self.uncommitted) {
            (true, Uncommitted::Refuse) => Err(LoadFault::UncommittedFile),
            (true, Uncommitted::Evaluate | Uncommitted::Warn | Uncommitted::Ignore) => {
                match self.snapshot.lfs_files(&file)?.pop() {
                    Some(large) => Ok(FileContents::Uncommitted(source::object(&large)?)),
                    None if real.is_file() => Ok(FileContents::Uncommitted(real)),
                    None => Err(LoadFault::NotAFile),
                }
            }
            (false, _) => {
                let contents = source::contents(&self.snapshot, &file)?;
                if let FileContents::Blob(_) = contents
                    && let Some(filter) = self.snapshot.filter_of(&file)?
                    && real.is_file()
                    && !self.snapshot.has_bytes(&file, &real)?
                {
                    return Err(LoadFault::Converted(filter));
                }
                Ok(contents)
            }
        }
    }

    fn recorded(&mut self, name: &TreeName) -> Result<RecordedTree, LoadFault> {
        let recorded = self.snapshot.recorded(name)?;
        let source = match self.snapshot.source(name.source()) {
            // It need not be: the user may name another repository.
            Err(SnapshotError::NotCloned { .. }) => return Ok(recorded),
            source => source?,
        };
        let found = self.snapshot.directory(&source, Path::new(name.path()));
        if let Ok(found) = &found
            && let Some(repository) = self.overlaid_by(found)
        {
            return Err(LoadFault::Uncommitted(vec![repository]));
        }
        let place = self.real(&source);
        let is_checked_out = ce_git::top(&place).as_ref() == Some(&place);
        let dir = if is_checked_out { place.join(name.path()) } else { place.clone() };
        let changes = self.changes_at(&dir, &dir)?;
        let removed = changes.changed.contains(&place).then(|| place.clone());
        let moved = self.heads.displaced_submodule(&dir, &self.task)?.or(removed);
        self.changed.extend(moved.iter().chain(&changes.changed).cloned());
        if self.uncommitted == Uncommitted::Refuse {
            if let Some(moved) = &moved {
                return Err(LoadFault::Uncommitted(vec![self.inside(moved)]));
            }
            refuse(&place, &changes)?;
        }
        // Files that a commit lacks are reported when they are read.
        if !self.is_draft || matches!(found, Err(SnapshotError::NotCloned { .. })) {
            return Ok(recorded);
        }
        let found = found.map_err(|fault| match fault {
            SnapshotError::Git(_) => LoadFault::from(fault),
            fault => LoadFault::Tree { path: name.path().to_owned(), fault: fault.into() },
        })?;
        // The commit of the source records neither the changes, nor another commit of a submodule in it.
        let differs = found.is_draft() || moved.is_some_and(|moved| moved != place);
        if self.uncommitted != Uncommitted::Evaluate || !differs {
            return Ok(recorded);
        }
        let tree = self.snapshot.id(&found)?;
        Ok(RecordedTree { uncommitted: Some((dir, tree)), ..recorded })
    }

    fn changes(&mut self) -> Result<Changes, LoadFault> {
        for part in OWN.into_iter().chain([RESOURCES_FILE]) {
            let part = self.task.join(part);
            // It need not be there; but somebody may have removed it.
            if part.symlink_metadata().is_err() && !self.heads.has(&part)? {
                continue;
            }
            let place = self.snapshot.find(part.strip_prefix(&self.task).unwrap_or(&part));
            if let Ok(place) = &place
                && let Some(repository) = self.overlaid_by(place)
            {
                return Err(LoadFault::Uncommitted(vec![repository]));
            }
            if let Ok(place) = &place {
                self.changed.extend(self.changed_attributes(place));
            }
            self.changed.extend(self.heads.displaced_submodule(&part, &self.task)?);
            let changes = self.changes_at(&part, &part)?;
            if self.uncommitted == Uncommitted::Refuse
                && let Some(Filtered { filter, .. }) = changes.filtered.first()
            {
                let files = changes.filtered.iter().map(|it| self.inside(&it.path)).collect();
                return Err(LoadFault::Filtered { files, filter: filter.clone() });
            }
            self.changed.extend(changes.changed);
        }
        self.note_changes_behind_links()?;
        let sorted = |paths: &[PathBuf]| {
            let paths: BTreeSet<PathBuf> = paths.iter().map(|path| self.inside(path)).collect();
            paths.into_iter().collect()
        };
        Ok(Changes {
            changed: sorted(&self.changed),
            ignored: sorted(&self.ignored),
            ..Changes::default()
        })
    }
}

/// Refuses a computation that differs from its commit.
fn refuse(place: &Path, changes: &Changes) -> Result<(), LoadFault> {
    if changes.changed.is_empty() {
        return Ok(());
    }
    // A file is reported with its name.
    let dir = if place.is_file() { place.parent().unwrap_or(place) } else { place };
    let inside = |path: &PathBuf| path.strip_prefix(dir).ok().map(Path::to_owned);
    let files: Vec<PathBuf> = changes.changed.iter().filter_map(inside).collect();
    let filters = changes.filtered.iter().find(|_| changes.filtered.len() == files.len());
    Err(match filters {
        Some(Filtered { filter, .. }) => LoadFault::Filtered { files, filter: filter.clone() },
        None => LoadFault::Uncommitted(files),
    })
}
