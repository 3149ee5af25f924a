//! Outputs that are no directories, or have entries that no value has.

use super::{each_way, made_by, values};
use crate::lab::Lab;
use crate::needs::needs;

/// The call fails with this message, nothing is published, and the next run executes it again.
#[track_caller]
fn is_refused(script: &str, message: &str) {
    each_way(
        || made_by(script).commit(),
        |lab: Lab| {
            for turn in 0..2 {
                let ran = lab.ce_run(&[]).exit(1).says(message).says("1 failed");
                // The second time, the first failure is reported as well.
                assert_eq!(ran.stderr.matches(message).count(), 1 + turn, "{}", ran.stderr);
                assert_eq!(values(&lab, "c_"), [""; 0]);
                assert!(lab.is_tidy());
            }
            lab.called();
        },
    );
}

#[test]
fn an_output_of_another_kind_fails_the_call() {
    let file = "its output 00 (tree/) is not a directory";
    is_refused(r#"rmdir "$2"; echo 1 >"$2""#, file);
    is_refused(r#"rmdir "$2"; ln -s /etc "$2""#, file);
    is_refused(r#"rmdir "$2"; mkfifo "$2""#, file);
    is_refused(r#"rmdir "$2""#, "it made no output 00 (tree/)");
    // A directory where a file was promised.
    let lab = || {
        Lab::task("Inputs: 'x'\n(make INPUT('x'))[0]")
            .computation("make", "a", "file", r#"mkdir "$2""#)
            .commit()
    };
    each_way(lab, |lab| {
        lab.ce_run(&[]).exit(1).says("its output 00 (file) is not a file");
        assert!(lab.is_tidy());
    });
}

#[test]
fn entries_that_no_value_has_fail_the_call_and_are_named() {
    for target in ["/etc/passwd", "..", "../../x", "a/../../x", "/"] {
        let script = format!(r#"mkdir "$2/d"; ln -s {target} "$2/l""#);
        is_refused(&script, &format!("l is a symbolic link to {target}, "));
    }
    for (script, message) in [
        (r#"mkdir -p "$2/a/.git""#, "a/.git belongs to a Git repository"),
        (r#"echo >"$2/.git""#, ".git belongs to a Git repository"),
        (r#"mkdir "$2/d"; mkfifo "$2/d/p""#, "d/p is a FIFO, which cannot be part of a value"),
        (
            r#"mkfifo "$2/a" "$2/b"; ln -s / "$2/c""#,
            "3 entries cannot be part of a value:\n    a is a FIFO",
        ),
    ] {
        is_refused(script, message);
    }
    needs(&["python3"]);
    let socket = r#"python3 -c 'import os,socket,sys; os.chdir(sys.argv[1]); socket.socket(socket.AF_UNIX).bind("s")' "$2""#;
    is_refused(socket, "s is a socket, which cannot be part of a value");
}

/// A process that goes on may still change what is copied. Then the call fails, not the storage.
#[test]
fn an_output_that_keeps_changing_fails_the_call() {
    let script = r#"setsid sh -c 'while [ -e "$DECOY" ]; do echo late >>"$1/f"; mkfifo "$1/p"; rm "$1/p"; done' sh "$2" >/dev/null 2>&1 &
        until [ -e "$2/p" ]; do :; done"#;
    let lab = made_by(script).data("decoy", "").commit();
    let mut command = lab.evaluation(&[]);
    let ran = lab.finish(command.env("DECOY", lab.path("data/decoy")));
    std::fs::remove_file(lab.path("data/decoy")).unwrap();
    if ran.status.code() != Some(0) {
        ran.exit(1).says("its output 00 (tree/) cannot be a value: ");
    }
}
