//! The points of a sweep: a text for each column. How points are named in words, in paths and in NDJSON, and texts that look
//! like one.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use crate::digest::Digest;

/// A sequence of points, all with the same columns.
///
/// The texts of a column are kept once, as its levels, in the order in which they appear. A point is a row of
/// their numbers: a million points of five columns take 20 MB, beside the texts. There is at least one column if there is a point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SweepPoints {
    pub(crate) names: Vec<String>,
    /// The texts of each column.
    pub(crate) levels: Vec<Vec<Arc<str>>>,
    /// The numbers of all levels, point by point.
    pub(crate) rows: Vec<u32>,
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

    /// Returns the points of which a function accepts the numbers of the levels, in the same order.
    pub(crate) fn filtered(&self, is_wanted: impl Fn(&[u32]) -> bool) -> Self {
        let rows = self.rows().filter(|row| is_wanted(row)).flatten().copied().collect();
        Self { names: self.names.clone(), levels: self.levels.clone(), rows }
    }

    /// Returns the points with these numbers.
    pub(crate) fn chosen(&self, numbers: &[u32]) -> Self {
        let rows = numbers.iter().flat_map(|number| self.row(*number as usize)).copied().collect();
        Self { names: self.names.clone(), levels: self.levels.clone(), rows }
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
        Self { names, levels, rows }
    }

    /// Writes each point as a JSON object in a line, without white space.
    ///
    /// All values are strings, also those that were numbers: a text is identity, and the bytes of a row do not depend on
    /// others, so a new level such as `auto` changes no row that was there before.
    pub fn write_ndjson(&self, out: &mut impl Write) -> io::Result<()> {
        for point in self.iter() {
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
        self.names.len().max(1)
    }
}

/// Returns the text before each field of an object.
pub(crate) fn separators() -> impl Iterator<Item = &'static [u8]> {
    std::iter::once(&b"{"[..]).chain(std::iter::repeat(&b","[..]))
}

impl<'a> SweepPoint<'a> {
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

    /// The names of all columns and their texts.
    pub fn values(&self) -> impl Iterator<Item = (&'a str, &'a Arc<str>)> + use<'a> {
        let names = self.points.names.iter().map(String::as_str);
        names
            .zip(&self.points.levels)
            .zip(self.row)
            .map(|((name, levels), level)| (name, &levels[*level as usize]))
    }
}

/// The greatest length of a part of a path, in bytes.
const LONGEST: usize = 200;

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
    let parts = values.map(|(name, text)| path_part(&format!("{name}={}", text.as_ref())));
    parts.collect::<Vec<_>>().join("/")
}

/// A text as one part of a path. Slashes, control characters, `%` and everything that is not ASCII are written as `%XX`, as in
/// URLs, and so is a dot at the beginning. One that is too long ends in its SHA-1.
pub fn path_part(text: &str) -> String {
    let mut part = String::with_capacity(text.len());
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'/' | b'%' | 0..=0x1f | 0x7f..=0xff => drop(write!(part, "%{byte:02X}")),
            b'.' if at == 0 => part.push_str("%2E"),
            byte => part.push(char::from(byte)),
        }
    }
    if part.len() > LONGEST {
        let hash = Digest::of(text.as_bytes()).sha1.full();
        part.truncate(LONGEST - hash.len() - 1);
        part = format!("{part}-{hash}");
    }
    part
}

/// The most columns that a hint names.
const LISTED_COLUMNS: usize = 20;

/// The hint for a column that points do not have: the one that may be meant, and those that they have.
pub fn column_hint(nearest: Option<&str>, known: &[String]) -> String {
    let meant = nearest.map(|name| format!("did you mean {name:?}? ")).unwrap_or_default();
    let told: Vec<String> =
        known.iter().take(LISTED_COLUMNS).map(|name| format!("{name:?}")).collect();
    let more = match known.len().saturating_sub(told.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{meant}the columns are {}{more}", told.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_paths_that_name_them() {
        let values = [("threads", "8"), ("input", "a/b c%.csv"), ("x", ""), ("é", "..")];
        assert_eq!(point_path(values.into_iter()), "threads=8/input=a%2Fb c%25.csv/x=/%C3%A9=..");
        assert_eq!(path_part(".."), "%2E.");
        let long = ["a", "b"].map(|end| path_part(&("x".repeat(300) + end)));
        assert!(long[0] != long[1] && long[0].len() == LONGEST, "{long:?}");
    }
}
