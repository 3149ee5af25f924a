//! Changes that no commit records, and what becomes of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::lab::{Lab, Library};
use crate::repository::{self, LAB};

const TASK: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('x'))[0]";

fn lab(library: Library) -> Lab {
    Lab::task(TASK).commit_with(library)
}

const LIBRARIES: [Library; 3] = [Library::Plain, Library::Submodule, Library::Submodules];

/// Runs git in the task; returns its output.
fn git(lab: &Lab, dir: &str, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    git.env("HOME", lab.path("home")).env("GIT_CONFIG_NOSYSTEM", "1");
    let output = git.current_dir(lab.path("task").join(dir)).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A change of a computation: how it is made, and the files that are reported.
type Change = (fn(&Path), &'static str);

const CHANGES: [Change; 7] = [
    (|dir| append(&dir.join("exec"), "# more\n"), "exec"),
    (|dir| fs::write(dir.join("a file"), "").unwrap(), "a file"),
    (|dir| fs::remove_file(dir.join("outputs")).unwrap(), "outputs"),
    (
        |dir| fs::set_permissions(dir.join("exec"), fs::Permissions::from_mode(0o644)).unwrap(),
        "exec",
    ),
    (|dir| std::os::unix::fs::symlink("exec", dir.join("link")).unwrap(), "link"),
    (
        |dir| {
            fs::create_dir_all(dir.join("deep/er")).unwrap();
            fs::write(dir.join("deep/er/file"), "").unwrap();
        },
        "deep/er/file",
    ),
    (
        |dir| {
            fs::remove_file(dir.join("inputs")).unwrap();
            std::os::unix::fs::symlink("outputs", dir.join("inputs")).unwrap();
        },
        "inputs",
    ),
];

fn append(path: &Path, text: &str) {
    let contents = fs::read_to_string(path).unwrap();
    fs::write(path, contents + text).unwrap();
}

#[test]
fn a_computation_that_is_not_as_committed_is_refused_with_its_files() {
    for (library, (change, file)) in LIBRARIES.into_iter().cycle().zip(CHANGES) {
        let lab = lab(library);
        change(&lab.path("task/computations/mul"));
        let ran = lab.ce_run(&[]).exit(2);
        let told = format!("computations/mul: has uncommitted changes: {file}\n");
        // Without its outputs, or if it is not executable, there is more to tell.
        assert!(ran.stderr.contains(&told), "{}", ran.stderr);
        assert!(ran.stderr.contains("or evaluate with --dirty"), "{}", ran.stderr);
        // Patterns that are literal hide no change.
        let mut run = lab.evaluation(&[]);
        lab.finish(run.env("GIT_LITERAL_PATHSPECS", "1")).exit(2).says(&told);
        assert!(!lab.path("storage").exists());
    }
}

#[test]
fn a_dirty_computation_is_known_by_the_tree_that_git_would_make() {
    for (library, (change, _)) in LIBRARIES.into_iter().cycle().zip(&CHANGES) {
        let lab = lab(library);
        let mul = lab.path("task/computations/mul");
        change(&mul);
        // The mode of `exec` and the file `outputs` are needed in any case.
        let lab = lab.mode("computations/mul/exec", 0o755);
        if !mul.join("outputs").exists() {
            continue;
        }
        lab.ce_run(&["--dirty"]).exit(if mul.join("inputs").is_symlink() { 2 } else { 0 });
        git(&lab, "computations/mul", &["add", "-A", "."]);
        let dir = git(&lab, "computations/mul", &["rev-parse", "--show-prefix"]);
        let tree = git(&lab, "computations/mul", &["write-tree", &format!("--prefix={dir}")]);
        let clean = git(&lab, "computations/mul", &["rev-parse", &format!("HEAD:{dir}")]);
        let name = format!("c_mul/dirty-{}/00/", &tree[..12]);
        if tree != clean && !mul.join("inputs").is_symlink() {
            let names = lab.storage();
            assert!(names.iter().any(|it| it.starts_with(&name)), "{name} {names:?}");
        }
    }
}

#[test]
fn a_dirty_result_is_reused_and_never_taken_for_a_commits() {
    let lab = lab(Library::Plain);
    append(&lab.path("task/computations/mul/exec"), "echo 1000 >\"$3\"\n");
    let dirty = lab.ce_run(&["--dirty"]).exit(0).called(vec!["add", "mul"]);
    dirty.says("the job's outputs were not stored: computations/mul/exec has uncommitted changes");
    assert!(!lab.storage().iter().any(|name| name.starts_with("t_")));
    lab.ce_run(&["--dirty"]).exit(0).called(vec![]);
    git(&lab, "", &["checkout", "-q", "."]);
    lab.ce_run(&["--dirty"]).exit(0).called(vec!["add", "mul"]).says("job output 00");
    assert_eq!(lab.output(), "102\n");
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
}

#[test]
fn a_computation_that_was_never_committed_can_be_evaluated() {
    let lab = lab(Library::Plain).computation("new", "a b", "c", "cat \"$1\" \"$2\" >\"$3\"");
    let lab = lab.file("workflow/value", "new\n");
    lab.ce_run(&[]).exit(2).says("computations/new: is not in the commit");
    lab.ce_run(&["--dirty"])
        .exit(0)
        .says("the job's outputs were not stored")
        .called(vec!["mul", "new"]);
}

/// A task with an input that stands elsewhere, and the name of the other one.
fn linked() -> Lab {
    let lab = Lab::task(TASK).without("workflow/inputs/01-x");
    let lab = lab.file("shared/x/kind", "input\n").file("shared/x/value", "x\n");
    let lab = lab.link("workflow/inputs/01-x", "../../shared/x").file("names/y", "y\n");
    let y = "workflow/inputs/00-mul/inputs/01-y/value";
    lab.without(y).link(y, "../../../../../names/y").commit()
}

#[test]
fn the_job_of_a_workflow_or_of_links_to_what_is_not_committed_is_not_kept() {
    for (file, contents) in
        [("workflow/inputs/00-mul/value", "add\n"), ("shared/x/value", "y\n"), ("names/y", "x\n")]
    {
        let lab = linked();
        lab.ce_run(&["-n"]).exit(3);
        let lab = lab.file("shared/other", "").file(file, contents);
        let told = format!("the job's outputs were not stored: {file} has uncommitted changes\n");
        lab.ce_run(&[]).exit(0).says(&told);
        assert!(!lab.storage().iter().any(|name| name.starts_with("t_")));
        lab.run("ce", &["check"]).exit(0).says(file);
    }
}

#[test]
fn the_job_of_a_submodule_at_another_commit_is_not_kept() {
    for (library, submodule) in
        [(Library::Submodule, "computations"), (Library::Submodules, "computations/mul")]
    {
        let lab = lab(library).file("computations/mul/notes", "");
        repository::commit(&lab.path("task").join(submodule), LAB, "notes\n");
        let told =
            format!("the job's outputs were not stored: {submodule} has uncommitted changes\n");
        lab.ce_run(&[]).exit(0).says(&told);
        repository::commit(&lab.path("task"), LAB, "moved\n");
        lab.ce_run(&[]).exit(0).says("job output 00").called(vec!["add", "mul"]);
    }
}

#[test]
fn files_that_no_call_reads_do_no_harm_and_ignored_ones_are_reported() {
    for library in LIBRARIES {
        let lab = Lab::task(TASK).file("computations/mul/.gitignore", "*.o\nbuild\n");
        let lab = lab.commit_with(library);
        let lab = lab.file("computations/mul/x.o", "").file("computations/mul/build/y", "");
        let lab = lab.file("notes", "").file("computations/divmod/notes", "");
        let ran = lab.ce_run(&[]).exit(0).says("job output 00");
        for file in ["x.o", "build"] {
            let told = format!("computations/mul/{file}: is ignored by Git");
            assert_eq!(ran.stderr.matches(&told).count(), 1, "{}", ran.stderr);
        }
    }
}

#[test]
fn ignored_files_are_not_part_of_a_workflow() {
    let parts = ["workflow/inputs/00-mul/value", "workflow/inputs/01-x", "workflow", "inputs"];
    for part in parts.into_iter().chain(["shared", "shared/x/kind", "names"]) {
        let lab = if part.starts_with("workflow") { Lab::task(TASK) } else { linked() };
        let lab = lab.file(".gitignore", format!("/{part}\n*~\n"));
        git(&lab, "", &["init", "--quiet"]);
        git(&lab, "", &["rm", "--quiet", "-r", "--cached", "--ignore-unmatch", "."]);
        git(&lab, "", &["add", "."]);
        git(&lab, "", &["-c", "user.name=l", "-c", "user.email=l", "commit", "--quiet", "-m."]);
        let lab = lab.file("workflow/kind~", "");
        for options in [&[][..], &["--dirty"], &["--at=HEAD"]] {
            lab.ce_run(options).exit(2).called(vec![]);
        }
        assert!(!lab.path("storage").exists(), "{part}");
    }
}

/// A task that shows a file of itself, or a directory.
fn showing(value: &str) -> Lab {
    let show = r#"(cd "$1" 2>/dev/null && ls -F . * || cat "$1") >"$2""#;
    Lab::empty().computation("show", "x", "y", show).one_text(&format!("(show {value})"))
}

/// Checks that `--dirty` gives the same as a commit of the same state.
#[track_caller]
fn is_as_committed(lab: &Lab) {
    let output = |options: &[&str]| {
        drop(fs::remove_dir_all(lab.path("storage")));
        let ran = lab.ce_run(&[options, &["-q"]].concat());
        let read = |line: &str| fs::read_to_string(lab.path("task").join(line)).unwrap();
        (ran.status.code(), ran.stdout.lines().map(read).collect::<Vec<_>>())
    };
    let dirty = output(&["--dirty"]);
    lab.git("task", &["add", "-A"]);
    lab.git("task", &["commit", "-qm", "all"]);
    assert_eq!(dirty, output(&[]));
}

#[test]
fn a_value_in_a_submodule_at_another_commit_is_a_change() {
    let lab = showing("OWN('lib/x')").file("lib/x", "old\n");
    let library = lab.path("task/lib");
    repository::init(&lab.path("task"));
    let old = repository::commit(&library, LAB, "old\n");
    fs::write(library.join("x"), "new\n").unwrap();
    repository::commit(&library, LAB, "new\n");
    repository::absorb(&lab.path("task"), "lib", "../lib");
    repository::commit(&lab.path("task"), LAB, "task\n");
    git(&lab, "lib", &["checkout", "--quiet", "--detach", &old]);
    lab.ce_run(&[]).exit(2).says("lib/x: has uncommitted changes");
    lab.ce_run(&["--dirty"]).exit(0).says("not stored: lib has uncommitted changes");
    lab.ce_run(&["--at=HEAD"]).exit(0);
    git(&lab, "lib", &["checkout", "--quiet", "--detach", "main"]);
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.output(), "new\n");
}

#[test]
fn a_directory_that_became_a_link_is_one_in_a_draft() {
    let lab = showing("TREE('.:data')").file("data/lib/f", "F\n").file("data/other/f", "O\n");
    let lab = lab.file("data/other/g", "G\n").commit().without("data/lib");
    is_as_committed(&lab.link("data/lib", "other"));
}

#[test]
fn an_emptied_directory_is_not_in_a_draft() {
    let lab = Lab::task(TASK).file(".gitignore", "*.swp\n").commit();
    for (name, text) in [("kind", "computation"), ("value", "mul")] {
        fs::write(lab.path("task/workflow").join(name), text).unwrap();
    }
    let lab = lab.without("workflow/inputs/00-mul").rename("workflow/inputs/01-x", "00-x");
    for name in ["workflow/inputs/00-mul", "workflow/inputs/02-z"] {
        fs::create_dir(lab.path("task").join(name)).unwrap();
    }
    let lab =
        lab.file("workflow/inputs/00-mul/value.swp", "").file("workflow/inputs/01-y/kind", "input");
    let lab = lab.file("workflow/inputs/01-y/value", "y");
    lab.ce_run(&["--dirty"]).exit(0).called(vec!["mul"]);
    lab.ce_run(&[]).exit(0).says("not stored");
}

#[test]
fn a_repository_that_is_not_added_yet_is_in_a_draft() {
    let lab = Lab::task(TASK).commit();
    let library = lab.path("task/computations");
    git(&lab, "", &["rm", "-q", "-r", "--cached", "computations"]);
    git(&lab, "", &["-c", "user.name=l", "-c", "user.email=l", "commit", "-qm", "none"]);
    append(&library.join("mul/exec"), "# objects of its own\n");
    repository::init(&library);
    repository::commit(&library, LAB, "library\n");
    for options in [&["--dirty"][..], &[]] {
        lab.ce_run(options).exit(0).says("not stored: computations has uncommitted changes");
    }
    assert_eq!(lab.called(), ["mul", "add"]);
}

#[test]
fn a_value_that_became_a_pipe_is_refused() {
    let lab = showing("OWN('data/x')").file("data/x", "x\n").commit().without("data/x");
    assert!(Command::new("mkfifo").arg(lab.path("task/data/x")).status().unwrap().success());
    for options in [&[][..], &["--dirty"]] {
        lab.ce_run(options).exit(2).says("data/x");
    }
}

/// A task that shows a directory, and has a repository at `lib` that is not committed with it.
fn beside_library(value: &str) -> Lab {
    let lab = showing(value).commit().file("lib/src/x", "x\n");
    repository::commit(&lab.path("task/lib"), LAB, "library\n");
    lab
}

/// The same with the repository as a submodule that is committed.
fn with_library(value: &str) -> Lab {
    let lab = beside_library(value);
    repository::absorb(&lab.path("task"), "lib", "../lib");
    lab.git("task", &["add", "-A"]);
    lab.git("task", &["commit", "-qm", "library"]);
    lab
}

const OF_LIBRARY: [&str; 4] =
    ["TREE('lib:src')", "TREE('.:lib/src')", "TREE('lib')[01]", "TREE('lib:src' 'HEAD')"];

#[test]
fn a_submodule_that_is_only_staged_is_in_a_draft() {
    for value in OF_LIBRARY {
        let lab = beside_library(value);
        repository::absorb(&lab.path("task"), "lib", "../lib");
        lab.git("task", &["add", "-A"]);
        lab.ce_run(&[]).exit(2).called(vec![]);
        lab.ce_run(&["--dirty"]).exit(0).says("not stored");
        is_as_committed(&lab);
    }
}

#[test]
fn a_submodule_that_is_removed_is_not_in_a_draft() {
    for value in OF_LIBRARY {
        let lab = with_library(value);
        lab.ce_run(&[]).exit(0);
        let lab = lab.without("lib").without(".gitmodules");
        if !value.contains("HEAD") {
            lab.ce_run(&[]).exit(2).says("lib");
        }
        lab.ce_run(&["--dirty"]).exit(2).says("lib");
        is_as_committed(&lab);
    }
}

#[test]
fn a_draft_reads_a_submodule_at_its_checked_out_commit() {
    for value in OF_LIBRARY {
        let lab = with_library(value);
        let lab = lab.file("lib/src/x", "y\n");
        repository::commit(&lab.path("task/lib"), LAB, "moved\n");
        if !value.contains("HEAD") {
            lab.ce_run(&[]).exit(2).says("uncommitted changes: lib");
        }
        is_as_committed(&lab);
    }
}

#[test]
fn a_tree_beside_changes_of_its_submodule_is_not_changed() {
    for value in ["TREE('.:lib/src')[01]", "TREE('lib:src')[01]"] {
        let lab = with_library(value);
        lab.ce_run(&["-q"]).exit(0);
        let committed = lab.output();
        fs::remove_dir_all(lab.path("storage")).unwrap();
        let lab = lab.file("lib/other", "other\n");
        let dirty = lab.ce_run(&["--dirty", "-q", "--new-storage"]).exit(0);
        let shown: Vec<String> = dirty.lines().into_iter().map(|it| lab.stored(it)).collect();
        assert_eq!(shown, [committed], "{value}");
    }
}

#[test]
fn a_tree_that_became_a_link_is_refused_in_a_draft() {
    for (value, told) in [("TREE('.:data')", "data is a link"), ("TREE('.:data/in')", "data/in is")]
    {
        let lab = showing(value).file("data/in/x", "x\n").file("other/in/x", "y\n").commit();
        let lab = lab.without("data").link("data", "other");
        lab.ce_run(&[]).exit(2).called(vec![]);
        lab.ce_run(&["--dirty"]).exit(2).says(told).says("the directory that the link leads to");
        is_as_committed(&lab);
    }
}

#[test]
fn a_value_in_a_repository_over_files_of_the_task_is_refused() {
    for value in ["OWN('data/in/x')", "TREE('.:data')", "TREE('.:data/in')"] {
        let lab = showing(value).file("data/in/x", "x\n").commit();
        let data = lab.path("task/data");
        for has_commit in [false, true] {
            if has_commit {
                repository::commit(&data, LAB, "over\n");
            } else {
                repository::init(&data);
            }
            for options in [&[][..], &["--dirty"]] {
                lab.ce_run(options).exit(2).says("data/.git");
            }
        }
    }
}

#[test]
fn a_file_whose_encoding_is_not_known_is_named() {
    let mut lab = showing("TREE('.:data')").file("data/x", "x\n").commit();
    for encoding in ["UTF-32", "CP437", "UTF-16LE-BOM"] {
        let rule = format!("data/* text working-tree-encoding={encoding}\n");
        lab = lab.file(".gitattributes", rule);
        for name in ["data/new", "data/x"] {
            lab = lab.file(name, "y\n");
            let refused = lab.ce_run(&["--dirty"]).exit(2).says("\"data/");
            let refused = refused.says(&format!("working-tree-encoding={encoding}"));
            refused.says("out of .gitattributes");
        }
    }
}

#[test]
fn unreadable_parts_of_a_repository_are_named_with_advice() {
    let write = |path: &Path, text: &str| fs::write(path, text).unwrap();
    for (state, told, hint) in [
        ("empty", ".git has no HEAD", "git init"),
        ("modules", ".gitmodules cannot be parsed", "git config --file .gitmodules --list"),
        ("reftable", "in the format reftable", "git refs migrate --ref-format=files"),
    ] {
        let lab = lab(Library::Plain);
        let git = lab.path("task/.git");
        match state {
            "empty" => {
                fs::remove_dir_all(&git).unwrap();
                fs::create_dir(&git).unwrap();
            }
            "modules" => write(&lab.path("task/.gitmodules"), "[submodule \"x\n"),
            _ => {
                append(&git.join("config"), "[extensions]\n\trefStorage = reftable\n");
                // As Git writes it for others.
                write(&git.join("HEAD"), "ref: refs/heads/.invalid\n");
            }
        }
        for options in [&[][..], &["--dirty"]] {
            lab.ce_run(options).exit(2).says(told).says(hint);
        }
    }
}

#[test]
fn a_line_break_in_the_name_of_a_change_is_quoted() {
    let lab = showing("TREE('.:data')").file("data/x", "x\n").commit().file("data/a\nb", "");
    let told = r#""data/a\nb" has uncommitted changes"#;
    lab.ce_run(&["--dirty"]).exit(0).says(&format!("not stored: {told}"));
    lab.ce_run(&[]).exit(2).says(r#"uncommitted changes: "data/a\nb""#);
}
