//! The measurements of a table: its points, and the values at each, however many.
//!
//! Replicates of a point are together. The values that one call makes are one measurement of a column, in however many rows
//! they stand. A name of points that follows from others is not an axis. Values are in the order of the rows.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::Timestamp;

use crate::frame::{
    ColumnRole, Frame, FrameColumn, MeasuredSide, RowGroup, has_one_text, row_numbers,
};
use ce_model::digest::is_object_id;
use ce_model::statistics::{Measurements, SeriesStep, series_steps};
use ce_model::sweep::{REPLICATE, Until};

/// The column with the dates of commits.
const DATE: &str = "date";

/// The measurements of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredTable<'a> {
    /// The names that tell its points apart.
    pub axes: Vec<PointAxis<'a>>,
    /// The names of points that the axes determine, and a name from which each follows.
    pub determined: Vec<(&'a str, &'a str)>,
    /// The names of points that have one text only, and that text.
    pub constant: Vec<(&'a str, &'a str)>,
    /// The columns of texts that have one text at each point, such as the subject of a commit.
    pub labels: Vec<&'a str>,
    /// The columns of numbers that distinguish no points.
    pub columns: Vec<&'a FrameColumn>,
    /// The columns that have numbers and texts, so no medians, and the first text of each.
    pub mixed: Vec<(&'a str, &'a str)>,
    /// The points, in the order of the axes.
    pub points: Vec<MeasuredPoint<'a>>,
    /// Whether points were measured repeatedly.
    pub has_replicates: bool,
    /// The rule by which replicates end, if they end by results.
    pub until: Option<&'a Until>,
    /// Whether a point has several rows of one call, which are not measurements.
    pub has_lists: bool,
}

/// A name that tells points apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointAxis<'a> {
    pub name: &'a str,
    /// Whether it is a name of points, and not a text of rows.
    pub is_factor: bool,
    /// The kind of its texts.
    pub kind: AxisKind,
    /// The texts: numbers by their values, others in the order of the rows. Commits are the oldest first, if they have dates.
    pub levels: Vec<&'a str>,
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

/// A point, and its measured values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredPoint<'a> {
    /// The number of a level of each axis.
    pub levels: Vec<usize>,
    /// The text of each label.
    pub labels: Vec<&'a str>,
    /// The measurements of each column.
    pub columns: Vec<MeasuredSide<'a>>,
    /// The number of rows without values that should be there: failed or missing ones.
    pub absent: usize,
}

impl MeasuredPoint<'_> {
    /// Whether another point has the same measurements in a column.
    pub fn shares_calls(&self, other: &Self, column: usize) -> bool {
        self.columns[column].shares_calls(&other.columns[column])
    }

    /// The sample of a column, if there are values.
    pub fn sample(&self, column: usize) -> Option<Measurements> {
        self.columns[column].sample()
    }
}

/// The steps of a column over an axis of commits, where the other axes are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitSteps {
    pub point: usize,
    /// The number of measured commits; neighbours that rest on the same calls count once.
    pub n: usize,
    /// The steps, in the order of the commits.
    pub steps: Vec<CommitStep>,
}

/// A step between commits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CommitStep {
    /// The point of the last commit of the old level, and of the first one of the new level. Commits between them were not measured.
    pub points: [usize; 2],
    pub step: SeriesStep,
}

