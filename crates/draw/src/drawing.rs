//! The drawing of a task: a shape for everything that makes or holds files, an arrow for each use of them.
//!
//! A call is one shape, however many nodes of the workflow are that call. An arrow always leads
//! to a shape that stands after the one it comes from, and both are in the order of the workflow.
//! The body of a sweep is drawn once, in a frame, and each shape in it says how many calls it stands for.
//! Knows no format and no positions.

use std::collections::HashMap;
use std::path::Path;

use ce_evaluate::{Absence, Evaluation, Outcome};
use ce_model::expression::{NodeKind, kind_and_value, written_contents};
use ce_model::humanize::counted;
use ce_model::plan::{BodySteps, CallId, Plan, PlannedSweep, Source, Step};
use ce_model::task::{Node, NodeId, Task};
use ce_queries::page::{ResultArrow, ResultGraph, ResultShape, ResultShapeKind};
use ce_storage::Storage;

/// A workflow as shapes and arrows.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Drawing {
    pub(super) shapes: Vec<Shape>,
    pub(super) arrows: Vec<Arrow>,
    /// The bodies of sweeps, each after those within it.
    pub(super) frames: Vec<BodyFrame>,
}

/// Something that makes or holds files.
#[derive(Debug, PartialEq, Eq)]
pub struct Shape {
    pub kind: ShapeKind,
    /// Its name.
    pub label: String,
    /// Whether its files are there, if that was looked up.
    pub state: Option<ShapeState>,
    /// The names of its files as the user sees them; none unless they were looked up.
    pub files: Vec<String>,
    /// The number of calls that it stands for, if it is in the body of a sweep.
    pub many: Option<ShapeCount>,
    /// The calls that it stands for.
    pub calls: Vec<CallId>,
}

/// The kind of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeKind {
    /// An input of the task.
    Input,
    /// A file that is in the storage.
    Literal,
    /// A call of a computation.
    Computation,
    /// The outputs of the task.
    Output,
}

/// A use of a shape's files.
#[derive(Debug, PartialEq, Eq)]
pub struct Arrow {
    /// The place of the shape that has the files.
    pub from: usize,
    /// The place of the shape that reads them; it is greater than `from`.
    pub to: usize,
    /// The names of the inputs that are filled, the label by a human, and the names of the outputs that are carried.
    pub label: String,
}

impl Drawing {
    /// Draws a planned task, with what is known of its files if that was looked up.
    ///
    /// The time is linear in the nodes of the workflow and their inputs.
    pub fn new(task: &Task, plan: &Plan, evaluation: Option<&Evaluation>) -> Self {
        let bodies = Bodies::new(task, plan, evaluation);
        let mut drawing = Self::default();
        let artist = Artist { task, plan, evaluation, bodies: &bodies };
        let mut calls: Vec<Option<usize>> = vec![None; plan.calls().len()];
        let mut trees: Vec<Option<usize>> = vec![None; plan.derived().len()];
        // The place of each node's shape.
        let mut members = Vec::new();
        let mut places = Vec::with_capacity(task.workflow.nodes().len());
        for (id, _) in task.workflow.nodes() {
            let next = drawing.shapes.len();
            let place = match plan.step(id) {
                Step::Call(call) => *calls[call.index()].get_or_insert(next),
                Step::Derived(tree) => *trees[tree.index()].get_or_insert(next),
                Step::Leaf(_) | Step::All(_) | Step::PerPoint => next,
            };
            places.push(place);
            if place == next {
                drawing.shapes.push(artist.shape(id));
                members.extend(bodies.places.get(&id).map(|frame| (*frame, next)));
                artist.arrows(id, &places, &mut drawing.arrows);
            }
        }
        drawing.arrows.push(Arrow {
            from: places[task.workflow.root().index()],
            to: drawing.shapes.len(),
            label: String::new(),
        });
        drawing.shapes.push(artist.output());
        drawing.frames = bodies.frames;
        members.into_iter().for_each(|(frame, shape)| drawing.frames[frame].shapes.push(shape));
        drawing
    }

