//! `ce-run`: evaluates a task.
//!
//! A run may go to the background: as a process of this host, or as a job of Slurm.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Tool;
use super::input_args::{PathArgs, PathsCandidate, PointArgs, levels, ranged, warn_of_texts};
use super::options::{Dirty, RunArgs, StyleName, TaskDir};
use super::outputs::write_outputs;
use super::storage_args::{AbsentStorage, NewStorage, check_known};
use super::typed_arguments::TypedArguments;
use ce_evaluate::session::{
    BeginError, BoundTask, CallNameError, Error, FinishedJobs, Frontend, Given, IsolationPolicy,
    Kept, OutputError, Place, RunJobRequest, RunOptions, Session, Stop, WriteError,
    check_selection, find_finished, find_job, finished_outputs, is_to_be_handed_over, named_call,
    open_finished, outputs_to_write, own_token, record_later_use, start_pool,
};
use ce_evaluate::{Evaluation, ForcedCalls, How};
use ce_executor::scheduler::JobToken;
use ce_executor::slurm::{HANDOVER, SlurmSettings};
use ce_executor::{Detach, Leaving, detach};
use ce_git::{Config, Trees};
use ce_history::output_directory::{OtherOutputs, check_output_directory};
use ce_model::exit::{Exit, Explain};
use ce_model::humanize::{counted, quoted};
use ce_model::plan::{PointSelection, SelectionError, SelectionFault};
use ce_model::suggest::UnknownName;
use ce_model::sweep::Factor;
use ce_model::task::{OutputName, RangedInputs, Task};
use ce_queries::explain::Explanation;
use ce_report::{
    self as report, EventPrinter, Json, OutputPaths, Progress, Reporter, TreePrinter, TreeStyle,
    reasons, say,
};
use ce_storage::records::{JobOutput, Provenance, SubmittedRun};
use ce_storage::{Locator, ResultName, Storage, TaskVersion};
use ce_task::load::{self, listed};
use clap::{CommandFactory, Parser, ValueEnum};

/// The name of the program in its messages.
const PROGRAM: &str = "ce-run";

/// Evaluate a task: compute what is missing, and print the tree with the names of all files
///
/// The task's workflow is evaluated leaves first. Every call whose outputs are in the storage is
/// reused; every other one is executed, once, however often it occurs.
#[derive(Debug, Parser)]
#[command(name = "ce-run", version, after_help = EXIT_CODES)]
pub(super) struct Run {
    #[command(flatten)]
    arguments: TypedArguments,

    /// Dry run: compute and write nothing, only show which results exist and which are missing
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// Print events as JSON, one a line, in place of the tree
    #[arg(long, conflicts_with = "quiet")]
    json: bool,

    /// Print only the paths of the task's outputs
    #[arg(short, long)]
    quiet: bool,

    /// How the tree tells the state of a call: in words, or by the marks of the first implementation, which tell the state
    /// before the run [default: words, or compeval.style in Git's configuration]
    #[arg(long, value_name = "words|original", hide_possible_values = true, conflicts_with_all = ["json", "quiet"])]
    style: Option<StyleName>,

    /// Compute calls again although their outputs are there: all of a computation, or one by its name c_NAME/CCID/INPUTS or
    /// one of its files. The old results are quarantined
    #[arg(long, value_name = "COMPUTATION|CALL|FILE", conflicts_with = "dry_run", value_hint = clap::ValueHint::FilePath)]
    force: Vec<PathBuf>,

    /// If outputs that are away have to be made again, and differ from the recorded ones: replace the record
    #[arg(long, conflicts_with = "dry_run")]
    accept: bool,

    /// Go on in the background once the task is loaded and its inputs are in the storage: the output goes to a file there,
    /// and neither the terminal nor the files matter any more. Without uncommitted changes only. As a job, it is submitted
    /// to Slurm, and submits itself again before its time is over
    #[arg(long, value_name = "process|job", hide_possible_values = true, num_args = 0..=1, require_equals = true, default_missing_value = "process", conflicts_with_all = ["dry_run", "dirty"])]
    detach: Option<Background>,

    /// This process is a job that was submitted by --detach=job, and prints to this file
    #[arg(long, value_name = "LOG", hide = true)]
    as_job: Option<PathBuf>,

    /// Wait for suspended calls until all are over, and look at each again after longer and longer pauses of at most
    /// a minute
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,

