//! Audits: recorded calls are executed again, and compared with their results.
//!
//! The jobs that a storage records tell how: each is evaluated as it was, without executing anything, and so it is known which
//! computation a call is of, and which files it reads.

mod planning;

use std::collections::BTreeMap;
use std::mem;
use std::time::{Duration, Instant};

pub use self::planning::plan_audit;
use ce_evaluate::session::Session;
use ce_evaluate::{AuditBudget, AuditedCall, AuditedEnd};
use ce_exchange::{Attested, AuditFinding, record_audits};
use ce_model::digest::Blake3;
use ce_model::exit::{Error, Explain};
use ce_storage::ResultName;
use ce_storage::records::AuditVerdict;

/// How long what was found is only in memory.
const KEPT: Duration = Duration::from_secs(600);

/// What an audit may take, and who it is by.
#[derive(Clone, Debug, Default)]
pub struct AuditTerms {
    /// The time that it may take.
    pub budget: Option<Duration>,
    /// How the ledger calls the one who audits.
    pub by: Option<String>,
}

/// Executes planned calls again. Passes the place of each in the plan to `ended` with its end, and writes what was found into
/// the ledger. When the user asks to stop, what was found until then is kept.
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
    /// Those of a job.
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
    /// The number of calls, of so many.
    fn of(self, all: usize) -> usize {
        match self {
            Self::Share(share) => (share * all as f64).ceil() as usize,
            Self::Number(number) => number,
        }
    }

    /// Returns which of these names are in the sample: the same each time for a seed, in whichever order they are.
    pub(super) fn chosen(self, names: &[String], seed: u64) -> Vec<bool> {
        let mut ranked: Vec<(Blake3, usize)> = Vec::with_capacity(names.len());
        for (at, name) in names.iter().enumerate() {
            ranked.push((Blake3::of(format!("{seed} {name}").as_bytes()), at));
        }
        ranked.sort_unstable_by_key(|(rank, at)| (rank.full(), *at));
        let mut chosen = vec![false; names.len()];
        for (_, at) in ranked.into_iter().take(self.of(names.len())) {
            chosen[at] = true;
        }
        chosen
    }
}

/// The calls of an audit, in the order in which they begin, and those that are left out.
#[derive(Debug, Default)]
pub struct AuditPlan {
    /// The calls.
    pub calls: Vec<PlannedAudit>,
    /// Those that cannot be audited, by their short names.
    pub left_out: BTreeMap<String, NotAudited>,
}

/// A call that is audited.
#[derive(Debug)]
pub struct PlannedAudit {
    /// The call.
    pub call: AuditedCall,
    /// What identifies it everywhere.
    pub id: Blake3,
    /// Who has executed it so far.
    pub attested: Attested,
    /// The length of the longest chain of calls that it was made from.
    pub depth: usize,
    /// Whether its computation says that its outputs differ each time.
    pub nondeterministic: bool,
}

/// The reason why a recorded call is not audited.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum NotAudited {
    /// No commit has its computation.
    #[error("its computation had uncommitted changes")]
    Dirty,
    /// Nobody knows how it was made.
    #[error("it was adopted, and nobody knows how it was made")]
    Adopted,
    /// No recorded job has it, so nobody knows what it was asked for.
    #[error("no recorded job has this call; a run with failed calls or points records none")]
    NoJob,
    /// The commit of its task is not to be had.
    #[error("the commit of its task is not in this repository")]
    NoCommit,
    /// The task is not where it was.
    #[error("the directory of its task is not in this work tree")]
    NoDirectory,
    /// The task cannot be evaluated at its commit.
    #[error("its task cannot be evaluated: {0}")]
    Task(String),
    /// An input of the job or of the call is not in the storage.
    #[error("an input of it is not in the storage")]
    Input,
    /// A directory that it reads is an archive, and the storage is only read.
    #[error("an input of it is in its archive only, which a dry run does not unpack")]
    Archived,
    /// Its outputs are not there as recorded.
    #[error("its outputs are not in the storage as recorded")]
    Outputs,
    /// What it has started goes on elsewhere, which an audit does not wait for.
    #[error("it may be suspended")]
    Suspends,
    /// It asks for something that is none with the texts of its names.
    #[error("what it asks for is not known")]
    Resources,
    /// Its computation says that its outputs differ each time.
    #[error("its computation is declared as nondeterministic")]
    Nondeterministic,
}

impl Explain for NotAudited {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Dirty => "commit the changes, run the task, and audit the call of that commit",
            Self::Adopted => "run its task with --strict, which executes what was adopted",
            Self::NoJob => {
                "correct what has failed, or leave failed points out with exclude.tsv, and run its task to its end"
            }
            Self::NoCommit => {
                "git fetch --all (git fetch --unshallow in a shallow clone), or give --task in the repository that has it"
            }
            Self::NoDirectory => "give --task in a work tree that has it",
            Self::Task(_) => "evaluate the task at that commit: ce run --at says more",
            Self::Input | Self::Outputs => {
                "run its task again, which makes what is missing; ce verify says what is damaged"
            }
            Self::Archived => "audit the call without -n, which unpacks the input",
            Self::Suspends => "wait for its end: ce status",
            Self::Resources => "correct the text of the name in the file resources",
            Self::Nondeterministic => "name the call to audit it",
        };
        Some(hint.to_owned())
    }
}

/// The ends of the calls of an audit so far.
#[derive(Debug)]
pub struct AuditEnds<'a> {
    /// What was planned.
    pub plan: &'a AuditPlan,
    ends: Vec<Option<AuditedEnd>>,
}

/// How many calls of an audit ended in each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditCounts {
    /// They have the recorded outputs.
    pub agree: usize,
    /// They have others.
    pub differ: usize,
    /// They have others, as their computations say.
    pub expected: usize,
    /// They failed.
    pub failed: usize,
    /// They would have taken longer than there was time.
    pub over_budget: usize,
    /// They could not be executed.
    pub not_executed: usize,
    /// The storage could not be read or written.
    pub broken: usize,
    /// The user has asked to stop before.
    pub interrupted: usize,
}

impl PlannedAudit {
    /// Its short name.
    pub fn name(&self) -> String {
        self.call.recorded.name.short()
    }
}

impl<'a> AuditEnds<'a> {
    /// None of the calls has ended yet.
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

    /// The calls with this verdict, leaves first. Those that are to differ do not count as differing.
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
            *match end {
                None => &mut counts.interrupted,
                Some(AuditedEnd::OverBudget) => &mut counts.over_budget,
                Some(AuditedEnd::NotAudited(_)) => &mut counts.not_executed,
                Some(AuditedEnd::Broken(_)) => &mut counts.broken,
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
    fn a_sample_is_as_large_as_asked_for_and_the_same_for_a_seed() {
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
