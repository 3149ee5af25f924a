//! The expression as text: `(add (mul INPUT('x') INPUT('y'))[00] FILE('tinputs/ad/48103e4fc7'))[00]`.
//!
//! An [`Expression`] is what somebody wrote, with its labels and its sharing: a
//! [`Workflow`](crate::task::Workflow) knows equal sub-workflows as one, and an expression as many. It
//! is [printed](Text::write), [parsed](parse), and [laid out](WorkflowDirectories::new) as the directories of a
//! task. What is printed can be parsed, and is printed the same again. Nothing recurses, and nothing
//! here reads or writes a file.
//!
//! [`Parsed`] is a text that was read, with the places of its parts.

mod definitions;
mod directories;
mod factor_levels;
mod grammar;
mod input_line;
mod lexer;
mod mistake;
mod parser;
mod printer;
mod sweeps;
mod text_computation;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::{Index, Range};

use self::definitions::FilePlaces;
use self::grammar::{BareName, QuotedName, SliceText, WrittenLines};
use self::sweeps::{file_number, rules, unreadable};
use crate::name::{InputName, TaskPath};
use crate::slice::{MAX_ARITY, Slice, WrittenSlice};
use crate::sweep::{SweepFault, SweepPoints, SweepRules};
use crate::task::{Node, NodeId, Task, TextComputation};
use crate::text_file;

pub use self::definitions::Definition;
pub use self::directories::{WorkflowDirectories, WorkflowEntry, WorkflowEntryKind};
pub use self::grammar::{DEFINITION, NodeKind, RESOURCES};
pub use self::mistake::{Excerpt, Fault, LineKind, Mistake, Position, unknown_name_hint};
pub use self::parser::parse;
pub use self::printer::{Labels, Sharing, Style};
pub use self::sweeps::{RuleFile, computation_names, rule_files};

/// A text: an expression, its definitions, and the task's inputs if it names them.
#[derive(Clone, Debug, Default)]
pub struct Text {
    /// The symbolic names of the task's inputs, all different.
    pub inputs: Option<Vec<InputName>>,
    /// The default of each input, if it has one.
    pub defaults: Vec<Option<InputDefault>>,
    /// The computations that stand in the text.
    pub computations: Vec<TextComputation>,
    /// The names of expressions.
    pub definitions: Vec<Definition>,
    pub expression: Expression,
}

/// The default value of an input of the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputDefault {
    /// A file with these contents.
    Text(Box<str>),
    /// One of these texts, the first one unless another is given: a file with it and a newline.
    Choices(SweepPoints),
    /// A file of the task.
    File(TaskPath),
}

/// An expression as it is written. Each node stands after the nodes that it reads; the last one is the root. A node that is
/// read several times is shared: it is written once.
#[derive(Clone, Debug, Default)]
pub struct Expression {
    nodes: Vec<ExpressionNode>,
}

/// A node of an expression. Nodes of all kinds have the same parts, as their directories do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExpressionNode {
    pub kind: NodeKind,
    /// Its value: a name that is right for this kind.
    pub value: Box<str>,
    /// The files that are its rules, if it is a sweep or the product of factors.
    pub files: Vec<RuleFile>,
    /// The nodes that it reads, in order.
    pub inputs: Vec<ExpressionInput>,
    /// The outputs that are passed up, if that is written.
    pub outputs: Option<WrittenSlice>,
}

impl ExpressionNode {
    /// Texts that a file would not give back as one line: the value, and the first such output.
    fn odd_lines(&self) -> Vec<String> {
        // The contents of a text are not a line.
        let may_be_empty = self.kind.has_files() || !self.kind.has_value();
        let has_value = self.kind != NodeKind::Text && (!may_be_empty || !self.value.is_empty());
        let value = has_value.then(|| self.value.to_string()).filter(|value| !is_line(value));
        let mut outputs = self.outputs.iter().flat_map(WrittenSlice::texts);
        let output = outputs.find(|text| !is_line(text)).map(Cow::into_owned);
        value.into_iter().chain(output).collect()
    }
}

/// Whether a text is the same if it is read as the only line of a file.
fn is_line(text: &str) -> bool {
    text_file::line(format!("{text}\n").as_bytes()) == Ok((text, false))
}

/// A sub-expression that a node reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExpressionInput {
    /// The label that a human gave it, if one is written.
    pub label: Option<Box<str>>,
    /// The sub-expression.
    pub node: NodeId,
}

/// A place in the source of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TextPlace {
    node: NodeId,
    /// The number of a file, counted from zero, and a line of it, counted from one; line zero is the whole file.
    file: Option<(usize, usize)>,
}

