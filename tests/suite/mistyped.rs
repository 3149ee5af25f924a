//! A storage whose path is mistyped: only `ce run` makes one, and nothing else is taken for one. And mistyped options.

use std::fs;

use crate::lab::{Lab, snapshot};
use crate::program::Ran;

const SUM: &str = "Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))[0]";
const INPUTS: [&str; 2] = ["../data/x", "../data/y"];

/// Every program that takes a storage, and its arguments before and after that.
const PROGRAMS: [(&[&str], &[&str]); 15] = [
    (&["run", "--no-isolate"], &INPUTS),
    (&["run", "-n"], &INPUTS),
    (&["diff", "--no-isolate", "HEAD..HEAD"], &INPUTS),
    (&["diff", "-n", "HEAD"], &INPUTS),
    (&["bisect", "--no-isolate", "--good=HEAD~1", "--bad=HEAD"], &INPUTS),
    (&["explain"], &INPUTS),
    (&["viz"], &INPUTS),
    (&["log"], &[]),
    (&["verify"], &[]),
    (&["verify", "--repair"], &[]),
    (&["show"], &["abcd"]),
    (&["cite"], &["abcd"]),
    (&["export"], &["abcd", "../made"]),
    (&["gc", "--keep=."], &[]),
    (&["pin"], &["abcd"]),
];

/// A laboratory in which the task was evaluated, with two commits.
fn evaluated() -> Lab {
    let lab = Lab::task(SUM).commit();
    lab.ce_run(&[]).exit(0);
    lab.file("README", "").commit_again()
}

fn ce<'a>(lab: &'a Lab, (before, after): (&[&str], &[&str]), storage: &str) -> Ran<'a> {
    lab.run("ce", &[before, &[storage], after].concat())
}

#[test]
fn only_a_run_makes_a_storage_and_says_so() {
    let lab = evaluated();
    for program in &PROGRAMS[2..] {
        let ran = ce(&lab, *program, "../storag").exit(5);
        ran.says("cannot open the storage ../storag\n  because: there is no such directory\n")
            .says("  try: did you mean ../storage?\n");
        ce(&lab, *program, "../elsewhere").exit(5).says("try: check whether it was moved");
    }
    let dry = ce(&lab, PROGRAMS[1], "../storag").exit(3);
    dry.says("ce-run: there is no storage at ../storag; did you mean ../storage?\n");
    assert!(!lab.path("storag").exists() && !lab.path("elsewhere").exists());
    let made = "ce-run: made a new storage at ../storag; did you mean ../storage?\n";
    let quiet = ["-q", "../storag", INPUTS[0], INPUTS[1]];
    lab.run("ce-run", &quiet).exit(0).says(made).called(vec!["add", "add"]);
    assert_eq!(lab.run("ce-run", &quiet).exit(0).stderr, "");
    let other = ce(&lab, PROGRAMS[0], "../new").exit(0);
    other.says("ce-run: made a new storage at ../new\n");
    fs::create_dir(lab.path("empty")).unwrap();
    let empty = ce(&lab, PROGRAMS[0], "../empty").exit(0);
    assert!(!empty.stderr.contains("made a new storage"), "{}", empty.stderr);
}

#[test]
fn a_name_that_may_be_another_storage_is_not_taken_for_a_slip() {
    let lab = evaluated();
    for other in ["../storage2", "../storagf", "../storage-a", "../my-storage", "../s"] {
        let made = ce(&lab, PROGRAMS[0], other).exit(0);
        let said = format!("ce-run: made a new storage at {other}\n");
        assert!(made.stderr.contains(&said), "{}", made.stderr);
        fs::remove_dir_all(lab.path("task").join(other)).unwrap();
    }
    for slip in ["../storge", "../stroage", "../sttorage", "../storaje", "../Storage", "../STORAGE"]
    {
        ce(&lab, PROGRAMS[1], slip).exit(3).says("; did you mean ../storage?\n");
    }
    // A program that makes none doubts more, but not everything.
    ce(&lab, PROGRAMS[7], "../storage2").exit(5).says("try: did you mean ../storage?\n");
    fs::rename(lab.path("storage"), lab.path("results-of-april")).unwrap();
    ce(&lab, PROGRAMS[7], "../results-of-march").exit(5).says("try: check whether it was moved");
}

