//! The summary of a table: the medians of its measurements at each point over all replicates, with their intervals.

use ce_model::statistics::{Measurements, interval_places};
use ce_model::sweep::{CellValue, REPLICATE};

use crate::frame::{ColumnRole, Frame, FrameColumn, MeasuredValue, RowGroup, has_one_text};

/// A table with a row for each point without its replicate.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicateSummary<'a> {
    /// The columns that tell these points apart, and the labels with one text for each point.
    pub keys: Vec<&'a FrameColumn>,
    /// The columns that are summarised: the columns of numbers.
    pub columns: Vec<&'a FrameColumn>,
    /// Whether replicates end by results.
    pub ends_by_results: bool,
    /// The points, in the order of their first rows.
    pub points: Vec<PointSummary<'a>>,
}

/// The rows of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct PointSummary<'a> {
    /// The texts of the point.
    pub point: Vec<&'a CellValue>,
    pub columns: Vec<ColumnSummary>,
    /// The number of rows that are not there, or are not a number in one of the columns.
    pub not_ok: usize,
    /// The uncertainty of its median, if it has no more replicates and should be more certain.
    pub uncertain: Option<&'a str>,
}

/// The values of a column at a point.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSummary {
    /// The number of values. Values that one call makes are one value, unless its output gives several rows.
    pub n: usize,
    /// What [`STATISTICS`] say. Empty without values, or if one of them is too large for a computer.
    pub statistics: [CellValue; STATISTICS.len()],
    /// Whether there is an interval: there are at least 6 values.
    pub has_interval: bool,
}

/// A statistic of the values of a column at a point.
#[derive(Clone, Copy, Debug)]
pub struct SummaryStatistic {
    pub name: &'static str,
    /// Finds it.
    of: fn(&OrderedValues<'_>) -> CellValue,
    /// The values of both sides of a comparison, if they have them.
    pub of_sides: Option<SideStatistic>,
}

/// A statistic of both sides of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct SideStatistic {
    /// Its name in JSON.
    pub name: &'static str,
    /// The titles of its columns.
    pub titles: [&'static str; 2],
    /// Finds it for a side.
    pub of: fn(&Measurements) -> f64,
}

/// The name of the statistic that stands for its column.
pub const MEDIAN: &str = "median";

/// The statistics of each column of a summary besides the number of values, and of each side of a comparison: the median,
/// and the ends of its 95 % confidence interval or, without one, the least and the largest value.
pub const STATISTICS: [SummaryStatistic; 3] = [
    SummaryStatistic {
        name: MEDIAN,
        of: |values| values.median(),
        of_sides: Some(SideStatistic {
            name: "medians",
            titles: ["old", "new"],
            of: Measurements::median,
        }),
    },
    SummaryStatistic {
        name: "low",
        of: |values| values.0[values.ends()[0]].cell(),
        of_sides: None,
    },
    SummaryStatistic {
        name: "high",
        of: |values| values.0[values.ends()[1]].cell(),
        of_sides: None,
    },
];

/// The least whole number that a double may not hold.
const LARGE: f64 = 9_007_199_254_740_992.0;

/// Values in order, at least one.
struct OrderedValues<'a>(Vec<MeasuredValue<'a>>);

impl<'a> OrderedValues<'a> {
    fn new(mut values: Vec<MeasuredValue<'a>>) -> Option<Self> {
        values.sort_by(|a, b| {
            a.number.total_cmp(&b.number).then_with(|| a.large_integer().cmp(&b.large_integer()))
        });
        // An infinite one that is not spelled so is too large.
        let is_known =
            |it: &MeasuredValue<'_>| CellValue::Number(it.spelled.to_owned()).number().is_some();
        (!values.is_empty() && values.iter().all(is_known)).then_some(Self(values))
    }

    /// The places of the ends of the interval, or else of the range.
    fn ends(&self) -> [usize; 2] {
        interval_places(self.0.len()).unwrap_or([0, self.0.len() - 1])
    }

