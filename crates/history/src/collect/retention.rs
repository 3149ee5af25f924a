//! The results that a workflow of a reachable commit would use, whichever commit they were made for. These are the
//! results that a run with the most permissive settings takes over.
//!
//! A run asks for a call: a computation of its commit, with inputs that its workflow supplies. Here no run asks, so the
//! question is whether one could: the computation and its tree are in a reachable commit, and each input is a text or a
//! file of a reachable commit, a value that a user may give, or the output of a result that stays. Then the same rule
//! decides: [`Takeover::serves`], and [`choose_result`] chooses among the results that stand for one call.

use std::collections::{HashMap, HashSet};
use std::mem;

use jiff::Timestamp;

use super::RepositoryError;
use super::evict::is_here;
use crate::History;
use ce_git::{OpenInputs, ReachError, ReachableSet};
use ce_model::digest::Digest;
use ce_model::template::may_be;
use ce_storage::records::CallRecord;
use ce_storage::{
    Entry, OutputLocation, Record, ResultName, Storage, StorageError, Survey, Takeover,
    VersionlessCall, choose_result, is_of_layout, split_member,
};

/// Returns the results that reachable workflows name as literals. A name of a directory of the layout stands for everything in it, and a
/// name in braces for any text.
pub(super) fn literals<'a>(history: &'a History, reach: &ReachableSet) -> Vec<&'a Entry> {
    let words = reach.words().filter(|word| is_of_layout(word));
    let (open, names): (Vec<&str>, Vec<&str>) =
        reach.literals().chain(words).partition(|name| name.contains('{'));
    let names: HashSet<&str> = names.into_iter().map(|name| split_member(name).0).collect();
    if open.is_empty() && names.is_empty() {
        return Vec::new();
    }
    let is_read = |file: &str| {
        let mut around = Some(file);
        std::iter::from_fn(|| {
            let path = around?;
            around = path.rsplit_once('/').map(|(directory, _)| directory);
            Some(path)
        })
        .any(|path| names.contains(path) || open.iter().any(|name| may_be(name, path)))
    };
    let read = history.results().iter().filter(|(entry, record)| {
        entry.expected_files(record).iter().any(|file| is_read(&file.name))
    });
    read.map(|(entry, _)| entry).collect()
}

/// Returns the results that workflows of reachable commits would use, beside these that stay in any case.
pub(super) fn usable<'a>(
    storage: &Storage,
    history: &'a History,
    reach: &ReachableSet,
    kept: &[&'a Entry],
) -> Result<Vec<&'a Entry>, RepositoryError> {
    let kept: HashSet<&Entry> = history
        .results()
        .iter()
        .zip(history.with_origins(kept.iter().copied()))
        .filter(|(_, kept)| *kept)
        .map(|((entry, _), _)| entry)
        .collect();
    let mut supply = Supply { storage, history, reach, known: HashSet::new(), directories: vec![] };
    for text in reach.texts() {
        supply.known.insert(Digest::hash_bytes(text.as_bytes()));
    }
    let mut waiting = Vec::new();
    let mut opens = HashMap::new();
    for (entry, record) in history.results() {
        match record {
            _ if kept.contains(entry) => supply.add_outputs(record),
            Record::Call(call) => {
                let open = *opens
                    .entry(&call.computation)
                    .or_insert_with(|| reach.open_inputs(call.computation.as_str()));
                if let Some(open) = open
                    && Takeover::MOST.serves_tree(call)
                    && reach.has_version(&call.tree)
                {
                    let lacking = call.inputs.iter().enumerate();
                    let lacking = lacking.filter(|(number, it)| {
                        !supply.is_given(call, *number, it, open) && !supply.known.contains(*it)
                    });
                    let lacking = lacking.map(|(_, digest)| *digest).collect();
                    waiting.push(Unsupplied { entry, record, lacking });
                }
            }
            Record::Table(_) => {
                // A run makes its recipe again only if all results are there that it was made from.
                if let Some(rows) = history.rows(entry) {
                    let rows = rows.filter(|(entry, _)| !kept.contains(entry));
                    let lacking = rows.flat_map(|(_, record)| record.digests()).copied().collect();
                    waiting.push(Unsupplied { entry, record, lacking });
                }
            }
            Record::Job(_) | Record::TaskInput(_) => {}
        }
    }
    let used = supply.settle(waiting)?;
    choose(storage, history, &kept, used)
}

/// A result that is not kept so far, and the contents that are not known to be supplied.
struct Unsupplied<'a> {
    entry: &'a Entry,
    record: &'a Record,
    lacking: HashSet<Digest>,
}

/// The contents that reachable workflows can supply.
struct Supply<'a> {
    storage: &'a Storage,
    history: &'a History,
    reach: &'a ReachableSet,
    known: HashSet<Digest>,
    /// The directories among them whose members are yet to be found.
    directories: Vec<Digest>,
}

