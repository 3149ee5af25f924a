//! The executed program is the one that the name says, regardless of what becomes of the work tree.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::fifo::{Fifo, Never};
use crate::isolation;
use crate::lab::{Lab, Library};
use crate::program::Running;
use crate::repository::{self, LAB};

/// Copies its input, and says which code it is: once another call of it may wait.
const CODE: &str = r#"
    if [ "${LAB_WAIT-}" ] && [ "$(cat "$1")" = 17 ]; then
        exec 3>"$LAB_MEET"; echo here >&3; read line <"$LAB_WAIT"
    fi
    . "$(dirname "$0")/helper"
    { cat "$1"; echo $CODE; } >"$2""#;

const TASK: &str = "Inputs: 'x'\n(code (other (code (code INPUT('x'))[0])[0])[0])[0]";

const OUTPUT: &str = "17\nold\nold\nother\nold\n";

fn lab() -> Lab {
    let other = r#"{ cat "$1"; cat "$(dirname "$0")/word"; } >"$2""#;
    let lab = Lab::task(TASK).computation("code", "a", "b", CODE);
    let lab = lab.computation("other", "a", "b", other).file("computations/other/word", "other\n");
    lab.file("computations/code/helper", "CODE=old\n")
}

/// Runs the task; does something to the work tree when the first call is executed.
fn meanwhile(lab: &Lab, options: &[&str], act: impl FnOnce(&Path)) -> (Option<i32>, String) {
    let (meet, wait) = (lab.path("meet"), lab.path("wait"));
    let (fifo, never) = (Fifo::new(&meet), Never::new(wait.clone()));
    let mut command = lab.evaluation(options);
    let running = Running::start(command.env("LAB_MEET", meet).env("LAB_WAIT", &wait));
    assert_eq!(fifo.line(), "here");
    act(&lab.path("task"));
    fs::write(&wait, "go on\n").unwrap();
    drop(never);
    let output = running.output();
    let told = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), told)
}

/// Ways to change the code in the work tree.
const CHANGES: [fn(&Path); 3] = [
    |task| {
        fs::write(task.join("computations/code/helper"), "CODE=new\n").unwrap();
        fs::write(task.join("computations/other/word"), "new\n").unwrap();
        // In place, where a shell that reads it sees it.
        let exec = task.join("computations/code/exec");
        let text = fs::read_to_string(&exec).unwrap();
        fs::write(&exec, text.replace(". \"$(dirname \"$0\")/helper\"", "CODE=new")).unwrap();
    },
    |task| fs::remove_dir_all(task.join("computations")).unwrap(),
    |task| {
        fs::rename(task.join("computations"), task.join("away")).unwrap();
        symlink("../nowhere", task.join("computations")).unwrap();
    },
];

#[test]
fn a_run_goes_on_with_the_code_that_it_began_with() {
    for change in CHANGES {
        let lab = lab().commit();
        let (code, told) = meanwhile(&lab, &["-j1"], change);
        assert_eq!(code, Some(0), "{told}");
        lab.git("task", &["reset", "-q", "--hard"]);
        assert_eq!(lab.output(), OUTPUT);
        lab.ce_run(&[]).exit(0).called(vec!["code", "code", "other", "code"]);
        assert!(lab.is_tidy());
    }
}

#[test]
fn another_branch_may_be_checked_out_while_a_run_goes_on() {
    for library in [Library::Plain, Library::Submodule] {
        let lab = lab().commit_with(library);
        let place = if let Library::Plain = library { "task" } else { "task/computations" };
        let first = repository::head(&lab.path(place));
        let helper = lab.path("task/computations/code/helper");
        fs::write(&helper, "CODE=new\n").unwrap();
        let word = lab.path("task/computations/other/word");
        fs::write(&word, "new\n").unwrap();
        repository::commit(&lab.path(place), LAB, "new\n");
        lab.git(place, &["branch", "new"]);
        lab.git(place, &["reset", "-q", "--hard", &first]);
        let (code, told) = meanwhile(&lab, &["-j1"], |_| {
            lab.git(place, &["checkout", "-q", "new"]);
        });
        assert_eq!(code, Some(0), "{told}");
        assert_eq!(fs::read_to_string(&word).unwrap(), "new\n");
        lab.git(place, &["checkout", "-q", &first]);
        assert_eq!(lab.output(), OUTPUT);
    }
}

