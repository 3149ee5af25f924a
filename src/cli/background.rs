//! Runs in the background: as a process of this host, or as a job of Slurm, whose arguments mean the same later.

use std::env;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::input_args::{PathArgs, PointArgs, typed_factor};
use super::options::{RunArgs, TaskDir};
use crate::report::{Progress, say};
use ce_evaluate::Evaluation;
use ce_evaluate::session::{
    BeginError, Error, OutputError, Place, RunJobRequest, RunOptions, Session, WriteError,
    is_to_be_handed_over, own_token,
};
use ce_executor::Leaving;
use ce_executor::slurm::{JobToken, SlurmSettings};
use ce_model::exit::{Exit, Explain};
use ce_model::sweep::Factor;
use ce_storage::records::{Provenance, SubmittedRun};
use ce_storage::{Locator, Storage};

/// What is in the background cannot have this.
#[derive(Debug, thiserror::Error)]
#[error("{0} and --detach=job exclude each other")]
struct NotInJob(pub(super) &'static str);

impl Explain for NotInJob {
    fn hint(&self) -> Option<String> {
        let hint = match self.0 {
            "--on here" | "--on workers" => "give --on slurm, too, or --detach alone",
            "what is not committed" => "commit it, or give --at HEAD",
            _ => "leave out one of them",
        };
        Some(hint.to_owned())
    }
}

/// The name of the program in what it says.
pub(super) const PROGRAM: &str = "ce-run";

/// As what a run goes on in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Background {
    /// As a process of this host.
    Process,
    /// As a job of Slurm, which submits itself again before its time is over.
    Job,
}

/// How a run leaves its terminal once it can begin.
pub(super) enum Departure {
    /// As a process that was split from the one at the terminal.
    Process(Leaving),
    /// As a job: nothing is evaluated here.
    Job,
}

impl Departure {
    /// Lets this process go on in the background, and says where; or submits the run with these arguments, and returns that it is
    /// over here.
    pub(super) fn depart(
        self,
        session: &Session,
        (evaluation, options): (&Evaluation, &RunOptions),
        arguments: impl FnOnce() -> Result<Vec<OsString>, Error>,
    ) -> Result<Option<Exit>, Error> {
        match self {
            Self::Process(leaving) => leave(evaluation, leaving).map(|()| None),
            Self::Job => {
                session.check_fit(evaluation)?;
                submit(session.storage(), (evaluation, options), arguments()?)?;
                Ok(Some(Exit::Done))
            }
        }
    }
}

/// Lets this process go on in the background, and says where.
fn leave(evaluation: &Evaluation, leaving: Leaving) -> Result<(), Error> {
    let storage = &*evaluation.storage;
    let (log, name) = storage.runs().create_run_log()?;
    // Who asks as soon as the terminal is free sees the task. It is displayed, and nothing more.
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
    storage: &Storage,
    (evaluation, options): (&Evaluation, &RunOptions),
    frozen: Vec<OsString>,
) -> Result<(), Error> {
    let (_log, name) = storage.runs().create_run_log()?;
    let log = &storage.path(&name);
    let mut arguments: Vec<OsString> = vec!["run".into(), "--as-job".into(), log.into()];
    arguments.extend(frozen);
    let directory = &storage.path("");
    let (settings, arguments) = (&options.slurm, &arguments[..]);
    let request = RunJobRequest { settings, storage: directory, log, arguments };
    let token = JobToken::random().map_err(BeginError::new)?;
    // The job removes the note, so it must be there before.
    note_waiting_run(storage, &name, (evaluation, &token))?;
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
    (evaluation, token): (&Evaluation, &JobToken),
) -> Result<(), Error> {
    let (task, version) = (&evaluation.task.name, evaluation.task.commit.short());
    let (task, version) = (task.to_string(), version.to_owned());
    let (job, recorded) = (token.to_string(), Provenance::now());
    Ok(storage.runs().note_waiting_run(log, &SubmittedRun { task, version, job, recorded })?)
}

/// Notes that a job begins: its run does not wait any more.
pub(super) fn begin_job(storage: &Storage, log: &Path) {
    if let Some(log) = Locator::new(storage).name_of(log) {
        drop(storage.runs().forget_waiting_run(&log));
    }
}

