//! `ce compare`: medians of two levels, two commits or two files.

use serde_json::{Value, json};

use crate::lab::{Lab, Library};
use crate::program::Ran;
use crate::sweeps::sweep;
use crate::terminal::{Shown, Terminal};

/// Values of two sides; the new one is less.
const OLD: &str = "1726 1723 1707 1707 1713 1729 1736 1707 1705 1774";
const NEW: &str = "1423 1416 1411 1413 1412 1426 1422 1424 1447 1425";

/// Values with six more decimals, which move no end by rounding.
fn spelled(values: &str) -> impl Iterator<Item = String> {
    values.split(' ').map(|value| format!("{value}.000000"))
}

/// A file with a column of names and one of values.
fn csv(rows: &[(&str, &str)]) -> String {
    let mut text = "bench,seconds\n".to_owned();
    for (name, values) in rows {
        text.extend(spelled(values).map(|value| format!("{name},{value}\n")));
    }
    text
}

fn compare<'a>(lab: &'a Lab, arguments: &[&str]) -> Ran<'a> {
    let run = || lab.run("ce", &[&["compare"], arguments].concat());
    if lab.path("storage").exists() { lab.unchanged(run) } else { run() }
}

/// Returns the line that `--json` prints of the only column.
#[track_caller]
fn column(lab: &Lab, arguments: &[&str], exit: i32) -> Value {
    let ran = compare(lab, &[&["--json"], arguments].concat()).exit(exit);
    let [line] = ran.lines().try_into().unwrap();
    serde_json::from_str(line).unwrap()
}

#[track_caller]
fn assert_close(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap();
    assert!((found - expected).abs() <= 1e-6 * expected.abs(), "{found} {expected}");
}

/// Files with three groups: one is faster, one has too few values, one is on one side only.
fn files() -> Lab {
    Lab::empty()
        .file("old.csv", csv(&[("encode", OLD), ("few", "1 2 3 4")]))
        .file("new.csv", csv(&[("added", "1 2 3 4 5"), ("encode", NEW), ("few", "2 3 4 5 6")]))
}

#[test]
fn the_text_fits_a_terminal_and_explains_the_numbers() {
    let lab = files();
    let ran = compare(&lab, &["old.csv", "new.csv"]).exit(0);
    let expected = "\
seconds from old.csv to new.csv
bench     n   old   new  ratio [low, high]      verdict
encode   10  1718  1422  ×0.828 [0.819, 0.834]  less
few     4+5   2.5     4  -                      too few
added   0+5     -     3  -                      only new
too few: an interval needs 5 values a side
1 group of one side only
";
    assert_eq!(ran.stdout, expected);
    let better = ["--better", "less", "--column", "seconds", "old.csv", "new.csv"];
    compare(&lab, &better)
        .exit(0)
        .shows("seconds (less is better)".replace("seconds", "csv").as_str())
        .shows("  better\n");
    let markdown = compare(&lab, &["--markdown", "old.csv", "new.csv"]).exit(0);
    markdown
        .shows("**seconds** from old.csv to new.csv\n\n| bench | n | old | new | ratio \\[low, high\\] | verdict | notes |\n")
        .shows("| encode | 10 | 1718 | 1422 | ×0.828 \\[0.819, 0.834\\] | less |  |\n");
    let mut command = lab.command("ce");
    command.args(["compare", "--better", "more", "old.csv", "new.csv"]);
    let (_, text) = Terminal::start(&command, 80, Shown::Both).end();
    let row = text.lines().find(|line| line.contains("encode")).unwrap();
    assert!(row.contains("\u{1b}[31mworse\u{1b}[0m"), "{row:?}");
    assert!(
        row.replace("\u{1b}[31m", "").replace("\u{1b}[0m", "").chars().count() <= 80,
        "{row:?}"
    );
}

