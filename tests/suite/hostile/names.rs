//! Results under names that are not theirs.

use std::fs;

use serde_json::Value;

use super::version;
use crate::lab::Lab;

/// Adds a task in a directory of the repository: it calls one computation, which prints a word.
fn with_task(lab: Lab, dir: &str, word: &str) -> Lab {
    let script = format!("#!/bin/sh\necho {dir} >>\"$LAB_LOG\"\necho {word} >\"$2\"\n");
    let file = |lab: Lab, name: &str, text: &str| lab.file(&format!("{dir}/{name}"), text);
    let lab = file(lab, "inputs", "x\n");
    let lab = file(lab, "computations/c/inputs", "x\n");
    let lab = file(lab, "computations/c/outputs", "y\n");
    let lab = file(lab, "computations/c/exec", &script);
    let lab = file(lab, "workflow/kind", "computation\n");
    let lab = file(lab, "workflow/value", "c\n");
    let lab = file(lab, "workflow/inputs/00-x/kind", "input\n");
    let lab = file(lab, "workflow/inputs/00-x/value", "x\n");
    lab.mode(&format!("{dir}/computations/c/exec"), 0o755)
}

/// Two tasks in one repository, with computations of one name that are not the same.
fn two(one: &str, other: &str) -> Lab {
    let lab = with_task(with_task(Lab::empty(), one, "one"), other, "other");
    let mut lab = lab.data("x", "17\n").commit();
    lab.inputs.push("x".to_owned());
    lab
}

/// Returns the contents of a task's only output after an evaluation with these options.
#[track_caller]
fn evaluated(lab: &Lab, task: &str, options: &[&str]) -> String {
    let options = [&["-q", "--no-sync", "--task", task], options].concat();
    let ran = lab.ce_run(&options).exit(0);
    lab.stored(ran.lines()[0])
}

#[test]
fn two_computations_of_one_name_and_commit_are_told_apart() {
    let lab = two("a", "b");
    assert_eq!(evaluated(&lab, "a", &[]), "one\n");
    assert_eq!(evaluated(&lab, "b", &[]), "other\n");
    assert_eq!(lab.called(), ["a", "b"]);
    for (task, word) in [("a", "one\n"), ("b", "other\n")].repeat(2) {
        assert_eq!(evaluated(&lab, task, &[]), word);
        assert_eq!(evaluated(&lab, task, &["--at", "HEAD"]), word);
    }
    assert_eq!(lab.called(), [""; 0], "each has its own results");
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
    // The second has a name that says which tree it is of.
    let mut names: Vec<String> = fs::read_dir(lab.path("storage/c_c"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "commits")
        .collect();
    names.sort();
    let commit = &lab.git("task", &["rev-parse", "HEAD"])[..12];
    let tree = &lab.git("task", &["rev-parse", "HEAD:b/computations/c"])[..12];
    assert_eq!(names, [commit.to_owned(), format!("{commit}-{tree}")]);
}

#[test]
fn log_and_show_tell_versions_of_one_short_commit_apart() {
    let lab = two("a", "b");
    let commit = lab.git("task", &["rev-parse", "HEAD"]);
    let tree = lab.git("task", &["rev-parse", "HEAD:b/computations/c"]);
    let versions = [commit[..12].to_owned(), format!("{}-{}", &commit[..12], &tree[..12])];
    for (task, version) in ["a", "b"].iter().zip(&versions) {
        evaluated(&lab, task, &[]);
        let log = lab.run("ce", &["log", "-n1", "../storage"]).exit(0);
        assert!(log.stdout.contains(&format!("  {version}  ")), "{}", log.stdout);
        let chosen = lab.run("ce", &["log", "--commit", version, "-n1", "../storage"]).exit(0);
        assert_eq!(chosen.stdout, log.stdout);
        let json = lab.run("ce", &["log", "--json", "-n1", "../storage"]).exit(0).stdout;
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["version"], **version);
        assert_eq!(json["commit"], *commit);
        let name = json["name"].as_str().unwrap();
        let file = name.replacen(&format!("/{version}/"), &format!("/{version}/00/"), 1);
        let shown = lab.run("ce", &["show", "../storage", &file]).exit(0);
        let line = format!("  commit       {commit}\n  version      {version}\n");
        assert_eq!(shown.stdout.contains(&line), *task == "b", "{}", shown.stdout);
        let json = lab.run("ce", &["show", "--json", "../storage", &file]).exit(0).stdout;
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["record"]["version"], **version);
    }
}

#[test]
fn a_storage_without_owners_of_directories_tells_them_apart_as_well() {
    let lab = two("a", "b");
    assert_eq!(evaluated(&lab, "a", &[]), "one\n");
    fs::remove_file(lab.path("storage/c_c").join(version(&lab, "c_c")).join("version.json"))
        .unwrap();
    lab.called();
    assert_eq!(evaluated(&lab, "b", &[]), "other\n");
    assert_eq!(lab.called(), ["b"]);
    assert_eq!(evaluated(&lab, "a", &[]), "one\n");
    assert_eq!(lab.called(), [""; 0]);
}

