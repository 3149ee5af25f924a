//! What commands that look after a storage print, as JSON lines.

use std::io::{self, Write};

use jiff::Timestamp;
use serde::Serialize;

use super::Sum;
use ce_history::collect::{Candidate, Group, Presence};
use ce_storage::maintenance::verify::{Verdict, VerifyEvent};
use ce_storage::{Entry, Finding, KnownRepository, PinRecord, RepositoryRecord, Storage};

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum VerifyLine<'a> {
    Found {
        file: &'a str,
        path: String,
        wrong: bool,
        defect: String,
    },
    Quarantined {
        record: &'a str,
        room: &'a str,
    },
    End {
        files: usize,
        bytes: u64,
        wrong: usize,
        odd: usize,
        away: usize,
        quarantined: usize,
        stopped: Option<&'a str>,
    },
}

/// Prints what a verification has found, or moved to quarantine.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn verified_json(
    storage: &Storage,
    event: &VerifyEvent<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let line = match event {
        VerifyEvent::Begun { .. } | VerifyEvent::Checked { .. } => return Ok(()),
        VerifyEvent::Found(Finding { name, defect }) => VerifyLine::Found {
            file: name,
            path: storage.shown(name).display().to_string(),
            wrong: defect.is_harm(),
            defect: defect.to_string(),
        },
        VerifyEvent::SetAside { record, room } => VerifyLine::Quarantined { record, room },
    };
    print(&line, out)
}

/// Prints the outcome of a verification.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn verdict_json(verdict: &Verdict, out: &mut dyn Write) -> io::Result<()> {
    let &Verdict { files, bytes, wrong, odd, away, quarantined, .. } = verdict;
    let stopped = verdict.stopped.as_deref();
    print(&VerifyLine::End { files, bytes, wrong, odd, away, quarantined, stopped }, out)
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum CollectLine<'a> {
    Result {
        path: String,
        tasks: &'a [&'a str],
        bytes: u64,
        seconds: f64,
        at: Option<Timestamp>,
    },
    End {
        #[serde(flatten)]
        sum: Sum,
        deleted: bool,
    },
}

/// Prints the results that were collected or made away, or would be, and their sum.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn candidates_json(
    storage: &Storage,
    groups: &[Group<'_>],
    (sum, deleted): (Sum, bool),
    out: &mut dyn Write,
) -> io::Result<()> {
    for Group { tasks, candidates } in groups {
        for &&Candidate { entry, record, bytes, seconds } in candidates {
            let (path, at) = (shown(storage, entry), record.at());
            print(&CollectLine::Result { path, tasks, bytes, seconds, at }, out)?;
        }
    }
    print(&CollectLine::End { sum, deleted }, out)
}

#[derive(Serialize)]
struct RepositoryLine<'a> {
    id: &'a str,
    at: Option<Timestamp>,
    host: Option<&'a str>,
    path: Option<&'a str>,
    here: bool,
}

/// Prints the recorded repositories. Of one whose record cannot be understood, only the ID is known.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn repositories_json(known: &[KnownRepository], out: &mut dyn Write) -> io::Result<()> {
    known.iter().try_for_each(|KnownRepository { id, record }| {
        let record = record.as_ref();
        let line = RepositoryLine {
            id,
            at: record.map(|it| it.recorded.at),
            host: record.map(|it| it.recorded.host.as_str()),
            path: record.map(|RepositoryRecord { path, .. }| path.as_str()),
            here: record.is_some_and(|it| matches!(Presence::of(it), Presence::Here)),
        };
        print(&line, out)
    })
}

#[derive(Serialize)]
struct PinLine<'a> {
    path: String,
    at: Option<Timestamp>,
    user: Option<&'a str>,
    note: Option<&'a str>,
}

/// Prints the pins. Of one whose record cannot be understood, only the path is known.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn pins_json(
    storage: &Storage,
    pins: &[(Entry, Option<PinRecord>)],
    out: &mut dyn Write,
) -> io::Result<()> {
    pins.iter().try_for_each(|(entry, pin)| {
        let pin = pin.as_ref();
        let line = PinLine {
            path: shown(storage, entry),
            at: pin.map(|pin| pin.recorded.at),
            user: pin.map(|pin| pin.recorded.user.as_str()),
            note: pin.and_then(|pin| pin.note.as_deref()),
        };
        print(&line, out)
    })
}

fn shown(storage: &Storage, entry: &Entry) -> String {
    storage.shown(&entry.file(0)).display().to_string()
}

fn print(line: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}
