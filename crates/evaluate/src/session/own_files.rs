//! The files that a task has itself: their contents, the points in them, and whether points name files that exist.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::path::Path;

use super::{Error, InputError};
use crate::{PointsError, ValueError};
use ce_git::Trees;
use ce_model::exit::Explain;
use ce_model::humanize::counted;
use ce_model::plan::{Derivation, Operation, Plan, PlanGrowth, PlannedSweepId, Source};
use ce_model::sweep::{self, SheetFormat, SweepPoints};
use ce_model::task::{FileContents, SweepId, Task, TaskFile, TaskFileId};
use ce_storage::InputSource;
use ce_task::load::DeferredFiles;

/// Returns where the contents of a task's own files come from; `None` for one whose path depends on names that a sweep
/// binds.
pub(super) fn own_files(trees: &Trees, task: &Task) -> Result<Vec<Option<InputSource>>, Error> {
    let mut own = Vec::with_capacity(task.files.len());
    for file in &task.files {
        own.push(match file.contents {
            FileContents::Unbound => None,
            _ => Some(own_file(trees, file)?),
        });
    }
    Ok(own)
}

/// The repository, or the work tree if the file has changes that are not committed.
pub(super) fn own_file(trees: &Trees, file: &TaskFile) -> Result<InputSource, Error> {
    match &file.contents {
        FileContents::Uncommitted(path) | FileContents::Large(path) => {
            Ok(InputSource::File(path.clone()))
        }
        FileContents::Written(text) => Ok(InputSource::Bytes(text.as_bytes().to_vec())),
        FileContents::Blob(id) => match trees.blob(id) {
            Ok(contents) => Ok(InputSource::Bytes(contents)),
            Err(source) => Err(InputError::OwnFile { path: file.path.to_string(), source }.into()),
        },
        FileContents::Unbound => {
            debug_assert!(false, "a task is bound before its files are read");
            let source = "the texts of its names are unknown".into();
            Err(InputError::OwnFile { path: file.path.to_string(), source }.into())
        }
    }
}

/// Adds the calls of all sweeps whose points the task has itself, as files or factors, as an evaluation would. Files whose path depends
/// on names that have no text yet are left out. Returns whether there is one.
///
/// # Errors
///
/// Fails with the first sheet that cannot be read or does not fit its sweep.
pub fn expand_own_sheets(trees: &Trees, task: &Task, plan: &Plan) -> Result<bool, Error> {
    let mut sheets: HashMap<OwnSheet, SweepPoints> = HashMap::new();
    let mut seen = 0;
    // A sweep in the body of another one is planned when the points of that are known.
    while seen < plan.calls().len() {
        let found: Vec<_> = own_sheets(task, plan, seen).collect();
        seen = plan.calls().len();
        for (sweep, sheet) in found {
            let points = match sheets.entry(sheet) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(place) => {
                    let points = match sheet {
                        OwnSheet::File(file) => read_sheet(trees, &task.files[file.index()])?,
                        // Loading the task has checked that it is not empty.
                        OwnSheet::Factors(sweep) => {
                            sweep::points(&task.sweeps[sweep.index()].product).unwrap_or_default()
                        }
                    };
                    place.insert(points).clone()
                }
            };
            plan.expand(task, sweep, PlanGrowth::Points(points)).map_err(PointsError::from)?;
        }
    }
    Ok(!sheets.is_empty())
}

/// Points that a task has itself, beside a sweep of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum OwnSheet {
    /// A file of the task.
    File(TaskFileId),
    /// The product of the factors of a node `points`.
    Factors(SweepId),
}

/// Checks the sheets of points that are files of the task.
///
/// # Errors
///
/// Fails with the first sheet that cannot be read or does not fit its sweep.
pub fn check_own_sheets(dir: &Path, task: &Task) -> Result<(), Error> {
    expand_own_sheets(&Trees::new(dir), task, &Plan::new(task)).map(drop)
}

/// The greatest number of values that are named which points cannot have.
const WRONG_VALUES: usize = 20;

/// Files of a task that points name and the task does not have, and values that are wrong with the texts of points.
#[derive(Debug, thiserror::Error, Explain)]
#[error("{} that points name cannot be used{}", counted(.0.len(), "value"), in_lines(.0))]
#[hint(common_hint(_0))]
pub struct PointValuesError(Vec<ValueError>);

