//! The requirements of tests beyond Rust, Git and the tools of every system. A test that lacks something is skipped, wholly or in
//! part: it is reported as ignored, with the reason, and a summary at the end says how many were skipped for what.
//!
//! If `CE_TESTS_MUST_RUN` is set, as in `.ci/run`, it fails instead.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::panic;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};

/// Programs, and the packages of Debian that have them, or what installs them.
const PROGRAMS: [(&str, &str); 31] = [
    ("/usr/lib/openssh/sftp-server", "openssh-sftp-server"),
    ("Rscript", "r-base-core r-cran-jsonlite"),
    ("bcftools", "bcftools"),
    ("bwa", "bwa"),
    ("cc", "gcc libc6-dev"),
    ("chromium", "chromium"),
    ("docker-registry", "docker-registry"),
    ("dpkg-deb", "dpkg"),
    ("fish", "fish"),
    ("git-lfs", "git-lfs"),
    ("glusterfsd", "glusterfs-server glusterfs-client"),
    ("gnuplot", "gnuplot-nox"),
    ("latexmk", "latexmk texlive-latex-base"),
    ("lua5.4", "lua5.4"),
    ("make", "make"),
    ("mpicc", "openmpi-bin libopenmpi-dev"),
    ("pip", "python3-pip"),
    ("prlimit", "util-linux"),
    ("python3", "python3"),
    ("rsvg-convert", "librsvg2-bin"),
    ("samtools", "samtools"),
    ("sge_qmaster", "gridengine-master gridengine-exec gridengine-client dma"),
    ("setpriv", "util-linux"),
    ("skopeo", "skopeo"),
    ("slurmctld", "munge slurmctld slurmd slurm-client"),
    ("ssh-keygen", "openssh-client"),
    ("sshfs", "sshfs"),
    ("strace", "strace"),
    ("umoci", "umoci"),
    ("validate-crate", "tests/crate/install"),
    ("vim", "vim"),
];

/// The user that nobody has to be: a test that only root can do may be skipped even where all must run.
pub(crate) const ROOT: &str = "root";

/// A missing requirement: a program, or an operation that the host does not allow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lack {
    what: String,
    /// The packages that have it; empty if none has.
    packages: &'static str,
}

impl Lack {
    pub(crate) fn from_name(what: &str) -> Self {
        let known = PROGRAMS.iter().find(|(program, _)| *program == what);
        Self { what: what.to_owned(), packages: known.map_or("", |(_, packages)| packages) }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, packages } = self;
        match packages.split_whitespace().count() {
            0 => write!(f, "{what}"),
            1 => write!(f, "{what} (package {packages})"),
            _ => write!(f, "{what} (packages {packages})"),
        }
    }
}

/// The reason why a test was skipped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Skipped {
    lacks: BTreeSet<Lack>,
    /// The parts that were not run, where a test knows them.
    parts: Vec<String>,
}

impl Skipped {
    /// Whether this is an error: all must run, and could.
    pub(crate) fn is_refused(&self) -> bool {
        let must_run = std::env::var_os("CE_TESTS_MUST_RUN").is_some_and(|it| !it.is_empty());
        must_run && self.lacks.iter().any(|lack| lack.what != ROOT)
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lacks: Vec<String> = self.lacks.iter().map(ToString::to_string).collect();
        write!(f, "needs {}", lacks.join(", "))?;
        match self.parts.as_slice() {
            [] => Ok(()),
            parts => write!(f, "; did not run {}", parts.join("; ")),
        }
    }
}

thread_local! {
    static LACKING: RefCell<Skipped> = RefCell::default();
}

/// Skips the test where one of these programs is not there.
#[track_caller]
pub(crate) fn needs(programs: &[&str]) {
    let lacks = lacking(programs);
    if !lacks.is_empty() {
        // Unlike a panic, this prints nothing. It arrives from other threads, too.
        panic::resume_unwind(Box::new(Skipped { lacks, parts: Vec::new() }));
    }
}

/// Skips the test, since something is not there.
pub(crate) fn without(what: &str) -> ! {
    let lacks = BTreeSet::from([Lack::from_name(what)]);
    panic::resume_unwind(Box::new(Skipped { lacks, parts: Vec::new() }));
}

/// Notes that the test of this thread is skipped, wholly or in part, since something is not there.
pub(crate) fn lacks(what: &str) {
    LACKING.with_borrow_mut(|skipped| skipped.lacks.insert(Lack::from_name(what)));
}

/// Notes that a part of the test of this thread was not run.
pub(crate) fn lacks_for(part: String, lacks: BTreeSet<Lack>) {
    LACKING.with_borrow_mut(|skipped| {
        skipped.lacks.extend(lacks);
        skipped.parts.push(part);
    });
}

/// Returns the programs that are missing.
#[track_caller]
pub(crate) fn lacking(programs: &[&str]) -> BTreeSet<Lack> {
    let unknown = programs.iter().find(|name| Lack::from_name(name).packages.is_empty());
    assert_eq!(unknown, None, "a program that PROGRAMS does not have");
    programs.iter().filter(|name| !is_there(name)).map(|name| Lack::from_name(name)).collect()
}

/// The programs whose names are words of a text.
pub(crate) fn named_in<'a>(text: &'a str) -> impl Iterator<Item = &'static str> + 'a {
    let is_part = |c: char| c.is_alphanumeric() || "-_".contains(c);
    let words = text.split(move |c| !is_part(c));
    words.filter_map(|word| PROGRAMS.iter().map(|(name, _)| *name).find(|name| *name == word))
}

