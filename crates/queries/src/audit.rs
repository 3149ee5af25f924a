//! Audits: recorded calls are executed again, and compared with their results.
//!
//! The jobs that a storage records tell how: each is evaluated as it was, without executing anything, and so it is known which
//! computation a call is of, and which files it reads.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ce_evaluate::session::{CallNameError, Interrupted, Session, look_only};
use ce_evaluate::{
    AuditBudget, AuditedCall, AuditedEnd, EvaluateError, Evaluation, How, InputMissing, Outcome,
    Unavailable,
};
use ce_exchange::{
    Attestations, Attested, AuditFinding, call_identity, is_fetched_on_demand, may_fetch,
    record_audits,
};
use ce_files::cache::Cache;
use ce_git::{Code, Trees, top};
use ce_model::digest::{Blake3, ObjectId};
use ce_model::exit::{Error, Explain};
use ce_model::plan::{CallId, Operation, Plan, Source};
use ce_model::resources::Resources;
use ce_model::task::NONDETERMINISTIC;
use ce_storage::records::{
    AuditVerdict, CallRecord, JobRecord, NOT_ISOLATED, Origin, OutputSource, Stamp,
};
use ce_storage::{
    Entry, InputSource, Outputs, Record, RecordState, ResultName, StorageError, Stored, Survey,
};
use ce_task::load::{self, LoadError};

/// The time for which findings are only in memory.
const KEPT: Duration = Duration::from_secs(600);

/// The terms of an audit: the time that it may take, and its author.
#[derive(Clone, Debug, Default)]
pub struct AuditTerms {
    /// The time that it may take.
    pub budget: Option<Duration>,
    /// The name of the auditor in the ledger.
    pub by: Option<String>,
}

/// Executes planned calls again. Passes the place of each in the plan to `ended` with its end, and writes what was found
/// into the ledger. When the user asks to stop, earlier findings are kept.
pub fn audit(
    session: &Session,
    plan: &AuditPlan,
    terms: &AuditTerms,
    ended: &mut dyn FnMut(usize, AuditedEnd),
) -> Result<(), Error> {
    let calls: Vec<AuditedCall> = plan.calls.iter().map(|it| it.call.clone()).collect();
    let (mut findings, mut written) = (Vec::new(), Instant::now());
    let mut result = Ok(());
    let (storage, by) = (session.storage(), terms.by.as_deref());
    let run = session.execute_again(&calls, AuditBudget::new(terms.budget), &mut |at, end| {
        if let AuditedEnd::Report(report) = &end {
            let PlannedAudit { call, id, .. } = &plan.calls[at];
            let (name, report) = (call.recorded.name.short(), (**report).clone());
            findings.push(AuditFinding { name, id: *id, report });
        }
        if written.elapsed() > KEPT && result.is_ok() {
            result = record_audits(storage, &mem::take(&mut findings), by);
            written = Instant::now();
        }
        ended(at, end);
    });
    result.and_then(|()| record_audits(storage, &findings, by))?;
    Ok(run?)
}

/// The calls that are audited.
#[derive(Clone, Debug, PartialEq)]
pub enum AuditChoice {
    /// All that can be.
    All,
    /// A part of them, by chance.
    Sample(AuditSample),
    /// The calls of a job.
    Job(ResultName),
    /// These.
    Calls(Vec<ResultName>),
}

/// The size of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AuditSample {
    /// A share of all, above 0 and up to 1.
    Share(f64),
    /// A number of calls.
    Number(usize),
}

impl AuditSample {
    /// The number of calls to take of `all`.
    fn count_calls(self, all: usize) -> usize {
        match self {
            Self::Share(share) => (share * all as f64).ceil() as usize,
            Self::Number(number) => number,
        }
    }

    /// Returns which of these names are in the sample: the same each time for a seed, in whichever order they are.
    pub(super) fn chosen(self, names: &[String], seed: u64) -> Vec<bool> {
        let mut ranked: Vec<(Blake3, usize)> = Vec::with_capacity(names.len());
        for (at, name) in names.iter().enumerate() {
            ranked.push((Blake3::hash_bytes(format!("{seed} {name}").as_bytes()), at));
        }
        ranked.sort_unstable_by_key(|(rank, at)| (rank.full(), *at));
        let mut chosen = vec![false; names.len()];
        for (_, at) in ranked.into_iter().take(self.count_calls(names.len())) {
            chosen[at] = true;
        }
        chosen
    }
}

