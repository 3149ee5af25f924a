//! Tests of the disk: nothing outside of the top is reached, and what is no plain file is not opened.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, mknodat};

use super::*;

fn lab() -> (tempfile::TempDir, Disk, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("storage");
    fs::create_dir(&root).unwrap();
    let disk = Disk::open(&root).unwrap();
    (dir, disk, root)
}

/// Why an operation refused to do something.
fn refusal<T>(result: Result<T>) -> Option<ForeignEntry> {
    match result {
        Err(StorageError::Io { source, .. }) => ForeignEntry::of(&source),
        _ => None,
    }
}

#[test]
fn nothing_behind_a_link_is_read_written_or_removed() {
    let (dir, disk, root) = lab();
    let decoy = dir.path().join("decoy");
    fs::create_dir(&decoy).unwrap();
    fs::write(decoy.join("file"), "decoy").unwrap();
    symlink(&decoy, root.join("link")).unwrap();
    symlink(decoy.join("file"), root.join("near")).unwrap();
    fs::write(root.join("own"), "own").unwrap();
    let (own, near) = (root.join("own"), root.join("near"));
    let (file, new) = (root.join("link/file"), root.join("link/new"));
    let link = Some(ForeignEntry::Link);
    assert_eq!(refusal(disk.metadata(&file)), link);
    assert_eq!(refusal(disk.read(&file)), link);
    assert_eq!(refusal(disk.read(&near)), link);
    assert_eq!(refusal(disk.digest(&near)), link);
    assert_eq!(refusal(disk.seal(&near)), link);
    assert!(disk.append(&near, b"x").is_err());
    assert_eq!(refusal(disk.write(&new, b"x")), link);
    assert_eq!(refusal(disk.make_dir(&new)), link);
    assert_eq!(refusal(disk.make_dirs(&new.join("a/b"))), link);
    assert_eq!(refusal(disk.link(&own, &new)), link);
    assert_eq!(refusal(disk.rename(&own, &new)), link);
    assert_eq!(refusal(disk.rename_new(&own, &new)), link);
    assert_eq!(refusal(disk.rename(&file, &own)), link);
    assert_eq!(refusal(disk.remove(&file)), link);
    assert_eq!(refusal(disk.remove_tree(&file)), link);
    assert_eq!(refusal(disk.list(&root.join("link"))), link);
    assert_eq!(refusal(disk.walk(&root.join("link"))), link);
    assert_eq!(disk.walk(&root).unwrap(), ["link", "near", "own"]);
    assert!(disk.link(&near, &root.join("second")).unwrap());
    disk.remove_tree(&root.join("link")).unwrap();
    disk.remove_tree(&near).unwrap();
    assert_eq!(fs::read_to_string(decoy.join("file")).unwrap(), "decoy");
    assert_eq!(fs::read_dir(&decoy).unwrap().count(), 1);
}

#[test]
fn a_path_outside_is_refused() {
    let (dir, disk, root) = lab();
    fs::write(dir.path().join("file"), "").unwrap();
    let twin = PathBuf::from(format!("{}-twin", root.display()));
    for path in [&dir.path().join("file"), &root.join("../file"), &root.join(".."), &twin] {
        assert_eq!(refusal(disk.remove(path)), Some(ForeignEntry::Outside), "{}", path.display());
        assert_eq!(refusal(disk.metadata(path)), Some(ForeignEntry::Outside), "{}", path.display());
    }
    assert!(dir.path().join("file").exists());
    assert!(disk.metadata(&root).unwrap().unwrap().is_dir());
}

#[test]
fn what_is_no_plain_file_is_not_waited_for() {
    let (_dir, disk, root) = lab();
    let fifo = root.join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let _listener = UnixListener::bind(root.join("socket")).unwrap();
    fs::create_dir(root.join("directory")).unwrap();
    for (name, kind) in [("fifo", "a FIFO"), ("socket", "a socket"), ("directory", "a directory")] {
        assert_eq!(refusal(disk.read(&root.join(name))), Some(ForeignEntry::Kind(kind)), "{name}");
        assert_eq!(
            refusal(disk.digest(&root.join(name))),
            Some(ForeignEntry::Kind(kind)),
            "{name}"
        );
        assert!(!disk.metadata(&root.join(name)).unwrap().unwrap().is_file());
    }
    assert!(disk.append(&fifo, b"x").is_err(), "nobody reads it");
}

