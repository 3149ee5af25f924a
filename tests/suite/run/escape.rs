//! Processes that leave the group of their `exec` and go on after it has ended.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use crate::fifo::{Fifo, Never};
use crate::lab::Lab;
use crate::program::{self, Ran, Running};

/// Leaves behind a process that has the output and the log open, and writes to both when told to.
const LEAVE: &str = r#"
    exec 3>"$LAB_MEET"
    mkfifo left
    echo before >"$2"
    echo printed
    setsid sh -c '
        exec 4>>"$1"; echo >left
        read -r go <"$LAB_GO"
        echo after >&4; echo after; echo written >&3
        cat "$LAB_WAIT"' sh "$2" &
    read -r escaped <left"#;

/// Reports that it runs, and waits until it may go on.
const NEXT: &str = r#"
    exec 3>"$LAB_MEET"
    echo mine
    echo next >&3
    read -r on <"$LAB_ON"
    cat "$1" >"$2""#;

/// Runs a task in which a process writes to the files of `leave` while `next` is executed; when all
/// is over, so is that process.
fn written_to_meanwhile<'a>(lab: &'a Lab, options: &[&str]) -> Ran<'a> {
    let [meet, go, on, wait] = ["meet", "go", "on", "wait"].map(|name| lab.path(name));
    let (fifo, mut command) = (Fifo::new(&meet), lab.evaluation(options));
    let nevers = [&go, &on, &wait].map(|path| Never::new(path.clone()));
    set_fifos(lab, &mut command);
    let running = Running::start(&mut command);
    assert_eq!(fifo.line(), "next");
    fs::write(&go, "go\n").unwrap();
    assert_eq!(fifo.line(), "written");
    fs::write(&on, "on\n").unwrap();
    let ran = Ran::new(lab, running.output());
    fifo.end();
    drop(nevers);
    ran
}

fn set_fifos(lab: &Lab, command: &mut Command) {
    for (name, path) in
        [("LAB_MEET", "meet"), ("LAB_GO", "go"), ("LAB_ON", "on"), ("LAB_WAIT", "wait")]
    {
        command.env(name, lab.path(path));
    }
}

/// Returns the contents of the file of a computation that is in this room.
#[track_caller]
fn in_room(lab: &Lab, computation: &str, room: &str) -> String {
    let names = lab.storage();
    let mut names = names.into_iter().filter(|name| {
        name.starts_with(&format!("c_{computation}/"))
            && name.contains(&format!("/{room}/"))
            && !name.ends_with(".json")
    });
    let name = names.next().unwrap_or_else(|| panic!("no {room} of {computation}"));
    assert_eq!(names.next(), None);
    lab.stored(&name)
}

#[test]
fn an_escaped_process_cannot_change_published_outputs() {
    let lab = Lab::task("Inputs: 'x'\n(next (leave INPUT('x'))[0])[0]")
        .computation("leave", "a", "a", LEAVE)
        .computation("next", "a", "a", NEXT)
        .commit();
    written_to_meanwhile(&lab, &[]).exit(0);
    assert_eq!(in_room(&lab, "leave", "00"), "before\n");
    assert_eq!(in_room(&lab, "leave", "log"), "printed\n");
    assert_eq!(in_room(&lab, "next", "log"), "mine\n");
    assert_eq!(lab.output(), "before\n");
    assert!(lab.is_tidy());
    lab.run("ce", &["verify", "../storage"]).exit(0);
}

#[test]
fn an_escaped_process_cannot_change_the_log_of_a_failure() {
    let lab = Lab::task("Inputs: 'x'\n(add (leave INPUT('x'))[0] (next INPUT('x'))[0])[0]")
        .computation("leave", "a", "a", &format!("{LEAVE}\nexit 1"))
        .computation("next", "a", "a", NEXT)
        .commit();
    // One after the other.
    written_to_meanwhile(&lab, &["-j1"]).exit(1);
    assert_eq!(in_room(&lab, "leave", "failed"), "printed\n");
    assert_eq!(in_room(&lab, "next", "log"), "mine\n");
    assert_eq!(in_room(&lab, "next", "00"), "17\n");
    assert!(lab.is_tidy());
}

#[test]
fn a_group_member_of_an_escaped_parent_does_not_block_the_run() {
    let script = r#"
        mkfifo left
        sh -c 'cat "$LAB_WAIT" & exec setsid sh -c "echo >left; exec cat \"\$LAB_WAIT\""' &
        read -r escaped <left
        cat "$1" >"$2""#;
    let lab = Lab::task("Inputs: 'x'\n(leave INPUT('x'))[0]")
        .computation("leave", "a", "a", script)
        .commit();
    let _never = Never::new(lab.path("wait"));
    let mut command = lab.evaluation(&[]);
    set_fifos(&lab, &mut command);
    lab.finish(&mut command).exit(0);
    assert_eq!(lab.output(), "17\n");
}

#[test]
fn an_escaped_process_that_ended_is_reaped_by_the_next_call() {
    let leave = r#"
        mkfifo left
        setsid sh -c 'echo $$ >left; read -r go <"$LAB_GO"' &
        cat left >"$2""#;
    let end = r#"
        echo go >"$LAB_GO"
        until grep -q ') Z' "/proc/$(cat "$1")/stat"; do :; done
        cat "$1" >"$2""#;
    let look = r#"[ -e "/proc/$(cat "$1")" ] || echo reaped >"$2""#;
    let lab = Lab::task("Inputs: 'x'\n(look (end (leave INPUT('x'))[0])[0])[0]")
        .computation("leave", "a", "a", leave)
        .computation("end", "a", "a", end)
        .computation("look", "a", "a", look)
        .commit();
    let _never = Never::new(lab.path("go"));
    let mut command = lab.evaluation(&[]);
    set_fifos(&lab, &mut command);
    lab.finish(&mut command).exit(0);
    assert_eq!(lab.output(), "reaped\n");
}

/// Its output says which inode it was written to.
fn inode() -> Lab {
    Lab::task("Inputs: 'x'\n(inode INPUT('x'))[0]")
        .computation("inode", "a", "a", r#"{ stat -c %i "$2"; } >"$2""#)
        .commit()
}

/// Whether the published file is the written one, rather than a copy.
#[track_caller]
fn is_what_was_written(lab: &Lab) -> bool {
    let path = lab.ce_run(&["-n", "-q"]).exit(0).lines()[0].to_owned();
    let published = lab.path("task").join(path).metadata().unwrap().ino();
    lab.output() == format!("{published}\n")
}

#[test]
fn an_output_without_other_writers_is_published_without_a_copy() {
    let lab = inode();
    lab.ce_run(&[]).exit(0);
    assert!(is_what_was_written(&lab));
}

#[test]
fn children_from_before_the_run_stay_and_force_copies_of_outputs() {
    let lab = inode();
    let (meet, wait) = (lab.path("meet"), lab.path("wait"));
    let (fifo, never) = (Fifo::new(&meet), Never::new(wait));
    // It is given this child by the shell whose place it takes.
    let child = r#"{ exec 3>"$LAB_MEET"; cat "$LAB_WAIT"; echo alive >&3; } >/dev/null 2>&1 &"#;
    let script = format!(r#"{child} exec "$@""#);
    let mut command = program::through(&["sh", "-c", &script, "sh"], &lab.evaluation(&[]));
    set_fifos(&lab, &mut command);
    lab.finish(&mut command).exit(0);
    drop(never);
    assert_eq!(fifo.line(), "alive");
    assert!(!is_what_was_written(&lab));
}
