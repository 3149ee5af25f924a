//! Jobs: their outputs are published under a name of their own, and found there again. A task that is evaluated for each point
//! over its own inputs has a job for each of them.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::inputs::check_choice;
use super::own_files::own_file;
use super::{BoundTask, Error, InputError, KnownStorages, Session};
use crate::{CallError, Evaluation, LeafOrigin, Outcome};
use ce_files::cache::Cache;
use ce_git::{Home, SourceRepositories, Trees};
use ce_model::digest::Digest;
use ce_model::exit::Explain;
use ce_model::name::InputName;
use ce_model::plan::{Ancestors, Derivation, DerivedId, PlannedSweep, Source};
use ce_model::sweep::{
    self, Condition, Factor, MAX_SHEET, NoDefaultText, ParameterProblem, Parameters, Product,
    ProductFault, SheetFormat, SheetProblem, SweepPoint, SweepPoints,
};
use ce_model::system_hints;
use ce_model::task::{Node, RangedInput, RangedInputs, Task};
use ce_model::template;
use ce_storage::records::{JobOutput, JobRevision};
use ce_storage::{
    Durability, Input, InputSource, Job, KnownRepositories, ResultName, Storage, Stored,
    TaskVersion, Unrecorded,
};

/// The fate of the outputs of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// They are kept under this name.
    As(ResultName),
    /// An output is missing.
    Incomplete,
    /// Recorded outputs were replaced by others: calls that were found were made from those before.
    Replaced,
    /// Points of a sweep have failed, which may pass another time.
    FailedPoints,
    /// The task has changes that no commit records.
    Uncommitted,
    /// The storage is read-only.
    ReadOnly,
    /// The user may not write something in the storage, for this reason.
    Denied(String),
}

impl Session {
    /// Stores the outputs of an evaluation under the job's name, if all of them exist and the task
    /// is committed.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be written.
    pub fn publish_job(&self, evaluation: &Evaluation) -> Result<Kept, Error> {
        let Evaluation { task, plan, files, .. } = evaluation;
        let inputs = task.inputs.iter().zip(&files.inputs);
        let inputs = inputs.map(|(name, input)| Some((name.clone(), input.clone()?)));
        let Some(inputs) = inputs.collect() else { return Ok(Kept::Incomplete) };
        let ancestors = plan.everything();
        let kept =
            self.publish(&FinishedPart { evaluation, inputs, sources: plan.outputs(), ancestors })?;
        if let Kept::As(_) = kept {
            self.storage.flush()?;
        }
        Ok(kept)
    }

    /// Stores the outputs of a part of an evaluation under the name of its job. It is durable after the next
    /// [`Storage::flush`].
    fn publish(&self, part: &FinishedPart<'_>) -> Result<Kept, Error> {
        let FinishedPart { evaluation, inputs, sources, ancestors } = part;
        let Evaluation { task, files, storage, .. } = evaluation;
        let outputs: Option<Vec<Stored>> =
            sources.iter().map(|source| evaluation.stored(*source)).collect();
        let Some(outputs) = outputs else { return Ok(Kept::Incomplete) };
        if evaluation.has_replaced() {
            return Ok(Kept::Replaced);
        }
        let mut ended =
            ancestors.calls.iter().filter_map(|id| Some((*id, evaluation.outcome(*id)?)));
        if ended.any(|(id, outcome)| evaluation.is_allowed(id, outcome)) {
            return Ok(Kept::FailedPoints);
        }
        if !task.changed.is_empty() || evaluation.has_changed_files() {
            return Ok(Kept::Uncommitted);
        }
        let literals =
            ancestors.literals.iter().filter_map(|it| files.literals[it.index()].as_ref());
        let literals = literals.map(|file| (file, LeafOrigin::Other));
        let own = files.own.iter().flatten().map(|input| (&input.file, LeafOrigin::Task));
        let literals = literals.chain(own).chain(evaluation.leaves(&ancestors.derived));
        let (literals, origins): (Vec<Stored>, Vec<LeafOrigin>) =
            literals.map(|(file, origin)| (file.clone(), origin)).unzip();
        let (names, inputs): (Vec<_>, Vec<_>) =
            inputs.iter().map(|(name, input)| (name.clone(), input.file.digest)).unzip();
        let calls = ancestors.calls.iter().filter_map(|call| evaluation.outcome(*call));
        let job = Job {
            task: TaskVersion::from(&**task),
            names: &names,
            inputs: &inputs,
            literals: &literals,
            own: &runs(origins.iter().map(|it| *it != LeafOrigin::Other)),
            named: &runs(origins.iter().map(|it| *it == LeafOrigin::Sheet)),
            revisions: &revisions(evaluation, &ancestors.derived),
            outputs: &outputs,
            is_away: false,
            calls: calls.map(Outcome::name).collect(),
        };
        match storage.jobs().publish(&job) {
            Err(error) if error.is_read_only() => Ok(Kept::ReadOnly),
            Err(error) if error.may_not_write() => {
                Ok(Kept::Denied(CallError::from(error).in_full()))
            }
            job => Ok(Kept::As(job?)),
        }
    }
}

