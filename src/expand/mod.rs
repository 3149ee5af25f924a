//! The points of sweeps: what a task is evaluated for.
//!
//! A point gives each column of its [`SweepPoints`] a text. SweepPoints are read from a sheet ([`read`]) or a list of levels
//! ([`read_levels`]), or are the product of factors. [`write_table`] writes their results. All here are functions of bytes and values: this room
//! reads no files, and knows nothing of tasks.

mod delimited;
mod factors;
mod json;
mod lookalikes;
mod points;
mod problem;
mod sheet;
mod table;

pub use factors::{ExclusionFault, FactorFault, MAX_POINTS, REPLICATE, product};
pub use lookalikes::Lookalike;
pub use points::{SweepPoint, SweepPoints};
pub use problem::{MAX_COLUMNS, MAX_PROBLEMS, SheetFault, SheetProblem};
pub use sheet::{MAX_SHEET, SheetFormat, read, read_levels};
pub use table::{MAX_CELL, TableCell, write_table};

#[cfg(test)]
mod factor_tests;
#[cfg(test)]
mod tests;
