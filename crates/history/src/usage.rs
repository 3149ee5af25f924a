//! What calls have asked for, and what they have used.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Past;

/// Calls of a computation that have asked for the same, and the most that one of them has used. Its JSON is a line of `ce log
/// --resources --json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResourceUsage {
    /// The name of the computation.
    pub computation: String,
    /// What they have asked for: lines of a file `resources`.
    pub resources: Box<[String]>,
    /// The number of calls.
    pub calls: usize,
    /// The most processors that one has used on average; `None` if all were too short to tell.
    pub cpus: Option<f64>,
    /// The most memory that a process of one has used, in bytes.
    pub peak_bytes: u64,
    /// The duration of the longest one, in seconds.
    pub seconds: f64,
}

/// Compares what calls have asked for with what they have used, by computation. Calls that failed, and those that were not
/// executed, are left out.
pub fn resource_usage(log: &[Past]) -> Vec<ResourceUsage> {
    let mut groups: BTreeMap<(&str, &[String]), ResourceUsage> = BTreeMap::new();
    for past in log {
        let Past { computation, resources, seconds, cpu_seconds, peak_bytes, .. } = past;
        let (Some(seconds), Some(cpu_seconds), Some(peak_bytes)) =
            (*seconds, *cpu_seconds, *peak_bytes)
        else {
            continue;
        };
        let group = groups.entry((computation, resources)).or_insert_with(|| ResourceUsage {
            computation: computation.clone(),
            resources: resources.clone(),
            calls: 0,
            cpus: None,
            peak_bytes: 0,
            seconds: 0.0,
        });
        group.calls += 1;
        if seconds > 0.0 {
            let cpus = cpu_seconds / seconds;
            group.cpus = Some(group.cpus.map_or(cpus, |most| most.max(cpus)));
        }
        group.peak_bytes = group.peak_bytes.max(peak_bytes);
        group.seconds = group.seconds.max(seconds);
    }
    groups.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OriginalExecution;

    fn past(computation: &str, lines: &[&str], used: Option<(f64, f64, u64)>) -> Past {
        Past {
            at: None,
            made: OriginalExecution::default(),
            name: String::new(),
            computation: computation.to_owned(),
            version: String::new(),
            commit: String::new(),
            dirty: false,
            inputs: Vec::new(),
            may_be_texts: Vec::new(),
            texts: Default::default(),
            seconds: used.map(|it| it.0),
            cpu_seconds: used.map(|it| it.1),
            peak_bytes: used.map(|it| it.2),
            resources: lines.iter().map(|line| (*line).to_owned()).collect(),
            host: None,
            shared: false,
            away: false,
            taken_over: None,
            failed: None,
            suspended: None,
        }
    }

    #[test]
    fn the_most_that_a_call_has_used_counts_for_each_request() {
        let four = ["cpus 4"];
        let log = [
            past("sort", &four, Some((2.0, 6.0, 100))),
            past("sort", &four, Some((4.0, 2.0, 300))),
            past("sort", &four, Some((0.0, 0.1, 200))),
            past("sort", &four, None),
            past("sort", &[], Some((0.0, 0.0, 7))),
            past("align", &[], Some((1.0, 1.0, 1))),
        ];
        let usage = resource_usage(&log);
        let usage: Vec<_> = usage
            .iter()
            .map(|it| {
                (&*it.computation, it.resources.len(), it.calls, it.cpus, it.peak_bytes, it.seconds)
            })
            .collect();
        assert_eq!(
            usage,
            [
                ("align", 0, 1, Some(1.0), 1, 1.0),
                ("sort", 0, 1, None, 7, 0.0),
                ("sort", 1, 3, Some(3.0), 300, 4.0),
            ]
        );
    }
}
