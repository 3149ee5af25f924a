//! Comparing two evaluations: which outputs differ, and where the difference enters; their sweeps, point by point;
//! two tables of a sweep, row by row; and two texts, by lines with Git's choice among differences of equal length.
//!
//! A difference enters in a call with the same inputs and different outputs, or where the two
//! workflows differ. All differences above it are consequences.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::{fs, io, mem};

use gix_imara_diff::{
    Algorithm, Diff, InternedInput, Interner, Token, UnifiedDiffConfig, UnifiedDiffPrinter,
};
use serde::Serialize;

use ce_evaluate::Evaluation;
use ce_git::ChangeLog;
use ce_model::digest::Digest;
use ce_model::expression::kind_and_value;
use ce_model::name::{ComputationName, InputName, TaskPath, TreeName};
use ce_model::plan::{CallId, PlannedSweep, Source, Step, SweepRows};
use ce_model::sweep::{CellValue, SweepPoint};
use ce_model::task::{FileContents, Node, NodeId, Task};

use crate::frame::{ColumnRole, Frame, RowStatus, cells_at, row_numbers};

/// The comparison of two outputs of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputVerdict {
    /// They have the same contents.
    Same,
    /// Their contents differ, or only one task has such an output.
    Differs,
    /// One of them does not exist.
    Unknown,
}

/// An output of a task, on both sides; a side may lack the output of this number.
#[derive(Clone, Copy, Debug)]
pub struct ComparedOutput {
    pub sources: [Option<Source>; 2],
    /// The result of the comparison.
    pub verdict: OutputVerdict,
}

/// A call with different outputs from the same inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DivergentCall {
    /// The call, on both sides.
    pub calls: [CallId; 2],
    /// The numbers of the different outputs.
    pub outputs: Vec<usize>,
}

/// A place where the two workflows differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowDifference {
    /// The labels on the path from the root.
    pub path: Vec<String>,
    /// The nodes, on both sides.
    pub nodes: [NodeId; 2],
}

/// A repository that the two sides read at different commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeDifference {
    /// The repository, and the path in it.
    pub name: TreeName,
    /// The version on each side: a commit, or uncommitted changes.
    pub versions: [String; 2],
    /// The commits that only the newer side has and that touch the path, if the repository has both sides.
    pub came: Option<ChangeLog>,
    /// The commits that only the older side has and that touch the path.
    pub went: Option<ChangeLog>,
}

/// The greatest number of commits in a list.
const MAX_COMMITS: usize = 10;

/// The versions of the Git trees with this name, in the order of the plan.
fn tree_versions<'a>(evaluation: &'a Evaluation, name: &TreeName) -> impl Iterator<Item = &'a str> {
    evaluation.plan.derived().filter_map(move |(id, _)| {
        let tree = &evaluation.task.trees[evaluation.plan.tree(id)?.index()];
        let values = evaluation.tree_values(id).filter(|_| tree.name.written() == name)?;
        Some(values.ok()?.version.as_str())
    })
}

/// The outputs of a call, if they exist.
fn made(evaluation: &Evaluation, call: CallId) -> Option<Vec<Digest>> {
    let outputs = evaluation.outcome(call)?.outputs()?;
    Some(outputs.files.iter().map(|file| file.digest).collect())
}

/// The outputs that a node passes up, as far as they are known.
fn passes(evaluation: &Evaluation, node: NodeId) -> Vec<Option<Digest>> {
    let sources = evaluation.plan.sources(&evaluation.task, node).into_iter();
    sources.map(|source| evaluation.digest(source)).collect()
}

/// All calls with known inputs, by computation and inputs.
fn calls_by_inputs(evaluation: &Evaluation) -> HashMap<(&ComputationName, Vec<Digest>), CallId> {
    let mut first = HashMap::new();
    for (id, call) in evaluation.plan.calls() {
        let inputs: Option<_> =
            call.inputs.iter().map(|source| evaluation.digest(*source)).collect();
        if let Some((inputs, computation)) = inputs.zip(evaluation.computation(id)) {
            first.entry((&computation.name, inputs)).or_insert(id);
        }
    }
    first
}

