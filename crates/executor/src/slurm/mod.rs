//! Slurm: allocations for workers, and the steps in one that execute a call on several tasks.
//!
//! A worker is one task of a job array. An array has a random [`JobToken`] as its name, which its submitter writes down
//! before `sbatch` begins: whatever happens to `sbatch`, the token finds the jobs, so none is submitted twice.
//!
//! `settings` are the user's, `submission` is a job as a script and options, `run_job` a run that is a job, `command` runs a program for a limited
//! time, and `client` asks Slurm. `allocation` is the one that a worker is in, and `guard` ends an `srun` with its worker. `pool` decides what to ask: it is pure, and knows neither processes nor the time.
//! Slurm is only the second opinion: what it does not answer is unknown, and a worker is alive once it has said hello.

mod allocation;
mod client;
mod command;
mod error;
mod guard;
mod pool;
mod run_job;
mod settings;
mod squeue;
mod submission;
mod token;

pub use self::allocation::Allocation;
pub(super) use self::allocation::{StatusFiles, is_of_allocation};
pub use self::client::{CancelScope, Slurm, haste};
pub use self::error::SlurmError;
pub(super) use self::guard::hidden;
pub use self::pool::{PoolAction, WorkerDemand, WorkerPool};
pub use self::run_job::{HANDOVER, RunJob};
pub use self::settings::{SlurmSetting, SlurmSettingError, SlurmSettings, SlurmSettingsError};
pub use self::squeue::{JobState, SlurmJob};
pub use self::submission::{Submission, WorkerRequest};
pub use self::token::{ArrayTask, JobToken};
