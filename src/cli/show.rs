//! Commands that look at results: `ce show` prints the provenance of a file, `ce log` lists calls, `ce shell` opens the
//! sandbox of one.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Parser;

use super::Tool;
use super::options::{task_dir, warn_of_links};
use super::storage_args::{StorageDir, StorageFile, is_storage, storage_around};
use ce_evaluate::session::{
    BeginError, Error, InspectionError, InspectionSession, OutputError, Stop, find_call, print_log,
};
use ce_exchange::{Attestations, is_fetched_on_demand};
use ce_executor::Status;
use ce_files::manifest::{DirectoryError, Manifest, Scan};
use ce_history::{Filter, History, TakenOver};
use ce_model::digest::DIRTY;
use ce_model::exit::{Exit, Explain};
use ce_model::humanize::{counted, parse_number, parse_seconds};
use ce_model::system_hints;
use ce_report::{self as report, Ancestry, SandboxContents, print_paged, say};
use ce_storage::records::CallRecord;
use ce_storage::{Defect, Entry, Maintenance, Record, Storage};

/// Show the provenance of a file: the call that made it, and the inputs of that call
///
/// Prints the computation, the commit, the inputs, and the points of sweeps that rest on it; when, where, by whom and how
/// fast it was made; whether its contents are still the recorded ones; and the tree of its origins, or the first levels of
/// it if it is longer than a screen.
#[derive(Debug, Parser)]
#[command(version, allow_missing_positional = true, after_help = SHOW_EXIT_CODES)]
pub(super) struct Show {
    /// Print one JSON document
    #[arg(long)]
    json: bool,

    /// Print the log of the call that makes the file; for a running call, the log so far. The file may also be a call: its
    /// name c_NAME/CCID/INPUTS, a file of it, or the first digits of INPUTS
    #[arg(long, conflicts_with = "json")]
    log: bool,

    /// Follow that until the call is over, wherever it is executed
    #[arg(short, long, conflicts_with = "json")]
    follow: bool,

    /// Print all origins of the file, and all digits, even if that is more than a screen
    #[arg(long, conflicts_with_all = ["json", "log", "follow"])]
    all: bool,

    /// Print the manifest of a directory, the text whose hashes identify it as a value; no storage is needed
    ///
    /// It has a line for each file, symbolic link and empty directory, sorted by the bytes of their paths. Each
    /// file is read once. Nothing is printed unless the whole directory could be read. Links that lead
    /// out of the directory, .git, devices, sockets and FIFOs are refused.
    #[arg(long, conflicts_with_all = ["json", "log", "follow", "all", "storage"])]
    manifest: bool,

    /// Print only the SHA-1 and the BLAKE3 of the manifest
    #[arg(long, requires = "manifest")]
    digest: bool,

    #[command(flatten)]
    place: StorageFile,
}

const SHOW_EXIT_CODES: &str = "\
Exit codes: 0 shown, 2 the arguments are wrong, the file has no record, or the directory can be no value, 5 the storage could not be \
read, or the file differs from its record, 130 interrupted (143: by SIGTERM).";

impl Tool for Show {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        if self.manifest {
            return print_manifest(Path::new(&self.place.file), self.digest, out);
        }
        let storage = &Storage::existing(&self.place.find()?)?;
        if self.log || self.follow {
            let stop = Stop::watch().map_err(BeginError::new)?;
            let name = find_call(storage, &self.place.file)?;
            print_log(storage, &name, self.follow, &stop, out)?;
            return Ok(stop.caught().map_or(Exit::Done, Exit::Interrupted));
        }
        warn_of_links(storage)?;
        let history = History::read(storage)?.with_recipes(storage)?;
        let subject = history.find(storage, &self.place.file)?;
        let fault = Maintenance::new(storage).check(&subject.promise());
        let log = match subject.entry {
            Entry::Call(name) => storage.attempts().log(name)?,
            Entry::Job(_) | Entry::Table(_) | Entry::TaskInput(_) => None,
        };
        let summary = history.summary(storage, subject.entry)?;
        let ancestors = history.ancestry(storage, subject)?;
        let taken_over = match subject.record {
            Record::Call(call) => TakenOver::find(storage, call),
            Record::Job(_) | Record::Table(_) | Record::TaskInput(_) => None,
        };
        let (attested, published) = match subject.record {
            Record::Call(call) => {
                let attestations = Attestations::read(storage)?;
                (Some(attestations.find_attesters(call)), attestations.published(call))
            }
            Record::Job(_) | Record::Table(_) | Record::TaskInput(_) => (None, Vec::new()),
        };
        let points = history.points(storage, subject)?;
        let revoked = storage.revocations().find(subject.entry, subject.record)?;
        let texts = ce_history::texts(storage, subject);
        let texts_of_rows = ce_history::texts_of_rows(storage, subject, &ancestors);
        let roles = history.roles(storage, subject, &ancestors)?;
        let ancestry = Ancestry {
            storage,
            subject,
            fault,
            is_fetched: is_fetched_on_demand(storage, subject.digest),
            taken_over,
            log,
            summary,
            points,
            texts,
            revoked,
            attested,
            published,
            ancestors,
            texts_of_rows,
            roles,
        };
        let shown = if self.json { ancestry.json(out) } else { ancestry.text(self.all, out) };
        shown.map_err(OutputError)?;
        let is_damaged = ancestry.fault.as_ref().is_some_and(Defect::is_harm);
        Ok(if is_damaged { Exit::Storage } else { Exit::Done })
    }
}

