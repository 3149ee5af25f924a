//! What made a file, as a package tells it.

use jiff::Timestamp;
use serde::Serialize;

use crate::{Ancestor, History, OriginalExecution, Subject};
use ce_model::digest::Digest;
use ce_storage::{Record, Storage, StorageError};

/// What made a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FileMaker {
    /// An execution of a computation.
    Call {
        /// The computation.
        computation: String,
        /// The number of the output.
        output: usize,
        /// The commit with the computation, or the one below its uncommitted changes.
        commit: String,
        /// The computation had uncommitted changes.
        dirty: bool,
        /// What it has read, in order.
        inputs: Vec<MakerInput>,
        /// The end of the execution, or else the time of the record, if one is known.
        at: Option<Timestamp>,
        /// The host of the execution, if that is known.
        host: Option<String>,
    },
    /// A sweep: it is a table.
    Table,
    /// A user, or a Git repository: it is a task input.
    TaskInput,
    /// It is not known any more.
    Unknown,
}

/// An input of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MakerInput {
    /// Its file in the storage, if that has a record.
    pub file: Option<String>,
    /// Its digest.
    pub contents: Digest,
}

impl MakerInput {
    fn of(ancestor: &Ancestor<'_>) -> Self {
        let file = ancestor.subject.map(|subject| match &ancestor.member {
            Some(member) => format!("{}/{member}", subject.promise.name),
            None => subject.promise.name.clone(),
        });
        Self { file, contents: ancestor.digest }
    }
}

impl FileMaker {
    /// Finds what made a file. Of an output of a job, that is what made the file that the job took it from.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn of(
        storage: &Storage,
        history: &History,
        subject: Subject<'_>,
    ) -> Result<Self, StorageError> {
        Ok(match subject.record {
            Record::Table(_) => Self::Table,
            Record::TaskInput(_) => Self::TaskInput,
            Record::Job(_) => {
                let made = history.parents(storage, subject)?.into_iter().find_map(|it| it.subject);
                match made {
                    // A record that leads to a job, and not to what made it, could lead to itself.
                    Some(made) if !matches!(made.record, Record::Job(_)) => {
                        Self::of(storage, history, made)?
                    }
                    _ => Self::Unknown,
                }
            }
            Record::Call(call) => {
                let OriginalExecution { at, host, .. } = OriginalExecution::of(storage, call);
                Self::Call {
                    computation: call.computation.to_string(),
                    output: subject.number,
                    commit: call.commit.full().to_owned(),
                    dirty: call.dirty,
                    inputs: history.parents(storage, subject)?.iter().map(MakerInput::of).collect(),
                    at,
                    host,
                }
            }
        })
    }
}
