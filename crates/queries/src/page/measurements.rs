//! The measurements of a table: its points, and what was measured at each, however often.
//!
//! Replicates of a point are together. What one call makes is one measurement of a column, however many rows have it. A name of points that follows from others is no axis.
//! Values are in the order of the rows.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::Timestamp;

use super::{PageRow, PageTable};
use crate::table::SweepTable;
use crate::table_summary::odd_text;
use ce_model::digest::is_object_id;
use ce_model::statistics::{Measurements, SeriesStep, series_steps};
use ce_model::sweep::{ColumnMeasure, REPLICATE, Until};

/// The column with the dates of commits.
const DATE: &str = "date";

/// The measurements of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredTable {
    /// The names that tell its points apart.
    pub axes: Vec<PointAxis>,
    /// The names of points that the axes determine, and a name from which each follows.
    pub determined: Vec<(String, String)>,
    /// The names of points that have one text only, and that text.
    pub constant: Vec<(String, String)>,
    /// The columns of texts that have one text at each point, such as the subject of a commit.
    pub labels: Vec<String>,
    /// The columns of which all cells are numbers, and that distinguish no points.
    pub columns: Vec<MeasuredColumn>,
    /// The columns that have numbers and texts, so no medians, and the first text of each.
    pub mixed: Vec<(String, String)>,
    /// The points, in the order of the axes.
    pub points: Vec<MeasuredPoint>,
    /// Whether points were measured repeatedly.
    pub has_replicates: bool,
    /// By what replicates end, if they do by results.
    pub until: Option<Until>,
    /// Whether a point has several rows of one call, which are no measurements.
    pub has_lists: bool,
}

/// A name that tells points apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointAxis {
    /// The name.
    pub name: String,
    /// The kind of its texts.
    pub kind: AxisKind,
    /// The texts: numbers by their values, others in the order of the rows. Commits are the oldest first, if they have dates.
    pub levels: Vec<String>,
}

/// The kind of the texts of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisKind {
    /// All are numbers.
    Number,
    /// All are ids of commits.
    Commit,
    /// Any texts.
    Text,
}

/// A column with numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredColumn {
    /// Its name.
    pub name: String,
    /// Its unit and its direction.
    pub measure: ColumnMeasure,
}

/// A point, and what was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredPoint {
    /// The number of a level of each axis.
    pub levels: Vec<usize>,
    /// The text of each label.
    pub labels: Vec<String>,
    /// The values of each column, each call once.
    pub values: Vec<Vec<f64>>,
    /// The spelling of these.
    pub spelled: Vec<Vec<String>>,
    /// The calls that made them, as far as they are known.
    pub calls: Vec<Vec<usize>>,
    /// The number of rows without values that should be there: failed or missing ones.
    pub absent: usize,
}

impl MeasuredPoint {
    /// Whether another point has the same measurements in a column.
    pub fn shares_calls(&self, other: &Self, column: usize) -> bool {
        !self.calls[column].is_empty() && self.calls[column] == other.calls[column]
    }

    /// The sample of a column, if there are values.
    pub fn sample(&self, column: usize) -> Option<Measurements> {
        Measurements::new(self.values.get(column)?.clone())
    }
}

/// The steps of a column over an axis of commits, where the other axes are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitSteps {
    /// A point of them.
    pub point: usize,
    /// The number of commits that were measured; those in a row that rest on the same calls are one.
    pub n: usize,
    /// The steps, in the order of the commits.
    pub steps: Vec<CommitStep>,
}

/// A step between commits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CommitStep {
    /// The point of the last commit of the old level, and of the first one of the new level. Commits between them were not measured.
    pub points: [usize; 2],
    /// The step.
    pub step: SeriesStep,
}

impl MeasuredTable {
    /// Gathers the measurements of the table of a sweep.
    pub fn of_sweep(table: SweepTable) -> Self {
        Self::of(&PageTable::of_sweep(table, &|_| None))
    }

    /// The axis of commits, if there is one.
    pub fn commits(&self) -> Option<usize> {
        self.axes.iter().position(|axis| axis.kind == AxisKind::Commit)
    }

