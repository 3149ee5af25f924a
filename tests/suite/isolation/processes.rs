//! The processes of ours that a computation can see have nothing that it could take.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use super::sight::{anew, as_each_user};
use super::{is_possible, task};
use crate::lab::Lab;
use crate::needs::{self, ROOT};
use crate::program::{PATIENCE, Running};

/// The processes of the host, by their directories in `/proc`.
fn processes() -> impl Iterator<Item = PathBuf> {
    let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    all.filter(|path| path.file_name().unwrap().as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// The process that waits in a sandbox, by a word of its command.
fn waiting(mark: &str) -> Option<PathBuf> {
    processes().find(|process| {
        let words = fs::read(process.join("cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())
    })
}

/// What open files of a process lead to, without numbers.
fn open_files(process: &Path) -> BTreeSet<String> {
    let open = fs::read_dir(process.join("fd")).unwrap().flatten();
    let targets = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    let targets = targets.map(|to| to.display().to_string());
    targets.map(|to| to.split(":[").next().unwrap().to_owned()).collect()
}

/// Checks all processes of ours that share the process namespace of one that waits.
fn check(mark: &str) {
    let begin = Instant::now();
    let waiting = loop {
        match waiting(mark) {
            Some(process) => break process,
            None => assert!(begin.elapsed() < PATIENCE, "nothing waits"),
        }
        thread::sleep(Duration::from_millis(5));
    };
    let namespace = fs::read_link(waiting.join("ns/pid")).unwrap();
    assert_ne!(namespace, fs::read_link("/proc/self/ns/pid").unwrap());
    let mut seen = 0;
    for process in processes() {
        let program = fs::read_link(process.join("exe")).unwrap_or_default();
        let is_ours =
            program.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"ce"));
        if !is_ours || fs::read_link(process.join("ns/pid")).ok().as_ref() != Some(&namespace) {
            continue;
        }
        seen += 1;
        // Its pipe to the launcher, a socket whose other end it has itself, and the number of its next process.
        let own = ["pipe", "socket", "/dev/null", "/sys/kernel/ns_last_pid"];
        let files = open_files(&process);
        assert!(files.iter().all(|file| own.iter().any(|own| file.ends_with(own))), "{files:?}");
        assert_eq!(fs::metadata(process.join("environ")).unwrap().uid(), 0, "it is not hidden");
    }
    assert_eq!(seen, 1, "the first process of the namespace");
}

/// Starts an evaluation whose last call waits, and looks at all processes that it can see.
fn check_run(lab: &Lab, user: Option<u32>, options: &[&str]) {
    check_and_end(lab, Running::start(&mut anew(lab, user, options)));
}

/// Starts a command that executes something which waits, and looks at all processes that it can see.
fn check_command(lab: &Lab, arguments: &[&str]) {
    check_and_end(lab, Running::start(lab.command("ce").args(arguments)));
}

/// Looks at all processes that the waiting one can see, and ends the program.
fn check_and_end(lab: &Lab, run: Running) {
    check(&lab.path("mark").display().to_string());
    run.signal(Signal::INT);
    // The first one may have ended it by now.
    let _over = kill_process(run.pid, Signal::INT);
    drop(run.output());
}

/// A computation whose process has the mark of its laboratory as an argument.
const WAIT: &str = "mkfifo /tmp/never; sh -c 'read line </tmp/never' LAB/mark";

#[test]
fn processes_of_every_kind_of_call_have_no_privileges() {
    if !is_possible() {
        return;
    }
    if !rustix::process::getuid().is_root() {
        needs::lacks(ROOT);
        return;
    }
    for access in ["", "read LAB/data\n", "network\n", "suspend\n"] {
        let lab = task(access, WAIT);
        as_each_user(&lab, |user| check_run(&lab, user, &[]));
    }
    // The second call of a launcher.
    let lab = Lab::task("Inputs: 'x'\n(look (copy INPUT('x'))[0])[0]").isolated();
    let mark = lab.path("mark").display().to_string();
    let lab = lab
        .computation("copy", "a", "b", r#"cp "$1" "$2""#)
        .computation("look", "a", "b", &WAIT.replace("LAB/mark", &mark))
        .commit();
    as_each_user(&lab, |user| check_run(&lab, user, &["-j1"]));
    // A look into a call, and an audit of it.
    let once = format!("[ ! -e LAB/data/waits ] || {{ {WAIT}; }}; cp \"$1\" \"$2\"");
    let lab = task("read LAB/data\n", &once);
    lab.ce_run(&[]).exit(0);
    fs::write(lab.path("data/waits"), "").unwrap();
    check_command(&lab, &["audit", "../storage"]);
    let record = lab.storage().into_iter().find(|name| name.contains("/record/")).unwrap();
    let call = record.replacen("/record/", "/", 1);
    let mark = lab.path("mark").display().to_string();
    let wait = WAIT.replace("LAB/mark", &mark);
    check_command(
        &lab,
        &["shell", "../storage", call.trim_end_matches(".json"), "--", "sh", "-c", &wait],
    );
}
