//! The check of workflows in both forms, without a repository.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ce_git::Snapshot;
use ce_model::exit::Explain;
use ce_model::expression::{Signature, Signatures, WorkflowDirectories, parse};
use ce_model::task::{Node, Workflow};
use tempfile::TempDir;

use crate::edit;
use crate::load::problems::Problems;
use crate::load::tests::TestFiles;
use crate::load::written::WrittenWorkflow;
use crate::load::{read_expression, written_directories};

/// The computations of the tests, with their inputs and outputs.
const COMPUTATIONS: [(&str, &str, &str); 5] = [
    ("add", "a b", "sum"),
    ("divmod", "n d", "quotient remainder"),
    ("none", "", "x"),
    ("sort-fast", "a", "sorted"),
    ("sort-slow", "a", "sorted"),
];

/// A directory with these computations, a file and a list of inputs.
fn task() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("computations")).unwrap();
    for (name, inputs, outputs) in COMPUTATIONS {
        let file = dir.path().join(format!("computations/{name}.sh"));
        fs::write(&file, format!("#!/bin/sh\n#CE inputs {inputs}\n#CE outputs {outputs}\n"))
            .unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::create_dir(dir.path().join("data")).unwrap();
    fs::write(dir.path().join("data/own"), "1\n").unwrap();
    dir
}

fn signatures() -> Signatures {
    let names = |names: &str| Some(names.split_whitespace().map(str::to_owned).collect());
    let signature = |(name, inputs, outputs): (&str, &str, &str)| {
        (name.to_owned(), Signature { inputs: names(inputs), outputs: names(outputs) })
    };
    COMPUTATIONS.into_iter().map(signature).collect()
}

fn files(dir: &Path) -> TestFiles {
    TestFiles(Snapshot::of_files(&dir.canonicalize().unwrap()))
}

/// The result of a check: the workflow, or the problems, each with its place.
type Checked = Result<Workflow, Vec<String>>;

fn checked(dir: &Path, written: WrittenWorkflow<'_>, mut findings: Problems) -> Checked {
    let read = read_expression(&mut files(dir), written, &mut findings);
    findings.sort();
    let problems = findings.problems.iter();
    let problems: Vec<String> = problems
        .map(|it| {
            let line = it.line.map(|line| format!(":{line}")).unwrap_or_default();
            format!("{}{line}: {}", it.path.display(), it.fault)
        })
        .collect();
    match read.workflow {
        Some(workflow) if problems.is_empty() => Ok(workflow.workflow),
        _ => Err(problems),
    }
}

fn check_text(text: &str) -> Checked {
    let dir = task();
    let parsed = parse(text).unwrap_or_else(|mistake| panic!("{text}: {mistake}"));
    checked(dir.path(), WrittenWorkflow::Text(&parsed), Problems::default())
}

/// Checks the directories that somebody makes in a task.
fn check_directories(make: impl FnOnce(&Path)) -> Checked {
    let dir = task();
    fs::write(dir.path().join("inputs"), "x\ny\n").unwrap();
    make(dir.path());
    let mut findings = Problems::default();
    let written = written_directories::read(&mut files(dir.path()), &mut findings);
    checked(dir.path(), WrittenWorkflow::Directories(&written), findings)
}

/// The directories that a text becomes.
fn lay_out(text: &str) -> impl FnOnce(&Path) {
    let parsed = parse(text).unwrap();
    let layout = WorkflowDirectories::of_expression(&parsed.text.expression, &signatures());
    let layout = layout.unwrap_or_else(|| panic!("{text} has no directories"));
    move |dir| edit::make(&dir.join("workflow"), &layout).unwrap()
}

fn with_inputs(text: &str) -> String {
    format!("Inputs: x, y\n{text}")
}

