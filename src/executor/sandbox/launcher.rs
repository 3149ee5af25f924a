//! The launcher: a process of one thread that prepares a sandbox once, and then starts executions in
//! it, one after the other, each in process, mount and IPC namespaces of its own.
//!
//! Three processes make an execution. The launcher forks a second one, which leaves for the new
//! namespaces and forks the third: number one of the new process namespace (see `number_one`).
//! The second ends at once, and number one becomes a child of the launcher, which asks for orphans.
//! When number one ends, the kernel ends everything that is left in its namespace.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;

use fork::{Fork, fork, waitpid};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, WaitId, WaitIdOptions, getegid, geteuid, getpgrp, getpid, pidfd_open,
    set_child_subreaper, setpgid, setsid, waitid,
};
use rustix::thread::UnshareFlags;
use wait4::try_wait4_pid;

use super::cell::Cell;
use super::loopback;
use super::mounts::{Failed, at};
use super::number_one::{self, Pipes};
use super::system::{self, Part};
use super::wire::{Told, Used};

/// The first argument of a launcher that has a network namespace of its own.
pub(super) const ALONE: &str = "alone";

/// Why a process ends that is, or was forked from, a launcher.
#[derive(Debug)]
pub(super) enum End {
    /// Something failed.
    Failed(Failed),
    /// It was forked, and has done its work.
    Forked(u8),
}

impl From<Failed> for End {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
    }
}

/// Is a launcher, until nobody wants one any more. The process must have one thread.
pub(super) fn launch(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let alone = arguments.next().is_some_and(|word| word == ALONE);
    let devices: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    match prepare(alone, &devices).map_err(End::from).and_then(|system| serve(&system)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(End::Forked(status)) => status.into(),
        Err(End::Failed(failed)) => {
            tell_failed(failed);
            ExitCode::FAILURE
        }
    }
}

/// Tells whoever started the launcher. Number one uses the same pipe: a frame is one write.
pub(super) fn tell(told: &Told) {
    // If this fails nobody is left to be told.
    let _gone = rustix::io::write(io::stdout(), &told.frame());
}

pub(super) fn tell_failed(Failed { doing, path, error }: Failed) {
    tell(&Told::Failed(doing.to_owned(), path, error.raw_os_error().unwrap_or_default()));
}

fn unshare(flags: UnshareFlags) -> Result<(), Failed> {
    #[expect(deprecated, reason = "only its flag FILES is unsafe, and never used here")]
    rustix::thread::unshare(flags).map_err(at("leave for new namespaces", ""))
}

/// Makes what all executions share.
fn prepare(alone: bool, devices: &[PathBuf]) -> Result<Vec<Part>, Failed> {
    // What was open when this program was started would be a way out.
    close_fds::set_fds_cloexec(3, &[]);
    // Ctrl-C is for whoever started the launcher, and no execution has a terminal.
    setsid().map_err(at("leave the session", ""))?;
    set_child_subreaper(Some(getpid())).map_err(at("ask for orphans", ""))?;
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let mut flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWUTS;
    flags.set(UnshareFlags::NEWNET, alone);
    unshare(flags)?;
    let write = |file: &str, text: &str| fs::write(file, text).map_err(at("write", file));
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", &format!("{group} {group} 1"))?;
    rustix::system::sethostname(b"sandbox").map_err(at("change the name of the host", ""))?;
    if alone {
        loopback::start().map_err(at("start the loopback device", ""))?;
        // A port that one execution has used is free for the next.
        let _older_kernel = fs::write("/proc/sys/net/ipv4/tcp_max_tw_buckets", "0");
    }
    system::prepare(devices)
}

fn serve(system: &[Part]) -> Result<(), End> {
    tell(&Told::Ready);
    let mut input = io::stdin().lock();
    while let Some(cell) = Cell::read(&mut input).map_err(at("read", "standard input"))? {
        execute(system, &cell, &mut input)?;
    }
    Ok(())
}

