//! `ce check`: loads a task and tells what is wrong with it.

use std::collections::BTreeSet;
use std::io::Write;

use clap::Parser;

use super::Tool;
use super::options::TaskDir;
use crate::report::{self, say};
use ce_evaluate::session::{Error, OutputError, check_trees, expand_own_sheets};
use ce_git::Trees;
use ce_model::exit::Exit;
use ce_model::expression::written_alone;
use ce_model::humanize::counted;
use ce_model::plan::Plan;
use ce_model::suggest::nearest;
use ce_model::sweep::Lookalike;
use ce_model::task::Task;
use ce_task::load::Uncommitted;

/// Load a task and report every problem, without evaluating anything
#[derive(Debug, Parser)]
#[command(version, after_help = "Exit codes: 0 the task is valid, 2 it is wrong.")]
pub struct Check {
    /// Print only what is wrong or odd
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,

    /// Print the numbers as one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    task: TaskDir,
}

impl Tool for Check {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let task = self.task.load("ce", Uncommitted::Warn)?;
        check_trees(&self.task.task, &task)?;
        for name in task.unused_inputs() {
            say(
                "ce",
                &format_args!(
                    "warning: inputs: nothing reads the input {name}\n  try: read it in the workflow, or remove its line"
                ),
            );
        }
        for (node, name) in task.unknown_names().filter(|(_, name)| !name.is_empty()) {
            let inputs: Vec<String> = task.inputs.iter().map(ToString::to_string).collect();
            let value = written_alone(&task, node);
            let advice = match nearest(name, &inputs) {
                Some(nearest) => format!("did you mean {{{nearest}}}?"),
                None => "add the name to the file inputs if a text is to stand there".to_owned(),
            };
            say(
                "ce",
                &format_args!(
                    "warning: {value}: {{{name}}} is the name of no input, and stays\n  try: {advice}"
                ),
            );
        }
        let plan = Plan::new(&task);
        expand_own_sheets(&Trees::new(&self.task.task), &task, &plan)?;
        warn_of_lookalikes(&task, &plan);
        if self.json {
            report::checked_json(&task, &plan, out).map_err(OutputError)?;
            return Ok(Exit::Done);
        }
        if self.quiet {
            return Ok(Exit::Done);
        }
        let (name, commit) = (&task.name, task.commit.short());
        let tables = plan.sweeps().len();
        let at_least = if plan.grows() { "at least " } else { "" };
        let mut count = vec![
            counted(task.inputs.len(), "input"),
            format!("{at_least}{}", counted(plan.calls().len() - tables, "call")),
        ];
        count.extend((tables > 0).then(|| counted(tables, "table")));
        count.extend([
            counted(task.computations.len(), "computation"),
            counted(plan.outputs().len(), "output"),
        ]);
        writeln!(out, "{name} at {commit}: {}", count.join(", ")).map_err(OutputError)?;
        Ok(Exit::Done)
    }
}

/// Warns of points in sheets of the task with texts that are probably meant to be one. Of factors, the loader does.
fn warn_of_lookalikes(task: &Task, plan: &Plan) {
    let mut warnings = BTreeSet::new();
    for sweep in plan.sweeps() {
        let rules = &task.sweeps[sweep.sweep.index()];
        let Some(rows) = sweep.rows().filter(|_| rules.product.factors.is_empty()) else {
            continue;
        };
        let is_key = plan.key_columns(task, sweep, &rows.points);
        let names = rows.points.names().iter().zip(is_key);
        let keys: Vec<&String> =
            names.filter(|(_, is_key)| *is_key).map(|(name, _)| name).collect();
        for Lookalike { column, first, second, .. } in rows.points.lookalikes() {
            if keys.contains(&&column) {
                warnings.insert(format!(
                    "warning: {}: {first:?} and {second:?} of {column} are different texts, and so different points\n  try: spell them alike if one point is meant",
                    rules.place.display()
                ));
            }
        }
    }
    warnings.iter().for_each(|warning| say("ce", warning));
}
