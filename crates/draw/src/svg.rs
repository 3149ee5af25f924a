//! A drawing as SVG: a picture that needs nothing else to be seen.
//!
//! It holds plain shapes and text only, no script, no style sheet and no reference, so it can be
//! put into a page or a paper as it is. Knows no colours and no places.
//!
//! A shape for many calls looks like several shapes, and its colour says how many of them are there.

use std::fmt;
use std::io::{self, Write};

use super::drawing::{BodyFrame, Drawing, Shape, ShapeKind};
use super::layout::{
    BOX_FONT, COLUMN, FramePart, LABEL_FONT, LEADING, LIFT, Layout, MARGIN, Path, Point, ShapeBox,
    TIP, Track,
};
use super::style::{
    ARROW, BOLD, FRAME, GROUND, INK, PAPER, ShapeStyle, THIN, legend_states, present_part,
    shape_style, shown, state_meaning, wrap,
};

/// Fonts whose characters are equally wide, so that the width of a text is known.
const FONTS: &str = "DejaVu Sans Mono, Menlo, Consolas, Liberation Mono, monospace";
/// The height of a picture's legend, and the width for each state.
const LEGEND: Point = Point { x: 160.0, y: 34.0 };

impl Drawing {
    /// Writes the drawing as an SVG document, in small pieces: `out` is best buffered.
    pub fn svg(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write(false, out)
    }

    /// Writes the same for a page: each shape has its number in an attribute `data-shape`, and there is no legend.
    pub fn svg_for_page(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write(true, out)
    }

    fn write(&self, for_page: bool, out: &mut dyn Write) -> io::Result<()> {
        let has_legend = self.has_states() && !for_page;
        let layout = Layout::new(self);
        let Point { x: mut width, y: mut height } = layout.size;
        if has_legend {
            width = width.max(LEGEND.x * legend_states(&self.shapes).count() as f64 + 70.0);
            height += LEGEND.y;
        }
        writeln!(
            out,
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" font-family="{FONTS}" fill="{INK}">"#
        )?;
        writeln!(out, r#"<rect width="{width:.0}" height="{height:.0}" fill="{PAPER}"/>"#)?;
        for (parts, frame) in layout.frames.iter().zip(&self.frames).rev() {
            body_frame(out, parts, frame)?;
        }
        writeln!(out, r#"<g fill="none" stroke="{ARROW}" stroke-width="{THIN}">"#)?;
        for trunk in &layout.trunks {
            writeln!(out, r#"<path d="{}"/>"#, Curve(trunk))?;
        }
        for track in &layout.tracks {
            arrow(out, &track.path)?;
        }
        writeln!(out, r#"</g><g font-size="{LABEL_FONT}">"#)?;
        for (track, arrow) in layout.tracks.iter().zip(&self.arrows) {
            label(out, track, &arrow.label)?;
        }
        writeln!(out, r#"</g><g font-size="{BOX_FONT}" text-anchor="middle">"#)?;
        for (at, (frame, of)) in layout.boxes.iter().zip(&self.shapes).enumerate() {
            match for_page {
                true => write!(out, r#"<g data-shape="{at}">"#)?,
                false => write!(out, "<g>")?,
            }
            shape(out, frame, of)?;
        }
        writeln!(out, "</g>")?;
        if has_legend {
            legend(out, &self.shapes, layout.size.y)?;
        }
        writeln!(out, "</svg>")
    }
}

/// A path in SVG's notation: lines, and curves that begin and end horizontally.
struct Curve<'a>(&'a [Point]);

impl fmt::Display for Curve<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Point { x, y }) = self.0.first() {
            write!(f, "M{x:.1} {y:.1}")?;
        }
        for pair in self.0.windows(2) {
            let (from, Point { x, y }) = (pair[0], pair[1]);
            if (from.y - y).abs() < 0.05 {
                write!(f, "H{x:.1}")?;
            } else {
                let half = (from.x + x) / 2.0;
                write!(f, "C{half:.1} {:.1} {half:.1} {y:.1} {x:.1} {y:.1}", from.y)?;
            }
        }
        Ok(())
    }
}

/// Writes an arrow's line and head.
fn arrow(out: &mut dyn Write, path: &Path) -> io::Result<()> {
    let Some((tip, way)) = path.split_last() else {
        return Ok(());
    };
    // The line ends inside the head, or its end would show at the tip.
    let end = Point { x: tip.x - TIP / 2.0, y: tip.y };
    let way = [way, &[end]].concat();
    let Point { x, y } = tip;
    writeln!(
        out,
        r#"<path d="{}"/><path d="M{x:.1} {y:.1}l-9 -4v8z" fill="{ARROW}" stroke="none"/>"#,
        Curve(&way)
    )
}

/// Writes the text on an arrow; its whole text is the title, which is shown to a user who points at it.
fn label(out: &mut dyn Write, track: &Track, whole: &str) -> io::Result<()> {
    if track.lines.is_empty() {
        return Ok(());
    }
    write!(out, "<g><title>{}</title>", Escaped(whole))?;
    let last = track.lines.len() - 1;
    for (at, line) in track.lines.iter().enumerate() {
        let up = LIFT + (last - at) as f64 * LABEL_FONT * LEADING;
        let Point { x, y } = track.foot;
        write!(out, r#"<text x="{x:.1}" y="{:.1}">{}</text>"#, y - up, Escaped(line))?;
    }
    writeln!(out, "</g>")
}

/// The outline of a frame in SVG's notation, with round corners.
struct Outline<'a>(&'a [FramePart]);

impl fmt::Display for Outline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let above = self.0.iter().flat_map(|it| [it.from, Point { x: it.to.x, y: it.from.y }]);
        let below = self.0.iter().rev().flat_map(|it| [it.to, Point { x: it.from.x, y: it.to.y }]);
        let mut corners: Vec<Point> = above.chain(below).collect();
        corners.dedup();
        for at in 0..corners.len() {
            let corner = corners[at];
            let before = corners[(at + corners.len() - 1) % corners.len()];
            let behind = corners[(at + 1) % corners.len()];
            let (from, to) = (curve_end(corner, before), curve_end(corner, behind));
            let word = if at == 0 { 'M' } else { 'L' };
            write!(f, "{word}{:.1} {:.1}", from.x, from.y)?;
            write!(f, "Q{:.1} {:.1} {:.1} {:.1}", corner.x, corner.y, to.x, to.y)?;
        }
        f.write_str("z")
    }
}

