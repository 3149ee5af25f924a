//! Sweeps: a workflow that is evaluated for each point. Their points, their rules, and the tables of their results.
//!
//! A point gives each column of its [`SweepPoints`] a text. Points are read from a [`sheet`](read) or a [list of levels](read_levels),
//! or are the [`product`] of factors. [`SweepRules`] say which names a sweep binds and which columns its table has; they are read from
//! the files beside its `kind`. A [`GatheredTable`] has the results. All here are functions of bytes and values: nothing reads a file, or
//! knows of tasks.

mod points;
mod product;
mod rules;
mod scope;
mod sheet;
mod table;

use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use self::points::{
    Likeness, Lookalike, SweepPoint, SweepPoints, path_part, point_path, point_title,
};
pub use self::product::{
    ExclusionFault, FactorFault, MAX_POINTS, ProductFault, REPLICATE, all_points, column_hint,
    computed_points, points, product,
};
pub use self::rules::{
    ALLOW_FAILED, COLUMNS, EXCLUDE, FACTORS, MAX_SWEEPS, NAMES, PRODUCT_FILES, REPLICATES,
    RuleProblem, SWEEP_FILES, SweepFault, SweepRules, column_problems, factor_label,
    factor_problems, input_problem, is_sheet, known_columns, read_column, read_replicates,
    same_name_problems, table_columns, unread_problems,
};
pub use self::scope::{LevelName, Scope, ScopeId, Scopes};
pub use self::sheet::{
    MAX_COLUMNS, MAX_PROBLEMS, MAX_SHEET, SheetFault, SheetFormat, SheetProblem, read, read_levels,
    read_list, read_rows,
};
pub use self::table::{
    CellValue, GatheredTable, JsonType, MAX_CELL, PointOutput, PointOutputs, STATUS, TableCell,
    TableFault, TableRow, cell_values, fault_of_outputs, needs_contents,
};

ids! {
    /// A name that sweeps of a task bind.
    BoundId
}

/// The outputs of a sweep: its table, and a directory with all outputs of its body.
pub const SWEEP_OUTPUTS: [&str; 2] = ["table", "directory"];

/// The inputs of a sweep. Without the second one, its points are a product of factors.
pub const SWEEP_INPUTS: [&str; 2] = ["body", "points"];

/// The files of a node `sweep`, or of a node `points`, which has a product only.
///
/// Two are equal if they mean the same, wherever they are written and whatever they are called.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sweep {
    /// The label, for humans.
    pub label: Box<str>,
    /// The directory that it is written in, relative to the task.
    pub place: PathBuf,
    /// The factors, and what is made of them.
    pub product: Product,
    /// The names of computed points that are bound, if they are listed.
    pub names: Option<Vec<Box<str>>>,
    /// The names that it binds.
    pub binds: Vec<BoundId>,
    /// The other names of its points that resources of nodes in its body have.
    pub asked: Vec<BoundId>,
    /// The inputs of the task that its body reads, if the points are computed: no column may have such a name.
    pub inputs: Vec<Box<str>>,
    /// The columns that outputs of the body become.
    pub columns: Vec<TableColumn>,
    /// The columns as they are written, if they are: otherwise each output is one.
    pub written: Option<Vec<WrittenColumn>>,
    /// Whether failed points become rows.
    pub allow_failed: bool,
    /// Whether it makes a table. One over a task's own inputs makes none: each of its points is a job.
    pub has_table: bool,
}

impl PartialEq for Sweep {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Sweep {}

impl Sweep {
    /// The rules of a node `points`.
    pub const fn new(label: Box<str>, place: PathBuf, product: Product) -> Self {
        Self {
            label,
            place,
            product,
            names: None,
            binds: Vec::new(),
            asked: Vec::new(),
            inputs: Vec::new(),
            columns: Vec::new(),
            written: None,
            allow_failed: false,
            has_table: true,
        }
    }

    /// The names to which it gives texts.
    pub fn gives(&self) -> impl Iterator<Item = BoundId> {
        self.binds.iter().chain(&self.asked).copied()
    }

    /// Everything but the place, the label, how the columns are written, and what follows from the body.
    fn identity(&self) -> (&Product, [&[BoundId]; 2], &[TableColumn], [bool; 2]) {
        let names = [&*self.binds, &*self.asked];
        (&self.product, names, &self.columns, [self.allow_failed, self.has_table])
    }
}

/// Factors, and the points that they make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Product {
    /// The factors, in order: the last one varies fastest. A sweep with computed points has none.
    pub factors: Vec<Factor>,
    /// The points that are left out. An empty cell matches anything.
    pub exclude: Option<SweepPoints>,
    /// The number of times that each point is evaluated.
    pub replicates: Option<NonZeroU32>,
}

/// A factor: names that vary together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// The name of its file in `factors/`.
    pub file: Box<str>,
    /// Its levels.
    pub points: SweepPoints,
}

/// A line of the file `columns` as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenColumn {
    /// The number of the output among those that the body passes up, or its name.
    pub output: Box<str>,
    /// The columns that it becomes.
    pub shape: ColumnShape,
}

impl WrittenColumn {
    /// The line.
    pub fn text(&self) -> String {
        format!("{} {}", self.output, self.shape.text())
    }
}

/// What a line of the file `columns` says: what an output of the body becomes in the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableColumn {
    /// The number of the output among those that the body passes up.
    pub output: u8,
    /// The columns that it becomes.
    pub shape: ColumnShape,
}

/// The columns that an output becomes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ColumnShape {
    /// One, with this name.
    One(Box<str>),
    /// One for each field of a JSON object: `*`.
    Fields,
    /// One for each field of the objects of NDJSON, and a row for each object: `**`.
    Rows,
}

impl ColumnShape {
    /// Returns the shape that is written so.
    pub fn of(text: &str) -> Self {
        match text {
            "*" => Self::Fields,
            "**" => Self::Rows,
            name => Self::One(name.into()),
        }
    }

    /// Whether it takes the fields of JSON, which keep their types.
    pub const fn is_json(&self) -> bool {
        matches!(self, Self::Fields | Self::Rows)
    }

    /// The text that is written for it.
    pub fn text(&self) -> &str {
        match self {
            Self::One(name) => name,
            Self::Fields => "*",
            Self::Rows => "**",
        }
    }
}

#[cfg(test)]
mod tests;
