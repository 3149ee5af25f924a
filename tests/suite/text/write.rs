//! `ce write`: what is written, and what is not lost.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use super::tree;
use crate::fifo::Never;
use crate::lab::Lab;
use crate::program::Ran;

const TASK: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('x'))[0]";

/// Gives a text to `ce write` as a file.
fn write<'a>(lab: &'a Lab, text: &str, options: &[&str]) -> Ran<'a> {
    fs::write(lab.path("data/text"), text).unwrap();
    lab.run("ce", &[&["write", "../data/text"], options].concat())
}

/// Nothing of the task changes.
fn unchanged<'a>(lab: &'a Lab, act: impl FnOnce() -> Ran<'a>) -> Ran<'a> {
    let before = tree(&lab.path("task"));
    let ran = act();
    assert_eq!(tree(&lab.path("task")), before);
    ran
}

#[test]
fn a_text_becomes_a_workflow_that_runs() {
    let lab = Lab::task(TASK).commit();
    let text = "; both\nInputs: 'y', 'x'\n(add #1=(mul INPUT('x') INPUT('y'))[0] #1#)";
    write(&lab, text, &[]).exit(0).shows("wrote workflow (4 nodes, 1 link) and inputs (y, x)\n");
    let link = fs::read_link(lab.path("task/workflow/inputs/01-b")).unwrap();
    assert_eq!(link.to_str(), Some("00-a"));
    assert!(!lab.path("task/workflow/outputs").exists());
    assert_eq!(fs::read_to_string(lab.path("task/inputs")).unwrap(), "y\nx\n");
    let lab = lab.commit_again();
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.output(), "170\n");
    assert!(!tree(&lab.path("task")).keys().any(|name| name.starts_with(".ce-write")));
}

