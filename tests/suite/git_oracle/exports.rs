//! An export is a tree as it is recorded: what `git ls-tree` tells of it and of the submodules in it.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use compeval::digest::ObjectId;
use compeval::evaluate::{ValueError, export_tree};
use compeval::git::{Code, TreeFile, TreeFileKind, Trees};
use compeval::manifest::{DirectoryError, Scan};

use super::world::{World, edit};
use super::{git, items, line};
use crate::generator::{Random, seeds};
use crate::repository::{self, LAB};

/// Attributes that change the files of a checkout or an archive.
const ATTRIBUTES: &str = "* export-ignore\n*.x text eol=crlf ident\nb* export-subst filter=none\n";

/// Makes commits in all three repositories.
fn history(world: &mut World, random: &mut Random, commits: usize) {
    for number in 0..commits {
        if random.below(4) == 0 {
            world.move_submodule(random);
        }
        for dir in world.repositories() {
            // A submodule may stay as it is.
            if number == 0 || dir == world.top() || random.below(2) == 0 {
                (0..1 + random.below(6)).for_each(|_| edit(&dir, random));
                if random.below(4) == 0 {
                    fs::write(dir.join(".gitattributes"), ATTRIBUTES).unwrap();
                }
                repository::commit(&dir, LAB, &format!("number {number}\n"));
            }
        }
    }
}

/// The commits and blobs that Git has in its repositories.
struct Oracle {
    /// The repository that has a commit.
    commits: HashMap<String, PathBuf>,
    blobs: HashMap<String, Vec<u8>>,
}

impl Oracle {
    fn new(world: &World) -> Self {
        let (mut commits, mut blobs) = (HashMap::new(), HashMap::new());
        for dir in world.repositories() {
            let all = git(&dir, &["cat-file", "--batch-all-objects", "--batch"]);
            let mut rest = &all[..];
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let head: Vec<&str> = str::from_utf8(&rest[..end]).unwrap().split(' ').collect();
                let size: usize = head[2].parse().unwrap();
                let contents = &rest[end + 1..][..size];
                match head[1] {
                    "commit" => drop(commits.insert(head[0].to_owned(), dir.clone())),
                    "blob" => drop(blobs.insert(head[0].to_owned(), contents.to_vec())),
                    _ => {}
                }
                rest = &rest[end + 1 + size + 1..];
            }
        }
        Self { commits, blobs }
    }

    /// The files of a commit, each submodule as a directory.
    fn files(&self, commit: &str, below: &Path, files: &mut BTreeMap<PathBuf, TreeFileKind>) {
        let listing = git(&self.commits[commit], &["ls-tree", "-r", "-z", commit]);
        for entry in items(&listing) {
            let at = entry.iter().position(|byte| *byte == b'\t').unwrap();
            let head: Vec<&str> = str::from_utf8(&entry[..at]).unwrap().split(' ').collect();
            let path = below.join(OsStr::from_bytes(&entry[at + 1..]));
            let contents = || self.blobs[head[2]].clone();
            let kind = match head[0] {
                "160000" => {
                    self.files(head[2], &path, files);
                    continue;
                }
                "120000" => TreeFileKind::Link(OsString::from_vec(contents()).into()),
                "100755" => TreeFileKind::Executable(contents()),
                _ => TreeFileKind::Plain(contents()),
            };
            files.insert(path, kind);
        }
    }
}

fn tree(dir: &Path, commit: &str) -> ObjectId {
    line(dir, &["rev-parse", &format!("{commit}^{{tree}}")]).parse().unwrap()
}

