//! The mistakes that a condition can have, with the column of each.

use std::fmt;

use crate::exit::Explain;
use crate::suggest::UnknownName;

/// The deepest nesting of parentheses and signs.
pub(super) const MAX_DEPTH: usize = 64;

/// The largest number of combinations of choices that a condition, or a name of a computation, may depend on.
pub const MOST_COMBINATIONS: usize = 1000;

/// A mistake in a condition, and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[error("column {column}: {mistake}")]
#[hint(mistake.hint())]
pub struct ConditionFault {
    /// The column, in characters from one.
    pub column: usize,
    pub mistake: ConditionMistake,
}

/// The kind of a mistake at a place of a condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum ConditionMistake {
    /// Something else is expected.
    #[error("expected {expected}, and found {found}")]
    #[hint(Some(expected_hint(found)))]
    Expected {
        /// The syntax that may stand there, in words.
        expected: &'static str,
        /// The text that does.
        found: String,
    },
    /// A text or a name in braces does not end.
    #[error("{0} begins here and does not end")]
    #[hint("end it with the character that it begins with, or }}")]
    Unended(&'static str),
    /// A number is malformed, or not finite.
    #[error("{0:?} is not a number")]
    #[hint(
        "write a number such as 10, 0.5 or 1e3; a name that begins with a digit stands in braces"
    )]
    Number(String),
    /// It is nested too deep.
    #[error("more than {MAX_DEPTH} parentheses and signs are nested")]
    #[hint("leave out some of them")]
    TooDeep,
    /// The points have no such name.
    #[error("the points have no {0}")]
    #[hint("{}; texts are in quotes", _0.suggestion("columns"))]
    NoName(UnknownName),
    /// The points have a column that is called like an input of the task.
    #[error("the points have a column {0:?}, and the task has an input of this name")]
    #[hint("rename one of them")]
    Ambiguous(String),
    /// The inputs that are read have too many choices.
    #[error("the inputs have {0} combinations of choices, and {MOST_COMBINATIONS} are the most")]
    #[hint("read fewer inputs in one condition")]
    Combinations(usize),
    /// A text is compared with a number.
    #[error("{0}, and is compared with a number")]
    #[hint("{}", mixed_hint(_0))]
    Mixed(TextOperand),
    /// There is arithmetic of a text.
    #[error("{0}, and arithmetic needs numbers")]
    #[hint("compare texts with ==, != and in; or make each text of the name another number")]
    Arithmetic(TextOperand),
    /// Texts are put into an order.
    #[error("{0}, and texts have no order")]
    #[hint("compare texts with ==, != and in; or make each text of the name another number")]
    Order(TextOperand),
    /// A value stands where a comparison is expected.
    #[error("expected a comparison, and this is a value")]
    #[hint("compare it, as in size != 0")]
    NoComparison,
    /// A comparison stands where a value is expected.
    #[error("expected a value, and this is a comparison")]
    #[hint("join comparisons with && and ||, and put what ! negates into parentheses")]
    NoValue,
    /// A number is divided by zero.
    #[error("a division by zero, at {0}")]
    #[hint("leave such points out before, as in size != 0 && 100 / size < 5")]
    Zero(String),
    /// A number is too large.
    #[error("the result is too large, at {0}")]
    #[hint("use smaller numbers")]
    TooLarge(String),
}

/// Signs of other languages, as messages quote them, and those for the same here.
const OTHER_SIGNS: [(&str, &str); 5] =
    [("\"=\"", "=="), ("\"and\"", "&&"), ("\"&\"", "&&"), ("\"or\"", "||"), ("\"|\"", "||")];

/// What to try if something else is expected than what was found: signs of other languages have others here.
fn expected_hint(found: &str) -> String {
    match OTHER_SIGNS.iter().find(|(other, _)| found == *other) {
        Some((_, sign)) => {
            format!("write {sign} here, as in size == 100 && (host == 'red' || host == 'blue')")
        }
        None => {
            "write it as in size <= 100 && host in ('red', 'blue'); a name with other characters than letters, \
             digits, _ and . stands in braces, as in {first-size}"
                .to_owned()
        }
    }
}

/// What to try if a text is compared with a number.
const fn mixed_hint(operand: &TextOperand) -> &'static str {
    match operand {
        TextOperand::Quoted(_) => "leave the quotes out: all texts of the other side are numbers",
        TextOperand::Word { .. } | TextOperand::Same { .. } => {
            "write the other side in quotes, as it is spelled"
        }
    }
}

/// A text in a condition, and why it is not a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextOperand {
    /// It is in quotes.
    Quoted(String),
    /// It is a name with a text that is not a number.
    Word { name: String, text: String },
    /// It is a name with two texts that are the same number.
    Same { name: String, texts: [String; 2] },
}

impl fmt::Display for TextOperand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quoted(text) => write!(f, "{text:?} is a text"),
            Self::Word { name, text } => {
                write!(f, "{name} is a text, since {text:?} is not a number")
            }
            Self::Same { name, texts: [one, other] } => {
                write!(f, "{name} is a text, since {one:?} and {other:?} are one number")
            }
        }
    }
}
