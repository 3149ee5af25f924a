//! Escaping, states, cut texts and paths.

use super::*;
use crate::draw::{Arrow, ShapeCount, ShapeState};

fn svg(drawing: &Drawing) -> String {
    let mut svg = Vec::new();
    drawing.svg(&mut svg).unwrap();
    String::from_utf8(svg).unwrap()
}

fn shape(kind: ShapeKind, label: &str, state: Option<ShapeState>) -> Shape {
    Shape {
        kind,
        label: label.to_owned(),
        state,
        files: state.map(|_| "S/a&b".to_owned()).into_iter().collect(),
        many: None,
        calls: Vec::new(),
    }
}

fn arrow(label: &str) -> Arrow {
    Arrow { from: 0, to: 1, label: label.to_owned() }
}

#[test]
fn text_stays_text() {
    let text = "<b>&amp;\"\u{1}\u{ffff}計";
    assert_eq!(Escaped(text).to_string(), "&lt;b&gt;&amp;amp;&quot;計");
    assert_eq!(Escaped("a\u{202e}b\u{2066}").to_string(), "a\u{fffd}b\u{fffd}");
    let drawing = Drawing {
        shapes: vec![
            shape(ShapeKind::Literal, "FILE <x>", None),
            shape(ShapeKind::Computation, "c\u{0}", None),
        ],
        arrows: vec![arrow("a < b")],
        frames: Vec::new(),
    };
    let svg = svg(&drawing);
    assert!(svg.contains(">FILE &lt;x&gt;</text>"), "{svg}");
    assert!(svg.contains(">c</text>"), "{svg}");
    assert!(svg.contains(">a &lt; b</text>"), "{svg}");
    assert!(!svg.contains("storage"), "{svg}");
}

#[test]
fn what_is_missing_is_dashed_and_files_are_told() {
    let drawing = Drawing {
        shapes: vec![
            shape(ShapeKind::Input, "INPUT x", Some(ShapeState::There)),
            shape(ShapeKind::Output, "OUTPUT y", Some(ShapeState::Missing)),
        ],
        arrows: vec![arrow("")],
        frames: Vec::new(),
    };
    let svg = svg(&drawing);
    assert!(svg.contains("<title>INPUT x\nS/a&amp;b</title>"), "{svg}");
    // The shape, and the legend.
    assert_eq!(svg.matches("stroke-dasharray").count(), 2, "{svg}");
    assert!(svg.contains(">not in the storage</text>"), "{svg}");
}

#[test]
fn a_long_text_is_cut_and_told_in_full() {
    let label = "word ".repeat(60);
    let drawing = Drawing {
        shapes: vec![shape(ShapeKind::Input, "x", None), shape(ShapeKind::Computation, "c", None)],
        arrows: vec![arrow(&label)],
        frames: Vec::new(),
    };
    let svg = svg(&drawing);
    assert!(svg.contains(&format!("<title>{label}</title>")), "{svg}");
    assert!(svg.contains("word…</text>"), "{svg}");
}

#[test]
fn a_path_is_lines_and_curves() {
    let points = [(0.0, 1.0), (5.0, 1.0), (9.0, 3.0)].map(|(x, y)| Point { x, y });
    let path = "M0.0 1.0H5.0C7.0 1.0 7.0 3.0 9.0 3.0";
    assert_eq!(Curve(&points).to_string(), path);
}

#[test]
fn the_shape_behind_another_one_has_its_form() {
    let mut input = shape(ShapeKind::Input, "INPUT x", None);
    input.many = Some(ShapeCount { calls: 2, there: 0 });
    let drawing = Drawing { shapes: vec![input], ..Drawing::default() };
    let svg = svg(&drawing);
    let input = svg.lines().find(|line| line.contains("<title>INPUT x")).unwrap();
    assert_eq!(input.matches("rx=\"16.0\"").count(), 2, "{input}");
}

#[test]
fn a_part_of_many_calls_is_a_part_of_the_box() {
    let mut body =
        shape(ShapeKind::Computation, "bench: 1 of 4 calls", Some(ShapeState::Partly(250)));
    body.many = Some(ShapeCount { calls: 4, there: 1 });
    body.files.clear();
    let drawing = Drawing {
        shapes: vec![body, shape(ShapeKind::Output, "OUTPUT", Some(ShapeState::Missing))],
        arrows: vec![arrow("")],
        frames: vec![BodyFrame {
            label: "scaling: 4 points".to_owned(),
            shapes: vec![0],
            parent: None,
        }],
    };
    let svg = svg(&drawing);
    assert!(svg.contains(">scaling: 4 points</text>"), "{svg}");
    // The shape and the one behind it, the output, and the legend.
    assert_eq!(svg.matches("stroke-dasharray").count(), 4, "{svg}");
    let width = |after: &str| -> f64 {
        let rest = svg.split(after).nth(1).unwrap();
        let rest = rest.split("width=\"").nth(1).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    let part: Vec<&str> = svg.lines().filter(|it| it.contains("bench")).collect();
    let part = part[0].split("<rect").nth(3).unwrap();
    assert!(part.contains("fill=\"#d5e6f5\"") && !part.contains("stroke"), "{part}");
    let whole = width("<title>bench: 1 of 4 calls");
    let own: f64 =
        part.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    assert!((own / whole - 0.25).abs() < 0.01, "{own} {whole}");
}

#[test]
fn a_page_knows_its_shapes_by_their_numbers() {
    let state = Some(ShapeState::Missing);
    let drawing = Drawing {
        shapes: vec![shape(ShapeKind::Input, "x", state), shape(ShapeKind::Output, "y", state)],
        arrows: vec![arrow("")],
        frames: Vec::new(),
    };
    let mut text = Vec::new();
    drawing.svg_for_page(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    for (number, label) in [(0, "x"), (1, "y")] {
        assert!(text.contains(&format!("<g data-shape=\"{number}\"><title>{label}\n")), "{text}");
    }
    assert!(!text.contains("in the storage"), "{text}");
}
