//! Git LFS: pointers, the objects of a repository on this host, and the user's `git lfs`, which transfers objects from
//! and to other hosts.
//!
//! `git lfs` works in a bare repository of our own that has only objects, since it reads pointers from Git trees: in a
//! mirror without files it would fetch all of them. Its exit status 0 does not prove that a server has an object.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf, absolute};
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};

use gix::Repository;
use gix::objs::Tree;
use gix::objs::tree::{Entry, EntryKind};
use gix::open::Options;
use sha2::{Digest as _, Sha256};

use crate::command::{GitReach, Prompts, git, output_of, output_until, silence_ssh};
use crate::mirror::{Mirror, MirrorError};
use crate::opening::open;
use crate::url::{local_path, without_password};
use crate::{GitResult, to_path};
use ce_files::umask;

/// The variable that has the URL of the remote.
const URL: &str = "CE_LFS_URL";

/// Settings of `git lfs`. Where it takes the other repository for one on this host and we do not, it fails: it would
/// mistake our objects for objects of that repository.
const SETTINGS: [&str; 4] = [
    "lfs.contenttype=false",
    "lfs.transfer.maxretries=3",
    "lfs.transfer.maxretrydelay=1",
    "lfs.customtransfer.lfs-standalone-file.path=false",
];

/// The setting that names a transfer agent for a URL, or for all.
const AGENT: &str = "lfs.standalonetransferagent";

/// The message of `git` if it has no `lfs`.
const NO_LFS: &str = "'lfs' is not a git command";

/// The greatest number of causes that an error names: `git lfs` prints one for each object.
const NAMED: usize = 3;

/// The number of bytes that are hashed at once.
const PIECE: usize = 1 << 16;

/// The beginnings of lines of `git lfs` that are not causes.
const BESIDE_CAUSES: [&str; 4] =
    ["warning: ", "Uploading LFS objects", "fetch: Fetching", "Downloading LFS objects"];

/// A pointer, which stands for an object in a Git tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LfsPointer {
    /// The SHA-256 of the object, all digits.
    pub oid: String,
    /// Its size in bytes.
    pub size: u64,
}

impl LfsPointer {
    /// The greatest size of a pointer, in bytes.
    pub const MAX: u64 = 1023;

    /// The only text that the pointer has here: equal objects have equal pointers.
    pub fn text(&self) -> String {
        let Self { oid, size } = self;
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {size}\n")
    }

    /// Reads a text that is exactly a pointer.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let lines = str::from_utf8(text).ok()?;
        let [_, oid, size] = lines.lines().collect::<Vec<_>>()[..] else { return None };
        let oid = oid.strip_prefix("oid sha256:")?;
        let pointer = Self::new(oid, size.strip_prefix("size ")?.parse().ok()?)?;
        (pointer.text().as_bytes() == text).then_some(pointer)
    }

    /// The pointer to an object of this size, if these are all digits of a SHA-256: they become a path.
    pub fn new(oid: &str, size: u64) -> Option<Self> {
        let is_oid =
            oid.len() == 64 && oid.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
        is_oid.then(|| Self { oid: oid.to_owned(), size })
    }

    /// Whether a file has just the bytes of its object.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or `stop` is set before it was read to its end.
    pub fn is_of(&self, file: &Path, stop: &AtomicBool) -> io::Result<bool> {
        let metadata = fs::metadata(file)?;
        if !metadata.is_file() || metadata.len() != self.size {
            return Ok(false);
        }
        let (mut sha256, mut piece) = (Sha256::new(), vec![0; PIECE]);
        let mut file = File::open(file)?;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            match file.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => sha256.update(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let digits = sha256.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Ok(digits == self.oid)
    }

    /// The path of its object in a directory of objects.
    pub fn path(&self, objects: &Path) -> PathBuf {
        objects.join(&self.oid[..2]).join(&self.oid[2..4]).join(&self.oid)
    }
}

