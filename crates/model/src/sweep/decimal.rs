//! Numbers as they are written. Two that are one to a computer may differ.

use std::borrow::Cow;
use std::cmp::Ordering;

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
