//! Computations of the library that `ce` carries.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::lab::{Lab, files};
use crate::needs::needs;
use crate::program::Ran;

fn lab(text: &str) -> Lab {
    Lab::task("Inputs: 'x'\nINPUT('x')").without("computations").one_text(text).commit()
}

fn add<'a>(lab: &'a Lab, arguments: &[&str]) -> Ran<'a> {
    lab.run("ce", &[&["add"], arguments].concat())
}

#[test]
fn the_library_is_listed_and_copied_and_what_was_changed_stays() {
    let lab = lab("Inputs: x\nx\n");
    let listed = add(&lab, &[]).exit(0).stdout;
    assert!(listed.lines().count() > 8 && listed.lines().all(|line| line.len() < 80), "{listed}");
    let ran = add(&lab, &["field", "summarise-table"]).exit(0);
    let ran = ran.shows("wrote computations/field.py\n  call it: (field OWN('data/config.json')");
    ran.shows("  git add computations/field.py computations/summarise-table && git commit\n");
    let computations = files(&lab.path("task/computations"));
    let names: Vec<&str> = computations.keys().map(String::as_str).collect();
    let parts = ["exec", "inputs", "outputs", "samples.py", "tables.py"];
    let parts = parts.map(|part| format!("summarise-table/{part}"));
    assert_eq!(names[0], "field.py");
    assert_eq!(names[1..], parts);
    add(&lab, &["field"]).exit(0).shows("it is there: computations/field.py\n");
    let changed = fs::read_to_string(lab.path("task/computations/field.py")).unwrap() + "# mine\n";
    let lab = lab.file("computations/field.py", &changed);
    let ran = add(&lab, &["plot", "field"]).exit(2).says("the task has changed field");
    ran.says("ce add --diff field shows how");
    assert!(!lab.path("task/computations/plot").exists());
    let diff = add(&lab, &["--diff", "field"]).exit(0);
    diff.shows("--- library/computations/field.py\n+++ computations/field.py\n").shows("+# mine\n");
    assert_eq!(fs::read_to_string(lab.path("task/computations/field.py")).unwrap(), changed);
    add(&lab, &["feld"])
        .exit(2)
        .says("the library has no computation \"feld\"")
        .says("did you mean");
}

#[test]
fn a_name_that_the_task_has_is_not_taken() {
    let lab = lab("Inputs: x\nfield: a b -> c\n    cat\n\n(field x x)\n");
    add(&lab, &["field"]).exit(2).says("nothing is written: workflow.ce is there already");
    assert!(!lab.path("task/computations").exists());
}

/// The output of a computation of the library that reads these texts.
fn made(name: &str, inputs: &[&str]) -> Result<String, String> {
    let names: Vec<String> = (0..inputs.len()).map(|at| format!("OWN('data/{at}')")).collect();
    let lab = lab(&format!("({name} {})\n", names.join(" ")));
    add(&lab, &[name]).exit(0);
    let lab = inputs
        .iter()
        .enumerate()
        .fold(lab, |lab, (at, contents)| lab.file(&format!("data/{at}"), contents));
    let mut lab = lab.isolated().commit_again();
    lab.inputs.clear();
    let ran = lab.ce_run(&["--no-sync"]);
    match ran.status.code() {
        Some(0) => Ok(lab.output()),
        _ => Err(ran.stderr.clone()),
    }
}

#[test]
fn a_field_is_one_value_of_a_file() {
    needs(&["python3"]);
    let json = r#"{"model": {"layers": [{"size": 3}, "last"], "rate": 0.5, "on": true}, "a/b": 1}"#;
    for (path, value) in [
        ("model/layers/1", "last\n"),
        ("model/layers/0", "{\"size\": 3}\n"),
        ("model/rate", "0.5\n"),
        ("model/on\n", "true\n"),
        ("a~1b", "1\n"),
    ] {
        assert_eq!(made("field", &[json, path]).unwrap(), value, "{path}");
    }
    assert_eq!(made("field", &["[tool]\nname = 'x'\n", "tool/name"]).unwrap(), "x\n");
    for (path, fault) in [
        ("model/depth", "field: model has no depth: it has layers, on, rate"),
        ("model/layers/2", "field: model/layers is a list of 2 values, and has no 2"),
        ("model/rate/x", "field: model/rate is a single value, and has no x"),
    ] {
        let said = made("field", &[json, path]).unwrap_err();
        assert!(said.contains(fault), "{said}");
    }
    assert!(made("field", &["{", "a"]).unwrap_err().contains("cannot be read as"));
}

