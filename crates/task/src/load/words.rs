//! Counts, lists and places in the words of messages.

use std::path::{Path, PathBuf};

use ce_model::words::counted;

/// The greatest number of files that are named.
const MAX_NAMED: usize = 10;

/// Lists the first files, and counts the others.
pub fn listed(paths: &[PathBuf]) -> String {
    let mut names: Vec<String> = paths.iter().map(|it| it.display().to_string()).collect();
    if names.len() > MAX_NAMED {
        let more = names.split_off(MAX_NAMED - 1).len();
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

/// A number of files.
pub(super) fn files(count: usize) -> String {
    counted(count, "file")
}

/// A number of inputs.
pub(super) fn inputs(count: usize) -> String {
    counted(count, "input")
}

/// A number of outputs.
pub(super) fn outputs(count: usize) -> String {
    counted(count, "output")
}

/// A computation and the names of its inputs or outputs.
pub(super) fn having((name, names): &(String, Vec<String>), what: &str) -> String {
    if names.is_empty() {
        return format!("{name} has no {what}");
    }
    format!("{name} has the {what} {}", names.join(", "))
}

/// The inputs from one number to another.
pub(super) fn range(first: usize, last: usize) -> String {
    if first == last {
        format!("input {first:02}")
    } else {
        format!("inputs {first:02} to {last:02}")
    }
}

/// A place in the task, in words.
pub(super) fn place(path: &Path, line: Option<usize>) -> String {
    let path = if path.as_os_str().is_empty() { Path::new("the task") } else { path };
    match line {
        Some(line) => format!("{}:{line}", path.display()),
        None => path.display().to_string(),
    }
}

/// What to try if files have uncommitted changes.
pub(super) const fn committing() -> &'static str {
    "git add and git commit them, or evaluate with --dirty"
}
