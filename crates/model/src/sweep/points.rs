//! The points of a sweep: a text for each column. How points are named in words, in paths and in NDJSON, and texts that look
//! like one.
//!
//! A [`Lookalike`] is a pair of texts of a column that are probably meant to be one, such as `1` and `1.0`. A [`Decimal`] is a number as
//! it is written: two that are one to a computer may differ.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::mem;
use std::sync::Arc;

use crate::name::file_name;
use serde::{Deserialize, Serialize, Serializer};
use unicode_normalization::UnicodeNormalization;

/// A sequence of points, all with the same columns.
///
/// The texts of a column are kept once, as its levels, in the order in which they appear. A point is a row of
/// their numbers: a million points of five columns take 20 MB, beside the texts. There is at least one column if there is a point.
///
/// Columns of [files](super::FileCell) come behind the others, and [`names`](Self::names) and [`values`](SweepPoint::values) leave them
/// out: no path, title, condition or table has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SweepPoints {
    pub(crate) names: Vec<String>,
    /// The names of the columns of files.
    pub(crate) files: Vec<String>,
    /// The texts of each column. A column of files has [cells](super::FileCell).
    pub(crate) levels: Vec<Vec<Arc<str>>>,
    /// The numbers of all levels, point by point.
    pub(crate) rows: Vec<u32>,
    /// The number of rows of empty cells at the end of the sheet, which are no points: spreadsheets leave such rows where others were cleared.
    pub(crate) blank_rows: usize,
}

/// A point of [`SweepPoints`].
#[derive(Clone, Copy, Debug)]
pub struct SweepPoint<'a> {
    points: &'a SweepPoints,
    row: &'a [u32],
}

/// The texts by their names, in order.
impl Serialize for SweepPoint<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.values())
    }
}

impl SweepPoints {
    /// The names of the columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of rows of empty cells at the end of the sheet that were left out.
    pub const fn blank_rows(&self) -> usize {
        self.blank_rows
    }

    /// The number of points.
    pub fn len(&self) -> usize {
        self.rows.len() / self.width()
    }

    /// Whether there are no points.
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The different texts of a column, in the order in which they appear. Texts of excluded points stay among them.
    ///
    /// # Panics
    ///
    /// If there is no such column.
    pub fn levels(&self, column: usize) -> &[Arc<str>] {
        &self.levels[column]
    }

