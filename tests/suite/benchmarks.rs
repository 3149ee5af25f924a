//! A suite that prints a row for each benchmark, with its name as a text: every query tells the benchmarks apart, as it does
//! where the same rows are a file.

use std::fs;

use serde_json::{Value, json};

use crate::lab::Lab;

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
        assert!(
            page.contains("seconds from a to b") && !page.contains("seconds from fast to slow")
        );
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
    ran.says("ce: at tells no points apart: no two calls have a text in common\n");
}
