//! Calls are listed by time; failures, calls that were not executed, and uncommitted ones are marked.

use std::fs;

use serde_json::{Value, json};

use crate::arith::Arith;
use crate::lab::{Lab, files};
use crate::program::Ran;
use crate::terminal::{Shown, Terminal, lines};

const TASK: &str = "Inputs: 'x', 'y'\n(mul INPUT('x') INPUT('y'))[0]";

/// The name of the call without the output's number, under a version.
fn call(version: &str) -> String {
    format!("c_mul/{}/ad48103e4fc7_5d9474c0309b", version.get(..12).unwrap())
}

/// A laboratory in which a call was executed on another host, taken over by a second commit, and
/// from there by a third one; and the commits.
fn taken_over() -> (Lab, [String; 3]) {
    let mut lab = Lab::task(TASK).commit();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["mul"]);
    for (name, text) in files(&lab.path("storage")) {
        if name.starts_with("c_mul/") && name.contains("/record/") {
            let mut record: Value = serde_json::from_slice(&text).unwrap();
            record["origin"]["executed"]["isolation"] = json!("namespaces");
            record["recorded"]["host"] = json!("elsewhere");
            fs::write(lab.path("storage").join(name), record.to_string()).unwrap();
        }
    }
    for file in ["README", "NEWS"] {
        lab = lab.file(file, "").commit_again();
        lab.ce_run(&["--no-sync"]).exit(0).called(vec![]).says("1 call: 1 taken over");
    }
    let commits = ["HEAD~2", "HEAD~1", "HEAD"].map(|rev| lab.git("task", &["rev-parse", rev]));
    (lab, commits)
}

fn ce<'a>(lab: &'a Lab, arguments: &[&str]) -> Ran<'a> {
    lab.run("ce", arguments).exit(0)
}

#[test]
fn a_call_that_was_taken_over_is_not_logged_as_executed() {
    let (lab, [first, second, third]) = taken_over();
    let log = ce(&lab, &["log", "../storage"]);
    let mut lines = log.lines();
    assert!(lines.remove(0).starts_with("ended "), "{}", log.stdout);
    lines.reverse();
    assert_eq!(lines.len(), 3, "{}", log.stdout);
    assert!(lines[0].contains(&first[..12]) && lines[0].contains("  elsewhere  "), "{}", lines[0]);
    for (line, commit) in lines[1..].iter().zip([&second, &third]) {
        assert!(line.contains(&commit[..12]) && line.contains("  taken over  -  "), "{line}");
        assert!(line.contains("  from c_mul/"), "{line}");
        assert!(line.contains(", executed at 2") && line.ends_with(" on elsewhere"), "{line}");
    }
    let json = ce(&lab, &["log", "--json", "../storage"]);
    let json: Vec<Value> =
        json.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<_> = json.iter().map(|line| line["name"].as_str().unwrap()).collect();
    assert_eq!(names, [call(&first), call(&second), call(&third)]);
    assert!(json[0]["taken_over"].is_null() && json[0]["seconds"].is_number(), "{}", json[0]);
    // A copy names the original.
    assert_eq!(json[2]["taken_over"]["from"], call(&first));
    assert_eq!(json[2]["taken_over"]["host"], "elsewhere");
    assert!(json[2]["seconds"].is_null() && json[2]["failed"].is_null(), "{}", json[2]);
    let slow = ce(&lab, &["log", "--slow", "0", "../storage"]);
    assert_eq!(slow.lines().len(), 2);
    assert!(slow.stdout.contains(&first[..12]), "{}", slow.stdout);

    let file = call(&third).replacen("/ad", "/00/ad", 1);
    let shown = ce(&lab, &["show", "../storage", &file]);
    let shown = shown.shows("  taken over   from c_mul/").shows("; when that was executed:\n");
    let shown = shown.shows("  where        elsewhere\n  when         2");
    assert!(shown.stdout.contains(&format!("  commit       {third}\n")), "{}", shown.stdout);
    let json = ce(&lab, &["show", "--json", "../storage", &file]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["taken_over"]["host"], "elsewhere");
    assert_eq!(json["taken_over"]["executed"], json["record"]["call"]["origin"]["executed"]["end"]);
    assert_eq!(json["record"]["version"], third[..12]);
    let file = call(&first).replacen("/ad", "/00/ad", 1);
    let json = ce(&lab, &["show", "--json", "../storage", &file]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["taken_over"].is_null());

    // Computing that is not lost does not count; where all of it goes, it counts once.
    let gc = ["gc", "--no-keep", "--older=0s", "../storage"];
    let listed = ce(&lab, &gc);
    assert_eq!(listed.stdout.matches(" s  2").count(), 1, "{}", listed.stdout);
    // The origin of the last one is not known any more.
    for commit in [&first, &second] {
        let name = call(commit).replacen("/ad", "/record/ad", 1) + ".json";
        fs::remove_file(lab.path("storage").join(name)).unwrap();
    }
    let log = ce(&lab, &["log", "../storage"]).stdout;
    assert!(log.contains("taken over") && !log.contains("on elsewhere"), "{log}");
    let file = call(&third).replacen("/ad", "/00/ad", 1);
    ce(&lab, &["show", "../storage", &file])
        .shows("  where        not known: its record is gone\n");
}

