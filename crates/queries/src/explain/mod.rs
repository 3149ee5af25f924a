//! The reasons why calls would run: the differences from the nearest earlier result, down to the first causes.
//!
//! A missing call is compared with the nearest earlier successful call of its computation. Each difference is a [`Why`]. A
//! different input either was given by the user, or was made by another call. Following these leads from many calls to a
//! few [`Cause`]s. The time is linear in calls and their inputs. Nothing is changed or executed.
//!
//! A call that failed at another commit is compared with itself. The inputs of a call at its point of a sweep were never
//! read at another point, so they are new, and not reported as differing.
//!
//! The nearest earlier call is the one with the fewest different inputs.

mod cause;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::cause::Tracing;
use ce_evaluate::{Absence, Evaluation, Outcome};
use ce_files::manifest::Manifest;
use ce_git::{ChangeLog, Code, FileChange, Snapshot, Trees};
use ce_history::EarlierCalls;
use ce_model::digest::{DIRTY, Digest, ObjectId, shown_version};
use ce_model::plan::{CallId, Derivation, Derived, DerivedId, FirstRows, LiteralId, Plan, Source};
use ce_model::task::{Computation, ComputationId, InputId, Node, NodeId, Task, TaskFileId};
use ce_storage::records::{FailureRecord, Provenance};
use ce_storage::{PastCall, PriorAttempt, ResultName, split_member};
use serde::{Serialize, Serializer};

pub use self::cause::Causes;

/// A version of a computation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct CodeVersion {
    /// The commit of the repository that holds it.
    pub commit: ObjectId,
    /// The Git tree of its directory.
    pub tree: ObjectId,
    /// The tree is not the commit's.
    pub dirty: bool,
}

/// A reason why a call would run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Why {
    /// No earlier call of the computation has anything in common with it.
    NeverComputed,
    /// The nearest earlier call was of another version of the computation. The tree is the same if
    /// only the commit differs.
    #[serde(rename = "computation")]
    ComputationChanged {
        /// The version of that call.
        old: CodeVersion,
    },
    /// The computation has uncommitted changes, and no result of this version.
    Uncommitted {
        /// The version of the nearest earlier call.
        old: Option<CodeVersion>,
    },
    /// An input has other contents.
    #[serde(rename = "input")]
    InputDiffers {
        /// The number of the input.
        #[serde(rename = "input")]
        at: usize,
        /// Its digest before.
        old: Digest,
        /// Its digest now.
        new: Digest,
        /// The differing members, in words, if it is a directory and both manifests are known. Shared by all that read it.
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        members: Arc<[String]>,
    },
    /// An input belongs to a point of a sweep, and the nearest earlier call has read another one.
    #[serde(rename = "point")]
    NewAtPoint {
        /// The number of the input.
        #[serde(rename = "input")]
        at: usize,
        new: Digest,
    },
    /// An input has another source than before: the workflow has changed.
    OtherSource {
        /// The number of the input.
        #[serde(rename = "input")]
        at: usize,
    },
    /// An input is not computed yet.
    Waits {
        /// The number of the input.
        #[serde(rename = "input")]
        at: usize,
        /// The call that makes it.
        #[serde(serialize_with = "as_index")]
        call: CallId,
    },
    /// An input is a literal that is not in the storage.
    NoLiteral {
        /// The number of the input.
        #[serde(rename = "input")]
        at: usize,
        #[serde(skip)]
        literal: LiteralId,
    },
    /// The last execution failed.
    FailedLast {
        failure: FailureRecord,
        /// The log in the storage, if it printed anything.
        log: Option<String>,
    },
    /// Its outputs were collected.
    Collected {
        /// By whom, and when.
        collected: Provenance,
    },
    /// Its outputs are away, and needed.
    Away,
    /// It has a record, but its outputs are missing or damaged, or this run does not use them.
    Damaged {
        /// The fault of its own result, in words, unless outputs are only missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        defect: Option<String>,
    },
}

/// A call as its number in the plan.
fn as_index<S: Serializer>(call: &CallId, serializer: S) -> Result<S::Ok, S::Error> {
    call.index().serialize(serializer)
}

