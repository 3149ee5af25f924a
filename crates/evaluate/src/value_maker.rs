//! Values that no call makes: Git trees, members of directories, and texts and files of points. Each is made once, as
//! soon as its sources are known. Git trees become directories here.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use super::derived_values::DerivedValue;
use super::{Evaluation, TreeValues, ValueError};
use ce_files::cache::Cache;
use ce_files::manifest::{EntryKind, Manifest, ManifestEntry};
use ce_git::{GitResult, LfsFile, SourceError, SourceRepository, TreeFile, TreeFileKind, Trees};
use ce_model::digest::{Blake3, Digest, ObjectId, ObjectIdError};
use ce_model::name::{MemberPath, TreeName};
use ce_model::plan::{Derivation, Derived, DerivedId, Source};
use ce_model::sweep::cell_of_digest;
use ce_model::task::{RecordedTree, TaskTree, TaskTreeId, TreeCommit};
use ce_model::template::{self, MAX_TEXT};
use ce_storage::records::Stamp;
use ce_storage::{
    CommitPath, Input, InputSource, MemberError, NewTree, OpenedValue, StorageError, Stored,
    split_member,
};

impl Evaluation {
    /// Makes all derived values among these sources, as far as that is known which they are derived from. With
    /// `store`, they are stored.
    ///
    /// # Errors
    ///
    /// Fails, each time, with the first one that cannot be made.
    pub fn derive(
        &self,
        sources: impl Iterator<Item = Source>,
        store: bool,
    ) -> Result<(), Arc<ValueError>> {
        let maker = ValueMaker { evaluation: self, store };
        for source in sources {
            // A value may be derived from another derived one.
            let mut chain = Vec::new();
            let mut next = Some(source);
            while let Some(Source::Derived { value, .. }) = next {
                chain.push(value);
                next = self.plan.value(value).from;
            }
            for value in chain.into_iter().rev() {
                maker.make(value)?;
            }
        }
        Ok(())
    }

    /// Whether a derived value is known, or why it will never be.
    pub fn is_derived(&self, value: DerivedId) -> bool {
        self.derived.get(value).is_some()
    }

    /// The values of a Git tree, or why they could not be made. `None` as long as nothing wanted them.
    pub fn tree_values(&self, tree: DerivedId) -> Option<Result<&TreeValues, &ValueError>> {
        match self.derived.get(tree)? {
            Ok(DerivedValue::Tree(values)) => Some(Ok(values)),
            Ok(DerivedValue::File(_)) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// The repositories that the user has named, and where they are.
    pub fn named_repositories(&self) -> &[(String, PathBuf)] {
        self.derived.sources.named()
    }

    /// The repository that a tree is read from, if there is one.
    pub fn repository(&self, name: &TreeName) -> Option<Arc<SourceRepository>> {
        self.derived.sources.find(name.source(), &self.task).ok()
    }

    /// The files and directories among these values that come from a repository or a sheet, or were in the storage before.
    pub fn leaves(&self, values: &[DerivedId]) -> impl Iterator<Item = (&Stored, LeafOrigin)> {
        values.iter().flat_map(|id| {
            let how = &self.plan.value(*id).how;
            let files = match (how, self.derived.get(*id)) {
                (Derivation::Tree(..), Some(Ok(DerivedValue::Tree(values)))) => &values.files[..],
                (
                    Derivation::File(_) | Derivation::Literal(_) | Derivation::Contents(_),
                    Some(Ok(DerivedValue::File(input))),
                ) => slice::from_ref(input),
                _ => &[],
            };
            let origin = match how {
                Derivation::File(_) => LeafOrigin::Task,
                Derivation::Contents(_) => LeafOrigin::Sheet,
                _ => LeafOrigin::Other,
            };
            files.iter().map(move |input| (&input.file, origin))
        })
    }
}

/// Where a value comes from that no call makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafOrigin {
    /// It is a file or text of the commit.
    Task,
    /// A sheet names it, which is an input.
    Sheet,
    /// Another repository, or the storage.
    Other,
}

/// Makes derived values.
struct ValueMaker<'e> {
    evaluation: &'e Evaluation,
    /// Whether they are stored.
    store: bool,
}

