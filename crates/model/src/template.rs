//! Values in which names stand for texts.
//!
//! `data/{sample}.fastq` is `data/a1.fastq` where the text of `sample` is `a1`. A template is parsed once,
//! against the names that are known at its place. Braces that name nothing stay as they are, and texts are
//! not parsed again. A template does not know what its names are: it has their numbers.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The greatest size of a text, in bytes.
pub const MAX_TEXT: usize = 4096;

/// The reason why contents are not the text of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoText {
    /// They are something other than UTF-8.
    #[error("it is not UTF-8 text")]
    NotUtf8,
    /// There are too many.
    #[error("it is longer than {MAX_TEXT} bytes")]
    TooLong,
    /// They have several lines, a tab or something that cannot be seen.
    #[error("it is not one line without control characters")]
    Control,
}

/// Returns the text that contents give a name: without one final newline.
///
/// # Errors
///
/// Fails if they are no UTF-8, longer than [`MAX_TEXT`], or have control characters such as newlines.
pub fn text(contents: &[u8]) -> Result<&str, NoText> {
    let line = contents.strip_suffix(b"\n").unwrap_or(contents);
    if line.len() > MAX_TEXT {
        return Err(NoText::TooLong);
    }
    match std::str::from_utf8(line) {
        Ok(text) if text.contains(char::is_control) => Err(NoText::Control),
        Ok(text) => Ok(text),
        Err(_) => Err(NoText::NotUtf8),
    }
}

/// A value as it is written, and the names in it that stand for texts: its free names.
///
/// Two templates are equal if they are written alike and have the same free names.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Template<T> {
    written: T,
    free: Box<[FreeName]>,
    /// The directory that it is written in, for messages; empty if it has no free names.
    place: PathBuf,
}

/// A name in braces.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct FreeName {
    /// The bytes that it takes in the written value, with its braces.
    range: Range<usize>,
    /// Its number among the names that are known there.
    number: usize,
}

impl<T: AsRef<str>> Template<T> {
    /// Parses a value that is written in a directory. `number` gives the numbers of the names that are known there.
    pub fn new(written: T, mut number: impl FnMut(&str) -> Option<usize>, place: &Path) -> Self {
        let free: Box<[FreeName]> = braces(written.as_ref())
            .filter_map(|(range, name)| Some(FreeName { range, number: number(name)? }))
            .collect();
        let place = if free.is_empty() { PathBuf::new() } else { place.to_owned() };
        Self { written, free, place }
    }

    /// Whether it has free names, so that the value depends on their texts.
    pub const fn is_open(&self) -> bool {
        !self.free.is_empty()
    }

    /// The numbers of its free names, as often as they occur.
    pub fn names(&self) -> impl Iterator<Item = usize> {
        self.free.iter().map(|name| name.number)
    }

    /// The value with other numbers of its free names.
    #[must_use]
    pub fn renumbered(mut self, number: impl Fn(usize) -> usize) -> Self {
        self.free.iter_mut().for_each(|name| name.number = number(name.number));
        self
    }

    /// The value as it is written.
    pub const fn written(&self) -> &T {
        &self.written
    }

    /// The text of the value as it is written.
    pub fn as_str(&self) -> &str {
        self.written.as_ref()
    }

    /// The value as text, with the same free names.
    pub fn text(&self) -> Template<&str> {
        let Self { written, free, place } = self;
        Template { written: written.as_ref(), free: free.clone(), place: place.clone() }
    }

    /// The directory that it is written in; empty if it has no free names.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// The words in braces that are not names and stay as they are.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        braces(self.as_str())
            .filter(|(range, _)| !self.free.iter().any(|name| name.range == *range))
            .map(|(_, name)| name)
    }

    /// Returns the value with the texts of its free names. Names without a text stay free.
    ///
    /// # Errors
    ///
    /// Fails if nobody could have written that: a value with texts obeys the same rules as one without.
    pub fn bind<'a>(&self, text: impl Fn(usize) -> Option<&'a str>) -> Result<Self, T::Err>
    where
        T: FromStr,
    {
        let (mut value, mut end) = (String::new(), 0);
        let mut free = Vec::new();
        for FreeName { range, number } in &self.free {
            value.push_str(&self.as_str()[end..range.start]);
            let begin = value.len();
            let bound = text(*number);
            value.push_str(bound.unwrap_or(&self.as_str()[range.clone()]));
            if bound.is_none() {
                free.push(FreeName { range: begin..value.len(), number: *number });
            }
            end = range.end;
        }
        let written = (value + &self.as_str()[end..]).parse()?;
        let place = if free.is_empty() { PathBuf::new() } else { self.place.clone() };
        Ok(Self { written, free: free.into(), place })
    }
}

impl<T> From<T> for Template<T> {
    /// Returns the value itself, regardless of its braces.
    fn from(written: T) -> Self {
        Self { written, free: Box::default(), place: PathBuf::new() }
    }
}

impl<T: PartialEq> PartialEq for Template<T> {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written && self.free == other.free
    }
}

impl<T: Eq> Eq for Template<T> {}

impl<T: Hash> Hash for Template<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.written.hash(state);
        self.free.hash(state);
    }
}

