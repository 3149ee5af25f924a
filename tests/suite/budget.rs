//! The budget of a call in system calls, so that a change that adds one to each call is seen.
//!
//! `strace` counts the system calls of the program, with its threads and launchers: each process until it becomes a
//! computation. Two sizes of the same task are evaluated, and the difference is divided by the difference of their calls,
//! so that what happens once does not count. The calls are a chain, so that there is one at a time. System calls that only
//! wait, and those that report, are not counted: their number depends on when threads get their turns. Nor are those that
//! close something as the last action of a thread: the program may end before.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::isolation;
use crate::lab::{Lab, files};
use crate::needs::{self, needs};
use crate::program::{command, through};

/// The sizes of the task, in calls: too few for the task to be cached.
const SIZES: [usize; 2] = [20, 70];

/// The sizes of a task in files that its calls read: enough for it, and for their hashes, to be cached, and for nearly all directories of
/// the storage to have one.
const FILES: [usize; 2] = [600, 900];

/// The number of files that a call reads.
const FILES_OF_CALL: usize = 50;

/// The excess over its budget that a call may have: what happens only in some calls.
const SLACK: f64 = 0.4;

/// No limit: how many links are read on the way depends on how deep the storage is.
const NONE: u32 = u32::MAX;

/// The ways in which the task is evaluated, in the order of the budgets. At a commit, what reading the work tree takes does not
/// count.
const WAYS: [&str; 8] = [
    "cold, for each call",
    "cold, synced, for each call",
    "cold, isolated, for each call",
    "nothing to do, at a commit, for each call",
    "nothing to do, from the work tree, for each call",
    "a finished job, at a commit, for each file that it reads",
    "a finished job, from the work tree, for each file that it reads",
    "nothing to do, from the work tree, for each file that calls read",
];

/// System calls of one kind.
struct Class {
    name: &'static str,
    /// The largest number for a call, or a file, in each way.
    budget: [u32; WAYS.len()],
    calls: &'static str,
}

const fn class(name: &'static str, budget: [u32; WAYS.len()], calls: &'static str) -> Class {
    Class { name, budget, calls }
}

/// Of a cold call, 8 opens, 8 closes, 14 stats, 5 lists and 7 reads are the check of the directory that it runs from, whose three files
/// are read again as long as they are so new that a change might leave their times as they are: two seconds, which may be over
/// in one size of the task, and not in the other.
///
/// A file that a `stat` shows to be unchanged is neither opened nor read: one in the work tree, and one in the storage if calls are looked
/// up. A finished job has files of its commit, which need no look.
///
/// A call looks whether another commit with its tree executes it in isolation, and whether one has published meanwhile: 2 opens, a
/// close and a list. An isolated call has a second lease instead of the first look. Without that, runs at two commits execute it twice. Its
/// launcher reads three numbers that say whether anything was made in the IPC namespace, and talks to the process that starts it. Its two directories and
/// its log are new ones, so nothing of the one before it can be seen there: 5 removals, a change, and 4 more mounts. Each mount of it
/// is kept apart from the host's, which is another 5 calls. Pseudoterminals of its own, without which programs stop that control others, are
/// mounted, and let go of.
///
/// The outputs of a call are in a private directory until they are sealed: a rename, and an `ioctl` and a change for each
/// output.
#[rustfmt::skip]
const CLASSES: [Class; 14] = [
    class("opens",     [22, 27, 27, 1, 10, 0, 0, 0], "open openat openat2 creat"),
    class("closes",    [20, 25, 32, 1,  9, 0, 0, 0], "close"),
    class("stats",     [38, 40, 45, 2, 14, 0, 1, 2], "stat lstat fstat newfstatat fstatat64 statx access \
                                             faccessat faccessat2"),
    class("lists",     [13, 13, 11, 0,  8, 0, 0, 0], "getdents getdents64"),
    class("followed",  [NONE, NONE, NONE, 0, NONE, 0, 0, 0], "readlink readlinkat"),
    class("reads",     [11, 11, 26, 1,  5, 0, 0, 0], "read readv pread64 preadv recvfrom recvmsg"),
    class("writes",    [ 1,  1,  9, 0,  0, 0, 0, 0], "write writev pwrite64 pwritev sendto sendmsg ftruncate"),
    class("renames",   [ 2,  2,  2, 0,  0, 0, 0, 0], "rename renameat renameat2"),
    class("links",     [ 2,  2,  3, 0,  0, 0, 0, 0], "link linkat symlink symlinkat"),
    class("removals",  [ 3,  3,  8, 0,  0, 0, 0, 0], "unlink unlinkat rmdir"),
    class("changes",   [ 2,  2,  4, 0,  0, 0, 0, 0], "mkdir mkdirat chmod fchmod fchmodat fchmodat2 utimensat"),
    class("flushes",   [ 0,  5,  0, 0,  0, 0, 0, 0], "fsync fdatasync sync_file_range syncfs"),
    class("processes", [ 1,  1,  1, 0,  0, 0, 0, 0], "fork vfork clone clone3"),
    class("others",    [11, 11, 30, 0,  0, 0, 0, 0], "chdir dup dup2 dup3 fcntl ioctl lseek kill tgkill mount \
                                             umount2 pivot_root unshare setns pipe pipe2 socketpair \
                                             getpgid setpgid setsid prctl waitid wait4 execve"),
];

