//! The repositories that use a storage: recorded by runs, kept for by collections, and forgotten.

use std::fs;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::lab::{Lab, files};
use crate::program::Ran;

const TASK: &str = "Inputs: 'x', 'y'\n(add (divmod INPUT('x') INPUT('y'))[1, 0])[0]";

fn gc<'a>(lab: &'a Lab, arguments: &[&str]) -> Ran<'a> {
    lab.run("ce", &[&["gc"], arguments, &["../storage"]].concat())
}

/// A laboratory with two repositories, `task` and `other`, whose tasks were evaluated: `other`
/// makes a sum of its own.
fn two() -> Lab {
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&[]).exit(0);
    lab.git("", &["clone", "-q", "task", "other"]);
    fs::write(lab.path("other/workflow/outputs"), "0\n0\n").unwrap();
    lab.git("other", &["commit", "-qam", "other"]);
    run_in(&lab, "other");
    lab
}

fn run_in(lab: &Lab, dir: &str) {
    let mut command = lab.command("ce-run");
    command.current_dir(lab.path(dir)).args(["../storage", "../data/x", "../data/y"]);
    lab.finish(&mut command).exit(0);
}

/// The records of repositories, by name.
fn records(lab: &Lab) -> Vec<(String, Value)> {
    let records = files(&lab.path("storage/repositories")).into_iter();
    let records = records.filter(|(name, _)| name.ends_with(".json"));
    records.map(|(name, text)| (name, serde_json::from_slice(&text).unwrap())).collect()
}

/// Changes the record of a repository.
fn change(lab: &Lab, repository: &str, changes: &[(&str, Value)]) {
    let path = lab.path(repository).display().to_string();
    let found = records(lab).into_iter().find(|(_, record)| record["path"] == path.as_str());
    let (name, mut record) = found.unwrap();
    for (place, value) in changes {
        *record.pointer_mut(place).unwrap() = value.clone();
    }
    fs::write(lab.path("storage/repositories").join(name), record.to_string()).unwrap();
}

#[test]
fn a_collection_keeps_results_that_any_recorded_repository_reaches() {
    let lab = two();
    assert_eq!(records(&lab).len(), 2);
    let all = lab.results();
    gc(&lab, &["--delete"]).exit(0).says("ce: collected 0 results");
    // No repository reaches the second commit any more, and only `task` reaches the first one.
    lab.git("other", &["checkout", "-q", "--orphan", "new"]);
    lab.git(
        "other",
        &["branch", "-q", "-D", &lab.git("task", &["symbolic-ref", "--short", "HEAD"])],
    );
    lab.git("other", &["remote", "remove", "origin"]);
    lab.git("other", &["commit", "-qm", "new"]);
    let listed = gc(&lab, &[]).exit(0).says("ce: would collect 3 results: ");
    listed.shows("task other: 3 results: 6 B, ").says("; give --delete to do so\n");
    assert_eq!(lab.results(), all);
    gc(&lab, &["--delete"]).exit(0).says("ce: collected 3 results: ");
    lab.ce_run(&["-n"]).exit(0);
}

#[test]
fn results_are_listed_by_task_with_their_cost() {
    let lab = two();
    let ran = lab.unchanged(|| gc(&lab, &["--older=0s", "--no-keep"]).exit(0));
    let heads: Vec<&str> = ran.stdout.lines().filter(|line| !line.starts_with(' ')).collect();
    let names: Vec<&str> = heads.iter().filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(names, ["task other", "tasks other, task", "task task"], "{}", ran.stdout);
    assert!(heads.iter().all(|line| line.ends_with(" of computing")), "{}", ran.stdout);
    fs::remove_dir_all(lab.path("storage/t_other")).unwrap();
    fs::remove_dir_all(lab.path("storage/t_task")).unwrap();
    let ran = gc(&lab, &["--older=0s", "--no-keep"]).exit(0);
    ran.shows("no recorded job: ");
}

#[test]
fn a_collection_that_keeps_for_some_repositories_warns_about_the_others() {
    let lab = two();
    let told = "ce: warning: LAB/other of the host ";
    gc(&lab, &["--keep=."]).exit(0).says(told).says(" uses the storage, too, and nothing is kept");
    let both = gc(&lab, &["--keep=.", "--keep=../other"]).exit(0);
    assert!(!both.stderr.contains("warning"), "{}", both.stderr);
}

#[test]
fn a_missing_repository_stops_the_collection() {
    let lab = two();
    let all = lab.results();
    fs::rename(lab.path("other"), lab.path("moved")).unwrap();
    for options in [&["--delete"][..], &[], &["--delete", "--older=0s"]] {
        let ran = gc(&lab, options).exit(2);
        let ran = ran.says("ce: cannot read these recorded repositories:\n  ");
        ran.says(": LAB/other of the host ").says("is not there\n  try: ce gc --forget ID STORAGE");
    }
    // Without its Git directory it is no repository, and within one it is another one.
    fs::create_dir(lab.path("other")).unwrap();
    gc(&lab, &["--delete"]).exit(2);
    lab.git("", &["init", "-q"]);
    gc(&lab, &["--delete"]).exit(2);
    fs::remove_dir_all(lab.path(".git")).unwrap();
    gc(&lab, &["--repositories"]).exit(0).shows("LAB/other  is not there\n");
    assert_eq!(lab.results(), all);
    gc(&lab, &["--forget", &lab.path("other").display().to_string()]).exit(0);
    assert_eq!(records(&lab).len(), 1);
    gc(&lab, &["--delete"]).exit(0);
    lab.ce_run(&["-n"]).exit(0);
}

