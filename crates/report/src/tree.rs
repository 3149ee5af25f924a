//! The tree for humans, as far as the evaluation has come.
//!
//! The lines are in the order of the tree, regardless of the order of execution: the walk waits where an outcome
//! is unknown, and continues with its event. A call that occurs again shows its outputs but not its
//! inputs, so the text is linear in the calls. The walk keeps its own stack.
//!
//! The body of a sweep is shown once, with the number of calls that each of its nodes is, after the last of them has ended.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{self, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};

use super::calls::{
    PointCounts, ShownOutput, count_points, derived_title, has_table, points_of_sweeps,
    shown_outputs, sweep_title,
};
use super::printer::CallCounter;
use super::{Reporter, Tally, harmless};
use ce_evaluate::{Absence, Evaluation, Event, How, Outcome, StopReason};
use ce_model::exit::Exit;
use ce_model::expression::written_alone;
use ce_model::humanize::{counted, duration, short_duration};
use ce_model::plan::{
    BodySteps, CallId, DerivedId, Operation, PlannedSweep, PlannedSweepId, Source, Step,
};
use ce_model::sweep::SWEEP_OUTPUTS;
use ce_model::task::{Node, NodeId, ROOT_LABEL};
use ce_storage::ResultName;

/// Up to this depth a level is shown by four spaces, deeper ones by a number.
const DEEPEST: usize = 25;

/// Prints the tree.
pub struct TreePrinter<'a> {
    evaluation: &'a Evaluation,
    style: TreeStyle,
    /// The nodes that are still to be printed with all below them, and their labels.
    roots: VecDeque<(NodeId, &'a str)>,
    stack: Vec<OpenStep<'a>>,
    printed: HashSet<Step>,
    /// The calls whose end was reported: the evaluation may be ahead of its events.
    ended: Vec<bool>,
    started: HashMap<CallId, ResultName>,
    /// The outermost sweeps with started calls.
    started_sweeps: HashSet<PlannedSweepId>,
    /// The call at the top of the stack, or the body of the sweep there, is shown as being computed.
    computing: bool,
    /// The points of the sweep at the top of the stack are shown.
    pointed: bool,
    /// The bodies of the sweeps on the stack, and the nodes of each that were printed.
    bodies: Vec<(SweepBody, HashSet<NodeId>)>,
    /// A call was interrupted, where people read the tree: it goes on no further.
    is_interrupted: bool,
}

/// A call or Git tree whose subtree is being printed.
struct OpenStep<'a> {
    node: NodeId,
    step: Step,
    label: &'a str,
    next: usize,
    /// It is a sweep, and its body is the last one of all bodies.
    has_body: bool,
}

impl<'a> TreePrinter<'a> {
    /// Begins at the root.
    pub fn new(evaluation: &'a Evaluation, style: TreeStyle) -> Self {
        Self {
            evaluation,
            style,
            roots: roots(evaluation),
            stack: Vec::new(),
            printed: HashSet::with_capacity(evaluation.plan.calls().len()),
            ended: vec![false; evaluation.plan.calls().len()],
            started: HashMap::new(),
            started_sweeps: HashSet::new(),
            computing: false,
            pointed: false,
            bodies: Vec::new(),
            is_interrupted: false,
        }
    }

