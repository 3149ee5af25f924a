//! The calls that are executed, and their inputs.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use crate::fifo::{Fifo, Never};
use crate::lab::{Lab, Library};

const SHARED: &str = "Inputs: 'x', 'y'
(add (mul INPUT('x')
          INPUT('y')
      )[0]
     (mul INPUT('x')
          INPUT('y')
      )[0]
 )[0]";

#[test]
fn a_call_is_executed_once_however_often_it_occurs() {
    let lab = Lab::task(SHARED).commit();
    lab.ce_run(&[]).exit(0).called(vec!["add", "mul"]).prints("run/shared.txt");
    lab.ce_run(&[]).exit(0).called(vec![]).prints("run/shared-again.txt");
    assert_eq!(lab.output(), "170\n");
}

#[test]
fn a_slice_may_turn_and_repeat_outputs() {
    let text = "Inputs: 'x', 'y'
        (divmod (divmod INPUT('x') INPUT('y'))[01, 00])[00, 01, 00]";
    let lab = Lab::task(text).commit();
    lab.ce_run(&[]).exit(0).called(vec!["divmod", "divmod"]).prints("run/turned.txt");
    let outputs = lab.ce_run(&["-q"]).exit(0).stdout;
    let outputs: Vec<_> = outputs.lines().map(|path| lab.stored(path)).collect();
    assert_eq!(outputs, ["0\n", "2\n", "0\n"]);
}

/// A task with two calls of `mul` whose inputs turn out to be equal.
pub(super) fn equal() -> Lab {
    let text = "Inputs: 'x', 'y', 'zero'
        (add (mul INPUT('x') INPUT('y'))[0] (mul (add INPUT('x') INPUT('zero'))[0] INPUT('y'))[0])[0]";
    Lab::task(text).data("zero", "0\n")
}

