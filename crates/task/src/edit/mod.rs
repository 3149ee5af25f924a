//! Making and changing tasks in a work tree: from nothing, or from the other form of the workflow.
//!
//! All is written aside and moved to its place when it is whole. Nothing is lost: files that Git has not recorded, or that
//! a text cannot express, are replaced only by force. Nothing is committed here.

mod convert;
mod init;
mod library;

pub use self::convert::{Force, WorkflowForm, convert};
pub use self::init::{Created, init, init_directories, is_file};
pub use self::library::{
    AddedComputation, ChangedFile, LIBRARY_COMPUTATIONS, LibraryComputation, add, compare,
};

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ce_files::directory_writer::DirectoryWriter;
use ce_files::umask;
use ce_git::HeadError;
use ce_model::exit::Explain;
use ce_model::expression::{
    InputDefault, NodeKind, Signature, Signatures, Text, WorkflowDirectories, WorkflowEntryKind,
    computation_names,
};
use ce_model::name::InputName;
use ce_model::suggest::meant_or;
use ce_model::sweep::level_line;
use ce_model::system_hints;

use crate::load::{self, LoadError, listed};

fn real(dir: &Path) -> Result<PathBuf, EditError> {
    dir.canonicalize().map_err(|source| EditError::Read { path: dir.to_owned(), source })
}

/// The reason why a task could not be made or changed.
#[derive(Debug, thiserror::Error, Explain)]
#[non_exhaustive]
pub enum EditError {
    /// The present workflow cannot be read, or something is wrong with it.
    #[error(transparent)]
    #[hint(_0.hint_for_editing())]
    Load(#[from] LoadError),
    /// Files that would be replaced are in no commit.
    #[error("nothing is written: these have uncommitted changes: {}", listed(.0))]
    #[hint("git add and git commit them, or replace them with --force")]
    Uncommitted(Vec<PathBuf>),
    /// Files that would be removed are not part of the expression.
    #[error("nothing is written: the text form has no place for {}", listed(.0))]
    #[hint(
        "move it out of workflow/, correct what reads it there, and commit that; --force removes it"
    )]
    Unread(Vec<PathBuf>),
    /// The new workflow or list of inputs could not be moved to its place.
    #[error("cannot replace {}: see {}", path.display(), aside.display())]
    #[exit(Storage)]
    #[hint(
        "move what is in {} to {}, which may lack it; git status shows what differs",
        aside.display(), path.parent().unwrap_or(path).display()
    )]
    Replace {
        /// The place.
        path: PathBuf,
        /// The path of the old or the new one.
        aside: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The computation that a new task should call cannot be called.
    #[error("computations/{0} has no valid lists inputs and outputs")]
    #[hint("write names, one a line, into inputs and outputs of computations/{_0}")]
    Computation(String),
    /// The library has no such computation.
    #[error("the library has no computation {name:?}")]
    #[hint(Some(meant_or(nearest.as_deref(), "ce add lists all of them".to_owned())))]
    NotInLibrary {
        name: String,
        /// The most similar name.
        nearest: Option<String>,
    },
    /// Computations of the library were changed in the task.
    #[error("nothing is written: the task has changed {}", .0.join(", "))]
    #[hint("ce add --diff {} shows how; to have the library's, remove yours first", _0.join(" "))]
    ChangedHere(Vec<String>),
    /// Parts of a task exist already.
    #[error("nothing is written: {} is there already", listed(.0))]
    #[hint("use another directory, or edit what is there")]
    Exists(Vec<PathBuf>),
    /// The directory cannot hold a task of this name.
    #[error("{} cannot be the name of a task", path.display())]
    #[hint("give another directory")]
    Name {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: ce_model::name::NameError,
    },
    /// Git's record of the task cannot be read.
    #[error("cannot find out what is committed: {0}")]
    #[hint(_0.hint())]
    Head(#[source] HeadError),
    /// A repository could not be made, or its configuration could not be read.
    #[error("cannot use the repository at {}", path.display())]
    #[hint("git -C {} status says what is wrong", path.display())]
    Git {
        path: PathBuf,
        /// The message of gix.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file could not be read.
    #[error("cannot read {}", path.display())]
    #[hint(system_hints::for_reading(path, source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}", path.display())]
    #[exit(Storage)]
    #[hint(system_hints::for_writing(path, source))]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A text cannot say the default of an input.
    #[error("defaults/{0} is neither one line of text without ' nor a link to a file of the task")]
    #[hint("move it to data/, and make a relative link to it in its place")]
    Default(InputName),
    /// The default of an input can be no file.
    #[error(
        "no file in defaults/ or choices/ can have the name of the input {0}, which has a default or choices"
    )]
    #[hint("rename the input, or leave out its default and choices")]
    DefaultName(InputName),
    /// Different nodes have the name of one definition.
    #[error("nothing is written: files definition give the name {0:?} to different nodes")]
    #[hint("keep it in the file definition of one of them; --force does so with the first one")]
    AmbiguousDefinition(String),
    /// A sweep with computed points does not list the names that it binds.
    #[error("a sweep with computed points has no file names")]
    #[hint(
        "write the names that its body reads of the points into names, one a line: in a text, it binds no others"
    )]
    OpenNames,
    /// The text or the files to be written would not mean the same.
    #[error("nothing is written: the other form would mean something else")]
    #[hint("this is a mistake of the program: please report it, with the workflow")]
    NotSaid,
}

