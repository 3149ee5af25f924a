//! `ce diff`: two versions of a task, side by side.

use std::fs;

use serde_json::{Value, json};

use crate::lab::Lab;
use crate::program::Ran;

const TASK: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] (divmod INPUT('x') \
                    INPUT('y'))[1])[0]";

/// A task whose second commit has another `mul`.
fn lab() -> Lab {
    Lab::task(TASK)
        .commit()
        .computation("mul", "a b", "product", r#"echo $(($(cat "$1") * $(cat "$2") + 1)) >"$3""#)
        .commit_again()
}

fn diff<'a>(lab: &'a Lab, arguments: &[&str]) -> Ran<'a> {
    drop(fs::create_dir(lab.path("storage")));
    let files = ["../storage", "../data/x", "../data/y"];
    let files = &files[..=lab.inputs.len()];
    lab.run("ce", &[&["diff"], arguments, files].concat())
}

#[test]
fn the_differing_output_and_the_first_differing_call_are_named() {
    let lab = lab();
    diff(&lab, &["--no-isolate", "HEAD~1..HEAD"])
        .exit(0)
        .prints("diff/computation.txt")
        .called(vec!["add", "add", "divmod", "divmod", "mul", "mul"]);
    let ran = diff(&lab, &["HEAD~1..HEAD"]).exit(0).called(vec![]);
    let ran = ran.says("ce: HEAD~1: 3 calls: 3 reused\nce: HEAD: 3 calls: 3 reused\n");
    assert_eq!(diff(&lab, &["-n", "HEAD~1.."]).exit(0).stdout, ran.stdout);
    assert!(lab.is_tidy());
}

#[test]
fn missing_outputs_are_reported_and_no_job_is_kept() {
    let lab = lab();
    let ran = diff(&lab, &["HEAD..HEAD"]).exit(0);
    assert_eq!(ran.stdout, "output 00 sum: the same\n");
    let lab = lab.file("workflow/inputs/00-mul/inputs/00-x/value", "y\n").commit_again();
    diff(&lab, &["-n", "HEAD~1..HEAD"]).exit(3).shows("output 00 sum: is not known");
    assert!(lab.storage().iter().all(|name| !name.starts_with("t_")), "no job is kept");
}

#[test]
fn one_revision_is_compared_with_the_work_tree() {
    let lab = lab();
    diff(&lab, &["HEAD~1"]).exit(0).shows("    work tree  ../storage/c_add/");
    let lab = lab.file("computations/mul/exec", "#!/bin/sh\necho 5 >\"$3\"\n");
    diff(&lab, &["HEAD"]).exit(2).says("computations/mul");
    diff(&lab, &["--dirty", "HEAD"]).exit(0).shows("../storage/c_mul/dirty-");
}

#[test]
fn the_place_where_workflows_differ_is_named() {
    let lab = lab().file("workflow/inputs/01-divmod/outputs", "0\n").commit_again();
    let lab = lab.file("workflow/inputs/00-mul/inputs/01-y/value", "x\n").commit_again();
    let [unknown, parted] = &objects(&lab, &["-n", "HEAD~1..HEAD"], 3)[..] else {
        panic!("two lines")
    };
    let contents = &unknown["old"]["contents"];
    assert_eq!((&unknown["verdict"], contents), (&json!("unknown"), &json!(null)));
    let at = json!({
        "event": "workflow", "path": ["mul", "y"], "old": "INPUT('y')", "new": "INPUT('x')",
    });
    assert_eq!(*parted, at);
    diff(&lab, &["HEAD~2..HEAD"]).exit(0).prints("diff/workflow.txt");
}

#[test]
fn an_output_of_one_version_only_differs() {
    let root = |slice| format!("Inputs: 'x', 'y'\n(divmod INPUT('x') INPUT('y')){slice}");
    let lab = Lab::task(&root("[0, 1]")).commit().file("workflow/outputs", "0\n").commit_again();
    let ran = diff(&lab, &["HEAD~1..HEAD"]).exit(0);
    ran.shows("output 00 quotient: the same\noutput 01 remainder: differs\n")
        .shows("    HEAD    no such output\n");
}

