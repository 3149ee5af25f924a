//! Audits: recorded calls are executed again, and compared with their results.
//!
//! The jobs that a storage records tell how: each is evaluated as it was, without executing anything, and so it is known which
//! computation a call is of, and which files it reads.

mod choice;
mod planning;

use std::cell::Cell;
use std::collections::HashSet;
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use self::choice::{AuditChoice, AuditSample};
use super::{Error, Session};
use crate::evaluate::{Audit, AuditBudget, AuditedCall, AuditedEnd, ExecutionSettings, Exports};
use crate::report::say;
use crate::results::{AuditFinding, AuditPlan, PlannedAudit, record_audits};
use ce_git::{SourceRepositories, Trees};
use ce_model::plan::PointSelection;

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

impl Session {
    /// Executes planned calls again. Passes the place of each in the plan to `ended` with its end, and writes what was found into
    /// the ledger. When the user asks to stop, what was found until then is kept.
    ///
    /// # Errors
    ///
    /// Fails if threads cannot be started, or the storage cannot be written.
    pub fn audit(
        &self,
        plan: &AuditPlan,
        terms: &AuditTerms,
        ended: &mut dyn FnMut(usize, AuditedEnd),
    ) -> Result<(), Error> {
        let Some((executor, _)) = &self.executor else { return Ok(()) };
        let exports = &Exports::new(&self.storage, &self.trees);
        let forced = &HashSet::new();
        let settings = ExecutionSettings {
            executor: &**executor,
            exports,
            retries: 0,
            retry_failed: false,
            limit: self.limit,
            forced,
            accept: false,
            fail_fast: false,
            wait: false,
            asks: false,
            queue: self.queue.as_deref(),
        };
        let calls: Vec<AuditedCall> = plan.calls.iter().map(|it| it.call.clone()).collect();
        let budget = AuditBudget::new(terms.budget);
        let audit = Audit { storage: &self.storage, settings, calls: &calls, budget };
        let (mut findings, mut written) = (Vec::new(), Instant::now());
        let mut result = Ok(());
        let record = |findings: &mut Vec<AuditFinding>| {
            let found = mem::take(findings);
            record_audits(&self.storage, &found, terms.by.as_deref())
        };
        let mut note = |at: usize, end: AuditedEnd| {
            if let AuditedEnd::Report(report) = &end {
                let PlannedAudit { call, id, .. } = &plan.calls[at];
                let (name, report) = (call.recorded.name.short(), (**report).clone());
                findings.push(AuditFinding { name, id: *id, report });
            }
            if written.elapsed() > KEPT && result.is_ok() {
                result = record(&mut findings);
                written = Instant::now();
            }
            ended(at, end);
        };
        let look = || {
            if let Some(notice) = self.notice() {
                say("ce", &notice);
            }
        };
        let run = audit.run(&mut note, &look);
        let result = result.and_then(|()| record(&mut findings));
        result?;
        Ok(run?)
    }

    /// A session on the same storage for tasks in another directory, which executes nothing.
    fn looking_in(&self, dir: &Path) -> Self {
        Self {
            storage: Arc::clone(&self.storage),
            trees: Trees::new(dir),
            sources: Arc::new(SourceRepositories::new(dir, Vec::new())),
            jobs: self.jobs,
            retries: 0,
            retry_failed: false,
            limit: self.limit,
            wait: false,
            forced: HashSet::new(),
            accept: false,
            fail_fast: false,
            selection: PointSelection::default(),
            queue: None,
            slurm: None,
            executor: None,
            stores: self.stores,
            warned: Cell::new(false),
            notices: Arc::clone(&self.notices),
        }
    }
}
