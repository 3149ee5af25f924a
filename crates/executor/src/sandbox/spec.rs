//! The specification of a sandbox: the files that one execution sees. A value, made of an invocation, carried out by a
//! launcher.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::io::Errno;

use super::SandboxError;
use super::launcher_processes::{FrameBytes, Parts, below};
use crate::invocation::{InputFile, Invocation, VerifiedPath};
use ce_files::walk::{GrantError, TrustedLinks, open_granted};
use ce_model::access::{Access, Rule};

/// The path of the computation's directory in the sandbox.
pub const COMPUTATION: &str = "/computation";
/// The directory of the inputs in the sandbox, named by number and suffix.
pub const INPUTS: &str = "/inputs";
/// The directory of the outputs in the sandbox, named likewise.
pub const OUTPUTS: &str = "/outputs";
/// The working directory, which is all that can be written else.
pub(super) const TMP: &str = "/tmp";
/// The variable that names the kind of a terminal.
const TERM: &str = "TERM";
/// An empty directory.
pub(crate) const HOME: &str = "/home/compeval";

/// The number of directories of every execution: the computation's, the outbox, and the working
/// directory.
const OWN: usize = 3;

/// The environment, without the variables that `access` passes on.
const ENVIRONMENT: [(&str, &str); 5] = [
    ("HOME", HOME),
    ("LANG", "C.UTF-8"),
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("TMPDIR", TMP),
    ("TZ", "UTC"),
];

/// The access to a path of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BindMode {
    /// It can be read and executed.
    Read,
    /// It can be written, too.
    Write,
    /// The same of a directory that only the execution uses while it runs: it is the owner on the disk.
    Own,
}

impl BindMode {
    /// Returns the letter by which it is sent to a launcher.
    fn letter(self) -> &'static OsStr {
        OsStr::new(match self {
            Self::Read => "r",
            Self::Write => "w",
            Self::Own => "o",
        })
    }
}

/// A path of the host, and the path at which it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bind {
    pub(super) mode: BindMode,
    /// Free of symbolic links: it is looked up below another root without following links.
    pub(super) source: PathBuf,
    /// The file or directory that must be there, if it is known.
    pub(super) id: Option<(u64, u64)>,
    pub(super) target: PathBuf,
}

/// The mount point of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InputPoint {
    pub(super) name: OsString,
    pub(super) is_dir: bool,
}

impl InputPoint {
    fn from_input(input: &InputFile) -> Self {
        Self { name: input.name.clone().into(), is_dir: input.digest.is_directory() }
    }

    /// Its path in a sandbox.
    pub(super) fn path(&self) -> PathBuf {
        Path::new(INPUTS).join(&self.name)
    }
}

/// Everything that one execution sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SandboxSpec {
    pub(super) exec: PathBuf,
    pub(super) arguments: Vec<OsString>,
    /// The whole environment.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// The directory in which the log is made.
    pub(super) stage: VerifiedPath,
    /// The name of the log.
    pub(super) log: OsString,
    /// The terminal that it has in place of the log, as a path of the host.
    pub(super) terminal: Option<PathBuf>,
    /// The mount points of the inputs, in order.
    pub(super) inputs: Vec<InputPoint>,
    /// The number of the input that is the root, in place of the host's programs and libraries.
    pub(super) root: Option<usize>,
    /// In the order of their targets.
    pub(super) binds: Vec<Bind>,
}

