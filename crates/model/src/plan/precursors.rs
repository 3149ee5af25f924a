//! What values are made from: calls, and values that are there before any call.

use std::collections::HashSet;

use super::{CallId, DerivedId, LiteralId, Plan, Source};

/// Everything that some values are made from, themselves included. Each list is sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Precursors {
    /// The calls.
    pub calls: Vec<CallId>,
    /// The derived values.
    pub derived: Vec<DerivedId>,
    /// The files that are expected to be in the storage.
    pub literals: Vec<LiteralId>,
}

impl Plan {
    /// Returns all that is planned.
    pub fn everything(&self) -> Precursors {
        Precursors {
            calls: self.calls().map(|(id, _)| id).collect(),
            derived: self.derived().map(|(id, _)| id).collect(),
            literals: (0..self.literals.len()).map(LiteralId::at).collect(),
        }
    }

    /// Returns what values with these sources are made from.
    pub fn precursors(&self, sources: &[Source]) -> Precursors {
        let mut found = Precursors::default();
        let mut seen: HashSet<Source> = HashSet::new();
        let (mut calls, mut derived) = (HashSet::new(), HashSet::new());
        let mut waiting = sources.to_vec();
        while let Some(source) = waiting.pop() {
            if !seen.insert(source) {
                continue;
            }
            match source {
                Source::Output { call, .. } if calls.insert(call) => {
                    found.calls.push(call);
                    waiting.extend_from_slice(self.inputs(call));
                    // Those of a sweep are its points, which the outputs of its body take the place of.
                    waiting.extend_from_slice(&self.call(call).inputs);
                }
                Source::Derived { value, .. } if derived.insert(value) => {
                    found.derived.push(value);
                    waiting.extend(self.value(value).from);
                }
                Source::Literal(literal) => found.literals.push(literal),
                Source::Output { .. } | Source::Derived { .. } => {}
                Source::Input(_) | Source::File(_) => {}
            }
        }
        found.calls.sort_unstable();
        found.derived.sort_unstable();
        found.literals.sort_unstable();
        found
    }
}
