//! The mistakes that a text can have, with the line and column of each.

use std::fmt;

use super::grammar::{NodeKind, words};
use crate::declaration::DeclarationError;
use crate::exit::Explain;
use crate::name::NameError;
use crate::resources::Resource;
use crate::slice::{MAX_ARITY, SliceError};
use crate::suggest::meant_or;
use crate::sweep::{
    EMPTY_LEVEL, FactorFault, ProductFault, STATUS, SheetFault, SheetProblem, SweepFault,
};

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, counted from one.
    pub line: usize,
    /// The character in the line, counted from one.
    pub column: usize,
}

impl Position {
    /// The place of a byte of a text.
    pub(super) fn locate(text: &str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.matches('\n').count();
        Self { line, column: 1 + before[start..].chars().count() }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Something wrong at a place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The place of the mistake.
    pub position: Position,
    /// The kind of the mistake.
    pub fault: Fault,
    /// The line around the place.
    pub excerpt: Excerpt,
}

/// A line of a text, or a part of it, and a place in it. It is displayed as two lines; the second one points at the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    line: String,
    /// The column of the place, counted from zero.
    column: usize,
}

/// A mistake, and its byte.
pub(super) type Wrong = (usize, Fault);

/// The number of characters of a line that are shown on either side of a place.
const AROUND: usize = 40;

impl Excerpt {
    /// The line around a byte of a text.
    pub(super) fn extract(text: &str, at: usize) -> Self {
        let (before, behind) = text.split_at_checked(at).unwrap_or((text, ""));
        // A line may be as long as the text.
        let mut shown: Vec<char> =
            before.chars().rev().take_while(|c| *c != '\n').take(AROUND).collect();
        shown.reverse();
        let column = shown.len();
        let rest = behind.chars().take_while(|c| *c != '\n').take(2 * AROUND - column);
        shown.extend(rest);
        if shown.last() == Some(&'\r') {
            shown.pop();
        }
        // Each takes one column.
        let shown = shown.into_iter().map(|c| match c {
            '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        });
        Self { line: shown.collect(), column }
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column } = self;
        write!(f, "    | {line}\n    | {:column$}^", "")
    }
}

impl Mistake {
    /// A mistake at a byte of a text.
    pub(super) fn at(text: &str, at: usize, fault: Fault) -> Self {
        Self { position: Position::locate(text, at), fault, excerpt: Excerpt::extract(text, at) }
    }

    /// A mistake of the text as a whole, which is not UTF-8 from a byte on.
    pub fn not_text(contents: &[u8], at: usize) -> Self {
        let before = String::from_utf8_lossy(contents.get(..at).unwrap_or(contents));
        Self::at(&before, before.len(), Fault::NotText)
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.position, self.fault)
    }
}