/// Compares the outputs of two tasks, number by number.
pub fn outputs([one, other]: [&Evaluation; 2]) -> Vec<ComparedOutput> {
    let count = one.plan.outputs().len().max(other.plan.outputs().len());
    let mut compared = Vec::with_capacity(count);
    for number in 0..count {
        let sources = [one, other].map(|side| side.plan.outputs().get(number).copied());
        let verdict = match sources {
            [Some(a), Some(b)] => match (one.digest(a), other.digest(b)) {
                (Some(a), Some(b)) if a == b => OutputVerdict::Same,
                (Some(_), Some(_)) => OutputVerdict::Differs,
                _ => OutputVerdict::Unknown,
            },
            _ => OutputVerdict::Differs,
        };
        compared.push(ComparedOutput { sources, verdict });
    }
    compared
}

/// Returns the repositories that the two tasks read at different commits. Trees of one name are compared in
/// the order of the plan.
pub fn tree_differences([one, other]: [&Evaluation; 2]) -> Vec<TreeDifference> {
    let mut differences = Vec::new();
    let names: BTreeSet<&TreeName> =
        other.task.trees.iter().map(|tree| tree.name.written()).collect();
    for name in names {
        for (old, new) in tree_versions(one, name).zip(tree_versions(other, name)) {
            if old == new {
                continue;
            }
            let (came, went) =
                (tree_log(other, name, [old, new]), tree_log(other, name, [new, old]));
            let versions = [old, new].map(str::to_owned);
            differences.push(TreeDifference { name: name.clone(), versions, came, went });
        }
    }
    differences.dedup();
    differences
}

/// The commits of a repository that a task reads which only the second of two versions has, if they are known.
fn tree_log(evaluation: &Evaluation, name: &TreeName, versions: [&str; 2]) -> Option<ChangeLog> {
    let repository = evaluation.repository(name)?;
    let range = [&versions[0].parse().ok()?, &versions[1].parse().ok()?];
    repository.trees().log(Path::new(name.path()), range, MAX_COMMITS).ok().flatten()
}

/// Returns the calls with different outputs from the same inputs, in the order of the plan.
pub fn divergent_calls([one, other]: [&Evaluation; 2]) -> Vec<DivergentCall> {
    let others = calls_by_inputs(other);
    let mut divergent = Vec::new();
    for (key, id) in calls_by_inputs(one) {
        if let Some(&other_id) = others.get(&key)
            && let (Some(a), Some(b)) = (made(one, id), made(other, other_id))
            && a != b
        {
            let numbers = 0..a.len().max(b.len());
            let outputs = numbers.filter(|&at| a.get(at) != b.get(at)).collect();
            divergent.push(DivergentCall { calls: [id, other_id], outputs });
        }
    }
    divergent.sort_by_key(|call| call.calls[0]);
    divergent
}

/// Returns the places nearest to the root where the two workflows, and the outputs passed up from
/// there, differ.
pub fn workflow_differences(sides: [&Evaluation; 2]) -> Vec<WorkflowDifference> {
    walk(sides, &mut |_| {})
}

/// Goes through both workflows as long as they are alike and their outputs are not the same. Passes each pair of nodes
/// to a function, and returns the places where they part.
fn walk(sides: [&Evaluation; 2], visit: &mut dyn FnMut([NodeId; 2])) -> Vec<WorkflowDifference> {
    let roots = sides.map(|side| side.task.workflow.root());
    let mut differences = Vec::new();
    // The label and the pair from which each pair was reached.
    let mut ways: HashMap<[NodeId; 2], Option<(String, [NodeId; 2])>> =
        HashMap::from([(roots, None)]);
    let mut stack = vec![roots];
    while let Some(nodes) = stack.pop() {
        visit(nodes);
        let Some(pairs) = pairs(sides, nodes) else {
            let mut path = Vec::new();
            let mut here = nodes;
            while let Some(Some((label, from))) = ways.get(&here) {
                path.push(label.clone());
                here = *from;
            }
            path.reverse();
            differences.push(WorkflowDifference { path, nodes });
            continue;
        };
        for (label, pair) in pairs.into_iter().rev() {
            if !are_same(sides, pair) && !ways.contains_key(&pair) {
                ways.insert(pair, Some((label, nodes)));
                stack.push(pair);
            }
        }
    }
    differences
}

