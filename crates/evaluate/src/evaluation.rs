//! An evaluation: a task, its plan, its leaf files, the storage, and the outcome of each call so
//! far. All output of a run is derived from this value.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::{fs, mem};

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::derived_values::DerivedValues;
use super::{Absence, CallError, CallFailure, How, Outcome, Unavailable, Unsatisfiable};
use ce_executor::{Offer, own_peak_memory};
use ce_files::manifest::Manifest;
use ce_git::SourceRepositories;
use ce_model::digest::Digest;
use ce_model::exit::Exit;
use ce_model::name::{ComputationName, StorageName};
use ce_model::plan::{CallId, Derivation, Plan, Source};
use ce_model::resources::Resources;
use ce_model::task::{Computation, LabelPaths, Task, TaskFileId};
use ce_storage::records::{CallRecord, OutputSource, Published};
use ce_storage::{
    ComputationVersion, Entry, Input, InputSource, Inputs, Outputs, Record, RecordState,
    ResultName, Storage, StorageError, Stored, TaskVersion,
};

/// The leaf files, which exist before any call.
#[derive(Clone, Debug)]
pub struct Files {
    /// The task's inputs, in order; `None` for an input that was not given because no requested call reads it.
    pub inputs: Vec<Option<Input>>,
    /// The plan's literals, in order; `None` for a missing one.
    pub literals: Vec<Option<Stored>>,
    /// The task's own files, in order; `None` for one whose path depends on names that a sweep binds.
    pub own: Vec<Option<Input>>,
    /// The sources of the task's own files.
    pub own_sources: Vec<Option<InputSource>>,
    /// The source of each input; `None` for one that was not given and is the task's default.
    pub given: Vec<Option<InputSource>>,
    /// What the user has given for each input: a sheet that names files has paths there. `None` for a default.
    pub as_given: Vec<Option<InputSource>>,
}

/// An evaluation of a task, which may still be running: other threads add outcomes, each once.
#[derive(Debug)]
pub struct Evaluation {
    pub task: Arc<Task>,
    pub plan: Arc<Plan>,
    /// The leaf files, which exist before any call.
    pub files: Files,
    /// The storage that holds the results.
    pub storage: Arc<Storage>,
    /// The contents of small inputs that need not be in the storage.
    pub(super) texts: Texts,
    /// The plan's derived values.
    pub(super) derived: DerivedValues,
    /// The suspended calls that are to be continued, as they have said.
    pub(super) continuable: ContinuableCalls,
    /// Whether a call has ended so that the evaluation cannot succeed.
    pub(super) any_failed: AtomicBool,
    outcomes: boxcar::Vec<CallOutcome>,
    /// The results that this evaluation has made or taken over.
    made: Mutex<HashMap<ResultName, OutputSource>>,
    labels: OnceLock<LabelPaths>,
    /// For each computation that has used more memory than it had reserved, the call that has used most.
    excess: Mutex<BTreeMap<ComputationName, MemoryExcess>>,
}

/// The memory that a call has reserved, and the peak of its largest process, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct MemoryExcess {
    pub reserved: u64,
    pub used: u64,
}

/// The outcome of a call.
#[derive(Debug, Default)]
struct CallOutcome {
    first: OnceLock<Outcome>,
    /// The outcome after its outputs were demanded, if they were away, and were needed.
    demanded: OnceLock<Box<Outcome>>,
}

impl CallOutcome {
    fn last(&self) -> Option<&Outcome> {
        self.demanded.get().map(|outcome| &**outcome).or_else(|| self.first.get())
    }
}

/// The suspended calls that are to be continued, as they have said.
#[derive(Debug, Default)]
pub(super) struct ContinuableCalls(Mutex<HashSet<CallId>>);

impl ContinuableCalls {
    /// Whether a suspended call has said that it is to be continued.
    pub(super) fn has(&self, call: CallId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&call)
    }

    /// Notes the answer of a suspended call.
    pub(super) fn set(&self, call: CallId, is_continuable: bool) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_continuable {
            known.insert(call);
        } else {
            known.remove(&call);
        }
    }
}

/// The contents of small files.
pub type Texts = HashMap<Digest, Vec<u8>>;

