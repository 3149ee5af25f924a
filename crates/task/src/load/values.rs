//! Files of a task and Git trees that are values: constants, sample sheets, defaults of inputs, submodules. Only their paths and
//! versions are read. Some are found while the task is evaluated, since their names depend on points of a sweep.

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::{io, thread};

use ce_git::{Snapshot, Trees};
use ce_model::digest::ObjectId;
use ce_model::expression::{InputDefault, Parsed};
use ce_model::name::{InputName, TaskPath, TreeName};
use ce_model::sweep::{SweepFault, SweepPoints, read_levels};
use ce_model::task::{
    FileContents, LoadedFrom, RecordedTree, Task, TaskFile, TaskFileId, TaskTree, TaskTreeId,
    TreeCommit, WORKFLOW_TEXT,
};
use ce_model::template::Template;

use super::checkout::Checkout;
use super::problems::{LoadFault, Problems, Warning, WarningKind};
use super::source::{Located, TaskSource};
use super::{CHOICES, DEFAULTS, near, nearest};

/// The files found so far.
#[derive(Default)]
pub(super) struct TaskFiles {
    found: Vec<TaskFile>,
    known: HashMap<Template<TaskPath>, Option<TaskFileId>>,
    /// The number of files that were not there.
    missing: usize,
}

/// The greatest number of missing files for which a similar one is looked for: that takes a look at a whole directory.
const MAX_SUGGESTIONS: usize = 20;

/// The greatest number of similar names that are tried.
const MAX_SIMILAR: usize = 16;

impl TaskFiles {
    pub(super) fn into_files(self) -> Vec<TaskFile> {
        self.found
    }

    pub(super) fn all(&self) -> &[TaskFile] {
        &self.found
    }

    /// Adds a file that was found before, unless it is there.
    pub(super) fn add(&mut self, file: &TaskFile) -> Option<TaskFileId> {
        let found = &mut self.found;
        // Texts have no file of their own.
        if matches!(file.contents, FileContents::Written(_)) {
            found.push(file.clone());
            return Some(TaskFileId::at(found.len() - 1));
        }
        *self.known.entry(file.path.clone()).or_insert_with(|| {
            found.push(file.clone());
            Some(TaskFileId::at(found.len() - 1))
        })
    }

    /// Returns the file with this path in the task, or `None` if it has a problem, which is
    /// reported once. If the path has free names, the file is yet to be found.
    ///
    /// # Errors
    ///
    /// Fails, each time, if there is no such file.
    pub(super) fn find(
        &mut self,
        source: &mut impl TaskSource,
        path: Template<TaskPath>,
        findings: &mut Problems,
    ) -> Result<Option<TaskFileId>, LoadFault> {
        if let Some(known) = self.known.get(&path) {
            return Ok(*known);
        }
        let name = path.as_str();
        let contents = if path.is_open() {
            Some(FileContents::Unbound)
        } else {
            match contents(source, name) {
                Err(LoadFault::Missing | LoadFault::NotADirectory) => {
                    let mut fault = source.missing_file(name);
                    self.missing += 1;
                    if let LoadFault::NoFile { path, nearest } = &mut fault
                        && self.missing <= MAX_SUGGESTIONS
                    {
                        *nearest = similar_file(source, path);
                    }
                    return Err(fault);
                }
                contents => findings.note(name.as_ref(), contents),
            }
        };
        Ok(match contents {
            Some(contents) => self.add(&TaskFile { path, contents }),
            None => *self.known.entry(path).or_insert(None),
        })
    }

