//! `ce show` and `ce log` say at which points a call is.

use std::fs;

use compeval::digest::Digest;
use serde_json::{Value, json};

use super::sweep;
use crate::lab::{Lab, Library, files};

/// A sweep that multiplies a with itself, and adds b: so a call of `mul` is at all points with the same a.
fn squares() -> Lab {
    let lab = sweep("", &[("factors/00-a", "1\n2\n"), ("factors/01-b", "3\n5\n7\n9\n11\n")]);
    lab.node("inputs/00-body/", "computation", "add")
        .call("inputs/00-body/inputs/00-x/", "mul", &["a", "a"])
        .node("inputs/00-body/inputs/01-y/", "input", "b")
        .commit_with(Library::Submodule)
}

/// Puts into the storage what calls that are isolated are executed from, as far as names come from there.
fn export(lab: &Lab) {
    for (name, record) in files(&lab.path("storage")) {
        if name.ends_with("/version.json") {
            let record: Value = serde_json::from_slice(&record).unwrap();
            let computation = record["computation"].as_str().unwrap();
            let tree = lab.path("storage/trees").join(record["tree"].as_str().unwrap());
            fs::create_dir_all(&tree).unwrap();
            let inputs = lab.path("task/computations").join(computation).join("inputs");
            fs::copy(inputs, tree.join("inputs")).unwrap();
        }
    }
}

