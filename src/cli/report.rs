//! `ce report`: a page about a task, results or a whole storage. Its file is written aside, and renamed when it is
//! complete. Any other file is not replaced.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Parser;

use super::Tool;
use super::input_args::PathArgs;
use super::options::{Dirty, Strict, TaskDir, is_stdout, task_around, warn_of_links};
use ce_draw::Drawing;
use ce_evaluate::session::{Error, OutputError, WriteError};
use ce_exchange::{Attestations, Secrets};
use ce_files::umask;
use ce_history::package::Packer;
use ce_history::{History, Subject};
use ce_model::exit::Exit;
use ce_model::humanize::{counted, parse_number};
use ce_model::resources::parse_size;
use ce_queries::frame::Frame;
use ce_queries::page::{PageData, PageLimits, PageScope, TaskScope, TaskTable};
use ce_queries::table::all_sweeps;
use ce_report::{self as report, PageDirectory, PageError, begins_as_page, refuse_links, say};
use ce_storage::Storage;

/// The greatest number of shapes that are drawn: more cannot be read.
const SHAPES: usize = 1500;

/// The largest number of bytes of all logs on a page.
const ALL_LOGS: u64 = 16 << 20;

/// The largest number of tables, and of outputs, on a page.
const RESULTS: usize = 500;

/// Write a page about a task, some results or a whole storage: one HTML file for any browser
///
/// The page is for somebody who has to decide something. It has the question, how complete and how certain the results are,
/// the outputs, medians of measurements with their intervals, comparisons of levels, how to repeat it, and failures; below,
/// how the results were made. It needs no server, no network and no scripts. Nothing is computed, and nothing is written
/// but the page.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = AFTER_HELP,
    mut_arg("inputs", |arg| arg.value_name("RESULT|INPUT").help(NAMES)),
    mut_arg("params", |arg| arg.requires("task")),
    mut_arg("repositories", |arg| arg.requires("task")),
    mut_arg("dirty", |arg| arg.requires("task")),
    mut_arg("strict", |arg| arg.requires("task")),
)]
pub(super) struct WriteReport {
    /// The file to be written, or - for standard output; an existing file is replaced only if it is a page of ce report.
    /// With a slash at its end, a directory: the page is index.html in it, and outputs that have no room on it are in
    /// files/
    #[arg(short, long, value_name = "FILE", default_value = "report.html", value_hint = clap::ValueHint::FilePath)]
    output: PathBuf,

    /// Replace any file
    #[arg(long)]
    force: bool,

    /// Print no summary
    #[arg(short, long)]
    quiet: bool,

    /// Have at most this number of calls on the page, the newest
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = |text: &str| parse_number::<usize>(text, 0))]
    calls: usize,

    /// Have at most this number of rows of each table on the page, the first
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = |text: &str| parse_number::<usize>(text, 0))]
    rows: usize,

    /// Have at most this number of KiB of each log on the page, the last
    #[arg(long, value_name = "KIB", default_value_t = 16, value_parser = |text: &str| parse_number::<u64>(text, 0))]
    log: u64,

    /// Have the contents of outputs on the page, up to this number of bytes in all, with K, M or G behind the number
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = parse_size)]
    embed: u64,

    /// The page is about the task in this directory, or in one around it, with the inputs that are given; calls that are
    /// missing are on it, too
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    task: Option<PathBuf>,

    /// Take the task as it was at a commit, from the repository's objects: nothing is checked out
    #[arg(long, value_name = "REV", requires = "task")]
    at: Option<String>,

    #[command(flatten)]
    strict: Strict,

    #[command(flatten)]
    dirty: Dirty,

    #[command(flatten)]
    typed: PathArgs,
}

const NAMES: &str = "With --task, a file for each input of the task: NAME=FILE, or the files in the order \
of the inputs. Without it, results: the path of an output, or the short name of a job, call or table";

const AFTER_HELP: &str = "\
Examples:
  ce report ../results
  ce report ../results ../results/t_arith/66d571cf81ed/00/ad48103e4fc7_5d9474c0309b
  ce report --task . -o words.html ../results ../text ../stop

Exit codes: 0 written, 2 the arguments or the task are wrong, a result has no record, or a file is there that is no \
such page, 5 the storage could not be read or the page not be written.";

impl Tool for WriteReport {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let mut place = PagePlace::new(&self.output, self.force)?;
        let (mut data, drawing) = match &self.task {
            Some(task) => self.of_task(task)?,
            None => self.of_storage()?,
        };
        if let PagePlace::Directory(dir) = &mut place {
            dir.add_outputs(&mut data.outputs)?;
        }
        let mut svg = Vec::new();
        let is_drawn = drawing.shapes().len() <= SHAPES;
        if is_drawn {
            drawing.svg_for_page(&mut svg).map_err(OutputError)?;
        }
        let mut omissions = data.omissions();
        if !is_drawn {
            let shapes = drawing.shapes().len();
            omissions.push(format!("the workflow has {shapes} shapes, and is not drawn"));
        }
        let page = report::page(&data, &svg, &omissions).map_err(OutputError)?;
        if let Some(what) = Secrets::of_environment().find(&page) {
            let what = format!("the page seems to hold {what}: look at it before you publish it");
            omissions.push(what);
        }
        let written = match &place {
            PagePlace::Output => {
                out.write_all(&page).map_err(OutputError)?;
                "standard output".to_owned()
            }
            PagePlace::File(file) => {
                file.write(&page)?;
                file.path.display().to_string()
            }
            PagePlace::Directory(dir) => {
                dir.write(&page)?;
                dir.page().display().to_string()
            }
        };
        if !self.quiet {
            for omission in &omissions {
                say("ce", &format_args!("warning: {omission}"));
            }
            let (calls, tables) =
                (counted(data.calls.len(), "call"), counted(data.tables.len(), "table"));
            say("ce", &format_args!("{written}: {calls}, {tables}"));
        }
        Ok(Exit::Done)
    }
}

