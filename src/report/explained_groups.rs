//! Calls that would run for the same reasons: one entry with their number.

use std::collections::HashMap;

use super::cause::{input_of, reason};
use super::point::point_words;
use super::title_at_any_point;
use ce_evaluate::Evaluation;
use ce_model::plan::CallId;
use ce_queries::explain::{Causes, Explained, Explanation, Why};

/// Up to this number of points each has its own entry.
const ALONE: usize = 3;

/// How many points are named.
const NAMED: usize = 3;

/// Calls that are explained together: one, or several at points of a sweep.
pub(super) struct ExplainedGroup<'a> {
    /// In the order of the explanation; never empty.
    pub(super) calls: Vec<&'a Explained>,
    /// Their reasons.
    pub(super) reasons: Vec<SharedReason<'a>>,
}

/// A reason that calls have in common.
pub(super) struct SharedReason<'a> {
    /// The reason, in words, without what differs from call to call.
    pub(super) text: String,
    /// That of the first call.
    pub(super) why: &'a Why,
    /// The causes behind it.
    pub(super) causes: &'a Causes,
}

/// What calls are called together, and their reasons, each with its causes.
type GroupKey = (String, Vec<(String, Vec<usize>)>);

/// The calls of each computation that would run for the same reasons, in the order of the first of each group. That a call
/// waits for others is left out if it has a reason of its own.
pub(super) fn groups_in_short<'a>(
    evaluation: &Evaluation,
    explanation: &'a Explanation,
) -> Vec<ExplainedGroup<'a>> {
    let waits = |why: &Why| matches!(why, Why::Waits { .. });
    let is_told =
        |of: &Explained, why: &Why| !waits(why) || of.whys.iter().all(|(it, _)| waits(it));
    let name = |call| computation(evaluation, call);
    grouped(evaluation, explanation, |_| true, is_told, name)
}

/// The calls of an explanation, those at more than a few points of a sweep together.
pub(super) fn groups<'a>(
    evaluation: &Evaluation,
    explanation: &'a Explanation,
) -> Vec<ExplainedGroup<'a>> {
    let is_at_point = |call| evaluation.plan.call(call).point.is_some();
    let title = |call| title_at_any_point(evaluation, call);
    let calls = explanation.calls.iter().enumerate();
    let places: HashMap<CallId, usize> = calls.map(|(place, it)| (it.call, place)).collect();
    // Few points are told one by one, each in its place.
    let mut split: Vec<ExplainedGroup<'a>> = Vec::new();
    for group in grouped(evaluation, explanation, is_at_point, |_, _| true, title) {
        if group.calls.len() <= ALONE {
            let alone = |it| ExplainedGroup { calls: vec![it], reasons: Vec::new() };
            split.extend(group.calls.into_iter().map(alone));
        } else {
            split.push(group);
        }
    }
    split.sort_by_key(|group| places[&group.calls[0].call]);
    split
}

/// Puts calls with the same name and the same reasons together, if they may be. Some reasons are left out.
fn grouped<'a>(
    evaluation: &Evaluation,
    explanation: &'a Explanation,
    may_be: impl Fn(CallId) -> bool,
    is_told: impl Fn(&Explained, &Why) -> bool,
    name: impl Fn(CallId) -> String,
) -> Vec<ExplainedGroup<'a>> {
    let mut groups: Vec<ExplainedGroup<'a>> = Vec::new();
    let mut places: HashMap<GroupKey, usize> = HashMap::new();
    for explained in &explanation.calls {
        let call = explained.call;
        let whys = explained.whys.iter().filter(|(why, _)| is_told(explained, why));
        let reasons = whys.map(|(why, causes)| {
            let text = shared_reason(evaluation, call, why, &name);
            SharedReason { text, why, causes }
        });
        let reasons: Vec<SharedReason<'_>> = reasons.collect();
        let next = groups.len();
        let place = if may_be(call) {
            let key = reasons.iter().map(|it| (it.text.clone(), it.causes.iter().collect()));
            let key = (name(call), key.collect());
            *places.entry(key).or_insert(next)
        } else {
            next
        };
        if place == next {
            groups.push(ExplainedGroup { calls: Vec::new(), reasons });
        }
        groups[place].calls.push(explained);
    }
    groups
}

/// The name of the computation of a call.
fn computation(evaluation: &Evaluation, call: CallId) -> String {
    let computation = evaluation.computation(call);
    computation.map_or_else(|| title_at_any_point(evaluation, call), |it| it.name.to_string())
}

/// The first points of calls: `threads=8 size=1, threads=8 size=2, ...`.
pub(super) fn points(evaluation: &Evaluation, calls: &[&Explained]) -> String {
    let named = calls.iter().take(NAMED).filter_map(|it| point_words(evaluation, it.call));
    let others = if calls.len() > NAMED { ", ..." } else { "" };
    format!("{}{others}", named.collect::<Vec<_>>().join(", "))
}

/// A reason without what differs from point to point.
fn shared_reason(
    evaluation: &Evaluation,
    call: CallId,
    why: &Why,
    name: impl Fn(CallId) -> String,
) -> String {
    match why {
        Why::InputDiffers { at, .. } => format!("{} differs", input_of(evaluation, call, *at)),
        Why::NewAtPoint { at, .. } => format!("{} is new", input_of(evaluation, call, *at)),
        Why::Waits { at, call: awaited } => {
            format!("{} waits for {}", input_of(evaluation, call, *at), name(*awaited))
        }
        Why::FailedLast { failure, .. } => format!("failed last; {}", failure.reason),
        Why::Collected(_) => "its result was collected".to_owned(),
        Why::NeverComputed
        | Why::ComputationChanged(_)
        | Why::Uncommitted(_)
        | Why::OtherSource { .. }
        | Why::NoLiteral { .. }
        | Why::Away
        | Why::Damaged => reason(evaluation, call, why),
    }
}
