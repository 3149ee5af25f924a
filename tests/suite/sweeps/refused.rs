//! Sweeps that cannot be loaded: one clear error, with file and line.

use super::{FACTORS, product, sweep};
use crate::lab::Lab;

#[track_caller]
fn is_refused(lab: Lab, message: &str, hint: &str) {
    let lab = lab.commit();
    let ran = lab.ce_run(&[]).exit(2);
    assert!(ran.stderr.contains(message), "{}", ran.stderr);
    assert!(ran.stderr.contains(hint), "{}", ran.stderr);
}

#[test]
fn files_of_a_sweep_are_checked_by_line() {
    for (file, text, message, hint) in [
        ("factors/00-a", "1\n\n2\n", "workflow/factors/00-a:2: the line is empty", "remove it"),
        ("factors/00-a", "1\n2\n1\n", "workflow/factors/00-a:3: ", "line 1"),
        ("factors/00-a", "", "workflow/factors/00-a: the factor has no levels", "one a line"),
        ("factors/a", "1", "workflow/factors/a: the name does not say", "nn-NAME"),
        ("factors/00-c", "1", "workflow/factors/00-c: 00-a has the same number", "of its own"),
        (
            "factors/02-b.tsv",
            "b\n3\n",
            "workflow/factors/02-b.tsv: the name \"b\" is also bound",
            "rename",
        ),
        ("factors/02-c", "1\n", "workflow/factors/02-c: the body does not read c", "kind input"),
        (
            "replicates",
            "0",
            "workflow/replicates: \"0\" is not a number of replicates",
            "such as 10",
        ),
        ("replicates", "2", "workflow/replicates: the body does not read replicate", "kind input"),
        (
            "exclude.tsv",
            "c\n1\n",
            "workflow/exclude.tsv:1: the points have no column \"c\"",
            "\"a\"",
        ),
        (
            "exclude.tsv",
            "a\n1\n8\n",
            "workflow/exclude.tsv:3: no point is excluded by a=8",
            "spell",
        ),
        ("columns", "product\n", "workflow/columns:1: \"product\" is not the number", "00 seconds"),
        ("columns", "01 x\n", "workflow/columns:1: the body passes up 1, so there is no 01", ""),
        ("columns", "00 a\n", "workflow/columns:1: the table has two columns \"a\"", "columns"),
        (
            "columns",
            "00 a [s",
            "workflow/columns:1: \"00 a [s\" is not an output, a name",
            "[s] less",
        ),
        ("columns", "00 * [s]", "workflow/columns:1: \"00 * [s]\" has a unit", "their names"),
        ("columns", "", "workflow/columns: there are no columns", "or remove the file"),
        ("allow-failed", "no\n", "workflow/allow-failed: it has text", "empty it"),
        ("names", "a\n", "workflow/names: names are listed only of points", "remove"),
    ] {
        is_refused(product(&FACTORS).file(&format!("workflow/{file}"), text), message, hint);
    }
}

#[test]
fn names_are_listed_once() {
    let lab = sweep("s", &[("names", "x\ny\nx\n")]).node("inputs/01-points/", "input", "s").call(
        "inputs/00-body/",
        "mul",
        &["x", "y"],
    );
    is_refused(lab, "workflow/names:3: the name \"x\" is there twice", "remove the line");
    let text = "Inputs: s\nSWEEP((mul x y) s :columns :names 'x' 'y')";
    is_refused(
        sweep("s", &[]).one_text(text),
        "workflow.ce:2: there are no columns",
        "remove :columns",
    );
}

#[test]
fn names_are_bound_once_on_a_way() {
    let lab = sweep("a", &FACTORS).call("inputs/00-body/", "mul", &["a", "b"]);
    is_refused(lab, "the name \"a\" is an input of the task", "give it another name");
    let lab = sweep("", &FACTORS)
        .node("inputs/00-body/", "sweep", "")
        .file("workflow/inputs/00-body/factors/00-a", "1")
        .call("inputs/00-body/inputs/00-body/", "mul", &["a", "b"]);
    is_refused(lab, "workflow/inputs/00-body/factors/00-a: the name \"a\"", "another name");
}

#[test]
fn names_that_nothing_binds_are_told_with_the_nearest() {
    let lab = sweep("", &[("factors/00-threads", "1")]).call(
        "inputs/00-body/",
        "mul",
        &["threads", "thread"],
    );
    is_refused(lab, "has no input \"thread\"", "did you mean \"threads\"?");
    // Outside of the sweep, its names are unknown.
    let lab = sweep("", &[])
        .without("workflow")
        .node("", "computation", "add")
        .node("inputs/00-t/", "sweep", "")
        .file("workflow/inputs/00-t/factors/00-n", "1")
        .call("inputs/00-t/inputs/00-body/", "mul", &["n", "n"])
        .node("inputs/01-n/", "input", "n");
    is_refused(lab, "workflow/inputs/01-n/value: the task has no input \"n\"", "");
}