    /// Finds the steps of a column over the commits: for each combination of the other axes, in the order of the points.
    pub fn steps(&self, column: usize) -> Vec<CommitSteps> {
        let Some(axis) = self.commits() else { return Vec::new() };
        let mut groups: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
        for (number, point) in self.points.iter().enumerate() {
            let mut others = point.levels.clone();
            others.remove(axis);
            groups.entry(others).or_default().push(number);
        }
        let steps = groups.into_values().map(|mut points| {
            points.sort_by_key(|number| self.points[*number].levels[axis]);
            // The first and the last of points that are one measurement, and the median.
            let mut series: Vec<([usize; 2], f64)> = Vec::new();
            for number in &points {
                let point = &self.points[*number];
                let Some(sample) = point.sample(column) else { continue };
                match series.last_mut() {
                    Some(([_, last], _)) if point.shares_calls(&self.points[*last], column) => {
                        *last = *number;
                    }
                    _ => series.push(([*number; 2], sample.median())),
                }
            }
            let medians: Vec<f64> = series.iter().map(|(_, median)| *median).collect();
            let steps = series_steps(&medians).into_iter().map(|step| CommitStep {
                points: [series[step.at - 1].0[1], series[step.at].0[0]],
                step,
            });
            CommitSteps { point: points[0], n: series.len(), steps: steps.collect() }
        });
        steps.collect()
    }

    /// Gathers the measurements of a table.
    pub fn of(table: &PageTable) -> Self {
        let rows = Rows::of(table);
        let keys: Vec<usize> = table
            .keys
            .iter()
            .filter_map(|key| table.columns.iter().position(|name| name == key))
            .collect();
        let points = keys.iter().fold(rows.whole(), |points, at| rows.finer(&points, *at));
        let (replicates, others): (Vec<usize>, Vec<usize>) =
            keys.iter().partition(|at| table.columns[**at] == REPLICATE);
        let mut measured = Self {
            has_replicates: !replicates.is_empty(),
            until: table.until.clone(),
            has_lists: count(&points) < rows.0.len(),
            ..Self::default()
        };
        let axes = measured.add_axes(table, &rows, others.into_iter());
        measured.order_commits(table, &rows, &axes);
        let columns =
            (0..table.columns.len()).filter(|at| !keys.contains(at) && !measured.has_lists);
        let (columns, texts): (Vec<usize>, Vec<usize>) = columns
            .partition(|at| !table.labels.contains(&table.columns[*at]) && rows.are_numbers(*at));
        for at in &columns {
            let name = table.columns[*at].clone();
            let measure = table.measures.get(&name).cloned().unwrap_or_default();
            measured.columns.push(MeasuredColumn { name, measure });
        }
        let mixed = texts.iter().filter(|at| !table.labels.contains(&table.columns[**at]));
        let mixed = mixed.filter_map(|at| Some((table.columns[*at].clone(), rows.odd_text(*at)?)));
        measured.mixed = mixed.collect();
        let points = axes.iter().fold(rows.whole(), |points, at| rows.finer(&points, *at));
        let mut labels = texts;
        labels.retain(|at| count(&rows.finer(&points, *at)) == count(&points));
        measured.labels = labels.iter().map(|at| table.columns[*at].clone()).collect();
        measured.add_points(&rows, &axes, &columns, &labels);
        measured
    }

    /// Adds the names of points that tell them apart. Returns the places of their columns.
    fn add_axes(
        &mut self,
        table: &PageTable,
        rows: &Rows<'_>,
        keys: impl Iterator<Item = usize>,
    ) -> Vec<usize> {
        let (mut axes, mut points) = (Vec::new(), rows.whole());
        for at in keys {
            let (name, own) = (table.columns[at].clone(), rows.finer(&rows.whole(), at));
            if count(&own) <= 1 {
                let text = rows.texts(at).next().unwrap_or_default().to_owned();
                self.constant.push((name, text));
                continue;
            }
            let finer = rows.finer(&points, at);
            if count(&finer) > count(&points) {
                self.axes.push(PointAxis::new(&name, rows.texts(at)));
                axes.push(at);
                points = finer;
                continue;
            }
            let by = axes.iter().position(|axis| {
                let of_axis = rows.finer(&rows.whole(), *axis);
                count(&rows.finer(&of_axis, at)) == count(&of_axis)
            });
            let by =
                by.map_or_else(|| "the others".to_owned(), |axis| self.axes[axis].name.clone());
            self.determined.push((name, by));
        }
        axes
    }