    /// Returns the default of each input: the file with its name in `defaults/`, or the first line of the one in `choices/`.
    pub(super) fn defaults(
        &mut self,
        source: &mut impl TaskSource,
        inputs: &[InputName],
        findings: &mut Problems,
    ) -> InputDefaults {
        let mut defaults = InputDefaults::new(inputs.len());
        for NamedFile { path, input } in input_files(source, DEFAULTS, inputs, findings) {
            let file = path.parse::<TaskPath>().map_err(LoadFault::Name);
            let file = file.and_then(|path| self.find(source, path.into(), findings));
            defaults.files[input] = findings.note(path.as_ref(), file).flatten();
        }
        for NamedFile { path, input } in input_files(source, CHOICES, inputs, findings) {
            let dir = source.task().and_then(|task| source.enter(&task, CHOICES));
            let contents = dir.and_then(|dir| source.read_points(&dir, inputs[input].as_str()));
            let Some(contents) = findings.note(path.as_ref(), contents) else { continue };
            if defaults.files[input].is_some() {
                findings.problem(path.as_ref(), LoadFault::ChoicesAndDefault);
            }
            match read_levels(inputs[input].as_str(), &contents) {
                Ok(choices) => {
                    let file = self.choose(&mut defaults, input, choices, &path);
                    findings.note(path.as_ref(), file);
                }
                Err(problems) => problems.into_iter().for_each(|problem| {
                    let line = problem.line.unwrap_or_default();
                    findings.problem_in_line(path.as_ref(), line, SweepFault::Sheet(problem));
                }),
            }
        }
        defaults
    }

    /// Gives an input its choices, which are written in the file of the task with this path. The first one is its default.
    fn choose(
        &mut self,
        defaults: &mut InputDefaults,
        input: usize,
        choices: SweepPoints,
        path: &str,
    ) -> Result<(), LoadFault> {
        let [first, _, ..] = choices.levels(0) else { return Err(LoadFault::NoChoices) };
        defaults.files[input] = Some(self.written(path, &format!("{first}\n"))?);
        defaults.choices[input] = Some(choices);
        Ok(())
    }

    /// Adds a file whose contents are written in the task, at this path.
    fn written(&mut self, path: &str, contents: &str) -> Result<TaskFileId, LoadFault> {
        let path: TaskPath = path.parse().map_err(LoadFault::Name)?;
        let contents = FileContents::Written(contents.into());
        self.add(&TaskFile { path: path.into(), contents }).ok_or(LoadFault::Missing)
    }
}

/// The defaults of inputs, and the texts that they may have.
#[derive(Default)]
pub(super) struct InputDefaults {
    pub(super) files: Vec<Option<TaskFileId>>,
    pub(super) choices: Vec<Option<SweepPoints>>,
}

impl InputDefaults {
    fn new(inputs: usize) -> Self {
        Self { files: vec![None; inputs], choices: vec![None; inputs] }
    }
}

/// A file with the name of an input.
struct NamedFile {
    path: String,
    /// The number of the input.
    input: usize,
}

/// The files of a directory of the task that have names of inputs. Others are problems.
fn input_files(
    source: &mut impl TaskSource,
    dir: &str,
    inputs: &[InputName],
    findings: &mut Problems,
) -> Vec<NamedFile> {
    let entered = match source.task().and_then(|task| source.enter(&task, dir)) {
        Err(LoadFault::Missing) => return Vec::new(),
        entered => findings.note(dir.as_ref(), entered),
    };
    let listed = entered.and_then(|entered| findings.note(dir.as_ref(), source.list(&entered)));
    let mut listed = listed.unwrap_or_default();
    listed.sort_unstable();
    let mut files = Vec::with_capacity(listed.len());
    for entry in listed {
        let path = format!("{dir}/{}", entry.display());
        let name = entry.to_string_lossy();
        if name.starts_with('.') {
            continue;
        }
        match inputs.iter().position(|input| input.as_str() == name) {
            Some(input) => files.push(NamedFile { path, input }),
            None => {
                let names: Vec<String> = inputs.iter().map(ToString::to_string).collect();
                let nearest = nearest(&name, &names);
                let fault = LoadFault::NoInput { name: name.into_owned(), nearest };
                findings.problem(path.as_ref(), fault);
            }
        }
    }
    files
}

