//! Planning an audit: the recorded calls that can be executed again, and what each of them needs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{AuditChoice, AuditPlan, NotAudited, PlannedAudit};
use ce_evaluate::session::{CallNameError, Interrupted, Session, look_only};
use ce_evaluate::{AuditedCall, EvaluateError, Evaluation, How, Outcome};
use ce_exchange::{Attestations, call_identity};
use ce_files::cache::Cache;
use ce_git::{Trees, top};
use ce_model::digest::ObjectId;
use ce_model::exit::{Error, Explain};
use ce_model::plan::{CallId, Operation, Plan, Source};
use ce_model::task::NONDETERMINISTIC;
use ce_storage::records::{CallRecord, JobRecord, Origin, OutputSource, Stamp};
use ce_storage::{
    Entry, InputSource, Record, RecordState, ResultName, StorageError, Stored, Survey,
};
use ce_task::load::{self, LoadError};

/// A call that was named cannot be executed again.
#[derive(Debug, thiserror::Error)]
#[error("{0} cannot be audited: {1}")]
struct NotAuditedError(String, NotAudited);

impl Explain for NotAuditedError {
    fn hint(&self) -> Option<String> {
        self.1.hint()
    }
}

/// The records of a storage, as far as an audit needs them.
struct RecordedCalls {
    calls: HashMap<String, CallRecord>,
    jobs: Vec<(ResultName, JobRecord)>,
}

/// An audit that is being planned.
struct AuditPlanner<'a> {
    session: &'a Session,
    /// The top of the work tree.
    top: &'a Path,
    records: &'a RecordedCalls,
    attestations: Attestations,
    /// Calls that are named are audited whatever their computations say.
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
        top,
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
    // What another commit took over is the same call, unless other outputs are recorded there.
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
        // A call that the evaluation does not find is not there as recorded.
        for call in open {
            self.open.insert(call.clone(), NotAudited::Outputs);
        }
        let depths = depths(&evaluation.plan);
        for (id, _) in evaluation.plan.calls() {
            let Some(name) = evaluation.outcome(id).map(|outcome| outcome.name().short()) else {
                continue;
            };
            if !self.is_open(&name) || evaluation.outcome(id).map(Outcome::how) != Some(How::Reused)
            {
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
        let dir = self.top.join(job.place.as_deref().unwrap_or_default());
        if !dir.is_dir() {
            return Ok(Err(NotAudited::NoDirectory));
        }
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
                return Ok(Err(NotAudited::Input));
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
            Err(error) if error.of::<StorageError>().is_some() => return Err(error),
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
        let (
            Operation::Computation(computation),
            Some(Outcome::Present(recorded, OutputSource::Reused)),
        ) = (planned.operation, evaluation.outcome(id))
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
        let nondeterministic = self.is_nondeterministic(&rules.tree);
        if nondeterministic && !self.named {
            return Err(NotAudited::Nondeterministic);
        }
        let resources = evaluation.plan.resources(id).map_err(|_| NotAudited::Resources)?;
        let sources = planned.inputs.iter().map(|source| self.source(evaluation, *source));
        let sources = sources.collect::<Option<_>>();
        let call = AuditedCall {
            computation,
            sources: sources.ok_or(NotAudited::Input)?,
            resources: resources.unwrap_or_default(),
            recorded: recorded.clone(),
            expected: record.seconds().map(Duration::from_secs_f64),
            task,
        };
        let (id, attested) = (call_identity(record), self.attestations.of(record));
        Ok(PlannedAudit { call, id, attested, depth, nondeterministic })
    }

    /// A file that a call reads. Where nothing is written, the task's own files need not be in the storage.
    fn source(&self, evaluation: &Evaluation, source: Source) -> Option<Stored> {
        let is_own = match evaluation.plan.origin(source) {
            Source::File(_) => true,
            Source::Input(id) => evaluation.files.given[id.index()].is_none(),
            _ => false,
        };
        evaluation.stored(source).or_else(|| {
            let (name, digest) = (evaluation.name(source)?, evaluation.digest(source)?);
            let is_to_come = is_own && !self.session.stores_inputs();
            is_to_come.then_some(Stored { name, digest, stamp: Stamp::Unknown })
        })
    }

    /// Whether a computation says that its outputs differ each time.
    fn is_nondeterministic(&mut self, tree: &ObjectId) -> bool {
        if let Some(known) = self.nondeterministic.get(tree) {
            return *known;
        }
        let is_so = Trees::new(self.top).has_file(tree, NONDETERMINISTIC).unwrap_or(false);
        self.nondeterministic.insert(tree.clone(), is_so);
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