impl Supply<'_> {
    /// Adds the outputs of a result that stays. A task input is only supplied by who may give it.
    fn add_outputs(&mut self, record: &Record) {
        if matches!(record, Record::TaskInput(_)) {
            return;
        }
        for digest in record.digests() {
            if self.known.insert(*digest) && digest.is_directory() {
                self.directories.push(*digest);
            }
        }
    }

    /// Whether an input of a call comes from where anything may come from.
    fn is_given(
        &self,
        call: &CallRecord,
        number: usize,
        digest: &Digest,
        open: OpenInputs,
    ) -> bool {
        let OpenInputs { given, literals } = open;
        if !given && !literals {
            return false;
        }
        let (mut is_made, mut is_input) = (false, false);
        for maker in self.history.with_contents(digest) {
            is_made = true;
            is_input |= matches!(maker.record, Record::TaskInput(_));
        }
        let name = call.execution().and_then(|it| it.argv.get(number + 1)).unwrap_or_default();
        let is_literal = || {
            let file = split_member(name).0;
            self.reach.literals().any(|literal| may_be(literal, name) || may_be(literal, file))
        };
        given && (is_input || !is_made) || literals && (!is_made || is_literal())
    }

    /// Returns the results for which everything can be supplied.
    fn settle<'a>(
        &mut self,
        mut waiting: Vec<Unsupplied<'a>>,
    ) -> Result<Vec<Unsupplied<'a>>, RepositoryError> {
        let mut used = self.grow(&mut waiting)?;
        let lacking: HashSet<Digest> = waiting
            .iter()
            .flat_map(|it| &it.lacking)
            .filter(|it| !it.is_directory())
            .copied()
            .collect();
        let files = self.reach.contents_of_files(&lacking).map_err(ReachError::from)?;
        self.known.extend(files);
        if self.reach.has_open_texts() {
            for digest in &lacking {
                let text = self.storage.inputs().short_text(digest);
                if text.is_some_and(|text| self.reach.may_be_text(&format!("{text}\n"))) {
                    self.known.insert(*digest);
                }
            }
        }
        used.extend(self.grow(&mut waiting)?);
        Ok(used)
    }

    /// Takes out the results for which everything is supplied, until no more can be.
    fn grow<'a>(
        &mut self,
        waiting: &mut Vec<Unsupplied<'a>>,
    ) -> Result<Vec<Unsupplied<'a>>, StorageError> {
        let mut used = Vec::new();
        let mut readers: HashMap<Digest, Vec<usize>> = HashMap::new();
        let mut lacking: Vec<usize> = Vec::with_capacity(waiting.len());
        for (at, one) in waiting.iter_mut().enumerate() {
            one.lacking.retain(|digest| !self.known.contains(digest));
            lacking.push(one.lacking.len());
            one.lacking.iter().for_each(|it| readers.entry(*it).or_default().push(at));
        }
        let mut ready: Vec<usize> = (0..lacking.len()).filter(|at| lacking[*at] == 0).collect();
        let mut is_used = vec![false; lacking.len()];
        loop {
            let mut supplied = self.members(&readers)?;
            if let Some(at) = ready.pop() {
                is_used[at] = true;
                let outputs = waiting[at].record.digests();
                for digest in outputs.filter(|digest| self.known.insert(**digest)) {
                    supplied.push(*digest);
                    if digest.is_directory() {
                        self.directories.push(*digest);
                    }
                }
            } else if supplied.is_empty() {
                break;
            }
            for digest in supplied {
                for reader in readers.remove(&digest).unwrap_or_default() {
                    lacking[reader] -= 1;
                    if lacking[reader] == 0 {
                        ready.push(reader);
                    }
                }
            }
        }
        let mut is_used = is_used.into_iter();
        used.extend(waiting.extract_if(.., |_| is_used.next().unwrap_or_default()));
        Ok(used)
    }

    /// Returns the members of the directories that were supplied since the last look, as far as results need and lack
    /// them.
    fn members(
        &mut self,
        readers: &HashMap<Digest, Vec<usize>>,
    ) -> Result<Vec<Digest>, StorageError> {
        let mut members = Vec::new();
        let directories = mem::take(&mut self.directories);
        if self.reach.members().next().is_none() || readers.is_empty() {
            self.directories = directories;
            return Ok(members);
        }
        for directory in directories {
            let Some(subject) = self.history.with_contents(&directory).next() else { continue };
            let manifest = self.storage.values().manifest(&subject.file(), &directory)?;
            let Some(manifest) = manifest else { continue };
            let paths = manifest.entries().iter().map(|entry| &*entry.path);
            let paths: HashSet<&[u8]> = paths.flat_map(ancestors).collect();
            for path in self.reach.members() {
                let read = paths
                    .iter()
                    .filter(|it| std::str::from_utf8(it).is_ok_and(|found| may_be(path, found)));
                for found in read {
                    let member = manifest.member(found).ok().flatten();
                    members.extend(member.map(|it| it.digest).filter(|it| self.known.insert(*it)));
                }
            }
        }
        Ok(members)
    }
}

