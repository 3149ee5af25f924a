//! A configured storage that has vanished or was replaced is an error, and is not made again in silence.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;

use crate::lab::{Lab, copy, snapshot};
use crate::program::{Ran, Running};

const GONE: &str = "is gone: it is not mounted, or was moved or removed, since this repository";
const REPLACED: &str =
    "is not the storage that this repository has used there: that is not mounted";
const HINT: &str = "give --new-storage to ce run or ce pull";

/// A laboratory whose storage is configured.
fn configured(storage: &str) -> Lab {
    let lab = Lab::task("Inputs: 'x'\n(add INPUT('x') INPUT('x'))[0]");
    let lab = lab.file("defaults/x", "17\n").commit();
    lab.git("task", &["config", "compeval.storage", storage]);
    lab
}

/// A laboratory that has used its configured storage.
fn used(storage: &str) -> Lab {
    let lab = configured(&format!("../{storage}"));
    run(&lab, &[]).exit(0).called(vec!["add"]);
    lab
}

fn run<'a>(lab: &'a Lab, arguments: &[&str]) -> Ran<'a> {
    lab.run("ce-run", arguments)
}

/// The lines that the repository has about its storages.
fn memory(lab: &Lab, repository: &str) -> Vec<String> {
    let text = fs::read_to_string(lab.path(repository).join(".git/compeval/storages")).unwrap();
    let mut lines = text.lines().map(str::to_owned);
    assert_eq!(lines.next().as_deref(), Some("compeval storages 1"));
    lines.collect()
}

#[test]
fn a_configured_storage_that_is_gone_is_not_made_again() {
    let lab = used("kept");
    fs::rename(lab.path("kept"), lab.path("away")).unwrap();
    let all: [&[&str]; 4] = [&[], &["-n"], &["-q"], &["--at", "HEAD"]];
    for arguments in all {
        let refused = run(&lab, arguments).exit(2).called(vec![]);
        refused.says(&format!("the storage ../kept {GONE}")).says(HINT);
    }
    lab.run("ce", &["explain"]).exit(2).says(GONE);
    lab.run("ce", &["push", "../kept", "../results.git"]).exit(5);
    assert!(!lab.path("kept").exists());
    // One that cannot be opened is not told to be gone.
    symlink("kept", lab.path("kept")).unwrap();
    run(&lab, &[]).exit(5).called(vec![]).says("symbolic links");
    fs::remove_file(lab.path("kept")).unwrap();
    fs::create_dir(lab.path("kept")).unwrap();
    fs::write(lab.path("kept/not mounted"), "").unwrap();
    run(&lab, &[]).exit(2).called(vec![]).says(&format!("../kept {REPLACED}"));
    fs::remove_dir_all(lab.path("kept")).unwrap();
    // What is put back is used, and so is what is wanted.
    fs::rename(lab.path("away"), lab.path("kept")).unwrap();
    run(&lab, &[]).exit(0).called(vec![]);
    fs::remove_dir_all(lab.path("kept")).unwrap();
    run(&lab, &["--new-storage"]).exit(0).says("made a new storage at ../kept").called(vec!["add"]);
    run(&lab, &[]).exit(0).called(vec![]);
    assert_eq!(memory(&lab, "task").len(), 2, "both are known");
}

#[test]
fn a_directory_in_the_place_of_a_storage_is_refused() {
    let lab = used("disk");
    fs::rename(lab.path("disk"), lab.path("away")).unwrap();
    // A mount point without its file system.
    fs::create_dir(lab.path("disk")).unwrap();
    for arguments in [&[][..], &["-n"]] {
        let refused = run(&lab, arguments).exit(2).called(vec![]);
        refused.says(&format!("../disk {REPLACED}")).says(HINT);
    }
    assert_eq!(snapshot(&lab.path("disk")).lines().count(), 1, "nothing is in it");
    // A storage of somebody else.
    let other = used("other");
    fs::remove_dir(lab.path("disk")).unwrap();
    copy(&other.path("other"), &lab.path("disk"));
    run(&lab, &[]).exit(2).says(REPLACED);
    for command in ["gc", "verify", "log", "status"] {
        lab.run("ce", &[command]).exit(2).says(REPLACED);
    }
    for command in ["show", "cite", "pin"] {
        lab.run("ce", &[command, "0123456789ab"]).exit(2).says(REPLACED);
    }
    lab.run("ce", &["export", "0123456789ab", "../exported"]).exit(2).says(REPLACED);
    // One that is named on the command line is meant, and known from then on.
    lab.run("ce", &["verify", "../disk"]).exit(0);
    run(&lab, &["../disk"]).exit(0);
    run(&lab, &[]).exit(0).called(vec![]);
}

