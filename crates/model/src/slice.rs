//! Slices: the outputs of a computation that a workflow passes up, in order.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::exit::Explain;
use crate::suggest::UnknownName;

/// The greatest number of inputs, and of outputs, of a computation: two digits count them.
pub const MAX_ARITY: usize = 100;

/// An ordered choice among the outputs of a computation, as it is written: by numbers, or by the names that the
/// computation declares.
///
/// It remembers with how many digits each number was written, so that it prints as it was read:
/// `0` and `00` choose the same output and stay different texts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WrittenSlice(Box<[WrittenOutput]>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum WrittenOutput {
    Number { number: u8, digits: u8 },
    Name(Box<str>),
}

impl WrittenOutput {
    /// Whether it is written as this name. The slash at the end of the name of a directory may be left out.
    fn is_called(&self, name: &str) -> bool {
        matches!(self, Self::Name(own) if without_slash(own) == without_slash(name))
    }
}

/// A choice whose outputs are known.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Slice(Box<[ChosenOutput]>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct ChosenOutput {
    number: u8,
    written: WrittenOutput,
}

/// The reason why a line does not choose an output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Explain)]
pub enum SliceError {
    /// It has digits only, and too large a number.
    #[error("{0:?} is not the number of an output (0 to 99)")]
    #[hint("write a number up to 99, or the name of an output")]
    Number(String),
    /// No output has this name.
    #[error("{} is not an output: there {}", .0, listed(&.0.known))]
    #[hint(_0.meant())]
    Name(UnknownName),
    /// Several outputs are called so.
    #[error("{0:?} is the name of several outputs")]
    #[hint("write its number")]
    Ambiguous(String),
}

fn listed(names: &[String]) -> String {
    format!("{} {}", if names.len() == 1 { "is" } else { "are" }, names.join(", "))
}

impl WrittenSlice {
    /// All of `count` outputs in order: the slice of a node without `outputs`.
    pub fn all(count: usize) -> Self {
        let numbers = 0..u8::try_from(count).unwrap_or(u8::MAX);
        Self(numbers.map(|number| WrittenOutput::Number { number, digits: 2 }).collect())
    }