    /// The same with names of files as the storage has them: who gets a page does not have its place.
    #[must_use]
    pub fn without_place(mut self, storage: &Storage) -> Self {
        for file in self.shapes.iter_mut().flat_map(|shape| &mut shape.files) {
            if let Ok(name) = Path::new(file).strip_prefix(storage.shown_place()) {
                *file = name.display().to_string();
            }
        }
        self
    }

    /// The shapes, each after those that it reads; the last is the task's outputs.
    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// The arrows, in the order of the shapes that they lead to.
    pub fn arrows(&self) -> &[Arrow] {
        &self.arrows
    }

    /// Whether it shows which files are there.
    pub(super) fn has_states(&self) -> bool {
        self.shapes.iter().any(|shape| shape.state.is_some())
    }
}

/// The sources of a drawing.
struct Artist<'a> {
    task: &'a Task,
    plan: &'a Plan,
    evaluation: Option<&'a Evaluation>,
    /// The calls that nodes of bodies are.
    bodies: &'a Bodies,
}

impl<'a> Artist<'a> {
    /// The shape of a node that is not drawn yet.
    fn shape(&self, id: NodeId) -> Shape {
        let (written, value) = kind_and_value(self.task, id);
        let kind = if matches!(written, NodeKind::Computation | NodeKind::Sweep) {
            ShapeKind::Computation
        } else if written == NodeKind::Input {
            ShapeKind::Input
        } else {
            ShapeKind::Literal
        };
        let label = match written {
            NodeKind::Text => written_contents(value),
            _ if written.word().is_empty() || value.is_empty() => written.word().to_owned() + value,
            _ => format!("{} {value}", written.word()),
        };
        // A definition is named wherever a person reads.
        let defined = self.task.definitions.get(&id).and_then(|names| names.first());
        let label = match defined {
            Some(name) if **name != *label => format!("{name} = {label}"),
            _ => label,
        };
        let count = self.task.made(id).len() as u8;
        let mut calls = Vec::new();
        let mut state = None;
        let sources = match self.plan.step(id) {
            Step::Leaf(_) | Step::All(_) => self.plan.sources(self.task, id),
            Step::PerPoint => return self.many(id, kind, label),
            Step::Call(call) => {
                calls.push(call);
                state = self.evaluation.and_then(|evaluation| activity(evaluation, call));
                (0..count).map(|number| Source::Output { call, number }).collect()
            }
            Step::Derived(tree) => {
                (0..count.max(1)).map(|number| Source::Derived { value: tree, number }).collect()
            }
        };
        let label = match state.and_then(activity_word) {
            Some(word) => format!("{label}: {word}"),
            None => label,
        };
        let shape = self.with_files(kind, label, &sources);
        Shape { calls, state: state.or(shape.state), ..shape }
    }

    /// The shape of a node that depends on points.
    fn many(&self, id: NodeId, kind: ShapeKind, label: String) -> Shape {
        let many = self.bodies.counts.get(&id).copied().unwrap_or_default();
        let calls_of_node = self.bodies.calls.get(&id).cloned().unwrap_or_default();
        let ShapeCount { calls, there } = many;
        let state = self.evaluation.map(|_| match there {
            _ if calls > 0 && there == calls => ShapeState::There,
            0 => ShapeState::Missing,
            there => ShapeState::Partly((there * 1000 / calls) as u16),
        });
        let noun = match &self.task.workflow[id] {
            Node::Computation { .. } => "call",
            Node::Sweep { .. } => "table",
            // A text of a name is always there.
            Node::Bound(_) => {
                let state = state.map(|_| ShapeState::There);
                let (files, many, calls) = (Vec::new(), Some(many), Vec::new());
                return Shape { kind, label, state, files, many, calls };
            }
            _ => "value",
        };
        let active = match self.evaluation {
            Some(evaluation) => activities_in_words(evaluation, &calls_of_node),
            None => String::new(),
        };
        let label = match state {
            _ if calls == 0 => label,
            Some(ShapeState::Partly(_)) => {
                format!("{label}: {there} of {}{active}", counted(calls, noun))
            }
            _ => format!("{label}: {}{active}", counted(calls, noun)),
        };
        let (files, many) = (Vec::new(), Some(many));
        Shape { kind, label, state, files, many, calls: calls_of_node }
    }

