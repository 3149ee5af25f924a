//! Two sides of measurements: their groups, the columns that are compared, and the remarks on each group.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use ce_model::digest::is_object_id;
use ce_model::host_use::DisturbedCalls;
use ce_model::statistics::{CONFIDENCE, ComparedSides};
use ce_model::suggest::UnknownName;
use ce_model::sweep::{CellValue, ColumnMeasure, REPLICATE, point_title};
use jiff::{SignedDuration, Timestamp};

use super::{
    ComparedMedians, MedianColumn, MedianError, MedianNote, MedianRow, MedianRules, MedianTable,
    MedianTables, resolution,
};
use crate::frame::{
    CellKinds, ColumnRole, Frame, FrameColumn, FrameRow, FrameSide, MeasuredSide, RowGroup,
    RowStatus, SideRows, grouped, measured_beside_others,
};

/// The factor by which one side may be measured more often than the other one before that is reported.
const UNEVEN: usize = 2;

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
                // A row that is not there and lacks a text of an output is absent on both sides.
                rows.retain(|row| match &row.cells[at] {
                    CellValue::Null if row.status != RowStatus::Ok => true,
                    cell => cell.text() == *level,
                });
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
        let told_apart = [&groups[..], &differing[..]].concat();
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
        let pooled = self.pooled(&gathered, &told_apart);
        let [groups, differing] =
            [groups, differing].map(|names| names.iter().map(|it| it.name.to_owned()).collect());
        let levels = self.levels.map(|(_, texts)| texts);
        Ok(MedianTable { levels, groups, differing, pooled, columns })
    }

    /// The columns that tell rows apart, but not these groups, although rows of a group differ in them.
    fn pooled(&self, gathered: &[RowGroup<'a, 2>], told_apart: &[SideColumn<'_>]) -> Vec<String> {
        let is_left_out = |name: &&str| {
            name != &REPLICATE
                && self.levels.as_ref().is_none_or(|(by, _)| by != name)
                && !self.rules.columns.iter().any(|column| column == name)
                && told_apart.iter().all(|known| known.name != *name)
                && self.columns_named(name).any(|column| {
                    matches!(column.role, ColumnRole::Key | ColumnRole::RowLabel)
                        && !column.is_numeric
                })
        };
        let has_several = |name: &&str| {
            let places = self.frames.map(|frame| frame.place(name));
            gathered.iter().flat_map(|group| group.sides.iter().zip(places)).any(|(side, at)| {
                let texts = side.ok().filter_map(|row| Some(row.cells[at?].text()));
                texts.collect::<HashSet<_>>().len() > 1
            })
        };
        let names = self.names().into_iter().filter(is_left_out).filter(has_several);
        names.map(str::to_owned).collect()
    }

    /// The names of all columns; the newer side comes first.
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
        let (differing, mut groups): (Vec<_>, Vec<_>) =
            columns.into_iter().partition(|column| self.differs(*column));
        if self.rules.groups.is_empty() {
            let is_key = |column: &FrameColumn| column.role == ColumnRole::Key;
            groups.retain(|column| self.columns_named(column.name).any(is_key));
        }
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

    /// The groups, in the order of the rows of the new side, and then of the old one. Groups of one side only come last.
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
            (Some((.., cell)), _) => format!("{:?} is not a number", cell.text()),
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
        // The texts that each call makes: two rows of one call are not the same measurement.
        let [old, new] = [0, 1].map(|side| {
            let mut calls: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
            for row in group.sides[side].ok() {
                let made = places[side].and_then(|at| {
                    Some((call(self.frames[side], row, at, is_one_table)?, row.cells[at].text()))
                });
                are_known &= made.is_some();
                if let Some((call, text)) = made {
                    calls.entry(call).or_default().insert(text);
                }
            }
            calls
        });
        let is_same_calls = are_known && !old.is_empty() && old == new;
        let shared = old.iter().filter(|(call, texts)| new.get(*call) == Some(*texts)).count();
        let shared = [shared, old.len(), new.len()];
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

