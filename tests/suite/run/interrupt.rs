//! Runs that are cut short, and the runs after them.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};

use compeval::digest::Digest;
use rustix::process::{Signal, kill_process_group};

use crate::fifo::{Fifo, Never};
use crate::lab::Lab;
use crate::program::{Ran, Running};

/// A task with a call that says that it runs and then waits for ever, unless nobody wants it to.
fn lab(before: &str) -> Lab {
    let script = r#"BEFORE
        if [ "${LAB_WAIT-}" ]; then
            exec 3>"$LAB_MEET"
            echo here >&3
            # A shell obeys its traps at once only where it waits, not while it runs something.
            cat "$LAB_WAIT" &
            wait $!
        fi
        cat "$1" >"$2""#;
    let text = "Inputs: 'x', 'y'\n(add (wait INPUT('x'))[0] (mul INPUT('x') INPUT('y'))[0])[0]";
    Lab::task(text).computation("wait", "a", "a", &script.replace("BEFORE", before)).commit()
}

/// Starts an evaluation; returns when the call waits, with what tells that its processes are gone
/// and what it waits for.
fn waiting(lab: &Lab, options: &[&str]) -> (Running, Fifo, Never) {
    let (meet, never) = (lab.path("meet"), lab.path("never"));
    let (fifo, mut command) = (Fifo::new(&meet), lab.evaluation(options));
    command.env("LAB_MEET", meet).env("LAB_WAIT", &never).process_group(0);
    let never = Never::new(never);
    let running = Running::start(&mut command);
    assert_eq!(fifo.line(), "here");
    (running, fifo, never)
}

/// Nothing of the call that waited is in the storage, and the next run completes.
#[track_caller]
fn completes(lab: &Lab) {
    let results = lab.results();
    assert!(
        results.keys().all(|name| {
            !["c_wait/", "c_add/", "t_task/"].iter().any(|part| name.contains(part))
        })
    );
    let ran = lab.ce_run(&[]).exit(0);
    assert_eq!(lab.called().iter().filter(|name| *name == "add").count(), 1, "{}", ran.stderr);
    assert_eq!(lab.output(), "102\n");
    assert!(lab.is_tidy());
}

#[test]
fn a_signal_ends_what_is_running_and_the_next_run_goes_on() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let lab = lab("");
        let (running, processes, _never) = waiting(&lab, &[]);
        running.signal(signal);
        let ran = Ran::new(&lab, running.output())
            .exit(code)
            .says("interrupted: ending the running computations");
        processes.end();
        assert!(ran.stdout.contains("`* interrupted\n"), "{}", ran.stdout);
        assert!(lab.is_tidy());
        completes(&lab);
    }
}

#[test]
fn only_calls_that_had_begun_are_interrupted_in_words_and_in_json() {
    for options in [&["-j1"][..], &["-j1", "--json"]] {
        let lab = lab("");
        let (running, processes, _never) = waiting(&lab, options);
        running.signal(Signal::INT);
        let ran = Ran::new(&lab, running.output()).exit(130);
        processes.end();
        if options.contains(&"--json") {
            let end: serde_json::Value = serde_json::from_str(ran.lines().last().unwrap()).unwrap();
            assert_eq!((&end["exit"], &end["job"]), (&130.into(), &serde_json::Value::Null));
            ran.shows("\"outcome\":\"interrupted\"");
        } else {
            let counts = "3 calls: 2 not started, 1 interrupted\n";
            let rest = "ce-run: no call was computed; to go on:\n  ce-run ";
            ran.says(&format!("{counts}{rest}")).shows("`* not started: the run was interrupted\n");
            completes(&lab);
        }
    }
}

#[test]
fn an_execution_that_ignores_signals_is_killed() {
    let lab = lab("trap '' INT TERM HUP");
    let (running, processes, _never) = waiting(&lab, &[]);
    // Two different signals: two that are the same may arrive as one.
    running.signal(Signal::INT);
    running.signal(Signal::TERM);
    let output = running.output();
    assert!(matches!(output.status.code(), Some(130 | 143)), "{output:?}");
    processes.end();
    completes(&lab);
}

