//! The text that a run shows at a terminal.

use std::os::unix::process::ExitStatusExt;

use crate::fifo::{self, Fifo, Never};
use crate::lab::Lab;
use crate::terminal::{Shown, Terminal, lines};

/// A label that does not fit into 40 columns beside the time.
const LABEL: &str = "a-label-that-is-longer-than-forty-columns-are";

/// A sum of a product and of a call that waits, with long labels.
fn lab() -> Lab {
    let wait = r#"exec 3>"$LAB_MEET"; echo here >&3; cat "$LAB_WAIT"; cat "$1" >"$2""#;
    Lab::task("Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] (wait INPUT('x'))[0])[0]")
        .computation("wait", "a", "b", wait)
        .rename("workflow/inputs/01-wait", &format!("01-{LABEL}"))
        .with_storage()
        .commit()
}

/// Starts a run at a terminal. Returns when its call waits, with the file that it waits for.
fn waiting(lab: &Lab, columns: u16, shown: Shown, options: &[&str]) -> (Terminal, Never) {
    let (meet, never) = (lab.path("meet"), lab.path("never"));
    let options = [&["--no-sync"], options].concat();
    let (fifo, mut command) = (Fifo::new(&meet), lab.evaluation(&options));
    command.env("LAB_MEET", &meet).env("LAB_WAIT", &never);
    let never = Never::new(never);
    let terminal = Terminal::start(&command, columns, shown);
    assert_eq!(fifo.line(), "here");
    (terminal, never)
}

/// The line with the word `TIME` in place of `0:07`.
fn untimed(line: &str) -> String {
    let digits = |text: &str, count| {
        text.len() >= count && text.bytes().take(count).all(|it| it.is_ascii_digit())
    };
    match line.split_once(':') {
        Some((before, after)) if digits(after, 2) => {
            let before = before.trim_end_matches(|it: char| it.is_ascii_digit());
            format!("{before}TIME{}", &after[2..])
        }
        _ => line.to_owned(),
    }
}

#[test]
fn the_progress_is_as_wide_as_the_terminal() {
    for (columns, bar) in [(40, ""), (100, "[======>             ] ")] {
        let lab = lab();
        let (mut terminal, never) = waiting(&lab, columns, Shown::Errors, &["-j2"]);
        // A call is shown once it has run for a while.
        terminal.await_text("  wait (");
        terminal.await_text("1/3 calls, ");
        never.let_go();
        let (status, text) = terminal.end();
        assert_eq!(status.code(), Some(0), "{text}");
        let (progress, rest) = text.split_once("ce-run: job output").unwrap();
        assert!(rest.ends_with("ce-run: 3 calls: 3 computed\r\n"), "{rest:?}");
        let lines = lines(progress, columns.into());
        let shown: Vec<String> = lines.iter().map(|line| untimed(line)).collect();
        let title = format!("    0:00  wait ({LABEL})");
        let title = untimed(&title[..title.len().min(columns.into())]);
        assert!(shown.contains(&title), "{title:?} in {shown:?}");
        let begin = format!("{bar}1/3 calls, ");
        assert!(shown.iter().any(|line| line.starts_with(&begin)), "{shown:?}");
        // Nothing goes on in a second line.
        for line in shown.iter().filter(|line| **line != title) {
            let (before, after) = line.split_once("/3 calls, ").unwrap_or((line, ""));
            assert!(before.ends_with(|it: char| it.is_ascii_digit()), "{line:?} in {shown:?}");
            assert_eq!(before.len(), bar.len() + 1, "{line:?} in {shown:?}");
            // The time to go is shown once the run has taken two seconds.
            let is_whole = after.ends_with(" running, TIME") || after.ends_with(" to go");
            assert!(is_whole, "{line:?} in {shown:?}");
        }
    }
}

/// The progress that a run with these options shows while a call waits.
#[track_caller]
fn shows(lab: &Lab, options: &[&str], progress: &str) {
    let (mut terminal, never) = waiting(lab, 100, Shown::Errors, options);
    terminal.await_text(progress);
    never.let_go();
    let (status, text) = terminal.end();
    assert_eq!(status.code(), Some(0), "{text}");
}

#[test]
fn the_progress_counts_only_requested_calls() {
    shows(&lab(), &["--only", LABEL], "] 0/1 calls, ");
    let sweep = || {
        let wait = r#"exec 3>"$LAB_MEET"; echo here >&3; cat "$LAB_WAIT"; echo 1 >"$3""#;
        Lab::task("Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))[0]")
            .without("workflow")
            .computation("count", "table", "rows", "wc -l <\"$1\" >\"$2\"")
            .computation("wait", "a b", "c", wait)
            .node("", "computation", "count")
            .node("inputs/00-table/", "sweep", "PRODUCTS")
            .call("inputs/00-table/inputs/00-body/", "wait", &["a", "b"])
            .with_storage()
    };
    let lab = sweep().file("workflow/inputs/00-table/factors/00-a", "1\n2\n3\n");
    let lab = lab.file("workflow/inputs/00-table/factors/01-b", "5\n").commit();
    shows(&lab, &["--where", "a=2"], "] 0/1 calls, ");
    // The points are known later, and the calls that need the table are left out then.
    let lab = sweep().file("workflow/inputs/00-table/names", "a\nb\n");
    let rows = "printf 'a\\tb\\n1\\t2\\n3\\t4\\n' >\"$2\"";
    let lab = lab.computation("rows", "x", "points", rows);
    let lab = lab.call("inputs/00-table/inputs/01-points/", "rows", &["x"]).commit();
    shows(&lab, &["--where", "a=3"], "] 1/2 calls, ");
}

