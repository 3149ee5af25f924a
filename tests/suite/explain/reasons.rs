//! Every reason for which a call would run, and the causes behind it.

use std::fs;

use serde_json::json;

use super::change::is_what_git_tells;
use super::{LIBRARIES, TASK, append, commit, evaluated, explain, record, told, whys};
use crate::lab::{Lab, Library};

#[test]
fn an_input_that_differs_is_followed_down_to_the_first_cause() {
    let lab = evaluated(Library::Submodules);
    // It gives something else, which is not there for `add`.
    append(&lab.path("task/computations/mul/exec"), "echo 1000 >\"$3\"\n");
    commit(&lab, Library::Submodules, "mul", "mul: otherwise\n");
    let before = lab.storage();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["add", "mul"]);
    let new = |name: &&String| name.starts_with("c_add/") && !before.contains(name);
    for name in lab.storage().iter().filter(new) {
        fs::remove_file(lab.path("storage").join(name)).unwrap();
    }
    assert_eq!(whys(&lab, &[]), ["add: input0 <- computation:mul"]);
    let (causes, calls, _) = told(&lab, &[], 3);
    is_what_git_tells(&lab, &causes[0]);
    let was = calls[0]["why"][0]["old"]["sha1"].as_str().unwrap();
    explain(&lab, &["-v"])
        .exit(3)
        .shows("\n[1] mul changed: was ")
        .shows(&format!("    input 00 (a) differs: was {}, is ", &was[..12]));
}

#[test]
fn a_differing_task_input_is_the_cause_for_all_its_readers() {
    let lab = evaluated(Library::Plain).data("y", "6\n");
    let expected = ["mul: input1 <- input:y", "add: waits0 <- input:y"];
    assert_eq!(whys(&lab, &[]), expected);
    let ran = explain(&lab, &[]).exit(3).shows("2 calls would run, 1 of them only if");
    ran.shows("\n[1] the task input y differs: was 5, is 6: 2 calls\n");
    // A text that is long, or gone, is known by its digits.
    let lab = lab.data("y", "6".repeat(300));
    explain(&lab, &[]).exit(3).shows("\n[1] the task input y differs: was 5d9474c0309b, is ");
    let lab = lab.data("y", "6\n");
    // The product is there, and so is the sum: found results are not reported.
    lab.ce_run(&["--no-sync"]).exit(0);
    explain(&lab, &[]).exit(0).shows("nothing would run: all results are there\n");
}

#[test]
fn a_workflow_that_changed_is_reported() {
    let lab =
        evaluated(Library::Submodules).file("workflow/inputs/01-x/value", "y\n").commit_again();
    assert_eq!(whys(&lab, &[]), ["add: input1 <- input:y"]);
    // A task input in place of the product.
    let lab = evaluated(Library::Submodules).without("workflow/inputs/00-mul");
    let lab = lab.file("workflow/inputs/00-y/kind", "input\n");
    let lab = lab.file("workflow/inputs/00-y/value", "y\n").commit_again();
    assert_eq!(whys(&lab, &[]), ["add: other_source0 <- other_source:add"]);
    explain(&lab, &["-v"]).exit(3).shows("    input 00 (a) has another source than before [1]\n");
    // With the other input exchanged as well, nothing is as it was.
    let lab = lab.file("workflow/inputs/01-x/kind", "literal\n");
    let lab = lab.file("workflow/inputs/01-x/value", "by hand/number\n").commit_again();
    let why = "never_computed <- never_computed:add, no_literal1 <- no_literal:by hand/number";
    assert_eq!(whys(&lab, &[]), [format!("add: {why}")]);
}

