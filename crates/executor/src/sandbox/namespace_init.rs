//! The first process of the namespace in which a launcher forks its executions, one after the other.
//!
//! It ends what an execution has left behind, and reaps processes whose parent has ended. It has no
//! privileges, and its root is empty. With it, all processes of its namespace end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Resource, Signal, WaitOptions, getrlimit, kill_process_group, pidfd_open,
    set_parent_process_death_signal, test_kill_process_group, wait,
};
use rustix::thread::{CapabilitySet, UnshareFlags};
use signal_hook::consts::SIGCHLD;

use super::mounts::{NEW, OLD, QUIET, StepError, at, below, bind_read_only, memory};
use super::privileges;
use super::process::{End, forked, reap, send_failed, unshare};
use super::root::enter;
use super::system::{self, PROC};
use super::wire::Used;

/// It is ready, and the only process in its namespace.
const ALONE: u8 = b'a';
/// It has killed all other processes, and children of the launcher are among them.
const OTHERS: u8 = b'o';
/// It is the only process, and ends: it has reaped others, so its resource usage includes theirs,
/// or it was limited by one of them.
const LAST: u8 = b'l';

/// Limits that a process can lower for another one of the same user without any privilege.
const LIMITS: [Resource; 16] = [
    Resource::Cpu,
    Resource::Fsize,
    Resource::Data,
    Resource::Stack,
    Resource::Core,
    Resource::Rss,
    Resource::Nproc,
    Resource::Nofile,
    Resource::Memlock,
    Resource::As,
    Resource::Locks,
    Resource::Sigpending,
    Resource::Msgqueue,
    Resource::Nice,
    Resource::Rtprio,
    Resource::Rttime,
];

/// The first process of a process namespace, as its launcher has it.
#[derive(Debug)]
pub(super) struct NamespaceInit {
    pid: Pid,
    /// Readable once it has ended.
    ended: OwnedFd,
    asks: File,
    told: File,
}

impl NamespaceInit {
    /// Forks it. Whatever this process forks from now on is in its namespace.
    ///
    /// It keeps these capabilities, beside that to set the numbers of its processes.
    pub(super) fn start(keeps: CapabilitySet) -> Result<Self, End> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(at("make", "a pipe"));
        let ((asked, asks), (told, tells)) = (pipe()?, pipe()?);
        unshare(UnshareFlags::NEWPID)?;
        let Some(pid) = forked()? else {
            drop((asks, told));
            run(&asked.into(), &tells.into(), keeps).unwrap_or_else(send_failed);
            return Err(End::Over);
        };
        drop((asked, tells));
        let ended = pidfd_open(pid, PidfdFlags::empty()).map_err(at("watch number one", ""))?;
        let mut init = Self { pid, ended, asks: asks.into(), told: told.into() };
        // If it could not begin, it has sent why.
        init.hear().map(|_| init).map_err(|_| End::Over)
    }

    /// Ends the remaining processes of an execution after `exec` was reaped. Returns their resource
    /// usage if there were any; then the init has ended as well.
    pub(super) fn end_all(&mut self) -> Result<Option<Used>, StepError> {
        loop {
            self.asks.write_all(b"e").map_err(at("ask", "number one"))?;
            match self.hear().map_err(at("hear of", "number one"))? {
                ALONE => return Ok(None),
                LAST => return reap(self.pid).map(Some),
                // They were made with CLONE_PARENT.
                _ => drop(wait(WaitOptions::empty()).map_err(at("wait", ""))?),
            }
        }
    }

    /// Waits until an input can be read. Ends the launcher if the first process has ended: somebody has killed it.
    pub(super) fn live_until_readable(&self, input: &impl AsFd) -> Result<(), End> {
        loop {
            let mut fds =
                [PollFd::new(&self.ended, PollFlags::IN), PollFd::new(input, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) if !fds[0].revents().is_empty() => return Err(End::Over),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(at("wait", "")(error).into()),
            }
        }
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&self) -> bool {
        let mut fds = [PollFd::new(&self.ended, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) != Ok(0)
    }

    fn hear(&mut self) -> io::Result<u8> {
        let mut word = [0];
        self.told.read_exact(&mut word)?;
        Ok(word[0])
    }
}

