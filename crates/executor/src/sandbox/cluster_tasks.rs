//! Tasks that the launcher of a cluster starts, in sandboxes. Tasks of one execution on one host share a sandbox: they
//! see each other's processes and shared memory, as MPI wants it, and the network of the host.
//!
//! Each task is this program, started again with a hidden argument. The first one on a host forks a *holder*, which prepares namespaces as
//! a launcher does, and hands them to all tasks. Each task enters them, and forks a process that becomes `exec`: so `exec` has the
//! processors, limits and signals that the cluster gives its task. The holder ends when all tasks of the host have ended, or with the daemon
//! of the cluster, and with that all processes in the namespaces. No process of ours stays there but the first one, which has nothing.
//!
//! Tasks find the holder by an abstract socket with a random name, which must belong to their own user.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{env, thread};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitIdOptions, chdir, geteuid, getppid, pidfd_open,
    set_parent_process_death_signal, umask,
};
use rustix::thread::{
    CapabilitySet, LinkNameSpaceType, UnshareFlags, move_into_link_name_space, set_thread_groups,
};
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

use super::launcher::{NamespaceInit, install_filter, prepare};
use super::launcher_processes::{
    KeptFiles, OLD, ProcessEnd, Reply, StepError, at, below, end_of, fork_process, hide,
    leave_streams, pipe, reap, receive_message, send_message, unshare,
};
use super::mounts::VERIFY;
use super::root::{MASK, PreparedRoot, enter, look_around};
use super::seccomp::CallFilter;
use super::spec::{Bind, BindMode, SandboxSpec, TMP};
use super::user::{InsideUser, SandboxUser, give_up_privileges};
use super::{SandboxError, SharedState};
use crate::invocation::{Invocation, open_verified};

/// The hidden first argument that makes this program a task.
pub(super) const TASK: &str = "--sandboxed";

/// The suffix of the file beside the specification that says why a task could not be isolated.
const REFUSED: &str = "refused";

/// The status of a task that could not begin, as shells have it for a program that cannot be executed.
const NOT_BEGUN: u8 = 126;

/// The interval at which a task looks for the keeper.
const LOOK: Duration = Duration::from_millis(5);

/// The exit statuses of processes that HUP, INT, KILL and TERM have ended, as in shells.
const ENDED_BY_SIGNALS: [u8; 4] = [129, 130, 137, 143];

/// The time within which a signal to all processes of a step has reached them.
const OTHERS: Duration = Duration::from_secs(1);

/// Signals that clusters send to all processes of a task: `exec` answers them, and what holds its sandbox does not.
const ANSWERED: [i32; 7] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM];

/// The directories in which a server of PMIx, which the cluster starts for tasks, shares files with them.
const SERVER_DIRECTORIES: [&str; 2] = ["PMIX_SERVER_TMPDIR", "PMIX_SYSTEM_TMPDIR"];

/// The sandbox of the tasks of an execution, as the process that starts them has it.
#[derive(Debug)]
pub(crate) struct TaskSandbox {
    /// The file of its specification.
    file: PathBuf,
    /// The files and variables that tasks may see.
    pub(crate) spec: SandboxSpec,
    /// The words that a launcher executes on every task.
    pub(crate) words: Vec<OsString>,
}

impl TaskSandbox {
    /// Writes the sandbox specification of the tasks of an invocation to a file that the hosts share. `token` is part
    /// of its name, and cannot be guessed.
    pub(crate) fn new(
        invocation: &Invocation,
        token: &str,
        statuses: PathBuf,
    ) -> Result<Self, SandboxError> {
        let spec = SandboxSpec::from_invocation(invocation)?;
        let file = invocation.stage.path.join(format!("{token}.sandbox"));
        let step = |doing: &str, path: &Path| {
            let (doing, path) = (doing.to_owned(), path.to_owned());
            move |source| SandboxError::Step { doing, path, source }
        };
        let program = env::current_exe().map_err(step("find", Path::new("this program")))?;
        // It may hold what `access` grants of the environment.
        let mut open = File::options();
        let written = open.write(true).create_new(true).mode(0o600).open(&file);
        written.and_then(|mut it| spec.write(&mut it)).map_err(step("write", &file))?;
        let devices = SharedState::from_access(&invocation.access).devices;
        let words = [program.into(), TASK.into(), file.clone().into(), statuses.into()];
        let words = words.into_iter().chain(devices.into_iter().map(OsString::from)).collect();
        Ok(Self { file, spec, words })
    }

