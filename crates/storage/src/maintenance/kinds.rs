//! What stands in the places of the layout: a directory where others have their names, a file where a file is read.
//!
//! Values are compared with their records, so what stands in their places is not looked at here; nor is what is in
//! quarantine, in an export, or in a directory that the layout does not have.

use rustix::fs::FileType;

use super::Survey;
use crate::disk::Result;
use crate::layout::{
    AWAY, COLLECTED, DIRECTORIES, FAILED, GATE, LEASES, LEDGER, LOGS, MANIFESTS, OWNER, PINS,
    QUARANTINE, RECORDS, REPOSITORIES, REVOKED, ROOMS, RUN_LOGS, RUNS, RunName, SIGNERS, SUSPENDED,
    TABLES, TASK_INPUTS, TREES, is_value,
};
use crate::records::{Defect, Finding};
use ce_model::digest::DIRTY;

/// What belongs in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// A directory, and what is in it has places, too.
    Directory,
    /// A directory with anything in it.
    Closed,
    /// A plain file.
    File,
    /// Anything.
    Any,
}

use Expected::{Any, Closed, Directory, File};

/// The directories whose files are named by hashes, of which the first two digits are a directory.
const HASHED: [&str; 4] = [MANIFESTS, DIRECTORIES, LEDGER, SIGNERS];

impl Survey<'_> {
    /// Returns the places of the layout in which something of another kind is, sorted.
    ///
    /// # Errors
    ///
    /// Fails if a directory cannot be read.
    pub fn unlike(&self) -> Result<Vec<Finding>> {
        let root = &self.storage.root;
        let mut findings = Vec::new();
        let mut open = vec![String::new()];
        while let Some(directory) = open.pop() {
            for (name, kind) in root.disk.kinds(&root.path(&directory))? {
                let name = if directory.is_empty() { name } else { format!("{directory}/{name}") };
                let defect = match (expected(&name), kind) {
                    (Any, _) | (Closed, FileType::Directory) | (File, FileType::RegularFile) => {
                        continue;
                    }
                    (Directory, FileType::Directory) => {
                        open.push(name);
                        continue;
                    }
                    (Directory | Closed, FileType::Symlink) => Defect::Link,
                    (Directory | Closed, _) => Defect::NotADirectory,
                    (File, _) => Defect::NotAFile,
                };
                findings.push(Finding { name, defect });
            }
        }
        findings.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(findings)
    }
}

/// What belongs in a place, all directories above which are those of the layout. A name that the layout does not have is a
/// user's own.
fn expected(name: &str) -> Expected {
    let parts: Vec<&str> = name.split('/').collect();
    let (top, inner) = (parts[0], &parts[1..]);
    let (is_call, is_task) = (top.starts_with("c_"), top.starts_with("t_"));
    match inner {
        [] if is_call || is_task || ROOMS.contains(&top) || top == DIRECTORIES => Directory,
        ["commits", rest @ ..] if is_call => match rest {
            [] | ["running"] => Directory,
            [tree] if is_digits(tree) => Directory,
            [_, _] => File,
            _ => Any,
        },
        [version, rest @ ..] if (is_call || is_task) && is_version(version) => of_version(rest),
        [shard, rest @ ..] if top == TASK_INPUTS => of_shard(shard, rest, Any),
        [shard, rest @ ..] if top == TABLES => match rest {
            [_, "00" | "recipe"] if is_shard(shard) => File,
            _ => of_shard(shard, rest, Directory),
        },
        _ if name == GATE => File,
        [run, rest @ ..] if top == RUNS => of_run(run, rest),
        [run, rest @ ..] if top == RUN_LOGS && run.parse::<RunName>().is_ok() => match rest {
            [] => Directory,
            ["log" | "job.json"] => File,
            _ => Any,
        },
        [QUARANTINE] if top == TREES || top == LEDGER => Closed,
        [tree] if top == TREES && is_digits(tree) => Closed,
        [shard, rest @ ..] if HASHED.contains(&top) && is_shard(shard) => match rest {
            [] => Directory,
            [file] if is_digits(file.split('.').next().unwrap_or_default()) => File,
            _ => Any,
        },
        [file] if top == REPOSITORIES && file.ends_with(".json") => File,
        [key] if top == SUSPENDED && key.split('-').next().is_some_and(is_digits) => File,
        [.., file] if top == REVOKED && file.ends_with(".json") => File,
        [_, ..] if top == REVOKED => Directory,
        _ => Any,
    }
}

