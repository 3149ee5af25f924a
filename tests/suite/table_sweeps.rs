//! `ce table` of a task with several sweeps.

use serde_json::{Value, json};

use crate::lab::Lab;
use crate::sweeps::sweep;
use crate::table_command::{rows, table};

/// A table of two sweeps side by side, and one within another.
fn several() -> Lab {
    Lab::task("(add INPUT('x') INPUT('x'))[0]")
        .file("inputs", "")
        .without("workflow")
        .computation("both", "one other", "all", "cat \"$1\" \"$2\" >\"$3\"")
        .node("", "computation", "both")
        .node("inputs/00-one/", "sweep", "ONE")
        .file("workflow/inputs/00-one/factors/00-a", "1\n2\n")
        .call("inputs/00-one/inputs/00-body/", "mul", &["a", "a"])
        .node("inputs/01-other/", "sweep", "")
        .file("workflow/inputs/01-other/factors/00-b", "3\n4\n")
        .node("inputs/01-other/inputs/00-body/", "sweep", "INNER")
        .file("workflow/inputs/01-other/inputs/00-body/factors/00-c", "5\n6\n")
        .call("inputs/01-other/inputs/00-body/inputs/00-body/", "add", &["b", "c"])
        .commit()
}

#[test]
fn one_of_several_sweeps_is_chosen_by_its_label_or_directory() {
    let lab = several();
    lab.ce_run(&["--no-sync"]).exit(0);
    let ran = table(&lab, &[]).exit(2).says("the task has several sweeps: ");
    ran.says("ONE (or workflow/inputs/00-one, mul), ").says("--sweep");
    for name in ["ONE", "workflow/inputs/00-one", "workflow/inputs/00-one/", "mul"] {
        let rows = rows(&lab, &["--sweep", name], 0);
        assert_eq!(rows[1]["row"], json!({"a": 2, "product": 4}), "{name}");
    }
    table(&lab, &["--sweep", "ONES"]).exit(2).says("no sweep ONES").says("did you mean ONE?");
    let rows = rows(&lab, &["--sweep", "INNER"], 0);
    let values: Vec<Value> = rows.iter().map(|row| row["row"]["sum"].clone()).collect();
    assert_eq!(values, [json!(8), json!(9), json!(9), json!(10)]);
    assert_eq!(rows[2]["row"], json!({"b": 4, "c": 5, "sum": 9}), "with the point around it");
}

#[test]
fn each_name_of_a_sweep_is_listed_once() {
    let factors = [("factors/00-a", "1\n2\n"), ("value", "mul")];
    let lab = sweep("", &factors).call("inputs/00-body/", "mul", &["a", "a"]).commit();
    table(&lab.with_storage(), &["--sweep", "nope"]).exit(2).says(
        "the task has no sweep nope; there are mul (or workflow)\n  \
         try: give --sweep one of these names",
    );
}

#[test]
fn rows_of_a_sweep_within_others_are_in_the_order_of_all_points() {
    // The innermost sweep depends on `b` alone, of the points of `a` and `b`.
    let lab = sweep("", &[("factors/00-a", "6\n1\n4\n"), ("factors/01-b", "9\n2\n7\n5\n3\n")])
        .node("inputs/00-body/", "computation", "add")
        .node("inputs/00-body/inputs/00-a/", "input", "a")
        .node("inputs/00-body/inputs/01-inner/", "computation", "both")
        .node("inputs/00-body/inputs/01-inner/inputs/00-table/", "sweep", "INNER")
        .file("workflow/inputs/00-body/inputs/01-inner/inputs/00-table/factors/00-c", "8\n1\n")
        .call("inputs/00-body/inputs/01-inner/inputs/00-table/inputs/00-body/", "add", &["b", "c"])
        .computation("both", "table", "lines", "wc -l <\"$1\" >\"$2\"")
        .commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let rows = rows(&lab, &["--sweep", "INNER"], 0);
    let points: Vec<[&Value; 2]> =
        rows.iter().map(|row| [&row["row"]["b"], &row["row"]["c"]]).collect();
    let expected: Vec<[Value; 2]> = [9, 2, 7, 5, 3]
        .into_iter()
        .flat_map(|b| [[json!(b), json!(8)], [json!(b), json!(1)]])
        .collect();
    assert_eq!(points, expected.iter().map(|[b, c]| [b, c]).collect::<Vec<_>>());
}

#[test]
fn sweeps_of_the_same_rules_have_labels_of_their_own() {
    let text = "(both SWEEP('first' :factors/00-a '1' '2' :body (mul INPUT('a') INPUT('a'))[00])[00]
                      SWEEP('second' :factors/00-a '1' '2' :body (add INPUT('a') INPUT('a'))[00])[00])[00]";
    let lab = Lab::task(text)
        .file("inputs", "")
        .computation("both", "one other", "all", "cat \"$1\" \"$2\" >\"$3\"")
        .commit();
    lab.ce_run(&["--no-sync"]).exit(0).says("2 tables: 2 made");
    let sums = rows(&lab, &["--sweep", "second"], 0);
    assert_eq!(sums[1]["row"], json!({"a": 2, "sum": 4}));
    table(&lab, &[])
        .exit(2)
        .says("first (or workflow/inputs/00-")
        .says("second (or workflow/inputs/01-");
    lab.run("ce-sym", &[]).exit(0).shows("SWEEP('first'").shows("SWEEP('second'");
}
