//! Processes of a launcher: how they are forked, moved to new namespaces and reaped, their messages to the process that
//! started the launcher, and errors that name the failed step.
//!
//! A message is a frame: a length, and then the parts of the message.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::time::Duration;

use fork::{Fork, fork};
use nix::sys::resource::{UsageWho, getrusage};
use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, WaitId, WaitIdOptions, WaitOptions, pidfd_open,
    set_dumpable_behavior, wait, waitid,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::thread::UnshareFlags;
use wait4::try_wait4_pid;

/// The directory of the host's file system in the launcher.
pub(super) const OLD: &str = "/old";

/// A path of a root, as it is named outside of it.
pub(super) fn below(root: impl AsRef<Path>, path: &Path) -> PathBuf {
    root.as_ref().join(path.strip_prefix("/").unwrap_or(path))
}

/// A failed step: the operation and the path.
#[derive(Debug)]
pub(super) struct StepError {
    pub(super) doing: &'static str,
    pub(super) path: PathBuf,
    pub(super) error: io::Error,
}

impl StepError {
    /// The same, as a message.
    pub(super) fn reply(self) -> Reply {
        let errno = self.error.raw_os_error().unwrap_or_default();
        Reply::Failed(self.doing.to_owned(), self.path, errno)
    }
}

/// Adds the operation and the path to an error.
pub(super) fn at<E: Into<io::Error>>(
    doing: &'static str,
    path: impl Into<PathBuf>,
) -> impl FnOnce(E) -> StepError {
    move |error| StepError { doing, path: path.into(), error: error.into() }
}

/// The reason for the end of a launcher, or of a process forked from one.
#[derive(Debug)]
pub(super) enum ProcessEnd {
    /// Something failed.
    Failed(StepError),
    /// It has done its work, or another process has reported the failure.
    Over,
}

impl From<StepError> for ProcessEnd {
    fn from(failed: StepError) -> Self {
        Self::Failed(failed)
    }
}

/// Sends a message to the process that started the launcher. Forked processes use the same pipe: a frame is one write.
pub(super) fn send(reply: &Reply) {
    // If this fails, the reader has ended.
    let _gone = rustix::io::write(io::stdout(), &reply.frame());
}

/// Sends what failed.
pub(super) fn send_failed(failed: StepError) {
    send(&failed.reply());
}

/// Leaves for new namespaces.
pub(super) fn unshare(flags: UnshareFlags) -> Result<(), StepError> {
    #[expect(deprecated, reason = "only its flag FILES is unsafe, and never used here")]
    rustix::thread::unshare(flags).map_err(at("create namespaces", ""))
}

/// The open files of its parent that a forked process keeps, beside the standard streams.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeptFiles<'a> {
    /// All but these.
    AllBut(&'a [BorrowedFd<'a>]),
    /// These alone.
    Only(&'a [BorrowedFd<'a>]),
}

/// Forks a process that runs a function, which must not use the files that it does not keep, and ends with its exit status. It never
/// returns from here: the values on its stack are its parent's.
#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "a forked process must not drop what its parent owns"
)]
pub(super) fn fork_process(
    kept: KeptFiles<'_>,
    run: impl FnOnce() -> u8,
) -> Result<Pid, StepError> {
    match fork().map_err(at("fork", ""))? {
        Fork::Parent(pid) => Pid::from_raw(pid).ok_or(Errno::SRCH).map_err(at("fork", "")),
        Fork::Child => {
            let closed = match kept {
                KeptFiles::AllBut(others) => {
                    others.iter().for_each(|fd| close(fd.as_raw_fd()));
                    Ok(())
                }
                KeptFiles::Only(kept) => close_others(kept),
            };
            exit(match closed {
                Ok(()) => run().into(),
                Err(failed) => {
                    send_failed(failed);
                    1
                }
            })
        }
    }
}

/// Closes all descriptors but the standard streams and these.
fn close_others(kept: &[BorrowedFd<'_>]) -> Result<(), StepError> {
    let path = below(OLD, Path::new("/proc/self/fd"));
    let listed = fs::read_dir(&path).map_err(at("list", &path))?;
    let numbers = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let numbers: Vec<i32> = numbers.collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        if !kept.iter().any(|fd| fd.as_raw_fd() == number) {
            close(number);
        }
    }
    Ok(())
}

