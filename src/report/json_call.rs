//! Calls and their points in JSON lines.

use serde::{Serialize, Serializer};

use super::ROOT;
use ce_evaluate::{Evaluation, Outcome};
use ce_model::plan::CallId;

/// Which call it is.
#[derive(Serialize)]
pub(super) struct JsonCall<'a> {
    call: usize,
    /// `table`, unless it is a call of a computation.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    computation: Option<&'a str>,
    label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<usize>,
    #[serde(skip_serializing_if = "PointNames::is_empty")]
    point: PointNames<'a>,
}

/// The names that a call depends on, with their texts.
struct PointNames<'a>(Vec<(&'a str, &'a str)>);

/// What a call was made from, and how: the rest is in its record.
#[derive(Default, Serialize)]
pub(super) struct JsonMade {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reads: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
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
            label: evaluation.label_path(call).unwrap_or_else(|| ROOT.to_owned()),
            sweep: gathered.or(around).map(|it| it.sweep.index()),
            point: PointNames(plan.point(task, call)),
        }
    }
}

impl JsonMade {
    /// What is known of a call that is over. How long it took and where is told only of what this run has executed.
    pub(super) fn new(evaluation: &Evaluation, call: CallId, outcome: &Outcome) -> Self {
        if evaluation.computation(call).is_none() {
            return Self::default();
        }
        let sources = evaluation.plan.inputs(call);
        let reads = sources.iter().filter_map(|source| evaluation.name(*source)).collect();
        let Some(record) = evaluation.executed_record(outcome) else {
            return Self { reads, ..Self::default() };
        };
        let (seconds, host) = (record.seconds(), record.recorded.map(|it| it.host));
        Self { reads, seconds, host }
    }
}
