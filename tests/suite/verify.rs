//! Every damage is reported, nothing else is, and files that were set aside are made again.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::arith::{Arith, Printed, RUN};
#[cfg(debug_assertions)]
use crate::faults::stride;
use crate::lab::Lab;
use crate::needs::needs;
use crate::program::{Ran, Running};

const PRODUCT: &str = "c_mul/COMMIT/00/ad48103e4fc7_5d9474c0309b";
const REMAINDER: &str = "c_divmod/COMMIT/01/ad48103e4fc7_5d9474c0309b";
const SUM: &str = "c_add/COMMIT/00/a3db5c13ff90_7448d8798a43";

fn verify(arith: &Arith, options: &[&str]) -> Printed {
    arith.ce(&[&["verify"], options, &["results"]].concat())
}

/// Checks that damage is reported, repaired, computed again, and that the storage is clean then.
fn is_told_and_repaired(arith: &Arith, told: &[(&str, &str)]) {
    let line = |(name, what): &(&str, &str)| format!("results/{}: {what}\n", arith.name(name));
    let mut lines: Vec<String> = told.iter().map(line).collect();
    lines.sort();
    let found = verify(arith, &[]);
    assert_eq!((found.out.as_str(), found.code), (lines.concat().as_str(), 5), "{found:?}");
    let repaired = verify(arith, &["--repair"]);
    assert_eq!(repaired.code, 5, "{repaired:?}");
    assert!(repaired.out.contains("quarantined in results/"), "{repaired:?}");
    let again = arith.evaluate();
    assert_eq!(again.code, 0, "{again:?}");
    let clean = verify(arith, &[]);
    assert_eq!((clean.out.as_str(), clean.code), ("", 0), "{clean:?}");
    for (output, text) in [(PRODUCT, "85\n"), (REMAINDER, "2\n"), (SUM, "5\n")] {
        assert_eq!(fs::read_to_string(arith.path(output)).unwrap(), text);
    }
}

#[test]
fn each_damage_is_reported_and_repaired() {
    let arith = Arith::evaluated();
    let clean = verify(&arith, &[]);
    assert_eq!((clean.out.as_str(), clean.code), ("", 0));
    assert!(clean.err.contains("ce: 8 files, 20 B, "), "{clean:?}");
    assert!(clean.err.contains("ce: 0 wrong, 0 odd and harmless\n"), "{clean:?}");
    const CHANGED: &str = "its contents are not the recorded ones";
    const UNKNOWN: &str = "the record cannot be understood";
    let record = "c_mul/COMMIT/record/ad48103e4fc7_5d9474c0309b.json";
    let input = "tinputs/ad/48103e4fc7";
    let (job, call) = (
        "t_arith/COMMIT/00/ad48103e4fc7_5d9474c0309b",
        "c_add/COMMIT/00/e9277bc504d7_5d9474c0309b",
    );
    for (file, text, told) in [
        (PRODUCT, "84\n", &[(PRODUCT, CHANGED)][..]),
        (REMAINDER, "", &[(REMAINDER, "it has 0 bytes, and 2 are recorded")]),
        (record, "{", &[(record, UNKNOWN)]),
        (input, "71\n", &[(input, CHANGED)]),
        // The outputs of a job are links to those of its calls.
        (job, "91\n", &[(call, CHANGED), (job, CHANGED)]),
    ] {
        arith.overwrite(&arith.path(file), text);
        is_told_and_repaired(&arith, told);
    }
    fs::remove_file(arith.path(SUM)).unwrap();
    is_told_and_repaired(&arith, &[(SUM, "it is missing")]);
    let records = [
        record,
        "t_arith/COMMIT/record/ad48103e4fc7_5d9474c0309b.json",
        "tinputs/record/ad/48103e4fc7.json",
    ];
    let directories = records.map(|record| (record, UNKNOWN));
    for (name, what) in [(SUM, "it is not a file")].into_iter().chain(directories) {
        fs::remove_file(arith.path(name)).unwrap();
        fs::create_dir_all(arith.path(name).join("below")).unwrap();
        fs::write(arith.path(name).join("below/file"), "").unwrap();
        is_told_and_repaired(&arith, &[(name, what)]);
    }
    let other = "c_divmod/COMMIT/record/ad48103e4fc7_5d9474c0309b.json";
    fs::remove_file(arith.path(record)).unwrap();
    fs::copy(arith.path(other), arith.path(record)).unwrap();
    is_told_and_repaired(&arith, &[(record, "the record belongs to another name")]);
}

