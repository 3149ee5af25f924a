//! Two versions of a task, side by side: for a terminal, and as JSON. doc/schema/output.json describes the fields.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::calls::{derived_title, output_names, point_in_words, title, title_at_any_point};
use super::explanation::log;
use super::printer::tally;
use super::{harmless, json_line};
use ce_evaluate::Evaluation;
use ce_files::manifest::{EntryDifference, Manifest, shown};
use ce_model::digest::Digest;
use ce_model::exit::Exit;
use ce_model::expression::written_alone;
use ce_model::humanize::{counted, size};
use ce_model::plan::{CallId, Source};
use ce_model::sweep::SweepPoint;
use ce_model::task::{Node, NodeId, ROOT_LABEL};
use ce_queries::diff::{
    self, ComparedOutput, ComparedPoint, ComparedSweep, Difference, DivergentCall, OutputVerdict,
    TaskFileDifference, TreeDifference, WorkflowDifference,
};

/// The greatest number of differences of two directories that are printed.
const MAX_ENTRIES: usize = 20;

/// The greatest number of points at which other outputs of a computation are listed.
const MAX_POINTS: usize = 5;

/// Two evaluations, and the user's name of each.
#[derive(Clone, Copy)]
pub struct DiffReport<'a> {
    pub sides: [&'a Evaluation; 2],
    /// The names.
    pub titles: [&'a str; 2],
}

impl DiffReport<'_> {
    /// Prints which outputs differ, where that enters, and how their texts differ.
    pub fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let outputs = diff::outputs(self.sides);
        for (number, output) in outputs.iter().enumerate() {
            let verdict = match output.verdict {
                OutputVerdict::Same => "the same",
                OutputVerdict::Differs => "differs",
                OutputVerdict::Unknown => "is not known",
            };
            writeln!(out, "output {}: {verdict}", self.name(number, output))?;
            if output.verdict != OutputVerdict::Same {
                self.files(output.sources, out)?;
            }
        }
        if outputs.iter().all(|output| output.verdict == OutputVerdict::Same) {
            return Ok(());
        }
        self.tree_differences(out)?;
        self.sweeps(out)?;
        self.divergent_calls(out)?;
        self.workflow_differences(out)?;
        self.file_differences(out)?;
        let mut outputs = outputs.iter().enumerate();
        outputs.try_for_each(|(at, output)| self.text(&self.name(at, output), output, out))
    }

    /// The number and the symbolic name of an output.
    fn name(&self, number: usize, output: &ComparedOutput) -> String {
        format!("{number:02} {}", harmless(&self.symbol(output.sources)))
    }

    /// The symbolic name of an output, the newer one if there are two.
    pub(super) fn symbol(&self, sources: [Option<Source>; 2]) -> String {
        let [one, other] = self.sides;
        match sources {
            [_, Some(source)] => symbol(other, source),
            [Some(source), None] => symbol(one, source),
            [None, None] => String::new(),
        }
    }

    /// The manifests of an output that is a directory on both sides and differs.
    pub(super) fn manifests(&self, output: &ComparedOutput) -> Option<[Manifest; 2]> {
        let [one, other] = differing(output)?;
        Some([manifest_of(self.sides[0], one)?, manifest_of(self.sides[1], other)?])
    }

    /// The difference of the texts of an output that both sides have.
    pub(super) fn difference(&self, output: &ComparedOutput) -> Option<io::Result<Difference>> {
        let [one, other] = differing(output)?;
        let [one, other] = [path_of(self.sides[0], one)?, path_of(self.sides[1], other)?];
        Some(diff::difference(&one, &other))
    }

    /// Prints a line for each side: its file, size and SHA-1.
    fn files(&self, sources: [Option<Source>; 2], out: &mut dyn Write) -> io::Result<()> {
        let width = self.titles.iter().map(|title| title.chars().count()).max().unwrap_or(0);
        for ((evaluation, title), source) in self.sides.iter().zip(self.titles).zip(sources) {
            let text =
                source.map_or_else(|| "no such output".to_owned(), |it| file_words(evaluation, it));
            writeln!(out, "    {:width$}  {text}", harmless(title))?;
        }
        Ok(())
    }

    fn tree_differences(&self, out: &mut dyn Write) -> io::Result<()> {
        let differences = diff::tree_differences(self.sides);
        if !differences.is_empty() {
            writeln!(out, "\nother commits of repositories:")?;
        }
        for TreeDifference { name, versions: [old, new], came, went } in differences {
            writeln!(out, "  {}: {old} -> {new}", harmless(name.as_str()))?;
            log(came.as_ref(), "", out)?;
            log(went.as_ref(), "without ", out)?;
        }
        Ok(())
    }

    /// Prints how many points of sweeps differ, and the first of them.
    fn sweeps(&self, out: &mut dyn Write) -> io::Result<()> {
        for compared in diff::compared_sweeps(self.sides) {
            let ComparedSweep { calls, points, only, unknown, differing, first, .. } = compared;
            let ComparedSweep { relabelled, other_columns, .. } = compared;
            let title = title_at_any_point(self.sides[1], calls[1]);
            writeln!(out, "\n{title}: {differing} of {} differ", counted(points, "point"))?;
            let rows = [0, 1].map(|at| self.sides[at].plan.gathered(calls[at])?.rows());
            let [Some(old), Some(new)] = rows else { continue };
            let names = self.sides[1].plan.gathered(calls[1]);
            let names =
                names.map(|it| self.sides[1].task.passed_names(it.body)).unwrap_or_default();
            for ComparedPoint { rows: [before, now], output } in &first {
                let point = point_in_words(new.points.at(*now));
                let name = names.get(*output).map_or("", String::as_str);
                writeln!(out, "  {point}: {}", harmless(name))?;
                let sources = [old.row(*before), new.row(*now)];
                self.files(sources.map(|row| row.get(*output).copied()), out)?;
            }
            if differing > first.len() {
                writeln!(out, "  and {}", counted(differing - first.len(), "more point"))?;
            }
            for (count, title) in only.into_iter().zip(self.titles).filter(|(it, _)| *it > 0) {
                writeln!(out, "  {} only in {}", counted(count, "point"), harmless(title))?;
            }
            if unknown > 0 {
                writeln!(
                    out,
                    "  {} without a result on one side or both",
                    counted(unknown, "point")
                )?;
            }
            if relabelled > 0 {
                writeln!(out, "  {} with other labels", counted(relabelled, "point"))?;
            }
            if other_columns {
                writeln!(out, "  the tables have different columns")?;
            }
        }
        Ok(())
    }

    fn divergent_calls(&self, out: &mut dyn Write) -> io::Result<()> {
        let divergent_calls = diff::divergent_calls(self.sides);
        if !divergent_calls.is_empty() {
            writeln!(out, "\nother outputs of the same inputs:")?;
        }
        let mut told: HashMap<String, usize> = HashMap::new();
        for DivergentCall { calls, outputs } in divergent_calls {
            if self.sides[1].plan.call(calls[1]).point.is_some() {
                let count = told.entry(title_at_any_point(self.sides[1], calls[1])).or_default();
                *count += 1;
                if *count > MAX_POINTS {
                    continue;
                }
            }
            for number in outputs {
                let sources = calls.map(|call| Source::Output { call, number: number as u8 });
                let title = title(self.sides[1], calls[1]);
                let name = symbol(self.sides[1], sources[1]);
                writeln!(out, "  {title}, output {number:02} {}", harmless(&name))?;
                self.files(sources.map(Some), out)?;
            }
        }
        let mut more: Vec<_> = told.into_iter().filter(|(_, count)| *count > MAX_POINTS).collect();
        more.sort_unstable();
        more.into_iter().try_for_each(|(title, count)| {
            writeln!(out, "  {title}, at {}", counted(count - MAX_POINTS, "more point"))
        })
    }

    fn workflow_differences(&self, out: &mut dyn Write) -> io::Result<()> {
        let workflow_differences = diff::workflow_differences(self.sides);
        if !workflow_differences.is_empty() {
            writeln!(out, "\nthe workflow is another one at:")?;
        }
        for difference_at in workflow_differences {
            let labels = ["TASK"].into_iter().chain(difference_at.path.iter().map(String::as_str));
            let path = labels.map(harmless).collect::<Vec<_>>().join(" / ");
            let [one, other] = [0, 1].map(|at| node_words(self.sides[at], difference_at.nodes[at]));
            writeln!(out, "  {path}: {one} -> {other}")?;
        }
        Ok(())
    }

    fn file_differences(&self, out: &mut dyn Write) -> io::Result<()> {
        for (at, difference) in diff::file_differences(self.sides).enumerate() {
            if at == 0 {
                writeln!(out, "\nother files of the task:")?;
            }
            let [old, new] =
                difference.contents.map(|it| format!("{} {}", size(it.total()), it.sha1.short()));
            let input = difference.input.map(|name| format!(", input {}", harmless(name.as_str())));
            let (path, input) = (harmless(difference.path.as_str()), input.unwrap_or_default());
            writeln!(out, "  {path}{input}: {old} -> {new}")?;
        }
        Ok(())
    }

    fn text(&self, name: &str, output: &ComparedOutput, out: &mut dyn Write) -> io::Result<()> {
        if let Some([one, other]) = self.manifests(output) {
            return entries(name, &one.differences(&other), out);
        }
        let Some(difference) = self.difference(output) else { return Ok(()) };
        writeln!(out)?;
        match difference {
            Ok(Difference::Lines(lines)) => {
                let titles = self.titles.map(harmless);
                writeln!(out, "--- {} {name}\n+++ {} {name}", titles[0], titles[1])?;
                lines
                    .split_terminator('\n')
                    .try_for_each(|line| writeln!(out, "{}", harmless(line)))
            }
            Ok(Difference::Large(most)) => {
                writeln!(out, "output {name}: larger than {}, and not shown", size(most))
            }
            Ok(Difference::Binary) => writeln!(out, "output {name}: no text, and not shown"),
            Err(error) => writeln!(out, "output {name}: cannot be read: {error}"),
        }
    }
}

