//! The page of a study: what somebody who has never heard of it reads, without scripts.

use std::fs;

use serde_json::Value;

use super::chromium::Chromium;
use super::{page, report};
use crate::lab::Lab;
use crate::program::Ran;
use crate::repository::{self, LAB};
use crate::shared;

/// A study of two methods, one of them slower, for two sizes. Its values are not times, so they are the same everywhere.
const STUDY: &str = "# Is the slow method really slower?
# It is tried eight times.
Inputs: machine, data

runs = SWEEP(
  (measure method size replicate machine)
  :over method 'fast' 'slow'
  :over size 10 100000
  :replicates 8
  :columns '00 seconds [s] less')

ALL(runs (tell runs data))
";

/// The text of a table with these inputs; 0.1 ms for each step.
const MEASURE: &str = r#"read method <"$1"; read size <"$2"; read replicate <"$3"
case $method in slow) base=150 ;; *) base=100 ;; esac
echo "0.0$((base * 10 + replicate % 5 * 3 + size % 7))" >"$5""#;

fn study() -> Lab {
    let lab = Lab::task("Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))");
    lab.without("workflow")
        .without("inputs")
        .file("workflow.ce", STUDY)
        .file("README.md", "# methods: fast and slow\n\nNot the question.\n")
        .computation("measure", "method\nsize\nreplicate\nmachine", "seconds", MEASURE)
        .computation(
            "tell",
            "runs\ndata",
            "verdict.md\nfigure.svg\nlist",
            r#"printf '# Verdict\n\nThe slow one **is** slower: [why](https://example.org/a), <b onclick=x>raw</b>, [no](javascript:x).\n' >"$3"
echo '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="60"><circle r="20" cx="30" cy="30"/></svg>' >"$4"
printf 'name\tvalue\nα\t1\n' >"$5""#,
        )
        .data("words", "several words\nof data\n")
        .commit()
}

const ARGUMENTS: [&str; 6] =
    ["--task", ".", "../storage", "-p", "machine=ada", "data=../data/words"];

/// Evaluates the study.
fn evaluate(lab: &Lab) -> Ran<'_> {
    lab.run("ce", &["run", "--no-sync", "../storage", "-p", "machine=ada", "data=../data/words"])
}

