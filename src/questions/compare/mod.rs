//! Two evaluations, side by side: which outputs differ, and where the difference enters.
//!
//! A difference enters in a call whose inputs are the same and whose outputs are not, or where the
//! two expressions part. Everything above is a consequence.

mod text;

use std::collections::HashMap;

pub use self::text::{Difference, difference};
use crate::digest::Digest;
use crate::evaluate::Evaluation;
use crate::plan::{CallId, Source, Step};
use crate::task::name::ComputationName;
use crate::task::workflow::{Node, NodeId};

/// What two outputs of the same number are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputVerdict {
    /// They have the same contents.
    Same,
    /// They have other contents, or only one task has such an output.
    Differs,
    /// One of them is not there.
    Unknown,
}

/// An output of a task, on both sides; a side may have none of this number.
#[derive(Clone, Copy, Debug)]
pub struct ComparedOutput {
    /// Where they come from.
    pub sources: [Option<Source>; 2],
    /// What they are to each other.
    pub verdict: OutputVerdict,
}

/// A computation that makes other outputs of the same inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DivergentCall {
    /// The call, on both sides.
    pub calls: [CallId; 2],
    /// The numbers of the outputs that differ.
    pub outputs: Vec<usize>,
}

/// A place where the two expressions are not the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowDifference {
    /// The labels that lead there from the root.
    pub path: Vec<String>,
    /// What is there, on both sides.
    pub nodes: [NodeId; 2],
}

impl Evaluation {
    /// The outputs of a call, if they are there.
    fn made(&self, call: CallId) -> Option<Vec<Digest>> {
        let outputs = self.outcome(call)?.outputs()?;
        Some(outputs.files.iter().map(|file| file.digest).collect())
    }

    /// What a node passes up, as far as it is known.
    fn passes(&self, node: NodeId) -> Vec<Option<Digest>> {
        match (self.plan.step(node), &self.task.workflow[node]) {
            (Step::Call(call), Node::Computation { outputs, .. }) => {
                let source = |number| Source::Output { call, number };
                outputs.numbers().map(|number| self.digest(source(number))).collect()
            }
            (Step::Leaf(source), _) => vec![self.digest(source)],
            (Step::Call(_), _) => Vec::new(),
        }
    }

    /// All calls that were made, each under its computation and what it was given.
    fn calls(&self) -> HashMap<(&ComputationName, Vec<Digest>), CallId> {
        let calls = self.plan.calls().filter_map(|(id, call)| {
            let inputs = call.inputs.iter().map(|source| self.digest(*source)).collect();
            let inputs: Option<Vec<Digest>> = inputs;
            Some(((&self.computation(id).name, inputs?), id))
        });
        let mut first = HashMap::new();
        for (key, id) in calls {
            first.entry(key).or_insert(id);
        }
        first
    }
}

/// Compares the outputs of two tasks, number by number.
pub fn outputs([one, other]: [&Evaluation; 2]) -> Vec<ComparedOutput> {
    let count = one.plan.outputs().len().max(other.plan.outputs().len());
    let output = |number| {
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
    (0..count).map(output).collect()
}

/// Returns the computations that make other outputs of the same inputs, in the order of the plan.
pub fn divergent_calls([one, other]: [&Evaluation; 2]) -> Vec<DivergentCall> {
    let (calls, others) = (one.calls(), other.calls());
    let divergent_call = |(key, id): (&(&ComputationName, Vec<Digest>), &CallId)| {
        let calls = [*id, *others.get(key)?];
        let (a, b) = (one.made(calls[0])?, other.made(calls[1])?);
        let numbers = 0..a.len().max(b.len());
        let outputs: Vec<usize> = numbers.filter(|&at| a.get(at) != b.get(at)).collect();
        (!outputs.is_empty()).then_some(DivergentCall { calls, outputs })
    };
    let mut divergent_calls: Vec<DivergentCall> = calls.iter().filter_map(divergent_call).collect();
    divergent_calls.sort_by_key(|divergent_call| divergent_call.calls[0]);
    divergent_calls
}

/// Returns the places where the two expressions part and what they pass up is not the same, each
/// the nearest to the root.
pub fn workflow_differences(sides: [&Evaluation; 2]) -> Vec<WorkflowDifference> {
    let roots = sides.map(|side| side.task.workflow.root());
    let mut workflow_differences = Vec::new();
    // How each pair was come to: its label, and from which pair.
    let mut ways: HashMap<[NodeId; 2], Option<(String, [NodeId; 2])>> =
        HashMap::from([(roots, None)]);
    let mut stack = vec![roots];
    while let Some(nodes) = stack.pop() {
        let Some(pairs) = pairs(sides, nodes) else {
            let up = |(_, from): &&(String, [NodeId; 2])| ways.get(from)?.as_ref();
            let way = std::iter::successors(ways.get(&nodes).and_then(Option::as_ref), up);
            let mut path: Vec<String> = way.map(|(label, _)| label.clone()).collect();
            path.reverse();
            workflow_differences.push(WorkflowDifference { path, nodes });
            continue;
        };
        for (label, pair) in pairs.into_iter().rev() {
            if !are_same(sides, pair) && !ways.contains_key(&pair) {
                ways.insert(pair, Some((label, nodes)));
                stack.push(pair);
            }
        }
    }
    workflow_differences
}

/// Whether two nodes are known to pass up the same.
fn are_same([one, other]: [&Evaluation; 2], [a, b]: [NodeId; 2]) -> bool {
    let (a, b) = (one.passes(a), other.passes(b));
    a == b && a.iter().all(Option::is_some)
}

/// The inputs of two nodes, in pairs, if the nodes are the same but for these.
fn pairs(
    [one, other]: [&Evaluation; 2],
    [a, b]: [NodeId; 2],
) -> Option<Vec<(String, [NodeId; 2])>> {
    match (&one.task.workflow[a], &other.task.workflow[b]) {
        (
            Node::Computation { computation: a, inputs: of_a, outputs: slice },
            Node::Computation { computation: b, inputs: of_b, outputs },
        ) => {
            let names = [&one.task.computations[a.index()], &other.task.computations[b.index()]];
            let ends = |it: &crate::task::workflow::Argument| (it.first, it.last);
            let alike = names[0].name == names[1].name
                && slice.numbers().eq(outputs.numbers())
                && of_a.iter().map(ends).eq(of_b.iter().map(ends));
            let pair =
                |(a, b): (&crate::task::workflow::Argument, &crate::task::workflow::Argument)| {
                    (b.label.to_string(), [a.node, b.node])
                };
            alike.then(|| of_a.iter().zip(of_b).map(pair).collect())
        }
        (Node::Input(a), Node::Input(b)) => {
            let same = one.task.inputs[a.index()] == other.task.inputs[b.index()];
            same.then(Vec::new)
        }
        (Node::Literal(a), Node::Literal(b)) => (a == b).then(Vec::new),
        (Node::File(a), Node::File(b)) => {
            let same = one.task.files[a.index()].path == other.task.files[b.index()].path;
            same.then(Vec::new)
        }
        _ => None,
    }
}
