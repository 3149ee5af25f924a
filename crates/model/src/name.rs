//! Names that users write, checked once at the border.
//!
//! A [`ComputationName`] or [`TaskName`] becomes part of a file name, so each is exactly one path
//! component. A [`StorageName`] never leads out of the storage.

use std::fmt::{self, Write};
use std::path::{Component, Path};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::exit::Explain;

/// The reason why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Explain)]
pub enum NameError {
    /// There is nothing.
    #[error("the name is empty")]
    #[hint("write a name")]
    Empty,
    /// The text holds a character that a name may not hold.
    #[error("{0:?} holds a slash or a control character")]
    #[hint("write a name without slashes and control characters, as in sort-2")]
    Character(String),
    /// `.` and `..` are places, not names.
    #[error("{0:?} is not a name")]
    #[hint("write a name without slashes and control characters, as in sort-2")]
    Dots(String),
    /// A storage name that begins at the root of the file system.
    #[error("{0:?} is absolute; names are relative to the storage")]
    #[hint("give the name of a file in the storage, such as tinputs/ad/48103e4fc7")]
    Absolute(String),
    /// A path that leads out, or is not the plainest one.
    #[error("{0:?} is not a plain relative path: no part of it may be empty, . or ..")]
    #[hint("write a path such as data/table.csv")]
    Path(String),
    /// A text that names no Git tree.
    #[error("{0:?} is not SOURCE or SOURCE:PATH; PATH is relative, without empty parts, . and ..")]
    #[hint("write the path of a submodule, or . for the task's repository, as in .:data")]
    Tree(String),
    /// A storage name that climbs.
    #[error("{0:?} leads out of the storage")]
    #[hint("give the name of a file in the storage, such as tinputs/ad/48103e4fc7")]
    Climbs(String),
}

fn component(text: &str) -> Result<Box<str>, NameError> {
    match text {
        "" => Err(NameError::Empty),
        "." | ".." => Err(NameError::Dots(text.to_owned())),
        _ if text.contains(|c: char| c == '/' || c.is_control()) => {
            Err(NameError::Character(text.to_owned()))
        }
        _ => Ok(text.into()),
    }
}

fn line(text: &str) -> Result<Box<str>, NameError> {
    match text {
        "" => Err(NameError::Empty),
        _ if text.contains(char::is_control) => Err(NameError::Character(text.to_owned())),
        _ => Ok(text.into()),
    }
}

fn inside(text: &str) -> Result<Box<str>, NameError> {
    line(text)?;
    let mut parts = Vec::new();
    for part in Path::new(text).components() {
        match part {
            Component::Normal(part) => parts.extend(part.to_str()),
            Component::RootDir | Component::Prefix(_) => {
                return Err(NameError::Absolute(text.to_owned()));
            }
            Component::ParentDir => return Err(NameError::Climbs(text.to_owned())),
            Component::CurDir => return Err(NameError::Dots(text.to_owned())),
        }
    }
    // One file has one name, however many slashes somebody wrote.
    Ok(parts.join("/").into())
}

fn within(text: &str) -> Result<Box<str>, NameError> {
    if !text.split('/').all(is_normal) {
        return Err(NameError::Path(text.to_owned()));
    }
    line(text)
}

/// Any text.
fn whole(text: &str) -> Result<Box<str>, NameError> {
    Ok(text.into())
}

/// A repository, and a path in it if there is a colon.
fn tree(text: &str) -> Result<Box<str>, NameError> {
    let (source, path) = text.split_once(':').unwrap_or((text, "a"));
    let mut parts = source.split('/').skip_while(|part| *part == "..").peekable();
    let is_source = source == "." || parts.peek().is_some() && parts.all(is_normal);
    if !is_source || !path.split('/').all(is_normal) {
        return Err(NameError::Tree(text.to_owned()));
    }
    line(text)
}