impl Evaluation {
    /// Returns an evaluation whose calls have all not ended.
    pub fn new(
        task: impl Into<Arc<Task>>,
        plan: impl Into<Arc<Plan>>,
        files: Files,
        storage: impl Into<Arc<Storage>>,
    ) -> Self {
        let plan: Arc<Plan> = plan.into();
        let task: Arc<Task> = task.into();
        let evaluation = Self {
            derived: DerivedValues::new(&task, SourceRepositories::new(Path::new(""), Vec::new())),
            task,
            texts: Texts::new(),
            continuable: ContinuableCalls::default(),
            any_failed: AtomicBool::new(false),
            outcomes: boxcar::Vec::new(),
            made: Mutex::default(),
            plan,
            files,
            storage: storage.into(),
            labels: OnceLock::new(),
            excess: Mutex::default(),
        };
        evaluation.grow();
        evaluation
    }

    /// Returns an evaluation of the same plan, as [`new`](Self::new) would make it.
    #[must_use]
    pub fn again(&self) -> Self {
        let (task, storage) = (Arc::clone(&self.task), Arc::clone(&self.storage));
        let evaluation = Self::new(task, self.plan.again(&self.task), self.files.clone(), storage);
        evaluation.reading(Arc::clone(&self.derived.sources), self.texts.clone())
    }

    /// Adds the new calls of the plan. One thread at a time may do this.
    pub(super) fn grow(&self) {
        for _ in self.outcomes.count()..self.plan.calls().len() {
            self.outcomes.push(CallOutcome::default());
        }
        self.derived.grow(self.plan.derived().len());
    }

    /// Ends an evaluation with which the program ends: all but the storage is left to the system, which frees it at once.
    pub fn leave(self) {
        let Self { task, plan, files, storage, outcomes, .. } = self;
        mem::forget((task, plan, files, outcomes));
        drop(storage);
    }

    /// The same with the repositories that the task reads, and the contents of inputs that may name
    /// revisions of them and need not be in the storage.
    #[must_use]
    pub fn reading(self, sources: Arc<SourceRepositories>, texts: Texts) -> Self {
        let derived = DerivedValues::new(&self.task, sources);
        derived.grow(self.plan.derived().len());
        Self { derived, texts, ..self }
    }

    /// The results that this evaluation has made or taken over, and that it is about to publish.
    pub(super) fn made(&self) -> MutexGuard<'_, HashMap<ResultName, OutputSource>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the outcome of a call. Returns true unless it had one, and was not demanded since.
    ///
    /// A call that finds a result of this evaluation is the same as the call that made it, and ends like that call.
    pub(super) fn set(&self, call: CallId, mut outcome: Outcome) -> bool {
        if let Outcome::Present(Outputs { name, .. }, source) = &mut outcome {
            match source {
                OutputSource::Reused => *source = self.made().get(name).copied().unwrap_or(*source),
                OutputSource::Executed | OutputSource::TakenOver => {
                    self.made().insert(name.clone(), *source);
                }
            }
        }
        // It failed, and not as a point that may, or its executor lost or refused it.
        let is_failure = match outcome.how() {
            How::Failed => !self.is_allowed(call, &outcome),
            how => how == How::Unfinished,
        };
        if is_failure {
            self.any_failed.store(true, Ordering::Release);
        }
        let known = &self.outcomes[call.index()];
        match known.first.set(outcome) {
            Ok(()) => true,
            Err(outcome) => self.was_away(call) && known.demanded.set(Box::new(outcome)).is_ok(),
        }
    }

    /// Returns the outcome of a call, if it has ended. A thread that only looks may know a call of the plan before the
    /// evaluation has it.
    pub fn outcome(&self, call: CallId) -> Option<&Outcome> {
        self.outcomes.get(call.index())?.last()
    }

