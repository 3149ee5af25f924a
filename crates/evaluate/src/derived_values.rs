//! Values that no call makes: Git trees, members of directories, and texts and files of points. Each is made once, as soon as
//! that is known which it is derived from. Git trees become directories here.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::Evaluation;
use ce_files::cache::Cache;
use ce_files::manifest::{EntryKind, Manifest, ManifestEntry, ManifestFault};
use ce_git::{
    AbsentLfsObject, AbsentObject, Changed, LfsFile, NotCloned, SourceError, SourceRepositories,
    SourceRepository, TreeFile, TreeFileKind, Trees,
};
use ce_model::digest::{Blake3, Digest, ObjectId, ObjectIdError};
use ce_model::exit::{Exit, Explain};
use ce_model::name::{MemberPath, TaskPath, TreeName};
use ce_model::plan::{Derivation, Derived, DerivedId, Source, WrongValue};
use ce_model::sweep;
use ce_model::task::{FileContents, RecordedTree, Task, TaskTree, TaskTreeId, TreeCommit};
use ce_model::template::{self, MAX_TEXT, NoText};
use ce_storage::records::Stamp;
use ce_storage::{
    Input, InputSource, MemberError, NewTree, OpenedValue, StorageError, Stored, split_member,
};
use ce_task::load::{DeferredFiles, LoadFault};

/// A derived value.
#[derive(Debug)]
pub(super) enum DerivedValue {
    /// A Git tree and its commit.
    Tree(TreeValues),
    /// A file or directory: within a directory, or one that is written, or of the task.
    File(Input),
}

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

/// A derived value, or why there is none.
type MadeValue = Result<DerivedValue, Arc<ValueError>>;

/// The derived values of a plan, and what they are made from.
#[derive(Debug)]
pub(super) struct DerivedValues {
    /// The repositories that the task reads.
    pub(super) sources: Arc<SourceRepositories>,
    /// Whether a file of the task that was found while it was evaluated has changes that no commit records.
    pub(super) is_changed: AtomicBool,
    /// The files of the task that are found while it is evaluated.
    later: DeferredFiles,
    /// The values, once they were made.
    made: boxcar::Vec<OnceLock<MadeValue>>,
    /// The directories of which members are read, by name.
    opened: Mutex<HashMap<String, Arc<OpenedValue>>>,
}

impl DerivedValues {
    /// None yet, of a task that reads these repositories.
    pub(super) fn new(task: &Task, sources: impl Into<Arc<SourceRepositories>>) -> Self {
        let sources = sources.into();
        Self {
            is_changed: AtomicBool::new(false),
            later: DeferredFiles::new(sources.task_directory(), task),
            made: boxcar::Vec::new(),
            opened: Mutex::default(),
            sources,
        }
    }

    /// Takes in what was added to the plan, which has so many by now. One thread at a time does so.
    pub(super) fn grow(&self, count: usize) {
        for _ in self.made.count()..count {
            self.made.push(OnceLock::new());
        }
    }

    /// A derived value, or why there is none. `None` as long as nothing wanted it.
    pub(super) fn get(&self, value: DerivedId) -> Option<Result<&DerivedValue, &ValueError>> {
        Some(self.made.get(value.index())?.get()?.as_ref().map_err(|error| &**error))
    }

    /// The file or directory of a derived source.
    pub(super) fn input(&self, value: DerivedId, number: u8) -> Option<&Input> {
        match self.get(value)?.ok()? {
            DerivedValue::Tree(values) => values.files.get(usize::from(number)),
            DerivedValue::File(input) => Some(input),
        }
    }

    /// The contents of a file that is derived from no other value.
    pub(super) fn source(&self, task: &Task, how: &Derivation) -> Result<InputSource, ValueError> {
        match how {
            Derivation::Text(text) => Ok(InputSource::Bytes(format!("{text}\n").into_bytes())),
            Derivation::Written(text) => Ok(InputSource::Bytes(text.as_bytes().to_vec())),
            Derivation::Points(points) => {
                let product = &task.sweeps[points.index()].product;
                // Loading the task has checked that there are some.
                let points = sweep::points(product).unwrap_or_default();
                let mut contents = Vec::new();
                // Writing to memory never fails.
                drop(points.write_ndjson(&mut contents));
                Ok(InputSource::Bytes(contents))
            }
            Derivation::File(path) => self.later_file(path),
            Derivation::Wrong(wrong) => Err(ValueError::Wrong(wrong.clone())),
            Derivation::Tree(..) | Derivation::Member(_) | Derivation::Literal(_) => {
                debug_assert!(false, "it is derived from a value, or from the storage");
                Ok(InputSource::Bytes(Vec::new()))
            }
        }
    }

