//! A computation finds nothing of the one before it in the same launcher, whose namespaces they share.

use std::fs;

use super::is_possible;
use super::reach::{CALLS, python};
use super::sight::{anew, as_each_user, evaluate};
use crate::lab::Lab;
use crate::needs::needs;

/// Reports the objects of IPC and the private memory in one line; then it changes all of them.
const LOOK: &str = r#"
import stat, time
home, new, told = os.environ['HOME'], 0o1600, []
for kind in 'msg', 'sem', 'shm':
    told.append(len(open(f'/proc/sysvipc/{kind}').readlines()) - 1)
told += [libc.msgget(0, new), libc.semget(0, 1, new), libc.shmget(0, 4096, new)]
told += [libc.mq_open(name, os.O_RDONLY) for name in (b'/here', b'/gone')]
for place in '/dev/shm', home:
    about = os.stat(place)
    told += [oct(about.st_mode), about.st_nlink, about.st_size, about.st_mtime < 9, about.st_atime < 9]
    told += [os.listdir(place), os.listxattr(place), os.statvfs(place).f_files - os.statvfs(place).f_ffree]
told.append(sorted(os.listdir('/inputs')))
told.append(len(open('/proc/self/mountinfo').readlines()))
told.append(os.umask(0))
libc.mq_open.argtypes = ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p
libc.mq_open(b'/here', os.O_RDWR | os.O_CREAT, 0o600, None)
for place in '/dev/shm', home:
    for act in (lambda: open(f'{place}/left', 'w').write('x'), lambda: os.mkdir(f'{place}/dir'),
            lambda: os.setxattr(place, 'user.mark', b'x'), lambda: os.utime(place, (1, 1)), lambda: os.chmod(place, 0o755)):
        try: act()
        except OSError: pass
open(sys.argv[2], 'w').write(f'{open(sys.argv[1]).read()}{told}\n')"#;

/// Makes objects, and removes them: nothing is there, but the kernel has counted.
const COUNT: &str = r#"
for at in range(3):
    libc.msgctl(libc.msgget(0, 0o1600), 0, 0)
    libc.semctl(libc.semget(0, 1, 0o1600), 0, 0)
    libc.shmctl(libc.shmget(0, 4096, 0o1600), 0, 0)
libc.mq_open.argtypes = ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p
libc.mq_open(b'/gone', os.O_RDWR | os.O_CREAT, 0o600, None)
libc.mq_unlink(b'/gone')
for kind in 'msg', 'sem', 'shm':
    try: open(f'/proc/sys/kernel/{kind}_next_id', 'w').write('0')
    except OSError: pass
open(sys.argv[2], 'w').write(open(sys.argv[1]).read())"#;

#[test]
fn ipc_objects_and_marks_of_an_earlier_call_are_gone() {
    if !is_possible() {
        return;
    }
    needs(&["python3"]);
    let text = "Inputs: 'x'\n\
        (look (granted (look (count (look (look INPUT('x'))[0])[0])[0])[0])[0])[0]";
    let mut lab = Lab::task(text).isolated();
    for (name, lines) in [("look", LOOK), ("granted", COUNT), ("count", COUNT)] {
        lab = lab.computation(name, "a", "b", &python(lines));
    }
    let lab = lab.file("computations/granted/access", "read /var/lib\n").commit();
    as_each_user(&lab, |user| {
        let output = evaluate(&lab, user);
        let seen: Vec<&str> = output.lines().skip(1).collect();
        assert_eq!(seen.len(), 4, "{output}");
        assert!(seen.iter().all(|it| *it == seen[0]), "{output}");
        assert!(seen[0].starts_with("[0, 0, 0, 0, 0, 0, -1, -1, "), "{output}");
        assert!(!seen[0].contains("True"), "{output}");
    });
}

/// Reports the state of the directories in which it may write; then it leaves marks of its own at them, and nothing in them.
const MARK: &str = r#"
told = []
for place in '/tmp', '/outputs':
    about = os.stat(place)
    told += [oct(about.st_mode), about.st_mtime < 9, about.st_atime < 9, os.listxattr(place)]
