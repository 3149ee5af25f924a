//! The launcher: a process of one thread that prepares a sandbox once, and then forks executions in it,
//! one after the other, each in mount and IPC namespaces of its own.
//!
//! They share a process namespace. Its first process ends processes that an execution has left behind, and reaps
//! processes whose parent has ended. It has no privileges, and its root is empty. When it ends, all processes of its
//! namespace end. Between two executions it is the only one. The launcher uses the host's process numbers.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{
    Pid, PidfdFlags, Resource, Signal, WaitIdOptions, WaitOptions, chdir, getegid, geteuid,
    getrlimit, ioctl_tiocsctty, kill_process_group, pidfd_open, set_parent_process_death_signal,
    setpgid, setsid, test_kill_process_group, umask, wait,
};
use rustix::thread::{CapabilitySet, UnshareFlags};
use signal_hook::consts::SIGCHLD;

use super::SharedState;
use super::host_answer::is_refusal;
use super::launcher_processes::{
    KeptFiles, OLD, ProcessEnd, ProcessUsage, ReapedSwitches, Reply, StepError, at, below, end_of,
    fork_process, hide, is_withheld, leave_streams, pipe, reap, reap_any, send, send_failed,
    unshare,
};
use super::mounts::{NEW, QUIET, SYSTEM, Shown, VERIFY, memory, open_place, show};
use super::own_network::OwnNetwork;
use super::root::{self, MASK, PROC, PreparedRoot, enter, look_around};
use super::seccomp::{self, CallFilter};
use super::shared_namespaces::{IpcNamespace, SharedNamespaces, Spawner};
use super::spec::{SandboxSpec, TMP};
use super::system_files::HOST_NAME;
use super::user::{Nobody, SandboxUser, give_up_privileges};
use crate::invocation::{open_log, open_verified};
use crate::open_files;

/// Runs the launcher until its standard input ends. The process must have one thread.
pub(super) fn launch(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    open_files::lower_as_told();
    let shared = SharedState::parse(arguments);
    match prepare(&shared).and_then(|root| serve_requests(&root, !shared.network)) {
        Ok(()) | Err(ProcessEnd::Over) => ExitCode::SUCCESS,
        Err(ProcessEnd::Failed(failed)) => {
            send_failed(failed);
            ExitCode::FAILURE
        }
    }
}

/// Prepares what all executions share.
pub(super) fn prepare(shared: &SharedState) -> Result<PreparedRoot, ProcessEnd> {
    // Files that were open when this program was started would be a way out.
    close_fds::set_fds_cloexec(3, &[]);
    // Ctrl-C is handled by the parent of the launcher, and executions have no terminal.
    setsid().map_err(at("leave the session", ""))?;
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let nobody = Nobody::make()?;
    let mut flags = UnshareFlags::NEWNS | UnshareFlags::NEWUTS;
    flags.set(UnshareFlags::NEWUSER, nobody.is_none());
    unshare(flags)?;
    if nobody.is_none() {
        for (file, text) in [
            ("/proc/self/setgroups", "deny".to_owned()),
            ("/proc/self/uid_map", format!("{user} {user} 1")),
            ("/proc/self/gid_map", format!("{group} {group} 1")),
        ] {
            fs::write(file, text).map_err(at("write", file))?;
        }
        // In a user namespace of its own a process would have all capabilities. Where /proc/sys cannot be
        // written, as in containers, the filter refuses them.
        let _filtered = fs::write("/proc/sys/user/max_user_namespaces", "0");
    }
    // Executions are of the same user. The maps of users can be written only by who is not hidden.
    hide()?;
    // The names of control groups identify the user. Older kernels have no namespaces for them.
    let _older_kernel = unshare(UnshareFlags::NEWCGROUP);
    rustix::system::sethostname(HOST_NAME.as_bytes())
        .map_err(at("change the name of the host", ""))?;
    let mask = umask(MASK);
    let ready =
        PreparedRoot::new(root::prepare_shared(&shared.devices, nobody.is_some())?, nobody)?;
    umask(mask);
    install_filter(shared.filter())?;
    Ok(ready)
}