fn close(number: RawFd) {
    // The descriptor of a listing is already closed.
    let _closed = nix::unistd::close(number);
}

/// Redirects the standard streams to the null device.
pub(super) fn leave_streams(null: &File) -> Result<(), StepError> {
    [dup2_stdin, dup2_stdout, dup2_stderr]
        .into_iter()
        .try_for_each(|leave| leave(null))
        .map_err(at("leave", "the standard streams"))
}

/// Hides the memory and the open files of this process from others of the same user. To execute a program, and to become another user,
/// takes that back.
pub(super) fn hide() -> Result<(), StepError> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(at("hide", "a process"))
}

/// Makes a pipe: its reader and its writer.
pub(super) fn pipe() -> Result<(OwnedFd, OwnedFd), StepError> {
    pipe_with(PipeFlags::CLOEXEC).map_err(at("make", "a pipe"))
}

/// Waits for the end of a child. Returns its exit status, or minus a signal.
pub(super) fn end_of(child: Pid, options: WaitIdOptions) -> Result<i32, StepError> {
    let status = loop {
        match waitid(WaitId::Pid(child), options) {
            Err(Errno::INTR) => {}
            status => break status.map_err(at("wait", ""))?,
        }
    };
    let ended = status.and_then(|status| {
        let signal = status.terminating_signal();
        status.exit_status().or_else(|| signal.map(|signal| -signal))
    });
    ended.ok_or_else(|| at("wait", "")(Errno::CHILD))
}

/// Whether a child that has ended is kept from its parent: a process that traces it would have to wait for it first.
pub(super) fn is_withheld(child: Pid) -> Result<bool, StepError> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    waitid(WaitId::Pid(child), options).map(|ended| ended.is_none()).map_err(at("wait", ""))
}

/// Waits until a child has ended. Returns whether that is kept from its parent.
pub(super) fn ends_withheld(child: Pid) -> Result<bool, StepError> {
    let ended = pidfd_open(child, PidfdFlags::empty()).map_err(at("watch a process", ""))?;
    while poll(&mut [PollFd::new(&ended, PollFlags::IN)], None) == Err(Errno::INTR) {}
    is_withheld(child)
}

/// Waits for any child and reaps it.
pub(super) fn reap_any() -> Result<(), StepError> {
    wait(WaitOptions::empty()).map(|_ended| ()).map_err(at("wait", ""))
}

/// Waits for a child and reaps it. Returns the resource usage of it and of the processes that it
/// has reaped, but for the switches.
pub(super) fn reap(child: Pid) -> Result<ProcessUsage, StepError> {
    let reap =
        || try_wait4_pid(child.as_raw_nonzero().get().unsigned_abs()).map_err(at("wait", ""));
    // Most have ended.
    let ended = match reap()? {
        None => {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            waitid(WaitId::Pid(child), options).map_err(at("wait", ""))?;
            reap()?
        }
        ended => ended,
    };
    Ok(ended.map_or_else(ProcessUsage::default, |ended| {
        let usage = ended.rusage;
        ProcessUsage { user: usage.utime, system: usage.stime, peak: usage.maxrss, switches: 0 }
    }))
}

/// Counts how often a processor was taken from processes that this one has reaped, since it was last asked. The system tells it of
/// all of them together.
pub(super) struct ReapedSwitches {
    told: u64,
}

impl ReapedSwitches {
    /// Counts from now on.
    pub(super) fn new() -> Self {
        let mut switches = Self { told: 0 };
        switches.take();
        switches
    }

    /// How often it was taken from the executions that were reaped since.
    pub(super) fn take(&mut self) -> u64 {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN);
        let all = usage.map_or(0, |it| it.involuntary_context_switches().unsigned_abs());
        all.saturating_sub(mem::replace(&mut self.told, all))
    }
}

/// The hidden first argument that makes this program a launcher.
pub(super) const LAUNCH: &str = "--launch";

/// The second argument of a launcher that has a network namespace of its own.
pub(super) const OWN_NETWORK: &str = "alone";

