//! Results that are away: their records are here, and outputs deliberately not.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use super::{repository, salt};
use crate::lab::Lab;
use crate::program::{Ran, Running};

const DOUBLE: &str = r#"cat "$1" "$1" >"$2""#;

/// It depends on a file that nobody declares, if there is one.
const SALTED: &str = r#"cat "$1" "$1" >"$2"
[ ! -e "$LAB_LOG.salt" ] || cat "$LAB_LOG.salt" >>"$2""#;

/// A chain of three calls, and one that reads its end and an input of its own.
pub(crate) fn chain() -> Lab {
    let text = "Inputs: 'x', 'y'\n(mix (third (second (first INPUT('x'))[0])[0])[0] INPUT('y'))[0]";
    let mut lab = Lab::task(text)
        .computation("first", "a", "b", DOUBLE)
        .computation("second", "a", "b", SALTED)
        .computation("third", "a", "b", DOUBLE)
        .computation("mix", "a\nb", "c", r#"cat "$1" "$2" >"$3""#)
        .data("x", "x\n")
        .data("y", "y\n")
        .data("z", "z\n");
    lab.inputs = vec!["x".to_owned(), "y".to_owned()];
    let lab = lab.commit();
    repository(&lab, "results.git");
    lab
}

/// The same chain, completely executed.
pub(crate) fn executed() -> Lab {
    let lab = chain();
    lab.ce_run(&[]).exit(0).called(vec!["first", "mix", "second", "third"]);
    lab
}

/// The files of a computation's calls with this room in a storage.
pub(crate) fn room(lab: &Lab, storage: &str, owner: &str, room: &str) -> Vec<String> {
    let files = walkdir::WalkDir::new(lab.path(storage).join(owner)).sort_by_file_name();
    let files = files.into_iter().filter_map(Result::ok).map(|it| it.path().to_owned());
    let is_in = |path: &Path| path.to_str().is_some_and(|it| it.contains(&format!("/{room}/")));
    let files = files.filter(|it| is_in(it) && it.is_file());
    files.map(|path| path.to_str().unwrap().to_owned()).collect()
}

/// Marks the calls of a computation as away, and removes their outputs.
pub(crate) fn away(lab: &Lab, storage: &str, owner: &str) {
    let owner = format!("c_{owner}");
    for file in room(lab, storage, &owner, "00") {
        let marker = file.replace("/00/", "/away/");
        fs::create_dir_all(Path::new(&marker).parent().unwrap()).unwrap();
        fs::write(marker, "").unwrap();
        fs::remove_file(file).unwrap();
    }
}

/// Evaluates from another second input.
pub(crate) fn with_z<'a>(lab: &'a Lab, options: &[&str]) -> Ran<'a> {
    let mut command = lab.command("ce-run");
    lab.finish(command.args(options).args(["../storage", "../data/x", "../data/z"]))
}

