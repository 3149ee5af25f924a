//! Options that several programs have, and loading the task that they name.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};

use super::say;
use super::times::duration;
use crate::cache::Cache;
use crate::evaluate::Evaluation;
use crate::git::{self, Config};
use crate::load::{self, Loaded, Uncommitted};
use crate::session::{self, Error, Given, RunOptions};
use crate::storage::{Durability, Finding, InputSource, Storage, Survey, Unrecorded};
use crate::task::name::nearest;
use crate::task::workflow::{LIBRARY, RangedInput, RangedInputs, Task};

/// Whether changes that are not committed count.
#[derive(Debug, Args)]
pub(super) struct Dirty {
    /// Evaluate computations with uncommitted changes, under names of their own
    ///
    /// Their results are in c_NAME/dirty-TREE, where TREE identifies their contents, and the job's
    /// outputs are not stored under the task's commit.
    #[arg(long)]
    dirty: bool,
}

impl Dirty {
    pub(super) const fn uncommitted(&self) -> Uncommitted {
        if self.dirty { Uncommitted::Evaluate } else { Uncommitted::Refuse }
    }
}

/// The directory of a task that a directory is or is in: the nearest one in the same work tree that holds a
/// workflow. Without any, it is the directory itself.
pub(super) fn task_dir() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(task_around)
}

/// See [`task_dir`].
pub(super) fn task_around(dir: PathBuf) -> PathBuf {
    git::around(&dir, |it| it.join("workflow").is_dir()).unwrap_or(dir)
}

/// The same of a task that may have no workflow yet, only computations.
pub(super) fn new_task_dir() -> impl TypedValueParser<Value = PathBuf> {
    let is_task = |it: &Path| it.join("workflow").is_dir() || it.join(LIBRARY).is_dir();
    PathBufValueParser::new().map(move |dir| git::around(&dir, is_task).unwrap_or(dir))
}

/// Which task.
#[derive(Debug, Args)]
pub(super) struct TaskDir {
    /// The directory that holds the task, or one within it
    #[arg(long, value_name = "DIR", default_value = ".", value_parser = task_dir(), value_hint = clap::ValueHint::DirPath)]
    pub(super) task: PathBuf,

    /// Take the task as it was at a commit, from the repository's objects: nothing is checked out
    #[arg(long, value_name = "REV")]
    pub(super) at: Option<String>,
}

impl TaskDir {
    /// Returns what Git's configuration says for the task's repository.
    pub(super) fn config(&self) -> Result<Config, Error> {
        Ok(Config::of(&self.task)?)
    }

    /// Loads the task, and tells what is odd about it.
    pub(super) fn load(&self, program: &str, uncommitted: Uncommitted) -> Result<Task, Error> {
        // Warnings need a look at the task itself.
        let cache = Cache::of_user().filter(|_| uncommitted != Uncommitted::Warn);
        let Loaded { task, warnings } = match &self.at {
            Some(rev) => load::task_at(&self.task, rev, cache.as_ref())?,
            None => load::task(&self.task, uncommitted, cache.as_ref())?,
        };
        for warning in warnings {
            say(program, &format_args!("warning: {warning}"));
        }
        Ok(task)
    }
}

/// The treatment of outputs without a record.
#[derive(Debug, Args)]
pub(super) struct Strict {
    /// Use neither results without a record nor adopted ones
    ///
    /// By default, results of the first CompEval implementation and files put in place by hand are
    /// adopted: used, and recorded as adopted.
    #[arg(long)]
    strict: bool,
}

impl Strict {
    pub(super) const fn unrecorded(&self) -> Unrecorded {
        if self.strict { Unrecorded::Refuse } else { Unrecorded::Adopt }
    }
}