/// A first cause of why calls would run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Calls of a computation were never computed.
    NeverComputed(ComputationId),
    /// A computation has another version.
    Computation(ComputationId, CodeVersion),
    /// A computation has uncommitted changes.
    Uncommitted(ComputationId, Option<CodeVersion>),
    /// A task input has other contents.
    Input(InputId, Digest),
    /// A literal has other contents.
    Literal(LiteralId, Digest),
    /// A file of the task has other contents.
    File(TaskFileId, Digest),
    /// A Git tree differs, or is at another commit.
    Tree(DerivedId, Digest),
    /// A member of a directory that no call made has other contents.
    Member(DerivedId, Digest),
    /// The table of a sweep has other contents.
    Table(CallId),
    /// A text, file or tree of a point of a sweep is new.
    NewAtPoint(DerivedId),
    /// A literal is not in the storage.
    NoLiteral(LiteralId),
    /// The input of a computation with this number has another source.
    OtherSource(ComputationId, usize),
    /// A computation has made other outputs from the same inputs.
    OtherOutputs(ComputationId),
    /// The outputs of a computation differ, and there is no record of the earlier ones.
    Unrecorded(ComputationId),
    /// The last executions of calls of a computation failed.
    FailedLast(ComputationId),
    /// Results of a computation were collected.
    Collected(ComputationId),
    /// Outputs of a computation are away, and needed.
    Away(ComputationId),
    /// Results of a computation are damaged.
    Damaged(ComputationId),
}

/// A first cause, and the number of calls that would run because of it, among others.
#[derive(Debug)]
pub struct FirstCause {
    pub cause: Cause,
    /// The number of calls.
    pub calls: usize,
}

/// A call that would run.
#[derive(Debug)]
pub struct Explained {
    pub call: CallId,
    /// The reasons, with the causes of each; never empty.
    pub whys: Vec<(Why, Causes)>,
    /// The earlier call that it was compared with, which may have failed.
    pub nearest: Option<ResultName>,
    /// The estimated duration, in seconds, from earlier calls.
    pub seconds: Option<f64>,
}

/// The explanation of all calls that would run.
#[derive(Debug)]
pub struct Explanation {
    /// All calls that would run, in the order of the plan; the calls of a node are in the order of their points.
    pub calls: Vec<Explained>,
    /// The first causes, in the order in which the calls lead to them.
    pub causes: Vec<FirstCause>,
    /// The number of unreadable records.
    pub unread: usize,
}

impl CodeVersion {
    /// The version as in names.
    pub fn short(&self) -> String {
        shown_version(&self.commit, &self.tree, self.dirty)
    }

    /// The current version of a computation.
    pub fn from_computation(computation: &Computation) -> Self {
        let Computation { commit, tree, dirty, .. } = computation;
        Self { commit: commit.clone(), tree: tree.clone(), dirty: *dirty }
    }

    fn of_earlier(PastCall { record, .. }: &PastCall) -> Self {
        Self { commit: record.commit.clone(), tree: record.tree.clone(), dirty: record.dirty }
    }
}

impl Why {
    /// The reason that a computation had another version.
    const fn of_version(computation: &Computation, old: CodeVersion) -> Self {
        if computation.dirty {
            Self::Uncommitted { old: Some(old) }
        } else {
            Self::ComputationChanged { old }
        }
    }
}

impl Explanation {
    /// Explains all missing calls of an evaluation without execution.
    pub fn new(evaluation: &Evaluation) -> Self {
        let Evaluation { task, plan, storage, .. } = evaluation;
        let missing: Vec<CallId> = plan
            .calls()
            .map(|(id, _)| id)
            .filter(|&id| missing(evaluation, id).is_some())
            .collect();
        if missing.is_empty() {
            return Self { calls: Vec::new(), causes: Vec::new(), unread: 0 };
        }
        let earlier = ce_history::earlier(storage, task.computations.iter().map(|it| &it.name));
        let unread = earlier.unread;
        let archive = Archive::new(evaluation, earlier);
        let nearest = vec![None; plan.calls().len()];
        let mut comparison = Comparison {
            evaluation,
            archive,
            nearest,
            failed: HashMap::new(),
            members: RefCell::default(),
        };
        let calls: Vec<(CallId, Vec<Why>)> =
            missing.iter().map(|id| (*id, comparison.whys(*id))).collect();
        let seconds = estimates(&comparison, missing.into_iter());
        let (causes, sets) = Tracing::new(&comparison, &calls).finish();
        let mut explained = Vec::with_capacity(calls.len());
        for (((call, whys), causes), seconds) in calls.into_iter().zip(sets).zip(seconds) {
            explained.push(Explained {
                call,
                whys: whys.into_iter().zip(causes).collect(),
                nearest: comparison.name(call),
                seconds,
            });
        }
        order_by_points(&evaluation.task, plan, &mut explained);
        let causes = order_by_calls(&mut explained, causes);
        Self { calls: explained, causes, unread }
    }
}

