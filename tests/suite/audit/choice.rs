//! The choice of calls to audit, and calls that cannot be audited.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{audit, call, output, record, recorded, short};
use crate::lab::{Lab, snapshot};

#[test]
fn a_seed_determines_the_sample() {
    let lab = Lab::task("Inputs: 'x'\n(copy INPUT('x'))[0]")
        .computation("copy", "a", "b", r#"cat "$1" "$1" >"$2""#)
        .commit();
    lab.run("ce-run", &["--each", "x=1,2,3,4,5,6", "../storage"]).exit(0);
    let planned = |options: &[&str]| {
        let ran = audit(&lab, &[&["-n"], options].concat()).exit(0);
        let names = ran.stdout.lines().map(|it| it.split("  ").next().unwrap().to_owned());
        (names.collect::<Vec<_>>(), ran.stderr)
    };
    let (all, _) = planned(&[]);
    assert_eq!(all.len(), 6, "{all:?}");
    let (half, told) = planned(&["--sample", "50%"]);
    assert_eq!(half.len(), 3);
    let seed = told.split("--seed ").nth(1).unwrap().lines().next().unwrap();
    assert_eq!(planned(&["--sample", "0.5", "--seed", seed]).0, half);
    assert_eq!(planned(&["--sample", "3", "--seed", seed]).0, half);
    assert!(half.iter().all(|name| all.contains(name)));
    for wrong in ["0", "0%", "101%", "1.5", "x"] {
        audit(&lab, &["--sample", wrong]).exit(2);
    }
    audit(&lab, &["--seed", "1"]).exit(2);
}

#[test]
fn nothing_is_executed_that_would_exceed_the_budget() {
    let lab = recorded();
    // By its record, `once` took ten hours.
    let record = lab.path("storage").join(record(&lab, "once"));
    let text = fs::read_to_string(&record).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["origin"]["executed"]["start"] = "2026-01-01T00:00:00Z".into();
    value["origin"]["executed"]["end"] = "2026-01-01T10:00:00Z".into();
    fs::set_permissions(&record, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&record, value.to_string()).unwrap();
    let ran = audit(&lab, &["--budget", "9h"]).exit(0);
    assert!(
        ran.stderr.contains("1 call audited: 1 agree, 1 left for lack of time\n"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stdout.contains("c_once"), "{}", ran.stdout);
    audit(&lab, &["--budget", "9h", "--json"]).exit(0).shows(r#""verdict":"over_budget""#);
    let ran = audit(&lab, &["-n"]).exit(0);
    assert!(ran.stderr.contains("2 calls to be executed again; they took 10h"), "{}", ran.stderr);
    audit(&lab, &["--budget", "20h"]).exit(0);
}

#[test]
fn a_job_or_calls_are_chosen_by_their_names_and_files() {
    let lab = recorded();
    fs::write(lab.path("data/y"), "y\n").unwrap();
    lab.run("ce-run", &["../storage", "../data/y"]).exit(0);
    let is_job = |it: &String| it.starts_with("t_") && it.contains("/record/");
    let job_record = lab.storage().into_iter().find(is_job).unwrap();
    let job = short(&job_record);
    let audited = |arguments: &[&str]| audit(&lab, arguments).exit(0).stdout.lines().count();
    assert_eq!(audited(&[]), 4);
    assert_eq!(audited(&["--job", &job]), 2);
    assert_eq!(audited(&["--job", &output(&job_record)]), 2);
    let one = call(&lab, "once");
    assert_eq!(audited(&[&one]), 1);
    assert_eq!(audited(&[&output(&record(&lab, "once"))]), 1);
    // The configured storage needs no name.
    lab.git("task", &["config", "compeval.storage", "../storage"]);
    lab.run("ce", &["audit", "--no-isolate", &one]).exit(0);
    lab.run("ce", &["audit", "--no-isolate"]).exit(0);
    // Names of no call, job or storage, and options that exclude each other.
    audit(&lab, &["c_once/0123456789ab/0123456789ab"]).exit(2).says("is not a call of the storage");
    audit(&lab, &["--job", "t_no/0123456789ab/_"]).exit(2).says("is not a job of the storage");
    audit(&lab, &["--job", &job, "--sample", "1"]).exit(2);
    audit(&lab, &["--sample", "1", &one]).exit(2);
    lab.run("ce", &["audit", "../nowhere"]).exit(5);
}

#[test]
fn calls_of_a_sweep_with_failed_points_have_no_job() {
    let text = "SWEEP(:factors/00-n '1' '2' :body (copy INPUT('n'))[0] :allow-failed)[0]";
    let lab = Lab::task(&format!("Inputs:\n{text}"))
        .computation("copy", "a", "b", r#"[ "$(cat "$1")" != 2 ] && cp "$1" "$2""#)
        .commit();
    lab.run("ce-run", &["../storage"]);
    let ran = audit(&lab, &[]).exit(0);
    ran.says("1 call cannot be audited: no recorded job has this call; a run with failed")
        .says("  try: correct what has failed, or leave failed points out in exclude.tsv, in a text :exclude")
        .says("0 calls audited");
}

#[test]
fn calls_that_cannot_be_audited_are_counted_with_the_reason() {
    let lab = recorded();
    // Uncommitted changes belong to no commit.
    let exec = lab.path("task/computations/once/exec");
    let changed = fs::read_to_string(&exec).unwrap() + "\n# changed\n";
    fs::write(&exec, changed).unwrap();
    lab.run("ce-run", &["--dirty", "../storage", "../data/x"]).exit(0);
    let ran = audit(&lab, &["-n"]).exit(0);
    assert!(
        ran.stderr.contains("1 call cannot be audited: its computation had uncommitted changes"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("  try: commit the changes"), "{}", ran.stderr);
    // The input of the job is gone.
    fs::remove_dir_all(lab.path("storage/tinputs")).unwrap();
    fs::create_dir(lab.path("storage/tinputs")).unwrap();
    let ran = audit(&lab, &["-n"]).exit(0);
    assert!(ran.stdout.is_empty());
    assert!(ran.stderr.contains("an input of it is not in the storage"), "{}", ran.stderr);
    let is_dirty = |it: &String| it.contains("/dirty-") && it.contains("/record/");
    let dirty = short(&lab.storage().into_iter().find(is_dirty).unwrap());
    audit(&lab, &[&dirty]).exit(2).says("cannot be audited: its computation had uncommitted");
    // Another repository does not have the commit.
    let other = Lab::task("Inputs: 'x'\n(other INPUT('x'))[0]")
        .computation("other", "a", "b", r#"cat "$1" >"$2""#)
        .commit();
    let storage = lab.path("storage");
    let ran = other.run("ce", &["audit", "-n", storage.to_str().unwrap()]).exit(0);
    assert!(
        ran.stderr.contains("the commit of its task is not in this repository"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_dry_run_executes_and_writes_nothing() {
    let lab = recorded();
    let before = snapshot(&lab.path("storage"));
    let ran = audit(&lab, &["-n"]).exit(0);
    assert_eq!(ran.stdout.lines().count(), 2);
    assert!(ran.stdout.lines().all(|it| it.contains("  1 of 1  ")), "{}", ran.stdout);
    let ran = audit(&lab, &["-n", "--json"]).exit(0);
    for line in ran.stdout.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["seconds"].is_number() && line["attested"]["agreeing"][0] == "here");
    }
    assert_eq!(snapshot(&lab.path("storage")), before);
}

#[test]
fn a_call_that_was_taken_over_is_audited_once() {
    let lab = Lab::task("Inputs: 'x'\n(copy INPUT('x'))[0]")
        .computation("copy", "a", "b", r#"cat "$1" "$1" >"$2""#)
        .isolated()
        .commit();
    lab.ce_run(&[]).exit(0).says("1 computed");
    fs::write(lab.path("task/notes"), "another commit\n").unwrap();
    lab.git("task", &["add", "notes"]);
    lab.git("task", &["commit", "-qm", "notes"]);
    lab.ce_run(&[]).exit(0).says("1 taken over");
    audit(&lab, &[]).exit(0).says("1 call audited: 1 agree");
}