    /// Prints the part that is known before any call has ended.
    pub fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.go_on(out)
    }

    /// Prints a leaf, or begins the subtree of another node.
    fn open(&mut self, node: NodeId, label: &'a str, out: &mut dyn Write) -> io::Result<()> {
        let defined = self.evaluation.task.definitions.get(&node).and_then(|names| names.first());
        let label = defined.map_or(label, |name| name);
        match self.evaluation.plan.step(node) {
            Step::Leaf(source) => {
                let text = written_alone(&self.evaluation.task, node);
                self.leaf(self.stack.len(), label, &text, source, out)
            }
            Step::PerPoint if self.evaluation.task.workflow[node].inputs().is_empty() => {
                let text = written_alone(&self.evaluation.task, node);
                indent(self.stack.len(), out)?;
                writeln!(out, "{}: {text}", harmless(label))
            }
            step => {
                let inputs = self.evaluation.task.workflow[node].inputs().len();
                let is_printed = match step {
                    Step::PerPoint => self.bodies.last().is_some_and(|it| it.1.contains(&node)),
                    _ => self.printed.contains(&step),
                };
                let next = if is_printed { inputs } else { 0 };
                self.stack.push(OpenStep { node, step, label, next, has_body: false });
                Ok(())
            }
        }
    }

    /// Prints a file or directory that no call made.
    fn leaf(
        &self,
        depth: usize,
        label: &str,
        text: &str,
        source: Source,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let name = self.evaluation.name(source);
        let path = name.map_or_else(|| "???".to_owned(), |name| self.evaluation.shown(&name));
        let status = self.style.file_state(source, self.evaluation.is_kept(source));
        indent(depth, out)?;
        writeln!(out, "{}: {text} {path}{status}", harmless(label))
    }

    /// Prints as far as outcomes are known.
    fn go_on(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let evaluation = self.evaluation;
        loop {
            let Some(&OpenStep { node, step, next, .. }) = self.stack.last() else {
                let Some((root, label)) = self.roots.pop_front() else { break };
                self.open(root, label, out)?;
                continue;
            };
            let node = &evaluation.task.workflow[node];
            let is_sweep = matches!(node, Node::Sweep { .. });
            // The points of a sweep come before its body.
            let at = if is_sweep { node.inputs().len().checked_sub(next + 1) } else { Some(next) };
            let Some(input) = at.and_then(|at| node.inputs().get(at)) else {
                if self.close(step, out)? {
                    continue;
                }
                break;
            };
            if is_sweep && at == Some(0) && !self.begin_body(step, out)? {
                break;
            }
            self.stack.last_mut().into_iter().for_each(|open| open.next += 1);
            self.open(input.node, &input.label, out)?;
        }
        Ok(())
    }

    /// Prints the known part of the node at the top of the stack. Returns whether that is all of
    /// it.
    fn close(&mut self, step: Step, out: &mut dyn Write) -> io::Result<bool> {
        let is_all = match step {
            Step::Call(call) => self.close_call(call, out)?,
            Step::Derived(value) => self.is_known(value),
            Step::Leaf(_) => true,
            Step::All(_) => self.close_all(out)?,
            Step::PerPoint => {
                self.print_body_node(out)?;
                self.stack.pop();
                return Ok(true);
            }
        };
        if let Step::Derived(value) = step
            && is_all
        {
            self.close_derived(value, out)?;
        }
        if is_all {
            self.printed.insert(step);
            self.stack.pop();
        }
        Ok(is_all)
    }

    /// Whether a derived value is known, or will never be.
    fn is_known(&self, value: DerivedId) -> bool {
        let Evaluation { plan, .. } = self.evaluation;
        if self.evaluation.is_derived(value) {
            return true;
        }
        let Some(call) = plan.awaited(Source::Derived { value, number: 0 }) else { return true };
        let ended = self.evaluation.outcome(call).filter(|_| self.ended[call.index()]);
        ended.is_some_and(|it| it.outputs().is_none() && it.how() != How::Archived)
    }

    /// Prints the node `ALL` at the top of the stack, which passes up the nodes above it.
    fn close_all(&self, out: &mut dyn Write) -> io::Result<bool> {
        let Some(OpenStep { label, .. }) = self.stack.last() else { return Ok(true) };
        indent(self.stack.len() - 1, out)?;
        writeln!(out, "ALL ({})", harmless(label))?;
        Ok(true)
    }

    /// Prints the derived values at the top of the stack that are passed up.
    fn close_derived(&self, value: DerivedId, out: &mut dyn Write) -> io::Result<()> {
        let Some(OpenStep { node, label, .. }) = self.stack.last() else { return Ok(()) };
        for number in self.evaluation.task.workflow[*node].numbers() {
            let text = derived_title(self.evaluation, value, number);
            let source = Source::Derived { value, number };
            self.leaf(self.stack.len() - 1, label, &text, source, out)?;
        }
        Ok(())
    }

    /// Prints the known part of the call at the top of the stack. Returns whether that is all of
    /// it.
    fn close_call(&mut self, call: CallId, out: &mut dyn Write) -> io::Result<bool> {
        let depth = self.stack.len() - 1;
        let ended = self.ended[call.index()];
        let outcome = self.evaluation.outcome(call).filter(|_| ended);
        if self.style != TreeStyle::Original {
            let Some(outcome) = outcome else { return Ok(false) };
            if self.stops_at(outcome) {
                return Ok(false);
            }
            let state = self.style.call_state(self.evaluation, call);
            self.call(outcome.name(), &state, "", out)?;
        } else if !self.computing {
            let (name, status, computing) = match (self.started.get(&call), outcome) {
                (Some(name), _) => (name, " MISSING", true),
                (_, Some(outcome)) => (outcome.name(), outputs_mark(outcome), false),
                _ => return Ok(false),
            };
            self.call(name, "", status, out)?;
            if computing {
                self.computing = true;
                indent(depth, out)?;
                writeln!(out, "`* computing...")?;
            }
        }
        let Some(outcome) = outcome else {
            return Ok(false);
        };
        self.failure(depth, call, outcome, out)?;
        if self.stack.last().is_some_and(|open| open.has_body) {
            self.bodies.pop();
        }
        self.started.remove(&call);
        self.computing = false;
        Ok(true)
    }

    /// Whether the tree ends before a call that was interrupted: the user has asked for an end, not for a list of missing
    /// calls.
    fn stops_at(&mut self, outcome: &Outcome) -> bool {
        let is_interrupted = matches!(
            outcome,
            Outcome::Absent(
                _,
                Absence::Interrupted | Absence::NotStarted(StopReason::Interruption)
            )
        );
        self.is_interrupted |= is_interrupted && self.style != TreeStyle::Original;
        self.is_interrupted
    }

    /// Prints the call at the top of the stack: its name and state, and the outputs that are passed up, each with the same
    /// status.
    fn call(
        &self,
        name: &ResultName,
        state: &str,
        status: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Some(OpenStep { node, label, .. }) = self.stack.last() else {
            return Ok(());
        };
        let Evaluation { task, .. } = self.evaluation;
        let (title, outputs): (String, &[String]) = match &task.workflow[*node] {
            Node::Computation { computation, .. } => {
                let outputs = &task.computations[computation.first.index()].outputs;
                (computation.written(task).to_owned(), outputs)
            }
            Node::Sweep { sweep, .. } if task.sweeps[sweep.index()].has_table => {
                (sweep_title(self.evaluation, *sweep), &[])
            }
            _ => return Ok(()),
        };
        let depth = self.stack.len() - 1;
        indent(depth, out)?;
        writeln!(out, "{title} ({}){state}", harmless(label))?;
        for number in task.workflow[*node].numbers().map(usize::from) {
            let path = self.evaluation.shown(&name.output(number));
            let output = outputs.get(number).map_or_else(|| SWEEP_OUTPUTS[number], String::as_str);
            indent(depth, out)?;
            writeln!(out, "`> {}: {path}{status}", harmless(output))?;
        }
        Ok(())
    }

    fn failure(
        &self,
        depth: usize,
        call: CallId,
        outcome: &Outcome,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if self.evaluation.plan.gathered(call).is_some() && !has_table(self.evaluation, call) {
            return Ok(());
        }
        let text = match outcome {
            Outcome::Absent(_, Absence::Failed(failure)) => format!("FAILED: {}", failure.error),
            _ if let Some(text) = self.points_without_result(call, outcome) => text,
            Outcome::Present(..) | Outcome::Known(..) => return Ok(()),
            Outcome::Absent(_, absence) => match absence {
                Absence::Missing(_) | Absence::Failed(_) => return Ok(()),
                Absence::Blocked => "not computed: an input is missing".to_owned(),
                Absence::Waiting => "not computed yet: an input is suspended".to_owned(),
                Absence::NotStarted(why) => format!("not started: {}", why.words()),
                Absence::Suspended(call) => format!("suspended: {}", harmless(&call.to_string())),
                Absence::Unfinished(why) => format!("not finished: {why}"),
                Absence::LeftOut | Absence::Interrupted => outcome.how().word().to_owned(),
            },
        };
        indent(depth, out)?;
        writeln!(out, "`* {}", self.style.trouble(outcome, &text))
    }
}

