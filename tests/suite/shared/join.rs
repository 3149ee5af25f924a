//! Several storages push to one repository.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{evaluate, lab, listed, pull, push, repository, salt};
use crate::lab::Lab;

/// Storages with results of three inputs; the second has another output for the first one.
fn storages(lab: &mut Lab) -> [&'static str; 3] {
    let names = ["one", "two", "three"];
    for (number, storage) in names.into_iter().enumerate() {
        salt(lab, &"salt\n".repeat(number % 2));
        for input in ["x", &format!("x{number}")] {
            fs::write(lab.path("data").join(input), format!("{input}\n")).unwrap();
            lab.inputs = vec![input.to_owned()];
            evaluate(lab, storage).exit(0);
        }
    }
    names
}

/// The records of each result, in its place and beside it, without those who had the place.
fn records(lab: &Lab, repository: &str) -> Vec<String> {
    let mut records: Vec<String> = listed(lab, repository)
        .iter()
        .filter(|line| line.contains("/record/"))
        .map(|line| {
            let (object, path) = line.split_once('\t').unwrap();
            let id = object.split(' ').nth(2).unwrap();
            let path =
                path.strip_prefix("differs/").map_or(path, |it| it.rsplit_once('/').unwrap().0);
            format!("{} {id}", path.trim_end_matches(".json"))
        })
        .collect();
    records.sort();
    records.dedup();
    records
}

#[test]
fn results_join_in_any_order() {
    let mut lab = lab();
    let names = storages(&mut lab);
    let orders = [[0, 1, 2], [1, 0, 2], [2, 1, 0], [1, 2, 0]];
    let mut all = Vec::new();
    for order in orders {
        let repository_of_it = format!("order-{order:?}.git").replace([' ', ','], "");
        repository(&lab, &repository_of_it);
        for _ in 0..2 {
            // A second time changes nothing.
            for storage in order {
                let pushed = push(&lab, &[], names[storage], &repository_of_it);
                assert!([0, 1].contains(&pushed.status.code().unwrap()), "{}", pushed.stderr);
            }
        }
        lab.git(&repository_of_it, &["fsck", "--strict"]);
        all.push(records(&lab, &repository_of_it));
    }
    assert_eq!(
        all[0].len(),
        4 * 3 + 2,
        "four inputs, and two records of one call and one job that differ"
    );
    for records in &all[1..] {
        assert_eq!(records, &all[0]);
    }
}

#[test]
fn without_differences_the_join_agrees_with_git_merge() {
    let lab = lab();
    let other = "data/y";
    fs::write(lab.path(other), "y\n").unwrap();
    evaluate(&lab, "one").exit(0);
    let mut command = lab.command("ce-run");
    lab.finish(command.args(["../two", &format!("../{other}")])).exit(0);
    for name in ["one.git", "two.git"] {
        repository(&lab, name);
    }
    push(&lab, &[], "one", "one.git").exit(0);
    push(&lab, &[], "two", "two.git").exit(0);
    push(&lab, &[], "one", "results.git").exit(0);
    push(&lab, &[], "two", "results.git").exit(0);
    lab.git("one.git", &["fetch", "--quiet", "../two.git", "results:theirs"]);
    let merged =
        lab.git("one.git", &["merge-tree", "--allow-unrelated-histories", "results", "theirs"]);
    let ours = lab.git("results.git", &["rev-parse", "results^{tree}"]);
    assert_eq!(merged, ours);
}

#[test]
fn a_push_that_another_one_overtakes_joins_with_it() {
    let lab = lab();
    evaluate(&lab, "one").exit(0);
    fs::write(lab.path("data/y"), "y\n").unwrap();
    let mut command = lab.command("ce-run");
    lab.finish(command.args(["../two", "../data/y"])).exit(0);
    repository(&lab, "faster.git");
    push(&lab, &[], "one", "faster.git").exit(0);
    // While the push is received, the other one has been.
    hook(&lab, "results.git", "git fetch --quiet ../faster.git results:results");
    push(&lab, &[], "two", "results.git").exit(0);
    let parents = lab.git("results.git", &["log", "--format=%P", "-1", "results"]);
    assert_eq!(parents, lab.git("faster.git", &["rev-parse", "results"]));
    let jobs = listed(&lab, "results.git");
    assert_eq!(
        jobs.iter().filter(|line| line.contains("\tt_task/") && line.contains("/record/")).count(),
        2
    );
}

#[test]
fn a_push_that_is_always_overtaken_goes_to_an_inbox() {
    let lab = lab();
    evaluate(&lab, "one").exit(0);
    // Each time, somebody has committed something.
    let commit = r#"tree=$(git hash-object -t tree -w /dev/null)
new=$(git -c user.name=x -c user.email=x commit-tree -m "$(date +%s%N)" $(git rev-parse -q --verify results | sed "s/^/-p /") $tree)
while read -r old id name; do
    case $name in refs/heads/results) git update-ref refs/heads/results $new;; esac
