//! Clones of results repositories with large results, which are fetched when they are needed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use super::away::{chain, room};
use super::directories::{directories, manifest};
use super::large::{LFS, large, objects, overwrite};
use super::large_servers::{requests, url, without_lfs};
use super::transport::{VARIABLES, exchange, serve};
use super::{cloned, evaluate, large_servers, push};
use crate::lab::{Lab, files};
use crate::needs::needs;
use crate::program::Ran;

fn dry<'a>(lab: &'a Lab, clone: &str) -> Ran<'a> {
    let mut command = lab.command("ce-run");
    lab.finish(command.args(["-n", &format!("../{clone}"), "../data/x"]))
}

#[test]
fn a_clone_fetches_needed_files_and_executes_nothing() {
    let lab = large();
    push(&lab, LFS, "storage", "results.git").exit(0);
    cloned(&lab, "results.git", "clone", &[]);
    lab.run("ce", &["verify", "../clone"]).exit(0).says("0 wrong, 0 odd and harmless, 2 away");
    lab.unchanged(|| dry(&lab, "clone").exit(0).says("2 calls: 1 reused, 1 archived"));
    let mut command = lab.command("ce-run");
    command.args(["--out", "../out", "../clone", "../data/x"]).envs(VARIABLES);
    lab.finish(&mut command).exit(0).called(vec![]).says("2 calls: 2 reused");
    assert!(files(&lab.path("out"))["b"].len() > 1000, "the output, and no pointer");
    lab.run("ce", &["verify", "../clone"]).exit(0).says("0 wrong, 0 odd and harmless\n");
    let changes = lab.git("clone", &["status", "--porcelain", "large"]);
    assert_eq!(changes, "", "no pointer was replaced");
    evaluate(&lab, "clone").exit(0).called(vec![]).says("2 calls: 2 reused");
    assert!(lab.path("clone/tmp").read_dir().unwrap().next().is_none(), "nothing is left");
    push(&lab, &[], "clone", "results.git").exit(0).shows("nothing is new to ");
}

/// A run in a clone with another second input, for which `mix` has to be executed.
fn with_z<'a>(lab: &'a Lab, clone: &str) -> Ran<'a> {
    let mut command = lab.command("ce-run");
    lab.finish(command.args([&format!("../{clone}"), "../data/x", "../data/z"]))
}

#[test]
fn a_clone_fetches_only_what_is_needed() {
    let lab = chain().data("x", "x".repeat(400));
    lab.ce_run(&[]).exit(0).called(vec!["first", "mix", "second", "third"]);
    push(&lab, LFS, "storage", "results.git").exit(0).shows("3 large outputs");
    cloned(&lab, "results.git", "clone", &[]);
    cloned(&lab, "results.git", "other", &[]);
    evaluate_both(&lab, "clone").exit(0).called(vec![]).says("4 calls: 2 reused, 2 away");
    with_z(&lab, "clone").exit(0).called(vec!["mix"]).says("4 calls: 2 reused, 1 away, 1 computed");
    assert_eq!(room(&lab, "clone", "c_third", "00").len(), 1);
    assert_eq!(room(&lab, "clone", "c_second", "00"), [""; 0]);
    fs::remove_dir_all(lab.path("results.git/lfs")).unwrap();
    let told = with_z(&lab, "other").exit(1).called(vec![]);
    told.says("the Git LFS object of c_third/")
        .says("cannot be obtained: the repository does not have it")
        .says("try: make git lfs fetch -X '' work in the clone; or remove large/");
    fs::remove_dir_all(lab.path("other/large")).unwrap();
    with_z(&lab, "other").exit(0).called(vec!["mix", "second", "third"]);
}

/// `ce audit` of a clone.
fn audit<'a>(lab: &'a Lab, arguments: &[&str]) -> Ran<'a> {
    lab.run("ce", &[&["audit", "--no-isolate"], arguments].concat())
}