/// The prior attempt at a call, if the call is missing. Tables are not calls that are executed.
fn missing(evaluation: &Evaluation, call: CallId) -> Option<Option<&PriorAttempt>> {
    evaluation.computation(call)?;
    match evaluation.outcome(call)? {
        Outcome::Absent(_, Absence::Missing(prior)) => Some(prior.as_deref()),
        _ => None,
    }
}

/// The call itself, or the first missing call behind a call that gathers a table, if there is one.
fn missing_behind(evaluation: &Evaluation, mut call: CallId) -> CallId {
    while evaluation.computation(call).is_none()
        && let Some(awaited) = awaited_by(evaluation, call).next()
    {
        call = awaited;
    }
    call
}

/// The missing calls that a call waits for, without failures that are not tried again.
fn awaited_by(evaluation: &Evaluation, call: CallId) -> impl Iterator<Item = CallId> {
    let awaited = evaluation.plan.inputs(call).iter().filter_map(|it| evaluation.plan.awaited(*it));
    let awaited = awaited.filter(|it| !evaluation.is_given_up(*it));
    awaited.filter(|it| evaluation.outcome(*it).is_none_or(|it| it.known().is_none()))
}

/// The calls of a plan, with their nearest earlier calls.
struct Comparison<'a> {
    evaluation: &'a Evaluation,
    archive: Archive<'a>,
    /// The nearest earlier call of each missing one.
    nearest: Vec<Option<usize>>,
    /// The calls that failed at another commit.
    failed: HashMap<CallId, ResultName>,
    /// The differences of directories that were looked for.
    members: RefCell<HashMap<[Digest; 2], Arc<[String]>>>,
}