/// The lines of `ce log` as JSON.
fn log(lab: &Lab, options: &[&str]) -> Vec<Value> {
    let ran = lab.run("ce", &[&["log", "--json"], options, &["../storage"]].concat()).exit(0);
    ran.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The output of the call of a computation that read these texts.
fn output_of(lab: &Lab, computation: &str, texts: &Value) -> String {
    let calls = log(lab, &["--computation", computation]);
    let call = calls.iter().find(|call| call["texts"] == *texts).unwrap();
    let (directory, file) = call["name"].as_str().unwrap().rsplit_once('/').unwrap();
    format!("{directory}/00/{file}")
}

#[test]
fn the_log_has_the_texts_that_calls_read() {
    let lab = squares();
    lab.ce_run(&["--no-sync"]).exit(0);
    export(&lab);
    let calls = log(&lab, &[]);
    assert_eq!(calls.len(), 12);
    // The output of another call is not among them.
    let texts = |computation: &str| -> Vec<&Value> {
        let mut texts: Vec<&Value> = (calls.iter())
            .filter(|call| call["computation"] == computation)
            .map(|call| &call["texts"])
            .collect();
        texts.sort_by_key(ToString::to_string);
        texts
    };
    assert_eq!(texts("mul"), [&json!({"a": "1", "b": "1"}), &json!({"a": "2", "b": "2"})]);
    let add = texts("add");
    assert_eq!(add.len(), 10);
    assert_eq!(add.iter().filter(|texts| ***texts == json!({"b": "7"})).count(), 2, "{add:?}");
    let lines = lab.run("ce", &["log", "--computation", "mul", "../storage"]).exit(0);
    drop(lines.shows("  mul          a=1 b=1  ").shows("  mul          a=2 b=2  "));
}

#[test]
fn lists_name_results_by_their_texts() {
    let lab = squares();
    lab.ce_run(&["--no-sync"]).exit(0);
    export(&lab);
    let ce = |arguments: &[&str]| lab.run("ce", &[arguments, &["../storage"]].concat()).exit(0);
    let none_kept = ["--no-keep", "--older=0s"];
    let listed = ce(&[&["gc"][..], &none_kept].concat()).stdout;
    let named = |title: &str, file: &str| {
        let lines = listed.lines().filter(|line| line.contains(&format!("  ../storage/{file}")));
        lines.filter(|line| line.contains(&format!("Z  {title}  "))).count()
    };
    for (title, file, count) in [
        ("mul a=1 b=1", "c_mul/", 1),
        ("add b=7", "c_add/", 2),
        ("text=11", "tinputs/", 1),
        ("table", "tables/", 1),
        ("task task", "t_task/", 1),
    ] {
        assert_eq!(named(&format!("{title:<11}"), file), count, "{title}: {listed}");
    }
    let mul = output_of(&lab, "mul", &json!({"a": "2", "b": "2"}));
    lab.run("ce", &["pin", "../storage", &mul]).exit(0);
    ce(&["pin"]).shows(&format!("  mul a=2 b=2  ../storage/{mul}"));
    let table = files(&lab.path("storage")).into_keys();
    let table = table.filter(|name| name.starts_with("tables/")).find(|name| name.ends_with("/00"));
    let shown = lab.run("ce", &["show", "../storage", &table.unwrap()]).exit(0).stdout;
    assert_eq!(shown.matches(" (add b=7, output 00)\n").count(), 2, "{shown}");
    // A result that goes is named, too, although its texts go with it.
    let ran = ce(&[&["gc", "--delete"][..], &none_kept].concat()).stdout;
    assert!(ran.contains("  add b=11"), "{ran}");
}

#[test]
fn the_log_has_the_texts_of_calls_that_failed() {
    let lab = sweep("", &[("factors/00-n", "4\n5\n"), ("allow-failed", "")])
        .computation("odd", "number", "out", "test \"$(cat \"$1\")\" = 5 && cp \"$1\" \"$2\"")
        .call("inputs/00-body/", "odd", &["n"])
        .commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    export(&lab);
    let failed = lab.run("ce", &["log", "--failed", "../storage"]).exit(0);
    failed.shows("  odd          number=4  ").shows("  FAILED: it ended with exit status 1\n");
    assert_eq!(log(&lab, &["--failed"])[0]["texts"], json!({"number": "4"}));
    assert_eq!(log(&lab, &["-n", "1"]).len(), 1);
}

#[test]
fn texts_without_their_names_are_numbered_and_others_are_left_out() {
    let lab = Lab::task("Inputs: 'x', 'y'\n(join INPUT('x') INPUT('y'))[0]")
        .computation("join", "left right", "out", "cat \"$1\" \"$2\" > \"$3\"")
        .commit();
    let joined = |lab: Lab, x: &str, y: &str| {
        let lab = lab.data("x", x).data("y", y);
        lab.ce_run(&["--no-sync"]).exit(0);
        export(&lab);
        lab
    };
    let lab = joined(lab, "one line\n", "two\nlines\n");
    assert_eq!(log(&lab, &[])[0]["texts"], json!({"left": "one line"}));
    let long = "x".repeat(257);
    let lab = joined(lab, &long, "\u{1b}[2J");
    assert_eq!(log(&lab, &["-n", "1"])[0]["texts"], json!({}));
    let lab = joined(lab, &long[1..], "");
    assert_eq!(log(&lab, &["-n", "1"])[0]["texts"], json!({"left": &long[1..]}));
    // The names are not known any more, and a changed file is not used.
    fs::remove_dir_all(lab.path("storage/trees")).unwrap();
    let changed = output_of(&lab, "join", &json!({"00": "one line"}));
    let file = Digest::hash_bytes(b"one line\n").sha1.full()[..12].to_owned();
    let file = lab.path("storage/tinputs").join(&file[..2]).join(&file[2..]);
    fs::remove_file(&file).unwrap();
    fs::write(&file, "two line\n").unwrap();
    let shown = lab.run("ce", &["show", "../storage", &changed]).exit(0);
    assert!(!shown.stdout.contains("  texts "), "{}", shown.stdout);
    assert_eq!(log(&lab, &[])[0]["texts"], json!({}));
}

#[test]
fn a_call_is_shown_with_its_points() {
    let lab = squares();
    lab.ce_run(&["--no-sync"]).exit(0);
    export(&lab);
    let mul = output_of(&lab, "mul", &json!({"a": "2", "b": "2"}));
    let ran = lab.run("ce", &["show", "../storage", &mul]).exit(0);
    let ran = ran.shows("  texts        a=2 b=2\n  point        a=2 b=3\n  point        a=2 b=5\n");
    let ran = ran.shows("  point        a=2 b=7\n               and 2 more points, all with a=2\n");
    let ran = ran
        .shows("  in table     ../storage/tables/")
        .shows(" of task task, which has 10 points\n");
    assert_eq!(ran.stdout.matches("in table").count(), 1, "{}", ran.stdout);
    let ran = lab.run("ce", &["show", "--json", "../storage", &mul]).exit(0);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(shown["texts"], json!({"a": "2", "b": "2"}));
    let points = &shown["points"][0];
    assert_eq!((&points["count"], &points["of"]), (&json!(5), &json!(10)));
    assert_eq!((&points["common"], &points["task"]), (&json!({"a": "2"}), &json!("task")));
    assert_eq!(points["first"][0], json!({"a": "2", "b": "3"}));
    assert_eq!(points["first"].as_array().unwrap().len(), 3);
    let table = points["table"].as_str().unwrap();
    // The table itself, and its origins other than calls, are at no point.
    let ran = lab.run("ce", &["show", "--json", "../storage", &format!("{table}/00")]).exit(0);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&shown["points"], &shown["texts"]), (&json!([]), &json!({})));
}