    /// Returns the outcomes of the calls that have ended, in the order of the plan.
    pub fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter_map(|(_, outcome)| outcome.last())
    }

    /// Returns the outputs of a call that were away when it was found, whether or not they are now.
    pub(super) fn away_outputs(&self, call: CallId) -> Option<&Outputs> {
        match self.outcomes.get(call.index())?.first.get() {
            Some(Outcome::Known(outputs, Unavailable::Away)) => Some(outputs),
            _ => None,
        }
    }

    /// Returns the text of a task input, of this evaluation or of an earlier one, if it is one short line.
    pub fn short_text(&self, digest: &Digest) -> Option<String> {
        let given =
            self.files.inputs.iter().zip(&self.files.given).filter_map(|(input, source)| {
                source
                    .as_ref()
                    .filter(|_| input.as_ref().is_some_and(|it| it.file.digest == *digest))
            });
        let stored = self.storage.inputs().short_text(digest);
        stored.or_else(|| given.into_iter().find_map(|source| source.short_text(digest)))
    }

    /// Returns the computation of a call, unless that gathers a table.
    pub fn computation(&self, call: CallId) -> Option<&Computation> {
        self.plan.computation(call).map(|id| &self.task.computations[id.index()])
    }

    /// Returns the name that a call is defined by, or else the labels that lead to it: see [`LabelPaths::path`].
    pub fn label_path(&self, call: CallId) -> Option<String> {
        self.labels().path(&self.task, self.plan.call(call).node)
    }

    /// Returns the places of the nodes in the workflow.
    pub fn labels(&self) -> &LabelPaths {
        self.labels.get_or_init(|| LabelPaths::new(&self.task.workflow))
    }

    /// Returns the digest of a source, if it is known.
    pub fn digest(&self, source: Source) -> Option<Digest> {
        match source {
            Source::Input(_) | Source::File(_) | Source::Derived { .. } => {
                Some(self.input(source)?.file.digest)
            }
            Source::Literal(id) => self.files.literals[id.index()].as_ref().map(|file| file.digest),
            Source::Output { call, number } => {
                let known = self.outcome(call)?.known();
                let outputs = known.or_else(|| self.away_outputs(call))?;
                outputs.files.get(usize::from(number)).map(|file| file.digest)
            }
        }
    }

    /// Returns the name of a source's file, which need not exist.
    pub fn name(&self, source: Source) -> Option<String> {
        Some(match source {
            Source::Input(_) | Source::File(_) | Source::Derived { .. } => {
                self.input(source)?.file.name.clone()
            }
            Source::Literal(id) => self.plan.literals()[id.index()].to_string(),
            Source::Output { call, number } => self.outcome(call)?.name().output(number.into()),
        })
    }

    /// Whether a source's file is in the storage.
    pub fn is_there(&self, source: Source) -> bool {
        match source {
            Source::Input(_) | Source::File(_) | Source::Derived { .. } => {
                self.input(source).is_some_and(|input| input.there)
            }
            Source::Literal(id) => self.files.literals[id.index()].is_some(),
            Source::Output { call, .. } => {
                self.outcome(call).is_some_and(|outcome| outcome.outputs().is_some())
            }
        }
    }

    /// Whether a source's file is in the storage in an archive, which a run that needs it unpacks.
    pub fn is_archived(&self, source: Source) -> bool {
        let outcome = self.plan.awaited(source).and_then(|call| self.outcome(call));
        outcome.map(Outcome::how) == Some(How::Archived)
    }

    /// Whether a source's file is in the storage, if only in an archive.
    pub fn is_kept(&self, source: Source) -> bool {
        self.is_there(source) || self.is_archived(source)
    }

    /// Returns a source's file, if it is in the storage.
    pub fn stored(&self, source: Source) -> Option<Stored> {
        match source {
            Source::Input(_) | Source::File(_) | Source::Derived { .. } => {
                let input = self.input(source)?;
                input.there.then(|| input.file.clone())
            }
            Source::Literal(id) => self.files.literals[id.index()].clone(),
            Source::Output { call, number } => {
                let outputs = self.outcome(call)?.outputs()?;
                let Published { digest, stamp } = *outputs.files.get(usize::from(number))?;
                Some(Stored { name: outputs.name.output(number.into()), digest, stamp })
            }
        }
    }

    /// The task input, file of the task, or value of a tree that a source is.
    fn input(&self, source: Source) -> Option<&Input> {
        match source {
            Source::Input(id) => self.files.inputs.get(id.index())?.as_ref(),
            Source::File(id) => self.files.own.get(id.index())?.as_ref(),
            Source::Derived { value, number } => self.derived.input(value, number),
            Source::Literal(_) | Source::Output { .. } => None,
        }
    }

    /// Returns the files of the task's outputs, if all of them exist.
    pub fn outputs(&self) -> Option<Vec<Stored>> {
        self.plan.outputs().iter().map(|source| self.stored(*source)).collect()
    }
}

