//! An execution before it is `exec`: a process that the launcher has forked builds its root, gives up
//! all privileges, and becomes `exec`.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::setpgid;
use rustix::thread::{CapabilitySet, UnshareFlags};

use super::cell::{Cell, TMP};
use super::launcher::unshare;
use super::mounts::{Failed, OLD, VERIFY, at, below};
use super::privileges;
use super::root::{Ready, enter};
use crate::executor::open_log;

/// Becomes `exec`. Returns only if that is not possible, and why.
pub(super) fn begin(root: &Ready, cell: &Cell) -> Failed {
    match prepare(root, cell) {
        Ok(mut command) => at("start", &cell.exec)(command.exec()),
        Err(failed) => failed,
    }
}

fn prepare(root: &Ready, cell: &Cell) -> Result<Command, Failed> {
    setpgid(None, None).map_err(at("make a process group", ""))?;
    unshare(UnshareFlags::NEWNS | UnshareFlags::NEWIPC)?;
    let stage = cell.stage.open_at(&below(OLD, &cell.stage.path));
    let stage = stage.map_err(at(VERIFY, &cell.stage.path))?;
    let log = open_log(&stage, &cell.log).map_err(at("write", cell.log()))?;
    let again = log.try_clone().map_err(at("write", cell.log()))?;
    drop(stage);
    enter(root.complete(cell)?, TMP)?;
    privileges::give_up(CapabilitySet::empty())?;
    let mut command = Command::new(&cell.exec);
    command
        .args(&cell.arguments)
        .env_clear()
        .envs(cell.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(again);
    Ok(command)
}
