//! Sweeps: a workflow that is evaluated for each point. Their points, their rules, and the tables of their results.
//!
//! A point gives each column of its [`SweepPoints`] a text. Points are read from a [`sheet`](read) or a [list of levels](read_levels),
//! or are the [`product`] of factors. [`SweepRules`] say which names a sweep binds and which columns its table has; they are read from
//! the files beside its `kind`. A [`GatheredTable`] has the results. All here are functions of bytes and values: nothing reads a file, or
//! knows of tasks.

mod condition;
mod condition_mistake;
mod file_columns;
mod output_table;
mod parameter_files;
mod points;
mod product;
mod replicates;
mod rules;
mod scope;
mod sheet;
mod table_reader;

use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use self::condition::Condition;
pub use self::condition_mistake::MOST_COMBINATIONS;
pub use self::condition_mistake::{ConditionFault, ConditionMistake, TextOperand};
pub use self::file_columns::{
    FileCell, FileColumn, PlacedCell, cell_of_digest, check_path, digest_of_cell, file_cells,
    own_path, sheet_with_cells,
};
pub use self::output_table::{
    CellValue, GatheredTable, JsonType, MAX_CELL, PointOutput, PointOutputs, STATUS, TableCell,
    TableFault, TableRow, cell_values, fault_of_outputs, mark_bare_numbers, needs_contents,
};
pub use self::parameter_files::{NoDefaultText, ParameterFault, ParameterProblem, Parameters};
pub use self::points::{Likeness, Lookalike, SweepPoint, SweepPoints, point_path, point_title};
pub use self::product::{
    ExclusionFault, FactorFault, MAX_POINTS, ProductFault, REPLICATE, all_points,
    choices_without_points, computed_points, points, product,
};
pub use self::replicates::{
    EndReason, ReplicateLook, ReplicateValue, Replicates, ReplicatesEnd, Until, read_replicates,
};
pub use self::rules::{
    ALLOW_FAILED, COLUMNS, EXCLUDE, FACTORS, FILES, MAX_SWEEPS, NAMES, PRODUCT_FILES, REPLICATES,
    RuleProblem, SHEET_SUFFIX, SWEEP_FILES, SweepFault, SweepRules, WHERE, column_problems,
    directory_problem, factor_label, factor_problems, input_problem, is_sheet, known_columns,
    read_column, read_condition, same_name_problems, table_columns, unread_problems,
};
pub use self::scope::{LevelName, Scope, ScopeId, Scopes};
pub use self::sheet::{
    CellFault, EMPTY_LEVEL, MAX_COLUMNS, MAX_PROBLEMS, MAX_SHEET, SheetFault, SheetFormat,
    SheetProblem, level_line, read, read_factor, read_levels, read_list, read_rows, united,
};
pub use self::table_reader::{CellTable, add_csv_line, read_cells, read_object};

ids! {
    /// A name that sweeps of a task bind.
    BoundId
}

/// The outputs of a sweep: its table, and a directory with all outputs of its body.
pub const SWEEP_OUTPUTS: [&str; 2] = ["table", "directory"];

/// The number of the directory among these.
pub const DIRECTORY: u8 = 1;

/// The inputs of a sweep. Without the second one, its points are a product of factors.
pub const SWEEP_INPUTS: [&str; 2] = ["body", "points"];

