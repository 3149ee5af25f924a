//! What one execution sees: a value, made of an invocation here, carried out by the launcher.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::wire::{Frame, Parts};
use crate::access::{Access, Rule};
use crate::executor::Invocation;

/// Where the directory of the computation is shown.
pub(super) const COMPUTATION: &str = "/computation";
/// Where the inputs are shown, by their numbers.
pub(super) const INPUTS: &str = "/inputs";
/// Where the outputs are written, by their numbers.
pub(super) const OUTPUTS: &str = "/outputs";
/// The working directory, which is all that can be written else.
pub(super) const TMP: &str = "/tmp";
/// An empty directory.
pub(super) const HOME: &str = "/home/compeval";

/// How many directories every execution has of its own: the computation's, for outputs, to work in.
const OWN: usize = 3;

/// The environment, but for what `access` passes on.
const ENVIRONMENT: [(&str, &str); 5] = [
    ("HOME", HOME),
    ("LANG", "C.UTF-8"),
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("TMPDIR", TMP),
    ("TZ", "UTC"),
];

/// How a path of the host is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// It can be read and executed.
    Read,
    /// It can be written, too.
    Write,
}

/// A path of the host, and where it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bind {
    pub(super) mode: Mode,
    /// Free of symbolic links: it is looked up below another root.
    pub(super) source: PathBuf,
    pub(super) target: PathBuf,
}

/// What one execution sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::executor) struct Cell {
    pub(super) exec: PathBuf,
    pub(super) arguments: Vec<OsString>,
    /// The whole environment.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// Takes what is printed: a path of the host, free of symbolic links.
    pub(super) log: PathBuf,
    pub(super) inputs: usize,
    /// In the order of their targets.
    pub(super) binds: Vec<Bind>,
}

impl Cell {
    /// What an invocation may see, and nothing else.
    ///
    /// # Errors
    ///
    /// Tells the path that is not there.
    pub(super) fn of(invocation: &Invocation) -> Result<Self, (PathBuf, io::Error)> {
        let Invocation { tree, inputs, outputs, directory, outbox, log, access } = invocation;
        let mut real = Real::default();
        let mut bind = |mode, path: &Path, target| {
            let source = real.of(path).map_err(|error| (path.to_owned(), error))?;
            Ok::<_, (PathBuf, io::Error)>(Bind { mode, source, target })
        };
        let own: [Bind; OWN] = [
            bind(Mode::Read, tree, COMPUTATION.into())?,
            bind(Mode::Write, outbox, OUTPUTS.into())?,
            bind(Mode::Write, directory, TMP.into())?,
        ];
        let mut binds = Vec::from(own);
        let names =
            |dir: &str, count| -> Vec<PathBuf> { (0..count).map(|at| name(dir, at)).collect() };
        let inside = names(INPUTS, inputs.len());
        for (input, name) in inputs.iter().zip(&inside) {
            binds.push(bind(Mode::Read, input, name.clone())?);
        }
        for rule in &access.rules {
            match rule {
                Rule::Read(path) => binds.push(bind(Mode::Read, path, path.clone())?),
                Rule::Write(path) => binds.push(bind(Mode::Write, path, path.clone())?),
                Rule::Network => binds.extend(resolver()),
                // The launcher has them.
                Rule::Env(_) | Rule::Device(_) => {}
            }
        }
        binds.sort_by(|a, b| a.target.cmp(&b.target));
        let outputs = names(OUTPUTS, outputs.len());
        let arguments = inside.into_iter().chain(outputs).map(PathBuf::into_os_string).collect();
        let exec = Path::new(COMPUTATION).join("exec");
        let environment = environment(access, std::env::vars_os());
        let log = real.beside(log).map_err(|error| (log.clone(), error))?;
        let inputs = inputs.len();
        Ok(Self { exec, arguments, environment, log, inputs, binds })
    }

    /// Whether it shows nothing but what every execution sees: its own directories and its inputs.
    pub(super) fn is_plain(&self) -> bool {
        self.binds.len() == self.inputs + OWN
    }

    /// Sends it to a launcher.
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut frame = Frame::default();
        frame.put(self.exec.as_os_str().as_bytes());
        frame.put_all(self.arguments.iter().map(OsString::as_os_str));
        frame.put_all(self.environment.iter().map(|(name, _)| name.as_os_str()));
        frame.put_all(self.environment.iter().map(|(_, value)| value.as_os_str()));
        frame.put(self.log.as_os_str().as_bytes());
        frame.put(&(self.inputs as u64).to_le_bytes());
        let mode = |bind: &Bind| OsStr::new(if bind.mode == Mode::Read { "r" } else { "w" });
        frame.put_all(self.binds.iter().map(mode));
        frame.put_all(self.binds.iter().map(|bind| bind.source.as_os_str()));
        frame.put_all(self.binds.iter().map(|bind| bind.target.as_os_str()));
        frame.write(to)
    }

    /// Receives the next one; `None` if there is none any more.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let Some(mut parts) = Parts::read(from)? else {
            return Ok(None);
        };
        let exec = parts.name()?.into();
        let arguments = parts.names()?;
        let environment = parts.names()?.into_iter().zip(parts.names()?).collect();
        let log = parts.name()?.into();
        let inputs = u64::from_le_bytes(parts.array()?) as usize;
        let modes = parts.names()?.into_iter();
        let modes = modes.map(|mode| if mode == "r" { Mode::Read } else { Mode::Write });
        let paths = parts.names()?.into_iter().zip(parts.names()?);
        let bind = |(mode, (source, target)): (Mode, (OsString, OsString))| Bind {
            mode,
            source: source.into(),
            target: target.into(),
        };
        let binds = modes.zip(paths).map(bind).collect();
        Ok(Some(Self { exec, arguments, environment, log, inputs, binds }))
    }
}

