//! From a workflow to its unique calls, leaves first.
//!
//! A call is planned by where its inputs come from; what they contain is not known yet. Two nodes
//! of a computation with the same sources are one call, whatever they are called and whichever
//! outputs they pass up. Pure: reads nothing, and its time is linear in nodes plus edges.

use std::collections::HashMap;

use crate::task::name::StorageName;
use crate::task::workflow::{ComputationId, InputId, Node, NodeId, TaskFileId, Workflow, ids};

ids! {
    /// A call of a [`Plan`].
    CallId
    /// A literal of a [`Plan`].
    LiteralId
}

/// The source of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// An input of the task.
    Input(InputId),
    /// A file that is in the storage.
    Literal(LiteralId),
    /// A file of the task itself.
    File(TaskFileId),
    /// An output of a call.
    Output {
        /// The call.
        call: CallId,
        /// The number of the output.
        number: u8,
    },
}

/// A computation to be called, and the sources of its inputs.
#[derive(Debug)]
pub struct Planned {
    /// The computation.
    pub computation: ComputationId,
    /// The sources of its inputs, in order.
    pub inputs: Box<[Source]>,
}

/// A node of the workflow in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The node takes its files from a call.
    Call(CallId),
    /// The node is a file that exists before any call.
    Leaf(Source),
}

/// The unique calls of a workflow, each after those that it reads from.
#[derive(Debug)]
pub struct Plan {
    calls: Vec<Planned>,
    dependents: Dependents,
    literals: Vec<StorageName>,
    steps: Vec<Step>,
    outputs: Vec<Source>,
}

impl Plan {
    /// Plans the evaluation of a workflow.
    pub fn new(workflow: &Workflow) -> Self {
        let mut plan = Planner::default();
        for (_, node) in workflow.nodes() {
            let step = plan.step(workflow, node);
            plan.steps.push(step);
        }
        let mut outputs = Vec::new();
        plan.sources(workflow, workflow.root(), &mut outputs);
        let Planner { calls, literals, steps, .. } = plan;
        let dependents = Dependents::new(&calls);
        Self { calls, dependents, literals, steps, outputs }
    }

    /// All calls, each after those that it reads from.
    pub fn calls(&self) -> impl ExactSizeIterator<Item = (CallId, &Planned)> {
        self.calls.iter().enumerate().map(|(at, call)| (CallId::at(at), call))
    }

    /// The call with this id.
    pub fn call(&self, id: CallId) -> &Planned {
        &self.calls[id.index()]
    }

    /// The files that are expected to be in the storage.
    pub fn literals(&self) -> &[StorageName] {
        &self.literals
    }

    /// The step of a node of the workflow.
    pub fn step(&self, node: NodeId) -> Step {
        self.steps[node.index()]
    }

    /// The sources of the outputs of the workflow.
    pub fn outputs(&self) -> &[Source] {
        &self.outputs
    }

    /// The calls that read an output of this one, once for each input that does.
    pub fn dependents(&self, id: CallId) -> &[CallId] {
        self.dependents.of(id)
    }

    /// The number of inputs that are outputs of other calls.
    pub fn pending_inputs(&self, id: CallId) -> usize {
        self.call(id).inputs.iter().filter(|source| matches!(source, Source::Output { .. })).count()
    }
}

#[derive(Default)]
struct Planner {
    calls: Vec<Planned>,
    known: HashMap<(ComputationId, Box<[Source]>), CallId>,
    literals: Vec<StorageName>,
    steps: Vec<Step>,
}

impl Planner {
    fn step(&mut self, workflow: &Workflow, node: &Node) -> Step {
        match node {
            Node::Input(input) => Step::Leaf(Source::Input(*input)),
            Node::File(file) => Step::Leaf(Source::File(*file)),
            Node::Literal(name) => {
                self.literals.push(name.written().clone());
                Step::Leaf(Source::Literal(LiteralId::at(self.literals.len() - 1)))
            }
            Node::Computation { computation, inputs, .. } => {
                let mut sources = Vec::with_capacity(inputs.len());
                inputs.iter().for_each(|input| self.sources(workflow, input.node, &mut sources));
                let sources = sources.into_boxed_slice();
                let next = CallId::at(self.calls.len());
                let id = *self.known.entry((*computation, sources.clone())).or_insert(next);
                if id == next {
                    self.calls.push(Planned { computation: *computation, inputs: sources });
                }
                Step::Call(id)
            }
        }
    }

