//! Medians of two sides of a table compared, group by group: two levels of a factor, or two tables.
//!
//! The values that a call makes count as one, however many rows of a side have them: as their median. Groups are told apart by
//! names of points, but not by the replicate, nor by names of which the two sides have no text in common. The rules are those of
//! [`statistics`].

use std::collections::{BTreeSet, HashSet};

use jiff::{SignedDuration, Timestamp};

use ce_model::digest::is_object_id;
use ce_model::exit::{Exit, Explain};
use ce_model::humanize::{counted, listed};
use ce_model::statistics::{
    self, CONFIDENCE, ChangeVerdict, ComparedSides, Estimate, Measurements, MedianChange,
};
use ce_model::suggest::UnknownName;
use ce_model::sweep::{Better, CellValue, ColumnMeasure, REPLICATE, point_title};

use crate::frame::{
    CellKinds, ColumnRole, Frame, FrameColumn, FrameRow, FrameSide, MeasuredSide, RowGroup,
    RowStatus, SideRows, grouped,
};

/// The factor by which one side may be measured more often than the other one before that is reported.
const UNEVEN: usize = 2;

/// The medians of two sides, compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparedMedians {
    /// The change, unless there are too few values.
    pub change: Option<MedianChange>,
    /// The verdict on the change.
    pub verdict: ChangeVerdict,
    /// Whether the spelling of the values moved an end of the interval by more than the threshold.
    pub is_coarse: bool,
    /// Whether nothing is decided because of the spelling: more values would not help, but more digits would.
    pub is_rounded: bool,
}

