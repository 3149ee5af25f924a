//! Why a program ends early: one variant for each stage, each with its exit code and what to try.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;

use super::inspection::InspectionError;
use super::place::ResultPathError;
use super::suspended::SuspensionError;
use super::words::{inputs, sheet_problems};
use crate::edit::EditError;
use crate::evaluate::PointsError;
use crate::evaluate::{EvaluateError, ValueError};
use crate::executor::ExecuteError;
use crate::executor::slurm::{SlurmError, SlurmSettingError};
use crate::expand::{ProductFault, SheetProblem};
use crate::git::{CommitHistoryError, ConfigError, ReachError, SnapshotError};
use crate::load::LoadError;
use crate::manifest::DirectoryError;
use crate::plan::SelectionFault;
use crate::questions::bisect::BisectError;
use crate::questions::collect::RepositoryError;
use crate::questions::history::HistoryError;
use crate::questions::package::PackageError;
use crate::questions::table::{SweepChoiceError, SweepTableError};
use crate::results::{NotAudited, ResultsError};
use crate::storage::StorageError;
use crate::storage::maintenance::verify::VerifyError;
use crate::task::name::nearest;
use crate::task::workflow::Task;

/// Why a program ends early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The task is wrong.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The storage could not be read or written, or an input not be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The evaluation could not be carried out.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    /// The commits that are reachable in a repository are unknown.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// The repositories that use a storage, or their reachable commits, are unknown.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The storage could not be verified.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// There is no file to be shown.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// A call cannot be looked into.
    #[error(transparent)]
    Inspection(#[from] InspectionError),
    /// Results could not be exported.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The task could not be made or changed.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The user's Git configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Settings of workers on Slurm are wrong.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Slurm(Vec<SlurmSettingError>),
    /// A run could not be submitted to Slurm.
    #[error("the run cannot be submitted")]
    Submit(#[source] SlurmError),
    /// What is in the background cannot have this.
    #[error("{0} and --detach=job exclude each other")]
    NotInJob(&'static str),
    /// The first bad commit cannot be looked for.
    #[error(transparent)]
    Bisect(#[from] BisectError),
    /// The commits of a repository are unknown.
    #[error(transparent)]
    Commits(#[from] SnapshotError),
    /// The commits of a repository cannot be listed.
    #[error(transparent)]
    List(#[from] CommitHistoryError),
    /// The user's test does not run.
    #[error("the test {program} cannot be run")]
    Test {
        /// Its first word.
        program: String,
        /// Why.
        source: ExecuteError,
    },
    /// Calls ask for more than there is.
    #[error("nothing is executed: {}", calls.join("; "))]
    Misfits {
        /// The calls, each with the reason.
        calls: Vec<String>,
        /// Advice for the user.
        hint: String,
    },
    /// Results were not exchanged with a repository.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// No results repository was named.
    #[error("no repository is given, and Git's configuration has no compeval.results")]
    NoResults,
    /// No storage was named.
    #[error("no storage is given, and Git's configuration has no compeval.storage")]
    NoStorage,
    /// The number of inputs is not the task's.
    #[error(
        "the task {task} takes {}{}, and {given} {} given",
        inputs(names),
        if *named { " beside those given by name" } else { "" },
        if *given == 1 { "is" } else { "are" }
    )]
    Inputs {
        /// The name of the task.
        task: String,
        /// The names of the inputs that it takes by position.
        names: Vec<String>,
        /// The number of inputs given by position.
        given: usize,
        /// Other inputs are given by name.
        named: bool,
        /// Git's configuration has a storage, so none needs to be given.
        configured: bool,
    },
    /// The task has no input of this name.
    #[error("the task {task} takes no input {name}")]
    UnknownInput {
        /// The name of the task.
        task: String,
        /// The name of the input.
        name: String,
        /// The name of an input that the task takes and may be meant.
        nearest: Option<String>,
        /// The names of all inputs that it takes.
        inputs: Vec<String>,
    },
    /// An input is both given and ranged over.
    #[error("the input {0} is given, and --each or --points has values for it, too")]
    GivenAndRanged(String),
    /// An input is ranged over more than once.
    #[error("the points have the input {0} twice")]
    RangedTwice(String),
    /// The points of a task's own inputs cannot be combined.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Product(Vec<ProductFault>),
    /// A sheet of points could not be read.
    #[error("cannot read the points in {path}")]
    ReadPoints {
        /// The sheet.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A sheet of points is wrong.
    #[error("the points in {path} cannot be used: {}", sheet_problems(problems))]
    Points {
        /// The sheet.
        path: String,
        /// What is wrong with it.
        problems: Vec<SheetProblem>,
    },
    /// A sheet has no points.
    #[error("there are no points in {0}")]
    NoPoints(String),
    /// An input is not given, and has no default.
    #[error("the input {0} is not given, and has no default")]
    NotGiven(String),
    /// An input is given by its name more than once.
    #[error("the input {0} is given twice")]
    InputTwice(String),
    /// One version of a task takes an input that the other one does not.
    #[error("the task at {takes} takes an input {name}, and at {lacks} it does not")]
    NoInput {
        /// The symbolic name.
        name: String,
        /// The version that takes it.
        takes: String,
        /// The version that does not.
        lacks: String,
    },
    /// An argument after a revision has two meanings.
    #[error("{argument} is both a revision and the name of a file or directory")]
    RevisionOrPath {
        /// The revision before it.
        one: String,
        /// The argument.
        argument: String,
    },
    /// An input is not there or may not be read.
    #[error("cannot read the input {name}, {path}")]
    Input {
        /// Its symbolic name.
        name: String,
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// An input cannot be a value, or not be read to its end.
    #[error("the input {name} cannot be used")]
    InputValue {
        /// Its symbolic name.
        name: String,
        /// Why.
        source: StorageError,
    },
    /// A file of the task cannot be read from its repository.
    #[error("cannot read the task's file {path}")]
    OwnFile {
        /// Its path in the task.
        path: String,
        /// The error of Git.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A Git tree is not to be had.
    #[error(transparent)]
    Tree(Arc<ValueError>),
    /// The task reads no repository of this name.
    #[error("the task {task} reads no repository {name}")]
    UnknownRepository {
        /// The name of the task.
        task: String,
        /// The name that the user gave.
        name: String,
        /// The name of a repository that the task reads and may be meant.
        nearest: Option<String>,
    },
    /// A repository is named more than once.
    #[error("the repository {0} is given twice")]
    RepositoryTwice(String),
    /// A directory cannot be a value, or not be read.
    #[error("cannot take the directory {path} as a value")]
    Directory {
        /// The directory.
        path: String,
        /// Why.
        source: DirectoryError,
    },
    /// A signal of this number came while inputs were read.
    #[error("interrupted while inputs are read")]
    Interrupted(u8),
    /// No result is named for an option that changes pins.
    #[error("{0} needs a file")]
    NothingToPin(&'static str),
    /// A path names no result.
    #[error(transparent)]
    ResultPath(#[from] ResultPathError),
    /// No suspended call is named.
    #[error("no call is given")]
    NoCallGiven,
    /// All suspended calls are meant, and one is named.
    #[error("--all means all suspended calls, and {0} is given, too")]
    AllAndOne(String),
    /// A text names no call.
    #[error("{0} is not a call of the storage")]
    NoCall(String),
    /// A text names no job.
    #[error("{0} is not a job of the storage")]
    NoJob(String),
    /// A call that was named cannot be executed again.
    #[error("{0} cannot be audited: {1}")]
    NotAudited(String, NotAudited),
    /// Two options say differently which calls are audited.
    #[error("{0} says which calls are audited, and so does {1}")]
    AuditedTwice(&'static str, String),
    /// Nothing of this kind can be drawn.
    #[error("the name {0} has no extension of a known format")]
    Picture(String),
    /// A page would replace something else.
    #[error("{0} is there, and is no page of ce report")]
    NotAPage(String),
    /// A file could not be written.
    #[error("cannot write {path}")]
    Write {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// Another program could not be used.
    #[error("cannot run {program}")]
    Program {
        /// Its name.
        program: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A picture could not be converted.
    #[error("rsvg-convert made no {format}: {status}{said}")]
    Convert {
        /// The format of the picture.
        format: &'static str,
        /// How the program ended.
        status: ExitStatus,
        /// What it has printed first.
        said: String,
    },
    /// Threads or signals are not to be had.
    #[error("cannot start threads or watch signals")]
    Begin(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No points have what is asked for.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Selection(Vec<SelectionFault>),
    /// A sheet that is a file of the task cannot be used.
    #[error(transparent)]
    Sheet(PointsError),
    /// No sweep is chosen.
    #[error(transparent)]
    Sweep(#[from] SweepChoiceError),
    /// The table of a sweep could not be read.
    #[error(transparent)]
    Table(#[from] SweepTableError),
    /// More versions were named than can be compared.
    #[error("{0} versions are given, and two can be compared")]
    Versions(usize),
    /// Nothing was done to a suspended call.
    #[error(transparent)]
    Suspension(#[from] SuspensionError),
    /// Standard output could not be written.
    #[error("cannot write the standard output")]
    Output(#[source] io::Error),
}

impl Error {
    /// That a task has no input of a name.
    pub(crate) fn unknown_input(task: &Task, name: &str) -> Self {
        let inputs: Vec<String> = task.inputs.iter().map(ToString::to_string).collect();
        let (task, nearest) = (task.name.to_string(), nearest(name, &inputs));
        Self::UnknownInput { task, name: name.to_owned(), nearest, inputs }
    }
}
