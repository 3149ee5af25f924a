//! Writes an expression as text, in one of two styles. Each walk keeps its own stack.
//!
//! One is the form of `ce-sym`, which is written as the walk goes. The other one is as a person writes: inputs and definitions by their bare
//! names, constants in quotes, and what fits in one line. It is read back as the same expression.

use std::fmt;
use std::io::{self, Write};

use super::grammar::{
    BareName, EXCLUDED, INPUTS, NodeKind, OVER, QuotedName, SWEEP_ROLES, SliceText, SweepLabel,
    TextLines, WrittenLines, in_bars, is_reference,
};
use super::sweeps::RuleFile;
use super::{Definition, Expression, ExpressionNode, InputDefault, Text};
use crate::name::InputName;
use crate::slice::WrittenSlice;
use crate::sweep::{EXCLUDE, SHEET_SUFFIX, is_sheet};
use crate::task::NodeId;

/// Beyond this column the text is not indented any further: a chain of ten thousand calls would
/// else be mostly spaces.
const DEEPEST_INDENT: usize = 1000;

/// The column at which a list of texts goes on in the next line.
const LIST_WIDTH: usize = 100;

/// The least number of columns that a list has, wherever it stands.
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
    /// As `:label` before the inputs that they belong to.
    Show,
}

impl Text {
    /// Writes the names of the inputs, if there are any, the computations, and the expression.
    pub fn write(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        if let Some(inputs) = &self.inputs {
            let names = self.with_defaults(inputs, |name| QuotedName(name).to_string());
            writeln!(out, "{INPUTS} {}", names.join(", "))?;
        }
        for computation in &self.computations {
            write!(out, "\n{computation}\n")?;
        }
        self.expression.write(style, out)
    }

    /// The inputs as they are written, with their defaults.
    fn with_defaults(&self, inputs: &[InputName], written: fn(&str) -> String) -> Vec<String> {
        let defaults = self.defaults.iter().map(Option::as_ref).chain(std::iter::repeat(None));
        let inputs = inputs.iter().zip(defaults).map(|(name, default)| {
            written(name.as_str()) + &default.map(written_default).unwrap_or_default()
        });
        inputs.collect()
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
        let mut printer =
            SymPrinter { expression: self, names, labels, given: 0, stack: vec![], out };
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

/// Writes as `ce-sym` prints.
struct SymPrinter<'a> {
    expression: &'a Expression,
    names: Vec<SharedName>,
    labels: Labels,
    given: usize,
    stack: Vec<OpenExpression>,
    out: &'a mut dyn Write,
}

/// An expression with inputs that are still to be written.
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

impl SymPrinter<'_> {
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

    /// Writes a file whose name begins at this column.
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
            if number > 0 && (is_sheet || at + width > LIST_WIDTH.max(begin + NARROWEST)) {
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
        write!(self.out, "\n{:1$}", "", column.min(DEEPEST_INDENT))
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

/// The column behind which a line goes on only if it has to.
const LINE_WIDTH: usize = 100;

/// The column behind which nothing is indented any further.
const DEEPEST_COLUMN: usize = 60;

/// The indentation of nested lines.
const INDENT: usize = 2;

/// A name that is an expression: in bars only if it could not be read back otherwise.
struct Reference<'a>(&'a str);

impl fmt::Display for Reference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begins = |first: char| !first.is_ascii_digit() && !matches!(first, ':' | '+' | '-');
        let is_plain = self.0.chars().all(is_reference) && self.0.starts_with(begins);
        if is_plain { f.write_str(self.0) } else { in_bars(self.0, f) }
    }
}

impl Text {
    /// The text of a file `workflow.ce` that says this. Names of definitions that nothing needs are left out.
    pub fn workflow(&self) -> String {
        let mut writer = TextWriter {
            nodes: self.expression.nodes(),
            named: vec![None; self.expression.nodes().len()],
            shared: vec![SharedNumber::Single; self.expression.nodes().len()],
            flat: Vec::with_capacity(self.expression.nodes().len()),
            given: 0,
            out: String::new(),
        };
        if let Some(inputs) = &self.inputs {
            writer.inputs(&self.with_defaults(inputs, |name| Reference(name).to_string()));
        }
        for computation in &self.computations {
            writer.out.extend([&*computation.to_string(), "\n"]);
        }
        let Some(root) = self.expression.root() else { return writer.out };
        let lines = writer.name(&self.definitions);
        writer.find_shared(lines.iter().filter_map(Line::node).chain([root]));
        (0..writer.nodes.len()).for_each(|at| writer.flatten(NodeId::at(at)));
        let has_definitions = !lines.is_empty();
        for line in lines {
            match line {
                Line::Alias { name, of } => writer.out.extend([&*name, " = ", &of]),
                Line::Node { name, node, outputs } => {
                    writer.out.extend([&*name, " = "]);
                    writer.write(node, outputs.as_ref());
                }
            }
            writer.out.push('\n');
        }
        writer.out.push_str(if has_definitions { "\n" } else { "" });
        match writer.named[root.index()].clone() {
            Some(name) => writer.out.push_str(&name),
            None => writer.write(root, writer.nodes[root.index()].outputs.as_ref()),
        }
        writer.out.push('\n');
        writer.out
    }
}