#[test]
fn a_directory_that_was_made_again_is_found_again() {
    let (_dir, disk, root) = lab();
    let file = root.join("a/b/file");
    for round in ["first", "second"] {
        disk.make_dirs(&root.join("a/b")).unwrap();
        disk.write(&file, round.as_bytes()).unwrap();
        assert_eq!(disk.read(&file).unwrap().unwrap(), round.as_bytes());
        fs::remove_dir_all(root.join("a")).unwrap();
        assert!(disk.write(&file, b"").is_err());
        fs::create_dir_all(root.join("a/b")).unwrap();
        disk.write(&file, b"third").unwrap();
        fs::remove_dir_all(root.join("a")).unwrap();
    }
}

#[test]
fn more_directories_can_be_used_than_are_kept_open() {
    let (_dir, disk, root) = lab();
    for number in 0..3 * MAX_OPEN {
        let dir = root.join(number.to_string());
        disk.make_dirs(&dir).unwrap();
        disk.write(&dir.join("file"), b"").unwrap();
        assert!(disk.directories.read().unwrap().len() <= MAX_OPEN);
    }
    assert_eq!(disk.walk(&root).unwrap().len(), 3 * MAX_OPEN);
}

#[test]
fn a_tree_is_removed_however_deep_and_whatever_its_modes() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, disk, root) = lab();
    let mut deep = root.join("tree");
    for _ in 0..300 {
        disk.make_dir(&deep).unwrap();
        disk.write(&deep.join("file"), b"").unwrap();
        symlink("/", deep.join("link")).unwrap();
        deep.push("d");
    }
    for (number, mode) in [0o000, 0o555, 0o300].into_iter().enumerate() {
        let dir = root.join(format!("tree/{number}"));
        fs::create_dir_all(dir.join("below/more")).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
    }
    disk.remove_tree(&root.join("tree")).unwrap();
    assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
    disk.remove_tree(&root.join("tree")).unwrap();
}

#[test]
fn a_storage_that_a_group_shares_is_shared_throughout() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let (_dir, _, root) = lab();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o2770)).unwrap();
    let disk = Disk::open(&root).unwrap();
    disk.make_dirs(&root.join("a/b")).unwrap();
    disk.write(&root.join("a/b/file"), b"x").unwrap();
    disk.write(&root.join("a/b/sealed"), b"x").unwrap();
    disk.seal(&root.join("a/b/sealed")).unwrap();
    let mode = |name: &str| root.join(name).metadata().unwrap().mode() & 0o7777;
    assert_eq!([mode("a"), mode("a/b")], [0o2770; 2]);
    assert_eq!([mode("a/b/file"), mode("a/b/sealed")], [0o660, 0o440]);
}

/// Asks with these answers, the first one last. Returns the answer, and what each attempt was told.
fn ask(
    disk: &Disk,
    on_not_found: OnNotFound,
    mut answers: Vec<Result<u8, Errno>>,
) -> (Result<u8>, Vec<bool>) {
    let mut told = Vec::new();
    let answer = disk.retry(on_not_found, |again| {
        told.push(again);
        answers.pop().unwrap().map_err(io::Error::from).context("read", disk.root())
    });
    (answer, told)
}

#[test]
fn what_may_be_old_is_asked_for_again_where_it_may_be() {
    let (_dir, mut disk, _) = lab();
    let late = |errno| vec![Ok(7), Err(errno), Err(errno)];
    let (answer, told) = ask(&disk, OnNotFound::Accept, late(Errno::STALE));
    assert_eq!((answer.unwrap(), told), (7, vec![false, true, true]));
    for errno in [Errno::NOENT, Errno::NOTEMPTY] {
        let (answer, told) = ask(&disk, OnNotFound::Retry, late(errno));
        assert!(answer.unwrap_err().is(errno) && told.len() == 1, "a local file system knows");
    }
    disk.put_on_network();
    for errno in [Errno::NOENT, Errno::NOTEMPTY] {
        let (answer, told) = ask(&disk, OnNotFound::Retry, late(errno));
        assert_eq!((answer.unwrap(), told.len()), (7, 3), "{errno}");
    }
    let (answer, told) = ask(&disk, OnNotFound::Accept, late(Errno::NOENT));
    assert!(answer.unwrap_err().is(Errno::NOENT) && told.len() == 1, "it is an answer");
    // Nobody waits for it.
    let (answer, told) = ask(&disk, OnNotFound::Retry, late(Errno::NOTCONN));
    assert!(answer.unwrap_err().is(Errno::NOTCONN) && told.len() == 1);
}

