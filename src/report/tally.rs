//! How many calls and tables ended in each way.

use std::fmt;

use serde::Serialize;

use super::{has_table, sweep_title};
use ce_evaluate::{Evaluation, Outcome, Unfinished};
use ce_model::humanize::counted;

/// The number of calls by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// All of them.
    pub calls: usize,
    /// Calls of which the outputs were there.
    pub reused: usize,
    /// Calls of which the outputs were there for another commit.
    pub taken_over: usize,
    /// Calls of which the outputs are away, and were not needed; left out if there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub away: usize,
    /// Calls of which the outputs are archives, and nothing was to be unpacked; left out if there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub archived: usize,
    /// Calls that were executed, or tables that were made.
    pub executed: usize,
    /// Calls of which outputs are missing, when nothing was to be computed.
    pub missing: usize,
    /// Calls of which an input is not there.
    pub blocked: usize,
    /// Calls that failed.
    pub failed: usize,
    /// Calls that are suspended; left out if there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub suspended: usize,
    /// Calls that wait for suspended ones; left out if there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub waiting: usize,
    /// Calls that were lost or refused; left out if there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub unfinished: usize,
    /// Calls that were not started, since another one had failed or the user asked to stop; left out if there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_started: usize,
    /// Calls that had begun and were not over when the user asked to stop.
    pub interrupted: usize,
    /// Calls that nobody asked for; left out if there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// Failed calls that make rows of tables; left out if there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub allowed: usize,
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
    /// Adds a call, and how it ended if it did. An allowed failure makes a row of a table.
    pub(super) fn add(&mut self, outcome: Option<&Outcome>, is_allowed: bool) {
        self.calls += 1;
        match outcome {
            None => {}
            Some(Outcome::LeftOut(_)) => self.left_out += 1,
            Some(Outcome::Reused(_)) => self.reused += 1,
            Some(Outcome::TakenOver(_)) => self.taken_over += 1,
            Some(Outcome::Executed(_)) => self.executed += 1,
            Some(Outcome::Away(_)) => self.away += 1,
            Some(Outcome::Archived(_)) => self.archived += 1,
            Some(Outcome::Missing(..) | Outcome::Foreseen(_)) => self.missing += 1,
            Some(Outcome::Blocked(_)) => self.blocked += 1,
            Some(Outcome::Unfinished(_, Unfinished::Suspended(_))) => self.suspended += 1,
            Some(Outcome::Waiting(_)) => self.waiting += 1,
            Some(Outcome::Unfinished(..)) => self.unfinished += 1,
            Some(Outcome::NotStarted(..)) => self.not_started += 1,
            Some(Outcome::Interrupted(_)) => self.interrupted += 1,
            Some(Outcome::Failed { .. }) => {
                self.failed += 1;
                self.allowed += usize::from(is_allowed);
            }
        }
    }

    /// The counts in words, where they are tables: `3 tables: 2 reused, 1 made`.
    pub(super) fn of_tables(self) -> String {
        self.words("table", "made")
    }

    fn words(&self, noun: &str, executed: &str) -> String {
        let parts = [
            (self.reused, "reused"),
            (self.taken_over, "taken over"),
            (self.away, "away"),
            (self.archived, "archived"),
            (self.executed, executed),
            (self.missing, "missing"),
            (self.failed, "failed"),
            (self.blocked, "blocked"),
            (self.suspended, "suspended"),
            (self.waiting, "waiting"),
            (self.unfinished, "not finished"),
            (self.not_started, "not started"),
            (self.interrupted, "interrupted"),
            (self.left_out, "not asked for"),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, word)| format!("{count} {word}")).collect();
        let colon = if parts.is_empty() { "" } else { ": " };
        format!("{}{colon}{}", counted(self.calls, noun), parts.join(", "))
    }
}

/// The counts in words: `3 calls: 2 reused, 1 computed`.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words("call", "computed"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_counted_beside_calls() {
        let calls = Tally { calls: 16, executed: 13, failed: 2, blocked: 1, ..Tally::default() };
        let tables = Tally { calls: 2, executed: 1, blocked: 1, ..Tally::default() };
        let totals = Totals { calls, tables: Tally::default(), at_least: false };
        assert_eq!(totals.to_string(), "16 calls: 13 computed, 2 failed, 1 blocked");
        let text = "16 calls: 13 computed, 2 failed, 1 blocked; 2 tables: 1 made, 1 blocked";
        assert_eq!(Totals { tables, ..totals }.to_string(), text);
        let unknown = Totals { calls: Tally::default(), at_least: true, ..totals };
        assert_eq!(unknown.to_string(), "at least 0 calls");
    }
}
