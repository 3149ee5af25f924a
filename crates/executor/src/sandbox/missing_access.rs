//! The reason why an execution failed that would not have failed outside: a path that is not shown to it, such as its
//! interpreter's.

use std::path::{Component, Path, PathBuf};
use std::{env, fs};

use super::launcher_processes::below;
use super::root::{HARDWARE, PROGRAMS};
use super::spec::{BindMode, COMPUTATION, INPUTS, OUTPUTS, SandboxSpec, TMP};
use crate::invocation::{HEAD, TAIL, head, tail};
use ce_model::access::{Access, Rule};

/// Paths under which every execution has something of its own.
const OWN: [&str; 4] = ["/proc", COMPUTATION, INPUTS, OUTPUTS];

/// Private memory of each execution, regardless of the host's directory of this name.
const MEMORY: &str = "/dev/shm";

/// The names below `/dev` that every execution has.
const DEVICES: [&str; 10] =
    ["null", "zero", "full", "random", "urandom", "fd", "stdin", "stdout", "stderr", "shm"];

/// Whether a sandbox shows a path of the host: it is one of the system's, or `access` grants it.
pub fn is_shown(access: &Access, path: &Path) -> bool {
    let granted = access.rules.iter().filter_map(|rule| match rule {
        Rule::Read(path) | Rule::Write(path) | Rule::Device(path) => Some(path.as_path()),
        Rule::Network
        | Rule::Env(_)
        | Rule::Set { .. }
        | Rule::At { .. }
        | Rule::Root(_)
        | Rule::Path(_)
        | Rule::Suspend => None,
    });
    let programs = if access.root().is_none() { &PROGRAMS[..] } else { &[] };
    let system = programs.iter().chain(&HARDWARE).map(Path::new);
    system.chain(granted).any(|part| path.starts_with(part))
}

/// Returns the lines that may be missing in `access`, as far as the log shows.
pub(crate) fn lacking(spec: &SandboxSpec) -> Vec<Rule> {
    let log = tail(&spec.log(), TAIL).unwrap_or_default();
    lacking_in(spec, &String::from_utf8_lossy(&log), Path::exists)
}

/// Returns the lines of `access` that would grant the interpreter of a script that could not be started.
pub(crate) fn lacking_interpreter(spec: &SandboxSpec, script: &Path) -> Vec<Rule> {
    let line = head(script, HEAD).unwrap_or_default();
    // A root of its own has its own interpreters.
    let named = interpreter(&line).filter(|_| spec.root.is_none());
    named.map(|path| installations(spec, &path)).unwrap_or_default()
}

/// The lines of `access` that would grant an interpreter that exists outside only, and what its links lead to: the
/// python of a virtual environment is a link to a python elsewhere.
fn installations(spec: &SandboxSpec, interpreter: &Path) -> Vec<Rule> {
    let mut rules: Vec<PathBuf> = Vec::new();
    for path in links(interpreter) {
        let granted = rules.iter().any(|rule| path.starts_with(rule));
        if !granted && rule(spec, &path, false, &Path::exists).is_some() {
            rules.push(installation(&path).to_owned());
        }
    }
    rules.into_iter().map(Rule::Read).collect()
}

/// The lines of `access` that would grant paths that the end of a log complains about: paths that exist outside only,
/// or cannot be written.
fn lacking_in(spec: &SandboxSpec, log: &str, exists: impl Fn(&Path) -> bool) -> Vec<Rule> {
    let mut rules = Vec::new();
    for line in log.lines() {
        let read_only = line.contains("Read-only file system");
        for word in line.split(|c: char| c.is_whitespace() || "'\"`:;,()[]{}<>=‘’“”".contains(c))
        {
            let path = Path::new(word.trim_end_matches(['.', '!', '?']));
            let rule = if !path.is_absolute() || path == Path::new("/") {
                None
            } else {
                rule(spec, path, read_only, &exists)
            };
            rules.extend(rule.filter(|rule| !rules.contains(rule)));
        }
    }
    rules
}

/// Whether an execution has a root of its own that contains a path.
fn is_in_root(spec: &SandboxSpec, path: &Path) -> bool {
    spec.root().is_some_and(|root| below(&root.source, path).symlink_metadata().is_ok())
}

/// The line that would grant a path, if access to it is missing.
fn rule(
    spec: &SandboxSpec,
    path: &Path,
    read_only: bool,
    exists: &impl Fn(&Path) -> bool,
) -> Option<Rule> {
    let deepest = spec.binds.iter().filter(|bind| path.starts_with(&bind.target));
    let bound = deepest.max_by_key(|bind| bind.target.as_os_str().len());
    // The directory for temporary files shows nothing of the host's.
    let shown = bound.is_some_and(|bind| bind.target != Path::new(TMP))
        || PROGRAMS.iter().chain(&HARDWARE).chain(&OWN).any(|part| path.starts_with(part))
        || is_in_root(spec, path);
    let written = bound.is_some_and(|bind| bind.mode != BindMode::Read) || path.starts_with(MEMORY);
    let own = [COMPUTATION, INPUTS].iter().any(|part| path.starts_with(part));
    let there = |path: &Path| exists(path).then(|| path.to_owned());
    if read_only {
        // A file that is yet to be made is made in a directory.
        let place = there(path).or_else(|| there(path.parent()?))?;
        let fixed = own || place == Path::new("/") || is_in_root(spec, &place);
        return (!written && !fixed).then_some(Rule::Write(place));
    }
    match path.strip_prefix("/dev") {
        Ok(device) if !path.starts_with(MEMORY) => {
            let usual = device.as_os_str().is_empty()
                || DEVICES.iter().any(|name| device.starts_with(name));
            there(path).filter(|_| !usual && !shown).map(Rule::Device)
        }
        _ => there(path).filter(|_| !shown).map(Rule::Read),
    }
}

