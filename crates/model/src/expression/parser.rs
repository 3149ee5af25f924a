//! Reads an expression from text. The parser keeps its own stack, so that no depth is too great.

use std::collections::{HashMap, HashSet};

use super::grammar::{
    INPUTS, NodeKind, RuleShape, SWEEP_ROLES, ends_string, is_plain, is_plain_in_slice,
    nearest_word,
};
use super::mistake::{Fault, Mistake, Position};
use super::sweeps::RuleFile;
use super::{Expression, ExpressionInput, ExpressionNode, Text, TextPlace};
use crate::name::InputName;
use crate::slice::{MAX_ARITY, WrittenSlice};
use crate::suggest::nearest;
use crate::task::NodeId;

/// A text, and where its nodes stand.
#[derive(Debug)]
pub struct Parsed<'a> {
    /// The result of parsing.
    pub text: Text,
    source: &'a str,
    /// Where each node begins, in bytes.
    places: Vec<usize>,
    /// Where the files of nodes stand.
    files: HashMap<NodeId, Vec<FilePlaces>>,
}

/// Where a file of a node stands, in bytes.
#[derive(Debug, Default)]
struct FilePlaces {
    name: usize,
    /// Each of its lines.
    lines: Vec<usize>,
}

impl Parsed<'_> {
    /// The node of this sort that begins first in the text.
    pub fn first(&self, is_wanted: impl Fn(&ExpressionNode) -> bool) -> Option<NodeId> {
        let nodes = self.text.expression.nodes().iter().zip(&self.places).enumerate();
        let wanted = nodes.filter(|(_, (node, _))| is_wanted(node));
        wanted.min_by_key(|(_, (_, place))| **place).map(|(at, _)| NodeId::at(at))
    }

    /// The mistake of a node.
    pub fn mistake(&self, node: NodeId, fault: Fault) -> Mistake {
        self.mistake_at(TextPlace::of(node), fault)
    }

    /// The mistake of a place in a node.
    pub(super) fn mistake_at(&self, place: TextPlace, fault: Fault) -> Mistake {
        // The lines of a file have other numbers in the text.
        let fault = match fault.same_line() {
            Some(line) => {
                let same = TextPlace { file: place.file.map(|(file, _)| (file, line)), ..place };
                Fault::SameRow(Position::of(self.source, self.byte(same)))
            }
            None => fault,
        };
        Mistake::at(self.source, self.byte(place), fault)
    }

    /// The byte at which a place begins.
    pub(super) fn byte(&self, place: TextPlace) -> usize {
        let node = self.places.get(place.node.index()).copied().unwrap_or_default();
        let Some((file, line)) = place.file else { return node };
        let file = self.files.get(&place.node).and_then(|files| files.get(file));
        let Some(file) = file else { return node };
        let line = line.checked_sub(1).and_then(|line| file.lines.get(line));
        line.copied().unwrap_or(file.name)
    }
}

/// Reads a text.
///
/// # Errors
///
/// Returns the first place where the text is not what [`Text::write`] writes, and what was expected
/// there.
pub fn parse(source: &str) -> Result<Parsed<'_>, Mistake> {
    let at = if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut parser = Parser {
        source,
        at,
        expression: Expression::default(),
        places: Vec::new(),
        files: HashMap::new(),
        shared: HashMap::new(),
        stack: Vec::new(),
    };
    match parser.text() {
        Ok(inputs) => {
            let text = Text { inputs, expression: parser.expression };
            Ok(Parsed { text, source, places: parser.places, files: parser.files })
        }
        Err((at, fault)) => Err(Mistake::at(source, at, fault)),
    }
}

/// A mistake, and its byte.
type Wrong = (usize, Fault);

struct Parser<'a> {
    source: &'a str,
    at: usize,
    expression: Expression,
    places: Vec<usize>,
    files: HashMap<NodeId, Vec<FilePlaces>>,
    shared: HashMap<u32, SharedExpression>,
    /// The expressions around the place.
    stack: Vec<UnfinishedNode>,
}

/// The known facts of a number.
#[derive(Clone, Copy)]
enum SharedExpression {
    /// Its expression is being read.
    Open,
    Done(NodeId),
}

/// A node of which the inputs are being read.
struct UnfinishedNode {
    kind: NodeKind,
    value: Box<str>,
    files: Vec<(RuleFile, FilePlaces)>,
    inputs: Vec<ExpressionInput>,
    /// Where it begins.
    at: usize,
    number: Option<u32>,
    /// The label of the input that comes next.
    label: Option<Box<str>>,
}

