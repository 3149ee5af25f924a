//! The ends of suspended calls that are not their own, and the reports of them.

use std::fs;

use serde_json::{Value, json};

use super::{spooling, with_script};
use crate::lab::Lab;

#[test]
fn status_lists_suspended_calls_and_queries_their_state() {
    let lab = spooling(&["status"]).commit();
    lab.ce_run(&[]).exit(4);
    let list = |options: &[&str]| {
        let arguments = [&["status"], options, &["../storage"]].concat();
        lab.run("ce", &arguments).exit(0).stdout
    };
    let text = lab.unchanged(|| list(&[]));
    for part in [
        "1 suspended call:\n  submit x=17\n    call: c_submit/",
        "    suspended since ",
        ", 1 attempt\n",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert!(!text.contains("input x"), "{text}");
    assert!(!text.contains("one job ahead"));
    assert!(list(&["--ask"]).contains("    status: one job ahead\n"));
    let json = |options: &[&str]| -> Value {
        let mut json: Value = serde_json::from_str(&list(options)).unwrap();
        json["suspended"][0].take()
    };
    let call = json(&["--json"]);
    assert_eq!((&call["state"], &call["attempts"]), (&"suspended".into(), &1.into()));
    assert!(call["directory"].as_str().unwrap().contains("/suspended/"), "{call}");
    assert_eq!(call["texts"], json!({ "x": "17" }));
    assert_eq!(call["status"], Value::Null);
    let answer = &json(&["--json", "--ask"])["status"];
    assert_eq!((&answer["answer"], &answer["line"]), (&"pending".into(), &"one job ahead".into()));
    lab.finish_job();
    assert!(list(&["--ask"]).contains("    status: the next run continues it\n"));
    assert_eq!(json(&["--json", "--ask"])["status"]["answer"], "continuable");
}

#[test]
fn a_cancelled_call_is_begun_from_the_beginning() {
    let lab = spooling(&["cancel"]).commit();
    lab.ce_run(&[]).exit(4);
    let place = &lab.suspended()[0];
    let ran = lab
        .run("ce", &["cancel", "../storage", place])
        .exit(0)
        .shows("cancelled submit x=17 (c_submit/");
    assert!(ran.stdout.ends_with(": removed\n"), "{}", ran.stdout);
    assert_eq!(lab.submitted(), 0);
    lab.is_over();
    lab.ce_run(&[]).exit(4);
    assert_eq!(lab.submitted(), 1);
    lab.run("ce", &["cancel", "../storage"]).exit(2);
    let unknown = lab.run("ce", &["cancel", "../storage", "c_submit/0123/00/_"]).exit(2);
    unknown.says("is not suspended").says("ce status lists suspended calls");
}

#[test]
fn a_failed_cancel_keeps_the_call_and_forget_does_not_run_it() {
    let lab = spooling(&["cancel"]).commit();
    lab.ce_run(&[]).exit(4);
    let (place, _) = lab.one_suspended();
    let job = fs::read_to_string(place.join("own/work/job")).unwrap();
    fs::remove_file(job.trim()).unwrap();
    let call = lab.suspended()[0].clone();
    let ran = lab.run("ce", &["cancel", "../storage", &call]).exit(1);
    ran.says(
        "is not cancelled, because its program cancel failed: it ended with exit status 1: rm: ",
    );
    assert_eq!(lab.suspended(), std::slice::from_ref(&call));
    lab.run("ce", &["cancel", "--forget", "../storage", &call])
        .exit(0)
        .shows("forgot submit x=17 (c_submit/");
    lab.is_over();
}

#[test]
fn options_choose_suspended_calls() {
    let lab = spooling(&["cancel"]).commit();
    lab.run("ce", &["run", "../storage", "--each", "x=17,18,19"]).exit(4);
    let shown = |options: &[&str]| {
        let status = [&["status"], options, &["../storage"]].concat();
        let text = lab.run("ce", &status).exit(0).stdout;
        let titles = text.lines().filter_map(|line| line.trim().strip_prefix("submit x="));
        titles.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(shown(&["--where", "x=18,19,1"]), ["18", "19"]);
    assert_eq!(shown(&["--only", "submit", "--where", "x=17", "--task", "task"]), ["17"]);
    assert_eq!(shown(&["--state", "suspended"]).len(), 3);
    for none in [["--only", "add"], ["--where", "y=17"], ["--task", "tas"], ["--state", "failed"]] {
        let status = [&["status"], &none[..], &["../storage"]].concat();
        let ran = lab.run("ce", &status).exit(0).says("choose none of 3 suspended calls");
        assert_eq!(ran.stdout, "");
        let cancel = [&["cancel"], &none[..], &["../storage"]].concat();
        lab.run("ce", &cancel).exit(2).says("no suspended call of yours is chosen");
    }
    // All calls with x=17 were chosen by this, regardless of their y.
    for tool in ["status", "cancel"] {
        let ran = lab.run("ce", &[tool, "--where", "x=17,y=2", "../storage"]).exit(2);
        ran.says("no suspended call has x=y=2").says("--where x=TEXT --where y=2");
    }
    lab.run("ce", &["status", "--state", "over", "../storage"])
        .exit(2)
        .says("suspended, executing");
    let place = &lab.suspended()[0];
    let both = lab.run("ce", &["cancel", "--where", "x=18", "../storage", place]).exit(2);
    both.says("options choose suspended calls, and ");
    let cancelled = lab.run("ce", &["cancel", "--where", "x=18", "../storage"]).exit(0);
    cancelled.shows("cancelled submit x=18 (").says("1 call of yours cancelled");
    assert_eq!(lab.submitted(), 2);
    lab.run("ce", &["cancel", "--all", "--only", "submit", "../storage"]).exit(0);
    lab.is_over();
}

#[test]
fn cancelling_a_shared_call_names_the_jobs_that_wait_for_it() {
    let lab = spooling(&["status", "cancel"]).isolated().commit();
    lab.ce_run(&[]).exit(4);
    let lab = lab.file("README", "more\n").commit_again();
    lab.ce_run(&[]).exit(4);
    let ran = lab.run("ce", &["cancel", "--all", "../storage"]).exit(0);
    ran.says("2 jobs have waited for c_submit/").says("task at ");
}

#[test]
fn every_command_names_a_suspended_call() {
    let lab = spooling(&["status"]).commit();
    lab.ce_run(&[]).exit(4);
    let explained = lab.run("ce", &["explain", "../storage", "../data/x"]).exit(4);
    explained.says("is suspended: what it has started goes on elsewhere");
    let listed = lab.run("ce", &["log", "../storage"]).exit(0).shows("submit  ");
    assert!(listed.stdout.contains("  suspended  "), "{}", listed.stdout);
    let json: Value =
        serde_json::from_str(&lab.run("ce", &["log", "--json", "../storage"]).exit(0).stdout)
            .unwrap();
    assert!(json["suspended"].is_string() && json["seconds"].is_null(), "{json}");
    assert_eq!(lab.run("ce", &["log", "--failed", "../storage"]).exit(0).stdout, "");
    let output = lab.suspended()[0].replace("/suspended/", "/00/");
    let shown = lab.run("ce", &["show", "../storage", &output]).exit(2);
    shown.says("is not there yet: the call c_submit/").says("ce status --ask says how it stands");
    let each = ["table", "../storage", "--each", "x=17,5"];
    lab.run("ce", &each).exit(3).shows("suspended").shows("waiting");
}

#[test]
fn status_names_what_each_call_reads_as_the_log_does() {
    let lab = Lab::task("Inputs: 'n', 'data', 'm'\n(wait INPUT('n') INPUT('data') INPUT('m'))[0]")
        .computation("wait", "size data mode", "y", "exit 75")
        .data("data", "a\nb\n")
        .with_storage()
        .commit();
    let each =
        ["../storage", "--each", "n=1000,2000,3000", "--each", "m=a b,c", "data=../data/data"];
    lab.run("ce-run", &each).exit(4).says("6 suspended");
    let status = lab.run("ce", &["status", "../storage"]).exit(0).stdout;
    let log = lab.run("ce", &["log", "../storage"]).exit(0).stdout;
    for n in [1000, 2000, 3000] {
        for m in ["\"a b\"", "c"] {
            let texts = format!("size={n} mode={m}");
            assert_eq!(status.matches(&format!("  wait {texts}\n")).count(), 1, "{status}");
            assert_eq!(log.matches(&texts).count(), 1, "{log}");
        }
    }
    // An input that is no text has a path.
    assert_eq!(status.matches("    input data: ../storage/tinputs/").count(), 6, "{status}");
    assert_eq!(status.matches("    input ").count(), 6, "{status}");
}

#[test]
fn suspended_points_are_not_failures() {
    let exec = r#"
case $(cat "$1") in 1) cat "$1" >"$2";; 2) exit 3;; *) exit 75;; esac"#;
    let lab = with_script(exec, &[]).commit();
    let run = |points: &str| {
        let each = format!("x={points}");
        lab.run("ce-run", &["../storage", "--each", &each])
    };
    let ran = run("1,3,2,4").exit(1);
    let (_, told) = ran.stderr.split_once("ce-run: failures at points:\n").unwrap();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(
        lines,
        [
            "  x=2: submit (submit) failed: it ended with exit status 3",
            "ce-run: suspended at points:",
            "  x=3: submit (submit) is suspended",
            "  x=4: submit (submit) is suspended",
        ]
    );
    let ran = run("1,3,4").exit(4);
    assert!(!ran.stderr.contains("failures at points"), "{}", ran.stderr);
    ran.says("ce-run: suspended at points:\n  x=3: ");
    let ran = run("1,11,12,13,14,15,16,17,18,19").exit(4);
    ran.says(
        "suspended at points:\n  submit (submit) is suspended: 9 points: x=11, x=12, x=13, ...\n",
    );
}
