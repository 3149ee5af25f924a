//! `ce gc`: removes what nobody needs. `ce pin`: keeps results, regardless of the rest.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Parser;
use jiff::Timestamp;

use super::Tool;
use super::options::{PastTime, past_time, warn_of_links, writable};
use super::storage_args::{StorageDir, configured_storage, storage_and_results};
use ce_evaluate::session::{Error, OutputError, naming_results};
use ce_exchange::{copies, mirror};
use ce_files::cache::Cache;
use ce_git::{Prompts, ReachableSet, UnreadableWorkflow};
use ce_history::collect::{self, Candidate, CollectRequest, Fate};
use ce_history::{History, InputTexts};
use ce_model::exit::{Exit, Explain};
use ce_model::humanize::{counted, parse_count};
use ce_model::name::ComputationName;
use ce_model::resources::parse_size;
use ce_model::suggest::UnknownName;
use ce_report::{self as report, CandidateTotals, say};
use ce_storage::{
    Entry, KnownRepositories, Pins, Record, RepositoryRecord, Storage, StorageError, Survey,
};

/// List unused results, by task; with --delete, collect them
///
/// Garbage collection. Prints a line for each result: its size, its computing time, when it was
/// recorded, its computation and the short texts that it has read, and its file. A result is kept, with everything that it was made from, by a commit that
/// a kept repository reaches, by its age, by a pin, or by a concurrent run. The record of a collected
/// result stays as a tombstone.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Exit codes: 0 done, 2 the arguments are wrong, or a repository cannot be read completely, 5 the \
storage could not be read or written."
)]
pub(super) struct Gc {
    /// Keep results that belong to any branch, tag or other reference of a task's repository [default: all repositories
    /// that are recorded to use the storage]
    #[arg(long, value_name = "REPOSITORY", value_hint = clap::ValueHint::DirPath)]
    keep: Vec<PathBuf>,

    /// Let no repository keep results, only age, pins and concurrent runs
    #[arg(long, conflicts_with = "keep", requires = "older")]
    no_keep: bool,

    /// Keep results recorded since then: 90d, 36h, 2026-07-31, 2026-07-31T12:00:00Z; 0s keeps nothing
    #[arg(long, value_name = "TIME", value_parser = past_time)]
    older: Option<PastTime>,

    /// Delete, instead of listing only
    #[arg(long)]
    delete: bool,

    /// Dry run: only list what would be deleted; this is the default
    #[arg(short = 'n', long, conflicts_with = "delete")]
    dry_run: bool,

    /// Make outputs away that this results repository has: they are removed, their records stay, and they come back by ce pull or
    /// by being executed again
    #[arg(long, value_name = "REPOSITORY", group = MAKING_AWAY, conflicts_with_all = RULES, value_hint = clap::ValueHint::DirPath)]
    published: Vec<String>,

    /// How many of the repositories of --published must have an output [default: 1]
    #[arg(long, value_name = "N", requires = "published", value_parser = parse_count)]
    copies: Option<NonZeroUsize>,

    /// Believe that the server of --published has each Git LFS object to which there is a pointer, in place of fetching and comparing it
    #[arg(long, requires = "published")]
    believe: bool,

    /// Make outputs away that can be made again: their executions were isolated, and all their inputs are here or can be
    /// made again
    #[arg(long, group = MAKING_AWAY, conflicts_with_all = RULES)]
    recomputable: bool,

    /// With --published or --recomputable: only outputs of this computation; give it again for more of them
    #[arg(long, value_name = "NAME", requires = MAKING_AWAY)]
    only: Vec<ComputationName>,

    /// With --published or --recomputable: only results of calls whose outputs are larger: 500K, 20M, 1G
    #[arg(long, value_name = "SIZE", value_parser = parse_size, requires = MAKING_AWAY)]
    larger: Option<u64>,

    /// List the repositories that are recorded to use the storage, and do nothing else
    #[arg(long, conflicts_with_all = OTHERS)]
    repositories: bool,

    /// Forget a recorded repository, given by its ID or path, and do nothing else
    #[arg(long, value_name = "REPOSITORY", conflicts_with_all = OTHERS, value_hint = clap::ValueHint::DirPath)]
    forget: Vec<String>,

