//! Calls at points of sweeps.

use std::fs;

use serde_json::{Value, json};

use super::{explain, record, told};
use crate::lab::Lab;
use crate::repository::{self, LAB};

/// A task that measures trees of the repository `lib`, at revisions that a file of its input names.
fn measured(text: &str) -> Lab {
    let lab = Lab::task(text).computation("size", "dir/", "size", "wc -c <\"$1/file\" >\"$2\"");
    fs::create_dir_all(lab.path("lib")).unwrap();
    lab.commit().with_storage()
}

/// Makes a commit of the repository `lib` with these contents; returns it.
fn revision(lab: &Lab, contents: &str) -> String {
    fs::write(lab.path("lib/file"), contents).unwrap();
    repository::commit(&lab.path("lib"), LAB, contents);
    lab.git("lib", &["rev-parse", "HEAD"]).trim_end().to_owned()
}

/// The causes and calls that `ce explain` tells with these arguments.
#[track_caller]
fn told_with(lab: &Lab, arguments: &[&str]) -> Vec<Value> {
    let explain = ["explain", "--json", "../storage", "-r", "upstream=../lib"];
    let ran = lab.run("ce", &[&explain, arguments].concat()).exit(3);
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_tree_of_a_new_point_is_new() {
    let lab = measured(
        "Inputs: 'revs'\n\
         SWEEP(:body (size TREE('upstream' INPUT('rev'))) :points INPUT('revs') :allow-failed)",
    );
    let one = revision(&lab, "one\n");
    fs::write(lab.path("data/revs"), format!("rev\n{one}\n")).unwrap();
    let run = ["../storage", "-r", "upstream=../lib", "../data/revs"];
    lab.run("ce-run", &run).exit(0);
    let three = revision(&lab, "three\n");
    fs::write(lab.path("data/revs"), format!("rev\n{one}\n{three}\n")).unwrap();
    let told = told_with(&lab, &["../data/revs"]);
    assert_eq!((&told[0]["cause"], &told[0]["calls"]), (&json!("point"), &json!(1)));
    assert_eq!(
        (&told[1]["point"], &told[1]["why"][0]["why"]),
        (&json!({"rev": three}), &json!("point"))
    );
    lab.run("ce-run", &[&["-n"], &run[..]].concat()).exit(3).says("input 00 (dir/) is new");
}

#[test]
fn a_text_with_a_name_of_a_new_point_is_new() {
    let sweep = |levels: &str| format!("SWEEP((bytes TEXT('size={{n}}')) :over n {levels})");
    let lab = Lab::empty().computation("bytes", "text", "size", "wc -c <\"$1\" >\"$2\"");
    let lab = lab.one_text(&sweep("'1'")).commit().with_storage();
    lab.run("ce-run", &["../storage"]).exit(0);
    let lab = lab.one_text(&sweep("'1' '30'")).commit_again();
    let ran = lab.run("ce", &["explain", "--json", "../storage"]).exit(3);
    // The commit is not a child of the first one, so the computation counts as changed, too.
    let told = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let causes: Vec<Value> = told.map(|line| line["cause"].clone()).take(2).collect();
    assert_eq!(causes, ["computation", "point"]);
}

#[test]
fn an_unknown_value_is_not_reported_as_damage() {
    let lab = measured("Inputs: 'd'\n(size TREE('upstream' MEMBER('rev' INPUT('d'))))");
    fs::create_dir_all(lab.path("data/dir")).unwrap();
    for contents in ["one\n", "three\n"] {
        let revision = revision(&lab, contents);
        fs::write(lab.path("data/dir/rev"), format!("{revision}\n")).unwrap();
        if contents == "one\n" {
            lab.run("ce-run", &["../storage", "-r", "upstream=../lib", "../data/dir"]).exit(0);
        }
    }
    let told = told_with(&lab, &["../data/dir"]);
    assert_eq!((&told[0]["cause"], &told[0]["calls"]), (&json!("never_computed"), &json!(1)));
}

/// A sweep over `n` after a run; the point 2 fails. Its table is the input of a call.
fn with_failures(sheet: &str) -> Lab {
    let text = "(fin SWEEP(:body (next (bad INPUT('n'))) :points OWN('n.tsv') :allow-failed))";
    let lab = Lab::task(text)
        .file("inputs", "")
        .file("n.tsv", sheet)
        .computation("bad", "n", "o", "[ \"$(cat \"$1\")\" != 2 ] && cp \"$1\" \"$2\"")
        .computation("next", "o", "p", "cp \"$1\" \"$2\"")
        .computation("fin", "t", "u", "cp \"$1\" \"$2\"")
        .commit();
    lab.ce_run(&["--no-sync"]).exit(0).says("1 failed, 1 blocked");
    record(&lab, "c_", &[("isolation", "namespaces")]);
    lab
}

#[test]
fn a_call_behind_a_failure_that_is_not_retried_would_not_run() {
    let lab = with_failures("n\n1\n2\n3\n");
    explain(&lab, &[]).exit(0).shows("nothing would run: all results are there\n");
    lab.ce_run(&["-n"]).exit(0).says("1 failed, 1 blocked");
}

#[test]
fn a_reader_of_a_table_waits_for_the_calls_that_would_run() {
    let lab = with_failures("n\n2\n1\n");
    fs::write(lab.path("task/n.tsv"), "n\n2\n1\n3\n").unwrap();
    let (_, calls, _) = told(&lab, &["--dirty"], 3);
    assert_eq!(calls.len(), 3);
    let ran = explain(&lab, &["--dirty"]).exit(3);
    ran.shows("fin (TASK): input 00 (t) waits for n=3: next (body)");
}
