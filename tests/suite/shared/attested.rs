//! Evidence: who has attested results, and who has revoked them.

use std::fs;

use compeval::storage::records::{HostKind, machine};

use super::trust::{change, file_of, into_inbox, people, pull, push_as, signed};
use super::{evaluate, holds, lab, listed, move_to, push, salt};

#[test]
fn a_call_is_pulled_if_enough_attesters_agree() {
    let lab = lab();
    people(&lab);
    for who in ["alice", "bob", "nobody", "mallory"] {
        evaluate(&lab, who).exit(0).called(vec!["once", "twice"]);
    }
    into_inbox(&lab, "alice", "alice");
    push(&lab, &["--collect"], "alice", "results.git").exit(0);
    let told = pull(&lab, &["--require", "2"], "mine").exit(1);
    told.shows("was not taken: 1 of 1 attester had these outputs, and 2 are required");
    let told = super::pull(&lab, &["--require", "2"], "unsigned", "results.git").exit(2);
    told.says("2 attesters are required, and there is no file of allowed signers").says("  try: ");
    // Those who do not sign, and those who are not known, are one together.
    into_inbox(&lab, "nobody", "nobody");
    into_inbox(&lab, "mallory", "mallory");
    push(&lab, &["--collect"], "alice", "results.git").exit(0);
    let told = pull(&lab, &["--require", "3"], "mine").exit(1);
    told.shows("2 of 2 attesters had these outputs, and 3 are required");
    // Bob has had other outputs of one of them.
    salt(&lab, "salt\n");
    evaluate(&lab, "differs").exit(0);
    into_inbox(&lab, "bob", "differs");
    push(&lab, &["--collect"], "alice", "results.git").exit(1);
    lab.git("task", &["config", "compeval.require", "3"]);
    let told = pull(&lab, &[], "mine").exit(1).shows("pulled 1 call ");
    told.shows("c_twice/").shows("2 of 3 attesters had these outputs, and 3 are required");
    // The storage has the evidence, and knows who vouches for it.
    let mut notes: Vec<String> = Vec::new();
    for note in walkdir::WalkDir::new(lab.path("mine/signers")) {
        let note = note.unwrap();
        if note.file_type().is_file() {
            notes.push(fs::read_to_string(note.path()).unwrap());
        }
    }
    notes.sort();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].contains(r#""signer": "alice@lab""#), "{notes:?}");
    assert!(
        notes[1].contains(r#""signer": "bob@lab""#) && notes[1].contains("SHA256:"),
        "{notes:?}"
    );
    let files = lab.git("results.git", &["ls-tree", "-r", "--name-only", "results", "ledger/"]);
    assert_eq!(files.lines().count(), 4);
    for file in files.lines() {
        assert!(lab.path("mine").join(file).is_file(), "{file}");
    }
}

#[test]
fn an_attester_with_differing_outputs_does_not_count_as_agreeing() {
    let lab = signed();
    evaluate(&lab, "bob").exit(0);
    into_inbox(&lab, "bob", "bob");
    push(&lab, &["--collect"], "bob", "results.git").exit(0);
    pull(&lab, &["--require", "2"], "before").exit(0).shows("pulled 2 calls, 1 job");
    salt(&lab, "salt\n");
    evaluate(&lab, "differs").exit(0);
    push_as(&lab, "alice", &[], ["differs", "results.git"]).exit(1);
    let told = pull(&lab, &["--require", "2"], "mine").exit(1).shows("pulled 1 call ");
    told.shows("c_twice/").shows("1 of 2 attesters had these outputs, and 2 are required");
    // The storage counts as the pull did.
    pull(&lab, &[], "mine").exit(0);
    let call = file_of(&lab, ["c_twice/", "/00/"]);
    let shown = lab.run("ce", &["show", "../mine", &format!("../mine/{call}")]).exit(0);
    shown.shows("1 of 2 (bob@lab; differs: alice@lab)");
}

#[test]
fn a_published_result_can_be_attested_once_by_each_executor() {
    let lab = signed();
    evaluate(&lab, "bob").exit(0).called(vec!["once", "twice"]);
    push_as(&lab, "bob", &[], ["bob", "results.git"]).exit(0).shows("nothing is new to ");
    let attest = ["bob", "results.git"];
    let dry = push_as(&lab, "bob", &["-n", "--attest"], attest).exit(3);
    dry.shows("would push 2 attestations to ");
    push_as(&lab, "bob", &["--attest"], attest).exit(0).shows("pushed 2 attestations to ");
    push_as(&lab, "bob", &["--attest"], attest).exit(0).shows("nothing is new to ");
    pull(&lab, &["--require", "2"], "mine").exit(0).shows("pulled 2 calls, 1 job");
    // Calls that were pulled were not executed here.
    push_as(&lab, "alice", &["--attest"], ["mine", "results.git"]).exit(0).shows("nothing is new");
    // An attester who has had other outputs has said so with the first push.
    salt(&lab, "salt\n");
    evaluate(&lab, "differs").exit(0);
    push_as(&lab, "bob", &[], ["differs", "results.git"]).exit(1).shows("pushed 1 call, 1 job");
    let tip = lab.git("results.git", &["rev-parse", "results"]);
    push_as(&lab, "bob", &[], ["differs", "results.git"]).exit(1).shows("nothing is new to ");
    assert_eq!(lab.git("results.git", &["rev-parse", "results"]), tip);
}

#[test]
fn kinds_of_hosts_of_attesters_are_counted() {
    let lab = lab();
    people(&lab);
    for (who, kind) in [("alice", "a-one"), ("bob", "a-two"), ("mallory", "vax")] {
        evaluate(&lab, who).exit(0);
        move_to(&lab, who, kind);
        push_as(&lab, who, &["--attest"], [who, "results.git"]).exit(0);
    }
    evaluate(&lab, "mine").exit(0);
    pull(&lab, &[], "mine").exit(0);
    let call = file_of(&lab, ["c_twice/", "/00/"]);
    let shown = || lab.run("ce", &["show", "../mine", &format!("../mine/{call}")]).exit(0).stdout;
    let here = HostKind::here();
    let text = shown();
    assert!(
        text.contains("  attested     4 of 4 (alice@lab, bob@lab, here, unsigned)\n"),
        "{text}"
    );
    let kinds = format!("  host kinds   3 of 3 (a-one, a-two, {here})\n");
    assert!(text.contains(&kinds), "{text}");
    let log = lab.run("ce", &["log", "--attested", "../mine"]).exit(0);
    log.shows("  4 of 4 on 3 of 3 kinds  ");
    // On one of them the outputs are others.
    salt(&lab, "salt\n");
    evaluate(&lab, "differs").exit(0);
    move_to(&lab, "differs", "a-two");
    push_as(&lab, "bob", &[], ["differs", "results.git"]).exit(1);
    pull(&lab, &[], "mine").exit(0);
    let text = shown();
    assert!(text.contains("  attested     3 of 4 (alice@lab, here, unsigned; differs: bob@lab)\n"));
    let kinds = format!("  host kinds   2 of 3 (a-one, {here}; differs: a-two)\n");
    assert!(text.contains(&kinds), "{text}");
    // No host is named.
    let told = lab.git("results.git", &["grep", "-h", "host", "results", "--", "ledger"]);
    for line in told.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["host_kind"].is_string() && line.get("host").is_none(), "{line}");
    }
}

