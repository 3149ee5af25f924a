//! Pushes and pulls that die at any step: nothing is lost, and the next one completes their work.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::away::room;
use super::{evaluate, lab, listed, pull, push, repository};
use crate::faults::stride;
use crate::lab::Lab;
use crate::program::Ran;

/// A `git` that kills the process that has called it at one of its calls: before it does anything, or when it has done it.
fn deadly(lab: &Lab, at: usize, is_after: bool) -> String {
    let bin = lab.path("bin");
    fs::create_dir_all(&bin).unwrap();
    let path = std::env::var("PATH").unwrap();
    let then = if is_after { "PATH=$real git \"$@\"" } else { ":" };
    // The git of a remote calls git, too: those are no calls of ours.
    let script = format!(
        "#!/bin/sh\nreal='{path}'\nexport PATH=\"$real\"\n\
         echo >>\"$0.calls\"\nif [ \"$(wc -l <\"$0.calls\")\" = {at} ]; then {then}; kill -9 $PPID; exit 1; fi\n\
         exec git \"$@\"\n"
    );
    fs::write(bin.join("git"), script).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    drop(fs::remove_file(bin.join("git.calls")));
    format!("{}:{path}", bin.display())
}

/// A push or pull that dies at a call of git. Returns `None` when there are fewer calls, so that it has ended.
fn dying<'a>(lab: &'a Lab, arguments: &[&str], at: usize, is_after: bool) -> Option<Ran<'a>> {
    let mut command = lab.command("ce");
    let ran = lab.finish(command.args(arguments).env("PATH", deadly(lab, at, is_after)));
    (ran.status.code().is_none()).then_some(ran)
}

#[test]
fn a_push_that_dies_at_any_call_of_git_is_completed_by_the_next() {
    let lab = lab();
    evaluate(&lab, "storage").exit(0);
    repository(&lab, "whole.git");
    push(&lab, &[], "storage", "whole.git").exit(0);
    let whole = listed(&lab, "whole.git");
    let mut deaths = 0;
    for is_after in [false, true] {
        for at in 1.. {
            let name = format!("{is_after}-{at}.git");
            repository(&lab, &name);
            let there = format!("../{name}");
            let died = dying(&lab, &["push", "../storage", &there], at, is_after).is_some();
            lab.git(&name, &["fsck", "--strict"]);
            push(&lab, &[], "storage", &name).exit(0);
            assert_eq!(listed(&lab, &name), whole, "after a death at call {at}");
            if !died {
                break;
            }
            deaths += 1;
        }
    }
    assert!(deaths >= 4, "a push lists and pushes, at least: {deaths}");
}

#[test]
fn a_pull_that_dies_at_any_step_is_completed_by_the_next() {
    let lab = lab();
    evaluate(&lab, "storage").exit(0);
    push(&lab, &[], "storage", "results.git").exit(0);
    let arguments = ["pull", "../other", "../results.git"];
    let check = |place: &str| {
        let verified = lab.run("ce", &["verify", "../other"]);
        assert!(verified.stderr.contains("0 wrong"), "after {place}: {}", verified.stderr);
        pull(&lab, &[], "other", "results.git").exit(0);
        evaluate(&lab, "other").exit(0).called(vec![]);
        fs::remove_dir_all(lab.path("other")).unwrap();
    };
    fs::remove_file(lab.path("called")).unwrap();
    let mut deaths = 0;
    for (at, is_after) in (1..).flat_map(|at| [(at, false), (at, true)]) {
        drop(fs::remove_dir_all(lab.path("cache")));
        fs::create_dir_all(lab.path("other")).unwrap();
        let died = dying(&lab, &arguments, at, is_after).is_some();
        check(&format!("call {at} of git"));
        if !died {
            break;
        }
        deaths += 1;
    }
    assert!(deaths >= 6, "a pull lists, and fetches directories and files: {deaths}");
    for at in (1..).step_by(stride(11)) {
        let mut command = lab.command("ce");
        fs::create_dir_all(lab.path("other")).unwrap();
        let ran = lab.finish(command.args(arguments).env("CE_FAULT", format!("{at}:KILL")));
        check(&format!("operation {at}"));
        if ran.status.code().is_some() {
            assert!(at > 50, "{at} operations were tried");
            break;
        }
    }
}

#[test]
fn a_pull_that_dies_between_its_parts_is_completed_by_the_next() {
    let lab = lab();
    evaluate(&lab, "storage").exit(0);
    push(&lab, &[], "storage", "results.git").exit(0);
    fs::remove_file(lab.path("called")).unwrap();
    let in_parts = |of: &str| {
        let mut command = lab.command("ce");
        command.args(["pull", "../other", "../results.git"]).env("CE_PART", of);
        command
    };
    let mut partly = 0;
    for at in 1.. {
        drop(fs::remove_dir_all(lab.path("cache")));
        fs::create_dir_all(lab.path("other")).unwrap();
        let ran = lab.finish(in_parts("1").env("PATH", deadly(&lab, at, false)));
        let died = ran.status.code().is_none();
        let here = ["c_once", "c_twice"].map(|owner| room(&lab, "other", owner, "00").len());
        partly += usize::from(died && here.iter().sum::<usize>() == 1);
        lab.run("ce", &["verify", "../other"]).exit(0).says("0 wrong");
        lab.finish(&mut in_parts("2")).exit(0);
        evaluate(&lab, "other").exit(0).called(vec![]);
        fs::remove_dir_all(lab.path("other")).unwrap();
        if !died {
            break;
        }
    }
    assert!(partly > 0, "it died when one of two calls was there");
}
