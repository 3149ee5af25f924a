//! A page about results: one HTML file that needs nothing else. The facts that a reader decides by are HTML without
//! scripts, and come first. Below is how it was made, which scripts let one look into.
//!
//! Its parts are files beside this one. The data of its scripts are JSON, compressed, in a script element that is never executed. Texts from results
//! become text of the page in two ways only: as text nodes that its script makes, and in the drawing, which escapes them. A policy
//! forbids everything but this style and this script, which are known by a nonce: a hash of the data, so that equal
//! storages give equal pages, and nobody who writes a part of the data can know it.
//!
//! At the end of this file: how numbers, times and texts are shown.

mod directory;
mod front;
mod gallery;
mod measurements;
mod plot;

use std::collections::BTreeSet;
use std::io::{self, Write};

pub use self::directory::{PageDirectory, PageError, begins_as_page, refuse_links};
use self::measurements::ShownTable;
use super::digits::{justified, significant};
use super::terminal::harmless;
use ce_model::digest::Blake3;
use ce_queries::page::{FileFormat, PageData};
use data_encoding::BASE64;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

/// The mark near the beginning of every page, by which it is known.
const PAGE_MARK: &str = r#"<meta name="generator" content="compeval report">"#;

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");

/// The parts of the script, in their order.
const SCRIPT: [&str; 8] = [
    include_str!("basics.js"),
    include_str!("data.js"),
    include_str!("grid.js"),
    include_str!("graph.js"),
    include_str!("timeline.js"),
    include_str!("details.js"),
    include_str!("sections.js"),
    include_str!("main.js"),
];

/// Returns the page with these data and this drawing, which is empty if there is none.
///
/// # Errors
///
/// Fails if the data cannot be written as JSON.
pub fn page(data: &PageData, drawing: &[u8], omissions: &[String]) -> io::Result<Vec<u8>> {
    let json = json_of(data)?;
    let tables: Vec<ShownTable<'_>> = data.tables.iter().map(ShownTable::new).collect();
    let mut contents = data.outputs.iter().flat_map(|it| &it.contents);
    let has_figures =
        contents.any(|it| it.held.is_ok() && matches!(it.format, FileFormat::Picture(_)));
    let comparisons = measurements::compared(&tables, data);
    let head = front::head(data, &tables, &comparisons, omissions).into_string();
    let study = data.study.as_ref();
    let results = if study.is_some() || data.outputs.iter().any(|it| it.contents.is_some()) {
        front::results(&data.outputs)
    } else {
        maud::html! {}
    };
    let front = [
        results,
        measurements::section(&tables, has_figures),
        measurements::compared_section(&comparisons),
        study.map(|study| front::repeat(study, &data.calls)).unwrap_or_default(),
        front::failures(&data.calls, &measurements::without_values(&tables)),
    ];
    let front: String = front.into_iter().map(maud::PreEscaped::into_string).collect();
    let computations =
        front::computations(data).into_string() + &front::machines(data).into_string();
    let nonce = Blake3::hash_bytes(&[drawing, &json, front.as_bytes()].concat()).full();
    let mut page = Vec::with_capacity(json.len() + drawing.len() + (64 << 10));
    let mut rest = TEMPLATE;
    while let Some((before, (name, after))) =
        rest.split_once("{{").and_then(|(before, it)| Some((before, it.split_once("}}")?)))
    {
        page.write_all(before.as_bytes())?;
        match name {
            "mark" => page.write_all(PAGE_MARK.as_bytes())?,
            "nonce" => page.write_all(&nonce.as_bytes()[..32])?,
            "title" => page.write_all(escaped(&front::title(data)).as_bytes())?,
            "head" => page.write_all(head.as_bytes())?,
            "front" => page.write_all(front.as_bytes())?,
            "computations" => page.write_all(computations.as_bytes())?,
            "style" => page.write_all(STYLE.as_bytes())?,
            "hidden" if drawing.is_empty() => page.write_all(b" hidden")?,
            "hidden" => {}
            "drawing" => page.write_all(drawing)?,
            "data" => page.write_all(packed(&json)?.as_bytes())?,
            _ => SCRIPT.iter().try_for_each(|part| page.write_all(part.as_bytes()))?,
        }
        rest = after;
    }
    page.write_all(rest.as_bytes())?;
    Ok(page)
}

/// Data as JSON in which no text misleads: only people read it.
fn json_of(data: &impl Serialize) -> io::Result<Vec<u8>> {
    let json = serde_json::to_string(data)?;
    Ok(harmless(&json).into_owned().into_bytes())
}

/// Data as scripts read them: compressed, and as letters and digits.
fn packed(json: &[u8]) -> io::Result<String> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(json)?;
    Ok(BASE64.encode(&encoder.finish()?))
}