impl<T: fmt::Display> fmt::Display for Template<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.written.fmt(f)
    }
}

/// Whether a written path may be this one for some names and texts. Components that texts make empty or `.` do not count, so
/// slashes and dots are ignored.
pub fn may_be(written: &str, path: &str) -> bool {
    let (path, mut end) = (without_slashes(path), 0);
    let mut rest = path.as_str();
    for (range, _) in braces(written) {
        let before = without_slashes(&written[end..range.start]);
        let at = if end == 0 { rest.starts_with(&before).then_some(0) } else { rest.find(&before) };
        let Some(at) = at else { return false };
        rest = &rest[at + before.len()..];
        end = range.end;
    }
    let after = without_slashes(&written[end..]);
    if end == 0 { rest == after } else { rest.ends_with(&after) }
}

/// A text without slashes and dots.
fn without_slashes(text: &str) -> String {
    text.replace(['/', '.'], "")
}

/// The texts in braces that may be names.
pub fn names_in(written: &str) -> impl Iterator<Item = &str> {
    braces(written).map(|(_, name)| name)
}

/// All pairs of braces with no brace between them, and the text there.
fn braces(written: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let end = from + written[from..].find('}')?;
            let begin = written[from..end].rfind('{').map(|at| from + at);
            from = end + 1;
            if let Some(begin) = begin {
                return Some((begin..end + 1, &written[begin + 1..end]));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(written: &str, names: &[&str]) -> Template<String> {
        let number = |name: &str| names.iter().position(|known| *known == name);
        Template::new(written.to_owned(), number, Path::new("place"))
    }

    fn bound(written: &str) -> String {
        let template = template(written, &["x", "a b"]);
        let Ok(value) = template.bind(|number| Some(["{a b}", "two"][number]));
        assert_eq!(template.is_open(), value.as_str() != written, "{written}");
        assert!(!value.is_open());
        value.written().clone()
    }

    #[test]
    fn names_are_replaced_once_and_other_braces_stay() {
        for (written, value) in [
            ("{x}", "{a b}"),
            ("a/{a b}-{x}/{a b}", "a/two-{a b}/two"),
            ("{{a b}}", "{two}"),
            ("{x{a b}", "{xtwo"),
            ("{y}{a b}}", "{y}two}"),
        ] {
            assert_eq!(bound(written), value);
        }
        for same in ["", "a", "{", "}", "}{", "{}", "{y}", "{ x}", "{x", "x}", "{x\u{e9}}"] {
            assert_eq!(bound(same), same);
        }
        let template = template("{y}{x}{}", &["x"]);
        assert_eq!(template.unknown().collect::<Vec<_>>(), ["y", ""]);
    }

    #[test]
    fn names_without_a_text_stay_free() {
        let template = template("{x}/{y}/{x}{y}", &["x", "y"]);
        let Ok(once) = template.bind(|number| (number == 1).then_some("{x}"));
        assert_eq!(once.as_str(), "{x}/{x}/{x}{x}");
        assert_eq!(once.names().collect::<Vec<_>>(), [0, 0]);
        let Ok(value) = once.bind(|_| Some("long"));
        assert_eq!(value, Template::from("long/{x}/long{x}".to_owned()));
    }

    #[test]
    fn templates_are_equal_wherever_they_are_written() {
        let template = |number, place| Template::new("{x}", |_| Some(number), Path::new(place));
        assert_eq!(template(0, "a"), template(0, "b"));
        assert_ne!(template(0, "a"), template(1, "a"));
        assert_ne!(template(0, "a"), Template::from("{x}"));
    }

    #[test]
    fn a_text_is_one_line() {
        let long = "a".repeat(MAX_TEXT);
        for (contents, expected) in
            [("", ""), ("a\n", "a"), (" \u{e9} ", " \u{e9} "), (&long, &long)]
        {
            assert_eq!(text(contents.as_bytes()), Ok(expected));
        }
        for contents in ["a\n\n", "a\r\n", "a\tb", "\0"] {
            assert_eq!(text(contents.as_bytes()), Err(NoText::Control), "{contents:?}");
        }
        assert_eq!(text(b"\xff"), Err(NoText::NotUtf8));
        assert_eq!(text((long + "a").as_bytes()), Err(NoText::TooLong));
    }

    #[test]
    fn a_template_matches_every_name_that_its_values_can_make() {
        for (written, path) in [
            ("tinputs/{x}/{y}", "tinputs/ad/48103e4fc7"),
            ("tinputs/{x}/ad", "tinputs/ad"),
            ("{x}", "c_a/b"),
            ("c_{x}.d/{x}", "c_e.d/f"),
            ("a/b", "a/b"),
        ] {
            assert!(may_be(written, path), "{written} {path}");
        }
        for (written, path) in [
            ("tinputs/{x}/4", "tinputs/ad/48"),
            ("c_{x}/00", "t_a/00"),
            ("a{x}b{y}c", "abbd"),
            ("a{x}a", "a"),
            ("a/b", "a/b/c"),
        ] {
            assert!(!may_be(written, path), "{written} {path}");
        }
    }
}
