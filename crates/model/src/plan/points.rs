//! The points at which calls occur, and the calls of the body of a sweep at all of its points.
//!
//! A [`PointSelection`] and [`RequestedNodes`] are the part of a workflow that is requested, where that is not all of it:
//! points of sweeps, and calls by their names.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::mem;
use std::sync::{Arc, PoisonError};

use super::{
    CallId, DerivedId, Plan, Planned, PlannedSweep, PlannedSweepId, PointOfSweep, Source, Step,
    SweepRows,
};
use crate::exit::Explain;
use crate::humanize::listed;
use crate::suggest::{UnknownName, near};
use crate::sweep::{BoundId, REPLICATE, SweepPoints};
use crate::task::{
    Computation, ComputationId, FreeNames, LabelPaths, NamedComputation, Node, NodeId, ROOT_LABEL,
    SweepId, Task, origins,
};

/// The first rows of sweeps with the same texts in some columns, as far as they were asked for.
#[derive(Debug, Default)]
pub struct FirstRows(HashMap<(PlannedSweepId, Vec<usize>), HashMap<Vec<u32>, u32>>);

impl Plan {
    /// The names that sweeps bind and a call depends on, with their texts at the first point at which the call occurs.
    /// Names of outer sweeps come first, and the names of one sweep are in the order of its columns. If it depends on a file that a
    /// sheet names, all texts of its row say which one. Empty if it depends on no point.
    pub fn point<'a>(&'a self, task: &'a Task, call: CallId) -> Vec<(&'a str, &'a str)> {
        let Planned { node, point, .. } = self.call(call);
        let free = self.free.names_in(*node);
        let mut sweeps: Vec<PointOfSweep> = self.points_around(*point).collect();
        sweeps.reverse();
        let mut texts = Vec::with_capacity(free.len());
        for PointOfSweep { sweep, row } in sweeps {
            let planned = self.sweep(sweep);
            let rules = &task.sweeps[planned.sweep.index()];
            let binds = &rules.binds;
            let names: Vec<&str> = (binds.iter().filter(|name| free.contains(name)))
                .map(|name| task.bound[name.index()].as_str())
                .collect();
            let Some(rows) = planned.rows() else { continue };
            let row = rows.possible.at(row as usize);
            let has_file = names.iter().any(|name| row.file(name).is_some());
            let is_of_sheet = |name: &str| {
                let mut factors = rules.product.factors.iter();
                name != REPLICATE && !factors.any(|it| it.points.column(name).is_some())
            };
            let values = row
                .values()
                .filter(|(name, _)| names.contains(name) || has_file && is_of_sheet(name));
            texts.extend(values.map(|(name, text)| (name, &**text)));
        }
        texts
    }

    /// The outermost sweep with a point on which a call depends.
    pub fn outermost_sweep(&self, call: CallId) -> Option<PlannedSweepId> {
        self.points_around(self.call(call).point).last().map(|point| point.sweep)
    }

    /// The names that sweeps bind and a node depends on.
    pub fn free_names(&self, node: NodeId) -> &[BoundId] {
        self.free.names_in(node)
    }

    /// Whether each column tells the points of a sweep apart. The others are labels: columns that no node of the body
    /// reads. If points differ in labels only, or they are jobs, all columns count.
    pub fn key_columns(
        &self,
        task: &Task,
        sweep: &PlannedSweep,
        points: &SweepPoints,
    ) -> Vec<bool> {
        let rules = &task.sweeps[sweep.sweep.index()];
        let free = self.free.names_in(sweep.body);
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

    /// Puts sweeps that depend on the same names into the order of the points around them: outer sweeps decide first.
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
    fn in_point_order(&self, task: &Task, calls: &mut [CallId]) {
        let (mut known, mut first) = (FirstRows::default(), HashMap::new());
        let places: HashMap<CallId, usize> = (calls.iter().enumerate())
            .map(|(at, call)| match self.outermost_sweep(*call) {
                Some(sweep) => (*call, *first.entry(sweep).or_insert(at)),
                None => (*call, at),
            })
            .collect();
        calls.sort_by_cached_key(|call| (places[call], self.first_rows(task, *call, &mut known)));
    }

    /// The numbers of the first point at which a call occurs, in the order of the points of its sweeps: outer sweeps come
    /// first.
    ///
    /// [`Planned::point`] is the first one in the order of execution.
    pub fn first_rows(&self, task: &Task, call: CallId, known: &mut FirstRows) -> Vec<u32> {
        let Planned { node, point, .. } = self.call(call);
        self.first_rows_around(task, self.free.names_in(*node), *point, known)
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

    /// The first row with the same texts as this one for the names that its sweep binds.
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
            .filter_map(|name| rows.possible.any_column(task.bound[name.index()].as_str()))
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

    /// A point, and the points of the sweeps around its sweep, from the innermost one on.
    fn points_around(&self, point: Option<PointOfSweep>) -> impl Iterator<Item = PointOfSweep> {
        std::iter::successors(point, |point| self.sweep(point.sweep).point)
    }
}

/// The steps of a node of a body at all points: each once, in the order of the plan.
#[derive(Clone, Copy, Debug)]
pub enum BodySteps<'a> {
    /// Calls; for a sweep, the calls whose outputs it gathers.
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

    /// Adds the sources that a node passes up at a point, if it depends on the point.
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

/// The requested points: points that have one of the texts of each name, in all sweeps with a column of that name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PointSelection {
    texts: BTreeMap<String, Vec<Arc<str>>>,
    /// The names of the calls that are asked for, if not all are.
    pub(super) targets: Vec<String>,
}

