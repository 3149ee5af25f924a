//! Tasks that are wrong, as programs tell it: one screen of each kind.

use super::broken::{base, tasks};

#[test]
fn every_problem_is_reported_at_once_and_in_the_order_of_the_files() {
    for (name, lab) in tasks() {
        let ran = lab.run("ce", &["check"]).complains(&format!("load/{name}.txt")).exit(2);
        assert_eq!(ran.stdout, "", "{name}");
    }
}

#[test]
fn every_program_refuses_a_task_that_is_wrong() {
    let lab = base().file("workflow/kind", "compuation\n").commit();
    lab.ce_run(&[]).exit(2).complains("load/ce-run.txt");
    lab.ce_run(&["-n", "--json"]).exit(2).says("compuation");
    lab.run("ce-sym", &[]).exit(2).complains("load/ce-sym.txt");
    assert!(!lab.path("storage").exists());
}

#[test]
fn a_directory_without_a_task_is_reported() {
    let lab = base().commit();
    lab.run("ce", &["check", "--task", "../data"]).exit(2).complains("load/no-task.txt");
    lab.run("ce-sym", &["--task", "../nowhere"]).exit(2).complains("load/no-directory.txt");
    lab.run("ce-sym", &["--task", "inputs"]).exit(2).complains("load/task-is-a-file.txt");
}
