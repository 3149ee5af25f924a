//! Problems and warnings of a task, which say what to correct.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use ce_files::walk::GrantError;
use ce_git::{AbsentLfsObject, HeadError, SnapshotError};
use ce_model::access::RuleError;
use ce_model::declaration::DeclarationError;
use ce_model::exit::Explain;
use ce_model::expression::{Excerpt, Fault, Mistake, unknown_name_hint};
use ce_model::humanize::counted;
use ce_model::leftovers::is_leftover;
use ce_model::name::NameError;
use ce_model::resources::{AmountError, Resource};
use ce_model::slice::{MAX_ARITY, SliceError};
use ce_model::suggest::meant_or;
use ce_model::sweep::{Lookalike, SweepFault};
use ce_model::system_hints::exhausted_limit_behind;
use ce_model::task::WORKFLOW_TEXT;
use ce_model::template::NoText;
use ce_model::text_file::TextError;

use super::LoadError;

/// A problem at a place in the task.
#[derive(Debug)]
pub struct Problem {
    /// The path, relative to the task.
    pub path: PathBuf,
    /// The line, counted from one.
    pub line: Option<usize>,
    /// The line of the text around it, if it is in the text of a workflow.
    pub excerpt: Option<Box<Excerpt>>,
    pub fault: LoadFault,
}

/// The reason why computations are not isolated.
#[derive(Clone, Debug)]
pub struct Exposed {
    pub reason: String,
    /// Advice for the user.
    pub hint: Option<String>,
}