impl<'a> MeasuredTable<'a> {
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
        // A row that is not there has no text of an output, such as the name of a benchmark: such rows are no series.
        let has_texts = |point: &MeasuredPoint<'_>| {
            self.axes.iter().zip(&point.levels).all(|(axis, level)| !axis.levels[*level].is_empty())
        };
        steps.filter(|it| it.n > 0 || has_texts(&self.points[it.point])).collect()
    }

    /// Gathers the measurements of a table.
    pub fn new(frame: &'a Frame) -> Self {
        let keys = frame.places(|column| column.role == ColumnRole::Key);
        let places: Vec<Option<usize>> = keys.iter().copied().map(Some).collect();
        let has_lists = row_numbers(frame.included(), &places).iter().any(|number| *number > 0);
        let groups = frame.groups();
        let (mut columns, mixed) = match has_lists {
            true => Default::default(),
            false => (frame.measured(), frame.mixed()),
        };
        columns.retain(|at| frame.has_finite_numbers(*at));
        let has_replicates = keys.iter().any(|at| frame.columns[*at].name == REPLICATE);
        let until = frame.until.as_ref();
        let mut measured = Self { has_replicates, until, has_lists, mixed, ..Self::default() };
        let axes = measured.add_axes(frame, &groups);
        measured.order_commits(frame);
        measured.columns = columns.iter().map(|at| &frame.columns[*at]).collect();
        let labels = frame.places(|column| column.role != ColumnRole::Key);
        let mut labels = if has_lists { Vec::new() } else { labels };
        labels.retain(|at| !columns.contains(at) && has_one_text(&groups, *at));
        measured.labels = labels.iter().map(|at| &*frame.columns[*at].name).collect();
        measured.add_points(&groups, &axes, &columns, &labels);
        measured
    }

    /// Adds the names of points that tell them apart. Returns their places in the keys of groups.
    fn add_axes(&mut self, frame: &'a Frame, groups: &[RowGroup<'a, 1>]) -> Vec<usize> {
        let keys = frame.places(FrameColumn::is_point_key);
        let texts = |at: usize| groups.iter().map(move |group| group.key[at].text());
        let whole = vec![0; groups.len()];
        let (mut axes, mut points) = (Vec::new(), whole.clone());
        for (at, key) in keys.into_iter().enumerate() {
            let column = &frame.columns[key];
            let (name, own) = (&*column.name, finer(&whole, texts(at)));
            if count(&own) <= 1 {
                self.constant.push((name, texts(at).next().unwrap_or_default()));
                continue;
            }
            let next = finer(&points, texts(at));
            if count(&next) > count(&points) {
                self.axes.push(PointAxis::new(column, texts(at)));
                axes.push(at);
                points = next;
                continue;
            }
            let by = axes.iter().position(|axis| {
                let of_axis = finer(&whole, texts(*axis));
                count(&finer(&of_axis, texts(at))) == count(&of_axis)
            });
            self.determined.push((name, by.map_or("the others", |axis| self.axes[axis].name)));
        }
        axes
    }

    /// Puts commits that are listed the newest first, by their dates, into the order in which they were made.
    fn order_commits(&mut self, frame: &Frame) {
        let Some(axis) = self.commits() else { return };
        let PointAxis { name, levels, .. } = &mut self.axes[axis];
        let (Some(commit), Some(date)) = (frame.place(name), frame.place(DATE)) else { return };
        let date_of = |level: Option<&&str>| -> Option<Timestamp> {
            let row = frame.included().find(|row| Some(&row.cells[commit].text()) == level)?;
            row.cells[date].text().parse().ok()
        };
        if let (Some(first), Some(last)) = (date_of(levels.first()), date_of(levels.last()))
            && first > last
        {
            levels.reverse();
        }
    }

    /// Adds the points, given the places of axes in the keys of groups, and of the columns of numbers and labels.
    fn add_points(
        &mut self,
        groups: &[RowGroup<'a, 1>],
        axes: &[usize],
        columns: &[usize],
        labels: &[usize],
    ) {
        let levels: Vec<HashMap<&str, usize>> =
            self.axes.iter().map(|axis| axis.levels.iter().copied().zip(0..).collect()).collect();
        self.points = groups
            .iter()
            .filter_map(|group| {
                let rows = &group.sides[0];
                let first = rows.rows().next()?;
                let levels = axes.iter().zip(&levels).map(|(at, of)| of[group.key[*at].text()]);
                Some(MeasuredPoint {
                    levels: levels.collect(),
                    labels: labels.iter().map(|at| first.cells[*at].text()).collect(),
                    columns: columns.iter().map(|at| rows.measured(*at)).collect(),
                    absent: rows.rows().len() - rows.ok().count(),
                })
            })
            .collect();
        self.points.sort_by(|a, b| a.levels.cmp(&b.levels));
    }

    /// The text of a point on an axis, as people read it: of a commit, the first digits.
    pub fn label(&self, point: &MeasuredPoint<'_>, axis: usize) -> &'a str {
        self.level(axis, point.levels[axis])
    }

    /// The text of a level of an axis, as people read it.
    pub fn level(&self, axis: usize, level: usize) -> &'a str {
        let PointAxis { kind, levels, .. } = &self.axes[axis];
        let text = levels[level];
        if *kind == AxisKind::Commit { &text[..SHORT_COMMIT.min(text.len())] } else { text }
    }

    /// The number of measurements of a column at the points that were measured least and most often.
    pub fn counts(&self, column: usize) -> [usize; 2] {
        let counts = self.points.iter().map(|it| it.columns[column].values.len());
        [counts.clone().min().unwrap_or_default(), counts.max().unwrap_or_default()]
    }
}

/// The number of digits of a commit that are shown.
const SHORT_COMMIT: usize = 8;

impl<'a> PointAxis<'a> {
    fn new(column: &'a FrameColumn, texts: impl Iterator<Item = &'a str>) -> Self {
        let mut seen = HashSet::new();
        let mut levels: Vec<&str> = texts.filter(|text| seen.insert(*text)).collect();
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
        Self { name: &column.name, is_factor: column.output.is_none(), kind, levels }
    }
}

