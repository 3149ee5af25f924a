//! Files of a task, and commits that it records, that are found while it is evaluated: their names depend on points of
//! a sweep.
//!
//! They are found like those that are loaded with the task, in the version that it was loaded from.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::{io, thread};

use ce_git::{Snapshot, Trees};
use ce_model::digest::ObjectId;
use ce_model::name::{TaskPath, TreeName};
use ce_model::task::{FileContents, LoadedFrom, RecordedTree, Task};

use super::problems::{LoadFault, Problems};
use super::source::TaskSource;
use super::values::TaskFiles;
use super::worktree::WorkTree;

/// Finds files of a task, in a thread of its own that keeps what it has read.
#[derive(Debug)]
pub struct DeferredFiles {
    dir: PathBuf,
    loaded_from: LoadedFrom,
    commit: String,
    trees: Trees,
    thread: Mutex<Option<Sender<FileRequest>>>,
}

enum FileRequest {
    File(TaskPath, Sender<Result<FileContents, LoadFault>>),
    Recorded(TreeName, Sender<Result<RecordedTree, LoadFault>>),
}

impl DeferredFiles {
    /// The files of a task in a directory.
    pub fn new(dir: &Path, task: &Task) -> Self {
        let (dir, loaded_from) = (dir.to_owned(), task.loaded_from.clone());
        let commit = task.commit.full().to_owned();
        let trees = Trees::new(&dir);
        Self { dir, loaded_from, commit, trees, thread: Mutex::default() }
    }

    /// Finds the contents of the file with this path.
    ///
    /// # Errors
    ///
    /// Fails if there is no such file, or it has changes that may not be evaluated.
    pub fn find(&self, path: &TaskPath) -> Result<FileContents, LoadFault> {
        self.ask(|answer| FileRequest::File(path.clone(), answer))
    }

    /// Returns the contents of a file in the commit.
    pub fn blob(&self, id: &ObjectId) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
        self.trees.blob(id)
    }

    /// Finds the commit of a repository that the task records.
    ///
    /// # Errors
    ///
    /// Fails if it records none, or the repository has changes that may not be evaluated.
    pub fn recorded(&self, name: &TreeName) -> Result<RecordedTree, LoadFault> {
        self.ask(|answer| FileRequest::Recorded(name.clone(), answer))
    }

    fn ask<T>(
        &self,
        request: impl Fn(Sender<Result<T, LoadFault>>) -> FileRequest,
    ) -> Result<T, LoadFault> {
        let (answer, answers) = mpsc::channel();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = match &*thread {
            Some(requests) => requests,
            None => thread.insert(self.spawn().map_err(LoadFault::Read)?),
        };
        drop(requests.send(request(answer)));
        drop(thread);
        answers.recv().unwrap_or(Err(LoadFault::Missing))
    }

    fn spawn(&self) -> io::Result<Sender<FileRequest>> {
        let (sender, requests) = mpsc::channel();
        let (dir, loaded_from) = (self.dir.clone(), self.loaded_from.clone());
        let commit = self.commit.clone();
        thread::Builder::new().name("files".to_owned()).spawn(move || {
            let Ok(dir) = dir.canonicalize() else { return };
            match loaded_from {
                LoadedFrom::WorkTree(uncommitted) => {
                    answer(&mut WorkTree::new(&dir, uncommitted), &requests);
                }
                LoadedFrom::Commit(moved) => {
                    let snapshot = Snapshot::open(&dir, &commit);
                    let snapshot = snapshot.and_then(|snapshot| match moved {
                        Some((submodule, commit)) => snapshot.with(&submodule, &commit),
                        None => Ok(snapshot),
                    });
                    if let Ok(mut snapshot) = snapshot {
                        answer(&mut snapshot, &requests);
                    }
                }
            }
        })?;
        Ok(sender)
    }
}

fn answer(source: &mut impl TaskSource, requests: &mpsc::Receiver<FileRequest>) {
    let mut files = TaskFiles::default();
    for request in requests {
        match request {
            FileRequest::File(path, answer) => drop(answer.send(find(source, &mut files, path))),
            FileRequest::Recorded(name, answer) => drop(answer.send(source.recorded(&name))),
        }
    }
}

fn find(
    source: &mut impl TaskSource,
    files: &mut TaskFiles,
    path: TaskPath,
) -> Result<FileContents, LoadFault> {
    let mut findings = Problems::default();
    match files.find(source, path.into(), &mut findings)? {
        Some(id) => Ok(files.all()[id.index()].contents.clone()),
        None => Err(findings.problems.pop().map_or(LoadFault::Missing, |problem| problem.fault)),
    }
}
