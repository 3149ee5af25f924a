//! A directory of outputs under names that stay, for a Makefile, a paper or a colleague: each run updates it file by file.
//!
//! A list in the directory tells its files from others: nothing else is replaced or removed. The list is written before the files change, with the
//! old ones and the new ones, and after that with the new ones alone. So after an interruption each file is old or new, and is ours. The list has
//! no time, host or path, so it may be committed. It was modified when the outputs were last complete, and files when their bytes last changed.

mod list;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use ce_files::beneath::ForeignEntry;
use ce_files::cache::{Cache, FileStat, digests};
use ce_files::directory_writer::{DirectoryWriter, EntryState};
use ce_files::manifest::{EntryKind, Manifest, Scan, shown};
use ce_git::link_out_of_repository;
use ce_model::digest::Digest;
use ce_model::exit::Explain;
use ce_model::sweep::{SheetProblem, read_cells};
use ce_model::system_hints;
use ce_model::task::{OutputName, SameOutputName};
use ce_storage::{Storage, StorageError};

pub use self::list::ListFault;
use self::list::{ListedOutput, OutputList, have_same_contents, manifest};

/// The list of a directory's files.
const LIST: &str = ".ce-out.json";

/// A file that is not complete.
const ASIDE: &str = ".ce-out.part";

/// An output of a task that is to be in the directory.
#[derive(Debug)]
pub struct OutputToWrite {
    /// Its path in the directory, which leads through the directory of its point if it has one.
    pub path: String,
    /// Its name in the storage. Empty if it was not made.
    pub origin: String,
    pub contents: WrittenContents,
}

/// The contents of an output.
#[derive(Debug)]
pub enum WrittenContents {
    /// A file with this digest.
    File(PathBuf, Digest),
    /// A directory with these entries.
    Directory(PathBuf, Manifest),
    /// A text that was made of an output.
    Text(Vec<u8>),
    /// It was not made: what the directory has of it stays, and is out of date.
    Failed,
}

impl OutputToWrite {
    /// The files of an output that is in the storage: one, or two of a table. `dir` is empty or ends in a slash.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub fn of_stored(
        storage: &Storage,
        dir: &str,
        name: &OutputName,
        file: &str,
        digest: Digest,
    ) -> Result<Vec<Self>, OutputsError> {
        let path = storage.path(file);
        let contents = if name.is_table {
            let rows = fs::read(&path).map_err(|source| StorageError::Io {
                doing: "read",
                path: path.clone(),
                source,
            })?;
            let table = read_cells(&rows);
            let table =
                table.map_err(|problem| OutputsError::Table { path: path.clone(), problem })?;
            vec![
                WrittenContents::File(path, digest),
                WrittenContents::Text(table.csv().into_bytes()),
            ]
        } else if digest.is_directory() {
            let damaged = || OutputsError::Damaged(path.display().to_string());
            let manifest = storage.values().manifest(file, &digest)?.ok_or_else(damaged)?;
            vec![WrittenContents::Directory(path, manifest)]
        } else {
            vec![WrittenContents::File(path, digest)]
        };
        let files = name.files().into_iter().zip(contents);
        let outputs = files.map(|(name, contents)| Self {
            path: format!("{dir}{name}"),
            origin: without_version(file),
            contents,
        });
        Ok(outputs.collect())
    }

    /// The same as it comes from another file of the storage, whose contents are equal.
    pub fn coming_from(self, file: &str) -> Self {
        Self { origin: without_version(file), ..self }
    }
}

/// The changes of a directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OutputChanges {
    /// The files that are new or have new bytes.
    pub written: Vec<String>,
    /// The files that were no output any more.
    pub removed: Vec<String>,
    /// The number of files that were as they are.
    pub unchanged: usize,
    /// The outputs that were not made, and whose older files are still there.
    pub stale: Vec<String>,
    /// The files that are no output any more, and stay since somebody has changed them.
    pub left: Vec<String>,
}

