//! The values of a plan that no call makes, as far as they were made, and their sources.

use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::ValueError;
use ce_git::SourceRepositories;
use ce_model::name::TaskPath;
use ce_model::plan::{Derivation, DerivedId};
use ce_model::sweep;
use ce_model::task::{FileContents, Task};
use ce_storage::{Input, InputSource, OpenedValue};
use ce_task::load::DeferredFiles;

/// A derived value.
#[derive(Debug)]
pub(super) enum DerivedValue {
    /// A Git tree and its commit.
    Tree(TreeValues),
    /// A file or directory: within a directory, or one that is written, or of the task.
    File(Input),
}

/// The values of a Git tree.
#[derive(Debug)]
pub struct TreeValues {
    /// The commit, or the version of the uncommitted changes on top of it, in full.
    pub version: String,
    /// The revision that named it, if it was not a full commit id: it may name another commit tomorrow.
    pub revision: Option<String>,
    /// The directory, and the file with the version.
    pub(super) files: [Input; 2],
}

/// A derived value, or why it could not be made.
type MadeValue = Result<DerivedValue, Arc<ValueError>>;

/// The derived values of a plan, and their sources.
#[derive(Debug)]
pub(super) struct DerivedValues {
    /// The repositories that the task reads.
    pub(super) sources: Arc<SourceRepositories>,
    /// Whether a file of the task that was found while it was evaluated has changes that no commit records.
    pub(super) is_changed: AtomicBool,
    /// The files of the task that are found while it is evaluated.
    pub(super) later: DeferredFiles,
    /// The values, once they were made.
    pub(super) made: boxcar::Vec<OnceLock<MadeValue>>,
    /// The directories whose members are read, by name.
    pub(super) opened: Mutex<HashMap<String, Arc<OpenedValue>>>,
}

impl DerivedValues {
    /// None yet, of a task that reads these repositories.
    pub(super) fn new(task: &Task, sources: impl Into<Arc<SourceRepositories>>) -> Self {
        let sources = sources.into();
        Self {
            is_changed: AtomicBool::new(false),
            later: DeferredFiles::new(sources.task_directory(), task),
            made: boxcar::Vec::new(),
            opened: Mutex::default(),
            sources,
        }
    }

    /// Grows the list to the plan's number of derived values. One thread at a time may do this.
    pub(super) fn grow(&self, count: usize) {
        for _ in self.made.count()..count {
            self.made.push(OnceLock::new());
        }
    }

    /// A derived value, or why it could not be made. `None` as long as nothing wanted it.
    pub(super) fn get(&self, value: DerivedId) -> Option<Result<&DerivedValue, &ValueError>> {
        Some(self.made.get(value.index())?.get()?.as_ref().map_err(|error| &**error))
    }

    /// The file or directory of a derived source.
    pub(super) fn input(&self, value: DerivedId, number: u8) -> Option<&Input> {
        match self.get(value)?.ok()? {
            DerivedValue::Tree(values) => values.files.get(usize::from(number)),
            DerivedValue::File(input) => Some(input),
        }
    }

    /// The contents of a file that is derived from no other value.
    pub(super) fn source(&self, task: &Task, how: &Derivation) -> Result<InputSource, ValueError> {
        match how {
            Derivation::Text { contents, .. } => {
                Ok(InputSource::Bytes(contents.as_bytes().to_vec()))
            }
            Derivation::Points(points) => {
                let product = &task.sweeps[points.index()].product;
                // Loading the task has checked that it is not empty.
                let points = sweep::points(product).unwrap_or_default();
                let mut contents = Vec::new();
                // Writing to memory never fails.
                drop(points.write_ndjson(&mut contents));
                Ok(InputSource::Bytes(contents))
            }
            Derivation::File(path) => self.later_file(path),
            Derivation::Wrong(wrong) => Err(ValueError::Wrong(wrong.clone())),
            Derivation::Tree(..)
            | Derivation::Member(_)
            | Derivation::Literal(_)
            | Derivation::Contents(_) => {
                debug_assert!(false, "it is derived from a value, or from the storage");
                Ok(InputSource::Bytes(Vec::new()))
            }
        }
    }

    /// Finds a file of the task whose path depends on a point.
    fn later_file(&self, path: &TaskPath) -> Result<InputSource, ValueError> {
        let contents = self.later.find(path);
        let error = |fault| ValueError::OwnFile { path: path.to_string(), fault };
        let lost = || error("the directory of the task is gone".into());
        let is_gone = !self.sources.task_directory().exists();
        let contents = contents.map_err(|it| if is_gone { lost() } else { error(it.into()) })?;
        if let FileContents::Uncommitted(_) = contents {
            self.is_changed.store(true, Ordering::Relaxed);
        }
        source_of(&self.later, contents).map_err(error)
    }
}

/// Returns where the contents of a file of the task come from that was found while it was evaluated.
///
/// # Errors
///
/// Fails if Git's data cannot be read.
pub(crate) fn source_of(
    files: &DeferredFiles,
    contents: FileContents,
) -> Result<InputSource, Box<dyn Error + Send + Sync>> {
    match contents {
        FileContents::Blob(id) => Ok(InputSource::Bytes(files.blob(&id)?)),
        FileContents::Written(text) => Ok(InputSource::Bytes(text.as_bytes().to_vec())),
        FileContents::Large(path) | FileContents::Uncommitted(path) => Ok(InputSource::File(path)),
        FileContents::Unbound => Err(Box::from("its path is not known")),
    }
}
