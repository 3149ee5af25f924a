//! Results of a repository, and commits that do not touch their computations.

use std::fs;
use std::path::{Path, PathBuf};

use super::{cloned, evaluate, pull, push, repository};
use crate::isolation;
use crate::lab::Lab;

/// Two calls that were executed in isolation and pushed, and one more commit. The first call makes a directory.
fn next() -> Lab {
    let mut lab = Lab::task("Inputs: 'x'\n(read (make INPUT('x'))[0])[0]")
        .computation("make", "a", "tree/", r#"mkdir "$2/d"; cp "$1" "$2/d/f""#)
        .computation("read", "tree", "all", r#"cat "$1/d/f" >"$2""#)
        .data("x", "x\n")
        .isolated();
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    repository(&lab, "results.git");
    lab.ce_run(&[]).exit(0).says("2 computed");
    push(&lab, &[], "storage", "results.git").exit(0);
    lab.file("README", "more\n").commit_again()
}

/// The output of a computation that is a link to the output at another commit.
fn link(computation: &Path) -> Option<PathBuf> {
    let all = walkdir::WalkDir::new(computation).into_iter().map(Result::unwrap);
    all.map(|it| it.path().to_owned()).find(|path| path.is_symlink())
}

#[test]
fn pulled_and_cloned_results_are_taken_over_by_other_commits() {
    if !isolation::is_possible() {
        return;
    }
    let lab = next();
    // The first commit is forgotten.
    let tree = lab.git("task", &["rev-parse", "HEAD^{tree}"]);
    fs::remove_dir_all(lab.path("task/.git/logs")).unwrap();
    let commit = lab.git("task", &["commit-tree", &tree, "-m", "no parents"]);
    lab.git("task", &["reset", "-q", "--hard", &commit]);
    pull(&lab, &[], "pulled", "results.git").exit(0);
    cloned(&lab, "results.git", "cloned", &[]);
    for (storage, seen) in [("pulled", "2 taken over"), ("cloned", "1 taken over, 1 archived")] {
        let mut dry = lab.command("ce-run");
        let dry = lab.finish(dry.args(["-n", &format!("../{storage}"), "../data/x"]));
        dry.exit(0).says(&format!("2 calls: {seen}"));
        evaluate(&lab, storage).exit(0).says("2 calls: 2 taken over");
        let ran = evaluate(&lab, storage).exit(0).says("2 calls: 2 reused");
        let place = format!("../{storage}");
        let output = ran.lines().last().unwrap().trim().to_owned();
        lab.run("ce", &["show", &place, &output]).exit(0).shows("taken over   from c_read/");
        lab.run("ce", &["verify", &place]).exit(0).says("0 wrong, 0 odd");
        // The originals stay as long as there are copies of them.
        let link = link(&lab.path(storage).join("c_make")).unwrap();
        let gc = ["gc", "--delete", "--keep=.", "--older=0s", &place];
        lab.run("ce", &gc).exit(0).says("collected 1 result");
        assert_eq!(fs::read_to_string(link.join("d/f")).unwrap(), "x\n");
        lab.run("ce", &["verify", &place]).exit(0).says("0 wrong, 0 odd");
        // It is pushed like any other.
        evaluate(&lab, storage).exit(0);
        push(&lab, &[], storage, "results.git").exit(0).shows("2 calls, 1 job");
        lab.git("results.git", &["update-ref", "refs/heads/results", "results~1"]);
    }
}