/// The reason why a directory of outputs cannot be updated.
#[derive(Debug, thiserror::Error, Explain)]
pub enum OutputsError {
    /// Something else is in the place of outputs. Nothing was changed.
    #[error(
        "{dir} has files in the place of outputs that no run has written, or that have changed since: {}",
        shortened(paths)
    )]
    #[hint("move them away, or give another directory")]
    Foreign { dir: String, paths: Vec<String> },
    /// It would be among files that programs rely on.
    #[error("{0} is in the storage")]
    #[hint("give a directory beside it")]
    InStorage(String),
    #[error("{0} is in a directory of Git")]
    #[hint("give a directory beside it")]
    InGit(String),
    #[error("{0} is not a directory")]
    #[hint("give a directory, or one that does not exist yet")]
    NoDirectory(String),
    /// The list is not one.
    #[error("{path} is not a list of outputs that this version knows: {why}")]
    #[hint("remove it; files with the bytes of outputs stay, and others are named")]
    List { path: String, why: ListFault },
    /// A name of a file is not UTF-8, or two outputs need one path.
    #[error("{path} cannot be in a directory of outputs: {why}")]
    #[hint("let the computation give its files other names")]
    Name { path: String, why: String },
    /// A table of the storage is not one.
    #[error("{} is not a table: {problem}", .path.display())]
    #[hint("ce verify --repair, and run the task again")]
    #[exit(Storage)]
    Table { path: PathBuf, problem: SheetProblem },
    /// A file of the storage is not as recorded.
    #[error("{0} is not as recorded, so nothing is made of it")]
    #[hint("ce verify --repair, and run the task again")]
    #[exit(Storage)]
    Damaged(String),
    /// A file could not be made.
    #[error("cannot write {path}")]
    #[exit(Storage)]
    #[hint(system_hints::for_writing(Path::new(path), source))]
    Write { path: String, source: io::Error },
    /// The names of outputs are those of the workflow.
    #[error("the workflow of {job} is not here, which names its outputs: its commit is {commit}")]
    #[hint("run it in a clone of the task's repository")]
    NoWorkflow { job: String, commit: String },
    /// More than one result is given.
    #[error("a directory has the outputs of one job, and {0} results are given")]
    #[hint("give one of them, and another directory for each other")]
    Several(usize),
    /// No job has the result.
    #[error("{0} is not an output of a job")]
    #[hint("give an output of a task: their names in the storage begin with t_")]
    NoJob(String),
    /// Two outputs have one name.
    #[error(transparent)]
    #[hint(_0.hint())]
    Names(#[from] SameOutputName),
    #[error(transparent)]
    #[hint(_0.hint())]
    #[exit(_0.exit())]
    Storage(#[from] StorageError),
    /// The user has interrupted it.
    #[error("interrupted: outputs are as they were, or new")]
    #[exit(Storage)]
    #[hint("run the same command again")]
    Stopped,
}

/// The state of a path before the update.
enum Present {
    Nothing,
    /// A file or a link.
    Entry(EntryKind<Digest>),
    Directory,
    /// A device, or something behind a link.
    Other,
}

/// The directory while it is updated.
struct OutputDirectory<'a> {
    dir: &'a Path,
    writer: DirectoryWriter,
    known: OutputList,
    /// The state of each path that the list or an output has.
    present: BTreeMap<String, Present>,
    /// The files and links among these as they were when they were looked at.
    stats: BTreeMap<String, FileStat>,
    /// The path of the storage, if it is in the directory.
    storage: Option<String>,
}

/// The treatment of listed outputs that the caller does not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherOutputs {
    /// They are outputs no more: their files are removed.
    Remove,
    /// They were not looked at: they stay.
    Keep,
}

/// The path without symbolic links of something that need not exist.
fn real_path(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let existing = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match existing.and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?))) {
        Some(real) => real,
        None => path,
    }
}

/// Checks that a directory can be one of outputs, before anything is executed for it.
///
/// # Errors
///
/// Fails if it is in the storage or in a directory of Git, if something else is there, or if its list cannot be read.
pub fn check_output_directory(storage: &Path, dir: &Path) -> Result<(), OutputsError> {
    if !check_place(storage, dir)? {
        return Ok(());
    }
    let writer = DirectoryWriter::open(dir).map_err(write_error(dir))?;
    read_list(&writer, dir).map(drop)
}