#[test]
fn texts_are_diffed_by_line_without_control_characters_and_binary_outputs_by_size() {
    let lab = Lab::task("Inputs: 'x', 'y'\n(blob INPUT('x') INPUT('y'))[0]");
    let blob = |lab: Lab, text: &str| {
        lab.computation("blob", "a b", "blob", &format!("printf '{text}' >\"$3\""))
    };
    let lab = blob(blob(lab, "a\\0b").commit(), "a\\0bc").commit_again();
    let ran = diff(&lab, &["HEAD~1..HEAD"]).exit(0);
    ran.shows("  3 B  ").shows("  4 B  ").shows("\noutput 00 blob: no text, and not shown\n");
    let lab = blob(blob(lab, "a\\n").commit_again(), "\\033[2J\\n").commit_again();
    diff(&lab, &["HEAD~1..HEAD"]).exit(0).shows("-a\n+\u{fffd}[2J\n");
}

#[test]
fn a_call_that_fails_is_reported_and_everything_else_compared() {
    let lab = lab().computation("mul", "a b", "product", "exit 3").commit_again();
    let ran = diff(&lab, &["HEAD~1..HEAD"]).exit(1).says("mul (mul) failed: it ended with exit");
    ran.shows("output 00 sum: is not known\n").shows("/???_");
}

#[test]
fn inputs_of_the_newer_task_are_matched_by_name() {
    let lab = Lab::task("Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))[0]").commit();
    let lab = lab.file("inputs", "y\nx\n").commit_again();
    diff(&lab, &["HEAD~1..HEAD"]).exit(0).shows("output 00 sum: the same\n");
    let lab = lab.file("inputs", "z\nx\n").file("workflow/inputs/01-y/value", "z\n").commit_again();
    let ran = diff(&lab, &["HEAD~1..HEAD"]).exit(2);
    ran.says("ce: the task at HEAD~1 takes an input y, and at HEAD it does not\n");
}

