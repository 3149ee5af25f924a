//! Exclusive calls: nothing else of the run is executed at the same time.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::thread;

use compeval::evaluate::How;
use compeval::executor::{Completion, Ended, Executor, Invocation, Usage};
use compeval::session::Exit;
use jiff::Timestamp;

use super::beside;
use crate::inside::{World, execute};
use crate::lab::{Lab, Library};

/// A task with this number of independent calls, and one that reads all of them. Every third one is exclusive.
fn many(count: usize) -> Lab {
    let mut text = "Inputs: 'x'\n(all".to_owned();
    for number in 0..count {
        text.extend([" (c", &number.to_string(), " INPUT('x'))[0]"]);
    }
    let names: Vec<String> = (0..count).map(|number| format!("i{number}")).collect();
    let mut lab = Lab::task(&(text + ")[0]"));
    lab = lab.computation(
        "all",
        &names.join(" "),
        "y",
        r#"cat "$1" >"$21""#.replace("21", &format!("{{{}}}", count + 1)).as_str(),
    );
    for number in 0..count {
        // Some work that a processor is needed for.
        lab =
            lab.noting(&format!("c{number}"), "for n in 1 2 3 4 5; do cat \"$0\" >/dev/null; done");
        if number % 3 == 0 {
            lab = lab.file(&format!("computations/c{number}/resources"), "exclusive\n");
        }
    }
    // Commits of the task make no other computations.
    lab.commit_with(Library::Submodule)
}

#[test]
fn an_exclusive_call_is_alone_in_its_run() {
    let lab = many(18);
    lab.finish(&mut lab.noted(&["-j6"])).exit(0).says("19 calls: 19 computed");
    let beside = beside(&lab.notes());
    for number in 0..18 {
        let others = &beside[&format!("c{number}")];
        assert!(number % 3 != 0 || others.is_empty(), "c{number} was executed beside {others:?}");
    }
}

/// Executes in the threads that submit, and notes which calls are in progress at the same time.
#[derive(Default)]
struct Watching {
    running: Mutex<Vec<bool>>,
    /// The greatest number at the same time.
    most: Mutex<usize>,
}

impl Executor for Watching {
    fn submit(&self, invocation: Invocation, completion: Completion) {
        let mut running = self.running.lock().unwrap();
        running.push(invocation.exclusive);
        let is_alone = running.len() == 1 || !running.contains(&true);
        let mut most = self.most.lock().unwrap();
        *most = running.len().max(*most);
        drop((running, most));
        let start = Timestamp::now();
        thread::yield_now();
        execute(&invocation);
        let mut running = self.running.lock().unwrap();
        let at = running.iter().position(|it| *it == invocation.exclusive).unwrap();
        running.swap_remove(at);
        drop(running);
        completion.deliver(Ok(match is_alone {
            true => Ended::Done(Usage::since(start)),
            false => Ended::Lost("an exclusive call was not alone".to_owned()),
        }));
    }

    fn capacity(&self) -> NonZeroUsize {
        NonZeroUsize::new(6).unwrap()
    }
}

#[test]
fn in_any_order_all_calls_run_and_exclusive_ones_run_alone() {
    let lab = many(18);
    for _ in 0..20 {
        let world = World::load(&lab);
        let evaluated = world.evaluate(Some(&Watching::default()), 6, 0);
        assert_eq!(
            (evaluated.exit, evaluated.tally.count(How::Executed)),
            (Exit::Done, 19),
            "{}",
            evaluated.text
        );
        std::fs::remove_dir_all(&world.storage).unwrap();
    }
}

#[test]
fn other_resources_execute_nothing() {
    let lab = many(3);
    lab.ce_run(&[]).exit(0).says("4 calls: 4 computed");
    lab.called();
    let lab = lab.file("resources", "c1 exclusive\n").file("workflow/resources", "time 1h\n");
    // Uncommitted parts of them are no part of the task.
    lab.ce_run(&[]).exit(0).says("4 calls: 4 reused").called(vec![]);
    let lab = lab.commit_again();
    lab.ce_run(&[]).exit(0).says("4 calls: 4 reused").called(vec![]);
}

#[test]
fn a_wrong_amount_is_an_error_of_the_call_that_is_executed() {
    let lab = many(3).data("x", "many\n");
    lab.ce_run(&[]).exit(0);
    let lab = lab.file("resources", "c1 cpus {x}\n").commit_again();
    lab.called();
    lab.ce_run(&[]).exit(0).called(vec![]);
    let lab = lab.data("x", "more\n");
    let ran = lab.ce_run(&[]).exit(1);
    let ran = ran.says("resources:1: \"more\" is not a number of cpus").says("cpus 4");
    ran.says("4 calls: 2 computed, 1 failed, 1 blocked").called(vec!["c0", "c2"]);
}
