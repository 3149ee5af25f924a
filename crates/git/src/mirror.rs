//! A bare repository of our own, through which objects go to another one and come from there.
//!
//! Objects are read and written by gix. The user's own `git` moves them, so that its credentials, proxies and ssh settings
//! hold. Files are not fetched unless they are asked for: a mirror of a large repository is small.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::thread;

use gix::objs::tree::EntryKind;

use self::directory::MirrorFiles;
pub use self::error::MirrorError;
use self::error::left_out;
pub use self::signature::{CommitSignature, MirrorCommit, SignatureKind};
use super::command::{GitReach, Prompts, git, silence_ssh};
use super::config::without_password;
use super::errors::border;
use super::pack::{BlobHash, MirrorEntry, MirrorKind, PackWriter};
use super::{Config, ConfigError, GitResult, from, object_id};
use ce_model::digest::ObjectId;

mod directory;
mod error;
mod signature;

/// The remote of a mirror.
const REMOTE: &str = "origin";

/// The number of files that are fetched at once: the time that `git fetch` takes to read their names grows with its square.
const FETCHED: usize = 16 << 10;

/// What versions of `git` say of a reference that has changed, exists already or does not any more.
const MOVED: [&str; 6] = [
    "[rejected]",
    "failed to update ref",
    "cannot lock ref",
    "incorrect old value",
    "(reference ",
    "atomic",
];

/// A mirror of another repository, locked until it is dropped.
#[derive(Debug)]
pub struct Mirror {
    dir: PathBuf,
    /// The URL, possibly with a password.
    secret: String,
    /// The URL without what is between its `//` and `@`.
    url: String,
    repository: gix::Repository,
    files: MirrorFiles,
    /// Whether `git` may ask the user.
    prompts: Prompts,
    _lock: File,
}

/// A reference of another repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteRef {
    /// Its full name.
    pub name: String,
    /// What it points to.
    pub id: ObjectId,
}

/// A change of a reference of another repository.
#[derive(Clone, Debug)]
pub struct RefUpdate {
    /// Its full name.
    pub name: String,
    /// What it points to before; nothing if it is not there.
    pub old: Option<ObjectId>,
    /// A commit that is here; none removes the reference.
    pub new: Option<ObjectId>,
}

impl Mirror {
    /// Opens the mirror of another repository in a directory, which is made if it is not there. Waits for whoever uses it.
    pub fn open(dir: &Path, url: &str, prompts: Prompts) -> Result<Self, MirrorError> {
        let opened = || -> GitResult<_> {
            fs::create_dir_all(dir.parent().unwrap_or(dir))?;
            let lock = File::create(dir.with_extension("lock"))?;
            lock.lock()?;
            let (repository, files) = directory::open_or_create(dir)?;
            Ok((repository, files, lock))
        };
        let (repository, files, lock) = opened().map_err(|source| {
            let (dir, url) = (dir.to_owned(), without_password(url));
            MirrorError::Own { dir, url, source }
        })?;
        let (dir, secret, url) = (dir.to_owned(), url.to_owned(), without_password(url));
        Ok(Self { dir, secret, url, repository, files, prompts, _lock: lock })
    }

    /// Forgets everything that was fetched or pushed: what is here then, the other repository has.
    pub fn renew(&mut self) -> Result<(), MirrorError> {
        self.repository = self.recreate()?;
        Ok(())
    }

    fn recreate(&self) -> Result<gix::Repository, MirrorError> {
        directory::recreate(&self.dir, self.files).map_err(|source| self.own(source))
    }

    /// Git's configuration for a directory; in one that is in no repository, that of the user.
    pub fn config(&self, dir: &Path) -> Result<Config, ConfigError> {
        Config::around(dir, &self.dir)
    }