/// The problems of a text, without the name of the file.
fn problems(text: &str) -> Vec<String> {
    let problems = check_text(&with_inputs(text)).expect_err(text);
    problems.into_iter().map(|it| it.replacen("workflow.ce:", "", 1)).collect()
}

#[test]
fn equal_expressions_are_one_node() {
    let workflow = check_text(&with_inputs("(add (add x 'a') (add x 'a'))")).unwrap();
    let calls = workflow.nodes().filter(|(_, node)| matches!(node, Node::Computation { .. }));
    assert_eq!(calls.count(), 2);
}

#[test]
fn a_workflow_is_the_same_in_both_forms() {
    for text in [
        "x",
        "(add x y)",
        "(add (divmod x y))",
        "(add (divmod x y)[remainder] (divmod x y)[00])",
        "(add 'a' TEXT('b' 'c' :unended))",
        "(add OWN('data/own') MEMBER('a' x))",
        "(add ALL((none) x))",
        "a = (none)\n(add a a)",
        "SWEEP((add x n) :over n 1..3)",
        "SWEEP((add replicate n) :over n 1 2 :replicates 3 :allow-failed :columns '00 *')",
        "SWEEP((add x n) :over n 1 2 :where 'n > 1')",
        "SWEEP((add x n) x :names 'n')",
        "SWEEP((add SWEEP((add n m) :over m 1 2) n) :over n 1 2)",
    ] {
        let text = with_inputs(text);
        let one = check_text(&text).unwrap_or_else(|problems| panic!("{text}: {problems:?}"));
        let other = check_directories(lay_out(&text));
        let other = other.unwrap_or_else(|problems| panic!("{text}: {problems:?}"));
        assert_eq!(one, other, "{text}");
    }
}

#[test]
fn a_problem_is_the_same_in_both_forms() {
    for text in [
        "(add x)",
        "(add (divmod x y)[quotent] y)",
        "(add (divmod x y)[02] y)",
        "(add z x)",
        "(add (unknown x)[00] z)",
        "(add OWN('data/none') x)",
        "SWEEP((add x y) :over n 1 2)",
        "SWEEP((sort-{how} x) :over how 'fast' 'slow' 'no')",
        "SWEEP((add x n) :over n 1 2 :columns '02 a')",
        "(add SWEEP((add x n) :over n 1 2) n)",
        "MEMBER('a' x y)",
        "TREE('lib')",
    ] {
        let text = with_inputs(text);
        let faults = |checked: Checked| {
            let problems = checked.expect_err(&text).into_iter();
            let mut faults: Vec<String> =
                problems.map(|it| it.split_once(": ").unwrap().1.to_owned()).collect();
            faults.sort();
            faults
        };
        let other = faults(check_directories(lay_out(&text)));
        assert_eq!(faults(check_text(&text)), other, "{text}");
    }
}

#[test]
fn a_call_has_as_many_inputs_as_its_computation() {
    assert_eq!(problems("(add x)"), ["2: add takes 2 inputs, not 1"]);
    assert_eq!(problems("(none x)"), ["2: none takes 0 inputs, not 1"]);
    assert_eq!(problems("(add (divmod x y)\n x)"), ["2: add takes 2 inputs, not 3"]);
}

#[test]
fn a_slice_chooses_outputs_that_there_are() {
    assert_eq!(problems("(add x y)[01]"), ["2: add has 1 output, so there is no 01"]);
    let wrong = problems("(divmod x y)[00, quotent]");
    assert_eq!(wrong, ["2: \"quotent\" is not an output: there are quotient, remainder"]);
}

#[test]
fn a_name_is_an_input_or_bound_around_the_place() {
    assert_eq!(problems("(add x\n z)"), ["3: the task has no input \"z\""]);
    let outside = problems("(add SWEEP((add x n) :over n 1 2)\n n)");
    assert_eq!(outside, ["3: the task has no input \"n\""]);
    let unlisted = problems("SWEEP((add x n) x)");
    assert_eq!(unlisted, ["2: the task has no input \"n\""], "a text binds what it lists");
}

