//! Results that are away, in exchange with repositories: too large results stay where they are, and results of others need
//! not be here.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::away::{chain, executed, find, room, with_z};
use super::{cloned, evaluate, pull, push, repository};
use crate::fifo::{Fifo, Never};
use crate::isolation::is_possible;
use crate::lab::Lab;
use crate::program::{Ran, Running};

/// Outputs of `first` and `second` are smaller, outputs of `third` and `mix` are larger.
const LIMIT: &[&str] = &["--limit", "1K"];

/// The chain, with an input of 200 bytes.
fn large() -> Lab {
    let lab = chain().data("x", "x".repeat(200));
    lab.ce_run(&[]).exit(0);
    lab.called();
    lab
}

#[test]
fn too_large_results_are_not_pushed_but_known_there() {
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
    told.says("4 calls: 2 reused, 2 computed");
    lab.run("ce", &["verify", "../clone"]).exit(0).says("0 wrong, 0 odd and harmless\n");
    // Outputs that were made again are brought there, and the marks mean nothing from now on.
    let told = push(&lab, &[], "clone", "results.git").exit(0);
    told.shows("pushed 2 calls, 1 job (3.1 KiB)");
    pull(&lab, &[], "other", "results.git").exit(0).shows("pulled 4 calls, 1 job");
    assert!(room(&lab, "other", "c_third", "away").is_empty());
    evaluate(&lab, "other").exit(0).called(vec![]).says("4 calls: 4 reused");
}