impl Text {
    /// The first definition that is the name of several nodes that differ in more than the outputs that they pass up: a text can give it to
    /// one of them only.
    pub fn ambiguous_definition(&self) -> Option<&str> {
        let nodes = self.expression.nodes();
        let ambiguous = self.definitions.iter().find(|definition| {
            let mut named = definition.nodes.iter().map(|node| &nodes[node.index()]);
            let first = named.next();
            first.is_some_and(|first| !named.all(|node| is_same_but_for_outputs(node, first)))
        });
        ambiguous.map(|definition| &*definition.name)
    }
}

/// Whether two nodes differ at most in the outputs that they pass up.
fn is_same_but_for_outputs(one: &ExpressionNode, other: &ExpressionNode) -> bool {
    *one == ExpressionNode { outputs: one.outputs.clone(), ..other.clone() }
}

fn written_default(default: &InputDefault) -> String {
    match default {
        InputDefault::Text(text) => {
            format!(" = {}", QuotedName(text.strip_suffix('\n').unwrap_or(text)))
        }
        InputDefault::Choices(choices) => {
            let texts = choices.levels(0).iter().map(|text| QuotedName(text).to_string());
            format!(" = {}", texts.collect::<Vec<_>>().join(" or "))
        }
        InputDefault::File(path) => format!(" = OWN({})", QuotedName(path.as_str())),
    }
}

/// A definition as it is written.
enum Line {
    /// A second name of a node.
    Alias { name: String, of: String },
    /// A node that passes this up.
    Node { name: String, node: NodeId, outputs: Option<WrittenSlice> },
}

impl Line {
    const fn node(&self) -> Option<NodeId> {
        match self {
            Self::Node { node, .. } => Some(*node),
            Self::Alias { .. } => None,
        }
    }
}

/// The spelling of a node that is not a definition: in place, or by a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SharedNumber {
    /// It is read once, or short.
    Single,
    /// It is read in several places, and was not written yet.
    Wanted,
    /// It has this number.
    Given(usize),
}

/// A part of a node behind its name.
enum NodePart {
    /// Words that belong together: a label, or a file with its lines.
    Words(Vec<String>),
    /// An input, behind its label.
    Input(String, NodeId),
}

/// Writes as a person does.
struct TextWriter<'a> {
    nodes: &'a [ExpressionNode],
    /// The text that is written for each node that is a definition.
    named: Vec<Option<String>>,
    shared: Vec<SharedNumber>,
    /// Writes each node in one line, if it fits and nothing in it has a number.
    flat: Vec<Option<String>>,
    /// The last number of a shared node.
    given: usize,
    out: String,
}

