//! Packages and pages of clones of results repositories with large results: `ce export` fetches what it needs, and what only looks fetches
//! nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, kill_process_group};

use super::away::{chain, room};
use super::directories::{MAKE, directories};
use super::large::{LFS, large, objects, overwrite};
use super::large_servers::{requests, url, without_lfs};
use super::transport::{Stall, VARIABLES, serve};
use super::{cloned, evaluate, large_servers, pull, push, repository};
use crate::lab::{Lab, files};
use crate::needs::needs;
use crate::program::{Ran, Running};

/// The short name of the only job that a storage has.
fn job(lab: &Lab, storage: &str) -> String {
    let names = files(&lab.path(storage)).into_keys();
    let mut records = names.filter(|name| name.starts_with("t_") && name.contains("/record/"));
    records.next().unwrap().replace("/record/", "/").replace(".json", "")
}

/// `ce export` of the job of a storage into a directory beside it.
fn export<'a>(lab: &'a Lab, options: &[&str], storage: &str, dir: &str) -> Ran<'a> {
    let (job, places) = (job(lab, storage), [storage, dir].map(|name| format!("../{name}")));
    let mut command = lab.command("ce");
    command.arg("export").args(options).args([&places[0], &job, &places[1]]);
    lab.finish(command.envs(VARIABLES))
}

/// The files of a package, but for the page that names the storage.
fn package(lab: &Lab, dir: &str) -> Vec<(String, Vec<u8>)> {
    files(&lab.path(dir)).into_iter().filter(|(name, _)| name != "README.md").collect()
}

#[test]
fn an_export_fetches_what_it_needs_once() {
    let lab = large();
    push(&lab, LFS, "storage", "results.git").exit(0);
    cloned(&lab, "results.git", "clone", &[]);
    export(&lab, &[], "storage", "here").exit(0);
    let told = export(&lab, &[], "clone", "out").exit(0).called(vec![]);
    told.says("fetched 1 large output (1.6 KiB) into the storage").shows("../out/b\n");
    assert_eq!(package(&lab, "out"), package(&lab, "here"));
    lab.run("ce", &["verify", "../clone"]).exit(0).says("0 wrong, 0 odd and harmless\n");
    assert!(lab.path("clone/tmp").read_dir().unwrap().next().is_none(), "nothing is left");
    // All is in its place, the job's output, too.
    let told = lab.unchanged(|| export(&lab, &[], "clone", "again").exit(0));
    assert!(!told.stderr.contains("fetched"), "{}", told.stderr);
    evaluate(&lab, "clone").exit(0).called(vec![]).says("2 calls: 2 reused");
    push(&lab, &[], "clone", "results.git").exit(0).shows("nothing is new to ");
}

#[test]
fn intermediate_results_are_fetched_if_they_are_exported() {
    let lab = chain().data("x", "x".repeat(400));
    lab.ce_run(&[]).exit(0);
    push(&lab, LFS, "storage", "results.git").exit(0).shows("3 large outputs");
    cloned(&lab, "results.git", "clone", &[]);
    export(&lab, &[], "clone", "out").exit(0).says("fetched 1 large output");
    assert_eq!(room(&lab, "clone", "c_third", "00"), [""; 0]);
    export(&lab, &["--all"], "clone", "all").exit(0).says("fetched 2 large outputs");
    export(&lab, &["--all"], "storage", "here").exit(0);
    assert_eq!(package(&lab, "all"), package(&lab, "here"));
    cloned(&lab, "results.git", "other", &[]);
    let crated = ["--crate", "--license", "CC-BY-4.0", "--author", "Ada"];
    export(&lab, &crated, "other", "other.zip").exit(0).says("fetched 1 large output");
    export(&lab, &crated, "clone", "clone.zip").exit(0);
    let [other, clone] = ["other.zip", "clone.zip"].map(|name| fs::read(lab.path(name)).unwrap());
    assert!(other == clone, "it does not say what was fetched");
}

#[test]
fn directories_of_clones_are_exported_from_objects_and_from_archives() {
    for lfs in [LFS, &[]] {
        let lab = directories().data("x", "x".repeat(2000));
        lab.ce_run(&[]).exit(0);
        lab.called();
        push(&lab, lfs, "storage", "results.git").exit(0);
        cloned(&lab, "results.git", "clone", &[]);
        let told = export(&lab, &["--all"], "clone", "out").exit(0).called(vec![]);
        // Two calls have equal directories.
        assert_eq!(told.stderr.contains("fetched 3 large outputs"), !lfs.is_empty());
        export(&lab, &["--all"], "storage", "here").exit(0);
        assert_eq!(package(&lab, "out"), package(&lab, "here"));
        lab.run("ce", &["verify", "../clone"]).exit(0).says("0 wrong, 0 odd and harmless\n");
    }
}

