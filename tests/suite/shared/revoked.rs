//! Revoked results: what becomes of them in storages and repositories.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::trust::{change, file_of, pull as pull_signed, push_as, signed};
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
fn a_recomputed_result_replaces_a_revoked_one() {
    let lab = signed();
    let before = listed(&lab, "results.git");
    let [name, file] = made_again(&lab);
    lab.git("results.git", &["fsck", "--strict"]);
    // Nothing is lost: both records stand beside it.
    let after = listed(&lab, "results.git");
    let beside = after.iter().filter(|it| it.contains("\tdiffers/c_twice/")).count();
    assert_eq!(beside, 2, "{after:?}");
    let gone: Vec<&String> = before.iter().filter(|it| !after.contains(it)).collect();
    let is_replaced = |it: &&String| it.contains("\tc_twice/") || it.contains("\tt_task/");
    assert!(gone.iter().all(is_replaced), "{gone:?}");
    let told = pull_signed(&lab, &[], "mine").exit(0).shows("pulled 2 calls");
    told.shows(&format!("its call {name} is revoked: the disk was full"));
    let right = fs::read(lab.path("right").join(&file)).unwrap();
    assert!(right.ends_with(b"salt\n"));
    assert_eq!(fs::read(lab.path("mine").join(&file)).unwrap(), right);
    evaluate(&lab, "mine").exit(0).called(vec![]);
    // A clone has the right one, too.
    cloned(&lab, "results.git", "clone", &[]);
    assert_eq!(fs::read(lab.path("clone").join(&file)).unwrap(), right);
    lab.run("ce", &["verify", "../clone"]).exit(0).says("0 wrong");
    evaluate(&lab, "clone").exit(0).called(vec![]);
    // A user who has the revoked one and does not know that loses the place.
    fs::remove_dir_all(lab.path("alice/revoked")).unwrap();
    push_as(&lab, "alice", &[], ["alice", "results.git"]).exit(1).shows("goes to differs/");
    assert_eq!(listed(&lab, "results.git"), after);
}

#[test]
fn a_result_pushed_without_logs_replaces_the_log_of_a_revoked_one() {
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
    // Without logs, the other one's log goes.
    push_as(&lab, "bob", &[], ["right", "results.git"]).exit(0);
    assert_eq!(log(&lab), None);
    // Nobody is said to have taken it away.
    let told = pull_signed(&lab, &[], "mine").exit(0);
    assert!(!told.stdout.contains("has taken it away"), "{}", told.stdout);
}