/// The files of a node `sweep`, or of a node `points`, which has a product only.
///
/// Two are equal if they mean the same, regardless of their places and labels.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sweep {
    /// The label, for humans.
    pub label: Box<str>,
    /// The directory that it is written in, relative to the task.
    pub place: PathBuf,
    /// The factors, and how points are made of them.
    pub product: Product,
    /// The names of computed points that are bound, if they are listed.
    pub names: Option<Vec<Box<str>>>,
    /// The columns of its points whose cells are paths of files. Their names are bound to the files.
    pub files: Vec<FileColumn>,
    /// The names that it binds.
    pub binds: Vec<BoundId>,
    /// The other names of its points that resources of nodes in its body have.
    pub asked: Vec<BoundId>,
    /// The inputs of the task that its body reads, if the points are computed: no column may have such a name.
    pub inputs: Vec<Box<str>>,
    /// The columns that outputs of the body become.
    pub columns: Vec<TableColumn>,
    /// The columns as they are written; without any, each output is a column.
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
            files: Vec::new(),
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

    /// Returns the unit and the direction that are written for columns, by the names of the columns.
    pub fn measures(&self) -> impl Iterator<Item = (&str, &ColumnMeasure)> {
        let written = self.written.iter().flatten();
        written.filter_map(|WrittenColumn { shape, measure, .. }| match shape {
            ColumnShape::One(name) if *measure != ColumnMeasure::default() => {
                Some((&**name, measure))
            }
            _ => None,
        })
    }

    /// The columns by which rows of an output are told apart, if they are written.
    pub fn row_keys(&self) -> &[Box<str>] {
        let mut keys = self.written.iter().flatten().map(|column| &*column.keys);
        keys.find(|keys| !keys.is_empty()).unwrap_or_default()
    }

    /// Everything but the place, the label, the spelling of the columns, and the facts that follow from the body.
    fn identity(&self) -> SweepIdentity<'_> {
        let names = [&*self.binds, &*self.asked];
        let flags = [self.allow_failed, self.has_table];
        (&self.product, names, &self.files, &self.columns, flags)
    }
}

/// What tells sweeps apart.
type SweepIdentity<'a> =
    (&'a Product, [&'a [BoundId]; 2], &'a [FileColumn], &'a [TableColumn], [bool; 2]);

/// Factors, and the points that they make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Product {
    /// The factors, in order: the last one varies fastest. Computed points, if there are some, vary slowest.
    pub factors: Vec<Factor>,
    /// The points that are left out. An empty cell matches anything.
    pub exclude: Option<SweepPoints>,
    /// The condition that all other points must fulfil: points that do not are left out, too.
    pub condition: Option<Condition>,
    /// The number of evaluations of each point.
    pub replicates: Option<Replicates>,
}

impl Product {
    /// The largest number of times that a point is evaluated.
    fn most_replicates(&self) -> Option<NonZeroU32> {
        self.replicates.as_ref().map(|it| it.most)
    }

    /// Whether rules may leave out points.
    pub const fn leaves_out(&self) -> bool {
        self.exclude.is_some() || self.condition.is_some()
    }

    /// Returns the rules that are known without the computed points beside which they are: the factors and replicates. Which points
    /// are left out may depend on the computed ones.
    fn beside_computed(&self) -> Self {
        Self { exclude: None, condition: None, ..self.clone() }
    }
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
    /// The measure of its values.
    pub measure: ColumnMeasure,
    /// The columns that tell its rows apart; empty if their texts do. As a measure, they are for people.
    pub keys: Vec<Box<str>>,
}

impl WrittenColumn {
    /// The line.
    pub fn text(&self) -> String {
        let ColumnMeasure { unit, better } = &self.measure;
        let unit = unit.as_ref().map(|unit| format!(" [{unit}]")).unwrap_or_default();
        let better = better.map(|better| format!(" {}", better.word())).unwrap_or_default();
        let mut text = format!("{} {}{unit}{better}", self.output, self.shape.text());
        for (at, key) in self.keys.iter().enumerate() {
            text.push_str(if at == 0 { " by " } else { " " });
            text.push_str(key);
        }
        text
    }
}

/// The measure of the values of a column. It is for people: no table and no call depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnMeasure {
    /// The unit, such as `s`.
    pub unit: Option<Box<str>>,
    /// The direction in which values are better.
    pub better: Option<Better>,
}

/// The direction in which values of a column are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Better {
    /// Smaller ones, such as durations.
    Less,
    /// Larger ones, such as throughputs.
    More,
}

impl Better {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Less => "less",
            Self::More => "more",
        }
    }
}

