//! Checking and writing a package: aside first, and renamed when it is complete.
//!
//! A package may be one file, a ZIP archive. The same package is the same bytes: no entry has a time of its own.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::mem;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Definitions, FileMaker, OutputNames, PackagedFile, PackagedResult, Packer};
use crate::{FirstPublished, History, Subject};
use ce_files::beneath::ForeignEntry;
use ce_files::directory_writer::DirectoryWriter;
use ce_files::manifest::Scan;
use ce_files::umask;
use ce_git::{Config, ConfigError, Snapshot, link_out_of_repository};
use ce_model::digest::Digest;
use ce_model::exit::Explain;
use ce_model::system_hints;
use ce_storage::records::{CallRecord, Defect};
use ce_storage::{Entry, ExpectedFile, Maintenance, Record, Storage, StorageError};
use jiff::Timestamp;
use zip::write::SimpleFileOptions;
use zip::{DateTime, ZipWriter};

/// The form in which a package has the files of the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageKind {
    /// As copies, which the user may change. They share their room where the file system can do that.
    Copies,
    /// As symbolic links.
    Links,
    /// As entries of a ZIP archive, which is one file.
    Archive,
}

/// The files of a package, which are as recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Package {
    pub results: Vec<PackagedResult>,
    pub files: Vec<PackagedFile>,
}

/// A value that is wholly or partly in a package.
#[derive(Debug)]
pub struct PackagedValue<'p> {
    /// It, as it is recorded.
    pub value: ExpectedFile,
    /// The part of a directory that is in the package; `None` if all of it is.
    pub member: Option<&'p str>,
}

impl Package {
    /// The values of its files, each once.
    pub fn values<'p>(&'p self, history: &'p History) -> impl Iterator<Item = PackagedValue<'p>> {
        let mut seen = HashSet::new();
        let files = self.files.iter().filter(move |file| seen.insert(&file.file));
        files.filter_map(|file| {
            let value = history.subject(&file.holder)?.promise();
            let member = file.file.strip_prefix(&file.holder)?.strip_prefix('/');
            Some(PackagedValue { value, member })
        })
    }

    /// Reads all files of a package to their ends, and compares them with their records.
    pub fn check(
        packer: Packer<'_>,
        storage: &Storage,
        history: &History,
        stop: &AtomicBool,
    ) -> Result<Self, PackageError> {
        let (results, files, mut bad) = packer.found();
        let mut seen = HashSet::new();
        for file in files.iter().filter(|file| seen.insert(&file.holder)) {
            let Some(subject) = history.subject(&file.holder) else { continue };
            let defect = Maintenance::new(storage).check_unless(stop, &subject.promise());
            if let Some(defect) = defect.map_err(|_| PackageError::Stopped)? {
                bad.push(BadFile::new(file.holder.clone(), defect.to_string()));
            }
        }
        if bad.is_empty() { Ok(Self { results, files }) } else { Err(PackageError::Bad(bad)) }
    }

    /// Makes the package at a path where nothing is, or an empty directory; with some texts beside its files.
    ///
    /// # Errors
    ///
    /// Fails if something else is there, a file cannot be written, or `stop` was set. Then nothing was made.
    pub fn write(
        &self,
        storage: &Storage,
        place: &Path,
        kind: PackageKind,
        texts: &[(&str, String)],
        stop: &AtomicBool,
    ) -> Result<(), PackageError> {
        let mut aside = Aside::new(place, kind)?;
        let top = storage.path("").canonicalize().map_err(write_error(place))?;
        for file in &self.files {
            if stop.load(Ordering::Relaxed) {
                return Err(PackageError::Stopped);
            }
            let from = top.join(&file.file);
            let made = aside.add(&from, &file.path, stop);
            let copy = aside.path.join(&file.path);
            let part = match (&made, kind) {
                (Ok(()), PackageKind::Copies) => Some(&copy),
                (Ok(()), PackageKind::Links) => None,
                (Ok(()), PackageKind::Archive) | (Err(_), _) => Some(&from),
            };
            let is_whole = part.is_none_or(|part| is_whole(part, &file.contents, stop));
            if stop.load(Ordering::Relaxed) {
                return Err(PackageError::Stopped);
            }
            // A collection may have removed it since it was checked, or be doing that.
            if !is_whole || !from.exists() {
                let gone = BadFile::new(file.holder.clone(), Defect::Missing.to_string());
                return Err(PackageError::Bad(vec![gone]));
            }
            made.map_err(write_error(&written(place, kind, &file.path)))?;
        }
        for (name, text) in texts {
            aside.text(name, text).map_err(write_error(&written(place, kind, name)))?;
        }
        aside.publish(place)
    }
}