#[test]
fn a_dirty_run_executes_the_loaded_files_or_nothing() {
    let lab = lab().commit();
    let lab = lab.file("computations/other/word", "dirty\n").file("computations/code/note", "");
    let (code, told) = meanwhile(&lab, &["-j1", "--dirty"], CHANGES[0]);
    // The code that was executed before goes on; the other one was changed before that.
    assert_eq!(code, Some(3), "{told}");
    let other = "task/computations/other has changed since the task was loaded: run it again";
    assert!(told.contains(other), "{told}");
    let names: Vec<_> =
        lab.results().into_iter().filter(|(name, _)| name.starts_with("c_")).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    for (name, contents) in names {
        assert!(name.starts_with("c_code/dirty-"), "{name}");
        assert!(contents.ends_with(b"old\n"), "{contents:?}");
    }
    lab.called();
    lab.ce_run(&["--dirty"]).exit(0);
    assert_eq!(lab.called(), ["code", "code", "other", "code"]);
    assert!(lab.is_tidy());
}

#[test]
fn a_dirty_computation_is_exported_as_its_name_says() {
    let ways: &[&[&str]] = &[&["--dirty"], &["--dirty", "--isolate"]];
    for library in [Library::Plain, Library::Submodule, Library::Submodules] {
        for options in ways.iter().filter(|it| it.len() == 1 || isolation::is_possible()) {
            let list = r#"cd "$(dirname "$0")"; ls -RA . >"$2"; cat helper word >>"$2""#;
            let lab = Lab::task("Inputs: 'x'\n(list INPUT('x'))[0]");
            let lab = lab.computation("list", "a", "b", list);
            let lab =
                lab.file("computations/list/helper", "old\n").file("computations/list/gone", "");
            let lab = lab.file("computations/list/.gitignore", "*.o\n").commit_with(library);
            let lab =
                lab.file("computations/list/helper", "new\n").without("computations/list/gone");
            let lab =
                lab.file("computations/list/deep/er/file", "").file("computations/list/x.o", "");
            let lab = lab.file("computations/list/word", "word\n");
            lab.ce_run(options).exit(0);
            let (_, output) =
                lab.results().into_iter().find(|(name, _)| name.starts_with("c_list/")).unwrap();
            let expected = ".:\n.gitignore\ndeep\nexec\nhelper\ninputs\noutputs\nword\n\n./deep:\ner\n\n./deep/er:\nfile\nnew\nword\n";
            assert_eq!(String::from_utf8(output).unwrap(), expected, "{library:?} {options:?}");
            // Once more, from the export that is there by now.
            let results = lab.results().into_keys().filter(|name| name.starts_with("c_"));
            results.for_each(|name| fs::remove_file(lab.path("storage").join(name)).unwrap());
            lab.ce_run(options).exit(0).says("1 computed");
            lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
        }
    }
}

#[test]
fn files_ignored_by_git_are_not_executed() {
    let lab =
        lab().file("computations/code/.gitignore", "helper\n").without("computations/code/helper");
    let lab = lab.commit().file("computations/code/helper", "CODE=ignored\n");
    let told =
        "computations/code/helper: is ignored by Git: no commit records it, and no exec sees it";
    lab.ce_run(&[]).exit(1).says(told);
    assert!(!lab.results().keys().any(|name| name.starts_with("c_")));
}

#[test]
fn files_left_beside_the_code_are_gone_after_the_run() {
    let leave = r#"ls "$(dirname "$0")" >"$2"; echo >"$(dirname "$0")/cache""#;
    let lab = Lab::task("Inputs: 'x'\n(leave INPUT('x'))[0]");
    let lab = lab.computation("leave", "a", "b", leave).commit();
    let files = "exec\ninputs\noutputs\n";
    for _ in 0..2 {
        lab.ce_run(&[]).exit(0);
        assert_eq!(lab.output(), files);
        assert!(lab.is_tidy());
        assert!(!lab.path("task/computations/leave/cache").exists());
        fs::remove_dir_all(lab.path("storage")).unwrap();
    }
}