/// The kind of a problem.
#[derive(Debug, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum LoadFault {
    /// A required file or directory does not exist.
    #[error("does not exist")]
    #[hint("make it, or git restore it if it was removed by mistake")]
    Missing,
    /// A file could not be read.
    #[error("cannot be read: {0}")]
    #[hint("ls -l shows what it is, and who may read it")]
    Read(#[source] io::Error),
    /// A directory or device stands where a file is expected.
    #[error("is not a file")]
    #[hint("replace it by a file")]
    NotAFile,
    /// A file stands where a directory is expected.
    #[error("is not a directory")]
    #[hint("replace it by a directory")]
    NotADirectory,
    /// The file, or a line of it, is not a valid text.
    #[error(transparent)]
    #[hint(_0.hint())]
    Text(#[from] TextError),
    /// A task has a workflow in both forms.
    #[error("the task has {0}, too: its workflow is one text, or directories")]
    #[hint("remove one of the two")]
    TwoForms(&'static str),
    /// The text of a workflow has a mistake.
    #[error("{0}")]
    #[hint(_0.hint())]
    Mistake(Box<Fault>),
    /// A label names an input that is filled by another expression.
    #[error("the label {label:?} stands before the input {place:?}")]
    #[hint("put the expressions into the order of the inputs")]
    LabelPlace {
        label: String,
        /// The input, or inputs, of the place.
        place: String,
    },
    /// The word in `kind` is unknown.
    #[error("{0:?} is not a kind of node")]
    #[hint("write computation, input, literal, file, text, tree, member, all, sweep or points")]
    Kind(String),
    /// A name is not valid.
    #[error("{0}")]
    #[hint(_0.hint())]
    Name(#[source] NameError),
    /// There is no directory of this name in `computations/`, and no program.
    #[error("there is no computation {name:?}")]
    #[hint(Some(meant_or(nearest.as_deref(), missing_computation_hint(name))))]
    NoComputation {
        /// The requested name.
        name: String,
        /// The most similar name in the library.
        nearest: Option<String>,
    },
    /// Several things in `computations/` are the computation of this name.
    #[error("{name} is {}: a name stands for one computation", files.join(" and "))]
    #[hint("give each a name of its own, or chmod -x a file that is not a computation")]
    SeveralComputations {
        name: String,
        /// Their names in `computations/`, or their places.
        files: Vec<String>,
    },
    /// The declaration of a computation in one file is not valid.
    #[error("{0}")]
    #[hint(_0.hint())]
    Declaration(#[from] DeclarationError),
    /// What executes a program cannot read it.
    #[error("the program cannot be read: {0}")]
    #[hint("correct this line, or one above it")]
    Program(String),
    /// `exec` may not be executed.
    #[error("is not executable")]
    #[hint("chmod +x, and commit the change of mode")]
    NotExecutable,
    /// The task has no such input.
    #[error("the task has no input {name:?}")]
    #[hint(Some(meant_or(nearest.as_deref(), unknown_name_hint(name))))]
    NoInput {
        /// The requested name.
        name: String,
        /// The most similar name of an input.
        nearest: Option<String>,
    },
    /// A definition cannot have a name.
    #[error("{0:?} cannot be the name of a definition")]
    #[hint("rename it")]
    DefinitionName(String),
    /// A definition has the name of something else, which is said.
    #[error("{0:?} is {1}, and cannot be defined")]
    #[hint("rename it")]
    DefinedName(String, &'static str),
    /// Two inputs of the task have one name.
    #[error("the input {name:?} is also in line {line}")]
    #[hint("rename it")]
    Duplicate {
        name: String,
        /// The line of its first occurrence.
        line: usize,
    },
    /// There are more inputs or outputs than two digits can number.
    #[error("lists more than {MAX_ARITY} entries")]
    #[hint("put them into a directory, which is one value")]
    TooMany,
    /// The name of a directory in `inputs/` has no number.
    #[error("the name does not say which inputs it fills")]
    #[hint("call it nn-text or nn_mm-text, as in 00-left or 01_02-both")]
    Place,
    /// A range that ends before it begins.
    #[error("the range ends before it begins")]
    #[hint("write the smaller number first, as in 01_02-both")]
    Backwards,
    /// No directory fills some inputs.
    #[error("nothing fills {}", range(*first, *last))]
    #[hint("number the inputs from 00, without gap")]
    Gap {
        /// The first one.
        first: usize,
        /// The last one.
        last: usize,
    },
    /// Two directories fill some inputs.
    #[error("{} is filled already", range(*first, *last))]
    #[hint("number the inputs from 00, without gap")]
    Overlap {
        /// The first one.
        first: usize,
        /// The last one.
        last: usize,
    },
    /// A range and the slice that should fill it differ in length.
    #[error("passes up {} for {}", files(*width), inputs(*places))]
    #[hint("change the range in the name, or the file outputs of the sub-workflow")]
    Width {
        /// The number of files that the sub-workflow passes up.
        width: usize,
        /// The number of inputs in the range.
        places: usize,
    },
    /// The computation takes another number of inputs.
    #[error("{computation} takes {}, not {given}", inputs(takes.len()))]
    #[hint((!takes.is_empty()).then(|| format!("its inputs are {}", takes.join(", "))))]
    Arity {
        /// The computation's name.
        computation: String,
        /// The names of its inputs.
        takes: Vec<String>,
        /// The number of given inputs.
        given: usize,
    },
    /// A line of `outputs` chooses no output.
    #[error("{0}")]
    #[hint(_0.hint())]
    Slice(#[source] SliceError),
    /// A slice is empty.
    #[error("chooses no output")]
    #[hint("leave out the slice to pass up all outputs")]
    NoOutput,
    /// A slice has an output that the computation does not have.
    #[error("{computation} has {}, so there is no {number:02}", outputs(*count))]
    #[hint("outputs are numbered from 00")]
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
    #[hint("remove the link")]
    Cycle(PathBuf),
    /// A link leads to a file that the task's commit does not record.
    #[error("leads out of the repository, to {}", .0.display())]
    #[hint("link only to what is committed with the task")]
    Outside(PathBuf),
    /// An `exec` is not in the directory of its computation.
    #[error("leads out of the computation's directory: only files in it are exported")]
    #[hint("commit a file there that does the same, instead of the link")]
    Elsewhere,
    /// A file of the task has uncommitted changes.
    #[error("has uncommitted changes")]
    #[hint("git add and git commit it, or evaluate with --dirty")]
    UncommittedFile,
    /// A file of `choices/` has fewer than two lines.
    #[error("there are fewer than two choices")]
    #[hint(
        "write the texts that the input may have, one a line, the default first; a file in defaults/ is a default alone"
    )]
    NoChoices,
    /// An input has both.
    #[error("the input has a file in defaults, too")]
    #[hint("remove that: the first choice is the default")]
    ChoicesAndDefault,
    /// A directory of the task stands where a file of it is expected.
    #[error("is a directory, not a file of the task")]
    #[hint("read it as a tree: TREE('.:PATH'), with its path from the top of the repository")]
    OwnDirectory,
    /// The task has no file with this path.
    #[error("the task has no file {path:?}")]
    #[hint(Some(meant_or(nearest.as_deref(), missing_file_hint(path))))]
    NoFile {
        path: String,
        /// The path of a file of it that may be meant.
        nearest: Option<String>,
    },
    /// The value of a node is wrong with the texts of its free names.
    #[error("{value:?} where {}: {fault}", texts.join(", "))]
    #[hint(fault.bound_hint())]
    Bound {
        /// The value as it is written.
        value: String,
        /// The names with their texts, in words.
        texts: Vec<String>,
        fault: Box<Self>,
    },
    /// A computation has other inputs or outputs than the one at another point of a sweep.
    #[error("{}", computations.each_ref().map(|(name, names)| having(name, names, what)).join("; "))]
    #[hint(
        "give all computations that the name leads to the same {what}, or remove what leads to one: a choice of an input, or points, by \
         :exclude (exclude.tsv)"
    )]
    OtherSignature {
        /// Whether they are inputs or outputs.
        what: &'static str,
        /// Both computations, each with the names of its inputs or outputs.
        computations: Box<[(String, Vec<String>); 2]>,
    },
    /// An input has no text that could stand in the value of a node.
    #[error("{value:?} cannot have the text of the input {name}: {fault}")]
    #[hint("give the input one line of UTF-8 text")]
    InputText {
        /// The value as it is written.
        value: String,
        /// The name of the input.
        name: String,
        fault: NoText,
    },
    /// The task records no commit of a repository.
    #[error("the task has no submodule {0:?}: no commit of it is recorded")]
    #[hint("name a commit: TREE('LIB' 'v1'), or inputs/00-revision")]
    NoSubmodule(String),
    /// The next commit of a repository would have no directory with this path.
    #[error("{path} {} in the work tree", fault.of_directory())]
    #[hint(fault.hint())]
    Tree {
        /// The path in the repository.
        path: String,
        /// The entry that stands there.
        fault: Box<SnapshotError>,
    },
    /// A computation or another repository has uncommitted changes.
    #[error("has uncommitted changes: {}", listed(.0))]
    #[hint("{}", committing(_0))]
    Uncommitted(Vec<PathBuf>),
    /// Only an external filter could tell whether files of a computation are as committed.
    #[error(
        "may have uncommitted changes: only the filter {filter:?} could tell, and filters are not \
         started: {}",
        listed(files)
    )]
    #[hint("run git status: it starts the filter, and notes unchanged files in the index")]
    Filtered {
        files: Vec<PathBuf>,
        /// The name of the filter.
        filter: String,
    },
    /// An external filter has changed a file when it was checked out.
    #[error(
        "has other contents in the work tree than in the commit: the filter {0:?} has converted it"
    )]
    #[hint("write -filter for it in .gitattributes, and commit the contents that count")]
    Converted(String),
    /// A computation has a file that Git LFS keeps elsewhere.
    #[error("has the file {}, which Git LFS keeps elsewhere: exec would read its pointer", .0.display())]
    #[hint(
        "give the file to exec as an input, such as OWN('PATH'), or commit it without the filter lfs"
    )]
    Pointer(PathBuf),
    /// A link leads to a text with computations that would not be found again.
    #[error("the name of {}, in which computations stand, does not end in .ce", .0.display())]
    #[hint("rename it, and let the link workflow.ce lead to the new name")]
    TextName(PathBuf),
    /// The contents of a file that Git LFS keeps are not in this clone.
    #[error("{0}")]
    #[hint(_0.hint())]
    LargeFile(#[from] AbsentLfsObject),
    /// It cannot be read from the commit.
    #[error("{0}")]
    #[hint(_0.hint())]
    Snapshot(#[source] SnapshotError),
    /// A line of `access` is not valid.
    #[error("{0}")]
    #[hint(_0.hint())]
    Rule(#[from] RuleError),
    /// A line of `access` names an input that the computation does not have.
    #[error("the computation has no input {name:?}")]
    #[hint(Some(meant_or(nearest.as_deref(), "name a line of the computation's file inputs")))]
    NoLabel {
        name: String,
        /// The most similar name of an input.
        nearest: Option<String>,
    },
    /// A path granted by `access` leads where it may not.
    #[error("{0}")]
    #[hint(_0.hint())]
    Grant(#[from] GrantError),
    /// A path granted by `access` does not exist on this host.
    #[error("{} does not exist on this host", .0.display())]
    #[hint("install it where the line says, or commit another line")]
    NotHere(PathBuf),
    /// A computation has a root of its own, and is not isolated.
    #[error("the line {line:?} takes isolation, {}", exposed.reason)]
    #[hint(exposed.hint.clone())]
    Exposed {
        /// The line of `access`.
        line: String,
        /// The reason why it is not isolated.
        exposed: Exposed,
    },
    /// Something is wrong with a sweep.
    #[error("{0}")]
    #[hint(_0.hint())]
    Sweep(Box<SweepFault>),
    /// A line of `resources` is not valid.
    #[error("{0}")]
    #[hint(_0.hint())]
    Resource(Box<ResourceFault>),
    /// The commit is unknown.
    #[error("{0}")]
    #[hint(_0.hint())]
    Head(#[from] HeadError),
}

impl LoadFault {
    /// The fault of a file that has more than this number of bytes.
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
        write!(f, "{}: {}", place(&self.path, self.line), self.fault)?;
        self.excerpt.as_ref().map_or(Ok(()), |excerpt| write!(f, "\n{excerpt}"))
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
        let line = (line > 0).then_some(line);
        self.add(Problem { path: path.to_owned(), line, excerpt: None, fault: fault.into() });
    }

    pub(super) fn add(&mut self, problem: Problem) {
        let fault = &problem.fault;
        // The task and its computations have the same repository.
        if matches!(fault, LoadFault::Head(_))
            && self.problems.iter().any(|it| {
                matches!(it.fault, LoadFault::Head(_)) && it.fault.to_string() == fault.to_string()
            })
        {
            return;
        }
        self.problems.push(problem);
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

    /// Adds the mistakes of the text of a workflow.
    pub(super) fn mistakes(&mut self, mistakes: Vec<Mistake>) {
        for Mistake { position, fault, excerpt } in mistakes {
            let (path, line) = (WORKFLOW_TEXT.into(), Some(position.line));
            let excerpt = Some(Box::new(excerpt));
            self.add(Problem { path, line, excerpt, fault: LoadFault::Mistake(Box::new(fault)) });
        }
    }

    /// Fails if the task in a directory has problems.
    pub(super) fn end(self, dir: &Path) -> Result<(), LoadError> {
        if self.problems.is_empty() { Ok(()) } else { Err(self.into_error(dir)) }
    }

    /// The error of a task that has these problems.
    pub(super) fn into_error(mut self, dir: &Path) -> LoadError {
        self.sort();
        let Self { problems, warnings } = self;
        LoadError::Problems { path: dir.to_owned(), problems, warnings }
    }

    /// Sorts problems and warnings by file.
    pub(super) fn sort(&mut self) {
        self.problems.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
        self.warnings.sort();
    }
}

/// What to try if a name in the workflow leads to no computation, and is similar to none.
fn missing_computation_hint(name: &str) -> &'static str {
    if name.contains('{') {
        "in braces, only a factor of a sweep around the node stands for its levels"
    } else {
        "if computations/ is a submodule: git submodule update --init --recursive; if a link, check where it leads"
    }
}

/// What to try if a path in the workflow leads to no file of the task, and is similar to none.
fn missing_file_hint(path: &str) -> &'static str {
    if path.contains('{') {
        "in braces, only names of inputs of the task and of sweeps around the node stand for texts; list what computed points bind in :names"
    } else {
        "correct the path, which is relative to the task, or commit the file"
    }
}

impl LoadFault {
    /// A hint for the user, if this is the fault of a value with the texts of its names.
    fn bound_hint(&self) -> Option<String> {
        match self {
            Self::NoComputation { nearest, .. } => {
                let meant = nearest.as_ref().map(|name| format!("did you mean {name:?}? else "));
                let meant = meant.unwrap_or_default();
                Some(format!(
                    "{meant}make it, or remove what leads to it: a choice of an input, or points, by :exclude (exclude.tsv)"
                ))
            }
            _ => self.hint(),
        }
    }
}

impl LoadFault {
    /// Whether the source is wrong, even if files and computations that it names are missing.
    pub(super) fn is_of_writing(&self) -> bool {
        match self {
            Self::Mistake(_)
            | Self::Name(_)
            | Self::NoInput { .. }
            | Self::Arity { .. }
            | Self::Slice(_)
            | Self::OutOfSlice { .. }
            | Self::TooMany
            | Self::OtherSignature { .. } => true,
            Self::Bound { fault, .. } => fault.is_of_writing(),
            _ => false,
        }
    }

    /// Whether a limit of processes, memory or open files is the cause.
    pub(super) fn is_shortage(&self) -> bool {
        match self {
            Self::Head(error) => exhausted_limit_behind(error).is_some(),
            Self::Snapshot(SnapshotError::Git(source)) => {
                exhausted_limit_behind(&**source).is_some()
            }
            _ => false,
        }
    }
}

/// A harmless oddity at a place in the task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// The path, relative to the task.
    pub path: PathBuf,
    pub oddity: WarningKind,
}

/// The kind of a warning.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum WarningKind {
    /// A file is not read where it is.
    #[error("nothing reads this")]
    #[hint("remove it, or correct its name")]
    Unread,
    /// Git ignores a file in the directory of a computation.
    #[error("is ignored by Git: no commit records it, and no exec sees it")]
    #[hint("move it elsewhere, or take its name out of .gitignore and commit it")]
    Ignored,
    /// Files have uncommitted changes.
    #[error("has uncommitted changes: {}", listed(.0))]
    #[hint("{}", committing(_0))]
    Uncommitted(Vec<PathBuf>),
    /// Nothing needs a definition.
    #[error("nothing needs {0:?}, which is defined here; the names in it are not checked")]
    #[hint("remove it, or name it in the workflow")]
    Unneeded(String),
    /// There are lines after the first one.
    #[error("only the first line is read")]
    #[hint("remove the other lines")]
    MoreLines,
    /// Two texts of a column look like one number, and are two levels.
    #[error(
        "{:?} and {:?} of {} are different texts, and so different levels",
        .0.first, .0.second, .0.column
    )]
    #[hint("spell them alike if one level is meant")]
    Lookalike(Lookalike),
    /// The only level of a factor looks like a range.
    #[error("{0:?} is one level, and no range")]
    #[hint("for a range, write 1..8 without quotes in a text, or each number in a line of a list")]
    NoRange(String),
    /// A comment looks like a part of the workflow.
    #[error("what stands behind ; is a comment, and looks like a part of the workflow")]
    #[hint("remove the ; if it is to count")]
    CodeInComment,
    /// Rules leave out all points.
    #[error("no point is left: the table is empty")]
    #[hint(
        "leave out fewer points, or add some, and spell texts as the levels: ce table shows what is excluded"
    )]
    NoPoints,
    /// No point is left for a choice.
    #[error("with {0}, no point is left: the table is empty")]
    #[hint("remove the choice, or add a level for it")]
    NoPointsOf(String),
    /// A sheet ends in rows of empty cells, which are no points.
    #[error("{} at the end {} empty cells only, and {} left out", counted(*_0, "row"), if *_0 == 1 { "has" } else { "have" }, if *_0 == 1 { "is" } else { "are" })]
    #[hint("remove them from the sheet: a spreadsheet keeps rows that were cleared")]
    BlankRows(usize),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", place(&self.path, None), self.oddity)
    }
}

