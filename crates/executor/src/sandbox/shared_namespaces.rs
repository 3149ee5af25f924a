//! The namespaces that successive executions of a launcher share, one at a time: of mounts, and of IPC.
//!
//! The root, with programs, devices and `/proc`, stays as it is: it is read-only, and an execution has no privilege to
//! mount. The mounts of an execution's files, and its private memory, are replaced before the next one begins, while no
//! process is there. The IPC namespace is replaced if anything was ever made in it.
//!
//! The spawner is a process that starts executions in them by `posix_spawn`, which copies no memory, as a fork does. It
//! runs as the user of executions, without any privilege, in the namespaces that they share. But it is outside of their
//! process namespace, in which only its children are: they cannot see it, or send it a signal. Its own state never
//! changes: an execution changes only its own.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;

use super::launcher_processes::{
    KeptFiles, OLD, ProcessUsage, ReapedSwitches, Reply, StepError, at, below, end_of,
    ends_withheld, fork_process, reap, reap_any, receive_message, send, send_message, unshare,
};
use super::mounts::{
    NEW, QUIET, SYSTEM, attach, detached, join, make_private, open_source, restrict,
};
use super::root::{MEMORY_POINTS, PreparedRoot, enter, mount_memory};
use super::spec::{Bind, BindMode, COMPUTATION, SandboxSpec, TMP};
use super::user::{Nobody, SandboxUser};
use rustix::fs::{Stat, fstat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{
    Pid, Signal, WaitIdOptions, chdir, kill_process, set_parent_process_death_signal,
};
use rustix::thread::{ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces};

/// The namespaces, as their launcher has them. Anything that cannot be done in them is done in namespaces of an execution's own.
#[derive(Debug)]
pub(super) struct SharedNamespaces {
    /// The mount namespace of the launcher.
    own: OwnedFd,
    mounts: OwnedFd,
    /// The mounts of the last execution.
    shown: Vec<Bind>,
    has_memory: bool,
    ipc: Option<IpcNamespace>,
    /// The process that starts executions there, as long as it is in the current IPC namespace.
    pub(super) spawner: Option<Spawner>,
}

/// A path that an execution is shown, and its mount, which is in no place yet, unless the last execution was shown the same.
type PreparedMount<'a> = (&'a Bind, Option<OwnedFd>);

impl SharedNamespaces {
    /// Makes them, if the kernel can do that. The launcher has entered the IPC namespace, in which the spawner was forked; `init` is the
    /// first process of the process namespace.
    pub(super) fn new(
        ipc: Option<IpcNamespace>,
        spawner: Option<Spawner>,
        init: &OwnedFd,
    ) -> Result<Option<Self>, StepError> {
        let Ok(own) = open_mount_namespace() else { return Ok(None) };
        if unshare(UnshareFlags::NEWNS).is_err() {
            return Ok(None);
        }
        let mounts = open_mount_namespace();
        let entered = enter(SYSTEM, "/");
        join(&own)?;
        let (Ok(mounts), Ok(())) = (mounts, entered) else { return Ok(None) };
        let spawner =
            spawner.and_then(|mut spawner| spawner.enter(init, &mounts).is_ok().then_some(spawner));
        Ok(Some(Self { own, mounts, shown: Vec::new(), has_memory: false, ipc, spawner }))
    }