impl Comparison<'_> {
    /// Finds the nearest earlier call of a missing one. Returns the reasons why the missing one
    /// would run.
    fn whys(&mut self, id: CallId) -> Vec<Why> {
        let Evaluation { plan, storage, .. } = self.evaluation;
        let Some(computation) = plan.computation(id) else { return Vec::new() };
        let ingredients: Vec<Ingredient> =
            plan.inputs(id).iter().map(|source| self.ingredient(*source)).collect();
        let nearest = self.archive.nearest(computation, &ingredients);
        self.nearest[id.index()] = nearest;
        if let Some(Some(prior)) = missing(self.evaluation, id) {
            if prior.away {
                return vec![Why::Away];
            }
            if let Some(failure) = &prior.failure {
                let log = self
                    .evaluation
                    .outcome(id)
                    .and_then(|it| storage.attempts().failure_log(it.name()));
                return vec![Why::FailedLast { failure: failure.clone(), log }];
            }
            if let Some(tombstone) = &prior.collected {
                return vec![Why::Collected { collected: tombstone.collected.clone() }];
            }
        }
        if let Some((name, why)) = self.failed_elsewhere(id, nearest, &ingredients) {
            self.nearest[id.index()] = None;
            self.failed.insert(id, name);
            return [why].into_iter().chain(self.absent(id)).collect();
        }
        let Some(nearest) = nearest else {
            let dirty = self.evaluation.computation(id).is_some_and(|it| it.dirty);
            let mut whys =
                vec![if dirty { Why::Uncommitted { old: None } } else { Why::NeverComputed }];
            whys.extend(self.absent(id));
            return whys;
        };
        let mut whys = self.differences(id, nearest);
        if whys.is_empty() {
            // It existed, with the same inputs if the missing ones come out the same.
            match &self.archive.calls[nearest].collected {
                Some(collected) => whys.push(Why::Collected { collected: collected.clone() }),
                None if !self.absent(id).is_empty() => {}
                None if self.archive.has_inputs(nearest, &ingredients) => {
                    whys.push(self.unusable(id, nearest));
                }
                None => {
                    // An input is derived from a value that is not stored yet: no result has it.
                    self.nearest[id.index()] = None;
                    whys.push(Why::NeverComputed);
                }
            }
        }
        whys.extend(self.absent(id));
        whys
    }

    /// The reason why a recorded result of the same call is not used: its own, or one that could be taken over.
    fn unusable(&self, id: CallId, nearest: usize) -> Why {
        let name = &self.archive.calls[nearest].name;
        if self.evaluation.storage.evictions().is_marked_away(name).unwrap_or(false) {
            return Why::Away;
        }
        let prior = missing(self.evaluation, id).flatten();
        let defect = prior.and_then(|prior| prior.damage.as_ref()).map(|it| it.what.clone());
        Why::Damaged { defect }
    }

    /// The name of the call that a missing one is compared with.
    fn name(&self, call: CallId) -> Option<ResultName> {
        let nearest = self.nearest[call.index()].map(|at| &self.archive.calls[at].name);
        nearest.or_else(|| self.failed.get(&call)).cloned()
    }

    /// An input with its digest, or with the one that it would have if nothing had changed.
    fn ingredient(&self, source: Source) -> Ingredient {
        let digest = self.evaluation.digest(source).or_else(|| self.digest_before(source));
        Ingredient { source, digest }
    }

    /// The digest that an output would have if nothing had changed.
    fn digest_before(&self, source: Source) -> Option<Digest> {
        let Source::Output { call, number } = source else { return None };
        let earlier = &self.archive.calls[self.nearest[call.index()]?];
        Some(earlier.record.outputs.get(usize::from(number))?.digest)
    }

    /// The missing inputs of a call.
    fn absent(&self, id: CallId) -> Vec<Why> {
        let mut absent = Vec::new();
        for (at, &source) in self.evaluation.plan.inputs(id).iter().enumerate() {
            if self.evaluation.digest(source).is_some() {
                continue;
            }
            let plan = &self.evaluation.plan;
            match (plan.awaited(source), plan.origin(source)) {
                (Some(call), _) => {
                    absent.push(Why::Waits { at, call: missing_behind(self.evaluation, call) });
                }
                (None, Source::Literal(literal)) => absent.push(Why::NoLiteral { at, literal }),
                (None, _) => {}
            }
        }
        absent
    }

    /// The known differences between a call and an earlier one.
    fn differences(&self, id: CallId, earlier: usize) -> Vec<Why> {
        let Some(computation) = self.evaluation.computation(id) else { return Vec::new() };
        let call = &self.archive.calls[earlier];
        let mut whys = Vec::new();
        if !self.archive.is_same_version(call, computation) {
            let old = CodeVersion::of_earlier(call);
            whys.push(Why::of_version(computation, old));
        }
        for (at, source) in self.evaluation.plan.inputs(id).iter().enumerate() {
            let new = self.evaluation.digest(*source);
            let Some(&old) = call.record.inputs.get(at) else { continue };
            if new == Some(old) {
                continue;
            }
            if let Some(new) = new
                && self.is_of_point(id, *source)
            {
                whys.push(Why::NewAtPoint { at, new });
            } else if !self.archive.fits(earlier, at, *source) {
                whys.push(Why::OtherSource { at });
            } else if let Some(new) = new {
                let members = self.members(*source, old);
                whys.push(Why::InputDiffers { at, old, new, members });
            }
        }
        whys
    }

    /// The first members in which a directory differs from its earlier state.
    fn members(&self, source: Source, old: Digest) -> Arc<[String]> {
        let Some(new) = self.evaluation.digest(source) else { return Arc::default() };
        if !(old.is_directory() && new.is_directory()) {
            return Arc::default();
        }
        let mut known = self.members.borrow_mut();
        let members = known.entry([old, new]).or_insert_with(|| {
            let storage = &self.evaluation.storage;
            let was = storage.inputs().expected(old);
            let was = was.and_then(|(file, _)| storage.values().manifest(&file.name, &old));
            // Unreadable parts are left out silently.
            let was = was.ok().flatten();
            let is = self.evaluation.manifest(source);
            was.zip(is).map_or_else(Arc::default, |(was, is)| first_differences(&was, &is))
        });
        Arc::clone(members)
    }
}