/// The fault of a line of a file `resources`.
#[derive(Debug, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum ResourceFault {
    /// It begins with another word.
    #[error("{word:?} is not a resource")]
    #[hint(Some(unknown_resource_hint(word, nearest.as_deref())))]
    Word {
        word: String,
        /// The most similar word.
        nearest: Option<String>,
    },
    /// It does not say how much.
    #[error("the line has no amount")]
    #[hint("write a line such as {}", _0.example())]
    NoAmount(Resource),
    /// The amount is to be the text of a file.
    #[error(transparent)]
    #[hint(_0.hint())]
    File(Box<SweepFault>),
    /// The line has an amount that cannot be parsed.
    #[error(transparent)]
    #[hint(_0.hint())]
    Amount(#[from] AmountError),
    /// The line has an amount, but its resource takes none.
    #[error("nothing may follow the word {}", _0.word())]
    #[hint("write the word {} alone", _0.word())]
    Rest(Resource),
    /// Another line asks for the same.
    #[error("line {0} asks for the same resource")]
    #[hint("keep one of them")]
    Twice(usize),
    /// A line of the task begins with no name of a computation.
    #[error("the line does not say which computation it is for")]
    #[hint("write NAME {}, with the name of a computation", _0.example())]
    NoComputation(Resource),
    /// A name in braces is not known.
    #[error("{{{name}}} is neither an input of the task nor bound by a sweep around the node {}", node.display())]
    #[hint(Some(meant_or(
        nearest.as_deref(),
        "name an input of the task, a factor, or a column of computed points that :names lists; or write a number"
    )))]
    NoName {
        name: String,
        /// The most similar name.
        nearest: Option<String>,
        /// The node, relative to the task.
        node: PathBuf,
    },
}

