//! `ce compare`: medians of two levels, two commits or two files.

use serde_json::{Value, json};

use crate::lab::{Lab, Library};
use crate::program::Ran;
use crate::sweeps::sweep;
use crate::terminal::{Shown, Terminal};

/// The vectors of `statistics`: old values, new ones, the ratio, its ends and the verdict.
const VECTORS: [(&str, &str, [f64; 3], &str); 5] = [
    (
        "1726 1723 1707 1707 1713 1729 1736 1707 1705 1774",
        "1423 1416 1411 1413 1412 1426 1422 1424 1447 1425",
        [0.827997671711, 0.819417276734, 0.833585869668],
        "less",
    ),
    (
        "3069 3075 3069 3067 3207 3064 3064 3058 3059 3062",
        "3075 3065 3059 3065 3060 3081 3186 3135 3087 3062",
        [1.001467949763, 0.998107019100, 1.012448671404],
        "unclear",
    ),
    (
        "1.0 1.1 1.2 1.3 1.4 1.5",
        "1.0 1.1 1.2 1.3 1.4 1.5 1.6 1.7",
        [1.08, 0.829949339112, 1.396266048764],
        "unclear",
    ),
    (
        "5 7 8 9 12 15 40",
        "11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30",
        [2.277777778, 1.016408213, 3.363682621],
        "more",
    ),
    ("1 2 3 4 5", "2 4 6 8 10", [2.0, 0.595461432620, 6.717479555981], "unclear"),
];

/// Values with six more decimals, which move no end by rounding.
fn spelled(values: &str) -> impl Iterator<Item = String> {
    values
        .split(' ')
        .map(|value| format!("{value}{}000000", if value.contains('.') { "" } else { "." }))
}