#[test]
fn uncommitted_changes_are_reported_with_their_files() {
    for library in LIBRARIES {
        let lab = evaluated(library);
        append(&lab.path("task/computations/mul/exec"), "# more\n");
        explain(&lab, &[]).exit(2).says("computations/mul: has uncommitted changes: exec");
        assert_eq!(
            whys(&lab, &["--dirty"]),
            ["mul: uncommitted <- uncommitted:mul", "add: waits0 <- uncommitted:mul"]
        );
        let ran = explain(&lab, &["--dirty"]).exit(3);
        ran.shows("mul has uncommitted changes: was ")
            .shows("not committed: computations/mul/exec\n");
    }
}

#[test]
fn a_failure_is_reported_with_its_status_and_log() {
    let lab = Lab::task(TASK).computation("mul", "a b", "c", "echo no luck; exit 3").commit();
    lab.ce_run(&["--no-sync"]).exit(1);
    let expected = [
        "mul: failed_last <- failed_last:mul",
        "add: never_computed <- never_computed:add, waits0 <- failed_last:mul",
    ];
    assert_eq!(whys(&lab, &[]), expected);
    let (_, calls, _) = told(&lab, &[], 3);
    assert_eq!(calls[0]["why"][0]["failure"]["exit_status"], 3);
    assert_eq!(lab.stored(calls[0]["why"][0]["log"].as_str().unwrap()), "no luck\n");
    let told = "failed last; it ended with exit status 3, at ";
    explain(&lab, &["-v"]).exit(3).shows(&format!("    {told}")).shows("Z, log: ../storage/c_mul/");
    lab.ce_run(&["-n"]).exit(3).says(&format!("mul (mul): {told}")).says("ce-run: add (TASK): ");
}

#[test]
fn collected_results_are_reported() {
    let lab = evaluated(Library::Plain);
    lab.run("ce", &["gc", "--delete", "--no-keep", "--older=0s", "../storage"]).exit(0);
    let expected = [
        "mul: collected <- collected:mul",
        "add: collected <- collected:add, waits0 <- collected:mul",
    ];
    assert_eq!(whys(&lab, &[]), expected);
    explain(&lab, &["-v"]).exit(3).shows("    its result was collected at 2");
}

#[test]
fn outputs_that_are_gone_are_reported() {
    let lab = evaluated(Library::Plain);
    let output = lab.results().into_keys().find(|name| name.starts_with("c_mul/")).unwrap();
    fs::remove_file(lab.path("storage").join(output)).unwrap();
    assert_eq!(whys(&lab, &[]), ["mul: damaged <- damaged:mul", "add: waits0 <- damaged:mul"]);
}

#[test]
fn a_storage_without_results_has_nothing() {
    let lab = Lab::task(TASK).commit().with_storage();
    explain(&lab, &["-v"]).exit(3).shows("    never computed [1]\n");
    let ran = explain(&lab, &[]).exit(3);
    assert_eq!(
        ran.stdout,
        "2 calls would run: how long that takes is not known\n\n\
         [1] mul was never computed: 2 calls\n[2] add was never computed: 1 call\n\n\
         mul (mul): never computed [1]\n\
         add (TASK): never computed [2]\n"
    );
    assert!(lab.storage().is_empty());
}

#[test]
fn a_literal_that_differs_or_is_missing_is_reported() {
    let text = "Inputs: 'x', 'y'\n(add FILE('by hand/number') INPUT('x'))[0]";
    let lab = Lab::task(text).commit();
    fs::create_dir_all(lab.path("storage/tinputs")).unwrap();
    assert_eq!(
        whys(&lab, &[]),
        ["add: never_computed <- never_computed:add, no_literal0 <- no_literal:by hand/number"]
    );
    let number = lab.path("storage/by hand/number");
    fs::create_dir_all(number.parent().unwrap()).unwrap();
    fs::write(&number, "1\n").unwrap();
    lab.ce_run(&["--no-sync"]).exit(0);
    fs::write(&number, "2\n").unwrap();
    assert_eq!(whys(&lab, &[]), ["add: input0 <- literal:by hand/number"]);
}