/// Whether a package can be made at a path.
///
/// # Errors
///
/// Fails if something other than an empty directory is there, anything in the place of an archive, or it is in the storage.
pub fn vacant(storage: &Storage, dir: &Path, kind: PackageKind) -> Result<(), PackageError> {
    let shown = dir.display().to_string();
    if dir.file_name().is_none() || dir == Path::new("-") {
        return Err(PackageError::NoName(shown));
    }
    if let Some(link) = link_out_of_repository(dir) {
        return Err(write_error(&link)(ForeignEntry::Link.into()));
    }
    let is_vacant = match dir.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(write_error(dir)(error)),
        Ok(_) if kind == PackageKind::Archive => return Err(PackageError::Exists(shown)),
        Ok(metadata) => {
            metadata.is_dir() && fs::read_dir(dir).is_ok_and(|mut it| it.next().is_none())
        }
    };
    if !is_vacant {
        return Err(PackageError::Occupied(shown));
    }
    let parent = parent(dir).canonicalize().map_err(write_error(dir))?;
    let top = storage.path("").canonicalize();
    if top.is_ok_and(|top| parent.starts_with(top)) {
        Err(PackageError::Inside(shown))
    } else {
        Ok(())
    }
}

/// A directory or archive beside the place of the package, removed unless it becomes the package.
struct Aside {
    path: PathBuf,
    kind: PackageKind,
    writer: PackageWriter,
}

/// The writer of the files of a package.
enum PackageWriter {
    Directory(DirectoryWriter),
    Archive(Box<ArchiveWriter>),
    /// The package is complete.
    Closed,
}

impl Aside {
    fn new(place: &Path, kind: PackageKind) -> Result<Self, PackageError> {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        // Long names of packages leave no room for more.
        let name: String = name.chars().take(40).collect();
        let mut number = 0_u32;
        loop {
            let path = parent(place).join(format!(".{name}.{}-{number}.part", std::process::id()));
            let writer = match kind {
                PackageKind::Archive => {
                    ArchiveWriter::create(&path).map(|it| PackageWriter::Archive(Box::new(it)))
                }
                PackageKind::Copies | PackageKind::Links => umask::create_dir(&path)
                    .and_then(|()| DirectoryWriter::open(&path))
                    .map(PackageWriter::Directory),
            };
            match writer {
                Ok(writer) => return Ok(Self { path, kind, writer }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(write_error(place)(error)),
            }
        }
    }

    /// Adds a file or directory.
    fn add(&mut self, from: &Path, to: &str, stop: &AtomicBool) -> io::Result<()> {
        match &mut self.writer {
            PackageWriter::Archive(archive) => archive.add(from, to, stop),
            PackageWriter::Directory(dir) if self.kind == PackageKind::Links => dir.link(from, to),
            PackageWriter::Directory(dir) => dir.copy(from, to),
            PackageWriter::Closed => Ok(()),
        }
    }

    /// Adds a text.
    fn text(&mut self, to: &str, text: &str) -> io::Result<()> {
        match &mut self.writer {
            PackageWriter::Archive(archive) => archive.text(to, text),
            PackageWriter::Directory(dir) => dir.write(to, text),
            PackageWriter::Closed => Ok(()),
        }
    }

    fn publish(mut self, place: &Path) -> Result<(), PackageError> {
        let PackageWriter::Archive(archive) = mem::replace(&mut self.writer, PackageWriter::Closed)
        else {
            // An empty directory is replaced, and nothing else.
            return fs::rename(&self.path, place).map_err(write_error(place));
        };
        archive.finish().map_err(write_error(place))?;
        // Unlike a rename, a link replaces nothing.
        match fs::hard_link(&self.path, place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(PackageError::Exists(place.display().to_string()))
            }
            Err(_) => fs::rename(&self.path, place).map_err(write_error(place)),
            Ok(()) => Ok(()),
        }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        drop(match self.kind {
            PackageKind::Archive => fs::remove_file(&self.path),
            PackageKind::Copies | PackageKind::Links => fs::remove_dir_all(&self.path),
        });
    }
}

