//! Ranges of memory and time: what meets its limit is executed again with twice as much, up to the end of the range.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, kill_process_group};
use serde_json::Value;

use crate::fifo::{Fifo, Never};
use crate::isolation;
use crate::lab::Lab;
use crate::program::{Running, through};

/// Holds 25 MB until it is ended, unless it has 64 MiB.
const HOG: &str =
    r#"x=$(head -c 25000000 /dev/zero | tr '\0' x); [ "$CE_MEMORY" -ge 67108864 ] || sleep 600"#;

/// A task with one call that asks for this and executes this.
fn lab(resources: &str, script: &str) -> Lab {
    let script = script.replace('\n', "\n    ");
    Lab::empty().one_text(&format!(
        "call: s -> y
    #CE resources {resources}
    [ -z \"${{LAB_LOG-}}\" ] || echo call >>\"$LAB_LOG\"
    {script}
(call 's')[0]
"
    ))
}

/// The records of calls in the storage.
fn records(lab: &Lab, part: &str) -> Vec<Value> {
    let names = lab.storage().into_iter().filter(|it| it.starts_with("c_") && it.contains(part));
    names
        .filter(|it| it.ends_with(".json") || part == "/record/")
        .map(|name| serde_json::from_str(&lab.stored(&name)).unwrap())
        .collect()
}

/// The limits that have ended earlier attempts of the only call.
fn attempts(lab: &Lab) -> Vec<String> {
    let records = records(lab, "/record/");
    let attempts = &records[0]["origin"]["executed"]["attempts"];
    let attempts = attempts.as_array().into_iter().flatten();
    attempts.map(|it| it["limit"].as_str().unwrap().to_owned()).collect()
}

/// A run on a host where no control group can be made.
fn without_groups(lab: &Lab, options: &[&str]) -> Command {
    let hide = "mount -t tmpfs none /sys/fs/cgroup && exec \"$@\"";
    let starter = ["unshare", "-m", "--propagation", "private", "sh", "-c", hide, "sh"];
    through(&starter, &lab.evaluation(options))
}

#[test]
fn a_call_has_twice_the_memory_until_that_suffices() {
    for is_isolated in [false, true] {
        if is_isolated && !isolation::is_possible() {
            return;
        }
        for has_groups in [true, false] {
            if !has_groups && !isolation::is_root() {
                continue;
            }
            let lab = lab("memory 16M..256M", &format!("{HOG}\necho $CE_MEMORY > $out_y"));
            let lab = if is_isolated { lab.isolated() } else { lab }.commit();
            let mut run = if has_groups { lab.evaluation(&[]) } else { without_groups(&lab, &[]) };
            let ran = lab.finish(&mut run).exit(0);
            let ran = ran.says(
                "call (TASK): it used more than its 16.0 MiB of memory; the next attempt has memory 32M\n",
            );
            ran.says(
                "call (TASK): it used more than its 32.0 MiB of memory; the next attempt has memory 64M\n",
            );
            assert_eq!(lab.output(), "67108864\n");
            assert_eq!(attempts(&lab), ["memory 16M", "memory 32M"]);
            assert!(records(&lab, "/failed/").is_empty());
            lab.called();
            lab.ce_run(&[]).exit(0).called(vec![]);
            let log = lab.run("ce", &["log", "--resources", "../storage"]).exit(0);
            assert!(log.stdout.contains("call             1         3     -   "), "{}", log.stdout);
            assert!(log.stdout.contains("  16M..256M  "), "{}", log.stdout);
        }
    }
}

#[test]
fn files_in_memory_count() {
    if !isolation::is_possible() || !isolation::is_root() {
        return;
    }
    for has_groups in [true, false] {
        let script = r#"head -c 40000000 /dev/zero > /dev/shm/file; [ "$CE_MEMORY" -ge 67108864 ] || sleep 600; echo > $out_y"#;
        let lab = lab("memory 16M..64M", script).isolated().commit();
        let mut run = if has_groups { lab.evaluation(&[]) } else { without_groups(&lab, &[]) };
        lab.finish(&mut run).exit(0);
        assert_eq!(attempts(&lab), ["memory 16M", "memory 32M"]);
    }
}

/// The parent goes on without its child, and ends as if nothing had happened.
#[test]
fn nothing_is_published_of_a_call_whose_child_was_ended() {
    for status in [0, 1] {
        let script = format!(
            "( {HOG} )\necho $CE_MEMORY > $out_y\n[ $CE_MEMORY -ge 67108864 ] || exit {status}"
        );
        let lab = lab("memory 32M..64M", &script).commit();
        lab.ce_run(&[]).exit(0);
        assert_eq!(lab.output(), "67108864\n");
        assert_eq!(attempts(&lab), ["memory 32M"]);
    }
}

#[test]
fn a_call_that_meets_the_end_of_its_range_fails_and_says_so() {
    let lab = lab("memory 8M..16M", HOG).commit();
    let ran = lab.ce_run(&["--retry", "3"]).exit(1);
    let ran = ran.says("failed: it used more than its 16.0 MiB of memory\n");
    ran.says("try: let it ask for more, such as memory 16M..64M").called(vec!["call"; 2]);
    // A failure is tried again by the next run, with as much as there may be.
    lab.ce_run(&[]).exit(1).called(vec!["call"]);
}

/// What an isolated call has used counts for other commits with the same computation, too.
#[test]
fn a_failure_is_a_row_only_at_the_end_of_the_range() {
    if !isolation::is_possible() {
        return;
    }
    let lab = lab("cpus 1", HOG).file("resources", "call memory 8M..16M\n");
    let text = fs::read_to_string(lab.path("task/workflow.ce")).unwrap();
    let sweep = "SWEEP((call s) :over s 1 :allow-failed)";
    let lab = lab.one_text(&text.replace("(call 's')[0]", sweep)).isolated().commit();
    let ran = lab.ce_run(&[]).exit(0).says("it used more than its 8.0 MiB of memory; the next");
    ran.says("failed: it used more than its 16.0 MiB of memory\n");
    assert!(lab.output().contains("failed"), "{}", lab.output());
    let ran =
        lab.ce_run(&[]).exit(0).says("failed before: it used more than its 16.0 MiB of memory");
    assert!(!ran.stderr.contains("the next attempt"), "{}", ran.stderr);
    // The range is no part of the call. With a greater end there is another attempt.
    let lab = lab.file("resources", "call memory 8M..32M\n").commit_again();
    let ran = lab.ce_run(&[]).exit(0).says("failed: it used more than its 32.0 MiB of memory\n");
    assert!(!ran.stderr.contains("the next attempt"), "{}", ran.stderr);
}

#[test]
fn a_call_has_twice_the_time_until_the_end_of_the_range() {
    let lab_of_time = |script| lab("time 100ms..400ms", script);
    let lab = lab_of_time("sleep 600").commit();
    let ran = lab
        .ce_run(&[])
        .exit(1)
        .says("call (TASK): it timed out after 0.1 s; the next attempt has time 200ms\n");
    let ran = ran.says("failed: it timed out after 0.4 s\n").called(vec!["call"; 3]);
    ran.says("try: let it ask for more, such as time 400ms..1600ms");
    // What it makes when it is asked to end is not whole.
    let script = "trap 'echo part >$out_y; exit 0' TERM; sleep 600 & wait $!";
    let ending = lab_of_time(script).commit();
    ending.ce_run(&[]).exit(1).says("failed: it timed out after 0.4 s\n");
    // The limit of the run is no range.
    let lab = lab.file("note", "").commit_again();
    lab.ce_run(&["--timeout", "50ms"])
        .exit(1)
        .says("it timed out after 0.05 s")
        .called(vec!["call"]);
}

#[test]
fn a_run_that_is_killed_between_attempts_is_continued_with_the_next_one() {
    let meet = r#"if [ "$CE_MEMORY" = 33554432 ] && [ "${LAB_MEET-}" ]; then echo here >"$LAB_MEET"; cat "$LAB_WAIT"; fi"#;
    let lab = lab("memory 16M..64M", &format!("{meet}\n{HOG}\necho $CE_MEMORY > $out_y")).commit();
    let [meet, wait] = ["meet", "wait"].map(|it| lab.path(it));
    let (fifo, never) = (Fifo::new(&meet), Never::new(wait.clone()));
    let mut run = lab.evaluation(&[]);
    run.env("LAB_MEET", meet).env("LAB_WAIT", wait).process_group(0);
    let run = Running::start(&mut run);
    assert_eq!(fifo.line(), "here");
    kill_process_group(run.pid, Signal::KILL).unwrap();
    run.output();
    drop(never);
    assert_eq!(records(&lab, "/failed/")[0]["attempts"][0]["limit"], "memory 16M");
    lab.called();
    lab.ce_run(&[]).exit(0).called(vec!["call"; 2]);
    assert_eq!(attempts(&lab), ["memory 16M", "memory 32M"]);
}

#[test]
fn a_worker_leaves_the_next_attempt_to_the_run() {
    let lab = lab("memory 16M..256M", &format!("{HOG}\necho $CE_MEMORY > $out_y"));
    let lab = lab.with_storage().commit();
    let ran = lab.ce_run_on_worker(&[]).exit(0);
    ran.says(
        "call (TASK): it used more than its 32.0 MiB of memory; the next attempt has memory 64M\n",
    );
    assert_eq!(attempts(&lab), ["memory 16M", "memory 32M"]);
}

#[test]
fn nothing_is_watched_beside_an_exclusive_call() {
    if !isolation::is_root() {
        return;
    }
    let lab = lab(
        "memory 8M..16M\n    #CE resources exclusive",
        "x=$(head -c 25000000 /dev/zero | tr '\\0' x); sleep 1; echo > $out_y",
    )
    .commit();
    let ran = lab.finish(&mut without_groups(&lab, &[])).exit(0);
    ran.says("the memory of exclusive calls is not limited: no control group can be made here");
}

#[test]
fn memory_without_a_range_is_no_limit() {
    let lab =
        lab("memory 8M", "x=$(head -c 90000000 /dev/zero | tr '\\0' x); echo > $out_y").commit();
    let ran = lab.ce_run(&[]).exit(0);
    let used = ran.stderr.lines().find(|line| line.contains("reserved")).unwrap_or_default();
    assert!(
        used.starts_with("ce-run: call used ") && used.ends_with(" of 8.0 MiB reserved"),
        "{used}"
    );
}
