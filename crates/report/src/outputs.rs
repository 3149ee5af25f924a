//! What has become of the outputs in a directory of the user.

use std::path::Path;

use ce_history::output_directory::OutputChanges;
use ce_model::humanize::counted;

use crate::terminal::harmless;

/// The number of files that are named.
const NAMED: usize = 6;

/// Says which files of a directory were written.
pub fn changed_outputs(dir: &Path, changes: &OutputChanges) -> String {
    let OutputChanges { written, removed, unchanged, .. } = changes;
    let mut parts = Vec::new();
    if !written.is_empty() {
        parts.push(format!("{} written ({})", counted(written.len(), "file"), named(written)));
    }
    if *unchanged > 0 {
        parts.push(format!("{unchanged} unchanged"));
    }
    if !removed.is_empty() {
        parts.push(format!("{} removed ({})", removed.len(), named(removed)));
    }
    if parts.is_empty() {
        parts.push("nothing to write".to_owned());
    }
    format!("outputs in {}: {}", harmless(&dir.display().to_string()), parts.join(", "))
}

/// Says which files of a directory are older than the task, and why.
pub fn outputs_not_updated(dir: &Path, changes: &OutputChanges) -> Vec<String> {
    let shown = |path: &str| harmless(&dir.join(path).display().to_string()).into_owned();
    let stale = changes.stale.iter().take(NAMED)
        .map(|path| format!("warning: {} is out of date: the output is missing or has failed\n  try: mend what has failed, and run the task again", shown(path)));
    let left = changes.left.iter().take(NAMED).map(|path| {
        format!(
            "warning: {} is not an output any more, and stays, since somebody has changed it\n  try: remove it",
            shown(path)
        )
    });
    stale.chain(left).collect()
}

fn named(paths: &[String]) -> String {
    let mut names: Vec<String> =
        paths.iter().take(NAMED).map(|path| harmless(path).into_owned()).collect();
    if paths.len() > NAMED {
        names.push(format!("and {} more", paths.len() - NAMED));
    }
    names.join(", ")
}