/// Whether all of a directory is there: one that is removed meanwhile lacks parts, and so does its copy. A file is copied as it was when
/// it was opened.
fn is_whole(path: &Path, contents: &Digest, stop: &AtomicBool) -> bool {
    if !contents.is_directory() {
        return true;
    }
    let read = Scan::at(path, stop).and_then(|scan| scan.read(stop, &AtomicU64::new(0)));
    read.is_ok_and(|manifest| manifest.digest() == *contents)
}

fn parent(dir: &Path) -> &Path {
    match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => dir,
    }
}

fn write_error(path: &Path) -> impl FnOnce(io::Error) -> PackageError {
    move |source| PackageError::Write { path: path.display().to_string(), source }
}

/// Returns the path that is written for a file of a package: the archive's, or the file's own.
fn written(place: &Path, kind: PackageKind, file: &str) -> PathBuf {
    match kind {
        PackageKind::Archive => place.to_owned(),
        PackageKind::Copies | PackageKind::Links => place.join(file),
    }
}

/// The facts that a paper needs to name a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Citation {
    /// Its maker: `task arith`, `computation add`, `a table of points`; `None` of a task input.
    pub maker: Option<String>,
    /// The name of the output, or its number if the name is not known; and the name that the workflow defines for its
    /// maker: `variants of called`.
    pub output: String,
    /// The commit of the task or the computation, in full.
    pub commit: Option<String>,
    /// The computation had uncommitted changes.
    pub dirty: bool,
    /// The URL of the repository that has the commit, without a password.
    pub repository: Option<String>,
    /// The inputs: their names, or else their numbers.
    pub inputs: Vec<(String, Digest)>,
    /// The digest of the file.
    pub digest: Digest,
    /// The version of CompEval that has recorded it, or else of this program.
    pub compeval: String,
    /// When it was executed, or else recorded, if that is known.
    pub at: Option<Timestamp>,
    /// The repository of results that is configured, without a password.
    pub results: Option<String>,
}

impl Citation {
    /// Describes a file. An output of a call that is an output of jobs, too, is described as the newest job's.
    pub fn describe(
        storage: &Storage,
        history: &History,
        published: &FirstPublished<'_>,
        file: Subject<'_>,
    ) -> Result<Self, StorageError> {
        let subject = job_output(history, file).unwrap_or(file);
        let made = FileMaker::find(storage, history, published, subject)?;
        let output = match subject.record {
            Record::Job(_) => {
                history.parents(storage, subject)?.into_iter().find_map(|it| it.subject)
            }
            _ => Some(subject),
        };
        let output = output.unwrap_or(subject);
        let mut output = OutputNames::new(storage).find(output, output.number);
        output.truncate(output.trim_end_matches('/').len());
        if let Record::Job(job) = subject.record
            && let Some(definition) = Definitions::of_outputs(job).output(subject.number)
            && output != definition
        {
            output = format!("{output} of {definition}");
        }
        let (maker, commit, inputs, recorded) = match subject.record {
            Record::Job(job) => {
                let inputs = job.inputs.iter().map(|it| (it.name.to_string(), it.digest));
                let maker = format!("task {}", job.task);
                (Some(maker), Some(&job.commit), inputs.collect(), job.recorded.as_ref())
            }
            Record::Call(call) => {
                let maker = format!("computation {}", call.computation);
                let inputs = inputs(storage, subject.entry, call);
                (Some(maker), Some(&call.commit), inputs, call.recorded.as_ref())
            }
            Record::Table(table) => {
                (Some("a sweep".to_owned()), None, Vec::new(), table.recorded.as_ref())
            }
            Record::TaskInput(input) => (None, None, Vec::new(), Some(&input.recorded)),
        };
        let (at, dirty) = match made {
            FileMaker::Call { at, dirty, .. } => (at, dirty),
            FileMaker::Table | FileMaker::TaskInput | FileMaker::Unknown => (None, false),
        };
        Ok(Self {
            maker,
            output,
            commit: commit.map(|it| it.full().to_owned()),
            dirty,
            repository: None,
            inputs,
            digest: *file.digest,
            compeval: recorded.map_or(env!("CARGO_PKG_VERSION"), |it| &it.compeval).to_owned(),
            at: at.or(recorded.map(|it| it.at)),
            results: None,
        })
    }

