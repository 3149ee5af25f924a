//! Repositories as git itself makes them: packed, cloned, in another work tree, at no branch.

use std::path::Path;
use std::process::Command;

use crate::lab::{Lab, Library};
use crate::repository;

const TASK: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('x'))[0]";

/// Runs git without anybody's configuration, and with a fixed author and date.
fn git(dir: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    git.envs([
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ("HOME", "/nowhere"),
    ]);
    for who in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{who}_NAME"), "Lab")
            .env(format!("GIT_{who}_EMAIL"), "lab@example.org");
        git.env(format!("GIT_{who}_DATE"), "1000000000 +0000");
    }
    git.args([
        "-c",
        "protocol.file.allow=always",
        "-c",
        "init.defaultBranch=main",
        "-c",
        "safe.directory=*",
    ]);
    let output = git.current_dir(dir).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The task at a place finds everything that was computed before.
#[track_caller]
fn finds_everything(lab: &Lab, task: &str) {
    let mut command = lab.evaluation(&[]);
    lab.finish(command.current_dir(lab.path(task)))
        .exit(0)
        .says("2 calls: 2 reused")
        .called(vec![]);
}

fn evaluated(library: Library) -> Lab {
    let lab = Lab::task(TASK).commit_with(library);
    lab.ce_run(&[]).exit(0).called(vec!["add", "mul"]);
    lab
}

#[test]
fn git_finds_nothing_wrong_with_the_repositories_of_these_tests() {
    for library in [Library::Plain, Library::Submodule, Library::Submodules] {
        let lab = Lab::task(TASK).commit_with(library);
        git(&lab.path("task"), &["fsck", "--strict"]);
        git(&lab.path("task"), &["reset", "-q", "--hard", "--recurse-submodules"]);
        git(&lab.path("task"), &["submodule", "status"]);
        lab.ce_run(&[]).exit(0).called(vec!["add", "mul"]);
    }
}

#[test]
fn a_repository_may_be_packed_at_no_branch_linked_cloned_or_shallow() {
    let lab = evaluated(Library::Plain);
    let (task, around) = (lab.path("task"), lab.path(""));
    git(&task, &["gc", "-q", "--prune=now"]);
    git(&task, &["pack-refs", "--all"]);
    finds_everything(&lab, "task");
    git(&task, &["worktree", "add", "-q", "../other"]);
    finds_everything(&lab, "other");
    git(&around, &["clone", "-q", "task", "clone"]);
    finds_everything(&lab, "clone");
    let url = format!("file://{}", task.display());
    git(&around, &["clone", "-q", "--depth", "1", &url, "shallow"]);
    finds_everything(&lab, "shallow");
    git(&task, &["reset", "-q", "--hard"]);
    git(&task, &["checkout", "-q", "--detach"]);
    finds_everything(&lab, "task");
}

#[test]
fn a_clone_with_submodules_reuses_results_computed_elsewhere() {
    let lab = evaluated(Library::Submodule);
    // The library is where `.gitmodules` says, beside the task.
    git(&lab.path(""), &["clone", "-q", "task/computations", "computations"]);
    git(&lab.path(""), &["clone", "-q", "task", "clone"]);
    lab.finish(lab.command("ce").current_dir(lab.path("clone")).arg("check"))
        .exit(2)
        .says("git submodule update --init");
    git(&lab.path("clone"), &["submodule", "--quiet", "update", "--init", "--recursive"]);
    finds_everything(&lab, "clone");
}

#[test]
fn a_repository_of_another_format_is_reported() {
    let lab = Lab::task(TASK);
    git(&lab.path("task"), &["init", "-q", "--object-format=sha256"]);
    git(&lab.path("task"), &["add", "."]);
    git(&lab.path("task"), &["commit", "-q", "-m", "task"]);
    let ran = lab.run("ce", &["check"]);
    // Either it is read, or it is said that it cannot be.
    assert!(
        ran.status.code() == Some(0) || ran.stderr.contains("cannot be read"),
        "{}",
        ran.stderr
    );
}

#[test]
fn ids_agree_with_git() {
    let lab = Lab::task(TASK);
    let copy = lab.path("copy");
    git(&lab.path(""), &["init", "-q", "copy"]);
    for (name, contents) in crate::lab::files(&lab.path("task")) {
        std::fs::create_dir_all(copy.join(&name).parent().unwrap()).unwrap();
        std::fs::copy(lab.path("task").join(&name), copy.join(&name)).unwrap();
        assert_eq!(std::fs::read(copy.join(&name)).unwrap(), contents);
    }
    git(&copy, &["add", "."]);
    git(&copy, &["commit", "-q", "-m", "task"]);
    assert_eq!(repository::head(&lab.commit().path("task")), repository::head(&copy));
}
