//! Large inputs: read once, and not again while their digests are cached.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;

use compeval::cache::{Cache, FileStat, digests};
use compeval::digest::Digest;
use rustix::process::Signal;

use crate::lab::Lab;
use crate::program::{Ran, Running};

const TASK: &str = "Inputs: 'x'\n(size INPUT('x'))[0]";

/// The size of an input whose digest is cached, in bytes.
const SIZE: usize = 128 << 10;

/// A laboratory whose one input is large.
fn lab() -> Lab {
    let lab = Lab::task(TASK).computation("size", "a", "size", r#"wc -c <"$1" >"$2""#);
    lab.data("x", vec![b'x'; SIZE]).commit()
}

fn cache(lab: &Lab) -> Cache {
    Cache::at(lab.path("cache/compeval"))
}

/// Caches the digest of other contents for a file; returns the name by which they show.
fn lie(lab: &Lab, path: &Path) -> String {
    let (stat, digest) = (FileStat::read(path).unwrap(), Digest::hash_bytes(&vec![b'z'; SIZE]));
    digests::insert(&cache(lab), &stat, digest);
    digest.sha1.short()
}

fn name(byte: u8) -> String {
    Digest::hash_bytes(&vec![byte; SIZE]).sha1.short()
}

#[test]
fn an_input_whose_digest_is_cached_is_not_read() {
    let lab = lab().with_storage();
    let lie = lie(&lab, &lab.path("data/x"));
    let calls = |ran: &Ran<'_>| (ran.stdout.contains(&lie), ran.stdout.contains(&name(b'x')));
    assert_eq!(calls(&lab.ce_run(&["-n"]).exit(3)), (true, false));
    let given = ["../storage", "../data/x"];
    assert_eq!(calls(&lab.run("ce-viz", &given).exit(0)), (true, false));
    let explained = lab.run("ce", &[&["explain", "--json"], &given[..]].concat()).exit(3);
    assert_eq!(calls(&explained), (true, false));
    fs::remove_dir_all(lab.path("cache")).unwrap();
    assert_eq!(calls(&lab.ce_run(&["-n"]).exit(3)), (false, true));
}

#[test]
fn a_job_is_found_by_cached_digests() {
    let lab = lab();
    lab.ce_run(&[]).exit(0);
    lab.ce_run(&["-q", "--at", "HEAD"]).exit(0);
    lie(&lab, &lab.path("data/x"));
    lab.ce_run(&["-n", "-q", "--at", "HEAD"]).exit(3);
}

#[test]
fn what_is_stored_or_verified_is_what_was_read_whatever_is_cached() {
    let lab = lab();
    let path = lab.path("data/x");
    let cached = lie(&lab, &path);
    let ran = lab.ce_run(&[]).exit(0);
    assert!(ran.stdout.contains(&name(b'x')) && !ran.stdout.contains(&cached), "{}", ran.stdout);
    lab.run("ce", &["verify", "../storage"]).exit(0);
    let (dir, rest) = (&name(b'x')[..2], &name(b'x')[2..]);
    lie(&lab, &lab.path(&format!("storage/tinputs/{dir}/{rest}")));
    lab.run("ce", &["verify", "../storage"]).exit(0);
}

#[test]
fn another_file_of_the_same_size_and_time_is_read() {
    let lab = lab();
    let path = lab.path("data/x");
    let lie = lie(&lab, &path);
    let before = path.metadata().unwrap();
    // The clock of the file system advances in steps.
    while path.metadata().unwrap().ctime_nsec() == before.ctime_nsec() {
        fs::write(&path, vec![b'y'; SIZE]).unwrap();
        File::open(&path).unwrap().set_modified(before.modified().unwrap()).unwrap();
    }
    assert_eq!(before.modified().unwrap(), path.metadata().unwrap().modified().unwrap());
    let ran = lab.ce_run(&["-n"]).exit(3);
    assert!(ran.stdout.contains(&name(b'y')) && !ran.stdout.contains(&lie), "{}", ran.stdout);
}

#[test]
fn an_unwritable_cache_does_not_matter() {
    let lab = lab();
    let silent = lab.ce_run(&["-n"]).exit(3).stderr;
    for place in ["/dev/null/cache", "relative", ""] {
        let ran = lab.finish(lab.evaluation(&["-n"]).env("XDG_CACHE_HOME", place)).exit(3);
        assert_eq!(ran.stderr, silent);
    }
    let ran = lab.finish(
        lab.evaluation(&["-n"]).env_remove("XDG_CACHE_HOME").env("HOME", lab.path("nobody")),
    );
    // Git cannot read its configuration there either.
    assert!(!lab.path("nobody").exists(), "{}", ran.stderr);
}

#[test]
fn several_large_inputs_are_in_order_and_equal_ones_are_stored_once() {
    let text = "Inputs: 'a', 'b', 'c', 'd'
        (join INPUT('a') INPUT('b') INPUT('c') INPUT('d'))[0]";
    let mut lab = Lab::task(text).computation(
        "join",
        "a b c d",
        "all",
        r#"head -qc1 "$1" "$2" "$3" "$4" >"$5""#,
    );
    for (name, byte) in [("a", b'1'), ("b", b'2'), ("c", b'1'), ("d", b'3')] {
        // One of them is read by two threads.
        let size = if byte == b'2' { 9 << 20 } else { SIZE };
        lab = lab.data(name, vec![byte; size]);
    }
    let lab = lab.commit();
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.output(), "1213");
    lab.run("ce", &["verify", "../storage"]).exit(0);
    let inputs = lab.results().into_keys().filter(|name| name.starts_with("tinputs/")).count();
    assert_eq!(inputs, 3);
    assert!(lab.is_tidy());
}