/// Notes that the run of this job will wait again, since the job is to be handed over. It only is displayed.
pub(super) fn note_handover(storage: &Storage, log: &Path, evaluation: &Evaluation) {
    if let (Some(log), Some(token)) = (Locator::new(storage).name_of(log), own_token()) {
        drop(note_waiting_run(storage, &log, (evaluation, &token)));
    }
}

/// Sees to it that a run can be a job, and has none of the options that a job cannot have.
pub(super) fn check_job(
    options: &RunOptions,
    excluded: &[(&'static str, bool)],
) -> Result<(), Error> {
    match options.place {
        Place::Here => return Err(NotInJob("--on here").into()),
        Place::Workers => return Err(NotInJob("--on workers").into()),
        Place::Slurm => {}
    }
    match excluded.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(NotInJob(option).into()),
        None => Ok(()),
    }
}

/// Ends a job whose evaluation has ended like that. If it was asked to hand over, it submits the run again, which goes on there.
pub(super) fn end_job(
    end: Result<Exit, Error>,
    log: &Path,
    settings: impl FnOnce() -> Result<SlurmSettings, Error>,
    out: &mut dyn Write,
) -> Result<Exit, Error> {
    if !is_to_be_handed_over(&end) {
        return end;
    }
    // What is printed belongs before what the next job prints.
    out.flush().map_err(OutputError)?;
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let directory = env::current_dir().map_err(BeginError::new)?;
    let (settings, storage, arguments) = (&settings()?, &*directory, &arguments[..]);
    let exit = RunJobRequest { settings, storage, log, arguments }.hand_over()?;
    if exit == Exit::Done {
        say(PROGRAM, &"the time of this job is over soon: the run is submitted again");
    }
    Ok(exit)
}

/// The arguments of a run.
#[derive(Clone, Copy)]
pub(super) struct FrozenRun<'a> {
    /// The names of options without a value, and whether they are given.
    pub(super) flags: &'a [(&'static str, bool)],
    pub(super) how: &'a RunArgs,
    pub(super) dir: &'a TaskDir,
    pub(super) points: &'a PointArgs,
    /// What `--where` says.
    pub(super) wanted: &'a [Factor],
    /// The values of `--only`.
    pub(super) only: &'a [String],
    pub(super) paths: &'a PathArgs,
}

impl FrozenRun<'_> {
    /// The arguments of `ce run` for the same evaluation at any time, as long as the repository is where it is.
    ///
    /// # Errors
    ///
    /// Fails if no commit has the task.
    pub(super) fn arguments(
        &self,
        evaluation: &Evaluation,
        options: &RunOptions,
    ) -> Result<Vec<OsString>, Error> {
        let (task, storage) = (&evaluation.task, &evaluation.storage);
        if !task.changed.is_empty() {
            return Err(NotInJob("what is not committed").into());
        }
        let flags = self.flags.iter().filter(|(_, is_given)| *is_given);
        let mut arguments: Vec<OsString> = flags.map(|(flag, _)| (*flag).into()).collect();
        arguments.extend(self.how.frozen(options).into_iter().map(OsString::from));
        arguments.push(joined("--task=", &absolute(&self.dir.task)?));
        arguments.push(format!("--at={}", task.commit.full()).into());
        arguments.extend(self.points.frozen().into_iter().map(OsString::from));
        let wanted = self.wanted.iter().map(|factor| format!("--where={}", typed_factor(factor)));
        arguments.extend(wanted.map(OsString::from));
        arguments.extend(self.only.iter().map(|name| format!("--only={name}").into()));
        for (name, repository) in &self.paths.repositories {
            arguments.push(joined(&format!("--repository={name}="), &absolute(repository)?));
        }
        arguments.extend(["--".into(), storage.path("").into()]);
        for (name, input) in task.inputs.iter().zip(&evaluation.files.inputs) {
            let Some(input) = input else { continue };
            arguments.push(joined(&format!("{name}="), &storage.path(&input.file.name)));
        }
        Ok(arguments)
    }
}

/// An argument that begins like this, and ends with a path.
fn joined(begin: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(begin);
    argument.push(path);
    argument
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    Ok(std::path::absolute(path).map_err(BeginError::new)?)
}
