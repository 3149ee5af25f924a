//! Outcomes of calls, and the events of an evaluation.

use std::sync::Arc;
use std::{error, fmt};

use serde::Serialize;

use super::{Unsatisfiable, ValueError};
use ce_exchange::ResultsError;
use ce_executor::{ExecuteError, Failed, Status};
use ce_git::{AbsentObject, Changed, NotCloned, SourceError};
use ce_model::exit::{Exit, Explain};
use ce_model::humanize::duration;
use ce_model::plan::{CallId, PointsFault};
use ce_model::resources::{AttemptLimit, LimitedAttempt, WrongAmount};
use ce_model::sweep::{ExclusionFault, SheetProblem, TableFault};
use ce_model::system_hints;
use ce_storage::records::{FailureFacts, FailureRecord, OutputSource};
use ce_storage::{
    Equivalent, Holder, LogTail, OutputLocation, Outputs, PriorAttempt, PublishError, ResultName,
    StorageError,
};

/// The outcome of a call.
#[derive(Debug)]
pub enum Outcome {
    /// Its outputs are here.
    Present(Outputs, OutputSource),
    /// Its outputs are known, and not usable here.
    Known(Outputs, Unavailable),
    /// It has no outputs. The name is the one that they would get; it is a guess if an input is unknown.
    Absent(ResultName, Absence),
}

/// The reason why known outputs cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// They are deliberately not here, and nothing has needed them.
    Away,
    /// Some outputs are archives, and nothing was to be unpacked: a run that needs them unpacks them.
    Archived,
    /// They belong to a table that is not there, and nothing was to be computed.
    Foreseen,
}

/// The reason why a call has no outputs.
#[derive(Debug)]
pub enum Absence {
    /// They are not there, and nothing was to be computed.
    Missing(Option<Box<PriorAttempt>>),
    /// One of its inputs is missing.
    Blocked,
    /// An input of it is not there yet, since a call is suspended.
    Waiting,
    /// It was not started.
    NotStarted(StopReason),
    /// Its outputs are not wanted: its points are over, and no table is made of them; or it needs such a table.
    LeftOut,
    /// It failed.
    Failed(CallFailure),
    /// It has started a process that runs elsewhere.
    Suspended(SuspendedCall),
    /// It was not executed to its end, for a reason outside of the call: the attempt is not remembered.
    Unfinished(Unfinished),
    /// It had begun, and the user asked to stop before it was over.
    Interrupted,
}

/// The reason to start no more calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// A call has failed.
    Failure,
    /// The user asked to stop.
    Interruption,
    /// The storage was waited for, and does not answer.
    Away,
}

impl StopReason {
    /// The reason in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Failure => "another call had failed",
            Self::Interruption => "the run was interrupted",
            Self::Away => "the storage did not answer",
        }
    }
}

/// The failure of a call.
#[derive(Debug)]
pub struct CallFailure {
    /// The reason of the failure.
    pub error: Box<CallError>,
    /// The end of its log, if it printed anything.
    pub log: Option<LogTail>,
    /// The advice for the user, if there is any.
    pub hint: Option<String>,
}

impl CallFailure {
    /// The facts about the failure.
    pub(super) fn facts(&self) -> FailureFacts {
        let log = self.log.as_ref().map(|log| log.name.clone());
        FailureFacts { hint: self.hint.clone(), log, ..self.error.facts() }
    }
}

/// A call that has started a process elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuspendedCall {
    /// The name under which it was begun, which is another commit's if that commit began it.
    pub name: ResultName,
    /// A description of its state, in words, if there is one.
    pub line: Option<String>,
    /// Whether this run would continue it.
    pub continues: bool,
}

impl fmt::Display for SuspendedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.line.as_deref().unwrap_or("what it has started goes on elsewhere"))
    }
}

/// The reason why a call was not executed to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum Unfinished {
    /// The worker that executed it ended in each attempt; in words, how the last one ended.
    #[error("it was lost: {0}")]
    #[hint("run the same command again: nothing is remembered of it")]
    Lost(String),
    /// Git no longer has the code or an input of the call: a commit was pruned, or a repository moved.
    #[error("it was lost: {why}")]
    #[hint(hint.clone())]
    Unreadable {
        /// The cause, in words.
        why: String,
        /// Advice for the user.
        hint: Option<String>,
    },
    /// The executor lacks something that it needs, described in words.
    #[error("it was refused: {0}")]
    #[hint("run it on a host that has it; ce doctor says what this host lacks")]
    Refused(String),
}

