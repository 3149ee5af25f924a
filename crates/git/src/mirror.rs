//! A bare repository of our own, through which objects go to another one and come from there.
//!
//! Objects are read and written by gix. The user's own `git` moves them, so that its credentials, proxies and ssh settings
//! hold. Files are not fetched unless they are asked for: a mirror of a large repository is small.

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Output;

use ce_files::umask;
use ce_model::digest::{ObjectId, is_object_id};
use ce_model::exit::Explain;
use gix::Repository;
use gix::objs::tree::EntryKind;
use gix::odb::store::init::Slots;
use gix::open::Options;
use serde::{Deserialize, Serialize};

use crate::command::{GitReach, Prompts, can_stop_lazy_fetch, git, output_of, silence_ssh};
use crate::config::{Config, ConfigError};
use crate::errors::{border, hint_to_trust};
use crate::pack_writer::{BlobHash, MirrorEntry, MirrorKind, NewCommit, PackWriter};
use crate::url::{local_path, without_password};
use crate::{GitResult, from, object_id};

/// The remote of a mirror.
const REMOTE: &str = "origin";

/// The number of files that are fetched at once: the time that `git fetch` takes to read their names grows with its square.
const FETCHED: usize = 16 << 10;

/// The messages of versions of `git` about a reference that has changed, exists already or does not any more.
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
    /// The URL without the part between its `//` and `@`.
    url: String,
    repository: Repository,
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
    /// The id of the object that it points to.
    pub id: ObjectId,
}

/// A change of a reference of another repository.
#[derive(Clone, Debug)]
pub struct RefUpdate {
    /// Its full name.
    pub name: String,
    /// The id of the object that it points to before; `None` if the reference does not exist.
    pub old: Option<ObjectId>,
    /// A commit that is here; `None` removes the reference.
    pub new: Option<ObjectId>,
}

/// Opens or makes the repository in a directory, once its lock is held.
fn locked(dir: &Path) -> GitResult<(Repository, MirrorFiles, File)> {
    umask::create_private_dirs(dir.parent().unwrap_or(dir))?;
    let lock = umask::new_file().append(true).create(true).open(dir.with_extension("lock"))?;
    lock.lock()?;
    let (repository, files) = open_or_create(dir)?;
    Ok((repository, files, lock))
}

/// The digits of an id; empty without an id.
fn digits(id: Option<&ObjectId>) -> &str {
    id.map_or("", ObjectId::full)
}

impl Mirror {
    /// Opens the mirror of another repository in a directory, which is made if it is not there. Waits as long as it is in use.
    pub fn open(dir: &Path, url: &str, prompts: Prompts) -> Result<Self, MirrorError> {
        let (repository, files, lock) = locked(dir).map_err(|source| {
            let (dir, url) = (dir.to_owned(), without_password(url));
            MirrorError::Own { dir, url, source }
        })?;
        let (dir, secret, url) = (dir.to_owned(), url.to_owned(), without_password(url));
        Ok(Self { dir, secret, url, repository, files, prompts, _lock: lock })
    }

    /// Deletes everything that was fetched or pushed: objects that are here afterwards are in the other repository.
    pub fn renew(&mut self) -> Result<(), MirrorError> {
        self.repository = self.recreate()?;
        Ok(())
    }

    fn recreate(&self) -> Result<Repository, MirrorError> {
        recreate_in(&self.dir, self.files).map_err(|source| self.own(source))
    }

    /// Git's configuration for a directory. Outside of a repository, the user's configuration.
    pub fn config(&self, dir: &Path) -> Result<Config, ConfigError> {
        Config::around(dir, &self.dir)
    }

    /// The URL of the other repository, possibly with a password.
    pub(super) fn secret(&self) -> &str {
        &self.secret
    }

    /// Whether `git` may ask the user.
    pub(super) const fn prompts(&self) -> Prompts {
        self.prompts
    }

