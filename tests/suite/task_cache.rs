//! The task cache gives the same as loading, regardless of later changes.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use compeval::cache::{Cache, FileStat};
use compeval::load;
use compeval::load::Uncommitted;

use crate::budget::chain;
use crate::lab::{Lab, Library, files};

/// A workflow that is large enough for the cache: three hundred literals, and a part that is reached
/// through two links that lead out of `workflow/`.
fn wide(library: Library) -> Lab {
    let call = |number: usize, last: &str| {
        let literal = |at| format!("FILE('tinputs/{number:02}/{at:010}')");
        let literals: Vec<_> = (0..98).map(literal).collect();
        format!("(wide {} {last})", literals.join(" "))
    };
    let text = (1..3).fold(call(0, "INPUT('x')"), |inner, number| call(number, &inner));
    let names = (0..99).map(|number| format!("i{number} ")).collect::<String>();
    let lab = Lab::task(&format!("Inputs: 'x'\n{text}")).computation("wide", &names, "o", "exit 1");
    fs::create_dir(lab.path("task/parts")).unwrap();
    fs::rename(lab.path("task/workflow/inputs/98-wide"), lab.path("task/parts/one")).unwrap();
    copy(&lab.path("task/parts/one"), &lab.path("task/parts/other"));
    lab.link("way", "parts")
        .link("workflow/inputs/98-wide", "../../way/one")
        .file("parts/other/inputs/98-wide/inputs/00-file/value", "tinputs/ff/ffffffffff\n")
        .file("workflow/inputs/00-file/kind", "file\n")
        .file("workflow/inputs/00-file/value", "sheets/linked\n")
        .file("sheets/1", "1\n")
        .file("sheets/2", "2\n")
        .link("sheets/linked", "1")
        .file("computations/wide.md", "notes\n")
        .commit_with(library)
}

fn copy(from: &Path, to: &Path) {
    for (name, contents) in files(from) {
        fs::create_dir_all(to.join(&name).parent().unwrap()).unwrap();
        fs::write(to.join(name), contents).unwrap();
    }
}

