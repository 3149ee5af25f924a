//! Calls, points and sweeps in JSON lines.

use std::collections::HashMap;
use std::path::Path;

use serde::{Serialize, Serializer};

use crate::evaluate::Evaluation;
use crate::plan::CallId;
use crate::task::workflow::{Node, SweepId};

/// Which call it is.
#[derive(Serialize)]
pub(super) struct JsonCall<'a> {
    call: usize,
    /// `table`, unless it is a call of a computation.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    computation: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<usize>,
    #[serde(skip_serializing_if = "PointNames::is_empty")]
    point: PointNames<'a>,
}

/// The names that a call depends on, with their texts.
struct PointNames<'a>(Vec<(&'a str, &'a str)>);

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

impl PointNames<'_> {
    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for PointNames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

impl<'a> JsonCall<'a> {
    pub(super) fn new(evaluation: &'a Evaluation, call: CallId) -> Self {
        let Evaluation { task, plan, .. } = evaluation;
        let gathered = plan.gathered(call);
        let around = plan.call(call).point.map(|point| plan.sweep(point.sweep));
        Self {
            call: call.index(),
            kind: gathered.map(|_| "table"),
            computation: evaluation.computation(call).map(|it| it.name.as_str()),
            sweep: gathered.or(around).map(|it| it.sweep.index()),
            point: PointNames(plan.point(task, call)),
        }
    }
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
