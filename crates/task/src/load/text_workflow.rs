//! The workflow of a task as one text, `workflow.ce`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ce_git::Snapshot;
use ce_model::expression::{Parsed, parse};
use ce_model::sweep::Sweep;
use ce_model::task::WORKFLOW_TEXT;

use super::problems::{LoadFault, Problems, WarningKind};
use super::source::{TaskSource, parse_text};
use super::{CHOICES, DEFAULTS, INPUTS, LoadError, WORKFLOW, real};

/// Reads the text of a task's workflow; `None` if it has none. One that cannot be read is a problem.
pub(super) fn contents(
    source: &mut impl TaskSource,
    findings: &mut Problems,
) -> Option<Option<String>> {
    let task = source.task().ok()?;
    if matches!(source.find(&task, WORKFLOW_TEXT), Err(LoadFault::Missing)) {
        // A link may lead to nothing.
        let has_directories = !matches!(source.find(&task, WORKFLOW), Err(LoadFault::Missing));
        let names =
            if has_directories { Vec::new() } else { source.list(&task).unwrap_or_default() };
        if !names.iter().any(|name| *name == *WORKFLOW_TEXT) {
            return None;
        }
    }
    let path = Path::new(WORKFLOW_TEXT);
    for other in [WORKFLOW, INPUTS, DEFAULTS, CHOICES] {
        if !matches!(source.find(&task, other), Err(LoadFault::Missing)) {
            findings.problem(path, LoadFault::TwoForms(other));
        }
    }
    Some(findings.note(path, parse_text(source.read_points(&task, WORKFLOW_TEXT))))
}

/// Reads the text that is the workflow of a task, as it is checked out; `None` if it has none.
///
/// # Errors
///
/// Fails if it cannot be read, or if there are directories, too.
pub fn written_text(dir: &Path) -> Result<Option<String>, LoadError> {
    let mut source = Snapshot::of_files(&real(dir)?);
    let mut findings = Problems::default();
    let text = contents(&mut source, &mut findings);
    findings.end(dir)?;
    Ok(text.flatten())
}

/// Parses the text of a task's workflow, or adds its problems.
pub(super) fn parsed<'a>(text: &'a str, findings: &mut Problems) -> Option<Parsed<'a>> {
    let (parsed, mistakes) = match parse(text) {
        Ok(parsed) => {
            let mistakes = parsed.unreadable();
            (Some(parsed).filter(|_| mistakes.is_empty()), mistakes)
        }
        Err(mistake) => (None, vec![mistake]),
    };
    findings.mistakes(mistakes);
    parsed
}

/// Warns of definitions that nothing needs, and of a comment that looks like a part of the workflow.
pub(super) fn warn_of_unread(parsed: &Parsed<'_>, findings: &mut Problems) {
    if let Some(line) = parsed.line_of_code_in_comment() {
        findings.warning(&line_place(line), WarningKind::CodeInComment);
    }
    for (number, definition) in parsed.text.definitions.iter().enumerate() {
        if definition.nodes.is_empty() {
            let place = line_place(parsed.line_of_definition(number));
            findings.warning(&place, WarningKind::Unneeded(definition.name.to_string()));
        }
    }
}

/// A line of the text as a place in messages.
pub(super) fn line_place(line: usize) -> PathBuf {
    format!("{WORKFLOW_TEXT}:{line}").into()
}

/// Returns the path and the line of a place in messages; line zero is the whole of a file or directory.
pub(super) fn path_and_line(place: &Path) -> (PathBuf, usize) {
    let text =
        place.to_str().and_then(|place| place.strip_prefix(WORKFLOW_TEXT)?.strip_prefix(':'));
    match text.and_then(|line| line.parse().ok()) {
        Some(line) => (WORKFLOW_TEXT.into(), line),
        None => (place.to_owned(), 0),
    }
}

/// Lets each sweep say in which line of the text it is. Only where several begin in one line, their columns tell them apart.
pub(super) fn shorten_places(sweeps: &mut [Sweep]) {
    let shorter = |sweep: &Sweep| -> Option<PathBuf> {
        let place = sweep.place.to_str().filter(|place| place.starts_with(WORKFLOW_TEXT))?;
        Some(place.rsplit_once(':')?.0.into())
    };
    let places: Vec<_> = sweeps.iter().map(shorter).collect();
    let mut counts = HashMap::<PathBuf, usize>::new();
    places.iter().flatten().for_each(|place| *counts.entry(place.clone()).or_default() += 1);
    for (sweep, place) in sweeps.iter_mut().zip(places) {
        if let Some(place) = place.filter(|place| counts.get(place) == Some(&1)) {
            sweep.place = place;
        }
    }
}
