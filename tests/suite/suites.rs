//! Suites of benchmarks: calls that give a row for each benchmark, and the columns by which these are told apart.

use std::fs;

use crate::lab::Lab;
use crate::program::Ran;

/// Two tools, of which the second one is slower at one of four benchmarks. A tag is of the call.
const SUITE: &str = r#"measure: tool replicate -> rows
    for benchmark in fast slow; do for size in 8 16; do
        seconds=1.0$text_replicate
        case "$text_tool $benchmark $size" in 'b fast 16') seconds=9.0$text_replicate ;; esac
        echo "{\"benchmark\":\"$benchmark\",\"size\":$size,\"tag\":\"$text_tool$text_replicate\",\"seconds\":$seconds}"
    done; done > $out_rows

"#;

/// The task with this column.
fn workflow(column: &str) -> String {
    format!(
        "{SUITE}SWEEP((measure tool replicate) :over tool 'a' 'b' :replicates 6 :columns '{column}')\n"
    )
}

fn lab(column: &str) -> Lab {
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
    let lab = lab("00 ** by benchmark size");
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
    for shown in ["more in 1 of 4 comparisons", "by names other columns in :columns"] {
        assert!(page.contains(shown), "{shown}");
    }
}

#[test]
fn keys_are_in_no_call_and_no_table_and_survive_a_conversion() {
    let lab = lab("00 **");
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
    let lab = lab("00 ** by benchmark sise");
    let told = "the rows have no column \"sise\", which :columns names behind by";
    let summary = lab.run("ce", &["table", "--summary", "--task=.", "../storage"]).exit(2);
    summary.says(told).says("did you mean \"size\"?");
    compare(&lab, &[]).exit(2).says(told);
}

#[test]
fn texts_that_all_calls_of_a_point_have_for_themselves_are_pooled_and_told() {
    let lab = lab("00 **");
    let summary = lab.run("ce", &["table", "--summary", "--task=.", "../storage"]).exit(0);
    summary.says("tag tells no points apart: no two calls of a point have a text in common");
    // A size is a number, so it is a result unless it is named.
    compare(&lab, &[]).exit(0).shows("size from a to b");
}
