//! `ce verify`: whether the files of the storage are still as recorded. `ce doctor`: whether it can keep its promises here,
//! and a sandbox hold.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use jiff::Timestamp;

use super::Tool;
use super::options::{PastTime, past_time};
use super::storage_args::StorageDir;
use ce_evaluate::session::{BeginError, Error, OutputError, Stop};
use ce_executor::isolation_probes as isolation;
use ce_executor::measuring_probes::measuring;
use ce_model::exit::Exit;
use ce_model::humanize::{counted, quoted, quoted_path, size};
use ce_model::probe_diagnosis::Diagnosis;
use ce_report::{self as report, Bar, GradeCounts, say};
use ce_storage::maintenance::verify::{self, Request, Sample, Verdict, VerifyEvent};
use ce_storage::probes::Probes;
use ce_storage::{Durability, Finding, Locator, Storage};

const MIB: f64 = (1 << 20) as f64;

/// Read every file of a storage and compare it with its record
///
/// Prints a line for each fault, and for harmless oddities: files without a record, and leftovers
/// of dead runs.
#[derive(Debug, Parser)]
#[command(version, after_help = VERIFY_EXIT_CODES)]
pub(super) struct Verify {
    /// Quarantine damaged results in aside/, so that the next run makes them again; nothing is
    /// deleted
    #[arg(long)]
    repair: bool,

    /// Check only this share of the results, others each day
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    sample: Option<f64>,

    /// Check only results recorded since then: 7d, 36h, 2026-07-31, 2026-07-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = past_time)]
    since: Option<PastTime>,

    /// Begin at this record: continue an interrupted check
    #[arg(long, value_name = "RECORD", value_hint = clap::ValueHint::FilePath)]
    from: Option<PathBuf>,

    /// Print faults, oddities and the sum as JSON, one object a line
    #[arg(long)]
    json: bool,

    /// Print only faults and oddities: neither a sum nor a progress bar
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    storage: StorageDir,
}

const VERIFY_EXIT_CODES: &str = "\
Exit codes: 0 nothing is wrong, 2 the arguments are wrong, 5 something is wrong (even if it is \
quarantined now), or the storage could not be read or written, 130 interrupted (143: by SIGTERM).";

impl Tool for Verify {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let begun = Instant::now();
        let path = self.storage.find()?;
        let mut storage = Storage::existing(&path)?;
        if self.repair {
            storage = storage.into_writable(Durability::Synced)?;
        }
        let day = Timestamp::now().strftime("%F").to_string();
        let sample = self.sample.map(|percent| Sample { percent, day });
        let from = self.from.as_deref().map(|from| {
            Locator::new(&storage)
                .name_of(from)
                .unwrap_or_else(|| from.to_string_lossy().into_owned())
        });
        let request =
            Request { from, sample, since: self.since.map(|it| it.time), repair: self.repair };
        let stop = Stop::watch().map_err(BeginError::new)?;
        let bar = Bar::new(io::stderr().is_terminal() && !self.quiet);
        let mut told = Ok(());
        let verdict = verify::verify(&storage, &request, &stop.asked, &mut |event| {
            let found = match event {
                VerifyEvent::Begun { bytes } => return bar.begin(bytes),
                VerifyEvent::Checked { bytes } => return bar.advance(bytes),
                found => found,
            };
            if told.is_ok() {
                told = bar.print_above(|| {
                    self.print(&storage, &found, out)?;
                    out.flush()
                });
            }
        });
        bar.clear();
        let verdict = verdict?;
        told.map_err(OutputError)?;
        if self.json {
            report::verdict_json(&verdict, out).map_err(OutputError)?;
        } else if !self.quiet {
            summarise(&verdict, begun);
            if verdict.wrong > 0 && !self.repair {
                let storage = quoted(&path.display().to_string());
                say(
                    "ce",
                    &format_args!(
                        "try: ce verify --repair {storage} moves damaged results aside, and runs make them again"
                    ),
                );
            }
        }
        if let (Some(record), Some(signal)) = (&verdict.stopped, stop.caught()) {
            let how_far = match (verdict.files, verdict.promised) {
                (0, _) => "before the first file".to_owned(),
                (files, promised) => format!("after {files} of {promised} files"),
            };
            let command = self.command(record, &path);
            say("ce", &format_args!("interrupted {how_far}; to go on:\n  {command}"));
            return Ok(Exit::Interrupted(signal));
        }
        Ok(if verdict.wrong > 0 { Exit::Storage } else { Exit::Done })
    }
}

