//! Runs that are jobs of Slurm themselves, submitted by a user, and then by themselves, before their time is over.

use std::env;
use std::ffi::OsString;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::submitted_workers::worker_program;
use super::{BeginError, Error, Stop};
use ce_executor::scheduler::{CancelScope, JobState, JobToken};
use ce_executor::slurm::{HANDOVER, RunJob, Slurm, SlurmError, SlurmSettings};
use ce_model::exit::{Exit, Explain};
use ce_storage::records::{Provenance, SubmittedRun};

/// The pauses between attempts to submit a job: the first one, and the longest.
const SUBMIT_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(20)];
/// The time for which a job tries to submit itself again. The job's own time is over afterwards.
const SUBMIT_TIMEOUT: Duration = Duration::from_secs(100);
/// The interval at which it is looked at whether the user asks to stop.
const STOP_INTERVAL: Duration = Duration::from_millis(100);

/// A run could not be submitted to Slurm.
#[derive(Debug, thiserror::Error, Explain)]
#[error("the run cannot be submitted")]
#[exit(Missing)]
#[hint(_0.hint())]
struct SubmitError(#[source] SlurmError);

/// A run that is a job, or is to be one.
#[derive(Clone, Copy, Debug)]
pub struct RunJobRequest<'a> {
    /// The user's settings.
    pub settings: &'a SlurmSettings,
    /// The directory of the storage.
    pub storage: &'a Path,
    /// The file that it prints to.
    pub log: &'a Path,
    /// The arguments of `ce`.
    pub arguments: &'a [OsString],
}

impl RunJobRequest<'_> {
    /// Submits it for the first time, with all its jobs under this name. Returns the number of the first.
    ///
    /// # Errors
    ///
    /// Fails if Slurm does not say that it has accepted it. Nothing is left then, as far as Slurm answers.
    pub fn submit(&self, token: &JobToken) -> Result<u64, Error> {
        let slurm = &Slurm::default();
        let submitted = self.submit_as(token, |job| {
            slurm.submit_run(job).inspect_err(|_| {
                // It may have been accepted nevertheless.
                drop(slurm.cancel(token, CancelScope::All));
            })
        });
        Ok(submitted?.map_err(SubmitError)?)
    }

    /// Submits this job again, under the name that it has. A user who asks to stop meanwhile ends the run.
    ///
    /// # Errors
    ///
    /// Fails if this process is not a job, or Slurm does not accept it until its time is over.
    pub fn hand_over(&self) -> Result<Exit, Error> {
        let stop = Stop::watch().map_err(BeginError::new)?;
        let token = own_token().ok_or(SubmitError(SlurmError::NoJob))?;
        let slurm = &Slurm::default();
        let [mut pause, longest] = SUBMIT_PAUSES;
        let begin = Instant::now();
        loop {
            let submitted = self.submit_as(&token, |job| match slurm.submit_run(job) {
                Ok(_) => Ok(()),
                Err(error) => match slurm.jobs(std::slice::from_ref(job.token)) {
                    Ok(jobs) if jobs.iter().any(|job| job.state == JobState::Pending) => Ok(()),
                    _ => Err(error),
                },
            })?;
            if let Some(signal) = stop.caught() {
                self.submit_as(&token, |_| slurm.cancel(&token, CancelScope::Pending))?.ok();
                return Ok(Exit::Interrupted(signal));
            }
            match submitted {
                Ok(()) => return Ok(Exit::Done),
                Err(error) if begin.elapsed() + pause > SUBMIT_TIMEOUT => {
                    return Err(SubmitError(error).into());
                }
                Err(_) => {}
            }
            let waited = Instant::now();
            while waited.elapsed() < pause && stop.caught().is_none() {
                thread::sleep(STOP_INTERVAL);
            }
            pause = (pause * 2).min(longest);
        }
    }

    /// Asks Slurm for something. Every child of the main thread is an orphan of executions, so another thread does it.
    fn submit_as<T: Send>(
        &self,
        token: &JobToken,
        ask: impl FnOnce(&RunJob<'_>) -> Result<T, SlurmError> + Send,
    ) -> Result<Result<T, SlurmError>, Error> {
        let mut command: Vec<OsString> = vec![worker_program()?.into()];
        command.extend(self.arguments.iter().cloned());
        let Self { settings, storage, log, .. } = *self;
        let job = &RunJob { token, settings, directory: storage, log, command: &command };
        let asked = thread::scope(|scope| {
            let asking = thread::Builder::new().spawn_scoped(scope, || ask(job));
            Ok::<_, BeginError>(asking.map_err(BeginError::new)?.join())
        })?;
        Ok(asked.unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

/// The name of the job that this process is.
pub fn own_token() -> Option<JobToken> {
    env::var("SLURM_JOB_NAME").ok()?.parse().ok()
}

/// Removes runs that do not wait any more according to Slurm: they were cancelled. Without an answer, all stay.
pub fn retain_waiting(submitted: &mut Vec<SubmittedRun>) {
    if submitted.is_empty() {
        return;
    }
    let tokens: Vec<JobToken> = submitted.iter().filter_map(|run| run.job.parse().ok()).collect();
    // Every child of the main thread is an orphan of executions, so another thread asks.
    let asked = thread::scope(|scope| {
        let asking = || Slurm::default().jobs(&tokens);
        let asking = thread::Builder::new().spawn_scoped(scope, asking).ok()?;
        asking.join().ok()
    });
    if let Some(Ok(jobs)) = asked {
        let me = Provenance::now().user;
        // Slurm was asked for the jobs of this user.
        submitted.retain(|run| {
            run.recorded.user != me
                || jobs.iter().any(|it| it.token.as_str() == run.job && it.state != JobState::Ended)
        });
    }
}

/// Whether a run has ended because it is to submit itself again.
pub fn is_to_be_handed_over(end: &Result<Exit, Error>) -> bool {
    let exit = end.as_ref().map_or_else(Error::exit, |exit| *exit);
    exit == Exit::Interrupted(HANDOVER)
}
