//! Calls of the past, one line each, in columns.

use std::io::{self, Write};

use super::columns::aligned;
use super::size;
use crate::digest::SHORT;
use crate::history::Past;

/// How many inputs a line shows.
const INPUTS: usize = 4;

/// How many columns there are.
const COLUMNS: usize = 8;

/// Prints the lines: time, computation, commit, inputs, duration, peak memory, host, failure.
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
    let Past { at, computation, commit, inputs, seconds, peak_bytes, host, failed } = past;
    let mut names: Vec<String> = inputs.iter().take(INPUTS).map(|it| it.sha1.short()).collect();
    if inputs.len() > INPUTS {
        names.push(format!("({} more)", inputs.len() - INPUTS));
    }
    [
        format!("{at:.0}"),
        computation.clone(),
        commit.get(..SHORT).unwrap_or(commit).to_owned(),
        if names.is_empty() { "_".to_owned() } else { names.join("_") },
        seconds.map_or_else(|| "adopted".to_owned(), |it| format!("{it:.3} s")),
        peak_bytes.map_or_else(|| "-".to_owned(), size),
        host.clone(),
        failed.as_ref().map_or_else(String::new, |reason| format!("FAILED: {reason}")),
    ]
}
