//! Audits as they are planned and as they end.

use std::collections::BTreeMap;

use ce_evaluate::{AuditedCall, AuditedEnd};
use ce_exchange::Attested;
use ce_model::digest::Blake3;
use ce_model::exit::Explain;
use ce_storage::records::AuditVerdict;

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
        let is_so = |(call, end): &(&PlannedAudit, &AuditedEnd)| match end {
            AuditedEnd::Report(report) => {
                report.verdict() == verdict
                    && (verdict != AuditVerdict::Differs || !call.nondeterministic)
            }
            _ => false,
        };
        let mut calls: Vec<_> =
            self.all().filter_map(|(call, end)| Some((call, end?))).filter(is_so).collect();
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
