//! The findings of audits: a line for each call as it ends, and then the differences, leaves first.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::calls::told_apart;
use super::terminal::aligned;
use super::{harmless, json_line};
use ce_evaluate::AuditedEnd;
use ce_exchange::Attested;
use ce_model::exit::Explain;
use ce_model::humanize::{counted, duration};
use ce_queries::audit::{AuditCounts, AuditEnds, AuditPlan, NotAudited, PlannedAudit};
use ce_storage::Storage;
use ce_storage::records::{
    AuditVerdict, FailureFacts, FirstDifference, LineDifference, OutputDifference,
};

/// Prints the calls that would be audited: who has executed each so far, and how long it took.
pub fn planned_audits(plan: &AuditPlan, json: bool, out: &mut dyn Write) -> io::Result<()> {
    if json {
        return plan.calls.iter().try_for_each(|call| {
            json_line(
                &JsonPlanned {
                    name: &call.name(),
                    seconds: expected(call),
                    attested: &call.attested,
                },
                out,
            )
        });
    }
    let rows: Vec<[String; 3]> = plan.calls.iter().map(planned).collect();
    aligned(&rows).try_for_each(|line| writeln!(out, "{line}"))
}

fn planned(call: &PlannedAudit) -> [String; 3] {
    let time = expected(call).map_or_else(|| "-".to_owned(), duration);
    [call.name(), call.attested.to_string(), time]
}

fn expected(call: &PlannedAudit) -> Option<f64> {
    call.call.expected.map(|it| it.as_secs_f64())
}

/// Returns the size of an audit in words: the number of calls, and how long they took.
pub fn audit_size(plan: &AuditPlan) -> String {
    let known: Vec<f64> = plan.calls.iter().filter_map(expected).collect();
    let unknown = plan.calls.len() - known.len();
    let time = duration(known.iter().sum());
    let calls = counted(plan.calls.len(), "call");
    match unknown {
        0 => format!("{calls} to be executed again; they took {time}"),
        _ => {
            format!("{calls} to be executed again; they took {time}, and nobody knows of {unknown}")
        }
    }
}

/// Returns, for each reason, the number of recorded calls that cannot be audited, and what to try.
pub fn not_audited(plan: &AuditPlan) -> Vec<String> {
    let mut lines = Vec::new();
    for (why, count) in reasons(plan) {
        let (calls, text) = (counted(count, "call"), why.to_string());
        let hint = why.hint().unwrap_or_default();
        lines.push(format!("{calls} cannot be audited: {}\n  try: {hint}", harmless(&text)));
    }
    lines
}

fn reasons(plan: &AuditPlan) -> BTreeMap<&NotAudited, usize> {
    let mut reasons = BTreeMap::new();
    for why in plan.left_out.values() {
        *reasons.entry(why).or_default() += 1;
    }
    reasons
}

/// Prints how a call has ended: one line, or a JSON object.
pub fn audited(
    call: &PlannedAudit,
    end: &AuditedEnd,
    json: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    if json {
        return audited_json(call, end, out);
    }
    let name = call.name();
    match end {
        AuditedEnd::OverBudget => Ok(()),
        AuditedEnd::NotAudited(why) => {
            writeln!(out, "not audited  {name}: {}", harmless(&why.reason))?;
            let mut hint = why.hint.iter();
            hint.try_for_each(|hint| writeln!(out, "  try: {}", harmless(hint)))
        }
        AuditedEnd::Report(report) => {
            let verdict = match report.verdict() {
                AuditVerdict::Agrees => "agrees ",
                AuditVerdict::Differs if call.nondeterministic => {
                    return writeln!(out, "differs  {name}  as its computation says");
                }
                AuditVerdict::Differs => "differs",
                AuditVerdict::Failed => "failed ",
            };
            writeln!(out, "{verdict}  {name}  {}", duration(report.seconds))
        }
    }
}

/// Prints the calls that differ or failed, leaves first.
pub fn audit_findings(
    storage: &Storage,
    ends: &AuditEnds<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let shown = |name: &str| harmless(&storage.shown(name).display().to_string()).into_owned();
    for (number, (call, end)) in ends.with(AuditVerdict::Differs).into_iter().enumerate() {
        let AuditedEnd::Report(report) = end else { continue };
        let place = match number {
            0 => "the first that differs, leaves first",
            _ => "differs, too",
        };
        writeln!(out, "{}: {place}", call.name())?;
        let names = &call.call.computation().outputs;
        for difference in &report.differing {
            let name = names.get(difference.number).map_or("", String::as_str);
            for line in difference_lines(difference, name, &shown) {
                writeln!(out, "  {line}")?;
            }
        }
    }
    for (call, end) in ends.with(AuditVerdict::Failed) {
        let AuditedEnd::Report(report) = end else { continue };
        let Some(FailureFacts { reason, cause, hint, log, .. }) = &report.failed else { continue };
        writeln!(out, "{}: failed: {}", call.name(), harmless(reason))?;
        let parts = [("because", cause.clone()), ("try", hint.clone())];
        let parts = parts.into_iter().chain([("log", log.as_deref().map(shown))]);
        for (what, text) in parts {
            if let Some(text) = text {
                writeln!(out, "  {what}: {}", harmless(&text))?;
            }
        }
    }
    Ok(())
}

