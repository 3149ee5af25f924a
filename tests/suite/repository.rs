//! Git repositories made in this process, with a fixed author and date: every id is a constant.

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use gix::objs::tree::{Entry, EntryKind};
use gix::open::Options;

/// The author of a commit, and its time: an id depends on them.
#[derive(Clone, Copy)]
pub(crate) struct Author {
    pub(crate) name: &'static str,
    pub(crate) email: &'static str,
    /// Seconds since 1970, and the time zone.
    pub(crate) time: &'static str,
}

pub(crate) const LAB: Author =
    Author { name: "Lab", email: "lab@example.org", time: "1000000000 +0000" };

/// Commits everything that stands in a directory; returns the commit's id.
///
/// A directory that holds a repository of its own becomes a link to that repository's commit.
pub(crate) fn commit(dir: &Path, Author { name, email, time }: Author, message: &str) -> String {
    let repository = open(dir);
    let tree = tree(&repository, dir);
    let author = gix::actor::SignatureRef { name: name.into(), email: email.into(), time };
    let parents = repository.head_id().ok().map(gix::Id::detach);
    let commit = repository.commit_as(author, author, "HEAD", message, tree, parents);
    let mut index = repository.index_from_tree(&tree).unwrap();
    index.write(gix::index::write::Options::default()).unwrap();
    commit.unwrap().to_string()
}

/// Makes an empty repository in a directory that may hold files.
pub(crate) fn init(dir: &Path) {
    let (kind, options) = (gix::create::Kind::WithWorktree, gix::create::Options::default());
    gix::ThreadSafeRepository::init_opts(dir, kind, options, Options::isolated()).unwrap();
}

/// Makes a repository in a task its submodule, as `git submodule add` does: moves it into the
/// task's own, leaves a file `.git` that leads there, and names it in `.gitmodules`.
pub(crate) fn absorb(task: &Path, name: &str, url: &str) {
    let (dir, git) = (task.join(name), task.join(".git/modules").join(name));
    fs::create_dir_all(git.parent().unwrap()).unwrap();
    fs::rename(dir.join(".git"), &git).unwrap();
    let up = "../".repeat(name.split('/').count());
    fs::write(dir.join(".git"), format!("gitdir: {up}.git/modules/{name}\n")).unwrap();
    append(&git.join("config"), &format!("[core]\n\tworktree = {up}../../{name}\n"));
    let entry = format!("[submodule \"{name}\"]\n\tpath = {name}\n\turl = {url}\n");
    append(&task.join(".gitmodules"), &entry);
}

fn append(path: &Path, text: &str) {
    let file = fs::OpenOptions::new().create(true).append(true).open(path);
    file.unwrap().write_all(text.as_bytes()).unwrap();
}

/// The commit that a repository is at.
pub(crate) fn head(dir: &Path) -> String {
    open(dir).head_id().unwrap().to_string()
}

fn open(dir: &Path) -> gix::Repository {
    if dir.join(".git").symlink_metadata().is_err() {
        init(dir);
    }
    gix::open_opts(dir, Options::isolated()).unwrap()
}

fn tree(repository: &gix::Repository, dir: &Path) -> gix::ObjectId {
    let mut entries = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        let metadata = path.symlink_metadata().unwrap();
        let (kind, oid) = if name == ".git" {
            continue;
        } else if metadata.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            let blob = repository.write_blob(target.as_os_str().as_bytes());
            (EntryKind::Link, blob.unwrap().detach())
        } else if !metadata.is_dir() {
            let executable = metadata.permissions().mode() & 0o100 > 0;
            let kind = if executable { EntryKind::BlobExecutable } else { EntryKind::Blob };
            (kind, repository.write_blob(fs::read(&path).unwrap()).unwrap().detach())
        } else if path.join(".git").exists() {
            (EntryKind::Commit, head(&path).parse().unwrap())
        } else {
            (EntryKind::Tree, tree(repository, &path))
        };
        let filename = name.as_bytes().into();
        entries.push(Entry { mode: kind.into(), filename, oid });
    }
    entries.sort();
    let tree = gix::objs::Tree { entries };
    repository.write_object(tree).unwrap().detach()
}

/// Writes this number of nested trees, each with these files, and in the innermost one a tree
/// that is there; returns the outermost.
pub(crate) fn nest(
    dir: &Path,
    innermost: &str,
    files: &[(&str, &str)],
    way: &str,
    times: usize,
) -> String {
    let repository = open(dir);
    let blob = |(name, text): &(&str, &str)| Entry {
        mode: EntryKind::Blob.into(),
        filename: (*name).into(),
        oid: repository.write_blob(text).unwrap().detach(),
    };
    let files: Vec<Entry> = files.iter().map(blob).collect();
    let mut inner = gix::ObjectId::from_hex(innermost.as_bytes()).unwrap();
    for _ in 0..times {
        let mut parts = way.rsplit('/').peekable();
        while let Some(part) = parts.next() {
            let directory =
                Entry { mode: EntryKind::Tree.into(), filename: part.into(), oid: inner };
            let mut entries = vec![directory];
            if parts.peek().is_none() {
                entries.extend(files.iter().cloned());
            }
            entries.sort();
            inner = repository.write_object(gix::objs::Tree { entries }).unwrap().detach();
        }
    }
    inner.to_string()
}

/// Writes a tree that differs from another one in one of its directories.
pub(crate) fn replace(dir: &Path, tree: &str, name: &str, directory: &str) -> String {
    let repository = open(dir);
    let id = |text: &str| gix::ObjectId::from_hex(text.as_bytes()).unwrap();
    let mut editor = repository.find_tree(id(tree)).unwrap().edit().unwrap();
    editor.upsert(name, EntryKind::Tree, id(directory)).unwrap();
    editor.write().unwrap().to_string()
}