/// Returns the point on the way from a corner to another one where the curve around the first begins or ends.
fn curve_end(corner: Point, other: Point) -> Point {
    let (x, y) = (other.x - corner.x, other.y - corner.y);
    let radius = f64::min(8.0, (x.abs() + y.abs()) / 2.0);
    let length = (x.abs() + y.abs()).max(f64::MIN_POSITIVE);
    Point { x: corner.x + x / length * radius, y: corner.y + y / length * radius }
}

/// Writes the frame of a body, and its label.
fn body_frame(out: &mut dyn Write, parts: &[FramePart], frame: &BodyFrame) -> io::Result<()> {
    let [first, ..] = parts else { return Ok(()) };
    write!(out, "<g><title>{}</title>", Escaped(&frame.label))?;
    let fill = format!(r#"fill="{GROUND}" stroke="{FRAME}" stroke-width="{THIN}""#);
    write!(out, r#"<path d="{}" {fill}/>"#, Outline(parts))?;
    let room = (first.to.x - first.from.x - 2.0 * LIFT) / (LABEL_FONT * COLUMN);
    for text in wrap(&frame.label, (room as usize).max(2), 1) {
        let (x, y) = (first.from.x + LIFT, first.from.y + LABEL_FONT * LEADING);
        write!(
            out,
            r#"<text x="{x:.1}" y="{y:.1}" font-size="{LABEL_FONT}">{}</text>"#,
            Escaped(&text)
        )?;
    }
    writeln!(out, "</g>")
}

/// Writes a shape; its label and files are the title, which is shown to a user who points at it.
fn shape(out: &mut dyn Write, frame: &ShapeBox, shape: &Shape) -> io::Result<()> {
    write!(out, "<title>{}", Escaped(&shape.label))?;
    for file in &shape.files {
        write!(out, "\n{}", Escaped(file))?;
    }
    write!(out, "</title>")?;
    let Point { x, y } = frame.corner;
    let (w, h, border) = (frame.width, frame.height, Border(shape_style(shape.state)));
    let radius = match shape.kind {
        ShapeKind::Output | ShapeKind::Input => f64::min(16.0, h / 2.0),
        ShapeKind::Computation | ShapeKind::Literal => 3.0,
    };
    if shape.many.is_some() {
        // It stands for many calls: a second shape is drawn behind it.
        let (x, y) = (x + 4.0, y + 4.0);
        write!(
            out,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{w:.1}" height="{h:.1}" rx="{radius:.1}" stroke-width="{THIN}" {border}/>"#
        )?;
    }
    match shape.kind {
        ShapeKind::Literal => write!(
            out,
            r#"<path d="M{x:.1} {y:.1}h{:.1}l10 10v{:.1}h-{w:.1}z" stroke-width="{THIN}" {border}/><path d="M{:.1} {y:.1}v10h10" stroke-width="{THIN}" {border}/>"#,
            w - 10.0,
            h - 10.0,
            x + w - 10.0
        )?,
        ShapeKind::Input | ShapeKind::Computation | ShapeKind::Output => {
            let stroke = if shape.kind == ShapeKind::Output { BOLD } else { THIN };
            write!(
                out,
                r#"<rect x="{x:.1}" y="{y:.1}" width="{w:.1}" height="{h:.1}" rx="{radius:.1}" stroke-width="{stroke}" {border}/>"#
            )?;
        }
    }
    if let Some((share, colour)) = present_part(shape.state) {
        let (x, y, w, h) = (x + 0.6, y + 0.6, (w - 1.2) * share, h - 1.2);
        write!(
            out,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{w:.1}" height="{h:.1}" fill="{colour}"/>"#
        )?;
    }
    let step = BOX_FONT * LEADING;
    let lines = frame.lines.len() as f64;
    let first = y + h / 2.0 - (lines - 1.0) * step / 2.0 + BOX_FONT * 0.36;
    for (at, line) in frame.lines.iter().enumerate() {
        let (x, y) = (x + w / 2.0, first + at as f64 * step);
        write!(out, r#"<text x="{x:.1}" y="{y:.1}">{}</text>"#, Escaped(line))?;
    }
    writeln!(out, "</g>")
}

/// Writes the legend of colours.
fn legend(out: &mut dyn Write, shapes: &[Shape], top: f64) -> io::Result<()> {
    writeln!(out, r#"<g font-size="{LABEL_FONT}">"#)?;
    for (at, state) in legend_states(shapes).enumerate() {
        let (x, border) = (MARGIN + at as f64 * LEGEND.x, Border(shape_style(Some(state))));
        writeln!(
            out,
            r#"<rect x="{x}" y="{top:.1}" width="22" height="14" rx="3" stroke-width="{THIN}" {border}/><text x="{}" y="{:.1}">{}</text>"#,
            x + 30.0,
            top + 11.0,
            state_meaning(state)
        )?;
    }
    writeln!(out, "</g>")
}

/// The style of a shape as SVG's attributes.
struct Border(ShapeStyle);

impl fmt::Display for Border {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShapeStyle { fill, border, dashed } = self.0;
        write!(f, r#"fill="{fill}" stroke="{border}""#)?;
        if dashed {
            f.write_str(r#" stroke-dasharray="5 3""#)?;
        }
        Ok(())
    }
}

/// A text that is only text in XML; characters that XML forbids are left out.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in shown(self.0) {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                _ => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrow, ShapeCount, ShapeState};

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
    fn special_characters_are_escaped_in_svg() {
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
    fn missing_outputs_are_dashed_and_titles_name_the_files() {
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
    fn a_cut_label_is_complete_in_the_title() {
        let label = "word ".repeat(60);
        let drawing = Drawing {
            shapes: vec![
                shape(ShapeKind::Input, "x", None),
                shape(ShapeKind::Computation, "c", None),
            ],
            arrows: vec![arrow(&label)],
            frames: Vec::new(),
        };
        let svg = svg(&drawing);
        assert!(svg.contains(&format!("<title>{label}</title>")), "{svg}");
        assert!(svg.contains("word…</text>"), "{svg}");
    }

    #[test]
    fn an_arrow_is_drawn_with_lines_and_curves() {
        let points = [(0.0, 1.0), (5.0, 1.0), (9.0, 3.0)].map(|(x, y)| Point { x, y });
        let path = "M0.0 1.0H5.0C7.0 1.0 7.0 3.0 9.0 3.0";
        assert_eq!(Curve(&points).to_string(), path);
    }

    #[test]
    fn a_stacked_shape_has_the_form_of_the_front_one() {
        let mut input = shape(ShapeKind::Input, "INPUT x", None);
        input.many = Some(ShapeCount { calls: 2, there: 0 });
        let drawing = Drawing { shapes: vec![input], ..Drawing::default() };
        let svg = svg(&drawing);
        let input = svg.lines().find(|line| line.contains("<title>INPUT x")).unwrap();
        assert_eq!(input.matches("rx=\"16.0\"").count(), 2, "{input}");
    }

    #[test]
    fn the_filled_part_of_a_box_is_the_share_of_its_calls() {
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
    fn shapes_of_a_page_have_their_numbers_as_attributes() {
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
            assert!(
                text.contains(&format!("<g data-shape=\"{number}\"><title>{label}\n")),
                "{text}"
            );
        }
        assert!(!text.contains("in the storage"), "{text}");
    }
}