impl ComparedMedians {
    /// Compares an old side with a new one, with a threshold such as [`THRESHOLD`](statistics::THRESHOLD).
    /// The resolution of the values is found here.
    pub fn new(sides: [&MeasuredSide<'_>; 2], kind: ComparedSides, threshold: f64) -> Self {
        let [old, new] = sides.map(MeasuredSide::sample);
        let (Some(old), Some(new)) = (old, new) else {
            let verdict = ChangeVerdict::TooFew;
            return Self { change: None, verdict, is_coarse: false, is_rounded: false };
        };
        let [coarse, fine] = [resolution(sides), 0.0].map(|it| kind.with_resolution(it));
        let (change, verdict) = statistics::compare(&old, &new, coarse, threshold);
        let (finer, finer_verdict) = statistics::compare(&old, &new, fine, threshold);
        let is_coarse = change.zip(finer).is_some_and(|(change, finer)| {
            let [ends, finer_ends] = [change, finer].map(|it| [it.estimate.low, it.estimate.high]);
            ends.into_iter().zip(finer_ends).any(|(end, finer)| {
                if change.is_ratio {
                    (end / finer).ln().abs() > threshold.ln_1p()
                } else {
                    (end - finer).abs() > threshold * old.median().abs()
                }
            })
        });
        let is_rounded = verdict.is_unclear() && !finer_verdict.is_unclear();
        let verdict = if is_rounded { ChangeVerdict::Unclear { needed: None } } else { verdict };
        Self { change, verdict, is_coarse, is_rounded }
    }
}

/// See [`statistics::resolution`].
fn resolution(sides: [&MeasuredSide<'_>; 2]) -> f64 {
    statistics::resolution(sides.iter().flat_map(|side| side.spelled.iter().copied()))
}

/// The geometric mean of the ratios of comparisons, if each has one.
pub fn mean_ratio<'a>(all: impl Iterator<Item = &'a ComparedMedians>) -> Option<Estimate> {
    let ratios = all.map(|it| Some(it.change.filter(|change| change.is_ratio)?.estimate));
    statistics::geometric_mean(&ratios.collect::<Option<Vec<_>>>()?)
}

/// Whether a change is good, where there is one and that is known.
pub fn is_better(verdict: ChangeVerdict, better: Option<Better>) -> Option<bool> {
    let towards = match verdict {
        ChangeVerdict::Less => Better::Less,
        ChangeVerdict::More => Better::More,
        _ => return None,
    };
    better.map(|better| better == towards)
}

/// The two sides: which rows of which table.
#[derive(Clone, Copy, Debug)]
pub enum MedianTables<'a> {
    /// The rows of one table that have an old and a new text in a column.
    Levels {
        /// The table.
        table: &'a Frame,
        /// The column.
        by: &'a str,
        /// The texts. Of a commit, the first digits are enough.
        levels: [&'a str; 2],
    },
    /// All rows of an old table, and all of a new one.
    Tables([&'a Frame; 2]),
}

/// The columns to compare, and the rules of the comparison.
#[derive(Clone, Debug, Default)]
pub struct MedianRules {
    /// The names of the columns; without any, all columns of numbers.
    pub columns: Vec<String>,
    /// The names of columns that are no measurements: sizes, counts.
    pub exact: Vec<String>,
    /// The names that tell groups apart, if not the names of points.
    pub groups: Vec<String>,
    /// The least change that matters, as a share.
    pub threshold: f64,
    /// The direction of better values, if it is not that of the columns.
    pub better: Option<Better>,
    /// Whether the confidence is that of all intervals of a column together.
    pub is_family: bool,
    /// Whether the largest changes come first.
    pub is_sorted: bool,
}

/// The reason why nothing is compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MedianError {
    /// No column has this name.
    #[error("the table has no column {}; there are {}", .0, .0.known.join(", "))]
    NoColumn(UnknownName),
    /// A column has no such text.
    #[error("{by} has no level {level}; there are {}", listed(&level.known))]
    NoLevel {
        /// The column.
        by: String,
        /// The text, and those that there are.
        level: UnknownName,
    },
    /// Several commits begin so.
    #[error("{by} has several levels that begin with {level:?}: {}", listed(known))]
    ManyLevels {
        /// The column.
        by: String,
        /// The digits.
        level: String,
        /// The commits.
        known: Vec<String>,
    },
    /// Both levels are one.
    #[error("both levels of {by} are {level:?}")]
    SameLevel {
        /// The column.
        by: String,
        /// The text.
        level: String,
    },
    /// A column has other values than numbers, or none on a side.
    #[error("the column {name} cannot be compared: {why}")]
    NoNumbers {
        /// The column.
        name: String,
        /// The reason.
        why: String,
    },
    /// A column of numbers has something else.
    #[error("the column {name} cannot be compared: {text:?} {place} is no number{}", if *.is_too_large { " that a double can hold" } else { "" })]
    NotNumber {
        /// The column.
        name: String,
        /// The text that it has.
        text: String,
        /// Whether it is a number that a double cannot hold.
        is_too_large: bool,
        /// The row, in words.
        place: String,
    },
    /// No row of a side has values.
    #[error("none of the {} of a side has values", counted(*.0, "row"))]
    Absent(usize),
    /// No column has numbers on both sides.
    #[error("no column has numbers on both sides; {}", columns_in_words(.0))]
    Nothing(Vec<String>),
}

/// Describes in words the columns that there are.
fn columns_in_words(names: &[String]) -> String {
    match names {
        [] => "there are no columns".to_owned(),
        names => {
            let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
            format!("the columns are {}", names.join(", "))
        }
    }
}

impl Explain for MedianError {
    fn exit(&self) -> Exit {
        if matches!(self, Self::Absent(_)) { Exit::Missing } else { Exit::Malformed }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoColumn(unknown) | Self::NoLevel { level: unknown, .. } => {
                unknown.meant().unwrap_or_else(|| "give one of these names".to_owned())
            }
            Self::SameLevel { .. } => "give an old and a new one, as NAME=OLD,NEW".to_owned(),
            Self::NoNumbers { .. } => "texts and digests are compared by ce diff".to_owned(),
            Self::NotNumber { .. } => {
                "let what was not measured fail, or be empty; or choose columns with --column, and names of groups with --group".to_owned()
            }
            Self::ManyLevels { .. } => "give more digits".to_owned(),
            Self::Absent(_) => "ce table says what became of each".to_owned(),
            Self::Nothing(_) => {
                "name columns alike on both sides, and separate them by commas or tabs; texts and digests are compared by ce diff"
                    .to_owned()
            }
        })
    }
}

/// The comparison of two sides.
#[derive(Clone, Debug, PartialEq)]
pub struct MedianTable {
    /// The names of the sides: the texts of levels, or nothing for tables.
    pub levels: Option<[String; 2]>,
    /// The names that tell groups apart.
    pub groups: Vec<String>,
    /// The names of points of which the sides have no text in common. They tell no groups apart.
    pub differing: Vec<String>,
    /// The columns.
    pub columns: Vec<MedianColumn>,
}

