//! Computations that changed: commits and files are those that Git tells.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{LIBRARIES, TASK, append, commit, evaluated, explain, git, record, told, whys};
use crate::lab::{Lab, Library};
use crate::repository::{self, LAB};

/// A cause that is a change of `mul` tells the commits and files that git tells.
#[track_caller]
pub(super) fn is_what_git_tells(lab: &Lab, cause: &Value) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let [old, new] = ["old", "new"].map(|which| &cause[which]);
    let dir = "computations/mul";
    let range = format!("{}..{}", text(&old["commit"]), text(&new["commit"]));
    let expected = git(lab, dir, &["log", "--format=%H %s", &range, "--", "."]);
    let lines = cause["came"]["commits"].as_array().unwrap().iter();
    let lines = lines.map(|it| format!("{} {}\n", text(&it["commit"]), text(&it["title"])));
    assert_eq!(lines.collect::<String>(), expected);
    let trees = [text(&old["tree"]), text(&new["tree"])];
    let stat = ["diff", "--numstat", "--no-renames", "--minimal", &trees[0], &trees[1]];
    let files = cause["files"].as_array().unwrap().iter();
    let files =
        files.map(|it| format!("{}\t{}\t{}\n", it["inserted"], it["deleted"], text(&it["path"])));
    assert_eq!(files.collect::<String>(), git(lab, dir, &stat));
}

#[test]
fn changes_of_a_computation_are_reported_as_git_does() {
    let changes: [fn(&Path); 6] = [
        |dir| append(&dir.join("exec"), "# more\n"),
        |dir| fs::write(dir.join("a file"), "").unwrap(),
        |dir| fs::remove_file(dir.join("data/table")).unwrap(),
        |dir| fs::rename(dir.join("data/table"), dir.join("data/other")).unwrap(),
        |dir| {
            let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(dir.join("data/table"), executable).unwrap();
        },
        |dir| std::os::unix::fs::symlink("exec", dir.join("link")).unwrap(),
    ];
    for (library, change) in LIBRARIES.into_iter().cycle().zip(changes) {
        let lab = evaluated(library);
        let mul = lab.path("task/computations/mul");
        change(&mul);
        commit(&lab, library, "mul", "mul: other\n\nand more\n");
        let lab = lab.file("README", "");
        repository::commit(&lab.path("task"), LAB, "readme\n");
        append(&mul.join("exec"), "# again\n");
        commit(&lab, library, "mul", "mul: again\n");
        let (causes, calls, _) = told(&lab, &[], 3);
        assert_eq!(causes[0]["cause"], "computation");
        assert_eq!(causes[0]["came"]["commits"].as_array().unwrap().len(), 2);
        is_what_git_tells(&lab, &causes[0]);
        let why = calls[0]["why"].as_array().unwrap();
        assert_eq!((why.len(), &why[0]["old"]), (1, &causes[0]["old"]));
        let expected = match library {
            // Its commit is another one, and it could see more than its directory.
            Library::Plain | Library::Submodule => {
                "add: computation <- computation:add, waits0 <- computation:mul"
            }
            Library::Submodules => "add: waits0 <- computation:mul",
        };
        assert_eq!(whys(&lab, &[]), ["mul: computation <- computation:mul", expected]);
        explain(&lab, &[]).exit(3).shows(" mul: again\n");
    }
}

#[test]
fn commits_of_a_merge_are_listed_if_they_touched_the_computation() {
    let lab = evaluated(Library::Plain);
    let lab = lab.file("computations/mul/one", "").commit_again();
    git(&lab, "", &["checkout", "-q", "-b", "side", "HEAD~1"]);
    let lab = lab.file("computations/mul/two", "");
    git(&lab, "", &["add", "-A"]);
    git(&lab, "", &["commit", "-q", "-m", "two"]);
    git(&lab, "", &["merge", "-q", "-m", "both", "-"]);
    let (causes, ..) = told(&lab, &[], 3);
    is_what_git_tells(&lab, &causes[0]);
    assert_eq!(causes[0]["came"]["commits"].as_array().unwrap().len(), 3, "{causes:?}");
}

#[test]
fn commits_that_were_rewritten_are_listed_too() {
    let lab = evaluated(Library::Plain);
    let lab = lab.file("computations/mul/one", "").commit_again();
    lab.ce_run(&["--no-sync"]).exit(0);
    git(&lab, "", &["commit", "-q", "--amend", "-m", "one, in other words", "--allow-empty"]);
    fs::write(lab.path("task/computations/mul/one"), "more\n").unwrap();
    git(&lab, "", &["commit", "-q", "-a", "--amend", "-m", "one, better"]);
    let ran = explain(&lab, &[]).exit(3);
    ran.shows(" one, better\n").shows("    without ");
}