/// The kind of a mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum Fault {
    /// The text holds something other than UTF-8.
    #[error("the text is not UTF-8 from here on")]
    #[hint("save the text as UTF-8")]
    NotText,
    /// Something else was expected.
    #[error("expected {expected}, found {found}")]
    #[hint(None)]
    Expected {
        /// The syntax that was expected, in words.
        expected: String,
        /// The text that was found.
        found: String,
    },
    /// The text ends within an expression.
    #[error("the expression that begins at {0} is not closed")]
    #[hint("write the `)` that is missing")]
    Unclosed(Position),
    /// A word that begins no node.
    #[error("{word:?} is not a kind of node")]
    #[hint(Some(meant_or(nearest.as_deref(), node_hint(word))))]
    Word {
        word: String,
        /// The word that may have been meant.
        nearest: Option<String>,
    },
    /// A string or a name in bars has no end.
    #[error("{0} has no end")]
    #[hint("end it with the character that it begins with")]
    Open(&'static str),
    /// A control character in quotes.
    #[error("the control character {0:?} cannot stand in quotes")]
    #[hint("write it in bars, by its number, as in |a\\x1b;b|")]
    Control(char),
    /// A backslash before something that it does not belong to.
    #[error("after \\ only |, \\ and xHH; may stand")]
    #[hint("write \\\\ for a backslash")]
    Escape,
    /// A text that is not allowed as a name.
    #[error("{0}")]
    #[hint(_0.hint())]
    Name(NameError),
    /// A number or word that should be a text in quotes.
    #[error("a constant stands in quotes: {0}")]
    #[hint("write '{_0}'")]
    Unquoted(String),
    /// A line of resources without quotes.
    #[error("a line of resources is one text in quotes: {0}")]
    #[hint(Some(resource_line_hint(_0)))]
    UnquotedResource(String),
    /// A character that looks like a quote.
    #[error("{0:?} cannot begin a text")]
    #[hint("write texts in plain quotes, as in 'x'")]
    Quote(char),
    /// A comma between arguments.
    #[error("there is a comma between arguments")]
    #[hint("separate them by spaces")]
    Comma,
    /// A definition begins within an expression.
    #[error(
        "{name:?} is defined within the expression that begins at {begin}, which is not closed"
    )]
    #[hint("write the `)` that is missing before it; a label of an input is written :NAME")]
    UnclosedBefore {
        name: String,
        /// The beginning of the expression.
        begin: Position,
    },
    /// There is no expression behind the definitions.
    #[error("the text ends with the definition of {0:?}, and has no workflow")]
    #[hint("write the expression that the task is; it may be {_0} alone")]
    NoWorkflow(String),
    /// Something stands behind the last expression.
    #[error("the expression before this is the workflow, and nothing may follow it")]
    #[hint("{}", behind_workflow_hint(*is_bracket))]
    BehindWorkflow {
        /// It is a closing bracket.
        is_bracket: bool,
    },
    /// There is no expression behind the computations.
    #[error("the text ends with the computation {name:?}, and has no workflow")]
    #[hint("write what the task is at the beginning of a line, such as {call}")]
    NoCall {
        name: String,
        /// A call of the computation.
        call: String,
    },
    /// A computation stands behind the workflow.
    #[error("a computation cannot stand behind the workflow")]
    #[hint("move it up: the last expression of the text is the workflow")]
    ComputationBehind,
    /// The head of a computation is indented.
    #[error("the head of a computation is indented")]
    #[hint("write it at the beginning of the line")]
    IndentedHead,
    /// The head of a computation has no arrow.
    #[error("the head of a computation has no `->`")]
    #[hint("write its inputs, `->`, and its outputs, as in count: text -> total")]
    NoArrow,
    /// The head of a computation has no colon.
    #[error("the head of a computation has no colon behind its name")]
    #[hint("write a colon and a space, as in count: text -> total")]
    NoColon,
    /// The head of a computation has several arrows.
    #[error("there is a second `->`")]
    #[hint("write all outputs behind the first one; a name may be in quotes, as in '->'")]
    TwoArrows,
    /// The inputs of the task are not named in the first line.
    #[error("the inputs of the task stand in the first line, and no computation is called Inputs")]
    #[hint("write Inputs: NAME, NAME in the first line")]
    LateInputs,
    /// A computation has no outputs.
    #[error("the computation {0:?} has no outputs")]
    #[hint("write the names of its outputs behind `->`")]
    NoOutputs(String),
    /// Two inputs, or two outputs, of a computation are one variable.
    #[error("{0:?} and another name in this head are one variable of the environment")]
    #[hint("rename one of them: characters other than ASCII letters, digits and _ become _ there")]
    SameVariable(String),
    /// A computation has no block.
    #[error("no indented line follows the head of the computation {0:?}")]
    #[hint("write what it executes in the lines below, each indented")]
    NoBlock(String),
    /// A line of a block has another indentation than the first one.
    #[error(
        "this line does not begin with the white space with which the first line of the block begins"
    )]
    #[hint(
        "indent all lines of a block by the same spaces or tabs; they may have more behind these"
    )]
    Indent,
    /// A block has a control character.
    #[error("the control character {0:?} cannot stand in the block of a computation")]
    #[hint("write it as the language of the block spells it")]
    ControlInBlock(char),
    /// A line ends a block, and cannot be read as anything else.
    #[error("this line ends the block of {0:?}, since it is not indented, and cannot be read")]
    #[hint("indent it if it belongs to {_0}")]
    Unindented(String),
    /// An indented line follows a block that has ended.
    #[error(
        "this line is indented, and belongs to no block: a line above it has ended the block of {0:?}"
    )]
    #[hint(
        "indent the line above it, too, such as a comment; what is not in a block begins at the first column"
    )]
    IndentedBehind(String),
    /// A block is larger than a computation in one file may be.
    #[error("the computation {0:?} has more than 1 MiB")]
    #[hint("make it a directory, and put the data into files")]
    LargeBlock(String),
    /// The language of a block has other comments.
    #[error(
        "{program} does not know comments with #, in which its inputs and outputs would be declared"
    )]
    #[hint("make it a file, computations/{file}, and declare them in a comment of its language")]
    NoHashComments {
        /// The program that executes the block.
        program: Box<str>,
        /// A name for the file.
        file: String,
    },
    /// The line that says what executes a block is not its first one.
    #[error("#! stands below the first line of the block")]
    #[hint("move it up, to the line below the head")]
    LateInterpreter,
    /// A block declares its inputs or outputs.
    #[error("the head of the computation names its inputs and outputs")]
    #[hint("remove this line, and write the names in the head")]
    NamesInBlock,
    /// A declaration stands within a block.
    #[error("this line declares nothing, since others stand above it")]
    #[hint("move it up, to the beginning of the block")]
    LateDeclaration,
    /// A line of a declaration is wrong.
    #[error("{0}")]
    #[hint(_0.hint())]
    Declaration(DeclarationError),
    /// Two computations of the text have one name.
    #[error("the computation {0:?} stands twice in the text: first at {1}")]
    #[hint("rename it")]
    ComputationTwice(String, Position),
    /// Two definitions have one name.
    #[error("{0:?} is defined twice: first at {1}")]
    #[hint("rename it")]
    DefinedTwice(String, Position),
    /// A definition has the name of an input of the task.
    #[error("{0:?} is an input of the task, and cannot be defined")]
    #[hint("rename it")]
    DefinedInput(String),
    /// A sweep binds the name of a definition.
    #[error("the sweep binds {0:?}, which is defined as an expression")]
    #[hint("rename one of them")]
    BoundDefinition(String),
    /// A definition contains itself.
    #[error("{0:?} is a part of what defines it")]
    #[hint("name another expression in it")]
    DefinedByItself(String),
    /// A slice of something that passes up one value.
    #[error("{0:?} passes up one value: there is nothing to choose")]
    #[hint("leave out the brackets")]
    OnePassedUp(String),
    /// A slice of `ALL`, whose parts have slices of their own.
    #[error("{0:?} is several expressions, and has no slice of its own")]
    #[hint("define each of them, and name the one that is meant")]
    SlicedAll(String),
    /// A slice has an output that a definition does not pass up.
    #[error("{name:?} passes up {passed}, and no {output}")]
    #[hint("{}", not_passed_up_hint(output))]
    NotPassedUp {
        /// The definition.
        name: String,
        /// The outputs that it passes up.
        passed: String,
        /// The output that was asked for.
        output: String,
    },
    /// A slice has a name, and the definition has chosen outputs by numbers.
    #[error("{name:?} passes up the outputs {passed}, chosen by number, and {output} is a name")]
    #[hint(
        "choose by names where {name:?} is defined, as in [{output}]; or count here: the first output that it passes \
         up is {name}[0]"
    )]
    NamedOfNumbers {
        /// The definition.
        name: Box<str>,
        /// The outputs that it passes up.
        passed: Box<str>,
        /// The name.
        output: Box<str>,
    },
    /// A definition has the name of the root.
    #[error("{0:?} is the name of the workflow itself")]
    #[hint("give it another name")]
    DefinedRoot(String),
    /// A word without quotes behind the levels, rows or lines of a node.
    #[error("{word:?} is not a {line}")]
    #[hint(Some(bare_word_hint(word, *line, *role)))]
    WordLine {
        word: String,
        /// The kind of the entry that stands there.
        line: LineKind,
        /// The next input of the node, if there may be one.
        role: Option<&'static str>,
    },
    /// A range in a row.
    #[error("{0:?} is a range of levels, and a row has one text for each column")]
    #[hint("write rows, or quotes around it if it is a text")]
    RangeInRow(String),
    /// A malformed range of levels.
    #[error("{0:?} is not a range of numbers")]
    #[hint(
        "write 1..8, 0..100+25 or 1..64*2, without zeros at begin or end; or quotes around it if it is a text"
    )]
    Range(String),
    /// A range of too many levels.
    #[error("the range has more than {0} levels")]
    #[hint("let a computation make the points")]
    LongRange(usize),
    /// A text that has no lines, but whose last line should have no end.
    #[error(":unended needs a line of text before it")]
    #[hint("write :unended behind a line")]
    NoLines,
    /// A name that a line of a file cannot hold.
    #[error("{0:?} cannot be a line: {reason}", reason = line_fault(.0))]
    #[hint("write a text of one line, without white space around it")]
    Line(String),
    /// Two inputs of the task have one name.
    #[error("the input {0:?} is named twice")]
    #[hint("give each input a name of its own")]
    Duplicate(String),
    /// A text occurs twice among the choices of an input.
    #[error("the choice {0:?} is written twice")]
    #[hint("remove one of them")]
    SameChoice(String),
    /// A choice of an input is not a line of a file.
    #[error("the choice {0:?} is not a line of a file")]
    #[hint("leave out white space around it, and control characters; '' is the empty text")]
    Choice(String),
    /// A number that no shared expression has.
    #[error("#{0}# is not defined: there is no #{0}= before it")]
    #[hint("write #N=(...) where the expression stands for the first time")]
    Unknown(u32),
    /// A number that two expressions have.
    #[error("#{0}= is given twice")]
    #[hint("give each shared expression a number of its own")]
    Twice(u32),
    /// An expression that would contain itself.
    #[error("#{0}# is within #{0}=: the expression would contain itself")]
    #[hint("write another expression there")]
    Cycle(u32),
    /// A number too large to be one of a shared expression.
    #[error("{0} is too large")]
    #[hint("write a smaller number")]
    Number(String),
    /// A slice has something other than the number or the name of an output.
    #[error("{0}")]
    #[hint(_0.hint())]
    Slice(SliceError),
    /// A slice that passes nothing up.
    #[error("the slice chooses no output")]
    #[hint("leave out the brackets to pass up all outputs")]
    NoOutput,
    /// More inputs or outputs than two digits can count.
    #[error("there are more than {MAX_ARITY} inputs or outputs")]
    #[hint("put them into a directory, which is one value")]
    TooMany,
    /// The number of files that an expression passes up is unknown.
    #[error("{0} has no slice, and its outputs are unknown: {reason}", reason = unknown_outputs(.0))]
    #[hint("write which outputs are passed up, as in [00]")]
    Width(String),
    /// A word behind a colon that is neither a file of the node nor an input.
    #[error("{} has no {name:?}", kind.word())]
    #[hint(Some(meant_or(nearest.as_deref(), node_words_hint(*kind))))]
    NoWord {
        kind: NodeKind,
        /// The word behind the colon.
        name: String,
        /// The name that may have been meant.
        nearest: Option<String>,
    },
    /// A file of a node is written twice.
    #[error("the file {0:?} is written twice")]
    #[hint("put all of its lines behind one name")]
    FileTwice(String),
    /// The inputs of a sweep are in the wrong order.
    #[error("the body of a sweep comes first, then its points")]
    #[hint("write :body (...) before :points (...)")]
    RoleOrder,
    /// A name that no file in `factors/` can have.
    #[error(
        "no file can have the name {0:?}: it holds a slash or a zero byte, or has more than 255 bytes"
    )]
    #[hint("write another name")]
    FileName(String),
    /// A file is larger than can be read.
    #[error("the file has more than {0} MiB, and could not be read")]
    #[hint("let a computation make the points, and read them as :points")]
    LargeFile(usize),
    /// The rules of a sweep are wrong.
    #[error("{0}")]
    #[hint(sweep_hint(_0))]
    Sweep(Box<SweepFault>),
    /// A level or a row is written twice.
    #[error("this is the same as at {0}")]
    #[hint(SheetFault::SameRow(0).hint())]
    SameRow(Position),
    /// A label that cannot be a part of a file's name.
    #[error("the label {0:?} holds a slash or a zero byte")]
    #[hint("write another name")]
    Label(String),
    /// A label that makes the name of a directory too long.
    #[error("the label is too long: the name of a directory has at most 255 bytes")]
    #[hint("write a shorter label")]
    LongLabel,
    /// The directories would be nested too deeply.
    #[error("this is nested too deeply: its path would have more than 4,095 bytes")]
    #[hint("write shorter labels")]
    Deep,
}