impl WriteReport {
    const fn limits(&self) -> PageLimits {
        PageLimits {
            calls: self.calls,
            rows: self.rows,
            log_bytes: self.log.saturating_mul(1024),
            all_log_bytes: ALL_LOGS,
            results: RESULTS,
            contents: self.embed,
        }
    }

    /// The data and the drawing of a task with its inputs.
    fn of_task(&self, task: &Path) -> Result<(PageData, Drawing), Error> {
        let dir = TaskDir { task: task_around(task.to_owned()), at: self.at.clone() };
        let task = dir.load("ce", self.dirty.uncommitted())?;
        let evaluation = &self.typed.look_up(&dir, task, &self.strict)?;
        let storage = &*evaluation.storage;
        warn_of_links(storage)?;
        let attestations = Attestations::read(storage)?;
        let mut tables = Vec::new();
        for sweep in all_sweeps(&evaluation.task) {
            let frame = Frame::of_sweep(evaluation, &attestations, sweep)?;
            let (title, names) = (sweep.title(&evaluation.task), sweep.tables(evaluation));
            tables.push(TaskTable { title, names, frame });
        }
        let drawing = Drawing::new(&evaluation.task, &evaluation.plan, Some(evaluation));
        let drawing = drawing.without_place(storage);
        let shapes = drawing.shapes().iter().map(|it| (it.label.clone(), &*it.calls)).collect();
        let history = History::read(storage)?.with_recipes(storage)?;
        let dir = &dir.task;
        let mut scope = PageScope::Task(TaskScope { dir, evaluation, shapes, tables });
        let data = PageData::gather(storage, &history, &attestations, &mut scope, self.limits())?;
        Ok((data, drawing))
    }

    /// The data and the drawing of results, or of a whole storage.
    fn of_storage(&self) -> Result<(PageData, Drawing), Error> {
        let (place, names) = self.typed.storage_and_names()?;
        let storage = &Storage::existing(&place)?;
        warn_of_links(storage)?;
        let history = History::read(storage)?.with_recipes(storage)?;
        let packer = Packer::new(storage, &history, &|_| None);
        let mut subjects: Vec<Subject<'_>> = Vec::new();
        for name in names {
            let subject = packer.find(&name.to_string_lossy())?;
            if !subjects.iter().any(|it| it.file() == subject.file()) {
                subjects.push(subject);
            }
        }
        let mut scope =
            if subjects.is_empty() { PageScope::Storage } else { PageScope::Results(&subjects) };
        let data = PageData::gather(
            storage,
            &history,
            &Attestations::read(storage)?,
            &mut scope,
            self.limits(),
        )?;
        let drawing = Drawing::of_results(&data.graph);
        Ok((data, drawing))
    }
}

/// The place of a page.
enum PagePlace<'a> {
    /// Standard output.
    Output,
    /// A file.
    File(PageFile<'a>),
    /// A directory, with the rest beside the page.
    Directory(PageDirectory),
}

impl<'a> PagePlace<'a> {
    fn new(path: &'a Path, force: bool) -> Result<Self, Error> {
        let is_directory = path.to_string_lossy().ends_with('/') || path.is_dir();
        Ok(match () {
            () if is_directory => Self::Directory(PageDirectory::new(path, force)?),
            () if is_stdout(path) => Self::Output,
            () => {
                refuse_links(path)?;
                Self::File(PageFile::new(path, force)?)
            }
        })
    }
}

/// The file that a page is to be written to.
#[derive(Debug)]
struct PageFile<'a> {
    path: &'a Path,
}

impl<'a> PageFile<'a> {
    /// Checks that a page may be written there: with `force`, over any file, and else over such pages only.
    ///
    /// # Errors
    ///
    /// Fails if something else is there.
    pub(super) fn new(path: &'a Path, force: bool) -> Result<Self, Error> {
        let may_be_written = match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(not_written(path, error).into()),
            Ok(metadata) if !metadata.is_file() => false,
            Ok(_) => {
                force
                    || File::open(path)
                        .and_then(begins_as_page)
                        .map_err(|error| not_written(path, error))?
            }
        };
        if may_be_written {
            Ok(Self { path })
        } else {
            Err(PageError::NotAPage(path.display().to_string()).into())
        }
    }

    /// Writes the page, or nothing.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub(super) fn write(&self, page: &[u8]) -> Result<(), WriteError> {
        let aside = self.aside();
        self.write_aside(&aside, page).map_err(|error| {
            if error.kind() != io::ErrorKind::AlreadyExists {
                drop(fs::remove_file(&aside));
            }
            not_written(self.path, error)
        })
    }

    fn write_aside(&self, aside: &Path, page: &[u8]) -> io::Result<()> {
        let mut file = umask::new_file().write(true).create_new(true).open(aside)?;
        file.write_all(page)?;
        file.sync_all()?;
        fs::rename(aside, self.path)
    }

    /// A name beside it that is not taken.
    fn aside(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.path.with_file_name(format!(".{name}.{}.part", std::process::id()))
    }
}

fn not_written(path: &Path, source: io::Error) -> WriteError {
    WriteError { path: path.display().to_string(), source }
}
