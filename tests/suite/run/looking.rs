//! No program is started but `exec`, regardless of the programs that Git's configuration and attributes name; and no setting hides
//! what the work tree has.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::lab::{Lab, Library};
use crate::program::Ran;
use crate::repository::{self, LAB};

const TASK: &str = "Inputs: 'x', 'y'\n(mul INPUT('x') INPUT('y'))[0]";

const EXEC: &str = "computations/mul/exec";

/// Settings that name programs; `DECOY` is one.
const PROGRAMS: [[&str; 2]; 22] = [
    ["filter.decoy.clean", "DECOY"],
    ["filter.decoy.smudge", "DECOY"],
    ["filter.decoy.process", "DECOY"],
    ["filter.decoy.required", "true"],
    ["filter.clean.clean", "DECOY %f"],
    ["core.fsmonitor", "DECOY"],
    ["core.sshCommand", "DECOY"],
    ["core.gitProxy", "DECOY"],
    ["core.askPass", "DECOY"],
    ["core.pager", "DECOY"],
    ["core.editor", "DECOY"],
    ["core.alternateRefsCommand", "DECOY"],
    ["credential.helper", "DECOY"],
    ["diff.external", "DECOY"],
    ["diff.decoy.textconv", "DECOY"],
    ["diff.decoy.command", "DECOY"],
    ["merge.decoy.driver", "DECOY"],
    ["gpg.program", "DECOY"],
    ["log.showSignature", "true"],
    ["remote.origin.url", "ssh://nowhere.invalid/task"],
    ["remote.origin.promisor", "true"],
    ["alias.rev-parse", "!DECOY"],
];

/// Makes Git's configuration, hooks and attributes name a program that tells of itself.
fn arm(lab: &Lab) {
    let decoy = lab.path("data/decoy");
    let started = lab.path("started");
    fs::write(&decoy, format!("#!/bin/sh\necho \"$0 $*\" >>'{}'\nexec cat\n", started.display()))
        .unwrap();
    fs::set_permissions(&decoy, fs::Permissions::from_mode(0o755)).unwrap();
    let hooks = lab.path("data/hooks");
    fs::create_dir(&hooks).unwrap();
    for hook in ["post-index-change", "fsmonitor-watchman", "reference-transaction", "pre-auto-gc"]
    {
        fs::copy(&decoy, hooks.join(hook)).unwrap();
    }
    for dir in ["task", "task/computations"] {
        if !lab.path(dir).join(".git").exists() {
            continue;
        }
        for [key, value] in PROGRAMS {
            let value = value.replace("DECOY", decoy.to_str().unwrap());
            lab.git(dir, &["config", key, &value]);
        }
        lab.git(dir, &["config", "core.hooksPath", hooks.to_str().unwrap()]);
        lab.git(dir, &["config", "core.repositoryFormatVersion", "1"]);
        lab.git(dir, &["config", "extensions.partialClone", "origin"]);
        let git_dir = lab.git(dir, &["rev-parse", "--absolute-git-dir"]);
        let info = Path::new(&git_dir).join("info");
        fs::create_dir_all(&info).unwrap();
        let attributes = "* filter=decoy diff=decoy merge=decoy\n*exec filter=clean\n";
        fs::write(info.join("attributes"), attributes).unwrap();
    }
    drop(fs::remove_file(started));
}

/// Fails if a program was started, and prints it.
#[track_caller]
fn nothing_was_started(lab: &Lab, by: &str) {
    let started = fs::read_to_string(lab.path("started")).unwrap_or_default();
    assert_eq!(started, "", "{by}");
}