#[test]
fn a_reader_finds_question_results_measurements_and_how_to_repeat_them() {
    let lab = study();
    evaluate(&lab).exit(0);
    lab.unchanged(|| report(&lab, &ARGUMENTS).exit(0).says("33 calls, 1 table"));
    let page = page(&lab);
    for shown in [
        "<h1>methods: fast and slow</h1>",
        "Is the slow method really slower? It is tried eight times.",
        "<b>Complete</b>: 32 rows, 33 calls, none failed",
        "All 4 medians are known to ± 0.6 % or better",
        "Machine ada (as given), host ",
        "Given: machine = ada, data = a file of 22 B, SHA-1 ",
        "Version of the study: ",
        "who changed it",
        "<span class=\"answer\">seconds: 50 % more with slow than with fast (49 to 50 %), in all 2 comparisons: worse, 95 % sure</span>",
        // Results, in their order and by their kinds.
        "<h3>Verdict</h3>",
        "<strong>is</strong>",
        "<a href=\"https://example.org/a\">why</a>",
        "&lt;b onclick=x&gt;raw",
        "src=\"data:image/svg+xml;base64,",
        "download=\"figure.svg\"",
        "Made by tell from runs, data.",
        // Medians of 8 values with an interval, and what became of them.
        "medians of 8 measurements each. Less is better.",
        "<b>10.09</b>",
        "<b>15.11</b>",
        "fast → slow",
        "more <span class=\"bad\">(worse)</span>",
        "ce run ../results -p machine=ada data=FILE",
        "To compute all of it took ",
    ] {
        assert!(page.contains(shown), "{shown}\n{}", &page[..page.find("<script").unwrap()]);
    }
    assert!(!page.contains("javascript:x"), "a link of a result leads to a script");
    let order = [
        "id=\"results\"",
        "id=\"measurements\"",
        "id=\"compared\"",
        "id=\"repeat\"",
        "id=\"made\"",
    ];
    let places: Vec<usize> = order.iter().map(|it| page.find(it).unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
    // No digest and no path stands above how it was made.
    let decides = &page[page.find("id=\"results\"").unwrap()..page.find("id=\"repeat\"").unwrap()];
    for hidden in ["c_measure/", "tinputs/", "../storage"] {
        assert!(!decides.contains(hidden), "{hidden}");
    }
}

#[test]
fn medians_of_too_few_values_count_as_uncertain() {
    let lab = study();
    let measure =
        "read size <\"$2\"; read replicate <\"$3\"; [ $size != 10 ] || [ $replicate -gt 3 ] || exit 1
        echo $replicate >\"$5\"";
    let lab = lab
        .computation("measure", "method\nsize\nreplicate\nmachine", "seconds", measure)
        .commit_again();
    evaluate(&lab).exit(1);
    report(&lab, &ARGUMENTS).exit(0);
    let told = "4 of 4 medians are known no better than ± 20 %: 2 rest on too few measurements";
    assert!(page(&lab).contains(told));
}

#[test]
fn a_goal_that_was_missed_comes_first() {
    let lab = study();
    let text = STUDY.replace(":replicates 8", ":replicates '6..8 until seconds ±0.3%'");
    fs::write(lab.path("task/workflow.ce"), text).unwrap();
    let lab = lab.commit_again();
    evaluate(&lab).exit(0);
    report(&lab, &ARGUMENTS).exit(0);
    let page = page(&lab);
    let missed = "The goal, to know the median of seconds ±0.3%, was missed at 4 of 4 points";
    let [missed, answer] = [missed, "slow than with fast"].map(|it| page.find(it).unwrap());
    assert!(missed < answer);
}

#[test]
fn each_factor_of_texts_is_compared_and_verdicts_both_ways_are_reported() {
    let lab = study();
    let text = STUDY
        .replace("'fast' 'slow'", "'fast' 'slow' 'odd'")
        .replace("ALL(runs (tell runs data))", "ALL(runs data)");
    let text = text.replace(":over size 10 100000", ":over size 10 100000 :over flags '-O1' '-O2'");
    let text = text.replace("(measure method size", "(measure method flags");
    let measure = r#"read method <"$1"; read flags <"$2"; read replicate <"$3"
case $method$flags in slow*) base=200 ;; odd-O1) base=180 ;; odd-O2) base=120 ;; *) base=150 ;; esac
echo "0.0$((base * 10 + replicate % 5 * 3))" >"$5""#;
    fs::write(lab.path("task/workflow.ce"), text.replace(" :over size 10 100000", "")).unwrap();
    let lab = lab
        .computation("measure", "method\nflags\nreplicate\nmachine", "seconds", measure)
        .commit_again();
    evaluate(&lab).exit(0);
    report(&lab, &ARGUMENTS).exit(0);
    let page = page(&lab);
    for told in [
        "<span class=\"answer\">seconds: 33 % more with slow than with fast (",
        " %), in all 2 comparisons: worse, 95 % sure</span>",
        " with odd than with fast (",
        "better in 1, worse in 1 of 2 comparisons</span>",
        " with odd than with slow (",
        "Compared: seconds by method",
        "Compared: seconds by flags",
    ] {
        assert!(page.contains(told), "{told}");
    }
}

#[test]
fn the_version_names_the_commit_and_the_last_change_of_the_study() {
    let lab = Lab::empty()
        .file("sub/workflow.ce", "# Why?\nInputs: x\n\n(same x)\n")
        .file("sub/computations/same.sh", "#!/bin/sh\n#CE inputs x\n#CE outputs y\ncp $1 $2\n")
        .mode("sub/computations/same.sh", 0o755)
        .commit();
    let version = |lab: &Lab| lab.git("task", &["rev-parse", "--short=12", "HEAD"]);
    let told = |lab: &Lab, told: &str| {
        report(lab, &["--task", "sub", "../storage", "-p", "x=1"]).exit(0);
        assert!(page(lab).contains(told), "{told}");
    };
    lab.run("ce", &["run", "--task", "sub", "../storage", "-p", "x=1"]).exit(0);
    let first = version(&lab);
    told(&lab, &format!("Version of the study: {first} of 2001-09-09, “"));
    let lab = lab.file("other", "").commit_again();
    let head = version(&lab);
    told(&lab, &format!("Version of the study: {head}, last changed by {first} of 2001-09-09, “"));
}

