//! The outputs of an evaluation in a directory of the user, under names that stay.

use std::fs;

use ce_history::package::{OutputContents, OutputToWrite};
use ce_model::plan::{PlannedSweep, Source};
use ce_model::sweep::{point_path, read_cells};
use ce_model::task::{OutputName, TABLE_SUFFIXES};
use ce_storage::StorageError;

use super::Error;
use crate::{Evaluation, How, Outcome};

/// Returns the outputs of an evaluation that is over, under their names; at points, below a directory for each.
///
/// # Errors
///
/// Fails if a table cannot be read.
pub fn outputs_to_write(
    evaluation: &Evaluation,
    names: &[OutputName],
) -> Result<Vec<OutputToWrite>, Error> {
    let mut outputs = Vec::new();
    let mut add = |dir: &str, sources: &[Source]| {
        for (number, (name, source)) in names.iter().zip(sources).enumerate() {
            // The same value has one name, wherever it stands.
            if !names[..number].contains(name) {
                add_output(evaluation, dir, name, *source, &mut outputs)?;
            }
        }
        Ok::<_, Error>(())
    };
    match evaluation.plan.jobs() {
        None => add("", evaluation.plan.outputs())?,
        Some(jobs) => {
            for (point, sources) in PlannedSweep::rows(jobs).into_iter().flat_map(|it| it.iter()) {
                add(&(point_path(point.values()) + "/"), sources)?;
            }
        }
    }
    Ok(outputs)
}

fn add_output(
    evaluation: &Evaluation,
    dir: &str,
    name: &OutputName,
    source: Source,
    outputs: &mut Vec<OutputToWrite>,
) -> Result<(), Error> {
    let Some(stored) = evaluation.stored(source) else {
        let outcome = evaluation.plan.awaited(source).and_then(|call| evaluation.outcome(call));
        let is_left_out = outcome.map(Outcome::how) == Some(How::LeftOut);
        outputs.extend(name.files().into_iter().map(|file| OutputToWrite {
            path: format!("{dir}{file}"),
            origin: String::new(),
            contents: if is_left_out { OutputContents::LeftOut } else { OutputContents::Failed },
        }));
        return Ok(());
    };
    let path = evaluation.storage.path(&stored.name);
    let mut add = |file: &str, contents| {
        let (path, origin) = (format!("{dir}{file}"), stored.name.clone());
        outputs.push(OutputToWrite { path, origin, contents });
    };
    if name.is_table {
        let rows = fs::read(&path).map_err(|source| StorageError::Io {
            doing: "read",
            path: path.clone(),
            source,
        })?;
        // A table that a run has made can be read.
        let sheet = read_cells(&rows).map(|table| table.csv()).unwrap_or_default();
        let [json, csv] = TABLE_SUFFIXES.map(|suffix| format!("{}{suffix}", name.name));
        add(&json, OutputContents::File(path, stored.digest));
        add(&csv, OutputContents::Text(sheet.into_bytes()));
    } else if stored.digest.is_directory() {
        let contents = evaluation
            .manifest(source)
            .map_or(OutputContents::Failed, |manifest| OutputContents::Directory(path, manifest));
        add(&name.name, contents);
    } else {
        add(&name.name, OutputContents::File(path, stored.digest));
    }
    Ok(())
}
