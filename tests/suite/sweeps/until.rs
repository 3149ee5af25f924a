//! Replicates until it is enough.

use super::sweep;
use crate::faults::stride;
use crate::lab::{Lab, Library};
use crate::shared::away::away;

/// A measurement whose interval is the wider, the larger `n` is. Four times the vector of the unit tests if it is 1.
const TIME: &str = r#"n=$(cat "$1") r=$(cat "$2"); echo $((400 + 37 * r % 41 * n)) >"$3""#;

/// A sweep over `n` with these replicates.
pub(crate) fn measured(levels: &str, replicates: &str) -> Lab {
    sweep("", &[("factors/00-n", levels), ("replicates", replicates), ("columns", "00 seconds")])
        .computation("time", "n replicate", "out", TIME)
        .call("inputs/00-body/", "time", &["n", "replicate"])
}

/// The numbers of rows of each `n` in the table.
#[track_caller]
fn rows(lab: &Lab, levels: &[u32]) -> Vec<usize> {
    let table = lab.table();
    let count = |n: &u32| table.matches(&format!("{{\"n\":{n},")).count();
    levels.iter().map(count).collect()
}

#[test]
fn each_point_ends_when_its_median_is_certain_enough() {
    let lab = measured("1\n2\n9\n", "10..45 until seconds ±5%\n").commit_with(Library::Submodule);
    let lab = lab.with_storage();
    lab.run("ce", &["check"]).exit(0).shows(": 0 inputs, at least 30 calls, 1 table, ");
    lab.ce_run(&["-n"]).exit(3).says("at least 30 calls: 30 missing").called(vec![]);
    lab.run("ce", &["explain", "../storage"]).exit(3).shows("at least 30 calls would run");
    let json = lab.run("ce", &["explain", "--json", "../storage"]).exit(3).stdout.clone();
    assert!(json.contains("\"at_least\":true"), "{json}");
    lab.run("ce", &["table", "../storage"]).exit(3).says("at least 30 rows: 30 missing");
    let ran = lab.ce_run(&["-j4"]).exit(0).called(vec!["time"; 70]);
    let told = "the median of seconds is less certain than ±5% at 1 point: ±9.8% after 45 replicates at n=9";
    assert_eq!(ran.stderr.matches(told).count(), 1, "{}", ran.stderr);
    let points = "points: n (3) x 10 to 45 replicates until seconds ±5%: 70 points; 1 median is less certain";
    assert_eq!(ran.stdout.matches(points).count(), 1, "{}", ran.stdout);
    assert_eq!(rows(&lab, &[1, 2, 9]), [10, 15, 45]);
    let last =
        "{\"n\":2,\"replicate\":15,\"seconds\":444}\n{\"n\":9,\"replicate\":1,\"seconds\":733}\n";
    assert!(lab.table().contains(last), "{}", lab.table());
    lab.ce_run(&["-n"]).exit(0).says("70 calls: 70 reused; 1 table: 1 reused");
    lab.run("ce", &["table", "../storage"]).exit(0).says("ce: 70 rows: 70 ok");
    // The bytes depend on no order.
    let table = lab.table();
    std::fs::remove_dir_all(lab.path("storage")).unwrap();
    lab.ce_run(&["-j1"]).exit(0).called(vec!["time"; 70]);
    assert_eq!(lab.table(), table);
    // Looks are at the present values: another share measures nothing anew.
    let lab = lab.file("workflow/replicates", "10..45 until seconds +-4 %").commit_again();
    lab.ce_run(&[]).exit(0).called(vec!["time"; 15]);
    assert_eq!(rows(&lab, &[1, 2, 9]), [10, 30, 45]);
    let lab = lab.file("workflow/replicates", "10..45 until seconds ±50%").commit_again();
    lab.ce_run(&[]).exit(0).called(vec![]);
    assert_eq!(rows(&lab, &[1, 2, 9]), [10, 10, 10]);
}

