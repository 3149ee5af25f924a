//! Tracing differences to their first causes.
//!
//! A pair is a present call and an earlier call with different outputs. Its differences lead to
//! pairs of calls that precede it in the plan. So pairs are visited from the last call to the
//! first, and their causes are united from the first to the last.

use std::collections::{BTreeSet, HashMap};

use super::{Cause, Comparison, FirstCause, Why, awaited_by};
use ce_evaluate::Evaluation;
use ce_model::plan::{CallId, Source};

/// A set of causes, by their indices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Causes(Vec<u64>);

/// The target of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// A first cause.
    Cause(usize),
    /// A present call and an earlier one.
    Pair(CallId, usize),
    /// A missing call.
    Missing(CallId),
}

impl Link {
    const fn pair(&self) -> Option<(CallId, usize)> {
        match self {
            Self::Pair(call, earlier) => Some((*call, *earlier)),
            Self::Cause(_) | Self::Missing(_) => None,
        }
    }
}

/// The trace of all missing calls.
pub(super) struct Tracing<'a> {
    comparison: &'a Comparison<'a>,
    calls: &'a [(CallId, Vec<Why>)],
    causes: Vec<FirstCause>,
    known: HashMap<Cause, usize>,
    links: Vec<Vec<Link>>,
    pairs: HashMap<(CallId, usize), Vec<Link>>,
}

impl Causes {
    /// The indices of the causes, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(at, &word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit)
        })
    }

    /// The same causes under new numbers.
    pub(super) fn renumbered(&self, numbers: &[usize]) -> Self {
        union(self.iter().map(|cause| Self::one(numbers[cause])))
    }

    fn one(cause: usize) -> Self {
        let mut words = vec![0; cause / 64];
        words.push(1 << (cause % 64));
        Self(words)
    }

    fn add(&mut self, others: &Self) {
        if self.0.len() < others.0.len() {
            self.0.resize(others.0.len(), 0);
        }
        self.0.iter_mut().zip(&others.0).for_each(|(own, other)| *own |= other);
    }
}

impl<'a> Tracing<'a> {
    pub(super) fn new(comparison: &'a Comparison<'a>, calls: &'a [(CallId, Vec<Why>)]) -> Self {
        let mut tracing = Self {
            comparison,
            calls,
            causes: Vec::new(),
            known: HashMap::new(),
            links: Vec::with_capacity(calls.len()),
            pairs: HashMap::new(),
        };
        for (id, whys) in calls {
            let nearest = comparison.nearest[id.index()];
            let links = whys.iter().map(|why| tracing.link(*id, nearest, why)).collect();
            tracing.links.push(links);
        }
        tracing.meet_pairs();
        tracing
    }

    /// Follows all pairs to the end.
    fn meet_pairs(&mut self) {
        let mut waiting: BTreeSet<_> = self.links.iter().flatten().filter_map(Link::pair).collect();
        while let Some((call, earlier)) = waiting.pop_last() {
            let whys = self.comparison.differences(call, earlier);
            let mut links: Vec<Link> =
                whys.iter().map(|why| self.link(call, Some(earlier), why)).collect();
            if links.is_empty()
                && let Some(computation) = self.comparison.evaluation.plan.computation(call)
            {
                links.push(self.cause(Cause::OtherOutputs(computation)));
            }
            waiting.extend(links.iter().filter_map(Link::pair));
            self.pairs.insert((call, earlier), links);
        }
    }

    /// Returns the target of a reason of a call, which is paired with an earlier one.
    fn link(&mut self, call: CallId, earlier: Option<usize>, why: &Why) -> Link {
        let plan = &self.comparison.evaluation.plan;
        let Some(id) = plan.computation(call) else { return Link::Missing(call) };
        let cause = match why {
            Why::Waits { at, call: first } => {
                let awaited = plan.awaited(plan.inputs(call)[*at]);
                return Link::Missing(awaited.unwrap_or(*first));
            }
            Why::InputDiffers { at, old, .. } => {
                let source = plan.inputs(call)[*at];
                let whole = plan.whole(source).0;
                match (source, whole) {
                    (_, Source::Output { call, .. }) if plan.gathered(call).is_some() => {
                        Cause::Table(call)
                    }
                    (_, Source::Output { call, .. }) => {
                        let archive = &self.comparison.archive;
                        if let Some(maker) = earlier.and_then(|it| archive.maker(it, *at)) {
                            return Link::Pair(call, maker);
                        }
                        Cause::Unrecorded(plan.computation(call).unwrap_or(id))
                    }
                    (Source::Derived { value, .. }, _) if whole != source => {
                        Cause::Member(value, *old)
                    }
                    (_, Source::Input(input)) => Cause::Input(input, *old),
                    (_, Source::Literal(literal)) => Cause::Literal(literal, *old),
                    (_, Source::File(file)) => Cause::File(file, *old),
                    (_, Source::Derived { value, .. }) => Cause::Tree(value, *old),
                }
            }
            Why::NeverComputed => Cause::NeverComputed(id),
            Why::ComputationChanged { old } => Cause::Computation(id, old.clone()),
            Why::Uncommitted { old } => Cause::Uncommitted(id, old.clone()),
            Why::NewAtPoint { at, .. } => match plan.inputs(call)[*at] {
                Source::Derived { value, .. } => Cause::NewAtPoint(value),
                _ => Cause::NeverComputed(id),
            },
            Why::OtherSource { at } => Cause::OtherSource(id, *at),
            Why::NoLiteral { literal, .. } => Cause::NoLiteral(*literal),
            Why::FailedLast { .. } => Cause::FailedLast(id),
            Why::Collected { .. } => Cause::Collected(id),
            Why::Away => Cause::Away(id),
            Why::Damaged { .. } => Cause::Damaged(id),
        };
        self.cause(cause)
    }

