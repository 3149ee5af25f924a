//! Results that are away: their records are here, and outputs deliberately not.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use super::{cloned, evaluate, pull, push, repository, salt};
use crate::lab::Lab;
use crate::program::{Ran, Running};

/// It has other outputs from now on if there is a file that nobody declares.
const DOUBLE: &str = r#"cat "$1" "$1" >"$2""#;
const SALTED: &str = r#"cat "$1" "$1" >"$2"
[ ! -e "$LAB_LOG.salt" ] || cat "$LAB_LOG.salt" >>"$2""#;

/// A chain of three calls, and one that reads its end and an input of its own.
fn chain() -> Lab {
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

/// The same chain, of which everything was executed.
fn executed() -> Lab {
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
fn away(lab: &Lab, storage: &str, owner: &str) {
    let owner = format!("c_{owner}");
    for file in room(lab, storage, &owner, "00") {
        let marker = file.replace("/00/", "/away/");
        fs::create_dir_all(Path::new(&marker).parent().unwrap()).unwrap();
        fs::write(marker, "").unwrap();
        fs::remove_file(file).unwrap();
    }
}

/// Evaluates from another second input.
fn with_z<'a>(lab: &'a Lab, options: &[&str]) -> Ran<'a> {
    let mut command = lab.command("ce-run");
    lab.finish(command.args(options).args(["../storage", "../data/x", "../data/z"]))
}

