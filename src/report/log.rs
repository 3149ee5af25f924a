//! Calls of the past, one line each, in columns.

use std::io::{self, Write};

use super::columns::aligned;
use super::size;
use crate::digest::SHORT;
use crate::history::{Past, TakenOver};

/// How many inputs a line shows.
const INPUTS: usize = 4;

/// How many columns there are.
const COLUMNS: usize = 8;

/// Prints the lines: time, computation, version, inputs, duration, peak memory, host, remarks.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn log(log: &[Past], out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<[String; COLUMNS]> = log.iter().map(row).collect();
    for line in aligned(&rows) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn row(past: &Past) -> [String; COLUMNS] {
    let Past { at, computation, version, inputs, seconds, peak_bytes, host, .. } = past;
    let mut names: Vec<String> = inputs.iter().take(INPUTS).map(|it| it.sha1.short()).collect();
    if inputs.len() > INPUTS {
        names.push(format!("({} more)", inputs.len() - INPUTS));
    }
    let not_run = if past.taken_over.is_some() { "taken over" } else { "adopted" };
    [
        format!("{at:.0}"),
        computation.clone(),
        if past.on_top_of.is_some() { version.clone() } else { short(version).to_owned() },
        if names.is_empty() { "_".to_owned() } else { names.join("_") },
        seconds.map_or_else(|| not_run.to_owned(), |it| format!("{it:.3} s")),
        peak_bytes.map_or_else(|| "-".to_owned(), size),
        host.clone(),
        remarks(past).join("; "),
    ]
}

fn short(commit: &str) -> &str {
    commit.get(..SHORT).unwrap_or(commit)
}

/// What else there is to be said of a call.
fn remarks(past: &Past) -> Vec<String> {
    let failed = past.failed.as_ref().map(|reason| format!("FAILED: {reason}"));
    let taken_over = past.taken_over.as_ref().map(|TakenOver { from, executed, host }| {
        let host = host.as_ref().map(|host| format!(" on {host}")).unwrap_or_default();
        format!("from {from}, executed at {executed:.0}{host}")
    });
    let dirty = past
        .on_top_of
        .as_ref()
        .map(|commit| format!("changes that are not committed on top of {}", short(commit)));
    [failed, taken_over, dirty].into_iter().flatten().collect()
}
