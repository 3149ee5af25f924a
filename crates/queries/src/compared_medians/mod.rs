//! Medians of two sides of a table compared, group by group: two levels of a factor, or two tables.
//!
//! The values that a call makes count as one, however many rows of a side have them: as their median. Groups are told apart by
//! names of points, but not by the replicate, nor by names without a common text of the two sides. The rules are the rules of
//! [`statistics`].

mod sides;

use ce_model::exit::Explain;
use ce_model::host_use::DisturbedCalls;
use ce_model::humanize::{counted, listed};
use ce_model::statistics::{
    self, ChangeVerdict, ComparedSides, Estimate, Measurements, MedianChange,
};
use ce_model::suggest::UnknownName;
use ce_model::sweep::{Better, CellValue, ColumnMeasure};

use crate::frame::{Frame, MeasuredSide};

/// The medians of two sides, compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparedMedians {
    /// The change, unless there are too few values.
    pub change: Option<MedianChange>,
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

/// The two sides: their rows and tables.
#[derive(Clone, Copy, Debug)]
pub enum MedianTables<'a> {
    /// The rows of one table that have an old and a new text in a column.
    Levels {
        table: &'a Frame,
        /// The column.
        by: &'a str,
        /// The texts. The first digits of a commit are enough.
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
    /// The names of columns that are not measurements: sizes, counts.
    pub exact: Vec<String>,
    /// The names that tell groups apart, if not the names of points.
    pub groups: Vec<String>,
    /// The least change that matters, as a share.
    pub threshold: f64,
    /// The direction of better values, if it differs from the columns'.
    pub better: Option<Better>,
    /// Whether the confidence holds for all intervals of a column together.
    pub is_family: bool,
    /// Whether the largest changes come first.
    pub is_sorted: bool,
}

/// The reason why nothing is compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum MedianError {
    /// No column has this name.
    #[error("the table has no column {}; there are {}", .0, .0.known.join(", "))]
    #[hint(Some(nearest_or_listed(_0)))]
    NoColumn(UnknownName),
    /// A column has no such text.
    #[error("{by} has no level {level}; there are {}", listed(&level.known))]
    #[hint(Some(nearest_or_listed(level)))]
    NoLevel {
        /// The column.
        by: String,
        /// The text, and the existing texts.
        level: UnknownName,
    },
    /// Several commits begin so.
    #[error("{by} has several levels that begin with {level:?}: {}", listed(known))]
    #[hint("give more digits")]
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
    #[hint("give an old and a new one, as NAME=OLD,NEW")]
    SameLevel {
        /// The column.
        by: String,
        /// The text.
        level: String,
    },
    /// A column has other values than numbers, or none on a side.
    #[error("the column {name} cannot be compared: {why}")]
    #[hint("texts and digests are compared by ce diff")]
    NoNumbers {
        /// The column.
        name: String,
        /// The reason.
        why: String,
    },
    /// A column of numbers has something else.
    #[error("the column {name} cannot be compared: {text:?} {place} is not a number{}", if *.is_too_large { " that a double can hold" } else { "" })]
    #[hint(
        "let what was not measured fail, or be empty; or choose columns with --column, and names of groups with --group"
    )]
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
    #[exit(Missing)]
    #[hint("ce table shows the status of each")]
    Absent(usize),
    /// No column has numbers on both sides.
    #[error("no column has numbers on both sides; {}", columns_in_words(.0))]
    #[hint(
        "name columns alike on both sides, and separate them by commas or tabs; texts and digests are compared by ce \
         diff"
    )]
    Nothing(Vec<String>),
}

/// Describes in words the existing columns.
fn columns_in_words(names: &[String]) -> String {
    match names {
        [] => "there are no columns".to_owned(),
        names => {
            let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
            format!("the columns are {}", names.join(", "))
        }
    }
}

fn nearest_or_listed(unknown: &UnknownName) -> String {
    unknown.meant().unwrap_or_else(|| "give one of these names".to_owned())
}

