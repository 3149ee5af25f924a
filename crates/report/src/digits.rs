//! Numbers as people read them: with as many digits as are known.

use ce_model::statistics::Measurements;

/// The ends of the interval of a median, or else of the range.
pub(super) fn ends(sample: &Measurements) -> [f64; 2] {
    sample.interval().unwrap_or_else(|| sample.range())
}

/// A number between these ends, with the digits that they justify. If they are the same, it has this many significant digits. A whole number has
/// no decimals.
pub(super) fn justified(value: f64, ends: [f64; 2], digits: i32) -> String {
    match decimals(ends).filter(|_| value.fract() != 0.0) {
        Some(decimals) if is_plain(value) => format!("{value:.decimals$}"),
        Some(decimals) => {
            format!("{value:.*e}", (decimals as i32 + magnitude(value)).max(0) as usize)
        }
        None => significant(value, digits),
    }
}

/// The exponent of the first digit of a number that is not zero.
fn magnitude(value: f64) -> i32 {
    value.abs().log10().floor() as i32
}

/// Whether people read a number more easily without an exponent.
fn is_plain(value: f64) -> bool {
    (-6..15).contains(&magnitude(value))
}

/// A number as it is spelled, without the digits that its ends do not justify.
pub(super) fn without_noise(spelled: &str, ends: [f64; 2]) -> String {
    let has = spelled.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    match (decimals(ends), spelled.parse::<f64>()) {
        (Some(decimals), Ok(value)) if decimals < has && !spelled.contains(['e', 'E']) => {
            format!("{value:.decimals$}")
        }
        _ => spelled.to_owned(),
    }
}

/// The decimals with which the distance of these ends has two digits. `None` if they are the same, or people would not read a number with so many.
fn decimals([low, high]: [f64; 2]) -> Option<usize> {
    let unit = (high - low).log10().floor() - 1.0;
    (-12.0..15.0).contains(&unit).then_some((-unit).max(0.0) as usize)
}

/// A number with this many significant digits, without trailing zeros, and more only if it is whole.
pub(super) fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        let text = if value.is_infinite() { "∞".to_owned() } else { value.abs().to_string() };
        return if value < 0.0 { format!("-{text}") } else { text };
    }
    if !is_plain(value) {
        return format!("{value:.*e}", digits.max(1) as usize - 1);
    }
    let decimals = (digits - 1 - magnitude(value)).max(0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_digits_that_its_interval_justifies() {
        for (value, ends, shown) in [
            (0.010_990_999_999_999_999, [0.0102, 0.0113], "0.0110"),
            (0.010_990_999_999_999_999, [0.010_98, 0.011_00], "0.010991"),
            (100.45, [100.1, 100.8], "100.45"),
            (100.45, [90.1, 110.8], "100"),
            (1234.5, [1000.0, 1500.0], "1234"),
            (12_345_678.0, [12_000_000.0, 13_000_000.0], "12345678"),
            (0.5, [-2.0, 3.0], "0.5"),
            (3.0, [-2.0, 3.0], "3"),
            (0.25, [0.25, 0.25], "0.25"),
            (1.0 / 3.0, [1.0 / 3.0, 1.0 / 3.0], "0.3333"),
            (1.25, [f64::NEG_INFINITY, f64::INFINITY], "1.25"),
            (1e-20, [1e-20, 2e-20], "1.000e-20"),
            (1.556e-9, [1.38e-9, 1.72e-9], "1.56e-9"),
        ] {
            assert_eq!(justified(value, ends, 4), shown, "{value} {ends:?}");
        }
    }

    #[test]
    fn a_number_that_is_spelled_gets_no_digits_that_it_did_not_have() {
        for (spelled, ends, shown) in [
            ("0.010990999999999999", [0.0102, 0.0113], "0.0110"),
            ("5", [5.0, 6.0], "5"),
            ("5.5", [5.0, 6.0], "5.5"),
            ("0.11", [0.11, 0.1101], "0.11"),
            ("1e-7", [1e-7, 2e-7], "1e-7"),
            ("NaN", [1.0, 2.0], "NaN"),
            ("0.30000000000000004", [0.3, 0.3], "0.30000000000000004"),
        ] {
            assert_eq!(without_noise(spelled, ends), shown, "{spelled} {ends:?}");
        }
    }
}
