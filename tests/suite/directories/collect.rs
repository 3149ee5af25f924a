//! Collections that die, and collections while runs go on, with directories and links to them.

use std::fs;

use compeval::storage::{Durability, Storage, Unrecorded};

use super::{is_sound, stored, values};
use crate::faults::{is_taken, stride};
use crate::fifo::{Fifo, Never};
use crate::isolation;
use crate::lab::Lab;
use crate::program::{Ran, Running};

const ALL: [&str; 5] = ["gc", "--delete", "--older=0s", "--no-keep", "../storage"];

/// A laboratory with a task that was evaluated at two commits. `None` where nothing can be isolated.
fn taken_over() -> Option<Lab> {
    if !isolation::is_possible() {
        return None;
    }
    let lab = Lab::task("Inputs: 'x'\n(read (make INPUT('x'))[0])[0]")
        .computation("make", "a", "tree/", r#"cp -r "$1/." "$2""#)
        .computation("read", "tree", "all/", r#"cp -r "$1" "$2/in""#)
        .isolated()
        .commit();
    fs::remove_file(lab.path("data/x")).unwrap();
    fs::create_dir_all(lab.path("data/x/d/empty")).unwrap();
    fs::write(lab.path("data/x/d/f"), "f\n").unwrap();
    lab.ce_run(&[]).exit(0).says("2 computed");
    let lab = lab.file("README", "").commit_again();
    lab.ce_run(&[]).exit(0).says("2 taken over");
    Some(lab)
}

#[test]
#[cfg(debug_assertions)]
fn a_collection_that_dies_or_fails_harms_nothing() {
    let Some(lab) = taken_over() else { return };
    lab.copy("storage", "full");
    let faults = [":KILL", "+:EIO", ":EACCES"];
    for (case, at) in (1..).step_by(stride(5)).enumerate() {
        lab.copy("full", "storage");
        let mut command = lab.command("ce");
        let fault = format!("{at}{}", faults[case % faults.len()]);
        let ran = lab.finish(command.args(ALL).env("CE_FAULT", &fault));
        if !ran.stderr.contains("fault at operation") {
            assert!(at > 100, "{at} operations");
            return;
        }
        let ran = lab.run("ce", &["verify", "../storage"]);
        assert_eq!(ran.status.code(), Some(0), "{fault} {} {}", ran.stdout, ran.stderr);
        // Two ways on: a run, and another collection.
        let way = case / faults.len();
        if is_taken(way, 0, 2) {
            lab.copy("storage", "left");
            lab.ce_run(&[]).exit(0);
            lab.ce_run(&[]).exit(0).says("2 reused");
            // A result that had lost its record may still be without one.
            lab.run("ce", &["verify", "../storage"]).exit(0);
            lab.copy("left", "storage");
        }
        if !is_taken(way, 1, 2) {
            continue;
        }
        lab.run("ce", &ALL).exit(0);
        let mut left = values(&lab, "");
        // A task input without a record is nobody's to take away.
        left.retain(|name| !name.starts_with("tinputs/"));
        assert_eq!(left, [""; 0], "{fault}");
        assert!(lab.is_tidy());
    }
}

/// A run has found a result that is a link, and reads it: the maker stays, too.
#[test]
fn a_link_that_a_run_reads_stays_with_its_directory() {
    let Some(lab) = taken_over() else { return };
    let meet = lab.path("meet");
    let access = format!("write {}\nwrite {}\n", meet.display(), lab.path("never").display());
    let script = format!(
        r#"exec 3>{}; echo here >&3; cat {}; cp -r "$1" "$2/in""#,
        meet.display(),
        lab.path("never").display()
    );
    let lab = lab.computation("read", "tree", "all/", &script);
    let lab = lab.file("computations/read/access", access).commit_again();
    let fifo = Fifo::new(&meet);
    let never = Never::new(lab.path("never"));
    let running = Running::start(&mut lab.evaluation(&[]));
    assert_eq!(fifo.line(), "here");
    lab.run("ce", &ALL).exit(0).says("stays: it is in use");
    never.let_go();
    Ran::new(&lab, running.output()).exit(0).says("1 taken over, 1 computed");
    let made = values(&lab, "c_make/");
    assert!(made.iter().any(|name| stored(&lab, name).is_symlink()), "{made:?}");
    is_sound(&lab);
    lab.ce_run(&["-q"]).exit(0);
}

/// A workflow names the output of a job, which is a link, and reads it meanwhile.
#[test]
fn the_directory_behind_a_literal_stays() {
    let Some(lab) = taken_over() else { return };
    for prefix in ["t_task/", "c_make/"] {
        let link = values(&lab, prefix).into_iter().find(|it| stored(&lab, it).is_symlink());
        let link = link.unwrap();
        lab.run("ce", &["pin", "../storage", &link]).exit(0);
        lab.run("ce", &ALL).exit(0);
        assert!(stored(&lab, &link).is_dir(), "{link}");
        is_sound(&lab);
        lab.run("ce", &["pin", "--remove", "../storage", &link]).exit(0);
        lab.ce_run(&[]).exit(0);
    }
}

/// The quick look at a job, at another commit.
#[test]
fn a_job_at_a_commit_notices_changed_directories() {
    let lab = super::made_by(r#"cp "$1" "$2/f""#).commit();
    lab.ce_run(&[]).exit(0).called(vec!["make"]);
    let lab = lab.file("computations/make/exec", "#!/bin/sh\nexit 1\n").commit_again();
    let first = ["-q", "--at=HEAD^"];
    lab.ce_run(&first).exit(0).called(vec![]);
    let dir = stored(&lab, &values(&lab, "c_make/")[0]);
    super::write_over(&dir.join("f"), "damaged\n");
    lab.ce_run(&["-n", "-q", "--at=HEAD^"]).exit(3);
    lab.ce_run(&first).exit(0).called(vec!["make"]);
    assert_eq!(fs::read_to_string(dir.join("f")).unwrap(), "17\n");
    lab.ce_run(&first).exit(0).called(vec![]);
    is_sound(&lab);
}

/// Kills a collection of everything at many operations, and looks at what each has left: at several there must be something of
/// the kind for which the function returns true.
#[cfg(debug_assertions)]
fn at_killed_collections(lab: &Lab, from: usize, mut is_of_kind: impl FnMut(usize) -> bool) {
    lab.copy("storage", "full");
    let (mut several, step) = (0, stride(6));
    for at in (from.min(step)..).step_by(step) {
        lab.copy("full", "storage");
        let mut command = lab.command("ce");
        let ran = lab.finish(command.args(ALL).env("CE_FAULT", format!("{at}:KILL")));
        if !ran.stderr.contains("fault at operation") {
            assert!(several > 2, "{several} of {at} operations");
            return;
        }
        several += usize::from(is_of_kind(at));
    }
}

/// A collection was killed after it had removed the record of a link, and a run uses that.
#[test]
#[cfg(debug_assertions)]
fn the_directory_behind_a_half_collected_link_stays() {
    let Some(lab) = taken_over() else { return };
    at_killed_collections(&lab, 1, |at| {
        let made = values(&lab, "c_make/");
        let Some(link) = made.into_iter().find(|name| stored(&lab, name).is_symlink()) else {
            return false;
        };
        let (directory, inputs) = link.split_once("/00/").unwrap();
        let record = lab.path(&format!("storage/{directory}/record/{inputs}.json"));
        let is_half = !record.exists();
        let path = lab.path("storage");
        let run = Storage::open(&path, Unrecorded::Adopt, Durability::Unsynced).unwrap();
        run.gc_roots().announce([link.clone()]).unwrap();
        lab.run("ce", &ALL).exit(0);
        drop(run);
        assert!(stored(&lab, &link).is_dir(), "a kill at {at}");
        lab.run("ce", &["verify", "../storage"]).exit(0);
        is_half
    });
}

/// A collection was killed when it had removed the records of a directory and of a link to it. A run brings the link back, and the
/// next collection keeps both: the link, since it is reached, and the directory, since the link leads there.
#[test]
#[cfg(debug_assertions)]
fn the_directory_behind_a_kept_link_is_brought_back_with_it() {
    let Some(lab) = taken_over() else { return };
    at_killed_collections(&lab, 4, |at| {
        let has_record = |name: &String| name.starts_with("c_make/") && name.contains("/record/");
        if values(&lab, "c_make/").len() < 2 || lab.storage().iter().any(has_record) {
            return false;
        }
        lab.ce_run(&[]).exit(0);
        lab.run("ce", &["gc", "--delete", "--older=0s", "--keep=.", "../storage"]).exit(0);
        let verified = lab.run("ce", &["verify", "../storage"]);
        let told = format!("a kill at {at}: {}{}", verified.stdout, verified.stderr);
        assert_eq!(verified.status.code(), Some(0), "{told}");
        lab.ce_run(&["-n"]).exit(0).says("2 reused");
        true
    });
}