impl TextPlace {
    const fn from_node(node: NodeId) -> Self {
        Self { node, file: None }
    }
}

impl Expression {
    /// Adds a node. Those that it reads are in the expression already.
    pub fn push(&mut self, node: ExpressionNode) -> NodeId {
        let id = NodeId::at(self.nodes.len());
        debug_assert!(node.inputs.iter().all(|it| it.node < id), "a node is after those it reads");
        self.nodes.push(node);
        id
    }

    /// The node that stands for the whole expression, unless there is no node.
    pub fn root(&self) -> Option<NodeId> {
        self.nodes.len().checked_sub(1).map(NodeId::at)
    }

    /// All nodes, each after the nodes that it reads.
    pub fn nodes(&self) -> &[ExpressionNode] {
        &self.nodes
    }

    /// The same, to change the source of a node.
    pub fn nodes_mut(&mut self) -> &mut [ExpressionNode] {
        &mut self.nodes
    }

    /// Whether both say the same, however much they share.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let mut known: HashMap<ExpressionNode, NodeId> = HashMap::new();
        let [root, other] = [self, other].map(|expression| {
            let mut equal: Vec<NodeId> = Vec::with_capacity(expression.nodes.len());
            for node in &expression.nodes {
                let mut node = node.clone();
                node.inputs.iter_mut().for_each(|input| input.node = equal[input.node.index()]);
                let next = NodeId::at(known.len());
                equal.push(*known.entry(node).or_insert(next));
            }
            equal.pop()
        });
        root == other
    }

    /// Returns the number of reads of each node by nodes that the root needs. If a definition is named with slices only,
    /// its node without a slice is not needed.
    fn readers(&self) -> Vec<usize> {
        let mut readers = vec![0; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if at + 1 == self.nodes.len() || readers[at] > 0 {
                for argument in &node.inputs {
                    readers[argument.node.index()] += 1;
                }
            }
        }
        readers
    }
}

impl Index<NodeId> for Expression {
    type Output = ExpressionNode;

    fn index(&self, id: NodeId) -> &ExpressionNode {
        &self.nodes[id.index()]
    }
}

impl From<&Task> for Text {
    /// Equal nodes of a workflow that read others are one, and are shared. Leaves are not: they are short.
    fn from(task: &Task) -> Self {
        let mut expression = Expression::default();
        let mut shared: Vec<Option<NodeId>> = Vec::with_capacity(task.workflow.nodes().len());
        for (id, node) in task.workflow.nodes() {
            if is_leaf(node) {
                shared.push(None);
                continue;
            }
            let mut arguments = Vec::with_capacity(node.inputs().len());
            for input in node.inputs() {
                let node = match shared[input.node.index()] {
                    Some(node) => node,
                    None => expression.push(without_inputs(task, input.node)),
                };
                arguments.push(ExpressionInput { label: Some(input.label.clone()), node });
            }
            let node = ExpressionNode { inputs: arguments, ..without_inputs(task, id) };
            shared.push(Some(expression.push(node)));
        }
        let root = task.workflow.root();
        if shared.get(root.index()).is_none_or(Option::is_none) {
            expression.push(without_inputs(task, root));
        }
        let (inputs, computations) = (Some(task.inputs.clone()), task.text_computations.clone());
        // Names and conditions may depend on choices. Files that are defaults are no part of the expression.
        let defaults = task.choices.iter().cloned().map(|it| it.map(InputDefault::Choices));
        Self { inputs, defaults: defaults.collect(), computations, expression, ..Self::default() }
    }
}

/// Whether a node reads no other, and is short.
fn is_leaf(node: &Node) -> bool {
    !matches!(node, Node::Computation { .. } | Node::Points(_)) && node.inputs().is_empty()
}

/// Returns a node of a task as it is written in the text, without its inputs: `INPUT('x')`.
pub fn written_alone(task: &Task, id: NodeId) -> String {
    let ExpressionNode { kind, value, outputs, .. } = without_inputs(task, id);
    let mut text = match kind {
        NodeKind::Computation => BareName(&value).to_string(),
        NodeKind::Text => WrittenLines(&value).to_string(),
        NodeKind::All => "ALL(...)".to_owned(),
        _ if kind.has_files() && value.is_empty() => format!("{}()", kind.word()),
        _ => format!("{}({})", kind.word(), QuotedName(&value)),
    };
    if let Some(outputs) = outputs {
        text.push_str(&SliceText(&outputs).to_string());
    }
    text
}

/// The contents of a file as the text of a workflow holds them: `'20'`, or `TEXT('a' 'b')`.
pub fn written_contents(contents: &str) -> String {
    WrittenLines(contents).to_string()
}