impl Reporter for TreePrinter<'_> {
    fn event(&mut self, event: &Event, out: &mut dyn Write) -> io::Result<()> {
        let call = match event {
            Event::Started(call, name, _) => {
                self.started.insert(*call, name.clone());
                self.started_sweeps.extend(self.evaluation.plan.outermost_sweep(*call));
                call
            }
            Event::Ended(call) => {
                self.ended[call.index()] = true;
                call
            }
            Event::Expanded(call, ..) => {
                self.ended.resize(self.evaluation.plan.calls().len(), false);
                call
            }
            Event::Queued(..)
            | Event::Demanded(_)
            | Event::Hashing(..)
            | Event::Sealed(_)
            | Event::Retried(..)
            | Event::Held(..)
            | Event::Suspended(..)
            | Event::Unsettled(..) => {
                return Ok(());
            }
        };
        // Only the call at the top of the stack lets the walk continue. A tree there may be known by now.
        let Some(open) = self.stack.last() else { return Ok(()) };
        let waits = match open.step {
            Step::Call(waiting) => {
                let is_started = !self.computing && matches!(event, Event::Started(..));
                waiting == *call || is_started && self.evaluation.plan.gathered(waiting).is_some()
            }
            Step::Derived(_) => true,
            Step::Leaf(_) | Step::All(_) | Step::PerPoint => false,
        };
        if waits { self.go_on(out) } else { Ok(()) }
    }

    fn end(&mut self, _: &[Option<ResultName>], _: Exit, out: &mut dyn Write) -> io::Result<()> {
        self.go_on(out)?;
        if self.is_interrupted {
            return Ok(());
        }
        let whose = if self.evaluation.plan.tops().is_empty() { "Task outputs" } else { "Outputs" };
        writeln!(out, "\n{whose} are:")?;
        for output in shown_outputs(self.evaluation) {
            let ShownOutput { point, path, is_there, is_archived, is_left_out } = output;
            let status = match () {
                () if is_there => String::new(),
                () if is_left_out => " not asked for".to_owned(),
                () => self.style.absent_output_state(is_archived),
            };
            let point = point.map(|point| format!("{point}: ")).unwrap_or_default();
            writeln!(out, "    {point}{path}{status}")?;
        }
        Ok(())
    }
}

