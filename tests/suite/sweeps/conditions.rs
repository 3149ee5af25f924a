//! Conditions of points: the file `where`, and `:where` in a text.

use super::{FACTORS, product, sweep};
use crate::lab::{Lab, Library};

/// The product of [`FACTORS`] with a condition.
fn with(condition: &str) -> Lab {
    product(&FACTORS).file("workflow/where", condition)
}

#[test]
fn points_for_which_a_condition_does_not_hold_are_left_out() {
    let lab =
        with("a * 2 < b - 1 && b != 7 || b in (3, 7) && a == 1\n").commit_with(Library::Submodule);
    lab.ce_run(&[]).exit(0).called(vec!["mul"; 3]);
    let table = "{\"a\":1,\"b\":3,\"product\":3}\n{\"a\":1,\"b\":5,\"product\":5}\n\
                 {\"a\":1,\"b\":7,\"product\":7}\n";
    assert_eq!(lab.table(), table);
    let rows = lab.run("ce", &["table", "--csv", "../storage"]).exit(0).stdout;
    assert_eq!(rows.matches(",excluded").count(), 3, "{rows}");
    // Left out by rows, these are the same points: nothing is computed, and the table is the same.
    let lab = lab.without("workflow/where").file("workflow/exclude.tsv", "a\n2\n").commit_again();
    lab.ce_run(&[]).exit(0).called(vec![]).says("1 table: 1 reused");
    // A condition is not looked at where rows leave points out.
    let lab = lab.file("workflow/where", "1 / (2 - a) == 1\n").commit_again();
    lab.ce_run(&[]).exit(0).called(vec![]).says("1 table: 1 reused");
}

#[test]
fn conditions_of_computed_points_are_checked_when_the_points_are_known() {
    let lab = sweep("sheet", &[("factors/00-y", "1\n2\n"), ("where", "x > y && who != 'you'")])
        .data("sheet", "x,who\n1,me\n2,you\n3,me\n")
        .node("inputs/01-points/", "input", "sheet")
        .call("inputs/00-body/", "add", &["x", "y"])
        .commit();
    lab.ce_run(&[]).exit(0).called(vec!["add"; 2]);
    let lab = lab.file("workflow/where", "x == who").commit_again();
    lab.ce_run(&[]).exit(2).says(
        "where: column 6: who is a text, since \"me\" is not a number, and is compared with a number",
    );
}

#[test]
fn a_condition_that_leaves_nothing_is_reported() {
    let told = "no point is left: the table is empty\n  try: leave out fewer points";
    with("a > 9\n").commit().ce_run(&[]).exit(0).says("workflow/where").says(told);
    // A sheet of the task.
    let text = "SWEEP((f v) OWN('sheet.csv') :names 'v'\n  :where 'v > 2')\n";
    let lab = Lab::empty()
        .file("workflow.ce", text)
        .file("sheet.csv", "v\n1\n2\n")
        .computation("f", "v", "w", "cp $1 $2")
        .commit();
    lab.run("ce", &["check"]).exit(0).says("workflow.ce:1: ").says(told);
    lab.ce_run(&[]).exit(0).says("SWEEP (TASK): ").says(told);
    let lab = lab.file("sheet.csv", "v\n1\n3\n").commit_again();
    assert_eq!(lab.run("ce", &["check"]).exit(0).stderr, "");
    // Points that a node makes.
    let text = "SWEEP((f v) POINTS(:over v 1 2)\n  :names 'v' :where 'v > 2')\n";
    let lab = lab.file("workflow.ce", text).commit_again();
    lab.run("ce", &["check"]).exit(0).says("workflow.ce:1:1: ").says(told);
    lab.ce_run(&[]).exit(0).says("SWEEP (TASK): ").says(told);
    // Points that fulfil it, and two levels that look alike: the loader tells that.
    let text = text.replace("v > 2", "v != '1'").replace("1 2)", "1 2 3 'a  b' 'a b')");
    let lab = lab.file("workflow.ce", &text).commit_again();
    let told = lab.run("ce", &["check"]).exit(0).stderr;
    assert_eq!(told.matches("warning").count(), 1, "{told}");
}