#[test]
fn attestations_of_others_need_their_own_signature() {
    let lab = signed();
    salt(&lab, "salt\n");
    evaluate(&lab, "bob").exit(0);
    into_inbox(&lab, "bob", "bob");
    push(&lab, &["--collect"], "alice", "results.git").exit(1);
    pull(&lab, &[], "mine").exit(0);
    // Somebody takes the evidence away, and alice pushes from a storage that has it.
    change(&lab, &[], |dir| fs::remove_dir_all(lab.path(dir).join("ledger")).unwrap());
    fs::write(lab.path("data/x"), "other\n").unwrap();
    evaluate(&lab, "mine").exit(0);
    push_as(&lab, "alice", &[], ["mine", "results.git"]).exit(0);
    let files = lab.git("results.git", &["ls-tree", "-r", "--name-only", "results", "ledger/"]);
    assert_eq!(files.lines().count(), 1, "{files}");
}

#[test]
fn a_forged_ledger_is_not_taken() {
    let lab = signed();
    let ledger = file_of(&lab, ["ledger/", ""]);
    change(&lab, &[], |dir| {
        let text = fs::read_to_string(lab.path(dir).join(&ledger)).unwrap();
        fs::write(lab.path(dir).join(&ledger), format!("{text}{{}}\n")).unwrap();
        fs::create_dir_all(lab.path(dir).join("ledger/00")).unwrap();
        fs::write(lab.path(dir).join(format!("ledger/00/{}.ndjson", "1".repeat(62))), text)
            .unwrap();
    });
    let told = pull(&lab, &[], "mine").exit(1);
    assert_eq!(told.stdout.matches("its name is not the hash of its contents").count(), 2);
    assert!(!lab.path("mine/ledger").exists() && !lab.path("mine/signers").exists());
    pull(&lab, &["--require", "1"], "other").exit(1).shows("0 of 0 attesters");
}