#[test]
fn an_audit_fetches_the_inputs_of_calls() {
    let lab = chain().data("x", "x".repeat(400));
    lab.ce_run(&[]).exit(0).called(vec!["first", "mix", "second", "third"]);
    let options = [LFS, &["--inputs"]].concat();
    push(&lab, &options, "storage", "results.git").exit(0).shows("3 large outputs");
    for clone in ["clone", "other"] {
        cloned(&lab, "results.git", clone, &[]);
    }
    let here = |owner: &str| room(&lab, "clone", owner, "00").len();
    lab.unchanged(|| audit(&lab, &["-n", "../clone"]).exit(0).says("4 calls to be executed again"));
    audit(&lab, &["../clone", "--sample", "1", "--budget", "0s"]).exit(0);
    let calls = files(&lab.path("clone")).into_keys();
    let second =
        calls.into_iter().find(|it| it.starts_with("c_second/") && it.contains("/record/"));
    let second = second.unwrap().replace("/record/", "/").replace(".json", "");
    audit(&lab, &["../clone", &second]).exit(0).called(vec!["second"]).says("1 agree");
    assert_eq!(["c_second", "c_third", "c_mix"].map(here), [0, 0, 0], "it reads none of these");
    let told = audit(&lab, &["../clone"]).exit(0).called(vec!["first", "mix", "second", "third"]);
    told.says("4 calls audited: 4 agree");
    assert_eq!(["c_second", "c_third", "c_mix"].map(here), [1, 1, 0]);
    // The cause is reported once; a call that reads nothing that is away is executed.
    lab.git("other", &["remote", "remove", "origin"]);
    let told = audit(&lab, &["../other"]).exit(1).called(vec!["first", "second"]);
    let told = told.says("2 calls audited: 2 agree, 2 could not be executed");
    let cause = "large outputs are away, and the clone has no remote origin";
    assert_eq!(told.stdout.matches(cause).count(), 1, "{}", told.stdout);
    told.says(&format!("ce: 1 more call not audited for the same reason: {cause}"));
}

#[test]
fn a_read_only_storage_ends_an_audit_that_fetches() {
    let lab = chain().data("x", "x".repeat(400));
    lab.ce_run(&[]).exit(0);
    lab.called();
    push(&lab, &[LFS, &["--inputs"]].concat(), "storage", "results.git").exit(0);
    cloned(&lab, "results.git", "clone", &[]);
    let version = lab.path("clone/c_second").read_dir().unwrap().next().unwrap().unwrap().path();
    // Fetched files would have to be in this directory.
    fs::write(version.join("00"), "a file\n").unwrap();
    let told = audit(&lab, &["../clone"]).exit(5).called(vec!["first", "mix", "second"]);
    told.says("3 calls audited: 3 agree, 1 could not be executed").shows("\n  try: ");
}

#[test]
fn an_audit_fetches_from_a_server_and_lists_missing_objects() {
    needs(&["git-lfs"]);
    let lab = chain().data("x", "x".repeat(400));
    lab.ce_run(&[]).exit(0);
    lab.called();
    let url = url(serve(&lab));
    let arguments = [&["push"], LFS, &["--inputs", "../storage", &url]].concat();
    exchange(&lab, &arguments, &VARIABLES).exit(0).shows("3 large outputs");
    fs::create_dir(lab.path("clone")).unwrap();
    lab.git("clone", &["clone", "--quiet", "--branch", "results", &url, "."]);
    let path = without_lfs(&lab);
    let arguments = ["audit", "--no-isolate", "../clone"];
    let without = [&VARIABLES[..], &[("PATH", &*path)]].concat();
    let told = exchange(&lab, &arguments, &without).exit(1).called(vec!["first", "second"]);
    let told = told.says("2 calls audited: 2 agree, 2 could not be executed");
    assert_eq!(told.stdout.matches("there is no git lfs here").count(), 1, "{}", told.stdout);
    told.shows("\n  try: install git-lfs");
    let told = exchange(&lab, &arguments, &VARIABLES).exit(0);
    told.called(vec!["first", "mix", "second", "third"]).says("4 calls audited: 4 agree");
}