    /// The number of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|it| it == name)
    }

    /// The number of a column, also of one of files.
    pub fn any_column(&self, name: &str) -> Option<usize> {
        self.names.iter().chain(&self.files).position(|it| it == name)
    }

    /// The names of the columns of files.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// Two points with the same texts, which differ in files only, if there are some.
    pub(crate) fn with_same_texts(&self) -> Option<[usize; 2]> {
        if self.files.is_empty() {
            return None;
        }
        let mut first = HashMap::with_capacity(self.len());
        self.rows().enumerate().find_map(|(number, row)| {
            let before = *first.entry(&row[..self.names.len()]).or_insert(number);
            (before != number).then_some([before, number])
        })
    }

    /// The points in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = SweepPoint<'_>> {
        self.rows().map(|row| SweepPoint { points: self, row })
    }

    /// The point with this number, counted from zero.
    pub fn get(&self, number: usize) -> Option<SweepPoint<'_>> {
        (number < self.len()).then(|| SweepPoint { points: self, row: self.row(number) })
    }

    /// The point with this number, counted from zero.
    ///
    /// # Panics
    ///
    /// If there is no such point.
    pub fn at(&self, number: usize) -> SweepPoint<'_> {
        SweepPoint { points: self, row: self.row(number) }
    }

    /// Returns the points whose level numbers a function accepts, in the same order.
    pub(crate) fn filtered(&self, is_wanted: impl Fn(&[u32]) -> bool) -> Self {
        let rows = self.rows().filter(|row| is_wanted(row)).flatten().copied().collect();
        Self { rows, ..self.without_rows() }
    }

    /// Returns the points with these numbers.
    pub(crate) fn chosen(&self, numbers: &[u32]) -> Self {
        let rows = numbers.iter().flat_map(|number| self.row(*number as usize)).copied().collect();
        Self { rows, ..self.without_rows() }
    }

    /// The columns, without any point.
    pub(super) fn without_rows(&self) -> Self {
        let Self { names, files, levels, blank_rows, .. } = self;
        let (names, files, levels) = (names.clone(), files.clone(), levels.clone());
        Self { names, files, levels, rows: Vec::new(), blank_rows: *blank_rows }
    }

    /// Returns the points with some of their columns: each once, in the order in which they appear.
    pub(crate) fn columns(&self, is_wanted: impl Fn(&str) -> bool) -> Self {
        let columns: Vec<usize> =
            (0..self.names.len()).filter(|at| is_wanted(&self.names[*at])).collect();
        let (mut rows, mut seen) = (Vec::new(), HashSet::new());
        for row in self.rows() {
            let row: Vec<u32> = columns.iter().map(|column| row[*column]).collect();
            if seen.insert(row.clone()) {
                rows.extend(row);
            }
        }
        let names = columns.iter().map(|at| self.names[*at].clone()).collect();
        let levels = columns.iter().map(|at| self.levels[*at].clone()).collect();
        Self { names, levels, rows, ..Self::default() }
    }

    /// Writes each point as a JSON object in a line, without white space.
    ///
    /// All values are strings, also those that were numbers: a text is identity, and the bytes of a row do not depend on
    /// others, so a new level such as `auto` changes no row that was there before.
    pub fn write_ndjson(&self, out: &mut impl Write) -> io::Result<()> {
        for point in self.iter() {
            if self.names.is_empty() {
                out.write_all(b"{")?;
            }
            for (before, (name, value)) in separators().zip(point.values()) {
                out.write_all(before)?;
                serde_json::to_writer(&mut *out, name)?;
                out.write_all(b":")?;
                serde_json::to_writer(&mut *out, value.as_ref())?;
            }
            out.write_all(b"}\n")?;
        }
        Ok(())
    }

    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        self.rows.chunks_exact(self.width())
    }

    pub(crate) fn row(&self, number: usize) -> &[u32] {
        let begin = number * self.width();
        &self.rows[begin..begin + self.width()]
    }

    /// The length of a row, or one without columns.
    fn width(&self) -> usize {
        self.levels.len().max(1)
    }
}

/// Returns the text before each field of an object.
pub(crate) fn separators() -> impl Iterator<Item = &'static [u8]> {
    std::iter::once(&b"{"[..]).chain(std::iter::repeat(&b","[..]))
}

impl<'a> SweepPoint<'a> {
    /// The cell of a column of files.
    pub fn file(&self, name: &str) -> Option<&'a Arc<str>> {
        let at = self.points.files.iter().position(|it| it == name)?;
        Some(self.at(self.points.names.len() + at))
    }

    /// The text of a column.
    pub fn value(&self, name: &str) -> Option<&'a Arc<str>> {
        self.points.column(name).map(|column| self.at(column))
    }

    /// The text of the column with this number.
    ///
    /// # Panics
    ///
    /// If there is no such column.
    pub fn at(&self, column: usize) -> &'a Arc<str> {
        &self.points.levels[column][self.row[column] as usize]
    }

    /// The number of the level of each column: points that agree in a column have the same there.
    pub const fn level_numbers(&self) -> &'a [u32] {
        self.row
    }

    /// The texts of all columns, and the cells of those that are files.
    pub fn texts_and_files(&self) -> impl Iterator<Item = &'a Arc<str>> + use<'a> {
        let levels = self.points.levels.iter().zip(self.row);
        levels.map(|(levels, level)| &levels[*level as usize])
    }

    /// The names of all columns and their texts.
    pub fn values(&self) -> impl Iterator<Item = (&'a str, &'a Arc<str>)> + use<'a> {
        let names = self.points.names.iter().map(String::as_str);
        names
            .zip(&self.points.levels)
            .zip(self.row)
            .map(|((name, levels), level)| (name, &levels[*level as usize]))
    }
}

/// A point in words: `threads=8 size=10`.
pub fn point_title<'a, T: AsRef<str>>(values: impl Iterator<Item = (&'a str, T)>) -> String {
    let values = values.map(|(name, text)| match text.as_ref() {
        "" => format!("{name}=\"\""),
        text => format!("{name}={text}"),
    });
    values.collect::<Vec<_>>().join(" ")
}