    /// Puts commits that are listed the newest first, by their dates, into the order in which they were made.
    fn order_commits(&mut self, table: &PageTable, rows: &Rows<'_>, axes: &[usize]) {
        let (Some(axis), Some(date)) =
            (self.commits(), table.columns.iter().position(|name| name == DATE))
        else {
            return;
        };
        let levels = &mut self.axes[axis].levels;
        let date_of = |level: Option<&String>| -> Option<Timestamp> {
            let row = rows
                .0
                .iter()
                .find(|row| Some(row.cells[axes[axis]].text()) == level.map(|it| &**it))?;
            row.cells[date].text().parse().ok()
        };
        if let (Some(first), Some(last)) = (date_of(levels.first()), date_of(levels.last()))
            && first > last
        {
            levels.reverse();
        }
    }

    /// Adds the points, given the places of the columns of axes, numbers and labels.
    fn add_points(&mut self, rows: &Rows<'_>, axes: &[usize], columns: &[usize], labels: &[usize]) {
        let levels: Vec<HashMap<&str, usize>> = self
            .axes
            .iter()
            .map(|axis| axis.levels.iter().map(String::as_str).zip(0..).collect())
            .collect();
        let mut points: BTreeMap<Vec<usize>, (MeasuredPoint, HashSet<_>)> = BTreeMap::new();
        for row in &rows.0 {
            let text = |at: &usize| row.cells[*at].text();
            let key: Vec<usize> = axes.iter().zip(&levels).map(|(at, of)| of[text(at)]).collect();
            let (point, seen) = points.entry(key.clone()).or_insert_with(|| {
                let point = MeasuredPoint {
                    levels: key,
                    labels: labels.iter().map(|at| text(at).to_owned()).collect(),
                    values: vec![Vec::new(); columns.len()],
                    spelled: vec![Vec::new(); columns.len()],
                    calls: vec![Vec::new(); columns.len()],
                    absent: 0,
                };
                (point, HashSet::new())
            });
            if row.status.is_some() {
                point.absent += 1;
                continue;
            }
            for (column, at) in columns.iter().enumerate() {
                let call = row.calls.get(*at).copied().flatten();
                let Ok(value) = text(at).parse() else { continue };
                if call.is_none_or(|call| seen.insert((column, call))) {
                    point.calls[column].extend(call);
                    point.values[column].push(value);
                    point.spelled[column].push(text(at).to_owned());
                }
            }
        }
        self.points = points.into_values().map(|(point, _)| point).collect();
    }

    /// The text of a point on an axis, as people read it: of a commit, the first digits.
    pub fn label(&self, point: &MeasuredPoint, axis: usize) -> &str {
        self.level(axis, point.levels[axis])
    }

    /// The text of a level of an axis, as people read it.
    pub fn level(&self, axis: usize, level: usize) -> &str {
        let PointAxis { kind, levels, .. } = &self.axes[axis];
        let text = &levels[level];
        if *kind == AxisKind::Commit { &text[..SHORT_COMMIT.min(text.len())] } else { text }
    }

    /// The number of measurements of a column at the points that were measured least and most often.
    pub fn counts(&self, column: usize) -> [usize; 2] {
        let counts = self.points.iter().map(|it| it.values.get(column).map_or(0, Vec::len));
        [counts.clone().min().unwrap_or_default(), counts.max().unwrap_or_default()]
    }
}

/// The rows of a table, but for those of excluded points.
struct Rows<'a>(Vec<&'a PageRow>);

impl<'a> Rows<'a> {
    fn of(table: &'a PageTable) -> Self {
        let rows = table.rows.iter().filter(|row| !row.is_excluded());
        Self(rows.collect())
    }