impl TaskFiles {
    /// Returns the default of each input that the text of a workflow names: a text in it, or a file of the task.
    pub(super) fn written_defaults(
        &mut self,
        source: &mut impl TaskSource,
        parsed: &Parsed<'_>,
        findings: &mut Problems,
    ) -> InputDefaults {
        let mut defaults = InputDefaults::new(parsed.text.defaults.len());
        for (number, default) in parsed.text.defaults.iter().enumerate() {
            let file = match default {
                None => continue,
                Some(InputDefault::File(path)) => self.find(source, path.clone().into(), findings),
                Some(InputDefault::Text(text)) => self.written(WORKFLOW_TEXT, text).map(Some),
                Some(InputDefault::Choices(choices)) => self
                    .choose(&mut defaults, number, choices.clone(), WORKFLOW_TEXT)
                    .map(|()| defaults.files[number]),
            };
            match file {
                Ok(file) => defaults.files[number] = file,
                Err(fault) => {
                    let line = parsed.line_of_input(number);
                    findings.problem_in_line(WORKFLOW_TEXT.as_ref(), line, fault);
                }
            }
        }
        defaults
    }
}

/// Finds the contents of the file with this path in the task.
fn contents(source: &mut impl TaskSource, path: &str) -> Result<FileContents, LoadFault> {
    let mut dir = source.task()?;
    let (around, name) = path.rsplit_once('/').unwrap_or(("", path));
    for part in around.split('/').filter(|part| !part.is_empty()) {
        dir = source.enter(&dir, part)?;
    }
    match source.find(&dir, name)? {
        Located::File { .. } => source.contents(&dir, name),
        Located::Directory { .. } => Err(LoadFault::OwnDirectory),
    }
}

/// The path of an existing file of the task that may be meant by a missing one: they differ in one name, and the names are
/// similar.
fn similar_file(source: &mut impl TaskSource, path: &str) -> Option<String> {
    let mut dir = source.task().ok()?;
    let (mut start, mut rest) = (0, path);
    while let Some((name, below)) = rest.split_once('/') {
        let Ok(inner) = source.enter(&dir, name) else { break };
        (dir, start, rest) = (inner, start + name.len() + 1, below);
    }
    let (name, below) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let listed = source.list(&dir).ok()?.into_iter();
    let names: Vec<String> = listed.filter_map(|it| it.into_string().ok()).collect();
    let similar = near(name, &names).into_iter().take(MAX_SIMILAR);
    let mut paths = similar.map(|similar| format!("{}{similar}{below}", &path[..start]));
    paths.find(|path| contents(source, path).is_ok())
}

/// The trees found so far.
#[derive(Default)]
pub(super) struct TaskTrees {
    found: Vec<TaskTree>,
    /// By their names, and whether they are at the recorded commit.
    known: HashMap<(Template<TreeName>, bool), Option<TaskTreeId>>,
}

impl TaskTrees {
    pub(super) fn into_trees(self) -> Vec<TaskTree> {
        self.found
    }

    pub(super) fn all(&self) -> &[TaskTree] {
        &self.found
    }

    /// Adds a tree that was found before, unless it is there.
    pub(super) fn add(&mut self, tree: &TaskTree) -> Option<TaskTreeId> {
        let found = &mut self.found;
        let is_recorded = tree.commit != TreeCommit::OfRevision;
        *self.known.entry((tree.name.clone(), is_recorded)).or_insert_with(|| {
            found.push(tree.clone());
            Some(TaskTreeId::at(found.len() - 1))
        })
    }