/// The revisions of the trees among these values that are not full commit ids, sorted.
fn revisions(evaluation: &Evaluation, values: &[DerivedId]) -> Vec<JobRevision> {
    let mut revisions: Vec<_> = values
        .iter()
        .filter_map(|id| {
            let values = evaluation.tree_values(*id)?.ok()?;
            let (revision, commit) = (values.revision.clone()?, values.version.parse().ok()?);
            let name = match &evaluation.plan.value(*id).how {
                Derivation::Tree(_, Some(name)) => name,
                Derivation::Tree(tree, None) => evaluation.task.trees[tree.index()].name.written(),
                _ => return None,
            };
            Some(JobRevision { repository: name.source().to_owned(), revision, commit })
        })
        .collect();
    revisions.sort_unstable();
    revisions.dedup();
    revisions
}

/// Returns the ranges of indices at which the flag is set, as pairs of a begin and an end.
fn runs(holds: impl Iterator<Item = bool>) -> Vec<[usize; 2]> {
    let mut runs: Vec<[usize; 2]> = Vec::new();
    for (at, _) in holds.enumerate().filter(|(_, holds)| *holds) {
        match runs.last_mut() {
            Some([_, end]) if *end == at => *end += 1,
            _ => runs.push([at, at + 1]),
        }
    }
    runs
}

/// A part of an evaluation that is a job.
struct FinishedPart<'a> {
    pub(super) evaluation: &'a Evaluation,
    /// The inputs of the job.
    pub(super) inputs: Vec<(InputName, Input)>,
    /// The sources of its outputs.
    pub(super) sources: &'a [Source],
    /// The values that the outputs are made from.
    pub(super) ancestors: Ancestors,
}

/// Opens a storage for looking whether jobs are finished; `None` if it cannot be opened. The evaluation that follows reports that.
pub fn open_finished(storage: &Path, unrecorded: Unrecorded) -> Option<Storage> {
    Some(Storage::inspect(storage, unrecorded).ok()?.with_cache(Cache::of_user()))
}

/// Jobs that were finished before.
#[derive(Debug)]
pub struct FinishedJobs {
    /// The points of whose inputs they are; `None` for a single job.
    pub points: Option<SweepPoints>,
    /// The outputs of each.
    pub outputs: Vec<Vec<JobOutput>>,
}

/// Looks for a job that was finished before, which needs no look at its calls, however many they are. One that depends on revisions is not
/// found.
///
/// # Errors
///
/// Fails if the storage cannot be read.
pub fn find_job(
    storage: &Storage,
    task: TaskVersion<'_>,
    inputs: &[InputSource],
) -> Result<Option<FinishedJobs>, Error> {
    let jobs = storage.jobs().of(task);
    if !jobs.has_any()? {
        return Ok(None);
    }
    // The evaluation that follows reports an error of an input.
    let Ok(Some(inputs)) = storage.jobs().inputs(inputs) else { return Ok(None) };
    let outputs = jobs.find(&inputs, &|_| false)?;
    Ok(outputs.map(|outputs| FinishedJobs { points: None, outputs: vec![outputs] }))
}

/// Records that the repository of a task in this directory uses a storage, which was checked, and only read so far.
///
/// # Errors
///
/// Fails if the storage cannot be written.
pub fn record_later_use(storage: Storage, dir: &Path) -> Result<(), Error> {
    if KnownRepositories::new(&storage).is_recorded(&Home::find(dir)?.path.to_string_lossy())? {
        return Ok(());
    }
    record_use(&storage.into_writable(Durability::Synced)?, dir, true, |_| {})
}