/// Makes a directory in the task, on the same file system as what will be moved.
fn aside(task: &Path) -> Result<PathBuf, EditError> {
    let mut number = 0;
    loop {
        let path = task.join(format!(".ce-new-{}-{number}", std::process::id()));
        match umask::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(source) => return Err(write_error(&path, source)),
        }
    }
}

fn write_error(path: &Path, source: io::Error) -> EditError {
    EditError::Write { path: path.to_owned(), source }
}

/// Lets a function write parts of a task aside, moves them to their places, and moves the replaced files away. If something
/// fails before, the task is as it was.
fn put_in_place(
    task: &Path,
    new: &[&str],
    old: &[&str],
    write: impl FnOnce(&Path) -> Result<(), EditError>,
) -> Result<(), EditError> {
    let aside = aside(task)?;
    let new = new.iter().map(|part| (part, aside.join(part), task.join(part)));
    let old = old.iter().filter(|part| task.join(part).symlink_metadata().is_ok());
    let old = old.map(|part| (part, task.join(part), aside.join(format!("old-{part}"))));
    let moved = write(&aside).and_then(|()| {
        new.chain(old).try_for_each(|(part, from, to)| {
            let path = task.join(part);
            fs::rename(from, to).map_err(|source| EditError::Replace {
                path,
                aside: aside.clone(),
                source,
            })
        })
    });
    // After a move that failed, something may be in no other place.
    if !matches!(moved, Err(EditError::Replace { .. })) {
        drop(fs::remove_dir_all(aside));
    }
    moved
}

/// Makes the directories of a workflow, and the files beside them.
fn make_parts(
    aside: &Path,
    layout: &WorkflowDirectories,
    inputs: &[InputName],
    defaults: &[Option<InputDefault>],
) -> io::Result<()> {
    make(&aside.join("workflow"), layout)?;
    let writer = DirectoryWriter::open(aside)?;
    let lines: String = inputs.iter().map(|name| format!("{name}\n")).collect();
    writer.write("inputs", lines)?;
    for (name, default) in inputs.iter().zip(defaults) {
        let path = format!("defaults/{name}");
        match default {
            None => {}
            Some(InputDefault::Choices(choices)) => {
                let path = format!("choices/{name}");
                let lines: Vec<&str> = choices.levels(0).iter().map(|it| level_line(it)).collect();
                writer.write(&path, lines.join("\n") + "\n")?;
            }
            Some(InputDefault::Text(text)) => writer.write(&path, &**text)?,
            Some(InputDefault::File(target)) => {
                writer.link(Path::new(&format!("../{target}")), &path)?;
            }
        }
    }
    Ok(())
}

/// Makes the directory of a workflow, which must not exist, with all its entries.
///
/// # Errors
///
/// Fails if anything cannot be written. Files that were written before stay.
pub fn make(dir: &Path, layout: &WorkflowDirectories) -> io::Result<()> {
    umask::create_dir(dir)?;
    let writer = DirectoryWriter::open(dir)?;
    for entry in &layout.entries {
        let path = &entry.path;
        let at =
            |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
        match &entry.kind {
            WorkflowEntryKind::Link(target) => writer.link(Path::new(target), path)?,
            WorkflowEntryKind::Node { kind, value, files, outputs, inputs } => {
                if !path.is_empty() {
                    writer.make_dir(path)?;
                }
                writer.write(&at("kind"), format!("{kind}\n"))?;
                if *kind == NodeKind::Text.file() {
                    writer.write(&at("value"), &**value)?;
                } else if !value.is_empty() {
                    writer.write(&at("value"), format!("{value}\n"))?;
                }
                for file in files {
                    writer.write(&at(&file.name), file.contents())?;
                }
                if let Some(outputs) = outputs {
                    writer.write(&at("outputs"), outputs.lines())?;
                }
                if *inputs {
                    writer.make_dir(&at("inputs"))?;
                }
            }
        }
    }
    Ok(())
}

/// Returns the signatures, as far as they are known, of the computations that an expression names, by the written names.
/// For several computations, the signature has the inputs and outputs that the existing ones have in common.
fn signatures(task: &Path, workflow: &Text) -> Signatures {
    let mut signatures = Signatures::new();
    let computations = computation_names(workflow);
    let known = load::signatures(task, computations.values().flatten());
    for (written, names) in computations {
        let all = names.iter().filter_map(|name| known.get(name).cloned());
        let there = all.filter(|it| it.inputs.is_some() || it.outputs.is_some());
        let common = there.reduce(|a, b| Signature {
            inputs: a.inputs.filter(|inputs| b.inputs.as_ref() == Some(inputs)),
            outputs: a.outputs.filter(|outputs| b.outputs.as_ref() == Some(outputs)),
        });
        signatures.insert(written.to_owned(), common.unwrap_or_default());
    }
    signatures
}
