//! Reads the text of a workflow. The parser keeps its own stack, so that no depth is too great.

use std::collections::HashMap;

use super::definitions::{DefinedExpression, FilePlaces, RawKind, RawNode, RawNodeId, resolve};
use super::factor_levels::levels;
use super::grammar::{
    EXCLUDED, INPUTS, NodeKind, OVER, RESOURCES, RuleShape, SWEEP_ROLES, UNENDED, begins_level,
    is_plain, is_plain_in_slice, is_reference, nearest_word,
};
use super::input_line::{WrittenInputs, inputs};
use super::lexer::Lexer;
use super::mistake::{Fault, LineKind, Mistake, Position, Wrong};
use super::sweeps::{RuleFile, check_resources};
use super::text_computation::{call_of, unindented};
use super::{Parsed, Text};
use crate::slice::{MAX_ARITY, WrittenSlice};
use crate::suggest::nearest;
use crate::sweep::{EXCLUDE, FACTORS, SHEET_SUFFIX, WHERE};

use crate::task::{ROOT_LABEL, TextComputation};

/// Reads a text.
///
/// # Errors
///
/// Returns the first place where the text does not follow the grammar, and what was expected there.
pub fn parse(source: &str) -> Result<Parsed<'_>, Mistake> {
    let at = if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut parser = Parser {
        lexer: Lexer { source, at, code_in_comment: None },
        raw: Vec::new(),
        definitions: Vec::new(),
        defined: HashMap::new(),
        computations: Vec::new(),
        heads: HashMap::new(),
        counted: (0, 1),
        literals: Vec::new(),
        shared: HashMap::new(),
        stack: Vec::new(),
    };
    parser.text().map_err(|(at, fault)| Mistake::at(source, at, fault))
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// All nodes and names, each after the ones that it reads.
    raw: Vec<RawNode>,
    definitions: Vec<DefinedExpression>,
    /// The number of the definition of each name.
    defined: HashMap<Box<str>, usize>,
    /// The computations, and the byte behind each.
    computations: Vec<(TextComputation, usize)>,
    /// The lines of the heads of computations, by their names.
    heads: HashMap<String, usize>,
    /// A byte, and its line.
    counted: (usize, usize),
    literals: Vec<Box<str>>,
    shared: HashMap<u32, SharedExpression>,
    /// The expressions around the place.
    stack: Vec<UnfinishedNode>,
}

/// The known facts of a number.
#[derive(Clone, Copy)]
enum SharedExpression {
    /// Its expression is being read.
    Open,
    Done(RawNodeId),
}

/// A node whose inputs are being read.
struct UnfinishedNode {
    kind: NodeKind,
    value: Box<str>,
    files: Vec<(RuleFile, FilePlaces)>,
    inputs: Vec<(Option<Box<str>>, RawNodeId)>,
    /// The byte at which it begins.
    at: usize,
    number: Option<u32>,
    /// The label of the input that comes next.
    label: Option<Box<str>>,
}