/// How tasks are evaluated.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// How many computations run at the same time [default: what Git's configuration has for
    /// compeval.jobs, else the number of cores]
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Retry a failed call up to N times
    #[arg(long, value_name = "N", default_value_t = 0)]
    retry: u32,

    /// Execute points of sweeps again that failed before and are rows of a table, because the sweep
    /// allows that
    #[arg(long)]
    retry_failed: bool,

    /// End a computation that takes longer, such as 90s, 10min or 1h30min
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,

    /// Do not wait until results are on the disk: faster, and safe as long as the power stays on
    #[arg(long)]
    no_sync: bool,

    /// Isolate computations from the rest of the system, whatever Git's configuration has for
    /// compeval.isolate
    #[arg(long, overrides_with = "no_isolate")]
    isolate: bool,

    /// Do not isolate computations from the rest of the system [default: what Git's configuration
    /// has for compeval.isolate]
    #[arg(long, overrides_with = "isolate")]
    no_isolate: bool,

    #[command(flatten)]
    strict: Strict,
}

impl RunArgs {
    /// Returns the options of a session: these arguments, or else Git's configuration, or defaults.
    pub(super) fn options(&self, config: &Config) -> Result<RunOptions, Error> {
        let default = RunOptions::default();
        let jobs = match self.jobs {
            Some(jobs) => Some(jobs),
            None => config.jobs()?,
        };
        Ok(RunOptions {
            jobs: jobs.unwrap_or(default.jobs),
            retries: self.retry,
            retry_failed: self.retry_failed,
            timeout: self.timeout,
            durability: if self.no_sync { Durability::Unsynced } else { Durability::Synced },
            isolate: match (self.isolate, self.no_isolate) {
                (false, false) => config.isolate()?.unwrap_or(default.isolate),
                (isolate, _) => isolate,
            },
            unrecorded: self.unrecorded(),
        })
    }

    /// The treatment of outputs without a record.
    pub(super) const fn unrecorded(&self) -> Unrecorded {
        self.strict.unrecorded()
    }
}

/// Opens a storage that is there, for reading and writing.
pub(super) fn writable(path: &Path) -> Result<Storage, Error> {
    Storage::existing(path)?;
    Ok(Storage::open(path, Unrecorded::Refuse, Durability::Synced)?)
}

/// Warns of symbolic links in the place of directories: nothing behind them is looked at.
pub(super) fn warn_of_links(storage: &Storage) -> Result<(), Error> {
    for Finding { name, defect } in Survey::new(storage).links()? {
        let path = storage.shown(&name);
        say("ce", &format_args!("warning: {} is left out: {defect}", path.display()));
    }
    Ok(())
}

/// Where the results are, and what the task is given, as it was typed.
#[derive(Clone, Debug, Args)]
pub(super) struct PathArgs {
    /// The directory that keeps all results [default: what Git's configuration has for
    /// compeval.storage]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    storage: Option<PathBuf>,

    /// A file for each input of the task: NAME=FILE, or the files of all inputs that are not given by
    /// name, in the order of the task's inputs
    #[arg(value_hint = clap::ValueHint::FilePath)]
    inputs: Vec<PathBuf>,

    /// Give an input as a text: the file that `echo TEXT` would make
    #[arg(short, long = "param", value_name = "NAME=TEXT", value_parser = named_text)]
    params: Vec<(String, String)>,

    /// Read the repository that the task calls SOURCE from here: a work tree, or a bare repository
    #[arg(short, long = "repository", value_name = "SOURCE=REPO", value_parser = named_repository, value_hint = clap::ValueHint::DirPath)]
    repositories: Vec<(String, PathBuf)>,
}

fn named_text(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, text)) if !name.is_empty() => Ok((name.to_owned(), text.to_owned())),
        _ => Err("write NAME=TEXT".to_owned()),
    }
}

fn named_repository(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok((name.to_owned(), path.into()))
        }
        _ => Err("write SOURCE=REPO".to_owned()),
    }
}