#[test]
fn the_page_is_complete_without_scripts_and_on_paper() {
    let lab = study();
    let Some(mut browser) = Chromium::start() else { return };
    evaluate(&lab).exit(0);
    report(&lab, &ARGUMENTS).exit(0);
    browser.without_scripts();
    for (size, scheme) in [([400, 800], "dark"), ([1000, 800], "light")] {
        browser.open(&lab.path("page.html"), size, scheme);
        browser.is("document.documentElement.scrollWidth <= window.innerWidth");
        browser.is("document.querySelector('#results img').complete && document.querySelector('#results img').naturalWidth === 90");
        browser.is("document.querySelectorAll('#measurements tbody tr').length === 4");
        browser.is("document.querySelectorAll('#measurements svg.strip circle').length === 32");
        browser.is("document.querySelector('#graph svg').getBoundingClientRect().height > 50");
        browser.is("getComputedStyle(document.querySelector('#workflow .bar')).display === 'none'");
    }
    let pdf = browser.printed();
    assert!(pdf.starts_with(b"%PDF") && pdf.len() > 10_000, "{}", pdf.len());
}

#[test]
fn contents_that_are_too_large_or_secret_are_only_named() {
    let lab = study();
    evaluate(&lab).exit(0);
    // The table has more than a KiB, the others have room behind it.
    report(&lab, &[&ARGUMENTS[..], &["--embed", "1K"]].concat()).exit(0);
    let text = page(&lab);
    assert!(
        text.contains("download=\"figure.svg\"") && !text.contains("download=\"table.ndjson\"")
    );
    let token = format!("ghp_{}", "x".repeat(36));
    let script = format!("echo '{token}' >\"$3\"; cp \"$3\" \"$4\"; cp \"$3\" \"$5\"");
    let lab = lab.computation("tell", "runs\ndata", "verdict.md\nfigure.svg\nlist", &script);
    let lab = lab.commit_again();
    evaluate(&lab).exit(0);
    report(&lab, &ARGUMENTS).exit(0);
    let text = page(&lab);
    assert!(text.contains("it seems to hold a token of GitHub"));
    assert!(!text.contains(&token));
}

/// The text and the README of a task are read in the version that is asked for, wherever in its repository the task is.
#[test]
fn the_question_is_read_from_the_commit() {
    let lab = study();
    fs::create_dir(lab.path("task/inner")).unwrap();
    for name in ["workflow.ce", "README.md", "computations"] {
        let inner = lab.path("task/inner").join(name);
        fs::rename(lab.path("task").join(name), inner).unwrap();
    }
    let lab = lab.commit_again().with_storage();
    fs::write(lab.path("task/inner/README.md"), "# another title\n").unwrap();
    let text = STUDY.replace("# Is the slow method", "# Was the slow method");
    fs::write(lab.path("task/inner/workflow.ce"), text).unwrap();
    let arguments = ["--task", "inner", "--at", "HEAD"];
    report(&lab, &[&arguments[..], &ARGUMENTS[2..]].concat()).exit(0);
    let page = page(&lab);
    for shown in ["<h1>methods: fast and slow</h1>", "Is the slow method really slower?"] {
        assert!(page.contains(shown), "{shown}");
    }
}