/// A file that both tasks read at the same path, with other contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskFileDifference<'a> {
    pub path: &'a TaskPath,
    /// The input whose default it is, if the text of the workflow holds it.
    pub input: Option<&'a InputName>,
    /// The contents on each side.
    pub contents: [Digest; 2],
}

/// Returns the files that both tasks read at the same path, with other contents.
pub fn file_differences<'a>(
    [one, other]: [&'a Evaluation; 2],
) -> impl Iterator<Item = TaskFileDifference<'a>> {
    one.task.files.iter().zip(&one.files.own).enumerate().filter_map(move |(at, (file, old))| {
        let (path, input) = (file.path.written(), written_default(&one.task, at));
        let mut others = other.task.files.iter().enumerate();
        let at = others.position(|(at, it)| {
            it.path.written() == path && written_default(&other.task, at) == input
        })?;
        let contents = [old.as_ref()?.file.digest, other.files.own[at].as_ref()?.file.digest];
        (contents[0] != contents[1]).then_some(TaskFileDifference { path, input, contents })
    })
}

/// The input whose default is a file of a task, if the text of the workflow holds it.
fn written_default(task: &Task, file: usize) -> Option<&InputName> {
    if !matches!(task.files[file].contents, FileContents::Written(_)) {
        return None;
    }
    let input = task.defaults.iter().position(|it| it.is_some_and(|it| it.index() == file))?;
    task.inputs.get(input)
}

/// Whether two nodes pass up the same known outputs. It is unknown for nodes that depend on the points of a sweep.
fn are_same([one, other]: [&Evaluation; 2], [a, b]: [NodeId; 2]) -> bool {
    if one.plan.step(a) == Step::PerPoint || other.plan.step(b) == Step::PerPoint {
        return false;
    }
    let (a, b) = (passes(one, a), passes(other, b));
    a == b && a.iter().all(Option::is_some)
}

/// The inputs of two nodes, in pairs, if the nodes differ only in these.
fn pairs(
    [one, other]: [&Evaluation; 2],
    [a, b]: [NodeId; 2],
) -> Option<Vec<(String, [NodeId; 2])>> {
    let nodes = [&one.task.workflow[a], &other.task.workflow[b]];
    let are_alike = match (nodes[0], nodes[1]) {
        (Node::Sweep { .. }, Node::Sweep { .. }) => true,
        (Node::Points(a), Node::Points(b)) => {
            one.task.sweeps[a.index()].product == other.task.sweeps[b.index()].product
        }
        // An input and a name that a sweep binds are written alike, and are not the same.
        (a_node, b_node) => {
            mem::discriminant(a_node) == mem::discriminant(b_node)
                && kind_and_value(&one.task, a) == kind_and_value(&other.task, b)
        }
    };
    let [of_a, of_b] = nodes.map(Node::inputs);
    let has_same_inputs = slice_numbers(nodes[0]) == slice_numbers(nodes[1])
        && of_a.iter().map(|it| (it.first, it.last)).eq(of_b.iter().map(|it| (it.first, it.last)));
    if !are_alike || !has_same_inputs {
        return None;
    }
    let pairs = of_a.iter().zip(of_b);
    Some(pairs.map(|(a, b)| (b.label.to_string(), [a.node, b.node])).collect())
}

/// The numbers of the outputs that a node passes up, if it says so.
fn slice_numbers(node: &Node) -> Option<Vec<u8>> {
    node.slice().map(|slice| slice.numbers().collect())
}