/// A path, and the paths of the directories around it.
fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    slashes.map(|(at, _)| &path[..at]).chain([path])
}

/// Chooses among the results that could be used. Among calls that differ only by version, it takes the call that a run
/// would take over, or its original. It takes the newest of equal tables, unless one stays in any case.
fn choose<'a>(
    storage: &Storage,
    history: &'a History,
    kept: &HashSet<&Entry>,
    used: Vec<Unsupplied<'a>>,
) -> Result<Vec<&'a Entry>, RepositoryError> {
    let mut calls: HashMap<VersionlessCall<'a>, Vec<Choice<'a>>> = HashMap::new();
    let mut tables: HashMap<Option<&Digest>, (Option<Timestamp>, &'a Entry)> = HashMap::new();
    for Unsupplied { entry, record, .. } in used {
        match record {
            Record::Call(call) => {
                let choice = Choice { entry, record, call, stays: false };
                calls.entry(VersionlessCall::from_record(call)).or_default().push(choice);
            }
            Record::Table(_) => {
                let found = (record.at(), entry);
                let newest = tables.entry(record.digest(0)).or_insert(found);
                if newest.0 < found.0 {
                    *newest = found;
                }
            }
            Record::Job(_) | Record::TaskInput(_) => {}
        }
    }
    let stay = history.results().iter().filter(|(entry, _)| kept.contains(entry));
    for (_, record) in stay.filter(|(_, record)| matches!(record, Record::Table(_))) {
        tables.remove(&record.digest(0));
    }
    let mut chosen: Vec<&Entry> = tables.into_values().map(|(_, table)| table).collect();
    let locations = Locations { storage, away: Survey::new(storage).marked_away()? };
    for (entry, record) in history.results().iter().filter(|(entry, _)| kept.contains(entry)) {
        if let Record::Call(call) = record
            && let Some(group) = calls.get_mut(&VersionlessCall::from_record(call))
        {
            group.push(Choice { entry, record, call, stays: true });
        }
    }
    for mut group in calls.into_values() {
        if let [Choice { call, .. }, _, ..] = group[..] {
            let versions = storage.equivalents().directories(call.version());
            let age = |it: &Choice<'_>| versions.iter().position(|name| it.entry.is_in(name));
            group.sort_by_cached_key(|it| age(it).unwrap_or(usize::MAX));
        }
        choose_call(history, &locations, &mut group)?;
        chosen.extend(group.iter().filter(|it| it.stays).map(|it| it.entry));
    }
    Ok(chosen)
}

/// A result that stands for a call, and whether it stays.
#[derive(Clone, Copy)]
struct Choice<'a> {
    entry: &'a Entry,
    record: &'a Record,
    call: &'a CallRecord,
    stays: bool,
}

/// Decides which of the results of one call stay, the newest version first: for each result that a run would take over, one
/// with the same outputs stays that it may take over, too.
fn choose_call(
    history: &History,
    locations: &Locations<'_>,
    group: &mut [Choice<'_>],
) -> Result<(), StorageError> {
    let mut places = Vec::with_capacity(group.len());
    for it in &*group {
        places.push(locations.locate(it.entry, it.record)?);
    }
    for takeover in [Takeover::Isolated, Takeover::MOST] {
        let serve = (0..group.len()).filter(|at| takeover.serves_tree(group[*at].call));
        let Some(best) = choose_result(serve, |at| places[*at]) else { continue };
        let outputs = |it: &Choice<'_>| it.record.digests().copied().collect::<Vec<_>>();
        let is_as_good = |at: &usize| {
            takeover.serves_tree(group[*at].call)
                && places[*at] <= places[best]
                && outputs(&group[*at]) == outputs(&group[best])
        };
        let good: Vec<usize> = (0..group.len()).filter(is_as_good).collect();
        if !good.iter().any(|at| group[*at].stays) {
            let original = history.first_original(group[best].entry, group[best].call);
            let original = original
                .and_then(|(entry, _)| good.iter().copied().find(|at| group[*at].entry == entry));
            group[original.unwrap_or(best)].stays = true;
        }
    }
    Ok(())
}

/// Where the outputs of calls are.
struct Locations<'a> {
    storage: &'a Storage,
    away: HashSet<ResultName>,
}

impl Locations<'_> {
    fn locate(&self, entry: &Entry, record: &Record) -> Result<OutputLocation, StorageError> {
        Ok(match entry {
            Entry::Call(name) if self.away.contains(name) => OutputLocation::Away,
            _ if is_here(self.storage, entry, record)? => OutputLocation::Here,
            _ => OutputLocation::Archived,
        })
    }
}
