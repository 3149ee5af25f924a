//! The past in columns, or as JSON lines: calls, their requested beside their used resources, and commits.

use std::io::{self, Write};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::calls::texts_in_words;
use super::terminal::{ColumnStyle, cut, fitted, fitted_within, terminal_width};
use super::{harmless, json_line};
use ce_exchange::Attested;
use ce_git::{Commit, LogLine};
use ce_history::{Past, ResourceUsage, TakenOver};
use ce_model::digest::SHORT;
use ce_model::humanize::{duration, short_duration, size};
use ce_model::resources::Resource;

/// The greatest number of inputs in a line.
const INPUTS: usize = 4;

/// The columns of the log. Columns that a narrow terminal can do without are left out from the right.
const LOG_HEADER: [&str; 9] =
    ["ended", "computation", "texts", "version", "duration", "memory", "host", "inputs", "remarks"];

/// The columns that are left out if they are empty.
const IF_ANY: [&str; 2] = ["texts", "remarks"];

/// The narrowest column of texts: a point can be known by them.
const TEXTS_WIDTH: usize = 20;

/// The place of the column that says who has executed a call.
const ATTESTED: usize = 7;

/// Prints a header and the calls, the newest first, in lines that fit a terminal. Prints nothing if there are none.
pub fn log(
    log: &[Past],
    attested: Option<&[Option<Attested>]>,
    out: &mut dyn Write,
) -> io::Result<()> {
    if log.is_empty() {
        return Ok(());
    }
    let mut rows: Vec<Vec<String>> = log.iter().map(|past| row(past).to_vec()).collect();
    let mut header: Vec<String> = LOG_HEADER.map(str::to_owned).to_vec();
    if let Some(attested) = attested {
        header.insert(ATTESTED, "attested".to_owned());
        for (row, attested) in rows.iter_mut().zip(attested) {
            let text = attested.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
            row.insert(ATTESTED, text);
        }
    }
    for at in (0..header.len()).rev() {
        if IF_ANY.contains(&&*header[at]) && rows.iter().all(|row| row[at].is_empty()) {
            header.remove(at);
            rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
    }
    let styles = header.iter().map(|name| ColumnStyle {
        may_be_cut: name == "texts",
        narrowest: TEXTS_WIDTH,
        may_be_left_out: matches!(&**name, "version" | "memory" | "host" | "inputs"),
        ..ColumnStyle::default()
    });
    let styles: Vec<ColumnStyle> = styles.collect();
    let remarks = header.iter().position(|name| name == "remarks");
    rows.push(header);
    rows.reverse();
    let whole = || fitted_within(&rows, &styles, None).0;
    let width = terminal_width(&io::stdout());
    let Some(width) = width.filter(|width| whole().any(|it| it.chars().count() > *width)) else {
        return whole().try_for_each(|line| writeln!(out, "{line}"));
    };
    let below = remarks.map(|at| rows.iter_mut().map(|row| row.remove(at)).collect());
    let below: Vec<String> = below.unwrap_or_default();
    let (lines, _) = fitted_within(&rows, &styles[..rows[0].len()], Some(width));
    for (at, line) in lines.enumerate() {
        writeln!(out, "{line}")?;
        if let Some(remark) = below.get(at).filter(|it| at > 0 && !it.is_empty()) {
            writeln!(out, "{BELOW}{}", cut(remark, width.saturating_sub(BELOW.len())))?;
        }
    }
    Ok(())
}

/// The indentation of remarks below the lines of their calls: there was no room beside them.
const BELOW: &str = "    ";

/// A call, and who has executed it if that was asked for.
#[derive(Serialize)]
struct AttestedPast<'a> {
    #[serde(flatten)]
    past: &'a Past,
    #[serde(skip_serializing_if = "Option::is_none")]
    attested: Option<&'a Option<Attested>>,
}

/// Prints a JSON object for each call: doc/programs/ce-log.md describes the fields.
pub fn log_json(
    log: &[Past],
    attested: Option<&[Option<Attested>]>,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (at, past) in log.iter().enumerate() {
        let attested = attested.map(|all| all.get(at).unwrap_or(&None));
        json_line(&AttestedPast { past, attested }, out)?;
    }
    Ok(())
}

fn row(past: &Past) -> [String; LOG_HEADER.len()] {
    let Past { at, computation, version, inputs, texts, seconds, peak_bytes, .. } = past;
    // The host is the one that received it from elsewhere.
    let host = past.host.as_ref().filter(|_| past.published.is_none());
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
        texts_in_words(&texts.iter().collect::<Vec<_>>()),
        version.to_string(),
        seconds.map_or_else(|| not_run.to_owned(), |it| format!("{it:.3} s")),
        peak_bytes.map_or_else(|| "-".to_owned(), size),
        host.map_or("-", |host| host).to_owned(),
        if names.is_empty() { "_".to_owned() } else { names.join("_") },
        remarks(past).join("; "),
    ]
}

/// Remarks on a call: its failure, its source, who says when it was executed, its changes.
fn remarks(past: &Past) -> Vec<String> {
    let failed = past.failed.as_ref().map(|reason| format!("FAILED: {reason}"));
    let suspended = past.suspended.map(|since| format!("since {since:.0}"));
    let taken_over = past.taken_over.as_deref().map(
        |TakenOver { from, executed, host, trusted_tree, .. }| {
            let host = host.as_ref().map(|host| format!(" on {host}")).unwrap_or_default();
            let trusted = if *trusted_tree { ", not isolated: its tree was trusted" } else { "" };
            format!("from {from}, executed at {executed:.0}{host}{trusted}")
        },
    );
    let published =
        past.published.as_ref().map(|it| format!("executed then, as published by {}", it.by));
    let commit = past.commit.get(..SHORT).unwrap_or(&past.commit);
    let away = past.away.then(|| "away: outputs of it are not here".to_owned());
    let dirty = past.dirty.then(|| format!("uncommitted changes on top of {commit}"));
    [failed, suspended, taken_over, published, away, dirty].into_iter().flatten().collect()
}