/// The kind of a call's outcome, which is counted, coloured and named in events.
///
/// Events use the names of the variants, in `snake_case`. Events count in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Its outputs were there.
    Reused,
    /// Its outputs existed for another commit of the same computation.
    TakenOver,
    /// Its outputs are known, and deliberately not here.
    Away,
    /// Its outputs are archives.
    Archived,
    /// It was executed, or the table was made, and published.
    Executed,
    /// Its outputs are not there, and nothing was to be computed.
    Missing,
    /// One of its inputs is missing.
    Blocked,
    /// It failed.
    Failed,
    /// It has started a process that runs elsewhere.
    Suspended,
    /// It waits for a suspended call.
    Waiting,
    /// It was lost or refused.
    Unfinished,
    /// It was not started, since another one had failed or the user asked to stop.
    NotStarted,
    /// It had begun, and was not over when the user asked to stop.
    Interrupted,
    /// Its outputs are not wanted.
    LeftOut,
}

impl How {
    /// All of them, in the order of their declaration.
    pub const ALL: [Self; 14] = [
        Self::Reused,
        Self::TakenOver,
        Self::Away,
        Self::Archived,
        Self::Executed,
        Self::Missing,
        Self::Blocked,
        Self::Failed,
        Self::Suspended,
        Self::Waiting,
        Self::Unfinished,
        Self::NotStarted,
        Self::Interrupted,
        Self::LeftOut,
    ];

    /// Returns the word for calls with this kind of outcome.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Reused => "reused",
            Self::TakenOver => "taken over",
            Self::Away => "away",
            Self::Archived => "archived",
            Self::Executed => "computed",
            Self::Missing => "missing",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::Suspended => "suspended",
            Self::Waiting => "waiting",
            Self::Unfinished => "not finished",
            Self::NotStarted => "not started",
            Self::Interrupted => "interrupted",
            Self::LeftOut => "not asked for",
        }
    }
}