/// Installs the filter of system calls, if the kernel has any. Without it more of the kernel can be reached, but no files; `ce doctor`
/// reports that.
pub(super) fn install_filter(filter: CallFilter) -> Result<(), StepError> {
    match seccomp::install(filter) {
        Err(error) if is_refusal(&error) || error.kind() == io::ErrorKind::Unsupported => Ok(()),
        installed => installed.map_err(at("install the filter", "")),
    }
}

/// Serves requests to execute programs. If `alone`, without the network of the host.
fn serve_requests(root: &PreparedRoot, alone: bool) -> Result<(), ProcessEnd> {
    // Made before the network namespace, in which it would be seen.
    let (socket, other) = UnixStream::pair().map_err(at("make", "a socket"))?;
    let mut network = alone.then(OwnNetwork::start).transpose()?;
    let mut is_used = false;
    let ipc = IpcNamespace::new();
    let nobody = root.nobody.as_ref();
    let spawner = ipc.as_ref().map(|_| Spawner::fork(nobody, socket, other)).transpose()?;
    // It ends processes of another user then.
    let keeps = nobody.map_or(CapabilitySet::empty(), |_| CapabilitySet::KILL);
    let mut init = NamespaceInit::start(keeps)?;
    let mut shared = SharedNamespaces::new(ipc, spawner, &init.ended)?;
    send(&Reply::Ready);
    let mut input = io::stdin().lock();
    let mut switches = ReapedSwitches::new();
    loop {
        init.live_until_readable(&io::stdin())?;
        let spec = SandboxSpec::read(&mut input).map_err(at("read", "standard input"))?;
        let Some(spec) = spec else { return Ok(()) };
        if mem::take(&mut is_used) {
            // The spawner is in the old one.
            shared.iter_mut().for_each(|shared| shared.spawner = None);
            network = Some(OwnNetwork::start()?);
        }
        let begun = match begin(root, &mut shared, &spec) {
            // No process can be forked any more. The call is not to blame.
            Err(_) if init.has_ended() => return Err(ProcessEnd::Over),
            begun => begun?,
        };
        let used = match begun {
            None => None,
            Some(Exec::Own(exec)) => {
                send(&Reply::Started(exec.as_raw_nonzero().get()));
                send(&Reply::Ended(follow(exec, &mut init)?));
                input.read_exact(&mut [0]).map_err(at("read", "standard input"))?;
                // Reaped only after the last signal was sent, so that its number was not reused.
                let used = reap(exec)?;
                Some(ProcessUsage { switches: switches.take(), ..used })
            }
            Some(Exec::Spawned) => follow_spawned(spawner_of(&mut shared)?, &mut init, &mut input)?,
        };
        let others = init.end_all(|| match begun {
            Some(Exec::Spawned) => {
                spawner_of(&mut shared)?.reap_other().map_err(|_| ProcessEnd::Over)
            }
            _ => reap_any().map_err(ProcessEnd::from),
        })?;
        let Some(used) = used else {
            send(&Reply::Over);
            continue;
        };
        match others {
            None => {
                send(&Reply::Used(used));
                // No execution waits for that.
                is_used = network.as_ref().is_some_and(|network| !network.is_unused());
            }
            Some(others) => {
                send(&Reply::Last(used.and(others)));
                return Ok(());
            }
        }
    }
}

/// An execution that was begun.
#[derive(Clone, Copy, Debug)]
enum Exec {
    /// A child of the launcher.
    Own(Pid),
    /// A child of the spawner.
    Spawned,
}

/// Begins an execution. If that fails, it was reported why.
fn begin(
    root: &PreparedRoot,
    shared: &mut Option<SharedNamespaces>,
    spec: &SandboxSpec,
) -> Result<Option<Exec>, ProcessEnd> {
    let (user, log) = match open_log_as_user(root, spec) {
        Ok(opened) => opened,
        Err(failed) => {
            send_failed(failed);
            return Ok(None);
        }
    };
    let place = enter_shared(root, shared, spec, user)?;
    let namespaces = shared.as_mut().filter(|_| place != ForkPlace::Own);
    let Some(namespaces) = namespaces else {
        return Ok(fork_exec(root, spec, user, log, place)?.map(Exec::Own));
    };
    let begun = if namespaces.spawn(spec, &log) {
        Some(Exec::Spawned)
    } else {
        fork_exec(root, spec, user, log, place)?.map(Exec::Own)
    };
    namespaces.leave()?;
    Ok(begun)
}

