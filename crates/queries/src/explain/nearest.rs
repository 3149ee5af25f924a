//! The nearest earlier call: the one with the fewest different inputs.

use std::collections::HashMap;

use ce_evaluate::Evaluation;
use ce_history::EarlierCalls;
use ce_model::digest::{Digest, shown_version};
use ce_model::plan::Source;
use ce_model::task::{Computation, ComputationId};
use ce_storage::records::FailureRecord;
use ce_storage::{PastCall, ResultName, split_member};

/// The greatest number of earlier calls that are compared with a call, so the time is linear in the
/// calls.
const MAX_COMPARED: usize = 256;

/// An input of a missing call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ingredient {
    /// Its source.
    pub(super) source: Source,
    /// Its digest; if that is unknown, the one that it had before.
    pub(super) digest: Option<Digest>,
}

/// The earlier calls of a task's computations.
pub(super) struct Archive<'a> {
    evaluation: &'a Evaluation,
    /// The newest first.
    pub(super) calls: Vec<PastCall>,
    /// The newest failure from each list of inputs.
    failures: HashMap<(ComputationId, Vec<Digest>), (ResultName, FailureRecord)>,
    by_name: HashMap<ResultName, usize>,
    by_computation: HashMap<ComputationId, Vec<usize>>,
    by_input: HashMap<(ComputationId, usize, Digest), Vec<usize>>,
}

/// The distance of an earlier call from a call. The least is the nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Distance {
    differing: usize,
    /// Different inputs with other sources.
    misfits: usize,
    version: u8,
    collected: bool,
    age: usize,
}

impl<'a> Archive<'a> {
    pub(super) fn new(evaluation: &'a Evaluation, earlier: EarlierCalls) -> Self {
        let EarlierCalls { calls, failures, .. } = earlier;
        let computations = evaluation.task.computations.iter().enumerate();
        let ids: HashMap<&str, ComputationId> =
            computations.map(|(at, it)| (it.name.as_str(), ComputationId::at(at))).collect();
        let mut by_name = HashMap::new();
        let mut by_computation: HashMap<_, Vec<usize>> = HashMap::new();
        let mut by_input: HashMap<_, Vec<usize>> = HashMap::new();
        for (at, PastCall { name, record, .. }) in calls.iter().enumerate() {
            let Some(&id) = ids.get(record.computation.as_str()) else { continue };
            by_name.entry(name.clone()).or_insert(at);
            by_computation.entry(id).or_default().push(at);
            for (number, digest) in record.inputs.iter().enumerate() {
                by_input.entry((id, number, *digest)).or_default().push(at);
            }
        }
        let mut newest = HashMap::new();
        for (name, failure) in failures {
            let Some(&id) = ids.get(failure.computation.as_str()) else { continue };
            newest.entry((id, failure.inputs.clone())).or_insert((name, failure));
        }
        Self { evaluation, calls, failures: newest, by_name, by_computation, by_input }
    }

    /// The earlier calls of a computation, the newest first.
    pub(super) fn of(&self, computation: ComputationId) -> &[usize] {
        self.by_computation.get(&computation).map_or(&[], Vec::as_slice)
    }

    /// Returns the nearest earlier call of a computation; `None` if none has anything in common
    /// with it.
    pub(super) fn nearest(&self, id: ComputationId, inputs: &[Ingredient]) -> Option<usize> {
        let computation = &self.evaluation.task.computations[id.index()];
        let mut shared: Vec<&[usize]> = inputs
            .iter()
            .enumerate()
            .filter_map(|(number, input)| self.by_input.get(&(id, number, input.digest?)))
            .map(Vec::as_slice)
            .collect();
        // An input that few calls share is the most significant.
        shared.sort_by_key(|calls| calls.len());
        shared.push(self.of(id));
        let (distance, at) = shared
            .into_iter()
            .flatten()
            .take(MAX_COMPARED)
            .map(|&at| (self.distance(at, computation, inputs), at))
            .min()?;
        let unrelated = distance.misfits > 0 && distance.misfits == inputs.len();
        (!unrelated).then_some(at)
    }

