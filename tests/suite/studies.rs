//! The examples with sweeps: a grown sweep executes only its new calls, and a redrawn figure only its own call.

use std::fs;

use crate::examples::{example, outputs, programs_of, project};
use crate::lab::Lab;
use crate::needs::needs;
use crate::program::Ran;

/// Runs an example with these arguments, in a sandbox: so results are taken over by later commits.
fn run<'a>(lab: &'a Lab, name: &str, arguments: &[&str]) -> Ran<'a> {
    let task = format!("tasks-example/{name}");
    needs(&programs_of(&task));
    lab.run("ce-run", &[&["--no-sync", "--task", &task, "../storage"], arguments].concat())
}

/// Replaces a text in a file of an example, and commits.
#[track_caller]
fn change(lab: Lab, name: &str, file: &str, from: &str, to: &str) -> Lab {
    let path = example(&lab, name).join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).unwrap();
    lab.commit_again()
}

/// The tables of sweeps in the storage.
fn tables(lab: &Lab) -> Vec<String> {
    let results = lab.results().into_iter();
    let tables = results.filter(|(name, _)| name.starts_with("tables/") && name.ends_with("/00"));
    tables.map(|(_, contents)| String::from_utf8(contents).unwrap()).collect()
}

#[test]
fn scaling_measures_each_point_ten_times_and_redraws_without_measuring() {
    let lab = project().isolated();
    let machine = &["-p", "machine=ada"];
    let ran = run(&lab, "scaling", machine).exit(0).says("84 calls: 84 computed");
    assert!(
        lab.stored(outputs(&ran)[0]).contains("<title>time of 10 million updates [s] by threads")
    );
    let [table] = tables(&lab).try_into().unwrap();
    let rows: Vec<serde_json::Value> =
        table.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 80);
    for row in rows {
        let number = |name: &str| row[name].as_f64().unwrap();
        assert!(number("seconds") > 0.0, "{row}");
        assert_eq!(number("passes"), (10_000_000.0 / number("size")).floor(), "{row}");
        assert!(number("threads") < 4.0 || number("size") > 1000.0, "{row}");
    }
    is_summarised_alike(&lab);
    let lab = change(lab, "scaling", "workflow.ce", "time of", "seconds of");
    run(&lab, "scaling", machine).exit(0).says("84 calls: 83 taken over, 1 computed");
    let lab = change(lab, "scaling", "workflow.ce", ":replicates 10", ":replicates 12");
    run(&lab, "scaling", machine).exit(0).says("100 calls: 82 taken over, 18 computed");
    let lab = change(lab, "scaling", "workflow.ce", "// size)", "// seize)");
    let ran = run(&lab, "scaling", machine).exit(1);
    ran.says("derive-columns: the table has no column \"seize\", which columns, line 1 names");
}

/// `ce table --summary` and the computation of the library give the same numbers for the same table.
#[track_caller]
fn is_summarised_alike(lab: &Lab) {
    let options = ["--summary", "--json", "--task", "tasks-example/scaling", "-p", "machine=ada"];
    let summary = lab.run("ce", &[&["table"], &options[..], &["../storage"]].concat()).exit(0);
    let read = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let found: Vec<_> = summary.lines().into_iter().map(read).collect();
    let mut results = lab.results().into_iter();
    let (_, expected) = results.find(|(name, _)| name.starts_with("c_summarise-table/")).unwrap();
    let expected: Vec<_> = std::str::from_utf8(&expected).unwrap().lines().map(read).collect();
    assert_eq!((found.len(), expected.len()), (8, 8));
    for (found, expected) in found.iter().zip(&expected) {
        let seconds = &found["columns"]["seconds"];
        for (name, of_library) in [
            (&found["point"]["threads"], "threads"),
            (&found["point"]["size"], "size"),
            (&found["not_ok"], "failed"),
            (&seconds["n"], "n"),
            (&seconds["median"], "median"),
            (&seconds["low"], "median_ci95_low"),
            (&seconds["high"], "median_ci95_high"),
        ] {
            assert_eq!(*name, expected[of_library], "{of_library} of {found} and {expected}");
        }
    }
}