#[test]
fn results_that_are_away_are_known_and_not_executed() {
    let lab = executed();
    for owner in ["first", "second", "third"] {
        away(&lab, "storage", owner);
    }
    let told = lab.unchanged(|| lab.ce_run(&["-n"]).exit(0).called(vec![]));
    told.says("4 calls: 1 reused, 3 away").shows("AWAY");
    lab.ce_run(&[]).exit(0).called(vec![]).says("4 calls: 1 reused, 3 away").says("job output");
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd and harmless, 3 away");
    let json = lab.ce_run(&["--json"]).exit(0);
    json.shows(r#""outcome":"away""#).shows(r#""away":3"#);
}

#[test]
fn what_is_away_is_drawn_as_known_and_logged() {
    let lab = executed();
    let drawn = || {
        let arguments = ["../storage", "../data/x", "../data/y"];
        lab.run("ce-viz", &arguments).exit(0).stdout
    };
    assert!(!drawn().contains("away"));
    away(&lab, "storage", "second");
    let dot = drawn();
    assert!(dot.contains("known, away"), "{dot}");
    let of = |name: &str| dot.lines().find(|it| it.contains(&format!("label=\"{name}\""))).unwrap();
    assert!(of("second").contains("#ffffff") && of("second").contains("dashed"), "{dot}");
    assert_eq!(dot.matches("fillcolor=\"#ffffff\"").count(), 1, "{dot}");
    assert!(of("third").contains("#d5e6f5"), "{dot}");
    let told = lab.run("ce", &["log", "../storage"]).exit(0);
    assert_eq!(told.stdout.matches("away: outputs of it are not here").count(), 1);
    let json = lab.run("ce", &["log", "--json", "../storage"]).exit(0);
    let is_away = |line: &&str| line.contains(r#""away":true"#);
    let lines: Vec<&str> = json.lines().into_iter().filter(is_away).collect();
    assert!(matches!(lines[..], [line] if line.contains("c_second/")), "{lines:?}");
}

#[test]
fn only_a_marker_with_a_record_and_without_outputs_counts() {
    let lab = executed();
    // A missing output without a marker is made again without a word.
    for file in room(&lab, "storage", "c_second", "00") {
        fs::remove_file(file).unwrap();
    }
    salt(&lab, "salt\n");
    lab.ce_run(&[]).exit(0).called(vec!["mix", "second", "third"]);
    // A marker beside outputs means nothing, and one without a record is odd.
    for file in room(&lab, "storage", "c_second", "00") {
        let marker = file.replace("/00/", "/away/");
        fs::create_dir_all(Path::new(&marker).parent().unwrap()).unwrap();
        fs::write(&marker, "").unwrap();
        fs::write(marker.clone() + "_0123456789ab", "").unwrap();
    }
    let told = lab.ce_run(&[]).exit(0).called(vec![]);
    told.says("4 calls: 4 reused");
    let told = lab.run("ce", &["verify", "../storage"]).exit(0);
    let told = told.says("0 wrong, 1 odd").shows("marks outputs without a record as away");
    assert!(!told.stderr.contains(" away"), "{}", told.stderr);
}

#[test]
fn a_call_demands_its_inputs_that_are_away_and_their_inputs() {
    let lab = executed();
    let before = lab.results();
    for owner in ["first", "second", "third"] {
        away(&lab, "storage", owner);
    }
    let told = lab.unchanged(|| with_z(&lab, &["-n"]).exit(3).called(vec![]));
    told.says("4 calls: 4 missing").says("its outputs are away, and needed");
    let told = with_z(&lab, &[]).exit(0).called(vec!["first", "mix", "second", "third"]);
    told.says("4 calls: 4 computed").says("its outputs are away, and needed; they must be");
    let after = lab.results();
    let same = before.iter().filter(|(name, _)| !name.starts_with("tmp/"));
    same.for_each(|(name, contents)| assert!(after.get(name) == Some(contents), "{name}"));
    assert!(room(&lab, "storage", "c_first", "away").is_empty(), "no marker is left");
    assert!(lab.is_tidy());
    with_z(&lab, &[]).exit(0).called(vec![]).says("4 calls: 4 reused");
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd and harmless\n");
}

#[test]
fn only_needed_outputs_are_demanded() {
    let lab = executed();
    away(&lab, "storage", "first");
    away(&lab, "storage", "third");
    let told = with_z(&lab, &["-n"]).exit(3).called(vec![]);
    told.says("4 calls: 1 reused, 1 away, 2 missing");
    let told = with_z(&lab, &[]).exit(0).called(vec!["mix", "third"]);
    told.says("4 calls: 1 reused, 1 away, 2 computed");
    // Outputs of the job are needed in any case.
    away(&lab, "storage", "mix");
    away(&lab, "storage", "third");
    lab.ce_run(&["-n"]).exit(3).says("4 calls: 1 reused, 1 away, 2 missing");
    lab.ce_run(&["-q"]).exit(0).called(vec!["mix", "third"]);
    assert_eq!(lab.output(), "x\n".repeat(8) + "y\n");
}

#[test]
fn a_differing_recomputation_is_reported_and_set_aside() {
    let lab = executed();
    away(&lab, "storage", "second");
    away(&lab, "storage", "third");
    let record = || lab.stored(&find(&lab, "c_second", "/record/"));
    let before = record();
    salt(&lab, "salt\n");
    let told = with_z(&lab, &[]).exit(1).called(vec!["second"]);
    let sha1 = |text: &str| compeval::digest::Digest::hash_bytes(text.as_bytes()).sha1.full();
    let (was, is) = (sha1(&"x\n".repeat(4)), sha1("x\nx\nx\nx\nsalt\n"));
    told.says(&format!("output 00 was {was}, is {is}"))
        .says("; 1 recorded call was made from what is recorded; the new outputs are in c_second/")
        .says("try: compare both; ce run --accept")
        .says("4 calls: 1 reused, 1 failed, 2 blocked");
    assert_eq!(record(), before, "the record stands");
    assert_eq!(lab.stored(&find(&lab, "c_second", "/aside/")), "x\nx\nx\nx\nsalt\n");
    assert!(room(&lab, "storage", "c_second", "00").is_empty());
    // Nothing that was found is lost.
    lab.ce_run(&[]).exit(0).called(vec![]).says("4 calls: 2 reused, 2 away");
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd and harmless, 2 away");
}

#[test]
fn differing_outputs_are_used_with_accept() {
    let lab = executed();
    away(&lab, "storage", "second");
    away(&lab, "storage", "third");
    salt(&lab, "salt\n");
    // Calls made from the old outputs are looked up anew by the next run.
    let told = with_z(&lab, &["--accept"]).exit(3);
    told.says("recorded outputs were replaced by others; run it again");
    let salted = "x\nx\nx\nx\nsalt\n";
    assert!(lab.results().values().any(|it| it == salted.as_bytes()));
    with_z(&lab, &[]).exit(0);
    lab.called();
    let told = with_z(&lab, &["-q"]).exit(0).called(vec![]);
    assert_eq!(lab.stored(told.stdout.trim()), salted.repeat(2) + "z\n");
}

/// The first file of a computation whose name contains a text, relative to the storage.
pub(crate) fn find(lab: &Lab, owner: &str, text: &str) -> String {
    let is_it = |name: &&String| name.starts_with(owner) && name.contains(text);
    let is_value = |name: &&String| !text.contains("aside") || !name.ends_with(".json");
    lab.storage().iter().find(|name| is_it(name) && is_value(name)).unwrap().clone()
}

#[test]
fn explain_names_calls_that_would_be_executed_again() {
    let lab = executed();
    away(&lab, "storage", "second");
    away(&lab, "storage", "third");
    let arguments = ["explain", "../storage", "../data/x", "../data/z"];
    let told = lab.unchanged(|| lab.run("ce", &arguments).exit(3));
    told.shows("outputs of third are away, and needed")
        .shows("outputs of second are away, and needed")
        .shows("3 calls would run: about ");
    let mut json = arguments.to_vec();
    json.insert(1, "--json");
    lab.run("ce", &json).exit(3).shows(r#""why":"away""#).shows(r#""cause":"away""#);
}

#[test]
fn runs_that_demand_the_same_call_execute_it_once() {
    let lab = executed();
    away(&lab, "storage", "second");
    away(&lab, "storage", "third");
    let runs = [(); 3].map(|()| {
        let mut command = lab.command("ce-run");
        Running::start(command.args(["../storage", "../data/x", "../data/z"]))
    });
    for run in runs {
        Ran::new(&lab, run.output()).exit(0);
    }
    let mut called = lab.called();
    called.sort();
    assert_eq!(called, ["mix", "second", "third"]);
}

#[test]
fn a_worker_compares_outputs_of_a_repeated_call() {
    let lab = executed();
    let queued = |options: &[&str]| {
        let worker = lab
            .command("ce")
            .args(["worker", "--idle", "10h", "--no-isolate"])
            .arg("../storage")
            .spawn_it();
        worker.wait_until_it_catches(Signal::TERM);
        let ran = with_z(&lab, &[&["--on", "workers"], options].concat());
        worker.signal(Signal::TERM);
        Ran::new(&lab, worker.output()).exit(143);
        ran
    };
    away(&lab, "storage", "second");
    away(&lab, "storage", "third");
    salt(&lab, "salt\n");
    let told = queued(&[]).exit(1).called(vec!["second"]);
    told.says("executed again it made others than are recorded")
        .says("the new outputs are in c_second/");
    fs::remove_file(lab.path("called.salt")).unwrap();
    queued(&[]).exit(0).called(vec!["mix", "second", "third"]);
    away(&lab, "storage", "second");
    salt(&lab, "salt\n");
    for file in room(&lab, "storage", "c_third", "00") {
        fs::remove_file(file).unwrap();
    }
    queued(&["--accept"]).exit(3).says("recorded outputs were replaced by others");
}

/// Starts a command.
trait Spawn {
    fn spawn_it(&mut self) -> Running;
}

impl Spawn for std::process::Command {
    fn spawn_it(&mut self) -> Running {
        Running::start(self)
    }
}