#[test]
fn a_storage_without_its_id_gives_nothing_until_it_is_named_on_request() {
    let lab = used("kept");
    let id = lab.path("kept/repositories/storage");
    fs::remove_file(&id).unwrap();
    let git = snapshot(&lab.path("task/.git"));
    // Not even a finished job.
    for arguments in [&["-q"][..], &["-q", "--at", "HEAD"]] {
        run(&lab, arguments).exit(2).says(REPLACED);
    }
    assert_eq!(snapshot(&lab.path("task/.git")), git);
    run(&lab, &["-q", "--at", "HEAD", "--new-storage"]).exit(0).called(vec![]);
    fs::write(&id, "").unwrap();
    run(&lab, &[]).exit(2).says(REPLACED);
    run(&lab, &["--new-storage"]).exit(0).called(vec![]);
    run(&lab, &[]).exit(0).called(vec![]);
    assert_eq!(memory(&lab, "task").len(), 2);
}

#[test]
fn a_submitted_run_makes_no_storage() {
    let lab = configured("../unused");
    run(&lab, &["--as-job=log", "../kept"]).exit(5).called(vec![]);
    assert!(!lab.path("kept").exists());
    run(&lab, &["../kept"]).exit(0).called(vec!["add"]);
    fs::rename(lab.path("kept"), lab.path("away")).unwrap();
    run(&lab, &["--as-job=log", "../kept"]).exit(2).says(GONE);
    fs::create_dir(lab.path("kept")).unwrap();
    run(&lab, &["--as-job=log", "../kept"]).exit(2).says(REPLACED);
    assert_eq!(fs::read_dir(lab.path("kept")).unwrap().count(), 0);
}

#[test]
fn a_storage_may_be_moved_and_copied() {
    let lab = used("kept");
    copy(&lab.path("kept"), &lab.path("copied"));
    lab.git("task", &["config", "compeval.storage", "../copied"]);
    run(&lab, &[]).exit(0).called(vec![]);
    fs::rename(lab.path("kept"), lab.path("moved")).unwrap();
    lab.git("task", &["config", "compeval.storage", "../moved"]);
    run(&lab, &[]).exit(0).called(vec![]);
    let ids =
        memory(&lab, "task").into_iter().map(|line| line.split_once(' ').unwrap().0.to_owned());
    let ids: Vec<_> = ids.collect();
    assert_eq!(ids.len(), 3);
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    // A copy in the place of the original is the same storage.
    fs::rename(lab.path("copied"), lab.path("kept")).unwrap();
    lab.git("task", &["config", "compeval.storage", "../kept"]);
    run(&lab, &[]).exit(0).called(vec![]);
}

#[test]
fn a_storage_behind_a_link_is_known_by_the_link_too() {
    let lab = configured("../disk/current");
    fs::create_dir_all(lab.path("disk/2026")).unwrap();
    symlink("2026", lab.path("disk/current")).unwrap();
    run(&lab, &[]).exit(0).called(vec!["add"]);
    // By another path to the same place.
    symlink("disk", lab.path("way")).unwrap();
    lab.git("task", &["config", "compeval.storage", "../way/2026"]);
    run(&lab, &[]).exit(0).called(vec![]);
    fs::rename(lab.path("disk"), lab.path("away")).unwrap();
    fs::create_dir(lab.path("disk")).unwrap();
    for storage in ["../way/2026", "../disk/2026", "../disk/current", "../way/current"] {
        lab.git("task", &["config", "compeval.storage", storage]);
        run(&lab, &[]).exit(2).says(&format!("the storage {storage} {GONE}"));
    }
    assert_eq!(fs::read_dir(lab.path("disk")).unwrap().count(), 0);
}

#[test]
fn work_trees_share_the_known_storages_and_clones_do_not() {
    let lab = used("kept");
    lab.git("task", &["worktree", "add", "-q", "../linked"]);
    lab.git("", &["clone", "-q", "task", "clone"]);
    lab.git("clone", &["config", "compeval.storage", "../kept"]);
    let run_in = |dir: &str| {
        let mut command = lab.command("ce-run");
        lab.finish(command.current_dir(lab.path(dir)))
    };
    run_in("clone").exit(0).called(vec![]);
    assert_eq!(memory(&lab, "clone"), memory(&lab, "task"), "they know the same storage");
    fs::remove_dir_all(lab.path("kept")).unwrap();
    for dir in ["task", "linked", "clone"] {
        run_in(dir).exit(2).says(GONE);
    }
    // One of them goes on, and the others are told that it is another storage.
    lab.run("ce-run", &["--new-storage"]).exit(0).says("made a new storage").called(vec!["add"]);
    run_in("linked").exit(0).called(vec![]);
    run_in("clone").exit(2).says(REPLACED);
}