/// The process that has begun an execution.
fn spawner_of(shared: &mut Option<SharedNamespaces>) -> Result<&mut Spawner, ProcessEnd> {
    shared.as_mut().and_then(|it| it.spawner.as_mut()).ok_or(ProcessEnd::Over)
}

/// Waits for the end of an execution of the spawner, which reports it; `None` if it could not begin. Ends the launcher
/// with its parent, or with the spawner, which must have been killed.
fn follow_spawned(
    spawner: &mut Spawner,
    init: &mut NamespaceInit,
    input: &mut impl Read,
) -> Result<Option<ProcessUsage>, ProcessEnd> {
    let stdin = io::stdin();
    loop {
        let mut fds = [PollFd::new(spawner, PollFlags::IN), PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) if !fds[0].revents().is_empty() => {
                match spawner.hear().map_err(|_| ProcessEnd::Over)? {
                    Reply::Withheld => init.kill_all()?,
                    failed => {
                        send(&failed);
                        return Ok(None);
                    }
                }
            }
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(at("wait", "")(error).into()),
        }
    }
    input.read_exact(&mut [0]).map_err(at("read", "standard input"))?;
    spawner.reap().map(Some).map_err(|_| ProcessEnd::Over)
}

/// Forks a process that becomes `exec`. `None` if it cannot: it was reported why.
fn fork_exec(
    root: &PreparedRoot,
    spec: &SandboxSpec,
    user: SandboxUser<'_>,
    log: File,
    place: ForkPlace,
) -> Result<Option<Pid>, ProcessEnd> {
    let (replies, sender) = pipe()?;
    let exec = fork_process(KeptFiles::AllBut(&[replies.as_fd()]), || {
        let failed = become_exec(root, spec, user, log, place);
        let _gone = rustix::io::write(&sender, &failed.reply().frame());
        1
    })?;
    drop(sender);
    // `exec` has the other end no more.
    let Ok(failed) = Reply::read(&mut File::from(replies)) else {
        return Ok(Some(exec));
    };
    send(&failed);
    reap(exec)?;
    Ok(None)
}

/// Opens the log. Returns the user of the execution, and the log.
fn open_log_as_user<'a>(
    root: &'a PreparedRoot,
    spec: &SandboxSpec,
) -> Result<(SandboxUser<'a>, File), StepError> {
    let stage = open_verified(&below(OLD, &spec.stage.path), spec.stage.id)
        .map_err(at(VERIFY, &spec.stage.path))?;
    let log = open_log(&stage, &spec.log).map_err(at("write", spec.log()))?;
    let user = SandboxUser::find(root.nobody.as_ref(), &stage);
    if let SandboxUser::Nobody(nobody) = user {
        // It may open the log again by its descriptor.
        nobody.give(&log, &spec.log())?;
    }
    Ok((user, log))
}

/// The namespaces in which a process is forked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForkPlace {
    /// In the launcher's mount namespace.
    Own,
    /// In the mount namespace that executions share, and in the IPC namespace if that is shared.
    Shared { ipc: bool },
}

/// Enters the namespaces that executions share, if this one's files can be mounted there.
fn enter_shared(
    root: &PreparedRoot,
    shared: &mut Option<SharedNamespaces>,
    spec: &SandboxSpec,
    user: SandboxUser<'_>,
) -> Result<ForkPlace, StepError> {
    if let Some(namespaces) = shared {
        let shown = namespaces.show(root, spec, user);
        if matches!(shown, Ok(true)) {
            return Ok(ForkPlace::Shared { ipc: namespaces.has_ipc() });
        }
        namespaces.leave()?;
        if shown.is_err() {
            // The error is reported where the same is done again.
            *shared = None;
        }
    }
    root.match_inputs(spec)?;
    Ok(ForkPlace::Own)
}