impl SandboxSpec {
    /// Specifies exactly the files that an invocation may see. Granted paths are followed now, by links that no
    /// computation can have made.
    pub(crate) fn from_invocation(invocation: &Invocation) -> Result<Self, SandboxError> {
        let Invocation { tree, inputs, outputs, work, outbox, stage, log, access, .. } = invocation;
        let own: [Bind; OWN] = [
            Bind::verified(BindMode::Read, tree, COMPUTATION.into()),
            Bind::verified(BindMode::Own, outbox, OUTPUTS.into()),
            Bind::verified(BindMode::Own, work, TMP.into()),
        ];
        let mut binds = Vec::from(own);
        let placed = |input: &&InputFile| input.at.is_none();
        let root = access.root().map(|label| inputs[..label.number].iter().filter(placed).count());
        let points = inputs.iter().filter(placed).map(InputPoint::from_input).collect();
        for input in inputs {
            let target = input.inside(Path::new(INPUTS));
            binds.push(Bind::verified(BindMode::Read, &input.file, target));
        }
        binds.extend(placed_outputs(invocation)?);
        binds.extend(granted_binds(access)?);
        // The directory of the call has its path of the host, where others than this execution find it, too.
        if let Some(own) = &invocation.directory {
            binds.push(Bind::verified(BindMode::Write, own, own.path.clone()));
        }
        binds.sort_by(|a, b| a.target.cmp(&b.target));
        let mut arguments: Vec<OsString> = Vec::new();
        arguments.extend(inputs.iter().map(|it| it.inside(Path::new(INPUTS)).into()));
        arguments.extend(outputs.iter().map(|it| it.inside(Path::new(OUTPUTS)).into()));
        let mut exec = Path::new(COMPUTATION).join(invocation.program.file());
        let mut environment = environment(access, inputs, std::env::vars_os());
        for (name, value) in invocation.variables(Some([INPUTS, OUTPUTS].map(Path::new))) {
            environment.retain(|(other, _)| *other != name);
            environment.extend(value.map(|value| (name, value)));
        }
        let mut terminal = None;
        if let Some(inspection) = &invocation.inspection {
            let mut words = inspection.command.iter().cloned();
            exec = words.next().unwrap_or_default().into();
            arguments = words.collect();
            terminal.clone_from(&inspection.terminal);
            environment.extend(std::env::var_os(TERM).map(|name| (TERM.into(), name)));
        }
        Ok(Self {
            exec,
            arguments,
            environment,
            stage: stage.clone(),
            log: log.into(),
            terminal,
            inputs: points,
            root,
            binds,
        })
    }

    /// Whether it shows nothing but what every execution sees: its own directories and its inputs.
    pub(super) fn is_plain(&self) -> bool {
        self.binds.len() == self.inputs.len() + OWN && self.root.is_none()
    }

    /// The input that is the root.
    pub(super) fn root(&self) -> Option<&Bind> {
        let target = self.inputs.get(self.root?)?.path();
        self.binds.iter().find(|bind| bind.target == target)
    }

    /// Returns the command that is executed, with its output in the log.
    pub(super) fn command(&self, log: File) -> io::Result<Command> {
        let again = log.try_clone()?;
        let mut command = Command::new(&self.exec);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(again);
        Ok(command)
    }

    /// The log, as a path of the host.
    pub(crate) fn log(&self) -> PathBuf {
        self.stage.path.join(&self.log)
    }

    /// Sends it to a launcher.
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut frame = FrameBytes::default();
        frame.put(self.exec.as_os_str().as_bytes());
        frame.put_all(self.arguments.iter().map(OsString::as_os_str));
        frame.put_all(self.environment.iter().map(|(name, _)| name.as_os_str()));
        frame.put_all(self.environment.iter().map(|(_, value)| value.as_os_str()));
        frame.put(self.stage.path.as_os_str().as_bytes());
        frame.put(&bytes(Some(self.stage.id)));
        frame.put(self.log.as_bytes());
        frame.put(self.terminal.iter().next().map_or(&[][..], |it| it.as_os_str().as_bytes()));
        frame.put_all(self.inputs.iter().map(|point| point.name.as_os_str()));
        frame.put(&self.inputs.iter().map(|point| u8::from(point.is_dir)).collect::<Vec<_>>());
        frame.put(self.root.map(|number| number.to_string()).unwrap_or_default().as_bytes());
        frame.put_all(self.binds.iter().map(|bind| bind.mode.letter()));
        frame.put_all(self.binds.iter().map(|bind| bind.source.as_os_str()));
        let ids: Vec<Vec<u8>> = self.binds.iter().map(|bind| bytes(bind.id)).collect();
        frame.put_all(ids.iter().map(|id| OsStr::from_bytes(id)));
        frame.put_all(self.binds.iter().map(|bind| bind.target.as_os_str()));
        frame.write(to)
    }

    /// Receives the next specification; `None` at the end.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let Some(mut parts) = Parts::read(from)? else {
            return Ok(None);
        };
        let exec = parts.name()?.into();
        let arguments = parts.names()?;
        let environment = parts.names()?.into_iter().zip(parts.names()?).collect();
        let path = parts.name()?.into();
        let id = read_id(&parts.bytes()?)?.ok_or(io::ErrorKind::InvalidData)?;
        let stage = VerifiedPath { path, id };
        let log = parts.name()?;
        let terminal = Some(parts.name()?).filter(|it| !it.is_empty()).map(PathBuf::from);
        let points = parts.names()?.into_iter().zip(parts.bytes()?);
        let inputs =
            points.map(|(name, is_dir)| InputPoint { name, is_dir: is_dir != 0 }).collect();
        let root = parts.name()?.to_str().and_then(|number| number.parse().ok());
        let modes = parts.names()?.into_iter();
        let (sources, ids, targets) = (parts.names()?, parts.names()?, parts.names()?);
        let mut binds = Vec::with_capacity(targets.len());
        for (((mode, source), id), target) in modes.zip(sources).zip(ids).zip(targets) {
            binds.push(Bind {
                mode: match mode.as_bytes() {
                    b"r" => BindMode::Read,
                    b"w" => BindMode::Write,
                    b"o" => BindMode::Own,
                    _ => return Err(io::ErrorKind::InvalidData.into()),
                },
                source: source.into(),
                id: read_id(id.as_bytes())?,
                target: target.into(),
            });
        }
        Ok(Some(Self { exec, arguments, environment, stage, log, terminal, inputs, root, binds }))
    }
}