/// Divides groups by texts: the number of the group of each text, counted from zero in the order of the first ones.
fn finer<'t>(groups: &[usize], texts: impl Iterator<Item = &'t str>) -> Vec<usize> {
    let mut known = HashMap::new();
    let numbered = groups.iter().zip(texts).map(|it| {
        let next = known.len();
        *known.entry(it).or_insert(next)
    });
    numbered.collect()
}

/// The number of different groups.
fn count(numbers: &[usize]) -> usize {
    numbers.iter().max().map_or(0, |most| most + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{FrameRow, RowStatus};
    use ce_model::sweep::CellValue;

    /// A table with these keys; a row has its cells, and the number of the calls that it rests on, or none if it failed.
    fn table(columns: &str, keys: &str, rows: &[(&str, Option<usize>)]) -> Frame {
        let columns = columns.split(' ').map(|name| {
            let is_key = keys.split(' ').any(|key| key == name);
            let role = if is_key { ColumnRole::Key } else { ColumnRole::Value };
            FrameColumn::new(name, role)
        });
        let cell = |text: &str| match text.parse::<f64>() {
            Ok(_) => CellValue::Number(text.to_owned()),
            Err(_) => CellValue::Text(text.to_owned()),
        };
        let rows = rows.iter().map(|(cells, call)| FrameRow {
            cells: cells.split(' ').map(cell).collect(),
            status: if call.is_some() { RowStatus::Ok } else { RowStatus::Missing },
            call: *call,
            ..FrameRow::default()
        });
        let rows = rows.collect();
        Frame { columns: columns.collect(), rows, ..Frame::default() }
    }

    fn names<'a>(axes: &[PointAxis<'a>]) -> Vec<&'a str> {
        axes.iter().map(|axis| axis.name).collect()
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
        let frame = table("n kind replicate seconds", "n kind replicate", &rows);
        let measured = MeasuredTable::new(&frame);
        assert_eq!(names(&measured.axes), ["n", "kind"]);
        assert_eq!(measured.axes[0].levels, ["9", "10"], "numbers are in order");
        assert_eq!(measured.columns[0].name, "seconds");
        let found: Vec<_> = measured
            .points
            .iter()
            .map(|it| (&*it.levels, &*it.columns[0].values, it.absent))
            .collect();
        assert_eq!(
            found,
            [(&[0, 0][..], &[0.25][..], 0), (&[0, 1], &[0.5], 1), (&[1, 0], &[0.5, 0.75], 0)]
        );
        assert!(measured.has_replicates && !measured.has_lists);
        assert_eq!(measured.counts(0), [1, 2]);
    }

    #[test]
    fn a_column_determined_by_others_is_not_an_axis() {
        let rows = [
            ("1 2 x long 5 7", Some(1)),
            ("2 4 x short 6 7", Some(2)),
            ("1 2 x long 6 8", Some(3)),
        ];
        let frame = table("a twice same note replicate y", "a twice same replicate", &rows);
        let measured = MeasuredTable::new(&frame);
        assert_eq!(names(&measured.axes), ["a"]);
        assert_eq!(measured.determined, [("twice", "a")]);
        assert_eq!(measured.constant, [("same", "x")]);
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
        let frame = table("commit y subject", "commit", &rows);
        let measured = MeasuredTable::new(&frame);
        let [found] = measured.steps(0).try_into().unwrap();
        assert_eq!(found.n, 11);
        let steps: Vec<[usize; 2]> = found.steps.iter().map(|it| it.points).collect();
        assert_eq!(steps, [[5, 6]], "and the spike is not a step");
        let frame = table("n y", "n", &[("1 2", Some(1)), ("2 3", Some(2))]);
        assert_eq!(MeasuredTable::new(&frame).steps(0), []);
    }

    #[test]
    fn commits_keep_the_order_of_rows_and_lists_are_not_measurements() {
        let (one, other) = ("b".repeat(40), "a".repeat(40));
        let [first, second] = [&one, &other].map(|commit| format!("{commit} 1"));
        let rows = [(&*first, Some(1)), (&*second, Some(2))];
        let frame = table("commit y", "commit", &rows);
        let measured = MeasuredTable::new(&frame);
        assert_eq!(measured.axes[0].kind, AxisKind::Commit);
        assert_eq!(measured.axes[0].levels, [one, other]);
        assert_eq!(measured.label(&measured.points[0], 0), "bbbbbbbb");
        let rows = [("a 1", Some(1)), ("a 2", Some(1)), ("b 3", Some(2))];
        let frame = table("sample position", "sample", &rows);
        let measured = MeasuredTable::new(&frame);
        assert!(measured.has_lists && measured.columns.is_empty());
    }
}
