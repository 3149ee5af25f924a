//! `ce init`: a task from nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::tree;
use crate::lab::Lab;
use crate::program::Ran;

fn init<'a>(lab: &'a Lab, arguments: &[&str]) -> Ran<'a> {
    let mut command = lab.command("ce");
    lab.finish(command.current_dir(lab.path("data")).arg("init").args(arguments))
}

#[test]
fn a_new_task_runs_at_once() {
    let lab = Lab::empty();
    init(&lab, &["../new"]).exit(0).prints("text/init-text.txt");
    lab.git("new", &["add", "."]);
    lab.git("new", &["commit", "-qm", "new"]);
    lab.run("ce", &["check", "--task", "../new"]).exit(0).shows("1 input, 1 call, 1 computation");
    let ran = lab.run("ce-run", &["-q", "--task", "../new", "../storage"]).exit(0);
    assert_eq!(lab.stored(ran.lines()[0]).split_whitespace().collect::<Vec<_>>(), ["2", "8", "40"]);
    assert_eq!(lab.git("new", &["status", "--porcelain"]), "");
    init(&lab, &["../new"]).exit(2).says("workflow.ce is there already");
    init(&lab, &["../new", "--directories"]).exit(2).says("workflow.ce is there already");
}

#[test]
fn a_task_with_directories_runs_with_a_computation_and_is_valid_without() {
    let lab = Lab::empty();
    init(&lab, &["../new", "--directories"]).exit(0).prints("text/init.txt");
    lab.git("new", &["add", "."]);
    lab.git("new", &["commit", "-qm", "new"]);
    lab.run("ce", &["check", "--task", "../new"]).exit(0).shows("1 input, 0 calls");
    assert_eq!(lab.git("new", &["status", "--porcelain"]), "");
    init(&lab, &["../a/new", "--directories", "--computation", "first"])
        .exit(0)
        .prints("text/init-computation.txt");
    lab.git("a/new", &["add", "."]);
    lab.git("a/new", &["commit", "-qm", "new"]);
    lab.run("ce", &["check", "--task", "../a/new"]).exit(0).shows("1 input, 1 call, 1 computation");
    let exec = fs::metadata(lab.path("a/new/computations/first/exec")).unwrap();
    assert_eq!(exec.permissions().mode() & 0o111, 0o111);
    fs::write(lab.path("data/x"), "text\n").unwrap();
    let arguments = ["-q", "--task", "../a/new", "../storage", "../data/x"];
    let ran = lab.run("ce-run", &arguments).exit(0);
    assert_eq!(lab.stored(ran.lines()[0]), "text\n");
}

#[test]
fn what_is_there_is_used_and_a_computation_called_with_its_own_inputs() {
    let lab = Lab::empty().computation("first", "a a b", "c d", "exit 1");
    lab.run("ce", &["init", "--directories", "--computation", "first"])
        .exit(0)
        .shows("made inputs, workflow in");
    lab.git("task", &["add", "."]);
    lab.git("task", &["commit", "-qm", "new"]);
    let text = lab.run("ce-sym", &["--labels"]).exit(0).stdout;
    let call = "(first :a INPUT('a')\n       :a INPUT('a')\n       :b INPUT('b')\n )[00, 01]\n";
    assert_eq!(text, format!("Inputs: 'a', 'b'\n{call}"));
    let lab = Lab::empty().file("computations/first/inputs", "a\n");
    lab.run("ce", &["init", "--directories", "--computation", "first"])
        .exit(2)
        .says("computations/first");
    assert!(!lab.path("task/.git").exists());
    // A task within a repository is a part of it.
    let lab = Lab::task("Inputs: 'x'\nINPUT('x')").commit();
    lab.run("ce", &["init", "sub"]).exit(0).shows("in this repository");
    assert!(!lab.path("task/sub/.git").exists());
}

#[test]
fn nothing_is_overwritten() {
    let lab = Lab::empty().file("inputs", "x\n");
    let before = tree(&lab.path("task"));
    lab.run("ce", &["init"]).exit(2).complains("text/init-exists.txt");
    assert_eq!(tree(&lab.path("task")), before);
    init(&lab, &["--directories", "--computation", "a/b"]).exit(2).says("holds a slash");
    init(&lab, &["x\ty"]).exit(2).says("cannot be the name of a task");
}

/// A repository may have brought links in the places of directories.
#[test]
fn nothing_is_made_through_a_link() {
    let lab = Lab::empty();
    fs::create_dir(lab.path("elsewhere")).unwrap();
    for (place, link, arguments) in [
        ("two", "data", &[][..]),
        ("three", "computations", &["--directories", "--computation", "first"]),
    ] {
        let dir = lab.path(place);
        fs::create_dir(&dir).unwrap();
        std::os::unix::fs::symlink("../elsewhere", dir.join(link)).unwrap();
        let told = "it is a symbolic link, or behind one";
        init(&lab, &[&[&*format!("../{place}")], arguments].concat()).exit(5).says(told);
        assert_eq!(fs::read_dir(lab.path("elsewhere")).unwrap().count(), 0, "{place}");
    }
}
