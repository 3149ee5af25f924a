//! The names of runs, of files in their private directories, of their queues, and of suspended calls.
//!
//! ```text
//! tmp/RUN/queue/CLASS/NUMBER      a ticket that waits for a worker with what CLASS asks for
//! tmp/RUN/claims/WORKER/NUMBER    a ticket that a worker has, which is a run like any other
//! tmp/RUN/answers/WORKER          what a worker says of the tickets that it had, a line each
//! tmp/RUN/slurm/NAME              a name under which it has submitted workers to Slurm
//! tmp/RUN/slurm/NAME_N.log        what one of these workers prints
//! tmp/WORKER/worker.json          what a worker is
//! c_NAME/CCID/suspended/INPUTS/     the place of a call: `work/`, `log`, `state.json`
//! suspended/KEY                     the short name of the call with this computation, tree and inputs
//! suspended/KEY-COMMIT              the same for one that is not isolated: other commits do not continue it
//! ```

use std::fmt;
use std::str::FromStr;

use super::result::shown;
use super::{ComputationVersion, Digits, RUN_LOGS, RUNS, ResultName, SUSPENDED};
use ce_model::digest::{DIRTY, Digest};

/// How the name of the file begins that says how much a run has announced.
const ROOTS_SIZE: &str = "uses-";

/// The name of a run: `HOST-BOOT-NAMESPACE-PROCESS-TIME`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RunName {
    pub(crate) host: String,
    pub(crate) boot: String,
    pub(crate) namespace: String,
    pub(crate) process: u32,
    pub(crate) time: String,
}

impl RunName {
    /// Whether process numbers mean the same for both runs for certain. A host without `/proc`
    /// knows neither its boot id nor its process namespace: unknown ones may differ, and are never
    /// equal.
    pub(crate) fn is_near(&self, other: &Self) -> bool {
        self.host == other.host
            && self.boot == other.boot
            && self.namespace == other.namespace
            && !self.boot.is_empty()
            && !self.namespace.is_empty()
    }

    /// Its private directory, relative to the storage.
    pub(crate) fn directory(&self) -> String {
        format!("{RUNS}/{self}")
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, boot, namespace, process, time } = self;
        write!(f, "{host}-{boot}-{namespace}-{process}-{time}")
    }
}

impl FromStr for RunName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        // The name must be that of a directory in `tmp/`.
        if text.contains(['/', '\0']) {
            return Err(());
        }
        let parts: Vec<&str> = text.split('-').collect();
        let [host, boot, namespace, process, time] = parts[..] else {
            return Err(());
        };
        let process = process.parse().map_err(drop)?;
        let [host, boot, namespace, time] = [host, boot, namespace, time].map(str::to_owned);
        Ok(Self { host, boot, namespace, process, time })
    }
}

/// The file that a detached run prints to.
pub(crate) fn log_of_run(run: &RunName) -> String {
    format!("{RUN_LOGS}/{run}/log")
}

/// The file beside the log of a run that says that it waits as a job.
pub(crate) fn submission_of_run(run: &RunName) -> String {
    format!("{RUN_LOGS}/{run}/job.json")
}

/// The file in the private directory of a run that says how far it has come.
pub(crate) fn state_of_run(run: &RunName) -> String {
    format!("{}/state.json", run.directory())
}

/// The file in the private directory of a run that lists its garbage collection roots.
pub(crate) fn roots_file(directory: &str) -> String {
    format!("{directory}/uses")
}

/// The empty file beside that whose name says that it has at least so many bytes.
pub(crate) fn roots_size(directory: &str, size: usize) -> String {
    format!("{directory}/{ROOTS_SIZE}{size}")
}

/// The number of bytes that the name of such a file says; 0 if it is another file.
pub(crate) fn size_of_roots(file: &str) -> usize {
    file.strip_prefix(ROOTS_SIZE).and_then(|size| size.parse().ok()).unwrap_or_default()
}

/// The name of an output that waits to be moved to its place.
pub(crate) fn waiting(stage: &str, number: usize) -> String {
    format!("{stage}.{number:02}")
}

/// Whether this may be the name of a stage: one in the private directory of a run.
pub(crate) fn is_stage(stage: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    match stage.split('/').collect::<Vec<_>>()[..] {
        [RUNS, run, slot, call] => {
            run.parse::<RunName>().is_ok() && is_number(slot) && is_number(call)
        }
        _ => false,
    }
}

/// The ending of the names of records in a stage.
pub(crate) const RECORD: &str = ".record";

/// The working directory of `exec`.
pub(crate) const WORK: &str = "work";

/// The directory where a sandboxed `exec` leaves its outputs.
pub(crate) const OUTBOX: &str = "out";

/// The name of the file with the standard output and error of `exec`.
pub const LOG: &str = "log";

