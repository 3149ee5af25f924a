//! Names that users write, checked once at the border.
//!
//! A [`ComputationName`] or [`TaskName`] becomes part of a file name, so each is exactly one path
//! component. A [`StorageName`] never leads out of the storage. [`near`] suggests names for a
//! mistyped one.

use std::fmt;
use std::path::{Component, Path};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Why a text is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is nothing.
    #[error("the name is empty")]
    Empty,
    /// The text holds a character that a name may not hold.
    #[error("{0:?} holds a slash or a control character")]
    Character(String),
    /// `.` and `..` are places, not names.
    #[error("{0:?} is not a name")]
    Dots(String),
    /// A storage name that begins at the root of the file system.
    #[error("{0:?} is absolute; names are relative to the storage")]
    Absolute(String),
    /// A path that leads out, or is not the plainest one.
    #[error("{0:?} is not a plain relative path: no part of it may be empty, . or ..")]
    Path(String),
    /// A storage name that climbs.
    #[error("{0:?} leads out of the storage")]
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
    let is_wrong = |part: &str| matches!(part, "" | "." | "..");
    if text.split('/').any(is_wrong) {
        return Err(NameError::Path(text.to_owned()));
    }
    line(text)
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
    /// The name of a computation: a directory in `computations/`.
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
}

/// Whether an output with this symbolic name is a directory: the name ends in a slash.
pub fn is_directory(output: &str) -> bool {
    output.ends_with('/')
}

/// Returns the name that a user may have meant.
pub fn nearest(wanted: &str, names: &[String]) -> Option<String> {
    near(wanted, names).first().map(|name| (*name).clone())
}

/// Returns the names that a user may have meant, the most similar first.
pub fn near<'a>(wanted: &str, names: &'a [String]) -> Vec<&'a String> {
    let distance = |name: &str| strsim::damerau_levenshtein(wanted, name);
    let close = |name: &&String| distance(name) <= 1 + wanted.len() / 4;
    let mut names: Vec<&String> = names.iter().filter(close).collect();
    names.sort_by_key(|name| (distance(name), name.as_str()));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_path_in_the_task_stays_inside() {
        assert!("data/a b..c".parse::<TaskPath>().is_ok());
        for wrong in ["", "/a", "a//b", "a/", "./a", "a/../b", "..", "a\nb"] {
            assert!(wrong.parse::<TaskPath>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_storage_name_stays_inside() {
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
