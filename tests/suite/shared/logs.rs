//! Logs of calls: they stay here unless the user says otherwise, and are searched for secrets.

use super::away::room;
use super::trust::{people, pull as pull_signed, push_as};
use super::{cloned, evaluate, holds, listed, pull, push, repository};
use crate::isolation;
use crate::lab::Lab;
use crate::program::Ran;

/// A call that prints what this command prints.
fn printing(command: &str) -> Lab {
    let mut lab = Lab::task("Inputs: 'x'\n(say INPUT('x'))[0]")
        .computation("say", "a", "b", &format!("cat \"$1\" >\"$2\"; {command}"))
        .data("x", "x\n");
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    repository(&lab, "results.git");
    lab
}

/// The same, executed by somebody.
fn executed(command: &str) -> Lab {
    let lab = printing(command);
    let mut run = lab.evaluation(&[]);
    lab.finish(run.env("USER", "ada-of-the-lab")).exit(0);
    lab
}

/// The logs that the repository has.
fn logs(lab: &Lab) -> usize {
    listed(lab, "results.git").iter().filter(|line| line.contains("/log/")).count()
}

/// Returns the output of `ce show --log` for the call in a storage.
fn shown<'a>(lab: &'a Lab, storage: &str) -> Ran<'a> {
    lab.run(
        "ce",
        &["show", "--log", &format!("../{storage}"), &room(lab, storage, "c_say", "00")[0]],
    )
}

#[test]
fn logs_are_pushed_on_request() {
    let lab = executed(r"printf 'hello\033[31m\n'");
    push(&lab, &[], "storage", "results.git").exit(0).shows("pushed 1 call, 1 job (2 B)");
    assert!(!holds(&lab, "results.git", "hello"));
    let told = push(&lab, &["--logs"], "storage", "results.git").exit(0);
    told.shows("nothing is new to ")
        .shows(" stays here: it was not isolated, so it may have printed");
    push(&lab, &["-n", "--logs=all"], "storage", "results.git").exit(3).shows("push 1 log (11 B)");
    let told = push(&lab, &["--logs=all", "--json"], "storage", "results.git").exit(0);
    told.shows(r#""calls":0,"#).shows(r#""logs":1,"#);
    push(&lab, &["--logs=all"], "storage", "results.git").exit(0).shows("nothing is new to ");
    cloned(&lab, "results.git", "clone", &[]);
    shown(&lab, "clone").exit(0).shows("hello");
    pull(&lab, &[], "other", "results.git").exit(0).shows("pulled 1 call, 1 job (2 B)");
    shown(&lab, "other").exit(0).shows("hello");
    for storage in ["clone", "other"] {
        lab.run("ce", &["verify", &format!("../{storage}")]).exit(0).says("0 wrong, 0 odd");
    }
    // It commands no terminal.
    let file = room(&lab, "other", "c_say", "00").remove(0);
    let told = lab.run("ce", &["show", "../other", &file]).exit(0).shows("| hello\u{fffd}[31m");
    assert!(!told.stdout.contains('\u{1b}'), "{}", told.stdout);
    // They may be pushed from there.
    repository(&lab, "others.git");
    push(&lab, &["--logs=all"], "other", "others.git").exit(0).shows("pushed 1 call, 1 job, 1 log");
    assert_eq!(listed(&lab, "results.git"), listed(&lab, "others.git"));
}

#[test]
fn only_logs_of_isolated_calls_are_pushed_by_default() {
    if !isolation::is_possible() {
        return;
    }
    let lab = printing("echo hello").isolated().commit_again();
    lab.ce_run(&[]).exit(0).says("1 computed");
    push(&lab, &["--logs"], "storage", "results.git").exit(0).shows("pushed 1 call, 1 job, 1 log");
    assert_eq!(logs(&lab), 1);
}

#[test]
fn a_log_with_a_name_or_a_secret_is_not_pushed() {
    let token = format!("{}{}", "ghp_", "a".repeat(36));
    for (command, what) in [
        (format!("echo token={token}"), "a token of GitHub"),
        ("echo on $(uname -n):".to_owned(), "the name of a host"),
        ("echo by ada-of-the-lab".to_owned(), "the name of a user"),
        (r#"echo "$1""#.to_owned(), "the path of the storage"),
    ] {
        let lab = executed(&command);
        let told = push(&lab, &["--logs=all"], "storage", "results.git").exit(1);
        told.shows("pushed 1 call, 1 job (2 B)").shows(&format!("seems to hold {what}; "));
        assert_eq!(logs(&lab), 0, "{command}");
        let told = push(&lab, &["--logs=all", "--allow-secrets"], "storage", "results.git");
        told.exit(0).shows("pushed 1 log");
        assert_eq!(logs(&lab), 1, "{command}");
    }
}

#[test]
fn the_limit_holds_for_logs() {
    let lab = executed("seq 1000");
    let limit = ["--logs=all", "--limit", "1K"];
    let told = push(&lab, &limit, "storage", "results.git").exit(0);
    told.shows("pushed 1 call, 1 job (2 B)").shows("a file has 3.8 KiB, and the limit is 1.0 KiB");
    push(&lab, &["--logs=all"], "storage", "results.git").exit(0).shows("pushed 1 log (3.8 KiB)");
    pull(&lab, &limit[1..], "other", "results.git").exit(0).shows("pulled 1 call, 1 job (2 B)");
    assert_eq!(shown(&lab, "other").exit(0).stdout, "");
}

#[test]
fn a_log_needs_a_signature_of_its_own() {
    let lab = executed("echo hello");
    people(&lab);
    push_as(&lab, "alice", &[], ["storage", "results.git"]).exit(0);
    push(&lab, &["--logs=all"], "storage", "results.git").exit(0);
    let told = pull_signed(&lab, &[], "mine").exit(1).shows("pulled 1 call, 1 job");
    told.shows("/log/").shows("was not taken: it is not signed");
    assert_eq!(shown(&lab, "mine").exit(0).stdout, "");
    lab.git("results.git", &["update-ref", "refs/heads/results", "results~1"]);
    push_as(&lab, "bob", &["--logs=all"], ["storage", "results.git"]).exit(0);
    pull_signed(&lab, &["--rewritten"], "yours").exit(0);
    shown(&lab, "yours").exit(0).shows("hello");
    evaluate(&lab, "yours").exit(0).says("1 call: 1 reused");
}