    /// The shape of the task's outputs.
    fn output(&self) -> Shape {
        let mut label = "OUTPUT".to_owned();
        let root = self.task.workflow.root();
        if let Some(outputs) = self.task.workflow[root].slice() {
            label.push(' ');
            list(&mut label, &self.task.made(root), outputs.numbers());
        }
        self.with_files(ShapeKind::Output, label, self.plan.outputs())
    }

    fn with_files(&self, kind: ShapeKind, label: String, sources: &[Source]) -> Shape {
        let Some(evaluation) = self.evaluation else {
            let (files, calls) = (Vec::new(), Vec::new());
            return Shape { kind, label, state: None, files, many: None, calls };
        };
        let mut state = ShapeState::There;
        for source in sources.iter().filter(|source| !evaluation.is_kept(**source)) {
            if !evaluation.behind(&[*source]).lack_outputs() {
                state = ShapeState::Missing;
                break;
            }
            state = ShapeState::Away;
        }
        let names = sources.iter().filter_map(|source| evaluation.name(*source));
        Shape {
            kind,
            label,
            state: Some(state),
            files: names.map(|name| evaluation.shown(&name)).collect(),
            many: None,
            calls: Vec::new(),
        }
    }

    /// Whether the shape of a node has this name: an input of the task, or of a point.
    fn is_named(&self, id: NodeId, name: &str) -> bool {
        match &self.task.workflow[id] {
            Node::Input(input) => self.task.inputs[input.index()].as_str() == name,
            Node::Bound(bound) => self.task.bound[bound.index()].as_str() == name,
            _ => false,
        }
    }

    /// Adds the arrows to the shape of a node, the last of those that have a place.
    fn arrows(&self, id: NodeId, places: &[usize], arrows: &mut Vec<Arrow>) {
        let Some(&to) = places.last() else { return };
        let node = &self.task.workflow[id];
        let read = if let Node::Computation { computation, .. } = node {
            let reader = &self.task.computations[computation.first.index()];
            reader.inputs.iter().map(String::as_str).collect()
        } else {
            kind_and_value(self.task, id).0.inputs().to_vec()
        };
        for input in node.inputs() {
            let mut label = String::new();
            match node {
                Node::All { .. } => label.push_str(&input.label),
                _ => list(&mut label, &read, input.first..=input.last),
            }
            // A label that repeats the names is left out.
            let is_said = *input.label == *label || self.is_named(input.node, &input.label);
            if !input.label.is_empty() && !is_said {
                label.push_str(" : ");
                label.push_str(&input.label);
            }
            if self.is_named(input.node, &label) {
                label.clear();
            }
            if let Some(outputs) = self.task.workflow[input.node].slice() {
                let mut names = String::new();
                list(&mut names, &self.task.made(input.node), outputs.numbers());
                let name = names.trim_end_matches('/');
                if name != label && *name != *input.label {
                    label = format!("{label} [{names}]");
                }
            }
            let from = places[input.node.index()];
            arrows.push(Arrow { from, to, label });
        }
    }
}