impl PathArgs {
    /// Whether nothing was typed.
    pub(super) const fn is_nothing(&self) -> bool {
        self.storage.is_none() && self.params.is_empty() && self.repositories.is_empty()
    }

    /// The first argument, and the others as if they had been typed without it.
    pub(super) fn split_first(&self) -> Option<(&Path, Self)> {
        let mut inputs = self.inputs.clone().into_iter();
        let storage = inputs.next();
        Some((self.storage.as_deref()?, Self { storage, inputs: inputs.collect(), ..self.clone() }))
    }

    fn typed(&self) -> impl Iterator<Item = &Path> {
        self.storage.iter().chain(&self.inputs).map(PathBuf::as_path)
    }

    /// Returns the storage, and the inputs of a task that is not loaded, in each way in which they may be
    /// told apart. There is none if inputs may be given by name: then the task is needed.
    pub(super) fn candidates(&self, config: &Config) -> Result<Vec<Given>, Error> {
        let may_be_named = |path: &Path| path.as_os_str().as_encoded_bytes().contains(&b'=');
        if !self.params.is_empty() || self.typed().any(may_be_named) {
            return Ok(Vec::new());
        }
        let typed: Vec<&Path> = self.typed().collect();
        let resolved = |storage: &Path, files: &[&Path]| Given {
            storage: storage.to_owned(),
            inputs: files.iter().map(|file| Some(InputSource::from(*file))).collect(),
            repositories: self.repositories.clone(),
        };
        let first = typed.split_first().map(|(storage, files)| resolved(storage, files));
        let configured = config.storage()?.map(|storage| resolved(&storage, &typed));
        Ok(configured.into_iter().chain(first).collect())
    }

    /// Checks that no input is given by name that the points have texts for.
    pub(super) fn check_unranged(&self, inputs: &RangedInputs) -> Result<(), Error> {
        for RangedInput { name, .. } in inputs.iter().filter(|input| input.given.is_none()) {
            let is_named = |path: &Path| {
                let rest = path.as_os_str().as_bytes().strip_prefix(name.as_str().as_bytes());
                rest.is_some_and(|rest| rest.starts_with(b"="))
            };
            if self.params.iter().any(|(it, _)| *it == name.as_str()) || self.typed().any(is_named)
            {
                return Err(Error::GivenAndRanged(name.to_string()));
            }
        }
        Ok(())
    }

    /// Looks for all results of a task in the storage. Computes and writes nothing.
    pub(super) fn look_up(
        &self,
        dir: &TaskDir,
        task: Task,
        strict: &Strict,
    ) -> Result<Evaluation, Error> {
        let given = self.resolve(&task, &dir.config()?)?;
        session::look_up(&dir.task, task, &given, strict.unrecorded())
    }

    /// Tells the storage from the inputs, and which input each of these is: `NAME=FILE` is the input of
    /// that name, if the task has one. Of the other arguments the storage comes first, unless the
    /// configuration has one and there are just as many as inputs that are not given by name.
    ///
    /// An input with a default is given by name only.
    pub(super) fn resolve(&self, task: &Task, config: &Config) -> Result<Given, Error> {
        let mut named: Vec<Option<InputSource>> = vec![None; task.inputs.len()];
        let mut name = |at: usize, source| match named[at].replace(source) {
            None => Ok(()),
            Some(_) => Err(Error::InputTwice(task.inputs[at].to_string())),
        };
        let mut rest = Vec::new();
        for path in self.typed() {
            match split_name(task, path) {
                Some((at, file)) => name(at, file.into())?,
                None => rest.push(path),
            }
        }
        for (input, text) in &self.params {
            let at = task.inputs.iter().position(|it| it.as_str() == input);
            name(
                at.ok_or_else(|| unknown_input(task, input))?,
                InputSource::Bytes(format!("{text}\n").into_bytes()),
            )?;
        }
        let is_named = named.iter().any(Option::is_some);
        // The inputs that are given by position.
        let open: Vec<usize> = (0..named.len())
            .filter(|at| named[*at].is_none() && task.defaults[*at].is_none())
            .collect();
        let (storage, files) = match (config.storage()?, rest.split_first()) {
            (Some(storage), _) if rest.len() == open.len() => (storage, rest.as_slice()),
            (_, Some((storage, files))) if files.len() == open.len() => {
                ((*storage).to_owned(), files)
            }
            (None, None) => return Err(Error::NoStorage),
            (configured, _) => {
                return Err(Error::Inputs {
                    task: task.name.to_string(),
                    names: open.iter().map(|at| task.inputs[*at].to_string()).collect(),
                    given: rest.len() - usize::from(configured.is_none()),
                    named: is_named,
                    configured: configured.is_some(),
                });
            }
        };
        let mut inputs = named;
        for (at, file) in open.into_iter().zip(files) {
            inputs[at] = Some(InputSource::from(*file));
        }
        check_inputs(task, &inputs, &storage)?;
        check_repositories(task, &self.repositories)?;
        Ok(Given { storage, inputs, repositories: self.repositories.clone() })
    }
}

