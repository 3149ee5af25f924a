//! Calls of the past, one line each: in columns, or as JSON.

use std::io::{self, Write};

use super::columns::aligned;
use super::point;
use crate::digest::SHORT;
use crate::questions::history::{Past, TakenOver};
use crate::words::size;

/// The greatest number of inputs in a line.
const INPUTS: usize = 4;

/// The number of columns.
const COLUMNS: usize = 9;

/// Prints the lines: time, computation, version, inputs, duration, peak memory, host, texts, remarks.
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

/// Prints a JSON object for each call: doc/programs/ce-log.md describes the fields.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn log_json(log: &[Past], out: &mut dyn Write) -> io::Result<()> {
    for past in log {
        serde_json::to_writer(&mut *out, past)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn row(past: &Past) -> [String; COLUMNS] {
    let Past { at, computation, version, inputs, texts, seconds, peak_bytes, host, .. } = past;
    let mut names: Vec<String> = inputs.iter().take(INPUTS).map(|it| it.sha1.short()).collect();
    if inputs.len() > INPUTS {
        names.push(format!("({} more)", inputs.len() - INPUTS));
    }
    let not_run = match past {
        Past { suspended: Some(_), .. } => "suspended",
        Past { taken_over: Some(_), .. } => "taken over",
        Past { shared: true, .. } => "shared",
        _ => "adopted",
    };
    [
        at.map_or_else(|| "-".to_owned(), |at| format!("{at:.0}")),
        computation.clone(),
        version.clone(),
        if names.is_empty() { "_".to_owned() } else { names.join("_") },
        seconds.map_or_else(|| not_run.to_owned(), |it| format!("{it:.3} s")),
        peak_bytes.map_or_else(|| "-".to_owned(), size),
        host.clone().unwrap_or_else(|| "-".to_owned()),
        point::words(&texts.iter().collect::<Vec<_>>()),
        remarks(past).join("; "),
    ]
}

/// Remarks on a call: its failure, its source, its changes.
fn remarks(past: &Past) -> Vec<String> {
    let failed = past.failed.as_ref().map(|reason| format!("FAILED: {reason}"));
    let suspended = past.suspended.map(|since| format!("since {since:.0}"));
    let taken_over = past.taken_over.as_ref().map(|TakenOver { from, executed, host }| {
        let host = host.as_ref().map(|host| format!(" on {host}")).unwrap_or_default();
        format!("from {from}, executed at {executed:.0}{host}")
    });
    let commit = past.commit.get(..SHORT).unwrap_or(&past.commit);
    let dirty = past.dirty.then(|| format!("uncommitted changes on top of {commit}"));
    [failed, suspended, taken_over, dirty].into_iter().flatten().collect()
}
