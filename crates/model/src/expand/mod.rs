//! The points of sweeps: what a task is evaluated for, and the rules that make them.
//!
//! A point gives each column of its [`SweepPoints`](crate::task::points::SweepPoints) a text. Points are read from a sheet ([`read`]) or a list of levels
//! ([`read_levels`]), or are the product of factors. A [`GatheredTable`] has their results. All here are functions of bytes and values: this room
//! reads no files, and knows nothing of tasks.

mod delimited;
mod factors;
mod gather;
mod interner;
mod json;
mod lookalikes;
mod paths;
mod problem;
mod rules;
mod sheet;
mod table;

pub use factors::{ExclusionFault, FactorFault, MAX_POINTS, REPLICATE, column_hint, product};
pub use gather::{
    GatheredTable, PointOutput, PointOutputs, TableFault, fault_of_outputs, needs_contents,
    point_title,
};
pub use lookalikes::{Likeness, Lookalike};

pub use paths::{path_part, point_path};
pub use problem::{MAX_COLUMNS, MAX_PROBLEMS, SheetFault, SheetProblem};
pub use rules::{
    ALLOW_FAILED, COLUMNS, EXCLUDE, FACTORS, LevelName, MAX_SWEEPS, NAMES, PRODUCT_FILES,
    ProductFault, REPLICATES, RuleProblem, SWEEP_FILES, Scope, ScopeId, Scopes, SweepFault,
    SweepRules, all_points, column_problems, computed_points, factor_label, factor_problems,
    input_problem, is_sheet, known_columns, points, read_column, read_replicates,
    same_name_problems, table_columns, unread_problems,
};
pub use sheet::{MAX_SHEET, SheetFormat, read, read_levels, read_list, read_rows};
pub use table::{CellValue, JsonType, MAX_CELL, STATUS, TableCell, TableRow, cell_values};

#[cfg(test)]
mod factor_tests;
#[cfg(test)]
mod tests;
