//! Two evaluations, side by side, as JSON: doc/programs/ce-diff.md describes the fields.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::diff::{DiffReport, node_words};
use super::summary::tally;
use ce_evaluate::Evaluation;
use ce_files::manifest::{EntryDifference, shown};
use ce_model::exit::Exit;
use ce_model::plan::{CallId, Source};
use ce_model::sweep::SweepPoint;
use ce_model::task::ROOT_LABEL;
use ce_queries::compare::{
    self, ComparedOutput, ComparedPoint, ComparedSweep, Difference, DivergentCall, OutputVerdict,
    TaskFileDifference, TreeDifference, WorkflowDifference,
};

impl DiffReport<'_> {
    /// Prints an object a line: the versions, each output, each difference, and the end.
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be written.
    pub fn print_json(&self, exit: Exit, out: &mut dyn Write) -> io::Result<()> {
        let mut print = |line: Value| {
            serde_json::to_writer(&mut *out, &line)?;
            out.write_all(b"\n")
        };
        let [old, new] = [0, 1].map(|at| {
            let side = self.sides[at];
            json!({
                "version": self.titles[at],
                "commit": side.task.commit.full(),
                "tally": tally(side),
            })
        });
        let task = self.sides[1].task.name.as_str();
        print(json!({ "event": "versions", "task": task, "old": old, "new": new }))?;
        let outputs = compare::outputs(self.sides);
        outputs.iter().enumerate().try_for_each(|(at, it)| print(self.output_json(at, it)))?;
        if outputs.iter().any(|output| output.verdict != OutputVerdict::Same) {
            self.differences_json(&mut print)?;
        }
        print(json!({ "event": "end", "exit": exit.code() }))
    }

    fn differences_json(&self, print: &mut dyn FnMut(Value) -> io::Result<()>) -> io::Result<()> {
        for TreeDifference { name, versions: [old, new], came, went } in
            compare::tree_differences(self.sides)
        {
            print(json!({
                "event": "tree", "tree": name, "old": old, "new": new,
                "came": came, "went": went,
            }))?;
        }
        for compared in compare::compared_sweeps(self.sides) {
            print(self.sweep_json(&compared))?;
        }
        for divergent in compare::divergent_calls(self.sides) {
            print(self.call_json(&divergent))?;
        }
        for WorkflowDifference { path, nodes } in compare::workflow_differences(self.sides) {
            let [old, new] = [0, 1].map(|at| node_words(self.sides[at], nodes[at]));
            print(json!({ "event": "workflow", "path": path, "old": old, "new": new }))?;
        }
        for TaskFileDifference { path, contents: [old, new] } in
            compare::file_differences(self.sides)
        {
            print(json!({ "event": "file", "file": path, "old": old, "new": new }))?;
        }
        Ok(())
    }

    fn output_json(&self, number: usize, output: &ComparedOutput) -> Value {
        let [old, new] = self.sides_json(output.sources);
        let mut line = json!({
            "event": "output", "number": number, "name": self.symbol(output.sources),
            "verdict": output.verdict, "old": old, "new": new,
        });
        if let Some(manifests) = self.manifests(output) {
            let [old, new] = &manifests;
            let entries: Vec<Value> = old.differences(new).iter().map(entry_json).collect();
            line["entries"] = entries.into();
        } else if let Some(difference) = self.difference(output) {
            line["lines"] = match difference {
                Ok(Difference::Lines(lines)) => lines.into(),
                Ok(Difference::Large(_) | Difference::Binary) | Err(_) => Value::Null,
            };
        }
        line
    }

    fn sweep_json(&self, compared: &ComparedSweep) -> Value {
        let ComparedSweep { calls, points, only, unknown, differing, first, .. } = compared;
        let ComparedSweep { relabelled, other_columns, .. } = compared;
        let [older, newer] = self.sides;
        let rows = [older.plan.gathered(calls[0]), newer.plan.gathered(calls[1])]
            .map(|sweep| sweep.and_then(|it| Some((it, it.rows()?))));
        let first: Vec<Value> = match rows {
            [Some((_, before)), Some((sweep, now))] => {
                let names = newer.task.passed_names(sweep.body);
                let point = |it: &ComparedPoint| {
                    let [old, new] = [before.row(it.rows[0]), now.row(it.rows[1])]
                        .map(|row| row.get(it.output).copied());
                    let [old, new] = self.sides_json([old, new]);
                    let point = point_json(now.points.at(it.rows[1]));
                    let output = names.get(it.output);
                    json!({ "point": point, "output": output, "old": old, "new": new })
                };
                first.iter().map(point).collect()
            }
            _ => Vec::new(),
        };
        json!({
            "event": "sweep",
            "label": label(newer, calls[1]),
            "points": points,
            "differing": differing,
            "first": first,
            "only_old": only[0],
            "only_new": only[1],
            "unknown": unknown,
            "relabelled": relabelled,
            "other_columns": other_columns,
        })
    }

    fn call_json(&self, DivergentCall { calls, outputs }: &DivergentCall) -> Value {
        let newer = self.sides[1];
        let output = |number: &usize| {
            let sources = calls.map(|call| Some(Source::Output { call, number: *number as u8 }));
            let [old, new] = self.sides_json(sources);
            json!({ "number": number, "name": self.symbol(sources), "old": old, "new": new })
        };
        let point: Map<String, Value> = newer
            .plan
            .point(&newer.task, calls[1])
            .into_iter()
            .map(|(name, text)| (name.to_owned(), text.into()))
            .collect();
        json!({
            "event": "call",
            "computation": newer.computation(calls[1]).map(|it| it.name.as_str()),
            "label": label(newer, calls[1]),
            "point": point,
            "outputs": outputs.iter().map(output).collect::<Vec<_>>(),
        })
    }

    /// A file on each side.
    fn sides_json(&self, sources: [Option<Source>; 2]) -> [Value; 2] {
        [0, 1].map(|at| {
            let (side, source) = (self.sides[at], sources[at]);
            let file = |it| json!({ "file": side.name(it), "contents": side.digest(it) });
            source.map_or(Value::Null, file)
        })
    }
}

/// The labels that lead to a call.
fn label(evaluation: &Evaluation, call: CallId) -> String {
    evaluation.label_path(call).unwrap_or_else(|| ROOT_LABEL.to_owned())
}

fn point_json(point: SweepPoint<'_>) -> Map<String, Value> {
    point.values().map(|(name, text)| (name.to_owned(), Value::from(&**text))).collect()
}

fn entry_json(EntryDifference { path, entries }: &EntryDifference<'_>) -> Value {
    let change = match entries {
        [Some(_), None] => "removed",
        [None, _] => "added",
        [Some(_), Some(_)] => "changed",
    };
    json!({ "path": shown(path), "change": change })
}