#[test]
fn a_damaged_file_of_the_ledger_is_fetched_again_once_it_was_set_aside() {
    let lab = signed();
    pull(&lab, &[], "mine").exit(0);
    let ledger = lab.path("mine").join(file_of(&lab, ["ledger/", ""]));
    let text = fs::read(&ledger).unwrap();
    fs::remove_file(&ledger).unwrap();
    fs::write(&ledger, "damaged\n").unwrap();
    // A pull that brings nothing reads no evidence: a damaged file is evidence of nothing, and found by who looks for damage.
    pull(&lab, &[], "mine").exit(0).shows("nothing is new");
    let call = format!("../mine/{}", file_of(&lab, ["c_twice/", "/00/"]));
    let shown = lab.run("ce", &["show", "../mine", &call]).exit(0);
    assert!(!shown.stdout.contains("alice@lab"), "{}", shown.stdout);
    let told = lab.run("ce", &["verify", "--repair", "../mine"]).exit(5);
    told.shows("its name is not the hash of its contents, so it is not evidence");
    pull(&lab, &[], "mine").exit(0).shows("pulled 1 ledger file");
    assert_eq!(fs::read(&ledger).unwrap(), text);
    lab.run("ce", &["show", "../mine", &call]).exit(0).shows("1 of 1 (alice@lab)");
    lab.run("ce", &["verify", "../mine"]).exit(0).says("0 wrong");
}

#[test]
fn a_job_is_not_taken_if_any_of_its_calls_is_revoked() {
    let lab = signed();
    let call = file_of(&lab, ["c_once/", "/00/"]);
    let revoke = ["--revoke", &call.replace("/00/", "/"), "--because", "a disk was full"];
    push_as(&lab, "alice", &revoke, ["alice", "results.git"]).exit(0);
    let told = pull(&lab, &[], "after").exit(0).shows("pulled 1 call ");
    told.shows("t_task/").shows(" stays there: its call c_once/");
}

