//! Publishing what an execution has made, or what was taken over from another commit.

use super::step::{Executed, begun, call_of};
use super::{Evaluator, Outcome};
use ce_storage::records::OutputSource;
use ce_storage::{Outputs, Precedence, PublishError};

impl Evaluator<'_> {
    /// Publishes executed and flushed outputs. Returns `None` if another commit began the call: then it is looked for again,
    /// and taken over.
    pub(super) fn publish(&self, executed: Executed<'_>) -> Option<Outcome> {
        let storage = &self.evaluation.storage;
        let suspended = executed.suspension.clone();
        let name = suspended.as_ref().map_or(&executed.name, |it| &it.name).clone();
        let (taken_over, remembered) = (executed.taken_over, executed.remembered);
        let is_own = name == executed.name;
        let (suspension, inputs) = (executed.suspension, executed.inputs);
        let call = begun(call_of(executed.computation, &inputs), suspension.as_deref());
        let recorded = self.evaluation.away_outputs(executed.id);
        let recorded = recorded.filter(|_| executed.precedence == Precedence::Recorded);
        let published = executed.sealed.publish_same(call, (&name, recorded), executed.precedence);
        let published = published.and_then(|outputs| {
            if remembered {
                storage.attempts().forget(&outputs.name)?;
            }
            if let Some(suspension) = &suspended {
                storage.suspensions().remove(suspension)?;
            }
            Ok(outputs)
        });
        match published {
            Ok(_) if !is_own => {
                storage.equivalents().forget_versions(call.version);
                None
            }
            Ok(outputs) if taken_over => Some(Outcome::Present(outputs, OutputSource::TakenOver)),
            Ok(outputs) => Some(Outcome::Present(outputs, OutputSource::Executed)),
            Err(PublishError::Storage(error)) => Some(Outcome::failed(name, error)),
            Err(PublishError::Deviates(deviation)) => {
                Some(Outcome::failed(name, self.counted(deviation)))
            }
            Err(error) => Some(Outcome::failed(name, error)),
        }
    }
}

/// Whether outputs are the recorded ones, if these are known.
pub(super) fn is_same(recorded: Option<&Outputs>, outputs: &Outputs) -> bool {
    recorded.is_none_or(|recorded| recorded.has_same(outputs))
}
