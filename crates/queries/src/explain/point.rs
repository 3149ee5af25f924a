//! What calls read at points of sweeps.

use super::Comparison;
use ce_evaluate::Evaluation;
use ce_model::plan::{CallId, Derivation, Derived, Source};
use ce_model::task::Node;

impl Comparison<'_> {
    /// Whether an input of a call is that of a point, and not one of something else that has changed.
    pub(super) fn is_of_point(&self, call: CallId, source: Source) -> bool {
        let plan = &self.evaluation.plan;
        let Source::Derived { value, .. } = source else { return false };
        let Derived { how, from } = plan.value(value);
        match (how, from) {
            (
                Derivation::Text(_)
                | Derivation::File(_)
                | Derivation::Literal(_)
                | Derivation::Tree(_, Some(_)),
                _,
            ) => true,
            (Derivation::Tree(..), Some(Source::Output { call, .. })) => {
                plan.call(*call).point.is_some()
            }
            (Derivation::Tree(..), Some(from)) => self.is_of_point(call, *from),
            (Derivation::Member(_), Some(from)) => {
                self.reads_member_of_point(call) || self.is_of_point(call, *from)
            }
            _ => false,
        }
    }

    /// Whether a call reads a member whose path has names that a sweep binds.
    fn reads_member_of_point(&self, call: CallId) -> bool {
        let Evaluation { task, plan, .. } = self.evaluation;
        let inputs = task.workflow[plan.call(call).node].inputs().iter();
        inputs.map(|it| it.node).any(|it| match &task.workflow[it] {
            Node::Member { path, .. } => path.names().next().is_some(),
            _ => false,
        })
    }
}
