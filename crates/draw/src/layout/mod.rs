//! The places of everything in a picture: boxes, labels and lines, from left to right.
//!
//! A layer is as wide as the widest thing in it, and inside a layer every line is horizontal, in a
//! place of its own; lines bend only between layers. So no line runs through a box or a text, and
//! no two of those overlap; only in a drawing that is too large to look at may long arrows run
//! through boxes. Lengths are in pixels, and y grows downwards. Knows no format.

mod layers;
mod positions;

use self::layers::{Layers, Order};
pub(super) use self::positions::FramePart;
use self::positions::{Extent, Ports, frame_parts, make_room, middles, span};
use super::drawing::{Drawing, ShapeKind};
use super::style::{text_width, wrap};

/// The size of the characters in boxes.
pub(super) const BOX_FONT: f64 = 13.0;
/// The size of the characters on arrows.
pub(super) const LABEL_FONT: f64 = 11.0;
/// The height of a line of text, per size of its characters.
pub(super) const LEADING: f64 = 1.25;
/// The distance of a label's text from the line that it stands on, and from the text before it.
pub(super) const LIFT: f64 = 4.0;
/// The least length of the horizontal part before the end of an arrow.
pub(super) const TIP: f64 = 10.0;
/// The space around the whole picture.
pub(super) const MARGIN: f64 = 24.0;

/// A place in the picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// The distance from the left.
    pub(super) x: f64,
    /// The distance from the top.
    pub(super) y: f64,
}

/// A box and the text in it.
#[derive(Debug)]
pub(super) struct ShapeBox {
    /// Its upper left corner.
    pub(super) corner: Point,
    pub(super) width: f64,
    pub(super) height: f64,
    /// The lines of text in its middle.
    pub(super) lines: Vec<String>,
}

impl ShapeBox {
    /// Returns the point at which lines begin: behind the box, which covers them, regardless of the form of its side.
    fn start(&self, y: f64) -> Point {
        Point { x: self.middle(), y }
    }

    /// The distance of its middle from the left.
    fn middle(&self) -> f64 {
        self.corner.x + self.width / 2.0
    }
}

/// A way from point to point: straight if they are at the same height, else from horizontal to
/// horizontal.
pub(super) type Path = Vec<Point>;

/// An arrow and the text that stands on it.
#[derive(Debug)]
pub(super) struct Track {
    /// The way from where it leaves the trunk of its shape, or the shape, to its tip.
    pub(super) path: Path,
    /// The left end of the line that carries the text.
    pub(super) foot: Point,
    /// The lines of text.
    pub(super) lines: Vec<String>,
}

/// A picture of a drawing.
#[derive(Debug)]
pub(super) struct Layout {
    /// The size of the picture.
    pub(super) size: Point,
    /// The drawing's shapes.
    pub(super) boxes: Vec<ShapeBox>,
    /// The parts of the drawing's frames from left to right; empty for a frame that cannot be drawn.
    pub(super) frames: Vec<Vec<FramePart>>,
    /// A part that several arrows of a shape have in common, or a long one has.
    pub(super) trunks: Vec<Path>,
    /// The drawing's arrows.
    pub(super) tracks: Vec<Track>,
}

impl Layout {
    /// Finds a place for everything in a drawing.
    pub(super) fn new(drawing: &Drawing) -> Self {
        let layers = Layers::new(drawing);
        let mut sizes = Sizes::new(drawing, &layers);
        make_room(drawing, &mut sizes);
        let order = Order::new(&layers);
        let mut ys = middles(&layers, &order, &sizes.extents);
        let (top, bottom) = span(&ys, &sizes.extents);
        for y in &mut ys {
            *y += MARGIN - top;
        }
        let height = (bottom - top).max(0.0) + 2.0 * MARGIN;
        let ports = Ports::new(drawing, &layers, &sizes, &ys);
        let columns = columns(&layers, &sizes, &ports, &ys);
        let lines = std::mem::take(&mut sizes.lines);
        let right = columns.last().map_or(MARGIN, |column| column.right);
        let draft = LayoutDraft { drawing, layers, sizes, ys, ports, columns };
        let size = Point { x: right + MARGIN, y: height };
        draft.layout(lines, size)
    }
}

/// The left and the right end of a layer.
#[derive(Clone, Copy, Debug)]
struct Column {
    left: f64,
    right: f64,
}

