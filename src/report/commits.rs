//! The commits of a repository, as JSON lines.

use std::io::{self, Write};

use jiff::Timestamp;
use serde::Serialize;

use super::harmless;
use ce_git::{Commit, LogLine};

#[derive(Serialize)]
struct CommitLine<'a> {
    commit: &'a str,
    date: String,
    subject: &'a str,
}

/// Prints a commit as a line: a JSON object with its full id, its committer's date in UTC, and its subject
/// without control characters.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn commit(line: &LogLine, out: &mut dyn Write) -> io::Result<()> {
    // Dates after the year 9999 are out of range.
    let last = if line.time < 0 { Timestamp::MIN } else { Timestamp::MAX };
    let date = Timestamp::from_second(line.time).unwrap_or(last);
    let line = CommitLine {
        commit: line.id.full(),
        date: format!("{date:.0}"),
        subject: &harmless(&line.title).replace('\t', " "),
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct SuspectLine<'a> {
    commit: &'a str,
    subject: &'a str,
    certain: bool,
}

/// Prints a commit that may be the first bad one as a JSON object: its full id, its subject without control
/// characters, and whether no other one may be.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn suspect_json(commit: &Commit, certain: bool, out: &mut dyn Write) -> io::Result<()> {
    let (commit, subject) = (commit.id.full(), &*harmless(&commit.subject));
    serde_json::to_writer(&mut *out, &SuspectLine { commit, subject, certain })?;
    out.write_all(b"\n")
}
