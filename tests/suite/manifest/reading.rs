//! Directories of every kind, and those that change while they are read.

use std::fs::{self, File, FileTimes, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, SystemTime};

use compeval::digest::Digest;
use compeval::manifest::{DirectoryError, EntryKind, Manifest, Refusal, Scan};
use tempfile::TempDir;

use super::{Nest, device, directory, fifo, put, read, scan, text};

fn manifest(dir: &Path) -> Manifest {
    read(&scan(dir).unwrap()).unwrap()
}

/// A directory with a file `a`, and one in a directory.
fn simple() -> TempDir {
    let dir = directory();
    put(&dir.path().join("a"), "contents of a\n");
    put(&dir.path().join("sub/b"), "b\n");
    dir
}

#[test]
fn ten_thousand_nested_directories_use_bounded_stack_and_descriptors() {
    const DEPTH: usize = 10_000;
    let dir = directory();
    let nest = Nest::new(&dir.path().join("top"), DEPTH);
    let top = nest.top.try_clone().unwrap();
    let reading = move || read(&Scan::walk(top, &AtomicBool::new(false)).unwrap()).unwrap();
    let reader = std::thread::Builder::new().stack_size(256 << 10).spawn(reading).unwrap();
    let manifest = reader.join().unwrap();
    assert_eq!(manifest.entries().len(), DEPTH / 100);
    // The deepest comes first: `d/d` is less than `d/f`.
    let path = &manifest.entries()[0].path;
    assert_eq!((path.len(), &path[path.len() - 4..]), (2 * DEPTH + 1, &b"/d/f"[..]));
    assert_eq!(Manifest::parse(&text(&manifest)), Ok(manifest));
}

#[test]
fn many_files_in_many_directories_are_each_read() {
    let dir = directory();
    for room in 0..200 {
        for file in 0..50 {
            put(&dir.path().join(format!("{room}/{file}")), format!("{room} {file}"));
        }
    }
    (0..5000).for_each(|file| put(&dir.path().join(format!("{file}.txt")), format!("{file}")));
    let manifest = manifest(dir.path());
    assert_eq!(manifest.entries().len(), 15_000);
    for entry in manifest.entries() {
        let path = str::from_utf8(&entry.path).unwrap();
        let contents = path.trim_end_matches(".txt").replace('/', " ");
        let expected = EntryKind::File {
            contents: Digest::hash_bytes(contents.as_bytes()),
            executable: false,
        };
        assert_eq!(entry.kind, expected, "{path}");
    }
}

#[test]
fn large_and_sparse_files_and_hard_links_are_files_like_others() {
    let dir = directory();
    let large = |size: usize| (0..).flat_map(u64::to_le_bytes).take(size).collect::<Vec<u8>>();
    // Alone it is hashed by two threads; two of them by one each.
    for (name, size) in [("large", (8 << 20) + 3), ("other", (9 << 20) + 1)] {
        put(&dir.path().join(name), large(size));
        File::create(dir.path().join("sparse")).unwrap().set_len(3 << 20).unwrap();
        fs::hard_link(dir.path().join("sparse"), dir.path().join("again")).unwrap();
        let manifest = manifest(dir.path());
        for entry in manifest.entries() {
            let path = dir.path().join(str::from_utf8(&entry.path).unwrap());
            let contents = Digest::hash_bytes(&fs::read(path).unwrap());
            assert_eq!(entry.kind, EntryKind::File { contents, executable: false });
        }
        fs::remove_file(dir.path().join("again")).unwrap();
    }
}

#[test]
fn only_the_execute_bit_of_the_owner_counts() {
    let dir = simple();
    let with = |mode| {
        fs::set_permissions(dir.path().join("a"), Permissions::from_mode(mode)).unwrap();
        manifest(dir.path()).digest()
    };
    assert_eq!(with(0o644), with(0o433));
    assert_eq!(with(0o755), with(0o500));
    assert_ne!(with(0o644), with(0o744));
    let before = manifest(dir.path()).digest();
    fs::set_permissions(dir.path().join("sub"), Permissions::from_mode(0o700)).unwrap();
    assert_eq!(manifest(dir.path()).digest(), before);
}

