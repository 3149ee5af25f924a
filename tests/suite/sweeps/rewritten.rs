//! Sweeps over commits whose history was rewritten: Git does not have the commits any more, and the storage still has the
//! measurements.

use std::fs;

use crate::lab::Lab;
use crate::program::Ran;

const SWEEP: &str = "Inputs: commits\nSWEEP((bench TREE('lib' commit) replicate) commits \
                     :names 'commit' :replicates 2 :allow-failed)\n";

/// A laboratory that has measured three commits of `lib` twice each.
fn measured() -> Lab {
    let lab = Lab::task("(add INPUT('x') INPUT('x'))[0]")
        .computation("bench", "tree replicate", "ms", r#"cat "$1/speed" "$2" | tr '\n' ' ' >"$3""#)
        .one_text(SWEEP)
        .commit();
    fs::create_dir(lab.path("lib")).unwrap();
    lab.git("lib", &["init", "-q", "-b", "main"]);
    for speed in ["1", "2", "3"] {
        commit(&lab, speed);
    }
    let commits = lab.run("ce", &["commits", "--reverse", "../lib"]).exit(0).stdout;
    let lab = lab.data("old", commits);
    run(&lab, &[], "old").exit(0).called(vec!["bench"; 6]);
    lab
}

fn commit(lab: &Lab, speed: &str) {
    fs::write(lab.path("lib/speed"), format!("{speed}\n")).unwrap();
    lab.git("lib", &["add", "-A"]);
    lab.git("lib", &["commit", "-qm", speed]);
}

/// Rewrites the history of `lib`, which has none of its commits any more, and another one.
fn rewrite(lab: &Lab) {
    lab.git("lib", &["checkout", "-q", "--orphan", "new"]);
    commit(lab, "4");
    lab.git("lib", &["branch", "-qD", "main"]);
    lab.git("lib", &["reflog", "expire", "--expire=now", "--all"]);
    lab.git("lib", &["gc", "-q", "--prune=now"]);
    let old = fs::read_to_string(lab.path("data/old")).unwrap();
    let new = lab.run("ce", &["commits", "../lib"]).exit(0).stdout;
    assert!(!old.contains(&new[..60]), "{new}");
    fs::write(lab.path("data/both"), old + &new).unwrap();
}

fn run<'a>(lab: &'a Lab, options: &[&str], commits: &str) -> Ran<'a> {
    let commits = format!("../data/{commits}");
    let given = ["-r", "lib=../lib", "../storage", &commits];
    lab.run("ce-run", &[options, &given].concat())
}

/// The rows of the table, by their states.
fn table(lab: &Lab, commits: &str) -> String {
    let commits = format!("../data/{commits}");
    let ran = lab.run("ce", &["table", "-r", "lib=../lib", "../storage", &commits]).exit(0);
    ran.stdout
}

#[test]
fn measurements_of_rewritten_commits_stay_in_the_growing_table() {
    let lab = measured();
    let before = table(&lab, "old");
    rewrite(&lab);
    assert_eq!(table(&lab, "old"), before);
    run(&lab, &["-n"], "old").exit(0);
    let grown = run(&lab, &[], "both").exit(0).called(vec!["bench"; 2]);
    grown.says("8 calls: 6 reused, 2 computed; 1 table: 1 made");
    // Neither the cache nor a collection is needed for it.
    fs::remove_dir_all(lab.path("cache")).unwrap();
    lab.run("ce", &["gc", "--delete", "../storage"]).exit(0);
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
    run(&lab, &[], "both").exit(0).called(vec![]);
    assert_eq!(table(&lab, "old"), before);
}

#[test]
fn another_version_of_a_computation_measures_commits_kept_in_the_storage() {
    let lab = measured();
    rewrite(&lab);
    let exec = fs::read_to_string(lab.path("task/computations/bench/exec")).unwrap();
    let lab = lab.file("computations/bench/exec", exec + "echo again >>\"$3\"\n").commit_again();
    run(&lab, &[], "old").exit(0).called(vec!["bench"; 6]);
    assert!(table(&lab, "old").contains("again"));
}

#[test]
fn measurements_of_commits_unknown_to_the_storage_are_lost() {
    let lab = measured();
    rewrite(&lab);
    fs::remove_dir_all(lab.path("storage/tinputs/commits")).unwrap();
    let lost = run(&lab, &[], "both").exit(3).called(vec!["bench"; 2]);
    lost.says("it was lost: the repository lib at ").says("try: git -C ");
    // A storage learns about the commits while Git has them.
    let lab = measured();
    fs::remove_dir_all(lab.path("storage/tinputs/commits")).unwrap();
    lab.unchanged(|| run(&lab, &["-n"], "old").exit(0));
    fs::remove_dir_all(lab.path("storage/t_task")).unwrap();
    run(&lab, &[], "old").exit(0).called(vec![]);
    rewrite(&lab);
    fs::remove_dir_all(lab.path("storage/tables")).unwrap();
    run(&lab, &[], "old").exit(0).called(vec![]);
}