fn append(lab: &Lab, name: &str, text: &str) {
    let mut file = File::options().append(true).create(true).open(lab.path(name)).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Changes a file, but neither its size nor its time.
fn alter(lab: &Lab, name: &str) {
    let path = lab.path(name);
    let modified = path.metadata().unwrap().modified().unwrap();
    let mut contents = fs::read(&path).unwrap();
    let last = contents.iter().rposition(u8::is_ascii_digit).unwrap();
    contents[last] = if contents[last] == b'1' { b'2' } else { b'1' };
    fs::write(&path, contents).unwrap();
    File::open(&path).unwrap().set_modified(modified).unwrap();
}

fn relink(lab: &Lab, name: &str, target: &str) {
    fs::remove_file(lab.path(name)).unwrap();
    std::os::unix::fs::symlink(target, lab.path(name)).unwrap();
}

fn repository(lab: &Lab, dir: &str) {
    lab.git(dir, &["init", "--quiet"]);
    lab.git(dir, &["add", "."]);
    lab.git(dir, &["commit", "--quiet", "-mx"]);
}

const DEEP: &str = "task/parts/one/inputs/98-wide/inputs/97-file";

/// A change of a task: its name, the repository that holds the computations, and how it is done.
type Change = (&'static str, Library, fn(&Lab));

const CHANGES: [Change; 23] = [
    ("nothing", Library::Plain, |_| ()),
    ("a value", Library::Plain, |lab| alter(lab, "task/workflow/inputs/07-file/value")),
    ("a value behind links", Library::Plain, |lab| alter(lab, &format!("{DEEP}/value"))),
    ("a new file", Library::Plain, |lab| append(lab, &format!("{DEEP}/note"), "new")),
    ("a part less", Library::Plain, |lab| fs::remove_dir_all(lab.path(DEEP)).unwrap()),
    ("a link", Library::Plain, |lab| {
        relink(lab, "task/workflow/inputs/98-wide", "../../parts/other");
    }),
    ("a link on the way", Library::Plain, |lab| {
        copy(&lab.path("task/parts/other"), &lab.path("task/others/one"));
        relink(lab, "task/way", "others");
    }),
    ("a file that is a value", Library::Plain, |lab| alter(lab, "task/sheets/1")),
    ("a link to a file", Library::Plain, |lab| relink(lab, "task/sheets/linked", "2")),
    ("a directory of files", Library::Plain, |lab| {
        fs::rename(lab.path("task/sheets"), lab.path("task/other")).unwrap();
    }),
    ("a directory of files that becomes a link", Library::Plain, |lab| {
        fs::rename(lab.path("task/sheets"), lab.path("task/other")).unwrap();
        std::os::unix::fs::symlink("other", lab.path("task/sheets")).unwrap();
    }),
    ("a default", Library::Plain, |lab| {
        copy(&lab.path("task/sheets"), &lab.path("task/defaults"));
    }),
    ("resources", Library::Plain, |lab| append(lab, "task/resources", "wide cpus 2\n")),
    ("the names of inputs", Library::Plain, |lab| append(lab, "task/inputs", "y\n")),
    ("exec", Library::Submodule, |lab| append(lab, "task/computations/wide/exec", "#")),
    ("a file with the name of a computation", Library::Submodule, |lab| {
        fs::write(lab.path("task/computations/wide.py"), "").unwrap();
        fs::set_permissions(lab.path("task/computations/wide.py"), Permissions::from_mode(0o755))
            .unwrap();
    }),
    ("a file that becomes a program", Library::Plain, |lab| {
        fs::set_permissions(lab.path("task/computations/wide.md"), Permissions::from_mode(0o755))
            .unwrap();
    }),
    ("a commit", Library::Plain, |lab| {
        lab.git("task", &["commit", "--quiet", "--allow-empty", "-mx"]);
    }),
    ("a commit of the library", Library::Submodule, |lab| {
        lab.git("task/computations", &["commit", "--quiet", "--allow-empty", "-mx"]);
    }),
    ("the index", Library::Plain, |lab| drop(lab.git("task", &["rm", "--cached", "-q", "inputs"]))),
    ("a repository", Library::Plain, |lab| repository(lab, "task/computations/wide")),
    ("a repository on the way", Library::Plain, |lab| repository(lab, "task/parts")),
    ("the repository", Library::Plain, |lab| {
        fs::rename(lab.path("task/.git"), lab.path(".git")).unwrap();
    }),
];

/// Everything that loading tells.
fn load(lab: &Lab, cache: Option<&Cache>) -> String {
    format!("{:?}", load::task(&lab.path("task"), Uncommitted::Refuse, cache))
}

/// Waits until a file is not racy.
fn settle(file: &Path) {
    let stat = FileStat::read(file).unwrap();
    while stat.is_racy(SystemTime::now()) {
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn every_change_of_a_task_is_noticed() {
    let labs = CHANGES.map(|(what, library, change)| (what, wide(library), change));
    let last = &labs.last().unwrap().1;
    let cache = |lab: &Lab| Cache::at(lab.path("cache"));
    load(last, Some(&cache(last)));
    assert!(!last.path("cache").exists(), "what was just written may be changed again");
    settle(&last.path("task/.git/index"));
    for (what, lab, change) in labs {
        let first = load(&lab, Some(&cache(&lab)));
        assert!(first.starts_with("Ok"), "{first}");
        assert_eq!(files(&lab.path("cache/tasks")).len(), 1, "{what}: it is cached");
        change(&lab);
        let now = load(&lab, None);
        assert_eq!(now == first, what == "nothing", "{what}");
        assert_eq!(load(&lab, Some(&cache(&lab))), now, "{what}");
        assert_eq!(load(&lab, Some(&cache(&lab))), now, "{what}, once more");
    }
}

#[test]
fn a_task_that_reads_its_work_tree_as_a_value_is_not_cached() {
    let lab = wide(Library::Plain)
        .file("workflow/inputs/00-file/kind", "tree\n")
        .file("workflow/inputs/00-file/value", ".:sheets\n")
        .commit_again();
    settle(&lab.path("task/.git/index"));
    let cache = Cache::at(lab.path("cache"));
    let first = load(&lab, Some(&cache));
    assert!(first.starts_with("Ok"), "{first}");
    let lab = lab.file("sheets/1", "3\n");
    assert!(load(&lab, Some(&cache)).contains("Uncommitted"), "a change in it is seen");
}

#[test]
fn a_cached_task_is_not_read_again() {
    let lab = wide(Library::Plain);
    settle(&lab.path("task/.git/index"));
    let cache = Cache::at(lab.path("cache"));
    let first = load(&lab, Some(&cache));
    // Without its tree nobody can tell whether the commit holds the present files.
    let tree = lab.git("task", &["rev-parse", "HEAD^{tree}"]);
    let object = format!("task/.git/objects/{}/{}", &tree[..2], &tree[2..]);
    fs::remove_file(lab.path(&object)).unwrap();
    assert_eq!(load(&lab, Some(&cache)), first);
    fs::remove_dir_all(lab.path("cache")).unwrap();
    assert!(load(&lab, Some(&cache)).starts_with("Err"));
}

#[test]
fn a_cached_commit_is_not_read_again() {
    let lab = wide(Library::Plain);
    let cache = Cache::at(lab.path("cache"));
    let load = |rev: &str, cache| format!("{:?}", load::task_at(&lab.path("task"), rev, cache));
    let first = load("HEAD", Some(&cache));
    assert_eq!(first, load("HEAD", None));
    fs::rename(lab.path("task/workflow/inputs/00-file"), lab.path("task/parts/one/inputs/file"))
        .unwrap();
    lab.git("task", &["commit", "--quiet", "-amx"]);
    let second = load("HEAD", Some(&cache));
    assert_eq!(second, load("HEAD", None), "another commit is another task");
    let tree = lab.git("task", &["rev-parse", "HEAD~1^{tree}"]);
    fs::remove_file(lab.path(&format!("task/.git/objects/{}/{}", &tree[..2], &tree[2..]))).unwrap();
    assert_eq!(load("HEAD~1", Some(&cache)), first);
    assert!(load("HEAD~1", None).starts_with("Err"));
}

#[test]
fn a_cached_task_has_no_text_of_an_input() {
    let lab = chain(300).file("chain/0/kind", "file\n").file("chain/0/value", "notes/{x}\n");
    let lab = lab.file("notes/a", "a\n").file("notes/b", "b\n").commit_again();
    settle(&lab.path("task/.git/index"));
    let run = |text: &str| lab.run("ce-run", &["-n", "../storage", "-p", &format!("x={text}")]);
    run("a").exit(3).shows("OWN('notes/a')");
    assert_eq!(files(&lab.path("cache/compeval/tasks")).len(), 1, "it is cached");
    run("b").exit(3).shows("OWN('notes/b')");
    run("c").exit(2).says("the task has no file \"notes/c\"");
    fs::write(lab.path("task/notes/a"), "other\n").unwrap();
    run("a").exit(2).says("notes/a: has uncommitted changes");
    run("b").exit(3);
    let dirty = lab.run("ce-run", &["-n", "--dirty", "../storage", "-px=a"]).exit(3);
    assert_ne!(dirty.stdout, run("b").stdout);
    dirty.shows("OWN('notes/a')");
}

#[test]
fn cached_records_are_used_until_they_are_taken_away() {
    let lab = chain(300);
    lab.ce_run(&["-q", "--no-sync"]).exit(0);
    let is_record = |name: &String| name.starts_with("c_next/") && name.contains("/record/");
    let records = lab.storage().into_iter().filter(is_record);
    let records: Vec<_> = records.map(|name| lab.path("storage").join(name)).collect();
    records.iter().for_each(|record| settle(record));
    settle(records[0].parent().unwrap());
    let found = || drop(lab.ce_run(&["-n"]).exit(0).says("300 calls: 300 reused"));
    found();
    assert_eq!(fs::read_dir(lab.path("cache/compeval/records")).unwrap().count(), 1);

    // No program does that; it shows that the record is not read.
    fs::set_permissions(&records[0], Permissions::from_mode(0o644)).unwrap();
    fs::write(&records[0], "").unwrap();
    found();
    lab.run("ce", &["gc", "--delete", "--no-keep", "--older=0s", "../storage"]).exit(0);
    lab.ce_run(&["-n"]).exit(3);
}
