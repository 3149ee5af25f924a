//! From a workflow to its unique calls, leaves first.
//!
//! A call is planned by where its inputs come from; what they contain is not known yet. Two nodes
//! of a computation with the same sources are one call, whatever they are called and whichever
//! outputs they pass up. Pure: reads nothing, and its time is linear in nodes plus edges.

use std::collections::HashMap;

use crate::task::name::{MemberPath, StorageName};
use crate::task::workflow::{
    Argument, ComputationId, InputId, Node, NodeId, TaskFileId, TaskTreeId, Workflow, ids,
};

ids! {
    /// A call of a [`Plan`].
    CallId
    /// A literal of a [`Plan`].
    LiteralId
    /// A derived value of a [`Plan`].
    DerivedId
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
    /// A value that is derived without a call.
    Derived {
        /// The value.
        value: DerivedId,
        /// 0; or 1 for the id of the commit of a Git tree.
        number: u8,
    },
}

/// A value that is derived without a call, once that from which it is derived is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Derived {
    /// How it is derived.
    pub how: Derivation,
    /// The source that it is derived from: the revision of a tree, unless it is the recorded one, or the
    /// directory of a member.
    pub from: Option<Source>,
}

/// How a value is derived.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Derivation {
    /// It is a Git tree.
    Tree(TaskTreeId),
    /// It is the file or directory with this path in a directory.
    Member(MemberPath),
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// The node takes its files from a call.
    Call(CallId),
    /// The node is a file that exists before any call.
    Leaf(Source),
    /// The node has derived values.
    Derived(DerivedId),
}

/// The unique calls of a workflow, each after those that it reads from.
#[derive(Debug)]
pub struct Plan {
    calls: Vec<Planned>,
    dependents: Dependents,
    literals: Vec<StorageName>,
    derived: Vec<Derived>,
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
        let Planner { calls, literals, derived, steps, .. } = plan;
        let dependents = Dependents::new(&calls, &derived);
        Self { calls, dependents, literals, derived, steps, outputs }
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

    /// The derived values, each after those that it is derived from.
    pub fn derived(&self) -> impl ExactSizeIterator<Item = (DerivedId, &Derived)> {
        self.derived.iter().enumerate().map(|(at, value)| (DerivedId::at(at), value))
    }

    /// The derived value with this id.
    pub fn value(&self, id: DerivedId) -> &Derived {
        &self.derived[id.index()]
    }

    /// The Git tree that a derived value is, if it is one.
    pub fn tree(&self, id: DerivedId) -> Option<TaskTreeId> {
        match self.value(id).how {
            Derivation::Tree(tree) => Some(tree),
            Derivation::Member(_) => None,
        }
    }

    /// The source itself; or the directory that it is a member of, and the path in that.
    pub fn whole(&self, mut source: Source) -> (Source, Option<String>) {
        let mut path: Option<String> = None;
        while let Source::Derived { value, .. } = source
            && let Derived { how: Derivation::Member(inner), from: Some(from) } = self.value(value)
        {
            path = Some(path.map_or_else(|| inner.to_string(), |path| format!("{inner}/{path}")));
            source = *from;
        }
        (source, path)
    }

    /// The call that must end before a source is known, if there is one.
    pub fn awaited(&self, source: Source) -> Option<CallId> {
        awaited(&self.derived, source)
    }

    /// The source that decides when this one is known: what it is derived from in the end.
    pub fn origin(&self, source: Source) -> Source {
        origin(&self.derived, source)
    }

    /// The step of a node of the workflow.
    pub fn step(&self, node: NodeId) -> Step {
        self.steps[node.index()]
    }

    /// The sources of the outputs of the workflow.
    pub fn outputs(&self) -> &[Source] {
        &self.outputs
    }

    /// The calls that wait for this one, once for each input that does.
    pub fn dependents(&self, id: CallId) -> &[CallId] {
        self.dependents.of(id)
    }

    /// The number of inputs that are not known until another call has ended.
    pub fn pending_inputs(&self, id: CallId) -> usize {
        self.call(id).inputs.iter().filter(|source| self.awaited(**source).is_some()).count()
    }
}