    /// The URL of the other repository, without a password.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Lists references of the other repository: those that match a pattern, and `HEAD` if it points to one.
    pub fn list(&self, patterns: &[&str]) -> Result<Vec<RemoteRef>, MirrorError> {
        let args = [&["ls-remote", "--quiet", REMOTE], patterns].concat();
        let output = self.git("ls-remote", GitReach::Remote, &args, &[])?;
        let text = String::from_utf8_lossy(&output.stdout);
        let refs = text.lines().filter_map(|line| {
            let (id, name) = line.split_once('\t')?;
            Some(RemoteRef { id: id.parse().ok()?, name: name.to_owned() })
        });
        Ok(refs.collect())
    }

    /// Fetches references with their commits and directories, and no files. They are forgotten when the mirror is opened next.
    ///
    /// # Errors
    ///
    /// Fails if `git` does, or the history is cut off.
    pub fn fetch(&self, refs: &[RemoteRef]) -> Result<(), MirrorError> {
        let missing = refs.iter().filter(|it| !self.has(&it.id));
        let names: Vec<&str> = missing.map(|it| it.name.as_str()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let fixed = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--update-shallow"];
        let args = [&fixed[..], self.files.filter(), &[REMOTE], &names].concat();
        self.git("fetch", GitReach::Remote, &args, &[])?;
        let border = border(&self.repository).map_err(|source| self.own(source))?;
        let Some(border) = border else { return Ok(()) };
        // What was fetched has no history: nobody knows what the commits at the border have added.
        self.recreate()?;
        Err(MirrorError::Shallow { url: self.url.clone(), border })
    }

    /// Fetches those files that are not here yet, many at once.
    pub fn fetch_files(&self, ids: &[ObjectId]) -> Result<(), MirrorError> {
        let fixed = ["-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags"];
        let rest = ["--no-write-fetch-head", "--stdin", REMOTE];
        let args = [&fixed[..], self.files.filter(), &rest].concat();
        for ids in self.missing(ids)?.chunks(FETCHED) {
            let lines: String = ids.iter().map(|id| format!("{id}\n")).collect();
            self.git("fetch", GitReach::Remote, &args, lines.as_bytes())?;
        }
        Ok(())
    }

    /// Changes references of the other repository, all or none. Returns false if one of them has changed since it was listed.
    ///
    /// # Errors
    ///
    /// Fails if `git` does for any other reason.
    pub fn push(&self, updates: &[RefUpdate]) -> Result<bool, MirrorError> {
        let digits =
            |id: &Option<ObjectId>| id.as_ref().map(|id| id.full().to_owned()).unwrap_or_default();
        let mut args = vec!["push".to_owned(), "--quiet".to_owned(), "--porcelain".to_owned()];
        if updates.len() > 1 {
            args.push("--atomic".to_owned());
        }
        for RefUpdate { name, old, .. } in updates {
            args.push(format!("--force-with-lease={name}:{}", digits(old)));
        }
        args.push(REMOTE.to_owned());
        args.extend(
            updates.iter().map(|RefUpdate { name, new, .. }| format!("{}:{name}", digits(new))),
        );
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = self.run(GitReach::Remote, &args, &[]).map_err(|source| self.own(source))?;
        if output.status.success() {
            return Ok(true);
        }
        let report = String::from_utf8_lossy(&output.stdout);
        let rejected: Vec<&str> = report.lines().filter(|line| line.starts_with("!\t")).collect();
        let have_moved = rejected.iter().all(|line| MOVED.iter().any(|moved| line.contains(moved)));
        if !rejected.is_empty() && have_moved {
            return Ok(false);
        }
        let whys: Vec<&str> = rejected.iter().filter_map(|line| line.rsplit('\t').next()).collect();
        Err(self.failed("push", &output, &whys.join("; ")))
    }

    /// Whether an object is here.
    pub fn has(&self, id: &ObjectId) -> bool {
        from(id).is_ok_and(|id| self.repository.has_object(id))
    }

    /// Those of these objects that are not here. Packs that were added meanwhile are looked for once, not for each.
    fn missing(&self, ids: &[ObjectId]) -> Result<Vec<gix::ObjectId>, MirrorError> {
        let ids: GitResult<Vec<_>> = ids.iter().map(from).collect();
        let mut ids = ids.map_err(|source| self.own(source))?;
        let is_missing = |id: &gix::ObjectId| !self.repository.objects.exists_without_refresh(id);
        ids.retain(is_missing);
        if let Some(first) = ids.first() {
            // This looks for new packs.
            let _: bool = self.repository.has_object(first);
            ids.retain(is_missing);
        }
        Ok(ids)
    }

    /// How it names files by their contents.
    pub fn blob_hash(&self) -> BlobHash {
        BlobHash(self.repository.object_hash())
    }

    /// The tree of a commit.
    pub fn tree_of(&self, commit: &ObjectId) -> Result<ObjectId, MirrorError> {
        let read = || -> GitResult<_> {
            let commit = self.repository.find_commit(from(commit)?)?;
            object_id(commit.tree_id()?.detach())
        };
        read().map_err(|source| self.own(source))
    }

    /// The entries of a tree, as Git sorts them. One whose name is not UTF-8 is neither a plain file nor a directory.
    pub fn entries(&self, tree: &ObjectId) -> Result<Vec<MirrorEntry>, MirrorError> {
        let read = || -> GitResult<_> {
            let tree = self.repository.find_tree(from(tree)?)?;
            let mut entries = Vec::new();
            for entry in tree.iter() {
                let entry = entry?;
                let name = std::str::from_utf8(entry.filename());
                let kind = match entry.kind() {
                    EntryKind::Tree if name.is_ok() => MirrorKind::Tree,
                    EntryKind::Blob if name.is_ok() => MirrorKind::Blob,
                    _ => MirrorKind::Other,
                };
                let name = String::from_utf8_lossy(entry.filename()).into_owned();
                entries.push(MirrorEntry { name, kind, id: object_id(entry.object_id())? });
            }
            Ok(entries)
        };
        read().map_err(|source| self.own(source))
    }

    /// The number of entries of a tree, and the names and ids of those that are directories.
    ///
    /// # Errors
    ///
    /// Fails if the tree is not here, or has a directory whose name is not UTF-8.
    pub fn directories(
        &self,
        tree: &ObjectId,
    ) -> Result<(usize, Vec<(String, ObjectId)>), MirrorError> {
        let read = || -> GitResult<_> {
            let tree = self.repository.find_tree(from(tree)?)?;
            let (mut entries, mut directories) = (0, Vec::new());
            for entry in tree.iter() {
                let entry = entry?;
                entries += 1;
                if entry.kind() == EntryKind::Tree {
                    let name = std::str::from_utf8(entry.filename())?.to_owned();
                    directories.push((name, object_id(entry.object_id())?));
                }
            }
            Ok((entries, directories))
        };
        read().map_err(|source| self.own(source))
    }

    /// The contents of a file; `None` if it has more bytes than a limit. A few bytes of a pack may be a file of any size.
    pub fn contents(&self, file: &ObjectId, limit: u64) -> Result<Option<Vec<u8>>, MirrorError> {
        let read = || -> GitResult<_> {
            let id = from(file)?;
            if self.repository.find_header(id)?.size() > limit {
                return Ok(None);
            }
            Ok(Some(self.repository.find_blob(id)?.take_data()))
        };
        read().map_err(|source| self.own(source))
    }

    /// Begins to write objects.
    pub fn writer(&self) -> PackWriter<'_> {
        PackWriter::new(&self.repository)
    }