/// Waits for the end of a child, and leaves it a zombie. Returns its exit status, or minus a
/// signal. Ends this process if its parent has ended.
fn follow(child: Pid, init: &mut NamespaceInit) -> Result<i32, StepError> {
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
    if is_withheld(child)? {
        init.kill_all()?;
    }
    end_of(child, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
}

/// Becomes `exec`. Returns the reason, if that is not possible.
fn become_exec(
    root: &PreparedRoot,
    spec: &SandboxSpec,
    user: SandboxUser<'_>,
    log: File,
    place: ForkPlace,
) -> StepError {
    match prepare_exec(root, spec, user, log, place) {
        Ok(mut command) => at("start", &spec.exec)(command.exec()),
        Err(failed) => failed,
    }
}

fn prepare_exec(
    root: &PreparedRoot,
    spec: &SandboxSpec,
    user: SandboxUser<'_>,
    log: File,
    place: ForkPlace,
) -> Result<Command, StepError> {
    let terminal = spec.terminal.as_deref().map(take_terminal).transpose()?;
    if terminal.is_none() {
        setpgid(None, None).map_err(at("make a process group", ""))?;
    }
    if let (SandboxUser::Nobody(nobody), Some(terminal)) = (user, &terminal) {
        nobody.give(terminal, Path::new("the terminal"))?;
    }
    match place {
        ForkPlace::Own => {
            unshare(UnshareFlags::NEWNS | UnshareFlags::NEWIPC)?;
            // The execution sees mount points, regardless of the modes of files of its own.
            let mask = umask(MASK);
            enter(root.complete(spec, user)?, TMP)?;
            look_around(spec)?;
            umask(mask);
        }
        ForkPlace::Shared { ipc } => {
            if !ipc {
                unshare(UnshareFlags::NEWIPC)?;
            }
            chdir(TMP).map_err(at("enter", TMP))?;
        }
    }
    user.assume()?;
    let mut command = spec.command(log).map_err(at("write", spec.log()))?;
    if let Some(terminal) = terminal {
        let [input, output] = [terminal.try_clone(), terminal.try_clone()]
            .map(|it| it.map_err(at("open", "the terminal")));
        command.stdin(input?).stdout(output?).stderr(terminal);
    }
    Ok(command)
}

/// Makes a terminal of the host the controlling terminal of this process, in a session and a process group of its own.
fn take_terminal(path: &Path) -> Result<File, StepError> {
    setsid().map_err(at("make a session", ""))?;
    let path = below(OLD, path);
    let terminal =
        OpenOptions::new().read(true).write(true).open(&path).map_err(at("open", &path))?;
    ioctl_tiocsctty(&terminal).map_err(at("control", path))?;
    Ok(terminal)
}

/// It is ready, and the only process in its namespace.
const ALONE: u8 = b'a';
/// It has killed all other processes, and children of the launcher are among them.
const OTHERS: u8 = b'o';
/// It is the only process, and ends: it has reaped others, so its resource usage includes theirs, or one of them has
/// limited it.
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
    pub(super) ended: OwnedFd,
    asks: File,
    told: File,
}

impl NamespaceInit {
    /// Forks it. Everything that this process forks from now on is in its namespace.
    ///
    /// It keeps these capabilities, beside that to set the numbers of its processes.
    pub(super) fn start(keeps: CapabilitySet) -> Result<Self, ProcessEnd> {
        let ((asked, asks), (told, tells)) = (pipe()?, pipe()?);
        unshare(UnshareFlags::NEWPID)?;
        let (asked, tells) = (File::from(asked), File::from(tells));
        let pid = fork_process(KeptFiles::Only(&[asked.as_fd(), tells.as_fd()]), || {
            run_init(&asked, &tells, keeps).unwrap_or_else(send_failed);
            0
        })?;
        drop((asked, tells));
        let ended = pidfd_open(pid, PidfdFlags::empty()).map_err(at("watch number one", ""))?;
        let mut init = Self { pid, ended, asks: asks.into(), told: told.into() };
        // If it could not begin, it has sent why.
        init.hear().map(|_| init).map_err(|_| ProcessEnd::Over)
    }

