//! The names in the scope of a body.

use super::sweep;
use crate::lab::Lab;

#[test]
fn nested_sweeps_see_the_names_around_them() {
    let lab = sweep("", &[("factors/00-a", "1\n2\n"), ("columns", "00 lines")])
        .computation("count", "table", "lines", r#"cat "$1" >"$2""#)
        .node("inputs/00-body/", "computation", "count")
        .node("inputs/00-body/inputs/00-t/", "sweep", "")
        .file("workflow/inputs/00-body/inputs/00-t/factors/00-b", "3\n4")
        .call("inputs/00-body/inputs/00-t/inputs/00-body/", "mul", &["a", "b"])
        .commit();
    lab.ce_run(&[]).exit(0).says("6 calls: 6 computed");
    assert_eq!(
        lab.table(),
        "{\"a\":1,\"lines\":\"{\\\"b\\\":3,\\\"product\\\":3}\\n{\\\"b\\\":4,\\\"product\\\":4}\"}\n\
         {\"a\":2,\"lines\":\"{\\\"b\\\":3,\\\"product\\\":6}\\n{\\\"b\\\":4,\\\"product\\\":8}\"}\n"
    );
}

#[test]
fn a_directory_that_two_sweeps_share_has_the_names_of_both() {
    let lab = sweep("", &[])
        .without("workflow")
        .computation("both", "one other", "all", r#"cat "$1" "$2" >"$3""#)
        .node("", "computation", "both")
        .node("inputs/00-one/", "sweep", "")
        .file("workflow/inputs/00-one/factors/00-n", "1\n2")
        .call("inputs/00-one/inputs/00-body/", "mul", &["n", "n"])
        .node("inputs/01-other/", "sweep", "")
        .file("workflow/inputs/01-other/factors/00-n", "2\n3")
        .link("workflow/inputs/01-other/inputs/00-body", "../../00-one/inputs/00-body")
        .commit();
    lab.ce_run(&[]).exit(0).says("4 calls: 4 computed");
    assert_eq!(
        lab.output(),
        "{\"n\":1,\"product\":1}\n{\"n\":2,\"product\":4}\n{\"n\":2,\"product\":4}\n{\"n\":3,\"product\":9}\n"
    );
}

/// A sweep over files of the task.
fn files(points: &[(&str, &str)]) -> Lab {
    sweep("", points)
        .file("data/a.txt", "1\n")
        .file("data/b.txt", "2\n")
        .node("inputs/00-body/", "computation", "add")
        .node("inputs/00-body/inputs/00-x/", "file", "data/{sample}.txt")
        .node("inputs/00-body/inputs/01-y/", "file", "data/{sample}.txt")
}

#[test]
fn files_of_the_task_may_be_named_by_points() {
    let lab = files(&[("factors/00-sample", "a\nb")]).commit();
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.table(), "{\"sample\":\"a\",\"sum\":2}\n{\"sample\":\"b\",\"sum\":4}\n");
    lab.called();
    // Of any commit, and with a change that is not committed.
    let lab = lab.file("data/a.txt", "5\n");
    lab.ce_run(&[]).exit(1).says("has uncommitted changes");
    lab.ce_run(&["--at", "HEAD"]).exit(0).called(vec![]);
    lab.ce_run(&["--dirty"]).exit(0).says("not stored").called(vec!["add"]);
}

#[test]
fn computed_points_name_files_and_members() {
    let lab = files(&[])
        .computation("make", "", "dir/", r#"echo 10 >"$1/a"; echo 20 >"$1/b""#)
        .without("workflow/inputs/00-body/inputs/01-y")
        .node("inputs/00-body/inputs/01-y/", "member", "{sample}")
        .node("inputs/00-body/inputs/01-y/inputs/00-dir/", "computation", "make")
        .file("samples.csv", "sample\na\nb\n")
        .node("inputs/01-points/", "file", "samples.csv")
        .commit();
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.table(), "{\"sample\":\"a\",\"sum\":11}\n{\"sample\":\"b\",\"sum\":22}\n");
}

#[test]
fn points_that_lack_a_member_are_counted() {
    let with = |samples: &str| {
        files(&[])
            .computation("make", "", "dir/", r#"echo 10 >"$1/a""#)
            .without("workflow/inputs/00-body")
            .node("inputs/00-body/", "member", "{sample}")
            .node("inputs/00-body/inputs/00-dir/", "computation", "make")
            .file("samples.csv", samples)
            .node("inputs/01-points/", "file", "samples.csv")
            .commit()
    };
    let lab = with("sample\na\nb\nc\nd\n");
    lab.ce_run(&[]).exit(1).says("there is no b in").says("; 2 more points lack an output, too\n");
    let lab = with("sample\na\nb\n");
    assert!(!lab.ce_run(&[]).exit(1).says("there is no b in").stderr.contains("more point"));
}

#[test]
fn values_that_are_wrong_with_a_text_are_errors_of_their_points() {
    let lab = files(&[("factors/00-sample", "a\n../b\nno\nb")]).commit();
    let ran = lab.ce_run(&[]).exit(1).called(vec!["add", "add"]);
    let ran = ran.says("\"data/{sample}.txt\" cannot be used");
    let ran = ran.says("cannot be read: the task has no file \"data/no.txt\"");
    assert!(!ran.stderr.contains("because"), "told once: {}", ran.stderr);
}
