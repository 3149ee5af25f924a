//! Tasks that are evaluated for each point over their own inputs: each point is a job.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use super::job::{FinishedPart, Kept, record_later_use};
use super::{Error, InputError, Session};
use crate::Evaluation;
use ce_files::cache::Cache;
use ce_model::digest::Digest;
use ce_model::exit::Explain;
use ce_model::hints;
use ce_model::name::InputName;
use ce_model::plan::{Plan, PlannedSweep, SelectionError};
use ce_model::sweep::{
    self, Factor, MAX_SHEET, Product, ProductFault, SheetFormat, SheetProblem, SweepPoint,
    SweepPoints,
};
use ce_model::task::{Node, RangedInput, RangedInputs, Task};
use ce_storage::{Input, InputSource, Storage, TaskVersion, Unrecorded};

/// Why a task cannot be evaluated for each of some points over its own inputs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RangeError {
    /// An input is both given and ranged over.
    #[error("the input {0} is given, and --each or --points has values for it, too")]
    GivenAndRanged(String),
    /// An input is ranged over more than once.
    #[error("the points have the input {0} twice")]
    RangedTwice(String),
    /// The points of a task's own inputs cannot be combined.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Product(Vec<ProductFault>),
    /// A sheet of points could not be read.
    #[error("cannot read the points in {path}")]
    ReadPoints {
        /// The sheet.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A sheet of points is wrong.
    #[error("the points in {path} cannot be used: {}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Points {
        /// The sheet.
        path: String,
        /// What is wrong with it.
        problems: Vec<SheetProblem>,
    },
    /// A sheet has no points.
    #[error("there are no points in {0}")]
    NoPoints(String),
}

impl Explain for RangeError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::GivenAndRanged(name) => {
                Some(format!("leave out one of them, or give {name} a value in --each only"))
            }
            Self::RangedTwice(_) => Some(
                "give it once: --each has all values of an input, --points one a row".to_owned(),
            ),
            Self::Product(faults) => faults.first()?.hint(),
            Self::ReadPoints { path, source } => hints::for_reading(Path::new(path), source),
            Self::Points { problems, .. } => problems.first()?.fault.hint(),
            Self::NoPoints(_) => {
                Some("write the names of inputs, and a row for each point".to_owned())
            }
        }
    }
}

/// Reads the points of a sheet. `-` is the standard input.
///
/// # Errors
///
/// Fails if it cannot be read, is no sheet, or has no points.
pub fn read_points(path: &Path) -> Result<Factor, Error> {
    let is_input = path.as_os_str() == "-";
    let shown = || if is_input { "the standard input".into() } else { path.display().to_string() };
    let mut contents = Vec::new();
    let most = MAX_SHEET as u64 + 1;
    let read = match is_input {
        true => io::stdin().take(most).read_to_end(&mut contents),
        false => File::open(path).and_then(|it| it.take(most).read_to_end(&mut contents)),
    };
    read.map_err(|source| RangeError::ReadPoints { path: shown(), source })?;
    let points = sweep::read(SheetFormat::of(&contents), &contents)
        .map_err(|problems| RangeError::Points { path: shown(), problems })?;
    match points.is_empty() {
        true => Err(RangeError::NoPoints(shown()).into()),
        false => Ok(Factor { file: shown().into(), points }),
    }
}

/// Returns the task that is evaluated for each point of the product of factors, and the inputs that its jobs have.
///
/// # Errors
///
/// Fails if a column is no input of the task, or is there twice, or if there are too many points.
pub fn for_each(task: Task, factors: Vec<Factor>) -> Result<(Task, RangedInputs), Error> {
    let names: Vec<&String> = factors.iter().flat_map(|it| it.points.names()).collect();
    for (at, name) in names.iter().enumerate() {
        if !task.inputs.iter().any(|input| input.as_str() == *name) {
            return Err(InputError::unknown(&task, name).into());
        }
        if names[..at].contains(name) {
            return Err(RangeError::RangedTwice((*name).clone()).into());
        }
    }
    let product = Product { factors, ..Product::default() };
    if let Err(faults) = sweep::points(&product) {
        return Err(RangeError::Product(faults).into());
    }
    Ok(task.for_each(product))
}

/// Checks that some point has each text that is asked for, as far as points are known.
///
/// # Errors
///
/// Fails with what no points have.
pub fn check_selection(plan: &Plan) -> Result<(), Error> {
    match plan.selection_faults() {
        faults if faults.is_empty() => Ok(()),
        faults => Err(SelectionError(faults).into()),
    }
}

