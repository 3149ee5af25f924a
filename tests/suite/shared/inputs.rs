//! Inputs of jobs: they stay here unless the user says otherwise.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::{cloned, lab, listed, pull, push, repository};
use crate::lab::{Lab, files};

/// The task inputs that a repository has.
fn inputs(lab: &Lab, repository: &str) -> Vec<String> {
    let lines = listed(lab, repository).into_iter();
    let names = lines.filter_map(|line| Some(line.split_once('\t')?.1.to_owned()));
    names.filter(|name| name.starts_with("tinputs/")).collect()
}

/// The archives of directories that a repository has.
fn archives(lab: &Lab, repository: &str) -> Vec<String> {
    listed(lab, repository).into_iter().filter(|it| it.contains("\tdirectories/")).collect()
}

/// The modes of task inputs and of all that is in them.
fn modes(lab: &Lab, storage: &str) -> Vec<(PathBuf, u32)> {
    let storage = lab.path(storage);
    let entries = walkdir::WalkDir::new(storage.join("tinputs")).sort_by_file_name();
    let entries = entries.into_iter().map(Result::unwrap);
    let mode = |it: &walkdir::DirEntry| it.metadata().unwrap().permissions().mode();
    let place = |it: &walkdir::DirEntry| it.path().strip_prefix(&storage).unwrap().to_owned();
    entries.map(|it| (place(&it), mode(&it))).collect()
}

#[test]
fn inputs_are_pushed_on_request() {
    let lab = lab();
    lab.ce_run(&[]).exit(0);
    push(&lab, &[], "storage", "results.git").exit(0).shows("pushed 2 calls, 1 job (12 B)");
    assert_eq!(inputs(&lab, "results.git"), [""; 0]);
    push(&lab, &["-n", "--inputs"], "storage", "results.git").exit(3).shows("push 1 input (2 B)");
    let told = push(&lab, &["--inputs", "--json"], "storage", "results.git").exit(0);
    told.shows(r#""calls":0,"#).shows(r#""inputs":1,"#);
    push(&lab, &["--inputs"], "storage", "results.git").exit(0).shows("nothing is new to ");
    repository(&lab, "others.git");
    push(&lab, &["--inputs"], "storage", "others.git")
        .exit(0)
        .shows("2 calls, 1 job, 1 input (14 B)");
    assert_eq!(listed(&lab, "results.git"), listed(&lab, "others.git"));
    // A clone has all that an execution needs.
    cloned(&lab, "results.git", "clone", &[]);
    let [name] = &inputs(&lab, "results.git")[..] else { panic!("one input") };
    assert_eq!(fs::read_to_string(lab.path("clone").join(name)).unwrap(), "x\n");
    fs::remove_file(lab.path("data/x")).unwrap();
    let given = format!("../clone/{name}");
    let mut run = lab.command("ce-run");
    lab.finish(run.args(["../clone", &given])).exit(0).says("2 calls: 2 reused");
    lab.run("ce", &["audit", "../clone"]).exit(0).says("2 calls audited: 2 agree");
    lab.run("ce", &["verify", "../clone"]).exit(0).says("0 wrong, 0 odd");
    assert_eq!(lab.git("clone", &["status", "--porcelain", "tinputs"]), "");
    pull(&lab, &[], "other", "results.git").exit(0).shows("pulled 2 calls, 1 job");
    assert!(!lab.path("other").join(name).exists(), "a pull leaves it there");
}

#[test]
fn input_directories_are_pushed_as_archives_and_a_clone_unpacks_them() {
    let mut lab = Lab::task("Inputs: 'tree'\n(count INPUT('tree'))[0]")
        .computation("count", "a", "d", r#"find "$1" -type f | wc -l >"$2""#)
        .data("many/file", "z\n")
        .data("many/below/other", "y\n");
    lab.inputs = vec!["many".to_owned()];
    let lab = lab.commit();
    fs::create_dir(lab.path("data/many/empty")).unwrap();
    repository(&lab, "results.git");
    lab.ce_run(&[]).exit(0);
    push(&lab, &["--inputs"], "storage", "results.git").exit(0).shows("1 call, 1 job, 1 input (");
    push(&lab, &["--inputs"], "storage", "results.git").exit(0).shows("nothing is new to ");
    assert_eq!(inputs(&lab, "results.git"), [""; 0]);
    assert_eq!(archives(&lab, "results.git").len(), 1);
    // The user's directory is gone, and a clone has it.
    fs::remove_dir_all(lab.path("data/many")).unwrap();
    cloned(&lab, "results.git", "clone", &[]);
    // A dry run, and a push to where the archive is, unpack nothing.
    lab.run("ce", &["audit", "-n", "../clone"])
        .exit(0)
        .says("in its archive only, which a dry run");
    for options in [&["-n", "--inputs"][..], &["--inputs"]] {
        push(&lab, options, "clone", "results.git").exit(0).shows("nothing is new to ");
    }
    repository(&lab, "others.git");
    push(&lab, &["-n", "--inputs"], "clone", "others.git").exit(3).shows("1 job, 1 input (");
    assert!(!lab.path("clone/tinputs").exists());
    for _ in 0..2 {
        lab.run("ce", &["audit", "../clone"]).exit(0).says("1 call audited: 1 agree");
    }
    assert_eq!(modes(&lab, "clone"), modes(&lab, "storage"));
    push(&lab, &["--inputs"], "clone", "others.git").exit(0).shows("1 job, 1 input (");
    assert_eq!(archives(&lab, "others.git"), archives(&lab, "results.git"));
    lab.run("ce", &["verify", "../clone"]).exit(0).says("0 wrong, 0 odd");
    assert_eq!(lab.git("clone", &["status", "--porcelain", "tinputs", "directories"]), "");
    // A damaged archive does not count.
    cloned(&lab, "results.git", "damaged", &[]);
    for (name, mut contents) in files(&lab.path("damaged/directories")) {
        *contents.last_mut().unwrap() ^= 1;
        fs::write(lab.path("damaged/directories").join(name), contents).unwrap();
    }
    let told = lab.run("ce", &["audit", "../damaged"]).exit(0);
    told.says("an input of it is not in the storage");
}

#[test]
fn secret_and_too_large_inputs_are_not_pushed() {
    let token = format!("{}{}\n", "ghp_", "a".repeat(36));
    let mut lab =
        Lab::task("Inputs: 'x', 'y', 'tree'\n(count INPUT('x') INPUT('y') INPUT('tree'))[0]")
            .computation("count", "a\nb\nc", "d", r#"ls "$3" | cat "$1" "$2" - | wc -l >"$4""#)
            .data("x", &token)
            .data("y", "y\n".repeat(600))
            .data("many/file", &token);
    lab.inputs = ["x", "y", "many"].map(str::to_owned).to_vec();
    let lab = lab.commit();
    repository(&lab, "results.git");
    lab.ce_run(&[]).exit(0);
    let told = push(&lab, &["--inputs", "--limit", "1K"], "storage", "results.git").exit(1);
    told.shows("pushed 1 call, 1 job (4 B)")
        .shows("seems to hold a token of GitHub")
        .shows("/file seems to hold a token of GitHub")
        .shows("a file has 1.2 KiB, and the limit is 1.0 KiB");
    assert_eq!(inputs(&lab, "results.git"), [""; 0]);
}