#[test]
fn an_audit_names_an_absent_directory_whose_member_is_read() {
    let text = "Inputs: 'x'\n(twice MEMBER('file' (make INPUT('x'))))";
    let mut lab = Lab::task(text)
        .computation("make", "a", "tree/", r#"mkdir -p "$2"; cp "$1" "$2/file""#)
        .computation("twice", "a", "b", r#"cat "$1" "$1" >"$2""#)
        .data("x", "x".repeat(2000));
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    super::repository(&lab, "results.git");
    lab.ce_run(&[]).exit(0);
    lab.called();
    push(&lab, &[LFS, &["--inputs"]].concat(), "storage", "results.git").exit(0);
    cloned(&lab, "results.git", "clone", &[]);
    let told = audit(&lab, &["../clone"]).exit(0).called(vec![]);
    told.says(
        "2 calls cannot be audited: its job cannot be evaluated without outputs that are away",
    )
    .says("try: run its task again, which fetches them or makes them again");
    evaluate(&lab, "clone").exit(0).called(vec![]);
    audit(&lab, &["../clone"]).exit(0).says("2 calls audited: 2 agree");
}

#[test]
fn the_cause_that_nothing_can_be_fetched_is_reported_once() {
    let script = |name: &str| format!(r#"cat "$1" "$1" "$1" >"$2"; echo {name} >>"$2""#);
    let mut lab =
        Lab::task("Inputs: 'x'\nALL((high INPUT('x')) (wide INPUT('x')) (deep INPUT('x')))")
            .computation("high", "a", "b", &script("high"))
            .computation("wide", "a", "b", &script("wide"))
            .computation("deep", "a", "b", &script("deep"))
            .data("x", "x".repeat(400));
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    super::repository(&lab, "results.git");
    lab.ce_run(&[]).exit(0);
    lab.called();
    push(&lab, LFS, "storage", "results.git").exit(0).shows("3 large outputs");
    cloned(&lab, "results.git", "clone", &[]);
    let failed = |cause: &str, hint: &str| {
        let told = evaluate(&lab, "clone").exit(1).called(vec![]);
        assert_eq!(told.stderr.matches(&format!("failed: {cause}")).count(), 1, "{}", told.stderr);
        assert_eq!(told.stderr.matches(hint).count(), 1, "{}", told.stderr);
        told.says(&format!("2 more calls failed for the same reason: {cause}"));
    };
    lab.git("clone", &["remote", "remove", "origin"]);
    let none = "large outputs are away, and the clone has no remote origin";
    failed(none, "try: git remote add origin URL");
    lab.git("clone", &["remote", "add", "origin", "/nowhere"]);
    failed("git lfs of /nowhere failed: ", "try: git remote set-url origin URL");
}

/// A run in a clone with the inputs of the first one.
fn evaluate_both<'a>(lab: &'a Lab, clone: &str) -> Ran<'a> {
    let mut command = lab.command("ce-run");
    lab.finish(command.args([&format!("../{clone}"), "../data/x", "../data/y"]))
}

#[test]
fn directories_come_as_their_archives() {
    let lab = directories().data("x", "x".repeat(2000));
    lab.ce_run(&[]).exit(0);
    lab.called();
    push(&lab, LFS, "storage", "results.git").exit(0);
    cloned(&lab, "results.git", "clone", &[]);
    // Two runs at once put each directory into its place once.
    std::thread::scope(|scope| {
        let runs = [(); 2].map(|()| scope.spawn(|| evaluate(&lab, "clone").status));
        assert_eq!(runs.map(|run| run.join().unwrap().code()), [Some(0); 2]);
    });
    assert_eq!(lab.called(), [""; 0]);
    assert_eq!(manifest(&lab, "clone", "c_both"), manifest(&lab, "storage", "c_both"));
    lab.run("ce", &["verify", "../clone"]).exit(0).says("0 wrong, 0 odd and harmless, 2 away");
    assert!(lab.path("clone/tmp").read_dir().unwrap().next().is_none(), "nothing is left");
}

#[test]
fn wrong_objects_are_never_used() {
    let lab = large();
    push(&lab, LFS, "storage", "results.git").exit(0);
    cloned(&lab, "results.git", "clone", &[]);
    let [object] = &objects(&lab, "results.git/lfs")[..] else { panic!("one object") };
    overwrite(object, "y".repeat(1600).as_bytes());
    let told = evaluate(&lab, "clone").exit(1).called(vec![]);
    told.says("the Git LFS object of c_twice/")
        .says(" is not what the record says")
        .says("try: remove large/");
    // git lfs fetch and git lfs pull have put it into the clone.
    let rest = object.strip_prefix(lab.path("results.git")).unwrap();
    let own = lab.path("clone/.git").join(rest);
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, "x".repeat(1600)).unwrap();
    lab.copy("clone", "more");
    evaluate(&lab, "clone").exit(0).called(vec![]).says("2 calls: 2 reused");
    fs::remove_dir_all(lab.path("more/.git/lfs")).unwrap();
    let [pointer] = &objects(&lab, "more/large")[..] else { panic!("one pointer") };
    fs::write(pointer, "x".repeat(1600)).unwrap();
    evaluate(&lab, "more").exit(0).called(vec![]).says("2 calls: 2 reused");
}