    /// Ends the remaining processes of an execution after `exec` was reaped. Returns their resource usage if there were
    /// any; then the init has ended as well. `reap_other` reaps a process that is not a child of it.
    fn end_all(
        &mut self,
        mut reap_other: impl FnMut() -> Result<(), ProcessEnd>,
    ) -> Result<Option<ProcessUsage>, ProcessEnd> {
        loop {
            self.asks.write_all(b"e").map_err(at("ask", "number one"))?;
            match self.hear().map_err(at("hear of", "number one"))? {
                ALONE => return Ok(None),
                LAST => return Ok(Some(reap(self.pid)?)),
                // They were made with CLONE_PARENT.
                _ => reap_other()?,
            }
        }
    }

    /// Kills all other processes, before `exec` is reaped: one that traces it keeps its end from its parent.
    fn kill_all(&mut self) -> Result<(), StepError> {
        self.asks.write_all(b"e").map_err(at("ask", "number one"))?;
        self.hear().map(drop).map_err(at("hear of", "number one"))
    }

    /// Waits until an input can be read. Ends the launcher if the first process has ended: it must have been killed.
    fn live_until_readable(&self, input: &impl AsFd) -> Result<(), ProcessEnd> {
        loop {
            let mut fds =
                [PollFd::new(&self.ended, PollFlags::IN), PollFd::new(input, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) if !fds[0].revents().is_empty() => return Err(ProcessEnd::Over),
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
fn run_init(asked: &File, tells: &File, keeps: CapabilitySet) -> Result<(), StepError> {
    let numbers = show_processes()?;
    let null = below(OLD, Path::new("/dev/null"));
    let null = File::open(&null).map_err(at("open", null))?;
    unshare(UnshareFlags::NEWNS)?;
    memory(NEW, c"mode=0555")?;
    enter(NEW, "/")?;
    give_up_privileges(CapabilitySet::CHECKPOINT_RESTORE | keeps)?;
    follow_the_launcher(asked)?;
    leave_streams(&null)?;
    drop(null);
    serve_as_init(asked, tells, numbers.as_ref())
}

/// Makes the `/proc` of executions. Returns where the number of the last process can be set, if it can.
fn show_processes() -> Result<Option<File>, StepError> {
    let flags = QUIET | MountFlags::NOEXEC;
    let show_at_proc = |source: &OwnedFd| {
        let flags = flags | MountFlags::RDONLY;
        let target = Path::new(PROC);
        show(SYSTEM, Shown { source, target, recursive: false, flags, owners: None })
    };
    let numbers = match mount("proc", NEW, "proc", flags, None) {
        Ok(()) => {
            show_at_proc(&open_place(NEW)?)?;
            let numbers = below(NEW, Path::new("/sys/kernel/ns_last_pid"));
            let numbers = OpenOptions::new().write(true).open(numbers).ok();
            unmount(NEW, UnmountFlags::DETACH).map_err(at("let go of", "/proc"))?;
            numbers
        }
        // A container that covers parts of its own `/proc` allows no complete other one. Processes
        // of the host are visible in the host's, but cannot be affected.
        Err(Errno::PERM) => {
            show_at_proc(&open_place("/old/proc")?)?;
            None
        }
        Err(error) => return Err(at("mount", "/proc")(error)),
    };
    root::cover_proc()?;
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
fn serve_as_init(
    mut asked: &File,
    mut tells: &File,
    numbers: Option<&File>,
) -> Result<(), StepError> {
    // A socket would be seen in the network namespace of executions.
    let (bell, rings) = pipe()?;
    for end in [&bell, &rings] {
        fcntl_setfl(end, OFlags::NONBLOCK).map_err(at("make", "a pipe"))?;
    }
    let mut bell = File::from(bell);
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
        if !kill_others(&mut reaped)? {
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

/// Ends all other processes of the namespace. Returns whether all are gone.
fn kill_others(reaped: &mut bool) -> Result<bool, StepError> {
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