/// The greatest number of members of a directory that are named.
const MEMBERS: usize = 5;

/// The first differences of directories, in words.
fn first_differences(was: &Manifest, is: &Manifest) -> Arc<[String]> {
    let all = was.differences(is);
    let named = all.iter().take(MEMBERS).map(ToString::to_string);
    let more = all.len().saturating_sub(MEMBERS);
    named.chain((more > 0).then(|| format!("{more} more differ"))).collect()
}

impl Comparison<'_> {
    /// The failure of a call at another commit, and the reason why it would run, unless the nearest result is of the same
    /// inputs. `None` if the record is too old to tell.
    fn failed_elsewhere(
        &self,
        id: CallId,
        nearest: Option<usize>,
        inputs: &[Ingredient],
    ) -> Option<(ResultName, Why)> {
        if nearest.is_some_and(|at| self.archive.has_inputs(at, inputs)) {
            return None;
        }
        let computation = self.evaluation.computation(id)?;
        let (name, failure) =
            self.archive.failed(self.evaluation.plan.computation(id)?, inputs)?.clone();
        let (commit, tree) = (failure.commit.clone(), failure.tree.clone()?);
        let why = if tree == computation.tree && failure.is_isolated() {
            let log = self.evaluation.storage.attempts().failure_log(&name);
            Why::FailedLast { failure, log }
        } else {
            let old = CodeVersion { commit, tree, dirty: name.version().starts_with(DIRTY) };
            Why::of_version(computation, old)
        };
        Some((name, why))
    }
}

impl Comparison<'_> {
    /// Whether an input of a call belongs to a point, not to something else that has changed.
    fn is_of_point(&self, call: CallId, source: Source) -> bool {
        let plan = &self.evaluation.plan;
        let Source::Derived { value, .. } = source else { return false };
        let Derived { how, from } = plan.value(value);
        match (how, from) {
            (Derivation::Text { is_of_point, .. }, _) => *is_of_point,
            (
                Derivation::File(_)
                | Derivation::Literal(_)
                | Derivation::Contents(_)
                | Derivation::Tree(_, Some(_)),
                _,
            ) => true,
            (Derivation::Tree(..), Some(Source::Output { call, .. })) => {
                plan.call(*call).point.is_some()
            }
            (Derivation::Tree(..), Some(from)) => self.is_of_point(call, *from),
            (Derivation::Member(_), Some(from)) => {
                self.reads_member_of_point(call) || self.is_of_point(call, *from)
            }
            (Derivation::Tree(..) | Derivation::Member(_), None)
            | (Derivation::Points(_) | Derivation::Wrong(_), _) => false,
        }
    }

    /// Whether a call reads a member whose path has names that a sweep binds.
    fn reads_member_of_point(&self, call: CallId) -> bool {
        let Evaluation { task, plan, .. } = self.evaluation;
        let inputs = task.workflow[plan.call(call).node].inputs().iter();
        inputs.map(|it| it.node).any(|it| match &task.workflow[it] {
            Node::Member { path, .. } => path.names().next().is_some(),
            _ => false,
        })
    }
}

/// Estimates the durations of missing calls, in seconds: the duration of the nearest earlier call, or else
/// the median of the computation's calls.
fn estimates(comparison: &Comparison<'_>, calls: impl Iterator<Item = CallId>) -> Vec<Option<f64>> {
    let Comparison { evaluation, archive, nearest, .. } = comparison;
    let mut medians: HashMap<ComputationId, Option<f64>> = HashMap::new();
    calls
        .map(|call| {
            let nearest = nearest[call.index()].and_then(|at| archive.calls[at].record.seconds());
            nearest.or_else(|| {
                let computation = evaluation.plan.computation(call)?;
                *medians.entry(computation).or_insert_with(|| archive.median(computation))
            })
        })
        .collect()
}

