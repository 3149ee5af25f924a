//! Options that many commands have mean the same in each.

use std::path::Path;

use crate::lab::Lab;
use crate::program::Ran;

const SUM: &str = "Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))[0]";

/// A task that was evaluated into the configured storage; and its output, seen from a directory in the task.
fn configured() -> (Lab, String) {
    let lab = Lab::task(SUM).file("notes/today", "").commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    lab.git("task", &["config", "compeval.storage", "../storage"]);
    let outputs = lab.storage().into_iter().filter(|name| name.starts_with("c_add/"));
    let output = outputs.filter(|name| name.contains("/00/")).collect();
    (lab, output)
}

/// Runs `ce` in a directory of the laboratory.
fn ce<'a>(lab: &'a Lab, dir: &str, arguments: &[&str]) -> Ran<'a> {
    lab.finish(lab.command("ce").current_dir(lab.path(dir)).args(arguments))
}

#[test]
fn the_configured_storage_is_found_from_a_subdirectory() {
    let (lab, output) = configured();
    let call = output.replace("/00/", "/");
    for (arguments, shown) in [
        (&["log"][..], "  add  "),
        (&["verify"], ""),
        (&["gc"], ""),
        (&["status"], ""),
        (&["gc", "--repositories"], "LAB/task"),
        (&["worker", "--idle", "0s", "-q"], ""),
        (&["pin", "--note", "figure 3", &output], ""),
        (&["pin"], "figure 3"),
        (&["cite", &output], "of task task, version"),
        (&["cancel", "--all"], ""),
        (&["audit", "-n", "--task", ".", &call], "c_add/"),
    ] {
        ce(&lab, "task/notes", arguments).exit(0).shows(shown);
    }
    // A laboratory may be in memory, which breaks a promise.
    let doctor = lab.finish(lab.command("ce").current_dir(lab.path("task/notes")).arg("doctor"));
    assert!(doctor.stdout.contains("ok      exclusive files"), "{}", doctor.stdout);
    ce(&lab, "task/notes", &["pin", "../../storag"]).exit(5).says("did you mean");
    ce(&lab, "task/notes", &["forget", &call]).exit(2).says("is not suspended");
    ce(&lab, "task/notes", &["cancel"]).exit(2).says("no call is given").says("try: give names");
    ce(&lab, "task/notes", &["cancel", "--all", &call]).exit(2).says("leave out one of them");
    ce(&lab, "task/notes", &["pin", "--remove"]).exit(2).says("--remove needs a file");
}

#[test]
fn the_path_of_a_file_tells_the_storage() {
    let (lab, output) = configured();
    lab.git("task", &["config", "compeval.storage", "../other"]);
    let path = format!("../storage/{output}");
    for dir in ["task", "data"] {
        ce(&lab, dir, &["cite", &path]).exit(0).shows("of task task, version");
        ce(&lab, dir, &["pin", &path]).exit(0);
        ce(&lab, dir, &["forget", &path]).exit(2).says("is not suspended");
    }
    assert!(!Path::new(&lab.path("other")).exists());
    ce(&lab, "storage", &["cite", &output]).exit(0).shows("of task task, version");
    ce(&lab, "storage", &["pin", "--remove", &output]).exit(0);
    ce(&lab, "task", &["pin", "../storage"]).exit(0).shows("");
}

#[test]
fn without_a_setting_a_storage_must_be_named() {
    let (lab, _) = configured();
    for arguments in [&["log"][..], &["verify"], &["gc"], &["pin"], &["doctor"], &["cite", "5d94"]]
    {
        let ran = ce(&lab, "data", arguments).exit(2);
        ran.says("no storage is given").says("try: give it as the first argument");
    }
    for arguments in [&["log", "../storag"][..], &["pin", "../storag"], &["verify", "../storag"]] {
        ce(&lab, "data", arguments).exit(5).says("did you mean ../storage?");
    }
}

#[test]
fn both_ends_of_an_exchange_may_be_settings() {
    let (lab, _) = configured();
    lab.git("data", &["init", "-q", "--bare", "../results.git"]);
    let push = |arguments: &[&str]| ce(&lab, "task/notes", &[&["push", "-n"], arguments].concat());
    push(&[]).exit(2).says("no repository is given");
    push(&["../../results.git"]).exit(3).shows("1 call");
    lab.git("task", &["config", "compeval.results", "../results.git"]);
    push(&[]).exit(3).shows("1 call");
    push(&["../../storage"]).exit(3).shows("1 call");
    push(&["../../storage", "../../results.git"]).exit(3).shows("1 call");
    ce(&lab, "task/notes", &["push"]).exit(0);
    lab.git("task", &["config", "compeval.storage", "../pulled"]);
    ce(&lab, "task/notes", &["pull"]).exit(0);
    ce(&lab, "task/notes", &["log"]).exit(0).shows("  add  ");
}
