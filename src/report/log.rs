//! Calls of the past, one line each, in columns.

use std::io::{self, Write};

use super::mebibytes;
use crate::digest::SHORT;
use crate::history::Past;

/// How many inputs a line shows.
const INPUTS: usize = 4;

/// How many columns there are before the reason of a failure.
const COLUMNS: usize = 7;

/// Prints the lines: time, computation, commit, inputs, duration, peak memory, host, failure.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn log(log: &[Past], out: &mut dyn Write) -> io::Result<()> {
    let mut widths = [0; COLUMNS];
    let rows: Vec<[String; COLUMNS]> = log.iter().map(row).collect();
    for row in &rows {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = text.chars().count().max(*width);
        }
    }
    for (past, row) in log.iter().zip(&rows) {
        let columns = row.iter().zip(widths).map(|(text, width)| format!("{text:width$}"));
        let mut line = columns.collect::<Vec<_>>().join("  ");
        if let Some(reason) = &past.failed {
            line += "  FAILED: ";
            line += reason;
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn row(past: &Past) -> [String; COLUMNS] {
    let Past { at, computation, commit, inputs, seconds, peak_bytes, host, .. } = past;
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
        peak_bytes.map_or_else(|| "-".to_owned(), mebibytes),
        host.clone(),
    ]
}
