//! `ce push` and `ce pull`: results go to a repository, and come from one.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Parser, ValueEnum};

use super::Tool;
use super::options::writable;
use super::storage_args::{AbsentStorage, Ends, FoundEnds, NewStorage, check_known};
use ce_evaluate::session::{Error, KnownStorages, OutputError, named_call};
use ce_exchange::{
    CrowdedDirectory, LedgerFacts, PullRequest, Pulled, PushRequest, Pushed, PushedLogs,
    ResultsBranch, ResultsError, RevokeRequest, TrustSettings, mirror, pull, push, revoke,
};
use ce_files::cache::Cache;
use ce_git::{Mirror, Prompts};
use ce_model::exit::Exit;
use ce_model::humanize::parse_count;
use ce_model::resources::parse_size;
use ce_report::{exchanging, json_line, not_pulled, not_pushed, pulled, pushed, say};
use ce_storage::{Durability, Entry, Storage, Unrecorded};

/// Add the results of a storage to a Git repository
///
/// The repository has the layout of a storage, so that a clone of it is one. It gets the outputs of executed calls, jobs
/// and sweeps, with records of their origins, but without users, hosts and times. Existing results stay as they are. If
/// others push at the same time, the results join.
#[derive(Debug, Parser)]
#[command(version, after_help = PUSH_EXIT_CODES)]
pub(super) struct Push {
    /// Push nothing; print the results that would be pushed
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// Leave out results with a file larger than this, such as 100M: many servers refuse them [default: 64M, and none for Git LFS
    /// objects]
    #[arg(long, value_name = "SIZE", value_parser = limit)]
    limit: Option<u64>,

    /// Make outputs larger than this Git LFS objects in this repository, such as 10M, from now on, for all users
    #[arg(long, value_name = "SIZE", value_parser = limit, conflicts_with = "revoke")]
    lfs: Option<u64>,

    /// How the ledger of executions calls you [default: it names nobody]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    /// Add to the ledger that the calls which the repository has already were executed here, too
    #[arg(long)]
    attest: bool,

    /// Say in the ledger when executions ended
    #[arg(long)]
    times: bool,

    /// Say in the ledger on which machines they were: processors, memory, kernel
    #[arg(long, requires = "times")]
    machine: bool,

    /// Push files that seem to hold keys, tokens, or the values of variables with secrets, too
    #[arg(long)]
    allow_secrets: bool,

    /// Push the logs of isolated calls, too; with `all`, the logs of all calls. A log with a secret, or the name of a host
    /// or a user, is not pushed
    #[arg(long, value_name = "WHICH", require_equals = true, num_args = 0..=1, default_missing_value = "isolated")]
    logs: Option<LogChoice>,

    /// Push the inputs of jobs, too: the files that they were given
    #[arg(long)]
    inputs: bool,

    /// Take the results of inboxes into the results of the repository, too: inboxes are from users who may not write there,
    /// or were always overtaken
    #[arg(long)]
    collect: bool,

    /// Sign the commit, with the key and the program that `git commit -S` takes [default: compeval.sign in Git's configuration]
    #[arg(long)]
    sign: bool,

    /// Revoke a call in place of pushing results: its name c_NAME/CCID/INPUTS, or one of its files. May be given several times
    #[arg(long, value_name = "CALL", requires = "because")]
    revoke: Vec<String>,

    /// The reason why calls are revoked
    #[arg(long, value_name = "TEXT", requires = "revoke")]
    because: Option<String>,

    /// Print only the results that were not pushed, and why
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    ends: Ends,
}

/// Which logs are pushed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogChoice {
    Isolated,
    All,
}

impl LogChoice {
    const fn logs(self) -> PushedLogs {
        match self {
            Self::Isolated => PushedLogs::Isolated,
            Self::All => PushedLogs::All,
        }
    }
}

const PUSH_EXIT_CODES: &str = "\
Exit codes: 0 the repository has everything that can be pushed, 1 something was not pushed, differs from what is \
there, or is in an inbox, 2 the arguments are wrong, 3 something would be pushed (-n), 5 the storage or the \
repository could not be read or written.";

