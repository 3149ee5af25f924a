//! Sheets with columns of files among the inputs of a task: their paths are looked at before anything else is done, and the sheet that is
//! the value of the input has the digests of the files.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::own_files::own_file;
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
    CellFault, FileColumn, MAX_PROBLEMS, PlacedCell, SheetFault, SheetProblem, cell_of_digest,
    check_path, digest_of_cell, file_cells, own_path, sheet_with_cells,
};
use ce_model::system_hints;
use ce_model::task::{FileContents, Node, Task, TaskFileId};
use ce_storage::{InputSource, Storage, StorageError};
use ce_task::load::DeferredFiles;

/// A sheet with columns of files that an input of a task is.
#[derive(Debug)]
pub(super) struct SheetOfFiles {
    /// The number of the input.
    pub(super) input: usize,
    /// Its name, in words.
    title: String,
    contents: Vec<u8>,
    columns: Vec<FileColumn>,
    /// Its cells that stand for files, and where these are.
    cells: Vec<(PlacedCell, CellSource)>,
}

/// The file of a cell.
#[derive(Debug)]
enum CellSource {
    Given(InputSource),
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

/// Reads the sheets with columns of files that a task has as inputs and as files of its own. Returns those of inputs. `given` has the values of the
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
    let found: BTreeMap<_, _> = task.sheets_of_files().into_iter().collect();
    for (node, columns) in found {
        match &task.workflow[node] {
            Node::Input(input) => {
                let at = input.index();
                let title = format!("the input {}", task.inputs[at]);
                let sheet = match (given.get(at), task.defaults[at]) {
                    (Some(Some(source)), _) => {
                        let (contents, dir) = read_given(&task.inputs[at], source)?;
                        UnreadSheet { title, contents, columns, place: SheetPlace::User(dir) }
                    }
                    (_, Some(file)) => UnreadSheet::of_task(trees, task, file, title, columns)?,
                    // Another error says so, if it is read.
                    (_, None) => continue,
                };
                sheets.push(sheet.read(trees, task, at)?);
            }
            Node::File(file) if task.files[file.index()].contents != FileContents::Unbound => {
                let title = task.files[file.index()].path.to_string();
                let sheet = UnreadSheet::of_task(trees, task, *file, title, columns)?;
                sheet.read(trees, task, 0)?;
            }
            _ => {}
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

/// Where a sheet is, to which its paths are relative.
enum SheetPlace {
    /// In this directory of the user.
    User(PathBuf),
    /// In the task.
    Task(TaskPath),
}

/// A sheet whose cells were not looked at.
struct UnreadSheet {
    title: String,
    contents: Vec<u8>,
    columns: Vec<FileColumn>,
    place: SheetPlace,
}

impl UnreadSheet {
    fn of_task(
        trees: &Trees,
        task: &Task,
        file: TaskFileId,
        title: String,
        columns: Vec<FileColumn>,
    ) -> Result<Self, Error> {
        let file = &task.files[file.index()];
        let contents = match own_file(trees, file)? {
            InputSource::Bytes(contents) => contents,
            InputSource::File(path) => fs::read(&path).map_err(|source| InputError::OwnFile {
                path: file.path.to_string(),
                source: source.into(),
            })?,
        };
        let place = SheetPlace::Task(file.path.written().clone());
        Ok(Self { title, contents, columns, place })
    }

    /// Finds the files of all cells.
    fn read(self, trees: &Trees, task: &Task, input: usize) -> Result<SheetOfFiles, Error> {
        let Self { title, contents, columns, place } = self;
        let cells = file_cells(&contents, &columns);
        let cells =
            cells.map_err(|problems| PointsError::Sheet { sheet: title.clone(), problems })?;
        let own = DeferredFiles::new(trees.dir(), task);
        let (mut found, mut problems) = (Vec::with_capacity(cells.len()), Vec::new());
        for cell in cells {
            let source = match &place {
                SheetPlace::User(dir) => user_file(dir, &cell.text),
                SheetPlace::Task(sheet) => task_file(&own, sheet, &cell.text),
            };
            match source {
                Ok(source) => found.push((cell, source)),
                Err(fault) => problems.push(cell.problem(fault)),
            }
        }
        if !problems.is_empty() {
            return Err(SheetFilesError { sheet: title, problems }.into());
        }
        Ok(SheetOfFiles { input, title, contents, columns, cells: found })
    }
}

/// The contents of a sheet that a user gives, and the directory that its paths are relative to: for one that is no file, the current one.
fn read_given(name: &InputName, source: &InputSource) -> Result<(Vec<u8>, PathBuf), Error> {
    let path = match source {
        InputSource::Bytes(contents) => return Ok((contents.clone(), PathBuf::new())),
        InputSource::File(path) => path,
    };
    let read = || -> io::Result<_> {
        let mut contents = Vec::new();
        let mut file = File::open(path)?;
        file.read_to_end(&mut contents)?;
        let is_file = file.metadata()?.is_file();
        let dir = path.parent().filter(|_| is_file).unwrap_or(Path::new(""));
        Ok((contents, dir.to_owned()))
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
    let metadata = path
        .metadata()
        .and_then(|it| if it.is_file() { File::open(&path)?.metadata() } else { Ok(it) });
    match metadata {
        Ok(metadata) if metadata.is_file() || metadata.is_dir() => {
            Ok(CellSource::Given(InputSource::File(path)))
        }
        Ok(_) => {
            let hint = "write its contents into a file, and that path";
            Err(fault("it is neither a file nor a directory", Some(hint.to_owned())))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let other = "correct the path, which is relative to the sheet unless it begins with /";
            Err(fault(
                "there is no such file",
                Some(meant_or(nearest_path(dir, text).as_deref(), other)),
            ))
        }
        Err(error) => Err(fault(&error.to_string(), system_hints::for_reading(&path, &error))),
    }
}

/// The path of a file in the same directory that may be meant.
fn nearest_path(dir: &Path, text: &str) -> Option<String> {
    let (parent, name) = match text.rsplit_once('/') {
        Some((parent, name)) => (format!("{parent}/"), name),
        None => (String::new(), text),
    };
    let place = dir.join(&parent);
    let place = if place.as_os_str().is_empty() { Path::new(".") } else { &place };
    let names = fs::read_dir(place).ok()?.flatten();
    let names: Vec<String> = names.filter_map(|it| it.file_name().into_string().ok()).collect();
    Some(format!("{parent}{}", nearest(name, &names)?))
}

/// The file of a cell of a sheet of the task.
fn task_file(own: &DeferredFiles, sheet: &TaskPath, text: &str) -> Result<CellSource, SheetFault> {
    let path = own_path(sheet, text)?;
    let fault =
        |reason: String, hint| SheetFault::from(CellFault { path: text.to_owned(), reason, hint });
    let contents = own.find(&path).map_err(|error| fault(error.to_string(), error.hint()))?;
    let source = source_of(own, contents).map_err(|error| fault(error.to_string(), None))?;
    Ok(CellSource::Given(source))
}

impl SheetOfFiles {
    /// Returns the sheet that is the value: with the digests of its files, which are stored if `store` says so.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read, or the storage cannot be read or written; or if it does not have the file of a digest.
    pub(super) fn value(&self, storage: &Storage, store: bool) -> Result<InputSource, Error> {
        let (inputs, mut cells) = (storage.inputs(), HashMap::with_capacity(self.cells.len()));
        let (mut given, mut problems) = (Vec::new(), Vec::new());
        for (cell, source) in &self.cells {
            match source {
                CellSource::Given(source) => given.push((cell, source)),
                CellSource::Digest(digest) if inputs.unpacked(*digest)?.is_none() => {
                    problems.push(cell.problem(SheetFault::NoContents(cell.text.to_string())));
                }
                CellSource::Digest(_) => {}
            }
        }
        if !problems.is_empty() {
            return Err(SheetFilesError { sheet: self.title.clone(), problems }.into());
        }
        let sources: Vec<&InputSource> = given.iter().map(|(_, source)| *source).collect();
        let taken = inputs.look_together(&sources, [].into_iter(), |known| {
            take_in(&inputs, &sources, known, store)
        });
        let taken = taken.map_err(|error| self.name_cell(error))?;
        for ((cell, _), input) in given.iter().zip(taken) {
            let digest = cell_of_digest(&input.file.digest, &cell.text);
            cells.insert(Arc::clone(&cell.text), digest);
        }
        Ok(InputSource::Bytes(sheet_with_cells(&self.contents, &self.columns, &cells)))
    }

    /// The error of reading a file, with the place of its cell.
    fn name_cell(&self, error: StorageError) -> Error {
        let cell = self.cells.iter().find(|(_, source)| match source {
            CellSource::Given(InputSource::File(path)) => error.is_about(path),
            _ => false,
        });
        let Some((cell, _)) = cell else { return error.into() };
        let (path, reason, hint) = (cell.text.to_string(), error.to_string(), error.hint());
        let problems = vec![cell.problem(CellFault { path, reason, hint }.into())];
        SheetFilesError { sheet: self.title.clone(), problems }.into()
    }
}