#[test]
fn a_sweep_reads_its_points() {
    let lab = sweep("x", &[]).call("inputs/00-body/", "mul", &["x", "x"]);
    is_refused(lab, "the sweep has no points", "factors/00-threads");
    // Factors beside computed points are no column of these.
    let lab = product(&FACTORS).node("inputs/01-points/", "file", "computations/add/inputs");
    is_refused(lab, "the body reads no column of the points", "kind input");
    let lab = sweep("x", &[]).call("inputs/00-body/", "mul", &["x", "x"]).node(
        "inputs/01-points/",
        "input",
        "x",
    );
    is_refused(lab, "the body reads no column", "kind input");
}

#[test]
fn nested_sweeps_with_computed_points_list_their_names() {
    let nested = || {
        sweep("s", &[])
            .node("inputs/01-points/", "input", "s")
            .node("inputs/00-body/", "sweep", "")
            .node("inputs/00-body/inputs/01-points/", "input", "s")
            .call("inputs/00-body/inputs/00-body/", "mul", &["x", "y"])
            .data("s", "x,y\n1,2\n3,4\n")
    };
    is_refused(nested(), "not clear which one binds a name", "file names");
    let lab = nested().file("workflow/inputs/00-body/names", "y\n").commit();
    lab.ce_run(&[]).exit(0).says("4 calls: 4 computed");
}

#[test]
fn a_column_of_a_nested_table_that_the_table_has_itself_is_told_before_anything_is_computed() {
    let nested = |inner: &[(&str, &str)], outer: &[(&str, &str)]| {
        let lab = sweep("", &[&[("factors/00-a", "1\n2"), ("columns", "00 **")], outer].concat())
            .node("inputs/00-body/", "sweep", "")
            .file("workflow/inputs/00-body/factors/00-b", "3\n4")
            .call("inputs/00-body/inputs/00-body/", "mul", &["a", "b"]);
        inner.iter().fold(lab, |lab, (file, text)| {
            lab.file(&format!("workflow/inputs/00-body/{file}"), text)
        })
    };
    let failing = [("allow-failed", "")];
    let told = "workflow/columns:1: the table has two columns \"status\"";
    is_refused(nested(&failing, &failing), told, "remove the file allow-failed");
    let told = "workflow/columns:1: the table has two columns \"a\"";
    is_refused(nested(&[("columns", "00 a")], &[]), told, "another name");
    // One of both may have it.
    for (inner, outer) in [(&failing[..], &[][..]), (&[], &failing)] {
        let lab = nested(inner, outer).commit();
        lab.ce_run(&[]).exit(0);
        assert_eq!(lab.table().matches("\"status\":\"ok\"").count(), 4, "{}", lab.table());
    }
    let text = "SWEEP(:factors/00-a '1' :columns '00 **' :allow-failed\n\
                :body SWEEP(:factors/00-b '3' :allow-failed :body (mul INPUT('a') INPUT('b'))))";
    let told = "workflow.ce:1: the table has two columns \"status\"";
    is_refused(nested(&[], &[]).one_text(text), told, "remove :allow-failed");
}

#[test]
fn a_body_that_passes_up_an_output_that_there_is_not_is_told() {
    let lab = |slice: &str| product(&FACTORS).file("workflow/inputs/00-body/outputs", slice);
    is_refused(lab("07\n"), "workflow/inputs/00-body/outputs:1: mul has 1 output, so", "");
    let none = lab("00\n").file("computations/mul/outputs", "");
    is_refused(none, "workflow/inputs/00-body/outputs:1: mul has 0 outputs, so", "");
}

#[test]
fn a_cycle_through_a_sweep_is_told() {
    let lab = product(&FACTORS)
        .link("workflow/inputs/00-body/inputs/01-1/inputs/00-up", "../../../../..");
    let lab = lab.node("inputs/00-body/inputs/01-1/", "computation", "add");
    is_refused(lab, "leads back to workflow", "");
}

#[test]
fn factors_may_be_larger_than_other_files() {
    let levels: String = (0..10_000).map(|level| format!("{level:0150}\n")).collect();
    let lab = product(&[("factors/00-a", levels.as_str()), ("factors/01-b", "1\n")]).commit();
    for version in [&["check"][..], &["check", "--at", "HEAD"]] {
        lab.run("ce", version).exit(0).shows("10000 calls, 1 table");
    }
    let text = lab.run("ce-sym", &[]).exit(0).stdout.clone();
    let lab = lab.one_text(&text);
    lab.run("ce", &["check"]).exit(0).shows("10000 calls, 1 table");
    lab.to_directories().exit(0);
    let factor = lab.path("task/workflow/factors/00-a");
    std::fs::File::create(factor).unwrap().set_len((64 << 20) + 1).unwrap();
    lab.run("ce", &["check"]).exit(2).says("workflow/factors/00-a: cannot be read: more than 64");
    let lab = product(&FACTORS).file("workflow/columns", " ".repeat((1 << 20) + 1));
    is_refused(lab, "workflow/columns: cannot be read: more than 1 MiB", "");
}