#[test]
fn the_progress_counts_no_call_that_reads_a_partial_table() {
    let count = "wc -l <\"$1\" >\"$2\"";
    let rows = "printf 'a\\n1\\n' >\"$2\"";
    let wait = r#"exec 3>"$LAB_MEET"; echo here >&3; cat "$LAB_WAIT"; cat "$1" >"$2""#;
    // The gathering call of a sweep with computed points comes before the calls of its body.
    let outer = "inputs/01-count/inputs/00-outer";
    let inner = format!("{outer}/inputs/00-count/inputs/00-inner");
    let lab = Lab::task("Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))[0]")
        .without("workflow")
        .computation("count", "table", "rows", count)
        .computation("rows", "x", "points", rows)
        .computation("wait", "a", "b", wait)
        .node("", "computation", "add")
        .call("inputs/00-wait/", "wait", &["x"])
        .node("inputs/01-count/", "computation", "count")
        .node(&format!("{outer}/"), "sweep", "OUTER")
        .file(&format!("workflow/{outer}/names"), "a\n")
        .node(&format!("{outer}/inputs/00-count/"), "computation", "count")
        .node(&format!("{inner}/"), "sweep", "INNER")
        .file(&format!("workflow/{inner}/factors/00-b"), "5\n6\n")
        .call(&format!("{inner}/inputs/00-body/"), "mul", &["a", "b"])
        .call(&format!("{outer}/inputs/01-points/"), "rows", &["y"])
        .with_storage()
        .commit();
    shows(&lab, &["-j2", "--where", "b=5"], "] 2/3 calls, ");
}

#[test]
fn the_progress_is_drawn_when_it_changes() {
    let lab = lab();
    let (mut terminal, never) = waiting(&lab, 100, Shown::Errors, &["-j2"]);
    // Both lines have a time, which changes each second. A busy host may skip some.
    let waited = |second: &usize, text: &str| text.contains(&format!("0:0{second}  wait ("));
    let text = terminal.await_that("a later time", |text| (2..10).any(|it| waited(&it, text)));
    let seconds = (0..10).filter(|it| waited(it, text)).count();
    let drawn = text.matches("/3 calls, ").count();
    assert!(drawn < 5 * (seconds + 1), "{drawn} times in {seconds} seconds: {text:?}");
    never.let_go();
    assert_eq!(terminal.end().0.code(), Some(0));
}

#[test]
fn the_terminal_shows_that_a_run_reads_an_input_from_a_pipe() {
    for (option, code) in [("-n", 3), ("--no-sync", 0)] {
        let lab = lab();
        let pipe = lab.path("data/pipe");
        fifo::make(&pipe);
        let mut command = lab.command("ce-run");
        command.args([option, "--only", "mul", "../storage", "../data/pipe", "../data/y"]);
        let mut terminal = Terminal::start(&command, 100, Shown::Errors);
        terminal.await_text("reading inputs");
        std::fs::write(pipe, "7\n").unwrap();
        assert_eq!(terminal.end().0.code(), Some(code));
    }
}

#[test]
fn a_terminal_gets_words_and_colours_and_a_pipe_the_same_words() {
    let lab = Lab::task("Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))[0]").commit().in_words();
    lab.ce_run(&["--no-sync"]).exit(0);
    let at_terminal = |options: &[&str]| {
        let command = lab.evaluation(&[&["--no-sync"], options].concat());
        let (status, text) = Terminal::start(&command, 100, Shown::Output).end();
        assert_eq!(status.code(), Some(0), "{text}");
        text
    };
    let text = at_terminal(&[]);
    assert!(text.contains("\x1b["), "{text:?}");
    let words = lab.ce_run(&["--no-sync"]).exit(0);
    assert!(!words.stdout.contains('\x1b'), "{}", words.stdout);
    let expected: Vec<&str> = words.lines().into_iter().filter(|line| !line.is_empty()).collect();
    assert!(expected.contains(&"add (TASK)  reused"), "{expected:?}");
    assert_eq!(lines(&text, usize::MAX), expected);
    // The text of the first implementation is there where it is asked for.
    let piped = lab.ce_run(&["--no-sync", "--style", "original"]).exit(0);
    assert!(!piped.stdout.contains("reused") && !piped.stdout.contains('\x1b'), "{}", piped.stdout);
    let original = at_terminal(&["--style", "original"]);
    assert_eq!(original.replace("\r\n", "\n"), piped.stdout);
}