#[test]
fn another_commit_takes_over_what_is_fetched() {
    if !crate::isolation::is_possible() {
        return;
    }
    let lab = super::lab().data("x", "x".repeat(400)).isolated();
    lab.ce_run(&[]).exit(0).says("2 calls: 2 computed");
    push(&lab, LFS, "storage", "results.git").exit(0);
    cloned(&lab, "results.git", "clone", &[]);
    let lab = lab.file("README", "more\n").commit_again();
    let mut command = lab.command("ce-run");
    let ran = lab.finish(command.args(["--isolate", "../clone", "../data/x"]));
    ran.exit(0).says("2 calls: 2 taken over");
}

/// A run in a clone of a repository at a server.
fn run<'a>(lab: &'a Lab, clone: &str) -> Ran<'a> {
    let mut command = lab.command("ce-run");
    lab.finish(command.args([&format!("../{clone}"), "../data/x"]).envs(VARIABLES))
}

#[test]
fn a_clone_from_a_server_fetches_by_git_lfs() {
    needs(&["git-lfs"]);
    let lab = large();
    let url = url(serve(&lab));
    large_servers::push(&lab, &url).exit(0);
    requests(&lab);
    // git itself fetches nothing.
    fs::create_dir(lab.path("clone")).unwrap();
    lab.git("clone", &["clone", "--quiet", "--branch", "results", &url, "."]);
    lab.copy("clone", "other");
    assert_eq!(requests(&lab), [""; 0]);
    run(&lab, "clone").exit(0).called(vec![]).says("2 calls: 2 reused");
    assert_eq!(requests(&lab).iter().filter(|it| it.starts_with("GET ")).count(), 1);
    assert!(lab.path("clone/tmp").read_dir().unwrap().next().is_none(), "nothing is left");
    let [object] = &objects(&lab, "objects")[..] else { panic!("one object") };
    fs::remove_file(object).unwrap();
    let told = run(&lab, "other").exit(1).called(vec![]);
    let told =
        told.says("the Git LFS object of c_twice/").says("cannot be obtained: git lfs fetch of");
    assert!(!told.stderr.contains("hunter2"), "{}", told.stderr);
    // Without git-lfs, an error says what to do.
    let variables = [VARIABLES[0], VARIABLES[1], ("PATH", &*without_lfs(&lab))];
    let mut command = lab.command("ce-run");
    let told = lab.finish(command.args(["../other", "../data/x"]).envs(variables));
    told.exit(1).called(vec![]).says("there is no git lfs here").says("try: install git-lfs");
}

