//! Calls at many points of a sweep that would run for the same reason: one entry with their number.

use std::collections::HashMap;

use super::cause::{input_of, reason};
use crate::evaluate::Evaluation;
use crate::plan::CallId;
use crate::questions::explain::{Explained, Explanation, Why};

/// Up to this number of points each has its own entry.
const ALONE: usize = 3;

/// How many points are named.
const NAMED: usize = 3;

/// Calls that are explained together: one, or several at points of a sweep.
pub(super) struct ExplainedGroup<'a> {
    /// In the order of the plan; never empty.
    pub(super) calls: Vec<&'a Explained>,
    /// The reasons that all of them have, where they are several.
    pub(super) reasons: Vec<String>,
}

/// The title of calls without their points, and their reasons, each with its causes.
type GroupKey = (String, Vec<(String, Vec<usize>)>);

/// The calls of an explanation, in the order of the first of each group.
pub(super) fn groups<'a>(
    evaluation: &Evaluation,
    explanation: &'a Explanation,
) -> Vec<ExplainedGroup<'a>> {
    let mut groups: Vec<ExplainedGroup<'a>> = Vec::new();
    let mut places: HashMap<GroupKey, usize> = HashMap::new();
    for explained in &explanation.calls {
        let call = explained.call;
        let next = groups.len();
        let place = match evaluation.plan.call(call).point {
            None => next,
            Some(_) => {
                let reasons = explained.whys.iter().map(|(why, causes)| {
                    (shared_reason(evaluation, call, why), causes.iter().collect())
                });
                let key = (evaluation.title_at_any_point(call), reasons.collect());
                *places.entry(key).or_insert(next)
            }
        };
        if place == next {
            groups.push(ExplainedGroup { calls: Vec::new(), reasons: Vec::new() });
        }
        groups[place].calls.push(explained);
    }
    // Few points are told one by one, each in its place.
    let mut split: Vec<ExplainedGroup<'a>> = Vec::with_capacity(groups.len());
    for group in groups {
        if group.calls.len() <= ALONE {
            let alone = |it| ExplainedGroup { calls: vec![it], reasons: Vec::new() };
            split.extend(group.calls.into_iter().map(alone));
        } else {
            let first = group.calls[0];
            let reason = |(why, _): &(Why, _)| shared_reason(evaluation, first.call, why);
            let reasons = first.whys.iter().map(reason).collect();
            split.push(ExplainedGroup { reasons, ..group });
        }
    }
    split.sort_by_key(|group| group.calls[0].call);
    split
}

/// The first points of calls: `threads=8 size=1, threads=8 size=2, ...`.
pub(super) fn points(evaluation: &Evaluation, calls: &[&Explained]) -> String {
    let named = calls.iter().take(NAMED).filter_map(|it| evaluation.point_words(it.call));
    let others = if calls.len() > NAMED { ", ..." } else { "" };
    format!("{}{others}", named.collect::<Vec<_>>().join(", "))
}

/// A reason without what differs from point to point.
fn shared_reason(evaluation: &Evaluation, call: CallId, why: &Why) -> String {
    match why {
        Why::InputDiffers { at, .. } => format!("{} differs", input_of(evaluation, call, *at)),
        Why::Waits { at, call: awaited } => {
            let awaited = evaluation.title_at_any_point(*awaited);
            format!("{} waits for {awaited}", input_of(evaluation, call, *at))
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