#[test]
fn a_failing_verdict_alone_ends_with_1() {
    let lab = files();
    let fails = |fail_on: &str, better: &str, exit| {
        let arguments = ["--fail-on", fail_on, "--better", better, "old.csv", "new.csv"];
        let ran = compare(&lab, &arguments).exit(exit);
        if exit == 1 {
            ran.says("--fail-on holds for seconds");
        }
    };
    fails("worse", "more", 1);
    fails("worse", "less", 0);
    fails("changed", "less", 1);
    fails("unclear", "less", 1);
    compare(&lab, &["--fail-on", "worse", "old.csv", "new.csv"])
        .exit(2)
        .says("the column seconds does not say which values are better")
        .says("try: give --better less or --better more");
    let same = ["--fail-on", "changed,worse", "--better", "less", "old.csv", "old.csv"];
    compare(&lab, &same).exit(0);
    compare(&lab, &["--threshold", "30", "--fail-on", "changed", "old.csv", "new.csv"])
        .exit(0)
        .shows("  same")
        .shows("a change below 30 % does not matter\n");
}

#[test]
fn an_impossible_comparison_is_one_error() {
    let lab = files().file("wide", "a,b\n1\n");
    for (arguments, says) in [
        (
            &["old.csv"][..],
            "a comparison needs two files, and not 1\n  try: give two files, or one and --by",
        ),
        (&["--by", "bench=few,encode", "old.csv", "new.csv"], "which are two sides already"),
        (&["--by", "bench=few", "old.csv"], "write NAME=OLD,NEW"),
        (
            &["--by", "bench=few,encodes", "old.csv"],
            "bench has no level \"encodes\"; there are encode, few\n  try: did you mean encode?",
        ),
        (
            &["old.csv", "wide"],
            "wide is not a table: line 2: the row has 1 value, and the header 2",
        ),
        (&["old.csv", "gone"], "cannot read gone"),
        (&["--threshold", "x", "old.csv", "new.csv"], "write a number such as 2 or 0.5"),
    ] {
        compare(&lab, arguments).exit(2).says(says);
    }
}

/// A sweep over tools and sizes, measured seven times, in which one tool takes longer for the same work.
fn lab() -> Lab {
    let body = r#"t=$(cat "$1") n=$(cat "$2") r=$(cat "$3"); [ $t$n$r != b27 ] || exit 1
[ $t = a ] && s=1$n || s=2$n; echo "$s.$r" >"$4"; echo "$n" >"$5""#;
    sweep(
        "",
        &[
            ("factors/00-tool", "a\nb\n"),
            ("factors/01-n", "1\n2\n"),
            ("replicates", "7\n"),
            ("columns", "00 seconds [s] less\n01 size\n"),
        ],
    )
    .computation("measure", "tool n replicate", "seconds size", body)
    .call("inputs/00-body/", "measure", &["tool", "n", "replicate"])
    .commit()
    .with_storage()
}

#[test]
fn levels_of_a_sweep_are_compared_and_missing_rows_counted() {
    let lab = lab();
    lab.ce_run(&["--no-sync"]).exit(1);
    let arguments = ["--task", ".", "--by", "tool=a,b", "--column", "seconds", "../storage"];
    let found = column(&lab, &arguments, 3);
    assert_eq!((&found["unit"], &found["better"]), (&json!("s"), &json!("less")));
    let second = &found["groups"][1];
    assert_eq!(second["group"], json!({"n": 2}));
    assert_eq!((&second["n"], &second["not_ok"]), (&json!([7, 6]), &json!([0, 1])));
    assert_eq!((&second["verdict"], &second["is_better"]), (&json!("more"), &json!(false)));
    assert_eq!(second["notes"][0], "not ok: 1");
    let fail = [&["--fail-on", "worse"], &arguments[..]].concat();
    compare(&lab, &fail)
        .exit(1)
        .shows("seconds [s] from a to b (less is better)\n")
        .shows("  worse");
    // The size is n, which is on both sides alike; by n, it is another one everywhere.
    let by_n = ["--task", ".", "--by", "n=1,2", "--exact", "size", "../storage"];
    compare(&lab, &by_n).exit(3).shows("size from 1 to 2\ntool    n  old  new  ratio");
    // The output of ce table is a table, too.
    for (format, name) in [("--csv", "t.csv"), ("--json", "t.ndjson")] {
        let printed = lab.run("ce", &["table", format, "../storage"]).exit(3).stdout.clone();
        std::fs::write(lab.path("storage").with_file_name(name), printed).unwrap();
        let path = format!("../{name}");
        let of_file = ["--by", "tool=a,b", "--column", "seconds", "--better", "less", &path];
        let of_file = column(&lab, &of_file, 3);
        assert_eq!(of_file["groups"], found["groups"], "{format}");
        assert_eq!(of_file["unit"], if format == "--json" { json!("s") } else { Value::Null });
    }
}

