//! A bare repository of our own, through which objects go to another one and come from there.
//!
//! Objects are read and written by gix. The user's own `git` moves them, so that its credentials, proxies and ssh settings
//! hold. Files are not fetched unless they are asked for: a mirror of a large repository is small.

mod error;
mod note;
mod process;
mod signature;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use gix::objs::tree::EntryKind;
use gix::odb::store::init::Slots;
use gix::open::Options;

pub use self::error::MirrorError;
pub use self::signature::{CommitSignature, MirrorCommit, SignatureKind};
use super::pack::{BlobHash, MirrorEntry, MirrorKind, PackWriter};
use super::url::shown;
use super::{Config, ConfigError, GitResult, from, object_id};
use crate::digest::ObjectId;

/// The remote of a mirror.
const REMOTE: &str = "origin";

/// The configuration of a mirror, which is a bare repository that may lack objects. No other setting in it ever counts.
const CONFIGURATION: &str =
    "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n[extensions]\n\tpartialClone = origin\n";

/// The number of packs from which a mirror is made anew when it is opened: each push adds a few, and each look into all of them
/// takes longer.
const MAX_PACKS: usize = 200;

/// The number of packs that can be open: far more than one push adds.
const SLOTS: Slots = Slots::Given(4096);

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
    ///
    /// # Errors
    ///
    /// Fails if the mirror cannot be made or read.
    pub fn open(dir: &Path, url: &str) -> Result<Self, MirrorError> {
        let opened = || -> GitResult<_> {
            fs::create_dir_all(dir.parent().unwrap_or(dir))?;
            let lock = File::create(dir.with_extension("lock"))?;
            lock.lock()?;
            // One that is damaged has nothing that the other repository has not.
            let repository = match dir.exists() && packs(dir) <= MAX_PACKS {
                true => configured(dir).or_else(|_| renewed(dir))?,
                false => renewed(dir)?,
            };
            Ok((repository, lock))
        };
        let (repository, lock) = opened().map_err(|source| {
            let (dir, url) = (dir.to_owned(), shown(url));
            MirrorError::Own { dir, url, source }
        })?;
        let (dir, secret, url) = (dir.to_owned(), url.to_owned(), shown(url));
        Ok(Self { dir, secret, url, repository, _lock: lock })
    }

    /// Forgets everything that was fetched or pushed: what is here then, the other repository has.
    ///
    /// # Errors
    ///
    /// Fails if the mirror cannot be made anew.
    pub fn renew(&mut self) -> Result<(), MirrorError> {
        self.repository = renewed(&self.dir).map_err(|source| self.own(source))?;
        Ok(())
    }

    /// Git's configuration for a directory; in one that is in no repository, that of the user.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub fn config(&self, dir: &Path) -> Result<Config, ConfigError> {
        Config::around(dir, &self.dir)
    }

    /// The URL of the other repository, without a password.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Lists references of the other repository: those that match a pattern, and `HEAD` if it points to one.
    ///
    /// # Errors
    ///
    /// Fails if `git` does.
    pub fn list(&self, patterns: &[&str]) -> Result<Vec<RemoteRef>, MirrorError> {
        let args = [&["ls-remote", "--quiet", REMOTE], patterns].concat();
        let output = self.git("ls-remote", &args, &[])?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = |line: &str| {
            let (id, name) = line.split_once('\t')?;
            Some(RemoteRef { id: id.parse().ok()?, name: name.to_owned() })
        };
        Ok(text.lines().filter_map(line).collect())
    }

    /// Fetches references with their commits and directories, and no files. They are forgotten when the mirror is opened next.
    ///
    /// # Errors
    ///
    /// Fails if `git` does.
    pub fn fetch(&self, refs: &[RemoteRef]) -> Result<(), MirrorError> {
        let missing = refs.iter().filter(|it| !self.has(&it.id));
        let names: Vec<&str> = missing.map(|it| it.name.as_str()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let fixed =
            ["fetch", "--quiet", "--no-tags", "--filter=blob:none", "--no-write-fetch-head"];
        self.git("fetch", &[&fixed[..], &[REMOTE], &names].concat(), &[]).map(drop)
    }

    /// Fetches those files that are not here yet, many at once.
    ///
    /// # Errors
    ///
    /// Fails if `git` does, or the other repository does not have one.
    pub fn fetch_files(&self, ids: &[ObjectId]) -> Result<(), MirrorError> {
        let fixed = ["-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags"];
        let rest = ["--no-write-fetch-head", "--filter=blob:none", "--stdin", REMOTE];
        for ids in self.missing(ids)?.chunks(FETCHED) {
            let lines: String = ids.iter().map(|id| format!("{id}\n")).collect();
            self.git("fetch", &[&fixed[..], &rest].concat(), lines.as_bytes())?;
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
        let output = self.run(&args, &[]).map_err(|source| self.own(source))?;
        if output.status.success() {
            return Ok(true);
        }
        let report = String::from_utf8_lossy(&output.stdout);
        let rejected: Vec<&str> = report.lines().filter(|line| line.starts_with("!\t")).collect();
        let has_moved = |line: &&str| MOVED.iter().any(|it| line.contains(it));
        match !rejected.is_empty() && rejected.iter().all(has_moved) {
            true => Ok(false),
            false => {
                let whys: Vec<&str> =
                    rejected.iter().filter_map(|line| line.rsplit('\t').next()).collect();
                Err(self.failed("push", &output, &whys.join("; ")))
            }
        }
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
    ///
    /// # Errors
    ///
    /// Fails if the commit is not here.
    pub fn tree_of(&self, commit: &ObjectId) -> Result<ObjectId, MirrorError> {
        let read = || -> GitResult<_> {
            let commit = self.repository.find_commit(from(commit)?)?;
            object_id(commit.tree_id()?.detach())
        };
        read().map_err(|source| self.own(source))
    }

    /// The entries of a tree, as Git sorts them. One whose name is not UTF-8 is neither a plain file nor a directory.
    ///
    /// # Errors
    ///
    /// Fails if the tree is not here.
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
    ///
    /// # Errors
    ///
    /// Fails if it is not here.
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

/// The number of packs of a mirror.
fn packs(dir: &Path) -> usize {
    let Ok(entries) = fs::read_dir(dir.join("objects/pack")) else { return 0 };
    let names = entries.flatten().map(|entry| entry.file_name());
    names.filter(|name| name.as_encoded_bytes().ends_with(b".pack")).count()
}

/// Opens a mirror with the configuration of one.
fn configured(dir: &Path) -> GitResult<gix::Repository> {
    configure(dir)?;
    Ok(gix::open_opts(dir, Options::default().object_store_slots(SLOTS))?)
}

/// Makes an empty mirror, in place of one that is there.
fn renewed(dir: &Path) -> GitResult<gix::Repository> {
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    make(dir)?;
    configured(dir)
}

/// Makes an empty mirror, which appears whole.
fn make(dir: &Path) -> GitResult<()> {
    let new = dir.with_extension("new");
    if new.exists() {
        fs::remove_dir_all(&new)?;
    }
    gix::init_bare(&new)?;
    Ok(fs::rename(new, dir)?)
}

/// Gives a mirror its configuration, if it has another one: settings there could name programs.
fn configure(dir: &Path) -> GitResult<()> {
    let file = dir.join("config");
    if fs::read(&file).is_ok_and(|text| text == CONFIGURATION.as_bytes()) {
        return Ok(());
    }
    let new = dir.with_extension("config");
    fs::write(&new, CONFIGURATION)?;
    Ok(fs::rename(new, file)?)
}