    /// Print only the results that stay because they are in use
    #[arg(short, long, requires = "delete", conflicts_with = "json")]
    quiet: bool,

    /// Print results and their sum, or repositories, as JSON, one object a line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    storage: StorageDir,
}

/// Options that have no meaning where nothing is collected.
const OTHERS: [&str; 11] = [
    "keep",
    "no_keep",
    "older",
    "delete",
    "dry_run",
    "published",
    "copies",
    "believe",
    "recomputable",
    "only",
    "larger",
];

/// The options that make outputs away.
const MAKING_AWAY: &str = "making-away";

/// Options that say which commits keep results. The record of a result that is away is kept in any case.
const RULES: [&str; 2] = ["keep", "no_keep"];

/// Takes candidates away, and reports the fate of each.
type Collect = fn(
    &Storage,
    &History,
    &[Candidate<'_>],
    &mut dyn FnMut(&Entry, Fate),
) -> Result<(), StorageError>;

impl Tool for Gc {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let path = self.storage.find()?;
        let storage = &if self.delete || !self.forget.is_empty() {
            writable(&path)?
        } else {
            Storage::existing(&path)?
        };
        collect::forget(storage, &self.forget)?;
        if self.repositories {
            let known = KnownRepositories::new(storage).all()?;
            let print = if self.json { report::repositories_json } else { report::repositories };
            print(&known, out).map_err(OutputError)?;
        }
        if self.repositories || !self.forget.is_empty() {
            return Ok(Exit::Done);
        }
        warn_of_links(storage)?;
        say_left_by_others(storage)?;
        if self.recomputable || !self.published.is_empty() {
            return self.make_away(storage, out);
        }
        // A result that is recorded later is not a candidate: its commit or its repository may be later, too.
        let history = History::read(storage)?.with_recipes(storage)?;
        let request = CollectRequest { reach: self.reach(storage)?, since: self.since() };
        let candidates = collect::candidates(storage, &history, &request)?;
        let texts = self.texts(storage, &candidates);
        let candidates = if self.delete {
            Self::collect(storage, &history, candidates, collect::collect)?
        } else {
            Self::not_in_use(storage, &history, candidates)?
        };
        self.tell(storage, &history, &candidates, &texts, ["collected", "collect"], out)
    }
}

impl Gc {
    /// The time since which results are kept.
    fn since(&self) -> Option<Timestamp> {
        self.older.and_then(PastTime::limit)
    }

    /// Everything that the repositories to be kept for reach.
    fn reach(&self, storage: &Storage) -> Result<Option<ReachableSet>, Error> {
        if self.no_keep {
            return Ok(None);
        }
        if self.keep.is_empty() {
            let reach = collect::reach_of_recorded(storage)?;
            warn_of_unreadable(&reach);
            return Ok(Some(reach));
        }
        let mut reach = ReachableSet::default();
        self.keep.iter().try_for_each(|repository| reach.add(repository))?;
        warn_of_unreadable(&reach);
        let kept = self.keep.iter().map(PathBuf::as_path);
        for RepositoryRecord { path, recorded, .. } in collect::not_kept(storage, kept)? {
            let (path, host) = (report::harmless(&path), recorded.host);
            say(
                "ce",
                &format_args!(
                    "warning: {path} of the host {host} uses the storage, too, and nothing is kept for it\n  try: --keep {path}, too, if its results are to stay"
                ),
            );
        }
        Ok(Some(reach))
    }

    /// Makes outputs away, or lists the outputs that would be made away.
    fn make_away(&self, storage: &Storage, out: &mut dyn Write) -> Result<Exit, Error> {
        let history = History::read(storage)?.with_recipes(storage)?;
        let mut candidates = collect::evictable(storage, &history, self.since())?;
        self.warn_of_unknown(&history);
        // Results that are not chosen stay, so others can be made from them again.
        candidates.retain(|it| self.chooses(it));
        if self.recomputable {
            candidates = collect::recomputable(storage, &history, candidates)?;
        }
        if !self.published.is_empty() {
            let cache = Cache::of_user();
            let mirrors = self.published.iter().map(|it| mirror(it, cache.as_ref(), Prompts::Off));
            let mut mirrors = mirrors.collect::<Result<Vec<_>, _>>()?;
            let results = candidates.iter().map(|it| (it.entry, it.record));
            let copies = copies(storage, &mut mirrors, results, self.believe)?;
            let wanted = self.copies.map_or(1, NonZeroUsize::get);
            candidates.retain(|it| copies.get(it.entry).is_some_and(|copies| *copies >= wanted));
        }
        let texts = self.texts(storage, &candidates);
        candidates = if self.delete {
            Self::collect(storage, &history, candidates, collect::evict)?
        } else {
            Self::not_in_use(storage, &history, candidates)?
        };
        self.tell(storage, &history, &candidates, &texts, ["made away", "make away"], out)
    }