    /// Finds a file of the task whose path depends on a point.
    fn later_file(&self, path: &TaskPath) -> Result<InputSource, ValueError> {
        let contents = self.later.find(path);
        let error = |fault| ValueError::OwnFile { path: path.to_string(), fault };
        let lost = || error("the directory of the task is gone".into());
        let is_gone = !self.sources.task_directory().exists();
        match contents.map_err(|fault| if is_gone { lost() } else { error(fault.into()) })? {
            FileContents::Blob(id) => Ok(InputSource::Bytes(self.later.blob(&id).map_err(error)?)),
            FileContents::Written(text) => Ok(InputSource::Bytes(text.as_bytes().to_vec())),
            FileContents::Large(path) => Ok(InputSource::File(path)),
            FileContents::Uncommitted(path) => {
                self.is_changed.store(true, Ordering::Relaxed);
                Ok(InputSource::File(path))
            }
            FileContents::Unbound => Err(error("its path is not known".into())),
        }
    }
}

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

    /// The values of a Git tree, or why it has none. `None` as long as nothing wanted them.
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
        self.derived.sources.find(name.source(), &self.task.commit).ok()
    }

    /// The files and directories among these values that come from a repository, or were in the storage before, and whether each is a file
    /// of the task.
    pub fn leaves(&self, values: &[DerivedId]) -> impl Iterator<Item = (&Stored, bool)> {
        values.iter().flat_map(|id| {
            let how = &self.plan.value(*id).how;
            let files = match (how, self.derived.get(*id)) {
                (Derivation::Tree(..), Some(Ok(DerivedValue::Tree(values)))) => &values.files[..],
                (
                    Derivation::File(_) | Derivation::Literal(_),
                    Some(Ok(DerivedValue::File(input))),
                ) => slice::from_ref(input),
                _ => &[],
            };
            files.iter().map(|input| (&input.file, matches!(how, Derivation::File(_))))
        })
    }
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
                Derivation::Text(_)
                | Derivation::Written(_)
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

    /// Stores a file, or finds the one that it would be.
    fn input(&self, source: &InputSource) -> Result<Input, StorageError> {
        let inputs = self.evaluation.storage.inputs();
        if self.store { inputs.store(source) } else { inputs.find(source) }
    }

    /// Stores or finds a file whose contents are known without any other value.
    fn written(&self, how: &Derivation) -> Result<DerivedValue, ValueError> {
        let source = self.evaluation.derived.source(&self.evaluation.task, how)?;
        Ok(DerivedValue::File(self.input(&source)?))
    }

    /// Finds a member of a directory; `None` if that is not known, and may never be.
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

    /// Opens a directory of which members are read, once.
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

    /// The values of a tree at a commit, or at the one that a text names.
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
                let directory = self.directory(&Trees::as_it_stands(dir, tree), tree, &[]);
                let directory = directory.map_err(|error| error.of(name))?;
                return self.with_version(directory, recorded.version(), None);
            }
            TreeCommit::Recorded(RecordedTree { commit, .. }) => commit.full().to_owned(),
            TreeCommit::OfRevision | TreeCommit::Unbound => text.unwrap_or_default(),
        };
        let repository =
            self.evaluation.derived.sources.find(name.source(), &self.evaluation.task.commit)?;
        let commit = repository.commit(&text)?;
        let tree = repository.tree(&commit, name.path())?;
        let large = repository.lfs_files(&commit, name.path())?;
        let directory = self.directory(repository.trees(), &tree, &large);
        let directory = directory.map_err(|error| error.of(name))?;
        let revision = Some(text).filter(|text| text != commit.full());
        self.with_version(directory, commit.full().to_owned(), revision)
    }

    /// The values of a tree, of which the directory is known.
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

    /// Makes a tree a directory in the storage, or finds the one that it would be. Files that Git LFS keeps elsewhere have their own contents
    /// there.
    fn directory(
        &self,
        trees: &Trees,
        tree: &ObjectId,
        large: &[LfsFile],
    ) -> Result<Input, ValueError> {
        let (inputs, cache) = (self.evaluation.storage.inputs(), Cache::of_user());
        // The attributes of directories around a tree decide, too, on what it is.
        let (mut objects, mut version) = (HashMap::new(), vec![tree.full().to_owned()]);
        for file in large {
            let object = file.object(cache.as_ref())?;
            let digest = inputs.find(&InputSource::File(object.to_owned()))?.file.digest;
            objects.insert(file.path.clone(), (digest, object.to_owned()));
            version.push(format!("{} {}", file.pointer.oid, file.path.display()));
        }
        let key = match large {
            [] => tree.clone(),
            // No tree has this id.
            _ => Blake3::of(version.join("\n").as_bytes())
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
            Ok(_) if file.digest.size < most && Digest::of(&contents) != file.digest => {
                Err(StorageError::Changed(path).into())
            }
            Ok(_) => Ok(contents),
        }
    }
}

