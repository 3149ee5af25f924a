//! The requirements of a storage are probed, reported in words and in JSON, and nothing is left behind.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::Signal;
use serde_json::Value;

use crate::arith::Arith;
use crate::lab::{Lab, snapshot};
use crate::mount;
use crate::needs::{self, needs};
use crate::program::{PATIENCE, Running, through};

/// The probes of every storage.
const ANYWHERE: [&str; 5] = ["writing", "file system", "space", "processes", "sharing"];

/// The probes of a storage in which files can be written.
const WRITABLE: [&str; 15] = [
    "mounts",
    "exclusive files",
    "hard links",
    "replacing",
    "moving",
    "flushing",
    "long names",
    "case",
    "characters",
    "time stamps",
    "clock",
    "read-only",
    "programs",
    "copying",
    "removing",
];

/// The probes of what disturbs measurements.
const MEASURING: [&str; 5] = ["processors", "frequency", "stolen time", "pressure", "neighbours"];

/// The attempts to break out, if computations can be isolated.
const BREAK_OUTS: [&str; 27] = [
    "isolation",
    "inputs",
    "computation",
    "other files",
    "root",
    "home",
    "files of root",
    "other processes",
    "signals",
    "network",
    "sockets",
    "host name",
    "namespaces",
    "environment",
    "descriptors",
    "devices",
    "privileges",
    "keyrings",
    "kernel files",
    "shared memory",
    "control groups",
    "socket kinds",
    "open files",
    "system calls",
    "mounting",
    "nesting",
    "left behind",
];

/// Returns the attempts that are made here, as the rest of the names tells.
fn attempted(names: &[&str]) -> &'static [&'static str] {
    if names.ends_with(&["isolation"]) { &BREAK_OUTS[..1] } else { &BREAK_OUTS }
}

/// The findings that JSON lines tell of.
fn findings(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The names of all probes, in order.
fn names(findings: &[Value]) -> Vec<&str> {
    findings.iter().map(|finding| finding["probe"].as_str().unwrap()).collect()
}

#[test]
fn a_missing_storage_is_probed_and_not_left_behind() {
    let lab = Lab::empty();
    let doctor = lab.run("ce", &["doctor", "--json", "../new/storage"]);
    let findings = findings(&doctor.stdout);
    let names = names(&findings);
    assert_eq!(names, [&ANYWHERE[..], &WRITABLE, &MEASURING, attempted(&names)].concat());
    for finding in &findings {
        // The tests may run in memory, on a slow or a nearly full disk, and as root.
        let may_be = [
            "file system",
            "space",
            "processes",
            "flushing",
            "read-only",
            "isolation",
            "other processes",
        ];
        let name = finding["probe"].as_str().unwrap();
        let may_be_noted = may_be.contains(&name) || MEASURING.contains(&name);
        assert!(finding["grade"] == "ok" || may_be_noted, "{finding}");
        assert_eq!(finding["means"].is_null(), finding["grade"] == "ok", "{finding}");
    }
    let broken = findings.iter().any(|finding| finding["grade"] == "broken");
    let told = if broken { "cannot keep all its promises" } else { "can keep all its promises" };
    doctor
        .exit(if broken { 5 } else { 0 })
        .says(&format!("ce: {} probes: ", names.len()))
        .says(told);
    assert!(!lab.path("new").exists());
}

#[test]
fn without_a_storage_measuring_and_isolation_are_probed() {
    let lab = Lab::empty();
    let doctor = lab.run("ce", &["doctor", "--json"]).exit(0).says("no file system was probed");
    let findings = findings(&doctor.stdout);
    let names = names(&findings);
    assert_eq!(names, [&MEASURING[..], attempted(&names)].concat());
}

#[test]
fn probing_changes_nothing_that_is_in_the_storage() {
    let arith = Arith::evaluated();
    let files = || {
        let all = snapshot(&arith.path(""));
        // Two directories have other times: files come and go in them.
        all.lines().filter(|line| !line.starts_with("4")).collect::<Vec<_>>().join("\n")
    };
    let before = files();
    let doctor = arith.ce(&["doctor", "results"]);
    assert!(doctor.out.starts_with("ok      writing          directories and files can be made\n"));
    assert_eq!(
        doctor.out.lines().filter(|line| !line.starts_with(' ')).count().min(20),
        20,
        "{doctor:?}"
    );
    assert_eq!(before, files());
    assert_eq!(fs::read_dir(arith.path("tmp")).unwrap().count(), 0);
}

#[test]
fn an_unwritable_storage_is_reported_with_all_other_findings() {
    let lab = Lab::empty().data("file", "");
    let doctor = lab.run("ce", &["doctor", "--json", "../data/file/storage"]).exit(5);
    let findings = findings(&doctor.stdout);
    let names = names(&findings);
    assert_eq!(names, [&ANYWHERE[..], &MEASURING, attempted(&names)].concat());
    let found = findings[0]["found"].as_str().unwrap();
    assert!(found.ends_with("../data/file/storage/tmp/RUN: Not a directory (os error 20)"));
    assert_eq!(findings[0]["grade"], "broken");
    assert!(findings[0]["means"].as_str().unwrap().contains("nothing can be computed"));
    assert!(findings[0]["hint"].as_str().unwrap().contains("name a directory"));
    doctor.says("cannot keep all its promises");
}

#[test]
#[cfg(debug_assertions)]
fn an_operation_that_fails_is_reported_and_nothing_is_left_behind() {
    let lab = Lab::empty();
    let doctor = |fault: &str| {
        let mut command = lab.command("ce");
        command.args(["doctor", "../storage"]).env("CE_FAULT", fault);
        lab.finish(&mut command)
    };
    let mut told = 0;
    for operation in (1..=40).step_by(3) {
        let doctor = doctor(&format!("{operation}:EIO"));
        assert!([Some(0), Some(5)].contains(&doctor.status.code()), "{}", doctor.stderr);
        told += usize::from(doctor.stdout.contains("Input/output error"));
        assert!(!lab.path("storage").exists(), "fault at {operation}: {}", doctor.stdout);
    }
    assert!(told > 5, "only {told} faults were told");
    let full = doctor("10+:ENOSPC").exit(5);
    full.shows("No space left on device").shows("make room").says("cannot keep");
}

#[test]
fn an_interrupt_removes_the_created_files() {
    let lab = Lab::empty();
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    // Into a pipe that is full: the program waits while it tells of its first probe.
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    let full = loop {
        if let Err(error) = writer.write_all(b" ") {
            break error.kind();
        }
    };
    assert_eq!(full, ErrorKind::WouldBlock);
    fcntl_setfl(&writer, flags).unwrap();
    let mut command = lab.command("ce");
    let doctor = Running::start(command.args(["doctor", "../storage"]).stdout(writer));
    drop(command);
    let begun = Instant::now();
    while !lab.path("storage/tmp").exists() {
        assert!(begun.elapsed() < PATIENCE, "nothing is probed");
        thread::sleep(Duration::from_millis(1));
    }
    doctor.signal(Signal::INT);
    let mut printed = String::new();
    reader.read_to_string(&mut printed).unwrap();
    let output = doctor.output();
    assert_eq!(output.status.code(), Some(130));
    assert!(printed.trim_start().lines().count() <= 1, "{}", printed.trim_start());
    assert!(String::from_utf8(output.stderr).unwrap().contains("interrupted"));
    assert!(!lab.path("storage").exists());
}

#[test]
fn a_computation_cannot_break_out_in_any_way_as_root_or_another_user() {
    let lab = Lab::empty();
    let users = [None, rustix::process::getuid().is_root().then(|| lab.another_user()).flatten()];
    for user in users.into_iter().flatten().map(Some).chain([None]) {
        let mut command = lab.command("ce");
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        command.args(["doctor", "--json"]).arg(dir.path()).current_dir(dir.path());
        user.map(|user| command.uid(user).env("HOME", "/nonexistent"));
        let doctor = lab.finish(&mut command);
        let findings = findings(&doctor.stdout);
        let first = findings.iter().position(|finding| finding["probe"] == "isolation").unwrap();
        let mut ways = 0;
        for finding in &findings[first..] {
            ways += usize::from(finding["grade"] == "ok");
            let note =
                ["isolation", "other processes"].contains(&finding["probe"].as_str().unwrap());
            assert!(finding["grade"] == "ok" || note && finding["grade"] == "note", "{finding}");
        }
        match ways {
            // Nothing can break out of what cannot be made.
            0 => needs::lacks("user namespaces"),
            _ => assert!(BREAK_OUTS.len() - ways <= 1, "{ways}"),
        }
    }
}

/// Has the kernel refuse to install filters of system calls, as if it had none.
const NO_FILTERS: &str = r"
import ctypes, os, platform, struct, sys
number = 317 if platform.machine() == 'x86_64' else 277
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (6, 0, 0, 0x50026), (6, 0, 0, 0x7fff0000)]
steps = [struct.pack('HBBI', *step) for step in steps]
text = ctypes.create_string_buffer(b''.join(steps))
program = struct.pack('HP', len(steps), ctypes.addressof(text))
libc = ctypes.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program): sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])";

