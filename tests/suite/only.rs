//! `ce run --only`: some calls, and the calls that they need.

use crate::lab::Lab;
use crate::program::Ran;

/// The path of the sweep of [`sum_of_product_and_count`].
pub(crate) const SWEEP: &str = "inputs/01-right/inputs/00-table";

/// A sum of a product and of the count of a sweep's table. The sweep has these factors, and its body is yet to be written.
pub(crate) fn sum_of_product_and_count(factors: &[(&str, &str)]) -> Lab {
    let lab = Lab::task("Inputs: 'x'\n(add INPUT('x') INPUT('x'))[0]")
        .without("workflow")
        .computation("count", "table", "rows", "wc -l <\"$1\" >\"$2\"")
        .node("", "computation", "add")
        .call("inputs/00-left/", "mul", &["x", "x"])
        .node("inputs/01-right/", "computation", "count")
        .node(&format!("{SWEEP}/"), "sweep", "PRODUCTS");
    factors.iter().fold(lab, |lab, (name, levels)| {
        lab.file(&format!("workflow/{SWEEP}/factors/{name}"), levels)
    })
}

/// The body divides a product of both factors by one of them.
fn lab() -> Lab {
    let body = format!("{SWEEP}/inputs/00-body");
    sum_of_product_and_count(&[("00-a", "1\n2\n3\n"), ("01-b", "5\n")])
        .node(&format!("{body}/"), "computation", "divmod")
        .file(&format!("workflow/{body}/outputs"), "00\n")
        .call(&format!("{body}/inputs/00-p/"), "mul", &["a", "b"])
        .node(&format!("{body}/inputs/01-b/"), "input", "b")
        .commit()
}

fn run<'a>(lab: &'a Lab, arguments: &[&str]) -> Ran<'a> {
    lab.run("ce-run", &[&["--no-sync"], arguments, &["../storage", "../data/x"]].concat())
}

#[test]
fn a_call_is_named_by_its_computation_or_by_its_labels() {
    let lab = lab();
    run(&lab, &["--only", "left"]).exit(0).called(vec!["mul"]).prints("only/left.txt");
    assert!(!lab.storage().iter().any(|name| name.starts_with("t_") || name.starts_with("tables")));
    // Two nodes have the computation: one is in the body of the sweep.
    let ran = run(&lab, &["--only", "mul"]).exit(0).called(vec!["mul", "mul", "mul"]);
    ran.prints("only/mul.txt");
    run(&lab, &["--only", "right/table"]).exit(0).called(vec!["divmod", "divmod", "divmod"]);
    run(&lab, &["--only", "right"]).exit(0).called(vec!["count"]);
    run(&lab, &["--only", "TASK"]).exit(0).called(vec!["add"]);
    run(&lab, &[]).exit(0).called(vec![]);
}

#[test]
fn only_inputs_that_the_calls_read_are_needed() {
    let text =
        "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('x')) (divmod INPUT('y') INPUT('y'))[1])";
    let lab = Lab::task(text).commit();
    let run = |arguments: &[&str]| lab.run("ce-run", &[&["--only"], arguments].concat());
    run(&["mul", "-n", "../storage", "../data/x"]).exit(3).called(vec![]);
    let ran = run(&["mul", "--json", "../storage", "../data/x"]).exit(0).called(vec!["mul"]);
    let begin: serde_json::Value = serde_json::from_str(ran.lines()[0]).unwrap();
    assert_eq!(begin["inputs"].as_array().unwrap().len(), 1);
    assert_eq!(begin["inputs"][0]["name"], "x");
    run(&["divmod", "../storage", "../data/y"]).exit(0).called(vec!["divmod"]);
    run(&["divmod", "../storage", "y=../data/y"]).exit(0).called(vec![]);
    // Those that are given are files all the same.
    run(&["divmod", "../storage", "../data/x", "../data/y"]).exit(0).called(vec![]);
    run(&["divmod", "../storage", "../data/none", "../data/y"]).exit(2).says("cannot read the");
    let few = run(&["divmod", "--only", "mul", "../storage", "../data/x"]).exit(2);
    few.says("takes 2 inputs (x, y), and 1 is given");
    run(&["mul", "../storage", "y=../data/y"]).exit(2).says("takes 1 input (x) beside those");
    run(&["add", "../storage", "../data/x"]).exit(2).says("takes 2 inputs (x, y)");
    run(&["mull", "../storage", "../data/x"]).exit(2).says("the task has no call \"mull\"");
    lab.git("task", &["config", "compeval.storage", "../storage"]);
    run(&["mul", "../data/x"]).exit(0).called(vec![]);
    run(&["divmod", "-p", "y=3"]).exit(0).called(vec!["divmod"]);
}

#[test]
fn inputs_whose_texts_are_in_values_are_needed_with_any_call() {
    let lab = Lab::task("Inputs: 'x', 'name'\n(add (mul INPUT('x') INPUT('x')) OWN('{name}'))")
        .file("nine", "9\n")
        .commit();
    let run = |more: &[&str]| lab.run("ce-run", &[&["--only", "mul", "../storage"], more].concat());
    run(&["../data/x"]).exit(2).says("takes 2 inputs (x, name)");
    run(&["../data/x", "-p", "name=nine"]).exit(0).called(vec!["mul"]);
}

