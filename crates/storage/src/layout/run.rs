//! Names of runs, which are those of their private directories.

use std::fmt;
use std::str::FromStr;

use super::{RUN_LOGS, RUNS};

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
