//! A laboratory: a directory for one test, with a task repository, data and a storage.
//!
//! ```text
//! task/       the task: computations/, workflow/, inputs; programs run here
//! data/       a file for each input of the task
//! home/       the configuration of a user who trusts every repository
//! cache/      the user's cache, where others have `~/.cache`
//! storage/    made by the programs
//! called      a line for each computation that was really executed
//! ```

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use tempfile::TempDir;

use super::golden;
use super::lisp;
use super::needs;
use super::program::{self, Ran, Running};
use super::repository::{self, LAB};

/// The contents of the inputs of a task unless a test says otherwise.
const NUMBERS: [&str; 4] = ["17\n", "5\n", "3\n", "2\n"];

/// The repository that holds the computations.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Library {
    /// The task's own.
    Plain,
    /// One submodule holds all of them.
    Submodule,
    /// Each is a submodule.
    Submodules,
}

pub(crate) struct Lab {
    root: TempDir,
    /// The inputs of the task: files in `data/`.
    pub(crate) inputs: Vec<String>,
    /// Whether `ce-run` isolates. Most computations of tests tell of themselves where no sandbox lets
    /// them.
    isolated: bool,
}

impl Lab {
    /// A laboratory without a task, in memory where that is possible.
    pub(crate) fn empty() -> Self {
        let root = tempfile::Builder::new().prefix("ce-test-").tempdir_in(place()).unwrap();
        let lab = Self { root, inputs: Vec::new(), isolated: false };
        fs::create_dir(lab.path("task")).unwrap();
        fs::create_dir(lab.path("data")).unwrap();
        // The original's text has no times, and does not change.
        let config = b"[safe]\n\tdirectory = *\n[compeval]\n\tstyle = original\n";
        write(&lab.path("home/.gitconfig"), config);
        lab
    }

    /// Lets `ce-run` print its tree in words, as it does for users.
    pub(crate) fn in_words(self) -> Self {
        write(&self.path("home/.gitconfig"), b"[safe]\n\tdirectory = *\n");
        self
    }