    /// Reads a choice from its lines, a number or a name each.
    pub fn parse<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        Self(
            lines
                .into_iter()
                .map(|line| match line.parse::<u8>() {
                    Ok(number) if is_digits(line) && number < 100 && line.len() < 100 => {
                        WrittenOutput::Number { number, digits: line.len() as u8 }
                    }
                    _ => WrittenOutput::Name(line.into()),
                })
                .collect(),
        )
    }

    /// The lines that can be neither a number nor a name, with their places counted from zero.
    pub fn wrong(&self) -> impl Iterator<Item = (usize, SliceError)> + '_ {
        self.0.iter().enumerate().filter_map(|(at, output)| match output {
            WrittenOutput::Name(name) if is_digits(name) => {
                Some((at, SliceError::Number(name.to_string())))
            }
            _ => None,
        })
    }

    /// Finds the outputs with these names among all outputs. Also returns the mistakes, with the places counted from zero;
    /// there the choice has [`MAX_ARITY`], which is not the number of an output. Numbers are not compared with the number
    /// of outputs.
    pub fn resolve(&self, names: &[String]) -> (Slice, Vec<(usize, SliceError)>) {
        let mut wrong: Vec<_> = self.wrong().collect();
        let mut chosen = Vec::with_capacity(self.0.len());
        for (at, written) in self.0.iter().enumerate() {
            let number = match written {
                WrittenOutput::Number { number, .. } => *number,
                WrittenOutput::Name(name) if is_digits(name) => MAX_ARITY as u8,
                WrittenOutput::Name(name) => find(name, names).unwrap_or_else(|error| {
                    wrong.push((at, error));
                    MAX_ARITY as u8
                }),
            };
            chosen.push(ChosenOutput { number, written: written.clone() });
        }
        wrong.sort_by_key(|(at, _)| *at);
        (Slice(chosen.into()), wrong)
    }

    /// Chooses among the outputs that another choice passes up. A number counts the passed outputs, and a name is one of
    /// their names.
    ///
    /// # Errors
    ///
    /// Fails with the text of the first output that is not passed up.
    pub fn chosen_from(&self, passed: &Self) -> Result<Self, String> {
        let chosen = self.0.iter().zip(self.texts()).map(|(output, text)| {
            let found = match output {
                WrittenOutput::Number { number, .. } => passed.0.get(usize::from(*number)),
                WrittenOutput::Name(name) => passed.0.iter().find(|it| it.is_called(name)),
            };
            found.cloned().ok_or_else(|| text.into_owned())
        });
        Ok(Self(chosen.collect::<Result<_, _>>()?))
    }

    /// Whether all outputs are written as numbers.
    pub fn is_of_numbers(&self) -> bool {
        self.0.iter().all(|output| matches!(output, WrittenOutput::Number { .. }))
    }

    /// The text of each output: its number as it is written, or its name.
    pub fn texts(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.0.iter().map(|output| match output {
            WrittenOutput::Number { number, digits } => {
                Cow::Owned(format!("{number:0width$}", width = usize::from(*digits)))
            }
            WrittenOutput::Name(name) => Cow::Borrowed(&**name),
        })
    }

    /// The lines of the slice, each with its end.
    pub fn lines(&self) -> String {
        self.texts().map(|text| format!("{text}\n")).collect()
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

impl Slice {
    /// All of `count` outputs in order.
    pub fn all(count: usize) -> Self {
        WrittenSlice::all(count).resolve(&[]).0
    }

    /// As it is written.
    pub fn written(&self) -> WrittenSlice {
        WrittenSlice(self.0.iter().map(|output| output.written.clone()).collect())
    }

    /// Whether the output of this number is chosen.
    pub fn has(&self, number: u8) -> bool {
        self.numbers().any(|it| it == number)
    }

    /// The numbers of the outputs chosen, in order.
    pub fn numbers(&self) -> impl ExactSizeIterator<Item = u8> + '_ {
        self.0.iter().map(|output| output.number)
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

fn is_digits(text: &str) -> bool {
    text.bytes().all(|c| c.is_ascii_digit())
}

/// The name of an output without the slash that marks a directory.
fn without_slash(name: &str) -> &str {
    name.trim_end_matches('/')
}

/// The number of the output of this name. The slash at the end of the name of a directory may be left out.
fn find(name: &str, names: &[String]) -> Result<u8, SliceError> {
    let mut found = (0..).zip(names).filter(|(_, it)| without_slash(it) == without_slash(name));
    match (found.next(), found.next()) {
        (Some((number, _)), None) => Ok(number),
        (Some(_), Some(_)) => Err(SliceError::Ambiguous(name.to_owned())),
        (None, _) => {
            let names = names.iter().map(|it| without_slash(it));
            Err(SliceError::Name(UnknownName::new(name, names)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(lines: &[&str], names: &[&str]) -> (Vec<u8>, Vec<(usize, String)>) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let (slice, wrong) = WrittenSlice::parse(lines.iter().copied()).resolve(&names);
        let wrong = wrong.into_iter().map(|(at, error)| (at, error.to_string())).collect();
        (slice.numbers().collect(), wrong)
    }

    #[test]
    fn a_slice_prints_as_it_was_written() {
        let slice = WrittenSlice::parse(["01", "0", "10", "sum"]);
        assert_eq!(slice.lines(), "01\n0\n10\nsum\n");
        assert_eq!(resolved(&["01", "0", "10", "sum"], &["a", "sum"]).0, [1, 0, 10, 1]);
        assert_eq!(WrittenSlice::all(3).lines(), "00\n01\n02\n");
    }

    #[test]
    fn an_output_is_chosen_by_its_name() {
        let names = ["total", "parts/", "0"];
        assert_eq!(resolved(&["parts", "total", "parts/"], &names), (vec![1, 0, 1], vec![]));
        assert_eq!(resolved(&["0", "00"], &names), (vec![0, 0], vec![]), "a number is a number");
        let (_, wrong) = resolved(&["Total", "kinds", "total"], &names);
        assert_eq!(
            wrong[0],
            (0, "\"Total\" is not an output: there are total, parts, 0".to_owned())
        );
        assert_eq!(wrong[1].0, 1);
        assert_eq!(wrong.len(), 2);
        let (_, wrong) = resolved(&["a"], &["a", "a"]);
        assert_eq!(wrong, [(0, "\"a\" is the name of several outputs".to_owned())]);
    }

    #[test]
    fn a_slice_of_passed_outputs_uses_their_numbers_or_names() {
        let chosen = |lines: &[&str], passed: &[&str]| {
            let [lines, passed] = [lines, passed].map(|it| WrittenSlice::parse(it.iter().copied()));
            lines.chosen_from(&passed).map(|it| it.lines().replace('\n', " "))
        };
        assert_eq!(chosen(&["1", "00"], &["03", "1"]), Ok("1 03 ".to_owned()));
        for number in ["03", "3", "2"] {
            assert_eq!(chosen(&[number], &["03", "01"]), Err(number.to_owned()));
        }
        assert_eq!(chosen(&["+0"], &["b", "+0"]), Ok("+0 ".to_owned()));
        assert_eq!(chosen(&["+0"], &["b", "00"]), Err("+0".to_owned()));
        assert_eq!(chosen(&["parts"], &["b", "parts/"]), Ok("parts/ ".to_owned()));
    }

    #[test]
    fn every_wrong_line_is_reported() {
        let lines = ["0", "", "-1", "+1", "100", "999", "x", "00"];
        let (numbers, wrong) = resolved(&lines, &["sum"]);
        assert_eq!(numbers, [0, 100, 100, 100, 100, 100, 100, 0]);
        let places: Vec<usize> = wrong.iter().map(|(at, _)| *at).collect();
        assert_eq!(places, [1, 2, 3, 4, 5, 6]);
        let wrong: Vec<usize> = WrittenSlice::parse(lines).wrong().map(|(at, _)| at).collect();
        assert_eq!(wrong, [1, 4, 5], "whatever the names are");
    }
}
