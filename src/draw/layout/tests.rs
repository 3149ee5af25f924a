//! Nothing overlaps, nothing is lost, and no drawing is too large.

use super::*;
use crate::draw::drawing::{Arrow, Shape};

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