#[test]
fn the_result_of_a_call_that_ends_well_after_a_signal_is_kept() {
    let lab = lab(r#"trap 'cat "$1" >"$2"; exit 0' TERM"#);
    let (running, processes, _never) = waiting(&lab, &[]);
    running.signal(Signal::INT);
    let ran = Ran::new(&lab, running.output()).exit(130);
    processes.end();
    let kept = lab.results().into_iter().find(|(name, _)| name.starts_with("c_wait/"));
    let (told, kept) = (format!("{}{}", ran.stdout, ran.stderr), kept.map(|(_, text)| text));
    assert_eq!(kept.as_deref(), Some(&b"17\n"[..]), "{told}");
    lab.called();
    lab.ce_run(&[]).exit(0);
    assert!(!lab.called().contains(&"wait".to_owned()));
}

#[test]
fn leftovers_of_a_killed_run_are_removed_by_the_next() {
    let lab = lab("");
    let (running, processes, never) = waiting(&lab, &["-j1"]);
    kill_process_group(running.pid, Signal::KILL).unwrap();
    assert_eq!(running.output().status.signal(), Some(9));
    assert!(!lab.is_tidy(), "nothing could be cleared away");
    lab.unchanged(|| lab.ce_run(&["-n"]).exit(3));
    completes(&lab);
    drop(never);
    processes.end();
}

/// Puts back the files that a run would have left if it had been killed after the record of `divmod` was there, and before
/// all outputs were in their places.
fn killed_while_publishing(moved: &[&str]) -> Lab {
    let text = "Inputs: 'x', 'y'\n(add (divmod INPUT('x') INPUT('y'))[0, 1])[0]";
    let lab = Lab::task(text).commit();
    lab.ce_run(&[]).exit(0).called(vec!["add", "divmod"]);
    let (storage, names) = (lab.path("storage"), lab.storage());
    let divmod = |room: &str| {
        let name = names.iter().find(|name| name.starts_with("c_divmod/") && name.contains(room));
        storage.join(name.unwrap())
    };
    let text = fs::read_to_string(divmod("/record/")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    let stage = record["origin"]["executed"]["stage"].as_str().unwrap();
    let waiting = |end: &str| storage.join(format!("{stage}.{end}"));
    fs::create_dir_all(waiting("record").with_file_name("work")).unwrap();
    fs::hard_link(divmod("/record/"), waiting("record")).unwrap();
    for number in ["00", "01"] {
        let place = divmod(&format!("/{number}/"));
        if !moved.contains(&number) {
            fs::rename(place, waiting(number)).unwrap();
        }
    }
    lab
}

#[test]
fn a_run_that_is_killed_while_it_publishes_is_rolled_forward_by_the_next() {
    for moved in [&[][..], &["00"], &["01"], &["00", "01"]] {
        let lab = killed_while_publishing(moved);
        lab.unchanged(|| lab.ce_run(&["-n"]).exit(if moved.len() == 2 { 0 } else { 3 }));
        lab.ce_run(&[]).exit(0).called(vec![]);
        assert_eq!(lab.output(), "5\n");
        assert!(lab.is_tidy());
    }
}

#[test]
fn a_run_that_is_killed_before_it_publishes_has_done_nothing() {
    for recorded in [true, false] {
        let lab = killed_while_publishing(&[]);
        let name = lab
            .storage()
            .into_iter()
            .find(|name| name.starts_with("c_divmod/") && name.contains("/record/"));
        fs::remove_file(lab.path("storage").join(name.unwrap())).unwrap();
        if !recorded {
            let name = lab.storage().into_iter().find(|name| name.ends_with(".record"));
            fs::remove_file(lab.path("storage").join(name.unwrap())).unwrap();
        }
        lab.ce_run(&[]).exit(0).called(vec!["divmod"]);
        assert_eq!(lab.output(), "5\n");
        assert!(lab.is_tidy());
    }
}

#[test]
fn temporary_files_of_another_host_stay() {
    let lab = lab("");
    let theirs = lab.path("storage/tmp/elsewhere-0123abcd-1-1/0");
    fs::create_dir_all(&theirs).unwrap();
    lab.ce_run(&[]).exit(0);
    assert!(theirs.is_dir());
}

#[test]
fn runs_at_the_same_time_execute_each_call_once_and_never_mix_their_outputs() {
    let text = "Inputs: 'x'\n(both (random INPUT('x'))[0, 1])[0, 1]";
    let random = r#"od -An -N16 -tx1 /dev/urandom >"$2"; cp "$2" "$3""#;
    let lab = Lab::task(text)
        .computation("random", "a", "one two", random)
        .computation("both", "a b", "one two", r#"cp "$1" "$3"; cp "$2" "$4""#)
        .commit();
    for round in 0..5 {
        fs::write(lab.path("data/x"), format!("{round}\n")).unwrap();
        let start = |_| Running::start(&mut lab.evaluation(&["-q"]));
        let runs: Vec<_> = (0..4).map(start).collect();
        let runs = runs.into_iter().map(|run| Ran::new(&lab, run.output()));
        let runs: Vec<String> = runs.map(|run| run.exit(0).stdout).collect();
        assert!(runs.iter().all(|paths| *paths == runs[0]), "{runs:?}");
        lab.ce_run(&[]).exit(0).called(vec!["both", "random"]);
    }
    let mut results = lab.results();
    results.retain(|name, _| name.starts_with("c_both/"));
    assert_eq!(results.len(), 10, "two outputs in each round");
    for (name, contents) in &results {
        let digits = Digest::hash_bytes(contents).sha1.short();
        assert!(name.ends_with(&format!("/{digits}_{digits}")), "{name} is of something else");
    }
}