/// A result that came from elsewhere was not measured when it came, nor here.
#[test]
fn unpublished_times_and_hosts_are_left_out() {
    let lab = study();
    let inputs = ["-p", "machine=ada", "data=../data/words"];
    lab.run("ce", &[&["run", "--no-sync", "../storage"][..], &inputs].concat()).exit(0);
    shared::repository(&lab, "results.git");
    shared::push(&lab, &[], "storage", "results.git").exit(0);
    shared::pull(&lab, &[], "other", "results.git").exit(0);
    report(&lab, &[&["--task", ".", "../other"][..], &inputs].concat()).exit(0);
    let page = page(&lab);
    for shown in ["<b>Complete</b>", "Measured elsewhere in ", "Machine ada (as given)<"] {
        assert!(page.contains(shown), "{shown}");
    }
    for hidden in ["executed (UTC)", "<td class=\"number\">–</td>", ">CPU time<", "Host"] {
        assert!(!page.contains(hidden), "{hidden}");
    }
    // The ledger says how long each took, and which memory it had.
    assert!(page.contains("<th class=\"number\" scope=\"col\">total</th>"));
    assert!(page.contains("<th class=\"number\" scope=\"col\">peak memory</th>"));
    let table = lab.run("ce", &[&["table", "--json", "../other"][..], &inputs].concat()).exit(0);
    for row in table.stdout.lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        assert!(row.get("host").is_none_or(Value::is_null), "{row}");
    }
    // A user who publishes them says so.
    shared::repository(&lab, "timed.git");
    shared::push(&lab, &["--times", "--machine"], "storage", "timed.git").exit(0);
    shared::pull(&lab, &[], "third", "timed.git").exit(0);
    report(&lab, &[&["--task", ".", "../third"][..], &inputs].concat()).exit(0);
    let page = super::page(&lab);
    assert!(page.contains("executed (UTC)") && page.contains("<h3>Machines</h3>"));
    let table = lab.run("ce", &[&["table", "--json", "../third"][..], &inputs].concat()).exit(0);
    for row in table.stdout.lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        let published = &row["published"];
        assert!(row["time"].is_string() && row["time"] == published["end"], "{row}");
        assert!(published["by"] == "unsigned" && published["machine"].is_string(), "{row}");
        assert!(row["host"].is_null() && row["duration"].is_null(), "{row}");
    }
    let own = lab.run("ce", &[&["table", "--json", "../storage"][..], &inputs].concat()).exit(0);
    assert!(own.stdout.contains("\"time\":\"20") && !own.stdout.contains("published"));
}

#[test]
fn a_study_without_figures_is_plotted() {
    let lab = study();
    let text = STUDY.replace("ALL(runs (tell runs data))", "ALL(runs data)");
    fs::write(lab.path("task/workflow.ce"), text).unwrap();
    let lab = lab.commit_again();
    evaluate(&lab).exit(0);
    report(&lab, &ARGUMENTS).exit(0);
    let page = page(&lab);
    assert!(page.contains("Medians of seconds, in ms by size, for each method."), "no caption");
    assert_eq!(page.matches("<path class=\"bar\"").count(), 4);
    assert_eq!(page.matches("class=\"value\"").count(), 32);
    assert!(!page.contains("by replicate"));
}

/// The commands name the given arguments, also repositories.
#[test]
fn repositories_that_were_given_are_named_to_repeat_it() {
    let lab = Lab::empty()
        .file("workflow.ce", "(count TREE('lib:src' 'HEAD')[00])\n")
        .computation("count", "files", "count", r#"ls "$1" | wc -l >"$2""#)
        .commit();
    fs::create_dir_all(lab.path("lib/src")).unwrap();
    fs::write(lab.path("lib/src/a"), "a\n").unwrap();
    repository::commit(&lab.path("lib"), LAB, "lib");
    let given = ["../storage", "-r", "lib=../lib"];
    lab.run("ce", &[&["run"], &given[..]].concat()).exit(0);
    let told = |what: &str| {
        report(&lab, &[&["--task", "."], &given[..]].concat()).exit(0);
        let page = page(&lab);
        assert!(page.contains("ce run ../results -r lib=REPO"), "{page}");
        assert!(page.contains(&format!("lib=REPO: {what}")), "{page}");
    };
    told("the repository that the study calls so");
    lab.git("lib", &["remote", "add", "origin", "https://example.org/lib.git"]);
    told("a clone of https://example.org/lib.git");
}

/// A call that has failed before counts as failed at another commit, too, where nothing is recorded of it.
#[test]
fn failures_at_another_commit_are_failures() {
    let mut lab = Lab::empty()
        .file("workflow.ce", "SWEEP((f n) :over n 1 2 3 :allow-failed)\n")
        .computation("f", "n", "v", r#"[ "$(cat "$1")" != 2 ] && cp "$1" "$2""#)
        .commit()
        .isolated();
    for note in ["", "another commit\n"] {
        lab = lab.file("README.md", note).commit_again();
        lab.ce_run(&[]).exit(0);
        report(&lab, &["--task", ".", "../storage"]).exit(0);
        let page = page(&lab);
        assert!(page.contains("Not complete</b>: of 3 calls, 1 failed"), "{page}");
        let (_, failures) = page.split_once("<h2>Failures</h2>").unwrap();
        assert!(failures.contains("<b>f, 1 call</b>: it ended with exit status 1</p>"), "{page}");
    }
}