/// List the calls of a storage by time, the newest first
///
/// A line has the time of the end, the computation, the short texts among its inputs, such as the levels of a point, its
/// version, the duration, the peak memory, the host, and the inputs. Marks tell failed calls, with the reason, and calls
/// that were taken over from another commit, are suspended, or belong to an uncommitted computation. On a terminal, lines
/// are cut to its width, and a pager shows longer lists: CE_PAGER, else PAGER, else less.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Exit codes: 0 listed, 2 the arguments are wrong, 5 the storage could not be read."
)]
pub(super) struct Log {
    /// Print a JSON object for each line, the newest last
    #[arg(long)]
    json: bool,

    /// Print the resources that calls have asked for, and the most that they have used, a line for each computation and
    /// request
    ///
    /// Only calls that succeeded and were executed count. The columns are the computation, the number of calls, the
    /// requested and used cpus, memory and time, and other requested resources.
    #[arg(long)]
    resources: bool,

    /// Print how many of the executors of each call have got the recorded outputs, by the ledger
    #[arg(long, conflicts_with = "resources")]
    attested: bool,

    /// Only calls of this computation
    #[arg(long, value_name = "NAME")]
    computation: Option<String>,

    /// Only calls at the commit that begins with these digits; dirty- for uncommitted computations
    #[arg(long, value_name = "ID", value_parser = beginning)]
    commit: Option<String>,

    /// Only calls that failed, and have not succeeded since
    #[arg(long)]
    failed: bool,

    /// Only calls that ran at least this number of seconds
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    slow: Option<f64>,

    /// Only the newest N
    #[arg(short = 'n', value_name = "N", value_parser = |text: &str| parse_number::<usize>(text, 0))]
    most: Option<usize>,

    /// Show it without a pager
    #[arg(long)]
    no_pager: bool,

    #[command(flatten)]
    storage: StorageDir,
}

/// Reads the beginning of a version: of a commit, or of `dirty-` and the digits of a tree.
fn beginning(text: &str) -> Result<String, String> {
    let text = text.to_ascii_lowercase();
    let digits = text.strip_prefix(DIRTY).unwrap_or(&text);
    let is_version = digits.bytes().all(|it| it.is_ascii_hexdigit() || it == b'-');
    if !text.is_empty() && (is_version || DIRTY.starts_with(&text)) {
        Ok(text)
    } else {
        Err("no commit begins with that; write hexadecimal digits, as git rev-parse prints them, or dirty-"
            .to_owned())
    }
}

impl Tool for Log {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let filter = Filter {
            computation: self.computation.clone(),
            commit: self.commit.clone(),
            failed: self.failed,
            slow: self.slow,
            most: self.most,
        };
        let storage = Storage::existing(&self.storage.find()?)?;
        warn_of_links(&storage)?;
        let attestations = Attestations::read(&storage)?;
        let published = |record: &CallRecord| attestations.first_published(record);
        let (log, all) = ce_history::log(&storage, &published, &filter)?;
        if log.is_empty() && filter.is_selective() && self.most != Some(0) {
            let why = ce_history::why_none(&storage, &filter)?;
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            say("ce", &format_args!("no call matches{why}"));
        }
        let mut attested = None;
        if self.attested {
            let of_calls = log.iter().map(|past| attestations.of_call(&storage, &past.name));
            attested = Some(of_calls.collect::<Result<Vec<_>, _>>()?);
        }
        let mut text = Vec::new();
        let printed = match (self.resources, self.json) {
            (false, false) => report::log(&log, attested.as_deref(), &mut text),
            (false, true) => report::log_json(&log, attested.as_deref(), out),
            (true, false) => report::resource_usage(&ce_history::resource_usage(&log), &mut text),
            (true, true) => report::resource_usage_json(&ce_history::resource_usage(&log), out),
        };
        printed.map_err(OutputError)?;
        let shown = if self.no_pager { out.write_all(&text) } else { print_paged(&text, out) };
        shown.map_err(OutputError)?;
        if log.len() < all && !self.json {
            let cut = format!("the newest {} of {}", log.len(), counted(all, "call"));
            say("ce", &format_args!("{cut} are listed; without -n, all are"));
        }
        Ok(Exit::Done)
    }
}

