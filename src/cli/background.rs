//! Runs in the background: as a process of this host, or as a job of Slurm.

use std::env;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

use clap::ValueEnum;

use crate::report::{Progress, say};
use ce_evaluate::Evaluation;
use ce_evaluate::session::{
    BeginError, Error, OutputError, Place, RunJobRequest, RunOptions, WriteError,
    is_to_be_handed_over, own_token,
};
use ce_executor::Leaving;
use ce_executor::scheduler::JobToken;
use ce_executor::slurm::SlurmSettings;
use ce_model::exit::{Exit, Explain};
use ce_storage::records::{Provenance, SubmittedRun};
use ce_storage::{Locator, Storage};

/// A run in the background cannot have this.
#[derive(Debug, thiserror::Error)]
#[error("{0} and --detach=job exclude each other")]
pub(super) struct NotInJob(pub(super) &'static str);

impl Explain for NotInJob {
    fn hint(&self) -> Option<String> {
        let hint = match self.0 {
            "--on here" | "--on workers" | "--on scheduler" => {
                "give --on slurm, too, or --detach alone"
            }
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

/// The way in which a run leaves its terminal once it can begin.
pub(super) enum Departure {
    /// As a process that was split from the one at the terminal.
    Process(Leaving),
    /// As a job: nothing is evaluated here.
    Job,
}

/// Lets this process go on in the background, and says where.
pub(super) fn leave(evaluation: &Evaluation, leaving: Leaving) -> Result<(), Error> {
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
pub(super) fn submit(
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
    match &options.place {
        Place::Here => return Err(NotInJob("--on here").into()),
        Place::Workers => return Err(NotInJob("--on workers").into()),
        Place::Scheduler(_) => return Err(NotInJob("--on scheduler").into()),
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
    settings: &SlurmSettings,
    out: &mut dyn Write,
) -> Result<Exit, Error> {
    if !is_to_be_handed_over(&end) {
        return end;
    }
    // The output of this job belongs before that of the next one.
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
