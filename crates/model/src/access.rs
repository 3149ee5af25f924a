//! Grants of access beyond a computation's own tree: the lines of its file `access`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::exit::Explain;
use crate::name::is_directory;

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
    /// An input at a path of its own, or an output while it is made.
    At { path: PathBuf, file: PlacedFile },
    /// A directory that stays as long as it is suspended.
    Suspend,
}

/// A file or directory of a call that has a path of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PlacedFile {
    Input(InputLabel),
    /// An output: its line in the computation's file `outputs`, and its number.
    Output(InputLabel),
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
        "write network, read PATH, write PATH, env NAME, set NAME INPUT, device PATH, root INPUT, path INPUT, at PATH NAME or suspend"
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
    /// No path and name follow.
    #[error("{0:?} is not a path, and an input or an output that is a directory")]
    #[hint("write both, as in at /opt/environment environment/")]
    At(String),
    /// A path at which a sandbox shows something else, or above or below which it does.
    #[error("{} cannot be the path of {name}: a sandbox shows {}", path.display(), other.display())]
    #[hint("choose another path, such as one below /opt that no other line has")]
    Taken {
        path: Box<Path>,
        /// The name of the input or output.
        name: Box<str>,
        /// The path that is shown.
        other: Box<Path>,
    },
    /// No input has this name.
    #[error("the computation has no input {0:?}")]
    #[hint("name a line of the computation's file inputs")]
    NoInput(String),
    /// Several inputs have this name.
    #[error("{count} inputs or outputs of the computation are called {name:?}")]
    #[hint("give them different names")]
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
    /// Reads a line. `inputs` and `outputs` are the names of the computation's inputs and outputs.
    pub fn parse(line: &str, inputs: &[String], outputs: &[String]) -> Result<Self, RuleError> {
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
            "root" => directory_label(rest, inputs).map(Self::Root),
            "path" => directory_label(rest, inputs).map(Self::Path),
            "at" => at(rest, inputs, outputs),
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
    let named = |name: &str| directory_label(name, inputs);
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

/// Finds a name. The slash of a directory may be left out.
fn directory_label(name: &str, names: &[String]) -> Result<InputLabel, RuleError> {
    match label(name, names) {
        Err(RuleError::NoInput(_)) => {
            label(&format!("{name}/"), names).map_err(|_| RuleError::NoInput(name.to_owned()))
        }
        found => found,
    }
}

/// Reads the path, and the input or output that is there.
fn at(text: &str, inputs: &[String], outputs: &[String]) -> Result<Rule, RuleError> {
    let wrong = || RuleError::At(text.to_owned());
    let (place, name) = text.split_once([' ', '\t']).ok_or_else(wrong)?;
    let name = name.trim();
    let file = match (directory_label(name, inputs), directory_label(name, outputs)) {
        (Ok(_), Ok(_)) => return Err(RuleError::Ambiguous { name: name.to_owned(), count: 2 }),
        (Err(RuleError::NoInput(_)), Ok(output)) if is_directory(&output.name) => {
            PlacedFile::Output(output)
        }
        (Err(RuleError::NoInput(_)), _) => return Err(wrong()),
        (input, _) => PlacedFile::Input(input?),
    };
    // It may stand in PATH.
    if place.contains(':') {
        return Err(wrong());
    }
    Ok(Rule::At { path: path(place)?, file })
}

/// The paths at which a sandbox shows files of its own, or of the host.
const SHOWN: [&str; 20] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/nix",
    "/gnu",
    "/run",
    "/sys",
    "/dev",
    "/proc",
    "/tmp",
    "/var/tmp",
    "/home/compeval",
    "/computation",
    "/inputs",
    "/outputs",
];

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

