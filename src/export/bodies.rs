//! The bodies of sweeps in a drawing: each is drawn once, in a frame, with the number of calls that its shapes stand for.

use std::collections::HashMap;

use ce_evaluate::Evaluation;
use ce_model::humanize::counted;
use ce_model::plan::{BodySteps, CallId, Plan, PlannedSweep, Source, Step};
use ce_model::task::{Node, NodeId, Task};

/// The body of a sweep: shapes that stand for calls at many points.
#[derive(Debug, PartialEq, Eq)]
pub struct BodyFrame {
    /// The label of the sweep, and the number of its points.
    pub label: String,
    /// The places of its shapes, in order; those of frames within it are not among them.
    pub shapes: Vec<usize>,
    /// The place of the frame around it.
    pub parent: Option<usize>,
}

/// The number of calls that a shape stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShapeCount {
    /// All of them.
    pub calls: usize,
    /// Those whose outputs are there, if that was looked up.
    pub there: usize,
}

/// The frames of a workflow, and what its nodes in them stand for.
#[derive(Debug, Default)]
pub(super) struct Bodies {
    /// The frames, each after those that are in it. The shapes in them are not known yet.
    pub(super) frames: Vec<BodyFrame>,
    /// The innermost frame of each node that depends on points.
    pub(super) places: HashMap<NodeId, usize>,
    /// The calls that a node is at all points.
    pub(super) counts: HashMap<NodeId, ShapeCount>,
    /// The same calls.
    pub(super) calls: HashMap<NodeId, Vec<CallId>>,
}

impl Bodies {
    pub(super) fn new(task: &Task, plan: &Plan, evaluation: Option<&Evaluation>) -> Self {
        let mut bodies = Self::default();
        let mut sweeps = Vec::new();
        // The sweeps within a body come before the one around it.
        for (id, node) in task.workflow.nodes() {
            let Node::Sweep { sweep, inputs, .. } = node else { continue };
            if task.sweeps[sweep.index()].has_table && plan.step(inputs[0].node) == Step::PerPoint {
                let binds = &task.sweeps[sweep.index()].binds;
                let frame = bodies.frames.len();
                bodies.place(task, plan, inputs[0].node, &|node| {
                    plan.free_names(node).iter().any(|name| binds.contains(name)).then_some(frame)
                });
                let is_meant = |it: &&PlannedSweep| it.sweep == *sweep && it.body == inputs[0].node;
                let label = label(task, plan.sweeps().filter(is_meant));
                bodies.frames.push(BodyFrame { label, shapes: Vec::new(), parent: None });
                sweeps.push(id);
            }
        }
        for (frame, sweep) in sweeps.iter().enumerate() {
            bodies.frames[frame].parent = bodies.places.get(sweep).copied();
        }
        for sweep in plan.sweeps().filter(|sweep| sweep.point.is_none()) {
            plan.visit_body(task, sweep, &mut |node, steps| {
                let count = ShapeCount { calls: steps.len(), there: there(evaluation, steps) };
                bodies.counts.entry(node).or_insert(count);
                if let BodySteps::Calls(calls) = steps {
                    bodies.calls.entry(node).or_insert_with(|| calls.to_vec());
                }
            });
        }
        bodies
    }

    /// Puts the nodes of a body that depend on points into a frame, unless they are in one within it.
    fn place(
        &mut self,
        task: &Task,
        plan: &Plan,
        body: NodeId,
        frame: &dyn Fn(NodeId) -> Option<usize>,
    ) {
        let mut waiting = vec![body];
        let mut seen = vec![false; body.index() + 1];
        while let Some(node) = waiting.pop() {
            if plan.step(node) != Step::PerPoint || std::mem::replace(&mut seen[node.index()], true)
            {
                continue;
            }
            if let Some(frame) = frame(node) {
                self.places.entry(node).or_insert(frame);
            }
            waiting.extend(task.workflow[node].inputs().iter().map(|input| input.node));
        }
    }
}

/// How many of these are in the storage.
fn there(evaluation: Option<&Evaluation>, steps: BodySteps<'_>) -> usize {
    let Some(evaluation) = evaluation else { return 0 };
    let is_there = |source: Source| evaluation.is_kept(source);
    match steps {
        BodySteps::Calls(calls) => {
            calls.iter().filter(|it| is_there(Source::Output { call: **it, number: 0 })).count()
        }
        BodySteps::Derived(values) => {
            values.iter().filter(|it| is_there(Source::Derived { value: **it, number: 0 })).count()
        }
    }
}

/// The label of the frame of a sweep, which may be planned more than once: `scaling: 12 points`.
fn label<'a>(task: &Task, planned: impl Iterator<Item = &'a PlannedSweep>) -> String {
    let (mut tables, mut points, mut unknown, mut label) = (0, 0, false, "");
    for sweep in planned {
        label = &task.sweeps[sweep.sweep.index()].label;
        tables += 1;
        match sweep.rows() {
            Some(rows) => points += rows.points.len(),
            None => unknown = true,
        }
    }
    let points = match (unknown, tables) {
        (true, _) | (_, 0) => "points not known".to_owned(),
        (_, 1) => counted(points, "point"),
        _ => format!("{} in {tables} tables", counted(points, "point")),
    };
    if label.is_empty() { points } else { format!("{label}: {points}") }
}
