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
    let ran = lab.ce_run(&[]).exit(0).says("6 calls: 6 computed; 1 table: 1 made");
    let outputs: Vec<&str> = ran.stderr.lines().filter(|it| it.contains("job output")).collect();
    assert_eq!(outputs.len(), 4, "{}", ran.stderr);
    for shown in ["ALL (both)", "ALL (body)", "ALL (TASK)", "add (sum)", "add (sum): 2 calls"] {
        assert!(ran.stdout.contains(shown), "{shown}\n{}", ran.stdout);
    }
    lab.ce_run(&[]).exit(0).says("6 calls: 6 reused; 1 table: 1 reused");
    let table = lab.run("ce", &["table", "../storage", "../data/x", "../data/y", "--csv"]).exit(0);
    assert!(table.stdout.starts_with("n,more,double,"), "{}", table.stdout);
    // The parts are what they are alone.
    fs::write(lab.path("task/workflow.ce"), "Inputs: x, y\n(mul (add x y) y)\n").unwrap();
    let lab = lab.commit_again();
    lab.ce_run(&[]).exit(0).says("2 calls: 2 taken over");
}

#[test]
fn the_name_of_all_selects_all_its_calls() {
    let lab = task(SEVERAL).commit();
    lab.ce_run(&["--only", "both"]).exit(0).says("2 computed, 4 not asked for");
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

/// Each level has the values of the one below it twice, and one long chain has a level more for each line.
#[test]
fn deep_and_wide_nests_are_reported_soon() {
    let lines = |count: u32, line: &dyn Fn(u32, u32) -> String| {
        (1..=count).map(|n| line(n, n - 1)).collect::<String>()
    };
    let doubled = lines(60, &|n, last| format!("a{n} = ALL(a{last} a{last})\n"));
    let chain = lines(10_000, &|n, last| format!("a{n} = ALL(a{last})\n"));
    let lab = task(&format!("Inputs: x, y\na0 = ALL(x y)\n{doubled}a60\n")).commit();
    lab.run("ce", &["check"]).exit(2).says("lists more than the 100 that can be numbered");
    fs::write(
        lab.path("task/workflow.ce"),
        format!("Inputs: x, y\na0 = (add x y)\n{chain}a10000\n"),
    )
    .unwrap();
    let lab = lab.commit_again();
    lab.ce_run(&[]).exit(0).says("1 call: 1 computed");
}
