//! The storage under faults: any operation of it fails, or the process dies there.
//!
//! The computation `twins` makes two outputs that are equal, and different each time; `same`
//! refuses inputs that differ. So outputs of two executions are never taken for outputs of one.
//!
//! The usual form takes some of the operations, so that the tests together take each. A longer form takes each in each
//! test: `CE_KILLS=300 cargo test --test suite faults`.

use std::fs;

use super::lab::Lab;

pub(crate) fn lab() -> Lab {
    let twins = r#"od -An -N8 -tx8 /dev/urandom >"$2"; cat "$2" >"$3""#;
    let same = r#"cmp "$1" "$2" && cat "$1" "$2" >"$3""#;
    Lab::task("Inputs: 'x'\n(same (twins INPUT('x'))[0, 1])[0]")
        .computation("twins", "seed", "one other", twins)
        .computation("same", "one other", "both", same)
        .commit()
}

/// Runs without faults, and checks everything that must hold then.
#[track_caller]
pub(crate) fn recovers(lab: &Lab, after: &str) {
    let ran = lab.ce_run(&["-j2"]);
    assert_eq!(ran.status.code(), Some(0), "after {after}\n{}\n{}", ran.stdout, ran.stderr);
    let output = |number: &str| {
        let results = lab.results();
        let mut twins = results.into_iter().filter(|(name, _)| {
            name.starts_with("c_twins/") && name.contains(&format!("/{number}/"))
        });
        let (_, contents) =
            twins.next().unwrap_or_else(|| panic!("no output {number} after {after}"));
        assert!(twins.next().is_none(), "one result after {after}");
        contents
    };
    assert_eq!(output("00"), output("01"), "of one execution after {after}");
    assert!(lab.is_tidy(), "nothing is left behind after {after}: {:?}", lab.storage());
    let again = lab.ce_run(&[]).exit(0);
    assert!(again.stderr.contains("2 calls: 2 reused"), "after {after}\n{}", again.stderr);
}

/// Returns the distance of the operations at which something happens: each is taken if `CE_KILLS` is set.
pub(crate) fn stride(usual: usize) -> usize {
    if std::env::var_os("CE_KILLS").is_some() { 1 } else { usual }
}

/// Whether one of several ways is taken in a case: each in its turn, or all if `CE_KILLS` is set.
pub(crate) fn is_taken(case: usize, way: usize, ways: usize) -> bool {
    let ways = stride(ways);
    case % ways == way % ways
}

/// Lets the k-th operation of a run fail, for every fifth k from the given one on, in one way after the other; returns how
/// many operations there are.
fn fail_everywhere(from: usize, faults: &[&str], check: impl Fn(Option<i32>, &str)) -> usize {
    let lab = lab();
    let step = stride(5);
    for (at, fault) in (from.min(step)..).step_by(step).zip(faults.iter().cycle()) {
        drop(fs::remove_dir_all(lab.path("storage")));
        let fault = format!("{at}{fault}");
        let ran = lab.finish(lab.evaluation(&["-j1"]).env("CE_FAULT", &fault));
        if !ran.stderr.contains("fault at operation") {
            assert_eq!(ran.status.code(), Some(0));
            return at - 1;
        }
        check(ran.status.code(), &format!("{fault}\n{}\n{}", ran.stdout, ran.stderr));
        recovers(&lab, &fault);
    }
    0
}

#[test]
fn a_full_disk_at_any_operation_loses_nothing() {
    let operations = fail_everywhere(1, &[":ENOSPC"], |code, told| {
        assert!(matches!(code, Some(0 | 5)), "{code:?} {told}");
    });
    assert!(operations > 50, "{operations} operations failed");
}

#[test]
fn a_disk_that_fails_once_at_any_operation_loses_nothing() {
    fail_everywhere(2, &[":EIO"], |code, told| {
        assert!(matches!(code, Some(0 | 5)), "{code:?} {told}");
        // Nobody asked to stop.
        assert!(!told.contains("interrupted"), "{told}");
    });
}

/// A refused operation is reported with its cause and advice, unless the run can do without it.
#[test]
fn a_storage_that_refuses_at_any_operation_loses_nothing() {
    let faults = [":EDQUOT", ":EACCES", ":ENAMETOOLONG", ":ESTALE", ":EROFS"];
    fail_everywhere(3, &faults, |code, told| match code {
        Some(0) => {}
        Some(5) => assert!(told.contains("\n  try: "), "{told}"),
        _ => panic!("{code:?} {told}"),
    });
}

#[test]
fn a_disk_that_fails_from_any_operation_on_is_reported() {
    fail_everywhere(4, &["+:EIO", "+:EROFS"], |code, told| {
        // At the very end there is nothing left but to tidy up, or a job that need not be kept.
        let done = ["job output", "the job's outputs were not stored"]
            .iter()
            .any(|end| told.contains(end));
        assert!(code == Some(5) || code == Some(0) && done, "{code:?} {told}");
    });
}

#[test]
fn a_run_that_dies_at_any_operation_leaves_a_usable_storage() {
    fail_everywhere(5, &[":KILL"], |code, told| assert_eq!(code, None, "{told}"));
}