#[test]
fn a_revocation_by_another_signer_does_not_admit_unsigned_results() {
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
fn a_storage_remembers_its_own_revocations() {
    let lab = signed();
    let [name, file] = twice(&lab);
    revoke(&lab, "alice", &name);
    let told = evaluate(&lab, "alice").exit(0).called(vec![]);
    let told = told.says(&format!("warning: the result {name} is revoked: the disk was full"));
    told.says(&format!("  try: ce run --force {name}"));
    // Not even the record of the job is used without a word.
    let mut command = lab.command("ce-run");
    let quiet = lab.finish(command.args(["-q", "../alice", "../data/x"])).exit(0);
    quiet.says("is revoked: the disk was full");
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
    // The same outputs are wrong again.
    let mut command = lab.command("ce-run");
    let ran = lab.finish(command.args(["--force", &name, "../alice", "../data/x"])).exit(0);
    let again = format!("warning: {name} was executed again and made the revoked outputs:");
    ran.called(vec!["twice"]).says(&again).says("  try: correct the computation or its inputs");
    // Others are not.
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
fn a_revoked_result_is_not_revoked_again() {
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
fn different_outputs_are_not_attributed_to_an_absent_result() {
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

#[test]
fn a_job_that_was_made_from_revoked_outputs_loses_its_place() {
    let mut lab = Lab::task("Inputs: 'x'\n(once (twice INPUT('x'))[0])[0]")
        .computation("once", "a", "b", r#"cat "$1" "$1" >"$2""#)
        .computation("twice", "a", "b", super::TWICE)
        .data("x", "x\n");
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    repository(&lab, "results.git");
    evaluate(&lab, "wrong").exit(0);
    push(&lab, &[], "wrong", "results.git").exit(0);
    let [name, _] = twice(&lab);
    push(&lab, &["--revoke", &name, "--because", "x"], "wrong", "results.git").exit(0);
    salt(&lab, "salt\n");
    evaluate(&lab, "right").exit(0);
    // The call comes first, without the job.
    fs::rename(lab.path("right/t_task"), lab.path("job")).unwrap();
    push(&lab, &[], "right", "results.git").exit(0).shows("pushed 2 calls");
    fs::rename(lab.path("job"), lab.path("right/t_task")).unwrap();
    push(&lab, &[], "right", "results.git").exit(0).shows("pushed 1 job");
    fs::remove_dir_all(lab.path("wrong/revoked")).unwrap();
    push(&lab, &[], "wrong", "results.git").exit(1).shows("it has other outputs there");
    cloned(&lab, "results.git", "clone", &[]);
    lab.run("ce", &["verify", "../clone"]).exit(0).says("0 wrong");
    let told = evaluate(&lab, "clone").exit(0);
    assert!(told.stdout.contains("ok") && !told.stderr.contains("computed"), "{}", told.stderr);
}

#[test]
fn the_commit_that_hides_a_revocation_is_named() {
    let lab = signed();
    let [name, _] = twice(&lab);
    revoke(&lab, "alice", &name);
    let tip = lab.git("results.git", &["rev-parse", "results"]);
    let revocation = file_of(&lab, ["revoked/", ""]);
    let hidden = |storage: &str| {
        let told = pull_signed(&lab, &["--rewritten"], storage).exit(1);
        told.shows(&format!("{revocation} is there no more: the commit"));
        fs::remove_dir_all(lab.path(storage)).unwrap();
        lab.git("results.git", &["update-ref", "refs/heads/results", &tip]);
    };
    // It becomes a program.
    change(&lab, &[], |dir| {
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(lab.path(dir).join(&revocation), mode).unwrap();
    });
    hidden("program");
    // A parent of a merge has a file in the place of the directory.
    let empty = lab.git("results.git", &["hash-object", "-w", "-t", "blob", "/dev/null"]);
    fs::write(lab.path("tree"), format!("100644 blob {empty}\trevoked\n")).unwrap();
    let make = ["-c", "alias.make=!git mktree < ../tree", "make"];
    let tree = lab.git("results.git", &make);
    let root = lab.git("results.git", &["commit-tree", "-m", "x", &tree]);
    let all = lab.git("results.git", &["ls-tree", &tip]);
    let without: String = all
        .lines()
        .filter(|it| !it.ends_with("\trevoked"))
        .fold(format!("100644 blob {empty}\trevoked\n"), |all, line| all + line + "\n");
    fs::write(lab.path("tree"), without).unwrap();
    let tree = lab.git("results.git", &make);
    for parents in [[&root, &tip], [&tip, &root]] {
        let merge = ["commit-tree", "-m", "x", "-p", parents[0], "-p", parents[1], &tree];
        let merge = lab.git("results.git", &merge);
        lab.git("results.git", &["update-ref", "refs/heads/results", &merge]);
        hidden("merge");
    }
}

#[test]
fn a_link_at_the_top_does_not_stop_a_push() {
    let lab = signed();
    change(&lab, &[], |dir| {
        std::os::unix::fs::symlink("/", lab.path(dir).join("zzz")).unwrap();
    });
    salt(&lab, "salt\n");
    evaluate(&lab, "other").exit(0);
    push(&lab, &[], "other", "results.git").exit(1).shows("pushed 1 call, 1 job");
}

#[test]
fn an_ambiguous_revocation_is_refused() {
    let lab = signed();
    let [name, _] = twice(&lab);
    salt(&lab, "salt\n");
    evaluate(&lab, "other").exit(0);
    let options = ["--revoke", &name, "--because", "x"];
    let told = push(&lab, &options, "other", "results.git").exit(2);
    told.says("has other outputs in the storage than in the repository").says("  try: ");
    push(&lab, &options, "alice", "results.git").exit(0);
}

#[test]
fn a_pull_respects_revocations_of_the_storage() {
    let lab = signed();
    let [name, _] = twice(&lab);
    repository(&lab, "other.git");
    push(&lab, &[], "alice", "other.git").exit(0);
    revoke(&lab, "alice", &name);
    pull_signed(&lab, &[], "mine").exit(0);
    let told = pull(&lab, &[], "mine", "other.git").exit(0);
    told.shows(&format!("{name} stays there: it is revoked: the disk was full"));
}

/// Findings about an execution count for all results that were taken over from it.
#[test]
fn audits_and_revocations_of_an_original_count_for_its_copies() {
    let lab = lab();
    lab.git("task", &["config", "compeval.takeover", "tree"]);
    evaluate(&lab, "storage").exit(0).called(vec!["once", "twice"]);
    let [original, _] = twice_in(&lab, "storage");
    let lab = lab.file("README", "more").commit_again();
    evaluate(&lab, "storage").exit(0).called(vec![]).says("2 taken over");
    let copy = original.replace(original.split('/').nth(1).unwrap(), &head(&lab));
    // A deviating audit of the original.
    salt(&lab, "salt\n");
    lab.run("ce", &["audit", "--no-isolate", "../storage", &original])
        .exit(1)
        .called(vec!["twice"]);
    let log = lab.run("ce", &["log", "--json", "--attested", "../storage"]).exit(0).stdout;
    let line = log.lines().find(|it| it.contains(&format!("\"{copy}\""))).unwrap();
    assert!(line.contains(r#""differing":["here"]"#), "{line}");
    // A revocation of it.
    let because = ["--revoke", &original, "--because", "the disk was full"];
    push(&lab, &because, "storage", "results.git").exit(0);
    let told = evaluate(&lab, "storage").exit(0).called(vec![]);
    told.says(&format!("warning: the result {copy} is revoked: the disk was full"));
}

/// A job that was made from a copy is treated like one that was made from the original.
#[test]
fn a_revocation_of_an_original_counts_for_the_jobs_of_its_copies() {
    let lab = lab();
    lab.git("task", &["config", "compeval.takeover", "tree"]);
    let storages = ["storage", "mine"];
    for storage in storages {
        evaluate(&lab, storage).exit(0).called(vec!["once", "twice"]);
    }
    let [original, _] = twice_in(&lab, "storage");
    let lab = lab.file("README", "more").commit_again();
    for storage in storages {
        evaluate(&lab, storage).exit(0).says("2 taken over");
    }
    let copy = original.replace(original.split('/').nth(1).unwrap(), &head(&lab));
    push(&lab, &[], "storage", "results.git").shows("pushed 2 calls, 2 jobs");
    fs::remove_dir_all(lab.path("mine/t_task")).unwrap();
    let because = ["--revoke", &original, "--because", "the disk was full"];
    push(&lab, &because, "storage", "results.git").exit(0);
    // The record of the job is not used without a word.
    let mut command = lab.command("ce-run");
    let quiet = lab.finish(command.args(["-q", "../storage", "../data/x"])).exit(0);
    quiet.says(&format!("warning: the result {copy} is revoked: the disk was full"));
    // It goes nowhere.
    repository(&lab, "other.git");
    let told = push(&lab, &[], "storage", "other.git").exit(1);
    let told = told.shows("pushed 1 call, 1 revocation ");
    told.shows(&format!("its call {copy} is revoked: the disk was full"));
    // Nobody who has the copy takes it.
    let told = pull(&lab, &[], "mine", "results.git").exit(1);
    [original, copy].iter().fold(told, |told, call| {
        told.shows(&format!("its call {call} is revoked: the disk was full"))
            .shows(&format!("{call} is here, and revoked: the disk was full"))
    });
    assert!(!lab.path("mine/t_task").exists());
}

/// The first twelve digits of the present commit.
fn head(lab: &Lab) -> String {
    lab.git("task", &["rev-parse", "HEAD"])[..12].to_owned()
}

/// The name of the only call of `twice` in a storage, and of its file.
fn twice_in(lab: &Lab, storage: &str) -> [String; 2] {
    let files = crate::lab::files(&lab.path(storage)).into_keys();
    let file = files.into_iter().find(|it| it.starts_with("c_twice/") && it.contains("/00/"));
    let file = file.unwrap();
    [file.replace("/00/", "/"), file]
}
