//! The output of commands that look after a storage, for people and as JSON lines: candidates of a collection, pins, repositories,
//! verifications; and findings of self-tests, a line each, and below it the consequences of any trouble.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};

use super::calls::result_title;
use super::terminal::aligned;
use super::{harmless, json_line};
use ce_history::InputTexts;
use ce_history::collect::{Candidate, Group, Presence};
use ce_model::humanize::{duration, size};
use ce_model::probe_diagnosis::{Diagnosis, Grade, Trouble};
use ce_storage::maintenance::verify::{Verdict, VerifyEvent};
use ce_storage::{Entry, Finding, KnownRepository, PinRecord, Record, RepositoryRecord, Storage};
use jiff::Timestamp;
use serde::Serialize;

/// Prints a line for each group, and one for each candidate in it: size, duration, time of recording, its name by its
/// texts, first file.
pub fn candidates(
    storage: &Storage,
    groups: &[Group<'_>],
    texts: &HashMap<&Entry, InputTexts>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (mut rows, none) = (Vec::new(), InputTexts::default());
    for Candidate { entry, record, bytes, seconds } in groups.iter().flat_map(|it| &it.candidates) {
        let seconds = if *seconds > 0.0 { format!("{seconds:.3} s") } else { "-".to_owned() };
        rows.push([
            size(*bytes),
            seconds,
            record.at().map_or_else(|| "-".to_owned(), |at| format!("{at:.0}")),
            result_title(record, texts.get(entry).unwrap_or(&none)),
            shown(storage, entry),
        ]);
    }
    let mut lines = aligned(&rows);
    for Group { tasks, candidates } in groups {
        let sum = CandidateTotals::sum(candidates.iter().copied());
        let tasks: Vec<_> = tasks.iter().map(|task| harmless(task)).collect();
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
pub fn repositories(known: &[KnownRepository], out: &mut dyn Write) -> io::Result<()> {
    let rows = known.iter().map(|KnownRepository { id, record }| match record {
        Some(record) => {
            let RepositoryRecord { path, recorded, .. } = record;
            let path = harmless(path).into_owned();
            let state = match Presence::check(record) {
                Presence::Here => String::new(),
                other => other.text().to_owned(),
            };
            [id.clone(), format!("{:.0}", recorded.at), recorded.host.to_string(), path, state]
        }
        None => {
            let spoiled = "its record cannot be understood";
            [id, "?", "?", "?", spoiled].map(str::to_owned)
        }
    });
    lines(&rows.collect::<Vec<_>>(), out)
}

/// Prints a line for each pin: when, by whom, the pinned result, the first file, and why.
pub fn pins(
    storage: &Storage,
    pins: &[(Entry, Option<PinRecord>)],
    pinned: &[Option<(Record, InputTexts)>],
    out: &mut dyn Write,
) -> io::Result<()> {
    let rows = pins.iter().zip(pinned).map(|((entry, pin), pinned)| {
        let file = shown(storage, entry);
        let title = pinned
            .as_ref()
            .map_or_else(|| "?".to_owned(), |(record, texts)| result_title(record, texts));
        match pin {
            Some(PinRecord { note, recorded, .. }) => {
                let note = harmless(note.as_deref().unwrap_or_default()).into_owned();
                [format!("{:.0}", recorded.at), recorded.user.to_string(), title, file, note]
            }
            None => ["?", "?", &title, &file, ""].map(str::to_owned),
        }
    });
    lines(&rows.collect::<Vec<_>>(), out)
}

fn lines<const N: usize>(rows: &[[String; N]], out: &mut dyn Write) -> io::Result<()> {
    aligned(rows).try_for_each(|line| writeln!(out, "{line}"))
}

pub(super) fn shown(storage: &Storage, entry: &Entry) -> String {
    storage.shown(&entry.file(0)).display().to_string()
}

/// The totals of some results, in words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CandidateTotals {
    results: usize,
    bytes: u64,
    seconds: f64,
}

impl CandidateTotals {
    /// Adds up candidates.
    pub fn sum<'a>(candidates: impl Iterator<Item = &'a Candidate<'a>>) -> Self {
        candidates.fold(Self::default(), |sum, candidate| Self {
            results: sum.results + 1,
            bytes: sum.bytes.saturating_add(candidate.bytes),
            seconds: sum.seconds + candidate.seconds,
        })
    }
}

impl fmt::Display for CandidateTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { results, bytes, seconds } = *self;
        let s = if results == 1 { "" } else { "s" };
        let (size, duration) = (size(bytes), duration(seconds));
        write!(f, "{results} result{s}: {size}, {duration} of computing")
    }
}

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
        #[serde(flatten)]
        verdict: &'a Verdict,
    },
}

/// Prints the findings of a verification, and the files that it moved to quarantine.
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
    json_line(&line, out)
}

/// Prints the outcome of a verification.
pub fn verdict_json(verdict: &Verdict, out: &mut dyn Write) -> io::Result<()> {
    json_line(&VerifyLine::End { verdict }, out)
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
        sum: CandidateTotals,
        deleted: bool,
    },
}

/// Prints the results that were collected or made away, or would be, and their sum.
pub fn candidates_json(
    storage: &Storage,
    groups: &[Group<'_>],
    sum: CandidateTotals,
    deleted: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    for Group { tasks, candidates } in groups {
        for &&Candidate { entry, record, bytes, seconds } in candidates {
            let (path, at) = (shown(storage, entry), record.at());
            json_line(&CollectLine::Result { path, tasks, bytes, seconds, at }, out)?;
        }
    }
    json_line(&CollectLine::End { sum, deleted }, out)
}

#[derive(Serialize)]
struct RepositoryLine<'a> {
    id: &'a str,
    at: Option<Timestamp>,
    host: Option<&'a str>,
    path: Option<&'a str>,
    here: bool,
}