#[test]
fn a_dirty_execution_has_no_commit_in_the_log() {
    let lab = Lab::task(TASK).commit();
    let dirty = |lab: Lab, script: &str| lab.computation("mul", "a b", "product", script);
    let lab = dirty(lab, "exit 3");
    lab.ce_run(&["--dirty"]).exit(1);
    let lab = dirty(lab, "echo 3 >\"$3\"");
    lab.ce_run(&["--dirty"]).exit(0);
    let head = lab.git("task", &["rev-parse", "HEAD"]);
    let remark = format!("uncommitted changes on top of {}", &head[..12]);
    let log = ce(&lab, &["log", "../storage"]);
    let lines = log.lines();
    assert_eq!(lines.len(), 3, "{}", log.stdout);
    assert!(lines[1].ends_with(&format!("  {remark}")), "{}", lines[1]);
    assert!(lines[2].ends_with(&format!("  FAILED: it ended with exit status 3; {remark}")));
    assert!(
        lines[1..].iter().all(|line| line.contains("  mul ") && line.contains("  dirty-")),
        "{}",
        log.stdout
    );
    assert_eq!(ce(&lab, &["log", "--commit", &head[..12], "../storage"]).stdout, "");
    let json = ce(&lab, &["log", "--json", "--failed", "../storage"]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["dirty"], &json["commit"]), (&json!(true), &json!(head)));
    assert_eq!(json["failed"], "it ended with exit status 3");
    assert_eq!(ce(&lab, &["log", "--commit", "dirty-", "../storage"]).lines(), lines);
    let file = lab.results().into_keys().find(|name| name.starts_with("c_mul/")).unwrap();
    let version = file.split('/').nth(1).unwrap();
    let shown = ce(&lab, &["show", "../storage", &file]);
    shown.shows(&format!(
        "  commit       none: {version} has uncommitted changes on top of {head}\n"
    ));
    let json = ce(&lab, &["show", "--json", "../storage", &file]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["record"]["version"], version);
    assert_eq!(json["record"]["call"]["dirty"], true);
}

#[test]
fn requested_resources_are_listed_beside_used_ones() {
    let (lab, _) = taken_over();
    let lab = lab
        .file("resources", "mul cpus 1\nmul memory 1536K\nmul time 2h\nmul exclusive\n")
        .computation("mul", "a b", "product", "echo 6 >\"$3\"")
        .commit_again();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["mul"]);
    let table = ce(&lab, &["log", "--resources", "../storage"]);
    let lines = table.lines();
    let words: Vec<Vec<&str>> =
        lines.iter().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 3, "{}", table.stdout);
    // Calls that were taken over do not count.
    assert_eq!(
        (words[1][..3].join(" "), words[2][..3].join(" ")),
        ("mul 1 -".into(), "mul 1 1".into())
    );
    assert!(lines[2].contains("1536K") && lines[2].contains("  2h  "), "{}", lines[2]);
    assert!(lines[2].ends_with("  exclusive"), "{}", lines[2]);
    // In characters: a short time is in µs.
    let column = |line: &str, word: &str| line.split(word).next().unwrap().chars().count();
    assert_eq!(column(lines[0], "also"), column(lines[2], "exclusive"), "{}", table.stdout);
    let json = |options: &[&str]| -> Vec<Value> {
        let json = ce(&lab, &[&["log", "--json"], options, &["../storage"]].concat());
        json.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let asked = json!(["cpus 1", "memory 1536K", "time 2h", "exclusive"]);
    let [none, usage] = &json(&["--resources"])[..] else { panic!("two lines") };
    assert_eq!((&none["resources"], &none["calls"]), (&json!([]), &json!(1)));
    assert_eq!((&usage["computation"], &usage["resources"]), (&json!("mul"), &asked));
    assert!(usage["peak_bytes"].as_u64().unwrap() > 1000, "{usage}");
    assert!(usage["cpus"].is_number() && usage["seconds"].is_number(), "{usage}");
    // It agrees with the records.
    let call = json(&["-n", "1"]).remove(0);
    assert_eq!(call["resources"], asked);
    for field in ["peak_bytes", "seconds"] {
        assert_eq!(call[field], usage[field]);
    }
    let used = call["cpu_seconds"].as_f64().unwrap() / call["seconds"].as_f64().unwrap();
    assert!((used - usage["cpus"].as_f64().unwrap()).abs() < 1e-9, "{call} {usage}");
    // Conditions hold here, too.
    let filtered = ce(&lab, &["log", "--resources", "--computation", "other", "../storage"]);
    assert_eq!(filtered.lines().len(), 1, "{}", filtered.stdout);
    let file = format!(
        "{}/00{}",
        &call["name"].as_str().unwrap()[..18],
        &call["name"].as_str().unwrap()[18..]
    );
    ce(&lab, &["show", "../storage", &file])
        .shows("  asked for    cpus 1, memory 1536K, time 2h, exclusive\n");
}

