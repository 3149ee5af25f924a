//! The uncommitted changes agree with `git status`.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use compeval::digest::ObjectId;
use compeval::git::{Changes, Heads};

use super::world::{World, edit};
use super::{ask, command, git, items, line};
use crate::generator::{Random, seeds};

/// The ignore rules of the repositories: files with these names.
const IGNORING: [(&str, &str); 3] = [
    (".gitignore", "*.x\nbuild/\n!kept.x\n"),
    ("deep/.gitignore", "local\n/er/b*\n!name.x\n"),
    (".git/info/exclude", "local\n"),
];

/// Files that are ignored, and some that are not.
const UNTRACKED: [&str; 9] = [
    "more.x",
    "kept.x",
    "build/one",
    "build/two.x",
    "deep/more.x",
    "deep/er/build",
    "local",
    "new dir/more.x",
    "new dir/er/plain",
];

const SETTINGS: [[&str; 2]; 3] =
    [["core.fileMode", "false"], ["core.autocrlf", "true"], ["core.autocrlf", "input"]];

/// Settings that keep Git, and nobody else, from telling changes.
const HIDING: &str = "[status]\n\tshowUntrackedFiles = no\n[diff]\n\tignoreSubmodules = all\n";

const ATTRIBUTES: [&str; 3] =
    ["* text=auto\n", "*.x text eol=crlf\na text\n", "* -text\n[ab]* ident\n"];

/// Commits all that stands in the work trees.
fn commit(world: &World) {
    for dir in world.repositories() {
        git(&dir, &["add", "-A"]);
        git(&dir, &["commit", "-q", "--allow-empty", "-m", "all"]);
    }
}

/// A world in which all but ignored files are committed.
fn committed(random: &mut Random) -> World {
    let mut world = World::new();
    for dir in world.repositories() {
        (0..12).for_each(|_| edit(&dir, random));
        if random.below(2) == 0 {
            fs::write(dir.join(".gitattributes"), random.one_of(&ATTRIBUTES)).unwrap();
        }
        if random.below(2) == 0 {
            git(&dir, &[&["config"], &random.one_of(&SETTINGS)[..]].concat());
        }
    }
    world.move_submodule(random);
    if random.below(4) == 0 {
        [world.sub(), world.top()]
            .iter()
            .for_each(|dir| fs::remove_file(dir.join(".gitmodules")).unwrap());
    }
    commit(&world);
    for dir in world.repositories() {
        for (name, text) in IGNORING {
            let place = ask(&dir, &["rev-parse", "--git-path", name.trim_start_matches(".git/")]);
            let exclude = place.filter(|_| name.starts_with(".git/"));
            let path = exclude
                .map_or(dir.join(name), |path| dir.join(OsStr::from_bytes(path.trim_ascii())));
            if path.parent().unwrap().is_dir() {
                fs::write(path, text).unwrap();
            }
        }
    }
    commit(&world);
    world
}

/// A file that the index has.
fn tracked(dir: &Path, random: &mut Random) -> OsString {
    let names = git(dir, &["ls-files", "-z"]);
    let names: Vec<&[u8]> = items(&names).collect();
    OsStr::from_bytes(random.one_of(&names)).to_owned()
}

/// Runs git on a path, which it may refuse.
fn try_git(dir: &Path, arguments: &[&str], path: &OsStr) {
    let arguments: Vec<&OsStr> =
        arguments.iter().map(OsStr::new).chain([OsStr::new("--"), path]).collect();
    ask(dir, &[&[OsStr::new("--literal-pathspecs")], &arguments[..]].concat());
}

