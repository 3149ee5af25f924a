//! The user's umask, in a process of its own, since all threads share it.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::process::Command;
use std::thread;

use rustix::fs::Mode;
use rustix::process::umask;

use ce_files::umask::{as_user, create_dir, create_dir_all, exact, for_user, take, write};

/// All in one test: the umask is the process's.
#[test]
fn new_files_and_processes_get_the_umask_and_exact_modes_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let mode =
        |name: &str| fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
    umask(Mode::from_raw_mode(0o027));
    write(dir.path().join("before"), "").unwrap();
    assert_eq!((mode("before"), for_user(0o666)), (0o640, 0o666), "the kernel applies it");
    take();
    take();
    create_dir_all(dir.path().join("a/b")).unwrap();
    create_dir(dir.path().join("a/c")).unwrap();
    write(dir.path().join("file"), "").unwrap();
    assert_eq!(["a", "a/b", "a/c", "file"].map(mode), [0o750, 0o750, 0o750, 0o640]);
    thread::scope(|scope| {
        for number in 0..4 {
            let place = dir.path().join(format!("exact-{number}"));
            scope.spawn(move || {
                for round in 0..50 {
                    let made = place.with_extension(round.to_string());
                    let make = || DirBuilder::new().mode(0o775).create(&made);
                    exact(0o775, make).unwrap();
                    let made = fs::metadata(made).unwrap().permissions().mode();
                    assert_eq!(made & 0o777, 0o775);
                }
            });
            scope.spawn(|| {
                for _ in 0..5 {
                    let mut asks = Command::new("sh");
                    asks.args(["-c", "umask"]).stdout(std::process::Stdio::piped());
                    let child = as_user(|| asks.spawn()).unwrap();
                    let told = child.wait_with_output().unwrap().stdout;
                    assert_eq!(String::from_utf8(told).unwrap().trim(), "0027");
                }
            });
        }
    });
    assert_eq!(umask(Mode::empty()), Mode::empty(), "it is 0 again");
}
