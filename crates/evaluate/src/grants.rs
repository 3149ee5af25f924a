//! What a call has when it begins: its reservation in this run, and its turn among the runs of the host.
//!
//! A call that waits for either has no lease. Otherwise another run that needs the call might wait for this one, which waits for a
//! turn that the other run is part of.

use std::num::NonZeroU32;

use super::reservations::{Misfit, Reservation};
use super::step::CallStep;
use super::{Absence, Evaluation, Evaluator, ExecutionSettings, Outcome, Unfinished};
use ce_executor::{ExecuteError, HostTurn, TurnRequest};
use ce_model::plan::CallId;
use ce_model::resources::{Resources, WrongAmount};
use ce_storage::ResultName;

/// What a call has that is processed.
#[derive(Debug, Default)]
pub(super) struct Footing {
    /// Whether all that it asks for is reserved.
    pub(super) is_reserved: bool,
    /// Its turn.
    pub(super) turn: Option<HostTurn>,
}

impl<'a> Evaluator<'a> {
    /// Takes the turn of a call, unless it has that. If other runs have what it needs, the call gives its lease back, and waits.
    pub(super) fn turn(
        &self,
        settings: &ExecutionSettings<'_>,
        footing: Footing,
        request: TurnRequest,
        name: &ResultName,
    ) -> Result<HostTurn, Box<CallStep<'a>>> {
        if let Some(turn) = footing.turn.filter(|turn| turn.request() == request) {
            return Ok(turn);
        }
        let name = || name.clone();
        Err(Box::new(match settings.executor.enter(request, false) {
            Ok(Some(turn)) => return Ok(turn),
            Ok(None) => CallStep::Enter(request, footing.is_reserved),
            Err(ExecuteError::Interrupted) => CallStep::Ended(self.not_started(name())),
            Err(ExecuteError::Refused(why)) => CallStep::Ended(Outcome::Absent(
                name(),
                Absence::Unfinished(Unfinished::Refused(why)),
            )),
            Err(error) => CallStep::Ended(Outcome::failed(name(), error)),
        }))
    }

    /// What must be reserved for a call, if anything.
    pub(super) fn reservation(
        &self,
        settings: &ExecutionSettings<'_>,
        resources: &Resources,
    ) -> Result<Option<Reservation>, Misfit> {
        if self.evaluation.task.resources.is_empty() {
            return Ok(None);
        }
        let executor = settings.executor;
        match Misfit::of(resources, executor.capacity().get(), &executor.offer()) {
            Some(misfit) => Err(misfit),
            None => Ok(Reservation::of(resources)),
        }
    }

    /// What a call asks for.
    pub(super) fn resources(&self, id: CallId) -> Result<Resources, WrongAmount> {
        let Evaluation { task, plan, .. } = self.evaluation;
        if task.resources.is_empty() {
            return Ok(Resources::default());
        }
        plan.resources(id).map(Option::unwrap_or_default)
    }
}

/// What a call needs that other runs of the host may have. The gpus of an allocation are given out by the scheduler.
pub(super) fn turn_request(resources: &Resources) -> TurnRequest {
    let gpus = resources.gpus.filter(|_| !resources.spans()).map_or(0, NonZeroU32::get);
    TurnRequest { gpus, exclusive: resources.exclusive }
}
