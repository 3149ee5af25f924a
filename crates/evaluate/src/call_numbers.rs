//! Numbers for calls, which tell which values are one measurement: those that one call makes, wherever they stand.

use std::collections::HashMap;

use super::Evaluation;
use ce_model::digest::Digest;
use ce_model::plan::{CallId, Operation, Source};

/// The numbers of the calls that outputs rest on, from 1 in the order in which they are asked for.
#[derive(Debug)]
pub struct CallNumbers<'a> {
    evaluation: &'a Evaluation,
    /// The calls that differ, each with a number.
    distinct: HashMap<(Operation, Box<[ValueKey]>), usize>,
    /// The number of each call of the plan that was asked for.
    numbers: HashMap<CallId, usize>,
    outputs: HashMap<ValueKey, usize>,
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
    /// No numbers yet.
    pub fn new(evaluation: &'a Evaluation) -> Self {
        Self {
            evaluation,
            distinct: HashMap::new(),
            numbers: HashMap::new(),
            outputs: HashMap::new(),
        }
    }

    /// The number of the call that makes an output of a point. All outputs of a call have one number, and what no call makes has one for each value.
    pub fn of_output(&mut self, output: Source) -> usize {
        let key = match self.evaluation.plan.origin(output) {
            Source::Output { call, .. } => ValueKey::Output(self.of_call(call), 0),
            _ => self.of_value(output),
        };
        let next = self.outputs.len() + 1;
        *self.outputs.entry(key).or_insert(next)
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
