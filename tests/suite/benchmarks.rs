//! A suite that prints a row for each benchmark, with its name as a text: every query tells the benchmarks apart, as it does
//! where the same rows are a file.

use std::fs;

use serde_json::{Value, json};

use crate::lab::Lab;
use crate::program::Ran;

/// Two tools are measured by a suite of two benchmarks whose scales differ. One tool takes longer for the first of them, and one of
/// its replicates fails.
fn lab() -> Lab {
    let script = r#"t=$(cat "$1") r=$(cat "$2"); [ $t$r != b7 ] || exit 1
fast=0.1$r; [ $t = a ] || fast=0.9$r
printf '{"benchmark":"fast","seconds":%s}\n{"benchmark":"slow","seconds":100.%s}\n' $fast $r >"$3""#;
    let rules = ":over tool 'a' 'b' :replicates 7 :columns '00 **' :allow-failed";
    Lab::empty()
        .file("workflow.ce", format!("SWEEP((measure tool replicate) {rules})\n"))
        .computation("measure", "tool replicate", "rows", script)
        .commit()
        .with_storage()
}

#[track_caller]
fn objects(lab: &Lab, arguments: &[&str], exit: i32) -> Vec<Value> {
    let ran = lab.run("ce", arguments).exit(exit);
    ran.lines().into_iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn comparing_a_task_equals_comparing_its_rows_from_a_file() {
    let lab = lab();
    lab.ce_run(&["--no-sync"]).exit(0);
    let compare = ["compare", "--json", "--by", "tool=a,b", "--better", "less"];
    let of_task = [&compare[..], &["--task", ".", "../storage"]].concat();
    let of_task = objects(&lab, &of_task, 3);
    let groups: Vec<(&Value, &Value, &Value)> = of_task[0]["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["group"]["benchmark"], &it["verdict"], &it["not_ok"]))
        .collect();
    let [fast, slow, more, same, not_ok] =
        [json!("fast"), json!("slow"), json!("more"), json!("same"), json!([0, 1])];
    assert_eq!(groups, [(&fast, &more, &not_ok), (&slow, &same, &not_ok)]);
    for format in ["--csv", "--json"] {
        let table = lab.run("ce", &["table", format, "../storage"]).exit(3).stdout.clone();
        fs::write(lab.path("table"), table).unwrap();
        let of_file = objects(&lab, &[&compare[..], &["../table"]].concat(), 3);
        assert_eq!(of_file[0]["groups"], of_task[0]["groups"], "{format}");
    }
}

#[test]
fn a_summary_has_a_row_for_each_benchmark() {
    let lab = lab();
    lab.ce_run(&["--no-sync"]).exit(0);
    let csv = lab.run("ce", &["table", "--summary", "--csv", "../storage"]).exit(3);
    let expected = [
        "tool,benchmark,seconds n,seconds median,seconds low,seconds high,not ok",
        "a,fast,7,0.14,0.11,0.17,0",
        "a,slow,7,100.4,100.1,100.7,0",
        "b,fast,6,0.935,0.91,0.96,1",
        "b,slow,6,100.35,100.1,100.6,1",
    ];
    assert_eq!(csv.lines(), expected);
}

#[test]
fn a_page_has_a_row_for_each_benchmark() {
    let lab = lab();
    lab.ce_run(&["--no-sync"]).exit(0);
    // Of the task, and of the recorded table alone.
    for task in [&["--task", "."][..], &[]] {
        lab.run("ce", &[&["report", "-o", "../page.html"], task, &["../storage"]].concat()).exit(0);
        let page = fs::read_to_string(lab.path("page.html")).unwrap();
        let measurements = page.split("<section id=\"measurements\">").nth(1).unwrap();
        let measurements = measurements.split("data:text").next().unwrap();
        for shown in ["<td>fast</td>", "<td>slow</td>", "for each benchmark"] {
            assert!(measurements.contains(shown), "{task:?} {shown}\n{measurements}");
        }
        let medians = "seconds: medians of 6 to 7 measurements.";
        assert!(measurements.contains(medians), "{task:?}\n{measurements}");
        assert!(!measurements.contains("the same measurements as"), "{task:?}\n{measurements}");
        let answers: Vec<&str> = page.split("<span class=\"answer\">").skip(1).collect();
        let [answer] = answers[..] else { panic!("{answers:?}") };
        assert!(answer.starts_with("seconds: ") && answer.contains(" with b "), "{answer}");
    }
}

#[test]
fn two_versions_of_a_table_are_joined_by_benchmarks() {
    let lab = lab();
    lab.ce_run(&["--no-sync"]).exit(0);
    let script = r#"printf '{"benchmark":"new","seconds":1}\n{"benchmark":"slow","seconds":100.%s}\n' $(cat "$2") >"$3""#;
    let lab = lab.computation("measure", "tool replicate", "rows", script).commit_again();
    lab.ce_run(&["--no-sync"]).exit(0);
    let versions = ["table", "--json", "--at", "HEAD~1", "--at", "HEAD", "../storage"];
    let rows = objects(&lab, &versions, 3);
    let of = |benchmark: &str, side: &str| {
        let rows = rows.iter().filter(|row| row["point"]["benchmark"] == benchmark);
        rows.filter(|row| !row[side].is_null()).count()
    };
    assert_eq!([of("new", "old"), of("new", "new")], [0, 14]);
    assert_eq!([of("fast", "old"), of("fast", "new")], [13, 0]);
    // Slow ones are the same in all rows except the failed replicate's.
    assert_eq!([of("slow", "old"), of("slow", "new")], [0, 1]);
}

/// Texts such as a time, which no two calls have in common, tell no points apart. That is said.
#[test]
fn texts_that_no_two_calls_share_are_reported() {
    let script = r#"r=$(cat "$1"); printf '{"at":"noon of %s","seconds":%s}\n' $r $r >"$2""#;
    let lab = Lab::empty()
        .file("workflow.ce", "SWEEP((measure replicate) :replicates 6 :columns '00 **')\n")
        .computation("measure", "replicate", "rows", script)
        .commit()
        .with_storage();
    lab.ce_run(&["--no-sync"]).exit(0);
    let ran = lab.run("ce", &["table", "--summary", "--csv", "../storage"]).exit(0);
    assert_eq!(ran.lines()[1], "6,3.5,1,6,0");
    ran.says("ce: at tells no points apart: no two calls of a point have a text in common\n");
}

/// Two tools, of which the second one is slower at one of four benchmarks. A tag is of the call.
const NAMED: &str = r#"measure: tool replicate -> rows
    for benchmark in fast slow; do for size in 8 16; do
        seconds=1.0$text_replicate
        case "$text_tool $benchmark $size" in 'b fast 16') seconds=9.0$text_replicate ;; esac
        echo "{\"benchmark\":\"$benchmark\",\"size\":$size,\"tag\":\"$text_tool$text_replicate\",\"seconds\":$seconds}"
    done; done > $out_rows

"#;

/// The task with this column.
fn workflow(column: &str) -> String {
    format!(
        "{NAMED}SWEEP((measure tool replicate) :over tool 'a' 'b' :replicates 6 :columns '{column}')\n"
    )
}

fn named(column: &str) -> Lab {
    let lab = Lab::empty().isolated().one_text(&workflow(column)).commit();
    lab.run("ce-run", &["--no-sync", "-q", "../storage"]).exit(0);
    lab
}

fn compare<'a>(lab: &'a Lab, options: &[&str]) -> Ran<'a> {
    let by = ["compare", "--task=.", "--by=tool=a,b", "--better=less", "../storage"];
    lab.run("ce", &[&by[..], options].concat())
}