/// A file with a column of names and one of values.
fn csv(separator: char, rows: &[(&str, &str)]) -> String {
    let mut text = format!("bench{separator}seconds\n");
    for (name, values) in rows {
        text.extend(spelled(values).map(|value| format!("{name}{separator}{value}\n")));
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

#[test]
fn the_vectors_are_found_in_files_of_any_kind() {
    let names = ["a", "b", "c", "d", "e"];
    let side = |at: usize| {
        let values = VECTORS.map(|(old, new, ..)| [old, new][at]);
        names.into_iter().zip(values).collect::<Vec<_>>()
    };
    let json: String = side(1)
        .iter()
        .flat_map(|(name, values)| {
            spelled(values)
                .map(move |value| format!("{{\"bench\":\"{name}\",\"seconds\":{value}}}\n"))
        })
        .collect();
    let lab = Lab::empty()
        .file("old.csv", csv(',', &side(0)))
        .file("new.tsv", csv('\t', &side(1)))
        .file("new.ndjson", json);
    for new in ["new.tsv", "new.ndjson"] {
        let found = column(&lab, &["old.csv", new], 0);
        assert_eq!(found["sides"], json!(["old.csv", new]));
        for (at, (.., expected, verdict)) in VECTORS.into_iter().enumerate() {
            let group = &found["groups"][at];
            assert_eq!(
                (&group["group"], &group["verdict"]),
                (&json!({"bench": names[at]}), &json!(verdict))
            );
            for (name, expected) in ["ratio", "low", "high"].into_iter().zip(expected) {
                assert_close(&group[name], expected);
            }
        }
        assert_eq!(found["groups"][3]["notes"][0], "one side has more than twice as many values");
        assert_close(&found["by_chance"], 1.0 - 0.973_f64.powi(5));
    }
    let two = [&side(0)[..2], &side(1)[..2]].map(|rows| csv(',', rows));
    let lab = lab.file("old.csv", &two[0]).file("new.csv", &two[1]);
    let mean = column(&lab, &["old.csv", "new.csv"], 0)["mean"].clone();
    for (name, expected) in
        [("ratio", 0.910611404880), ("low", 0.905641295259), ("high", 0.916463769632)]
    {
        assert_close(&mean[name], expected);
    }
    // One file with both sides; without a ratio, the difference.
    let values = "-2 -1 0 1 2 3,0 1 2 3 4 5 6";
    let (old, new) = values.split_once(',').unwrap();
    let lab = lab.file("one.csv", csv(',', &[("old", old), ("new", new)]));
    let found = column(&lab, &["--by", "bench=old,new", "one.csv"], 0);
    let group = &found["groups"][0];
    assert_eq!((&found["sides"], &group["ratio"]), (&json!(["old", "new"]), &Value::Null));
    for (name, expected) in
        [("difference", 2.5), ("low", -0.619233000670), ("high", 5.619233000670)]
    {
        assert!((group[name].as_f64().unwrap() - expected).abs() < 1e-5, "{group}");
    }
    assert_eq!((&group["verdict"], &group["needed"]), (&json!("unclear"), &json!(20)));
    compare(&lab, &["--by", "bench=old,new", "one.csv"])
        .exit(0)
        .shows("6+7  0.5    3  +2.5 [-0.619, 5.62]  unclear (20)      1\n")
        .shows("1: the difference, not the ratio");
}

/// Files with three groups: one is faster, one has too few values, one is on one side only.
fn files() -> Lab {
    let [(old, new, ..), ..] = VECTORS;
    Lab::empty()
        .file("old.csv", csv(',', &[("encode", old), ("few", "1 2 3 4")]))
        .file("new.csv", csv(',', &[("added", "1 2 3 4 5"), ("encode", new), ("few", "2 3 4 5 6")]))
}

#[test]
fn text_fits_a_terminal_and_says_what_the_numbers_are() {
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
fn a_family_of_intervals_is_wider_and_changes_may_be_sorted() {
    let [(old, new, ..), (same, again, ..), ..] = VECTORS;
    let rows = |last| [("same", [same, again][last]), ("encode", [old, new][last])];
    let lab = Lab::empty().file("a.csv", csv(',', &rows(0))).file("b.csv", csv(',', &rows(1)));
    let plain = column(&lab, &["a.csv", "b.csv"], 0);
    let wider = column(&lab, &["--family", "--sort", "a.csv", "b.csv"], 0);
    assert_eq!((&plain["confidence"], &wider["confidence"]), (&json!(0.95), &json!(0.975)));
    assert_eq!(plain["groups"][0]["group"]["bench"], "same");
    assert_eq!(wider["groups"][0]["group"]["bench"], "encode");
    let width = |group: &Value| group["high"].as_f64().unwrap() - group["low"].as_f64().unwrap();
    assert!(width(&wider["groups"][0]) > width(&plain["groups"][1]), "{wider}");
    assert_eq!(wider["by_chance"], Value::Null);
    compare(&lab, &["--family", "a.csv", "b.csv"])
        .exit(0)
        .shows("intervals have 97.5 %: all of them together 95 %\n");
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
fn exact_values_need_no_interval_and_rounded_ones_are_told() {
    let file = |seconds: &str, bytes: [u32; 2]| {
        let row = |at: usize| format!("{seconds},{}\n", bytes[at % 2]);
        format!("seconds,bytes\n{}", (0..6).map(row).collect::<String>())
    };
    let lab = Lab::empty().file("a", file("0.05", [100, 100])).file("b", file("0.06", [110, 111]));
    let ran = compare(&lab, &["--json", "--exact", "bytes", "a", "b"]).exit(0);
    let [seconds, bytes] = ran
        .lines()
        .try_into()
        .map(|lines: [&str; 2]| lines.map(|line| serde_json::from_str::<Value>(line).unwrap()))
        .unwrap();
    let group = &bytes["groups"][0];
    assert_eq!((&bytes["confidence"], &group["verdict"]), (&Value::Null, &json!("more")));
    assert_eq!((&group["ratio"], &group["low"]), (&json!(1.105), &group["ratio"]));
    assert_eq!(group["notes"], json!(["values within a side differ, although they are exact"]));
    let group = &seconds["groups"][0];
    assert_close(&group["low"], 1.0);
    assert!(group["notes"][0].as_str().unwrap().starts_with("resolution: "), "{group}");
    compare(&lab, &["--exact", "size", "a", "b"])
        .exit(2)
        .says("no column \"size\"; there are seconds, bytes");
}

#[test]
fn values_that_are_rounded_too_much_ask_for_digits_and_not_for_more_values() {
    let values = "bench,seconds\n".to_owned() + &"x,1.5\n".repeat(6);
    let lab = Lab::empty().data("old.csv", &values).data("new.csv", &values);
    let files = ["../data/old.csv", "../data/new.csv"];
    let ran = compare(&lab, &files).exit(0).shows("unclear (digits)");
    let ran = ran.shows("values with more digits would decide, and more values would not");
    assert!(!ran.stdout.contains("about N values"), "{}", ran.stdout);
    let row = &column(&lab, &files, 0)["groups"][0];
    assert_eq!((&row["verdict"], &row["needed"]), (&json!("unclear"), &Value::Null));
}

#[test]
fn what_cannot_be_compared_is_one_error() {
    let lab = files().file("text", "a,b\nx,y\n").file("wide", "a,b\n1\n");
    let twice = "seconds,n\n1,2\n".to_owned();
    let commits =
        ["aa", "ab", "b"].map(|it| format!("{it:0<40},1\n").replace("ab0", "aa1")).concat();
    let lab = lab
        .file("numbers", twice)
        .file("one", "a,s [s]\nx,1\n")
        .file("semicolons", "a;s [ms]\nx;1\n")
        .file("commits", format!("commit,seconds\n{commits}"));
    for (arguments, exit, says) in [
        (
            &["old.csv"][..],
            2,
            "a comparison needs two files, and not 1\n  try: give two files, or one and --by",
        ),
        (&["--by", "bench=few,encode", "old.csv", "new.csv"], 2, "which are two sides already"),
        (&["--by", "bench=few", "old.csv"], 2, "write NAME=OLD,NEW"),
        (
            &["--by", "bench=few,encodes", "old.csv"],
            2,
            "bench has no level \"encodes\"; there are encode, few\n  try: did you mean encode?",
        ),
        (&["--by", "bench=few,few", "old.csv"], 2, "both levels of bench are \"few\""),
        (&["--column", "second", "old.csv", "new.csv"], 2, "try: did you mean seconds?"),
        (
            &["--column", "bench", "old.csv", "new.csv"],
            2,
            "bench cannot be compared: \"encode\" is no number",
        ),
        (
            &["text", "text"],
            2,
            "no column has numbers on both sides; the columns are \"a\", \"b\"\n  try: name columns alike",
        ),
        (&["one", "semicolons"], 2, "the columns are \"a;s [ms]\", \"a\", \"s [s]\"\n"),
        (
            &["--by", "commit=aa,b", "commits"],
            2,
            "commit has several levels that begin with \"aa\": aa",
        ),
        (&["--by", "commit=c,b", "commits"], 2, "commit has no level \"c\"; there are aa"),
        (&["--by", "seconds=7,8", "old.csv"], 2, "1.000000, 2.000000 and 2 more\n  try: "),
        (
            &["old.csv", "wide"],
            2,
            "wide is no table: line 2: the row has 1 value, and the header 2",
        ),
        (&["old.csv", "gone"], 2, "cannot read gone"),
        (&["--threshold", "x", "old.csv", "new.csv"], 2, "write a number such as 2 or 0.5"),
    ] {
        compare(&lab, arguments).exit(exit).says(says);
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
        "the column seconds cannot be compared: \"timeout\" at v=v2 replicate=4 is no number";
    compare(&lab, &[&versions[..], &["--task", ".", "../storage"]].concat()).exit(2).says(wrong);
    let mb = ["--column", "mb", "--task", ".", "../storage"];
    compare(&lab, &[&versions[..], &mb].concat()).exit(0).shows("mb from v1 to v2");
    // In files of any kind, with and without replicates.
    let values = |last: &str| format!("a,1.5\na,1.25\na,1.0\na,1.5\na,1.75\na,{last}\n");
    let file = |last: &str| format!("bench,seconds\n{}", values(last));
    let replicates = |last: &str| {
        let rows = values(last);
        let rows =
            rows.lines().zip(1..).map(|(line, at)| line.replace(',', &format!(",{at},")) + "\n");
        format!("bench,replicate,seconds\n{}", rows.collect::<String>())
    };
    let mut lab = lab.file("old.csv", file("1.5")).file("old-r.csv", replicates("1.5"));
    for text in ["timeout", "NaN"] {
        lab = lab.file("new.csv", file(text)).file("new-r.csv", replicates(text));
        let wrong = format!("{text:?} in row 6 of the new table is no number");
        for files in [["old.csv", "new.csv"], ["old-r.csv", "new-r.csv"]] {
            compare(&lab, &files).exit(2).says(&wrong).says("--group");
            compare(&lab, &[&["--column", "seconds"], &files[..]].concat()).exit(2).says(&wrong);
        }
    }
    let all = lab.file("all.csv", "bench,seconds\na,timeout\na,timeout\n");
    compare(&all, &["old.csv", "all.csv"]).exit(2).says("\"timeout\" in row 1 of the new table");
    // Empty cells are counted.
    let lab = all.file("new.csv", file(""));
    let found = column(&lab, &["old.csv", "new.csv"], 0);
    assert_eq!(found["groups"][0]["n"], json!([6, 5]));
    assert_eq!(found["groups"][0]["notes"][0], "without a value: 1 row");
}

#[test]
fn values_of_the_same_calls_are_told_and_groups_without_a_verdict_do_not_count() {
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

/// Earlier versions of `ce table` knew neither the machine nor whether a call was alone.
#[test]
fn tables_that_earlier_versions_have_printed_are_known() {
    let rows = |seconds: u32| {
        let row =
            |at: u32| format!("1,{at},{seconds}.{at},ok,{at},red,2026-01-0{at}T00:00:00Z,1.5,,\n");
        let rows: String = (1..=5).map(row).collect();
        let failed = "1,6,,failed,6,,,,exit status 1,log\n";
        format!("n,replicate,seconds,status,call,host,time,duration,reason,log\n{rows}{failed}")
    };
    let lab = Lab::empty().file("old.csv", rows(1)).file("new.csv", rows(2));
    let found = column(&lab, &["old.csv", "new.csv"], 3);
    assert_eq!(
        (&found["column"], &found["groups"][0]["group"]),
        (&json!("seconds"), &json!({"n": 1}))
    );
    let own = "n,replicate,seconds,status,time\n1,1,1.5,ok,3.5\n1,2,1.6,ok,3.6\n";
    let lab = lab.file("own.csv", own);
    let ran = compare(&lab, &["own.csv", "own.csv"]).exit(0);
    ran.shows("seconds from").shows("time from");
}

/// A table that `--fail-on` passes because a column was taken for another one, or because values were left out, hides what it is
/// asked for.
#[test]
fn no_column_and_no_value_of_a_file_is_left_out() {
    let file = |header: &str, seconds: u32, row: &str| {
        let rows = (10..16).map(|at| format!("a,{seconds}.{at},{row}\n"));
        format!("bench,seconds,{header}\n{}", rows.collect::<String>())
    };
    let worse = ["--better", "less", "--column", "seconds", "--fail-on", "worse"];
    let mut lab = Lab::empty();
    for (header, row) in [
        ("status", "ok"),
        ("status,calls", "ok,5"),
        ("status,call", "ok,5"),
        ("calls,status", "5,ok"),
    ] {
        lab = lab.file("old.csv", file(header, 1, row)).file("new.csv", file(header, 2, row));
        let ran = compare(&lab, &[&worse[..], &["old.csv", "new.csv"]].concat()).exit(1);
        ran.shows("a      6  ");
    }
    // A number of JSON has no largest value, and a double has one.
    let lines = |last: &str| {
        let rows =
            ["1", "2", "3", "4", "5", last].map(|it| format!("{{\"b\":\"x\",\"s\":{it}}}\n"));
        rows.concat()
    };
    let lab = lab.file("old.nd", lines("6")).file("new.nd", lines("1e400"));
    compare(&lab, &["old.nd", "new.nd"])
        .exit(2)
        .says("\"1e400\" in row 6 of the new table is no number that a double can hold");
}
