//! Planning sweeps: their bodies at each point, in the order of execution.

use std::mem;
use std::sync::{Arc, OnceLock};

use super::planner::{Planner, point};
use super::{CallId, Operation, Plan, PointOfSweep, Source};
use crate::expand::{self, ExclusionFault, ProductFault, REPLICATE, STATUS};
use crate::task::ids::ids;
use crate::task::points::{SweepPoint, SweepPoints};
use crate::task::sweep::{BoundId, ColumnShape, Sweep};
use crate::task::workflow::{Argument, Node, NodeId, SweepId, Task};

ids! {
    /// A sweep of a [`Plan`].
    PlannedSweepId
}

/// A sweep, with the texts of the names that it depends on.
#[derive(Debug)]
pub struct PlannedSweep {
    /// Its rules.
    pub sweep: SweepId,
    /// Its body.
    pub body: NodeId,
    /// The names that sweeps around it bind and it depends on, with their texts.
    pub outer: Box<[(BoundId, Arc<str>)]>,
    /// The first point of a sweep around it at which it occurs, if it depends on one.
    pub point: Option<PointOfSweep>,
    /// Whether its table is asked for, and not only what is in its body.
    pub is_asked: bool,
    /// Whether the directory of all outputs is wanted, too.
    pub with_directory: bool,
    rows: OnceLock<SweepRows>,
}

/// The points of a planned sweep, and where the outputs of its body come from at each.
#[derive(Debug)]
pub struct SweepRows {
    /// The points in the order of the table.
    pub points: Arc<SweepPoints>,
    /// The sources of the outputs of the body, point by point.
    pub sources: Box<[Source]>,
    /// The number of outputs of the body.
    pub width: usize,
    /// The number of points that are not asked for and not among these, if the points were selected.
    pub left_out: Option<usize>,
}

/// Why computed points cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointsFault {
    /// The body reads a name that is no column.
    #[error("the points have no column {name:?}, which the body of the sweep reads")]
    NoColumn {
        /// The name.
        name: String,
        /// The most similar name of a column.
        nearest: Option<String>,
        /// The names of all columns.
        known: Vec<String>,
    },
    /// A column of the points has the name of another column of the table.
    #[error("the points have a column {0:?}, which the table has, too")]
    SameColumn(String),
    /// A column of the points has the name of an input of the task that the body reads.
    #[error("the points have a column {0:?}, and the body reads the input {0:?} of the task")]
    InputColumn(String),
    /// They do not fit the rules.
    #[error("{}", product_words(.0))]
    Product(Vec<ProductFault>),
}

fn product_words(faults: &[ProductFault]) -> String {
    let words = |fault: &ProductFault| match fault {
        ProductFault::Exclusion(fault) => format!("exclude.tsv: {fault}"),
        ProductFault::Factor(fault) => fault.to_string(),
    };
    faults.iter().map(words).collect::<Vec<_>>().join("; ")
}

