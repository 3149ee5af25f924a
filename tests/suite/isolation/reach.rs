//! The parts of the kernel that an isolated computation can reach.
//!
//! Attempts are made by Python, which can make any system call. Their targets are decoys, or arguments
//! that do nothing: where isolation fails, nobody is harmed.

use std::fs::File;
use std::io::{IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::process::Command;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::sight::{as_each_user, evaluate};
use super::{lab, task};
use crate::lab::Lab;
use crate::needs::needs;
use crate::program::through;

/// Makes system calls by their names.
pub(super) const CALLS: &str = r#"
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
names = 'add_key request_key keyctl syslog bpf perf_event_open userfaultfd clone unshare kcmp'.split()
numbers = dict(zip(names, (248, 249, 250, 103, 321, 298, 323, 56, 272, 312)
    if platform.machine() == 'x86_64' else (217, 218, 219, 116, 280, 241, 282, 220, 97, 272)))
numbers.update(io_uring_setup=425, io_uring_enter=426, io_uring_register=427, clone3=435, pidfd_getfd=438)
def call(name, *arguments):
    # A pointer or a number of 64 bits each.
    arguments = [a if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments]
    result = libc.syscall(ctypes.c_long(numbers[name]), *arguments)
    return result if result >= 0 else -ctypes.get_errno()
SESSION = -3
"#;

/// A script of a computation in Python.
pub(super) fn python(lines: &str) -> String {
    format!("exec python3 - \"$1\" \"$2\" 2>&1 <<'END'\nimport sys\n{CALLS}{lines}\nEND")
}

/// A laboratory for such a script.
fn python_lab(access: &str, lines: &str) -> Option<Lab> {
    needs(&["python3"]);
    lab(access, &python(lines))
}

#[test]
fn keyrings_of_the_user_cannot_be_reached() {
    let Some(lab) = python_lab(
        "",
        r#"
key = int(open(sys.argv[1]).read())
secret = ctypes.create_string_buffer(20)
at = ctypes.addressof(secret)
done = dict(read=call('keyctl', 11, key, at, 20), write=call('keyctl', 2, key, b'new', 3),
    find=call('keyctl', 10, SESSION, b'user', b'ce-decoy', 0),
    request=call('request_key', b'user', b'ce-decoy', 0, 0),
    add=call('add_key', b'user', b'ce-new', b'new', 3, SESSION), join=call('keyctl', 1, 0))
open(sys.argv[2], 'w').write(f'{done} {secret.value}\n')"#,
    ) else {
        return;
    };
    // A session keyring of its own, with a key that all who know its number may read and write.
    let starter = format!(
        r#"{CALLS}
import sys
call('keyctl', 1, 0)
key = call('add_key', b'user', b'ce-decoy', b'secret', 6, SESSION)
call('keyctl', 5, key, 0x3f3f0000)
open('../data/x', 'w').write(f'{{key}}\n')
os.execv(sys.argv[1], sys.argv[1:])"#
    );
    lab.finish(&mut through(&["python3", "-c", &starter], &lab.evaluation(&[]))).exit(0);
    let all = ["read", "write", "find", "request", "add", "join"];
    let refused: Vec<String> = all.iter().map(|name| format!("'{name}': -38")).collect();
    assert_eq!(lab.output(), format!("{{{}}} b''\n", refused.join(", ")));
}

#[test]
fn risky_system_calls_are_unavailable() {
    let Some(lab) = python_lab(
        "",
        r#"
tried = dict(bpf=(0, 0, 0), perf_event_open=(0, 0, -1, -1, 0), userfaultfd=(0,), syslog=(10, 0, 0),
    io_uring_setup=(1, 0), io_uring_enter=(-1, 0, 0, 0, 0), io_uring_register=(-1, 0, 0, 0),
    clone3=(0, 0), pidfd_getfd=(0, 0, 0), kcmp=(os.getpid(), os.getpid(), 0, 0, 0))
there = {name: call(name, *arguments) for name, arguments in tried.items()}
there = {name: result for name, result in there.items() if result != -38}
import threading
thread = threading.Thread(target=lambda: os.system('true'))
thread.start(); thread.join()
open(sys.argv[2], 'w').write(f'{there}\n')"#,
    ) else {
        return;
    };
    as_each_user(&lab, |user| assert_eq!(evaluate(&lab, user), "{}\n"));
}

#[test]
fn other_processes_cannot_be_stopped_or_spied_on() {
    let Some(lab) = python_lab(
        "",
        r#"
import errno, fcntl, socket
def attempt(act):
    try: return act()
    except OSError as error: return errno.errorcode[error.errno]
file = os.open(sys.argv[1], os.O_RDONLY)
kinds = fcntl.F_RDLCK, fcntl.F_WRLCK
told = [attempt(lambda: fcntl.fcntl(file, fcntl.F_SETLEASE, kind)) for kind in kinds]
master, slave = attempt(os.openpty) if os.path.exists('/dev/ptmx') else (0, 0)
told += [attempt(lambda: fcntl.ioctl(slave, number, b'x')) for number in (0x5412, 0x541c)]
told.append(attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)))
told.append(type(attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))).__name__)
fcntl.fcntl(file, fcntl.F_SETFD, fcntl.fcntl(file, fcntl.F_GETFD))
open(sys.argv[2], 'w').write(' '.join(map(str, told)))"#,
    ) else {
        return;
    };
    as_each_user(&lab, |user| {
        let expected = "EINVAL EINVAL EPERM EPERM EPROTONOSUPPORT socket";
        assert_eq!(evaluate(&lab, user), expected);
    });
}

