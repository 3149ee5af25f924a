//! `ce bisect`: the commit that changed an output.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use clap::Parser;

use super::Tool;
use super::given::PathArgs;
use super::options::{RunArgs, TaskDir, task_dir};
use crate::report::{self, harmless, say};
use ce_evaluate::session::{Error, OutputError, Session};
use ce_git::{Commit, Range};
use ce_model::exit::Exit;
use ce_model::humanize::counted;
use ce_queries::bisect::{BisectError, Bisection};
use ce_queries::judge::{BisectStep, Criterion, Judge};
use ce_storage::Storage;

/// Find the first commit after which an output differs, or a test of it fails
///
/// Evaluates the task at commits between a good and a bad one, by bisection, straight from the
/// repository's objects: no checkout is changed. Existing results are used.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
pub struct Bisect {
    /// A commit at which the outputs are right
    #[arg(long, value_name = "REV")]
    good: String,

    /// A commit at which they are not
    #[arg(long, value_name = "REV")]
    bad: String,

    /// Only this output of the task counts: its name, or its number from 0 [default: all]
    #[arg(long, value_name = "NAME|NN", value_hint = clap::ValueHint::Other)]
    output: Option<String>,

    /// Search the submodule that holds this, such as computations/NAME; else the task is as at HEAD
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

const EXIT_CODES: &str = "\
Exit codes: 0 found, 1 not found, 2 the arguments or the task are wrong, 5 the storage \
could not be read or written, 130 interrupted (143: by SIGTERM).";

impl Tool for Bisect {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let range = Range::find(&self.task, self.within.as_deref(), [&self.good, &self.bad])?;
        let (good, bad) = (self.good.clone(), self.bad.clone());
        let nothing = || BisectError::Nothing { good, bad };
        let mut bisection =
            Bisection::new(range.commits.clone(), &range.bad).ok_or_else(nothing)?;
        let config = TaskDir { task: self.task.clone(), at: None }.config()?;
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
        let given = self.typed.resolve(&task, &config)?;
        Storage::existing(&given.storage)?;
        let session = Session::open(&self.task, &given.storage, &options)?;
        let session = session.reading(&self.task, &given.repositories);
        let bad = session.prepare(task, &given.inputs)?;
        let mut judge = Judge::new(&session, criterion, bad);
        let mut tell = |step: BisectStep<'_>| {
            if !self.quiet {
                print_step(step);
            }
        };
        match judge.search(&range, &mut bisection, &mut tell) {
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
    /// Prints the commits of which one is the first bad one.
    fn print_suspects(&self, suspects: &[&Commit], out: &mut dyn Write) -> Result<Exit, Error> {
        let certain = suspects.len() == 1;
        for commit in suspects {
            let printed = match self.json {
                true => report::suspect_json(commit, certain, out),
                false => writeln!(out, "{} {}", commit.id.full(), harmless(&commit.subject)),
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
