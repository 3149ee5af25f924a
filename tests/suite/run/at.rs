//! A task as it was at a commit, from the objects of its repository.

use std::fs;
use std::process::Command;

use crate::isolation;
use crate::lab::{Lab, Library};
use crate::program::Ran;
use crate::repository;

const TASK: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('x'))[0]";

const LIBRARIES: [Library; 3] = [Library::Plain, Library::Submodule, Library::Submodules];

fn git(lab: &Lab, dir: &str, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    git.env("HOME", lab.path("home")).env("GIT_CONFIG_NOSYSTEM", "1");
    git.args(["-c", "protocol.file.allow=always", "-c", "user.name=a", "-c", "user.email=a@b"]);
    let output = git.current_dir(lab.path(dir)).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn ce_run<'a>(lab: &'a Lab, dir: &str, options: &[&str]) -> Ran<'a> {
    let mut command = lab.evaluation(options);
    lab.finish(command.current_dir(lab.path(dir)))
}

#[test]
fn a_run_at_a_commit_equals_a_run_in_its_checkout() {
    for library in LIBRARIES {
        let lab = Lab::task(TASK).commit_with(library);
        let checked_out = lab.ce_run(&[]).exit(0).called(vec!["add", "mul"]).stdout;
        let names = lab.results();
        fs::rename(lab.path("storage"), lab.path("first")).unwrap();
        // Nothing of the work tree is looked at.
        let lab = lab.file("workflow/kind", "nonsense\n").file("computations/mul/exec", "nonsense");
        let ran = lab.ce_run(&["--at", "HEAD"]).exit(0).called(vec!["add", "mul"]);
        assert_eq!(ran.stdout, checked_out);
        assert_eq!(lab.results(), names);
        lab.ce_run(&["--at", "HEAD"]).exit(0).called(vec![]).says("2 calls: 2 reused");
        lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
        assert!(lab.is_tidy());
        lab.run("ce-sym", &["--at", "HEAD"]).exit(0).shows("(add (mul INPUT('x')");
        lab.run("ce", &["check", "--at", "HEAD"]).exit(0).shows("task at");
        lab.run("ce-viz", &["--at", "HEAD"]).exit(0).shows("digraph");
    }
}

#[test]
fn a_bare_repository_needs_no_checkout() {
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&[]).exit(0);
    git(&lab, "", &["clone", "-q", "--bare", "task", "bare/task.git"]);
    lab.called();
    let mut command = lab.command("ce-run");
    let inside = ["--at", "HEAD", "../../storage", "../../data/x", "../../data/y"];
    command.current_dir(lab.path("bare/task.git"));
    lab.finish(command.args(inside)).exit(0).called(vec![]).says("2 calls: 2 reused");
    let mut command = lab.command("ce-run");
    let bare = ["--task", "../bare/task.git", "--at", "HEAD", "../other", "../data/x", "../data/y"];
    lab.finish(command.args(bare)).exit(0).called(vec!["add", "mul"]).says("../other/t_task/");
}

#[test]
fn a_task_may_be_below_the_top_and_reached_by_links() {
    let lab = Lab::task(TASK);
    // top/tasks/task, with top/library shared by a link.
    fs::create_dir_all(lab.path("top/tasks")).unwrap();
    fs::rename(lab.path("task"), lab.path("top/tasks/task")).unwrap();
    fs::rename(lab.path("top/tasks/task/computations"), lab.path("top/library")).unwrap();
    let link = lab.path("top/tasks/task/computations");
    std::os::unix::fs::symlink("../../library", link).unwrap();
    let shared = lab.path("top/tasks/task/workflow/inputs/01-x");
    fs::remove_dir_all(&shared).unwrap();
    std::os::unix::fs::symlink("00-mul/inputs/00-x", shared).unwrap();
    git(&lab, "top", &["init", "-q"]);
    git(&lab, "top", &["add", "-A"]);
    git(&lab, "top", &["commit", "-qm", "all"]);
    let run = |options: &[&str]| {
        let mut command = lab.command("ce-run");
        command.current_dir(lab.path("top/tasks/task"));
        let files = ["-n", "../../../storage", "../../../data/x", "../../../data/y"];
        lab.finish(command.args(options).args(files)).exit(3).stdout
    };
    assert_eq!(run(&["--at", "HEAD"]), run(&[]));
}

