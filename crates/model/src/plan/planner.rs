//! Planning nodes and sweeps, at each point where they depend on one, in the order of execution.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::points::{PointSelection, RequestedNodes, SeenTexts, SelectionFault, factor_names};
use super::{
    CallId, Derived, DerivedId, LiteralId, Operation, Plan, Planned, PlannedSweep, PlannedSweepId,
    PointOfSweep, PointsFault, ReplicatedPoint, Source, Step, SweepRows, add_sources,
};
use crate::digest::Digest;
use crate::exit::Explain;
use crate::name::{MemberPath, NameError, StorageName, TaskPath, TreeName};
use crate::suggest::UnknownName;
use crate::sweep::{
    self, BoundId, ColumnShape, DIRECTORY, ExclusionFault, FileCell, FileColumn, REPLICATE,
    Replicates, STATUS, Sweep, SweepPoints,
};
use crate::task::{
    Argument, ComputationId, FreeNames, NamedComputation, Node, NodeId, SweepId, Task, TaskTreeId,
    Workflow,
};
use crate::template::Template;

/// The derivation of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Derivation {
    /// It is a Git tree. Its name is given where that depends on names that a sweep binds.
    Tree(TaskTreeId, Option<TreeName>),
    /// It is the file or directory with this path in a directory.
    Member(MemberPath),
    /// It is a file with this text.
    Text {
        /// The whole text.
        contents: Arc<str>,
        /// Whether the text depends on names that a sweep binds.
        is_of_point: bool,
    },
    /// It is the product of factors.
    Points(SweepId),
    /// It is a file of the task, whose path depends on names that a sweep binds.
    File(TaskPath),
    /// It is a file that is in the storage, whose name depends on names that a sweep binds.
    Literal(StorageName),
    /// It is the file or directory with these contents, an input that a sheet of files names.
    Contents(Digest),
    /// The value of its node is wrong with the texts of its names.
    Wrong(WrongValue),
}

/// A value that is wrong with the texts of its names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error, Explain)]
#[error("{value:?} cannot be used with the texts of its names: {fault}")]
#[hint(
    "correct the text, or leave these points out in exclude.tsv; :files reads files whose paths a sheet has"
)]
pub struct WrongValue {
    /// The value as it is written.
    pub value: Box<str>,
    pub fault: Box<str>,
}

/// The state of a planner while a plan grows.
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
    /// The nodes that are asked for.
    pub(super) targets: RequestedNodes,
    /// What the names are bound to at the current point.
    pub(super) bound: Vec<Option<BoundValue>>,
    pub(super) point: Option<PointOfSweep>,
    /// The nodes of each body that depend on names, in order.
    pub(super) bodies: HashMap<NodeId, Arc<[NodeId]>>,
    /// The points that are asked for.
    pub(super) selection: PointSelection,
    /// The texts that points have, if not all are asked for.
    pub(super) seen: SeenTexts,
    /// The sheets with columns of files.
    sheets: HashMap<NodeId, Arc<[FileColumn]>>,
    /// The points of sweeps that are not computed.
    pub(super) products: HashMap<SweepId, Arc<SweepPoints>>,
}

/// The key of equal sweeps: rules, body, computed points, and the texts of the names that it depends on.
pub(super) type SweepKey = (SweepId, NodeId, Option<Source>, Box<[BoundValue]>);

/// What a sweep binds a name to at a point.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BoundValue {
    /// A text.
    Text(Arc<str>),
    /// A file, by its [cell](FileCell).
    File(Arc<str>),
}

impl Planner {
    pub(super) fn new(task: &Task, free: Arc<FreeNames>, selection: PointSelection) -> Self {
        let bound = vec![None; task.bound.len()];
        let computations = task.computations.iter().enumerate();
        let computations =
            computations.map(|(at, it)| (it.name.to_string(), ComputationId::at(at)));
        let computations = computations.collect();
        let (strict, seen) = (strict(task), factor_names(task));
        let targets = RequestedNodes::new(task, &free, &selection.targets);
        let sheets = task.sheets_of_files().into_iter();
        let sheets = sheets.map(|(sheet, columns)| (sheet, columns.into())).collect();
        Self {
            computations,
            sheets,
            free,
            bound,
            strict,
            targets,
            selection,
            seen,
            ..Self::default()
        }
    }

