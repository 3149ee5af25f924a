//! The problems of sweeps.

use super::ProductFault;
use crate::exit::Explain;
use crate::expand::{STATUS, SheetProblem};
use crate::task::slice::SliceError;

/// The greatest number of sweeps around a node.
pub const MAX_SWEEPS: usize = 32;

/// What is wrong with a sweep.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SweepFault {
    /// A list of levels or a sheet is wrong.
    #[error("{}{}", .0.column.as_ref().map(|name| format!("column {name:?}: ")).unwrap_or_default(), .0.fault)]
    Sheet(SheetProblem),
    /// The factors do not fit together, or the exclusion does not fit them.
    #[error(transparent)]
    Product(ProductFault),
    /// A file in `factors/` has no number.
    #[error("the name does not say in which order the factor stands")]
    FactorPlace,
    /// Two files in `factors/` have one number.
    #[error("{0} has the same number")]
    FactorNumber(String),
    /// The points are given by factors, and computed, too.
    #[error("the points are computed by inputs/01-points, so there can be no factors")]
    TwoKinds,
    /// There are no points.
    #[error("the sweep has no points: there are neither factors nor inputs/01-points")]
    NoPoints,
    /// A node `points` has no factors.
    #[error("there are no factors")]
    NoFactors,
    /// A sweep has other inputs than a body and points.
    #[error("a sweep takes a body, and perhaps points; this has {0} inputs")]
    Inputs(usize),
    /// The points are passed up by a node with several outputs.
    #[error("the points are one file, and this passes up {0}")]
    PointsWidth(usize),
    /// A column has a name that cannot be bound.
    #[error("{0:?} cannot be the name of an input")]
    NoName(String),
    /// A name is bound already.
    #[error("the name {0:?} is an input of the task, or bound by a sweep around this one")]
    Shadow(String),
    /// A column of the points has the name of an input that the body reads.
    #[error("the points have a column {0:?}, and the body reads the input {0:?} of the task")]
    InputColumn(String),
    /// The name of a computation depends on an input of the task.
    #[error("the name of a computation cannot depend on {0:?}, an input of the task")]
    InputName(String),
    /// The name of a computation depends on a name whose texts are computed.
    #[error("the name of a computation cannot depend on {0:?}: its texts are computed")]
    ComputedName(String),
    /// The name of a computation depends on factors of which no point is left.
    #[error("all points are excluded, so the name is that of no computation")]
    NoLevels,
    /// No node of the body reads a factor.
    #[error("the body does not read {}", .0.join(" or "))]
    Unread(Vec<String>),
    /// No node of the body reads a column of the computed points.
    #[error("the body reads no column of the points")]
    ReadsNothing,
    /// Only computed points have names to bind.
    #[error("only points that are computed take the file names")]
    Names,
    /// It is not clear which sweep binds the free names.
    #[error(
        "two sweeps with computed points are nested, and it is not clear which one binds a name"
    )]
    Ambiguous,
    /// There are too many sweeps in each other.
    #[error("there are more than {MAX_SWEEPS} sweeps in each other")]
    TooDeep,
    /// The number of replicates is wrong.
    #[error("{0:?} is not a number of replicates")]
    Replicates(String),
    /// A line of `columns` is wrong.
    #[error("{0:?} is not the number or the name of an output, a blank and a name")]
    Column(String),
    /// A line of `columns` has the name of no output that the body passes up.
    #[error(transparent)]
    OutputName(SliceError),
    /// A line of `columns` names an output that the body does not pass up.
    #[error("the body passes up {count}, so there is no {number:02}")]
    NoOutput {
        /// The number of files that it passes up.
        count: usize,
        /// The number in the line.
        number: u8,
    },
    /// The file `columns` has no lines.
    #[error("there are no columns")]
    NoColumns,
    /// The file `names` has a name twice.
    #[error("the name {0:?} is there twice")]
    SameName(String),
    /// There is text in the file `allow-failed`.
    #[error("it has text, and only its existence counts")]
    AllowFailed,
    /// Two columns of the table have one name.
    #[error("the table has two columns {0:?}")]
    SameColumn(String),
    /// A table that gives rows has a column of the table that takes them.
    #[error("the table has two columns {0:?}: the table that ** takes has one, too")]
    NestedColumn(String),
    /// Two outputs would give rows.
    #[error("only one output can give rows of its own")]
    TwoRows,
}

impl Explain for SweepFault {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Product(fault) => return fault.hint(),
            Self::Sheet(problem) => return problem.fault.hint(),
            Self::FactorPlace => "call it nn-NAME, or nn-TEXT.tsv, as in 00-threads",
            Self::FactorNumber(_) => "give each factor a number of its own",
            Self::TwoKinds => "remove factors/, or the input 01-points",
            Self::NoPoints | Self::NoFactors => {
                "write levels into a file such as factors/00-threads, one a line"
            }
            Self::Inputs(_) => {
                "keep inputs/00-body, and inputs/01-points if the points are computed"
            }
            Self::PointsWidth(_) => "choose one output in its file outputs",
            Self::Shadow(_) | Self::NoName(_) => "give it another name",
            Self::InputColumn(_) => {
                "give the column another name: the table would show its texts, and calls would read others"
            }
            Self::InputName(_) | Self::ComputedName(_) => {
                "make it a factor of a sweep, so that all computations are known when the task is loaded"
            }
            Self::NoLevels => "leave out fewer points in exclude.tsv",
            Self::Unread(_) | Self::ReadsNothing => {
                "read it with a node of kind input, or in braces in the value of a node"
            }
            Self::Names => "remove the file names: the factors are bound",
            Self::Ambiguous => "list the names that the inner one binds in its file names",
            Self::TooDeep => "use more factors in fewer sweeps",
            Self::Replicates(_) => "write a number such as 10",
            Self::OutputName(error) => return error.hint(),
            Self::Column(_) => "write a line such as 00 seconds, 00 * or 00 **",
            Self::SameColumn(_) => "name the columns in the file columns",
            Self::NestedColumn(name) if name == STATUS => {
                "remove the file allow-failed of one of both sweeps, or take the table under a name in place of **"
            }
            Self::NestedColumn(_) => "give another name to one of them",
            Self::NoColumns => {
                "write a line for each, such as 00 seconds, or remove the file: then each output is a column"
            }
            Self::SameName(_) => "remove the line",
            Self::AllowFailed => "empty it if failed points are to become rows, or else remove it",
            Self::NoOutput { .. } => "outputs are numbered from 00",
            Self::TwoRows => "write ** for one output only",
        };
        Some(hint.to_owned())
    }
}
