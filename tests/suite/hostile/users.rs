//! A storage that two users share through a group.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;

use crate::lab::Lab;

const TASK: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('y'))[0]";

/// A group that both are members of: it is nobody else's.
const GROUP: u32 = 4242;

/// A laboratory whose storage belongs to a group, and another user who is in it.
fn shared(mode: u32) -> Option<(Lab, u32)> {
    let lab = Lab::task(TASK).commit();
    let user = rustix::process::getuid().is_root().then(|| lab.another_user()).flatten()?;
    let storage = lab.path("storage");
    fs::create_dir_all(storage.join("tinputs")).unwrap();
    for dir in [storage.join("tinputs"), storage.clone()] {
        std::os::unix::fs::chown(&dir, None, Some(GROUP)).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(lab.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    Some((lab, user))
}

/// Runs `ce-run` as another user who is in the group.
fn as_other<'a>(lab: &'a Lab, user: u32, options: &[&str]) -> crate::program::Ran<'a> {
    let mut command = lab.evaluation(options);
    command.env_remove("LAB_LOG").env("XDG_CACHE_HOME", "/nonexistent").uid(user).gid(GROUP);
    lab.finish(&mut command)
}

#[test]
fn what_one_makes_the_other_one_can_use_and_add_to() {
    let Some((lab, user)) = shared(0o2775) else { return };
    lab.ce_run(&[]).exit(0).called(vec!["add", "mul"]);
    as_other(&lab, user, &[]).exit(0).says("2 calls: 2 found");
    let lab = lab.data("x", "3\n");
    as_other(&lab, user, &[]).exit(0).says("2 calls: 2 executed");
    lab.ce_run(&[]).exit(0).called(vec![]).says("2 calls: 2 found");
    for entry in walkdir::WalkDir::new(lab.path("storage")) {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        assert_eq!(metadata.gid(), GROUP, "{}", entry.path().display());
        let needed = if metadata.is_dir() { 0o2070 } else { 0o040 };
        assert_eq!(metadata.mode() & needed, needed, "{}", entry.path().display());
    }
    assert!(lab.is_tidy());
}

#[test]
fn what_is_there_is_served_where_nothing_can_be_written() {
    let Some((lab, user)) = shared(0o755) else { return };
    lab.ce_run(&[]).exit(0).called(vec!["add", "mul"]);
    as_other(&lab, user, &[]).exit(0).says("2 calls: 2 found");
    as_other(&lab, user, &["-q"]).exit(0);
    let lab = lab.data("x", "3\n");
    let ran = as_other(&lab, user, &[]).exit(5);
    assert!(ran.stderr.contains("storage/"), "it says which file: {}", ran.stderr);
}