/// Records that the repository of a task in this directory uses a storage: in the storage, and in the repository. Unless a new
/// storage is accepted, it must be the one that the repository has used at its path, if it has.
pub(super) fn record_use(
    storage: &Storage,
    dir: &Path,
    accepts_new: bool,
    warn: impl FnOnce(&str),
) -> Result<(), Error> {
    let known = KnownStorages::read(dir)?;
    if let Some(known) = known.as_ref().filter(|_| !accepts_new) {
        known.check_open(storage)?;
    }
    let Home { path, inode } = Home::find(dir)?;
    KnownRepositories::new(storage).record(&path.to_string_lossy(), inode)?;
    known.map_or(Ok(()), |mut known| known.remember(storage, warn))
}

/// The reason why a task cannot be evaluated for each of some points over its own inputs.
#[derive(Debug, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum RangeError {
    /// An input is both given and ranged over.
    #[error("the input {0} is given, and --each or --points has values for it, too")]
    #[hint("leave out one of them, or give {_0} a value in --each only")]
    GivenAndRanged(String),
    /// An input is ranged over more than once.
    #[error("the points have the input {0} twice")]
    #[hint("give it once: --each has all values of an input, --points one a row")]
    RangedTwice(String),
    /// A condition of the task reads an input that is ranged over.
    #[error("the input {0} cannot be given by --each or --points: a condition (:where) reads it")]
    #[hint("run the task once for each value, with -p {_0}=VALUE")]
    InCondition(String),
    /// The points of a task's own inputs cannot be combined.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    #[hint(_0.first().and_then(Explain::hint))]
    Product(Vec<ProductFault>),
    /// A sheet of points could not be read.
    #[error("cannot read the points in {path}")]
    #[hint(system_hints::for_reading(Path::new(path), source))]
    ReadPoints {
        /// The sheet.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// A sheet of points is wrong.
    #[error("the points in {path} cannot be used: {}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    #[hint(problems.first().and_then(|problem| problem.fault.hint()))]
    Points {
        /// The sheet.
        path: String,
        problems: Vec<SheetProblem>,
    },
    /// A parameter file is wrong.
    #[error("the points in {path} cannot be used: {}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    #[hint(problems.first().and_then(|problem| problem.fault.hint()))]
    Parameters {
        /// The file.
        path: String,
        problems: Vec<ParameterProblem>,
    },
    /// A sheet has no points.
    #[error("there are no points in {0}")]
    #[hint("write the names of inputs, and a row for each point")]
    NoPoints(String),
}

/// A file of points over the inputs of a task.
#[derive(Clone, Debug)]
pub struct PointsFile {
    /// Its path, or its description.
    shown: String,
    contents: Vec<u8>,
}

impl PointsFile {
    /// Reads a file. `-` is the standard input.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let is_input = path.as_os_str() == "-";
        let shown = if is_input { "the standard input".into() } else { path.display().to_string() };
        let mut contents = Vec::new();
        let most = MAX_SHEET as u64 + 1;
        let read = if is_input {
            io::stdin().take(most).read_to_end(&mut contents)
        } else {
            File::open(path).and_then(|it| it.take(most).read_to_end(&mut contents))
        };
        match read {
            Ok(_) => Ok(Self { shown, contents }),
            Err(source) => Err(RangeError::ReadPoints { path: shown, source }.into()),
        }
    }

    /// The points over the inputs of a task in a directory: the rows of a sheet, or objects of JSON.
    ///
    /// # Errors
    ///
    /// Fails if the file is wrong, or has no points.
    pub fn points(&self, dir: &Path, task: &Task) -> Result<Factor, Error> {
        let path = self.shown.clone();
        let points = match SheetFormat::detect(&self.contents) {
            SheetFormat::Ndjson | SheetFormat::JsonArray => self.parameters(dir, task)?,
            format => sweep::read(format, &self.contents)
                .map_err(|problems| RangeError::Points { path: path.clone(), problems })?,
        };
        if points.is_empty() {
            return Err(RangeError::NoPoints(path).into());
        }
        Ok(Factor { file: path.into(), points })
    }

    fn parameters(&self, dir: &Path, task: &Task) -> Result<SweepPoints, Error> {
        let wrong = |problems| RangeError::Parameters { path: self.shown.clone(), problems };
        let inputs: Vec<String> = task.inputs.iter().map(ToString::to_string).collect();
        let parameters = Parameters::read(&self.contents, &inputs).map_err(wrong)?;
        let (trees, mut defaults) = (Trees::new(dir), HashMap::new());
        for name in parameters.missing() {
            let at = inputs.iter().position(|input| input == name);
            if let Some(file) = at.and_then(|at| task.defaults[at]) {
                let default = own_file(&trees, &task.files[file.index()])?;
                defaults.insert(name.to_owned(), line(default).ok_or(NoDefaultText::NotLine));
            }
        }
        Ok(parameters.points(&defaults).map_err(wrong)?)
    }
}