impl PlacedFile {
    /// Its name and number.
    pub const fn label(&self) -> &InputLabel {
        match self {
            Self::Input(label) | Self::Output(label) => label,
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
            Self::At { path, file } => write!(f, "at {} {}", path.display(), file.label().name),
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

    /// The path of its own that a file of the call has in a sandbox, if it has one.
    pub fn place_of(&self, is_wanted: impl Fn(&PlacedFile) -> bool) -> Option<&Path> {
        self.rules.iter().find_map(|rule| match rule {
            Rule::At { path, file } if is_wanted(file) => Some(path.as_path()),
            _ => None,
        })
    }

    /// The path of its own that an input has in a sandbox, if it has one.
    pub fn place_of_input(&self, number: usize) -> Option<&Path> {
        self.place_of(|file| matches!(file, PlacedFile::Input(label) if label.number == number))
    }

    /// The path of its own that an output has in a sandbox, if it has one.
    pub fn place_of_output(&self, number: usize) -> Option<&Path> {
        self.place_of(|file| matches!(file, PlacedFile::Output(label) if label.number == number))
    }

    /// The first line that only a sandbox can follow.
    pub fn requires_sandbox(&self) -> Option<&Rule> {
        self.rules.iter().find(|rule| matches!(rule, Rule::Root(_) | Rule::At { .. }))
    }

    /// Returns the fault of the first file with a path of its own where something else is shown, or above or below that.
    pub fn taken(&self) -> Option<RuleError> {
        let shown = |number: usize, rule: &Rule| match rule {
            Rule::Read(path) | Rule::Write(path) => Some((number, path.clone())),
            Rule::At { path, .. } => Some((number, path.clone())),
            _ => None,
        };
        let rules = self.rules.iter().enumerate();
        let of_rules: Vec<_> =
            rules.clone().filter_map(|(number, rule)| shown(number, rule)).collect();
        rules.into_iter().find_map(|(number, rule)| {
            let Rule::At { path, file } = rule else { return None };
            let others = of_rules.iter().filter(|(other, _)| *other != number);
            let others = others.map(|(_, other)| other.as_path());
            let mut others = SHOWN.iter().map(Path::new).chain(others);
            let other = others.find(|other| path.starts_with(other) || other.starts_with(path))?;
            let name = file.label().name.trim_end_matches('/').into();
            Some(RuleError::Taken { path: path.as_path().into(), name, other: other.into() })
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
        Rule::parse(
            line,
            &["x", "a b", "tools/", "x"].map(str::to_owned),
            &["y", "made/"].map(str::to_owned),
        )
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
            "at /opt/t tools/",
            "at /opt/t made/",
            "suspend",
        ] {
            assert_eq!(parse(line).map(|rule| rule.to_string()), Ok(line.to_owned()));
        }
        assert_eq!(parse("set A tools"), parse("set A tools/"));
        assert_eq!(parse("at /opt/t made"), parse("at /opt/t made/"));
        assert_eq!(parse("read\t//opt/./t/"), Ok(Rule::Read("/opt/t".into())));
    }

    #[test]
    fn a_label_in_access_becomes_the_number_of_its_input() {
        let rules = ["path tools/", "root a b", "path a b"].map(|line| parse(line).unwrap()).into();
        let access = Access::new(rules);
        assert_eq!(access.root().map(|label| label.number), Some(1));
        assert_eq!(access.path().map(|label| label.number).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn a_path_of_its_own_is_apart_from_all_others() {
        let taken = |lines: &[&str]| {
            let rules = lines.iter().map(|line| parse(line).unwrap()).collect();
            match Access::new(rules).taken() {
                Some(RuleError::Taken { other, .. }) => Some(other.display().to_string()),
                _ => None,
            }
        };
        assert_eq!(taken(&["at /opt/t tools", "at /opt/u made", "read /opt/data"]), None);
        assert_eq!(taken(&["at /usr/t tools"]).as_deref(), Some("/usr"));
        assert_eq!(taken(&["at /home tools"]).as_deref(), Some("/home/compeval"));
        assert_eq!(taken(&["at /opt/t tools", "read /opt"]).as_deref(), Some("/opt"));
        assert_eq!(taken(&["write /opt/t/a", "at /opt/t tools"]).as_deref(), Some("/opt/t/a"));
        assert_eq!(taken(&["at /opt/t tools", "at /opt/t made"]).as_deref(), Some("/opt/t"));
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
            ("at /opt/t", RuleError::At(text("/opt/t"))),
            ("at /opt/t y", RuleError::At(text("/opt/t y"))),
            ("at opt/t a b", RuleError::Path(text("opt/t"))),
            ("at /opt/t z", RuleError::At(text("/opt/t z"))),
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
