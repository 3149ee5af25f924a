//! Collections beside runs on a real GlusterFS, which may show names and contents that were so a moment ago.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use super::gluster::Gluster;
use super::host::Host;
use super::{is_whole, rounds};
use crate::lab::{Lab, files};
use crate::sweeps::sweep;

/// The number of points, with two calls each: a run is short, so many begin while something is taken away.
const POINTS: usize = 4;

/// A sweep of isolated calls, which run from exports that all runs share. Each says in `calls/log` that it is executed.
fn lab() -> Lab {
    let points: String = (1..=POINTS).map(|point| format!("{point}\n")).collect();
    let lab = sweep("x", &[("factors/00-i", &points)]);
    let calls = lab.path("calls");
    fs::create_dir(&calls).unwrap();
    let note = |call: &str| format!("echo \"{call} $i\" >>{}/log", calls.display());
    let first = format!(r#"i=$(cat "$1"); {}; cat "$1" "$2" >"$3/pair""#, note("first"));
    let second = format!(r#"i=$(head -1 "$1/pair"); {}; wc -l <"$1/pair" >"$2""#, note("second"));
    let access = format!("write {}\n", calls.display());
    lab.node("inputs/00-body/", "computation", "second")
        .call("inputs/00-body/inputs/00-tree/", "first", &["i", "x"])
        .computation("first", "i x", "tree/", &first)
        .computation("second", "tree/", "lines", &second)
        .file("computations/first/access", &access)
        .file("computations/second/access", &access)
        .isolated()
        .commit()
}

/// Runs on a host while another one, or the same, collects all that is not in use, again and again. Each run executes all
/// calls, from exports that the one before it has left, and leaves garbage.
fn runs_beside_collections(gluster: &Gluster<'_>, runner: &Host<'_>, collector: &Host<'_>) {
    let (lab, task) = (gluster.lab, runner.task());
    let run = |round: usize| {
        let x = lab.path(&format!("data/x{round}"));
        fs::write(&x, format!("{round}\n")).unwrap();
        let mut command = runner.command("ce-run", &["-q", "-j2", "--task", &task], "beside");
        lab.finish(command.arg(x))
    };
    run(0).exit(0);
    fs::remove_file(lab.path("calls/log")).unwrap();
    let (is_over, collections) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let collector = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let options = ["gc", "--delete", "-q", "--no-keep", "--older", "0s"];
                lab.finish(&mut collector.command("ce", &options, "beside")).exit(0);
                collections.fetch_add(1, Ordering::Relaxed);
            }
        });
        let rounds = (1..=rounds(4)).map(|round| {
            let ran = run(round);
            let log = lab.path("calls/log");
            let calls = fs::read_to_string(&log).unwrap_or_default();
            drop(fs::remove_file(log));
            (ran, calls)
        });
        let rounds: Vec<_> = rounds.collect();
        is_over.store(true, Ordering::Relaxed);
        let count = collections.load(Ordering::Relaxed);
        collector.join().unwrap();
        assert!(count > 0, "no collection beside {} runs", rounds.len());
        for (round, (ran, calls)) in rounds.iter().enumerate() {
            let what =
                format!("round {round}, {count} collections\n{}\n{}", ran.stdout, ran.stderr);
            assert_eq!(ran.status.code(), Some(0), "{what}");
            let once: BTreeSet<&str> = calls.lines().collect();
            assert_eq!((once.len(), calls.lines().count()), (2 * POINTS, 2 * POINTS), "{what}");
        }
    });
    is_whole(gluster, runner, "beside");
}

#[test]
fn collections_on_another_host_take_nothing_that_a_run_needs() {
    let lab = lab();
    let gluster = Gluster::start(&lab);
    let [runner, collector] = ["a", "b"].map(|name| gluster.host(name));
    runs_beside_collections(&gluster, &runner, &collector);
}

#[test]
fn collections_on_the_same_host_take_nothing_that_a_run_needs() {
    let lab = lab();
    let gluster = Gluster::start(&lab);
    let host = gluster.host("a");
    runs_beside_collections(&gluster, &host, &host);
}

/// Each run of a host needs the output of a call that it had made before, and that a collection on the other host has made away
/// or is making away.
#[test]
fn a_run_makes_again_a_result_that_another_host_just_evicted() {
    let lab =
        Lab::task("Inputs: 'x', 'y', 'z'\n(join (mul INPUT('x') INPUT('y'))[0] INPUT('z'))[0]")
            .computation("mul", "a b", "c", r#"cat "$1" "$2" >"$3""#)
            .computation("join", "a b", "c", r#"cat "$1" "$2" >"$3""#)
            .data("x", "1\n")
            .data("y", "2\n")
            .commit();
    super::super::shared::repository(&lab, "results.git");
    let gluster = Gluster::start(&lab);
    let [runner, collector] = ["a", "b"].map(|name| gluster.host(name));
    let (task, results) = (runner.task(), lab.path("results.git"));
    let run = |round: usize| {
        let z = lab.path(&format!("data/z{round}"));
        fs::write(&z, format!("{round}\n")).unwrap();
        let mut command = runner.command("ce-run", &["--task", &task], "away");
        lab.finish(command.args([lab.path("data/x"), lab.path("data/y"), z])).exit(0);
    };
    run(0);
    lab.finish(runner.command("ce", &["push", "-q"], "away").arg(&results)).exit(0);
    let published = ["gc", "--delete", "-q", "--published", results.to_str().unwrap()];
    for round in 1..=rounds(4) {
        lab.finish(&mut collector.command("ce", &published, "away")).exit(0);
        // The view that the host of the run has of it is as old as it can be.
        run(round);
    }
    is_whole(&gluster, &runner, "away");
}

/// A file of this file system may have twelve links, and a lease is one.
#[test]
fn a_collection_has_more_leases_than_a_file_may_have_links() {
    let points: String = (1..=16).map(|point| format!("{point}\n")).collect();
    let lab = sweep("", &[("factors/00-i", &points)]);
    let lab = lab.call("inputs/00-body/", "mul", &["i", "i"]).commit();
    let gluster = Gluster::start(&lab);
    let host = gluster.host("a");
    let task = host.task();
    let run = ["-q", "-j2", "--task", &task];
    lab.finish(&mut host.command("ce-run", &run, "many")).exit(0);
    let gc = ["gc", "--delete", "-q", "--no-keep", "--older", "0s"];
    lab.finish(&mut host.command("ce", &gc, "many")).exit(0);
    let left = files(&gluster.on_server("many"));
    let left: Vec<&String> = left.keys().filter(|name| name.contains("/00/")).collect();
    assert!(left.is_empty(), "{left:?}");
    is_whole(&gluster, &host, "many");
}