/// The points for which a task is evaluated, if it is one that [`for_each`] returned.
fn points_of(task: &Task) -> SweepPoints {
    match &task.workflow[task.workflow.root()] {
        Node::Sweep { sweep, .. } => {
            sweep::points(&task.sweeps[sweep.index()].product).unwrap_or_default()
        }
        _ => SweepPoints::default(),
    }
}

/// The contents of an input that is given as a text.
fn contents(text: &str) -> Vec<u8> {
    format!("{text}\n").into_bytes()
}

impl Session {
    /// Stores the outputs of each point under the name of its job, if all of them exist. Returns what became of each.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn publish_jobs(
        &self,
        evaluation: &Evaluation,
        ranged: &RangedInputs,
    ) -> Result<Vec<Kept>, Error> {
        let rows = evaluation.plan.jobs().and_then(PlannedSweep::rows);
        let given: Option<Vec<Input>> = evaluation.files.inputs.iter().cloned().collect();
        let (Some(rows), Some(given)) = (rows, given) else { return Ok(Vec::new()) };
        let mut texts: HashMap<Arc<str>, Input> = HashMap::new();
        let mut kept = Vec::with_capacity(rows.points.len());
        for (point, sources) in rows.iter() {
            let inputs = job_inputs(ranged, point, &given, |text| {
                if let Some(known) = texts.get(text) {
                    return Ok(known.clone());
                }
                let input = self.storage.inputs().store(&InputSource::Bytes(contents(text)))?;
                texts.insert(Arc::clone(text), input.clone());
                Ok(input)
            })?;
            let ancestors = evaluation.plan.ancestors(sources);
            kept.push(self.publish(&FinishedPart { evaluation, inputs, sources, ancestors })?);
        }
        self.storage.flush()?;
        Ok(kept)
    }
}

/// The inputs of a job: what the point has for each, or what was given.
fn job_inputs<T: Clone>(
    ranged: &RangedInputs,
    point: SweepPoint<'_>,
    given: &[T],
    mut of_text: impl FnMut(&Arc<str>) -> Result<T, Error>,
) -> Result<Vec<(InputName, T)>, Error> {
    let mut inputs = Vec::with_capacity(ranged.iter().len());
    for RangedInput { name, given: id } in ranged.iter() {
        let input = match (id, point.value(name.as_str())) {
            (Some(id), _) => given[id.index()].clone(),
            (None, Some(text)) => of_text(text)?,
            (None, None) => {
                debug_assert!(false, "an input is given, or the points have it");
                continue;
            }
        };
        inputs.push((name.clone(), input));
    }
    Ok(inputs)
}

/// The jobs of all points, which were finished before.
#[derive(Debug)]
pub struct FinishedJobs {
    /// The points.
    pub points: SweepPoints,
    /// The outputs of each.
    pub outputs: Vec<Vec<String>>,
    /// The storage that has them.
    pub storage: Storage,
}

impl FinishedJobs {
    /// Records that the repository of a task in a directory uses the storage at this path.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn record_use(&self, dir: &Path, storage: &Path) -> Result<(), Error> {
        record_later_use(&self.storage, dir, storage)
    }
}

/// Looks for the jobs of all points: that needs no look at their calls. `given` are the inputs that are the same for
/// each.
///
/// # Errors
///
/// Fails if the storage cannot be read.
pub fn find_jobs(
    (task, ranged): (&Task, &RangedInputs),
    storage: &Path,
    given: &[InputSource],
    unrecorded: Unrecorded,
) -> Result<Option<FinishedJobs>, Error> {
    let Ok(storage) = Storage::inspect(storage, unrecorded) else { return Ok(None) };
    let storage = storage.with_cache(Cache::of_user());
    let version = TaskVersion::from(task);
    let Ok(Some(given)) = storage.jobs().inputs(version, given) else { return Ok(None) };
    let (points, mut outputs) = (points_of(task), Vec::new());
    for point in points.iter() {
        let of_text = |text: &Arc<str>| Ok(Digest::of(&contents(text)));
        let inputs = job_inputs(ranged, point, &given, of_text)?;
        let inputs: Vec<Digest> = inputs.into_iter().map(|(_, digest)| digest).collect();
        match storage.jobs().find(version, &inputs)? {
            Some(found) => outputs.push(found),
            None => return Ok(None),
        }
    }
    Ok(Some(FinishedJobs { points, outputs, storage }))
}