    /// Whether an earlier call had these inputs.
    pub(super) fn has_inputs(&self, at: usize, inputs: &[Ingredient]) -> bool {
        known(inputs).is_some_and(|inputs| self.calls[at].record.inputs == inputs)
    }

    /// Returns the newest failure of a computation with these inputs, at any commit.
    pub(super) fn failed(
        &self,
        id: ComputationId,
        inputs: &[Ingredient],
    ) -> Option<&(ResultName, FailureRecord)> {
        self.failures.get(&(id, known(inputs)?))
    }

    fn distance(&self, at: usize, computation: &Computation, inputs: &[Ingredient]) -> Distance {
        let earlier = &self.calls[at];
        let mut distance = Distance {
            differing: 0,
            misfits: 0,
            version: 2,
            collected: earlier.collected.is_some(),
            age: at,
        };
        if self.is_same_version(earlier, computation) {
            distance.version = 0;
        } else if earlier.record.tree == computation.tree {
            distance.version = 1;
        }
        for (number, Ingredient { source, digest }) in inputs.iter().enumerate() {
            let differs = digest.is_some() && earlier.record.inputs.get(number) != digest.as_ref();
            let unknown = digest.is_none();
            distance.differing += usize::from(differs);
            if (differs || unknown) && !self.fits(at, number, *source) {
                distance.misfits += 1;
            }
        }
        distance
    }

    /// Whether an input of an earlier call had the same source: an output of the same computation
    /// at any commit, a task input, or the same literal.
    pub(super) fn fits(&self, earlier: usize, number: usize, source: Source) -> bool {
        let Some(file) = self.calls[earlier].input(number) else { return true };
        let Evaluation { task, plan, .. } = self.evaluation;
        let (source, path) = plan.whole(source);
        let (file, member) = split_member(file);
        if path.as_deref() != member && !matches!(source, Source::Literal(_)) {
            return false;
        }
        match source {
            Source::Input(_) | Source::File(_) | Source::Derived { .. } => {
                file.starts_with("tinputs/")
            }
            Source::Literal(id) => file.starts_with(plan.literals()[id.index()].as_str()),
            Source::Output { call, number } => {
                let Some(computation) = plan.computation(call) else {
                    return file.starts_with("tables/");
                };
                let computation = &task.computations[computation.index()];
                let maker = ResultName::maker(file).map(|(_, name, number)| (name, number));
                maker == Some((computation.name.as_str(), number))
            }
        }
    }

    /// Returns the earlier call that made an input of another one, if it still has a record.
    pub(super) fn maker(&self, earlier: usize, number: usize) -> Option<usize> {
        let call = &self.calls[earlier];
        let file = call.input(number)?;
        let (name, _, output) = ResultName::maker(file)?;
        let &maker = self.by_name.get(&name)?;
        let output = self.calls[maker].record.outputs.get(usize::from(output))?;
        // An output that was computed again may have other contents. Those of members are not recorded.
        let same = Some(&output.digest) == call.record.inputs.get(number);
        (same || split_member(file).1.is_some()).then_some(maker)
    }

    /// The median duration of calls of a computation, in seconds.
    pub(super) fn median(&self, computation: ComputationId) -> Option<f64> {
        let calls = self.of(computation).iter();
        let mut seconds: Vec<f64> =
            calls.filter_map(|&at| self.calls[at].record.seconds()).collect();
        seconds.sort_unstable_by(f64::total_cmp);
        seconds.get(seconds.len() / 2).copied()
    }

    /// Whether an earlier call was of the current version of a computation, or serves all of the same tree, so that the
    /// commit does not matter.
    pub(super) fn is_same_version(
        &self,
        PastCall { record, .. }: &PastCall,
        computation: &Computation,
    ) -> bool {
        record.tree == computation.tree
            && (self.evaluation.storage.equivalents().serves_tree(record)
                || shown_version(&record.commit, &record.tree, record.dirty)
                    == computation.version())
    }
}

/// The digests of inputs, if all of them are known.
fn known(inputs: &[Ingredient]) -> Option<Vec<Digest>> {
    inputs.iter().map(|it| it.digest).collect()
}
