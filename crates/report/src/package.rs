//! Packages of results and citations: the page with the origin of each file, a paragraph, BibTeX and CSL-JSON.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::harmless;
use ce_history::package::{Citation, FileMaker, MakerInput, Package, PackagedFile, PackagedResult};

/// For whom a page is.
#[derive(Clone, Copy, Debug)]
pub enum ReadmeFor<'a> {
    /// People who know this storage.
    Colleagues(&'a Path),
    /// Anybody: no host and no path of this machine, and times only if they are to be published.
    Everybody {
        /// Whether times are published.
        times: bool,
    },
}

/// The text of the page, in Markdown.
pub fn package_readme(package: &Package, readers: ReadmeFor<'_>) -> String {
    let mut page = String::from("# Results\n\n");
    let compeval = env!("CARGO_PKG_VERSION");
    let origin = match readers {
        ReadmeFor::Colleagues(storage) => {
            format!(" from the storage {}", code(&storage.display().to_string()))
        }
        ReadmeFor::Everybody { .. } => String::new(),
    };
    line(&mut page, &format!("Exported by CompEval {compeval}{origin}."));
    for PackagedResult { name, title, commit, inputs } in &package.results {
        let title = title.as_ref().map(|title| format!(" of {}", code(title))).unwrap_or_default();
        let commit =
            commit.as_ref().map(|it| format!(" at commit {}", code(it))).unwrap_or_default();
        line(&mut page, &format!("\n- {}{title}{commit}", code(name)));
        for (name, digest) in inputs {
            line(&mut page, &format!("  - input {}: SHA-1 {}", code(name), digest.sha1.full()));
        }
    }
    for PackagedFile { path, file, contents, definition, made, .. } in &package.files {
        line(&mut page, &format!("\n## {}\n", code(path)));
        line(&mut page, &format!("- in the storage: {}", code(file)));
        line(&mut page, &format!("- SHA-1: {}", contents.sha1.full()));
        line(&mut page, &format!("- BLAKE3: {}", contents.blake3.full()));
        if let Some(definition) = definition {
            line(&mut page, &format!("- in the workflow: {}", code(definition)));
        }
        maker(&mut page, made, readers);
    }
    page
}

fn maker(page: &mut String, made: &FileMaker, readers: ReadmeFor<'_>) {
    let FileMaker::Call { computation, output, commit, dirty, inputs, at, host, published } = made
    else {
        return line(
            page,
            match made {
                FileMaker::Table => "- made by: a sweep, whose points are in its recipe",
                FileMaker::TaskInput => "- given by a user, or taken from a Git repository",
                FileMaker::Call { .. } | FileMaker::Unknown => "- made by: not known any more",
            },
        );
    };
    line(page, &format!("- made by: computation {}, output {output:02}", code(computation)));
    let changes = if *dirty { ", with uncommitted changes" } else { "" };
    line(page, &format!("- commit: {commit}{changes}"));
    for (number, MakerInput { file, contents }) in inputs.iter().enumerate() {
        let file =
            file.as_deref().map(code).unwrap_or_else(|| "no record of its origin".to_owned());
        line(page, &format!("- input {number:02}: {file}, SHA-1 {}", contents.sha1.full()));
    }
    let place = match readers {
        ReadmeFor::Everybody { times: false } => return,
        ReadmeFor::Everybody { times: true } => String::new(),
        ReadmeFor::Colleagues(_) => {
            let machine = published.as_ref().and_then(|it| it.machine.as_ref());
            let place = host.as_ref().or(machine).map(|place| format!(" on {}", code(place)));
            let by = published.as_ref().map(|it| format!(", as published by {}", code(&it.by)));
            [place, by].into_iter().flatten().collect()
        }
    };
    match at {
        Some(at) => line(page, &format!("- executed: {at}{place}")),
        None => line(page, "- executed: in another storage"),
    }
}

fn line(page: &mut String, text: &str) {
    let written = writeln!(page, "{text}");
    debug_assert!(written.is_ok(), "a text takes every line");
}

/// A text as code. Nothing in it ends that, or begins a new line.
fn code(text: &str) -> String {
    let text = harmless(text).replace('\t', " ");
    let runs = text.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0) + 1);
    match fence.len() {
        1 => format!("`{text}`"),
        _ => format!("{fence} {text} {fence}"),
    }
}

/// Prints a package as one JSON document: doc/schema/output.json describes the fields.
pub fn package_json(package: &Package, dir: &Path, out: &mut dyn Write) -> io::Result<()> {
    let mut results = Vec::new();
    for PackagedResult { name, title, commit, inputs } in &package.results {
        let inputs = inputs.iter();
        let inputs = inputs.map(|(name, digest)| json!({ "name": name, "contents": digest }));
        let inputs: Vec<_> = inputs.collect();
        results.push(json!({ "name": name, "title": title, "commit": commit, "inputs": inputs }));
    }
    let document = json!({
        "directory": dir,
        "results": results,
        "files": package.files,
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

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

/// Returns the facts that have no field of their own.
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

/// Escapes a text for TeX. BibTeX counts braces even behind a backslash, so braces in the text become commands.
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
    fn code_with_backticks_is_quoted() {
        assert_eq!(code("a b"), "`a b`");
        assert_eq!(code("a`b"), "`` a`b ``");
        assert_eq!(code("a```\n# b"), "```` a```\u{fffd}# b ````");
    }

    #[test]
    fn special_characters_of_tex_are_escaped() {
        let escaped = escaped("a_b {50%} \\x & #1 $2 ~ ^\n");
        let expected = "a\\_b \\textbraceleft{}50\\%\\textbraceright{} \\textbackslash{}x \\& \\#1 \\$2 \
                        \\textasciitilde{} \\textasciicircum{} ";
        assert_eq!(escaped, expected);
        assert_eq!(escaped.matches('{').count(), escaped.matches('}').count());
        assert_eq!(escaped_url("https://h/a_b%20{c} d"), "https://h/a_b%20%7Bc%7D%20d");
    }
}
