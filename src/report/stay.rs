//! What goes and what stays: candidates of a collection, and pins.

use std::fmt;
use std::io::{self, Write};

use super::columns::aligned;
use super::{duration, size};
use crate::collect::Candidate;
use crate::storage::{Entry, PinRecord, Storage};

/// Prints a line for each: size, duration, time of recording, first file.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn candidates(
    storage: &Storage,
    candidates: &[Candidate<'_>],
    out: &mut dyn Write,
) -> io::Result<()> {
    let row = |candidate: &Candidate<'_>| {
        let Candidate { entry, record, bytes, seconds } = candidate;
        let seconds = if *seconds > 0.0 { format!("{seconds:.3} s") } else { "-".to_owned() };
        [size(*bytes), seconds, format!("{:.0}", record.at()), shown(storage, entry)]
    };
    lines(&candidates.iter().map(row).collect::<Vec<_>>(), out)
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

/// How much some results are together, in words.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    results: usize,
    bytes: u64,
    seconds: f64,
}

impl Sum {
    /// Adds up candidates.
    pub fn of(candidates: &[Candidate<'_>]) -> Self {
        candidates.iter().fold(Self::default(), |sum, candidate| Self {
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
