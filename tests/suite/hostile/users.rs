//! A storage that two users share through a group.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::fifo::{Fifo, Never};
use crate::lab::Lab;
use crate::program::{Ran, Running, through};

const TASK: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('y'))[0]";

/// A group that both are members of: it is nobody else's.
pub(crate) const GROUP: u32 = 4242;

/// Two users for whom modes mean something.
pub(crate) const USERS: [u32; 2] = [65534, 65533];

/// A laboratory whose storage belongs to a group, and another user who is in it.
fn shared(mode: u32) -> Option<(Lab, u32)> {
    shared_by(Lab::task(TASK), mode)
}

/// The same with another task.
pub(crate) fn shared_by(lab: Lab, mode: u32) -> Option<(Lab, u32)> {
    let lab = lab.commit();
    let user = lab.another_user()?;
    let storage = lab.path("storage");
    fs::create_dir_all(storage.join("tinputs")).unwrap();
    for dir in [storage.join("tinputs"), storage.clone()] {
        std::os::unix::fs::chown(&dir, None, Some(GROUP)).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
    }
    // Each user has private files there, which nobody else may move.
    fs::set_permissions(lab.path(""), fs::Permissions::from_mode(0o1777)).unwrap();
    Some((lab, user))
}

/// Runs `ce-run` as another user who is in the group.
fn as_other<'a>(lab: &'a Lab, user: u32, options: &[&str]) -> Ran<'a> {
    let mut command = lab.evaluation(options);
    command.env_remove("LAB_LOG").env("XDG_CACHE_HOME", "/nonexistent");
    command.env("XDG_STATE_HOME", state(lab, user)).uid(user).gid(GROUP);
    lab.finish(&mut command)
}

/// The directory of the private files of a user.
pub(crate) fn state(lab: &Lab, user: u32) -> PathBuf {
    lab.path(&format!("state-{user}"))
}

/// Runs a program as this user of this group, with an umask that excludes all others.
fn in_private<'a>(lab: &'a Lab, user: u32, group: u32, command: &Command) -> Ran<'a> {
    let mut command = through(&["sh", "-c", "umask 077; exec \"$@\"", "sh"], command);
    command.env_remove("LAB_LOG").env("XDG_CACHE_HOME", "/nonexistent");
    command.env("XDG_STATE_HOME", state(lab, user)).uid(user).gid(group);
    lab.finish(&mut command)
}

fn evaluate(lab: &Lab, user: u32) -> Ran<'_> {
    in_private(lab, user, GROUP, &lab.evaluation(&[]))
}

/// Everything in the storage is the group's, and its members may use and change it.
#[track_caller]
pub(crate) fn is_shared(lab: &Lab) {
    for entry in walkdir::WalkDir::new(lab.path("storage")) {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        assert_eq!(metadata.gid(), GROUP, "{}", entry.path().display());
        let needed = if metadata.is_dir() { 0o2070 } else { 0o040 };
        assert_eq!(metadata.mode() & needed, needed, "{}", entry.path().display());
    }
}

#[test]
fn one_user_can_use_and_add_to_the_results_of_another() {
    let Some((lab, user)) = shared(0o2775) else { return };
    lab.ce_run(&[]).exit(0).called(vec!["add", "mul"]);
    as_other(&lab, user, &[]).exit(0).says("2 calls: 2 reused");
    let lab = lab.data("x", "3\n");
    as_other(&lab, user, &[]).exit(0).says("2 calls: 2 computed");
    lab.ce_run(&[]).exit(0).called(vec![]).says("2 calls: 2 reused");
    is_shared(&lab);
    assert!(lab.is_tidy());
}

#[test]
fn a_user_without_write_permission_reuses_results() {
    let Some((lab, user)) = shared(0o755) else { return };
    lab.ce_run(&[]).exit(0).called(vec!["add", "mul"]);
    as_other(&lab, user, &[]).exit(0).says("2 calls: 2 reused");
    as_other(&lab, user, &["-q"]).exit(0);
    let lab = lab.data("x", "3\n");
    let ran = as_other(&lab, user, &[]).exit(5);
    assert!(ran.stderr.contains("storage/"), "it says which file: {}", ran.stderr);
}

