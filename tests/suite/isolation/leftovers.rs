//! A computation finds nothing of the one before it in the same launcher, whose namespaces they share.

use std::fs;

use super::is_possible;
use super::reach::python;
use super::sight::{as_each_user, evaluate};
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
fn objects_and_marks_of_the_one_before_are_not_there() {
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
fn an_empty_directory_tells_nothing_of_the_one_before() {
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

/// Signals, slows down, looks into and adds a brother to everything that it can reach; first it says what it is itself.
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
fn the_next_one_is_started_as_if_there_was_none_before() {
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
fn nothing_that_is_shown_to_several_can_be_written() {
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
fn inputs_of_every_kind_take_the_place_of_others() {
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