/// Checks the place of a directory of outputs. Returns whether the directory exists.
fn check_place(storage: &Path, dir: &Path) -> Result<bool, OutputsError> {
    let (real, shown) = (real_path(dir), || dir.display().to_string());
    if real.starts_with(real_path(storage)) {
        return Err(OutputsError::InStorage(shown()));
    }
    if real.components().any(|part| part == Component::ParentDir) {
        return Err(OutputsError::NoDirectory(shown()));
    }
    if let Some(link) = link_out_of_repository(dir) {
        return Err(write_error(&link)(ForeignEntry::Link.into()));
    }
    if real.components().any(|part| part.as_os_str() == ".git") {
        return Err(OutputsError::InGit(shown()));
    }
    match fs::metadata(dir) {
        Ok(metadata) if metadata.is_dir() => Ok(true),
        Err(error)
            if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(dir).is_err() =>
        {
            Ok(false)
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(write_error(dir)(error)),
        Ok(_) | Err(_) => Err(OutputsError::NoDirectory(shown())),
    }
}

/// Makes a directory have these outputs.
///
/// # Errors
///
/// Fails, and changes nothing, if a file that no run has written is in the place of an output. Fails likewise if something cannot be read or
/// written, or `stop` was set: then each file is as it was, or new.
pub fn update_outputs(
    storage: &Path,
    dir: &Path,
    outputs: Vec<OutputToWrite>,
    others: OtherOutputs,
    stop: &AtomicBool,
) -> Result<OutputChanges, OutputsError> {
    check_place(storage, dir)?;
    ce_files::umask::create_dir_all(dir).map_err(write_error(dir))?;
    let writer = DirectoryWriter::open(dir).map_err(write_error(dir))?;
    let _lock = writer.lock().map_err(write_error(dir))?;
    let (known, is_listed) = read_list(&writer, dir)?;
    let listed = known.clone();
    let modified = dir.join(LIST).metadata().and_then(|it| it.modified());
    // A target of make is out of date as long as an output is.
    let old = modified.ok().filter(|_| is_listed);
    let incomplete = old.unwrap_or(SystemTime::UNIX_EPOCH + Duration::from_secs(1));
    let is_complete = others == OtherOutputs::Remove
        && !outputs.iter().any(|it| matches!(it.contents, WrittenContents::Failed));
    let storage = real_path(storage).strip_prefix(real_path(dir)).ok().map(Path::to_owned);
    let storage = storage.map(|it| it.to_string_lossy().into_owned());
    let (present, stats) = Default::default();
    let mut kept = OutputDirectory { dir, writer, known, present, stats, storage };
    kept.remove_aside()?;
    kept.settle()?;
    let (list, mut sources) = kept.wanted(outputs, others)?;
    kept.look(list.files.keys().cloned().collect())?;
    let mut changes = kept.changes(&list, &sources)?;
    changes.stale =
        list.outputs.iter().filter(|(_, it)| it.stale).map(|(path, _)| path.clone()).collect();
    let is_changed = !changes.written.is_empty() || !changes.removed.is_empty();
    if is_changed {
        let before = kept.known.files.clone();
        kept.write_list(&OutputList { before, ..list.clone() }, incomplete)?;
        kept.remove(&changes.removed)?;
        for path in &changes.written {
            if stop.load(Ordering::Relaxed) {
                return Err(OutputsError::Stopped);
            }
            kept.write(path, &list.files[path], sources.remove(path))?;
        }
        // What was removed may have been all that was in one.
        let empty = list.files.iter().filter(|(_, kind)| **kind == EntryKind::Empty);
        empty.map(|(path, _)| path).try_for_each(|path| {
            kept.writer.make_dirs(path).map_err(write_error(&dir.join(path)))
        })?;
    }
    let time = if is_complete { SystemTime::now() } else { incomplete };
    let is_as_listed = is_listed && !is_changed && list == listed;
    if !is_as_listed || kept.writer.set_modified(LIST, time).is_err() {
        kept.write_list(&list, time)?;
    }
    Ok(changes)
}

/// Reads the list of a directory. Says whether there is one.
fn read_list(writer: &DirectoryWriter, dir: &Path) -> Result<(OutputList, bool), OutputsError> {
    let mut text = Vec::new();
    match writer.file(LIST).and_then(|mut file| file.read_to_end(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok((OutputList::default(), false));
        }
        Err(error) => return Err(write_error(&dir.join(LIST))(error)),
    }
    let path = dir.join(LIST).display().to_string();
    OutputList::parse(&text)
        .map(|list| (list, true))
        .map_err(|why| OutputsError::List { path, why })
}

/// The name of an output in the storage, without the commit of its computation: another commit may make the same value. The name of a table depends on the
/// commits of all of its rows.
fn without_version(file: &str) -> String {
    match file.split('/').collect::<Vec<_>>()[..] {
        ["tables", ..] => "tables".to_owned(),
        [computation, _version, ref rest @ ..] if computation.starts_with("c_") => {
            format!("{computation}/{}", rest.join("/"))
        }
        _ => file.to_owned(),
    }
}

/// The digest of the output that a file in a directory of outputs is, or is a part of; of a sheet, that of the rows that it was made of. `None` of any other
/// file, or if somebody has changed it.
pub fn digest_of_output(file: &Path) -> Option<Digest> {
    let file = std::path::absolute(file).ok()?;
    let mut path = file.file_name()?.to_str()?.to_owned();
    let mut dir = file.parent()?;
    loop {
        if let Ok(writer) = DirectoryWriter::open(dir)
            && let Ok((list, true)) = read_list(&writer, dir)
        {
            let (output, listed) = list.outputs.iter().find(|(it, _)| is_within(&path, it))?;
            if list.value(&path)? != writer.digest(&path)? {
                return None;
            }
            let rows = output.strip_suffix(".csv").map(|table| format!("{table}.ndjson"));
            let rows =
                rows.filter(|it| list.outputs.get(it).is_some_and(|it| it.from == listed.from));
            return list.value(&rows.unwrap_or_else(|| output.clone()));
        }
        path = format!("{}/{path}", dir.file_name()?.to_str()?);
        dir = dir.parent()?;
    }
}

/// Whether a path is that of an output, or within it.
fn is_within(path: &str, output: &str) -> bool {
    path.strip_prefix(output).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl OutputDirectory<'_> {
    /// Returns the list that the directory is to have, and where the contents of its files are.
    fn wanted(
        &self,
        outputs: Vec<OutputToWrite>,
        others: OtherOutputs,
    ) -> Result<(OutputList, BTreeMap<String, ContentSource>), OutputsError> {
        let (mut list, mut sources) = (OutputList::default(), BTreeMap::new());
        let name_error = |path: &str, why: &str| OutputsError::Name {
            path: path.to_owned(),
            why: why.to_owned(),
        };
        for OutputToWrite { path, origin, contents } in outputs {
            let mut add = |path: String, kind, source| {
                list.files.insert(path.clone(), kind);
                sources.insert(path, source);
            };
            let mut listed = ListedOutput { from: origin, stale: false };
            match contents {
                WrittenContents::File(from, contents) => {
                    let executable =
                        fs::metadata(&from).is_ok_and(|it| it.permissions().mode() & 0o100 != 0);
                    add(
                        path.clone(),
                        EntryKind::File { contents, executable },
                        ContentSource::File(from),
                    );
                }
                WrittenContents::Text(text) => {
                    let contents = Digest::hash_bytes(&text);
                    add(
                        path.clone(),
                        EntryKind::File { contents, executable: false },
                        ContentSource::Text(text),
                    );
                }
                WrittenContents::Directory(from, manifest) => {
                    if manifest.entries().is_empty() {
                        add(path.clone(), EntryKind::Empty, ContentSource::None);
                    }
                    for entry in manifest.entries() {
                        let name = str::from_utf8(&entry.path).map_err(|_| {
                            name_error(
                                &format!("{path}/{}", shown(&entry.path)),
                                "its name is not UTF-8",
                            )
                        })?;
                        let source = ContentSource::File(from.join(name));
                        add(format!("{path}/{name}"), entry.kind.clone(), source);
                    }
                }
                WrittenContents::Failed => {
                    let Some(known) = self.known.outputs.get(&path) else { continue };
                    listed = ListedOutput { stale: true, ..known.clone() };
                    list.files.extend(self.known.files_of(&path));
                }
            }
            list.outputs.insert(path, listed);
        }
        if others == OtherOutputs::Keep {
            for (path, output) in &self.known.outputs {
                if !list.outputs.contains_key(path) {
                    list.outputs.insert(path.clone(), output.clone());
                    list.files.extend(self.known.files_of(path));
                }
            }
        }
        manifest(&list.files)
            .map_err(|why| name_error(&self.dir.display().to_string(), &why.to_string()))?;
        Ok((list, sources))
    }

    /// Removes what a run has left that was interrupted.
    fn remove_aside(&self) -> Result<(), OutputsError> {
        match self.writer.kind(ASIDE).map_err(write_error(&self.dir.join(ASIDE)))? {
            None => Ok(()),
            Some(kind) if kind.is_file() || kind.is_symlink() => {
                self.writer.remove_file(ASIDE).map_err(write_error(&self.dir.join(ASIDE)))
            }
            Some(_) => Err(self.foreign(vec![ASIDE.to_owned()])),
        }
    }

    /// Looks at all files of the list, and lets it have what is there of them. After an interruption, that is old or new.
    fn settle(&mut self) -> Result<(), OutputsError> {
        let paths = self.known.files.keys().chain(self.known.before.keys());
        self.look(paths.cloned().collect())?;
        let ours = self.present.iter().filter_map(|(path, found)| match found {
            Present::Entry(found) if self.known.is_ours(path, found) => {
                Some((path.clone(), found.clone()))
            }
            Present::Directory if self.known.is_ours(path, &EntryKind::Empty) => {
                Some((path.clone(), EntryKind::Empty))
            }
            _ => None,
        });
        self.known.files = ours.collect();
        self.known.before.clear();
        Ok(())
    }

    /// Looks at paths, each once. Digests of files that have not changed since they were last looked at are remembered.
    fn look(&mut self, paths: BTreeSet<String>) -> Result<(), OutputsError> {
        let (taken, mut files) = (SystemTime::now(), Vec::new());
        for path in paths {
            if self.present.contains_key(&path) {
                continue;
            }
            let found = match self.writer.look(&path) {
                Ok(Some(entry)) if entry.kind.is_file() => {
                    files.push((path.clone(), entry));
                    continue;
                }
                Ok(Some(entry)) if entry.kind.is_symlink() => {
                    self.stats.insert(path.clone(), entry.stat);
                    match self.writer.target(&path) {
                        Ok(target) => {
                            Present::Entry(EntryKind::Link { target: target.into_vec().into() })
                        }
                        Err(_) => Present::Other,
                    }
                }
                Ok(Some(entry)) if entry.kind.is_dir() => Present::Directory,
                Ok(Some(_)) => Present::Other,
                Ok(None) => Present::Nothing,
                // Something other than a directory is on the way.
                Err(error)
                    if error.kind() == io::ErrorKind::NotADirectory
                        || ForeignEntry::from_error(&error).is_some() =>
                {
                    Present::Nothing
                }
                Err(error) => return Err(write_error(&self.dir.join(path))(error)),
            };
            self.present.insert(path, found);
        }
        let digests = self.digests(&files, taken);
        for ((path, EntryState { is_executable: executable, stat, .. }), digest) in
            files.into_iter().zip(digests)
        {
            let entry = digest.map(|contents| EntryKind::File { contents, executable });
            self.stats.insert(path.clone(), stat);
            self.present.insert(path, entry.map_or(Present::Other, Present::Entry));
        }
        Ok(())
    }

    /// The digests of files that were looked at after a time; `None` of one that cannot be read.
    fn digests(&self, files: &[(String, EntryState)], taken: SystemTime) -> Vec<Option<Digest>> {
        let top = self.dir.canonicalize().unwrap_or_else(|_| self.dir.to_owned());
        let paths: Vec<PathBuf> = files.iter().map(|(path, _)| top.join(path)).collect();
        let cache = Cache::of_user();
        let known = cache.as_ref().map(|cache| digests::look_up_together(cache, &paths));
        let known = known.unwrap_or_default();
        let digest = |(path, entry): &(String, EntryState)| {
            known.get(&entry.stat).copied().or_else(|| self.writer.digest(path))
        };
        let found: Vec<Option<Digest>> = files.iter().map(digest).collect();
        let lasting = files.iter().map(|(_, entry)| entry.stat).zip(&found);
        let lasting = lasting.filter(|(stat, _)| !stat.is_racy(taken));
        let lasting: Vec<_> = lasting.filter_map(|(stat, it)| Some((stat, (*it)?))).collect();
        if let Some(cache) = cache
            && lasting.iter().any(|(stat, _)| !known.contains_key(stat))
        {
            digests::insert_together(&cache, &paths, &lasting);
        }
        found
    }

    /// Returns what has to change. Files without a source stay as they are.
    ///
    /// # Errors
    ///
    /// Fails if something would be replaced that no run has written.
    fn changes(
        &self,
        list: &OutputList,
        sources: &BTreeMap<String, ContentSource>,
    ) -> Result<OutputChanges, OutputsError> {
        let (mut changes, mut foreign) = (OutputChanges::default(), Vec::new());
        for (path, found) in &self.present {
            let wanted = list.files.get(path);
            let is_ours = matches!(found, Present::Entry(found) if self.known.is_ours(path, found));
            match (wanted, found) {
                (Some(_), _) if !sources.contains_key(path) => {}
                (Some(_), _) if self.is_of_the_storage(path) => foreign.push(path.clone()),
                (Some(wanted), Present::Entry(found)) if is_same(wanted, found) => {
                    changes.unchanged += 1;
                }
                (Some(EntryKind::Empty), Present::Directory) => changes.unchanged += 1,
                (Some(_), Present::Nothing) => match self.obstacle(path) {
                    Some(obstacle) => foreign.push(obstacle),
                    None => changes.written.push(path.clone()),
                },
                (Some(_), Present::Entry(_)) if is_ours => changes.written.push(path.clone()),
                (Some(_), Present::Directory) if self.will_be_gone(path) => {
                    changes.written.push(path.clone());
                }
                (Some(_), _) => foreign.push(path.clone()),
                (None, Present::Entry(_)) if is_ours => changes.removed.push(path.clone()),
                (None, Present::Directory) if self.known.files.contains_key(path) => {
                    changes.removed.push(path.clone());
                }
                (None, Present::Nothing) => {}
                (None, _) => changes.left.push(path.clone()),
            }
        }
        foreign.sort();
        foreign.dedup();
        match foreign.is_empty() {
            true => Ok(changes),
            false => Err(self.foreign(foreign)),
        }
    }

    /// Whether a path is in the storage, or above it.
    fn is_of_the_storage(&self, path: &str) -> bool {
        self.storage
            .as_ref()
            .is_some_and(|storage| is_within(path, storage) || is_within(storage, path))
    }

    /// Something other than a directory that a path leads through, unless it is a file of ours, which goes.
    fn obstacle(&self, path: &str) -> Option<String> {
        let ends = path.match_indices('/').map(|(at, _)| &path[..at]);
        let mut obstacles = ends.filter(|above| match self.writer.kind(above) {
            Ok(None) => false,
            Ok(Some(kind)) if kind.is_dir() => false,
            Ok(Some(_)) => !matches!(
                self.present.get(*above), Some(Present::Entry(found)) if self.known.is_ours(above, found)
            ),
            Err(error) => error.kind() != io::ErrorKind::NotADirectory,
        });
        obstacles.next().map(str::to_owned)
    }

    /// Whether all that is in a directory is ours, and goes.
    fn will_be_gone(&self, path: &str) -> bool {
        let Ok(scan) = Scan::at(&self.dir.join(path), &AtomicBool::new(false)) else {
            return false;
        };
        let is_known = self.known.files_of(path).next().is_some();
        is_known
            && scan.entries().iter().all(|entry| {
                let entry = OsStr::from_bytes(&entry.path).to_string_lossy();
                self.known.files.contains_key(&format!("{path}/{entry}"))
            })
    }

    /// Removes files, and directories that become empty.
    fn remove(&self, paths: &[String]) -> Result<(), OutputsError> {
        for path in paths {
            let is_directory = matches!(self.present.get(path), Some(Present::Directory));
            if !is_directory && self.is_as_seen(path) {
                self.writer.remove_file(path).map_err(write_error(&self.dir.join(path)))?;
            }
            let above = path.rsplit_once('/').map(|(dir, _)| dir);
            let dir = if is_directory { Some(path.as_str()) } else { above };
            dir.into_iter().for_each(|dir| self.writer.remove_empty_dirs(dir));
        }
        Ok(())
    }

    /// Writes a file aside, and renames it.
    fn write(
        &self,
        path: &str,
        kind: &EntryKind<Digest>,
        source: Option<ContentSource>,
    ) -> Result<(), OutputsError> {
        let error = |error| write_error(&self.dir.join(path))(error);
        // A directory and something else do not replace each other. All that was in this one is gone.
        match self.present.get(path) {
            Some(Present::Directory) => self.writer.remove_empty_dirs(path),
            Some(Present::Entry(_)) if *kind == EntryKind::Empty => {
                if !self.is_as_seen(path) {
                    return Err(self.foreign(vec![path.to_owned()]));
                }
                self.writer.remove_file(path).map_err(error)?;
            }
            _ => {}
        }
        let made = match (kind, source) {
            (EntryKind::Empty, _) => return self.writer.make_dirs(path).map_err(error),
            (EntryKind::Link { target }, _) => {
                self.writer.link(Path::new(OsStr::from_bytes(target)), ASIDE)
            }
            (EntryKind::File { .. }, Some(ContentSource::Text(text))) => {
                self.writer.write(ASIDE, text).and_then(|()| self.writer.sync(ASIDE))
            }
            (EntryKind::File { contents, .. }, Some(ContentSource::File(from))) => {
                let copied = self.writer.copy(&from, ASIDE).and_then(|()| self.writer.sync(ASIDE));
                if !from.exists() || copied.is_ok() && self.writer.digest(ASIDE) != Some(*contents)
                {
                    drop(self.writer.remove_file(ASIDE));
                    return Err(OutputsError::Damaged(from.display().to_string()));
                }
                copied
            }
            (EntryKind::File { .. }, Some(ContentSource::None) | None) => return Ok(()),
        };
        if let Err(failed) = made {
            // Somebody else has made one of that name.
            if failed.kind() != io::ErrorKind::AlreadyExists {
                drop(self.writer.remove_file(ASIDE));
            }
            return Err(error(failed));
        }
        let is_new = !matches!(self.present.get(path), Some(Present::Entry(_)));
        let renamed = match is_new {
            true => self.writer.rename_to_free(ASIDE, path),
            false if self.is_as_seen(path) => self.writer.rename(ASIDE, path),
            false => Err(io::ErrorKind::AlreadyExists.into()),
        };
        renamed.map_err(|failed| {
            drop(self.writer.remove_file(ASIDE));
            match failed.kind() {
                // Somebody has written there meanwhile.
                io::ErrorKind::AlreadyExists => self.foreign(vec![path.to_owned()]),
                _ => error(failed),
            }
        })
    }

    /// Whether a file or link has not changed since it was looked at.
    fn is_as_seen(&self, path: &str) -> bool {
        let now = self.writer.look(path).ok().flatten().map(|entry| entry.stat);
        now.is_some() && now.as_ref() == self.stats.get(path)
    }

    fn foreign(&self, paths: Vec<String>) -> OutputsError {
        OutputsError::Foreign { dir: self.dir.display().to_string(), paths }
    }

    /// Writes the list, as it was last modified at a time.
    fn write_list(&self, list: &OutputList, time: SystemTime) -> Result<(), OutputsError> {
        let path = self.dir.join(LIST);
        let shown = || path.display().to_string();
        let text = list.text().map_err(|why| OutputsError::List { path: shown(), why })?;
        self.writer.write(ASIDE, text).map_err(write_error(&path))?;
        let written = self.writer.set_modified(ASIDE, time).and_then(|()| self.writer.sync(ASIDE));
        written.and_then(|()| self.writer.rename(ASIDE, LIST)).map_err(|error| {
            drop(self.writer.remove_file(ASIDE));
            write_error(&path)(error)
        })
    }
}

/// Whether an entry needs no change. Some file systems say that all files may be executed.
fn is_same(wanted: &EntryKind<Digest>, found: &EntryKind<Digest>) -> bool {
    let is_executable = |kind| matches!(kind, &EntryKind::File { executable: true, .. });
    have_same_contents(wanted, found) && (is_executable(found) || !is_executable(wanted))
}

/// The place of the contents of a file.
enum ContentSource {
    File(PathBuf),
    Text(Vec<u8>),
    /// It has none.
    None,
}

/// The number of paths that a message names.
const NAMED: usize = 10;

fn shortened(paths: &[String]) -> String {
    let named = paths[..paths.len().min(NAMED)].join(", ");
    match paths.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named}, and {more} more"),
    }
}

fn write_error(path: &Path) -> impl FnOnce(io::Error) -> OutputsError {
    move |source| OutputsError::Write { path: path.display().to_string(), source }
}