/// Does something to a repository that Git's status may tell.
fn change(dir: &Path, random: &mut Random) -> String {
    let what = random.below(14);
    let path = tracked(dir, random);
    let full = dir.join(&path);
    // The list of submodules has to be readable.
    let is_file = full.symlink_metadata().is_ok_and(|it| it.is_file()) && path != ".gitmodules";
    match what {
        0 if is_file => {
            // As long as before, and as old.
            let time = full.metadata().unwrap().modified().unwrap();
            let contents = fs::read(&full).unwrap();
            fs::write(&full, contents.iter().map(|byte| byte ^ 1).collect::<Vec<u8>>()).unwrap();
            File::options().write(true).open(&full).unwrap().set_modified(time).unwrap();
        }
        1 if is_file => {
            let contents = fs::read(&full).unwrap();
            fs::remove_file(&full).unwrap();
            fs::write(&full, contents).unwrap();
        }
        2 => try_git(dir, &["add", "-A"], &path),
        3 => drop(ask(dir, &["add", "-A"])),
        4 => try_git(dir, &["restore", "--source=HEAD", "--worktree"], &path),
        5 => try_git(dir, &["rm", "-q", "--cached"], &path),
        6 => try_git(dir, &["reset", "-q"], &path),
        7 | 8 => {
            let file = dir.join(random.one_of(&UNTRACKED));
            if fs::create_dir_all(file.parent().unwrap()).is_ok() && !file.exists() {
                fs::write(&file, "new\n").unwrap();
                if random.below(3) == 0 {
                    try_git(dir, &["add", "-N"], file.as_os_str());
                }
            }
        }
        9 => drop(ask(dir, &["commit", "-q", "-m", "more"])),
        10 => {
            let nested = dir.join("nested");
            git(dir, &["init", "-q", nested.to_str().unwrap()]);
            fs::write(nested.join("file"), "").unwrap();
        }
        _ => edit(dir, random),
    }
    format!("{what} {}", path.display())
}

/// All files that are, or are below, something.
fn expanded(paths: impl IntoIterator<Item = PathBuf>) -> BTreeSet<PathBuf> {
    let walk = |path| walkdir::WalkDir::new(path).follow_root_links(false);
    let below = |path: PathBuf| walk(path).into_iter().map(Result::unwrap);
    let entries = paths.into_iter().flat_map(below);
    entries.filter(|entry| !entry.file_type().is_dir()).map(|it| it.path().to_owned()).collect()
}

/// Returns the changed and the ignored files of a repository as Git lists them, in absolute paths, file by file.
fn oracle(dir: &Path) -> (BTreeSet<PathBuf>, BTreeSet<PathBuf>) {
    let status = git(
        dir,
        &[
            "status",
            "--porcelain",
            "-z",
            "--untracked-files=all",
            "--ignored=traditional",
            "--no-renames",
            "--ignore-submodules=none",
        ],
    );
    let (ignored, changed): (Vec<&[u8]>, Vec<&[u8]>) =
        items(&status).partition(|item| item.starts_with(b"!!"));
    let path = |item: &[u8]| {
        dir.join(OsStr::from_bytes(item[3..].strip_suffix(b"/").unwrap_or(&item[3..])))
    };
    (changed.into_iter().map(path).collect(), expanded(ignored.into_iter().map(path)))
}

/// The tree that Git would make of all that stands there.
fn tree_of_all(world: &World, dir: &Path) -> ObjectId {
    let index = line(dir, &["rev-parse", "--absolute-git-dir"]) + "/index";
    let copy = world.root().join("index");
    fs::copy(&index, &copy).unwrap();
    // Files that are younger than their index are looked at again.
    let time = fs::metadata(index).unwrap().modified().unwrap();
    File::options().write(true).open(&copy).unwrap().set_modified(time).unwrap();
    let git = |arguments: &[&str]| {
        let mut git = command(dir);
        git.args(arguments).env("GIT_INDEX_FILE", &copy).output().unwrap().stdout
    };
    // It says of a repository without commits that it cannot be added, and adds the rest.
    git(&["add", "-A", "--ignore-errors"]);
    String::from_utf8(git(&["write-tree"])).unwrap().trim().parse().unwrap()
}

/// Directories of a work tree that belong to its own repository.
fn directories(dir: &Path) -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new(dir).into_iter().filter_entry(|entry| {
        entry.file_type().is_dir()
            && (entry.depth() == 0 || !entry.path().join(".git").exists())
            && entry.file_name() != ".git"
    });
    entries.map(|entry| entry.unwrap().path().to_owned()).collect()
}

