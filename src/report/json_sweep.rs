//! Sweeps in JSON lines.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;

use ce_evaluate::Evaluation;
use ce_model::task::{Node, SweepId};

/// A sweep of a task.
#[derive(Serialize)]
pub(super) struct JsonSweep<'a> {
    sweep: usize,
    label: &'a str,
    place: &'a Path,
    factors: Vec<JsonFactor<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replicates: Option<u32>,
    computed: bool,
    points: Option<usize>,
}

/// A factor of a sweep.
#[derive(Serialize)]
struct JsonFactor<'a> {
    names: &'a [String],
    levels: usize,
}

/// The sweeps of a task. The number of points is not known if they are computed.
pub(super) fn json_sweeps(evaluation: &Evaluation) -> Vec<JsonSweep<'_>> {
    let Evaluation { task, plan, .. } = evaluation;
    let points: HashMap<SweepId, usize> =
        plan.sweeps().filter_map(|it| Some((it.sweep, it.rows()?.points.len()))).collect();
    let mut sweeps: Vec<(SweepId, bool)> = (task.workflow.nodes())
        .filter_map(|(_, node)| match node {
            Node::Sweep { sweep, inputs, .. } => Some((*sweep, inputs.len() > 1)),
            _ => None,
        })
        .collect();
    sweeps.sort_unstable();
    sweeps.dedup();
    let sweep = |(id, computed): (SweepId, bool)| {
        let rules = &task.sweeps[id.index()];
        let factors = rules.product.factors.iter();
        let factors =
            factors.map(|it| JsonFactor { names: it.points.names(), levels: it.points.len() });
        JsonSweep {
            sweep: id.index(),
            label: &rules.label,
            place: &rules.place,
            factors: factors.collect(),
            replicates: rules.product.replicates.map(std::num::NonZeroU32::get),
            computed,
            points: points.get(&id).copied().filter(|_| !computed),
        }
    };
    sweeps.into_iter().map(sweep).collect()
}