    fn median(&self) -> CellValue {
        let [low, high] = [(self.0.len() - 1) / 2, self.0.len() / 2].map(|at| self.0[at]);
        if low.number == high.number && low.large_integer() == high.large_integer() {
            return low.cell();
        }
        let is_large = [low, high].iter().any(|it| it.large_integer().is_some());
        let integers = [low, high].map(|it| it.spelled.parse::<i128>().ok());
        if let ([Some(low), Some(high)], true) = (integers, is_large)
            && let Some(sum) = low.checked_add(high)
        {
            let sign = if sum == -1 { "-" } else { "" };
            let half = if sum % 2 == 0 { "" } else { ".5" };
            return CellValue::Number(format!("{sign}{}{half}", sum / 2));
        }
        self.sample().map_or(CellValue::Null, |sample| number(sample.median()))
    }

    /// The values as doubles.
    fn sample(&self) -> Option<Measurements> {
        Measurements::new(self.0.iter().map(|it| it.number).collect())
    }
}

impl MeasuredValue<'_> {
    /// The value, if it is a whole number that a double may not hold, and is spelled as one.
    fn large_integer(&self) -> Option<i128> {
        if self.number.abs() < LARGE { None } else { self.spelled.parse().ok() }
    }

    fn cell(&self) -> CellValue {
        let is_integer = self.spelled.trim_start_matches('-').bytes().all(|it| it.is_ascii_digit());
        match self.number.abs() >= LARGE && is_integer {
            true => CellValue::Number(self.spelled.to_owned()),
            false => number(self.number),
        }
    }
}

/// A number as JSON spells it, a whole one without a point. An infinite one is spelled as in tables.
fn number(number: f64) -> CellValue {
    if number.is_nan() {
        return CellValue::NotANumber;
    } else if number.is_infinite() {
        let sign = if number < 0.0 { "-" } else { "" };
        return CellValue::Number(format!("{sign}Infinity"));
    }
    CellValue::Number(match number.fract() == 0.0 && number.abs() < LARGE {
        true => format!("{number:.0}"),
        false => format!("{number:?}"),
    })
}

impl ColumnSummary {
    fn new(group: &RowGroup<'_, 1>, column: usize) -> Self {
        let values = group.sides[0].calls(column).into_iter().flat_map(|call| call.values);
        let values: Vec<MeasuredValue<'_>> = values.collect();
        let (n, has_interval) = (values.len(), interval_places(values.len()).is_some());
        match OrderedValues::new(values) {
            Some(values) => {
                Self { n, statistics: STATISTICS.map(|it| (it.of)(&values)), has_interval }
            }
            None => {
                Self { n, statistics: STATISTICS.map(|_| CellValue::Null), has_interval: false }
            }
        }
    }
}

