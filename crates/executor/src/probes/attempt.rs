//! Attempts to break out of a sandbox, made from inside by this program itself.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, capabilities, no_new_privs, set_capabilities,
};

use super::kernel;
use super::targets::{Targets, is_process, listed, namespaces, open_to_write, possible};
use crate::sandbox::{COMPUTATION, DEVICES, INPUTS};

/// What is said where computations are executed as root outside.
pub(super) const AS_ROOT: &str = "computations are root's";

/// An attempt: its name, the words that say that it failed, and a function that returns what
/// succeeded.
pub(super) type Attempt = (&'static str, &'static str, fn(&Targets) -> Option<String>);

/// All attempts. The last ones change this process.
pub(super) const ATTEMPTS: [Attempt; 23] = [
    ("inputs", "cannot be changed", inputs),
    ("computation", "cannot be changed", computation),
    ("other files", "cannot be seen or made", other_files),
    ("home", "cannot be seen", home),
    ("files of root", "in visible directories cannot be read", files_of_root),
    ("other processes", "cannot be seen", other_processes),
    ("signals", "reach no other process", signals),
    ("network", "cannot be reached", network),
    ("sockets", "of other programs cannot be reached", sockets),
    ("host name", "is hidden and cannot be changed", host_name),
    ("namespaces", "are all its own, that of IPC too", all_namespaces),
    ("environment", "is the documented one", environment),
    ("descriptors", "of other programs are not there", descriptors),
    ("devices", "are those that do no harm, and no others can be made", devices),
    ("privileges", "are none, and there are no new ones", privileges),
    ("keyrings", "cannot be read or written", kernel::keyrings),
    ("kernel files", "show nothing of other processes, and cannot be written", kernel::files),
    ("shared memory", "and semaphores of other programs are not there", kernel::shared_memory),
    ("control groups", "have no names that identify the user", kernel::control_groups),
    ("socket kinds", "are those of its own network", kernel::socket_kinds),
    ("system calls", "that reach deep into the kernel are refused", kernel::system_calls),
    ("mounting", "is not possible, nor in a namespace of one's own", mounting),
    ("nesting", "is not possible: no namespaces can be made", kernel::nesting),
];

/// Makes all attempts, and prints a line for each: what succeeded, or nothing.
pub(super) fn all(targets: &Targets, out: &mut dyn Write) -> io::Result<()> {
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
    let name = std::os::unix::net::SocketAddr::from_abstract_name(&targets.socket).ok()?;
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
    let known = [&DEVICES[..], &["fd", "stdin", "stdout", "stderr", "shm"]].concat();
    let is_known = |path: &Path| known.iter().any(|name| path.file_name() == Some(name.as_ref()));
    let other = listed("/dev").find(|path| !is_known(path));
    other.map(|path| format!("{} is there", path.display())).or_else(|| {
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
    let writable = || mount_remount(COMPUTATION, MountFlags::BIND, "");
    let tried = possible(mounted, "something can be mounted")
        .or_else(|| possible(writable(), "the computation can be made writable"))
        .or_else(|| possible(unmount("/usr", UnmountFlags::DETACH), "the system can be removed"));
    // If there is a user namespace already, a mount namespace is enough.
    let own = kernel::leave(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)
        .or_else(|_| kernel::leave(UnshareFlags::NEWNS));
    tried
        .or_else(|| possible(own.and_then(|()| writable()), "the computation can be made writable"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_says_who_is_root_outside() {
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
}