#[test]
fn what_is_away_is_known_and_executes_nothing() {
    let lab = executed();
    for owner in ["first", "second", "third"] {
        away(&lab, "storage", owner);
    }
    let told = lab.unchanged(|| lab.ce_run(&["-n"]).exit(0).called(vec![]));
    told.says("4 calls: 1 found, 3 away").shows("AWAY");
    lab.ce_run(&[]).exit(0).called(vec![]).says("4 calls: 1 found, 3 away").says("job output");
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd and harmless, 3 away");
    let json = lab.ce_run(&["--json"]).exit(0);
    json.shows(r#""outcome":"away""#).shows(r#""away":3"#);
}

#[test]
fn a_missing_output_without_a_marker_is_made_again_without_a_word() {
    let lab = executed();
    for file in room(&lab, "storage", "c_second", "00") {
        fs::remove_file(file).unwrap();
    }
    salt(&lab, "salt\n");
    lab.ce_run(&[]).exit(0).called(vec!["mix", "second", "third"]);
}

#[test]
fn a_marker_beside_outputs_means_nothing_and_one_without_a_record_is_odd() {
    let lab = executed();
    for file in room(&lab, "storage", "c_second", "00") {
        let marker = file.replace("/00/", "/away/");
        fs::create_dir_all(Path::new(&marker).parent().unwrap()).unwrap();
        fs::write(&marker, "").unwrap();
        fs::write(marker.clone() + "_0123456789ab", "").unwrap();
    }
    let told = lab.ce_run(&[]).exit(0).called(vec![]);
    told.says("4 calls: 4 found");
    let told = lab.run("ce", &["verify", "../storage"]).exit(0);
    let told = told.says("0 wrong, 1 odd").shows("marks outputs without a record as away");
    assert!(!told.stderr.contains(" away"), "{}", told.stderr);
}

#[test]
fn a_call_that_needs_what_is_away_demands_it_and_what_that_needs() {
    let lab = executed();
    let before = lab.results();
    for owner in ["first", "second", "third"] {
        away(&lab, "storage", owner);
    }
    let told = lab.unchanged(|| with_z(&lab, &["-n"]).exit(3).called(vec![]));
    told.says("4 calls: 4 missing").says("its outputs are away, and needed");
    let told = with_z(&lab, &[]).exit(0).called(vec!["first", "mix", "second", "third"]);
    told.says("4 calls: 4 executed").says("its outputs are away, and needed; they must be");
    let after = lab.results();
    let same = before.iter().filter(|(name, _)| !name.starts_with("tmp/"));
    same.for_each(|(name, contents)| assert!(after.get(name) == Some(contents), "{name}"));
    assert!(room(&lab, "storage", "c_first", "away").is_empty(), "no marker is left");
    assert!(lab.is_tidy());
    with_z(&lab, &[]).exit(0).called(vec![]).says("4 calls: 4 found");
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd and harmless\n");
}

#[test]
fn only_what_is_needed_is_demanded() {
    let lab = executed();
    away(&lab, "storage", "first");
    away(&lab, "storage", "third");
    let told = with_z(&lab, &["-n"]).exit(3).called(vec![]);
    told.says("4 calls: 1 found, 1 away, 2 missing");
    let told = with_z(&lab, &[]).exit(0).called(vec!["mix", "third"]);
    told.says("4 calls: 1 found, 1 away, 2 executed");
}

#[test]
fn outputs_of_the_job_are_needed_in_any_case() {
    let lab = executed();
    away(&lab, "storage", "mix");
    away(&lab, "storage", "third");
    lab.ce_run(&["-n"]).exit(3).says("4 calls: 2 found, 2 missing");
    lab.ce_run(&["-q"]).exit(0).called(vec!["mix", "third"]);
    assert_eq!(lab.output(), "x\n".repeat(8) + "y\n");
}

#[test]
fn what_comes_out_different_is_told_and_set_aside() {
    let lab = executed();
    away(&lab, "storage", "second");
    away(&lab, "storage", "third");
    let record = || lab.stored(&find(&lab, "c_second", "/record/"));
    let before = record();
    salt(&lab, "salt\n");
    let told = with_z(&lab, &[]).exit(1).called(vec!["second"]);
    let sha1 = |text: &str| compeval::digest::Digest::of(text.as_bytes()).sha1.full();
    let (was, is) = (sha1(&"x\n".repeat(4)), sha1("x\nx\nx\nx\nsalt\n"));
    told.says(&format!("output 00 was {was}, is {is}"))
        .says("; 1 recorded call was made from what is recorded; the new outputs are in c_second/")
        .says("try: compare both; ce run --accept")
        .says("4 calls: 1 found, 1 failed, 2 blocked");
    assert_eq!(record(), before, "the record stands");
    assert_eq!(lab.stored(&find(&lab, "c_second", "/aside/")), "x\nx\nx\nx\nsalt\n");
    assert!(room(&lab, "storage", "c_second", "00").is_empty());
    // Nothing that was found is lost.
    lab.ce_run(&[]).exit(0).called(vec![]).says("4 calls: 2 found, 2 away");
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd and harmless, 2 away");
}

#[test]
fn the_user_accepts_other_outputs() {
    let lab = executed();
    away(&lab, "storage", "second");
    away(&lab, "storage", "third");
    salt(&lab, "salt\n");
    // What was made from the old outputs is looked up anew by the next run.
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
fn find(lab: &Lab, owner: &str, text: &str) -> String {
    let is_it = |name: &&String| name.starts_with(owner) && name.contains(text);
    let is_value = |name: &&String| !text.contains("aside") || !name.ends_with(".json");
    lab.storage().iter().find(|name| is_it(name) && is_value(name)).unwrap().clone()
}

#[test]
fn it_is_explained_what_would_be_executed_again_and_why() {
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
fn runs_that_demand_the_same_execute_it_once() {
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
fn a_worker_compares_what_it_has_executed_again() {
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

/// Outputs of `first` and `second` are smaller, those of `third` and `mix` are larger.
const LIMIT: &[&str] = &["--limit", "1K"];

/// The chain, with an input of 200 bytes.
fn large() -> Lab {
    let lab = chain().data("x", "x".repeat(200));
    lab.ce_run(&[]).exit(0);
    lab.called();
    lab
}

#[test]
fn what_is_too_large_stays_here_and_is_known_there() {
    let lab = large();
    let told = push(&lab, &[&["-n"], LIMIT].concat(), "storage", "results.git").exit(3);
    told.shows("would push 4 calls, 1 job (1.2 KiB)");
    let told = push(&lab, LIMIT, "storage", "results.git").exit(0);
    told.shows("pushed 4 calls, 1 job (1.2 KiB)")
        .shows("2 calls are away: known, and outputs of them stay here");
    let listed = super::listed(&lab, "results.git");
    let has = |owner: &str, room: &str| {
        listed.iter().any(|it| it.contains(&format!("\t{owner}/")) && it.contains(room))
    };
    assert!(has("c_third", "/away/") && !has("c_third", "/00/"), "{listed:?}");
    assert!(has("c_second", "/00/") && !has("c_second", "/away/"), "{listed:?}");
    assert!(has("t_task", "/away/") && !has("t_task", "/00/"), "{listed:?}");
    lab.unchanged(|| {
        push(&lab, LIMIT, "storage", "results.git").exit(0).shows("nothing is new to ")
    });
    // A clone is a storage all the same.
    cloned(&lab, "results.git", "clone", &[]);
    lab.run("ce", &["verify", "../clone"]).exit(0).says("0 wrong, 0 odd and harmless, 3 away");
    lab.run("ce", &["log", "../clone"]).exit(0);
    let told = evaluate(&lab, "clone").exit(0).called(vec!["mix", "third"]);
    told.says("4 calls: 2 found, 2 executed");
    lab.run("ce", &["verify", "../clone"]).exit(0).says("0 wrong, 0 odd and harmless\n");
    // What was made again is brought there, and the marks mean nothing from now on.
    let told = push(&lab, &[], "clone", "results.git").exit(0);
    told.shows("pushed 2 calls, 1 job (4.7 KiB)");
    pull(&lab, &[], "other", "results.git").exit(0).shows("pulled 4 calls, 1 job");
    assert!(room(&lab, "other", "c_third", "away").is_empty());
    evaluate(&lab, "other").exit(0).called(vec![]).says("4 calls: 4 found");
}

#[test]
fn what_is_not_pulled_is_known_and_comes_later() {
    let lab = large();
    push(&lab, &[], "storage", "results.git").exit(0);
    pull(&lab, &[&["-n"], LIMIT].concat(), "other", "results.git")
        .exit(3)
        .shows("would pull 4 calls, 1 job (1.2 KiB)")
        .shows("2 calls are away: known, and outputs of them stay there");
    let told = pull(&lab, LIMIT, "other", "results.git").exit(0);
    told.shows("pulled 4 calls, 1 job (1.2 KiB)").shows("2 calls are away");
    lab.run("ce", &["verify", "../other"]).exit(0).says("0 wrong, 0 odd and harmless, 3 away");
    pull(&lab, LIMIT, "other", "results.git").exit(0).shows("nothing is new in ");
    let mut other = lab.command("ce-run");
    let told = lab.finish(other.args(["-n", "../other", "../data/x", "../data/y"])).exit(3);
    told.says("4 calls: 2 found, 2 missing");
    let json = pull(&lab, &["--json"], "other", "results.git").exit(0);
    json.shows(r#""calls":2,"away":0,"#);
    evaluate(&lab, "other").exit(0).called(vec![]).says("4 calls: 4 found");
    lab.run("ce", &["verify", "../other"]).exit(0).says("0 wrong, 0 odd and harmless\n");
    // What is away is pushed like that.
    pull(&lab, LIMIT, "third", "results.git").exit(0);
    repository(&lab, "others.git");
    let told = push(&lab, &[], "third", "others.git").exit(0);
    told.shows("pushed 4 calls, 1 job (1.2 KiB)").shows("2 calls are away");
    push(&lab, &["--json"], "third", "others.git").exit(0).shows(r#""calls":0,"away":0,"#);
}

#[test]
fn a_literal_that_is_too_large_keeps_its_job_here() {
    let mut lab = Lab::task("Inputs: 'x'\n(both INPUT('x') FILE('data/table'))[0]")
        .computation("both", "a\nb", "c", r#"cat "$1" >"$3""#)
        .data("x", "x\n")
        .with_storage();
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    repository(&lab, "results.git");
    fs::create_dir(lab.path("storage/tinputs")).unwrap();
    fs::create_dir(lab.path("storage/data")).unwrap();
    fs::write(lab.path("storage/data/table"), "large\n".repeat(200)).unwrap();
    lab.ce_run(&[]).exit(0);
    let told = push(&lab, LIMIT, "storage", "results.git").exit(0);
    told.shows("pushed 1 call (2 B)")
        .shows("stays here: a file has 1.2 KiB, and the limit is 1.0 KiB");
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