#[test]
fn a_submodule_that_is_not_cloned_is_named() {
    let lab = Lab::task(TASK).commit_with(Library::Submodules);
    git(&lab, "", &["clone", "-q", "task", "clone"]);
    ce_run(&lab, "clone", &["--at", "HEAD", "-n"])
        .exit(2)
        .says("computations/mul: is a submodule whose commit")
        .says("try: git submodule update");
}

#[test]
fn an_export_that_was_changed_is_set_aside_and_made_again() {
    if !isolation::is_possible() {
        return; // Nothing is exported to be shared.
    }
    let lab = Lab::task(TASK).isolated().commit();
    lab.ce_run(&["--at", "HEAD"]).exit(0);
    let exec = lab.storage().into_iter().find(|name| name.starts_with("trees/")).unwrap();
    let path = lab.path("storage").join(&exec);
    let right = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "changed").unwrap();
    for name in lab.results().into_keys().filter(|name| name.starts_with("c_")) {
        fs::remove_file(lab.path("storage").join(name)).unwrap();
    }
    lab.ce_run(&["--at", "HEAD"]).exit(0).says("2 calls: 2 computed");
    assert_eq!(fs::read(&path).unwrap(), right);
    assert!(lab.storage().iter().any(|name| name.starts_with("trees/aside/")));
}

#[test]
fn a_tree_of_many_paths_is_read_once() {
    // Forty levels, each with two equal subtrees: 2^40 paths, and 40 trees.
    let lab = Lab::task("Inputs: 'x'\n(add INPUT('x') INPUT('x'))[0]").commit();
    let hash = |text: &str| {
        fs::write(lab.path("blob"), text).unwrap();
        git(&lab, "task", &["hash-object", "-w", "../blob"])
    };
    let tree = |entries: &str| {
        fs::write(lab.path("entries"), entries).unwrap();
        let made = Command::new("sh")
            .args(["-c", "git mktree <../entries"])
            .current_dir(lab.path("task"))
            .output();
        String::from_utf8(made.unwrap().stdout).unwrap().trim().to_owned()
    };
    let (kind, value) = (hash("computation\n"), hash("add\n"));
    let (input, x) = (hash("input\n"), hash("x\n"));
    let mut node = tree(&format!("100644 blob {input}\tkind\n100644 blob {x}\tvalue\n"));
    for _ in 0..40 {
        let inputs = tree(&format!("040000 tree {node}\t00-a\n040000 tree {node}\t01-b\n"));
        let files = format!("100644 blob {kind}\tkind\n100644 blob {value}\tvalue\n");
        node = tree(&format!("{files}040000 tree {inputs}\tinputs\n"));
    }
    let computations = git(&lab, "task", &["rev-parse", "HEAD:computations"]);
    let root = tree(&format!(
        "040000 tree {computations}\tcomputations\n100644 blob {x}\tinputs\n040000 tree {node}\tworkflow\n"
    ));
    let commit = git(&lab, "task", &["commit-tree", "-m", "deep", &root]);
    lab.run("ce", &["check", "--at", &commit]).exit(0).shows("1 input, 40 calls, 1 computation");
    let ran = lab.ce_run(&["-q", "--no-sync", "--at", &commit]).exit(0);
    assert_eq!(ran.lines().len(), 1);
    assert_eq!(lab.called().len(), 40);
}

