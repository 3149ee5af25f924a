//! How much room everything in a picture takes.
//!
//! The estimates are safe: no text is wider than the room for it, in any usual font whose
//! characters are equally wide. Knows no places.

use super::layers::Layers;
use super::place::Extent;
use super::{BOX_FONT, LABEL_FONT, LEADING, LIFT};
use crate::export::drawing::{Drawing, ShapeKind};
use crate::export::text;

/// The width of a column, per size of the characters: that of the widest usual font.
pub(in crate::export) const COLUMN: f64 = 0.615;
/// The columns and lines that the text of a box may have.
const BOX_TEXT: (usize, usize) = (32, 6);
/// The columns and lines that the text on an arrow may have.
const LABEL_TEXT: (usize, usize) = (30, 4);
/// The space between boxes, half of it on either side.
const BOX_GAP: f64 = 9.0;
/// How far the lines of a trunk keep from everything.
const BEND_GAP: f64 = 6.0;
/// How far arrows that end at the same box are from each other.
pub(super) const PORT: f64 = 11.0;

/// The room that every vertex takes, and the text of shapes and arrows.
#[derive(Debug)]
pub(super) struct Sizes {
    /// The lines of text of every shape, then of every arrow.
    pub(super) lines: Vec<Vec<String>>,
    /// The room from left to right.
    pub(super) widths: Vec<f64>,
    /// The room up and down, with the space that is to be left free.
    pub(super) extents: Vec<Extent>,
    /// Half the height of every shape's box.
    halves: Vec<f64>,
}

impl Sizes {
    /// Estimates what a drawing needs.
    pub(super) fn new(drawing: &Drawing, layers: &Layers) -> Self {
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
    pub(super) fn half(&self, shape: usize) -> f64 {
        self.halves[shape]
    }

    fn add_box(&mut self, kind: ShapeKind, label: &str, arrivals: usize) {
        let lines = text::wrap(label, BOX_TEXT.0, BOX_TEXT.1);
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
        let lines = text::wrap(label, LABEL_TEXT.0, LABEL_TEXT.1);
        let height = lines.len() as f64 * LABEL_FONT * LEADING;
        self.widths.push(width(&lines, LABEL_FONT) + 2.0 * LIFT);
        self.extents.push(Extent { above: height + 2.0 * LIFT, below: LIFT });
        self.lines.push(lines);
    }
}

/// The width of a text.
fn width(lines: &[String], font: f64) -> f64 {
    let columns = lines.iter().map(|line| text::columns(line)).max();
    columns.unwrap_or(0) as f64 * font * COLUMN
}