impl Files {
    /// Finds the leaf files; with `store`, copies inputs and the task's own files into the storage.
    /// Large inputs are read on all cores.
    pub fn new(
        task: &Task,
        plan: &Plan,
        inputs: &[InputSource],
        own: &[Option<InputSource>],
        storage: &Storage,
        store: bool,
    ) -> Result<Self, StorageError> {
        debug_assert!(task.is_bound(), "a value with free names is not bound");
        announce(task, plan, storage)?;
        let sources: Vec<&InputSource> = inputs.iter().chain(own.iter().flatten()).collect();
        let stored = storage.inputs();
        let names = plan.literals().iter().map(StorageName::as_str);
        let (mut found, literals) = stored.look_together(&sources, names.clone(), |known| {
            let found = take_in(&stored, &sources, known, store)?;
            let literals = names.map(|name| stored.literal(name));
            Ok((found, literals.collect::<Result<_, StorageError>>()?))
        })?;
        let mut found_own = found.split_off(inputs.len()).into_iter();
        let found = found.into_iter().map(Some).collect();
        let own_files = own.iter().map(|source| source.as_ref().and_then(|_| found_own.next()));
        let given = inputs.iter().cloned().map(Some).collect();
        let own_sources = own.to_vec();
        let (own, as_given) = (own_files.collect(), Vec::new());
        Ok(Self { inputs: found, literals, own, own_sources, given, as_given })
    }
}

/// Finds the inputs that some sources are, in their order; with `store`, copies them into the storage. Digests may be known. Large files are read on
/// all cores.
///
/// # Errors
///
/// Fails if a source cannot be read, or the storage cannot be read or written.
pub(crate) fn take_in(
    stored: &Inputs<'_>,
    sources: &[&InputSource],
    known: &[Option<Digest>],
    store: bool,
) -> Result<Vec<Input>, StorageError> {
    let take_in = |at: &usize| Ok((*at, stored.take_in(sources[*at], known[*at], store)?));
    let mut order: Vec<usize> = (0..sources.len()).collect();
    // The number of open directories is limited, so files of one directory are taken together. Unknown ones
    // stay in order.
    order.sort_by_key(|at| known[*at].map(|digest| digest.sha1));
    let mut found: Vec<(usize, Input)> = if stored.expect(sources) {
        let found: Vec<_> = order.par_iter().map(take_in).collect();
        found.into_iter().collect::<Result<_, StorageError>>()?
    } else {
        order.iter().map(take_in).collect::<Result<_, StorageError>>()?
    };
    found.sort_unstable_by_key(|(at, _)| *at);
    Ok(found.into_iter().map(|(_, input)| input).collect())
}

/// Announces to other runs which results are going to be looked for: `ce gc` keeps them.
fn announce(task: &Task, plan: &Plan, storage: &Storage) -> Result<(), StorageError> {
    let calls = task.computations.iter().flat_map(|it| ComputationVersion::from(it).directories());
    let literals = plan.literals().iter().map(ToString::to_string);
    let jobs = TaskVersion::from(task).directories();
    storage.gc_roots().announce(calls.chain(literals).chain(jobs))
}

impl Evaluation {
    /// A name in the storage as the user would write it.
    pub fn shown(&self, name: &str) -> String {
        let path = self.storage.shown(name).into_os_string();
        path.into_string().unwrap_or_else(|path| path.to_string_lossy().into_owned())
    }

    /// The exit code of the evaluation as a whole.
    pub fn exit(&self) -> Exit {
        let (mut has_failed, mut is_malformed) = (false, false);
        for (call, _) in self.plan.calls() {
            let Some(outcome) = self.outcome(call) else { continue };
            let Some(CallFailure { error, .. }) = outcome.failure() else { continue };
            if error.is_storage() {
                return Exit::Storage;
            }
            // No call has made these points: a file of the task or an input is wrong, which nothing allows.
            if let CallError::Points(_) = **error
                && self.behind(self.plan.inputs(call)).calls().next().is_none()
            {
                is_malformed = true;
            } else {
                has_failed |= !self.is_allowed(call, outcome);
            }
        }
        if has_failed {
            return Exit::Failed;
        }
        if is_malformed {
            return Exit::Malformed;
        }
        if self.outcomes().any(|outcome| outcome.suspended().is_some()) {
            return Exit::Suspended;
        }
        // Values made from replaced outputs were not looked up again.
        if self.has_replaced() || !self.is_complete() {
            return Exit::Missing;
        }
        Exit::Done
    }

