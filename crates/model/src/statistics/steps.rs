//! The steps of a series of medians: where its level changes, and stays.
//!
//! The series is cut into segments with the least sum of distances to their medians and a price for each cut, exactly. A segment has at
//! least three values, so a single one that is far away makes no step. The price grows with the noise, which is found from neighbours, and with
//! how long the noise lasts, which is found from what is left of the values within the first segments: a host that wanders has no steps. Where a line
//! through two segments is as near to the values as their two levels, the level did not change at once, and that is no step.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::{CONFIDENCE, ChangeVerdict, ComparedSides, Measurements, MedianChange, compare};

/// Fewer values have no steps.
pub const LEAST_SERIES: usize = 8;

/// Only the last values of a longer series are looked at.
const LONGEST_SERIES: usize = 3000;

/// The least number of values of a segment.
const LEAST_SEGMENT: usize = 3;

/// The least change of a step, as a share.
const LEAST_STEP: f64 = 0.02;

/// The least correlation of neighbours that counts, times the root of the number of values, and the greatest.
const LEAST_MEMORY: f64 = 3.0;
const MOST_MEMORY: f64 = 0.9;

/// The distance from the level of a value that is far away, in medians of such distances.
const FAR: f64 = 4.5;

/// The cost of a line, as a share of the cost of two levels, up to which it explains values better.
const SLOPE: f64 = 0.97;

/// The median and the mean of the distance of two values with a standard deviation of 1 each.
const MEDIAN_DISTANCE: f64 = 0.954;
const MEAN_DISTANCE: f64 = 1.128;

/// A step of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesStep {
    /// The number of the first value of the new level, counted from zero.
    pub at: usize,
    /// The medians of the old and the new level.
    pub levels: [f64; 2],
    /// The change with its interval, if both levels have at least 5 values.
    pub change: Option<MedianChange>,
}

/// Finds the steps of a series, in its order. There are none in less than [`LEAST_SERIES`] values.
pub fn series_steps(values: &[f64]) -> Vec<SeriesStep> {
    let before = values.len().saturating_sub(LONGEST_SERIES);
    let values = &values[before..];
    if values.len() < LEAST_SERIES || !values.iter().all(|value| value.is_finite()) {
        return Vec::new();
    }
    let is_log = values.iter().all(|value| *value > 0.0);
    let scaled: Vec<f64> = values.iter().map(|it| if is_log { it.ln() } else { *it }).collect();
    let sigma = noise(&scaled);
    if sigma == 0.0 {
        return Vec::new();
    }
    let price = price(sigma, scaled.len());
    let (mut cuts, _) = cuts(&scaled, price);
    let memory = memory(&scaled, &ends(&cuts, scaled.len()));
    if memory > LEAST_MEMORY / (scaled.len() as f64).sqrt() {
        let memory = memory.min(MOST_MEMORY);
        cuts = self::cuts(&scaled, price * (1.0 + memory) / (1.0 - memory)).0;
    }
    while let Some(smallest) = smallest(&scaled, &cuts, is_log) {
        cuts.remove(smallest);
    }
    let ends = ends(&cuts, values.len());
    let steps =
        ends.windows(3).filter(|ends| !is_slope(&scaled[ends[0]..ends[2]], ends[1] - ends[0]));
    let steps = steps.filter_map(|ends| {
        let [old, new] =
            [0, 1].map(|at| Measurements::new(values[ends[at]..ends[at + 1]].to_vec()));
        let (old, new) = (old?, new?);
        let measured = ComparedSides::Measured { confidence: CONFIDENCE, resolution: 0.0 };
        let (change, verdict) = compare(&old, &new, measured, LEAST_STEP);
        let change = change.filter(|_| verdict != ChangeVerdict::TooFew);
        Some(SeriesStep { at: before + ends[1], levels: [old.median(), new.median()], change })
    });
    steps.collect()
}

/// The beginnings of segments, and the end of the last one.
fn ends(cuts: &[usize], n: usize) -> Vec<usize> {
    [0].into_iter().chain(cuts.iter().copied()).chain([n]).collect()
}