impl Tool for Push {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let FoundEnds { storage: path, repository, is_configured, .. } = self.ends.find()?;
        if is_configured {
            check_known(Path::new("."), &path)?;
        }
        let storage = self.open(&path)?;
        let mirror = mirror(&repository, Cache::of_user().as_ref(), Prompts::at_terminal())?;
        let sign = self.signs(&mirror)?;
        if let Some(reason) = self.because.clone() {
            let mut calls = Vec::with_capacity(self.revoke.len());
            for call in &self.revoke {
                calls.push(Entry::Call(named_call(&storage, Path::new(call))?));
            }
            let request = RevokeRequest { calls, reason, sign, dry: self.dry_run };
            return self.tell(&revoke(&storage, &mirror, &request)?, mirror.url(), out);
        }
        let request = PushRequest {
            limit: self.limit,
            lfs: self.lfs,
            by: self.by.clone(),
            attest: self.attest,
            facts: LedgerFacts { times: self.times, machine: self.machine },
            allow_secrets: self.allow_secrets,
            logs: self.logs.map_or(PushedLogs::None, LogChoice::logs),
            inputs: self.inputs,
            collect: self.collect,
            sign,
            dry: self.dry_run,
            progress: Arc::default(),
        };
        let outcome = if self.json || self.quiet {
            push(&storage, &mirror, &request)
        } else {
            exchanging(&request.progress, || push(&storage, &mirror, &request))
        };
        self.tell(&outcome?, mirror.url(), out)
    }
}

impl Push {
    /// Prints the pushed results.
    fn tell(&self, outcome: &Pushed, url: &str, out: &mut dyn Write) -> Result<Exit, Error> {
        let told = match self.json {
            true => json_line(outcome, out),
            false if self.quiet => not_pushed(outcome, out),
            false => {
                pushed(outcome, url, self.dry_run, out).and_then(|()| not_pushed(outcome, out))
            }
        };
        told.map_err(OutputError)?;
        if let Some(CrowdedDirectory { path, entries }) = &outcome.crowded {
            let so_many = format_args!("{path} has {entries} entries");
            say(
                "ce",
                &format_args!(
                    "{so_many}: pushes become slow, and servers such as GitHub recommend at most 3,000"
                ),
            );
        }
        Ok(match outcome.is_complete() {
            false => Exit::Failed,
            true if self.dry_run
                && (outcome.is_new() || outcome.emptied > 0 || outcome.restored > 0) =>
            {
                Exit::Missing
            }
            true => Exit::Done,
        })
    }

    /// Whether commits are signed.
    fn signs(&self, mirror: &Mirror) -> Result<bool, Error> {
        Ok(self.sign || mirror.config(Path::new("."))?.sign()?.unwrap_or(false))
    }
}

impl Push {
    /// Opens the storage, for writing if it can be written: the lines of the ledger about its calls are kept there, too.
    fn open(&self, path: &Path) -> Result<Storage, Error> {
        if self.dry_run {
            return Ok(Storage::existing(path)?);
        }
        writable(path).or_else(|_| Ok(Storage::existing(path)?))
    }
}

pub(super) fn limit(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}

/// Take the results of a Git repository into a storage
///
/// Each result is published as if it had been executed here, once its files were compared with its record. Existing results
/// stay as they are. The storage may be in use, and is made if it does not exist.
#[derive(Debug, Parser)]
#[command(version, after_help = PULL_EXIT_CODES)]
pub(super) struct Pull {
    /// Take nothing; print the results that would be taken
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// Leave out results with a file larger than this, such as 100M [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = limit)]
    limit: Option<u64>,

    /// Take only results that one of these has signed: a file of allowed signers, as ssh has it [default: compeval.signers
    /// in Git's configuration]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    signers: Option<PathBuf>,

    /// Take only calls for which this number of attesters have had the same outputs [default: compeval.require in Git's
    /// configuration]
    #[arg(long, value_name = "NUMBER", value_parser = parse_count)]
    require: Option<NonZeroUsize>,

    /// Take results even if their history was rewritten since the last time
    #[arg(long)]
    rewritten: bool,

