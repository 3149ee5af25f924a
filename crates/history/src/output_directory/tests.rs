//! The rules of a directory of outputs, without a storage.

use std::os::unix::fs::symlink;

use super::*;

/// A directory, and files that stand for those of a storage.
struct Lab(tempfile::TempDir);

impl Lab {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// An output that is a file.
    fn file(&self, path: &str, text: &str) -> OutputToWrite {
        let digest = Digest::hash_bytes(text.as_bytes());
        let from = self.path(&format!("value-{}", digest.sha1.short()));
        fs::write(&from, text).unwrap();
        OutputToWrite {
            path: path.to_owned(),
            origin: format!("c_f/{text}"),
            contents: WrittenContents::File(from, digest),
        }
    }

    /// An output that is a directory of these files.
    fn directory(&self, path: &str, name: &str, files: &[(&str, &str)]) -> OutputToWrite {
        let from = self.path(name);
        for (file, text) in files {
            let file = from.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            match text.strip_prefix("-> ") {
                Some(target) => symlink(target, file).unwrap(),
                None => fs::write(file, text).unwrap(),
            }
        }
        fs::create_dir_all(&from).unwrap();
        let stop = AtomicBool::new(false);
        let manifest = Scan::at(&from, &stop).unwrap();
        let manifest = manifest.read(&stop, &Default::default()).unwrap();
        let contents = WrittenContents::Directory(from, manifest);
        OutputToWrite { path: path.to_owned(), origin: format!("c_d/{name}"), contents }
    }

    fn update(&self, outputs: Vec<OutputToWrite>) -> Result<OutputChanges, OutputsError> {
        update_outputs(
            &self.path("storage"),
            &self.path("out"),
            outputs,
            OtherOutputs::Remove,
            &AtomicBool::new(false),
        )
    }

    /// The message of an error, which leaves all as it is.
    #[track_caller]
    fn refuses(&self, outputs: Vec<OutputToWrite>) -> String {
        let before = self.found();
        let error = self.update(outputs).unwrap_err().to_string();
        assert_eq!(self.found(), before);
        error
    }

