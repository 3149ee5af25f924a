//! The rows of a table, or of two, by their points; and the values of a column, by the calls that made them.

use std::collections::{HashMap, HashSet};

use ce_model::statistics::Measurements;
use ce_model::sweep::CellValue;

use super::{ColumnRole, Frame, FrameRow, RowStatus};

/// Rows of a table, and the columns by which they are grouped.
#[derive(Clone, Debug)]
pub struct FrameSide<'a> {
    /// The table.
    pub frame: &'a Frame,
    pub rows: Vec<&'a FrameRow>,
    /// The places of the columns by which they are grouped. Without one, all cells are empty.
    pub places: Vec<Option<usize>>,
}

/// The rows of a point in one table, or on each of two sides.
#[derive(Clone, Debug)]
pub struct RowGroup<'a, const N: usize> {
    /// The cells that tell it apart.
    pub key: Vec<&'a CellValue>,
    pub sides: [SideRows<'a>; N],
}

/// Rows of a point.
#[derive(Clone, Debug)]
pub struct SideRows<'a> {
    frame: &'a Frame,
    rows: Vec<NumberedRow<'a>>,
}

/// A row, and its number among those with the same texts of a point: an output may give several rows.
#[derive(Clone, Copy, Debug)]
struct NumberedRow<'a> {
    row: &'a FrameRow,
    number: usize,
}

/// The values that a call makes in a column at a point: one measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct CallValues<'a> {
    /// The number of the call, if it is known.
    pub call: Option<usize>,
    /// The values, each once, however many replicates rest on the call.
    pub values: Vec<MeasuredValue<'a>>,
}

/// A number of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredValue<'a> {
    /// The number; also infinite if no double can hold it.
    pub number: f64,
    /// Its spelling.
    pub spelled: &'a str,
}

/// The measurements of a column at a point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredSide<'a> {
    /// A value for each call: the median of the values that it makes.
    pub values: Vec<f64>,
    /// The spelling of all values.
    pub spelled: Vec<&'a str>,
    /// The calls that made them, as far as they are known.
    pub calls: Vec<usize>,
}

impl MeasuredSide<'_> {
    /// The sample, if there are values.
    pub fn sample(&self) -> Option<Measurements> {
        Measurements::new(self.values.clone())
    }

    /// Whether another point has the same measurements: two rows of one call are not the same.
    pub fn shares_calls(&self, other: &Self) -> bool {
        !self.calls.is_empty() && self.calls == other.calls && self.values == other.values
    }
}

impl<'a> SideRows<'a> {
    /// The rows.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &'a FrameRow> + Clone {
        self.rows.iter().map(|it| it.row)
    }

    /// Whether there are no rows.
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows that are there.
    pub fn ok(&self) -> impl Iterator<Item = &'a FrameRow> + Clone {
        self.rows().filter(|row| row.status == RowStatus::Ok)
    }

    /// The number of calls whose rows are not there, or are not a number in one of these columns. A row without the number of a call is one
    /// alone.
    pub fn absent(&self, columns: &[usize]) -> usize {
        let is_nan =
            |row: &FrameRow| columns.iter().any(|at| row.cells[*at] == CellValue::NotANumber);
        let absent = self.rows().filter(|row| row.status != RowStatus::Ok || is_nan(row));
        let absent = absent.map(|row| row.call);
        let known: HashSet<usize> = absent.clone().flatten().collect();
        known.len() + absent.filter(Option::is_none).count()
    }

    /// The numbers of a column, by the calls that made them.
    pub fn calls(&self, column: usize) -> Vec<CallValues<'a>> {
        let mut calls: Vec<CallValues<'a>> = Vec::new();
        let mut known: HashMap<usize, usize> = HashMap::new();
        let mut seen: HashSet<(usize, usize)> = HashSet::new();
        for NumberedRow { row, number } in &self.rows {
            let CellValue::Number(spelled) = &row.cells[column] else { continue };
            let Ok(value) = spelled.parse() else { continue };
            if row.status != RowStatus::Ok {
                continue;
            }
            let call = self.frame.call_of(row, column);
            let at = match call {
                Some(call) if !seen.insert((call, *number)) => continue,
                Some(call) => *known.entry(call).or_insert(calls.len()),
                None => calls.len(),
            };
            if at == calls.len() {
                calls.push(CallValues { call, values: Vec::new() });
            }
            calls[at].values.push(MeasuredValue { number: value, spelled });
        }
        calls
    }

    /// The measurements of a column.
    pub fn measured(&self, column: usize) -> MeasuredSide<'a> {
        let mut measured = MeasuredSide::default();
        for CallValues { call, values } in self.calls(column) {
            measured.spelled.extend(values.iter().map(|it| it.spelled));
            let numbers = values.into_iter().map(|it| it.number).collect();
            measured.values.extend(Measurements::new(numbers).map(|it| it.median()));
            measured.calls.extend(call);
        }
        measured
    }
}

