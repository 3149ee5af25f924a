//! Directories of users to whom modes mean something: read-only ones cannot be changed or moved as they are.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::{made_by, values};
use crate::hostile::users::{GROUP, is_shared};
use crate::isolation;
use crate::lab::Lab;
use crate::needs;
use crate::program::{Ran, through};

const SCRIPT: &str = r#"mkdir -p "$2/d/e" "$2/shut"; cp "$1" "$2/d/f"; echo 2 >"$2/shut/g"; ln "$2/d/f" "$2/h"
    chmod 0 "$2/shut/g" "$2/shut""#;

/// A laboratory that anybody may write, with a directory as its input, and a user.
fn lab(script: &str) -> Option<(Lab, u32)> {
    let lab = made_by(script).commit();
    let user = lab.plain_user()?;
    for dir in ["", "data"] {
        fs::set_permissions(lab.path(dir), fs::Permissions::from_mode(0o777)).unwrap();
    }
    Some((lab, user))
}

/// Runs a command as a user whose files nobody else may use, unless the storage is shared.
fn run_as<'a>(lab: &'a Lab, user: u32, command: &Command) -> Ran<'a> {
    let mut command = through(&["sh", "-c", "umask 077; exec \"$@\"", "sh"], command);
    command.env_remove("LAB_LOG").env("XDG_CACHE_HOME", "/nonexistent");
    command.env("XDG_STATE_HOME", lab.path("state"));
    if rustix::process::getuid().is_root() {
        command.uid(user).gid(GROUP);
    }
    lab.finish(&mut command)
}

fn evaluate<'a>(lab: &'a Lab, user: u32, options: &[&str]) -> Ran<'a> {
    run_as(lab, user, &lab.evaluation(options))
}

fn ce<'a>(lab: &'a Lab, user: u32, arguments: &[&str]) -> Ran<'a> {
    run_as(lab, user, lab.command("ce").args(arguments))
}

/// Damages the directory in its place, as its owner can.
fn damage(lab: &Lab) {
    let dir = lab.path("storage").join(&values(lab, "c_make/")[0]);
    let file = dir.join("d/f");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&file, "damaged\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
}

fn has_entries(dir: &Path) -> bool {
    dir.read_dir().is_ok_and(|mut entries| entries.next().is_some())
}

