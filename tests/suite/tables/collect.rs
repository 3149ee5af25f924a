//! Tables are collected like other results, and keep what their recipes name.

use std::fs;

use compeval::storage::{Durability, Job, Storage, TaskVersion, Unrecorded};

use super::{lab, open, stored, sweep};
use crate::faults::{is_taken, stride};
use crate::lab::Lab;
use crate::lisp;

const ALL: [&str; 5] = ["gc", "--delete", "--older=0s", "--no-keep", "../storage"];

/// Keeps the results of the task's reachable commits.
const KEEP: [&str; 4] = ["gc", "--delete", "--keep=.", "../storage"];

/// Publishes the table with its directory. Returns its short name.
fn published(lab: &Lab) -> String {
    let storage = open(lab);
    sweep(lab, &storage).publish(&storage, true).short()
}

/// The numbers of calls and of tables that the storage has.
fn left(lab: &Lab) -> [usize; 2] {
    let names = lab.storage();
    let count = |top: &str, end: &str| {
        let is = |name: &&String| name.starts_with(top) && name.ends_with(end);
        names.iter().filter(is).filter(|name| name.contains("/record/")).count()
    };
    [count("c_make/", ".json"), count("tables/", ".json")]
}

#[track_caller]
fn is_sound(lab: &Lab) {
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
    assert!(lab.is_tidy());
}

#[test]
fn a_table_of_collected_calls_is_collected() {
    let lab = lab();
    let name = published(&lab);
    let list = ["gc", "--older=0s", "--no-keep", "../storage"];
    lab.unchanged(|| lab.run("ce", &list).exit(0).shows(&format!("{name}/00")));
    lab.run("ce", &ALL).exit(0);
    assert_eq!(left(&lab), [0, 0]);
    assert_eq!(fs::read_dir(stored(&lab, &name)).unwrap().count(), 0);
    lab.run("ce", &["show", "../storage", &format!("{name}/00")]).exit(2).says("was collected at");
    is_sound(&lab);
    // It is made again, and its tombstone goes.
    let again = super::lab();
    let storage = open(&lab);
    let sweep = sweep(&again, &open(&again));
    assert_eq!(sweep.publish(&storage, false).short(), name);
    drop(storage);
    let tombstone = name.replacen("tables", "tables/collected", 1) + ".json";
    assert!(!stored(&lab, &tombstone).exists());
    is_sound(&lab);
}

/// A job, a call and a pin keep a table, and that keeps its calls.
#[test]
fn a_root_that_keeps_a_table_keeps_its_calls() {
    for keeper in ["pin", "recipe", "job", "directory of a job", "call", "member"] {
        let lab = lab();
        let name = published(&lab);
        let pinned = match keeper {
            "pin" => format!("{name}/00"),
            "recipe" => format!("{name}/recipe"),
            "job" => job(&lab, &format!("{name}/00")),
            "directory of a job" => job(&lab, &format!("{name}/01")),
            "call" => call(&lab, &format!("FILE('{name}/00')")),
            _ => call(&lab, &format!("MEMBER('x=1/tenfold' FILE('{name}/01'))")),
        };
        lab.run("ce", &["pin", "../storage", &pinned]).exit(0);
        lab.run("ce", &ALL).exit(0);
        assert_eq!(left(&lab), [2, 1], "{keeper}");
        is_sound(&lab);
        lab.run("ce", &["pin", "--remove", "../storage", &pinned]).exit(0);
        lab.run("ce", &ALL).exit(0);
        assert_eq!(left(&lab), [0, 0], "{keeper}");
        is_sound(&lab);
    }
}

/// The workflow of a commit that is kept names the table, and the call that reads it is gone.
#[test]
fn a_literal_keeps_its_table() {
    let lab = lab();
    let name = published(&lab);
    let call = call(&lab, &format!("FILE('{name}/00')"));
    fs::remove_dir_all(stored(&lab, call.split('/').next().unwrap())).unwrap();
    let lab = without_history(lab);
    lab.run("ce", &KEEP).exit(0);
    assert_eq!(left(&lab), [2, 1]);
    is_sound(&lab);
}

/// No job need have it: the job of a task with failed points is not kept.
#[test]
fn a_table_of_calls_that_commits_keep_is_kept_with_them() {
    let lab = lab();
    published(&lab);
    lab.run("ce", &KEEP).exit(0);
    assert_eq!(left(&lab), [2, 1]);
    // Another commit would use all of it.
    let lab = without_history(lab.file("README", ""));
    lab.run("ce", &KEEP).exit(0);
    assert_eq!(left(&lab), [2, 1]);
    let lab = without_history(lab.file("computations/make/README", ""));
    lab.run("ce", &KEEP).exit(0);
    assert_eq!(left(&lab), [0, 0]);
    is_sound(&lab);
}