#[test]
fn two_tasks_of_one_name_and_commit_have_jobs_of_their_own() {
    let lab = two("a/t", "b/t");
    for options in [&[][..], &["--at", "HEAD"]] {
        assert_eq!(evaluated(&lab, "a/t", options), "one\n");
        assert_eq!(evaluated(&lab, "b/t", options), "other\n");
        assert_eq!(evaluated(&lab, "a/t", options), "one\n");
    }
    let jobs: Vec<String> =
        lab.results().into_keys().filter(|name| name.starts_with("t_t/")).collect();
    assert_eq!(jobs.len(), 2, "{jobs:?}");
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
}

#[test]
fn a_job_whose_record_lacks_its_place_is_checked() {
    let lab = two("a/t", "b/t");
    assert_eq!(evaluated(&lab, "a/t", &[]), "one\n");
    for name in
        lab.storage().iter().filter(|name| name.starts_with("t_t/") && name.contains("/record/"))
    {
        let text = lab.stored(name).replace("  \"place\": \"a/t\",\n", "");
        assert!(!text.contains("place"));
        fs::write(lab.path("storage").join(name), text).unwrap();
    }
    assert_eq!(evaluated(&lab, "b/t", &[]), "other\n");
    assert_eq!(evaluated(&lab, "a/t", &[]), "one\n");
}

#[test]
fn results_that_were_copied_to_another_version_or_computation_are_not_served() {
    let lab = Lab::task("Inputs: 'x', 'y'\n(mul INPUT('x') INPUT('y'))[0]").commit();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["mul"]);
    let old = version(&lab, "c_mul");
    // Another version, under whose name somebody puts the results of the old one.
    let lab = lab.computation("mul", "a b", "product", r#"echo another >"$3""#).commit_again();
    let new = lab.git("task", &["rev-parse", "HEAD"])[..12].to_owned();
    lab.copy(&format!("storage/c_mul/{old}"), &format!("storage/c_mul/{new}"));
    lab.ce_run(&["-n"]).exit(3);
    let ran = lab.ce_run(&["--no-sync"]).exit(0).called(vec!["mul"]);
    let ran = ran.says("the record belongs to another name");
    assert!(ran.stdout.contains("computing..."));
    assert_eq!(lab.output(), "another\n");
    // The entry that was there is kept aside.
    assert!(lab.storage().iter().any(|name| name.contains(&format!("{new}/aside/"))));
}

#[test]
fn results_that_were_copied_to_another_computation_or_other_inputs_are_not_served() {
    let task = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('y'))[0]";
    let lab = Lab::task(task).commit();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["add", "mul"]);
    let storage = lab.path("storage");
    let commit = version(&lab, "c_mul");
    // As if `mul` had made what `add` made.
    lab.copy("storage/c_add", "storage/c_mul");
    let names = |room: &str| {
        let dir = storage.join(format!("c_mul/{commit}/{room}"));
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        names.collect::<Vec<_>>()
    };
    // And from these very inputs.
    for (room, end) in [("00", ""), ("record", ".json")] {
        let path = names(room).remove(0);
        fs::rename(&path, path.with_file_name(format!("ad48103e4fc7_5d9474c0309b{end}"))).unwrap();
    }
    fs::remove_dir_all(storage.join("t_task")).unwrap();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["mul"]).says("belongs to another name");
    assert_eq!(lab.output(), "90\n");
}

#[test]
fn outputs_without_records_belong_to_the_tree_that_their_directory_names() {
    let lab = two("a", "b");
    assert_eq!(evaluated(&lab, "a", &[]), "one\n");
    assert_eq!(evaluated(&lab, "b", &[]), "other\n");
    lab.called();
    fs::remove_dir_all(lab.path("storage/t_a")).unwrap();
    fs::remove_dir_all(lab.path("storage/t_b")).unwrap();
    for version in fs::read_dir(lab.path("storage/c_c")).unwrap() {
        let version = version.unwrap().path();
        if !version.ends_with("commits") {
            fs::remove_dir_all(version.join("record")).unwrap();
            fs::remove_file(version.join("version.json")).unwrap();
        }
    }
    lab.settle();
    // The second one comes first.
    assert_eq!(evaluated(&lab, "b", &[]), "other\n");
    assert_eq!(evaluated(&lab, "a", &[]), "one\n");
    assert_eq!(lab.called(), [""; 0]);
}

#[test]
fn a_job_is_not_reused_after_a_literal_has_changed() {
    let lab = Lab::task("Inputs: \n(mul FILE('my/file') FILE('my/file'))[0]").commit();
    let literal = lab.path("storage/my/file");
    fs::create_dir_all(lab.path("storage/tinputs")).unwrap();
    fs::create_dir_all(literal.parent().unwrap()).unwrap();
    for (number, square) in [("3\n", "9\n"), ("4\n", "16\n"), ("3\n", "9\n")] {
        fs::write(&literal, number).unwrap();
        for options in
            [&["--no-sync", "-q"][..], &["--no-sync", "-q", "--at", "HEAD"], &["-n", "-q"]]
        {
            let ran = lab.ce_run(options).exit(0);
            assert_eq!(lab.stored(ran.lines()[0]), square, "{options:?}");
        }
    }
}