done"#;
    hook_always(&lab, "results.git", commit);
    let told = push(&lab, &[], "one", "results.git").exit(1);
    told.shows("an inbox, since others pushed all the time at ");
    let inboxes =
        lab.git("results.git", &["for-each-ref", "--format=%(refname)", "refs/heads/ce-inbox"]);
    assert_eq!(inboxes.lines().count(), 1, "{inboxes}");
    let files = lab.git("results.git", &["ls-tree", "-r", "--name-only", &inboxes]);
    assert!(files.contains("t_task/"), "{files}");
    // Somebody who is not overtaken takes it.
    fs::remove_file(lab.path("results.git/hooks/pre-receive")).unwrap();
    lab.git("results.git", &["update-ref", "-d", "refs/heads/results"]);
    push(&lab, &["-n"], "one", "results.git").exit(3).shows("1 inbox waits: --collect takes");
    let told = push(&lab, &["-n", "--collect"], "one", "results.git").exit(3);
    told.shows("would take 1 of 1 inbox\n");
    push(&lab, &["--collect"], "one", "results.git").exit(0).shows("took 1 of 1 inbox\n");
    assert_eq!(
        lab.git("results.git", &["for-each-ref", "--format=%(refname)"]),
        "refs/heads/results"
    );
    push(&lab, &["--collect"], "one", "results.git").exit(0).shows("nothing is new");
}

#[test]
fn an_inbox_without_results_is_not_joined() {
    let lab = lab();
    evaluate(&lab, "one").exit(0);
    push(&lab, &[], "one", "results.git").exit(0);
    fs::create_dir(lab.path("clone")).unwrap();
    lab.git("clone", &["clone", "--quiet", "--branch", "results", "../results.git", "."]);
    for (number, path) in
        [".github/workflows/x.yml", "c_x/.git-hooks/y", "tmp/x"].into_iter().enumerate()
    {
        lab.git("clone", &["reset", "--quiet", "--hard", "origin/results"]);
        let place = lab.path("clone").join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, "x").unwrap();
        lab.git("clone", &["add", "--force", path]);
        lab.git("clone", &["commit", "--quiet", "--message", "x"]);
        lab.git(
            "clone",
            &["push", "--quiet", "origin", &format!("HEAD:refs/heads/ce-inbox/{number}")],
        );
        let told = push(&lab, &["--collect"], "one", "results.git").exit(1);
        told.shows(&format!(
            "refs/heads/ce-inbox/{number} stays: it has {path}, which no results have"
        ));
    }
    let told = push(&lab, &["--collect", "--json"], "one", "results.git").exit(1);
    told.shows(r#""strange":[{"inbox":"refs/heads/ce-inbox/"#);
    assert_eq!(lab.git("results.git", &["rev-list", "--count", "results"]), "1");
}

#[test]
fn a_repository_with_other_contents_keeps_its_branches() {
    let lab = lab();
    lab.ce_run(&[]).exit(0);
    let before = lab.git("task", &["for-each-ref", "refs/heads"]);
    push(&lab, &[], "storage", "task").exit(0).shows("refs/compeval/results: results at ");
    assert_eq!(lab.git("task", &["for-each-ref", "refs/heads"]), before);
    push(&lab, &[], "storage", "task").exit(0).shows("nothing is new");
}

#[test]
fn a_branch_with_other_contents_is_refused() {
    let lab = lab();
    lab.ce_run(&[]).exit(0);
    repository(&lab, "source.git");
    lab.git("task", &["push", "--quiet", "../source.git", "HEAD:refs/heads/results"]);
    let before = lab.git("source.git", &["rev-parse", "results"]);
    let wrong = "refs/heads/results of ";
    for ran in [push(&lab, &[], "storage", "source.git"), pull(&lab, &[], "other", "source.git")] {
        ran.exit(5).says(wrong).says("has no results: it has no file format").says("  try: ");
    }
    let published = ["gc", "--published", "../source.git", "../storage"];
    lab.run("ce", &published).exit(5).says(wrong);
    assert_eq!(lab.git("source.git", &["rev-parse", "results"]), before);
    push(&lab, &[], "storage", "results.git").exit(0);
    lab.git(".", &["clone", "--quiet", "--branch", "results", "results.git", "clone"]);
    fs::write(lab.path("clone/format"), "compeval results 2\n").unwrap();
    lab.git("clone", &["commit", "--quiet", "--all", "--message", "later"]);
    lab.git("clone", &["push", "--quiet"]);
    let later = pull(&lab, &[], "other", "results.git").exit(5);
    later.says("in a format that this program does not know");
}

