//! Failed points.

use std::fs;

use serde_json::Value;

use super::sweep;
use crate::lab::{Lab, files};

/// A sweep over `n` that fails at 2.
fn failing(files: &[(&str, &str)]) -> Lab {
    let files = [&[("factors/00-n", "1\n2\n3")], files].concat();
    sweep("", &files)
        .computation("fail", "n", "out", r#"[ "$(cat "$1")" != 2 ] || exit 9; cp "$1" "$2""#)
        .node("inputs/00-body/", "computation", "add")
        .call("inputs/00-body/inputs/00-x/", "fail", &["n"])
        .node("inputs/00-body/inputs/01-n/", "input", "n")
}

#[test]
fn a_failed_point_blocks_its_table_and_nothing_else() {
    let lab = failing(&[]).commit();
    lab.ce_run(&[]).exit(1).says("6 calls: 4 computed, 1 failed, 1 blocked");
    lab.called();
    lab.ce_run(&[]).exit(1).called(vec!["fail"]);
    assert!(lab.results().keys().all(|name| !name.starts_with("tables/")));
    let lab = lab.computation("fail", "n", "out", r#"cp "$1" "$2""#).commit_again();
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.table().lines().count(), 3);
}

#[test]
fn failed_points_become_rows_if_failures_are_allowed() {
    let lab = failing(&[("allow-failed", "")]).commit();
    lab.ce_run(&[]).exit(0).says("exit status 9").says("points of a sweep have failed");
    assert_eq!(
        lab.table(),
        "{\"n\":1,\"sum\":2,\"status\":\"ok\"}\n\
         {\"n\":2,\"sum\":null,\"status\":\"failed\"}\n\
         {\"n\":3,\"sum\":6,\"status\":\"ok\"}\n"
    );
    assert!(lab.results().keys().all(|name| !name.starts_with("t_task/")), "the job is not kept");
    lab.called();
    lab.ce_run(&[]).exit(0).says("--retry-failed executes those again").called(vec![]);
    lab.ce_run(&["-n"]).exit(0).called(vec![]);
    lab.ce_run(&["--retry-failed"]).exit(0).called(vec!["fail"]);
}

#[test]
fn a_table_with_failed_rows_is_not_collected() {
    let lab = failing(&[("allow-failed", "")]).commit();
    lab.ce_run(&[]).exit(0);
    let table = lab.table();
    let ran = lab.run("ce", &["gc", "--delete", "--keep=.", "../storage"]).exit(0);
    assert!(!ran.stdout.contains("/tables/"), "{}", ran.stdout);
    lab.ce_run(&[]).exit(0).says("1 table: 1 reused");
    assert_eq!(lab.table(), table);
}

/// Lets all records say that their executions were isolated.
fn as_if_isolated(lab: &Lab) {
    for (name, text) in files(&lab.path("storage")) {
        let is_failure = name.contains("/failed/") && name.ends_with(".json");
        if name.starts_with("c_") && (is_failure || name.contains("/record/")) {
            let mut record: Value = serde_json::from_slice(&text).unwrap();
            let place = if is_failure { "/isolation" } else { "/origin/executed/isolation" };
            let isolation = record.pointer_mut(place).unwrap();
            assert_eq!(isolation.as_str(), Some("none"));
            *isolation = "namespaces".into();
            fs::write(lab.path("storage").join(name), record.to_string()).unwrap();
        }
    }
}

#[test]
fn a_failure_at_another_commit_is_remembered_like_a_result() {
    let lab = failing(&[("allow-failed", "")]);
    let mended = lab.path("mended");
    let script = format!(
        "[ \"$(cat \"$1\")\" != 2 ] || [ -e {} ] || exit 9; cp \"$1\" \"$2\"",
        mended.display()
    );
    let lab = lab.computation("fail", "n", "out", &script).commit();
    lab.ce_run(&[]).exit(0);
    let table = lab.table();
    lab.called();
    // A call that was not isolated may depend on anything.
    let lab = lab.file("README", "1").commit_again();
    lab.ce_run(&[]).exit(0).called(vec!["add", "add", "fail", "fail", "fail"]);
    as_if_isolated(&lab);
    let lab = lab.file("README", "2").commit_again();
    lab.ce_run(&["-n"]).exit(0).says("it ended with exit status 9");
    let ran = lab.ce_run(&[]).exit(0).called(vec![]);
    let ran = ran.says("failed before: it ended with exit status 9");
    ran.says("--retry-failed executes those again");
    assert_eq!(lab.table(), table);
    // Of other inputs, or another computation, nothing is remembered.
    let other = lab.computation("fail", "n", "out", &format!("{script} # changed")).commit_again();
    other.ce_run(&[]).exit(0).called(vec!["fail"; 3]);
    let lab = other.computation("fail", "n", "out", &script).commit_again();
    // A result of any commit precedes a failure.
    fs::write(&mended, "").unwrap();
    let ran = lab.ce_run(&["--retry-failed"]).exit(0);
    ran.called(vec!["add", "fail"]);
    for (name, text) in files(&lab.path("storage")) {
        if name.starts_with("c_") && name.contains("/record/") {
            let text = String::from_utf8(text).unwrap().replace("\"none\"", "\"namespaces\"");
            fs::write(lab.path("storage").join(name), text).unwrap();
        }
    }
    lab.git("task", &["checkout", "--quiet", "HEAD~2"]);
    lab.ce_run(&[]).exit(0).called(vec![]);
    assert!(lab.table().contains("{\"n\":2,\"sum\":4,\"status\":\"ok\"}"), "{}", lab.table());
}

#[test]
fn a_commit_without_the_path_of_a_tree_is_a_failed_point() {
    let mut lab = sweep("commits", &[("allow-failed", "")])
        .computation("size", "src", "files", r#"ls "$1" | wc -l >"$2""#)
        .node("inputs/01-points/", "input", "commits")
        .node("inputs/00-body/", "computation", "size")
        .node("inputs/00-body/inputs/00-src/", "tree", "lib:src")
        .node("inputs/00-body/inputs/00-src/inputs/00-revision/", "input", "commit")
        .commit();
    fs::create_dir_all(lab.path("lib/src")).unwrap();
    lab.git("lib", &["init", "--quiet"]);
    let commit = |file: &str| {
        fs::write(lab.path("lib").join(file), "1\n").unwrap();
        lab.git("lib", &["add", "."]);
        lab.git("lib", &["commit", "--quiet", "--message", file]);
        lab.git("lib", &["rev-parse", "HEAD"])
    };
    let commits = ["README", "src/a"].map(commit);
    lab = lab.data("commits", format!("commit\n{}\n{}\n", commits[0], commits[1]));
    let ran = lab.ce_run(&[]).exit(1).says("1 more call failed for the same reason: there is no");
    assert_eq!(ran.stderr.matches("try: -r lib=REPO").count(), 1, "{}", ran.stderr);
    assert!(!ran.stderr.contains("failures at points"), "{}", ran.stderr);
    for _ in 0..2 {
        lab.ce_run(&["-r", "lib=../lib"]).exit(0).says("src does not exist in the commit");
    }
    let tables = lab.results().into_iter().filter(|(name, _)| name.ends_with("/00"));
    let tables: Vec<_> = tables.filter(|(name, _)| name.starts_with("tables/")).collect();
    let text = String::from_utf8(tables[0].1.clone()).unwrap();
    assert!(text.contains("\"files\":null,\"status\":\"failed\"}\n{"), "{text}");
    assert!(text.ends_with("\"files\":1,\"status\":\"ok\"}\n"), "{text}");
}

#[test]
fn a_transient_failure_makes_no_row() {
    let lab = failing(&[("allow-failed", "")])
        .computation("fail", "n", "out", r#"[ "$(cat "$1")" != 2 ] || kill -9 $$; cp "$1" "$2""#)
        .commit();
    lab.ce_run(&[]).exit(1).says("signal 9");
    lab.called();
    lab.ce_run(&[]).exit(1).called(vec!["fail"]);
}

#[test]
fn a_call_that_is_needed_outside_the_sweep_may_not_fail() {
    let lab = failing(&[("allow-failed", "")]).commit();
    let sweep = lab.path("task/workflow");
    fs::rename(&sweep, lab.path("sweep")).unwrap();
    let lab = lab
        .computation("both", "table fails", "out", r#"cat "$1" "$2" >"$3""#)
        .file("inputs", "two\n")
        .data("two", "2\n")
        .node("", "computation", "both")
        .call("inputs/01-same/", "fail", &["two"]);
    fs::rename(lab.path("sweep"), lab.path("task/workflow/inputs/00-table")).unwrap();
    let mut lab = lab.commit_again();
    lab.inputs = vec!["two".to_owned()];
    lab.ce_run(&[]).exit(1).says("fail (same) failed");
    lab.called();
    lab.ce_run(&[]).exit(1).called(vec!["fail"]);
}

#[test]
fn a_point_that_fails_in_two_versions_has_not_changed() {
    let lab = failing(&[("allow-failed", "")]).commit();
    lab.ce_run(&[]).exit(0);
    let lab =
        lab.computation("fail", "n", "out", r#"[ "$(cat "$1")" != 2 ] || exit 8; cp "$1" "$2""#);
    let lab = lab.commit_again();
    lab.ce_run(&[]).exit(0);
    let versions = ["table", "--at", "HEAD~1", "--at", "HEAD", "../storage"];
    lab.run("ce", &versions).exit(3).says("0 of 3 rows changed");
}

#[test]
fn points_that_have_only_failed_are_compared_with_their_failures() {
    let samples = ["good", "b1", "b2", "b3", "b4", "b5"];
    let script = r#"grep -q good "$1" || exit 1; cp "$1" "$2""#;
    let lab = sweep("", &[("factors/00-s", &samples.join("\n")), ("allow-failed", "")])
        .computation("conv", "sample", "out", script)
        .node("inputs/00-body/", "computation", "conv")
        .node("inputs/00-body/inputs/00-sample/", "file", "data/{s}");
    let lab = samples.iter().fold(lab, |lab, it| lab.file(&format!("data/{it}"), *it)).commit();
    lab.ce_run(&[]).exit(0);
    let lab = lab.computation("conv", "sample", "out", &format!("{script} # new")).commit_again();
    let ran = lab.run("ce", &["explain", "../storage"]).exit(3);
    let ran = ran.shows("[1] conv changed: was ").shows(": 6 calls\n");
    assert!(!ran.stdout.contains("[2]"), "{}", ran.stdout);
    ran.shows(", at s=good, s=b1, s=b2, ...\n");
    lab.ce_run(&["-n"]).exit(3).says("ce-run: conv (body), 6 points: conv changed: was ");
    // Another point never was this one.
    let lab =
        lab.file("workflow/factors/00-s", "good\nb2\nc1\n").file("data/c1", "c1").commit_again();
    let ran = lab.run("ce", &["explain", "../storage"]).exit(3);
    let ran = ran.shows("[1] conv changed: was ").shows(": 3 calls\n");
    let ran = ran.shows("\n[2] OWN('data/c1') of a point is new: 1 call\n");
    ran.shows("\ns=c1: conv (body): conv changed: was ").shows("input 00 (sample) is new [2]");
}

#[test]
fn points_that_failed_before_are_reported_in_a_line() {
    for (count, points) in [(1, "n=1"), (5, "n=1, n=2, n=3, ...")] {
        let levels: Vec<String> = (1..=count).map(|it| format!("{it}\n")).collect();
        let lab = sweep("", &[("factors/00-n", &levels.concat()), ("allow-failed", "")])
            .computation("conv", "n", "out", "exit 1")
            .call("inputs/00-body/", "conv", &["n"])
            .commit();
        lab.ce_run(&[]).exit(0);
        let s = if count == 1 { "" } else { "s" };
        let told = |program: &str| {
            let before = "failed before: conv (body): it ended with exit status 1";
            format!("{program}: {count} point{s} {before}: {points}\n")
        };
        for options in [&["-q"][..], &["-q", "-n"], &["--json"]] {
            let ran = lab.ce_run(options).exit(0);
            let ran = ran.says(&told("ce-run"));
            assert_eq!(ran.stderr.matches("failed before").count(), 1, "{}", ran.stderr);
        }
        for arguments in [&["explain", "../storage"][..], &["diff", "-n", "HEAD", "../storage"]] {
            let ran = lab.run("ce", arguments).exit(0);
            ran.says(&told("ce"));
        }
        // The summary tells it all.
        for options in [&[][..], &["-n"]] {
            let ran =
                lab.ce_run(options).exit(0).says("  n=1: conv (body) failed before: it ended");
            assert_eq!(ran.stderr.matches(" n=1").count(), 1, "{}", ran.stderr);
        }
    }
}

#[test]
fn two_calls_that_fail_alike_at_one_point_are_both_listed() {
    let lab = sweep("", &[("factors/00-a", "1\n2\n")])
        .computation("fail", "a b", "c", "exit 3")
        .node("inputs/00-body/", "computation", "add");
    let lab = ["0", "1"].iter().fold(lab, |lab, side| {
        let place = format!("inputs/00-body/inputs/0{side}-{side}/");
        let lab = lab.node(&place, "computation", "mul");
        let lab = lab.node(&format!("{place}inputs/00-one/"), "computation", "fail");
        let lab = lab.node(&format!("{place}inputs/00-one/inputs/00-a/"), "input", "a");
        let lab = lab.node(&format!("{place}inputs/00-one/inputs/01-b/"), "file", side);
        lab.file(side, side).node(&format!("{place}inputs/01-a/"), "input", "a")
    });
    let lab = lab.commit();
    let ran = lab.ce_run(&[]).exit(1).says("4 failed");
    for point in ["a=1", "a=2"] {
        for side in ["0", "1"] {
            let line =
                format!("  {point}: fail ({side}/one) failed: it ended with exit status 3\n");
            assert_eq!(ran.stderr.matches(&line).count(), 1, "{}", ran.stderr);
        }
    }
}
