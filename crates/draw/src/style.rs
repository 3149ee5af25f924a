//! The look of pictures, the same in every format: the colours of present things, and of missing ones; which characters are shown, how
//! wide they are, and where long texts are broken into lines.
//!
//! Missing things differ from present ones in their border as well as in their tint, so a print without colours tells as much.
//! Knows no format.
//!
//! Widths are counted in columns of a font whose characters are equally wide; no text is wider than its estimate.

use super::drawing::{Shape, ShapeState};
use ce_model::humanize::is_misleading;

/// The colour of text.
pub(super) const INK: &str = "#1a1a1a";
/// The colour of arrows.
pub(super) const ARROW: &str = "#56606b";
/// The colour behind everything.
pub(super) const PAPER: &str = "#ffffff";
/// The width of borders and arrows.
pub(super) const THIN: f64 = 1.2;
/// The width of the border of the task's outputs.
pub(super) const BOLD: f64 = 2.4;

/// The look of a shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShapeStyle {
    /// The colour inside.
    pub(super) fill: &'static str,
    /// The colour of the border.
    pub(super) border: &'static str,
    /// Whether the border is dashed.
    pub(super) dashed: bool,
}

/// Returns the look of a shape with this state.
pub(super) const fn shape_style(state: Option<ShapeState>) -> ShapeStyle {
    match state {
        None => ShapeStyle { fill: "#f3f5f7", border: "#3a4652", dashed: false },
        Some(ShapeState::There) => ShapeStyle { fill: "#d5e6f5", border: "#1f4e79", dashed: false },
        Some(ShapeState::Away) => ShapeStyle { fill: "#ffffff", border: "#1f4e79", dashed: true },
        Some(ShapeState::Failed) => ShapeStyle { fill: "#fde4e1", border: "#a3241b", dashed: true },
        Some(ShapeState::Running) => {
            ShapeStyle { fill: "#e3f3e4", border: "#1b6e3c", dashed: true }
        }
        Some(ShapeState::Suspended) => {
            ShapeStyle { fill: "#efe7f8", border: "#5d3a8e", dashed: true }
        }
        Some(ShapeState::Missing | ShapeState::Partly(_)) => {
            ShapeStyle { fill: "#fff7e8", border: "#8a5a00", dashed: true }
        }
    }
}

/// The colour of a frame's border.
pub(super) const FRAME: &str = "#9aa5b1";

/// The colour in a frame.
pub(super) const GROUND: &str = "#fafbfc";

/// Returns the share of a shape that is drawn as being there, and its colour, if only a part is.
pub(super) fn present_part(state: Option<ShapeState>) -> Option<(f64, &'static str)> {
    match state {
        Some(ShapeState::Partly(share)) => {
            // A little is to be seen of either part.
            let share = (f64::from(share) / 1000.0).clamp(0.05, 0.95);
            Some((share, shape_style(Some(ShapeState::There)).fill))
        }
        _ => None,
    }
}

/// The states that a legend explains: absence only where something is away. The shape of a call tells its activity in
/// words.
pub(super) fn legend_states(shapes: &[Shape]) -> impl Iterator<Item = ShapeState> {
    let is_away = shapes.iter().any(|it| it.state == Some(ShapeState::Away));
    let away = is_away.then_some(ShapeState::Away);
    [ShapeState::There, ShapeState::Missing].into_iter().chain(away)
}

/// The state_meaning of a state, for a legend.
pub(super) const fn state_meaning(state: ShapeState) -> &'static str {
    match state {
        ShapeState::There => "in the storage",
        ShapeState::Away => "known, away",
        ShapeState::Missing | ShapeState::Failed | ShapeState::Running | ShapeState::Suspended => {
            "not in the storage"
        }
        ShapeState::Partly(_) => "partly in the storage",
    }
}

/// The characters of a text as a picture shows them: without those that it may not have, and with a sign in the place of those that
/// let a reader see something else than the text, as on a terminal.
pub(super) fn shown(text: &str) -> impl Iterator<Item = char> + '_ {
    let before = [None].into_iter().chain(text.chars().map(Some));
    let shown = text.chars().zip(before);
    let shown = shown
        .map(|(c, before)| if is_misleading(c, before) { char::REPLACEMENT_CHARACTER } else { c });
    shown.filter(|c| is_allowed(*c))
}

/// Whether a character may stand in a picture: XML, and with it SVG, forbids the others.
const fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{7e}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

/// The width of a text in columns. Chinese, Japanese and Korean characters and pictograms take two, and a combining
/// character is counted, too.
pub(super) fn text_width(text: &str) -> usize {
    text.chars().map(width).sum()
}

const fn width(c: char) -> usize {
    match c {
        '\u{1100}'..='\u{115f}'
        | '\u{2600}'..='\u{27bf}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f000}'..='\u{1faff}'
        | '\u{20000}'.. => 2,
        _ => 1,
    }
}

/// Breaks a text into at most `most` lines of at most `limit` columns, at spaces if possible.
///
/// White space becomes single spaces. A text that is too long ends in `…`.
pub(super) fn wrap(text: &str, limit: usize, most: usize) -> Vec<String> {
    let allowed: String = shown(text).collect();
    let words: Vec<&str> = allowed.split_whitespace().collect();
    let whole = words.join(" ");
    let mut rest = whole.as_str();
    let mut lines = Vec::new();
    while !rest.is_empty() && lines.len() < most {
        let last = lines.len() + 1 == most && text_width(rest) > limit;
        let room = if last { limit - 1 } else { limit };
        let (line, after) = rest.split_at(line_end(rest, room));
        let end = if last { "…" } else { "" };
        lines.push(format!("{}{end}", line.trim_end()));
        rest = after.trim_start();
    }
    lines
}

/// Returns the end of the first line of a text, in bytes: behind the last space that fits, else behind the last character at which
/// a path can be broken, else at the end of the room.
fn line_end(text: &str, room: usize) -> usize {
    let (mut space, mut joint, mut used) = (None, None, 0);
    for (at, c) in text.char_indices() {
        // A line does not begin with a colon.
        if c == ' ' && !text[at..].starts_with(" : ") {
            space = Some(at + 1);
        }
        used += width(c);
        if used > room && at > 0 {
            return space.or(joint).unwrap_or(at);
        }
        if matches!(c, '/' | '_' | '-' | ',' | '.') {
            joint = Some(at + c.len_utf8());
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(text_width("naïve"), 5);
        assert_eq!(text_width("計算"), 4);
    }

    #[test]
    fn lines_end_at_spaces_then_joints_then_anywhere() {
        assert_eq!(wrap("one two  three\n", 8, 9), ["one two", "three"]);
        assert_eq!(wrap("first, second : both", 14, 9), ["first,", "second : both"]);
        assert_eq!(wrap("tinputs/ad/4810", 12, 9), ["tinputs/ad/", "4810"]);
        assert_eq!(wrap("abcdefgh", 3, 9), ["abc", "def", "gh"]);
        assert_eq!(wrap("計算機", 4, 9), ["計算", "機"]);
        assert_eq!(wrap("計", 1, 9), ["計"], "a line holds something");
    }

    #[test]
    fn a_cut_text_ends_with_an_ellipsis() {
        assert_eq!(wrap("one two three", 5, 2), ["one", "two…"]);
        assert_eq!(wrap("one two", 3, 2), ["one", "two"]);
        assert!(wrap(" \u{1}", 5, 2).is_empty());
    }
}