/// The directory of LFS objects of a repository on this host.
#[derive(Clone, Debug)]
pub struct LfsStore {
    /// The directory, which need not exist.
    pub dir: PathBuf,
    /// The rights that its files grant to others than their owner, if the repository is shared.
    pub shared: u32,
}

impl LfsStore {
    /// The store of a repository, given by its own directory or the top of its work tree.
    pub fn open(place: &Path) -> GitResult<Self> {
        let repository = open(place)?;
        let config = repository.config_snapshot();
        let common = repository.common_dir();
        let dir = match config.string("lfs.storage") {
            Some(dir) if !dir.is_empty() => common.join(to_path(dir.as_ref())),
            _ => common.join("lfs"),
        };
        let shared = config.string("core.sharedRepository").map(|it| it.to_string());
        let shared = match shared.as_deref().unwrap_or_default() {
            "group" | "true" | "1" => 0o060,
            "all" | "world" | "everybody" | "2" => 0o064,
            octal => u32::from_str_radix(octal, 8).unwrap_or_default() & 0o066,
        };
        Ok(Self { dir, shared })
    }

    /// The directory of its objects.
    pub fn objects(&self) -> PathBuf {
        self.dir.join("objects")
    }
}

/// A repository that has LFS objects, or gets them.
#[derive(Debug)]
pub struct LfsRemote {
    /// The URL, possibly with a password.
    secret: String,
    /// The URL without the part between its `//` and `@`.
    url: String,
    prompts: Prompts,
    /// Its path on this host: for fetches, and for pushes. `None` if it is elsewhere.
    places: [Option<PathBuf>; 2],
}

/// The use for which objects are located: `git` has settings that make a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LfsUse {
    /// The repository is a source of objects.
    Fetch,
    /// The repository is a target of objects.
    Push,
}

/// A bare repository of our own for `git lfs`, which is removed when it is dropped.
#[derive(Debug)]
pub struct LfsScratch {
    repository: Repository,
    dir: PathBuf,
}

impl Drop for LfsScratch {
    fn drop(&mut self) {
        // Remains are removed when a directory of this name is made next.
        let _removed = fs::remove_dir_all(&self.dir);
    }
}

impl LfsScratch {
    /// Makes it in a directory, and replaces a leftover one.
    pub fn new(dir: &Path) -> GitResult<Self> {
        if dir.exists() {
            fs::remove_dir_all(dir)?;
        }
        umask::create_dir_all(dir.parent().unwrap_or(dir))?;
        umask::as_user(|| gix::init_bare(dir))?;
        let repository = gix::open_opts(dir, Options::default())?;
        Ok(Self { repository, dir: dir.to_owned() })
    }

    /// The directory of its objects, which need not exist.
    pub fn objects(&self) -> PathBuf {
        self.dir.join("lfs/objects")
    }

    /// Writes a tree with pointers.
    fn tree(&self, pointers: &[LfsPointer]) -> GitResult<String> {
        let mut names: Vec<&LfsPointer> = pointers.iter().collect();
        names.sort();
        names.dedup();
        let mut tree = Tree::empty();
        for pointer in names {
            let oid = self.repository.write_blob(pointer.text())?.detach();
            let (mode, filename) = (EntryKind::Blob.into(), pointer.oid.as_str().into());
            tree.entries.push(Entry { mode, filename, oid });
        }
        Ok(self.repository.write_object(&tree)?.to_string())
    }
}

impl Mirror {
    /// The other repository, as one that has LFS objects.
    pub fn lfs(&self) -> Result<LfsRemote, MirrorError> {
        let mut remote = LfsRemote::new(self.secret(), self.prompts());
        let output = self.git("remote", GitReach::Local, &["remote", "--verbose"], &[])?;
        let here = std::env::current_dir().map_err(|error| self.own(error.into()))?;
        remote.places = places(&here, &output.stdout);
        Ok(remote)
    }
}

