//! The printed output, for programs to read, and for others who read it or stop reading.

use std::fs::File;
use std::io::pipe;
use std::process::Stdio;

use serde_json::Value;

use crate::golden;
use crate::lab::Lab;

const TASK: &str = "Inputs: 'x', 'y'
(add (divmod INPUT('x') INPUT('y'))[1, 0])[0]";

fn lab() -> Lab {
    Lab::task(TASK).commit()
}

fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Events without what differs from one execution to the next.
fn timeless(text: &str) -> String {
    let line = |line: &str| match line.split_once(",\"seconds\":") {
        Some((line, rest)) => {
            assert!(rest.contains("\"host\":"), "{rest}");
            format!("{line}}}\n")
        }
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[test]
fn json_has_a_line_for_each_event() {
    let lab = lab().with_storage();
    // A dependent may start before it is known that the outputs it reads are on the disk.
    let ran = lab.ce_run(&["--json", "-j1", "--no-sync"]).exit(0);
    golden::check("run/output/json.txt", &timeless(&ran.stdout));
    assert_eq!(ran.stderr, "");
    let events = events(&ran.stdout);
    let kinds: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["run", "started", "ended", "started", "ended", "end"]);
    for event in &events {
        let files = ["inputs", "literals", "outputs"].map(|key| event[key].as_array().cloned());
        for file in files.into_iter().flatten().flatten() {
            let there = lab.path("storage").join(file["file"].as_str().unwrap()).is_file();
            assert!(there && file["there"].is_boolean(), "{file}");
        }
    }
    lab.ce_run(&["--json", "-j1"]).exit(0).prints("run/output/json-again.txt");
}

#[test]
fn json_lists_missing_calls() {
    lab().ce_run(&["--json", "-n", "-j1"]).exit(3).prints("run/output/json-missing.txt");
}

#[test]
fn each_form_of_output_tells_of_what_failed() {
    let text = "Inputs: 'x'\n(add (bad INPUT('x'))[0] FILE('tinputs/00/0000000000'))[0]";
    let lab = Lab::task(text).computation("bad", "a", "none", "echo no; exit 7").commit();
    lab.ce_run(&["--json", "-j1"]).exit(1).prints("run/output/json-failed.txt");
    // So does what is quiet; and the tree shows how far it came.
    let quiet = lab.ce_run(&["-q"]).exit(1).says("bad (bad) failed: it ended with exit status 7");
    assert_eq!(quiet.stdout, "");
    let text = "Inputs: 'x', 'y'
        (add (bad INPUT('x'))[0] (mul INPUT('x') INPUT('y'))[0])[0]";
    let lab = Lab::task(text).computation("bad", "a", "none", "exit 7").commit();
    lab.ce_run(&[]).exit(1).prints("run/output/failed.txt");
}

#[test]
fn json_is_the_same_in_any_order_of_execution_but_for_the_order() {
    let sorted = |jobs: &str| {
        let lab = lab();
        let text = timeless(&lab.ce_run(&["--json", jobs]).exit(0).stdout);
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted("-j1"), sorted("-j4"));
}

#[test]
fn quiet_runs_print_only_the_paths_of_outputs() {
    let lab = lab().with_storage();
    let ran = lab.ce_run(&["-n", "-q"]).exit(3);
    assert_eq!((ran.stdout, ran.stderr), (String::new(), String::new()));
    let ran = lab.ce_run(&["-q"]).exit(0).prints("run/output/quiet.txt");
    assert_eq!(ran.stderr, "");
    assert_eq!(lab.stored(ran.lines()[0]), "5\n");
}

#[test]
fn a_closed_standard_output_does_not_stop_the_evaluation() {
    for options in [&[][..], &["--json"], &["-q"]] {
        let lab = lab();
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let mut command = lab.evaluation(options);
        let ran =
            lab.finish(command.stdout(Stdio::from(writer))).exit(0).called(vec!["add", "divmod"]);
        assert!(!ran.stderr.contains("pipe"), "{}", ran.stderr);
        assert_eq!(lab.output(), "5\n");
    }
}

#[test]
fn output_that_cannot_be_written_is_reported_after_the_evaluation() {
    for (program, options) in
        [("ce-run", vec![]), ("ce-run", vec!["--json"]), ("ce-run", vec!["-q"]), ("ce-sym", vec![])]
    {
        let lab = lab();
        let mut command =
            if program == "ce-run" { lab.evaluation(&options) } else { lab.command(program) };
        let full = File::options().write(true).open("/dev/full").unwrap();
        lab.finish(command.stdout(full)).exit(5).says("cannot write the standard output");
        if program == "ce-run" {
            assert_eq!(lab.output(), "5\n");
        }
    }
    for help in [&["--help"][..], &["--version"], &["help", "run"], &["run", "-h"]] {
        let lab = lab();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = lab.command("ce");
        let ran = lab.finish(command.args(help).stdout(full));
        ran.exit(5).says("cannot write the standard output");
    }
}
