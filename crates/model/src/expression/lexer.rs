//! The characters of a text: names, strings, white space and comments.

use super::grammar::{NodeKind, begins_level, ends_string, is_plain, is_reference};
use super::mistake::{Fault, Wrong};

/// A text, and how far it was read.
#[derive(Clone, Copy)]
pub(super) struct Lexer<'a> {
    pub(super) source: &'a str,
    /// In bytes.
    pub(super) at: usize,
    /// The first comment that looks like a part of the workflow: it is behind one in its line, and begins as one.
    pub(super) code_in_comment: Option<usize>,
}

impl<'a> Lexer<'a> {
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

    /// Reads a name that stands for an expression, plain or in bars, if one comes next.
    pub(super) fn reference(&mut self) -> Result<Option<String>, Wrong> {
        if self.rest().starts_with('|') {
            return self.bars().map(Some);
        }
        if self.rest().starts_with(|c: char| c.is_ascii_digit() || c == ':')
            || begins_level(self.rest())
        {
            return Ok(None);
        }
        let name = self.take(is_reference);
        Ok((!name.is_empty()).then(|| name.to_owned()))
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
            text += self.take(|c| c == '\t' || c != '\'' && !c.is_control());
            if !self.eat("'") {
                let rest = self.rest();
                return Err(match rest.chars().next() {
                    Some(c) if c != '\n' && !rest.starts_with("\r\n") => {
                        (self.at, Fault::Control(c))
                    }
                    _ => (start, Fault::Open("the name in quotes")),
                });
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
            if !self.stands_at_comment() {
                return;
            }
            let at = self.at;
            let comment = self.take(|c| c != '\n');
            let before = self.source[..at].rsplit('\n').next().unwrap_or_default();
            if let Some(rest) = comment.strip_prefix(';')
                && !before.trim().is_empty()
                && is_like_code(rest.trim_start_matches(';').trim_start())
            {
                self.code_in_comment.get_or_insert(at);
            }
        }
    }

    /// Whether a comment begins here: with `;`, or with a `#` that no number follows.
    fn stands_at_comment(&self) -> bool {
        let rest = self.rest();
        rest.starts_with(';')
            || rest
                .strip_prefix('#')
                .is_some_and(|it| !it.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// Goes over white space within the line.
    pub(super) fn skip_in_line(&mut self) {
        self.take(|c| c.is_whitespace() && c != '\n');
    }

    /// Whether nothing but a comment stands in the rest of the line.
    pub(super) fn is_at_line_end(&self) -> bool {
        matches!(self.rest().chars().next(), None | Some('\n')) || self.stands_at_comment()
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

/// Whether a text begins like a part of an expression: with a parenthesis, a word of a node, or a name behind a colon.
fn is_like_code(text: &str) -> bool {
    let is_named = text.strip_prefix(':').is_some_and(|it| it.starts_with(char::is_alphabetic));
    let mut words = NodeKind::words();
    is_named
        || text.starts_with('(')
        || words.any(|word| text.strip_prefix(word).is_some_and(|rest| rest.starts_with('(')))
}
