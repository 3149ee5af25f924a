//! Estimates of the duration of missing calls, from earlier calls.

use std::collections::HashMap;

use super::Comparison;
use ce_model::plan::CallId;
use ce_model::task::ComputationId;

/// Estimates the durations of missing calls, in seconds: that of the nearest earlier call, or else
/// the median of the computation's calls.
pub(super) fn estimates(
    comparison: &Comparison<'_>,
    calls: impl Iterator<Item = CallId>,
) -> Vec<Option<f64>> {
    let Comparison { evaluation, archive, nearest, .. } = comparison;
    let mut medians: HashMap<ComputationId, Option<f64>> = HashMap::new();
    calls
        .map(|call| {
            let nearest = nearest[call.index()].and_then(|at| archive.calls[at].record.seconds());
            nearest.or_else(|| {
                let computation = evaluation.plan.computation(call)?;
                *medians.entry(computation).or_insert_with(|| archive.median(computation))
            })
        })
        .collect()
}
