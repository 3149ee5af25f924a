//! Probes of isolation: a computation, which is this program, tries to break out of its sandbox in many ways.
//!
//! Attempts that reach for kernel objects, which all processes share, change nothing but decoys.

use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::num::NonZeroUsize;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{self, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::sync::mpsc::channel;
use std::time::Duration;

use linux_keyutils::{Key, KeyPermissions, KeyRing, KeyRingIdentifier, KeySerialId};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process, pidfd_getfd, pidfd_open,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, capabilities, no_new_privs, set_capabilities,
};

use super::{
    CallProgram, Completion, Ended, Executor, Failed, InputFile, Invocation, Isolation, Local,
    OutputFile, Sandbox, VerifiedPath,
};
use crate::sandbox::{COMPUTATION, DEVICES, INPUTS, TELLING};
use ce_files::umask;
use ce_model::access::{Access, Rule};
use ce_model::digest::Digest;
use ce_model::exit::Explain;
use ce_model::humanize::quoted_path;
use ce_model::probe_diagnosis::Diagnosis;
use ce_model::system_hints::{exhausted_limit, raising_limits};

/// The hidden first argument with which this program tries to break out.
pub const BREAK_OUT: &str = "--break-out";

/// The directory of the computation is not an export, so it has no tree id.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// Makes the attempts, in the sandbox. It takes the arguments of an `exec`.
pub fn break_out(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(input), Some(output)) = (arguments.next(), arguments.next()) else {
        return ExitCode::FAILURE;
    };
    let done = File::create(output).and_then(|mut out| {
        let targets = Targets::parse(&fs::read_to_string(input)?);
        make_all(&targets.ok_or(io::ErrorKind::InvalidData)?, &mut out)
    });
    done.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

/// Tries to break out in each way.
pub fn break_outs() -> impl Iterator<Item = Diagnosis> {
    std::iter::once_with(diagnose).flatten()
}

fn diagnose() -> Vec<Diagnosis> {
    let sandbox = Sandbox::default();
    let is_possible = match sandbox.is_possible() {
        Ok(is_possible) => is_possible,
        Err(error) => {
            let found = format!("{error}: {}", error.cause());
            let means = "it is not known whether computations can be isolated; until it is, none is executed";
            let hint = exhausted_limit(error.cause()).map_or_else(
                || "run ce doctor again".to_owned(),
                |limit| format!("{}: {limit}", raising_limits()),
            );
            return vec![Diagnosis::ok("isolation", found).note(means).hint(hint)];
        }
    };
    if !is_possible {
        let error = sandbox.refused();
        let cause = error.and_then(Error::source).map(|cause| format!(": {cause}"));
        let found = error.map(ToString::to_string).unwrap_or_default() + &cause.unwrap_or_default();
        let means = "computations can read and change everything that you can; records say so";
        let hint = error.and_then(Explain::hint);
        let hint = hint.unwrap_or_else(|| "doc/isolation.md has more".to_owned());
        return vec![Diagnosis::ok("isolation", found).note(means).hint(hint)];
    }
    let possible = Diagnosis::ok("isolation", "computations can be isolated");
    let mut found = match Trial::new().and_then(|trial| trial.run(sandbox)) {
        Ok(found) => found,
        Err(error) => {
            let means = "it is not known whether isolation holds";
            return vec![Diagnosis::ok("isolation", error.to_string()).note(means)];
        }
    };
    found.insert(0, possible);
    found
}

/// A private directory with a computation that tries to break out, and a process for it to reach.
#[derive(Debug)]
struct Trial {
    dir: PathBuf,
    /// A process outside of the sandbox.
    victim: Child,
}