#[test]
fn calls_whose_inputs_turn_out_to_be_equal_are_executed_and_count_once() {
    let lab = equal().in_words().commit();
    lab.ce_run(&["-n"]).exit(3).says("4 calls: 4 missing");
    for jobs in ["-j1", "-j4"] {
        drop(fs::remove_dir_all(lab.path("storage")));
        let ran = lab.ce_run(&[jobs]).exit(0).says("3 calls: 3 computed");
        assert_eq!((lab.called().len(), lab.output().as_str()), (3, "170\n"));
        assert_eq!(ran.stdout.matches("  computed ").count(), 4, "{}", ran.stdout);
        lab.ce_run(&["-n"]).exit(0).says("3 calls: 3 reused");
        lab.ce_run(&[]).exit(0).says("3 calls: 3 reused");
    }
    fs::remove_dir_all(lab.path("storage")).unwrap();
    let events = lab.ce_run(&["--json"]).exit(0).stdout;
    assert_eq!(events.matches("\"outcome\":\"executed\"").count(), 4, "{events}");
    assert!(events.contains(r#""tally":{"calls":3,"reused":0,"taken_over":0,"executed":3,"#));
}

#[test]
fn exec_is_given_all_inputs_and_all_outputs_whatever_the_slice() {
    let lab = Lab::task("Inputs: 'x', 'y'\n(spy INPUT('x') INPUT('y'))[1]")
        .computation("spy", "a b", "one two three", r#"printf '%s\n' "$@" >"$4"; : >"$3" >"$5""#)
        .commit();
    lab.ce_run(&[]).exit(0);
    let text = lab.output();
    let paths: Vec<&Path> = text.lines().map(Path::new).collect();
    let storage = lab.path("storage").canonicalize().unwrap();
    assert_eq!(
        paths[..2],
        [storage.join("tinputs/ad/48103e4fc7"), storage.join("tinputs/5d/9474c0309b")]
    );
    assert_eq!(paths.len(), 5);
    assert!(paths[2..].iter().all(|path| path.starts_with(&storage)), "the same file system");
}

#[test]
fn exec_works_in_an_empty_private_directory_with_nothing_to_read() {
    let look = r#"{ pwd; ls -A | wc -l; wc -c; } >"$2"; touch left-behind"#;
    let lab = Lab::task("Inputs: 'x', 'y'\n(add (spy INPUT('x'))[0] (spy INPUT('y'))[0])[0]")
        .computation("spy", "a", "seen", look)
        .computation("add", "a b", "both", r#"cat "$1" "$2" >"$3""#)
        .commit();
    let anything = fs::File::open(lab.path("data/x")).unwrap();
    lab.finish(lab.evaluation(&[]).stdin(anything)).exit(0);
    let text = lab.output();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let [one, empty, nothing, other, ..] = lines[..] else { panic!("{text}") };
    assert_eq!((empty, nothing), ("0", "0"));
    assert_ne!(one, other);
    assert!(!Path::new(one).exists() && !Path::new(other).exists());
}

#[test]
fn leftovers_of_a_call_are_gone_before_the_next_one_gets_its_directory() {
    let look = r#"cat "$1" >"$2"; ls -A >>"$2"
        touch left-behind; cd "${2%/*}"; pwd >>"$2"; ls | grep left >>"$2"
        mkdir -p left/behind; touch left-too; echo left; echo "$2" >>log; exit 0"#;
    let lab = Lab::task("Inputs: 'x'\n(spy (spy INPUT('x'))[0])[0]")
        .computation("spy", "a", "seen", look)
        .commit();
    lab.ce_run(&["-j1"]).exit(0);
    let text = lab.output();
    let lines: Vec<&str> = text.lines().collect();
    let ["17", one, other] = lines[..] else { panic!("{text}") };
    assert_eq!(one, other, "the same directory");
    let logs: Vec<_> = lab.storage().into_iter().filter(|name| name.contains("/log/")).collect();
    assert_eq!(logs.len(), 2, "{logs:?}");
    assert!(logs.iter().all(|log| lab.stored(log).lines().count() == 2));
}

#[test]
fn processes_left_running_by_exec_are_ended() {
    let script = r#"exec 3>"$LAB_MEET"; cat "$LAB_WAIT" & : >"$2""#;
    let lab = Lab::task("Inputs: 'x'\n(daemon INPUT('x'))[0]")
        .computation("daemon", "a", "none", script)
        .commit();
    let (meet, never) = (lab.path("meet"), lab.path("never"));
    let (daemon, mut command) = (Fifo::new(&meet), lab.evaluation(&[]));
    command.env("LAB_MEET", meet).env("LAB_WAIT", &never);
    let _never = Never::new(never);
    lab.finish(&mut command).exit(0);
    daemon.end();
}

#[test]
fn a_workflow_may_be_a_single_input() {
    let lab = Lab::task("Inputs: 'x'\nINPUT('x')").commit();
    lab.ce_run(&["-n"]).exit(3);
    lab.ce_run(&[]).exit(0).prints("run/only-an-input.txt").complains("run/only-an-input.err");
    lab.ce_run(&["-n"]).exit(0);
}

#[test]
fn a_literal_is_a_file_in_the_storage() {
    let lab = Lab::task("Inputs: 'x'\n(add INPUT('x') FILE('by hand/number'))[0]").commit();
    lab.ce_run(&[])
        .exit(3)
        .called(vec![])
        .prints("run/no-literal.txt")
        .complains("run/no-literal.err");
    let quiet = lab.ce_run(&["-q"]).exit(3);
    assert_eq!(
        quiet.stderr,
        "ce-run: the literal by hand/number is not in the storage; put it at ../storage/by hand/number\n"
    );
    fs::create_dir_all(lab.path("storage/by hand")).unwrap();
    symlink("/etc/hostname", lab.path("storage/by hand/number")).unwrap();
    lab.ce_run(&[]).exit(3).shows("MISSING!!!");
    fs::remove_file(lab.path("storage/by hand/number")).unwrap();
    fs::write(lab.path("storage/by hand/number"), "4\n").unwrap();
    lab.ce_run(&[]).exit(0).called(vec!["add"]).prints("run/literal.txt");
    assert_eq!(lab.output(), "21\n");
}

#[test]
fn a_workflow_may_be_a_single_literal() {
    let lab = Lab::task("Inputs:\nFILE('tinputs/ad/48103e4fc7')").commit();
    lab.ce_run(&[]).exit(3).prints("run/only-a-missing-literal.txt");
    fs::create_dir_all(lab.path("storage/tinputs/ad")).unwrap();
    fs::write(lab.path("storage/tinputs/ad/48103e4fc7"), "17\n").unwrap();
    lab.ce_run(&[]).exit(0).prints("run/only-a-literal.txt");
}

#[test]
fn the_repository_of_the_computations_does_not_matter() {
    for library in [Library::Plain, Library::Submodule, Library::Submodules] {
        let lab = Lab::task(SHARED).commit_with(library);
        let name = format!("run/{library:?}.txt").to_lowercase();
        lab.ce_run(&[]).exit(0).called(vec!["add", "mul"]).prints(&name);
        lab.ce_run(&[]).exit(0).called(vec![]);
        assert_eq!(lab.output(), "170\n");
    }
}

#[test]
fn a_commit_of_the_task_alone_costs_nothing_if_the_library_is_a_submodule() {
    let lab = Lab::task(SHARED).commit_with(Library::Submodule);
    lab.ce_run(&[]).exit(0).called(vec!["add", "mul"]);
    let lab = lab.file("README", "words\n").commit_again();
    lab.ce_run(&[]).exit(0).called(vec![]);
    let jobs: Vec<_> = lab.results().into_keys().filter(|name| name.starts_with("t_")).collect();
    assert_eq!(jobs.len(), 2, "{jobs:?}");
}

#[test]
fn results_are_read_only_and_the_outputs_of_the_job_under_the_name_of_the_task() {
    let lab = Lab::task(SHARED).commit();
    lab.ce_run(&[]).exit(0).complains("run/job.err");
    let jobs: Vec<_> =
        lab.results().into_iter().filter(|(name, _)| name.starts_with("t_task/")).collect();
    let [(name, contents)] = &jobs[..] else { panic!("{jobs:?}") };
    assert!(name.ends_with("/00/ad48103e4fc7_5d9474c0309b"), "{name}");
    for name in lab.results().keys() {
        let mode = lab.path("storage").join(name).metadata().unwrap().mode();
        assert_eq!(mode & 0o222, 0, "{name} has mode {mode:o}");
    }
    assert_eq!(contents, b"170\n");
}