/// The comparison of two sides.
#[derive(Clone, Debug, PartialEq)]
pub struct MedianTable {
    /// The names of the sides: the texts of levels, or nothing for tables.
    pub levels: Option<[String; 2]>,
    /// The names that tell groups apart.
    pub groups: Vec<String>,
    /// The names of points without a common text of the sides. They distinguish no groups.
    pub differing: Vec<String>,
    /// The names of columns that tell rows apart, and no groups: their measurements are together.
    pub pooled: Vec<String>,
    pub columns: Vec<MedianColumn>,
}

/// The comparison of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct MedianColumn {
    pub name: String,
    /// Its unit, and which values are better.
    pub measure: ColumnMeasure,
    /// The confidence of intervals; `None` if its values are not measurements.
    pub confidence: Option<f64>,
    /// The groups. Groups of one side only come last.
    pub rows: Vec<MedianRow>,
}

/// A group of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct MedianRow {
    /// The text of each name.
    pub group: Vec<CellValue>,
    /// The number of rows of each side that should have values and are not there.
    pub not_ok: [usize; 2],
    /// The values of each side, unless it has none.
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

    /// Whether the change is a ratio, and its size in either direction: for a ratio, the size of its logarithm.
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
    /// The sides have values of the same calls: their number, and the numbers of the old side and of the new one.
    Shared([usize; 3]),
    /// The sides were measured on other hosts.
    Hosts([Vec<String>; 2]),
    /// They were measured on machines that are not the same.
    Machines([Vec<String>; 2]),
    /// Their calls were told other numbers of processors, or other resources.
    Asked([Vec<String>; 2]),
    /// Others used the processors while some of these calls were executed.
    Disturbed(DisturbedCalls),
    /// One side was measured before the other one began.
    Times,
    /// The numbers of values differ by much.
    Uneven,
    /// There are outliers, which count.
    Outliers(usize),
    /// Values are rounded so coarsely that it matters.
    Resolution,
    /// Values that are not measurements differ.
    Inexact,
}

impl MedianColumn {
    /// The geometric mean of the ratios of the groups that both sides have, if there are several and each has one.
    pub fn mean(&self) -> Option<Estimate> {
        let compared: Vec<&ComparedMedians> = self.compared().collect();
        (compared.len() > 1).then(|| mean_ratio(compared.into_iter())).flatten()
    }

    /// The number of groups that can show a change: they have enough values, and of different calls.
    pub fn decidable(&self) -> usize {
        let cannot = [ChangeVerdict::SameCall, ChangeVerdict::TooFew];
        self.compared().filter(|it| !cannot.contains(&it.verdict)).count()
    }

