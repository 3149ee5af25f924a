//! Network file systems: injected answers, and a real GlusterFS with two hosts.
//!
//! A longer form makes more rounds: `CE_ROUNDS=20 cargo test --test suite network`; with the caches of GlusterFS: `CE_CACHES=1`.

mod beside;
mod faults;
mod gluster;
mod host;

use std::fs;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use self::gluster::Gluster;
use self::host::{Host, needs_mounts};
use crate::lab::Lab;
use crate::program::{Ran, Running};
use crate::sweeps::sweep;

/// The number of points, with two calls each.
const POINTS: usize = 12;

/// Returns the number of rounds of a test.
fn rounds(few: usize) -> usize {
    std::env::var("CE_ROUNDS").map_or(few, |text| text.parse().unwrap())
}

/// A sweep. `first` makes a directory with two files that are equal, and different in each execution; `second` reads it, and
/// refuses a mixture.
fn lab() -> Lab {
    let points: String = (1..=POINTS).map(|point| format!("{point}\n")).collect();
    let first = r#"i=$(cat "$1"); echo "first $i" >>"$LAB_CALLS"; sleep 0.05
        seq "$i" >"$2/seq"; ln -s seq "$2/soft"; mkdir "$2/sub"
        od -An -N8 -tx8 /dev/urandom >"$2/sub/one"; cat "$2/sub/one" >"$2/other""#;
    let second = r#"i=$(wc -l <"$1/soft"); echo "second $i" >>"$LAB_CALLS"
        cmp "$1/sub/one" "$1/other" && echo $((i * i)) >"$2""#;
    sweep("", &[("factors/00-i", &points)])
        .node("inputs/00-body/", "computation", "second")
        .call("inputs/00-body/inputs/00-tree/", "first", &["i"])
        .computation("first", "i", "tree/", first)
        .computation("second", "tree/", "square", second)
        .commit()
}

/// The options of a run on a host.
fn run(host: &Host<'_>, options: &[&str], storage: &str) -> Running {
    let task = host.task();
    let all = [&["-q", "--task", &task, "-j2"], options].concat();
    Running::start(&mut host.command("ce-run", &all, storage))
}