/// The calls of an audit, in the order in which they begin, and those that are left out.
#[derive(Debug, Default)]
pub struct AuditPlan {
    pub calls: Vec<PlannedAudit>,
    /// The calls that cannot be audited, by their short names.
    pub left_out: BTreeMap<String, NotAudited>,
}

/// A call that is audited.
#[derive(Debug)]
pub struct PlannedAudit {
    pub call: AuditedCall,
    /// Its identity in all storages.
    pub id: Blake3,
    /// The attesters that have executed it so far.
    pub attested: Attested,
    /// The length of the longest chain of calls that it was made from.
    pub depth: usize,
    /// Whether its computation says that its outputs differ each time.
    pub nondeterministic: bool,
}

/// The reason why a recorded call is not audited.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error, Explain)]
pub enum NotAudited {
    /// No commit has its computation.
    #[error("its computation had uncommitted changes")]
    #[hint("commit the changes, run the task, and audit the call of that commit")]
    Dirty,
    /// Nobody knows how it was made.
    #[error("it was adopted, and nobody knows how it was made")]
    #[hint("run its task with --strict, which executes what was adopted")]
    Adopted,
    /// No recorded job has it, so the resources that it asks for are unknown.
    #[error("no recorded job has this call; a run with failed calls or points records none")]
    #[hint(
        "correct what has failed, or leave failed points out in exclude.tsv, in a text :exclude, and run its task to \
         its end"
    )]
    NoJob,
    /// The commit of its task is not available.
    #[error("the commit of its task is not in this repository")]
    #[hint(
        "git fetch --all (git fetch --unshallow in a shallow clone), or give --task in the repository that has it"
    )]
    NoCommit,
    /// The task is not where it was.
    #[error("the directory of its task is not in this work tree")]
    #[hint("give --task in a work tree that has it")]
    NoDirectory,
    /// The task cannot be evaluated at its commit.
    #[error("its task cannot be evaluated: {0}")]
    #[hint("evaluate the task at that commit: ce run --at says more")]
    Task(String),
    /// An input of the job or of the call is not in the storage.
    #[error(transparent)]
    #[hint(_0.hint())]
    Input(#[from] InputMissing),
    /// A directory that it reads is an archive, and the storage is only read.
    #[error("an input of it is in its archive only, which a dry run does not unpack")]
    #[hint("audit the call without -n, which unpacks the input")]
    Archived,
    /// Its outputs are not there as recorded.
    #[error("its outputs are not in the storage as recorded")]
    #[hint("run its task again, which makes what is missing; ce verify says what is damaged")]
    Outputs,
    /// Outputs are away without which it is not known what other calls of the job read.
    #[error(
        "its job cannot be evaluated without outputs that are away, such as a directory with a member that it reads"
    )]
    #[hint("run its task again, which fetches them or makes them again")]
    Away,
    /// The work that it has started goes on elsewhere, which an audit does not wait for.
    #[error("it may be suspended")]
    #[hint("wait for its end: ce status")]
    Suspends,
    /// It asks for something that is invalid with the texts of its names.
    #[error("its requested resources are unknown")]
    #[hint("correct the text of the name in the file resources")]
    Resources,
    /// Its computation says that its outputs differ each time.
    #[error("its computation is declared as nondeterministic")]
    #[hint("name the call to audit it")]
    Nondeterministic,
}

/// The ends of the calls of an audit so far.
#[derive(Debug)]
pub struct AuditEnds<'a> {
    pub plan: &'a AuditPlan,
    ends: Vec<Option<AuditedEnd>>,
}

/// The number of calls of an audit that ended in each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditCounts {
    /// They have the recorded outputs.
    pub agree: usize,
    /// They have others.
    pub differ: usize,
    /// They have other outputs, as declared by their computations.
    pub expected: usize,
    pub failed: usize,
    /// They would have taken longer than there was time.
    pub over_budget: usize,
    /// They could not be executed.
    pub not_executed: usize,
    /// The storage could not be read or written.
    pub broken: usize,
    /// The user has asked to stop before.
    pub interrupted: usize,
    /// They were executed without isolation, and have not failed.
    pub not_isolated: usize,
}

impl PlannedAudit {
    /// Its short name.
    pub fn name(&self) -> String {
        self.call.recorded.name.short()
    }
}