#[test]
fn a_text_can_come_from_standard_input_before_there_is_a_commit() {
    let lab = Lab::empty().computation("next", "a", "b", "exit 1");
    let mut child = lab
        .command("ce")
        .args(["write", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let text = "Inputs: 'x'\n(next (next INPUT('x')))";
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let lab = lab.commit();
    lab.run("ce", &["check"]).exit(0).shows("1 input, 2 calls");
}

#[test]
fn a_text_without_an_end_is_not_read_for_ever() {
    let lab = Lab::task(TASK).commit();
    let told = unchanged(&lab, || lab.run("ce", &["write", "/dev/zero"]).exit(2));
    told.says("/dev/zero is larger than 64.0 MiB").says("  try: ");
}

#[test]
fn the_same_text_changes_nothing() {
    let lab = Lab::task(TASK).commit();
    let text = lab.run("ce-sym", &["--labels"]).exit(0).stdout;
    unchanged(&lab, || write(&lab, &text, &[]).exit(0).shows("nothing has changed\n"));
    let lab = lab.file("workflow/value", "mul\n");
    unchanged(&lab, || write(&lab, &text.replacen("(add", "(mul", 1), &[]).exit(0));
}

#[test]
fn what_no_commit_records_is_not_replaced() {
    let text = "INPUT('x')";
    let lab = Lab::task(TASK).commit().file("workflow/value", "mul\n");
    let refused = unchanged(&lab, || write(&lab, text, &[]).exit(2));
    refused.complains("text/uncommitted.txt");
    write(&lab, text, &["--force"]).exit(0);
    assert_eq!(fs::read_to_string(lab.path("task/workflow/kind")).unwrap(), "input\n");

    let lab = Lab::task(TASK).commit().file("inputs", "x\ny\nz\n");
    unchanged(&lab, || write(&lab, "Inputs: 'x', 'y'\nINPUT('x')", &[]).exit(2)).says("inputs");
    write(&lab, text, &[]).exit(0);

    let lab = Lab::task(TASK).file(".gitignore", "value\n").commit().file("workflow/value", "mul");
    unchanged(&lab, || write(&lab, text, &[]).exit(2)).says("workflow/value");

    let lab = Lab::task(TASK);
    unchanged(&lab, || write(&lab, text, &[]).exit(2)).says("uncommitted changes: workflow");
}

#[test]
fn what_no_text_says_is_not_removed() {
    let lab = Lab::task(TASK).file("workflow/inputs/NOTES", "").file("workflow/.x", "").commit();
    let refused = unchanged(&lab, || write(&lab, "INPUT('x')", &[]).exit(2));
    refused.complains("text/unread.txt");
    write(&lab, "INPUT('x')", &["--force"]).exit(0);
    assert!(!lab.path("task/workflow/.x").exists());
}

#[test]
fn a_workflow_that_is_wrong_or_a_link_is_replaced_once_it_is_committed() {
    let lab = Lab::task(TASK).file("workflow/kind", "compuation\n").commit();
    write(&lab, "INPUT('x')", &[]).exit(0);
    lab.commit_again().run("ce", &["check"]).exit(0);

    let lab = Lab::task(TASK);
    fs::rename(lab.path("task/workflow"), lab.path("task/real")).unwrap();
    let lab = lab.link("workflow", "real").commit();
    write(&lab, "INPUT('x')", &[]).exit(0);
    assert!(lab.path("task/workflow").symlink_metadata().unwrap().is_dir());
    assert!(lab.path("task/real/inputs/00-mul/kind").exists(), "the target of a link stays");
}

#[test]
fn computations_and_files_that_do_not_exist_yet_are_told() {
    let lab = Lab::task(TASK).commit();
    let text = "(ad (later INPUT('x'))[00, 01]\n    (mul OWN('data/later') (later OWN('inputs'))[00]))[00]";
    let ran = write(&lab, text, &[]).exit(0);
    ran.complains("text/not-yet.txt");
    assert!(lab.path("task/workflow/inputs/00_01-later/inputs/00-x").exists());
}

#[test]
fn nothing_is_written_where_there_is_no_task() {
    let lab = Lab::task(TASK).commit();
    write(&lab, "INPUT('x')", &["--task", "../data"]).exit(2).says("holds no task");
    write(&lab, "INPUT('x')", &["--task", "../nowhere"]).exit(2).says("cannot read");
    lab.run("ce", &["write", "../nothing"]).exit(2).says("cannot read ../nothing");
    assert!(!lab.path("data/workflow").exists());
}

#[test]
fn a_computation_that_cannot_be_read_is_one_that_is_not_known() {
    let lab = Lab::empty().file("computations/odd/outputs", b"\xff").commit();
    let pipe = Never::new(lab.path("task/computations/odd/inputs"));
    write(&lab, "Inputs: 'x'\n(odd INPUT('x'))", &[]).exit(0);
    assert!(lab.path("task/workflow/inputs/00-x").exists());
    drop(pipe);
}

#[test]
fn a_list_of_inputs_that_cannot_be_read_is_replaced_only_by_another_list() {
    let lab = Lab::task(TASK).file("inputs", "x\n\ty\tz\n").commit();
    unchanged(&lab, || write(&lab, "FILE('a')", &[]).exit(2)).says("not every line is a name");
    write(&lab, "Inputs: 'x'\nINPUT('x')", &[]).exit(0).shows("inputs (x)");
}

#[test]
fn a_task_is_written_from_within_it() {
    let lab = Lab::task(TASK).file("data/constant", "3\n").commit();
    write(&lab, "(add OWN('data/constant') INPUT('x'))", &["--task", "data"]).exit(0);
    let text = lab.commit_again().run("ce-sym", &[]).exit(0).stdout;
    assert!(text.contains("(add OWN('data/constant')\n"), "{text}");
    // A task in the making is not the one around it.
    let lab = Lab::task(TASK).file("sub/computations/f/outputs", "o\n").commit();
    write(&lab, "(f)", &["--task", "sub"]).exit(0);
    assert!(lab.path("task/sub/workflow/kind").exists());
}
