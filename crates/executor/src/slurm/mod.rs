//! Slurm: allocations for workers, and the steps in one that execute a call on several tasks.
//!
//! A worker is one task of a job array, whose name is a token. The token finds the jobs even if `sbatch` fails, so none is
//! submitted twice.
//!
//! `settings` are the user's, `client` asks Slurm by its programs, and `jobs` writes what these take and reads what they print.
//! `allocation` is the one that a worker is in.

mod allocation;
mod client;
mod jobs;
mod settings;

pub use self::allocation::Allocation;
pub(super) use self::allocation::{StatusFiles, hidden, is_of_allocation};
pub use self::client::{Slurm, SlurmError, SlurmScheduler};
pub use self::jobs::{HANDOVER, RunJob};
pub use self::settings::SlurmSettings;
