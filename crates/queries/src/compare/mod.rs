//! Comparing two evaluations: which outputs differ, and where the difference enters.
//!
//! A difference enters in a call with the same inputs and different outputs, or where the two
//! workflows differ. All differences above it are consequences.

mod sweeps;
mod text;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

pub use self::sweeps::{ComparedPoint, ComparedSweep, compared_sweeps};
pub use self::text::{Difference, difference};
use ce_evaluate::Evaluation;
use ce_git::ChangeLog;
use ce_model::digest::Digest;
use ce_model::name::{ComputationName, TaskPath, TreeName};
use ce_model::plan::{CallId, Source, Step};
use ce_model::task::{Argument, Node, NodeId};

/// The comparison of two outputs of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputVerdict {
    /// They have the same contents.
    Same,
    /// Their contents differ, or only one task has such an output.
    Differs,
    /// One of them does not exist.
    Unknown,
}

/// An output of a task, on both sides; a side may have none of this number.
#[derive(Clone, Copy, Debug)]
pub struct ComparedOutput {
    /// Their sources.
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
    let numbers = evaluation.task.workflow[node].numbers();
    match evaluation.plan.step(node) {
        Step::Call(call) => {
            numbers.map(|number| evaluation.digest(Source::Output { call, number })).collect()
        }
        Step::Derived(value) => {
            numbers.map(|number| evaluation.digest(Source::Derived { value, number })).collect()
        }
        Step::Leaf(source) => vec![evaluation.digest(source)],
        Step::PerPoint => Vec::new(),
    }
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
    let compare = |number| {
        let sources = [one, other].map(|side| side.plan.outputs().get(number).copied());
        let verdict = match sources {
            [Some(a), Some(b)] => match (one.digest(a), other.digest(b)) {
                (Some(a), Some(b)) if a == b => OutputVerdict::Same,
                (Some(_), Some(_)) => OutputVerdict::Differs,
                _ => OutputVerdict::Unknown,
            },
            _ => OutputVerdict::Differs,
        };
        ComparedOutput { sources, verdict }
    };
    (0..count).map(compare).collect()
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
            let log = |old: &str, new: &str| {
                let repository = other.repository(name)?;
                let range = [&old.parse().ok()?, &new.parse().ok()?];
                repository.trees().log(Path::new(name.path()), range, MAX_COMMITS).ok().flatten()
            };
            let (came, went) = (log(old, new), log(new, old));
            let versions = [old, new].map(str::to_owned);
            differences.push(TreeDifference { name: name.clone(), versions, came, went });
        }
    }
    differences.dedup();
    differences
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
    /// Its path in the task.
    pub path: &'a TaskPath,
    /// The contents on each side.
    pub contents: [Digest; 2],
}

/// Returns the files that both tasks read at the same path, with other contents.
pub fn file_differences<'a>(
    [one, other]: [&'a Evaluation; 2],
) -> impl Iterator<Item = TaskFileDifference<'a>> {
    let files = |side: &'a Evaluation| {
        side.task.files.iter().map(|it| it.path.written()).zip(&side.files.own)
    };
    files(one).filter_map(move |(path, old)| {
        let (_, new) = files(other).find(|(it, _)| *it == path)?;
        let contents = [old.as_ref()?.file.digest, new.as_ref()?.file.digest];
        (contents[0] != contents[1]).then_some(TaskFileDifference { path, contents })
    })
}

/// Whether two nodes pass up the same known outputs. That is not known of nodes that depend on the points of a sweep.
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
    let inputs = || {
        let ends = |it: &Argument| (it.first, it.last);
        let numbers = |node: &Node| node.slice().map(|slice| slice.numbers().collect::<Vec<_>>());
        let [of_a, of_b] = nodes.map(Node::inputs);
        let alike = numbers(nodes[0]) == numbers(nodes[1])
            && of_a.iter().map(ends).eq(of_b.iter().map(ends));
        let pairs = of_a.iter().zip(of_b);
        alike.then(|| pairs.map(|(a, b)| (b.label.to_string(), [a.node, b.node])).collect())
    };
    match (nodes[0], nodes[1]) {
        (Node::Computation { computation: a, .. }, Node::Computation { computation: b, .. }) => {
            (a.written(&one.task) == b.written(&other.task)).then(inputs).flatten()
        }
        (Node::Tree { tree: a, .. }, Node::Tree { tree: b, .. }) => {
            let names = [&one.task.trees[a.index()], &other.task.trees[b.index()]];
            (names[0].name == names[1].name).then(inputs).flatten()
        }
        (Node::Member { path: a, .. }, Node::Member { path: b, .. }) => {
            (a == b).then(inputs).flatten()
        }
        (Node::Input(a), Node::Input(b)) => {
            (one.task.inputs[a.index()] == other.task.inputs[b.index()]).then(Vec::new)
        }
        (Node::Bound(a), Node::Bound(b)) => {
            (one.task.bound[a.index()] == other.task.bound[b.index()]).then(Vec::new)
        }
        (Node::Sweep { .. }, Node::Sweep { .. }) => inputs(),
        (Node::Points(a), Node::Points(b)) => {
            let products = [&one.task.sweeps[a.index()], &other.task.sweeps[b.index()]];
            (products[0].product == products[1].product).then(Vec::new)
        }
        (Node::Literal(a), Node::Literal(b)) => (a == b).then(Vec::new),
        (Node::File(a), Node::File(b)) => {
            (one.task.files[a.index()].path == other.task.files[b.index()].path).then(Vec::new)
        }
        _ => None,
    }
}