#[test]
fn measurements_of_two_machines_make_one_summary_and_one_figure() {
    let lab = project();
    let data = "tasks-example/two-machines/data";
    let [one, two] = ["one-core", "two-cores"].map(|name| format!("{data}/{name}.ndjson"));
    let names = ["-p", "name-a=one", "-p", "name-b=two", &one, &two];
    let ran = run(&lab, "two-machines", &names).exit(0).says("3 calls: 3 computed");
    let figure = lab.stored(outputs(&ran)[0]);
    assert!(figure.contains("machine two, size 1000000"), "{figure}");
    let summaries = lab.results().into_iter();
    let mut summaries = summaries.filter(|(name, _)| name.starts_with("c_summarise-table/"));
    let summary = String::from_utf8(summaries.next().unwrap().1).unwrap();
    let groups = ["one", "two"].map(|name| format!("{{\"machine\":\"{name}\",\"threads\":"));
    assert_eq!(groups.map(|group| summary.matches(&group).count()), [8, 8]);
    let names = ["-p", "name-a=one", "-p", "name-b=", &one, &two];
    run(&lab, "two-machines", &names)
        .exit(1)
        .says("has no column \"machine\", and name-b is empty");
}

/// Commits in the repository `app` of the laboratory what its `src/main.c` then is.
fn commit_program(lab: &Lab, from: &str, to: &str) {
    let path = lab.path("app/src/main.c");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replacen(from, to, 1)).unwrap();
    lab.git("app", &["commit", "--quiet", "--all", "--message", to]);
}

/// Makes a repository with a program that is fast, does not compile, is as it was, and is slow.
fn with_program(lab: Lab) -> Lab {
    fs::create_dir_all(lab.path("app/src")).unwrap();
    let text = "#include <stdlib.h>\nint main(int n, char **a)\n{\n    volatile long sum = n;\n    \
                for (long i = 0; i < atol(a[2]); i++)\n        sum += i;\n    return 0;\n}\n";
    fs::write(lab.path("app/src/main.c"), text).unwrap();
    lab.git("app", &["init", "--quiet"]);
    lab.git("app", &["add", "."]);
    lab.git("app", &["commit", "--quiet", "--message", "sum"]);
    commit_program(&lab, "return 0;", "return 0");
    commit_program(&lab, "return 0", "return 0;");
    fs::write(lab.path("app/README"), "Sums.\n").unwrap();
    lab.git("app", &["add", "."]);
    lab.git("app", &["commit", "--quiet", "--message", "README"]);
    commit_program(&lab, "i++", "i += i % 2 + 1");
    lab
}

/// Runs the example with the commits that change this path, the oldest first.
#[track_caller]
fn history<'a>(lab: &'a Lab, path: &[&str]) -> Ran<'a> {
    let listed = lab.run("ce", &[&["commits", "../app", "-n", "50"], path].concat()).exit(0);
    let mut lines = listed.lines();
    lines.reverse();
    fs::write(lab.path("data/commits"), lines.join("\n") + "\n").unwrap();
    fs::write(lab.path("data/suite"), "short 1000\nlong 100000\n").unwrap();
    run(lab, "history", &HISTORY).exit(0)
}

const HISTORY: [&str; 6] =
    ["-r", "app=../app", "-p", "machine=ada", "../data/commits", "suite=../data/suite"];

#[test]
fn a_history_executes_the_calls_of_new_commits() {
    let lab = with_program(project().isolated());
    // Two programs are built and measured five times; a commit does not compile, and a later one is as the first.
    let ran = history(&lab, &["--", "src"]).says("13 computed, 1 failed, 5 blocked");
    assert!(lab.stored(outputs(&ran)[0]).contains("rows failed or have no value"));
    let [table] = tables(&lab).try_into().unwrap();
    // A row for each benchmark, or one that has failed.
    assert_eq!(table.lines().count(), 35);
    let failed = table.lines().filter(|line| line.ends_with("\"status\":\"failed\"}"));
    assert_eq!(failed.count(), 5);
    let steps = lab.run(
        "ce",
        &[&["table", "--steps", "--task=tasks-example/history", "../storage"][..], &HISTORY]
            .concat(),
    );
    let steps = steps.exit(3).stdout;
    let of = |name: &str| steps.contains(&format!("seconds (benchmark = {name})"));
    assert!(of("short") && of("long") && !of(""), "{steps}");
    assert!(table.lines().nth(10).unwrap().contains("\"subject\":\"return 0\",\"replicate\":1,"));
    // A commit that touched the README alone is drawn, and shares its calls.
    history(&lab, &[]).says(" 1 computed, 1 failed, 5 blocked");
    commit_program(&lab, "i % 2", "i % 3");
    history(&lab, &[]).says(" 7 computed, 1 failed, 5 blocked");
    let unknown = "{\"commit\":\"0000000000000000000000000000000000000001\"}\n";
    fs::write(lab.path("data/commits"), unknown).unwrap();
    run(&lab, "history", &HISTORY).exit(3).says("try: git -C").says("fetch --tags");
}
