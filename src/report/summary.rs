//! The summary of a run: how many calls and tables ended in each way, and which results are revoked.

use std::collections::BTreeMap;
use std::fmt;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::calls::{has_table, sweep_title};
use super::harmless;
use ce_evaluate::{Evaluation, How, Outcome};
use ce_model::digest::Digest;
use ce_model::humanize::counted;
use ce_storage::Entry;

/// The number of calls by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All of them, whether they have ended or not.
    pub calls: usize,
    /// Those that ended, by how.
    ended: [usize; How::ALL.len()],
    /// Failed calls that make rows of tables.
    allowed: usize,
}

/// The numbers of calls and of tables by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The calls of computations.
    pub calls: Tally,
    /// The tables of sweeps.
    pub tables: Tally,
    /// Whether there may be more calls: the points of a sweep are not known.
    pub at_least: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it like this")]
pub(super) const fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The number of calls of computations by outcome.
pub fn tally(evaluation: &Evaluation) -> Tally {
    totals(evaluation).calls
}

/// The numbers of calls and of tables by outcome.
pub fn totals(evaluation: &Evaluation) -> Totals {
    let mut totals = Totals { at_least: evaluation.plan.grows(), ..Totals::default() };
    for (call, _) in evaluation.plan.calls() {
        let outcome = evaluation.outcome(call);
        let tally = match evaluation.plan.computation(call) {
            Some(_) => &mut totals.calls,
            None if !has_table(evaluation, call) => continue,
            None => &mut totals.tables,
        };
        tally.add(outcome, outcome.is_some_and(|it| evaluation.is_allowed(call, it)));
    }
    totals
}

/// Returns, for each sweep of which not all points were asked for, how many were and how many were not.
pub fn left_out(evaluation: &Evaluation) -> impl Iterator<Item = String> + '_ {
    evaluation.plan.partial_sweeps().into_iter().map(|(sweep, [asked, all])| {
        let title = match evaluation.task.sweeps[sweep.index()].has_table {
            true => sweep_title(evaluation, sweep),
            false => "the task".to_owned(),
        };
        format!("{asked} of {all} points of {title}: {} were not asked for", all - asked)
    })
}

impl Tally {
    /// Returns how many calls ended like this.
    pub const fn of(&self, how: How) -> usize {
        self.ended[how as usize]
    }

    /// Adds a call, and how it ended if it did. An allowed failure makes a row of a table.
    pub(super) fn add(&mut self, outcome: Option<&Outcome>, is_allowed: bool) {
        self.calls += 1;
        if let Some(outcome) = outcome {
            self.ended[outcome.how() as usize] += 1;
            self.allowed += usize::from(is_allowed);
        }
    }

    /// The counts in words, where they are tables: `3 tables: 2 reused, 1 made`.
    pub(super) fn of_tables(self) -> String {
        self.words("table", "made")
    }

    fn words(&self, noun: &str, executed: &str) -> String {
        // People read of failures before what they block.
        let mut order = How::ALL;
        order.swap(How::Blocked as usize, How::Failed as usize);
        let mut parts = Vec::new();
        for how in order.into_iter().filter(|how| self.of(*how) > 0) {
            let word = if how == How::Executed { executed } else { how.word() };
            parts.push(format!("{} {word}", self.of(how)));
        }
        let colon = if parts.is_empty() { "" } else { ": " };
        format!("{}{colon}{}", counted(self.calls, noun), parts.join(", "))
    }
}

/// As JSON, seven counts are always there; the others are left out if they are zero.
impl Serialize for Tally {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut counts = serializer.serialize_map(None)?;
        counts.serialize_entry("calls", &self.calls)?;
        for how in How::ALL {
            let is_always_there = matches!(
                how,
                How::Reused
                    | How::TakenOver
                    | How::Executed
                    | How::Missing
                    | How::Blocked
                    | How::Failed
                    | How::Interrupted
            );
            if is_always_there || self.of(how) > 0 {
                counts.serialize_entry(&how, &self.of(how))?;
            }
        }
        if self.allowed > 0 {
            counts.serialize_entry("allowed", &self.allowed)?;
        }
        counts.end()
    }
}

/// The counts in words: `3 calls: 2 reused, 1 computed`.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words("call", How::Executed.word()))
    }
}

/// The counts in words: `3 calls: 2 reused, 1 computed; 1 table: 1 made`.
impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, tables, at_least } = self;
        write!(f, "{}{calls}", if *at_least { "at least " } else { "" })?;
        if tables.calls == 0 { Ok(()) } else { write!(f, "; {}", tables.of_tables()) }
    }
}

/// The greatest number of results that are named.
const NAMED: usize = 20;

/// Returns a line for each result that is revoked, with the reason, whether it was reused or executed again with the same outputs. A
/// revocation that cannot be read does not stop what has been evaluated.
pub fn revoked_results(evaluation: &Evaluation) -> Vec<String> {
    let revocations = evaluation.storage.revocations().index().unwrap_or_default();
    if revocations.is_empty() {
        return Vec::new();
    }
    let mut revoked = BTreeMap::new();
    for outcome in evaluation.outcomes() {
        let Some(outputs) = outcome.known() else { continue };
        let is_again = outcome.how() == How::Executed;
        let digests: Vec<Digest> = outputs.files.iter().map(|it| it.digest).collect();
        if let Some(reason) = revocations.reason(&Entry::Call(outputs.name.clone()), &digests) {
            revoked.insert(outputs.name.short(), (reason, is_again));
        }
    }
    let lines = revoked.iter().map(|(name, (reason, is_again))| {
        let (name, reason) = (harmless(name), harmless(reason));
        if *is_again {
            return format!(
                "warning: {name} was executed again and has the outputs that are revoked: {reason}\n  \
                 try: correct the computation or its inputs, and commit that"
            );
        }
        format!("warning: the result {name} is revoked: {reason}\n  try: ce run --force {name}")
    });
    let mut lines: Vec<String> = lines.collect();
    let more = lines.len().saturating_sub(NAMED);
    lines.truncate(NAMED);
    if more > 0 {
        lines.push(format!(
            "warning: {more} more results are revoked\n  try: ce run --force CALL computes one again"
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_counted_beside_calls() {
        let tally = |calls, counts: &[(How, usize)]| {
            let mut tally = Tally { calls, ..Tally::default() };
            for (how, count) in counts {
                tally.ended[*how as usize] = *count;
            }
            tally
        };
        let calls = tally(16, &[(How::Executed, 13), (How::Failed, 2), (How::Blocked, 1)]);
        let tables = tally(2, &[(How::Executed, 1), (How::Blocked, 1)]);
        let totals = Totals { calls, tables: Tally::default(), at_least: false };
        assert_eq!(totals.to_string(), "16 calls: 13 computed, 2 failed, 1 blocked");
        let text = "16 calls: 13 computed, 2 failed, 1 blocked; 2 tables: 1 made, 1 blocked";
        assert_eq!(Totals { tables, ..totals }.to_string(), text);
        let unknown = Totals { calls: Tally::default(), at_least: true, ..totals };
        assert_eq!(unknown.to_string(), "at least 0 calls");
    }
}
