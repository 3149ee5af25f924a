//! `ce diff`: two versions of a task, side by side.

use std::io::Write;
use std::path::{Component, Path, PathBuf};

use clap::Parser;

use super::Tool;
use super::given::PathArgs;
use super::options::{Dirty, RunArgs, TaskDir, task_dir};
use crate::report;
use crate::report::{DiffReport, say};
use ce_evaluate::Evaluation;
use ce_evaluate::session::{Error, OutputError, Session};
use ce_git::Snapshot;
use ce_model::exit::{Exit, Explain};
use ce_model::task::Task;
use ce_storage::Storage;
use ce_task::load::Uncommitted;

/// An argument after a revision has two meanings.
#[derive(Debug, thiserror::Error)]
#[error("{argument} is both a revision and the name of a file or directory")]
struct RevisionOrPath {
    /// The revision before it.
    one: String,
    /// The argument.
    argument: String,
}

impl Explain for RevisionOrPath {
    fn hint(&self) -> Option<String> {
        let Self { one, argument } = self;
        Some(format!("write {one}..{argument} for the revision, ./{argument} for the path"))
    }
}

/// Compare the outputs of two versions of a task
///
/// Evaluates both, and shows which outputs differ, the calls whose outputs differ although their
/// inputs are the same, where the workflows part, and the lines in which text outputs differ.
#[derive(Debug, Parser)]
#[command(version, override_usage = USAGE, after_help = EXIT_CODES)]
pub struct Diff {
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

const EXIT_CODES: &str = "\
Exit codes: 0 compared, 1 a call failed, 2 the arguments or a task are wrong, 3 something is \
missing, 5 the storage could not be read or written, 130 interrupted (143: by SIGTERM).";

/// The revisions to compare. Without a second one it is the task as it is checked out.
#[derive(Clone, Debug)]
pub(super) struct RevisionRange(pub(super) String, pub(super) Option<String>);

/// Parses `REV1..REV2`, of which each may be left out for HEAD, or `REV1`. A path is neither, even one with `..` in it.
pub(super) fn versions(text: &str) -> Result<RevisionRange, String> {
    if Path::new(text).components().any(|part| !matches!(part, Component::Normal(_))) {
        return Err("it is a path; write a revision or REV1..REV2 here".to_owned());
    }
    if text.contains("...") {
        return Err("three dots mean something else to Git; write REV1..REV2".to_owned());
    }
    let rev = |text: &str| if text.is_empty() { "HEAD".to_owned() } else { text.to_owned() };
    Ok(match text.split_once("..") {
        Some((one, other)) => RevisionRange(rev(one), Some(rev(other))),
        None => RevisionRange(rev(text), None),
    })
}

impl Tool for Diff {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let (RevisionRange(one, other), typed) = &self.arguments()?;
        let titles = [one.as_str(), other.as_deref().unwrap_or("work tree")];
        let tasks = [self.load(Some(one))?, self.load(other.as_ref())?];
        let config = TaskDir { task: self.task.clone(), at: None }.config()?;
        let given = typed.resolve(&tasks[1], &config)?;
        let options = self.how.options(&config)?;
        if !self.dry_run {
            tasks.iter().try_for_each(|task| options.check_access(&self.task, task))?;
        }
        Storage::existing(&given.storage)?;
        let session = match self.dry_run {
            true => Session::inspect(&self.task, &given.storage, &options)?,
            false => Session::open(&self.task, &given.storage, &options)?,
        };
        let session = session.reading(&self.task, &given.repositories);
        let [older, newer] = tasks;
        let newer = session.prepare(newer, &given.inputs)?;
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
    /// Tells the versions from the storage and the inputs.
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
        let is_revision = |text: &&str| Snapshot::open(&self.task, text).is_ok();
        let Some(text) = text.filter(is_revision) else { return Ok(None) };
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