/// Commits the task as it stands as if there had been no commit before.
fn without_history(lab: Lab) -> Lab {
    fs::remove_dir_all(lab.path("task/.git")).unwrap();
    lab.commit()
}

/// Stores a job with one output. Returns its name.
fn job(lab: &Lab, output: &str) -> String {
    let storage = open(lab);
    let output = storage.inputs().literal(output).unwrap().unwrap();
    let (name, commit) = ("task".parse().unwrap(), "1".repeat(40).parse().unwrap());
    let task = TaskVersion::new(&name, &commit, "");
    let outputs = [output];
    let job = Job {
        task,
        names: &[],
        inputs: &[],
        literals: &[],
        own: &[],
        named: &[],
        revisions: &[],
        outputs: &outputs,
        is_away: false,
        calls: Vec::new(),
    };
    let job = storage.jobs().publish(&job).unwrap().output(0);
    storage.flush().unwrap();
    let path = lab.path("storage");
    let storage = Storage::open(&path, Unrecorded::Adopt, Durability::Unsynced).unwrap();
    let found = storage.jobs().of(task).find(&[], &|_| false).unwrap().unwrap();
    assert_eq!(found[0].file, outputs[0].name);
    job
}

/// Executes a call that reads something. Returns its output.
fn call(lab: &Lab, input: &str) -> String {
    let task = lab.path("task");
    fs::remove_dir_all(task.join("workflow")).unwrap();
    let dir = task.join("computations/read");
    fs::create_dir_all(&dir).unwrap();
    for (name, text) in [("inputs", "a\n"), ("outputs", "b\n")] {
        fs::write(dir.join(name), text).unwrap();
    }
    fs::write(dir.join("exec"), "#!/bin/sh\ncat \"$1\" >\"$2\"\n").unwrap();
    std::process::Command::new("chmod").arg("+x").arg(dir.join("exec")).status().unwrap();
    lisp::write(&task, &lisp::text(&format!("Inputs: 'x'\n(read {input})[0]")));
    crate::repository::commit(&task, crate::repository::LAB, "task\n");
    let ran = lab.ce_run(&["-q"]).exit(0);
    ran.lines()[0].replace("../storage/", "")
}

#[test]
fn a_table_that_a_run_looks_for_stays() {
    let lab = lab();
    let name = published(&lab);
    let storage = open(&lab);
    let sweep = sweep(&lab, &storage);
    assert_eq!(sweep.publish(&storage, true).short(), name);
    lab.run("ce", &ALL).exit(0).says(&format!("{name}/00 stays: it is in use"));
    // And so do its origins.
    assert_eq!(left(&lab), [2, 1]);
    assert_eq!(sweep.publish(&storage, true).short(), name);
    drop(storage);
    is_sound(&lab);
}

#[test]
#[cfg(debug_assertions)]
fn a_collection_that_dies_or_fails_harms_nothing() {
    let lab = lab();
    let name = published(&lab);
    lab.copy("storage", "full");
    let faults = [":KILL", "+:EIO", ":EACCES"];
    for (case, at) in (1..).step_by(stride(4)).enumerate() {
        lab.copy("full", "storage");
        let fault = format!("{at}{}", faults[case % faults.len()]);
        let ran = lab.finish(lab.command("ce").args(ALL).env("CE_FAULT", &fault));
        if !ran.stderr.contains("fault at operation") {
            assert!(at > 100, "{at} operations");
            return;
        }
        let ran = lab.run("ce", &["verify", "../storage"]);
        assert_eq!(ran.status.code(), Some(0), "{fault} {} {}", ran.stdout, ran.stderr);
        // Two ways on: another collection, and a run.
        let way = case / faults.len();
        if is_taken(way, 0, 2) {
            lab.copy("storage", "left");
            lab.run("ce", &ALL).exit(0);
            assert_eq!(left(&lab), [0, 0], "{fault}");
            for part in ["00", "01", "recipe"] {
                assert!(!stored(&lab, &format!("{name}/{part}")).exists(), "{fault} {part}");
            }
            lab.copy("left", "storage");
        }
        if !is_taken(way, 1, 2) {
            continue;
        }
        for level in super::LEVELS {
            fs::write(lab.path("data/x"), format!("{level}\n")).unwrap();
            lab.ce_run(&[]).exit(0);
        }
        assert_eq!(published(&lab), name, "{fault}");
        let ran = lab.run("ce", &["verify", "../storage"]).exit(0);
        assert!(!ran.stdout.contains("tables/"), "{fault} {}", ran.stdout);
        assert!(lab.is_tidy(), "{fault}");
    }
}
