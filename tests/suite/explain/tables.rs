//! Calls that read the table of a sweep.

use std::fs;

use serde_json::json;

use super::{append, explain, record, told};
use crate::lab::Lab;
use crate::repository::{self, LAB};

const SHEET: &str = "sample\tcolour\na\tred\nb\tblue\n";

const BROKEN: &str =
    "s.tsv: the points cannot be used: line 3: the row has 1 value, and the header 2";

/// A task whose points are the sheet `s.tsv`.
fn lab(text: &str, sheet: &str) -> Lab {
    Lab::task(text)
        .file("inputs", "")
        .computation("size", "sample", "size", "wc -c <\"$1\" >\"$2\"")
        .computation("plot", "table", "picture", "cat \"$1\" >\"$2\"")
        .file("s.tsv", sheet)
        .commit()
        .with_storage()
}

/// A task whose output is the plot of a table, which was evaluated.
fn plotted() -> Lab {
    let lab = lab("(plot SWEEP(:body (size INPUT('sample')) :points OWN('s.tsv')))", SHEET);
    lab.ce_run(&["--no-sync"]).exit(0);
    record(&lab, "c_", &[("isolation", "namespaces")]);
    lab
}

#[test]
fn an_invalid_sheet_of_the_task_is_an_error_of_the_task() {
    let broken = &SHEET[..SHEET.len() - 6];
    let lab =
        lab("SWEEP(:body (size INPUT('sample')) :points OWN('s.tsv'))", &format!("{broken}\n"));
    lab.ce_run(&["-n"]).exit(2).says(BROKEN);
    for command in [
        &["check"][..],
        &["explain", "../storage"],
        &["explain", "--json", "../storage"],
        &["table", "../storage"],
        &["table", "--at", "HEAD", "--at", "HEAD", "../storage"],
    ] {
        let ran = lab.run("ce", command).exit(2);
        assert_eq!(
            (ran.stdout.as_str(), ran.stderr.lines().next()),
            ("", Some(&*format!("ce: {BROKEN}")))
        );
    }
}

#[test]
fn invalid_computed_points_are_a_failure() {
    for (text, expected) in [
        (
            "SWEEP(:body (size INPUT('sample')) :points (derive))",
            "not known, since a call has failed",
        ),
        ("(plot SWEEP(:body (size INPUT('sample')) :points (derive)))", "waits for SWEEP ()"),
    ] {
        let lab = Lab::task(text)
            .file("inputs", "")
            .computation("size", "sample", "size", "wc -c <\"$1\" >\"$2\"")
            .computation("plot", "table", "picture", "cat \"$1\" >\"$2\"")
            .computation("derive", "", "points", "printf 'sample\\tcolour\\na\\n' >\"$1\"")
            .commit();
        lab.ce_run(&["--no-sync"]).exit(1);
        explain(&lab, &["-v"]).exit(1).says("the points cannot be used: ").shows(expected);
    }
}

#[test]
fn a_reader_of_a_table_has_the_causes_of_all_its_points() {
    let lab = plotted();
    append(&lab.path("task/s.tsv"), "c\tblue\n");
    append(&lab.path("task/computations/size/exec"), "# more\n");
    repository::commit(&lab.path("task"), LAB, "size");
    let (causes, calls, _) = told(&lab, &[], 3);
    let numbers: Vec<_> = causes.iter().map(|it| (&it["cause"], &it["calls"])).collect();
    assert_eq!(numbers, [(&json!("computation"), &json!(4)), (&json!("point"), &json!(2))]);
    assert_eq!(
        (&calls[0]["computation"], &calls[0]["why"][0]["causes"]),
        (&json!("plot"), &json!([1, 2]))
    );
    explain(&lab, &[]).exit(3).shows("waits for sample=a: size (body) [1, 2]");
}

#[test]
fn a_label_that_changed_is_reported_by_its_table() {
    let lab = plotted();
    explain(&lab, &["--json"]).exit(0).shows("\"seconds\":0.0,");
    fs::write(lab.path("task/s.tsv"), SHEET.replace("red", "pink")).unwrap();
    repository::commit(&lab.path("task"), LAB, "pink");
    let (causes, ..) = told(&lab, &[], 3);
    assert_eq!(
        causes,
        [
            json!({"event": "cause", "number": 1, "calls": 1, "cause": "table", "table": "SWEEP ()", "file": "s.tsv"})
        ]
    );
    explain(&lab, &[])
        .exit(3)
        .shows("[1] SWEEP () has other rows or columns, and its points come from s.tsv: 1 call\n");
}