#[test]
fn a_rule_reuses_the_replicates_of_a_fixed_number() {
    let lab = measured("1\n2\n", "10").commit_with(Library::Submodule);
    lab.ce_run(&[]).exit(0).called(vec!["time"; 20]);
    let lab = lab.file("workflow/replicates", "10..100 until seconds ±5%").commit_again();
    lab.ce_run(&[]).exit(0).called(vec!["time"; 5]).says("25 calls: 20 reused, 5 computed");
    assert_eq!(rows(&lab, &[1, 2]), [10, 15]);
}

/// Each round has all points that go on, replicate by replicate.
#[test]
fn points_that_go_on_are_interleaved() {
    let lab = measured("2\n3\n4\n", "6..12 until seconds ±0.1%").commit();
    let ran = lab.ce_run(&["-j1", "--json"]).exit(0);
    let begun = ran.stdout.lines().filter(|line| line.contains("\"event\":\"started\""));
    let replicates: Vec<u32> = begun
        .map(|line| {
            let (_, rest) = line.split_once("\"replicate\":\"").unwrap_or_else(|| panic!("{line}"));
            rest.split('"').next().unwrap().parse().unwrap()
        })
        .collect();
    let expected: Vec<u32> = (1..=12).flat_map(|replicate| [replicate; 3]).collect();
    assert_eq!(replicates, expected);
}

/// Of each replicate that is there, nothing is measured again, and the table is the same whenever a run dies.
#[test]
fn a_run_that_dies_at_any_operation_leaves_no_other_number_of_replicates() {
    let lab = measured("1\n30\n", "6..8 until seconds ±5%").commit();
    lab.ce_run(&[]).exit(0).says("14 calls: 14 computed");
    let (table, rows) = (lab.table(), rows(&lab, &[1, 30]));
    assert_eq!(rows, [6, 8]);
    for at in (1..).step_by(stride(60)) {
        drop(std::fs::remove_dir_all(lab.path("storage")));
        let fault = format!("{at}:KILL");
        let died = lab.finish(lab.evaluation(&["-j1"]).env("CE_FAULT", &fault));
        if died.status.code() == Some(0) {
            assert!(at > 200, "{at} operations were tried");
            return;
        }
        let kept = lab.results();
        let kept = kept.keys().filter(|name| name.starts_with("c_time/")).count();
        let next = lab.ce_run(&["-j2"]);
        assert_eq!(next.status.code(), Some(0), "after {fault}\n{}", next.stderr);
        let reused = next.stderr.split_once(" reused").map_or("0", |(before, _)| before);
        let reused: usize = reused.rsplit(' ').next().unwrap().parse().unwrap();
        assert!(reused >= kept, "after {fault}: {kept} were there\n{}", next.stderr);
        assert_eq!(lab.table(), table, "after {fault}");
        assert!(lab.is_tidy(), "after {fault}: {:?}", lab.storage());
    }
}

#[test]
fn failed_replicates_are_rows_and_no_values() {
    let script = format!("[ \"$(cat \"$2\")\" != 2 ] || exit 1\n{TIME}");
    let lab = measured("1\n", "6..30 until seconds ±50%")
        .computation("time", "n replicate", "out", &script)
        .commit();
    // As of any number of replicates, one that fails blocks the table.
    lab.ce_run(&[]).exit(1).called(vec!["time"; 6]);
    let lab = lab.file("workflow/allow-failed", "").commit_again();
    // Five values have no interval.
    lab.ce_run(&["--only", "time"]).says("10 calls: 9 computed, 1 failed");
    lab.ce_run(&[]).exit(0).says("10 calls");
    assert_eq!(rows(&lab, &[1]), [10]);
    assert_eq!(lab.table().matches("\"seconds\":null,\"status\":\"failed\"").count(), 1);
    let lab = lab.computation("time", "n replicate", "out", "exit 1").commit_again();
    lab.ce_run(&[])
        .exit(0)
        .says("at 1 point: half of the replicates have failed after 6 replicates")
        .says("try: ce table says why they failed");
    assert_eq!(rows(&lab, &[1]), [6]);
}