/// The sources of an output that both sides have, if it differs.
const fn differing(output: &ComparedOutput) -> Option<[Source; 2]> {
    match (output.verdict, output.sources) {
        (OutputVerdict::Differs, [Some(one), Some(other)]) => Some([one, other]),
        _ => None,
    }
}

/// Prints the entries in which two directories differ.
fn entries(name: &str, differences: &[EntryDifference<'_>], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\noutput {name}: {}", counted(differences.len(), "difference"))?;
    differences.iter().take(MAX_ENTRIES).try_for_each(|entry| writeln!(out, "  {entry}"))?;
    match differences.len().saturating_sub(MAX_ENTRIES) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}

/// The manifest of a directory.
fn manifest_of(evaluation: &Evaluation, source: Source) -> Option<Manifest> {
    let digest = evaluation.digest(source).filter(Digest::is_directory)?;
    evaluation.storage.values().manifest(&evaluation.name(source)?, &digest).ok()?
}

/// The symbolic name of a file in the task or computation.
fn symbol(evaluation: &Evaluation, source: Source) -> String {
    match source {
        Source::Input(id) => evaluation.task.inputs[id.index()].to_string(),
        Source::Literal(id) => evaluation.plan.literals()[id.index()].to_string(),
        Source::File(id) => evaluation.task.files[id.index()].path.to_string(),
        Source::Derived { value: tree, number } => derived_title(evaluation, tree, number),
        Source::Output { call, number } => {
            output_names(evaluation, call).nth(number.into()).unwrap_or_default().to_owned()
        }
    }
}

/// The path, size and SHA-1 of a file, or the reason why it is missing.
fn file_words(evaluation: &Evaluation, source: Source) -> String {
    let name = evaluation.name(source).unwrap_or_default();
    match evaluation.digest(source) {
        Some(digest) => {
            let (size, sha1) = (size(digest.total()), digest.sha1.short());
            format!("{}  {size}  {sha1}", evaluation.shown(&name))
        }
        None => format!("{}  MISSING", evaluation.shown(&name)),
    }
}

fn path_of(evaluation: &Evaluation, source: Source) -> Option<std::path::PathBuf> {
    let name = evaluation.name(source)?;
    Some(evaluation.storage.path(&name))
}

/// A node of the workflow, in words.
pub(super) fn node_words(evaluation: &Evaluation, node: NodeId) -> String {
    match &evaluation.task.workflow[node] {
        Node::Computation { computation, outputs, .. } => {
            let name = computation.written(&evaluation.task);
            let numbers: Vec<String> =
                outputs.numbers().map(|number| format!("{number:02}")).collect();
            format!("{name}[{}]", numbers.join(", "))
        }
        _ => written_alone(&evaluation.task, node),
    }
}

impl DiffReport<'_> {
    /// Prints an object a line: the versions, each output, each difference, and the end.
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be written.
    pub fn print_json(&self, exit: Exit, out: &mut dyn Write) -> io::Result<()> {
        let [old, new] = [0, 1].map(|at| {
            let side = self.sides[at];
            json!({
                "version": self.titles[at],
                "commit": side.task.commit.full(),
                "tally": tally(side),
            })
        });
        let task = self.sides[1].task.name.as_str();
        json_line(&json!({ "event": "versions", "task": task, "old": old, "new": new }), out)?;
        let outputs = diff::outputs(self.sides);
        for (number, output) in outputs.iter().enumerate() {
            json_line(&self.output_json(number, output), out)?;
        }
        if outputs.iter().any(|output| output.verdict != OutputVerdict::Same) {
            self.differences_json(out)?;
        }
        json_line(&json!({ "event": "end", "exit": exit.code() }), out)
    }

    fn differences_json(&self, out: &mut dyn Write) -> io::Result<()> {
        for TreeDifference { name, versions: [old, new], came, went } in
            diff::tree_differences(self.sides)
        {
            json_line(
                &json!({
                    "event": "tree", "tree": name, "old": old, "new": new,
                    "came": came, "went": went,
                }),
                out,
            )?;
        }
        for compared in diff::compared_sweeps(self.sides) {
            json_line(&self.sweep_json(&compared), out)?;
        }
        for divergent in diff::divergent_calls(self.sides) {
            json_line(&self.call_json(&divergent), out)?;
        }
        for WorkflowDifference { path, nodes } in diff::workflow_differences(self.sides) {
            let [old, new] = [0, 1].map(|at| node_words(self.sides[at], nodes[at]));
            json_line(&json!({ "event": "workflow", "path": path, "old": old, "new": new }), out)?;
        }
        for TaskFileDifference { path, input, contents: [old, new] } in
            diff::file_differences(self.sides)
        {
            let mut line = json!({ "event": "file", "file": path, "old": old, "new": new });
            if let Some(input) = input {
                line["input"] = json!(input.as_str());
            }
            json_line(&line, out)?;
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
                let points = first.iter().map(|it| {
                    let [old, new] = [before.row(it.rows[0]), now.row(it.rows[1])]
                        .map(|row| row.get(it.output).copied());
                    let [old, new] = self.sides_json([old, new]);
                    let point = point_json(now.points.at(it.rows[1]));
                    let output = names.get(it.output);
                    json!({ "point": point, "output": output, "old": old, "new": new })
                });
                points.collect()
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
        let outputs = outputs.iter().map(|number| {
            let sources = calls.map(|call| Some(Source::Output { call, number: *number as u8 }));
            let [old, new] = self.sides_json(sources);
            json!({ "number": number, "name": self.symbol(sources), "old": old, "new": new })
        });
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
            "outputs": outputs.collect::<Vec<_>>(),
        })
    }

    /// A file on each side.
    fn sides_json(&self, sources: [Option<Source>; 2]) -> [Value; 2] {
        [0, 1].map(|at| {
            let Some(source) = sources[at] else { return Value::Null };
            let side = self.sides[at];
            json!({ "file": side.name(source), "contents": side.digest(source) })
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
