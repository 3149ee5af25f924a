//! The workflow as LISP: `(add (mul INPUT('x') INPUT('y'))[0] FILE('tinputs/ad/48103e4fc7'))[0]`.
//!
//! The walk keeps its own stack, and the text is written as the walk goes.

use std::io::{self, Write};

use crate::task::workflow::{Node, NodeId, Task, Workflow};

/// Beyond this column the text is not indented any further: a chain of ten thousand calls would
/// else be mostly spaces.
const WIDEST: usize = 1000;

/// Whether an expression that occurs more than once is written more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Each time in full.
    Repeat,
    /// In full as `#1=(...)` the first time, as `#1#` after.
    Label,
}

/// Writes a task's inputs and its workflow.
///
/// # Errors
///
/// Fails if `out` cannot be written.
pub fn write(task: &Task, shared: Sharing, out: &mut dyn Write) -> io::Result<()> {
    let names: Vec<String> = task.inputs.iter().map(|name| format!("'{name}'")).collect();
    writeln!(out, "Inputs: {}", names.join(", "))?;
    let labels = match shared {
        Sharing::Repeat => vec![Label::Never; task.workflow.nodes().len()],
        Sharing::Label => labels(&task.workflow),
    };
    let mut printer = Printer { task, labels, given: 0, stack: Vec::new(), out };
    printer.open(task.workflow.root(), 0)?;
    while printer.go_on()? {}
    writeln!(printer.out)
}

/// What is written for a node beside its text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    Never,
    Wanted,
    Given(usize),
}

fn labels(workflow: &Workflow) -> Vec<Label> {
    let mut labels = vec![Label::Never; workflow.nodes().len()];
    let mut seen = vec![false; labels.len()];
    for input in workflow.nodes().flat_map(|(_, node)| node.inputs()) {
        let at = input.node.index();
        if seen[at] && matches!(workflow[input.node], Node::Computation { .. }) {
            labels[at] = Label::Wanted;
        }
        seen[at] = true;
    }
    labels
}

struct Printer<'a> {
    task: &'a Task,
    labels: Vec<Label>,
    given: usize,
    stack: Vec<OpenExpression>,
    out: &'a mut dyn Write,
}

/// An expression of which some inputs are still to be written.
struct OpenExpression {
    node: NodeId,
    /// The column of its opening parenthesis.
    column: usize,
    /// The column of its inputs.
    inputs: usize,
    next: usize,
}

impl Printer<'_> {
    /// Writes a node up to its first input.
    fn open(&mut self, node: NodeId, column: usize) -> io::Result<()> {
        match &self.task.workflow[node] {
            leaf @ (Node::Input(_) | Node::Literal(_) | Node::File(_)) => {
                write!(self.out, "{}", self.task.leaf(leaf).unwrap_or_default())
            }
            Node::Computation { computation, .. } => {
                let mut column = column;
                match self.labels[node.index()] {
                    Label::Never => {}
                    Label::Given(number) => return write!(self.out, "#{number}#"),
                    Label::Wanted => {
                        self.given += 1;
                        self.labels[node.index()] = Label::Given(self.given);
                        let label = format!("#{}=", self.given);
                        self.out.write_all(label.as_bytes())?;
                        column += label.len();
                    }
                }
                let name = self.task.computations[computation.index()].name.as_str();
                write!(self.out, "({name}")?;
                let inputs = column + name.chars().count() + 2;
                self.stack.push(OpenExpression { node, column, inputs, next: 0 });
                Ok(())
            }
        }
    }

    /// Writes the next piece; tells whether there was any.
    fn go_on(&mut self) -> io::Result<bool> {
        let Some(open) = self.stack.last_mut() else {
            return Ok(false);
        };
        let Node::Computation { inputs, outputs, .. } = &self.task.workflow[open.node] else {
            return Ok(false);
        };
        if let Some(input) = inputs.get(open.next) {
            match open.next {
                0 => self.out.write_all(b" ")?,
                _ => write!(self.out, "\n{:1$}", "", open.inputs.min(WIDEST))?,
            }
            open.next += 1;
            let column = open.inputs;
            self.open(input.node, column)?;
        } else {
            if inputs.len() > 1 {
                write!(self.out, "\n{:1$}", "", (open.column + 1).min(WIDEST))?;
            }
            write!(self.out, "){outputs}")?;
            self.stack.pop();
        }
        Ok(true)
    }
}