impl<'a> ReplicateSummary<'a> {
    /// Sums up a table, without excluded points.
    pub fn new(frame: &'a Frame) -> Self {
        let groups = frame.groups();
        let measured = frame.measured();
        let is_named = |at: &usize| match frame.columns[*at].role {
            _ if frame.columns[*at].name == REPLICATE => false,
            ColumnRole::Key => true,
            ColumnRole::Label => has_one_text(&groups, *at),
            ColumnRole::RowLabel | ColumnRole::Value => false,
        };
        let keys: Vec<usize> = (0..frame.columns.len()).filter(is_named).collect();
        let points = groups.iter().filter_map(|group| {
            let rows = &group.sides[0];
            let first = rows.rows().next()?;
            Some(PointSummary {
                point: keys.iter().map(|at| &first.cells[*at]).collect(),
                columns: measured.iter().map(|at| ColumnSummary::new(group, *at)).collect(),
                not_ok: rows.absent(&measured),
                uncertain: first.uncertain.as_deref(),
            })
        });
        let points = points.collect();
        let [keys, columns] =
            [&keys, &measured].map(|places| places.iter().map(|at| &frame.columns[*at]).collect());
        Self { keys, columns, ends_by_results: frame.until.is_some(), points }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::tests::{SUITE, frame};

    /// A summary in words: for each point its texts, the number of values and the statistics of each column, and the absent rows.
    fn words(text: &str) -> Vec<String> {
        let frame = frame(text);
        let summary = ReplicateSummary::new(&frame);
        let points = summary.points.iter().map(|it| {
            let mut words: Vec<String> = it.point.iter().map(|it| it.text().to_owned()).collect();
            for column in &it.columns {
                words.push(format!("{}:", column.n));
                words.extend(column.statistics.iter().map(|it| it.text().to_owned()));
            }
            format!("{} / {}", words.join(" "), it.not_ok)
        });
        points.collect()
    }

    #[test]
    fn a_suite_has_a_row_for_each_benchmark() {
        let expected = [
            "a fast 2: 0.115 0.11 0.12 / 0",
            "a slow 2: 100.15 100.1 100.2 / 0",
            "b fast 1: 0.91 0.91 0.91 / 1",
            "b slow 1: 100.1 100.1 100.1 / 1",
        ];
        assert_eq!(words(SUITE), expected);
    }

    #[test]
    fn a_label_is_listed_if_each_point_has_one() {
        let text = "n replicate one~ many~ s@0\n 1 1 a x 1 | 1\n 1 2 a y 2 | 2\n 2 1 b z 3 | 3";
        assert_eq!(words(text), ["1 a 2: 1.5 1 2 / 0", "2 b 1: 3 3 3 / 0"]);
    }

    #[test]
    fn an_interval_needs_six_values() {
        let rows = |n: usize| (1..=n).map(|at| format!("1 {at} {at} | {at}\n")).collect::<String>();
        let text = |n| format!("n replicate s@0\n{}", rows(n));
        assert_eq!(words(&text(5)), ["1 5: 3 1 5 / 0"]);
        assert_eq!(words(&text(9)), ["1 9: 5 2 8 / 0"]);
        let has_interval = |n| {
            let frame = frame(&text(n));
            ReplicateSummary::new(&frame).points[0].columns[0].has_interval
        };
        assert_eq!([5, 6].map(has_interval), [false, true]);
    }

    /// The statistics of a column with these values.
    fn statistics(values: &str) -> String {
        let rows =
            values.split(' ').enumerate().map(|(at, value)| format!("{at} {value} | {at}\n"));
        let [line] =
            words(&format!("replicate s@0\n{}", rows.collect::<String>())).try_into().unwrap();
        let statistics = line.split_once(": ").unwrap().1;
        statistics.trim_end_matches(" / 0").to_owned()
    }

    #[test]
    fn numbers_are_spelled_as_json_spells_them() {
        assert_eq!(statistics("1.50"), "1.5 1.5 1.5");
        assert_eq!(statistics("1e3 2000"), "1500 1000 2000");
        assert_eq!(statistics("0.1 0.2"), "0.15 0.1 0.2");
        assert_eq!(statistics("1e300"), "1e300 1e300 1e300");
    }

    #[test]
    fn integers_beyond_double_precision_keep_their_digits() {
        let large = "9007199254740993";
        assert_eq!(statistics(large), [large; 3].join(" "));
        let digits = "123456789012345678901234567890123456789012345";
        assert_eq!(statistics(digits), [digits; 3].join(" "));
        // As doubles, these are equal.
        let [low, middle, high] = ["9007199254740992", large, "9007199254740994"];
        let mixed = format!("{high} {low} {middle}");
        assert_eq!(statistics(&mixed), format!("{middle} {low} {high}"));
        assert_eq!(
            statistics(&format!("-{high} -{low} -{middle}")),
            format!("-{middle} -{high} -{low}")
        );
        // The median of two is exact.
        assert_eq!(statistics(&format!("{middle} {low}")), format!("{low}.5 {low} {middle}"));
        assert_eq!(statistics(&format!("{low} {high}")), format!("{middle} {low} {high}"));
        assert_eq!(statistics(&format!("{middle} 1")), format!("4503599627370497 1 {middle}"));
        assert_eq!(
            statistics("-9007199254740993 9007199254740992").split(' ').next(),
            Some("-0.5")
        );
    }

    #[test]
    fn a_value_beyond_double_range_leaves_the_statistics_empty() {
        assert_eq!(words("n s@0\n 1 1e999 | 1\n 1 2 | 2"), ["1 2:    / 0"]);
    }

    #[test]
    fn a_point_whose_median_is_uncertain_says_so() {
        let mut frame = frame("n s@0\n 1 2 | 1\n 2 3 | 2");
        frame.rows[1].uncertain = Some("±9%".to_owned());
        let summary = ReplicateSummary::new(&frame);
        let uncertain: Vec<Option<&str>> = summary.points.iter().map(|it| it.uncertain).collect();
        assert_eq!(uncertain, [None, Some("±9%")]);
    }
}