#[test]
fn the_remaining_time_is_estimated_from_earlier_calls() {
    let lab = evaluated(Library::Plain).data("y", "6\n");
    for (of, end) in [("c_mul/", "2026-01-01T10:00:40Z"), ("c_add/", "2026-01-01T10:03:00Z")] {
        record(&lab, of, &[("start", "2026-01-01T10:00:00Z"), ("end", end)]);
    }
    let (_, calls, end) = told(&lab, &[], 3);
    assert_eq!([&calls[0]["seconds"], &calls[1]["seconds"]], [40.0, 180.0]);
    assert_eq!((&end["seconds"], &end["unknown"]), (&json!(220.0), &json!(0)));
    explain(&lab, &[])
        .exit(3)
        .shows("the outputs that they wait for change: about 3m 40s of computing\n");
}

#[test]
fn records_that_cannot_be_read_are_left_out() {
    let lab = evaluated(Library::Plain).data("y", "6\n");
    let records = lab.storage().into_iter().filter(|name| name.contains("/record/"));
    let record = records.into_iter().find(|name| name.starts_with("c_mul/")).unwrap();
    for spoiled in ["{", "{\"format\": 1000}", ""] {
        fs::write(lab.path("storage").join(&record), spoiled).unwrap();
        let ran = explain(&lab, &[]).exit(3);
        ran.says("ce: warning: 1 record cannot be read\n  try: ce verify");
        let expected =
            ["mul: never_computed <- never_computed:mul", "add: waits0 <- never_computed:mul"];
        assert_eq!(whys(&lab, &[]), expected);
    }
}

#[test]
fn an_isolated_call_is_not_repeated_for_another_commit() {
    let lab = evaluated(Library::Plain).data("y", "6\n").file("README", "").commit_again();
    let expected = [
        "mul: computation <- computation:mul, input1 <- input:y",
        "add: computation <- computation:add, waits0 <- computation:mul input:y",
    ];
    assert_eq!(whys(&lab, &[]), expected);
    record(&lab, "c_", &[("isolation", "namespaces")]);
    assert_eq!(whys(&lab, &[]), ["mul: input1 <- input:y", "add: waits0 <- input:y"]);
}

#[test]
fn members_of_a_directory_that_differ_are_named() {
    let mut lab = Lab::task("Inputs: 'dir'\n(count INPUT('dir'))[0]").computation(
        "count",
        "dir",
        "n",
        r#"ls "$1" | wc -l >"$2""#,
    );
    for member in ["a", "b/c", "d"] {
        lab = lab.data(&format!("tree/{member}"), "1\n");
    }
    lab.inputs = vec!["tree".to_owned()];
    let lab = lab.commit();
    lab.ce_run(&[]).exit(0);
    let lab = lab.data("tree/.DS_Store", "junk\n").data("tree/b/c", "2\n");
    fs::remove_file(lab.path("data/tree/d")).unwrap();
    let told = ".DS_Store was added, b/c was changed, d is missing";
    let arguments = ["../storage", "../data/tree"];
    let explain = |options: &[&str]| lab.run("ce", &[&["explain"], options, &arguments].concat());
    lab.unchanged(|| explain(&["-v"]).exit(3).shows(&format!("({told})")));
    let warning = "warning: the input dir has .DS_Store, which another program has left there";
    lab.ce_run(&[]).exit(0).says(warning).says("try: remove it; or give");
    fs::remove_file(lab.path("data/tree/.DS_Store")).unwrap();
    let ran = lab.ce_run(&[]).exit(0);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    fs::write(lab.path("data/tree/a"), "3\n").unwrap();
    let json = explain(&["--json"]).exit(3).stdout;
    assert!(json.contains(r#""members":["a was changed"]"#), "{json}");
    // Leftovers beside an exec are not meant to be committed.
    let lab = lab.file("computations/count/__pycache__/m.pyc", "left");
    lab.ce_run(&[]).exit(2).says("try: remove what other programs have left there");
    lab.file("computations/count/more", "x").ce_run(&[]).exit(2).says("git commit the others");
}