/// The kind of a node of a task, and its value as it is written: a name, a path, a text or a label.
pub fn kind_and_value(task: &Task, id: NodeId) -> (NodeKind, &str) {
    match &task.workflow[id] {
        Node::Computation { computation, .. } => (NodeKind::Computation, computation.written(task)),
        Node::Input(input) => (NodeKind::Input, task.inputs[input.index()].as_str()),
        Node::Literal(name) => (NodeKind::Literal, name.as_str()),
        Node::File(file) => (NodeKind::File, task.files[file.index()].path.as_str()),
        Node::Text(text) => (NodeKind::Text, text.as_str()),
        Node::Tree { tree, .. } => (NodeKind::Tree, task.trees[tree.index()].name.as_str()),
        Node::Member { path, .. } => (NodeKind::Member, path.as_str()),
        Node::All { .. } => (NodeKind::All, ""),
        Node::Bound(name) => (NodeKind::Input, task.bound[name.index()].as_str()),
        Node::Points(points) => (NodeKind::Points, &task.sweeps[points.index()].label),
        Node::Sweep { sweep, .. } => (NodeKind::Sweep, &task.sweeps[sweep.index()].label),
    }
}

/// A node of a task, without its inputs.
fn without_inputs(task: &Task, id: NodeId) -> ExpressionNode {
    let (kind, value) = kind_and_value(task, id);
    let files = match &task.workflow[id] {
        Node::Points(sweep) | Node::Sweep { sweep, .. } => {
            rule_files(&SweepRules::from(&task.sweeps[sweep.index()]))
        }
        Node::Computation { .. }
        | Node::Input(_)
        | Node::Literal(_)
        | Node::File(_)
        | Node::Text(_)
        | Node::Tree { .. }
        | Node::Member { .. }
        | Node::All { .. }
        | Node::Bound(_) => Vec::new(),
    };
    let outputs = task.workflow[id].slice().map(Slice::written);
    ExpressionNode { kind, value: value.into(), files, inputs: Vec::new(), outputs }
}

/// The inputs and outputs of a computation, as far as they are known.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    /// The names of its inputs.
    pub inputs: Option<Vec<String>>,
    /// The names of its outputs.
    pub outputs: Option<Vec<String>>,
}

/// The computations that are known, by their names.
pub type Signatures = BTreeMap<String, Signature>;

/// The longest label that is made up, in bytes.
const LONGEST_LABEL: usize = 100;

/// Takes all labels out of an expression that it would have without them.
pub fn drop_default_labels(expression: &mut Expression, signatures: &Signatures) {
    for id in (0..expression.nodes.len()).map(NodeId::at) {
        let mut filled = 0;
        for at in 0..expression[id].inputs.len() {
            let argument = &expression[id].inputs[at];
            let width = places(expression, id, argument.node, signatures).unwrap_or(1);
            let label =
                default_label(expression, id, argument.node, filled..filled + width, signatures);
            if argument.label.as_deref() == Some(&label) {
                expression.nodes[id.index()].inputs[at].label = None;
            }
            filled += width;
        }
    }
}

/// The nodes whose values a node passes up, in order: nodes `ALL` are replaced by their inputs, until there are more than
/// any node may pass up.
fn origins(expression: &Expression, id: NodeId) -> Vec<NodeId> {
    let (mut origins, mut waiting) = (Vec::new(), vec![id]);
    while let Some(id) = waiting.pop() {
        match &expression[id] {
            node if node.kind == NodeKind::All && !node.inputs.is_empty() => {
                waiting.extend(node.inputs.iter().rev().map(|input| input.node));
            }
            _ => origins.push(id),
        }
        if origins.len() > MAX_ARITY {
            break;
        }
    }
    origins
}

/// The names of the files that a node passes up; `None` if they are unknown.
fn passed_names(
    expression: &Expression,
    id: NodeId,
    signatures: &Signatures,
) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for id in origins(expression, id) {
        names.extend(own_names(&expression[id], signatures)?);
    }
    Some(names)
}

/// The names of the files that a node other than `ALL` passes up; `None` if they are unknown.
fn own_names(node: &ExpressionNode, signatures: &Signatures) -> Option<Vec<String>> {
    let made = signature(node, signatures)?.outputs.clone()?;
    let numbers = match (&node.outputs, node.kind) {
        (Some(slice), _) => slice.resolve(&made).0.numbers().map(usize::from).collect(),
        (None, NodeKind::Computation) => Vec::from_iter(0..made.len()),
        (None, _) => vec![0],
    };
    numbers
        .into_iter()
        .map(|number| Some(made.get(number)?.trim_end_matches('/').to_owned()))
        .collect()
}