#[test]
fn an_exec_that_links_outside_is_refused() {
    let targets = ["../add/exec", "../../notes", "LAB/data/program"];
    for (library, target) in
        [Library::Plain, Library::Submodule, Library::Submodules].into_iter().zip(targets)
    {
        {
            let lab = Lab::task("Inputs: 'x', 'y'\n(mul INPUT('x') INPUT('y'))[0]");
            let program = fs::read(lab.path("task/computations/mul/exec")).unwrap();
            let lab = lab.file("notes", &program).mode("notes", 0o755).data("program", &program);
            let program = lab.path("data/program");
            fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
            let target = target.replace("LAB", lab.path("").to_str().unwrap());
            let lab = lab.without("computations/mul/exec").link("computations/mul/exec", &target);
            let lab = lab.commit_with(library);
            for options in [&[][..], &["-n"], &["--at=HEAD"], &["--at=HEAD", "-n"]] {
                lab.ce_run(options).exit(2).says("computations/mul/exec: leads out of");
                assert_eq!(lab.called(), [""; 0]);
            }
        }
        let lab = Lab::task("Inputs: 'x', 'y'\n(mul INPUT('x') INPUT('y'))[0]");
        let lab = lab.rename("computations/mul/exec", "program");
        let lab = lab.link("computations/mul/exec", "program").commit_with(library);
        lab.ce_run(&[]).exit(0).called(vec!["mul"]);
    }
}

#[test]
fn several_runs_may_export_at_once() {
    for isolated in [false, true] {
        if isolated && !isolation::is_possible() {
            continue;
        }
        let lab = lab().commit();
        let lab = if isolated { lab.isolated() } else { lab };
        for round in 0..3 {
            let runs: Vec<Running> = (0..4)
                .map(|run| {
                    let input = lab.path(&format!("data/{round}-{run}"));
                    fs::write(&input, format!("{round} {run}\n")).unwrap();
                    let mut command = lab.command("ce-run");
                    command.arg("../storage").arg(input);
                    Running::start(&mut command)
                })
                .collect();
            for run in runs {
                let output = run.output();
                assert_eq!(output.status.code(), Some(0), "{output:?}");
            }
            if !isolated {
                continue;
            }
            // All of them find an export that was changed.
            let helper = lab.storage().into_iter().find(|it| it.ends_with("/helper")).unwrap();
            assert!(helper.starts_with("trees/"), "{helper}");
            let helper = lab.path("storage").join(helper);
            fs::remove_file(&helper).unwrap();
            fs::write(&helper, "CODE=wrong\n").unwrap();
        }
        let wrong = lab.results().into_iter().filter(|(_, it)| it.ends_with(b"wrong\n"));
        assert_eq!(wrong.count(), 0);
        assert!(lab.is_tidy());
    }
}

/// Ways in which a call can rewrite the code of the next one: `$here` is the directory that it runs from.
const REWRITES: [&str; 7] = [
    "chmod u+w helper; echo CODE=forged >helper",
    // Of the same size and time.
    "touch -r helper ../time; chmod u+w helper; echo CODE=bad >helper; touch -r ../time helper",
    "echo CODE=forged >new; mv -f new helper",
    "rm -f helper",
    "rm -f helper; mkfifo helper",
    "rm -f helper; echo CODE=forged >../forged; ln -s ../forged helper",
    "echo CODE=forged >extra",
];