#[test]
fn several_calls_and_some_points_are_requested_together() {
    let lab = lab();
    let ran = run(&lab, &["-q", "--only", "PRODUCTS", "--only", "left"]).exit(0);
    assert_eq!(ran.lines().len(), 2, "{}", ran.stdout);
    let lab = self::lab();
    let ran = run(&lab, &["-q", "--only", "divmod", "--where", "a=2"]).exit(0);
    assert!(ran.stdout.starts_with("a=2 b=5\t") && ran.lines().len() == 1, "{}", ran.stdout);
    ran.called(vec!["mul", "divmod"]);
}

#[test]
fn a_dry_run_lists_the_missing_calls() {
    let lab = lab();
    let ran = run(&lab, &["-n", "--only", "divmod"]).exit(3).called(vec![]);
    ran.says("9 calls: 6 missing, 3 not asked for");
    run(&lab, &["--only", "divmod"]).exit(0);
    lab.unchanged(|| run(&lab, &["-n", "--only", "divmod"]).exit(0));
    lab.unchanged(|| run(&lab, &["-n", "--only", "right"]).exit(3));
}

#[test]
fn a_name_that_no_call_has_is_an_error_that_names_similar_ones() {
    let lab = lab();
    let ran = run(&lab, &["--only", "lefd", "--only", "mul"]).exit(2).called(vec![]);
    ran.says("the task has no call \"lefd\"\n  try: did you mean left?");
    let ran = run(&lab, &["--only", "nothing like it"]).exit(2);
    ran.says(
        "  try: there are PRODUCTS, TASK, add, body, count, divmod, left, mul, p, right and 1 more",
    );
    assert!(!lab.path("storage").exists(), "no storage is made");
}

#[test]
fn only_names_a_call_in_the_body_of_a_sweep_with_computed_points() {
    let lab = Lab::task("Inputs: 'x'\n(add INPUT('x') INPUT('x'))[0]")
        .without("workflow")
        .computation("rows", "x", "points", "printf 'a\\tb\\n1\\t2\\n3\\t4\\n' >\"$2\"")
        .node("", "sweep", "")
        .file("workflow/names", "a\nb\n")
        .call("inputs/00-body/", "add", &["a", "b"])
        .call("inputs/01-points/", "rows", &["x"])
        .commit();
    run(&lab, &["-n", "--only", "add"]).exit(3);
    let ran = run(&lab, &["-q", "--only", "add"]).exit(0).called(vec!["rows", "add", "add"]);
    assert_eq!(ran.lines().len(), 2, "{}", ran.stdout);
    assert!(!lab.storage().iter().any(|name| name.starts_with("tables/")));
    run(&lab, &["-q", "--only", "points"]).exit(0).called(vec![]);
}

#[test]
fn a_call_that_fails_fails_the_run_and_others_are_not_looked_at() {
    let lab = lab().computation("mul", "a b", "product", "exit 3").commit_again();
    run(&lab, &["--only", "left"]).exit(1).called(vec!["mul"]);
    run(&lab, &["--only", "PRODUCTS"]).exit(1).called(vec!["mul", "mul", "mul"]);
}

/// The points of lines that `ce run -q` has printed.
fn points(ran: &Ran<'_>) -> Vec<String> {
    let lines = ran.stdout.lines().filter_map(|line| line.split_once('\t'));
    lines.map(|(point, _)| point.to_owned()).collect()
}

#[test]
fn points_are_printed_in_their_order() {
    let levels = "5\n3\n1\n2\n4\n";
    let body = format!("{SWEEP}/inputs/00-body");
    let lab = sum_of_product_and_count(&[("00-a", levels), ("01-b", levels)])
        .node(&format!("{body}/"), "computation", "mul")
        .call(&format!("{body}/inputs/00-p/"), "divmod", &["b", "b"])
        .file(&format!("workflow/{body}/inputs/00-p/outputs"), "00\n")
        .node(&format!("{body}/inputs/01-a/"), "input", "a")
        .commit();
    let texts = ["5", "3", "1", "2", "4"];
    let all: Vec<String> =
        texts.iter().flat_map(|a| texts.map(|b| format!("a={a} b={b}"))).collect();
    let ran = run(&lab, &["-q", "--only", "mul"]).exit(0);
    assert_eq!(points(&ran), all);
    // A call that depends on the second factor only is at the first point of each of its levels.
    let some = texts.map(|b| format!("b={b}"));
    let ran = run(&lab, &["-q", "--only", "divmod"]).exit(0);
    assert_eq!(points(&ran), some);
    // A call in no sweep stays in its place, and so does the tree's list.
    let ran = run(&lab, &["-q", "--only", "divmod", "--only", "left"]).exit(0);
    assert_eq!((points(&ran), ran.lines().len()), (some.to_vec(), 6));
    let ran = run(&lab, &["--only", "divmod"]).exit(0);
    let (_, outputs) = ran.stdout.split_once("Outputs are:\n").unwrap();
    let listed = outputs.lines().map(|line| line.trim().split(": ").next().unwrap());
    assert_eq!(listed.collect::<Vec<_>>(), some);
}
