//! Commands about revisions: `ce diff` compares two versions of a task, `ce bisect` finds the commit that changed an output, `ce commits` lists
//! the commits of a repository.

use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::path::{Component, Path, PathBuf};

use clap::Parser;
use clap::builder::{PathBufValueParser, TypedValueParser};

use super::Tool;
use super::input_args::PathArgs;
use super::options::{Dirty, RunArgs, TaskDir, task_dir};
use ce_evaluate::Evaluation;
use ce_evaluate::session::{BeginError, Error, OutputError, Session, Stop};
use ce_git::{
    Commit, CommitFilter, CommitHistory, CommitHistoryError, Config, LogLine, Range, Snapshot,
};
use ce_model::exit::{Exit, Explain};
use ce_model::humanize::{counted, parse_number};
use ce_model::task::Task;
use ce_queries::bisect::{BisectError, BisectStep, Bisection, Criterion, Judge};
use ce_report::{self as report, DiffReport, harmless, say};
use ce_storage::Storage;
use ce_task::load::Uncommitted;

/// An argument after a revision has two meanings.
#[derive(Debug, thiserror::Error, Explain)]
#[error("{argument} is both a revision and the name of a file or directory")]
#[hint("write {one}..{argument} for the revision, ./{argument} for the path")]
struct RevisionOrPath {
    /// The revision before it.
    one: String,
    /// The argument.
    argument: String,
}

/// Compare the outputs of two versions of a task
///
/// Evaluates both, and shows which outputs differ, the calls whose outputs differ although their inputs are the same, where
/// the workflows begin to differ, and the lines in which text outputs differ.
#[derive(Debug, Parser)]
#[command(version, override_usage = USAGE, after_help = DIFF_EXIT_CODES)]
pub(super) struct Diff {
    /// Dry run: compute and write nothing, only compare existing results
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// Print the comparison as JSON, one object a line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    how: RunArgs,

    #[command(flatten)]
    dirty: Dirty,

    /// The directory that holds the task, or one within it
    #[arg(long, value_name = "DIR", default_value = ".", value_parser = task_dir(), value_hint = clap::ValueHint::DirPath)]
    task: PathBuf,

    /// The versions: two commits, as REV1..REV2 or REV1 REV2; or one, and the task as it is
    /// checked out
    #[arg(value_name = "REV1[..REV2]", value_parser = versions)]
    versions: RevisionRange,

    #[command(flatten)]
    typed: PathArgs,
}

const USAGE: &str = "\
ce diff [OPTIONS] <REV1[..REV2]> [STORAGE] [INPUTS]...
       ce diff [OPTIONS] <REV1> <REV2> [STORAGE] [INPUTS]...";

const DIFF_EXIT_CODES: &str = "\
Exit codes: 0 compared, 1 a call failed, 2 the arguments or a task are wrong, 3 something is \
missing, 5 the storage could not be read or written, 130 interrupted (143: by SIGTERM).";

/// The revisions to compare. Without a second one it is the task as it is checked out.
#[derive(Clone, Debug)]
struct RevisionRange(pub(super) String, pub(super) Option<String>);

/// Parses `REV1..REV2`, where each may be left out for HEAD, or `REV1`. A path is neither of these, even with `..` in it.
fn versions(text: &str) -> Result<RevisionRange, String> {
    if Path::new(text).components().any(|part| !matches!(part, Component::Normal(_))) {
        return Err("it is a path; write a revision or REV1..REV2 here".to_owned());
    }
    if text.contains("...") {
        return Err("three dots mean something else to Git; write REV1..REV2".to_owned());
    }
    Ok(match text.split_once("..") {
        Some((one, other)) => RevisionRange(or_head(one), Some(or_head(other))),
        None => RevisionRange(or_head(text), None),
    })
}

fn or_head(revision: &str) -> String {
    if revision.is_empty() { "HEAD".to_owned() } else { revision.to_owned() }
}