    /// A path beside the mirror. No other process uses it while this mirror exists.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.note_path(name)
    }

    /// The URL of the other repository, without a password.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Lists references of the other repository: references that match a pattern, and `HEAD` if it points to one.
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
        // The fetched commits have no history: what the commits at the border added is unknown.
        self.recreate()?;
        Err(MirrorError::Shallow { url: self.url.clone(), border })
    }

    /// Fetches the files that are not here yet, many at once.
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

    /// Changes references of the other repository atomically. Returns false if one of them has changed since it was
    /// listed.
    ///
    /// # Errors
    ///
    /// Fails if `git` does for any other reason.
    pub fn push(&self, updates: &[RefUpdate]) -> Result<bool, MirrorError> {
        let mut args = vec!["push".to_owned(), "--quiet".to_owned(), "--porcelain".to_owned()];
        if updates.len() > 1 {
            args.push("--atomic".to_owned());
        }
        for RefUpdate { name, old, .. } in updates {
            args.push(format!("--force-with-lease={name}:{}", digits(old.as_ref())));
        }
        args.push(REMOTE.to_owned());
        args.extend(
            updates
                .iter()
                .map(|RefUpdate { name, new, .. }| format!("{}:{name}", digits(new.as_ref()))),
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

    /// The missing objects among these. Packs that were added meanwhile are looked for once, not for each.
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

    /// Returns the way in which it names files by their contents.
    pub fn blob_hash(&self) -> BlobHash {
        BlobHash(self.repository.object_hash())
    }

    fn read<T>(&self, read: impl FnOnce(&Repository) -> GitResult<T>) -> Result<T, MirrorError> {
        read(&self.repository).map_err(|source| self.own(source))
    }

    /// The tree of a commit.
    pub fn tree_of(&self, commit: &ObjectId) -> Result<ObjectId, MirrorError> {
        self.read(|repository| {
            let commit = repository.find_commit(from(commit)?)?;
            object_id(commit.tree_id()?.detach())
        })
    }

    /// The entries of a tree, as Git sorts them. An entry whose name is not UTF-8 does not count as a plain file or a
    /// directory.
    pub fn entries(&self, tree: &ObjectId) -> Result<Vec<MirrorEntry>, MirrorError> {
        self.read(|repository| {
            let tree = repository.find_tree(from(tree)?)?;
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
        })
    }

    /// The number of entries of a tree, and the names and ids of directories.
    ///
    /// # Errors
    ///
    /// Fails if the tree is not here, or has a directory whose name is not UTF-8.
    pub fn directories(
        &self,
        tree: &ObjectId,
    ) -> Result<(usize, Vec<(String, ObjectId)>), MirrorError> {
        self.read(|repository| {
            let tree = repository.find_tree(from(tree)?)?;
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
        })
    }

    /// The contents of a file; `None` if it has more bytes than a limit. A few bytes of a pack may be a file of any size.
    pub fn contents(&self, file: &ObjectId, limit: u64) -> Result<Option<Vec<u8>>, MirrorError> {
        self.read(|repository| {
            let id = from(file)?;
            if repository.find_header(id)?.size() > limit {
                return Ok(None);
            }
            Ok(Some(repository.find_blob(id)?.take_data()))
        })
    }

    /// Begins to write objects.
    pub fn writer(&self) -> PackWriter<'_> {
        PackWriter::new(&self.repository)
    }

    /// An error of the mirror itself.
    pub fn own(&self, source: Box<dyn Error + Send + Sync>) -> MirrorError {
        MirrorError::Own { dir: self.dir.clone(), url: self.url.clone(), source }
    }
}

impl Mirror {
    /// Reads the note under a name. `None` if it does not exist.
    pub fn note(&self, name: &str) -> Result<Option<Vec<u8>>, MirrorError> {
        match fs::read(self.note_path(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.own(error.into())),
        }
    }

