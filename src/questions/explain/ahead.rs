//! How much computing is ahead, going by how long earlier calls took.

use std::collections::HashMap;

use super::Comparison;
use crate::plan::CallId;
use crate::task::workflow::ComputationId;

/// How long missing calls will take, each in seconds, as far as that is known: as long as the nearest
/// earlier call, or else as calls of the computation in the middle.
pub(super) fn estimates(
    comparison: &Comparison<'_>,
    calls: impl Iterator<Item = CallId>,
) -> Vec<Option<f64>> {
    let Comparison { evaluation, archive, nearest } = comparison;
    let mut medians: HashMap<ComputationId, Option<f64>> = HashMap::new();
    let estimate = |call: CallId| {
        let nearest = nearest[call.index()].and_then(|at| archive.calls[at].record.seconds());
        nearest.or_else(|| {
            let computation = evaluation.plan.call(call).computation;
            *medians.entry(computation).or_insert_with(|| archive.median(computation))
        })
    };
    calls.map(estimate).collect()
}
