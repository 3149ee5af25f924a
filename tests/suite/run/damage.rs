//! Objects of Git that are not what their ids say, or are gone: nothing of them is executed or believed, and no call is blamed.

use std::fs;
use std::path::PathBuf;

use crate::lab::{Lab, Library};

const TASK: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('x'))[0]";

/// The file of a loose object.
fn loose(lab: &Lab, dir: &str, id: &str) -> PathBuf {
    let (room, file) = id.split_at(2);
    let git_dir = lab.git(dir, &["rev-parse", "--absolute-git-dir"]);
    PathBuf::from(git_dir).join("objects").join(room).join(file)
}

/// Writes a loose object over with another one, in a repository of the task; returns its id.
fn write_over(lab: &Lab, dir: &str, old: &str, new: &str) -> String {
    let [old, new] = [old, new].map(|name| lab.git(dir, &["rev-parse", name]));
    let file = loose(lab, dir, &old);
    fs::remove_file(&file).unwrap();
    fs::copy(loose(lab, dir, &new), file).unwrap();
    old
}

#[test]
fn an_object_under_the_id_of_another_one_is_not_executed() {
    let ways: [&[&str]; 4] = [&[], &["--isolate"], &["--at=HEAD"], &["--at=HEAD", "--isolate"]];
    // The blob of an executable file, of another one, and the tree of a directory.
    let objects =
        [("mul/exec", "add/exec"), ("mul/outputs", "add/outputs"), ("mul/deep", "add/deep")];
    for library in [Library::Plain, Library::Submodule] {
        for (old, new) in objects {
            let lab = Lab::task(TASK).file("computations/mul/deep/one", "1\n");
            let lab = lab.file("computations/add/deep/one", "2\n").commit_with(library);
            let (dir, top) = match library {
                Library::Plain => ("task", "HEAD:computations/"),
                _ => ("task/computations", "HEAD:"),
            };
            let [old, new] = [old, new].map(|name| format!("{top}{name}"));
            let id = write_over(&lab, dir, &old, &new);
            for options in ways {
                let ran = lab.ce_run(options);
                assert_ne!(ran.status.code(), Some(0), "{old} {options:?}");
                // The checked out directory is not the tree of the other object.
                if !old.ends_with("deep") || options.contains(&"--at=HEAD") {
                    ran.says(&format!("the object {id} in ")).says(" is damaged").says("git fsck");
                }
                assert_eq!(lab.called(), [""; 0], "{old} {options:?}");
                assert!(!lab.results().keys().any(|name| name.starts_with("c_")));
            }
        }
    }
}

#[test]
fn an_object_under_the_id_of_another_one_is_not_loaded() {
    let objects = [
        ("workflow/inputs/01-x/value", "workflow/inputs/00-mul/inputs/01-y/value"),
        ("workflow/inputs/00-mul/inputs", "workflow/inputs/01-x"),
        ("inputs", "workflow/kind"),
        ("computations/add/outputs", "computations/mul/outputs"),
        ("", "computations"),
    ];
    for (old, new) in objects {
        let lab = Lab::task(TASK).commit().with_storage();
        let id = write_over(&lab, "task", &format!("HEAD:{old}"), &format!("HEAD:{new}"));
        for (program, arguments) in [
            ("ce-sym", &["--at=HEAD"][..]),
            ("ce", &["check", "--at=HEAD"]),
            ("ce-viz", &["--at=HEAD"]),
        ] {
            lab.run(program, arguments)
                .exit(2)
                .says(&format!("the object {id} in "))
                .says(" is damaged");
        }
        // It needs the files that say what a run would use: the workflow's.
        let needed = !old.starts_with("computations/");
        lab.run("ce", &["gc", "--keep=.", "../storage"]).exit(if needed { 2 } else { 0 });
    }
}

#[test]
fn a_commit_under_the_id_of_another_one_is_not_loaded() {
    let lab = Lab::task(TASK).commit();
    let lab = lab.file("workflow/inputs/01-x/value", "y\n").commit_again();
    let id = write_over(&lab, "task", "HEAD", "HEAD~1");
    for arguments in [&["check", "--at=HEAD"][..], &["check"]] {
        lab.run("ce", arguments).exit(2).says(&format!("the object {id} in "));
    }
}

/// What an execution does to the repository of the task, whose path is `$1`.
const LOSSES: [(&str, &str); 3] = [
    (
        r#"cd "$1" && echo '# new' >>computations/mul/exec && git commit -qam new --amend &&
           git reflog expire --expire=now --all && git gc -q --prune=now"#,
        " is missing: ",
    ),
    (r#"mv "$1" "$1.gone""#, " is not in a Git repository"),
    (r#"rm -r "$1""#, " is not in a Git repository"),
];

#[test]
fn a_call_whose_commit_is_gone_is_lost_and_has_not_failed() {
    for (loss, why) in LOSSES {
        let texts = [
            // A computation, and a directory of the repository at a commit that is known late.
            "Inputs: 'x'\n(mul (lose INPUT('x'))[0] INPUT('x'))[0]",
            "Inputs: 'x'\n(mul TREE('.:computations/mul' (lose INPUT('x'))[0])[0] INPUT('x'))[0]",
        ];
        for (at, text) in texts.into_iter().enumerate() {
            let task = r#"sh -c "$LOSS" - "${LAB_LOG%/called}/task" >&2 || exit 9"#;
            let script = format!("{task}\necho \"${{LAB_HEAD-}}\" >\"$2\"");
            let lab = Lab::task(text).computation("lose", "x", "y", &script).commit();
            let head = lab.git("task", &["rev-parse", "HEAD"]);
            let mut run = lab.evaluation(&["--no-sync"]);
            for name in ["AUTHOR", "COMMITTER"] {
                run.env(format!("GIT_{name}_NAME"), "a").env(format!("GIT_{name}_EMAIL"), "a@b");
            }
            let ran = lab.finish(run.env("LOSS", loss).env("LAB_HEAD", head));
            let ran = ran.exit(3).called(vec!["lose"]);
            assert!(ran.stderr.contains(" is not finished: it was lost: "), "{at}: {}", ran.stderr);
            assert!(ran.stderr.contains(why) || at > 0, "{loss}: {}", ran.stderr);
            assert!(!lab.storage().iter().any(|it| it.contains("failed/")), "{at}: {loss}");
            assert!(ran.stderr.contains("1 computed") && lab.is_tidy(), "{}", ran.stderr);
        }
    }
}