impl Tool for Diff {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let (RevisionRange(one, other), typed) = &self.arguments()?;
        let titles = [one.as_str(), other.as_deref().unwrap_or("work tree")];
        let tasks = [self.load(Some(one))?, self.load(other.as_ref())?];
        let config = Config::read(&self.task)?;
        let given = typed.resolve(&self.task, &tasks[1], &config)?;
        let options = self.how.options(&config)?;
        if !self.dry_run {
            tasks.iter().try_for_each(|task| options.check_access(&self.task, task))?;
        }
        let storage = Storage::existing(&given.storage)?;
        let session = if self.dry_run {
            Session::inspect(&self.task, storage, &options)
        } else {
            Session::start(&self.task, storage, &options)?
        };
        let session = session.reading(&self.task, &given.repositories);
        let [older, newer] = tasks;
        let newer = session.prepare(session.bind(newer, &given.inputs)?)?;
        let older = session.prepare_like(older, &newer, titles)?;
        for (title, evaluation) in titles.into_iter().zip([&older, &newer]) {
            report::evaluate_quietly(&session, evaluation)?;
            say("ce", &format_args!("{title}: {}", report::totals(evaluation)));
        }
        if let Some(signal) = session.interrupted_by() {
            return Ok(Exit::Interrupted(signal));
        }
        let sides = [&older, &newer];
        let exits = sides.map(Evaluation::exit);
        let worst = [Exit::Storage, Exit::Failed, Exit::Malformed, Exit::Suspended, Exit::Missing];
        let exit = worst.into_iter().find(|exit| exits.contains(exit)).unwrap_or(Exit::Done);
        let report = DiffReport { sides, titles };
        let printed = if self.json { report.print_json(exit, out) } else { report.print(out) };
        printed.map_err(OutputError)?;
        Ok(exit)
    }
}

impl Diff {
    /// Separates the versions from the storage and the inputs.
    fn arguments(&self) -> Result<(RevisionRange, PathArgs), Error> {
        if let RevisionRange(one, None) = &self.versions
            && let Some((other, rest)) = self.typed.split_first()
            && let Some(other) = self.revision(one, other)?
        {
            return Ok((RevisionRange(one.clone(), Some(other)), rest));
        }
        Ok((self.versions.clone(), self.typed.clone()))
    }

    /// The revision that the argument after `one` is, unless it is a path. As in Git, it may not
    /// be both.
    fn revision(&self, one: &str, argument: &Path) -> Result<Option<String>, Error> {
        let text = argument.to_str().filter(|text| !text.starts_with(['.', '/']));
        let Some(text) = text.filter(|text| Snapshot::open(&self.task, text).is_ok()) else {
            return Ok(None);
        };
        if argument.symlink_metadata().is_ok() {
            let (one, argument) = (one.to_owned(), text.to_owned());
            return Err(RevisionOrPath { one, argument }.into());
        }
        Ok(Some(text.to_owned()))
    }

    fn load(&self, rev: Option<&String>) -> Result<Task, Error> {
        let uncommitted =
            if rev.is_some() { Uncommitted::Ignore } else { self.dirty.uncommitted() };
        TaskDir { task: self.task.clone(), at: rev.cloned() }.load("ce", uncommitted)
    }
}

/// Find the first commit after which an output differs, or a test of it fails
///
/// Evaluates the task at commits between a good and a bad one, by bisection, straight from the
/// repository's objects: no checkout is changed. Existing results are used.
#[derive(Debug, Parser)]
#[command(version, after_help = BISECT_EXIT_CODES)]
pub(super) struct Bisect {
    /// A commit at which the outputs are right
    #[arg(long, value_name = "REV")]
    good: String,

    /// A commit at which the outputs are wrong
    #[arg(long, value_name = "REV")]
    bad: String,

    /// Only this output of the task counts: its name, or its number from 0 [default: all]
    #[arg(long, value_name = "NAME|NN", value_hint = clap::ValueHint::Other)]
    output: Option<String>,

    /// Search the history of the submodule that holds this path, such as computations/NAME; the task is as at HEAD
    #[arg(long = "in", value_name = "PATH")]
    within: Option<PathBuf>,

    /// Print a JSON object for each commit that may be the first bad one
    #[arg(long)]
    json: bool,

    /// Do not print the steps
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    how: RunArgs,

    /// The directory that holds the task, or one within it
    #[arg(long, value_name = "DIR", default_value = ".", value_parser = task_dir(), value_hint = clap::ValueHint::DirPath)]
    task: PathBuf,

    #[command(flatten)]
    typed: PathArgs,

    /// A command that gets the files of the outputs as further arguments, and ends with 0 if they
    /// are good, 125 if it cannot judge them, another status up to 127 if they are bad, or a higher
    /// one to give up
    #[arg(last = true)]
    test: Vec<OsString>,
}

