//! What to try when a program ends early.

use std::io;

use super::Error;
use crate::evaluate::EvaluateError;
use crate::expand::ProductFault;
use crate::load::LoadError;
use crate::plan::SelectionFault;
use crate::questions::bisect::BisectError;
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
            Self::Load(LoadError::NoTask(_)) => {
                Some("run this at the root of a task, or name it with --task".to_owned())
            }
            Self::Load(LoadError::NoTaskAt { .. }) => {
                Some("give a revision at which it has workflow/, or name another task with --task".to_owned())
            }
            Self::Storage(StorageError::NoStorage { path, source }) => Some(source.hint(path)),
            Self::Storage(error)
            | Self::Evaluate(EvaluateError::Storage(error))
            | Self::Verify(VerifyError::Storage(error)) => error.hint().map(str::to_owned),
            Self::Verify(VerifyError::NoRecord(_)) => {
                Some("give the name that the interrupted check printed, or leave out --from".to_owned())
            }
            Self::Edit(error) => error.hint(),
            Self::Suspension(error) => Some(error.hint().to_owned()),
            Self::Repository(error) => error.hint().map(str::to_owned),
            Self::List(error) => error.hint(),
            Self::Reach(error) => error.hint().map(str::to_owned),
            Self::Directory { source, .. } => source.hint().map(str::to_owned),
            Self::Package(error) => error.hint().map(str::to_owned),
            Self::History(error) => error.hint().map(str::to_owned),
            Self::Inspection(error) => error.hint().map(str::to_owned),
            Self::Bisect(BisectError::Nothing { .. }) => {
                Some("give a bad commit that comes later in the history".to_owned())
            }
            Self::Misfits { hint, .. } => Some(hint.clone()),
            Self::Slurm(errors) => errors.first().map(|error| error.advice.clone()),
            Self::Results(error) => error.advice().map(str::to_owned),
            Self::NoResults => Some("give its path or URL, or git config compeval.results REPOSITORY".to_owned()),
            Self::Submit(error) => error.advice(),
            Self::NotInJob(what) => Some(without_job(what).to_owned()),
            Self::NoStorage => {
                Some("give it as the first argument, or git config compeval.storage DIR".to_owned())
            }
            Self::Inputs { names, configured, .. } => Some(giving(names, *configured)),
            Self::Tree(error) | Self::Evaluate(EvaluateError::Output(error)) => error.hint(),
            Self::UnknownInput { nearest, .. } | Self::UnknownRepository { nearest, .. } => {
                nearest.as_ref().map(|name| format!("did you mean {name}?"))
            }
            Self::NotGiven(name) => Some(format!("give {name}=FILE or -p {name}=TEXT")),
            Self::GivenAndRanged(name) => {
                Some(format!("leave out one of them, or give {name} a value in --each only"))
            }
            Self::RangedTwice(_) => {
                Some("give it once: --each has all values of an input, --points one a row".to_owned())
            }
            Self::Sweep(error) => Some(error.hint()),
            Self::Sheet(error) => error.hint(),
            Self::Selection(faults) => faults.first().map(SelectionFault::hint),
            Self::Table(SweepTableError::Columns(fault)) => Some(fault.hint().to_owned()),
            Self::Product(faults) => faults.first().map(ProductFault::hint),
            Self::Points { problems, .. } => problems.first()?.fault.hint().map(str::to_owned),
            Self::NoPoints(_) => Some("write the names of inputs, and a row for each point".to_owned()),
            Self::RevisionOrPath { one, argument } => {
                Some(format!("write {one}..{argument} for the revision, ./{argument} for the path"))
            }
            Self::NothingToPin(_) | Self::NothingNamed(_) => Some("give a file of each result, after the storage".to_owned()),
            Self::InputTwice(_) | Self::RepositoryTwice(_) => Some("give it once".to_owned()),
            Self::Versions(_) => Some("give --at once or twice".to_owned()),
            Self::Test { .. } => Some(
                "give a program on PATH, or its path as in ./test; chmod +x makes it executable"
                    .to_owned(),
            ),
            Self::NoJob(_) => Some("give one of its files in t_NAME/CCID/NN/, or t_NAME/CCID/INPUTS".to_owned()),
            Self::AllAndOne(_) | Self::AuditedTwice(..) => Some("leave out one of them".to_owned()),
            Self::NoCallGiven => Some("give names that ce status lists".to_owned()),
            Self::NoCall(_) => Some(
                "give a file in c_NAME/CCID/NN/, or c_NAME/CCID/INPUTS; ce show prints what made a file"
                    .to_owned(),
            ),
            Self::NotAPage(_) => {
                Some("name another file with -o; --force replaces a plain file".to_owned())
            }
            Self::Picture(_) => Some("end the name in .dot, .svg, .png or .pdf".to_owned()),
            Self::Program { program: "rsvg-convert", source }
                if source.kind() == io::ErrorKind::NotFound =>
            {
                Some("install rsvg-convert (the package librsvg2-bin), or draw an .svg".to_owned())
            }
            _ => None,
        }
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
