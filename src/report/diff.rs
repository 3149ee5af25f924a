//! Two evaluations, side by side, for the user to read.

use std::collections::HashMap;
use std::io::{self, Write};

use super::calls::{derived_title, output_names, point_in_words, title, title_at_any_point};
use super::explanation::log;
use super::harmless;
use ce_evaluate::Evaluation;
use ce_files::manifest::{EntryDifference, Manifest};
use ce_model::digest::Digest;
use ce_model::expression::written_alone;
use ce_model::humanize::{counted, size};
use ce_model::plan::Source;
use ce_model::task::{Node, NodeId};
use ce_queries::compare::{
    self, ComparedOutput, ComparedPoint, ComparedSweep, Difference, OutputVerdict, TreeDifference,
};

/// The greatest number of differences of two directories that are printed.
const MAX_ENTRIES: usize = 20;

/// The greatest number of points at which other outputs of a computation are listed.
const MAX_POINTS: usize = 5;

/// Two evaluations, and the user's name of each.
#[derive(Clone, Copy)]
pub struct DiffReport<'a> {
    /// The evaluations.
    pub sides: [&'a Evaluation; 2],
    /// The names.
    pub titles: [&'a str; 2],
}

impl DiffReport<'_> {
    /// Prints which outputs differ, where that enters, and how their texts differ.
    pub fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let outputs = compare::outputs(self.sides);
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
        Some(compare::difference(&one, &other))
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
        let differences = compare::tree_differences(self.sides);
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
        for compared in compare::compared_sweeps(self.sides) {
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
        let divergent_calls = compare::divergent_calls(self.sides);
        if !divergent_calls.is_empty() {
            writeln!(out, "\nother outputs of the same inputs:")?;
        }
        let mut told: HashMap<String, usize> = HashMap::new();
        for compare::DivergentCall { calls, outputs } in divergent_calls {
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
        let workflow_differences = compare::workflow_differences(self.sides);
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
        for (at, difference) in compare::file_differences(self.sides).enumerate() {
            if at == 0 {
                writeln!(out, "\nother files of the task:")?;
            }
            let [old, new] =
                difference.contents.map(|it| format!("{} {}", size(it.total()), it.sha1.short()));
            writeln!(out, "  {}: {old} -> {new}", harmless(difference.path.as_str()))?;
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
