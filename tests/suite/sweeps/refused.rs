//! The findings of a check of a sweep, and sweeps that are nearly refused.

use super::{product, sweep};
use crate::lab::Lab;

#[test]
fn nested_sweeps_with_computed_points_and_listed_names_are_evaluated() {
    let lab = sweep("s", &[])
        .node("inputs/01-points/", "input", "s")
        .node("inputs/00-body/", "sweep", "")
        .file("workflow/inputs/00-body/names", "y\n")
        .node("inputs/00-body/inputs/01-points/", "input", "s")
        .call("inputs/00-body/inputs/00-body/", "mul", &["x", "y"])
        .data("s", "x,y\n1,2\n3,4\n")
        .commit();
    lab.ce_run(&[]).exit(0).says("4 calls: 4 computed");
}

#[test]
fn factors_may_be_larger_than_other_files_of_a_commit() {
    let levels: String = (0..10_000).map(|level| format!("{level:0150}\n")).collect();
    let lab = product(&[("factors/00-a", levels.as_str()), ("factors/01-b", "1\n")]).commit();
    lab.run("ce", &["check", "--at", "HEAD"]).exit(0).shows("10000 calls, 1 table");
    let text = lab.run("ce-sym", &[]).exit(0).stdout.clone();
    let lab = lab.one_text(&text);
    lab.run("ce", &["check"]).exit(0).shows("10000 calls, 1 table");
    lab.to_directories().exit(0);
}

/// What can be known of points before a night is.
#[test]
fn ce_check_looks_for_the_files_of_points() {
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
fn a_file_with_a_similar_name_is_suggested() {
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