/// Whether a part of a path is a name.
fn is_normal(part: &str) -> bool {
    !matches!(part, "" | "." | "..")
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident: $check:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Box<str>);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                $check(text).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.into()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }
    )+};
}

names! {
    /// The name of a computation: a directory in `computations/`, or a file there without its suffix.
    ComputationName: component;
    /// The name of a task: the directory that holds it.
    TaskName: component;
    /// The symbolic name of a task input: one line, spaces allowed.
    InputName: line;
    /// The path of a file in the task, relative to its root, with `/` between components.
    TaskPath: within;
    /// The path of a file or directory within a directory that is a value.
    MemberPath: within;
    /// The name of a file in the storage, relative to its root, with `/` between components.
    StorageName: inside;
    /// The contents of a file, as a workflow holds them: any text.
    WrittenText: whole;
    /// A Git repository, or `SOURCE:PATH` for a directory in it. The repository is the task's own, `.`, a submodule, by its
    /// path relative to the task, or one that the user names.
    TreeName: tree;
}

impl TreeName {
    /// The repository.
    pub fn source(&self) -> &str {
        self.0.split_once(':').map_or(&self.0, |(source, _)| source)
    }

    /// The path in the repository; empty for its top.
    pub fn path(&self) -> &str {
        self.0.split_once(':').map_or("", |(_, path)| path)
    }
}

/// Checks the symbolic name of an input of a computation: a line, which a task may have as the name of its input.
///
/// # Errors
///
/// Fails if it is empty, or has a control character.
pub fn check_input(name: &str) -> Result<(), NameError> {
    line(name).map(drop)
}

/// Checks the symbolic name of an output of a computation: a component of a path, behind which the slash of a directory may stand.
///
/// # Errors
///
/// Fails if it is empty, `.` or `..`, or has another slash or a control character.
pub fn check_output(name: &str) -> Result<(), NameError> {
    component(name.strip_suffix('/').unwrap_or(name)).map(drop)
}

/// Whether an output with this symbolic name is a directory: the name ends in a slash.
pub fn is_directory(output: &str) -> bool {
    output.ends_with('/')
}

/// The greatest number of parts of a suffix, and of letters and digits in each.
const SUFFIX_PARTS: usize = 2;
const SUFFIX_LETTERS: usize = 8;

/// The suffix of the symbolic name of an input or output, such as `.svg` or `.fastq.gz`: at its end, before the slash of a directory, one
/// or two dots that a letter follows, and at most seven more letters and digits. Empty without one.
pub fn suffix(name: &str) -> &str {
    let name = name.strip_suffix('/').unwrap_or(name);
    let mut stem = name;
    for _ in 0..SUFFIX_PARTS {
        match stem.rsplit_once('.') {
            Some((before, part))
                if !before.is_empty()
                    && part.len() <= SUFFIX_LETTERS
                    && part.starts_with(|first: char| first.is_ascii_alphabetic())
                    && part.bytes().all(|byte| byte.is_ascii_alphanumeric()) =>
            {
                stem = before;
            }
            _ => break,
        }
    }
    &name[stem.len()..]
}

/// A symbolic name without its suffix.
pub fn stem(name: &str) -> String {
    let slash = if is_directory(name) { "/" } else { "" };
    let name = &name[..name.len() - slash.len()];
    format!("{}{slash}", &name[..name.len() - suffix(name).len()])
}

/// The names by which the variables of the environment of `exec` end that tell it inputs, or outputs, with these symbolic names: characters
/// other than ASCII letters, digits and `_` are `_`, and the slash of a directory is left out. `None` for names that become one.
pub fn variables(names: &[impl AsRef<str>]) -> Vec<Option<String>> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let all: Vec<String> = names
        .iter()
        .map(|name| {
            name.as_ref().strip_suffix('/').unwrap_or(name.as_ref()).chars().map(plain).collect()
        })
        .collect();
    let is_single = |name: &&String| all.iter().filter(|other| other == name).count() == 1;
    all.iter().map(|name| Some(name).filter(is_single).cloned()).collect()
}