#[test]
fn empty_directories_count_and_links_are_not_followed() {
    let dir = directory();
    assert_eq!(text(&manifest(dir.path())), b"compeval directory 1\n");
    fs::create_dir_all(dir.path().join("a/empty")).unwrap();
    symlink("a", dir.path().join("link")).unwrap();
    symlink("../nothing", dir.path().join("a/dangling")).unwrap();
    let expected = "compeval directory 1\nlink ../nothing\ta/dangling\ndir a/empty\nlink a\tlink\n";
    assert_eq!(String::from_utf8(text(&manifest(dir.path()))).unwrap(), expected);
    // The directory itself may be given by a link.
    let parent = directory();
    symlink(dir.path(), parent.path().join("way")).unwrap();
    assert_eq!(manifest(&parent.path().join("way")), manifest(dir.path()));
}

#[test]
fn all_invalid_entries_are_reported_at_once() {
    let dir = simple();
    let at = |name: &str| dir.path().join(name);
    fifo(&at("fifo"));
    let _socket = UnixListener::bind(at("socket")).unwrap();
    let has_device = device(&at("device"));
    put(&at("sub/.git"), "gitdir: ../..\n");
    put(&at(".git/config"), "");
    symlink("/etc/passwd", at("sub/absolute")).unwrap();
    symlink("../../out", at("sub/outside")).unwrap();
    let DirectoryError::Refused(refused) = scan(dir.path()).unwrap_err() else { panic!() };
    let told: Vec<String> = refused.iter().map(ToString::to_string).collect();
    let mut expected = vec![
        ".git belongs to a Git repository, which cannot be part of a value",
        "device is a device, which cannot be part of a value",
        "fifo is a FIFO, which cannot be part of a value",
        "socket is a socket, which cannot be part of a value",
        "sub/.git belongs to a Git repository, which cannot be part of a value",
        "sub/absolute is a symbolic link to /etc/passwd, which is an absolute path",
        "sub/outside is a symbolic link to ../../out, which is outside of the directory",
    ];
    if !has_device {
        expected.remove(1);
    }
    assert_eq!(told, expected);
    assert!(matches!(refused[0].why, Refusal::Repository));
}