const BISECT_EXIT_CODES: &str = "\
Exit codes: 0 found, 1 not found, 2 the arguments or the task are wrong, 5 the storage \
could not be read or written, 130 interrupted (143: by SIGTERM).";

impl Tool for Bisect {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let range = Range::find(&self.task, self.within.as_deref(), [&self.good, &self.bad])?;
        let Some(mut bisection) = Bisection::new(range.commits.clone(), &range.bad) else {
            let (good, bad) = (self.good.clone(), self.bad.clone());
            return Err(BisectError::Nothing { good, bad }.into());
        };
        let config = Config::read(&self.task)?;
        let options = self.how.options(&config)?;
        let criterion = Criterion {
            dir: &self.task,
            submodule: range.submodule.as_deref(),
            ends: [&self.good, &self.bad],
            output: self.output.as_deref(),
            test: &self.test,
            options: &options,
            evaluate: report::evaluate_quietly,
        };
        let task = criterion.load_bad(&range.bad)?;
        let given = self.typed.resolve(&self.task, &task, &config)?;
        let storage = Storage::existing(&given.storage)?;
        let session = Session::start(&self.task, storage, &options)?;
        let session = session.reading(&self.task, &given.repositories);
        let bad = session.prepare(session.bind(task, &given.inputs)?)?;
        let mut judge = Judge::new(&session, criterion, bad);
        let searched = judge.search(&range, &mut bisection, &mut |step| {
            if !self.quiet {
                print_step(step);
            }
        });
        match searched {
            _ if let Some(signal) = session.interrupted_by() => Ok(Exit::Interrupted(signal)),
            result => {
                result?;
                self.print_suspects(&bisection.suspects(), out)
            }
        }
    }
}

fn print_step(step: BisectStep<'_>) {
    match step {
        BisectStep::Confirmed(commit, rev, judgement) => {
            say("ce", &format_args!("{} {judgement}: {rev}", commit.short()));
        }
        BisectStep::Judged(Commit { id, subject, .. }, judgement, reason, left) => {
            let (id, subject, left) = (id.short(), harmless(subject), counted(left, "commit"));
            let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            say("ce", &format_args!("{id} {judgement}{reason}: {subject}; {left} left"));
        }
    }
}

impl Bisect {
    /// Prints the candidates for the first bad commit.
    fn print_suspects(&self, suspects: &[&Commit], out: &mut dyn Write) -> Result<Exit, Error> {
        let certain = suspects.len() == 1;
        for commit in suspects {
            let printed = if self.json {
                report::suspect_json(commit, certain, out)
            } else {
                writeln!(out, "{} {}", commit.id.full(), harmless(&commit.subject))
            };
            printed.map_err(OutputError)?;
        }
        if certain {
            return Ok(Exit::Done);
        }
        say("ce", &"the first bad commit is one of these: all but the last were skipped");
        Ok(Exit::Failed)
    }
}

/// List the commits of a repository, the newest first, as values of an input
///
/// Prints a JSON object a line: the full id of a commit, its committer's date in UTC, and the first line of
/// its message. A task reads each commit by a node of kind tree, without a checkout. The order
/// is that of git log. No storage is needed.
#[derive(Debug, Parser)]
#[command(version, after_help = COMMITS_EXIT_CODES)]
pub(super) struct ListCommits {
    /// Only the first N
    #[arg(short = 'n', value_name = "N", value_parser = |text: &str| parse_number::<usize>(text, 0))]
    most: Option<usize>,

    /// List the same commits with the oldest first
    #[arg(long)]
    reverse: bool,

    /// Follow only the first parent of merges
    #[arg(long)]
    first_parent: bool,

    /// List the commits that standard input names, a revision a line, in that order; git rev-list prints such lines
    #[arg(long, conflicts_with_all = ["first_parent", "range", "path"])]
    stdin: bool,

    /// The repository: a work tree, a directory in one, or a bare repository
    #[arg(value_name = "REPO", value_hint = clap::ValueHint::DirPath)]
    repository: PathBuf,

    /// A revision, to list it and its ancestors; or REV1..REV2, to leave out REV1 and its ancestors. In a
    /// range, HEAD may be left out
    #[arg(value_parser = versions, default_value = "HEAD")]
    range: RevisionRange,

    /// Only commits that changed this file or directory, relative to the top of the repository
    #[arg(last = true, value_parser = path_within())]
    path: Option<PathBuf>,
}

