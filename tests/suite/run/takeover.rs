//! Results that another commit has: what did not change is not computed again.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::Value;

use super::calls::equal;
use crate::faults::stride;
use crate::lab::{Lab, files};
use crate::records::schema;

const TASK: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('x'))[0]";

/// Makes all records say that their calls ran isolated.
fn isolate(lab: &Lab) {
    for (name, text) in files(&lab.path("storage")) {
        if name.contains("/record/") && name.starts_with("c_") {
            let text = String::from_utf8(text).unwrap();
            let path = lab.path("storage").join(name);
            fs::write(
                path,
                text.replace("\"isolation\": \"none\"", "\"isolation\": \"namespaces\""),
            )
            .unwrap();
        }
    }
}

/// A laboratory with a task that was evaluated, isolated, and one more commit.
fn evaluated() -> Lab {
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["add", "mul"]);
    isolate(&lab);
    lab.file("README", "").commit_again()
}

#[test]
fn calls_that_turn_out_to_be_equal_are_taken_over_once() {
    let lab = equal().in_words().commit();
    let first = lab.ce_run(&["--no-sync"]).exit(0).says("3 calls: 3 computed");
    first.called(vec!["add", "add", "mul"]);
    isolate(&lab);
    let lab = lab.file("README", "").commit_again();
    let ran = lab.ce_run(&["--no-sync"]).exit(0).called(vec![]).says("3 calls: 3 taken over");
    assert_eq!(ran.stdout.matches("  reused from another commit").count(), 4, "{}", ran.stdout);
}

#[test]
fn a_read_only_user_uses_results_of_another_commit_in_place() {
    let lab = evaluated();
    let Some(user) = lab.plain_user() else { return };
    let mode = |mode: &str| {
        let mut chmod = Command::new("chmod");
        assert!(chmod.args(["-R", mode]).arg(lab.path("")).status().unwrap().success());
    };
    mode("a+rX,a-w");
    lab.unchanged(|| {
        let run = |options: &[&str]| lab.finish(lab.evaluation(options).uid(user)).exit(0);
        run(&["-n"]).says("2 calls: 2 taken over");
        let ran = run(&[]).says("2 calls: 2 taken over");
        ran.says("warning: the job's outputs were not stored: cannot make the directory LAB/storage/t_task/");
        let ran = run(&["-q"]);
        assert_eq!(lab.stored(ran.stdout.trim()), "102\n");
    });
    mode("u+w");
}

#[test]
fn a_commit_that_changes_no_computation_costs_no_execution() {
    let lab = evaluated();
    let before = lab.storage();
    lab.unchanged(|| lab.ce_run(&["-n"]).exit(0).says("2 calls: 2 taken over"));
    lab.ce_run(&["-n", "--json"]).exit(0).shows(r#""outcome":"taken_over""#);
    let ran = lab.ce_run(&["--no-sync"]).exit(0).called(vec![]).says("2 calls: 2 taken over");
    assert!(!ran.stdout.contains("computing..."), "{}", ran.stdout);
    lab.ce_run(&["--no-sync"]).exit(0).called(vec![]).says("2 calls: 2 reused");
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
    assert!(lab.is_tidy());
    // Each new output is an old one, and its record says which.
    let new = lab.storage().into_iter().filter(|name| !before.contains(name));
    for record in new.filter(|name| name.starts_with("c_") && name.contains("/record/")) {
        let value: Value = serde_json::from_str(&lab.stored(&record)).unwrap();
        let source = value["origin"]["executed"]["taken_over"].as_str().unwrap();
        let [owner, commit, inputs] = source.splitn(3, '/').collect::<Vec<_>>()[..] else {
            panic!()
        };
        let old = lab.path("storage").join(format!("{owner}/{commit}/00/{inputs}"));
        let new = record.replace("/record/", "/00/").replace(".json", "");
        let new = lab.path("storage").join(new);
        assert_eq!(old.metadata().unwrap().ino(), new.metadata().unwrap().ino());
    }
}

#[test]
fn a_taken_over_result_can_be_taken_over_again() {
    let lab = evaluated();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec![]);
    // The first source goes.
    for (name, _) in files(&lab.path("storage")) {
        let record = name.contains("/record/") && name.starts_with("c_");
        if record && !lab.stored(&name).contains("taken_over") {
            let commit = name.split("/record/").next().unwrap();
            fs::remove_dir_all(lab.path("storage").join(commit)).unwrap();
        }
    }
    let lab = lab.file("README", "more").commit_again();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec![]).says("2 calls: 2 taken over");
}

/// Sixteen newer versions have other results of the tree. Later ones are looked through by their names, as often as they are asked for.
#[test]
fn a_result_is_taken_over_however_many_commits_ago_it_was_made() {
    let mut lab = evaluated();
    for number in 0..20 {
        lab = lab.data("x", format!("{}\n", 100 + number)).file("README", number.to_string());
        lab = lab.commit_again();
        lab.ce_run(&["--no-sync"]).exit(0).called(vec!["add", "mul"]);
        isolate(&lab);
    }
    let lab = lab.data("x", "17\n");
    lab.unchanged(|| lab.ce_run(&["-n"]).exit(0).says("2 calls: 2 taken over"));
    let lab = lab.data("x", "101\n");
    lab.ce_run(&["--no-sync"]).exit(0).called(vec![]).says("2 calls: 2 taken over");
}