/// The name under which `exec` finds an input or output: its number, with the suffix of its symbolic name.
pub fn numbered(number: usize, name: &str) -> String {
    format!("{number:02}{}", suffix(name))
}

/// The greatest length of the name of a file that is made from a text, in bytes: a number and a suffix fit beside it.
const LONGEST_FILE_NAME: usize = 200;

/// Makes the name of a file from any text: one component of a path, which is neither empty nor hidden. Slashes, backslashes, control
/// characters, `%` and everything that is not ASCII are written as `%XX`, as in URLs, and so is a dot at the beginning. The empty text is `%`. A name that
/// is too long ends in the text's SHA-1. Different texts have different names.
pub fn file_name(text: &str) -> String {
    file_name_of_bytes(text.as_bytes())
}

/// Does the same for the name of a file, which may be any bytes.
pub fn file_name_of_bytes(name: &[u8]) -> String {
    component_of(name, |c| c.is_ascii())
}

/// Does the same for the name of a file outside of the storage, in which letters and signs of all languages stay.
pub fn outer_file_name(text: &str) -> String {
    component_of(text.as_bytes(), |_| true)
}

/// Makes one component of a path of any text. A character that is not plain is written as `%XX`, and so is a byte that belongs to none.
fn component_of(text: &[u8], is_plain: impl Fn(char) -> bool) -> String {
    if text.is_empty() {
        return "%".to_owned();
    }
    let mut name = String::with_capacity(text.len());
    let encode = |bytes: &[u8], name: &mut String| {
        for byte in bytes {
            // Nothing fails that writes into a text.
            _ = write!(name, "%{byte:02X}");
        }
    };
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            let is_hidden = c == '.' && name.is_empty();
            if matches!(c, '/' | '\\' | '%') || c.is_control() || !is_plain(c) || is_hidden {
                encode(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut name);
            } else {
                name.push(c);
            }
        }
        encode(chunk.invalid(), &mut name);
    }
    if name.len() > LONGEST_FILE_NAME {
        let hash = Digest::hash_bytes(text).sha1.full();
        name.truncate(name.floor_char_boundary(LONGEST_FILE_NAME - hash.len() - 1));
        name = format!("{name}-{hash}");
    }
    name
}