/// Kills a program at one operation after the other, every fourth or each with `CE_KILLS`, while damage is in the storage; the
/// next run makes everything again.
#[cfg(debug_assertions)]
fn is_safe_to_kill(arguments: &[&str], damage: impl Fn(&Arith)) {
    let arith = Arith::evaluated();
    for operation in (1..).step_by(stride(4)) {
        damage(&arith);
        let killed = arith.is_killed_at(operation, arguments);
        verify(&arith, &["--repair"]);
        assert_eq!(arith.evaluate().code, 0, "killed at {operation}");
        let product = fs::read_to_string(arith.path(PRODUCT)).unwrap();
        assert_eq!(product, "85\n", "killed at {operation}");
        if !killed {
            assert!(operation > 50, "{operation} operations");
            break;
        }
    }
}

#[test]
#[cfg(debug_assertions)]
fn a_run_killed_while_it_sets_aside_leaves_no_wrong_result() {
    // A run looks closer where the time stamp differs.
    is_safe_to_kill(&RUN, |arith| {
        fs::remove_file(arith.path(PRODUCT)).unwrap();
        fs::write(arith.path(PRODUCT), "84\n").unwrap();
    });
}

#[test]
#[cfg(debug_assertions)]
fn a_repair_killed_while_it_sets_aside_leaves_no_wrong_result() {
    is_safe_to_kill(&["verify", "--repair", "results"], |arith| {
        arith.overwrite(&arith.path(PRODUCT), "84\n");
    });
}

#[test]
fn a_file_set_aside_is_kept() {
    let arith = Arith::evaluated();
    arith.overwrite(&arith.path(PRODUCT), "84\n");
    verify(&arith, &["--repair"]);
    let asides = arith.path("c_mul/COMMIT/aside/ad48103e4fc7_5d9474c0309b");
    let aside = fs::read_dir(asides).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read_to_string(aside.join("00")).unwrap(), "84\n");
    assert!(aside.join("record.json").is_file());
    assert!(!arith.path(PRODUCT).exists());
}

#[test]
fn oddities_are_reported_but_are_not_errors() {
    let arith = Arith::evaluated();
    fs::remove_file(arith.path("c_mul/COMMIT/record/ad48103e4fc7_5d9474c0309b.json")).unwrap();
    fs::write(arith.path("tinputs/ad/000000000000"), "stray").unwrap();
    let gone = "nowhere-00000000-1-1-1";
    fs::create_dir_all(arith.path("c_mul/COMMIT/running")).unwrap();
    fs::write(arith.path("c_mul/COMMIT/running/_"), format!("{gone}\n")).unwrap();
    let found = verify(&arith, &[]);
    let product = arith.name(PRODUCT);
    let lease = arith.name("c_mul/COMMIT/running/_");
    let lines = format!(
        "results/{product}: it has no record (harmless)\n\
         results/tinputs/ad/000000000000: it has no record (harmless)\n\
         results/{lease}: a lease of a run that is gone (harmless)\n"
    );
    assert_eq!((found.out, found.code), (lines, 0));
    assert!(found.err.contains("0 wrong, 3 odd and harmless"), "{}", found.err);
}

#[test]
fn a_record_of_a_newer_version_is_reported_and_left_alone() {
    let arith = Arith::evaluated();
    let record = arith.path("c_mul/COMMIT/record/ad48103e4fc7_5d9474c0309b.json");
    arith.overwrite(&record, "{\"format\": 9}");
    let found = verify(&arith, &["--repair"]);
    assert_eq!(found.code, 5);
    assert!(found.out.contains("has format 9"), "{found:?}");
    assert!(record.exists() && arith.path(PRODUCT).exists());
}