/// Runs as the first process until the launcher closes the pipe.
fn run(asked: &File, tells: &File, keeps: CapabilitySet) -> Result<(), StepError> {
    let numbers = show_processes()?;
    unshare(UnshareFlags::NEWNS)?;
    memory(NEW, c"mode=0555")?;
    enter(NEW, "/")?;
    privileges::give_up(CapabilitySet::CHECKPOINT_RESTORE | keeps)?;
    follow_the_launcher(asked)?;
    serve(asked, tells, numbers.as_ref())
}

/// Makes the `/proc` of executions. Returns where the number of the last process can be set, if it can.
fn show_processes() -> Result<Option<File>, StepError> {
    let flags = QUIET | MountFlags::NOEXEC;
    let numbers = match mount("proc", NEW, "proc", flags, None) {
        Ok(()) => {
            bind_read_only(Path::new(NEW), Path::new(PROC), flags, None)?;
            let numbers = below(NEW, Path::new("/sys/kernel/ns_last_pid"));
            let numbers = OpenOptions::new().write(true).open(numbers).ok();
            unmount(NEW, UnmountFlags::DETACH).map_err(at("let go of", "/proc"))?;
            numbers
        }
        // A container that covers parts of its own `/proc` allows no complete other one. Processes
        // of the host are visible in the host's, but cannot be affected.
        Err(Errno::PERM) => {
            let host = below(OLD, Path::new("/proc"));
            bind_read_only(&host, Path::new(PROC), flags, None)?;
            None
        }
        Err(error) => return Err(at("mount", "/proc")(error)),
    };
    system::cover_proc()?;
    Ok(numbers)
}

/// Ends with the launcher from now on.
fn follow_the_launcher(asked: &File) -> Result<(), StepError> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(at("follow the launcher", ""))?;
    let mut fds = [PollFd::new(asked, PollFlags::IN)];
    match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(0) => Ok(()),
        // It has ended meanwhile.
        _ => Err(at("hear of the launcher", "")(Errno::PIPE)),
    }
}

/// Reaps, and ends all whenever the launcher asks for it.
fn serve(mut asked: &File, mut tells: &File, numbers: Option<&File>) -> Result<(), StepError> {
    let (mut bell, rings) = UnixStream::pair().map_err(at("make", "a socket"))?;
    bell.set_nonblocking(true).map_err(at("make", "a socket"))?;
    signal_hook::low_level::pipe::register(SIGCHLD, rings).map_err(at("watch processes", ""))?;
    let mut tell = |word| tells.write_all(&[word]).map_err(at("tell", "the launcher"));
    tell(ALONE)?;
    let (limits, mut reaped) = (LIMITS.map(getrlimit), false);
    loop {
        let mut fds = [PollFd::new(asked, PollFlags::IN), PollFd::new(&bell, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(at("wait", "")(error)),
        }
        let [asks, rung] = fds.map(|fd| !fd.revents().is_empty());
        if rung {
            let _more_at_once = bell.read(&mut [0; 64]);
            reaped |= reap_all(WaitOptions::NOHANG)?;
        }
        if !asks {
            continue;
        }
        if asked.read(&mut [0]).map_err(at("hear of the launcher", ""))? == 0 {
            return Ok(());
        }
        if !end_all(&mut reaped)? {
            tell(OTHERS)?;
        } else if reaped || LIMITS.map(getrlimit) != limits {
            return tell(LAST);
        } else {
            // The next execution has the same numbers, where the kernel can do that.
            let _older_kernel = numbers.map(|numbers| numbers.write_at(b"1", 0));
            tell(ALONE)?;
        }
    }
}

/// Ends all other processes of the namespace. Returns whether none is left.
fn end_all(reaped: &mut bool) -> Result<bool, StepError> {
    let nobody = Err(Errno::SRCH);
    if kill_process_group(Pid::INIT, Signal::KILL) == nobody {
        return Ok(true);
    }
    *reaped |= reap_all(WaitOptions::empty())?;
    Ok(test_kill_process_group(Pid::INIT) == nobody)
}

/// Reaps ended children, or waits for all. Returns whether there was any.
fn reap_all(options: WaitOptions) -> Result<bool, StepError> {
    let mut any = false;
    loop {
        match wait(options) {
            Ok(Some(_)) => any = true,
            Ok(None) | Err(Errno::CHILD) => return Ok(any),
            Err(Errno::INTR) => {}
            Err(error) => return Err(at("wait", "")(error)),
        }
    }
}