    #[command(flatten)]
    how: RunArgs,

    #[command(flatten)]
    dirty: Dirty,

    #[command(flatten)]
    task: TaskDir,

    #[command(flatten)]
    points: PointArgs,

    /// Evaluate only the points of sweeps that have one of these texts for a name; no table is made of them, and no call
    /// that needs a table is evaluated
    ///
    /// It holds for all sweeps with that name, and for --each and --points.
    #[arg(long = "where", value_name = "NAME=TEXT,...", value_parser = levels)]
    wanted: Vec<Factor>,

    /// Evaluate only these calls, at all points of sweeps, and what they need: the name of a computation, or the labels that lead to
    /// a call, as titles have them, such as align or left/reads. No job is stored
    #[arg(long, value_name = "COMPUTATION|LABEL", value_hint = clap::ValueHint::Other)]
    only: Vec<String>,

    /// Write the outputs into this directory at the end, under names that stay: those of definitions in the workflow, with the suffix of the
    /// output, or else of outputs. A file changes only if its bytes do; .ce-out.json lists the files. Each point of --each or --points has a directory of its own
    #[arg(long, value_name = "DIR", conflicts_with_all = ["dry_run", "only"], value_hint = clap::ValueHint::DirPath)]
    out: Option<PathBuf>,

    #[command(flatten)]
    new_storage: NewStorage,

    #[command(flatten)]
    typed: PathArgs,
}

const EXIT_CODES: &str = "\
Exit codes: 0 all outputs are there, 1 a call failed, 2 the arguments or the task are wrong, \
3 something is missing, 4 a call is suspended: what it has started goes on elsewhere, 5 the storage could not be read or written, 130 interrupted (143: by \
SIGTERM).";

impl Tool for Run {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        match self.detach {
            None => self.evaluate(out, None),
            Some(Background::Job) => self.evaluate(out, Some(Departure::Job)),
            Some(Background::Process) => match detach().map_err(BeginError::new)? {
                Detach::Child(leaving) => self.evaluate(out, Some(Departure::Process(leaving))),
                Detach::Parent(code) => Ok(Exit::Ended(code)),
            },
        }
    }
}

/// A run that can begin.
struct ReadyRun {
    bound: BoundTask,
    /// The inputs of its jobs, if the task is evaluated for each of some points.
    ranged: Option<RangedInputs>,
    /// The names of the outputs, if they are to be in a directory.
    output_names: Option<Vec<OutputName>>,
    /// The path of the storage, and the repositories that the task reads.
    given: Given,
    /// The storage, if it was opened for reading already.
    looked: Option<Storage>,
    options: RunOptions,
    style: TreeStyle,
}

impl Run {
    /// Evaluates the task; leaves the terminal once that can begin, if it is to be left.
    fn evaluate(&self, out: &mut dyn Write, departure: Option<Departure>) -> Result<Exit, Error> {
        start_pool();
        let dir = &self.task.task;
        let selection = self.selection();
        let short_cut = self.quiet && self.force.is_empty() && selection.is_everything();
        let config = self.task.config()?;
        if short_cut && let Some(end) = self.print_known(&config, out)? {
            return Ok(end);
        }
        let task = self.task.load(PROGRAM, self.dirty.uncommitted())?;
        let factors = self.points.factors(&self.points.read()?, dir, &task)?;
        warn_of_texts(PROGRAM, &factors);
        // Equal names are an error before anything is executed.
        let output_names = self.out.as_ref().map(|_| task.output_names()).transpose()?;
        let (task, ranged) = ranged(task, factors, &self.typed)?;
        let is_read = selection.inputs_read(&task)?;
        let given = self.typed.resolve_read(&task, &config, &is_read)?;
        if let Some(dir) = &self.out {
            check_output_directory(&given.storage, dir)?;
        }
        let accepts_new = self.accepts_new(given.is_configured);
        if !accepts_new {
            check_known(dir, &given.storage)?;
        }
        let trees = Trees::new(dir);
        let mut bound = BoundTask::new(&trees, task, &given.inputs)?;
        let mut looked = None;
        // A draft may have changed files whose paths depend on points.
        if short_cut
            && !bound.task.is_draft()
            && let Some(storage) = open_finished(&given.storage, self.how.unrecorded())
        {
            let repositories = &given.repositories;
            let found = find_finished(&storage, &mut bound, &trees, ranged.as_ref(), repositories);
            if let Some(jobs) = found? {
                let written = self.write_finished(&storage, &jobs, output_names.as_deref());
                self.print_finished(storage, &given.storage, &jobs, out)?;
                return Ok(written?.unwrap_or(Exit::Done));
            }
            looked = Some(storage);
        }
        let options = RunOptions { accepts_new, ..self.options(&config)? };
        if self.detach == Some(Background::Job) {
            // Each of the jobs would do the first again, and the second may be gone by then.
            let excluded = [
                ("--force", !self.force.is_empty()),
                ("--points", self.points.has_sheet()),
                ("--out", self.out.is_some()),
            ];
            check_job(&options, &excluded)?;
        }
        if !self.dry_run {
            options.check_access(dir, &bound.task)?;
        }
        // A name or text that is wrong makes no storage.
        let bound = bound.selecting(&trees, selection, is_read)?;
        let style = StyleName::style(self.style, &config)?;
        let slurm = options.slurm.clone();
        let ready = ReadyRun { bound, ranged, output_names, given, looked, options, style };
        let end = self.execute(ready, departure, out);
        match &self.as_job {
            Some(log) => end_job(end, log, &slurm, out),
            None => end,
        }
    }