#[test]
fn an_input_that_a_user_may_not_read_is_bad_input() {
    let Some((lab, user)) = shared(0o2775) else { return };
    for is_directory in [false, true] {
        let input = lab.path("data/x");
        fs::remove_file(&input).unwrap();
        match is_directory {
            true => fs::create_dir(&input).unwrap(),
            false => fs::write(&input, "1\n").unwrap(),
        }
        fs::set_permissions(&input, fs::Permissions::from_mode(0o000)).unwrap();
        let told = as_other(&lab, user, &[]).exit(2);
        told.says("cannot read the input x, ").says("  try: ");
    }
}

#[test]
fn a_user_outside_the_group_reuses_results_that_others_may_read() {
    let Some((lab, _)) = shared(0o2775) else { return };
    let [member, stranger] = USERS;
    evaluate(&lab, member).exit(0).says("2 calls: 2 computed");
    let strange = |lab: &Lab| {
        let ran = in_private(lab, stranger, stranger, &lab.evaluation(&[]));
        (ran.status.code(), ran.stderr)
    };
    let (code, text) = strange(&lab);
    assert!(code == Some(0) && text.contains("2 calls: 2 reused"), "{text}");
    let lab = lab.data("x", "3\n");
    let (code, text) = strange(&lab);
    assert!(code == Some(5) && text.contains("storage/"), "it says which file: {text}");
    fs::set_permissions(lab.path("storage"), fs::Permissions::from_mode(0o2770)).unwrap();
    let (code, text) = strange(&lab);
    assert!(code == Some(5) && text.contains("storage"), "it says which directory: {text}");
}

#[test]
fn any_user_of_the_group_replaces_damaged_results() {
    let Some((lab, _)) = shared(0o2775) else { return };
    evaluate(&lab, USERS[0]).exit(0).says("2 calls: 2 computed");
    let results: Vec<String> = lab.results().into_keys().collect();
    for (turn, name) in results.iter().filter(|name| !name.starts_with("t_")).enumerate() {
        // As its owner can, and root.
        fs::write(lab.path("storage").join(name), "damaged\n").unwrap();
        let ran = evaluate(&lab, USERS[(turn + 1) % 2]).exit(0);
        assert_ne!(lab.stored(name), "damaged\n", "{name}: {}", ran.stderr);
        is_shared(&lab);
    }
    let kept = lab.storage().into_iter().filter(|name| name.contains("/aside/"));
    let kept: Vec<String> = kept.filter(|name| lab.stored(name) == "damaged\n").collect();
    assert!(kept.len() >= 2, "what was in the way is kept: {kept:?}");
    evaluate(&lab, USERS[0]).exit(0).says("2 calls: 2 reused");
}