open(sys.argv[2], 'w').write(f'{open(sys.argv[1]).read()}{told}\n')
for place in '/tmp', '/outputs':
    for act in (lambda: os.setxattr(place, 'user.mark', b'x'), lambda: os.utime(place, (1, 1)), lambda: os.chmod(place, MODE)):
        try: act()
        except OSError: pass"#;

#[test]
fn an_empty_directory_tells_nothing_about_an_earlier_call() {
    if !is_possible() {
        return;
    }
    needs(&["python3"]);
    let text = "Inputs: 'x'\n(keep (keep (close (keep (keep INPUT('x'))[0])[0])[0])[0])[0]";
    let mut lab = Lab::task(text).isolated();
    for (name, mode) in [("keep", "about.st_mode & 0o7777"), ("close", "0o711")] {
        lab = lab.computation(name, "a", "b", &python(&MARK.replace("MODE", mode)));
    }
    let lab = lab.commit();
    as_each_user(&lab, |user| {
        let output = evaluate(&lab, user);
        let seen: Vec<&str> = output.lines().skip(1).collect();
        assert_eq!(seen.len(), 5, "{output}");
        assert!(seen.iter().all(|it| *it == seen[0]) && !seen[0].contains("True"), "{output}");
    });
}

#[test]
fn outputs_in_a_directory_that_was_closed_are_stored() {
    if !is_possible() {
        return;
    }
    let text = "Inputs: 'x'\n(open (bare (read (open INPUT('x'))[0])[0])[0])[0]";
    let mut lab = Lab::task(text).isolated();
    for (name, mode) in [("open", "700"), ("read", "500"), ("bare", "000")] {
        let close = format!(
            r#"mkdir "$3/inner"; cat "$1" >"$2"; echo {name} >>"$2"; chmod {mode} "$3" "${{2%/*}}""#
        );
        lab = lab.computation(name, "a", "b c/", &close);
    }
    let lab = lab.commit();
    as_each_user(&lab, |user| {
        let output = evaluate(&lab, user);
        assert!(output.ends_with("open\nread\nbare\nopen\n"), "{output}");
    });
}

/// Signals, slows down, looks into and adds a brother to everything that it can reach; first it describes itself.
const REACH: &str = r#"
import signal, threading
told = [os.getpid(), os.getppid(), os.getpgid(0), os.getsid(0), os.nice(0), len(os.sched_getaffinity(0))]
told += [sorted(filter(str.isdigit, os.listdir('/proc'))), os.readlink('/proc/self/cwd'), os.umask(0o77)]
told += [open('/proc/self/oom_score_adj').read().strip(), len(os.listdir('/proc/self/fd'))]
told += [signal.getsignal(signal.SIGINT) == signal.default_int_handler, signal.pthread_sigmask(signal.SIG_BLOCK, [])]
for who in -1, 0, 1, 3, 4, os.getppid():
    for number in signal.SIGSTOP, signal.SIGKILL, signal.SIGTERM:
        try:
            if who: os.kill(who, number)
        except OSError: pass
for act in (lambda: os.setpriority(os.PRIO_USER, 0, 19), lambda: os.setpriority(os.PRIO_PGRP, 0, 19),
        lambda: libc.syscall(251, 3, 0, 3 << 13), lambda: os.sched_setaffinity(0, {0}), lambda: os.chdir('/'),
        lambda: open('/proc/self/oom_score_adj', 'w').write('999')):
    try: act()
    except OSError: pass
with open(sys.argv[2], 'w') as out: out.write(f'{open(sys.argv[1]).read()}{told}\n')
# A brother: CLONE_PARENT.
if call('clone', 0x8000 | 17, 0, 0, 0, 0) == 0:
    signal.pause()"#;

#[test]
fn a_call_sees_nothing_of_the_call_before_it() {
    if !is_possible() {
        return;
    }
    needs(&["python3"]);
    let text = "Inputs: 'x'\n(reach (reach (reach INPUT('x'))[0])[0])[0]";
    let lab = Lab::task(text).computation("reach", "a", "b", &python(REACH)).isolated().commit();
    as_each_user(&lab, |user| {
        let output = evaluate(&lab, user);
        let seen: Vec<&str> = output.lines().skip(1).collect();
        assert_eq!(seen.len(), 3, "{output}");
        assert!(seen.iter().all(|it| *it == seen[0]), "{output}");
        assert!(seen[0].contains(", 0, 2, "), "its parent cannot be seen: {output}");
    });
}

