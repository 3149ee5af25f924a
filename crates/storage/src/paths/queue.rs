//! Names of the queue of a run, in its private directory, and of what a worker says of itself.
//!
//! ```text
//! tmp/RUN/queue/CLASS/NUMBER      a ticket that waits for a worker with what CLASS asks for
//! tmp/RUN/claims/WORKER/NUMBER    a ticket that a worker has, which is a run like any other
//! tmp/RUN/answers/WORKER          what a worker says of the tickets that it had, a line each
//! tmp/RUN/slurm/NAME              a name under which it has submitted workers to Slurm
//! tmp/RUN/slurm/NAME_N.log        what one of these workers prints
//! tmp/WORKER/worker.json          what a worker is
//! ```

use super::RunName;

/// The directory of tickets that wait.
pub(crate) fn queue(run: &RunName) -> String {
    format!("{}/queue", run.directory())
}

/// The directory of the tickets that wait and ask for the same.
pub(crate) fn class(run: &RunName, class: &str) -> String {
    format!("{}/{class}", queue(run))
}

/// The directory of the claims of all workers.
pub(crate) fn claims(run: &RunName) -> String {
    format!("{}/claims", run.directory())
}

/// The directory of the tickets that a worker has.
pub(crate) fn claims_of(run: &RunName, worker: &RunName) -> String {
    format!("{}/{worker}", claims(run))
}

/// The directory of the answers of all workers.
pub(crate) fn answers(run: &RunName) -> String {
    format!("{}/answers", run.directory())
}

/// The file of the answers of a worker.
pub(crate) fn answers_of(run: &RunName, worker: &RunName) -> String {
    format!("{}/{worker}", answers(run))
}

/// The directory of the workers that a run has submitted.
pub(crate) fn submissions(run: &RunName) -> String {
    format!("{}/slurm", run.directory())
}

/// The file that says what a worker is.
pub(crate) fn worker(run: &RunName) -> String {
    format!("{}/worker.json", run.directory())
}

/// The name of a ticket in a directory. Those of a run sort as they were made.
pub(crate) fn ticket(directory: &str, number: u64) -> String {
    format!("{directory}/{number:010}")
}
