//! From a task to its unique calls, leaves first.
//!
//! A call is planned by the sources of its inputs; their contents are not known yet. Two nodes of a computation with the
//! same sources are one call, regardless of their labels and of the outputs that they pass up. The body of a sweep is
//! planned for each point. Where its points are computed, a plan grows as soon as they are known. Pure: reads nothing, and
//! its time is linear in nodes plus edges, for each point.

mod planner;
mod points;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use self::planner::Planner;
pub use self::planner::{BoundValue, Derivation, WrongValue};
pub use self::points::{
    BodySteps, FirstRows, PointSelection, SelectionError, SelectionFault, call_names,
    computations_named, factor_texts,
};
use crate::exit::Explain;
use crate::name::StorageName;
use crate::resources::{Resources, WrongAmount};
use crate::suggest::UnknownName;
use crate::sweep::{
    BoundId, ExclusionFault, FileColumn, ProductFault, ReplicatesEnd, SweepPoint, SweepPoints,
};
use crate::task::{
    ComputationId, FreeNames, InputId, NodeId, SweepId, Task, TaskFileId, TaskTreeId, Workflow,
    origins,
};

ids! {
    /// A call of a [`Plan`].
    CallId
    /// A literal of a [`Plan`].
    LiteralId
    /// A derived value of a [`Plan`].
    DerivedId
    /// A sweep of a [`Plan`].
    PlannedSweepId
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
        call: CallId,
        /// The number of the output.
        number: u8,
    },
    /// A value that is derived without a call.
    Derived {
        value: DerivedId,
        /// 0; or 1 for the id of the commit of a Git tree.
        number: u8,
    },
}

/// A value that is derived without a call, once its source is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Derived {
    pub how: Derivation,
    /// The source that it is derived from: the revision of a tree, unless it is the recorded one, or the
    /// directory of a member.
    pub from: Option<Source>,
}

/// The operation that makes the outputs of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A computation, which is executed.
    Computation(ComputationId),
    /// A sweep, which gathers the outputs of its body at each point.
    Sweep(PlannedSweepId),
}

/// An operation, the sources of its inputs, and where it is in the workflow.
#[derive(Debug)]
pub struct Planned {
    /// The operation that makes its outputs.
    pub operation: Operation,
    /// The sources of the inputs of a computation, in order. For a sweep, the source of its points if they are computed.
    pub inputs: Box<[Source]>,
    /// The first node that is this call.
    pub node: NodeId,
    /// The first point of a sweep at which it occurs, if it depends on one.
    pub point: Option<PointOfSweep>,
    /// Whether it occurs elsewhere than in bodies of sweeps that allow failed points.
    is_strict: AtomicBool,
    /// Whether it is requested, or needed for a call that is.
    is_needed: AtomicBool,
    /// Whether it is requested by its name.
    is_target: AtomicBool,
}

impl Planned {
    /// Whether its failure makes a row of a table, and nothing else waits for it.
    pub fn may_fail(&self) -> bool {
        !self.is_strict.load(Ordering::Relaxed)
    }

    /// Whether it is evaluated: all is, unless only some calls are asked for.
    pub fn is_needed(&self) -> bool {
        self.is_needed.load(Ordering::Relaxed)
    }

    /// Whether it is asked for by its name.
    pub fn is_target(&self) -> bool {
        self.is_target.load(Ordering::Relaxed)
    }
}

/// A point of a planned sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointOfSweep {
    pub sweep: PlannedSweepId,
    /// The number of the point among [all that there may be](SweepRows::possible), counted from zero.
    pub row: u32,
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
    /// The node passes up the values of others.
    All(NodeId),
    /// The node depends on names that a sweep binds: it is another step at each point.
    PerPoint,
}

