//! Texts of a column of points that are probably meant to be one, such as `1` and `1.0`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::decimal::Decimal;
use super::points::SweepPoints;

/// The greatest number of pairs of a column that are reported.
const PAIRS: usize = 3;

/// Two texts of a column that look like one. To a sweep they are different: it computes both.
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
    /// They are the same words, and differ in white space.
    Words,
}

impl SweepPoints {
    /// Returns texts that are probably meant to be one, such as `1` and `1.0`: a few pairs of each column.
    pub fn lookalikes(&self) -> Vec<Lookalike> {
        let columns = self.names().iter().enumerate();
        columns.flat_map(|(column, name)| alike(name, self.levels(column))).collect()
    }
}

/// The first texts of a column that look like one before them: one of each kind.
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
                if !std::mem::replace(is_reported, true) {
                    let (first, second) = (Arc::clone(first), Arc::clone(text));
                    let column = column.to_owned();
                    pairs.push(Lookalike { column, first, second, likeness });
                }
            }
        }
        if pairs.len() == PAIRS {
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
            Look::Words(words.join(" ").into())
        }
        None => Look::Words(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn each_number_is_told_once_and_a_few_are() {
        let texts = ["1", "1.0", "00", "0", "1.00", "2", "+2", "3", "3."].map(Arc::from);
        let pairs: Vec<String> =
            alike("n", &texts).iter().map(|it| format!("{} {}", it.first, it.second)).collect();
        assert_eq!(pairs, ["1 1.0", "00 0", "2 +2"]);
    }
}