#[test]
fn calls_are_listed_and_filtered() {
    let arith = Arith::evaluated();
    assert_eq!(arith.evaluate_with("0\n").code, 1);
    let says = |options: &[&str], complaint: &str| {
        let listed = arith.ce(&[&["log"], options, &["results"]].concat());
        assert_eq!((listed.code, listed.err.as_str()), (0, complaint), "{options:?}");
        listed.out
    };
    let log = |options: &[&str]| says(options, "");
    let all = log(&[]);
    assert_eq!(all.lines().count(), 7, "{all}");
    let header = "ended computation texts version duration memory host inputs remarks";
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(all.lines().next().unwrap()).join(" "), header);
    // The newest come first.
    let mut times: Vec<_> = all.lines().skip(1).map(|line| line.split(' ').next()).collect();
    times.reverse();
    assert!(times.is_sorted(), "{all}");
    let failed = log(&["--failed"]);
    assert!(failed.contains("  FAILED: it ended with exit status 1\n"), "{failed}");
    assert!(failed.contains("  ad48103e4fc7_09d2af8dd222  "), "{failed}");
    assert_eq!(failed.lines().count(), 2, "{failed}");
    let adds = log(&["--computation", "add"]);
    assert_eq!(adds.lines().count(), 3);
    assert!(!adds.contains("remarks"), "an empty column is left out: {adds}");
    // Columns are as wide as their texts.
    let cut = "ce: the newest 2 of 6 calls are listed; without -n, all are\n";
    let newest: Vec<_> = says(&["-n", "2"], cut).lines().map(words).collect();
    assert_eq!(newest, all.lines().take(3).map(words).collect::<Vec<_>>());
    assert_eq!(log(&["-n", "6"]), all);
    assert_eq!(log(&["--json", "-n", "2"]).lines().count(), 2);
    let none = "ce: no call matches\n";
    assert_eq!(says(&["--slow", "3600"], none), "");
    assert_eq!(says(&["--slow", "3600", "--json"], none), "");
    assert_eq!(says(&["--commit", "0123"], none), "");
    assert_eq!(says(&["--failed", "--computation", "add"], none), "");
    let unknown = |name: &str, tip: &str| {
        let complaint =
            format!("ce: no call matches: the storage has none of the computation {name}{tip}\n");
        assert_eq!(says(&["--computation", name], &complaint), "");
    };
    unknown("ad", "; did you mean add?");
    unknown("nonsense", "");
    let none_of_them = "ce: the newest 0 of 6 calls are listed; without -n, all are\n";
    assert_eq!(says(&["-n", "0"], none_of_them), "");
    let commit = arith.name("c_add/COMMIT/");
    let commit = commit.trim_start_matches("c_add/").trim_end_matches('/');
    assert_eq!(log(&["--commit", &commit[..7]]), all);
    for wrong in ["zz", "none", "", "HEAD", "dirty-zz"] {
        let refused = arith.ce(&["log", "--commit", wrong, "results"]);
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{wrong}");
        assert!(refused.err.contains("no commit begins with that"), "{}", refused.err);
    }
    says(&["--commit", "dirty"], none);
    says(&["--commit", "dirty-0a"], none);
    assert_eq!(arith.ce(&["log", "nowhere"]).code, 5);
}