/// The path of a point: `threads=8/size=10`.
pub fn point_path<'a, T: AsRef<str>>(values: impl Iterator<Item = (&'a str, T)>) -> String {
    let parts = values.map(|(name, text)| file_name(&format!("{name}={}", text.as_ref())));
    parts.collect::<Vec<_>>().join("/")
}

/// The greatest number of pairs of a column that are reported.
const MOST_LOOKALIKES: usize = 3;

/// Two texts of a column that look like one. A sweep treats them as different: it computes both.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lookalike {
    /// The name of the column.
    pub column: String,
    /// One of the texts.
    pub first: Arc<str>,
    /// The other one.
    pub second: Arc<str>,
    /// The way in which they are alike.
    pub likeness: Likeness,
}

/// The way in which the texts of a lookalike are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likeness {
    /// They are the same number.
    Number,
    /// They are the same words, and differ in white space or in how letters with accents are made: of one character or of two.
    Words,
}

impl SweepPoints {
    /// Returns texts that are probably meant to be one, such as `1` and `1.0`: a few pairs of each column.
    pub fn lookalikes(&self) -> Vec<Lookalike> {
        let columns = self.names().iter().enumerate();
        columns.flat_map(|(column, name)| alike(name, self.levels(column))).collect()
    }
}

/// The first texts of a column that look like an earlier text: one pair of each kind.
fn alike(column: &str, texts: &[Arc<str>]) -> Vec<Lookalike> {
    let mut seen: HashMap<Look<'_>, (&Arc<str>, bool)> = HashMap::with_capacity(texts.len());
    let mut pairs = Vec::new();
    for text in texts {
        match seen.entry(look(text)) {
            Entry::Vacant(new) => {
                new.insert((text, false));
            }
            Entry::Occupied(mut before) => {
                let likeness = match before.key() {
                    Look::Number(_) => Likeness::Number,
                    Look::Words(_) => Likeness::Words,
                };
                let (first, is_reported) = before.get_mut();
                if !mem::replace(is_reported, true) {
                    let (first, second) = (Arc::clone(first), Arc::clone(text));
                    let column = column.to_owned();
                    pairs.push(Lookalike { column, first, second, likeness });
                }
            }
        }
        if pairs.len() == MOST_LOOKALIKES {
            break;
        }
    }
    pairs
}

/// The look of a text: lookalikes have the same one.
#[derive(PartialEq, Eq, Hash)]
enum Look<'a> {
    Number(Decimal),
    /// Its words, with a space between two.
    Words(Cow<'a, str>),
}

fn look(text: &str) -> Look<'_> {
    let text = text.trim();
    match Decimal::read(text) {
        Some(number) => Look::Number(number),
        None if text.contains(|c: char| c.is_whitespace()) => {
            let words: Vec<&str> = text.split_whitespace().collect();
            Look::Words(words.join(" ").nfc().collect::<String>().into())
        }
        None if text.is_ascii() => Look::Words(text.into()),
        None => Look::Words(text.nfc().collect::<String>().into()),
    }
}

/// A finite number as it is written, the same for `1`, `1.0` and `10e-1`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Decimal {
    /// Below, at or above zero.
    sign: i8,
    /// The power of ten of the first digit.
    exponent: i64,
    /// The digits, without zeros at either end.
    digits: Box<str>,
}