impl Trial {
    fn new() -> io::Result<Self> {
        let dir =
            std::env::temp_dir().canonicalize()?.join(format!("ce-doctor-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&dir)?;
        match umask::as_user(|| Command::new("sleep").arg("600").spawn()) {
            Ok(victim) => Ok(Self { dir, victim }),
            Err(error) => {
                drop(fs::remove_dir(dir));
                Err(error)
            }
        }
    }

    /// The path of something in its directory.
    fn at(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn verified(&self, name: &str) -> io::Result<VerifiedPath> {
        VerifiedPath::verify(self.at(name))
    }

    /// Executes the attempts, and returns the findings.
    fn run(mut self, sandbox: Sandbox) -> io::Result<Vec<Diagnosis>> {
        for name in ["tree", "work", "out", "secret"] {
            umask::create_dir(self.at(name))?;
        }
        umask::write(self.at("secret/file"), "secret\n")?;
        let program = std::env::current_exe()?.canonicalize()?;
        let program_word = quoted_path(&program);
        umask::write(
            self.at("tree/exec"),
            format!("#!/bin/sh\nexec {program_word} {BREAK_OUT} \"$@\"\n"),
        )?;
        fs::set_permissions(self.at("tree/exec"), Permissions::from_mode(0o700))?;
        let tcp = TcpListener::bind("127.0.0.1:0")?;
        let socket = format!("ce-doctor-{}", std::process::id());
        let unix = UnixListener::bind_addr(&net::SocketAddr::from_abstract_name(&socket)?)?;
        let targets = Targets {
            secret: self.at("secret/file"),
            home: std::env::home_dir().unwrap_or_default(),
            program: program.clone(),
            process: i32::try_from(self.victim.id()).unwrap_or_default(),
            port: tcp.local_addr()?.port(),
            socket,
            mark: format!("600.{}", std::process::id()),
            namespaces: namespaces(),
            key: make_decoy(),
        };
        umask::write(self.at("facts"), targets.text())?;
        let isolated = self.execute(sandbox, targets.text().as_bytes(), program)?;
        drop((tcp, unix));
        let text = fs::read_to_string(self.at("out/00")).unwrap_or_default();
        let mut possible: Vec<Option<String>> = text
            .lines()
            .map(|line| Some(line.to_owned()).filter(|line| !line.is_empty()))
            .collect();
        if !isolated || possible.len() != ATTEMPTS.len() + 1 {
            return Err(io::Error::other("no computation can be isolated to try it"));
        }
        let left = possible.remove(0).or_else(|| survivor(&targets.mark));
        if !matches!(self.victim.try_wait(), Ok(None)) {
            possible[ATTEMPTS.iter().position(|it| it.0 == "signals").unwrap_or(0)] =
                Some("a process was ended".to_owned());
        }
        let is_filtered = ATTEMPTS
            .iter()
            .zip(&possible)
            .any(|(attempt, possible)| attempt.0 == "system calls" && possible.is_none());
        let mut found = Vec::with_capacity(ATTEMPTS.len() + 1);
        for ((name, held, _), possible) in ATTEMPTS.iter().zip(possible) {
            found.push(finding(name, held, possible, is_filtered));
        }
        found.push(finding("left behind", "no process can be", left, is_filtered));
        Ok(found)
    }

    /// Executes the attempts in the sandbox. Returns whether they were isolated.
    fn execute(&self, sandbox: Sandbox, targets: &[u8], program: PathBuf) -> io::Result<bool> {
        let invocation = Invocation {
            call: String::new(),
            storage: self.dir.clone(),
            tree: self.verified("tree")?,
            tree_id: EMPTY_TREE.parse().map_err(io::Error::other)?,
            inputs: vec![InputFile {
                at: None,
                file: self.verified("facts")?,
                digest: Digest::hash_bytes(targets),
                name: "00".to_owned(),
                link: None,
                variable: None,
                text: None,
            }],
            outputs: vec![OutputFile {
                at: None,
                path: self.at("out/00"),
                name: "00".to_owned(),
                variable: None,
            }],
            program: CallProgram::Exec,
            directory: None,
            work: self.verified("work")?,
            outbox: self.verified("out")?,
            stage: self.verified("")?,
            log: "log".to_owned(),
            access: Access::new(vec![Rule::Read(program)]),
            isolate: true,
            memory_limit: None,
            limit: None,
            visible_gpus: Vec::new(),
            processors: Vec::new(),
            requested: Vec::new(),
            exclusive: false,
            inspection: None,
            span: None,
        };
        let (sender, ends) = channel();
        let local = Local::new(NonZeroUsize::MIN, Some(sandbox));
        local.submit(invocation, Completion::new(move |end| drop(sender.send(end))));
        let end = ends.recv();
        local.finish();
        Ok(match end {
            Ok(Ok(Ended::Done(usage) | Ended::Failed(Failed { usage, .. }))) => {
                usage.isolation == Isolation::Namespaces
            }
            _ => false,
        })
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let _gone = self.victim.kill();
        let _gone = self.victim.wait();
        let _gone = fs::remove_dir_all(&self.dir);
    }
}

/// Attempts that only a filter of system calls prevents.
const FILTERED: [&str; 5] = ["keyrings", "socket kinds", "open files", "system calls", "nesting"];

fn finding(
    name: &'static str,
    held: &str,
    possible: Option<String>,
    is_filtered: bool,
) -> Diagnosis {
    match possible {
        None => Diagnosis::ok(name, held),
        // A container that covers parts of its own `/proc` allows no other one.
        Some(what) if name == "other processes" && what.starts_with("names") => {
            Diagnosis::ok(name, what).note("nothing can be done to them, and less is hidden")
        }
        Some(what) if what.starts_with(AS_ROOT) => Diagnosis::ok(name, what)
            .note("what only root may read can be read, if it is made in /etc or /usr meanwhile")
            .hint("run computations as another user, or on a file system with mapped mounts, such as ext4, XFS or Btrfs"),
        Some(what) if name == "control groups" => {
            Diagnosis::ok(name, what).note("nothing can be done to them, and less is hidden")
        }
        Some(what) if !is_filtered && FILTERED.contains(&name) => Diagnosis::ok(name, what)
            .note("a computation can reach more of the kernel; other files are out of its reach")
            .hint("use a kernel with CONFIG_SECCOMP_FILTER, on x86, Arm or RISC-V"),
        Some(what) => Diagnosis::ok(name, what)
            .broken("a computation can do more than doc/isolation.md says")
            .hint("report this to the developers, with the version of the kernel"),
    }
}

/// Looks for a process that has outlived the sandbox.
fn survivor(mark: &str) -> Option<String> {
    let found = listed("/proc").find(|dir| {
        let words = fs::read(dir.join("cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())
    });
    found.map(|dir| format!("{} still runs", dir.display()))
}

/// The beginning of the message where computations are executed as root outside.
const AS_ROOT: &str = "computations are root's";

/// An attempt: its name, the message for its failure, and a function that returns the parts that succeeded.
type Attempt = (&'static str, &'static str, fn(&Targets) -> Option<String>);

/// All attempts. The last ones change this process.
const ATTEMPTS: [Attempt; 25] = [
    ("inputs", "cannot be changed", inputs),
    ("computation", "cannot be changed", computation),
    ("other files", "cannot be seen or made", other_files),
    ("root", "has nothing of the host above or below it", root),
    ("home", "cannot be seen", home),
    ("files of root", "in visible directories cannot be read", files_of_root),
    ("other processes", "cannot be seen", other_processes),
    ("signals", "reach no other process", signals),
    ("network", "cannot be reached", network),
    ("sockets", "of other programs cannot be reached", sockets),
    ("host name", "is hidden and cannot be changed", host_name),
    ("namespaces", "are all its own, IPC's too", all_namespaces),
    ("environment", "is the documented one", environment),
    ("descriptors", "of other programs are not there", descriptors),
    ("devices", "are harmless, and no others can be made", devices),
    ("privileges", "are none, and none can be gained", privileges),
    ("keyrings", "cannot be read or written", keyrings),
    ("kernel files", "show nothing of other processes, and cannot be written", kernel_files),
    ("shared memory", "and semaphores of other programs are not there", shared_memory),
    ("control groups", "have no names that identify the user", control_groups),
    ("socket kinds", "belong to its own network", socket_kinds),
    ("open files", "of other processes cannot be taken", open_files),
    ("system calls", "that reach deep into the kernel are refused", system_calls),
    ("mounting", "is not possible, nor in a namespace of one's own", mounting),
    ("nesting", "is not possible: no namespaces can be made", nesting),
];

/// Makes all attempts, and prints a line for each: what succeeded, or nothing.
fn make_all(targets: &Targets, out: &mut dyn Write) -> io::Result<()> {
    // A process that tries to outlive the sandbox.
    let left = Command::new("sleep").arg(&targets.mark).process_group(0).spawn();
    writeln!(out, "{}", left.map_or_else(|error| error.to_string(), |_| String::new()))?;
    for (_, _, attempt) in ATTEMPTS {
        writeln!(out, "{}", attempt(targets).unwrap_or_default())?;
    }
    Ok(())
}

fn inputs(_: &Targets) -> Option<String> {
    let input = &Path::new(INPUTS).join("00");
    possible(open_to_write(input), "an input can be written")
        .or_else(|| possible(fs::set_permissions(input, Permissions::from_mode(0o777)), "its mode"))
        .or_else(|| possible(fs::remove_file(input), "an input can be removed"))
}

fn computation(_: &Targets) -> Option<String> {
    let dir = Path::new(COMPUTATION);
    possible(open_to_write(&dir.join("exec")), "exec can be written")
        .or_else(|| possible(File::create(dir.join("new")), "a file can be made"))
}

fn other_files(targets: &Targets) -> Option<String> {
    let beside = targets.secret.with_file_name("new");
    possible(fs::metadata(&targets.secret), "a file outside can be seen")
        .or_else(|| possible(File::create(beside), "a file outside can be made"))
        .or_else(|| possible(File::create("/usr/new"), "the system can be changed"))
}

/// Whether a path leads above the root, or something else is mounted at it.
fn root(_: &Targets) -> Option<String> {
    let places = ["/", "/..", "/proc/self/root", "/proc/self/cwd/../.."].map(fs::metadata);
    let mut ids = places.into_iter().flatten().map(|about| (about.dev(), about.ino()));
    let top = ids.next();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let at_root = mounts.lines().filter(|line| line.split(' ').nth(4) == Some("/")).count();
    ids.any(|id| Some(id) != top)
        .then(|| "a path leads above it".to_owned())
        .or_else(|| (at_root > 1).then(|| "something else is mounted there".to_owned()))
}

fn home(targets: &Targets) -> Option<String> {
    // The directory of this program may be visible.
    let other = listed(&targets.home).find(|path| !targets.program.starts_with(path));
    other.map(|path| format!("{} can be seen", path.display()))
}

/// The user outside decides, at each access. Root could read them.
fn files_of_root(_: &Targets) -> Option<String> {
    let shadow = File::open("/etc/shadow").and_then(|mut file| file.read(&mut [0]));
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let user = rustix::process::geteuid().as_raw();
    let is_read = shadow.is_ok_and(|count| count > 0);
    is_read.then(|| "/etc/shadow can be read".to_owned()).or_else(|| {
        is_root_outside(&map, user).then(|| {
            format!("{AS_ROOT}: those that are there when a computation begins are hidden, and no others")
        })
    })
}

/// Whether a user of a namespace is root outside, by its map.
fn is_root_outside(map: &str, user: u32) -> bool {
    let ranges = map.lines().filter_map(|line| {
        let mut numbers = line.split_whitespace().map_while(|number| number.parse::<u32>().ok());
        Some((numbers.next()?, numbers.next()?, numbers.next()?))
    });
    let mut outside = ranges.filter_map(|(inside, outside, count)| {
        user.checked_sub(inside).filter(|at| *at < count).map(|at| outside.wrapping_add(at))
    });
    outside.next() == Some(0)
}

fn other_processes(targets: &Targets) -> Option<String> {
    let seen = listed("/proc").filter(|path| is_process(path)).count();
    let environment = format!("/proc/{}/environ", targets.process);
    possible(File::open(environment), "the environment of a process can be read")
        .or_else(|| (seen > 10).then(|| "names and arguments of processes can be seen".to_owned()))
}

fn signals(targets: &Targets) -> Option<String> {
    let process = Pid::from_raw(targets.process)?;
    possible(kill_process(process, Signal::TERM), "a process could be ended")
}

fn network(targets: &Targets) -> Option<String> {
    let port = SocketAddr::from(([127, 0, 0, 1], targets.port));
    let connected = TcpStream::connect_timeout(&port, Duration::from_secs(1));
    let sent = UdpSocket::bind("0.0.0.0:0").and_then(|udp| udp.send_to(b"x", "192.0.2.1:9"));
    possible(connected, "a port of this host").or_else(|| possible(sent, "other hosts"))
}

fn sockets(targets: &Targets) -> Option<String> {
    let name = net::SocketAddr::from_abstract_name(&targets.socket).ok()?;
    possible(UnixStream::connect_addr(&name), "an abstract socket can be reached")
}

fn host_name(_: &Targets) -> Option<String> {
    let file = "/proc/sys/kernel/hostname";
    possible(rustix::system::sethostname(b"other"), "it can be changed")
        .or_else(|| possible(fs::write(file, "other"), "it can be changed"))
        .or_else(|| (rustix::system::uname().nodename() != c"sandbox").then(|| "it is seen".into()))
}

fn all_namespaces(targets: &Targets) -> Option<String> {
    let own = namespaces();
    let shared: Vec<&str> = own
        .split(' ')
        .zip(targets.namespaces.split(' '))
        .filter_map(|(own, other)| (own == other).then_some(own))
        .collect();
    (!shared.is_empty()).then(|| format!("{} are shared", shared.join(", ")))
}

fn environment(_: &Targets) -> Option<String> {
    // The last ones are set by the shell.
    let known = ["HOME", "LANG", "PATH", "TMPDIR", "TZ", "PWD", "OLDPWD", "SHLVL", "_"];
    let name = std::env::vars_os()
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .filter(|name| !known.contains(&name.as_str()))
        .min()?;
    Some(format!("{name} is passed on"))
}

fn descriptors(_: &Targets) -> Option<String> {
    // The standard three, the output, and this listing.
    let open = listed("/proc/self/fd").count();
    (open > 5).then(|| format!("{open} are open"))
}

fn devices(_: &Targets) -> Option<String> {
    let known = ["fd", "stdin", "stdout", "stderr", "shm", "pts", "ptmx"];
    let known = [&DEVICES[..], &known].concat();
    let other = listed("/dev")
        .find(|path| !known.iter().any(|name| path.file_name() == Some(name.as_ref())));
    // Only the device that makes one.
    let terminal = listed("/dev/pts").find(|path| path.file_name() != Some("ptmx".as_ref()));
    other.or(terminal).map(|path| format!("{} is there", path.display())).or_else(|| {
        let disk = rustix::fs::makedev(8, 0);
        let made = mknodat(CWD, "disk", FileType::BlockDevice, Mode::RUSR | Mode::WUSR, disk);
        possible(made, "a disk can be made")
    })
}

fn privileges(_: &Targets) -> Option<String> {
    let all = CapabilitySet::all();
    let all = CapabilitySets { effective: all, permitted: all, inheritable: all };
    possible(set_capabilities(None, all), "all capabilities can be had").or_else(|| {
        let has = capabilities(None).is_ok_and(|sets| !sets.permitted.is_empty());
        let new = !no_new_privs().unwrap_or(false);
        (has || new).then(|| "there are capabilities, or programs that give them".to_owned())
    })
}

fn mounting(_: &Targets) -> Option<String> {
    let mounted = mount("tmpfs", "/tmp", "tmpfs", MountFlags::empty(), None);
    let tried = possible(mounted, "something can be mounted")
        .or_else(|| possible(make_writable(), "the computation can be made writable"))
        .or_else(|| possible(unmount("/usr", UnmountFlags::DETACH), "the system can be removed"));
    // If there is a user namespace already, a mount namespace is enough.
    let own =
        leave(UnshareFlags::NEWUSER | UnshareFlags::NEWNS).or_else(|_| leave(UnshareFlags::NEWNS));
    tried.or_else(|| {
        possible(own.and_then(|()| make_writable()), "the computation can be made writable")
    })
}

fn make_writable() -> Result<(), Errno> {
    mount_remount(COMPUTATION, MountFlags::BIND, "")
}

/// All rights to a key, for its possessors and for its user.
const ANYTHING: u32 = 0x3f3f_0000;

/// Files that control the kernel.
const CONTROLS: [&str; 3] =
    ["/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/user/max_user_namespaces"];

/// Makes a key that ends with this process, and that processes of the same user can use by its
/// number; 0 if the kernel has no keyrings.
fn make_decoy() -> i32 {
    let ring = KeyRing::from_special_id(KeyRingIdentifier::Process, true);
    ring.and_then(|ring| {
        let key = ring.add_key("ce-doctor", "secret")?;
        key.set_perms(KeyPermissions::from_u32(ANYTHING))?;
        Ok(key.get_id().as_raw_id())
    })
    .unwrap_or(0)
}

fn keyrings(targets: &Targets) -> Option<String> {
    // Without a decoy, no other key is tried.
    if targets.key <= 0 {
        return None;
    }
    let key = Key::from_id(KeySerialId::new(targets.key));
    possible(key.read_to_vec(), "a key outside can be read")
        .or_else(|| possible(key.update(b"changed"), "a key outside can be changed"))
}

fn kernel_files(_: &Targets) -> Option<String> {
    if let Some(path) = listed("/proc").find(|path| !is_process(path) && is_exposed(path)) {
        return Some(format!("{} can be read", path.display()));
    }
    let control = CONTROLS.iter().find(|path| open_to_write(Path::new(path)).is_ok())?;
    Some(format!("{control} can be written"))
}

/// Whether a file of `/proc` can be read that the sandbox should cover.
fn is_exposed(path: &Path) -> bool {
    let Ok(about) = fs::symlink_metadata(path) else { return false };
    let for_root = about.is_file() && about.permissions().mode() & 0o4 == 0;
    let telling = path.file_name().is_some_and(|name| TELLING.iter().any(|it| name == *it));
    (for_root || telling)
        && File::open(path).and_then(|mut file| file.read(&mut [0])).is_ok_and(|count| count > 0)
}

fn shared_memory(_: &Targets) -> Option<String> {
    let other = ["shm", "sem", "msg"].into_iter().find(|name| {
        let list = fs::read_to_string(Path::new("/proc/sysvipc").join(name)).unwrap_or_default();
        list.lines().count() > 1
    });
    other
        .map(|name| format!("/proc/sysvipc/{name} is not empty"))
        .or_else(|| listed("/dev/shm").next().map(|_| "/dev/shm is not empty".to_owned()))
}

fn control_groups(_: &Targets) -> Option<String> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let named = groups.lines().find(|line| !line.ends_with(":/"));
    named.map(|line| format!("their names can be seen: {line}"))
}

fn socket_kinds(_: &Targets) -> Option<String> {
    let kinds = [(40, "the host of a virtual machine"), (38, "the kernel's cryptography")];
    kinds.into_iter().find_map(|(family, what)| {
        let family = AddressFamily::from_raw(family);
        let is_made = [SocketType::STREAM, SocketType::SEQPACKET]
            .into_iter()
            .any(|kind| socket(family, kind, None).is_ok());
        is_made.then(|| format!("sockets reach {what}"))
    })
}

/// Tries it with this very process, which may do anything to itself.
fn open_files(_: &Targets) -> Option<String> {
    let own = pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).ok()?;
    let taken = pidfd_getfd(own, 0, PidfdGetfdFlags::empty());
    possible(taken, "open files can be taken from processes")
}

/// Moves this process into a new namespace of this kind.
fn leave(kind: UnshareFlags) -> Result<(), Errno> {
    #[expect(deprecated, reason = "only its flag FILES is unsafe, and not used here")]
    rustix::thread::unshare(kind)
}

fn system_calls(_: &Targets) -> Option<String> {
    // Without a filter, the kernel would report too many user namespaces, or none. A single filter
    // refuses all these calls, and this one can be tried safely.
    (leave(UnshareFlags::NEWUSER) != Err(Errno::PERM)).then(|| "they are not filtered".to_owned())
}

fn nesting(_: &Targets) -> Option<String> {
    let kinds = [
        (UnshareFlags::NEWUSER, "users"),
        (UnshareFlags::NEWNS, "mounts"),
        (UnshareFlags::NEWPID, "processes"),
        (UnshareFlags::NEWNET, "network"),
        (UnshareFlags::NEWIPC, "IPC"),
        (UnshareFlags::NEWUTS, "names"),
        (UnshareFlags::NEWCGROUP, "control groups"),
        (UnshareFlags::NEWTIME, "time"),
    ];
    let made = kinds.into_iter().find(|(kind, _)| leave(*kind).is_ok());
    made.map(|(_, of)| format!("a namespace of {of} can be made"))
}

/// The namespaces of a process, as `/proc` names them.
const NAMESPACES: [&str; 6] = ["user", "mnt", "pid", "ipc", "uts", "net"];

/// Things outside of the sandbox that attempts try to reach. Written as one fact a line.
#[derive(Debug, PartialEq)]
struct Targets {
    /// A file that the sandbox hides.
    secret: PathBuf,
    /// The user's home.
    home: PathBuf,
    /// This program, which is visible.
    program: PathBuf,
    process: i32,
    /// A TCP port of the host.
    port: u16,
    /// An abstract socket of the host.
    socket: String,
    /// The argument by which a surviving process is recognised.
    mark: String,
    /// The namespaces outside.
    namespaces: String,
    /// A key that processes of the same user can read and write by its number; 0 if there is no such key.
    key: i32,
}

impl Targets {
    fn text(&self) -> String {
        let Self { secret, home, program, process, port, socket, mark, namespaces, key } = self;
        let paths = [secret, home, program].map(|path| path.display().to_string());
        format!("{}\n{process}\n{port}\n{socket}\n{mark}\n{namespaces}\n{key}\n", paths.join("\n"))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        Some(Self {
            secret: lines.next()?.into(),
            home: lines.next()?.into(),
            program: lines.next()?.into(),
            process: lines.next()?.parse().ok()?,
            port: lines.next()?.parse().ok()?,
            socket: lines.next()?.to_owned(),
            mark: lines.next()?.to_owned(),
            namespaces: lines.next()?.to_owned(),
            key: lines.next()?.parse().ok()?,
        })
    }
}

/// The paths in a directory, as far as they can be listed.
fn listed(dir: impl AsRef<Path>) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Whether a path in `/proc` is a process's.
fn is_process(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// The namespaces of this process.
fn namespaces() -> String {
    let names = NAMESPACES.map(|kind| {
        let name = fs::read_link(format!("/proc/self/ns/{kind}")).unwrap_or_default();
        name.display().to_string()
    });
    names.join(" ")
}

/// Returns `what` if an attempt succeeded.
fn possible<T, E>(done: Result<T, E>, what: &str) -> Option<String> {
    done.ok().map(|_| what.to_owned())
}

/// Opens a file for writing, as an attempt to change it.
fn open_to_write(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_of_users_tells_who_is_root_outside() {
        let exchanged = "0 65534 1\n1 1 65533\n 65534  0  1\n65535 65535 4294901760\n";
        for (map, user, is_root) in [
            (exchanged, 0, false),
            (exchanged, 1, false),
            (exchanged, 65534, true),
            ("0 0 1\n", 0, true),
            ("1000 1000 1\n", 1000, false),
            ("", 0, false),
        ] {
            assert_eq!(is_root_outside(map, user), is_root, "{map} {user}");
        }
    }

    #[test]
    fn targets_are_read_as_they_were_written() {
        let targets = Targets {
            secret: "/a/b".into(),
            home: "/root".into(),
            program: "/bin/ce".into(),
            process: 17,
            port: 80,
            socket: "name".to_owned(),
            mark: "600.5".to_owned(),
            namespaces: namespaces(),
            key: 5,
        };
        assert_eq!(Targets::parse(&targets.text()), Some(targets));
        assert_eq!(Targets::parse("a\nb\n"), None);
    }
}
