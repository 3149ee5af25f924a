//! `ce run --where`: some points of sweeps, and nothing that needs the others.

use crate::lab::Lab;
use crate::program::Ran;

/// A sweep of two factors, and a computation that reads its table.
fn lab() -> Lab {
    Lab::task("(add INPUT('x') INPUT('x'))[0]")
        .file("inputs", "")
        .without("workflow")
        .computation("count", "table", "rows", "wc -l <\"$1\" >\"$2\"")
        .node("", "computation", "count")
        .node("inputs/00-table/", "sweep", "PRODUCTS")
        .file("workflow/inputs/00-table/factors/00-a", "1\n2\n3\n")
        .file("workflow/inputs/00-table/factors/01-b", "5\n7\n")
        .call("inputs/00-table/inputs/00-body/", "mul", &["a", "b"])
        .commit()
}

fn run<'a>(lab: &'a Lab, arguments: &[&str]) -> Ran<'a> {
    lab.run("ce-run", &[&["--no-sync"], arguments, &["../storage"]].concat())
}

#[test]
fn only_requested_points_are_evaluated() {
    let lab = lab();
    let ran = run(&lab, &["--where", "a=2"]).exit(0).called(vec!["mul", "mul"]);
    let ran = ran.says("2 of 6 points of SWEEP PRODUCTS: 4 were not asked for");
    ran.says("3 calls: 2 computed, 1 not asked for").shows("not asked for");
    assert!(
        !lab.storage().iter().any(|name| name.starts_with("tables/") || name.starts_with("t_"))
    );
    // A dry run says what of the points is missing.
    lab.unchanged(|| run(&lab, &["-n", "--where", "a=2"]).exit(0));
    let ran = lab.unchanged(|| run(&lab, &["-n", "--where", "a=2,3", "--where", "b=5"]).exit(3));
    ran.says("3 calls: 1 reused, 2 missing");
    run(&lab, &["--where", "a=1,2", "--where", "b=7"]).exit(0).called(vec!["mul"]);
    run(&lab, &["--where", "a=1,2", "--where", "b=7", "--where", "a=3"])
        .exit(0)
        .called(vec!["mul"])
        .says("3 of 6 points");
    let ran = run(&lab, &["-q", "--where", "a=2"]).exit(0).called(vec![]);
    assert_eq!(ran.stdout, "");
    run(&lab, &[]).exit(0).called(vec!["mul", "mul", "count"]);
    // With all points, nothing is left out.
    let ran = run(&lab, &["-q", "--where", "a=1,2,3"]).exit(0).called(vec![]);
    assert_eq!(lab.stored(ran.stdout.trim()), "6\n");
}

#[test]
fn a_point_that_fails_fails_the_run() {
    let lab = lab().computation("mul", "a b", "product", "[ $(cat $1) != 2 ] && cat $1 >$3");
    let lab = lab.commit_again();
    run(&lab, &["--where", "a=2"]).exit(1).says("mul");
    run(&lab, &["--where", "a=1,3"]).exit(0);
}

#[test]
fn jobs_of_requested_points_are_kept() {
    let lab = Lab::task("Inputs: 'n', 'm'\n(add INPUT('n') INPUT('m'))[0]").commit();
    let each = ["--each", "n=1,2", "--each", "m=3,4"];
    let ran = run(&lab, &[&each[..], &["--where", "n=2"]].concat()).exit(0);
    ran.says("2 of 4 points of the task: 2 were not asked for")
        .says("2 jobs, one for each point: 2 stored")
        .called(vec!["add", "add"]);
    let ran = run(&lab, &[&["-q"], &each[..], &["--where", "m=4"]].concat()).exit(0);
    let points: Vec<&str> =
        ran.lines().iter().map(|line| line.split_once('\t').unwrap().0).collect();
    assert_eq!(points, ["n=1 m=4", "n=2 m=4"]);
}

/// A sweep within another one, whose points are computed.
fn nested() -> Lab {
    Lab::task("(add INPUT('x') INPUT('x'))[0]")
        .file("inputs", "")
        .without("workflow")
        .computation("derive", "", "points", "printf 'n\\n1\\n2\\n' >\"$1\"")
        .computation("count", "table", "rows", "wc -l <\"$1\" >\"$2\"")
        .node("", "sweep", "OUTER")
        .node("inputs/01-points/", "computation", "derive")
        .node("inputs/00-body/", "computation", "count")
        .node("inputs/00-body/inputs/00-table/", "sweep", "INNER")
        .file("workflow/inputs/00-body/inputs/00-table/factors/00-k", "3\n4\n")
        .call("inputs/00-body/inputs/00-table/inputs/00-body/", "mul", &["n", "k"])
        .commit()
}

