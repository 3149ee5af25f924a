//! The calls of a page: what they read and made, how they ended, and what they printed.

use std::cmp::Reverse;
use std::collections::HashSet;

use serde::Serialize;

use super::index::{PageIndex, PageValue, name_of};
use super::{PageLimits, PageScope};
use ce_evaluate::{Evaluation, Outcome};
use ce_exchange::{Attestations, Attested, Attester};
use ce_history::{InputTexts, Past, TakenOver};
use ce_model::digest::Digest;
use ce_model::plan::CallId;
use ce_storage::records::{CallRecord, Origin};
use ce_storage::{Record, ResultName, Storage, StorageError};

/// How a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PageCallState {
    /// It was executed.
    Executed,
    /// Its outputs were taken over from another commit.
    TakenOver,
    /// Its outputs were adopted.
    Adopted,
    /// It was executed in another storage.
    Shared,
    /// Its outputs are known, and deliberately not here.
    Away,
    /// It failed, and has not succeeded since.
    Failed,
    /// It has started something that goes on elsewhere.
    Suspended,
    /// It is not in the storage.
    Missing,
}

/// A call on a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PageCall {
    /// Its short name.
    pub name: String,
    /// The name of the computation.
    pub computation: String,
    /// The commit with the computation, or the one below its uncommitted changes; empty if it is not known.
    pub commit: String,
    /// Whether the computation had uncommitted changes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dirty: bool,
    /// How it stands.
    pub state: PageCallState,
    /// The end of the execution that made its outputs in milliseconds since 1970, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<i64>,
    /// The duration of that execution in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Its CPU time in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// Its peak memory in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// The host of its execution, or the one that recorded its failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The user who recorded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// How it was isolated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// What it has asked for.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub resources: Box<[String]>,
    /// Its inputs that are short texts.
    pub texts: InputTexts,
    /// Its inputs.
    pub inputs: Vec<PageValue>,
    /// Its outputs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<PageValue>,
    /// The source of its outputs, if they were taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_over: Option<TakenOver>,
    /// Why it failed, or could not be executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it has printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<PageLog>,
    /// Who says that it was executed; none if only this storage does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attested: Option<Attested>,
    /// The digests of its inputs.
    #[serde(skip)]
    digests: Vec<Digest>,
}

/// What a call has printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PageLog {
    /// The name of the log in the storage.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its end; none if there are too many logs.
    pub tail: Option<String>,
}

impl PageCall {
    /// Whether its outputs are there, or known.
    pub const fn is_there(&self) -> bool {
        !matches!(
            self.state,
            PageCallState::Failed | PageCallState::Suspended | PageCallState::Missing
        )
    }

    fn of_past(past: Past) -> Self {
        let state = match &past {
            _ if past.failed.is_some() => PageCallState::Failed,
            _ if past.suspended.is_some() => PageCallState::Suspended,
            _ if past.away => PageCallState::Away,
            _ if past.taken_over.is_some() => PageCallState::TakenOver,
            _ if past.shared => PageCallState::Shared,
            _ if past.made.seconds.is_none() => PageCallState::Adopted,
            _ => PageCallState::Executed,
        };
        Self {
            name: past.name,
            computation: past.computation,
            commit: past.commit,
            dirty: past.dirty,
            state,
            end: past.made.at.map(jiff::Timestamp::as_millisecond),
            seconds: past.made.seconds,
            cpu_seconds: past.made.cpu_seconds,
            peak_bytes: past.made.peak_bytes,
            host: past.made.host,
            user: None,
            isolation: None,
            resources: past.made.resources,
            texts: past.texts,
            inputs: Vec::new(),
            outputs: Vec::new(),
            taken_over: past.taken_over,
            reason: past.failed,
            log: None,
            attested: None,
            digests: past.inputs,
        }
    }

