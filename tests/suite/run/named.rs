//! Inputs that are given by name, or as a text.

use std::fs;

use crate::lab::Lab;
use crate::program::Ran;

fn lab() -> Lab {
    let task = "Inputs: 'x', 'y'\n(sub INPUT('x') INPUT('y'))[0]";
    let lab =
        Lab::task(task).computation("sub", "a b", "c", r#"echo $(($(cat $1) - $(cat $2))) >$3"#);
    lab.data("x", "7\n").data("y", "2\n").commit()
}

/// Returns the contents of the task's only output, after a run with these arguments.
fn output(lab: &Lab, arguments: &[&str]) -> String {
    let ran = lab.run("ce-run", &[&["-q"], arguments].concat()).exit(0);
    fs::read_to_string(lab.path("task").join(ran.stdout.trim_end())).unwrap()
}

#[test]
fn the_order_of_named_inputs_does_not_matter() {
    let lab = lab();
    let ways: [&[&str]; 7] = [
        &["../storage", "../data/x", "../data/y"],
        &["../storage", "y=../data/y", "x=../data/x"],
        &["y=../data/y", "../storage", "../data/x"],
        &["../storage", "x=../data/x", "../data/y"],
        &["-p", "x=7", "../storage", "../data/y"],
        &["../storage", "--param=y=2", "-px=7"],
        &["-p", "x=7", "-p", "y=2", "--at", "HEAD", "../storage"],
    ];
    for way in ways {
        assert_eq!(output(&lab, way), "5\n", "{way:?}");
    }
    assert_eq!(lab.called(), ["sub"], "all of them are one job");
    assert_eq!(output(&lab, &["../storage", "x=../data/y", "y=../data/x"]), "-5\n");
    // A configured storage need not be given.
    lab.git("task", &["config", "compeval.storage", "../storage"]);
    for way in [&["x=../data/x", "../data/y"][..], &["-p", "y=2", "../data/x"], &["-px=7", "-py=2"]]
    {
        assert_eq!(output(&lab, way), "5\n", "{way:?}");
    }
    // A text is stored as a file with a newline.
    lab.run("ce-run", &["../storage", "-p", "x=a b=c", "-p", "y="]).exit(1);
    let digest = compeval::digest::Digest::hash_bytes(b"a b=c\n").sha1.short();
    let file = lab.path(&format!("storage/tinputs/{}/{}", &digest[..2], &digest[2..]));
    assert_eq!(fs::read(file).unwrap(), b"a b=c\n");
}

#[test]
fn every_command_with_inputs_accepts_them_by_name() {
    let lab = lab();
    output(&lab, &["../storage", "-px=7", "-py=2"]);
    let given = ["../storage", "y=../data/y", "-px=7"];
    lab.run("ce", &[&["explain"], &given[..]].concat()).exit(0);
    lab.run("ce-viz", &given).exit(0).shows("digraph");
    lab.run("ce", &[&["diff", "HEAD", "HEAD"], &given[..]].concat()).exit(0);
    let bisect = ["bisect", "--good", "HEAD", "--bad", "HEAD"];
    lab.run("ce", &[&bisect, &given[..]].concat()).exit(2).says("HEAD");
}

#[test]
fn faults_of_named_inputs_are_reported() {
    let lab = lab();
    let run = |arguments: &[&str]| -> Ran<'_> { lab.run("ce-run", arguments) };
    run(&["../storage", "-p", "z=1"]).exit(2).says("the task task takes no input z");
    run(&["../storage", "x=../data/x", "-p", "x=1", "../data/y"])
        .exit(2)
        .says("the input x is given twice");
    run(&["../storage", "x=../data/x"])
        .exit(2)
        .says("takes 1 input (y) beside those given by name, and 0 are given");
    run(&["../storage", "-p", "x"]).exit(2).says("write NAME=TEXT");
    run(&["../storage", "x=../data/none", "../data/y"])
        .exit(2)
        .says("cannot read the input x, ../data/none");
    run(&["../storage", "number=../data/x", "../data/y"])
        .exit(2)
        .says("the task task takes no input number\n  try: its inputs are x, y");
    run(&["xx=../data/x", "../storage", "../data/y"]).exit(2).says("takes no input xx");
    // A file with = in its name is a path.
    fs::write(lab.path("task/z=1"), "1\n").unwrap();
    run(&["-n", "../storage", "z=1", "../data/y"]).exit(3);
}