impl Bind {
    fn verified(mode: BindMode, source: &VerifiedPath, target: PathBuf) -> Self {
        Self { mode, source: source.path.clone(), id: Some(source.id), target }
    }

    /// Whether it is a directory that only the execution uses while it runs.
    pub(super) fn is_own(&self) -> bool {
        self.mode == BindMode::Own
    }
}

/// The outputs that have paths of their own, where the root has nothing.
fn placed_outputs(invocation: &Invocation) -> Result<Vec<Bind>, SandboxError> {
    let Invocation { inputs, outputs, outbox, access, .. } = invocation;
    let step = |doing: &str, path: &Path| {
        let (doing, path) = (doing.to_owned(), path.to_owned());
        move |source| SandboxError::Step { doing, path, source }
    };
    let root = access.root().and_then(|label| inputs.get(label.number));
    let paths = inputs.iter().filter_map(|input| input.at.as_ref());
    for path in paths.chain(outputs.iter().filter_map(|output| output.at.as_ref())) {
        if root.is_some_and(|root| below(&root.file.path, path).symlink_metadata().is_ok()) {
            let doing = "show something in place of what its root has at";
            return Err(step(doing, path)(Errno::EXIST.into()));
        }
    }
    let mut binds = Vec::new();
    for output in outputs {
        let Some(target) = output.at.clone() else { continue };
        let made = VerifiedPath::verify(outbox.path.join(&output.name));
        let made = made.map_err(step("find an output for", &target))?;
        binds.push(Bind::verified(BindMode::Own, &made, target));
    }
    Ok(binds)
}

/// The files of the host that `access` grants.
fn granted_binds(access: &Access) -> Result<Vec<Bind>, SandboxError> {
    let host = File::open("/").map_err(|source| SandboxError::Step {
        doing: "open".to_owned(),
        path: "/".into(),
        source,
    })?;
    let trusted = TrustedLinks::find(host.as_fd(), &access.written);
    let granted = |mode, path: &Path| -> Result<Bind, GrantError> {
        let (_, source) = open_granted(host.as_fd(), path, mode == BindMode::Write, &trusted)?;
        Ok(Bind { mode, source, id: None, target: path.to_owned() })
    };
    let mut binds = Vec::new();
    for rule in &access.rules {
        match rule {
            Rule::Read(path) => binds.push(granted(BindMode::Read, path)?),
            Rule::Write(path) => binds.push(granted(BindMode::Write, path)?),
            Rule::Network => binds.extend(resolver(access.root().is_some())),
            // The launcher has the devices. The others are in the environment, and in the root.
            Rule::Device(_)
            | Rule::Env(_)
            | Rule::Path(_)
            | Rule::Set { .. }
            | Rule::At { .. }
            | Rule::Root(_)
            | Rule::Suspend => {}
        }
    }
    Ok(binds)
}

/// The device and inode of a file as they are sent: nothing if they are not known.
fn bytes(id: Option<(u64, u64)>) -> Vec<u8> {
    id.map(|(device, inode)| [device.to_le_bytes(), inode.to_le_bytes()].concat())
        .unwrap_or_default()
}

