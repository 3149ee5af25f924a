//! Numbers the calls that the points of a sweep rest on. Points with the same number are one execution, such as those
//! of commits with the same tree.
//!
//! As in the storage, a call is its computation and the contents of its inputs. An input that is not there stands for
//! the call that would make it.

use std::collections::HashMap;

use ce_evaluate::Evaluation;
use ce_model::digest::Digest;
use ce_model::plan::{CallId, Operation, Source};

/// The numbers of the calls that points rest on, from 1 in the order in which they are asked for.
#[derive(Debug)]
pub(super) struct CallNumbers<'a> {
    evaluation: &'a Evaluation,
    /// The calls that differ, each with a number.
    distinct: HashMap<(Operation, Box<[ValueKey]>), usize>,
    /// The number of each call of the plan that was asked for.
    numbers: HashMap<CallId, usize>,
    points: HashMap<Box<[ValueKey]>, usize>,
}

/// A value, the same for equal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ValueKey {
    /// Its contents are known.
    Known(Digest),
    /// It is an output of a distinct call.
    Output(usize, u8),
    /// It is not known, and no output of a call.
    Unknown(Source),
}

impl<'a> CallNumbers<'a> {
    pub(super) fn new(evaluation: &'a Evaluation) -> Self {
        let (distinct, numbers, points) = Default::default();
        Self { evaluation, distinct, numbers, points }
    }

    /// How many numbers there are.
    pub(super) fn count(&self) -> usize {
        self.points.len()
    }

    /// The number of the calls that make the outputs of a point.
    pub(super) fn of_point(&mut self, outputs: &[Source]) -> usize {
        let plan = &self.evaluation.plan;
        let key: Box<[ValueKey]> = outputs
            .iter()
            .map(|output| match plan.origin(*output) {
                Source::Output { call, .. } => ValueKey::Output(self.of_call(call), 0),
                _ => self.of_value(*output),
            })
            .collect();
        let next = self.points.len() + 1;
        *self.points.entry(key).or_insert(next)
    }

    /// The number of a call. Calls that it depends on and that are not there come first.
    fn of_call(&mut self, call: CallId) -> usize {
        let plan = &self.evaluation.plan;
        let mut waiting = vec![call];
        while let Some(call) = waiting.last().copied() {
            let inputs = &plan.call(call).inputs;
            let before = waiting.len();
            waiting.extend(inputs.iter().filter_map(|input| match input {
                Source::Output { call, .. } if self.evaluation.digest(*input).is_none() => {
                    Some(*call).filter(|call| !self.numbers.contains_key(call))
                }
                _ => None,
            }));
            if waiting.len() == before {
                let key = inputs.iter().map(|input| self.of_value(*input)).collect();
                let next = self.distinct.len();
                let number = *self.distinct.entry((plan.call(call).operation, key)).or_insert(next);
                self.numbers.insert(call, number);
                waiting.pop();
            }
        }
        self.numbers[&call]
    }

    /// The key of a value. If it is an output that is not there, its call has a number.
    fn of_value(&self, source: Source) -> ValueKey {
        match (self.evaluation.digest(source), source) {
            (Some(digest), _) => ValueKey::Known(digest),
            (None, Source::Output { call, number }) => {
                ValueKey::Output(self.numbers[&call], number)
            }
            (None, other) => ValueKey::Unknown(other),
        }
    }
}
