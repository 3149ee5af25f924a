//! Letters that change the direction of others, or cannot be seen: no terminal gets them, and a pipe gets data as they are.

use std::fs;

use crate::fifo::{Fifo, Never};
use crate::lab::Lab;
use crate::terminal::{Shown, Terminal};

/// Right-to-left override, and others of its kind.
const LETTERS: [char; 5] = ['\u{202e}', '\u{2066}', '\u{200f}', '\u{61c}', '\u{200b}'];

/// In the place of one, a terminal shows this.
const SHOWN: char = '\u{fffd}';

/// A name in which all of them are.
fn name() -> String {
    format!("a{}b", LETTERS.iter().collect::<String>())
}

/// A call with such a name prints such a line, and one that a program for terminals would print. It fails if the input is 13.
fn lab() -> Lab {
    let line: String = name();
    let script = format!(
        r#"printf 'seen {line}\n\033[31mred\033[0m \033[2J\033]0;title\007 10%%\r20%%\n'
        [ "$(cat "$1")" != 13 ] || exit 3
        cat "$1" >"$2""#
    );
    let lab =
        Lab::task(&format!("Inputs: 'x', '{line}'\n(add (say INPUT('x'))[0] INPUT('{line}'))[0]"))
            .computation("say", &line, &line, &script)
            .rename("workflow/inputs/00-say", &format!("00-{line}"))
            .with_storage();
    lab.data("x", "17\n").data(&name(), "5\n").commit()
}

/// Returns the text that a program shows at a terminal.
#[track_caller]
fn at_terminal(lab: &Lab, program: &str, arguments: &[&str], code: i32) -> String {
    let mut command = lab.command(program);
    command.args(arguments);
    let (status, text) = Terminal::start(&command, 200, Shown::Both).end();
    assert_eq!(status.code(), Some(code), "{arguments:?}: {text}");
    text
}

/// Shows something in the place of each letter, and none of them.
#[track_caller]
fn is_escaped(text: &str) {
    assert!(!text.contains(LETTERS), "{text:?}");
    assert!(text.contains(SHOWN), "{text:?}");
}

/// The name of the output of the call that prints.
fn output(lab: &Lab) -> String {
    let mut names = lab.storage().into_iter();
    names.find(|it| it.starts_with("c_say/") && it.contains("/00/")).unwrap()
}

#[test]
fn a_terminal_shows_no_misleading_characters() {
    let lab = lab();
    let file = format!("../data/{}", name());
    let given = ["../storage", "../data/x", &file];
    let run = |program: &str, options: &[&str], code: i32| {
        is_escaped(&at_terminal(&lab, program, &[options, &given].concat(), code));
    };
    run("ce-run", &["-n"], 3);
    run("ce-run", &["--no-sync"], 0);
    run("ce-run", &["--json"], 0);
    run("ce-viz", &[], 0);
    let call = output(&lab);
    for arguments in [
        &["sym"][..],
        &["show", "../storage", &call],
        &["show", "--log", "../storage", &call],
        &["show", "-f", "../storage", &call],
    ] {
        is_escaped(&at_terminal(&lab, "ce", arguments, 0));
    }
    // Arguments and names of files are names, too.
    is_escaped(&at_terminal(&lab, "ce", &["show", "../storage", &name()], 2));
    is_escaped(&at_terminal(&lab, "ce", &["log", &format!("--{}", name())], 2));
    is_escaped(&at_terminal(&lab, "ce", &["log", &format!("../{}", name())], 5));
    let lab = lab.data("x", "13\n");
    let text = at_terminal(&lab, "ce-run", &["../storage", "../data/x", &file], 1);
    is_escaped(&text);
    assert!(text.contains("| seen a"), "{text:?}");
}

#[test]
fn a_pipe_gets_data_as_they_are_and_a_terminal_lines_and_colours() {
    let lab = lab();
    lab.ce_run(&[]).exit(0);
    let call = output(&lab);
    let log = lab.storage().into_iter().find(|it| it.starts_with("c_say/") && it.contains("/log/"));
    let log = fs::read_to_string(lab.path("storage").join(log.unwrap())).unwrap();
    assert!(log.contains(&name()), "{log:?}");
    assert_eq!(lab.run("ce", &["show", "--log", "../storage", &call]).exit(0).stdout, log);
    let text = at_terminal(&lab, "ce", &["show", "--log", "../storage", &call], 0);
    let expected = format!(
        "seen {}\r\n\u{1b}[31mred\u{1b}[0m \u{fffd}[2J\u{fffd}]0;title\u{fffd} 10%\r\n20%\r\n",
        name().replace(LETTERS, "\u{fffd}")
    );
    assert_eq!(text, expected);
    lab.run("ce", &["sym"]).exit(0).shows(&name());
    lab.ce_run(&["--json"]).exit(0).shows(&name());
    // Messages are for people, wherever they go.
    is_escaped(&lab.run("ce", &["show", "../storage", &name()]).exit(2).stderr);
}

#[test]
fn the_points_of_jobs_are_data_too() {
    let lab = Lab::task("Inputs: 'x'\n(keep INPUT('x'))[0]")
        .computation("keep", "x", "y", r#"cat "$1" >"$2""#)
        .with_storage()
        .commit();
    let each = format!("x={}", name());
    let arguments = ["-q", "--each", &each, "../storage"];
    for _ in 0..2 {
        let ran = lab.run("ce-run", &arguments).exit(0);
        assert!(ran.stdout.starts_with(&format!("{each}\t")), "{}", ran.stdout);
    }
    is_escaped(&at_terminal(&lab, "ce-run", &arguments, 0));
}

#[test]
fn the_progress_shows_no_misleading_characters() {
    let wait = r#"exec 3>"$LAB_MEET"; echo here >&3; cat "$LAB_WAIT"; cat "$1" >"$2""#;
    let lab = Lab::task("Inputs: 'x'\n(add (wait INPUT('x'))[0] INPUT('x'))[0]")
        .computation("wait", "a", "b", wait)
        .rename("workflow/inputs/00-wait", &format!("00-{}", name()))
        .with_storage()
        .commit();
    let (meet, never) = (lab.path("meet"), lab.path("never"));
    let (fifo, mut command) = (Fifo::new(&meet), lab.evaluation(&["--no-sync"]));
    command.env("LAB_MEET", &meet).env("LAB_WAIT", &never);
    let never = Never::new(never);
    let mut terminal = Terminal::start(&command, 100, Shown::Errors);
    assert_eq!(fifo.line(), "here");
    // A call is shown once it has run for a while.
    terminal.await_text("  wait (a");
    never.let_go();
    let (status, text) = terminal.end();
    assert_eq!(status.code(), Some(0), "{text}");
    is_escaped(&text);
}