impl<'a> Parser<'a> {
    fn text(&mut self) -> Result<Option<Vec<InputName>>, Wrong> {
        self.skip();
        let inputs = if self.eat(INPUTS) { Some(self.inputs()?) } else { None };
        let mut ended = self.begin()?;
        loop {
            if let Some(node) = ended {
                let Some(open) = self.stack.last_mut() else { break };
                let label = open.label.take();
                open.inputs.push(ExpressionInput { label, node });
            }
            self.skip();
            ended = if self.eat(")") { self.end()? } else { self.argument()? };
        }
        self.skip();
        if self.at < self.source.len() {
            return Err(self.expected("the end of the text"));
        }
        Ok(inputs)
    }

    /// Reads the names of the task's inputs.
    fn inputs(&mut self) -> Result<Vec<InputName>, Wrong> {
        let (mut names, mut known) = (Vec::new(), HashSet::new());
        self.skip();
        if !self.rest().starts_with(['\'', '|']) {
            return Ok(names);
        }
        loop {
            let at = self.at;
            let text = self.string()?;
            let name: InputName = text.parse().map_err(|error| (at, Fault::Name(error)))?;
            if !known.insert(text.clone()) {
                return Err((at, Fault::Duplicate(text)));
            }
            names.push(name);
            self.skip();
            if !self.eat(",") {
                return Ok(names);
            }
            self.skip();
        }
    }

    /// Reads a label if there is one, and begins an expression that a node reads.
    fn argument(&mut self) -> Result<Option<NodeId>, Wrong> {
        if self.at == self.source.len() {
            return Err(self.unclosed());
        }
        let Some(kind) = self.stack.last().map(|open| open.kind) else { return self.begin() };
        let is_named = self.rest().starts_with(':');
        if !(kind.has_inputs() || kind.has_files() && is_named) {
            return Err(self.expected("`)`"));
        }
        if !is_named {
            return self.begin();
        }
        if kind.has_files() && self.rule_file(kind)? {
            return Ok(None);
        }
        self.eat(":");
        let label = self.name("a label")?;
        if let Some(open) = self.stack.last_mut() {
            open.label = Some(label.into());
        }
        self.begin()
    }

    /// Begins an expression: returns it if it is a shared one that was read before.
    fn begin(&mut self) -> Result<Option<NodeId>, Wrong> {
        self.skip();
        let at = self.at;
        let mut number = None;
        if self.eat("#") {
            let shared = self.number()?;
            if self.eat("#") {
                return match self.shared.get(&shared) {
                    Some(SharedExpression::Done(node)) => Ok(Some(*node)),
                    Some(SharedExpression::Open) => Err((at, Fault::Cycle(shared))),
                    None => Err((at, Fault::Unknown(shared))),
                };
            }
            if !self.eat("=") {
                return Err(self.expected("`=` or `#` after the number"));
            }
            if self.shared.insert(shared, SharedExpression::Open).is_some() {
                return Err((at, Fault::Twice(shared)));
            }
            number = Some(shared);
            self.skip();
        }
        let (kind, value) = self.head()?;
        let (files, inputs, label) = (Vec::new(), Vec::new(), None);
        self.stack.push(UnfinishedNode { kind, value, files, inputs, at, number, label });
        Ok(None)
    }

    /// Reads what a node begins with: its kind and its value.
    fn head(&mut self) -> Result<(NodeKind, Box<str>), Wrong> {
        let start = self.at;
        let word = self.take(char::is_alphanumeric);
        if !self.eat("(") {
            let words: Vec<String> = NodeKind::words().map(|word| format!("{word}(")).collect();
            self.at = start;
            return Err(self.expected(&format!("an expression: `(`, `{}`", words.join("`, `"))));
        }
        let Some(kind) = NodeKind::of_word(word) else {
            let words: Vec<String> = NodeKind::words().map(str::to_owned).collect();
            let nearest = nearest(&word.to_uppercase(), &words);
            return Err((start, Fault::Word { word: word.to_owned(), nearest }));
        };
        self.skip();
        let at = self.at;
        let text = match kind.word() {
            "" => self.name("the name of a computation")?,
            // Their label may be left out.
            _ if kind.has_files() && !self.rest().starts_with(['\'', '|']) => String::new(),
            _ => self.string()?,
        };
        let value = kind.value(&text).map_err(|error| (at, Fault::Name(error)))?;
        Ok((kind, value))
    }