/// Adds the names that have these numbers: `quotient, remainder`.
fn list(text: &mut String, names: &[&str], numbers: impl Iterator<Item = u8>) {
    for (at, number) in numbers.enumerate() {
        text.push_str(if at == 0 { "" } else { ", " });
        let name = names.get(usize::from(number)).map(|name| (*name).to_owned());
        text.push_str(&name.unwrap_or_else(|| format!("{number:02}")));
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use ce_evaluate::{Evaluator, Files};
    use ce_model::digest::Digest;
    use ce_model::name::StorageName;
    use ce_model::slice::WrittenSlice;
    use ce_model::task::{
        Argument, Builder, Computation, ComputationId, InputId, LoadedFrom, Workflow,
    };
    use ce_storage::records::Stamp;
    use ce_storage::{Input, Stored, Unrecorded};

    fn task(workflow: Workflow) -> Task {
        let id = "ab".repeat(20);
        let computation = |name: &str, inputs: &[&str], outputs: &[&str]| Computation {
            name: name.parse().unwrap(),
            commit: id.parse().unwrap(),
            tree: id.parse().unwrap(),
            inputs: inputs.iter().copied().map(str::to_owned).collect(),
            outputs: outputs.iter().copied().map(str::to_owned).collect(),
            dirty: false,
            access: Default::default(),
            checked_out: None,
            file: None,
        };
        Task {
            name: "t".parse().unwrap(),
            place: String::new(),
            commit: id.parse().unwrap(),
            loaded_from: LoadedFrom::Commit(None),
            changed: vec![],
            inputs: vec!["n".parse().unwrap(), "unused".parse().unwrap()],
            defaults: vec![None, None],
            choices: vec![None, None],
            files: vec![],
            trees: Vec::new(),
            bound: Vec::new(),
            sweeps: Vec::new(),
            text_computations: vec![],
            resources: Default::default(),
            computations: vec![
                computation("divmod", &["dividend", "divisor"], &["quotient", "remainder"]),
                computation("join", &["a", "b", "c", "d"], &["all", "log"]),
            ],
            workflow,
            definitions: Default::default(),
            parts: Default::default(),
        }
    }

    fn call(builder: &mut Builder, at: usize, inputs: &[(&str, NodeId)], slice: &[&str]) -> NodeId {
        let mut next = 0;
        let inputs = inputs.iter().map(|(label, node)| {
            let first = next;
            next += builder[*node].width() as u8;
            Argument { label: (*label).into(), first, last: next - 1, node: *node }
        });
        let inputs = inputs.collect();
        builder.intern(Node::Computation {
            computation: ComputationId::at(at).into(),
            inputs,
            outputs: WrittenSlice::parse(slice.iter().copied()).resolve(&[]).0,
        })
    }

    /// Three slices of one call, and a literal.
    fn shared() -> Task {
        let mut builder = Builder::default();
        let n = builder.intern(Node::Input(InputId::at(0)));
        let name: StorageName = "tinputs/ad/48103e4fc7".parse().unwrap();
        let d = builder.intern(Node::Literal(name.into()));
        let both = call(&mut builder, 0, &[("n", n), ("d", d)], &["01", "00"]);
        let one = call(&mut builder, 0, &[("x", n), ("y", d)], &["0"]);
        let inputs = [("both parts", both), ("", one), ("in", n)];
        let root = call(&mut builder, 1, &inputs, &["1", "0"]);
        task(builder.finish(root))
    }

    fn labels(drawing: &Drawing) -> Vec<&str> {
        drawing.shapes.iter().map(|shape| shape.label.as_str()).collect()
    }

    #[test]
    fn a_call_is_drawn_once_whatever_the_slices() {
        let task = shared();
        let drawing = Drawing::new(&task, &Plan::new(&task), None);
        let shapes = ["INPUT n", "FILE tinputs/ad/48103e4fc7", "divmod", "join", "OUTPUT log, all"];
        assert_eq!(labels(&drawing), shapes);
        let arrows =
            drawing.arrows.iter().map(|arrow| (arrow.from, arrow.to, arrow.label.as_str()));
        let expected = [
            (0, 2, "dividend"),
            (1, 2, "divisor : d"),
            (2, 3, "a, b : both parts [remainder, quotient]"),
            (2, 3, "c [quotient]"),
            (0, 3, "d : in"),
            (3, 4, ""),
        ];
        assert_eq!(arrows.collect::<Vec<_>>(), expected);
        assert!(!drawing.has_states());
        assert!(drawing.shapes.iter().all(|shape| shape.files.is_empty()));
    }

    #[test]
    fn the_root_may_be_an_input() {
        let mut builder = Builder::default();
        let root = builder.intern(Node::Input(InputId::at(0)));
        let task = task(builder.finish(root));
        let drawing = Drawing::new(&task, &Plan::new(&task), None);
        assert_eq!(labels(&drawing), ["INPUT n", "OUTPUT"]);
    }

    #[test]
    fn files_have_the_names_that_the_user_sees() {
        let task = shared();
        let plan = Plan::new(&task);
        let name: StorageName = "tinputs/00/0123456789".parse().unwrap();
        let (name, digest) = (name.to_string(), Digest::hash_bytes(b"17"));
        let file = Stored { name, digest, stamp: Stamp::Unknown };
        let files = Files {
            inputs: vec![Some(Input { file, there: true })],
            literals: vec![None],
            own: Vec::new(),
            own_sources: Vec::new(),
            given: vec![None],
            as_given: vec![None],
        };
        let storage = Storage::inspect(Path::new("no/such/storage"), Unrecorded::Adopt).unwrap();
        let evaluation = Evaluation::new(task, plan, files, storage);
        Evaluator { evaluation: &evaluation, execution: None, observe: &|_| {} }
            .evaluate(NonZeroUsize::MIN)
            .unwrap();
        let drawing = Drawing::new(&evaluation.task, &evaluation.plan, Some(&evaluation));
        let there = drawing.shapes.iter().map(|shape| shape.state == Some(ShapeState::There));
        assert_eq!(there.collect::<Vec<_>>(), [true, false, false, false, false]);
        assert_eq!(drawing.shapes[0].files, ["no/such/storage/tinputs/00/0123456789"]);
        let [quotient, remainder] = &drawing.shapes[2].files[..] else {
            panic!("all outputs of a call are named");
        };
        assert!(quotient.starts_with("no/such/storage/c_divmod/abababababab/00/"), "{quotient}");
        assert!(remainder.starts_with("no/such/storage/c_divmod/abababababab/01/"), "{remainder}");
        let outputs = [&drawing.shapes[3].files[1], &drawing.shapes[3].files[0]];
        assert_eq!(drawing.shapes[4].files.iter().collect::<Vec<_>>(), outputs);
    }
}

/// The body of a sweep: shapes that stand for calls at many points.
#[derive(Debug, PartialEq, Eq)]
pub struct BodyFrame {
    /// The label of the sweep, and the number of its points.
    pub label: String,
    /// The places of its shapes, in order, without the shapes of frames within it.
    pub shapes: Vec<usize>,
    /// The place of the frame around it.
    pub parent: Option<usize>,
}

/// The number of calls that a shape stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShapeCount {
    pub calls: usize,
    /// Calls whose outputs are there, if that was looked up.
    pub there: usize,
}

