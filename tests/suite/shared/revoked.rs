//! Revoked results: what becomes of them in storages and repositories.

use std::fs;

use super::trust::{file_of, pull as pull_signed, push_as, signed};
use super::{cloned, evaluate, lab, listed, pull, push, repository, salt};
use crate::lab::Lab;

/// The name of the call that depends on what nobody declares, and its file.
fn twice(lab: &Lab) -> [String; 2] {
    let file = file_of(lab, ["c_twice/", "/00/"]);
    [file.replace("/00/", "/"), file]
}

/// Revokes a call, which alice's storage and her results have.
fn revoke(lab: &Lab, who: &str, call: &str) {
    let options = ["--revoke", call, "--because", "the disk was full"];
    push_as(lab, who, &options, ["alice", "results.git"]).exit(0).shows("pushed 1 revocation to ");
}

/// Puts the outputs of a call that were made again in the place of those that are revoked: bob's beside alice's.
fn made_again(lab: &Lab) -> [String; 2] {
    let names = twice(lab);
    revoke(lab, "alice", &names[0]);
    salt(lab, "salt\n");
    evaluate(lab, "right").exit(0).called(vec!["once", "twice"]);
    let told = push_as(lab, "bob", &[], ["right", "results.git"]).exit(0);
    told.shows("pushed 1 call, 1 job");
    names
}

#[test]
fn what_is_made_again_takes_the_place_of_what_is_revoked() {
    let lab = signed();
    let before = listed(&lab, "results.git");
    let [name, file] = made_again(&lab);
    lab.git("results.git", &["fsck", "--strict"]);
    // Nothing is lost: both records stand beside it.
    let after = listed(&lab, "results.git");
    let beside = after.iter().filter(|it| it.contains("\tdiffers/c_twice/")).count();
    assert_eq!(beside, 2, "{after:?}");
    let kept = |it: &&String| !after.contains(it);
    let gone: Vec<&String> = before.iter().filter(kept).collect();
    let is_replaced = |it: &&&String| it.contains("\tc_twice/") || it.contains("\tt_task/record/");
    assert!(gone.iter().all(|it| is_replaced(&it) || it.contains("\tt_task/")), "{gone:?}");
    let told = pull_signed(&lab, &[], "mine").exit(0).shows("pulled 2 calls");
    told.shows(&format!("its call {name} is revoked: the disk was full"));
    let right = fs::read(lab.path("right").join(&file)).unwrap();
    assert!(right.ends_with(b"salt\n"));
    assert_eq!(fs::read(lab.path("mine").join(&file)).unwrap(), right);
    evaluate(&lab, "mine").exit(0).called(vec![]);
    // A clone has the right one, too.
    cloned(&lab, "results.git", "clone", &[]);
    assert_eq!(fs::read(lab.path("clone").join(&file)).unwrap(), right);
    evaluate(&lab, "clone").exit(0).called(vec![]);
    // Who has the revoked one and does not know that loses the place.
    fs::remove_dir_all(lab.path("alice/revoked")).unwrap();
    push_as(&lab, "alice", &[], ["alice", "results.git"]).exit(1).shows("is in differs/");
    assert_eq!(listed(&lab, "results.git"), after);
}

#[test]
fn nothing_of_a_result_without_a_place_is_in_its_place() {
    let lab = signed();
    let [name, _] = twice(&lab);
    push_as(&lab, "alice", &["--logs=all"], ["alice", "results.git"]).exit(0);
    let log = |lab: &Lab| {
        let all = listed(lab, "results.git");
        all.into_iter().find(|it| it.contains("\tc_twice/") && it.contains("/log/"))
    };
    let first = log(&lab);
    assert!(first.is_some());
    salt(&lab, "salt\n");
    evaluate(&lab, "right").exit(0);
    push_as(&lab, "bob", &["--logs=all"], ["right", "results.git"]).exit(1);
    assert_eq!(log(&lab), first);
    revoke(&lab, "alice", &name);
    // Without logs, that of the other one goes.
    push_as(&lab, "bob", &[], ["right", "results.git"]).exit(0);
    assert_eq!(log(&lab), None);
    // Nobody is said to have taken it away.
    let told = pull_signed(&lab, &[], "mine").exit(0);
    assert!(!told.stdout.contains("has taken it away"), "{}", told.stdout);
}

