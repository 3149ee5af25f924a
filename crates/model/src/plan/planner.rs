//! Planning nodes, at each point where they depend on one.

use std::collections::HashMap;
use std::mem;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::selection::{PointSelection, SeenTexts, SelectionFault, factor_names};
use super::targets::RequestedNodes;
use super::{
    CallId, Derived, DerivedId, LiteralId, Operation, Plan, Planned, PlannedSweepId, PointOfSweep,
    Source, Step, add_sources,
};
use crate::exit::Explain;
use crate::task::name::{MemberPath, NameError, StorageName, TaskPath, TreeName};
use crate::task::points::SweepPoints;
use crate::task::sweep::BoundId;
use crate::task::template::Template;
use crate::task::workflow::{
    Argument, ComputationId, FreeNames, NamedComputation, Node, NodeId, SweepId, Task, TaskTreeId,
    Workflow,
};

/// How a value is derived.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Derivation {
    /// It is a Git tree. Its name is given where that depends on names that a sweep binds.
    Tree(TaskTreeId, Option<TreeName>),
    /// It is the file or directory with this path in a directory.
    Member(MemberPath),
    /// It is the text of a name, and a newline.
    Text(Arc<str>),
    /// It is the product of factors.
    Points(SweepId),
    /// It is a file of the task, whose path depends on names that a sweep binds.
    File(TaskPath),
    /// It is a file that is in the storage, whose name depends on names that a sweep binds.
    Literal(StorageName),
    /// The value of its node is wrong with the texts of its names.
    Wrong(WrongValue),
}

/// A value that is wrong with the texts of its names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{value:?} cannot be used with the texts of its names: {fault}")]
pub struct WrongValue {
    /// The value as it is written.
    pub value: Box<str>,
    /// The fault.
    pub fault: Box<str>,
}

impl Explain for WrongValue {
    fn hint(&self) -> Option<String> {
        let hint = "correct the text, or leave these points out in exclude.tsv";
        Some(hint.to_owned())
    }
}

/// What is known while a plan grows.
#[derive(Debug, Default)]
pub(super) struct Planner {
    known: HashMap<(ComputationId, Box<[Source]>), CallId>,
    known_derived: HashMap<Derived, DerivedId>,
    pub(super) known_sweeps: HashMap<SweepKey, CallId>,
    /// The steps of all nodes. Those that depend on names have the one of the current point.
    steps: Vec<Step>,
    literals: Vec<StorageName>,
    /// The computations of the task by their names.
    computations: HashMap<String, ComputationId>,
    pub(super) free: Arc<FreeNames>,
    /// Whether each node occurs elsewhere than in bodies of sweeps that allow failed points.
    strict: Vec<bool>,
    /// Which nodes are asked for.
    pub(super) targets: RequestedNodes,
    /// The texts of the names that are bound at the current point.
    pub(super) texts: Vec<Option<Arc<str>>>,
    pub(super) point: Option<PointOfSweep>,
    /// The nodes of each body that depend on names, in order.
    pub(super) bodies: HashMap<NodeId, Arc<[NodeId]>>,
    /// The points that are asked for.
    pub(super) selection: PointSelection,
    /// The texts that points have, if not all are asked for.
    pub(super) seen: SeenTexts,
    /// The points of sweeps that are not computed.
    pub(super) products: HashMap<SweepId, Arc<SweepPoints>>,
}

/// The key of equal sweeps: rules, body, computed points, and the texts of the names that it depends on.
pub(super) type SweepKey = (SweepId, NodeId, Option<Source>, Box<[Arc<str>]>);

impl Planner {
    pub(super) fn new(task: &Task, free: Arc<FreeNames>, selection: PointSelection) -> Self {
        let texts = vec![None; task.bound.len()];
        let computations = task.computations.iter().enumerate();
        let computations =
            computations.map(|(at, it)| (it.name.to_string(), ComputationId::at(at)));
        let computations = computations.collect();
        let (strict, seen) = (strict(task), factor_names(task));
        let targets = RequestedNodes::new(task, &free, &selection.targets);
        Self { computations, free, texts, strict, targets, selection, seen, ..Self::default() }
    }