#[test]
fn a_sandbox_cannot_create_namespaces() {
    let Some(lab) = python_lab(
        "",
        r#"
kinds = dict(time=0x80, mnt=0x20000, cgroup=0x2000000, uts=0x4000000, ipc=0x8000000,
    user=0x10000000, pid=0x20000000, net=0x40000000)
made = {}
for kind, flag in kinds.items():
    if kind != 'time':  # Which is an exit signal there.
        for flags in {flag, flag | kinds['user']}:
            result = call('clone', flags | 17, 0, 0, 0, 0)
            if result == 0: os._exit(0)
            if result > 0: made[f'clone {kind}'] = os.waitpid(result, 0)
    for flags in {flag | kinds['user'], flag}:
        if call('unshare', flags) == 0: made[f'unshare {kind}'] = 0
limit = open('/proc/sys/user/max_user_namespaces').read()
open(sys.argv[2], 'w').write(f'{made} {limit}')"#,
    ) else {
        return;
    };
    as_each_user(&lab, |user| assert_eq!(evaluate(&lab, user), "{} 0\n"));
}

#[test]
fn kernel_files_tell_nothing_about_other_processes() {
    let Some(lab) = python_lab(
        "",
        r#"
told = []
for name in sorted(os.listdir('/proc')):
    path = f'/proc/{name}'
    secret = not os.stat(path).st_mode & 4 or name in ('keys', 'key-users', 'sched_debug', 'timer_list')
    if secret and not os.path.isdir(path):
        try: told += [path] if open(path, 'rb').read(1) else []
        except OSError: pass
for name in 'shm', 'sem', 'msg':
    if len(open(f'/proc/sysvipc/{name}').readlines()) > 1: told.append(name)
told += [line for line in open('/proc/self/cgroup') if not line.endswith(':/\n')]
for path in '/proc/sysrq-trigger', '/proc/sys/kernel/core_pattern', '/proc/1/oom_score_adj', '/sys/devices/system/cpu/cpu0/online':
    try: open(path, 'r+b'); told.append(path)
    except OSError: pass
told += sorted(os.listdir('/dev')) + os.listdir('/dev/shm') + os.listdir('/sys') + os.listdir('/sys/devices')
open(sys.argv[2], 'w').write(f'{told}\n')"#,
    ) else {
        return;
    };
    let known = "['fd', 'full', 'null', 'ptmx', 'pts', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'urandom', \
                 'zero', 'devices', 'system']\n";
    as_each_user(&lab, |user| assert_eq!(evaluate(&lab, user), known));
}

/// The families of sockets that there are, without those that need a privilege.
const FAMILIES: &str = r#"
import socket
there = []
for family in range(1, 46):
    errors = set()
    for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET:
        try: socket.socket(family, kind).close(); errors.add(0)
        except OSError as error: errors.add(error.errno)
    if errors != {97}: there.append(family)
there = f'{there}\n'
"#;

