//! A storage at its limits: one clear error, nothing half published, and everything that can be finished is.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use crate::lab::Lab;
use crate::mount;
use crate::program::Ran;

/// Ten calls that need nothing of each other, and one that needs them all.
fn lab() -> Lab {
    let names: Vec<String> = (0..10).map(|number| format!("part{number}")).collect();
    let parts: String = names.iter().map(|name| format!(" ({name} INPUT('x'))[0]")).collect();
    let inputs: String = (0..10).map(|number| format!("i{number} ")).collect();
    let lab = Lab::task(&format!("Inputs: 'x'\n(all{parts})[0]"));
    let lab = lab.computation("all", &inputs, "all", r#"for last; do :; done; cat "$1" >"$last""#);
    let script = r#"[ -z "${LAB_ACT-}" ] || eval "$LAB_ACT"; echo NAME | cat "$1" - >"$2""#;
    let part =
        |lab: Lab, name: &String| lab.computation(name, "a", "b", &script.replace("NAME", name));
    names.iter().fold(lab, part).commit()
}

/// The storage failed for some of the calls: this was reported once, with this cause and advice, the
/// other calls are there, and the next run makes what is missing and nothing else.
#[track_caller]
fn goes_on(ran: Ran<'_>, cause: &str, advice: &str) {
    let lab = ran.lab;
    let ran =
        ran.exit(5).says(&format!("\n  because: {cause}")).says(&format!("\n  try: {advice}"));
    assert_eq!(ran.stderr.matches("because:").count(), 1, "told once\n{}", ran.stderr);
    assert_eq!(ran.stderr.matches("for the same reason:").count(), 1, "\n{}", ran.stderr);
    let executed = counted(&ran, "computed");
    assert!((1..10).contains(&executed), "some are finished\n{}", ran.stderr);
    assert!(lab.is_tidy(), "{:?}", lab.storage());
    let verified = lab.run("ce", &["verify", "../storage"]).exit(0);
    assert_eq!(verified.stdout, "", "nothing is half published");
    let again = lab.ce_run(&["--no-sync"]).exit(0);
    assert_eq!((counted(&again, "reused"), counted(&again, "computed")), (executed, 11 - executed));
    assert_eq!(lab.output(), "17\npart0\n");
}

/// While calls run, one of them does something to the storage, which has vanished then: this is
/// told, and nothing is made in its place.
#[track_caller]
fn vanishes<'a>(lab: &'a Lab, act: &str, options: &[&str]) -> Ran<'a> {
    let ran = lab.finish(&mut vanishing(lab, act, options));
    has_vanished(ran)
}

/// A run whose third call does something.
fn vanishing(lab: &Lab, act: &str, options: &[&str]) -> Command {
    let mut command = lab.evaluation(options);
    let act = format!("case $0 in */part3/exec) {act};; esac");
    command.env("LAB_ACT", act).env("LAB", lab.path(""));
    command
}

