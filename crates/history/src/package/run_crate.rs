//! A job as a crate: an RO-Crate that follows the profile Provenance Run Crate 0.5. doc/decisions/0030 says why.
//!
//! Beside the files of a package, a crate has the workflow, as a text, and metadata. No metadata name a host, a user or a
//! path of this machine, and they have times and machines only if the user wants them published.

use std::path::{Path, PathBuf};

use ce_git::{Config, Snapshot};
use ce_model::exit::Explain;
use ce_model::expression::Text;
use ce_model::task::{Task, WORKFLOW_TEXT};
use ce_storage::records::JobRecord;
use ce_storage::{Entry, Record, Storage};
use ce_task::load::{self, LoadError};
use jiff::Timestamp;

use super::attribution::{Attribution, AttributionError, Contributor};
use super::entities::{Entities, encoded, is_web_address, reference, valid_url};
use crate::{History, Subject};

/// The facts about a job that a user wants to publish.
#[derive(Clone, Debug, Default)]
pub struct CrateFacts {
    /// When calls were executed.
    pub times: bool,
    /// On which machines: processors, memory, kernel.
    pub machine: bool,
    /// The one who has executed them.
    pub by: Option<Contributor>,
}

/// A job, and all that a crate says of it and no record does.
#[derive(Debug)]
pub struct RunCrate<'a> {
    pub(super) storage: &'a Storage,
    pub(super) history: &'a History,
    pub(super) entry: &'a Entry,
    pub(super) job: &'a JobRecord,
    pub(super) task: Task,
    pub(super) facts: CrateFacts,
    /// The text of the workflow.
    pub(super) workflow: String,
    pub(super) attribution: Attribution,
    /// All whom the crate names, each once.
    people: Vec<Contributor>,
    /// The repository of the current directory, and the address of its remote one.
    top: PathBuf,
    remote: Option<String>,
    /// The day of the publication.
    pub(super) day: String,
}

impl<'a> RunCrate<'a> {
    /// Finds the workflow of a job in the repository of the current directory, with its licence and authors unless they are given.
    ///
    /// # Errors
    ///
    /// Fails if the result is no job, its workflow is not there, or nobody says licence and authors.
    pub fn of(
        (storage, history): (&'a Storage, &'a History),
        result: Subject<'a>,
        facts: CrateFacts,
        attribution: Attribution,
    ) -> Result<Self, CrateError> {
        let (entry, Record::Job(job)) = (result.entry, result.record) else {
            return Err(CrateError::NoJob(result.entry.short()));
        };
        let here = Path::new(".").canonicalize().ok();
        let (Some(place), Some(top)) = (&job.place, here.as_deref().and_then(ce_git::top)) else {
            return Err(CrateError::no_workflow(job, None));
        };
        let task = load::task_at(&top.join(place), job.commit.full(), None)
            .map_err(|source| CrateError::no_workflow(job, Some(source)))?
            .task;
        let attribution = attribution.or_cited(&top, &job.commit)?;
        let people = attribution.people(facts.by.as_ref());
        let written = Snapshot::open(&top.join(place), job.commit.full()).and_then(|snapshot| {
            let file = snapshot.find(Path::new(WORKFLOW_TEXT))?;
            snapshot.read(&file)
        });
        let written = written.ok().and_then(|text| String::from_utf8(text).ok());
        let workflow = written.unwrap_or_else(|| Text::from(&task).workflow());
        let remote = Config::of(&top).ok().and_then(|config| config.origin());
        let day = today().strftime("%F").to_string();
        Ok(Self {
            storage,
            history,
            entry,
            job,
            task,
            facts,
            workflow,
            attribution,
            people,
            top,
            remote,
            day,
        })
    }

    /// The address of the remote repository, if it is one that anybody can open.
    pub(super) fn address(&self) -> Option<String> {
        self.remote.as_deref().filter(|remote| is_web_address(remote)).map(valid_url)
    }

    /// The address of the remote repository if the repository here has a commit. Any other than a web address may name a
    /// user, a host or a path.
    pub(super) fn remote_of(&self, commit: &str) -> Option<&str> {
        let remote = self.remote.as_deref().filter(|remote| is_web_address(remote))?;
        Some(remote).filter(|_| Snapshot::open(&self.top, commit).is_ok())
    }

    /// Whether a call of the job was executed in this storage. If none was, it was pulled, and nobody here knows who has made its
    /// tables, and when.
    pub(super) fn is_own(&self) -> bool {
        self.job.calls.iter().any(|call| {
            let subject = Entry::of_short(call).and_then(|it| self.history.subject(&it.file(0)));
            matches!(subject.map(|it| it.record), Some(Record::Call(it)) if it.execution().is_some())
        })
    }

    /// Describes the one who has executed the calls of this storage, and returns the id.
    pub(super) fn agent(&self, graph: &mut Entities) -> Option<String> {
        Some(self.contributor(self.facts.by.as_ref()?, graph))
    }

    /// Describes a contributor. Returns the id: the same for the same person or organization.
    pub(super) fn contributor(&self, contributor: &Contributor, graph: &mut Entities) -> String {
        let mut people = self.people.iter();
        // A person may be called as the organization is.
        let is_it = |it: &&Contributor| {
            it.is(contributor) && (it.is_organization || !contributor.is_organization)
        };
        let known = people.find(is_it).unwrap_or(contributor);
        let id = match &known.url {
            Some(url) => valid_url(url),
            None if known.is_organization => format!("#organization/{}", encoded(&known.name)),
            None => format!("#contributor/{}", encoded(&known.name)),
        };
        let kind = if known.is_organization { "Organization" } else { "Person" };
        let organization = known.affiliation.as_deref().map(Contributor::organization);
        let organization = organization.map(|it| self.contributor(&it, graph));
        let entity = graph.of(&id, &[kind]).with("name", known.name.as_str());
        entity.set("url", known.url.as_deref().map(valid_url));
        entity.set("affiliation", organization.map(reference));
        id
    }
}

/// Today, or the day that `SOURCE_DATE_EPOCH` says, so that a crate can be made again byte by byte.
fn today() -> Timestamp {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok());
    let given = given.and_then(|seconds| Timestamp::from_second(seconds).ok());
    given.unwrap_or_else(Timestamp::now)
}

/// The reason why a result is no crate.
#[derive(Debug, thiserror::Error)]
pub enum CrateError {
    /// It is no job.
    #[error("{0} is no job: a crate holds the run of a task")]
    NoJob(String),
    /// More than one job, or none, is given.
    #[error("a crate holds one job, and {0} results are given")]
    Several(usize),
    /// The workflow is not in the repository of the current directory.
    #[error("the workflow of {task} at commit {commit} is not found from here")]
    NoWorkflow {
        /// The task.
        task: String,
        /// The commit.
        commit: String,
        /// The cause, if the current directory is in a repository.
        source: Option<Box<LoadError>>,
    },
    /// The licence or the authors are not known.
    #[error(transparent)]
    Attribution(#[from] AttributionError),
}

impl CrateError {
    fn no_workflow(job: &JobRecord, source: Option<LoadError>) -> Self {
        let (task, commit) = (job.task.to_string(), job.commit.short().to_owned());
        Self::NoWorkflow { task, commit, source: source.map(Box::new) }
    }
}

impl Explain for CrateError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoJob(_) => "give an output of a job, t_NAME/..., or its short name",
            Self::Several(_) => "make a crate of each",
            Self::NoWorkflow { .. } => {
                "run ce export in a clone of the task's repository that has this commit"
            }
            Self::Attribution(error) => return error.hint(),
        };
        Some(hint.to_owned())
    }
}
