//! Sheets with columns of files among the inputs of a task: their paths are looked at before anything else is done, and the sheet that is
//! the value of the input has the digests of the files.

use std::collections::HashMap;
use std::error::Error as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::own_files::read_own;
use super::{Error, InputError};
use crate::PointsError;
use crate::derived_values::source_of;
use crate::evaluation::take_in;
use ce_git::Trees;
use ce_model::digest::Digest;
use ce_model::exit::Explain;
use ce_model::humanize::counted;
use ce_model::name::{InputName, TaskPath};
use ce_model::suggest::{meant_or, nearest};
use ce_model::sweep::{
    self, CellFault, FileColumn, MAX_PROBLEMS, MAX_SHEET, PlacedCell, SheetFault, SheetFormat,
    SheetProblem, cell_of_digest, check_path, digest_of_cell, file_cells, own_path,
    sheet_with_cells,
};
use ce_model::system_hints;
use ce_model::task::{FileContents, Node, Task};
use ce_storage::{InputSource, Storage, StorageError};
use ce_task::load::{DeferredFiles, LoadFault};

/// A sheet with columns of files that an input of a task is.
pub(super) struct SheetOfFiles {
    /// The number of the input.
    pub(super) input: usize,
    /// Its name, in words.
    title: String,
    contents: Vec<u8>,
    /// Whether it can be read again.
    is_pipe: bool,
    columns: Vec<FileColumn>,
    /// Its cells that stand for files, and where these are.
    cells: Vec<(PlacedCell, CellSource)>,
    /// The files of the task, among which these may be.
    own: DeferredFiles,
}

/// The file of a cell.
enum CellSource {
    /// A file or directory of the user.
    User(PathBuf),
    /// A file of the task.
    Task(FileContents),
    /// The cell is a digest already: the sheet comes from a storage.
    Digest(Digest),
}

/// Files that a sheet names cannot be used.
#[derive(Debug, thiserror::Error, Explain)]
#[error("{sheet}: {} cannot be used{}", counted(problems.len(), "cell"), in_lines(problems))]
#[hint(problems.first().and_then(|problem| problem.fault.hint()))]
pub struct SheetFilesError {
    /// The sheet, in words.
    sheet: String,
    problems: Vec<SheetProblem>,
}

/// The first problems, each in a line of its own.
fn in_lines(problems: &[SheetProblem]) -> String {
    let lines = problems.iter().take(MAX_PROBLEMS).map(|problem| format!("\n  {problem}"));
    let more = problems.len().saturating_sub(MAX_PROBLEMS);
    let more = (more > 0).then(|| format!("\n  and {more} more"));
    lines.chain(more).collect()
}

/// Finds the files that sheets of a task name: inputs, and files of its own. Returns the sheets that are inputs. `given` has the values of the
/// inputs, in their order; the others are their defaults.
///
/// # Errors
///
/// Fails with all cells of a sheet that stand for no file.
pub(super) fn look(
    trees: &Trees,
    task: &Task,
    given: &[Option<InputSource>],
) -> Result<Vec<SheetOfFiles>, Error> {
    let mut sheets = Vec::new();
    for (node, columns) in task.sheets_of_files() {
        let own = DeferredFiles::new(trees.dir(), task);
        let of_task = |sheet: &TaskPath, text: &str| task_file(&own, sheet, text);
        let (input, file) = match &task.workflow[node] {
            Node::Input(input) => (Some(input.index()), task.defaults[input.index()]),
            Node::File(file) => (None, Some(*file)),
            _ => continue,
        };
        let title = match input {
            Some(at) => format!("the input {}", task.inputs[at]),
            None => file.map(|it| task.files[it.index()].path.to_string()).unwrap_or_default(),
        };
        let user_given = input.and_then(|at| Some((at, given.get(at)?.as_ref()?)));
        let (contents, is_pipe, cells) = if let Some((at, source)) = user_given {
            let GivenSheet { contents, dir, is_pipe } = read_given(&task.inputs[at], source)?;
            let cells = find_files(&title, &contents, &columns, |text| user_file(&dir, text))?;
            (contents, is_pipe, cells)
        } else if let Some(file) = file.map(|it| &task.files[it.index()])
            && file.contents != FileContents::Unbound
        {
            let (contents, path) = (read_own(trees, file)?, file.path.written());
            let cells = find_files(&title, &contents, &columns, |text| of_task(path, text))?;
            (contents, false, cells)
        } else {
            // It is not given, which another error says if it is read; or its path depends on a point.
            continue;
        };
        if let Some(input) = input {
            sheets.push(SheetOfFiles { input, title, contents, is_pipe, columns, cells, own });
        }
    }
    Ok(sheets)
}