/// The nodes that are printed with all nodes below them: the root, or the requested nodes.
fn roots(evaluation: &Evaluation) -> VecDeque<(NodeId, &str)> {
    let workflow = &evaluation.task.workflow;
    if evaluation.plan.tops().is_empty() {
        return [(workflow.root(), ROOT_LABEL)].into();
    }
    let mut roots = VecDeque::new();
    for node in evaluation.plan.tops() {
        let argument = evaluation.labels().argument(workflow, *node);
        roots.push_back((*node, argument.map_or(ROOT_LABEL, |argument| &argument.label)));
    }
    roots
}

/// Whether the outputs of a call that is over are here, in a word.
const fn outputs_mark(outcome: &Outcome) -> &'static str {
    match outcome.how() {
        How::Away => " AWAY",
        How::Archived => " ARCHIVED",
        How::Reused | How::TakenOver | How::Executed => " ok",
        _ => " MISSING",
    }
}

pub(super) fn indent(depth: usize, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&[b' '; 4 * DEEPEST][..4 * depth.min(DEEPEST)])?;
    if depth > DEEPEST { write!(out, "(+{}) ", depth - DEEPEST) } else { Ok(()) }
}

/// The style in which the tree shows the state of a call or file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeStyle {
    /// By the marks of the specification: `ok`, `MISSING` and `computing...`, which tell the state before the run.
    Original,
    /// In words that say what came of a call: `computed 1.3 s`, `reused`; with colours or without.
    Words {
        /// Whether the terminal shows colours.
        colours: bool,
    },
}

const GOOD: Style = AnsiColor::Green.on_default();
const NEW: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const OLD: Style = Style::new().dimmed();

/// The style of words about calls that ended like this.
const fn colour(how: How) -> Style {
    match how {
        How::Executed => GOOD,
        How::Missing | How::Suspended => NEW,
        How::Failed => BAD,
        How::Reused | How::TakenOver | How::Away | How::Archived => OLD,
        How::Blocked
        | How::Waiting
        | How::Unfinished
        | How::NotStarted
        | How::Interrupted
        | How::LeftOut => Style::new(),
    }
}

impl TreeStyle {
    /// Returns the remark after a file or directory that no call made.
    pub(super) fn file_state(self, source: Source, is_there: bool) -> String {
        match (self, is_there) {
            (Self::Original, true) => " ok".to_owned(),
            (Self::Original, false) => " MISSING!!!".to_owned(),
            (Self::Words { .. }, true) => String::new(),
            (Self::Words { .. }, false) if matches!(source, Source::Input(_) | Source::File(_)) => {
                self.painted(NEW, "  to be stored")
            }
            (Self::Words { .. }, false) => self.painted(BAD, "  missing"),
        }
    }

