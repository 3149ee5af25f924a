//! The outputs of an evaluation in a directory of the user, under names that stay.

use ce_history::output_directory::{OutputToWrite, WrittenContents};
use ce_model::plan::{PlannedSweep, Source, SweepRows};
use ce_model::sweep::{SweepPoints, point_path};
use ce_model::task::OutputName;

use ce_storage::Storage;
use ce_storage::records::JobOutput;

use super::{Error, FinishedJobs};
use crate::{Evaluation, How, Outcome};

/// Returns the outputs of an evaluation that is over, under their names; at points, below a directory for each. What was left out is not among
/// them.
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
        for (name, source) in names.iter().zip(sources) {
            add_output(evaluation, dir, name, *source, &mut outputs)?;
        }
        Ok::<_, Error>(())
    };
    match evaluation.plan.jobs() {
        None => add("", evaluation.plan.outputs())?,
        Some(jobs) => {
            for (point, sources) in PlannedSweep::rows(jobs).into_iter().flat_map(SweepRows::iter) {
                add(&(point_path(point.values()) + "/"), sources)?;
            }
        }
    }
    Ok(outputs)
}

/// Returns the outputs of jobs that were finished before, under their names; at points, below a directory for each.
///
/// # Errors
///
/// Fails if a table cannot be read.
pub fn finished_outputs(
    storage: &Storage,
    jobs: &FinishedJobs,
    names: &[OutputName],
) -> Result<Vec<OutputToWrite>, Error> {
    let points = jobs.points.iter().flat_map(SweepPoints::iter);
    let dirs: Vec<String> = match &jobs.points {
        Some(_) => points.map(|point| point_path(point.values()) + "/").collect(),
        None => vec![String::new()],
    };
    let mut written = Vec::new();
    for (dir, outputs) in dirs.iter().zip(&jobs.outputs) {
        for (name, output) in names.iter().zip(outputs) {
            let JobOutput { file, digest } = output;
            written.extend(OutputToWrite::of_stored(storage, dir, name, file, *digest)?);
        }
    }
    Ok(written)
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
        if outcome.map(Outcome::how) != Some(How::LeftOut) {
            outputs.extend(name.files().into_iter().map(|file| OutputToWrite {
                path: format!("{dir}{file}"),
                origin: String::new(),
                contents: WrittenContents::Failed,
            }));
        }
        return Ok(());
    };
    let storage = &evaluation.storage;
    outputs.extend(OutputToWrite::of_stored(storage, dir, name, &stored.name, stored.digest)?);
    Ok(())
}