#[test]
fn logs_of_one_user_can_be_read_and_taken_over_by_another() {
    let script = r#"echo "told of $(cat "$1")"; echo $(($(cat "$1") * $(cat "$2"))) >"$3""#;
    let lab = Lab::task(TASK).isolated().computation("mul", "a b", "product", script);
    let Some((lab, _)) = shared_by(lab, 0o2775) else { return };
    evaluate(&lab, USERS[0]).exit(0).says("2 calls: 2 computed");
    is_shared(&lab);
    lab.git("task", &["commit", "--quiet", "--allow-empty", "--message", "more"]);
    // If nothing can be isolated, it is executed.
    evaluate(&lab, USERS[1]).exit(0).says("2 calls: 2 ");
    is_shared(&lab);
    let logs = lab.storage().into_iter().filter(|name| name.contains("/log/"));
    assert_eq!(logs.map(|name| lab.stored(&name)).collect::<Vec<_>>(), ["told of 17\n"; 2]);
    // A log that cannot be read does not keep anybody from the result.
    for entry in walkdir::WalkDir::new(lab.path("storage")) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() && entry.path().to_str().unwrap().contains("/log/") {
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
    lab.git("task", &["commit", "--quiet", "--allow-empty", "--message", "still more"]);
    evaluate(&lab, USERS[0]).exit(0).says("2 calls: 2 ");
}

#[test]
fn leftovers_of_a_dead_run_are_removed_by_its_user() {
    // Without a sandbox, the parent is the run.
    let script = r#"case $(cat "$1") in
        8) mkdir -p own/deep; echo >own/deep/file; kill -9 $PPID;;
        9) kill -9 $PPID;;
        esac
        echo $(($(cat "$1") * $(cat "$2"))) >"$3""#;
    let lab = Lab::task(TASK).computation("mul", "a b", "product", script);
    let Some((lab, _)) = shared_by(lab, 0o2775) else { return };
    let lab = lab.data("x", "9\n");
    assert!(!evaluate(&lab, USERS[0]).status.success());
    assert!(!lab.is_tidy());
    let collect = |lab: &Lab, user: u32| {
        let mut command = lab.command("ce");
        command.args(["gc", "--delete", "--no-keep", "--older", "1d", "../storage"]);
        in_private(lab, user, GROUP, &command).exit(0).stderr.clone()
    };
    let told =
        "ce: private files of 1 ended run of nobody stay: the next run of nobody removes them\n";
    assert!(collect(&lab, USERS[1]).contains(told));
    // What only its user may enter harms nobody else.
    let lab = lab.data("x", "8\n");
    assert!(!evaluate(&lab, USERS[1]).status.success());
    let lab = lab.data("x", "4\n");
    evaluate(&lab, USERS[1]).exit(0).says("2 calls: 2 computed");
    assert!(!lab.is_tidy());
    let lab = lab.data("x", "9\n");
    let script = r#"echo $(($(cat "$1") * $(cat "$2"))) >"$3""#;
    let lab = lab.computation("mul", "a b", "product", script).commit_again();
    // The lease of the dead run is taken over.
    evaluate(&lab, USERS[1]).exit(0).says("2 calls: 2 computed");
    evaluate(&lab, USERS[0]).exit(0).says("2 calls: 2 reused");
    assert!(lab.is_tidy());
}

#[test]
fn results_of_one_user_can_be_verified_pinned_and_collected_by_another() {
    let Some((lab, _)) = shared(0o2775) else { return };
    let ce = |lab: &Lab, user: u32, arguments: &[&str]| {
        let mut command = lab.command("ce");
        let ran = in_private(lab, user, GROUP, command.args(arguments)).exit(0);
        is_shared(lab);
        ran.stdout
    };
    evaluate(&lab, USERS[0]).exit(0).says("2 calls: 2 computed");
    let lab = lab.data("x", "3\n");
    evaluate(&lab, USERS[1]).exit(0).says("2 calls: 2 computed");
    for user in USERS {
        ce(&lab, user, &["verify", "../storage"]);
        assert!(!ce(&lab, user, &["log", "../storage"]).is_empty());
    }
    let products = || {
        let names = lab.results().into_keys();
        names.filter(|name| name.starts_with("c_mul/")).collect::<Vec<_>>()
    };
    let all = products();
    let pinned = all.iter().find(|name| lab.stored(name) == "85\n").unwrap();
    ce(&lab, USERS[1], &["pin", "../storage", pinned]);
    ce(&lab, USERS[0], &["gc", "--delete", "--no-keep", "--older", "0s", "../storage"]);
    assert_eq!(products(), std::slice::from_ref(pinned));
    ce(&lab, USERS[0], &["pin", "--remove", "../storage", pinned]);
    ce(&lab, USERS[1], &["gc", "--delete", "--no-keep", "--older", "0s", "../storage"]);
    assert_eq!(products(), Vec::<String>::new());
}