/// Puts the calls of each node into the order of their points. These nodes keep the places of its calls, since other calls
/// wait for them.
fn order_by_points(task: &Task, plan: &Plan, calls: &mut Vec<Explained>) {
    let mut known = FirstRows::default();
    let mut places: HashMap<NodeId, Vec<usize>> = HashMap::new();
    for (place, explained) in calls.iter().enumerate() {
        places.entry(plan.call(explained.call).node).or_default().push(place);
    }
    let mut order = vec![0; calls.len()];
    for places in places.into_values() {
        let mut sorted = places.clone();
        sorted.sort_by_cached_key(|place| plan.first_rows(task, calls[*place].call, &mut known));
        sorted.into_iter().zip(places).for_each(|(call, place)| order[call] = place);
    }
    let mut placed: Vec<(usize, Explained)> = order.into_iter().zip(calls.drain(..)).collect();
    placed.sort_unstable_by_key(|(place, _)| *place);
    calls.extend(placed.into_iter().map(|(_, explained)| explained));
}

/// Numbers the causes in the order in which the calls lead to them.
fn order_by_calls(calls: &mut [Explained], causes: Vec<FirstCause>) -> Vec<FirstCause> {
    let mut order: Vec<usize> = Vec::with_capacity(causes.len());
    let mut is_known = vec![false; causes.len()];
    let found = calls.iter().flat_map(|it| &it.whys).flat_map(|(_, causes)| causes.iter());
    for cause in found.chain(0..causes.len()) {
        if !std::mem::replace(&mut is_known[cause], true) {
            order.push(cause);
        }
    }
    let mut numbers = vec![0; causes.len()];
    order.iter().enumerate().for_each(|(number, &cause)| numbers[cause] = number);
    for (_, causes) in calls.iter_mut().flat_map(|it| &mut it.whys) {
        *causes = causes.renumbered(&numbers);
    }
    let mut numbered: Vec<(usize, FirstCause)> = numbers.into_iter().zip(causes).collect();
    numbered.sort_unstable_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, cause)| cause).collect()
}

/// The greatest number of commits in a list.
const MAX_COMMITS: usize = 10;

/// The change of a computation between two versions, as far as its repository has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// New commits that touched it.
    pub came: Option<ChangeLog>,
    /// Commits that touched it and are not in its history any more.
    pub went: Option<ChangeLog>,
    /// The changed files.
    pub files: Option<Vec<FileChange>>,
    /// The files with uncommitted changes, relative to the task.
    #[serde(serialize_with = "as_texts")]
    pub uncommitted: Vec<PathBuf>,
}

/// Serializes paths as texts, even if they are not UTF-8.
fn as_texts<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}

/// Returns the changes behind the causes of an explanation, by the indices of the causes.
///
/// `dir` is any directory in the repository.
pub fn changes(dir: &Path, task: &Task, explanation: &Explanation) -> HashMap<usize, Change> {
    let real = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let snapshot = Snapshot::open(dir, task.commit.full()).ok();
    let code = CodeHistory { dir, real, task, snapshot };
    let causes = explanation.causes.iter().enumerate();
    causes
        .filter_map(|(at, first)| match &first.cause {
            Cause::Computation(id, old) => Some((at, code.change(*id, Some(old)))),
            Cause::Uncommitted(id, old) => Some((at, code.change(*id, old.as_ref()))),
            _ => None,
        })
        .collect()
}

/// The history of a task's computations. Missing objects are left out.
struct CodeHistory<'a> {
    dir: &'a Path,
    real: PathBuf,
    task: &'a Task,
    snapshot: Option<Snapshot>,
}

impl CodeHistory<'_> {
    fn change(&self, id: ComputationId, old: Option<&CodeVersion>) -> Change {
        let computation = &self.task.computations[id.index()];
        let mut change = Change::default();
        if let (true, Some(place)) = (computation.dirty, &computation.checked_out) {
            let mut changed = self.task.changed.clone();
            changed.retain(|path| self.real.join(path).starts_with(place));
            change.uncommitted = changed;
        }
        if let (Some(old), Some((trees, inside))) = (old, self.place(computation)) {
            let (older, newer) = (&old.commit, &computation.commit);
            change.came = trees.log(&inside, [older, newer], MAX_COMMITS).ok().flatten();
            change.went = trees.log(&inside, [newer, older], MAX_COMMITS).ok().flatten();
            let old = Code { commit: &old.commit, tree: &old.tree };
            change.files = trees.diff([old, computation.into()]).ok().flatten();
            // A computation that has always been one file is shown by the name of that.
            if let (Some([file]), Some(name)) =
                (change.files.as_deref_mut(), computation.file_name())
            {
                file.path = name.into();
            }
        }
        change
    }

    /// The repository with a computation, and the computation's path in it.
    fn place(&self, computation: &Computation) -> Option<(Trees, PathBuf)> {
        // A checked out computation may be in another repository than the task.
        if let Some(real) = &computation.checked_out {
            let top = ce_git::top(real)?;
            return Some((Trees::new(real), real.strip_prefix(&top).ok()?.to_owned()));
        }
        let spot = self.snapshot.as_ref()?.find(&computation.place()).ok()?;
        Some((Trees::new(self.dir), spot.inside()))
    }
}