    /// Returns the remark after a call that is over, in words.
    pub(super) fn call_state(self, evaluation: &Evaluation, call: CallId) -> String {
        let Some(outcome) = evaluation.outcome(call) else { return String::new() };
        let [made, to_make] = match evaluation.computation(call) {
            Some(_) => ["computed", "to be computed"],
            None => ["made", "to be made"],
        };
        let text = match outcome.how() {
            How::TakenOver => "reused from another commit".to_owned(),
            How::Executed => format!("{made}{}", time_of(evaluation, outcome)),
            How::Missing => to_make.to_owned(),
            how @ (How::Reused | How::Away | How::Archived) => how.word().to_owned(),
            _ => return String::new(),
        };
        self.painted(colour(outcome.how()), &format!("  {text}"))
    }

    /// The line of a call that has no outputs, or of a table with failed points.
    pub(super) fn trouble(self, outcome: &Outcome, text: &str) -> String {
        let style = match outcome {
            Outcome::Absent(..) => colour(outcome.how()),
            _ => Style::new(),
        };
        self.painted(style, text)
    }

    /// Returns the remark after an output of the task that is not in its place.
    pub(super) fn absent_output_state(self, is_archived: bool) -> String {
        match (self, is_archived) {
            (Self::Original, true) => " ARCHIVED".to_owned(),
            (Self::Original, false) => " MISSING".to_owned(),
            (Self::Words { .. }, true) => self.painted(OLD, "  archived"),
            (Self::Words { .. }, false) => self.painted(BAD, "  missing"),
        }
    }

    fn painted(self, style: Style, text: &str) -> String {
        match self {
            Self::Words { colours: true } => format!("{style}{text}{style:#}"),
            _ => text.to_owned(),
        }
    }
}

/// Returns the duration of an execution, by its record.
fn time_of(evaluation: &Evaluation, outcome: &Outcome) -> String {
    let seconds = evaluation.executed_record(outcome).and_then(|call| call.seconds());
    let text = seconds.map(|seconds| match Duration::try_from_secs_f64(seconds) {
        Ok(time) if seconds < 1.0 => short_duration(time),
        _ => duration(seconds),
    });
    text.map(|text| format!(" {text}")).unwrap_or_default()
}

impl TreePrinter<'_> {
    /// Prints the points of the sweep at the top of the stack. Returns whether all calls of its body have ended.
    pub(super) fn begin_body(&mut self, step: Step, out: &mut dyn Write) -> io::Result<bool> {
        let Evaluation { plan, .. } = self.evaluation;
        let Some(OpenStep { node, .. }) = self.stack.last() else { return Ok(true) };
        let is_computed = self.evaluation.task.workflow[*node].inputs().len() > 1;
        let Step::Call(call) = step else {
            let counted = self.bodies.last().map(|(body, _)| body.node(*node)).unwrap_or_default();
            let Some((first, counts)) = counted.sweep else { return Ok(true) };
            return self.points(first, &counts, is_computed, out).map(|()| true);
        };
        let Operation::Sweep(id) = plan.call(call).operation else { return Ok(true) };
        let sweep = plan.sweep(id);
        let ended = self.ended[call.index()];
        let outcome = self.evaluation.outcome(call).filter(|_| ended);
        if outcome.is_some_and(|outcome| self.stops_at(outcome)) {
            return Ok(false);
        }
        // They are counted when there are no more.
        if !self.pointed && (ended || !sweep.grows()) {
            self.pointed = true;
            let mut counts = PointCounts {
                steps: plan.body_steps(&self.evaluation.task, sweep),
                ..PointCounts::default()
            };
            count_points(self.evaluation, sweep, &mut counts);
            self.points(call, &counts, is_computed, out)?;
        }
        if self.pointed && !self.computing && self.started_sweeps.contains(&id) {
            self.computing = true;
            if self.style == TreeStyle::Original {
                indent(self.stack.len(), out)?;
                writeln!(out, "`* computing...")?;
            }
        }
        if ended {
            (self.pointed, self.computing) = (false, false);
            self.bodies.push((SweepBody::new(self.evaluation, sweep), HashSet::new()));
            self.stack.last_mut().into_iter().for_each(|open| open.has_body = true);
        }
        Ok(ended)
    }

    /// Prints the points of the sweep that a call gathers, or of several with the same rules.
    fn points(
        &self,
        call: CallId,
        counts: &PointCounts,
        is_computed: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Some(sweep) = self.evaluation.plan.gathered(call) else { return Ok(()) };
        indent(self.stack.len(), out)?;
        writeln!(out, "points: {}", points_of_sweeps(self.evaluation, sweep, counts, is_computed))
    }

    /// Prints the node at the top of the stack, which depends on the points of a sweep.
    pub(super) fn print_body_node(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let Evaluation { task, .. } = self.evaluation;
        let Some(&OpenStep { node, label, .. }) = self.stack.last() else { return Ok(()) };
        let Some((body, printed)) = self.bodies.last_mut() else { return Ok(()) };
        printed.insert(node);
        let tally = body.node(node).tally;
        // Points that are not known have no calls yet.
        let counts = |counts: String| match tally.calls == 0 && !body.is_complete() {
            true => "not known".to_owned(),
            false => counts,
        };
        indent(self.stack.len() - 1, out)?;
        match &task.workflow[node] {
            Node::Computation { computation, .. } => {
                let name = computation.written(task);
                writeln!(out, "{name} ({}): {}", harmless(label), counts(tally.to_string()))
            }
            Node::Sweep { sweep, .. } => {
                let title = sweep_title(self.evaluation, *sweep);
                writeln!(out, "{title} ({}): {}", harmless(label), counts(tally.of_tables()))
            }
            Node::All { .. } => writeln!(out, "ALL ({})", harmless(label)),
            _ => writeln!(out, "{}: {}", harmless(label), written_alone(task, node)),
        }
    }

    /// Describes in words the number of points of a sweep that have no result.
    pub(super) fn points_without_result(&self, call: CallId, outcome: &Outcome) -> Option<String> {
        let sweep = self.evaluation.plan.gathered(call)?;
        let mut counts = PointCounts::default();
        count_points(self.evaluation, sweep, &mut counts);
        let PointCounts { points, without_result, .. } = counts;
        match outcome.how() {
            _ if without_result == 0 => None,
            How::Waiting => Some(format!(
                "not made yet: {without_result} of {} have no result",
                counted(points, "point")
            )),
            How::Blocked | How::NotStarted => {
                let points = counted(points, "point");
                Some(format!("not computed: {without_result} of {points} have no result"))
            }
            _ if outcome.known().is_some() => {
                Some(format!("{without_result} of {} failed", counted(points, "point")))
            }
            _ => None,
        }
    }
}

