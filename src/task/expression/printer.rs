//! Writes an expression as text. The walk keeps its own stack, and the text is written as the walk goes.

use std::io::{self, Write};

use super::grammar::{BareName, INPUTS, QuotedName};
use super::{Expression, Text};
use crate::task::workflow::NodeId;

/// Beyond this column the text is not indented any further: a chain of ten thousand calls would
/// else be mostly spaces.
const WIDEST: usize = 1000;

/// How an expression is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// The text that was written of a shared node.
    pub sharing: Sharing,
    /// Whether labels are written.
    pub labels: Labels,
}

/// Whether an expression that occurs more than once is written more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Each time in full.
    Repeat,
    /// In full as `#1=(...)` the first time, as `#1#` after.
    Label,
}

/// Whether labels are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    /// They are left out.
    Hide,
    /// As `:label` before what they belong to.
    Show,
}

impl Text {
    /// Writes the names of the inputs, if there are any, and the expression.
    ///
    /// # Errors
    ///
    /// Fails if `out` cannot be written.
    pub fn write(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        if let Some(inputs) = &self.inputs {
            let names: Vec<String> =
                inputs.iter().map(|name| QuotedName(name.as_str()).to_string()).collect();
            writeln!(out, "{INPUTS} {}", names.join(", "))?;
        }
        self.expression.write(style, out)
    }
}

impl Expression {
    /// Writes the expression, and the end of its last line.
    ///
    /// # Errors
    ///
    /// Fails if `out` cannot be written.
    pub fn write(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        let Some(root) = self.root() else { return Ok(()) };
        let names = match style.sharing {
            Sharing::Repeat => vec![SharedName::Never; self.nodes.len()],
            Sharing::Label => self
                .readers()
                .into_iter()
                .map(|readers| if readers > 1 { SharedName::Wanted } else { SharedName::Never })
                .collect(),
        };
        let labels = style.labels;
        let mut printer = Printer { expression: self, names, labels, given: 0, stack: vec![], out };
        printer.open(root, 0)?;
        while printer.go_on()? {}
        writeln!(printer.out)
    }
}

/// The name of a node that is shared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SharedName {
    Never,
    Wanted,
    Given(usize),
}

struct Printer<'a> {
    expression: &'a Expression,
    names: Vec<SharedName>,
    labels: Labels,
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
    fn open(&mut self, id: NodeId, column: usize) -> io::Result<()> {
        let mut column = column;
        match self.names[id.index()] {
            SharedName::Never => {}
            SharedName::Given(number) => return write!(self.out, "#{number}#"),
            SharedName::Wanted => {
                self.given += 1;
                self.names[id.index()] = SharedName::Given(self.given);
                let name = format!("#{}=", self.given);
                self.out.write_all(name.as_bytes())?;
                column += name.len();
            }
        }
        let node = &self.expression[id];
        let word = node.kind.word();
        let value = match word {
            "" => BareName(&node.value).to_string(),
            _ => QuotedName(&node.value).to_string(),
        };
        write!(self.out, "{word}({value}")?;
        column += word.len();
        let inputs = column + value.chars().count() + 2;
        self.stack.push(OpenExpression { node: id, column, inputs, next: 0 });
        Ok(())
    }

    /// Writes the next piece; tells whether there was any.
    fn go_on(&mut self) -> io::Result<bool> {
        let Some(open) = self.stack.last_mut() else {
            return Ok(false);
        };
        let node = &self.expression[open.node];
        let Some(input) = node.inputs.get(open.next) else {
            if node.inputs.len() > 1 {
                write!(self.out, "\n{:1$}", "", (open.column + 1).min(WIDEST))?;
            }
            self.out.write_all(b")")?;
            if let Some(outputs) = &node.outputs {
                write!(self.out, "{outputs}")?;
            }
            self.stack.pop();
            return Ok(true);
        };
        match open.next {
            0 => self.out.write_all(b" ")?,
            _ => write!(self.out, "\n{:1$}", "", open.inputs.min(WIDEST))?,
        }
        open.next += 1;
        let mut column = open.inputs;
        if let (Labels::Show, Some(label)) = (self.labels, &input.label) {
            let label = format!(":{} ", BareName(label));
            self.out.write_all(label.as_bytes())?;
            column += label.chars().count();
        }
        self.open(input.node, column)?;
        Ok(true)
    }
}