const COMMITS_EXIT_CODES: &str = "\
Exit codes: 0 listed, even if there are none, 2 the arguments are wrong, or the repository cannot be read, \
5 the standard output could not be written, 130 interrupted (143: by SIGTERM).";

/// The path of an entry of commits.
fn path_within() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        if !path.components().all(|it| matches!(it, Component::CurDir | Component::Normal(_))) {
            return Err("write a path relative to the top of the repository, without ..");
        }
        Ok(path.components().filter(|it| *it != Component::CurDir).collect::<PathBuf>())
    })
}

impl Tool for ListCommits {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let named = if self.stdin { Some(named_commits(io::stdin().lock())?) } else { None };
        let stop = Stop::watch().map_err(BeginError::new)?;
        let history = CommitHistory::open(&self.repository)?;
        if let Some(named) = named {
            let named = named.iter().take_while(|_| stop.caught().is_none());
            let commits = named.map(|(number, rev)| {
                let unknown = |source| NamedCommitsError::Unknown { number: *number, source };
                history.named(rev).map_err(unknown)
            });
            self.list(commits, &stop, out)?;
        } else {
            let (after, until) = match self.range.clone() {
                RevisionRange(after, Some(until)) => (Some(after), until),
                RevisionRange(until, None) => (None, until),
            };
            let (first_parent, path) = (self.first_parent, self.path.clone());
            let filter = CommitFilter { after, until, first_parent, path };
            let mut commits = history.commits(&filter, &stop.asked)?.peekable();
            let is_empty = commits.peek().is_none() && stop.caught().is_none();
            self.list(commits, &stop, out)?;
            if let Some(path) = self.path.as_deref().filter(|_| is_empty) {
                let path = Some(path).filter(|it| !it.as_os_str().is_empty());
                let path = path.unwrap_or(Path::new(".")).display();
                say("ce", &format_args!("no commit of the range changed {path}"));
            }
        }
        if let Some(signal) = stop.caught() {
            say("ce", &"interrupted: commits are left out");
            return Ok(Exit::Interrupted(signal));
        }
        Ok(Exit::Done)
    }
}

impl ListCommits {
    /// Prints the first ones of these commits.
    fn list<E>(
        &self,
        commits: impl Iterator<Item = Result<LogLine, E>>,
        stop: &Stop,
        out: &mut dyn Write,
    ) -> Result<(), Error>
    where
        Error: From<E>,
    {
        let commits = commits.take(self.most.unwrap_or(usize::MAX));
        if !self.reverse {
            for commit in commits {
                report::commit(&commit?, out).map_err(OutputError)?;
            }
            return Ok(());
        }
        let listed = commits.collect::<Result<Vec<_>, _>>()?;
        // The oldest ones may be missing: then nothing is listed.
        if stop.caught().is_none() {
            for commit in listed.iter().rev() {
                report::commit(commit, out).map_err(OutputError)?;
            }
        }
        Ok(())
    }
}

/// Reads revisions, one a line, with the numbers of these.
fn named_commits(input: impl BufRead) -> Result<Vec<(usize, String)>, NamedCommitsError> {
    let mut named = Vec::new();
    for (line, number) in input.lines().zip(1..) {
        let line = line.map_err(NamedCommitsError::Read)?;
        let mut words = line.split_whitespace();
        let Some(rev) = words.next() else { continue };
        if words.next().is_some() || rev.contains("..") {
            return Err(NamedCommitsError::Line { number, line });
        }
        named.push((number, rev.to_owned()));
    }
    Ok(named)
}

/// The reason why the commits that standard input names are not known.
#[derive(Debug, thiserror::Error, Explain)]
enum NamedCommitsError {
    /// It cannot be read.
    #[error("the standard input cannot be read: {0}")]
    #[hint("pipe the commits in: git rev-list HEAD | ce commits REPO --stdin")]
    Read(io::Error),
    /// A line has more than a revision.
    #[error("line {number} of the standard input is not a revision: {line:?}")]
    #[hint("write one commit a line, as git rev-list A..B and git log --format=%H do")]
    Line {
        /// Its number, from 1.
        number: usize,
        /// The line.
        line: String,
    },
    /// A revision leads to no commit that can be listed.
    #[error("line {number} of the standard input names no commit")]
    #[exit(source.exit())]
    #[hint(source.hint())]
    Unknown {
        /// The number of its line, from 1.
        number: usize,
        /// The cause.
        source: CommitHistoryError,
    },
}
