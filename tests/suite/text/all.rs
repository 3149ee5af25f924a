//! `ALL(a b)`: the values of several expressions.

use std::fs;

use super::one_text::{loaded, task, trusting};

/// Two results, one of them a table with columns of two calls.
const SEVERAL: &str = "Inputs: x, y

sum = (add x y)
product = (mul sum y)
both = ALL(sum product)
table = SWEEP(ALL((add n '1') (mul n '2')) :over n 3 4 :columns '00 more' '01 double')

ALL(both table 'end')
";

#[test]
fn a_task_has_several_results() {
    let lab = trusting(task(SEVERAL)).commit();
    // Its name asks for all calls that it passes up.
    lab.ce_run(&["--only", "both"]).exit(0).says("2 computed, 4 not asked for");
    fs::remove_dir_all(lab.path("storage")).unwrap();
    let ran = lab.ce_run(&["--new-storage"]).exit(0);
    let ran = ran.says("6 calls: 6 computed; 1 table: 1 made");
    let outputs: Vec<&str> = ran.stderr.lines().filter(|it| it.contains("job output")).collect();
    assert_eq!(outputs.len(), 4, "{}", ran.stderr);
    for shown in ["ALL (both)", "ALL (body)", "ALL (TASK)", "add (sum)", "add (sum): 2 calls"] {
        assert!(ran.stdout.contains(shown), "{shown}\n{}", ran.stdout);
    }
    lab.ce_run(&[]).exit(0).says("6 calls: 6 reused; 1 table: 1 reused");
    let table = lab.run("ce", &["table", "../storage", "../data/x", "../data/y", "--csv"]).exit(0);
    assert!(table.stdout.starts_with("n,more,double,"), "{}", table.stdout);
    // The parts are the same as alone.
    fs::write(lab.path("task/workflow.ce"), "Inputs: x, y\n(mul (add x y) y)\n").unwrap();
    let lab = lab.commit_again();
    lab.ce_run(&[]).exit(0).says("2 calls: 2 taken over");
}

#[test]
fn text_and_directories_mean_the_same() {
    let lab = trusting(task(SEVERAL)).commit();
    let first = loaded(&lab);
    lab.ce_run(&[]).exit(0);
    lab.run("ce", &["convert", "--to", "directories"]).exit(0);
    for node in ["workflow", "workflow/inputs/00_01-sum-product"] {
        let kind = fs::read_to_string(lab.path("task").join(node).join("kind"));
        assert_eq!(kind.unwrap(), "all\n", "{node}");
    }
    let lab = lab.commit_again();
    let now = loaded(&lab);
    assert_eq!((&now.workflow, &now.definitions), (&first.workflow, &first.definitions));
    lab.ce_run(&[]).exit(0).says("6 calls: 6 taken over");
    lab.run("ce", &["convert", "--to", "text"]).exit(0);
    assert_eq!(fs::read_to_string(lab.path("task/workflow.ce")).unwrap(), SEVERAL);
}