    /// Prints the job of the task at a commit, if it was finished before. The task is not loaded.
    fn print_known(&self, config: &Config, out: &mut dyn Write) -> Result<Option<Exit>, Error> {
        let Some(rev) =
            self.task.at.as_ref().filter(|_| self.points.is_nothing() && self.out.is_none())
        else {
            return Ok(None);
        };
        let dir = &self.task.task;
        let Some((name, commit, place)) = load::job_at(dir, rev) else { return Ok(None) };
        let version = TaskVersion::new(&name, &commit, &place);
        // The number of inputs of the task is not known: a job of another number is another one.
        for PathsCandidate { storage: path, is_configured, inputs } in
            self.typed.candidates(config)?
        {
            if let Some(storage) = open_finished(&path, self.how.unrecorded())
                && let Some(job) = find_job(&storage, version, &inputs)?
            {
                if !self.accepts_new(is_configured) {
                    check_known(dir, &path)?;
                }
                return self.print_finished(storage, &path, &job, out).map(Some);
            }
        }
        Ok(None)
    }

    /// Evaluates a task that was bound, and publishes its jobs.
    fn execute(
        &self,
        ready: ReadyRun,
        departure: Option<Departure>,
        out: &mut dyn Write,
    ) -> Result<Exit, Error> {
        let ReadyRun { bound, ranged, output_names, given, looked, options, style } = ready;
        let session = self.session(&options, &given.storage, looked, &bound)?;
        let session = session.reading(&self.task.task, &given.repositories);
        let forced = self.forced(session.storage(), &bound.task)?;
        let session = session.forcing(forced.clone());
        let evaluation = session.prepare(bound)?;
        match departure {
            None => {}
            Some(Departure::Process(leaving)) => leave(&evaluation, leaving)?,
            Some(Departure::Job) => {
                session.check_fit(&evaluation)?;
                submit(&evaluation, &options.slurm, self.job_arguments(&evaluation, &options)?)?;
                return Ok(Exit::Done);
            }
        }
        let mut printer = self.printer(&evaluation, &session, style, out)?;
        session.evaluate(&evaluation, &mut printer)?;
        let jobs = match &ranged {
            _ if self.dry_run || !self.only.is_empty() => Vec::new(),
            Some(ranged) => session.publish_jobs(&evaluation, ranged)?,
            None => vec![session.publish_job(&evaluation)?],
        };
        let jobs = name_jobs(&evaluation, jobs);
        let exit = self.exit(&session, &evaluation);
        let broken = printer.end(&jobs, exit);
        self.conclude(&evaluation, &forced, &jobs, exit);
        report::revoked_results(&evaluation).iter().for_each(|line| say(PROGRAM, line));
        check_selection(&evaluation.plan)?;
        let written = match (&self.out, &output_names) {
            (Some(dir), Some(names)) if !matches!(exit, Exit::Interrupted(_)) => {
                self.write_outputs(&evaluation, dir, names)
            }
            _ => Ok(None),
        };
        evaluation.leave();
        let exit = written?.unwrap_or(exit);
        match broken {
            // The reader has closed the pipe; the evaluation went on all the same.
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(OutputError(error).into())
            }
            _ => Ok(exit),
        }
    }

    /// Writes the outputs of an evaluation into the directory of the user.
    fn write_outputs(
        &self,
        evaluation: &Evaluation,
        dir: &Path,
        names: &[OutputName],
    ) -> Result<Option<Exit>, Error> {
        let stop = Stop::watch().map_err(BeginError::new)?;
        let others = if self.wanted.is_empty() { OtherOutputs::Remove } else { OtherOutputs::Keep };
        let (storage, outputs) = (&evaluation.storage, outputs_to_write(evaluation, names)?);
        let only_warnings = self.quiet || self.json;
        write_outputs(PROGRAM, storage, dir, outputs, others, &stop, only_warnings)
    }

    /// The options of the session.
    fn options(&self, config: &Config) -> Result<RunOptions, Error> {
        let mut options = self.how.options(config)?;
        options.policy.accept = self.accept;
        options.policy.wait = self.wait;
        options.is_job = self.as_job.is_some();
        options.quiet = self.quiet;
        if self.quiet {
            options.frontend.while_reading = Frontend::default().while_reading;
        }
        Ok(options)
    }

    /// Whether the storage may be another one than the repository has used at its path. A job has the storage of the run that submitted it.
    fn accepts_new(&self, is_configured: bool) -> bool {
        self.as_job.is_none() && self.new_storage.is_accepted(is_configured)
    }

    /// Returns the end of the program after an evaluation. A job that is to be handed over records that its run will wait again.
    fn exit(&self, session: &Session, evaluation: &Evaluation) -> Exit {
        let signal = match (session.interrupted_by(), evaluation.exit()) {
            // There is nothing to be handed over.
            (Some(HANDOVER), Exit::Done) | (None, _) => return evaluation.exit(),
            (Some(signal), _) => signal,
        };
        if let (HANDOVER, Some(log)) = (signal, &self.as_job) {
            note_handover(session.storage(), log, evaluation);
        }
        Exit::Interrupted(signal)
    }

    /// The arguments of `ce run` for the same evaluation at any time, as long as the repository is where it is: those that were typed,
    /// but for the [`RESOLVED`] ones.
    fn job_arguments(
        &self,
        evaluation: &Evaluation,
        options: &RunOptions,
    ) -> Result<Vec<OsString>, Error> {
        let (task, storage) = (&evaluation.task, &evaluation.storage);
        if !task.changed.is_empty() {
            return Err(NotInJob::Uncommitted.into());
        }
        let but = [&RESOLVED[..], &NOT_IN_JOBS].concat();
        let mut arguments =
            self.arguments.options(&Self::command(), &but).map_err(BeginError::new)?;
        let is_isolated = options.isolation != IsolationPolicy::Off;
        arguments.push(if is_isolated { "--isolate" } else { "--no-isolate" }.into());
        arguments.push(joined("--task=", &absolute(&self.task.task)?));
        arguments.push(format!("--at={}", task.commit.full()).into());
        for (name, repository) in &self.typed.repositories {
            arguments.push(joined(&format!("--repository={name}="), &absolute(repository)?));
        }
        arguments.extend(["--".into(), storage.path("").into()]);
        for (name, input) in task.inputs.iter().zip(&evaluation.files.inputs) {
            let Some(input) = input else { continue };
            arguments.push(joined(&format!("{name}="), &storage.path(&input.file.name)));
        }
        Ok(arguments)
    }

    /// Opens the storage, and says if it was not there: then its path may be mistyped.
    fn session(
        &self,
        options: &RunOptions,
        path: &Path,
        looked: Option<Storage>,
        bound: &BoundTask,
    ) -> Result<Session, Error> {
        let dir = &self.task.task;
        let opened = match looked {
            // The run that has submitted the job has made it.
            _ if self.as_job.is_some() => Storage::existing(path),
            Some(storage) => Ok(storage),
            None => Storage::inspect(path, options.unrecorded),
        };
        let session = match opened {
            Ok(storage) => {
                let absent = AbsentStorage::detect(&storage);
                if absent.is_some() && !self.dry_run {
                    // An input that cannot be a value must not make a storage.
                    bound.check_directories()?;
                }
                let session = if self.dry_run {
                    Session::inspect(dir, storage, options)
                } else {
                    Session::start(dir, storage, options)?
                };
                if let Some(absent) = absent {
                    let told = if self.dry_run {
                        "there is no storage at"
                    } else {
                        "made a new storage at"
                    };
                    absent.tell(PROGRAM, told);
                }
                session
            }
            // Opening it waits until it answers.
            Err(error) if !self.dry_run && error.may_be_away() => {
                Session::open(dir, path, options)?
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(log) = &self.as_job {
            begin_job(session.storage(), log);
        }
        Ok(session)
    }

    /// The points that are asked for.
    fn selection(&self) -> PointSelection {
        let factors = self.wanted.iter().map(|it| &it.points);
        let levels = factors.map(|it| (it.names()[0].clone(), it.levels(0).to_vec()));
        PointSelection::new(levels).only(self.only.clone())
    }

    /// Reports the outcome of an evaluation that is over.
    fn conclude(
        &self,
        evaluation: &Evaluation,
        forced: &ForcedCalls,
        jobs: &[Option<ResultName>],
        exit: Exit,
    ) {
        if self.dry_run && !self.quiet && !self.json {
            let explanation = Explanation::new(evaluation);
            reasons(evaluation, &explanation).for_each(|reason| say(PROGRAM, &reason));
        }
        let calls = forced.calls.iter();
        let calls = calls.filter(|call| !evaluation.has_executed(|it| it == *call));
        let computations = forced.computations.iter();
        let computations = computations
            .filter(|name| !evaluation.has_executed(|it| it.computation() == Some(name)));
        let computations = computations.map(|name| format!("of {name}"));
        for call in calls.map(ResultName::short).chain(computations) {
            say(
                PROGRAM,
                &format_args!(
                    "warning: --force had no effect: no call {call} was executed\n  try: give a call of this task; ce-run -n shows their names"
                ),
            );
        }
        if self.quiet {
            report::missing_literals(evaluation).for_each(|line| say(PROGRAM, &line));
        }
        if self.quiet || self.json {
            report::remembered_points(evaluation).iter().for_each(|line| say(PROGRAM, line));
        } else {
            report::left_out(evaluation).for_each(|line| say(PROGRAM, &line));
            summarise_jobs(evaluation, jobs);
            say(PROGRAM, &report::totals(evaluation));
            report::memory_excess(evaluation).iter().for_each(|line| say(PROGRAM, line));
            if matches!(exit, Exit::Interrupted(_)) && !self.dry_run && self.as_job.is_none() {
                return say_saved(evaluation);
            }
            let parts = [
                ("failures at points", report::failed_points(evaluation)),
                ("not finished at points", report::unfinished_points(evaluation)),
                ("suspended at points", report::suspended_points(evaluation)),
            ];
            for (heading, lines) in parts.into_iter().filter(|(_, lines)| !lines.is_empty()) {
                say(PROGRAM, &format_args!("{heading}:\n  {}", lines.join("\n  ")));
            }
        }
    }

    /// The calls that are to be computed again.
    fn forced(&self, storage: &Storage, task: &Task) -> Result<ForcedCalls, Error> {
        let mut forced = ForcedCalls::default();
        for path in &self.force {
            let text = path.display().to_string();
            if task.computations.iter().any(|it| it.name.as_str() == text) {
                forced.computations.insert(text);
                continue;
            }
            if !text.contains('/') && !path.exists() {
                let known = task.computations.iter().map(|it| &it.name);
                let unknown = SelectionFault::NoTarget(UnknownName::new(text, known));
                return Err(SelectionError(vec![unknown]).into());
            }
            let name = named_call(storage, path)?;
            if !name.may_be_of_call() {
                return Err(CallNameError::NoCall(text).into());
            }
            forced.calls.insert(name);
        }
        Ok(forced)
    }

    /// Prints the outputs of jobs that were finished before.
    fn print_finished(
        &self,
        storage: Storage,
        path: &Path,
        jobs: &FinishedJobs,
        out: &mut dyn Write,
    ) -> Result<Exit, Error> {
        if !self.dry_run {
            record_later_use(storage, &self.task.task)?;
        }
        // The path of a directory ends in a slash.
        let shown = |JobOutput { file, digest }: &JobOutput| {
            format!("{file}{}", if digest.is_directory() { "/" } else { "" })
        };
        if let Some(points) = &jobs.points {
            for (point, outputs) in points.iter().zip(&jobs.outputs) {
                let names: Vec<String> = outputs.iter().map(shown).collect();
                report::paths_of_point(point, &names, path, out).map_err(OutputError)?;
            }
        } else {
            for output in jobs.outputs.iter().flatten() {
                writeln!(out, "{}", path.join(shown(output)).display()).map_err(OutputError)?;
            }
        }
        Ok(Exit::Done)
    }

    /// Writes the outputs of jobs that were finished before into the directory of the user, if there is one.
    fn write_finished(
        &self,
        storage: &Storage,
        jobs: &FinishedJobs,
        names: Option<&[OutputName]>,
    ) -> Result<Option<Exit>, Error> {
        let (Some(dir), Some(names)) = (&self.out, names) else { return Ok(None) };
        let stop = Stop::watch().map_err(BeginError::new)?;
        let outputs = finished_outputs(storage, jobs, names)?;
        write_outputs(PROGRAM, storage, dir, outputs, OtherOutputs::Remove, &stop, true)
    }

    fn printer<'a>(
        &self,
        evaluation: &'a Evaluation,
        session: &Session,
        style: TreeStyle,
        out: &'a mut dyn Write,
    ) -> Result<EventPrinter<'a>, Error> {
        let mut text = Vec::new();
        let reporter: Box<dyn Reporter> = if self.json {
            Box::new(Json::begin(evaluation, &mut text).map_err(OutputError)?)
        } else if self.quiet {
            Box::new(OutputPaths(evaluation))
        } else {
            let mut tree = TreePrinter::new(evaluation, style);
            tree.begin(&mut text).map_err(OutputError)?;
            Box::new(tree)
        };
        let progress = !self.quiet && session.executes();
        Ok(EventPrinter::new(PROGRAM, evaluation, reporter, text, progress, out))
    }
}