#[test]
fn members_and_directories_of_sweeps_come_with_the_job() {
    let text = "Inputs: 'x'\nALL(MEMBER('top' (make INPUT('x'))[0])\
                SWEEP((make j) :over j 4 5)[01])";
    let mut lab =
        Lab::task(text).computation("make", "a", "tree/", MAKE).data("x", "x".repeat(2000));
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    repository(&lab, "results.git");
    lab.ce_run(&[]).exit(0);
    lab.called();
    push(&lab, LFS, "storage", "results.git").exit(0);
    cloned(&lab, "results.git", "clone", &[]);
    // The directory of a table, which is made of the outputs of its points, is there for the job.
    export(&lab, &[], "clone", "out").exit(0).says("fetched 2 large outputs");
    evaluate(&lab, "clone").exit(0).called(vec![]);
    export(&lab, &[], "storage", "here").exit(0);
    assert_eq!(package(&lab, "out"), package(&lab, "here"));
}

#[test]
fn an_object_that_cannot_be_obtained_stops_the_export() {
    let lab = large();
    push(&lab, LFS, "storage", "results.git").exit(0);
    let [object] = &objects(&lab, "results.git/lfs")[..] else { panic!("one object") };
    cloned(&lab, "results.git", "clone", &[]);
    overwrite(object, "y".repeat(1600).as_bytes());
    let told = export(&lab, &[], "clone", "out").exit(5);
    told.says("the Git LFS object of c_twice/").says("is not what the record says");
    fs::remove_file(object).unwrap();
    let told = export(&lab, &[], "clone", "out").exit(5);
    told.says("cannot be obtained: the repository does not have it")
        .says("try: make git lfs fetch");
    lab.git("clone", &["remote", "set-url", "origin", "/nowhere"]);
    let told = export(&lab, &[], "clone", "out").exit(5).says("git lfs of /nowhere failed: ");
    told.says("try: git remote set-url origin URL");
    lab.git("clone", &["remote", "remove", "origin"]);
    export(&lab, &[], "clone", "out").exit(5).says("the clone has no remote origin");
    // Without a pointer, it is simply away.
    fs::remove_dir_all(lab.path("clone/large")).unwrap();
    let told = lab.unchanged(|| export(&lab, &[], "clone", "out").exit(5));
    told.says("it is away: known, and not here").says("; ce pull brings what a repository has; ");
    assert!(!lab.path("out").exists());
    // So is what a pull left there, until another one brings it.
    push(&lab, LFS, "storage", "results.git").exit(0);
    fs::write(object, "x".repeat(1600)).unwrap();
    pull(&lab, &["--limit", "1K"], "known", "results.git").exit(0);
    export(&lab, &[], "known", "out").exit(5).says("; ce pull brings what a repository has; ");
    pull(&lab, &[], "known", "results.git").exit(0);
    let told = export(&lab, &[], "known", "out").exit(0);
    assert!(!told.stderr.contains("fetched"), "{}", told.stderr);
}

#[test]
fn a_clone_that_may_not_be_written_is_an_error() {
    let lab = large();
    push(&lab, LFS, "storage", "results.git").exit(0);
    cloned(&lab, "results.git", "clone", &[]);
    let Some(user) = lab.plain_user() else { return };
    let mode = |mode: &str| {
        let mut chmod = Command::new("chmod");
        assert!(chmod.args(["-R", mode]).arg(lab.path("")).status().unwrap().success());
    };
    mode("a+rX,a-w");
    let job = job(&lab, "clone");
    let mut command = lab.command("ce");
    command.args(["export", "../clone", &job, "/tmp/never-made-by-a-test"]).uid(user);
    let told = lab.unchanged(|| lab.finish(&mut command).exit(5));
    mode("u+w");
    told.says("cannot make the directory LAB/clone/tmp/")
        .says("because: Permission denied")
        .says("try: check who may write there");
}

#[test]
fn read_only_commands_fetch_nothing_and_say_how() {
    let lab = large();
    push(&lab, LFS, "storage", "results.git").exit(0);
    cloned(&lab, "results.git", "clone", &[]);
    pull(&lab, &["--limit", "1K"], "known", "results.git").exit(0);
    let (job, data) = (job(&lab, "clone"), "../data/x");
    let (version, inputs) = job.rsplit_once('/').unwrap();
    let file = format!("{version}/00/{inputs}");
    let show = |storage: &str| lab.run("ce", &["show", &format!("../{storage}"), &file]).exit(0);
    lab.unchanged(|| {
        show("clone").shows("it is away: known, and not here; ce export and ce run fetch it")
    });
    show("known").shows("ce pull brings it if a repository has it, else ce run makes it again");
    for arguments in [&["--task", ".", "../clone", data][..], &["../clone", &file]] {
        let arguments = [&["report", "--force", "-o", "../page.html"], arguments].concat();
        let told = lab.run("ce", &arguments).exit(0);
        told.says("warning: 1 output is away: ce export or ce run fetches it");
        let page = fs::read_to_string(lab.path("page.html")).unwrap();
        assert!(page.contains("and not in the storage: ce export or ce run fetches them."));
    }
    lab.run("ce", &["verify", "../clone"]).exit(0).says("2 away");
    export(&lab, &[], "clone", "out").exit(0);
    let told = lab.run("ce", &["report", "--force", "-o", "../page.html", "../clone", &file]);
    assert!(!told.exit(0).stderr.contains("away"));
    show("clone").shows("as recorded");
}