    /// Ends a node behind its parenthesis, where its slice may stand.
    fn end(&mut self) -> Result<Option<NodeId>, Wrong> {
        if self.stack.last().is_some_and(|open| open.label.is_some()) {
            self.at -= 1;
            return Err(self.expected("an expression after the label"));
        }
        let Some(open) = self.stack.pop() else {
            self.at -= 1;
            return Err(self.expected("an expression"));
        };
        let UnfinishedNode { kind, value, mut files, inputs, at, number, .. } = open;
        let outputs = if kind.has_slice() { self.slice()? } else { None };
        files.sort_by(|(a, _), (b, _)| a.rank().cmp(&b.rank()));
        let (files, places): (Vec<_>, Vec<_>) = files.into_iter().unzip();
        let node = self.expression.push(ExpressionNode { kind, value, files, inputs, outputs });
        if !places.is_empty() {
            self.files.insert(node, places);
        }
        self.places.push(at);
        if let Some(number) = number {
            self.shared.insert(number, SharedExpression::Done(node));
        }
        Ok(Some(node))
    }

    fn slice(&mut self) -> Result<Option<WrittenSlice>, Wrong> {
        let end = self.at;
        self.skip();
        let start = self.at;
        if !self.eat("[") {
            self.at = end;
            return Ok(None);
        }
        let mut outputs: Vec<String> = Vec::new();
        loop {
            self.skip();
            let at = self.at;
            let output = if self.rest().starts_with('|') {
                self.bars()?
            } else {
                self.take(is_plain_in_slice).to_owned()
            };
            if self.at == at && outputs.is_empty() && self.eat("]") {
                return Err((start, Fault::NoOutput));
            }
            if output.is_empty() {
                self.at = at;
                return Err(self.expected("the number or name of an output"));
            }
            if let Some((_, error)) = WrittenSlice::parse([&*output]).wrong().next() {
                return Err((at, Fault::Slice(error)));
            }
            outputs.push(output);
            self.skip();
            if self.eat("]") {
                break;
            }
            if !self.eat(",") {
                return Err(self.expected("`,` or `]`"));
            }
        }
        if outputs.len() > MAX_ARITY {
            return Err((start, Fault::TooMany(outputs.len())));
        }
        Ok(Some(WrittenSlice::parse(outputs.iter().map(String::as_str))))
    }

    /// The mistake that the text ends within an expression.
    fn unclosed(&self) -> Wrong {
        let begin = self.stack.last().map_or(0, |open| open.at);
        (self.at, Fault::Unclosed(Position::of(self.source, begin)))
    }
}

impl Parser<'_> {
    /// Reads a file of a node of this kind. Returns false, and reads nothing, if a label of an input stands here.
    pub(super) fn rule_file(&mut self, kind: NodeKind) -> Result<bool, Wrong> {
        let at = self.at;
        self.eat(":");
        let is_plain = !self.rest().starts_with('|');
        let name = self.name("the name of a file or of an input")?;
        // In bars, a word is only a label.
        let is_file = is_plain || name.contains('/');
        let Some(shape) = RuleShape::of(kind, &name).filter(|_| is_file) else {
            self.check_label(kind, &name, is_plain).map_err(|fault| (at, fault))?;
            self.at = at;
            return Ok(false);
        };
        let mut places = FilePlaces { name: at, lines: Vec::new() };
        let mut rows = Vec::new();
        match shape {
            RuleShape::Nothing => {}
            RuleShape::Line => {
                self.skip();
                places.lines.push(self.at);
                rows.push(vec![self.string()?.into_boxed_str()]);
            }
            RuleShape::Lines => {
                while self.skips_to_string() {
                    places.lines.push(self.at);
                    rows.push(vec![self.string()?.into_boxed_str()]);
                }
                if self.stands_at_word() {
                    return Err(self.expected("a text in quotes, as in '1'"));
                }
            }
            RuleShape::Sheet => {
                while self.skips_to_row() {
                    places.lines.push(self.at);
                    rows.push(self.row()?);
                }
                if self.stands_at_word() || self.rest().starts_with(['\'', '|']) {
                    return Err(self.expected("a row in parentheses, as in ('a' 'b')"));
                }
            }
        }
        let Some(open) = self.stack.last_mut() else { return Ok(true) };
        if open.files.iter().any(|(file, _)| *file.name == *name) {
            return Err((at, Fault::FileTwice(name)));
        }
        open.files.push((RuleFile { name: name.into(), rows }, places));
        Ok(true)
    }

    /// Checks what stands where a label may: a word for an input of a sweep, or any label in bars.
    fn check_label(&self, kind: NodeKind, name: &str, is_plain: bool) -> Result<(), Fault> {
        let count = self.stack.last().map_or(0, |open| open.inputs.len());
        let role = SWEEP_ROLES.iter().position(|role| *role == name).filter(|_| is_plain);
        let is_label = kind.has_inputs() && !name.contains('/');
        if !is_label || (is_plain && role.is_none()) {
            let (name, nearest) = (name.to_owned(), nearest_word(kind, name));
            return Err(Fault::NoWord { kind, name, nearest });
        }
        match role {
            Some(role) if role != count && count < SWEEP_ROLES.len() => Err(Fault::RoleOrder),
            _ => Ok(()),
        }
    }

    /// Reads a row of a sheet, in parentheses.
    fn row(&mut self) -> Result<Vec<Box<str>>, Wrong> {
        self.eat("(");
        let mut cells = Vec::new();
        loop {
            self.skip();
            if !cells.is_empty() && self.eat(")") {
                return Ok(cells);
            }
            cells.push(self.string()?.into_boxed_str());
        }
    }

    fn skips_to_string(&mut self) -> bool {
        self.skip();
        self.rest().starts_with(['\'', '|'])
    }

    /// Whether a row stands next, rather than a computation.
    fn skips_to_row(&mut self) -> bool {
        self.skip();
        let at = self.at;
        let is_row = self.eat("(") && (self.skips_to_string() || self.rest().starts_with(')'));
        self.at = at;
        is_row
    }

    /// Whether a word stands here that begins no node.
    fn stands_at_word(&mut self) -> bool {
        let at = self.at;
        let is_word = !self.take(char::is_alphanumeric).is_empty();
        let is_node = self.rest().starts_with('(');
        self.at = at;
        is_word && !is_node
    }
}

