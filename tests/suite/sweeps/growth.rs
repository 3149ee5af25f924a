//! Growth executes exactly the new calls.

use super::{FACTORS, product, sweep};
use crate::lab::Library;

#[test]
fn a_new_level_executes_its_points_and_another_order_executes_nothing() {
    let lab = product(&FACTORS).commit_with(Library::Submodule);
    lab.ce_run(&[]).exit(0).called(vec!["mul"; 6]);
    let lab = lab
        .without("workflow/factors")
        .file("workflow/factors/00-b", "7\n3\n5\n")
        .file("workflow/factors/05-a", "2\n1\n")
        .commit_again();
    lab.ce_run(&[]).exit(0).called(vec![]);
    assert!(lab.table().starts_with("{\"b\":7,\"a\":2,\"product\":14}\n"));
    let lab = lab.file("workflow/factors/05-a", "9\n1\n2\n").commit_again();
    lab.ce_run(&[]).exit(0).called(vec!["mul"; 3]);
    let lab = lab.file("workflow/factors/05-a", "2\n").commit_again();
    lab.ce_run(&[]).exit(0).called(vec![]);
    assert_eq!(lab.table().lines().count(), 3);
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
