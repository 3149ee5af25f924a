//! The findings of audits are evidence, which is shared, counted, and refused if it is forged.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{audit, ledger, output, record, recorded};
use crate::lab::{Lab, files};
use crate::shared::{cloned, evaluate, pull, push, salt};

/// Returns the attesters of a call, without the kinds of their hosts.
fn by(attested: &serde_json::Value) -> String {
    let mut attested = attested.clone();
    if let Some(attested) = attested.as_object_mut() {
        attested.remove("host_kinds").unwrap();
    }
    attested.to_string()
}

#[test]
fn evidence_is_pushed_pulled_and_counted() {
    let lab = recorded();
    evaluate(&lab, "other").exit(0);
    push(&lab, &[], "storage", "results.git").exit(0);
    assert_eq!(ledger(&lab, "storage").len(), 2, "what a push says is kept");
    pull(&lab, &[], "mine", "results.git").exit(0);
    let attested = |storage: &str| {
        let ran = lab.run("ce", &["log", "--json", "--attested", storage]).exit(0);
        let line = ran.stdout.lines().find(|it| it.contains("\"c_twice/")).unwrap().to_owned();
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        by(&line["attested"])
    };
    assert_eq!(attested("../mine"), r#"{"agreeing":["unsigned"],"differing":[]}"#);
    assert_eq!(attested("../storage"), r#"{"agreeing":["here"],"differing":[]}"#);
    // Another storage audits, and finds something else.
    salt(&lab, "salt\n");
    lab.run("ce", &["audit", "--no-isolate", "--by", "bob", "../other"]).exit(1);
    assert_eq!(attested("../other"), r#"{"agreeing":[],"differing":["here"]}"#);
    push(&lab, &["-n"], "other", "results.git").exit(3);
    let ran = push(&lab, &[], "other", "results.git").exit(0);
    assert!(ran.stdout.contains("pushed 1 ledger file"), "{}", ran.stdout);
    push(&lab, &[], "other", "results.git").exit(0);
    pull(&lab, &["-n"], "storage", "results.git").exit(3);
    pull(&lab, &[], "storage", "results.git").exit(0);
    assert_eq!(attested("../storage"), r#"{"agreeing":["here"],"differing":["unsigned"]}"#);
    let text = lab.run("ce", &["log", "--attested", "../storage"]).exit(0).stdout;
    assert!(text.lines().any(|it| it.contains("  twice ") && it.contains("  1 of 2")), "{text}");
    let file = output(&record(&lab, "twice"));
    let shown = lab.run("ce", &["show", "../storage", &file]).exit(0).stdout;
    assert!(shown.contains("  attested     1 of 2 (here; differs: unsigned)\n"), "{shown}");
    // Nobody is named who has not been asked for it, and notes of signers stay here.
    let listed = lab.git("results.git", &["ls-tree", "-r", "--name-only", "results"]);
    assert!(listed.contains("ledger/") && !listed.contains("signers"), "{listed}");
    // The least attested call comes first.
    let ran = audit(&lab, &["-n"]).exit(0);
    assert!(ran.stdout.starts_with("c_twice/"), "{}", ran.stdout);
}

#[test]
fn forged_evidence_is_refused_and_does_not_count() {
    let lab = recorded();
    push(&lab, &[], "storage", "results.git").exit(0);
    cloned(&lab, "results.git", "clone", &[]);
    let listed = files(&lab.path("clone/ledger"));
    let (name, text) = listed.into_iter().next().unwrap();
    let forged = lab.path("clone/ledger").join(&name);
    fs::write(
        &forged,
        String::from_utf8(text).unwrap().replace("\"seconds\"", "\"x\":1,\"seconds\""),
    )
    .unwrap();
    fs::create_dir_all(lab.path("clone/ledger/zz")).unwrap();
    fs::write(lab.path("clone/ledger/zz/name.ndjson"), "{}\n").unwrap();
    lab.git("clone", &["add", "-A"]);
    let identity = ["-c", "user.name=m", "-c", "user.email=m@m"];
    lab.git("clone", &[&identity[..], &["commit", "--quiet", "-m", "forged"]].concat());
    lab.git("clone", &["push", "--quiet"]);
    let ran = pull(&lab, &[], "mine", "results.git").exit(1);
    assert_eq!(ran.stdout.matches("its name is not the hash of its contents").count(), 2);
    assert!(!lab.path("mine/ledger").exists());
    // A file that somebody has changed in the storage is evidence of nothing, and told.
    let own = lab.path("storage/ledger").join(&name);
    fs::set_permissions(&own, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&own, "{}\n").unwrap();
    lab.run("ce", &["log", "--attested", "../storage"]).exit(0);
    let ran = lab.run("ce", &["verify", "../storage"]).exit(5);
    assert!(ran.stdout.contains("so it is not evidence"), "{}", ran.stdout);
    lab.run("ce", &["verify", "--repair", "../storage"]).exit(5);
    lab.run("ce", &["verify", "../storage"]).exit(0);
}

#[test]
fn a_table_says_how_often_the_call_of_each_row_is_attested() {
    let lab = Lab::task("Inputs: 'x'\n(copy INPUT('x'))[0]")
        .computation("copy", "a", "b", r#"cat "$1" >"$2""#)
        .commit();
    lab.run("ce-run", &["--each", "x=1,2", "../storage"]).exit(0);
    let table = |options: &[&str]| {
        let each = ["table", "--each", "x=1,2,3", "../storage"];
        lab.run("ce", &[&each, options].concat()).exit(3).stdout
    };
    let csv = table(&["--csv", "--attested"]);
    let last: Vec<&str> = csv.lines().map(|it| it.rsplit(',').next().unwrap()).collect();
    assert_eq!(last, ["attested", "1 of 1", "1 of 1", ""], "{csv}");
    let json = table(&["--json", "--attested"]);
    let attested: Vec<String> = json
        .lines()
        .map(|it| by(&serde_json::from_str::<serde_json::Value>(it).unwrap()["attested"]))
        .collect();
    let here = r#"{"agreeing":["here"],"differing":[]}"#;
    assert_eq!(attested, [here, here, "null"], "{json}");
    assert!(!table(&["--json"]).contains("attested"));
}
