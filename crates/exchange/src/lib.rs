//! Results in Git repositories: pushing, joining repositories, and pulling.
//!
//! A results repository has the layout of a storage, so its clone is one. It holds only published records and the files
//! that they promise. The names of users who executed them are in a ledger beside them, if they want that.
//! doc/results.md describes it for users.

mod acceptance;
mod attesters;
mod fetch_outputs;
mod join;
mod ledger;
mod lfs;
mod pull;
mod push;
mod push_selection;
mod pushed;
mod remote_copies;
mod repository;
mod secrets;
mod signed_history;
mod trust;

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ce_files::cache::Cache;
use ce_git::{Mirror, MirrorError, Prompts, RemoteRef};
use ce_model::digest::ObjectId;
use ce_model::exit::Explain;
use ce_storage::StorageError;
use serde::Serializer;
use serde::ser::SerializeMap;

use crate::repository::FORMAT;

pub use self::acceptance::{RefusedFor, RefusedResult, RemovedFile, RevokedResult};
pub use self::attesters::{Agreement, Attestations, Attested, Attester};
pub use self::fetch_outputs::{
    FetchedFiles, can_fetch_files, fetch_files, fetch_outputs, fetch_values, is_fetched_on_demand,
    may_fetch,
};
pub use self::ledger::{AuditFinding, LedgerFacts, call_identity, record_audits};
pub use self::pull::{PullRequest, Pulled, pull};
pub use self::push::{RevokeRequest, push, revoke};
pub use self::pushed::{LeftOut, PushRequest, Pushed, PushedLogs, StrangeInbox, Withheld};
pub use self::remote_copies::copies;
pub use self::repository::{CrowdedDirectory, ResultsBranch};
pub use self::secrets::Secrets;
pub use self::trust::{Distrust, TrustRule, TrustSettings};

/// Serialises a reason as a text.
fn in_words<S: Serializer>(reason: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(reason)
}

/// Serialises a reference of a repository as two fields.
#[expect(clippy::ref_option, reason = "serde calls it like this")]
fn reference_and_commit<S: Serializer>(
    reference: &Option<RemoteRef>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let reference = reference.as_ref();
    let mut fields = serializer.serialize_map(Some(2))?;
    fields.serialize_entry("reference", &reference.map(|it| &it.name))?;
    fields.serialize_entry("commit", &reference.map(|it| &it.id))?;
    fields.end()
}

