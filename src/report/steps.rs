//! The steps of measurements over commits, in words: for a terminal, and for a page.

use ce_model::humanize::counted;
use ce_model::statistics::{Estimate, MedianChange};
use ce_model::steps::LEAST_SERIES;
use ce_queries::page::{CommitStep, CommitSteps, MeasuredTable};

use super::medians::significant;

/// The label that says what a commit is about.
const SUBJECT: &str = "subject";

/// The steps of a column, a line each. Without any, a line says why, unless only steps are asked for.
pub fn steps_in_words(table: &MeasuredTable, column: usize, only_steps: bool) -> Vec<String> {
    let name = &table.columns[column].name;
    let mut lines = Vec::new();
    let mut found = table.steps(column);
    found.retain(|it| !only_steps || !it.steps.is_empty());
    for CommitSteps { point, n, steps } in found {
        let others = (0..table.axes.len()).filter(|axis| Some(*axis) != table.commits());
        let others = others.map(|axis| {
            format!("{} = {}", table.axes[axis].name, table.label(&table.points[point], axis))
        });
        let others: Vec<String> = others.collect();
        let place =
            if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
        let commits = counted(n, "measured commit");
        match (&steps[..], n < LEAST_SERIES) {
            (_, true) => {
                lines.push(format!("{name}{place}: {commits}, and steps need {LEAST_SERIES}"));
            }
            ([], _) => lines.push(format!("{name}{place}: no step in {commits}")),
            (steps, _) => {
                let steps =
                    steps.iter().map(|step| format!("{name}{place}: {}", in_words(table, step)));
                lines.extend(steps);
            }
        }
    }
    lines
}

/// A step: `+1452 % [1449, 1460] at fe700c15 "simpler", after 50e4de5f`.
fn in_words(table: &MeasuredTable, CommitStep { points: [old, new], step }: &CommitStep) -> String {
    let [before, after] = step.levels;
    let is_ratio = before > 0.0 && after > 0.0;
    let shown = |change: f64| match is_ratio {
        true => significant((change - 1.0) * 100.0, 3),
        false => significant(change, 3),
    };
    let value = if is_ratio { after / before } else { after - before };
    let sign = if after > before { "+" } else { "" };
    let unit = if is_ratio { " %" } else { "" };
    let ends = match step.change {
        Some(MedianChange { estimate: Estimate { low, high, .. }, is_ratio: of_ratio })
            if of_ratio == is_ratio =>
        {
            format!(" [{}, {}]", shown(low), shown(high))
        }
        _ => String::new(),
    };
    let axis = table.commits().unwrap_or_default();
    let [old, new] = [old, new].map(|number| &table.points[*number]);
    let subject = table.labels.iter().position(|label| label == SUBJECT);
    let subject = subject.and_then(|at| new.labels.get(at));
    let subject = subject.map(|subject| format!(" {subject:?}")).unwrap_or_default();
    let (first, last) = (table.label(new, axis), table.label(old, axis));
    format!("{sign}{}{unit}{ends} at {first}{subject}, after {last}", shown(value))
}
