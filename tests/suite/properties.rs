//! Properties of every workflow, tried on many that are made up.
//!
//! `CE_SEED=17 cargo test properties` tries the workflow of one seed only, `CE_TIMES=100` a hundred
//! times as many.

use std::collections::HashSet;
use std::fs;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use compeval::evaluate::How;
use compeval::expression::{Expression, NodeKind, Sharing, Text};
use compeval::session::Exit;
use compeval::slice::WrittenSlice;

use crate::generator::{self, LITERALS, Random, output_name, relabel};
use crate::harness;
use crate::inside::{World, value};
use crate::lab::{Lab, files, settle};
use crate::lisp;
use crate::program::PATIENCE;

/// A case that prints its workflow when a test fails: its seed, and as text.
pub(crate) struct Case(pub(crate) u64, pub(crate) String);

impl Drop for Case {
    fn drop(&mut self) {
        if thread::panicking() {
            harness::print(&format!("CE_SEED={}\n{}\n", self.0, self.1));
        }
    }
}

/// Tries something on this number of workflows.
fn try_on(count: u64, property: impl Fn(&Lab, &Expression, &mut Random)) {
    let lab = generator::lab();
    for seed in generator::seeds(count) {
        let mut random = Random::new(seed);
        let workflow = generator::workflow(&mut random);
        let _case = Case(seed, generator::printed(&workflow, Sharing::Label));
        write(&lab, &workflow);
        relabel(&lab, &mut random);
        property(&lab, &workflow, &mut random);
    }
}

/// Replaces the task's workflow.
fn write(lab: &Lab, workflow: &Expression) {
    drop(fs::remove_dir_all(lab.path("task/workflow")));
    let inputs = lab.inputs.iter().map(|name| name.parse().unwrap()).collect();
    let text = Text { inputs: Some(inputs), expression: workflow.clone(), ..Text::default() };
    lisp::write(&lab.path("task"), &text);
}

/// The task that is in a laboratory, with a new storage that holds the literals only.
fn world(lab: &Lab) -> World {
    let world = World::load(lab);
    drop(fs::remove_dir_all(&world.storage));
    for name in LITERALS {
        let place = world.storage.join(name);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, name).unwrap();
    }
    world
}

/// Returns the contents of a workflow's outputs: nothing is kept, nothing is parallel.
fn reference(expression: &Expression) -> Vec<String> {
    let names: Vec<String> = (0..4).map(output_name).collect();
    let mut values: Vec<Vec<String>> = Vec::new();
    for node in expression.nodes() {
        let inputs = node.inputs.iter().flat_map(|it| values[it.node.index()].clone());
        let inputs: Vec<String> = inputs.collect();
        let slice = node.outputs.clone().unwrap_or_else(|| WrittenSlice::all(1));
        let output = |number: u8| value(&node.value, number.into(), &inputs);
        values.push(match node.kind.has_inputs() {
            true if node.kind == NodeKind::All => inputs,
            true => slice.resolve(&names).0.numbers().map(output).collect(),
            false => vec![node.value.to_string()],
        });
    }
    values.pop().unwrap()
}

#[test]
fn any_number_of_threads_agrees_with_a_sequential_evaluator() {
    try_on(60, |lab, workflow, _| {
        let expected = reference(workflow);
        let mut texts = HashSet::new();
        for jobs in [1, 2, 8] {
            let evaluated = world(lab).run(jobs);
            assert_eq!(evaluated.outputs, expected, "{jobs} threads");
            assert_eq!(evaluated.exit, Exit::Done);
            texts.insert(evaluated.text);
        }
        assert_eq!(texts.len(), 1, "the tree is printed in the same order");
    });
}

#[test]
fn each_call_is_executed_once_and_has_a_name_of_its_own() {
    try_on(60, |lab, _, _| {
        let evaluated = world(lab).run(4);
        let names: HashSet<&String> = evaluated.names.iter().collect();
        assert_eq!(evaluated.executed.len(), evaluated.different());
        assert_eq!(evaluated.executed.len(), names.len());
        assert_eq!(
            evaluated.tally.count(How::Executed),
            names.len(),
            "equal sub-workflows are one call"
        );
    });
}

#[test]
fn calls_that_turn_out_to_be_equal_are_executed_once_even_at_the_same_time() {
    let lab = generator::lab();
    for name in &lab.inputs {
        fs::write(lab.path("data").join(name), "all the same").unwrap();
    }
    let text = "Inputs: 'x', 'y'\n(c1 (c0 INPUT('x'))[0] (c0 INPUT('y'))[0])[0]";
    write(&lab, &lisp::text(text).expression);
    let (both, started) = (Mutex::new(0), Condvar::new());
    // The first execution gives the second, if there is to be one, time to begin.
    let evaluated = world(&lab).run_and(2, || {
        let mut both = both.lock().unwrap();
        *both += 1;
        started.notify_all();
        drop(
            started
                .wait_timeout_while(both, Duration::from_millis(300), |both| *both == 1)
                .unwrap(),
        );
    });
    assert_eq!(evaluated.executed.len(), 2, "{:?}", evaluated.executed);
}

/// A task with one call, which makes a hundred files.
fn many() -> Lab {
    let names: Vec<String> = (0..100).map(|n| format!("name-{n}")).collect();
    let lab = generator::lab().computation("many", "a", &names.join(" "), "exit 1");
    write(&lab, &lisp::text("(many INPUT('x'))[0]").expression);
    lab.commit_again()
}