impl<'a> AuditEnds<'a> {
    /// No call has ended yet.
    pub fn new(plan: &'a AuditPlan) -> Self {
        Self { plan, ends: vec![None; plan.calls.len()] }
    }

    /// Records the end of the call at this place of the plan.
    pub fn record(&mut self, at: usize, end: AuditedEnd) {
        self.ends[at] = Some(end);
    }

    /// The calls with their ends, if they have ended.
    pub fn all(&self) -> impl Iterator<Item = (&'a PlannedAudit, Option<&AuditedEnd>)> {
        self.plan.calls.iter().zip(self.ends.iter().map(Option::as_ref))
    }

    /// The calls with this verdict, leaves first. Calls that are declared as nondeterministic do not count as differing.
    pub fn with(&self, verdict: AuditVerdict) -> Vec<(&'a PlannedAudit, &AuditedEnd)> {
        let mut calls = Vec::new();
        for (call, end) in self.all() {
            if let Some(end @ AuditedEnd::Report(report)) = end
                && report.verdict() == verdict
                && (verdict != AuditVerdict::Differs || !call.nondeterministic)
            {
                calls.push((call, end));
            }
        }
        calls.sort_by_cached_key(|(call, _)| (call.depth, call.name()));
        calls
    }

    /// The numbers.
    pub fn counts(&self) -> AuditCounts {
        let mut counts = AuditCounts::default();
        for (call, end) in self.all() {
            if let Some(AuditedEnd::Report(report)) = end
                && *report.isolation == *NOT_ISOLATED
                && report.failed.is_none()
            {
                counts.not_isolated += 1;
            }
            *match end {
                None => &mut counts.interrupted,
                Some(AuditedEnd::OverBudget) => &mut counts.over_budget,
                Some(AuditedEnd::NotAudited(why)) if why.of_storage => &mut counts.broken,
                Some(AuditedEnd::NotAudited(_)) => &mut counts.not_executed,
                Some(AuditedEnd::Report(report)) => match report.verdict() {
                    AuditVerdict::Agrees => &mut counts.agree,
                    AuditVerdict::Differs if call.nondeterministic => &mut counts.expected,
                    AuditVerdict::Differs => &mut counts.differ,
                    AuditVerdict::Failed => &mut counts.failed,
                },
            } += 1;
        }
        counts
    }
}

/// A call that was named cannot be executed again.
#[derive(Debug, thiserror::Error, Explain)]
#[error("{0} cannot be audited: {1}")]
#[hint(_1.hint())]
struct NotAuditedError(String, NotAudited);

/// The records of a storage, as far as an audit needs them.
struct RecordedCalls {
    calls: HashMap<String, CallRecord>,
    jobs: Vec<(ResultName, JobRecord)>,
}

/// An audit that is being planned.
struct AuditPlanner<'a> {
    session: &'a Session,
    /// The repository of the work tree.
    trees: Trees,
    records: &'a RecordedCalls,
    attestations: Attestations,
    /// Whether calls are named: these are audited even if their computations are nondeterministic.
    named: bool,
    nondeterministic: HashMap<ObjectId, bool>,
    /// The calls that are looked for, and why they cannot be audited as far as that is known.
    open: BTreeMap<String, NotAudited>,
    plan: AuditPlan,
}

/// Plans an audit of calls of tasks in the repository of this directory: the least attested first, then by name. A
/// sample is chosen with `seed`.
///
/// # Errors
///
/// Fails if the storage cannot be read, a named call or job is not recorded, or a named call cannot be audited.
pub fn plan_audit(
    session: &Session,
    dir: &Path,
    choice: &AuditChoice,
    seed: u64,
) -> Result<AuditPlan, Error> {
    let records = &RecordedCalls::read(session)?;
    let real = dir
        .canonicalize()
        .map_err(|source| LoadError::Directory { path: dir.to_owned(), source })?;
    let top = &top(&real).unwrap_or(real);
    let mut planner = AuditPlanner {
        session,
        trees: Trees::new(top),
        records,
        attestations: Attestations::read(session.storage())?,
        named: matches!(choice, AuditChoice::Calls(_)),
        nondeterministic: HashMap::new(),
        open: records.chosen(choice)?,
        plan: AuditPlan::default(),
    };
    for (name, job) in &records.jobs {
        if !matches!(choice, AuditChoice::Job(only) if only != name) {
            planner.job(job)?;
        }
    }
    let mut plan = planner.finish();
    if matches!(choice, AuditChoice::Calls(_))
        && let Some((name, why)) = plan.left_out.first_key_value()
    {
        return Err(NotAuditedError(name.clone(), why.clone()).into());
    }
    plan.calls.sort_by_cached_key(|it| (it.attested.rank(), it.call.recorded.name.short()));
    // A call that another commit took over is the same call, unless other outputs are recorded there.
    if !matches!(choice, AuditChoice::Calls(_)) {
        let mut seen = HashSet::new();
        plan.calls.retain(|it| seen.insert((it.id, it.call.recorded.digests())));
    }
    if let AuditChoice::Sample(sample) = choice {
        let names: Vec<String> =
            plan.calls.iter().map(|it| it.call.recorded.name.short()).collect();
        let mut chosen = sample.chosen(&names, seed).into_iter();
        plan.calls.retain(|_| chosen.next().unwrap_or_default());
    }
    Ok(plan)
}