/// Returns the number of files that a node passes up; `None` if that is unknown.
fn width(expression: &Expression, id: NodeId, signatures: &Signatures) -> Option<usize> {
    let mut width = 0;
    for id in origins(expression, id) {
        let node = &expression[id];
        width += match &node.outputs {
            Some(outputs) => outputs.len(),
            None if node.kind == NodeKind::Computation => {
                signature(node, signatures)?.outputs.as_ref()?.len()
            }
            None => 1,
        };
    }
    Some(width)
}

/// Returns the number of inputs of its reader that a node fills; `None` if that is unknown. A body may pass up any number of files.
fn places(
    expression: &Expression,
    reader: NodeId,
    id: NodeId,
    signatures: &Signatures,
) -> Option<usize> {
    match expression[reader].kind {
        NodeKind::Sweep => Some(1),
        _ => width(expression, id, signatures),
    }
}

/// Returns the known inputs and outputs of a node other than `ALL`, whose inputs have the names of what it reads.
fn signature<'a>(node: &ExpressionNode, signatures: &'a Signatures) -> Option<Cow<'a, Signature>> {
    if node.kind == NodeKind::Computation {
        return signatures.get(&*node.value).map(Cow::Borrowed);
    }
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let inputs = node.kind.inputs().iter().take(node.inputs.len());
    let inputs = inputs.copied().collect::<Vec<_>>();
    Some(Cow::Owned(Signature { inputs: names(&inputs), outputs: names(node.kind.outputs()) }))
}

/// The label that an input has if none is written: the names of the inputs that it fills, or, in `ALL`, of the values that it passes up.
fn default_label(
    expression: &Expression,
    reader: NodeId,
    node: NodeId,
    places: Range<usize>,
    signatures: &Signatures,
) -> String {
    let names = match &expression[reader] {
        all if all.kind == NodeKind::All => passed_names(expression, node, signatures),
        reader => {
            let reader = signature(reader, signatures);
            let names = reader.as_ref().and_then(|signature| signature.inputs.as_ref());
            names.and_then(|names| Some(names.get(places)?.to_vec()))
        }
    };
    let node = &expression[node];
    let label = match (names, node.kind) {
        (Some(names), _) => return label_of(&names),
        (None, NodeKind::Literal | NodeKind::File) => "file".to_owned(),
        (None, NodeKind::Text) => "text".to_owned(),
        (None, NodeKind::All) => "all".to_owned(),
        (None, _) => node.value.to_string(),
    };
    short_label(&label)
}

/// The label of the node that fills these inputs.
pub fn label_of(inputs: &[String]) -> String {
    short_label(&inputs.join("-"))
}

/// A label that can be a part of the name of a directory.
fn short_label(label: &str) -> String {
    let label = label.replace(|c: char| c == '/' || c.is_control(), "-");
    let end = (0..=LONGEST_LABEL.min(label.len())).rev().find(|at| label.is_char_boundary(*at));
    label[..end.unwrap_or_default()].to_owned()
}

/// A text, and where its nodes stand.
#[derive(Debug)]
pub struct Parsed<'a> {
    /// The result of parsing.
    pub text: Text,
    /// The names of all files in the storage that the text holds, whether or not the workflow needs them.
    pub literals: Vec<Box<str>>,
    source: &'a str,
    /// The byte at which each line ends.
    line_ends: Vec<usize>,
    /// The byte at which each input of the task is named.
    inputs: Vec<usize>,
    /// The byte at which each definition begins.
    definitions: Vec<usize>,
    /// The byte at which a comment begins that looks like a part of the workflow.
    code_in_comment: Option<usize>,
    /// The byte at which each node begins.
    places: Vec<usize>,
    /// The positions of the files of nodes.
    files: HashMap<NodeId, Vec<FilePlaces>>,
}

