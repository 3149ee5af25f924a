//! The grammar of expressions, which the printer writes and the parser reads.
//!
//! ```text
//! text       = [ inputs ] { reference "=" expression | computation } expression
//! inputs     = "Inputs:" [ input { "," input } ] end of line
//! input      = ( string | reference ) [ "=" ( string { "or" string } | "OWN(" string ")" ) ]
//! expression = [ "#" number "=" ] node | "#" number "#"
//! node       = string | reference [ slice ]
//!            | "(" name { argument } ")" [ slice ]
//!            | "ALL(" argument { argument } ")"
//!            | WORD "(" [ string ] { argument } ")" [ slice ]
//! argument   = [ ":" name ] expression
//!            | ":" name { string | level | row }
//!            | ":over" ( reference { string | level } | row { row } )
//! row        = "(" ( string | level ) { string | level } ")"
//! slice      = "[" output { "," output } "]"
//! output     = number | name
//! string     = "'" any characters "'" | bars
//! level      = [ "+" | "-" ] digit { reference character }
//! reference  = reference characters, no digit and no colon first | bars
//! name       = plain characters | bars
//! bars       = "|" any characters, or \| or \\ or \xHH; "|"
//! ```
//!
//! A computation is lines: see [`TextComputation`](crate::task::TextComputation).
//!
//! Where an expression is expected, bars are a reference. White space and comments (`;`, or `#` before anything but a
//! digit, to the end of the line) may stand between all of these. In the line of the inputs, a line ends only behind a
//! comma. A quote ends a string only if it [may](ends_string), so that `'it's'` is one string. A kind of node has a
//! [`Spelling`]: neither the printer nor the parser knows kinds.

use std::fmt::{self, Write};

use crate::name::{
    ComputationName, InputName, MemberPath, NameError, StorageName, TaskPath, TreeName,
};
use crate::slice::WrittenSlice;
use crate::suggest::nearest;
use crate::sweep::{
    ALLOW_FAILED, FACTORS, PRODUCT_FILES, REPLICATES, SWEEP_FILES, SWEEP_INPUTS, SWEEP_OUTPUTS,
    WHERE, is_sheet,
};
use crate::task::{MEMBER_INPUTS, TREE_INPUTS, TREE_OUTPUTS, VALUE};

/// The word behind the lines of a text whose last line has no end.
pub(super) const UNENDED: &str = ":unended";

/// The word that begins the line with the names of the task's inputs.
pub(super) const INPUTS: &str = "Inputs:";

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// Outputs of a computation.
    Computation,
    /// An input of the task.
    Input,
    /// A file in the storage.
    Literal,
    /// A file of the task itself.
    File,
    /// A text that the workflow holds.
    Text,
    /// A Git repository at a commit.
    Tree,
    /// A file or directory within a directory.
    Member,
    /// The values of several expressions.
    All,
    /// A sub-workflow that is evaluated for each point.
    Sweep,
    /// The product of factors.
    Points,
}

/// The spelling of a kind of node, and the names of its parts.
#[derive(Clone, Copy)]
struct Spelling {
    /// The contents of the file `kind`.
    kind_file: &'static str,
    /// The word before the parenthesis. A computation has none, and its name inside.
    word: &'static str,
    reads: Reads,
    /// The names of the files beside `kind`; a name may be that of a directory of files.
    files: [&'static [&'static str]; 2],
    /// The names of its inputs, unless its value or their own names say them.
    inputs: &'static [&'static str],
    /// The names of its outputs, unless its value says them.
    outputs: &'static [&'static str],
}

/// Whether a node reads others, and may choose the outputs that it passes up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// It has no inputs.
    Nothing,
    /// It has inputs, and passes up all of them.
    ForWhole,
    /// It has inputs, and a slice of its outputs.
    ForSlice,
}

/// The spelling of a node that reads no other.
const fn leaf(kind_file: &'static str, word: &'static str) -> Spelling {
    let reads = Reads::Nothing;
    Spelling { kind_file, word, reads, files: [&[]; 2], inputs: &[], outputs: &[VALUE] }
}