#[test]
fn shared_directories_of_the_sandbox_are_read_only() {
    if !is_possible() {
        return;
    }
    let script = r#"for path in /computation /inputs /dev / /usr /etc /proc; do
            for act in touch mkdir; do $act "$path/new" 2>&- && echo "$act $path"; done
            chmod 777 "$path" 2>&- && echo "chmod $path"; touch "$path" 2>&- && echo "touch $path"
        done >/outputs/all
        for path in /computation/exec "$1"; do
            for act in touch rm 'chmod 777' 'mv -t /tmp' 'truncate -s0'; do $act "$path" 2>&- && echo "$act $path"; done
        done >>/outputs/all
        mv /outputs/all /tmp/all; cat "$1" /tmp/all >"$2"; chmod 700 /tmp /outputs"#;
    let text = "Inputs: 'x'\n(tries (tries (tries INPUT('x'))[0])[0])[0]";
    let lab = Lab::task(text).computation("tries", "a", "b", script).isolated().commit();
    let exec = fs::read(lab.path("task/computations/tries/exec")).unwrap();
    as_each_user(&lab, |user| {
        assert_eq!(evaluate(&lab, user), "17\n");
        assert_eq!(fs::read(lab.path("task/computations/tries/exec")).unwrap(), exec);
        assert!(lab.is_tidy());
    });
}

#[test]
fn inputs_of_every_kind_replace_inputs_of_the_call_before() {
    if !is_possible() {
        return;
    }
    let list = r#"for last; do :; done; { ls -p /inputs; cat "$1" || ls "$1"; } >"$last" 2>&-"#;
    let text = "Inputs: 'x'\n\
        (one (two (one (tree INPUT('x'))[0])[0] (many INPUT('x') INPUT('x') INPUT('x'))[0])[0])[0]";
    let mut lab = Lab::task(text).isolated();
    for (name, inputs) in [("one", "a"), ("two", "a b"), ("many", "a b c")] {
        lab = lab.computation(name, inputs, "out", list);
    }
    let tree = r#"mkdir "$2"; cp "$1" "$2/part""#;
    let lab = lab.computation("tree", "a", "out/", tree).commit();
    lab.ce_run(&["-j1"]).exit(0);
    assert_eq!(lab.output(), "00\n00\n01\n00/\npart\n");
}

/// Reports all that a computation can observe and that is not of the whole host: files, the kernel's files about its namespaces, and
/// what netlink tells of the network. Then it leaves as many traces as it can.
const OBSERVE: &str = r#"
import array, fcntl, glob, socket, struct
before, out = open(sys.argv[1]).read(), open(sys.argv[2], 'w')
def tell(name, seen): out.write(f'{name}: {seen}\n')
def flags(file):
    try:
        bits = array.array('l', [0])
        fcntl.ioctl(file, 0x80086601, bits)
        return bits[0]
    except OSError: return None
def attempt(act):
    try: return act()
    except OSError as error: return error.errno
home = os.environ['HOME']
places = ['/', '/tmp', '/outputs', '/inputs', '/computation', '/dev', '/dev/shm', home, '/proc/self/fd/1', '/proc/self/fd/2']
for place in places:
    file = os.open(place, os.O_RDONLY) if 'fd' not in place else int(place[-1])
    about = os.fstat(file)
    tell(place, [oct(about.st_mode), about.st_uid, about.st_gid, about.st_nlink, about.st_size, about.st_blocks, flags(file),
        attempt(lambda: os.listxattr(file)), attempt(lambda: sorted(os.listdir(place)))])
    if file > 2: os.close(file)
for name in 'dev snmp snmp6 netstat tcp tcp6 udp udp6 raw route arp igmp igmp6 if_inet6 ip6_flowlabel fib_trie dev_mcast'.split():
    tell(name, attempt(lambda: open(f'/proc/self/net/{name}').read().split()))
for pattern in '/proc/sys/net/**', '/proc/sys/user/*', '/proc/sys/kernel/*_next_id', '/proc/sys/kernel/*name', '/proc/sysvipc/*':
    for path in sorted(glob.glob(pattern, recursive=True)):
        if os.path.isfile(path): tell(path, attempt(lambda: open(path).read()))