/// Checks that the sheets of a task itself name files of it.
///
/// # Errors
///
/// Fails with all cells of a sheet that stand for no file.
pub fn check_sheets_of_files(trees: &Trees, task: &Task) -> Result<(), Error> {
    look(trees, task, &[]).map(drop)
}

/// Finds the files of all cells of a sheet.
fn find_files(
    title: &str,
    contents: &[u8],
    columns: &[FileColumn],
    find: impl Fn(&str) -> Result<CellSource, SheetFault>,
) -> Result<Vec<(PlacedCell, CellSource)>, Error> {
    let cells = file_cells(contents, columns)
        .map_err(|problems| PointsError::Sheet { sheet: title.to_owned(), problems })?;
    let (mut found, mut problems) = (Vec::with_capacity(cells.len()), Vec::new());
    for cell in cells {
        match find(&cell.text) {
            Ok(source) => found.push((cell, source)),
            Err(fault) => problems.push(cell.problem(fault)),
        }
    }
    match problems.is_empty() {
        true => Ok(found),
        false => Err(SheetFilesError { sheet: title.to_owned(), problems }.into()),
    }
}

/// A sheet that a user gives.
struct GivenSheet {
    contents: Vec<u8>,
    /// The directory that its paths are relative to.
    dir: PathBuf,
    is_pipe: bool,
}

/// Reads a sheet. Paths in one that is no file of the user are relative to the current directory.
fn read_given(name: &InputName, source: &InputSource) -> Result<GivenSheet, Error> {
    let path = match source {
        InputSource::Bytes(contents) => {
            let (contents, dir) = (contents.clone(), PathBuf::new());
            return Ok(GivenSheet { contents, dir, is_pipe: false });
        }
        InputSource::File(path) => path,
    };
    let read = || -> io::Result<GivenSheet> {
        let mut contents = Vec::new();
        let file = File::open(path)?;
        let is_pipe = !file.metadata()?.is_file();
        file.take(MAX_SHEET as u64 + 1).read_to_end(&mut contents)?;
        let is_descriptor = ["/dev", "/proc"].iter().any(|dir| path.starts_with(dir));
        let dir = path.parent().filter(|_| !is_pipe && !is_descriptor).unwrap_or(Path::new(""));
        Ok(GivenSheet { contents, dir: dir.to_owned(), is_pipe })
    };
    let (name, path) = (name.to_string(), path.display().to_string());
    read().map_err(|source| InputError::Input { name, path, source }.into())
}

/// The file of a cell of a sheet that a user gives.
fn user_file(dir: &Path, text: &str) -> Result<CellSource, SheetFault> {
    if let Some(digest) = digest_of_cell(text) {
        return Ok(CellSource::Digest(digest));
    }
    check_path(text)?;
    let path = dir.join(text);
    let fault = |reason: &str, hint: Option<String>| {
        let (path, reason) = (text.to_owned(), reason.to_owned());
        SheetFault::from(CellFault { path, reason, hint })
    };
    match path.metadata() {
        Ok(metadata) if metadata.is_file() || metadata.is_dir() => Ok(CellSource::User(path)),
        Ok(_) => {
            let hint = "write its contents into a file, and that path";
            Err(fault("it is neither a file nor a directory", Some(hint.to_owned())))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let other = "correct the path, which is relative to the sheet unless it begins with /";
            let meant = nearest_path(dir, text);
            Err(fault("there is no such file", Some(meant_or(meant.as_deref(), other))))
        }
        Err(error) => Err(fault(&error.to_string(), system_hints::for_reading(&path, &error))),
    }
}

/// The most files of a directory that a mistyped name is compared with.
const MOST_COMPARED: usize = 1000;

/// The path of a file in the same directory that may be meant.
fn nearest_path(dir: &Path, text: &str) -> Option<String> {
    let (parent, name) = match text.rsplit_once('/') {
        Some((parent, name)) => (format!("{parent}/"), name),
        None => (String::new(), text),
    };
    let place = dir.join(&parent);
    let place = if place.as_os_str().is_empty() { Path::new(".") } else { &place };
    let names = fs::read_dir(place).ok()?.flatten().take(MOST_COMPARED);
    let names: Vec<String> = names.filter_map(|it| it.file_name().into_string().ok()).collect();
    Some(format!("{parent}{}", nearest(name, &names)?))
}