/// A clone of a repository at a server, whose URL it has.
fn clone_of_server(lab: &Lab) {
    let url = url(serve(lab));
    large_servers::push(lab, &url).exit(0);
    fs::create_dir(lab.path("clone")).unwrap();
    lab.git("clone", &["clone", "--quiet", "--branch", "results", &url, "."]);
    requests(lab);
}

#[test]
fn objects_of_a_server_are_fetched_by_git_lfs() {
    needs(&["git-lfs"]);
    let lab = large();
    clone_of_server(&lab);
    lab.copy("clone", "other");
    let told = export(&lab, &[], "clone", "out").exit(0);
    told.says("fetched 1 large output (1.6 KiB) into the storage");
    assert_eq!(requests(&lab).iter().filter(|it| it.starts_with("GET ")).count(), 1);
    let mut command = lab.command("ce");
    command.args(["export", "../other", &job(&lab, "other"), "../more"]).envs(VARIABLES);
    let told = lab.finish(command.env("PATH", without_lfs(&lab))).exit(5);
    told.says("there is no git lfs here").says("try: install git-lfs");
    fs::write(lab.path("refused"), "404 POST").unwrap();
    let told =
        export(&lab, &[], "other", "more").exit(5).says("git lfs fetch of http://127.0.0.1:");
    assert!(!told.stderr.contains("hunter2"), "{}", told.stderr);
    assert!(!lab.path("more").exists());
}

#[test]
fn an_interrupted_fetch_goes_on_the_next_time() {
    needs(&["git-lfs"]);
    let lab = large();
    clone_of_server(&lab);
    let export = || {
        let mut command = lab.command("ce");
        command.args(["export", "../clone", &job(&lab, "clone"), "../out"]);
        command
    };
    let run = || {
        let mut command = lab.command("ce-run");
        command.args(["../clone", "../data/x"]);
        command
    };
    for (signal, code, is_for_all) in
        [(Signal::INT, 130, true), (Signal::TERM, 143, true), (Signal::TERM, 143, false)]
    {
        for (command, said) in [
            (&run as &dyn Fn() -> Command, "interrupted: "),
            (&export, "interrupted: nothing is exported"),
        ] {
            let stall = Stall::new(&lab);
            let running = Running::start(command().envs(VARIABLES).process_group(0));
            stall.begun();
            if is_for_all {
                // As a terminal does.
                kill_process_group(running.pid, signal).unwrap();
            } else {
                running.signal(signal);
            }
            Ran::new(&lab, running.output()).exit(code).called(vec![]).says(said);
            drop(stall);
            assert!(lab.path("clone/tmp").read_dir().unwrap().next().is_none(), "nothing is left");
            assert_eq!(room(&lab, "clone", "c_twice", "00"), [""; 0]);
            assert!(!lab.path("out").exists());
        }
    }
    let stall = Stall::new(&lab);
    let running = Running::start(run().envs(VARIABLES).process_group(0));
    stall.begun();
    kill_process_group(running.pid, Signal::KILL).unwrap();
    running.output();
    drop(stall);
    lab.finish(run().envs(VARIABLES)).exit(0).called(vec![]).says("2 calls: 2 reused");
    let [own, there] = ["clone", "storage"].map(|storage| room(&lab, storage, "c_twice", "00"));
    assert_eq!(fs::read(&own[0]).unwrap(), fs::read(&there[0]).unwrap());
    lab.finish(export().envs(VARIABLES)).exit(0);
    lab.run("ce", &["verify", "../clone"]).exit(0).says("0 wrong, 0 odd and harmless\n");
    assert!(lab.path("clone/tmp").read_dir().unwrap().next().is_none(), "nothing is left");
}

#[test]
fn a_killed_git_lfs_does_not_interrupt_the_command() {
    needs(&["git-lfs"]);
    let lab = large();
    clone_of_server(&lab);
    let path = without_lfs(&lab);
    let program = lab.path("bin/git-lfs");
    for signal in ["KILL", "TERM"] {
        fs::write(&program, format!("#!/bin/sh\nkill -{signal} $$\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let lacks = |program: &str, arguments: &[&str], code| {
            let mut command = lab.command(program);
            let told = lab.finish(command.args(arguments).envs(VARIABLES).env("PATH", &path));
            told.exit(code).called(vec![]).says("cannot be obtained: git lfs fetch of ");
        };
        lacks("ce-run", &["../clone", "../data/x"], 1);
        lacks("ce", &["export", "../clone", &job(&lab, "clone"), "../out"], 5);
    }
}
