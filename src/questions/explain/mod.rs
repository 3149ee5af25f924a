//! Why calls would run: what differs from the nearest result that there is, down to what was
//! changed first.
//!
//! A missing call is compared with the nearest call that succeeded once of its computation. What differs is
//! a [`Why`]. An input that differs was made from other things, or is what the user has changed: the
//! same comparison leads down to a few [`Cause`]s for many calls. Its time is linear in calls and
//! their inputs. Nothing is changed, and nothing executed.

mod ahead;
mod cause;
mod change;
mod nearest;

use self::cause::Tracing;
use self::nearest::{Archive, Ingredient, is_same_version};
use crate::digest::{Digest, ObjectId, shown_version};
use crate::evaluate::{Evaluation, Outcome};
use crate::plan::{CallId, LiteralId, Source};
use crate::questions::history;
use crate::storage::records::{FailureRecord, Provenance};
use crate::storage::{PastCall, PriorAttempt, ResultName};
use crate::task::workflow::{Computation, ComputationId, InputId, TaskFileId};

pub use self::cause::Causes;
pub use self::change::{Change, changes};

/// A version of a computation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CodeVersion {
    /// The commit of the repository that holds it.
    pub commit: ObjectId,
    /// The Git tree of its directory.
    pub tree: ObjectId,
    /// The tree is not the commit's.
    pub dirty: bool,
}

/// A reason why a call would run.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// There is no earlier call of the computation that has anything in common with it.
    NeverComputed,
    /// The nearest earlier call was of another version of the computation. If only the commit is
    /// another one, the tree is the same.
    ComputationChanged(CodeVersion),
    /// The computation has changes that no commit records, and no result as it stands.
    Uncommitted(Option<CodeVersion>),
    /// An input contains something else.
    InputDiffers {
        /// Which input.
        at: usize,
        /// What it contained.
        old: Digest,
        /// What it contains.
        new: Digest,
    },
    /// An input comes from elsewhere than before: the workflow is another one.
    OtherSource {
        /// Which input.
        at: usize,
    },
    /// An input is yet to be made.
    Waits {
        /// Which input.
        at: usize,
        /// By which call.
        call: CallId,
    },
    /// An input is to be in the storage, and is not.
    NoLiteral {
        /// Which input.
        at: usize,
        /// The literal.
        literal: LiteralId,
    },
    /// It failed last.
    FailedLast {
        /// How.
        failure: FailureRecord,
        /// The log in the storage, if it printed anything.
        log: Option<String>,
    },
    /// Its outputs were collected.
    Collected(Provenance),
    /// It is recorded, and outputs are gone or are not what was recorded.
    Damaged,
}

/// What was changed first, and is why calls would run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Calls of a computation were never computed.
    NeverComputed(ComputationId),
    /// A computation was of another version.
    Computation(ComputationId, CodeVersion),
    /// A computation has changes that no commit records.
    Uncommitted(ComputationId, Option<CodeVersion>),
    /// A task input contained something else.
    Input(InputId, Digest),
    /// A literal contained something else.
    Literal(LiteralId, Digest),
    /// A file of the task contained something else.
    File(TaskFileId, Digest),
    /// A literal is not in the storage.
    NoLiteral(LiteralId),
    /// Inputs of a computation with this number come from elsewhere.
    OtherSource(ComputationId, usize),
    /// A computation has made something else from the same inputs.
    OtherOutputs(ComputationId),
    /// What a computation gave differs, and it is not recorded what it was made from before.
    Unrecorded(ComputationId),
    /// Calls of a computation failed last.
    FailedLast(ComputationId),
    /// Results of a computation were collected.
    Collected(ComputationId),
    /// Results of a computation are damaged.
    Damaged(ComputationId),
}

/// A first cause, and how many calls would run for it, among others.
#[derive(Debug)]
pub struct FirstCause {
    /// What it is.
    pub cause: Cause,
    /// Those calls.
    pub calls: usize,
}

/// A call that would run.
#[derive(Debug)]
pub struct Explained {
    /// Which call.
    pub call: CallId,
    /// Why, and which causes are behind that; never empty.
    pub whys: Vec<(Why, Causes)>,
    /// The earlier call that it was compared with.
    pub nearest: Option<ResultName>,
    /// How long it will take, in seconds, going by earlier calls.
    pub seconds: Option<f64>,
}

/// Why calls would run.
#[derive(Debug)]
pub struct Explanation {
    /// All calls that would run, in the order of the plan.
    pub calls: Vec<Explained>,
    /// What is behind it, in the order in which the calls lead to it.
    pub causes: Vec<FirstCause>,
    /// How many records could not be read.
    pub unread: usize,
}

impl CodeVersion {
    /// What names show of it.
    pub fn short(&self) -> String {
        shown_version(&self.commit, &self.tree, self.dirty)
    }

    /// The version that a computation has now.
    pub fn of(computation: &Computation) -> Self {
        let Computation { commit, tree, dirty, .. } = computation;
        Self { commit: commit.clone(), tree: tree.clone(), dirty: *dirty }
    }

    fn of_earlier(PastCall { record, .. }: &PastCall) -> Self {
        let (commit, tree) = (record.commit.clone(), record.tree.clone());
        Self { commit, tree, dirty: record.dirty }
    }
}