/// A replicate that waits for a failed call has failed, too, although it has no name.
#[test]
fn replicates_that_are_blocked_have_failed_too() {
    let lab = measured("1\n", "6..30 until seconds ±50%")
        .computation("build", "replicate", "built", "[ $(cat $1) -gt 4 ] && cp $1 $2")
        .without("workflow/inputs/00-body/inputs/01-1")
        .call("inputs/00-body/inputs/01-1/", "build", &["replicate"])
        .file("workflow/allow-failed", "")
        .commit();
    lab.ce_run(&[])
        .exit(0)
        .says("at 1 point: half of the replicates have failed after 6 replicates");
    assert_eq!(rows(&lab, &[1]), [6]);
}

#[test]
fn an_invalid_number_is_an_error_of_its_row() {
    let mut lab = measured("1\n2\n", "6..30 until seconds ±5%").commit();
    let one = "replicates end by the column \"seconds\", and at n=1 replicate=1 has";
    let hint = "let exec write one finite number as JSON spells it, such as 0.25 and not .25";
    for (script, columns, what) in [
        ("echo fast >$3", "00 seconds", "\"fast\", which is not a finite number"),
        ("echo 1e999 >$3", "00 seconds", "\"1e999\", which is not a finite number"),
        ("head -c 2000 /dev/zero >$3", "00 seconds", "no number"),
        ("echo '{\"seconds\":\"7\"}' >$3", "00 *", "\"7\", which is not a finite number"),
        ("echo '{\"seconds\":null}' >$3", "00 *", "no number"),
    ] {
        lab = lab.computation("time", "n replicate", "out", script);
        lab = lab.file("workflow/columns", columns).commit_again();
        let told = format!("SWEEP (TASK) failed: {one} {what}\n");
        lab.ce_run(&[]).exit(1).says(&told).says(hint);
    }
    let lab = lab.computation("time", "n replicate", "out", "echo '{\"second\":7}' >$3");
    let none = "replicates end by the column \"seconds\", which the results do not have\n";
    lab.commit_again().ce_run(&[]).exit(1).says(none).says("did you mean \"second\"?");
}

#[test]
fn the_rule_applies_to_fields_and_equal_values() {
    let lab = measured("0\n", "6..30 until seconds ±1%")
        .computation(
            "time",
            "n replicate",
            "out",
            "echo '{\"seconds\":0,\"other\":'$(cat $2)'}' >$3",
        )
        .file("workflow/columns", "00 *")
        .commit();
    lab.ce_run(&[]).exit(0).called(vec!["time"; 6]);
    // Of zero, nothing is a share.
    let script = "echo '{\"seconds\":'$(($(cat $2) % 3 - 1))'}' >$3";
    let lab = lab.computation("time", "n replicate", "out", script).commit_again();
    lab.ce_run(&[])
        .exit(0)
        .says("the median is 0, and nothing is a share of 0 after 6 replicates")
        .says("try: look at a column whose median is not 0");
    // Replicates that rest on one call are one value.
    let lab = lab
        .computation("time", "n replicate", "out", "cp $1 $3")
        .computation("none", "replicate", "none", ">$2")
        .without("workflow/inputs/00-body")
        .node("inputs/00-body/", "computation", "time")
        .node("inputs/00-body/inputs/00-n/", "input", "n")
        .call("inputs/00-body/inputs/01-r/", "none", &["replicate"])
        .file("workflow/columns", "00 seconds")
        .file("workflow/replicates", "6..10 until seconds ±1%")
        .commit_again();
    lab.ce_run(&[])
        .exit(0)
        .says("no interval after 10 replicates at n=0")
        .says("an interval needs 6 values");
}

