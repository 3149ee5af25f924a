//! A chain of ten thousand calls: nothing may take stack, or time, in its depth squared.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use compeval::evaluate::How;
use compeval::expression::Sharing;
use compeval::session::Exit;

use crate::inside::{World, value};
use crate::lab::Lab;
use crate::lisp;
use crate::program;
use crate::repository;

const CALLS: usize = 10_000;

/// Each call stands in a directory of its own and reads the next through a link.
fn chain() -> Lab {
    let mut lab = Lab::empty()
        .computation("next", "a", "b", "exit 1")
        .file("inputs", "x\n")
        .data("x", "x")
        .commit();
    lab.inputs.push("x".to_owned());
    let dir = |number: usize| lab.path("task/chain").join(number.to_string());
    let write = |dir: &Path, kind: &str, value: &str| {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("kind"), kind).unwrap();
        fs::write(dir.join("value"), value).unwrap();
    };
    for number in 1..=CALLS {
        write(&dir(number), "computation", "next");
        fs::create_dir(dir(number).join("inputs")).unwrap();
        symlink(format!("../../{}", number - 1), dir(number).join("inputs/00-before")).unwrap();
    }
    write(&dir(0), "input", "x");
    lab.link("workflow", &format!("chain/{CALLS}"))
}

#[test]
fn a_chain_of_ten_thousand_calls_is_loaded_planned_printed_and_evaluated() {
    let lab = chain();
    let world = World::load(&lab);
    assert_eq!(world.plan.calls().len(), CALLS);

    let text = lisp::printed(&world.task, Sharing::Repeat);
    assert_eq!(text.matches('(').count(), CALLS + 1);

    let missing = world.look();
    assert_eq!((missing.exit, missing.tally.count(How::Missing)), (Exit::Missing, CALLS));
    let evaluated = world.run(2);
    let expected = (0..CALLS).fold("x".to_owned(), |input, _| value("next", 0, &[input]));
    assert_eq!((evaluated.exit, evaluated.outputs), (Exit::Done, vec![expected]));
    assert_eq!(evaluated.executed.len(), CALLS);

    let ran = lab.ce_run(&["-n"]).exit(0).says("10000 calls: 10000 reused");
    assert_eq!(ran.stdout.lines().filter(|line| line.contains("next (")).count(), CALLS);
    lab.run("ce-sym", &["--share"]).exit(0);
}

#[test]
fn a_chain_of_ten_thousand_directories_in_a_commit_takes_memory_for_each_only_once() {
    let lab = Lab::empty()
        .computation("next", "a", "b", "exit 1")
        .file("inputs", "x\n")
        .file("workflow/kind", "input\n")
        .file("workflow/value", "x\n")
        .commit();
    let leaf = lab.git("task", &["rev-parse", "HEAD:workflow"]);
    let files = [("kind", "computation\n"), ("value", "next\n")];
    let workflow = repository::nest(&lab.path("task"), &leaf, &files, "inputs/00-before", CALLS);
    let tree = lab.git("task", &["rev-parse", "HEAD^{tree}"]);
    let root = repository::replace(&lab.path("task"), &tree, "workflow", &workflow);
    let commit = lab.git("task", &["commit-tree", "-m", "deep", &root]);
    // With all paths from the top it would take gigabytes.
    let limited = ["sh", "-c", "ulimit -v 1000000; exec \"$@\"", "sh"];
    let sym = lab.finish(&mut program::through(
        &limited,
        lab.command("ce-sym").args(["--share", "--at", &commit]),
    ));
    assert_eq!(sym.exit(0).stdout.matches("(next").count(), CALLS);
}