    /// All entries of the directory but for the list and directories that have some, with the texts of files.
    fn found(&self) -> Vec<(String, String)> {
        fn walk(dir: &Path, above: &str, found: &mut Vec<(String, String)>) {
            for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
                let path = format!("{above}{}", entry.file_name().to_str().unwrap());
                let before = found.len();
                if entry.file_type().unwrap().is_dir() {
                    walk(&entry.path(), &format!("{path}/"), found);
                }
                if found.len() == before && path != LIST {
                    let text = fs::read_to_string(entry.path()).unwrap_or_default();
                    found.push((path, text));
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.path("out"), "", &mut found);
        found.sort();
        found
    }

    fn list(&self) -> String {
        fs::read_to_string(self.path("out").join(LIST)).unwrap()
    }

    fn time(&self, name: &str) -> SystemTime {
        self.path("out").join(name).metadata().unwrap().modified().unwrap()
    }
}

fn failed(path: &str) -> OutputToWrite {
    OutputToWrite {
        path: path.to_owned(),
        origin: String::new(),
        contents: WrittenContents::Failed,
    }
}

#[test]
fn only_what_has_other_bytes_is_written_and_what_is_no_output_goes() {
    let lab = Lab::new();
    let first = vec![lab.file("a.txt", "one"), lab.file("b", "two")];
    let changes = lab.update(first).unwrap();
    assert_eq!(changes.written, ["a.txt", "b"]);
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
    let writer = DirectoryWriter::open(&lab.path("out")).unwrap();
    ["a.txt", "b", LIST].iter().for_each(|name| writer.set_modified(name, old).unwrap());
    let list = lab.list();
    assert!(!list.contains("before") && !list.contains(&*lab.path("").to_string_lossy()));

    let same = vec![lab.file("a.txt", "one"), lab.file("b", "two")];
    assert_eq!(lab.update(same).unwrap(), OutputChanges { unchanged: 2, ..Default::default() });
    assert_eq!((lab.time("a.txt"), lab.list()), (old, list));
    assert!(lab.time(LIST) > old, "the target of make is new");

    let changes = lab.update(vec![lab.file("b", "three"), lab.file("c", "")]).unwrap();
    assert_eq!(
        (&changes.written[..], &changes.removed[..]),
        (&["b".into(), "c".into()][..], &["a.txt".into()][..])
    );
    assert_eq!(lab.found(), [("b".into(), "three".into()), ("c".into(), String::new())]);
}

#[test]
fn directories_are_updated_file_by_file_and_kinds_may_change() {
    let lab = Lab::new();
    let tree = [("x/y", "1"), ("z", "2"), ("link", "-> x/y")];
    lab.update(vec![lab.directory("d", "one", &tree), lab.file("e", "file")]).unwrap();
    fs::write(lab.path("out/d/notes"), "of a user").unwrap();
    let tree = [("x/y", "1"), ("z/w", "3")];
    let changes = lab
        .update(vec![lab.directory("d", "two", &tree), lab.directory("e", "empty", &[])])
        .unwrap();
    assert_eq!(changes.written, ["d/z/w", "e"]);
    assert_eq!(changes.removed, ["d/link", "d/z", "e"][..2]);
    let expected = [("d/notes", "of a user"), ("d/x/y", "1"), ("d/z/w", "3"), ("e", "")];
    assert_eq!(lab.found(), expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
    // A directory with a file of somebody else does not become a file.
    assert!(lab.refuses(vec![lab.file("d", "file")]).ends_with(": d"));
    fs::remove_file(lab.path("out/d/notes")).unwrap();
    lab.update(vec![lab.file("d", "file")]).unwrap();
    assert_eq!(lab.found(), [("d".to_owned(), "file".to_owned())]);
}

#[test]
fn nothing_of_others_is_replaced_removed_or_followed() {
    let lab = Lab::new();
    fs::create_dir_all(lab.path("out/dir")).unwrap();
    fs::create_dir(lab.path("elsewhere")).unwrap();
    for (name, text) in [("a", "mine"), ("b", "equal"), ("dir/x", "mine")] {
        fs::write(lab.path("out").join(name), text).unwrap();
    }
    symlink("../elsewhere", lab.path("out/away")).unwrap();
    let paths = ["a", "b", "dir", "away/x"];
    let told = lab.refuses(paths.map(|path| lab.file(path, "ours")).into());
    assert!(told.ends_with(": a, away, b, dir"), "{told}");
    assert_eq!(fs::read_dir(lab.path("elsewhere")).unwrap().count(), 0);

    // What has just the bytes is ours. What somebody has changed since is not.
    assert_eq!(lab.update(vec![lab.file("b", "equal")]).unwrap().unchanged, 1);
    lab.update(vec![lab.file("b", "new"), lab.file("c", "1")]).unwrap();
    fs::write(lab.path("out/b"), "edited").unwrap();
    fs::write(lab.path("out/c"), "edited").unwrap();
    assert!(lab.refuses(vec![lab.file("b", "newer")]).ends_with(": b"));
    let changes = lab.update(vec![lab.file("b", "edited")]).unwrap();
    assert_eq!((changes.unchanged, changes.left), (1, vec!["c".to_owned()]));
    assert_eq!(lab.update(vec![lab.file("b", "newest")]).unwrap().written, ["b"]);
}

#[test]
fn what_is_written_meanwhile_or_left_aside_is_not_lost() {
    let lab = Lab::new();
    lab.update(vec![lab.file("a", "1"), lab.file("b", "1")]).unwrap();
    // A run that was killed has left one file, and a user has a directory of that name.
    fs::write(lab.path("out").join(ASIDE), "half").unwrap();
    lab.update(vec![lab.file("a", "1"), lab.file("b", "1")]).unwrap();
    fs::create_dir(lab.path("out").join(ASIDE)).unwrap();
    assert!(lab.refuses(vec![lab.file("a", "2")]).ends_with(ASIDE));
    fs::remove_dir(lab.path("out").join(ASIDE)).unwrap();
    // An empty directory of a user is not replaced.
    fs::create_dir(lab.path("out/c")).unwrap();
    assert!(lab.refuses(vec![lab.file("c", "1")]).ends_with(": c"));

    let dir = lab.path("out");
    let writer = DirectoryWriter::open(&dir).unwrap();
    let (known, _) = read_list(&writer, &dir).unwrap();
    let (present, stats) = Default::default();
    let mut directory = OutputDirectory { dir: &dir, writer, known, present, stats, storage: None };
    directory.settle().unwrap();
    let outputs = vec![lab.file("a", "2"), lab.file("new", "2")];
    let (list, mut sources) = directory.wanted(outputs, OtherOutputs::Remove).unwrap();
    directory.look(list.files.keys().cloned().collect()).unwrap();
    for path in ["a", "b", "new"] {
        fs::write(dir.join(path), "of a user").unwrap();
    }
    directory.remove(&["b".to_owned()]).unwrap();
    for path in ["a", "new"] {
        let written = directory.write(path, &list.files[path], sources.remove(path));
        assert!(matches!(written, Err(OutputsError::Foreign { .. })), "{path}");
    }
    assert_eq!(lab.found().iter().filter(|(_, text)| text == "of a user").count(), 3);
}

#[test]
fn directories_that_become_empty_and_links_that_become_directories_are_there() {
    let lab = Lab::new();
    let tree = [("s/f", "1"), ("z", "2"), ("a/x", "1"), ("b", "-> a")];
    lab.update(vec![lab.directory("o", "one", &tree)]).unwrap();
    fs::create_dir_all(lab.path("two/s")).unwrap();
    let tree = [("z", "2"), ("a/x", "1"), ("b/y", "1")];
    lab.update(vec![lab.directory("o", "two", &tree)]).unwrap();
    let paths: Vec<String> = lab.found().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["o/a/x", "o/b/y", "o/s", "o/z"]);
    lab.update(vec![lab.directory("o", "empty", &[])]).unwrap();
    assert_eq!(lab.found(), [("o".to_owned(), String::new())]);
}

#[test]
fn a_directory_that_is_none_or_that_others_rely_on_is_refused() {
    let lab = Lab::new();
    fs::create_dir_all(lab.path("storage/a")).unwrap();
    fs::create_dir_all(lab.path("repository/.git")).unwrap();
    fs::write(lab.path("file"), "").unwrap();
    symlink("nowhere", lab.path("link")).unwrap();
    let check = |dir: &str| {
        let checked = check_output_directory(&lab.path("storage"), &lab.path(dir));
        checked.map_err(|error| error.to_string().replace(&*lab.path("").to_string_lossy(), ""))
    };
    assert_eq!(check("storage/a/new"), Err("storage/a/new is in the storage".to_owned()));
    assert_eq!(
        check("repository/.git"),
        Err("repository/.git is in a directory of Git".to_owned())
    );
    assert_eq!(check("file"), Err("file is not a directory".to_owned()));
    assert_eq!(check("link"), Err("link is not a directory".to_owned()));
    assert_eq!((check("repository"), check("new/newer")), (Ok(()), Ok(())));
}

#[test]
fn a_failed_output_keeps_its_file_and_make_tries_again() {
    let lab = Lab::new();
    lab.update(vec![lab.file("a", "1"), lab.directory("d", "one", &[("x", "1")])]).unwrap();
    let time = lab.time(LIST);
    let changes =
        lab.update(vec![failed("a"), failed("d"), failed("new"), lab.file("b", "2")]).unwrap();
    assert_eq!(
        (&changes.stale[..], &changes.written[..]),
        (&["a".into(), "d".into()][..], &["b".into()][..])
    );
    assert!(lab.list().contains("\"stale\": true"));
    assert_eq!((lab.found().len(), lab.time(LIST)), (3, time));
    let changes = lab.update(vec![lab.file("a", "1"), lab.file("b", "2")]).unwrap();
    assert_eq!((changes.stale.len(), &changes.removed[..]), (0, &["d/x".to_owned()][..]));
    assert!(!lab.list().contains("stale") && lab.time(LIST) > time);
    let fresh = Lab::new();
    fresh.update(vec![failed("a"), fresh.file("b", "2")]).unwrap();
    assert!(fresh.time(LIST) < SystemTime::UNIX_EPOCH + Duration::from_secs(2));
}

#[test]
fn a_list_that_is_none_or_leads_out_is_refused() {
    let lab = Lab::new();
    lab.update(vec![lab.file("a", "1")]).unwrap();
    fs::write(lab.path("precious"), "2").unwrap();
    let out = lab.list().replace(" a\"", " ../precious\"");
    for (list, told) in [
        ("", "EOF"),
        ("<<<<<<< ours", "expected value"),
        (r#"{"format": 2, "outputs": {}, "files": []}"#, "it has the format 2"),
        (&out, "line 2"),
    ] {
        fs::write(lab.path("out").join(LIST), list).unwrap();
        let error = lab.refuses(vec![lab.file("a", "1")]);
        assert!(error.contains(told), "{error}");
    }
    assert_eq!(fs::read_to_string(lab.path("precious")).unwrap(), "2");
}

#[test]
fn a_file_leads_back_to_what_it_is() {
    let lab = Lab::new();
    let tree = [("x/y", "1")];
    lab.update(vec![lab.file("p=1/a", "one"), lab.directory("d", "one", &tree)]).unwrap();
    let found = |path: &str| digest_of_output(&lab.path("out").join(path));
    let one = Some(Digest::hash_bytes(b"one"));
    assert_eq!((found("p=1/a"), found("d")), (one, found("d/x/y")));
    assert!(found("d").unwrap().is_directory());
    fs::write(lab.path("out/p=1/a"), "changed").unwrap();
    assert_eq!((found("p=1/a"), found("none")), (None, None));
    assert_eq!(without_version("c_f/3f2a/00/1_2/x"), "c_f/00/1_2/x");
    assert_eq!(without_version("tables/ab/cd/00"), "tables");
    assert_eq!(without_version("tinputs/ab/cd"), "tinputs/ab/cd");
}

/// Interrupts an update after its list was written.
fn interrupt(lab: &Lab, outputs: Vec<OutputToWrite>) {
    let stop = AtomicBool::new(true);
    let (storage, dir) = (lab.path("storage"), lab.path("out"));
    let stopped = update_outputs(&storage, &dir, outputs, OtherOutputs::Remove, &stop);
    assert!(matches!(stopped, Err(OutputsError::Stopped)));
}

#[test]
fn after_an_interruption_what_is_there_is_ours_whatever_comes_next() {
    let lab = Lab::new();
    let tree = [("x", "1")];
    lab.update(vec![lab.file("a", "1"), lab.directory("d", "one", &tree)]).unwrap();
    let time = lab.time(LIST);
    let new = || vec![lab.file("a", "2"), lab.directory("d", "two", &[("y", "2")])];
    interrupt(&lab, new());
    assert!(lab.list().contains("before"));
    assert_eq!(lab.time(LIST), time, "make tries again");
    let kept = vec![("a".to_owned(), "1".to_owned())];
    assert_eq!(lab.found()[..1], kept);
    // A run that makes neither keeps both, and the next one replaces them.
    lab.update(vec![failed("a"), failed("d")]).unwrap();
    assert_eq!(lab.found()[..1], kept);
    lab.update(new()).unwrap();
    let found = [("a".to_owned(), "2".to_owned()), ("d/y".to_owned(), "2".to_owned())];
    assert_eq!(lab.found(), found);
}

#[test]
fn a_directory_of_a_user_in_the_place_of_a_former_output_stays() {
    let lab = Lab::new();
    fs::create_dir_all(lab.path("full/sub")).unwrap();
    lab.update(vec![lab.file("a", "1"), lab.file("b", "1"), lab.directory("d", "full", &[])])
        .unwrap();
    for name in ["a", "b"] {
        fs::remove_file(lab.path("out").join(name)).unwrap();
        fs::create_dir(lab.path("out").join(name)).unwrap();
    }
    let changes = lab.update(vec![lab.file("d", "file")]).unwrap();
    assert_eq!((&changes.left[..], changes.removed.len()), (&["a".into(), "b".into()][..], 1));
    assert_eq!(lab.found().len(), 3);
}

#[test]
fn an_output_is_not_written_into_a_storage_in_the_directory() {
    let lab = Lab::new();
    fs::create_dir_all(lab.path("out/results/c_f")).unwrap();
    let update = |outputs| {
        let (storage, dir) = (lab.path("out/results"), lab.path("out"));
        update_outputs(&storage, &dir, outputs, OtherOutputs::Remove, &AtomicBool::new(false))
    };
    update(vec![lab.file("a", "1")]).unwrap();
    for outputs in [lab.directory("results", "one", &[("x", "1")]), lab.file("results", "1")] {
        assert!(matches!(update(vec![outputs]), Err(OutputsError::Foreign { .. })));
    }
    let through = lab.path("out/new/../results");
    let refused = check_output_directory(&lab.path("out/results"), &through);
    assert!(matches!(refused, Err(OutputsError::NoDirectory(_))));
}

#[test]
fn a_file_of_a_user_in_a_directory_that_is_an_output_leads_nowhere() {
    let lab = Lab::new();
    lab.update(vec![lab.directory("d", "one", &[("x", "1")])]).unwrap();
    fs::write(lab.path("out/d/notes"), "mine").unwrap();
    assert_eq!(digest_of_output(&lab.path("out/d/notes")), None);
    assert!(digest_of_output(&lab.path("out/d/x")).is_some());
}