    /// Adds the URLs that the repository around a directory has: its own if it has the commit, and the URL of its
    /// results. Adds nothing if the directory is not in a repository.
    ///
    /// # Errors
    ///
    /// Fails if a setting is wrong.
    pub fn with_repository(mut self, dir: &Path) -> Result<Self, ConfigError> {
        let Ok(config) = Config::read(dir) else { return Ok(self) };
        self.repository = config.origin().filter(|_| {
            self.commit.as_ref().is_some_and(|commit| Snapshot::open(dir, commit).is_ok())
        });
        self.results = config.shown_results()?;
        Ok(self)
    }

    /// Describes the result in words.
    pub fn title(&self) -> String {
        match &self.maker {
            Some(maker) => format!("Output {} of {maker}", self.output),
            None => "A task input".to_owned(),
        }
    }
}

/// The output of the newest job that a file is, if it is one.
pub fn job_of<'a>(history: &'a History, file: Subject<'a>) -> Subject<'a> {
    job_output(history, file).unwrap_or(file)
}

/// The output of the newest job that is this file.
fn job_output<'a>(history: &'a History, file: Subject<'_>) -> Option<Subject<'a>> {
    let jobs = history.results().iter().filter_map(|(entry, record)| match record {
        Record::Job(job) => Some((entry, job)),
        Record::Call(_) | Record::Table(_) | Record::TaskInput(_) => None,
    });
    let outputs = jobs.filter_map(|(entry, job)| {
        let number = job.outputs.iter().position(|it| it.file == file.file())?;
        Some((Reverse(job.recorded.as_ref().map(|it| it.at)), entry.file(number)))
    });
    history.subject(&outputs.min()?.1)
}

/// The inputs of a call, with their names in the computation, or their numbers.
fn inputs(storage: &Storage, entry: &Entry, call: &CallRecord) -> Vec<(String, Digest)> {
    let names = match entry {
        Entry::Call(name) => storage.calls().input_names(name),
        Entry::Job(_) | Entry::Table(_) | Entry::TaskInput(_) => None,
    };
    let names = names.filter(|names| names.len() == call.inputs.len());
    let mut inputs = Vec::with_capacity(call.inputs.len());
    for (at, digest) in call.inputs.iter().enumerate() {
        let name = names.as_ref().map_or_else(|| format!("{at:02}"), |names| names[at].clone());
        inputs.push((name, *digest));
    }
    inputs
}

/// The greatest number of bad files that an error names.
const NAMED: usize = 20;

/// A file that cannot be exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFile {
    /// Its name in the storage.
    pub name: String,
    /// The reason, in words.
    pub why: String,
}

impl BadFile {
    pub(super) const fn new(name: String, why: String) -> Self {
        Self { name, why }
    }
}

/// The reason why results are not exported. Nothing was made then.
#[derive(Debug, thiserror::Error, Explain)]
pub enum PackageError {
    /// The directory is there, and not empty.
    #[error("{0} is not an empty directory")]
    #[hint("give a directory that does not exist")]
    Occupied(String),
    /// There is something in the place of the archive.
    #[error("{0} exists")]
    #[hint("give the name of a file that does not exist")]
    Exists(String),
    /// The directory has no name, such as `..`, or the name of standard output, `-`.
    #[error("{0} cannot name a new directory")]
    #[hint("give a directory that does not exist")]
    NoName(String),
    /// The directory would be in the storage.
    #[error("{0} is in the storage")]
    #[hint("give a directory beside it")]
    Inside(String),
    /// Files are away or damaged.
    #[error("nothing is exported, since files cannot be: {}", list(.0))]
    #[exit(Storage)]
    #[hint(
        "ce run makes again what is away or was collected, and after ce verify --repair what is damaged; ce pull \
         brings what a repository has; without --all, intermediate results are not needed"
    )]
    Bad(Vec<BadFile>),
    /// Files seem to hold secrets.
    #[error("nothing is exported: {}", list(.0))]
    #[exit(Failed)]
    #[hint("--allow-secrets exports it all the same")]
    Secret(Vec<BadFile>),
    /// A file could not be made.
    #[error("cannot write {path}")]
    #[exit(Storage)]
    #[hint(system_hints::for_writing(Path::new(path), source))]
    Write {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// The user has interrupted it.
    #[error("interrupted: nothing is exported")]
    #[exit(Storage)]
    #[hint("run the same command again: nothing was made")]
    Stopped,
}

