//! The launcher: a process of one thread that prepares a sandbox once, and then forks executions in it,
//! one after the other, each in mount and IPC namespaces of its own (see `execution`).
//!
//! They share a process namespace in which, between two of them, there is only its number one (see
//! `number_one`). Numbers that the launcher has are those of the host.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

use fork::{Fork, fork};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, WaitId, WaitIdOptions, WaitIdStatus, getegid, geteuid, pidfd_open, setsid,
    waitid,
};
use rustix::thread::UnshareFlags;
use wait4::try_wait4_pid;

use super::cell::Cell;
use super::mounts::{Failed, at};
use super::number_one::NumberOne;
use super::root::Ready;
use super::wire::{Told, Used};
use super::{execution, filter, loopback, system};

/// The first argument of a launcher that has a network namespace of its own.
pub(super) const ALONE: &str = "alone";

/// Why a process ends that is, or was forked from, a launcher.
#[derive(Debug)]
pub(super) enum End {
    /// Something failed.
    Failed(Failed),
    /// It has done its work, or another process has told why that is not possible.
    Over,
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
    match prepare(alone, &devices).map_err(End::from).and_then(serve) {
        Ok(()) | Err(End::Over) => ExitCode::SUCCESS,
        Err(End::Failed(failed)) => {
            tell_failed(failed);
            ExitCode::FAILURE
        }
    }
}

/// Tells whoever started the launcher. What was forked uses the same pipe: a frame is one write.
fn tell(told: &Told) {
    // If this fails nobody is left to be told.
    let _gone = rustix::io::write(io::stdout(), &told.frame());
}

pub(super) fn tell_failed(failed: Failed) {
    tell(&failed.told());
}

pub(super) fn unshare(flags: UnshareFlags) -> Result<(), Failed> {
    #[expect(deprecated, reason = "only its flag FILES is unsafe, and never used here")]
    rustix::thread::unshare(flags).map_err(at("leave for new namespaces", ""))
}

/// Makes what all executions share.
fn prepare(alone: bool, devices: &[PathBuf]) -> Result<Ready, Failed> {
    // What was open when this program was started would be a way out.
    close_fds::set_fds_cloexec(3, &[]);
    // Ctrl-C is for whoever started the launcher, and no execution has a terminal.
    setsid().map_err(at("leave the session", ""))?;
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let mut flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWUTS;
    flags.set(UnshareFlags::NEWNET, alone);
    unshare(flags)?;
    let write = |file: &str, text: &str| fs::write(file, text).map_err(at("write", file));
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", &format!("{group} {group} 1"))?;
    // In a user namespace of its own a process would have all capabilities. Where /proc/sys cannot be
    // written, as in containers, the filter refuses them.
    let _filtered = fs::write("/proc/sys/user/max_user_namespaces", "0");
    // The names of control groups tell who runs. Older kernels have no namespaces of them.
    let _older_kernel = unshare(UnshareFlags::NEWCGROUP);
    rustix::system::sethostname(b"sandbox").map_err(at("change the name of the host", ""))?;
    if alone {
        loopback::start().map_err(at("start the loopback device", ""))?;
        // A port that one execution has used is free for the next.
        let _older_kernel = fs::write("/proc/sys/net/ipv4/tcp_max_tw_buckets", "0");
    }
    let ready = Ready::with(system::prepare(devices)?)?;
    // Without it more of the kernel can be reached, but nothing of the file system. `ce doctor` tells.
    let _older_kernel = filter::install(alone);
    Ok(ready)
}

fn serve(mut root: Ready) -> Result<(), End> {
    let mut one = NumberOne::start()?;
    tell(&Told::Ready);
    let mut input = io::stdin().lock();
    while let Some(cell) = Cell::read(&mut input).map_err(at("read", "standard input"))? {
        root.fit(&cell)?;
        let Some(exec) = begin(&root, &cell)? else {
            let _nobody = one.end_all()?;
            tell(&Told::Over);
            continue;
        };
        tell(&Told::Started(exec.as_raw_nonzero().get()));
        tell(&Told::Ended(follow(exec)?));
        input.read_exact(&mut [0]).map_err(at("read", "standard input"))?;
        // Reaped only now that nobody sends signals any more: its number was nobody else's.
        let used = reap(exec)?;
        match one.end_all()? {
            None => tell(&Told::Used(used)),
            Some(others) => {
                tell(&Told::Last(used.and(others)));
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Forks a process that becomes `exec`. If it cannot, tells why, and there is none.
fn begin(root: &Ready, cell: &Cell) -> Result<Option<Pid>, End> {
    let (tidings, tells) = pipe_with(PipeFlags::CLOEXEC).map_err(at("make", "a pipe"))?;
    let Some(exec) = forked()? else {
        drop(tidings);
        let failed = execution::begin(root, cell);
        let _gone = rustix::io::write(&tells, &failed.told().frame());
        return Err(End::Over);
    };
    drop(tells);
    // `exec` has the other end no more.
    let Ok(failed) = Told::read(&mut File::from(tidings)) else {
        return Ok(Some(exec));
    };
    tell(&failed);
    reap(exec)?;
    Ok(None)
}

/// Forks; returns the new process, and `None` in it.
pub(super) fn forked() -> Result<Option<Pid>, Failed> {
    match fork().map_err(at("fork", ""))? {
        Fork::Parent(pid) => Ok(Pid::from_raw(pid)),
        Fork::Child => Ok(None),
    }
}

/// Waits for the end of a child, and leaves it a zombie; returns how it ended: an exit status, or
/// minus a signal. If whoever started the launcher is gone, so is the launcher.
fn follow(child: Pid) -> Result<i32, Failed> {
    let ended = pidfd_open(child, PidfdFlags::empty()).map_err(at("watch a process", ""))?;
    let input = io::stdin();
    loop {
        let hung_up = PollFd::from_borrowed_fd(input.as_fd(), PollFlags::empty());
        let mut fds = [PollFd::new(&ended, PollFlags::IN), hung_up];
        match poll(&mut fds, None) {
            Ok(_) if fds[0].revents().contains(PollFlags::IN) => break,
            Ok(_) => return Err(at("read", "standard input")(Errno::PIPE)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(at("wait", "")(error)),
        }
    }
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(child), options).map_err(at("wait", ""))?;
    let signal = |status: &WaitIdStatus| status.terminating_signal().map(|signal| -signal);
    let ended = status.and_then(|status| status.exit_status().or_else(|| signal(&status)));
    ended.ok_or_else(|| at("wait", "")(Errno::CHILD))
}

/// Reaps a child that ends or has ended; returns what it and those that it has reaped used.
pub(super) fn reap(child: Pid) -> Result<Used, Failed> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(child), options).map_err(at("wait", ""))?;
    let used = try_wait4_pid(child.as_raw_nonzero().get().unsigned_abs());
    let used = used.map_err(at("wait", ""))?.map(|ended| ended.rusage);
    let used = used.map(|it| Used { user: it.utime, system: it.stime, peak: it.maxrss });
    Ok(used.unwrap_or_default())
}