#[test]
fn the_doctor_reports_why_others_cannot_use_a_storage() {
    let Some((lab, _)) = shared(0o2775) else { return };
    evaluate(&lab, USERS[0]).exit(0);
    let ask = |user: u32, group: u32| {
        let mut command = lab.command("ce");
        let ran = in_private(&lab, user, group, command.args(["doctor", "--json", "../storage"]));
        let lines = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap());
        let mut findings = lines.filter(|finding: &Value| finding["probe"] == "sharing");
        let finding = findings.next().unwrap();
        (finding["grade"].as_str().unwrap().to_owned(), finding.to_string())
    };
    let (grade, text) = ask(USERS[1], GROUP);
    assert!(grade == "ok" && text.contains("group 4242 shares the storage"), "{text}");
    is_shared(&lab);
    let (grade, text) = ask(USERS[1], USERS[1]);
    assert!(grade == "note" && text.contains("member of group 4242"), "{text}");
    fs::set_permissions(lab.path("storage/c_add"), fs::Permissions::from_mode(0o755)).unwrap();
    let (grade, text) = ask(USERS[1], GROUP);
    assert!(grade == "note" && text.contains("storage/c_add has mode 755"), "{text}");
}

/// Returns the number of suspended calls.
fn suspended(lab: &Lab) -> usize {
    lab.storage().iter().filter(|name| name.ends_with("/state.json")).count()
}

#[test]
fn cancel_all_ends_only_the_calls_of_the_calling_user() {
    let wait = "Inputs: 'x'\n(wait INPUT('x'))[0]";
    let lab = Lab::task(wait).computation("wait", "x", "y", "exit 75");
    let Some((mut lab, _)) = shared_by(lab, 0o2775) else { return };
    for (input, user) in [("1\n", USERS[0]), ("2\n", USERS[1]), ("3\n", USERS[1])] {
        lab = lab.data("x", input);
        evaluate(&lab, user).exit(4);
    }
    // A run that only asks how a call stands does not get it.
    let lab = lab.data("x", "1\n");
    evaluate(&lab, USERS[1]).exit(4);
    is_shared(&lab);
    let cancel = |user: u32| {
        let mut command = lab.command("ce");
        in_private(&lab, user, GROUP, command.args(["cancel", "--all", "../storage"])).exit(0)
    };
    let ran = cancel(USERS[1]);
    assert_eq!(ran.stdout.matches("cancelled wait x=").count(), 2, "{}", ran.stdout);
    ran.says("ce: 2 calls of yours cancelled; 1 call of other users left alone\n");
    assert_eq!(suspended(&lab), 1);
    let ran = cancel(USERS[1]);
    assert_eq!(ran.stdout, "");
    ran.says("ce: 0 calls of yours cancelled; 1 call of other users left alone\n");
    let ran = cancel(USERS[0]);
    assert_eq!(ran.stderr, "ce: 1 call of yours cancelled\n");
    assert_eq!(suspended(&lab), 0);
}

/// Puts a directory of one's own in place of each one below `tmp/` that has a program, and of each one that holds it.
const SWAP: &str = r#"
cd "$1/tmp"
find . -name exec | while read -r exec; do
    program=${exec%/exec}
    for place in "$program" "${program%/*}"; do
        mv "$place" "$place.away" || continue
        mkdir -p "$program"
        echo 'CODE=theirs; : >"$LAB_STOLEN"' | tee "$program/helper" >"$program/exec"
        chmod +x "$program/exec"
    done
done"#;