/// Points are marked where they are shown, and replicates that nobody asks for are not excluded.
#[test]
fn points_that_are_less_certain_are_marked() {
    let lab = measured("1\n9\n7\n", "6..15 until seconds ±5%\n")
        .file("workflow/exclude.tsv", "n\n7\n")
        .commit();
    let table = |options: &[&str]| {
        let ran = lab.run("ce", &[&["table", "../storage"], options].concat());
        (ran.status.code(), ran.stdout.clone())
    };
    lab.ce_run(&["--where", "n=1"]).exit(0);
    let (code, rows) = table(&["--csv"]);
    assert_eq!((code, rows.matches(",missing,").count()), (Some(3), 6), "{rows}");
    assert_eq!((rows.matches(",excluded,").count(), rows.matches("±").count()), (6, 0), "{rows}");
    lab.ce_run(&[]).exit(0);
    let (code, rows) = table(&["--csv"]);
    assert_eq!((code, rows.matches(",ok,").count()), (Some(0), 21), "{rows}");
    assert_eq!((rows.matches(",excluded,").count(), rows.matches(",±15%,").count()), (6, 15));
    let (_, summary) = table(&["--summary", "--csv"]);
    assert_eq!(
        summary,
        "n,seconds n,seconds median,seconds low,seconds high,not ok,uncertain\n1,6,427,417,437,0,\n9,15,625,517,697,0,±15%\n"
    );
    let (_, json) = table(&["--summary", "--json"]);
    assert_eq!(json.matches("\"uncertain\":\"±15%\"").count(), 1, "{json}");
    // The page of the task, and that of the recorded table alone.
    for options in [&["--task", "."][..], &[]] {
        let all = [&["report", "-o", "../page.html"], options, &["../storage"]].concat();
        lab.run("ce", &all).exit(0);
        let page = std::fs::read_to_string(lab.path("page.html")).unwrap();
        let told = "Each point was measured until its median is known to ±5%";
        assert_eq!(page.matches(told).count(), 1, "{page}");
        assert_eq!(page.matches("± 15 % *</td>").count(), 1, "{page}");
        assert_eq!(page.matches("± 2.4 %</td>").count(), 1, "{page}");
    }
}

#[test]
fn replicates_that_are_left_out_do_not_count() {
    let lab = measured("9\n", "10..30 until seconds ±5%\n");
    let lab = lab.file("workflow/where", "replicate <= 8").commit_with(Library::Submodule);
    let ran = lab.ce_run(&[]).exit(0).called(vec!["time"; 8]);
    let ran = ran.says("% after 8 replicates at n=9\n  try: leave out fewer replicates");
    assert!(!ran.stderr.contains("30"), "{}", ran.stderr);
    let lab = lab.file("workflow/where", "replicate <= 12").commit_again();
    lab.ce_run(&[]).exit(0).called(vec!["time"; 4]).says("% after 12 replicates at n=9\n");
}

/// The results of a look are kept, sent and taken over.
#[test]
fn measured_replicates_are_kept_pushed_and_taken_over() {
    let lab = measured("1\n9\n", "6..10 until seconds ±5%\n").commit();
    lab.ce_run(&[]).exit(0);
    lab.settle();
    let kept = lab.results();
    lab.run("ce", &["gc", "--delete", "../storage"]).exit(0);
    assert_eq!(lab.results(), kept);
    lab.run("ce", &["verify", "../storage"]).exit(0);
    lab.run("ce", &["audit", "../storage"]).exit(0);
}

/// The number of replicates is seen in the table that was made of outputs that are away, and nothing is measured again for it.
#[test]
fn outputs_that_are_away_are_looked_at_in_the_table() {
    let lab = measured("1\n2\n", "10..100 until seconds ±5%").commit();
    lab.ce_run(&[]).exit(0).called(vec!["time"; 25]);
    away(&lab, "storage", "time");
    lab.ce_run(&["-n"]).exit(0).says("25 calls: 25 away; 1 table: 1 reused");
    lab.ce_run(&[]).exit(0).called(vec![]);
    // A table that was changed says nothing.
    let results = lab.results();
    let is_table = |name: &str| name.starts_with("tables/") && name.ends_with("/00");
    let (name, table) = results.iter().find(|(name, _)| is_table(name)).unwrap();
    let path = lab.path("storage").join(name);
    std::fs::remove_file(&path).unwrap();
    let changed = String::from_utf8_lossy(table).replace("\"seconds\":437", "\"seconds\":438");
    std::fs::write(&path, changed).unwrap();
    lab.ce_run(&["-n"]).exit(3).says("at least 20 calls: 20 missing");
}