/// The paths in the list of remotes that `git` has printed, in which it obeys the settings `url.*.insteadOf`.
fn places(dir: &Path, listed: &[u8]) -> [Option<PathBuf>; 2] {
    let listed = String::from_utf8_lossy(listed);
    [" (fetch)", " (push)"].map(|end| {
        let url = listed
            .lines()
            .find_map(|line| Some(line.strip_prefix("origin\t")?.rsplit_once(end)?.0));
        let place = dir.join(local_path(url?)?);
        // Git looks for that, too.
        let mut dotted = place.clone().into_os_string();
        dotted.push(".git");
        Some(if place.exists() { place } else { dotted.into() })
    })
}

/// The URLs for which `git lfs` looks up settings of a repository. `git` does not know one as ssh writes it, `host:path`.
fn agent_urls(url: &str) -> Vec<String> {
    let ssh = url.strip_prefix("ssh://").map(|rest| rest.split_once('/'));
    let is_path = local_path(url).is_some();
    let ssh =
        ssh.unwrap_or_else(|| url.split_once(':').filter(|_| !is_path && !url.contains("://")));
    match ssh {
        Some((host, path)) => {
            let (path, server) = (path.trim_start_matches('/'), host.rsplit('@').next());
            let server = server.and_then(|server| server.split(':').next()).unwrap_or(host);
            vec![format!("ssh://{host}/{path}"), format!("https://{server}/{path}/info/lfs")]
        }
        None => vec![format!("{url}/info/lfs")],
    }
}

impl LfsRemote {
    fn new(url: &str, prompts: Prompts) -> Self {
        let places = [None, None];
        Self { secret: url.to_owned(), url: without_password(url), prompts, places }
    }

