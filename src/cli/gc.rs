//! `ce gc`: takes away what nobody needs any more.

use std::io::Write;
use std::path::PathBuf;

use clap::{ArgGroup, Parser};
use jiff::Timestamp;

use super::options::{time, writable};
use super::{Tool, say};
use crate::collect::{self, Candidate, Fate, Request};
use crate::error::Error;
use crate::exit::Exit;
use crate::git::Reach;
use crate::history::History;
use crate::report::{self, Sum};
use crate::storage::Storage;

/// Collect results that nobody needs any more
///
/// Prints a line for each: its size, how long it was computed, when it was recorded, and its file.
/// A result stays if one of these holds it, and so does everything that it was made from: a commit
/// that a kept repository reaches, its age, a pin, or a run that goes on. The record of what goes
/// stays as a tombstone.
#[derive(Debug, Parser)]
#[command(
    version,
    group = ArgGroup::new("what").required(true).multiple(true),
    after_help = "\
Exit codes: 0 done, 2 the arguments are wrong, or not everything that a repository reaches can be \
told, 5 the storage could not be read or written."
)]
pub struct Gc {
    /// Keep what belongs to any branch, tag or other reference of a task's repository
    #[arg(long, value_name = "REPOSITORY", group = "what")]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    keep: Vec<PathBuf>,

    /// Keep what was recorded since: 1y, 90d, 2026-07-31
    #[arg(long, value_name = "AGE", value_parser = time, group = "what")]
    older: Option<Timestamp>,

    /// Only list what would go
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// The directory that keeps all results
    #[arg(value_hint = clap::ValueHint::DirPath)]
    storage: PathBuf,
}

impl Tool for Gc {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let request = Request { reach: self.reach()?, since: self.older };
        let storage = &match self.dry_run {
            true => Storage::existing(&self.storage)?,
            false => writable(&self.storage)?,
        };
        let history = History::read(storage)?;
        let candidates = collect::candidates(storage, &history, &request)?;
        let sum = if self.dry_run {
            report::candidates(storage, &candidates, out).map_err(Error::Output)?;
            Sum::of(&candidates)
        } else {
            self.collect(storage, &history, candidates, out)?
        };
        let collected = if self.dry_run { "would collect" } else { "collected" };
        say("ce", &format_args!("{collected} {sum}"));
        Ok(Exit::Done)
    }
}

impl Gc {
    fn reach(&self) -> Result<Option<Reach>, Error> {
        let mut reach = Reach::default();
        self.keep.iter().try_for_each(|repository| reach.add(repository))?;
        Ok((!self.keep.is_empty()).then_some(reach))
    }

    fn collect(
        &self,
        storage: &Storage,
        history: &History,
        mut candidates: Vec<Candidate<'_>>,
        out: &mut dyn Write,
    ) -> Result<Sum, Error> {
        let mut kept = std::collections::HashSet::new();
        let collected = collect::collect(storage, history, &candidates, &mut |entry, fate| {
            if fate == Fate::Kept {
                let file = storage.shown(&entry.file(0));
                say("ce", &format_args!("{} stays: it is in use", file.display()));
                kept.insert(entry.clone());
            }
        });
        candidates.retain(|candidate| !kept.contains(candidate.entry));
        collected?;
        report::candidates(storage, &candidates, out).map_err(Error::Output)?;
        Ok(Sum::of(&candidates))
    }
}