    /// A call of a plan that has no record.
    fn missing(evaluation: &Evaluation, call: CallId, name: String) -> Option<Self> {
        let computation = evaluation.computation(call)?;
        let inputs = evaluation.plan.inputs(call).iter().map(|source| evaluation.digest(*source));
        let reason = match evaluation.outcome(call)? {
            Outcome::Failed { error, .. } => Some(error.in_full()),
            Outcome::Unfinished(_, why) => Some(why.to_string()),
            Outcome::Blocked(_) => Some("an input is not there".to_owned()),
            Outcome::Waiting(_) => {
                Some("an input is not there yet: a call is suspended".to_owned())
            }
            _ => None,
        };
        Some(Self {
            name,
            computation: computation.name.to_string(),
            commit: computation.commit.full().to_owned(),
            dirty: computation.dirty,
            state: PageCallState::Missing,
            end: None,
            seconds: None,
            cpu_seconds: None,
            peak_bytes: None,
            host: None,
            user: None,
            isolation: None,
            resources: Box::default(),
            texts: InputTexts::default(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            taken_over: None,
            reason,
            log: None,
            attested: None,
            digests: inputs.collect::<Option<_>>().unwrap_or_default(),
        })
    }
}

/// The calls of a log. Their inputs are not known yet.
pub(super) fn of_past(log: Vec<Past>) -> Vec<PageCall> {
    log.into_iter().map(PageCall::of_past).collect()
}

/// Adds the calls of a task that the storage has nothing of.
pub(super) fn add_missing(scope: &PageScope<'_>, calls: &mut Vec<PageCall>) {
    let PageScope::Task(task) = scope else { return };
    let mut known: HashSet<String> = calls.iter().map(|call| call.name.clone()).collect();
    for (call, _) in task.evaluation.plan.calls() {
        let Some(outcome) = task.evaluation.outcome(call) else { continue };
        let name = name_of(task.evaluation, call);
        if outcome.known().is_none()
            && let Some(name) = name.filter(|it| known.insert(it.clone()))
        {
            calls.extend(PageCall::missing(task.evaluation, call, name));
        }
    }
}

/// Sorts calls: the newest first, and among equally old ones by name.
pub(super) fn sort(calls: &mut [PageCall]) {
    calls.sort_by(|one, other| {
        let key = |call: &PageCall| Reverse(call.end);
        (key(one), &one.name).cmp(&(key(other), &other.name))
    });
}

/// Adds what the records of calls say, and where their inputs come from.
pub(super) fn add_records(calls: &mut [PageCall], index: &mut PageIndex<'_>) {
    for call in calls {
        let record = match index.subject(&call.name).map(|subject| subject.record) {
            Some(Record::Call(record)) if call.is_there() => Some(record),
            _ => None,
        };
        let argv = record.and_then(CallRecord::execution).map(|it| &*it.argv).unwrap_or_default();
        for (at, digest) in std::mem::take(&mut call.digests).iter().enumerate() {
            let file = argv.get(at + 1).map(String::as_str).unwrap_or_default();
            let name = index.name_of(&call.name, at, false);
            let role = index.role(&call.name, at, digest);
            call.inputs.push(PageValue { role, ..index.value(name, file, digest) });
        }
        let Some(record) = record else { continue };
        call.user = record.recorded.as_ref().map(|it| it.user.clone());
        call.isolation = Origin::isolation(&record.origin).map(str::to_owned);
        let result = ResultName::of_short(&call.name);
        for (at, output) in record.outputs.iter().enumerate() {
            call.outputs.push(PageValue {
                name: index.name_of(&call.name, at, true),
                file: result.as_ref().map(|result| result.output(at)),
                sha1: output.digest.sha1.full(),
                size: output.digest.total(),
                from: None,
                role: None,
                number: at,
            });
        }
    }
}

/// Adds who has executed calls, where that is more than this storage on one kind of host.
pub(super) fn add_attested(calls: &mut [PageCall], all: &Attestations, index: &PageIndex<'_>) {
    for call in calls.iter_mut().filter(|call| call.is_there()) {
        let Some(Record::Call(record)) = index.subject(&call.name).map(|it| it.record) else {
            continue;
        };
        let attested = all.of(record);
        let Attested { by, host_kinds } = &attested;
        let is_own = by.differing.is_empty() && by.agreeing == [Attester::Here];
        let is_usual = by.all() == 0 || is_own && host_kinds.all() <= 1;
        call.attested = (!is_usual).then_some(attested);
    }
}

/// Adds the ends of logs: those of failures first, then those of the newest calls.
pub(super) fn add_logs(
    calls: &mut [PageCall],
    storage: &Storage,
    limits: PageLimits,
) -> Result<(), StorageError> {
    let mut room = limits.all_log_bytes;
    for failures in [true, false] {
        for call in calls.iter_mut().filter(|it| failures == (it.state == PageCallState::Failed)) {
            let Some(name) = ResultName::of_short(&call.name) else { continue };
            let most = limits.log_bytes.min(room);
            let Some((log, size)) = storage.attempts().log_end(&name, failures, most)? else {
                continue;
            };
            room -= size.min(most);
            let is_shown = most > 0 && (size <= most || most == limits.log_bytes);
            let tail = is_shown.then_some(log.tail);
            call.log = Some(PageLog { name: log.name, size, tail });
        }
    }
    Ok(())
}
