//! An execution before it is `exec`: a process that the launcher has forked builds its root, gives up
//! all privileges, and becomes `exec`.

use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::Mode;
use rustix::process::{ioctl_tiocsctty, setpgid, setsid, umask};
use rustix::thread::UnshareFlags;

use super::mounts::{OLD, StepError, VERIFY, at, below};
use super::process::unshare;
use super::root::{Ready, SandboxUser, enter};
use super::spec::{SandboxSpec, TMP};
use crate::files::{open_log, open_verified};

/// What others may not do with the mount points of an execution.
pub(super) const MASK: Mode = Mode::WGRP.union(Mode::WOTH);

/// Becomes `exec`. Returns only if that is not possible, and why.
pub(super) fn begin(root: &Ready, spec: &SandboxSpec) -> StepError {
    match prepare(root, spec) {
        Ok(mut command) => at("start", &spec.exec)(command.exec()),
        Err(failed) => failed,
    }
}

fn prepare(root: &Ready, spec: &SandboxSpec) -> Result<Command, StepError> {
    let terminal = spec.terminal.as_deref().map(terminal).transpose()?;
    if terminal.is_none() {
        setpgid(None, None).map_err(at("make a process group", ""))?;
    }
    unshare(UnshareFlags::NEWNS | UnshareFlags::NEWIPC)?;
    let stage = open_verified(&below(OLD, &spec.stage.path), spec.stage.id)
        .map_err(at(VERIFY, &spec.stage.path))?;
    let open = |stage: &OwnedFd| open_log(stage, &spec.log).map_err(at("write", spec.log()));
    // As this process has it, to make it, and then as that of the execution, which may open it again by its descriptor.
    let mut log = open(&stage)?;
    let (identity, stage) = SandboxUser::find(root, stage);
    if let SandboxUser::Nobody(nobody) = identity {
        log = open(&stage)?;
        terminal.as_ref().map_or(Ok(()), |terminal| nobody.give(terminal))?;
    }
    let again = log.try_clone().map_err(at("write", spec.log()))?;
    drop(stage);
    // Mount points are seen by the execution, whatever files of its own are to be.
    let mask = umask(MASK);
    enter(root.complete(spec, identity)?, TMP)?;
    umask(mask);
    identity.assume()?;
    let mut command = Command::new(&spec.exec);
    command
        .args(&spec.arguments)
        .env_clear()
        .envs(spec.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(again);
    if let Some(terminal) = terminal {
        let clone = || terminal.try_clone().map_err(at("open", "the terminal"));
        command.stdin(clone()?).stdout(clone()?).stderr(clone()?);
    }
    Ok(command)
}

/// Makes a terminal of the host that of this process, in a session and a process group of its own.
fn terminal(path: &Path) -> Result<File, StepError> {
    setsid().map_err(at("make a session", ""))?;
    let path = below(OLD, path);
    let terminal =
        OpenOptions::new().read(true).write(true).open(&path).map_err(at("open", &path))?;
    ioctl_tiocsctty(&terminal).map_err(at("control", path))?;
    Ok(terminal)
}
