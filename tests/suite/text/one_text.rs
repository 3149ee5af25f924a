//! A workflow that is one text, `workflow.ce`: it is the same task as its directories, wherever it is loaded from.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use compeval::expression::{Labels, Sharing, Style, Text};
use compeval::git::ReachableSet;
use compeval::load;
use compeval::load::Uncommitted;
use compeval::task::Task;

use super::round_trip::label;
use crate::generator::{self, Random};
use crate::lab::Lab;
use crate::lisp::{self, shown};

const FILE: &str = "tinputs/ad/48103e4fc7";

/// A task with this text, which is not committed yet. Its inputs are files in `data/`.
pub(super) fn task(text: &str) -> Lab {
    Lab::task("Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))").one_text(text)
}

pub(super) fn loaded(lab: &Lab) -> Task {
    load::task(&lab.path("task"), Uncommitted::Ignore, None).unwrap().task
}

/// Makes the directories of a random workflow, and returns its expression.
pub(super) fn write_directories(lab: &Lab, seed: u64) -> Text {
    let task = lab.path("task");
    let mut random = Random::new(seed);
    let mut expression = generator::workflow(&mut random);
    label(&mut expression, &mut random);
    let inputs = lab.inputs.iter().map(|name| name.parse().unwrap()).collect();
    let text = Text { inputs: Some(inputs), expression, ..Text::default() };
    drop(fs::remove_dir_all(task.join("workflow")));
    lisp::write(&task, &text);
    fs::write(task.join("inputs"), "x\ny\nstop words\n").unwrap();
    text
}

#[test]
fn random_workflows_are_the_same_task_in_both_forms() {
    let lab = generator::lab();
    let task = lab.path("task");
    for seed in generator::seeds(20) {
        drop(fs::remove_file(task.join("workflow.ce")));
        let text = write_directories(&lab, seed);
        let of_directories = loaded(&lab);
        fs::remove_dir_all(task.join("workflow")).unwrap();
        fs::remove_file(task.join("inputs")).unwrap();
        for sharing in [Sharing::Label, Sharing::Repeat] {
            let style = Style { sharing, labels: Labels::Show };
            fs::write(task.join("workflow.ce"), shown(&text, style)).unwrap();
            let of_text = loaded(&lab);
            assert_eq!(of_text.workflow, of_directories.workflow, "seed {seed}, labels and all");
            assert!(of_text.means_the_same(&of_directories), "seed {seed}");
        }
    }
}

#[test]
fn a_task_that_changes_its_form_computes_nothing_again() {
    let directories = "Inputs: 'x', 'y'\n(mul (add INPUT('x') INPUT('y')) INPUT('y'))";
    let lab = trusting(Lab::task(directories)).commit();
    let first = lab.ce_run(&[]).exit(0);
    assert!(first.stderr.contains("2 calls: 2 computed"), "{}", first.stderr);
    let results = |lab: &Lab| {
        let names = lab.results().into_keys();
        names.filter(|name| name.starts_with("c_")).map(|it| without_commit(&it)).collect()
    };
    let before: BTreeSet<String> = results(&lab);
    let text = "Inputs: x, y\nsum = (add x y)\n(mul sum y)";
    let lab = lab.one_text(text).commit_again();
    lab.ce_run(&[]).exit(0).says("2 calls: 2 taken over");
    assert_eq!(results(&lab), before, "calls have the same names");
    let storage = "../storage";
    let ran = lab
        .run("ce", &["diff", "--no-isolate", "HEAD~1", "HEAD", storage, "../data/x", "../data/y"]);
    assert_eq!(ran.exit(0).stdout, "output 00 product: the same\n");
    let lab = lab.without("workflow.ce");
    lisp::write(&lab.path("task"), &lisp::text(directories));
    let lab = lab.file("inputs", "x\ny\n").commit_again();
    lab.ce_run(&[]).exit(0).says("2 calls: 2 taken over");
    assert_eq!(lab.called().len(), 2, "nothing was executed again");
}

/// Lets the user trust trees.
pub(super) fn trusting(lab: Lab) -> Lab {
    let config = "[safe]\n\tdirectory = *\n[compeval]\n\ttakeover = tree\n";
    fs::write(lab.path("home/.gitconfig"), config).unwrap();
    lab
}

/// The name of a result without the commit of its computation.
fn without_commit(name: &str) -> String {
    let mut parts: Vec<&str> = name.split('/').collect();
    parts.remove(1);
    parts.join("/")
}

