//! The computations of a task as they stand in its work tree: what they take and make.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::task::expression::{Expression, NodeKind, Signature, Signatures};
use crate::task::name::nearest;
use crate::task::text;
use crate::task::workflow::LIBRARY;

/// Returns what is known of the computations that an expression names.
pub(super) fn signatures(task: &Path, expression: &Expression) -> Signatures {
    let calls = expression.nodes().iter().filter(|node| node.kind == NodeKind::Computation);
    let names: BTreeSet<&str> = calls.map(|node| &*node.value).collect();
    names.into_iter().map(|name| (name.to_owned(), signature(task, name))).collect()
}

/// Returns what is known of a computation. What cannot be read is not known: loading the task says
/// why.
pub(super) fn signature(task: &Path, name: &str) -> Signature {
    let dir = task.join(LIBRARY).join(name);
    Signature { inputs: list(&dir.join("inputs")), outputs: list(&dir.join("outputs")) }
}

/// Reads a list of names, if there is one.
fn list(path: &Path) -> Option<Vec<String>> {
    // To open a pipe could block.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let contents = fs::read(path).ok()?;
    let lines = text::lines(&contents).ok()?;
    Some(lines.into_iter().map(str::to_owned).collect())
}

/// Returns the names that no computation has, each with the name that may have been meant.
pub(super) fn missing<'a>(
    task: &Path,
    names: impl Iterator<Item = &'a str>,
) -> Vec<(&'a str, Option<String>)> {
    let library = task.join(LIBRARY);
    let names: BTreeSet<&str> = names.filter(|name| !library.join(name).is_dir()).collect();
    let known = fs::read_dir(&library).into_iter().flatten().flatten();
    let known: Vec<String> = known.filter_map(|it| it.file_name().into_string().ok()).collect();
    names.into_iter().map(|name| (name, nearest(name, &known))).collect()
}