#[test]
fn a_sandbox_has_only_sockets_of_its_own_network() {
    let write = format!("{FAMILIES}open(sys.argv[2], 'w').write(there)");
    let Some(alone) = python_lab("", &write) else { return };
    as_each_user(&alone, |user| {
        let there = evaluate(&alone, user);
        let known = |it: &str| ["1", "2", "10", "16"].contains(&it);
        assert!(there.trim_matches(['[', ']', '\n']).split(", ").all(known), "{there}");
        assert!(there.starts_with("[1, 2, "), "{there}");
    });
    let granted = task("network\n", &python(&write));
    granted.ce_run(&[]).exit(0);
    let mut python = Command::new("python3");
    let host = python.args(["-c", &format!("{FAMILIES}print(there, end='')")]);
    let host = String::from_utf8(host.output().unwrap().stdout).unwrap();
    assert_eq!(granted.output(), host);
}

#[test]
fn limits_of_the_first_process_cannot_be_changed() {
    let Some(lab) = python_lab(
        "",
        r#"
import resource
def limits(process): return resource.prlimit(process, resource.RLIMIT_NOFILE)
found = []
for process in 1, os.getpid():
    for act in lambda: limits(process), lambda: resource.prlimit(process, resource.RLIMIT_NOFILE, (9, 9)):
        try: found.append(act())
        except OSError as error: found.append(error.errno)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
found.append(resource.getrlimit(resource.RLIMIT_NOFILE))
open(sys.argv[2], 'w').write(f'{found}\n')"#,
    ) else {
        return;
    };
    as_each_user(&lab, |user| assert_eq!(evaluate(&lab, user), "[1, 1, 1, 1, (64, 64)]\n"));
}

/// Passes its output and its log to the listener, and ends with this status.
const PASS_ON: &str = r#"
import socket
out = open(sys.argv[2], 'w'); out.write('before\n'); out.flush()
print('printed', flush=True)
to = socket.socket(socket.AF_UNIX)
to.connect(NAME)
socket.send_fds(to, [b'x'], [out.fileno(), 1])
to.recv(1)
sys.exit(STATUS)"#;

/// Executes a call that passes its files to this process, which writes to them when all is over.
fn passed_on(
    listener: &UnixListener,
    (access, name): (&str, &str),
    status: &str,
    options: &[&str],
) {
    let lines = PASS_ON.replace("NAME", name).replace("STATUS", status);
    let Some(lab) = python_lab(access, &lines) else { return };
    let mut command = lab.evaluation(options);
    let (ran, mut files) = std::thread::scope(|scope| {
        let files = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
            let mut passed = RecvAncillaryBuffer::new(&mut space);
            let mut byte = [0];
            let bytes = &mut [IoSliceMut::new(&mut byte)];
            recvmsg(&stream, bytes, &mut passed, RecvFlags::empty()).unwrap();
            let rights = passed.drain().filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(files) => Some(files.map(File::from)),
                _ => None,
            });
            let files: Vec<File> = rights.flatten().collect();
            stream.write_all(b"x").unwrap();
            files
        });
        (lab.finish(&mut command), files.join().unwrap())
    });
    assert_eq!(files.len(), 2);
    ran.exit(i32::from(status != "0"));
    let found = || lab.storage().into_iter().filter(|it| it.starts_with("c_look/"));
    let texts = || found().map(|it| lab.stored(&it)).collect::<Vec<_>>();
    let before = texts();
    assert!(before.iter().any(|it| it.contains("printed")), "{before:?}");
    for file in &mut files {
        file.write_all(b"after\n").unwrap();
        file.set_len(100).unwrap();
    }
    assert_eq!(texts(), before, "{access} {options:?}");
    assert!(lab.is_tidy());
    lab.run("ce", &["verify", "../storage"]).exit(0);
}

#[test]
fn a_passed_file_descriptor_cannot_change_published_outputs() {
    let abstract_name = format!("ce-passed-on-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    let name = format!("'\\0{abstract_name}'");
    for (status, options) in
        [("0", &[][..]), ("1", &[]), ("0", &["--no-isolate"]), ("1", &["--no-isolate"])]
    {
        passed_on(&listener, ("network\n", &name), status, options);
    }
    // A socket in a directory that it sees is as good, also where that is read-only.
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let name = format!("'{}'", socket.display());
    let grant = |word: &str, path: &Path| format!("{word} {}\n", path.display());
    for grant in [grant("read", dir.path()), grant("write", dir.path()), grant("read", &socket)] {
        passed_on(&listener, (&grant, &name), "0", &[]);
    }
}