    /// Adds the sources of the files that a planned node passes up.
    fn sources(&self, workflow: &Workflow, node: NodeId, sources: &mut Vec<Source>) {
        match (self.steps[node.index()], &workflow[node]) {
            (Step::Call(call), Node::Computation { outputs, .. }) => {
                sources.extend(outputs.numbers().map(|number| Source::Output { call, number }));
            }
            (Step::Leaf(source), _) => sources.push(source),
            (Step::Call(_), _) => {}
        }
    }
}

/// For every call, the calls that read from it: one list, and where each call's part begins.
#[derive(Debug)]
struct Dependents {
    begins: Vec<u32>,
    calls: Vec<CallId>,
}

impl Dependents {
    fn new(calls: &[Planned]) -> Self {
        let mut begins = vec![0_u32; calls.len() + 1];
        for call in edges(calls).map(|(_, from)| from) {
            begins[call.index() + 1] += 1;
        }
        for at in 1..begins.len() {
            begins[at] += begins[at - 1];
        }
        let mut next = begins.clone();
        let mut dependents = vec![CallId::at(0); begins.last().map_or(0, |all| *all as usize)];
        for (dependent, from) in edges(calls) {
            let place = &mut next[from.index()];
            dependents[*place as usize] = dependent;
            *place += 1;
        }
        Self { begins, calls: dependents }
    }

    fn of(&self, id: CallId) -> &[CallId] {
        &self.calls[self.begins[id.index()] as usize..self.begins[id.index() + 1] as usize]
    }
}

fn edges(calls: &[Planned]) -> impl Iterator<Item = (CallId, CallId)> {
    calls.iter().enumerate().flat_map(|(at, call)| {
        call.inputs.iter().filter_map(move |source| match source {
            Source::Output { call, .. } => Some((CallId::at(at), *call)),
            Source::Input(_) | Source::Literal(_) | Source::File(_) => None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::slice::Slice;
    use crate::task::workflow::{Argument, Builder};

    fn call(
        builder: &mut Builder,
        computation: usize,
        inputs: &[NodeId],
        slice: &[&str],
    ) -> NodeId {
        let mut next = 0;
        let argument = |node: &NodeId| {
            let first = next;
            next += builder[*node].width() as u8;
            Argument { label: "".into(), first, last: next - 1, node: *node }
        };
        let inputs = inputs.iter().map(argument).collect();
        let outputs = Slice::parse(slice.iter().copied()).0;
        let computation = ComputationId::at(computation);
        builder.intern(Node::Computation { computation, inputs, outputs })
    }

    #[test]
    fn equal_sources_are_one_call_whatever_the_slice() {
        let mut builder = Builder::default();
        let x = builder.intern(Node::Input(InputId::at(0)));
        let one = call(&mut builder, 0, &[x, x], &["0"]);
        let other = call(&mut builder, 0, &[x, x], &["01", "00"]);
        let root = call(&mut builder, 1, &[one, other], &["0", "1"]);
        let plan = Plan::new(&builder.finish(root));
        assert_eq!(plan.calls().len(), 2);
        let divmod = CallId::at(0);
        let numbers = [0, 1, 0].map(|number| Source::Output { call: divmod, number });
        assert_eq!(*plan.call(CallId::at(1)).inputs, numbers);
        assert_eq!(plan.dependents(divmod), [CallId::at(1); 3]);
        assert_eq!(plan.pending_inputs(CallId::at(1)), 3);
        assert_eq!(plan.pending_inputs(divmod), 0);
        let outputs = [0, 1].map(|number| Source::Output { call: CallId::at(1), number });
        assert_eq!(plan.outputs(), outputs);
    }

    #[test]
    fn a_tree_of_2_to_the_60_paths_is_60_calls() {
        let mut builder = Builder::default();
        let mut node = builder.intern(Node::Input(InputId::at(0)));
        for _ in 0..60 {
            node = call(&mut builder, 0, &[node, node], &["0"]);
        }
        let plan = Plan::new(&builder.finish(node));
        assert_eq!(plan.calls().len(), 60);
    }

    #[test]
    fn a_workflow_may_be_a_single_leaf() {
        let mut builder = Builder::default();
        let name: StorageName = "tinputs/ad/48103e4fc7".parse().unwrap();
        let root = builder.intern(Node::Literal(name.clone().into()));
        let plan = Plan::new(&builder.finish(root));
        assert_eq!(plan.literals(), [name]);
        assert_eq!(plan.outputs(), [Source::Literal(LiteralId::at(0))]);
    }
}