/// The comparison of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct MedianColumn {
    /// Its name.
    pub name: String,
    /// Its unit, and which values are better.
    pub measure: ColumnMeasure,
    /// The confidence of intervals; `None` if its values are no measurements.
    pub confidence: Option<f64>,
    /// The groups. Those of one side only come last.
    pub rows: Vec<MedianRow>,
}

/// A group of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct MedianRow {
    /// The text of each name.
    pub group: Vec<CellValue>,
    /// The number of rows of each side that should have values and are not there.
    pub not_ok: [usize; 2],
    /// The values of each side that has some.
    pub samples: [Option<Measurements>; 2],
    /// The comparison, if both sides have the group.
    pub compared: Option<ComparedMedians>,
    /// Remarks on it for the user.
    pub notes: Vec<MedianNote>,
}

impl MedianRow {
    /// The number of values of each side.
    pub fn n(&self) -> [usize; 2] {
        self.samples.each_ref().map(|sample| sample.as_ref().map_or(0, Measurements::n))
    }

    /// Whether the change is a ratio, and its size in either direction: of a ratio, that of its logarithm.
    fn size(&self) -> Option<(bool, f64)> {
        let change = self.compared.and_then(|it| it.change)?;
        let value = change.estimate.value;
        Some(if change.is_ratio { (true, value.ln().abs()) } else { (false, value.abs()) })
    }
}

/// A remark on a group for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MedianNote {
    /// Rows have no values.
    NotOk(usize),
    /// Rows that are there have an empty cell.
    Empty(usize),
    /// The sides have values of the same calls: so many, of those of the old side and of the new one.
    Shared([usize; 3]),
    /// The sides were measured on other hosts.
    Hosts([Vec<String>; 2]),
    /// They were measured on machines that are not the same.
    Machines([Vec<String>; 2]),
    /// One side was measured before the other one began.
    Times,
    /// The numbers of values differ by much.
    Uneven,
    /// There are outliers, which count.
    Outliers(usize),
    /// Values are rounded so much that this matters.
    Resolution,
    /// Values that are no measurements differ.
    Inexact,
}

/// A column, by its place in the table of each side.
#[derive(Clone, Copy)]
struct SideColumn<'n> {
    name: &'n str,
    places: [Option<usize>; 2],
}