    /// A laboratory with a task that is yet to be committed, written as `ce-sym` prints it.
    pub(crate) fn task(text: &str) -> Self {
        let text = lisp::text(text);
        let mut lab = Self::empty()
            .computation("add", "a b", "sum", r#"echo $(($(cat "$1") + $(cat "$2"))) >"$3""#)
            .computation("mul", "a b", "product", r#"echo $(($(cat "$1") * $(cat "$2"))) >"$3""#)
            .computation(
                "divmod",
                "dividend divisor",
                "quotient remainder",
                r#"a=$(cat "$1") b=$(cat "$2"); echo $((a / b)) >"$3"; echo $((a % b)) >"$4""#,
            );
        lisp::write(&lab.path("task"), &text);
        let inputs = text.inputs.unwrap_or_default();
        let inputs: Vec<String> = inputs.iter().map(ToString::to_string).collect();
        for (name, number) in inputs.iter().zip(NUMBERS.iter().cycle()) {
            lab = lab.data(name, number);
        }
        lab.inputs = inputs;
        lab
    }

    /// Lets `ce-run` isolate, as it does for users.
    pub(crate) fn isolated(self) -> Self {
        Self { isolated: true, ..self }
    }

    /// Adds a computation; its inputs and outputs are named in one line, its script needs no head.
    pub(crate) fn computation(self, name: &str, inputs: &str, outputs: &str, script: &str) -> Self {
        let lines = |names: &str| {
            names.split_whitespace().map(|name| format!("{name}\n")).collect::<String>()
        };
        let script = format!(
            "#!/bin/sh\n[ -z \"${{LAB_LOG-}}\" ] || echo {name} >>\"$LAB_LOG\"\n{script}\n"
        );
        let dir = format!("computations/{name}");
        self.file(&format!("{dir}/inputs"), lines(inputs))
            .file(&format!("{dir}/outputs"), lines(outputs))
            .file(&format!("{dir}/exec"), script)
            .mode(&format!("{dir}/exec"), 0o755)
    }

    /// Writes a file of the task.
    pub(crate) fn file(self, name: &str, contents: impl AsRef<[u8]>) -> Self {
        write(&self.path("task").join(name), contents.as_ref());
        self
    }

    pub(crate) fn mode(self, name: &str, mode: u32) -> Self {
        fs::set_permissions(self.path("task").join(name), fs::Permissions::from_mode(mode))
            .unwrap();
        self
    }

    /// Removes a file or directory of the task.
    pub(crate) fn without(self, name: &str) -> Self {
        let path = self.path("task").join(name);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        self
    }

    /// Puts a text in the place of the directories of the workflow.
    pub(crate) fn one_text(self, text: &str) -> Self {
        let parts = ["workflow", "inputs"].into_iter();
        let parts = parts.filter(|part| self.path("task").join(part).exists());
        parts.collect::<Vec<_>>().into_iter().fold(self, Self::without).file("workflow.ce", text)
    }

    /// Gives the workflow the form of directories.
    pub(crate) fn to_directories(&self) -> Ran<'_> {
        self.run("ce", &["convert", "--force", "--to", "directories"])
    }

    /// Gives another name to a file or directory of the task.
    pub(crate) fn rename(self, path: &str, name: &str) -> Self {
        let path = self.path("task").join(path);
        fs::rename(&path, path.with_file_name(name)).unwrap();
        self
    }

    /// Makes a symbolic link in the task.
    pub(crate) fn link(self, name: &str, target: &str) -> Self {
        let path = self.path("task").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
        self
    }

    /// Writes a file that is to be an input.
    pub(crate) fn data(self, name: &str, contents: impl AsRef<[u8]>) -> Self {
        write(&self.path("data").join(name), contents.as_ref());
        self
    }

    /// Commits the task as it stands.
    pub(crate) fn commit(self) -> Self {
        self.commit_with(Library::Plain)
    }

    pub(crate) fn commit_with(self, library: Library) -> Self {
        self.commit_now(library);
        self
    }

    pub(crate) fn commit_now(&self, library: Library) {
        let task = self.path("task");
        let submodules: Vec<String> = match library {
            Library::Plain => Vec::new(),
            Library::Submodule => vec!["computations".to_owned()],
            Library::Submodules => {
                let names = fs::read_dir(task.join("computations")).unwrap();
                let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
                names.map(|name| format!("computations/{name}")).collect()
            }
        };
        repository::init(&task);
        for name in &submodules {
            repository::commit(&task.join(name), LAB, "computations\n");
            repository::absorb(&task, name, &format!("../{name}"));
        }
        repository::commit(&task, LAB, "task\n");
    }

    /// Makes a storage without results, for programs that make none.
    pub(crate) fn with_storage(self) -> Self {
        fs::create_dir(self.path("storage")).unwrap();
        self
    }

    /// Commits later changes.
    pub(crate) fn commit_again(self) -> Self {
        repository::commit(&self.path("task"), LAB, "task\n");
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// A program that is to run in the task's directory.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = program::command(program);
        command.current_dir(self.path("task"));
        if program == "ce-run" && !self.isolated {
            command.arg("--no-isolate");
        }
        command.env("LAB_LOG", self.path("called")).env("HOME", self.path("home"));
        command.env("XDG_CACHE_HOME", self.path("cache"));
        command
    }

    /// `ce-run` with these options, the storage, and a file for each input.
    pub(crate) fn evaluation(&self, options: &[&str]) -> Command {
        let mut command = self.command("ce-run");
        command.args(options).arg("../storage");
        command.args(self.inputs.iter().map(|name| format!("../data/{name}")));
        command
    }

    pub(crate) fn ce_run(&self, options: &[&str]) -> Ran<'_> {
        self.finish(&mut self.evaluation(options))
    }

    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Ran<'_> {
        self.finish(self.command(program).args(arguments))
    }

    pub(crate) fn finish(&self, command: &mut Command) -> Ran<'_> {
        Ran::new(self, Running::start(command).output())
    }

    /// Returns a user for whom modes of files mean something: the one who runs the tests, or nobody in place of root. Where nobody
    /// may not execute the programs, the answer is `None`, and reported.
    pub(crate) fn plain_user(&self) -> Option<u32> {
        let own = rustix::process::getuid();
        if own.is_root() { self.another_user() } else { Some(own.as_raw()) }
    }

    /// Somebody to whom the laboratory does not belong: nobody, if this is root.
    pub(crate) fn another_user(&self) -> Option<u32> {
        let mut command = self.command("ce-run");
        let status = command.arg("--version").uid(65534).stdout(Stdio::null()).status();
        let user = status.is_ok_and(|status| status.success()).then_some(65534);
        if user.is_none() {
            let is_root = rustix::process::getuid().is_root();
            needs::lacks(if is_root { "programs that nobody may execute" } else { needs::ROOT });
        }
        user
    }

    /// Returns the output of `git` with these arguments in a directory of the laboratory.
    #[track_caller]
    pub(crate) fn git(&self, dir: &str, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        git.env("HOME", self.path("home")).env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{who}_NAME"), "Lab").env(format!("GIT_{who}_EMAIL"), "lab@lab");
            git.env(format!("GIT_{who}_DATE"), "1000000000 +0000");
        }
        let output = git.current_dir(self.path(dir)).args(arguments).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {complaint}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Makes a directory a copy of another one, regardless of its former contents.
    pub(crate) fn copy(&self, from: &str, to: &str) {
        drop(fs::remove_dir_all(self.path(to)));
        copy(&self.path(from), &self.path(to));
    }

    /// Makes all files in the storage as old as those that were copied with their times.
    pub(crate) fn settle(&self) {
        settle(&self.path("storage"));
    }

    /// Returns the computations that were executed since the last time it was asked, in order.
    pub(crate) fn called(&self) -> Vec<String> {
        let log = self.path("called");
        let called = fs::read_to_string(&log).unwrap_or_default();
        drop(fs::remove_file(log));
        called.lines().map(str::to_owned).collect()
    }

    /// Does something that must leave the storage byte for byte as it was.
    #[track_caller]
    pub(crate) fn unchanged<T>(&self, act: impl FnOnce() -> T) -> T {
        let before = snapshot(&self.path("storage"));
        let result = act();
        golden::same("the storage", &before, &snapshot(&self.path("storage")));
        result
    }

    /// Whether no run has left anything of its own.
    pub(crate) fn is_tidy(&self) -> bool {
        self.path("storage/tmp").read_dir().unwrap().next().is_none()
    }

    /// The names of all files in the storage.
    pub(crate) fn storage(&self) -> Vec<String> {
        files(&self.path("storage")).into_keys().collect()
    }

    /// The results in the storage by their names: neither records nor logs nor computations.
    pub(crate) fn results(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = files(&self.path("storage"));
        files.retain(|name, _| {
            let rooms = [
                "/record/",
                "/log/",
                "/failed",
                "/running/",
                "/collected/",
                "/pinned/",
                "/suspended/",
                "/commits/",
                "/version.json",
            ];
            let evidence = ["ledger/", "signers/", "revoked/"];
            !name.starts_with("trees/")
                && !evidence.iter().any(|top| name.starts_with(top))
                && !name.starts_with("repositories/")
                && !name.starts_with("suspended/")
                && !name.starts_with("ledger/")
                && !name.starts_with("signers/")
                && !rooms.iter().any(|room| name.contains(room))
        });
        files
    }

    /// Returns the contents of a file in the storage.
    #[track_caller]
    pub(crate) fn stored(&self, name: &str) -> String {
        let name = name.trim_start_matches("../storage/");
        fs::read_to_string(self.path("storage").join(name)).unwrap()
    }

    /// Returns the contents of the task's outputs, one after the other.
    #[track_caller]
    pub(crate) fn output(&self) -> String {
        let ran = self.ce_run(&["-n", "-q"]).exit(0);
        ran.lines().into_iter().map(|path| self.stored(path)).collect()
    }
}

