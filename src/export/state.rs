//! The states of shapes: whether their files are in the storage, and what goes on with calls whose files are not.

use ce_evaluate::{Absence, Evaluation, Outcome};
use ce_model::plan::CallId;

/// Whether files are in the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeState {
    /// All of them are.
    There,
    /// They are known, and some of them are deliberately not here.
    Away,
    /// None is; or of one call, some are not.
    Missing,
    /// They are not, and the last execution of the call failed.
    Failed,
    /// They are not, and a run executes the call.
    Running,
    /// They are not, and the call is suspended.
    Suspended,
    /// Of several calls, so many of a thousand are there.
    Partly(u16),
}

/// The states that say what goes on with a call, and their words.
const ACTIVITIES: [(ShapeState, &str); 3] = [
    (ShapeState::Failed, "failed"),
    (ShapeState::Running, "running"),
    (ShapeState::Suspended, "suspended"),
];

/// What goes on with a call: a run executes it now, it is suspended, or its last execution failed. `None` if nothing does.
pub(super) fn activity(evaluation: &Evaluation, call: CallId) -> Option<ShapeState> {
    let outcome = evaluation.outcome(call)?;
    let prior = match outcome {
        Outcome::Absent(_, Absence::Missing(prior)) => prior.as_deref(),
        _ if outcome.suspended().is_some() => None,
        _ => return None,
    };
    if evaluation.storage.leases().holder(outcome.name()).is_some() {
        return Some(ShapeState::Running);
    }
    if outcome.suspended().is_some() || prior.is_some_and(|it| it.suspended.is_some()) {
        return Some(ShapeState::Suspended);
    }
    prior?.failure.as_ref().map(|_| ShapeState::Failed)
}

/// What goes on with some calls, in words after a comma each: `, 2 failed, 1 running`.
pub(super) fn in_words(evaluation: &Evaluation, calls: &[CallId]) -> String {
    let found: Vec<ShapeState> =
        calls.iter().filter_map(|call| activity(evaluation, *call)).collect();
    let word =
        |(state, word): &(ShapeState, &str)| match found.iter().filter(|it| *it == state).count() {
            0 => None,
            number => Some(format!(", {number} {word}")),
        };
    ACTIVITIES.iter().filter_map(word).collect()
}

/// The word for a state that says what goes on with a call.
pub(super) fn word(state: ShapeState) -> Option<&'static str> {
    ACTIVITIES.iter().find(|(it, _)| *it == state).map(|(_, word)| *word)
}