/// A sweep that both tasks have in the same place, with its points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedSweep {
    /// The calls that gather it, on both sides.
    pub calls: [CallId; 2],
    /// The number of points that both sides have.
    pub points: usize,
    /// The number of points that only one side has.
    pub only: [usize; 2],
    /// The number of points of both sides with an output that is not known on one side.
    pub unknown: usize,
    /// The number of calls with other outputs.
    pub differing: usize,
    /// The first ones with other outputs, in the order of the newer side.
    pub first: Vec<ComparedPoint>,
    /// The number of points of both sides with other labels.
    pub relabelled: usize,
    /// The rules of the tables differ: their columns, or whether failed points are rows.
    pub other_columns: bool,
}

/// A point with other outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedPoint {
    /// The numbers of the point among the points of each side.
    pub rows: [usize; 2],
    /// The number of the first output of the body that differs.
    pub output: usize,
}

/// The greatest number of points that are listed.
const MOST_SHOWN: usize = 5;

/// A point as names and texts, regardless of their order.
type PointKey = Vec<(String, Arc<str>)>;

/// Compares the sweeps that both tasks have in the same place and whose tables are not the same. Sweeps within other sweeps
/// are not compared by themselves.
pub fn compared_sweeps(sides: [&Evaluation; 2]) -> Vec<ComparedSweep> {
    let mut calls = Vec::new();
    let _differences = walk(sides, &mut |nodes| {
        let [a, b] = [0, 1].map(|at| {
            let node = &sides[at].task.workflow[nodes[at]];
            match (node, sides[at].plan.step(nodes[at])) {
                (Node::Sweep { .. }, Step::Call(call)) => Some(call),
                _ => None,
            }
        });
        calls.extend(a.zip(b).map(|(a, b)| [a, b]));
    });
    let mut seen = BTreeSet::new();
    calls.retain(|pair| seen.insert(*pair));
    calls.into_iter().filter_map(|calls| compare_sweeps(sides, calls)).collect()
}

fn compare_sweeps(sides: [&Evaluation; 2], calls: [CallId; 2]) -> Option<ComparedSweep> {
    let sweeps = [0, 1].map(|at| sides[at].plan.gathered(calls[at]));
    let rows = sweeps.map(|sweep| sweep.and_then(PlannedSweep::rows));
    let ([Some(a), Some(b)], [Some(one), Some(other)]) = (sweeps, rows) else { return None };
    let rules = [&sides[0].task.sweeps[a.sweep.index()], &sides[1].task.sweeps[b.sweep.index()]];
    let keys = [0, 1].map(|at| {
        let points = &[one, other][at].points;
        let keys = sides[at].plan.key_columns(&sides[at].task, [a, b][at], points);
        points
            .names()
            .iter()
            .zip(keys)
            .filter(|(_, is_key)| *is_key)
            .map(|it| it.0)
            .collect::<Vec<_>>()
    });
    // If labels tell points apart on one side, they do on the other.
    let keys: BTreeSet<&str> = keys.iter().flatten().map(|name| name.as_str()).collect();
    let mut older: HashMap<PointKey, usize> = one
        .points
        .iter()
        .enumerate()
        .map(|(number, point)| (point_key(point, Some(&keys)), number))
        .collect();
    let mut compared = ComparedSweep {
        calls,
        points: 0,
        only: [0; 2],
        unknown: 0,
        differing: 0,
        first: Vec::new(),
        relabelled: 0,
        other_columns: rules[0].columns != rules[1].columns
            || rules[0].allow_failed != rules[1].allow_failed,
    };
    for (number, point) in other.points.iter().enumerate() {
        let Some(before) = older.remove(&point_key(point, Some(&keys))) else {
            compared.only[1] += 1;
            continue;
        };
        compared.points += 1;
        compared.relabelled +=
            usize::from(point_key(one.points.at(before), None) != point_key(point, None));
        let outputs = [outputs_at(sides[0], one, before), outputs_at(sides[1], other, number)];
        let [Some(before_outputs), Some(now)] = &outputs else {
            // Points that failed on both sides have nothing to compare.
            compared.unknown += 1;
            continue;
        };
        if before_outputs != now {
            compared.differing += 1;
            if compared.first.len() < MOST_SHOWN {
                let output = before_outputs.iter().zip(now).position(|(a, b)| a != b);
                let output = output.unwrap_or(before_outputs.len().min(now.len()));
                compared.first.push(ComparedPoint { rows: [before, number], output });
            }
        }
    }
    compared.only[0] = older.len();
    Some(compared)
}