impl RecordedCalls {
    fn read(session: &Session) -> Result<Self, StorageError> {
        let mut records = Self { calls: HashMap::new(), jobs: Vec::new() };
        for entry in Survey::new(session.storage()).entries()? {
            if !matches!(entry, Entry::Call(_) | Entry::Job(_)) {
                continue;
            }
            let record = match session.storage().records().read_entry(&entry)? {
                RecordState::Valid(record) if entry.fits(&record) => record,
                // ce verify reports it.
                RecordState::Valid(_) | RecordState::Spoiled | RecordState::Absent => continue,
            };
            match (entry, record) {
                (Entry::Call(name), Record::Call(call)) => {
                    records.calls.insert(name.short(), call);
                }
                (Entry::Job(name), Record::Job(job)) => records.jobs.push((name, job)),
                _ => {}
            }
        }
        Ok(records)
    }

    /// The calls that are chosen, each with the reason why it is not audited unless a job tells how.
    fn chosen(&self, choice: &AuditChoice) -> Result<BTreeMap<String, NotAudited>, Error> {
        let names: Vec<&String> = match choice {
            AuditChoice::All | AuditChoice::Sample(_) => self.calls.keys().collect(),
            AuditChoice::Job(name) => {
                let job = self.jobs.iter().find(|(known, _)| known == name);
                let (_, job) = job.ok_or_else(|| CallNameError::NoJob(name.short()))?;
                job.calls.iter().filter(|name| self.calls.contains_key(*name)).collect()
            }
            AuditChoice::Calls(calls) => {
                let mut known = Vec::with_capacity(calls.len());
                for name in calls {
                    let found = self.calls.get_key_value(&name.short());
                    let (name, _) = found.ok_or_else(|| CallNameError::NoCall(name.short()))?;
                    known.push(name);
                }
                known
            }
        };
        let mut chosen = BTreeMap::new();
        for name in names {
            let reason = match &self.calls[name] {
                CallRecord { dirty: true, .. } => NotAudited::Dirty,
                CallRecord { origin: Origin::Adopted, .. } => NotAudited::Adopted,
                _ => NotAudited::NoJob,
            };
            chosen.insert(name.clone(), reason);
        }
        Ok(chosen)
    }
}