#[test]
fn commits_are_compared_and_the_same_calls_are_one_measurement() {
    let lab = lab().isolated();
    lab.ce_run(&["--no-sync"]).exit(1).says("27 computed");
    let lab = lab.file("note", "nothing that counts\n").commit_again();
    lab.ce_run(&["--no-sync"]).exit(1).says("27 taken over");
    let versions = ["--at", "HEAD~1", "--at", "HEAD", "--column", "seconds", "../storage"];
    let found = column(&lab, &versions, 3);
    assert_eq!(found["sides"], json!(["HEAD~1", "HEAD"]));
    for group in found["groups"].as_array().unwrap() {
        assert_eq!((&group["verdict"], &group["ratio"]), (&json!("same call"), &json!(1.0)));
    }
    compare(&lab, &["--at", "HEAD", "../storage"]).exit(2).says("neither --by nor two versions");
    compare(&lab, &["--at", "HEAD", "--at", "HEAD", "--by", "n=1,2", "../storage"]).exit(2);
}

/// A text among numbers hides no column: a measurement that went wrong is no reason to pass.
#[test]
fn a_text_among_numbers_is_an_error_that_names_its_row() {
    let script = r#"v=$(cat "$1") r=$(cat "$2"); s=${v#v}.0$r; [ $v$r != v24 ] || s='"timeout"'
echo "{\"seconds\":$s,\"mb\":5.$r,\"note\":\"none\"}" >"$3""#;
    let lab = sweep("", &[("factors/00-v", "v1\nv2\n"), ("replicates", "6"), ("columns", "00 *")])
        .computation("measure", "v replicate", "found", script)
        .call("inputs/00-body/", "measure", &["v", "replicate"])
        .commit()
        .with_storage();
    lab.ce_run(&[]).exit(0);
    let versions = ["--by", "v=v1,v2", "--better", "less", "--fail-on", "worse"];
    let wrong =
        "the column seconds cannot be compared: \"timeout\" at v=v2 replicate=4 is not a number";
    compare(&lab, &[&versions[..], &["--task", ".", "../storage"]].concat()).exit(2).says(wrong);
    let mb = ["--column", "mb", "--task", ".", "../storage"];
    compare(&lab, &[&versions[..], &mb].concat()).exit(0).shows("mb from v1 to v2");
}

#[test]
fn values_of_the_same_calls_are_reported_and_groups_without_a_verdict_do_not_count() {
    let script = r#"n=$(cat "$1") r=$(cat "$2"); [ $n$r != 23 ] || exit 1; echo $n.0$r >"$3""#;
    let factors = [("factors/00-n", "1\n2\n3\n4\n"), ("replicates", "6")];
    let lab = sweep("", &[&factors[..], &[("columns", "00 seconds")]].concat())
        .computation("measure", "n replicate", "out", script)
        .call("inputs/00-body/", "measure", &["n", "replicate"])
        .commit_with(Library::Submodule)
        .with_storage();
    lab.ce_run(&[]).exit(1);
    let same = ["--task", ".", "--at", "HEAD", "--at", "HEAD", "../storage"];
    let ran = compare(&lab, &same).exit(3).shows("same call").shows("1: not ok: 2\n");
    assert!(!ran.stdout.contains("4 groups"), "{}", ran.stdout);
    assert_eq!(column(&lab, &same, 3)["by_chance"], 0.0);
    // Two more replicates, and the others are taken over.
    let lab = lab.file("workflow/replicates", "8").file("workflow/factors/00-n", "1\n3\n");
    let lab = lab.commit_again();
    lab.ce_run(&[]).exit(0);
    let found = column(&lab, &["--task", ".", "--at", "HEAD~1", "--at", "HEAD", "../storage"], 3);
    let note = "shared: 6 of 6 and 8 values are of the same calls, and the interval takes them for measured twice";
    assert_eq!(found["groups"][0]["notes"][0], note);
    assert_close(&found["by_chance"], 1.0 - 0.973_f64.powi(2));
}
