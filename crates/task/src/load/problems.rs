//! Problems and warnings of a task, which say what to correct.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::resource_fault::ResourceFault;
use super::warnings::{Warning, WarningKind};
use super::words::{files, having, inputs, listed, outputs, place, range};
use ce_git::{HeadError, SnapshotError};
use ce_model::expand::SweepFault;
use ce_model::task::access::RuleError;
use ce_model::task::name::NameError;
use ce_model::task::slice::{MAX_ARITY, SliceError};
use ce_model::task::template::NoText;
use ce_model::task::text::TextError;

/// A problem at a place in the task.
#[derive(Debug)]
pub struct Problem {
    /// The path, relative to the task.
    pub path: PathBuf,
    /// The line, counted from one.
    pub line: Option<usize>,
    /// The fault.
    pub fault: LoadFault,
}

/// Why computations are not isolated.
#[derive(Clone, Debug)]
pub struct Exposed {
    /// The reason.
    pub reason: String,
    /// Advice for the user.
    pub hint: Option<String>,
}

/// The kind of a problem.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadFault {
    /// A required file or directory does not exist.
    #[error("does not exist")]
    Missing,
    /// A file could not be read.
    #[error("cannot be read: {0}")]
    Read(#[source] io::Error),
    /// A directory or device stands where a file is expected.
    #[error("is not a file")]
    NotAFile,
    /// A file stands where a directory is expected.
    #[error("is not a directory")]
    NotADirectory,
    /// The file, or a line of it, is not a valid text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The word in `kind` is unknown.
    #[error("{0:?} is not a kind of node")]
    Kind(String),
    /// A name is not valid.
    #[error("{0}")]
    Name(#[source] NameError),
    /// There is no directory of this name in `computations/`.
    #[error("there is no computation {name:?}")]
    NoComputation {
        /// The requested name.
        name: String,
        /// The most similar name in the library.
        nearest: Option<String>,
    },
    /// `exec` may not be executed.
    #[error("is not executable")]
    NotExecutable,
    /// The task has no such input.
    #[error("the task has no input {name:?}")]
    NoInput {
        /// The requested name.
        name: String,
        /// The most similar name of an input.
        nearest: Option<String>,
    },
    /// Two inputs of the task have one name.
    #[error("the input {name:?} is also in line {line}")]
    Duplicate {
        /// The name.
        name: String,
        /// The line of its first occurrence.
        line: usize,
    },
    /// There are more inputs or outputs than two digits can number.
    #[error("lists {0}, and at most {MAX_ARITY} can be numbered")]
    TooMany(usize),
    /// The name of a directory in `inputs/` has no number.
    #[error("the name does not say which inputs it fills")]
    Place,
    /// A range that ends before it begins.
    #[error("the range ends before it begins")]
    Backwards,
    /// No directory fills some inputs.
    #[error("nothing fills {}", range(*first, *last))]
    Gap {
        /// The first one.
        first: usize,
        /// The last one.
        last: usize,
    },
    /// Two directories fill some inputs.
    #[error("{} is filled already", range(*first, *last))]
    Overlap {
        /// The first one.
        first: usize,
        /// The last one.
        last: usize,
    },
    /// A range and the slice that should fill it differ in length.
    #[error("passes up {} for {}", files(*width), inputs(*places))]
    Width {
        /// The number of files that the sub-workflow passes up.
        width: usize,
        /// The number of inputs in the range.
        places: usize,
    },
    /// The computation takes another number of inputs.
    #[error("{computation} takes {}, not {given}", inputs(*takes))]
    Arity {
        /// The computation's name.
        computation: String,
        /// The number of its inputs.
        takes: usize,
        /// The number of given inputs.
        given: usize,
    },
    /// A line of `outputs` chooses no output.
    #[error("{0}")]
    Slice(#[source] SliceError),
    /// A slice is empty.
    #[error("chooses no output")]
    NoOutput,
    /// A slice has an output that the computation does not have.
    #[error("{computation} has {}, so there is no {number:02}", outputs(*count))]
    OutOfSlice {
        /// The computation's name.
        computation: String,
        /// The number of its outputs.
        count: usize,
        /// The missing output.
        number: usize,
    },
    /// A link leads to a directory that contains it.
    #[error("leads back to {}, which contains it", .0.display())]
    Cycle(PathBuf),
    /// A link leads to a file that the task's commit does not record.
    #[error("leads out of the repository, to {}", .0.display())]
    Outside(PathBuf),
    /// An `exec` is not in the directory of its computation.
    #[error("leads out of the computation's directory: only files in it are exported")]
    Elsewhere,
    /// A file of the task has uncommitted changes.
    #[error("has uncommitted changes")]
    UncommittedFile,
    /// A directory of the task stands where a file of it is expected.
    #[error("is a directory, and no file of the task")]
    OwnDirectory,
    /// The task has no file with this path.
    #[error("the task has no file {0:?}")]
    NoFile(String),
    /// The value of a node is wrong with the texts of its free names.
    #[error("{value:?} where {}: {fault}", texts.join(", "))]
    Bound {
        /// The value as it is written.
        value: String,
        /// The names with their texts, in words.
        texts: Vec<String>,
        /// The fault.
        fault: Box<Self>,
    },
    /// A computation has other inputs or outputs than the one at another point of a sweep.
    #[error("{}", computations.each_ref().map(|it| having(it, what)).join("; "))]
    OtherSignature {
        /// Whether they are inputs or outputs.
        what: &'static str,
        /// Both computations, each with the names of these.
        computations: Box<[(String, Vec<String>); 2]>,
    },
    /// An input has no text that could stand in the value of a node.
    #[error("{value:?} cannot have the text of the input {name}: {fault}")]
    InputText {
        /// The value as it is written.
        value: String,
        /// The name of the input.
        name: String,
        /// The fault.
        fault: NoText,
    },
    /// The repository of the task has another HEAD than before.
    #[error("is at another commit than it was when the task was loaded")]
    Moved,
    /// The task records no commit of a repository.
    #[error("the task has no submodule {0:?}: no commit of it is recorded")]
    NoSubmodule(String),
    /// A computation or another repository has uncommitted changes.
    #[error("has uncommitted changes: {}", listed(.0))]
    Uncommitted(Vec<PathBuf>),
    /// Only an external filter could tell whether files of a computation are as committed.
    #[error(
        "may have uncommitted changes: only the filter {filter:?} could tell, and filters are not \
         started: {}",
        listed(files)
    )]
    Filtered {
        /// The files.
        files: Vec<PathBuf>,
        /// The name of the filter.
        filter: String,
    },
    /// An external filter has changed a file that is read when it was checked out.
    #[error(
        "has a file {} that differs from the commit: the filter {filter:?} has changed it",
        file.display()
    )]
    Converted {
        /// The file.
        file: PathBuf,
        /// The name of the filter.
        filter: String,
    },
    /// It cannot be read from the commit.
    #[error("{0}")]
    Snapshot(#[source] SnapshotError),
    /// A line of `access` is not valid.
    #[error("{0}")]
    Rule(#[from] RuleError),
    /// A line of `access` names an input that the computation does not have.
    #[error("the computation has no input {name:?}")]
    NoLabel {
        /// The name.
        name: String,
        /// The most similar name of an input.
        nearest: Option<String>,
    },
    /// A path granted by `access` does not exist on this host.
    #[error("{} does not exist on this host", .0.display())]
    NotHere(PathBuf),
    /// A computation has a root of its own, and is not isolated.
    #[error("the line {line:?} takes isolation, {}", exposed.reason)]
    Exposed {
        /// The line of `access`.
        line: String,
        /// Why it is not isolated.
        exposed: Exposed,
    },
    /// Something is wrong with a sweep.
    #[error("{0}")]
    Sweep(Box<SweepFault>),
    /// A line of `resources` is not valid.
    #[error("{0}")]
    Resource(Box<ResourceFault>),
    /// The commit is unknown.
    #[error("{0}")]
    Head(#[from] HeadError),
}

impl LoadFault {
    /// The fault of a file that is much larger than it should be, of so many bytes at most.
    pub(super) fn too_large(most: u64) -> Self {
        let what = format!("more than {} MiB", most >> 20);
        Self::Read(io::Error::new(io::ErrorKind::FileTooLarge, what))
    }

    pub(super) fn read(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::NotADirectory => Self::NotADirectory,
            _ => Self::Read(error),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", place(&self.path, self.line), self.fault)
    }
}

/// Collects problems and warnings during a load.
#[derive(Default)]
pub(super) struct Problems {
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Warning>,
}

impl Problems {
    pub(super) fn problem(&mut self, path: &Path, fault: impl Into<LoadFault>) {
        self.problem_in_line(path, 0, fault);
    }

    /// Adds a problem in a line, counted from one. Line zero is the whole file.
    pub(super) fn problem_in_line(
        &mut self,
        path: &Path,
        line: usize,
        fault: impl Into<LoadFault>,
    ) {
        let (line, fault) = ((line > 0).then_some(line), fault.into());
        let is_told = |it: &Problem| {
            matches!(it.fault, LoadFault::Head(_)) && it.fault.to_string() == fault.to_string()
        };
        // The repository of the task is that of its computations.
        if matches!(fault, LoadFault::Head(_)) && self.problems.iter().any(is_told) {
            return;
        }
        self.problems.push(Problem { path: path.to_owned(), line, fault });
    }

    pub(super) fn warning(&mut self, path: &Path, oddity: WarningKind) {
        self.warnings.push(Warning { path: path.to_owned(), oddity });
    }

    /// Returns the value of a result, or adds its problem.
    pub(super) fn note<T>(&mut self, path: &Path, result: Result<T, LoadFault>) -> Option<T> {
        result.map_err(|fault| self.problem(path, fault)).ok()
    }

    /// Returns the lines of a list, or adds their problems.
    pub(super) fn note_lines(
        &mut self,
        path: &Path,
        lines: Result<Vec<String>, Vec<(usize, LoadFault)>>,
    ) -> Option<Vec<String>> {
        let faults = match lines {
            Ok(lines) => return Some(lines),
            Err(faults) => faults,
        };
        for (line, fault) in faults {
            self.problem_in_line(path, line, fault);
        }
        None
    }

    /// Sorts problems and warnings by file.
    pub(super) fn sort(&mut self) {
        self.problems.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
        self.warnings.sort();
    }
}