/// All files of a tree, sorted.
fn files(trees: &Trees, tree: &ObjectId) -> Vec<TreeFile> {
    let files = Mutex::new(Vec::new());
    let tell = |file| {
        files.lock().unwrap().push(file);
        Ok(())
    };
    trees.files(tree, &tell).unwrap();
    let mut files = files.into_inner().unwrap();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

#[test]
fn an_export_is_the_tree_that_git_lists() {
    let (mut links, mut executable, mut deepest) = (0, 0, 0);
    for seed in seeds(6) {
        let (mut world, mut random) = (World::new(), Random::new(seed));
        history(&mut world, &mut random, 8);
        let (oracle, trees) = (Oracle::new(&world), Trees::new(&world.top()));
        for (commit, dir) in &oracle.commits {
            let mut expected = BTreeMap::new();
            oracle.files(commit, Path::new(""), &mut expected);
            let files = files(&trees, &tree(dir, commit));
            for file in &files {
                match file.kind {
                    TreeFileKind::Link(_) => links += 1,
                    TreeFileKind::Executable(_) => executable += 1,
                    TreeFileKind::Plain(_) | TreeFileKind::Object { .. } => {}
                }
                deepest = deepest.max(file.path.components().count());
            }
            let expected = expected.into_iter().map(|(path, kind)| TreeFile { path, kind });
            assert_eq!(files, expected.collect::<Vec<_>>(), "CE_SEED={seed}: {commit}");
        }
    }
    assert!(links > 9 && executable > 9 && deepest > 4, "{links} {executable} {deepest}");
}

/// Fills a directory with what `git archive` gives of a commit, and of the submodules in it.
fn archive(oracle: &Oracle, commit: &str, dir: &Path) {
    let repository = &oracle.commits[commit];
    // The attributes for archives and checkouts are no part of a tree.
    let attributes = "* !export-ignore !export-subst !text !eol !ident !filter\n";
    let info = line(repository, &["rev-parse", "--git-path", "info/attributes"]);
    fs::write(repository.join(info), attributes).unwrap();
    fs::create_dir_all(dir).unwrap();
    let file = dir.with_extension("tar");
    git(repository, &["archive", "--format=tar", "-o", file.to_str().unwrap(), commit]);
    let mut tar = Command::new("tar");
    assert!(tar.arg("-xf").arg(&file).arg("-C").arg(dir).status().unwrap().success());
    fs::remove_file(file).unwrap();
    for entry in items(&git(repository, &["ls-tree", "-r", "-z", commit])) {
        if let Some(entry) = entry.strip_prefix(b"160000 commit ") {
            let (commit, path) = entry.split_at(40);
            let path = dir.join(OsStr::from_bytes(&path[1..]));
            archive(oracle, str::from_utf8(commit).unwrap(), &path);
        }
    }
}

#[test]
fn a_directory_made_by_git_archive_counts_as_an_export() {
    for seed in seeds(4) {
        let (mut world, mut random) = (World::new(), Random::new(seed));
        history(&mut world, &mut random, 4);
        let (oracle, trees) = (Oracle::new(&world), Trees::new(&world.top()));
        let (head, dir) = (repository::head(&world.top()), world.root().join("archive"));
        let tree = tree(&world.top(), &head);
        archive(&oracle, &head, &dir);
        let commit = head.parse().unwrap();
        let code = Code { commit: &commit, tree: &tree };
        assert!(trees.are_in(&dir, code).unwrap(), "CE_SEED={seed}");
        let before = files(&trees, &tree).len();
        fs::write(dir.join(format!("one of {}", before + 1)), "").unwrap();
        assert!(!trees.are_in(&dir, code).unwrap(), "CE_SEED={seed}");
    }
}

#[test]
fn the_manifest_of_an_export_agrees_with_git_archive() {
    let (mut values, mut refused) = (0, 0);
    for seed in seeds(12) {
        let (mut world, mut random) = (World::new(), Random::new(seed));
        history(&mut world, &mut random, 2);
        let (oracle, trees) = (Oracle::new(&world), Trees::new(&world.top()));
        let (head, dir) = (repository::head(&world.top()), world.root().join("archive"));
        archive(&oracle, &head, &dir);
        // A submodule without files, in an archive a directory, is nothing in a tree.
        remove_empty(&dir);
        let stop = &AtomicBool::new(false);
        let expected = Scan::at(&dir, stop).and_then(|scan| scan.read(stop, &AtomicU64::new(0)));
        match (
            export_tree(&trees, &tree(&world.top(), &head), &HashMap::new(), &|_| Ok(())),
            expected,
        ) {
            (Ok(found), Ok(expected)) => {
                assert_eq!(found, expected, "CE_SEED={seed}");
                values += 1;
            }
            (Err(ValueError::Entry { .. }), Err(DirectoryError::Refused(_))) => refused += 1,
            other => panic!("CE_SEED={seed}: {other:?}"),
        }
    }
    assert!(values > 0 && refused > 0, "{values} {refused}");
}

/// Removes the directories that hold no files.
fn remove_empty(dir: &Path) {
    for entry in walkdir::WalkDir::new(dir).min_depth(1).contents_first(true) {
        // Directories with entries stay.
        drop(fs::remove_dir(entry.unwrap().path()));
    }
}

#[test]
fn a_large_tree_is_read_by_several_threads_and_an_error_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..1000 {
        let file = dir.path().join(format!("d{}/{number}", number % 7));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("{number}\n")).unwrap();
    }
    let commit = repository::commit(dir.path(), LAB, "many\n");
    let (trees, tree) = (Trees::new(dir.path()), tree(dir.path(), &commit));
    let found = files(&trees, &tree);
    assert_eq!(found.len(), 1000);
    assert!(found.is_sorted_by(|one, other| one.path < other.path), "each file once");
    let told = AtomicU64::new(0);
    let failing = trees.files(&tree, &|file| {
        told.fetch_add(1, Ordering::Relaxed);
        if file.path.ends_with("500") { Err(io::Error::other("full")) } else { Ok(()) }
    });
    assert_eq!(failing.unwrap_err().to_string(), "full");
    assert!(told.into_inner() < 1000);
}

#[test]
fn a_name_that_leads_elsewhere_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    repository::init(dir.path());
    let blob = git_with(dir.path(), &["hash-object", "-w", "--stdin"], b"text");
    for name in ["..", ".", ".git", "../a", "a/b", "/a"] {
        let mut data = format!("100644 {name}\0").into_bytes();
        data.extend(hex_bytes(&blob));
        let arguments = ["hash-object", "-t", "tree", "-w", "--literally", "--stdin"];
        let tree: ObjectId = git_with(dir.path(), &arguments, &data).parse().unwrap();
        let error = Trees::new(dir.path()).files(&tree, &|_| Ok(())).unwrap_err().to_string();
        assert!(
            error.ends_with(&format!("has an entry {name:?}, which is not a file name")),
            "{error}"
        );
    }
}

/// Returns the output of Git for a text on its standard input.
fn git_with(dir: &Path, arguments: &[&str], text: &[u8]) -> String {
    let mut git = Command::new("git");
    git.current_dir(dir).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut git = git.spawn().unwrap();
    git.stdin.take().unwrap().write_all(text).unwrap();
    let output = git.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn hex_bytes(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.chars().map(|c| c.to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