#[test]
fn an_input_is_not_the_factor_of_the_same_name() {
    let lab = Lab::empty()
        .computation("add", "a b", "sum", r#"echo $(($(cat "$1") + $(cat "$2"))) >"$3""#)
        .file("workflow.ce", "SWEEP((add x k) :over x 17 :over k 1 2)\n")
        .commit()
        .file("workflow.ce", "Inputs: x\nSWEEP((add x k) :over k 1 2)\n")
        .commit_again();
    fs::create_dir(lab.path("storage")).unwrap();
    fs::write(lab.path("x"), "18\n").unwrap();
    let ran = lab.run("ce", &["diff", "HEAD~1..HEAD", "../storage", "../x"]).exit(0);
    ran.shows("TASK / body / a: INPUT('x') -> INPUT('x')");
}

#[test]
fn two_revisions_are_given_as_in_git() {
    let lab = lab();
    let ran = diff(&lab, &["HEAD~1..HEAD"]).exit(0);
    let same = |other: Ran<'_>| assert_eq!(other.exit(0).stdout, ran.stdout);
    same(diff(&lab, &["HEAD~1", "HEAD"]));
    let id = lab.git("task", &["rev-parse", "HEAD"]);
    diff(&lab, &["-n", "HEAD~1", &id]).exit(0).shows(&format!("+++ {id} 00 sum\n"));
    lab.git("task", &["config", "compeval.storage", "../storage"]);
    same(lab.run("ce", &["diff", "HEAD~1", "HEAD", "../data/x", "../data/y"]));
    same(lab.run("ce", &["diff", "HEAD~1..HEAD", "../data/x", "../data/y"]));
    assert!(!lab.path("task/HEAD").exists(), "no revision is taken for a storage");
    let one = lab.run("ce", &["diff", "HEAD~1", "../data/x", "../data/y"]).exit(0);
    one.shows("+++ work tree 00 sum\n");
}

#[test]
fn an_argument_that_is_a_revision_and_a_path_is_refused() {
    let lab = lab();
    let ran = diff(&lab, &["HEAD~1..HEAD"]).exit(0);
    fs::rename(lab.path("storage"), lab.path("task/kept")).unwrap();
    fs::copy(lab.path("data/x"), lab.path("task/x")).unwrap();
    for branch in ["kept", "x"] {
        lab.git("task", &["branch", branch]);
    }
    let diff = |arguments: &[&str]| lab.run("ce", &[&["diff"], arguments].concat());
    for options in [&["-n"][..], &[]] {
        let both = diff(&[options, &["HEAD~1", "kept", "x", "../data/y"]].concat()).exit(2);
        both.says("ce: kept is both a revision and the name of a file or directory\n")
            .says("try: write HEAD~1..kept for the revision, ./kept for the path\n")
            .called(vec![]);
    }
    let paths = ["./kept", "x", "../data/y"];
    diff(&[&["HEAD~1"], &paths[..]].concat()).exit(0).shows("    work tree  ./kept/c_add/");
    let named = diff(&[&["HEAD~1..kept"], &paths[..]].concat()).exit(0);
    assert_eq!(named.stdout.replace("./kept/", "../storage/").replace("kept", "HEAD"), ran.stdout);
    // With a storage in the configuration, the same holds of an input.
    lab.git("task", &["config", "compeval.storage", "kept"]);
    diff(&["HEAD~1", "x", "../data/y"]).exit(2).says("ce: x is both a revision and");
    diff(&["HEAD~1", "./x", "../data/y"]).exit(0);
}

#[test]
fn wrong_versions_are_refused() {
    let lab = lab();
    diff(&lab, &["HEAD...HEAD"]).exit(2).says("write REV1..REV2");
    diff(&lab, &["nonsense"]).exit(2).says("there is no commit nonsense in");
    diff(&lab, &["HEAD..nonsense"]).exit(2).says("there is no commit nonsense in");
    lab.run("ce", &["diff", "HEAD"]).exit(2).says("no storage is given");
    for path in ["../storage", "sub/../storage", "./storage", "/storage", "HEAD../../storage"] {
        lab.run("ce", &["diff", path]).exit(2).says("it is a path; write a revision");
    }
    lab.run("ce", &["commits", ".", "../storage"]).exit(2).says("it is a path");
    lab.run("ce", &["commits", ".", "HEAD..no/such"]).exit(2).says("no commit no/such");
    assert!(lab.storage().is_empty());
}

#[test]
fn entries_of_directories_and_files_of_the_task_that_differ_are_listed() {
    let lab = Lab::task("Inputs: 'x'\n(list MEMBER('all' (make OWN('n'))) INPUT('x'))")
        .computation(
            "make",
            "n",
            "parts/",
            r#"mkdir "$2/all" && cp "$1" "$2/all/n" && echo >"$2/a""#,
        )
        .computation("list", "all x", "copy/", r#"cp "$1/n" "$3/n"; echo >"$3/same""#)
        .file("n", "1\n")
        .commit()
        .file("n", "22\n")
        .commit_again();
    diff(&lab, &["HEAD~1..HEAD"]).exit(0).prints("diff/directories.txt");
    let lines = objects(&lab, &["HEAD~1..HEAD"], 0);
    let event = |kind: &str| lines.iter().find(|line| line["event"] == kind).unwrap();
    assert_eq!(event("output")["entries"], json!([{ "path": "n", "change": "changed" }]));
    let file = event("file");
    assert_eq!((&file["file"], &file["new"]["size"]), (&json!("n"), &json!(3)));
}

/// The lines of `ce diff --json`, which begin with the versions and end with the exit code.
fn objects(lab: &Lab, arguments: &[&str], exit: i32) -> Vec<Value> {
    let ran = diff(lab, &[&["--json", "--no-isolate"], arguments].concat()).exit(exit);
    let mut lines: Vec<Value> =
        ran.lines().into_iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.remove(0)["event"], "versions");
    assert_eq!(lines.pop(), Some(json!({ "event": "end", "exit": exit })));
    lines
}

#[test]
fn a_comparison_prints_json() {
    let lab = lab();
    let ran = diff(&lab, &["--json", "--no-isolate", "HEAD~1..HEAD"]).exit(0);
    let versions: Value = serde_json::from_str(ran.lines()[0]).unwrap();
    assert_eq!((&versions["event"], &versions["task"]), (&json!("versions"), &json!("task")));
    assert_eq!(versions["old"]["version"], "HEAD~1");
    assert_eq!(versions["new"]["commit"], lab.git("task", &["rev-parse", "HEAD"]));
    assert_eq!(versions["new"]["tally"]["executed"], 3);
    let lines = objects(&lab, &["HEAD~1..HEAD"], 0);
    let [output, call] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((&output["event"], &output["verdict"]), (&json!("output"), &json!("differs")));
    assert_eq!((&output["number"], &output["name"]), (&json!(0), &json!("sum")));
    assert!(output["old"]["file"].as_str().unwrap().starts_with("c_add/"), "{output}");
    assert_eq!(output["new"]["contents"]["size"], 3);
    assert_eq!(output["lines"], "@@ -1 +1 @@\n-87\n+88\n");
    assert_eq!((&call["event"], &call["computation"]), (&json!("call"), &json!("mul")));
    assert_eq!((&call["label"], &call["point"]), (&json!("mul"), &json!({})));
    assert_eq!(
        (&call["outputs"][0]["name"], &call["outputs"][0]["number"]),
        (&json!("product"), &json!(0))
    );
    assert_ne!(call["outputs"][0]["old"], call["outputs"][0]["new"]);
    let [same] = &objects(&lab, &["HEAD..HEAD"], 0)[..] else { panic!("one output") };
    assert_eq!((&same["verdict"], same.get("lines")), (&json!("same"), None));
}

#[test]
fn json_has_the_points_of_sweeps() {
    let lab = Lab::task("(twice INPUT('n'))[0]")
        .file("inputs", "")
        .without("workflow")
        .computation("twice", "n", "double", r#"echo $(($(cat "$1") * 2)) >"$2""#)
        .node("", "sweep", "DOUBLES")
        .file("workflow/factors/00-n", "0\n1\n2\n")
        .call("inputs/00-body/", "twice", &["n"])
        .commit()
        .computation("twice", "n", "double", r#"echo $(($(cat "$1") * 3)) >"$2""#)
        .file("workflow/factors/00-n", "0\n1\n2\n3\n")
        .commit_again();
    let lines = objects(&lab, &["HEAD~1..HEAD"], 0);
    let sweep = lines.iter().find(|line| line["event"] == "sweep").unwrap();
    for (field, value) in [
        ("label", json!("TASK")),
        ("points", json!(3)),
        ("differing", json!(2)),
        ("only_old", json!(0)),
        ("only_new", json!(1)),
        ("unknown", json!(0)),
        ("relabelled", json!(0)),
        ("other_columns", json!(false)),
    ] {
        assert_eq!(sweep[field], value, "{field}");
    }
    let points: Vec<&Value> =
        sweep["first"].as_array().unwrap().iter().map(|it| &it["point"]).collect();
    assert_eq!(points, [&json!({ "n": "1" }), &json!({ "n": "2" })]);
    assert_eq!(sweep["first"][0]["output"], "double");
    assert!(sweep["first"][0]["old"]["file"].as_str().unwrap().starts_with("c_twice/"));
    let calls = lines.iter().filter(|it| it["event"] == "call").map(|it| &it["point"]);
    assert!(
        calls.clone().count() == 2 && calls.clone().all(|it| points.contains(&it)),
        "{lines:?}"
    );
}