impl<'a> Parser<'a> {
    fn text(&mut self) -> Result<Parsed<'a>, Wrong> {
        let parts = self.parts();
        let (inputs, root) = parts.map_err(|wrong| match self.computations.last() {
            Some((last, end)) => unindented(self.lexer.source, last, *end, wrong),
            None => wrong,
        })?;
        let has_inputs = inputs.is_some();
        let WrittenInputs { names, defaults, places: inputs_at } = inputs.unwrap_or_default();
        let raw = std::mem::take(&mut self.raw);
        let resolved = resolve(raw, &self.definitions, &self.defined, &names, root)?;
        let text = Text {
            inputs: has_inputs.then_some(names),
            defaults,
            computations: self.computations.drain(..).map(|(it, _)| it).collect(),
            definitions: resolved.definitions,
            expression: resolved.expression,
        };
        Ok(Parsed {
            text,
            literals: std::mem::take(&mut self.literals),
            source: self.lexer.source,
            line_ends: self.lexer.source.match_indices('\n').map(|(at, _)| at).collect(),
            inputs: inputs_at,
            definitions: self.definitions.iter().map(|it| it.at).collect(),
            code_in_comment: self.lexer.code_in_comment,
            places: resolved.places,
            files: resolved.files,
        })
    }

    /// Reads the inputs, definitions and computations, and the workflow. Returns the inputs, if they are named, and the workflow.
    fn parts(&mut self) -> Result<(Option<WrittenInputs>, RawNodeId), Wrong> {
        self.lexer.skip();
        let inputs = if self.lexer.eat(INPUTS) { Some(inputs(&mut self.lexer)?) } else { None };
        let root = loop {
            self.lexer.skip();
            let at = self.lexer.at;
            let line = self.line_of(at);
            if let Some(computation) = self.lexer.computation(line)? {
                let name = computation.name.to_string();
                if let Some(line) = self.heads.insert(name.clone(), line) {
                    let first = Position { line, column: 1 };
                    return Err((at, Fault::ComputationTwice(name, first)));
                }
                self.computations.push((computation, self.lexer.at));
                continue;
            }
            if let Some((last, end)) = self.computations.last()
                && self.definitions.last().is_none_or(|it| it.at < *end)
                && !matches!(self.lexer.source[..at].chars().next_back(), None | Some('\n'))
                && at < self.lexer.source.len()
            {
                return Err((at, Fault::IndentedBehind(last.name.to_string())));
            }
            let Some(name) = self.definition()? else {
                if let Some((last, end)) = self.computations.last()
                    && at == self.lexer.source.len()
                    && self.definitions.last().is_none_or(|it| it.at < *end)
                {
                    let (name, call) = (last.name.to_string(), call_of(last));
                    return Err((at, Fault::NoCall { name, call }));
                }
                if let Some(last) = self.definitions.last()
                    && at == self.lexer.source.len()
                {
                    return Err((last.at, Fault::NoWorkflow(last.name.to_string())));
                }
                break self.expression()?;
            };
            if &*name == ROOT_LABEL {
                return Err((at, Fault::DefinedRoot(name.into())));
            }
            NodeKind::Input.value(&name).map_err(|error| (at, Fault::Name(error)))?;
            if let Some(first) = self.defined.insert(name.clone(), self.definitions.len()) {
                let first = Position::locate(self.lexer.source, self.definitions[first].at);
                return Err((at, Fault::DefinedTwice(name.into(), first)));
            }
            let root = self.expression()?;
            self.definitions.push(DefinedExpression { name, at, root });
        };
        self.lexer.skip();
        if self.lexer.at < self.lexer.source.len() {
            if self.lexer.stands_at_computation() {
                return Err((self.lexer.at, Fault::ComputationBehind));
            }
            let is_bracket = self.lexer.rest().starts_with(')');
            return Err((self.lexer.at, Fault::BehindWorkflow { is_bracket }));
        }
        Ok((inputs, root))
    }

    /// The number of the line of a byte. Each one is behind the one before.
    fn line_of(&mut self, at: usize) -> usize {
        let (before, line) = self.counted;
        let line = line + self.lexer.source[before..at].matches('\n').count();
        self.counted = (at, line);
        line
    }

    /// Reads the name of a definition and its `=`, if these come next.
    fn definition(&mut self) -> Result<Option<Box<str>>, Wrong> {
        let at = self.lexer.at;
        if let Some(name) = self.lexer.reference()? {
            self.lexer.skip();
            if self.lexer.eat("=") {
                return Ok(Some(name.into()));
            }
        }
        self.lexer.at = at;
        Ok(None)
    }

    /// Reads a whole expression.
    fn expression(&mut self) -> Result<RawNodeId, Wrong> {
        let mut ended = self.begin()?;
        loop {
            if let Some(node) = ended {
                let Some(open) = self.stack.last_mut() else { return Ok(node) };
                let label = open.label.take();
                open.inputs.push((label, node));
            }
            self.lexer.skip();
            ended = if self.lexer.eat(")") { self.end()? } else { self.argument()? };
        }
    }

    /// Reads a label if there is one, and begins an expression that a node reads.
    fn argument(&mut self) -> Result<Option<RawNodeId>, Wrong> {
        if self.lexer.at == self.lexer.source.len() {
            return Err(self.unclosed());
        }
        let Some(kind) = self.stack.last().map(|open| open.kind) else { return self.begin() };
        let is_named = self.lexer.rest().starts_with(':');
        if !(kind.has_inputs() || kind.has_files() && is_named) {
            return Err(self.lexer.expected("`)`"));
        }
        if !is_named {
            return self.begin();
        }
        let may_be_file =
            kind.has_files() || kind == NodeKind::Computation && self.stands_at_resources();
        if may_be_file && self.rule_file(kind)? {
            return Ok(None);
        }
        self.lexer.eat(":");
        let label = self.lexer.name("a label")?;
        if let Some(open) = self.stack.last_mut() {
            open.label = Some(label.into());
        }
        self.begin()
    }

    /// Begins an expression: returns it if it is a text, a name, or a shared one that was read before.
    fn begin(&mut self) -> Result<Option<RawNodeId>, Wrong> {
        self.lexer.skip();
        let at = self.lexer.at;
        let mut number = None;
        if self.lexer.eat("#") {
            let shared = self.lexer.number()?;
            if self.lexer.eat("#") {
                return match self.shared.get(&shared) {
                    Some(SharedExpression::Done(node)) => Ok(Some(*node)),
                    Some(SharedExpression::Open) => Err((at, Fault::Cycle(shared))),
                    None => Err((at, Fault::Unknown(shared))),
                };
            }
            if !self.lexer.eat("=") {
                return Err(self.lexer.expected("`=` or `#` after the number"));
            }
            if self.shared.insert(shared, SharedExpression::Open).is_some() {
                return Err((at, Fault::Twice(shared)));
            }
            number = Some(shared);
            self.lexer.skip();
        }
        if let Some(leaf) = self.leaf()? {
            self.raw.push(RawNode { at, kind: leaf });
            let id = self.raw.len() - 1;
            if let Some(number) = number {
                self.shared.insert(number, SharedExpression::Done(id));
            }
            return Ok(Some(id));
        }
        let (kind, value) = self.head()?;
        let (files, inputs, label) = (Vec::new(), Vec::new(), None);
        self.stack.push(UnfinishedNode { kind, value, files, inputs, at, number, label });
        Ok(None)
    }

    /// Reads a text in quotes, or a name with its slice, if one comes next.
    fn leaf(&mut self) -> Result<Option<RawKind>, Wrong> {
        if self.lexer.rest().starts_with('\'') {
            let value = (self.lexer.string()? + "\n").into();
            return Ok(Some(RawKind::leaf(NodeKind::Text, value)));
        }
        let at = self.lexer.at;
        let word = self.lexer.take(char::is_alphanumeric);
        let is_head = self.lexer.rest().starts_with('(');
        self.lexer.at = at;
        if is_head {
            return Ok(None);
        }
        let Some(name) = self.lexer.reference()? else {
            let c = self.lexer.rest().chars().next();
            return Err(match c {
                Some(c) if c.is_ascii_digit() || matches!(c, '+' | '-') => {
                    let number = self.lexer.take(|c| is_plain(c) && c != ',').to_owned();
                    let open = self.stack.last().map(|it| (it.label.as_deref(), &*it.inputs));
                    let (label, inputs) = open.unwrap_or_default();
                    RawNode::unquoted(at, number, label, inputs, &self.raw)
                }
                Some(
                    c @ ('"' | '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}' | '\u{b4}' | '`'),
                ) => (at, Fault::Quote(c)),
                Some(',') => (at, Fault::Comma),
                _ => self.no_expression(),
            });
        };
        debug_assert!(word.is_empty() || !name.is_empty(), "a word begins a name");
        let end = self.lexer.at;
        self.lexer.skip();
        if let Some(open) = self.stack.last()
            && self.lexer.rest().starts_with('=')
        {
            let begin = Position::locate(self.lexer.source, open.at);
            return Err((at, Fault::UnclosedBefore { name, begin }));
        }
        self.lexer.at = end;
        let outputs = self.slice()?;
        Ok(Some(RawKind::Name { name: name.into(), outputs }))
    }

    fn no_expression(&self) -> Wrong {
        let words: Vec<String> = NodeKind::words().map(|word| format!("{word}(")).collect();
        self.lexer.expected(&format!(
            "an expression: a name, a text in quotes, `(`, `{}`",
            words.join("`, `")
        ))
    }

    /// Reads the beginning of a node: its kind and its value.
    fn head(&mut self) -> Result<(NodeKind, Box<str>), Wrong> {
        let start = self.lexer.at;
        let word = self.lexer.take(char::is_alphanumeric);
        if !self.lexer.eat("(") {
            self.lexer.at = start;
            return Err(self.no_expression());
        }
        let Some(kind) = NodeKind::of_word(word) else {
            let words: Vec<String> = NodeKind::words().map(str::to_owned).collect();
            let nearest = nearest(&word.to_uppercase(), &words);
            return Err((start, Fault::Word { word: word.to_owned(), nearest }));
        };
        self.lexer.skip();
        let at = self.lexer.at;
        let text = match kind {
            NodeKind::Computation => self.lexer.name("the name of a computation")?,
            NodeKind::Text => return Ok((kind, self.lines()?.into())),
            _ if !kind.has_value() => String::new(),
            // Their label may be left out.
            _ if kind.has_files() && !self.lexer.rest().starts_with(['\'', '|']) => String::new(),
            _ => self.lexer.string()?,
        };
        let value = kind.value(&text).map_err(|error| (at, Fault::Name(error)))?;
        if kind == NodeKind::Literal {
            self.literals.push(value.clone());
        }
        Ok((kind, value))
    }

    /// Reads the lines of a text.
    fn lines(&mut self) -> Result<String, Wrong> {
        let mut text = String::new();
        while self.skips_to_string() {
            text += &self.lexer.string()?;
            text.push('\n');
        }
        if self.lexer.rest().starts_with(':') {
            let at = self.lexer.at;
            if !self.lexer.eat(UNENDED) {
                return Err(self.lexer.expected(&format!("`{UNENDED}` or `)`")));
            }
            if text.pop().is_none() {
                return Err((at, Fault::NoLines));
            }
        }
        Ok(text)
    }

    /// Ends a node behind its parenthesis, where its slice may stand.
    fn end(&mut self) -> Result<Option<RawNodeId>, Wrong> {
        if self.stack.last().is_some_and(|open| open.label.is_some()) {
            self.lexer.at -= 1;
            return Err(self.lexer.expected("an expression after the label"));
        }
        let Some(open) = self.stack.pop() else {
            self.lexer.at -= 1;
            return Err(self.lexer.expected("an expression"));
        };
        let UnfinishedNode { kind, value, mut files, inputs, at, number, .. } = open;
        if kind == NodeKind::All && inputs.is_empty() {
            self.lexer.at -= 1;
            return Err(self.lexer.expected("an expression"));
        }
        let outputs = if kind.has_slice() { self.slice()? } else { None };
        files.sort_by(|(a, _), (b, _)| a.rank().cmp(&b.rank()));
        self.raw.push(RawNode { at, kind: RawKind::Node { kind, value, files, inputs, outputs } });
        let id = self.raw.len() - 1;
        if let Some(number) = number {
            self.shared.insert(number, SharedExpression::Done(id));
        }
        Ok(Some(id))
    }

    fn slice(&mut self) -> Result<Option<WrittenSlice>, Wrong> {
        let end = self.lexer.at;
        self.lexer.skip();
        let start = self.lexer.at;
        if !self.lexer.eat("[") {
            self.lexer.at = end;
            return Ok(None);
        }
        let mut outputs: Vec<String> = Vec::new();
        loop {
            self.lexer.skip();
            let at = self.lexer.at;
            let output = if self.lexer.rest().starts_with('|') {
                self.lexer.bars()?
            } else {
                self.lexer.take(is_plain_in_slice).to_owned()
            };
            if self.lexer.at == at && outputs.is_empty() && self.lexer.eat("]") {
                return Err((start, Fault::NoOutput));
            }
            if output.is_empty() {
                self.lexer.at = at;
                return Err(self.lexer.expected("the number or name of an output"));
            }
            if let Some((_, error)) = WrittenSlice::parse([&*output]).wrong().next() {
                return Err((at, Fault::Slice(error)));
            }
            outputs.push(output);
            self.lexer.skip();
            if self.lexer.eat("]") {
                break;
            }
            if !self.lexer.eat(",") {
                return Err(self.lexer.expected("`,` or `]`"));
            }
        }
        if outputs.len() > MAX_ARITY {
            return Err((start, Fault::TooMany));
        }
        Ok(Some(WrittenSlice::parse(outputs.iter().map(String::as_str))))
    }

    /// The mistake that the text ends within an expression.
    fn unclosed(&self) -> Wrong {
        let begin = self.stack.last().map_or(0, |open| open.at);
        (begin, Fault::Unclosed(Position::locate(self.lexer.source, begin)))
    }
}

