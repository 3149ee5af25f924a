//! The spawner: a process that starts executions for a launcher by `posix_spawn`, which copies no memory, as a fork does.
//!
//! It is the user that executions are, without any privilege, in the namespaces that they share. But it is outside of their process
//! namespace, in which only its children are: none of them can see it, or send it a signal. It is never in any state but that in which it
//! began: an execution changes only its own.

use std::fs::File;
use std::io::{self, BufReader, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{
    Pid, Signal, WaitIdOptions, chdir, kill_process, set_parent_process_death_signal,
};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};

use super::mounts::join;
use super::process::{
    ProcessEnd, ProcessUsage, Reply, StepError, at, end_of, forked, reap, reap_any, send,
};
use super::spec::{SandboxSpec, TMP};
use super::user::{Nobody, SandboxUser};

/// To take its place: with it come the first process of the process namespace, and the mount namespace.
const ENTER: u8 = b'n';
/// To start an execution: with it comes the log, and after it the specification.
const START: u8 = b'x';
/// To reap it, and to say what it has used.
const REAP: u8 = b'r';
/// To reap another child.
const WAIT: u8 = b'w';

/// The spawner, as its launcher has it.
#[derive(Debug)]
pub(super) struct Spawner {
    pid: Pid,
    /// The other end is the spawner's alone.
    socket: BufReader<UnixStream>,
}

impl Spawner {
    /// Forks it, before the launcher has a process namespace for its children.
    pub(super) fn fork(nobody: Option<&Nobody>) -> Result<Self, ProcessEnd> {
        let (socket, other) = UnixStream::pair().map_err(at("make", "a socket"))?;
        let Some(pid) = forked()? else {
            drop(socket);
            // After any failure, the launcher notices that the spawner has ended.
            let _told = serve(&other, nobody);
            return Err(ProcessEnd::Over);
        };
        Ok(Self { pid, socket: BufReader::new(socket) })
    }

    /// Lets it enter the namespaces of executions, and give up its privileges.
    pub(super) fn enter(&mut self, init: &OwnedFd, mounts: &OwnedFd) -> io::Result<()> {
        send_message(self.socket.get_ref(), &[ENTER], &[init.as_fd(), mounts.as_fd()])?;
        self.socket.read_exact(&mut [0])
    }

    /// Requests an execution. It reports its beginning and its end to the process that has started the launcher.
    pub(super) fn start(&mut self, spec: &SandboxSpec, log: &File) -> io::Result<()> {
        let mut message = vec![START];
        spec.write(&mut message)?;
        send_message(self.socket.get_ref(), &message, &[log.as_fd()])
    }

    /// Returns the reason why nothing was begun. Readable only then.
    pub(super) fn failure(&mut self) -> io::Result<Reply> {
        Reply::read(&mut self.socket)
    }

    /// Reaps an execution that has ended.
    pub(super) fn reap(&mut self) -> io::Result<ProcessUsage> {
        self.socket.get_ref().write_all(&[REAP])?;
        match Reply::read(&mut self.socket)? {
            Reply::Used(used) => Ok(used),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Reaps another child that has ended, or will soon.
    pub(super) fn reap_other(&mut self) -> io::Result<()> {
        self.socket.get_ref().write_all(&[WAIT])?;
        self.socket.read_exact(&mut [0])
    }
}

impl AsFd for Spawner {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        let _gone = kill_process(self.pid, Signal::KILL);
        let _gone = reap(self.pid);
    }
}

/// Runs as the spawner until the launcher ends.
fn serve(mut socket: &UnixStream, nobody: Option<&Nobody>) -> Result<(), StepError> {
    let failed = || at("hear of the launcher", "");
    let mut exec = None;
    loop {
        let (message, files) = receive_message(socket).map_err(failed())?;
        let Some((word, rest)) = message.split_first() else { return Ok(()) };
        match (*word, &files[..]) {
            (ENTER, [init, mounts]) => {
                enter_namespaces(init, mounts, nobody)?;
                socket.write_all(&[ENTER]).map_err(failed())?;
            }
            (START, [log]) => {
                let spec = SandboxSpec::read(&mut rest.chain(socket)).map_err(failed())?;
                let spec = spec.ok_or(Errno::PIPE).map_err(at("hear of the launcher", ""))?;
                match spawn(&spec, log) {
                    Ok(pid) => {
                        exec = Some(pid);
                        send(&Reply::Started(pid.as_raw_nonzero().get()));
                        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                        send(&Reply::Ended(end_of(pid, options)?));
                    }
                    Err(why) => {
                        socket.write_all(&why.reply().frame()).map_err(failed())?;
                    }
                }
            }
            (REAP, []) => {
                let exec = exec.take().ok_or(Errno::CHILD).map_err(at("wait", ""))?;
                socket.write_all(&Reply::Used(reap(exec)?).frame()).map_err(failed())?;
            }
            (WAIT, []) => {
                reap_any()?;
                socket.write_all(&[WAIT]).map_err(failed())?;
            }
            _ => return Ok(()),
        }
    }
}

/// Enters the namespaces of executions, and becomes who they are.
fn enter_namespaces(
    init: &OwnedFd,
    mounts: &OwnedFd,
    nobody: Option<&Nobody>,
) -> Result<(), StepError> {
    move_into_thread_name_spaces(init.as_fd(), ThreadNameSpaceType::PROCESS_ID)
        .map_err(at("enter namespaces", ""))?;
    join(mounts)?;
    nobody.map_or(SandboxUser::Own, SandboxUser::Nobody).assume()?;
    // A change of the user would take it back. If the launcher has ended by now, nobody answers.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(at("follow the launcher", ""))
}

fn spawn(spec: &SandboxSpec, log: &OwnedFd) -> Result<Pid, StepError> {
    chdir(TMP).map_err(at("enter", TMP))?;
    let log = log.try_clone().map_err(at("write", spec.log()))?;
    let mut command = spec.command(log.into()).map_err(at("write", spec.log()))?;
    let child = command.process_group(0).spawn().map_err(at("start", &spec.exec))?;
    Ok(Pid::from_child(&child))
}

/// The size of a message that is received at once. The rest of a longer one follows.
const SIZE: usize = 16 << 10;

fn send_message(
    mut socket: &UnixStream,
    message: &[u8],
    files: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(2))];
    let mut passed = SendAncillaryBuffer::new(&mut space);
    passed.push(SendAncillaryMessage::ScmRights(files));
    let sent = sendmsg(socket, &[IoSlice::new(message)], &mut passed, SendFlags::NOSIGNAL)?;
    socket.write_all(message.get(sent..).unwrap_or_default())
}

/// Receives a message, and the files that come with it. Nothing if the launcher has ended.
fn receive_message(socket: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(2))];
    let mut passed = RecvAncillaryBuffer::new(&mut space);
    let mut message = vec![0; SIZE];
    let parts = &mut [IoSliceMut::new(&mut message)];
    let received = recvmsg(socket, parts, &mut passed, RecvFlags::CMSG_CLOEXEC)?.bytes;
    message.truncate(received);
    let files = passed.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    Ok((message, files.flatten().collect()))
}