/// Interrupts a run while it reads from a pipe, with which this goes on.
fn interrupted(go_on: impl FnOnce(io::PipeWriter) + Send + 'static) {
    let lab = lab();
    let (reader, mut pipe) = io::pipe().unwrap();
    let mut command = lab.command("ce-run");
    let running = Running::start(command.args(["../storage", "/dev/stdin"]).stdin(reader));
    drop(command);
    // A pipe holds less, so what comes first has been read.
    pipe.write_all(&[0; 1 << 20]).unwrap();
    running.signal(Signal::INT);
    let writer = thread::spawn(move || go_on(pipe));
    let ran = Ran::new(&lab, running.output());
    drop(writer);
    let ran = ran.exit(130).says("ce-run: interrupted while inputs are read");
    assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    assert!(lab.is_tidy());
    assert!(lab.results().is_empty());
}

#[test]
fn reading_an_input_without_end_can_be_interrupted() {
    interrupted(|mut pipe| while pipe.write_all(b"more").is_ok() {});
}

#[test]
fn waiting_for_an_input_can_be_interrupted() {
    interrupted(std::mem::forget);
}

#[test]
fn a_device_cannot_be_an_input() {
    let lab = lab();
    for options in [&[][..], &["-n"], &["-q"]] {
        let run = |input| lab.run("ce-run", &[options, &["../storage", input]].concat()).exit(2);
        let ran =
            run("/dev/zero").says("cannot read the input x, /dev/zero\n  because: it is a device");
        ran.says("  try: give another file or directory, or -p x=TEXT");
    }
    assert!(!lab.path("storage").exists(), "no storage is made");
    // It has an end, and is a file that everybody has.
    lab.run("ce-run", &["../storage", "/dev/null"]).exit(0).says("1 call: 1 computed");
}

/// A laboratory with a task that lists a directory, which has more than 128 KiB.
fn lab_of_a_directory() -> Lab {
    let lab = Lab::task("Inputs: 'd'\n(list INPUT('d'))")
        .computation("list", "d", "names", r#"ls "$1" >"$2""#)
        .commit();
    fs::remove_file(lab.path("data/d")).unwrap();
    for (name, byte) in [("a", b'a'), ("b", b'b'), ("sub/c", b'c')] {
        let path = lab.path("data/d").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, vec![byte; 128 << 10]).unwrap();
    }
    lab
}

/// The directories that are task inputs, sorted by the time of their records.
fn stored_directories(lab: &Lab) -> Vec<PathBuf> {
    let records = walkdir::WalkDir::new(lab.path("storage/tinputs/record")).into_iter();
    let mut records: Vec<_> = records.map(|it| it.unwrap().into_path()).collect();
    records.retain(|path| path.is_file());
    records.sort_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    let place = |path: &PathBuf| {
        let name = path.strip_prefix(lab.path("storage/tinputs/record")).unwrap();
        lab.path("storage/tinputs").join(name.with_extension(""))
    };
    records.iter().map(place).collect()
}

#[test]
fn a_directory_shares_unchanged_files_with_its_earlier_version() {
    let lab = lab_of_a_directory();
    lab.ce_run(&[]).exit(0);
    fs::write(lab.path("data/d/b"), "other").unwrap();
    fs::set_permissions(lab.path("data/d/a"), fs::Permissions::from_mode(0o755)).unwrap();
    lab.ce_run(&[]).exit(0).called(vec!["list", "list"]);
    let [one, other] = stored_directories(&lab).try_into().unwrap();
    let inode = |dir: &Path, name| fs::metadata(dir.join(name)).unwrap().ino();
    assert_eq!(inode(&one, "sub/c"), inode(&other, "sub/c"));
    for differs in ["a", "b"] {
        assert_ne!(inode(&one, differs), inode(&other, differs), "{differs}");
    }
    assert_eq!(fs::read(other.join("b")).unwrap(), b"other");
    lab.run("ce", &["verify", "../storage"]).exit(0);
}

#[test]
fn a_damaged_file_is_not_shared_with_the_next_version() {
    let lab = lab_of_a_directory();
    lab.ce_run(&[]).exit(0);
    let [one] = stored_directories(&lab).try_into().unwrap();
    let damaged = one.join("sub/c");
    let time = fs::metadata(&damaged).unwrap().modified().unwrap();
    fs::set_permissions(&damaged, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&damaged, vec![b'?'; 128 << 10]).unwrap();
    File::open(&damaged).unwrap().set_modified(time).unwrap();
    fs::write(lab.path("data/d/b"), "other").unwrap();
    lab.ce_run(&[]).exit(0);
    let [_, other] = stored_directories(&lab).try_into().unwrap();
    assert_eq!(fs::read(other.join("sub/c")).unwrap(), vec![b'c'; 128 << 10]);
    assert_eq!(
        fs::metadata(other.join("a")).unwrap().ino(),
        fs::metadata(one.join("a")).unwrap().ino()
    );
}