for name in 'limits environ cgroup oom_score_adj personality loginuid sessionid setgroups uid_map gid_map cmdline'.split():
    tell(name, attempt(lambda: open(f'/proc/self/{name}').read().replace(sys.argv[1], 'INPUT')))
# Numbers of mounts and of file systems in memory are those of the host.
mounts = [line.split()[3:] for line in open('/proc/self/mountinfo')]
tell('mounts', [line[1:] if line[1].startswith('/inputs') else line for line in mounts])
tell('sockets', [line.split()[2:6] for line in open('/proc/self/net/unix')])
tell('process', [os.getpid(), os.getppid(), os.getpgid(0), os.getsid(0), os.nice(0), sorted(os.sched_getaffinity(0)), os.umask(0)])
def dump(protocol, kind, body=bytes(20)):
    asked = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    asked.settimeout(9)
    asked.send(struct.pack('=IHHII', 16 + len(body), kind, 0x301, 1, 0) + body)
    # Times of addresses, and counters that the files have, are in the answer, too.
    return len(asked.recv(1 << 16))
for kind in 18, 22, 26, 30, 34:
    tell(f'netlink {kind}', attempt(lambda: dump(0, kind)))
out.close()
# The traces.
for place in '/tmp', '/outputs', '/dev/shm', home, '/proc/self/fd/1':
    file = os.open(place, os.O_RDONLY) if 'fd' not in place else 1
    for act in (lambda: os.setxattr(file, 'user.mark', b'x'), lambda: os.utime(file, (1, 1)), lambda: os.fchmod(file, 0o711 if file > 2 else 0o600),
            lambda: fcntl.ioctl(file, 0x40086602, array.array('l', [flags(file) | 0xc0])),
            lambda: [open(f'{place}/{"n" * 200}{at}', 'w').close() for at in range(300)],
            lambda: [os.unlink(f'{place}/{"n" * 200}{at}') for at in range(300)]):
        try: act()
        except (OSError, TypeError): pass
for family, address in (socket.AF_INET, '127.9.8.7'), (socket.AF_INET6, '::1'):
    try:
        listener = socket.socket(family); listener.bind((address, 0)); listener.listen()
        caller = socket.create_connection(listener.getsockname()[:2]); answer, _ = listener.accept()
        for _ in range(9): caller.sendall(b'x' * 4096); answer.recv(4096)
        socket.socket(family, socket.SOCK_DGRAM).sendto(b'x', (address, 9))
    except OSError: pass
for address in '192.0.2.1', '203.0.113.9':
    try: socket.create_connection((address, 9), 1)
    except OSError: pass
try:
    label = struct.pack('=16s4sBBHHHI', socket.inet_pton(socket.AF_INET6, '::1'), struct.pack('>I', 0x12345), 0, 1, 3, 60, 60, 0)
    socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).setsockopt(41, 32, label)
except OSError: pass
libc.msgget(7, 0o1600); libc.shmget(7, 4096, 0o1600); libc.semget(7, 1, 0o1600)
os.nice(3)"#;

#[test]
fn two_calls_in_a_row_see_the_same_environment() {
    if !is_possible() {
        return;
    }
    needs(&["python3"]);
    let text = "Inputs: 'x'\n(keep (look INPUT('x'))[0] (look (look INPUT('x'))[0])[0])[0]";
    // A document in a script that is as long as this would be written by a process of its own, after which a launcher is replaced.
    let program = format!("#!/usr/bin/env python3\nimport sys\n{CALLS}{OBSERVE}\n");
    let lab = Lab::task(text)
        .computation("look", "a", "b", "")
        .file("computations/look/exec", program)
        .computation("keep", "a b", "c", r#"diff "$1" "$2" >"$3" || :"#)
        // Both read what is no text for a variable.
        .data("x", "1\n2\n")
        .isolated()
        .commit();
    as_each_user(&lab, |user| {
        let mut command = anew(&lab, user, &["-j1"]);
        lab.finish(&mut command).exit(0);
        let seen = lab.results().into_iter().find(|(name, _)| name.starts_with("c_look/")).unwrap();
        assert!(String::from_utf8(seen.1).unwrap().lines().count() > 100, "it observes nothing");
        assert_eq!(lab.output(), "");
    });
}