/// The reason why results were not exchanged with a repository.
#[derive(Debug, thiserror::Error, Explain)]
#[exit(Storage)]
#[non_exhaustive]
pub enum ResultsError {
    /// The storage cannot be read or written.
    #[error(transparent)]
    #[hint(_0.hint())]
    Storage(#[from] StorageError),
    /// The repository is not available.
    #[error(transparent)]
    #[hint(_0.hint())]
    Mirror(#[from] MirrorError),
    /// The repository does not exist.
    #[error("there is no repository {0}")]
    #[exit(Malformed)]
    #[hint("correct the path; git init --bare PATH makes an empty one")]
    None(String),
    /// A reference has something else than results.
    #[error("{name} of {url} has no results: it has no file {FORMAT}")]
    #[hint(
        "give another repository, or give that branch another name: results are in a branch results"
    )]
    NoResults {
        /// The repository.
        url: String,
        /// The reference.
        name: &'static str,
    },
    /// The results are in a format of a later version of this program.
    #[error("{name} of {url} has results in a format that this program does not know")]
    #[hint("take a later version of this program")]
    Format {
        /// The repository.
        url: String,
        /// The reference.
        name: &'static str,
    },
    /// A repository has settings that this program does not understand.
    #[error("settings of {url} has the line {line:?}, which is not lfs SIZE with a size from 1K")]
    #[hint(Some(correcting_settings()))]
    Settings {
        /// The repository.
        url: String,
        line: String,
    },
    /// A repository has the same setting twice.
    #[error("settings of {0} has two lines lfs SIZE")]
    #[hint(Some(correcting_settings()))]
    TwoSettings(String),
    /// The settings of a repository cannot be read.
    #[error("settings of {0} is not a plain file of at most 64 KiB")]
    #[hint(Some(correcting_settings()))]
    SettingsFile(String),
    /// A large result cannot be stored or read.
    #[error("the Git LFS object {} cannot be written or read", path.display())]
    #[hint(
        "check whether you may write in lfs/ of the repository, and the room there; then push again"
    )]
    Large {
        /// Its path, or the path of a directory on the way.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Outputs are away in a clone that does not know where it is from.
    #[error("large outputs are away, and the clone has no remote origin")]
    #[hint("git remote add origin URL in the clone says where the repository is")]
    NoOrigin,
    /// Outputs are away in a clone that cannot be read.
    #[error("large outputs are away, and the clone {} cannot be read", clone.display())]
    #[hint("make git remote --verbose work in the clone")]
    Origin {
        clone: PathBuf,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An output that is away in a clone is not available.
    #[error("the Git LFS object of {file} cannot be obtained: {why}")]
    #[hint(
        "make git lfs fetch -X '' work in the clone; or remove {pointer} there: the call is executed again then"
    )]
    Lost {
        /// The output.
        file: String,
        /// The name of its pointer.
        pointer: String,
        /// The cause.
        why: String,
    },
    /// The Git LFS object of an output that is away in a clone is not the recorded one.
    #[error("the Git LFS object of {file} is not what the record says")]
    #[hint("remove {pointer} in the clone: the call is executed again then")]
    WrongObject {
        /// The output.
        file: String,
        /// The name of its pointer.
        pointer: String,
    },
    /// The user has no directory for a mirror.
    #[error(
        "there is no place for a mirror of {0}: neither HOME nor XDG_CACHE_HOME is a directory"
    )]
    #[hint("set XDG_CACHE_HOME to a directory")]
    NoCache(String),
    /// The results have another history than before.
    #[error("the history of {url} was rewritten: {} is not an ancestor of {}", old.short(), new.short())]
    #[exit(Failed)]
    #[hint("ask those who may write there, and give --rewritten if it is right")]
    Rewritten {
        /// The repository.
        url: String,
        /// The results that were seen last.
        old: ObjectId,
        /// The results that are there now.
        new: ObjectId,
    },
    /// The branch of results that was seen last is not there any more.
    #[error("the branch results of {url} was deleted (it was at {})", old.short())]
    #[exit(Failed)]
    #[hint("ask those who may write there, and give --rewritten if it is right")]
    Deleted {
        /// The repository.
        url: String,
        /// The results that were seen last.
        old: ObjectId,
    },
    /// A file of keys cannot be read, so it is unknown whose signatures count.
    #[error("the file of keys {} cannot be read", path.display())]
    #[exit(Malformed)]
    #[hint("correct compeval.signers, or give --signers FILE")]
    Signers {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The revoked keys are unknown.
    #[error("the file of revoked keys {} cannot be read", path.display())]
    #[exit(Malformed)]
    #[hint("correct gpg.ssh.revocationFile in Git's configuration")]
    RevokedKeys {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Trust rules name signers, but there is no file of allowed signers.
    #[error("compeval.trust names trusted signers, and there is no file of allowed signers")]
    #[exit(Malformed)]
    #[hint("set compeval.signers, or give --signers FILE")]
    NoSigners,
    /// Several attesters are required, but there is no file of allowed signers.
    #[error(
        "{0} attesters are required, and there is no file of allowed signers: all unsigned evidence counts as one attester"
    )]
    #[exit(Malformed)]
    #[hint("set compeval.signers, or give --signers FILE")]
    TooFewSigners(usize),
    /// The repository has nothing that could be a copy.
    #[error("{0} has no results")]
    #[exit(Malformed)]
    #[hint("push to it first: ce push STORAGE REPOSITORY")]
    Unpublished(String),
    /// There is no such call.
    #[error("neither the repository nor the storage has a call {0}")]
    #[exit(Malformed)]
    #[hint("name it as ce log does: c_NAME/CCID/INPUTS")]
    NoCall(String),
    /// It is not clear which outputs of a call are wrong.
    #[error("the call {0} has other outputs in the storage than in the repository")]
    #[exit(Malformed)]
    #[hint("give a storage that has the wrong ones, such as a clone of the repository")]
    OtherOutputs(String),
    /// Others have pushed all the time.
    #[error("others have pushed to {0} at every attempt, and its inbox cannot be written")]
    #[hint("push again in a while")]
    Busy(String),
}