/// The advice for all errors, if it is the same.
fn common_hint(errors: &[ValueError]) -> Option<String> {
    let hint = errors.first()?.hint();
    hint.filter(|hint| errors.iter().all(|error| error.hint().as_ref() == Some(hint)))
}

/// The first errors, each in a line of its own, with its advice unless all have the same.
fn in_lines(errors: &[ValueError]) -> String {
    let has_common = common_hint(errors).is_some();
    let line = |error: &ValueError| {
        let hint = error.hint().filter(|_| !has_common);
        let hint = hint.map(|hint| format!("\n    try: {hint}")).unwrap_or_default();
        format!("\n  {error}{hint}")
    };
    let mut lines: String = errors.iter().take(WRONG_VALUES).map(line).collect();
    if errors.len() > WRONG_VALUES {
        lines = format!("{lines}\n  and {} more", errors.len() - WRONG_VALUES);
    }
    lines
}

/// Checks the values whose names depend on points, as far as these are known: files of the task, and names with texts in braces.
///
/// # Errors
///
/// Fails with the values that no call could read.
pub fn check_point_values(dir: &Path, task: &Task, plan: &Plan) -> Result<(), PointValuesError> {
    let files = DeferredFiles::new(dir, task);
    // The texts of inputs are known when the task is bound.
    let inputs: Vec<String> = task.inputs.iter().map(|name| format!("{{{name}}}")).collect();
    let is_open = |path: &str| inputs.iter().any(|input| path.contains(input));
    let wrong = plan.derived().filter_map(|(_, value)| match &value.how {
        Derivation::File(path) if is_open(path.as_str()) => None,
        Derivation::File(path) => {
            let fault = files.find(path).err()?;
            Some(ValueError::OwnFile { path: path.to_string(), fault: fault.into() })
        }
        Derivation::Wrong(wrong) => Some(ValueError::Wrong(wrong.clone())),
        // These are known when a call or the storage is.
        Derivation::Tree(..)
        | Derivation::Member(_)
        | Derivation::Text { .. }
        | Derivation::Points(_)
        | Derivation::Contents(_)
        | Derivation::Literal(_) => None,
    });
    let chosen = task.files.iter().filter_map(|file| task.chosen(&file.path)).flatten();
    let of_choice = chosen.filter_map(|path| {
        let fault = files.find(&path).err()?;
        Some(ValueError::OwnFile { path: path.to_string(), fault: fault.into() })
    });
    let wrong: Vec<ValueError> = wrong.chain(of_choice).collect();
    if wrong.is_empty() { Ok(()) } else { Err(PointValuesError(wrong)) }
}

/// The sweeps whose points are not known yet and the task has itself, among the calls from a number on.
fn own_sheets(
    task: &Task,
    plan: &Plan,
    from: usize,
) -> impl Iterator<Item = (PlannedSweepId, OwnSheet)> {
    plan.calls().skip(from).filter_map(|(call, planned)| {
        let Operation::Sweep(sweep) = planned.operation else { return None };
        if plan.sweep(sweep).rows().is_some() {
            return None;
        }
        let sheet = match *plan.inputs(call) {
            [Source::File(file)] => {
                let is_bound = task.files[file.index()].contents != FileContents::Unbound;
                is_bound.then_some(OwnSheet::File(file))?
            }
            [Source::Derived { value, .. }] => match plan.value(value).how {
                Derivation::Points(points) => OwnSheet::Factors(points),
                _ => return None,
            },
            _ => return None,
        };
        Some((sweep, sheet))
    })
}

/// Reads a file of the task.
pub(super) fn read_own(trees: &Trees, file: &TaskFile) -> Result<Vec<u8>, Error> {
    match own_file(trees, file)? {
        InputSource::Bytes(contents) => Ok(contents),
        InputSource::File(path) => fs::read(path).map_err(|source| {
            InputError::OwnFile { path: file.path.to_string(), source: source.into() }.into()
        }),
    }
}

/// Reads the points that a file of the task has.
fn read_sheet(trees: &Trees, file: &TaskFile) -> Result<SweepPoints, Error> {
    let (sheet, contents) = (file.path.to_string(), read_own(trees, file)?);
    let points = sweep::read(SheetFormat::detect(&contents), &contents);
    Ok(points.map_err(|problems| PointsError::Sheet { sheet, problems })?)
}