/// The text of a default, if a text of a point can be the same: it is one line, and ends as [`text_contents`] does.
fn line(default: InputSource) -> Option<String> {
    let contents = match default {
        InputSource::Bytes(contents) => contents,
        InputSource::File(path) => {
            let mut contents = Vec::new();
            let most = template::MAX_TEXT as u64 + 2;
            File::open(path).ok()?.take(most).read_to_end(&mut contents).ok()?;
            contents
        }
    };
    let text = template::text(&contents).ok()?;
    (text_contents(text) == contents).then(|| text.to_owned())
}

/// Returns the task that is evaluated for each point of the product of factors, and the inputs that its jobs have.
///
/// # Errors
///
/// Fails if a column is not an input of the task, or occurs twice, or if there are too many points.
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
    for points in factors.iter().map(|factor| &factor.points) {
        for (column, name) in points.names().iter().enumerate() {
            let Some(at) = task.inputs.iter().position(|it| it.as_str() == *name) else { continue };
            points.levels(column).iter().try_for_each(|text| check_choice(&task, at, text))?;
            let conditions = task.sweeps.iter().filter_map(|it| it.product.condition.as_ref());
            if conditions.flat_map(Condition::inputs).any(|input| input == name) {
                return Err(RangeError::InCondition(name.clone()).into());
            }
        }
    }
    let product = Product { factors, ..Product::default() };
    if let Err(faults) = sweep::points(&product) {
        return Err(RangeError::Product(faults).into());
    }
    Ok(task.for_each(product))
}

/// The points for which a task from [`for_each`] is evaluated.
fn points_of(task: &Task) -> SweepPoints {
    match &task.workflow[task.workflow.root()] {
        Node::Sweep { sweep, .. } => {
            sweep::points(&task.sweeps[sweep.index()].product).unwrap_or_default()
        }
        _ => SweepPoints::default(),
    }
}

/// The contents of an input that is given as a text.
fn text_contents(text: &str) -> Vec<u8> {
    format!("{text}\n").into_bytes()
}

impl Session {
    /// Stores the outputs of each point under the name of its job, if all of them exist. Returns the fate of each.
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
                let input =
                    self.storage.inputs().store(&InputSource::Bytes(text_contents(text)))?;
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

/// The inputs of a job: each from the point, or as given.
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

/// Looks for the jobs of a task that were finished before: that needs no look at its calls. `ranged` has the inputs of its jobs, if it is evaluated
/// for each of some points. Jobs that depend on revisions count if these name the same commits, in the repositories
/// that the user names, too.
///
/// # Errors
///
/// Fails if an input or the storage cannot be read.
pub fn find_finished(
    storage: &Storage,
    bound: &mut BoundTask,
    trees: &Trees,
    ranged: Option<&RangedInputs>,
    repositories: &[(String, PathBuf)],
) -> Result<Option<FinishedJobs>, Error> {
    if !storage.jobs().of(TaskVersion::from(&bound.task)).has_any()?
        // The evaluation that follows reports an error of an input.
        || bound.take_in_sheets(storage, false).is_err()
    {
        return Ok(None);
    }
    let task = &bound.task;
    // The evaluation that follows reports an error of an input.
    let Ok(Some(given)) = storage.jobs().inputs(&bound.contents(trees)?) else { return Ok(None) };
    let jobs = storage.jobs().of(TaskVersion::from(task));
    let repositories = SourceRepositories::new(trees.dir(), repositories.to_vec());
    let names_commit = |it: &JobRevision| {
        let repository = repositories.find(&it.repository, task).ok();
        repository.and_then(|found| found.commit(&it.revision).ok()).as_ref() == Some(&it.commit)
    };
    let Some(ranged) = ranged else {
        let outputs = jobs.find(&given, &names_commit)?;
        return Ok(outputs.map(|outputs| FinishedJobs { points: None, outputs: vec![outputs] }));
    };
    let (points, mut outputs) = (points_of(task), Vec::new());
    for point in points.iter() {
        let inputs =
            job_inputs(ranged, point, &given, |text| Ok(Digest::hash_bytes(&text_contents(text))))?;
        let inputs: Vec<Digest> = inputs.into_iter().map(|(_, digest)| digest).collect();
        match jobs.find(&inputs, &names_commit)? {
            Some(found) => outputs.push(found),
            None => return Ok(None),
        }
    }
    Ok(Some(FinishedJobs { points: Some(points), outputs }))
}