#[test]
fn results_over_the_limit_are_known_and_pulled_later() {
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
    told.says("4 calls: 2 reused, 2 missing");
    let json = pull(&lab, &["--json"], "other", "results.git").exit(0);
    json.shows(r#""calls":2,"away":0,"#);
    evaluate(&lab, "other").exit(0).called(vec![]).says("4 calls: 4 reused");
    lab.run("ce", &["verify", "../other"]).exit(0).says("0 wrong, 0 odd and harmless\n");
    // Calls that are away are pushed like that.
    pull(&lab, LIMIT, "third", "results.git").exit(0);
    repository(&lab, "others.git");
    let told = push(&lab, &[], "third", "others.git").exit(0);
    told.shows("pushed 4 calls, 1 job (1.2 KiB)").shows("2 calls are away");
    push(&lab, &["--json"], "third", "others.git").exit(0).shows(r#""calls":0,"away":0,"#);
}

#[test]
fn a_job_with_a_too_large_literal_is_not_pushed() {
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

/// `ce gc` with these options.
fn gc<'a>(lab: &'a Lab, options: &[&str]) -> Ran<'a> {
    lab.run("ce", &[&["gc"], options, &["../storage"]].concat())
}

const PUBLISHED: &[&str] = &["--published", "../results.git"];

#[test]
fn published_results_can_be_evicted() {
    let lab = executed();
    push(&lab, &[], "storage", "results.git").exit(0);
    with_z(&lab, &[]).exit(0);
    lab.called();
    let told = lab.unchanged(|| gc(&lab, PUBLISHED).exit(0));
    told.says("would make away 4 results: ").says("; give --delete to do so").shows("c_third/");
    // One copy is no two.
    gc(&lab, &[PUBLISHED, &["--copies", "2"]].concat()).exit(0).says("would make away 0 results");
    repository(&lab, "others.git");
    let both = [PUBLISHED, &["--published", "../others.git", "--copies", "2"]].concat();
    gc(&lab, &both).exit(2).says("has no results\n  try: push to it first: ce push");
    push(&lab, &[], "storage", "others.git").exit(0);
    gc(&lab, &both).exit(0).says("would make away 4 results");
    gc(&lab, &["--copies", "2"]).exit(2);
    gc(&lab, &[PUBLISHED, &["--delete"]].concat()).exit(0).says("made away 4 results: ");
    assert!(room(&lab, "storage", "c_third", "00").is_empty());
    assert_eq!(room(&lab, "storage", "c_mix", "00").len(), 1, "the calls of z were not pushed");
    let told = lab.run("ce", &["verify", "../storage"]).exit(0);
    told.says("0 wrong, 0 odd and harmless, 5 away");
    with_z(&lab, &[]).exit(0).called(vec![]).says("4 calls: 1 reused, 3 away");
    gc(&lab, PUBLISHED).exit(0).says("would make away 0 results");
    // It comes back from there, or by an execution.
    pull(&lab, &["-n"], "storage", "results.git").exit(3).shows("would pull 4 calls (");
    lab.ce_run(&[]).exit(0).called(vec!["first", "mix", "second", "third"]);
    gc(&lab, &[PUBLISHED, &["--delete"]].concat()).exit(0).says("made away 4 results: ");
    pull(&lab, &[], "storage", "results.git").exit(0).shows("pulled 4 calls (");
    lab.ce_run(&[]).exit(0).called(vec![]).says("4 calls: 4 reused");
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd and harmless\n");
}

#[test]
fn pinned_damaged_and_differing_results_are_not_evicted() {
    let lab = executed();
    push(&lab, &[], "storage", "results.git").exit(0);
    let third = find(&lab, "c_third", "/00/");
    lab.run("ce", &["pin", "../storage", &format!("../storage/{third}")]).exit(0);
    let told = gc(&lab, PUBLISHED).exit(0).says("would make away 1 result: ");
    told.shows("c_mix/");
    lab.run("ce", &["pin", "--remove", "../storage", &format!("../storage/{third}")]).exit(0);
    let path = lab.path("storage").join(find(&lab, "c_second", "/00/"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&path, "X\nx\nx\nx\n").unwrap();
    gc(&lab, PUBLISHED).exit(0).says("would make away 3 results: ");
}

#[test]
fn results_that_a_damaged_repository_lost_are_not_evicted() {
    let lab = executed();
    push(&lab, &[], "storage", "results.git").exit(0);
    gc(&lab, PUBLISHED).exit(0).says("would make away 4 results");
    // The program that pushed has everything in its cache.
    let id = format!("results:{}", find(&lab, "c_third", "/00/"));
    let id = lab.git("results.git", &["rev-parse", &id]);
    let object = lab.path("results.git/objects").join(&id[..2]).join(&id[2..]);
    fs::remove_file(object).unwrap();
    gc(&lab, &[PUBLISHED, &["--delete"]].concat()).exit(5).says("git fetch of ");
    assert!(!room(&lab, "storage", "c_third", "00").is_empty());
}

#[test]
fn a_collection_that_dies_at_any_operation_loses_nothing() {
    let lab = super::lab();
    lab.ce_run(&[]).exit(0);
    push(&lab, &[], "storage", "results.git").exit(0);
    let output = lab.output();
    let (mut operations, mut has_left) = (0, false);
    // The state differs each time, so all moments are hit in the end.
    for at in (1..).step_by(6) {
        let mut command = lab.command("ce");
        command.args(["gc"]).args(PUBLISHED).args(["--delete", "../storage"]);
        let ran = lab.finish(command.env("CE_FAULT", format!("{at}:KILL")));
        if !ran.stderr.contains("fault at operation") {
            break;
        }
        operations += 1;
        let told = lab.run("ce", &["verify", "../storage"]).exit(0);
        has_left |= told.stderr.contains(" away");
        told.says("0 wrong");
        lab.ce_run(&[]).exit(0);
        assert_eq!(lab.output(), output, "after {at}");
        assert!(lab.is_tidy(), "after {at}");
    }
    assert!(operations > 10 && has_left, "{operations} operations, {has_left}");
}

#[test]
fn recomputable_results_can_be_evicted() {
    if !is_possible() {
        return;
    }
    let lab = chain().isolated();
    lab.ce_run(&[]).exit(0).says("4 calls: 4 computed");
    let told = lab.unchanged(|| gc(&lab, &["--recomputable"]).exit(0));
    told.says("would make away 4 results: ").says(" of computing; give --delete");
    gc(&lab, &["--recomputable", "--delete"]).exit(0).says("made away 4 results: ");
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd and harmless, 5 away");
    lab.ce_run(&["-n"]).exit(3).says("4 calls: 4 missing").says("are away, and needed, about ");
    lab.ce_run(&[]).exit(0).says("4 calls: 4 computed");
    // Without the input, the first call cannot be made again, and stays.
    for file in room(&lab, "storage", "tinputs", "record") {
        fs::remove_file(file).unwrap();
    }
    let told = gc(&lab, &["--recomputable"]).exit(0).says("would make away 2 results: ");
    told.shows("c_second/").shows("c_third/");
    // Another commit of the same computations finds results that are away, too.
    let lab = lab.file("README", "more\n").commit_again();
    gc(&lab, &["--recomputable", "--delete"]).exit(0);
    lab.ce_run(&["-n"]).exit(0).says("2 away");
    let lab = lab.computation("mix", "a\nb", "c", r#"cat "$2" "$1" >"$3""#).commit_again();
    lab.ce_run(&["-n"]).exit(3).says("4 calls: 1 taken over, 3 missing");
    lab.ce_run(&[]).exit(0).says("4 calls: 1 taken over, 3 computed");
    assert_eq!(lab.output(), "y\n".to_owned() + &"x\n".repeat(8));
}

#[test]
fn outputs_to_evict_are_chosen_by_computation_and_size() {
    if !is_possible() {
        return;
    }
    let lab = chain().isolated();
    lab.ce_run(&[]).exit(0).says("4 calls: 4 computed");
    let list = |options: &[&str]| {
        let ran = gc(&lab, &[&["--recomputable"], options].concat()).exit(0);
        let lines = ran.lines().into_iter().filter_map(|line| line.rsplit_once("/storage/"));
        lines.map(|(_, name)| name.split('/').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(list(&["--only=second"]), ["c_second"]);
    assert_eq!(list(&["--only=second", "--only=third"]), ["c_second", "c_third"]);
    assert_eq!(list(&["--larger=1K"]), [""; 0]);
    let told = gc(&lab, &["--recomputable", "--only=secnd"]).exit(0);
    told.says("warning: no call of secnd is recorded\n  try: did you mean second?");
    gc(&lab, &["--only=second"]).exit(2).says("--recomputable");
    gc(&lab, &["--recomputable", "--only=second", "--delete"]).exit(0).says("made away 1 result");
    lab.ce_run(&["-n"]).exit(0).says("1 away");
}

#[test]
fn links_of_results_that_were_taken_over_count_once() {
    if !is_possible() {
        return;
    }
    let lab = chain().isolated();
    lab.ce_run(&[]).exit(0);
    let all = ["--no-keep", "--older=0s"];
    let sum = |lab: &Lab| {
        let ran = gc(lab, &all).exit(0);
        let last = ran.stderr.lines().last().unwrap();
        let (_, sum) = last.split_once(": ").unwrap();
        sum.split_once(" results: ").unwrap().1.split(',').next().unwrap().to_owned()
    };
    let once = sum(&lab);
    let lab = lab.file("README", "").commit_again();
    lab.ce_run(&[]).exit(0).says("4 calls: 4 taken over");
    assert_eq!(sum(&lab), once);
}

/// A chain of calls that are isolated: `first`, `second` and `third`.
fn chain_with(file: &str, text: &str) -> Lab {
    let lab = chain().file(file, text).commit_again().isolated();
    lab.ce_run(&[]).exit(0).says("4 calls: 4 computed");
    lab
}

/// Makes away what can be made again. Returns the owners of those results.
fn made_away(lab: &Lab, options: &[&str]) -> Vec<String> {
    let told = gc(lab, &[&["--recomputable"], options].concat()).exit(0);
    let lines = told.lines().into_iter().filter_map(|it| it.rsplit_once("../storage/c_"));
    lines.map(|(_, name)| name.split('/').next().unwrap().to_owned()).collect()
}

#[test]
fn nondeterministic_results_are_never_evicted() {
    if !is_possible() {
        return;
    }
    let lab = chain_with("computations/second/nondeterministic", "It measures.\n");
    assert_eq!(made_away(&lab, &["--delete"]), ["first", "mix", "third"]);
    assert_eq!(room(&lab, "storage", "c_second", "00").len(), 1);
    // They come back, from what stayed.
    lab.ce_run(&[]).exit(0).says("4 calls: 1 reused, 1 away, 2 computed");
    // An output made from outputs that are gone, and that nothing makes again, stays; and one made from that need not.
    super::away::away(&lab, "storage", "second");
    assert_eq!(made_away(&lab, &["--delete"]), ["mix"]);
    assert_eq!(room(&lab, "storage", "c_third", "00").len(), 1);
    lab.ce_run(&[]).exit(0).says("4 calls: 1 reused, 2 away, 1 computed");
}

#[test]
fn results_of_computations_with_outside_access_are_not_evicted() {
    if !is_possible() {
        return;
    }
    for line in ["network", "read /etc/hostname", "env HOSTNAME", "suspend"] {
        let lab = chain_with("computations/second/access", &format!("{line}\n"));
        assert_eq!(made_away(&lab, &[]), ["first", "mix", "third"], "{line}");
    }
}

#[test]
fn results_whose_commit_is_gone_are_not_evicted() {
    if !is_possible() {
        return;
    }
    let lab = chain().isolated();
    lab.ce_run(&[]).exit(0);
    assert_eq!(made_away(&lab, &[]).len(), 4);
    // Its commit is gone.
    fs::rename(lab.path("task/.git"), lab.path("git")).unwrap();
    let lab = lab.file("README", "other\n").commit();
    assert_eq!(made_away(&lab, &[]), [""; 0]);
    fs::remove_dir_all(lab.path("task/.git")).unwrap();
    assert_eq!(made_away(&lab, &[]), [""; 0], "there is no repository");
    fs::rename(lab.path("git"), lab.path("task/.git")).unwrap();
    assert_eq!(made_away(&lab, &[]).len(), 4);
    fs::remove_dir_all(lab.path("storage/repositories")).unwrap();
    assert_eq!(made_away(&lab, &[]), [""; 0], "none is recorded");
}

#[test]
fn results_that_a_run_reads_are_not_evicted() {
    let wait = r#"[ ! -p "$LAB_LOG.meet" ] || { exec 3>"$LAB_LOG.meet"; echo here >&3; cat "$LAB_LOG.never"; }
cat "$1" "$2" >"$3""#;
    let mut lab = Lab::task("Inputs: 'x', 'y'\n(mix (first INPUT('x'))[0] INPUT('y'))[0]")
        .computation("first", "a", "b", r#"cat "$1" "$1" >"$2""#)
        .computation("mix", "a\nb", "c", wait)
        .data("x", "x\n")
        .data("y", "y\n")
        .data("z", "z\n");
    lab.inputs = vec!["x".to_owned(), "y".to_owned()];
    let lab = lab.isolated().commit();
    repository(&lab, "results.git");
    lab.ce_run(&[]).exit(0);
    push(&lab, &[], "storage", "results.git").exit(0);
    let fifo = Fifo::new(&lab.path("called.meet"));
    let never = Never::new(lab.path("called.never"));
    let mut command = lab.command("ce-run");
    let running =
        Running::start(command.args(["--no-isolate", "../storage", "../data/x", "../data/z"]));
    assert_eq!(fifo.line(), "here");
    // Results that would be made away are listed without those that would stay.
    let recomputable: &[&str] = &["--recomputable"];
    let rules = if is_possible() { &[PUBLISHED, recomputable][..] } else { &[PUBLISHED] };
    for rule in rules {
        for options in [&[][..], &["--delete"]] {
            let told = gc(&lab, &[rule, options].concat()).exit(0);
            let told = told.says("stays: it is in use").says(" away 0 results: ");
            assert_eq!(told.stdout, "", "{rule:?} {options:?}");
        }
    }
    assert!(room(&lab, "storage", "c_first", "away").is_empty(), "it is not marked");
    never.let_go();
    Ran::new(&lab, running.output()).exit(0).says("2 calls: 1 reused, 1 computed");
    fs::remove_file(lab.path("called.meet")).unwrap();
    gc(&lab, &[PUBLISHED, &["--delete"]].concat()).exit(0).says("made away 2 results");
}