#[test]
fn a_dry_run_starts_no_program() {
    for library in [Library::Plain, Library::Submodule] {
        let lab = Lab::task(TASK).commit_with(library);
        let lab = lab.file("workflow/inputs/01-y/value", "x\n");
        repository::commit(&lab.path("task"), LAB, "more\n");
        lab.ce_run(&[]).exit(0);
        arm(&lab);
        let ways: [fn(&Lab); 4] = [
            |_| {},
            // Whether they are changed has to be found out.
            |lab| {
                for name in [EXEC, "computations/mul/inputs", "workflow/kind", "inputs"] {
                    let path = lab.path("task").join(name);
                    fs::write(&path, fs::read(&path).unwrap()).unwrap();
                }
            },
            |lab| {
                for name in [EXEC, "workflow/inputs/01-y/value"] {
                    let path = lab.path("task").join(name);
                    fs::write(&path, fs::read_to_string(&path).unwrap() + "\n").unwrap();
                }
            },
            // An object is not there.
            |lab| {
                let tree = lab.git("task", &["rev-parse", "HEAD:workflow"]);
                let (room, file) = tree.split_at(2);
                fs::remove_file(lab.path("task/.git/objects").join(room).join(file)).unwrap();
            },
        ];
        for (way, change) in ways.iter().enumerate() {
            change(&lab);
            let files = ["../storage", "../data/x", "../data/y"];
            let looks: &[(&str, &[&str])] = &[
                ("ce", &["check"]),
                ("ce", &["check", "--at=HEAD"]),
                ("ce", &["check", "--at=HEAD~1"]),
                ("ce", &["check", "--at=:/more"]),
                ("ce-sym", &[]),
                ("ce-viz", &[]),
                ("ce-viz", &files),
                ("ce-run", &["-n", files[0], files[1], files[2]]),
                ("ce-run", &["-n", "--dirty", files[0], files[1], files[2]]),
                ("ce", &["explain", files[0], files[1], files[2]]),
                ("ce", &["diff", "-n", "HEAD~1", files[0], files[1], files[2]]),
                ("ce", &["log", files[0]]),
                ("ce", &["verify", files[0]]),
                ("ce", &["gc", "-n", "--keep=.", files[0]]),
            ];
            for (program, arguments) in looks {
                lab.run(program, arguments);
                nothing_was_started(&lab, &format!("{way} {program} {arguments:?}"));
            }
            for options in [&[][..], &["--dirty"], &["--at=HEAD"]] {
                lab.ce_run(options);
                nothing_was_started(&lab, &format!("{way} ce-run {options:?}"));
            }
        }
        // Git itself starts it.
        lab.git("task", &["-c", "filter.clean.required=false", "diff", "--", EXEC]);
        assert!(lab.path("started").exists());
    }
}

/// A laboratory with a file that Git filters: the recorded file says `old`, and the checked out one `new`.
fn filtered(lab: Lab, file: &str) -> Lab {
    let lab = lab.file(".gitattributes", format!("{file} filter=word\n"));
    lab.git("task", &["init", "-q"]);
    lab.git("task", &["config", "filter.word.clean", "sed s/new/old/"]);
    lab.git("task", &["config", "filter.word.smudge", "sed s/old/new/"]);
    lab.git("task", &["add", "."]);
    lab.git("task", &["commit", "-qm", "task"]);
    fs::remove_file(lab.path("task").join(file)).unwrap();
    lab.git("task", &["checkout", "-q", "."]);
    settle(&lab);
    assert!(fs::read_to_string(lab.path("task").join(file)).unwrap().contains("new"));
    assert_eq!(lab.git("task", &["status", "--porcelain"]), "");
    lab
}

/// Lets Git write an index that is younger than all files.
fn settle(lab: &Lab) {
    let files = walkdir::WalkDir::new(lab.path("task")).into_iter().map(Result::unwrap);
    let before = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1 << 30);
    for file in
        files.filter(|it| it.file_type().is_file() && !it.path().starts_with(lab.path("task/.git")))
    {
        File::options()
            .write(true)
            .open(file.path())
            .or_else(|_| File::open(file.path()))
            .unwrap()
            .set_modified(before)
            .unwrap();
    }
    lab.git("task", &["status"]);
}