/// The reason why a selection cannot be met.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum SelectionFault {
    /// No points have a column of this name.
    #[error("no sweep has points with a name {0}")]
    #[hint(_0.meant().or_else(|| Some(names_hint(&_0.known))))]
    NoName(UnknownName),
    /// It is the name of a column of files.
    #[error("{name:?} is a file of each point, and has no text")]
    #[hint(Some(names_hint(known)))]
    File {
        name: String,
        /// The names that have texts.
        known: Vec<String>,
    },
    /// No call has this name.
    #[error("the task has no call {0}")]
    #[hint(Some(calls_hint(_0)))]
    NoTarget(UnknownName),
    /// No point has this text.
    #[error("no point has {name}={text}")]
    #[hint(Some(texts_hint(name, text, known)))]
    NoText {
        name: String,
        text: String,
        /// The texts that points have.
        known: Vec<String>,
    },
}

/// What to try if no points have a name, and none is similar.
fn names_hint(known: &[String]) -> String {
    match known {
        [] => "leave out --where".to_owned(),
        known => format!("there are {}", listed(known)),
    }
}

/// What to try if no call has a name.
fn calls_hint(UnknownName { name, known }: &UnknownName) -> String {
    match &near(name, known)[..] {
        [] => format!("there are {}", listed(known)),
        near => format!("did you mean {}?", listed(near)),
    }
}

/// What to try if no point has a text of a name.
fn texts_hint(name: &str, text: &str, known: &[String]) -> String {
    if known.is_empty() {
        return "leave out --where".to_owned();
    }
    let known = listed(known);
    if text.contains('=') {
        format!(
            "write --where once for each name, and texts of one name as in --where {name}=TEXT,TEXT; there are {name}={known}"
        )
    } else {
        format!("there are {name}={known}")
    }
}

/// No points have the requested texts.
#[derive(Debug, thiserror::Error, Explain)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
#[hint(_0.first().and_then(Explain::hint))]
pub struct SelectionError(pub Vec<SelectionFault>);

/// The texts of each name that points have, in the order in which they were seen.
pub(super) type SeenTexts = BTreeMap<String, SeenLevels>;

/// The different texts that points have for one name.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenLevels {
    in_order: Vec<Arc<str>>,
    known: HashSet<Arc<str>>,
    /// Whether it is bound to files somewhere.
    is_file: bool,
}

impl SeenLevels {
    fn insert(&mut self, text: &Arc<str>) {
        if self.known.insert(Arc::clone(text)) {
            self.in_order.push(Arc::clone(text));
        }
    }
}

/// The names of all factors of sweeps, before any text was seen.
pub(super) fn factor_names(task: &Task) -> SeenTexts {
    let mut seen = SeenTexts::new();
    for (_, node) in task.workflow.nodes() {
        let Node::Sweep { sweep, .. } = node else { continue };
        let product = &task.sweeps[sweep.index()].product;
        let factors = product.factors.iter().flat_map(|factor| factor.points.names());
        seen.extend(factors.map(|name| (name.clone(), SeenLevels::default())));
        let replicates = product.replicates.iter();
        seen.extend(replicates.map(|_| (REPLICATE.to_owned(), SeenLevels::default())));
    }
    seen
}