    /// Returns the environment of tasks and their launcher, beside the variables that the launcher sets.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.spec.environment.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Returns the reason why a task could not begin, if one could not. Removes the files.
    pub(crate) fn refused(&self) -> Option<SandboxError> {
        let told = self.file.with_extension(REFUSED);
        let why = fs::read(&told).ok().filter(|why| !why.is_empty());
        let why = why.map(|why| Reply::read(&mut &why[..]));
        [&self.file, &told].into_iter().for_each(|file| drop(fs::remove_file(file)));
        why.map(|why| why.map_or_else(SandboxError::Lost, SandboxError::unexpected))
    }
}

/// The message of a task that could not begin, unless the reason is reported otherwise.
struct NotBegun(Option<Reply>);

impl NotBegun {
    /// Writes the message to a file. Returns the exit status, which says the same.
    fn report(self, file: Option<&File>) -> u8 {
        if let (Some(why), Some(mut file)) = (self.0, file) {
            drop(file.write_all(&why.frame()));
        }
        NOT_BEGUN
    }
}

impl From<StepError> for NotBegun {
    fn from(failed: StepError) -> Self {
        Self(Some(failed.reply()))
    }
}

/// Executes a task: the words are the file of its specification, the beginning of the names of files for exit statuses, and the
/// devices that it may use. The process must have one thread.
pub(super) fn task(words: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<PathBuf> = words.map(PathBuf::from).collect();
    let [file, statuses, devices @ ..] = &words[..] else { return NOT_BEGUN.into() };
    // In the sandbox it could not be found.
    let told = File::options().append(true).create(true).open(file.with_extension(REFUSED)).ok();
    let told = told.as_ref();
    run_task(file, statuses, devices, told).unwrap_or_else(|why| why.report(told)).into()
}

/// The place of a task, as Slurm reports it.
#[derive(Debug, PartialEq, Eq)]
struct TaskPlace {
    /// The number of its host.
    node: usize,
    /// Its own number on the host, from zero.
    local: u32,
    /// The number of tasks of the host.
    here: u32,
}

impl TaskPlace {
    fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let node = variable("SLURM_NODEID")?.parse().ok()?;
        let local = variable("SLURM_LOCALID")?.parse().ok()?;
        let here = tasks_of(&variable("SLURM_STEP_TASKS_PER_NODE")?, node)?;
        Some(Self { node, local, here })
    }
}

/// The number of tasks of a host, in the numbers of all, such as `2(x3),1`.
fn tasks_of(all: &str, mut node: usize) -> Option<u32> {
    for part in all.split(',') {
        let (tasks, times) = part.split_once("(x").unwrap_or((part, "1)"));
        match node.checked_sub(times.strip_suffix(')')?.parse().ok()?) {
            Some(left) => node = left,
            None => return tasks.parse().ok(),
        }
    }
    None
}

