//! `ce edit`: what an editor changes is written, and no text is lost.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use super::tree;
use crate::lab::Lab;
use crate::needs::needs;
use crate::program::{self, Ran};

const TASK: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('x'))[0]";

fn edit<'a>(lab: &'a Lab, editor: &str) -> Ran<'a> {
    lab.finish(lab.command("ce").arg("edit").env("GIT_EDITOR", editor))
}

/// The text that was not written.
fn kept(lab: &Lab) -> Option<String> {
    let names = fs::read_dir(lab.path("task/.git")).unwrap().map(|entry| entry.unwrap().path());
    let is_text = |path: &PathBuf| path.to_str().unwrap().contains("/ce-edit-");
    names.filter(is_text).map(|path| fs::read_to_string(path).unwrap()).next()
}

#[test]
fn what_is_changed_is_written_even_before_it_is_committed() {
    let lab = Lab::task(TASK).commit();
    edit(&lab, "sed -i 's/\\[0\\]/[7]/'").exit(2).says("has 1 output").says("is kept: ce write");
    edit(&lab, "sed -i 's/(mul/(add/'").exit(0).shows("wrote workflow (5 nodes)\n");
    edit(&lab, "sed -i \"s/'y'/'z'/\"")
        .exit(0)
        .shows("wrote workflow (5 nodes) and inputs (x, z)\n");
    let text = lab.run("ce-sym", &["--labels"]).exit(0).stdout;
    assert_eq!(
        text,
        "Inputs: 'x', 'z'\n(add :mul (add :x INPUT('x')\n               :y INPUT('z')\n           )[0]\n     \
         :x INPUT('x')\n )[0]\n",
        "labels stay"
    );
}

#[test]
fn an_editor_that_changes_nothing_writes_nothing() {
    let lab = Lab::task(TASK).commit();
    let before = tree(&lab.path("task"));
    edit(&lab, "true").exit(0).shows("nothing has changed\n");
    edit(&lab, "sed -i 's/; /;; /'").exit(0).shows("nothing has changed\n");
    assert_eq!(tree(&lab.path("task")), before);
}

#[test]
fn the_text_shows_labels_that_are_not_the_names_of_inputs() {
    let lab = Lab::task("Inputs: 'x'\n(add :a INPUT('x') :other #1=(add :left #2=INPUT('x') #2#))");
    edit(&lab.commit(), "cat").exit(0).prints("text/edit.txt");
}

#[test]
fn the_editor_is_the_one_that_git_uses() {
    let lab = Lab::task(TASK).commit();
    let with = |variables: &[(&str, &str)]| {
        lab.finish(lab.command("ce").arg("edit").env("TERM", "xterm").envs(variables.to_vec()))
    };
    let editors = [("VISUAL", "echo visual"), ("EDITOR", "echo editor")];
    with(&editors).exit(0).shows("visual ");
    with(&[editors[1]]).exit(0).shows("editor ");
    with(&[editors[0], editors[1], ("TERM", "dumb")]).exit(0).shows("editor ");
    with(&[("TERM", "dumb")]).exit(2).complains("text/no-editor.txt");
    lab.git("task", &["config", "core.editor", "echo core"]);
    with(&editors).exit(0).shows("core ");
    with(&[editors[0], ("GIT_EDITOR", "echo git")]).exit(0).shows("git ");
}

#[test]
fn a_text_that_is_wrong_is_kept() {
    let lab = Lab::task(TASK).commit();
    let before = tree(&lab.path("task/workflow"));
    edit(&lab, "sed -i 's/(mul/(mul:(/'").exit(2).says("the text is kept: ce write");
    assert_eq!(tree(&lab.path("task/workflow")), before);
    assert!(kept(&lab).unwrap().contains("(mul:( "));
}

#[test]
fn an_editor_that_fails_writes_nothing_and_loses_nothing() {
    let lab = Lab::task(TASK).commit();
    let ran = edit(&lab, "sh -c 'sed -i s/mul/add/ \"$1\"; exit 3' sh");
    ran.exit(5).says("the editor sh -c").says("exit status: 3").says("the text is kept");
    assert!(kept(&lab).unwrap().contains("(add"));
    edit(&lab, "no-such-editor").exit(5).says("no-such-editor");
}

#[test]
fn a_workflow_that_was_changed_meanwhile_is_not_replaced() {
    let lab = Lab::task(TASK).commit();
    let ran = edit(&lab, "sh -c 'sed -i s/mul/add/ \"$1\"; echo mul >workflow/value' sh");
    ran.exit(2).says("has changed since its text was opened");
    assert_eq!(fs::read_to_string(lab.path("task/workflow/value")).unwrap(), "mul\n");
    assert!(kept(&lab).is_some());
}

#[test]
fn what_no_text_says_is_told_before_the_editor_opens() {
    let lab = Lab::task(TASK).file("workflow/NOTES", "").commit();
    edit(&lab, "false").exit(2).says("no text says what is in workflow/NOTES");
    let lab = Lab::task(TASK).file("workflow/kind", "compuation\n").commit();
    edit(&lab, "false").exit(2).says("workflow/kind: \"compuation\" is not a kind of node");
    edit(&Lab::empty(), "false").exit(2).says("ce init");
}

/// Runs `ce edit` in a terminal of Python's.
fn edit_in_a_terminal<'a>(lab: &'a Lab, editor: &str, answer: &str) -> Ran<'a> {
    needs(&["python3"]);
    let python = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";
    let mut edit = lab.command("ce");
    edit.arg("edit").env("GIT_EDITOR", editor);
    let mut command = program::through(&["python3", "-c", python], &edit);
    command.stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
    Ran::new(lab, child.wait_with_output().unwrap())
}

#[test]
fn at_a_terminal_a_text_that_is_wrong_can_be_edited_again() {
    let editor = "if grep -q '(mul (' \"$1\"; then sed -i 's/(mul (/(add/' \"$1\"
        else sed -i 's/(mul/(mul (/' \"$1\"; fi";
    let lab = Lab::task(TASK).commit().data("editor", editor);
    let ran = edit_in_a_terminal(&lab, "sh ../data/editor", "\n");
    ran.exit(0).shows("1 mistake").shows("Edit again? [Y/n]").shows("wrote workflow (5 nodes)");
    let lab = Lab::task(TASK).commit().data("editor", editor);
    let ran = edit_in_a_terminal(&lab, "sh ../data/editor", "n\n");
    ran.exit(2).shows("the text is kept");
    assert!(kept(&lab).unwrap().contains("(mul ( "));
}
