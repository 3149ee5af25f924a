//! Measurements are told apart for each column: one that a call makes for all replicates was measured once.

use serde_json::{Value, json};

use crate::lab::Lab;

/// Each version is built once, and run for each replicate.
fn builds(replicates: &str) -> Lab {
    let rules = format!(":over version 'v1' 'v2' :replicates {replicates}");
    let workflow = format!(
        "built = (build version)
SWEEP(ALL(built[seconds] (run built[program] replicate)) {rules} :columns '00 build' '01 run')\n"
    );
    Lab::empty()
        .file("workflow.ce", workflow)
        .computation(
            "build",
            "version",
            "seconds program",
            r#"v=$(cat "$1"); echo "1${v#v}" >"$2"; echo "$v" >"$3""#,
        )
        .computation(
            "run",
            "program replicate",
            "seconds",
            r#"v=$(cat "$1") r=$(cat "$2"); echo "${v#v}.0$((r * 7 % 10))" >"$3""#,
        )
        .commit()
}

/// The objects that a query prints.
#[track_caller]
fn printed(lab: &Lab, arguments: &[&str]) -> Vec<Value> {
    let ran = lab.run("ce", &[arguments, &["--json", "../storage"]].concat()).exit(0);
    ran.lines().into_iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The numbers of values of both sides of each column, and the verdicts.
#[track_caller]
fn compared(lab: &Lab, arguments: &[&str]) -> Vec<(Value, Value)> {
    let columns = printed(lab, &[&["compare"], arguments].concat());
    columns
        .iter()
        .map(|it| (it["groups"][0]["n"].clone(), it["groups"][0]["verdict"].clone()))
        .collect()
}

#[test]
fn a_column_that_one_call_makes_for_all_replicates_has_one_value() {
    let lab = builds("10").isolated();
    lab.ce_run(&[]).exit(0).says("22 calls: 22 computed");
    let summary = printed(&lab, &["table", "--summary"]);
    let columns = &summary[0]["columns"];
    assert_eq!((&columns["build"]["n"], &columns["run"]["n"]), (&json!(1), &json!(10)));
    let versions = compared(&lab, &["--task", ".", "--by", "version=v1,v2"]);
    assert_eq!(versions[0], (json!([1, 1]), json!("too few")));
    assert_eq!(versions[1], (json!([10, 10]), json!("more")));
    // At another commit, builds are the same and runs are not.
    let lab = lab
        .computation("run", "program replicate", "seconds", r#"echo "9.$(cat "$2")" >"$3""#)
        .commit_again();
    lab.ce_run(&[]).exit(0).says("20 computed");
    let commits = compared(&lab, &["--task", ".", "--at", "HEAD~1", "--at", "HEAD"]);
    assert_eq!(commits[0], (json!([1, 1]), json!("same call")));
    assert_eq!(commits[1], (json!([10, 10]), json!("more")));
}

#[test]
fn a_page_has_such_a_column_once_for_each_point() {
    let lab = builds("10");
    lab.ce_run(&[]).exit(0);
    // Of the task, and of the recorded table alone.
    for task in [&["--task", "."][..], &[]] {
        lab.run("ce", &[&["report", "-o", "../page.html"], task, &["../storage"]].concat()).exit(0);
        let page = std::fs::read_to_string(lab.path("page.html")).unwrap();
        assert!(page.contains("build: one measurement of each point."), "{task:?}\n{page}");
        assert!(page.contains("run: medians of 10 measurements each."), "{task:?}\n{page}");
        let answer = |column: &str| page.contains(&format!("<span class=\"answer\">{column}: "));
        assert!(answer("run") && !answer("build"));
        assert!(page.contains("2 of 4 medians rest on too few measurements for an interval"));
    }
}

#[test]
fn replicates_do_not_end_by_values_measured_once() {
    let lab = builds("'6..10 until build ±5%'");
    let told = "at 2 points: no interval after 10 replicates at version=v1";
    lab.ce_run(&[]).exit(0).says(told).says("22 calls: 22 computed");
}

/// A replicate that fails behind the column does not hide the value of those with the same call.
#[test]
fn a_failed_replicate_has_no_value_and_hides_no_other_value() {
    let lab = builds("10")
        .computation(
            "run",
            "program replicate",
            "seconds",
            r#"[ $(cat "$2") != 1 ] && cp "$2" "$3""#,
        )
        .commit_again();
    lab.ce_run(&["--no-sync"]).exit(1);
    let ran = lab.run("ce", &["table", "--summary", "--json", "../storage"]).exit(3);
    let first: Value = serde_json::from_str(ran.lines()[0]).unwrap();
    let columns = &first["columns"];
    assert_eq!((&columns["build"]["n"], &columns["run"]["n"]), (&json!(1), &json!(9)));
    assert_eq!(first["not_ok"], 1);
}