fn median(values: &[f64]) -> f64 {
    Measurements::new(values.to_vec()).map_or(0.0, |it| it.median())
}

/// The sum of the distances of values to their median.
fn distance_to_median(values: &[f64]) -> f64 {
    let middle = median(values);
    values.iter().map(|value| (value - middle).abs()).sum()
}

/// The correlation of neighbours within segments, without their levels. Values that are far away count less.
fn memory(values: &[f64], ends: &[usize]) -> f64 {
    let segments = ends.windows(2).map(|of| {
        let segment = &values[of[0]..of[1]];
        let level = median(segment);
        segment.iter().map(|value| value - level).collect::<Vec<f64>>()
    });
    let segments: Vec<Vec<f64>> = segments.collect();
    let sizes: Vec<f64> = segments.iter().flatten().map(|value| value.abs()).collect();
    let most = FAR * median(&sizes);
    let (mut products, mut squares) = (0.0, 0.0);
    for segment in segments {
        let near: Vec<f64> = segment.into_iter().map(|value| value.clamp(-most, most)).collect();
        squares += near.iter().map(|value| value * value).sum::<f64>();
        products += near.windows(2).map(|of| of[0] * of[1]).sum::<f64>();
    }
    if squares > 0.0 { products / squares } else { 0.0 }
}

/// Whether a line through the medians of the first and the last third of two segments is as near to the values as the medians of both are. The
/// second segment begins at this number.
fn is_slope(values: &[f64], second: usize) -> bool {
    let third = (values.len() / 3).max(1);
    let rise = median(&values[values.len() - third..]) - median(&values[..third]);
    let slope = rise / (values.len() - third) as f64;
    let left: Vec<f64> =
        (0..).zip(values).map(|(at, value)| value - slope * f64::from(at)).collect();
    let (first, second) = values.split_at(second);
    distance_to_median(&left) <= SLOPE * (distance_to_median(first) + distance_to_median(second))
}

/// The standard deviation of the noise: of neighbours, or of values a little further apart if these differ more.
fn noise(values: &[f64]) -> f64 {
    let furthest = (values.len() / 20).clamp(1, 5);
    let medians = (1..=furthest).filter_map(|lag| Measurements::new(distances(values, lag)));
    let sigma = medians.map(|it| it.median() / MEDIAN_DISTANCE).fold(0.0, f64::max);
    if sigma > 0.0 {
        return sigma;
    }
    let neighbours = distances(values, 1);
    neighbours.iter().sum::<f64>() / neighbours.len() as f64 / MEAN_DISTANCE
}

/// The distance of each value to the value this many places behind it.
fn distances(values: &[f64], lag: usize) -> Vec<f64> {
    values.windows(lag + 1).map(|window| (window[lag] - window[0]).abs()).collect()
}

fn price(sigma: f64, n: usize) -> f64 {
    3.0 * sigma * (n as f64).ln()
}

/// The cuts with the least cost, and that cost.
fn cuts(values: &[f64], price: f64) -> (Vec<usize>, f64) {
    let n = values.len();
    // The least cost of the values before each number, and the last cut of these.
    let mut best = vec![(f64::INFINITY, 0); n + 1];
    best[0] = (-price, 0);
    for end in LEAST_SEGMENT..=n {
        let mut segment = SegmentCost::default();
        for begin in (0..end).rev() {
            segment.add(values[begin]);
            let cost = best[begin].0 + price + segment.cost();
            if end - begin >= LEAST_SEGMENT && cost < best[end].0 {
                best[end] = (cost, begin);
            }
        }
    }
    let mut cuts = Vec::new();
    let mut at = best[n].1;
    while at > 0 {
        cuts.insert(0, at);
        at = best[at].1;
    }
    (cuts, best[n].0)
}