    fn cause(&mut self, cause: Cause) -> Link {
        let next = self.causes.len();
        let at = *self.known.entry(cause.clone()).or_insert(next);
        if at == next {
            self.causes.push(FirstCause { cause, calls: 0 });
        }
        Link::Cause(at)
    }

    /// Returns all causes, and the causes of each reason of each missing call.
    pub(super) fn finish(self) -> (Vec<FirstCause>, Vec<Vec<Causes>>) {
        let Self { comparison, calls, mut causes, links, pairs, .. } = self;
        let mut behind = Behind::default();
        let mut order: Vec<_> = pairs.iter().collect();
        order.sort_unstable_by_key(|(pair, _)| **pair);
        for (pair, links) in order {
            let all = union(links.iter().map(|link| behind.link(*link)));
            behind.pairs.insert(*pair, all);
        }
        behind.meet_missing(comparison.evaluation, calls, &links);
        let mut reasons = Vec::with_capacity(calls.len());
        for ((id, _), links) in calls.iter().zip(&links) {
            reasons.push(links.iter().map(|link| behind.link(*link)).collect());
            behind.link(Link::Missing(*id)).iter().for_each(|cause| causes[cause].calls += 1);
        }
        (causes, reasons)
    }
}

/// The known causes of calls.
#[derive(Default)]
struct Behind {
    pairs: HashMap<(CallId, usize), Causes>,
    missing: HashMap<CallId, Causes>,
}

impl Behind {
    /// Unites the causes of missing calls, and of the tables that they read. The calls of points may come after those that read
    /// their table, so each call waits on a stack for those that it needs.
    fn meet_missing(
        &mut self,
        evaluation: &Evaluation,
        calls: &[(CallId, Vec<Why>)],
        links: &[Vec<Link>],
    ) {
        let of_calls: HashMap<CallId, &Vec<Link>> =
            calls.iter().map(|(id, _)| *id).zip(links).collect();
        let mut waiting: Vec<CallId> = calls.iter().rev().map(|(id, _)| *id).collect();
        while let Some(&id) = waiting.last() {
            if self.missing.contains_key(&id) {
                waiting.pop();
                continue;
            }
            let behind: Vec<Link> = match of_calls.get(&id) {
                Some(links) => links.to_vec(),
                None if evaluation.computation(id).is_some() => Vec::new(),
                None => awaited_by(evaluation, id).map(Link::Missing).collect(),
            };
            let before = waiting.len();
            waiting.extend(behind.iter().filter_map(|link| match link {
                Link::Missing(call) if !self.missing.contains_key(call) => Some(*call),
                _ => None,
            }));
            if waiting.len() == before {
                let all = union(behind.into_iter().map(|link| self.link(link)));
                self.missing.insert(id, all);
                waiting.pop();
            }
        }
    }

    fn link(&self, link: Link) -> Causes {
        let known = match link {
            Link::Cause(cause) => return Causes::one(cause),
            Link::Pair(call, earlier) => self.pairs.get(&(call, earlier)),
            Link::Missing(call) => self.missing.get(&call),
        };
        // A call for which the storage failed has no known cause.
        known.cloned().unwrap_or_default()
    }
}

fn union(sets: impl Iterator<Item = Causes>) -> Causes {
    sets.reduce(|mut all, set| {
        all.add(&set);
        all
    })
    .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_added_causes_in_order() {
        let mut set = union([3, 64, 200, 3].into_iter().map(Causes::one));
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 64, 200]);
        set.add(&Causes::one(1));
        assert_eq!(set.iter().collect::<Vec<_>>(), [1, 3, 64, 200]);
        assert_eq!(union(std::iter::empty()).iter().count(), 0);
    }
}