impl Decimal {
    /// Reads digits, with or without sign, point and exponent.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let unsigned = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let mut all = Cow::Borrowed(whole);
        if !fraction.is_empty() {
            all = Cow::Owned(format!("{whole}{fraction}"));
        }
        if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let exponent: i64 = exponent.parse().ok()?;
        let digits = all.trim_start_matches('0');
        let leading = whole.len() as i64 - (all.len() - digits.len()) as i64;
        let digits = digits.trim_end_matches('0');
        Some(match (digits, mantissa.starts_with('-')) {
            ("", _) => Self { sign: 0, exponent: 0, digits: Box::default() },
            (digits, is_negative) => Self {
                sign: if is_negative { -1 } else { 1 },
                exponent: exponent.checked_add(leading)?,
                digits: digits.into(),
            },
        })
    }

    /// The same with the other sign.
    pub(super) fn negated(&self) -> Self {
        Self { sign: -self.sign, ..self.clone() }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let size = || (self.exponent, &self.digits).cmp(&(other.exponent, &other.digits));
        self.sign.cmp(&other.sign).then_with(|| match self.sign {
            -1 => size().reverse(),
            _ => size(),
        })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_becomes_a_path_of_names_and_texts() {
        let values = [("threads", "8"), ("input", "a/b c%.csv"), ("x", ""), ("é", "..")];
        assert_eq!(point_path(values.into_iter()), "threads=8/input=a%2Fb c%25.csv/x=/%C3%A9=..");
    }

    fn pairs(texts: &[&str]) -> Vec<Lookalike> {
        let texts: Vec<Arc<str>> = texts.iter().map(|text| Arc::from(*text)).collect();
        alike("n", &texts)
    }

    /// The first pair, if it is one of numbers.
    fn pair(texts: &[&str]) -> Option<String> {
        let pairs = pairs(texts);
        let pair = pairs.first().filter(|it| it.likeness == Likeness::Number);
        pair.map(|Lookalike { first, second, .. }| format!("{first} {second}"))
    }

    #[test]
    fn one_number_in_two_spellings_is_seen() {
        for (texts, expected) in [
            (["2", "1", "1.0"], "1 1.0"),
            (["001", "x", "1"], "001 1"),
            (["-0", "1", "0.0e9"], "-0 0.0e9"),
            (["100", "-100", "1E+2"], "100 1E+2"),
            ([".5", "5", "0.050e1"], ".5 0.050e1"),
            (["00", "x", "0"], "00 0"),
            (["0", "+0", "-0.0"], "0 +0"),
            (["1e3", "1000", "+1000"], "1e3 1000"),
            (["7", "x", "7 "], "7 7 "),
        ] {
            assert_eq!(pair(&texts).as_deref(), Some(expected));
        }
        let different = [
            "1",
            "-1",
            "10",
            "a",
            "",
            ".",
            "-",
            "e",
            "1e",
            "1e1e1",
            "e1",
            "1e99999999999999999999",
            "1e9223372036854775807",
            "10e9223372036854775807",
            "9007199254740992",
            "9007199254740993",
            "true",
        ];
        assert_eq!(pair(&different), None);
    }

    #[test]
    fn words_that_differ_in_white_space_only_are_seen() {
        for texts in [["a", "a "], ["a b", "a  b"], [" a\u{a0}b", "a b"], ["", " "]] {
            assert_eq!(pairs(&texts).len(), 1, "{texts:?}");
        }
        for texts in [["a", "A"], ["ab", "a b"], ["a", "b"]] {
            assert_eq!(pairs(&texts).len(), 0, "{texts:?}");
        }
    }

    #[test]
    fn each_pair_of_equal_numbers_is_listed_once() {
        let texts = ["1", "1.0", "00", "0", "1.00", "2", "+2", "3", "3."].map(Arc::from);
        let pairs: Vec<String> =
            alike("n", &texts).iter().map(|it| format!("{} {}", it.first, it.second)).collect();
        assert_eq!(pairs, ["1 1.0", "00 0", "2 +2"]);
    }

    #[test]
    fn decimals_are_in_order_and_have_one_form() {
        let rising = [
            "-1e400",
            "-20",
            "-3",
            "-2.5",
            "-0.1",
            "-1e-400",
            "0",
            "1e-401",
            "1e-400",
            "0.1",
            "0.10000000000000001",
            "0.2",
            "1",
            "1.05",
            "1.5",
            "2",
            "10",
            "9007199254740992",
            "9007199254740993",
            "1e999",
        ];
        for (at, low) in rising.iter().enumerate() {
            for high in &rising[at + 1..] {
                assert!(Decimal::read(low) < Decimal::read(high), "{low} {high}");
            }
        }
        for [one, other] in [
            ["1", "+1.0"],
            ["10", "1e1"],
            ["0.1", ".1"],
            ["100e-2", "1."],
            ["0", "-0.0e7"],
            ["007", "7"],
            ["-1.50", "-15E-1"],
        ] {
            assert_eq!(Decimal::read(one), Decimal::read(other));
            assert_eq!(Decimal::read(one).map(|it| it.negated().negated()), Decimal::read(other));
        }
    }
}
