//! Sheets of points that are files of the task: known without an evaluation.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::path::Path;

use super::inputs::own_file;
use super::{Error, InputError, check_selection};
use crate::PointsError;
use ce_git::Trees;
use ce_model::plan::{Operation, Plan, PlannedSweepId, PointSelection, Source};
use ce_model::sweep::{self, SheetFormat, SweepPoints};
use ce_model::task::{FileContents, Task, TaskFile, TaskFileId};
use ce_storage::InputSource;

/// Adds the calls of all sweeps whose points are files of the task, as an evaluation would. Files whose path depends on
/// inputs that are not given are left out.
///
/// # Errors
///
/// Fails with the first sheet that cannot be read or does not fit its sweep.
pub fn expand_own_sheets(trees: &Trees, task: &Task, plan: &Plan) -> Result<(), Error> {
    let mut sheets: HashMap<TaskFileId, SweepPoints> = HashMap::new();
    let mut seen = 0;
    // A sweep in the body of another one is planned when the points of that are known.
    while seen < plan.calls().len() {
        let found: Vec<_> = own_sheets(task, plan, seen).collect();
        seen = plan.calls().len();
        for (sweep, id) in found {
            let points = match sheets.entry(id) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(place) => place.insert(read(trees, &task.files[id.index()])?).clone(),
            };
            plan.expand(task, sweep, points).map_err(PointsError::from)?;
        }
    }
    Ok(())
}

/// Checks the sheets of points that are files of the task.
///
/// # Errors
///
/// Fails with the first sheet that cannot be read or does not fit its sweep.
pub fn check_own_sheets(dir: &Path, task: &Task) -> Result<(), Error> {
    expand_own_sheets(&Trees::new(dir), task, &Plan::new(task))
}

/// Checks that some point has each text that is asked for, as far as points are known before anything is evaluated.
///
/// # Errors
///
/// Fails with what no points have, or if a sheet cannot be used.
pub fn check_wanted(trees: &Trees, task: &Task, selection: PointSelection) -> Result<(), Error> {
    if selection.is_everything() {
        return Ok(());
    }
    let plan = Plan::of_points(task, selection);
    expand_own_sheets(trees, task, &plan)?;
    check_selection(&plan)
}

/// The sweeps whose points are not known yet and are a file of the task, among the calls from a number on.
fn own_sheets(
    task: &Task,
    plan: &Plan,
    from: usize,
) -> impl Iterator<Item = (PlannedSweepId, TaskFileId)> {
    plan.calls().skip(from).filter_map(|(call, planned)| {
        let Operation::Sweep(sweep) = planned.operation else { return None };
        let is_unknown = plan.sweep(sweep).rows().is_none();
        match plan.inputs(call) {
            [Source::File(file)] if is_unknown => {
                let is_bound = task.files[file.index()].contents != FileContents::Unbound;
                is_bound.then_some((sweep, *file))
            }
            _ => None,
        }
    })
}

/// Reads the points that a file of the task has.
fn read(trees: &Trees, file: &TaskFile) -> Result<SweepPoints, Error> {
    let sheet = file.path.to_string();
    let contents = match own_file(trees, file)? {
        InputSource::Bytes(contents) => contents,
        InputSource::File(path) => fs::read(path)
            .map_err(|source| InputError::OwnFile { path: sheet.clone(), source: source.into() })?,
    };
    let points = sweep::read(SheetFormat::of(&contents), &contents);
    Ok(points.map_err(|problems| PointsError::Sheet { sheet, problems })?)
}