#[test]
fn computed_points_are_selected_when_they_are_known() {
    let lab = nested();
    let ran = run(&lab, &["--where", "n=2"]).exit(0);
    ran.says("1 of 2 points of SWEEP OUTER").called(vec!["derive", "mul", "mul", "count"]);
    let ran = run(&lab, &["--where", "k=3"]).exit(0).called(vec!["mul"]);
    ran.says("2 of 4 points of SWEEP INNER: 2 were not asked for");
    // A missing point can be reported only after the points are known.
    run(&lab, &["--where", "n=9"])
        .exit(2)
        .says("no point has n=9\n  try: there are n=1, 2")
        .called(vec![]);
}

#[test]
fn nothing_is_evaluated_for_a_name_that_no_sweep_has() {
    let lab = nested();
    let ran = run(&lab, &["--where", "machine=2"]).exit(2).called(vec!["derive"]);
    ran.says("no sweep has points with a name \"machine\"").says("there are k, n\n");
    let ran = run(&lab, &["--where", "kk=2"]).exit(2).called(vec![]);
    let ran = ran.says("no sweep has points with a name \"kk\"\n  try: did you mean k?");
    assert!(!ran.stderr.contains("no point is left"), "{}", ran.stderr);
}

#[test]
fn unknown_names_and_levels_are_reported_before_any_call_runs() {
    let lab = lab();
    let wrong = |wanted: &str, what: &str| {
        run(&lab, &["--where", wanted]).exit(2).says(what).called(vec![]);
    };
    wrong("aa=1", "no sweep has points with a name \"aa\"\n  try: did you mean a?");
    wrong("threads=1", "try: there are a, b");
    wrong("a=1,4", "no point has a=4\n  try: there are a=1, 2, 3");
    wrong("a=1,b=2", "no point has a=b=2\n  try: write --where once for each name, ");
    wrong("a=1,a=2", "and texts of one name as in --where a=TEXT,TEXT; there are a=1, 2, 3");
    wrong("a", "write NAME=TEXT,TEXT,...");
    wrong("a=", "text 1 is empty");
    assert!(!lab.path("storage").exists(), "a storage was made for nothing");
    let lab = Lab::task("Inputs: 'n'\n(add INPUT('n') INPUT('n'))[0]").commit();
    let ran = run(&lab, &["-p", "n=1", "--where", "n=1"]).exit(2);
    ran.says("no sweep has points with a name \"n\"").says("leave out --where");
    let lab = Lab::task("(add INPUT('x') INPUT('x'))[0]")
        .file("inputs", "")
        .without("workflow")
        .node("", "sweep", "")
        .file("workflow/factors/00-a", "1\n2\n")
        .file("workflow/exclude.tsv", "a\n2\n")
        .call("inputs/00-body/", "mul", &["a", "a"])
        .commit();
    run(&lab, &["--where", "a=2"]).exit(2).says("no point has a=2\n  try: there are a=1");
    assert!(!lab.path("storage").exists());
}

#[test]
fn the_sheet_of_a_task_is_read_before_a_storage_is_made() {
    let lab = Lab::task("(add INPUT('x') INPUT('x'))[0]")
        .file("inputs", "")
        .without("workflow")
        .node("", "sweep", "OUTER")
        .node("inputs/01-points/", "file", "sheet.tsv")
        .node("inputs/00-body/", "sweep", "INNER")
        .node("inputs/00-body/inputs/01-points/", "file", "inner.tsv")
        .file("workflow/names", "n\n")
        .file("workflow/inputs/00-body/names", "k\n")
        .call("inputs/00-body/inputs/00-body/", "mul", &["n", "k"])
        .file("sheet.tsv", "n\n1\n2\n")
        .file("inner.tsv", "k\n5\n7\n")
        .commit();
    run(&lab, &["--where", "machine=1"]).exit(2).says("there are k, n");
    run(&lab, &["--where", "n=3"]).exit(2).says("no point has n=3");
    assert!(!lab.path("storage").exists());
    run(&lab, &["--where", "k=7"]).exit(0).called(vec!["mul"; 2]);
}

/// A text with a comma stands in quotes, for a sweep and for the task's own inputs; other quotes are part of the text.
#[test]
fn a_text_with_a_comma_is_chosen_in_quotes() {
    let lab = Lab::empty()
        .file("workflow.ce", "SWEEP((f who) :over who 'a, b' 'c' '\"d')\n")
        .computation("f", "who", "v", r#"wc -c <"$1" >"$2""#)
        .commit();
    for (chosen, calls) in [
        ("who='a, b'", 1),
        ("who='a, b',c", 2),
        ("who=c , \"a, b\"", 2),
        ("who=\"d", 1),
        ("who=a, b", 0),
    ] {
        let ran = lab.run("ce", &["run", "-n", "--no-sync", "--where", chosen, "../storage"]);
        match calls {
            0 => drop(ran.exit(2).says("no point has who=a")),
            calls => drop(ran.exit(3).says(&format!("{calls} missing"))),
        }
    }
    lab.run("ce", &["run", "--no-sync", "../storage"]).exit(0);
    let by = |by: &str| lab.run("ce", &["compare", "--task", ".", "--by", by, "../storage"]);
    by("who=c,'a, b'").exit(0).shows("v from c to a, b");
    by("who=a, b,c").exit(2).says("a text with a comma in quotes");
}