/// Whether `PATH` leads to a program. R must have what its tests use.
pub(crate) fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|dir| is_program(&dir.join(program)));
    is_there && (program != "Rscript" || has_jsonlite())
}

pub(crate) fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

fn has_jsonlite() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let mut command = Command::new("Rscript");
        let quiet = command.args(["-e", "library(jsonlite)"]).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    })
}

/// Returns why the test of this thread, which has ended, was skipped. `unwound` is what unwinding ended it with.
pub(crate) fn taken(unwound: Option<Skipped>) -> Option<Skipped> {
    let mut skipped = LACKING.take();
    skipped.lacks.extend(unwound.unwrap_or_default().lacks);
    (!skipped.lacks.is_empty()).then_some(skipped)
}

/// All that was skipped.
static SKIPPED: Mutex<Vec<Skipped>> = Mutex::new(Vec::new());

/// Notes that a test was skipped: for the summary, and in the file `CE_TESTS_SKIPPED`, a name in each line.
pub(crate) fn note(name: &str, skipped: Skipped) {
    let mut all = SKIPPED.lock().unwrap();
    if let Some(list) = std::env::var_os("CE_TESTS_SKIPPED") {
        let mut list = File::options().create(true).append(true).open(list).unwrap();
        writeln!(list, "{name}").unwrap();
    }
    all.push(skipped);
}

/// Returns how many tests were skipped for what, and which packages would run them; nothing if none was.
pub(crate) fn summary() -> Option<String> {
    let skipped = SKIPPED.lock().unwrap();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut packages: BTreeSet<&str> = BTreeSet::new();
    for lack in skipped.iter().flat_map(|it| &it.lacks) {
        *counts.entry(&lack.what).or_default() += 1;
        packages.extend(lack.packages.split_whitespace());
    }
    let counts = counts.into_iter().map(|(what, count)| match count {
        1 => format!("1 needs {what}"),
        _ => format!("{count} need {what}"),
    });
    let mut text = match skipped.len() {
        0 => return None,
        1 => "1 test was skipped: ".to_owned(),
        number => format!("{number} tests were skipped: "),
    };
    text += &counts.collect::<Vec<_>>().join(", ");
    if !packages.is_empty() {
        text += "; to run them: apt-get install ";
        text += &packages.into_iter().collect::<Vec<_>>().join(" ");
    }
    Some(text)
}

/// The test that tests of this harness start.
#[test]
#[ignore = "it is started by other tests"]
fn one_that_needs_a_program() {
    needs(&["gnuplot"]);
    panic!("it was run");
}

#[test]
#[ignore = "it is started by other tests"]
fn one_that_lacks_something_of_two() {
    lacks("strace");
    lacks("wings");
}

#[test]
#[ignore = "it is started by other tests"]
fn one_that_succeeds() {
    crate::harness::print("nobody wants to know\n");
}

#[test]
#[ignore = "it is started by other tests"]
#[should_panic(expected = "of another kind")]
fn one_that_panics_wrongly() {
    panic!("of this kind");
}

/// Runs the tests above whose names have one of these texts, where no program is installed. Returns the exit code, and
/// what was printed.
fn started(names: &[&str], must_run: &str) -> (Option<i32>, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--skip", "::other_process"]).args(names).env_clear();
    let output = command.env("CE_TESTS_MUST_RUN", must_run).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text.into_owned())
}

#[test]
fn a_test_that_lacks_something_is_reported_with_the_reason_and_counted() {
    let (code, text) = started(&["one_that_needs", "one_that_lacks", "one_that_succ"], "");
    assert_eq!(code, Some(0), "{text}");
    for told in [
        "needs::one_that_needs_a_program        ... ignored (needs gnuplot (package gnuplot-nox))\n",
        "needs::one_that_lacks_something_of_two ... ignored (needs strace (package strace), wings)\n",
        "needs::one_that_succeeds               ... ok\n",
        "test result: ok. 1 passed; 0 failed; 2 ignored; ",
        "\n2 tests were skipped: 1 needs gnuplot, 1 needs strace, 1 needs wings; \
         to run them: apt-get install gnuplot-nox strace\n",
    ] {
        assert!(text.contains(told), "no {told:?} in {text}");
    }
    assert!(!text.contains("nobody wants to know"), "{text}");
}

#[test]
fn a_test_that_lacks_something_fails_where_all_must_run() {
    let (code, text) = started(&["one_that_needs", "one_that_lacks", "one_that_succ"], "1");
    assert_eq!(code, Some(101), "{text}");
    assert!(text.contains("test result: FAILED. 1 passed; 2 failed; 0 ignored; "), "{text}");
    let why = "the test needs gnuplot (package gnuplot-nox): CE_TESTS_MUST_RUN is set\n";
    assert!(text.contains(why), "{text}");
}

#[test]
fn a_test_that_fails_shows_what_it_printed_and_where() {
    let (code, text) = started(&["one_that_panics_wrongly"], "");
    assert_eq!(code, Some(101), "{text}");
    let place = "---- needs::one_that_panics_wrongly ----\n\
                 thread 'needs::one_that_panics_wrongly' panicked at tests/suite/needs.rs:";
    assert!(text.contains(place), "{text}");
    assert!(text.contains("\nof this kind\n"), "{text}");
    assert!(text.contains("the panic does not contain \"of another kind\"\n"), "{text}");
}