    /// Returns the tree with this name, at the commit that the task records or at any. `None` if it has a
    /// problem, which is reported once.
    ///
    /// # Errors
    ///
    /// Fails, each time, if the task records none.
    pub(super) fn find(
        &mut self,
        source: &mut impl TaskSource,
        name: Template<TreeName>,
        is_recorded: bool,
        findings: &mut Problems,
    ) -> Result<Option<TaskTreeId>, LoadFault> {
        let key = (name, is_recorded);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let (name, _) = key;
        let repository = name.written().source();
        let commit = match is_recorded {
            false => Some(TreeCommit::OfRevision),
            true if name.is_open() => Some(TreeCommit::Unbound),
            true => match source.recorded(name.written()) {
                Err(LoadFault::Missing) => {
                    return Err(LoadFault::NoSubmodule(repository.to_owned()));
                }
                recorded => findings.note(repository.as_ref(), recorded).map(TreeCommit::Recorded),
            },
        };
        Ok(match commit {
            Some(commit) => self.add(&TaskTree { name, commit }),
            None => *self.known.entry((name, is_recorded)).or_insert(None),
        })
    }
}

/// The directory of the nodes, as the beginning of paths.
const WORKFLOW: &str = "workflow/";

/// A file or directory that is a value: its path relative to the task, up to the first name that a point replaces.
struct ReadPath<'a> {
    begin: &'a str,
    is_whole: bool,
}

impl<'a> ReadPath<'a> {
    fn new<T: AsRef<str>>(template: &Template<T>, path: &'a str) -> Self {
        match path.find('{').filter(|_| template.is_open()) {
            Some(at) => Self { begin: &path[..at], is_whole: false },
            None => Self { begin: path, is_whole: true },
        }
    }

    /// Whether it may be, hold, or be in a file or directory with this path.
    fn may_touch(&self, path: &str) -> bool {
        let Self { begin, is_whole } = self;
        is_below(begin, path)
            || if *is_whole { is_below(path, begin) } else { path.starts_with(begin) }
    }
}

/// Whether a path is another one, or below it.
fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Takes back that nothing reads the files and directories that a task reads as values. `place` is the path of the task in its
/// repository.
pub(super) fn retain_unread(
    warnings: &mut Vec<Warning>,
    files: &[TaskFile],
    trees: &[TaskTree],
    place: &str,
) {
    let files = files.iter().map(|file| ReadPath::new(&file.path, file.path.as_str()));
    let trees = trees.iter().filter_map(|tree| {
        let written = tree.name.written();
        let path = match (written.source(), place) {
            (".", "") => written.path(),
            (".", place) => written.path().strip_prefix(place)?.strip_prefix('/')?,
            (submodule, _) => submodule,
        };
        Some(ReadPath::new(&tree.name, path))
    });
    // A tree around all nodes, such as the whole repository, does not say that they are read.
    let read: Vec<ReadPath<'_>> =
        files.chain(trees).filter(|it| it.begin.starts_with(WORKFLOW)).collect();
    warnings.retain(|Warning { path, oddity }| {
        let is_value = path.to_str().is_some_and(|path| read.iter().any(|it| it.may_touch(path)));
        *oddity != WarningKind::Unread || !is_value
    });
}

/// Finds files of a task, in a thread of its own that caches its reads.
#[derive(Debug)]
pub struct DeferredFiles {
    dir: PathBuf,
    loaded_from: LoadedFrom,
    commit: ObjectId,
    /// The task was read from the draft of the next commit.
    is_draft: bool,
    trees: Trees,
    thread: Mutex<Option<Sender<FileRequest>>>,
}

enum FileRequest {
    File(TaskPath, Sender<Result<FileContents, LoadFault>>),
    Recorded(TreeName, Sender<Result<RecordedTree, LoadFault>>),
}

impl DeferredFiles {
    /// The files of a task in a directory.
    pub fn new(dir: &Path, task: &Task) -> Self {
        let (dir, loaded_from) = (dir.to_owned(), task.loaded_from.clone());
        let (commit, is_draft) = (task.commit.clone(), task.is_draft());
        let trees = Trees::new(&dir);
        Self { dir, loaded_from, commit, is_draft, trees, thread: Mutex::default() }
    }

