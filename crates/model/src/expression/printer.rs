//! Writes an expression as text. The walk keeps its own stack, and the text is written as the walk goes.

use std::io::{self, Write};

use super::grammar::{
    BareName, INPUTS, NodeKind, QuotedName, SWEEP_ROLES, SliceText, SweepLabel, TextLines,
};
use super::sweeps::RuleFile;
use super::{Expression, ExpressionNode, Text};
use crate::sweep::is_sheet;
use crate::task::NodeId;

/// Beyond this column the text is not indented any further: a chain of ten thousand calls would
/// else be mostly spaces.
const WIDEST: usize = 1000;

/// The column at which a list of texts goes on in the next line.
const WRAPS: usize = 100;

/// A list has at least so many columns, wherever it stands.
const NARROWEST: usize = 40;

/// The style in which an expression is written.
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
    /// Whether anything stands between the parenthesis and the next piece.
    has_pieces: bool,
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
        column += word.len();
        if node.kind.has_files() {
            return self.open_with_files(id, column);
        }
        let value = match node.kind {
            NodeKind::Computation => BareName(&node.value).to_string(),
            NodeKind::Text => TextLines(&node.value).to_string(),
            _ if !node.kind.has_value() => String::new(),
            _ => QuotedName(&node.value).to_string(),
        };
        write!(self.out, "{word}({value}")?;
        let space = usize::from(node.kind.has_value());
        let inputs = column + value.chars().count() + 1 + space;
        self.stack.push(OpenExpression { node: id, column, inputs, next: 0, has_pieces: false });
        Ok(())
    }

    /// Writes a node with rules up to its first input. Each piece has a line.
    fn open_with_files(&mut self, id: NodeId, column: usize) -> io::Result<()> {
        let node = &self.expression[id];
        write!(self.out, "{}(", node.kind.word())?;
        let mut has_pieces = !node.value.is_empty();
        if has_pieces {
            write!(self.out, "{}", QuotedName(&node.value))?;
        }
        let inputs = column + 1;
        for file in &node.files {
            if has_pieces {
                self.next_line(inputs)?;
            }
            has_pieces = true;
            self.file(file, inputs)?;
        }
        self.stack.push(OpenExpression { node: id, column, inputs, next: 0, has_pieces });
        Ok(())
    }

    /// Writes a file, of which the name stands at this column.
    fn file(&mut self, file: &RuleFile, column: usize) -> io::Result<()> {
        let name = format!(":{}", BareName(&file.name));
        self.out.write_all(name.as_bytes())?;
        let begin = column + name.chars().count() + 1;
        let is_sheet = is_sheet(&file.name);
        let mut at = begin;
        for (number, row) in file.rows.iter().enumerate() {
            let row: Vec<String> = row.iter().map(|cell| QuotedName(cell).to_string()).collect();
            let row = if is_sheet { format!("({})", row.join(" ")) } else { row.join(" ") };
            let width = row.chars().count();
            if number > 0 && (is_sheet || at + width > WRAPS.max(begin + NARROWEST)) {
                self.next_line(begin)?;
                at = begin;
            } else {
                self.out.write_all(b" ")?;
            }
            at += width + 1;
            self.out.write_all(row.as_bytes())?;
        }
        Ok(())
    }

    fn next_line(&mut self, column: usize) -> io::Result<()> {
        write!(self.out, "\n{:1$}", "", column.min(WIDEST))
    }

    /// Writes the next piece; returns false at the end.
    fn go_on(&mut self) -> io::Result<bool> {
        let Some(open) = self.stack.last_mut() else {
            return Ok(false);
        };
        let node = &self.expression[open.node];
        let Some(input) = node.inputs.get(open.next) else {
            // Resources are not printed.
            let files = if node.kind.has_files() { node.files.len() } else { 0 };
            let (column, is_long) = (open.column + 1, open.next + files > 1);
            self.stack.pop();
            if is_long {
                self.next_line(column)?;
            }
            self.out.write_all(b")")?;
            if let Some(outputs) = &node.outputs {
                write!(self.out, "{}", SliceText(outputs))?;
            }
            return Ok(true);
        };
        let (at, column) = (open.next, open.inputs);
        let has_value = node.kind.has_value();
        open.next += 1;
        let has_pieces = std::mem::replace(&mut open.has_pieces, true);
        match (at, node.kind.has_files()) {
            (0, false) if !has_value => {}
            (0, false) => self.out.write_all(b" ")?,
            (0, true) if !has_pieces => {}
            _ => self.next_line(column)?,
        }
        let label = label(node, at, self.labels);
        self.out.write_all(label.as_bytes())?;
        self.open(input.node, column + label.chars().count())?;
        Ok(true)
    }
}

/// Returns the label that is written before an input of a node. The body and the points of a sweep are always named.
fn label(node: &ExpressionNode, at: usize, labels: Labels) -> String {
    let written = node.inputs.get(at).and_then(|input| input.label.as_deref());
    let written = written.filter(|_| labels == Labels::Show);
    let role = SWEEP_ROLES.get(at).filter(|_| node.kind == NodeKind::Sweep);
    match (role, written) {
        (Some(role), None) => format!(":{role} "),
        (Some(role), Some(label)) if label == *role => format!(":{role} "),
        (_, Some(label)) if node.kind == NodeKind::Sweep => format!(":{} ", SweepLabel(label)),
        (_, Some(label)) => format!(":{} ", BareName(label)),
        (None, None) => String::new(),
    }
}