impl PlannedSweep {
    /// Its points and their outputs; `None` as long as they are to be computed.
    pub fn rows(&self) -> Option<&SweepRows> {
        self.rows.get()
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

impl Planner {
    /// Plans a sweep, and its body at each point unless these are computed.
    pub(super) fn plan_sweep(
        &mut self,
        task: &Task,
        plan: &Plan,
        node: NodeId,
        (sweep, inputs): (SweepId, &[Argument]),
    ) -> CallId {
        let body = inputs[0].node;
        let computed = self.first(&task.workflow, &inputs[1..]);
        let text = |name: &BoundId| self.texts[name.index()].clone().unwrap_or_default();
        let outer: Box<[_]> = self.free.of(node).iter().map(|name| (*name, text(name))).collect();
        let key = (sweep, body, computed, outer.iter().map(|(_, text)| text.clone()).collect());
        if let Some(known) = self.known_sweeps.get(&key) {
            let known = *known;
            self.use_again(plan, known, node);
            return known;
        }
        let with_directory = wants_directory(task, sweep, inputs);
        let rows = OnceLock::new();
        let point = self.point.filter(|_| !outer.is_empty());
        let is_asked = self.targets.needs_outputs(node);
        let planned = PlannedSweep { sweep, body, outer, point, is_asked, with_directory, rows };
        let id = PlannedSweepId::at(plan.sweeps.push(planned));
        if computed.is_none() {
            let rules = &task.sweeps[sweep.index()].product;
            let points = self.products.entry(sweep).or_insert_with(|| {
                // Loading the task has checked that there are some.
                Arc::new(expand::points(rules).unwrap_or_default())
            });
            let points = Arc::clone(points);
            let columns = columns(task, &task.sweeps[sweep.index()], &points);
            debug_assert!(columns.is_ok(), "a factor is a column");
            self.rows(task, plan, id, (points, &columns.unwrap_or_default()));
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
        let PlannedSweep { sweep, outer, .. } = plan.sweep(id);
        let rules = &task.sweeps[sweep.index()];
        let points = expand::computed_points(&rules.product, computed);
        let (points, unmatched) = points.map_err(PointsFault::Product)?;
        let columns = columns(task, rules, &points)?;
        for (name, text) in outer {
            self.texts[name.index()] = Some(Arc::clone(text));
        }
        self.rows(task, plan, id, (Arc::new(points), &columns));
        outer.iter().for_each(|(name, _)| self.texts[name.index()] = None);
        Ok(unmatched)
    }

    /// Plans the body at each point. Each bound name has the text of a column.
    fn rows(
        &mut self,
        task: &Task,
        plan: &Plan,
        id: PlannedSweepId,
        (points, columns): (Arc<SweepPoints>, &[(BoundId, usize)]),
    ) {
        let mut selected = self.selection.select(&points, &mut self.seen);
        if self.asks_in_vain(task, plan, id) {
            selected = Some(points.filtered(|_| false));
        }
        let left_out = selected.as_ref().map(|selected| points.len() - selected.len());
        let points = selected.map_or(points, Arc::new);
        let body = plan.sweep(id).body;
        let nodes = self.body(task, body);
        let width = task.workflow[body].width();
        let mut sources = Vec::new();
        let mut rows: Vec<Source> = Vec::with_capacity(points.len() * width);
        let order = order(&points);
        let outside = self.point;
        for number in &order {
            let at = points.at(*number as usize);
            for (name, column) in columns {
                self.texts[name.index()] = Some(Arc::clone(at.at(*column)));
            }
            self.point = Some(point(id, *number));
            nodes.iter().for_each(|node| self.plan_again(task, plan, *node));
            sources.clear();
            self.sources(&task.workflow, body, &mut sources);
            rows.extend_from_slice(&sources);
        }
        self.point = outside;
        columns.iter().for_each(|(name, _)| self.texts[name.index()] = None);
        let sources = in_table_order(&order, &rows, width);
        let rows_of_sweep = SweepRows { points, sources, width, left_out };
        let is_first = plan.sweep(id).rows.set(rows_of_sweep).is_ok();
        debug_assert!(is_first, "a sweep is expanded once");
    }

    /// Whether a name is asked for that no sweep has: that is an error, and nothing is to be evaluated for it. It is known
    /// when each sweep with computed points was expanded once. This one is being expanded.
    fn asks_in_vain(&self, task: &Task, plan: &Plan, current: PlannedSweepId) -> bool {
        let is_expanded = |node: NodeId| {
            plan.calls().any(|(_, call)| match call.operation {
                Operation::Sweep(id) if call.node == node => {
                    id == current || plan.sweep(id).rows().is_some()
                }
                _ => false,
            })
        };
        self.selection.has_unseen(&self.seen)
            && task.workflow.nodes().all(|(id, node)| match node {
                Node::Sweep { inputs, .. } => inputs.len() < 2 || is_expanded(id),
                _ => true,
            })
    }

    /// The nodes of a body that depend on names, in order. Those of bodies in it are not among them.
    fn body(&mut self, task: &Task, body: NodeId) -> Arc<[NodeId]> {
        if let Some(known) = self.bodies.get(&body) {
            return Arc::clone(known);
        }
        let (mut nodes, mut seen, mut stack) = (Vec::new(), Vec::new(), vec![body]);
        seen.resize(body.index() + 1, false);
        while let Some(node) = stack.pop() {
            if self.free.of(node).is_empty() || mem::replace(&mut seen[node.index()], true) {
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
            let nodes = |inputs: &[Argument]| inputs.iter().map(|it| it.node).collect::<Vec<_>>();
            *other == sweep && nodes(others) == nodes(inputs) && outputs.numbers().any(|it| it == 1)
        }
        _ => false,
    })
}

/// The column of each name that a sweep gives a text.
fn columns(
    task: &Task,
    sweep: &Sweep,
    points: &SweepPoints,
) -> Result<Vec<(BoundId, usize)>, PointsFault> {
    if points.is_empty() {
        return Ok(Vec::new());
    }
    let column = |name: BoundId| {
        let text = task.bound[name.index()].as_str();
        let missing = || PointsFault::NoColumn {
            name: text.to_owned(),
            nearest: crate::task::name::nearest(text, points.names()),
            known: points.names().to_vec(),
        };
        Ok((name, points.column(text).ok_or_else(missing)?))
    };
    let of_outputs = sweep.columns.iter().filter_map(|column| match &column.shape {
        ColumnShape::One(name) => Some(&**name),
        ColumnShape::Fields | ColumnShape::Rows => None,
    });
    let mut made = of_outputs.chain(sweep.allow_failed.then_some(STATUS));
    if let Some(name) = made.find(|name| sweep.has_table && points.column(name).is_some()) {
        return Err(PointsFault::SameColumn(name.to_owned()));
    }
    if let Some(name) = sweep.inputs.iter().find(|name| points.column(name).is_some()) {
        return Err(PointsFault::InputColumn(name.to_string()));
    }
    sweep.gives().map(column).collect()
}

/// The numbers of points in the order of their execution: replicate by replicate, each shuffled, so that a drift of the
/// machine does not look like the effect of a factor. The order depends on the texts of the points only.
fn order(points: &SweepPoints) -> Vec<u32> {
    let replicate = points.column(REPLICATE);
    let hashes: Vec<Vec<u64>> = (0..points.names().len())
        .map(|column| points.levels(column).iter().map(|text| hash(text)).collect())
        .collect();
    let key = |number: usize| {
        let levels = points.at(number).level_numbers();
        let parts = levels.iter().enumerate().filter(|(column, _)| Some(*column) != replicate);
        let mixed = parts.fold(0, |sum, (column, level)| mix(sum, hashes[column][*level as usize]));
        (replicate.map(|column| levels[column]), mixed)
    };
    let mut order: Vec<_> = (0..points.len()).map(|number| (key(number), number as u32)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, number)| number).collect()
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

/// Returns rows of so many sources, which are in this order, in the order of their numbers.
fn in_table_order(order: &[u32], rows: &[Source], width: usize) -> Box<[Source]> {
    let mut place = vec![0; order.len()];
    for (at, number) in order.iter().enumerate() {
        place[*number as usize] = at;
    }
    place.into_iter().flat_map(|at| &rows[at * width..(at + 1) * width]).copied().collect()
}