/// Look into the sandbox of a call, executed or not: with a shell, or with a command
///
/// It has the same files as exec: the computation in /computation and the inputs in /inputs, read-only, and empty /outputs
/// and /tmp, the same environment, and the access that the file access grants. Nothing is published, and its files are
/// deleted unless --keep is given. Without a terminal, a command has no input, and its output is printed when it has ended.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Exit codes: that of the shell or command, 128 and the signal that has killed it, 1 it could not be started, 2 the arguments are wrong or \
the call is not known, 3 nothing can be isolated on this host, 5 the storage could not be read or written, 130 interrupted."
)]
pub(super) struct InspectCall {
    /// Keep the files made in /outputs and /tmp, in a directory among your temporary files, and say where
    #[arg(long)]
    keep: bool,

    /// The directory of the task, from which the computation is taken if the storage does not have it
    #[arg(long, value_name = "DIR", default_value = ".", value_parser = task_dir(), value_hint = clap::ValueHint::DirPath)]
    task: PathBuf,

    /// The directory that keeps all results [default: the one in the path of the call, else compeval.storage in Git's
    /// configuration]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    storage: Option<PathBuf>,

    /// The call: its name c_NAME/CCID/INPUTS or a file of it, with or without the storage's path, or the first four or more
    /// digits of INPUTS; or, if it is the only one, the name of its computation or the labels that lead to it
    #[arg(value_hint = clap::ValueHint::FilePath)]
    call: Option<PathBuf>,

    /// The command to be executed in place of a shell
    #[arg(last = true, value_hint = clap::ValueHint::Other)]
    command: Vec<OsString>,
}

impl Tool for InspectCall {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let (storage, call) = match (&self.storage, &self.call) {
            (Some(storage), Some(call)) => (storage.clone(), call),
            (Some(storage), None) if is_storage(storage) => {
                return Err(InspectionError::NoCallIn(storage.clone()).into());
            }
            (Some(call), None) => (storage_around(call)?, call),
            (None, _) => return Err(InspectionError::NoCallGiven.into()),
        };
        InspectionSession::check_terminal(&self.command)?;
        let session = InspectionSession::open(&self.task, &storage)?;
        let call = session.find(&call.to_string_lossy(), self.keep)?;
        if self.command.is_empty() {
            say("ce", &SandboxContents(&call));
        }
        out.flush().map_err(OutputError)?;
        let ended = session.execute(&call, &self.command, &mut io::stdout());
        if let Some(kept) = &call.kept {
            say("ce", &format_args!("kept: {}", kept.path.display()));
        }
        if let Some(signal) = session.interrupted_by() {
            return Ok(Exit::Interrupted(signal));
        }
        let status = ended?;
        Ok(Exit::Ended(match (status, status.signal()) {
            (Status::Exited(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
            (_, signal) => 128_u8
                .saturating_add(signal.and_then(|it| u8::try_from(it).ok()).unwrap_or_default()),
        }))
    }
}

/// A directory cannot be a value, or not be read.
#[derive(Debug, thiserror::Error, Explain)]
#[error("cannot take the directory {path} as a value")]
#[hint(hint_for_member(Path::new(path), source))]
struct NotAValue {
    /// The directory.
    path: String,
    /// The cause.
    source: DirectoryError,
}

/// Returns what to try for an entry of a directory that cannot be a value.
fn hint_for_member(directory: &Path, source: &DirectoryError) -> Option<String> {
    match source {
        DirectoryError::Io { path: entry, source } => {
            let entry = Some(OsStr::from_bytes(entry)).filter(|entry| !entry.is_empty());
            let path = entry.map_or(directory.into(), |it| directory.join(it));
            system_hints::for_directory(&path, source)
        }
        error => error.hint(),
    }
}

/// Prints the manifest of a directory, or only its hashes.
fn print_manifest(directory: &Path, digest: bool, out: &mut dyn Write) -> Result<Exit, Error> {
    let stop = Stop::watch().map_err(BeginError::new)?;
    let manifest = match (read_directory(directory, &stop), stop.caught()) {
        (Err(DirectoryError::Interrupted), Some(signal)) => {
            say("ce", &"interrupted: nothing was printed");
            return Ok(Exit::Interrupted(signal));
        }
        (read, _) => {
            read.map_err(|source| NotAValue { path: directory.display().to_string(), source })?
        }
    };
    let printed = if digest {
        let digest = manifest.digest();
        writeln!(out, "sha1 {}\nblake3 {}", digest.sha1.full(), digest.blake3.full())
    } else {
        manifest.write(out)
    };
    printed.map_err(OutputError)?;
    Ok(Exit::Done)
}

/// Reads all files of a directory, which may take long.
fn read_directory(directory: &Path, stop: &Stop) -> Result<Manifest, DirectoryError> {
    let scan = Scan::at(directory, &stop.asked)?;
    let (bytes, done) = (scan.bytes(), AtomicU64::new(0));
    let mut read = Err(DirectoryError::Interrupted);
    report::while_reading(&|| (done.load(Ordering::Relaxed), bytes), &mut || {
        read = scan.read(&stop.asked, &done);
    });
    read
}