/// Whether all rows of each point have one text in a column.
pub(crate) fn has_one_text(groups: &[RowGroup<'_, 1>], column: usize) -> bool {
    groups.iter().all(|group| {
        let mut texts = group.sides[0].rows().map(|row| row.cells[column].text());
        let first = texts.next();
        texts.all(|text| Some(text) == first)
    })
}

/// The cells of a row at places of columns; empty ones where there is no such column.
pub(crate) fn cells_at<'a>(
    row: &'a FrameRow,
    places: &[Option<usize>],
) -> impl Iterator<Item = &'a CellValue> {
    places.iter().map(|at| at.map_or(&CellValue::Null, |at| &row.cells[at]))
}

/// The number of each row among those with the same texts at places of columns, from 0.
pub(crate) fn row_numbers<'a>(
    rows: impl Iterator<Item = &'a FrameRow>,
    places: &[Option<usize>],
) -> Vec<usize> {
    let mut counts: HashMap<Vec<&str>, usize> = HashMap::new();
    let numbers = rows.map(|row| {
        let count = counts.entry(cells_at(row, places).map(CellValue::text).collect());
        *count.and_modify(|count| *count += 1).or_default()
    });
    numbers.collect()
}

/// Groups rows by the texts of some columns, in the order of the first rows of groups; the rows of the last side come first.
///
/// A row that is not there has no texts of an output. It is in each group with which it has all its own texts in common, or alone.
pub(crate) fn grouped<const N: usize>(sides: [FrameSide<'_>; N]) -> Vec<RowGroup<'_, N>> {
    let frames = sides.each_ref().map(|side| side.frame);
    let mut groups: Vec<RowGroup<'_, N>> = Vec::new();
    let mut known: HashMap<Vec<&str>, usize> = HashMap::new();
    for (at, FrameSide { frame, rows, places }) in sides.into_iter().enumerate().rev() {
        let of_point = frame.places(|it| matches!(it.role, ColumnRole::Key | ColumnRole::Label));
        let of_point: Vec<Option<usize>> = of_point.into_iter().map(Some).collect();
        let numbers = row_numbers(rows.iter().copied(), &of_point);
        for (row, number) in rows.into_iter().zip(numbers) {
            let key: Vec<&CellValue> = cells_at(row, &places).collect();
            let group =
                *known.entry(key.iter().map(|cell| cell.text()).collect()).or_insert(groups.len());
            if group == groups.len() {
                let sides = frames.map(|frame| SideRows { frame, rows: Vec::new() });
                groups.push(RowGroup { key, sides });
            }
            groups[group].sides[at].rows.push(NumberedRow { row, number });
        }
    }
    with_absent(groups)
}

/// The texts of a group at some places.
fn texts_at<'a>(key: &[&'a CellValue], places: &[usize]) -> Vec<&'a str> {
    places.iter().map(|at| key[*at].text()).collect()
}

