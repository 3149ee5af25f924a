//! Where the frames of bodies stand: around their shapes, column by column.
//!
//! A frame is as high as its shapes in each column, so other shapes may stand above and below it. Shapes in frames have
//! room for the lines of these. There is no frame where another shape stands between those in it.

use super::sizes::Sizes;
use super::{Point, ShapeBox};
use crate::export::drawing::Drawing;

/// The space between a frame and what is in it, shapes or frames.
const PAD: f64 = 7.0;

/// The room for its label.
const HEAD: f64 = 13.0;

/// The distance of a step from the shapes behind it: arrows have their tips there.
const BEND: f64 = 6.0;

/// The least height at which two columns of a frame meet.
const NECK: f64 = 16.0;

/// A part of a frame, around the shapes in one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::export) struct FramePart {
    /// The upper left corner.
    pub(in crate::export) from: Point,
    /// The lower right corner.
    pub(in crate::export) to: Point,
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

/// How many frames are within each frame, one in another, and itself.
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
pub(super) fn places(drawing: &Drawing, boxes: &[ShapeBox]) -> Vec<Vec<FramePart>> {
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
    let middle = |it: &ShapeBox| it.corner.x + it.width / 2.0;
    let mut shapes: Vec<&ShapeBox> = shapes.collect();
    shapes.sort_by(|a, b| middle(a).total_cmp(&middle(b)));
    let mut parts: Vec<FramePart> = Vec::new();
    let mut last = f64::NEG_INFINITY;
    for shape in shapes {
        let around = FramePart::around(shape);
        match parts.last_mut().filter(|_| middle(shape) - last < 1.0) {
            Some(part) => *part = part.and(around),
            None => parts.push(around),
        }
        last = middle(shape);
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
    use crate::export::BodyFrame;

    fn shape(x: f64, y: f64) -> ShapeBox {
        ShapeBox { corner: Point { x, y }, width: 50.0, height: 20.0, lines: Vec::new() }
    }

    fn frame(shapes: &[usize], parent: Option<usize>) -> BodyFrame {
        BodyFrame { label: String::new(), shapes: shapes.to_vec(), parent }
    }

    fn found(frames: Vec<BodyFrame>, shapes: &[(f64, f64)]) -> Vec<Vec<FramePart>> {
        let boxes: Vec<_> = shapes.iter().map(|(x, y)| shape(*x, *y)).collect();
        places(&Drawing { frames, ..Drawing::default() }, &boxes)
    }

    #[test]
    fn a_frame_is_around_its_shapes_and_the_frames_in_it() {
        let frames = vec![frame(&[0], Some(1)), frame(&[1], None)];
        let places = found(frames, &[(100.0, 100.0), (200.0, 100.0), (200.0, 20.0)]);
        let [inner, outer] = &places[..] else { panic!("{places:?}") };
        let part = |from: (f64, f64), to: (f64, f64)| FramePart {
            from: Point { x: from.0, y: from.1 },
            to: Point { x: to.0, y: to.1 },
        };
        assert_eq!(*inner, [part((93.0, 80.0), (157.0, 127.0))]);
        let both = [part((86.0, 60.0), (180.0, 134.0)), part((180.0, 60.0), (264.0, 134.0))];
        assert_eq!(*outer, both);
    }

    #[test]
    fn columns_at_different_heights_meet() {
        let places = found(vec![frame(&[0, 1], None)], &[(100.0, 300.0), (200.0, 100.0)]);
        let [left, right] = &places[0][..] else { panic!("{places:?}") };
        assert_eq!((left.from.y, right.to.y), (280.0, 296.0));
    }

    #[test]
    fn there_is_no_frame_around_what_is_not_in_it() {
        let places =
            found(vec![frame(&[0, 2], None)], &[(100.0, 100.0), (100.0, 150.0), (100.0, 200.0)]);
        assert_eq!(places, [[]]);
    }
}
