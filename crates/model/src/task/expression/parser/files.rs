//! The files of a node: a name behind a colon, and lines.

use super::{FilePlaces, Parser, Wrong};
use crate::task::expression::grammar::{RuleShape, SWEEP_ROLES};
use crate::task::expression::rules::nearest_word;
use crate::task::expression::{Fault, NodeKind, RuleFile};

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