/// The beginning of the messages about jobs that are not kept.
const NOT_STORED: &str = "the job's outputs were not stored";

/// The names of the jobs whose outputs were stored: one, or one for each point. Says, once for each reason, why others were not.
fn name_jobs(evaluation: &Evaluation, jobs: Vec<Kept>) -> Vec<Option<ResultName>> {
    let mut told: Vec<Kept> = Vec::new();
    let mut names = Vec::with_capacity(jobs.len());
    for job in jobs {
        names.push(match job {
            Kept::As(name) => Some(name),
            other => {
                if !told.contains(&other) {
                    say_not_stored(evaluation, &other);
                    told.push(other);
                }
                None
            }
        });
    }
    names
}

/// Prints where the outputs of the job are, or the number of jobs.
fn summarise_jobs(evaluation: &Evaluation, jobs: &[Option<ResultName>]) {
    match jobs {
        [] => {}
        jobs if evaluation.plan.jobs().is_some() => {
            let stored = jobs.iter().flatten().count();
            let jobs = counted(jobs.len(), "job");
            say(PROGRAM, &format_args!("{jobs}, one for each point: {stored} stored"));
        }
        [Some(job)] => {
            for number in 0..evaluation.plan.outputs().len() {
                let path = evaluation.shown(&job.output(number));
                say(PROGRAM, &format_args!("job output {number:02}: {path}"));
            }
        }
        _ => {}
    }
}