/// What belongs in the directory of a version of a computation or a task.
fn of_version(rest: &[&str]) -> Expected {
    match rest {
        [] => Directory,
        [OWNER] => File,
        [QUARANTINE, ..] => Closed,
        [room] if is_number(room) => Directory,
        // A value, unless its name goes on.
        [room, .., last] if is_number(room) => {
            if is_value(last) {
                Any
            } else {
                Directory
            }
        }
        [RECORDS | COLLECTED | PINS | FAILED | LOGS | AWAY | LEASES | SUSPENDED] => Directory,
        [RECORDS | COLLECTED | PINS, .., last] => match last {
            record if record.ends_with(".json") => File,
            other => {
                if is_value(other) {
                    Any
                } else {
                    Directory
                }
            }
        },
        [FAILED | LOGS | AWAY | LEASES, .., last] => {
            if is_value(last) {
                File
            } else {
                Directory
            }
        }
        [SUSPENDED, .., "work"] => Closed,
        [SUSPENDED, .., "log" | "state.json"] => File,
        [SUSPENDED, .., before, _] if is_value(before) => Any,
        [SUSPENDED, ..] => Directory,
        _ => Any,
    }
}

/// What belongs in a directory whose names have two digits of a hash in front, beside its rooms.
fn of_shard(shard: &str, rest: &[&str], value: Expected) -> Expected {
    match (shard, rest) {
        (QUARANTINE, _) => Closed,
        (RECORDS | COLLECTED | PINS, [] | [_]) => Directory,
        (RECORDS | COLLECTED | PINS, [.., last]) if last.ends_with(".json") => File,
        (shard, []) if is_shard(shard) => Directory,
        (shard, [name]) if is_shard(shard) && is_digits(name) => value,
        _ => Any,
    }
}

/// What belongs in the private directory of a run.
fn of_run(run: &str, rest: &[&str]) -> Expected {
    match rest {
        [] if run.parse::<RunName>().is_ok() => Directory,
        ["run" | "uses" | "beat" | "state.json" | "executing" | "worker.json"] => File,
        ["queue" | "claims" | "answers"] | ["queue" | "claims", _] => Directory,
        ["queue" | "claims", _, _] | ["answers", _] => File,
        ["slurm"] => Closed,
        _ => Any,
    }
}

fn is_number(room: &str) -> bool {
    room.len() == 2 && room.bytes().all(|digit| digit.is_ascii_digit())
}

fn is_shard(name: &str) -> bool {
    name.len() == 2 && is_digits(name)
}

fn is_digits(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Whether a directory may be that of a version, as its name tells.
fn is_version(name: &str) -> bool {
    name.strip_prefix(DIRTY).unwrap_or(name).split('-').all(is_digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_of_the_layout_is_for_one_kind() {
        for (name, kind) in [
            ("c_x", Directory),
            ("c_x/commits/0123/abcd", File),
            ("c_x/notes", Any),
            ("c_x/commits/running/0123", File),
            ("c_x/0123/01", Directory),
            ("c_x/0123/01/ab_cd", Any),
            ("c_x/0123/01/ab_/cd", Any),
            ("c_x/0123/record/ab_", Directory),
            ("c_x/0123/record/ab_/cd.json", File),
            ("c_x/0123/log/ab_cd", File),
            ("c_x/0123/suspended/ab_cd", Directory),
            ("c_x/0123/suspended/ab_cd/work", Closed),
            ("c_x/0123/suspended/ab_cd/log", File),
            ("c_x/0123/aside/ab_cd", Closed),
            ("t_x/0123/version.json", File),
            ("tinputs/ab/cd", Any),
            ("tinputs/record/ab/cd.json", File),
            ("tables/ab/cd", Directory),
            ("tables/ab/mine", Any),
            ("tables/ab/cd/recipe", File),
            ("tables/ab/cd/01", Any),
            ("tables/record/ab/cd.json", File),
            ("ledger/ab/cd.ndjson", File),
            ("signers/ab/cd.json", File),
            ("trees/abcd", Closed),
            ("trees/aside", Closed),
            ("manifests/ab/cd", File),
            ("repositories/ab.json", File),
            ("suspended/ab", File),
            ("revoked/c_x/01/record/ab/cd.json", File),
            ("tmp/collecting", File),
            ("tmp/h-b-1-2-t", Directory),
            ("tmp/h-b-1-2-t/beat", File),
            ("tmp/h-b-1-2-t/0", Any),
            ("runs/h-b-1-2-t/log", File),
            ("mine", Any),
            ("README.md", Any),
        ] {
            assert_eq!(expected(name), kind, "{name}");
        }
    }
}
