//! Citations: a paragraph, BibTeX and CSL-JSON.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::harmless;
use ce_history::package::Citation;

/// A form of citations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CitationFormat {
    /// A paragraph.
    Text,
    /// An entry `@misc` of BibTeX.
    Bibtex,
    /// A list of one item of CSL-JSON, a `dataset`.
    CslJson,
}

/// Prints a citation.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn citation(
    citation: &Citation,
    format: CitationFormat,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        CitationFormat::Text => writeln!(out, "{}", harmless(&paragraph(citation))),
        CitationFormat::Bibtex => write!(out, "{}", bibtex(citation)),
        CitationFormat::CslJson => {
            serde_json::to_writer_pretty(&mut *out, &json!([csl(citation)]))?;
            writeln!(out)
        }
    }
}

fn paragraph(citation: &Citation) -> String {
    let mut parts = vec![citation.title()];
    if let Some(version) = version(citation) {
        parts.push(format!(", version {version}"));
    }
    if let Some(url) = &citation.repository {
        parts.push(format!(" of {url}"));
    }
    if let Some(at) = citation.at {
        parts.push(format!(", of {}", at.strftime("%F")));
    }
    format!("{}. {}", parts.concat(), note(citation))
}

/// What has no field of its own.
fn note(citation: &Citation) -> String {
    let Citation { inputs, digest, compeval, results, .. } = citation;
    let (sha1, blake3) = (digest.sha1.full(), digest.blake3.full());
    let mut parts = vec![format!("Made with CompEval {compeval}. SHA-1 {sha1}, BLAKE3 {blake3}.")];
    for (name, digest) in inputs {
        let (sha1, blake3) = (digest.sha1.full(), digest.blake3.full());
        parts.push(format!(" Input {name}: SHA-1 {sha1}, BLAKE3 {blake3}."));
    }
    if let Some(results) = results {
        parts.push(format!(" Results are in the repository {results}."));
    }
    parts.concat()
}

/// The full commit.
fn version(citation: &Citation) -> Option<String> {
    let changes = if citation.dirty { " with uncommitted changes" } else { "" };
    citation.commit.as_ref().map(|commit| format!("{commit}{changes}"))
}

/// A name for the citation in a text.
fn key(citation: &Citation) -> String {
    let sha1 = citation.digest.sha1.full();
    format!("compeval-{}", &sha1[..12])
}

fn bibtex(citation: &Citation) -> String {
    let mut entry = format!("@misc{{{},\n", key(citation));
    let mut field = |name: &str, value: String| {
        let written = writeln!(entry, "  {name} = {{{value}}},");
        debug_assert!(written.is_ok(), "a text takes every line");
    };
    // A second pair of braces keeps capital letters.
    field("title", format!("{{{}}}", escaped(&citation.title())));
    if let Some(version) = version(citation) {
        field("version", escaped(&version));
    }
    if let Some(at) = citation.at {
        field("year", at.strftime("%Y").to_string());
        field("date", at.strftime("%F").to_string());
    }
    if let Some(url) = &citation.repository {
        field("url", escaped_url(url));
    }
    field("note", escaped(&note(citation)));
    entry + "}\n"
}

/// A text for TeX. BibTeX counts braces whatever is before them, so those of the text become commands.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '{' => escaped.push_str("\\textbraceleft{}"),
            '}' => escaped.push_str("\\textbraceright{}"),
            '\\' => escaped.push_str("\\textbackslash{}"),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            '%' | '_' | '&' | '#' | '$' => escaped.extend(['\\', c]),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A URL, which styles print as it is: only what would end the field is changed.
fn escaped_url(url: &str) -> String {
    let mut escaped = String::with_capacity(url.len());
    for c in url.chars() {
        match c {
            '{' | '}' | '\\' | ' ' => drop(write!(escaped, "%{:02X}", u32::from(c))),
            c if c.is_control() => {}
            c => escaped.push(c),
        }
    }
    escaped
}

fn csl(citation: &Citation) -> Value {
    let mut item = json!({
        "id": key(citation),
        "type": "dataset",
        "title": citation.title(),
        "note": note(citation),
    });
    if let Some(version) = version(citation) {
        item["version"] = version.into();
    }
    if let Some(url) = &citation.repository {
        item["URL"] = url.as_str().into();
    }
    if let Some(results) = &citation.results {
        item["archive"] = results.as_str().into();
    }
    if let Some(at) = citation.at {
        let parts =
            ["%Y", "%m", "%d"].map(|part| at.strftime(part).to_string().parse::<i32>().ok());
        item["issued"] = json!({ "date-parts": [parts] });
    }
    item
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tex_reads_is_escaped() {
        let escaped = escaped("a_b {50%} \\x & #1 $2 ~ ^\n");
        let expected = "a\\_b \\textbraceleft{}50\\%\\textbraceright{} \\textbackslash{}x \\& \\#1 \\$2 \
                        \\textasciitilde{} \\textasciicircum{} ";
        assert_eq!(escaped, expected);
        assert_eq!(escaped.matches('{').count(), escaped.matches('}').count());
        assert_eq!(escaped_url("https://h/a_b%20{c} d"), "https://h/a_b%20%7Bc%7D%20d");
    }
}
