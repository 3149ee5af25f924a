//! `ce push`: what goes to a repository, what stays here, and that a clone is a storage.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use super::{cloned, evaluate, holds, lab, listed, pull, push, repository, salt};
use crate::lab::Lab;

const ONCE: &str = "c_once";

#[test]
fn a_clone_is_a_complete_storage() {
    let lab = lab();
    lab.ce_run(&[]).exit(0).called(vec!["once", "twice"]);
    push(&lab, &["-n"], "storage", "results.git").exit(3).shows("would push 2 calls, 1 job (12 B)");
    assert_eq!(lab.git("results.git", &["for-each-ref"]), "", "nothing is pushed");
    push(&lab, &[], "storage", "results.git").exit(0).shows("pushed 2 calls, 1 job (12 B) to ");
    lab.unchanged(|| push(&lab, &[], "storage", "results.git").exit(0).shows("nothing is new to "));
    assert_eq!(lab.git("results.git", &["rev-list", "--count", "results"]), "1");
    lab.git("results.git", &["fsck", "--strict"]);
    // Git converts line ends on the way, and sets times and modes of its own.
    for (clone, option) in [("clone", "core.autocrlf=false"), ("crlf", "core.autocrlf=true")] {
        cloned(&lab, "results.git", clone, &["-c", option]);
        evaluate(&lab, clone).exit(0).called(vec![]);
        lab.run("ce", &["verify", &format!("../{clone}")]).exit(0).says("0 wrong, 0 odd");
        assert_eq!(lab.git(clone, &["status", "--porcelain"]), "", "a run leaves no trace in Git");
    }
    let log = lab.run("ce", &["log", "../clone"]).exit(0);
    assert_eq!(log.lines().len(), 3);
    log.shows("  shared  ");
}

#[test]
fn a_directory_with_very_many_entries_is_named() {
    let lab = lab();
    lab.ce_run(&[]).exit(0);
    let pushed = push(&lab, &[], "storage", "results.git").exit(0);
    assert!(!pushed.stderr.contains("entries"));
    let all = listed(&lab, "results.git");
    let value =
        all.iter().filter_map(|line| line.split('\t').nth(1)).find(|it| it.contains("/00/"));
    let (directory, _) = value.unwrap().rsplit_once('/').unwrap();
    for (name, files, is_named) in [("many.git", 9_999, false), ("more.git", 10_000, true)] {
        repository(&lab, name);
        let files = (0..files).map(|file| format!("M 100644 :1 {directory}/{file}\n"));
        let commit = "commit refs/heads/results\ncommitter x <x> 0 +0000\ndata 0\n";
        let format = "M 100644 inline format\ndata 19\ncompeval results 1\n";
        let files = files.collect::<String>();
        let stream = format!("blob\nmark :1\ndata 0\n{commit}{format}{files}");
        fs::write(lab.path("stream"), stream).unwrap();
        let load = ["-c", "alias.load=!git fast-import --quiet <../stream", "load"];
        lab.git(name, &load);
        let pushed = push(&lab, &[], "storage", name).exit(0);
        let told = format!("{directory}/ has 10001 entries: ");
        assert_eq!(pushed.stderr.contains(&told), is_named, "{}", pushed.stderr);
        // Nothing is added to it again.
        assert_eq!(push(&lab, &[], "storage", name).exit(0).stderr, "");
    }
}

#[test]
fn equal_executions_are_pushed_as_equal_objects() {
    let lab = lab();
    for (storage, repository_of_it) in [("storage", "results.git"), ("other", "others.git")] {
        evaluate(&lab, storage).exit(0).called(vec!["once", "twice"]);
        if repository_of_it != "results.git" {
            repository(&lab, repository_of_it);
        }
        push(&lab, &[], storage, repository_of_it).exit(0);
    }
    assert_eq!(listed(&lab, "results.git"), listed(&lab, "others.git"));
    // The ledger's statement of the second execution is evidence for the first repository, too.
    push(&lab, &[], "other", "results.git").exit(0).shows("pushed 1 ledger file to ");
    assert_eq!(listed(&lab, "results.git"), listed(&lab, "others.git"));
    push(&lab, &[], "other", "results.git").exit(0).shows("nothing is new");
}