/// The known text that a level means: the same text, or the only commit that begins with it.
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
    /// The number of calls that both sides have, and the numbers of each side.
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
    /// The number of calls whose rows are not there, or are not a number.
    not_ok: usize,
    /// The number of rows that are there and have nothing.
    empty: usize,
    hosts: BTreeSet<&'a str>,
    machines: BTreeSet<&'a str>,
    asked: BTreeSet<&'a str>,
    disturbed: DisturbedCalls,
    /// The first beginning and the last end of an execution.
    times: Option<[Timestamp; 2]>,
}

impl<'a> SideValues<'a> {
    fn new(rows: &SideRows<'a>, column: Option<usize>) -> Self {
        let (rows_in_all, not_ok) = (rows.rows().len(), rows.absent(column.as_slice()));
        let mut side = Self { rows: rows_in_all, not_ok, ..Self::default() };
        let Some(at) = column else { return side };
        side.measured = rows.measured(at);
        side.empty = rows.ok().filter(|row| row.cells[at] == CellValue::Null).count();
        let measured = rows.ok().filter(|row| row.cells[at].number().is_some());
        side.disturbed = measured_beside_others(measured.clone());
        for origin in measured.filter_map(|row| row.origin.as_ref()) {
            side.hosts.extend(origin.host.as_deref());
            side.machines.extend(origin.machine.as_deref());
            side.asked.extend(origin.asked.as_deref());
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

/// Returns the remarks on a group. If a row was measured once for both sides, its notes are only about rows without values.
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
        notes.extend(differing_names([&old.asked, &new.asked]).map(MedianNote::Asked));
        let disturbed = old.disturbed.and(new.disturbed);
        if disturbed.disturbed > 0 {
            notes.push(MedianNote::Disturbed(disturbed));
        }
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

/// The names of both sides, if both have names and they differ.
fn differing_names(sides: [&BTreeSet<&str>; 2]) -> Option<[Vec<String>; 2]> {
    let differ = !sides.iter().any(|names| names.is_empty()) && sides[0] != sides[1];
    differ.then(|| sides.map(|names| names.iter().map(|name| (*name).to_owned()).collect()))
}

#[cfg(test)]
mod tests {
    use ce_model::exit::Explain;
    use ce_model::sweep::Better;

    use super::*;
    use crate::compared_medians::tests::{file, levels, of_files, rules};
    use crate::frame::tests::{SUITE, frame};

    /// The error of a comparison, and what to try.
    fn wrong(tables: MedianTables<'_>, rules: &MedianRules) -> String {
        let error = MedianTable::new(tables, rules).unwrap_err();
        format!("{error}: {}", error.hint().unwrap_or_default())
    }

    /// The groups of a column in words: texts, numbers of values and of absent rows, verdict.
    fn words(column: &MedianColumn) -> Vec<String> {
        let rows = column.rows.iter().map(|row| {
            let texts: Vec<&str> = row.group.iter().map(CellValue::text).collect();
            let ([old, new], [absent, others]) = (row.n(), row.not_ok);
            let verdict = row.compared.map_or("alone".to_owned(), |it| it.verdict.to_string());
            format!("{} {old}+{new} ({absent}+{others}) {verdict}", texts.join(" "))
        });
        rows.collect()
    }

    #[test]
    fn groups_of_one_side_come_last() {
        let old = "bench,s\na,1\na,2\ngone,3\n";
        let new = "bench,s\nnew,4\na,1\n";
        let compared = of_files(old, new).unwrap();
        let expected = ["a 2+1 (0+0) too few", "new 0+1 (0+0) alone", "gone 1+0 (0+0) alone"];
        assert_eq!(words(&compared.columns[0]), expected);
    }

    #[test]
    fn a_column_without_common_texts_does_not_form_groups() {
        let old = "host,bench,s\nred,a,1\nred,b,2\n";
        let new = "host,bench,s\nblue,a,1\nblue,b,2\n";
        let compared = of_files(old, new).unwrap();
        assert_eq!(
            (&*compared.groups, &*compared.differing),
            (&["bench".to_owned()][..], &["host".to_owned()][..])
        );
        assert_eq!(compared.columns[0].rows.len(), 2);
    }

    #[test]
    fn groups_may_be_named() {
        let text = "bench,size,s\na,1,5\na,2,6\nb,1,7\n";
        let groups = MedianRules { groups: vec!["size".to_owned()], ..rules() };
        let tables = [file(text), file(text)];
        let compared =
            MedianTable::new(MedianTables::Tables([&tables[0], &tables[1]]), &groups).unwrap();
        assert_eq!(compared.columns.len(), 1, "size is not compared");
        assert_eq!(words(&compared.columns[0]), ["1 2+2 (0+0) too few", "2 1+1 (0+0) too few"]);
    }

    #[test]
    fn groups_are_pooled_over_a_name_only_where_others_are_named_and_that_is_told() {
        let table = frame(SUITE);
        let compared = MedianTable::new(levels(&table, "tool", ["a", "b"]), &rules()).unwrap();
        assert_eq!(
            (&*compared.groups, &*compared.pooled),
            (&["benchmark".to_owned()][..], &[][..])
        );
        let groups = MedianRules { groups: vec!["tool".to_owned()], ..rules() };
        let tables = MedianTables::Tables([&table, &table]);
        let compared = MedianTable::new(tables, &groups).unwrap();
        assert_eq!(compared.pooled, ["benchmark"]);
        let mut table = frame(SUITE);
        let at = table.place("benchmark").unwrap();
        table.columns[at].role = ColumnRole::RowLabel;
        let compared = MedianTable::new(levels(&table, "tool", ["a", "b"]), &rules()).unwrap();
        assert_eq!(compared.pooled, ["benchmark"]);
        assert_eq!(compared.groups, [""; 0]);
    }

    #[test]
    fn benchmarks_are_distinguished_alike_in_a_task_and_a_file() {
        let of_task = frame(SUITE);
        let of_task = MedianTable::new(levels(&of_task, "tool", ["a", "b"]), &rules()).unwrap();
        let rows = SUITE.trim().lines().skip(1).map(|line| {
            let (cells, made) = line.trim().split_once('|').unwrap();
            let cells = cells.split_whitespace().map(|cell| if cell == "-" { "" } else { cell });
            let status = if made.contains("failed") { "failed" } else { "ok" };
            format!("{},{status}\n", cells.collect::<Vec<_>>().join(","))
        });
        let text = format!("tool,replicate,benchmark,seconds,status\n{}", rows.collect::<String>());
        let of_file = file(&text);
        let of_file = MedianTable::new(levels(&of_file, "tool", ["a", "b"]), &rules()).unwrap();
        let expected = ["fast 2+1 (0+1) too few", "slow 2+1 (0+1) too few"];
        assert_eq!([&of_task, &of_file].map(|it| words(&it.columns[0])), [expected, expected]);
        assert_eq!(of_task.groups, of_file.groups);
    }

    #[test]
    fn benchmarks_are_compared_and_failed_rows_are_absent_on_both_sides() {
        let table = frame(SUITE);
        let by = levels(&table, "benchmark", ["fast", "slow"]);
        let compared = MedianTable::new(by, &rules()).unwrap();
        let expected = ["a 2+2 (0+0) too few", "b 1+1 (1+1) too few"];
        assert_eq!(words(&compared.columns[0]), expected);
    }

    #[test]
    fn texts_of_rows_that_no_two_calls_share_are_the_same_as_in_a_file() {
        let table = "n at@0* s@0*\n 1 noon 5 | 1\n 1 noon 6 | 1\n 2 night 7 | 2";
        let table = frame(table);
        let compared = MedianTable::new(levels(&table, "n", ["1", "2"]), &rules()).unwrap();
        assert_eq!(compared.differing, ["at"]);
        assert_eq!(words(&compared.columns[0]), [" 1+1 (0+0) too few"], "a call is one value");
    }

    #[test]
    fn the_same_calls_are_one_measurement() {
        let table = frame("n replicate s@0\n 1 1 5 | 1\n 1 2 6 | 2\n 2 1 5 | 1\n 2 2 6 | 2");
        let compared = MedianTable::new(levels(&table, "n", ["1", "2"]), &rules()).unwrap();
        assert_eq!(words(&compared.columns[0]), [" 2+2 (0+0) same call"]);
        assert_eq!(compared.columns[0].decidable(), 0);
    }

    #[test]
    fn calls_on_both_sides_are_reported() {
        let rows = (1..=5).map(|at| {
            let (call, value) = if at < 3 { (at, 5) } else { (at + 9, 6) };
            format!("1 {at} 5 | {at}\n2 {at} {value} | {call}\n")
        });
        let table = frame(&format!("n replicate s@0\n{}", rows.collect::<String>()));
        let compared = MedianTable::new(levels(&table, "n", ["1", "2"]), &rules()).unwrap();
        let notes = &compared.columns[0].rows[0].notes;
        assert!(notes.contains(&MedianNote::Shared([2, 5, 5])), "{notes:?}");
    }

    #[test]
    fn absent_and_empty_rows_are_counted() {
        let table = frame(
            "n replicate s@0\n 1 1 5 | 1\n 1 2 - | 2\n 2 1 6 | 3\n 2 2 - | failed 4\n 2 3 - | failed 4",
        );
        let compared = MedianTable::new(levels(&table, "n", ["1", "2"]), &rules()).unwrap();
        let row = &compared.columns[0].rows[0];
        assert_eq!((row.not_ok, row.n()), ([0, 1], [1, 1]));
        assert_eq!(row.notes, [MedianNote::NotOk(1), MedianNote::Empty(1)]);
    }

    #[test]
    fn other_hosts_and_times_are_reported() {
        let rows = |host: &str, day: u32| {
            let row = |at| {
                format!("{at}.5,ok,{at},{host},{host} CPU,2026-01-{day}T00:0{at}:00Z,1.5,,,\n")
            };
            (1..=5).map(row).collect::<String>()
        };
        let header = "s,status,call,host,machine,time,duration,exclusive,reason,log\n";
        let compared = of_files(
            &format!("{header}{}", rows("red", 10)),
            &format!("{header}{}", rows("blue", 11)),
        );
        let names = |suffix: &str| ["red", "blue"].map(|it| vec![format!("{it}{suffix}")]);
        let expected =
            [MedianNote::Hosts(names("")), MedianNote::Machines(names(" CPU")), MedianNote::Times];
        assert!(compared.unwrap().columns[0].rows[0].notes.starts_with(&expected));
    }

    #[test]
    fn a_text_among_numbers_is_an_error_that_names_its_row() {
        let table = frame(
            "v replicate s@0* mb@0*\n 1 1 5 1 | 1\n 1 2 6 1 | 2\n 2 1 5 1 | 3\n 2 2 timeout 1 | 4",
        );
        let by = levels(&table, "v", ["1", "2"]);
        let said = wrong(by, &rules());
        assert!(said.starts_with("the column s cannot be compared: \"timeout\" at v=2 replicate=2 is not a number: let what was not measured fail"), "{said}");
        let mb = MedianRules { columns: vec!["mb".to_owned()], ..rules() };
        assert_eq!(MedianTable::new(by, &mb).unwrap().columns.len(), 1);
    }

    #[test]
    fn a_text_among_numbers_of_a_file_is_an_error() {
        let plain = |last: &str| format!("bench,s\na,1.5\na,1.25\na,1.0\na,{last}\n");
        let replicates =
            |last: &str| format!("bench,replicate,s\na,1,1.5\na,2,1.25\na,3,1.0\na,4,{last}\n");
        for of in [plain, replicates] {
            let error = of_files(&of("2"), &of("timeout")).unwrap_err().to_string();
            assert!(
                error.ends_with("\"timeout\" in row 4 of the new table is not a number"),
                "{error}"
            );
            let row = &of_files(&of("inf"), &of("NaN")).unwrap().columns[0].rows[0];
            assert_eq!((row.not_ok, row.n()), ([0, 1], [4, 3]), "one of them is not a number");
        }
        let large = |last: &str| format!("{{\"s\":1}}\n{{\"s\":2}}\n{{\"s\":{last}}}\n");
        let error = of_files(&large("3"), &large("1e400")).unwrap_err().to_string();
        assert!(
            error.ends_with(
                "\"1e400\" in row 3 of the new table is not a number that a double can hold"
            ),
            "{error}"
        );
    }

    #[test]
    fn columns_are_compared_if_both_sides_have_numbers() {
        let error = of_files("a,b\nx,y\n", "a,b\nx,y\n").unwrap_err();
        let said = error.to_string();
        assert_eq!(said, "no column has numbers on both sides; the columns are \"a\", \"b\"");
        assert!(error.hint().unwrap().starts_with("name columns alike"));
        let error = of_files("a,s [s]\nx,1\n", "a;s [ms]\nx;1\n").unwrap_err().to_string();
        assert!(error.ends_with("the columns are \"a;s [ms]\", \"a\", \"s [s]\""), "{error}");
    }

    #[test]
    fn an_unknown_level_or_column_is_an_error() {
        let table = file("bench,seconds\nencode,1\nfew,2\n");
        let by = |old, new| levels(&table, "bench", [old, new]);
        let said = wrong(by("few", "encodes"), &rules());
        assert_eq!(
            said,
            "bench has no level \"encodes\"; there are encode, few: did you mean encode?"
        );
        let said = wrong(by("few", "few"), &rules());
        assert!(said.starts_with("both levels of bench are \"few\""), "{said}");
        let columns = MedianRules { columns: vec!["second".to_owned()], ..rules() };
        let said = wrong(by("few", "encode"), &columns);
        assert_eq!(
            said,
            "the table has no column \"second\"; there are bench, seconds: did you mean seconds?"
        );
        let columns = MedianRules { columns: vec!["bench".to_owned()], ..rules() };
        let said = wrong(MedianTables::Tables([&table, &table]), &columns);
        assert!(
            said.starts_with("the column bench cannot be compared: \"encode\" is not a number"),
            "{said}"
        );
        let exact = MedianRules { exact: vec!["size".to_owned()], ..rules() };
        let said = wrong(MedianTables::Tables([&table, &table]), &exact);
        assert!(said.starts_with("the table has no column \"size\""), "{said}");
        let said = wrong(levels(&table, "benches", ["a", "b"]), &rules());
        assert!(said.ends_with("did you mean bench?"), "{said}");
    }

    #[test]
    fn the_first_digits_of_a_commit_are_enough() {
        let [one, two, other] = ["aa0", "aa1", "bbb"].map(|it| format!("{it:0<40}"));
        let table = file(&format!("commit,s\n{one},1\n{two},2\n{other},3\n"));
        let by = |old, new| levels(&table, "commit", [old, new]);
        let said = wrong(by("aa", "b"), &rules());
        assert!(
            said.starts_with("commit has several levels that begin with \"aa\": aa0"),
            "{said}"
        );
        assert!(wrong(by("c", "b"), &rules()).starts_with("commit has no level \"c\""));
        let compared = MedianTable::new(by("aa1", "b"), &rules()).unwrap();
        assert_eq!(compared.levels, Some([two, other]));
    }

    #[test]
    fn a_side_without_any_value_is_missing() {
        let table = frame("n s@0\n 1 5 | 1\n 2 - | failed 2\n 2 - | missing 3");
        let error = MedianTable::new(levels(&table, "n", ["1", "2"]), &rules()).unwrap_err();
        assert_eq!(error, MedianError::Absent(2));
        assert_eq!(error.exit(), ce_model::exit::Exit::Missing);
    }

    #[test]
    fn the_direction_comes_from_the_rules_or_from_the_column() {
        let table = |measures: &str| {
            file(&format!(
                "{{\"row\":{{\"b\":\"x\",\"s\":1}},\"columns\":{{{measures}}},\"status\":\"ok\"}}\n"
            ))
        };
        let measured = table("\"s\":{\"unit\":\"ms\",\"better\":\"less\"}");
        let plain = table("");
        let measure = |tables, better| {
            let rules = MedianRules { better, ..rules() };
            MedianTable::new(MedianTables::Tables(tables), &rules).unwrap().columns[0]
                .measure
                .clone()
        };
        assert_eq!(measure([&measured, &plain], None).better, Some(Better::Less));
        let more = measure([&measured, &measured], Some(Better::More));
        assert_eq!((more.better, more.unit.as_deref()), (Some(Better::More), Some("ms")));
        assert_eq!(measure([&plain, &plain], None).better, None);
    }
}