#[test]
fn outputs_of_one_name_do_not_fit_into_the_directory_of_a_sweep() {
    let told = "the directory has two outputs \"product\" of each point";
    let text = |slice: &str| {
        let all = "ALL((mul a a) (mul a '3'))";
        let text = format!("SWEEP({all} :over a 1 2 :columns '00 x' '01 y'){slice}");
        sweep("", &[]).one_text(&text)
    };
    let is_refused =
        |lab, place: &str| is_refused(lab, &format!("{place}: {told}"), "another name");
    is_refused(text("[directory]"), "workflow.ce:1");
    is_refused(text("[table, directory]"), "workflow.ce:1");
    let member = "s = SWEEP(ALL((mul a a) (mul a '3')) :over a 1 :columns '00 x')\n\
                  MEMBER('a=1/product' s[directory])";
    is_refused(sweep("", &[]).one_text(member), "workflow.ce:2");
    text("").commit().ce_run(&[]).exit(0);
    let directories =
        sweep("", &[("factors/00-a", "1\n2"), ("columns", "00 x\n"), ("outputs", "1\n")])
            .node("inputs/00-body/", "all", "")
            .call("inputs/00-body/inputs/00-x/", "mul", &["a", "a"])
            .call("inputs/00-body/inputs/01-y/", "mul", &["a", "a"]);
    is_refused(directories, "workflow");
}

/// What can be known of points before a night is.
#[test]
fn files_that_points_name_are_looked_for_by_the_check() {
    let lab = sweep("", &[])
        .computation("read", "file", "text", r#"cat "$1" >"$2""#)
        .file("raw/p.txt", "p\n")
        .file("sheet.csv", "s,t\np,1\nq,2\n../r,3\n");
    let check = |lab: &Lab| lab.run("ce", &["check"]).exit(2).stderr;
    let text = "SWEEP((read OWN('raw/{s}.txt')) :over s 'p' 'q' 'r')";
    let lab = lab.one_text(text).commit();
    let told = check(&lab);
    assert!(told.contains("2 values that points name cannot be used\n"), "{told}");
    for name in ["raw/q.txt", "raw/r.txt"] {
        assert!(told.contains(&format!("  the task's file {name} cannot be read")), "{told}");
    }
    assert!(!told.contains("  the task's file raw/p.txt"), "{told}");
    let text = "SWEEP((read OWN('raw/{s}.txt')) OWN('sheet.csv') :names 's')";
    let lab = lab.one_text(text).commit_again();
    let told = check(&lab);
    assert!(told.contains("raw/q.txt") && told.contains("{s}.txt"), "{told}");
    let lab = lab.file("raw/q.txt", "q\n").file("sheet.csv", "s,t\np,1\nq,2\n").commit_again();
    lab.run("ce", &["check"]).exit(0).shows("2 calls");
    // A name that an input binds is not known before a run.
    let text = "Inputs: d\nSWEEP((read OWN('{d}/{s}.txt')) :over s 'p' 'q')";
    let lab = lab.one_text(text).commit_again();
    lab.run("ce", &["check"]).exit(0);
}

#[test]
fn a_file_that_points_name_and_another_one_has_nearly_is_suggested() {
    let files = |lab: Lab| {
        lab.computation("read", "file", "text", r#"cat "$1" >"$2""#)
            .file("raw/control.txt", "1\n")
            .file("raw/treated/a.txt", "2\n")
    };
    let text = "SWEEP((read OWN('raw/{s}.txt')) :over s 'contrl' 'treatd/a' 'none')";
    let lab = files(sweep("", &[])).one_text(text).commit();
    let told = lab.run("ce", &["check"]).exit(2).stderr;
    for (name, hint) in [
        ("contrl", "did you mean \"raw/control.txt\"?"),
        ("treatd/a", "did you mean \"raw/treated/a.txt\"?"),
        ("none", "correct the path, which is relative to the task, or commit the file"),
    ] {
        let file = format!("raw/{name}.txt");
        let line =
            format!("{file} cannot be read: the task has no file {file:?}\n    try: {hint}\n");
        assert!(told.contains(&line), "{told}");
    }
    // What all have in common is said once.
    let text = "SWEEP((read OWN('raw/{s}.txt')) :over s 'x1' 'x2')";
    let lab = lab.one_text(text).commit_again();
    let told = lab.run("ce", &["check"]).exit(2).says("\n  try: correct the path").stderr;
    assert_eq!(told.matches("try:").count(), 1, "{told}");
    // So it is when the task is loaded, and when a computation has made the points.
    let lab = lab.one_text("(read OWN('raw/Control.txt'))").commit_again();
    let hint = "try: did you mean \"raw/control.txt\"?";
    lab.run("ce", &["check"]).exit(2).says(hint);
    lab.ce_run(&["--dirty"]).exit(2).says(hint);
    let text = "SWEEP((read OWN('raw/{s}.txt')) (copy OWN('names')) :names 's')";
    let lab =
        lab.computation("copy", "from", "to", "cat \"$1\" >\"$2\"").file("names", "s\ncontrl\n");
    lab.one_text(text).commit_again().ce_run(&[]).exit(1).says(hint);
}