impl ValueMaker<'_> {
    /// Makes a derived value, unless that was done.
    fn make(&self, id: DerivedId) -> Result<(), Arc<ValueError>> {
        let known = &self.evaluation.derived.made[id.index()];
        if known.get().is_none() {
            let Derived { how, from } = self.evaluation.plan.value(id);
            let made = match how {
                Derivation::Tree(tree, name) => {
                    let made = self.tree(*tree, name.as_ref(), *from);
                    made.map(|made| made.map(DerivedValue::Tree))
                }
                Derivation::Member(path) => {
                    let made = from.and_then(|from| self.member(from, path));
                    made.map(|made| made.map(DerivedValue::File))
                }
                Derivation::Literal(name) => {
                    let file = split_member(name.as_str()).0.to_owned();
                    let announced = self.evaluation.storage.gc_roots().announce([file]);
                    let found = announced
                        .and_then(|()| self.evaluation.storage.inputs().literal(name.as_str()));
                    let found = found.map_err(ValueError::from).and_then(|file| match file {
                        Some(file) => Ok(DerivedValue::File(Input { file, there: true })),
                        None => Err(ValueError::NoLiteral(name.to_string())),
                    });
                    Some(found)
                }
                Derivation::Contents(digest) => {
                    Some(self.contents(*digest).map(DerivedValue::File))
                }
                Derivation::Text { .. }
                | Derivation::Points(_)
                | Derivation::File(_)
                | Derivation::Wrong(_) => Some(self.written(how)),
            };
            // A source that is not known now may never be.
            let Some(made) = made else { return Ok(()) };
            known.get_or_init(|| made.map_err(Arc::new));
        }
        match known.get() {
            Some(Err(error)) => Err(Arc::clone(error)),
            _ => Ok(()),
        }
    }

    /// Stores a file, or finds an equal one.
    fn input(&self, source: &InputSource) -> Result<Input, StorageError> {
        let inputs = self.evaluation.storage.inputs();
        if self.store { inputs.store(source) } else { inputs.find(source) }
    }

    /// Finds the input with these contents. Only what is executed needs it.
    fn contents(&self, digest: Digest) -> Result<Input, ValueError> {
        let inputs = self.evaluation.storage.inputs();
        if !self.store {
            return Ok(inputs.known(digest)?);
        }
        let file = inputs.unpacked(digest)?;
        let file = file.ok_or_else(|| ValueError::NoContents(cell_of_digest(&digest, "")))?;
        Ok(Input { file, there: true })
    }

    /// Stores or finds a file whose contents are known without any other value.
    fn written(&self, how: &Derivation) -> Result<DerivedValue, ValueError> {
        let source = self.evaluation.derived.source(&self.evaluation.task, how)?;
        Ok(DerivedValue::File(self.input(&source)?))
    }

    /// Finds a member of a directory; `None` if the directory is unknown, and may stay so.
    fn member(&self, from: Source, path: &MemberPath) -> Option<Result<Input, ValueError>> {
        let directory = match from {
            // In a dry run, an input is not stored.
            Source::Input(id) => self.evaluation.files.inputs[id.index()].as_ref()?.file.clone(),
            _ => self.evaluation.stored(from).or_else(|| self.archived(from))?,
        };
        let find = || {
            let opened = self.opened(from, directory)?;
            Ok(Input {
                file: self.evaluation.storage.values().member(&opened, path)?,
                there: self.evaluation.is_there(from),
            })
        };
        Some(find().map_err(|error| match error {
            MemberError::Storage(error) => ValueError::Storage(error),
            error => ValueError::Member(error),
        }))
    }

    /// Returns a source's directory, if that is in the storage in an archive.
    fn archived(&self, source: Source) -> Option<Stored> {
        let (name, digest) = (self.evaluation.name(source)?, self.evaluation.digest(source)?);
        self.evaluation.is_archived(source).then_some(Stored {
            name,
            digest,
            stamp: Stamp::Unknown,
        })
    }

    /// Opens a directory whose members are read, once.
    fn opened(&self, from: Source, directory: Stored) -> Result<Arc<OpenedValue>, StorageError> {
        let mut opened =
            self.evaluation.derived.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = opened.get(&directory.name) {
            return Ok(Arc::clone(known));
        }
        let name = directory.name.clone();
        let value = match from {
            Source::Input(id)
                if !self.evaluation.is_there(from) && directory.digest.is_directory() =>
            {
                let source = self.evaluation.files.given.get(id.index()).and_then(Option::as_ref);
                let manifest =
                    source.map(|it| self.evaluation.storage.inputs().manifest(it)).transpose()?;
                self.evaluation
                    .storage
                    .values()
                    .open_future(directory, manifest.unwrap_or_default())
            }
            _ if self.evaluation.is_archived(from) => {
                self.evaluation.storage.values().open_archived(directory)?
            }
            _ => self.evaluation.storage.values().open_value(&directory)?,
        };
        let value = Arc::new(value);
        opened.insert(name, Arc::clone(&value));
        Ok(value)
    }

    /// Makes the values of a tree. `None` if its revision is not known, and may never be.
    fn tree(
        &self,
        tree: TaskTreeId,
        name: Option<&TreeName>,
        revision: Option<Source>,
    ) -> Option<Result<TreeValues, ValueError>> {
        let TaskTree { name: written, commit } = &self.evaluation.task.trees[tree.index()];
        let name = name.unwrap_or_else(|| written.written());
        let text = match revision {
            None => Ok(None),
            Some(source) => self.revision(name, source)?.map(Some),
        };
        Some(text.and_then(|text| match commit {
            TreeCommit::Unbound => {
                let recorded = self.evaluation.derived.later.recorded(name).map_err(|fault| {
                    ValueError::Unreadable { name: name.to_string(), source: fault.into() }
                })?;
                self.tree_values_of(name, &TreeCommit::Recorded(recorded), text)
            }
            commit => self.tree_values_of(name, commit, text),
        }))
    }

    /// The values of a tree at a commit, or at the commit that a text names.
    fn tree_values_of(
        &self,
        name: &TreeName,
        commit: &TreeCommit,
        text: Option<String>,
    ) -> Result<TreeValues, ValueError> {
        let text = match commit {
            TreeCommit::Recorded(
                recorded @ RecordedTree { uncommitted: Some((dir, tree)), .. },
            ) => {
                let directory = Trees::of_draft(dir, tree)
                    .map_err(ValueError::Git)
                    .and_then(|(trees, large)| self.directory(&trees, tree, &large));
                let directory = directory.map_err(|error| error.name_tree(name))?;
                return self.with_version(directory, recorded.version(), None);
            }
            TreeCommit::Recorded(RecordedTree { commit, .. }) => commit.full().to_owned(),
            TreeCommit::OfRevision | TreeCommit::Unbound => text.unwrap_or_default(),
        };
        let (derived, task) = (&self.evaluation.derived, &self.evaluation.task);
        let repository = derived.sources.find(name.source(), task)?;
        if !derived.sources.is_recorded(name.source(), task) {
            derived.is_changed.store(true, Ordering::Relaxed);
        }
        let commit = match repository.commit(&text) {
            Ok(commit) => commit,
            Err(error) => return self.recorded_values_of(name, error),
        };
        let tree = repository.tree(&commit, name.path())?;
        let large = repository.lfs_files(&commit, name.path())?;
        let directory = self.directory(repository.trees(), &tree, &large);
        let directory = directory.map_err(|error| error.name_tree(name))?;
        if self.store {
            let place = CommitPath { commit: &commit, path: name.path() };
            let trees = self.evaluation.storage.commit_trees();
            trees.record(place, &tree, &directory.file.digest)?;
        }
        let revision = Some(text).filter(|text| text != commit.full());
        self.with_version(directory, commit.full().to_owned(), revision)
    }

    /// The values of a tree at a commit that Git has no longer, as recorded when it had. Results from these revisions
    /// belong to this commit, wherever they point now.
    fn recorded_values_of(
        &self,
        name: &TreeName,
        error: SourceError,
    ) -> Result<TreeValues, ValueError> {
        let Some(commit) = error.lacking_commit() else { return Err(error.into()) };
        let place = CommitPath { commit: &commit, path: name.path() };
        match self.evaluation.storage.commit_trees().find(place)? {
            Some(directory) => self.with_version(directory, commit.full().to_owned(), None),
            None => Err(error.into()),
        }
    }

    /// The values of a tree with a known directory.
    fn with_version(
        &self,
        directory: Input,
        version: String,
        revision: Option<String>,
    ) -> Result<TreeValues, ValueError> {
        let commit = InputSource::Bytes(format!("{version}\n").into_bytes());
        let commit = self.input(&commit)?;
        Ok(TreeValues { version, revision, files: [directory, commit] })
    }

    /// Makes a tree a directory in the storage, or finds an equal one. Files that Git LFS keeps elsewhere have their own
    /// contents there.
    fn directory(
        &self,
        trees: &Trees,
        tree: &ObjectId,
        large: &[LfsFile],
    ) -> Result<Input, ValueError> {
        let (inputs, cache) = (self.evaluation.storage.inputs(), Cache::of_user());
        // The attributes of directories around a tree affect its value, too.
        let (mut objects, mut version) = (HashMap::new(), vec![tree.full().to_owned()]);
        for file in large {
            let object = file.object(cache.as_ref(), inputs.stop());
            inputs.go_on()?;
            let object = object?;
            let digest = inputs.find(&InputSource::File(object.to_owned()))?.file.digest;
            objects.insert(file.path.clone(), (digest, object.to_owned()));
            version.push(format!("{} {}", file.pointer.oid, file.path.display()));
        }
        let key = match large {
            [] => tree.clone(),
            // No tree has this id.
            _ => Blake3::hash_bytes(version.join("\n").as_bytes())
                .full()
                .parse()
                .map_err(|error: ObjectIdError| ValueError::Git(error.into()))?,
        };
        match inputs.known_tree(&key)? {
            Some(known) if known.there || !self.store => Ok(known),
            _ if self.store => inputs.store_tree(&key, |new| {
                export_tree(trees, tree, &objects, &|file| {
                    inputs.go_on()?;
                    write(new, file, inputs.stop())
                })
            }),
            _ => {
                let manifest = export_tree(trees, tree, &objects, &|_| inputs.go_on())?;
                Ok(inputs.find_tree(&key, &manifest)?)
            }
        }
    }

    /// Reads a revision, a text of one line. `None` if it is not known.
    fn revision(&self, name: &TreeName, source: Source) -> Option<Result<String, ValueError>> {
        if let Source::Derived { value: tree, number: 1 } = source {
            return Some(Ok(self.evaluation.tree_values(tree)?.ok()?.version.clone()));
        }
        let digest = self.evaluation.digest(source)?;
        if digest.is_directory() {
            return Some(Err(ValueError::Directory(name.to_string())));
        }
        let contents = match self.evaluation.stored(source) {
            Some(file) => self.beginning(&file),
            // In a dry run, a text of a point need not be stored.
            None if matches!(source, Source::Derived { .. }) => {
                Ok(self.evaluation.contents(source).ok()??)
            }
            None => Ok(self.evaluation.texts.get(&digest)?.clone()),
        };
        Some(contents.and_then(|contents| {
            template::text(&contents)
                .map(str::to_owned)
                .map_err(|fault| ValueError::Revision { name: name.to_string(), fault })
        }))
    }

    /// Reads the beginning of a file in the storage, or all of it if it is a text.
    fn beginning(&self, file: &Stored) -> Result<Vec<u8>, ValueError> {
        let (path, most) = (self.evaluation.storage.path(&file.name), MAX_TEXT as u64 + 2);
        let mut contents = Vec::new();
        let read = File::open(&path).and_then(|it| it.take(most).read_to_end(&mut contents));
        match read {
            Err(source) => Err(StorageError::Io { doing: "read", path, source }.into()),
            Ok(_) if file.digest.size < most && Digest::hash_bytes(&contents) != file.digest => {
                Err(StorageError::Changed(path).into())
            }
            Ok(_) => Ok(contents),
        }
    }
}

