//! The computations of the library that read tables, each as a small task.

mod derive;
mod merge;
mod plots;
mod programs;
mod scales;
mod summarise;

use std::fs;
use std::path::Path;

use crate::examples::{copy, programs_of};
use crate::lab::Lab;
use crate::needs::needs;

/// A task that calls one computation of the library with the task's inputs.
pub(super) fn one_call(name: &str) -> Lab {
    let inputs = fs::read_to_string(library().join(name).join("inputs")).unwrap();
    let inputs: Vec<String> = inputs.lines().map(|name| format!("'{name}'")).collect();
    let calls: Vec<String> = inputs.iter().map(|name| format!("INPUT({name})")).collect();
    let text = format!("Inputs: {}\n({name} {})", inputs.join(", "), calls.join(" "));
    with_library(Lab::task(&text), &[name]).commit()
}

/// Adds computations of the library to a task that is yet to be committed.
pub(super) fn with_library(lab: Lab, names: &[&str]) -> Lab {
    needs(&programs_of(&names.join(" ")));
    for name in names {
        copy(&library().join(name), &lab.path("task/computations").join(name));
    }
    lab
}

pub(super) fn library() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/computations-example"))
}

/// Gives each input of the task a text.
pub(super) fn given(mut lab: Lab, texts: &[&str]) -> Lab {
    assert_eq!(lab.inputs.len(), texts.len());
    for (name, text) in lab.inputs.clone().iter().zip(texts) {
        lab = lab.data(name, text);
    }
    lab
}

/// Returns the output that the computation makes from these inputs, in a sandbox.
#[track_caller]
pub(super) fn makes(name: &str, texts: &[&str]) -> String {
    let lab = given(one_call(name), texts).isolated();
    lab.ce_run(&["-q"]).exit(0);
    lab.output()
}

/// The computation refuses these inputs with one line.
#[track_caller]
pub(super) fn refuses(lab: Lab, name: &str, texts: &[&str], line: &str) -> Lab {
    let lab = given(lab, texts);
    let ran = lab.ce_run(&[]).exit(1).says(&format!("{name}: {line}\n"));
    assert!(!ran.stderr.contains("Traceback"), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches(&format!("{name}: ")).count(), 1, "{}", ran.stderr);
    lab
}

#[test]
fn copies_of_modules_are_equal() {
    for module in ["tables.py", "samples.py", "points.py", "figures.py"] {
        let copies = fs::read_dir(library()).unwrap().map(|entry| entry.unwrap().path());
        let mut copies = copies.map(|dir| dir.join(module)).filter(|path| path.exists());
        let first = copies.next().unwrap();
        let text = fs::read(&first).unwrap();
        for copy in copies {
            assert!(fs::read(&copy).unwrap() == text, "{first:?} and {copy:?} differ");
        }
    }
}