/// The second argument of a launcher that uses the network of the host.
pub(super) const HOST_NETWORK: &str = "host";

/// The third argument of a launcher whose executions may write files of the host.
pub(super) const HOST_FILES: &str = "host-files";

/// The third argument of a launcher whose executions may not.
pub(super) const OWN_FILES: &str = "own-files";

/// A message from a launcher to the process that started it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// It can isolate.
    Ready,
    /// A step failed: the operation, the path, and the error number.
    Failed(String, PathBuf, i32),
    /// `exec` was started, and leads this process group.
    Started(i32),
    /// `exec` ended: an exit status, or minus a signal. The number of its group is not reused yet.
    Ended(i32),
    /// `exec` has ended, and a process that traces it keeps that from its parent. For the launcher only.
    Withheld,
    /// An execution could not begin.
    Over,
    /// No process of the execution runs any more: what all of them used.
    Used(ProcessUsage),
    /// The same, and the launcher ends.
    Last(ProcessUsage),
}

/// Resources that the processes of an execution used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessUsage {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    /// Peak resident memory of the largest process, in bytes.
    pub(crate) peak: u64,
    /// How often a processor was taken from them.
    pub(crate) switches: u64,
}

impl ProcessUsage {
    /// The sum of these and others; the peak is the greater one.
    pub(super) fn and(self, others: Self) -> Self {
        let (user, system) = (self.user + others.user, self.system + others.system);
        let switches = self.switches + others.switches;
        Self { user, system, peak: self.peak.max(others.peak), switches }
    }
}

impl Reply {
    /// The whole frame. It must be written at once: several processes share a pipe.
    pub(super) fn frame(&self) -> Vec<u8> {
        let mut frame = FrameBytes::default();
        match self {
            Self::Ready => frame.put(b"R"),
            Self::Failed(doing, path, errno) => {
                frame.put(b"F");
                frame.put(&errno.to_le_bytes());
                frame.put(doing.as_bytes());
                frame.put(path.as_os_str().as_bytes());
            }
            Self::Started(pid) => {
                frame.put(b"S");
                frame.put(&pid.to_le_bytes());
            }
            Self::Ended(status) => {
                frame.put(b"E");
                frame.put(&status.to_le_bytes());
            }
            Self::Withheld => frame.put(b"W"),
            Self::Over => frame.put(b"O"),
            Self::Used(used) | Self::Last(used) => {
                let ProcessUsage { user, system, peak, switches } = used;
                frame.put(if matches!(self, Self::Used(_)) { b"U" } else { b"L" });
                frame.put(&(user.as_nanos() as u64).to_le_bytes());
                frame.put(&(system.as_nanos() as u64).to_le_bytes());
                frame.put(&peak.to_le_bytes());
                frame.put(&switches.to_le_bytes());
            }
        }
        frame.whole()
    }

    /// Reads the next reply.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut parts = Parts::read(from)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(match parts.bytes()?.as_slice() {
            b"R" => Self::Ready,
            b"F" => {
                let errno = i32::from_le_bytes(parts.array()?);
                let doing = String::from_utf8_lossy(&parts.bytes()?).into_owned();
                Self::Failed(doing, parts.name()?.into(), errno)
            }
            b"S" => Self::Started(i32::from_le_bytes(parts.array()?)),
            b"E" => Self::Ended(i32::from_le_bytes(parts.array()?)),
            b"W" => Self::Withheld,
            b"O" => Self::Over,
            kind @ (b"U" | b"L") => {
                let [user, system] = [parts.number()?, parts.number()?].map(Duration::from_nanos);
                let [peak, switches] = [parts.number()?, parts.number()?];
                let used = ProcessUsage { user, system, peak, switches };
                if kind == b"U" { Self::Used(used) } else { Self::Last(used) }
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        })
    }
}

/// The largest number of open files that come with a message.
const MAX_FILES: usize = 6;

/// The size of a message that is received at once. The rest of a longer one follows.
const MESSAGE_SIZE: usize = 16 << 10;

