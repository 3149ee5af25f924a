//! Audits: recorded calls are executed again and compared, the findings are evidence, and no published result changes.

mod choice;
mod evidence;

use std::collections::BTreeMap;
use std::fs;

use rustix::process::Signal;

use crate::lab::{Lab, files};
use crate::program::{Ran, Running};
use crate::shared::{evaluate, lab, salt};

/// `ce audit` of the storage of a lab.
fn audit<'a>(lab: &'a Lab, arguments: &[&str]) -> Ran<'a> {
    lab.run("ce", &[&["audit", "--no-isolate", "../storage"], arguments].concat())
}

/// A lab whose two calls are recorded.
fn recorded() -> Lab {
    let lab = lab();
    evaluate(&lab, "storage").exit(0);
    lab
}

/// The name of the record of the only call of a computation.
fn record(lab: &Lab, computation: &str) -> String {
    let prefix = format!("c_{computation}/");
    let is_record = |it: &String| it.starts_with(&prefix) && it.contains("/record/");
    lab.storage().into_iter().find(is_record).unwrap()
}

/// The short name of a result with this record.
fn short(record: &str) -> String {
    record.replacen("/record/", "/", 1).trim_end_matches(".json").to_owned()
}

/// The short name of the only call of a computation.
fn call(lab: &Lab, computation: &str) -> String {
    short(&record(lab, computation))
}

/// The path of the first output of a result with this record.
fn output(record: &str) -> String {
    format!("../storage/{}", record.replacen("/record/", "/00/", 1).trim_end_matches(".json"))
}

/// The results of a lab, without quarantined files.
fn published(lab: &Lab) -> BTreeMap<String, Vec<u8>> {
    let mut results = lab.results();
    results.retain(|name, _| !name.contains("/aside/"));
    results
}

/// The lines of the ledger of a storage, without headers.
fn ledger(lab: &Lab, storage: &str) -> Vec<String> {
    let texts = files(&lab.path(storage).join("ledger")).into_values();
    let lines = |text: Vec<u8>| -> Vec<String> {
        String::from_utf8(text).unwrap().lines().skip(1).map(str::to_owned).collect()
    };
    texts.flat_map(lines).collect()
}

