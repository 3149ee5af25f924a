//! Columns of points with the names of inputs of the task: tables and calls would say different things.

use super::sweep;
use crate::lab::Lab;

/// The words for a column `size` where the body reads an input of this name.
const SIZE: &str =
    "the points have a column \"size\", and the body reads the input \"size\" of the task";

const TRY: &str =
    "give the column another name: the table would show its texts, and calls would read others";

/// A sweep over a sheet, whose body reads the column `x` and the task's input `size`.
fn sheet(inputs: &str, text: &str) -> Lab {
    sweep(inputs, &[]).data("sheet", text).data("size", "5\n").file("rows.csv", text).call(
        "inputs/00-body/",
        "add",
        &["x", "size"],
    )
}

#[test]
fn a_sheet_with_the_name_of_an_input_that_the_body_reads_is_wrong() {
    let lab =
        sheet("sheet size", "x,size\n1,7\n").node("inputs/01-points/", "input", "sheet").commit();
    for options in [&["-n"][..], &[]] {
        lab.ce_run(options).exit(2).says(SIZE).says(TRY).called(vec![]);
    }
    let given = ["../storage", "../data/sheet", "../data/size"];
    lab.run("ce", &[&["table"], &given[..]].concat()).exit(2).says(SIZE);
    // A file of the task is known when it is checked.
    let lab = sheet("size", "x,size\n1,7\n").node("inputs/01-points/", "file", "rows.csv").commit();
    lab.run("ce", &["check"]).exit(2).says(SIZE).says(TRY);
    lab.ce_run(&[]).exit(2).says(SIZE).called(vec![]);
    // Names that are listed do not help.
    let lab = lab.file("workflow/names", "x\n").commit_again();
    lab.run("ce", &["check"]).exit(2).says(SIZE);
    // Where the body does not read the input, the column is a label.
    let lab = lab
        .without("workflow/names")
        .without("workflow/inputs/00-body")
        .call("inputs/00-body/", "add", &["x", "x"])
        .commit_again();
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.table(), "{\"x\":1,\"size\":7,\"sum\":2}\n");
}

#[test]
fn points_that_a_call_computes_are_wrong_when_they_are_known() {
    let lab = sheet("size", "")
        .computation("derive", "", "points", r#"echo '{"x":1,"size":7}' >"$1""#)
        .node("inputs/01-points/", "computation", "derive")
        .commit();
    lab.ce_run(&[]).exit(1).says(SIZE).says(TRY).called(vec!["derive"]);
}

#[test]
fn a_column_with_a_name_of_a_sweep_around_is_a_label() {
    let lab = sweep("", &[("factors/00-n", "3\n4\n"), ("columns", "00 rows")])
        .file("rows.csv", "m,n\n1,9\n")
        .node("inputs/00-body/", "sweep", "")
        .node("inputs/00-body/inputs/01-points/", "file", "rows.csv")
        .call("inputs/00-body/inputs/00-body/", "add", &["m", "n"])
        .commit();
    lab.ce_run(&[]).exit(0).says("2 calls: 2 computed");
}
