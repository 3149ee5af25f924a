//! Whether the rules of a sweep fit its body and its points.

use std::collections::HashSet;

use super::fault::SweepFault;
use super::files::{COLUMNS, FACTORS, NAMES, REPLICATES, RuleProblem, SweepRules};
use crate::expand::{REPLICATE, STATUS};
use crate::task::slice::{SliceError, WrittenSlice};
use crate::task::sweep::{ColumnShape, Product, TableColumn, WrittenColumn};

/// The directory of the body and the points.
const INPUTS: &str = "inputs";

/// The directory of the points.
const POINTS: &str = "inputs/01-points";

/// Returns the problem of a sweep with so many inputs, of which the points pass up so many files.
pub fn input_problem(count: usize, points: Option<usize>) -> Option<RuleProblem> {
    let fault = match (count, points) {
        (0 | 3.., _) => SweepFault::Inputs(count),
        (_, Some(width)) if width != 1 => SweepFault::PointsWidth(width),
        _ => return None,
    };
    Some(RuleProblem::new(INPUTS, fault))
}

/// Returns the problems of names that the body must read. `is_free` says of a name whether it is free in the body,
/// `free` are those of computed points that are bound nowhere else.
pub fn unread_problems<'a>(
    rules: &SweepRules,
    is_free: impl Fn(&str) -> bool,
    free: Option<impl IntoIterator<Item = &'a str>>,
) -> Vec<RuleProblem> {
    let mut problems = Vec::new();
    let mut unread = |file: String, names: Vec<String>| {
        problems.push(RuleProblem::new(file, SweepFault::Unread(names)));
    };
    for factor in &rules.product.factors {
        let names = factor.points.names();
        if !names.iter().any(|name| is_free(name)) {
            unread(format!("{FACTORS}/{}", factor.file), names.to_vec());
        }
    }
    if rules.product.replicates.is_some() && !is_free(REPLICATE) {
        unread(REPLICATES.to_owned(), vec![REPLICATE.to_owned()]);
    }
    for name in rules.names.iter().flatten().filter(|name| !is_free(name)) {
        unread(NAMES.to_owned(), vec![name.to_string()]);
    }
    if let Some(free) = free
        && problems.is_empty()
        && free.into_iter().all(|name| name == REPLICATE)
    {
        problems.push(RuleProblem::new(INPUTS, SweepFault::ReadsNothing));
    }
    problems
}

/// Returns the problems of points that are this product: a column has the name of an input of the task that the body reads.
pub fn same_name_problems(points: &Product, inputs: &[Box<str>]) -> Vec<RuleProblem> {
    let factors = points.factors.iter().flat_map(|factor| factor.points.names());
    let replicate = points.replicates.map(|_| REPLICATE);
    let columns = factors.map(String::as_str).chain(replicate);
    let is_input = |column: &&str| inputs.iter().any(|name| **name == **column);
    let fault = |column: &str| SweepFault::InputColumn(column.to_owned());
    columns.filter(is_input).map(|it| RuleProblem::new(POINTS, fault(it))).collect()
}

/// Returns the columns of a table for which none are written: one for each output of the body, with its name.
fn default_columns(names: impl IntoIterator<Item = String>) -> Vec<TableColumn> {
    let column = |(output, name): (u8, String)| TableColumn {
        output,
        shape: ColumnShape::One(name.into_boxed_str()),
    };
    (0..).zip(names).map(column).collect()
}

/// Returns the columns of a table: those that are written, or else the default ones. These are the names
/// of the outputs that the body passes up.
///
/// # Errors
///
/// Fails if a column names none of them.
pub fn table_columns(
    rules: &SweepRules,
    names: Vec<String>,
) -> Result<Vec<TableColumn>, Vec<RuleProblem>> {
    let Some(written) = &rules.columns else { return Ok(default_columns(names)) };
    let (mut columns, mut problems) = (Vec::new(), Vec::new());
    for (line, column) in (1..).zip(written) {
        match resolve(column, &names) {
            Ok(column) => columns.push(column),
            Err(error) => {
                let fault = SweepFault::OutputName(error);
                problems.push(RuleProblem { file: COLUMNS.to_owned(), line, fault });
            }
        }
    }
    if problems.is_empty() { Ok(columns) } else { Err(problems) }
}

/// Finds the output of a column among those with these names. A number is not compared with how many there are.
fn resolve(column: &WrittenColumn, names: &[String]) -> Result<TableColumn, SliceError> {
    let (slice, wrong) = WrittenSlice::parse([&*column.output]).resolve(names);
    match wrong.into_iter().next() {
        Some((_, error)) => Err(error),
        None => {
            let output = slice.numbers().next().unwrap_or_default();
            Ok(TableColumn { output, shape: column.shape.clone() })
        }
    }
}

/// Returns the names of the columns that the table of a sweep certainly has. These are its columns, as far as they are known.
pub fn known_columns(rules: &SweepRules, columns: &[TableColumn]) -> Vec<String> {
    let of_points = rules.named().map(|(name, _)| name);
    let of_outputs = columns.iter().filter_map(|column| match &column.shape {
        ColumnShape::One(name) => Some(name.to_string()),
        ColumnShape::Fields | ColumnShape::Rows => None,
    });
    let status = rules.allow_failed.then(|| STATUS.to_owned());
    of_points.chain(of_outputs).chain(status).collect()
}

/// Returns the problems of the columns of a table, as far as they are known. The body passes up so many files, if that
/// is known. `columns` are those that are written, or else the default ones. `nested` has the names of the columns of an output
/// that is the table of another sweep.
pub fn column_problems(
    rules: &SweepRules,
    columns: &[TableColumn],
    width: Option<usize>,
    nested: impl Fn(u8) -> Vec<String>,
) -> Vec<RuleProblem> {
    let mut seen: HashSet<String> = rules.named().map(|(name, _)| name).collect();
    if rules.allow_failed {
        seen.insert(STATUS.to_owned());
    }
    let mut problems = Vec::new();
    let mut problem = |line, fault| match rules.columns {
        Some(_) => problems.push(RuleProblem { file: COLUMNS.to_owned(), line, fault }),
        None => problems.push(RuleProblem::new("", fault)),
    };
    if rules.columns.as_ref().is_some_and(Vec::is_empty) {
        problem(0, SweepFault::NoColumns);
    }
    let mut has_rows = false;
    for (line, TableColumn { output, shape }) in (1..).zip(columns) {
        if let Some(width) = width
            && usize::from(*output) >= width
        {
            problem(line, SweepFault::NoOutput { count: width, number: *output });
        }
        match shape {
            ColumnShape::One(name) if !seen.insert(name.to_string()) => {
                problem(line, SweepFault::SameColumn(name.to_string()));
            }
            ColumnShape::Rows if has_rows => problem(line, SweepFault::TwoRows),
            ColumnShape::Rows => {
                has_rows = true;
                for name in nested(*output) {
                    if !seen.insert(name.clone()) {
                        problem(line, SweepFault::NestedColumn(name));
                    }
                }
            }
            ColumnShape::One(_) | ColumnShape::Fields => {}
        }
    }
    problems
}
