//! Where the vertices of a layered graph stand in their layers.
//!
//! The method of Brandes and Köpf: what can be in line is put in line, in four ways, each as close
//! together as sizes allow, and everything stands in the middle of its four places. Trunks are
//! put in line first, so long arrows are straight. The order in the layers is kept and nothing
//! overlaps. Knows of one axis only.

use super::layers::{Layers, Neighbours};
use super::order::Order;

/// How much room a vertex takes along its layer, on both sides of its middle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// The room towards the beginning of the layer.
    pub(super) above: f64,
    /// The room towards its end.
    pub(super) below: f64,
}

/// Returns the middle of every vertex.
pub(super) fn middles(layers: &Layers, order: &Order, extents: &[Extent]) -> Vec<f64> {
    let ways = [(true, true), (true, false), (false, true), (false, false)];
    let mut places = ways.map(|(forward, down)| {
        let way = Way { layers, order, extents, forward, down };
        way.places()
    });
    let spans = places.each_ref().map(|places| span(places, extents));
    let length = |(top, bottom): &&(f64, f64)| bottom - top;
    let shortest = spans.iter().min_by(|a, b| length(a).total_cmp(&length(b)));
    let (top, bottom) = shortest.copied().unwrap_or_default();
    for ((places, (_, down)), (own_top, own_bottom)) in places.iter_mut().zip(ways).zip(spans) {
        let shift = if down { top - own_top } else { bottom - own_bottom };
        for place in places {
            *place += shift;
        }
    }
    let middle = |vertex: usize| {
        let mut four = places.each_ref().map(|places| places[vertex]);
        four.sort_by(f64::total_cmp);
        (four[1] + four[2]) / 2.0
    };
    (0..extents.len()).map(middle).collect()
}

/// Where the first room begins and the last one ends.
pub(super) fn span(middles: &[f64], extents: &[Extent]) -> (f64, f64) {
    let rooms = middles.iter().zip(extents);
    let rooms = rooms.map(|(y, extent)| (y - extent.above, y + extent.below));
    let nothing = (f64::INFINITY, f64::NEG_INFINITY);
    rooms.fold(nothing, |all, room| (all.0.min(room.0), all.1.max(room.1)))
}

/// One of the four ways to place everything: in line with what is in the layer before, or behind,
/// and as far up as possible, or down.
struct Way<'a> {
    layers: &'a Layers,
    order: &'a Order,
    extents: &'a [Extent],
    forward: bool,
    down: bool,
}

impl Way<'_> {
    /// The place of every vertex, this way.
    fn places(&self) -> Vec<f64> {
        let blocks = self.blocks();
        let places = self.compact(&blocks);
        let sign = if self.down { 1.0 } else { -1.0 };
        blocks.iter().map(|block| sign * places[*block]).collect()
    }

    /// A layer in this way's direction.
    fn row(&self, row: &[usize]) -> Vec<usize> {
        let mut row = row.to_vec();
        if !self.down {
            row.reverse();
        }
        row
    }

    /// The place of a vertex in its layer, in this way's direction.
    fn at(&self, vertex: usize) -> isize {
        let at = self.order.at[vertex] as isize;
        if self.down { at } else { -at }
    }

    /// For every vertex, the first vertex of those that are in line with it.
    fn blocks(&self) -> Vec<usize> {
        let mut blocks: Vec<usize> = (0..self.extents.len()).collect();
        let count = self.order.rows.len();
        for step in 1..count {
            let row = if self.forward { step } else { count - 1 - step };
            let row = self.row(&self.order.rows[row]);
            let mut partners: Vec<Option<usize>> = vec![None; row.len()];
            self.align(&row, &mut partners, true);
            self.align(&row, &mut partners, false);
            for (vertex, partner) in row.iter().zip(partners) {
                if let Some(partner) = partner {
                    blocks[*vertex] = blocks[partner];
                }
            }
        }
        blocks
    }

    /// Finds for the vertices of a layer a neighbour to be in line with, such that no two lines
    /// cross: for bends of trunks only, or for whatever has none yet.
    fn align(&self, row: &[usize], partners: &mut [Option<usize>], bends: bool) {
        // The first neighbour that a later vertex has already.
        let mut limits = vec![isize::MAX; row.len()];
        for at in (1..row.len()).rev() {
            limits[at - 1] = partners[at].map_or(limits[at], |partner| self.at(partner));
        }
        let mut last = isize::MIN;
        for (at, vertex) in row.iter().enumerate() {
            if let Some(partner) = partners[at] {
                last = self.at(partner);
                continue;
            }
            let free = |near: &usize| last < self.at(*near) && self.at(*near) < limits[at];
            partners[at] = self.medians(*vertex, bends).into_iter().flatten().find(free);
            if let Some(partner) = partners[at] {
                last = self.at(partner);
            }
        }
    }

    /// The neighbours that a vertex would like to be in line with.
    fn medians(&self, vertex: usize, bends: bool) -> [Option<usize>; 2] {
        let side = if self.forward { &self.layers.before } else { &self.layers.behind };
        let is_bend = |vertex: &usize| *vertex >= self.layers.bends;
        let near = side.of(vertex);
        if bends {
            let bend = near.iter().copied().find(|near| is_bend(&vertex) && is_bend(near));
            return [bend, None];
        }
        let mut near = near.to_vec();
        near.sort_by_key(|near| self.at(*near));
        match near.len() {
            0 => [None, None],
            count => [(count - 1) / 2, count / 2].map(|at| near.get(at).copied()),
        }
    }

    /// Places blocks as close together as the sizes of their vertices allow, given for every
    /// vertex the first of its block.
    fn compact(&self, blocks: &[usize]) -> Vec<f64> {
        let mut pairs = Vec::with_capacity(blocks.len());
        for row in &self.order.rows {
            for pair in self.row(row).windows(2) {
                let [one, other] = [0, 1].map(|at| self.extents[pair[at]]);
                let distance =
                    if self.down { one.below + other.above } else { one.above + other.below };
                pairs.push((blocks[pair[0]], blocks[pair[1]], distance));
            }
        }
        let numbered = || pairs.iter().enumerate();
        let after = Neighbours::new(blocks.len(), numbered().map(|(at, pair)| (pair.0, at)));
        let mut awaited = vec![0_usize; blocks.len()];
        for (_, pair) in numbered() {
            awaited[pair.1] += 1;
        }
        let mut places = vec![0.0_f64; blocks.len()];
        let mut sorted: Vec<usize> =
            (0..blocks.len()).filter(|block| awaited[*block] == 0).collect();
        let mut next = 0;
        while let Some(&block) = sorted.get(next) {
            next += 1;
            for pair in after.of(block) {
                let (_, other, distance) = pairs[*pair];
                places[other] = places[other].max(places[block] + distance);
                awaited[other] -= 1;
                if awaited[other] == 0 {
                    sorted.push(other);
                }
            }
        }
        debug_assert_eq!(sorted.len(), blocks.len(), "lines do not cross");
        for block in sorted.into_iter().rev() {
            let room = after.of(block).iter().map(|pair| places[pairs[*pair].1] - pairs[*pair].2);
            let room = room.fold(f64::INFINITY, f64::min);
            if room.is_finite() {
                places[block] = places[block].max(room);
            }
        }
        places
    }
}