/// The cut with the least change, if that is too small for a step.
fn smallest(values: &[f64], cuts: &[usize], is_log: bool) -> Option<usize> {
    let ends = ends(cuts, values.len());
    let segments =
        ends.windows(2).filter_map(|of| Measurements::new(values[of[0]..of[1]].to_vec()));
    let medians: Vec<f64> = segments.map(|it| it.median()).collect();
    let sizes = medians.windows(2).map(|of| {
        let least = if is_log { LEAST_STEP.ln_1p() } else { LEAST_STEP * of[0].abs() };
        (of[1] - of[0]).abs() - least
    });
    let least = sizes.enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b));
    least.filter(|(_, size)| *size < 0.0).map(|(at, _)| at)
}

/// A number that has a place among all.
#[derive(Clone, Copy, PartialEq)]
struct Ordered(f64);

impl Eq for Ordered {}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The sum of the distances of values to their median. The lower half has the median of an odd number.
#[derive(Default)]
struct SegmentCost {
    lower: BinaryHeap<Ordered>,
    upper: BinaryHeap<Reverse<Ordered>>,
    sums: [f64; 2],
}

impl SegmentCost {
    fn add(&mut self, value: f64) {
        self.lower.push(Ordered(value));
        self.sums[0] += value;
        if let Some(largest) = self.lower.pop() {
            self.upper.push(Reverse(largest));
            self.sums[0] -= largest.0;
            self.sums[1] += largest.0;
        }
        if self.upper.len() > self.lower.len()
            && let Some(Reverse(least)) = self.upper.pop()
        {
            self.lower.push(least);
            self.sums[1] -= least.0;
            self.sums[0] += least.0;
        }
    }

    fn cost(&self) -> f64 {
        let is_odd = self.lower.len() > self.upper.len();
        let median = self.lower.peek().filter(|_| is_odd).map_or(0.0, |it| it.0);
        self.sums[1] - self.sums[0] + median
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [f64; 16] = [
        1.00, 1.02, 0.99, 1.01, 1.00, 1.03, 0.98, 1.01, 1.12, 1.10, 1.11, 1.13, 1.09, 1.12, 1.10,
        1.11,
    ];
    const B: [f64; 16] = [
        1.00, 1.02, 0.99, 1.01, 1.00, 1.03, 1.60, 1.01, 0.98, 1.00, 1.02, 0.99, 1.01, 1.00, 1.02,
        0.99,
    ];
    const C: [f64; 20] = [
        1.00, 1.02, 0.99, 1.01, 1.00, 1.03, 0.98, 1.01, 1.21, 1.19, 1.22, 1.20, 1.18, 1.21, 1.00,
        1.02, 0.99, 1.01, 0.98, 1.00,
    ];
    const D: [f64; 12] = [2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0];

    #[test]
    fn steps_are_where_the_level_changes_and_stays() {
        for (values, sigma, of_step, cost, steps) in [
            (&A[..], 0.020965059, 0.174382462, 0.345974544, &[(8, [1.004988, 1.11])][..]),
            (&B, 0.021176842, 0.176144020, 0.639175021, &[]),
            (
                &C,
                0.026098062,
                0.234548424,
                0.686920260,
                &[(8, [1.004988, 1.204990]), (14, [1.204990, 1.0])],
            ),
            (&D, 0.032677717, 0.243603226, 0.243603226, &[(8, [2.0, 3.0])]),
        ] {
            let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
            let close = |found: f64, expected: f64| {
                assert!((found - expected).abs() < 1e-8, "{found} {expected}");
            };
            close(noise(&logs), sigma);
            close(price(sigma, logs.len()), of_step);
            close(cuts(&logs, price(noise(&logs), logs.len())).1, cost);
            let found = series_steps(values);
            assert_eq!(found.len(), steps.len(), "{found:?}");
            for (step, (at, levels)) in found.iter().zip(steps) {
                assert_eq!(step.at, *at);
                // The vectors have medians of logarithms.
                for (found, expected) in step.levels.iter().zip(levels) {
                    assert!((found - expected).abs() < 1e-4, "{found} {expected}");
                }
            }
        }
        let change = series_steps(&A)[0].change.unwrap();
        assert!(
            change.is_ratio && change.estimate.low > 1.08 && change.estimate.high < 1.13,
            "{change:?}"
        );
        assert_eq!(series_steps(&D)[0].change, None, "a level of 4 values has no interval");
    }

    #[test]
    fn short_and_constant_series_and_small_changes_have_no_steps() {
        assert_eq!(series_steps(&D[5..]), []);
        assert_eq!(series_steps(&[1.0; 20]), []);
        let slightly: Vec<f64> =
            (0..16).map(|at| 1.0 + f64::from(at / 8) * 0.015 + f64::from(at % 2) * 1e-4).collect();
        assert_eq!(series_steps(&slightly), []);
        // Without logarithms.
        let around_zero: Vec<f64> = A.iter().map(|value| value - 1.0).collect();
        assert_eq!(series_steps(&around_zero)[0].at, 8);
    }

    #[test]
    fn the_cost_of_a_segment_is_the_sum_of_distances_to_its_median() {
        let mut segment = SegmentCost::default();
        for (value, cost) in [(3.0, 0.0), (1.0, 2.0), (2.0, 2.0), (10.0, 10.0), (-1.0, 13.0)] {
            segment.add(value);
            assert!((segment.cost() - cost).abs() < 1e-12, "{value}");
        }
        // The last values of a long series count.
        let long: Vec<f64> =
            (0..3100).map(|at| f64::from(at % 2) + if at < 50 { 9.0 } else { 1.0 }).collect();
        assert_eq!(series_steps(&long), []);
    }

    /// Noise of a normal distribution with a standard deviation, the same each time, in which neighbours have a correlation.
    fn noise_with_memory(seed: u64, n: usize, deviation: f64, correlation: f64) -> Vec<f64> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut uniform = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        // The sum of twelve has a standard deviation of one.
        let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let mut value = normal();
        let next = (1.0 - correlation * correlation).sqrt();
        let values = (0..n).map(|_| {
            value = correlation * value + next * normal();
            value * deviation
        });
        values.collect()
    }