impl Explanation {
    /// Explains all calls that are missing of an evaluation that computed nothing.
    pub fn new(evaluation: &Evaluation) -> Self {
        let Evaluation { task, plan, storage, .. } = evaluation;
        let missing = plan.calls().map(|(id, _)| id).filter(|id| evaluation.missing(*id).is_some());
        let missing: Vec<CallId> = missing.collect();
        if missing.is_empty() {
            return Self { calls: Vec::new(), causes: Vec::new(), unread: 0 };
        }
        let earlier = history::earlier(storage, task.computations.iter().map(|it| &it.name));
        let archive = Archive::new(evaluation, earlier.calls);
        let nearest = vec![None; plan.calls().len()];
        let mut comparison = Comparison { evaluation, archive, nearest };
        let calls: Vec<(CallId, Vec<Why>)> =
            missing.iter().map(|id| (*id, comparison.whys(*id))).collect();
        let seconds = ahead::estimates(&comparison, missing.into_iter());
        let (causes, sets) = Tracing::new(&comparison, &calls).finish();
        let explained = calls.into_iter().zip(sets).zip(seconds).map(|(it, seconds)| {
            let ((call, whys), causes) = it;
            let nearest = comparison.nearest[call.index()];
            let nearest = nearest.map(|at| comparison.archive.calls[at].name.clone());
            Explained { call, whys: whys.into_iter().zip(causes).collect(), nearest, seconds }
        });
        Self { calls: explained.collect(), causes, unread: earlier.unread }
    }
}

impl Evaluation {
    /// What is remembered of a call, if that is missing.
    fn missing(&self, call: CallId) -> Option<Option<&PriorAttempt>> {
        match self.outcome(call)? {
            Outcome::Missing(_, prior) => Some(prior.as_deref()),
            _ => None,
        }
    }
}

/// The calls of a plan beside the earlier calls that are nearest.
struct Comparison<'a> {
    evaluation: &'a Evaluation,
    archive: Archive<'a>,
    /// For each call of the plan that is missing, the nearest earlier one.
    nearest: Vec<Option<usize>>,
}

impl Comparison<'_> {
    /// Looks for the nearest earlier call of a missing one; says why the missing one would run.
    fn whys(&mut self, id: CallId) -> Vec<Why> {
        let Evaluation { plan, storage, .. } = self.evaluation;
        let (planned, computation) = (plan.call(id), self.evaluation.computation(id));
        let ingredients = planned.inputs.iter().map(|source| self.ingredient(*source));
        let ingredients: Vec<Ingredient> = ingredients.collect();
        let nearest = self.archive.nearest(planned.computation, &ingredients);
        self.nearest[id.index()] = nearest;
        if let Some(Some(prior)) = self.evaluation.missing(id) {
            if let Some(failure) = &prior.failure {
                let log = self
                    .evaluation
                    .outcome(id)
                    .and_then(|it| storage.attempts().failure_log(it.name()));
                return vec![Why::FailedLast { failure: failure.clone(), log }];
            }
            if let Some(tombstone) = &prior.collected {
                return vec![Why::Collected(tombstone.collected.clone())];
            }
        }
        let Some(nearest) = nearest else {
            let dirty = computation.dirty.then_some(Why::Uncommitted(None));
            let mut whys = vec![dirty.unwrap_or(Why::NeverComputed)];
            whys.extend(self.absent(id));
            return whys;
        };
        let mut whys = self.differences(id, nearest);
        if whys.is_empty() {
            // It was there, with these very inputs if those that are to be made come out the same.
            let collected = self.archive.calls[nearest].collected.clone();
            let absent = self.absent(id);
            match collected {
                Some(stamp) => whys.push(Why::Collected(stamp)),
                None if absent.is_empty() => whys.push(Why::Damaged),
                None => {}
            }
        }
        whys.extend(self.absent(id));
        whys
    }

    /// An input, by what it contains or would contain if nothing had changed.
    fn ingredient(&self, source: Source) -> Ingredient {
        let before = || match source {
            Source::Output { call, number } => {
                let earlier = &self.archive.calls[self.nearest[call.index()]?];
                Some(earlier.record.outputs.get(usize::from(number))?.digest)
            }
            Source::Input(_) | Source::Literal(_) | Source::File(_) => None,
        };
        Ingredient { source, digest: self.evaluation.digest(source).or_else(before) }
    }

    /// The inputs of a call that are not there.
    fn absent(&self, id: CallId) -> Vec<Why> {
        let inputs = self.evaluation.plan.call(id).inputs.iter().enumerate();
        let absent = inputs.filter(|(_, source)| self.evaluation.digest(**source).is_none());
        let why = |(at, source): (usize, &Source)| match *source {
            Source::Output { call, .. } => Some(Why::Waits { at, call }),
            Source::Literal(literal) => Some(Why::NoLiteral { at, literal }),
            Source::Input(_) | Source::File(_) => None,
        };
        absent.filter_map(why).collect()
    }

    /// What differs between a call and an earlier one, of what is known.
    fn differences(&self, id: CallId, earlier: usize) -> Vec<Why> {
        let computation = self.evaluation.computation(id);
        let call = &self.archive.calls[earlier];
        let mut whys = Vec::new();
        if !is_same_version(call, computation) {
            let old = CodeVersion::of_earlier(call);
            whys.push(match computation.dirty {
                true => Why::Uncommitted(Some(old)),
                false => Why::ComputationChanged(old),
            });
        }
        for (at, source) in self.evaluation.plan.call(id).inputs.iter().enumerate() {
            let new = self.evaluation.digest(*source);
            let Some(&old) = call.record.inputs.get(at) else { continue };
            if new == Some(old) {
                continue;
            }
            if !self.archive.fits(earlier, at, *source) {
                whys.push(Why::OtherSource { at });
            } else if let Some(new) = new {
                whys.push(Why::InputDiffers { at, old, new });
            }
        }
        whys
    }
}