    fn texts(&self, column: usize) -> impl Iterator<Item = &'a str> {
        self.0.iter().map(move |row| row.cells[column].text())
    }

    /// Whether all cells of a column are numbers, and there are some.
    fn are_numbers(&self, column: usize) -> bool {
        let mut cells =
            self.0.iter().filter(|row| row.status.is_none()).map(|it| &it.cells[column]);
        cells.clone().next().is_some() && cells.all(|it| it.number().is_some())
    }

    /// The first text among the cells of a column that is one of numbers otherwise.
    fn odd_text(&self, column: usize) -> Option<String> {
        let cells = self.0.iter().filter(|row| row.status.is_none()).map(|it| &it.cells[column]);
        let cells = cells.map(|it| (it, it.text().parse::<f64>().is_ok_and(f64::is_finite)));
        odd_text(cells).map(str::to_owned)
    }

    /// The group of each row, if all are one.
    fn whole(&self) -> Vec<usize> {
        vec![0; self.0.len()]
    }

    /// Divides groups of rows by the texts of a column.
    fn finer(&self, groups: &[usize], column: usize) -> Vec<usize> {
        numbered(groups.iter().zip(self.texts(column)))
    }
}

/// The number of digits of a commit that are shown.
const SHORT_COMMIT: usize = 8;

impl PointAxis {
    fn new<'a>(name: &str, texts: impl Iterator<Item = &'a str>) -> Self {
        let mut seen = HashSet::new();
        let levels = texts.filter(|text| seen.insert(*text)).map(str::to_owned);
        let mut levels: Vec<String> = levels.collect();
        let numbers: Option<Vec<f64>> = levels.iter().map(|text| text.parse().ok()).collect();
        let is_finite = numbers.is_some_and(|it| it.iter().all(|number: &f64| number.is_finite()));
        let kind = if levels.iter().all(|text| is_object_id(text)) {
            AxisKind::Commit
        } else if is_finite {
            AxisKind::Number
        } else {
            AxisKind::Text
        };
        if kind == AxisKind::Number {
            levels.sort_by(|a, b| {
                let [a, b] = [a, b].map(|text| text.parse::<f64>().unwrap_or_default());
                a.total_cmp(&b)
            });
        }
        Self { name: name.to_owned(), kind, levels }
    }
}

/// The number of the first equal item, counted from zero in the order of first items.
fn numbered<T: Eq + std::hash::Hash>(items: impl Iterator<Item = T>) -> Vec<usize> {
    let mut known = HashMap::new();
    items
        .map(|item| {
            let next = known.len();
            *known.entry(item).or_insert(next)
        })
        .collect()
}

/// The number of different items that were numbered.
fn count(numbers: &[usize]) -> usize {
    numbers.iter().max().map_or(0, |most| most + 1)
}

#[cfg(test)]
mod tests {
    use ce_model::sweep::CellValue;

    use super::*;

    /// A table with these keys; a row has its cells, and the number of the calls that it rests on, or none if it failed.
    fn table(columns: &str, keys: &str, rows: &[(&str, Option<usize>)]) -> PageTable {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let cell = |text: String| match text.parse::<f64>() {
            Ok(_) => CellValue::Number(text),
            Err(_) => CellValue::Text(text),
        };
        let rows = rows.iter().map(|(cells, call)| {
            let status = call.is_none().then(|| "failed".to_owned());
            let cells: Vec<CellValue> = words(cells).into_iter().map(cell).collect();
            let calls = vec![*call; cells.len()];
            PageRow { cells, calls, status, call: None, file: None }
        });
        let rows: Vec<PageRow> = rows.collect();
        PageTable {
            names: Vec::new(),
            title: String::new(),
            columns: words(columns),
            keys: words(keys),
            labels: Vec::new(),
            measures: BTreeMap::new(),
            until: None,
            rows_in_all: rows.len(),
            rows,
            files: Vec::new(),
            made_from: Default::default(),
        }
    }

    fn names(axes: &[PointAxis]) -> Vec<&str> {
        axes.iter().map(|axis| axis.name.as_str()).collect()
    }

