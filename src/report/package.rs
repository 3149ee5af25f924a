//! The page of a package that says what made each file, and the same as JSON.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use serde_json::json;

use super::harmless;
use ce_history::package::{FileMaker, MakerInput, Package, PackagedFile, PackagedResult};

/// The text of the page, in Markdown.
pub fn package_readme(package: &Package, storage: &Path) -> String {
    let mut page = String::from("# Results\n\n");
    let compeval = env!("CARGO_PKG_VERSION");
    line(
        &mut page,
        &format!(
            "Exported by CompEval {compeval} from the storage {}.",
            code(&storage.display().to_string())
        ),
    );
    for PackagedResult { name, title, commit, inputs } in &package.results {
        let title = title.as_ref().map(|title| format!(" of {}", code(title))).unwrap_or_default();
        let commit =
            commit.as_ref().map(|it| format!(" at commit {}", code(it))).unwrap_or_default();
        line(&mut page, &format!("\n- {}{title}{commit}", code(name)));
        for (name, digest) in inputs {
            line(&mut page, &format!("  - input {}: SHA-1 {}", code(name), digest.sha1.full()));
        }
    }
    for PackagedFile { path, file, contents, made, .. } in &package.files {
        line(&mut page, &format!("\n## {}\n", code(path)));
        line(&mut page, &format!("- in the storage: {}", code(file)));
        line(&mut page, &format!("- SHA-1: {}", contents.sha1.full()));
        line(&mut page, &format!("- BLAKE3: {}", contents.blake3.full()));
        maker(&mut page, made);
    }
    page
}

fn maker(page: &mut String, made: &FileMaker) {
    let FileMaker::Call { computation, output, commit, dirty, inputs, at, host } = made else {
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
    let host = host.as_deref().map(|host| format!(" on {}", code(host))).unwrap_or_default();
    match at {
        Some(at) => line(page, &format!("- executed: {at}{host}")),
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

/// Prints a package as one JSON document: doc/programs/ce-export.md describes the fields.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn package_json(package: &Package, dir: &Path, out: &mut dyn Write) -> io::Result<()> {
    let result = |it: &PackagedResult| {
        let input = |(name, digest): &(String, _)| json!({ "name": name, "contents": digest });
        let inputs: Vec<_> = it.inputs.iter().map(input).collect();
        json!({ "name": it.name, "title": it.title, "commit": it.commit, "inputs": inputs })
    };
    let document = json!({
        "directory": dir,
        "results": package.results.iter().map(result).collect::<Vec<_>>(),
        "files": package.files,
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::code;

    #[test]
    fn code_ends_at_its_end() {
        assert_eq!(code("a b"), "`a b`");
        assert_eq!(code("a`b"), "`` a`b ``");
        assert_eq!(code("a```\n# b"), "```` a```\u{fffd}# b ````");
    }
}
