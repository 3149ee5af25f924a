//! Calls that fail: nothing of them is published, and everything else goes on.

use std::os::unix::fs::MetadataExt;

use crate::lab::Lab;

/// `add` depends on the bad call, `mul` does not.
const TASK: &str = "Inputs: 'x', 'y'
(add (bad INPUT('x'))[1] (mul INPUT('x') INPUT('y'))[0])[0]";

fn lab(script: &str) -> Lab {
    Lab::task(TASK).computation("bad", "a", "one two", script).commit()
}

/// The bad call fails and is reported as in the golden file; the others are as they should be.
#[track_caller]
fn fails(name: &str, lab: &Lab) {
    let ran = lab.ce_run(&[]).exit(1).complains(&format!("run/failures/{name}.err"));
    let called = lab.called();
    assert!(
        called.contains(&"mul".to_owned()) && !called.contains(&"add".to_owned()),
        "{called:?}"
    );
    let storage = lab.storage();
    let bad: Vec<&String> = storage.iter().filter(|name| name.starts_with("c_bad/")).collect();
    assert!(
        bad.iter().all(|name| name.contains("/failed/") || name.ends_with("/version.json")),
        "{bad:?}"
    );
    assert!(bad.iter().any(|name| name.ends_with(".json")), "the memory of the failure");
    let wrong =
        |name: &&String| ["?", "tmp/", "c_add/", "t_task/"].iter().any(|part| name.contains(part));
    // The owner of a directory may be known before anything is in it.
    let storage = storage.iter().filter(|name| !name.ends_with("/version.json"));
    assert_eq!({ storage }.find(wrong), None);
    ran.lab.ce_run(&["-n"]).exit(3).shows("add (TASK)");
}

#[test]
fn each_failure_is_reported_and_nothing_of_the_call_is_published() {
    for (name, script) in [
        ("signal", r#"echo 1 >"$2"; echo 2 >"$3"; kill -9 $$"#),
        ("no-output", r#"echo 1 >"$2""#),
        ("directory", r#"echo 1 >"$2"; mkdir "$3""#),
        ("link", r#"echo 1 >"$2"; ln -s "$1" "$3""#),
        ("pipe", r#"echo 1 >"$2"; mkfifo "$3""#),
    ] {
        fails(name, &lab(script));
    }
    for (name, exec) in [
        ("interpreter", &b"#!/no/such/interpreter\n"[..]),
        ("no-program", b"\x7fELF no program\0\x01"),
    ] {
        let lab = Lab::task(TASK).computation("bad", "a", "one two", "");
        fails(name, &lab.file("computations/bad/exec", exec).commit());
    }
    let lab = lab(r#"echo 1 >"$2"; echo 2 >"$3"; echo working; echo 'no luck' >&2; exit 3"#);
    fails("status", &lab);
    lab.ce_run(&[]).exit(1).prints("run/failures/status-again.txt");
}

#[test]
fn the_log_is_kept_and_its_end_is_shown_without_control_characters() {
    let script = r#"seq 1 1000; printf 'a\033[31mb\tc\r\n'; exit 1"#;
    let lab = lab(script);
    fails("long-log", &lab);
    let name = lab
        .storage()
        .into_iter()
        .find(|name| name.contains("/failed/") && !name.ends_with(".json"));
    let log = lab.stored(&name.unwrap());
    assert!(log.starts_with("1\n2\n") && log.ends_with("1000\na\x1b[31mb\tc\r\n"), "{log}");
}

#[test]
fn a_failure_is_forgotten_when_the_call_succeeds() {
    let lab = lab(r#"[ "${LAB_FIXED-}" ] || { echo broken; exit 1; }; echo 1 >"$2"; echo 2 >"$3""#);
    lab.ce_run(&[]).exit(1).called(vec!["bad", "mul"]);
    lab.ce_run(&[]).exit(1).called(vec!["bad"]);
    lab.finish(lab.evaluation(&[]).env("LAB_FIXED", "1")).exit(0).called(vec!["add", "bad"]);
    assert_eq!(lab.output(), "87\n");
    assert_eq!(lab.storage().iter().find(|name| name.contains("failed")), None);
}

#[test]
fn an_output_that_is_a_hard_link_becomes_a_file_of_its_own() {
    let lab = lab(r#"cp "$1" kept; ln "$1" "$2"; ln kept "$3""#);
    let input = lab.path("storage/tinputs/ad/48103e4fc7");
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.output(), "102\n");
    let input = input.metadata().unwrap();
    for (name, contents) in lab.results().iter().filter(|(name, _)| name.starts_with("c_bad")) {
        let output = lab.path("storage").join(name).metadata().unwrap();
        assert_eq!((output.nlink(), &contents[..]), (1, &b"17\n"[..]), "{name}");
        assert_ne!(output.ino(), input.ino());
    }
}

#[test]
fn a_call_is_blocked_when_both_of_its_inputs_fail() {
    let text = "Inputs: 'x', 'y'
        (add (bad INPUT('x'))[0] (bad INPUT('y'))[0])[0]";
    let lab = Lab::task(text).computation("bad", "a", "one", "exit 1").commit();
    let ran = lab.ce_run(&["-j1"]).exit(1).called(vec!["bad", "bad"]);
    assert!(ran.stderr.ends_with("3 calls: 2 failed, 1 blocked\n"), "{}", ran.stderr);
}

#[test]
fn a_call_is_named_by_its_labels_and_inputs() {
    let deep = "(add (add (add (add (bad INPUT('y')) INPUT('x'))[0] INPUT('x'))[0] INPUT('y'))[0] INPUT('y'))[0]";
    let lab = Lab::task(&format!("Inputs: 'x', 'y'\n(add {deep} (bad INPUT('x')))[0]"))
        .computation("bad", "a", "none", "exit 7")
        .commit();
    let ran = lab.ce_run(&["-j1"]).exit(1);
    let ran = ran.says("bad (.../add/add/add/bad) failed: ").says("  reads: y: INPUT('y')\n");
    ran.says("bad (bad) failed: ").says("  reads: x: INPUT('x')\n");
    // Inputs with one label have numbers.
    let lab = Lab::task("Inputs: 'x'\n(add (bad INPUT('x')) INPUT('x'))[0]")
        .computation("bad", "a", "none", "exit 7")
        .rename("workflow/inputs/00-bad", "00-x")
        .commit();
    lab.ce_run(&[]).exit(1).says("bad (x[00]) failed: ");
}

/// A call that fails because an input was taken from it has not failed by itself.
#[test]
fn a_call_whose_input_is_removed_meanwhile_is_lost() {
    for end in ["exit 3", "exit 0", "kill -9 $$"] {
        let script = format!(
            r#"again=$(dirname "$1")/../../../again
            if [ -e "$again" ]; then cat "$1" >"$2"; exit; fi
            touch "$again"; rm -f "$1"; {end}"#
        );
        let lab =
            Lab::task("Inputs: 'x'\n(bad INPUT('x'))[0]").computation("bad", "a", "b", &script);
        let lab = lab.commit();
        let ran = lab.ce_run(&[]).exit(5);
        assert!(
            ran.stderr.contains("was removed or changed while it was executed"),
            "{}",
            ran.stderr
        );
        let failed = |name: &String| name.contains("/failed/");
        assert!(!lab.storage().iter().any(failed), "{:?}", lab.storage());
        lab.ce_run(&[]).exit(0);
    }
}
