//! The problems of a sheet, which say what to correct.

use std::fmt;

use crate::exit::Explain;
use crate::task::template::NoText;
use crate::words::counted;

/// The greatest number of columns of a sheet.
pub const MAX_COLUMNS: usize = 4096;

/// The number of problems after which a sheet is not read further.
pub const MAX_PROBLEMS: usize = 20;

/// A problem at a place in a sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SheetProblem {
    /// The line, counted from one; `None` for the sheet as a whole.
    pub line: Option<usize>,
    /// The name of the column, where it is known.
    pub column: Option<String>,
    /// The fault.
    pub fault: SheetFault,
}

/// The kind of a problem of a sheet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SheetFault {
    /// The sheet is larger than can be read.
    #[error("the sheet is larger than 1 GiB")]
    TooLarge,
    /// There are too many columns.
    #[error("the sheet has more than {MAX_COLUMNS} columns")]
    TooWide,
    /// A sheet with a header is empty.
    #[error("the sheet has no header")]
    NoHeader,
    /// A list of levels is no text.
    #[error("the list is not UTF-8 text")]
    NotText,
    /// A line between others is empty.
    #[error("the line is empty")]
    EmptyLine,
    /// A column has no name.
    #[error("the name of column {0} is empty")]
    NoName(usize),
    /// The name of a column cannot be one.
    #[error("the name of column {number} cannot be used: {fault}")]
    Name {
        /// The number of the column, counted from one.
        number: usize,
        /// Why it cannot.
        fault: NoText,
    },
    /// Two columns, or two fields of an object, have one name.
    #[error("there are two columns {0:?}")]
    SameName(String),
    /// A value cannot be the text of a name.
    #[error("the value cannot be used: {0}")]
    Value(#[from] NoText),
    /// A row has another number of values than there are columns.
    #[error("the row has {}, and the header {expected}", counted(*found, "value"))]
    Width {
        /// The number of columns.
        expected: usize,
        /// The number of values.
        found: usize,
    },
    /// A quoted value does not end.
    #[error("a quoted value begins here and does not end")]
    Unterminated,
    /// A value without quotes has a quote in it.
    #[error("a value that does not begin with a quote has one in it")]
    QuoteInside,
    /// Something follows the closing quote of a value.
    #[error("something follows the closing quote of a value")]
    AfterQuote,
    /// The sheet is an array of JSON.
    #[error("the sheet is a JSON array; NDJSON, TSV and CSV are read")]
    Array,
    /// An object of JSON goes on in the next line.
    #[error("the line is not a JSON object: {0}")]
    OpenObject(String),
    /// A line is no JSON object.
    #[error("the line is not a JSON object: {0}")]
    Json(String),
    /// A string of JSON is not valid.
    #[error("the string is not valid: {0}")]
    Escape(String),
    /// An object has no fields.
    #[error("the object has no fields")]
    NoColumns,
    /// A value is `null`.
    #[error("the value is null")]
    Null,
    /// A value is an object or an array.
    #[error("the value is an object or an array")]
    Container,
    /// An object lacks a field that the first one has.
    #[error("the object has no field {0:?}")]
    MissingField(String),
    /// An object has a field that the first one has not.
    #[error("the first object has no field {0:?}")]
    UnknownField(String),
    /// A row is the same as one before it.
    #[error("the row is the same as that of line {0}")]
    SameRow(usize),
    /// The sheet was not read further.
    #[error("there are more than {MAX_PROBLEMS} problems: the rest was not read")]
    More,
}

impl Explain for SheetFault {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::TooLarge => "keep data in files, and their names in the sheet",
            Self::TooWide => "give each point a row, not a column",
            Self::NoHeader => "write the names of the columns into the first line",
            Self::EmptyLine => "remove it; in CSV, \"\" is an empty value",
            Self::NoName(_) => "name it, or remove the separator",
            Self::SameName(_) => "rename or remove one of them",
            Self::Name { fault: NoText::NotUtf8, .. } | Self::Value(NoText::NotUtf8) => {
                "save the sheet as UTF-8"
            }
            Self::NotText => "save the list as UTF-8",
            Self::Name { .. } => "give it a short name of one line",
            Self::Value(_) => "write the value into a file, and the file's name here",
            Self::Width { .. } => {
                "separate values as the header does; in CSV, put one that has a comma in quotes"
            }
            Self::Unterminated => "close it with a quote, and write quotes in it twice",
            Self::QuoteInside | Self::AfterQuote => {
                "put the whole value in quotes, and write quotes in it twice"
            }
            Self::Array => {
                "write one object a line, without brackets and commas around them; jq -c '.[]' does so"
            }
            Self::OpenObject(_) | Self::Json(_) | Self::NoColumns => {
                "write one object a line, as in {\"x\": \"1\"}"
            }
            Self::Escape(_) => {
                "write characters as they are; only \\, \" and control characters take a \\"
            }
            Self::Null => "write a text, as in \"\", or leave the row out",
            Self::Container => "write it as a text, or give each of its parts a column",
            Self::MissingField(_) | Self::UnknownField(_) => "give all objects the same fields",
            Self::SameRow(_) => "remove one of them; replicates repeat points",
            Self::More => "correct those that are listed first",
        };
        Some(hint.to_owned())
    }
}

impl fmt::Display for SheetProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if let Some(column) = &self.column {
            write!(f, "column {column:?}: ")?;
        }
        self.fault.fmt(f)
    }
}
