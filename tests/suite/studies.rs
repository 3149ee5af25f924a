//! The examples with sweeps: what grows executes its own calls, and what is drawn again nothing else.

use std::fs;

use crate::examples::{example, outputs, project};
use crate::lab::Lab;
use crate::program::Ran;

/// Runs an example with these arguments, in a sandbox: so results are taken over by later commits.
fn run<'a>(lab: &'a Lab, name: &str, arguments: &[&str]) -> Ran<'a> {
    let task = format!("tasks-example/{name}");
    lab.run("ce-run", &[&["--no-sync", "--task", &task, "../storage"], arguments].concat())
}

/// Replaces a text in a file of an example, and commits.
#[track_caller]
fn change(lab: Lab, name: &str, file: &str, from: &str, to: &str) -> Lab {
    let path = example(&lab, name).join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).unwrap();
    lab.commit_again()
}

/// The tables of sweeps in the storage.
fn tables(lab: &Lab) -> Vec<String> {
    let results = lab.results().into_iter();
    let tables = results.filter(|(name, _)| name.starts_with("tables/") && name.ends_with("/00"));
    tables.map(|(_, contents)| String::from_utf8(contents).unwrap()).collect()
}

#[test]
fn scaling_measures_each_point_ten_times_and_draws_again_without_that() {
    let lab = project().isolated();
    let machine = &["-p", "machine=ada"];
    let ran = run(&lab, "scaling", machine).exit(0).says("84 calls: 84 executed");
    assert!(
        lab.stored(outputs(&ran)[0]).contains("<title>time of 10 million updates [s] by threads")
    );
    let [table] = tables(&lab).try_into().unwrap();
    let rows: Vec<serde_json::Value> =
        table.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 80);
    for row in rows {
        let number = |name: &str| row[name].as_f64().unwrap();
        assert!(number("seconds") > 0.0, "{row}");
        assert_eq!(number("passes"), (10_000_000.0 / number("size")).floor(), "{row}");
        assert!(number("threads") < 4.0 || number("size") > 1000.0, "{row}");
    }
    let lab = change(lab, "scaling", "parameters/y", "time of", "seconds of");
    run(&lab, "scaling", machine).exit(0).says("84 calls: 83 taken over, 1 executed");
    let replicates = "workflow/inputs/00-summary/inputs/00-table/replicates";
    let lab = change(lab, "scaling", replicates, "10", "12");
    run(&lab, "scaling", machine).exit(0).says("100 calls: 82 taken over, 18 executed");
    let lab = change(lab, "scaling", "parameters/columns", "size)", "seize)");
    let ran = run(&lab, "scaling", machine).exit(1);
    ran.says("derive-columns: the table has no column \"seize\", which columns, line 1 names");
}

#[test]
fn two_machines_are_one_summary_and_one_figure() {
    let lab = project();
    let data = "tasks-example/two-machines/data";
    let [one, two] = ["one-core", "two-cores"].map(|name| format!("{data}/{name}.ndjson"));
    let names = ["-p", "name-a=one", "-p", "name-b=two", &one, &two];
    let ran = run(&lab, "two-machines", &names).exit(0).says("3 calls: 3 executed");
    let figure = lab.stored(outputs(&ran)[0]);
    assert!(figure.contains("machine two, size 1000000"), "{figure}");
    let summaries = lab.results().into_iter();
    let mut summaries = summaries.filter(|(name, _)| name.starts_with("c_summarise-table/"));
    let summary = String::from_utf8(summaries.next().unwrap().1).unwrap();
    let groups = ["one", "two"].map(|name| format!("{{\"machine\":\"{name}\",\"threads\":"));
    assert_eq!(groups.map(|group| summary.matches(&group).count()), [8, 8]);
    let names = ["-p", "name-a=one", "-p", "name-b=", &one, &two];
    run(&lab, "two-machines", &names)
        .exit(1)
        .says("has no column \"machine\", and name-b is empty");
}
