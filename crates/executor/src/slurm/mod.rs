//! Slurm: allocations for workers, and the steps in one that execute a call on several tasks.
//!
//! A worker is one task of a job array. An array has a random [`JobToken`] as its name, which its submitter writes down
//! before `sbatch` begins: whatever happens to `sbatch`, the token finds the jobs, so none is submitted twice.
//!
//! `settings` are the user's, `client` asks Slurm by its programs, and `jobs` writes what these take and reads what they print.
//! `allocation` is the one that a worker is in. `pool` decides what to ask: it is pure, and knows neither processes nor the time.
//! Slurm is only the second opinion: what it does not answer is unknown, and a worker is alive once it has said hello.

mod allocation;
mod client;
mod jobs;
mod pool;
mod settings;

pub use self::allocation::Allocation;
pub(super) use self::allocation::{StatusFiles, hidden, is_of_allocation};
pub use self::client::{CancelScope, Slurm, SlurmError, haste};
pub use self::jobs::{
    ArrayTask, HANDOVER, JobState, JobToken, RunJob, SlurmJob, Submission, WorkerRequest,
};
pub use self::pool::{PoolAction, WorkerDemand, WorkerPool};
pub use self::settings::{SlurmSetting, SlurmSettingError, SlurmSettings, SlurmSettingsError};
