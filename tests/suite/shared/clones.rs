//! Clones of results repositories with directories, which are archives until they are needed.

use std::fs;

use super::directories::{MAKE, directories, manifest, value};
use super::{cloned, evaluate, listed, push, repository};
use crate::lab::Lab;
use crate::program::Ran;

/// Returns the dry run in the clone.
fn dry<'a>(lab: &'a Lab, options: &[&str]) -> Ran<'a> {
    let mut command = lab.command("ce-run");
    lab.finish(command.arg("-n").args(options).args(["../clone", "../data/x"]))
}

/// The names of what `ce verify` finds harmlessly odd.
fn odd(lab: &Lab, storage: &str) -> usize {
    let told = lab.run("ce", &["verify", &format!("../{storage}")]).exit(0);
    [told.stdout.as_str(), &told.stderr]
        .map(|it| it.matches("it is in its archive only").count())
        .iter()
        .sum()
}

#[test]
fn a_clone_unpacks_directories_when_they_are_needed() {
    let lab = directories();
    lab.ce_run(&[]).exit(0);
    lab.called();
    push(&lab, &[], "storage", "results.git").exit(0);
    cloned(&lab, "results.git", "clone", &[]);
    // A command that only reads makes nothing, and takes nothing for damaged.
    assert_eq!(odd(&lab, "clone"), 4, "three calls and the job");
    lab.run("ce", &["verify", "--repair", "../clone"]).exit(0).says("0 wrong, 4 odd");
    lab.run("ce", &["log", "../clone"]).exit(0).shows("  shared  ");
    let made = value(&lab, "storage", "c_make").unwrap();
    let made = made.strip_prefix(lab.path("storage")).unwrap().to_str().unwrap().to_owned();
    let shown = lab.run("ce", &["show", "../clone", &format!("../clone/{made}")]);
    shown.exit(0).shows("it is in its archive only");
    let told = lab.unchanged(|| dry(&lab, &[]).exit(0));
    told.says("3 calls: 3 archived").shows("/c_make/");
    assert!(value(&lab, "clone", "c_make").is_none());
    // A clone is pushed as it is.
    repository(&lab, "others.git");
    push(&lab, &[], "clone", "others.git").exit(0).shows("pushed 3 calls, 1 job");
    assert_eq!(listed(&lab, "results.git"), listed(&lab, "others.git"));
    // Two runs at once unpack each directory once.
    std::thread::scope(|scope| {
        let runs = [(); 2].map(|()| scope.spawn(|| evaluate(&lab, "clone").status));
        assert_eq!(runs.map(|run| run.join().unwrap().code()), [Some(0); 2]);
    });
    assert_eq!(lab.called(), [""; 0]);
    for owner in ["c_make", "c_again", "c_both"] {
        assert_eq!(manifest(&lab, "clone", owner), manifest(&lab, "storage", owner));
    }
    lab.run("ce", &["verify", "../clone"]).exit(0).says("0 wrong, 0 odd");
    assert!(lab.path("clone/tmp").read_dir().unwrap().next().is_none(), "nothing is left");
}

#[test]
fn a_clone_with_a_forged_archive_executes_the_call() {
    let lab = directories();
    lab.ce_run(&[]).exit(0);
    lab.called();
    push(&lab, &[], "storage", "results.git").exit(0);
    cloned(&lab, "results.git", "clone", &[]);
    for entry in walkdir::WalkDir::new(lab.path("clone/directories")) {
        let path = entry.unwrap().path().to_owned();
        if path.is_file() {
            let mut archive = fs::read(&path).unwrap();
            *archive.last_mut().unwrap() ^= 1;
            fs::write(path, archive).unwrap();
        }
    }
    assert_eq!(odd_or_wrong(&lab), "4 wrong, 0 odd");
    evaluate(&lab, "clone").exit(0).called(vec!["again", "both", "make"]);
    for owner in ["c_make", "c_again", "c_both"] {
        assert_eq!(manifest(&lab, "clone", owner), manifest(&lab, "storage", owner));
    }
    lab.run("ce", &["verify", "../clone"]).exit(0).says("0 wrong, 0 odd");
}

/// Returns the counts of `ce verify` in a clone.
fn odd_or_wrong(lab: &Lab) -> String {
    let told = lab.run("ce", &["verify", "../clone"]).stderr;
    let counts = told.lines().find(|line| line.contains(" wrong, ")).unwrap();
    counts.replace("ce: ", "").replace(" and harmless", "")
}

#[test]
fn a_dry_run_reads_archives_that_its_plan_needs() {
    let task = "Inputs: 'x'\n(copy MEMBER('a/b' (make INPUT('x'))[0]))[0]";
    let mut lab = Lab::task(task)
        .computation("make", "a", "tree/", MAKE)
        .computation("copy", "a", "one", r#"cat "$1/one" >"$2""#)
        .data("x", "x\n");
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    repository(&lab, "results.git");
    lab.ce_run(&[]).exit(0).called(vec!["copy", "make"]);
    push(&lab, &[], "storage", "results.git").exit(0);
    cloned(&lab, "results.git", "clone", &[]);
    dry(&lab, &[]).exit(0).says("2 calls: 1 reused, 1 archived").shows(" ARCHIVED");
    dry(&lab, &["--json"]).exit(0).shows(r#""outcome":"archived""#).shows(r#""archived":1"#);
    let told = dry(&lab, &["--style", "words"]).exit(0).shows("  archived");
    assert!(!told.stdout.contains("missing"), "{}", told.stdout);
    fs::remove_dir_all(lab.path("clone/c_copy")).unwrap();
    dry(&lab, &[]).exit(3).says("2 calls: 1 archived, 1 missing");
    evaluate(&lab, "clone").exit(0).called(vec!["copy"]);
}

#[test]
fn an_output_of_a_task_may_be_in_an_archive() {
    for node in ["MEMBER('a/b/one' (make INPUT('x'))[0])", "(make INPUT('x'))[0]"] {
        let mut lab = Lab::task(&format!("Inputs: 'x'\n{node}"))
            .computation("make", "a", "tree/", MAKE)
            .data("x", "x\n");
        lab.inputs = vec!["x".to_owned()];
        let lab = lab.commit();
        repository(&lab, "results.git");
        lab.ce_run(&[]).exit(0);
        push(&lab, &[], "storage", "results.git").exit(0);
        cloned(&lab, "results.git", "clone", &[]);
        let told = dry(&lab, &[]).exit(0).says("1 call: 1 archived");
        assert!(told.lines().last().unwrap().ends_with(" ARCHIVED"), "{}", told.stdout);
    }
}
