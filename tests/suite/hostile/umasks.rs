//! The user's umask: it decides about files of the user and processes, and never about files of a shared storage.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::users::{GROUP, USERS, is_shared, shared_by, state};
use crate::lab::Lab;
use crate::needs::needs;
use crate::program::{Running, through};

const TASK: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('y'))[0]";

const UMASKS: [u32; 3] = [0o022, 0o077, 0o002];

/// A command that has this umask.
fn with_umask(umask: u32, command: &Command) -> Command {
    through(&["sh", "-c", &format!("umask {umask:03o}; exec \"$@\""), "sh"], command)
}

/// Files below a directory that have a right which the umask takes away.
fn unmasked(dir: &Path, umask: u32, rights: u32) -> Vec<String> {
    let entries = walkdir::WalkDir::new(dir).into_iter().map(Result::unwrap);
    let entries = entries.filter(|entry| !entry.path_is_symlink());
    let modes = entries.map(|entry| (entry.metadata().unwrap().permissions().mode(), entry));
    let wrong = modes.filter(|(mode, _)| mode & umask & rights != 0);
    wrong.map(|(mode, entry)| format!("{:04o} {}", mode & 0o7777, entry.path().display())).collect()
}

#[test]
fn files_of_the_user_have_the_modes_that_the_umask_leaves() {
    for umask in UMASKS {
        let lab = Lab::task(TASK).commit();
        let made = lab.path("made");
        for dir in ["made", "made/man"] {
            fs::create_dir(lab.path(dir)).unwrap();
            fs::set_permissions(lab.path(dir), fs::Permissions::from_mode(0o700)).unwrap();
        }
        let finish = |command: &mut Command| lab.finish(&mut with_umask(umask, command)).exit(0);
        let ce = |arguments: &[&str]| finish(lab.command("ce").args(arguments));
        finish(lab.command("ce-run").args(["../made/storage", "../data/x", "../data/y"]));
        ce(&["init", "../made/new/task"]);
        ce(&["viz", "-o", "../made/drawing.svg"]);
        ce(&["report", "-o", "../made/page/", "../made/storage"]);
        let mut names = crate::lab::files(&made.join("storage")).into_keys();
        let sum = names.find(|name| name.starts_with("c_add/") && name.contains("/00/")).unwrap();
        ce(&["export", "../made/storage", &sum, "../made/copies"]);
        for name in ["crate", "crate.zip"] {
            let words = ["export", "--crate", "--license", "MIT", "--author", "Ann"];
            ce(&[&words[..], &["../made/storage", &sum, &format!("../made/{name}")]].concat());
        }
        ce(&["man", "../made/man"]);
        lab.git("", &["init", "--quiet", "--bare", "results.git"]);
        ce(&["push", "../made/storage", "../results.git"]);
        ce(&["pull", "../made/storage", "../results.git"]);
        // Published files are read-only for all who may enter.
        assert_eq!(unmasked(&made, umask, 0o222), Vec::<String>::new(), "{umask:03o}");
        for place in ["new", "drawing.svg", "page", "copies", "crate", "crate.zip", "man"] {
            assert_eq!(unmasked(&made.join(place), umask, 0o777), Vec::<String>::new(), "{place}");
        }
        let cache = lab.path("cache");
        assert_eq!(unmasked(&cache, umask, 0o777), Vec::<String>::new());
        assert_eq!(cache.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}

#[test]
fn processes_get_the_umask_of_the_user() {
    let script = "umask >\"$2\"";
    for isolated in [false, true] {
        for umask in UMASKS {
            let lab = Lab::task("Inputs: 'x'\n(ask INPUT('x'))[0]");
            let lab = lab.computation("ask", "x", "told", script);
            let lab = if isolated { lab.isolated() } else { lab };
            let lab = lab.commit();
            lab.finish(&mut with_umask(umask, &lab.evaluation(&[]))).exit(0);
            let told: u32 = u32::from_str_radix(lab.output().trim(), 8).unwrap();
            assert_eq!(told, umask, "isolated: {isolated}");
        }
    }
}

#[test]
fn files_in_a_shared_storage_belong_to_the_group_at_once() {
    let script = r#"mkdir -p "$2/a/b"; cp "$1" "$2/a/b/c"; cp "$1" "$3""#;
    let each = "Inputs: 'x'\n(each INPUT('x'))[1]";
    for umask in UMASKS {
        let lab = Lab::task(each).computation("each", "x", "d/ out", script);
        let Some((lab, _)) = shared_by(lab, 0o2775) else { return };
        fs::remove_dir(lab.path("storage/tinputs")).unwrap();
        let start = |user: u32| {
            let mut command = with_umask(umask, &lab.evaluation(&["--no-sync"]));
            command.env_remove("LAB_LOG").env("XDG_CACHE_HOME", "/nonexistent");
            command.env("XDG_STATE_HOME", state(&lab, user));
            Running::start(command.uid(user).gid(GROUP))
        };
        for running in USERS.map(start) {
            let output = running.output();
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{umask:03o}: {text}");
        }
        is_shared(&lab);
    }
}

#[test]
fn a_directory_of_a_shared_storage_is_made_with_its_mode() {
    needs(&["strace"]);
    let Some((lab, _)) = shared_by(Lab::task(TASK), 0o2775) else { return };
    let trace = lab.path("trace");
    let calls = "trace=mkdir,mkdirat,chmod,fchmod,fchmodat";
    let starter = ["strace", "-f", "-q", "-e", calls, "-o", trace.to_str().unwrap()];
    let mut command = through(&starter, &with_umask(0o077, &lab.evaluation(&["--no-sync"])));
    command.uid(USERS[0]).gid(GROUP).env_remove("LAB_LOG").env("XDG_CACHE_HOME", "/nonexistent");
    command.env("XDG_STATE_HOME", state(&lab, USERS[0]));
    lab.finish(&mut command).exit(0);
    let trace = fs::read_to_string(trace).unwrap();
    let made: Vec<&str> = trace.lines().filter(|line| line.contains("mkdirat(")).collect();
    // Directories that a call may write or run from are its user's alone.
    let is_own = |line: &str| {
        let names = ["own", "work", "out", "0", "1", "mul", "add"];
        names.iter().any(|it| line.contains(&format!("\"{it}\", 0700")))
    };
    let is_right = |line: &&str| line.contains("0775") || is_own(line);
    assert!(!made.is_empty() && made.iter().all(is_right), "{trace}");
    assert!(!trace.contains("02775"), "its mode is never changed: {trace}");
}
