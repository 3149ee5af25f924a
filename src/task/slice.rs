//! Slices: the outputs of a computation that a workflow passes up, in order.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The greatest number of inputs, and of outputs, of a computation: two digits count them.
pub const MAX_ARITY: usize = 100;

/// An ordered choice among the outputs of a computation.
///
/// It remembers with how many digits each number was written, so that it prints as it was read:
/// `0` and `00` choose the same output and stay different texts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Slice(Box<[SliceEntry]>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct SliceEntry {
    number: u8,
    digits: u8,
}

/// Why a line does not choose an output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the number of an output (0 to 99)")]
pub struct SliceError(pub String);

impl Slice {
    /// All of `count` outputs in order: the slice of a node without `outputs`.
    pub fn all(count: usize) -> Self {
        let numbers = 0..u8::try_from(count).unwrap_or(u8::MAX);
        Self(numbers.map(|number| SliceEntry { number, digits: 2 }).collect())
    }

    /// Reads a choice from its lines, one number each.
    ///
    /// Also returns the lines that are no number, with their places counted from zero; the choice
    /// is without them.
    pub fn parse<'a>(lines: impl IntoIterator<Item = &'a str>) -> (Self, Vec<(usize, SliceError)>) {
        let mut entries = Vec::new();
        let mut wrong = Vec::new();
        for (at, line) in lines.into_iter().enumerate() {
            let plain = !line.is_empty() && line.bytes().all(|c| c.is_ascii_digit());
            match (plain, line.parse::<u8>()) {
                (true, Ok(number)) if number < 100 && line.len() < 100 => {
                    entries.push(SliceEntry { number, digits: line.len() as u8 });
                }
                _ => wrong.push((at, SliceError(line.to_owned()))),
            }
        }
        (Self(entries.into()), wrong)
    }

    /// The lines that say it, each with its end.
    pub fn lines(&self) -> String {
        let line = |SliceEntry { number, digits }: &SliceEntry| {
            format!("{number:0width$}\n", width = usize::from(*digits))
        };
        self.0.iter().map(line).collect()
    }

    /// The numbers of the outputs chosen, in order.
    pub fn numbers(&self) -> impl ExactSizeIterator<Item = u8> + '_ {
        self.0.iter().map(|entry| entry.number)
    }

    /// The number of outputs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no outputs.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Slice {
    /// Writes `[00, 01]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (at, SliceEntry { number, digits }) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{number:0width$}", width = usize::from(*digits))?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_prints_as_it_was_written() {
        let slice = Slice::parse(["01", "0", "10"]).0;
        assert_eq!(slice.to_string(), "[01, 0, 10]");
        assert_eq!(slice.lines(), "01\n0\n10\n");
        assert_eq!(slice.numbers().collect::<Vec<_>>(), [1, 0, 10]);
        assert_eq!(Slice::all(3).to_string(), "[00, 01, 02]");
    }

    #[test]
    fn every_wrong_line_is_told() {
        let (slice, wrong) = Slice::parse(["0", "", "-1", "+1", "100", "999", "x", "00"]);
        assert_eq!(slice.to_string(), "[0, 00]");
        let places: Vec<usize> = wrong.iter().map(|(at, _)| *at).collect();
        assert_eq!(places, [1, 2, 3, 4, 5, 6]);
    }
}