/// Executes a task, waits for its end, and notes its exit status as [`Allocation::launcher`] has it. `refused` gets the reason why `exec`
/// could not be started.
///
/// [`Allocation::launcher`]: crate::slurm::Allocation::launcher
fn run_task(
    file: &Path,
    statuses: &Path,
    devices: &[PathBuf],
    refused: Option<&File>,
) -> Result<u8, NotBegun> {
    let opened = File::open(file).map_err(at("read", file))?;
    let spec = SandboxSpec::read(&mut &opened).and_then(|it| it.ok_or(Errno::NODATA.into()));
    let spec = spec.map_err(at("read", file))?;
    let place = TaskPlace::from_environment(|name| env::var(name).ok());
    let place = place.ok_or(Errno::INVAL).map_err(at("find the place of", "a task"))?;
    // Older MPIs are served by an open file.
    let kept: Option<i32> = env::var("PMI_FD").ok().and_then(|it| it.parse().ok());
    close_fds::set_fds_cloexec(3, kept.as_slice());
    let (asked, others) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for signal in ANSWERED {
        let flag = if signal == SIGTERM { &asked } else { &others };
        signal_hook::flag::register(signal, Arc::clone(flag)).map_err(at("watch", "signals"))?;
    }
    let mut noted = statuses.to_owned().into_os_string();
    noted.push(env::var_os("SLURM_PROCID").unwrap_or_default());
    let mut noted = File::create(&noted).map_err(at("write", &noted))?;
    let token = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = SocketAddr::from_abstract_name(format!("{token}.{}", place.node));
    let name = name.map_err(at("make", "a socket"))?;
    let mut why = None;
    if place.local == 0 {
        let listener = UnixListener::bind_addr(&name).map_err(at("make", "a socket"))?;
        why = Some(start_holder(&listener, &spec, devices, place.here)?);
    }
    // As long as it is open, the holder stays.
    let holder = connect(&name)?;
    let (told, namespaces) = receive_message(&holder).map_err(at("enter", SANDBOX))?;
    let [user] = told[..] else {
        // The first task of a host knows why.
        let why = why.and_then(|why| Reply::read(&mut File::from(why)).ok());
        return Err(NotBegun(why));
    };
    let user = InsideUser::from_word(user);
    // In the namespace it could not. Who may not do it outside either has no groups that matter.
    let _not_allowed = set_thread_groups(&[]);
    // Processes of the same user are there.
    hide()?;
    join(&namespaces, user).map_err(at("enter", SANDBOX))?;
    drop(namespaces);
    let exec = fork_process(KeptFiles::AllBut(&[]), || {
        NotBegun::from(become_exec(&spec, user)).report(refused)
    })?;
    give_up_privileges(CapabilitySet::KILL)?;
    let status = end_of(exec, WaitIdOptions::EXITED)?;
    let status = u8::try_from(if status < 0 { 128 - status } else { status }).unwrap_or(u8::MAX);
    // A signal to all processes of a step reaches them one after the other.
    if ENDED_BY_SIGNALS.contains(&status) {
        thread::sleep(OTHERS);
    }
    let asked = if asked.load(Ordering::Relaxed) { " asked" } else { "" };
    write!(noted, "{status}{asked}").map_err(at("write", statuses))?;
    Ok(status)
}

/// The sandbox of the tasks of a host, in errors.
const SANDBOX: &str = "the sandbox of this host";

/// Connects to the holder of this host, which the first task starts.
fn connect(name: &SocketAddr) -> Result<UnixStream, StepError> {
    loop {
        match UnixStream::connect_addr(name) {
            // The first task may be late. If the task cannot begin, Slurm ends this process.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => thread::sleep(LOOK),
            holder => {
                let holder = holder.map_err(at("find", SANDBOX))?;
                let is_own = is_of_own_user(&holder).map_err(at("find", SANDBOX))?;
                return is_own.then_some(holder).ok_or(Errno::PERM).map_err(at("trust", SANDBOX));
            }
        }
    }
}

/// Whether the other end of a socket belongs to this user.
fn is_of_own_user(socket: &UnixStream) -> rustix::io::Result<bool> {
    Ok(socket_peercred(socket)?.uid == geteuid())
}

/// The kinds of namespaces that a task enters, in the order in which the holder sends them, and their names in `/proc`.
const NAMESPACES: [(LinkNameSpaceType, &str); 6] = [
    (LinkNameSpaceType::User, "user"),
    (LinkNameSpaceType::Mount, "mnt"),
    (LinkNameSpaceType::InterProcessCommunication, "ipc"),
    (LinkNameSpaceType::HostNameAndNISDomainName, "uts"),
    (LinkNameSpaceType::ControlGroup, "cgroup"),
    (LinkNameSpaceType::ProcessID, "pid_for_children"),
];

/// Enters namespaces. Processes that are forked from now on are in the process namespace, too.
fn join(namespaces: &[OwnedFd], user: InsideUser) -> rustix::io::Result<()> {
    let mut all: Vec<_> = NAMESPACES.iter().map(|(kind, _)| *kind).zip(namespaces).collect();
    if user != InsideUser::Same {
        // Root has its rights to the others outside of the namespace of users.
        all.rotate_left(1);
    }
    all.into_iter().try_for_each(|(kind, fd)| move_into_link_name_space(fd.as_fd(), Some(kind)))
}

/// Gives this process the user, the directory and the privileges that `exec` has, and lets it die with the task.
fn prepare_for_exec(user: InsideUser) -> Result<(), StepError> {
    user.assume()?;
    chdir(TMP).map_err(at("enter", TMP))?;
    give_up_privileges(CapabilitySet::empty())?;
    // The cluster's server shares a directory with tasks.
    install_filter(CallFilter { alone: false, writes: true })?;
    // A change of the user would take it back.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(at("follow", "the task"))
}