fn execute(system: &[Part], cell: &Cell, input: &mut impl Read) -> Result<(), End> {
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(at("make", "a pipe"));
    let ((tidings, tells), (go, tells_go)) = (pipe()?, pipe()?);
    let second = match fork().map_err(at("fork", ""))? {
        Fork::Parent(second) => second,
        Fork::Child => {
            drop((tidings, tells_go));
            return second(system, cell, Pipes { tells: tells.into(), go: go.into() });
        }
    };
    drop((tells, go));
    let mut tidings = File::from(tidings);
    let mut number = [0; 4];
    let forked = tidings.read_exact(&mut number);
    waitpid(second).map_err(at("wait", ""))?;
    let one = forked.ok().and_then(|()| Pid::from_raw(i32::from_ne_bytes(number)));
    if let Some(one) = one {
        follow(one, tidings, File::from(tells_go))?;
    }
    // Who has failed to become number one, or to start anything, has told why.
    tell(&Told::Over);
    input.read_exact(&mut [0]).map_err(at("read", "standard input"))?;
    // Reaped only now that nobody sends signals any more: its number was nobody else's.
    let used = one.map(|one| try_wait4_pid(one.as_raw_nonzero().get().unsigned_abs()));
    let used = used.transpose().map_err(at("wait", ""))?.flatten().map(|used| used.rusage);
    let used = used.map(|it| Used { user: it.utime, system: it.stime, peak: it.maxrss });
    tell(&Told::Used(used.unwrap_or_default()));
    Ok(())
}

/// Lets number one go, and waits for its end.
fn follow(one: Pid, mut tidings: File, mut tells_go: File) -> Result<(), Failed> {
    setpgid(Some(one), Some(one)).map_err(at("make a process group", ""))?;
    // If it has ended by now, it has told why.
    if tells_go.write_all(b"g").is_ok() && tidings.read_exact(&mut [0]).is_ok() {
        // `exec` runs in the group of number one, which now leaves it: a signal to the group leaves
        // it alive, to tell how `exec` ended.
        setpgid(Some(one), Some(getpgrp())).map_err(at("leave a process group", ""))?;
        tell(&Told::Started(one.as_raw_nonzero().get()));
    }
    let ended = pidfd_open(one, PidfdFlags::empty()).map_err(at("watch a process", ""))?;
    wait(&ended)?;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(one), options).map(drop).map_err(at("wait", ""))
}

/// Waits for the end of number one. If whoever started the launcher is gone, so is the launcher, and
/// everything below it.
fn wait(ended: &OwnedFd) -> Result<(), Failed> {
    let input = io::stdin();
    loop {
        let hung_up = PollFd::from_borrowed_fd(input.as_fd(), PollFlags::empty());
        let mut fds = [PollFd::new(ended, PollFlags::IN), hung_up];
        match poll(&mut fds, None) {
            Ok(_) if fds[0].revents().contains(PollFlags::IN) => return Ok(()),
            Ok(_) => return Err(at("read", "standard input")(Errno::PIPE)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(at("wait", "")(error)),
        }
    }
}

/// Leaves for new namespaces and forks number one of them.
fn second(system: &[Part], cell: &Cell, mut pipes: Pipes) -> Result<(), End> {
    let flags = UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWIPC;
    match unshare(flags).and_then(|()| fork().map_err(at("fork", ""))) {
        Ok(Fork::Child) => {
            match number_one::run(system, cell, pipes) {
                Ok(status) => tell(&Told::Ended(status)),
                Err(failed) => tell_failed(failed),
            }
            Err(End::Forked(0))
        }
        Ok(Fork::Parent(one)) => {
            let told = pipes.tells.write_all(&one.to_ne_bytes());
            Err(End::Forked(u8::from(told.is_err())))
        }
        Err(failed) => {
            tell_failed(failed);
            Err(End::Forked(1))
        }
    }
}