    /// Finds the contents of the file with this path.
    ///
    /// # Errors
    ///
    /// Fails if there is no such file, or it has changes that may not be evaluated.
    pub fn find(&self, path: &TaskPath) -> Result<FileContents, LoadFault> {
        self.ask(|answer| FileRequest::File(path.clone(), answer))
    }

    /// Returns the contents of a file in the commit.
    pub fn blob(&self, id: &ObjectId) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
        self.trees.blob(id)
    }

    /// Finds the commit of a repository that the task records.
    ///
    /// # Errors
    ///
    /// Fails if it records none, or the repository has changes that may not be evaluated.
    pub fn recorded(&self, name: &TreeName) -> Result<RecordedTree, LoadFault> {
        self.ask(|answer| FileRequest::Recorded(name.clone(), answer))
    }

    fn ask<T>(
        &self,
        request: impl Fn(Sender<Result<T, LoadFault>>) -> FileRequest,
    ) -> Result<T, LoadFault> {
        let (answer, answers) = mpsc::channel();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = match &*thread {
            Some(requests) => requests,
            None => thread.insert(self.spawn().map_err(LoadFault::Read)?),
        };
        drop(requests.send(request(answer)));
        drop(thread);
        answers.recv().unwrap_or(Err(LoadFault::Missing))
    }

    fn spawn(&self) -> io::Result<Sender<FileRequest>> {
        let (sender, requests) = mpsc::channel();
        let (dir, loaded_from) = (self.dir.clone(), self.loaded_from.clone());
        let (commit, is_draft) = (self.commit.clone(), self.is_draft);
        thread::Builder::new().name("files".to_owned()).spawn(move || {
            let Ok(dir) = dir.canonicalize() else { return };
            match loaded_from {
                LoadedFrom::WorkTree(uncommitted) => {
                    match Checkout::of_task(&dir, &commit, uncommitted, is_draft) {
                        Ok(mut source) => answer(&mut source, &requests),
                        Err(error) => answer_with_error(error.into(), &requests),
                    }
                }
                LoadedFrom::Commit(moved) => {
                    let snapshot = Snapshot::open(&dir, commit.full());
                    let snapshot = snapshot.and_then(|snapshot| match moved {
                        Some((submodule, commit)) => snapshot.with(&submodule, &commit),
                        None => Ok(snapshot),
                    });
                    match snapshot {
                        Ok(mut snapshot) => answer(&mut snapshot, &requests),
                        Err(error) => answer_with_error(error.into(), &requests),
                    }
                }
            }
        })?;
        Ok(sender)
    }
}

/// Answers a request with the reason why the task cannot be read any more. Later ones have no answer.
fn answer_with_error(fault: LoadFault, requests: &mpsc::Receiver<FileRequest>) {
    match requests.recv() {
        Ok(FileRequest::File(_, answer)) => drop(answer.send(Err(fault))),
        Ok(FileRequest::Recorded(_, answer)) => drop(answer.send(Err(fault))),
        Err(_) => {}
    }
}

fn answer(source: &mut impl TaskSource, requests: &mpsc::Receiver<FileRequest>) {
    for request in requests {
        match request {
            FileRequest::File(path, answer) => drop(answer.send(find(source, path))),
            FileRequest::Recorded(name, answer) => drop(answer.send(source.recorded(&name))),
        }
    }
}

fn find(source: &mut impl TaskSource, path: TaskPath) -> Result<FileContents, LoadFault> {
    // Each request has its own answer: a problem is told each time.
    let (mut files, mut findings) = (TaskFiles::default(), Problems::default());
    match files.find(source, path.into(), &mut findings)? {
        Some(id) => Ok(files.all()[id.index()].contents.clone()),
        None => Err(findings.problems.pop().map_or(LoadFault::Missing, |problem| problem.fault)),
    }
}
