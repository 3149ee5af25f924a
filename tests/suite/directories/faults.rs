//! A storage with directories under faults: any operation of it fails, or the process dies there.

use std::fs;
use std::os::unix::process::CommandExt;
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, kill_process_group};

use super::{stored, values};
use crate::faults::stride;
use crate::lab::{Lab, files};
use crate::program::Running;

/// A call makes two directories with the same contents, other ones each time; another one refuses
/// directories that differ. A directory is an input, and the job's output.
fn lab() -> Lab {
    let twins = r#"mkdir "$2/d"; od -An -N8 -tx8 /dev/urandom >"$2/d/f"; cp -r "$1/." "$2"; cp -r "$2/." "$3""#;
    let same = r#"diff -r "$1" "$2" && cp -r "$1/." "$3" && cat "$2/d/f" >"$4""#;
    let lab = Lab::task("Inputs: 'x'\n(same (twins INPUT('x'))[0, 1])[0, 1]")
        .computation("twins", "seed", "one/ other/", twins)
        .computation("same", "one other", "both/ text", same)
        .commit();
    let dir = lab.path("data/x");
    fs::remove_file(&dir).unwrap();
    fs::create_dir_all(dir.join("in/empty")).unwrap();
    fs::write(dir.join("in/f"), "f\n").unwrap();
    lab
}

/// Runs without faults, and checks everything that must hold then.
#[track_caller]
fn recovers(lab: &Lab, after: &str) {
    // Unfinished results are no damage.
    if lab.path("storage/tinputs").exists() {
        let ran = lab.run("ce", &["verify", "../storage"]);
        // Published outputs that could not be moved to their places are lost, and made again.
        let mut lines = ran.stdout.lines().filter(|line| !line.is_empty());
        let harmless = |line: &str| ["missing", "(harmless)"].iter().any(|end| line.ends_with(end));
        assert!(lines.all(harmless), "after {after}\n{}\n{}", ran.stdout, ran.stderr);
    }
    let ran = lab.ce_run(&["-j2"]);
    assert_eq!(ran.status.code(), Some(0), "after {after}\n{}\n{}", ran.stdout, ran.stderr);
    let output = |prefix: &str, number: &str| {
        let mut twins = values(lab, prefix);
        twins.retain(|name| name.contains(&format!("/{number}/")));
        assert_eq!(twins.len(), 1, "after {after}: {twins:?}");
        files(&stored(lab, &format!("{}/", twins[0])))
    };
    let one = output("c_twins/", "00");
    assert_eq!(one, output("c_twins/", "01"), "after {after}");
    assert_eq!((&one, one.len()), (&output("c_same/", "00"), 2), "after {after}");
    assert_eq!(one, output("t_task/", "00"), "after {after}");
    assert!(lab.is_tidy(), "nothing is left behind after {after}: {:?}", lab.storage());
    let again = lab.ce_run(&[]).exit(0);
    assert!(again.stderr.contains("2 calls: 2 reused"), "after {after}\n{}", again.stderr);
    let ran = lab.run("ce", &["verify", "../storage"]);
    assert_eq!(ran.status.code(), Some(0), "after {after}\n{}\n{}", ran.stdout, ran.stderr);
}

/// Lets the k-th operation of a run fail, in one way after the other: for every sixth k from the given
/// one on, or for every one with `CE_KILLS`.
#[cfg(debug_assertions)]
fn fail_everywhere(from: usize, faults: &[&str], check: impl Fn(Option<i32>, &str)) {
    let lab = lab();
    let step = stride(6);
    for (at, fault) in (from.min(step)..).step_by(step).zip(faults.iter().cycle()) {
        drop(fs::remove_dir_all(lab.path("storage")));
        let fault = format!("{at}{fault}");
        let ran = lab.finish(lab.evaluation(&["-j1"]).env("CE_FAULT", &fault));
        if !ran.stderr.contains("fault at operation") {
            assert_eq!(ran.status.code(), Some(0));
            assert!(at > 100, "{at} operations failed");
            return;
        }
        check(ran.status.code(), &format!("{fault}\n{}\n{}", ran.stdout, ran.stderr));
        recovers(&lab, &fault);
    }
}

#[test]
#[cfg(debug_assertions)]
fn a_disk_that_fails_once_loses_nothing() {
    fail_everywhere(1, &[":ENOSPC", ":EIO", ":EACCES"], |code, told| {
        assert!(matches!(code, Some(0 | 5)), "{code:?} {told}");
        assert!(!told.contains("interrupted"), "{told}");
    });
}

#[test]
#[cfg(debug_assertions)]
fn a_run_that_dies_leaves_a_usable_storage() {
    fail_everywhere(4, &[":KILL"], |code, told| assert_eq!(code, None, "{told}"));
}

/// Kills runs at moments that differ each time, several at once; then everything is right.
#[test]
fn runs_killed_at_any_moment_leave_a_usable_storage() {
    let kills = std::env::var("CE_KILLS").map_or(24, |text| text.parse::<u64>().unwrap());
    let mut lab = lab();
    for kill in 0..kills {
        if kill % 6 == 0 {
            lab = self::lab();
        }
        let start = |_| Running::start(lab.evaluation(&["-j2"]).process_group(0));
        let runs: Vec<Running> = (0..3).map(start).collect();
        // Moments of all lengths; nothing depends on which one it is.
        thread::sleep(Duration::from_micros(kill * 7919 % 60_000));
        for run in &runs {
            let _over = kill_process_group(run.pid, Signal::KILL);
        }
        runs.into_iter().for_each(|run| drop(run.output()));
        if kill % 6 == 5 {
            recovers(&lab, &format!("{kill} kills"));
        }
    }
}

/// Several runs begin at once in a new storage, with the same directory as their input.
#[test]
fn runs_at_the_same_time_agree() {
    for _ in 0..5 {
        let lab = lab();
        let runs: Vec<Running> =
            (0..4).map(|_| Running::start(&mut lab.evaluation(&["-j2"]))).collect();
        for run in runs {
            let output = run.output();
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(0), "{text}");
        }
        recovers(&lab, "runs at the same time");
        let kept = lab.storage().into_iter().filter(|name| name.contains("aside/"));
        assert_eq!(kept.collect::<Vec<_>>(), [""; 0]);
    }
}