/// The key of a call in the index: the same for all commits with the computation's tree.
pub(crate) fn suspension_key(version: ComputationVersion<'_>, inputs: &[Digest]) -> String {
    let ComputationVersion { computation, tree, .. } = version;
    let inputs: Vec<String> = inputs.iter().map(|input| shown(input, Digits::Full)).collect();
    let text = format!("{computation}\n{}\n{}", tree.full(), inputs.join("\n"));
    Digest::of(text.as_bytes()).sha1.full()
}

/// The name of a call's file in the index.
pub(crate) fn suspension_index(
    version: ComputationVersion<'_>,
    inputs: &[Digest],
    isolated: bool,
) -> String {
    let key = suspension_key(version, inputs);
    match (isolated, version.dirty) {
        (true, _) => format!("{SUSPENDED}/{key}"),
        (false, true) => format!("{SUSPENDED}/{key}-{}", DIRTY.trim_end_matches('-')),
        (false, false) => format!("{SUSPENDED}/{key}-{}", version.commit.full()),
    }
}

impl ResultName {
    /// The place of the call while it is suspended, relative to the storage.
    pub fn suspended_place(&self) -> String {
        self.room(SUSPENDED)
    }

    /// The directory that a suspended call finds again.
    pub(crate) fn suspended_work(&self) -> String {
        format!("{}/{WORK}", self.suspended_place())
    }

    /// What a suspended call has printed.
    pub(crate) fn suspended_log(&self) -> String {
        format!("{}/{LOG}", self.suspended_place())
    }

    /// The record of a suspended call.
    pub(crate) fn suspended_state(&self) -> String {
        format!("{}/state.json", self.suspended_place())
    }

    /// Parses the name of a suspended call's place, or of something in it.
    pub fn of_suspended(name: &str) -> Option<Self> {
        let (directory, rest) = name.split_once(&format!("/{SUSPENDED}/"))?;
        directory.starts_with("c_").then_some(())?;
        let mut end = 0;
        for part in rest.split('/') {
            end += part.len();
            // The name goes on in directories that end in an underscore.
            if part == "_" || !part.ends_with('_') {
                break;
            }
            end += 1;
        }
        Some(Self { directory: directory.into(), file: rest.get(..end)?.into() })
    }
}

impl RunName {
    /// The directory of tickets that wait.
    pub(crate) fn queue(&self) -> String {
        format!("{}/queue", self.directory())
    }

    /// The directory of the tickets that wait and ask for the same.
    pub(crate) fn class(&self, class: &str) -> String {
        format!("{}/{class}", self.queue())
    }

    /// The directory of the claims of all workers.
    pub(crate) fn claims(&self) -> String {
        format!("{}/claims", self.directory())
    }

    /// The directory of the tickets that a worker has.
    pub(crate) fn claims_of(&self, worker: &Self) -> String {
        format!("{}/{worker}", self.claims())
    }

    /// The directory of the answers of all workers.
    pub(crate) fn answers(&self) -> String {
        format!("{}/answers", self.directory())
    }

    /// The file of the answers of a worker.
    pub(crate) fn answers_of(&self, worker: &Self) -> String {
        format!("{}/{worker}", self.answers())
    }

    /// The directory of the workers that a run has submitted.
    pub(crate) fn submissions(&self) -> String {
        format!("{}/slurm", self.directory())
    }

    /// The file that says what a worker is.
    pub(crate) fn worker_record(&self) -> String {
        format!("{}/worker.json", self.directory())
    }
}

/// The name of a ticket in a directory. Those of a run sort as they were made.
pub(crate) fn ticket_in(directory: &str, number: u64) -> String {
    format!("{directory}/{number:010}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_and_all_in_it_lead_to_the_call() {
        for file in ["_", "ad48103e4fc7", "a_b_/c"] {
            let name = ResultName { directory: "c_add/567526d1f10f".into(), file: file.into() };
            for place in [name.suspended_place(), name.suspended_work(), name.suspended_state()] {
                assert_eq!(ResultName::of_suspended(&place), Some(name.clone()), "{place}");
            }
        }
        assert_eq!(ResultName::of_suspended("c_add/567526d1f10f/00/_"), None);
    }

    #[test]
    fn only_a_call_that_is_not_isolated_is_one_of_its_commit() {
        let version = ComputationVersion::example();
        let inputs = [Digest::of(b"1")];
        let commit = "2".repeat(40).parse().unwrap();
        let other = ComputationVersion { commit: &commit, ..version };
        let index = |version, isolated| suspension_index(version, &inputs, isolated);
        assert_eq!(index(version, true), index(other, true));
        assert_ne!(index(version, false), index(other, false));
        assert!(index(version, false).starts_with(&index(version, true)));
        assert_ne!(index(version, true), suspension_index(version, &[], true));
    }
}
