//! Why an execution failed that would not have failed outside: a path that is not shown to it.

use std::path::{Path, PathBuf};

use super::mounts::below;
use super::spec::{COMPUTATION, INPUTS, Mode, OUTPUTS, SandboxSpec, TMP};
use super::system::{HARDWARE, PROGRAMS};
use crate::interpreter::{installation, links};
use ce_model::task::access::{Access, Rule};

/// Paths under which every execution has something of its own.
const OWN: [&str; 4] = ["/proc", COMPUTATION, INPUTS, OUTPUTS];

/// Private memory of each execution, whatever the host has under this name.
const MEMORY: &str = "/dev/shm";

/// The names below `/dev` that every execution has.
const DEVICES: [&str; 10] =
    ["null", "zero", "full", "random", "urandom", "fd", "stdin", "stdout", "stderr", "shm"];

/// Whether a sandbox shows a path of the host: it is one of the system's, or `access` grants it.
pub fn is_shown(access: &Access, path: &Path) -> bool {
    let granted = access.rules.iter().filter_map(|rule| match rule {
        Rule::Read(path) | Rule::Write(path) | Rule::Device(path) => Some(path.as_path()),
        Rule::Network | Rule::Env(_) | Rule::Root(_) | Rule::Path(_) | Rule::Suspend => None,
    });
    let programs = if access.root().is_none() { &PROGRAMS[..] } else { &[] };
    let system = programs.iter().chain(&HARDWARE).map(Path::new);
    system.chain(granted).any(|part| path.starts_with(part))
}

/// The lines of `access` that would grant an interpreter that exists outside only, and what its links lead
/// to: the python of a virtual environment is a link to that of another directory.
pub(super) fn installations(spec: &SandboxSpec, interpreter: &Path) -> Vec<Rule> {
    let mut rules: Vec<PathBuf> = Vec::new();
    for path in links(interpreter) {
        let granted = rules.iter().any(|rule| path.starts_with(rule));
        if !granted && rule(spec, &path, false, &Path::exists).is_some() {
            rules.push(installation(&path).to_owned());
        }
    }
    rules.into_iter().map(Rule::Read).collect()
}

/// The lines of `access` that would grant what the end of a log complains about: paths that exist
/// outside only, or cannot be written.
pub(super) fn lacking(spec: &SandboxSpec, log: &str, exists: impl Fn(&Path) -> bool) -> Vec<Rule> {
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

/// Whether an execution has a root of its own that has such a path.
fn is_in_root(spec: &SandboxSpec, path: &Path) -> bool {
    spec.root().is_some_and(|root| below(&root.source, path).symlink_metadata().is_ok())
}

/// The line that would grant a path, if that is what lacks.
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
    let written = bound.is_some_and(|bind| bind.mode == Mode::Write) || path.starts_with(MEMORY);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::VerifiedPath;
    use crate::sandbox::spec::Bind;

    fn lines(log: &str) -> Vec<String> {
        let bind = |mode, path: &str| {
            let (source, target) = (path.into(), path.into());
            Bind { mode, source, id: None, target }
        };
        let spec = SandboxSpec {
            exec: "/computation/exec".into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            stage: VerifiedPath { path: "/".into(), id: (0, 0) },
            log: "log".into(),
            terminal: None,
            inputs: vec![false],
            root: None,
            binds: vec![
                bind(Mode::Read, "/data"),
                bind(Mode::Write, "/data/out"),
                bind(Mode::Write, TMP),
            ],
        };
        let exists = |path: &Path| !path.starts_with("/nowhere");
        lacking(&spec, log, exists).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_path_that_exists_outside_only_could_be_granted() {
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
    fn a_path_that_cannot_be_written_could_be_granted() {
        let log = |path: &str| format!("touch: cannot touch '{path}': Read-only file system");
        assert_eq!(lines(&log("/data/x")), ["write /data/x"]);
        assert_eq!(lines(&log("/data/out/x")), [""; 0]);
        assert_eq!(lines(&log("/computation/x")), [""; 0]);
    }
}