/// The names and texts of a point, sorted; only the texts of `keys` if there are any.
fn point_key(point: SweepPoint<'_>, keys: Option<&BTreeSet<&str>>) -> PointKey {
    let mut named: PointKey = point
        .values()
        .filter(|(name, _)| keys.is_none_or(|keys| keys.contains(*name)))
        .map(|(name, text)| (name.to_owned(), Arc::clone(text)))
        .collect();
    named.sort_unstable();
    named
}

/// The outputs of the body at a point, if all are known.
fn outputs_at(evaluation: &Evaluation, rows: &SweepRows, number: usize) -> Option<Vec<Digest>> {
    rows.row(number).iter().map(|source| evaluation.digest(*source)).collect()
}

/// Two tables of a sweep, side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct TableComparison {
    /// The names of the columns that tell points apart.
    pub keys: Vec<String>,
    /// The names of all other columns.
    pub outputs: Vec<String>,
    /// The names of these with their units, in the older and in the newer table.
    pub titles: Vec<[String; 2]>,
    /// A row for each row of one of them, in the order of the newer one; rows of the older one alone come last.
    pub rows: Vec<ComparedRow>,
}

/// A row of two tables.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedRow {
    /// The texts of its point.
    pub point: Vec<CellValue>,
    /// The rows of the older and the newer table for it, if they have such a point.
    pub sides: [Option<ComparedSide>; 2],
}

/// A row as one table has it.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedSide {
    pub outputs: Vec<CellValue>,
    /// The state of its point.
    pub status: RowStatus,
}

impl ComparedRow {
    /// Whether an output has another value or the status is another one, or only one side has the row. Why and when a point
    /// failed does not count.
    pub fn is_changed(&self) -> bool {
        match &self.sides {
            [Some(old), Some(new)] => {
                old.outputs != new.outputs || old.status.word() != new.status.word()
            }
            sides => sides.iter().any(Option::is_some),
        }
    }

    /// Whether an output has another value. The values of a side without the row are null.
    pub fn differs(&self, output: usize) -> bool {
        let [old, new] = self
            .sides
            .each_ref()
            .map(|side| side.as_ref().map_or(&CellValue::Null, |side| &side.outputs[output]));
        old != new
    }
}

impl TableComparison {
    /// Compares an older table with a newer one.
    pub fn new(older: &Frame, newer: &Frame) -> Self {
        let tables = [older, newer];
        let names = |is_key: bool| {
            let columns = [newer, older].into_iter().flat_map(|table| &table.columns);
            let mut names: Vec<&str> = Vec::new();
            for column in columns.filter(|it| (it.role == ColumnRole::Key) == is_key) {
                if !names.contains(&&*column.name) {
                    names.push(&column.name);
                }
            }
            names
        };
        let (keys, mut outputs) = (names(true), names(false));
        outputs.retain(|name| !keys.contains(name));
        let texts: Vec<bool> = outputs.iter().map(|name| is_text(tables, name)).collect();
        let mut rows: Vec<ComparedRow> = Vec::new();
        let mut known = HashMap::new();
        for (side, table) in tables.into_iter().enumerate().rev() {
            let [keys, places]: [Vec<Option<usize>>; 2] =
                [&keys, &outputs].map(|names| names.iter().map(|it| table.place(it)).collect());
            let numbers = row_numbers(table.included(), &keys);
            for (row, number) in table.included().zip(numbers) {
                let key: Vec<String> =
                    cells_at(row, &keys).map(|cell| cell.text().to_owned()).collect();
                let at = *known.entry((key, number)).or_insert(rows.len());
                if at == rows.len() {
                    let point = cells_at(row, &keys).cloned().collect();
                    rows.push(ComparedRow { point, sides: [None, None] });
                }
                let mut outputs: Vec<CellValue> = cells_at(row, &places).cloned().collect();
                for (cell, _) in outputs.iter_mut().zip(&texts).filter(|(_, is_text)| **is_text) {
                    cell.make_text();
                }
                rows[at].sides[side] = Some(ComparedSide { outputs, status: row.status.clone() });
            }
        }
        let titles = outputs.iter().map(|name| {
            tables.map(|table| {
                let place = table.place(name);
                place.map_or_else(|| (*name).to_owned(), |at| table.columns[at].title())
            })
        });
        let titles = titles.collect();
        let [keys, outputs] =
            [keys, outputs].map(|names| names.into_iter().map(str::to_owned).collect());
        Self { keys, outputs, titles, rows }
    }
}