/// Prints which results an interrupted run has saved, and how to continue it.
fn say_saved(evaluation: &Evaluation) {
    let storage = evaluation.storage.shown_place().display();
    let saved = match report::tally(evaluation).count(How::Executed) {
        0 => "no call was computed".to_owned(),
        1 => format!("1 call was computed, and is saved in {storage}"),
        count => format!("{count} calls were computed, and are saved in {storage}"),
    };
    let mut words = env::args_os().map(|word| word.to_string_lossy().into_owned());
    let program = words.next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    let command: Vec<String> = [program].into_iter().chain(words).map(|it| quoted(&it)).collect();
    say(PROGRAM, &format_args!("{saved}; to go on:\n  {}", command.join(" ")));
}

/// Prints the reason why the outputs of a job were not stored, unless one is missing.
fn say_not_stored(evaluation: &Evaluation, why: &Kept) {
    match why {
        Kept::As(_) | Kept::Incomplete => {}
        Kept::Replaced => {
            let why = "recorded outputs were replaced by others; run it again, with what is new";
            say(PROGRAM, &format_args!("{NOT_STORED}: {why}"));
        }
        Kept::FailedPoints => {
            say(PROGRAM, &format_args!("{NOT_STORED}: points of a sweep have failed"));
        }
        Kept::Uncommitted => {
            let changed = &evaluation.task.changed;
            let have = if changed.len() == 1 { "has" } else { "have" };
            let changed = match &changed[..] {
                [] => "files of the task".to_owned(),
                changed => listed(changed),
            };
            say(PROGRAM, &format_args!("{NOT_STORED}: {changed} {have} uncommitted changes"));
        }
        Kept::Denied(why) => {
            say(
                PROGRAM,
                &format_args!(
                    "warning: {NOT_STORED}: {why}\n  try: check who may write there, if the job is to have a name"
                ),
            );
        }
        Kept::ReadOnly => {
            say(
                PROGRAM,
                &format_args!(
                    "warning: {NOT_STORED}: the storage is read-only\n  try: mount it for writing, if the job is to have a name"
                ),
            );
        }
    }
}

