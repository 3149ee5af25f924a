//! `ce-run`: evaluates a task.

use std::error::Error as _;
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::Parser;

use super::interrupt::Interrupts;
use super::options::{Dirty, Strict, TaskDir, Typed};
use super::screen::Screen;
use super::{Tool, say};
use crate::count::counted;
use crate::digest::Digest;
use crate::error::Error;
use crate::evaluate::{EvaluateError, Evaluation, Evaluator, Event, Exports, Files};
use crate::executor::{Executor, Local, Sandbox, SandboxError};
use crate::exit::Exit;
use crate::explain::{Explanation, Question};
use crate::git::{Config, Trees};
use crate::load::{self, listed};
use crate::plan::Plan;
use crate::report::{
    Json, Progress, Quiet, Reporter, Tally, Tree, Troubles, View, labels, reasons,
};
use crate::storage::{Durability, ResultName, Storage};

const PROGRAM: &str = "ce-run";

/// Evaluate a task: compute what is missing, and print the tree with the names of all files
///
/// The task's workflow is evaluated leaves first. Every call whose outputs are in the storage is
/// reused; every other one is executed, once, however often it occurs.
#[derive(Debug, Parser)]
#[command(name = "ce-run", version, after_help = EXIT_CODES)]
pub struct Run {
    /// Compute nothing and write nothing, only show what is there and what is missing
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// How many computations run at the same time [default: what Git's configuration has for
    /// compeval.jobs, else the number of cores]
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Print events as JSON, one a line, in place of the tree
    #[arg(long, conflicts_with = "quiet")]
    json: bool,

    /// Print only the paths of the task's outputs
    #[arg(short, long)]
    quiet: bool,

    /// Try a call that fails N times more
    #[arg(long, value_name = "N", default_value_t = 0)]
    retry: u32,

    /// End a computation that takes longer, such as 90s, 10min or 1h30min
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,

    /// Do not wait until results are on the disk: faster, and safe as long as the power stays on
    #[arg(long)]
    no_sync: bool,

    /// Do not keep computations apart from the rest of the system
    #[arg(long)]
    no_isolate: bool,

    #[command(flatten)]
    strict: Strict,

    #[command(flatten)]
    dirty: Dirty,

    #[command(flatten)]
    task: TaskDir,

    #[command(flatten)]
    typed: Typed,
}

const EXIT_CODES: &str = "\
Exit codes: 0 all outputs are there, 1 a call failed, 2 the arguments or the task are wrong, \
3 something is missing, 5 the storage could not be read or written, 130 interrupted (143: by \
SIGTERM).";

impl Tool for Run {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        if let Some(outputs) = self.done()? {
            for name in outputs {
                writeln!(out, "{}", self.storage.join(name).display()).map_err(Error::Output)?;
            }
            return Ok(Exit::Done);
        }
        let task = self.task.load(PROGRAM, self.dirty.uncommitted())?;
        let config = self.task.config()?;
        let given = self.typed.resolve(&task, &config)?;
        let jobs = self.jobs(&config)?;
        if self.isolates() {
            load::check_access(&self.task.task, &task)?;
        }
        let plan = Plan::new(&task.workflow);
        let storage = self.open(&given.storage)?;
        let files = Files::new(&task, &plan, &given.inputs, &storage, !self.dry_run)?;
        let evaluation = Evaluation::new(&plan);
        let (task, plan, files) = (&task, &plan, &files);
        let labels = labels(task, plan);
        let (evaluation, storage, labels) = (&evaluation, &storage, &labels[..]);
        let view = View { task, plan, files, evaluation, storage, labels };
        let mut screen = self.screen(view, out)?;
        let caught = self.evaluate(view, jobs, &mut screen)?;
        let job = if self.dry_run { None } else { publish_job(view)? };
        let exit = caught.map_or_else(|| view.exit(), Exit::Interrupted);
        screen.end(job.as_ref(), exit);
        let broken = screen.broken.take();
        drop(screen);
        if self.dry_run && !self.quiet && !self.json {
            explain(view);
        }
        if !self.quiet && !self.json {
            summarise(view, job.as_ref());
        }
        match broken {
            // Whoever reads has enough; the evaluation went on all the same.
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output(error)),
            _ => Ok(exit),
        }
    }
}

impl Run {
    /// The outputs of a job that is done, if they are all that is asked for: that needs no look at
    /// the workflow, however large it is.
    fn done(&self) -> Result<Option<Vec<String>>, Error> {
        let Some(rev) = self.task.at.as_deref().filter(|_| self.quiet) else {
            return Ok(None);
        };
        let Some((task, commit)) = load::job_at(&self.task.task, rev) else { return Ok(None) };
        let storage = Storage::inspect(&self.storage, self.strict.unrecorded())?;
        Ok(storage.find_job(&task, &commit, &self.inputs)?)
    }

    /// Whether what is executed is to be isolated.
    const fn isolates(&self) -> bool {
        !self.dry_run && !self.no_isolate
    }

    fn open(&self, storage: &Path) -> Result<Storage, Error> {
        let unrecorded = self.strict.unrecorded();
        if self.dry_run {
            return Ok(Storage::inspect(storage, unrecorded)?);
        }
        let sync = if self.no_sync { Durability::Unsynced } else { Durability::Synced };
        Ok(Storage::open(storage, unrecorded, sync)?)
    }

    fn jobs(&self, config: &Config) -> Result<NonZeroUsize, Error> {
        let jobs = match self.jobs {
            Some(jobs) => Some(jobs),
            None => config.jobs()?,
        };
        let cores = || thread::available_parallelism().ok();
        Ok(jobs.or_else(cores).unwrap_or(NonZeroUsize::MIN))
    }