/// What to try if a word begins no node, and is similar to none that does.
fn node_hint(word: &str) -> String {
    if word.chars().any(char::is_lowercase) {
        return format!("write ({word} ...) if it is a computation: the bracket comes first");
    }
    "write (COMPUTATION ...), INPUT('NAME') for an input of the task, FILE('NAME') for a file in \
     the storage, OWN('PATH') for a file of the task, TREE('SOURCE') for a Git repository, or SWEEP(...)"
        .to_owned()
}

/// What to try if a word behind a colon belongs to no node of this kind, and is similar to none that does.
fn node_words_hint(kind: NodeKind) -> String {
    let any = if kind.has_inputs() { ", or any label in bars, as in |a b|" } else { "" };
    format!("write {}{any}", words(kind).join(", "))
}

/// What to try if a line of resources has no quotes.
fn resource_line_hint(line: &str) -> String {
    if line.contains(' ') {
        format!("write :resources '{line}'")
    } else {
        "write what it is, too, as in :resources 'cpus 4'".to_owned()
    }
}

/// What to try if something follows the workflow.
const fn behind_workflow_hint(is_bracket: bool) -> &'static str {
    if is_bracket {
        "remove the `)`"
    } else {
        "write a call in brackets, as in (add x y); NAME = before what others name; and the line Inputs: first"
    }
}