/// Levels and files of the task are kept like task inputs, but are not task inputs.
#[test]
fn levels_and_task_files_are_not_listed_as_task_inputs() {
    let lab = sweep("x", &[("factors/00-a", "1\n2\n")])
        .computation("both", "a file x text", "out", "cat \"$@\" > /dev/null; cp \"$1\" \"$5\"")
        .call("inputs/00-body/", "both", &["a", "x", "x", "x"])
        .node("inputs/00-body/inputs/01-1/", "file", "rows")
        .node("inputs/00-body/inputs/03-3/", "file", "word")
        .file("rows", "1\t2\n")
        .file("word", "one word\n")
        .data("x", "17\n")
        .commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    export(&lab);
    let call = log(&lab, &[])[0]["name"].as_str().unwrap().to_owned();
    let (directory, file) = call.rsplit_once('/').unwrap();
    let ran = lab.run("ce", &["show", "../storage", &format!("{directory}/00/{file}")]).exit(0);
    let (_, tree) = ran.stdout.split_once("made from:\n").unwrap();
    let roles: Vec<&str> = tree.lines().map(|line| &line[line.find('(').unwrap()..]).collect();
    let level = roles[0];
    assert!(["(level a=1)", "(level a=2)"].contains(&level), "{tree}");
    assert_eq!(roles[1..], ["(input or file of a task)", "(task input)", "(text \"one word\")"]);
}

#[test]
fn the_newest_of_tables_with_the_same_points_is_named() {
    let lab = squares();
    lab.ce_run(&["--no-sync"]).exit(0);
    let lab = lab.file("workflow/factors/01-b", "3\n5\n7\n9\n11\n13\n").commit_again();
    lab.ce_run(&["--no-sync"]).exit(0).says("2 computed");
    export(&lab);
    let mul = output_of(&lab, "mul", &json!({"a": "2", "b": "2"}));
    let ran = lab.run("ce", &["show", "--json", "../storage", &mul]).exit(0);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    let points = shown["points"].as_array().unwrap();
    let of: Vec<_> = points.iter().map(|points| (&points["count"], &points["of"])).collect();
    assert_eq!(of, [(&json!(6), &json!(12)), (&json!(5), &json!(10))]);
    let ran = lab.run("ce", &["show", "../storage", &mul]).exit(0);
    let ran = ran.shows("and 3 more points, all with a=2\n").shows(", which has 12 points\n");
    ran.shows("\n               and in 1 other table\n");
}

#[test]
fn a_text_that_differs_is_explained_with_its_name() {
    let lab = squares();
    lab.ce_run(&["--no-sync"]).exit(0);
    let lab = lab.file("workflow/factors/01-b", "3\n5\n13\n").commit_again();
    let explain = |options: &[&str]| lab.run("ce", &[&["explain"], options].concat()).exit(3);
    explain(&["../storage"]).shows("] b='13' of a point is new: ");
    let ran = explain(&["--json", "../storage"]);
    let lines: Vec<Value> =
        ran.lines().iter().map(|it| serde_json::from_str(it).unwrap()).collect();
    let cause = lines.iter().find(|line| line["cause"] == "point").unwrap();
    assert_eq!((&cause["name"], &cause["value"]), (&json!("b"), &json!("'13'")));
}
