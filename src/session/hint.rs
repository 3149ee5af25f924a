//! What to try when a program ends early.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::Error;
use super::place::naming_results;
use crate::advice;
use crate::evaluate::EvaluateError;
use crate::expand::ProductFault;
use crate::load::LoadError;
use crate::manifest::DirectoryError;
use crate::plan::SelectionFault;
use crate::questions::table::SweepTableError;
use crate::storage::StorageError;
use crate::storage::maintenance::verify::VerifyError;

impl Error {
    /// A hint for the user, if there is any.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Load(LoadError::Snapshot(error)) | Self::Commits(error) => {
                error.hint().map(str::to_owned)
            }
            Self::Storage(StorageError::NoStorage { path, source }) => Some(source.hint(path)),
            Self::InputValue { source: error @ StorageError::Io { path, source, .. }, .. } => {
                advice::for_reading(path, source).or_else(|| error.hint().map(str::to_owned))
            }
            Self::Storage(error)
            | Self::InputValue { source: error, .. }
            | Self::Evaluate(EvaluateError::Storage(error))
            | Self::Verify(VerifyError::Storage(error)) => error.hint().map(str::to_owned),
            Self::Bisect(error) => error.hint(),
            Self::Config(error) => error.hint(),
            Self::NotAudited(_, why) => Some(why.hint().to_owned()),
            Self::Edit(error) => error.hint(),
            Self::Suspension(error) => Some(error.hint().to_owned()),
            Self::Repository(error) => error.hint(),
            Self::List(error) => error.hint(),
            Self::Reach(error) => error.hint(),
            Self::Load(LoadError::Directory { path, source }) => {
                advice::for_directory(path, source)
            }
            Self::Directory { path, source: DirectoryError::Io { path: entry, source } } => {
                let entry = Some(OsStr::from_bytes(entry)).filter(|entry| !entry.is_empty());
                let path = Path::new(path);
                advice::for_directory(&entry.map_or(path.into(), |it| path.join(it)), source)
            }
            Self::Directory { source, .. } => source.hint().map(str::to_owned),
            Self::Input { name, source, .. } if source.kind() == io::ErrorKind::Other => {
                Some(format!("give another file or directory, or -p {name}=TEXT"))
            }
            Self::Input { path, source, .. } | Self::ReadPoints { path, source } => {
                advice::for_reading(Path::new(path), source)
            }
            Self::Write { path, source } => advice::for_writing(Path::new(path), source),
            Self::Package(error) => error.hint(),
            Self::History(error) => error.hint().map(str::to_owned),
            Self::Inspection(error) => error.hint(),
            Self::Misfits { hint, .. } => Some(hint.clone()),
            Self::Slurm(errors) => errors.first().map(|error| error.advice.clone()),
            Self::Results(error) => error.advice(),
            Self::Submit(error) => error.advice(),
            Self::NotInJob(what) => Some(without_job(what).to_owned()),
            Self::Inputs { names, configured, .. } => Some(giving(names, *configured)),
            Self::Tree(error) | Self::Evaluate(EvaluateError::Output(error)) => error.hint(),
            Self::UnknownInput { nearest: None, inputs, .. } if !inputs.is_empty() => {
                Some(format!("its inputs are {}", inputs.join(", ")))
            }
            Self::UnknownInput { nearest, .. } | Self::UnknownRepository { nearest, .. } => {
                nearest.as_ref().map(|name| format!("did you mean {name}?"))
            }
            Self::NotGiven(name) => Some(format!("give {name}=FILE or -p {name}=TEXT")),
            Self::GivenAndRanged(name) => {
                Some(format!("leave out one of them, or give {name} a value in --each only"))
            }
            Self::Sweep(error) => Some(error.hint()),
            Self::Sheet(error) => error.hint(),
            Self::Selection(faults) => faults.first().map(SelectionFault::hint),
            Self::Table(SweepTableError::Columns(fault)) => Some(fault.hint().to_owned()),
            Self::Product(faults) => faults.first().map(ProductFault::hint),
            Self::Points { problems, .. } => problems.first()?.fault.hint().map(str::to_owned),
            Self::RevisionOrPath { one, argument } => {
                Some(format!("write {one}..{argument} for the revision, ./{argument} for the path"))
            }
            _ => self.plain_hint().map(str::to_owned),
        }
    }

    /// A hint that names nothing of the error.
    fn plain_hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Load(LoadError::NoTask(_)) => {
                "run this at the root of a task, or name it with --task"
            }
            Self::Load(LoadError::NoTaskAt { .. }) => {
                "give a revision at which it has workflow/, or name another task with --task"
            }
            Self::Verify(VerifyError::NoRecord(_)) => {
                "give the name that the interrupted check printed, or leave out --from"
            }
            Self::NoInput { .. } => "give revisions at which the task takes the same inputs",
            Self::OwnFile { .. } => {
                "git status says whether it is as committed, and git fsck whether the repository is damaged"
            }
            Self::Begin(_) | Self::Evaluate(EvaluateError::Threads(_)) => {
                "raise the limits of processes and open files (ulimit -u, ulimit -n), or give a smaller -j"
            }
            Self::Output(_) => {
                "look at where it leads to: df and ls -l say whether it can be written"
            }
            Self::NoResults => "give its path or URL, or git config compeval.results REPOSITORY",
            Self::NoStorage => "give it as the first argument, or git config compeval.storage DIR",
            Self::RangedTwice(_) => {
                "give it once: --each has all values of an input, --points one a row"
            }
            Self::NoPoints(_) => "write the names of inputs, and a row for each point",
            Self::ResultPath(error) => error.hint(),
            Self::NothingToPin(_) => naming_results(),
            Self::InputTwice(_) | Self::RepositoryTwice(_) => "give it once",
            Self::Versions(_) => "give --at once or twice",
            Self::Test { .. } => {
                "give a program on PATH, or its path as in ./test; chmod +x makes it executable"
            }
            Self::NoJob(_) => "give one of its files in t_NAME/CCID/NN/, or t_NAME/CCID/INPUTS",
            Self::AllAndOne(_) | Self::AuditedTwice(..) => "leave out one of them",
            Self::NoCallGiven => "give names that ce status lists",
            Self::NoCall(_) => {
                "give a file in c_NAME/CCID/NN/, or c_NAME/CCID/INPUTS; ce show prints what made a file"
            }
            Self::NotAPage(_) => "name another file with -o; --force replaces a plain file",
            Self::Picture(_) => "end the name in .dot, .svg, .png or .pdf",
            Self::Program { program: "rsvg-convert", source }
                if source.kind() == io::ErrorKind::NotFound =>
            {
                "install rsvg-convert (the package librsvg2-bin), or draw an .svg"
            }
            Self::Convert { format: "png", .. } => {
                "draw an .svg or a .pdf; a .png has at most 32767 pixels in each direction"
            }
            Self::Convert { .. } => {
                "draw an .svg or a .dot; rsvg-convert reads at most a million elements"
            }
            _ => return None,
        })
    }
}

/// Where to give another storage than the configured one.
const CONFIGURED: &str = "if not compeval.storage";

/// How to give a storage and these inputs.
fn giving(names: &[String], has_storage: bool) -> String {
    let storage = if has_storage { CONFIGURED } else { "first" };
    match names {
        [] => "give the storage and nothing more".to_owned(),
        [name] => format!("give the storage {storage}, and a file or -p {name}=TEXT for it"),
        [name, ..] => format!(
            "give the storage {storage}, and a file for each, in this order, or -p {name}=TEXT"
        ),
    }
}

/// What to try where a run cannot be a job.
fn without_job(what: &str) -> &'static str {
    match what {
        "--on here" | "--on workers" => "give --on slurm, too, or --detach alone",
        "what is not committed" => "commit it, or give --at HEAD",
        _ => "leave out one of them",
    }
}