#[test]
fn other_computations_and_inputs_and_what_did_not_run_isolated_are_not_taken_over() {
    let lab = evaluated().file("computations/mul/notes", "").commit_again();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["mul"]).says("1 taken over, 1 computed");
    let lab = lab.data("x", "18\n");
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["add", "mul"]);
    let lab = lab.file("README", "more").commit_again();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["add", "mul"]);
}

#[test]
fn a_damaged_or_missing_result_is_not_a_source() {
    for damage in [
        |path: &std::path::Path| fs::remove_file(path).unwrap(),
        |path: &std::path::Path| {
            fs::remove_file(path).unwrap();
            fs::write(path, "damaged").unwrap();
        },
    ] {
        let lab = evaluated();
        let sum = lab.results().into_keys().find(|name| name.starts_with("c_add/")).unwrap();
        damage(&lab.path("storage").join(sum));
        lab.ce_run(&["--no-sync"]).exit(0).called(vec!["add"]).says("1 taken over, 1 computed");
        assert_eq!(lab.output(), "102\n");
    }
}

#[test]
fn a_dirty_result_is_taken_over_when_its_files_are_committed() {
    let lab = Lab::task(TASK).commit().file("computations/mul/notes", "");
    lab.ce_run(&["--no-sync", "--dirty"]).exit(0).called(vec!["add", "mul"]);
    isolate(&lab);
    let lab = lab.commit_again();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec![]).says("2 calls: 2 taken over");
}

/// A laboratory whose user trusts trees, with a task that was evaluated without isolation, and one more commit.
fn trusting() -> Lab {
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["add", "mul"]);
    let lab = lab.file("README", "").commit_again();
    lab.git("task", &["config", "compeval.takeover", "tree"]);
    lab
}

/// The executions in the records of this commit.
fn executions(lab: &Lab, revision: &str) -> Vec<Value> {
    let commit = lab.git("task", &["rev-parse", revision])[..12].to_owned();
    let is_of = |name: &String| name.starts_with("c_") && name.contains(&commit);
    let records = lab.storage().into_iter().filter(|it| is_of(it) && it.contains("/record/"));
    let record = |name: String| serde_json::from_str::<Value>(&lab.stored(&name)).unwrap();
    records.map(|name| record(name)["origin"]["executed"].take()).collect()
}

#[test]
fn takeover_by_tree_uses_results_computed_without_isolation() {
    let lab = trusting();
    lab.unchanged(|| lab.ce_run(&["-n"]).exit(0).says("2 calls: 2 taken over"));
    lab.unchanged(|| lab.run("ce", &["explain", "../storage", "../data/x", "../data/y"]).exit(0));
    lab.ce_run(&["--no-sync"]).exit(0).called(vec![]).says("2 calls: 2 taken over");
    lab.ce_run(&["--no-sync"]).exit(0).called(vec![]).says("2 calls: 2 reused");
    // Records and their printed form say so.
    assert!(executions(&lab, "HEAD~").iter().all(|it| it.get("trusted_tree").is_none()));
    let trusted = executions(&lab, "HEAD");
    assert_eq!(trusted.len(), 2);
    for execution in &trusted {
        assert_eq!(
            (&execution["trusted_tree"], &execution["isolation"]),
            (&true.into(), &"none".into())
        );
    }
    let schema = schema(Some("call"));
    for name in lab.storage().iter().filter(|it| it.starts_with("c_") && it.contains("/record/")) {
        assert!(schema.is_valid(&serde_json::from_str(&lab.stored(name)).unwrap()), "{name}");
    }
    let log = lab.run("ce", &["log", "../storage"]).exit(0);
    assert_eq!(log.stdout.matches(", not isolated: its tree was trusted\n").count(), 2);
    let output = lab.ce_run(&["-q"]).exit(0).stdout;
    let shown = lab.run("ce", &["show", "../storage", output.trim()]).exit(0);
    shown.shows(", not isolated: its tree was trusted; when that was executed:\n");
    let json = lab.run("ce", &["show", "--json", "../storage", output.trim()]).exit(0).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["taken_over"]["trusted_tree"], true);
    // A computation that changed is executed.
    let lab = lab.file("computations/mul/notes", "").commit_again();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["mul"]).says("1 taken over, 1 computed");
}

#[test]
fn a_takeover_needs_no_worker() {
    let lab = trusting();
    let queued = ["--no-sync", "--on", "workers"];
    lab.ce_run(&queued).exit(0).called(vec![]).says("2 calls: 2 taken over");
    assert!(executions(&lab, "HEAD").iter().all(|it| it["trusted_tree"] == true));
}