impl NodeKind {
    /// All of them, in the order in which messages list them.
    const ALL: [Self; 10] = [
        Self::Computation,
        Self::Input,
        Self::Literal,
        Self::File,
        Self::Text,
        Self::Tree,
        Self::Member,
        Self::All,
        Self::Sweep,
        Self::Points,
    ];

    const fn form(self) -> Spelling {
        match self {
            Self::Computation => Spelling {
                reads: Reads::ForSlice,
                files: [&[RESOURCES], &[]],
                outputs: &[],
                ..leaf("computation", "")
            },
            Self::Input => leaf("input", "INPUT"),
            Self::Literal => leaf("literal", "FILE"),
            Self::File => leaf("file", "OWN"),
            Self::Text => leaf("text", "TEXT"),
            Self::Tree => Spelling {
                reads: Reads::ForSlice,
                inputs: &TREE_INPUTS,
                outputs: &TREE_OUTPUTS,
                ..leaf("tree", "TREE")
            },
            Self::Member => Spelling {
                reads: Reads::ForWhole,
                inputs: &MEMBER_INPUTS,
                ..leaf("member", "MEMBER")
            },
            Self::All => Spelling { reads: Reads::ForWhole, ..leaf("all", "ALL") },
            Self::Sweep => Spelling {
                reads: Reads::ForSlice,
                files: [&PRODUCT_FILES, &SWEEP_FILES],
                inputs: &SWEEP_INPUTS,
                outputs: &SWEEP_OUTPUTS,
                ..leaf("sweep", "SWEEP")
            },
            Self::Points => Spelling { files: [&PRODUCT_FILES, &[]], ..leaf("points", "POINTS") },
        }
    }

    /// The kind that the text of a file `kind` names.
    pub fn of_file(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.form().kind_file == text)
    }

    /// The kind that is written with this word.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.form().word == word)
    }

    /// All words that begin a node.
    pub(super) fn words() -> impl Iterator<Item = &'static str> {
        Self::ALL.into_iter().map(Self::word).filter(|word| !word.is_empty())
    }

    /// The contents of the file `kind`.
    pub const fn file(self) -> &'static str {
        self.form().kind_file
    }

    /// The word before the parenthesis; empty if there is none.
    pub const fn word(self) -> &'static str {
        self.form().word
    }

    /// Whether it has inputs.
    pub fn has_inputs(self) -> bool {
        self.form().reads != Reads::Nothing
    }

    /// Whether it has a slice of its outputs.
    pub fn has_slice(self) -> bool {
        self.form().reads == Reads::ForSlice
    }

    /// Whether it has files that are rules. Then its value is a label, and may be left out.
    pub fn has_files(self) -> bool {
        self.has_file(FACTORS)
    }

    /// Whether a file or directory of this name may stand beside its file `kind`, other than those that all nodes have.
    pub fn has_file(self, name: &str) -> bool {
        self.form().files.iter().any(|names| names.contains(&name))
    }

    /// The names of its inputs, in order. Those of a computation are its own; those of `ALL` are the names of what it reads.
    pub const fn inputs(self) -> &'static [&'static str] {
        self.form().inputs
    }

    /// The names of its outputs, in order; the name of a directory may end with a slash. Those of a computation are its own.
    pub const fn outputs(self) -> &'static [&'static str] {
        self.form().outputs
    }

    /// Whether it has a value, which may be left out if it is a label.
    pub fn has_value(self) -> bool {
        self != Self::All
    }

    /// Returns the value that a node of this kind has if this is written.
    pub fn value(self, text: &str) -> Result<Box<str>, NameError> {
        let value = match self {
            Self::Computation => text.parse::<ComputationName>()?.into(),
            Self::Input => text.parse::<InputName>()?.into(),
            Self::Literal => text.parse::<StorageName>()?.into(),
            Self::File => text.parse::<TaskPath>()?.into(),
            Self::Tree => text.parse::<TreeName>()?.into(),
            Self::Member => text.parse::<MemberPath>()?.into(),
            // A label, for humans; or any text.
            Self::Sweep | Self::Points | Self::Text | Self::All => text.to_owned(),
        };
        Ok(String::into_boxed_str(value))
    }
}

/// The words for the inputs of a sweep, in order.
pub(super) const SWEEP_ROLES: [&str; 2] = SWEEP_INPUTS;

