//! The points at which calls occur, and the calls of the body of a sweep at all of its points.

use std::collections::{BTreeMap, HashMap};

use super::{
    CallId, DerivedId, Plan, Planned, PlannedSweep, PlannedSweepId, PointOfSweep, Source, Step,
    SweepRows,
};
use crate::sweep::{BoundId, SweepPoints};
use crate::task::{Node, NodeId, Task, origins};

/// The first rows of sweeps with the same texts in some columns, as far as they were asked for.
#[derive(Debug, Default)]
pub struct FirstRows(HashMap<(PlannedSweepId, Vec<usize>), HashMap<Vec<u32>, u32>>);

impl Plan {
    /// The names that sweeps bind and a call depends on, with their texts at the first point at which the call occurs. Those
    /// of outer sweeps come first, and those of a sweep in the order of its columns. Empty if it depends on no point.
    pub fn point<'a>(&'a self, task: &'a Task, call: CallId) -> Vec<(&'a str, &'a str)> {
        let Planned { node, point, .. } = self.call(call);
        let free = self.free.of(*node);
        let mut sweeps: Vec<PointOfSweep> = self.points_around(*point).collect();
        sweeps.reverse();
        let mut texts = Vec::with_capacity(free.len());
        for PointOfSweep { sweep, row } in sweeps {
            let planned = self.sweep(sweep);
            let binds = &task.sweeps[planned.sweep.index()].binds;
            let names: Vec<&str> = (binds.iter().filter(|name| free.contains(name)))
                .map(|name| task.bound[name.index()].as_str())
                .collect();
            let Some(rows) = planned.rows() else { continue };
            let row = rows.possible.at(row as usize);
            let values = row.values().filter(|(name, _)| names.contains(name));
            texts.extend(values.map(|(name, text)| (name, &**text)));
        }
        texts
    }

    /// The outermost sweep of which a call depends on a point.
    pub fn outermost_sweep(&self, call: CallId) -> Option<PlannedSweepId> {
        self.points_around(self.call(call).point).last().map(|point| point.sweep)
    }

    /// The names that sweeps bind and a node depends on.
    pub fn free_names(&self, node: NodeId) -> &[BoundId] {
        self.free.of(node)
    }

    /// Whether each column tells the points of a sweep apart. The others are labels: what no node of the body reads. If
    /// points differ in labels only, or they are jobs, all columns count.
    pub fn key_columns(
        &self,
        task: &Task,
        sweep: &PlannedSweep,
        points: &SweepPoints,
    ) -> Vec<bool> {
        let rules = &task.sweeps[sweep.sweep.index()];
        let free = self.free.of(sweep.body);
        let is_read = |name: &str| {
            let mut binds = rules.binds.iter();
            binds.any(|id| free.contains(id) && task.bound[id.index()].as_str() == name)
        };
        let keys: Vec<bool> = points.names().iter().map(|name| is_read(name)).collect();
        let are_all = keys.iter().all(|is_key| *is_key);
        if are_all || !rules.has_table || points.columns(is_read).len() < points.len() {
            return vec![true; keys.len()];
        }
        keys
    }

    /// All sweeps. Each has a call that gathers it.
    pub fn sweeps(&self) -> impl ExactSizeIterator<Item = &PlannedSweep> {
        (0..self.sweeps.count()).map(|at| &self.sweeps[at])
    }

    /// Puts sweeps that depend on the same names into the order of the points around them: those of outer sweeps decide first.
    ///
    /// The point of a planned sweep is the first one in the order of execution, and may not be the first in the table.
    pub fn in_table_order<'a, K>(&'a self, task: &Task, sweeps: &mut [(K, &'a PlannedSweep)]) {
        let mut known = FirstRows::default();
        sweeps.sort_by_cached_key(|(_, sweep)| {
            let names: Vec<BoundId> = sweep.outer.iter().map(|(name, _)| *name).collect();
            self.first_rows_around(task, &names, sweep.point, &mut known)
        });
    }

    /// Puts calls into the order of the points of their outermost sweep. Calls of other sweeps or none stay where the first of each
    /// is, and calls at one point as they are.
    pub(super) fn in_point_order(&self, task: &Task, calls: &mut [CallId]) {
        let (mut known, mut first) = (FirstRows::default(), HashMap::new());
        let places: HashMap<CallId, usize> = (calls.iter().enumerate())
            .map(|(at, call)| match self.outermost_sweep(*call) {
                Some(sweep) => (*call, *first.entry(sweep).or_insert(at)),
                None => (*call, at),
            })
            .collect();
        calls.sort_by_cached_key(|call| (places[call], self.first_rows(task, *call, &mut known)));
    }

    /// The numbers of the first point at which a call occurs, in the order of the points of its sweeps: those of outer sweeps come
    /// first.
    ///
    /// [`Planned::point`] is the first one in the order of execution.
    pub fn first_rows(&self, task: &Task, call: CallId, known: &mut FirstRows) -> Vec<u32> {
        let Planned { node, point, .. } = self.call(call);
        self.first_rows_around(task, self.free.of(*node), *point, known)
    }

    /// The first rows with the same texts of some names as a point and those around it, from the outermost one on.
    fn first_rows_around(
        &self,
        task: &Task,
        names: &[BoundId],
        point: Option<PointOfSweep>,
        known: &mut FirstRows,
    ) -> Vec<u32> {
        let around = self.points_around(point);
        let mut rows: Vec<u32> =
            around.map(|point| self.first_row(task, names, point, known)).collect();
        rows.reverse();
        rows
    }

    /// The first row that has the same texts as this one, of those names that its sweep binds.
    fn first_row(
        &self,
        task: &Task,
        names: &[BoundId],
        PointOfSweep { sweep, row }: PointOfSweep,
        known: &mut FirstRows,
    ) -> u32 {
        let Some(rows) = self.sweep(sweep).rows() else { return row };
        let binds = &task.sweeps[self.sweep(sweep).sweep.index()].binds;
        let columns: Vec<usize> = (names.iter().filter(|name| binds.contains(name)))
            .filter_map(|name| rows.possible.column(task.bound[name.index()].as_str()))
            .collect();
        let texts = |row: &[u32]| columns.iter().map(|column| row[*column]).collect::<Vec<u32>>();
        let first_rows = known.0.entry((sweep, columns.clone())).or_insert_with(|| {
            let mut first_rows = HashMap::new();
            for (row, number) in rows.possible.rows().zip(0..) {
                first_rows.entry(texts(row)).or_insert(number);
            }
            first_rows
        });
        first_rows[&texts(rows.possible.row(row as usize))]
    }

    /// A point, and those of the sweeps around its sweep, from the innermost one on.
    fn points_around(&self, point: Option<PointOfSweep>) -> impl Iterator<Item = PointOfSweep> {
        std::iter::successors(point, |point| self.sweep(point.sweep).point)
    }
}