#[test]
fn the_files_that_a_run_needs_are_fetched_together() {
    needs(&["git-lfs"]);
    let names: Vec<String> = (0..20).map(|number| format!("i{number}")).collect();
    let inputs = names.iter().map(|name| format!("'{name}', ")).collect::<String>();
    let calls = names.iter().map(|it| format!(" (wrap (make INPUT('{it}'))[0] INPUT('y'))[0]"));
    let text = format!("Inputs: {inputs}'y'\nALL({})", calls.collect::<String>());
    let mut lab = Lab::task(&text)
        .computation("make", "a", "b", r#"printf '%s %01100d' "$(cat "$1")" 0 >"$2""#)
        .computation("wrap", "a\nb", "c", r#"cat "$1" "$2" >"$3""#)
        .data("y", "y\n")
        .data("z", "z\n");
    for (number, name) in names.iter().enumerate() {
        lab = lab.data(name, format!("{number}\n"));
    }
    lab.inputs = names.iter().cloned().chain(["y".to_owned()]).collect();
    let lab = lab.commit();
    super::repository(&lab, "results.git");
    lab.ce_run(&[]).exit(0);
    lab.called();
    let url = url(serve(&lab));
    large_servers::push(&lab, &url).exit(0).shows("40 large outputs");
    fs::create_dir(lab.path("clone")).unwrap();
    lab.git("clone", &["clone", "--quiet", "--branch", "results", &url, "."]);
    requests(&lab);
    let run = |options: &[&str], last: &str| {
        let mut command = lab.command("ce-run");
        command.args(options).arg("../clone").args(names.iter().map(|it| format!("../data/{it}")));
        lab.finish(command.arg(format!("../data/{last}")).envs(VARIABLES))
    };
    let asked = || {
        let requests = requests(&lab);
        let count = |begin: &str| requests.iter().filter(|it| it.starts_with(begin)).count();
        (count("POST "), count("GET "))
    };
    // Outputs of the job; two are lost.
    let is_output = |path: &PathBuf| fs::read(path).unwrap().ends_with(b"y\n");
    let outputs: Vec<PathBuf> = objects(&lab, "objects").into_iter().filter(is_output).collect();
    let lost = [&outputs[3], &outputs[7]];
    let contents = lost.map(|path| fs::read(path).unwrap());
    lost.iter().for_each(|path| fs::remove_file(path).unwrap());
    let told = run(&["-j1"], "y").exit(1).called(vec![]);
    let told = told.says("40 calls: 18 reused, 20 away, 2 failed");
    assert_eq!(asked(), (1, 18));
    for path in lost {
        // Each error is about its own object.
        let oid = path.file_name().unwrap().to_str().unwrap();
        let lines = told.stderr.lines().filter(|line| line.contains(oid));
        let lines: Vec<&str> = lines.collect();
        assert!(matches!(lines[..], [line] if !line.contains("; ")), "{lines:?}");
    }
    lost.iter().zip(contents).for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    run(&["-j1"], "y").exit(0).called(vec![]).says("40 calls: 20 reused, 20 away");
    assert_eq!(asked(), (1, 2));
    // Inputs of calls that are executed.
    let told = run(&["-j1"], "z").exit(0).called(vec!["wrap"; 20]);
    told.says("40 calls: 20 reused, 20 computed");
    assert_eq!(asked(), (1, 20));
}

#[test]
fn objects_that_may_not_be_read_are_an_error_that_says_so() {
    let lab = large();
    push(&lab, LFS, "storage", "results.git").exit(0);
    cloned(&lab, "results.git", "clone", &[]);
    let Some(user) = lab.plain_user() else { return };
    let change = |program: &str, to: &str| {
        let status = Command::new(program).args(["-R", to]).arg(lab.path("")).status().unwrap();
        assert!(status.success());
    };
    change("chmod", "a+rwX");
    if rustix::process::getuid().is_root() {
        change("chown", &user.to_string());
    }
    let [object] = &objects(&lab, "results.git/lfs")[..] else { panic!("one object") };
    let ce = |program: &str, arguments: &[&str]| {
        lab.finish(lab.command(program).args(arguments).uid(user))
    };
    fs::set_permissions(object, fs::Permissions::from_mode(0o000)).unwrap();
    let told = ce("ce-run", &["../clone", "../data/x"]).exit(1).called(vec![]);
    told.says("the Git LFS object of c_twice/")
        .says(" cannot be obtained: LAB/clone/../results.git/lfs/objects/")
        .says(" cannot be read: Permission denied");
    let told = ce("ce", &["pull", "../other", "../results.git"]).exit(1);
    told.shows("should be a Git LFS object there, and is not: LAB/results.git/lfs/objects/")
        .shows(" cannot be read: Permission denied");
    fs::set_permissions(object, fs::Permissions::from_mode(0o444)).unwrap();
    ce("ce-run", &["../clone", "../data/x"]).exit(0).called(vec![]).says("2 calls: 2 reused");
    ce("ce", &["pull", "../other", "../results.git"]).exit(0).shows("pulled 1 call (1.6 KiB)");
}
