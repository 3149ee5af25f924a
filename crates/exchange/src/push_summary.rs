//! What a push is asked for, and what it has done.

use std::sync::Arc;

use super::exchange_progress::ExchangeProgress;
use super::large_directories::CrowdedDirectory;
use super::ledger::counted_with_ledger;
use super::logs::PushedLogs;
use super::push_candidates::LeftOut;
use ce_git::RemoteRef;
use ce_storage::Entry;

/// The greatest size of a file unless the user says otherwise: GitHub refuses those of more than 100 MB.
pub const DEFAULT_LIMIT: &str = "64M";

/// The greatest limit, in bytes: files are held in memory.
pub const MAX_LIMIT: u64 = 256 << 20;

/// What is pushed.
#[derive(Debug)]
pub struct PushRequest {
    /// The greatest size of a file, in bytes.
    pub limit: u64,
    /// How the one who pushes wants to be called in the ledger.
    pub by: Option<String>,
    /// Whether the ledger says of all calls that were executed here that they were, also of those that the repository has already.
    pub attest: bool,
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

/// What is revoked.
#[derive(Debug)]
pub struct RevokeRequest {
    /// The calls.
    pub calls: Vec<Entry>,
    /// The reason, in words.
    pub reason: String,
    /// Whether the commit is signed, as the user's `git` signs.
    pub sign: bool,
    /// Whether nothing is written.
    pub dry: bool,
}

/// What was pushed, or would be.
#[derive(Debug, Default)]
pub struct Pushed {
    /// The number of calls that were new.
    pub calls: usize,
    /// The number of jobs that were new.
    pub jobs: usize,
    /// The number of tables that were new.
    pub tables: usize,
    /// The number of revocations that were new.
    pub revoked: usize,
    /// The number of revocations that were there already, of those that were asked for.
    pub revoked_before: usize,
    /// The number of calls that the repository had already and that were attested.
    pub attested: usize,
    /// The number of files of the ledger that were new, beside those of the calls.
    pub ledger: usize,
    /// The number of logs that were new.
    pub logs: usize,
    /// The number of task inputs that were new.
    pub inputs: usize,
    /// The size of their files, in bytes.
    pub bytes: u64,
    /// The number of results that were there already.
    pub known: usize,
    /// The number of those calls of which outputs stay here: too large ones, or such that are away here, too.
    pub away: usize,
    /// What stays here.
    pub left_out: Vec<LeftOut>,
    /// The paths of records that the repository has with other outputs.
    pub differing: Vec<String>,
    /// The reference that has them now, and the commit; none if nothing was new.
    pub now: Option<RemoteRef>,
    /// Whether that is an inbox, from which somebody else takes them.
    pub inbox: bool,
    /// The number of inboxes that there were.
    pub waiting: usize,
    /// The number of those that were emptied.
    pub emptied: usize,
    /// Inboxes that have something else than results, each with the path of that.
    pub strange: Vec<(String, String)>,
    /// The largest directory that the push adds to, if that has very many entries now.
    pub crowded: Option<CrowdedDirectory>,
}

impl Pushed {
    /// Whether the repository has everything in its place that may be pushed.
    pub fn is_complete(&self) -> bool {
        let is_withheld = self.left_out.iter().any(|it| it.why.is_wrong());
        !self.inbox && !is_withheld && self.differing.is_empty() && self.strange.is_empty()
    }

    /// How many of each kind were new, in words; empty if nothing was.
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
        self.calls + self.jobs + self.tables + extras > 0
    }
}