#[test]
fn a_file_that_has_changed_since_the_scan_is_noticed() {
    let changes: [fn(&Path) -> io::Result<()>; 7] = [
        |a| File::options().append(true).open(a)?.write_all(b"more"),
        |a| File::create(a).map(drop),
        |a| {
            // The same size and time: only the time of the change tells.
            let modified = a.metadata()?.modified()?;
            fs::write(a, "another one..\n")?;
            File::options().write(true).open(a)?.set_times(FileTimes::new().set_modified(modified))
        },
        |a| fs::remove_file(a),
        |a| fs::remove_file(a).and_then(|()| fs::create_dir(a)),
        |a| {
            fs::remove_file(a)?;
            fifo(a);
            Ok(())
        },
        |a| {
            fs::rename(a, a.with_file_name("moved"))?;
            symlink("moved", a)
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let dir = simple();
        let scan = scan(dir.path()).unwrap();
        // The times of a file system take steps.
        std::thread::sleep(Duration::from_millis(20));
        change(&dir.path().join("a")).unwrap();
        let result = scan.read(&AtomicBool::new(false), &AtomicU64::new(0));
        let changed = matches!(&result, Err(DirectoryError::Changed(path)) if **path == *b"a");
        assert!(changed, "{number}: {result:?}");
    }
    let dir = simple();
    let scan = scan(dir.path()).unwrap();
    fs::remove_dir_all(dir.path().join("sub")).unwrap();
    let error = scan.read(&AtomicBool::new(false), &AtomicU64::new(0)).unwrap_err();
    assert_eq!(error.to_string(), "sub was changed while it was read");
}

/// Another run makes a hard link to a file that never changes, or removes one.
#[test]
fn a_new_hard_link_is_not_a_change_where_files_are_linked() {
    let dir = simple();
    let scans = [(); 2].map(|()| scan(dir.path()).unwrap());
    // The times of a file system take steps.
    std::thread::sleep(Duration::from_millis(20));
    fs::hard_link(dir.path().join("a"), dir.path().with_extension("link")).unwrap();
    let [strict, linked] = scans;
    let read = |scan: Scan| scan.read(&AtomicBool::new(false), &AtomicU64::new(0));
    assert!(matches!(read(strict), Err(DirectoryError::Changed(path)) if *path == *b"a"));
    assert!(read(linked.linked()).is_ok());
    fs::remove_file(dir.path().with_extension("link")).unwrap();
    let linked = scan(dir.path()).unwrap().linked();
    fs::write(dir.path().join("a"), "another size").unwrap();
    assert!(matches!(read(linked), Err(DirectoryError::Changed(path)) if *path == *b"a"));
}

#[test]
fn reading_ends_on_request() {
    let dir = simple();
    let stop = AtomicBool::new(true);
    assert!(matches!(Scan::at(dir.path(), &stop), Err(DirectoryError::Interrupted)));
    let read = scan(dir.path()).unwrap().read(&stop, &AtomicU64::new(0));
    assert!(matches!(read, Err(DirectoryError::Interrupted)));
}

#[test]
fn stamps_tell_whether_anything_has_changed() {
    let dir = simple();
    let at = |name: &str| dir.path().join(name);
    let stamps = || {
        let scan = scan(dir.path()).unwrap();
        (scan.stamp(), scan.exact_stamp())
    };
    let touch = |name: &str, time: SystemTime| {
        let file = File::options().write(true).open(at(name)).unwrap();
        file.set_times(FileTimes::new().set_modified(time)).unwrap();
    };
    let past = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 7);
    touch("a", past);
    let before = stamps();
    assert_eq!(stamps(), before);
    let changes: [&dyn Fn(); 8] = [
        &|| put(&at("a"), "contents of A\n"),
        &|| touch("a", past + Duration::from_nanos(1)),
        &|| fs::set_permissions(at("a"), Permissions::from_mode(0o755)).unwrap(),
        &|| put(&at("sub/new"), ""),
        &|| fs::rename(at("a"), at("c")).unwrap(),
        &|| fs::create_dir(at("empty")).unwrap(),
        &|| symlink("a", at("link")).unwrap(),
        &|| {
            fs::remove_file(at("link")).unwrap();
            symlink("b", at("link")).unwrap();
        },
    ];
    let mut seen = vec![before];
    for (number, change) in changes.into_iter().enumerate() {
        change();
        let now = stamps();
        assert!(seen.iter().all(|(one, other)| *one != now.0 && *other != now.1), "{number}");
        seen.push(now);
    }
}

#[test]
fn a_copy_with_times_has_the_same_stamp_and_is_another_directory() {
    let dir = simple();
    let copy = directory();
    put(&copy.path().join("sub/b"), "b\n");
    put(&copy.path().join("a"), "contents of a\n");
    for name in ["a", "sub/b"] {
        let modified = dir.path().join(name).metadata().unwrap().modified().unwrap();
        let file = File::options().write(true).open(copy.path().join(name)).unwrap();
        file.set_times(FileTimes::new().set_modified(modified)).unwrap();
    }
    let (one, other) = (scan(dir.path()).unwrap(), scan(copy.path()).unwrap());
    assert_eq!(one.stamp(), other.stamp());
    assert_ne!(one.exact_stamp(), other.exact_stamp());
    let moved = copy.path().with_extension("moved");
    fs::rename(copy.path(), &moved).unwrap();
    assert_eq!(scan(&moved).unwrap().exact_stamp(), other.exact_stamp());
    fs::rename(moved, copy.path()).unwrap();
}

#[test]
fn the_stamp_is_the_hash_of_lines_that_find_can_print() {
    let dir = simple();
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 7);
    for name in ["a", "sub/b"] {
        let file = File::options().write(true).open(dir.path().join(name)).unwrap();
        file.set_times(FileTimes::new().set_modified(time)).unwrap();
    }
    let text =
        "compeval stamp 1\nfile 14 1000000000000000007 a\nfile 2 1000000000000000007 sub/b\n";
    assert_eq!(scan(dir.path()).unwrap().stamp(), Digest::hash_bytes(text.as_bytes()).blake3);
}

#[test]
fn a_directory_is_racy_while_a_file_of_it_is() {
    let dir = simple();
    assert!(scan(dir.path()).unwrap().is_racy());
    // Without files nothing can change unseen.
    fs::remove_file(dir.path().join("a")).unwrap();
    fs::remove_file(dir.path().join("sub/b")).unwrap();
    assert!(!scan(dir.path()).unwrap().is_racy());
}
