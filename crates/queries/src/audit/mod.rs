//! Audits: recorded calls are executed again, and compared with their results.
//!
//! The jobs that a storage records tell how: each is evaluated as it was, without executing anything, and so it is known which
//! computation a call is of, and which files it reads.

mod choice;
mod plan;
mod planning;

use std::mem;
use std::time::{Duration, Instant};

pub use self::choice::{AuditChoice, AuditSample};
pub use self::plan::{AuditCounts, AuditEnds, AuditPlan, NotAudited, PlannedAudit};
pub use self::planning::plan_audit;
use ce_evaluate::session::Session;
use ce_evaluate::{AuditBudget, AuditedCall, AuditedEnd};
use ce_exchange::{AuditFinding, record_audits};
use ce_model::exit::Error;

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
///
/// # Errors
///
/// Fails if threads cannot be started, or the storage cannot be written.
pub fn audit(
    session: &Session,
    plan: &AuditPlan,
    terms: &AuditTerms,
    ended: &mut dyn FnMut(usize, AuditedEnd),
) -> Result<(), Error> {
    let calls: Vec<AuditedCall> = plan.calls.iter().map(|it| it.call.clone()).collect();
    let (mut findings, mut written) = (Vec::new(), Instant::now());
    let mut result = Ok(());
    let record = |findings: &mut Vec<AuditFinding>| {
        let found = mem::take(findings);
        record_audits(session.storage(), &found, terms.by.as_deref())
    };
    let run = session.execute_again(&calls, AuditBudget::new(terms.budget), &mut |at, end| {
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
    });
    result.and_then(|()| record(&mut findings))?;
    Ok(run?)
}