#[test]
fn a_repository_with_an_older_storage_learns_about_it_at_the_next_write() {
    let lab = used("kept");
    fs::remove_file(lab.path("kept/repositories/storage")).unwrap();
    fs::remove_dir_all(lab.path("task/.git/compeval")).unwrap();
    let before = snapshot(&lab.path("kept"));
    let git = snapshot(&lab.path("task/.git"));
    for program in [&["run", "-n"][..], &["explain"], &["log"], &["verify"], &["gc"]] {
        lab.run("ce", program).exit(0);
    }
    assert_eq!(snapshot(&lab.path("kept")), before, "who looks writes nothing");
    assert_eq!(snapshot(&lab.path("task/.git")), git);
    run(&lab, &[]).exit(0).called(vec![]);
    let text = fs::read_to_string(lab.path("kept/repositories/storage")).unwrap();
    let known = memory(&lab, "task");
    assert!(text.contains(known[0].split_once(' ').unwrap().0), "{text}");
    // A storage that is known already is not written again.
    let git = snapshot(&lab.path("task/.git"));
    run(&lab, &[]).exit(0);
    assert_eq!(snapshot(&lab.path("task/.git")), git);
}

#[test]
fn a_storage_is_not_remembered_if_the_git_directory_is_read_only() {
    let lab = configured("../kept");
    fs::create_dir(lab.path("kept")).unwrap();
    fs::write(lab.path("task/.git/compeval"), "").unwrap();
    run(&lab, &[]).exit(0).says("so it will not be noticed if the storage vanishes");
    fs::remove_file(lab.path("task/.git/compeval")).unwrap();
    let Some(user) = lab.another_user() else { return };
    for place in ["kept", "", "cache"] {
        fs::create_dir_all(lab.path(place)).unwrap();
        for entry in
            walkdir::WalkDir::new(lab.path(place)).max_depth(if place == "kept" { 9 } else { 0 })
        {
            let entry = entry.unwrap();
            let mode = if entry.file_type().is_dir() { 0o777 } else { 0o644 };
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(mode)).unwrap();
        }
    }
    let mut command = lab.command("ce-run");
    let ran = lab.finish(command.uid(user).gid(user)).exit(0);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    assert!(!lab.path("task/.git/compeval").exists());
}

#[test]
fn first_runs_at_once_agree_on_the_storage() {
    let lab = configured("../kept");
    let running: Vec<_> = (0..4).map(|_| Running::start(&mut lab.command("ce-run"))).collect();
    for running in running {
        Ran::new(&lab, running.output()).exit(0);
    }
    assert_eq!(memory(&lab, "task").len(), 1);
    run(&lab, &[]).exit(0);
}

#[test]
fn only_the_last_directory_of_a_storage_is_made() {
    let lab = configured("../no/such/storage");
    for arguments in [&[][..], &["../no/such/storage"]] {
        let refused = run(&lab, arguments).exit(2).called(vec![]);
        let refused = refused.says("because: the directory ../no/such does not exist");
        refused.says(
            "or mount the file system that has it; to make a storage there, mkdir -p ../no/such",
        );
    }
    run(&lab, &["-n"]).exit(3).says("there is no storage at ../no/such/storage");
    assert!(!lab.path("no").exists());
    fs::create_dir_all(lab.path("no/such")).unwrap();
    run(&lab, &[]).exit(0).says("made a new storage at ../no/such/storage");
    // Of a known one, the hint says what to make.
    fs::remove_dir_all(lab.path("no")).unwrap();
    run(&lab, &[]).exit(2).says(GONE).says("mkdir -p ../no/such, and give --new-storage");
}

#[test]
fn a_pull_does_not_make_a_storage_that_is_gone() {
    let lab = used("kept");
    lab.git("", &["init", "-q", "--bare", "results.git"]);
    lab.run("ce", &["push", "../kept", "../results.git"]).exit(0);
    lab.git("task", &["config", "compeval.results", "../results.git"]);
    fs::remove_dir_all(lab.path("kept")).unwrap();
    for command in ["pull", "push"] {
        lab.run("ce", &[command]).exit(2).says(GONE);
    }
    assert!(!lab.path("kept").exists());
    lab.run("ce", &["pull", "--new-storage"]).exit(0).says("made a new storage at ../kept");
    lab.run("ce", &["pull"]).exit(0).shows("nothing is new");
    assert_eq!(memory(&lab, "task").len(), 2);
    // The results of a pull are reported, even if the storage cannot be remembered.
    fs::write(lab.path("task/.git/compeval/storages"), "other\n").unwrap();
    let ran = lab.run("ce", &["pull", "../kept", "../results.git"]).exit(2);
    ran.shows("nothing is new").says("does not begin with the line");
    // A pull is a use, too.
    fs::remove_dir_all(lab.path("task/.git/compeval")).unwrap();
    lab.run("ce", &["pull"]).exit(0);
    fs::remove_dir_all(lab.path("kept")).unwrap();
    run(&lab, &[]).exit(2).says(GONE);
}