#[test]
fn a_revocation_of_somebody_else_gives_no_place_to_what_is_not_signed() {
    let lab = signed();
    let [name, _] = twice(&lab);
    revoke(&lab, "mallory", &name);
    salt(&lab, "salt\n");
    evaluate(&lab, "wrong").exit(0);
    push_as(&lab, "mallory", &[], ["wrong", "results.git"]).exit(0);
    let told = pull_signed(&lab, &[], "mine").exit(1).shows("pulled 1 call");
    told.shows("it is signed with the key SHA256:");
    assert!(!lab.path("mine").join(name.replace("/", "/00/")).exists());
    assert!(!lab.path("mine/revoked").exists());
}

#[test]
fn a_storage_knows_what_it_has_revoked() {
    let lab = signed();
    let [name, file] = twice(&lab);
    revoke(&lab, "alice", &name);
    let told = evaluate(&lab, "alice").exit(0).called(vec![]);
    let told = told.says(&format!("warning: the result {name} is revoked: the disk was full"));
    told.says(&format!("  try: ce run --force {name}"));
    // It goes nowhere, and what revokes it does.
    repository(&lab, "other.git");
    let dry = push(&lab, &["-n"], "alice", "other.git").exit(1);
    dry.shows("would push 1 call, 1 revocation");
    let told = push(&lab, &[], "alice", "other.git").exit(1).shows("pushed 1 call, 1 revocation");
    let why = "it is revoked: the disk was full; ce run --force executes it again";
    let told = told.shows(&format!("{name} stays here: {why}"));
    told.shows("t_task/").shows(&format!("its call {name} is revoked: the disk was full"));
    let all = listed(&lab, "other.git");
    assert!(all.iter().any(|it| it.contains("\trevoked/c_twice/")), "{all:?}");
    assert!(!all.iter().any(|it| it.ends_with(&file)), "{all:?}");
    // Once it is executed again, nothing is wrong with it.
    salt(&lab, "salt\n");
    let mut command = lab.command("ce-run");
    let ran = lab.finish(command.args(["--force", &name, "../alice", "../data/x"])).exit(0);
    let ran = ran.called(vec!["twice"]);
    assert!(!ran.stderr.contains("is revoked"), "{}", ran.stderr);
    push_as(&lab, "alice", &[], ["alice", "results.git"]).exit(0).shows("pushed 1 call, 1 job");
    push(&lab, &[], "alice", "other.git").exit(0).shows("pushed 1 call, 1 job");
    push(&lab, &[], "alice", "other.git").exit(0).shows("nothing is new to ");
}

#[test]
fn what_is_revoked_already_is_not_revoked_again() {
    let lab = signed();
    let [name, _] = twice(&lab);
    revoke(&lab, "alice", &name);
    let options = ["--revoke", &name, "--because", "the disk was full"];
    let dry = [&["-n"][..], &options].concat();
    let tip = lab.git("results.git", &["rev-parse", "results"]);
    push_as(&lab, "alice", &dry, ["alice", "results.git"]).exit(0).shows("nothing is new to ");
    push_as(&lab, "alice", &options, ["alice", "results.git"]).exit(0).shows("nothing is new to ");
    assert_eq!(lab.git("results.git", &["rev-parse", "results"]), tip);
}

#[test]
fn outputs_that_differ_are_not_those_of_a_result_that_is_away() {
    let lab = lab();
    fs::write(lab.path("data/x"), "x".repeat(1 << 10)).unwrap();
    evaluate(&lab, "large").exit(0);
    push(&lab, &["--limit", "3K"], "large", "results.git").exit(0).shows("1 call is away");
    salt(&lab, "salt\n");
    evaluate(&lab, "other").exit(0);
    push(&lab, &[], "other", "results.git").exit(1).shows("it has other outputs there");
    let all = listed(&lab, "results.git");
    let is_output = |it: &&String| it.contains("\tc_twice/") && it.contains("/00/");
    assert_eq!(all.iter().find(is_output), None);
    pull(&lab, &[], "mine", "results.git").exit(0).shows("1 call is away");
}