    fn screen<'a>(&self, view: View<'a>, out: &'a mut dyn Write) -> Result<Screen<'a>, Error> {
        let mut text = Vec::new();
        let reporter: Box<dyn Reporter> = if self.json {
            Box::new(Json::begin(view, &mut text).map_err(Error::Output)?)
        } else if self.quiet {
            Box::new(Quiet(view))
        } else {
            let mut tree = Tree::new(view);
            tree.begin(&mut text).map_err(Error::Output)?;
            Box::new(tree)
        };
        let visible = !self.quiet && !self.dry_run && io::stderr().is_terminal();
        let progress = Progress::new(view, visible);
        let troubles = Troubles::default();
        Ok(Screen { program: PROGRAM, view, reporter, progress, troubles, text, out, broken: None })
    }

    /// Evaluates in other threads what this one tells of; returns the signal that ended it early.
    fn evaluate(
        &self,
        view: View<'_>,
        jobs: NonZeroUsize,
        screen: &mut Screen<'_>,
    ) -> Result<Option<u8>, Error> {
        let View { task, plan, files, evaluation, storage, .. } = view;
        let begin = |error: Box<dyn std::error::Error + Send + Sync>| Error::Begin(error);
        let executor = Local::with_limit(self.timeout);
        let isolated = |executor: Local| executor.isolated(Sandbox::default());
        let executor = if self.isolates() { isolated(executor) } else { executor };
        let executor = Arc::new(executor);
        let local = Arc::clone(&executor);
        let (retries, trees) = (self.retry, &Trees::new(&self.task.task));
        let interrupts = match self.dry_run {
            true => None,
            false => Some(Interrupts::watch(&executor).map_err(|e| begin(e.into()))?),
        };
        let (sender, events) = mpsc::channel::<Event>();
        let evaluated = thread::scope(|scope| {
            let executor = (!self.dry_run).then_some(&*executor as &dyn Executor);
            let evaluating = scope.spawn(move || {
                // The events end when nobody is left to send one.
                let observe = move |event| drop(sender.send(event));
                let exports = &Exports::new(storage, trees);
                let observe = &observe;
                Evaluator { task, plan, files, storage, exports, executor, retries, observe }
                    .evaluate(evaluation, jobs)
            });
            let caught = || interrupts.as_ref().and_then(Interrupts::caught);
            screen.follow(&events, &caught, &|| local.exposed().map(warning));
            evaluating.join()
        });
        match evaluated {
            // Calls have failed of it, which says enough.
            Ok(Err(EvaluateError::Storage(error))) if screen.troubles.have_told(&error) => {}
            Ok(evaluated) => evaluated?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(interrupts.and_then(|interrupts| interrupts.caught()))
    }
}

/// Says why nothing is isolated, and what to try.
fn warning(error: &SandboxError) -> String {
    let because = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let hint = error.hint().map(|hint| format!("\n  try: {hint}")).unwrap_or_default();
    format!("warning: computations are not isolated here: {error}{because}{hint}")
}

/// Reads a duration with its unit.
fn duration(text: &str) -> Result<Duration, String> {
    let duration: jiff::SignedDuration = text.parse().map_err(|error| format!("{error}"))?;
    Duration::try_from(duration).map_err(|_| "it is negative".to_owned())
}

/// Keeps the outputs of the job under its own name, if all of them are there.
fn publish_job(view: View<'_>) -> Result<Option<ResultName>, Error> {
    let View { task, plan, files, evaluation, storage, .. } = view;
    let Some(outputs) = evaluation.outputs(files, plan) else {
        return Ok(None);
    };
    if !task.changed.is_empty() {
        let changed = listed(&task.changed);
        say(PROGRAM, &format_args!("the job is not kept: no commit records {changed}"));
        return Ok(None);
    }
    let inputs: Vec<Digest> = files.inputs.iter().map(|input| input.file.digest).collect();
    match storage.publish_job(evaluation.job(task, &inputs, &outputs)) {
        Err(error) if error.is_read_only() => {
            say(PROGRAM, &"warning: the job is not kept: the storage is read-only");
            Ok(None)
        }
        job => {
            let job = job?;
            storage.flush()?;
            Ok(Some(job))
        }
    }
}

/// Says why what is missing would be computed.
fn explain(view: View<'_>) {
    let View { task, plan, files, evaluation, storage, .. } = view;
    let explanation = Explanation::new(Question { task, plan, files, evaluation, storage });
    reasons(view, &explanation).for_each(|reason| say(PROGRAM, &reason));
}

/// Says how many calls ended in which way, and where the job's outputs are.
fn summarise(view: View<'_>, job: Option<&ResultName>) {
    if let Some(job) = job {
        for number in 0..view.plan.outputs().len() {
            let path = view.shown(&job.output(number));
            say(PROGRAM, &format_args!("job output {number:02}: {path}"));
        }
    }
    let Tally {
        calls, reused, taken_over, executed, missing, blocked, failed, interrupted, ..
    } = view.tally();
    let parts = [
        (reused, "found"),
        (taken_over, "taken over"),
        (executed, "executed"),
        (missing, "missing"),
        (failed, "failed"),
        (blocked, "blocked"),
        (interrupted, "interrupted"),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, word)| format!("{count} {word}")).collect();
    let calls = counted(calls, "call");
    let colon = if parts.is_empty() { "" } else { ": " };
    say(PROGRAM, &format_args!("{calls}{colon}{}", parts.join(", ")));
}
