//! A page about results: one HTML file that needs nothing else.
//!
//! Its parts are files beside this one. The data are JSON in a script element that is never executed. Texts from results
//! become text of the page in two ways only: as text nodes that its script makes, and in the drawing, which escapes them. A policy
//! forbids everything but this style and this script, which are known by a nonce: a hash of the data, so that equal
//! storages give equal pages, and nobody who writes a part of the data can know it.

use std::io::{self, Write};

use serde::Serialize;

use crate::report::terminal::harmless;
use ce_model::digest::Blake3;
use ce_queries::page::PageData;

/// What every page has near its beginning, by which it is known.
pub const PAGE_MARK: &str = r#"<meta name="generator" content="compeval report">"#;

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");

/// The parts of the script, in their order.
const SCRIPT: [&str; 9] = [
    include_str!("basics.js"),
    include_str!("data.js"),
    include_str!("grid.js"),
    include_str!("graph.js"),
    include_str!("timeline.js"),
    include_str!("plot.js"),
    include_str!("details.js"),
    include_str!("sections.js"),
    include_str!("main.js"),
];

/// The data of a page, and what was left out.
#[derive(Serialize)]
struct PageJson<'a> {
    omissions: &'a [String],
    #[serde(flatten)]
    data: &'a PageData,
}

/// Returns the page with these data and this drawing, which is empty if there is none.
///
/// # Errors
///
/// Fails if the data cannot be written as JSON.
pub fn page(data: &PageData, drawing: &[u8], omissions: &[String]) -> io::Result<Vec<u8>> {
    let json = json_in_script(&PageJson { omissions, data })?;
    let nonce = Blake3::of(&[drawing, &json].concat()).full();
    let mut page = Vec::with_capacity(json.len() + drawing.len() + (64 << 10));
    let mut rest = TEMPLATE;
    while let Some((before, (name, after))) =
        rest.split_once("{{").and_then(|(before, it)| Some((before, it.split_once("}}")?)))
    {
        page.write_all(before.as_bytes())?;
        match name {
            "mark" => page.write_all(PAGE_MARK.as_bytes())?,
            "nonce" => page.write_all(&nonce.as_bytes()[..32])?,
            "title" => page.write_all(escaped(&data.title).as_bytes())?,
            "style" => page.write_all(STYLE.as_bytes())?,
            "drawing" => page.write_all(drawing)?,
            "data" => page.write_all(&json)?,
            _ => SCRIPT.iter().try_for_each(|part| page.write_all(part.as_bytes()))?,
        }
        rest = after;
    }
    page.write_all(rest.as_bytes())?;
    Ok(page)
}

/// Data as JSON that stays in its script element, and in which no text misleads: only people read it.
fn json_in_script(data: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut json = Vec::new();
    serde_json::to_writer(InScript(&mut json), data)?;
    Ok(harmless(&String::from_utf8_lossy(&json)).into_owned().into_bytes())
}

/// A text that is only text in HTML.
fn escaped(text: &str) -> String {
    harmless(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// JSON that stays in its script element. A `<` is in strings only, where it can be written in another way.
struct InScript<W>(W);

impl<W: Write> Write for InScript<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for (at, piece) in bytes.split(|byte| *byte == b'<').enumerate() {
            if at > 0 {
                self.0.write_all(b"\\u003c")?;
            }
            self.0.write_all(piece)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_changes_the_direction_of_others() {
        let json = json_in_script(&["a\u{202e}b", "\u{2066}c", "שלום", "é"]).unwrap();
        let shown: Vec<String> = serde_json::from_slice(&json).unwrap();
        assert_eq!(shown, ["a\u{fffd}b", "\u{fffd}c", "שלום", "é"]);
        assert_eq!(escaped("a\u{202e}b"), "a\u{fffd}b");
    }

    #[test]
    fn no_text_ends_the_script_that_it_is_in() {
        let hostile = ["</script><img src=x onerror=alert(1)>", "<!--<script>", "\"'&"];
        let json = json_in_script(&hostile).unwrap();
        assert!(!json.contains(&b'<'));
        assert_eq!(serde_json::from_slice::<Vec<String>>(&json).unwrap(), hostile);
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