#[test]
fn uncommitted_changes_are_those_that_git_reports() {
    let (mut differing, mut ignoring) = (0, 0);
    for seed in seeds(4) {
        let mut random = Random::new(seed);
        let world = committed(&mut random);
        let mut done = Vec::new();
        for _ in 0..6 {
            for _ in 0..1 + random.below(3) {
                let dir = random.one_of(&[0, 1, 2]);
                done.push((dir, change(&world.repositories()[dir], &mut random)));
            }
            for dir in world.repositories() {
                let (changed, ignored) = oracle(&dir);
                let rooms = directories(&dir);
                for scope in [&dir, &rooms[random.below(rooms.len())]] {
                    let inside: Vec<_> = rooms.iter().filter(|it| it.starts_with(scope)).collect();
                    let room = inside[random.below(inside.len())];
                    world.set(HIDING);
                    let told = Heads::default().changes(room, scope).unwrap();
                    world.set("");
                    let within = |paths: &BTreeSet<PathBuf>| -> Vec<PathBuf> {
                        paths.iter().filter(|it| it.starts_with(room)).cloned().collect()
                    };
                    let expected = Changes {
                        changed: within(&changed),
                        ignored: within(&ignored),
                        ..Changes::default()
                    };
                    let told =
                        Changes { ignored: expanded(told.ignored).into_iter().collect(), ..told };
                    assert_eq!(told, expected, "CE_SEED={seed} {}: {done:?}", room.display());
                    // Git knows nothing of repositories that count as directories, and of files that
                    // were added, are no longer, and are ignored.
                    let is_odd = |it: &PathBuf| it.join(".git").exists() || ignored.contains(it);
                    let is_plain = !told.changed.iter().any(is_odd);
                    if room == &dir && is_plain {
                        let draft = Heads::default().draft_snapshot(&dir).unwrap();
                        let tree = draft.id(&draft.find(Path::new("")).unwrap()).unwrap();
                        assert_eq!(tree, tree_of_all(&world, &dir), "CE_SEED={seed} {told:?}");
                    }
                    differing += usize::from(!expected.changed.is_empty());
                    ignoring += usize::from(!expected.ignored.is_empty());
                }
            }
        }
    }
    // One seed alone may show less.
    let alone = seeds(8).count() == 1;
    assert!(alone || differing > 9 && ignoring > 9, "{differing} {ignoring}");
}

/// Returns the changes that are reported in a world in which a file of `dir` was changed in a way.
fn told(change: fn(&Path)) -> Vec<PathBuf> {
    let world = World::new();
    let dir = world.inner();
    for name in ["one", "two"] {
        fs::create_dir(dir.join(name)).unwrap();
        fs::write(dir.join(name).join("file"), "text\n").unwrap();
    }
    commit(&world);
    change(&dir);
    // The change is reported around it, too.
    for (around, inside) in [(world.sub(), "inner"), (world.top(), "sub")] {
        let changes = Heads::default().changes(&around, &around).unwrap();
        assert_eq!(changes.changed, [around.join(inside)]);
    }
    let Changes { changed, .. } = Heads::default().changes(&dir, &dir).unwrap();
    changed.iter().map(|path| path.strip_prefix(&dir).unwrap().to_owned()).collect()
}

#[test]
fn files_that_git_was_told_to_overlook_count_as_they_are_on_disk() {
    fn flagged(dir: &Path, flag: &str) {
        git(dir, &["update-index", flag, "two/file"]);
        fs::write(dir.join("two/file"), "more text\n").unwrap();
        assert_eq!(git(dir, &["diff", "--name-only"]), b"");
    }
    let ways: [fn(&Path); 2] =
        [|dir| flagged(dir, "--assume-unchanged"), |dir| flagged(dir, "--skip-worktree")];
    for way in ways {
        assert_eq!(told(way), [PathBuf::from("two/file")]);
    }
}

#[test]
fn files_outside_a_sparse_checkout_are_unchanged() {
    for index in ["--no-sparse-index", "--sparse-index"] {
        let world = World::new();
        let dir = world.top();
        for name in ["one", "two/deep"] {
            fs::create_dir_all(dir.join(name)).unwrap();
            fs::write(dir.join(name).join("file"), "text\n").unwrap();
        }
        commit(&world);
        git(&dir, &["sparse-checkout", "set", index, "one"]);
        assert!(!dir.join("two").exists());
        let changed = || Heads::default().changes(&dir, &dir).unwrap().changed;
        assert_eq!(changed(), [""; 0].map(PathBuf::from), "{index}");
        fs::write(dir.join("one/file"), "changed\n").unwrap();
        assert_eq!(changed(), [dir.join("one/file")], "{index}");
        fs::create_dir_all(dir.join("two/deep")).unwrap();
        fs::write(dir.join("two/deep/file"), "changed\n").unwrap();
        assert_eq!(changed(), [dir.join("one/file"), dir.join("two/deep/file")], "{index}");
    }
}
