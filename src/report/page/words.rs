//! Numbers, times and texts as a page shows them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::report::medians::significant;
use crate::report::terminal::harmless;

/// The unit in which values of a column are shown: its own, or a part of it that makes short numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ShownUnit {
    /// The unit, if there is one.
    pub(super) unit: Option<String>,
    /// The number of these units in one of the column.
    factor: f64,
}

/// Parts of a second, and how many of each are one.
const SECONDS: [(&str, f64); 4] = [("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9)];

/// At least this many of a unit are shown.
const LEAST: f64 = 0.3;

impl ShownUnit {
    /// Chooses the unit for values of a column with this unit.
    pub(super) fn of(unit: Option<&str>, values: impl Iterator<Item = f64>) -> Self {
        let largest = values.map(f64::abs).filter(|it| it.is_finite()).fold(0.0, f64::max);
        let shown = match unit {
            Some("s") if largest > 0.0 => {
                SECONDS.into_iter().find(|(_, factor)| largest * factor >= LEAST)
            }
            _ => None,
        };
        match shown {
            Some((unit, factor)) => Self { unit: Some(unit.to_owned()), factor },
            None => Self { unit: unit.map(str::to_owned), factor: 1.0 },
        }
    }

    /// A value in this unit.
    pub(super) fn scaled(&self, value: f64) -> f64 {
        value * self.factor
    }

    /// A value in this unit, with three digits.
    pub(super) fn short(&self, value: f64) -> String {
        short(self.scaled(value))
    }

    /// A value with its unit.
    pub(super) fn with_unit(&self, value: f64) -> String {
        match &self.unit {
            Some(unit) => format!("{}\u{a0}{unit}", self.short(value)),
            None => self.short(value),
        }
    }

    /// A name with the unit.
    pub(super) fn label(&self, name: &str) -> String {
        match &self.unit {
            Some(unit) if self.factor != 1.0 => format!("{name}, in {unit}"),
            Some(unit) => format!("{name} [{unit}]"),
            None => name.to_owned(),
        }
    }
}

/// A number with three significant digits, and more only if it is whole: `0.0123`, `5.76`, `1 234`.
pub(super) fn short(value: f64) -> String {
    grouped(&significant(value, 3))
}

/// A number as it is spelled, with its digits in groups of three if it is a whole one with more than four.
pub(super) fn grouped(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("\u{2212}", digits));
    if digits.len() < 5 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return format!("{sign}{digits}");
    }
    let mut shown = sign.to_owned();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push('\u{202f}');
        }
        shown.push(digit);
    }
    shown
}

/// A text of a study, as it may be shown.
pub(super) fn text(text: &str) -> String {
    harmless(text).into_owned()
}

/// Lines of a study, as they may be shown.
pub(super) fn lines(text: &str) -> String {
    text.split('\n').map(harmless).collect::<Vec<_>>().join("\n")
}

/// The time of a record, in UTC.
pub(super) fn moment(milliseconds: i64) -> String {
    let time = Timestamp::from_millisecond(milliseconds).unwrap_or_default();
    time.to_zoned(TimeZone::UTC).strftime("%F %H:%M").to_string()
}

/// Names, sorted and each once.
pub(super) fn different<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    names.collect::<BTreeSet<&str>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (value, shown) in [
            (0.0, "0"),
            (5.764, "5.76"),
            (5.0, "5"),
            (0.01234, "0.0123"),
            (123.456, "123"),
            (12345.6, "12\u{202f}346"),
            (-0.5, "\u{2212}0.5"),
            (1234.0, "1234"),
            (1e-9, "1.00e-9"),
        ] {
            assert_eq!(short(value), shown);
        }
        assert_eq!(grouped("1000000"), "1\u{202f}000\u{202f}000");
        assert_eq!(grouped("1000"), "1000");
        assert_eq!(grouped("0.00001"), "0.00001");
    }

    #[test]
    fn seconds_are_shown_in_parts_that_make_short_numbers() {
        let unit = ShownUnit::of(Some("s"), [0.005, 0.008].into_iter());
        assert_eq!(unit.with_unit(0.00576), "5.76\u{a0}ms");
        assert_eq!(unit.label("seconds"), "seconds, in ms");
        assert_eq!(ShownUnit::of(Some("s"), [12.0].into_iter()).with_unit(3.0), "3\u{a0}s");
        assert_eq!(ShownUnit::of(Some("m"), [0.001].into_iter()).with_unit(0.5), "0.5\u{a0}m");
        assert_eq!(ShownUnit::of(None, [0.001].into_iter()).label("x"), "x");
    }
}
