//! The computations of a task as they stand in its work tree: what they take and make.

use std::fs;
use std::path::Path;

use ce_model::expression::{Expression, Signature, Signatures, computation_names};
use ce_model::name::InputName;
use ce_model::suggest::nearest;
use ce_model::task::LIBRARY;
use ce_model::text_file;

/// Returns what is known of the computations that an expression names, by what is written for them. Of several computations,
/// that is what they have in common.
pub(super) fn signatures(task: &Path, expression: &Expression, inputs: &[InputName]) -> Signatures {
    let mut signatures = Signatures::new();
    for (written, names) in computation_names(expression, inputs) {
        let all = names.iter().map(|name| signature(task, name));
        let common = all.reduce(|a, b| Signature {
            inputs: a.inputs.filter(|inputs| b.inputs.as_ref() == Some(inputs)),
            outputs: a.outputs.filter(|outputs| b.outputs.as_ref() == Some(outputs)),
        });
        signatures.insert(written.to_owned(), common.unwrap_or_default());
    }
    signatures
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
    let lines = text_file::lines(&contents).ok()?;
    Some(lines.into_iter().map(str::to_owned).collect())
}

/// Returns the names of computations that the task does not have: what is written for each, the name, and the one that may
/// have been meant.
pub(super) fn missing<'a>(
    task: &Path,
    expression: &'a Expression,
    inputs: &[InputName],
) -> Vec<(&'a str, String, Option<String>)> {
    let library = task.join(LIBRARY);
    let names = computation_names(expression, inputs).into_iter();
    let names = names.flat_map(|(written, names)| names.into_iter().map(move |it| (written, it)));
    let names = names.filter(|(_, name)| !library.join(name).is_dir());
    let known = fs::read_dir(&library).into_iter().flatten().flatten();
    let known: Vec<String> = known.filter_map(|it| it.file_name().into_string().ok()).collect();
    let nearest = |name: &str| nearest(name, &known);
    names.map(|(written, name)| (written, name.clone(), nearest(&name))).collect()
}
