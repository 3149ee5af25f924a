//! Texts that differ, and are the same number.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::task::points::SweepPoints;

/// Two texts of a column that are the same number. To a sweep they are different: it computes both.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lookalike {
    /// The name of the column.
    pub column: String,
    /// One of the texts.
    pub first: Arc<str>,
    /// The other one.
    pub second: Arc<str>,
}

impl SweepPoints {
    /// Returns texts that are probably meant to be one, such as `1` and `1.0`: at most one pair of each column.
    pub fn lookalikes(&self) -> Vec<Lookalike> {
        let columns = self.names().iter().enumerate();
        let pair = |(column, name): (usize, &String)| {
            let (first, second) = same_number(self.levels(column))?;
            Some(Lookalike { column: name.clone(), first, second })
        };
        columns.filter_map(pair).collect()
    }
}

/// The first two texts that are the same number.
fn same_number(texts: &[Arc<str>]) -> Option<(Arc<str>, Arc<str>)> {
    let mut seen = HashMap::with_capacity(texts.len());
    texts.iter().find_map(|text| {
        let before = seen.insert(decimal(text)?, text)?;
        Some((Arc::clone(before), Arc::clone(text)))
    })
}

/// A decimal number, exact: two floating-point numbers would be equal where long numbers differ.
#[derive(PartialEq, Eq, Hash)]
struct Decimal<'a> {
    is_negative: bool,
    /// Without zeros at begin and end; empty for zero.
    digits: Cow<'a, str>,
    exponent: i64,
}

/// Reads digits, with or without sign, point and exponent.
fn decimal(text: &str) -> Option<Decimal<'_>> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i64 = exponent.parse().ok()?;
    let unsigned = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = match fraction {
        "" => Cow::Borrowed(whole),
        _ => Cow::Owned(format!("{whole}{fraction}")),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let zeros = digits.len() - digits.trim_end_matches('0').len();
    let digits = match digits {
        Cow::Borrowed(digits) => Cow::Borrowed(digits.trim_matches('0')),
        Cow::Owned(digits) => Cow::Owned(digits.trim_matches('0').to_owned()),
    };
    if digits.is_empty() {
        return Some(Decimal { is_negative: false, digits, exponent: 0 });
    }
    Some(Decimal {
        is_negative: mantissa.starts_with('-'),
        digits,
        exponent: exponent.checked_add(zeros as i64)?.checked_sub(fraction.len() as i64)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_in_two_spellings_is_seen() {
        let pair = |texts: &[&str]| {
            let texts: Vec<Arc<str>> = texts.iter().map(|text| Arc::from(*text)).collect();
            same_number(&texts).map(|(first, second)| format!("{first} {second}"))
        };
        for (texts, expected) in [
            (["2", "1", "1.0"], "1 1.0"),
            (["001", "x", "1"], "001 1"),
            (["-0", "1", "0.0e9"], "-0 0.0e9"),
            (["100", "-100", "1E+2"], "100 1E+2"),
            ([".5", "5", "0.050e1"], ".5 0.050e1"),
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
}