/// A path as a part of a URL: all but slashes, letters, digits and `-._~` as `%XX`.
pub fn encoded(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                encoded.push(char::from(byte));
            }
            byte => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_has_a_name_that_no_other_has() {
        let names = ["words", "stop words", "stop-words", "cells.zarr/", "é", "2"];
        let found = variables(&names);
        let found: Vec<_> = found.iter().map(Option::as_deref).collect();
        assert_eq!(found, [Some("words"), None, None, Some("cells_zarr"), Some("_"), Some("2")]);
    }

    #[test]
    fn a_suffix_is_one_or_two_words_after_dots() {
        for (name, suffix) in [
            ("figure.svg", ".svg"),
            ("reads.fastq.gz", ".fastq.gz"),
            ("cells.zarr/", ".zarr"),
            ("a.b.c.d", ".c.d"),
            ("a.12345678", ""),
            ("a.b2345678", ".b2345678"),
            ("a.b23456789", ""),
            ("a.b23456789.gz", ".gz"),
            ("version 1.2", ""),
            ("1.2.gz", ".gz"),
            ("sum", ""),
            (".svg", ""),
            ("a.", ""),
            ("a..gz", ".gz"),
            ("a.é", ""),
            ("", ""),
            ("/", ""),
        ] {
            assert_eq!(super::suffix(name), suffix, "{name}");
            assert_eq!(stem(name), name.replacen(suffix, "", 1), "{name}");
        }
        assert_eq!(numbered(3, "figure.svg"), "03.svg");
        assert_eq!(numbered(123, "tree/"), "123");
    }

    #[test]
    fn any_text_is_encoded_as_one_plain_component() {
        for (text, name) in [
            ("figure.svg", "figure.svg"),
            ("", "%"),
            (".", "%2E"),
            ("..", "%2E."),
            (".ssh", "%2Essh"),
            ("x/../../../victim", "x%2F..%2F..%2F..%2Fvictim"),
            ("/etc/passwd", "%2Fetc%2Fpasswd"),
            (r"..\..\x", "%2E.%5C..%5Cx"),
            ("a\0b\n\u{7f}%é", "a%00b%0A%7F%25%C3%A9"),
        ] {
            assert_eq!(file_name(text), name, "{text:?}");
        }
        assert_eq!(file_name_of_bytes(b"x\xe9.svg\xff"), "x%E9.svg%FF");
        assert_eq!(outer_file_name("Größe/数\u{85}.svg"), "Größe%2F数%C2%85.svg");
        assert!(outer_file_name(&"数".repeat(100)).len() <= LONGEST_FILE_NAME);
        let long = ["a", "b"].map(|end| file_name(&("x".repeat(300) + end)));
        assert!(long[0] != long[1] && long[0].len() == LONGEST_FILE_NAME, "{long:?}");
        assert_eq!(encoded("points/k=1/a%20b ü#"), "points/k%3D1/a%2520b%20%C3%BC%23");
    }

    #[test]
    fn an_output_is_one_component_and_may_be_a_directory() {
        for right in ["sum", "figure.svg", "cells.zarr/", "a b", "..a", "a..b", ".hidden", "…"] {
            assert_eq!(check_output(right), Ok(()), "{right}");
        }
        for wrong in
            ["", "/", "//", "a//", ".", "..", "./", "../", "a/b", "/a", "x/../y", "a\tb", "a\0"]
        {
            assert!(check_output(wrong).is_err(), "{wrong:?}");
        }
        assert!(check_input("d/e").is_ok() && check_input("a\tb").is_err());
    }

    #[test]
    fn a_computation_is_one_component() {
        assert!("split-2 words".parse::<ComputationName>().is_ok());
        for wrong in ["", ".", "..", "a/b", "/a", "a\nb", "a\0"] {
            assert!(wrong.parse::<ComputationName>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_input_is_a_line() {
        assert!("stop words".parse::<InputName>().is_ok());
        assert!("a/b".parse::<InputName>().is_ok());
        assert!("a\tb".parse::<InputName>().is_err());
    }

    #[test]
    fn a_path_that_leads_out_of_the_task_is_refused() {
        assert!("data/a b..c".parse::<TaskPath>().is_ok());
        for wrong in ["", "/a", "a//b", "a/", "./a", "a/../b", "..", "a\nb"] {
            assert!(wrong.parse::<TaskPath>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_tree_is_a_repository_or_a_path_in_one() {
        for (text, source, path) in [
            (".", ".", ""),
            (".:src", ".", "src"),
            ("lib/a", "lib/a", ""),
            ("../../lib:a/b:c", "../../lib", "a/b:c"),
        ] {
            let name: TreeName = text.parse().unwrap();
            assert_eq!((name.source(), name.path()), (source, path));
        }
        let wrong =
            ["", ":", ":a", "a:", "..", "/a", "a/", "a/../b", "./a", "a:/b", "a:../b", "a\n"];
        for wrong in wrong {
            assert!(wrong.parse::<TreeName>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_name_that_leads_out_of_the_storage_is_refused() {
        assert!("tinputs/ad/48103e4fc7".parse::<StorageName>().is_ok());
        assert!("a..b/..c".parse::<StorageName>().is_ok());
        for same in ["a/b", "a//b", "a/./b", "a/b/"] {
            assert_eq!(same.parse::<StorageName>().unwrap().as_str(), "a/b");
        }
        let wrong = ["", "/etc/passwd", "..", "a/../../b", "./a", "a/..", "a\0b"];
        for wrong in wrong {
            assert!(wrong.parse::<StorageName>().is_err(), "{wrong:?}");
        }
    }
}