/// Becomes `exec`, in the namespaces of the holder. Returns the reason, if that is not possible.
fn become_exec(spec: &SandboxSpec, user: InsideUser) -> StepError {
    match prepare_for_exec(user) {
        // It has the environment that its launcher was given, and the variables that the launcher has set.
        Ok(()) => at("start", &spec.exec)(Command::new(&spec.exec).args(&spec.arguments).exec()),
        Err(failed) => failed,
    }
}

/// Forks the holder. Returns where it says why it cannot isolate.
fn start_holder(
    listener: &UnixListener,
    spec: &SandboxSpec,
    devices: &[PathBuf],
    tasks: u32,
) -> Result<OwnedFd, StepError> {
    let (why, tells) = pipe()?;
    let daemon = getppid().ok_or(Errno::SRCH).map_err(at("find", "the daemon of the cluster"))?;
    fork_process(KeptFiles::AllBut(&[why.as_fd()]), || {
        match hold(listener, spec, devices, tasks, daemon, &tells) {
            Err(ProcessEnd::Failed(failed)) => tell_failure(&tells, failed),
            Ok(()) | Err(ProcessEnd::Over) => 0,
        }
    })?;
    Ok(why)
}

/// Reports to the first task why isolation fails. Returns the exit status of the process that has failed.
fn tell_failure(tells: &OwnedFd, failed: StepError) -> u8 {
    let _gone = rustix::io::write(tells, &failed.reply().frame());
    1
}

/// Prepares the namespaces, hands them to all tasks of this host, and waits until these have ended. `tells` gets the reason why the process
/// that makes mounts has failed.
fn hold(
    listener: &UnixListener,
    spec: &SandboxSpec,
    devices: &[PathBuf],
    tasks: u32,
    daemon: Pid,
    tells: &OwnedFd,
) -> Result<(), ProcessEnd> {
    // Slurm waits until no process has the streams of a task.
    leave_streams(&File::open("/dev/null").map_err(at("open", "/dev/null"))?)?;
    let daemon = pidfd_open(daemon, PidfdFlags::empty()).map_err(at("watch", "a process"))?;
    let spec = on_this_host(spec.clone())?;
    let root = prepare(&SharedState { network: true, writes: true, devices: devices.into() })?;
    let keeps = root.nobody.as_ref().map_or(CapabilitySet::empty(), |_| CapabilitySet::KILL);
    // The holder ends with this process, and so does its namespace.
    let init = NamespaceInit::start(keeps)?;
    root.match_inputs(&spec)?;
    let (socket, other) = UnixStream::pair().map_err(at("make", "a socket"))?;
    let maker = fork_process(KeptFiles::AllBut(&[socket.as_fd()]), || {
        make_namespaces(&root, &spec, &other)
            .map_or_else(|failed| tell_failure(tells, failed), |()| 0)
    })?;
    drop(other);
    let (user, made) = receive_message(&socket).map_err(at("hear of", "a process"))?;
    reap(maker)?;
    // If it could not make them, it has reported the reason.
    let [mounts, ipc] = <[OwnedFd; 2]>::try_from(made).map_err(|_| ProcessEnd::Over)?;
    let own = |name| -> Result<OwnedFd, StepError> {
        let path = below(OLD, &Path::new("/proc/self/ns").join(name));
        File::open(&path).map(OwnedFd::from).map_err(at("open", path))
    };
    let mut namespaces = Vec::new();
    for (kind, name) in NAMESPACES {
        namespaces.push(match (kind, &root.nobody) {
            (LinkNameSpaceType::User, Some(nobody)) => {
                nobody.namespace.try_clone().map_err(at("open", name))?
            }
            (LinkNameSpaceType::Mount, _) => mounts.try_clone().map_err(at("open", name))?,
            (LinkNameSpaceType::InterProcessCommunication, _) => {
                ipc.try_clone().map_err(at("open", name))?
            }
            _ => own(name)?,
        });
    }
    hand_out(listener, &user, &namespaces, tasks, [&daemon, &init.ended])?;
    Ok(())
}