#[test]
fn outputs_of_a_finished_job_are_printed_without_reading_its_workflow() {
    let lab = Lab::task(TASK).commit();
    let quiet = ["--at", "HEAD", "-q"];
    let told = lab.ce_run(&quiet).exit(0).called(vec!["add", "mul"]).stdout;
    // Of the repository nothing is left but the commit itself.
    let (objects, away) = (lab.path("task/.git/objects"), lab.path("away"));
    let commit = repository::head(&lab.path("task"));
    let (dir, file) = commit.split_at(2);
    fs::rename(&objects, &away).unwrap();
    fs::create_dir_all(objects.join(dir)).unwrap();
    fs::copy(away.join(dir).join(file), objects.join(dir).join(file)).unwrap();
    lab.ce_run(&["--at", "HEAD"]).exit(2).says("git fetch --refetch");
    for options in [&quiet[..], &["--at", "HEAD", "-q", "-n"]] {
        let ran = lab.unchanged(|| lab.ce_run(options).exit(0).called(vec![]).stdout);
        assert_eq!(ran, told);
    }
    // A job of other inputs is another one.
    fs::write(lab.path("data/x"), "1").unwrap();
    lab.ce_run(&quiet).exit(2);
    fs::remove_dir_all(&objects).unwrap();
    fs::rename(&away, &objects).unwrap();
    let other = lab.ce_run(&quiet).exit(0).called(vec!["add", "mul"]).stdout;
    assert_ne!(other, told);
    // A job with a missing output is not done.
    let output = lab.path("task").join(other.trim());
    fs::remove_file(&output).unwrap();
    assert_eq!(lab.ce_run(&quiet).exit(0).called(vec!["add"]).stdout, other);
    assert!(output.exists());
}

#[test]
fn git_replace_does_not_change_the_object_of_an_id() {
    let lab = Lab::task(TASK).commit();
    let first = lab.ce_run(&["--at", "HEAD"]).exit(0).called(vec!["add", "mul"]).stdout;
    fs::remove_dir_all(lab.path("storage")).unwrap();
    let exec = "computations/mul/exec";
    let whole = fs::read_to_string(lab.path("task").join(exec)).unwrap();
    let lab = lab.file(exec, whole.replace('*', "-"));
    let other = git(&lab, "task", &["hash-object", "-w", exec]);
    git(&lab, "task", &["replace", &format!("HEAD:{exec}"), &other]);
    let shown = git(&lab, "task", &["show", &format!("HEAD:{exec}")]);
    assert!(shown.contains(" - "), "Git shows the other one: {shown}");
    assert_eq!(lab.ce_run(&["--at", "HEAD"]).exit(0).stdout, first);
    lab.ce_run(&[]).exit(2).says("computations/mul: has uncommitted changes: exec");
}

#[test]
fn a_finished_job_is_found_for_a_clean_work_tree() {
    let lab = Lab::task(TASK).commit();
    let told = lab.ce_run(&["-q"]).exit(0).called(vec!["add", "mul"]).stdout;
    // The calls that led to the outputs are not looked at.
    let calls = lab.storage().into_iter().filter(|name| name.starts_with("c_mul/"));
    calls.for_each(|name| fs::remove_file(lab.path("storage").join(name)).unwrap());
    let ran = lab.unchanged(|| lab.ce_run(&["-q"]).exit(0).called(vec![]).stdout);
    assert_eq!(ran, told);
    lab.ce_run(&["-q", "-n"]).exit(0);
    lab.ce_run(&["-n"]).exit(3);
    let lab = lab.file("workflow/inputs/01-x/value", "y\n");
    lab.ce_run(&["-q", "-n"]).exit(3);
}

#[test]
fn a_computation_missing_in_a_partial_clone_is_reported_first() {
    let lab = Lab::task("Inputs: 'x'\n(add (mul INPUT('x') INPUT('x'))[0] INPUT('x'))[0]");
    let exec = fs::read_to_string(lab.path("task/computations/add/exec")).unwrap();
    let lab = lab.file("computations/add/exec", exec + &"# long\n".repeat(500)).commit();
    lab.git("task", &["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", lab.path("task").display());
    let filter =
        ["clone", "--quiet", "--no-checkout", "--filter=blob:limit=1k", &url, "clone/task"];
    lab.git("", &filter);
    let mut run = lab.command("ce-run");
    run.current_dir(lab.path("clone/task")).args(["--at=HEAD", "../../storage", "../../data/x"]);
    let ran = lab.finish(&mut run).exit(2).called(vec![]);
    ran.says("computations/add: the repository cannot be read: the object ").says("--no-filter");
}