    /// Plans all nodes that depend on no name.
    pub(super) fn plan(&mut self, task: &Task, plan: &Plan) {
        for (id, _) in task.workflow.nodes() {
            let is_closed = self.free.of(id).is_empty();
            let step = if is_closed { self.step(task, plan, id) } else { Step::PerPoint };
            self.steps.push(step);
        }
    }

    /// The steps of all nodes.
    pub(super) fn steps(&self) -> Vec<Step> {
        let step = |(at, step): (usize, &Step)| match self.free.of(NodeId::at(at)) {
            [] => *step,
            _ => Step::PerPoint,
        };
        self.steps.iter().enumerate().map(step).collect()
    }

    pub(super) fn selection_faults(&self) -> Vec<SelectionFault> {
        self.selection.faults(&self.seen)
    }

    /// What is asked for, and is no call.
    pub(super) fn unknown_targets(&self) -> &[SelectionFault] {
        &self.targets.unknown
    }

    /// The nodes below which all is that is evaluated, if only some calls are asked for.
    pub(super) fn tops(&self, task: &Task) -> Vec<NodeId> {
        match self.targets.nodes.is_empty() {
            true => Vec::new(),
            false => self.targets.tops(task, &self.free),
        }
    }

    pub(super) fn take_literals(&mut self) -> Vec<StorageName> {
        mem::take(&mut self.literals)
    }

    /// Plans a node that depends on names, with their current texts.
    pub(super) fn plan_again(&mut self, task: &Task, plan: &Plan, node: NodeId) {
        self.steps[node.index()] = self.step(task, plan, node);
    }

    /// Adds the sources of the files that a planned node passes up.
    pub(super) fn sources(&self, workflow: &Workflow, node: NodeId, sources: &mut Vec<Source>) {
        add_sources(workflow, node, self.steps[node.index()], sources);
    }

    fn step(&mut self, task: &Task, plan: &Plan, id: NodeId) -> Step {
        let is_open = !self.free.of(id).is_empty();
        let workflow = &task.workflow;
        match &workflow[id] {
            Node::Input(input) => Step::Leaf(Source::Input(*input)),
            Node::File(file) if is_open => {
                let how = self.bind(task, &task.files[file.index()].path, Derivation::File);
                self.leaf(plan, how)
            }
            Node::File(file) => Step::Leaf(Source::File(*file)),
            Node::Literal(name) if is_open => {
                let how = self.bind(task, name, Derivation::Literal);
                self.leaf(plan, how)
            }
            Node::Literal(name) => {
                self.literals.push(name.written().clone());
                Step::Leaf(Source::Literal(LiteralId::at(self.literals.len() - 1)))
            }
            Node::Bound(name) => {
                let text = self.texts[name.index()].clone().unwrap_or_default();
                self.leaf(plan, Derivation::Text(text))
            }
            Node::Points(points) => self.leaf(plan, Derivation::Points(*points)),
            Node::Computation { computation, inputs, .. } => {
                let mut sources = Vec::with_capacity(inputs.len());
                inputs.iter().for_each(|it| self.sources(workflow, it.node, &mut sources));
                let computation = self.computation(task, computation);
                let call = self.call(plan, id, computation, sources.into());
                let text = |number: usize| self.text(task, number);
                let asked = task.resources.of_calls(id, computation);
                asked.for_each(|lines| plan.request(call, lines.amounts(text)));
                Step::Call(call)
            }
            Node::Tree { tree, inputs, .. } => {
                let name = &task.trees[tree.index()].name;
                let own_name = |name| Derivation::Tree(*tree, Some(name));
                let how = match name.is_open() {
                    true => self.bind(task, name, own_name),
                    false => Derivation::Tree(*tree, None),
                };
                Step::Derived(self.derive(plan, how, self.first(workflow, inputs)))
            }
            Node::Member { path, inputs } => {
                let how = self.bind(task, path, Derivation::Member);
                Step::Derived(self.derive(plan, how, self.first(workflow, inputs)))
            }
            Node::Sweep { sweep, inputs, .. } => {
                Step::Call(self.plan_sweep(task, plan, id, (*sweep, inputs)))
            }
        }
    }

    /// The first source of the first input.
    pub(super) fn first(&self, workflow: &Workflow, inputs: &[Argument]) -> Option<Source> {
        let mut sources = Vec::new();
        self.sources(workflow, inputs.first()?.node, &mut sources);
        sources.first().copied()
    }

