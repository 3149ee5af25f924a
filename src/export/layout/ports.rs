//! Where lines touch boxes.
//!
//! Lines leave and reach a box in the order of where they come from or go to, so they do not cross
//! there, and straight on if they can. Knows of one axis only.

use super::layers::Layers;
use super::sizes::{PORT, Sizes};
use crate::export::drawing::Drawing;

/// How far lines keep from the corners of a box.
const CORNER: f64 = 6.0;
/// Lines that would leave a box closer to each other than this leave it as one.
const LEAST: f64 = 5.0;

/// The heights at which lines begin and end.
#[derive(Debug)]
pub(super) struct Ports {
    /// For every vertex other than a shape, where the line to it begins.
    pub(super) starts: Vec<f64>,
    /// For every arrow, where it ends.
    pub(super) tips: Vec<f64>,
}

impl Ports {
    /// Finds the heights, given the middle of every vertex.
    pub(super) fn new(drawing: &Drawing, layers: &Layers, sizes: &Sizes, ys: &[f64]) -> Self {
        let mut starts = vec![0.0; ys.len()];
        let mut tips = vec![0.0; drawing.arrows.len()];
        let mut leaving = vec![Vec::new(); layers.labels];
        let mut arriving = vec![Vec::new(); layers.labels];
        for (shape, trunk) in layers.trunks.iter().enumerate() {
            for bend in trunk.clone() {
                match bend - trunk.start {
                    0 => leaving[shape].push(bend),
                    _ => starts[bend] = ys[bend - 1],
                }
            }
        }
        for (at, (arrow, join)) in drawing.arrows.iter().zip(&layers.joins).enumerate() {
            let label = layers.labels + at;
            match leaving.get_mut(*join) {
                Some(leaving) => leaving.push(label),
                None => starts[label] = ys[*join],
            }
            arriving[arrow.to].push(label);
        }
        for shape in 0..layers.labels {
            let (middle, half) = (ys[shape], sizes.half(shape) - CORNER);
            for (label, tip) in ports(&mut arriving[shape], ys, middle, half) {
                tips[label - layers.labels] = tip;
            }
            let leaving = &mut leaving[shape];
            let half = if leaving.len() as f64 * LEAST > 2.0 * half + LEAST { 0.0 } else { half };
            for (vertex, start) in ports(leaving, ys, middle, half) {
                starts[vertex] = start;
            }
        }
        Self { starts, tips }
    }
}

/// Spreads the ports of these vertices over the side of a box.
fn ports<'a>(
    vertices: &'a mut [usize],
    ys: &[f64],
    middle: f64,
    half: f64,
) -> impl Iterator<Item = (usize, f64)> + use<'a> {
    vertices.sort_by(|a, b| ys[*a].total_cmp(&ys[*b]));
    let gaps = vertices.len().saturating_sub(1) as f64;
    let step = PORT.min(2.0 * half / gaps.max(1.0));
    let first = middle - gaps / 2.0 * step;
    let mut ports: Vec<f64> = (0..vertices.len()).map(|at| first + at as f64 * step).collect();
    // Those in the middle go straight on; those before and behind them make room.
    let before = vertices.partition_point(|vertex| ys[*vertex] < middle - half);
    let behind = vertices.partition_point(|vertex| ys[*vertex] <= middle + half);
    for at in before..behind {
        ports[at] = ys[vertices[at]];
    }
    for at in before.max(1)..ports.len() {
        ports[at] = ports[at].max(ports[at - 1] + step);
    }
    for at in (0..before).rev() {
        if let Some(next) = ports.get(at + 1) {
            ports[at] = ports[at].min(next - step);
        }
    }
    for (at, port) in ports.iter_mut().enumerate() {
        let (after, remain) = (at as f64 * step, (gaps - at as f64) * step);
        *port = port.max(middle - half + after).min(middle + half - remain);
    }
    vertices.iter().copied().zip(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(ys: &[f64], half: f64) -> Vec<f64> {
        let mut vertices: Vec<usize> = (0..ys.len()).collect();
        ports(&mut vertices, ys, 100.0, half).map(|(_, port)| port).collect()
    }

    #[test]
    fn a_line_goes_straight_on_if_it_can() {
        assert_eq!(spread(&[103.0], 10.0), [103.0]);
        assert_eq!(spread(&[90.0, 110.0], 12.0), [90.0, 110.0]);
        assert_eq!(spread(&[-500.0], 12.0), [100.0]);
    }

    #[test]
    fn ports_keep_their_order_and_stay_on_the_box() {
        let ports = spread(&[-9.0, 0.0, 95.0, 96.0, 900.0, 901.0], 20.0);
        assert!(ports.iter().all(|port| (80.0..=120.0).contains(port)), "{ports:?}");
        let apart = |pair: &[f64]| pair[1] - pair[0] > 7.9;
        assert!(ports.windows(2).all(apart), "{ports:?}");
    }
}