/// The greatest number of earlier calls that are compared with a call, so the time is linear in the
/// calls.
const MAX_COMPARED: usize = 256;

/// An input of a missing call.
#[derive(Clone, Copy, Debug)]
struct Ingredient {
    source: Source,
    /// Its digest, or its earlier digest if the current one is unknown.
    digest: Option<Digest>,
}

/// The earlier calls of a task's computations.
struct Archive<'a> {
    evaluation: &'a Evaluation,
    /// The newest first.
    calls: Vec<PastCall>,
    /// The newest failure from each list of inputs.
    failures: HashMap<(ComputationId, Vec<Digest>), (ResultName, FailureRecord)>,
    by_name: HashMap<ResultName, usize>,
    by_computation: HashMap<ComputationId, Vec<usize>>,
    by_input: HashMap<(ComputationId, usize, Digest), Vec<usize>>,
}

/// The distance of an earlier call from a call. The least is the nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Distance {
    differing: usize,
    /// Different inputs with other sources.
    misfits: usize,
    version: u8,
    collected: bool,
    age: usize,
}

impl<'a> Archive<'a> {
    fn new(evaluation: &'a Evaluation, earlier: EarlierCalls) -> Self {
        let EarlierCalls { calls, failures, .. } = earlier;
        let computations = evaluation.task.computations.iter().enumerate();
        let ids: HashMap<&str, ComputationId> =
            computations.map(|(at, it)| (it.name.as_str(), ComputationId::at(at))).collect();
        let mut by_name = HashMap::new();
        let mut by_computation: HashMap<_, Vec<usize>> = HashMap::new();
        let mut by_input: HashMap<_, Vec<usize>> = HashMap::new();
        for (at, PastCall { name, record, .. }) in calls.iter().enumerate() {
            let Some(&id) = ids.get(record.computation.as_str()) else { continue };
            by_name.entry(name.clone()).or_insert(at);
            by_computation.entry(id).or_default().push(at);
            for (number, digest) in record.inputs.iter().enumerate() {
                by_input.entry((id, number, *digest)).or_default().push(at);
            }
        }
        let mut newest = HashMap::new();
        for (name, failure) in failures {
            let Some(&id) = ids.get(failure.computation.as_str()) else { continue };
            newest.entry((id, failure.inputs.clone())).or_insert((name, failure));
        }
        Self { evaluation, calls, failures: newest, by_name, by_computation, by_input }
    }

    /// The earlier calls of a computation, the newest first.
    fn earlier_calls(&self, computation: ComputationId) -> &[usize] {
        self.by_computation.get(&computation).map_or(&[], Vec::as_slice)
    }

    /// Returns the nearest earlier call of a computation; `None` if none has anything in common
    /// with it.
    fn nearest(&self, id: ComputationId, inputs: &[Ingredient]) -> Option<usize> {
        let computation = &self.evaluation.task.computations[id.index()];
        let mut shared: Vec<&[usize]> = inputs
            .iter()
            .enumerate()
            .filter_map(|(number, input)| self.by_input.get(&(id, number, input.digest?)))
            .map(Vec::as_slice)
            .collect();
        // An input that few calls share is the most significant.
        shared.sort_by_key(|calls| calls.len());
        shared.push(self.earlier_calls(id));
        let (distance, at) = shared
            .into_iter()
            .flatten()
            .take(MAX_COMPARED)
            .map(|&at| (self.distance(at, computation, inputs), at))
            .min()?;
        let unrelated = distance.misfits > 0 && distance.misfits == inputs.len();
        (!unrelated).then_some(at)
    }