    /// The numbers of steps in series of logarithms that this makes of a seed: those near the number of a real step, and all others.
    fn found(series: impl Fn(u64) -> Vec<f64>, step: usize) -> [usize; 2] {
        let mut counts = [0, 0];
        for seed in 1..=40 {
            let values: Vec<f64> = series(seed).into_iter().map(f64::exp).collect();
            for found in series_steps(&values) {
                counts[usize::from(found.at.abs_diff(step) > 2)] += 1;
            }
        }
        counts
    }

    #[test]
    fn noise_with_memory_has_no_steps_and_hides_no_real_one() {
        for correlation in [0.0, 0.5, 0.8] {
            let noise = |seed| noise_with_memory(seed, 150, 0.02, correlation);
            let [_, alarms] = found(noise, 1000);
            assert!(alarms <= 2, "{alarms} alarms with {correlation}");
            let with_step = |seed| {
                let values = noise(seed).into_iter().enumerate();
                values.map(|(at, it)| if at < 75 { it } else { it + 0.1 }).collect()
            };
            let [real, alarms] = found(with_step, 75);
            assert!(real >= 39 && alarms <= 2, "{real} steps, {alarms} alarms with {correlation}");
        }
    }

    #[test]
    fn a_drift_is_no_staircase_and_a_step_in_a_wave_is_one() {
        let drift = |seed| {
            let values = (0..).zip(noise_with_memory(seed, 200, 0.01, 0.0));
            values.map(|(at, it)| it + (1.0 + 0.4 * f64::from(at) / 200.0).ln()).collect()
        };
        let [_, alarms] = found(drift, 1000);
        assert!(alarms <= 3, "{alarms} alarms");
        let wave: Vec<f64> = (0..200)
            .map(|at| {
                let level = if at < 100 { 0.0_f64 } else { 0.4 };
                level.exp() * (1.0 + 0.2 * (f64::from(at) / 20.0).cos())
            })
            .collect();
        let steps: Vec<usize> = series_steps(&wave).iter().map(|it| it.at).collect();
        assert!(steps.contains(&100) && steps.len() <= 2, "{steps:?}");
    }
}
