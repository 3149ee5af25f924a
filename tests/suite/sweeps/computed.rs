//! Points that are computed, or read from sheets.

use super::sweep;
use crate::lab::Lab;

/// A sweep over the rows of the task input `sheet`.
fn sheet(text: &str) -> Lab {
    sweep("sheet", &[])
        .data("sheet", text)
        .node("inputs/01-points/", "input", "sheet")
        .call("inputs/00-body/", "add", &["x", "y"])
        .commit()
}

#[test]
fn a_new_row_executes_its_calls() {
    let lab = sheet("x,y\n1,2\n");
    lab.ce_run(&[]).exit(0).called(vec!["add"]);
    let lab = lab.data("sheet", "x,y\n5,6\n1,2\n");
    lab.ce_run(&["-n"]).exit(3).says("2 calls: 1 reused, 1 missing");
    lab.ce_run(&[]).exit(0).called(vec!["add"]);
    assert_eq!(lab.table().lines().count(), 2);
}

/// A sweep over the output of the computation `derive`, in a body of two calls.
fn derived(script: &str) -> Lab {
    sweep("", &[])
        .computation("derive", "", "points", script)
        .node("inputs/01-points/", "computation", "derive")
        .node("inputs/00-body/", "computation", "add")
        .node("inputs/00-body/inputs/00-n/", "input", "n")
        .call("inputs/00-body/inputs/01-m/", "mul", &["n", "n"])
}

