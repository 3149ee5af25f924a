//! Calls of the past, one line each: in columns, or as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::columns::fitted;
use super::point;
use ce_exchange::Attested;
use ce_history::{Past, TakenOver};
use ce_model::digest::SHORT;
use ce_model::humanize::size;

/// The greatest number of inputs in a line.
const INPUTS: usize = 4;

/// The number of columns.
const COLUMNS: usize = 9;

/// The place of the column that says who has executed a call.
const ATTESTED: usize = 7;

/// Prints the lines: time, computation, version, inputs, duration, peak memory, host, who has executed it if that is known of
/// each, texts, remarks.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn log(
    log: &[Past],
    attested: Option<&[Option<Attested>]>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut rows: Vec<Vec<String>> = log.iter().map(|past| row(past).to_vec()).collect();
    for (row, attested) in rows.iter_mut().zip(attested.into_iter().flatten()) {
        let text = attested.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
        row.insert(ATTESTED, text);
    }
    for line in fitted(&rows, &[]) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// A call, and who has executed it.
#[derive(Serialize)]
struct AttestedPast<'a> {
    #[serde(flatten)]
    past: &'a Past,
    attested: &'a Option<Attested>,
}

/// Prints a JSON object for each call: doc/programs/ce-log.md describes the fields.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn log_json(
    log: &[Past],
    attested: Option<&[Option<Attested>]>,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (at, past) in log.iter().enumerate() {
        match attested {
            None => serde_json::to_writer(&mut *out, past)?,
            Some(all) => {
                let attested = all.get(at).unwrap_or(&None);
                serde_json::to_writer(&mut *out, &AttestedPast { past, attested })?;
            }
        }
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
    let taken_over =
        past.taken_over.as_ref().map(|TakenOver { from, executed, host, trusted_tree, .. }| {
            let host = host.as_ref().map(|host| format!(" on {host}")).unwrap_or_default();
            let trusted = if *trusted_tree { ", not isolated: its tree was trusted" } else { "" };
            format!("from {from}, executed at {executed:.0}{host}{trusted}")
        });
    let commit = past.commit.get(..SHORT).unwrap_or(&past.commit);
    let away = past.away.then(|| "away: outputs of it are not here".to_owned());
    let dirty = past.dirty.then(|| format!("uncommitted changes on top of {commit}"));
    [failed, suspended, taken_over, away, dirty].into_iter().flatten().collect()
}
