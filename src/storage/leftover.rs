//! What a run leaves behind when it dies: a directory in `tmp/` that says whose it was.
//!
//! A run that finds the directory of a dead one on the same host puts in place what was already
//! decided, and removes the rest.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::record::CallRecord;
use super::scheme::{DIGITS, ResultName};
use super::{Call, Storage, disk};
use crate::workflow::Computation;

/// Where the private directories of runs are.
const ROOM: &str = "tmp";

/// Who is running: a process of a host, since its last start.
#[derive(Debug)]
pub(super) struct Run {
    host: String,
    directory: String,
}

impl Run {
    pub(super) fn new() -> Self {
        let host = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        let pid = std::process::id();
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let mark = mark(&host);
        let directory = format!("{ROOM}/{mark}{pid}-{:x}", since.as_nanos());
        Self { host, directory }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The directory that is this run's own, relative to the storage.
    pub(super) fn directory(&self) -> &str {
        &self.directory
    }
}

/// What the directories of all runs on a host begin with.
fn mark(host: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let host: String = host.chars().map(plain).take(64).collect();
    format!("{host}-{}-", boot())
}

/// Which start of the host this is: process numbers begin anew with each.
fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.chars().filter(char::is_ascii_hexdigit).take(8).collect()
}

/// Whether the run that made this directory is certainly over.
fn is_over(directory: &str, host: &str) -> bool {
    let mark = mark(host);
    let Some(rest) = directory.strip_prefix(&mark) else {
        return false;
    };
    let pid = rest.split('-').next().and_then(|pid| pid.parse().ok());
    let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) else {
        return false;
    };
    rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH)
}

impl Storage {
    /// Clears away what dead runs of this host have left. Failing to do so harms nothing.
    pub(super) fn clear_leftovers(&self) {
        for run in disk::list(&self.path(ROOM)).unwrap_or_default() {
            let name = run.file_name().and_then(OsStr::to_str);
            if name.is_some_and(|name| is_over(name, self.run.host())) {
                for stage in disk::list(&run).unwrap_or_default() {
                    self.finish(&stage.join("record"));
                }
                drop(disk::remove_tree(&run));
            }
        }
    }

    /// Moves the outputs of an execution that had won to their places.
    fn finish(&self, record: &Path) {
        let Ok(Some(text)) = disk::read(record) else {
            return;
        };
        let Ok(record) = serde_json::from_slice::<CallRecord>(&text) else {
            return;
        };
        let computation = Computation {
            name: record.computation.clone(),
            commit: record.commit.clone(),
            tree: record.tree.clone(),
            inputs: Vec::new(),
            outputs: vec![String::new(); record.outputs.len()],
            exec: std::path::PathBuf::new(),
        };
        let call = Call {
            computation: &computation,
            inputs: &record.inputs,
        };
        for digits in DIGITS {
            let name = ResultName::of_call(&computation, call.inputs, digits);
            // Looking at the call moves what is waiting, if this execution is the recorded one.
            drop(self.state(&name, call));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_dead_of_this_host_are_over() {
        let run = Run::new();
        let own = run.directory().strip_prefix("tmp/").unwrap();
        assert!(!is_over(own, run.host()));
        assert!(!is_over(own, "elsewhere"));
        let dead = format!("{}{}-1", mark(run.host()), i32::MAX);
        assert!(is_over(&dead, run.host()));
        assert!(!is_over("mine", run.host()));
    }
}
