//! Medians of two sides of a table compared, group by group: two levels of a factor, or two tables.
//!
//! The values that a call makes count as one, however many rows of a side have them: as their median. Groups are told apart by
//! names of points, but not by the replicate, nor by names of which the two sides have no text in common. The rules are those of
//! [`statistics`].

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};

use ce_model::digest::is_object_id;
use ce_model::exit::{Exit, Explain};
use ce_model::humanize::{counted, listed};
use ce_model::statistics::{
    self, CONFIDENCE, ChangeVerdict, ComparedSides, Estimate, Measurements, MedianChange,
};
use ce_model::suggest::nearest;
use ce_model::sweep::{Better, CellValue, ColumnMeasure, REPLICATE, point_title};

use crate::table::{RowStatus, SweepRow, SweepTable};

/// The factor by which one side may be measured more often than the other one before that is reported.
const UNEVEN: usize = 2;

/// The values of one side, and how they are spelled. What rests on one call is one value.
pub type MedianSide<'a> = (&'a [f64], &'a [String]);

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

/// The kind of the two sides, which is known before their values are looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SideKind {
    /// Both rest on the same calls.
    SameCalls,
    /// Their values are no measurements.
    Exact,
    /// Their values are measurements, and intervals have this confidence.
    Measured(f64),
}

impl SideKind {
    /// The sides as statistics know them, with values of this [`resolution`].
    const fn with_resolution(self, resolution: f64) -> ComparedSides {
        match self {
            Self::SameCalls => ComparedSides::SameCalls,
            Self::Exact => ComparedSides::Exact,
            Self::Measured(confidence) => ComparedSides::Measured { confidence, resolution },
        }
    }
}