/// Returns the texts of each name that points have, as far as they are not computed.
pub fn factor_texts(task: &Task) -> BTreeMap<String, BTreeSet<Arc<str>>> {
    let mut texts = BTreeMap::<_, BTreeSet<_>>::new();
    let factors = task.sweeps.iter().flat_map(|sweep| &sweep.product.factors);
    for points in factors.map(|factor| &factor.points) {
        for (column, name) in points.names().iter().enumerate() {
            texts.entry(name.clone()).or_default().extend(points.levels(column).iter().cloned());
        }
    }
    texts
}

impl PointSelection {
    /// The points with one of these texts of each name.
    pub fn new(wanted: impl IntoIterator<Item = (String, Vec<Arc<str>>)>) -> Self {
        let mut selection = Self::default();
        for (name, texts) in wanted {
            selection.texts.entry(name).or_default().extend(texts);
        }
        selection
    }

    /// The same points, but only of the calls with these names, and of all that they need.
    #[must_use]
    pub fn only(self, targets: Vec<String>) -> Self {
        Self { targets, ..self }
    }

    /// Whether everything is asked for.
    pub fn is_everything(&self) -> bool {
        self.texts.is_empty() && self.targets.is_empty()
    }

    /// Whether it says which replicates are asked for.
    pub(super) fn names_replicates(&self) -> bool {
        self.texts.contains_key(REPLICATE)
    }

    /// Returns the points that are asked for, if that are not all. Notes which texts there are.
    pub(super) fn select(&self, points: &SweepPoints, seen: &mut SeenTexts) -> Option<SweepPoints> {
        if self.texts.is_empty() {
            return None;
        }
        let mut wanted: Vec<(usize, Vec<bool>)> = Vec::new();
        points.files().iter().for_each(|it| seen.entry(it.clone()).or_default().is_file = true);
        for (column, name) in points.names().iter().enumerate() {
            let seen = seen.entry(name.clone()).or_default();
            let Some(texts) = self.texts.get(name) else { continue };
            // Texts of excluded points stay among the levels.
            let mut is_used = vec![false; points.levels(column).len()];
            points.rows().for_each(|row| is_used[row[column] as usize] = true);
            let levels = points.levels(column).iter().zip(is_used);
            levels.filter(|(_, is_used)| *is_used).for_each(|(text, _)| seen.insert(text));
            let is_wanted = points.levels(column).iter().map(|text| texts.contains(text));
            wanted.push((column, is_wanted.collect()));
        }
        if wanted.is_empty() {
            return None;
        }
        Some(
            points.filtered(|row| {
                wanted.iter().all(|(column, levels)| levels[row[*column] as usize])
            }),
        )
    }

    /// Whether a name is asked for that no points have had so far.
    pub(super) fn has_unseen(&self, seen: &SeenTexts) -> bool {
        self.texts.keys().any(|name| !seen.contains_key(name))
    }

    /// Returns a fault for each requested name or text that no points have, when all of them were seen.
    pub(super) fn faults(&self, seen: &SeenTexts) -> Vec<SelectionFault> {
        let mut faults = Vec::new();
        let has_texts = |it: &SeenLevels| !it.is_file || !it.known.is_empty();
        let names = seen.iter().filter(|(_, it)| has_texts(it)).map(|(name, _)| name);
        for (name, texts) in &self.texts {
            let Some(there) = seen.get(name) else {
                faults.push(SelectionFault::NoName(UnknownName::new(name, names.clone())));
                continue;
            };
            if !has_texts(there) {
                let (name, known) = (name.clone(), names.clone().cloned().collect());
                faults.push(SelectionFault::File { name, known });
                continue;
            }
            for text in texts.iter().filter(|text| !there.known.contains(*text)) {
                let known = there.in_order.iter().map(ToString::to_string).collect();
                let (name, text) = (name.clone(), text.to_string());
                faults.push(SelectionFault::NoText { name, text, known });
            }
        }
        faults
    }
}

/// The part of a workflow that is evaluated.
#[derive(Debug, Default)]
pub(super) struct RequestedNodes {
    /// The nodes that are asked for, in order. None if the whole workflow is.
    pub(super) nodes: Vec<NodeId>,
    /// A fault for each requested text that names no node.
    pub(super) unknown: Vec<SelectionFault>,
    /// Whether each node is asked for, or is read by one that is.
    needed: Vec<bool>,
    /// Whether each node is a sweep that is expanded because a node in its body is asked for.
    passed: Vec<bool>,
}

