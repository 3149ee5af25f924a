//! Sweeps: bodies that are evaluated for each point, and the tables of their outputs.

mod allowed;
mod computed;
mod conditions;
mod faults;
mod fields;
mod growth;
mod levels;
mod made_up;
mod measured_once;
mod memory;
mod naming;
mod open_names;
mod properties;
mod refused;
mod rewritten;
mod same_names;
mod scope;
mod table;
pub(crate) mod until;

use crate::lab::Lab;

impl Lab {
    /// Writes a node of the workflow: its kind, and its value unless that is empty.
    pub(crate) fn node(self, place: &str, kind: &str, value: &str) -> Self {
        let lab = self.file(&format!("workflow/{place}kind"), kind);
        if value.is_empty() { lab } else { lab.file(&format!("workflow/{place}value"), value) }
    }

    /// Writes a node of a computation whose inputs are names of inputs, in order.
    pub(crate) fn call(self, place: &str, computation: &str, inputs: &[&str]) -> Self {
        let lab = self.node(place, "computation", computation);
        inputs.iter().enumerate().fold(lab, |lab, (number, name)| {
            lab.node(&format!("{place}inputs/{number:02}-{number}/"), "input", name)
        })
    }

    /// The contents of the table that is the task's output.
    #[track_caller]
    pub(crate) fn table(&self) -> String {
        self.output()
    }
}

/// A task whose root is a sweep with these files. Its body is yet to be written.
pub(crate) fn sweep(inputs: &str, files: &[(&str, &str)]) -> Lab {
    let mut lab = Lab::task("(add INPUT('x') INPUT('x'))")
        .file("inputs", inputs.replace(' ', "\n"))
        .without("workflow");
    lab.inputs = inputs.split_whitespace().map(str::to_owned).collect();
    let lab = lab.node("", "sweep", "");
    files.iter().fold(lab, |lab, (name, text)| lab.file(&format!("workflow/{name}"), text))
}

/// A sweep that multiplies two factors.
fn product(files: &[(&str, &str)]) -> Lab {
    sweep("", files).call("inputs/00-body/", "mul", &["a", "b"])
}

/// The factors of [`product`], unless a test has others.
const FACTORS: [(&str, &str); 2] = [("factors/00-a", "1\n2\n"), ("factors/01-b", "3\n5\n7\n")];