/// The input that an argument names, and the file that it gives.
fn split_name<'a>(task: &Task, argument: &'a Path) -> Option<(usize, &'a Path)> {
    let bytes = argument.as_os_str().as_bytes();
    task.inputs.iter().enumerate().find_map(|(at, name)| {
        let file = bytes.strip_prefix(name.as_str().as_bytes())?.strip_prefix(b"=")?;
        Some((at, Path::new(OsStr::from_bytes(file))))
    })
}

fn unknown_input(task: &Task, name: &str) -> Error {
    let names: Vec<String> = task.inputs.iter().map(ToString::to_string).collect();
    let (task, nearest) = (task.name.to_string(), nearest(name, &names));
    Error::UnknownInput { task, name: name.to_owned(), nearest }
}

/// Sees to it that the task reads each repository that is named, and that none is named twice.
fn check_repositories(task: &Task, named: &[(String, PathBuf)]) -> Result<(), Error> {
    // Texts of inputs may be parts of names.
    let is_open = task.trees.iter().any(|tree| tree.name.is_open());
    let known = task.trees.iter().map(|tree| tree.name.written().source().to_owned());
    let known: Vec<String> = known.collect();
    for (at, (name, _)) in named.iter().enumerate() {
        if named[..at].iter().any(|(other, _)| other == name) {
            return Err(Error::RepositoryTwice(name.clone()));
        }
        if !is_open && !known.contains(name) {
            let (task, nearest) = (task.name.to_string(), nearest(name, &known));
            return Err(Error::UnknownRepository { task, name: name.clone(), nearest });
        }
    }
    Ok(())
}

/// Sees to it that each input of the task that is a file can be read, and that the storage is in none.
fn check_inputs(task: &Task, sources: &[Option<InputSource>], storage: &Path) -> Result<(), Error> {
    for (name, source) in task.inputs.iter().zip(sources) {
        let Some(InputSource::File(path)) = source else { continue };
        readable(path, storage).map_err(|source| Error::Input {
            name: name.to_string(),
            path: path.display().to_string(),
            source,
        })?;
    }
    Ok(())
}

fn readable(path: &Path, storage: &Path) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        // A storage that does not exist yet is in the directory that it will be in.
        let mut places = storage.ancestors();
        let place = places.find_map(|place| match place.as_os_str().is_empty() {
            true => Path::new(".").canonicalize().ok(),
            false => place.canonicalize().ok(),
        });
        if place.is_some_and(|place| path.canonicalize().is_ok_and(|it| place.starts_with(it))) {
            return Err(io::Error::other("the storage is, or would be, in that directory"));
        }
    }
    // Opening a pipe would wait for its writer.
    if metadata.is_file() { fs::File::open(path).map(drop) } else { Ok(()) }
}
