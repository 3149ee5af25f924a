//! The values of an evaluation that Git trees are: each is made once, as soon as its revision is known.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use super::tree::write;
use super::{Evaluation, TreeError, export_tree};
use crate::digest::{Digest, ObjectId};
use crate::git::{SourceRepository, Trees};
use crate::plan::{PlannedTreeId, Source};
use crate::storage::{Input, InputSource, StorageError, Stored};
use crate::task::name::TreeName;
use crate::task::template::{self, MAX_TEXT};
use crate::task::workflow::{RecordedTree, TaskTree, TreeCommit};

/// The values of a Git tree.
#[derive(Debug)]
pub struct TreeValues {
    /// The commit, or the version of the uncommitted changes on top of it, in full.
    pub version: String,
    /// The revision that named it, if that was not a full commit id: it may name another one tomorrow.
    pub revision: Option<String>,
    /// The directory, and the file with the version.
    files: [Input; 2],
}

impl Evaluation {
    /// Makes the values of all trees among these sources, as far as their revisions are known. With `store`, they are
    /// stored.
    ///
    /// # Errors
    ///
    /// Fails, each time, with the first one that cannot be made.
    pub fn make_trees(
        &self,
        sources: impl Iterator<Item = Source>,
        store: bool,
    ) -> Result<(), Arc<TreeError>> {
        for source in sources {
            // A revision may be the commit's id of another tree.
            let mut chain = Vec::new();
            let mut next = Some(source);
            while let Some(Source::Tree { tree, .. }) = next {
                chain.push(tree);
                next = self.plan.tree(tree).revision;
            }
            for tree in chain.into_iter().rev() {
                self.make_tree(tree, store)?;
            }
        }
        Ok(())
    }

    /// The values of a tree, or why it has none. `None` as long as nothing wanted them.
    pub fn tree_values(&self, tree: PlannedTreeId) -> Option<Result<&TreeValues, &TreeError>> {
        Some(self.trees[tree.index()].get()?.as_ref().map_err(|error| &**error))
    }

    /// The repository that a tree is read from, if there is one.
    pub fn repository(&self, name: &TreeName) -> Option<Arc<SourceRepository>> {
        self.sources.find(name.source(), &self.task.commit).ok()
    }

    /// The names of the trees whose revisions are no full commit ids, with these, sorted.
    pub fn loose_revisions(&self) -> Vec<(TreeName, String)> {
        let revision = |(id, values): (PlannedTreeId, &TreeValues)| {
            let name = self.task.trees[self.plan.tree(id).tree.index()].name.written().clone();
            Some((name, values.revision.clone()?))
        };
        let mut loose: Vec<_> = self.made_trees().filter_map(revision).collect();
        loose.sort_unstable();
        loose.dedup();
        loose
    }

    /// The files and directories that trees are.
    pub fn tree_files(&self) -> impl Iterator<Item = &Stored> {
        self.made_trees().flat_map(|(_, values)| values.files.iter().map(|input| &input.file))
    }

    fn made_trees(&self) -> impl Iterator<Item = (PlannedTreeId, &TreeValues)> {
        let made = |id| Some((id, self.tree_values(id)?.ok()?));
        self.plan.trees().filter_map(move |(id, _)| made(id))
    }

    /// The file or directory of a source that is a tree, or of a tree's commit.
    pub(super) fn tree_input(&self, source: Source) -> Option<&Input> {
        match source {
            Source::Tree { tree, number } => {
                self.tree_values(tree)?.ok()?.files.get(usize::from(number))
            }
            _ => None,
        }
    }

    fn make_tree(&self, id: PlannedTreeId, store: bool) -> Result<(), Arc<TreeError>> {
        let planned = self.plan.tree(id);
        let tree = &self.task.trees[planned.tree.index()];
        // What is not known now may never be.
        let text = match planned.revision.map(|source| self.revision(tree.name.written(), source)) {
            None => Ok(None),
            Some(None) => return Ok(()),
            Some(Some(text)) => text.map(Some),
        };
        let make =
            || text.and_then(|text| self.tree_values_of(tree, text, store)).map_err(Arc::new);
        self.trees[id.index()].get_or_init(make).as_ref().map(drop).map_err(Arc::clone)
    }

