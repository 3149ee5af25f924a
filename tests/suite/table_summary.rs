//! `ce table --summary`: medians and their intervals for each point, over all replicates.

use serde_json::json;

use crate::lab::Lab;
use crate::sweeps::sweep;
use crate::table_command::{rows, table};

/// A sweep over `n`, with a label, whose body writes how long it has taken, and whether it is warm.
fn lab(replicates: &str, body: &str) -> Lab {
    sweep(
        "",
        &[
            ("factors/00-n.tsv", "n\tlabel\n1\tone\n2\ttwo\n"),
            ("replicates", replicates),
            ("columns", "00 seconds [s] less\n01 state\n"),
        ],
    )
    .computation("measure", "n replicate", "seconds state", body)
    .call("inputs/00-body/", "measure", &["n", "replicate"])
    .commit()
    .with_storage()
}

/// One value of replicate 3 of 2 is far away, and one has failed.
const BODY: &str = r#"n=$(cat "$1") r=$(cat "$2"); [ $n$r != 27 ] || exit 1
[ $n$r != 23 ] || r=90; echo "$n.$r" >"$3"; echo warm >"$4""#;

#[test]
fn a_summary_has_a_row_for_each_point_without_its_replicate() {
    let lab = lab("7\n", BODY);
    lab.ce_run(&["--no-sync"]).exit(1);
    let ran = table(&lab, &["--summary"]).exit(3);
    let text: Vec<Vec<&str>> =
        ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    let expected =
        ["n label n seconds [s] low high not ok", "1 one 7 1.4 1.1 1.7", "2 two 6 2.45 2.1 2.9 1"];
    assert_eq!(text.iter().map(|line| line.join(" ")).collect::<Vec<_>>(), expected);
    let ran = ran.says("ce: low and high are a 95 % confidence interval of the median\n");
    ran.says("14 rows: 13 ok, 1 failed");
    let csv = table(&lab, &["--summary", "--csv"]).exit(3);
    let header = "n,label,seconds n,seconds median,seconds low,seconds high,not ok";
    assert_eq!(csv.lines(), [header, "1,one,7,1.4,1.1,1.7,0", "2,two,6,2.45,2.1,2.9,1"]);
    let seconds = json!({
        "unit": "s", "better": "less", "n": 6, "median": 2.45, "low": 2.1, "high": 2.9, "confidence": 0.95
    });
    let second = json!({
        "point": {"n": 2, "label": "two"}, "columns": {"seconds": seconds}, "not_ok": 1
    });
    assert_eq!(rows(&lab, &["--summary"], 3)[1], second);
    let lab = lab.file("workflow/replicates", "2\n").commit_again();
    lab.ce_run(&["--no-sync"]).exit(0);
    let few = "low and high are the least and the largest value: a confidence interval needs 6";
    table(&lab, &["--summary"]).exit(0).shows("1  one    2         1.15  1.1   1.2\n").says(few);
    let lab = lab.file("workflow/replicates", "6\n");
    let lab = lab.file("workflow/exclude.tsv", "n\treplicate\n1\t6\n").commit_again();
    lab.ce_run(&["--no-sync"]).exit(0);
    table(&lab, &["--summary"]).exit(0).says("or the least and the largest value where n is below");
}

