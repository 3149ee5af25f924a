//! Sub-workflows that are shared through symbolic links.

use std::fmt::Write;

use compeval::expression::{Labels, Sharing, Style};

use crate::lab::Lab;

#[test]
fn a_linked_sub_workflow_is_one_expression_and_one_call() {
    let text = "Inputs: 'x', 'y'
        (add #1=(mul INPUT('x') INPUT('y'))[0] #1#)[0]";
    let lab = Lab::task(text).commit();
    assert!(lab.path("task/workflow/inputs/01-again").is_symlink());
    lab.run("ce-sym", &["--share"]).exit(0).prints("load/shared-sym.txt");
    lab.run("ce-sym", &[]).exit(0).prints("load/repeated-sym.txt");
    lab.ce_run(&[]).exit(0).called(vec!["add", "mul"]);
    assert_eq!(lab.output(), "170\n");
}

/// `(add #1=(add #2=(... INPUT('x') INPUT('x') ...)[0] #2#)[0] #1#)[0]`: this number of calls.
fn doubling(calls: usize) -> String {
    let mut text = "Inputs: 'x'\n".to_owned();
    for number in 1..calls {
        write!(text, "(add #{number}=").unwrap();
    }
    text += "(add INPUT('x') INPUT('x'))[0]";
    for number in (1..calls).rev() {
        write!(text, " #{number}#)[0]").unwrap();
    }
    text
}

#[test]
fn a_tree_of_2_to_the_60_paths_over_60_directories_is_60_calls() {
    let lab = Lab::task(&doubling(60)).data("x", "1\n").commit();
    let check = lab.run("ce", &["check"]).exit(0).stdout;
    assert!(check.ends_with(": 1 input, 60 calls, 1 computation, 1 output\n"), "{check}");
    let text = lab.run("ce-sym", &["--share"]).exit(0).stdout;
    let style = Style { sharing: Sharing::Label, labels: Labels::Hide };
    assert_eq!(text, crate::lisp::shown(&crate::lisp::text(&doubling(60)), style));
    assert!(text.lines().count() < 200, "{text}");
    lab.ce_run(&[]).exit(0).called(vec!["add"; 60]).prints("load/doubling.txt");
    assert_eq!(lab.output(), format!("{}\n", 1_u64 << 60));
    lab.ce_run(&[]).exit(0).called(vec![]);
}
