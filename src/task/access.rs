//! Grants of access beyond a computation's own tree: the lines of its file `access`.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A line of `access`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Rule {
    /// The network of the host.
    Network,
    /// A file or directory that it may read and execute.
    Read(PathBuf),
    /// A file or directory that it may write, too.
    Write(PathBuf),
    /// Variables of the environment: a name, or what names begin with and `*`.
    Env(String),
    /// A device below `/dev`.
    Device(PathBuf),
}

/// Why a line grants nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// It begins with another word.
    #[error(
        "{0:?} cannot be granted: expected \"network\", \"read PATH\", \"write PATH\", \"env NAME\" or \"device PATH\""
    )]
    Word(String),
    /// Something follows `network`.
    #[error("nothing may follow the word network")]
    Rest,
    /// No absolute path follows, or one with `..` in it.
    #[error("{0:?} is not an absolute path without ..")]
    Path(String),
    /// A device elsewhere than below `/dev`.
    #[error("{0:?} is not below /dev")]
    NotInDev(String),
    /// Something that is no device.
    #[error("{} is not a device", .0.display())]
    NotADevice(PathBuf),
    /// No name of a variable follows.
    #[error("{0:?} is not the name of a variable, or the beginning of one and *")]
    Variable(String),
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(line: &str) -> Result<Self, RuleError> {
        let (word, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "network" if rest.is_empty() => Ok(Self::Network),
            "network" => Err(RuleError::Rest),
            "read" => path(rest).map(Self::Read),
            "write" => path(rest).map(Self::Write),
            "device" => match path(rest)? {
                device if device.starts_with("/dev") && device != Path::new("/dev") => {
                    Ok(Self::Device(device))
                }
                _ => Err(RuleError::NotInDev(rest.to_owned())),
            },
            "env" if is_variable(rest) => Ok(Self::Env(rest.to_owned())),
            "env" => Err(RuleError::Variable(rest.to_owned())),
            _ => Err(RuleError::Word(word.to_owned())),
        }
    }
}

fn path(text: &str) -> Result<PathBuf, RuleError> {
    let path = Path::new(text);
    let climbs = path.components().any(|part| part == Component::ParentDir);
    if !path.is_absolute() || climbs || path == Path::new("/") {
        return Err(RuleError::Path(text.to_owned()));
    }
    // Without doubled slashes and dots: names are compared.
    Ok(path.components().collect())
}

fn is_variable(name: &str) -> bool {
    let name = name.strip_suffix('*').unwrap_or(name);
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    begins && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network => f.write_str("network"),
            Self::Read(path) => write!(f, "read {}", path.display()),
            Self::Write(path) => write!(f, "write {}", path.display()),
            Self::Env(name) => write!(f, "env {name}"),
            Self::Device(path) => write!(f, "device {}", path.display()),
        }
    }
}

/// All that a computation may use beyond its own tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// The lines, in the order of the file.
    pub rules: Vec<Rule>,
}

impl Access {
    /// Whether it may use the network of the host.
    pub fn network(&self) -> bool {
        self.rules.contains(&Rule::Network)
    }

    /// The devices that it may use.
    pub fn devices(&self) -> impl Iterator<Item = &Path> {
        self.rules.iter().filter_map(|rule| match rule {
            Rule::Device(path) => Some(path.as_path()),
            _ => None,
        })
    }

    /// Whether an environment variable is passed on.
    pub fn passes(&self, name: &OsStr) -> bool {
        self.rules.iter().any(|rule| match rule {
            Rule::Env(wanted) => match wanted.strip_suffix('*') {
                Some(begin) => name.as_bytes().starts_with(begin.as_bytes()),
                None => name == wanted.as_str(),
            },
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_grants_one_thing() {
        for line in ["network", "read /opt/t", "write /var/x y", "env OMP_*", "device /dev/dri/0"] {
            assert_eq!(line.parse::<Rule>().map(|rule| rule.to_string()), Ok(line.to_owned()));
        }
        assert_eq!("read\t//opt/./t/".parse(), Ok(Rule::Read("/opt/t".into())));
    }

    #[test]
    fn a_line_that_grants_nothing_says_why() {
        let text = |text: &str| text.to_owned();
        for (line, error) in [
            ("net", RuleError::Word(text("net"))),
            ("network all", RuleError::Rest),
            ("read opt", RuleError::Path(text("opt"))),
            ("read /", RuleError::Path(text("/"))),
            ("write /a/../b", RuleError::Path(text("/a/../b"))),
            ("write", RuleError::Path(text(""))),
            ("device /etc/passwd", RuleError::NotInDev(text("/etc/passwd"))),
            ("device /dev", RuleError::NotInDev(text("/dev"))),
            ("env *", RuleError::Variable(text("*"))),
            ("env A=1", RuleError::Variable(text("A=1"))),
        ] {
            assert_eq!(line.parse::<Rule>(), Err(error), "{line}");
        }
    }

    #[test]
    fn variables_are_passed_by_name_or_by_beginning() {
        let rules = ["env OMP_*", "env LICENSE"].map(|line| line.parse().unwrap()).into();
        let access = Access { rules };
        for (name, passed) in
            [("OMP_NUM_THREADS", true), ("LICENSE", true), ("LICENSE2", false), ("HOME", false)]
        {
            assert_eq!(access.passes(name.as_ref()), passed, "{name}");
        }
        assert!(!Access::default().network());
    }
}