impl RequestedNodes {
    /// Finds the calls and sweeps with these names: the name of a computation, the label of a sweep, or the labels that lead to
    /// one.
    pub(super) fn new(task: &Task, free: &FreeNames, texts: &[String]) -> Self {
        let mut targets = Self::default();
        if texts.is_empty() {
            return targets;
        }
        let named = names_of_nodes(task);
        for text in texts {
            let found = named.iter().filter(|(_, names)| names.contains(text));
            let before = targets.nodes.len();
            targets.nodes.extend(found.map(|(node, _)| *node));
            if targets.nodes.len() == before {
                let unknown = UnknownName::new(text, call_names(task));
                targets.unknown.push(SelectionFault::NoTarget(unknown));
            }
        }
        targets.nodes.sort_unstable();
        targets.nodes.dedup();
        let count = task.workflow.nodes().len();
        (targets.needed, targets.passed) = (vec![false; count], vec![false; count]);
        targets.need(task, targets.nodes.clone());
        targets.pass(task, free);
        targets.unite(task);
        targets
    }

    /// Whether a node is evaluated.
    pub(super) fn needs(&self, node: NodeId) -> bool {
        self.nodes.is_empty() || self.needed[node.index()] || self.passed[node.index()]
    }

    /// Whether the outputs of a node are needed, and not only calls of its body.
    pub(super) fn needs_outputs(&self, node: NodeId) -> bool {
        self.nodes.is_empty() || self.needed[node.index()]
    }

    /// Whether a node is asked for itself.
    pub(super) fn contain(&self, node: NodeId) -> bool {
        self.nodes.binary_search(&node).is_ok()
    }

    /// Returns the outermost nodes that are asked for, or in whose bodies such nodes are: all that is evaluated is below them.
    pub(super) fn tops(&self, task: &Task, free: &FreeNames) -> Vec<NodeId> {
        let all =
            task.workflow.nodes().map(|(id, _)| id).filter(|node| free.names_in(*node).is_empty());
        let asked = all.filter(|it| self.contain(*it) || self.passed[it.index()]);
        let mut below = vec![false; self.needed.len()];
        for (id, node) in task.workflow.nodes().rev() {
            let is_below = below[id.index()] || self.needed[id.index()] || self.passed[id.index()];
            node.inputs().iter().filter(|_| is_below).for_each(|it| below[it.node.index()] = true);
        }
        asked.filter(|node| !below[node.index()]).collect()
    }

    /// Marks nodes, and all that they read.
    fn need(&mut self, task: &Task, mut waiting: Vec<NodeId>) {
        while let Some(node) = waiting.pop() {
            if !mem::replace(&mut self.needed[node.index()], true) {
                waiting.extend(task.workflow[node].inputs().iter().map(|input| input.node));
            }
        }
    }

    /// Marks the sweeps with requested nodes in their bodies, and the sources of their points.
    fn pass(&mut self, task: &Task, free: &FreeNames) {
        for (id, node) in task.workflow.nodes() {
            let Node::Sweep { inputs, .. } = node else { continue };
            let mut seen = vec![false; id.index()];
            let mut waiting = vec![inputs[0].node];
            while let Some(node) = waiting.pop() {
                let is_open = !free.names_in(node).is_empty();
                if is_open && !mem::replace(&mut seen[node.index()], true) {
                    self.passed[id.index()] |= self.contain(node);
                    waiting.extend(task.workflow[node].inputs().iter().map(|input| input.node));
                }
            }
            if self.passed[id.index()] {
                self.need(task, inputs[1..].iter().map(|input| input.node).collect());
            }
        }
    }

    /// Marks equal sweeps that pass up different outputs alike: they are one call.
    fn unite(&mut self, task: &Task) {
        let mut alike: HashMap<(SweepId, Vec<NodeId>), Vec<NodeId>> = HashMap::new();
        for (id, node) in task.workflow.nodes() {
            if let Node::Sweep { sweep, inputs, .. } = node {
                let inputs = inputs.iter().map(|input| input.node).collect();
                alike.entry((*sweep, inputs)).or_default().push(id);
            }
        }
        for nodes in alike.into_values() {
            if nodes.iter().any(|node| self.needed[node.index()]) {
                nodes.iter().for_each(|node| self.needed[node.index()] = true);
            }
        }
    }
}