/// A sweep, with the texts of the names that it depends on.
#[derive(Debug)]
pub struct PlannedSweep {
    /// Its rules.
    pub sweep: SweepId,
    pub body: NodeId,
    /// The names that sweeps around it bind and it depends on, with what they are bound to.
    pub outer: Box<[(BoundId, BoundValue)]>,
    /// The source of its points, if they are computed.
    computed: Option<Source>,
    /// The columns of these that are files.
    files: Arc<[FileColumn]>,
    /// The first point of a sweep around it at which it occurs, if it depends on one.
    pub point: Option<PointOfSweep>,
    /// Whether its table is asked for, and not only calls of its body.
    pub is_asked: bool,
    /// Whether the directory of all outputs is wanted, too.
    pub with_directory: bool,
    /// Its rows, as planned so far: more replicates are planned until the rule is satisfied.
    rows: boxcar::Vec<SweepRows>,
    /// The ends of the replicates of each point, once they are known.
    ends: OnceLock<Box<[ReplicatesEnd]>>,
}

/// The points of a planned sweep, and where the outputs of its body come from at each.
#[derive(Debug)]
pub struct SweepRows {
    /// The points in the order of the table.
    pub points: Arc<SweepPoints>,
    /// The largest possible set of points if their replicates end by results; otherwise the same points.
    pub possible: Arc<SweepPoints>,
    /// The points without their replicates, in order, if these end by results.
    pub replicated: Box<[ReplicatedPoint]>,
    /// The sources of the outputs of the body, point by point.
    pub sources: Box<[Source]>,
    /// The number of outputs of the body.
    pub width: usize,
    /// The number of points that are not asked for and not among these, if the points were selected.
    pub left_out: Option<usize>,
}

/// A point whose replicates end by results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicatedPoint {
    /// The replicates up to this number are planned.
    pub replicates: u32,
    /// Its rows among the points.
    pub rows: Range<usize>,
}

/// An addition that makes a plan grow.
#[derive(Clone, Debug)]
pub enum PlanGrowth {
    /// The points of a sweep were computed.
    Points(SweepPoints),
    /// Each point of a sweep is to have the replicates up to these numbers.
    Replicates(Vec<u32>),
}

/// The reason why computed points cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum PointsFault {
    /// The body reads a name that is not a column.
    #[error("the points have no column {0}, which the body of the sweep reads")]
    #[hint(Some(_0.suggestion("columns")))]
    NoColumn(UnknownName),
    /// A column of the points has the name of another column of the table.
    #[error("the points have a column {0:?}, which the table has, too")]
    #[hint("rename it in the sheet, or the output in the file columns of the sweep")]
    SameColumn(String),
    /// A column of the points has the name of an input of the task that the body reads.
    #[error("the points have a column {0:?}, and the body reads the input {0:?} of the task")]
    #[hint(
        "give the column another name: the table would show its texts, and calls would read others"
    )]
    InputColumn(String),
    /// Points have no texts, so no paths in the directory of all outputs.
    #[error("the points have files only, and no texts, so their outputs have no paths")]
    #[hint("add a column of texts that tells the points apart, such as the name of a sample")]
    NoTexts,
    /// Points would have one path in the directory of all outputs.
    #[error("the points {} and {} differ in files only, so their outputs would have one path", .0[0], .0[1])]
    #[hint("bind a column of texts that tells them apart, such as the number of a run")]
    SameTexts([usize; 2]),
    /// They do not fit the rules.
    #[error("{}", product_words(.0))]
    #[hint(_0.first().and_then(Explain::hint))]
    Product(Vec<ProductFault>),
}

fn product_words(faults: &[ProductFault]) -> String {
    faults
        .iter()
        .map(|fault| match fault {
            ProductFault::Exclusion(fault) => format!("exclude.tsv: {fault}"),
            ProductFault::Condition(fault) => format!("where: {fault}"),
            ProductFault::Factor(fault) => fault.to_string(),
        })
        .collect::<Vec<_>>()
        .join("; ")
}

impl PlannedSweep {
    /// Computed points as they were read, with its columns of files.
    pub fn with_files(&self, task: &Task, plan: &Plan, read: SweepPoints) -> SweepPoints {
        let own_sheet = match self.computed {
            Some(Source::File(file)) => Some(task.files[file.index()].path.written()),
            Some(Source::Derived { value, .. }) => match &plan.value(value).how {
                Derivation::File(path) => Some(path),
                _ => None,
            },
            _ => None,
        };
        read.with_files(&self.files, own_sheet)
    }