    /// Says which computations of --only have no call here.
    fn warn_of_unknown(&self, history: &History) {
        let calls = history.results().iter().filter_map(|(_, record)| match record {
            Record::Call(call) => Some(&call.computation),
            Record::Job(_) | Record::Table(_) | Record::TaskInput(_) => None,
        });
        let known: HashSet<&ComputationName> = calls.collect();
        for name in self.only.iter().filter(|name| !known.contains(name)) {
            let hint = UnknownName::new(name.as_str(), &known).meant();
            let hint = hint.unwrap_or_else(|| "ce log lists calls".to_owned());
            say("ce", &format_args!("warning: no call of {name} is recorded\n  try: {hint}"));
        }
    }

    /// Whether outputs of a call are among the outputs to be made away.
    fn chooses(&self, candidate: &Candidate<'_>) -> bool {
        let Record::Call(call) = candidate.record else { return false };
        (self.only.is_empty() || self.only.contains(&call.computation))
            && self.larger.is_none_or(|size| candidate.bytes > size)
    }

    /// The texts that candidates are known by, if they are listed. They are read before they are taken away.
    fn texts<'a>(
        &self,
        storage: &Storage,
        candidates: &[Candidate<'a>],
    ) -> HashMap<&'a Entry, InputTexts> {
        if self.json || self.quiet {
            return HashMap::new();
        }
        let results: Vec<_> = candidates.iter().map(|it| (it.entry, it.record)).collect();
        let texts = ce_history::texts_of(storage, &results);
        results.into_iter().map(|(entry, _)| entry).zip(texts).collect()
    }

    /// Prints how these results were treated, or would be.
    fn tell(
        &self,
        storage: &Storage,
        history: &History,
        candidates: &[Candidate<'_>],
        texts: &HashMap<&Entry, InputTexts>,
        [done, verb]: [&str; 2],
        out: &mut dyn Write,
    ) -> Result<Exit, Error> {
        let (groups, sum) =
            (collect::groups(history, candidates), CandidateTotals::sum(candidates.iter()));
        if self.json {
            report::candidates_json(storage, &groups, sum, self.delete, out)
                .map_err(OutputError)?;
            return Ok(Exit::Done);
        }
        if self.quiet {
            return Ok(Exit::Done);
        }
        report::candidates(storage, &groups, texts, out).map_err(OutputError)?;
        match (self.delete, candidates.is_empty()) {
            (true, _) => say("ce", &format_args!("{done} {sum}")),
            (false, true) => say("ce", &format_args!("would {verb} {sum}")),
            (false, false) => {
                say("ce", &format_args!("would {verb} {sum}; give --delete to do so"));
            }
        }
        Ok(Exit::Done)
    }

    /// Removes candidates; returns the removed ones.
    fn collect<'a>(
        storage: &Storage,
        history: &History,
        mut candidates: Vec<Candidate<'a>>,
        collect: Collect,
    ) -> Result<Vec<Candidate<'a>>, Error> {
        let mut kept = HashSet::new();
        let collected = collect(storage, history, &candidates, &mut |entry, fate| {
            if fate == Fate::Kept {
                say_in_use(storage, entry);
                kept.insert(entry.clone());
            }
        });
        candidates.retain(|candidate| !kept.contains(candidate.entry));
        collected?;
        Ok(candidates)
    }

    /// Leaves out the candidates that would stay since they are in use, and says so.
    fn not_in_use<'a>(
        storage: &Storage,
        history: &History,
        mut candidates: Vec<Candidate<'a>>,
    ) -> Result<Vec<Candidate<'a>>, Error> {
        let used = collect::in_use(storage, history, &candidates)?;
        for candidate in candidates.extract_if(.., |it| used.contains(it.entry)) {
            say_in_use(storage, candidate.entry);
        }
        Ok(candidates)
    }
}