impl AuditPlanner<'_> {
    fn finish(mut self) -> AuditPlan {
        self.plan.left_out = self.open;
        self.plan
    }

    /// Whether it is not known yet how to execute a call.
    fn is_open(&self, call: &str) -> bool {
        !matches!(self.open.get(call), None | Some(NotAudited::Dirty | NotAudited::Adopted))
    }

    /// Plans the calls of a job that are looked for.
    fn job(&mut self, job: &JobRecord) -> Result<(), Error> {
        let open: Vec<&String> = job.calls.iter().filter(|call| self.is_open(call)).collect();
        if open.is_empty() {
            return Ok(());
        }
        let evaluation = match self.evaluate(job)? {
            Ok(evaluation) => evaluation,
            Err(why) => {
                for call in open {
                    self.open.insert(call.clone(), why.clone());
                }
                return Ok(());
            }
        };
        // Calls that the evaluation does not find are not there as recorded, unless their names depend on what is away.
        let lacks_away = evaluation.plan.calls().any(|(id, _)| {
            evaluation.was_away(id)
                && evaluation.outcome(id).is_some_and(|it| it.how() == How::Missing)
        });
        let why = if lacks_away { NotAudited::Away } else { NotAudited::Outputs };
        for call in open {
            self.open.insert(call.clone(), why.clone());
        }
        let depths = depths(&evaluation.plan);
        for (id, _) in evaluation.plan.calls() {
            let Some(outcome) = evaluation.outcome(id) else { continue };
            let name = outcome.name().short();
            if !self.is_open(&name) {
                continue;
            }
            if self.result(outcome).is_none() {
                if !evaluation.was_away(id) {
                    self.open.insert(name, NotAudited::Outputs);
                }
                continue;
            }
            match self.call(&evaluation, id, depths[id.index()]) {
                Ok(planned) => {
                    self.open.remove(&name);
                    self.plan.calls.push(planned);
                }
                Err(why) => {
                    self.open.insert(name, why);
                }
            }
        }
        Ok(())
    }

    /// Evaluates a job as it was, without executing anything.
    fn evaluate(&self, job: &JobRecord) -> Result<Result<Evaluation, NotAudited>, Error> {
        let dir = match &job.place {
            Some(_) => job.task_in(self.trees.dir()),
            None => Some(self.trees.dir().to_owned()),
        };
        let Some(dir) = dir.filter(|dir| dir.is_dir()) else {
            return Ok(Err(NotAudited::NoDirectory));
        };
        let task = match load::task_at(&dir, job.commit.full(), Cache::of_user().as_ref()) {
            Ok(loaded) => loaded.task,
            Err(LoadError::Snapshot(_)) => return Ok(Err(NotAudited::NoCommit)),
            Err(error) => return Ok(Err(NotAudited::Task(error.to_string()))),
        };
        let storage = self.session.storage();
        let mut given = Vec::with_capacity(task.inputs.len());
        for (name, default) in task.inputs.iter().zip(&task.defaults) {
            let recorded = job.inputs.iter().find(|it| it.name == *name);
            let input = recorded.map(|it| storage.inputs().unpacked(it.digest)).transpose()?;
            let file = input.flatten().map(|it| storage.path(&it.name));
            if let (None, Some(recorded)) = (&file, recorded)
                && storage.inputs().is_archived(&recorded.digest)?
            {
                return Ok(Err(NotAudited::Archived));
            }
            if file.is_none() && default.is_none() {
                return Ok(Err(InputMissing.into()));
            }
            given.push(file.map(InputSource::File));
        }
        let session = self.session.looking_in(&dir);
        let evaluation = session.bind(task, &given).and_then(|bound| session.prepare(bound));
        if let Some(signal) = self.session.interrupted_by() {
            return Err(Interrupted(signal).into());
        }
        let evaluation = match evaluation {
            Ok(evaluation) => evaluation,
            Err(error) if error.downcast_ref::<StorageError>().is_some() => return Err(error),
            Err(error) => return Ok(Err(NotAudited::Task(error.to_string()))),
        };
        match look_only(&evaluation, self.session.jobs()) {
            Ok(()) | Err(EvaluateError::Output(_)) => Ok(Ok(evaluation)),
            Err(error) => Err(error.into()),
        }
    }

    /// Plans a call that was found.
    fn call(
        &mut self,
        evaluation: &Evaluation,
        id: CallId,
        depth: usize,
    ) -> Result<PlannedAudit, NotAudited> {
        let planned = evaluation.plan.call(id);
        let (Operation::Computation(computation), Some(recorded)) =
            (planned.operation, evaluation.outcome(id).and_then(|it| self.result(it)))
        else {
            return Err(NotAudited::Outputs);
        };
        let Some(record) = self.records.calls.get(&recorded.name.short()) else {
            return Err(NotAudited::Outputs);
        };
        let task = Arc::clone(&evaluation.task);
        let rules = &task.computations[computation.index()];
        if rules.access.suspends() {
            return Err(NotAudited::Suspends);
        }
        let nondeterministic = self.is_nondeterministic(rules.into());
        if nondeterministic && !self.named {
            return Err(NotAudited::Nondeterministic);
        }
        let resources = evaluation.plan.resources(id).map_err(|_| NotAudited::Resources)?;
        let mut resources = resources.unwrap_or_default();
        if let Some(execution) = record.execution() {
            // The call is told the same again.
            let Resources { cpus, memory, gpus, .. } = Resources::of_lines(&execution.resources);
            resources = Resources { cpus, memory, gpus, ..resources };
        }
        let sources = planned.inputs.iter().map(|source| self.source(evaluation, *source));
        let sources = sources.collect::<Option<_>>();
        let call = AuditedCall {
            computation,
            sources: sources.ok_or(InputMissing)?,
            resources,
            recorded: recorded.clone(),
            expected: record.seconds().map(Duration::from_secs_f64),
            task,
        };
        let (id, attested) = (call_identity(record), self.attestations.find_attesters(record));
        Ok(PlannedAudit { call, id, attested, depth, nondeterministic })
    }

    /// The result that a call is compared with: its outputs, also if a clone of a results repository could fetch them. Their hashes
    /// are known.
    fn result<'e>(&self, outcome: &'e Outcome) -> Option<&'e Outputs> {
        match outcome {
            Outcome::Present(outputs, OutputSource::Reused) => Some(outputs),
            Outcome::Known(outputs, Unavailable::Away | Unavailable::Archived) => {
                Some(outputs).filter(|outputs| may_fetch(self.session.storage(), outputs))
            }
            _ => None,
        }
    }

    /// A file that a call reads. Where nothing is written, the task's own files need not be in the storage.
    fn source(&self, evaluation: &Evaluation, source: Source) -> Option<Stored> {
        let is_own = match evaluation.plan.origin(source) {
            Source::File(_) => true,
            Source::Input(id) => evaluation.files.as_given[id.index()].is_none(),
            _ => false,
        };
        evaluation.stored(source).or_else(|| {
            let (name, digest) = (evaluation.name(source)?, evaluation.digest(source)?);
            let is_to_come = is_own && !self.session.stores_inputs()
                || is_fetched_on_demand(self.session.storage(), &digest);
            is_to_come.then_some(Stored { name, digest, stamp: Stamp::Unknown })
        })
    }

    /// Whether a computation says that its outputs differ each time.
    fn is_nondeterministic(&mut self, code: Code<'_>) -> bool {
        if let Some(known) = self.nondeterministic.get(code.tree) {
            return *known;
        }
        let is_so = self.trees.has_file(code, NONDETERMINISTIC).unwrap_or(false);
        self.nondeterministic.insert(code.tree.clone(), is_so);
        is_so
    }
}