/// The file of a cell of a sheet of the task.
fn task_file(own: &DeferredFiles, sheet: &TaskPath, text: &str) -> Result<CellSource, SheetFault> {
    let path = own_path(sheet, text)?;
    own.find(&path).map(CellSource::Task).map_err(|error| {
        let hint = match error {
            LoadFault::NoFile { nearest: None, .. } | LoadFault::OwnDirectory => {
                Some("write the path of a file of the task, relative to the sheet".to_owned())
            }
            _ => error.hint(),
        };
        CellFault { path: text.to_owned(), reason: error.to_string(), hint }.into()
    })
}

impl SheetOfFiles {
    /// Whether files of the task that it names have changes that no commit records.
    pub(super) fn has_changed_files(&self) -> bool {
        let is_changed =
            |source: &CellSource| matches!(source, CellSource::Task(FileContents::Uncommitted(_)));
        self.cells.iter().any(|(_, source)| is_changed(source))
    }

    /// The contents of a sheet that cannot be read again.
    pub(super) fn contents_of_pipe(&self) -> Option<InputSource> {
        self.is_pipe.then(|| InputSource::Bytes(self.contents.clone()))
    }

    /// Returns the sheet that is the value: with the digests of its files, which are stored if `store` says so.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read, if two rows are the same with these digests, or if the storage cannot be read or written. With `store`, fails if the
    /// storage does not have the file of a digest.
    pub(super) fn value(&self, storage: &Storage, store: bool) -> Result<InputSource, Error> {
        let (inputs, mut given, mut problems) = (storage.inputs(), Vec::new(), Vec::new());
        for (cell, source) in &self.cells {
            let source = match source {
                CellSource::User(path) => InputSource::File(path.clone()),
                CellSource::Task(contents) => {
                    source_of(&self.own, contents.clone()).map_err(|source| {
                        InputError::OwnFile { path: cell.text.to_string(), source }
                    })?
                }
                // Only what is executed needs its file.
                CellSource::Digest(digest) => {
                    if store && inputs.unpacked(*digest)?.is_none() {
                        let fault = SheetFault::NoContents(cell.text.to_string());
                        problems.push(cell.problem(fault));
                    }
                    continue;
                }
            };
            given.push((cell, source));
        }
        if !problems.is_empty() {
            return Err(self.error(problems));
        }
        let sources: Vec<&InputSource> = given.iter().map(|(_, source)| source).collect();
        let taken = inputs.look_together(&sources, [].into_iter(), |known| {
            take_in(&inputs, &sources, known, store)
        });
        let taken = taken.map_err(|error| self.name_cell(error))?;
        let cells: HashMap<Arc<str>, String> = given
            .iter()
            .zip(taken)
            .map(|((cell, _), input)| {
                (Arc::clone(&cell.text), cell_of_digest(&input.file.digest, &cell.text))
            })
            .collect();
        let value = sheet_with_cells(&self.contents, &self.columns, &cells);
        let same = sweep::read(SheetFormat::detect(&value), &value).err().unwrap_or_default();
        match same.is_empty() {
            true => Ok(InputSource::Bytes(value)),
            false => Err(self.error(same.into_iter().map(of_files).collect())),
        }
    }

    fn error(&self, problems: Vec<SheetProblem>) -> Error {
        SheetFilesError { sheet: self.title.clone(), problems }.into()
    }

    /// The error of reading a file, with the place of its cell.
    fn name_cell(&self, error: StorageError) -> Error {
        let cell = self.cells.iter().find(|(_, source)| match source {
            CellSource::User(path) => error.is_about(path),
            CellSource::Task(_) | CellSource::Digest(_) => false,
        });
        let Some((cell, _)) = cell else { return error.into() };
        let (mut reason, mut cause) = (error.to_string(), error.source());
        while let Some(next) = cause {
            (reason, cause) = (next.to_string(), next.source());
        }
        let (path, hint) = (cell.text.to_string(), error.hint());
        self.error(vec![cell.problem(CellFault { path, reason, hint }.into())])
    }
}

/// The problem of a row that repeats another one: the user has written different paths.
fn of_files(problem: SheetProblem) -> SheetProblem {
    match problem.fault {
        SheetFault::SameRow(line) => SheetProblem { fault: SheetFault::SameFiles(line), ..problem },
        _ => problem,
    }
}
