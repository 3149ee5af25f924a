//! A page about results: one HTML file that needs nothing else. What a reader decides from is HTML without scripts, and comes first.
//! Below is how it was made, which scripts let one look into.
//!
//! Its parts are files beside this one. The data of its scripts are JSON, compressed, in a script element that is never executed. Texts from results
//! become text of the page in two ways only: as text nodes that its script makes, and in the drawing, which escapes them. A policy
//! forbids everything but this style and this script, which are known by a nonce: a hash of the data, so that equal
//! storages give equal pages, and nobody who writes a part of the data can know it.

mod front;
mod made;
mod measurements;
mod plot;
mod words;

use std::io::{self, Write};

use data_encoding::BASE64;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;

use crate::report::terminal::harmless;
use ce_model::digest::Blake3;
use ce_queries::page::{MeasuredTable, OutputFormat, PageData, PageTable};

/// The mark near the beginning of every page, by which it is known.
pub const PAGE_MARK: &str = r#"<meta name="generator" content="compeval report">"#;

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
    let measured = |table| (table, MeasuredTable::of(table));
    let tables: Vec<(&PageTable, MeasuredTable)> = data.tables.iter().map(measured).collect();
    let is_picture = |it: &ce_queries::page::OutputContents| {
        it.held.is_ok() && matches!(it.format, OutputFormat::Picture(_))
    };
    let has_figures = data.outputs.iter().flat_map(|it| &it.contents).any(is_picture);
    let comparisons = measurements::compared(&tables);
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
        study.map(front::repeat).unwrap_or_default(),
        front::failures(&data.calls, &measurements::without_values(&tables)),
    ];
    let front: String = front.into_iter().map(maud::PreEscaped::into_string).collect();
    let computations = made::computations(data).into_string() + &made::machines(data).into_string();
    let nonce = Blake3::of(&[drawing, &json, front.as_bytes()].concat()).full();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_changes_the_direction_of_others() {
        let json = json_of(&["a\u{202e}b", "\u{2066}c", "שלום", "é"]).unwrap();
        let shown: Vec<String> = serde_json::from_slice(&json).unwrap();
        assert_eq!(shown, ["a\u{fffd}b", "\u{fffd}c", "שלום", "é"]);
        assert_eq!(escaped("a\u{202e}b"), "a\u{fffd}b");
    }

    #[test]
    fn a_text_is_no_markup() {
        assert_eq!(escaped("<a b=\"&\">"), "&lt;a b=&quot;&amp;&quot;&gt;");
    }

    #[test]
    fn the_style_has_every_colour_of_drawings() {
        let style = include_str!("../../draw/style.rs");
        let colours: Vec<&str> = style.split('"').filter(|it| it.starts_with('#')).collect();
        assert!(colours.len() > 6, "{colours:?}");
        for colour in colours {
            assert!(STYLE.contains(&format!("\"{colour}\"]")), "{colour}");
        }
    }

    #[test]
    fn the_script_makes_no_markup_of_texts() {
        for part in SCRIPT {
            for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
                assert!(!part.contains(way), "{way}");
            }
        }
    }
}