/// Adds the rows of groups without texts of an output to those with which they have all other texts in common.
fn with_absent<const N: usize>(groups: Vec<RowGroup<'_, N>>) -> Vec<RowGroup<'_, N>> {
    let (mut open, mut whole) = (Vec::new(), Vec::new());
    for (at, group) in groups.into_iter().enumerate() {
        let is_open = group.key.contains(&&CellValue::Null)
            && group.sides.iter().all(|side| side.ok().next().is_none());
        if is_open { open.push((at, group)) } else { whole.push((at, group)) }
    }
    // The groups by the texts at the places of an open group.
    let mut known: HashMap<Vec<usize>, HashMap<Vec<&str>, Vec<usize>>> = HashMap::new();
    let mut alone = Vec::new();
    for (at, group) in open {
        let places: Vec<usize> =
            (0..group.key.len()).filter(|at| *group.key[*at] != CellValue::Null).collect();
        let by_texts = known.entry(places.clone()).or_insert_with(|| {
            let mut by_texts: HashMap<Vec<&str>, Vec<usize>> = HashMap::new();
            for (number, (_, group)) in whole.iter().enumerate() {
                by_texts.entry(texts_at(&group.key, &places)).or_default().push(number);
            }
            by_texts
        });
        let Some(found) = by_texts.get(&texts_at(&group.key, &places)) else {
            alone.push((at, group));
            continue;
        };
        for number in found {
            for (side, rows) in whole[*number].1.sides.iter_mut().zip(&group.sides) {
                side.rows.extend(&rows.rows);
            }
        }
    }
    whole.extend(alone);
    whole.sort_by_key(|(at, _)| *at);
    whole.into_iter().map(|(_, group)| group).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SUITE, frame};
    use super::*;

    /// The groups of a table in words: the key, the values of a column by calls, and the number of absent rows.
    fn words(frame: &Frame, column: &str) -> Vec<String> {
        let at = frame.place(column).unwrap();
        let groups = frame.groups().into_iter().map(|group| {
            let key: Vec<&str> = group.key.iter().map(|cell| cell.text()).collect();
            let calls = group.sides[0].calls(at).into_iter().map(|it| {
                let values: Vec<&str> = it.values.iter().map(|value| value.spelled).collect();
                values.join("+")
            });
            let calls: Vec<String> = calls.collect();
            format!("{}: {} / {}", key.join(" "), calls.join(" "), group.sides[0].absent(&[]))
        });
        groups.collect()
    }

    #[test]
    fn replicates_form_a_group_and_absent_rows_join_all_groups_of_their_point() {
        let expected = [
            "a fast: 0.11 0.12 / 0",
            "a slow: 100.1 100.2 / 0",
            "b fast: 0.91 / 1",
            "b slow: 100.1 / 1",
        ];
        assert_eq!(words(&frame(SUITE), "seconds"), expected);
    }

    #[test]
    fn absent_rows_of_a_point_without_others_are_a_group() {
        let text = "tool replicate benchmark@0* seconds@0*
            a 1 - - | failed 1
            b 1 fast 1 | 2
            b 1 slow 5 | 2
            b 2 fast 1 | 3";
        let expected = ["a : / 1", "b fast: 1 1 / 0", "b slow: 5 / 0"];
        let words = words(&frame(text), "seconds");
        assert_eq!(words.iter().map(|it| it.replace("  ", " ")).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn excluded_rows_are_in_no_group() {
        assert_eq!(words(&frame("n s@0\n 1 2 | 1\n 2 - | excluded"), "s"), ["1: 2 / 0"]);
    }

    #[test]
    fn a_call_counts_once_at_a_point_and_again_at_another_one() {
        let text = "n replicate build@0 run@1
            1 1 10 1 | 1 2
            1 2 10 2 | 1 3
            2 1 10 3 | 1 4";
        assert_eq!(words(&frame(text), "build"), ["1: 10 / 0", "2: 10 / 0"]);
        assert_eq!(words(&frame(text), "run"), ["1: 1 2 / 0", "2: 3 / 0"]);
    }

    #[test]
    fn the_rows_of_one_call_are_its_values_and_its_median_is_one_measurement() {
        let text = "n replicate s@0*\n 1 1 5 | 1\n 1 1 9 | 1\n 1 1 7 | 1\n 1 2 5 | 1\n 1 2 9 | 1\n 1 2 7 | 1\n 1 3 4 | 2";
        let frame = frame(text);
        assert_eq!(words(&frame, "s"), ["1: 5+9+7 4 / 0"]);
        let measured = frame.groups()[0].sides[0].measured(2);
        assert_eq!((&*measured.values, &*measured.calls), (&[7.0, 4.0][..], &[1, 2][..]));
        assert_eq!(measured.spelled, ["5", "9", "7", "4"]);
    }

    #[test]
    fn different_rows_of_one_call_are_different_measurements() {
        let frame = frame("n name@0* s@0*\n 1 fast 5 | 1\n 1 slow 9 | 1\n 2 fast 5 | 1");
        let groups = frame.groups();
        let measured = groups.iter().map(|group| group.sides[0].measured(2));
        let [one, slow, two] = measured.collect::<Vec<_>>().try_into().unwrap();
        assert!(one.shares_calls(&two) && !one.shares_calls(&slow));
    }

    #[test]
    fn each_row_without_a_call_is_a_measurement() {
        assert_eq!(words(&frame("n s@0\n 1 5\n 1 5\n 1 -"), "s"), ["1: 5 5 / 0"]);
        let measured = frame("n s@0\n 1 5\n 1 5").groups()[0].sides[0].measured(1).calls;
        assert!(measured.is_empty());
    }

    #[test]
    fn absent_rows_of_one_call_are_one() {
        let text = "n replicate s@0
            1 1 - | failed 1\n 1 2 - | failed 1\n 1 3 - | missing 2\n 1 4 - | missing\n 1 5 - | missing";
        assert_eq!(words(&frame(text), "s"), ["1:  / 4"]);
    }

    #[test]
    fn a_failed_replicate_has_no_value_and_hides_no_other_value() {
        let text = "n replicate build@0 run@1\n 1 1 - - | failed 1 2\n 1 2 10 7 | 1 3";
        assert_eq!(words(&frame(text), "build"), ["1: 10 / 1"]);
    }

    #[test]
    fn sides_are_joined_by_texts_in_the_order_of_the_newer_one() {
        let (old, new) =
            (frame("n x s@0\n 1 a 5 | 1\n 2 b 6 | 2"), frame("x n s@0\n c 3 8 | 1\n b 2 7 | 2"));
        let side = |frame| {
            let places = ["n", "x"].map(|name| Frame::place(frame, name)).to_vec();
            FrameSide { frame, rows: frame.included().collect(), places }
        };
        let groups = grouped([side(&old), side(&new)]);
        let found = groups.iter().map(|group| {
            let key: Vec<&str> = group.key.iter().map(|cell| cell.text()).collect();
            (key.join(" "), group.sides.each_ref().map(|side| side.rows().len()))
        });
        let expected = [("3 c", [0, 1]), ("2 b", [1, 1]), ("1 a", [1, 0])];
        assert_eq!(found.collect::<Vec<_>>(), expected.map(|(key, rows)| (key.to_owned(), rows)));
    }

    #[test]
    fn a_column_that_a_side_lacks_is_empty_there() {
        let (old, new) = (frame("n s@0\n 1 5 | 1"), frame("n s@0 x\n 1 5 a | 1"));
        let side = |frame| {
            let places = ["n", "x"].map(|name| Frame::place(frame, name)).to_vec();
            FrameSide { frame, rows: frame.included().collect(), places }
        };
        let groups = grouped([side(&old), side(&new)]);
        let keys = groups.iter().map(|it| it.key[1].text()).collect::<Vec<_>>();
        assert_eq!(keys, ["a", ""]);
    }

    #[test]
    fn absent_rows_of_one_side_are_in_the_groups_of_the_other_one() {
        let (old, new) =
            (frame(SUITE), frame("tool replicate benchmark@0* seconds@0*\n a 1 - - | failed 1"));
        let side = |frame, benchmark| FrameSide {
            frame,
            rows: Frame::included(frame).take(2).collect(),
            places: vec![Some(0), benchmark],
        };
        let groups = grouped([side(&old, Some(2)), side(&new, Some(2))]);
        let counts = groups.iter().map(|it| it.sides.each_ref().map(|side| side.absent(&[])));
        assert_eq!(counts.collect::<Vec<_>>(), [[0, 1], [0, 1]]);
    }

    #[test]
    fn rows_with_the_same_texts_are_numbered() {
        let frame = frame("n x\n 1 a\n 2 a\n 1 a\n 1 b");
        assert_eq!(row_numbers(frame.included(), &[Some(0)]), [0, 0, 1, 2]);
        assert_eq!(row_numbers(frame.included(), &[Some(0), Some(1)]), [0, 0, 1, 0]);
        assert_eq!(row_numbers(frame.included(), &[None]), [0, 1, 2, 3]);
    }
}
