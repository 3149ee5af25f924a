//! The drawing of results that were made from each other, without the task.

use super::bodies::ShapeCount;
use super::drawing::{Arrow, Drawing, Shape, ShapeKind};
use super::state::ShapeState;
use ce_queries::page::{ResultArrow, ResultGraph, ResultShape, ResultShapeKind};

impl Drawing {
    /// Draws how results were made from each other, as their records have it.
    pub fn of_results(graph: &ResultGraph) -> Self {
        let arrow = |ResultArrow { from, to, label }: &ResultArrow| Arrow {
            from: *from,
            to: *to,
            label: label.clone(),
        };
        Self {
            shapes: graph.shapes.iter().map(shape).collect(),
            arrows: graph.arrows.iter().map(arrow).collect(),
            frames: Vec::new(),
        }
    }
}

fn shape(it: &ResultShape) -> Shape {
    let kind = match it.kind {
        ResultShapeKind::Input => ShapeKind::Input,
        ResultShapeKind::File => ShapeKind::Literal,
        ResultShapeKind::Made => ShapeKind::Computation,
        ResultShapeKind::Output => ShapeKind::Output,
    };
    let (calls, there) = (it.all, it.there);
    let state = match there {
        _ if there == calls => ShapeState::There,
        0 => ShapeState::Missing,
        _ => ShapeState::Partly((there * 1000 / calls) as u16),
    };
    Shape {
        kind,
        label: it.label.clone(),
        state: Some(state),
        files: Vec::new(),
        many: (calls > 1).then_some(ShapeCount { calls, there }),
        calls: Vec::new(),
    }
}