#[test]
fn the_inode_identifies_a_repository_on_another_host() {
    let lab = two();
    change(&lab, "other", &[("/recorded/host", json!("elsewhere"))]);
    gc(&lab, &["--delete"]).exit(0).says("ce: collected 0 results");
    change(&lab, "other", &[("/inode", json!(1))]);
    let ran = gc(&lab, &["--delete"]).exit(2);
    ran.says("LAB/other of the host elsewhere is another one here\n");
    // On this host it may have been cloned anew.
    change(&lab, "task", &[("/inode", json!(1))]);
    let (name, _) = records(&lab).into_iter().find(|(_, it)| it["inode"] != 1).unwrap_or_default();
    assert_eq!(name, "");
    let other = records(&lab).into_iter().find(|(_, it)| it["recorded"]["host"] == "elsewhere");
    let id = other.unwrap().0.replace(".json", "");
    gc(&lab, &["--forget", &id]).exit(0);
    gc(&lab, &["--delete"]).exit(0);
}

#[test]
fn unknown_and_unreadable_repositories_are_refused() {
    let lab = two();
    gc(&lab, &["--forget=nowhere", "--forget=."]).exit(2).says("ce: no repository is recorded as");
    assert_eq!(records(&lab).len(), 2);
    let other = lab.path("other").display().to_string();
    let found = records(&lab).into_iter().find(|(_, it)| it["path"] == other.as_str());
    let (name, _) = found.unwrap();
    fs::write(lab.path("storage/repositories").join(&name), "{}").unwrap();
    let id = name.replace(".json", "");
    gc(&lab, &["--delete"]).exit(2).says(&format!("  {id}: its record cannot be understood\n"));
    gc(&lab, &["--repositories"]).exit(0).shows(&format!("{id}  ?"));
    gc(&lab, &["--forget", &id, "--forget=."]).exit(0);
    for options in [&[][..], &["--older=0s"]] {
        gc(&lab, options).exit(2).says("ce: no repository is recorded to use the storage\n");
    }
    gc(&lab, &["--repositories", "--delete"]).exit(2).says("cannot be used with");
    assert!(!lab.results().is_empty());
}

#[test]
fn a_run_records_its_repository_once_a_day() {
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&["-n"]).exit(3);
    lab.ce_run(&[]).exit(0);
    let [(name, record)] = &records(&lab)[..] else { panic!() };
    assert_eq!(record["path"], lab.path("task").display().to_string().as_str());
    let file = lab.path("storage/repositories").join(name);
    let modified = || file.metadata().unwrap().modified().unwrap();
    let first = modified();
    lab.ce_run(&[]).exit(0);
    assert_eq!(modified(), first);
    let past = SystemTime::now() - Duration::from_secs(25 * 60 * 60);
    fs::File::options().append(true).open(&file).unwrap().set_modified(past).unwrap();
    lab.unchanged(|| lab.ce_run(&["-n"]).exit(0));
    lab.ce_run(&[]).exit(0);
    assert!(modified() > first);
    // So does one that needs no look at any call.
    fs::remove_dir_all(lab.path("storage/repositories")).unwrap();
    lab.unchanged(|| lab.ce_run(&["-n", "-q"]).exit(0));
    lab.ce_run(&["-q"]).exit(0);
    assert_eq!(records(&lab).len(), 1);
    assert!(lab.is_tidy());
    // A comparison evaluates, too.
    fs::remove_dir_all(lab.path("storage/repositories")).unwrap();
    lab.run("ce", &["diff", "-n", "HEAD..HEAD", "../storage", "../data/x", "../data/y"]).exit(0);
    assert!(records(&lab).is_empty());
    lab.run("ce", &["diff", "HEAD..HEAD", "../storage", "../data/x", "../data/y"]).exit(0);
    assert_eq!(records(&lab).len(), 1);
}

#[test]
fn work_trees_of_one_repository_are_one() {
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&[]).exit(0);
    lab.git("task", &["worktree", "add", "-q", "../linked"]);
    run_in(&lab, "linked");
    assert_eq!(records(&lab).len(), 1);
    lab.git("", &["clone", "-q", "--bare", "task", "bare"]);
    lab.git("bare", &["worktree", "add", "-q", "../beside"]);
    run_in(&lab, "beside");
    let paths: Vec<Value> = records(&lab).iter().map(|(_, it)| it["path"].clone()).collect();
    let bare = lab.path("bare").display().to_string();
    assert_eq!(paths.len(), 2);
    assert!(paths.contains(&bare.as_str().into()), "{paths:?}");
    fs::remove_dir_all(lab.path("linked")).unwrap();
    fs::remove_dir_all(lab.path("beside")).unwrap();
    gc(&lab, &["--delete"]).exit(0).says("ce: collected 0 results");
}