#[test]
fn a_record_with_too_many_outputs_is_reported() {
    let arith = Arith::evaluated();
    let record = arith.path("c_divmod/COMMIT/record/ad48103e4fc7_5d9474c0309b.json");
    let text = fs::read_to_string(&record).unwrap();
    // Both outputs have it: together they have more bytes than can be counted.
    arith.overwrite(&record, &text.replace("\"size\": 2", "\"size\": 18446744073709551615"));
    let found = verify(&arith, &[]);
    assert_eq!(found.code, 5, "{found:?}");
    assert!(found.out.contains("it has 2 bytes, and 18446744073709551615 are recorded"));
}

#[test]
fn a_part_may_be_chosen_by_time_and_by_chance() {
    let arith = Arith::evaluated();
    arith.overwrite(&arith.path(PRODUCT), "84\n");
    assert_eq!(verify(&arith, &["--since", "1h"]).code, 5);
    assert_eq!(verify(&arith, &["--since", "0s"]).code, 0);
    assert_eq!(verify(&arith, &["--sample", "100"]).code, 5);
    assert_eq!(verify(&arith, &["--sample", "0.0000001"]).code, 0);
    for wrong in
        [["--sample", "0"], ["--sample", "101"], ["--since", "soon"], ["--since", "2100-01-01"]]
    {
        assert_eq!(verify(&arith, &wrong).code, 2, "{wrong:?}");
    }
}

#[test]
fn a_missing_storage_is_reported_and_not_created() {
    let arith = Arith::evaluated();
    for options in [&["verify", "nowhere"][..], &["verify", "--repair", "nowhere"]] {
        let found = arith.ce(options);
        assert_eq!(found.code, 5);
        assert!(found.err.contains("cannot open the storage nowhere"), "{found:?}");
        assert!(!arith.path("../nowhere").exists());
    }
}

/// Takes a lease on a file, says so, and says when it is asked for it. It gives the lease back then, if it is told to.
const HOLDER: &str = r#"
import fcntl, os, signal, sys, time
file = os.open(sys.argv[1], os.O_RDONLY)
def asked(*_):
    print("asked", flush=True)
    if sys.argv[2] == "gives":
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
signal.signal(signal.SIGIO, asked)
for _ in range(12000):
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        break
    except BlockingIOError:
        # A process that is being started has the files of its parent for a moment.
        time.sleep(0.01)
else:
    sys.exit("the file is open elsewhere")
print("held", flush=True)
while True:
    signal.pause()
"#;

/// A program that holds a lease on a file. It ends with this value.
struct Lease(Child, Lines<BufReader<ChildStdout>>);

impl Lease {
    fn take(file: &Path, how: &str) -> Self {
        let mut python = Command::new("python3");
        python.args(["-c", HOLDER]).arg(file).arg(how).stdout(Stdio::piped());
        let mut child = python.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lease = Self(child, lines);
        lease.says("held");
        lease
    }

    #[track_caller]
    fn says(&mut self, what: &str) {
        assert_eq!(self.1.next().unwrap().unwrap(), what);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_file_under_a_lease_is_waited_for_and_not_damaged() {
    needs(&["python3"]);
    let lab = Lab::task("Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))[0]").commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let name = lab.storage().into_iter().find(|it| it.contains("c_add/") && it.contains("/00/"));
    let output = lab.path("storage").join(name.unwrap());
    let mut lease = Lease::take(&output, "gives");
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong");
    lease.says("asked");
    drop(lease);
    // An input of a user.
    fs::write(lab.path("data/x"), "another\n").unwrap();
    let mut lease = Lease::take(&lab.path("data/x"), "gives");
    lab.ce_run(&["-n", "--no-sync"]).exit(3);
    lease.says("asked");
    drop(lease);
    // One that is kept: for 45 seconds the kernel lets nobody have the file.
    let mut lease = Lease::take(&output, "keeps");
    let begun = Instant::now();
    let verify = Running::start(lab.command("ce").args(["verify", "../storage"]));
    lease.says("asked");
    verify.signal(Signal::INT);
    let ran = Ran::new(&lab, verify.output()).exit(130);
    assert!(!ran.stderr.contains("wrong") || ran.stderr.contains("0 wrong"), "{}", ran.stderr);
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
}