/// A text that is only text in HTML.
fn escaped(text: &str) -> String {
    harmless(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The unit in which values of a column are shown: its own, or a part of it that makes short numbers.
#[derive(Clone, Debug, PartialEq)]
struct ShownUnit {
    /// The unit, if there is one.
    unit: Option<String>,
    /// The number of these units in one of the column.
    factor: f64,
}

/// Parts of a second, and how many of each are one.
const UNITS_OF_TIME: [(&str, f64); 4] = [("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9)];

/// The largest value of a column is at least this many of the unit in which it is shown.
const LEAST_LARGEST: f64 = 0.3;

impl ShownUnit {
    /// Chooses the unit for values of a column with this unit.
    fn choose(unit: Option<&str>, values: impl Iterator<Item = f64>) -> Self {
        let largest = values.map(f64::abs).filter(|it| it.is_finite()).fold(0.0, f64::max);
        let shown = match unit {
            Some("s") if largest > 0.0 => {
                UNITS_OF_TIME.into_iter().find(|(_, factor)| largest * factor >= LEAST_LARGEST)
            }
            _ => None,
        };
        match shown {
            Some((unit, factor)) => Self { unit: Some(unit.to_owned()), factor },
            None => Self { unit: unit.map(str::to_owned), factor: 1.0 },
        }
    }

    /// A value in this unit.
    fn scaled(&self, value: f64) -> f64 {
        value * self.factor
    }

    /// A value in this unit, with the digits that the ends of its interval justify.
    fn justified(&self, value: f64, ends: [f64; 2]) -> String {
        grouped(&justified(self.scaled(value), ends.map(|end| self.scaled(end)), 3))
    }

    /// A value in this unit, with three digits.
    fn short(&self, value: f64) -> String {
        short(self.scaled(value))
    }

    /// A value with its unit.
    fn with_unit(&self, value: f64) -> String {
        match &self.unit {
            Some(unit) => format!("{}\u{a0}{unit}", self.short(value)),
            None => self.short(value),
        }
    }

    /// A name with the unit.
    fn label(&self, name: &str) -> String {
        match &self.unit {
            Some(unit) if self.factor != 1.0 => format!("{name}, in {unit}"),
            Some(unit) => format!("{name} [{unit}]"),
            None => name.to_owned(),
        }
    }
}

/// A number with three significant digits, and more only if it is whole: `0.0123`, `5.76`, `1 234`.
fn short(value: f64) -> String {
    grouped(&significant(value, 3))
}

/// A number as it is spelled, with its digits in groups of three if it is a whole one with more than four. A text stays as it is.
fn grouped(text: &str) -> String {
    if text.parse::<f64>().is_err() {
        return text.to_owned();
    }
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

/// A text with a capital at its beginning.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// A text of a study, as it may be shown.
fn text(text: &str) -> String {
    harmless(text).into_owned()
}

/// Lines of a study, as they may be shown.
fn lines(text: &str) -> String {
    text.split('\n').map(harmless).collect::<Vec<_>>().join("\n")
}

/// The time of a record, in UTC.
fn moment(milliseconds: i64) -> String {
    in_utc(milliseconds, "%F %H:%M")
}

/// A time in UTC, in milliseconds since 1970, by a format of `strftime`.
fn in_utc(milliseconds: i64, format: &str) -> String {
    let time = Timestamp::from_millisecond(milliseconds).unwrap_or_default();
    time.to_zoned(TimeZone::UTC).strftime(format).to_string()
}

/// Names, sorted and each once.
fn different<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    names.collect::<BTreeSet<&str>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_change_the_text_direction_are_replaced() {
        let json = json_of(&["a\u{202e}b", "\u{2066}c", "שלום", "é"]).unwrap();
        let shown: Vec<String> = serde_json::from_slice(&json).unwrap();
        assert_eq!(shown, ["a\u{fffd}b", "\u{fffd}c", "שלום", "é"]);
        assert_eq!(escaped("a\u{202e}b"), "a\u{fffd}b");
    }

    #[test]
    fn markup_in_a_text_is_escaped() {
        assert_eq!(escaped("<a b=\"&\">"), "&lt;a b=&quot;&amp;&quot;&gt;");
    }

    #[test]
    fn the_style_has_every_colour_of_drawings() {
        let style = include_str!("../../../draw/src/style.rs");
        let colours: Vec<&str> = style.split('"').filter(|it| it.starts_with('#')).collect();
        assert!(colours.len() > 6, "{colours:?}");
        for colour in colours {
            assert!(STYLE.contains(&format!("\"{colour}\"]")), "{colour}");
        }
    }

    #[test]
    fn the_script_never_inserts_text_as_markup() {
        for part in SCRIPT {
            for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
                assert!(!part.contains(way), "{way}");
            }
        }
    }

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
        assert_eq!(grouped("-O2"), "-O2");
    }

    #[test]
    fn seconds_are_shown_in_parts_that_make_short_numbers() {
        let unit = ShownUnit::choose(Some("s"), [0.005, 0.008].into_iter());
        assert_eq!(unit.with_unit(0.00576), "5.76\u{a0}ms");
        assert_eq!(unit.label("seconds"), "seconds, in ms");
        assert_eq!(ShownUnit::choose(Some("s"), [12.0].into_iter()).with_unit(3.0), "3\u{a0}s");
        assert_eq!(ShownUnit::choose(Some("m"), [0.001].into_iter()).with_unit(0.5), "0.5\u{a0}m");
        assert_eq!(ShownUnit::choose(None, [0.001].into_iter()).label("x"), "x");
    }
}
