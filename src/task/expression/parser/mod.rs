//! Reads an expression from text. The parser keeps its own stack, so that no depth is too great.

use std::collections::{HashMap, HashSet};

use super::grammar::{INPUTS, ends_string, is_plain};
use super::{
    Expression, ExpressionInput, ExpressionNode, Fault, Mistake, NodeKind, Position, Text,
};
use crate::task::name::{InputName, nearest};
use crate::task::slice::{MAX_ARITY, Slice};
use crate::task::workflow::NodeId;

/// A text, and where its nodes stand.
#[derive(Debug)]
pub struct Parsed<'a> {
    /// The result of parsing.
    pub text: Text,
    source: &'a str,
    /// Where each node begins, in bytes.
    places: Vec<usize>,
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
        let at = self.places.get(node.index()).copied().unwrap_or_default();
        Mistake::at(self.source, at, fault)
    }
}

/// Reads a text.
///
/// # Errors
///
/// Tells the first place where the text is not what [`Text::write`] writes, and what was expected
/// there.
pub fn parse(source: &str) -> Result<Parsed<'_>, Mistake> {
    let at = if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut parser = Parser {
        source,
        at,
        expression: Expression::default(),
        places: Vec::new(),
        shared: HashMap::new(),
        stack: Vec::new(),
    };
    match parser.text() {
        Ok(inputs) => {
            let text = Text { inputs, expression: parser.expression };
            Ok(Parsed { text, source, places: parser.places })
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
        let takes = self.stack.last().is_none_or(|open| open.kind.has_inputs());
        if !takes {
            return Err(self.expected("`)`"));
        }
        if !self.eat(":") {
            return self.begin();
        }
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
        let (inputs, label) = (Vec::new(), None);
        self.stack.push(UnfinishedNode { kind, value, inputs, at, number, label });
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
        let UnfinishedNode { kind, value, inputs, at, number, .. } = open;
        let outputs = if kind.has_slice() { self.slice()? } else { None };
        let node = self.expression.push(ExpressionNode { kind, value, inputs, outputs });
        self.places.push(at);
        if let Some(number) = number {
            self.shared.insert(number, SharedExpression::Done(node));
        }
        Ok(Some(node))
    }

    fn slice(&mut self) -> Result<Option<Slice>, Wrong> {
        let end = self.at;
        self.skip();
        let start = self.at;
        if !self.eat("[") {
            self.at = end;
            return Ok(None);
        }
        let mut numbers = Vec::new();
        loop {
            self.skip();
            let at = self.at;
            let number = self.take(|c| !matches!(c, ',' | ']' | '(' | ')' | ';') && is_plain(c));
            if number.is_empty() && numbers.is_empty() && self.eat("]") {
                return Err((start, Fault::NoOutput));
            }
            if number.is_empty() {
                return Err(self.expected("the number of an output"));
            }
            let (_, wrong) = Slice::parse([number]);
            if let Some((_, error)) = wrong.into_iter().next() {
                return Err((at, Fault::Slice(error)));
            }
            numbers.push(number);
            self.skip();
            if self.eat("]") {
                break;
            }
            if !self.eat(",") {
                return Err(self.expected("`,` or `]`"));
            }
        }
        if numbers.len() > MAX_ARITY {
            return Err((start, Fault::TooMany(numbers.len())));
        }
        Ok(Some(Slice::parse(numbers).0))
    }

    /// Reads the number of a shared expression.
    fn number(&mut self) -> Result<u32, Wrong> {
        let at = self.at;
        let digits = self.take(|c| c.is_ascii_digit());
        if digits.is_empty() {
            return Err(self.expected("a number after `#`"));
        }
        digits.parse().map_err(|_| (at, Fault::Number(digits.to_owned())))
    }

    /// Reads a name, plain or in bars.
    fn name(&mut self, what: &str) -> Result<String, Wrong> {
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
    fn string(&mut self) -> Result<String, Wrong> {
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

    fn bars(&mut self) -> Result<String, Wrong> {
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

    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    /// Goes over white space and comments.
    fn skip(&mut self) {
        loop {
            self.take(char::is_whitespace);
            if !self.rest().starts_with(';') {
                return;
            }
            self.take(|c| c != '\n');
        }
    }

    /// Goes over a text if it stands here.
    fn eat(&mut self, text: &str) -> bool {
        let is_here = self.rest().starts_with(text);
        if is_here {
            self.at += text.len();
        }
        is_here
    }

    /// Goes over all characters that fit.
    fn take(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Tells that something else stands here.
    fn expected(&self, what: &str) -> Wrong {
        let rest = self.rest();
        let word = rest.find(|c| !is_plain(c)).unwrap_or(rest.len());
        let found = match rest.chars().next() {
            None => "the end".to_owned(),
            Some(c) if word == 0 => format!("{:?}", c.to_string()),
            Some(_) => format!("{:?}", rest[..word].chars().take(20).collect::<String>()),
        };
        (self.at, Fault::Expected { expected: what.to_owned(), found })
    }

    /// Tells that the text ends within an expression.
    fn unclosed(&self) -> Wrong {
        let begin = self.stack.last().map_or(0, |open| open.at);
        (self.at, Fault::Unclosed(Position::of(self.source, begin)))
    }
}