#[test]
fn the_owner_publishes_repairs_and_collects_read_only_directories() {
    for isolated in [false, isolation::is_possible()] {
        let Some((lab, user)) = lab(SCRIPT) else { return };
        let lab = if isolated { lab.isolated() } else { lab };
        evaluate(&lab, user, &[]).exit(0).says("1 computed");
        evaluate(&lab, user, &[]).exit(0).says("1 reused");
        evaluate(&lab, user, &["-q"]).exit(0);
        ce(&lab, user, &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
        // Replaced by a run, and by a repair.
        damage(&lab);
        evaluate(&lab, user, &[]).exit(0).says("1 computed");
        damage(&lab);
        ce(&lab, user, &["verify", "--repair", "../storage"]).exit(5);
        ce(&lab, user, &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
        evaluate(&lab, user, &[]).exit(0).says("1 computed");
        let name = values(&lab, "c_make/").remove(0);
        evaluate(&lab, user, &["--force", &format!("../storage/{name}")])
            .exit(0)
            .says("1 computed");
        ce(&lab, user, &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
        let all = ["gc", "--delete", "--older=0s", "--no-keep", "../storage"];
        ce(&lab, user, &all).exit(0).says("collected 3 results");
        assert_eq!(values(&lab, ""), [""; 0]);
        assert!(!has_entries(&lab.path("storage/tmp")));
        evaluate(&lab, user, &[]).exit(0).says("1 computed");
    }
}

/// Outputs that cannot be published are removed, regardless of their modes.
#[test]
fn outputs_of_refused_and_killed_calls_are_removed() {
    let refused = r#"mkdir -p "$2/d/e"; echo 1 >"$2/d/e/f"; ln -s / "$2/out"; chmod 0 "$2/d/e" "$2/d"; chmod 500 "$2""#;
    let failed = r#"mkdir -p "$2/d/e"; echo 1 >"$2/d/e/f"; chmod 500 "$2/d/e" "$2/d" "$2"; exit 1"#;
    for script in [refused, failed] {
        for isolated in [false, isolation::is_possible()] {
            let Some((lab, user)) = lab(script) else { return };
            let lab = if isolated { lab.isolated() } else { lab };
            evaluate(&lab, user, &[]).exit(1).says("1 failed");
            assert!(!has_entries(&lab.path("storage/tmp")));
            assert_eq!(values(&lab, "c_make"), [""; 0]);
        }
    }
    let killed =
        r#"mkdir -p "$2/d/e"; echo 1 >"$2/d/e/f"; chmod 0 "$2/d/e" "$2/d" "$2"; kill -9 $PPID"#;
    let Some((lab, user)) = lab(killed) else { return };
    assert_eq!(evaluate(&lab, user, &[]).status.code(), None);
    assert!(has_entries(&lab.path("storage/tmp")));
    assert_eq!(evaluate(&lab, user, &[]).status.code(), None);
    assert_eq!(fs::read_dir(lab.path("storage/tmp")).unwrap().count(), 1, "only the last one's");
}

#[test]
fn a_directory_that_the_user_may_not_read_is_reported_with_its_input() {
    let Some((lab, user)) = lab(SCRIPT) else { return };
    let data = lab.path("data/x");
    fs::remove_file(&data).unwrap();
    fs::create_dir_all(data.join("d")).unwrap();
    fs::write(data.join("d/f"), "").unwrap();
    for shut in ["d/f", "d", ""] {
        fs::set_permissions(data.join(shut), fs::Permissions::from_mode(0o000)).unwrap();
        let ran = evaluate(&lab, user, &[]);
        let place = format!("data/x/{shut}");
        let ran = ran.exit(2).says(place.trim_end_matches('/')).says("Permission denied");
        let ran = ran.says(" the input x").says("\n  try: ");
        assert!(!ran.stderr.contains("storage/tmp"), "{}", ran.stderr);
        assert!(!has_entries(&lab.path("storage/tmp")));
    }
    // If there is a job, the input is read for it first.
    for open in ["", "d", "d/f"] {
        fs::set_permissions(data.join(open), fs::Permissions::from_mode(0o755)).unwrap();
    }
    evaluate(&lab, user, &[]).exit(0);
    evaluate(&lab, user, &["-q"]).exit(0);
    fs::set_permissions(data.join("d"), fs::Permissions::from_mode(0o000)).unwrap();
    evaluate(&lab, user, &["-q"]).exit(2).says("the input x cannot be used");
}

/// A sandbox shows an input that nobody can change, and an outbox that is its own.
#[test]
fn the_owner_takes_over_and_reads_directories() {
    if !isolation::is_possible() {
        return;
    }
    let lab = Lab::task("Inputs: 'x'\n(read (make INPUT('x'))[0])[0]")
        .computation("make", "a", "tree/", SCRIPT)
        .computation("read", "tree", "all", r#"cat "$1/d/f" "$1/shut/g" "$1/h" >"$2""#)
        .isolated()
        .commit();
    let Some(user) = lab.plain_user() else { return };
    fs::set_permissions(lab.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    evaluate(&lab, user, &[]).exit(0).says("2 computed");
    assert_eq!(lab.output(), "17\n2\n17\n");
    let lab = lab.file("README", "").commit_again();
    evaluate(&lab, user, &[]).exit(0).says("2 taken over");
    damage(&lab);
    evaluate(&lab, user, &[]).exit(0).says("1 reused, 1 computed");
    // The first commit's result is damaged still.
    ce(&lab, user, &["verify", "--repair", "../storage"]).exit(5);
    ce(&lab, user, &["gc", "--delete", "--older=0s", "--no-keep", "../storage"]).exit(0);
    assert_eq!(values(&lab, ""), [""; 0]);
}

/// Directories made by one member of the group can be used, repaired and collected by another one.
#[test]
fn a_group_shares_directories() {
    let Some((lab, user)) = lab(SCRIPT) else { return };
    if !rustix::process::getuid().is_root() {
        needs::lacks(needs::ROOT);
        return;
    }
    let other = user - 1;
    let storage = lab.path("storage");
    fs::create_dir_all(storage.join("tinputs")).unwrap();
    for dir in [storage.join("tinputs"), storage.clone()] {
        std::os::unix::fs::chown(&dir, None, Some(GROUP)).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o2775)).unwrap();
    }
    evaluate(&lab, user, &[]).exit(0).says("1 computed");
    is_shared(&lab);
    evaluate(&lab, other, &[]).exit(0).says("1 reused");
    is_shared(&lab);
    ce(&lab, other, &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
    damage(&lab);
    evaluate(&lab, other, &[]).exit(0).says("1 computed");
    is_shared(&lab);
    damage(&lab);
    ce(&lab, user, &["verify", "--repair", "../storage"]).exit(5);
    evaluate(&lab, user, &[]).exit(0).says("1 computed");
    let all = ["gc", "--delete", "--older=0s", "--no-keep", "../storage"];
    ce(&lab, other, &all).exit(0).says("collected 3 results");
    assert_eq!(values(&lab, ""), [""; 0]);
}