    /// The texts of the names that sweeps around it bind and it depends on. Files are left out.
    pub fn outer_texts(&self) -> impl Iterator<Item = (BoundId, &Arc<str>)> {
        self.outer.iter().filter_map(|(name, value)| match value {
            BoundValue::Text(text) => Some((*name, text)),
            BoundValue::File(_) => None,
        })
    }

    /// Its points and their outputs, as far as they are planned; `None` as long as they are to be computed.
    pub fn rows(&self) -> Option<&SweepRows> {
        self.rows.get(self.rows.count().checked_sub(1)?)
    }

    /// Whether it may have more points than are planned.
    pub fn grows(&self) -> bool {
        self.rows().is_none_or(|rows| !rows.replicated.is_empty() && self.ends.get().is_none())
    }

    /// Returns the ends of the replicates of its points, in the order of [`SweepRows::replicated`]; `None` as long as they are not
    /// known.
    pub fn ends(&self) -> Option<&[ReplicatesEnd]> {
        self.ends.get().map(|ends| &**ends)
    }

    /// Notes how the replicates of its points ended: there are no more.
    pub fn end(&self, ends: Vec<ReplicatesEnd>) {
        let is_first = self.ends.set(ends.into()).is_ok();
        debug_assert!(is_first, "replicates end once");
    }
}

impl SweepRows {
    /// The sources of the outputs of the body at a point.
    pub fn row(&self, number: usize) -> &[Source] {
        &self.sources[number * self.width..(number + 1) * self.width]
    }

    /// Whether points are left out, so that there is no table.
    pub fn is_partial(&self) -> bool {
        self.left_out.is_some_and(|count| count > 0)
    }

    /// All points, with the sources of the outputs of the body.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (SweepPoint<'_>, &[Source])> {
        self.points.iter().enumerate().map(|(number, point)| (point, self.row(number)))
    }
}

/// The unique calls of a task, each after those that it reads from; but calls that were added when the points of a sweep
/// were known are after the call of that sweep.
#[derive(Debug)]
pub struct Plan {
    calls: boxcar::Vec<Planned>,
    derived: boxcar::Vec<Derived>,
    sweeps: boxcar::Vec<PlannedSweep>,
    literals: Vec<StorageName>,
    steps: Vec<Step>,
    outputs: Vec<Source>,
    /// The nodes below which all is that is evaluated, if only some calls are asked for.
    tops: Vec<NodeId>,
    /// The sweep whose points are jobs.
    jobs: Option<PlannedSweepId>,
    free: Arc<FreeNames>,
    /// The resources of the calls that request any.
    resources: Mutex<HashMap<CallId, Result<Resources, WrongAmount>>>,
    /// The state that is needed to add calls.
    planner: Mutex<Planner>,
}

impl Plan {
    /// Plans the evaluation of a task.
    pub fn new(task: &Task) -> Self {
        Self::of_points(task, PointSelection::default())
    }

    /// Plans the evaluation of a task for a selection of its points.
    pub fn of_points(task: &Task, selection: PointSelection) -> Self {
        let mut plan = Self {
            calls: boxcar::Vec::new(),
            derived: boxcar::Vec::new(),
            sweeps: boxcar::Vec::new(),
            literals: Vec::new(),
            steps: Vec::new(),
            outputs: Vec::new(),
            tops: Vec::new(),
            jobs: None,
            free: Arc::new(FreeNames::new(task)),
            resources: Mutex::default(),
            planner: Mutex::default(),
        };
        let mut planner = Planner::new(task, Arc::clone(&plan.free), selection);
        planner.plan(task, &plan);
        planner.sources(&task.workflow, task.workflow.root(), &mut plan.outputs);
        plan.literals = planner.take_literals();
        plan.steps = planner.steps();
        plan.tops = planner.tops(task);
        if !plan.tops.is_empty() {
            plan.outputs.clear();
        } else if let Step::Call(root) = plan.step(task.workflow.root())
            && let Operation::Sweep(sweep) = plan.call(root).operation
            && let rules = &task.sweeps[plan.sweep(sweep).sweep.index()]
            && !rules.has_table
        {
            plan.jobs = Some(sweep);
            let rows = plan.sweep(sweep).rows();
            plan.outputs = rows.map(|rows| rows.sources.to_vec()).unwrap_or_default();
        }
        plan.planner = Mutex::new(planner);
        plan
    }