/// The largest number of symbolic links that are followed from an interpreter.
const MAX_LINKS: usize = 16;

/// Returns the interpreter that the first line of a script names.
pub fn interpreter(script: &[u8]) -> Option<PathBuf> {
    let line = script.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()?.split_whitespace().next().map(PathBuf::from)
}

/// Returns the path that must be granted for a program to work: the directory that it is installed in, with its libraries, or else
/// only the program. That is `/opt/venv` for `/opt/venv/bin/python`.
pub fn installation(program: &Path) -> &Path {
    let home = env::var_os("HOME").map(PathBuf::from);
    let bin = program.parent().filter(|dir| dir.ends_with("bin"));
    let prefix = bin.and_then(Path::parent).filter(|dir| dir.parent().is_some());
    let prefix = prefix.filter(|dir| home.as_deref() != Some(*dir) && dir.join("lib").is_dir());
    prefix.unwrap_or(program)
}

/// Returns a path, where it leads to if that is a symbolic link, and so on; the last one may not exist.
pub fn links(path: &Path) -> Vec<PathBuf> {
    let mut paths = vec![path.to_owned()];
    while let Some(last) = paths.last()
        && let Ok(target) = fs::read_link(last)
        && paths.len() <= MAX_LINKS
    {
        let mut next = PathBuf::new();
        for part in last.parent().unwrap_or(last).join(target).components() {
            match part {
                Component::ParentDir => drop(next.pop()),
                part => next.push(part),
            }
        }
        paths.push(next);
    }
    paths
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::spec::{Bind, InputPoint};
    use super::*;
    use crate::invocation::VerifiedPath;

    fn bind(mode: BindMode, path: &str) -> Bind {
        let (source, target) = (path.into(), path.into());
        Bind { mode, source, id: None, target }
    }

    fn lines(log: &str) -> Vec<String> {
        let spec = SandboxSpec {
            exec: "/computation/exec".into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            stage: VerifiedPath { path: "/".into(), id: (0, 0) },
            log: "log".into(),
            terminal: None,
            inputs: vec![InputPoint { name: "00".into(), is_dir: false }],
            root: None,
            binds: vec![
                bind(BindMode::Read, "/data"),
                bind(BindMode::Write, "/data/out"),
                bind(BindMode::Write, TMP),
            ],
        };
        let lacking = lacking_in(&spec, log, |path| !path.starts_with("/nowhere"));
        lacking.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_path_that_exists_only_outside_the_sandbox_is_suggested_as_access() {
        let log = "sh: 1: cannot open /home/x.csv: No such file\ncat: '/nowhere': No such file";
        assert_eq!(lines(log), ["read /home/x.csv"]);
        assert_eq!(lines("open(\"/opt/a\"), again /opt/a."), ["read /opt/a"]);
        assert_eq!(lines("no /tmp/a, no /dev/shm/b"), ["read /tmp/a", "read /dev/shm/b"]);
        assert_eq!(lines("/usr/x /data/x /inputs/00 / a/b: No such file"), [""; 0]);
        assert_eq!(
            lines("/dev/dri/card0 is missing, /dev/null is there"),
            ["device /dev/dri/card0"]
        );
    }

    #[test]
    fn a_path_that_cannot_be_written_is_suggested_as_access() {
        for (path, rule) in
            [("/data/x", Some("write /data/x")), ("/data/out/x", None), ("/computation/x", None)]
        {
            let log = format!("touch: cannot touch '{path}': Read-only file system");
            assert_eq!(lines(&log), Vec::from_iter(rule));
        }
    }

    #[test]
    fn a_script_names_its_interpreter() {
        assert_eq!(interpreter(b"#! /opt/py -u\nx"), Some("/opt/py".into()));
        assert_eq!(interpreter(b"\x7fELF"), None);
    }

    #[test]
    fn a_program_is_installed_with_its_libraries() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("bin/tool");
        assert_eq!(installation(&program), program);
        fs::create_dir(dir.path().join("lib")).unwrap();
        assert_eq!(installation(&program), dir.path());
        assert_eq!(installation(Path::new("/bin/sh")), Path::new("/bin/sh"));
    }

    #[test]
    fn links_are_followed_to_their_end_and_cycles_are_cut() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("bin")).unwrap();
        symlink("python3", at("bin/python")).unwrap();
        symlink("../base/python3", at("bin/python3")).unwrap();
        let found = links(&at("bin/python"));
        assert_eq!(found, ["bin/python", "bin/python3", "base/python3"].map(at));
        symlink("round", at("round")).unwrap();
        assert_eq!(links(&at("round")).len(), MAX_LINKS + 1);
    }
}
