//! Outputs that take very long to hash, copy or seal: the time limit of the call and signals end that, too.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::lab::Lab;
use crate::program::{Ran, Running, through};

/// A task whose only call makes an output with this name by a script.
fn making(output: &str, script: &str) -> Lab {
    let lab = Lab::task("Inputs: 'x'\n(make INPUT('x'))[0]");
    lab.computation("make", "a", output, script).commit()
}

#[test]
fn hashing_an_output_counts_towards_the_time_limit() {
    for (output, script) in [
        ("b", r#"truncate -s 2T "$2""#),
        // It is copied.
        ("b", r#"truncate -s 2T file; ln file "$2""#),
        ("b/", r#"truncate -s 2T "$2/file""#),
        ("b/", r#"truncate -s 2T file; ln file "$2/file""#),
    ] {
        let lab = making(output, script);
        let ran = lab.ce_run(&["--timeout", "1s"]).exit(1);
        ran.says("it timed out after 1 s");
        assert!(lab.is_tidy());
    }
}

#[test]
fn only_the_end_of_a_huge_log_is_kept() {
    // Its outputs are published as copies, and so is its log.
    let script = r#"cp "$1" "$2"; truncate -s 2T /proc/self/fd/1"#;
    let lab = making("b", script).file("computations/make/access", "network\n").commit_again();
    lab.ce_run(&["--no-sync"]).exit(0);
    let log = lab.storage().into_iter().find(|name| name.contains("/log/")).unwrap();
    assert_eq!(fs::metadata(lab.path("storage").join(log)).unwrap().len(), 64 << 20);
    assert!(lab.is_tidy());
}

#[test]
fn a_second_signal_ends_the_hashing_of_an_output() {
    let lab = making("b", r#"truncate -s 2T "$2""#);
    let running = Running::start(&mut lab.evaluation(&[]));
    let limit = Instant::now() + Duration::from_secs(300);
    let is_hashed = || {
        let files = walkdir::WalkDir::new(lab.path("storage/tmp")).into_iter().flatten();
        let mut large = files.filter(|it| it.metadata().is_ok_and(|it| it.len() > 1 << 40));
        large.any(|it| !it.path().to_string_lossy().contains("/own/"))
    };
    while !is_hashed() {
        assert!(!running.has_ended() && Instant::now() < limit, "it is hashed");
        thread::sleep(Duration::from_millis(10));
    }
    running.signal(Signal::TERM);
    running.signal(Signal::TERM);
    let output = running.output();
    assert_eq!(output.status.code().or(output.status.signal()), Some(128 + 15), "{output:?}");
    assert!(lab.is_tidy());
}

#[test]
fn holes_of_a_copied_output_stay_holes() {
    let script = r#"truncate -s 256M file; echo end >>file; ln file "$2""#;
    let directory = r#"truncate -s 256M file; echo end >>file; ln file "$2/file""#;
    for (output, script, member) in [("b", script, ""), ("b/", directory, "/file")] {
        let lab = making(output, script);
        lab.ce_run(&["--no-sync"]).exit(0);
        let names = lab.storage().into_iter().filter(|it| it.starts_with("c_make/"));
        let mut files = names.map(|name| lab.path("storage").join(name));
        let file = files.find(|it| it.metadata().is_ok_and(|it| it.len() > 1 << 28)).unwrap();
        assert!(file.to_string_lossy().ends_with(member));
        let about = file.metadata().unwrap();
        assert!(about.blocks() * 512 < 1 << 24, "{} blocks", about.blocks());
        assert_eq!(about.permissions().mode() & 0o7777, 0o444);
    }
}

/// An evaluation whose files may have at most this number of blocks of 512 bytes.
fn limited(lab: &Lab) -> Ran<'_> {
    let limit = ["sh", "-c", "ulimit -f 64; exec \"$@\"", "sh"];
    lab.finish(&mut through(&limit, &lab.evaluation(&["--no-sync"])))
}

#[test]
fn a_file_size_limit_is_an_error_of_the_run_and_a_signal_for_exec() {
    let lab = making("b", r#"exec dd if=/dev/zero of="$2" bs=1k count=200 2>/dev/null"#);
    limited(&lab).exit(1).says("it was killed by signal 25");
    fs::write(lab.path("data/x"), vec![b'x'; 200 << 10]).unwrap();
    limited(&lab).exit(5).says("File too large").says("ulimit -f");
}
