//! Grants of access beyond a computation's own tree: the lines of its file `access`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::exit::Explain;

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
    /// An input, a directory, in place of the host's programs, libraries and configuration.
    Root(InputLabel),
    /// An input, a directory, whose `bin` comes first in `PATH`.
    Path(InputLabel),
    /// An input, or a file or directory in it, whose path a variable of the environment has.
    Set {
        variable: String,
        input: InputLabel,
        /// The path in it, with `/` between components; empty for the input itself.
        path: String,
    },
    /// A directory that stays as long as it is suspended.
    Suspend,
}

/// An input that a line of `access` names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InputLabel {
    /// Its line in the computation's file `inputs`.
    pub name: String,
    pub number: usize,
}

/// The reason why a line grants nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum RuleError {
    /// It begins with another word.
    #[error("{0:?} cannot be granted")]
    #[hint(
        "write network, read PATH, write PATH, env NAME, set NAME INPUT, device PATH, root INPUT, path INPUT or suspend"
    )]
    Word(String),
    /// Something follows a word that stands alone.
    #[error("nothing may follow the word {0}")]
    #[hint("write the word alone in its line")]
    Rest(&'static str),
    /// No absolute path follows, or one with `..` in it.
    #[error("{0:?} is not an absolute path without ..")]
    #[hint("write an absolute path, as in read /opt/data")]
    Path(String),
    /// A device elsewhere than below `/dev`.
    #[error("{0:?} is not below /dev")]
    #[hint("write a path such as device /dev/fuse")]
    NotInDev(String),
    /// Files of `/dev`, where devices cannot be opened unless they are granted as such.
    #[error("{} is in /dev, and only devices of it can be granted", .0.display())]
    #[hint("write device PATH for each device that it needs")]
    InDev(PathBuf),
    /// Files of `/proc`, which show processes of the host and lead to its files, or what controls the kernel below `/sys`.
    #[error("{} cannot be granted: it reaches beyond files", .0.display())]
    #[hint("grant the files that it needs; a sandbox has a /proc of its own, and /sys can be read")]
    Kernel(PathBuf),
    /// Something that is not a device.
    #[error("{} is not a device", .0.display())]
    #[hint("write the path of a device; ls -l /dev lists them")]
    NotADevice(PathBuf),
    /// No name of a variable follows.
    #[error("{0:?} is not the name of a variable, or the beginning of one and *")]
    #[hint("write a name, as in env OMP_NUM_THREADS or env OMP_*")]
    Variable(String),
    /// No name of a variable and an input follow.
    #[error("{0:?} is not a variable and an input, or a path in an input")]
    #[hint(
        "write both, as in set PYTHONPATH packages or set R_LIBS packages/lib; for PATH, write path INPUT, and CE_, in_, out_ and text_ are taken"
    )]
    Set(String),
    /// No input has this name.
    #[error("the computation has no input {0:?}")]
    #[hint("name a line of the computation's file inputs")]
    NoInput(String),
    /// Several inputs have this name.
    #[error("the computation has {count} inputs {name:?}")]
    #[hint("give these inputs different names")]
    Ambiguous {
        name: String,
        /// The number of inputs that have it.
        count: usize,
    },
    /// There is a root already.
    #[error("line {0} names a root already")]
    #[hint("keep one root line; more than one path line is fine")]
    TwoRoots(usize),
}

impl Rule {
    /// Reads a line. `inputs` are the names of the computation's inputs.
    pub fn parse(line: &str, inputs: &[String]) -> Result<Self, RuleError> {
        let (word, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "network" if rest.is_empty() => Ok(Self::Network),
            "network" => Err(RuleError::Rest("network")),
            "suspend" if rest.is_empty() => Ok(Self::Suspend),
            "suspend" => Err(RuleError::Rest("suspend")),
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
            "set" => set(rest, inputs),
            "root" => label(rest, inputs).map(Self::Root),
            "path" => label(rest, inputs).map(Self::Path),
            _ => Err(RuleError::Word(word.to_owned())),
        }
    }
}

fn label(name: &str, inputs: &[String]) -> Result<InputLabel, RuleError> {
    let mut numbers = (0..inputs.len()).filter(|number| inputs[*number] == name);
    let name = name.to_owned();
    match (numbers.next(), numbers.count()) {
        (Some(number), 0) => Ok(InputLabel { name, number }),
        (Some(_), others) => Err(RuleError::Ambiguous { name, count: others + 1 }),
        (None, _) => Err(RuleError::NoInput(name)),
    }
}