/// Places the layers: the higher lines climb between two of them, the farther they are apart.
fn columns(layers: &Layers, sizes: &Sizes, ports: &Ports, ys: &[f64]) -> Vec<Column> {
    let count = layers.layers.iter().max().map_or(0, |last| last + 1);
    let (mut widths, mut climbs) = (vec![0.0_f64; count], vec![0.0_f64; count]);
    for (vertex, layer) in layers.layers.iter().enumerate() {
        widths[*layer] = widths[*layer].max(sizes.widths[vertex]);
        if vertex >= layers.labels {
            climbs[layer - 1] = climbs[layer - 1].max((ports.starts[vertex] - ys[vertex]).abs());
        }
    }
    for (arrow, tip) in ports.tips.iter().enumerate() {
        let label = layers.labels + arrow;
        let climb = &mut climbs[layers.layers[label]];
        *climb = climb.max((ys[label] - tip).abs());
    }
    let mut left = MARGIN;
    let mut columns = Vec::with_capacity(count);
    for (width, climb) in widths.iter().zip(&climbs) {
        let right = left + width;
        columns.push(Column { left, right });
        left = right + (26.0 + 0.2 * climb).clamp(34.0, 240.0);
    }
    columns
}

/// All that is known before the picture is put together.
struct LayoutDraft<'a> {
    drawing: &'a Drawing,
    layers: Layers,
    sizes: Sizes,
    ys: Vec<f64>,
    ports: Ports,
    columns: Vec<Column>,
}

