//! The making of the results: by computation, what was executed when, and what it took.

use std::collections::BTreeMap;

use maud::{Markup, html};

use ce_model::humanize::{duration, size};
use ce_model::statistics::Measurements;
use ce_queries::page::{PageCall, PageCallState, PageData};

use super::words::{moment, text};

/// The number of digits of a commit that are shown.
const SHORT_COMMIT: usize = 12;

/// The calls of a computation.
#[derive(Default)]
struct ComputationCalls<'a> {
    calls: usize,
    failed: usize,
    missing: usize,
    seconds: Vec<f64>,
    cpu: Vec<f64>,
    peak: Option<u64>,
    ends: Vec<i64>,
    commits: Vec<&'a str>,
}

impl<'a> ComputationCalls<'a> {
    fn add(&mut self, call: &'a PageCall) {
        self.calls += 1;
        self.failed += usize::from(call.state == PageCallState::Failed);
        self.missing += usize::from(call.state == PageCallState::Missing);
        self.seconds.extend(call.seconds);
        self.cpu.extend(call.cpu_seconds);
        self.peak = self.peak.max(call.peak_bytes);
        self.ends.extend(call.end);
        // The version that was executed.
        let origin = call.taken_over.as_ref().and_then(|from| from.from.split('/').nth(1));
        let commit = origin.unwrap_or(&call.commit);
        let commit = commit.get(..SHORT_COMMIT).unwrap_or(commit);
        if !commit.is_empty() && !self.commits.contains(&commit) {
            self.commits.push(commit);
        }
    }

    fn executed(&self) -> String {
        let (Some(first), Some(last)) = (self.ends.iter().min(), self.ends.iter().max()) else {
            return "–".to_owned();
        };
        let [first, last] = [first, last].map(|time| moment(*time));
        if first == last { first } else { format!("{first} to {last}") }
    }
}

/// The table of the computations, the one that took longest first.
pub(super) fn computations(data: &PageData) -> Markup {
    let mut groups: BTreeMap<&str, ComputationCalls<'_>> = BTreeMap::new();
    for call in &data.calls {
        groups.entry(&call.computation).or_default().add(call);
    }
    let mut groups: Vec<(&str, ComputationCalls<'_>)> = groups.into_iter().collect();
    let total = |group: &ComputationCalls<'_>| group.seconds.iter().sum::<f64>();
    groups.sort_by(|(_, a), (_, b)| total(b).total_cmp(&total(a)));
    let some = |of: fn(&ComputationCalls<'_>) -> bool| groups.iter().any(|(_, group)| of(group));
    let [has_failed, has_missing] = [some(|it| it.failed > 0), some(|it| it.missing > 0)];
    let [has_cpu, has_peak] = [some(|it| !it.cpu.is_empty()), some(|it| it.peak.is_some())];
    html! {
        @if !groups.is_empty() {
            h3 { "Computations" }
            div.scroll { table #computations {
                thead { tr {
                    th scope="col" { "computation" }
                    th.number scope="col" { "calls" }
                    @if has_failed { th.number scope="col" { "failed" } }
                    @if has_missing { th.number scope="col" { "missing" } }
                    th scope="col" { "executed (UTC)" }
                    th.number scope="col" { "total" }
                    th.number scope="col" { "median" }
                    th.number scope="col" { "longest" }
                    @if has_cpu { th.number scope="col" { "CPU time" } }
                    @if has_peak { th.number scope="col" { "peak memory" } }
                    th scope="col" { "version" }
                } }
                tbody { @for (name, group) in &groups { tr {
                    @let sample = Measurements::new(group.seconds.clone());
                    td { (text(name)) }
                    td.number { (group.calls) }
                    @if has_failed { td.number { (group.failed) } }
                    @if has_missing { td.number { (group.missing) } }
                    td { (group.executed()) }
                    @if let Some(sample) = &sample {
                        td.number { (seconds(total(group))) }
                        td.number { (seconds(sample.median())) }
                        td.number { (seconds(sample.range()[1])) }
                    } @else { td.number { "–" } td.number { "–" } td.number { "–" } }
                    @if has_cpu { td.number { @if group.cpu.is_empty() { "–" } @else { (seconds(group.cpu.iter().sum())) } } }
                    @if has_peak { td.number { @if let Some(peak) = group.peak { (size(peak)) } @else { "–" } } }
                    td.mono { @for (at, commit) in group.commits.iter().enumerate() {
                        @if at > 0 { ", " } (commit)
                    } }
                } } }
            } }
        }
    }
}

/// The machines of executions, if they are known.
pub(super) fn machines(data: &PageData) -> Markup {
    let mut machines: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for call in &data.calls {
        if let Some(machine) = &call.machine {
            *machines.entry((call.host.as_deref().unwrap_or("–"), machine)).or_default() += 1;
        }
    }
    html! {
        @if !machines.is_empty() {
            h3 { "Machines" }
            div.scroll { table.measured {
                thead { tr { th scope="col" { "host" } th scope="col" { "machine" } th.number scope="col" { "calls" } } }
                tbody { @for ((host, machine), calls) in &machines { tr {
                    td { (text(host)) } td { (text(machine)) } td.number { (calls) }
                } } }
            } }
        }
    }
}

/// A duration, exact enough for short ones.
fn seconds(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.3} s") } else { duration(seconds) }
}