    /// Writes a note under a name, and replaces an old one.
    pub fn put_note(&self, name: &str, text: &[u8]) -> Result<(), MirrorError> {
        let (place, new) = (self.note_path(name), self.note_path(&format!("{name}-new")));
        let written = umask::write(&new, text).and_then(|()| fs::rename(&new, place));
        written.map_err(|error| self.own(error.into()))
    }

    /// Appends to the note under a name.
    pub fn add_to_note(&self, name: &str, text: &[u8]) -> Result<(), MirrorError> {
        let path = self.note_path(name);
        let file = umask::new_file().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(text)).map_err(|error| self.own(error.into()))
    }

    fn note_path(&self, name: &str) -> PathBuf {
        self.dir.with_extension(name)
    }
}

/// The variable that has the URL of the remote.
const URL: &str = "CE_RESULTS_URL";

/// Settings of the user's `git` in a mirror. Malformed objects are not fetched. Packs take little memory: otherwise
/// each thread that makes one keeps ten directories to find what they share. A directory of many results has ten
/// megabytes.
const SETTINGS: [&str; 5] = [
    "fetch.fsckObjects=true",
    "fetch.writeCommitGraph=false",
    "protocol.version=2",
    "pack.windowMemory=8m",
    "pack.deltaCacheSize=8m",
];

/// Settings in a mirror that may lack files.
const PARTIAL_FETCH: [&str; 2] =
    ["remote.origin.promisor=true", "remote.origin.partialCloneFilter=blob:none"];

/// The setting for a `git` that cannot be kept from fetching, where the other repository is on this host: the process there that
/// serves it cannot connect to a third one.
const ALONE: &str = "remote.origin.uploadpack=GIT_ALLOW_PROTOCOL=none git-upload-pack";

/// The beginnings of lines that `git` prints beside causes: warnings, advice, and that the whole has failed.
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
        if let Some(object) = left_out(&said, self.place().as_deref()) {
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
    fn place(&self) -> Option<PathBuf> {
        local_path(&self.secret).filter(|place| place.is_absolute())
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
            MirrorFiles::Asked => &PARTIAL_FETCH[..],
            MirrorFiles::All if is_here => &[ALONE],
            MirrorFiles::All => &[],
        };
        for setting in SETTINGS.iter().chain(more) {
            command.args(["-c", setting]);
        }
        Ok(output_of(command.args(args), input)?)
    }
}

/// The configuration of a mirror that may lack files. No other setting in it ever counts.
const PARTIAL_CONFIG: &str =
    "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n[extensions]\n\tpartialClone = origin\n";

/// The configuration of a mirror with all files.
const WHOLE_CONFIG: &str = "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n";

/// The file of a repository with the commits whose parents it lacks.
const SHALLOW: &str = "shallow";

/// The number of packs from which a mirror is made anew when it is opened: each push adds a few, and each look into all of them
/// takes longer.
const MAX_PACKS: usize = 200;

/// The number of packs that can be open: far more than one push adds.
const SLOTS: Slots = Slots::Given(4096);

/// The files that a mirror has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MirrorFiles {
    /// Only the requested ones.
    Asked,
    /// All. Otherwise a `git` that cannot be kept from it would fetch missing ones by itself: from a shallow clone
    /// again and again, each time by one more process.
    All,
}

impl MirrorFiles {
    /// The arguments of `git fetch` for it.
    pub(super) const fn filter(self) -> &'static [&'static str] {
        match self {
            Self::Asked => &["--filter=blob:none"],
            Self::All => &[],
        }
    }

    const fn configuration(self) -> &'static str {
        match self {
            Self::Asked => PARTIAL_CONFIG,
            Self::All => WHOLE_CONFIG,
        }
    }
}