/// Two sides that are compared.
struct SideComparison<'a> {
    /// The table of each side. Levels have the same one.
    frames: [&'a Frame; 2],
    /// The column and the texts of levels.
    levels: Option<(&'a str, [String; 2])>,
    /// The rows of each side, without excluded points.
    rows: [Vec<&'a FrameRow>; 2],
    rules: &'a MedianRules,
}

impl MedianTable {
    /// Compares two sides.
    ///
    /// # Errors
    ///
    /// Fails if a name or a level is unknown, or if nothing can be compared.
    pub fn new(tables: MedianTables<'_>, rules: &MedianRules) -> Result<Self, MedianError> {
        SideComparison::new(tables, rules)?.table()
    }
}

impl<'a> SideComparison<'a> {
    fn new(tables: MedianTables<'a>, rules: &'a MedianRules) -> Result<Self, MedianError> {
        let (frames, levels) = match tables {
            MedianTables::Levels { table, by, levels } => ([table; 2], Some((by, levels))),
            MedianTables::Tables(tables) => (tables, None),
        };
        let rows = frames.map(|frame| frame.included().collect());
        let mut comparison = Self { frames, levels: None, rows, rules };
        if let Some((by, levels)) = levels {
            let at = comparison.found(by)?.places[0].unwrap_or_default();
            let levels = found_levels(&comparison.rows[0], by, at, levels)?;
            for (rows, level) in comparison.rows.iter_mut().zip(&levels) {
                rows.retain(|row| row.cells[at].text() == *level);
            }
            comparison.levels = Some((by, levels));
        }
        for rows in comparison.rows.iter().filter(|rows| !rows.is_empty()) {
            if rows.iter().all(|row| row.status != RowStatus::Ok) {
                return Err(MedianError::Absent(rows.len()));
            }
        }
        Ok(comparison)
    }

    fn table(self) -> Result<MedianTable, MedianError> {
        let rules = self.rules;
        let (groups, differing) = self.group_columns()?;
        let gathered = self.gathered(&groups);
        let asked: Vec<&str> = match &rules.columns[..] {
            [] => self.names().into_iter().filter(|name| !self.is_taken(name)).collect(),
            asked => asked.iter().map(String::as_str).collect(),
        };
        for name in rules.exact.iter().filter(|name| !asked.contains(&name.as_str())) {
            self.found(name)?;
        }
        let mut columns = Vec::new();
        for name in asked {
            let column = self.found(name)?;
            match self.numbers_problem(column) {
                None => columns.push(self.column(&gathered, column)),
                Some(error)
                    if !rules.columns.is_empty()
                        || matches!(error, MedianError::NotNumber { .. }) =>
                {
                    return Err(error);
                }
                Some(_) => {}
            }
        }
        if columns.is_empty() {
            let names = self.names().into_iter();
            return Err(MedianError::Nothing(names.map(str::to_owned).collect()));
        }
        let [groups, differing] =
            [groups, differing].map(|names| names.iter().map(|it| it.name.to_owned()).collect());
        Ok(MedianTable { levels: self.levels.map(|(_, texts)| texts), groups, differing, columns })
    }

    /// The names of all columns, those of the newer side first.
    fn names(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.frames.iter().rev().flat_map(|frame| frame.names()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The column with this name, which at least one side has.
    fn found<'n>(&self, name: &'n str) -> Result<SideColumn<'n>, MedianError> {
        let places = self.frames.map(|frame| frame.place(name));
        if places == [None; 2] {
            return Err(MedianError::NoColumn(UnknownName::new(name, self.names())));
        }
        Ok(SideColumn { name, places })
    }

    /// The columns with this name, of the newer side first.
    fn columns_named(&self, name: &str) -> impl Iterator<Item = &'a FrameColumn> {
        self.frames.into_iter().rev().filter_map(|frame| Some(&frame.columns[frame.place(name)?]))
    }

    /// Whether a column is not compared unless that is asked for.
    fn is_taken(&self, name: &str) -> bool {
        let is_of_point = |column: &FrameColumn| match column.role {
            ColumnRole::Key | ColumnRole::Label => true,
            ColumnRole::RowLabel | ColumnRole::Value => false,
        };
        self.rules.groups.iter().any(|group| group == name)
            || self.levels.as_ref().is_some_and(|(by, _)| *by == name)
            || name == REPLICATE
            || !self.columns_named(name).any(|it| it.is_numeric)
                && self.columns_named(name).any(is_of_point)
    }

    /// The columns that tell groups apart, and those that would and have no text in common on both sides.
    fn group_columns(&self) -> Result<(Vec<SideColumn<'a>>, Vec<SideColumn<'a>>), MedianError> {
        let mut columns: Vec<SideColumn<'a>> = Vec::new();
        let is_key = |column: &&FrameColumn| match column.role {
            ColumnRole::Key | ColumnRole::RowLabel => true,
            ColumnRole::Label | ColumnRole::Value => false,
        };
        let asked: Vec<&str> = match &self.rules.groups[..] {
            [] => {
                let columns = self.frames.iter().rev().flat_map(|frame| &frame.columns);
                columns.filter(is_key).map(|column| &*column.name).collect()
            }
            groups => groups.iter().map(String::as_str).collect(),
        };
        for name in asked {
            let is_side = self.levels.as_ref().is_some_and(|(by, _)| *by == name);
            let is_measured = self.rules.columns.iter().any(|column| column == name);
            if !is_side
                && !is_measured
                && name != REPLICATE
                && columns.iter().all(|known| known.name != name)
            {
                columns.push(self.found(name)?);
            }
        }
        let (differing, groups) = columns.into_iter().partition(|column| self.differs(*column));
        Ok((groups, differing))
    }

    /// Whether the sides have rows, and no text of a column in common.
    fn differs(&self, column: SideColumn<'_>) -> bool {
        let [old, new] = [0, 1].map(|side| {
            let at = column.places[side];
            let texts = self.rows[side].iter().filter_map(|row| Some(row.cells[at?].text()));
            texts.collect::<HashSet<_>>()
        });
        !self.rows.iter().any(Vec::is_empty) && old.is_disjoint(&new)
    }

    /// The groups, in the order of the rows of the new side, and then of the old one. Those of one side only come last.
    fn gathered(&self, by: &[SideColumn<'_>]) -> Vec<RowGroup<'a, 2>> {
        let mut groups = grouped([0, 1].map(|side| FrameSide {
            frame: self.frames[side],
            rows: self.rows[side].clone(),
            places: by.iter().map(|column| column.places[side]).collect(),
        }));
        groups.sort_by_key(|group| group.sides.iter().any(SideRows::is_empty));
        groups
    }

    /// Returns the reason why a column is not one of numbers on both sides. One that has other texts among its numbers is of
    /// numbers, and wrong.
    fn numbers_problem(&self, column: SideColumn<'_>) -> Option<MedianError> {
        let (mut wrong, mut text) = (None, None);
        let (mut is_of_numbers, mut is_empty) = (false, false);
        for side in [0, 1] {
            let Some(at) = column.places[side] else {
                is_empty = true;
                continue;
            };
            let column = &self.frames[side].columns[at];
            let ok = self.rows[side].iter().filter(|row| row.status == RowStatus::Ok);
            let kinds = CellKinds::new(column, ok.clone().map(|row| &row.cells[at]));
            let mut wrong_rows = ok.filter(|row| {
                row.cells[at] != CellValue::Null && !column.reads_as_number(&row.cells[at])
            });
            wrong = wrong.or_else(|| wrong_rows.next().map(|row| (side, *row, &row.cells[at])));
            text = text.or(kinds.text);
            is_of_numbers |= kinds.are_mostly_numbers();
            is_empty |= kinds.readable == 0;
        }
        let name = column.name.to_owned();
        let why = match (wrong, text) {
            (Some((side, row, cell)), _) if is_of_numbers => {
                let of = ["of the old table ", "of the new table "][side];
                let of = if self.levels.is_some() { "" } else { of };
                let place = format!("{} {of}", place_of_row(self.frames[side], row));
                let is_too_large = matches!(cell, CellValue::Number(_));
                let (text, place) = (cell.text().to_owned(), place.trim_end().to_owned());
                return Some(MedianError::NotNumber { name, text, is_too_large, place });
            }
            (Some((.., cell)), _) => format!("{:?} is no number", cell.text()),
            (None, Some(text)) => format!("{:?} is a text", text.text()),
            (None, None) if is_empty => "it has no numbers on one side".to_owned(),
            (None, None) => return None,
        };
        Some(MedianError::NoNumbers { name, why })
    }

    fn column(&self, gathered: &[RowGroup<'a, 2>], column: SideColumn<'_>) -> MedianColumn {
        let SideColumn { name, places } = column;
        let mut given = self.columns_named(name).map(|column| &column.measure);
        let measure = given.find(|measure| **measure != ColumnMeasure::default()).cloned();
        let mut measure = measure.unwrap_or_default();
        measure.better = self.rules.better.or(measure.better);
        let groups: Vec<ComparedGroup<'_>> =
            gathered.iter().map(|group| self.compared_group(group, places)).collect();
        let compared = groups.iter().filter(|it| !it.is_single() && !it.is_same_calls).count();
        let is_exact = self.rules.exact.iter().any(|exact| exact == name);
        let confidence = match self.rules.is_family {
            true => 1.0 - (1.0 - CONFIDENCE) / compared.max(1) as f64,
            false => CONFIDENCE,
        };
        let kind =
            if is_exact { ComparedSides::Exact } else { ComparedSides::measured(confidence) };
        let mut rows: Vec<MedianRow> =
            groups.into_iter().map(|group| group.row(kind, self.rules.threshold)).collect();
        if self.rules.is_sorted {
            // A group of one side only is last, and has no size.
            rows.sort_by(|a, b| {
                let by_size = b.size().partial_cmp(&a.size()).unwrap_or(std::cmp::Ordering::Equal);
                a.compared.is_none().cmp(&b.compared.is_none()).then(by_size)
            });
        }
        let confidence = (!is_exact).then_some(confidence);
        MedianColumn { name: name.to_owned(), measure, confidence, rows }
    }

    /// The values that a group has in a column, and the calls that made them.
    fn compared_group<'g>(
        &self,
        group: &'g RowGroup<'a, 2>,
        places: [Option<usize>; 2],
    ) -> ComparedGroup<'g> {
        let sides = [0, 1].map(|side| SideValues::new(&group.sides[side], places[side]));
        let is_one_table = self.levels.is_some();
        let mut are_known = true;
        let calls = [0, 1].map(|side| {
            let calls = group.sides[side]
                .ok()
                .map(|row| call(self.frames[side], row, places[side]?, is_one_table));
            calls
                .inspect(|call| are_known &= call.is_some())
                .flatten()
                .collect::<BTreeSet<String>>()
        });
        let [old, new] = &calls;
        let is_same_calls = are_known && !old.is_empty() && old == new;
        let shared = [old.intersection(new).count(), old.len(), new.len()];
        ComparedGroup { key: &group.key, sides, is_same_calls, shared }
    }
}

/// A row in words: its point, or in a file its number behind the header.
fn place_of_row(frame: &Frame, row: &FrameRow) -> String {
    if frame.columns.iter().any(|column| column.output.is_some()) {
        let points = frame.columns.iter().zip(&row.cells);
        let points = points.filter(|(column, _)| column.role == ColumnRole::Key);
        return format!(
            "at {}",
            point_title(points.map(|(column, cell)| (&*column.name, cell.text())))
        );
    }
    let at = frame.rows.iter().position(|it| std::ptr::eq(it, row));
    format!("in row {}", at.map_or(0, |at| at + 1))
}

/// Returns the call that has made the value of a column, in words that are the same for the same call: in one table a number,
/// in two the execution.
fn call(frame: &Frame, row: &FrameRow, column: usize, is_one_table: bool) -> Option<String> {
    if is_one_table {
        return frame.call_of(row, column).map(|call| call.to_string());
    }
    let executions = &row.origin.as_ref()?.executions;
    executions.get(usize::from(frame.columns[column].output?))?.clone()
}

/// The texts of a column that two levels are: a text, or the only commit that begins so.
fn found_levels(
    rows: &[&FrameRow],
    by: &str,
    at: usize,
    levels: [&str; 2],
) -> Result<[String; 2], MedianError> {
    let mut seen = HashSet::new();
    let texts = rows.iter().map(|row| row.cells[at].text());
    let known: Vec<String> = texts.filter(|text| seen.insert(*text)).map(str::to_owned).collect();
    let [old, new] = [found_level(&known, by, levels[0])?, found_level(&known, by, levels[1])?];
    if old == new {
        return Err(MedianError::SameLevel { by: by.to_owned(), level: old });
    }
    Ok([old, new])
}

/// The text of those known that a level is: the same text, or the only commit that begins so.
fn found_level(known: &[String], by: &str, level: &str) -> Result<String, MedianError> {
    let commits = known.iter().filter(|text| is_object_id(text));
    let begun = commits.filter(|text| !level.is_empty() && text.starts_with(level));
    let begun: Vec<String> = begun.cloned().collect();
    let (by, level) = (by.to_owned(), level.to_owned());
    match &begun[..] {
        _ if known.contains(&level) => Ok(level),
        [only] => Ok(only.clone()),
        [] => Err(MedianError::NoLevel { by, level: UnknownName::new(level, known) }),
        _ => Err(MedianError::ManyLevels { by, level, known: begun }),
    }
}

/// The values that both sides of a group have in a column.
struct ComparedGroup<'a> {
    key: &'a [&'a CellValue],
    sides: [SideValues<'a>; 2],
    /// Whether the same calls made what both sides have.
    is_same_calls: bool,
    /// The number of calls that both sides have, and of those of each side.
    shared: [usize; 3],
}

impl ComparedGroup<'_> {
    /// Whether one side alone has the group.
    const fn is_single(&self) -> bool {
        self.sides[0].rows == 0 || self.sides[1].rows == 0
    }

    /// Compares the sides.
    fn row(&self, kind: ComparedSides, threshold: f64) -> MedianRow {
        let kind = if self.is_same_calls { ComparedSides::SameCalls } else { kind };
        let sides = self.sides.each_ref().map(|side| &side.measured);
        let compared = (!self.is_single()).then(|| ComparedMedians::new(sides, kind, threshold));
        let notes = notes(&self.sides, self.shared, kind, compared);
        MedianRow {
            group: self.key.iter().map(|cell| (*cell).clone()).collect(),
            not_ok: self.sides.each_ref().map(|side| side.not_ok),
            samples: sides.map(MeasuredSide::sample),
            compared,
            notes,
        }
    }
}