    /// Whether all requested results are there.
    fn is_complete(&self) -> bool {
        if self.plan.tops().is_empty() {
            return self
                .plan
                .outputs()
                .iter()
                .all(|it| self.is_kept(*it) || self.behind(&[*it]).are_left_out());
        }
        self.plan.calls().all(|(call, _)| {
            self.outcome(call).is_some_and(|outcome| {
                outcome.how() == How::LeftOut
                    || outcome.known().is_some()
                    || self.is_allowed(call, outcome)
            })
        })
    }

    /// The record of a call that was executed, if it can be read.
    pub fn executed_record(&self, outcome: &Outcome) -> Option<CallRecord> {
        let Outcome::Present(outputs, OutputSource::Executed) = outcome else { return None };
        match self.storage.records().read_entry(&Entry::Call(outputs.name.clone())) {
            Ok(RecordState::Valid(Record::Call(record))) => Some(record),
            _ => None,
        }
    }

    /// Whether a call was executed whose name is meant.
    pub fn has_executed(&self, is_meant: impl Fn(&ResultName) -> bool) -> bool {
        self.outcomes().any(|it| it.how() == How::Executed && is_meant(it.name()))
    }

    /// Notes the memory that an execution has used, if that is more than it had reserved.
    pub(super) fn note_memory(&self, computation: &ComputationName, asked: &Resources, used: u64) {
        let Some(reserved) = asked.memory.filter(|reserved| used > *reserved) else { return };
        // The kernel reports at least the memory of this program, which has started it.
        if used <= own_peak_memory() {
            return;
        }
        let mut excess = self.excess.lock().unwrap_or_else(PoisonError::into_inner);
        let most = excess.entry(computation.clone()).or_insert(MemoryExcess { reserved, used });
        if used > most.used {
            *most = MemoryExcess { reserved, used };
        }
    }