/// Values that a table has recorded are shown, also of outputs that are away; values that none has are missing.
#[test]
fn outputs_that_are_away_are_shown_from_the_table() {
    // The same for each n: a row belongs to its point all the same.
    let script =
        r#"r=$(cat "$2"); echo "{\"seconds\":$((400 + 37 * r % 41)),\"kind\":\"x\"}" >"$3""#;
    for (columns, script) in [("00 seconds", TIME), ("00 *", script)] {
        let lab = measured("1\n2\n3\n", "6")
            .file("workflow/columns", columns)
            .computation("time", "n replicate", "out", script)
            .commit_with(Library::Submodule);
        lab.ce_run(&[]).exit(0);
        let shown = |options: &[&str], exit: i32| {
            lab.run("ce", &[options, &["../storage"]].concat()).exit(exit).stdout.clone()
        };
        let queries = [
            &["table", "--csv"][..],
            &["table", "--summary"],
            &["compare", "--task", ".", "--by", "n=1,2"],
        ];
        let before = queries.map(|options| shown(options, 0));
        away(&lab, "storage", "time");
        assert_eq!(queries.map(|options| shown(options, 0)), before, "{columns}");
        // Points that no table has are missing, the others are still shown.
        let lab = lab.file("workflow/factors/00-n", "1\n9\n").commit_again();
        let rows = lab.run("ce", &["table", "--csv", "../storage"]).exit(3);
        assert_eq!(rows.stdout.matches(",ok,").count(), 6, "{}", rows.stdout);
        assert_eq!(rows.stdout.matches(",missing,").count(), 6, "{}", rows.stdout);
    }
}

/// A user who asks for replicates by their numbers gets these, else points are looked at as ever.
#[test]
fn selected_points_end_by_the_rule_too() {
    let lab = measured("1\n2\n9\n", "10..45 until seconds ±5%\n").commit();
    lab.ce_run(&["--where", "n=2"]).exit(0).called(vec!["time"; 15]);
    lab.ce_run(&["--where", "n=1", "--where", "replicate=40"]).exit(0).called(vec!["time"]);
    lab.ce_run(&["--only", "time"]).exit(0).called(vec!["time"; 55]);
    lab.ce_run(&[]).exit(0).called(vec![]).says("1 table: 1 made");
}

#[test]
fn points_may_be_computed_excluded_and_nested() {
    let lab = Lab::task(
        "Inputs: sheet\nSWEEP((lines SWEEP((time n replicate) :columns '00 seconds' :exclude ('n' 'replicate') ('2' '1') :points sheet :names 'n' \
         :replicates '10..45 until seconds ±5%') scale) :over scale 1 2)",
    );
    let mut lab = lab
        .computation("time", "n replicate", "out", TIME)
        .computation("lines", "table scale", "lines", r#"grep -c . "$1" >"$3""#)
        .data("sheet", "n,who\n1,me\n2,you\n");
    lab.inputs = vec!["sheet".to_owned()];
    let lab = lab.commit();
    let mut called = vec!["time"; 29];
    called.extend(["lines"; 2]);
    lab.ce_run(&[]).exit(0).called(called);
    assert_eq!(lab.table(), "{\"scale\":1,\"lines\":29}\n{\"scale\":2,\"lines\":29}\n");
    let all = lab.run("ce", &["table", "--csv", "../storage", "sheet"]);
    assert_eq!(all.stdout.matches(",excluded").count(), 0);
}