/// What to try if a line begins with a word that is not a resource.
fn unknown_resource_hint(word: &str, nearest: Option<&str>) -> String {
    if let Some((word, amount)) = word.split_once(['=', ':'])
        && Resource::of_word(word).is_some()
    {
        return format!("write {word} {amount}");
    }
    let examples: Vec<&str> = Resource::ALL.map(Resource::example).into();
    meant_or(nearest, format!("write a line such as {}", examples.join(", ")))
}

/// The greatest number of files that are named.
const MAX_NAMED: usize = 10;

/// Lists the first files, and counts the others.
pub fn listed(paths: &[PathBuf]) -> String {
    let name = |path: &PathBuf| {
        let name = path.display().to_string();
        if name.contains(char::is_control) { format!("{name:?}") } else { name }
    };
    let mut names: Vec<String> = paths.iter().map(name).collect();
    if names.len() > MAX_NAMED {
        let more = names.split_off(MAX_NAMED - 1).len();
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

/// A number of files.
pub(super) fn files(count: usize) -> String {
    counted(count, "file")
}

/// A number of inputs.
pub(super) fn inputs(count: usize) -> String {
    counted(count, "input")
}

/// A number of outputs.
pub(super) fn outputs(count: usize) -> String {
    counted(count, "output")
}

/// A computation and the names of its inputs or outputs.
pub(super) fn having(name: &str, names: &[String], what: &str) -> String {
    if names.is_empty() {
        return format!("{name} has no {what}");
    }
    format!("{name} has the {what} {}", names.join(", "))
}

/// The inputs from one number to another.
pub(super) fn range(first: usize, last: usize) -> String {
    if first == last {
        format!("input {first:02}")
    } else {
        format!("inputs {first:02} to {last:02}")
    }
}

/// A place in the task, in words.
pub(super) fn place(path: &Path, line: Option<usize>) -> String {
    let path = if path.as_os_str().is_empty() { Path::new("the task") } else { path };
    match line {
        Some(line) => format!("{}:{line}", path.display()),
        None => path.display().to_string(),
    }
}

/// Returns advice for files with uncommitted changes. Files that an editor or an interpreter has left are not meant to be
/// committed.
fn committing(files: &[PathBuf]) -> &'static str {
    match files.iter().filter(|path| is_leftover(path)).count() {
        0 => "git add and git commit them, or evaluate with --dirty",
        left if left == files.len() => {
            "remove what other programs have left there, or name it in .gitignore"
        }
        _ => {
            "remove what other programs have left there, or name it in .gitignore; git add and git commit the others, or evaluate with --dirty"
        }
    }
}