/// Says which workflows of reachable commits cannot be read.
fn warn_of_unreadable(reach: &ReachableSet) {
    for UnreadableWorkflow { repository, commit, path, fault } in reach.unreadable() {
        let (repository, path) = (repository.to_string_lossy(), path.to_string_lossy());
        let (repository, path) = (report::harmless(&repository), report::harmless(&path));
        let fault = report::harmless(fault);
        say(
            "ce",
            &format_args!(
                "warning: {repository}: at the commit {commit}, {path} cannot be read, so it uses no results: {fault}\n  try: git rebase corrects a commit; until then, results that the text names are kept"
            ),
        );
    }
}

/// Says whose ended runs have left directories that only their users may enter.
fn say_left_by_others(storage: &Storage) -> Result<(), Error> {
    for (owner, runs) in Survey::new(storage).left_by_others()? {
        let runs = counted(runs, "ended run");
        say(
            "ce",
            &format_args!(
                "private files of {runs} of {owner} stay: the next run of {owner} removes them"
            ),
        );
    }
    Ok(())
}

fn say_in_use(storage: &Storage, entry: &Entry) {
    say("ce", &format_args!("{} stays: it is in use", storage.shown(&entry.file(0)).display()));
}

/// No result is named for an option that changes pins.
#[derive(Debug, thiserror::Error, Explain)]
#[error("{0} needs a file")]
#[hint(Some(naming_results()))]
struct NothingToPin(&'static str);

/// Pin results, so that they are never collected; without a file, list the pinned results
///
/// A result that is pinned stays with everything that it was made from.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
Exit codes: 0 done, 2 the arguments are wrong or a file has no record, 5 the storage could not be \
read or written."
)]
pub(super) struct Pin {
    /// Remove the pins
    #[arg(long, conflicts_with = "note")]
    remove: bool,

    /// Why they are pinned
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Print the pinned results as JSON, one object a line
    #[arg(long)]
    json: bool,

    /// The directory that keeps all results [default: the one in the path of the first file, else compeval.storage in Git's
    /// configuration]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    storage: Option<PathBuf>,

    /// An output or task input: its path, with or without the storage's, or the first four or
    /// more digits of its SHA-1
    #[arg(value_hint = clap::ValueHint::FilePath)]
    files: Vec<PathBuf>,
}

impl Tool for Pin {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let (path, files) =
            storage_and_results(self.storage.as_deref(), &self.files, configured_storage()?)?;
        if let Some(option) = self.changing().filter(|_| files.is_empty()) {
            return Err(NothingToPin(option).into());
        }
        if files.is_empty() {
            let storage = Storage::existing(&path)?;
            warn_of_links(&storage)?;
            let pins = Pins::new(&storage).all()?;
            let printed = if self.json {
                report::pins_json(&storage, &pins, out)
            } else {
                let mut pinned = Vec::with_capacity(pins.len());
                for (entry, _) in &pins {
                    let record = storage.records().read_fitting(entry)?;
                    pinned.push(record.map(|record| {
                        let texts = ce_history::texts_of(&storage, &[(entry, &record)]).remove(0);
                        (record, texts)
                    }));
                }
                report::pins(&storage, &pins, &pinned, out)
            };
            printed.map_err(OutputError)?;
            return Ok(Exit::Done);
        }
        let storage = &writable(&path)?;
        warn_of_links(storage)?;
        let history = History::read(storage)?;
        // All are looked for before any is pinned.
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let mut entries = Vec::with_capacity(files.len());
        for file in &files {
            entries.push(history.find(storage, file)?.entry);
        }
        for (entry, file) in entries.into_iter().zip(&files) {
            if !self.remove {
                Pins::new(storage).add(entry, self.note.clone())?;
            } else if !Pins::new(storage).remove(entry)? {
                say("ce", &format_args!("{file} is not pinned"));
            }
        }
        Ok(Exit::Done)
    }
}

impl Pin {
    /// The option that needs a file.
    fn changing(&self) -> Option<&'static str> {
        if self.remove { Some("--remove") } else { self.note.as_ref().map(|_| "--note") }
    }
}
