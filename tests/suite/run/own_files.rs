//! Files of the task as values: nodes of kind `file`, and defaults of inputs.

use std::fs;

use serde_json::{Value, json};

use crate::lab::Lab;

/// A task that joins an input, which has a default, and two files of its own.
fn lab() -> Lab {
    let lab = Lab::task("Inputs: 'x'\n(join INPUT('x') INPUT('x') INPUT('x'))[0]")
        .computation("join", "a b c", "all", r#"cat "$1" "$2" "$3" >"$4""#)
        .file("sheet.tsv", "sample\n")
        .file("data/deep/constant", "42\n")
        .file("defaults/x", "default\n");
    let nodes = fs::read_dir(lab.path("task/workflow/inputs")).unwrap();
    let mut nodes: Vec<_> = nodes.map(|node| node.unwrap().path()).collect();
    nodes.sort();
    for (node, path) in nodes[1..].iter().zip(["sheet.tsv", "data/deep/constant"]) {
        fs::write(node.join("kind"), "file\n").unwrap();
        fs::write(node.join("value"), format!("{path}\n")).unwrap();
    }
    lab.commit()
}

/// Returns the contents of the task's only output, after a run with these arguments.
#[track_caller]
fn output(lab: &Lab, arguments: &[&str]) -> String {
    let ran = lab.run("ce-run", &[&["-q", "../storage"], arguments].concat()).exit(0);
    fs::read_to_string(lab.path("task").join(ran.stdout.trim_end())).unwrap()
}

#[test]
fn a_file_of_the_task_is_a_value() {
    let lab = lab();
    assert_eq!(output(&lab, &[]), "default\nsample\n42\n");
    assert_eq!(output(&lab, &["x=sheet.tsv"]), "sample\nsample\n42\n");
    assert_eq!(output(&lab, &["-p", "x=given"]), "given\nsample\n42\n");
    lab.called();
    assert_eq!(output(&lab, &["-p", "x=default"]), "default\nsample\n42\n");
    assert_eq!(lab.called(), [""; 0], "a file is what it contains");
    lab.run("ce", &["verify", "../storage"]).exit(0);
    lab.run("ce-sym", &[]).exit(0).shows("OWN('sheet.tsv')").shows("OWN('data/deep/constant')");
    lab.run("ce-viz", &[]).exit(0).shows("OWN sheet.tsv");
    lab.run("ce-run", &["-n", "../storage"]).exit(0).shows("OWN('sheet.tsv') ../storage/tinputs/");
    let json = lab.run("ce-run", &["-n", "--json", "../storage"]).exit(0);
    json.shows(r#""files":[{"name":"defaults/x","file":"tinputs/"#);
    lab.run("ce", &["check"]).exit(0);
}

#[test]
fn a_finished_job_needs_no_look_at_files_of_its_commit() {
    let lab = lab();
    output(&lab, &[]);
    let names = lab.storage();
    let record = names.iter().find(|it| it.starts_with("t_task/") && it.ends_with("json")).unwrap();
    let mut job: Value = serde_json::from_str(&lab.stored(record)).unwrap();
    assert_eq!(job["own"], json!([[0, 3]]));
    let is_sheet = |name: &&String| !name.contains("record") && lab.stored(name) == "sample\n";
    let sheet = names.iter().filter(|it| it.starts_with("tinputs/")).find(is_sheet).unwrap();
    let sheet = lab.path("storage").join(sheet);
    fs::remove_file(&sheet).unwrap();
    for options in [&["--at", "HEAD"][..], &[]] {
        assert_eq!(output(&lab, options), "default\nsample\n42\n");
        assert!(!sheet.exists(), "the job was found");
    }
    // An earlier version did not record which they are.
    job.as_object_mut().unwrap().remove("own");
    fs::remove_file(lab.path("storage").join(record)).unwrap();
    fs::write(lab.path("storage").join(record), job.to_string()).unwrap();
    assert_eq!(output(&lab, &[]), "default\nsample\n42\n");
    assert!(sheet.exists(), "its literals are looked at");
}

#[test]
fn a_file_is_read_as_committed() {
    let lab = lab();
    output(&lab, &[]);
    let lab = lab.file("sheet.tsv", "other\n").file("defaults/x", "new\n");
    let refused = lab.run("ce-run", &["../storage"]).exit(2);
    refused.says("sheet.tsv").says("defaults/x: has uncommitted changes").says("--dirty");
    assert_eq!(output(&lab, &["--dirty"]), "new\nother\n42\n");
    assert_eq!(output(&lab, &["--at", "HEAD"]), "default\nsample\n42\n");
    let lab = lab.commit_again();
    let explained = lab.run("ce", &["explain", "../storage", "-p", "x=third"]).exit(3);
    explained.shows("the task input x differs");
    assert_eq!(output(&lab, &[]), "new\nother\n42\n");
    assert_eq!(output(&lab, &["--at", "HEAD~1"]), "default\nsample\n42\n");
    let lab = lab.file("sheet.tsv", "fourth\n").commit_again();
    let explained = lab.run("ce", &["explain", "../storage"]).exit(3);
    explained.shows("the task's file sheet.tsv differs: was");
    let json = lab.run("ce", &["explain", "--json", "../storage"]).exit(3);
    json.shows(r#""cause":"file""#).shows(r#""file":"sheet.tsv""#);
    lab.run("ce", &["diff", "HEAD~1", "HEAD", "../storage"]).exit(0).shows("fourth");
}

#[test]
fn a_link_with_another_target_is_a_change() {
    for (link, targets, node) in
        [("link", ["sheet.tsv", "other.tsv"], "link"), ("way", ["one", "two"], "way/sheet.tsv")]
    {
        let lab = lab().link(link, targets[0]);
        let lab = ["other.tsv", "one/sheet.tsv", "two/sheet.tsv"]
            .into_iter()
            .fold(lab, |lab, file| lab.file(file, file));
        let inputs = fs::read_dir(lab.path("task/workflow/inputs")).unwrap();
        let mut inputs: Vec<_> = inputs.map(|it| it.unwrap().path()).collect();
        inputs.sort();
        fs::write(inputs[1].join("value"), node).unwrap();
        let lab = lab.commit_again();
        output(&lab, &[]);
        let lab = lab.without(link).link(link, targets[1]);
        let ran = lab.run("ce-run", &["../storage"]);
        match link {
            "link" => ran.exit(2).says("link: has uncommitted changes"),
            _ => ran.exit(0).says("the job's outputs were not stored: way has uncommitted changes"),
        };
        let dirty = lab.run("ce-run", &["--dirty", "../storage"]).exit(0);
        dirty.says(&format!("not stored: {link} has uncommitted changes"));
    }
}

#[test]
fn versions_are_compared_with_their_own_defaults() {
    let lab = lab();
    output(&lab, &[]);
    let lab = lab.file("defaults/x", "other\n").commit_again();
    output(&lab, &[]);
    let diff = |given: &[&str]| {
        lab.run("ce", &[&["diff", "HEAD~1", "HEAD", "../storage"], given].concat())
    };
    diff(&[]).exit(0).shows("-default").shows("+other");
    assert!(!diff(&["-px=1"]).exit(0).stdout.contains("other"));
    let bisect = ["bisect", "--good", "HEAD~1", "--bad", "HEAD", "../storage"];
    let ran = lab.run("ce", &bisect).exit(0);
    assert_eq!(ran.stdout.split(' ').next().unwrap(), lab.git("task", &["rev-parse", "HEAD"]));
}

#[test]
fn a_default_that_is_added_changed_or_removed_is_noticed() {
    let lab = lab().without("defaults");
    lab.run("ce-run", &["../storage"]).exit(2).says("takes 1 input (x), and 0 are given");
    let ran = lab.run("ce-run", &["../storage", "-px=1"]).exit(0);
    ran.says("the job's outputs were not stored: defaults/x has uncommitted changes");
    let lab = lab.commit_again().file("defaults/x", "1\n");
    lab.run("ce-run", &["../storage", "-px=1"]).exit(2).says("defaults/x");
    let lab = lab.file("defaults/y", "");
    lab.run("ce-run", &["../storage", "-px=1"])
        .exit(2)
        .says(r#"defaults/y: the task has no input "y""#);
}

#[test]
fn a_file_without_a_commit_is_reported() {
    let wrong = [
        ("out", "leads out of the repository"),
        ("untracked", "has uncommitted changes"),
        ("ignored", "the task has no file \"ignored\""),
    ];
    for (path, told) in wrong {
        let lab = lab().link("out", "/etc/passwd").file(".gitignore", "ignored\n");
        let lab = lab.commit_again().file("untracked", "").file("ignored", "");
        let node = fs::read_dir(lab.path("task/workflow/inputs")).unwrap();
        let mut node = node.map(|it| it.unwrap().file_name().into_string().unwrap());
        let node = node.find(|it| it.starts_with("01")).unwrap();
        let lab = lab.file(&format!("workflow/inputs/{node}/value"), path);
        let ran = lab.run("ce-run", &["../storage"]).exit(2);
        assert!(ran.stderr.contains(told), "{path}: {}", ran.stderr);
    }
}

#[test]
fn files_of_the_task_are_kept_with_the_job_that_reads_them() {
    let lab = lab();
    output(&lab, &[]);
    lab.run("ce", &["gc", "--delete", "../storage"]).exit(0);
    lab.run("ce", &["verify", "../storage"]).exit(0);
    assert_eq!(output(&lab, &[]), "default\nsample\n42\n");
    assert_eq!(lab.called(), ["join"]);
}

#[test]
fn a_task_is_found_from_its_subdirectories() {
    let lab = lab();
    for dir in ["data/deep", "workflow/inputs", "computations/join"] {
        let mut command = lab.command("ce-run");
        command.current_dir(lab.path("task").join(dir));
        command.args(["-q", "../../../storage"]);
        let ran = lab.finish(&mut command).exit(0);
        assert!(ran.stdout.starts_with("../../../storage/"), "{}", ran.stdout);
    }
    lab.run("ce", &["check", "--task", "data"]).exit(0).shows("task at");
    lab.run("ce", &["check", "--task", ".."]).exit(2).says("holds no task");
    // In either form, a task within a task is not the one around it.
    let lab = lab.file("data/inner/workflow.ce", "Inputs: x\nx").file("data/inner/deep/file", "");
    let lab = lab.commit_again();
    for dir in ["data/inner", "data/inner/deep"] {
        lab.run("ce", &["check", "--task", dir]).exit(0).shows("inner at");
    }
}