    fn tree_values_of(
        &self,
        TaskTree { name, commit }: &TaskTree,
        text: Option<String>,
        store: bool,
    ) -> Result<TreeValues, TreeError> {
        let name = name.written();
        let text = match commit {
            TreeCommit::Recorded(
                recorded @ RecordedTree { uncommitted: Some((dir, tree)), .. },
            ) => {
                let directory = self.directory(&Trees::as_it_stands(dir, tree), tree, store)?;
                return self.with_version(directory, recorded.version(), None, store);
            }
            TreeCommit::Recorded(RecordedTree { commit, .. }) => commit.full().to_owned(),
            TreeCommit::OfRevision | TreeCommit::Unbound => text.unwrap_or_default(),
        };
        let repository = self.sources.find(name.source(), &self.task.commit)?;
        let commit = repository.commit(&text)?;
        let tree = repository.tree(&commit, name.path())?;
        let directory = self.directory(repository.trees(), &tree, store)?;
        let revision = Some(text).filter(|text| text != commit.full());
        self.with_version(directory, commit.full().to_owned(), revision, store)
    }

    /// The values of a tree, of which the directory is known.
    fn with_version(
        &self,
        directory: Input,
        version: String,
        revision: Option<String>,
        store: bool,
    ) -> Result<TreeValues, TreeError> {
        let commit = InputSource::Bytes(format!("{version}\n").into_bytes());
        let commit = match store {
            true => self.storage.inputs().store(&commit)?,
            false => self.storage.inputs().find(&commit)?,
        };
        Ok(TreeValues { version, revision, files: [directory, commit] })
    }

    /// Makes a tree a directory in the storage, or finds the one that it would be.
    fn directory(&self, trees: &Trees, tree: &ObjectId, store: bool) -> Result<Input, TreeError> {
        let inputs = self.storage.inputs();
        match inputs.known_tree(tree)? {
            Some(known) if known.there || !store => Ok(known),
            _ if store => inputs.store_tree(tree, |new| {
                export_tree(trees, tree, &|file| {
                    inputs.go_on()?;
                    write(new, file)
                })
            }),
            _ => Ok(inputs.find_tree(tree, &export_tree(trees, tree, &|_| inputs.go_on())?)?),
        }
    }

    /// Reads a revision, a text of one line. `None` if it is not known.
    fn revision(&self, name: &TreeName, source: Source) -> Option<Result<String, TreeError>> {
        if let Source::Tree { tree, number: 1 } = source {
            return Some(Ok(self.tree_values(tree)?.ok()?.version.clone()));
        }
        let digest = self.digest(source)?;
        if digest.is_directory() {
            return Some(Err(TreeError::Directory(name.to_string())));
        }
        let contents = match self.stored(source) {
            Some(file) => self.beginning(&file),
            None => Ok(self.texts.get(&digest)?.clone()),
        };
        Some(contents.and_then(|contents| {
            let wrong = |fault| TreeError::Revision { name: name.to_string(), fault };
            template::text(&contents).map(str::to_owned).map_err(wrong)
        }))
    }

    /// Reads the beginning of a file in the storage, or all of it if it is a text.
    fn beginning(&self, file: &Stored) -> Result<Vec<u8>, TreeError> {
        let (path, most) = (self.storage.path(&file.name), MAX_TEXT as u64 + 2);
        let mut contents = Vec::new();
        let read = File::open(&path).and_then(|it| it.take(most).read_to_end(&mut contents));
        match read {
            Err(source) => Err(StorageError::Io { doing: "read", path, source }.into()),
            Ok(_) if file.digest.size < most && Digest::of(&contents) != file.digest => {
                Err(StorageError::Changed(path).into())
            }
            Ok(_) => Ok(contents),
        }
    }
}