/// A task whose only computation tells what word is in its own `exec`.
fn word() -> Lab {
    let lab = Lab::task("Inputs: 'x'\n(word INPUT('x'))[0]");
    lab.computation("word", "a", "b", r#"echo old >"$2"; cat "$1" >>"$2""#)
}

#[test]
fn code_that_a_filter_changes_is_executed_as_it_is_committed() {
    let lab = filtered(word(), "computations/word/exec");
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.output(), "old\n17\n");
    fs::remove_dir_all(lab.path("storage")).unwrap();
    lab.ce_run(&["--at=HEAD"]).exit(0);
    assert_eq!(lab.output(), "old\n17\n");
}

#[test]
fn a_file_that_only_a_filter_could_compare_counts_as_uncommitted() {
    let lab = filtered(word(), "computations/word/exec");
    let exec = lab.path("task/computations/word/exec");
    fs::write(&exec, fs::read(&exec).unwrap()).unwrap();
    let refused = |lab: &Lab| {
        for options in [&[][..], &["-n"]] {
            lab.ce_run(options)
                .exit(2)
                .says("computations/word: may have uncommitted changes: only the filter \"word\" could tell")
                .says("not started: exec")
                .says("try: run git status");
        }
    };
    refused(&lab);
    // The file in the work tree differs from the recorded one.
    lab.ce_run(&["--dirty"]).exit(0);
    let output = lab.results().into_iter().find(|(name, _)| name.starts_with("c_word/dirty-"));
    assert_eq!(output.unwrap().1, b"new\n17\n");
    settle(&lab);
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.output(), "old\n17\n");
    fs::write(&exec, fs::read_to_string(&exec).unwrap() + "# more\n").unwrap();
    refused(&lab);
}

#[test]
fn a_computation_is_read_as_it_is_committed() {
    let lab = word().file("computations/word/outputs", "old\n");
    let lab = filtered(lab, "computations/word/outputs");
    lab.ce_run(&[]).exit(0).says("job output 00").says("1 computed");
    for options in [&["--at=HEAD"][..], &["--dirty"]] {
        lab.ce_run(options).exit(0).says("job output 00").says("1 reused");
    }
}

#[test]
fn a_workflow_is_read_as_it_is_committed() {
    let lab = Lab::task("Inputs: 'old', 'new'\n(add INPUT('old') INPUT('new'))[0]");
    let lab = filtered(lab, "workflow/inputs/00-old/value");
    lab.ce_run(&[]).exit(0).says("job output 00").says("1 computed");
    lab.ce_run(&["--at=HEAD"]).exit(0).says("job output 00").says("1 reused");
    // Only the filter could tell whether this is the same.
    fs::write(lab.path("task/workflow/inputs/00-old/value"), "new \n").unwrap();
    lab.ce_run(&[]).exit(2).says("may have uncommitted changes").says("00-old/value");
}

/// Changes the code, in a file of the same size and time. Only the time of the last change of anything
/// tells, which Git keeps in seconds.
fn change_unseen(exec: &Path) {
    let (before, text) = (exec.metadata().unwrap(), fs::read_to_string(exec).unwrap());
    let file = File::options().write(true).open(exec).unwrap();
    while exec.metadata().unwrap().ctime() == before.ctime() {
        fs::write(exec, text.replace('*', "-")).unwrap();
        file.set_modified(before.modified().unwrap()).unwrap();
    }
    assert_eq!(exec.metadata().unwrap().size(), before.size());
}

/// Nothing of the changed code is executed, and nothing is found under its name.
#[track_caller]
fn is_refused(lab: &Lab, ran: Ran<'_>) {
    ran.exit(2).says("computations/mul: has uncommitted changes: exec");
    assert_eq!(lab.called(), [""; 0]);
}