    /// The computations that have used more memory than they had reserved, each with the call that has used most.
    pub fn memory_excess(&self) -> BTreeMap<ComputationName, MemoryExcess> {
        self.excess.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the outputs of a call were away when it was found.
    pub fn was_away(&self, call: CallId) -> bool {
        self.away_outputs(call).is_some()
    }

    /// Whether a call that was away has made other outputs than were recorded, and these were accepted: calls that were
    /// found before were made from the others.
    pub fn has_replaced(&self) -> bool {
        self.plan.calls().any(|(call, _)| {
            let now = self.outcome(call).and_then(Outcome::outputs);
            self.away_outputs(call).zip(now).is_some_and(|(away, now)| !away.has_same(now))
        })
    }

    /// Whether a call has failed and is not tried again, or waits for such a call.
    pub fn is_given_up(&self, call: CallId) -> bool {
        self.outcome(call)
            .is_some_and(|outcome| outcome.how() == How::Blocked || self.is_allowed(call, outcome))
    }

    /// Whether an outcome is a failure that makes a row of a table.
    pub fn is_allowed(&self, call: CallId, outcome: &Outcome) -> bool {
        outcome
            .failure()
            .is_some_and(|failure| self.plan.call(call).may_fail() && failure.error.would_recur())
    }

    /// Notes that a file of the task has changes that no commit records.
    pub(crate) fn note_changed_files(&self) {
        self.derived.is_changed.store(true, Ordering::Relaxed);
    }

    /// Whether a file of the task that was found while it was evaluated has changes that no commit records.
    pub fn has_changed_files(&self) -> bool {
        self.derived.is_changed.load(Ordering::Relaxed)
    }

    /// Returns the planned calls that can never be executed with this number of slots. They may have results.
    pub fn unsatisfiable_calls(
        &self,
        slots: usize,
        offer: impl FnOnce() -> Offer,
    ) -> Vec<(CallId, Unsatisfiable)> {
        if self.task.resources.is_empty() {
            return Vec::new();
        }
        let offer = offer();
        let mut calls = Vec::new();
        for (id, _) in self.plan.calls() {
            let Ok(Some(resources)) = self.plan.resources(id) else { continue };
            if let Some(why) = Unsatisfiable::find(&resources, slots, &offer) {
                calls.push((id, why));
            } else if let Some(root) = self.computation(id).and_then(|it| it.access.root())
                && !resources.can_be_isolated()
            {
                calls.push((id, Unsatisfiable::Root(root.name.clone())));
            }
        }
        calls
    }

    /// The calls behind values, which say why these are not known, or not here.
    pub const fn behind<'e>(&'e self, sources: &'e [Source]) -> AwaitedCalls<'e> {
        AwaitedCalls { evaluation: self, sources }
    }

    /// The source of an input or a file of the task, if it is known.
    fn given(&self, source: Source) -> Option<&InputSource> {
        let own = |id: TaskFileId| self.files.own_sources[id.index()].as_ref();
        match source {
            Source::Input(id) => self.files.given[id.index()]
                .as_ref()
                .or_else(|| own(self.task.defaults[id.index()]?)),
            Source::File(id) => own(id),
            Source::Literal(_) | Source::Output { .. } | Source::Derived { .. } => None,
        }
    }

    /// Returns the manifest of a directory, in the storage or where the user has it. `None` if it cannot be read.
    pub fn manifest(&self, source: Source) -> Option<Manifest> {
        let digest = self.digest(source)?;
        let manifest = match self.stored(source) {
            Some(file) => self.storage.values().manifest(&file.name, &digest).ok()?,
            None => self.storage.inputs().manifest(self.given(source)?).ok(),
        };
        manifest.filter(|manifest| manifest.digest() == digest)
    }

    /// Reads the contents of a file; `None` if it is not there, and its contents are not known, either.
    pub fn contents(&self, source: Source) -> Result<Option<Vec<u8>>, CallError> {
        let read = |source: &InputSource| match source {
            InputSource::Bytes(contents) => Ok(contents.clone()),
            InputSource::File(path) => fs::read(path).map_err(|source| StorageError::Io {
                doing: "read",
                path: path.clone(),
                source,
            }),
        };
        let Some(file) = self.stored(source) else {
            let known = match source {
                Source::Input(_) | Source::File(_) => self.given(source).cloned(),
                Source::Derived { value, .. } => match &self.plan.value(value).how {
                    Derivation::Tree(..)
                    | Derivation::Member(_)
                    | Derivation::Literal(_)
                    | Derivation::Contents(_) => None,
                    how => Some(self.derived.source(&self.task, how).map_err(Arc::new)?),
                },
                Source::Literal(_) | Source::Output { .. } => None,
            };
            return Ok(known.as_ref().map(read).transpose()?);
        };
        let path = self.storage.path(&file.name);
        let contents = read(&InputSource::File(path.clone()))?;
        match Digest::hash_bytes(&contents) == file.digest {
            true => Ok(Some(contents)),
            false => Err(StorageError::Changed(path).into()),
        }
    }
}

/// The calls behind some values: why these are not known, or not here.
///
/// A call whose outputs are away, that is known and deliberately not here, is over as soon as it is found, and calls
/// that read it are looked up with the recorded digests. If its outputs themselves are needed, it is demanded: it is
/// processed once more, like a missing call, and must make the recorded outputs.
#[derive(Clone, Copy, Debug)]
pub struct AwaitedCalls<'e> {
    evaluation: &'e Evaluation,
    sources: &'e [Source],
}

impl<'e> AwaitedCalls<'e> {
    fn calls(self) -> impl Iterator<Item = CallId> {
        self.sources.iter().filter_map(move |source| self.evaluation.plan.awaited(*source))
    }

