//! The programs beside `ce-run`, and `ce`, which holds them all.

use std::fs::File;
use std::io::pipe;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::lab::Lab;
use crate::terminal;

const TASK: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('x'))[0]";

#[test]
fn subcommands_of_ce_equal_the_short_programs() {
    let lab = Lab::task(TASK).commit();
    let arguments = ["../storage", "../data/x", "../data/y"];
    let with = |program: &str, first: &[&str]| {
        lab.run(program, &[first, &arguments].concat()).exit(0).stdout
    };
    with("ce", &["run", "--no-isolate"]);
    assert_eq!(lab.called(), ["mul", "add"]);
    assert_eq!(with("ce", &["run", "-n"]), with("ce-run", &["-n"]));
    assert_eq!(lab.run("ce", &["sym"]).exit(0).stdout, lab.run("ce-sym", &[]).exit(0).stdout);
}

#[test]
fn check_counts_calls_and_inputs() {
    Lab::task(TASK).commit().run("ce", &["check"]).exit(0).prints("programs/check.txt");
}

#[test]
fn every_program_prints_its_version() {
    let (lab, version) = (Lab::empty(), env!("CARGO_PKG_VERSION"));
    for program in ["ce", "ce-run", "ce-sym"] {
        assert_eq!(
            lab.run(program, &["--version"]).exit(0).stdout,
            format!("{program} {version}\n")
        );
    }
}

#[test]
fn there_are_completions_for_every_shell_and_manual_pages() {
    let lab = Lab::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        for program in ["ce", "ce-run", "ce-sym"] {
            lab.run("ce", &["completions", shell, program]).exit(0).shows(program);
        }
    }
    lab.run("ce", &["man", "../data"]).exit(0);
    let pages: Vec<_> = crate::lab::files(&lab.path("data")).into_keys().collect();
    assert!(pages.contains(&"ce-run.1".to_owned()), "{pages:?}");
    for page in pages {
        let text = std::fs::read_to_string(lab.path("data").join(&page)).unwrap();
        assert_eq!(text.matches("\n.SH \"SEE ALSO\"\n").count(), 1, "{page}");
        assert_eq!(text.matches("\n.SH EXAMPLES\n").count(), usize::from(page != "ce.1"), "{page}");
    }
    lab.run("ce", &["gc", "--help"]).exit(0).shows("Examples:").shows("ce gc ../results\n");
    lab.run("ce", &["man", "../nowhere"]).exit(5).says("cannot write ../nowhere");
}

#[test]
fn all_forms_of_help_agree() {
    let lab = Lab::empty();
    let help = |arguments: &[&str]| lab.run("ce", arguments).exit(0).stdout;
    let short = help(&["--help"]);
    assert_eq!((help(&["-h"]), help(&["help"])), (short.clone(), short.clone()));
    let commands = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with("  ") && !line.starts_with("  -"));
        lines.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
    };
    let all = help(&["help", "--all"]);
    let (few, all) = (commands(&short), commands(&all));
    assert!(few.len() <= 22 && few.iter().all(|it| all.contains(it)), "{short}");
    assert!(few[..10].contains(&"run".to_owned()) && !few.contains(&"man".to_owned()), "{short}");
    assert!(short.contains("ce help --all lists all commands."), "{short}");
    for command in &all {
        assert_eq!(help(&["help", command]), help(&[command, "--help"]));
    }
    lab.run("ce", &["help", "rum"]).exit(2).says("a similar value exists: 'run'");
}

/// Commands that print in every way.
const PRINTING: [&[&str]; 22] = [
    &["--help"],
    &["help", "run"],
    &["--version"],
    &["completions", "bash"],
    &["nonsense"],
    &["run", "-n", "../storage", "../data/x", "../data/y"],
    &["run", "--json", "-n", "../storage", "../data/x", "../data/y"],
    &["run", "--no-isolate", "--no-sync", "../storage", "../data/y", "../data/x"],
    &["sym"],
    &["check"],
    &["viz"],
    &["log", "../storage"],
    &["show", "../storage"],
    &["status", "../storage"],
    &["explain", "../storage", "../data/x", "../data/y"],
    &["verify", "../storage"],
    &["gc", "-n", "../storage"],
    &["commits", "."],
    &["diff", "HEAD", "HEAD", "../storage", "../data/x", "../data/y"],
    &["table", "../storage"],
    &["table", "--csv", "--each", "x=1,2", "-p", "y=1", "../storage"],
    &["show", "--manifest", "../data"],
];

/// A full standard output is an error, and a closed one changes nothing.
#[test]
fn no_command_panics_where_nothing_can_be_written() {
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let full = || File::options().write(true).open("/dev/full").unwrap().into();
    let closed = || pipe().unwrap().1.into();
    let outputs: [(&str, &dyn Fn() -> OwnedFd); 3] =
        [("/dev/full", &full), ("a pipe", &closed), ("a terminal", &terminal::gone)];
    for arguments in PRINTING {
        let whole = lab.run("ce", arguments);
        let (prints, code) = (!whole.stdout.is_empty(), whole.status.code());
        for (what, open) in outputs {
            for (out, err) in [(true, true), (true, false), (false, true)] {
                let mut ce = lab.command("ce");
                let stream = |is_broken| if is_broken { open().into() } else { Stdio::null() };
                ce.args(arguments).stdout(stream(out)).stderr(stream(err));
                let status = ce.status().unwrap();
                // Whoever has handlers of signals ends by itself.
                let is_hung_up = status.signal() == Some(1) || status.code() == Some(129);
                let is_right = match what {
                    "a terminal" if out && prints => is_hung_up,
                    "a terminal" => is_hung_up || status.code() == code,
                    "/dev/full" if out && prints => status.code() == Some(5),
                    _ => status.code() == code,
                };
                assert!(is_right, "{arguments:?} at {what}, {out} {err}: {status}");
                assert!(lab.is_tidy(), "{arguments:?} at {what}");
            }
        }
    }
}