/// Opens a mirror, which is made if it is not there or cannot be used.
pub(super) fn open_or_create(dir: &Path) -> GitResult<(Repository, MirrorFiles)> {
    // Without a current directory, gix opens nothing.
    env::current_dir()?;
    let is_usable = packs(dir, b".pack") <= MAX_PACKS && !dir.join(SHALLOW).exists();
    // One that is damaged has nothing that the other repository has not.
    let repository = if dir.exists() && is_usable {
        open_configured(dir, MirrorFiles::Asked)
            .or_else(|_| recreate_in(dir, MirrorFiles::Asked))?
    } else {
        recreate_in(dir, MirrorFiles::Asked)?
    };
    if can_stop_lazy_fetch(dir)? {
        return Ok((repository, MirrorFiles::Asked));
    }
    let repository = match packs(dir, b".promisor") {
        0 => open_configured(dir, MirrorFiles::All)?,
        _ => recreate_in(dir, MirrorFiles::All)?,
    };
    Ok((repository, MirrorFiles::All))
}

/// Makes an empty mirror, and replaces an existing one.
pub(super) fn recreate_in(dir: &Path, files: MirrorFiles) -> GitResult<Repository> {
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    make(dir)?;
    open_configured(dir, files)
}

/// The number of files with packs of a mirror whose names have an end.
fn packs(dir: &Path, end: &[u8]) -> usize {
    let Ok(entries) = fs::read_dir(dir.join("objects/pack")) else { return 0 };
    let names = entries.flatten().map(|entry| entry.file_name());
    names.filter(|name| name.as_encoded_bytes().ends_with(end)).count()
}

/// Opens a mirror with the configuration of one.
fn open_configured(dir: &Path, files: MirrorFiles) -> GitResult<Repository> {
    configure(dir, files.configuration())?;
    Ok(gix::open_opts(dir, Options::default().object_store_slots(SLOTS))?)
}

/// Makes an empty mirror, which appears whole.
fn make(dir: &Path) -> GitResult<()> {
    let new = dir.with_extension("new");
    if new.exists() {
        fs::remove_dir_all(&new)?;
    }
    umask::as_user(|| gix::init_bare(&new))?;
    Ok(fs::rename(new, dir)?)
}

/// Gives a mirror its configuration, unless it has that: other settings could name programs.
fn configure(dir: &Path, configuration: &str) -> GitResult<()> {
    let file = dir.join("config");
    if fs::read(&file).is_ok_and(|text| text == configuration.as_bytes()) {
        return Ok(());
    }
    let new = dir.with_extension("config");
    umask::write(&new, configuration)?;
    Ok(fs::rename(new, file)?)
}

/// The beginning of a signature that was made with an ssh key.
const SSH_SIGNATURE: &[u8] = b"-----BEGIN SSH SIGNATURE-----";

/// Settings to check signatures: only signatures by ssh keys are checked. No other program is started for a commit that
/// claims another kind of signature.
const SIGNATURE_SETTINGS: [&str; 4] = [
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.x509.program=false",
    "log.showSignature=false",
];

/// The format in which `git log` prints a commit: four fields, each followed by a zero byte.
const FORMAT: &str = "--format=%H%x00%G?%x00%GS%x00%GF";

/// The messages of `git` if it cannot start the program that checks signatures. Then no commit was checked.
const NOT_STARTED: [&str; 2] = ["cannot exec", "cannot run"];

/// A commit, reduced to the parts that show who added what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorCommit {
    pub tree: ObjectId,
    /// Its parents, in order.
    pub parents: Vec<ObjectId>,
    /// The signature that it claims to have.
    pub signature: SignatureKind,
}

/// A kind of signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureKind {
    /// None.
    None,
    /// The signature of an ssh key.
    Ssh,
    /// Any other, such as the signature of an OpenPGP key.
    Other,
}

