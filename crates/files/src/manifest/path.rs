//! Paths and targets of links: how a manifest spells them, and which ones it may have.
//!
//! Names in a file system are bytes. A manifest is UTF-8 without white space in a path, so that each
//! path is one word: the bytes 00 to 20, 7f, `\` and all that are not UTF-8 are written as `\xHH`.

/// The reason why a path cannot be that of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// It begins with a slash.
    #[error("is absolute")]
    Absolute,
    /// It is empty, or has two slashes in a row or one at the end.
    #[error("has an empty component")]
    Empty,
    /// A component is `.` or `..`.
    #[error("has a component . or ..")]
    Dots,
    /// A component is `.git`.
    #[error("has a component .git")]
    Repository,
    /// No file has such a name.
    #[error("has a zero byte")]
    Zero,
}

/// The reason why a directory cannot hold a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkFault {
    /// Its target begins with a slash.
    #[error("which is an absolute path")]
    Absolute,
    /// Its target has more `..` than there are directories around it.
    #[error("which is outside of the directory")]
    Outside,
    /// No link has such a target.
    #[error("which is empty or has a zero byte")]
    NoPath,
}

/// Checks the path of an entry, relative to the directory.
///
/// # Errors
///
/// Fails unless it has one or more components that are file names.
pub fn check_path(path: &[u8]) -> Result<(), PathFault> {
    if path.starts_with(b"/") {
        return Err(PathFault::Absolute);
    }
    if path.contains(&0) {
        return Err(PathFault::Zero);
    }
    path.split(|byte| *byte == b'/').try_for_each(|component| match component {
        b"" => Err(PathFault::Empty),
        b"." | b".." => Err(PathFault::Dots),
        b".git" => Err(PathFault::Repository),
        _ => Ok(()),
    })
}

/// Checks the target of the link that has this path in the directory.
///
/// Only the text of the target counts, not the file system: the target need not exist, and a component before a `..` counts as a
/// directory.
///
/// # Errors
///
/// Fails if the target is absolute or outside of the directory.
pub fn check_link(path: &[u8], target: &[u8]) -> Result<(), LinkFault> {
    if target.is_empty() || target.contains(&0) {
        return Err(LinkFault::NoPath);
    }
    if target.starts_with(b"/") {
        return Err(LinkFault::Absolute);
    }
    let mut depth = path.iter().filter(|byte| **byte == b'/').count();
    for component in target.split(|byte| *byte == b'/') {
        match component {
            b"" | b"." => {}
            b".." => depth = depth.checked_sub(1).ok_or(LinkFault::Outside)?,
            _ => depth += 1,
        }
    }
    Ok(())
}

/// The path of the directory that something is in, and its name there.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// Writes a path or target as manifests do: in a message, it then commands no terminal.
pub fn shown(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    escape(bytes, &mut text);
    text
}

/// Appends a path or target as manifests spell it.
pub(super) fn escape(bytes: &[u8], text: &mut String) {
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some((plain, special)) =
            rest.find(|c| matches!(c, '\0'..=' ' | '\\' | '\x7f')).map(|at| rest.split_at(at))
        {
            text.push_str(plain);
            escape_byte(special.as_bytes()[0], text);
            rest = &special[1..];
        }
        text.push_str(rest);
        chunk.invalid().iter().for_each(|byte| escape_byte(*byte, text));
    }
}

fn escape_byte(byte: u8, text: &mut String) {
    text.push_str("\\x");
    text.extend(
        [byte >> 4, byte & 15].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])),
    );
}

/// Returns the bytes that a spelling stands for, or `None` if a `\` does not begin `\xHH`.
///
/// Other spellings than those of [`escape`] are accepted.
pub(super) fn unescape(mut text: &[u8]) -> Option<Box<[u8]>> {
    let mut bytes = Vec::with_capacity(text.len());
    while let Some(at) = text.iter().position(|byte| *byte == b'\\') {
        bytes.extend_from_slice(&text[..at]);
        let [b'\\', b'x', high, low, rest @ ..] = &text[at..] else { return None };
        let [high, low] = [*high, *low].map(|byte| char::from(byte).to_digit(16));
        bytes.push(u8::try_from(high? * 16 + low?).ok()?);
        text = rest;
    }
    bytes.extend_from_slice(text);
    Some(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spelling_is_one_word_of_utf_8_and_stands_for_the_bytes() {
        for (bytes, text) in [
            (&b"a/b.txt"[..], "a/b.txt"),
            (b"a b\n\t\x7f\\", r"a\x20b\x0a\x09\x7f\x5c"),
            ("é\u{85}\u{feff}".as_bytes(), "é\u{85}\u{feff}"),
            (b"\xff\xc3", r"\xff\xc3"),
            // Cut, overlong, and half of a surrogate pair.
            (b"\xe2\x82a\xc0\xaf\xed\xa0\x80", r"\xe2\x82a\xc0\xaf\xed\xa0\x80"),
        ] {
            assert_eq!(shown(bytes), text);
            assert_eq!(unescape(text.as_bytes()).as_deref(), Some(bytes), "{text}");
        }
        for text in [r"\", r"\x", r"\x4", r"\n", r"\X41", r"\xgg", r"\x+1", r"a\\"] {
            assert_eq!(unescape(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_path_has_components_that_are_names() {
        for path in ["a", "a/b", "...", "a/.gitignore", "a\\b", "-"] {
            assert_eq!(check_path(path.as_bytes()), Ok(()), "{path}");
        }
        for (path, fault) in [
            ("", PathFault::Empty),
            ("a/", PathFault::Empty),
            ("a//b", PathFault::Empty),
            ("/a", PathFault::Absolute),
            ("./a", PathFault::Dots),
            ("a/..", PathFault::Dots),
            (".git", PathFault::Repository),
            ("a/.git/b", PathFault::Repository),
            ("a\0", PathFault::Zero),
        ] {
            assert_eq!(check_path(path.as_bytes()), Err(fault), "{path:?}");
        }
    }

    #[test]
    fn the_words_of_a_link_decide_whether_it_leads_out() {
        for (path, target) in
            [("a", "b"), ("a", "."), ("a/b", ".."), ("a/b", "../c/.."), ("a", "b/..//./c")]
        {
            assert_eq!(check_link(path.as_bytes(), target.as_bytes()), Ok(()), "{path} {target}");
        }
        for (path, target, fault) in [
            ("a", "/", LinkFault::Absolute),
            ("a", "..", LinkFault::Outside),
            ("a", "b/../../a", LinkFault::Outside),
            ("a/b", "../../a", LinkFault::Outside),
            ("a", "", LinkFault::NoPath),
        ] {
            let checked = check_link(path.as_bytes(), target.as_bytes());
            assert_eq!(checked, Err(fault), "{path} {target}");
        }
    }
}