impl ComparedMedians {
    /// Compares an old side with a new one, with a threshold such as [`THRESHOLD`](statistics::THRESHOLD).
    pub fn new(sides: [MedianSide<'_>; 2], kind: SideKind, threshold: f64) -> Self {
        let [old, new] = sides.map(|(values, _)| Measurements::new(values.to_vec()));
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
fn resolution(sides: [MedianSide<'_>; 2]) -> f64 {
    statistics::resolution(sides.iter().flat_map(|(_, spelled)| *spelled).map(String::as_str))
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
        table: &'a SweepTable,
        /// The column.
        by: &'a str,
        /// The texts. Of a commit, the first digits are enough.
        levels: [&'a str; 2],
    },
    /// All rows of an old table, and all of a new one.
    Tables([&'a SweepTable; 2]),
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
    #[error("the table has no column {name:?}; there are {}", known.join(", "))]
    NoColumn {
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// A column has no such text.
    #[error("{by} has no level {level:?}; there are {}", listed(known))]
    NoLevel {
        /// The column.
        by: String,
        /// The text.
        level: String,
        /// The texts that there are.
        known: Vec<String>,
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

/// Returns the advice for a name that is none of those known.
fn hint_of_name(name: &str, known: &[String]) -> String {
    match nearest(name, known) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => "give one of these names".to_owned(),
    }
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
            Self::NoColumn { name, known } => hint_of_name(name, known),
            Self::NoLevel { level, known, .. } => hint_of_name(level, known),
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
    /// The number of values of each side.
    pub n: [usize; 2],
    /// The number of rows of each side that should have values and are not there.
    pub not_ok: [usize; 2],
    /// The median of each side that has values.
    pub medians: [Option<f64>; 2],
    /// The comparison, if both sides have the group.
    pub compared: Option<ComparedMedians>,
    /// Remarks on it for the user.
    pub notes: Vec<MedianNote>,
}

impl MedianRow {
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

/// The rows of a group.
type GroupRows<'a> = [Vec<SideRow<'a>>; 2];

/// A row, and the table that it is of: 0 or 1.
#[derive(Clone, Copy)]
struct SideRow<'a> {
    table: usize,
    source: &'a SweepTable,
    row: &'a SweepRow,
}

impl<'a> SideRow<'a> {
    /// Returns the cell of the row in a column, given the place of this in each table.
    fn cell(&self, places: &[Option<usize>]) -> Option<&'a CellValue> {
        Some(&self.row.cells[places[self.table]?])
    }

    /// The row in words: its point, or of a file its number behind the header.
    fn place(&self) -> String {
        if !self.source.outputs.is_empty() {
            let points = self.source.names.iter().zip(&self.row.cells);
            let points = points.filter(|(name, _)| self.source.keys.contains(name));
            return format!(
                "at {}",
                point_title(points.map(|(name, cell)| (&**name, cell.text())))
            );
        }
        let at = self.source.rows.iter().position(|row| std::ptr::eq(row, self.row));
        format!("in row {}", at.map_or(0, |at| at + 1))
    }

    /// Returns the call that has made the value of a column, in words that are the same for the same call: in one table a number,
    /// in two the execution.
    fn call(&self, places: &[Option<usize>], is_one_table: bool) -> Option<String> {
        let at = places[self.table]?;
        if is_one_table {
            return self.source.call_of(self.row, at).map(|call| call.to_string());
        }
        let executions = &self.row.origin.as_ref()?.executions;
        executions.get(self.source.output_of(at)?)?.clone()
    }
}

impl MedianTable {
    /// Compares two sides.
    ///
    /// # Errors
    ///
    /// Fails if a name or a level is unknown, or if nothing can be compared.
    pub fn new(tables: MedianTables<'_>, rules: &MedianRules) -> Result<Self, MedianError> {
        let (sources, by, levels) = match tables {
            MedianTables::Levels { table, by, levels } => {
                let places = found(&[table], by)?;
                (vec![table], Some(by), Some(found_levels(table, by, places[0], levels)?))
            }
            MedianTables::Tables(tables) => (tables.to_vec(), None, None),
        };
        let sides = sides(&sources, by, levels.as_ref());
        for rows in sides.iter().filter(|rows| !rows.is_empty()) {
            if rows.iter().all(|it| it.row.status != RowStatus::Ok) {
                return Err(MedianError::Absent(rows.len()));
            }
        }
        let (groups, differing) = group_names(&sources, by, rules, &sides)?;
        let places: Vec<Vec<Option<usize>>> =
            groups.iter().map(|name| places(&sources, name)).collect();
        let gathered = gathered(&sides, &places);
        let mut columns = Vec::new();
        let is_taken = |name: &String| {
            let is_numeric = sources.iter().any(|it| it.numeric.contains(name));
            rules.groups.contains(name)
                || Some(name.as_str()) == by
                || name == REPLICATE
                || !is_numeric
                    && sources.iter().any(|it| it.keys.contains(name) || it.labels.contains(name))
        };
        let asked: Vec<String> = match &rules.columns[..] {
            [] => all_names(&sources).into_iter().filter(|name| !is_taken(name)).collect(),
            asked => asked.to_vec(),
        };
        for name in rules.exact.iter().filter(|name| !asked.contains(name)) {
            found(&sources, name)?;
        }
        for name in asked {
            let places = found(&sources, &name)?;
            match numbers_problem(&name, &sides, &places) {
                None => columns.push(column(&gathered, &name, &places, &sources, rules)),
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
            return Err(MedianError::Nothing(all_names(&sources)));
        }
        Ok(Self { levels, groups, differing, columns })
    }
}

/// The names of all columns of tables, those of the newer one first.
fn all_names(tables: &[&SweepTable]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in tables.iter().rev().flat_map(|table| &table.names) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

fn places(tables: &[&SweepTable], name: &str) -> Vec<Option<usize>> {
    tables.iter().map(|table| table.names.iter().position(|it| it == name)).collect()
}

/// The places of a column that at least one table has.
fn found(tables: &[&SweepTable], name: &str) -> Result<Vec<Option<usize>>, MedianError> {
    let places = places(tables, name);
    if places.iter().all(Option::is_none) {
        return Err(MedianError::NoColumn { name: name.to_owned(), known: all_names(tables) });
    }
    Ok(places)
}

/// The texts of a column that two levels are: a text, or the only commit that begins so.
fn found_levels(
    table: &SweepTable,
    by: &str,
    at: Option<usize>,
    levels: [&str; 2],
) -> Result<[String; 2], MedianError> {
    let rows = table.rows.iter().filter(|row| row.status != RowStatus::Excluded);
    let texts = rows.map(|row| at.map_or("", |at| row.cells[at].text()));
    let mut seen = HashSet::new();
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
        [] => Err(MedianError::NoLevel { by, level, known: known.to_vec() }),
        _ => Err(MedianError::ManyLevels { by, level, known: begun }),
    }
}

/// The rows of the sides, without excluded points.
fn sides<'a>(
    sources: &[&'a SweepTable],
    by: Option<&str>,
    levels: Option<&[String; 2]>,
) -> GroupRows<'a> {
    [0, 1].map(|side| {
        let table = side.min(sources.len() - 1);
        let at = by.and_then(|by| places(sources, by)[table]);
        let rows = sources[table].rows.iter().filter(|row| {
            let text = at.map(|at| row.cells[at].text());
            row.status != RowStatus::Excluded
                && levels.is_none_or(|levels| text == Some(levels[side].as_str()))
        });
        rows.map(|row| SideRow { table, source: sources[table], row }).collect()
    })
}

/// The names that tell groups apart, and the others of points.
fn group_names(
    sources: &[&SweepTable],
    by: Option<&str>,
    rules: &MedianRules,
    sides: &GroupRows<'_>,
) -> Result<(Vec<String>, Vec<String>), MedianError> {
    let mut names: Vec<String> = Vec::new();
    let asked: Vec<&String> = match &rules.groups[..] {
        [] => sources.iter().rev().flat_map(|table| &table.keys).collect(),
        groups => groups.iter().collect(),
    };
    for name in asked {
        let is_side = Some(name.as_str()) == by || name == REPLICATE;
        if !is_side && !rules.columns.contains(name) && !names.contains(name) {
            found(sources, name)?;
            names.push(name.clone());
        }
    }
    let (differing, groups) = names.into_iter().partition(|name| {
        let places = places(sources, name);
        let [old, new] = sides.each_ref().map(|rows| {
            let texts = rows.iter().filter_map(|it| Some(it.cell(&places)?.text()));
            texts.collect::<HashSet<_>>()
        });
        !sides.iter().any(Vec::is_empty) && old.is_disjoint(&new)
    });
    Ok((groups, differing))
}

/// The groups, in the order of the rows of the new side, and then of the old one. Those of one side only come last.
fn gathered<'a>(
    sides: &GroupRows<'a>,
    places: &[Vec<Option<usize>>],
) -> Vec<(Vec<CellValue>, GroupRows<'a>)> {
    let mut groups: Vec<(Vec<CellValue>, GroupRows<'a>)> = Vec::new();
    let mut known: HashMap<Vec<&str>, usize> = HashMap::new();
    for side in [1, 0] {
        for it in &sides[side] {
            let cells: Vec<Option<&CellValue>> = places.iter().map(|at| it.cell(at)).collect();
            let key = cells.iter().map(|cell| cell.map_or("", CellValue::text)).collect();
            let at = *known.entry(key).or_insert(groups.len());
            if at == groups.len() {
                let texts = cells.iter().map(|cell| cell.cloned().unwrap_or(CellValue::Null));
                groups.push((texts.collect(), GroupRows::default()));
            }
            groups[at].1[side].push(*it);
        }
    }
    groups.sort_by_key(|(_, rows)| rows.iter().any(Vec::is_empty));
    groups
}

/// Returns the reason why a column is not one of numbers on both sides. One that has other texts among its numbers is of numbers,
/// and wrong.
fn numbers_problem(
    name: &String,
    sides: &GroupRows<'_>,
    places: &[Option<usize>],
) -> Option<MedianError> {
    let (mut other, mut text) = (None, None);
    let (mut is_of_numbers, mut is_empty) = (false, false);
    for rows in sides {
        let (mut cells, mut readable, mut has_numbers) = (0, 0, false);
        for it in rows.iter().filter(|it| it.row.status == RowStatus::Ok) {
            let cell = it.cell(places).unwrap_or(&CellValue::Null);
            let is_readable = it.source.reads_as_number(name, cell);
            match cell {
                CellValue::Null => continue,
                CellValue::Number(_) if is_readable => has_numbers = true,
                _ if is_readable => drop(text.get_or_insert(cell.text())),
                _ => drop(other.get_or_insert((it, cell))),
            }
            cells += 1;
            readable += usize::from(is_readable);
        }
        is_of_numbers |= readable > 0 && 2 * readable >= cells;
        is_empty |= !has_numbers;
    }
    let name = name.to_owned();
    let why = match (other, text) {
        (Some((row, cell)), _) if is_of_numbers => {
            let is_of_two = sides.iter().flatten().any(|it| it.table == 1);
            let of = ["of the old table ", "of the new table "][row.table];
            let place = format!("{} {}", row.place(), if is_of_two { of } else { "" });
            let is_too_large = matches!(cell, CellValue::Number(_));
            let (text, place) = (cell.text().to_owned(), place.trim_end().to_owned());
            return Some(MedianError::NotNumber { name, text, is_too_large, place });
        }
        (Some((_, cell)), _) => format!("{:?} is no number", cell.text()),
        (None, Some(text)) => format!("{text:?} is a text"),
        (None, None) if is_empty => "it has no numbers on one side".to_owned(),
        (None, None) => return None,
    };
    Some(MedianError::NoNumbers { name, why })
}

fn column(
    gathered: &[(Vec<CellValue>, GroupRows<'_>)],
    name: &String,
    places: &[Option<usize>],
    sources: &[&SweepTable],
    rules: &MedianRules,
) -> MedianColumn {
    let mut measure = sources
        .iter()
        .rev()
        .find_map(|table| table.measures.get(name).cloned())
        .unwrap_or_default();
    measure.better = rules.better.or(measure.better);
    let is_exact = rules.exact.contains(name);
    let matched = gathered.iter().filter(|(_, rows)| !rows.iter().any(Vec::is_empty));
    let compared = matched.filter(|(_, rows)| !is_same_calls(rows, places)).count();
    let confidence = match rules.is_family {
        true => 1.0 - (1.0 - CONFIDENCE) / compared.max(1) as f64,
        false => CONFIDENCE,
    };
    let kind = if is_exact { SideKind::Exact } else { SideKind::Measured(confidence) };
    let rows = gathered.iter().map(|(group, rows)| {
        let sides = rows.each_ref().map(|rows| SideValues::of(rows, places));
        let kind = if is_same_calls(rows, places) { SideKind::SameCalls } else { kind };
        let ([old, new], _) = calls(rows, places);
        let shared = [old.intersection(&new).count(), old.len(), new.len()];
        row(group.clone(), &sides, shared, kind, rules.threshold)
    });
    let mut rows: Vec<MedianRow> = rows.collect();
    if rules.is_sorted {
        // A group of one side only is last, and has no size.
        rows.sort_by(|a, b| {
            let by_size = b.size().partial_cmp(&a.size()).unwrap_or(std::cmp::Ordering::Equal);
            a.compared.is_none().cmp(&b.compared.is_none()).then(by_size)
        });
    }
    let confidence = (!is_exact).then_some(confidence);
    MedianColumn { name: name.clone(), measure, confidence, rows }
}

/// The calls that made what both sides have in a column, as far as they are known, and whether all are.
fn calls(rows: &GroupRows<'_>, places: &[Option<usize>]) -> ([BTreeSet<String>; 2], bool) {
    let is_one_table = rows.iter().flatten().all(|it| it.table == 0);
    let mut are_known = true;
    let calls = rows.each_ref().map(|rows| {
        let ok = rows.iter().filter(|it| it.row.status == RowStatus::Ok);
        let calls = ok.map(|it| it.call(places, is_one_table));
        calls.inspect(|call| are_known &= call.is_some()).flatten().collect()
    });
    (calls, are_known)
}

/// Whether what both sides have in a column was made by the same calls.
fn is_same_calls(rows: &GroupRows<'_>, places: &[Option<usize>]) -> bool {
    let ([old, new], are_known) = calls(rows, places);
    are_known && !old.is_empty() && old == new
}

/// The values that one side of a group has in a column.
#[derive(Default)]
struct SideValues {
    /// The number of rows.
    rows: usize,
    /// A value for each call.
    values: Vec<f64>,
    /// The spelling of all values.
    spelled: Vec<String>,
    /// The number of calls whose rows are not there.
    not_ok: usize,
    /// The number of rows that are there and have nothing.
    empty: usize,
    hosts: BTreeSet<String>,
    machines: BTreeSet<String>,
    /// The first beginning and the last end of an execution.
    times: Option<[Timestamp; 2]>,
}

impl SideValues {
    fn of(rows: &[SideRow<'_>], places: &[Option<usize>]) -> Self {
        let mut side = Self { rows: rows.len(), ..Self::default() };
        let (mut calls, mut absent) = (BTreeMap::<usize, Vec<f64>>::new(), BTreeSet::new());
        for (number, it) in rows.iter().enumerate() {
            let SideRow { source, row, table } = *it;
            // A row without the number of a call is one alone.
            let alone = usize::MAX - number;
            if row.status != RowStatus::Ok {
                absent.insert(row.call.unwrap_or(alone));
                continue;
            }
            let (Some(at), Some(cell)) = (places[table], it.cell(places)) else { continue };
            let Some(value) = cell.number() else {
                side.empty += usize::from(*cell == CellValue::Null);
                continue;
            };
            calls.entry(source.call_of(row, at).unwrap_or(alone)).or_default().push(value);
            side.spelled.push(cell.text().to_owned());
            if let Some(origin) = &row.origin {
                side.hosts.extend(origin.host.as_deref().map(str::to_owned));
                side.machines.extend(origin.machine.as_deref().map(str::to_owned));
                if let Some(end) = origin.at {
                    let took =
                        SignedDuration::try_from_secs_f64(origin.seconds.unwrap_or_default());
                    let begin =
                        took.ok().and_then(|took| end.checked_sub(took).ok()).unwrap_or(end);
                    let [first, last] = side.times.unwrap_or([begin, end]);
                    side.times = Some([first.min(begin), last.max(end)]);
                }
            }
        }
        side.values =
            calls.into_values().filter_map(|it| Some(Measurements::new(it)?.median())).collect();
        side.not_ok = absent.len();
        side
    }

    fn pair(&self) -> MedianSide<'_> {
        (&self.values, &self.spelled)
    }

    fn sample(&self) -> Option<Measurements> {
        Measurements::new(self.values.clone())
    }
}

/// Compares the sides of a group.
fn row(
    group: Vec<CellValue>,
    sides: &[SideValues; 2],
    shared: [usize; 3],
    kind: SideKind,
    threshold: f64,
) -> MedianRow {
    let is_single = sides.iter().any(|side| side.rows == 0);
    let pairs = sides.each_ref().map(SideValues::pair);
    let compared = (!is_single).then(|| ComparedMedians::new(pairs, kind, threshold));
    let notes = notes(sides, shared, kind, compared);
    MedianRow {
        group,
        n: sides.each_ref().map(|side| side.values.len()),
        not_ok: sides.each_ref().map(|side| side.not_ok),
        medians: sides.each_ref().map(|side| Some(side.sample()?.median())),
        compared,
        notes,
    }
}

/// Returns the remarks on a group. Of one that was measured once for both sides, these are only about rows without values.
fn notes(
    sides: &[SideValues; 2],
    shared: [usize; 3],
    kind: SideKind,
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
    if kind == SideKind::SameCalls {
        return notes;
    }
    if shared[0] > 0 {
        notes.push(MedianNote::Shared(shared));
    }
    let samples = [old, new].map(SideValues::sample);
    if let (Some(_), [Some(old_sample), Some(new_sample)]) = (compared, &samples) {
        if kind == SideKind::Exact {
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
        let [fewer, more] =
            [old.values.len().min(new.values.len()), old.values.len().max(new.values.len())];
        if more > UNEVEN * fewer {
            notes.push(MedianNote::Uneven);
        }
        let least = resolution(sides.each_ref().map(SideValues::pair));
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
fn differing_names(sides: [&BTreeSet<String>; 2]) -> Option<[Vec<String>; 2]> {
    let differ = !sides.iter().any(|names| names.is_empty()) && sides[0] != sides[1];
    differ.then(|| sides.map(|names| names.iter().cloned().collect()))
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