/// The frames of a workflow, and what its nodes in them stand for.
#[derive(Debug, Default)]
pub(super) struct Bodies {
    /// The frames, each after the frames in it. The shapes in them are not known yet.
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
                let planned =
                    plan.sweeps().filter(|it| it.sweep == *sweep && it.body == inputs[0].node);
                let label = label(task, planned);
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

/// Returns the number of these that are in the storage.
fn there(evaluation: Option<&Evaluation>, steps: BodySteps<'_>) -> usize {
    let Some(evaluation) = evaluation else { return 0 };
    match steps {
        BodySteps::Calls(calls) => {
            let sources = calls.iter().map(|call| Source::Output { call: *call, number: 0 });
            sources.filter(|source| evaluation.is_kept(*source)).count()
        }
        BodySteps::Derived(values) => {
            let sources = values.iter().map(|value| Source::Derived { value: *value, number: 0 });
            sources.filter(|source| evaluation.is_kept(*source)).count()
        }
    }
}

/// The label of the frame of a sweep, which may be planned more than once: `scaling: 12 points`.
fn label<'a>(task: &Task, planned: impl Iterator<Item = &'a PlannedSweep>) -> String {
    let (mut tables, mut points, mut unknown, mut label, mut at_least) = (0, 0, false, "", "");
    for sweep in planned {
        label = &task.sweeps[sweep.sweep.index()].label;
        tables += 1;
        match sweep.rows() {
            Some(rows) => {
                points += rows.points.len();
                at_least = if sweep.grows() { "at least " } else { at_least };
            }
            None => unknown = true,
        }
    }
    let points = match (unknown, tables) {
        (true, _) | (_, 0) => "points not known".to_owned(),
        (_, 1) => format!("{at_least}{}", counted(points, "point")),
        _ => format!("{at_least}{} in {tables} tables", counted(points, "point")),
    };
    if label.is_empty() { points } else { format!("{label}: {points}") }
}