    /// Plans the task again: calls that were added to this plan are not part of it. Nodes that both plans have keep their
    /// ids.
    #[must_use]
    pub fn again(&self, task: &Task) -> Self {
        let planner = self.planner.lock().unwrap_or_else(PoisonError::into_inner);
        let selection = planner.selection.clone();
        drop(planner);
        Self::of_points(task, selection)
    }

    /// Adds the calls of a sweep after more of its points became known, behind the calls of before. Returns the
    /// rows of its exclusion that match none of the points.
    pub fn expand(
        &self,
        task: &Task,
        sweep: PlannedSweepId,
        growth: PlanGrowth,
    ) -> Result<Vec<ExclusionFault>, PointsFault> {
        let mut planner = self.planner.lock().unwrap_or_else(PoisonError::into_inner);
        match growth {
            PlanGrowth::Points(points) => planner.expand(task, self, sweep, points),
            PlanGrowth::Replicates(numbers) => {
                planner.replicate(task, self, sweep, &numbers).map(|()| Vec::new())
            }
        }
    }

    /// All calls.
    pub fn calls(&self) -> impl ExactSizeIterator<Item = (CallId, &Planned)> {
        (0..self.calls.count()).map(|at| (CallId::at(at), &self.calls[at]))
    }

    /// Whether some points of a sweep are not known yet, so that calls may be added.
    pub fn grows(&self) -> bool {
        self.sweeps.iter().any(|(_, sweep)| sweep.grows())
    }

    /// The call with this id.
    pub fn call(&self, id: CallId) -> &Planned {
        &self.calls[id.index()]
    }

    /// Returns the resources that a call requests, if it requests any.
    pub fn resources(&self, id: CallId) -> Result<Option<Resources>, WrongAmount> {
        let resources = self.resources.lock().unwrap_or_else(PoisonError::into_inner);
        resources.get(&id).cloned().transpose()
    }

    /// Merges the resources that a node requests into its call's: the maximum of each counts.
    fn request(&self, id: CallId, asked: Result<Resources, WrongAmount>) {
        let mut resources = self.resources.lock().unwrap_or_else(PoisonError::into_inner);
        let known = resources.entry(id).or_insert_with(|| Ok(Resources::default()));
        match (&mut *known, asked) {
            (Ok(known), Ok(asked)) => *known = known.clone().max(&asked),
            (Ok(_), wrong) => *known = wrong,
            (Err(_), _) => {}
        }
    }

    /// The sources that a call reads: for a sweep, the outputs of its body at each point, or the points as long as these are
    /// not known.
    pub fn inputs(&self, id: CallId) -> &[Source] {
        let Planned { operation, inputs, .. } = self.call(id);
        match operation {
            Operation::Sweep(sweep) => {
                self.sweep(*sweep).rows().map_or(inputs, |rows| &rows.sources)
            }
            Operation::Computation(_) => inputs,
        }
    }

    /// The sweep with this id.
    pub fn sweep(&self, id: PlannedSweepId) -> &PlannedSweep {
        &self.sweeps[id.index()]
    }

    /// The sweep that a call gathers, if it does.
    pub fn gathered(&self, id: CallId) -> Option<&PlannedSweep> {
        match self.call(id).operation {
            Operation::Sweep(sweep) => Some(self.sweep(sweep)),
            Operation::Computation(_) => None,
        }
    }

    /// The computation of a call, unless that gathers a table.
    pub fn computation(&self, id: CallId) -> Option<ComputationId> {
        match self.call(id).operation {
            Operation::Computation(computation) => Some(computation),
            Operation::Sweep(_) => None,
        }
    }

    /// The sweep whose points are jobs of their own, if the task is evaluated for each point over its own inputs.
    pub fn jobs(&self) -> Option<&PlannedSweep> {
        self.jobs.map(|sweep| self.sweep(sweep))
    }

    /// The files that are expected to be in the storage.
    pub fn literals(&self) -> &[StorageName] {
        &self.literals
    }

    /// The derived values, each after its sources.
    pub fn derived(&self) -> impl ExactSizeIterator<Item = (DerivedId, &Derived)> {
        (0..self.derived.count()).map(|at| (DerivedId::at(at), &self.derived[at]))
    }