/// The meaning of a line of the file `columns`: the columns of the table that an output of the body becomes.
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
    pub fn from_text(text: &str) -> Self {
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

    /// The spelling of the direction.
    pub fn text(&self) -> &str {
        match self {
            Self::One(name) => name,
            Self::Fields => "*",
            Self::Rows => "**",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::SheetFormat::{Csv, Ndjson, Tsv};
    use super::*;
    use crate::exit::Explain;

    /// Reads the valid part.
    fn parsed(format: SheetFormat, sheet: &str) -> SweepPoints {
        read(format, sheet.as_bytes()).unwrap_or_else(|problems| panic!("{sheet:?}: {problems:?}"))
    }

    /// The points as NDJSON.
    fn written(points: &SweepPoints) -> String {
        let mut text = Vec::new();
        points.write_ndjson(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    /// The problems as they are printed.
    fn problems(format: SheetFormat, sheet: &[u8]) -> Vec<String> {
        let problems = read(format, sheet).unwrap_err();
        problems.iter().map(ToString::to_string).collect()
    }

    /// The same numbers at each run, below a bound.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % bound
        }

        /// A text of characters that are special somewhere.
        fn text(&mut self) -> String {
            const SPECIAL: [&str; 14] = [
                "a",
                "0",
                "1",
                "\"",
                "\\",
                ",",
                " ",
                "\u{e9}",
                "\u{1f600}",
                "{",
                "u",
                "\u{feff}",
                "'",
                "null",
            ];
            (0..self.below(5)).map(|_| SPECIAL[self.below(SPECIAL.len())]).collect()
        }

        /// Different texts, each beginning with its number so that no two rows are alike.
        fn rows(&mut self) -> Vec<Vec<String>> {
            let width = 1 + self.below(4);
            let rows = 2 + self.below(6);
            (0..rows)
                .map(|row| {
                    (0..width).map(|at| format!("{}{}", row * 9 + at, self.text())).collect()
                })
                .collect()
        }
    }

    #[test]
    fn three_formats_give_the_same_points() {
        let expected = "{\"n\":\"001\",\"b c\":\"\"}\n{\"n\":\"1\",\"b c\":\"x, \\\"y\\\"\"}\n";
        for (format, sheet) in [
            (Csv, "n,b c\n001,\n1,\"x, \"\"y\"\"\"\n"),
            (Csv, "\u{feff}\"n\",b c\r\n\"001\",\"\"\r\n1,\"x, \"\"y\"\"\"\r\n\r\n"),
            (Tsv, "n\tb c\n001\t\n1\tx, \"y\""),
            (Tsv, "\u{feff}n\tb c\r\n001\t\r\n1\tx, \"y\"\r\n"),
            (Ndjson, "{\"n\":\"001\",\"b c\":\"\"}\n{\"b c\":\"x, \\\"y\\\"\",\"n\":1}\n"),
            (Ndjson, expected),
        ] {
            assert_eq!(written(&parsed(format, sheet)), expected, "{sheet:?}");
            assert_eq!(SheetFormat::detect(sheet.as_bytes()), format, "{sheet:?}");
        }
    }

    #[test]
    fn json_values_are_spelled_as_they_are() {
        let sheet = "{\"a\":1.50,\"b\":-0e+9 , \"c\":true,\"d\":\"\\u0031\\/\"}";
        let points = parsed(Ndjson, sheet);
        let point = points.get(0).unwrap();
        let values: Vec<_> = point.values().map(|(_, text)| text.as_ref()).collect();
        assert_eq!(values, ["1.50", "-0e+9", "true", "1/"]);
        assert_eq!(point.value("c").map(AsRef::as_ref), Some("true"));
        assert_eq!((point.value("e"), points.get(1).is_none(), points.len()), (None, true, 1));
        let large = "{\"a\":123456789012345678901234567890}";
        assert_eq!(
            written(&parsed(Ndjson, large)),
            large.replace(":", ":\"").replace('}', "\"}\n")
        );
    }

    #[test]
    fn a_sheet_may_have_no_points() {
        for (format, sheet, names) in
            [(Ndjson, "", 0), (Ndjson, "\u{feff}\n", 0), (Csv, "a,b\n", 2), (Tsv, "a", 1)]
        {
            let points = parsed(format, sheet);
            assert_eq!((points.len(), points.names().len(), points.iter().len()), (0, names, 0));
            assert!(points.is_empty() && points.get(0).is_none());
            assert_eq!(written(&points), "");
        }
        assert_eq!(SheetFormat::detect(b"\n"), Ndjson);
    }

    #[test]
    fn rows_of_empty_cells_at_the_end_are_no_points() {
        for (format, sheet) in
            [(Csv, "a,b\r\n1,2\r\n,3\r\n,\r\n,\r\n"), (Tsv, "a\tb\n1\t2\n\t3\n\t\n\t\n")]
        {
            let points = read(format, sheet.as_bytes()).unwrap();
            assert_eq!((points.len(), points.blank_rows()), (2, 2));
            assert_eq!([points.levels(0).len(), points.levels(1).len()], [2, 2]);
        }
        // Between others it is a point, and in a sheet of one column it was meant.
        assert_eq!(read(Csv, b"a,b\n,\n1,2\n").unwrap().len(), 2);
        assert_eq!(read(Csv, b"a\n1\n\"\"\n").unwrap().len(), 2);
        // A factor has levels, and no rows that somebody has cleared.
        assert_eq!(read_factor(b"a\tb\n1\t2\n\t\n").unwrap().len(), 2);
        let levels = read_levels("a", b"''\nb\n").unwrap();
        assert_eq!(&*levels.levels(0)[0], "");
    }

    #[test]
    fn an_array_of_json_is_one_problem() {
        for sheet in [
            "[]",
            "[{\"a\":1},{\"a\":2}]\n",
            "\u{feff} [\n  {\n    \"a\": 1\n  }\n]\n",
            "[1, 2]",
            "[\"a\"]",
            "[[1],\n[2]]",
            "[{\"a\":1},\n{\"a\":",
            "[",
        ] {
            let format = SheetFormat::detect(sheet.as_bytes());
            assert_eq!(format, SheetFormat::JsonArray, "{sheet:?}");
            let told = problems(format, sheet.as_bytes());
            assert_eq!(
                told,
                ["the sheet is a JSON array; NDJSON, TSV and CSV are read"],
                "{sheet:?}"
            );
        }
        // A name may begin so.
        for (sheet, format) in
            [("[a],b\n1,2\n", Csv), ("[1],[2]\n3,4\n", Csv), ("[x]\ty\n1\t2\n", Tsv)]
        {
            assert_eq!(SheetFormat::detect(sheet.as_bytes()), format, "{sheet:?}");
            assert_eq!(parsed(format, sheet).len(), 1);
        }
    }

    #[test]
    fn an_object_of_several_lines_is_one_problem() {
        let told = problems(Ndjson, b"{\n  \"a\": 1\n}\n{\n  \"a\": 2\n}\n");
        assert_eq!(
            told,
            ["line 1: the line is not a JSON object: EOF while parsing an object at byte 1"]
        );
        // The lines behind an object that was cut off are read.
        assert_eq!(problems(Ndjson, b"{\"a\":1}\n{\"a\":\n{\"b\":2}\n").len(), 3);
    }

    #[test]
    fn each_fault_has_a_place() {
        for (format, sheet, expected) in [
            (Csv, &b"\r\n"[..], "line 1: the sheet has no header"),
            (Csv, b"a,,b\n", "line 1: the name of column 2 is empty"),
            (Csv, b"a,b,a\n", "line 1: there are two columns \"a\""),
            (
                Csv,
                b"a,\"b\n\"\n",
                "line 1: the name of column 2 cannot be used: it is not one line without control characters",
            ),
            (Csv, b"a,b\n1,2\n\n3,4\n", "line 3: the line is empty"),
            (Csv, b"a\n1\n\n2\n", "line 3: the line is empty"),
            (Csv, b"a,b\n1\n", "line 2: the row has 1 value, and the header 2"),
            (Csv, b"a,b\n1,2,3\n", "line 2: the row has 3 values, and the header 2"),
            (
                Csv,
                b"a,b\n1,\"2\n",
                "line 2: column \"b\": a quoted value begins here and does not end",
            ),
            (
                Csv,
                b"a,b\n1,2\"\n",
                "line 2: column \"b\": a value that does not begin with a quote has one in it",
            ),
            (
                Csv,
                b"a,b\n\"1\" ,2\n",
                "line 2: column \"a\": something follows the closing quote of a value",
            ),
            (
                Csv,
                b"a,b\n\"1\n2\",2\n",
                "line 2: column \"a\": the value cannot be used: it is not one line without control characters",
            ),
            (
                Csv,
                b"a,b\n1,\"2\n\"\n",
                "line 2: column \"b\": the value cannot be used: it is not one line without control characters",
            ),
            (
                Csv,
                b"a\n1\r2\n",
                "line 2: column \"a\": the value cannot be used: it is not one line without control characters",
            ),
            (
                Csv,
                b"a\n\xff\n",
                "line 2: column \"a\": the value cannot be used: it is not UTF-8 text",
            ),
            (Csv, b"a\n1\n2\n\"1\"\n", "line 4: the row repeats line 2"),
            (Csv, b"\"a\n", "line 1: a quoted value begins here and does not end"),
        ] {
            let told = problems(format, sheet);
            assert_eq!(told, [expected], "{:?}", sheet.escape_ascii().to_string());
        }
    }

    #[test]
    fn each_fault_of_an_object_has_a_place() {
        for (format, sheet, expected) in [
            (Ndjson, &b"{\"a\":1}\n\n{\"a\":2}\n"[..], "line 2: the line is empty"),
            (
                Ndjson,
                b"[1]",
                "line 1: the line is not a JSON object: invalid type: sequence, expected an object",
            ),
            (
                Ndjson,
                b"{\"a\":1",
                "line 1: the line is not a JSON object: EOF while parsing an object at byte 6",
            ),
            (
                Ndjson,
                b"{\"a\":1}{",
                "line 1: the line is not a JSON object: trailing characters at byte 8",
            ),
            (Ndjson, b"{}", "line 1: the object has no fields"),
            (Ndjson, b"{\"\":1}", "line 1: the name of column 1 is empty"),
            (Ndjson, b"{\"a\":1,\"\\u0061\":2}", "line 1: there are two columns \"a\""),
            (Ndjson, b"{\"a\":1}\n{\"a\":1,\"a\":2}", "line 2: there are two columns \"a\""),
            (Ndjson, b"{\"a\":null}", "line 1: column \"a\": the value is null"),
            (Ndjson, b"{\"a\":[1]}", "line 1: column \"a\": the value is an object or an array"),
            (
                Ndjson,
                b"{\"a\":\"x\\n\"}",
                "line 1: column \"a\": the value cannot be used: it is not one line without control characters",
            ),
            (Ndjson, b"{\"a\":1}\n{\"a\":\"1\"}", "line 2: the row repeats line 1"),
        ] {
            let told = problems(format, sheet);
            assert_eq!(told, [expected], "{:?}", sheet.escape_ascii().to_string());
        }
        let pieces = ["{\"a\":1,\"b\":2}", "{\"b\":1,\"c\":2}", "{\"a\":\"\\ud800\",\"b\":1}"];
        let expected = [
            "line 2: the first object has no field \"c\"",
            "line 2: the object has no field \"a\"",
            "line 3: column \"a\": the string is not valid: unexpected end of hex escape at byte 8",
        ];
        assert_eq!(problems(Ndjson, pieces.join("\n").as_bytes()), expected);
    }

    #[test]
    fn all_problems_are_reported_up_to_a_limit() {
        let sheet = "a\n1\n1\n\u{1}\n";
        assert_eq!(problems(Tsv, sheet.as_bytes()).len(), 2);
        let sheet = "a\n".to_owned() + &"\u{1}\n".repeat(1000) + "1\n1\n";
        let told = read(Tsv, sheet.as_bytes()).unwrap_err();
        assert_eq!(told.len(), MAX_PROBLEMS + 1);
        assert_eq!(
            told.last().map(|it| (&it.fault, it.line, &it.column)),
            Some((&SheetFault::More, Some(22), &None))
        );
        assert!(told.iter().rev().skip(1).all(|problem| problem.fault.hint().is_some()));
        let same = "a\n".to_owned() + &"1\n".repeat(1000);
        assert_eq!(problems(Csv, same.as_bytes()).len(), MAX_PROBLEMS + 1);
        let told = read(Csv, b"a,b\n\"1\n\n2\",2\n3\n").unwrap_err();
        assert_eq!(told.iter().map(|it| it.line).collect::<Vec<_>>(), [Some(2), Some(5)]);
        let broken = "{\n".to_owned() + "{\"a\":1}\n{\"a\":null}\n{\"b\":1}";
        assert_eq!(problems(Ndjson, broken.as_bytes()).len(), 4);
    }

    #[test]
    fn the_number_of_columns_of_a_sheet_is_limited() {
        let wide: Vec<String> = (0..MAX_COLUMNS + 2).map(|at| at.to_string()).collect();
        assert_eq!(parsed(Csv, &wide[..MAX_COLUMNS].join(",")).names().len(), MAX_COLUMNS);
        let object = format!(
            "{{{}}}",
            wide.iter().map(|name| format!("\"{name}\":1")).collect::<Vec<_>>().join(",")
        );
        for (format, sheet) in [(Csv, wide.join(",")), (Tsv, wide.join("\t")), (Ndjson, object)] {
            assert_eq!(
                problems(format, sheet.as_bytes()),
                ["line 1: the sheet has more than 4096 columns"]
            );
        }
        let row = format!("a\n{}", ",".repeat(10_000));
        assert_eq!(
            problems(Csv, row.as_bytes()),
            ["line 2: the row has 10001 values, and the header 1"]
        );
    }

    /// Returns the faults of a list of levels, in words.
    fn wrong_levels(levels: &[u8]) -> Vec<String> {
        read_levels("n", levels).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn levels_are_read_one_per_line() {
        let points = read_levels("n", b"\xef\xbb\xbf1\r\n 02 \n\n").unwrap();
        assert_eq!(written(&points), "{\"n\":\"1\"}\n{\"n\":\"02\"}\n");
        assert!(read_levels("n", b"").unwrap().is_empty());
        assert_eq!(
            wrong_levels(b"1\n\n2\n\n3"),
            ["line 2: the line is empty", "line 4: the line is empty"]
        );
        assert_eq!(wrong_levels(b"\xff"), ["the list is not UTF-8 text"]);
        assert_eq!(wrong_levels(b"1\n2\n1\n"), ["line 3: the row repeats line 1"]);
        assert_eq!(wrong_levels(b"1\na\tb\n").len(), 1);
    }

    #[test]
    fn texts_with_equal_numeric_values_are_found_in_a_column() {
        let points = parsed(Csv, "a,b\n1,1.0\n2,x\n1.0,2\n");
        let [Lookalike { column, first, second, likeness: Likeness::Number }] =
            &points.lookalikes()[..]
        else {
            panic!()
        };
        assert_eq!([column, first.as_ref(), second.as_ref()], ["a", "1", "1.0"]);
    }

    /// A value of CSV in quotes.
    fn quoted(text: &str) -> String {
        format!("\"{}\"", text.replace('"', "\"\""))
    }

    /// A value of CSV, in quotes if it needs them.
    fn quoted_if_needed(text: &str) -> String {
        if text.contains([',', '"']) { quoted(text) } else { text.to_owned() }
    }

    /// A sheet with these rows.
    fn sheet(rows: &[Vec<String>], cell: fn(&str) -> String, separator: &str) -> String {
        let mut lines = Vec::new();
        for row in rows {
            let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
            lines.push(cells.join(separator));
        }
        lines.join("\n")
    }

    #[test]
    fn points_are_read_as_they_were_written() {
        let mut numbers = Numbers(2);
        for _ in 0..500 {
            let rows = numbers.rows();
            let points = parsed(Csv, &sheet(&rows, quoted, ","));
            assert_eq!(points.names(), rows[0]);
            for (point, row) in points.iter().zip(&rows[1..]) {
                assert!(point.values().map(|(_, text)| text.as_ref()).eq(row));
            }
            assert_eq!(parsed(Csv, &sheet(&rows, quoted_if_needed, ",")), points);
            assert_eq!(parsed(Tsv, &sheet(&rows, str::to_owned, "\t")), points);
            let json = written(&points);
            assert_eq!(parsed(Ndjson, &json), points);
            assert_eq!(written(&parsed(Ndjson, &json)), json);
        }
    }

    #[test]
    fn any_bytes_are_points_or_problems() {
        const PIECES: [&[u8]; 16] = [
            b"\"",
            b",",
            b"\n",
            b"\r",
            b"\t",
            b"a",
            b"1",
            b"{\"a\":",
            b"}",
            b"[",
            b"\\u00",
            b"\xff",
            b"\xef\xbb\xbf",
            b"{",
            b":",
            b"null",
        ];
        let mut numbers = Numbers(3);
        for _ in 0..20_000 {
            let sheet: Vec<u8> =
                (0..numbers.below(12)).flat_map(|_| PIECES[numbers.below(16)]).copied().collect();
            for format in [Ndjson, Tsv, Csv, SheetFormat::detect(&sheet)] {
                match read(format, &sheet) {
                    Ok(points) => {
                        assert_eq!(parsed(Ndjson, &written(&points)).len(), points.len());
                    }
                    Err(problems) => assert!(!problems.is_empty()),
                }
            }
            assert!(
                read_levels("n", &sheet).is_ok_and(|points| points.names() == ["n"])
                    || !sheet.is_empty()
            );
        }
    }

    /// Two factors; the second one has two columns.
    fn factors() -> Vec<SweepPoints> {
        vec![read_levels("t", b"1\n2").unwrap(), parsed(Tsv, "s\tw\n10\tx\n20\ty\n30\tx\n")]
    }

    #[test]
    fn the_last_factor_varies_fastest_and_replicates_are_innermost() {
        let product = product(factors(), NonZeroU32::new(2)).unwrap();
        assert_eq!(product.names(), ["t", "s", "w", "replicate"]);
        assert_eq!(product.len(), 12);
        let rows: Vec<String> = product
            .iter()
            .map(|point| {
                point.values().map(|(_, text)| text.as_ref()).collect::<Vec<_>>().join(" ")
            })
            .collect();
        assert_eq!(rows[..4], ["1 10 x 1", "1 10 x 2", "1 20 y 1", "1 20 y 2"]);
        assert_eq!((rows[6].as_str(), rows[11].as_str()), ("2 10 x 1", "2 30 x 2"));
        assert_eq!(product.get(1).unwrap().level_numbers(), [0, 0, 0, 1]);
        assert_eq!(product.get(1).unwrap().at(3).as_ref(), "2");
    }

    fn levels(name: &str, levels: &str) -> SweepPoints {
        read_levels(name, levels.as_bytes()).unwrap()
    }

    #[test]
    fn factors_that_have_no_product_are_reported() {
        assert_eq!(product(Vec::new(), None), Err(vec![FactorFault::NoFactors]));
        assert_eq!(product(Vec::new(), NonZeroU32::new(3)).unwrap().len(), 3);
        let wrong =
            vec![levels("a", "1"), levels("b", ""), levels("a", "2"), levels("replicate", "1")];
        let name = |name: &str, factor, first| FactorFault::SameName {
            name: name.to_owned(),
            factor,
            first,
        };
        assert_eq!(
            product(wrong, NonZeroU32::new(1)),
            Err(vec![
                FactorFault::NoLevels { factor: 1 },
                name("a", 2, 0),
                name("replicate", 4, 3)
            ])
        );
        let many = (0..3000).map(|at| format!("{at}\n")).collect::<String>();
        let many = |count| {
            (0..count).map(|at| levels(["a", "b", "c", "d", "e", "f"][at], &many)).collect()
        };
        assert_eq!(product(many(6), NonZeroU32::new(u32::MAX)), Err(vec![FactorFault::TooMany]));
        assert_eq!(product(many(2), NonZeroU32::new(2)), Err(vec![FactorFault::TooMany]));
        assert_eq!(product(many(1), NonZeroU32::new(2)).unwrap().len(), 6000);
    }

    /// The number of points that an exclusion leaves, and its faults.
    fn excluded(exclusion: &str) -> (usize, Vec<String>) {
        let mut points = product(factors(), NonZeroU32::new(2)).unwrap();
        let faults = points.exclude(&read_factor(exclusion.as_bytes()).unwrap());
        (points.len(), faults.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn an_exclusion_removes_what_it_matches() {
        assert_eq!(excluded("t\n1\n"), (6, vec![]));
        assert_eq!(excluded("w\tt\nx\t1\n\t2\n"), (2, vec![]));
        assert_eq!(excluded("s\tw\n10\tx\n10\t\n"), (8, vec![]));
        assert_eq!(excluded("replicate\tt\n2\t2\n"), (9, vec![]));
        assert_eq!(excluded("t\ts\n\t\n"), (0, vec![]));
        assert_eq!(excluded("t\ts\n"), (12, vec![]));
        let unmatched = "no point is excluded by s=10 w=y".to_owned();
        assert_eq!(excluded("s\tw\n10\ty\n20\ty\n"), (8, vec![unmatched]));
        assert_eq!(excluded("t\n01\n"), (12, vec!["no point is excluded by t=01".to_owned()]));
        assert_eq!(
            excluded("tt\tw\n1\tx\n"),
            (12, vec!["the points have no column \"tt\"".to_owned()])
        );
        let mut points = product(factors(), None).unwrap();
        let [fault] = &points.exclude(&parsed(Tsv, "tt\n1\n"))[..] else { panic!() };
        let columns = "the columns are \"t\", \"s\", \"w\"";
        assert_eq!(fault.hint(), Some(format!("did you mean \"t\"? {columns}")));
        let [fault] = &points.exclude(&parsed(Tsv, "other\n1\n"))[..] else { panic!() };
        assert_eq!(fault.hint().as_deref(), Some(columns));
    }

    #[test]
    fn permuting_levels_permutes_points() {
        let mut numbers = Numbers(1);
        for _ in 0..50 {
            let lists: Vec<Vec<String>> = (0..1 + numbers.below(4))
                .map(|_| (0..1 + numbers.below(5)).map(|at| format!("{at}x")).collect())
                .collect();
            let exclusion = parsed(Tsv, &format!("n0\n{}\n", lists[0][0]));
            let lines = |lists: &[Vec<String>]| {
                let factors: Vec<SweepPoints> = (0..)
                    .zip(lists)
                    .map(|(at, list)| levels(&format!("n{at}"), &list.join("\n")))
                    .collect();
                let mut points = product(factors, NonZeroU32::new(2)).unwrap();
                let size = 2 * lists.iter().map(Vec::len).product::<usize>();
                assert_eq!(points.len(), size);
                assert_eq!(points.exclude(&exclusion), []);
                assert_eq!(points.len(), size - size / lists[0].len());
                written(&points).lines().map(str::to_owned).collect::<Vec<_>>()
            };
            let before = lines(&lists);
            let mut permuted = lists.clone();
            for list in &mut permuted {
                let by = numbers.below(list.len());
                list.rotate_left(by);
                list.reverse();
            }
            let after = lines(&permuted);
            assert_eq!(before.len(), after.len());
            assert_eq!(before.into_iter().collect::<BTreeSet<_>>(), after.into_iter().collect());
        }
    }
}