    /// Plans all nodes that depend on no name.
    pub(super) fn plan(&mut self, task: &Task, plan: &Plan) {
        for (id, _) in task.workflow.nodes() {
            let is_closed = self.free.names_in(id).is_empty();
            let step = if is_closed { self.step(task, plan, id) } else { Step::PerPoint };
            self.steps.push(step);
        }
    }

    /// The steps of all nodes.
    pub(super) fn steps(&self) -> Vec<Step> {
        self.steps
            .iter()
            .enumerate()
            .map(|(at, step)| match self.free.names_in(NodeId::at(at)) {
                [] => *step,
                _ => Step::PerPoint,
            })
            .collect()
    }

    pub(super) fn selection_faults(&self) -> Vec<SelectionFault> {
        self.selection.faults(&self.seen)
    }

    /// Returns a fault for each requested text that names no call.
    pub(super) fn unknown_targets(&self) -> &[SelectionFault] {
        &self.targets.unknown
    }

    /// The nodes below which all is that is evaluated, if only some calls are asked for.
    pub(super) fn tops(&self, task: &Task) -> Vec<NodeId> {
        if self.targets.nodes.is_empty() { Vec::new() } else { self.targets.tops(task, &self.free) }
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
        add_sources(workflow, &self.steps, node, sources);
    }