/// The form of the name of a factor's file.
const FACTOR: &str = "factors/nn-NAME";

/// The words that may stand behind a colon in a node of this kind: names of files, and of inputs.
pub(super) fn words(kind: NodeKind) -> Vec<&'static str> {
    let files = kind.form().files.concat();
    let files = files.into_iter().map(|name| if name == FACTORS { FACTOR } else { name });
    files.chain(kind.inputs().iter().copied()).collect()
}

/// Returns the word that may have been meant.
pub(super) fn nearest_word(kind: NodeKind, name: &str) -> Option<String> {
    match name.split_once('/') {
        Some((dir, factor)) => {
            nearest(dir, &[FACTORS.to_owned()]).map(|dir| format!("{dir}/{factor}"))
        }
        None => {
            let words = words(kind).into_iter().filter(|word| *word != FACTOR);
            nearest(name, &words.map(str::to_owned).collect::<Vec<_>>())
        }
    }
}

/// The shape in which a file of a node is written behind its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleShape {
    /// It is empty.
    Nothing,
    /// One string.
    Line,
    /// A string for each line.
    Lines,
    /// Rows of strings in parentheses, the first one with the names of the columns.
    Sheet,
}

impl RuleShape {
    /// The shape of a file of a node of this kind; `None` if it has no such file.
    pub(super) fn for_file(kind: NodeKind, name: &str) -> Option<Self> {
        let entry = name.split('/').next().unwrap_or_default();
        let is_factor = entry == FACTORS;
        match name {
            _ if !kind.has_file(entry) || name.contains('/') != is_factor => None,
            ALLOW_FAILED => Some(Self::Nothing),
            REPLICATES | WHERE => Some(Self::Line),
            _ if is_sheet(name) => Some(Self::Sheet),
            _ => Some(Self::Lines),
        }
    }
}

/// Whether a character may stand in a name without bars.
pub(super) fn is_plain(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !matches!(c, '(' | ')' | '|' | '\\' | ';')
}

/// The word for a factor of a sweep.
pub(super) const OVER: &str = "over";

/// The word for the rows that are left out.
pub(super) const EXCLUDED: &str = "exclude";

/// The file of a node with the resources that it asks for.
pub const RESOURCES: &str = "resources";

/// The file of a node with the names of the definitions that it is, one a line.
pub const DEFINITION: &str = "definition";

/// Whether a character may stand in a name that is an expression.
pub(super) fn is_reference(c: char) -> bool {
    is_plain(c)
        && !matches!(c, ',' | '=' | '[' | ']' | '\'' | '"' | '#' | '`')
        && !matches!(c, '\u{b4}' | '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}')
}

/// Whether a text begins with a number, which may be a level without quotes.
pub(super) fn begins_level(text: &str) -> bool {
    text.strip_prefix(['+', '-']).unwrap_or(text).starts_with(|c: char| c.is_ascii_digit())
}

/// Whether a quote ends a string if this stands behind it.
pub(super) fn ends_string(next: Option<char>) -> bool {
    next.is_none_or(|c| c == ',' || !is_plain(c))
}

/// A label of an input of a sweep: in bars, since plain words are names of files or of inputs.
pub(super) struct SweepLabel<'a>(pub(super) &'a str);

impl fmt::Display for SweepLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        in_bars(self.0, f)
    }
}

/// A name as it is written: in bars only if it could not be read back otherwise.
pub(super) struct BareName<'a>(pub(super) &'a str);

impl fmt::Display for BareName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = !self.0.starts_with([':', '#']) && self.0.chars().all(is_plain);
        if is_plain && !self.0.is_empty() { f.write_str(self.0) } else { in_bars(self.0, f) }
    }
}

/// A slice as it is written: `[00, sum]`. A name is in bars only if it could not be read back otherwise.
pub(super) struct SliceText<'a>(pub(super) &'a WrittenSlice);

impl fmt::Display for SliceText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('[')?;
        for (at, text) in self.0.texts().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            let is_plain = !text.is_empty() && text.chars().all(is_plain_in_slice);
            if is_plain { f.write_str(&text)? } else { in_bars(&text, f)? }
        }
        f.write_char(']')
    }
}

