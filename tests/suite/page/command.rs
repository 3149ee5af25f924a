//! The data of a page, and the file that it is written to.

use std::fs;

use serde_json::{Value, json};

use super::chromium::Chromium;
use super::{data, page, report, sweep};
use crate::isolation;
use crate::lab::Lab;
use crate::shared;

const TASK: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('x'))[0]";

fn lab() -> Lab {
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    lab
}

/// A field of each call, the newest first.
fn of_calls(data: &Value, field: &str) -> Vec<String> {
    let calls = data["calls"].as_array().unwrap();
    calls.iter().map(|call| call[field].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_page_of_a_storage_has_all_calls_and_their_origins() {
    let lab = lab();
    lab.unchanged(|| report(&lab, &["../storage"]).exit(0).says("page.html: 2 calls, 0 tables"));
    let data = data(&lab);
    assert!(page(&lab).contains("<h1>storage</h1>"));
    assert_eq!(of_calls(&data, "computation"), ["add", "mul"]);
    assert_eq!(of_calls(&data, "state"), ["executed"; 2]);
    let add = &data["calls"][0];
    assert_eq!(add["inputs"][0]["from"], json!({"call": 1}));
    assert_eq!(add["inputs"][1]["role"], "x");
    assert!(add["seconds"].is_number() && add["host"].is_string() && add["commit"].is_string());
    assert_eq!(data["outputs"][0]["value"]["from"], json!({"call": 0}));
    assert_eq!(data["outputs"][0]["task"], "task");
    let labels = data["shapes"].as_array().unwrap().iter().map(|it| it["label"].as_str().unwrap());
    assert_eq!(labels.collect::<Vec<_>>(), ["INPUT x", "INPUT y", "mul", "add", "OUTPUT task"]);
    // Equal storages give equal pages, also in a page that is named by a dash, which is printed.
    let ran = lab.run("ce", &["report", "-o", "-", "../storage"]).exit(0);
    assert!(ran.stdout == page(&lab), "the pages differ");
    ran.says("ce: standard output: 2 calls, 0 tables\n");
    assert!(!lab.path("task/-").exists());
}

#[test]
fn what_was_taken_over_is_not_computed_twice() {
    if !isolation::is_possible() {
        return;
    }
    let lab = Lab::task("Inputs: 'x'\n(wait INPUT('x'))[0]").isolated();
    let lab = lab.computation("wait", "x", "y", "sleep 0.4; cat \"$1\" >\"$2\"").commit();
    let took = |calls: &str| {
        lab.ce_run(&[]).exit(0);
        report(&lab, &["../storage"]).exit(0).says(calls);
        let page = page(&lab);
        let end = page.find(" of computing").unwrap();
        page[..end].rsplit(", ").next().unwrap().to_owned()
    };
    let once = took("page.html: 1 call, ");
    lab.git("task", &["commit", "--quiet", "--allow-empty", "--amend", "-m", "other"]);
    assert_eq!(took("page.html: 2 calls, "), once);
}

#[test]
fn a_page_of_a_task_lists_missing_results() {
    let mut lab = lab();
    report(&lab, &["--task", ".", "../storage", "../data/x", "../data/y"]).exit(0);
    assert_eq!(of_calls(&data(&lab), "state"), ["executed"; 2]);
    lab = lab.data("y", "6\n");
    let typed = ["--task", ".", "../storage", "../data/x", "../data/y"];
    lab.unchanged(|| report(&lab, &typed).exit(0));
    let data = data(&lab);
    assert_eq!(of_calls(&data, "state"), ["missing"; 2]);
    assert_eq!(data["calls"].as_array().unwrap().len(), 2);
    let names = of_calls(&data, "name");
    assert!(
        names.contains(&"call 1 of the task".to_owned()),
        "what its inputs are is not known: {names:?}"
    );
    assert_eq!(data["outputs"][0]["value"]["sha1"], "");
    report(&lab, &["--task", ".", "../storage", "../data/x"]).exit(2).says("takes 2 inputs");
}

#[test]
fn a_page_of_a_result_has_its_origins() {
    let lab = lab();
    let call = lab.results().into_keys().find(|name| name.starts_with("c_mul/")).unwrap();
    let short = call.replace("/00/", "/");
    for name in [&format!("../storage/{call}"), &short] {
        report(&lab, &["../storage", name]).exit(0).says("1 call,");
        let data = data(&lab);
        assert_eq!(of_calls(&data, "name"), std::slice::from_ref(&short));
        assert!(page(&lab).contains("<h1>mul</h1>"));
    }
    let job = lab.results().into_keys().find(|name| name.starts_with("t_")).unwrap();
    report(&lab, &["../storage", &job, &call]).exit(0).says("2 calls,");
    assert_eq!(data(&lab)["outputs"].as_array().unwrap().len(), 2);
    report(&lab, &["../storage", "c_mul/nothing"]).exit(2).says("has no record");
    report(&lab, &["../nowhere"]).exit(5);
    report(&lab, &["-p", "x=1", "../storage"]).exit(2).says("--task");
}

#[test]
fn tables_have_rows_with_their_calls_and_failures_have_logs() {
    let lab = sweep();
    lab.ce_run(&["--no-sync"]).exit(0);
    for arguments in [&["../storage"][..], &["--task", ".", "../storage"]] {
        lab.unchanged(|| report(&lab, arguments).exit(0).says("4 calls, 1 table"));
        let data = data(&lab);
        let table = &data["tables"][0];
        assert_eq!(table["keys"], json!(["x", "y"]));
        let cells: Vec<_> =
            table["rows"].as_array().unwrap().iter().map(|it| &it["cells"]).collect();
        assert_eq!(&cells[0].as_array().unwrap()[..3], [7, 2, 3], "{arguments:?}");
        assert_eq!(&cells[1].as_array().unwrap()[..3], [json!(7), json!(0), Value::Null]);
        let call = table["rows"][0]["call"].as_u64().unwrap() as usize;
        assert_eq!(data["calls"][call]["state"], "executed");
        let failed: Vec<&Value> =
            data["calls"].as_array().unwrap().iter().filter(|it| it["state"] == "failed").collect();
        assert_eq!(failed.len(), 2);
        assert!(failed[0]["reason"].as_str().unwrap().contains("exit status"), "{}", failed[0]);
        assert!(failed[0]["log"]["tail"].as_str().unwrap().contains('0'), "{}", failed[0]);
    }
}

#[test]
fn omissions_are_reported() {
    let lab = sweep();
    lab.ce_run(&["--no-sync"]).exit(0);
    let limits = ["--calls", "3", "--rows", "1", "--log", "0", "../storage"];
    let ran = report(&lab, &limits).exit(0);
    let ran = ran.says("only the newest 3 of 4 calls are shown");
    ran.says("only the first 1 of 4 rows of the table").says("logs are left out");
    let data = data(&lab);
    assert_eq!(data["calls"].as_array().unwrap().len(), 3);
    assert_eq!(page(&lab).matches("<li>Note: ").count(), 3);
    assert!(data["shapes"].as_array().unwrap().iter().all(|shape| {
        shape["calls"].as_array().unwrap().iter().all(|call| call.as_u64().unwrap() < 3)
    }));
    let ran = report(&lab, &[&["-q"], &limits[..]].concat()).exit(0);
    assert_eq!((ran.stderr.as_str(), ran.stdout.as_str()), ("", ""));
}

#[test]
fn only_a_page_is_replaced() {
    let lab = lab();
    report(&lab, &["../storage"]).exit(0);
    report(&lab, &["../storage"]).exit(0);
    fs::write(lab.path("page.html"), "my own").unwrap();
    report(&lab, &["../storage"]).exit(2).says("is not a page of ce report").says("--force");
    assert_eq!(page(&lab), "my own");
    report(&lab, &["--force", "../storage"]).exit(0);
    assert!(page(&lab).starts_with("<!doctype html>"));
    let target = lab.path("page.html");
    std::os::unix::fs::symlink(&target, lab.path("link.html")).unwrap();
    for place in ["../link.html", "../data", "/dev/null"] {
        lab.run("ce", &["report", "--force", "-o", place, "../storage"]).exit(2);
    }
    lab.run("ce", &["report", "-o", "../nowhere/page.html", "../storage"]).exit(5);
    let left = fs::read_dir(lab.path("")).unwrap();
    let left = left.map(|it| it.unwrap().file_name().into_string().unwrap());
    assert!(!left.into_iter().any(|name| name.ends_with(".part")));
}

#[test]
fn a_storage_without_results_has_a_page() {
    let lab = Lab::task(TASK).commit().with_storage();
    fs::create_dir(lab.path("storage/tinputs")).unwrap();
    report(&lab, &["../storage"]).exit(0).says("0 calls, 0 tables");
    assert_eq!(data(&lab)["shapes"], json!([]));
    report(&lab, &["--task", ".", "../storage", "../data/x", "../data/y"]).exit(0).says("2 calls");
}

#[test]
fn a_page_of_a_clone_names_the_executors_of_calls() {
    let lab = shared::lab();
    shared::evaluate(&lab, "storage").exit(0);
    shared::push(&lab, &[], "storage", "results.git").exit(0);
    shared::cloned(&lab, "results.git", "clone", &[]);
    report(&lab, &["../clone"]).exit(0).says("2 calls,");
    let of_clone = data(&lab);
    assert_eq!(of_calls(&of_clone, "state"), ["shared"; 2]);
    assert_eq!(of_clone["calls"][0]["attested"]["agreeing"], json!(["unsigned"]));
    assert!(of_clone["calls"][0].get("end").is_none());
    report(&lab, &["../storage"]).exit(0);
    assert!(data(&lab)["calls"][0].get("attested").is_none(), "only this storage says so");
}

#[test]
fn a_workflow_that_nobody_could_read_is_not_drawn() {
    let inputs: String = (0..100).map(|number| format!("i{number}\n")).collect();
    let joined = |names: &mut dyn Iterator<Item = String>| {
        format!("(join {})[0]", names.collect::<Vec<_>>().join(" "))
    };
    let leaf = |number: usize| format!("FILE('large/{number}')");
    let of = |at: usize| joined(&mut (0..100).map(|number| leaf(100 * (at % 15) + number)));
    let text = format!("Inputs:\n{}", joined(&mut (0..100).map(of)));
    let lab =
        Lab::task(&text).computation("join", &inputs, "all", "exit 1").commit().with_storage();
    // 1500 literals, 16 calls and an output.
    let ran = report(&lab, &["--task", ".", "../storage"]).exit(0);
    ran.says("warning: the workflow has 1517 shapes, and is not drawn\n")
        .says("16 calls, 0 tables");
    assert!(page(&lab).contains("<li>Note: the workflow has 1517 shapes, and is not drawn.</li>"));
    let Some(mut chromium) = Chromium::start() else { return };
    chromium.open(&lab.path("page.html"), [1000, 800], "light");
    chromium.is("document.querySelectorAll('#graph svg').length === 0");
    chromium.is("document.querySelectorAll('#calls tbody tr').length === 16");
    chromium.is("document.body.textContent.includes('1517 shapes')");
    chromium.click("document.querySelector('#calls tbody tr')");
    chromium.is("!document.querySelector('#details').hidden");
    assert_eq!(chromium.troubles(), Vec::<String>::new());
}