impl TextWriter<'_> {
    /// Returns the lines of definitions, and sets the texts that are written for their nodes. Several nodes of one definition
    /// differ only in the outputs that they pass up.
    fn name(&mut self, definitions: &[Definition]) -> Vec<Line> {
        let (nodes, mut lines) = (self.nodes, Vec::new());
        for definition in definitions {
            let name = Reference(&definition.name).to_string();
            let Some(node) = definition.nodes.first().copied() else { continue };
            let first = &nodes[node.index()];
            if definition.nodes.len() == 1 {
                lines.push(match self.named[node.index()].replace(name.clone()) {
                    Some(of) => Line::Alias { name, of },
                    None => Line::Node { name, node, outputs: first.outputs.clone() },
                });
                continue;
            }
            // The line of a definition passes up all of its outputs: slices count these.
            let is_all = first.kind == NodeKind::Computation;
            let outputs = (!is_all).then(|| WrittenSlice::parse(["00", "01"]));
            for at in definition.nodes.iter().map(|node| node.index()) {
                let own = &nodes[at].outputs;
                if self.named[at].is_some() || !is_same_but_for_outputs(&nodes[at], first) {
                    continue;
                }
                let slice = match own {
                    own if *own == outputs => String::new(),
                    Some(own) => SliceText(own).to_string(),
                    None => "[00]".to_owned(),
                };
                self.named[at] = Some(format!("{name}{slice}"));
            }
            lines.push(Line::Node { name, node, outputs });
        }
        lines
    }

    /// Writes the line of the inputs, which goes on behind a comma only.
    fn inputs(&mut self, inputs: &[String]) {
        let last = inputs.len().saturating_sub(1);
        let commas = (0..).map(|number| if number < last { "," } else { "" });
        let words = inputs.iter().zip(commas).map(|(input, comma)| format!("{input}{comma}"));
        let words: Vec<String> = [INPUTS.to_owned()].into_iter().chain(words).collect();
        self.words(&words, 0);
        self.out.push_str("\n\n");
    }

    /// Finds the nodes without a name that are read in several places, but for short ones.
    fn find_shared(&mut self, roots: impl Iterator<Item = NodeId>) {
        let roots: Vec<NodeId> = roots.collect();
        let mut is_seen = vec![false; self.nodes.len()];
        let mut waiting = roots;
        while let Some(id) = waiting.pop() {
            for input in &self.nodes[id.index()].inputs {
                let at = input.node.index();
                let node = &self.nodes[at];
                let is_short = node.inputs.is_empty() && node.kind != NodeKind::Computation;
                if self.named[at].is_some() {
                    continue;
                }
                if std::mem::replace(&mut is_seen[at], true) {
                    if !is_short {
                        self.shared[at] = SharedNumber::Wanted;
                    }
                } else {
                    waiting.push(input.node);
                }
            }
        }
    }

    /// Notes how a node is written in one line. The nodes that it reads were noted before.
    fn flatten(&mut self, id: NodeId) {
        let node = &self.nodes[id.index()];
        let mut text = open(node);
        let mut fits = true;
        for part in self.parts(node) {
            if !text.ends_with('(') {
                text.push(' ');
            }
            match part {
                NodePart::Words(words) => text.push_str(&words.join(" ")),
                NodePart::Input(label, input) => match self.in_line(input) {
                    Some(input) => text.extend([label, input]),
                    None => fits = false,
                },
            }
            fits &= text.len() <= LINE_WIDTH;
            if !fits {
                break;
            }
        }
        text.push_str(close(node));
        self.flat.push(fits.then_some(text));
    }

    /// Returns the text of an input in one line, if it can be written so.
    fn in_line(&self, id: NodeId) -> Option<String> {
        let at = id.index();
        match (&self.named[at], self.shared[at]) {
            (Some(name), _) => Some(name.clone()),
            (None, SharedNumber::Single) => {
                let outputs = self.nodes[at].outputs.as_ref();
                Some(format!("{}{}", self.flat[at].as_ref()?, slice(outputs)))
            }
            (None, _) => None,
        }
    }

    /// The parts of a node behind its name: its inputs, then its files.
    fn parts(&self, node: &ExpressionNode) -> Vec<NodePart> {
        let mut parts = Vec::new();
        if node.kind.has_files() && !node.value.is_empty() {
            parts.push(NodePart::Words(vec![QuotedName(&node.value).to_string()]));
        }
        for (at, input) in node.inputs.iter().enumerate() {
            let role = SWEEP_ROLES.get(at).filter(|_| node.kind == NodeKind::Sweep);
            let label = match (role, &input.label) {
                (Some(role), Some(label)) if **label != **role => {
                    format!(":{} ", SweepLabel(label))
                }
                // Quotes or bars would be the label of the sweep.
                (Some(role), _) if at == 0 && self.begins_quoted(input.node) => format!(":{role} "),
                (Some(_), _) | (None, None) => String::new(),
                (None, Some(label)) => format!(":{} ", BareName(label)),
            };
            parts.push(NodePart::Input(label, input.node));
        }
        let mut factors = 0;
        for file in &node.files {
            parts.push(NodePart::Words(words(file, factors)));
            factors += usize::from(file.factor().is_some());
        }
        parts
    }

    fn begins_quoted(&self, id: NodeId) -> bool {
        let begin = match (&self.named[id.index()], self.shared[id.index()]) {
            (Some(name), _) => name.clone(),
            (None, SharedNumber::Single) => open(&self.nodes[id.index()]),
            (None, _) => "#".to_owned(),
        };
        begin.starts_with(['\'', '|'])
    }

    /// Writes a node that stands at the beginning of a line, or behind its name.
    fn write(&mut self, id: NodeId, outputs: Option<&WrittenSlice>) {
        let column = self.out.len() - self.out.rfind('\n').map_or(0, |end| end + 1);
        if let Some(text) = &self.flat[id.index()]
            && column + text.len() <= LINE_WIDTH
        {
            self.out.push_str(text);
            self.out.push_str(&slice(outputs));
            return;
        }
        let mut stack = vec![self.begin(id, INDENT, &slice(outputs))];
        while let Some(open) = stack.last_mut() {
            let column = open.column;
            let Some(part) = open.parts.next() else {
                let Some(open) = stack.pop() else { break };
                self.out.push_str(&open.end);
                continue;
            };
            self.next_line(column);
            match part {
                NodePart::Words(words) => self.words(&words, column),
                NodePart::Input(label, input) => {
                    self.out.push_str(&label);
                    stack.extend(self.input(input, column));
                }
            }
        }
    }

    /// Writes an input, or begins to, if it needs several lines.
    fn input(&mut self, id: NodeId, column: usize) -> Option<LongNode> {
        let at = id.index();
        if let Some(name) = &self.named[at] {
            self.out.push_str(name);
            return None;
        }
        match self.shared[at] {
            SharedNumber::Given(number) => {
                self.out.extend(["#", &number.to_string(), "#"]);
                return None;
            }
            SharedNumber::Wanted => {
                self.given += 1;
                self.shared[at] = SharedNumber::Given(self.given);
                self.out.extend(["#", &self.given.to_string(), "="]);
            }
            SharedNumber::Single => {}
        }
        let end = slice(self.nodes[at].outputs.as_ref());
        if let Some(text) = &self.flat[at]
            && column + text.len() <= LINE_WIDTH
        {
            self.out.push_str(text);
            self.out.push_str(&end);
            return None;
        }
        Some(self.begin(id, column + INDENT, &end))
    }

    /// Writes the name of a node that spreads over several lines, one for each part.
    fn begin(&mut self, id: NodeId, column: usize, slice: &str) -> LongNode {
        let node = &self.nodes[id.index()];
        self.out.push_str(&open(node));
        let end = format!("{}{slice}", close(node));
        LongNode { parts: self.parts(node).into_iter(), column: column.min(DEEPEST_COLUMN), end }
    }

    fn next_line(&mut self, column: usize) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', column));
    }

    /// Writes words, as many in each line as fit.
    fn words(&mut self, words: &[String], column: usize) {
        let mut at = column;
        for (number, word) in words.iter().enumerate() {
            if number > 0 && at + word.len() >= LINE_WIDTH {
                self.next_line(column + INDENT);
                at = column + INDENT;
            } else if number > 0 {
                self.out.push(' ');
                at += 1;
            }
            self.out.push_str(word);
            at += word.len();
        }
    }
}