/// The nodes of a body that depend on points.
#[derive(Debug, Default)]
pub(super) struct SweepBody {
    nodes: HashMap<NodeId, SweepBodyNode>,
    /// The points of the sweep, or of one within it, are not known.
    has_unknown: bool,
}

/// A node of a body, at all points.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SweepBodyNode {
    /// Its calls by outcome; or its tables, if it is a sweep.
    pub(super) tally: Tally,
    /// The points of its sweeps, and the first of these.
    pub(super) sweep: Option<(CallId, PointCounts)>,
}

impl SweepBody {
    /// Counts the calls of the body of a sweep.
    pub(super) fn new(evaluation: &Evaluation, sweep: &PlannedSweep) -> Self {
        let mut body = Self { has_unknown: sweep.rows().is_none(), ..Self::default() };
        evaluation.plan.visit_body(&evaluation.task, sweep, &mut |node, steps| {
            let counted = counted_node(evaluation, steps);
            body.has_unknown |= counted.sweep.is_some_and(|(_, counts)| counts.unknown > 0);
            body.add_steps(evaluation, node, steps.len());
            body.nodes.insert(node, counted);
        });
        body
    }

    /// Whether the points of all sweeps are known.
    pub(super) const fn is_complete(&self) -> bool {
        !self.has_unknown
    }

    /// The node, if it depends on points and there are any.
    pub(super) fn node(&self, node: NodeId) -> SweepBodyNode {
        self.nodes.get(&node).copied().unwrap_or_default()
    }

    /// Notes the number of different steps of a node, if it is the body of a sweep within this one.
    fn add_steps(&mut self, evaluation: &Evaluation, node: NodeId, steps: usize) {
        for counted in self.nodes.values_mut() {
            if let Some((call, counts)) = &mut counted.sweep
                && evaluation.plan.gathered(*call).is_some_and(|it| it.body == node)
            {
                counts.steps = steps;
            }
        }
    }
}

/// Counts the states of a node at all points.
fn counted_node(evaluation: &Evaluation, steps: BodySteps<'_>) -> SweepBodyNode {
    let mut counted = SweepBodyNode::default();
    let BodySteps::Calls(calls) = steps else { return counted };
    let mut counter = CallCounter::default();
    for call in calls {
        counter.add(evaluation, *call);
        if let Some(sweep) = evaluation.plan.gathered(*call) {
            let (_, counts) = counted.sweep.get_or_insert((*call, PointCounts::default()));
            count_points(evaluation, sweep, counts);
        }
    }
    counted.tally = counter.tally;
    counted
}