    fn outcomes(self) -> impl Iterator<Item = &'e Outcome> {
        self.calls().filter_map(move |call| self.evaluation.outcome(call))
    }

    /// Returns the calls whose outputs are still away and were not demanded.
    pub(super) fn away(self) -> Vec<CallId> {
        let mut away: Vec<CallId> = self
            .calls()
            .filter(|call| self.evaluation.outcome(*call).map(Outcome::how) == Some(How::Away))
            .collect();
        away.sort_unstable();
        away.dedup();
        away
    }

    /// Whether a value is known and not here, since the outputs of the call behind it are away.
    pub fn lack_outputs(self) -> bool {
        self.calls().any(|call| {
            let outcome = self.evaluation.outcome(call);
            self.evaluation.was_away(call) && outcome.is_none_or(|it| it.outputs().is_none())
        })
    }

    /// Whether all of these values that are unknown are unknown because their calls were left out.
    pub fn are_left_out(self) -> bool {
        let sources = self.sources.iter();
        let mut unknown =
            sources.filter(|source| self.evaluation.digest(**source).is_none()).peekable();
        unknown.peek().is_some()
            && unknown.all(|source| {
                let call = self.evaluation.plan.awaited(*source);
                let outcome = call.and_then(|call| self.evaluation.outcome(call));
                outcome.map(Outcome::how) == Some(How::LeftOut)
            })
    }

    /// Whether values are missing only because calls are suspended.
    pub(super) fn are_suspended(self) -> bool {
        let mut any = false;
        let all = self.outcomes().all(|outcome| {
            let waits = matches!(outcome.how(), How::Suspended | How::Waiting);
            any |= waits;
            waits || outcome.outputs().is_some()
        });
        all && any
    }

    /// Whether values are missing only because calls were not started, or are not over.
    pub(super) fn are_not_over(self) -> bool {
        let mut missing = self.outcomes().filter(|it| it.outputs().is_none()).peekable();
        missing.peek().is_some()
            && missing.all(|outcome| {
                matches!(
                    outcome.how(),
                    How::NotStarted | How::Interrupted | How::Waiting | How::Suspended
                )
            })
    }

    /// Whether a value is missing since a call has failed, and is not tried again.
    pub(super) fn are_given_up(self) -> bool {
        self.calls().any(|call| self.evaluation.is_given_up(call))
    }

    /// Whether values are missing only because calls failed in a way that would come again: they ended with an exit
    /// status, or read a member that is not there.
    pub(super) fn have_failed(self) -> bool {
        let evaluation = self.evaluation;
        let mut waiting: Vec<Source> = self.sources.to_vec();
        let mut seen = HashSet::new();
        let mut has_failed = false;
        while let Some(source) = waiting.pop() {
            if evaluation.digest(source).is_some() {
                continue;
            }
            match evaluation.plan.awaited(source) {
                Some(call) if seen.insert(call) => match evaluation.outcome(call) {
                    Some(Outcome::Absent(_, Absence::Failed(failure)))
                        if failure.error.would_recur() =>
                    {
                        has_failed = true;
                    }
                    Some(Outcome::Absent(_, Absence::Blocked | Absence::Missing(_)))
                        if lacks_inputs(evaluation, call) =>
                    {
                        waiting.extend(evaluation.plan.inputs(call));
                    }
                    // A derived value of known outputs, such as a member that is not there.
                    Some(outcome) if outcome.known().is_some() => has_failed = true,
                    _ => return false,
                },
                Some(_) => {}
                None => return false,
            }
        }
        has_failed
    }
}

/// Whether it is not known what all inputs of a call are.
fn lacks_inputs(evaluation: &Evaluation, call: CallId) -> bool {
    let mut inputs = evaluation.plan.inputs(call).iter();
    inputs.any(|source| evaluation.digest(*source).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ce_model::plan::DerivedId;
    use ce_model::task::{Builder, InputId, LoadedFrom, Node};
    use ce_storage::Unrecorded;

    #[test]
    fn a_call_added_to_the_plan_has_no_outcome_yet() {
        let mut builder = Builder::default();
        let root = builder.intern(Node::Input(InputId::at(0)));
        let task = Task {
            name: "t".parse().unwrap(),
            place: String::new(),
            commit: "ab".repeat(20).parse().unwrap(),
            loaded_from: LoadedFrom::Commit(None),
            changed: vec![],
            inputs: vec!["n".parse().unwrap()],
            defaults: vec![None],
            choices: vec![None],
            files: vec![],
            trees: vec![],
            bound: vec![],
            sweeps: vec![],
            resources: Default::default(),
            computations: vec![],
            text_computations: vec![],
            workflow: builder.finish(root),
            definitions: Default::default(),
            parts: Default::default(),
        };
        let plan = Plan::new(&task);
        let files = Files {
            inputs: vec![],
            literals: vec![],
            own: vec![],
            own_sources: vec![],
            given: vec![None],
            as_given: vec![None],
        };
        let storage = Storage::inspect(Path::new("no/such/storage"), Unrecorded::Adopt).unwrap();
        let evaluation = Evaluation::new(task, plan, files, storage);
        let (call, value) = (CallId::at(0), DerivedId::at(0));
        assert!(evaluation.outcome(call).is_none() && evaluation.away_outputs(call).is_none());
        assert!(!evaluation.is_there(Source::Output { call, number: 0 }));
        assert!(!evaluation.is_derived(value) && evaluation.derived.get(value).is_none());
    }
}
