//! Probes of isolation: a computation tries to break out of its sandbox in many ways.
//!
//! This program is the computation. `attempt` and `kernel` have the attempts that it makes inside,
//! and `targets` the things outside that they try to reach.

mod attempt;
mod kernel;
mod targets;

use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::net::TcpListener;
use std::num::NonZeroUsize;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::sync::mpsc::channel;

use self::attempt::{AS_ROOT, ATTEMPTS};
use self::targets::{Targets, listed};
use super::{
    CallProgram, Completion, Ended, Executor, Failed, InputFile, Invocation, Isolation, Local,
    Sandbox, VerifiedPath,
};
use ce_model::diagnosis::Diagnosis;
use ce_model::digest::Digest;
use ce_model::exit::Explain;
use ce_model::task::access::{Access, Rule};
use ce_model::words::quoted_path;

/// The hidden first argument with which this program tries to break out.
pub const BREAK_OUT: &str = "--break-out";

/// The directory of the computation is not an export, so it has no tree id.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// Makes the attempts, in the sandbox. The arguments are those of an `exec`.
pub fn break_out(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(input), Some(output)) = (arguments.next(), arguments.next()) else {
        return ExitCode::FAILURE;
    };
    let done = fs::File::create(output).and_then(|mut out| {
        let targets = Targets::parse(&fs::read_to_string(input)?);
        attempt::all(&targets.ok_or(io::ErrorKind::InvalidData)?, &mut out)
    });
    done.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

/// Tries to break out in each way.
pub fn break_outs() -> impl Iterator<Item = Diagnosis> {
    std::iter::once_with(diagnose).flatten()
}

fn diagnose() -> Vec<Diagnosis> {
    let sandbox = Sandbox::default();
    if !sandbox.is_possible() {
        let error = sandbox.refused();
        let cause = error.and_then(Error::source).map(|cause| format!(": {cause}"));
        let found = error.map(ToString::to_string).unwrap_or_default() + &cause.unwrap_or_default();
        let means = "computations can read and change everything that you can; records say so";
        let hint = error.and_then(Explain::hint);
        let hint = hint.unwrap_or_else(|| "doc/isolation.md has more".to_owned());
        return vec![Diagnosis::ok("isolation", found).note(means).hint(hint)];
    }
    let possible = Diagnosis::ok("isolation", "computations can be isolated");
    let mut found = match Trial::new().and_then(|trial| trial.run(sandbox)) {
        Ok(found) => found,
        Err(error) => {
            let means = "it is not known whether isolation holds";
            return vec![Diagnosis::ok("isolation", error.to_string()).note(means)];
        }
    };
    found.insert(0, possible);
    found
}

/// A private directory with a computation that tries to break out, and a process for it to reach.
#[derive(Debug)]
struct Trial {
    dir: PathBuf,
    /// A process outside of the sandbox.
    victim: Child,
}

impl Trial {
    fn new() -> io::Result<Self> {
        let dir =
            std::env::temp_dir().canonicalize()?.join(format!("ce-doctor-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&dir)?;
        match Command::new("sleep").arg("600").spawn() {
            Ok(victim) => Ok(Self { dir, victim }),
            Err(error) => {
                drop(fs::remove_dir(dir));
                Err(error)
            }
        }
    }

    /// Executes the attempts, and returns the findings.
    fn run(mut self, sandbox: Sandbox) -> io::Result<Vec<Diagnosis>> {
        let at = |name: &str| self.dir.join(name);
        for name in ["tree", "work", "out", "secret"] {
            fs::create_dir(at(name))?;
        }
        fs::write(at("secret/file"), "secret\n")?;
        let program = std::env::current_exe()?.canonicalize()?;
        let program_word = quoted_path(&program);
        fs::write(at("tree/exec"), format!("#!/bin/sh\nexec {program_word} {BREAK_OUT} \"$@\"\n"))?;
        fs::set_permissions(at("tree/exec"), Permissions::from_mode(0o700))?;
        let tcp = TcpListener::bind("127.0.0.1:0")?;
        let socket = format!("ce-doctor-{}", std::process::id());
        let unix = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&socket)?)?;
        let targets = Targets {
            secret: at("secret/file"),
            home: std::env::home_dir().unwrap_or_default(),
            program: program.clone(),
            process: i32::try_from(self.victim.id()).unwrap_or_default(),
            port: tcp.local_addr()?.port(),
            socket,
            mark: format!("600.{}", std::process::id()),
            namespaces: targets::namespaces(),
            key: kernel::decoy(),
        };
        fs::write(at("facts"), targets.text())?;
        let isolated = self.execute(sandbox, targets.text().as_bytes(), program)?;
        drop((tcp, unix));
        let text = fs::read_to_string(at("out/00")).unwrap_or_default();
        let mut possible: Vec<Option<String>> = text
            .lines()
            .map(|line| Some(line.to_owned()).filter(|line| !line.is_empty()))
            .collect();
        if !isolated || possible.len() != ATTEMPTS.len() + 1 {
            return Err(io::Error::other("no computation can be isolated to try it"));
        }
        let left = possible.remove(0).or_else(|| survivor(&targets.mark));
        if !matches!(self.victim.try_wait(), Ok(None)) {
            possible[ATTEMPTS.iter().position(|it| it.0 == "signals").unwrap_or(0)] =
                Some("a process was ended".to_owned());
        }
        let is_filtered = ATTEMPTS
            .iter()
            .zip(&possible)
            .any(|(attempt, possible)| attempt.0 == "system calls" && possible.is_none());
        let mut found = Vec::with_capacity(ATTEMPTS.len() + 1);
        for ((name, held, _), possible) in ATTEMPTS.iter().zip(possible) {
            found.push(finding(name, held, possible, is_filtered));
        }
        found.push(finding("left behind", "no process can be", left, is_filtered));
        Ok(found)
    }