#[test]
fn a_revoked_call_is_not_pulled_and_its_place_is_named() {
    let lab = signed();
    pull(&lab, &[], "before").exit(0);
    let call = file_of(&lab, ["c_twice/", "/00/"]);
    let name = call.replace("/00/", "/");
    let revoke = ["--revoke", &name, "--because", "the disk\u{1b} was full"];
    push_as(&lab, "alice", &["--revoke", "c_x"], ["alice", "results.git"]).exit(2);
    let other = ["--revoke", "c_x/0123456789ab/_", "--because", "x"];
    push_as(&lab, "alice", &other, ["alice", "results.git"]).exit(2).says("neither the repository");
    // Somebody who is not trusted says so.
    push_as(&lab, "mallory", &revoke, ["alice", "results.git"])
        .exit(0)
        .shows("pushed 1 revocation to ");
    let told = pull(&lab, &[], "ignored").exit(1).shows("pulled 2 calls, 1 job");
    told.shows("revoked/c_twice/").shows("it is signed with the key SHA256:");
    assert!(!lab.path("ignored/revoked").exists());
    let again = ["--revoke", &format!("../alice/{call}"), "--because", "a disk was full"];
    let dry = [&["-n"][..], &again].concat();
    push_as(&lab, "alice", &dry, ["alice", "results.git"])
        .exit(3)
        .shows("would push 1 revocation to ");
    push_as(&lab, "alice", &again, ["alice", "results.git"]).exit(0);
    let told = push_as(&lab, "alice", &again, ["alice", "results.git"]).exit(0);
    told.shows("nothing is new to ").shows("it has 1 revocation with this reason");
    let told = pull(&lab, &[], "after").exit(1).shows("pulled 1 call ");
    let told = told.shows(&format!("{name} stays there: it is revoked: a disk was full"));
    told.shows(&format!("its call {name} is revoked: a disk was full"));
    evaluate(&lab, "after").exit(0).called(vec!["twice"]);
    let told = pull(&lab, &[], "before").exit(1);
    told.shows(&format!(
        "{name} is here, and revoked: a disk was full; ce run --force executes it again"
    ));
    pull(&lab, &["--json"], "before").exit(1).shows(r#""reason":"a disk was full""#);
    let shown = lab.run("ce", &["show", "../before", &format!("../before/{call}")]).exit(0);
    shown.shows("  revoked      a disk was full\n");
    // Another result under that name is not revoked.
    salt(&lab, "salt\n");
    evaluate(&lab, "other").exit(0);
    let told = pull(&lab, &[], "other").exit(1);
    assert!(!told.stdout.contains("is here, and revoked"), "{}", told.stdout);
    let shown = lab.run("ce", &["show", "--json", "../other", &format!("../other/{call}")]).exit(0);
    shown.shows(r#""revoked": [],"#);
    // It is text of somebody else.
    let told = super::pull(&lab, &[], "believer", "results.git").exit(0).shows("is revoked: ");
    assert!(!told.stdout.contains('\u{1b}'), "{:?}", told.stdout);
    assert!(listed(&lab, "results.git").iter().any(|it| it.ends_with(&call)), "nothing is deleted");
}

#[test]
fn a_foreign_history_does_not_stop_a_pull() {
    let lab = signed();
    pull(&lab, &[], "before").exit(0);
    // Directories that are too deep, and a merge of two of them that differ.
    let make = |entry: String| {
        fs::write(lab.path("tree"), entry + "\n").unwrap();
        lab.git("results.git", &["-c", "alias.make=!git mktree < ../tree", "make"])
    };
    let tree = |name: &str| {
        let empty = lab.git("results.git", &["hash-object", "-w", "-t", "blob", "/dev/null"]);
        let mut tree = make(format!("100644 blob {empty}\t{name}"));
        for _ in 0..60 {
            tree = make(format!("040000 tree {tree}\t{}", "x".repeat(100)));
        }
        make(format!("040000 tree {tree}\tc_deep"))
    };
    let commit = |tree: &str, parents: &[&str]| {
        let parents = parents.iter().flat_map(|parent| ["-p", parent]);
        let fixed = ["commit-tree", "-m", "deep", tree];
        lab.git("results.git", &fixed.into_iter().chain(parents).collect::<Vec<_>>())
    };
    let (one, two) = (tree("one"), tree("two"));
    let good = lab.git("results.git", &["rev-parse", "results^{tree}"]);
    let tip = lab.git("results.git", &["rev-parse", "results"]);
    let sides = [commit(&one, &[]), commit(&two, &[])];
    let merge = commit(&one, &[&sides[0], &sides[1]]);
    let last = commit(&good, &[&tip, &merge]);
    lab.git("results.git", &["update-ref", "refs/heads/results", &last]);
    // Results that alice has signed are believed as before.
    for storage in ["mine", "again"] {
        pull(&lab, &[], storage).exit(0).shows("pulled 2 calls, 1 job");
    }
    // Files that such a merge leaves out are named all the same.
    let all = lab.git("results.git", &["ls-tree", &good]);
    let others: Vec<&str> = all.lines().filter(|it| !it.ends_with("\tledger")).collect();
    let hiding = commit(&make(others.join("\n")), &[&last, &sides[0], &sides[1]]);
    lab.git("results.git", &["update-ref", "refs/heads/results", &hiding]);
    let told = pull(&lab, &[], "mine").exit(1).shows("ledger/");
    told.shows(&format!("is there no more: the commit {} has taken it away", &hiding[..12]));
}

#[test]
fn times_and_machines_are_published_on_request() {
    let lab = lab();
    people(&lab);
    evaluate(&lab, "alice").exit(0);
    push(&lab, &["--machine"], "alice", "results.git").exit(2).says("--times");
    let ledger = |field: &str| {
        let args = ["grep", "-h", field, "results", "--", "ledger"];
        lab.git("results.git", &args).lines().count()
    };
    push_as(&lab, "alice", &[], ["alice", "results.git"]).exit(0);
    assert!(!holds(&lab, "results.git", "\"end\"") && !holds(&lab, "results.git", "\"machine\""));
    // Statements that were made without are made again, and once.
    push_as(&lab, "alice", &["--attest", "--times"], ["alice", "results.git"]).exit(0);
    let calls = ledger("\"end\"");
    assert!(calls > 0 && !holds(&lab, "results.git", "\"machine\""));
    for options in
        [&["--attest", "--times", "--machine"][..], &["--attest", "--times"], &["--attest"]]
    {
        push_as(&lab, "alice", options, ["alice", "results.git"]).exit(0);
        assert_eq!((ledger("\"end\""), ledger("\"machine\"")), (2 * calls, calls), "{options:?}");
    }
    pull(&lab, &[], "mine").exit(0);
    let call = format!("../mine/{}", file_of(&lab, ["c_twice/", "/00/"]));
    let text = lab.run("ce", &["show", "../mine", &call]).exit(0).stdout;
    let line =
        |line: &&str| line.starts_with("  published    20") && line.contains(" by alice@lab");
    let published: Vec<&str> = text.lines().filter(line).collect();
    let with = format!(" on {}", machine());
    let [without, with] = [&published[0], &published[1]].map(|it| it.ends_with(&with));
    assert!(published.len() == 2 && !without && with, "{text}");
    let shown = lab.run("ce", &["show", "--json", "../mine", &call]).exit(0).stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["published"][1]["machine"], machine(), "{shown}");
    // The log has them at their times, which are before everything that is executed here since.
    let json = |storage: &str| -> Vec<serde_json::Value> {
        let log = lab.run("ce", &["log", "--json", storage]).exit(0).stdout;
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let (theirs, ours) = (json("../mine"), json("../alice"));
    assert_eq!(theirs.len(), ours.len());
    for (theirs, ours) in theirs.iter().zip(&ours) {
        assert_eq!((&theirs["name"], &theirs["at"]), (&ours["name"], &ours["at"]));
        assert_eq!(theirs["published"]["end"], ours["at"], "{theirs}");
        assert_eq!(theirs["published"]["machine"], machine(), "{theirs}");
        assert!(ours.get("published").is_none() && theirs["seconds"].is_null(), "{ours} {theirs}");
    }
    let text = lab.run("ce", &["log", "../mine"]).exit(0).stdout;
    let remark = "  executed then, as published by alice@lab";
    assert_eq!(text.matches(remark).count(), theirs.len(), "{text}");
    // An export and a citation say so, too.
    lab.run("ce", &["export", "../mine", &call, "../exported"]).exit(0);
    let readme = fs::read_to_string(lab.path("exported/README.md")).unwrap();
    let end = shown["published"][1]["end"].as_str().unwrap();
    let by = format!("- executed: {end} on `{}`, as published by `alice@lab`\n", machine());
    assert!(readme.contains(&by), "{readme}");
    lab.run("ce", &["cite", "../mine", &call]).exit(0).shows(&format!(", of {}. ", &end[..10]));
}