/// A node on several lines, with parts that are still to be written.
struct LongNode {
    parts: std::vec::IntoIter<NodePart>,
    /// The column at which they begin.
    column: usize,
    end: String,
}

/// The beginning of a node: all of it, if it has no parts.
fn open(node: &ExpressionNode) -> String {
    let word = node.kind.word();
    match node.kind {
        NodeKind::Computation => format!("({}", BareName(&node.value)),
        NodeKind::Input => Reference(&node.value).to_string(),
        NodeKind::Text => WrittenLines(&node.value).to_string(),
        kind if kind.has_files() || !kind.has_value() => format!("{word}("),
        _ => format!("{word}({}", QuotedName(&node.value)),
    }
}

/// The end of a node, but for its slice.
const fn close(node: &ExpressionNode) -> &'static str {
    match node.kind {
        NodeKind::Input | NodeKind::Text => "",
        _ => ")",
    }
}

fn slice(outputs: Option<&WrittenSlice>) -> String {
    outputs.map(|outputs| SliceText(outputs).to_string()).unwrap_or_default()
}

/// A file of a node behind this number of factors. The name of a factor with the number that it would get is left out.
fn words(file: &RuleFile, factors: usize) -> Vec<String> {
    let row = |row: &Vec<Box<str>>| {
        let cells: Vec<String> = row.iter().map(|cell| QuotedName(cell).to_string()).collect();
        if is_sheet(&file.name) { format!("({})", cells.join(" ")) } else { cells.join(" ") }
    };
    let factor = file.factor().and_then(|name| name.strip_prefix(&format!("{factors:02}-")));
    let names = file.rows.first().map(|row| row.join("-")).unwrap_or_default();
    match factor {
        Some(name) if !is_sheet(&file.name) => {
            let levels = file.rows.iter().map(|row| level(&row.concat()));
            [format!(":{OVER}"), Reference(name).to_string()].into_iter().chain(levels).collect()
        }
        Some(name) if name.strip_suffix(SHEET_SUFFIX) == Some(&*names) => {
            [format!(":{OVER}")].into_iter().chain(file.rows.iter().map(row)).collect()
        }
        _ => {
            let name = if &*file.name == EXCLUDE { EXCLUDED } else { &file.name };
            [format!(":{}", BareName(name))].into_iter().chain(file.rows.iter().map(row)).collect()
        }
    }
}

/// A level of a factor: a number that is not a range needs no quotes.
fn level(text: &str) -> String {
    let is_number = text.starts_with(|first: char| first.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || c == '.')
        && !text.contains("..");
    if is_number { text.to_owned() } else { QuotedName(text).to_string() }
}