/// The values that one side of a group has in a column.
#[derive(Default)]
struct SideValues<'a> {
    /// The number of rows.
    rows: usize,
    /// A value for each call.
    measured: MeasuredSide<'a>,
    /// The number of calls whose rows are not there.
    not_ok: usize,
    /// The number of rows that are there and have nothing.
    empty: usize,
    hosts: BTreeSet<&'a str>,
    machines: BTreeSet<&'a str>,
    /// The first beginning and the last end of an execution.
    times: Option<[Timestamp; 2]>,
}

impl<'a> SideValues<'a> {
    fn new(rows: &SideRows<'a>, column: Option<usize>) -> Self {
        let (rows_in_all, not_ok) = (rows.rows().len(), rows.absent());
        let mut side = Self { rows: rows_in_all, not_ok, ..Self::default() };
        let Some(at) = column else { return side };
        side.measured = rows.measured(at);
        side.empty = rows.ok().filter(|row| row.cells[at] == CellValue::Null).count();
        let measured = rows.ok().filter(|row| row.cells[at].number().is_some());
        for origin in measured.filter_map(|row| row.origin.as_ref()) {
            side.hosts.extend(origin.host.as_deref());
            side.machines.extend(origin.machine.as_deref());
            if let Some(end) = origin.at {
                let took = SignedDuration::try_from_secs_f64(origin.seconds.unwrap_or_default());
                let begin = took.ok().and_then(|took| end.checked_sub(took).ok()).unwrap_or(end);
                let [first, last] = side.times.unwrap_or([begin, end]);
                side.times = Some([first.min(begin), last.max(end)]);
            }
        }
        side
    }
}

