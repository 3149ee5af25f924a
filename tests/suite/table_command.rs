//! `ce table`: the existing rows of a sweep, and the status of the others.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::lab::{Lab, Library};
use crate::program::Ran;
use crate::terminal::{self, Shown, Terminal};

/// A sweep that divides numbers: its table has a row for each dividend and divisor.
fn lab(files: &[(&str, &str)]) -> Lab {
    let lab = Lab::task("(divmod INPUT('x') INPUT('y'))[0]")
        .file("inputs", "")
        .without("workflow")
        .node("", "sweep", "SPEED")
        .file("workflow/factors/00-x", "7\n8\n")
        .file("workflow/factors/01-y", "2\n0\n")
        .call("inputs/00-body/", "divmod", &["x", "y"]);
    files.iter().fold(lab, |lab, (name, text)| lab.file(&format!("workflow/{name}"), text))
}

pub(crate) fn table<'a>(lab: &'a Lab, arguments: &[&str]) -> Ran<'a> {
    lab.unchanged(|| lab.run("ce", &[&["table"], arguments, &["../storage"]].concat()))
}

/// The lines without where, when and how long, and with one blank between columns.
fn lines(ran: &Ran<'_>) -> Vec<String> {
    ran.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// The rows that `--json` prints: the values, the status and the reason.
pub(crate) fn rows(lab: &Lab, arguments: &[&str], exit: i32) -> Vec<Value> {
    let ran = table(lab, &[&["--json"], arguments].concat()).exit(exit);
    let line = |line: &&str| serde_json::from_str::<Value>(line).unwrap();
    ran.lines().iter().map(line).collect()
}

fn statuses(lab: &Lab, arguments: &[&str], exit: i32) -> Vec<String> {
    let rows = rows(lab, arguments, exit);
    rows.iter().map(|row| row["status"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn rows_without_values_have_a_status() {
    let lab = lab(&[]).commit().with_storage();
    assert_eq!(statuses(&lab, &[], 3), ["missing"; 4]);
    lab.ce_run(&["--no-sync"]).exit(1);
    let rows = rows(&lab, &[], 3);
    assert_eq!(rows[0]["row"].to_string(), r#"{"quotient":3,"remainder":1,"x":7,"y":2}"#);
    assert_eq!((&rows[0]["status"], &rows[0]["host"].is_string()), (&json!("ok"), &true));
    assert!(rows[0]["duration"].is_number() && rows[0]["time"].is_string());
    assert_eq!(rows[1]["row"], json!({"x": 7, "y": 0, "quotient": null, "remainder": null}));
    assert_eq!((&rows[1]["status"], &rows[1]["host"]), (&json!("failed"), &Value::Null));
    assert!(rows[1]["reason"].as_str().unwrap().starts_with("it ended with exit status"));
    let log = rows[1]["log"].as_str().unwrap();
    assert!(lab.stored(log).contains('0'), "the shell complains of a division by 0");
    let text = table(&lab, &[]).exit(3).says("4 rows: 2 ok, 2 failed");
    let text = lines(&text);
    assert!(text[0].starts_with("x y quotient remainder status host time duration reason log"));
    assert!(
        text[1].starts_with("7 2 3 1 ok ") && text[2].starts_with("7 0 failed it ended"),
        "{text:?}"
    );
    lab.called();
}

#[test]
fn a_narrow_terminal_shows_why_points_have_failed() {
    let lab = lab(&[]).commit().with_storage();
    lab.ce_run(&["--no-sync"]).exit(1);
    let mut command = lab.command("ce");
    command.args(["table", "../storage"]);
    let (_, text) = Terminal::start(&command, 80, Shown::Both).end();
    let shown = terminal::lines(&text, 80);
    assert!(shown[0].ends_with("  reason") && !shown[0].contains("log"), "{shown:#?}");
    assert!(shown[2].contains("  it ended with exit status "), "{shown:#?}");
    assert!(text.contains("the terminal has no room for "), "{text}");
}

#[test]
fn csv_has_a_header_and_quotes() {
    let lab = Lab::task("Inputs: 'x'\n(say INPUT('x'))[0]")
        .computation("say", "text", "said", "cat \"$1\" >\"$2\"")
        .commit();
    fs::write(lab.path("data/points"), "{\"x\":\"a, \\\"b\\\"\"}\n{\"x\":\"c\"}\n").unwrap();
    let points = ["--points", "../data/points"];
    lab.run("ce-run", &[&points[..], &["../storage"]].concat()).exit(0);
    let ran = table(&lab, &[&["--csv"], &points[..]].concat()).exit(0);
    let lines = ran.lines();
    assert_eq!(
        lines[0],
        "x,said,status,call,host,machine,time,duration,exclusive,others,reason,log"
    );
    assert!(lines[1].starts_with("\"a, \"\"b\"\"\",\"a, \"\"b\"\"\",ok,1,"), "{}", lines[1]);
    assert!(lines[2].starts_with("c,c,ok,2,") && lines[2].ends_with(",,"), "{}", lines[2]);
    assert_eq!(ran.stderr, "");
}

#[test]
fn columns_have_units_and_directions() {
    let lab = lab(&[("columns", "00 q [m/s] more\n01 r less\n"), ("factors/01-y", "2\n")]).commit();
    lab.ce_run(&[]).exit(0);
    let text = lines(&table(&lab, &[]).exit(0));
    assert!(text[0].starts_with("x y q [m/s] r status "), "{text:?}");
    assert!(table(&lab, &["--csv"]).exit(0).lines()[0].starts_with("x,y,q,r,status,"));
    let columns = json!({"q": {"unit": "m/s", "better": "more"}, "r": {"better": "less"}});
    assert_eq!(rows(&lab, &[], 0)[0]["columns"], columns);
    let lab = lab.file("workflow/columns", "00 q [km/h]\n").commit_again();
    lab.ce_run(&[]).exit(0);
    let versions = ["--all", "--at", "HEAD~1", "--at", "HEAD"];
    let text = lines(&table(&lab, &versions).exit(0));
    assert!(text[0].starts_with("x y q [m/s]@HEAD~1 q [km/h]@HEAD r@HEAD~1 r@HEAD "), "{text:?}");
    assert!(table(&lab, &[&["--csv"], &versions[..]].concat()).exit(0).stdout.contains(",q@HEAD,"));
}

#[test]
fn rows_not_measured_exclusively_are_reported_if_the_task_demands_it() {
    let lab = lab(&[("factors/01-y", "2\n3\n")]).isolated().commit();
    lab.ce_run(&[]).exit(0);
    let row = &rows(&lab, &[], 0)[0];
    assert_eq!(row["exclusive"], false);
    assert!(row["machine"].as_str().unwrap().contains("Linux"), "{row}");
    let text = table(&lab, &[]).exit(0);
    assert!(!text.stdout.contains("exclusive") && !text.stdout.contains("machine"));
    let lab = lab.file("workflow/inputs/00-body/resources", "exclusive\n").commit_again();
    lab.ce_run(&[]).exit(0).called(vec![]);
    let ran = table(&lab, &[]).exit(0);
    ran.shows("exclusive").says("4 rows were not measured exclusively, which the task asks for");
    lab.ce_run(&["--force", "divmod"]).exit(0);
    assert_eq!(rows(&lab, &[], 0)[0]["exclusive"], true);
    let ran = table(&lab, &[]).exit(0);
    assert!(!ran.stderr.contains("exclusively"), "{}", ran.stderr);
}

#[test]
fn a_waiting_point_differs_from_a_missing_one() {
    let lab =
        Lab::task("Inputs: 'n', 'm'\n(add (mul INPUT('n') INPUT('n'))[0] INPUT('m'))[0]").commit();
    let each = ["--each", "n=3,4", "-p", "m=1"];
    lab.run("ce-run", &["--each", "n=3", "-p", "m=1", "../storage"]).exit(0);
    assert_eq!(statuses(&lab, &each, 3), ["ok", "waiting"]);
    // The call that a point waits for is there for another one.
    assert_eq!(statuses(&lab, &["--each", "n=3", "--each", "m=1,2"], 3), ["ok", "missing"]);
}

#[test]
fn a_row_of_a_running_call_names_its_run() {
    let lab = Lab::task("Inputs: 'n'\n(wait INPUT('n'))[0]")
        .computation("wait", "n", "out", "touch \"$LAB_LOG.begun\"; until [ -e \"$LAB_LOG.go\" ]; do sleep 0.01; done; cat \"$1\" >\"$2\"")
        .commit();
    let mut run = lab.command("ce-run");
    run.args(["--no-sync", "-j", "1", "--each", "n=1", "../storage"]);
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !lab.path("called.begun").exists() {
        std::thread::yield_now();
    }
    let ran = lab.run("ce", &["table", "--json", "--each", "n=1,2", "../storage"]).exit(3);
    let text = lab.run("ce", &["table", "--each", "n=1,2", "../storage"]).exit(3);
    fs::write(lab.path("called.go"), "").unwrap();
    run.wait().unwrap();
    let row: Value = serde_json::from_str(ran.lines()[0]).unwrap();
    assert_eq!((&row["status"], &row["holder"]["process"]), (&json!("running"), &json!(run.id())));
    assert!(row["holder"]["began"].as_str().unwrap().starts_with("20"), "{row}");
    let process = format!("by process {} on ", run.id());
    assert!(text.stdout.contains(&process) && text.stdout.contains(", which began at 20"));
    assert_eq!(statuses(&lab, &["--each", "n=1,2"], 3), ["ok", "missing"]);
}

/// The numbers of the calls of each row.
fn calls(lab: &Lab, arguments: &[&str], exit: i32) -> Vec<Option<u64>> {
    rows(lab, arguments, exit).iter().map(|row| row["call"].as_u64()).collect()
}

#[test]
fn rows_that_rest_on_one_call_have_its_number() {
    let zipped = "x\tlabel\n7\ta\n8\tb\n7\tc\n9\td\n";
    let lab = lab(&[("factors/00-x.tsv", zipped), ("exclude.tsv", "label\nd\n")])
        .without("workflow/factors/00-x")
        .file("workflow/factors/01-y", "2\n4\n")
        .commit()
        .with_storage();
    let one = [1, 2, 3, 4, 1, 2].map(Some);
    let expected = [&one[..], &[None, None]].concat();
    assert_eq!(calls(&lab, &[], 3), expected, "also of calls that are missing");
    lab.ce_run(&["--no-sync"]).exit(0);
    assert_eq!(calls(&lab, &[], 0), expected);
    let text = table(&lab, &[]).exit(0).says("8 rows: 6 ok, 2 excluded; 6 points are 4 calls");
    let text = lines(&text);
    assert!(text[0].starts_with("x label y quotient remainder status call host"), "{text:?}");
    assert!(text[5].starts_with("7 c 2 3 1 ok 1 ") && text[7] == "9 d 2 excluded", "{text:?}");
    let lab =
        lab.file("workflow/factors/00-x.tsv", "x\tlabel\n7\ta\n").without("workflow/exclude.tsv");
    let lab = lab.commit_again();
    let text = table(&lab, &[]).exit(3).says("2 rows: 2 missing\n");
    assert!(!text.stdout.contains("call"), "nothing is shared: {}", text.stdout);
}

#[test]
fn commits_with_one_tree_rest_on_one_call() {
    let mut lab = Lab::task("Inputs: 'commits'\n(add INPUT('commits') INPUT('commits'))[0]")
        .without("workflow")
        .computation("build", "src", "program", r#"cat "$1"/* >"$2"; [ ! -e "$1/bad" ]"#)
        .computation("size", "program", "size", r#"wc -c <"$1" >"$2""#)
        .node("", "sweep", "")
        .node("inputs/01-points/", "input", "commits")
        .node("inputs/00-body/", "computation", "size")
        .node("inputs/00-body/inputs/00-program/", "computation", "build")
        .node("inputs/00-body/inputs/00-program/inputs/00-src/", "tree", "lib:src")
        .node("inputs/00-body/inputs/00-program/inputs/00-src/inputs/00-commit/", "input", "commit")
        .commit();
    fs::create_dir_all(lab.path("lib/src")).unwrap();
    lab.git("lib", &["init", "--quiet"]);
    let commit = |file: &str| {
        fs::write(lab.path("lib").join(file), "1\n").unwrap();
        lab.git("lib", &["add", "."]);
        lab.git("lib", &["commit", "--quiet", "--message", file]);
        lab.git("lib", &["rev-parse", "HEAD"])
    };
    let commits = ["src/a", "README", "src/bad", "NEWS", "src/b"].map(commit);
    lab = lab.data("commits", format!("commit\n{}\n", commits.join("\n")));
    let given = ["../data/commits", "-r", "lib=../lib"];
    let all = [&["../storage"], &given[..]].concat();
    lab.run("ce-run", &[&["--no-sync"], &all[..]].concat()).exit(1);
    // Of the third and the fourth commit, the measurement waits for the same call that has failed.
    let json =
        |all: &[&str]| lab.run("ce", &[&["table", "--json"], all].concat()).exit(3).stdout.clone();
    let numbers = |text: String| -> Vec<Value> {
        text.lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["call"].clone())
            .collect()
    };
    assert_eq!(numbers(json(&all)), [1, 1, 2, 2, 3].map(|number| json!(number)));
}

#[test]
fn points_that_are_not_known_are_reported() {
    let lab = Lab::task("(add INPUT('x') INPUT('x'))[0]")
        .file("inputs", "")
        .without("workflow")
        .computation("derive", "", "points", "printf 'n\\n1\\n2\\n' >\"$1\"")
        .node("", "sweep", "")
        .node("inputs/01-points/", "computation", "derive")
        .file("workflow/exclude.tsv", "n\n2\n")
        .call("inputs/00-body/", "mul", &["n", "n"])
        .commit()
        .with_storage();
    let ran = table(&lab, &[]).exit(3);
    let ran = ran.says("points of the sweep are not known: the call that computes them is missing");
    assert_eq!(ran.stdout, "");
    lab.ce_run(&["--no-sync"]).exit(0);
    assert_eq!(statuses(&lab, &[], 0), ["ok", "excluded"]);
    // A call that has failed before is named, also if the call that computes the points could not begin.
    let lab = lab
        .computation("derive", "x", "points", "cp \"$1\" \"$2\"")
        .computation("fetch", "", "sheet", "echo 'no such host' >&2; exit 7")
        .node("inputs/01-points/inputs/00-x/", "computation", "fetch")
        .commit_again();
    lab.ce_run(&["--no-sync"]).exit(1);
    let ran = table(&lab, &[]).exit(3);
    let ran = ran.says("points of the sweep are not known: fetch (x) failed: it ended with exit status 7; log: ../storage/c_fetch/");
    assert_eq!(ran.stderr.matches("not known").count(), 1, "{}", ran.stderr);
    table(&lab, &["--at", "HEAD~1", "--at", "HEAD"]).exit(3).says("not known: fetch (x) failed");
}

#[test]
fn columns_of_the_table_and_of_the_rows_have_names_of_their_own() {
    let lab = lab(&[("columns", "00 host\n01 status\n"), ("factors/01-y", "2\n")]).commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let csv = table(&lab, &["--csv"]).exit(0);
    let header = "x,y,host,status,status (of the row),call,host (of the row),machine,time,duration,exclusive,others,reason,log";
    assert_eq!(csv.lines()[0], header);
    assert!(csv.lines()[1].starts_with("7,2,3,1,ok,1,"), "{}", csv.stdout);
    let csv = table(&lab, &["--csv", "--all", "--at", "HEAD", "--at", "HEAD"]).exit(0);
    let header = "x,y,host@HEAD,host@HEAD,status@HEAD,status@HEAD,status (of the row)@HEAD,status (of the row)@HEAD,changed";
    assert_eq!(csv.lines()[0], header);
    let rows = rows(&lab, &[], 0);
    assert_eq!((&rows[0]["row"]["status"], &rows[0]["status"]), (&json!(1), &json!("ok")));
}

#[test]
fn a_changed_label_does_not_make_a_new_point() {
    let with = |lab: Lab, sheet: &str| lab.file("sheet.csv", sheet);
    let lab = Lab::task("(divmod INPUT('x') INPUT('y'))[0]")
        .file("inputs", "")
        .without("workflow")
        .node("", "sweep", "")
        .node("inputs/01-points/", "file", "sheet.csv")
        .call("inputs/00-body/", "divmod", &["x", "y"]);
    let lab = with(lab, "x,y,who\n7,2,anna\n8,2,bert\n").commit_with(Library::Submodule);
    lab.ce_run(&["--no-sync"]).exit(0);
    let lab = with(lab, "x,y,who\n7,2,anna\n8,2,carl\n9,2,dora\n").commit_again();
    lab.ce_run(&["--no-sync"]).exit(0).says("3 calls: 2 reused, 1 computed");
    let versions = ["--at", "HEAD~1", "--at", "HEAD"];
    let compared = rows(&lab, &versions, 0);
    assert_eq!(compared.len(), 2, "{compared:#?}");
    assert_eq!(compared[0]["point"], json!({"x": 8, "y": 2}));
    assert_eq!(
        (&compared[0]["old"]["who"], &compared[0]["new"]["who"], &compared[0]["changed"]),
        (&json!("bert"), &json!("carl"), &json!(["who"]))
    );
    assert_eq!((&compared[1]["old"], &compared[1]["status"]), (&Value::Null, &json!([null, "ok"])));
    let ran = lab.run("ce", &["diff", "--no-isolate", "HEAD~1..HEAD", "../storage"]).exit(0);
    let ran = ran.shows(": 0 of 2 points differ\n").shows("\n  1 point only in HEAD\n");
    let ran = ran.shows("\n  1 point with other labels\n");
    assert!(!ran.stdout.contains("only in HEAD~1"), "{}", ran.stdout);
    // Points that differ in labels only are told apart by these.
    let lab = with(lab, "x,y,who\n7,2,anna\n7,2,bert\n").commit_again();
    lab.ce_run(&["--no-sync"]).exit(0);
    let lab = with(lab, "x,y,who\n7,2,anna\n7,2,carl\n").commit_again();
    lab.ce_run(&["--no-sync"]).exit(0);
    let compared = rows(&lab, &versions, 0);
    let points: Vec<&Value> = compared.iter().map(|row| &row["point"]["who"]).collect();
    assert_eq!(points, [&json!("carl"), &json!("bert")]);
}

#[test]
fn columns_may_be_fields_and_rows() {
    let lab = Lab::task("(add INPUT('x') INPUT('x'))[0]")
        .file("inputs", "")
        .without("workflow")
        .computation(
            "stats",
            "n",
            "summary each",
            "n=$(cat $1); echo \"{\\\"n2\\\":$((n * n))}\" >$2; for i in 1 2; do echo \"{\\\"i\\\":$i}\"; done >$3; [ $n != 3 ] || echo x >$3",
        )
        .node("", "sweep", "")
        .file("workflow/factors/00-n", "1\n3\n2\n")
        .file("workflow/columns", "00 *\n01 **\n")
        .call("inputs/00-body/", "stats", &["n"])
        .commit();
    lab.ce_run(&["--no-sync"]).exit(1);
    let rows = rows(&lab, &[], 3);
    let values: Vec<String> = rows.iter().map(|row| row["row"].to_string()).collect();
    let row = |n, n2, i| format!(r#"{{"i":{i},"n":{n},"n2":{n2}}}"#);
    let expected = [
        row(1, "1", "1"),
        row(1, "1", "2"),
        row(3, "null", "null"),
        row(2, "4", "1"),
        row(2, "4", "2"),
    ];
    assert_eq!(values, expected);
    assert!(
        rows[2]["reason"]
            .as_str()
            .unwrap()
            .contains("output 01: line 1: the line is not a JSON object")
    );
}

#[test]
fn two_versions_stand_side_by_side() {
    let lab = lab(&[("factors/01-y", "2\n3\n")]).commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let lab = lab.file("workflow/factors/00-x", "8\n9\n").computation(
        "divmod",
        "dividend divisor",
        "quotient remainder",
        "echo $(($(cat $1) / $(cat $2))) >$3; echo $(($(cat $2) - 2)) >$4",
    );
    let lab = lab.commit_again();
    let versions = ["--at", "HEAD~1", "--at", "HEAD"];
    let json = |options: &[&str], exit| rows(&lab, &[&versions, options].concat(), exit);
    let before = json(&[], 3);
    assert_eq!(before.len(), 6, "nothing of the newer version is there");
    lab.ce_run(&["--no-sync"]).exit(0);
    let rows = json(&[], 0);
    assert_eq!(rows.len(), 5, "{rows:#?}");
    let changed =
        |point: Value| rows.iter().find(|row| row["point"] == point).unwrap()["changed"].clone();
    assert_eq!(rows[0]["point"], json!({"x": 8, "y": 3}));
    assert_eq!(
        (&rows[0]["old"], &rows[0]["new"]),
        (&json!({"quotient": 2, "remainder": 2}), &json!({"quotient": 2, "remainder": 1}))
    );
    assert_eq!(rows[0]["changed"], json!(["remainder"]));
    assert_eq!(changed(json!({"x": 9, "y": 2})), json!(["quotient", "remainder"]));
    let only_old = rows.last().unwrap();
    assert_eq!(
        (&only_old["point"], &only_old["new"], &only_old["status"]),
        (&json!({"x": 7, "y": 3}), &Value::Null, &json!(["ok", null]))
    );
    assert_eq!(json(&["--all"], 0).len(), 6);
    let ran = table(&lab, &versions).exit(0).says("5 of 6 rows changed");
    let lines = lines(&ran);
    assert_eq!(
        lines[0],
        "x y quotient@HEAD~1 quotient@HEAD remainder@HEAD~1 remainder@HEAD status@HEAD~1 status@HEAD changed"
    );
    assert_eq!(lines[1], "8 3 2 2 2 1 ok ok remainder");
    let ran = table(&lab, &["--at", "HEAD", "--at", "HEAD"]).exit(0).says("0 of 4 rows changed");
    assert_eq!(ran.stdout, "");
    table(&lab, &["--at", "HEAD", "--at", "HEAD", "--at", "HEAD"])
        .exit(2)
        .says("3 versions are given, and two can be compared");
}

#[test]
fn points_of_a_sheet_are_read_once_for_two_versions() {
    let lab = Lab::task("Inputs: 'n'\n(add INPUT('n') INPUT('n'))[0]").commit();
    lab.run("ce-run", &["--each", "n=1,2", "../storage"]).exit(0);
    fs::write(lab.path("data/points"), "n\n1\n2\n").unwrap();
    let mut command = lab.command("ce");
    command.args(["table", "--all", "--at", "HEAD", "--at", "HEAD", "--points", "-", "../storage"]);
    command.stdin(fs::File::open(lab.path("data/points")).unwrap());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 3);
}

#[test]
fn faults_are_reported() {
    let lab = Lab::task("Inputs: 'n'\n(add INPUT('n') INPUT('n'))[0]").commit();
    let wrong = |arguments: &[&str], exit: i32, what: &str| {
        lab.run("ce", &[&["table"], arguments].concat()).exit(exit).says(what);
    };
    wrong(&["../storage", "-p", "n=1"], 2, "the task task has no sweep");
    wrong(&["../storage", "--each", "n=1"], 5, "../storage");
    let lab = lab.with_storage();
    let wrong = |arguments: &[&str], what: &str| {
        table(&lab, arguments).exit(2).says(what);
    };
    wrong(&["--each", "n=1", "-p", "n=1"], "the input n is given, and --each");
    let none = "the task task has no sweep, so none is called X\n  try: leave out --sweep: ";
    wrong(&["--each", "n=1", "--sweep", "X"], none);
    wrong(&["--csv", "--json", "--each", "n=1"], "cannot be used with");
    wrong(&["--each", "m=1", "-p", "n=1"], "takes no input m");
}