/// The reason why a value that no call makes is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum ValueError {
    /// The repository has no such commit or directory, or there is no such repository.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The value that should say which commit is wanted is no text.
    #[error("the revision of {name} cannot be used: {fault}")]
    Revision {
        /// The tree, as the task names it.
        name: String,
        /// The fault.
        fault: NoText,
    },
    /// The value that should say which commit is wanted is a directory.
    #[error("the revision of {0} cannot be used: it is a directory")]
    Directory(String),
    /// Git's data cannot be read.
    #[error(transparent)]
    Git(Box<dyn std::error::Error + Send + Sync>),
    /// The same of a tree that is a value.
    #[error("the tree {name} cannot be read")]
    Unreadable {
        /// The tree, as the task names it.
        name: String,
        /// The error of Git.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The contents of a file in a tree are not in this clone.
    #[error(transparent)]
    LargeFile(#[from] AbsentLfsObject),
    /// The tree has an entry that no value has.
    #[error("the Git tree {tree} cannot be a value: {fault}")]
    Entry {
        /// The first digits of its id.
        tree: String,
        /// The fault.
        fault: ManifestFault,
    },
    /// A directory has no such member.
    #[error(transparent)]
    Member(MemberError),
    /// A value is wrong at a point of a sweep.
    #[error(transparent)]
    Wrong(WrongValue),
    /// A file is not in the storage.
    #[error("{0} is not in the storage")]
    NoLiteral(String),
    /// A file of the task cannot be read.
    #[error("the task's file {path} cannot be read: {fault}")]
    OwnFile {
        /// Its path.
        path: String,
        /// The cause.
        fault: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The storage could not be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl ValueError {
    /// Names the tree of which Git's data cannot be read.
    pub(super) fn of(self, name: &TreeName) -> Self {
        match self {
            Self::Git(source) => Self::Unreadable { name: name.to_string(), source },
            other => other,
        }
    }

    /// Whether the storage is to blame.
    pub const fn is_storage(&self) -> bool {
        matches!(self, Self::Storage(_))
    }

    /// Whether the data of a repository cannot be read, which may be gone.
    pub fn is_unreadable(&self) -> bool {
        match self {
            Self::Git(_) | Self::Unreadable { .. } => true,
            Self::Source(error) => error.is_unreadable(),
            Self::OwnFile { fault, .. } => fault
                .downcast_ref()
                .is_none_or(|it| matches!(it, LoadFault::Snapshot(_) | LoadFault::Read(_))),
            _ => false,
        }
    }

    /// Whether a repository as a whole is to blame, at any commit.
    pub const fn is_of_repository(&self) -> bool {
        matches!(self, Self::Source(error) if error.is_of_repository())
    }

    /// Whether the user asked to stop.
    pub const fn is_interrupted(&self) -> bool {
        matches!(self, Self::Storage(StorageError::Interrupted))
    }
}

impl Explain for ValueError {
    fn exit(&self) -> Exit {
        if self.is_storage() { Exit::Storage } else { Exit::Malformed }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Source(error) => error.hint(),
            Self::Storage(error) => error.hint(),
            Self::Member(error) => error.hint(),
            Self::LargeFile(error) => error.hint(),
            Self::Revision { .. } | Self::Directory(_) => {
                Some("write a commit id, a tag or a branch".to_owned())
            }
            Self::Unreadable { name, source } if source.is::<NotCloned>() => {
                let repository = name.split(':').next().unwrap_or(name);
                let update = "git submodule update --init --recursive";
                Some(format!("{update} in the repository {repository}"))
            }
            Self::Unreadable { source, .. } | Self::Git(source) if source.is::<AbsentObject>() => {
                Some(
                    "git fetch --refetch --no-filter there, or clone it again without --filter"
                        .to_owned(),
                )
            }
            Self::OwnFile { fault, .. } => fault.downcast_ref::<LoadFault>()?.hint(),
            Self::Unreadable { name, .. } => {
                Some(format!("git fsck in the repository of {name} says whether it is damaged"))
            }
            Self::Entry { .. } => {
                Some("name a directory of the repository that is without this entry".to_owned())
            }
            Self::Wrong(wrong) => wrong.hint(),
            Self::NoLiteral(_) => Some(
                "run the task that makes it, or copy it there; its name is in the node".to_owned(),
            ),
            Self::Git(source) if source.is::<Changed>() => {
                Some("run the same command again".to_owned())
            }
            Self::Git(_) => Some("git fsck says whether the repository is damaged".to_owned()),
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

/// Passes all files of a tree to a function, in any order, from several threads.
pub(super) fn each_file(
    trees: &Trees,
    tree: &ObjectId,
    act: &(dyn Fn(TreeFile) -> Result<(), StorageError> + Sync),
) -> Result<(), ValueError> {
    let failed = Mutex::new(None);
    let passed = trees.files(tree, &|file| {
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
/// Fails if Git's data cannot be read, or with what the function returns. Fails at the end if the tree has an
/// entry that no value has, such as a link that leads out.
pub fn export_tree(
    trees: &Trees,
    tree: &ObjectId,
    objects: &HashMap<PathBuf, (Digest, PathBuf)>,
    act: &(dyn Fn(TreeFile) -> Result<(), StorageError> + Sync),
) -> Result<Manifest, ValueError> {
    let entries = Mutex::new(Vec::new());
    each_file(trees, tree, &|mut file| {
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
        let contents = Digest::of(contents);
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