impl LayoutDraft<'_> {
    fn layout(&self, lines: Vec<Vec<String>>, size: Point) -> Layout {
        let mut lines = lines.into_iter();
        let boxes: Vec<ShapeBox> = (0..self.layers.labels)
            .zip(&mut lines)
            .map(|(shape, lines)| self.frame(shape, lines))
            .collect();
        let trunks = boxes.iter().enumerate();
        let trunks = trunks.filter_map(|(shape, frame)| self.trunk(shape, frame)).collect();
        let tracks = lines.enumerate();
        let tracks = tracks.map(|(arrow, lines)| self.track(arrow, lines, &boxes)).collect();
        let frames = frame_parts(self.drawing, &boxes);
        Layout { size, boxes, frames, trunks, tracks }
    }

    fn column(&self, vertex: usize) -> Column {
        self.columns[self.layers.layers[vertex]]
    }

    fn frame(&self, shape: usize, lines: Vec<String>) -> ShapeBox {
        let Column { left, right } = self.column(shape);
        let (width, half) = (self.sizes.widths[shape], self.sizes.half(shape));
        ShapeBox {
            corner: Point { x: (left + right - width) / 2.0, y: self.ys[shape] - half },
            width,
            height: 2.0 * half,
            lines,
        }
    }

    /// Goes on from one vertex to another, and through the layer of the latter.
    fn go(&self, path: &mut Path, from: usize, to: usize) {
        let column = self.column(to);
        let steps = [
            (self.column(from).right, self.ports.starts[to]),
            (column.left, self.ys[to]),
            (column.right, self.ys[to]),
        ];
        for (x, y) in steps {
            let point = Point { x, y };
            if path.last() != Some(&point) {
                path.push(point);
            }
        }
    }

    fn trunk(&self, shape: usize, frame: &ShapeBox) -> Option<Path> {
        let bends = self.layers.trunks[shape].clone();
        if bends.is_empty() {
            return None;
        }
        let mut path = vec![frame.start(self.ports.starts[bends.start])];
        let mut from = shape;
        for bend in bends {
            self.go(&mut path, from, bend);
            from = bend;
        }
        Some(path)
    }

    fn track(&self, arrow: usize, lines: Vec<String>, frames: &[ShapeBox]) -> Track {
        let (label, to) = (self.layers.labels + arrow, self.drawing.arrows[arrow].to);
        let from = self.layers.joins[arrow];
        let mut path = Vec::with_capacity(6);
        if let Some(frame) = frames.get(from) {
            path.push(frame.start(self.ports.starts[label]));
        }
        self.go(&mut path, from, label);
        let y = self.ports.tips[arrow];
        for x in [self.column(to).left - TIP, frames[to].corner.x] {
            path.push(Point { x, y });
        }
        let foot = Point { x: self.column(label).left + LIFT, y: self.ys[label] };
        Track { path, foot, lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing::{Arrow, Shape};

    fn drawing(shapes: usize, arrows: impl Iterator<Item = (usize, usize)>) -> Drawing {
        let labels = ["", "input", "first, second : two inputs of many [this, that]"];
        let mut drawing = Drawing::default();
        for at in 0..shapes {
            drawing.shapes.push(Shape {
                kind: ShapeKind::Computation,
                label: format!("shape {at}"),
                state: None,
                files: Vec::new(),
                many: None,
                calls: Vec::new(),
            });
        }
        for ((from, to), label) in arrows.zip(labels.into_iter().cycle()) {
            drawing.arrows.push(Arrow { from, to, label: label.to_owned() });
        }
        drawing
    }

    /// Every shape reads two that stand anywhere before it.
    fn tangle(shapes: usize) -> Drawing {
        let mut state = 1_usize;
        let mut random = move |below: usize| {
            state = (state * 1_103_515_245 + 12_345) % (1 << 31);
            (state >> 8) % below
        };
        let arrows: Vec<(usize, usize)> =
            (1..shapes).flat_map(|to| [(random(to), to), (random(to), to)]).collect();
        drawing(shapes, arrows.into_iter())
    }

    /// The corners of everything that must not be drawn over: boxes, and texts with their lines.
    fn areas(layout: &Layout) -> Vec<[Point; 2]> {
        let mut areas = Vec::new();
        for frame in &layout.boxes {
            let Point { x, y } = frame.corner;
            let end = Point { x: x + frame.width, y: y + frame.height };
            areas.push([frame.corner, end]);
        }
        for track in &layout.tracks {
            let Point { x, y } = track.foot;
            let height = LIFT + track.lines.len() as f64 * LABEL_FONT * LEADING;
            let columns = track.lines.iter().map(|line| line.chars().count()).max();
            let width = columns.unwrap_or(0) as f64 * LABEL_FONT * 0.6;
            areas.push([Point { x, y: y - height }, Point { x: x + width, y }]);
        }
        areas
    }

    fn check(layout: &Layout) {
        let areas = areas(layout);
        for (at, [corner, end]) in areas.iter().enumerate() {
            assert!(corner.x >= MARGIN && end.x <= layout.size.x - MARGIN + 0.1, "{at}");
            assert!(corner.y >= MARGIN && end.y <= layout.size.y - MARGIN + 0.1, "{at}");
            for [other_corner, other_end] in &areas[..at] {
                let beside = end.x <= other_corner.x || other_end.x <= corner.x;
                let above = end.y <= other_corner.y || other_end.y <= corner.y;
                assert!(beside || above, "{corner:?} {other_corner:?}");
            }
        }
        let paths = layout.trunks.iter().chain(layout.tracks.iter().map(|track| &track.path));
        // The first line begins, and the last ends, at a box; between them, lines keep away from boxes.
        for line in paths.flat_map(|path| path.windows(2).skip(1)) {
            let [from, to] = [line[0], line[1]];
            if (from.y - to.y).abs() >= 0.01 {
                continue;
            }
            for frame in &layout.boxes {
                let (left, right) = (frame.corner.x, frame.corner.x + frame.width);
                let inside = from.y > frame.corner.y && from.y < frame.corner.y + frame.height;
                assert!(!inside || to.x < left + 0.1 || from.x > right - 0.1, "{line:?} {frame:?}");
            }
        }
    }

    #[test]
    fn nothing_overlaps() {
        for shapes in [2, 3, 10, 60, 150] {
            check(&Layout::new(&tangle(shapes)));
        }
        let several = [(0, 2), (0, 2), (1, 2), (0, 2), (0, 3), (2, 3)];
        check(&Layout::new(&drawing(4, several.into_iter())));
        check(&Layout::new(&drawing(5, [(0, 1), (2, 3)].into_iter())));
    }

    #[test]
    fn the_same_drawing_has_the_same_layout() {
        let [one, other] = [0, 1].map(|_| format!("{:?}", Layout::new(&tangle(100))));
        assert_eq!(one, other);
    }

    #[test]
    fn a_chain_is_straight() {
        let layout = Layout::new(&drawing(9, (1..9).map(|to| (to - 1, to))));
        let middle = layout.boxes[0].corner.y + layout.boxes[0].height / 2.0;
        let mut points = layout.tracks.iter().flat_map(|track| &track.path);
        assert!(points.all(|point| (point.y - middle).abs() < 0.01));
    }

    #[test]
    fn inputs_of_one_source_stand_in_order() {
        let layout = Layout::new(&drawing(2, (0..20).map(|_| (0, 1))));
        let feet: Vec<f64> = layout.tracks.iter().map(|track| track.foot.y).collect();
        assert!(feet.is_sorted(), "{feet:?}");
    }

    #[test]
    fn no_drawing_is_too_large() {
        let chain = drawing(5_001, (1..5_001).flat_map(|to| [(to - 1, to), (0, to)]));
        assert_eq!(Layout::new(&chain).boxes.len(), 5_001);
        let fan = (0..5_000).map(|input| (input, 5_000 + input / 100));
        let fan = drawing(5_051, fan.chain((5_000..5_050).map(|call| (call, 5_050))));
        assert_eq!(Layout::new(&fan).tracks.len(), 5_050);
        // A trunk for each of these would need a million bends.
        let comb = (1..2_000).flat_map(|to| [(to - 1, to), (to / 2, to)]);
        assert_eq!(Layout::new(&drawing(2_000, comb)).trunks.len(), 0);
        assert_eq!(Layout::new(&tangle(1_000)).boxes.len(), 1_000);
        assert_eq!(Layout::new(&drawing(1, std::iter::empty())).boxes.len(), 1);
        assert_eq!(Layout::new(&Drawing::default()).size, Point { x: 48.0, y: 48.0 });
    }
}

/// The width of a column, per size of the characters, as in the widest usual font.
pub(super) const COLUMN: f64 = 0.615;
/// The columns and lines that the text of a box may have.
const BOX_TEXT: (usize, usize) = (32, 6);
/// The columns and lines that the text on an arrow may have.
const LABEL_TEXT: (usize, usize) = (30, 4);
/// The space between boxes, half of it on either side.
const BOX_GAP: f64 = 9.0;
/// The distance of the lines of a trunk from everything.
const BEND_GAP: f64 = 6.0;
/// The distance between arrows that end at the same box.
const PORT: f64 = 11.0;

/// The room that every vertex takes, and the text of shapes and arrows.
#[derive(Debug)]
struct Sizes {
    /// The lines of text of every shape, then of every arrow.
    lines: Vec<Vec<String>>,
    /// The room from left to right.
    widths: Vec<f64>,
    /// The room up and down, with the space that is to be left free.
    extents: Vec<Extent>,
    /// Half the height of every shape's box.
    halves: Vec<f64>,
}

impl Sizes {
    /// Estimates the memory and the time that a drawing needs.
    fn new(drawing: &Drawing, layers: &Layers) -> Self {
        let count = layers.layers.len();
        let mut sizes = Self {
            lines: Vec::with_capacity(layers.bends),
            widths: Vec::with_capacity(count),
            extents: Vec::with_capacity(count),
            halves: Vec::with_capacity(drawing.shapes.len()),
        };
        let mut arrivals = vec![0_usize; drawing.shapes.len()];
        for arrow in &drawing.arrows {
            arrivals[arrow.to] += 1;
        }
        for (shape, arrivals) in drawing.shapes.iter().zip(arrivals) {
            sizes.add_box(shape.kind, &shape.label, arrivals);
        }
        for arrow in &drawing.arrows {
            sizes.add_label(&arrow.label);
        }
        sizes.widths.resize(count, 0.0);
        let (above, below) = (BEND_GAP, BEND_GAP);
        sizes.extents.resize(count, Extent { above, below });
        sizes
    }

    /// Half the height of a shape's box.
    fn half(&self, shape: usize) -> f64 {
        self.halves[shape]
    }

    fn add_box(&mut self, kind: ShapeKind, label: &str, arrivals: usize) {
        let lines = wrap(label, BOX_TEXT.0, BOX_TEXT.1);
        let height = lines.len() as f64 * BOX_FONT * LEADING + 16.0;
        let half = height.max(arrivals as f64 * PORT + 8.0) / 2.0 + BOX_GAP;
        let sides = match kind {
            ShapeKind::Computation => 24.0,
            ShapeKind::Input | ShapeKind::Literal | ShapeKind::Output => 32.0,
        };
        self.widths.push(width(&lines, BOX_FONT) + sides);
        self.extents.push(Extent { above: half, below: half });
        self.halves.push(half - BOX_GAP);
        self.lines.push(lines);
    }

    fn add_label(&mut self, label: &str) {
        let lines = wrap(label, LABEL_TEXT.0, LABEL_TEXT.1);
        let height = lines.len() as f64 * LABEL_FONT * LEADING;
        self.widths.push(width(&lines, LABEL_FONT) + 2.0 * LIFT);
        self.extents.push(Extent { above: height + 2.0 * LIFT, below: LIFT });
        self.lines.push(lines);
    }
}

/// The width of a text.
fn width(lines: &[String], font: f64) -> f64 {
    let columns = lines.iter().map(|line| text_width(line)).max();
    columns.unwrap_or(0) as f64 * font * COLUMN
}