#[test]
fn code_that_a_call_rewrote_is_exported_again_for_the_next_one() {
    for rewrite in REWRITES {
        let code = format!(
            r#"here=$(dirname "$0")
            . "$here/helper"; [ ! -e "$here/extra" ] || . "$here/extra"
            {{ cat "$1"; echo $CODE; }} >"$2"
            cd "$here"; {rewrite}"#
        );
        let lab = Lab::task("Inputs: 'x'\n(code (code (code INPUT('x'))[0])[0])[0]");
        let lab = lab.computation("code", "a", "b", &code);
        let lab = lab.file("computations/code/helper", "CODE=old\n").commit();
        lab.ce_run(&["-j1"]).exit(0);
        assert_eq!(lab.output(), "17\nold\nold\nold\n", "{rewrite}");
        assert!(lab.is_tidy(), "{rewrite}");
    }
}

#[test]
fn calls_that_run_at_once_run_from_directories_of_their_own() {
    let code = r#"
        . "$(dirname "$0")/helper"
        case $(cat "$1") in
            17) echo CODE=forged >"$(dirname "$0")/new"; mv -f "$(dirname "$0")/new" "$(dirname "$0")/helper"
                echo done >"$LAB_MEET";;
            *) read -r done <"$LAB_MEET"; . "$(dirname "$0")/helper";;
        esac
        echo $CODE >"$2""#;
    let lab = Lab::task("Inputs: 'x', 'y'\n(add (code INPUT('x'))[0] (code INPUT('y'))[0])[0]");
    let lab = lab.computation("code", "a", "b", code);
    let lab = lab.computation("add", "a b", "c", r#"cat "$1" "$2" >"$3""#);
    let lab = lab.file("computations/code/helper", "CODE=old\n").commit();
    crate::fifo::make(&lab.path("meet"));
    let mut command = lab.evaluation(&["-j2"]);
    lab.finish(command.env("LAB_MEET", lab.path("meet"))).exit(0);
    assert_eq!(lab.output(), "old\nold\n");
}

/// Runs an isolated task; does something to the shared export of `code` while its first call is executed. Returns where that is.
fn beside_the_export(act: impl FnOnce(&Path)) -> (Lab, PathBuf) {
    let lab = lab();
    let (meet, wait) = (lab.path("here"), lab.path("there"));
    let grants = format!("env LAB_*\nwrite {}\nwrite {}\n", meet.display(), wait.display());
    let lab = lab.file("computations/code/access", grants).isolated().commit();
    let (fifo, never) = (Fifo::new(&meet), Never::new(wait.clone()));
    let mut command = lab.evaluation(&["-j1"]);
    let running = Running::start(command.env("LAB_MEET", &meet).env("LAB_WAIT", &wait));
    assert_eq!(fifo.line(), "here");
    let helper = lab.storage().into_iter().find(|it| it.ends_with("/helper")).unwrap();
    let export = lab.path("storage").join(helper).parent().unwrap().to_owned();
    act(&export);
    fs::write(&wait, "go on\n").unwrap();
    drop(never);
    let output = running.output();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{told}");
    (lab, export)
}

#[test]
fn a_shared_export_that_is_changed_during_a_run_is_made_again() {
    if !isolation::is_possible() {
        return; // Nothing is exported to be shared.
    }
    let (lab, export) = beside_the_export(|export| {
        // The waiting call reads it as well.
        fs::write(export.with_file_name("forged"), "CODE=new\n").unwrap();
        fs::rename(export.with_file_name("forged"), export.join("helper")).unwrap();
    });
    assert_eq!(lab.output(), "17\nnew\nold\nother\nold\n");
    assert_eq!(fs::read_to_string(export.join("helper")).unwrap(), "CODE=old\n");
    assert!(lab.storage().iter().any(|name| name.starts_with("trees/aside/")));
}

/// As a collection on another host does that has not seen what this run has announced.
#[test]
fn a_shared_export_that_is_taken_away_during_a_run_is_made_again() {
    if !isolation::is_possible() {
        return;
    }
    let away = |export: &Path| export.parent().unwrap().with_file_name("away");
    let (lab, export) = beside_the_export(|export| fs::rename(export, away(export)).unwrap());
    assert_eq!(lab.output(), "17\nold\nold\nother\nold\n");
    assert!(export.join("helper").exists() && away(&export).join("helper").exists());
}