impl Verify {
    fn print(
        &self,
        storage: &Storage,
        event: &VerifyEvent<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match event {
            event if self.json => report::verified_json(storage, event, out),
            VerifyEvent::Begun { .. } | VerifyEvent::Checked { .. } => Ok(()),
            VerifyEvent::Found(Finding { name, defect }) => {
                writeln!(out, "{}: {defect}", storage.shown(name).display())
            }
            VerifyEvent::SetAside { record, room } => {
                let (record, room) = (storage.shown(record), storage.shown(room));
                writeln!(out, "{}: quarantined in {}", record.display(), room.display())
            }
        }
    }

    /// The command that goes on at a record.
    fn command(&self, record: &str, storage: &Path) -> String {
        let options = [
            self.repair.then(|| "--repair".to_owned()),
            self.sample.map(|percent| format!("--sample {percent}")),
            // The age would mean another time then.
            self.since.map(|since| format!("--since {}", since.time)),
            self.json.then(|| "--json".to_owned()),
            self.quiet.then(|| "--quiet".to_owned()),
            Some(format!("--from {}", quoted(record))),
            Some(quoted_path(storage)),
        ];
        let words: Vec<String> = options.into_iter().flatten().collect();
        format!("ce verify {}", words.join(" "))
    }
}

/// Prints the amount that was read, the speed, and the outcome.
fn summarise(verdict: &Verdict, begun: Instant) {
    let &Verdict { files, bytes, wrong, odd, away, quarantined, .. } = verdict;
    let seconds = begun.elapsed().as_secs_f64();
    let read = size(bytes);
    let speed = bytes as f64 / MIB / seconds.max(1e-9);
    let files = counted(files, "file");
    say("ce", &format_args!("{files}, {read}, {seconds:.1} s, {speed:.1} MiB/s"));
    let aside =
        if quarantined > 0 { format!(", {quarantined} quarantined") } else { String::new() };
    let away = if away > 0 { format!(", {away} away") } else { String::new() };
    say("ce", &format_args!("{wrong} wrong{aside}, {odd} odd and harmless{away}"));
}

fn percent(text: &str) -> Result<f64, String> {
    let percent: Option<f64> = text.trim_end_matches('%').parse().ok();
    let percent = percent.filter(|percent| *percent > 0.0 && *percent <= 100.0);
    percent.ok_or_else(|| "write a number above 0 and up to 100".to_owned())
}

/// Probe whether a storage can keep its promises on this file system and host
///
/// Tries the operations of a storage in a private directory below its tmp/, which is removed at the
/// end. A missing storage is made, and removed as well. Explains what would break, and why small
/// calls are slow. Then a computation tries to break out of its sandbox: without a storage, that is
/// all. Existing files of the storage are not touched.
#[derive(Debug, Parser)]
#[command(version, after_help = DOCTOR_EXIT_CODES)]
pub(super) struct Doctor {
    /// Print one JSON object for each probe
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    storage: StorageDir,
}

const DOCTOR_EXIT_CODES: &str = "\
Exit codes: 0 all promises can be kept, 2 the arguments are wrong, 5 a promise cannot be \
kept, 130/143 interrupted.";

impl Tool for Doctor {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let stop = Stop::watch().map_err(BeginError::new)?;
        let tell = if self.json { report::diagnosis_json } else { report::diagnosis };
        let mut findings = GradeCounts::default();
        let storage = self.storage.if_any()?;
        for diagnosis in examine(storage.as_deref()) {
            if let Some(signal) = stop.caught() {
                say("ce", &"interrupted: the files of the probes are removed");
                return Ok(Exit::Interrupted(signal));
            }
            findings.add(&diagnosis);
            // Each as soon as it is known: on a file system that hangs, the last one tells where.
            tell(&diagnosis, out).and_then(|()| out.flush()).map_err(OutputError)?;
        }
        say("ce", &findings);
        let promises = match (&storage, findings.broken) {
            (Some(_), 0) => "a storage can keep all its promises here",
            (Some(_), _) => "a storage cannot keep all its promises here",
            (None, 0) => "no file system was probed: ce doctor STORAGE does that, too",
            (None, _) => "isolation does not hold here",
        };
        say("ce", &promises);
        Ok(if findings.broken > 0 { Exit::Storage } else { Exit::Done })
    }
}

/// Returns an iterator that performs all probes, one at a time: of a storage, if one is given, of what disturbs measurements, and of isolation.
fn examine(storage: Option<&Path>) -> impl Iterator<Item = Diagnosis> {
    let of_storage = storage.map(Probes::new).into_iter().flatten();
    of_storage.chain(measuring()).chain(isolation::break_outs())
}

/// Tries to break out of a sandbox, if the first argument is the hidden one.
pub(super) fn hidden_break_out(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    (arguments.next()? == isolation::BREAK_OUT).then(|| isolation::break_out(arguments))
}