#[track_caller]
fn has_vanished(ran: Ran<'_>) -> Ran<'_> {
    let ran = ran.exit(5).says(" failed: the storage ../storage has vanished\n");
    let ran = ran.says("\n  try: check whether it was moved, removed or unmounted");
    let ran = ran.says(" failed for the same reason: the storage ../storage has vanished\n");
    assert_eq!(ran.stderr.matches("has vanished\n").count(), 2, "{}", ran.stderr);
    assert_eq!(counted(&ran, "computed") + counted(&ran, "failed"), 10, "{}", ran.stderr);
    ran
}

/// Returns the number of calls that ended like this.
fn counted(ran: &Ran<'_>, word: &str) -> usize {
    let tally = ran.stderr.lines().last().unwrap();
    let parts = tally.split([':', ',']).filter_map(|part| part.trim().strip_suffix(word));
    parts.map(|count| count.trim().parse::<usize>().unwrap()).sum()
}

#[test]
fn no_room_and_no_inodes_are_reported_once_and_what_fits_is_kept() {
    for limit in ["nr_blocks=14", "nr_inodes=110"] {
        let lab = lab();
        let tmpfs = format!("mount -t tmpfs -o {limit} tmpfs ../storage");
        if let Some(ran) = mount::with(&lab, &tmpfs, &lab.evaluation(&["-j1", "--no-sync"])) {
            goes_on(ran, "No space left on device", "make room");
        }
    }
}

#[test]
fn a_read_only_storage_serves_its_results_and_reports_missing_ones() {
    let lab = lab();
    lab.ce_run(&["--no-sync"]).exit(0);
    let read_only = "mount --bind ../storage ../storage && \
                     mount -o remount,bind,ro ../storage ../storage";
    let run = |options: &[&str]| mount::with(&lab, read_only, &lab.evaluation(options));
    let Some(ran) = run(&[]) else { return };
    ran.exit(0).says("job output 00: ../storage/t_task/").says("11 calls: 11 reused");
    run(&["-n"]).unwrap().exit(0);
    let storage = lab.path("storage");
    fs::remove_dir_all(storage.join("t_task")).unwrap();
    run(&[]).unwrap().exit(0).says("the job's outputs were not stored: the storage is read-only");
    for call in ["c_part3", "c_part4", "c_all"] {
        fs::remove_dir_all(storage.join(call)).unwrap();
    }
    let ran = run(&[]).unwrap().exit(5).says("\n  because: Read-only file system");
    let ran = ran.says("\n  try: mount it for writing, or use a storage of your own\n");
    let ran = ran.says("1 more call failed for the same reason: Read-only file system");
    ran.says("11 calls: 8 reused, 2 failed, 1 blocked\n");
    run(&["-n"]).unwrap().exit(3).says("11 calls: 8 reused, 3 missing\n");
    lab.ce_run(&["--no-sync"]).exit(0).says("8 reused, 3 computed");
}

#[test]
fn a_storage_that_is_moved_away_has_vanished_and_can_be_moved_back() {
    for options in [&["-j2"][..], &["-j2", "--no-sync"], &["-j1"]] {
        let lab = lab();
        vanishes(&lab, "mv \"$LAB/storage\" \"$LAB/moved\"", options);
        assert!(!lab.path("storage").exists(), "nothing is made in its place");
        fs::rename(lab.path("moved"), lab.path("storage")).unwrap();
        lab.ce_run(&[]).exit(0);
        assert_eq!(lab.output(), "17\npart0\n");
        assert!(lab.is_tidy());
    }
    // One that was removed is not made again by the run that used it.
    let lab = lab();
    vanishes(&lab, "mv \"$LAB/storage\" \"$LAB/moved\"; rm -r \"$LAB/moved\"", &["-j2"]);
    assert!(!lab.path("storage").exists(), "nothing is made in its place");
}

#[test]
fn nothing_is_written_to_a_directory_that_took_the_place_of_the_storage() {
    let lab = lab();
    let act = "mv \"$LAB/storage\" \"$LAB/moved\"; mkdir \"$LAB/storage\"";
    vanishes(&lab, act, &["-j1", "--no-sync"]);
    assert_eq!(lab.storage(), Vec::<String>::new());
    assert_eq!(fs::read_dir(lab.path("storage")).unwrap().count(), 0);
}

#[test]
fn nothing_is_written_where_a_storage_was_mounted() {
    let lab = lab();
    let tmpfs = "mount -t tmpfs tmpfs ../storage";
    let command = vanishing(&lab, "umount -l \"$LAB/storage\"", &["-j1", "--no-sync"]);
    if let Some(ran) = mount::with(&lab, tmpfs, &command) {
        has_vanished(ran);
        assert_eq!(fs::read_dir(lab.path("storage")).unwrap().count(), 0);
    }
}

/// Gives everybody these rights to a file or directory of the laboratory, and to all in it.
fn mode(lab: &Lab, mode: &str, name: &str) {
    let mut chmod = Command::new("chmod");
    assert!(chmod.args(["-R", mode]).arg(lab.path(name)).status().unwrap().success());
}

#[test]
fn a_read_only_part_of_the_storage_does_not_block_other_calls() {
    let lab = lab();
    let Some(user) = lab.plain_user() else { return };
    for call in ["c_part3", "c_part4"] {
        fs::create_dir_all(lab.path("storage").join(call)).unwrap();
    }
    mode(&lab, "a+rwX", "");
    ["c_part3", "c_part4"].iter().for_each(|call| mode(&lab, "a-w", &format!("storage/{call}")));
    let ran = lab.finish(lab.evaluation(&["--no-sync"]).uid(user));
    mode(&lab, "a+rwX", "");
    assert_eq!(counted(&ran, "computed"), 8, "{}", ran.stderr);
    goes_on(ran, "Permission denied", "check who may write there, or use a storage of your own\n");
}

#[test]
fn an_unreadable_record_does_not_block_other_calls() {
    let lab = lab();
    let Some(user) = lab.plain_user() else { return };
    lab.ce_run(&["--no-sync"]).exit(0);
    mode(&lab, "a+rwX", "");
    let names = lab.storage();
    let records = names.iter().filter(|name| {
        name.contains("/record/")
            && ["c_part3/", "c_part4/"].iter().any(|call| name.starts_with(call))
    });
    records.for_each(|name| mode(&lab, "a-rw", &format!("storage/{name}")));
    for options in [&["--no-sync"][..], &["-n"]] {
        let ran = lab.finish(lab.evaluation(options).uid(user)).exit(5);
        let ran = ran.says(" failed: cannot read LAB/").says("Permission denied");
        let ran = ran.says("\n  try: check who may read it").says("1 more call failed");
        assert_eq!((counted(&ran, "reused"), counted(&ran, "failed")), (8, 2), "{}", ran.stderr);
    }
}

/// A storage whose path has this number of bytes.
fn deep(lab: &Lab, length: usize) -> PathBuf {
    let mut path = lab.path("deep");
    while let left @ 1.. = length.saturating_sub(path.as_os_str().len() + 1) {
        // No component is empty.
        path.push("d".repeat(if left > 200 { 100 } else { left }));
    }
    assert!(path.as_os_str().len() <= length);
    path
}

/// Runs with a storage whose path has this number of bytes.
fn run_deep(lab: &Lab, length: usize) -> Ran<'_> {
    let storage = deep(lab, length);
    // One whose own path is too long is not made here, either.
    drop(fs::create_dir_all(storage.parent().unwrap()));
    lab.finish(lab.command("ce-run").arg("--no-sync").arg(storage).arg("../data/x"))
}

#[test]
fn a_storage_whose_path_is_too_long_is_reported_and_shorter_ones_are_used() {
    let lab = lab();
    // Files below a storage are reached from there, however long its own path is.
    run_deep(&lab, 3950).exit(0).says("11 calls: 11 computed\n");
    run_deep(&lab, 3950).exit(0).says("11 calls: 11 reused\n");
    for length in [4080, 5000] {
        let ran = run_deep(&lab, length).exit(5);
        ran.says("\n  because: File name too long").says("try: give the storage a shorter");
    }
}

#[test]
fn a_call_of_a_hundred_inputs_fits_a_deep_storage() {
    let inputs: String = (0..100).map(|number| format!("i{number} ")).collect();
    let task = format!("Inputs: 'x'\n(many{})[0]", " INPUT('x')".repeat(100));
    let script = r#"shift 99; cat "$1" >"$2""#;
    let lab = Lab::task(&task).computation("many", &inputs, "one", script).commit();
    run_deep(&lab, 2500).exit(0).says("1 call: 1 computed\n");
    run_deep(&lab, 2500).exit(0).says("1 call: 1 reused\n");
    // Paths below the storage count from there.
    run_deep(&lab, 3500).exit(0).says("1 call: 1 computed\n");
}
