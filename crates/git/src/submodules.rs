//! A repository and its cloned submodules, at any depth.

use std::cell::{OnceCell, RefCell};
use std::collections::HashSet;
use std::fs;
use std::path::Path;

use gix::index::entry::Mode;
use gix::{ObjectId, Repository};

use crate::objects::AbsentObject;
use crate::opening::{NoRepository, is_repository, open, open_submodule, own_index};
use crate::{GitResult, text_computations, to_path};

/// A repository with its submodules, which are opened when one is asked for.
#[derive(Clone, Debug)]
pub(super) struct Repositories {
    pub(super) task: Repository,
    /// Repositories in its work tree that are not submodules.
    nested: Vec<Repository>,
    submodules: OnceCell<Vec<Repository>>,
    /// A copy of the repository that keeps the files of computations in texts in memory.
    texts: OnceCell<Repository>,
    /// The commits whose texts were read.
    read: RefCell<HashSet<ObjectId>>,
}

impl Repositories {
    /// Opens the repository that a directory is in, or is; or was in, if it is gone.
    pub(super) fn open(dir: &Path) -> GitResult<Self> {
        let real = dir.canonicalize();
        let top =
            crate::discovery::top(real.as_deref().unwrap_or(dir)).unwrap_or_else(|| dir.to_owned());
        Ok(Self::from_open(open(&top)?, Vec::new()))
    }

    /// A repository that was opened before, and some in its work tree.
    pub(super) fn from_open(task: Repository, nested: Vec<Repository>) -> Self {
        let (submodules, texts) = (OnceCell::new(), OnceCell::new());
        Self { task, nested, submodules, texts, read: RefCell::default() }
    }

    /// The submodules that are cloned.
    pub(super) fn submodules(&self) -> GitResult<&[Repository]> {
        if let Some(known) = self.submodules.get() {
            return Ok(known);
        }
        let found = find(&self.task)?;
        Ok(self.submodules.get_or_init(|| found))
    }

    /// The repository that has an object, if any.
    pub(super) fn repository_of(&self, id: ObjectId) -> GitResult<Option<&Repository>> {
        if let Some(found) = self.opened().find(|repository| repository.has_object(id)) {
            return Ok(Some(found));
        }
        Ok(self.submodules()?.iter().find(|repository| repository.has_object(id)))
    }

    /// The repositories that need not be looked for.
    fn opened(&self) -> impl Iterator<Item = &Repository> {
        [&self.task].into_iter().chain(&self.nested).chain(self.texts.get())
    }

    /// Makes the code of a computation known, given by a commit that has it and by its tree or blob. A computation that stands in a text is
    /// the only one that no repository has.
    pub(super) fn find_code(&self, commit: ObjectId, id: ObjectId) -> GitResult<()> {
        if self.opened().any(|repository| repository.has_object(id))
            || self.read.borrow().contains(&commit)
        {
            return Ok(());
        }
        // Who reads the code says what is wrong with the repositories.
        let Ok(Some(repository)) = self.repository_of(commit) else { return Ok(()) };
        if repository.has_object(id) {
            return Ok(());
        }
        let (files, unread) = text_computations::files_at(repository, commit)?;
        self.keep(&files)?;
        self.read.borrow_mut().insert(commit);
        match unread {
            Some(error) if !self.opened().any(|repository| repository.has_object(id)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Keeps files in memory.
    pub(super) fn keep(&self, files: &[String]) -> GitResult<()> {
        let texts = self.texts.get_or_init(|| self.task.clone().with_object_memory());
        files.iter().try_for_each(|file| Ok(texts.write_blob(file).map(drop)?))
    }

    /// The repository that has an object. Fails if no repository has it.
    pub(super) fn required_repository_of(&self, id: ObjectId) -> GitResult<&Repository> {
        match self.repository_of(id) {
            Ok(None) | Err(_) if !self.task.git_dir().exists() => {
                let place = self.task.workdir().unwrap_or(self.task.git_dir());
                Err(NoRepository(place.to_owned()).into())
            }
            Ok(found) => Ok(found.ok_or(AbsentObject(id))?),
            // Even the submodules may be unknown if objects are missing.
            Err(why) => Err(format!("{} ({why})", AbsentObject(id)).into()),
        }
    }
}

/// Returns the submodules in `modules/`, even if they are not recorded now, and submodules that are checked out with
/// their own repository.
fn find(task: &Repository) -> GitResult<Vec<Repository>> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut waiting = vec![task.clone()];
    while let Some(repository) = waiting.pop() {
        let mut submodules = kept(&repository.common_dir().join("modules"))?;
        for submodule in repository.submodules()?.into_iter().flatten() {
            if let Ok(Some(opened)) = submodule.open() {
                submodules.push(open_submodule(opened.git_dir())?);
            }
        }
        submodules.extend(unnamed(&repository)?);
        for submodule in submodules {
            if seen.insert(submodule.git_dir().canonicalize()?) {
                waiting.push(submodule.clone());
                found.push(submodule);
            }
        }
    }
    Ok(found)
}

/// The repositories that are checked out where the index has a commit, even if `.gitmodules` does not name them.
fn unnamed(around: &Repository) -> GitResult<Vec<Repository>> {
    let Some(top) = around.workdir() else { return Ok(Vec::new()) };
    let index = own_index(around)?;
    let commits = index.entries().iter().filter(|entry| entry.mode == Mode::COMMIT);
    let places = commits.map(|entry| top.join(to_path(entry.path(&index))));
    // A `.git` that leads nowhere belongs to a submodule that is not cloned.
    Ok(places.filter(|it| is_repository(it)).filter_map(|it| open_submodule(&it).ok()).collect())
}

fn kept(room: &Path) -> GitResult<Vec<Repository>> {
    let mut kept = Vec::new();
    let mut rooms = vec![room.to_owned()];
    while let Some(room) = rooms.pop() {
        let Ok(entries) = fs::read_dir(&room) else { continue };
        for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
            // A submodule's name may have slashes, so a directory may be on the way to one.
            if path.join("HEAD").is_file() && path.join("objects").is_dir() {
                kept.push(open_submodule(&path)?);
            } else {
                rooms.push(path);
            }
        }
    }
    Ok(kept)
}
