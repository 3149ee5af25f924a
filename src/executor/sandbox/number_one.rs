//! Number one of a process namespace: builds the root, starts `exec`, and reaps.
//!
//! It ends when nothing else is left, so what every process used is counted: the kernel would end
//! what is left, too, and forget what that has used.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, kill_process_group, set_dumpable_behavior,
    set_parent_process_death_signal, wait,
};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, set_capabilities,
    set_capabilities_secure_bits, set_no_new_privs,
};

use super::cell::{Cell, TMP};
use super::mounts::{Failed, OLD, at, below};
use super::root;
use super::system::Part;

/// What connects it with the launcher.
#[derive(Debug)]
pub(super) struct Pipes {
    /// Where it tells that `exec` was started.
    pub(super) tells: File,
    /// Where it is told to go on, once the launcher is its parent.
    pub(super) go: File,
}

/// Starts `exec` and waits for the end of all: an exit status, or minus a signal.
pub(super) fn run(system: &[Part], cell: &Cell, pipes: Pipes) -> Result<i32, Failed> {
    let Pipes { mut tells, go } = pipes;
    let log = File::create(below(OLD, &cell.log)).map_err(at("write", &cell.log))?;
    let again = log.try_clone().map_err(at("write", &cell.log))?;
    root::build(system, cell)?;
    root::enter()?;
    give_up_privileges()?;
    follow_the_launcher(go)?;
    let mut command = Command::new(&cell.exec);
    command
        .args(&cell.arguments)
        .env_clear()
        .envs(cell.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(TMP)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(again);
    let child = command.spawn().map_err(at("start", &cell.exec))?;
    let exec = Pid::from_child(&child);
    let _gone = tells.write_all(b"s");
    drop((tells, command));
    reap(exec)
}

/// Waits for the end of all. When `exec` has ended, the others are ended.
fn reap(exec: Pid) -> Result<i32, Failed> {
    let mut ended = None;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == exec => {
                let signal = status.terminating_signal().map(|signal| -signal);
                ended = status.exit_status().or(signal);
                // That is every process but this one.
                let _none = kill_process_group(Pid::INIT, Signal::KILL);
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::CHILD) => return Ok(ended.unwrap_or(-9)),
            Err(error) => return Err(at("wait", "")(error)),
        }
    }
}

/// Neither this process nor what it starts can get any capability, not even as root.
fn give_up_privileges() -> Result<(), Failed> {
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    set_capabilities_secure_bits(bits).map_err(at("lock privileges", ""))?;
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, none).map_err(at("give up capabilities", ""))?;
    set_no_new_privs(true).map_err(at("give up new privileges", ""))?;
    // `exec` is not to write into this process, which tells how it ended.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(at("hide memory", ""))
}

/// Ends with the launcher from now on. Its first parent has to be gone: the end that counts would be
/// that parent's.
fn follow_the_launcher(mut go: File) -> Result<(), Failed> {
    go.read_exact(&mut [0]).map_err(at("hear of the launcher", ""))?;
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(at("follow the launcher", ""))?;
    let mut fds = [PollFd::new(&go, PollFlags::IN)];
    match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(0) => Ok(()),
        // It has ended meanwhile.
        _ => Err(at("hear of the launcher", "")(Errno::PIPE)),
    }
}
