//! `ce pull`: results come from a repository.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Parser;

use super::place::{AbsentStorage, Ends};
use super::push::limit;
use super::{Tool, say};
use crate::report::{exchanging, not_pulled, pulled, pulled_json};
use ce_evaluate::session::{Error, OutputError};
use ce_exchange::{
    DEFAULT_LIMIT, PullRequest, Pulled, ResultsBranch, ResultsError, TrustRule, TrustSettings,
    mirror, pull,
};
use ce_files::cache::Cache;
use ce_git::{Mirror, Prompts};
use ce_model::exit::Exit;
use ce_model::humanize::parse_count;
use ce_storage::{Durability, Storage, Unrecorded};

/// Take the results of a Git repository into a storage
///
/// Each result is published as if it had been executed here, once its files were compared with its record. What is here stays as it
/// is. The storage may be in use, and is made if it does not exist.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
pub struct Pull {
    /// Take nothing; print what would be taken
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// Leave out results with a file larger than this, such as 100M
    #[arg(long, value_name = "SIZE", value_parser = limit, default_value = DEFAULT_LIMIT)]
    limit: u64,

    /// Take only what one of these has signed: a file of allowed signers, as ssh has it [default: compeval.signers in Git's
    /// configuration]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    signers: Option<PathBuf>,

    /// Take only calls of which so many have had the same outputs [default: compeval.require in Git's configuration]
    #[arg(long, value_name = "NUMBER", value_parser = parse_count)]
    require: Option<NonZeroUsize>,

    /// Take results also if their history is not that of the last time
    #[arg(long)]
    rewritten: bool,

    /// Print only what was not pulled, and why
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Do not wait until results are on the disk
    #[arg(long)]
    no_sync: bool,

    #[command(flatten)]
    ends: Ends,
}

const EXIT_CODES: &str = "\
Exit codes: 0 everything that can be taken is here, 1 something was refused, or differs from what is here, 2 the \
arguments are wrong, 3 something would be taken (-n), 5 the storage or the repository could not be read or written.";

impl Pull {
    /// Who is trusted: by what was typed, and by the configuration.
    fn trust(&self, mirror: &Mirror) -> Result<TrustSettings, Error> {
        let config = mirror.config(Path::new("."))?;
        let signers = match &self.signers {
            Some(file) => Some(file.clone()),
            None => config.signers()?,
        };
        let rules: Vec<TrustRule> =
            config.trust()?.iter().map(|line| TrustRule::of_line(line)).collect();
        let require = match self.require {
            Some(number) => Some(number),
            None => config.require()?,
        };
        if signers.is_none() && !rules.is_empty() {
            return Err(ResultsError::NoSigners.into());
        }
        if let Some(number) = require.map(usize::from)
            && number > 1
            && signers.is_none()
        {
            return Err(ResultsError::TooFewSigners(number).into());
        }
        let trust = TrustSettings { signers, rules, require, rewritten: self.rewritten };
        trust.check_signers(mirror)?;
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
        let (path, repository) = self.ends.find()?;
        let mirror = mirror(&repository, cache.as_ref(), Prompts::at_terminal())?;
        let trust = self.trust(&mirror)?;
        let durability = if self.no_sync { Durability::Unsynced } else { Durability::Synced };
        let absent = AbsentStorage::at(&path)?;
        // No storage is made for what cannot be reached.
        let branch = ResultsBranch::listed(&mirror).map_err(ResultsError::from)?;
        let storage = match self.dry_run {
            true => Storage::inspect(&path, Unrecorded::Refuse)?,
            false => Storage::open(&path, Unrecorded::Refuse, durability)?,
        };
        let storage = storage.with_cache(cache);
        let is_signed = trust.signers.is_some();
        let progress = Arc::default();
        let request = PullRequest { limit: self.limit, trust, dry: self.dry_run, progress };
        let all = || pull(&storage, (&mirror, &branch), &request);
        let is_silent = self.json || self.quiet;
        let outcome = if is_silent { all() } else { exchanging(&request.progress, all) };
        let is_refused = !outcome.as_ref().is_ok_and(Pulled::is_complete);
        drop(storage);
        if let Some(absent) = absent.filter(|_| !self.dry_run) {
            // A storage that was made in vain does not stay.
            if !is_refused || !absent.unmake() {
                absent.tell("ce", "made a new storage at");
            }
        }
        let outcome = outcome?;
        let told = match self.json {
            true => pulled_json(&outcome, out),
            false if self.quiet => not_pulled(&outcome, out),
            false => pulled(&outcome, mirror.url(), self.dry_run, out)
                .and_then(|()| not_pulled(&outcome, out)),
        };
        told.map_err(OutputError)?;
        if outcome.is_new() && !is_signed && !self.dry_run && !is_silent {
            say(
                "ce",
                &"no signatures were checked, since no signers are set: you named the repository, and that counts",
            );
        }
        Ok(match outcome.is_complete() {
            false => Exit::Failed,
            true if self.dry_run && outcome.is_new() => Exit::Missing,
            true => Exit::Done,
        })
    }
}