#[derive(Default)]
struct Planner {
    calls: Vec<Planned>,
    known: HashMap<(ComputationId, Box<[Source]>), CallId>,
    literals: Vec<StorageName>,
    derived: Vec<Derived>,
    known_derived: HashMap<Derived, DerivedId>,
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
            Node::Tree { tree, inputs, .. } => {
                self.derive(Derivation::Tree(*tree), workflow, inputs)
            }
            Node::Member { path, inputs } => {
                self.derive(Derivation::Member(path.written().clone()), workflow, inputs)
            }
        }
    }

    fn derive(&mut self, how: Derivation, workflow: &Workflow, inputs: &[Argument]) -> Step {
        let mut sources = Vec::new();
        inputs.iter().for_each(|input| self.sources(workflow, input.node, &mut sources));
        let value = Derived { how, from: sources.first().copied() };
        let next = DerivedId::at(self.derived.len());
        let id = *self.known_derived.entry(value.clone()).or_insert(next);
        if id == next {
            self.derived.push(value);
        }
        Step::Derived(id)
    }

    /// Adds the sources of the files that a planned node passes up.
    fn sources(&self, workflow: &Workflow, node: NodeId, sources: &mut Vec<Source>) {
        match (self.steps[node.index()], &workflow[node]) {
            (Step::Call(call), Node::Computation { outputs, .. }) => {
                sources.extend(outputs.numbers().map(|number| Source::Output { call, number }));
            }
            (Step::Derived(value), node) => {
                sources.extend(node.numbers().map(|number| Source::Derived { value, number }));
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
    fn new(calls: &[Planned], derived: &[Derived]) -> Self {
        let mut begins = vec![0_u32; calls.len() + 1];
        for call in edges(calls, derived).map(|(_, from)| from) {
            begins[call.index() + 1] += 1;
        }
        for at in 1..begins.len() {
            begins[at] += begins[at - 1];
        }
        let mut next = begins.clone();
        let mut dependents = vec![CallId::at(0); begins.last().map_or(0, |all| *all as usize)];
        for (dependent, from) in edges(calls, derived) {
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

fn edges(calls: &[Planned], derived: &[Derived]) -> impl Iterator<Item = (CallId, CallId)> {
    calls.iter().enumerate().flat_map(|(at, call)| {
        let from = call.inputs.iter().filter_map(|source| awaited(derived, *source));
        from.map(move |from| (CallId::at(at), from))
    })
}

fn awaited(derived: &[Derived], source: Source) -> Option<CallId> {
    match origin(derived, source) {
        Source::Output { call, .. } => Some(call),
        _ => None,
    }
}

fn origin(derived: &[Derived], mut source: Source) -> Source {
    while let Source::Derived { value, .. } = source
        && let Some(from) = derived[value.index()].from
    {
        source = from;
    }
    source
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::slice::Slice;
    use crate::task::workflow::Builder;

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
    fn a_call_waits_for_the_revisions_of_its_trees() {
        let mut builder = Builder::default();
        let x = builder.intern(Node::Input(InputId::at(0)));
        let revision = call(&mut builder, 0, &[x], &["0"]);
        let mut tree = |revision: NodeId, slice| {
            let inputs = [Argument { label: "".into(), first: 0, last: 0, node: revision }].into();
            let outputs = Slice::parse([slice]).0;
            builder.intern(Node::Tree { tree: TaskTreeId::at(0), inputs, outputs })
        };
        let commit = tree(revision, "01");
        let trees = [tree(revision, "00"), tree(commit, "00"), tree(x, "00")];
        let root = call(&mut builder, 1, &trees, &["0"]);
        let plan = Plan::new(&builder.finish(root));
        assert_eq!(plan.derived().len(), 3, "one for each revision");
        let [first, root] = [0, 1].map(CallId::at);
        let awaited = plan.call(root).inputs.iter().map(|source| plan.awaited(*source));
        assert_eq!(awaited.collect::<Vec<_>>(), [Some(first), Some(first), None]);
        assert_eq!(plan.pending_inputs(root), 2);
        assert_eq!(plan.dependents(first), [root; 2]);
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