    /// An error of the mirror itself.
    pub fn own(&self, source: Box<dyn std::error::Error + Send + Sync>) -> MirrorError {
        MirrorError::Own { dir: self.dir.clone(), url: self.url.clone(), source }
    }
}

impl Mirror {
    /// Reads what was remembered under a name. `None` if that is nothing.
    pub fn note(&self, name: &str) -> Result<Option<Vec<u8>>, MirrorError> {
        match fs::read(self.note_path(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.own(error.into())),
        }
    }

    /// Remembers something under a name, in place of what was there.
    pub fn put_note(&self, name: &str, text: &[u8]) -> Result<(), MirrorError> {
        let (place, new) = (self.note_path(name), self.note_path(&format!("{name}-new")));
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, place));
        written.map_err(|error| self.own(error.into()))
    }

    /// Appends to what is remembered under a name.
    pub fn add_to_note(&self, name: &str, text: &[u8]) -> Result<(), MirrorError> {
        let path = self.note_path(name);
        let file = File::options().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(text)).map_err(|error| self.own(error.into()))
    }

    fn note_path(&self, name: &str) -> PathBuf {
        self.dir.with_extension(name)
    }
}

/// The variable that has the URL of the remote.
const URL: &str = "CE_RESULTS_URL";

/// Settings of the user's `git` in a mirror: nothing malformed is fetched.
const SETTINGS: [&str; 3] =
    ["fetch.fsckObjects=true", "fetch.writeCommitGraph=false", "protocol.version=2"];