/// Makes all files below a directory an hour older than now.
pub(crate) fn settle(dir: &Path) {
    let time = SystemTime::now() - Duration::from_secs(3600);
    for entry in walkdir::WalkDir::new(dir).into_iter().filter_map(Result::ok) {
        if entry.file_type().is_file() {
            fs::File::open(entry.path()).unwrap().set_modified(time).unwrap();
        }
    }
}

/// Returns the directory of all laboratories: in memory, if programs may be executed there.
pub(crate) fn place() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let given = std::env::var_os("CE_TEST_DIR").map(PathBuf::from);
        let memory = || Some(PathBuf::from("/dev/shm")).filter(|dir| executes(dir));
        given.or_else(memory).unwrap_or_else(std::env::temp_dir)
    })
}

fn executes(dir: &Path) -> bool {
    let Ok(dir) = tempfile::tempdir_in(dir) else {
        return false;
    };
    let script = dir.path().join("script");
    write(&script, b"#!/bin/sh\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    Command::new(script).status().is_ok_and(|status| status.success())
}

/// Copies a directory as `cp -a` does, with owners, modes, times and links, and as fast as a test needs it that does so often.
pub(crate) fn copy(from: &Path, to: &Path) {
    let (mut done, mut linked) = (Vec::new(), HashMap::new());
    for entry in walkdir::WalkDir::new(from).sort_by_file_name() {
        let entry = entry.unwrap();
        let (path, metadata) = (entry.path(), entry.metadata().unwrap());
        let copy = to.join(path.strip_prefix(from).unwrap());
        match metadata.file_type() {
            kind if kind.is_dir() => fs::create_dir(&copy).unwrap(),
            kind if kind.is_symlink() => symlink(fs::read_link(path).unwrap(), &copy).unwrap(),
            kind => {
                assert!(kind.is_file(), "{} is not a file", path.display());
                if let Some(other) = linked.get(&metadata.ino()) {
                    fs::hard_link(other, &copy).unwrap();
                    continue;
                }
                fs::copy(path, &copy).unwrap();
                if metadata.nlink() > 1 {
                    linked.insert(metadata.ino(), copy.clone());
                }
            }
        }
        done.push((copy, metadata));
    }
    // New entries in a directory change its time.
    for (copy, metadata) in done.iter().rev() {
        // Only root gives files to others.
        drop(lchown(copy, Some(metadata.uid()), Some(metadata.gid())));
        if !metadata.is_symlink() {
            fs::set_permissions(copy, metadata.permissions()).unwrap();
        }
        let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
        let times = Timestamps {
            last_access: time(metadata.atime(), metadata.atime_nsec()),
            last_modification: time(metadata.mtime(), metadata.mtime_nsec()),
        };
        utimensat(CWD, copy, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }
}

fn write(path: &Path, contents: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, contents).unwrap();
}

/// All files below a directory, by their names relative to it.
pub(crate) fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = walkdir::WalkDir::new(dir).into_iter().filter_map(Result::ok);
    let files = entries.filter(|entry| !entry.file_type().is_dir());
    let name = |path: &Path| path.strip_prefix(dir).unwrap().to_string_lossy().into_owned();
    files.filter_map(|file| Some((name(file.path()), contents(file.path())?))).collect()
}

/// Returns the contents of a file, or the target of a link that does not lead to a file; `None` if it was removed since it was
/// listed.
fn contents(path: &Path) -> Option<Vec<u8>> {
    match fs::read(path) {
        Err(_) if path.is_symlink() => {
            Some(fs::read_link(path).unwrap().into_os_string().into_encoded_bytes())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        read => Some(read.unwrap()),
    }
}

/// Everything that can be told of a directory without changing it, a line for each entry.
pub(crate) fn snapshot(dir: &Path) -> String {
    let entries = walkdir::WalkDir::new(dir).sort_by_file_name();
    let line = |entry: walkdir::DirEntry| {
        let (path, metadata) = (entry.path(), entry.metadata().unwrap());
        let contents = if metadata.is_file() { fs::read(path).unwrap() } else { Vec::new() };
        let digest = compeval::digest::Digest::hash_bytes(&contents).sha1.full();
        let (mode, name) = (metadata.mode(), path.strip_prefix(dir).unwrap().display());
        format!("{mode:o} {}.{:09} {digest} {name}\n", metadata.mtime(), metadata.mtime_nsec())
    };
    entries.into_iter().map(|entry| line(entry.unwrap())).collect()
}