#[test]
fn a_numeric_column_with_a_text_is_left_out_with_a_warning() {
    let lab =
        lab("6\n", r#"r=$(cat "$2"); [ $r != 4 ] || r=timeout; echo $r >"$3"; echo warm >"$4""#);
    lab.ce_run(&["--no-sync"]).exit(0);
    let told = "ce: seconds is left out: one of its values is \"timeout\", which is not a number\n";
    let ran = table(&lab, &["--summary"]).exit(0).says(told);
    assert!(
        !ran.stderr.contains("state is left out"),
        "a column of texts is not a column of numbers"
    );
}

/// A name like a commit's: the later, the less.
fn commit(at: usize) -> String {
    format!("{:08x}{:032x}", 0xabc0_0000_usize - at, 0)
}

/// A sweep over commits, whose body has the time from a list: a step at the eighth, and a spike.
fn history() -> Lab {
    let seconds = "1.00 1.02 0.99 9.00 1.00 1.03 1.01 1.30 1.31 1.29 1.30 1.33 1.31 1.30";
    let rows = (0..14).map(|at| format!("{}\tremark {at}\n", commit(at)));
    let sheet = format!("commit\tsubject\n{}", rows.collect::<String>());
    let body: String = seconds
        .split(' ')
        .zip(0..)
        .map(|(value, at)| format!("[ $c != {} ] || echo {value} >\"$2\"\n", commit(at)))
        .collect();
    sweep("", &[("factors/00-commit.tsv", &sheet), ("columns", "00 seconds [s] less\n")])
        .computation("measure", "commit", "seconds", &format!("c=$(cat \"$1\")\n{body}"))
        .call("inputs/00-body/", "measure", &["commit"])
        .commit()
        .with_storage()
}

#[test]
fn steps_are_commits_at_which_the_level_changes_and_stays() {
    let lab = history();
    lab.ce_run(&["--no-sync"]).exit(0);
    let ran = table(&lab, &["--steps"]).exit(0);
    let [line] = ran.lines().try_into().unwrap();
    let commit = &commit(7)[..8];
    assert!(line.starts_with("seconds: +28.7 % ["), "{line}");
    assert!(line.contains(&format!("] at {commit} \"remark 7\", after ")), "{line}");
    let sheet = std::fs::read_to_string(lab.path("task/workflow/factors/00-commit.tsv")).unwrap();
    let first: String = sheet.lines().take(8).map(|line| format!("{line}\n")).collect();
    let lab = lab.file("workflow/factors/00-commit.tsv", first);
    let lab = lab.commit_again();
    lab.ce_run(&["--no-sync"]).exit(0);
    let few = table(&lab, &["--steps"]).exit(0);
    assert_eq!(few.stdout, "seconds: 7 measured commits, and steps need 8\n");
    table(&lab, &["--steps", "--json"]).exit(2).says("cannot be used with");
    table(&lab, &["--steps", "--at", "HEAD", "--at", "HEAD"]).exit(2).says("--steps takes one");
}

/// Commits that are listed the newest first are turned round by their dates.
#[test]
fn steps_go_from_old_to_new_by_dates() {
    let lab = history();
    let sheet = std::fs::read_to_string(lab.path("task/workflow/factors/00-commit.tsv")).unwrap();
    let (header, rows) = sheet.split_once('\n').unwrap();
    let dated =
        rows.lines().zip(10..).map(|(row, day)| format!("{row}\t2026-01-{day}T00:00:00Z\n"));
    let dated: Vec<String> = dated.collect();
    let sheet = |rows: Vec<String>| format!("{header}\tdate\n{}", rows.concat());
    let steps = |lab: &Lab| table(lab, &["--steps"]).exit(0).stdout.clone();
    let lab = lab.file("workflow/factors/00-commit.tsv", sheet(dated.clone())).commit_again();
    lab.ce_run(&[]).exit(0);
    let expected = steps(&lab);
    assert!(expected.contains("after"), "{expected}");
    let newest_first = sheet(dated.into_iter().rev().collect());
    let lab = lab.file("workflow/factors/00-commit.tsv", newest_first).commit_again();
    lab.ce_run(&[]).exit(0);
    assert_eq!(steps(&lab), expected);
}

#[test]
fn a_summary_takes_one_version_and_steps_need_commits() {
    let lab = lab("2\n", BODY);
    let two = ["--summary", "--at", "HEAD", "--at", "HEAD"];
    table(&lab, &two).exit(2).says("2 versions are given, and --summary takes one");
    table(&lab, &["--summary", "--all"]).exit(2).says("cannot be used with");
    table(&lab, &["--steps"])
        .exit(2)
        .says("there are no steps: no column of the points has commits");
    let ran = table(&lab, &["--summary"]).exit(3);
    // Nothing is there: no column is known to have numbers.
    assert_eq!(ran.stdout, "n  label  not ok\n1  one         2\n2  two         2\n");
}