#[test]
fn computed_points_are_known_when_their_calls_have_ended() {
    let lab = derived(r#": >"$1""#).commit();
    lab.ce_run(&[]).exit(0).says("no point is left: the table is empty").called(vec!["derive"]);
    assert_eq!(lab.table(), "");
    let lab = derived(r#"for n in 1 2 3 4 5; do echo "{\"n\":$n}"; done >"$1""#).commit();
    lab.run("ce", &["check"]).exit(0).shows(": 0 inputs, at least 1 call, 1 table, ");
    lab.ce_run(&["-n"]).exit(3).called(vec![]);
    lab.ce_run(&[]).exit(0).says("11 calls: 11 computed");
    assert!(lab.table().ends_with("{\"n\":5,\"sum\":30}\n"));
    lab.called();
    lab.ce_run(&["-n"]).exit(0).says("11 calls: 11 reused").called(vec![]);
}

#[test]
fn points_that_cannot_be_used_or_made_fail_the_sweep() {
    let mut lab = derived("exit 3").commit();
    lab.ce_run(&[]).exit(1).says("1 failed").called(vec!["derive"]);
    for (script, messages) in [
        (
            r#"echo '{"m":1,"o p":2}' >"$1""#,
            ["the points have no column \"n\"", "try: the columns are \"m\", \"o p\"\n"],
        ),
        (r#"printf '{"n":1}\n{"n":null}\n' >"$1""#, ["line 2", "leave the row out"]),
        (r#"printf '{"n":1}\n{"n":1}\n' >"$1""#, ["the output of derive: the points", "remove"]),
        (r#"echo '{"n":1,"sum":2}' >"$1""#, ["a column \"sum\"", "rename it in the sheet"]),
    ] {
        lab = lab.computation("derive", "", "points", script).commit_again();
        let ran = lab.ce_run(&[]).exit(1).called(vec!["derive"]);
        for message in messages {
            assert!(ran.stderr.contains(message), "{}", ran.stderr);
        }
        assert!(lab.is_tidy());
    }
}

#[test]
fn mistakes_in_points_name_their_file() {
    let lab = sheet("x,y\n1\n");
    for dry in [&["-n"][..], &[]] {
        lab.ce_run(dry)
            .exit(2)
            .says("the input sheet: the points cannot be used: line 2: the row has 1 value,");
    }
    let shown = lab.run("ce", &["table", "../storage", "../data/sheet"]).exit(2);
    shown.says("SWEEP (TASK) failed: the input sheet: the points cannot be used: line 2");
    let explained = lab.run("ce", &["explain", "../storage", "../data/sheet"]).exit(2);
    explained.shows("is not known, since points cannot be used\n");
    let lab = sheet("x,y\n1,2\n").file("workflow/exclude.tsv", "z\n1\n").commit_again();
    lab.ce_run(&[]).exit(2).says("failed: exclude.tsv: the points have no column \"z\"");
}

#[test]
fn a_node_points_is_the_product_of_its_factors() {
    let lab = sweep("", &[])
        .computation("odd", "points", "odd", r#"grep '"n":"[13]"' "$1" >"$2""#)
        .node("inputs/01-points/", "computation", "odd")
        .node("inputs/01-points/inputs/00-all/", "points", "all")
        .file("workflow/inputs/01-points/inputs/00-all/factors/00-n", "1\n2\n3")
        .file("workflow/inputs/01-points/inputs/00-all/replicates", "2")
        .call("inputs/00-body/", "add", &["n", "replicate"])
        .commit();
    lab.ce_run(&[]).exit(0).says("5 calls");
    assert_eq!(lab.table().lines().count(), 4);
    let all = "workflow/inputs/01-points/inputs/00-all/factors/00-n";
    let lab = lab.file(all, "1\n2\n3\n5").commit_again();
    lab.run("ce", &["explain", "../storage"]).exit(3).shows("] POINTS('all') differs: was ");
}

#[test]
fn computed_points_may_be_excluded_and_replicated() {
    let lab = sheet("x,y\n1,2\n3,4\n5,6\n")
        .file("workflow/exclude.tsv", "x\n3\n99\n")
        .file("workflow/replicates", "2")
        .call("inputs/00-body/", "add", &["x", "replicate"])
        .commit_again();
    let ran = lab.ce_run(&[]).exit(0).says("exclude.tsv: no point is excluded by x=99");
    ran.called(vec!["add"; 4]);
    assert!(lab.table().starts_with("{\"x\":1,\"y\":2,\"replicate\":1,\"sum\":2}\n"));
}

#[test]
fn factors_multiply_computed_points_and_vary_faster() {
    let lab = sheet("x,who\n1,me\n3,you\n")
        .file("workflow/factors/00-y", "5\n7\n")
        .file("workflow/exclude.tsv", "who\ty\nyou\t5\n")
        .commit_again();
    lab.ce_run(&[]).exit(0).called(vec!["add"; 3]);
    let table = "{\"x\":1,\"who\":\"me\",\"y\":5,\"sum\":6}\n\
                 {\"x\":1,\"who\":\"me\",\"y\":7,\"sum\":8}\n\
                 {\"x\":3,\"who\":\"you\",\"y\":7,\"sum\":10}\n";
    assert_eq!(lab.table(), table);
    let rows = lab.run("ce", &["table", "--csv", "../storage", "../data/sheet"]).exit(0);
    assert!(rows.stdout.contains("\n3,you,5,,excluded"), "{}", rows.stdout);
    // A column of the sheet has the name of a factor.
    let lab = sheet("x,y\n1,2\n").file("workflow/factors/00-y", "5\n").commit_again();
    lab.ce_run(&[]).exit(2).says("the name \"y\" is also bound by another factor");
}

#[test]
fn names_of_computations_may_have_factors_beside_computed_points() {
    let lab = sheet("x\n1\n3\n").file("workflow/factors/00-how", "add\nplus\n").computation(
        "plus",
        "a b",
        "sum",
        "echo 0 >\"$3\"",
    );
    let lab = lab.without("workflow/inputs/00-body").call("inputs/00-body/", "{how}", &["x", "x"]);
    let lab = lab.file("workflow/columns", "00 result\n").commit_again();
    lab.ce_run(&[]).exit(0).called(vec!["add", "add", "plus", "plus"]);
    let lab = lab.file("workflow/factors/00-how", "add\nnone\n").commit_again();
    lab.ce_run(&[]).exit(2).says("there is no computation \"none\"");
}

/// A sweep whose points are a file of the task.
fn with_sheet(sheet: &str) -> Lab {
    sweep("", &[])
        .node("inputs/01-points/", "file", "sheet.csv")
        .call("inputs/00-body/", "mul", &["a", "b"])
        .file("sheet.csv", sheet)
        .commit()
}

#[test]
fn a_check_reads_sheets_that_are_files_of_the_task() {
    let lab = with_sheet("a,b\n1,2\n1.0,4\n");
    for version in [&["check"][..], &["check", "--at", "HEAD"]] {
        let ran = lab.run("ce", version).exit(0).shows(": 0 inputs, 2 calls, 1 table, ");
        ran.says("\"1\" and \"1.0\" of a are different texts, and so different points");
    }
    // A changed file that is not committed is read as it stands.
    let told = "the points have no column \"b\"";
    let lab = lab.file("sheet.csv", "a,c\n1,2\n");
    lab.run("ce", &["check"]).exit(2).says(told).says("try: ");
    lab.run("ce", &["check", "--at", "HEAD"]).exit(0);
    lab.commit_again().run("ce", &["check", "--at", "HEAD"]).exit(2).says(told);
}