/// Writes a file of a tree into a new directory. A large one is not written to its end when `stop` is set.
pub(super) fn write(
    new: &NewTree<'_>,
    TreeFile { path, kind }: TreeFile,
    stop: &AtomicBool,
) -> Result<(), StorageError> {
    match kind {
        TreeFileKind::Plain(contents) => new.file(&path, &contents, false),
        TreeFileKind::Executable(contents) => new.file(&path, &contents, true),
        TreeFileKind::Object { file, executable } => new.copy(&path, &file, executable, stop),
        TreeFileKind::Link(target) => new.link(&path, &target),
    }
}

/// A function that is told the files of a tree, by several threads.
pub(super) type FileTeller<'a> = dyn Fn(TreeFile) -> io::Result<()> + Sync + 'a;

/// Passes all files that `files` tells to a function, in any order, from several threads.
pub(super) fn each_file(
    files: impl FnOnce(&FileTeller<'_>) -> GitResult<()>,
    act: &(dyn Fn(TreeFile) -> Result<(), StorageError> + Sync),
) -> Result<(), ValueError> {
    let failed = Mutex::new(None);
    let passed = files(&|file| {
        act(file).map_err(|error| {
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            io::ErrorKind::Other.into()
        })
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error.into()),
        None => passed.map_err(ValueError::Git),
    }
}

/// Passes all files of a tree to a function, and returns the manifest of the directory that has them. The
/// threads that read the files also hash them: nothing is read again. `objects` has the digests and paths of objects of Git LFS, by the
/// paths of the files in the tree that have their contents.
///
/// # Errors
///
/// Fails if Git's data cannot be read, or with the error of the function. Fails at the end if the tree has an entry
/// that a value cannot have, such as a link that leads out.
pub fn export_tree(
    trees: &Trees,
    tree: &ObjectId,
    objects: &HashMap<PathBuf, (Digest, PathBuf)>,
    act: &(dyn Fn(TreeFile) -> Result<(), StorageError> + Sync),
) -> Result<Manifest, ValueError> {
    let entries = Mutex::new(Vec::new());
    each_file(|tell| trees.files(tree, tell), &|mut file| {
        let mut entry = entry(&file);
        if let (Some((digest, object)), &mut EntryKind::File { ref mut contents, executable }) =
            (objects.get(&file.path), &mut entry.kind)
        {
            *contents = *digest;
            file.kind = TreeFileKind::Object { file: object.clone(), executable };
        }
        act(file)?;
        entries.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
        Ok(())
    })?;
    let entries = entries.into_inner().unwrap_or_else(PoisonError::into_inner);
    Manifest::new(entries)
        .map_err(|error| ValueError::Entry { tree: tree.short().to_owned(), fault: error.fault })
}

fn entry(TreeFile { path, kind }: &TreeFile) -> ManifestEntry<Digest> {
    let bytes = |path: &Path| path.as_os_str().as_bytes().into();
    let file = |contents: &[u8], executable| {
        let contents = Digest::hash_bytes(contents);
        EntryKind::File { contents, executable }
    };
    let kind = match kind {
        TreeFileKind::Plain(contents) => file(contents, false),
        TreeFileKind::Executable(contents) => file(contents, true),
        TreeFileKind::Object { .. } => file(b"", false),
        TreeFileKind::Link(target) => EntryKind::Link { target: bytes(target) },
    };
    ManifestEntry { path: bytes(path), kind }
}