    fn step(&mut self, task: &Task, plan: &Plan, id: NodeId) -> Step {
        let is_open = !self.free.names_in(id).is_empty();
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
                let how = bound_value(self.bound[name.index()].as_ref());
                self.leaf(plan, how)
            }
            Node::Text(text) => {
                let how = self.bind(task, text, |text| Derivation::Text {
                    contents: text.as_str().into(),
                    is_of_point: is_open,
                });
                self.leaf(plan, how)
            }
            Node::Points(points) => self.leaf(plan, Derivation::Points(*points)),
            Node::Computation { computation, inputs, .. } => {
                let mut sources = Vec::with_capacity(inputs.len());
                inputs.iter().for_each(|it| self.sources(workflow, it.node, &mut sources));
                let computation = self.computation(task, computation);
                let call = self.call(plan, id, computation, sources.into());
                for lines in task.resources.of_calls(id, computation) {
                    plan.request(call, lines.amounts(|number| self.text(task, number)));
                }
                Step::Call(call)
            }
            Node::Tree { tree, inputs, .. } => {
                let name = &task.trees[tree.index()].name;
                let how = if name.is_open() {
                    self.bind(task, name, |name| Derivation::Tree(*tree, Some(name)))
                } else {
                    Derivation::Tree(*tree, None)
                };
                Step::Derived(self.derive(plan, how, self.first(workflow, inputs)))
            }
            Node::Member { path, inputs } => {
                let how = self.bind(task, path, Derivation::Member);
                Step::Derived(self.derive(plan, how, self.first(workflow, inputs)))
            }
            Node::All { .. } => Step::All(id),
            Node::Sweep { sweep, inputs, .. } => {
                Step::Call(self.plan_sweep(task, plan, id, *sweep, inputs))
            }
        }
    }

    /// The first source of the first input.
    pub(super) fn first(&self, workflow: &Workflow, inputs: &[Argument]) -> Option<Source> {
        let mut sources = Vec::new();
        self.sources(workflow, inputs.first()?.node, &mut sources);
        sources.first().copied()
    }

    /// The current text of the name with this number, if a sweep binds it, or if it is an input with choices that is not bound yet: its default.
    fn text<'t>(&'t self, task: &'t Task, number: usize) -> Option<&'t str> {
        let Some(name) = number.checked_sub(task.inputs.len()).map(BoundId::at) else {
            return Some(&**task.choices[number].as_ref()?.levels(0).first()?);
        };
        match self.bound[name.index()].as_ref()? {
            BoundValue::Text(text) => Some(&**text),
            // Loading the task has checked that nothing reads the text of a file.
            BoundValue::File(_) => None,
        }
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
        let point = self.point.filter(|_| !self.free.names_in(node).is_empty());
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

/// How the value is derived that a name is bound to.
fn bound_value(value: Option<&BoundValue>) -> Derivation {
    let of_point = |contents| Derivation::Text { contents, is_of_point: true };
    match value {
        None => of_point("\n".into()),
        Some(BoundValue::Text(text)) => of_point(format!("{text}\n").into()),
        Some(BoundValue::File(cell)) => match FileCell::of_level(cell) {
            Ok(FileCell::Nothing) => of_point("".into()),
            Ok(FileCell::Contents(digest)) => Derivation::Contents(digest),
            Ok(FileCell::Own(path)) => Derivation::File(path),
            Err(text) => Derivation::Wrong(WrongValue {
                value: text.into(),
                fault: "it is neither the digest of a file nor the path of a file of the task"
                    .into(),
            }),
        },
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

impl Planner {
    /// Plans a sweep, and its body at each point unless these are computed.
    pub(super) fn plan_sweep(
        &mut self,
        task: &Task,
        plan: &Plan,
        node: NodeId,
        sweep: SweepId,
        inputs: &[Argument],
    ) -> CallId {
        let body = inputs[0].node;
        let computed = self.first(&task.workflow, &inputs[1..]);
        let outer: Box<[_]> = (self.free.names_in(node).iter())
            .filter_map(|name| Some((*name, self.bound[name.index()].clone()?)))
            .collect();
        let key = (sweep, body, computed, outer.iter().map(|(_, value)| value.clone()).collect());
        if let Some(known) = self.known_sweeps.get(&key) {
            let known = *known;
            self.use_again(plan, known, node);
            return known;
        }
        let with_directory = wants_directory(task, sweep, inputs);
        let (rows, ends) = Default::default();
        let point = self.point.filter(|_| !outer.is_empty());
        let is_asked = self.targets.needs_outputs(node);
        let files = inputs.get(1).and_then(|points| self.sheets.get(&points.node));
        let files = files.cloned().unwrap_or_default();
        let planned = PlannedSweep {
            sweep,
            body,
            outer,
            computed,
            files,
            point,
            is_asked,
            with_directory,
            rows,
            ends,
        };
        let id = PlannedSweepId::at(plan.sweeps.push(planned));
        if computed.is_none() {
            let rules = &task.sweeps[sweep.index()].product;
            let points = self.products.entry(sweep).or_insert_with(|| {
                // Loading the task has checked that it is not empty.
                Arc::new(sweep::points(rules).unwrap_or_default())
            });
            let points = Arc::clone(points);
            let columns = columns(task, &task.sweeps[sweep.index()], &points, with_directory);
            debug_assert!(columns.is_ok(), "a factor is a column");
            self.rows(task, plan, id, points, &columns.unwrap_or_default());
        }
        let call = self.add_call(plan, Operation::Sweep(id), computed.into_iter().collect(), node);
        self.known_sweeps.insert(key, call);
        call
    }

    /// Plans the body of a sweep whose points were computed. Returns the rows of its exclusion that match none of them.
    pub(super) fn expand(
        &mut self,
        task: &Task,
        plan: &Plan,
        id: PlannedSweepId,
        computed: SweepPoints,
    ) -> Result<Vec<ExclusionFault>, PointsFault> {
        let PlannedSweep { sweep, outer, with_directory, .. } = plan.sweep(id);
        let rules = &task.sweeps[sweep.index()];
        let computed = plan.sweep(id).with_files(task, plan, computed);
        let points = sweep::computed_points(&rules.product, computed);
        let (points, unmatched) = points.map_err(PointsFault::Product)?;
        let columns = columns(task, rules, &points, *with_directory)?;
        for (name, value) in outer {
            self.bound[name.index()] = Some(value.clone());
        }
        self.rows(task, plan, id, Arc::new(points), &columns);
        outer.iter().for_each(|(name, _)| self.bound[name.index()] = None);
        Ok(unmatched)
    }

    /// Plans the body at more replicates of the points of a sweep: up to this number at each.
    pub(super) fn replicate(
        &mut self,
        task: &Task,
        plan: &Plan,
        id: PlannedSweepId,
        numbers: &[u32],
    ) -> Result<(), PointsFault> {
        let PlannedSweep { sweep, outer, with_directory, .. } = plan.sweep(id);
        let Some(rows) = plan.sweep(id).rows() else { return Ok(()) };
        let columns = columns(task, &task.sweeps[sweep.index()], &rows.possible, *with_directory)?;
        let replicates = Some(numbers.to_vec());
        let grown =
            GrownRows { possible: Arc::clone(&rows.possible), replicates, left_out: rows.left_out };
        for (name, value) in outer {
            self.bound[name.index()] = Some(value.clone());
        }
        self.rows_at(task, plan, id, grown, &columns);
        outer.iter().for_each(|(name, _)| self.bound[name.index()] = None);
        Ok(())
    }

    /// Plans the body at each point. Each bound name has the text of a column.
    fn rows(
        &mut self,
        task: &Task,
        plan: &Plan,
        id: PlannedSweepId,
        points: Arc<SweepPoints>,
        columns: &[(BoundId, usize)],
    ) {
        let mut selected = self.selection.select(&points, &mut self.seen);
        if self.asks_in_vain(task, plan, id) {
            selected = Some(points.filtered(|_| false));
        }
        let rules = &task.sweeps[plan.sweep(id).sweep.index()].product;
        // A selection that names replicates by their numbers gets these.
        let ends_by_results =
            |it: &&Replicates| it.until.is_some() && !self.selection.names_replicates();
        let least = rules.replicates.as_ref().filter(ends_by_results).map(Replicates::least);
        let left_out = selected.as_ref().map(|selected| match points.len() - selected.len() {
            0 => 0,
            all => least.map_or(all, |least| {
                let [points, selected] =
                    [&*points, selected].map(|it| it.up_to_replicate(0..it.len(), least));
                (points - selected).max(1)
            }),
        });
        let possible = selected.map_or(points, Arc::new);
        let replicates = least.map(|least| vec![least; possible.replicated().len()]);
        let grown = GrownRows { possible, replicates, left_out };
        self.rows_at(task, plan, id, grown, columns);
    }

    /// Plans the body at the new points of a sweep.
    fn rows_at(
        &mut self,
        task: &Task,
        plan: &Plan,
        id: PlannedSweepId,
        grown: GrownRows,
        columns: &[(BoundId, usize)],
    ) {
        let body = plan.sweep(id).body;
        let nodes = self.body(task, body);
        let width = task.workflow[body].width();
        let GrownRows { possible, replicates, left_out } = grown;
        let replicated = replicates.map(|it| replicated_points(&possible, &it));
        let replicated: Box<[_]> = replicated.unwrap_or_default().into();
        let numbers = numbers(&possible, &replicated);
        let has_all = numbers.len() == possible.len();
        let place = |number: &u32| match has_all {
            true => *number,
            false => numbers.binary_search(number).unwrap_or_default() as u32,
        };
        // The places of rows in the table, with their sources in the same order: those from before come first.
        let (mut places, mut rows) = (Vec::new(), Vec::with_capacity(numbers.len() * width));
        let mut new = numbers.clone();
        if let Some(before) = plan.sweep(id).rows() {
            let known = self::numbers(&possible, &before.replicated);
            new.retain(|number| known.binary_search(number).is_err());
            places.extend(known.iter().map(place));
            rows.extend_from_slice(&before.sources);
        }
        let mut sources = Vec::new();
        let outside = self.point;
        for number in order(&possible, new) {
            let at = possible.at(number as usize);
            for (name, column) in columns {
                let text = Arc::clone(at.at(*column));
                let is_text = *column < possible.names().len();
                let value = if is_text { BoundValue::Text } else { BoundValue::File };
                self.bound[name.index()] = Some(value(text));
            }
            self.point = Some(point(id, number));
            nodes.iter().for_each(|node| self.plan_again(task, plan, *node));
            sources.clear();
            self.sources(&task.workflow, body, &mut sources);
            rows.extend_from_slice(&sources);
            places.push(place(&number));
        }
        self.point = outside;
        columns.iter().for_each(|(name, _)| self.bound[name.index()] = None);
        let sources = in_table_order(&places, &rows, width);
        let points = match has_all {
            true => Arc::clone(&possible),
            false => Arc::new(possible.chosen(&numbers)),
        };
        plan.sweep(id).rows.push(SweepRows {
            points,
            possible,
            replicated,
            sources,
            width,
            left_out,
        });
    }

    /// Whether a name is asked for that no sweep has: that is an error, and nothing is to be evaluated for it. It is known
    /// when each sweep with computed points was expanded once. This one is being expanded.
    fn asks_in_vain(&self, task: &Task, plan: &Plan, current: PlannedSweepId) -> bool {
        if !self.selection.has_unseen(&self.seen) {
            return false;
        }
        let expanded: HashSet<NodeId> = plan
            .calls()
            .filter_map(|(_, call)| match call.operation {
                Operation::Sweep(id) if id == current || plan.sweep(id).rows().is_some() => {
                    Some(call.node)
                }
                _ => None,
            })
            .collect();
        task.workflow.nodes().all(|(id, node)| match node {
            Node::Sweep { inputs, .. } => inputs.len() < 2 || expanded.contains(&id),
            _ => true,
        })
    }

    /// The nodes of a body that depend on names, in order. Calls of bodies in it are not among them.
    fn body(&mut self, task: &Task, body: NodeId) -> Arc<[NodeId]> {
        if let Some(known) = self.bodies.get(&body) {
            return Arc::clone(known);
        }
        let (mut nodes, mut seen, mut stack) = (Vec::new(), Vec::new(), vec![body]);
        seen.resize(body.index() + 1, false);
        while let Some(node) = stack.pop() {
            if self.free.names_in(node).is_empty() || mem::replace(&mut seen[node.index()], true) {
                continue;
            }
            nodes.push(node);
            let inputs = match &task.workflow[node] {
                Node::Sweep { inputs, .. } => &inputs[1..],
                other => other.inputs(),
            };
            stack.extend(inputs.iter().map(|input| input.node));
        }
        nodes.sort_unstable();
        let nodes: Arc<[NodeId]> = nodes.into();
        self.bodies.insert(body, Arc::clone(&nodes));
        nodes
    }
}

/// Whether a node of the workflow passes up the directory of a sweep.
fn wants_directory(task: &Task, sweep: SweepId, inputs: &[Argument]) -> bool {
    task.workflow.nodes().any(|(_, node)| match node {
        Node::Sweep { sweep: other, inputs: others, outputs } => {
            *other == sweep
                && others.iter().map(|it| it.node).eq(inputs.iter().map(|it| it.node))
                && outputs.has(DIRECTORY)
        }
        _ => false,
    })
}

/// The column of each name that a sweep gives a text.
fn columns(
    task: &Task,
    sweep: &Sweep,
    points: &SweepPoints,
    with_directory: bool,
) -> Result<Vec<(BoundId, usize)>, PointsFault> {
    if points.is_empty() {
        return Ok(Vec::new());
    }
    let of_outputs = sweep.columns.iter().filter_map(|column| match &column.shape {
        ColumnShape::One(name) => Some(&**name),
        ColumnShape::Fields | ColumnShape::Rows => None,
    });
    let mut made = of_outputs.chain(sweep.allow_failed.then_some(STATUS));
    if let Some(name) = made.find(|name| sweep.has_table && points.column(name).is_some()) {
        return Err(PointsFault::SameColumn(name.to_owned()));
    }
    if let Some(name) = sweep.inputs.iter().find(|name| points.any_column(name).is_some()) {
        return Err(PointsFault::InputColumn(name.to_string()));
    }
    if with_directory && points.names().is_empty() {
        return Err(PointsFault::NoTexts);
    }
    if with_directory && let Some([first, second]) = points.with_same_texts() {
        return Err(PointsFault::SameTexts([first + 1, second + 1]));
    }
    let mut columns = Vec::new();
    for name in sweep.gives() {
        let text = task.bound[name.index()].as_str();
        let Some(column) = points.any_column(text) else {
            return Err(PointsFault::NoColumn(UnknownName::new(text, points.names())));
        };
        columns.push((name, column));
    }
    Ok(columns)
}

/// The points that a sweep is to have.
struct GrownRows {
    possible: Arc<SweepPoints>,
    /// The number of the last replicate of each of them, if these end by results.
    replicates: Option<Vec<u32>>,
    left_out: Option<usize>,
}

/// The points with replicates up to these numbers, in place of their own replicates.
fn replicated_points(possible: &SweepPoints, replicates: &[u32]) -> Vec<ReplicatedPoint> {
    let mut begin = 0;
    let groups = possible.replicated().into_iter().zip(replicates);
    groups
        .map(|(group, replicates)| {
            let rows = begin..begin + possible.up_to_replicate(group, *replicates);
            begin = rows.end;
            ReplicatedPoint { replicates: *replicates, rows }
        })
        .collect()
}

/// The numbers of the planned points, among all possible points.
fn numbers(possible: &SweepPoints, replicated: &[ReplicatedPoint]) -> Vec<u32> {
    if replicated.is_empty() {
        return (0..possible.len() as u32).collect();
    }
    let groups = possible.replicated().into_iter().zip(replicated);
    groups
        .flat_map(|(group, of_point)| group.take(of_point.rows.len()))
        .map(|at| at as u32)
        .collect()
}

/// Returns the numbers of points in the order of their execution: replicate by replicate, each shuffled, so that a drift of the
/// machine does not look like the effect of a factor. The order depends on the texts of the points only.
fn order(points: &SweepPoints, numbers: Vec<u32>) -> Vec<u32> {
    let replicate = points.column(REPLICATE);
    let hashes: Vec<Vec<u64>> = (points.levels.iter())
        .map(|levels| levels.iter().map(|text| hash(text)).collect())
        .collect();
    let mut order = Vec::with_capacity(numbers.len());
    for number in numbers {
        let levels = points.at(number as usize).level_numbers();
        let parts = levels.iter().enumerate().filter(|(column, _)| Some(*column) != replicate);
        let mixed = parts.fold(0, |sum, (column, level)| mix(sum, hashes[column][*level as usize]));
        order.push((replicate.map(|column| levels[column]), mixed, number));
    }
    order.sort_unstable();
    order.into_iter().map(|(.., number)| number).collect()
}

/// A hash of a text that is the same everywhere: FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Mixes a hash into another one, so that neighbours end far apart.
const fn mix(sum: u64, hash: u64) -> u64 {
    let mixed = (sum.rotate_left(23) ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// Returns rows of this many sources, which are in this order, in the order of their numbers.
fn in_table_order(order: &[u32], rows: &[Source], width: usize) -> Box<[Source]> {
    let mut place = vec![0; order.len()];
    for (at, number) in order.iter().enumerate() {
        place[*number as usize] = at;
    }
    place.into_iter().flat_map(|at| &rows[at * width..(at + 1) * width]).copied().collect()
}
