//! Comparing the sweeps of two evaluations, point by point.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::walk;
use ce_evaluate::Evaluation;
use ce_model::digest::Digest;
use ce_model::plan::{CallId, PlannedSweep, Step, SweepRows};
use ce_model::sweep::SweepPoint;
use ce_model::task::Node;

/// A sweep that both tasks have in the same place, with its points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedSweep {
    /// The calls that gather it, on both sides.
    pub calls: [CallId; 2],
    /// The number of points that both sides have.
    pub points: usize,
    /// The number of points that only one side has.
    pub only: [usize; 2],
    /// The number of those of both sides of which an output is not known on one side.
    pub unknown: usize,
    /// The number of those with other outputs.
    pub differing: usize,
    /// The first ones with other outputs, in the order of the newer side.
    pub first: Vec<ComparedPoint>,
    /// The number of those of both sides with other labels.
    pub relabelled: usize,
    /// The rules of the tables differ: their columns, or whether failed points are rows.
    pub other_columns: bool,
}

/// A point with other outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedPoint {
    /// The numbers of the point among those of each side.
    pub rows: [usize; 2],
    /// The number of the first output of the body that differs.
    pub output: usize,
}

/// The greatest number of points that are listed.
const FIRST: usize = 5;

/// A point as names and texts, whatever their order.
type PointKey = Vec<(String, Arc<str>)>;

/// Compares the sweeps that both tasks have in the same place and whose tables are not the same. Those within other
/// sweeps are not compared by themselves.
pub fn compared_sweeps(sides: [&Evaluation; 2]) -> Vec<ComparedSweep> {
    let mut calls = Vec::new();
    let _differences = walk(sides, &mut |nodes| {
        let [a, b] = [0, 1].map(|at| {
            let node = &sides[at].task.workflow[nodes[at]];
            match (node, sides[at].plan.step(nodes[at])) {
                (Node::Sweep { .. }, Step::Call(call)) => Some(call),
                _ => None,
            }
        });
        calls.extend(a.zip(b).map(|(a, b)| [a, b]));
    });
    let mut seen = BTreeSet::new();
    calls.retain(|pair| seen.insert(*pair));
    calls.into_iter().filter_map(|calls| compare(sides, calls)).collect()
}

fn compare(sides: [&Evaluation; 2], calls: [CallId; 2]) -> Option<ComparedSweep> {
    let sweeps = [0, 1].map(|at| sides[at].plan.gathered(calls[at]));
    let rows = sweeps.map(|sweep| sweep.and_then(PlannedSweep::rows));
    let ([Some(a), Some(b)], [Some(one), Some(other)]) = (sweeps, rows) else { return None };
    let rules = [&sides[0].task.sweeps[a.sweep.index()], &sides[1].task.sweeps[b.sweep.index()]];
    let keys = [0, 1].map(|at| {
        let points = &[one, other][at].points;
        let keys = sides[at].plan.key_columns(&sides[at].task, [a, b][at], points);
        points.names().iter().zip(keys).filter(|(_, is_key)| *is_key).map(|it| it.0).collect()
    });
    // If labels tell points apart on one side, they do on the other.
    let keys: BTreeSet<&String> = keys.into_iter().flat_map(|keys: Vec<&String>| keys).collect();
    let key = |point: SweepPoint<'_>| key(point, |name| keys.contains(name));
    let mut older: HashMap<PointKey, usize> =
        one.points.iter().enumerate().map(|(number, point)| (key(point), number)).collect();
    let mut compared = ComparedSweep {
        calls,
        points: 0,
        only: [0; 2],
        unknown: 0,
        differing: 0,
        first: Vec::new(),
        relabelled: 0,
        other_columns: rules[0].columns != rules[1].columns
            || rules[0].allow_failed != rules[1].allow_failed,
    };
    for (number, point) in other.points.iter().enumerate() {
        let Some(before) = older.remove(&key(point)) else {
            compared.only[1] += 1;
            continue;
        };
        compared.points += 1;
        let all = |point| self::key(point, |_| true);
        compared.relabelled += usize::from(all(one.points.at(before)) != all(point));
        let outputs = [outputs(sides[0], one, before), outputs(sides[1], other, number)];
        let [Some(before_outputs), Some(now)] = &outputs else {
            // Points that failed on both sides have nothing to compare.
            compared.unknown += 1;
            continue;
        };
        if before_outputs != now {
            compared.differing += 1;
            if compared.first.len() < FIRST {
                let output = before_outputs.iter().zip(now).position(|(a, b)| a != b);
                let output = output.unwrap_or(before_outputs.len().min(now.len()));
                compared.first.push(ComparedPoint { rows: [before, number], output });
            }
        }
    }
    compared.only[0] = older.len();
    Some(compared)
}

/// The names and texts of a point, of those names that count.
fn key(point: SweepPoint<'_>, counts: impl Fn(&String) -> bool) -> PointKey {
    let named = point.values().map(|(name, text)| (name.to_owned(), Arc::clone(text)));
    let mut key: PointKey = named.filter(|(name, _)| counts(name)).collect();
    key.sort_unstable();
    key
}

/// The outputs of the body at a point, if all are known.
fn outputs(evaluation: &Evaluation, rows: &SweepRows, number: usize) -> Option<Vec<Digest>> {
    rows.row(number).iter().map(|source| evaluation.digest(*source)).collect()
}