#[test]
fn a_link_that_leads_nowhere_is_reported() {
    let lab = evaluated();
    std::os::unix::fs::symlink("gone", lab.path("link")).unwrap();
    for program in &PROGRAMS {
        for (storage, target) in [("../link", "gone"), ("../link/", "gone")] {
            let ran = ce(&lab, *program, storage).exit(5);
            let ran = ran.says(&format!("cannot open the storage {storage}\n"));
            ran.says(&format!(
                "  because: ../link is a symbolic link to {target}, which does not exist\n"
            ))
            .says("  try: correct the link, or make the directory that it leads to\n");
        }
    }
    ce(&lab, PROGRAMS[0], "../link/below").exit(5).says("../link is a symbolic link to gone");
    assert!(!lab.path("gone").exists());
}

#[test]
fn a_storage_that_git_would_add_to_the_task_is_reported() {
    let lab = evaluated();
    let warning = "ce-run: warning: Git does not ignore the storage, which is in a work tree\n  try: \
                   add the line /some/results/ to .gitignore there, or use another place\n";
    let quiet = |storage: &str| lab.run("ce-run", &["-q", storage, INPUTS[0], INPUTS[1]]).exit(0);
    fs::create_dir(lab.path("task/some")).unwrap();
    quiet("some/results").says(warning);
    assert_eq!(quiet("some/results").stderr, "");
    fs::write(lab.path("task/.gitignore"), "/other/\n").unwrap();
    assert_eq!(quiet("other").stderr, "ce-run: made a new storage at other\n");
}

#[test]
fn a_directory_of_other_things_is_not_taken_for_a_storage() {
    let lab = evaluated();
    for dir in ["other/tmp", "other/c_src/nif"] {
        fs::create_dir_all(lab.path(dir)).unwrap();
    }
    fs::write(lab.path("other/README"), "").unwrap();
    let before = snapshot(&lab.path("other"));
    for program in &PROGRAMS {
        let ran = ce(&lab, *program, "../other").exit(5);
        ran.says("cannot open the storage ../other\n  because: it holds other things, and neither")
            .says("or, to make this one a storage, mkdir ../other/tinputs\n");
    }
    assert_eq!(snapshot(&lab.path("other")), before);
    // Unless the user says so.
    fs::create_dir(lab.path("other/tinputs")).unwrap();
    ce(&lab, PROGRAMS[0], "../other").exit(0);
    fs::remove_dir_all(lab.path("other/tinputs")).unwrap();
    ce(&lab, PROGRAMS[8], "../other").exit(0);
}

#[test]
fn a_mistyped_option_is_not_suggested_as_a_value() {
    let lab = Lab::empty();
    let tips = |arguments: &str| -> Vec<String> {
        let words: Vec<&str> = arguments.split(' ').collect();
        let ran = lab.run("ce", &words).exit(2).says("error: unexpected argument ");
        let lines = ran.stderr.lines().filter(|line| line.contains("tip: "));
        lines.map(|line| line.trim().to_owned()).collect()
    };
    for arguments in
        ["log --since 1d R", "table --format csv", "run --retry -1", "audit -v", "shell -l c_a/b/c"]
    {
        assert_eq!(tips(arguments), [""; 0], "{arguments}");
    }
    // Similar arguments are suggested as ever.
    for arguments in ["shell --kep c_a/b/c", "shell c_a/b/c --kep"] {
        assert_eq!(tips(arguments), ["tip: a similar argument exists: '--keep'"]);
    }
    assert_eq!(
        tips("-- run"),
        ["tip: subcommand 'run' exists; to use it, remove the '--' before it"]
    );
    for arguments in
        ["c_a/b/c ls -l", "R c_a/b/c ls -l", "--keep c_a/b/c ls -la", "c_a/b/c ls --all"]
    {
        let tips = tips(&format!("shell {arguments}"));
        assert_eq!(tips, ["tip: write -- before the command"], "{arguments}");
    }
}

#[test]
fn a_new_storage_beside_a_similar_name_causes_a_warning() {
    let lab = evaluated();
    fs::rename(lab.path("storage"), lab.path("results")).unwrap();
    // A directory that is no storage is not meant.
    fs::create_dir(lab.path("rezult")).unwrap();
    for slip in ["../rezults", "../Results", "../RESULTS", "../re-sults"] {
        let said = format!("ce-run: made a new storage at {slip}; did you mean ../results?\n");
        ce(&lab, PROGRAMS[0], slip).exit(0).says(&said);
        fs::remove_dir_all(lab.path("task").join(slip)).unwrap();
    }
    ce(&lab, PROGRAMS[0], "../rezultate").exit(0);
    // Commands that only read say so, too.
    fs::remove_dir_all(lab.path("rezultate")).unwrap();
    ce(&lab, PROGRAMS[7], "../RESULTS").exit(5).says("  try: did you mean ../results?\n");
}