/// The reason why a call failed.
#[derive(Debug, thiserror::Error, Explain)]
#[exit(self.exit_of_run())]
pub enum CallError {
    /// `exec` ended without success.
    #[error("{}", .0)]
    #[hint(None)]
    Ended(Box<Failed>),
    /// One of its limits has ended `exec`.
    #[error(transparent)]
    #[hint(_0.hint())]
    Limited(Box<LimitedExecution>),
    /// It failed before, and is not executed again: its failure makes a row of a table.
    #[error("{} at {:.0}, and is not tried again", .0.failure.reason, .0.recorded.at)]
    #[hint("--retry-failed executes it again")]
    Remembered(Box<FailureRecord>),
    /// It failed at a worker.
    #[error("{}", .0.reason)]
    #[hint(_0.hint.clone())]
    AtWorker(FailureFacts),
    /// The time of its worker was over first; how long it had, in seconds.
    #[error("it did not end within {}, the time of its worker", duration(*.0))]
    #[hint("a time limit in a file resources, such as: time 12h")]
    OutOfTime(f64),
    /// It is suspended, and its `status` does not say whether it is to be continued.
    #[error("it is suspended, and its program status failed: {}{}", .0.status, said(.1.as_deref()))]
    #[hint(
        "ce cancel --forget lets the next run start it from the beginning; without --forget it is ended before"
    )]
    Asked(Box<Failed>, Option<String>),
    /// Other users may have written its record, which determines what is executed when it is asked or cancelled.
    #[error("this user has not begun it, or its record was changed")]
    #[hint("let the user who has begun it ask or cancel it")]
    NotOwn,
    /// `exec` could not be executed.
    #[error(transparent)]
    #[hint(_0.hint())]
    Execute(#[from] ExecuteError),
    /// An input is a file, and `access` takes it as a directory.
    #[error("its input {input} is a file, and the line {line:?} of its access takes a directory")]
    #[hint("give it a directory; an output is one if its name in outputs ends in a slash")]
    NotADirectory {
        /// The name of the input.
        input: String,
        line: String,
    },
    /// The computation is not available from the repository.
    #[error("the computation cannot be taken from the repository")]
    #[hint(Some(hint_for_computation(&**_0)))]
    Tree(#[source] Box<dyn error::Error + Send + Sync>),
    /// An input of it, a Git tree, is not available.
    #[error(transparent)]
    #[hint(_0.hint())]
    Input(#[from] Arc<ValueError>),
    /// Outputs of several points of a sweep, which no call makes, are not available.
    #[error("{first}; {} an output, too", if *.more == 1 { "1 more point lacks".to_owned() } else { format!("{more} more points lack") })]
    #[hint(first.hint())]
    Outputs {
        /// The cause at the first point.
        first: Arc<ValueError>,
        /// The number of the other points.
        more: usize,
    },
    /// The points of a sweep cannot be used.
    #[error(transparent)]
    #[hint(_0.hint())]
    Points(#[from] PointsError),
    /// The columns of a table cannot be made of the outputs.
    #[error(transparent)]
    #[hint(_0.hint())]
    Table(#[from] TableFault),
    /// With the texts of its names, it asks for a wrong amount of something.
    #[error(transparent)]
    #[hint(_0.error.hint())]
    Resources(#[from] WrongAmount),
    /// This run is part of its execution.
    #[error("it is being executed, and has started this run, which would wait for it forever")]
    #[hint("evaluate another task in the computation, or give it other inputs")]
    Within,
    /// It asks for more than the executor has.
    #[error(transparent)]
    #[hint(_0.hint())]
    Unsatisfiable(#[from] Unsatisfiable),
    /// Its outputs could not be published.
    #[error(transparent)]
    #[hint(_0.hint())]
    Publish(#[from] PublishError),
    /// Its outputs are away, and not available.
    #[error(transparent)]
    #[hint(_0.hint())]
    Fetch(Arc<ResultsError>),
    /// The storage could not be read or written.
    #[error(transparent)]
    #[hint(_0.hint())]
    Storage(#[from] StorageError),
    /// Its outputs could not be flushed, nor the outputs of others that shared the flush.
    #[error(transparent)]
    #[hint(_0.hint())]
    Flush(#[from] Arc<StorageError>),
}

/// An execution that one of the call's limits has ended.
#[derive(Debug, thiserror::Error, Explain)]
#[error("{failed}{}", self.then())]
#[hint(self.advice())]
pub struct LimitedExecution {
    pub failed: Failed,
    pub attempt: LimitedAttempt,
    /// The limit of the next attempt; after the last attempt, its own limit.
    pub next: AttemptLimit,
}

impl LimitedExecution {
    /// Returns the text about the next attempt.
    fn then(&self) -> String {
        let LimitedAttempt { limit, up_to, last, .. } = self.attempt;
        match last {
            false => format!("; the next attempt has {}", self.next),
            true if limit < up_to => ", and this host has no more".to_owned(),
            true => String::new(),
        }
    }

    /// Returns advice after the last attempt.
    fn advice(&self) -> Option<String> {
        let LimitedAttempt { limit, up_to, last, .. } = self.attempt;
        let advice = match limit {
            _ if limit < up_to => "execute it on a host with more memory".to_owned(),
            _ => format!("let it ask for more, such as {}", limit.range()),
        };
        last.then_some(advice)
    }
}

/// The reason why the computed points of a sweep cannot be used.
#[derive(Debug, thiserror::Error, Explain)]
pub enum PointsError {
    /// The sheet is wrong.
    #[error("{sheet}: the points cannot be used: {}", in_words(problems))]
    #[hint(problems.first().and_then(|problem| problem.fault.hint()))]
    Sheet {
        /// The origin of the sheet, in words: a path in the task, an input of it, or a call.
        sheet: String,
        problems: Vec<SheetProblem>,
    },
    /// The points do not fit the sweep.
    #[error(transparent)]
    #[hint(_0.hint())]
    Fault(#[from] PointsFault),
    /// They are a directory.
    #[error("the points cannot be used: they are a directory")]
    #[hint("give it one file of it, with a node of kind member")]
    Directory,
}

fn in_words(problems: &[SheetProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Returns the line that a program has printed, after a colon.
fn said(line: Option<&str>) -> String {
    line.map(|line| format!(": {line}")).unwrap_or_default()
}

impl CallError {
    /// Outputs at points of a sweep are not available: the first one, and `more` others.
    pub(super) const fn of_points(first: Arc<ValueError>, more: usize) -> Self {
        match more {
            0 => Self::Input(first),
            _ => Self::Outputs { first, more },
        }
    }

    /// Whether the same happens to other calls, regardless of their points: the storage is to blame, or a repository.
    pub fn is_common(&self) -> bool {
        match self {
            Self::Input(error) => error.is_of_repository() || self.is_storage(),
            Self::Fetch(error) => !error.is_of_one_output(),
            _ => self.is_storage(),
        }
    }

    /// Whether the same would happen again: `exec` ended with an exit status, or a value that a call needs does not exist.
    pub fn would_recur(&self) -> bool {
        match self {
            Self::Ended(failed) => matches!(failed.status, Status::Exited(_)),
            Self::Limited(limited) => limited.attempt.last,
            Self::Remembered(_) => true,
            Self::AtWorker(failed) => failed.recurs,
            Self::Input(error) | Self::Outputs { first: error, .. } => matches!(
                **error,
                ValueError::Member(_)
                    | ValueError::Wrong(_)
                    | ValueError::Source(SourceError::Path { .. })
            ),
            _ => false,
        }
    }

    /// Whether another execution may succeed: neither the storage, nor the time of workers, nor a limit is to blame.
    pub(super) fn may_pass(&self) -> bool {
        let has_met_limit = match self {
            Self::OutOfTime(_) | Self::Limited(_) => true,
            Self::AtWorker(failed) => failed.continues,
            _ => false,
        };
        !self.is_storage() && !has_met_limit
    }

    /// Whether a limit has ended it, and the next attempt has more.
    pub(super) fn continues(&self) -> bool {
        match self {
            Self::Limited(limited) => !limited.attempt.last,
            Self::AtWorker(failed) => failed.continues,
            _ => false,
        }
    }

    /// The facts about a failure with this error, without a log.
    pub(super) fn facts(&self) -> FailureFacts {
        let (recurs, continues) = (self.would_recur(), self.continues());
        FailureFacts { recurs, continues, ..FailureFacts::of_error(self) }
    }

    /// The error with all its causes, in words.
    pub fn in_full(&self) -> String {
        self.facts().in_full().reason
    }

    /// Whether the user has asked to stop.
    pub(super) fn is_interrupted(&self) -> bool {
        match self {
            Self::Storage(error) | Self::Publish(PublishError::Storage(error)) => {
                matches!(error, StorageError::Interrupted)
            }
            Self::Flush(error) => matches!(**error, StorageError::Interrupted),
            Self::Fetch(error) => {
                matches!(**error, ResultsError::Storage(StorageError::Interrupted))
            }
            _ => false,
        }
    }

    /// Whether data of Git cannot be read that the call is executed from or reads.
    pub fn is_unreadable(&self) -> bool {
        match self {
            Self::Tree(_) => true,
            Self::Input(error) | Self::Outputs { first: error, .. } => error.is_unreadable(),
            _ => false,
        }
    }

    /// Returns the exit of a run in which a call ended so.
    fn exit_of_run(&self) -> Exit {
        if self.is_storage() {
            Exit::Storage
        } else if self.is_unreadable() {
            Exit::Missing
        } else {
            Exit::Failed
        }
    }

    /// Whether the storage is to blame, rather than the computation.
    pub fn is_storage(&self) -> bool {
        match self {
            Self::Storage(_) | Self::Flush(_) | Self::Publish(PublishError::Storage(_)) => true,
            Self::Execute(error) => {
                matches!(error, ExecuteError::Log { .. } | ExecuteError::Replaced(_))
            }
            Self::AtWorker(failed) => failed.of_storage,
            Self::Input(error) | Self::Outputs { first: error, .. } => error.is_storage(),
            Self::Fetch(error) => matches!(**error, ResultsError::Storage(_)),
            Self::Ended(_)
            | Self::Limited(_)
            | Self::Remembered(_)
            | Self::NotADirectory { .. }
            | Self::Tree(_)
            | Self::Points(_)
            | Self::Table(_)
            | Self::Resources(_)
            | Self::Unsatisfiable(_)
            | Self::OutOfTime(_)
            | Self::Asked(..)
            | Self::NotOwn
            | Self::Within
            | Self::Publish(_) => false,
        }
    }
}

fn hint_for_computation(error: &(dyn error::Error + Send + Sync + 'static)) -> String {
    let hint = if error.is::<Changed>() {
        "run the same command again"
    } else if error.is::<AbsentObject>() {
        "git fetch --refetch --no-filter, or clone it again without --filter"
    } else if error.is::<NotCloned>() {
        "git submodule update --init --recursive"
    } else {
        "git fsck says whether the repository of the task is damaged"
    };
    hint.to_owned()
}

impl Outcome {
    /// A call that failed before it could print anything, was interrupted while a value was read, or is lost since Git's data cannot
    /// be read.
    pub(super) fn failed(name: ResultName, error: impl Into<CallError>) -> Self {
        let error = Box::new(error.into());
        if error.is_interrupted() {
            return Self::Absent(name, Absence::Interrupted);
        }
        let hint = error.hint();
        if error.is_unreadable() {
            let why = error.in_full();
            return Self::Absent(name, Absence::Unfinished(Unfinished::Unreadable { why, hint }));
        }
        Self::Absent(name, Absence::Failed(CallFailure { error, log: None, hint }))
    }

    /// A call whose outputs another commit has, when nothing is to be computed.
    pub(super) fn of_equivalent(Equivalent { outputs, whereabouts, .. }: Equivalent) -> Self {
        match whereabouts {
            OutputLocation::Here => Self::Present(outputs, OutputSource::TakenOver),
            OutputLocation::Archived => Self::Known(outputs, Unavailable::Archived),
            OutputLocation::Away => Self::Known(outputs, Unavailable::Away),
        }
    }

    /// Returns how the call ended.
    pub const fn how(&self) -> How {
        match self {
            Self::Present(_, OutputSource::Reused) => How::Reused,
            Self::Present(_, OutputSource::TakenOver) => How::TakenOver,
            Self::Present(_, OutputSource::Executed) => How::Executed,
            Self::Known(_, Unavailable::Away) => How::Away,
            Self::Known(_, Unavailable::Archived) => How::Archived,
            Self::Known(_, Unavailable::Foreseen) | Self::Absent(_, Absence::Missing(_)) => {
                How::Missing
            }
            Self::Absent(_, Absence::Blocked) => How::Blocked,
            Self::Absent(_, Absence::Failed(_)) => How::Failed,
            Self::Absent(_, Absence::Suspended(_)) => How::Suspended,
            Self::Absent(_, Absence::Waiting) => How::Waiting,
            Self::Absent(_, Absence::Unfinished(_)) => How::Unfinished,
            Self::Absent(_, Absence::NotStarted(_)) => How::NotStarted,
            Self::Absent(_, Absence::Interrupted) => How::Interrupted,
            Self::Absent(_, Absence::LeftOut) => How::LeftOut,
        }
    }

    /// Returns the name that the call's outputs have, or would have.
    pub const fn name(&self) -> &ResultName {
        match self {
            Self::Present(outputs, _) | Self::Known(outputs, _) => &outputs.name,
            Self::Absent(name, _) => name,
        }
    }

    /// Returns the name of the call's result, if there is one or a run would make it: calls with the same one are one call.
    pub fn result(&self) -> Option<&ResultName> {
        match self {
            Self::Present(outputs, _) | Self::Known(outputs, _) => Some(&outputs.name),
            Self::Absent(name, Absence::Missing(_)) => Some(name).filter(|name| !name.is_guess()),
            Self::Absent(..) => None,
        }
    }

    /// Returns the call's outputs, if they are here.
    pub const fn outputs(&self) -> Option<&Outputs> {
        match self {
            Self::Present(outputs, _) => Some(outputs),
            Self::Known(..) | Self::Absent(..) => None,
        }
    }

    /// Returns the call's outputs, if they are known.
    pub const fn known(&self) -> Option<&Outputs> {
        match self {
            Self::Present(outputs, _) | Self::Known(outputs, _) => Some(outputs),
            Self::Absent(..) => None,
        }
    }

    /// Returns the call's failure, if it failed.
    pub const fn failure(&self) -> Option<&CallFailure> {
        match self {
            Self::Absent(_, Absence::Failed(failure)) => Some(failure),
            _ => None,
        }
    }

    /// The record of its last failure, if it failed before and was not executed again.
    pub fn prior_failure(&self) -> Option<&FailureRecord> {
        match self {
            Self::Absent(_, Absence::Failed(failure)) => match &*failure.error {
                CallError::Remembered(record) => Some(record),
                _ => None,
            },
            Self::Absent(_, Absence::Missing(prior)) => prior.as_ref()?.failure.as_ref(),
            _ => None,
        }
    }

    /// Whether a limit has ended it, and the next attempt has more.
    pub fn continues(&self) -> bool {
        self.failure().is_some_and(|failure| failure.error.continues())
    }

    /// Whether it failed before, and was not executed again.
    pub fn is_remembered(&self) -> bool {
        self.failure().is_some_and(|failure| matches!(*failure.error, CallError::Remembered(_)))
    }

    /// Returns the call, if it is suspended.
    pub const fn suspended(&self) -> Option<&SuspendedCall> {
        match self {
            Self::Absent(_, Absence::Suspended(call)) => Some(call),
            _ => None,
        }
    }

    /// Whether Git's data could not be read.
    pub(super) const fn is_unreadable(&self) -> bool {
        matches!(self, Self::Absent(_, Absence::Unfinished(Unfinished::Unreadable { .. })))
    }

    /// Whether an execution of the call was lost.
    pub(super) const fn is_lost(&self) -> bool {
        matches!(self, Self::Absent(_, Absence::Unfinished(Unfinished::Lost(_))))
    }

    /// Returns why the call failed, was not executed to its end, or is suspended, in words.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Absent(_, Absence::Failed(failure)) => Some(failure.error.to_string()),
            Self::Absent(_, Absence::Suspended(call)) => Some(call.to_string()),
            Self::Absent(_, Absence::Unfinished(why)) => Some(why.to_string()),
            _ => None,
        }
    }
}

/// An event of an evaluation.
#[derive(Debug)]
pub enum Event {
    /// A call waits for a worker; its outputs will have this name.
    Queued(CallId, ResultName),
    /// A call is about to be executed; its outputs will have this name. A worker may have begun it some time ago.
    Started(CallId, ResultName, Option<Box<PriorAttempt>>),
    /// This output of a call, in words, takes long to hash.
    Hashing(CallId, String),
    /// The outputs of a call are complete, and are being published: it does not run any more.
    Sealed(CallId),
    /// An execution of a call has failed or was lost; it is tried again.
    Retried(CallId, Box<Outcome>),
    /// Another run computes a call; its outputs will have this name.
    Held(CallId, ResultName, Holder),
    /// A call is suspended, and is looked at again in a while. It would have this name.
    Suspended(CallId, ResultName, SuspendedCall),
    /// There are outputs of a call without a record, which may still be written to. The call waits.
    Unsettled(CallId, ResultName),
    /// More points of the sweep that a call gathers are known, so there are more calls. These rows of its exclusion
    /// match no point.
    Expanded(CallId, Vec<ExclusionFault>),
    /// A call that was over, since its outputs were known, continues, since they are needed.
    Demanded(CallId),
    /// A call is over; how, the evaluation knows.
    Ended(CallId),
}

/// The reason why a plan was not evaluated to its end.
#[derive(Debug, thiserror::Error, Explain)]
pub enum EvaluateError {
    /// The threads cannot be started.
    #[error("cannot start threads")]
    #[exit(Storage)]
    #[hint(Some(system_hints::raising_limits()))]
    Threads(#[source] std::io::Error),
    /// Published results may be lost with the power.
    #[error(transparent)]
    #[exit(_0.exit())]
    #[hint(_0.hint())]
    Storage(#[from] StorageError),
    /// An output of the task, a Git tree, is not available.
    #[error(transparent)]
    #[exit(exit_for_output(_0))]
    #[hint(_0.hint())]
    Output(#[from] Arc<ValueError>),
}

fn exit_for_output(error: &ValueError) -> Exit {
    if error.is_storage() {
        Exit::Storage
    } else if error.is_unreadable() {
        Exit::Missing
    } else {
        Exit::Failed
    }
}
