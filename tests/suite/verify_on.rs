//! A verification that is interrupted says how to go on, and nothing is reported twice or never.

use std::fs::{self, DirEntry, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use compeval::storage::Storage;
use compeval::storage::maintenance::verify::{self, Request, VerifyEvent};
use rustix::process::Signal;
use serde_json::Value;

use crate::arith::Arith;
use crate::fifo::Fifo;
use crate::program::{PATIENCE, Running};

const SUM: &str = "c_add/COMMIT/00/a3db5c13ff90_7448d8798a43";
const REMAINDER: &str = "c_divmod/COMMIT/01/ad48103e4fc7_5d9474c0309b";
const PRODUCT: &str = "c_mul/COMMIT/00/ad48103e4fc7_5d9474c0309b";
const RECORD: &str = "c_mul/COMMIT/record/ad48103e4fc7_5d9474c0309b.json";
const INPUT: &str = "tinputs/ad/48103e4fc7";

/// Verifies, and asks to stop at an event; returns the findings, and the record to go on from.
fn verify(arith: &Arith, from: Option<String>, stop_at: usize) -> (Vec<String>, Option<String>) {
    let storage = Storage::existing(&arith.path("")).unwrap();
    let stop = AtomicBool::new(stop_at == 0);
    let (mut events, mut found) = (0, Vec::new());
    let request = Request { from, ..Request::default() };
    let verdict = verify::verify(&storage, &request, &stop, &mut |event| {
        events += 1;
        stop.fetch_or(events == stop_at, Ordering::Relaxed);
        if let VerifyEvent::Found(finding) = event {
            found.push(format!("{}: {}", finding.name, finding.defect));
        }
    });
    (found, verdict.unwrap().stopped)
}

#[test]
fn each_problem_is_reported_once_wherever_verify_was_stopped() {
    let arith = Arith::evaluated();
    for file in [SUM, REMAINDER, "c_divmod/COMMIT/00/ad48103e4fc7_5d9474c0309b", RECORD, INPUT] {
        arith.overwrite(&arith.path(file), "?");
    }
    fs::write(arith.path("tinputs/ad/000000000000"), "stray").unwrap();
    let (whole, stopped) = verify(&arith, None, usize::MAX);
    assert_eq!((whole.len(), stopped), (6, None));
    let (nothing, first) = verify(&arith, None, 0);
    assert_eq!((nothing.len(), first.unwrap().starts_with("c_add/")), (0, true));
    for stop_at in 1..20 {
        let (mut found, mut stopped) = verify(&arith, None, stop_at);
        while let Some(from) = stopped {
            let next;
            (next, stopped) = verify(&arith, Some(from), usize::MAX);
            found.extend(next);
        }
        assert_eq!(found, whole, "stopped at {stop_at}");
    }
    let record = arith.name("c_mul/COMMIT/record/ad48103e4fc7_5d9474c0309b.json");
    for from in [record.clone(), format!("results/{record}")] {
        let found = arith.ce(&["verify", "--from", &from, "results"]);
        let from_there = whole.iter().skip_while(|line| !line.starts_with(&record));
        let lines: String = from_there.map(|line| format!("results/{line}\n")).collect();
        assert_eq!((found.out, found.code), (lines, 5));
    }
    let found = arith.ce(&["verify", "--from", "c_mul/nowhere", "results"]);
    assert_eq!((found.out.as_str(), found.code), ("", 2));
    assert!(found.err.starts_with("ce: there is no record c_mul/nowhere\n  try: "), "{found:?}");
}

/// Damages a file, and makes the next record's file so large that nobody sees its end.
fn endless() -> Arith {
    let arith = Arith::evaluated();
    arith.overwrite(&arith.path(REMAINDER), "3\n");
    let size = 1_u64 << 40;
    let mut record: Value = serde_json::from_slice(&fs::read(arith.path(RECORD)).unwrap()).unwrap();
    record["outputs"][0]["size"] = size.into();
    arith.overwrite(&arith.path(RECORD), &record.to_string());
    fs::set_permissions(arith.path(PRODUCT), fs::Permissions::from_mode(0o644)).unwrap();
    File::options().write(true).open(arith.path(PRODUCT)).unwrap().set_len(size).unwrap();
    arith
}

/// Interrupts a verification that has printed its findings; returns its last messages.
fn interrupted(arith: &Arith, options: &[&str], signal: Signal) -> (Fifo, i32, String) {
    let path = arith.path(&format!("../printed-{}", signal.as_raw()));
    let (printed, arguments) = (Fifo::new(&path), [&["verify"], options, &["results"]].concat());
    let mut command = arith.command(&arguments);
    let running = {
        let out = File::options().write(true).open(&path).unwrap();
        let running = Running::start(command.stdout(out).stderr(Stdio::piped()));
        drop(command);
        running
    };
    let line = format!("results/{}: its contents are not the recorded ones", arith.name(REMAINDER));
    assert_eq!(printed.line(), line);
    let files = format!("/proc/{}/fd", running.pid);
    let product = arith.path(PRODUCT).canonicalize().unwrap();
    let reads = |file: io::Result<DirEntry>| {
        file.and_then(|file| fs::read_link(file.path())).is_ok_and(|path| path == product)
    };
    let begun = Instant::now();
    while !fs::read_dir(&files).unwrap().any(reads) {
        assert!(begun.elapsed() < PATIENCE, "the file is never read");
        thread::yield_now();
    }
    running.signal(signal);
    let output = running.output();
    (printed, output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_signal_stops_within_a_file_and_the_command_to_go_on_is_reported() {
    let arith = endless();
    let (printed, code, told) = interrupted(&arith, &["--since=2020-01-01"], Signal::INT);
    printed.end();
    let go_on = arith.name(RECORD);
    let command = format!("ce verify --since 2020-01-01T00:00:00Z --from {go_on} results");
    assert_eq!(code, 130, "{told}");
    assert!(told.contains("ce: 1 wrong, 0 odd and harmless\n"), "{told}");
    assert!(told.contains("\nce: interrupted after "), "{told}");
    assert!(told.ends_with(&format!(" of 8 files; to go on:\n  {command}\n")), "{told}");
    // The findings until then are set aside if that was asked for.
    let (printed, code, told) = interrupted(&arith, &["--repair"], Signal::TERM);
    assert!(printed.line().contains(".json: quarantined in results/c_divmod/"));
    assert_eq!(code, 143, "{told}");
    assert!(told.contains("ce: 1 wrong, 1 quarantined, 0 odd and harmless\n"), "{told}");
    assert!(told.ends_with(&format!("\n  ce verify --repair --from {go_on} results\n")), "{told}");
    assert!(!arith.path(REMAINDER).exists());
    // The file at which it stopped has an end now: only that one is reported.
    arith.overwrite(&arith.path(RECORD), "?");
    let rest = arith.ce(&command.split(' ').skip(1).collect::<Vec<_>>());
    let line = format!("results/{go_on}: the record cannot be understood\n");
    assert_eq!((rest.out, rest.code), (line, 5));
}