    /// The derived value with this id.
    pub fn value(&self, id: DerivedId) -> &Derived {
        &self.derived[id.index()]
    }

    /// The Git tree of a derived value, if it is one.
    pub fn tree(&self, id: DerivedId) -> Option<TaskTreeId> {
        match self.value(id).how {
            Derivation::Tree(tree, _) => Some(tree),
            _ => None,
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
        match self.origin(source) {
            Source::Output { call, .. } => Some(call),
            _ => None,
        }
    }

    /// The source that decides when this one is known: the first source in its chain of derivations.
    pub fn origin(&self, mut source: Source) -> Source {
        while let Source::Derived { value, .. } = source
            && let Some(from) = self.value(value).from
        {
            source = from;
        }
        source
    }

    /// The step of a node of the workflow.
    pub fn step(&self, node: NodeId) -> Step {
        self.steps[node.index()]
    }

    /// Returns the sources of the files that a node passes up; none if it depends on names that a sweep binds.
    pub fn sources(&self, task: &Task, node: NodeId) -> Vec<Source> {
        let mut sources = Vec::new();
        if self.step(node) != Step::PerPoint {
            add_sources(&task.workflow, &self.steps, node, &mut sources);
        }
        sources
    }

    /// The sources of the outputs of the workflow: if its points are jobs, of each in their order. None if only some calls are
    /// asked for.
    pub fn outputs(&self) -> &[Source] {
        &self.outputs
    }
}

/// Adds the sources of the files that a planned node passes up.
fn add_sources(workflow: &Workflow, steps: &[Step], node: NodeId, sources: &mut Vec<Source>) {
    for (node, number) in origins(workflow, node) {
        sources.push(match steps[node.index()] {
            Step::Call(call) => Source::Output { call, number },
            Step::Derived(value) => Source::Derived { value, number },
            Step::Leaf(source) => source,
            Step::All(_) | Step::PerPoint => {
                debug_assert!(false, "a node is planned before those that read it");
                return;
            }
        });
    }
}

/// Everything that some values are made from, themselves included. Each list is sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ancestors {
    pub calls: Vec<CallId>,
    /// The derived values.
    pub derived: Vec<DerivedId>,
    /// The files that are expected to be in the storage.
    pub literals: Vec<LiteralId>,
}

impl Plan {
    /// Returns everything that is planned.
    pub fn everything(&self) -> Ancestors {
        Ancestors {
            calls: self.calls().map(|(id, _)| id).collect(),
            derived: self.derived().map(|(id, _)| id).collect(),
            literals: (0..self.literals.len()).map(LiteralId::at).collect(),
        }
    }

