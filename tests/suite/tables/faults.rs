//! A table is published in another process, and any of its operations fails or kills it.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use compeval::storage::{Durability, LongText, Storage, StorageError, Unrecorded};

use super::{Sweep, aside, lab, open, sweep, sweep_in};
use crate::faults::stride;
use crate::lab::Lab;

/// The storage of the other process.
const PLACE: &str = "TABLE_STORAGE";

/// The message of the other process for an error of a read-only storage.
const READ_ONLY: &str = "the storage is read-only";

/// This is the other process: it publishes the table without its directory, and then with it.
#[test]
#[ignore = "it is started by other tests"]
fn other_process() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else { return };
    compeval::umask::take();
    let publish = || -> Result<(), StorageError> {
        let storage = Storage::open(&place, Unrecorded::Refuse, Durability::Synced)?;
        let Sweep { recipe, table, directory } = sweep_in(&place, &storage)?;
        storage.tables().publish(&recipe, &LongText::of_bytes(&table), None)?;
        storage.flush()?;
        storage.tables().publish(&recipe, &LongText::of_bytes(&table), Some(&directory))?;
        storage.flush()
    };
    if let Err(error) = publish() {
        assert!(!error.is_read_only(), "{READ_ONLY}");
        panic!("{error:?}");
    }
}

/// The other process, started by a program that is given it as its last arguments.
fn other(lab: &Lab, starter: &[&str]) -> Command {
    let mut other = Command::new("env");
    other.args(starter).arg(std::env::current_exe().unwrap());
    other.args(["--exact", "tables::faults::other_process", "--ignored", "--nocapture"]);
    other.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    other.env(PLACE, lab.path("storage")).stdin(Stdio::null());
    other
}

/// Publishes in another process with a fault. Returns its output, and whether the fault was reached.
#[cfg(debug_assertions)]
fn publish_with(lab: &Lab, fault: &str) -> (String, bool) {
    let output = other(lab, &[]).env("CE_FAULT", fault).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    let reached = said.contains("fault at operation");
    if !reached {
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }
    (said, reached)
}

/// Nothing is damaged, and another run publishes the table.
#[track_caller]
fn recovers(lab: &Lab, fault: &str) {
    let ran = lab.run("ce", &["verify", "../storage"]);
    assert_eq!(ran.status.code(), Some(0), "{fault}\n{}\n{}", ran.stdout, ran.stderr);
    let storage = open(lab);
    let sweep = sweep(lab, &storage);
    let name = sweep.publish(&storage, false);
    assert_eq!(sweep.publish(&storage, true), name, "{fault}");
    drop(storage);
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
    assert_eq!(aside(lab), [""; 0], "{fault}");
    assert!(lab.is_tidy(), "{fault}: {:?}", lab.storage());
}

/// Lets every third operation from the given one on, or each with `CE_KILLS`, fail or kill the process, in one way after the other.
#[cfg(debug_assertions)]
fn fail_everywhere(from: usize, faults: &[&str], check: impl Fn(&str, &str)) {
    let lab = lab();
    lab.copy("storage", "full");
    let step = stride(3);
    for (at, fault) in (from.min(step)..).step_by(step).zip(faults.iter().cycle()) {
        lab.copy("full", "storage");
        let fault = format!("{at}{fault}");
        let (said, reached) = publish_with(&lab, &fault);
        if !reached {
            assert!(at > 100, "{at} operations failed");
            return;
        }
        check(&fault, &said);
        recovers(&lab, &fault);
    }
}

#[test]
#[cfg(debug_assertions)]
fn a_run_that_dies_leaves_nothing_or_a_whole_table() {
    fail_everywhere(1, &[":KILL"], |_, _| {});
}

#[test]
#[cfg(debug_assertions)]
fn a_disk_that_fails_leaves_nothing_or_a_whole_table() {
    fail_everywhere(2, &[":EIO", "+:ENOSPC", ":EACCES", "+:EROFS"], |fault, said| {
        // A failure that only costs time is not an error.
        let is_read_only = said.contains(READ_ONLY) || said.contains("1 passed");
        assert!(!fault.ends_with("EROFS") || is_read_only, "{fault} {said}");
    });
}

/// Files made in a storage that a group shares are the group's, regardless of the umask.
#[test]
fn a_shared_storage_shares_its_tables() {
    let lab = lab();
    let storage = lab.path("storage");
    let share = "chmod -R g+rX \"$0\" && find \"$0\" -type d -exec chmod g+ws {} +";
    assert!(Command::new("sh").args(["-c", share]).arg(&storage).status().unwrap().success());
    let umask = ["sh", "-c", "umask 077; exec \"$0\" \"$@\""];
    assert!(other(&lab, &umask).output().unwrap().status.success());
    let mut files = 0;
    for entry in walkdir::WalkDir::new(storage.join("tables")) {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().mode() & 0o7777;
        let rights = if entry.file_type().is_dir() { 0o2070 } else { 0o040 };
        assert!(entry.path_is_symlink() || mode & rights == rights, "{mode:o} {entry:?}");
        files += usize::from(entry.file_type().is_file());
    }
    assert_eq!(files, 8);
    recovers(&lab, "publishing");
}