/// Whether a column has texts in one of two tables, and one type: then numbers in the other one are texts, too, and equal ones do not
/// differ. Fields of JSON have types of their own.
fn is_text(tables: [&Frame; 2], name: &str) -> bool {
    let columns = tables.map(|table| table.place(name).map(|at| (table, at)));
    let mut columns = columns.into_iter().flatten();
    columns.clone().all(|(table, at)| !table.columns[at].is_field)
        && columns.any(|(table, at)| {
            table.included().any(|row| matches!(row.cells[at], CellValue::Text(_)))
        })
}

/// The greatest size of a file whose lines are compared, in bytes.
const LARGEST_COMPARED: u64 = 1 << 20;

/// The difference of two files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The lines, in the unified format without its header.
    Lines(String),
    /// A file is larger than this, in bytes.
    Large(u64),
    /// A file is not a text.
    Binary,
}

/// Compares two files.
///
/// # Errors
///
/// Fails if one of them cannot be read.
pub fn difference(one: &Path, other: &Path) -> io::Result<Difference> {
    if fs::metadata(one)?.len().max(fs::metadata(other)?.len()) > LARGEST_COMPARED {
        return Ok(Difference::Large(LARGEST_COMPARED));
    }
    let (Some(one), Some(other)) = (read_text(one)?, read_text(other)?) else {
        return Ok(Difference::Binary);
    };
    Ok(Difference::Lines(unified(&one, &other)))
}

/// The difference of two texts in the unified format, without its header.
pub fn unified(one: &str, other: &str) -> String {
    let input = InternedInput::new(one, other);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let lines = Lines(&input.interner);
    diff.unified_diff(&lines, UnifiedDiffConfig::default(), &input).to_string()
}

/// Prints lines as `diff -u` does.
struct Lines<'a>(&'a Interner<&'a str>);

impl Lines<'_> {
    fn line(&self, mut out: impl Write, sign: char, token: Token) -> fmt::Result {
        let line = self.0[token];
        write!(out, "{sign}{line}")?;
        if line.ends_with('\n') {
            Ok(())
        } else {
            out.write_str("\n\\ No newline at end of file\n")
        }
    }
}

/// A range of lines as in `diff -u`: an empty one begins before its first line, a length of one is left out.
fn line_range(first: u32, lines: u32) -> String {
    match lines {
        0 => format!("{first},0"),
        1 => format!("{}", first + 1),
        _ => format!("{},{lines}", first + 1),
    }
}

impl UnifiedDiffPrinter for Lines<'_> {
    fn display_header(
        &self,
        mut out: impl Write,
        first: u32,
        first_of_other: u32,
        lines: u32,
        lines_of_other: u32,
    ) -> fmt::Result {
        let (one, other) = (line_range(first, lines), line_range(first_of_other, lines_of_other));
        writeln!(out, "@@ -{one} +{other} @@")
    }

    fn display_context_token(&self, out: impl Write, token: Token) -> fmt::Result {
        self.line(out, ' ', token)
    }

    fn display_hunk(&self, mut out: impl Write, before: &[Token], after: &[Token]) -> fmt::Result {
        before.iter().try_for_each(|token| self.line(&mut out, '-', *token))?;
        after.iter().try_for_each(|token| self.line(&mut out, '+', *token))
    }
}