fn list(bad: &[BadFile]) -> String {
    let mut list: Vec<String> =
        bad.iter().take(NAMED).map(|BadFile { name, why }| format!("{name}: {why}")).collect();
    if bad.len() > NAMED {
        list.push(format!("and {} more", bad.len() - NAMED));
    }
    list.join("; ")
}

/// The least size of a file that needs the fields of ZIP64, with room for bytes that compression may add.
const ZIP64_SIZE: u64 = 0xf000_0000;

/// The size of a piece that is read at a time.
const PIECE: usize = 1 << 16;

/// An archive that is being written.
struct ArchiveWriter {
    zip: ZipWriter<ArchiveFile>,
    has_failed: Rc<Cell<bool>>,
}

impl ArchiveWriter {
    /// An archive in a new file.
    fn create(path: &Path) -> io::Result<Self> {
        let has_failed = Rc::new(Cell::new(false));
        let file = BufWriter::new(umask::new_file().write(true).create_new(true).open(path)?);
        let output = ArchiveFile { file, at: 0, has_failed: Rc::clone(&has_failed) };
        Ok(Self { zip: ZipWriter::new(output), has_failed })
    }

    /// Adds a file or directory.
    fn add(&mut self, from: &Path, to: &str, stop: &AtomicBool) -> io::Result<()> {
        let metadata = fs::metadata(from)?;
        if !metadata.is_dir() {
            let is_program = metadata.permissions().mode() & 0o111 != 0;
            let options = options(if is_program { 0o755 } else { 0o644 });
            let options = options.large_file(metadata.len() >= ZIP64_SIZE);
            self.zip.start_file(to, options)?;
            return self.copy(&mut File::open(from)?, stop);
        }
        self.zip.add_directory(to, options(0o755))?;
        let entries: io::Result<Vec<fs::DirEntry>> = fs::read_dir(from)?.collect();
        let mut entries = entries?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                return Err(io::Error::other(format!(
                    "{name:?} is not UTF-8, as names in a ZIP archive are"
                )));
            };
            // Programs of other systems take it for a slash.
            if name.contains('\\') {
                return Err(io::Error::other(format!(
                    "{name:?} has a backslash, which no name in a ZIP archive has"
                )));
            }
            let to = format!("{to}/{name}");
            // Links of a value stay within it.
            if entry.file_type()?.is_symlink() {
                let target = fs::read_link(entry.path())?;
                self.zip.add_symlink(to, target.to_string_lossy(), options(0o777))?;
            } else {
                self.add(&entry.path(), &to, stop)?;
            }
        }
        Ok(())
    }

    fn copy(&mut self, file: &mut File, stop: &AtomicBool) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        while !stop.load(Ordering::Relaxed) {
            match file.read(&mut piece)? {
                0 => break,
                size => self.zip.write_all(&piece[..size])?,
            }
        }
        Ok(())
    }

    /// Adds a text.
    fn text(&mut self, to: &str, text: &str) -> io::Result<()> {
        self.zip.start_file(to, options(0o644))?;
        self.zip.write_all(text.as_bytes())
    }

    /// Completes the archive.
    fn finish(self) -> io::Result<()> {
        let mut output = self.zip.finish()?;
        output.flush()?;
        debug_assert!(!self.has_failed.get(), "an error of the file is one of the archive");
        Ok(())
    }
}

fn options(mode: u32) -> SimpleFileOptions {
    SimpleFileOptions::default().unix_permissions(mode).last_modified_time(DateTime::DEFAULT)
}

/// A file that takes everything once it could not be written. A `ZipWriter` that is dropped completes its archive, and prints that this fails.
struct ArchiveFile {
    file: BufWriter<File>,
    at: u64,
    has_failed: Rc<Cell<bool>>,
}

impl ArchiveFile {
    fn noted<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() != io::ErrorKind::Interrupted
        {
            self.has_failed.set(true);
        }
        result
    }
}

impl Write for ArchiveFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = if self.has_failed.get() { Ok(bytes.len()) } else { self.file.write(bytes) };
        let written = self.noted(written)?;
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = if self.has_failed.get() { Ok(()) } else { self.file.flush() };
        self.noted(flushed)
    }
}

impl Seek for ArchiveFile {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        let at = match place {
            SeekFrom::Start(at) if self.has_failed.get() => Ok(at),
            _ if self.has_failed.get() => Ok(self.at),
            SeekFrom::Current(0) => Ok(self.at),
            place => self.file.seek(place),
        };
        self.at = self.noted(at)?;
        Ok(self.at)
    }
}