#[test]
fn a_missing_or_refusing_repository_is_reported() {
    let lab = lab();
    lab.ce_run(&[]).exit(0);
    push(&lab, &[], "storage", "nowhere").exit(2).says("there is no repository");
    fs::create_dir(lab.path("empty")).unwrap();
    let told = push(&lab, &[], "storage", "empty").exit(5);
    told.says("git ls-remote of ").says("try: make git ls-remote work with it");
    hook_always(&lab, "results.git", "echo no results today >&2; exit 1");
    let told = push(&lab, &[], "storage", "results.git").exit(5);
    told.says("no results today; [remote rejected] (pre-receive hook declined)\n  try: check ");
    pull(&lab, &[], "new", "empty").exit(5);
    assert!(!lab.path("new").exists(), "a storage was made for nothing");
    pull(&lab, &["--require", "0"], "new", "results.git").exit(2).says("a whole number from 1");
    lab.run("ce", &["push", "../storage"]).exit(2).says("compeval.results");
    lab.git("task", &["config", "compeval.results", "../results.git"]);
    fs::remove_file(lab.path("results.git/hooks/pre-receive")).unwrap();
    lab.run("ce", &["push", "../storage"]).exit(0);
}

/// A repository runs a script before it accepts a push, the first time only.
fn hook(lab: &Lab, repository: &str, script: &str) {
    hook_always(lab, repository, &format!("[ ! -e once ] || exit 0; touch once\n{script}"));
}

fn hook_always(lab: &Lab, repository: &str, script: &str) {
    let hook = lab.path(repository).join("hooks/pre-receive");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    // Pushed objects are in quarantine meanwhile, in which nothing else may be written.
    let clean = "unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES";
    fs::write(&hook, format!("#!/bin/sh\n{clean}\n{script}\n")).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn pushes_at_the_same_time_lose_nothing() {
    let lab = lab();
    let names = ["a", "b", "c", "d", "e", "f"];
    for name in names {
        fs::write(lab.path("data").join(name), name).unwrap();
        let mut command = lab.command("ce-run");
        lab.finish(command.args([&format!("../of-{name}"), &format!("../data/{name}")])).exit(0);
    }
    std::thread::scope(|scope| {
        for name in names {
            let lab = &lab;
            scope.spawn(move || {
                let mut command = lab.command("ce");
                command.args(["push", &format!("../of-{name}"), "../results.git"]);
                // As on hosts of their own.
                command.env("XDG_CACHE_HOME", lab.path(&format!("cache-{name}")));
                let code = lab.finish(&mut command).status.code();
                assert!([Some(0), Some(1)].contains(&code), "there, or in an inbox: {code:?}");
            });
        }
    });
    // Another push has nothing to push, or takes the results of inboxes.
    push(&lab, &["--collect"], "of-a", "results.git").exit(0);
    assert_eq!(
        lab.git("results.git", &["for-each-ref", "--format=%(refname)"]),
        "refs/heads/results"
    );
    lab.git("results.git", &["fsck", "--strict"]);
    let jobs = listed(&lab, "results.git");
    let jobs = jobs.iter().filter(|line| line.contains("\tt_task/") && line.contains("/record/"));
    assert_eq!(jobs.count(), names.len());
}

#[test]
fn many_inboxes_are_taken_at_once() {
    let lab = lab();
    evaluate(&lab, "one").exit(0);
    push(&lab, &[], "one", "results.git").exit(0);
    fs::create_dir(lab.path("clone")).unwrap();
    lab.git("clone", &["clone", "--quiet", "--branch", "results", "../results.git", "."]);
    fs::create_dir(lab.path("clone/data")).unwrap();
    let mut refs = Vec::new();
    for number in 0..50 {
        lab.git("clone", &["reset", "--quiet", "--hard", "origin/results"]);
        fs::create_dir_all(lab.path("clone/data")).unwrap();
        fs::write(lab.path("clone/data").join(number.to_string()), "x").unwrap();
        lab.git("clone", &["add", "data"]);
        lab.git("clone", &["commit", "--quiet", "--message", "x"]);
        refs.push(format!(
            "{}:refs/heads/ce-inbox/{number}",
            lab.git("clone", &["rev-parse", "HEAD"])
        ));
    }
    let refs = refs.iter().map(String::as_str);
    lab.git("clone", &["push", "--quiet", "origin"].into_iter().chain(refs).collect::<Vec<_>>());
    push(&lab, &["--collect"], "one", "results.git").exit(0).shows("took 50 of 50 inboxes");
    assert_eq!(
        lab.git("results.git", &["ls-tree", "--name-only", "results", "data/"]).lines().count(),
        50
    );
}