impl ResultsError {
    /// Whether it is about one output, and not about all fetched ones.
    pub const fn is_of_one_output(&self) -> bool {
        matches!(self, Self::Lost { .. } | Self::WrongObject { .. })
    }
}

fn correcting_settings() -> String {
    "take a later version of this program, which may have written it; or correct it in that branch"
        .to_owned()
}

/// Opens the mirror of a repository, which is given by its path or URL. `prompts` says whether `git` may ask the user for passwords.
///
/// # Errors
///
/// Fails if the path does not exist, or a mirror cannot be made.
pub fn mirror(
    repository: &str,
    cache: Option<&Cache>,
    prompts: Prompts,
) -> Result<Mirror, ResultsError> {
    let path = Path::new(repository);
    let url = match path.canonicalize() {
        Ok(real) => real.to_string_lossy().into_owned(),
        Err(_) if repository.contains(':') => repository.to_owned(),
        Err(_) => return Err(ResultsError::None(repository.to_owned())),
    };
    let cache = cache.ok_or_else(|| ResultsError::NoCache(repository.to_owned()))?;
    Ok(Mirror::open(&cache.mirror(&url), &url, prompts)?)
}

/// The progress of a push or a pull. It may be asked at any time, by any thread.
#[derive(Debug, Default)]
pub struct ExchangeProgress(Mutex<ExchangeStep>);

/// The current step of a push or a pull.
#[derive(Clone, Copy, Debug, Default)]
struct ExchangeStep {
    /// In words; empty before it begins.
    what: &'static str,
    done: usize,
    /// The number of results that it takes; 0 if it is unknown.
    all: usize,
    /// Whether both are bytes.
    in_mib: bool,
}

impl ExchangeProgress {
    /// Begins a step with a number of results, or 0 if it is unknown.
    pub(crate) fn begin(&self, what: &'static str, all: usize) {
        self.change(|step| *step = ExchangeStep { what, done: 0, all, in_mib: false });
    }

    /// Begins a step with this number of bytes, which are shown in MiB.
    pub(crate) fn begin_bytes(&self, what: &'static str, bytes: u64) {
        let all = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.change(|step| *step = ExchangeStep { what, done: 0, all, in_mib: true });
    }

    /// Adds bytes that are done.
    pub(crate) fn advance_bytes(&self, bytes: u64) {
        self.advance(usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    /// Adds results that are done.
    pub(crate) fn advance(&self, results: usize) {
        self.change(|step| step.done += results);
    }

    /// Returns the progress in words; `None` before it begins.
    pub fn shown(&self) -> Option<String> {
        let ExchangeStep { what, done, all, in_mib } = *self.0.lock().ok()?;
        match (what, all) {
            ("", _) => None,
            (what, 0) => Some(what.to_owned()),
            (what, all) if in_mib => {
                Some(format!("{what}: {} of {} MiB", done >> 20, all.div_ceil(1 << 20)))
            }
            (what, all) => Some(format!("{what}: {done} of {all}")),
        }
    }

    fn change(&self, change: impl FnOnce(&mut ExchangeStep)) {
        // Nothing panics while it is locked.
        if let Ok(mut step) = self.0.lock() {
            change(&mut step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_shows_the_step_and_the_done_part() {
        let progress = ExchangeProgress::default();
        assert_eq!(progress.shown(), None);
        progress.begin("reading results", 99_407);
        progress.advance(11_000);
        progress.advance(1_000);
        assert_eq!(progress.shown().unwrap(), "reading results: 12000 of 99407");
        progress.begin_bytes("copying large results", 5 << 20);
        progress.advance_bytes(2 << 20);
        assert_eq!(progress.shown().unwrap(), "copying large results: 2 of 5 MiB");
        progress.begin("sending", 0);
        assert_eq!(progress.shown().unwrap(), "sending");
    }
}