/// The contents of a file, if they are text.
fn read_text(path: &Path) -> io::Result<Option<String>> {
    let text = String::from_utf8(fs::read(path)?).ok();
    Ok(text.filter(|text| !text.contains('\0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::tests::{SUITE, frame};

    #[test]
    fn texts_are_compared_by_line_and_binary_files_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, contents: &[u8]| {
            let path = dir.path().join(name);
            fs::write(&path, contents).unwrap();
            path
        };
        let text = file("text", b"a\nb\nc\n");
        let lines = |contents: &[u8]| difference(&text, &file("other", contents)).unwrap();
        assert_eq!(
            lines(b"a\nB\nc\n"),
            Difference::Lines("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n".into())
        );
        assert_eq!(
            lines(b"a\nb\nc"),
            Difference::Lines(
                "@@ -1,3 +1,3 @@\n a\n b\n-c\n+c\n\\ No newline at end of file\n".into()
            )
        );
        assert_eq!(lines(b""), Difference::Lines("@@ -1,3 +0,0 @@\n-a\n-b\n-c\n".into()));
        assert_eq!(lines(b"a\0"), Difference::Binary);
        assert_eq!(lines(b"\xff"), Difference::Binary);
        let large = vec![b'a'; (1 << 20) + 1];
        assert_eq!(lines(&large), Difference::Large(1 << 20));
        assert!(matches!(lines(&large[1..]), Difference::Lines(_)));
        assert!(difference(&text, Path::new("/nowhere/at/all")).is_err());
    }

    /// The rows of a comparison of two tables: points, whether a side has the row, and the names of outputs that differ.
    fn rows(old: &str, new: &str) -> Vec<String> {
        let comparison = TableComparison::new(&frame(old), &frame(new));
        let rows = comparison.rows.iter().map(|row| {
            let point: Vec<&str> = row.point.iter().map(CellValue::text).collect();
            let sides = row.sides.each_ref().map(|side| if side.is_some() { "x" } else { "-" });
            let outputs = comparison.outputs.iter().enumerate();
            let changed = outputs.filter(|(at, _)| row.differs(*at)).map(|(_, name)| &**name);
            let changed: Vec<&str> = changed.collect();
            format!("{} {}: {}", point.join(" "), sides.concat(), changed.join(","))
        });
        rows.collect()
    }

    #[test]
    fn rows_of_two_tables_are_joined_by_keys_in_the_order_of_the_newer_one() {
        let old = "n who~ s@0\n 1 anna 5 | 1\n 2 bert 6 | 2";
        let new = "n who~ s@0\n 3 dora 7 | 1\n 1 anna 8 | 2";
        assert_eq!(rows(old, new), ["3 -x: who,s", "1 xx: s", "2 x-: who,s"]);
    }

    #[test]
    fn rows_with_the_same_keys_are_joined_by_their_numbers() {
        let (old, new) = ("n s@0*\n 1 5 | 1\n 1 6 | 1\n 1 7 | 1", "n s@0*\n 1 5 | 1\n 1 8 | 1");
        assert_eq!(rows(old, new), ["1 xx: ", "1 xx: s", "1 x-: s"]);
    }

    #[test]
    fn rows_of_benchmarks_are_joined_by_their_names() {
        let new = "tool replicate benchmark@0* seconds@0*
            a 1 slow 100.1 | 1\n a 1 new 1 | 1\n a 2 slow 5 | 2\n a 2 new 1 | 2";
        let found = rows(SUITE, new);
        assert!(found.contains(&"a 1 slow xx: ".to_owned()), "{found:?}");
        assert!(found.contains(&"a 2 slow xx: seconds".to_owned()), "{found:?}");
        assert!(found.contains(&"a 1 new -x: seconds".to_owned()), "{found:?}");
        assert!(found.contains(&"a 1 fast x-: seconds".to_owned()), "{found:?}");
    }

    #[test]
    fn excluded_rows_are_not_compared() {
        assert_eq!(rows("n s@0\n 1 5 | 1\n 2 - | excluded", "n s@0\n 1 5 | 1"), ["1 xx: "]);
    }

    #[test]
    fn numbers_are_texts_where_the_other_side_has_texts() {
        assert_eq!(rows("n s@0\n 1 5 | 1", "n s@0\n 1 \"5\" | 1\n 2 a | 2"), ["1 xx: ", "2 -x: s"]);
    }
}
