//! Words of errors.

use crate::expand::SheetProblem;
use crate::words::counted;

/// The number and the names of a task's inputs, in words.
pub(super) fn inputs(names: &[String]) -> String {
    match names.len() {
        0 => "no inputs".to_owned(),
        takes => format!("{} ({})", counted(takes, "input"), names.join(", ")),
    }
}

pub(super) fn sheet_problems(problems: &[SheetProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
