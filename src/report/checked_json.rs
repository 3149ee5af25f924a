//! What a valid task is made of, in JSON.

use std::io::{self, Write};

use serde::Serialize;

use ce_model::name::InputName;
use ce_model::plan::Plan;
use ce_model::task::Task;

#[derive(Serialize)]
struct TaskLine<'a> {
    task: &'a str,
    commit: &'a str,
    inputs: Vec<&'a str>,
    calls: usize,
    at_least: bool,
    tables: usize,
    computations: usize,
    outputs: usize,
}

/// Prints one object about a task: its name and commit, its inputs, and the numbers of the rest.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn checked_json(task: &Task, plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    let tables = plan.sweeps().len();
    let line = TaskLine {
        task: task.name.as_str(),
        commit: task.commit.full(),
        inputs: task.inputs.iter().map(InputName::as_str).collect(),
        calls: plan.calls().len() - tables,
        at_least: plan.grows(),
        tables,
        computations: task.computations.len(),
        outputs: plan.outputs().len(),
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")
}