#[derive(Serialize)]
struct CommitLine<'a> {
    commit: &'a str,
    date: String,
    subject: &'a str,
}

/// Prints a commit as a line: a JSON object with its full id, its committer's date in UTC, and its subject
/// without control characters.
pub fn commit(line: &LogLine, out: &mut dyn Write) -> io::Result<()> {
    // Dates after the year 9999 are out of range.
    let last = if line.time < 0 { Timestamp::MIN } else { Timestamp::MAX };
    let date = Timestamp::from_second(line.time).unwrap_or(last);
    let line = CommitLine {
        commit: line.id.full(),
        date: format!("{date:.0}"),
        subject: &harmless(&line.title).replace('\t', " "),
    };
    json_line(&line, out)
}

#[derive(Serialize)]
struct SuspectLine<'a> {
    commit: &'a str,
    subject: &'a str,
    certain: bool,
}

/// Prints a commit that may be the first bad one as a JSON object: its full id, its subject without control
/// characters, and whether no other one may be.
pub fn suspect_json(commit: &Commit, certain: bool, out: &mut dyn Write) -> io::Result<()> {
    let (commit, subject) = (commit.id.full(), &*harmless(&commit.subject));
    json_line(&SuspectLine { commit, subject, certain }, out)
}

/// The columns; each of the amounts is asked for and used.
const HEADER: [&str; 10] = [
    "computation",
    "calls",
    "attempts",
    "cpus",
    "used",
    "memory",
    "used",
    "time",
    "used",
    "also asked for",
];

/// The place of the column that is shown if a call has taken several attempts.
const ATTEMPTS: usize = 2;

/// The columns that are numbers.
const NUMBERS: [bool; 10] = [false, true, true, true, true, true, true, true, true, false];

/// Prints a header, and a line for each computation and request.
pub fn resource_usage(usage: &[ResourceUsage], out: &mut dyn Write) -> io::Result<()> {
    let header = HEADER.map(str::to_owned).to_vec();
    let mut rows: Vec<Vec<String>> =
        std::iter::once(header).chain(usage.iter().map(usage_row)).collect();
    let mut numbers = NUMBERS.to_vec();
    if usage.iter().all(|usage| usage.attempts <= 1) {
        rows.iter_mut().for_each(|row| drop(row.remove(ATTEMPTS)));
        numbers.remove(ATTEMPTS);
    }
    for line in fitted(&rows, &numbers) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Prints a JSON object for each computation and request: doc/programs/ce-log.md describes the fields.
pub fn resource_usage_json(usage: &[ResourceUsage], out: &mut dyn Write) -> io::Result<()> {
    for usage in usage {
        json_line(usage, out)?;
    }
    Ok(())
}

fn usage_row(usage: &ResourceUsage) -> Vec<String> {
    let ResourceUsage { computation, resources, calls, attempts, cpus, peak_bytes, seconds } =
        usage;
    let [mut asked_cpus, mut asked_memory, mut asked_time] = ["-"; 3];
    let mut others = Vec::new();
    for line in resources.iter().rev() {
        let (word, amount) = line.split_once(' ').unwrap_or((line, ""));
        match Resource::of_word(word) {
            Some(Resource::Cpus) => asked_cpus = amount,
            Some(Resource::Memory) => asked_memory = amount,
            Some(Resource::Time) => asked_time = amount,
            _ => others.insert(0, line.as_str()),
        }
    }
    vec![
        computation.clone(),
        calls.to_string(),
        attempts.to_string(),
        asked_cpus.to_owned(),
        cpus.map_or_else(|| "-".to_owned(), |cpus| format!("{cpus:.1}")),
        asked_memory.to_owned(),
        size(*peak_bytes),
        asked_time.to_owned(),
        time(*seconds),
        others.join(", "),
    ]
}

/// A time in the unit that suits it.
fn time(seconds: f64) -> String {
    match Duration::try_from_secs_f64(seconds) {
        Ok(short) if seconds < 1.0 => short_duration(short),
        _ => duration(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_and_used_resources_are_side_by_side() {
        let usage = |computation: &str, lines: &[&str], cpus, attempts| ResourceUsage {
            computation: computation.to_owned(),
            resources: lines.iter().map(|line| (*line).to_owned()).collect(),
            calls: 12,
            attempts,
            cpus,
            peak_bytes: 3 << 29,
            seconds: if cpus.is_some() { 545.2 } else { 0.0125 },
        };
        let lines = ["cpus 16", "memory 8G", "time 2h", "gpus 1", "exclusive"];
        let table = |usage: &[ResourceUsage]| {
            let mut out = Vec::new();
            resource_usage(usage, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            table(&[usage("align", &lines, Some(1.25), 1), usage("x", &[], None, 1)]),
            "\
computation  calls  cpus  used  memory     used  time     used  also asked for
align           12    16   1.2      8G  1.5 GiB    2h    9m 5s  gpus 1, exclusive
x               12     -     -       -  1.5 GiB     -  12.5 ms
"
        );
        assert_eq!(
            table(&[usage("align", &["memory 4G..32G"], None, 3)]),
            "\
computation  calls  attempts  cpus  used   memory     used  time     used  also asked for
align           12         3     -     -  4G..32G  1.5 GiB     -  12.5 ms
"
        );
    }
}
