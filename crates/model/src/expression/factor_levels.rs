//! Levels of a factor as a text has them: a number as it is written, or a range of numbers: `1..8`, `0..100+25`, `1..64*2`.

use super::mistake::Fault;

/// The most levels that a range is.
const MAX_LEVELS: usize = 100_000;

/// The levels of such a range, each as it would be written alone.
///
/// # Errors
///
/// Fails if a range has no numbers, no end, or too many levels.
pub(super) fn levels(written: &str) -> Result<Vec<String>, Fault> {
    let Some((first, rest)) = written.split_once("..") else { return Ok(vec![written.to_owned()]) };
    let wrong = || Fault::Range(written.to_owned());
    let (last, step) = match rest.find(['+', '*']).filter(|at| *at > 0) {
        Some(at) => (&rest[..at], Some((rest.as_bytes()[at], &rest[at + 1..]))),
        None => (rest, None),
    };
    let step_text = step.map_or("1", |(_, text)| text);
    if [first, last, step_text].iter().any(|text| has_idle_zeros(text)) {
        return Err(wrong());
    }
    let digits =
        [first, last, step_text].map(fraction_digits).into_iter().max().unwrap_or_default();
    let number = |text: &str| scaled(text, digits).ok_or_else(wrong);
    let (first, last) = (number(first)?, number(last)?);
    let is_product = step.is_some_and(|(sign, _)| sign == b'*');
    let step: i128 =
        if is_product { step_text.parse().map_err(|_| wrong())? } else { number(step_text)? };
    // A product that does not grow has no end.
    if first > last || step < 1 || is_product && (step < 2 || first < 1) {
        return Err(wrong());
    }
    let (mut levels, mut level) = (Vec::new(), first);
    while level <= last {
        if levels.len() == MAX_LEVELS {
            return Err(Fault::LongRange(MAX_LEVELS));
        }
        levels.push(decimal(level, digits));
        level = if is_product { level.checked_mul(step) } else { level.checked_add(step) }
            .ok_or_else(wrong)?;
    }
    Ok(levels)
}

/// Whether a number is written with zeros that its levels would not have: `001`, `1.0`.
fn has_idle_zeros(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "1"));
    whole.len() > 1 && whole.starts_with('0') || fraction.ends_with('0')
}

/// The number of digits after the point.
fn fraction_digits(text: &str) -> usize {
    text.split_once('.').map_or(0, |(_, fraction)| fraction.len())
}

/// A decimal number times 10^`digits`, as a whole number.
fn scaled(text: &str, digits: usize) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let unsigned = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let is_number = !unsigned.is_empty()
        && [unsigned, fraction].iter().all(|it| it.bytes().all(|c| c.is_ascii_digit()));
    (is_number && digits <= 18)
        .then(|| format!("{whole}{fraction:0<digits$}").parse().ok())
        .flatten()
}

/// A scaled number as a decimal one, without zeros at its end.
fn decimal(scaled: i128, digits: usize) -> String {
    let sign = if scaled < 0 { "-" } else { "" };
    let text = format!("{:0>width$}", scaled.unsigned_abs(), width = digits + 1);
    let (whole, fraction) = text.split_at(text.len() - digits);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_its_numbers() {
        for (written, expected) in [
            ("1", "1"),
            ("-1e3", "-1e3"),
            ("007", "007"),
            ("1..4", "1 2 3 4"),
            ("-1..1", "-1 0 1"),
            ("0..100+25", "0 25 50 75 100"),
            ("0..10+4", "0 4 8"),
            ("1..64*4", "1 4 16 64"),
            ("0.5..2+0.5", "0.5 1 1.5 2"),
            ("-0.2..0.1+0.1", "-0.2 -0.1 0 0.1"),
            ("5..5", "5"),
        ] {
            assert_eq!(levels(written).unwrap().join(" "), expected, "{written}");
        }
    }

    #[test]
    fn a_range_without_an_end_is_a_mistake() {
        for written in [
            "1..",
            "4..1",
            "1..9+0",
            "1..9*1",
            "0..9*2",
            "1..x",
            "001..003",
            "1.0..2",
            "1..2+0.50",
            "1..2..3",
            "1..9+",
            "1..9-1",
            "..3",
        ] {
            assert!(matches!(levels(written), Err(Fault::Range(_))), "{written}");
        }
        assert_eq!(levels("1..1000000"), Err(Fault::LongRange(MAX_LEVELS)));
    }
}