impl Parser<'_> {
    /// Reads a file of a node of this kind. Returns false, and reads nothing, if a label of an input stands here.
    pub(super) fn rule_file(&mut self, kind: NodeKind) -> Result<bool, Wrong> {
        let at = self.lexer.at;
        self.lexer.eat(":");
        let is_plain = !self.lexer.rest().starts_with('|');
        let mut name = self.lexer.name("the name of a file or of an input")?;
        // In bars, a word is only a label.
        let is_file = is_plain || name.contains('/');
        if kind.has_files() && is_plain && name == OVER {
            return self.factor(at).map(|()| true);
        }
        if kind.has_files() && is_plain && name == EXCLUDED {
            name = EXCLUDE.to_owned();
        }
        let Some(shape) = RuleShape::for_file(kind, &name).filter(|_| is_file) else {
            self.check_label(kind, &name, is_plain).map_err(|fault| (at, fault))?;
            self.lexer.at = at;
            return Ok(false);
        };
        let mut places = FilePlaces { name: at, lines: Vec::new() };
        let mut rows = Vec::new();
        match shape {
            RuleShape::Nothing => {}
            RuleShape::Line if !self.skips_to_level() => {
                let expected = match name == WHERE {
                    true => "a condition in quotes, such as 'size < 100'",
                    false => "a number, such as 10",
                };
                return Err(self.lexer.expected(expected));
            }
            RuleShape::Line => {
                places.lines.push(self.lexer.at);
                rows.push(vec![self.level()?.into_boxed_str()]);
            }
            RuleShape::Lines => {
                while self.skips_to_level() {
                    places.lines.push(self.lexer.at);
                    rows.push(vec![self.level()?.into_boxed_str()]);
                }
                if kind.has_files() {
                    self.check_word(LineKind::Text)?;
                }
                if name == RESOURCES {
                    check_resources(&rows, &places.lines)?;
                }
            }
            RuleShape::Sheet => {
                rows = self.rows(&mut places)?;
            }
        }
        self.add_file(at, RuleFile { name: name.into(), rows }, places).map(|()| true)
    }

    /// Adds a file to the node that is being read.
    fn add_file(&mut self, at: usize, file: RuleFile, places: FilePlaces) -> Result<(), Wrong> {
        let Some(open) = self.stack.last_mut() else { return Ok(()) };
        if open.files.iter().any(|(other, _)| *other.name == *file.name) {
            return Err((at, Fault::FileTwice(file.name.into())));
        }
        open.files.push((file, places));
        Ok(())
    }

    /// Reads a factor: a name and its levels, or rows of names that vary together. Factors are numbered in the order in which
    /// they are written.
    fn factor(&mut self, at: usize) -> Result<(), Wrong> {
        let files = self.stack.last().map(|open| &open.files).into_iter().flatten();
        let number = files.filter(|(file, _)| file.factor().is_some()).count();
        let mut places = FilePlaces { name: at, lines: Vec::new() };
        if self.skips_to_row() {
            let rows = self.rows(&mut places)?;
            let names = rows.first().map(|row| row.join("-")).unwrap_or_default();
            let name = format!("{FACTORS}/{number:02}-{names}{SHEET_SUFFIX}");
            return self.add_file(at, RuleFile { name: name.into(), rows }, places);
        }
        let Some(name) = self.lexer.reference()? else {
            return Err(self.lexer.expected("the name of a factor, or rows such as ('a' 'b')"));
        };
        let mut rows = Vec::new();
        while self.skips_to_level() {
            let at = self.lexer.at;
            let is_plain = !self.lexer.rest().starts_with(['\'', '|']);
            let level = self.level()?;
            let levels = if is_plain { levels(&level) } else { Ok(vec![level]) };
            let levels = levels.map_err(|fault| (at, fault))?;
            places.lines.extend(levels.iter().map(|_| at));
            rows.extend(levels.into_iter().map(|level| vec![level.into_boxed_str()]));
        }
        self.check_word(LineKind::Level)?;
        let name = format!("{FACTORS}/{number:02}-{name}");
        self.add_file(at, RuleFile { name: name.into(), rows }, places)
    }

    /// Reads rows in parentheses.
    fn rows(&mut self, places: &mut FilePlaces) -> Result<Vec<Vec<Box<str>>>, Wrong> {
        let mut rows = Vec::new();
        while self.skips_to_row() {
            places.lines.push(self.lexer.at);
            rows.push(self.row()?);
        }
        self.check_word(LineKind::Row)?;
        if self.skips_to_level() {
            return Err(self.lexer.expected("a row in parentheses, as in ('a' 'b')"));
        }
        Ok(rows)
    }

    /// Whether the resources of a node come next, rather than an input with this label.
    fn stands_at_resources(&mut self) -> bool {
        let at = self.lexer.at;
        self.lexer.eat(":");
        let is_word = self.lexer.take(is_plain) == RESOURCES;
        let is_file = is_word && self.skips_to_string();
        self.lexer.at = at;
        is_file
    }

    /// Checks the text in the place of a label: a word for an input of a sweep, or any label in bars.
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
        self.lexer.eat("(");
        let mut cells = Vec::new();
        loop {
            self.lexer.skip();
            if !cells.is_empty() && self.lexer.eat(")") {
                return Ok(cells);
            }
            let at = self.lexer.at;
            let is_number = begins_level(self.lexer.rest());
            let cell = self.level()?;
            if is_number && cell.contains("..") {
                return Err((at, Fault::RangeInRow(cell)));
            }
            cells.push(cell.into_boxed_str());
        }
    }

    fn skips_to_string(&mut self) -> bool {
        self.lexer.skip();
        self.lexer.rest().starts_with(['\'', '|'])
    }

    /// Whether a text in quotes or a number stands next.
    fn skips_to_level(&mut self) -> bool {
        self.skips_to_string() || begins_level(self.lexer.rest())
    }

    /// Reads a text in quotes, or a number as it is written.
    fn level(&mut self) -> Result<String, Wrong> {
        match begins_level(self.lexer.rest()) {
            true => Ok(self.lexer.take(is_reference).to_owned()),
            false => self.lexer.string(),
        }
    }

    /// Whether a row stands next, rather than a computation.
    fn skips_to_row(&mut self) -> bool {
        self.lexer.skip();
        let at = self.lexer.at;
        let is_row =
            self.lexer.eat("(") && (self.skips_to_level() || self.lexer.rest().starts_with(')'));
        self.lexer.at = at;
        is_row
    }

    /// Checks that no word stands here that begins no node: it may be a line without quotes, or the next input without its name.
    fn check_word(&mut self, line: LineKind) -> Result<(), Wrong> {
        let at = self.lexer.at;
        let is_word = !self.lexer.take(char::is_alphanumeric).is_empty();
        let is_node = self.lexer.rest().starts_with('(');
        self.lexer.at = at;
        if !is_word || is_node {
            return Ok(());
        }
        let word = self.lexer.take(is_reference).to_owned();
        let open = self.stack.last().filter(|open| open.kind.has_inputs());
        let role = open.and_then(|open| SWEEP_ROLES.get(open.inputs.len())).copied();
        // A sweep with factors has a body only.
        let role = role.filter(|role| line == LineKind::Text || *role == SWEEP_ROLES[0]);
        Err((at, Fault::WordLine { word, line, role }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Labels, Sharing, Style};
    use super::*;

    /// The expression as it is printed, with shared parts written once.
    fn printed(source: &str) -> String {
        let parsed = parse(source).unwrap_or_else(|mistake| panic!("{source}: {mistake}"));
        let mut text = Vec::new();
        let style = Style { sharing: Sharing::Label, labels: Labels::Show };
        parsed.text.expression.write(style, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ").replace(" )", ")")
    }

    fn mistake(source: &str) -> String {
        match parse(source) {
            Ok(parsed) => panic!("{source} is {:?}", parsed.text),
            Err(mistake) => mistake.to_string(),
        }
    }

    #[test]
    fn a_name_is_the_expression_that_it_is_defined_as() {
        for (source, expected) in [
            ("x", "INPUT('x')"),
            ("'x'", "TEXT('x')"),
            ("'a\tb'", "TEXT(|a\\x9;b|)"),
            ("a = (f x)\n(g a a)", "(g #1=(f INPUT('x')) #1#)"),
            ("# why\na = b ; how\nb = (f)\n\n(g a b)[00]", "(g #1=(f) #1#)[00]"),
            ("a = (f)\n(g a[01] a[x] a[01])", "(g #1=(f)[01] (f)[x] #1#)"),
            ("a = (f)[02, x, 00]\nb = a[01, 02]\n(g b[01] b)", "(g (f)[00] (f)[x, 00])"),
            ("a = (f)[02]\na", "(f)[02]"),
            ("a = (f x)\n(g a[01])", "(g (f INPUT('x'))[01])"),
            ("|a b| = (f)\n(g |a b|)", "(g (f))"),
            ("a = #1=(f)\nb = #1#\n(g a b)", "(g #1=(f) #1#)"),
            ("(a#1 x)", "(a#1 INPUT('x'))"),
            ("SWEEP(a b :|c| d)", "SWEEP(:body INPUT('a') :points INPUT('b') :|c| INPUT('d'))"),
        ] {
            assert_eq!(printed(source), expected, "{source}");
        }
    }

    #[test]
    fn an_unused_definition_adds_no_nodes_to_the_expression() {
        let parsed = parse("a = (f unknown)\nb = (g)\nc = a\n(h b b[00])").unwrap();
        let used: Vec<_> =
            parsed.text.definitions.iter().map(|it| (&*it.name, it.nodes.len())).collect();
        assert_eq!(used, [("a", 0), ("b", 2), ("c", 0)]);
        assert_eq!(parsed.text.expression.nodes().len(), 3);
        assert_eq!([0, 1, 2].map(|number| parsed.line_of_definition(number)), [1, 2, 3]);
    }

    #[test]
    fn factors_are_numbered_as_they_are_written() {
        assert_eq!(
            printed("SWEEP((f n v) :over n 1 2..3 '4' :over ('v' 'w') (1 'x') :replicates 3)"),
            "SWEEP(:factors/00-n '1' '2' '3' '4' :factors/01-v-w.tsv ('v' 'w') ('1' 'x') :replicates '3' \
             :body (f INPUT('n') INPUT('v')))"
        );
        let parsed = parse("(f :resources 'cpus 4' 'exclusive')").unwrap();
        let node = &parsed.text.expression.nodes()[0];
        assert_eq!(node.files[0].contents(), "cpus 4\nexclusive\n");
        assert_eq!(printed("(f :resources x)"), "(f :resources INPUT('x'))", "a label");
    }

    #[test]
    fn an_amount_belongs_to_its_word() {
        for (lines, place, line) in [
            ("'cpus' 8", 15, "cpus 8"),
            ("'exclusive' 'memory' '2G' 'cpus 4'", 27, "memory 2G"),
            ("'time' {n}h", 15, "time {n}h"),
        ] {
            let lines = lines.replace("{n}h", "'{n}h'");
            let found = mistake(&format!("(f :resources {lines})"));
            let expected = format!("1:{place}: a line of resources is one text in quotes: {line}");
            assert_eq!(found, expected);
        }
        // The line without an amount is the mistake.
        assert!(parse("(f :resources 'cpus' 'memory 2G' 'exclusive')").is_ok());
    }

    #[test]
    fn each_text_of_a_node_is_one_line() {
        for (source, value) in [
            ("'a'", "a\n"),
            ("TEXT('a' 'b {x}')", "a\nb {x}\n"),
            ("TEXT('a' :unended)", "a"),
            ("TEXT()", ""),
        ] {
            let parsed = parse(source).unwrap();
            let node = &parsed.text.expression.nodes()[0];
            assert_eq!((node.kind, &*node.value), (NodeKind::Text, value), "{source}");
            assert_eq!(parse(&printed(source)).unwrap().text.expression.nodes()[0], *node);
        }
    }

    #[test]
    fn each_mistake_says_what_is_wrong() {
        for (source, expected) in [
            ("", "1:1: expected an expression"),
            ("a = (f)", "1:1: the text ends with the definition of \"a\""),
            ("(f a, b)", "1:5: there is a comma between arguments"),
            ("f(a)", "1:1: \"f\" is not a kind of node"),
            ("(f 20)", "1:4: a constant stands in quotes: 20"),
            ("(f \u{2018}a\u{2019})", "1:4: '\u{2018}' cannot begin a text"),
            ("(f \"a\")", "1:4: '\"' cannot begin a text"),
            (
                "a = (f b\nc = (g)\n(h a c)",
                "2:1: \"c\" is defined within the expression that begins at 1:5",
            ),
            ("a = (f)\na = (g)\na", "2:1: \"a\" is defined twice: first at 1:1"),
            ("Inputs: a\na = (f)\na", "2:1: \"a\" is an input of the task"),
            ("a = (f b)\nb = (g a)\na", "2:8: \"a\" is a part of what defines it"),
            ("a = a\na", "1:5: \"a\" is a part of what defines it"),
            ("(f x[00])", "1:4: \"x\" passes up one value"),
            ("a = (f)[00]\n(g a[01])", "2:4: \"a\" passes up 00, and no 01"),
            ("a = (f)\nSWEEP((g a) :over a 1)", "2:13: the sweep binds \"a\""),
            ("SWEEP((g a) :over a 4..1)", "1:21: \"4..1\" is not a range of numbers"),
            ("(f) (g)", "1:5: the expression before this is the workflow"),
            ("(f :unended x", "1:1: the expression that begins at 1:1 is not closed"),
            ("(f 'a\u{1b}b')", "1:6: the control character '\\u{1b}' cannot stand in quotes"),
            ("(f 'a\r\n)", "1:4: the name in quotes has no end"),
            ("TEXT(:unended)", "1:6: :unended needs a line of text"),
        ] {
            let found = mistake(source);
            assert!(found.starts_with(expected), "{source}: {found}");
        }
    }

    #[test]
    fn no_part_of_a_text_is_too_odd_to_be_parsed() {
        let texts = [
            "Inputs: 'x', |y\\x41;|\n(add :|a b| #1=(f.g INPUT('it's'))[0, 01] ; c\n #1# FILE('ü'))",
            "SWEEP('s' :|factors/00-a b| '1' |2| :factors/01-b.tsv ('b' 'c') (|x| '') :replicates '3'\n\
             :body (f) :|p| #1=POINTS())[00]",
            "Inputs: x, y = '20', data = OWN('data/x')\na = (f x) # why\nALL(a[x, 01] \
             SWEEP((mul a n :resources 'cpus {n}') :over n 1..3 10 :where 'n > 1' :allow-failed))",
            "(|a\\x110000;| #99999999999= :(mul) [| sum|] TEXT('a' :unended) POINTS(:over ('a' 'b') (1 2)))",
        ];
        for text in texts {
            for from in 0..=text.len() {
                for to in from..=text.len() {
                    drop(text.get(from..to).map(parse));
                }
            }
        }
    }
}
