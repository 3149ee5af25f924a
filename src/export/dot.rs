//! A drawing as DOT, the language of Graphviz.
//!
//! Every text is quoted so that Graphviz shows it as it is: nothing in it is a command, an entity
//! or HTML. Knows no places: those are Graphviz's own.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use super::drawing::{Drawing, Shape, ShapeKind, ShapeState};
use super::paint::{ARROW, BOLD, INK, PAPER, Paint, THIN, meaning, paint};
use super::text;

/// The fonts: Graphviz knows how wide their characters are.
const FONTS: &str = "Helvetica,Arial,sans-serif";
/// How long the lines of text are, in columns.
const COLUMNS: usize = 32;

impl Drawing {
    /// Writes the drawing as a DOT digraph, in small pieces: `out` is best buffered.
    ///
    /// # Errors
    ///
    /// Fails if `out` cannot be written.
    pub fn dot(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "digraph workflow {{")?;
        writeln!(out, "\trankdir=LR; bgcolor={}; ranksep=0.6; nodesep=0.3;", Quoted(PAPER))?;
        let text = format!("fontname={}, fontcolor={}", Quoted(FONTS), Quoted(INK));
        if self.has_states() {
            let [there, missing] = [ShapeState::There, ShapeState::Missing].map(meaning);
            let legend = format!("solid: {there}, dashed: {missing}");
            writeln!(
                out,
                "\tgraph [label={}, labeljust=l, {text}, fontsize=11];",
                Quoted(&legend)
            )?;
        }
        writeln!(out, "\tnode [{text}, fontsize=13, margin=\"0.15,0.08\", penwidth={THIN}];")?;
        writeln!(out, "\tedge [{text}, fontsize=11, color={}, arrowsize=0.7];", Quoted(ARROW))?;
        for (at, shape) in self.shapes.iter().enumerate() {
            node(out, at, shape)?;
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

fn node(out: &mut dyn Write, at: usize, shape: &Shape) -> io::Result<()> {
    let (form, round) = match shape.kind {
        ShapeKind::Literal => ("note", ""),
        ShapeKind::Computation => ("box", ""),
        ShapeKind::Input | ShapeKind::Output => ("box", "rounded,"),
    };
    let Paint { fill, border, dashed } = paint(shape.state);
    let dash = if dashed { ",dashed" } else { "" };
    write!(
        out,
        "\tn{at} [label={}, shape={form}, style=\"{round}filled{dash}\", fillcolor=\"{fill}\", color=\"{border}\"",
        Quoted(&lines(&shape.label))
    )?;
    if shape.kind == ShapeKind::Output {
        write!(out, ", penwidth={BOLD}")?;
    }
    if !shape.files.is_empty() {
        write!(out, ", tooltip={}", Quoted(&shape.files.join("\n")))?;
    }
    writeln!(out, "];")
}

/// The text with its lines broken.
fn lines(text: &str) -> String {
    text::wrap(text, COLUMNS, usize::MAX).join("\n")
}

/// A text in quotes. Graphviz reads a backslash as a command and an ampersand as an entity, so
/// both are written such that it shows them; characters that no picture shows are left out.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars().filter(|c| text::is_allowed(*c)) {
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
    use crate::export::Arrow;

    #[test]
    fn text_stays_text() {
        let quoted = |text: &str| Quoted(text).to_string();
        assert_eq!(quoted(r#"a "b" \N"#), r#""a \"b\" \\N""#);
        assert_eq!(quoted("<b>&lt;"), r#""<b>&amp;lt;""#);
        assert_eq!(quoted("one\r\ntwo\u{0}"), r#""one\ntwo""#);
        assert_eq!(quoted("計算"), "\"計算\"");
    }

    #[test]
    fn shapes_and_arrows_are_nodes_and_edges() {
        let shape = |kind, label: &str, state, files: &[&str]| Shape {
            kind,
            label: label.to_owned(),
            state,
            files: files.iter().copied().map(str::to_owned).collect(),
        };
        let drawing = Drawing {
            shapes: vec![
                shape(ShapeKind::Input, "INPUT x", Some(ShapeState::There), &["S/1", "S/2"]),
                shape(ShapeKind::Output, "OUTPUT", Some(ShapeState::Missing), &[]),
            ],
            arrows: vec![Arrow { from: 0, to: 1, label: "a : b".to_owned() }],
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
}