#[test]
fn the_takeover_of_an_isolated_result_needs_no_trust() {
    let lab = trusting();
    isolate(&lab);
    lab.ce_run(&["--no-sync"]).exit(0).called(vec![]).says("2 taken over");
    assert!(executions(&lab, "HEAD").iter().all(|it| it.get("trusted_tree").is_none()));
}

#[test]
fn trust_in_a_tree_is_not_passed_on() {
    let lab = trusting();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec![]);
    let lab = lab.file("README", "more").commit_again();
    lab.git("task", &["config", "compeval.takeover", "isolated"]);
    let explained = lab.run("ce", &["explain", "../storage", "../data/x", "../data/y"]).exit(3);
    explained.shows("mul is at another commit, and did not run isolated");
    lab.ce_run(&["-n"]).exit(3);
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["add", "mul"]);
}

#[test]
fn a_strict_run_does_not_use_results_of_a_trusted_tree() {
    let lab = trusting();
    lab.ce_run(&["-n", "--strict"]).exit(3);
    lab.ce_run(&["--no-sync"]).exit(0).called(vec![]);
    // Its outputs are here, so nobody is told that they are gone.
    let refused = "its result is not used: it was taken over from another commit without isolation";
    let strict = lab.ce_run(&["-n", "--strict"]).exit(3).says(refused);
    assert!(!strict.stderr.contains("outputs are gone"), "{}", strict.stderr);
    let ran = lab.ce_run(&["--no-sync", "--strict"]).exit(0).called(vec!["add", "mul"]);
    ran.says("it was taken over from another commit without isolation, and not executed");
    lab.ce_run(&["--no-sync", "--strict"]).exit(0).called(vec![]).says("2 reused");
}

#[test]
fn an_evicted_result_of_another_commit_is_reported_as_away() {
    let lab = trusting();
    let output = lab.results().into_keys().find(|name| name.starts_with("c_mul/")).unwrap();
    let mark = lab.path("storage").join(output.replace("/00/", "/away/"));
    fs::create_dir_all(mark.parent().unwrap()).unwrap();
    fs::write(mark, "").unwrap();
    fs::remove_file(lab.path("storage").join(&output)).unwrap();
    let told = lab.ce_run(&["-n"]).exit(3).says("its outputs are away, and needed");
    assert!(!told.stderr.contains("outputs are gone"), "{}", told.stderr);
}

/// A run was killed when the record of what it had taken over by a trusted tree was there, and the output still in `tmp/`. The next
/// program that opens the storage for writing empties `tmp/`, whether it would use such a result or not: a strict run does not, nor
/// does any program that evaluates nothing. If it does not bring the output to its place first, the record stays without it, which
/// is damage to `ce verify`. Where the commit that it was taken over from is gone, as here after an amendment, `ce gc --delete` has
/// then deleted the only other name of the file, and the call is executed once more.
#[test]
#[cfg(debug_assertions)]
fn the_next_program_completes_the_takeover_of_a_dead_run() {
    let mut half = 0;
    let lab = trusting();
    let amended = lab.git("task", &["commit-tree", "-m", "amended", "HEAD^{tree}"]);
    lab.git("task", &["reset", "--soft", &amended]);
    lab.git("", &["init", "--quiet", "--bare", "results.git"]);
    lab.copy("storage", "stock");
    let of_commit = |name: &&String| name.starts_with("c_") && name.contains(&amended[..12]);
    for at in (1..).step_by(stride(2)) {
        lab.copy("stock", "storage");
        drop(fs::remove_dir_all(lab.path("cache")));
        let mut run = lab.evaluation(&["-j1", "--no-sync"]);
        let ran = lab.finish(run.env("CE_FAULT", format!("{at}:KILL")));
        if !ran.stderr.contains("fault at operation") {
            assert!(half > 0, "{at} operations");
            return;
        }
        let (names, results) = (lab.storage(), lab.results());
        let records = names.iter().filter(of_commit).filter(|it| it.contains("/record/")).count();
        if records == results.keys().filter(of_commit).count() {
            continue;
        }
        half += 1;
        let other = results.keys().find(|name| name.starts_with("c_") && !of_commit(name)).unwrap();
        let next = [
            "ce audit --no-isolate STORAGE",
            "ce gc --delete STORAGE",
            &format!("ce pin STORAGE {other}"),
            "ce pull STORAGE ../results.git",
            "ce push STORAGE ../results.git",
            "ce verify --repair STORAGE",
            // Other calls than those that were taken over: these it would execute, and replace.
            "ce-run --no-sync --strict STORAGE ../data/y ../data/x",
        ];
        for (number, next) in next.iter().enumerate() {
            let storage = format!("storage{number}");
            lab.copy("storage", &storage);
            let storage = format!("../{storage}");
            let told = next.replace("STORAGE", &storage);
            let words: Vec<&str> = told.split(' ').collect();
            lab.run(words[0], &words[1..]).exit(0);
            let verified = lab.run("ce", &["verify", &storage]);
            let wrong = format!("{told}, after a kill at {at}: {}", verified.stdout);
            assert_eq!(verified.status.code(), Some(0), "{wrong}");
        }
    }
}
