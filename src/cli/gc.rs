//! `ce gc`: takes away what nobody needs any more.

use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;

use clap::Parser;
use jiff::Timestamp;

use super::options::{warn_of_links, writable};
use super::times::time;
use super::{Tool, say};
use crate::exit::Exit;
use crate::git::ReachableSet;
use crate::questions::collect::{self, Candidate, CollectRequest, Fate};
use crate::questions::history::History;
use crate::report::{self, Sum};
use crate::session::Error;
use crate::storage::{KnownRepositories, RepositoryRecord, Storage};

/// List unused results, by task; with --delete, collect them
///
/// Garbage collection. Prints a line for each result: its size, its computing time, when it was
/// recorded, and its file. A result is kept, with everything that it was made from, by a commit that
/// a kept repository reaches, by its age, by a pin, or by a concurrent run. The record of a collected
/// result stays as a tombstone.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Exit codes: 0 done, 2 the arguments are wrong, or a repository cannot be read completely, 5 the \
storage could not be read or written."
)]
pub struct Gc {
    /// Keep what belongs to any branch, tag or other reference of a task's repository [default:
    /// all repositories that are recorded to use the storage]
    #[arg(long, value_name = "REPOSITORY", value_hint = clap::ValueHint::DirPath)]
    keep: Vec<PathBuf>,

    /// Let no repository keep results, only age, pins and concurrent runs
    #[arg(long, conflicts_with = "keep", requires = "older")]
    no_keep: bool,

    /// Keep what was recorded since: 1y, 90d, 2026-07-31
    #[arg(long, value_name = "AGE", value_parser = time)]
    older: Option<Timestamp>,

    /// Delete, instead of listing only
    #[arg(long)]
    delete: bool,

    /// Dry run: only list what would be deleted; this is the default
    #[arg(short = 'n', long, conflicts_with = "delete")]
    dry_run: bool,

    /// List the repositories that are recorded to use the storage, and do nothing else
    #[arg(long, conflicts_with_all = OTHERS)]
    repositories: bool,

    /// Forget a recorded repository, given by its ID or path, and do nothing else
    #[arg(long, value_name = "REPOSITORY", conflicts_with_all = OTHERS, value_hint = clap::ValueHint::DirPath)]
    forget: Vec<String>,

    /// The directory that keeps all results
    #[arg(value_hint = clap::ValueHint::DirPath)]
    storage: PathBuf,
}

/// Options that have no meaning where nothing is collected.
const OTHERS: [&str; 5] = ["keep", "no_keep", "older", "delete", "dry_run"];

impl Tool for Gc {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let storage = &match self.delete || !self.forget.is_empty() {
            true => writable(&self.storage)?,
            false => Storage::existing(&self.storage)?,
        };
        collect::forget(storage, &self.forget)?;
        if self.repositories {
            report::repositories(&KnownRepositories::new(storage).all()?, out)
                .map_err(Error::Output)?;
        }
        if self.repositories || !self.forget.is_empty() {
            return Ok(Exit::Done);
        }
        warn_of_links(storage)?;
        let request = CollectRequest { reach: self.reach(storage)?, since: self.older };
        let history = History::read(storage)?.with_recipes(storage)?;
        let candidates = collect::candidates(storage, &history, &request)?;
        let candidates = match self.delete {
            true => Self::collect(storage, &history, candidates)?,
            false => candidates,
        };
        let groups = collect::groups(&history, &candidates);
        report::candidates(storage, &groups, out).map_err(Error::Output)?;
        let sum = Sum::of(candidates.iter());
        match (self.delete, candidates.is_empty()) {
            (true, _) => say("ce", &format_args!("collected {sum}")),
            (false, true) => say("ce", &format_args!("would collect {sum}")),
            (false, false) => {
                say("ce", &format_args!("would collect {sum}; give --delete to do so"));
            }
        }
        Ok(Exit::Done)
    }
}

impl Gc {
    /// Everything that the repositories to be kept for reach.
    fn reach(&self, storage: &Storage) -> Result<Option<ReachableSet>, Error> {
        if self.no_keep {
            return Ok(None);
        }
        if self.keep.is_empty() {
            return Ok(Some(collect::reach_of_recorded(storage)?));
        }
        let mut reach = ReachableSet::default();
        self.keep.iter().try_for_each(|repository| reach.add(repository))?;
        let kept = self.keep.iter().map(PathBuf::as_path);
        for RepositoryRecord { path, recorded, .. } in collect::not_kept(storage, kept)? {
            let (path, host) = (report::harmless(&path), recorded.host);
            let told = format!("warning: {path} of the host {host} uses the storage, too");
            say("ce", &format_args!("{told}, and nothing is kept for it"));
        }
        Ok(Some(reach))
    }

    /// Takes candidates away; returns those that went.
    fn collect<'a>(
        storage: &Storage,
        history: &History,
        mut candidates: Vec<Candidate<'a>>,
    ) -> Result<Vec<Candidate<'a>>, Error> {
        let mut kept = HashSet::new();
        let collected = collect::collect(storage, history, &candidates, &mut |entry, fate| {
            if fate == Fate::Kept {
                let file = storage.shown(&entry.file(0));
                say("ce", &format_args!("{} stays: it is in use", file.display()));
                kept.insert(entry.clone());
            }
        });
        candidates.retain(|candidate| !kept.contains(candidate.entry));
        collected?;
        Ok(candidates)
    }
}