/// Returns the lines of the log on a terminal with this number of columns, with a pager or another variable of the environment.
fn at_terminal(
    lab: &Lab,
    columns: u16,
    variables: &[(&str, &str)],
    arguments: &[&str],
) -> Vec<String> {
    let mut command = lab.command("ce");
    command.arg("log").args(arguments).arg("../storage").envs(variables.iter().copied());
    let (status, text) = Terminal::start(&command, columns, Shown::Both).end();
    assert_eq!(status.code(), Some(0), "{text}");
    lines(&text, columns.into())
}

#[test]
fn a_terminal_shows_the_log_by_a_pager() {
    let (lab, _) = taken_over();
    let counts = "sed s/^/paged:/";
    let first = |variables: &[(&str, &str)], arguments: &[&str]| {
        at_terminal(&lab, 200, variables, arguments).remove(0)
    };
    for variables in [
        &[("PAGER", counts)][..],
        &[("CE_PAGER", counts)],
        &[("CE_PAGER", counts), ("PAGER", "false")],
    ] {
        assert!(first(variables, &[]).starts_with("paged:ended "), "{variables:?}");
        assert!(first(variables, &["--no-pager"]).starts_with("ended "), "{variables:?}");
    }
    assert!(first(&[("PAGER", counts)], &["--resources"]).starts_with("paged:computation "));
    assert!(first(&[("PAGER", counts)], &["--json"]).starts_with("{"));
    for none in [&[("PAGER", "")][..], &[("PAGER", "cat")], &[("PAGER", counts), ("TERM", "dumb")]]
    {
        assert!(first(none, &[]).starts_with("ended "), "{none:?}");
    }
    // One that reads nothing, or is not there, is no error.
    assert_eq!(at_terminal(&lab, 200, &[("PAGER", "echo no thanks")], &[]), ["no thanks"]);
    let absent = at_terminal(&lab, 200, &[("PAGER", "no-such-pager")], &[]);
    assert!(absent[0].contains("no-such-pager") && absent[1].starts_with("ended "), "{absent:?}");
    let none = at_terminal(&lab, 200, &[("PAGER", "echo no thanks")], &["--failed"]);
    assert_eq!(none, ["ce: no call matches"]);
    // The remark on the limit is printed when the pager has ended.
    let last = at_terminal(&lab, 200, &[("PAGER", counts)], &["-n1"]).pop();
    assert_eq!(last.unwrap(), "ce: the newest 1 of 3 calls are listed; without -n, all are");
    let options = at_terminal(&lab, 200, &[("PAGER", "echo options $LESS")], &[]);
    assert_eq!(options, ["options FRX"]);
    let own = [("PAGER", "echo options $LESS"), ("LESS", "S")];
    assert_eq!(at_terminal(&lab, 200, &own, &[]), ["options S"]);
}

#[test]
fn the_log_fits_a_terminal() {
    let (lab, _) = taken_over();
    let shown = at_terminal(&lab, 80, &[], &["--no-pager"]);
    // A longer line would be two.
    assert_eq!(shown.len(), 6, "{shown:#?}");
    assert!(shown[0].starts_with("ended ") && !shown[0].contains("inputs"), "{shown:#?}");
    assert!(shown[1].contains("  mul ") && shown[1].contains("  taken over"), "{shown:#?}");
    assert!(shown[2].starts_with("    from c_mul/") && shown[2].ends_with('…'), "{shown:#?}");
    let wide = at_terminal(&lab, 400, &[], &["--no-pager"]);
    assert!(wide[0].contains("  version ") && wide[0].contains("  inputs "), "{wide:#?}");
}

#[test]
fn ctrl_c_goes_to_the_pager() {
    let (lab, _) = taken_over();
    // `wait` misses no signal; `read` misses one that arrives just before it blocks. So another process reads, and ignores INT before
    // it says that it is ready.
    let pager = "trap 'echo caught' INT; cat; \
                 { trap '' INT; echo ready; read line || :; } </dev/tty & \
                 until wait $!; do :; done; echo closed";
    let mut command = lab.command("ce");
    command.args(["log", "../storage"]).env("PAGER", pager);
    let mut terminal = Terminal::start(&command, 200, Shown::Both);
    terminal.await_text("ready");
    for caught in 1..=2 {
        terminal.type_in("\x03");
        terminal.await_that("caught", |text| text.matches("caught").count() == caught);
    }
    terminal.type_in("\n");
    terminal.await_text("closed");
    let (status, text) = terminal.end();
    assert_eq!(status.code(), Some(0), "{text}");
}