#[test]
fn no_setting_hides_a_change() {
    let settings: [&[[&str; 2]]; 6] = [
        &[["core.checkStat", "minimal"], ["core.trustctime", "false"]],
        &[["core.worktree", "LAB/other"]],
        &[["core.bare", "true"]],
        &[["core.ignoreStat", "true"]],
        &[["core.fsmonitor", "true"], ["core.untrackedCache", "true"]],
        &[["index.skipHash", "true"], ["core.splitIndex", "true"]],
    ];
    for settings in settings {
        let lab = Lab::task(TASK).commit();
        fs::create_dir(lab.path("other")).unwrap();
        for name in lab.git("task", &["ls-files"]).lines() {
            let copy = lab.path("other").join(name);
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::copy(lab.path("task").join(name), copy).unwrap();
        }
        lab.git("task", &["status"]);
        settle(&lab);
        for [key, value] in settings {
            let value = value.replace("LAB", lab.path("").to_str().unwrap());
            lab.git("task", &["config", key, &value]);
        }
        let ran = lab.ce_run(&[]).exit(0).called(vec!["mul"]);
        assert!(!ran.stderr.contains("not stored"), "{settings:?}: {}", ran.stderr);
        // Of another work tree nothing counts.
        change_unseen(&lab.path("other").join(EXEC));
        fs::remove_dir_all(lab.path("storage")).unwrap();
        lab.ce_run(&[]).exit(0).called(vec!["mul"]);
        assert_eq!(lab.output(), "85\n", "{settings:?}");
        change_unseen(&lab.path("task").join(EXEC));
        is_refused(&lab, lab.ce_run(&[]));
        lab.ce_run(&["--dirty"]).exit(0).called(vec!["mul"]);
    }
}

#[test]
fn the_environment_names_no_other_repository() {
    let other = Lab::task(TASK).file("README", "another one\n").commit();
    let dir = other.path("task");
    let variables = [
        ("GIT_DIR", dir.join(".git")),
        ("GIT_WORK_TREE", dir.clone()),
        ("GIT_INDEX_FILE", dir.join(".git/index")),
        ("GIT_INDEX_FILE", ".git/index".into()),
        ("GIT_COMMON_DIR", dir.join(".git")),
        ("GIT_OBJECT_DIRECTORY", dir.join(".git/objects")),
        ("GIT_ALTERNATE_OBJECT_DIRECTORIES", dir.join(".git/objects")),
        ("GIT_SHALLOW_FILE", dir.join(".git/HEAD")),
        ("GIT_GRAFT_FILE", dir.join(".git/HEAD")),
        ("GIT_CEILING_DIRECTORIES", "/".into()),
        ("GIT_NAMESPACE", "other".into()),
        ("GIT_PREFIX", "computations/".into()),
        ("GIT_QUARANTINE_PATH", dir.join(".git/objects")),
        ("GIT_REPLACE_REF_BASE", "refs/heads/".into()),
    ];
    let labs = [Library::Plain, Library::Submodule, Library::Submodules]
        .map(|library| Lab::task(TASK).commit_with(library));
    for (lab, (name, value)) in
        labs.iter().flat_map(|lab| variables.iter().map(move |it| (lab, it)))
    {
        for options in [&[][..], &["--at=HEAD"], &["--at=:/task"]] {
            drop(fs::remove_dir_all(lab.path("storage")));
            let ran = lab.finish(lab.evaluation(options).env(name, value)).exit(0);
            assert!(!ran.stderr.contains("not stored"), "{name}: {}", ran.stderr);
            ran.called(vec!["mul"]);
            let commit = repository::head(&lab.path("task"));
            assert!(
                lab.storage().iter().any(|it| it.starts_with(&format!("t_task/{}", &commit[..12]))),
                "{name} {options:?}"
            );
        }
        let exec = lab.path("task").join(EXEC);
        let text = fs::read_to_string(&exec).unwrap();
        fs::write(&exec, text.replace('*', "-")).unwrap();
        is_refused(lab, lab.finish(lab.evaluation(&[]).env(name, value)));
        fs::write(&exec, text).unwrap();
    }
}
