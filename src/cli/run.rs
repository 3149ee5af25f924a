//! `ce-run`: evaluates a task.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Parser;

use super::options::{Dirty, Given, TaskDir, Typed};
use super::screen::Screen;
use super::workshop::{How, Workshop, record_use_of};
use super::{Tool, say};
use crate::cache::Cache;
use crate::digest::{Digest, ObjectId};
use crate::error::Error;
use crate::evaluate::{Account, Evaluation};
use crate::exit::Exit;
use crate::explain::Explanation;
use crate::git::Config;
use crate::load::{self, listed};
use crate::name::TaskName;
use crate::report::{Json, Progress, Quiet, Reporter, Tree, Troubles, View, labels, reasons};
use crate::storage::{ResultName, Site, Storage, Stored, TaskVersion};

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

    /// Print events as JSON, one a line, in place of the tree
    #[arg(long, conflicts_with = "quiet")]
    json: bool,

    /// Print only the paths of the task's outputs
    #[arg(short, long)]
    quiet: bool,

    /// Compute a call again although its outputs are there: one of its files, or its name
    /// c_NAME/CCID/INPUTS. What was there goes aside
    #[arg(long, value_name = "CALL|FILE", conflicts_with = "dry_run")]
    force: Vec<PathBuf>,

    #[command(flatten)]
    how: How,

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
        if self.quiet
            && self.force.is_empty()
            && let Some(rev) = &self.task.at
            && let Some((name, commit, place)) = load::job_at(&self.task.task, rev)
            && self.tell_done(&self.task.config()?, task_version(&name, &commit, &place), out)?
        {
            return Ok(Exit::Done);
        }
        let task = self.task.load(PROGRAM, self.dirty.uncommitted())?;
        let config = self.task.config()?;
        if self.quiet
            && self.force.is_empty()
            && self.task.at.is_none()
            && task.changed.is_empty()
            && self.tell_done(&config, task_version(&task.name, &task.commit, &task.place), out)?
        {
            return Ok(Exit::Done);
        }
        let given = self.typed.resolve(&task, &config)?;
        let dry_run = self.dry_run;
        if !dry_run {
            self.how.check(&config, &self.task.task, &task)?;
        }
        let workshop = self.workshop(&config, &given.storage)?;
        let forced = self.forced(&workshop.storage)?;
        let workshop = workshop.forcing(forced.clone());
        let plan = workshop.plan(&task);
        let storage = &workshop.storage;
        let files = workshop.files(&task, &plan, &given.inputs, !self.quiet)?;
        let evaluation = Evaluation::new(&plan);
        let (task, plan, files) = (&task, &plan, &files);
        let labels = labels(task, plan);
        let (evaluation, labels) = (&evaluation, &labels[..]);
        let view = View { account: Account { task, plan, files, evaluation, storage }, labels };
        let mut screen = self.screen(view, &workshop, out)?;
        workshop.evaluate(view, &mut screen)?;
        let job = if dry_run { None } else { publish_job(view)? };
        let exit = workshop.caught().map_or_else(|| view.exit(), Exit::Interrupted);
        screen.end(job.as_ref(), exit);
        let broken = screen.broken.take();
        drop(screen);
        if self.dry_run && !self.quiet && !self.json {
            explain(view);
        }
        let executed = view.executed();
        for name in forced.iter().filter(|name| !executed.contains(name)) {
            let name = name.short();
            say(
                PROGRAM,
                &format_args!("warning: no call {name} was executed, as --force asks for"),
            );
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
    /// Opens the storage, and tells if it is not there: then its path may be mistyped.
    fn workshop(&self, config: &Config, path: &Path) -> Result<Workshop, Error> {
        let is_absent = Site::of(path)? == Site::Absent;
        let similar = if is_absent { Storage::similar(path) } else { None };
        let workshop = self.how.workshop(self.dry_run, config, &self.task.task, path)?;
        if is_absent {
            let told =
                if self.dry_run { "there is no storage at" } else { "made a new storage at" };
            let similar = similar.map(|it| format!("; did you mean {}?", it.display()));
            let similar = similar.unwrap_or_default();
            say(PROGRAM, &format_args!("{told} {}{similar}", path.display()));
        }
        Ok(workshop)
    }

    /// The calls that are to be computed again.
    fn forced(&self, storage: &Storage) -> Result<HashSet<ResultName>, Error> {
        let call = |path: &PathBuf| {
            let name = storage.name_of(path).or_else(|| path.to_str().map(str::to_owned));
            let name = name.and_then(|name| ResultName::of_call(&name));
            name.ok_or_else(|| Error::NoCall(path.display().to_string()))
        };
        self.force.iter().map(call).collect()
    }

    /// Tells the outputs of a job, if it is done: that needs no look at its calls, however many they
    /// are.
    fn tell_done(
        &self,
        config: &Config,
        task: TaskVersion<'_>,
        out: &mut dyn Write,
    ) -> Result<bool, Error> {
        // How many inputs the task has may not be known: a job of another number is another one.
        for Given { storage, inputs } in self.typed.candidates(config)? {
            // Whatever is wrong with it is told by whoever goes on.
            let Ok(there) = Storage::inspect(&storage, self.how.unrecorded()) else { continue };
            let there = there.remembering(Cache::of_user());
            if let Some(outputs) = there.find_job(task, &inputs)? {
                if !self.dry_run {
                    record_use_of(&storage, &there, &self.task.task)?;
                }
                for name in outputs {
                    let path = storage.join(name);
                    writeln!(out, "{}", path.display()).map_err(Error::Output)?;
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn screen<'a>(
        &self,
        view: View<'a>,
        workshop: &Workshop,
        out: &'a mut dyn Write,
    ) -> Result<Screen<'a>, Error> {
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
        let progress = Progress::new(view, !self.quiet && workshop.shows_progress());
        let troubles = Troubles::default();
        Ok(Screen { program: PROGRAM, view, reporter, progress, troubles, text, out, broken: None })
    }
}

fn task_version<'a>(name: &'a TaskName, commit: &'a ObjectId, place: &'a str) -> TaskVersion<'a> {
    TaskVersion { name, commit, place: Some(place) }
}

/// Keeps the outputs of the job under its own name, if all of them are there.
fn publish_job(view: View<'_>) -> Result<Option<ResultName>, Error> {
    let Account { task, plan, files, evaluation, storage } = view.account;
    let Some(outputs) = evaluation.outputs(files, plan) else {
        return Ok(None);
    };
    if !task.changed.is_empty() {
        let changed = listed(&task.changed);
        say(PROGRAM, &format_args!("the job is not kept: no commit records {changed}"));
        return Ok(None);
    }
    let literals: Vec<Stored> = files.literals.iter().flatten().cloned().collect();
    let inputs: Vec<Digest> = files.inputs.iter().map(|input| input.file.digest).collect();
    match storage.publish_job(&evaluation.job(task, &inputs, &literals, &outputs)) {
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
    let explanation = Explanation::new(view.account);
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
    say(PROGRAM, &view.tally());
}