#[test]
fn an_export_that_is_executed_is_out_of_reach_of_others() {
    let script = r#"
        if [ "$(cat "$1")" = 17 ]; then echo here >"$LAB_MEET"; read line <"$LAB_WAIT"; fi
        . "$(dirname "$0")/helper"
        { cat "$1"; echo $CODE; } >"$2""#;
    // Where the user has no place for private files, the place of temporary files serves.
    for has_home in [true, false] {
        let lab = Lab::task("Inputs: 'x'\n(code (code INPUT('x'))[0])[0]");
        let lab = lab.computation("code", "a", "b", script);
        let lab = lab.file("computations/code/helper", "CODE=ours\n");
        let Some((lab, _)) = shared_by(lab, 0o2775) else { return };
        let [user, other] = USERS;
        let (meet, wait) = (lab.path("meet"), lab.path("wait"));
        let (fifo, never) = (Fifo::new(&meet), Never::new(wait.clone()));
        for pipe in [&meet, &wait] {
            fs::set_permissions(pipe, fs::Permissions::from_mode(0o666)).unwrap();
        }
        let mut command = lab.evaluation(&["-j1"]);
        command.env_remove("LAB_LOG").env("XDG_CACHE_HOME", "/nonexistent");
        command.env("LAB_MEET", &meet).env("LAB_WAIT", &wait);
        command.env("LAB_STOLEN", lab.path("stolen")).env("TMPDIR", lab.path("temporary"));
        fs::create_dir(lab.path("temporary")).unwrap();
        fs::set_permissions(lab.path("temporary"), fs::Permissions::from_mode(0o1777)).unwrap();
        if has_home {
            command.env("XDG_STATE_HOME", state(&lab, user));
        }
        let running = Running::start(command.uid(user).gid(GROUP));
        assert_eq!(fifo.line(), "here");
        let mut swap = Command::new("sh");
        swap.args(["-c", SWAP, "sh"]).arg(lab.path("storage")).uid(other).gid(GROUP);
        assert!(swap.status().unwrap().success());
        never.let_go();
        let ran = Ran::new(&lab, running.output());
        assert!(!lab.path("stolen").exists(), "{}", ran.stderr);
        ran.exit(0).says("2 calls: 2 computed");
        assert_eq!(lab.output(), "17\nours\nours\n");
        // Nothing is left there.
        let left = [lab.path("temporary"), state(&lab, user).join("compeval/exports")];
        let left = left.iter().filter_map(|dir| fs::read_dir(dir).ok());
        assert_eq!(left.flatten().count(), 0);
    }
}

#[test]
fn programs_of_a_suspended_call_run_for_the_user_who_began_it() {
    let lab = Lab::task("Inputs: 'x'\n(wait INPUT('x'))[0]");
    let lab = lab.computation("wait", "x", "y", "exit 75");
    let lab = lab.file("computations/wait/cancel", "#!/bin/sh\n: >\"$LAB_CANCELLED\"\n");
    let lab = lab.mode("computations/wait/cancel", 0o755);
    let Some((lab, _)) = shared_by(lab, 0o2775) else { return };
    let cancel = |user: u32| {
        let mut command = lab.command("ce");
        command.args(["cancel", "../storage"]).arg(record(&lab).parent().unwrap());
        let ran = in_private(&lab, user, GROUP, command.env("LAB_CANCELLED", lab.path("ended")));
        (ran.status.code(), ran.stderr.clone(), fs::remove_file(lab.path("ended")).is_ok())
    };
    let [user, other] = USERS;
    let refused = "this user has not begun it, or its record was changed";
    let changes: [(u32, &str, &str); 4] = [
        (other, "", ""),
        (user, "\"isolated\": false", "\"isolated\": true"),
        (user, "\"access\": []", "\"access\": [\"write /\"]"),
        (user, "\"code\": ", "\"note\": "),
    ];
    evaluate(&lab, user).exit(4);
    let text = fs::read_to_string(record(&lab)).unwrap();
    for (who, from, to) in changes {
        assert!(from.is_empty() || text.contains(from), "{text}");
        fs::write(record(&lab), text.replacen(from, to, 1)).unwrap();
        let (code, told, was_executed) = cancel(who);
        assert!(code == Some(1) && told.contains(refused) && !was_executed, "{to}: {told}");
    }
    fs::write(record(&lab), text).unwrap();
    let (code, told, was_executed) = cancel(user);
    assert!(code == Some(0) && was_executed, "{told}");
}

/// The record of the only suspended call.
fn record(lab: &Lab) -> PathBuf {
    let names = lab.storage().into_iter().filter(|name| name.ends_with("/state.json"));
    let [name] = &names.collect::<Vec<_>>()[..] else { panic!("one call is suspended") };
    lab.path("storage").join(name)
}