/// The steps of a node of a body at all points: each once, in the order of the plan.
#[derive(Clone, Copy, Debug)]
pub enum BodySteps<'a> {
    /// Calls; of a sweep, those that gather it.
    Calls(&'a [CallId]),
    /// Derived values.
    Derived(&'a [DerivedId]),
}

impl BodySteps<'_> {
    /// Returns the number of steps.
    pub const fn len(&self) -> usize {
        match self {
            Self::Calls(calls) => calls.len(),
            Self::Derived(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The nodes of bodies that are still to be visited, and their steps at different points, with repetitions.
#[derive(Default)]
struct Waiting {
    calls: BTreeMap<NodeId, Vec<CallId>>,
    derived: BTreeMap<NodeId, Vec<DerivedId>>,
}

impl Plan {
    /// Passes each node of a sweep's body that depends on points to a function, before those that it reads. Sweeps in the
    /// body are among them, and their bodies.
    pub fn visit_body(
        &self,
        task: &Task,
        sweep: &PlannedSweep,
        visit: &mut dyn FnMut(NodeId, BodySteps<'_>),
    ) {
        let mut waiting = Waiting::default();
        self.add_rows(task, sweep, &mut waiting);
        loop {
            // A node comes after those that it reads.
            let last = waiting.calls.last_key_value().map(|(node, _)| *node);
            let last = last.max(waiting.derived.last_key_value().map(|(node, _)| *node));
            let Some(node) = last else { break };
            if let Some(mut calls) = waiting.calls.remove(&node) {
                calls.sort_unstable();
                calls.dedup();
                visit(node, BodySteps::Calls(&calls));
                calls.iter().for_each(|call| self.add_inputs(task, node, *call, &mut waiting));
            }
            if let Some(mut values) = waiting.derived.remove(&node) {
                values.sort_unstable();
                values.dedup();
                visit(node, BodySteps::Derived(&values));
                let inputs = task.workflow[node].inputs();
                for (value, input) in values.iter().flat_map(|it| inputs.first().map(|at| (it, at)))
                {
                    self.add(task, input.node, self.value(*value).from.as_slice(), &mut waiting);
                }
            }
        }
    }

    /// The number of different steps of the body of a sweep at its points.
    pub fn body_steps(&self, task: &Task, sweep: &PlannedSweep) -> usize {
        let mut waiting = Waiting::default();
        self.add_rows(task, sweep, &mut waiting);
        let calls = waiting.calls.into_values().map(distinct);
        calls.chain(waiting.derived.into_values().map(distinct)).sum::<usize>().max(1)
    }

    /// Adds the body of a sweep at all of its points.
    fn add_rows(&self, task: &Task, sweep: &PlannedSweep, waiting: &mut Waiting) {
        let rows = sweep.rows().filter(|_| self.is_open(sweep.body));
        for (_, sources) in rows.into_iter().flat_map(SweepRows::iter) {
            self.add(task, sweep.body, sources, waiting);
        }
    }

    /// Adds the inputs of a call that a node is.
    fn add_inputs(&self, task: &Task, node: NodeId, call: CallId, waiting: &mut Waiting) {
        let (node, sources) = (&task.workflow[node], &self.call(call).inputs);
        let Node::Sweep { inputs, .. } = node else {
            for argument in node.inputs() {
                let places = usize::from(argument.first)..=usize::from(argument.last);
                self.add(task, argument.node, sources.get(places).unwrap_or_default(), waiting);
            }
            return;
        };
        self.gathered(call).into_iter().for_each(|sweep| self.add_rows(task, sweep, waiting));
        if let [_, points] = &inputs[..] {
            self.add(task, points.node, sources, waiting);
        }
    }

    /// Adds what a node is at some point where it passes up these sources, if it depends on that.
    fn add(&self, task: &Task, node: NodeId, sources: &[Source], waiting: &mut Waiting) {
        if !self.is_open(node) {
            return;
        }
        let mut last = None;
        for ((node, _), source) in origins(&task.workflow, node).zip(sources) {
            // All outputs of a node are one step.
            if last.replace(node) != Some(node) && self.is_open(node) {
                waiting.add(node, source);
            }
        }
    }

    /// Whether a node depends on a point.
    fn is_open(&self, node: NodeId) -> bool {
        self.step(node) == Step::PerPoint
    }
}

impl Waiting {
    fn add(&mut self, node: NodeId, source: &Source) {
        match source {
            Source::Output { call, .. } => self.calls.entry(node).or_default().push(*call),
            Source::Derived { value, .. } => self.derived.entry(node).or_default().push(*value),
            Source::Input(_) | Source::Literal(_) | Source::File(_) => {}
        }
    }
}

/// The number of different elements.
fn distinct<T: Ord>(mut all: Vec<T>) -> usize {
    all.sort_unstable();
    all.dedup();
    all.len()
}