    /// The comparisons of the groups that both sides have.
    pub fn compared(&self) -> impl Iterator<Item = &ComparedMedians> {
        self.rows.iter().filter_map(|row| row.compared.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ce_model::statistics::THRESHOLD;

    use super::*;
    use crate::table_from_file::read_table;

    /// The vectors of `statistics`: old values, new ones, the ratio, its ends and the verdict.
    const VECTORS: [(&str, &str, [f64; 3], &str); 5] = [
        (
            "1726 1723 1707 1707 1713 1729 1736 1707 1705 1774",
            "1423 1416 1411 1413 1412 1426 1422 1424 1447 1425",
            [0.827997671711, 0.819417276734, 0.833585869668],
            "less",
        ),
        (
            "3069 3075 3069 3067 3207 3064 3064 3058 3059 3062",
            "3075 3065 3059 3065 3060 3081 3186 3135 3087 3062",
            [1.001467949763, 0.998107019100, 1.012448671404],
            "unclear",
        ),
        (
            "1.0 1.1 1.2 1.3 1.4 1.5",
            "1.0 1.1 1.2 1.3 1.4 1.5 1.6 1.7",
            [1.08, 0.829949339112, 1.396266048764],
            "unclear",
        ),
        (
            "5 7 8 9 12 15 40",
            "11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30",
            [2.277777778, 1.016408213, 3.363682621],
            "more",
        ),
        ("1 2 3 4 5", "2 4 6 8 10", [2.0, 0.595461432620, 6.717479555981], "unclear"),
    ];

    pub(super) fn file(text: &str) -> Frame {
        read_table(Path::new("t"), text.as_bytes()).unwrap()
    }

    pub(super) fn rules() -> MedianRules {
        MedianRules { threshold: THRESHOLD, ..MedianRules::default() }
    }

    pub(super) fn levels<'a>(
        table: &'a Frame,
        by: &'a str,
        levels: [&'a str; 2],
    ) -> MedianTables<'a> {
        MedianTables::Levels { table, by, levels }
    }

    /// A file with a column of names and one of values, with six more decimals, which move no end by rounding.
    fn vectors(side: usize, names: &[&str]) -> String {
        let mut text = "bench,seconds\n".to_owned();
        for (name, (old, new, ..)) in names.iter().zip(VECTORS) {
            for value in [old, new][side].split(' ') {
                let point = if value.contains('.') { "" } else { "." };
                text.extend([name, ",", value, point, "000000\n"]);
            }
        }
        text
    }

    /// The comparison of two files without other rules.
    pub(super) fn of_files(old: &str, new: &str) -> Result<MedianTable, MedianError> {
        MedianTable::new(MedianTables::Tables([&file(old), &file(new)]), &rules())
    }

    #[track_caller]
    fn assert_close(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-6 * expected.abs(), "{found} {expected}");
    }

    #[test]
    fn verdicts_agree_with_the_test_vectors() {
        let names = ["a", "b", "c", "d", "e"];
        let compared = of_files(&vectors(0, &names), &vectors(1, &names)).unwrap();
        assert_eq!(compared.groups, ["bench"]);
        for (row, (.., expected, verdict)) in compared.columns[0].rows.iter().zip(VECTORS) {
            let change = row.compared.unwrap().change.unwrap();
            assert!(change.is_ratio);
            let found = [change.estimate.value, change.estimate.low, change.estimate.high];
            found.into_iter().zip(expected).for_each(|(it, expected)| assert_close(it, expected));
            assert_eq!(row.compared.unwrap().verdict.to_string(), verdict);
        }
        assert_eq!(compared.columns[0].rows[3].notes, [MedianNote::Uneven]);
        assert_eq!(compared.columns[0].decidable(), 5);
    }

    #[test]
    fn the_mean_of_ratios_has_an_interval() {
        let compared = of_files(&vectors(0, &["a", "b"]), &vectors(1, &["a", "b"])).unwrap();
        let mean = compared.columns[0].mean().unwrap();
        assert_close(mean.value, 0.910611404880);
        assert_close(mean.low, 0.905641295259);
        assert_close(mean.high, 0.916463769632);
        let one = of_files(&vectors(0, &["a"]), &vectors(1, &["a"])).unwrap();
        assert_eq!(one.columns[0].mean(), None, "one ratio has no mean");
    }

    #[test]
    fn medians_without_a_ratio_are_compared_by_difference() {
        let old: String = (-2..=3).map(|it| format!("old,{it}.000000\n")).collect();
        let new: String = (0..=6).map(|it| format!("new,{it}.000000\n")).collect();
        let table = file(&format!("bench,seconds\n{old}{new}"));
        let compared = MedianTable::new(levels(&table, "bench", ["old", "new"]), &rules()).unwrap();
        assert_eq!(compared.levels, Some(["old".to_owned(), "new".to_owned()]));
        let change = compared.columns[0].rows[0].compared.unwrap();
        let estimate = change.change.filter(|it| !it.is_ratio).unwrap().estimate;
        for (found, expected) in [
            (estimate.value, 2.5),
            (estimate.low, -0.619233000670),
            (estimate.high, 5.619233000670),
        ] {
            assert!((found - expected).abs() < 1e-5, "{found} {expected}");
        }
        assert_eq!(change.verdict, ChangeVerdict::Unclear { needed: Some(20) });
    }