#[test]
fn no_record_leads_to_a_task_outside_of_the_work_tree() {
    let lab = recorded();
    lab.called();
    fs::create_dir(lab.path("other")).unwrap();
    lab.git("other", &["init", "--quiet"]);
    lab.git("other", &["commit", "--quiet", "--allow-empty", "--message", "nothing"]);
    let is_record = |it: &String| it.starts_with("t_task/") && it.contains("/record/");
    let record = lab.path("storage").join(lab.storage().into_iter().find(is_record).unwrap());
    let own = fs::read_to_string(&record).unwrap();
    for place in ["../task", &lab.path("task").display().to_string(), "x/../../task"] {
        fs::remove_file(&record).unwrap();
        fs::write(&record, own.replace(r#""place": """#, &format!(r#""place": "{place}""#)))
            .unwrap();
        let mut command = lab.command("ce");
        command.args(["audit", "--no-isolate", "../storage"]).current_dir(lab.path("other"));
        let ran = lab.finish(&mut command).called(vec![]).exit(0);
        ran.says("the directory of its task is not in this work tree");
    }
}

#[test]
fn equal_outputs_agree_and_nothing_changes() {
    let lab = recorded();
    lab.called();
    let before = published(&lab);
    let ran = audit(&lab, &[]).exit(0);
    let mut called = lab.called();
    called.sort();
    assert_eq!(called, ["once", "twice"], "each is executed");
    let verdicts: Vec<&str> = ran.stdout.lines().map(|it| it.split("  ").next().unwrap()).collect();
    assert_eq!(verdicts, ["agrees", "agrees"], "{}", ran.stdout);
    assert!(ran.stderr.contains("ce: 2 calls audited: 2 agree\n"), "{}", ran.stderr);
    assert!(published(&lab) == before && lab.is_tidy());
    let lines = ledger(&lab, "storage");
    assert!(lines.len() == 2 && lines.iter().all(|it| it.contains("\"outputs\"")), "{lines:?}");
    let notes = files(&lab.path("storage/signers")).into_values();
    let notes: Vec<String> = notes.map(|it| String::from_utf8(it).unwrap()).collect();
    assert!(notes.len() == 1 && notes[0].contains("\"own\": true"), "{notes:?}");
    lab.run("ce", &["verify", "../storage"]).exit(0);
}

#[test]
fn a_hidden_dependency_is_found_and_the_first_differing_call_is_named() {
    let lab = recorded();
    let before = published(&lab);
    salt(&lab, "pepper\n");
    let ran = audit(&lab, &[]).exit(1);
    let (once, twice) = (call(&lab, "once"), call(&lab, "twice"));
    assert!(ran.stdout.contains(&format!("agrees   {once}")), "{}", ran.stdout);
    assert!(ran.stdout.contains(&format!("differs  {twice}")), "{}", ran.stdout);
    assert!(
        ran.stdout.contains(&format!("{twice}: the first that differs, leaves first\n")),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("  output 00 (b): differs in byte 9, in line 5\n"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("    now       pepper\n"), "{}", ran.stdout);
    assert!(published(&lab) == before, "nothing that is published changes");
    // The new output is kept for a comparison.
    let aside = ran.stdout.lines().find_map(|it| it.split_once("what was made now is in "));
    let kept = fs::read_to_string(lab.path("task").join(aside.unwrap().1)).unwrap();
    assert_eq!(kept, "x\nx\nx\nx\npepper\n");
    // It is no result.
    evaluate(&lab, "storage").exit(0);
    assert!(published(&lab) == before);
    lab.run("ce", &["verify", "../storage"]).exit(0);
}

#[test]
fn a_member_of_a_directory_that_differs_is_named() {
    let script = r#"echo a >"$2/a"; echo b >"$2/b"; [ ! -e "$LAB_LOG.salt" ] || echo c >"$2/b""#;
    let mut lab = Lab::task("Inputs: 'x'\n(plot INPUT('x'))[0]")
        .computation("plot", "a", "plots/", script)
        .data("x", "x\n");
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    evaluate(&lab, "storage").exit(0);
    audit(&lab, &[]).exit(0);
    salt(&lab, "");
    audit(&lab, &["--json"]).exit(1).shows(r#""first":{"member":"b""#);
    let ran = audit(&lab, &[]).exit(1);
    assert!(
        ran.stdout.contains("output 00 (plots/): b differs in byte 1, in line 1\n"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("recorded  b\n") && ran.stdout.contains("now       c\n"));
}

#[test]
fn a_call_that_fails_now_is_reported_with_its_log_and_others_go_on() {
    let failing = r#"[ ! -e "$LAB_LOG.salt" ] || { echo no luck; exit 3; }; cat "$1" >"$2""#;
    let mut lab = Lab::task("Inputs: 'x'\n(copy (frail INPUT('x'))[0])[0]")
        .computation("frail", "a", "b", failing)
        .computation("copy", "a", "b", r#"cat "$1" "$1" >"$2""#)
        .data("x", "x\n");
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    evaluate(&lab, "storage").exit(0);
    let before = published(&lab);
    salt(&lab, "");
    let ran = audit(&lab, &[]).exit(1);
    let frail = call(&lab, "frail");
    assert!(
        ran.stdout.contains(&format!("{frail}: failed: it ended with exit status 3\n")),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("  log: "), "{}", ran.stdout);
    assert!(ran.stderr.contains("2 calls audited: 1 agree, 1 failed\n"), "{}", ran.stderr);
    assert!(published(&lab) == before, "no failure is remembered, since no run had it");
    assert_eq!(ledger(&lab, "storage").iter().filter(|it| it.contains("\"failed\"")).count(), 1);
    audit(&lab, &["--json"]).exit(1).shows(r#""verdict":"failed""#);
}

#[test]
fn a_nondeterministic_call_is_audited_only_if_named_and_may_differ() {
    let mut lab = Lab::task("Inputs: 'x'\n(dice INPUT('x'))[0]")
        .computation("dice", "a", "b", r#"cat "$1" >"$2"; cat "$LAB_LOG.salt" >>"$2""#)
        .file("computations/dice/nondeterministic", "It throws dice.\n")
        .data("x", "x\n");
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    salt(&lab, "1\n");
    evaluate(&lab, "storage").exit(0);
    salt(&lab, "2\n");
    let ran = audit(&lab, &[]).exit(0);
    assert!(
        ran.stderr.contains("1 call cannot be audited: its computation is declared as nondeter"),
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.is_empty());
    let ran = audit(&lab, &["--json"]).exit(0);
    ran.shows(r#""verdict":"not_audited","reason":"its computation is declared as nondeter"#);
    let ran = audit(&lab, &[&call(&lab, "dice")]).exit(0);
    assert!(ran.stdout.contains("as its computation says"), "{}", ran.stdout);
    assert!(ran.stderr.contains("1 differ as their computations say"), "{}", ran.stderr);
}

#[test]
fn json_has_an_object_for_each_call_and_one_at_the_end() {
    let lab = recorded();
    salt(&lab, "salt\n");
    let ran = audit(&lab, &["--json"]).exit(1);
    let lines = ran.stdout.lines();
    let mut lines: Vec<serde_json::Value> =
        lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let end = lines.pop().unwrap();
    assert_eq!((&end["agree"], &end["differ"]), (&1.into(), &1.into()));
    assert_eq!(end["first"], call(&lab, "twice"));
    lines.sort_by_key(|line| line["name"].as_str().unwrap().to_owned());
    assert_eq!([&lines[0]["verdict"], &lines[1]["verdict"]], ["agrees", "differs"]);
    let difference = &lines[1]["differing"][0];
    assert_eq!(difference["first"]["line"]["found"], "salt");
    assert_eq!(difference["first"]["byte"], 9);
    assert!(lab.path("storage").join(difference["aside"].as_str().unwrap()).is_file());
}

#[test]
fn workers_audit_requested_calls_and_answer_with_the_verdict() {
    let lab = recorded();
    let before = published(&lab);
    salt(&lab, "salt\n");
    let mut command = lab.command("ce");
    let worker = ["worker", "--idle", "10h", "--no-isolate", "../storage"];
    let worker = Running::start(command.args(worker));
    worker.wait_until_it_catches(Signal::TERM);
    let ran = audit(&lab, &["--on", "workers"]).exit(1);
    assert!(
        ran.stderr.contains("2 calls audited: 1 agree, 1 differ\n"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    assert!(ran.stdout.contains("differs in byte 9, in line 5"), "{}", ran.stdout);
    worker.signal(Signal::TERM);
    let ended = Ran::new(&lab, worker.output()).exit(143);
    assert!(ended.stderr.contains("2 audited"), "{}", ended.stderr);
    assert!(published(&lab) == before && lab.is_tidy());
    assert_eq!(ledger(&lab, "storage").len(), 2);
}

#[test]
fn findings_before_a_signal_are_kept() {
    let slow =
        r#"cat "$1" >"$2"; [ ! -e "$LAB_LOG.salt" ] || { echo waits >>"$LAB_LOG"; sleep 1000; }"#;
    let mut lab = Lab::task("Inputs: 'x'\n(slow (fast INPUT('x'))[0])[0]")
        .computation("fast", "a", "b", r#"cat "$1" "$1" >"$2""#)
        .computation("slow", "a", "b", slow)
        .data("x", "x\n");
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    evaluate(&lab, "storage").exit(0);
    salt(&lab, "");
    lab.called();
    let mut command = lab.command("ce");
    // One after the other, by name.
    let running = Running::start(command.args(["audit", "--no-isolate", "-j1", "../storage"]));
    let waits = || fs::read_to_string(lab.path("called")).is_ok_and(|it| it.contains("waits"));
    while !waits() {
        std::thread::yield_now();
    }
    running.signal(Signal::INT);
    let ran = Ran::new(&lab, running.output()).exit(130);
    assert!(
        ran.stderr.contains("1 call audited: 1 agree, 1 interrupted or not begun\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(ledger(&lab, "storage").len(), 1);
    assert!(lab.is_tidy());
}

#[test]
fn an_isolated_call_is_isolated_when_it_is_audited() {
    let lab = lab().isolated();
    evaluate(&lab, "storage").exit(0);
    salt(&lab, "salt\n");
    // It does not see the file that nobody declares.
    let ran = lab.run("ce", &["audit", "--json", "../storage"]).exit(0);
    assert_eq!(ran.stdout.matches(r#""isolation":"namespaces""#).count(), 2, "{}", ran.stdout);
}

/// A call that fails because an input was taken from it is no verdict.
#[test]
fn a_call_whose_input_is_removed_meanwhile_is_not_audited() {
    let script = r#"again=$(dirname "$1")/../../../again
        if [ -e "$again" ]; then rm -f "$1"; exit 3; fi
        touch "$again"; cat "$1" >"$2""#;
    let lab = Lab::task("Inputs: 'x'\n(copy INPUT('x'))[0]").computation("copy", "a", "b", script);
    let lab = lab.commit();
    lab.ce_run(&[]).exit(0);
    let ran = audit(&lab, &[]).exit(1);
    assert!(ran.stdout.contains("was removed or changed while it was executed"), "{}", ran.stdout);
    assert_eq!(ledger(&lab, "storage"), Vec::<String>::new());
}
