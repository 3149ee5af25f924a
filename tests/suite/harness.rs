//! The harness of this suite: the compiler's as `libtest-mimic` has it, where a test can be skipped.
//!
//! A test is a function with `#[test]`, as everywhere; `tests/attribute` registers it. Each runs in a thread of its own, which
//! has its name. What it prints with `print`, and its panics, are shown if it fails. `CE_TESTS_TIMES` names a file to which
//! each test adds the seconds that it took, and the seconds of processors; these are its own with `--test-threads=1` only.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, Write};
use std::panic::{self, PanicHookInfo};
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use clap::{ArgAction, CommandFactory, FromArgMatches};
use libtest_mimic::{Arguments, Completion, Failed, FormatSetting, Trial};

use super::needs::{self, Skipped};

/// The time after which it is reported that a test is still running.
const LONG: Duration = Duration::from_secs(60);

/// A test, as `tests/attribute` registers it.
pub(crate) struct Test {
    pub(crate) module: &'static str,
    pub(crate) name: &'static str,
    pub(crate) run: fn(),
    /// The reason why it only runs if ignored tests are asked for; empty without a reason.
    pub(crate) ignored: Option<&'static str>,
    /// The text in the panic with which the test must end.
    pub(crate) panics: Option<&'static str>,
}

inventory::collect!(Test);

thread_local! {
    /// The output of the test of this thread, unless it is printed at once.
    static OUTPUT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Prints something for the reader of a test that fails.
pub(crate) fn print(text: &str) {
    let is_kept = OUTPUT.with_borrow_mut(|output| output.as_mut().map(|it| it.push_str(text)));
    if is_kept.is_none() {
        drop(io::stderr().write_all(text.as_bytes()));
    }
}

/// Runs the tests that the arguments choose.
pub(crate) fn main() -> ExitCode {
    let (arguments, filters) = arguments();
    let captures = !arguments.nocapture;
    let default_hook = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        // Threads that a test has started have no output of their own.
        if OUTPUT.with_borrow(Option::is_some) { print(&told(info)) } else { default_hook(info) }
    }));
    let exact = arguments.exact;
    let chooses =
        |filter: &str, name: &str| if exact { name == filter } else { name.contains(filter) };
    let mut tests: Vec<(String, &'static Test)> = inventory::iter::<Test>
        .into_iter()
        .map(|test| (name_of(test), test))
        .filter(|(name, _)| filters.is_empty() || filters.iter().any(|it| chooses(it, name)))
        .collect();
    tests.sort_by(|(one, _), (other, _)| one.cmp(other));
    if !arguments.list {
        spread(&mut tests);
    }
    let is_asked_for = arguments.ignored || arguments.include_ignored;
    let trial = |(name, test): (String, &'static Test)| {
        let own = name.clone();
        Trial::ignorable_test(name, move || match test.ignored {
            Some(reason) if !is_asked_for => Ok(Completion::ignored_with(reason)),
            _ => {
                let (begin, used) = (Instant::now(), processor_seconds());
                let ended = execute(&own, test.run, captures);
                note_times(&own, begin.elapsed().as_secs_f64(), processor_seconds() - used);
                judge(&own, test, ended)
            }
        })
        .with_ignored_flag(test.ignored.is_some() && is_asked_for)
    };
    let conclusion = libtest_mimic::run(&arguments, tests.into_iter().map(trial).collect());
    if let Some(summary) = needs::summary() {
        let is_json = arguments.format == Some(FormatSetting::Json);
        let mut out: Box<dyn Write> =
            if is_json { Box::new(io::stderr()) } else { Box::new(io::stdout()) };
        drop(writeln!(out, "{summary}\n"));
    }
    conclusion.exit_code()
}

/// Orders tests so that neighbours are far apart, always in the same way: many tests of a module wait for the same, such as a
/// cluster, and others can use the processors meanwhile.
fn spread<T>(tests: &mut Vec<T>) {
    // Multiples of the golden ratio are spread evenly.
    let place = |number: usize| (number as u32).wrapping_mul(0x9E37_79B9);
    let mut numbered: Vec<(usize, T)> = tests.drain(..).enumerate().collect();
    numbered.sort_by_key(|(number, _)| place(*number));
    tests.extend(numbered.into_iter().map(|(_, test)| test));
}