    /// The repository that a clone, given by the top of its work tree, is from: its remote `origin`. `None` if it has none.
    ///
    /// A bare repository does not count as a clone: a commit may bring one into a work tree, with settings that no user
    /// here has chosen.
    pub fn of_clone(clone: &Path, prompts: Prompts) -> GitResult<Option<Self>> {
        if clone.join(".git").symlink_metadata().is_err() {
            return Ok(None);
        }
        let repository = open(clone)?;
        let Some(url) = repository.config_snapshot().string("remote.origin.url") else {
            return Ok(None);
        };
        let mut remote = Self::new(&url.to_string(), prompts);
        let clone = absolute(clone)?;
        let mut command = git(GitReach::Local, prompts);
        let output = output_of(command.arg("-C").arg(&clone).args(["remote", "--verbose"]), &[])?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().into());
        }
        remote.places = places(&clone, &output.stdout);
        Ok(Some(remote))
    }

    /// The URL, without a password.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The objects of the repository, if it is on this host, and the user has no transfer agent for them.
    pub fn store(&self, used: LfsUse) -> Result<Option<LfsStore>, MirrorError> {
        if self.has_agent() {
            return Ok(None);
        }
        let [fetched, pushed] = &self.places;
        let place = if used == LfsUse::Fetch { fetched } else { pushed };
        let store = place.as_deref().map(LfsStore::open).transpose();
        store.map_err(|error| self.failed("lfs", &error.to_string()))
    }

    /// Whether the user's configuration has a program of its own for these objects, which no server knows. The configuration of the
    /// current repository does not count.
    fn has_agent(&self) -> bool {
        let places = self.places.iter().flatten();
        let places = places.map(|place| format!("file://{}", place.display()));
        agent_urls(&self.url).into_iter().chain(places).any(|url| {
            let mut command = git(GitReach::Local, self.prompts);
            command.current_dir("/").args(["config", "--get-urlmatch", AGENT, &url]);
            let output = output_of(&mut command, &[]);
            output.is_ok_and(|it| it.status.success() && !it.stdout.trim_ascii().is_empty())
        })
    }

    /// Sends objects that are in a scratch repository, and asks once more whether the server has all of them by then. With a transfer agent
    /// there is no second pass: it would send all of them again.
    pub fn upload(&self, scratch: &LfsScratch, oids: &[String]) -> Result<(), MirrorError> {
        if oids.is_empty() {
            return Ok(());
        }
        let lines: String = oids.iter().map(|oid| format!("{oid}\n")).collect();
        let progress = scratch.dir.join("sent");
        let passes: &[bool] = if self.has_agent() { &[false] } else { &[false, true] };
        for is_check in passes.iter().copied() {
            let args = ["push", "--object-id", "--stdin", "origin"];
            let progress = is_check.then_some(&progress);
            let output = self.run(scratch, &args, lines.as_bytes(), progress, &|| false)?;
            if !output.status.success() {
                return Err(self.said("lfs push", &output, None));
            }
        }
        // Each object that is sent adds lines.
        let is_there = fs::metadata(&progress).map_or(true, |it| it.len() == 0);
        if is_there {
            return Ok(());
        }
        Err(self.failed(
            "lfs push",
            "it has ended well, and the server does not have all objects: it has refused some",
        ))
    }

    /// Fetches objects into a scratch repository, until it is to be stopped. Each that is there then has the size and the SHA-256 of its
    /// pointer. Returns the output of `git lfs` if it has failed.
    ///
    /// # Errors
    ///
    /// Fails if `git lfs` cannot be started.
    pub fn download(
        &self,
        scratch: &LfsScratch,
        pointers: &[LfsPointer],
        is_stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Output>, MirrorError> {
        let own = |error: Box<dyn std::error::Error + Send + Sync>| {
            self.failed("lfs fetch", &error.to_string())
        };
        let tree = scratch.tree(pointers).map_err(own)?;
        // Without both, the user's configuration may leave out everything.
        let args = ["fetch", "-I", "", "-X", "", "origin", &tree];
        let output = self.run(scratch, &args, &[], None, is_stopped)?;
        Ok(Some(output).filter(|output| !output.status.success()))
    }

    /// The error of an object that a fetch with this output has not fetched.
    pub fn not_fetched(&self, output: &Output, pointer: &LfsPointer) -> MirrorError {
        self.said("lfs fetch", output, Some(&pointer.oid))
    }

    fn run(
        &self,
        scratch: &LfsScratch,
        args: &[&str],
        input: &[u8],
        progress: Option<&PathBuf>,
        is_stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Output, MirrorError> {
        let mut command = git(GitReach::Remote, self.prompts);
        if self.prompts == Prompts::Off {
            let ssh = scratch.repository.config_snapshot().string("core.sshCommand");
            silence_ssh(&mut command, ssh.as_ref().map(ToString::to_string).as_deref());
        }
        command.arg("--git-dir").arg(&scratch.dir);
        // Others on this host can read arguments, and not the environment.
        command.arg(format!("--config-env=remote.origin.url={URL}")).env(URL, &self.secret);
        command.arg("-c").arg(format!("lfs.storage={}", scratch.dir.join("lfs").display()));
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.arg("lfs").args(args);
        if let Some(file) = progress {
            command.env("GIT_LFS_PROGRESS", file);
        }
        let output = output_until(&mut command, input, is_stopped);
        let output = output.map_err(|error| self.failed("lfs", &error.to_string()))?;
        if String::from_utf8_lossy(&output.stderr).contains(NO_LFS) {
            return Err(MirrorError::NoLfs { url: self.url.clone() });
        }
        Ok(output)
    }

    /// The error that `git lfs` has printed: of an object, what names it, if anything does.
    fn said(&self, what: &'static str, output: &Output, oid: Option<&str>) -> MirrorError {
        let said = String::from_utf8_lossy(&output.stderr);
        let lines = said.lines().map(str::trim).filter(|line| {
            !line.is_empty() && !BESIDE_CAUSES.iter().any(|it| line.starts_with(it))
        });
        let mut causes: Vec<&str> = lines.collect();
        causes.dedup();
        if let Some(oid) = oid.filter(|oid| causes.iter().any(|line| line.contains(oid))) {
            causes.retain(|line| line.contains(oid));
        }
        let more = causes.len().saturating_sub(NAMED);
        causes.truncate(NAMED);
        match causes.join("; ") {
            why if why.is_empty() => self.failed(what, &output.status.to_string()),
            why if more > 0 => self.failed(what, &format!("{why}; and {more} more")),
            why => self.failed(what, &why),
        }
    }

    fn failed(&self, what: &'static str, why: &str) -> MirrorError {
        let host = self.secret.split_once("://").map_or("", |(_, rest)| rest);
        let user = host.split('/').next().and_then(|host| host.rsplit_once('@'));
        let why = match user {
            Some((user, _)) => why.replace(&format!("{user}@"), ""),
            None => why.to_owned(),
        };
        MirrorError::Git { what, url: self.url.clone(), why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_accepted_in_its_canonical_form_only() {
        let oid = "eaee7f9a4a0b621471610a2af8b09540255b4a30fbfe9d59f0e88a1bbe845e23";
        let text =
            format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 100000\n");
        let pointer = LfsPointer::parse(text.as_bytes()).unwrap();
        assert_eq!((pointer.oid.as_str(), pointer.size), (oid, 100_000));
        assert_eq!(pointer.text(), text);
        assert_eq!(pointer.path(Path::new("/o")), Path::new("/o/ea/ee").join(oid),);
        for other in [
            text.replace('\n', "\r\n"),
            text.to_uppercase(),
            text.replace("100000", "0100000"),
            text.replace("eaee", "EAEE"),
            format!("{text}x"),
            text.trim_end().to_owned(),
            text.replace("eaee", "../.."),
            String::new(),
        ] {
            assert_eq!(LfsPointer::parse(other.as_bytes()), None, "{other}");
        }
        for other in ["", "ab", "é", &"../".repeat(22)[..64], &oid.to_uppercase()] {
            assert_eq!(LfsPointer::new(other, 1), None, "{other}");
        }
    }

    #[test]
    fn settings_of_git_lfs_are_looked_up_by_urls_that_git_knows() {
        let ssh = ["ssh://git@host/lab/x.git", "https://host/lab/x.git/info/lfs"];
        assert_eq!(agent_urls("git@host:lab/x.git"), ssh);
        assert_eq!(agent_urls("ssh://git@host/lab/x.git"), ssh);
        assert_eq!(agent_urls("ssh://host:22/x")[1], "https://host/x/info/lfs");
        assert_eq!(agent_urls("https://host/x.git"), ["https://host/x.git/info/lfs"]);
        assert_eq!(agent_urls("../x.git"), ["../x.git/info/lfs"]);
    }

    #[test]
    fn hashing_an_object_stops_on_request() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "a\nlarge\nfile\n").unwrap();
        let oid = "30c75b5d2700d5baaeda7046893a8a6842837e8bb381c55d066b0700dfcca832";
        let pointer = LfsPointer::new(oid, 13).unwrap();
        assert!(pointer.is_of(&file, &AtomicBool::new(false)).unwrap());
        let stopped = pointer.is_of(&file, &AtomicBool::new(true)).unwrap_err();
        assert_eq!(stopped.kind(), io::ErrorKind::Interrupted);
        assert!(!pointer.is_of(dir.path(), &AtomicBool::new(false)).unwrap());
    }

    #[test]
    fn a_bare_repository_is_not_a_clone() {
        let dir = tempfile::tempdir().unwrap();
        let config = ["[core]", "bare = true", "[remote \"origin\"]", "url = ext::false"];
        for (bare, is_clone) in [("", false), (".git", true)] {
            let place = dir.path().join(bare);
            fs::create_dir_all(&place).unwrap();
            gix::init_bare(&place).unwrap();
            fs::write(place.join("config"), config.join("\n")).unwrap();
            let found = LfsRemote::of_clone(dir.path(), Prompts::Off).unwrap();
            assert_eq!(found.is_some(), is_clone);
            fs::remove_dir_all(place).unwrap();
        }
    }
}