#[test]
fn all_problems_are_reported_at_once_and_in_order() {
    let wrong = problems("(add (add x)\n (add z\n  OWN('data/none')))");
    let expected = [
        "2: add takes 2 inputs, not 1",
        "3: the task has no input \"z\"",
        "4: the task has no file \"data/none\"",
    ];
    assert_eq!(wrong, expected);
}

#[test]
fn a_label_stands_before_its_own_input() {
    let wrong = problems("(add :b x :a y)");
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].starts_with("2: the label \"b\" stands before the input \"a\""), "{wrong:?}");
    assert!(check_text(&with_inputs("(add :mine x :b y)")).is_ok());
}

#[test]
fn levels_choose_computations_with_the_same_inputs() {
    let wrong = problems("SWEEP((sort-{how} x) :over how 'fast' 'no')");
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].contains("there is no computation \"sort-no\""), "{wrong:?}");
    let wrong = problems("SWEEP(({name} x) :over name 'sort-fast' 'none')");
    assert!(wrong[0].contains("none has no inputs"), "{wrong:?}");
}

#[test]
fn a_directory_that_cannot_be_read_is_one_problem() {
    let wrong = check_directories(|task| {
        lay_out("(add INPUT('x') INPUT('y'))")(task);
        fs::write(task.join("workflow/inputs/00-a/kind"), "nothing\n").unwrap();
    });
    assert_eq!(
        wrong.unwrap_err(),
        ["workflow/inputs/00-a/kind: \"nothing\" is not a kind of node"]
    );
    let wrong = check_directories(|task| {
        lay_out("(add INPUT('x') INPUT('z'))")(task);
        fs::remove_file(task.join("workflow/value")).unwrap();
    });
    let expected = [
        "workflow/inputs/01-b/value: the task has no input \"z\"",
        "workflow/value: does not exist",
    ];
    assert_eq!(wrong.unwrap_err(), expected, "what it reads is checked all the same");
}

#[test]
fn the_body_of_a_sweep_that_cannot_be_read_has_unknown_names() {
    for file in ["outputs", "value"] {
        let wrong = check_directories(|task| {
            lay_out("SWEEP((add x n) :over n 1 2)")(task);
            fs::write(task.join("workflow").join(file), b"\xff\n").unwrap();
        });
        let wrong = wrong.unwrap_err();
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].starts_with(&format!("workflow/{file}: ")), "{wrong:?}");
    }
}

#[test]
fn a_sweep_with_wrong_rules_has_a_slice_all_the_same() {
    let wrong = problems("SWEEP((add x n)\n :over n 1 1)[09]");
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].starts_with("2: a sweep has 2 outputs, so there is no 09"), "{wrong:?}");
}

#[test]
fn equal_directories_have_places_of_their_own_in_other_scopes() {
    // Below 01-b, nothing binds n.
    let wrong = check_directories(|task| {
        lay_out("(add SWEEP((add x n) :over n 1 2) (add x n))")(task);
    });
    let expected = ["workflow/inputs/01-b/inputs/01-b/value: the task has no input \"n\""];
    assert_eq!(wrong.unwrap_err(), expected);
}

#[test]
fn every_fault_of_a_text_has_advice_or_says_enough() {
    let dir = task();
    let text = with_inputs("(add x z)");
    let parsed = parse(&text).unwrap();
    let mut findings = Problems::default();
    read_expression(&mut files(dir.path()), WrittenWorkflow::Text(&parsed), &mut findings);
    let [problem] = &findings.problems[..] else { panic!("{} problems", findings.problems.len()) };
    assert!(problem.fault.hint().is_some());
    let shown = problem.to_string();
    assert_eq!(
        shown.lines().skip(1).collect::<Vec<_>>(),
        ["    | (add x z)", "    |        ^"],
        "{shown}"
    );
}