    #[test]
    fn replicates_of_a_point_are_together_and_a_call_counts_once() {
        let rows = [
            ("10 a 1 0.5", Some(1)),
            ("9 a 1 0.25", Some(2)),
            ("10 a 2 0.75", Some(3)),
            // Another point that rests on a call of the first one counts, the same point does not.
            ("10 a 3 0.5", Some(1)),
            ("9 b 1 0.5", Some(1)),
            ("9 b 2 x", None),
        ];
        let measured =
            MeasuredTable::of(&table("n kind replicate seconds", "n kind replicate", &rows));
        assert_eq!(names(&measured.axes), ["n", "kind"]);
        assert_eq!(measured.axes[0].levels, ["9", "10"], "numbers are in order");
        assert_eq!(measured.columns[0].name, "seconds");
        let found: Vec<_> =
            measured.points.iter().map(|it| (&*it.levels, &*it.values[0], it.absent)).collect();
        assert_eq!(
            found,
            [(&[0, 0][..], &[0.25][..], 0), (&[0, 1], &[0.5], 1), (&[1, 0], &[0.5, 0.75], 0)]
        );
        assert!(measured.has_replicates && !measured.has_lists);
        assert_eq!(measured.counts(0), [1, 2]);
    }

    #[test]
    fn what_follows_from_others_is_no_axis() {
        let rows = [
            ("1 2 x long 5 7", Some(1)),
            ("2 4 x short 6 7", Some(2)),
            ("1 2 x long 6 8", Some(3)),
        ];
        let measured = MeasuredTable::of(&table(
            "a twice same note replicate y",
            "a twice same replicate",
            &rows,
        ));
        assert_eq!(names(&measured.axes), ["a"]);
        assert_eq!(measured.determined, [("twice".to_owned(), "a".to_owned())]);
        assert_eq!(measured.constant, [("same".to_owned(), "x".to_owned())]);
        assert_eq!(measured.labels, ["note"]);
        assert_eq!(measured.points[1].labels, ["short"]);
    }

    #[test]
    fn steps_are_between_different_measurements_of_commits() {
        let commit = |at: usize| format!("{:040x}", 0xabc - at);
        // The fifth commit has no value, and the sixth rests on the call of the fourth.
        let seconds = [1.0, 1.01, 0.99, 1.0, 0.0, 1.0, 1.3, 1.31, 1.29, 1.3, 5.0, 1.31, 1.3];
        let row = |at: usize| format!("{} {} remark{at}", commit(at), seconds[at]);
        let rows: Vec<String> = (0..seconds.len()).map(row).collect();
        let call = |at: usize| match at {
            4 => None,
            5 => Some(3),
            at => Some(at),
        };
        let rows: Vec<(&str, Option<usize>)> =
            rows.iter().enumerate().map(|(at, row)| (&**row, call(at))).collect();
        let measured = MeasuredTable::of(&table("commit y subject", "commit", &rows));
        let [found] = measured.steps(0).try_into().unwrap();
        assert_eq!(found.n, 11);
        let steps: Vec<[usize; 2]> = found.steps.iter().map(|it| it.points).collect();
        assert_eq!(steps, [[5, 6]], "and the spike is none");
        let measured = MeasuredTable::of(&table("n y", "n", &[("1 2", Some(1)), ("2 3", Some(2))]));
        assert_eq!(measured.steps(0), []);
    }

    #[test]
    fn commits_are_in_the_order_of_rows_and_lists_are_no_measurements() {
        let (one, other) = ("b".repeat(40), "a".repeat(40));
        let [first, second] = [&one, &other].map(|commit| format!("{commit} 1"));
        let rows = [(&*first, Some(1)), (&*second, Some(2))];
        let measured = MeasuredTable::of(&table("commit y", "commit", &rows));
        assert_eq!(measured.axes[0].kind, AxisKind::Commit);
        assert_eq!(measured.axes[0].levels, [one, other]);
        assert_eq!(measured.label(&measured.points[0], 0), "bbbbbbbb");
        let rows = [("a 1", Some(1)), ("a 2", Some(1)), ("b 3", Some(2))];
        let measured = MeasuredTable::of(&table("sample position", "sample", &rows));
        assert!(measured.has_lists && measured.columns.is_empty());
    }
}