/// Makes the mounts of tasks, as a process of its own, and sends them with the namespace of IPC and the user that tasks are.
fn make_namespaces(
    root: &PreparedRoot,
    spec: &SandboxSpec,
    holder: &UnixStream,
) -> Result<(), StepError> {
    unshare(UnshareFlags::NEWNS | UnshareFlags::NEWIPC)?;
    let stage = &spec.stage;
    let stage =
        open_verified(&below(OLD, &stage.path), stage.id).map_err(at(VERIFY, &stage.path))?;
    let user = SandboxUser::find(root.nobody.as_ref(), &stage);
    let mask = umask(MASK);
    enter(root.complete(spec, user)?, TMP)?;
    umask(mask);
    look_around(spec)?;
    let own = ["/proc/self/ns/mnt", "/proc/self/ns/ipc"];
    let [mounts, ipc] = own.map(|path| File::open(path).map_err(at("open", path)));
    let (mounts, ipc) = (mounts?, ipc?);
    send_message(holder, &[user.inside().word()], &[mounts.as_fd(), ipc.as_fd()])
        .map_err(at("tell", "the holder"))
}

/// Sends the namespaces to each task that asks for them. Returns when all tasks have ended, or another process has.
fn hand_out(
    listener: &UnixListener,
    user: &[u8],
    namespaces: &[OwnedFd],
    tasks: u32,
    ends: [&OwnedFd; 2],
) -> Result<(), StepError> {
    let files: Vec<_> = namespaces.iter().map(AsFd::as_fd).collect();
    let (mut asked, mut open): (u32, Vec<UnixStream>) = (0, Vec::new());
    while asked < tasks || !open.is_empty() {
        let mut fds: Vec<_> = ends.iter().map(|end| PollFd::new(*end, PollFlags::IN)).collect();
        fds.push(PollFd::new(listener, PollFlags::IN));
        fds.extend(open.iter().map(|task| PollFd::new(task, PollFlags::IN)));
        match poll(&mut fds, None) {
            Err(Errno::INTR) => continue,
            polled => drop(polled.map_err(at("wait for", "a task"))?),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready[0] || ready[1] {
            return Ok(());
        }
        // A task says nothing: it has ended.
        let mut ended = ready[3..].iter().copied();
        open.retain(|_| !ended.next().unwrap_or(false));
        if ready[2] {
            let (task, _) = listener.accept().map_err(at("wait for", "a task"))?;
            // Sockets with a name in no directory can be reached by all users of the host.
            if asked < tasks && is_of_own_user(&task).unwrap_or(false) {
                asked += 1;
                // One that has ended is over.
                let _gone = send_message(&task, user, &files);
                open.push(task);
            }
        }
    }
    Ok(())
}

/// The number that the device of a path has on this host.
fn device_of(path: &Path) -> Result<u64, StepError> {
    Ok(fs::symlink_metadata(path).map_err(at(VERIFY, path))?.dev())
}

/// The same, with the files that Slurm shares with its tasks here, and the device numbers of the storage's file systems
/// here.
fn on_this_host(mut spec: SandboxSpec) -> Result<SandboxSpec, StepError> {
    spec.stage.id.0 = device_of(&spec.stage.path)?;
    for bind in &mut spec.binds {
        if let Some(id) = &mut bind.id {
            id.0 = device_of(&bind.source)?;
        }
    }
    for directory in SERVER_DIRECTORIES.iter().filter_map(env::var_os).map(PathBuf::from) {
        let is_shown = spec.binds.iter().any(|bind| bind.target.starts_with(&directory));
        if directory.is_dir() && !is_shown {
            let source = directory.canonicalize().map_err(at("find", &directory))?;
            let target = directory;
            spec.binds.push(Bind { mode: BindMode::Write, source, id: None, target });
        }
    }
    spec.binds.sort_by(|a, b| a.target.cmp(&b.target));
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_finds_its_node_and_rank() {
        let counts = |all: &str| (0..5).map(|node| tasks_of(all, node)).collect::<Vec<_>>();
        assert_eq!(counts("2(x3),1"), [Some(2), Some(2), Some(2), Some(1), None]);
        assert_eq!(counts("4"), [Some(4), None, None, None, None]);
        assert_eq!(counts("4(x"), [None; 5]);
        let place = |tasks: &str| {
            let all = [
                ("SLURM_NODEID", "1"),
                ("SLURM_LOCALID", "3"),
                ("SLURM_STEP_TASKS_PER_NODE", tasks),
            ];
            TaskPlace::from_environment(|name| {
                all.iter().find(|it| it.0 == name).map(|it| it.1.to_owned())
            })
        };
        assert_eq!(place("1,4"), Some(TaskPlace { node: 1, local: 3, here: 4 }));
        assert_eq!(place("5"), None);
    }
}