/// Two runs execute the same call and publish it at the same time: each loses its lease.
fn twice_at_the_same_time(world: &World) {
    let (arrived, both) = (Mutex::new(0), Condvar::new());
    let meet = || {
        // An entry that the other run removes or moves meanwhile is no lease.
        for entry in walkdir::WalkDir::new(&world.storage).into_iter().flatten() {
            if entry.path().parent().is_some_and(|dir| dir.ends_with("running")) {
                drop(fs::remove_file(entry.path()));
            }
        }
        let mut arrived = arrived.lock().unwrap();
        *arrived += 1;
        both.notify_all();
        // If the other one never comes, that fails the test and does not hang it.
        let waited = both.wait_timeout_while(arrived, PATIENCE, |arrived| *arrived < 2);
        assert!(!waited.unwrap().1.timed_out());
    };
    let run = || {
        let evaluated = world.run_and(1, meet);
        assert_eq!(evaluated.executed.len(), 1, "{}", evaluated.text);
    };
    thread::scope(|scope| drop([scope.spawn(run), scope.spawn(run)]));
}

#[test]
fn one_of_two_runs_publishes_a_call_and_nothing_is_set_aside() {
    let lab = many();
    let world = world(&lab);
    for round in 0..20 {
        fs::write(lab.path("data/x"), format!("{round}")).unwrap();
        twice_at_the_same_time(&world);
    }
    assert!(!lab.storage().iter().any(|name| name.contains("/aside/")));
}

#[test]
fn one_of_two_runs_replaces_the_leftovers_and_nothing_is_lost() {
    let lab = many();
    let world = world(&lab);
    let first = world.run(1);
    for round in 1..=20 {
        let lost = lab.storage().into_iter().find(|name| name.contains("/17/")).unwrap();
        fs::remove_file(world.storage.join(lost)).unwrap();
        twice_at_the_same_time(&world);
        let again = world.run(1);
        assert_eq!((again.executed, again.outputs), (Vec::new(), first.outputs.clone()));
        let records = lab
            .storage()
            .into_iter()
            .filter(|name| name.contains("/aside/") && name.ends_with("record.json"));
        assert!(records.count() >= round, "what was replaced is kept");
    }
}

#[test]
fn a_second_run_executes_nothing() {
    try_on(60, |lab, _, random| {
        let world = world(lab);
        let first = world.run(2);
        let second = world.run(1 + random.below(4));
        assert_eq!(second.executed, []);
        assert_eq!((second.outputs, second.names), (first.outputs, first.names));
    });
}

#[test]
fn a_dry_run_does_not_change_the_storage() {
    try_on(40, |lab, _, random| {
        let world = world(lab);
        let nothing = lab.unchanged(|| world.look());
        assert_eq!(
            (nothing.exit, nothing.tally.count(How::Missing)),
            (Exit::Missing, nothing.tally.calls)
        );
        world.run(2);
        lose_something(&world, random);
        lab.unchanged(|| world.look());
    });
}

/// Removes or damages a file of the storage.
fn lose_something(world: &World, random: &mut Random) {
    let files: Vec<String> = files(&world.storage).into_keys().collect();
    let file = world.storage.join(&files[random.below(files.len())]);
    fs::remove_file(&file).unwrap();
    match random.below(3) {
        0 => fs::write(&file, "").unwrap(),
        1 => fs::write(&file, "something else").unwrap(),
        _ => {}
    }
    // Outputs without a record are believed at once if they are old, and waited for otherwise.
    if file.components().any(|part| part.as_os_str() == "record") {
        settle(&world.storage);
    }
}

#[test]
fn lost_files_are_made_again() {
    try_on(100, |lab, workflow, random| {
        let expected = reference(workflow);
        let world = world(lab);
        world.run(2);
        lose_something(&world, random);
        LITERALS.iter().for_each(|name| fs::write(world.storage.join(name), name).unwrap());
        assert_eq!(world.run(2).outputs, expected);
        let last = world.run(2);
        assert_eq!((last.outputs, last.executed), (expected, vec![]));
    });
}

#[test]
fn a_printed_workflow_loads_and_prints_the_same() {
    try_on(20, |lab, workflow, _| {
        let first = World::load(lab);
        let short = lisp::printed(&first.task, Sharing::Label);
        let long = lisp::printed(&first.task, Sharing::Repeat);
        assert_eq!(long, generator::printed(workflow, Sharing::Repeat));
        for text in [&short, &long] {
            write(lab, &lisp::text(text).expression);
            let second = World::load(lab);
            assert_eq!(&lisp::printed(&second.task, Sharing::Label), &short);
            assert_eq!(&lisp::printed(&second.task, Sharing::Repeat), &long);
        }
    });
}

#[test]
#[should_panic(expected = "of an executor")]
fn a_panic_ends_an_evaluation_and_does_not_hang() {
    let lab = generator::lab();
    write(&lab, &lisp::text("(c0 (c0 INPUT('x'))[0])[0]").expression);
    // Unlike `panic!`, this prints nothing.
    world(&lab).run_and(2, || std::panic::resume_unwind(Box::new("of an executor")));
}
