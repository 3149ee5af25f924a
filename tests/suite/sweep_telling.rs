//! Reports on sweeps: the tree, failures by point, totals.

use serde_json::{Value, json};

use crate::lab::Lab;

/// Computations of a study of sizes and numbers of threads; large sizes do not fit eight threads.
fn study() -> Lab {
    let mut lab = Lab::empty()
        .computation("prepare", "size machine", "data", r#"cat "$1" "$2" >"$3""#)
        .computation(
            "bench",
            "data threads",
            "time",
            r#"read -r size <"$1"; read -r threads <"$2"
            if [ "$threads" = 8 ] && [ "$size" -ge 1000 ]; then echo no memory; exit 3; fi
            echo "$size $threads" >"$3""#,
        )
        .computation("plot", "table", "figure", r#"cat "$1" >"$2""#)
        .file("inputs", "machine\n")
        .data("machine", "here\n");
    lab.inputs = vec!["machine".to_owned()];
    lab.node("", "computation", "plot")
}

/// Writes the body: `bench` of what `prepare` makes.
fn with_body(lab: Lab, place: &str) -> Lab {
    lab.node(place, "computation", "bench")
        .call(&format!("{place}inputs/00-data/"), "prepare", &["size", "machine"])
        .node(&format!("{place}inputs/01-threads/"), "input", "threads")
}

/// A plot of a sweep over these sizes and numbers of threads.
fn product(sizes: &str, threads: &str) -> Lab {
    let lab = study()
        .node("inputs/00-table/", "sweep", "scaling")
        .file("workflow/inputs/00-table/factors/00-threads", threads)
        .file("workflow/inputs/00-table/factors/01-size", sizes);
    with_body(lab, "inputs/00-table/inputs/00-body/")
}

/// A plot of a sweep over points that a computation makes.
fn computed(points: &str) -> Lab {
    let script = format!("cat >\"$2\" <<'END'\n{points}END");
    let lab = study()
        .computation("sheet", "machine", "points", &script)
        .node("inputs/00-table/", "sweep", "scaling")
        .call("inputs/00-table/inputs/01-points/", "sheet", &["machine"]);
    with_body(lab, "inputs/00-table/inputs/00-body/")
}

/// The part of the tree above the plot, without the names of files.
fn tree(stdout: &str) -> String {
    let tree = stdout.split("plot (TASK)").next().unwrap();
    let line = |line: &str| {
        let words: Vec<&str> =
            line.split(' ').filter(|it| !it.starts_with("../storage/")).collect();
        words.join(" ") + "\n"
    };
    tree.lines().map(line).collect()
}

#[test]
fn the_body_is_shown_once_with_counts() {
    let lab = product("10\n100\n", "1\n2\n4\n").commit();
    let ran = lab.ce_run(&[]).exit(0);
    let text = "        points: threads (3) x size (2): 6 points
        `* computing...
                0: INPUT('size')
                1: INPUT('machine') ok
            prepare (data): 2 calls: 2 computed
            threads: INPUT('threads')
        bench (body): 6 calls: 6 computed
    SWEEP scaling (table)
    `> table: ok
";
    assert_eq!(tree(&ran.stdout), text);
    assert!(
        ran.stderr.ends_with("ce-run: 9 calls: 9 computed; 1 table: 1 made\n"),
        "{}",
        ran.stderr
    );
    let again = lab.ce_run(&[]).exit(0);
    let found = text.replace("computed", "reused").replace("        `* computing...\n", "");
    assert_eq!(tree(&again.stdout), found);
    assert!(
        again.stderr.ends_with("ce-run: 9 calls: 9 reused; 1 table: 1 reused\n"),
        "{}",
        again.stderr
    );
}

#[test]
fn calls_of_a_body_that_turn_out_to_be_equal_count_once() {
    let lab = Lab::empty()
        .computation("zero", "n", "zero", "echo 0 >\"$2\"")
        .computation("copy", "zero", "copy", "cat \"$1\" >\"$2\"")
        .file("inputs", "")
        .node("", "sweep", "zeros")
        .file("workflow/factors/00-n", "1\n2\n3\n")
        .node("inputs/00-body/", "computation", "copy")
        .call("inputs/00-body/inputs/00-zero/", "zero", &["n"])
        .commit();
    for (how, made) in [("computed", "made"), ("reused", "reused")] {
        let ran = lab.ce_run(&[]).exit(0);
        ran.says(&format!("4 calls: 4 {how}; 1 table: 1 {made}"))
            .shows(&format!("zero (zero): 3 calls: 3 {how}"))
            .shows(&format!("copy (body): 1 call: 1 {how}"));
    }
}

#[test]
fn points_that_differ_in_labels_only_share_calls() {
    let points = "size\tthreads\tnote\n10\t1\ta\n10\t1\tb\n20\t2\tc\n";
    let lab = computed(points).commit();
    let dry = lab.ce_run(&["-n"]).exit(3);
    let unknown = "            0: INPUT('machine') MISSING!!!
        sheet (points)
        `> points: MISSING
        points: not known
                0: INPUT('size')
                1: INPUT('machine') MISSING!!!
            prepare (data): not known
            threads: INPUT('threads')
        bench (body): not known
    SWEEP scaling (table)
    `> table: MISSING
";
    assert_eq!(tree(&dry.stdout), unknown);
    let totals = "ce-run: at least 2 calls: 2 missing; 1 table: 1 missing\n";
    assert!(dry.stderr.ends_with(totals), "{}", dry.stderr);
    let ran = lab.ce_run(&[]).exit(0);
    let text = tree(&ran.stdout);
    let points = "        points: size (2), threads (2), 1 label: 3 points are 2 calls\n";
    assert!(text.contains(points), "{text}");
    assert!(text.contains("bench (body): 2 calls: 2 computed\n"), "{text}");
}

#[test]
fn bodies_of_nested_sweeps_are_shown_once() {
    let (outer, inner) = ("inputs/00-table/", "inputs/00-table/inputs/00-body/inputs/00-table/");
    let lab = study()
        .computation("mean", "table", "summary", r#"wc -l <"$1" >"$2""#)
        .node(outer, "sweep", "sizes")
        .file(&format!("workflow/{outer}factors/00-size"), "10\n1000\n2000\n")
        .node(&format!("{outer}inputs/00-body/"), "computation", "mean")
        .node(inner, "sweep", "")
        .file(&format!("workflow/{inner}factors/00-threads"), "1\n8\n");
    let lab = with_body(lab, &format!("{inner}inputs/00-body/")).commit();
    let ran = lab.ce_run(&[]).exit(1);
    let text = "        points: size (3): 3 points
        `* computing...
                points: threads (2): 6 points in 3 tables
                        0: INPUT('size')
                        1: INPUT('machine') ok
                    prepare (data): 3 calls: 3 computed
                    threads: INPUT('threads')
                bench (body): 6 calls: 4 computed, 2 failed
            SWEEP (table): 3 tables: 1 made, 2 blocked
        mean (body): 3 calls: 1 computed, 2 blocked
    SWEEP sizes (table)
    `> table: MISSING
    `* not computed: 2 of 3 points have no result
";
    assert_eq!(tree(&ran.stdout), text);
}

/// The lines of standard error that begin with these words.
fn said<'a>(stderr: &'a str, begin: &str) -> Vec<&'a str> {
    let lines = stderr.lines().filter_map(|line| line.strip_prefix("ce-run: "));
    lines.filter(|line| line.starts_with(begin)).collect()
}

#[test]
fn failures_name_the_point_and_are_repeated_last() {
    let lab = product("10\n1000\n2000\n", "1\n8\n").commit();
    let ran = lab.ce_run(&[]).exit(1);
    let failed = |size: u32| {
        format!("threads=8 size={size}: bench (body) failed: it ended with exit status 3")
    };
    let mut lines = said(&ran.stderr, "threads=8");
    lines.sort_unstable();
    assert_eq!(lines, [failed(1000), failed(2000)]);
    let last = format!(
        "ce-run: 10 calls: 7 computed, 2 failed, 1 blocked; 1 table: 1 blocked\n\
         ce-run: failures at points:\n  {}\n  {}\n",
        failed(1000),
        failed(2000)
    );
    assert!(ran.stderr.ends_with(&last), "{}", ran.stderr);
}

#[test]
fn failures_have_the_names_that_a_call_depends_on_and_the_order_of_the_points() {
    let lab = product("3\n1\n2\n5\n4\n", "9\n7\n8\n");
    let lab = lab.computation("prepare", "size machine", "data", "exit 7").commit();
    let ran = lab.ce_run(&[]).exit(1);
    let (_, failures) = ran.stderr.split_once("failures at points:\n").unwrap();
    let failed =
        |size| format!("  size={size}: prepare (data) failed: it ended with exit status 7\n");
    assert_eq!(failures, [3, 1, 2, 5, 4].map(failed).concat());
    ran.shows("bench (body): 15 calls: 15 blocked\n");
}

#[test]
fn similar_failures_are_counted() {
    let sizes: String = (1000..1010).map(|size| format!("{size}\n")).collect();
    let lab = product(&sizes, "8\n").commit();
    let ran = lab.ce_run(&["-j", "1"]).exit(1);
    let failed = "bench (body) failed: it ended with exit status 3";
    let told = said(&ran.stderr, "threads=8");
    assert_eq!(told.len(), 3, "{}", ran.stderr);
    let rest = said(&ran.stderr, "7 more points");
    let begin = format!("7 more points: {failed}: threads=8 size=10");
    assert!(
        rest.len() == 1 && rest[0].starts_with(&begin) && rest[0].ends_with(", ..."),
        "{rest:?}"
    );
    let last = format!(
        "ce-run: failures at points:\n  {failed}: 10 points: threads=8 size=1000, \
         threads=8 size=1001, threads=8 size=1002, ...\n"
    );
    assert!(ran.stderr.ends_with(&last), "{}", ran.stderr);
    // Calls that are tried again are reported in the same way, and so are failures where they are no errors.
    let again = lab.ce_run(&["-j", "1"]).exit(1);
    let tried = "7 more points: bench (body) is tried again; it ended with exit status 3: ";
    assert_eq!(said(&again.stderr, tried).len(), 1, "{}", again.stderr);
    assert_eq!(again.stderr.matches("is tried again").count(), 4, "{}", again.stderr);
}

fn events(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn events_name_points_and_sweeps() {
    let lab = product("10\n2000\n", "1\n8\n").commit();
    let ran = lab.ce_run(&["--json"]).exit(1);
    let events = events(&ran.stdout);
    let factor = |name: &str| json!({ "names": [name], "levels": 2 });
    let sweep = json!({
        "sweep": 0, "label": "scaling", "place": "workflow/inputs/00-table",
        "factors": [factor("threads"), factor("size")], "computed": false, "points": 4,
    });
    let run = &events[0];
    assert_eq!(
        (&run["sweeps"], &run["calls"], &run["tables"]),
        (&json!([sweep]), &json!(7), &json!(1))
    );
    assert_eq!(run.get("at_least"), None);
    let ended = |filter: &dyn Fn(&Value) -> bool| -> Vec<&Value> {
        events.iter().filter(|it| it["event"] == "ended" && filter(it)).collect()
    };
    let failed = ended(&|it| it["outcome"] == "failed");
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["point"], json!({ "threads": "8", "size": "2000" }));
    assert_eq!((&failed[0]["computation"], &failed[0]["sweep"]), (&json!("bench"), &json!(0)));
    let mut sizes: Vec<_> = ended(&|it| it["computation"] == "prepare")
        .iter()
        .map(|it| it["point"].to_string())
        .collect();
    sizes.sort();
    assert_eq!(sizes, [r#"{"size":"10"}"#, r#"{"size":"2000"}"#]);
    let tables = ended(&|it| it["kind"] == "table");
    assert_eq!((tables.len(), &tables[0]["sweep"]), (1, &json!(0)));
    assert_eq!((tables[0].get("computation"), tables[0].get("point")), (None, None));
    let plots = ended(&|it| it["computation"] == "plot");
    assert!(plots.len() == 1 && plots[0].get("point").is_none() && plots[0].get("sweep").is_none());
    let end = events.last().unwrap();
    assert_eq!((&end["tally"]["calls"], &end["tables"]["blocked"]), (&json!(7), &json!(1)));
}

#[test]
fn events_say_when_points_are_known() {
    let lab = computed("size\tthreads\n10\t1\n20\t1\n").commit();
    let ran = lab.ce_run(&["--json"]).exit(0);
    let events = events(&ran.stdout);
    assert_eq!((&events[0]["calls"], &events[0]["at_least"]), (&json!(2), &json!(true)));
    assert_eq!(events[0]["sweeps"][0]["points"], Value::Null);
    let expanded = events.iter().find(|it| it["event"] == "expanded").unwrap();
    let call = expanded["call"].clone();
    let all = json!({
        "event": "expanded", "call": call, "kind": "table", "label": "table", "sweep": 0, "points": 2, "calls": 6, "tables": 1,
    });
    assert_eq!(*expanded, all);
    assert_eq!(events.last().unwrap().get("at_least"), None);
}

#[test]
fn many_points_are_explained_together() {
    let lab = product("10\n20\n", "1\n2\n4\n").commit().with_storage();
    std::fs::create_dir(lab.path("storage/tinputs")).unwrap();
    let explain = |arguments: &[&str]| {
        lab.run("ce", &[&["explain"], arguments, &["../storage", "../data/machine"]].concat())
            .exit(3)
    };
    let ran = explain(&[]);
    let line = "\nbench (body), 6 points: never computed [2], at threads=";
    assert!(ran.stdout.contains(line), "{}", ran.stdout);
    let ran = explain(&["-v"]);
    let text = "\
bench (body), 6 points
    never computed [2]
    input 00 (data) waits for prepare (data) [1]
    at threads=";
    assert!(ran.stdout.contains(text), "{}", ran.stdout);
    assert_eq!(ran.stdout.matches(": prepare (data): ../storage").count(), 2, "{}", ran.stdout);
    assert!(
        ran.stdout.contains("size=20: prepare (data): ../storage/c_prepare/"),
        "{}",
        ran.stdout
    );
    let points: Vec<Value> = events(&explain(&["--json"]).stdout)
        .into_iter()
        .filter(|it| it["event"] == "call" && it["computation"] == "bench")
        .map(|it| it["point"].clone())
        .collect();
    assert!(
        points.len() == 6 && points.contains(&json!({ "threads": "4", "size": "20" })),
        "{points:?}"
    );
    let dry = lab.ce_run(&["-n"]).exit(3);
    let lines = said(&dry.stderr, "bench (body), 6 points: never computed, at threads=");
    assert!(lines.len() == 1 && lines[0].ends_with(", ..."), "{}", dry.stderr);
}

#[test]
fn versions_are_compared_point_by_point() {
    let lab = product("10\n1000\n", "1\n2\n8\n").commit();
    let lab = lab
        .computation(
            "bench",
            "data threads",
            "time",
            r#"read -r n <"$2"; [ "$n" -ge 8 ] || echo 1 >"$3""#,
        )
        .file("workflow/inputs/00-table/factors/00-threads", "1\n2\n8\n16\n")
        .commit_again()
        .with_storage();
    let arguments = ["diff", "--no-isolate", "HEAD~1..HEAD", "../storage", "../data/machine"];
    let ran = lab.run("ce", &arguments).exit(1);
    let start = ran.stdout.find("\nSWEEP").unwrap();
    let section = &ran.stdout[start..ran.stdout.find("\nother outputs").unwrap()];
    let lines: Vec<&str> = section.lines().filter(|it| !it.contains("../storage")).collect();
    let expected = [
        "",
        "SWEEP scaling (table): 4 of 6 points differ",
        "  threads=1 size=10: time",
        "  threads=1 size=1000: time",
        "  threads=2 size=10: time",
        "  threads=2 size=1000: time",
        "  2 points only in HEAD",
        "  2 points without a result on one side or both",
    ];
    assert_eq!(lines, expected, "{}", ran.stdout);
    assert!(!ran.stdout.contains("the workflow is another one"), "{}", ran.stdout);
    let lab = lab.file("workflow/inputs/00-table/inputs/00-body/value", "prepare").commit_again();
    let ran =
        lab.run("ce", &["diff", "-n", "HEAD~1..HEAD", "../storage", "../data/machine"]).exit(3);
    let place = "  TASK / table / body: bench[00] -> prepare[00]\n";
    assert!(ran.stdout.ends_with(place), "{}", ran.stdout);
}

#[test]
fn a_body_is_drawn_once_in_a_frame() {
    let lab = product("10\n1000\n", "1\n8\n").commit();
    let plain = lab.run("ce-viz", &[]).exit(0);
    assert_eq!(lab.run("ce-viz", &["-o", "-"]).exit(0).stdout, plain.stdout);
    let frame = plain.stdout.find("label=\"scaling: 4 points\"").unwrap();
    for label in ["bench: 4 calls", "prepare: 2 calls", "INPUT threads", "INPUT size"] {
        let place = plain.stdout.find(&format!("[label=\"{label}\"")).unwrap();
        assert!(place > frame, "{label}: {}", plain.stdout);
    }
    for label in ["INPUT machine", "plot", "SWEEP scaling"] {
        let place = plain.stdout.find(&format!("[label=\"{label}\"")).unwrap();
        assert!(place < frame, "{label}: {}", plain.stdout);
    }
    lab.ce_run(&[]).exit(1);
    let drawn = lab.run("ce-viz", &["../storage", "../data/machine"]).exit(0).stdout;
    let bench = drawn.lines().find(|line| line.contains("bench: 3 of 4 calls, 1 failed")).unwrap();
    assert!(bench.contains(";0.750:"), "{bench}");
    let prepare = drawn.lines().find(|line| line.contains("prepare: 2 calls")).unwrap();
    assert!(!prepare.contains("dashed"), "{prepare}");
}
