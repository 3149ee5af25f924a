//! A drawing as DOT, the language of Graphviz.
//!
//! Every text is quoted so that Graphviz shows it as it is: nothing in it is a command, an entity
//! or HTML. Knows no places: those are Graphviz's own.

use std::collections::HashSet;
use std::fmt::{self, Write as _};
use std::io::{self, Write};

use super::drawing::{BodyFrame, Drawing, Shape, ShapeKind, ShapeState};
use super::style::{
    ARROW, BOLD, FRAME, INK, PAPER, ShapeStyle, THIN, legend_states, present_part, shape_style,
    shown, state_meaning, wrap,
};

/// The fonts: Graphviz knows how wide their characters are.
const FONTS: &str = "Helvetica,Arial,sans-serif";
/// The length of the lines of text, in columns.
const COLUMNS: usize = 32;

impl Drawing {
    /// Writes the drawing as a DOT digraph, in small pieces: `out` is best buffered.
    pub fn dot(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "digraph workflow {{")?;
        writeln!(out, "\trankdir=LR; bgcolor={}; ranksep=0.6; nodesep=0.3;", Quoted(PAPER))?;
        let text = format!("fontname={}, fontcolor={}", Quoted(FONTS), Quoted(INK));
        if self.has_states() {
            let states = legend_states(&self.shapes).map(|state| {
                let line = match state {
                    ShapeState::There => "solid",
                    ShapeState::Away => "dashed and white",
                    _ => "dashed",
                };
                format!("{line}: {}", state_meaning(state))
            });
            let legend = states.collect::<Vec<_>>().join(", ");
            writeln!(
                out,
                "\tgraph [label={}, labeljust=l, {text}, fontsize=11];",
                Quoted(&legend)
            )?;
        }
        writeln!(out, "\tnode [{text}, fontsize=13, margin=\"0.15,0.08\", penwidth={THIN}];")?;
        writeln!(out, "\tedge [{text}, fontsize=11, color={}, arrowsize=0.7];", Quoted(ARROW))?;
        let framed: HashSet<usize> =
            self.frames.iter().flat_map(|frame| frame.shapes.iter().copied()).collect();
        for (at, shape) in self.shapes.iter().enumerate().filter(|(at, _)| !framed.contains(at)) {
            node(out, at, shape)?;
        }
        for frame in (0..self.frames.len()).filter(|it| self.frames[*it].parent.is_none()) {
            self.frame(out, frame)?;
        }
        for arrow in &self.arrows {
            write!(out, "\tn{} -> n{}", arrow.from, arrow.to)?;
            if !arrow.label.is_empty() {
                write!(out, " [label={}]", Quoted(&lines(&arrow.label)))?;
            }
            writeln!(out, ";")?;
        }
        writeln!(out, "}}")
    }
}

impl Drawing {
    /// Writes a frame, the frames within it, and the shapes in all of them.
    fn frame(&self, out: &mut dyn Write, outermost: usize) -> io::Result<()> {
        // The frames to begin, or to end.
        let mut stack = vec![(outermost, true)];
        while let Some((at, begins)) = stack.pop() {
            if !begins {
                writeln!(out, "\t}}")?;
                continue;
            }
            let BodyFrame { label, shapes, .. } = &self.frames[at];
            let label = Quoted(&lines(label)).to_string();
            let font = format!("fontname={}, fontcolor={}", Quoted(FONTS), Quoted(INK));
            writeln!(out, "\tsubgraph cluster_{at} {{")?;
            writeln!(
                out,
                "\tgraph [label={label}, style=rounded, color={}, labeljust=l, {font}, fontsize=11];",
                Quoted(FRAME)
            )?;
            shapes.iter().try_for_each(|shape| node(out, *shape, &self.shapes[*shape]))?;
            stack.push((at, false));
            let within = (0..at).filter(|it| self.frames[*it].parent == Some(at));
            stack.extend(within.map(|it| (it, true)));
        }
        Ok(())
    }
}

fn node(out: &mut dyn Write, at: usize, shape: &Shape) -> io::Result<()> {
    let (form, round) = match shape.kind {
        ShapeKind::Literal => ("note", ""),
        ShapeKind::Computation => ("box", ""),
        ShapeKind::Input | ShapeKind::Output => ("box", "rounded,"),
    };
    let ShapeStyle { fill, border, dashed } = shape_style(shape.state);
    let dash = if dashed { ",dashed" } else { "" };
    let (style, fill) = match present_part(shape.state) {
        Some((share, colour)) => {
            ("striped", format!("{colour};{share:.3}:{fill};{:.3}", 1.0 - share))
        }
        None => ("filled", fill.to_owned()),
    };
    write!(
        out,
        "\tn{at} [label={}, shape={form}, style=\"{round}{style}{dash}\", fillcolor=\"{fill}\", color=\"{border}\"",
        Quoted(&lines(&shape.label))
    )?;
    if shape.kind == ShapeKind::Output {
        write!(out, ", penwidth={BOLD}")?;
    }
    if shape.many.is_some() {
        write!(out, ", peripheries=2")?;
    }
    if !shape.files.is_empty() {
        write!(out, ", tooltip={}", Quoted(&shape.files.join("\n")))?;
    }
    writeln!(out, "];")
}