#[test]
fn ctrl_c_at_the_terminal_interrupts_a_run() {
    let lab = lab().in_words();
    let (mut terminal, _never) = waiting(&lab, 100, Shown::Both, &["-j2"]);
    terminal.await_text("1/3 calls, ");
    terminal.type_in("\x03");
    terminal.await_text("interrupted: ending the running computations");
    let (status, text) = terminal.end();
    assert_eq!((status.code(), status.signal()), (Some(130), None), "{text}");
    // The tree ends with the computed calls; then there are the counts, the saved results, and the next command.
    let shown = lines(&text, 100);
    let [.., counts, saved, command] = &shown[..] else { panic!("{shown:?}") };
    assert!(!text.contains("outputs are:") && !text.contains("(TASK)"), "{text}");
    assert_eq!(*counts, "ce-run: 3 calls: 1 computed, 1 not started, 1 interrupted");
    assert_eq!(*saved, "ce-run: 1 call was computed, and is saved in ../storage; to go on:");
    assert_eq!(*command, "  ce-run --no-isolate --no-sync -j2 ../storage ../data/x ../data/y");
    assert!(shown.iter().any(|line| line.starts_with("    mul (mul)  computed ")), "{shown:#?}");
    assert!(lab.is_tidy());
    assert!(!lab.results().keys().any(|name| name.starts_with("c_wait/")));
}

#[test]
fn the_progress_of_a_check_fits_a_narrow_terminal() {
    let lab = lab();
    let mut command = lab.evaluation(&["--no-sync"]);
    lab.finish(command.env("LAB_MEET", "/dev/null").env("LAB_WAIT", "/dev/null")).exit(0);
    for (columns, bar) in [(40, "0 B/"), (100, "[                    ] 0 B/")] {
        let mut check = lab.command("ce");
        check.args(["verify", "../storage"]);
        let (status, text) = Terminal::start(&check, columns, Shown::Errors).end();
        assert_eq!(status.code(), Some(0), "{text}");
        let (progress, _) = text.split_once("ce: ").unwrap();
        // A line that wraps is taken away by going up.
        assert!(progress.starts_with(bar) && !progress.contains("\x1b[1A"), "{progress:?}");
    }
}

#[test]
fn the_summary_comes_last() {
    let lab = lab();
    let mut command = lab.evaluation(&["--no-sync"]);
    lab.finish(command.env("LAB_MEET", "/dev/null").env("LAB_WAIT", "/dev/null")).exit(0);
    let mut command = lab.command("ce");
    command.args(["gc", "--no-keep", "--older", "0s", "../storage"]);
    let (_, text) = Terminal::start(&command, 80, Shown::Both).end();
    let (results, sum) = text.split_once("ce: ").unwrap();
    assert!(results.contains("storage/c_add/") && sum.starts_with("would collect"), "{text:?}");
}

/// A run at a terminal whose call waits, and writes down that it was asked to end.
fn asked(starter: &[&str], shown: Shown) -> (Lab, Terminal, Never) {
    let wait = r#"trap 'echo x >"$LAB_ASKED"; exit 1' TERM
        exec 3>"$LAB_MEET"; echo here >&3
        cat "$LAB_WAIT" & wait $!; cat "$1" >"$2""#;
    let text = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] (wait INPUT('x'))[0])[0]";
    let lab = Lab::task(text).computation("wait", "a", "b", wait).with_storage().commit();
    let (meet, never) = (lab.path("meet"), lab.path("never"));
    let (fifo, mut command) = (Fifo::new(&meet), lab.evaluation(&["--no-sync", "-j2"]));
    command.env("LAB_MEET", &meet).env("LAB_WAIT", &never).env("LAB_ASKED", lab.path("asked"));
    let never = Never::new(never);
    let mut terminal = Terminal::start_through(starter, &command, 100, shown);
    assert_eq!(fifo.line(), "here");
    terminal.await_text("1/3 calls, ");
    (lab, terminal, never)
}

#[test]
fn a_terminal_that_is_closed_ends_a_run_as_a_hang_up_does() {
    // The second terminal sends no signal.
    for starter in [&["setsid", "--ctty"][..], &["setsid"]] {
        for shown in [Shown::Both, Shown::Errors] {
            let (lab, terminal, _never) = asked(starter, shown);
            let status = terminal.hang_up().end();
            assert_eq!(status.code(), Some(129), "{starter:?} {shown:?}: {status}");
            assert!(lab.path("asked").exists() && lab.is_tidy(), "{starter:?} {shown:?}");
        }
    }
}

#[test]
fn a_run_that_ignores_hang_ups_goes_on_without_its_terminal() {
    let starter = ["env", "--ignore-signal=HUP", "setsid", "--ctty"];
    let (lab, terminal, never) = asked(&starter, Shown::Errors);
    let run = terminal.hang_up();
    never.let_go();
    assert_eq!(run.end().code(), Some(0));
    assert!(!lab.path("asked").exists() && lab.is_tidy());
}
