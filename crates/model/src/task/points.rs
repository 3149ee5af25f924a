//! The points of a sweep: a text for each column.

use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

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
    ///
    /// # Errors
    ///
    /// Fails if `out` does.
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