/// The text with its lines broken.
fn lines(text: &str) -> String {
    wrap(text, COLUMNS, usize::MAX).join("\n")
}

/// A text in quotes. Graphviz reads a backslash as a command and an ampersand as an entity, so
/// both are written such that it shows them; characters that no picture shows are left out.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in shown(self.0) {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '&' => f.write_str("&amp;")?,
                '\n' => f.write_str("\\n")?,
                '\r' => {}
                _ => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrow, ShapeCount};

    fn quoted(text: &str) -> String {
        Quoted(text).to_string()
    }

    fn shape(label: &str, kind: ShapeKind, state: ShapeState) -> Shape {
        Shape {
            kind,
            label: label.to_owned(),
            state: Some(state),
            files: Vec::new(),
            many: None,
            calls: Vec::new(),
        }
    }

    #[test]
    fn special_characters_are_escaped_for_graphviz() {
        assert_eq!(quoted(r#"a "b" \N"#), r#""a \"b\" \\N""#);
        assert_eq!(quoted("<b>&lt;"), r#""<b>&amp;lt;""#);
        assert_eq!(quoted("one\r\ntwo\u{0}"), r#""one\ntwo""#);
        assert_eq!(quoted("計算"), "\"計算\"");
        assert_eq!(quoted("a\u{202e}b"), "\"a\u{fffd}b\"");
    }

    #[test]
    fn shapes_become_nodes_and_arrows_become_edges() {
        let input = Shape {
            files: ["S/1", "S/2"].map(str::to_owned).to_vec(),
            ..shape("INPUT x", ShapeKind::Input, ShapeState::There)
        };
        let drawing = Drawing {
            shapes: vec![input, shape("OUTPUT", ShapeKind::Output, ShapeState::Missing)],
            arrows: vec![Arrow { from: 0, to: 1, label: "a : b".to_owned() }],
            frames: Vec::new(),
        };
        let mut dot = Vec::new();
        drawing.dot(&mut dot).unwrap();
        let dot = String::from_utf8(dot).unwrap();
        let lines = [
            r##"	n0 [label="INPUT x", shape=box, style="rounded,filled", fillcolor="#d5e6f5", color="#1f4e79", tooltip="S/1\nS/2"];"##,
            r##"	n1 [label="OUTPUT", shape=box, style="rounded,filled,dashed", fillcolor="#fff7e8", color="#8a5a00", penwidth=2.4];"##,
            r#"	n0 -> n1 [label="a : b"];"#,
            "}",
        ];
        assert!(dot.ends_with(&(lines.join("\n") + "\n")), "{dot}");
        assert!(dot.contains("dashed: not in the storage"), "{dot}");
    }

    #[test]
    fn bodies_of_sweeps_become_clusters_and_partial_results_become_stripes() {
        let many = Some(ShapeCount { calls: 4, there: 1 });
        let inner = shape("inner", ShapeKind::Computation, ShapeState::Partly(250));
        let outer = shape("outer", ShapeKind::Computation, ShapeState::There);
        let drawing = Drawing {
            shapes: vec![
                Shape { many, ..inner },
                Shape { many, ..outer },
                shape("plot", ShapeKind::Computation, ShapeState::Missing),
            ],
            arrows: Vec::new(),
            frames: vec![
                BodyFrame { label: "in".to_owned(), shapes: vec![0], parent: Some(1) },
                BodyFrame { label: "out: 2 points".to_owned(), shapes: vec![1], parent: None },
            ],
        };
        let mut dot = Vec::new();
        drawing.dot(&mut dot).unwrap();
        let dot = String::from_utf8(dot).unwrap();
        let words = [
            "[label=\"plot\"",
            "cluster_1 {",
            "out: 2 points",
            "n1 [",
            "cluster_0 {",
            "n0 [",
            "\t}\n\t}\n}",
        ];
        let places: Vec<_> = words.iter().map(|word| dot.find(word).unwrap()).collect();
        assert!(places.is_sorted(), "{dot}");
        let part = r##"style="striped,dashed", fillcolor="#d5e6f5;0.250:#fff7e8;0.750""##;
        assert!(dot.contains(part), "{dot}");
        assert_eq!(dot.matches("peripheries=2").count(), 2, "{dot}");
    }
}
