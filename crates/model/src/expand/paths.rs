//! The names of points in a directory of all outputs of a sweep.

use std::fmt::Write;

use crate::digest::Digest;

/// The greatest length of a part of a path, in bytes.
const LONGEST: usize = 200;

/// The path of a point: `threads=8/size=10`.
pub fn point_path<'a, T: AsRef<str>>(values: impl Iterator<Item = (&'a str, T)>) -> String {
    let parts = values.map(|(name, text)| path_part(&format!("{name}={}", text.as_ref())));
    parts.collect::<Vec<_>>().join("/")
}

/// A text as one part of a path. Slashes, control characters, `%` and whatever is not ASCII are written as `%XX`, as in
/// URLs, and so is a dot at the beginning. One that is too long ends in its SHA-1.
pub fn path_part(text: &str) -> String {
    let mut part = String::with_capacity(text.len());
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'/' | b'%' | 0..=0x1f | 0x7f..=0xff => drop(write!(part, "%{byte:02X}")),
            b'.' if at == 0 => part.push_str("%2E"),
            byte => part.push(char::from(byte)),
        }
    }
    if part.len() > LONGEST {
        let hash = Digest::of(text.as_bytes()).sha1.full();
        part.truncate(LONGEST - hash.len() - 1);
        part = format!("{part}-{hash}");
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_paths_that_name_them() {
        let values = [("threads", "8"), ("input", "a/b c%.csv"), ("x", ""), ("é", "..")];
        assert_eq!(point_path(values.into_iter()), "threads=8/input=a%2Fb c%25.csv/x=/%C3%A9=..");
        assert_eq!(path_part(".."), "%2E.");
        let long = ["a", "b"].map(|end| path_part(&("x".repeat(300) + end)));
        assert!(long[0] != long[1] && long[0].len() == LONGEST, "{long:?}");
    }
}