#[test]
fn a_text_is_loaded_from_work_tree_and_commit_and_with_its_changes() {
    let lab = task("Inputs: x, y = '100'\n(add x y)").commit();
    let given = ["../storage", "../data/x"];
    lab.run("ce-run", &[&["-q"], &given[..]].concat()).exit(0);
    assert_eq!(lab.stored(&output(&lab, &given)), "117\n");
    let lab = lab.file("workflow.ce", "Inputs: x, y = '200'\n(add x y)");
    let ran = lab.run("ce-run", &[&["-q"], &given[..]].concat()).exit(0);
    let ran = ran.says("the job's outputs were not stored: workflow.ce has uncommitted changes");
    assert_eq!(lab.stored(ran.lines()[0]), "217\n");
    let ran = lab.run("ce-run", &[&["-q", "--at", "HEAD"], &given[..]].concat());
    assert_eq!(lab.stored(ran.exit(0).lines()[0]), "117\n");
    fs::remove_file(lab.path("task/workflow.ce")).unwrap();
    lab.run("ce", &["check"]).exit(2).says("neither workflow.ce nor a directory workflow");
    let ran = lab.run("ce-run", &[&["-q", "--at", "HEAD"], &given[..]].concat());
    assert_eq!(lab.stored(ran.exit(0).lines()[0]), "117\n");
}

/// The output of the task as it is there.
fn output(lab: &Lab, given: &[&str]) -> String {
    let ran = lab.run("ce-run", &[&["-n", "-q"], given].concat()).exit(0);
    ran.lines()[0].to_owned()
}