    /// Print only the results that were not pulled, and why
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Do not wait until results are on the disk
    #[arg(long)]
    no_sync: bool,

    #[command(flatten)]
    new_storage: NewStorage,

    #[command(flatten)]
    ends: Ends,
}

const PULL_EXIT_CODES: &str = "\
Exit codes: 0 everything that can be taken is here, 1 something was refused, or differs from what is here, 2 the \
arguments are wrong, 3 something would be taken (-n), 5 the storage or the repository could not be read or written.";

impl Pull {
    /// Returns the settings of trust: as they were typed, and as they are configured.
    fn trust(&self, mirror: &Mirror) -> Result<TrustSettings, Error> {
        let config = mirror.config(Path::new("."))?;
        let (signers, require) = (self.signers.clone(), self.require);
        let trust = TrustSettings::new(mirror, &config, signers, require, self.rewritten)?;
        for name in trust.strangers() {
            say(
                "ce",
                &format_args!(
                    "warning: compeval.trust names {name}, who is not in the file of signers, so it limits nobody; try: correct one of them"
                ),
            );
        }
        Ok(trust)
    }
}

impl Tool for Pull {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let cache = Cache::of_user();
        let FoundEnds { storage: path, repository, is_configured, named_by } = self.ends.find()?;
        if !self.new_storage.is_accepted(is_configured) {
            check_known(Path::new("."), &path)?;
        }
        let mirror = mirror(&repository, cache.as_ref(), Prompts::at_terminal())?;
        let trust = self.trust(&mirror)?;
        let durability = if self.no_sync { Durability::Unsynced } else { Durability::Synced };
        let storage = Storage::inspect(&path, Unrecorded::Refuse)?;
        let absent = AbsentStorage::detect(&storage);
        // No storage is made for a repository that cannot be reached.
        let branch = ResultsBranch::listed(&mirror).map_err(ResultsError::from)?;
        let storage = if self.dry_run { storage } else { storage.into_writable(durability)? };
        let storage = storage.with_cache(cache);
        let is_signed = trust.signers.is_some();
        let progress = Arc::default();
        let request = PullRequest { limit: self.limit, trust, dry: self.dry_run, progress };
        let is_silent = self.json || self.quiet;
        let outcome = if is_silent {
            pull(&storage, &mirror, &branch, &request)
        } else {
            exchanging(&request.progress, || pull(&storage, &mirror, &branch, &request))
        };
        let is_refused = !outcome.as_ref().is_ok_and(Pulled::is_complete);
        // A storage that was made in vain is not remembered, and does not stay.
        let is_in_vain = is_refused && absent.is_some();
        let is_used = !self.dry_run && !is_in_vain;
        let remembered = if is_used { remember(&storage) } else { Ok(()) };
        drop(storage);
        if let Some(absent) = absent.filter(|_| !self.dry_run)
            && (!is_refused || !absent.unmake())
        {
            absent.tell("ce", "made a new storage at");
        }
        let outcome = outcome?;
        let told = match self.json {
            true => json_line(&outcome, out),
            false if self.quiet => not_pulled(&outcome, out),
            false => pulled(&outcome, mirror.url(), self.dry_run, out)
                .and_then(|()| not_pulled(&outcome, out)),
        };
        told.map_err(OutputError)?;
        if outcome.is_new() && !is_signed && !self.dry_run && !is_silent {
            say(
                "ce",
                &format_args!(
                    "no signatures were checked, since no signers are set: {} the repository, and that counts",
                    named_by.map_or("you named".to_owned(), |file| format!(
                        "the file {file} of the task names"
                    ))
                ),
            );
        }
        remembered?;
        Ok(match outcome.is_complete() {
            false => Exit::Failed,
            true if self.dry_run && outcome.is_new() => Exit::Missing,
            true => Exit::Done,
        })
    }
}

/// Lets the repository of the current directory, if there is one, remember a storage.
fn remember(storage: &Storage) -> Result<(), Error> {
    let known = KnownStorages::read(Path::new("."))?;
    known.map_or(Ok(()), |mut known| known.remember(storage, |warning| say("ce", &warning)))
}