    #[test]
    fn intervals_of_a_family_are_wider() {
        let names = ["a", "b"];
        let [old, new] = [0, 1].map(|side| file(&vectors(side, &names)));
        let tables = MedianTables::Tables([&old, &new]);
        let plain = MedianTable::new(tables, &rules()).unwrap();
        let family = MedianRules { is_family: true, ..rules() };
        let wider = MedianTable::new(tables, &family).unwrap();
        let confidence = [&plain, &wider].map(|it| it.columns[0].confidence);
        assert_eq!(confidence, [Some(0.95), Some(0.975)]);
        let width = |table: &MedianTable| {
            let estimate = table.columns[0].rows[0].compared.unwrap().change.unwrap().estimate;
            estimate.high - estimate.low
        };
        assert!(width(&wider) > width(&plain));
    }

    #[test]
    fn the_largest_changes_come_first_on_request() {
        let values = |value: f64| (0..6).map(move |at| value + f64::from(at) / 1000.0);
        let rows = |name: &str, value| {
            values(value).map(|value| format!("{name},{value:.6}\n")).collect::<String>()
        };
        let old = format!("b,s\n{}{}{}", rows("x", 1.0), rows("y", 1.0), rows("z", 1.0));
        let new = format!("b,s\n{}{}{}", rows("x", 1.1), rows("y", 0.5), rows("w", 1.0));
        let sorted = MedianRules { is_sorted: true, ..rules() };
        let tables = [file(&old), file(&new)];
        let compared =
            MedianTable::new(MedianTables::Tables([&tables[0], &tables[1]]), &sorted).unwrap();
        let groups = compared.columns[0].rows.iter().map(|row| row.group[0].text());
        assert_eq!(groups.collect::<Vec<_>>(), ["y", "x", "w", "z"]);
    }

    #[test]
    fn exact_values_need_no_interval() {
        let rows = |values: &[u32]| {
            let rows = values.iter().map(|value| format!("{value}\n"));
            file(&format!("bytes\n{}", rows.collect::<String>()))
        };
        let tables = [rows(&[100, 100]), rows(&[110, 111])];
        let exact = MedianRules { exact: vec!["bytes".to_owned()], ..rules() };
        let compared =
            MedianTable::new(MedianTables::Tables([&tables[0], &tables[1]]), &exact).unwrap();
        let column = &compared.columns[0];
        assert_eq!(column.confidence, None);
        assert_eq!(column.rows[0].notes, [MedianNote::Inexact]);
        let compared = column.rows[0].compared.unwrap();
        let estimate = compared.change.unwrap().estimate;
        assert_eq!([estimate.value, estimate.low, estimate.high], [1.105; 3]);
        assert_eq!(compared.verdict, ChangeVerdict::More);
    }

    #[test]
    fn rounding_widens_an_interval_and_is_reported() {
        let table = |value: &str| format!("s\n{}", format!("{value}\n").repeat(6));
        let compared = of_files(&table("0.05"), &table("0.06")).unwrap();
        let row = &compared.columns[0].rows[0];
        assert_eq!(row.notes, [MedianNote::Resolution]);
        assert_close(row.compared.unwrap().change.unwrap().estimate.low, 1.0);
        let same = of_files(&table("1.5"), &table("1.5")).unwrap();
        let compared = same.columns[0].rows[0].compared.unwrap();
        assert!(compared.is_rounded, "more digits would decide");
        assert_eq!(compared.verdict, ChangeVerdict::Unclear { needed: None });
    }

    #[test]
    fn an_outlier_is_used_and_reported() {
        let new = "1.00000\n1.00001\n1.00002\n1.00003\n1.00004\n9.00000\n";
        let old = "1.00000\n1.00001\n1.00002\n1.00003\n1.00004\n1.00005\n";
        let compared = of_files(&format!("s\n{old}"), &format!("s\n{new}")).unwrap();
        let notes = &compared.columns[0].rows[0].notes;
        assert!(notes.contains(&MedianNote::Outliers(1)), "{notes:?}");
    }
}