/// The length of the longest chain of calls before each call of a plan.
fn depths(plan: &Plan) -> Vec<usize> {
    let mut depths: Vec<Option<usize>> = vec![None; plan.calls().len()];
    for (id, _) in plan.calls() {
        let mut stack = vec![id];
        while let Some(&call) = stack.last() {
            let awaited = plan.inputs(call).iter().filter_map(|source| plan.awaited(*source));
            let awaited: Vec<CallId> = awaited.filter(|it| it.index() < depths.len()).collect();
            let open: Vec<CallId> =
                awaited.iter().copied().filter(|it| depths[it.index()].is_none()).collect();
            if open.is_empty() {
                let before = awaited.iter().filter_map(|it| depths[it.index()]);
                depths[call.index()] = Some(before.map(|it| it + 1).max().unwrap_or(0));
                stack.pop();
            } else {
                stack.extend(open);
            }
        }
    }
    depths.into_iter().map(Option::unwrap_or_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(sample: AuditSample, seed: u64, names: &[String]) -> Vec<String> {
        let chosen = sample.chosen(names, seed);
        let mut names: Vec<String> =
            names.iter().zip(chosen).filter(|(_, it)| *it).map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_sample_has_the_requested_size_and_is_determined_by_the_seed() {
        let names: Vec<String> = (0..1000).map(|n| format!("c_add/{n}")).collect();
        let reversed: Vec<String> = names.iter().rev().cloned().collect();
        let tenth = AuditSample::Share(0.1);
        let one = chosen(tenth, 1, &names);
        assert_eq!(one.len(), 100);
        assert_eq!(one, chosen(tenth, 1, &reversed));
        assert_ne!(one, chosen(tenth, 2, &names));
        let number = |number| chosen(AuditSample::Number(number), 1, &names);
        assert_eq!([number(1).len(), number(0).len(), number(5000).len()], [1, 0, 1000]);
        assert!(number(7).iter().all(|name| one.contains(name)), "a larger one has a smaller one");
        assert_eq!(chosen(AuditSample::Share(0.001), 1, &names[..3]).len(), 1);
        assert_eq!(chosen(AuditSample::Share(1.0), 1, &names).len(), 1000);
    }
}