impl PointSelection {
    /// Returns whether each input of a task is read by the requested calls, or by calls that they need. An input whose text
    /// is part of a value always counts.
    pub fn inputs_read(&self, task: &Task) -> Result<Vec<bool>, SelectionError> {
        if self.targets.is_empty() {
            return Ok(vec![true; task.inputs.len()]);
        }
        let requested = RequestedNodes::new(task, &FreeNames::new(task), &self.targets);
        if !requested.unknown.is_empty() {
            return Err(SelectionError(requested.unknown));
        }
        let mut is_read = vec![false; task.inputs.len()];
        for (_, node) in task.workflow.nodes().filter(|it| requested.needs(it.0)) {
            if let Node::Input(input) = node {
                is_read[input.index()] = true;
            }
        }
        task.free_names().for_each(|input| is_read[input.index()] = true);
        Ok(is_read)
    }
}

impl Plan {
    /// Returns the faults of requests that no points meet; none as long as there may be more points.
    pub fn selection_faults(&self) -> Vec<SelectionFault> {
        let planner = self.planner.lock().unwrap_or_else(PoisonError::into_inner);
        match planner.unknown_targets() {
            [] if self.sweeps.iter().any(|(_, sweep)| sweep.rows().is_none()) => Vec::new(),
            [] => planner.selection_faults(),
            unknown => unknown.to_vec(),
        }
    }

    /// The sweeps with unselected points: each with the numbers of selected points, and of all.
    pub fn partial_sweeps(&self) -> BTreeMap<SweepId, [usize; 2]> {
        let mut partial = BTreeMap::new();
        for (_, sweep) in &self.sweeps {
            if let Some(SweepRows { points, left_out: Some(left_out), .. }) = sweep.rows() {
                let [asked, all] = partial.entry(sweep.sweep).or_insert([0, 0]);
                *asked += points.len();
                *all += points.len() + left_out;
            }
        }
        partial.retain(|_, [asked, all]| asked < all);
        partial
    }

    /// Returns the calls that are known to be left out: they are not asked for, or need a table some of whose points are left out.
    pub fn left_out_calls(&self) -> HashSet<CallId> {
        let mut left_out = HashSet::new();
        let planner = self.planner.lock().unwrap_or_else(PoisonError::into_inner);
        if planner.selection.is_everything() {
            return left_out;
        }
        drop(planner);
        // The call that gathers a sweep with computed points precedes the calls of its points, so one pass may miss some.
        while self.add_left_out(&mut left_out) {}
        left_out
    }

    /// Adds the calls that turn out to be left out, given the known ones. Returns whether there were any.
    fn add_left_out(&self, left_out: &mut HashSet<CallId>) -> bool {
        let before = left_out.len();
        for (id, call) in self.calls() {
            let needs_left_out = |sources: &[Source]| {
                let mut awaited = sources.iter().filter_map(|it| self.awaited(*it));
                awaited.any(|call| left_out.contains(&call))
            };
            if !call.is_needed()
                || needs_left_out(&call.inputs)
                || self.gathered(id).is_some_and(|sweep| {
                    !sweep.is_asked
                        || sweep
                            .rows()
                            .is_some_and(|rows| rows.is_partial() || needs_left_out(&rows.sources))
                })
            {
                left_out.insert(id);
            }
        }
        left_out.len() > before
    }

    /// The nodes below which all is that is evaluated, if only some calls are asked for; else none.
    pub fn tops(&self) -> &[NodeId] {
        &self.tops
    }

    /// The requested outputs: the workflow's outputs, or the outputs of some calls where only these are requested. They
    /// are in the order of the points.
    pub fn asked_outputs(&self, task: &Task) -> Vec<Source> {
        if self.tops.is_empty() {
            return self.outputs.clone();
        }
        let targets = self.calls().filter(|(_, planned)| planned.is_target());
        let mut targets: Vec<CallId> = targets.map(|(call, _)| call).collect();
        self.in_point_order(task, &mut targets);
        // A definition passes up what any slice of it does.
        let mut defined = HashMap::<&str, Vec<u8>>::new();
        for (node, names) in &task.definitions {
            for name in names {
                let numbers = defined.entry(name).or_default();
                let new = task.workflow[*node].numbers().filter(|it| !numbers.contains(it));
                let new: Vec<u8> = new.collect();
                numbers.extend(new);
            }
        }
        let mut outputs = Vec::new();
        for call in targets {
            let node = self.call(call).node;
            let mut numbers: Vec<u8> = task.workflow[node].numbers().collect();
            for name in task.definitions.get(&node).into_iter().flatten() {
                numbers.extend(defined.get(&**name).into_iter().flatten());
            }
            let mut seen = HashSet::new();
            numbers.retain(|number| seen.insert(*number));
            outputs.extend(numbers.into_iter().map(|number| Source::Output { call, number }));
        }
        outputs
    }
}

