//! Growth executes exactly the new calls.

use super::{FACTORS, product, sweep};
use crate::lab::Library;

#[test]
fn a_new_level_executes_its_points() {
    let lab = product(&FACTORS).commit_with(Library::Submodule);
    lab.ce_run(&[]).exit(0).called(vec!["mul"; 6]);
    let lab = lab.file("workflow/factors/00-a", "9\n1\n2\n").commit_again();
    lab.ce_run(&[]).exit(0).called(vec!["mul"; 3]);
    let lab = lab.file("workflow/factors/00-a", "2\n").commit_again();
    lab.ce_run(&[]).exit(0).called(vec![]);
    assert_eq!(lab.table().lines().count(), 3);
}

#[test]
fn other_orders_of_factors_and_levels_change_no_call() {
    let lab = product(&FACTORS).commit_with(Library::Submodule);
    lab.ce_run(&[]).exit(0).called(vec!["mul"; 6]);
    let lab = lab
        .without("workflow/factors")
        .file("workflow/factors/00-b", "7\n3\n5\n")
        .file("workflow/factors/05-a", "2\n1\n")
        .commit_again();
    lab.ce_run(&[]).exit(0).called(vec![]);
    assert!(lab.table().starts_with("{\"b\":7,\"a\":2,\"product\":14}\n"));
}

#[test]
fn more_replicates_execute_the_new_ones() {
    let with = |replicates: &str| {
        [("factors/00-n", "1\n2\n"), ("replicates", replicates)]
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
    };
    let files = with("2");
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let lab = sweep("", &files)
        .call("inputs/00-body/", "add", &["n", "replicate"])
        .commit_with(Library::Submodule);
    lab.ce_run(&[]).exit(0).says("4 calls");
    assert!(lab.table().ends_with("{\"n\":2,\"replicate\":2,\"sum\":4}\n"));
    lab.called();
    let lab = lab.file("workflow/replicates", "5").commit_again();
    lab.ce_run(&[]).exit(0).called(vec!["add"; 6]);
}

#[test]
fn a_sweep_of_one_point_has_the_calls_of_its_body() {
    let lab =
        product(&[("factors/00-a", "6"), ("factors/01-b", "7")]).commit_with(Library::Submodule);
    lab.ce_run(&[]).exit(0).called(vec!["mul"]);
    assert_eq!(lab.table(), "{\"a\":6,\"b\":7,\"product\":42}\n");
    let mut lab = lab
        .without("workflow")
        .file("inputs", "a\nb\n")
        .data("a", "6\n")
        .data("b", "7\n")
        .call("", "mul", &["a", "b"])
        .commit_again();
    lab.inputs = vec!["a".to_owned(), "b".to_owned()];
    lab.ce_run(&[]).exit(0).called(vec![]);
    assert_eq!(lab.output(), "42\n");
}

#[test]
fn calls_that_depend_on_no_factor_are_one_call() {
    let lab = sweep("x", &FACTORS)
        .data("x", "4\n")
        .node("inputs/00-body/", "computation", "add")
        .call("inputs/00-body/inputs/00-l/", "mul", &["x", "a"])
        .node("inputs/00-body/inputs/01-r/", "computation", "add")
        .call("inputs/00-body/inputs/01-r/inputs/00-s/", "mul", &["x", "x"])
        .node("inputs/00-body/inputs/01-r/inputs/01-b/", "input", "b")
        .commit_with(Library::Submodule);
    // Six points: a product for each a, one for x alone, a sum for each b, and one for each point.
    lab.ce_run(&[]).exit(0).says("12 calls: 12 computed");
}
