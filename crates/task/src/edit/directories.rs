//! Makes the directories of a workflow.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use ce_model::task::expression::{LayoutEntryKind, WorkflowLayout};

/// Makes the directory of a workflow, which must not exist, with all that is in it.
///
/// # Errors
///
/// Fails if anything cannot be written. What was written before stays.
pub fn make(dir: &Path, layout: &WorkflowLayout) -> io::Result<()> {
    for entry in &layout.entries {
        let path = if entry.path.is_empty() { dir.to_owned() } else { dir.join(&entry.path) };
        match &entry.kind {
            LayoutEntryKind::Link(target) => symlink(target, path)?,
            LayoutEntryKind::Node { kind, value, files, outputs, inputs } => {
                fs::create_dir(&path)?;
                fs::write(path.join("kind"), format!("{kind}\n"))?;
                if !value.is_empty() {
                    fs::write(path.join("value"), format!("{value}\n"))?;
                }
                for file in files {
                    let path = path.join(&*file.name);
                    if let Some(dir) = path.parent() {
                        fs::create_dir_all(dir)?;
                    }
                    fs::write(path, file.contents())?;
                }
                if let Some(outputs) = outputs {
                    fs::write(path.join("outputs"), outputs.lines())?;
                }
                if *inputs {
                    fs::create_dir(path.join("inputs"))?;
                }
            }
        }
    }
    Ok(())
}