/// Returns the names of all calls and sweeps of a task, sorted: one of them asks for some.
pub fn call_names(task: &Task) -> Vec<String> {
    let mut names: Vec<String> =
        names_of_nodes(task).into_iter().flat_map(|(_, names)| names).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the computations of the calls with this name, by which one asks for them: the name of a computation, or the labels that lead
/// to a call. Also returns whether a call with another name may have one of them. A computation whose name depends on a point is left
/// out.
pub fn computations_named<'a>(task: &'a Task, text: &str) -> (Vec<&'a Computation>, bool) {
    let (named, others): (Vec<_>, Vec<_>) = names_of_nodes(task)
        .into_iter()
        .partition(|(_, names)| names.iter().any(|name| name == text));
    let named = named.iter().filter_map(|(node, _)| called(task, *node));
    let closed = named.filter(|it| it.open.is_none());
    let found: BTreeSet<ComputationId> = closed.map(|it| it.first).collect();
    // A name that depends on a point may stand for any computation with as many inputs and outputs.
    let is_shared = others.iter().filter_map(|(node, _)| called(task, *node)).any(|other| {
        let is_open = other.open.is_some();
        found
            .iter()
            .any(|it| *it == other.first || is_open && arity(task, *it) == arity(task, other.first))
    });
    let found = found.iter().map(|it| &task.computations[it.index()]);
    let found: Vec<&Computation> = found.collect();
    let is_shared = is_shared && found.iter().all(|it| it.name.as_str() != text);
    (found, is_shared)
}

/// The names by which one asks for a call: of each computation that inputs of the task may choose, or as it is written.
fn names_of_computation(task: &Task, computation: &NamedComputation) -> Vec<String> {
    match computation.open.as_ref().and_then(|name| task.chosen(name)) {
        Some(chosen) => chosen.iter().map(ToString::to_string).collect(),
        None => vec![computation.written(task).to_owned()],
    }
}

/// The computation that a node calls, if it is a call.
fn called(task: &Task, node: NodeId) -> Option<&NamedComputation> {
    match &task.workflow[node] {
        Node::Computation { computation, .. } => Some(computation),
        _ => None,
    }
}

/// The numbers of inputs and outputs of a computation.
fn arity(task: &Task, id: ComputationId) -> (usize, usize) {
    let computation = &task.computations[id.index()];
    (computation.inputs.len(), computation.outputs.len())
}

/// The names of each node that is a call or a sweep.
fn names_of_nodes(task: &Task) -> Vec<(NodeId, Vec<String>)> {
    let paths = LabelPaths::new(&task.workflow);
    let mut all = Vec::new();
    for (id, node) in task.workflow.nodes() {
        let defined = task.definitions.get(&id).into_iter().flatten().map(ToString::to_string);
        let defined: Vec<String> = defined.collect();
        let own = match node {
            Node::Computation { computation, .. } => names_of_computation(task, computation),
            Node::Sweep { sweep, .. } => vec![task.sweeps[sweep.index()].label.to_string()],
            // Its name stands for all calls whose outputs it passes up.
            Node::All { .. } if !defined.is_empty() => {
                let origins = origins(&task.workflow, id).map(|(origin, _)| origin);
                let calls = origins.filter(|it| {
                    matches!(task.workflow[*it], Node::Computation { .. } | Node::Sweep { .. })
                });
                all.extend(calls.map(|call| (call, defined.clone())));
                continue;
            }
            _ => continue,
        };
        let path = paths.path(task, id).unwrap_or_else(|| ROOT_LABEL.to_owned());
        let names = own.into_iter().chain([path]).chain(defined).filter(|name| !name.is_empty());
        all.push((id, names.collect()));
    }
    all
}