/// Reads the same.
fn read_id(bytes: &[u8]) -> io::Result<Option<(u64, u64)>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (device, inode) = bytes.split_at_checked(8).ok_or(io::ErrorKind::InvalidData)?;
    match (device.try_into(), inode.try_into()) {
        (Ok(device), Ok(inode)) => {
            Ok(Some((u64::from_le_bytes(device), u64::from_le_bytes(inode))))
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The host's configuration of the name resolver: in a root of its own, and where `/etc` has a link to it.
fn resolver(has_root: bool) -> Vec<Bind> {
    let mut binds = Vec::new();
    for name in ["/etc/resolv.conf", "/etc/hosts"] {
        let Ok(source) = Path::new(name).canonicalize() else { continue };
        let target = if has_root { name.into() } else { source.clone() };
        if has_root || !(target.starts_with("/etc") || target.starts_with("/usr")) {
            binds.push(Bind { mode: BindMode::Read, source, id: None, target });
        }
    }
    binds
}

/// The whole environment of an execution.
fn environment(
    access: &Access,
    inputs: &[InputFile],
    outside: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let mut passed: Vec<_> = outside.filter(|(name, _)| access.passes(name)).collect();
    for (name, value) in ENVIRONMENT {
        if !passed.iter().any(|(other, _)| other == name) {
            passed.push((name.into(), value.into()));
        }
    }
    let path = access.path().filter_map(|label| inputs.get(label.number));
    let path = path.map(|input| input.inside(Path::new(INPUTS)).join("bin"));
    let mut path: Vec<OsString> = path.map(PathBuf::into_os_string).collect();
    if !path.is_empty()
        && let Some((_, value)) = passed.iter_mut().find(|(name, _)| name == "PATH")
    {
        path.push(mem::take(value));
        *value = path.join(OsStr::new(":"));
    }
    passed.sort();
    passed
}

#[cfg(test)]
mod tests {
    use super::super::root::{HARDWARE, PROGRAMS};
    use super::*;

    fn bind(mode: BindMode, id: Option<(u64, u64)>) -> Bind {
        Bind { mode, source: "/a".into(), id, target: "/t".into() }
    }

    #[test]
    fn no_file_has_a_path_of_its_own_where_a_sandbox_shows_something() {
        let own = [COMPUTATION, INPUTS, OUTPUTS, TMP, HOME, "/dev", "/proc"];
        for shown in PROGRAMS.iter().chain(&HARDWARE).chain(&own) {
            let rule = Rule::parse(&format!("at {shown} x"), &["x".to_owned()], &[]).unwrap();
            assert!(Access::new(vec![rule]).taken().is_some(), "{shown}");
        }
    }

    #[test]
    fn a_spec_arrives_as_it_was_sent() {
        let spec = SandboxSpec {
            exec: "/computation/exec".into(),
            arguments: vec!["/inputs/00".into(), "".into()],
            environment: vec![("A".into(), "b\nc".into())],
            stage: VerifiedPath { path: "/stage".into(), id: (1, u64::MAX) },
            log: "log".into(),
            terminal: Some("/dev/pts/1".into()),
            inputs: [("00.svg", false), ("01", true)]
                .map(|(name, is_dir)| InputPoint { name: name.into(), is_dir })
                .into(),
            root: Some(1),
            binds: vec![
                bind(BindMode::Read, None),
                bind(BindMode::Write, Some((2, 3))),
                bind(BindMode::Own, Some((4, 5))),
            ],
        };
        let mut sent = Vec::new();
        spec.write(&mut sent).unwrap();
        let mut rest = sent.as_slice();
        assert_eq!(SandboxSpec::read(&mut rest).unwrap(), Some(spec));
        assert_eq!(SandboxSpec::read(&mut rest).unwrap(), None);
        assert!(SandboxSpec::read(&mut &sent[..sent.len() - 1]).is_err());
    }

    #[test]
    fn the_environment_is_fixed_except_for_granted_variables() {
        let rules = ["OMP_*", "TZ"].map(|name| Rule::Env(name.to_owned())).into();
        let outside = || {
            [("OMP_X", "4"), ("TZ", "CET"), ("SECRET", "x")]
                .map(|(name, value)| (name.into(), value.into()))
                .into_iter()
        };
        let names = |access: &Access| {
            let all = environment(access, &[], outside()).into_iter();
            all.map(|(name, _)| name.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(names(&Access::default()), ["HOME", "LANG", "PATH", "TMPDIR", "TZ"]);
        let access = Access::new(rules);
        assert_eq!(names(&access), ["HOME", "LANG", "OMP_X", "PATH", "TMPDIR", "TZ"]);
        assert!(environment(&access, &[], outside()).contains(&("TZ".into(), "CET".into())));
    }
}
