//! Positions along a layer: of vertices, of the ports where lines touch boxes, and of the frames around bodies.
//!
//! Vertices have the positions of Brandes and Köpf: vertices are put in line where possible, in four ways, each as close
//! together as sizes allow, and everything stands in the middle of its four positions. Trunks are put in line first, so
//! long arrows are straight. The order in the layers is kept and nothing overlaps.
//!
//! Lines leave and reach a box in the order of where they come from or go to, so they do not cross
//! there, and straight on if they can.
//!
//! A frame is as high as its shapes in each column, so other shapes may stand above and below it. Shapes in frames have
//! room for the lines of these. A frame is not drawn where another shape stands between its shapes.

use super::layers::{Layers, Neighbours, Order};
use super::{PORT, Point, ShapeBox, Sizes};
use crate::drawing::Drawing;

/// The room that a vertex takes along its layer, on both sides of its middle.
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
    let shortest = spans.iter().min_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)));
    let (top, bottom) = shortest.copied().unwrap_or_default();
    for ((places, (_, down)), (own_top, own_bottom)) in places.iter_mut().zip(ways).zip(spans) {
        let shift = if down { top - own_top } else { bottom - own_bottom };
        for place in places {
            *place += shift;
        }
    }
    let mut middles = Vec::with_capacity(extents.len());
    for vertex in 0..extents.len() {
        let mut four = places.each_ref().map(|places| places[vertex]);
        four.sort_by(f64::total_cmp);
        middles.push((four[1] + four[2]) / 2.0);
    }
    middles
}

/// Returns the beginning of the first room, and the end of the last one.
pub(super) fn span(middles: &[f64], extents: &[Extent]) -> (f64, f64) {
    let rooms = middles.iter().zip(extents);
    let rooms = rooms.map(|(y, extent)| (y - extent.above, y + extent.below));
    let nothing = (f64::INFINITY, f64::NEG_INFINITY);
    rooms.fold(nothing, |all, room| (all.0.min(room.0), all.1.max(room.1)))
}

/// One of the four ways to place everything: in line with the layer before, or behind, and as far up as possible, or down.
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
    /// cross: for bends of trunks only, or for all that have none yet.
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
            let mut medians = self.medians(*vertex, bends).into_iter().flatten();
            partners[at] =
                medians.find(|near| last < self.at(*near) && self.at(*near) < limits[at]);
            if let Some(partner) = partners[at] {
                last = self.at(partner);
            }
        }
    }

    /// The neighbours that a vertex would like to be in line with.
    fn medians(&self, vertex: usize, bends: bool) -> [Option<usize>; 2] {
        let side = if self.forward { &self.layers.before } else { &self.layers.behind };
        let near = side.list_for(vertex);
        if bends {
            let bend = near.iter().copied().find(|near| vertex.min(*near) >= self.layers.bends);
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
        let numbered = pairs.iter().enumerate();
        let after = Neighbours::new(blocks.len(), numbered.map(|(at, pair)| (pair.0, at)));
        let mut awaited = vec![0_usize; blocks.len()];
        for pair in &pairs {
            awaited[pair.1] += 1;
        }
        let mut places = vec![0.0_f64; blocks.len()];
        let mut sorted: Vec<usize> =
            (0..blocks.len()).filter(|block| awaited[*block] == 0).collect();
        let mut next = 0;
        while let Some(&block) = sorted.get(next) {
            next += 1;
            for pair in after.list_for(block) {
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
            let room =
                after.list_for(block).iter().map(|pair| places[pairs[*pair].1] - pairs[*pair].2);
            let room = room.fold(f64::INFINITY, f64::min);
            if room.is_finite() {
                places[block] = places[block].max(room);
            }
        }
        places
    }
}

/// The distance of lines from the corners of a box.
const CORNER: f64 = 6.0;
/// Lines that would leave a box closer to each other than this leave it as one line.
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

/// The space between a frame and the shapes or frames in it.
const PAD: f64 = 7.0;

/// The room for its label.
const HEAD: f64 = 13.0;

/// The distance of a step from the shapes behind it: arrows have their tips there.
const BEND: f64 = 6.0;

/// The least height at which two columns of a frame meet.
const NECK: f64 = 16.0;

/// A part of a frame, around the shapes in one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FramePart {
    /// The upper left corner.
    pub(crate) from: Point,
    /// The lower right corner.
    pub(crate) to: Point,
}

impl FramePart {
    fn around(shape: &ShapeBox) -> Self {
        let Point { x, y } = shape.corner;
        Self { from: shape.corner, to: Point { x: x + shape.width, y: y + shape.height } }
    }

    fn and(self, other: Self) -> Self {
        let (from, to) = (self.from, self.to);
        Self {
            from: Point { x: from.x.min(other.from.x), y: from.y.min(other.from.y) },
            to: Point { x: to.x.max(other.to.x), y: to.y.max(other.to.y) },
        }
    }

    fn meets(&self, other: &Self) -> bool {
        self.from.x < other.to.x
            && other.from.x < self.to.x
            && self.from.y < other.to.y
            && other.from.y < self.to.y
    }
}

/// Returns the height of each frame: the number of frames within it, one in another, and itself.
fn heights(drawing: &Drawing) -> Vec<usize> {
    let mut heights = vec![1; drawing.frames.len()];
    // Those within a frame come before it.
    for (at, frame) in drawing.frames.iter().enumerate() {
        if let Some(parent) = frame.parent {
            heights[parent] = heights[parent].max(heights[at] + 1);
        }
    }
    heights
}