    /// Executes the attempts in the sandbox. Returns whether they were isolated.
    fn execute(&self, sandbox: Sandbox, targets: &[u8], program: PathBuf) -> io::Result<bool> {
        let at = |name: &str| self.dir.join(name);
        let verified = |name: &str| VerifiedPath::of(at(name));
        let invocation = Invocation {
            call: String::new(),
            storage: self.dir.clone(),
            tree: verified("tree")?,
            tree_id: EMPTY_TREE.parse().map_err(io::Error::other)?,
            inputs: vec![InputFile { file: verified("facts")?, digest: Digest::of(targets) }],
            outputs: vec![at("out/00")],
            program: CallProgram::Exec,
            directory: None,
            work: verified("work")?,
            outbox: verified("out")?,
            stage: verified("")?,
            log: "log".to_owned(),
            access: Access { rules: vec![Rule::Read(program)] },
            isolate: true,
            limit: None,
            visible_gpus: Vec::new(),
            exclusive: false,
            inspection: None,
            span: None,
        };
        let (sender, ends) = channel();
        let local = Local::new(NonZeroUsize::MIN, Some(sandbox));
        local.submit(invocation, Completion::new(move |end| drop(sender.send(end))));
        let end = ends.recv();
        local.finish();
        Ok(match end {
            Ok(Ok(Ended::Done(usage) | Ended::Failed(Failed { usage, .. }))) => {
                usage.isolation == Isolation::Namespaces
            }
            _ => false,
        })
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let _gone = self.victim.kill();
        let _gone = self.victim.wait();
        let _gone = fs::remove_dir_all(&self.dir);
    }
}

/// Attempts that only a filter of system calls prevents.
const FILTERED: [&str; 4] = ["keyrings", "socket kinds", "system calls", "nesting"];

fn finding(
    name: &'static str,
    held: &str,
    possible: Option<String>,
    is_filtered: bool,
) -> Diagnosis {
    match possible {
        None => Diagnosis::ok(name, held),
        // A container that covers parts of its own `/proc` allows no other one.
        Some(what) if name == "other processes" && what.starts_with("names") => {
            Diagnosis::ok(name, what).note("nothing can be done to them, and less is hidden")
        }
        Some(what) if what.starts_with(AS_ROOT) => Diagnosis::ok(name, what)
            .note("what only root may read can be read, if it is made in /etc or /usr meanwhile")
            .hint("run computations as another user, or on a file system with mapped mounts, such as ext4, XFS or Btrfs"),
        Some(what) if name == "control groups" => {
            Diagnosis::ok(name, what).note("nothing can be done to them, and less is hidden")
        }
        Some(what) if !is_filtered && FILTERED.contains(&name) => Diagnosis::ok(name, what)
            .note("a computation can reach more of the kernel; other files are out of its reach")
            .hint("use a kernel with CONFIG_SECCOMP_FILTER, on x86, Arm or RISC-V"),
        Some(what) => Diagnosis::ok(name, what)
            .broken("a computation can do more than doc/isolation.md says")
            .hint("report this to the developers, with the version of the kernel"),
    }
}

/// Looks for a process that has outlived the sandbox.
fn survivor(mark: &str) -> Option<String> {
    let lives = |dir: &Path| {
        let words = fs::read(dir.join("cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())
    };
    let found = listed("/proc").find(|dir| lives(dir));
    found.map(|dir| format!("{} still runs", dir.display()))
}