#[test]
fn results_of_benchmarks_become_rows() {
    needs(&["python3"]);
    let hyperfine = r#"{"results": [{"command": "sort -S 4", "parameters": {"memory": "4"}, "mean": 2.0, "times": [1.5, 2.5], "exit_codes": [0, 0]}]}"#;
    assert_eq!(
        made("read-benchmarks", &[hyperfine]).unwrap(),
        "{\"command\": \"sort -S 4\", \"memory\": 4, \"replicate\": 1, \"seconds\": 1.5}\n\
         {\"command\": \"sort -S 4\", \"memory\": 4, \"replicate\": 2, \"seconds\": 2.5}\n"
    );
    let google = r#"{"context": {}, "benchmarks": [
        {"name": "BM_sort/1024", "run_name": "BM_sort/1024", "run_type": "iteration", "real_time": 2.0, "cpu_time": 1.0, "time_unit": "us", "items_per_second": 5.0, "iterations": 9},
        {"name": "BM_sort/1024_mean", "run_name": "BM_sort/1024", "run_type": "aggregate", "real_time": 2.0, "cpu_time": 1.0, "time_unit": "us"}]}"#;
    assert_eq!(
        made("read-benchmarks", &[google]).unwrap(),
        "{\"benchmark\": \"BM_sort\", \"parameter0\": 1024, \"replicate\": 1, \"seconds\": 2e-06, \
         \"cpu_seconds\": 1e-06, \"items_per_second\": 5.0}\n"
    );
    let pytest = r#"{"machine_info": {}, "benchmarks": [{"name": "test_sort[8]", "params": {"n": 8}, "group": null, "stats": {"mean": 1.0, "data": [0.5]}}]}"#;
    assert_eq!(
        made("read-benchmarks", &[pytest]).unwrap(),
        "{\"benchmark\": \"test_sort\", \"n\": 8, \"replicate\": 1, \"seconds\": 0.5}\n"
    );
    let two = |n: &str| {
        format!(r#"{{"name": "t[{n}]", "params": {{"n": {n}}}, "stats": {{"data": [1, 2]}}}}"#)
    };
    let pytest =
        format!(r#"{{"machine_info": {{}}, "benchmarks": [{}, {}]}}"#, two("0.1"), two("0.2"));
    let rows = made("read-benchmarks", &[&pytest]).unwrap();
    let replicates: Vec<&str> =
        rows.lines().map(|row| row.split("\"replicate\": ").nth(1).unwrap()).collect();
    assert_eq!(
        replicates,
        ["1, \"seconds\": 1}", "2, \"seconds\": 2}", "1, \"seconds\": 1}", "2, \"seconds\": 2}"]
    );
    let go = "goos: linux\nBenchmarkSort/size=10-8   \t 100\t 2000 ns/op\t 16 B/op\nBenchmarkSort/size=10-8 100 4000 ns/op 17 B/op\nPASS\n";
    assert_eq!(
        made("read-benchmarks", &[go]).unwrap(),
        "{\"benchmark\": \"BenchmarkSort\", \"size\": 10, \"cpus\": 8, \"replicate\": 1, \"seconds\": 2e-06, \"B/op\": 16}\n\
         {\"benchmark\": \"BenchmarkSort\", \"size\": 10, \"cpus\": 8, \"replicate\": 2, \"seconds\": 4e-06, \"B/op\": 17}\n"
    );
    let failed = google.replace(
        "{\"name\": \"BM_sort/1024\"",
        "{\"name\": \"BM_bad\", \"error_occurred\": true}, {\"name\": \"BM_sort/1024\"",
    );
    let rows = made("read-benchmarks", &[&failed]).unwrap();
    assert_eq!(
        rows.lines().next(),
        Some(
            "{\"benchmark\": \"BM_bad\", \"parameter0\": null, \"replicate\": 1, \"status\": \"failed\"}"
        )
    );
    assert!(rows.ends_with("\"status\": \"ok\"}\n"), "{rows}");
    let said = made("read-benchmarks", &["nothing\n"]).unwrap_err();
    assert!(said.contains("neither JSON nor the text of go test -bench"), "{said}");
}

/// Files that these tools have written.
const FILES: [&str; 4] = ["hyperfine.json", "google.json", "pytest-benchmark.json", "go.txt"];

#[test]
fn a_comparison_reads_the_files_of_tools_as_the_library_does() {
    needs(&["python3"]);
    let lab = Lab::empty();
    let compare = |file: &str| {
        let ran = lab.run("ce", &["compare", "--json", file, file]);
        assert!(matches!(ran.status.code(), Some(0 | 3)), "{file}: {}", ran.stderr);
        let lines = ran.stdout.lines().map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let column = line.as_object_mut().unwrap();
            column.retain(|name, _| !["sides", "unit", "better"].contains(&name.as_str()));
            let groups = line["groups"].as_array_mut().unwrap();
            groups
                .iter_mut()
                .for_each(|group| drop(group.as_object_mut().unwrap().remove("is_better")));
            groups
                .iter_mut()
                .for_each(|group| drop(group.as_object_mut().unwrap().remove("verdict")));
            line
        });
        lines.collect::<Vec<Value>>()
    };
    for name in FILES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/benchmark-files").join(name);
        let contents = fs::read_to_string(&path).unwrap();
        let rows = made("read-benchmarks", &[&contents]).unwrap();
        fs::write(lab.path("rows.ndjson"), rows).unwrap();
        let of_rows = compare("../rows.ndjson");
        assert!(!of_rows.is_empty());
        assert_eq!(compare(path.to_str().unwrap()), of_rows, "{name}");
    }
}