/// Reads the variable, the input, and the path in it.
fn set(text: &str, inputs: &[String]) -> Result<Rule, RuleError> {
    let wrong = || RuleError::Set(text.to_owned());
    let (variable, value) = text.split_once([' ', '\t']).ok_or_else(wrong)?;
    let value = value.trim();
    let is_own =
        ["CE_", "COMPEVAL_", "in_", "out_", "text_"].iter().any(|it| variable.starts_with(it));
    let is_free =
        is_variable(variable) && !variable.ends_with('*') && variable != "PATH" && !is_own;
    if !is_free || value.is_empty() {
        return Err(wrong());
    }
    // The slash of a directory may be left out.
    let named = |name: &str| match label(name, inputs) {
        Err(RuleError::NoInput(_)) => {
            label(&format!("{name}/"), inputs).map_err(|_| RuleError::NoInput(name.to_owned()))
        }
        found => found,
    };
    let (input, path) = match (named(value), value.split_once('/')) {
        (Err(RuleError::NoInput(_)), Some((name, path))) => (named(name)?, path),
        (whole, _) => (whole?, ""),
    };
    let is_inside = path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if !path.is_empty() && !is_inside {
        return Err(wrong());
    }
    Ok(Rule::Set { variable: variable.to_owned(), input, path: path.to_owned() })
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

impl Rule {
    /// The input that it takes as a directory.
    pub fn input(&self) -> Option<&InputLabel> {
        match self {
            Self::Root(label) | Self::Path(label) => Some(label),
            _ => None,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network => f.write_str("network"),
            Self::Read(path) => write!(f, "read {}", path.display()),
            Self::Write(path) => write!(f, "write {}", path.display()),
            Self::Env(name) => write!(f, "env {name}"),
            Self::Device(path) => write!(f, "device {}", path.display()),
            Self::Root(label) => write!(f, "root {}", label.name),
            Self::Path(label) => write!(f, "path {}", label.name),
            Self::Set { variable, input, path } if path.is_empty() => {
                write!(f, "set {variable} {}", input.name)
            }
            Self::Set { variable, input, path } => {
                write!(f, "set {variable} {}/{path}", input.name.trim_end_matches('/'))
            }
            Self::Suspend => f.write_str("suspend"),
        }
    }
}

/// All that a computation may use beyond its own tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// The lines, in the order of the file.
    pub rules: Vec<Rule>,
    /// The paths of the host that any computation of the task may write. A link that is found there may be a computation's.
    pub written: Vec<PathBuf>,
}

impl Access {
    /// The access that these lines give. No other computation writes anything.
    pub fn new(rules: Vec<Rule>) -> Self {
        let mut access = Self { rules, written: Vec::new() };
        access.written = access.writes().map(Path::to_owned).collect();
        access
    }

    /// The paths of the host that it may write.
    pub fn writes(&self) -> impl Iterator<Item = &Path> {
        self.rules.iter().filter_map(|rule| match rule {
            Rule::Write(path) => Some(path.as_path()),
            _ => None,
        })
    }

    /// Whether it may use the network of the host.
    pub fn network(&self) -> bool {
        self.rules.contains(&Rule::Network)
    }

    /// Whether it has a directory that stays as long as it is suspended.
    pub fn suspends(&self) -> bool {
        self.rules.contains(&Rule::Suspend)
    }

    /// The devices that it may use.
    pub fn devices(&self) -> impl Iterator<Item = &Path> {
        self.rules.iter().filter_map(|rule| match rule {
            Rule::Device(path) => Some(path.as_path()),
            _ => None,
        })
    }

    /// The input that is its root, in place of the host's system.
    pub fn root(&self) -> Option<&InputLabel> {
        self.rules.iter().find_map(|rule| match rule {
            Rule::Root(label) => Some(label),
            _ => None,
        })
    }

    /// The inputs whose programs it finds before others, the first ones first.
    pub fn path(&self) -> impl Iterator<Item = &InputLabel> {
        self.rules.iter().filter_map(|rule| match rule {
            Rule::Path(label) => Some(label),
            _ => None,
        })
    }

