//! The protocol of publishing as a model: every interleaving of two or three runs; each may die at any step, or look dead
//! and go on; whether or not they respect leases. A reader looks in between, and somebody removes the directory of a run
//! that only looks dead.
//!
//! One step of the model is one operation on the file system, in the order in which
//! `crates/storage/src/protocol/{call,stage,open,lease}.rs` do them. A call has two outputs, and an execution
//! is known by a number, so that a mixture of two executions shows. A longer form begins with three
//! runs everywhere: `CE_STATES=all cargo test --test suite protocol`.

mod explore;
mod lease;
mod queue;
mod watchers;
mod world;

use explore::{NOTHING, explore};
use lease::Lease;
use world::{May, Storage};

use crate::harness;

/// The storages from which runs begin: nothing, a result with a lost or damaged output,
/// and an output without a record.
fn beginnings() -> Vec<Storage> {
    let old = 3;
    let staged = vec![[false; 2]; 4];
    let storage = |record, places| Storage { record, places, staged: staged.clone(), lease: None };
    vec![
        storage(None, [None, None]),
        storage(Some([old; 2]), [None, Some(old)]),
        storage(Some([old; 2]), [Some(9), Some(old)]),
        storage(None, [None, Some(old)]),
    ]
}

/// Visits every state from every beginning; returns how many there are.
fn explore_all(beginnings: &[Storage], runs: usize, lease: Lease, may: May) -> usize {
    let states = beginnings.iter().map(|storage| explore(storage, runs, lease, may)).sum();
    let told = format!("{states} states of {runs} runs, leases {lease:?}, that may {may:?}\n");
    harness::print(&told);
    states
}

#[test]
fn no_interleaving_of_two_runs_that_may_die_mixes_two_executions() {
    let states = explore_all(&beginnings(), 2, Lease::Ignored, May { die: 2, ..NOTHING });
    assert!(states > 1_000, "{states} states were visited");
}

#[test]
fn no_interleaving_of_three_runs_mixes_two_executions() {
    let states = explore_all(&beginnings(), 3, Lease::Ignored, May { die: 1, ..NOTHING });
    assert!(states > 10_000, "{states} states were visited");
}

#[test]
fn reported_outputs_are_in_place_and_readers_find_published_ones() {
    let die = May { die: 2, read: 2, ..NOTHING };
    let states = explore_all(&beginnings(), 2, Lease::Ignored, die);
    assert!(states > 10_000, "{states} states were visited");
    let look_dead = May { die: 1, look_dead: 1, read: 1, ..NOTHING };
    let states = explore_all(&beginnings(), 2, Lease::Wanted, look_dead);
    assert!(states > 10_000, "{states} states were visited");
}

#[test]
fn a_run_without_its_directory_reports_no_missing_outputs() {
    for lease in [Lease::Ignored, Lease::Wanted] {
        let may = May { die: 1, look_dead: 1, read: 1, clean: 1, ..NOTHING };
        let states = explore_all(&beginnings(), 2, lease, may);
        assert!(states > 10_000, "{states} states were visited");
    }
}

#[test]
fn runs_that_live_and_respect_leases_execute_a_call_once() {
    for runs in 1..=3 {
        // One that gives up leaves the call to the others.
        let may = May { give_up: runs - 1, ..NOTHING };
        let states = explore_all(&beginnings(), runs, Lease::Wanted, may);
        assert!(states > 30 * runs, "{states} states were visited");
    }
}

#[test]
fn lost_and_stale_leases_neither_mix_executions_nor_block_a_run() {
    // A run that was before these has died with its lease, or nobody has.
    let left_behind = |storage: &Storage| Storage { lease: Some(3), ..storage.clone() };
    let left_behind: Vec<Storage> = beginnings().iter().map(left_behind).collect();
    let beginnings = [beginnings(), left_behind].concat();
    let states =
        explore_all(&beginnings, 2, Lease::Wanted, May { die: 2, look_dead: 2, ..NOTHING });
    assert!(states > 10_000, "{states} states were visited");
    // Three runs have millions of states; most is seen from the empty storage.
    let three = if std::env::var_os("CE_STATES").is_some() { beginnings.len() } else { 1 };
    for may in [May { die: 1, ..NOTHING }, May { look_dead: 1, ..NOTHING }] {
        let states = explore_all(&beginnings[..three], 3, Lease::Wanted, may);
        assert!(states > 10_000, "{states} states were visited");
    }
}