/// Whether a character may stand in a slice without bars.
pub(super) fn is_plain_in_slice(c: char) -> bool {
    is_plain(c) && !matches!(c, ',' | ']')
}

/// A string as it is written: in bars only if it could not be read back otherwise.
pub(super) struct QuotedName<'a>(pub(super) &'a str);

impl fmt::Display for QuotedName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_awkward = self.0.contains(char::is_control)
            // Behind the last quote comes the one that ends the string.
            || (self.0.match_indices('\'')).any(|(at, _)| {
                at + 1 < self.0.len() && ends_string(self.0[at + 1..].chars().next())
            });
        if is_awkward { in_bars(self.0, f) } else { write!(f, "'{}'", self.0) }
    }
}

/// The contents of a file as they are written: `'x'` for a line, else `TEXT('x' 'y')`.
pub(super) struct WrittenLines<'a>(pub(super) &'a str);

impl fmt::Display for WrittenLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.strip_suffix('\n') {
            Some(line)
                if !line.contains(char::is_control)
                    && QuotedName(line).to_string().starts_with('\'') =>
            {
                write!(f, "{}", QuotedName(line))
            }
            _ => write!(f, "TEXT({})", TextLines(self.0)),
        }
    }
}

/// A text, displayed as the strings between the parentheses of `TEXT(...)`.
pub(super) struct TextLines<'a>(pub(super) &'a str);

impl fmt::Display for TextLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.0.strip_suffix('\n').unwrap_or(self.0);
        if !self.0.is_empty() {
            for (at, line) in lines.split('\n').enumerate() {
                write!(f, "{}{}", if at == 0 { "" } else { " " }, QuotedName(line))?;
            }
            if !self.0.ends_with('\n') {
                write!(f, " {UNENDED}")?;
            }
        }
        Ok(())
    }
}

pub(super) fn in_bars(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('|')?;
    for c in text.chars() {
        match c {
            '|' | '\\' => write!(f, "\\{c}")?,
            _ if c.is_control() => write!(f, "\\x{:x};", u32::from(c))?,
            _ => f.write_char(c)?,
        }
    }
    f.write_char('|')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_that_could_not_be_read_back_is_quoted() {
        for plain in ["add", "a-b", "it's", "f[0]", "a:b", "a#1", "\"a\"", "計算", "INPUT"] {
            assert_eq!(BareName(plain).to_string(), plain);
        }
        for (name, written) in [
            ("", "||"),
            ("a b", "|a b|"),
            ("a(b)", "|a(b)|"),
            ("a|b\\", "|a\\|b\\\\|"),
            (":a", "|:a|"),
            ("#1", "|#1|"),
            ("a;b", "|a;b|"),
            ("a\n\u{1b}", "|a\\xa;\\x1b;|"),
        ] {
            assert_eq!(BareName(name).to_string(), written);
        }
        assert_eq!(QuotedName("a b|c)\\").to_string(), "'a b|c)\\'");
        for plain in ["it's", "'", "a''", "''a"] {
            assert_eq!(QuotedName(plain).to_string(), format!("'{plain}'"));
        }
        for awkward in ["dogs' tails", "a')", "a',b"] {
            assert_eq!(QuotedName(awkward).to_string(), format!("|{awkward}|"));
        }
    }

    #[test]
    fn every_kind_is_found_by_its_words() {
        for kind in NodeKind::ALL {
            assert_eq!(NodeKind::of_file(kind.file()), Some(kind));
            assert_eq!(NodeKind::of_word(kind.word()), Some(kind));
        }
        let words = NodeKind::words().collect::<Vec<_>>();
        assert_eq!(
            words,
            ["INPUT", "FILE", "OWN", "TEXT", "TREE", "MEMBER", "ALL", "SWEEP", "POINTS"]
        );
    }

    #[test]
    fn editors_highlight_the_words_of_all_kinds() {
        let words = NodeKind::words().collect::<Vec<_>>();
        let vim = include_str!("../../../../editors/vim/syntax/compeval.vim");
        assert!(vim.contains(&format!("({}\\)", words.join("\\|"))));
        let textmate = include_str!("../../../../editors/textmate/compeval.tmLanguage.json");
        assert!(textmate.contains(&format!("(?:{})", words.join("|"))));
    }
}