#[test]
fn a_clone_may_be_pushed_like_any_storage() {
    let lab = lab();
    lab.ce_run(&[]).exit(0);
    push(&lab, &[], "storage", "results.git").exit(0);
    cloned(&lab, "results.git", "clone", &[]);
    repository(&lab, "others.git");
    push(&lab, &[], "clone", "others.git").exit(0);
    assert_eq!(listed(&lab, "results.git"), listed(&lab, "others.git"));
    // Nobody has executed anything in the clone, so it adds nothing to the evidence that it has.
    let evidence = |repository: &str| lab.git(repository, &["ls-tree", "-r", "results", "ledger/"]);
    assert_eq!(evidence("others.git"), evidence("results.git"));
}

#[test]
fn published_results_do_not_tell_user_host_or_time() {
    let lab = lab();
    let mut command = lab.evaluation(&[]);
    lab.finish(command.env("USER", "ada-of-the-lab")).exit(0);
    push(&lab, &[], "storage", "results.git").exit(0);
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let record = lab
        .storage()
        .into_iter()
        .find(|name| name.starts_with("c_once") && name.contains("/record/"));
    let record = lab.stored(&record.unwrap());
    for known in ["ada-of-the-lab", "\"machine\""] {
        assert!(record.contains(known), "{known} is known here");
    }
    let root = lab.path("storage").display().to_string();
    let fields = ["\"stage\"", "\"argv\"", "\"start\"", "\"machine\""];
    for secret in ["ada-of-the-lab", &format!("\"{host}\""), &root].into_iter().chain(fields) {
        assert!(!holds(&lab, "results.git", secret), "{secret}");
    }
    let by = "ada";
    evaluate(&lab, "other").exit(0);
    repository(&lab, "others.git");
    push(&lab, &["--by", by], "other", "others.git").exit(0);
    assert!(holds(&lab, "others.git", r#""by":"ada""#), "unless the user wants it");
}

#[test]
fn results_that_look_secret_are_not_pushed() {
    let mut lab = Lab::task("Inputs: 'x'\n(copy INPUT('x'))[0]")
        .computation("copy", "a", "b", r#"cat "$1" >"$2""#)
        .data("x", format!("token={}{}\n", "ghp_", "a".repeat(36)));
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    repository(&lab, "results.git");
    lab.ce_run(&[]).exit(0);
    let told = push(&lab, &[], "storage", "results.git").exit(1);
    assert_eq!(told.stdout.matches("seems to hold a token of GitHub").count(), 2, "call and job");
    assert_eq!(lab.git("results.git", &["for-each-ref"]), "");
    push(&lab, &["--allow-secrets"], "storage", "results.git")
        .exit(0)
        .shows("pushed 1 call, 1 job");
    // So does the value of a secret variable.
    let lab = self::lab();
    lab.ce_run(&[]).exit(0);
    let mut command = lab.command("ce");
    command.args(["push", "../storage", "../results.git"]).env("DEPLOY_TOKEN", "x\nx\nx\nx\n");
    command.env("ODD", OsStr::from_bytes(b"\xff"));
    lab.finish(&mut command).exit(1).shows("the value of the variable DEPLOY_TOKEN");
}

#[test]
fn too_large_damaged_and_uncommitted_results_are_not_pushed() {
    let lab = lab().data("x", "x".repeat(300));
    lab.ce_run(&[]).exit(0);
    let small = push(&lab, &["--limit", "1K"], "storage", "results.git").exit(0);
    small.shows("pushed 2 calls, 1 job (600 B)").shows("1 call is away: known");
    let name =
        lab.storage().into_iter().find(|name| name.starts_with(ONCE) && name.contains("/00/"));
    let place = lab.path("storage").join(name.unwrap());
    fs::set_permissions(&place, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&place, "y\ny\n").unwrap();
    repository(&lab, "others.git");
    push(&lab, &[], "storage", "others.git").exit(1).shows("is not as recorded");
    let lab = lab.computation("once", "a", "b", r#"cat "$1" - >"$2""#);
    lab.ce_run(&["--dirty"]).exit(0);
    let dirty = push(&lab, &[], "storage", "results.git").exit(0);
    dirty.shows("no commit has its computation");
}

#[test]
fn a_file_that_the_repository_has_lost_is_pushed_again() {
    let lab = lab();
    lab.ce_run(&[]).exit(0);
    push(&lab, &[], "storage", "results.git").exit(0);
    let before = lab.git("results.git", &["rev-parse", "results^{tree}"]);
    lab.git(".", &["clone", "--quiet", "--branch", "results", "results.git", "clone"]);
    lab.git("clone", &["rm", "-r", "--quiet", "c_twice/*/00/*"]);
    lab.git("clone", &["commit", "--quiet", "--message", "lost"]);
    lab.git("clone", &["push", "--quiet"]);
    push(&lab, &[], "storage", "results.git").exit(0).shows("pushed 1 call ");
    let after = lab.git("results.git", &["rev-parse", "results^{tree}"]);
    // The ledger says once more who has executed it.
    let differing = lab.git("results.git", &["diff", "--name-only", &before, &after]);
    assert!(differing.lines().all(|it| it.starts_with("ledger/")), "{differing}");
    pull(&lab, &[], "other", "results.git").exit(0).shows("pulled 2 calls, 1 job");
}

#[test]
fn an_unisolated_result_is_not_pushed_beside_an_isolated_one() {
    let lab = Lab::task("Inputs: 'x'\n(copy INPUT('x'))[0]")
        .computation("copy", "a", "b", r#"cat "$1" "$1" >"$2""#)
        .isolated()
        .commit();
    repository(&lab, "results.git");
    lab.ce_run(&[]).exit(0);
    push(&lab, &[], "storage", "results.git").exit(0);
    let mut run = lab.command("ce-run");
    lab.finish(run.args(["--no-isolate", "../other", "../data/x"])).exit(0).says("1 computed");
    for options in [&["-n"][..], &[], &["-n"]] {
        push(&lab, options, "other", "results.git").exit(0).shows("nothing is new to ");
    }
}

#[test]
fn push_does_not_replace_differing_results() {
    let lab = lab();
    lab.ce_run(&[]).exit(0);
    push(&lab, &[], "storage", "results.git").exit(0);
    let before = listed(&lab, "results.git");
    salt(&lab, "salt\n");
    evaluate(&lab, "other").exit(0);
    let dry = push(&lab, &["-n"], "other", "results.git").exit(1);
    assert_eq!(listed(&lab, "results.git"), before);
    let told = push(&lab, &[], "other", "results.git").exit(1);
    let lines = told.lines().into_iter().filter(|line| !line.starts_with("refs/"));
    let lines = lines.map(|line| line.replace("pushed ", "would push "));
    assert_eq!(dry.lines(), lines.collect::<Vec<_>>());
    told.shows("it has other outputs there, and they stay");
    let after = listed(&lab, "results.git");
    assert!(before.iter().all(|line| after.contains(line)), "nothing was changed");
    let differing: Vec<_> =
        after.iter().filter(|line| line.contains("\tdiffers/c_twice/")).collect();
    assert_eq!(differing.len(), 2, "{differing:?}");
    let told = push(&lab, &[], "other", "results.git").exit(1);
    told.shows("nothing is new").shows("it has other outputs there");
    let dry = push(&lab, &["-n"], "other", "results.git").exit(1);
    assert_eq!(dry.stdout, push(&lab, &[], "other", "results.git").stdout);
    assert_eq!(listed(&lab, "results.git"), after, "once is enough");
    assert_eq!(lab.git("results.git", &["rev-list", "--count", "results"]), "2");
    // Beside a new result, a result that was known to differ is not new.
    fs::write(lab.path("data/x"), "other\n").unwrap();
    evaluate(&lab, "other").exit(0);
    push(&lab, &["-n"], "other", "results.git").exit(1).shows("would push 2 calls, 1 job (");
    let told = push(&lab, &[], "other", "results.git").exit(1);
    told.shows("pushed 2 calls, 1 job (").shows("it has other outputs there");
}

#[test]
fn results_taken_over_by_tree_are_neither_pushed_nor_pulled() {
    let lab = lab();
    lab.ce_run(&[]).exit(0).called(vec!["once", "twice"]);
    push(&lab, &[], "storage", "results.git").exit(0);
    pull(&lab, &[], "other", "results.git").exit(0);
    let lab = lab.file("README", "").commit_again();
    let calls = || {
        let all = listed(&lab, "results.git").into_iter();
        all.filter(|it| it.contains("\tc_")).collect::<Vec<_>>()
    };
    let before = calls();
    lab.git("task", &["config", "compeval.takeover", "tree"]);
    lab.ce_run(&[]).exit(0).called(vec![]).says("2 taken over");
    let pushed = push(&lab, &[], "storage", "results.git");
    pushed.shows("it was taken over from another commit, and was not isolated");
    assert_eq!(calls(), before);
    // The inputs of executions of others are unknown here.
    evaluate(&lab, "other").exit(0).called(vec!["once", "twice"]);
}