/// Settings in a mirror that may lack files.
const PARTIAL: [&str; 2] =
    ["remote.origin.promisor=true", "remote.origin.partialCloneFilter=blob:none"];

/// The setting for a `git` that cannot be kept from fetching, where the other repository is on this host: the process there that
/// serves it cannot connect to a third one.
const ALONE: &str = "remote.origin.uploadpack=GIT_ALLOW_PROTOCOL=none git-upload-pack";

/// How lines begin that `git` prints beside causes: warnings, advice, and that the whole has failed.
const BESIDE_CAUSES: [&str; 6] = [
    "warning: ",
    "To add an exception for this directory",
    "git config --global --add safe.directory",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
    "error: failed to push some refs",
];

impl Mirror {
    pub(super) fn git(
        &self,
        what: &'static str,
        reach: GitReach,
        args: &[&str],
        input: &[u8],
    ) -> Result<Output, MirrorError> {
        let output = self.run(reach, args, input).map_err(|source| self.own(source))?;
        if !output.status.success() {
            return Err(self.failed(what, &output, ""));
        }
        Ok(output)
    }

    pub(super) fn failed(&self, what: &'static str, output: &Output, why: &str) -> MirrorError {
        let said = String::from_utf8_lossy(&output.stderr);
        if let Some(object) = left_out(&said, self.place()) {
            return MirrorError::Partial { url: self.url.clone(), object: object.to_owned() };
        }
        let said = said.lines().map(|line| line.trim_start_matches("fatal: ").trim());
        let causes = said.filter(|line| !BESIDE_CAUSES.iter().any(|it| line.starts_with(it)));
        let lines = causes.chain([why]).filter(|line| !line.is_empty());
        let why = lines.collect::<Vec<_>>().join("; ");
        let why = if why.is_empty() { output.status.to_string() } else { why };
        MirrorError::Git { what, url: self.url.clone(), why }
    }

    /// The path of the other repository, if it is on this host.
    fn place(&self) -> Option<&Path> {
        let place = self.secret.strip_prefix("file://").unwrap_or(&self.secret);
        Some(Path::new(place)).filter(|place| place.is_absolute())
    }

    pub(super) fn run(&self, reach: GitReach, args: &[&str], input: &[u8]) -> GitResult<Output> {
        let mut command = git(reach, self.prompts);
        if self.prompts == Prompts::Off {
            let ssh = self.repository.config_snapshot().string("core.sshCommand");
            silence_ssh(&mut command, ssh.as_ref().map(ToString::to_string).as_deref());
        }
        command.arg("--git-dir").arg(&self.dir);
        // Others on this host can read arguments, and not the environment.
        command.arg(format!("--config-env=remote.{REMOTE}.url={URL}")).env(URL, &self.secret);
        let is_here = self.place().is_some();
        let more = match self.files {
            MirrorFiles::Asked => &PARTIAL[..],
            MirrorFiles::All if is_here => &[ALONE],
            MirrorFiles::All => &[],
        };
        for setting in SETTINGS.iter().chain(more) {
            command.args(["-c", setting]);
        }
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        thread::scope(|scope| {
            // A `git` that ends early does not read everything.
            scope.spawn(move || stdin.map(|mut stdin| drop(stdin.write_all(input))));
            Ok(child.wait_with_output()?)
        })
    }
}