/// Returns the remarks on a group. Of one that was measured once for both sides, these are only about rows without values.
fn notes(
    sides: &[SideValues<'_>; 2],
    shared: [usize; 3],
    kind: ComparedSides,
    compared: Option<ComparedMedians>,
) -> Vec<MedianNote> {
    let [old, new] = sides;
    let mut notes = Vec::new();
    let not_ok = old.not_ok + new.not_ok;
    if not_ok > 0 {
        notes.push(MedianNote::NotOk(not_ok));
    }
    let empty = old.empty + new.empty;
    if empty > 0 {
        notes.push(MedianNote::Empty(empty));
    }
    if kind == ComparedSides::SameCalls {
        return notes;
    }
    if shared[0] > 0 {
        notes.push(MedianNote::Shared(shared));
    }
    let samples = [old, new].map(|side| side.measured.sample());
    if let (Some(_), [Some(old_sample), Some(new_sample)]) = (compared, &samples) {
        if kind == ComparedSides::Exact {
            if [old_sample, new_sample].iter().any(|it| it.range()[0] != it.range()[1]) {
                notes.push(MedianNote::Inexact);
            }
            return notes;
        }
        notes.extend(differing_names([&old.hosts, &new.hosts]).map(MedianNote::Hosts));
        notes.extend(differing_names([&old.machines, &new.machines]).map(MedianNote::Machines));
        if let (Some(a), Some(b)) = (old.times, new.times)
            && (a[1] <= b[0] || b[1] <= a[0])
        {
            notes.push(MedianNote::Times);
        }
        let [old_n, new_n] = [old_sample.n(), new_sample.n()];
        if old_n.max(new_n) > UNEVEN * old_n.min(new_n) {
            notes.push(MedianNote::Uneven);
        }
        let least = resolution(sides.each_ref().map(|side| &side.measured));
        let outliers = old_sample.outliers(least) + new_sample.outliers(least);
        if outliers > 0 {
            notes.push(MedianNote::Outliers(outliers));
        }
        if compared.is_some_and(|it| it.is_coarse) {
            notes.push(MedianNote::Resolution);
        }
    }
    notes
}

/// The names of both sides, if each side has some and they differ.
fn differing_names(sides: [&BTreeSet<&str>; 2]) -> Option<[Vec<String>; 2]> {
    let differ = !sides.iter().any(|names| names.is_empty()) && sides[0] != sides[1];
    differ.then(|| sides.map(|names| names.iter().map(|name| (*name).to_owned()).collect()))
}

impl MedianColumn {
    /// The geometric mean of the ratios of the groups that both sides have, if there are several and each has one.
    pub fn mean(&self) -> Option<Estimate> {
        let compared: Vec<&ComparedMedians> = self.compared().collect();
        (compared.len() > 1).then(|| mean_ratio(compared.into_iter())).flatten()
    }

    /// The number of groups that can show a change: they have enough values, and not those of the same calls.
    pub fn decidable(&self) -> usize {
        let cannot = [ChangeVerdict::SameCall, ChangeVerdict::TooFew];
        self.compared().filter(|it| !cannot.contains(&it.verdict)).count()
    }

    /// The comparisons of the groups that both sides have.
    pub fn compared(&self) -> impl Iterator<Item = &ComparedMedians> {
        self.rows.iter().filter_map(|row| row.compared.as_ref())
    }
}
