//! The tree for humans, as far as the evaluation has come.
//!
//! The order is that of the tree, whatever the order of execution: the walk waits where an outcome
//! is unknown, and continues with its event. A call that occurs again shows its outputs but not its
//! inputs, so the text is linear in the calls. The walk keeps its own stack.
//!
//! The body of a sweep is shown once, with the number of calls that each of its nodes is, after the last of them has ended.

mod state;
mod sweep;

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{self, Write};

pub use self::state::TreeStyle;
use super::body::Body;
use super::{
    ROOT, Reporter, ShownOutput, derived_title, harmless, has_table, shown_outputs, sweep_title,
};
use ce_evaluate::{Absence, Evaluation, Event, How, Outcome};
use ce_model::exit::Exit;
use ce_model::expression::written_alone;
use ce_model::plan::{CallId, DerivedId, PlannedSweepId, Source, Step};
use ce_model::sweep::SWEEP_OUTPUTS;
use ce_model::task::{Node, NodeId};
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
    /// The outermost sweeps of which calls were started.
    started_sweeps: HashSet<PlannedSweepId>,
    /// The call at the top of the stack, or the body of the sweep there, is shown as being computed.
    computing: bool,
    /// The points of the sweep at the top of the stack are shown.
    pointed: bool,
    /// The bodies of the sweeps on the stack, and the nodes of each that were printed.
    bodies: Vec<(Body, HashSet<NodeId>)>,
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
            printed: HashSet::new(),
            ended: vec![false; evaluation.plan.calls().len()],
            started: HashMap::new(),
            started_sweeps: HashSet::new(),
            computing: false,
            pointed: false,
            bodies: Vec::new(),
        }
    }

    /// Prints the part that is known before any call has ended.
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be written.
    pub fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.go_on(out)
    }

    /// Prints a leaf, or begins the subtree of another node.
    fn open(&mut self, node: NodeId, label: &'a str, out: &mut dyn Write) -> io::Result<()> {
        match self.evaluation.plan.step(node) {
            Step::Leaf(source) => {
                let text = written_alone(&self.evaluation.task, node);
                self.leaf(self.stack.len(), (label, &text), source, out)
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
        (label, text): (&str, &str),
        source: Source,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let name = self.evaluation.name(source);
        let path = name.map_or_else(|| "???".to_owned(), |name| self.evaluation.shown(&name));
        let status = self.style.of_file(source, self.evaluation.is_kept(source));
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
            Step::PerPoint => {
                self.close_open(out)?;
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
        let awaited = plan.awaited(Source::Derived { value, number: 0 });
        let ended =
            |call: CallId| self.evaluation.outcome(call).filter(|_| self.ended[call.index()]);
        let lacks = |it: &Outcome| it.outputs().is_none() && it.how() != How::Archived;
        self.evaluation.is_derived(value)
            || awaited.is_none_or(|call| ended(call).is_some_and(lacks))
    }

    /// Prints the derived values at the top of the stack that are passed up.
    fn close_derived(&self, value: DerivedId, out: &mut dyn Write) -> io::Result<()> {
        let Some(OpenStep { node, label, .. }) = self.stack.last() else { return Ok(()) };
        for number in self.evaluation.task.workflow[*node].numbers() {
            let text = derived_title(self.evaluation, value, number);
            let source = Source::Derived { value, number };
            self.leaf(self.stack.len() - 1, (label, &text), source, out)?;
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
            let state = self.style.of_call(self.evaluation, call);
            self.call(outcome.name(), &state, "", out)?;
        } else if !self.computing {
            let (name, status, computing) = match (self.started.get(&call), outcome) {
                (Some(name), _) => (name, " MISSING", true),
                (_, Some(outcome)) => (outcome.name(), status(outcome), false),
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
        self.failure(depth, (call, outcome), out)?;
        if self.stack.last().is_some_and(|open| open.has_body) {
            self.bodies.pop();
        }
        self.started.remove(&call);
        self.computing = false;
        Ok(true)
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
        (call, outcome): (CallId, &Outcome),
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
        writeln!(out, "`* {}", self.style.of_trouble(outcome, &text))
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
            Step::Leaf(_) | Step::PerPoint => false,
        };
        if waits { self.go_on(out) } else { Ok(()) }
    }

    fn end(&mut self, _: &[Option<ResultName>], _: Exit, out: &mut dyn Write) -> io::Result<()> {
        self.go_on(out)?;
        let whose = if self.evaluation.plan.tops().is_empty() { "Task outputs" } else { "Outputs" };
        writeln!(out, "\n{whose} are:")?;
        for output in shown_outputs(self.evaluation) {
            let ShownOutput { point, path, is_there, is_archived, is_left_out } = output;
            let status = match () {
                () if is_there => String::new(),
                () if is_left_out => " not asked for".to_owned(),
                () => self.style.of_absent_output(is_archived),
            };
            let point = point.map(|point| format!("{point}: ")).unwrap_or_default();
            writeln!(out, "    {point}{path}{status}")?;
        }
        Ok(())
    }
}

/// The nodes that are printed with all below them: the root, or those that are asked for.
fn roots(evaluation: &Evaluation) -> VecDeque<(NodeId, &str)> {
    let workflow = &evaluation.task.workflow;
    let label = |node: &NodeId| {
        let argument = evaluation.labels().argument(workflow, *node);
        (*node, argument.map_or(ROOT, |argument| &argument.label))
    };
    match evaluation.plan.tops() {
        [] => [(workflow.root(), ROOT)].into(),
        tops => tops.iter().map(label).collect(),
    }
}

/// Whether the outputs of a call that is over are here, in a word.
const fn status(outcome: &Outcome) -> &'static str {
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