/// Whether files are in the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeState {
    /// All of them are.
    There,
    /// The outputs are known, and some of them are deliberately not here.
    Away,
    /// No output is there, or some outputs of the single call are missing.
    Missing,
    /// They are not, and the last execution of the call failed.
    Failed,
    /// They are not, and a run executes the call.
    Running,
    /// They are not, and the call is suspended.
    Suspended,
    /// This many thousandths of several calls are present.
    Partly(u16),
}

/// The states of activity of a call, and their words.
const ACTIVITIES: [(ShapeState, &str); 3] = [
    (ShapeState::Failed, "failed"),
    (ShapeState::Running, "running"),
    (ShapeState::Suspended, "suspended"),
];

/// Returns the activity of a call: a run executes it now, it is suspended, or its last execution failed. `None` if there is none.
pub(super) fn activity(evaluation: &Evaluation, call: CallId) -> Option<ShapeState> {
    let outcome = evaluation.outcome(call)?;
    let prior = match outcome {
        Outcome::Absent(_, Absence::Missing(prior)) => prior.as_deref(),
        _ if outcome.suspended().is_some() => None,
        _ => return None,
    };
    if evaluation.storage.leases().holder(outcome.name()).is_some() {
        return Some(ShapeState::Running);
    }
    if outcome.suspended().is_some() || prior.is_some_and(|it| it.suspended.is_some()) {
        return Some(ShapeState::Suspended);
    }
    prior?.failure.as_ref().map(|_| ShapeState::Failed)
}

/// Returns the activities of some calls, in words after a comma each: `, 2 failed, 1 running`.
pub(super) fn activities_in_words(evaluation: &Evaluation, calls: &[CallId]) -> String {
    let found: Vec<ShapeState> =
        calls.iter().filter_map(|call| activity(evaluation, *call)).collect();
    let mut words = Vec::new();
    for (state, word) in ACTIVITIES {
        let number = found.iter().filter(|it| **it == state).count();
        if number > 0 {
            words.push(format!(", {number} {word}"));
        }
    }
    words.concat()
}

/// The word for a state of activity of a call.
pub(super) fn activity_word(state: ShapeState) -> Option<&'static str> {
    ACTIVITIES.iter().find(|(it, _)| *it == state).map(|(_, word)| *word)
}

impl Drawing {
    /// Draws how results were made from each other, as their records have it.
    pub fn of_results(graph: &ResultGraph) -> Self {
        let mut drawing =
            Self { shapes: graph.shapes.iter().map(shape).collect(), ..Self::default() };
        for ResultArrow { from, to, label } in &graph.arrows {
            drawing.arrows.push(Arrow { from: *from, to: *to, label: label.clone() });
        }
        drawing
    }
}

fn shape(it: &ResultShape) -> Shape {
    let kind = match it.kind {
        ResultShapeKind::Input => ShapeKind::Input,
        ResultShapeKind::File => ShapeKind::Literal,
        ResultShapeKind::Made => ShapeKind::Computation,
        ResultShapeKind::Output => ShapeKind::Output,
    };
    let (calls, there) = (it.all, it.there);
    let state = match there {
        _ if there == calls => ShapeState::There,
        0 => ShapeState::Missing,
        _ => ShapeState::Partly((there * 1000 / calls) as u16),
    };
    Shape {
        kind,
        label: it.label.clone(),
        state: Some(state),
        files: Vec::new(),
        many: (calls > 1).then_some(ShapeCount { calls, there }),
        calls: Vec::new(),
    }
}