    /// Prepares the mounts of an execution; `None` if it needs namespaces of its own.
    fn prepare<'a>(
        &self,
        spec: &'a SandboxSpec,
        user: SandboxUser<'_>,
    ) -> Option<Vec<PreparedMount<'a>>> {
        if !spec.is_plain() || spec.terminal.is_some() || matches!(user, SandboxUser::Root(_)) {
            return None;
        }
        let mounts = spec.binds.iter().map(|bind| {
            let directory = open_source(bind).ok()?;
            // A new directory may reuse the number of a removed one.
            let mount = if self.shown.contains(bind) && bind.target == Path::new(COMPUTATION) {
                None
            } else {
                let owners = user.prepare(bind, &directory).ok()?;
                Some(detached(&directory, bind.mode != BindMode::Read, owners).ok()?)
            };
            Some((bind, mount))
        });
        mounts.collect()
    }

    /// Moves the launcher there, and shows an execution the paths that it may see, in place of the paths of the last
    /// one. `false` if it needs namespaces of its own.
    pub(super) fn show(
        &mut self,
        root: &PreparedRoot,
        spec: &SandboxSpec,
        user: SandboxUser<'_>,
    ) -> Result<bool, StepError> {
        let Some(mounts) = self.prepare(spec, user) else {
            join(&self.mounts)?;
            self.clear(&[])?;
            return Ok(false);
        };
        if self.ipc.as_ref().is_some_and(|ipc| !ipc.is_untouched()) {
            self.spawner = None;
            self.ipc = IpcNamespace::new();
        }
        join(&self.mounts)?;
        self.clear(&mounts)?;
        root.match_inputs(spec)?;
        for (bind, mount) in mounts {
            let Some(mount) = mount else { continue };
            attach(&mount, &bind.target).map_err(at("bind", &bind.source))?;
            self.shown.push(bind.clone());
            make_private(&bind.target).map_err(at("make private", &bind.target))?;
            let read_only = match bind.mode {
                BindMode::Read => MountFlags::RDONLY,
                BindMode::Write | BindMode::Own => MountFlags::empty(),
            };
            restrict(&bind.target, QUIET | read_only)?;
        }
        self.has_memory = true;
        mount_memory("/", user.owners())?;
        Ok(true)
    }

    /// Moves the launcher back.
    pub(super) fn leave(&self) -> Result<(), StepError> {
        join(&self.own)
    }

    /// Starts an execution by the spawner. `false` if no spawner is alive.
    pub(super) fn spawn(&mut self, spec: &SandboxSpec, log: &File) -> bool {
        // A spawner that was killed accepts nothing.
        self.spawner =
            self.spawner.take().and_then(|mut it| it.start(spec, log).is_ok().then_some(it));
        self.spawner.is_some()
    }

    /// Whether executions share the IPC namespace.
    pub(super) const fn has_ipc(&self) -> bool {
        self.ipc.is_some()
    }

    /// Unmounts all but what stays.
    fn clear(&mut self, stays: &[PreparedMount<'_>]) -> Result<(), StepError> {
        let gone = self.shown.extract_if(.., |bind| {
            !stays.iter().any(|(it, mount)| **it == *bind && mount.is_none())
        });
        let gone = gone.map(|bind| bind.target);
        let memory = MEMORY_POINTS.iter().filter(|_| self.has_memory).map(Into::into);
        for target in gone.chain(memory) {
            unmount(&target, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
                .map_err(at("let go of", target))?;
        }
        self.has_memory = false;
        Ok(())
    }
}

/// Opens the mount namespace of this process.
fn open_mount_namespace() -> io::Result<OwnedFd> {
    File::open(below(OLD, Path::new("/proc/self/ns/mnt"))).map(OwnedFd::from)
}

/// The settings of the kernel for the number of the next object of a kind: -1, or one that was set, for one time.
const NEXT: [&str; 3] = ["msg_next_id", "sem_next_id", "shm_next_id"];

/// The number that the first object of a namespace has.
const FIRST: &[u8] = b"0\n";

/// An IPC namespace of this process that shows whether any object was ever made in it: even removed objects change the
/// numbers of the next ones.
#[derive(Debug)]
pub(super) struct IpcNamespace {
    next: [File; 3],
    /// The directory of message queues that have names.
    queues: OwnedFd,
    /// The metadata of the directory when it was empty.
    empty: Stat,
}

impl IpcNamespace {
    /// Makes a new one; `None` if the kernel cannot do that, or would not show which objects are made.
    pub(super) fn new() -> Option<Self> {
        unshare(UnshareFlags::NEWIPC).ok()?;
        let [messages, semaphores, memory] = NEXT.map(|name| {
            let path = below(OLD, &Path::new("/proc/sys/kernel").join(name));
            let next = File::options().read(true).write(true).open(path).ok()?;
            next.write_all_at(FIRST, 0).ok()?;
            Some(next)
        });
        let flags = QUIET | MountFlags::NOEXEC;
        mount("mqueue", NEW, "mqueue", flags, None).ok()?;
        let queues = File::open(NEW).map(OwnedFd::from);
        unmount(NEW, UnmountFlags::DETACH).ok()?;
        let queues = queues.ok()?;
        let empty = fstat(&queues).ok()?;
        let made = Self { next: [messages?, semaphores?, memory?], queues, empty };
        made.is_untouched().then_some(made)
    }

    fn is_untouched(&self) -> bool {
        let are_first = self.next.iter().all(|next| {
            let mut text = [0; 8];
            next.read_at(&mut text, 0).is_ok_and(|size| text.get(..size) == Some(FIRST))
        });
        are_first
            && fstat(&self.queues).is_ok_and(|queues| {
                let [now, empty] = [&queues, &self.empty].map(|it| {
                    (it.st_size, it.st_mtime, it.st_mtime_nsec, it.st_ctime, it.st_ctime_nsec)
                });
                now == empty
            })
    }
}

/// To take its place: with it come the first process of the process namespace, and the mount namespace.
const ASK_ENTER: u8 = b'n';
/// To start an execution: with it comes the log, and after it the specification.
const ASK_START: u8 = b'x';
/// To reap it, and to report its resource usage.
const ASK_REAP: u8 = b'r';
/// To reap another child.
const ASK_REAP_OTHER: u8 = b'w';

/// The spawner, as its launcher has it.
#[derive(Debug)]
pub(super) struct Spawner {
    pid: Pid,
    /// The other end is the spawner's alone.
    socket: BufReader<UnixStream>,
}

impl Spawner {
    /// Forks it, before the launcher has a process namespace for its children.
    pub(super) fn fork(
        nobody: Option<&Nobody>,
        socket: UnixStream,
        other: UnixStream,
    ) -> Result<Self, StepError> {
        let namespace = nobody.map(|nobody| nobody.namespace.as_fd());
        let kept: Vec<_> = [other.as_fd()].into_iter().chain(namespace).collect();
        // After any failure, the launcher notices that the spawner has ended.
        let pid = fork_process(KeptFiles::Only(&kept), || serve(&other, nobody).is_err().into())?;
        // While it is open here, the end of the spawner is not noticed.
        drop(other);
        Ok(Self { pid, socket: BufReader::new(socket) })
    }

    /// Lets it enter the namespaces of executions, and give up its privileges.
    fn enter(&mut self, init: &OwnedFd, mounts: &OwnedFd) -> io::Result<()> {
        send_message(self.socket.get_ref(), &[ASK_ENTER], &[init.as_fd(), mounts.as_fd()])?;
        self.socket.read_exact(&mut [0])
    }

    /// Requests an execution. It reports its beginning and its end to the process that has started the launcher.
    fn start(&mut self, spec: &SandboxSpec, log: &File) -> io::Result<()> {
        let mut message = vec![ASK_START];
        spec.write(&mut message)?;
        send_message(self.socket.get_ref(), &message, &[log.as_fd()])
    }

    /// Returns the reason why nothing was begun, or that the end of an execution is withheld. Readable only then.
    pub(super) fn hear(&mut self) -> io::Result<Reply> {
        Reply::read(&mut self.socket)
    }

    /// Reaps an execution that has ended.
    pub(super) fn reap(&mut self) -> io::Result<ProcessUsage> {
        self.socket.get_ref().write_all(&[ASK_REAP])?;
        match Reply::read(&mut self.socket)? {
            Reply::Used(used) => Ok(used),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Reaps another child that has ended, or will soon.
    pub(super) fn reap_other(&mut self) -> io::Result<()> {
        self.socket.get_ref().write_all(&[ASK_REAP_OTHER])?;
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
    let (mut exec, mut switches) = (None, ReapedSwitches::new());
    loop {
        let (message, files) = receive_message(socket).map_err(failed())?;
        let Some((word, rest)) = message.split_first() else { return Ok(()) };
        match (*word, &files[..]) {
            (ASK_ENTER, [init, mounts]) => {
                enter_namespaces(init, mounts, nobody)?;
                socket.write_all(&[ASK_ENTER]).map_err(failed())?;
            }
            (ASK_START, [log]) => {
                let spec = SandboxSpec::read(&mut rest.chain(socket)).map_err(failed())?;
                let spec = spec.ok_or(Errno::PIPE).map_err(at("hear of the launcher", ""))?;
                match spawn(&spec, log) {
                    Ok(pid) => {
                        exec = Some(pid);
                        send(&Reply::Started(pid.as_raw_nonzero().get()));
                        if ends_withheld(pid)? {
                            socket.write_all(&Reply::Withheld.frame()).map_err(failed())?;
                        }
                        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                        send(&Reply::Ended(end_of(pid, options)?));
                    }
                    Err(why) => {
                        socket.write_all(&why.reply().frame()).map_err(failed())?;
                    }
                }
            }
            (ASK_REAP, []) => {
                let exec = exec.take().ok_or(Errno::CHILD).map_err(at("wait", ""))?;
                let used = reap(exec)?;
                let used = ProcessUsage { switches: switches.take(), ..used };
                socket.write_all(&Reply::Used(used).frame()).map_err(failed())?;
            }
            (ASK_REAP_OTHER, []) => {
                reap_any()?;
                socket.write_all(&[ASK_REAP_OTHER]).map_err(failed())?;
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
    // A change of the user would take it back. If the launcher has ended, no answer comes.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(at("follow the launcher", ""))
}

fn spawn(spec: &SandboxSpec, log: &OwnedFd) -> Result<Pid, StepError> {
    chdir(TMP).map_err(at("enter", TMP))?;
    let log = log.try_clone().map_err(at("write", spec.log()))?;
    let mut command = spec.command(log.into()).map_err(at("write", spec.log()))?;
    let child = command.process_group(0).spawn().map_err(at("start", &spec.exec))?;
    Ok(Pid::from_child(&child))
}