/// What a look finds that answers these, the last one first, and how many of them were asked for.
fn look(disk: &Disk, path: &Path, mut answers: Vec<Option<u8>>) -> (Option<u8>, usize) {
    let all = answers.len();
    let found = disk.look_anew(path, || Ok(answers.pop().unwrap())).unwrap();
    (found, all - answers.len())
}

#[test]
fn over_a_network_what_is_known_of_a_name_counts_if_its_directory_says_the_same() {
    let (_dir, mut disk, root) = lab();
    let (here, gone) = (root.join("here"), root.join("gone"));
    fs::write(&here, "").unwrap();
    let old = vec![None, Some(1), Some(1)];
    assert_eq!(look(&disk, &gone, old.clone()), (Some(1), 1), "a local file system knows");
    disk.put_on_network();
    assert_eq!(look(&disk, &gone, old), (None, 3));
    assert_eq!(look(&disk, &here, vec![Some(1), None, None]), (Some(1), 3));
    assert_eq!(look(&disk, &here, vec![Some(1)]), (Some(1), 1));
    assert_eq!(look(&disk, &gone, vec![None]), (None, 1));
    assert_eq!(look(&disk, &root.join("no/such"), vec![None]), (None, 1));
    assert_eq!(look(&disk, &gone, vec![Some(1); 1000]).0, None, "it stays old");
}

#[test]
fn over_a_network_what_was_done_and_reported_as_failed_is_recognised() {
    let (_dir, mut disk, root) = lab();
    let [own, other, name, free] = ["own", "other", "name", "free"].map(|name| root.join(name));
    fs::write(&own, "own").unwrap();
    fs::write(&other, "other").unwrap();
    assert_eq!(disk.link_as(&own, &name).unwrap(), Linked::New);
    assert_eq!(disk.link_as(&own, &name).unwrap(), Linked::Taken, "nothing more is asked");
    disk.put_on_network();
    assert_eq!(disk.link_as(&own, &name).unwrap(), Linked::Same);
    assert_eq!(disk.link_as(&other, &name).unwrap(), Linked::Taken);
    let before = disk.id(&own).unwrap();
    disk.rename(&own, &free).unwrap();
    assert!(disk.was_moved(true, before, &free).unwrap());
    assert!(!disk.was_moved(false, before, &free).unwrap(), "nothing was tried before");
    assert!(!disk.was_moved(true, before, &other).unwrap(), "another file is there");
    assert!(!disk.rename(&own, &other).unwrap() && other.exists());
}

#[test]
fn a_directory_is_not_moved_onto_one_that_another_host_has_made() {
    let (_dir, mut disk, root) = lab();
    disk.put_on_network();
    let [one, place] = ["one", "place"].map(|name| root.join(name));
    for dir in [&one, &place] {
        disk.make_dir(dir).unwrap();
        disk.write(&dir.join("file"), b"").unwrap();
    }
    assert!(!disk.rename_new(&one, &place).unwrap());
    assert!(one.join("file").exists() && place.join("file").exists());
}

#[test]
fn a_storage_that_is_away_is_waited_for_until_the_user_asks_to_stop() {
    let (_dir, disk, root) = lab();
    let stop = Arc::<std::sync::atomic::AtomicBool>::default();
    let outages = Arc::<Mutex<Vec<Outage>>>::default();
    let noted = Arc::clone(&outages);
    let tell = Arc::new(move |outage: &Outage| lock(&noted).push(outage.clone()));
    disk.wait_with(Patience { stop: Arc::clone(&stop), tell }, root);
    let (answer, told) = ask(&disk, OnNotFound::Accept, vec![Ok(7), Err(Errno::NOTCONN)]);
    assert_eq!((answer.unwrap(), told), (7, vec![false, true]));
    assert!(matches!(**lock(&outages), [Outage::Began { .. }, Outage::Over { .. }]));
    assert_eq!(disk.outages(), 2, "it went away, and came back");
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let (answer, _) = ask(&disk, OnNotFound::Accept, vec![Err(Errno::HOSTDOWN)]);
    assert!(matches!(answer, Err(StorageError::Interrupted)));
}