/// The result of checking the signature of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitSignature {
    /// The commit has no signature.
    None,
    /// It was not made by an ssh key.
    Other,
    /// It is wrong, or was made with a revoked key.
    Bad,
    /// It is right, but its key did not belong to an allowed signer when the commit was made.
    Unknown {
        /// The fingerprint of the key.
        key: String,
    },
    /// It was made by an allowed signer.
    Good {
        /// The name of the signer, as the file of allowed signers has it.
        principal: String,
        /// The fingerprint of the key.
        key: String,
    },
}

impl Mirror {
    /// Reads a commit.
    pub fn commit(&self, id: &ObjectId) -> Result<MirrorCommit, MirrorError> {
        self.read(|repository| {
            let commit = repository.find_commit(from(id)?)?;
            let commit = commit.decode()?;
            let mut names = ["gpgsig", "gpgsig-sha256"].into_iter();
            let signature = match names.find_map(|name| commit.extra_headers().find(name)) {
                None => SignatureKind::None,
                Some(text) if text.starts_with(SSH_SIGNATURE) => SignatureKind::Ssh,
                Some(_) => SignatureKind::Other,
            };
            let parents = commit.parents().map(object_id).collect::<GitResult<Vec<_>>>()?;
            Ok(MirrorCommit { tree: object_id(commit.tree())?, parents, signature })
        })
    }

    /// Checks the signatures of commits that claim to be signed with ssh keys, all in one process. `signers` is a file of allowed
    /// signers as ssh has it.
    pub fn signatures(
        &self,
        commits: &[ObjectId],
        signers: &Path,
    ) -> Result<HashMap<ObjectId, CommitSignature>, MirrorError> {
        if commits.is_empty() {
            return Ok(HashMap::new());
        }
        let lines: String = commits.iter().map(|id| format!("{}\n", id.full())).collect();
        let signers = format!("gpg.ssh.allowedSignersFile={}", signers.display());
        let mut args = vec!["-c", &signers];
        args.extend(SIGNATURE_SETTINGS.iter().flat_map(|setting| ["-c", setting]));
        args.extend(["log", "--no-walk=unsorted", "--stdin", "-z", FORMAT]);
        let output = self.git("log", GitReach::Local, &args, lines.as_bytes())?;
        let said = String::from_utf8_lossy(&output.stderr);
        if NOT_STARTED.iter().any(|it| said.contains(it)) {
            return Err(self.failed("log", &output, ""));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let fields: Vec<&str> = text.split('\0').collect();
        let signatures = fields.chunks(4).filter_map(|fields| {
            let &[commit, state, principal, key] = fields else { return None };
            Some((commit.parse().ok()?, found(state, principal, key)))
        });
        Ok(signatures.collect())
    }

    /// Writes a commit that is signed as the user has set it up for `git`, under the user's name. Returns its id.
    ///
    /// # Errors
    ///
    /// Fails if `git` does: it has no name or key of the user, or cannot sign.
    pub fn signed_commit(&self, commit: &NewCommit<'_>) -> Result<ObjectId, MirrorError> {
        let mut args = vec!["commit-tree", "-S", "-F", "-"];
        args.extend(commit.parents.iter().flat_map(|parent| ["-p", parent.full()]));
        args.push(commit.tree.full());
        let output =
            self.git("commit-tree -S", GitReach::Local, &args, commit.message.as_bytes())?;
        let id = String::from_utf8_lossy(&output.stdout);
        let id = id.trim().parse();
        id.map_err(|_| self.failed("commit-tree -S", &output, "it has written no commit"))
    }

    /// The value that a setting has for `git` in a mirror: the system's or the user's own; `None` if it is not set.
    pub fn users_path(&self, name: &str) -> Result<Option<String>, MirrorError> {
        let output = self.run(GitReach::Local, &["config", "--type=path", "--get", name], &[]);
        let output = output.map_err(|source| self.own(source))?;
        let value = String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned();
        Ok(output.status.success().then_some(value))
    }
}

/// Returns the meaning of the letter that `git` has for a signature.
fn found(state: &str, principal: &str, key: &str) -> CommitSignature {
    let (principal, key) = (principal.to_owned(), key.to_owned());
    match state {
        "G" if key.starts_with("SHA256:") && !principal.is_empty() => {
            CommitSignature::Good { principal, key }
        }
        "U" => CommitSignature::Unknown { key },
        _ => CommitSignature::Bad,
    }
}

/// The reason why another repository is not available.
#[derive(Debug, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum MirrorError {
    /// The mirror itself cannot be read or written.
    #[error("the mirror of {url} in {} cannot be used", dir.display())]
    #[hint("if it is damaged, remove it: it is made anew; rm -rf {}", dir.display())]
    Own {
        /// The directory of the mirror.
        dir: PathBuf,
        /// The other repository.
        url: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// `git` has failed.
    #[error("git {what} of {url} failed: {why}")]
    #[hint(git_hint(what, url, why))]
    Git {
        /// The command of `git`.
        what: &'static str,
        /// The other repository.
        url: String,
        /// The message of `git`.
        why: String,
    },
    /// `git lfs` is not installed, and the other repository has large results.
    #[error("large results of {url} are Git LFS objects, and there is no git lfs here")]
    #[hint(
        "install git-lfs, such as by apt-get install git-lfs; or leave large results there: --limit SIZE"
    )]
    NoLfs {
        /// The other repository.
        url: String,
    },
    /// The history of the other repository is cut off: what the commits at its border added is unknown.
    #[error(
        "{url} is a shallow clone: its history ends at the commit {border}, and what was before is not there"
    )]
    #[hint("git fetch --unshallow in it, or clone it again without --depth")]
    Shallow {
        /// The other repository.
        url: String,
        /// The first digits of the commits without their parents.
        border: String,
    },
    /// The other repository lacks objects, which it would get from a third one.
    #[error("{url} is a partial clone: the object {object} is not there")]
    #[hint("git fetch --refetch --no-filter in it, or clone it again without --filter")]
    Partial {
        /// The other repository.
        url: String,
        /// The id of one of the objects.
        object: String,
    },
}