#[test]
fn a_definition_names_its_call_and_can_be_asked_for() {
    let lab =
        task("Inputs: x, y\nsum = (add x y)\nproduct = (mul sum sum)\n(add product y)").commit();
    let ran = lab.ce_run(&["--only", "sum"]).exit(0);
    assert!(ran.stdout.contains("add (sum)"), "{}", ran.stdout);
    assert_eq!(lab.called(), ["add"]);
    let ran = lab.ce_run(&[]).exit(0);
    assert!(ran.stdout.contains("mul (product)"), "{}", ran.stdout);
    assert_eq!(lab.called(), ["mul", "add"]);
    let json = lab.ce_run(&["--json", "--dirty"]).exit(0).stdout.clone();
    assert!(json.contains(r#""label":"product""#), "{json}");
    // One that is asked for passes up all that is read of it.
    let lab = task("Inputs: x, y\nboth = (divmod x y)\n(add both[01] both[quotient])").commit();
    let ran = lab.ce_run(&["-q", "--only", "both"]).exit(0);
    let outputs: Vec<String> = ran.lines().iter().map(|path| lab.stored(path)).collect();
    assert_eq!(outputs, ["2\n", "3\n"]);
}

#[test]
fn constants_become_directories() {
    let lab = task("Inputs: x\n(add '5' TEXT('6' :unended))").commit();
    lab.to_directories().exit(0);
    let text = lab.run("ce-sym", &[]).exit(0).stdout;
    assert_eq!(text, "Inputs: 'x'\n(add TEXT('5')\n     TEXT('6' :unended)\n )[00]\n");
    let lab = lab.one_text(&text);
    lab.to_directories().exit(0);
    assert_eq!(lab.run("ce-sym", &[]).exit(0).stdout, text);
    assert_eq!(fs::read(lab.path("task/workflow/inputs/01-b/value")).unwrap(), b"6");
}

#[test]
fn constants_and_factors_are_written_in_the_text() {
    let text = "Inputs: x, y\nscaled = (mul x '3')\nSWEEP((add scaled n) :over n 1..3 10)";
    let lab = trusting(task(text)).commit();
    lab.ce_run(&[]).exit(0);
    let table = lab.run("ce", &["table", "../storage", "../data/x", "../data/y"]);
    let table = table.exit(0).stdout.clone();
    for sum in ["52", "53", "54", "61"] {
        assert!(table.contains(sum), "{table}");
    }
    let given = "Inputs: x, y\n(mul x y)";
    let lab = lab.file("workflow.ce", given).data("y", "3\n").commit_again();
    lab.ce_run(&[]).exit(0).says("1 taken over");
}

#[test]
fn a_collection_keeps_results_that_a_text_names_at_any_commit() {
    let lab = task(&format!("Inputs: x, y\nunused = (add FILE('{FILE}') y)\n(add x y)")).commit();
    let lab = lab.file("workflow.ce", "Inputs: x, y\n(add x y)").commit_again();
    let reached = |lab: &Lab| {
        let mut reach = ReachableSet::default();
        reach.add(&lab.path("task")).unwrap();
        reach
    };
    assert_eq!(reached(&lab).literals().collect::<Vec<_>>(), [FILE]);
    // A version that reads it may find a name in it.
    let lab = lab.file("workflow.ce", "Inputs: x, y\n(add x FILE('c_{x}/0/00/_')").commit_again();
    let reach = reached(&lab);
    assert_eq!(reach.literals().collect::<Vec<_>>(), [FILE]);
    assert_eq!(reach.words().collect::<Vec<_>>(), ["c_{x}/0/00/_"]);
    let [unreadable] = reach.unreadable() else { panic!("{:?}", reach.unreadable()) };
    assert_eq!(unreadable.path, Path::new("workflow.ce"));
    assert!(unreadable.fault.starts_with("2:1: the expression"), "{unreadable:?}");
}

#[test]
fn faults_of_texts_of_names_are_reported_with_their_line() {
    let text = "Inputs: x\n(add (add x OWN('{x}')) OWN('{x}') :resources 'memory {x}G')";
    let lab = task(text).commit();
    let run = |text: &str| lab.run("ce", &["run", "../storage", "-p", &format!("x={text}")]);
    let told = "workflow.ce:2: \"{x}\" where x is \"no\": the task has no file \"no\"";
    assert_eq!(run("no").exit(2).stderr.matches("workflow.ce").count(), 1);
    run("no").exit(2).says(told);
    run("a\tb").exit(2).says("workflow.ce:2: \"{x}G\" cannot have the text of the input x");
    let text = "Inputs: x\n\n(add x\n x :resources 'cpus {n}')";
    let lab = task(text).commit();
    let told = "workflow.ce:4: {n} is neither an input of the task nor bound by a sweep around the \
                node workflow.ce:3\n";
    lab.run("ce", &["check"]).exit(2).says(told);
}

#[test]
fn a_sweep_is_named_by_its_line_and_by_its_column_where_several_begin_there() {
    let text = "Inputs: x\na = SWEEP((add x n) :over n 1 2)\n\
                b = SWEEP((mul x n) :over n 1 2) c = SWEEP((add x m) :over m 1 '1.0')\n\
                (all a b c)";
    let lab = Lab::empty()
        .computation("add", "a b", "sum", r#"cat "$1" >"$3""#)
        .computation("mul", "a b", "product", r#"cat "$1" >"$3""#)
        .computation("all", "a b c", "d", r#"cat "$1" >"$4""#)
        .file("workflow.ce", text)
        .commit();
    let run = lab.run("ce", &["run", "--json", "../storage", "-p", "x=1"]).exit(0);
    for place in ["workflow.ce:2", "workflow.ce:3:5", "workflow.ce:3:38"] {
        assert!(run.stdout.contains(&format!(r#""place":"{place}""#)), "{}", run.stdout);
        lab.run("ce", &["table", "--sweep", place, "../storage", "-p", "x=1"]).exit(0);
    }
}

#[test]
fn a_changed_default_in_a_text_is_reported_by_its_input() {
    let lab = task("Inputs: x = '1', y = '2'\n(add x y)").commit();
    lab.run("ce", &["run", "--no-isolate", "../storage"]).exit(0);
    let lab = lab.file("workflow.ce", "Inputs: x = '1', y = '3'\n(add x y)").commit_again();
    let diff = |options: &[&str]| {
        let options = [&["diff", "--no-isolate"], options, &["HEAD~1", "HEAD", "../storage"]];
        lab.run("ce", &options.concat()).exit(0).stdout
    };
    let told = diff(&[]);
    let (_, files) = told.split_once("other files of the task:\n").unwrap();
    assert!(files.starts_with("  workflow.ce, input y: 2 B "), "{told}");
    assert_eq!(files.lines().take_while(|line| !line.is_empty()).count(), 1, "{told}");
    let told = diff(&["--json"]);
    assert_eq!(told.matches(r#""event":"file""#).count(), 1, "{told}");
    assert!(told.contains(r#""input":"y""#), "{told}");
}
