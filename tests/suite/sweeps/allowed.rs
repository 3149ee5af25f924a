//! Failed points.

use super::sweep;
use crate::lab::Lab;

/// A sweep over `n`, of which 2 fails.
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
    lab.ce_run(&[]).exit(1).says("6 calls: 4 executed, 1 failed, 1 blocked");
    lab.called();
    lab.ce_run(&[]).exit(1).called(vec!["fail"]);
    assert!(lab.results().keys().all(|name| !name.starts_with("tables/")));
    let lab = lab.computation("fail", "n", "out", r#"cp "$1" "$2""#).commit_again();
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.table().lines().count(), 3);
}

#[test]
fn failed_points_become_rows_where_that_is_allowed() {
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
fn a_failure_that_may_pass_makes_no_row() {
    let lab = failing(&[("allow-failed", "")])
        .computation("fail", "n", "out", r#"[ "$(cat "$1")" != 2 ] || kill -9 $$; cp "$1" "$2""#)
        .commit();
    lab.ce_run(&[]).exit(1).says("signal 9");
    lab.called();
    lab.ce_run(&[]).exit(1).called(vec!["fail"]);
}

#[test]
fn a_call_that_is_needed_elsewhere_may_not_fail() {
    let lab = failing(&[("allow-failed", "")]).commit();
    let sweep = lab.path("task/workflow");
    std::fs::rename(&sweep, lab.path("sweep")).unwrap();
    let lab = lab
        .computation("both", "table fails", "out", r#"cat "$1" "$2" >"$3""#)
        .file("inputs", "two\n")
        .data("two", "2\n")
        .node("", "computation", "both")
        .call("inputs/01-same/", "fail", &["two"]);
    std::fs::rename(lab.path("sweep"), lab.path("task/workflow/inputs/00-table")).unwrap();
    let mut lab = lab.commit_again();
    lab.inputs = vec!["two".to_owned()];
    lab.ce_run(&[]).exit(1).says("fail (same) failed");
    lab.called();
    lab.ce_run(&[]).exit(1).called(vec!["fail"]);
}