/// What Git says of a repository that belongs to another user.
const UNTRUSTED: &str = "dubious ownership";

/// What to try if a command of `git` has failed.
fn git_hint(what: &str, url: &str, why: &str) -> Option<String> {
    if why.contains(UNTRUSTED) {
        return Some(hint_to_trust(url));
    }
    let hint = match what {
        "ls-remote" | "fetch" => {
            "make git ls-remote work with it, and git fsck where it is: git's credentials and proxies apply"
        }
        "push" => "check whether you may write there",
        "lfs" => "git remote set-url origin URL in a clone says where the repository is now",
        "lfs push" | "lfs fetch" => {
            "make git lfs work with it: a server with Git LFS, or a host with git-lfs-transfer, your rights and quotas there"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// The id of an object that another repository lacks as a partial clone, if `git` has failed for that. Versions say it in
/// different words: of a repository on this host, its configuration says whether it is one.
pub(super) fn left_out<'a>(said: &'a str, place: Option<&Path>) -> Option<&'a str> {
    let mut words = said.split(|c: char| !c.is_ascii_alphanumeric());
    let id = words.find(|word| is_object_id(word))?;
    let is_partial = match place {
        Some(place) => is_partial_clone(place),
        None => {
            let is_there =
                ["remote: ", "the remote end hung up"].iter().any(|it| said.contains(it));
            is_there && said.contains(" from promisor remote")
        }
    };
    is_partial.then_some(id)
}

/// Whether a repository lacks objects that it would get from another one.
fn is_partial_clone(place: &Path) -> bool {
    let Ok(repository) = gix::open_opts(place, Options::isolated()) else { return false };
    let config = repository.config_snapshot();
    let mut remotes = config.plumbing().sections_by_name("remote").into_iter().flatten();
    remotes.any(|remote| remote.contains_value_name("promisor"))
}