/// What an input or output is called in its directory.
pub(super) fn name(dir: &str, number: usize) -> PathBuf {
    Path::new(dir).join(format!("{number:02}"))
}

/// Finds the paths without symbolic links; directories of what was found are remembered.
#[derive(Debug, Default)]
struct Real(HashMap<PathBuf, PathBuf>);

impl Real {
    /// The path of what is there.
    fn of(&mut self, path: &Path) -> io::Result<PathBuf> {
        let real = self.beside(path)?;
        match fs::read_link(&real) {
            Ok(_) => real.canonicalize(),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(real),
            Err(error) => Err(error),
        }
    }

    /// The path of what has this name in the directory that is there.
    fn beside(&mut self, path: &Path) -> io::Result<PathBuf> {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        let (Some(dir), Some(name)) = (dir, path.file_name()) else {
            return path.canonicalize();
        };
        if let Some(dir) = self.0.get(dir) {
            return Ok(dir.join(name));
        }
        let real = dir.canonicalize()?;
        let found = real.join(name);
        self.0.insert(dir.to_owned(), real);
        Ok(found)
    }
}

/// Where names of hosts are looked up, if that is elsewhere than in `/etc`.
fn resolver() -> Option<Bind> {
    let source = Path::new("/etc/resolv.conf").canonicalize().ok()?;
    let elsewhere = !source.starts_with("/etc") && !source.starts_with("/usr");
    elsewhere.then(|| Bind { mode: Mode::Read, target: source.clone(), source })
}

/// The whole environment of an execution.
fn environment(
    access: &Access,
    outside: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let mut passed: Vec<_> = outside.filter(|(name, _)| access.passes(name)).collect();
    let fixed = ENVIRONMENT.map(|(name, value)| (name.into(), value.into()));
    let fixed: Vec<_> = fixed
        .into_iter()
        .filter(|(name, _)| !passed.iter().any(|(other, _)| other == name))
        .collect();
    passed.extend(fixed);
    passed.sort();
    passed
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_cell_arrives_as_it_was_sent() {
        let bind = |mode, path: &str| Bind { mode, source: path.into(), target: "/t".into() };
        let cell = Cell {
            exec: "/computation/exec".into(),
            arguments: vec!["/inputs/00".into(), "".into()],
            environment: vec![("A".into(), "b\nc".into())],
            log: "/log".into(),
            inputs: 7,
            binds: vec![bind(Mode::Read, "/a"), bind(Mode::Write, "/b")],
        };
        let mut sent = Vec::new();
        cell.write(&mut sent).unwrap();
        let mut rest = sent.as_slice();
        assert_eq!(Cell::read(&mut rest).unwrap(), Some(cell));
        assert_eq!(Cell::read(&mut rest).unwrap(), None);
        assert!(Cell::read(&mut &sent[..sent.len() - 1]).is_err());
    }

    #[test]
    fn paths_are_found_without_links() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
        fs::create_dir(at("dir")).unwrap();
        fs::write(at("dir/file"), "").unwrap();
        symlink("dir", at("to-dir")).unwrap();
        symlink("../dir/file", at("dir/to-file")).unwrap();
        let mut real = Real::default();
        for name in
            ["dir/file", "dir/to-file", "to-dir/file", "to-dir/to-file", "to-dir/../dir/file"]
        {
            assert_eq!(real.of(&at(name)).unwrap(), at("dir/file"), "{name}");
        }
        assert_eq!(real.of(&at("to-dir/..")).unwrap(), at(""));
        assert_eq!(real.of(Path::new("/")).unwrap(), Path::new("/"));
        assert!(real.of(&at("to-dir/none")).is_err());
        assert_eq!(real.beside(&at("to-dir/none")).unwrap(), at("dir/none"));
    }

    #[test]
    fn the_environment_is_the_same_everywhere_but_for_what_is_granted() {
        let rules = ["env OMP_*", "env TZ"].map(|line| line.parse().unwrap()).into();
        let outside = || {
            [("OMP_X", "4"), ("TZ", "CET"), ("SECRET", "x")]
                .map(|(name, value)| (name.into(), value.into()))
                .into_iter()
        };
        let names = |access: &Access| {
            let all = environment(access, outside()).into_iter();
            all.map(|(name, _)| name.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(names(&Access::default()), ["HOME", "LANG", "PATH", "TMPDIR", "TZ"]);
        let access = Access { rules };
        assert_eq!(names(&access), ["HOME", "LANG", "OMP_X", "PATH", "TMPDIR", "TZ"]);
        assert!(environment(&access, outside()).contains(&("TZ".into(), "CET".into())));
    }
}