/// Sends a message, and open files with it.
pub(super) fn send_message(
    mut socket: &UnixStream,
    message: &[u8],
    files: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_FILES))];
    let mut passed = SendAncillaryBuffer::new(&mut space);
    passed.push(SendAncillaryMessage::ScmRights(files));
    let sent = sendmsg(socket, &[IoSlice::new(message)], &mut passed, SendFlags::NOSIGNAL)?;
    socket.write_all(message.get(sent..).unwrap_or_default())
}

/// Receives a message, and the files that come with it. Nothing if the sender has ended.
pub(super) fn receive_message(socket: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_FILES))];
    let mut passed = RecvAncillaryBuffer::new(&mut space);
    let mut message = vec![0; MESSAGE_SIZE];
    let parts = &mut [IoSliceMut::new(&mut message)];
    let received = recvmsg(socket, parts, &mut passed, RecvFlags::CMSG_CLOEXEC)?.bytes;
    message.truncate(received);
    let files = passed.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    Ok((message, files.flatten().collect()))
}

/// A message that is being written.
#[derive(Debug, Default)]
pub(super) struct FrameBytes(Vec<u8>);

impl FrameBytes {
    /// Adds a part.
    pub(super) fn put(&mut self, part: &[u8]) {
        self.0.extend((part.len() as u64).to_le_bytes());
        self.0.extend(part);
    }

    /// Adds a list, which is its length and then its parts.
    pub(super) fn put_all<'a>(&mut self, parts: impl ExactSizeIterator<Item = &'a OsStr>) {
        self.put(&(parts.len() as u64).to_le_bytes());
        parts.for_each(|part| self.put(part.as_bytes()));
    }

    fn whole(self) -> Vec<u8> {
        [&(self.0.len() as u64).to_le_bytes()[..], &self.0].concat()
    }

    /// Sends the message.
    pub(super) fn write(self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.whole())
    }
}

/// The parts of a message that is being read.
#[derive(Debug)]
pub(super) struct Parts(std::vec::IntoIter<u8>);

impl Parts {
    /// Receives a message; `None` if all senders are closed.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut size = [0; 8];
        match from.read_exact(&mut size) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let size = u64::from_le_bytes(size);
        let mut bytes = Vec::new();
        if from.take(size).read_to_end(&mut bytes)? as u64 != size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Some(Self(bytes.into_iter())))
    }

    /// The next part.
    pub(super) fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let size = self.take(8)?.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
        self.take(usize::try_from(u64::from_le_bytes(size)).map_err(io::Error::other)?)
    }

    /// The next part, as a name.
    pub(super) fn name(&mut self) -> io::Result<OsString> {
        self.bytes().map(OsString::from_vec)
    }

    /// The next parts, which are a list.
    pub(super) fn names(&mut self) -> io::Result<Vec<OsString>> {
        let count = self.number()?;
        (0..count).map(|_| self.name()).collect()
    }

    /// The next part, which must have `N` bytes.
    pub(super) fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        self.bytes()?.try_into().map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// The next part, which is a number.
    fn number(&mut self) -> io::Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn take(&mut self, size: usize) -> io::Result<Vec<u8>> {
        let bytes: Vec<u8> = self.0.by_ref().take(size).collect();
        if bytes.len() < size { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_arrives_as_it_was_sent() {
        let used =
            ProcessUsage { user: Duration::from_nanos(7), switches: 5, ..ProcessUsage::default() };
        let replies = [
            Reply::Ready,
            Reply::Failed("bind".to_owned(), "/a b\n".into(), 13),
            Reply::Started(10),
            Reply::Ended(-9),
            Reply::Withheld,
            Reply::Over,
            Reply::Used(used),
            Reply::Last(used),
        ];
        let sent: Vec<u8> = replies.iter().flat_map(Reply::frame).collect();
        let mut rest = sent.as_slice();
        replies.iter().for_each(|reply| assert_eq!(Reply::read(&mut rest).unwrap(), *reply));
        assert!(Reply::read(&mut rest).is_err(), "no reply is left");
        for cut in 1..replies[1].frame().len() {
            assert!(Reply::read(&mut &replies[1].frame()[..cut]).is_err(), "cut at {cut}");
        }
    }
}
