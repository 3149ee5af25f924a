//! Clones of a task's repository under other names use each other's jobs.

use std::fs;

use crate::lab::Lab;
use crate::program::Ran;

const TASK: &str = "Inputs: 'x', 'y'\n(add (divmod INPUT('x') INPUT('y'))[1, 0])[0]";

/// A laboratory whose task was evaluated. What only its job tells is left: without it, the calls are executed again.
fn lab() -> Lab {
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&[]).exit(0).called(vec!["divmod", "add"]);
    lab.git("", &["clone", "-q", "task", "other"]);
    lab
}

fn run_in<'a>(lab: &'a Lab, dir: &str, options: &[&str]) -> Ran<'a> {
    let mut command = lab.command("ce-run");
    let all = [options, &["../storage", "../data/x", "../data/y"]].concat();
    lab.finish(command.current_dir(lab.path(dir)).args(all))
}

fn forget_calls(lab: &Lab) {
    fs::remove_dir_all(lab.path("storage/c_divmod")).unwrap();
}

#[test]
fn a_job_of_a_clone_with_another_name_is_found() {
    let lab = lab();
    let expected = run_in(&lab, "task", &["-q"]).exit(0).stdout.clone();
    forget_calls(&lab);
    assert_eq!(run_in(&lab, "other", &["-q"]).exit(0).stdout, expected);
    assert_eq!(run_in(&lab, "other", &["-q", "--at", "HEAD"]).exit(0).stdout, expected);
    let each = ["-q", "--each", "x=1,2", "../storage", "../data/y"];
    let mut command = lab.command("ce-run");
    lab.finish(command.args(each)).exit(0);
    assert_eq!(lab.called().len(), 4);
    forget_calls(&lab);
    let mut command = lab.command("ce-run");
    lab.finish(command.current_dir(lab.path("other")).args(each)).exit(0);
    assert_eq!(lab.called(), [""; 0]);
    // A run that evaluates stores the job under its own name, too.
    assert!(!lab.path("storage/t_other").exists());
    run_in(&lab, "other", &[]).exit(0).says("job output 00: ../storage/t_other/");
}

#[test]
fn a_job_of_another_task_or_commit_is_not_taken() {
    let lab = lab();
    // The same commit in another place is another task.
    fs::create_dir(lab.path("other/other")).unwrap();
    for part in ["workflow", "inputs", "computations"] {
        let (from, to) = (lab.path("other").join(part), lab.path("other/other").join(part));
        fs::rename(from, to).unwrap();
    }
    lab.git("other", &["add", "."]);
    lab.git("other", &["commit", "-qm", "moved"]);
    forget_calls(&lab);
    let mut command = lab.command("ce-run");
    let given = ["-q", "../../storage", "../../data/x", "../../data/y"];
    lab.finish(command.current_dir(lab.path("other/other")).args(given)).exit(0);
    assert_eq!(lab.called(), ["divmod", "add"]);
    // Other inputs are another job.
    let given = ["-n", "-q", "../storage", "../data/y", "../data/x"];
    let mut command = lab.command("ce-run");
    lab.finish(command.current_dir(lab.path("other")).args(given)).exit(2);
}