/// What to try if a definition does not pass up an output.
fn not_passed_up_hint(output: &str) -> &'static str {
    if output.contains(|c: char| !c.is_ascii_digit()) {
        "name one of these, count them from 00, or choose more where it is defined"
    } else {
        "number the outputs from 00"
    }
}

/// What to try if a word without quotes stands behind the lines of a node, whose next input may be the expression.
fn bare_word_hint(word: &str, line: LineKind, role: Option<&str>) -> String {
    let line = match line {
        LineKind::Level => format!("write '{word}' if it is a level"),
        LineKind::Row => format!("write ('{word}') if it is a row"),
        LineKind::Text => format!("write '{word}' if it is a text"),
    };
    let role = role.map(|role| format!(", or :{role} {word} if it is an expression"));
    line + &role.unwrap_or_default()
}

/// The kind of a line of a file of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// A level of a factor.
    Level,
    /// A row of a sheet.
    Row,
    /// Any text.
    Text,
}

impl fmt::Display for LineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Level => "level",
            Self::Row => "row",
            Self::Text => "text in quotes",
        })
    }
}

impl Fault {
    /// The line of the equal level or row, if this one is a repetition.
    pub(super) fn same_line(&self) -> Option<usize> {
        let Self::Sweep(fault) = self else { return None };
        match &**fault {
            SweepFault::Sheet(SheetProblem { fault: SheetFault::SameRow(line), .. }) => Some(*line),
            _ => None,
        }
    }
}