#[test]
fn files_of_a_nested_submodule_are_reported() {
    let lab = Lab::task(TASK).file("computations/mul/nested/file", "one\n");
    let nested = lab.path("task/computations/mul/nested");
    repository::init(&lab.path("task"));
    repository::commit(&nested, LAB, "nested\n");
    repository::absorb(&lab.path("task"), "computations/mul/nested", "../nested");
    repository::commit(&lab.path("task"), LAB, "task\n");
    lab.ce_run(&["--no-sync"]).exit(0);
    append(&nested.join("file"), "two\n");
    repository::commit(&nested, LAB, "nested again\n");
    repository::commit(&lab.path("task"), LAB, "mul: nested again\n");
    let (causes, ..) = told(&lab, &[], 3);
    assert_eq!(causes[0]["came"]["commits"][0]["title"], "mul: nested again");
    let ran = explain(&lab, &[]).exit(3);
    ran.shows("    nested/file").shows("1 file changed, 1 line inserted, 0 deleted");
}

#[test]
fn a_shallow_clone_lists_the_commits_that_it_has() {
    let lab = evaluated(Library::Plain).file("computations/mul/one", "").commit_again();
    let url = format!("file://{}", lab.path("task").display());
    git(&lab, "", &["clone", "-q", "--depth=1", &url, "../shallow"]);
    let options = ["--task=../shallow"];
    let expected = [
        "mul: computation <- computation:mul",
        "add: computation <- computation:add, waits0 <- computation:mul",
    ];
    assert_eq!(whys(&lab, &options), expected);
    let ran = explain(&lab, &options).exit(3);
    assert_eq!(ran.stderr, "");
    ran.shows("    the repository does not have the commits between\n");
}

#[test]
fn the_nearest_of_several_commits_is_compared() {
    let lab = evaluated(Library::Submodules);
    let mul = lab.path("task/computations/mul");
    let first = repository::head(&mul);
    append(&mul.join("exec"), "# second\n");
    commit(&lab, Library::Submodules, "mul", "second\n");
    let second = repository::head(&mul);
    lab.ce_run(&["--no-sync"]).exit(0);
    record(&lab, "c_", &[("isolation", "none")]);
    append(&mul.join("exec"), "# third\n");
    commit(&lab, Library::Submodules, "mul", "third\n");
    let old = |options: &[&str]| told(&lab, options, 3).0[0]["old"]["commit"].clone();
    // The newest of those that are as near.
    assert_eq!(old(&[]), second.as_str());
    // The same tree is nearer than a newer commit.
    fs::write(mul.join("exec"), git(&lab, "computations/mul", &["show", &format!("{first}:exec")]))
        .unwrap();
    commit(&lab, Library::Submodules, "mul", "back\n");
    assert_eq!(old(&[]), first.as_str());
    let ran = explain(&lab, &[]).exit(3);
    ran.shows("mul is at another commit, and did not run isolated: was ");
    // Each commit of the task has its own results.
    explain(&lab, &["--at=HEAD~2"]).exit(0);
    explain(&lab, &["--at=HEAD~3"]).exit(0);
}

#[test]
fn commits_of_a_repository_unknown_to_the_task_are_reported() {
    let lab = Lab::task(TASK);
    repository::commit(&lab.path("task/computations"), LAB, "computations\n");
    let lab = lab.commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    append(&lab.path("task/computations/mul/exec"), "# more\n");
    commit(&lab, Library::Submodule, "mul", "mul: more\n");
    let (causes, ..) = told(&lab, &[], 3);
    is_what_git_tells(&lab, &causes[0]);
}

#[test]
fn commits_of_a_task_that_is_not_checked_out_are_reported() {
    for library in LIBRARIES {
        let lab = evaluated(library);
        append(&lab.path("task/computations/mul/exec"), "# more\n");
        commit(&lab, library, "mul", "mul: more\n");
        append(&lab.path("task/computations/mul/exec"), "# again\n");
        commit(&lab, library, "mul", "mul: again\n");
        let (causes, ..) = told(&lab, &["--at=HEAD~1"], 3);
        assert_eq!(causes[0]["came"]["commits"][0]["title"], "mul: more");
        is_what_git_tells(&lab, &causes[0]);
    }
}