#[test]
fn the_keys_of_rows_are_named_and_the_only_slower_benchmark_is_found() {
    let lab = named("00 ** by benchmark size");
    let worse = compare(&lab, &["--fail-on=worse"]).exit(1).stdout;
    let worse: Vec<&str> = worse.lines().filter(|line| line.ends_with("worse")).collect();
    assert_eq!(worse, ["fast         16  6  1.035  9.035  ×8.73 [8.51, 8.96]     worse"]);
    compare(&lab, &[]).exit(0).shows("geometric mean of 4 ratios: ×1.719");
    let summary = lab.run("ce", &["table", "--summary", "--task=.", "../storage"]).exit(0);
    assert_eq!(summary.stdout.lines().count(), 9);
    let summary = summary.shows("b     fast         16  6    9.035  9.01  9.06\n");
    summary.says("tag tells no points apart: by names other columns in :columns");
    // To pool is asked for, and told.
    let pooled = compare(&lab, &["--group=benchmark"]).exit(0);
    pooled.shows("groups are pooled over size, tag");
    // The page has them, too.
    lab.run("ce", &["report", "--task=.", "-o", "../page.html", "../storage"]).exit(0);
    let page = fs::read_to_string(lab.path("page.html")).unwrap();
    for shown in [
        "on average: more in 1, not decided in 3 of 4 comparisons",
        "by names other columns in :columns",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
}

#[test]
fn keys_are_in_no_call_and_no_table_and_survive_a_conversion() {
    let lab = named("00 **");
    let lab = lab.file("workflow.ce", workflow("rows ** by benchmark size")).commit_again();
    lab.run("ce-run", &["--no-sync", "../storage"]).exit(0).called(vec![]);
    lab.run("ce", &["convert", "--to", "directories"]).exit(0);
    let columns = fs::read_to_string(lab.path("task/workflow/columns")).unwrap();
    assert_eq!(columns, "rows ** by benchmark size\n");
    let lab = lab.commit_again();
    lab.run("ce", &["convert", "--to", "text"]).exit(0);
    let text = fs::read_to_string(lab.path("task/workflow.ce")).unwrap();
    assert!(text.contains(":columns 'rows ** by benchmark size'"), "{text}");
}

#[test]
fn keys_that_no_row_has_are_told() {
    let lab = named("00 ** by benchmark sise");
    let told = "the rows have no column \"sise\", which :columns names behind by";
    let summary = lab.run("ce", &["table", "--summary", "--task=.", "../storage"]).exit(2);
    summary.says(told).says("did you mean \"size\"?");
    compare(&lab, &[]).exit(2).says(told);
}

#[test]
fn texts_that_all_calls_of_a_point_have_for_themselves_are_pooled_and_told() {
    let lab = named("00 **");
    let summary = lab.run("ce", &["table", "--summary", "--task=.", "../storage"]).exit(0);
    summary.says("tag tells no points apart: no two calls of a point have a text in common");
    // A size is a number, so it is a result unless it is named.
    compare(&lab, &[]).exit(0).shows("size from a to b");
}