impl From<SweepFault> for Fault {
    fn from(fault: SweepFault) -> Self {
        Self::Sweep(Box::new(fault))
    }
}

/// Returns advice for a name that nothing in a workflow has.
pub fn unknown_name_hint(name: &str) -> &'static str {
    match Resource::of_word(name) {
        Some(_) => {
            "if a call asks for it, write one text in quotes, as in :resources 'cpus 4' 'exclusive'; else name it among the inputs of the task, define it, or bind it in a sweep"
        }
        None => {
            "name it among the inputs of the task, define it, or bind it in a sweep around the node (in :names, if its points are computed); a text stands in quotes"
        }
    }
}

/// Returns the reason why the outputs of a computation are unknown.
fn unknown_outputs(name: &str) -> &'static str {
    match name.contains('{') {
        true => "what it leads to is not in computations/, or has different outputs",
        false => "it is not in computations/",
    }
}

/// Returns the reason why a text cannot be a line.
fn line_fault(text: &str) -> &'static str {
    match text {
        "" => "it is empty",
        EMPTY_LEVEL => "in a list of levels, it is the empty text",
        _ if text.contains('\n') => "it has a line end",
        _ => "it begins or ends with white space",
    }
}

/// The advice for a fault of a sweep, in the words of the text.
fn sweep_hint(fault: &SweepFault) -> Option<String> {
    let hint = match fault {
        SweepFault::NoPoints
        | SweepFault::NoFactors
        | SweepFault::Product(ProductFault::Factor(FactorFault::NoFactors)) => {
            "write levels, as in :over threads 1 2 4"
        }
        SweepFault::Product(ProductFault::Factor(fault)) => return factor_hint(fault),
        SweepFault::FactorPlace => {
            "write :over NAME, or :factors/nn-NAME, as in :factors/00-threads"
        }
        SweepFault::Inputs(_) => {
            "write one expression, the body, and a second one only if it computes the points"
        }
        SweepFault::PointsWidth(_) => "choose one output, as in [00]",
        SweepFault::Replicates(_) => {
            "write a number, as in :replicates 10, or '10..100 until seconds ±5%'"
        }
        SweepFault::UntilRows(_) => "take a column of one value, such as '00 seconds' or '00 *'",
        SweepFault::Unread(_) | SweepFault::ReadsNothing => {
            "read it by its name in the body, or in braces in a constant or a name there"
        }
        SweepFault::Ambiguous => "list the names that the inner one binds, as in :names 'a'",
        SweepFault::Names => "remove :names: the factors are bound",
        SweepFault::Files => "write the sheet behind the body, or remove :files",
        SweepFault::OtherColumn(_) => "list it in :files of both, with the same words",
        SweepFault::NoLevels => "leave out fewer points in :exclude and :where",
        SweepFault::Column(_) => "write '00 seconds', '00 *' or '00 **'",
        SweepFault::ColumnUnit(_) => "write '00 seconds [s] less', or '00 accuracy more'",
        SweepFault::RowKeys(_) => "write '00 ** by benchmark size', with each name once",
        SweepFault::SameColumn(_) => "name the columns, as in :columns '00 seconds'",
        SweepFault::NestedColumn(name) if name == STATUS => {
            "remove :allow-failed of one of both sweeps, or take the table under a name in place of **"
        }
        SweepFault::NoColumns => {
            "write a text for each, such as '00 seconds', or remove :columns: then each output is a column"
        }
        SweepFault::SameName(_) => "remove one of them",
        SweepFault::Sheet(problem) => match problem.fault {
            SheetFault::NoHeader => "write the names of the columns first, as in ('host' 'cores')",
            SheetFault::Width { .. } => "give each row a text for each column",
            SheetFault::EmptyLine => "remove it",
            SheetFault::NoName(_) => "write its name",
            _ => return fault.hint(),
        },
        _ => return fault.hint(),
    };
    Some(hint.to_owned())
}