/// Makes room around the shapes in frames.
pub(super) fn make_room(drawing: &Drawing, sizes: &mut Sizes) {
    let heights = heights(drawing);
    let mut outermost: Vec<usize> = (0..heights.len()).collect();
    for at in (0..heights.len()).rev() {
        if let Some(parent) = drawing.frames[at].parent {
            outermost[at] = outermost[parent];
        }
    }
    for (at, frame) in drawing.frames.iter().enumerate() {
        let height = heights[outermost[at]] as f64;
        for shape in &frame.shapes {
            sizes.extents[*shape].above += height * (PAD + HEAD);
            sizes.extents[*shape].below += height * PAD;
        }
    }
}

/// Returns the parts of each frame from left to right; none where another shape stands between those in it.
pub(super) fn frame_parts(drawing: &Drawing, boxes: &[ShapeBox]) -> Vec<Vec<FramePart>> {
    let heights = heights(drawing);
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); heights.len()];
    let mut places = Vec::with_capacity(heights.len());
    for (at, frame) in drawing.frames.iter().enumerate() {
        members[at].extend(&frame.shapes);
        members[at].sort_unstable();
        let own = &members[at];
        let parts = parts(own.iter().map(|shape| &boxes[*shape]), heights[at] as f64);
        let mut others = boxes.iter().enumerate().filter(|(at, _)| own.binary_search(at).is_err());
        let is_free = others.all(|(_, shape)| {
            let shape = FramePart::around(shape);
            !parts.iter().any(|part| part.meets(&shape))
        });
        places.push(if is_free { parts } else { Vec::new() });
        if let Some(parent) = frame.parent {
            let within = std::mem::take(&mut members[at]);
            members[parent].extend(within);
        }
    }
    places
}

/// The parts of a frame around these shapes, with frames of this height.
fn parts<'a>(shapes: impl Iterator<Item = &'a ShapeBox>, height: f64) -> Vec<FramePart> {
    let mut shapes: Vec<&ShapeBox> = shapes.collect();
    shapes.sort_by(|a, b| a.middle().total_cmp(&b.middle()));
    let mut parts: Vec<FramePart> = Vec::new();
    let mut last = f64::NEG_INFINITY;
    for shape in shapes {
        let around = FramePart::around(shape);
        match parts.last_mut().filter(|_| shape.middle() - last < 1.0) {
            Some(part) => *part = part.and(around),
            None => parts.push(around),
        }
        last = shape.middle();
    }
    for part in &mut parts {
        part.from = Point { x: part.from.x - height * PAD, y: part.from.y - height * (PAD + HEAD) };
        part.to = Point { x: part.to.x + height * PAD, y: part.to.y + height * PAD };
    }
    for at in 1..parts.len() {
        let (before, behind) = parts.split_at_mut(at);
        let (Some(left), Some(right)) = (before.last_mut(), behind.first_mut()) else { continue };
        // The part that is less high grows until the two meet.
        right.from.y = right.from.y.min(left.to.y - NECK);
        right.to.y = right.to.y.max(left.from.y + NECK);
        // The border between them is where arrows bend, and no label is.
        let border = (right.from.x - BEND).max(left.to.x);
        (left.to.x, right.from.x) = (border, border);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BodyFrame;

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
        assert!(ports.windows(2).all(|pair| pair[1] - pair[0] > 7.9), "{ports:?}");
    }

    fn shape(x: f64, y: f64) -> ShapeBox {
        ShapeBox { corner: Point { x, y }, width: 50.0, height: 20.0, lines: Vec::new() }
    }

    fn frame(shapes: &[usize], parent: Option<usize>) -> BodyFrame {
        BodyFrame { label: String::new(), shapes: shapes.to_vec(), parent }
    }

    fn found(frames: Vec<BodyFrame>, shapes: &[(f64, f64)]) -> Vec<Vec<FramePart>> {
        let boxes: Vec<_> = shapes.iter().map(|(x, y)| shape(*x, *y)).collect();
        frame_parts(&Drawing { frames, ..Drawing::default() }, &boxes)
    }

    fn part(from: (f64, f64), to: (f64, f64)) -> FramePart {
        FramePart { from: Point { x: from.0, y: from.1 }, to: Point { x: to.0, y: to.1 } }
    }

    #[test]
    fn a_frame_is_around_its_shapes_and_the_frames_in_it() {
        let frames = vec![frame(&[0], Some(1)), frame(&[1], None)];
        let places = found(frames, &[(100.0, 100.0), (200.0, 100.0), (200.0, 20.0)]);
        let [inner, outer] = &places[..] else { panic!("{places:?}") };
        assert_eq!(*inner, [part((93.0, 80.0), (157.0, 127.0))]);
        let both = [part((86.0, 60.0), (180.0, 134.0)), part((180.0, 60.0), (264.0, 134.0))];
        assert_eq!(*outer, both);
    }

    #[test]
    fn frames_of_columns_at_different_heights_meet() {
        let places = found(vec![frame(&[0, 1], None)], &[(100.0, 300.0), (200.0, 100.0)]);
        let [left, right] = &places[0][..] else { panic!("{places:?}") };
        assert_eq!((left.from.y, right.to.y), (280.0, 296.0));
    }

    #[test]
    fn a_frame_that_would_enclose_other_nodes_is_not_drawn() {
        let places =
            found(vec![frame(&[0, 2], None)], &[(100.0, 100.0), (100.0, 150.0), (100.0, 200.0)]);
        assert_eq!(places, [[]]);
    }
}
