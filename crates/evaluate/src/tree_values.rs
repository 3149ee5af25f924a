//! The values of an evaluation that Git trees are: each is made once, as soon as its revision is known.

use std::fs::File;
use std::io::Read;
use std::slice;
use std::sync::Arc;

use super::derived_values::DerivedValue;
use super::tree::write;
use super::{Evaluation, ValueError, export_tree};
use ce_git::{SourceRepository, Trees};
use ce_model::digest::{Digest, ObjectId};
use ce_model::name::TreeName;
use ce_model::plan::{Derivation, DerivedId, Source};
use ce_model::task::{RecordedTree, TaskTree, TaskTreeId, TreeCommit};
use ce_model::template;
use ce_model::template::MAX_TEXT;
use ce_storage::{Input, InputSource, StorageError, Stored};

/// The values of a Git tree.
#[derive(Debug)]
pub struct TreeValues {
    /// The commit, or the version of the uncommitted changes on top of it, in full.
    pub version: String,
    /// The revision that named it, if that was not a full commit id: it may name another one tomorrow.
    pub revision: Option<String>,
    /// The directory, and the file with the version.
    pub(super) files: [Input; 2],
}

impl Evaluation {
    /// The values of a Git tree, or why it has none. `None` as long as nothing wanted them.
    pub fn tree_values(&self, tree: DerivedId) -> Option<Result<&TreeValues, &ValueError>> {
        match self.derived_value(tree)? {
            Ok(DerivedValue::Tree(values)) => Some(Ok(values)),
            Ok(DerivedValue::File(_)) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// The repository that a tree is read from, if there is one.
    pub fn repository(&self, name: &TreeName) -> Option<Arc<SourceRepository>> {
        self.sources.find(name.source(), &self.task.commit).ok()
    }

    /// The names of the trees among these values whose revisions are no full commit ids, with these, sorted.
    pub fn loose_revisions(&self, values: &[DerivedId]) -> Vec<(TreeName, String)> {
        let revision = |id: &DerivedId| {
            let revision = self.tree_values(*id)?.ok()?.revision.clone()?;
            Some((self.tree_name(*id)?.clone(), revision))
        };
        let mut loose: Vec<_> = values.iter().filter_map(revision).collect();
        loose.sort_unstable();
        loose.dedup();
        loose
    }

    /// The files and directories among these values that come from a repository, or were in the storage before.
    pub fn leaves(&self, values: &[DerivedId]) -> impl Iterator<Item = &Stored> {
        values.iter().flat_map(|id| {
            let files = match (&self.plan.value(*id).how, self.derived_value(*id)) {
                (Derivation::Tree(..), Some(Ok(DerivedValue::Tree(values)))) => &values.files[..],
                (
                    Derivation::File(_) | Derivation::Literal(_),
                    Some(Ok(DerivedValue::File(input))),
                ) => slice::from_ref(input),
                _ => &[],
            };
            files.iter().map(|input| &input.file)
        })
    }

    /// Makes the values of a tree. `None` if its revision is not known, and may never be.
    pub(super) fn make_tree(
        &self,
        tree: TaskTreeId,
        name: Option<&TreeName>,
        (revision, store): (Option<Source>, bool),
    ) -> Option<Result<TreeValues, ValueError>> {
        let TaskTree { name: written, commit } = &self.task.trees[tree.index()];
        let name = name.unwrap_or_else(|| written.written());
        let text = match revision {
            None => Ok(None),
            Some(source) => self.revision(name, source)?.map(Some),
        };
        Some(text.and_then(|text| match commit {
            TreeCommit::Unbound => {
                let recorded = self.later.recorded(name).map_err(|fault| {
                    ValueError::Unreadable { name: name.to_string(), source: fault.into() }
                })?;
                self.tree_values_of(name, &TreeCommit::Recorded(recorded), text, store)
            }
            commit => self.tree_values_of(name, commit, text, store),
        }))
    }

    /// The name of a Git tree, with the texts of its names.
    pub fn tree_name(&self, id: DerivedId) -> Option<&TreeName> {
        match &self.plan.value(id).how {
            Derivation::Tree(_, Some(name)) => Some(name),
            Derivation::Tree(tree, None) => Some(self.task.trees[tree.index()].name.written()),
            _ => None,
        }
    }

    fn tree_values_of(
        &self,
        name: &TreeName,
        commit: &TreeCommit,
        text: Option<String>,
        store: bool,
    ) -> Result<TreeValues, ValueError> {
        let text = match commit {
            TreeCommit::Recorded(
                recorded @ RecordedTree { uncommitted: Some((dir, tree)), .. },
            ) => {
                let directory = self.directory(&Trees::as_it_stands(dir, tree), tree, store);
                let directory = directory.map_err(|error| error.of(name))?;
                return self.with_version(directory, recorded.version(), None, store);
            }
            TreeCommit::Recorded(RecordedTree { commit, .. }) => commit.full().to_owned(),
            TreeCommit::OfRevision | TreeCommit::Unbound => text.unwrap_or_default(),
        };
        let repository = self.sources.find(name.source(), &self.task.commit)?;
        let commit = repository.commit(&text)?;
        let tree = repository.tree(&commit, name.path())?;
        let directory = self.directory(repository.trees(), &tree, store);
        let directory = directory.map_err(|error| error.of(name))?;
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
    ) -> Result<TreeValues, ValueError> {
        let commit = InputSource::Bytes(format!("{version}\n").into_bytes());
        let commit = match store {
            true => self.storage.inputs().store(&commit)?,
            false => self.storage.inputs().find(&commit)?,
        };
        Ok(TreeValues { version, revision, files: [directory, commit] })
    }

    /// Makes a tree a directory in the storage, or finds the one that it would be.
    fn directory(&self, trees: &Trees, tree: &ObjectId, store: bool) -> Result<Input, ValueError> {
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
    fn revision(&self, name: &TreeName, source: Source) -> Option<Result<String, ValueError>> {
        if let Source::Derived { value: tree, number: 1 } = source {
            return Some(Ok(self.tree_values(tree)?.ok()?.version.clone()));
        }
        let digest = self.digest(source)?;
        if digest.is_directory() {
            return Some(Err(ValueError::Directory(name.to_string())));
        }
        let contents = match self.stored(source) {
            Some(file) => self.beginning(&file),
            // In a dry run, a text of a point need not be stored.
            None if matches!(source, Source::Derived { .. }) => {
                Ok(self.contents(source).ok()??)
            }
            None => Ok(self.texts.get(&digest)?.clone()),
        };
        Some(contents.and_then(|contents| {
            let wrong = |fault| ValueError::Revision { name: name.to_string(), fault };
            template::text(&contents).map(str::to_owned).map_err(wrong)
        }))
    }

    /// Reads the beginning of a file in the storage, or all of it if it is a text.
    fn beginning(&self, file: &Stored) -> Result<Vec<u8>, ValueError> {
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