#[test]
fn a_kernel_without_system_call_filters_is_reported_and_still_isolates() {
    let lab = Lab::empty();
    let mut command = lab.command("ce");
    command.args(["doctor", "--json", "../storage"]);
    needs(&["python3"]);
    let mut command = through(&["python3", "-c", NO_FILTERS], &command);
    if command.output().unwrap().status.code() == Some(77) {
        needs::lacks("filters of system calls");
        return;
    }
    let doctor = lab.finish(&mut command);
    let findings = findings(&doctor.stdout);
    let grade = |name: &str| {
        let finding = findings.iter().find(|finding| finding["probe"] == name)?;
        finding["grade"].as_str()
    };
    if grade("nesting").is_some() {
        assert_eq!(grade("system calls"), Some("note"), "{}", doctor.stdout);
        // The kernel may have no keyrings, and no sockets of these kinds.
        for name in ["keyrings", "socket kinds"] {
            assert_ne!(grade(name), Some("broken"), "{}", doctor.stdout);
        }
        for name in ["nesting", "mounting", "kernel files"] {
            assert_eq!(grade(name), Some("ok"), "{}", doctor.stdout);
        }
    }
}

#[test]
fn a_storage_from_which_nothing_can_be_started_is_named() {
    let mut lab = Lab::task("Inputs: 'x'\n(copy INPUT('x'))[0]")
        .computation("copy", "a", "b", r#"cat "$1" >"$2""#)
        .data("x", "x\n");
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.isolated().commit();
    let mount = "mount -t tmpfs -o noexec tmpfs ../storage && mkdir ../storage/tinputs";
    if let Some(ran) = mount::with(&lab, mount, &lab.evaluation(&["--no-sync"])) {
        ran.exit(1).says("Permission denied").says("its file system is mounted noexec");
    }
    let mut doctor = lab.command("ce");
    doctor.args(["doctor", "../storage"]);
    if let Some(ran) = mount::with(&lab, mount, &doctor) {
        ran.shows("no isolated computation can be executed: its exec is started from the storage");
    }
}
