//! The request for a push, and its result.

use std::fmt;
use std::sync::Arc;

use ce_git::RemoteRef;
use ce_model::humanize::size;
use serde::Serialize;

use crate::ledger::{LedgerFacts, counted_with_ledger};
use crate::repository::CrowdedDirectory;
use crate::{ExchangeProgress, in_words, reference_and_commit};

/// A request for a push.
#[derive(Debug)]
pub struct PushRequest {
    /// The greatest size of a file, in bytes. `None` for the default one of a file in Git, and for any size of a Git LFS object.
    pub limit: Option<u64>,
    /// The size above which outputs are to be Git LFS objects in this repository from now on; `None` if that stays as it is.
    pub lfs: Option<u64>,
    /// The name under which the pushing user appears in the ledger.
    pub by: Option<String>,
    /// Whether the ledger attests all calls that were executed here, also calls that the repository has already.
    pub attest: bool,
    /// The facts on executions that are published.
    pub facts: LedgerFacts,
    /// Whether files that seem to hold secrets are pushed.
    pub allow_secrets: bool,
    /// The logs that are pushed, too.
    pub logs: PushedLogs,
    /// Whether the inputs of jobs are pushed, too.
    pub inputs: bool,
    /// Whether results in inboxes become results of the repository.
    pub collect: bool,
    /// Whether commits are signed, as the user's `git` signs.
    pub sign: bool,
    /// Whether nothing is written.
    pub dry: bool,
    /// Learns how far the push is.
    pub progress: Arc<ExchangeProgress>,
}

/// The logs that are pushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PushedLogs {
    /// None.
    #[default]
    None,
    /// Logs of isolated executions.
    Isolated,
    /// All.
    All,
}

/// The summary of a push, or of its dry run. As JSON: doc/schema/output.json describes the fields.
#[derive(Debug, Default, Serialize)]
pub struct Pushed {
    /// The number of calls that were new.
    pub calls: usize,
    /// The number of calls whose outputs stay here, because they are too large, or away here, too.
    pub away: usize,
    /// The number of jobs that were new.
    pub jobs: usize,
    /// The number of tables that were new.
    pub tables: usize,
    /// The number of logs that were new.
    pub logs: usize,
    /// The number of task inputs that were new.
    pub inputs: usize,
    /// The number of calls that the repository had already and that were attested.
    pub attested: usize,
    /// The number of revocations that were new.
    pub revoked: usize,
    /// The number of requested revocations that were there already.
    #[serde(skip)]
    pub revoked_before: usize,
    /// The number of new files of the ledger, without the files of the calls.
    pub ledger: usize,
    /// The size of their files, in bytes.
    pub bytes: u64,
    /// The number of large files and archives that became Git LFS objects.
    pub large: usize,
    /// The size of these, in bytes.
    pub large_bytes: u64,
    /// The number of results that the repository had lost.
    #[serde(skip)]
    pub restored: usize,
    /// The size above which outputs are Git LFS objects there; `None` if no output is.
    pub lfs: Option<u64>,
    /// Whether that is a new rule.
    #[serde(skip)]
    pub is_set: bool,
    /// The number of results that were there already.
    pub known: usize,
    /// The paths of records that the repository has with other outputs.
    pub differing: Vec<String>,
    /// The results that stay here.
    pub left_out: Vec<LeftOut>,
    /// The reference that has them now, and the commit; `None` if nothing was new.
    #[serde(flatten, serialize_with = "reference_and_commit")]
    pub now: Option<RemoteRef>,
    /// Whether the place is an inbox, from which another user takes the results.
    pub inbox: bool,
    /// The number of inboxes.
    #[serde(rename = "inboxes")]
    pub waiting: usize,
    /// The number of inboxes that were emptied.
    pub emptied: usize,
    /// Inboxes that have something else than results.
    pub strange: Vec<StrangeInbox>,
    /// The largest directory that the push adds to, if that has very many entries now.
    #[serde(skip)]
    pub crowded: Option<CrowdedDirectory>,
}

/// An inbox that has something else than results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StrangeInbox {
    /// Its name.
    pub inbox: String,
    /// The path of a file that is not a result.
    pub path: String,
}

impl Pushed {
    /// Whether the repository has everything in its place that may be pushed.
    pub fn is_complete(&self) -> bool {
        let is_withheld = self.left_out.iter().any(|it| it.why.is_wrong());
        !self.inbox && !is_withheld && self.differing.is_empty() && self.strange.is_empty()
    }

    /// Returns the number of new ones of each kind, in words; empty if nothing was new.
    pub fn summary(&self) -> String {
        let Self { calls, jobs, tables, logs, inputs, attested, revoked, ledger, .. } = self;
        let results = [
            (*calls, "call"),
            (*jobs, "job"),
            (*tables, "table"),
            (*logs, "log"),
            (*inputs, "input"),
            (*attested, "attestation"),
            (*revoked, "revocation"),
        ];
        counted_with_ledger(&results, *ledger)
    }

    /// Whether anything is new to the repository.
    pub const fn is_new(&self) -> bool {
        let extras = self.logs + self.inputs + self.attested + self.ledger + self.revoked;
        self.calls + self.jobs + self.tables + extras > 0 || self.is_set
    }
}

/// A result that is not pushed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Its short name.
    pub name: String,
    /// The reason.
    #[serde(rename = "reason", serialize_with = "in_words")]
    pub why: Withheld,
}

/// The reason why a result is not pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// Its origin is unknown.
    Adopted,
    /// No commit has its computation.
    Dirty,
    /// It was taken over because its tree was trusted.
    TrustedTree,
    /// It is a job that depends on revisions.
    Revisions,
    /// A file is larger than the limit.
    Large {
        /// Its size in bytes.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A file is not the recorded one.
    Damaged {
        /// Its name.
        file: String,
    },
    /// It is the log of an execution that was not isolated.
    Log,
    /// It was revoked.
    Revoked { reason: String },
    /// A call of the job was revoked.
    RevokedCall {
        /// Its short name.
        call: String,
        reason: String,
    },
    /// A file seems to hold a secret.
    Secret {
        /// Its name.
        file: String,
        /// A description of the secret that it seems to hold.
        what: String,
    },
}

impl Withheld {
    /// Whether it needs attention: the others are left out by rule.
    pub fn is_wrong(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Secret { .. } | Self::Revoked { .. })
    }
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adopted => write!(f, "it was adopted, and nobody knows how it was made"),
            Self::Dirty => write!(f, "no commit has its computation: it had uncommitted changes"),
            Self::TrustedTree => {
                write!(f, "it was taken over from another commit, and was not isolated")
            }
            Self::Revisions => {
                write!(
                    f,
                    "it has read commits by tags or branches, which may name others elsewhere"
                )
            }
            Self::Large { bytes, limit } => {
                write!(f, "a file has {}, and the limit is {}", size(*bytes), size(*limit))
            }
            Self::Damaged { file } => write!(f, "{file} is not as recorded: ce verify says more"),
            Self::Log => {
                write!(
                    f,
                    "it was not isolated, so it may have printed anything; --logs=all pushes it"
                )
            }
            Self::Revoked { reason } => {
                write!(f, "it is revoked: {reason}; ce run --force executes it again")
            }
            Self::RevokedCall { call, reason } => {
                write!(f, "its call {call} is revoked: {reason}")
            }
            Self::Secret { file, what } => {
                write!(f, "{file} seems to hold {what}; --allow-secrets pushes it all the same")
            }
        }
    }
}