    /// The variables that have paths of inputs, given the path of an input by its label. Several lines of a variable are joined by colons.
    pub fn variables(
        &self,
        place: impl Fn(&InputLabel) -> Option<PathBuf>,
    ) -> Vec<(&str, OsString)> {
        let mut variables: Vec<(&str, OsString)> = Vec::new();
        for rule in &self.rules {
            let Rule::Set { variable, input, path } = rule else { continue };
            let Some(mut place) = place(input) else { continue };
            if !path.is_empty() {
                place.push(path);
            }
            match variables.iter_mut().find(|(known, _)| known == variable) {
                Some((_, value)) => {
                    value.push(":");
                    value.push(place);
                }
                None => variables.push((variable, place.into())),
            }
        }
        variables
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

    fn parse(line: &str) -> Result<Rule, RuleError> {
        Rule::parse(line, &["x", "a b", "tools/", "x"].map(str::to_owned))
    }

    #[test]
    fn a_line_grants_one_thing() {
        for line in [
            "network",
            "read /opt/t",
            "write /var/x y",
            "env OMP_*",
            "device /dev/dri/0",
            "root a b",
            "path tools/",
            "set PYTHONPATH tools/",
            "set R_LIBS tools/lib/R",
            "set DATA a b",
            "suspend",
        ] {
            assert_eq!(parse(line).map(|rule| rule.to_string()), Ok(line.to_owned()));
        }
        assert_eq!(parse("set A tools"), parse("set A tools/"));
        assert_eq!(parse("read\t//opt/./t/"), Ok(Rule::Read("/opt/t".into())));
    }

    #[test]
    fn a_label_in_access_becomes_the_number_of_its_input() {
        let rules = ["path tools/", "root a b", "path a b"].map(|line| parse(line).unwrap()).into();
        let access = Access::new(rules);
        assert_eq!(access.root().map(|label| label.number), Some(1));
        assert_eq!(access.path().map(|label| label.number).collect::<Vec<_>>(), [2, 1]);
    }

    fn text(text: &str) -> String {
        text.to_owned()
    }

    #[test]
    fn a_line_that_grants_nothing_says_why() {
        for (line, error) in [
            ("net", RuleError::Word(text("net"))),
            ("network all", RuleError::Rest("network")),
            ("suspend a b", RuleError::Rest("suspend")),
            ("read opt", RuleError::Path(text("opt"))),
            ("read /", RuleError::Path(text("/"))),
            ("write /a/../b", RuleError::Path(text("/a/../b"))),
            ("write", RuleError::Path(text(""))),
            ("device /etc/passwd", RuleError::NotInDev(text("/etc/passwd"))),
            ("device /dev", RuleError::NotInDev(text("/dev"))),
            ("env *", RuleError::Variable(text("*"))),
            ("env A=1", RuleError::Variable(text("A=1"))),
            ("set PATH tools/", RuleError::Set(text("PATH tools/"))),
            ("set A", RuleError::Set(text("A"))),
            ("set in_x tools/", RuleError::Set(text("in_x tools/"))),
            ("set A* tools/", RuleError::Set(text("A* tools/"))),
            ("set A tools/../b", RuleError::Set(text("A tools/../b"))),
            ("set A tool/b", RuleError::NoInput(text("tool"))),
            ("root tool", RuleError::NoInput(text("tool"))),
            ("path", RuleError::NoInput(text(""))),
            ("path x", RuleError::Ambiguous { name: text("x"), count: 2 }),
        ] {
            assert_eq!(parse(line), Err(error), "{line}");
        }
    }

    #[test]
    fn several_paths_of_a_variable_are_joined() {
        let lines = ["set A tools/", "set B a b", "set A a b/lib"];
        let access = Access::new(lines.map(|line| parse(line).unwrap()).into());
        let found = access.variables(|label| Some(format!("/{}", label.number).into()));
        assert_eq!(found, [("A", "/2:/1/lib".into()), ("B", "/1".into())]);
    }

    #[test]
    fn variables_are_passed_by_name_or_by_beginning() {
        let rules = ["env OMP_*", "env LICENSE"].map(|line| parse(line).unwrap()).into();
        let access = Access::new(rules);
        for (name, passed) in
            [("OMP_NUM_THREADS", true), ("LICENSE", true), ("LICENSE2", false), ("HOME", false)]
        {
            assert_eq!(access.passes(name.as_ref()), passed, "{name}");
        }
        assert!(!Access::default().network());
    }
}