    /// The current text of the name with this number, if a sweep binds it.
    fn text(&self, task: &Task, number: usize) -> Option<&str> {
        let name = BoundId::at(number.checked_sub(task.inputs.len())?);
        self.texts[name.index()].as_deref()
    }

    /// The computation of a node with the current texts. Loading the task has found one for each point.
    fn computation(&self, task: &Task, computation: &NamedComputation) -> ComputationId {
        let Some(name) = &computation.open else { return computation.first };
        let name = name.bind(|number| self.text(task, number)).map(|name| name.to_string());
        self.computations[&name.unwrap_or_default()]
    }

    /// Returns how a value is derived with the current texts.
    fn bind<T>(&self, task: &Task, value: &Template<T>, how: impl Fn(T) -> Derivation) -> Derivation
    where
        T: AsRef<str> + FromStr<Err = NameError> + Clone,
    {
        match value.bind(|number| self.text(task, number)) {
            Ok(value) => how(value.written().clone()),
            Err(fault) => Derivation::Wrong(WrongValue {
                value: value.as_str().into(),
                fault: fault.to_string().into(),
            }),
        }
    }

    fn call(
        &mut self,
        plan: &Plan,
        node: NodeId,
        computation: ComputationId,
        sources: Box<[Source]>,
    ) -> CallId {
        let next = CallId::at(plan.calls.count());
        let id = *self.known.entry((computation, sources.clone())).or_insert(next);
        if id == next {
            let operation = Operation::Computation(computation);
            self.add_call(plan, operation, sources, node);
        } else {
            self.use_again(plan, id, node);
        }
        id
    }

    /// Notes that a node is a call that is planned already.
    pub(super) fn use_again(&self, plan: &Plan, id: CallId, node: NodeId) {
        let Planned { is_strict, is_needed, is_target, .. } = plan.call(id);
        let targets = &self.targets;
        let flags = [
            (is_strict, self.strict[node.index()]),
            (is_needed, targets.needs(node)),
            (is_target, targets.contain(node)),
        ];
        for (flag, _) in flags.into_iter().filter(|(_, holds)| *holds) {
            flag.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn add_call(
        &self,
        plan: &Plan,
        operation: Operation,
        inputs: Box<[Source]>,
        node: NodeId,
    ) -> CallId {
        let point = self.point.filter(|_| !self.free.of(node).is_empty());
        let is_strict = self.strict[node.index()].into();
        let is_needed = self.targets.needs(node).into();
        let is_target = self.targets.contain(node).into();
        let planned = Planned { operation, inputs, node, point, is_strict, is_needed, is_target };
        CallId::at(plan.calls.push(planned))
    }

    /// A value that is derived from nothing.
    fn leaf(&mut self, plan: &Plan, how: Derivation) -> Step {
        Step::Leaf(Source::Derived { value: self.derive(plan, how, None), number: 0 })
    }

    fn derive(&mut self, plan: &Plan, how: Derivation, from: Option<Source>) -> DerivedId {
        let value = Derived { how, from };
        let next = DerivedId::at(plan.derived.count());
        let id = *self.known_derived.entry(value.clone()).or_insert(next);
        if id == next {
            plan.derived.push(value);
        }
        id
    }
}

/// Whether each node occurs elsewhere than in bodies of sweeps that allow failed points.
fn strict(task: &Task) -> Vec<bool> {
    let workflow = &task.workflow;
    let mut strict = vec![false; workflow.nodes().len()];
    let mut waiting = vec![workflow.root()];
    while let Some(node) = waiting.pop() {
        if mem::replace(&mut strict[node.index()], true) {
            continue;
        }
        let inputs = match &workflow[node] {
            Node::Sweep { sweep, inputs, .. } if task.sweeps[sweep.index()].allow_failed => {
                &inputs[1..]
            }
            other => other.inputs(),
        };
        waiting.extend(inputs.iter().map(|input| input.node));
    }
    strict
}

/// A point, for the row of a sweep.
pub(super) const fn point(sweep: PlannedSweepId, row: u32) -> PointOfSweep {
    PointOfSweep { sweep, row }
}