/// The advice for factors that do not fit together, in the words of the text.
fn factor_hint(fault: &FactorFault) -> Option<String> {
    let hint = match fault {
        FactorFault::NoLevels { .. } => "write them behind its name, as in 1 2 4",
        FactorFault::SameName { .. } => {
            "rename one of them, or write rows if they vary together, as in ('host' 'cores') ('red' 8)"
        }
        FactorFault::NoFactors | FactorFault::TooMany => return fault.hint(),
    };
    Some(hint.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_counted_in_lines_and_characters() {
        let text = "(a\n \t(ü\u{1b} b)\r\n)";
        let at = text.find('b').unwrap();
        let mistake = Mistake::at(text, at, Fault::NoOutput);
        assert_eq!(mistake.to_string(), "2:7: the slice chooses no output");
        assert_eq!(mistake.excerpt.to_string(), "    |   (ü\u{fffd} b)\n    |       ^");
    }

    #[test]
    fn only_a_part_of_a_long_line_is_shown() {
        let text = format!("{}x{}", "a".repeat(1000), "b".repeat(1000));
        let Excerpt { line, column } = Excerpt::extract(&text, 1000);
        assert_eq!(line.len(), 80);
        assert_eq!(line.find('x'), Some(column));
    }

    #[test]
    fn a_mistake_has_the_place_of_the_first_byte_that_is_not_utf8() {
        let mistake = Mistake::not_text(b"(a\n b\xff)", 5);
        assert_eq!(mistake.position, Position { line: 2, column: 3 });
    }
}
