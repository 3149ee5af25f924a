//! Text in pictures: which characters are shown, how wide they are, and where long texts are broken into lines.
//!
//! Widths are counted in columns of a font whose characters are equally wide; no text is wider than its estimate.

use ce_model::humanize::is_misleading;

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

/// The width of a text in columns. Chinese, Japanese and Korean characters and pictograms take
/// two, and a character that only changes the one before it is counted all the same.
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
    fn what_does_not_fit_is_told() {
        assert_eq!(wrap("one two three", 5, 2), ["one", "two…"]);
        assert_eq!(wrap("one two", 3, 2), ["one", "two"]);
        assert!(wrap(" \u{1}", 5, 2).is_empty());
    }
}