    /// Returns the ancestors of values with these sources.
    pub fn ancestors(&self, sources: &[Source]) -> Ancestors {
        let mut found = Ancestors::default();
        let mut seen: HashSet<Source> = HashSet::new();
        let (mut calls, mut derived) = (HashSet::new(), HashSet::new());
        let mut waiting = sources.to_vec();
        while let Some(source) = waiting.pop() {
            if !seen.insert(source) {
                continue;
            }
            match source {
                Source::Output { call, .. } if calls.insert(call) => {
                    found.calls.push(call);
                    waiting.extend_from_slice(self.inputs(call));
                    // The inputs of a sweep are its points; the outputs of its body take their place.
                    waiting.extend_from_slice(&self.call(call).inputs);
                }
                Source::Derived { value, .. } if derived.insert(value) => {
                    found.derived.push(value);
                    waiting.extend(self.value(value).from);
                }
                Source::Literal(literal) => found.literals.push(literal),
                Source::Output { .. } | Source::Derived { .. } => {}
                Source::Input(_) | Source::File(_) => {}
            }
        }
        found.calls.sort_unstable();
        found.derived.sort_unstable();
        found.literals.sort_unstable();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::TreeName;
    use crate::slice::WrittenSlice;
    use crate::task::{Argument, Builder, LoadedFrom, Node, TaskTree, TreeCommit};

    fn call(
        builder: &mut Builder,
        computation: usize,
        inputs: &[NodeId],
        slice: &[&str],
    ) -> NodeId {
        let mut next = 0;
        let mut arguments = Vec::new();
        for node in inputs {
            let first = next;
            next += builder[*node].width() as u8;
            arguments.push(Argument { label: "".into(), first, last: next - 1, node: *node });
        }
        let inputs = arguments.into();
        let outputs = WrittenSlice::parse(slice.iter().copied()).resolve(&[]).0;
        let computation = ComputationId::at(computation).into();
        builder.intern(Node::Computation { computation, inputs, outputs })
    }

    fn tree(builder: &mut Builder, revision: NodeId, slice: &str) -> NodeId {
        let inputs = [Argument { label: "".into(), first: 0, last: 0, node: revision }].into();
        let outputs = WrittenSlice::parse([slice]).resolve(&[]).0;
        builder.intern(Node::Tree { tree: TaskTreeId::at(0), inputs, outputs })
    }

    #[test]
    fn equal_sources_are_one_call_whatever_the_slice() {
        let mut builder = Builder::default();
        let x = builder.intern(Node::Input(InputId::at(0)));
        let one = call(&mut builder, 0, &[x, x], &["0"]);
        let other = call(&mut builder, 0, &[x, x], &["01", "00"]);
        let root = call(&mut builder, 1, &[one, other], &["0", "1"]);
        let plan = planned(builder.finish(root));
        assert_eq!(plan.calls().len(), 2);
        let divmod = CallId::at(0);
        let numbers = [0, 1, 0].map(|number| Source::Output { call: divmod, number });
        assert_eq!(*plan.call(CallId::at(1)).inputs, numbers);
        assert_eq!(awaited(&plan, CallId::at(1)), [Some(divmod); 3]);
        assert_eq!(awaited(&plan, divmod), [None; 2]);
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
        let plan = planned(builder.finish(node));
        assert_eq!(plan.calls().len(), 60);
    }

    #[test]
    fn a_call_waits_for_the_revisions_of_its_trees() {
        let mut builder = Builder::default();
        let x = builder.intern(Node::Input(InputId::at(0)));
        let revision = call(&mut builder, 0, &[x], &["0"]);
        let commit = tree(&mut builder, revision, "01");
        let trees = [revision, commit, x].map(|revision| tree(&mut builder, revision, "00"));
        let root = call(&mut builder, 1, &trees, &["0"]);
        let plan = planned(builder.finish(root));
        assert_eq!(plan.derived().len(), 3, "one for each revision");
        let [first, root] = [0, 1].map(CallId::at);
        assert_eq!(awaited(&plan, root), [Some(first), Some(first), None]);
    }

    #[test]
    fn a_workflow_may_be_a_single_leaf() {
        let mut builder = Builder::default();
        let name: StorageName = "tinputs/ad/48103e4fc7".parse().unwrap();
        let root = builder.intern(Node::Literal(name.clone().into()));
        let plan = planned(builder.finish(root));
        assert_eq!(plan.literals(), [name]);
        assert_eq!(plan.outputs(), [Source::Literal(LiteralId::at(0))]);
    }

    /// The call that each input of a call waits for.
    fn awaited(plan: &Plan, call: CallId) -> Vec<Option<CallId>> {
        plan.inputs(call).iter().map(|source| plan.awaited(*source)).collect()
    }

    /// Plans a workflow whose computations do not matter.
    fn planned(workflow: Workflow) -> Plan {
        let name: TreeName = "lib".parse().unwrap();
        let tree = TaskTree { name: name.into(), commit: TreeCommit::OfRevision };
        Plan::new(&Task {
            name: "t".parse().unwrap(),
            commit: "0123456789012345678901234567890123456789".parse().unwrap(),
            place: String::new(),
            loaded_from: LoadedFrom::Commit(None),
            changed: Vec::new(),
            inputs: vec!["x".parse().unwrap()],
            defaults: Vec::new(),
            choices: Vec::new(),
            files: Vec::new(),
            trees: vec![tree],
            bound: Vec::new(),
            sweeps: Vec::new(),
            resources: Default::default(),
            computations: Vec::new(),
            text_computations: Vec::new(),
            workflow,
            definitions: Default::default(),
            parts: Default::default(),
        })
    }
}