/// The arguments that would mean something else in a job, which has them as they are when it is submitted: later, a branch or Git's
/// configuration may have changed, and files be gone; and its current directory is the storage.
const RESOLVED: [&str; 8] =
    ["task", "at", "storage", "inputs", "params", "repositories", "isolate", "no_isolate"];

/// The arguments that a job does not have: they exclude `--detach=job`, or say that there is to be a job.
const NOT_IN_JOBS: [&str; 7] = ["detach", "as_job", "dry_run", "dirty", "force", "points", "out"];

/// An argument that begins like this, and ends with a path.
fn joined(begin: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(begin);
    argument.push(path);
    argument
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    Ok(std::path::absolute(path).map_err(BeginError::new)?)
}

/// The reason why a run cannot be a job.
#[derive(Debug, thiserror::Error, Explain)]
enum NotInJob {
    /// Slurm does not start its workers.
    #[error("--on {0} and --detach=job exclude each other")]
    #[hint("give --on slurm, too, or --detach alone")]
    Place(&'static str),
    /// It has an option that no job can have.
    #[error("{0} and --detach=job exclude each other")]
    #[hint("leave out one of them")]
    Option(&'static str),
    /// No commit has its task.
    #[error("an uncommitted task and --detach=job exclude each other")]
    #[hint("commit it, or give --at HEAD")]
    Uncommitted,
}

/// The form in which a run goes on in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Background {
    /// As a process of this host.
    Process,
    /// As a job of Slurm, which submits itself again before its time is over.
    Job,
}

/// The way in which a run leaves its terminal once it can begin.
enum Departure {
    /// As a process that was split from the one at the terminal.
    Process(Leaving),
    /// As a job: nothing is evaluated here.
    Job,
}

/// Lets this process go on in the background, and says where.
fn leave(evaluation: &Evaluation, leaving: Leaving) -> Result<(), Error> {
    let storage = &*evaluation.storage;
    let (log, name) = storage.runs().create_run_log()?;
    // A user who asks as soon as the terminal is free sees the task. It is displayed, and nothing more.
    let state = Progress::new(evaluation, false).state(&Provenance::now());
    drop(storage.runs().note_state(&state));
    let log_path = storage.shown(&name).display().to_string();
    let process = storage.runs().own_process();
    say(
        PROGRAM,
        &format_args!(
            "goes on in the background as process {process}, and prints to {log_path}\n  try: ce status {}",
            storage.shown_place().display()
        ),
    );
    Ok(leaving.leave(&log).map_err(|source| WriteError { path: log_path, source })?)
}

/// Submits a run with these arguments, and says where it is.
fn submit(
    evaluation: &Evaluation,
    settings: &SlurmSettings,
    frozen: Vec<OsString>,
) -> Result<(), Error> {
    let storage = &*evaluation.storage;
    let (_log, name) = storage.runs().create_run_log()?;
    let log = &storage.path(&name);
    let mut arguments: Vec<OsString> = vec!["run".into(), "--as-job".into(), log.into()];
    arguments.extend(frozen);
    let directory = &storage.path("");
    let request = RunJobRequest { settings, storage: directory, log, arguments: &arguments };
    let token = JobToken::random().map_err(BeginError::new)?;
    // The job removes the note, so it must be there before.
    note_waiting_run(storage, &name, evaluation, &token)?;
    let number =
        request.submit(&token).inspect_err(|_| drop(storage.runs().forget_waiting_run(&name)))?;
    say(
        PROGRAM,
        &format_args!(
            "goes on as job {number} of Slurm, and prints to {}\n  try: ce status {}, squeue --name={token}, or scancel --name={token}",
            storage.shown(&name).display(),
            storage.shown_place().display()
        ),
    );
    Ok(())
}

/// Notes for `ce status` that a run waits as a job with this name.
fn note_waiting_run(
    storage: &Storage,
    log: &str,
    evaluation: &Evaluation,
    token: &JobToken,
) -> Result<(), Error> {
    let (task, version) = (&evaluation.task.name, evaluation.task.commit.short());
    let (task, version) = (task.to_string(), version.to_owned());
    let (job, recorded) = (token.to_string(), Provenance::now());
    Ok(storage.runs().note_waiting_run(log, &SubmittedRun { task, version, job, recorded })?)
}

/// Notes that a job begins: its run does not wait any more.
fn begin_job(storage: &Storage, log: &Path) {
    if let Some(log) = Locator::new(storage).name_of(log) {
        drop(storage.runs().forget_waiting_run(&log));
    }
}

/// Notes that the run of this job will wait again, since the job is to be handed over. It only is displayed.
fn note_handover(storage: &Storage, log: &Path, evaluation: &Evaluation) {
    if let (Some(log), Some(token)) = (Locator::new(storage).name_of(log), own_token()) {
        drop(note_waiting_run(storage, &log, evaluation, &token));
    }
}

/// Checks that a run can be a job, and has no options that a job cannot have.
fn check_job(options: &RunOptions, excluded: &[(&'static str, bool)]) -> Result<(), Error> {
    match &options.place {
        Place::Here => return Err(NotInJob::Place("here").into()),
        Place::Workers => return Err(NotInJob::Place("workers").into()),
        Place::Scheduler(_) => return Err(NotInJob::Place("scheduler").into()),
        Place::Slurm => {}
    }
    match excluded.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(NotInJob::Option(option).into()),
        None => Ok(()),
    }
}

/// Ends a job whose evaluation has ended like that. If it was asked to hand over, it submits the run again, which goes on there.
fn end_job(
    end: Result<Exit, Error>,
    log: &Path,
    settings: &SlurmSettings,
    out: &mut dyn Write,
) -> Result<Exit, Error> {
    if !is_to_be_handed_over(&end) {
        return end;
    }
    // The output of this job belongs before the output of the next one.
    out.flush().map_err(OutputError)?;
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let directory = env::current_dir().map_err(BeginError::new)?;
    let (storage, arguments) = (&*directory, &arguments[..]);
    let exit = RunJobRequest { settings, storage, log, arguments }.hand_over()?;
    if exit == Exit::Done {
        say(PROGRAM, &"the time of this job is over soon: the run is submitted again");
    }
    Ok(exit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{FromArgMatches, value_parser};

    /// The program with any text as the value of an option.
    fn lenient() -> clap::Command {
        Run::command().mut_args(|it| match it.get_action().takes_values() {
            true => it.value_parser(value_parser!(OsString)),
            false => it,
        })
    }

    #[test]
    fn a_job_has_every_option_as_it_was_typed_unless_it_is_resolved_or_refused() {
        let mut others = [&RESOLVED[..], &NOT_IN_JOBS].concat();
        for argument in Run::command().get_arguments() {
            let id = argument.get_id().as_str();
            if let Some(at) = others.iter().position(|other| *other == id) {
                others.swap_remove(at);
                continue;
            }
            let long =
                argument.get_long().unwrap_or_else(|| panic!("what does a job get as {id}?"));
            let takes_values = argument.get_action().takes_values();
            let typed =
                if takes_values { format!("--{long}=/a/b=c, d") } else { format!("--{long}") };
            let matches = lenient().get_matches_from(["ce-run", &typed]);
            let arguments = TypedArguments::from_arg_matches(&matches).unwrap();
            assert_eq!(arguments.options(&lenient(), &[]).unwrap(), [&*typed]);
        }
        assert!(others.is_empty(), "these are no arguments: {others:?}");
    }

    #[test]
    fn a_job_has_the_key_of_its_run_wherever_it_begins() {
        let run = Run::parse_from(["ce-run", "-j2", "--key", "team.key", "--where=n='1,2',3"]);
        let options = run.arguments.options(&Run::command(), &[]).unwrap();
        let key = joined("--key=", &absolute(Path::new("team.key")).unwrap());
        assert_eq!(options, ["--jobs=2".into(), key, "--where=n='1,2',3".into()]);
    }
}
