//! Loading: from a task repository to a [`Task`]. Every file is read once, and all problems are
//! reported.
//!
//! Only what Git can record is read: two directories that are one through a symbolic link are one
//! node, and a link may not lead out of the repository. Does not know the storage.

mod bind;
mod checked_workflow;
mod checkout;
mod computations;
mod nodes;
mod problems;
mod source;
mod sweep;
mod sweep_files;
mod task_cache;
#[cfg(test)]
mod tests;
mod text_workflow;
mod values;
mod written;
mod written_directories;

pub use self::bind::bind;
pub use self::problems::{
    Exposed, LoadFault, Problem, ResourceFault, Warning, WarningKind, listed,
};
pub use self::text_workflow::written_text;
pub use self::values::DeferredFiles;
pub use self::written_directories::{WrittenDirectories, written};
pub use ce_model::task::Uncommitted;

use std::collections::{BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::SystemTime;

use ce_files::cache::{Cache, Lookup};
use ce_git::{Changes, Config, HeadError, Heads, Kind, Snapshot, SnapshotError};
use ce_model::access::Access;
use ce_model::digest::ObjectId;
use ce_model::exit::{Exit, Explain};
use ce_model::expression::{Mistake, Signature, Signatures};
use ce_model::leftovers::is_leftover;
use ce_model::name::{ComputationName, InputName, TaskName};
use ce_model::suggest::{near, nearest};
use ce_model::system_hints;
use ce_model::task::{
    Computation, LoadedFrom, Task, TaskFile, TaskTree, TextComputation, WORKFLOW_TEXT,
};
use ce_model::text_file::TextError;

use self::checked_workflow::{LoadedWorkflow, WorkflowCheck};
use self::checkout::Checkout;
use self::computations::{Description, Library, SharedLines};
use self::nodes::NodeMaker;
use self::problems::Problems;
use self::source::{TaskSource, parse_lines};
use self::task_cache::Dependencies;
use self::values::{InputDefaults, TaskFiles, TaskTrees};
use self::written::WrittenWorkflow;

/// The parts of a task that are its workflow, in one form or the other.
const OWN: [&str; 5] = [WORKFLOW, INPUTS, DEFAULTS, CHOICES, WORKFLOW_TEXT];

/// The directory of a task with its nodes.
const WORKFLOW: &str = "workflow";

/// The file of a task with the names of its inputs.
const INPUTS: &str = "inputs";

/// The directory of a task with the defaults of its inputs.
const DEFAULTS: &str = "defaults";

/// The directory of a task with the texts that inputs may have.
const CHOICES: &str = "choices";

/// A task and its warnings.
#[derive(Debug)]
pub struct Loaded {
    pub task: Task,
    /// The warnings, in the order of the files.
    pub warnings: Vec<Warning>,
}

/// A task that cannot be evaluated.
#[derive(Debug, thiserror::Error, Explain)]
pub enum LoadError {
    /// There is no such directory, or it may not be read.
    #[error("cannot read the task at {}", path.display())]
    #[hint(system_hints::for_directory(path, source))]
    Directory {
        /// The directory that should hold the task.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The directory holds no workflow.
    #[error("{} holds no task: it has neither {WORKFLOW_TEXT} nor a directory workflow", .0.display())]
    #[hint("run this at the root of a task, or name it with --task")]
    NoTask(PathBuf),
    /// The directory held no workflow at a revision.
    #[error("{} held no task at {rev}: it had neither {WORKFLOW_TEXT} nor a directory workflow", path.display())]
    #[hint("give a revision at which it has its workflow, or name another task with --task")]
    NoTaskAt {
        /// The directory.
        path: PathBuf,
        /// The revision.
        rev: String,
    },
    /// There is no such revision, or its repository cannot be read.
    #[error(transparent)]
    #[hint(_0.hint())]
    Snapshot(#[from] SnapshotError),
    /// The task has problems.
    #[error("the task at {} has {}", path.display(), count(problems.len()))]
    #[exit(exit_with(problems))]
    #[hint(None)]
    Problems {
        /// The directory that holds the task.
        path: PathBuf,
        /// The problems, in the order of the files.
        problems: Vec<Problem>,
        warnings: Vec<Warning>,
    },
}

impl LoadError {
    /// What to try if a task should be changed.
    pub(crate) fn hint_for_editing(&self) -> Option<String> {
        match self {
            Self::NoTask(_) => {
                Some("make one with ce init, or name its directory with --task".to_owned())
            }
            Self::Directory { .. } => self.hint(),
            Self::NoTaskAt { .. } | Self::Snapshot(_) | Self::Problems { .. } => None,
        }
    }

    /// The error of a task in a repository that cannot be read.
    fn of_head(dir: &Path, error: HeadError) -> Self {
        let mut findings = Problems::default();
        findings.problem(Path::new(""), LoadFault::from(error));
        findings.into_error(dir)
    }

    /// The error of a task whose workflow is a text with these mistakes.
    pub(crate) fn of_text(dir: &Path, mistakes: Vec<Mistake>) -> Self {
        let mut findings = Problems::default();
        findings.mistakes(mistakes);
        findings.into_error(dir)
    }
}

/// What ends a program if a task has these problems. The task may be right: a limit of the host may not let it be read.
fn exit_with(problems: &[Problem]) -> Exit {
    let is_short = problems.iter().any(|it| it.fault.is_shortage());
    if is_short { Exit::Missing } else { Exit::Malformed }
}

fn count(problems: usize) -> String {
    if problems == 1 { "a problem".to_owned() } else { format!("{problems} problems") }
}

/// Loads the task in a directory as it is checked out, or takes it from the cache.
///
/// # Errors
///
/// Returns all problems of the task at once.
pub fn task(
    dir: &Path,
    uncommitted: Uncommitted,
    cache: Option<&Cache>,
) -> Result<Loaded, LoadError> {
    let real = real(dir)?;
    let cached = cache.map_or(Lookup::Miss, |cache| task_cache::look_up(cache, &real, None));
    let was_large = match cached {
        Lookup::Hit(task) => {
            let task = Task { loaded_from: LoadedFrom::WorkTree(uncommitted), ..task };
            return Ok(Loaded { task, warnings: Vec::new() });
        }
        Lookup::Stale => uncommitted != Uncommitted::Ignore,
        Lookup::Miss => false,
    };
    let began = SystemTime::now();
    let own = || task_cache::own_fingerprint(&real, began);
    thread::scope(|scope| {
        // Taking the fingerprint of a large task takes as long as reading it.
        let taking = thread::Builder::new();
        let taking = was_large.then(|| taking.spawn_scoped(scope, own).ok()).flatten();
        let (loaded, source) = read_checkout(dir, &real, uncommitted)?;
        if let Some(cache) = cache
            && (source.is_stale() || task_cache::is_large(&loaded.task))
            && let Some(repositories) = source.repository_states()
        {
            task_cache::insert(cache, &real, None, &loaded, || {
                let own = match taking {
                    Some(taking) => taking.join().unwrap_or_else(|panic| resume_unwind(panic)),
                    None => own(),
                };
                Dependencies::of_checkout(&real, began, repositories, &loaded, own?)
            });
        }
        Ok(loaded)
    })
}

/// How often a task is read whose HEAD is another commit when it has been read.
const MOST_READS: usize = 5;

/// Reads a task that is checked out. If changes are refused, the commit at HEAD is read, as long as the work tree does not differ in
/// anything that matters. Otherwise the draft of the next commit is read.
fn read_checkout(
    dir: &Path,
    real: &Path,
    uncommitted: Uncommitted,
) -> Result<(Loaded, Checkout), LoadError> {
    let loaded_from = || LoadedFrom::WorkTree(uncommitted);
    let mut heads = Heads::default();
    if uncommitted == Uncommitted::Refuse {
        for reads in 1.. {
            let Ok(mut source) = Checkout::committed(real, Heads::default()) else { break };
            let read = read(dir, real, &mut source, loaded_from());
            if read.as_ref().is_ok_and(|loaded| loaded.task.changed.is_empty()) {
                return Ok((read?, source));
            }
            if source.stands() || reads == MOST_READS {
                match read {
                    Err(error) if !source.has_changes() => return Err(error),
                    Ok(_) | Err(_) => break,
                }
            }
        }
        heads = Heads::default();
    }
    if !is_task(real) {
        return Err(LoadError::NoTask(dir.to_owned()));
    }
    let source = Checkout::draft(real, heads, uncommitted);
    let mut source = source.map_err(|error| LoadError::of_head(dir, error))?;
    let loaded = read(dir, real, &mut source, loaded_from())?;
    Ok((loaded, source))
}

/// Loads the task in a directory as it is in a revision of its repository, or takes it from the
/// cache. Nothing needs to be checked out.
///
/// # Errors
///
/// Fails if there is no such revision. Returns all problems of the task at once.
pub fn task_at(dir: &Path, rev: &str, cache: Option<&Cache>) -> Result<Loaded, LoadError> {
    let real = real(dir)?;
    let snapshot = Snapshot::open(&real, rev)?;
    let commit = snapshot.commit()?;
    if let Some(cache) = cache
        && let Lookup::Hit(task) = task_cache::look_up(cache, &real, Some(&commit))
    {
        return Ok(Loaded { task, warnings: Vec::new() });
    }
    let loaded = task_in(dir, rev, snapshot, LoadedFrom::Commit(None))?;
    if let Some(cache) = cache.filter(|_| task_cache::is_large(&loaded.task)) {
        task_cache::insert(cache, &real, Some(&commit), &loaded, || Some(Dependencies::default()));
    }
    Ok(loaded)
}

/// Loads the task in a directory as it is at HEAD, but with another commit of a submodule, which is
/// given by its path in the repository.
///
/// # Errors
///
/// Fails if the repository cannot be read. Returns all problems of the task at once.
pub fn task_with(dir: &Path, submodule: &Path, commit: &ObjectId) -> Result<Loaded, LoadError> {
    let snapshot = Snapshot::open(&real(dir)?, "HEAD")?.with(submodule, commit)?;
    let loaded_from = LoadedFrom::Commit(Some((submodule.to_owned(), commit.clone())));
    task_in(dir, "HEAD", snapshot, loaded_from)
}

fn task_in(
    dir: &Path,
    rev: &str,
    mut snapshot: Snapshot,
    loaded_from: LoadedFrom,
) -> Result<Loaded, LoadError> {
    let real = real(dir)?;
    let mut is_there = false;
    for (name, is_directory) in [(WORKFLOW, true), (WORKFLOW_TEXT, false)] {
        is_there |= match snapshot.find(Path::new(name)) {
            Ok(found) => (found.kind() == Kind::Directory) == is_directory,
            Err(error @ SnapshotError::Git(_)) => return Err(error.into()),
            Err(_) => false,
        };
    }
    if is_there {
        return read(dir, &real, &mut snapshot, loaded_from);
    }
    Err(LoadError::NoTaskAt { path: dir.to_owned(), rev: rev.to_owned() })
}

/// Checks the text that is the workflow of a task, as it is checked out. The files and computations that it names need not be there.
///
/// # Errors
///
/// Returns all problems of the text at once.
pub fn check_text(dir: &Path) -> Result<(), LoadError> {
    let Err(LoadError::Problems { path, mut problems, .. }) = task(dir, Uncommitted::Ignore, None)
    else {
        return Ok(());
    };
    problems.retain(|it| it.path.as_os_str() == WORKFLOW_TEXT && it.fault.is_of_writing());
    if problems.is_empty() {
        return Ok(());
    }
    Err(LoadError::Problems { path, problems, warnings: Vec::new() })
}

/// Whether a directory, given by its real path, holds a task.
pub fn is_task(dir: &Path) -> bool {
    dir.join(WORKFLOW).is_dir() || dir.join(WORKFLOW_TEXT).symlink_metadata().is_ok()
}

/// Returns the name of the task in a directory, the commit of a revision, and the path of the task
/// in its repository: these identify its jobs. Nothing else is read.
///
/// `None` if one of them is unknown; loading the task reports why.
pub fn job_at(dir: &Path, rev: &str) -> Option<(TaskName, ObjectId, String)> {
    let real = real(dir).ok()?;
    let commit = Snapshot::open(&real, rev).ok()?.commit().ok()?;
    Some((name(&real).ok()?, commit, place(&real)))
}

/// Checks that this host has what the files `access` of a task's computations say: all granted paths, and
/// isolation for those with a root of their own. `exposed` says why computations are not isolated, if
/// they are not; then the paths do not matter.
///
/// # Errors
///
/// Returns everything that is missing at once.
pub fn check_access(dir: &Path, task: &Task, exposed: Option<&Exposed>) -> Result<(), LoadError> {
    let mut problems = Vec::new();
    for computation in &task.computations {
        let path = computation.place_of(computations::ACCESS_FILE);
        let faults = computations::access_faults(&computation.access, exposed).into_iter();
        let problem = |fault| Problem { path: path.clone(), line: None, excerpt: None, fault };
        problems.extend(faults.map(problem));
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(LoadError::Problems { path: dir.to_owned(), problems, warnings: Vec::new() })
}

fn real(dir: &Path) -> Result<PathBuf, LoadError> {
    dir.canonicalize().map_err(|source| LoadError::Directory { path: dir.to_owned(), source })
}

fn read(
    dir: &Path,
    real: &Path,
    source: &mut impl TaskSource,
    loaded_from: LoadedFrom,
) -> Result<Loaded, LoadError> {
    let mut findings = Problems::default();
    let here = Path::new("");
    let commit = findings.note(here, source.commit());
    let name = findings.note(here, name(real));
    let expression = match text_workflow::contents(source, &mut findings) {
        None => {
            let written = written_directories::read(source, &mut findings);
            let written = WrittenWorkflow::Directories(&written);
            Some(read_expression(source, written, &mut findings))
        }
        Some(None) => None,
        Some(Some(text)) => text_workflow::parsed(&text, &mut findings).map(|parsed| {
            let mut read = read_expression(source, WrittenWorkflow::Text(&parsed), &mut findings);
            text_workflow::warn_of_unread(&parsed, &mut findings);
            if let Some(workflow) = &mut read.workflow {
                text_workflow::shorten_places(&mut workflow.sweeps);
            }
            read
        }),
    };
    let place = place(real);
    if let Some(ReadExpression { files, trees, .. }) = &expression {
        values::retain_unread(&mut findings.warnings, files, trees, &place);
    }
    // Without a commit there is nothing to differ from.
    let changes = commit.as_ref().and_then(|_| findings.note(here, source.changes()));
    let Changes { changed, ignored, .. } = changes.unwrap_or_default();
    let ignored = ignored.iter().filter(|path| !is_leftover(path));
    ignored.for_each(|path| findings.warning(path, WarningKind::Ignored));
    if loaded_from == LoadedFrom::WorkTree(Uncommitted::Warn) && !changed.is_empty() {
        findings.warning(here, WarningKind::Uncommitted(changed.clone()));
    }
    findings.sort();
    match (commit, name, expression) {
        (Some(commit), Some(name), Some(read)) if findings.problems.is_empty() => {
            let ReadExpression { inputs, defaults, files, trees, workflow, .. } = read;
            let (defaults, choices) = (defaults.files, defaults.choices);
            let (computations, text_computations) = (read.computations, read.text_computations);
            if let (Some(inputs), Some(workflow)) = (inputs, workflow) {
                let LoadedWorkflow { workflow, bound, sweeps, resources, definitions, parts } =
                    workflow;
                let task = Task {
                    name,
                    commit,
                    place,
                    loaded_from,
                    changed,
                    inputs,
                    defaults,
                    choices,
                    files,
                    trees,
                    bound,
                    sweeps,
                    computations,
                    text_computations,
                    resources,
                    workflow,
                    definitions,
                    parts,
                };
                return Ok(Loaded { task, warnings: findings.warnings });
            }
        }
        _ => {}
    }
    debug_assert!(!findings.problems.is_empty(), "a task that fails says why");
    Err(findings.into_error(dir))
}

/// The parts of an expression that were read, and the things that its nodes refer to. A part that has a problem is missing.
struct ReadExpression {
    inputs: Option<Vec<InputName>>,
    defaults: InputDefaults,
    files: Vec<TaskFile>,
    trees: Vec<TaskTree>,
    computations: Vec<Computation>,
    text_computations: Vec<TextComputation>,
    workflow: Option<LoadedWorkflow>,
}

/// Reads the inputs of a task and what its workflow refers to, and checks the workflow.
fn read_expression(
    source: &mut impl TaskSource,
    written: WrittenWorkflow<'_>,
    findings: &mut Problems,
) -> ReadExpression {
    let mut files = TaskFiles::default();
    let (inputs, defaults) = match written {
        WrittenWorkflow::Text(parsed) => {
            let defaults = files.written_defaults(source, parsed, findings);
            (Some(parsed.text.inputs.clone().unwrap_or_default()), defaults)
        }
        WrittenWorkflow::Directories(_) => {
            let inputs = inputs(source, findings);
            let names = inputs.as_deref().unwrap_or_default();
            let defaults = files.defaults(source, names, findings);
            (inputs, defaults)
        }
    };
    let texts = written.text_computations();
    let names = |source: &mut _| computations::names(source, texts);
    let shared = SharedLines::of_task(source, names, findings);
    let mut library = Library::new(source, texts);
    let mut trees = TaskTrees::default();
    let mut nodes = NodeMaker::new(
        written,
        inputs.as_deref(),
        &mut files,
        &mut trees,
        shared,
        &mut library,
        findings,
    );
    nodes.choices = &defaults.choices;
    let workflow = WorkflowCheck::new(nodes).load();
    let (files, mut computations) = (files.into_files(), library.into_computations());
    let written = computations.iter().flat_map(|it| it.access.writes()).map(Path::to_owned);
    let written: Vec<PathBuf> = written.collect::<BTreeSet<_>>().into_iter().collect();
    computations.iter_mut().for_each(|it| it.access.written.clone_from(&written));
    let trees = trees.into_trees();
    let text_computations = texts.to_vec();
    ReadExpression { inputs, defaults, files, trees, computations, text_computations, workflow }
}

/// The path of the task in its repository. Bytes that are not UTF-8 are escaped.
fn place(real: &Path) -> String {
    let top = ce_git::top(real).unwrap_or_else(|| real.to_owned());
    let inside = real.strip_prefix(top).unwrap_or(Path::new(""));
    match inside.to_str() {
        Some(inside) => inside.to_owned(),
        None => inside.as_os_str().as_bytes().escape_ascii().to_string(),
    }
}

/// The name of the task's directory. For a bare repository, the directory name of a clone.
fn name(real: &Path) -> Result<TaskName, LoadFault> {
    let bare = real.join("HEAD").is_file() && real.join("objects").is_dir();
    let name = if bare { real.file_stem() } else { real.file_name() };
    let name = name.unwrap_or(real.as_os_str());
    name.to_str().ok_or(LoadFault::Text(TextError::NotText))?.parse().map_err(LoadFault::Name)
}

fn inputs(source: &mut impl TaskSource, findings: &mut Problems) -> Option<Vec<InputName>> {
    let path = Path::new(INPUTS);
    let lines = source.task().and_then(|task| source.read(&task, INPUTS));
    let lines = findings.note_lines(path, parse_lines(lines))?;
    let mut first = HashMap::new();
    let mut names = Vec::with_capacity(lines.len());
    for (at, text) in lines.iter().enumerate() {
        let line = at + 1;
        let seen = *first.entry(text).or_insert(line);
        if seen != line {
            let fault = LoadFault::Duplicate { name: text.clone(), line: seen };
            findings.problem_in_line(path, line, fault);
        }
        match text.parse() {
            Ok(name) => names.push(name),
            Err(error) => findings.problem_in_line(path, line, LoadFault::Name(error)),
        }
    }
    Some(names)
}

/// Returns the inputs of the task in a directory, as it is checked out or at a revision. It is empty if the task or its
/// repository cannot be read, or is not trusted.
pub fn input_names(dir: &Path, at: Option<&str>) -> Vec<InputName> {
    let names = match at {
        Some(rev) => Snapshot::open(dir, rev).ok().and_then(|mut it| any_inputs(&mut it)),
        None => work_tree(dir).and_then(|mut it| any_inputs(&mut it)),
    };
    names.unwrap_or_default()
}

/// Returns the names of the inputs of a task, regardless of the form of its workflow.
fn any_inputs(source: &mut impl TaskSource) -> Option<Vec<InputName>> {
    let mut problems = Problems::default();
    match text_workflow::contents(source, &mut problems) {
        Some(text) => text_workflow::parsed(&text?, &mut problems)
            .map(|parsed| parsed.text.inputs.unwrap_or_default()),
        None => inputs(source, &mut problems),
    }
}

/// Returns the computations of the task in a directory, as it is checked out, each with its directory or file relative to
/// the task. It is empty if the task or its repository cannot be read, or is not trusted.
pub fn computation_places(dir: &Path) -> Vec<(ComputationName, PathBuf)> {
    let Some(mut source) = work_tree(dir) else { return Vec::new() };
    let texts = computations::text_computations(&mut source);
    let listed = computations::listed(&mut source, &texts).into_iter();
    let place = |(name, place): (String, PathBuf)| Some((name.parse().ok()?, place));
    let mut places: Vec<_> = listed.filter_map(place).collect();
    places.sort();
    places
}

/// Returns the names of the computations in a directory that may become a task, and the directory or file of each.
pub(crate) fn library(task: &Path) -> Vec<(String, PathBuf)> {
    let listed = computations::listed(&mut Snapshot::of_files(task), &[]).into_iter();
    listed.map(|(name, place)| (name, task.join(place))).collect()
}

/// The files of a task that is checked out, if its repository is there and trusted.
fn work_tree(dir: &Path) -> Option<Snapshot> {
    let real = dir.canonicalize().ok()?;
    Config::read(&real).ok()?;
    Some(Snapshot::of_files(&real))
}

/// Returns the signatures of computations of the task in a directory, as far as they are known: loading the task reports
/// problems.
pub fn signatures<'a>(dir: &Path, names: impl IntoIterator<Item = &'a String>) -> Signatures {
    let mut source = Snapshot::of_files(&dir.canonicalize().unwrap_or_else(|_| dir.to_owned()));
    let texts = computations::text_computations(&mut source);
    let mut signature = |name: &String| {
        let described =
            computations::described(&mut source, &texts, name, &mut Problems::default());
        Signature { inputs: described.inputs, outputs: described.outputs }
    };
    names.into_iter().map(|name| (name.clone(), signature(name))).collect()
}

/// Returns the names of the inputs and outputs of the computation in a directory, and what it may access. Without these
/// files, its `exec` declares them.
///
/// # Errors
///
/// Fails with the first problem of its files.
pub fn exported(dir: &Path) -> Result<(Vec<String>, Vec<String>, Access), Problem> {
    let mut findings = Problems::default();
    let mut source = Snapshot::of_files(&dir.canonicalize().unwrap_or_else(|_| dir.to_owned()));
    let read = match source.task() {
        Ok(place) => computations::exported(&mut source, &place, &mut findings),
        Err(fault) => {
            return Err(Problem { path: dir.to_owned(), line: None, excerpt: None, fault });
        }
    };
    match (read, findings.problems.into_iter().next()) {
        (_, Some(problem)) => Err(problem),
        (Description { inputs, outputs, access }, None) => Ok((
            inputs.unwrap_or_default(),
            outputs.unwrap_or_default(),
            access.unwrap_or_default(),
        )),
    }
}