fn difference_lines(
    difference: &OutputDifference,
    name: &str,
    shown: &dyn Fn(&str) -> String,
) -> Vec<String> {
    let OutputDifference { number, recorded, found, aside, first } = difference;
    let mut lines = vec![format!("output {number:02} ({name}): {}", place(first.as_ref()))];
    if let Some(FirstDifference { line: Some(LineDifference { recorded, found, .. }), .. }) = first
    {
        let end = "(the end of the file)";
        lines.push(format!("  recorded  {}", recorded.as_deref().map_or(end.into(), harmless)));
        lines.push(format!("  now       {}", found.as_deref().map_or(end.into(), harmless)));
    }
    let [recorded, now] = told_apart(recorded, found);
    lines.push(format!("  SHA-1 recorded {recorded}, now {now}"));
    lines.push(format!("  what was made now is in {}", shown(aside)));
    lines
}

/// Returns the place of the first difference, in words.
fn place(first: Option<&FirstDifference>) -> String {
    let Some(FirstDifference { member, what, byte, line }) = first else {
        return "differs, and the recorded one cannot be read".to_owned();
    };
    let place = match (byte, line, what) {
        (Some(byte), Some(line), _) => format!("differs in byte {byte}, in line {}", line.number),
        (Some(byte), None, _) => format!("differs in byte {byte}"),
        (None, _, Some(what)) => what.clone(),
        (None, ..) => "differs".to_owned(),
    };
    match member {
        Some(member) => format!("{} {place}", harmless(member)),
        None => place,
    }
}

/// Returns the ends of the calls of an audit, in numbers.
pub fn audit_summary(counts: &AuditCounts) -> String {
    let AuditCounts { agree, differ, expected, failed, over_budget, .. } = *counts;
    let audited = agree + differ + expected + failed;
    let parts = [
        (agree, "agree"),
        (differ, "differ"),
        (expected, "differ as their computations say"),
        (failed, "failed"),
        (over_budget, "left for lack of time"),
        (counts.not_executed + counts.broken, "could not be executed"),
        (counts.interrupted, "interrupted or not begun"),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
    let audited = counted(audited, "call");
    match parts.is_empty() {
        true => format!("{audited} audited"),
        false => format!("{audited} audited: {}", parts.join(", ")),
    }
}

#[derive(Serialize)]
struct JsonPlanned<'a> {
    name: &'a str,
    seconds: Option<f64>,
    attested: &'a Attested,
}

#[derive(Serialize)]
struct JsonAudited<'a> {
    name: &'a str,
    verdict: &'static str,
    nondeterministic: bool,
    attested: &'a Attested,
    recorded_seconds: Option<f64>,
    seconds: Option<f64>,
    peak_bytes: Option<u64>,
    isolation: Option<&'a str>,
    differing: &'a [OutputDifference],
    failed: Option<&'a FailureFacts>,
    reason: Option<&'a str>,
    hint: Option<&'a str>,
}

fn audited_json(call: &PlannedAudit, end: &AuditedEnd, out: &mut dyn Write) -> io::Result<()> {
    let (report, verdict, why) = match end {
        AuditedEnd::OverBudget => (None, "over_budget", None),
        AuditedEnd::NotAudited(why) => (None, "not_audited", Some(why)),
        AuditedEnd::Report(report) => {
            let verdict = match report.verdict() {
                AuditVerdict::Agrees => "agrees",
                AuditVerdict::Differs => "differs",
                AuditVerdict::Failed => "failed",
            };
            (Some(&**report), verdict, None)
        }
    };
    let json = JsonAudited {
        name: &call.name(),
        verdict,
        nondeterministic: call.nondeterministic,
        attested: &call.attested,
        recorded_seconds: expected(call),
        seconds: report.map(|it| it.seconds),
        peak_bytes: report.map(|it| it.peak_bytes),
        isolation: report.map(|it| &*it.isolation),
        differing: report.map_or(&[], |it| &it.differing),
        failed: report.and_then(|it| it.failed.as_ref()),
        reason: why.map(|it| &*it.reason),
        hint: why.and_then(|it| it.hint.as_deref()),
    };
    json_line(&json, out)
}

#[derive(Serialize)]
struct JsonNotAudited<'a> {
    name: &'a str,
    verdict: &'static str,
    reason: String,
    hint: Option<String>,
}

/// Prints a JSON object for each call that cannot be audited.
pub fn not_audited_json(plan: &AuditPlan, out: &mut dyn Write) -> io::Result<()> {
    plan.left_out.iter().try_for_each(|(name, why)| {
        let (reason, hint) = (why.to_string(), why.hint());
        json_line(&JsonNotAudited { name, verdict: "not_audited", reason, hint }, out)
    })
}

#[derive(Serialize)]
struct JsonAuditEnd {
    agree: usize,
    differ: usize,
    expected: usize,
    failed: usize,
    over_budget: usize,
    not_executed: usize,
    interrupted: usize,
    not_audited: BTreeMap<String, usize>,
    first: Option<String>,
    seed: Option<u64>,
}

/// Prints the end of an audit as a JSON object: doc/schema/output.json describes the fields.
pub fn audit_end_json(
    ends: &AuditEnds<'_>,
    seed: Option<u64>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let counts = ends.counts();
    let not_audited = reasons(ends.plan).into_iter();
    let json = JsonAuditEnd {
        agree: counts.agree,
        differ: counts.differ,
        expected: counts.expected,
        failed: counts.failed,
        over_budget: counts.over_budget,
        not_executed: counts.not_executed + counts.broken,
        interrupted: counts.interrupted,
        not_audited: not_audited.map(|(why, count)| (why.to_string(), count)).collect(),
        first: ends.with(AuditVerdict::Differs).first().map(|(call, _)| call.name()),
        seed,
    };
    json_line(&json, out)
}
