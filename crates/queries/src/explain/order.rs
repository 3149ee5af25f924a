//! The order in which calls and causes are told.

use std::collections::HashMap;

use super::{Explained, FirstCause};
use ce_model::plan::{FirstRows, Plan};
use ce_model::task::{NodeId, Task};

/// Puts the calls of each node into the order of their points. They keep the places of its calls, since others wait for them.
pub(super) fn by_points(task: &Task, plan: &Plan, calls: &mut Vec<Explained>) {
    let mut known = FirstRows::default();
    let mut places: HashMap<NodeId, Vec<usize>> = HashMap::new();
    for (place, explained) in calls.iter().enumerate() {
        places.entry(plan.call(explained.call).node).or_default().push(place);
    }
    let mut order = vec![0; calls.len()];
    for places in places.into_values() {
        let mut sorted = places.clone();
        sorted.sort_by_cached_key(|place| plan.first_rows(task, calls[*place].call, &mut known));
        sorted.into_iter().zip(places).for_each(|(call, place)| order[call] = place);
    }
    let mut placed: Vec<(usize, Explained)> = order.into_iter().zip(calls.drain(..)).collect();
    placed.sort_unstable_by_key(|(place, _)| *place);
    calls.extend(placed.into_iter().map(|(_, explained)| explained));
}

/// Numbers the causes in the order in which the calls lead to them.
pub(super) fn by_calls(calls: &mut [Explained], causes: Vec<FirstCause>) -> Vec<FirstCause> {
    let mut order: Vec<usize> = Vec::with_capacity(causes.len());
    let mut is_known = vec![false; causes.len()];
    let found = calls.iter().flat_map(|it| &it.whys).flat_map(|(_, causes)| causes.iter());
    for cause in found.chain(0..causes.len()) {
        if !std::mem::replace(&mut is_known[cause], true) {
            order.push(cause);
        }
    }
    let mut numbers = vec![0; causes.len()];
    order.iter().enumerate().for_each(|(number, &cause)| numbers[cause] = number);
    for (_, causes) in calls.iter_mut().flat_map(|it| &mut it.whys) {
        *causes = causes.renumbered(&numbers);
    }
    let mut numbered: Vec<(usize, FirstCause)> = numbers.into_iter().zip(causes).collect();
    numbered.sort_unstable_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, cause)| cause).collect()
}