/// Prints the recorded repositories. Only the ID of a repository is known if its record cannot be parsed.
pub fn repositories_json(known: &[KnownRepository], out: &mut dyn Write) -> io::Result<()> {
    known.iter().try_for_each(|KnownRepository { id, record }| {
        let record = record.as_ref();
        let line = RepositoryLine {
            id,
            at: record.map(|it| it.recorded.at),
            host: record.map(|it| &*it.recorded.host),
            path: record.map(|RepositoryRecord { path, .. }| path.as_str()),
            here: record.is_some_and(|it| matches!(Presence::check(it), Presence::Here)),
        };
        json_line(&line, out)
    })
}

#[derive(Serialize)]
struct PinLine<'a> {
    path: String,
    at: Option<Timestamp>,
    user: Option<&'a str>,
    note: Option<&'a str>,
}

/// Prints the pins. Only the path of a result is known if its record cannot be parsed.
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
            user: pin.map(|pin| &*pin.recorded.user),
            note: pin.and_then(|pin| pin.note.as_deref()),
        };
        json_line(&line, out)
    })
}

/// Prints a finding for humans.
pub fn diagnosis(diagnosis: &Diagnosis, out: &mut dyn Write) -> io::Result<()> {
    let Diagnosis { probe, found, trouble } = diagnosis;
    let word = match diagnosis.grade() {
        None => "ok",
        Some(Grade::Note) => "note",
        Some(Grade::Slow) => "slow",
        Some(Grade::Broken) => "BROKEN",
    };
    writeln!(out, "{word:6}  {probe:15}  {}", harmless(found))?;
    if let Some(Trouble { means, hint, .. }) = trouble {
        writeln!(out, "          means: {}", harmless(means))?;
        if let Some(hint) = hint {
            writeln!(out, "          try: {}", harmless(hint))?;
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct DiagnosisLine<'a> {
    probe: &'a str,
    grade: &'a str,
    found: &'a str,
    means: Option<&'a str>,
    hint: Option<&'a str>,
}

/// Prints a finding as one JSON object.
pub fn diagnosis_json(diagnosis: &Diagnosis, out: &mut dyn Write) -> io::Result<()> {
    let grade = match diagnosis.grade() {
        None => "ok",
        Some(Grade::Note) => "note",
        Some(Grade::Slow) => "slow",
        Some(Grade::Broken) => "broken",
    };
    let Diagnosis { probe, found, trouble } = diagnosis;
    let means = trouble.as_ref().map(|trouble| trouble.means.as_str());
    let hint = trouble.as_ref().and_then(|trouble| trouble.hint.as_deref());
    json_line(&DiagnosisLine { probe, grade, found, means, hint }, out)
}

/// The number of findings of each severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GradeCounts {
    /// All is well.
    pub ok: usize,
    /// Something is good to know.
    pub notes: usize,
    /// Something costs time.
    pub slow: usize,
    /// A promise cannot be kept.
    pub broken: usize,
}

impl GradeCounts {
    /// Counts one more.
    pub const fn add(&mut self, diagnosis: &Diagnosis) {
        match &diagnosis.trouble {
            None => self.ok += 1,
            Some(Trouble { grade: Grade::Note, .. }) => self.notes += 1,
            Some(Trouble { grade: Grade::Slow, .. }) => self.slow += 1,
            Some(Trouble { grade: Grade::Broken, .. }) => self.broken += 1,
        }
    }
}

impl fmt::Display for GradeCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ok, notes, slow, broken } = self;
        let all = ok + notes + slow + broken;
        let notes = if *notes == 1 { "1 note".to_owned() } else { format!("{notes} notes") };
        write!(f, "{all} probes: {ok} ok, {notes}, {slow} slow, {broken} broken")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(print: impl Fn(&Diagnosis, &mut dyn Write) -> io::Result<()>) -> Vec<String> {
        let found = || Diagnosis::ok("hard links", "no\u{1b}ne");
        let all = [found(), found().note("m"), found().slow("m"), found().broken("m").hint("t")];
        let print = |one: &Diagnosis| {
            let mut text = Vec::new();
            print(one, &mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        all.iter().map(print).collect()
    }

    #[test]
    fn a_finding_is_a_line_with_its_meaning_and_hint() {
        assert_eq!(
            printed(diagnosis),
            [
                "ok      hard links       no\u{fffd}ne\n",
                "note    hard links       no\u{fffd}ne\n          means: m\n",
                "slow    hard links       no\u{fffd}ne\n          means: m\n",
                "BROKEN  hard links       no\u{fffd}ne\n          means: m\n          try: t\n",
            ]
        );
    }

    #[test]
    fn a_finding_is_a_json_object() {
        let line = |grade: &str, means: &str, hint: &str| {
            format!(
                r#"{{"probe":"hard links","grade":"{grade}","found":"no\u001bne","means":{means},"hint":{hint}}}"#
            ) + "\n"
        };
        assert_eq!(
            printed(diagnosis_json),
            [
                line("ok", "null", "null"),
                line("note", r#""m""#, "null"),
                line("slow", r#""m""#, "null"),
                line("broken", r#""m""#, r#""t""#),
            ]
        );
    }

    #[test]
    fn findings_are_counted() {
        let mut findings = GradeCounts::default();
        let found = || Diagnosis::ok("a", "b");
        let all = [found(), found(), found().note("c"), found().slow("c"), found().broken("c")];
        all.iter().for_each(|one| findings.add(one));
        assert_eq!(findings.to_string(), "5 probes: 2 ok, 1 note, 1 slow, 1 broken");
    }
}