impl<'a> Parser<'a> {
    /// Reads the number of a shared expression.
    pub(super) fn number(&mut self) -> Result<u32, Wrong> {
        let at = self.at;
        let digits = self.take(|c| c.is_ascii_digit());
        if digits.is_empty() {
            return Err(self.expected("a number after `#`"));
        }
        digits.parse().map_err(|_| (at, Fault::Number(digits.to_owned())))
    }

    /// Reads a name, plain or in bars.
    pub(super) fn name(&mut self, what: &str) -> Result<String, Wrong> {
        if self.rest().starts_with('|') {
            return self.bars();
        }
        let name = self.take(is_plain);
        if name.is_empty() || name.starts_with([':', '#']) {
            self.at -= name.len();
            return Err(self.expected(what));
        }
        Ok(name.to_owned())
    }

    /// Reads a string, in quotes or in bars.
    pub(super) fn string(&mut self) -> Result<String, Wrong> {
        let start = self.at;
        if self.rest().starts_with('|') {
            return self.bars();
        }
        if !self.eat("'") {
            return Err(self.expected("a name in quotes, as in 'x'"));
        }
        let mut text = String::new();
        loop {
            text += self.take(|c| c != '\'' && !c.is_control());
            if !self.eat("'") {
                return Err((start, Fault::Open("the name in quotes")));
            }
            if ends_string(self.rest().chars().next()) {
                return Ok(text);
            }
            text.push('\'');
        }
    }

    pub(super) fn bars(&mut self) -> Result<String, Wrong> {
        let start = self.at;
        let open = (start, Fault::Open("the name in bars"));
        self.eat("|");
        let mut text = String::new();
        loop {
            text += self.take(|c| !matches!(c, '|' | '\\'));
            if self.eat("|") {
                return Ok(text);
            }
            let at = self.at;
            if !self.eat("\\") {
                return Err(open);
            }
            let Some(c) = self.rest().chars().next() else { return Err(open) };
            self.at += c.len_utf8();
            match c {
                '|' | '\\' => text.push(c),
                'x' => {
                    let digits = self.take(|c| c.is_ascii_hexdigit());
                    let c = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
                    let (Some(c), true) = (c, self.eat(";")) else {
                        return Err((at, Fault::Escape));
                    };
                    text.push(c);
                }
                _ => return Err((at, Fault::Escape)),
            }
        }
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    /// Goes over white space and comments.
    pub(super) fn skip(&mut self) {
        loop {
            self.take(char::is_whitespace);
            if !self.rest().starts_with(';') {
                return;
            }
            self.take(|c| c != '\n');
        }
    }

    /// Goes over a text if it stands here.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let is_here = self.rest().starts_with(text);
        if is_here {
            self.at += text.len();
        }
        is_here
    }

    /// Goes over all characters that fit.
    pub(super) fn take(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// The mistake that something else stands here.
    pub(super) fn expected(&self, what: &str) -> Wrong {
        let rest = self.rest();
        let word = rest.find(|c| !is_plain(c)).unwrap_or(rest.len());
        let found = match rest.chars().next() {
            None => "the end".to_owned(),
            Some(c) if word == 0 => format!("{:?}", c.to_string()),
            Some(_) => format!("{:?}", rest[..word].chars().take(20).collect::<String>()),
        };
        (self.at, Fault::Expected { expected: what.to_owned(), found })
    }
}