/// The program that was started on a host: `nsenter` waits for it.
fn inside(running: &Running) -> Pid {
    let children = format!("/proc/{0}/task/{0}/children", running.pid.as_raw_nonzero());
    loop {
        let text = fs::read_to_string(&children).unwrap();
        match text.trim().parse().ok().and_then(Pid::from_raw) {
            Some(pid) => return pid,
            None => thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// It ended with 0, and printed the name of the right table.
#[track_caller]
fn is_right(gluster: &Gluster<'_>, ran: &Ran<'_>, what: &str) {
    assert_eq!(ran.status.code(), Some(0), "{what}\n{}\n{}", ran.stdout, ran.stderr);
    let (_, name) = ran.stdout.trim().split_once("shared/").unwrap();
    let table = fs::read_to_string(gluster.on_server(name)).unwrap();
    let row = |i| format!("{{\"i\":{i},\"square\":{}}}\n", i * i);
    assert_eq!(table, (1..=POINTS).map(row).collect::<String>(), "{what}");
}

/// Everything in a storage is as its records say.
#[track_caller]
fn is_whole(gluster: &Gluster<'_>, host: &Host<'_>, storage: &str) {
    gluster.lab.finish(&mut host.command("ce", &["verify", "-q"], storage)).exit(0);
}

/// The calls that were executed, and how often, if that is not once.
fn executions(lab: &Lab, storage: &str) -> (usize, Vec<String>) {
    let text = fs::read_to_string(lab.path(&format!("calls-{storage}"))).unwrap_or_default();
    let mut calls: Vec<&str> = text.lines().collect();
    calls.sort_unstable();
    let twice = calls.windows(2).filter(|two| two[0] == two[1]).map(|two| two[0].to_owned());
    (calls.len(), twice.collect())
}

/// Waits until this number of calls have begun.
fn await_calls(lab: &Lab, storage: &str, calls: usize) {
    while executions(lab, storage).0 < calls {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn two_runs_at_once_on_a_new_storage_make_each_call_once() {
    let lab = lab();
    let gluster = Gluster::start(&lab);
    let hosts = ["a", "b"].map(|name| gluster.host(name));
    for round in 0..rounds(3) {
        let storage = format!("new{round}");
        let runs = hosts.each_ref().map(|host| run(host, &[], &storage));
        for (run, name) in runs.into_iter().zip(["a", "b"]) {
            let ran = Ran::new(&lab, run.output());
            is_right(&gluster, &ran, &format!("round {round} on {name}"));
        }
        assert_eq!(executions(&lab, &storage), (2 * POINTS, vec![]), "round {round}");
        is_whole(&gluster, &hosts[0], &storage);
    }
}

#[test]
fn a_killed_run_leaves_a_storage_that_another_host_can_use() {
    let lab = lab();
    let gluster = Gluster::start(&lab);
    let hosts = ["a", "b"].map(|name| gluster.host(name));
    for round in 0..rounds(2) {
        let storage = format!("kill{round}");
        let start = |host: &Host<'_>| {
            let task = host.task();
            let options = ["-q", "--task", &task, "-j2"];
            // A silent run is soon taken for dead.
            Running::start(host.command("ce-run", &options, &storage).env("CE_SILENCE", "2"))
        };
        let killed = start(&hosts[round % 2]);
        let survivor = start(&hosts[1 - round % 2]);
        // Another moment in each round. The other run may have executed all that is left by then.
        await_calls(&lab, &storage, round * 7 % (2 * POINTS - 6) + 1);
        let _over = kill_process(inside(&killed), Signal::KILL);
        drop(killed.output());
        is_right(&gluster, &Ran::new(&lab, survivor.output()), &format!("round {round}"));
        let again = start(&hosts[round % 2]);
        is_right(&gluster, &Ran::new(&lab, again.output()), &format!("again in round {round}"));
        is_whole(&gluster, &hosts[0], &storage);
    }
}

#[test]
fn a_server_that_is_started_again_is_waited_for() {
    let lab = lab();
    let mut gluster = Gluster::start(&lab);
    let hosts = ["a", "b"].map(|name| gluster.host(name));
    for round in 0..rounds(1) {
        let storage = format!("restart{round}");
        let runs = hosts.each_ref().map(|host| run(host, &[], &storage));
        await_calls(&lab, &storage, round * 7 % (2 * POINTS - 6) + 4);
        gluster.kill_server();
        thread::sleep(Duration::from_secs(2));
        gluster.restart_server();
        for run in runs {
            is_right(&gluster, &Ran::new(&lab, run.output()), &format!("round {round}"));
        }
        is_whole(&gluster, &hosts[0], &storage);
    }
}

/// One message, and not one for each call; finished results are there when the storage is back.
#[test]
fn a_server_that_stays_away_ends_a_run_with_one_message() {
    let lab = lab();
    let mut gluster = Gluster::start(&lab);
    let host = gluster.host("a");
    let task = host.task();
    let mut command = host.command("ce-run", &["-q", "-j2", "--task", &task], "away");
    let run = Running::start(command.env("CE_PATIENCE", "2"));
    await_calls(&lab, "away", 6);
    gluster.kill_server();
    let ran = Ran::new(&lab, run.output()).exit(5);
    assert_eq!(ran.stderr.matches("has not answered for").count(), 1, "{}", ran.stderr);
    assert!(!ran.stderr.contains("more calls failed"), "{}", ran.stderr);
    gluster.restart_server();
    let again = self::run(&host, &[], "away");
    is_right(&gluster, &Ran::new(&lab, again.output()), "again");
}

#[test]
fn a_worker_on_another_host_waits_for_the_storage_and_serves_it() {
    let lab = lab();
    let gluster = Gluster::start(&lab);
    let [runner, other] = ["a", "b"].map(|name| gluster.host(name));
    for round in 0..rounds(1) {
        let storage = format!("workers{round}");
        let options = ["worker", "--no-isolate", "-j2", "--idle", "20s"];
        let worker = Running::start(&mut other.command("ce", &options, &storage));
        let run = run(&runner, &["--on", "workers"], &storage);
        is_right(&gluster, &Ran::new(&lab, run.output()), &format!("round {round}"));
        assert_eq!(executions(&lab, &storage), (2 * POINTS, vec![]), "round {round}");
        kill_process(inside(&worker), Signal::TERM).unwrap();
        Ran::new(&lab, worker.output()).exit(143);
        is_whole(&gluster, &runner, &storage);
    }
}

/// Its hard links are not the same files under other names. Here `sshfs` talks to the server of `sftp` itself.
#[test]
fn runs_and_workers_warn_if_hard_links_do_not_support_leases() {
    let server = "/usr/lib/openssh/sftp-server";
    needs_mounts(&["sshfs", server]);
    let lab = lab();
    let place = tempfile::tempdir().unwrap();
    let mount = r#"
        printf '#!/bin/sh\nexec %s\n' "$2" >"$1/ssh"; chmod +x "$1/ssh"; mkdir "$1/export"
        exec sshfs -f -o "ssh_command=$1/ssh" "none:$1/export" "$3""#;
    fs::create_dir(lab.path("shared")).unwrap();
    let arguments = [mount, "mount", place.path().to_str().unwrap(), server];
    let host = Host::start(&lab, "a", place.path(), &arguments);
    let warning = "cannot be used for leases";
    let first = Ran::new(&lab, run(&host, &[], "links").output()).exit(0).says(warning);
    assert_eq!(first.stderr.matches(warning).count(), 1, "{}", first.stderr);
    let nothing_to_do = Ran::new(&lab, run(&host, &[], "links").output()).exit(0);
    assert!(!nothing_to_do.stderr.contains(warning), "{}", nothing_to_do.stderr);
    let mut worker = host.command("ce", &["worker", "--no-isolate", "--idle", "1ms"], "links");
    lab.finish(&mut worker).exit(0).says(warning);
}