    /// Whether an earlier call had these inputs.
    fn has_inputs(&self, at: usize, inputs: &[Ingredient]) -> bool {
        known(inputs).is_some_and(|inputs| self.calls[at].record.inputs == inputs)
    }

    /// Returns the newest failure of a computation with these inputs, at any commit.
    fn failed(
        &self,
        id: ComputationId,
        inputs: &[Ingredient],
    ) -> Option<&(ResultName, FailureRecord)> {
        self.failures.get(&(id, known(inputs)?))
    }

    fn distance(&self, at: usize, computation: &Computation, inputs: &[Ingredient]) -> Distance {
        let earlier = &self.calls[at];
        let mut distance = Distance {
            differing: 0,
            misfits: 0,
            version: 2,
            collected: earlier.collected.is_some(),
            age: at,
        };
        if self.is_same_version(earlier, computation) {
            distance.version = 0;
        } else if earlier.record.tree == computation.tree {
            distance.version = 1;
        }
        for (number, Ingredient { source, digest }) in inputs.iter().enumerate() {
            let differs = digest.is_some() && earlier.record.inputs.get(number) != digest.as_ref();
            let unknown = digest.is_none();
            distance.differing += usize::from(differs);
            if (differs || unknown) && !self.fits(at, number, *source) {
                distance.misfits += 1;
            }
        }
        distance
    }

    /// Whether an input of an earlier call had the same source: an output of the same computation
    /// at any commit, a task input, or the same literal.
    fn fits(&self, earlier: usize, number: usize, source: Source) -> bool {
        let Some(file) = self.calls[earlier].input(number) else { return true };
        let Evaluation { task, plan, .. } = self.evaluation;
        let (source, path) = plan.whole(source);
        let (file, member) = split_member(file);
        if path.as_deref() != member && !matches!(source, Source::Literal(_)) {
            return false;
        }
        match source {
            Source::Input(_) | Source::File(_) | Source::Derived { .. } => {
                file.starts_with("tinputs/")
            }
            Source::Literal(id) => file.starts_with(plan.literals()[id.index()].as_str()),
            Source::Output { call, number } => {
                let Some(computation) = plan.computation(call) else {
                    return file.starts_with("tables/");
                };
                let computation = &task.computations[computation.index()];
                let maker = ResultName::maker(file).map(|(_, name, number)| (name, number));
                maker == Some((computation.name.as_str(), number))
            }
        }
    }

    /// Returns the earlier call that made an input of another one, if it still has a record.
    fn maker(&self, earlier: usize, number: usize) -> Option<usize> {
        let call = &self.calls[earlier];
        let file = call.input(number)?;
        let (name, _, output) = ResultName::maker(file)?;
        let &maker = self.by_name.get(&name)?;
        let output = self.calls[maker].record.outputs.get(usize::from(output))?;
        // An output that was computed again may have other contents. The digests of members are not recorded.
        let same = Some(&output.digest) == call.record.inputs.get(number);
        (same || split_member(file).1.is_some()).then_some(maker)
    }

    /// The median duration of calls of a computation, in seconds.
    fn median(&self, computation: ComputationId) -> Option<f64> {
        let calls = self.earlier_calls(computation).iter();
        let mut seconds: Vec<f64> =
            calls.filter_map(|&at| self.calls[at].record.seconds()).collect();
        seconds.sort_unstable_by(f64::total_cmp);
        seconds.get(seconds.len() / 2).copied()
    }

    /// Whether an earlier call was of the current version of a computation, or serves all of the same tree, so that the
    /// commit does not matter.
    fn is_same_version(
        &self,
        PastCall { record, .. }: &PastCall,
        computation: &Computation,
    ) -> bool {
        record.tree == computation.tree
            && (self.evaluation.storage.equivalents().serves_tree(record)
                || shown_version(&record.commit, &record.tree, record.dirty)
                    == computation.version())
    }
}

/// The digests of inputs, if all of them are known.
fn known(inputs: &[Ingredient]) -> Option<Vec<Digest>> {
    inputs.iter().map(|it| it.digest).collect()
}