/// The programs as which this one is executed; every other program of a process is a computation.
const OWN: [&str; 3] = ["/ce-run\"", "/ce\"", "\"/proc/self/exe\""];

/// A chain of this number of calls; each adds to its input.
pub(crate) fn chain(calls: usize) -> Lab {
    let script = r#"read -r text <"$1"; echo "$text." >"$2""#;
    let mut lab =
        Lab::empty().computation("next", "a", "b", script).file("inputs", "x\n").data("x", "x\n");
    lab.inputs.push("x".to_owned());
    let node = |number: usize, kind: &str, value: &str| {
        let dir = lab.path("task/chain").join(number.to_string());
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("kind"), format!("{kind}\n")).unwrap();
        fs::write(dir.join("value"), format!("{value}\n")).unwrap();
        dir
    };
    node(0, "input", "x");
    for number in 1..=calls {
        let inputs = node(number, "computation", "next").join("inputs");
        fs::create_dir(&inputs).unwrap();
        symlink(format!("../../{}", number - 1), inputs.join("00-before")).unwrap();
    }
    let lab = lab.link("workflow", &format!("chain/{calls}")).commit();
    // Else each object is a file that is opened.
    lab.git("task", &["gc", "--quiet"]);
    lab
}

/// A task whose calls read this number of files of the task.
fn reading(files: usize) -> Lab {
    let path = |number: usize| format!("data/{number}");
    let call = |mut inputs: Vec<String>| {
        inputs.resize(FILES_OF_CALL, "x".to_owned());
        format!("(count {})", inputs.join(" "))
    };
    let own: Vec<String> = (0..files).map(|number| format!("OWN('{}')", path(number))).collect();
    let calls = own.chunks(FILES_OF_CALL).map(|own| call(own.to_vec())).collect();
    let names: Vec<String> = (0..FILES_OF_CALL).map(|number| format!("i{number}")).collect();
    let script = format!(r#"echo $# >"${{{}}}""#, FILES_OF_CALL + 1);
    let lab = Lab::empty().file("workflow.ce", format!("Inputs: x\n{}\n", call(calls)));
    let mut lab = lab.computation("count", &names.join(" "), "n", &script).data("x", "x\n");
    lab.inputs.push("x".to_owned());
    let write = |lab: Lab, number| lab.file(&path(number), format!("{number}\n"));
    let lab = (0..files).fold(lab, write).commit();
    lab.git("task", &["gc", "--quiet"]);
    lab
}

/// `strace`, with a file for each process and thread.
fn strace(trace: &Path) -> Vec<String> {
    let names = CLASSES.iter().flat_map(|class| class.calls.split_whitespace());
    // Architectures differ in their system calls.
    let names: Vec<String> = names.map(|name| format!("?{name}")).collect();
    let flags = ["strace", "-q", "-ff", "--seccomp-bpf", "-s0", "-o"].map(str::to_owned);
    let rest = [trace.display().to_string(), "-e".to_owned(), format!("trace={}", names.join(","))];
    flags.into_iter().chain(rest).collect()
}

/// Whether system calls can be counted; where they cannot, the test is skipped.
fn is_possible() -> bool {
    needs(&["strace"]);
    let dir = tempfile::tempdir().unwrap();
    let strace = strace(&dir.path().join("probe"));
    let mut probe = Command::new(&strace[0]);
    let quiet = probe.args(&strace[1..]).arg("true").stdout(Stdio::null()).stderr(Stdio::null());
    let possible = quiet.status().is_ok_and(|status| status.success());
    if !possible {
        needs::lacks("permission to trace");
    }
    possible
}

/// The number of the class in which a line of a trace counts, if it does.
fn class_of(line: &str) -> Option<usize> {
    let (name, arguments) = line.split_once('(')?;
    let is_told = name.starts_with("write") && ["1,", "2,"].contains(&&arguments[..2]);
    // The last is asked before each close by a build with debug assertions.
    let free = ["CLONE_THREAD", " = -1 ENOSYS", "F_GETFD"];
    if is_told || free.iter().any(|it| line.contains(it)) {
        return None;
    }
    CLASSES.iter().position(|class| class.calls.split_whitespace().any(|known| known == name))
}

/// Evaluates the task, and counts the system calls of the program, by class.
fn count(lab: &Lab, options: &[&str]) -> [f64; CLASSES.len()] {
    let traces = lab.path("traces");
    fs::create_dir(&traces).unwrap();
    let strace = strace(&traces.join("of"));
    let starter: Vec<&str> = strace.iter().map(String::as_str).collect();
    let mut command = lab.evaluation(&[&["-j1"], options].concat());
    // Nor does it say again and again that it lives and how far it has come.
    command.env("CE_SILENCE", "36000");
    lab.finish(&mut through(&starter, &command)).exit(0);
    let mut counts = [0.0; CLASSES.len()];
    for trace in files(&traces).into_values() {
        let trace = String::from_utf8_lossy(&trace);
        let is_own =
            |line: &&str| !line.starts_with("execve(") || OWN.iter().any(|own| line.contains(own));
        let mut lines: Vec<&str> = trace.lines().take_while(is_own).collect();
        let ends = |line: &&str| ["close(", "fcntl(", "+++ "].iter().any(|it| line.starts_with(it));
        let at_end = lines.iter().rev().take_while(|line| ends(line)).count();
        lines.truncate(lines.len() - at_end);
        for class in lines.into_iter().filter_map(class_of) {
            counts[class] += 1.0;
        }
    }
    fs::remove_dir_all(traces).unwrap();
    counts
}

/// Compares the system calls of a call with its budget; returns whether it is kept, and the counts.
fn compare(way: usize, labs: &[Lab; 2], options: &[&str]) -> (bool, String) {
    let sizes = if WAYS[way].ends_with("call") { SIZES } else { FILES };
    let [few, many] = [0, 1].map(|at| count(&labs[at], options));
    let (mut kept, mut sum) = (true, 0.0);
    let mut table = format!("{}:\n", WAYS[way]);
    for (at, class) in CLASSES.iter().enumerate() {
        let taken = (many[at] - few[at]) / (sizes[1] - sizes[0]) as f64;
        let exceeds = taken > f64::from(class.budget[way]) + SLACK;
        let mark = if exceeds { " <- too many" } else { "" };
        let Class { name, budget, .. } = class;
        writeln!(table, "{name:>11} {taken:6.2} of {}{mark}", budget[way]).unwrap();
        kept &= !exceeds;
        sum += taken;
    }
    (kept, table + &format!("{:>11} {sum:6.2}\n", "in all"))
}

#[test]
fn a_call_takes_no_more_system_calls_than_its_budget() {
    if !is_possible() {
        return;
    }
    let labs = SIZES.map(chain);
    let mut compared = vec![
        compare(0, &labs, &["--at", "HEAD", "--no-sync"]),
        compare(3, &labs, &["--at", "HEAD"]),
        compare(4, &labs, &[]),
        compare(1, &SIZES.map(chain), &["--at", "HEAD"]),
    ];
    if isolation::is_possible() {
        let count_isolated = || {
            let labs = SIZES.map(|calls| chain(calls).isolated());
            compare(2, &labs, &["--at", "HEAD", "--no-sync"])
        };
        // Launchers talk to other processes, and take some calls more or fewer on a busy host.
        let counted = count_isolated();
        compared.push(if counted.0 { counted } else { count_isolated() });
    }
    let kept = compared.iter().all(|(kept, _)| *kept);
    let tables: String = compared.into_iter().map(|(_, table)| table).collect();
    assert!(
        kept,
        "{tables}A call takes more system calls than it may. Make it cheaper, or raise the budget in {} \
         in the same commit, and say there why that is worth it.",
        file!(),
    );
}

#[test]
fn a_file_that_calls_have_read_is_not_read_again() {
    if !is_possible() {
        return;
    }
    let labs = FILES.map(reading);
    let run = || labs.iter().for_each(|lab| drop(lab.ce_run(&[]).exit(0)));
    run();
    // Files newer than two seconds are not cached.
    thread::sleep(Duration::from_millis(2100));
    run();
    let ways: [&[&str]; 3] = [&["--at", "HEAD", "-q"], &["-q"], &[]];
    let compared = ways.into_iter().zip(5..).map(|(options, way)| compare(way, &labs, options));
    let (kept, tables): (Vec<bool>, Vec<String>) = compared.unzip();
    assert_eq!(kept, [true; 3], "{}", tables.concat());
}

/// The system calls of `ce-run` before it is `ce`: mostly the loading of the C library.
#[test]
fn a_short_program_name_starts_ce_after_few_system_calls() {
    if !is_possible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace").display().to_string();
    let mut version = command("ce-run");
    version.arg("--version");
    let output = through(&["strace", "-q", "-o", &trace], &version).output().unwrap();
    assert!(output.stdout.starts_with(b"ce-run "), "{output:?}");
    let text = fs::read_to_string(&trace).unwrap();
    let starts = |line: &str| line.starts_with("execve(") && line.contains("/ce\", [\"ce-run\",");
    let before = text.lines().position(starts).unwrap();
    assert!((1..=80).contains(&before), "{before} system calls\n{text}");
}