/// Adds how long a test took to the file that `CE_TESTS_TIMES` names.
fn note_times(name: &str, clock: f64, used: f64) {
    if let Some(path) = std::env::var_os("CE_TESTS_TIMES") {
        let mut file = File::options().create(true).append(true).open(path).unwrap();
        file.write_all(format!("{clock:8.2} {used:8.2} {name}\n").as_bytes()).unwrap();
    }
}

/// The seconds of processors that this process and the children that it has waited for have used: the 14th to 17th words of
/// `/proc/self/stat`, in hundredths.
fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(4);
    ticks.filter_map(|word| word.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The arguments as the compiler's harness knows them, and the filters if there are several.
fn arguments() -> (Arguments, Vec<String>) {
    let command = Arguments::command()
        .mut_arg("filter", |arg| arg.num_args(0..).action(ArgAction::Append))
        .mut_arg("nocapture", |arg| arg.alias("no-capture").help("Print what tests print at once"));
    let mut matches = command.get_matches();
    let mut filters: Vec<String> = matches.remove_many("filter").into_iter().flatten().collect();
    let mut arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if filters.len() < 2 {
        arguments.filter = filters.pop();
    }
    let number = || std::env::var("RUST_TEST_THREADS").ok()?.parse().ok();
    arguments.test_threads = arguments.test_threads.or_else(number);
    arguments.nocapture |= std::env::var_os("RUST_TEST_NOCAPTURE").is_some_and(|it| it != "0");
    (arguments, filters)
}

/// The name of a test: its path in this crate.
fn name_of(test: &Test) -> String {
    match test.module.split_once("::") {
        Some((_, module)) => format!("{module}::{}", test.name),
        None => test.name.to_owned(),
    }
}

/// Returns the report of a panic.
fn told(info: &PanicHookInfo<'_>) -> String {
    let thread = thread::current();
    let name = thread.name().unwrap_or("<unnamed>");
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        return format!("thread '{name}' {info}\nstack backtrace:\n{trace}\n");
    }
    format!(
        "thread '{name}' {info}\n\
         note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n"
    )
}

/// The end of a test.
struct Ended {
    result: Result<(), Box<dyn Any + Send>>,
    skipped: Option<Skipped>,
    output: String,
}

/// Runs a test in a thread of its own.
fn execute(name: &str, run: fn(), captures: bool) -> Ended {
    let (sender, receiver) = mpsc::channel();
    let test = move || {
        OUTPUT.set(captures.then(String::new));
        let mut result = panic::catch_unwind(run);
        let mut unwound = None;
        if let Err(payload) = &result
            && let Some(skipped) = payload.downcast_ref::<Skipped>()
        {
            unwound = Some(skipped.clone());
            result = Ok(());
        }
        let (skipped, output) = (needs::taken(unwound), OUTPUT.take().unwrap_or_default());
        drop(sender.send(Ended { result, skipped, output }));
    };
    let thread = thread::Builder::new().name(name.to_owned()).spawn(test).unwrap();
    let ended = receiver.recv_timeout(LONG).or_else(|error| {
        if error == RecvTimeoutError::Timeout {
            let seconds = LONG.as_secs();
            drop(writeln!(io::stderr(), "test {name} has been running for over {seconds} seconds"));
        }
        receiver.recv()
    });
    thread.join().unwrap();
    ended.unwrap()
}

/// Decides how a test that has ended is reported.
fn judge(
    name: &str,
    test: &Test,
    Ended { result, skipped, output }: Ended,
) -> Result<Completion, Failed> {
    let failed = |why: &str| Err(Failed::from(format!("{output}{why}")));
    match (result, skipped, test.panics) {
        (Ok(()), Some(skipped), _) if skipped.is_refused() => {
            failed(&format!("the test {skipped}: CE_TESTS_MUST_RUN is set"))
        }
        (Ok(()), Some(skipped), _) => {
            let completion = Completion::ignored_with(&skipped);
            needs::note(name, skipped);
            Ok(completion)
        }
        (Ok(()), None, None) => Ok(Completion::Completed),
        (Ok(()), None, Some(_)) => failed("the test did not panic, and should have"),
        (Err(_), _, None) => failed(""),
        (Err(payload), _, Some(expected)) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            if text.unwrap_or_default().contains(expected) {
                return Ok(Completion::Completed);
            }
            failed(&format!("the panic does not contain {expected:?}"))
        }
    }
}
