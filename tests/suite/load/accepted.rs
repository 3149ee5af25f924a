//! Tasks that look odd and are fine.

use crate::lab::{Lab, Library};

const TASK: &str = "Inputs: 'x', 'stop words'
(add (divmod INPUT('x') INPUT('stop words'))[0, 1])[0]";

fn lab() -> Lab {
    Lab::task(TASK)
}

/// Runs the task, which has the result of the plain one, without a message about it.
#[track_caller]
fn evaluates(lab: Lab) {
    let lab = lab.commit();
    let check = lab.run("ce", &["check"]).exit(0);
    assert_eq!(check.stderr, "");
    lab.ce_run(&[]).exit(0).called(vec!["add", "divmod"]);
    assert_eq!(lab.output(), "5\n");
}

#[test]
fn names_may_have_any_characters() {
    let text =
        "Inputs: 'it's \"x\" - ü/数', 'b'\n(add-up.2_é INPUT('it's \"x\" - ü/数') INPUT('b'))[0]";
    let lab = Lab::task(&text.replace('/', "|"))
        .computation("add-up.2_é", "a b", "Σ", r#"echo $(($(cat "$1") + $(cat "$2"))) >"$3""#)
        .commit();
    lab.run("ce-sym", &[]).exit(0).prints("load/names-sym.txt");
    lab.ce_run(&[]).exit(0).prints("load/names.txt");
    assert_eq!(lab.output(), "22\n");
}

#[test]
fn outputs_are_chosen_by_their_names() {
    let text = "Inputs: 'x', 'y'\n(add (divmod INPUT('x') INPUT('y'))[remainder, 0])[sum]\n";
    let lab = Lab::task(text).commit_with(Library::Submodule);
    let sym = lab.run("ce-sym", &[]).exit(0);
    assert!(sym.stdout.ends_with("[remainder, 0])[sum]\n"), "{}", sym.stdout);
    lab.ce_run(&["-q"]).exit(0).called(vec!["add", "divmod"]);
    assert_eq!(lab.output(), "5\n");
    // Names and numbers are the same results.
    let lab = lab.file("workflow/inputs/00_01-divmod/outputs", "1\nquotient\n").commit_again();
    lab.ce_run(&["-q"]).exit(0).called(vec![]);
}

#[test]
fn a_workflow_without_outputs_passes_up_all() {
    evaluates(lab().without("workflow/outputs").without("workflow/inputs/00_01-divmod/outputs"));
    let lab = Lab::task("Inputs: 'x', 'y'\n(divmod INPUT('x') INPUT('y'))").commit();
    lab.run("ce-sym", &[]).exit(0).prints("load/no-outputs-sym.txt");
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.output(), "3\n2\n");
}

#[test]
fn files_that_nothing_reads_are_reported() {
    let lab = lab()
        .file("workflow/notes", "")
        .file("workflow/inputs/README", "")
        .file("workflow/.hidden", "")
        .file("workflow/inputs/.hidden", "")
        .file("workflow/kind", "computation\n\nbecause\n")
        .file("workflow/inputs/00_01-divmod/value", "divmod\nmore\n")
        .file("workflow/inputs/00_01-divmod/inputs/00-x/outputs", "0\n")
        .file("workflow/inputs/00_01-divmod/inputs/01-stop words/inputs/00-x/kind", "nonsense\n")
        .file("computations/add/README", "")
        .commit();
    lab.run("ce", &["check"]).exit(0).complains("load/oddities.txt").prints("load/oddities.out");
    lab.run("ce-sym", &[]).exit(0).says("ce-sym: warning: workflow/notes: nothing reads this\n");
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.output(), "5\n");
}

#[test]
fn the_task_may_be_named_through_a_link_or_with_a_slash() {
    let lab = lab().commit();
    std::os::unix::fs::symlink("task", lab.path("link")).unwrap();
    for task in ["../link", "../task/", "../task/.", "workflow/.."] {
        let ran = lab.run("ce", &["check", "--task", task]).exit(0);
        assert!(ran.stdout.starts_with("task at "), "{}", ran.stdout);
    }
}
