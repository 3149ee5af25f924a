//! A task over several commits: page, table, log and status tell the same of its calls, wherever they were executed.

use std::collections::HashMap;

use jiff::Timestamp;
use rustix::process::Signal;
use serde_json::Value;

use super::{data, report};
use crate::lab::Lab;
use crate::program::{Ran, Running};

/// Two calls at each of three points.
fn lab() -> Lab {
    let mut lab = Lab::task("Inputs: 'x'\n(add INPUT('x') INPUT('x'))[0]")
        .without("workflow")
        .node("", "sweep", "")
        .file("workflow/factors/00-n", "2\n3\n4\n")
        .node("inputs/00-body/", "computation", "add")
        .node("inputs/00-body/inputs/01-x/", "input", "x")
        .call("inputs/00-body/inputs/00-square/", "mul", &["n", "n"])
        .isolated();
    lab.inputs = vec!["x".to_owned()];
    lab.commit()
}

/// The lines of a program; each is a value of JSON.
fn lines(lab: &Lab, arguments: &[&str]) -> Vec<Value> {
    let ran = lab.run("ce", arguments).exit(0);
    ran.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn milliseconds(time: &Value) -> i64 {
    time.as_str().unwrap().parse::<Timestamp>().unwrap().as_millisecond()
}

/// The first twelve digits of the present commit.
fn commit(lab: &Lab) -> String {
    lab.git("task", &["rev-parse", "--short=12", "HEAD"]).trim().to_owned()
}

/// Checks all reports of the task at its present commit, where all calls are there. Returns the data of the page.
#[track_caller]
fn agree(lab: &Lab, taken_over: usize) -> Value {
    lab.run("ce", &["check"]).exit(0).shows(": 1 input, 6 calls, 1 table, ");
    report(lab, &["--task", ".", "../storage", "../data/x"]).exit(0).says("6 calls, 1 table");
    let page = data(lab);
    let calls = page["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 6);
    assert_eq!(calls.iter().filter(|call| call["state"] == "taken_over").count(), taken_over);
    let log = lines(lab, &["log", "--json", "../storage"]);
    let log: HashMap<&str, &Value> =
        log.iter().map(|it| (it["name"].as_str().unwrap(), it)).collect();
    for call in calls {
        let past = log[call["name"].as_str().unwrap()];
        // The log distinguishes the usage of a call itself, and of the execution that it was taken over from.
        let taken_over = &past["taken_over"];
        let execution = if taken_over.is_null() { past } else { taken_over };
        assert_eq!(call.get("taken_over").unwrap_or(&Value::Null), taken_over);
        for field in ["seconds", "cpu_seconds", "peak_bytes", "host"] {
            assert!(!execution[field].is_null(), "{field}: {past:#}");
            assert_eq!(call[field], execution[field], "{field}: {call:#}");
        }
        let executed = if past["taken_over"].is_null() {
            &past["at"]
        } else {
            &past["taken_over"]["executed"]
        };
        assert_eq!(call["end"], milliseconds(executed));
        if call["computation"] == "add" {
            let maker = call["inputs"][0]["from"]["call"].as_u64().unwrap() as usize;
            assert_eq!(calls[maker]["computation"], "mul");
            assert_eq!(call["inputs"][1]["role"], "x");
        }
    }
    let rows = lines(lab, &["table", "--json", "../storage", "../data/x"]);
    let of_page = page["tables"][0]["rows"].as_array().unwrap();
    assert_eq!((rows.len(), of_page.len()), (3, 3));
    for (row, of_page) in rows.iter().zip(of_page) {
        let call = &calls[of_page["call"].as_u64().unwrap() as usize];
        assert_eq!((&row["host"], &row["duration"]), (&call["host"], &call["seconds"]));
        assert_eq!(milliseconds(&row["time"]), call["end"].as_i64().unwrap());
    }
    page
}

#[test]
fn page_table_log_and_status_agree_over_three_commits() {
    let lab = lab();
    lab.ce_run(&["--no-sync"]).exit(0).says("6 calls: 6 computed");
    let first = agree(&lab, 0);
    // An unrelated commit: all calls are taken over, and the reports of their executions stay.
    let lab = lab.file("notes", "nothing\n").commit_again();
    lab.ce_run(&["--no-sync"]).exit(0).says("6 calls: 6 taken over");
    let second = agree(&lab, 6);
    let executions = |page: &Value| -> Vec<Value> {
        let calls = page["calls"].as_array().unwrap().iter();
        calls
            .map(|call| serde_json::json!([call["end"], call["seconds"], call["peak_bytes"]]))
            .collect()
    };
    assert_eq!(executions(&first), executions(&second));
    // The status of a run counts the same calls.
    let slow = r#"[ ! -e /nowhere ] && sleep 600; echo $(($(cat "$1") + $(cat "$2"))) >"$3""#;
    let lab = lab.computation("add", "a b", "sum", slow).commit_again();
    let run = Running::start(&mut lab.evaluation(&["--no-sync", "-j3"]));
    let status = loop {
        let status = lines(&lab, &["status", "--json", "../storage"]).remove(0);
        if status["runs"][0]["state"]["running"] == 3 {
            break status["runs"][0]["state"].clone();
        }
        std::thread::yield_now();
    };
    assert_eq!((&status["all"], &status["found"]), (&6.into(), &3.into()), "{status:#}");
    run.signal(Signal::INT);
    Ran::new(&lab, run.output()).exit(130);
    report(&lab, &["--task", ".", "../storage", "../data/x"]).exit(0).says("6 calls, 1 table");
    // Some calls are executed at the third commit, the others were at the first.
    let quick = r#"echo $(($(cat "$2") + $(cat "$1"))) >"$3""#;
    let lab = lab.computation("add", "a b", "sum", quick).commit_again();
    lab.ce_run(&["--no-sync"]).exit(0).says("6 calls: 3 taken over, 3 computed");
    agree(&lab, 3);
    // So is the page of the job.
    let job = format!("t_task/{}/00/", commit(&lab));
    let job = lab.results().into_keys().find(|name| name.starts_with(&job)).unwrap();
    report(&lab, &["../storage", &job]).exit(0).says("6 calls, 1 table");
    let page = data(&lab);
    for call in page["calls"].as_array().unwrap().iter().filter(|it| it["computation"] == "add") {
        assert!(call["inputs"][0]["from"]["call"].is_u64(), "{call:#}");
    }
    // The log has them all, and counts the executed ones as executed.
    let ran = lab.run("ce", &["log", "../storage"]).exit(0);
    let taken_over = ran.stdout.lines().filter(|line| line.contains("  taken over  "));
    assert_eq!(taken_over.count(), 12, "{}", ran.stdout);
    let used = lines(&lab, &["log", "--resources", "--json", "../storage"]);
    assert_eq!(used.iter().map(|line| line["calls"].as_u64().unwrap()).sum::<u64>(), 9);
    assert_eq!(lines(&lab, &["log", "--slow", "0", "--json", "../storage"]).len(), 9);
}

#[test]
fn inputs_with_equal_contents_have_their_own_names() {
    let lab = Lab::task("Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('y'))[0]")
        .data("x", "3\n")
        .data("y", "3\n")
        .commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let roles = |computation: &str| -> Vec<String> {
        let page = data(&lab);
        let calls = page["calls"].as_array().unwrap();
        let call = calls.iter().find(|call| call["computation"] == computation).unwrap();
        let inputs = call["inputs"].as_array().unwrap().iter();
        inputs.map(|input| input["role"].as_str().unwrap_or("none").to_owned()).collect()
    };
    report(&lab, &["--task", ".", "../storage", "../data/x", "../data/y"]).exit(0);
    assert_eq!(
        (roles("mul"), roles("add")[1].as_str()),
        (vec!["x".to_owned(), "y".to_owned()], "y")
    );
    // Records do not say which of both it is.
    report(&lab, &["../storage"]).exit(0);
    assert_eq!(roles("mul"), ["x or y"; 2]);
}
