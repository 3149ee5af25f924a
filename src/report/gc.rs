//! Reports of a collection: candidates, pins and repositories.

use std::fmt;
use std::io::{self, Write};

use serde::Serialize;

use super::columns::aligned;
use ce_history::collect::{Candidate, Group, Presence};
use ce_model::humanize::{duration, size};
use ce_storage::{Entry, KnownRepository, PinRecord, RepositoryRecord, Storage};

/// Prints a line for each group, and one for each candidate in it: size, duration, time of
/// recording, first file.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn candidates(storage: &Storage, groups: &[Group<'_>], out: &mut dyn Write) -> io::Result<()> {
    let row = |candidate: &&Candidate<'_>| {
        let Candidate { entry, record, bytes, seconds } = candidate;
        let seconds = if *seconds > 0.0 { format!("{seconds:.3} s") } else { "-".to_owned() };
        [
            size(*bytes),
            seconds,
            record.at().map_or_else(|| "-".to_owned(), |at| format!("{at:.0}")),
            shown(storage, entry),
        ]
    };
    let rows: Vec<_> = groups.iter().flat_map(|group| group.candidates.iter().map(row)).collect();
    let mut lines = aligned(&rows).into_iter();
    for Group { tasks, candidates } in groups {
        let sum = Sum::of(candidates.iter().copied());
        let tasks: Vec<_> = tasks.iter().map(|task| super::harmless(task)).collect();
        match &tasks[..] {
            [] => writeln!(out, "no recorded job: {sum}")?,
            [task] => writeln!(out, "task {task}: {sum}")?,
            tasks => writeln!(out, "tasks {}: {sum}", tasks.join(", "))?,
        }
        for line in lines.by_ref().take(candidates.len()) {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

/// Prints a line for each recorded repository: ID, last use, host, path, and whether it is on this
/// host.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn repositories(known: &[KnownRepository], out: &mut dyn Write) -> io::Result<()> {
    let row = |KnownRepository { id, record }: &KnownRepository| match record {
        Some(record) => {
            let RepositoryRecord { path, recorded, .. } = record;
            let path = super::harmless(path).into_owned();
            let state = match Presence::of(record) {
                Presence::Here => String::new(),
                other => other.text().to_owned(),
            };
            [id.clone(), format!("{:.0}", recorded.at), recorded.host.clone(), path, state]
        }
        None => {
            let unknown = || "?".to_owned();
            let spoiled = "its record cannot be understood".to_owned();
            [id.clone(), unknown(), unknown(), unknown(), spoiled]
        }
    };
    let rows: Vec<_> = known.iter().map(row).collect();
    aligned(&rows).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// Prints a line for each pin: when, by whom, the first file, and why.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn pins(
    storage: &Storage,
    pins: &[(Entry, Option<PinRecord>)],
    out: &mut dyn Write,
) -> io::Result<()> {
    let row = |(entry, pin): &(Entry, Option<PinRecord>)| {
        let file = shown(storage, entry);
        let unknown = || "?".to_owned();
        match pin {
            Some(PinRecord { note, recorded, .. }) => {
                let note = super::harmless(note.as_deref().unwrap_or_default());
                [format!("{:.0}", recorded.at), recorded.user.clone(), file, note.into_owned()]
            }
            None => [unknown(), unknown(), file, String::new()],
        }
    };
    lines(&pins.iter().map(row).collect::<Vec<_>>(), out)
}

fn lines(rows: &[[String; 4]], out: &mut dyn Write) -> io::Result<()> {
    aligned(rows).iter().try_for_each(|line| writeln!(out, "{line}"))
}

fn shown(storage: &Storage, entry: &Entry) -> String {
    storage.shown(&entry.file(0)).display().to_string()
}

/// The totals of some results, in words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sum {
    results: usize,
    bytes: u64,
    seconds: f64,
}

impl Sum {
    /// Adds up candidates.
    pub fn of<'a>(candidates: impl Iterator<Item = &'a Candidate<'a>>) -> Self {
        candidates.fold(Self::default(), |sum, candidate| Self {
            results: sum.results + 1,
            bytes: sum.bytes.saturating_add(candidate.bytes),
            seconds: sum.seconds + candidate.seconds,
        })
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { results, bytes, seconds } = *self;
        let s = if results == 1 { "" } else { "s" };
        let (size, duration) = (size(bytes), duration(seconds));
        write!(f, "{results} result{s}: {size}, {duration} of computing")
    }
}