impl Parsed<'_> {
    /// The fault of rules in a line of a file of a node, in the words of the text.
    pub fn fault_of_rules(
        &self,
        node: NodeId,
        file: &str,
        line: usize,
        fault: SweepFault,
    ) -> Fault {
        self.in_words(self.place_in(node, file, line), fault.into())
    }

    /// The line around a node, or around a line of a file of it, which is counted from one; zero is the whole file.
    pub fn excerpt(&self, node: NodeId, file: &str, line: usize) -> Excerpt {
        Excerpt::extract(self.source, self.byte(self.place_in(node, file, line)))
    }

    fn place_in(&self, node: NodeId, file: &str, line: usize) -> TextPlace {
        let number = file_number(&self.text.expression[node].files, file);
        TextPlace { node, file: number.map(|number| (number, line)) }
    }

    /// A fault whose lines have the numbers that they have in the text, not in a file.
    fn in_words(&self, place: TextPlace, fault: Fault) -> Fault {
        match fault.same_line() {
            Some(line) => {
                let same = TextPlace { file: place.file.map(|(file, _)| (file, line)), ..place };
                Fault::SameRow(Position::locate(self.source, self.byte(same)))
            }
            None => fault,
        }
    }

    /// The mistake of a place in a node.
    fn mistake_at(&self, place: TextPlace, fault: Fault) -> Mistake {
        Mistake::at(self.source, self.byte(place), self.in_words(place, fault))
    }

    /// Reads the rules of a node.
    ///
    /// # Errors
    ///
    /// Returns everything that is wrong with them.
    pub fn rules(&self, node: NodeId) -> Result<SweepRules, Vec<Mistake>> {
        let (rules, faults) = rules(&self.text.expression[node].files);
        if faults.is_empty() {
            return Ok(rules);
        }
        let faults = faults
            .into_iter()
            .map(|(file, fault)| self.mistake_at(TextPlace { node, file: Some(file) }, fault));
        Err(faults.collect())
    }

    /// The mistakes of all that would not be read as it is written, since it has a line of a file: names, outputs, levels and rows.
    pub fn unreadable(&self) -> Vec<Mistake> {
        let mut wrong = Vec::new();
        for (at, node) in self.text.expression.nodes().iter().enumerate() {
            let place = TextPlace::from_node(NodeId::at(at));
            wrong.extend(node.odd_lines().into_iter().map(|line| (place, Fault::Line(line))));
            let files = unreadable(&node.files).into_iter();
            wrong.extend(
                files.map(|(file, fault)| (TextPlace { file: Some(file), ..place }, fault)),
            );
        }
        wrong.sort_by_key(|(place, _)| self.byte(*place));
        wrong.into_iter().map(|(place, fault)| self.mistake_at(place, fault)).collect()
    }

    /// Returns the position at which a node begins.
    pub fn position(&self, node: NodeId) -> Position {
        let byte = self.byte(TextPlace::from_node(node));
        let line = self.line_of(byte);
        let start = line.checked_sub(2).and_then(|before| self.line_ends.get(before));
        let start = start.map_or(0, |end| end + 1);
        Position { line, column: 1 + self.source[start..byte].chars().count() }
    }

    /// Returns the positions at which nodes begin, in the order of the nodes. Takes one pass over the text, however long its lines
    /// are.
    pub fn positions(&self) -> Vec<Position> {
        let mut order: Vec<usize> = (0..self.places.len()).collect();
        order.sort_unstable_by_key(|node| self.places[*node]);
        let mut positions = vec![Position { line: 1, column: 1 }; order.len()];
        let (mut at, mut position) = (0, Position { line: 1, column: 1 });
        for node in order {
            let before = &self.source[at..self.places[node]];
            at = self.places[node];
            if let Some(newline) = before.rfind('\n') {
                position.line += before.matches('\n').count();
                position.column = 1 + before[newline + 1..].chars().count();
            } else {
                position.column += before.chars().count();
            }
            positions[node] = position;
        }
        positions
    }

    /// The line of a file of a node, or of a line in it, which is counted from one; zero is the whole file.
    pub fn line_of_file(&self, node: NodeId, file: &str, line: usize) -> usize {
        self.line_of(self.byte(self.place_in(node, file, line)))
    }

    /// The line in which an input of the task is named, by its number.
    pub fn line_of_input(&self, number: usize) -> usize {
        self.line_of(self.inputs.get(number).copied().unwrap_or_default())
    }

    /// The line in which a definition begins, by its number.
    pub fn line_of_definition(&self, number: usize) -> usize {
        self.line_of(self.definitions.get(number).copied().unwrap_or_default())
    }

    /// The line with the first comment that looks like a part of the workflow.
    pub fn line_of_code_in_comment(&self) -> Option<usize> {
        self.code_in_comment.map(|at| self.line_of(at))
    }

    fn line_of(&self, byte: usize) -> usize {
        1 + self.line_ends.partition_point(|end| *end < byte)
    }

    /// The byte at which a place begins.
    fn byte(&self, place: TextPlace) -> usize {
        let node = self.places.get(place.node.index()).copied().unwrap_or_default();
        let Some((file, line)) = place.file else { return node };
        let file = self.files.get(&place.node).and_then(|files| files.get(file));
        let Some(file) = file else { return node };
        let line = line.checked_sub(1).and_then(|line| file.lines.get(line));
        line.copied().unwrap_or(file.name)
    }
}
