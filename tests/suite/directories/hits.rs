//! Changes of a published directory that are noticed, and others that are not.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::{entries, is_sound, made_by, output, stored, values, within, write_over};
use crate::lab::Lab;

const SCRIPT: &str =
    r#"mkdir -p "$2/d/e"; echo one >"$2/one"; echo two >"$2/d/two"; ln -s one "$2/l""#;

/// A laboratory in which a directory was published.
fn evaluated() -> Lab {
    let lab = made_by(SCRIPT).commit();
    lab.ce_run(&[]).exit(0).called(vec!["make"]);
    lab
}

/// A change of the directory is noticed by a run with these options, and the call executed again.
#[track_caller]
fn is_noticed(what: &str, options: &[&str], change: impl Fn(&Path)) {
    let lab = evaluated();
    let (dir, before) = (output(&lab), entries(&output(&lab)));
    within(&dir, &change);
    lab.unchanged(|| lab.ce_run(&["-n"]).exit(3));
    lab.ce_run(options).exit(0).called(vec!["make"]);
    assert_eq!(entries(&dir), before, "{what} {options:?}");
    let kept = dir.parent().unwrap().parent().unwrap().join("aside");
    assert!(kept.exists(), "{what}: what was there is kept");
    is_sound(&lab);
}

#[test]
fn every_change_of_a_directory_is_noticed() {
    is_noticed("contents", &[], |dir| write_over(&dir.join("one"), "eno\n"));
    is_noticed("size", &["-q"], |dir| write_over(&dir.join("one"), "one more\n"));
    is_noticed("inner contents", &[], |dir| write_over(&dir.join("d/two"), "owt\n"));
    is_noticed("added", &["-q"], |dir| fs::write(dir.join("added"), "").unwrap());
    is_noticed("added directory", &[], |dir| fs::create_dir(dir.join("added")).unwrap());
    is_noticed("removed", &["-q"], |dir| fs::remove_file(dir.join("one")).unwrap());
    is_noticed("removed directory", &[], |dir| {
        within(&dir.join("d"), |inner| fs::remove_dir(inner.join("e")).unwrap());
    });
    is_noticed("renamed", &["-q"], |dir| fs::rename(dir.join("one"), dir.join("eno")).unwrap());
    is_noticed("executable", &[], |dir| {
        fs::set_permissions(dir.join("one"), fs::Permissions::from_mode(0o555)).unwrap();
    });
    is_noticed("link", &["-q"], |dir| {
        fs::remove_file(dir.join("l")).unwrap();
        symlink("d", dir.join("l")).unwrap();
    });
    is_noticed("link instead of file", &[], |dir| {
        fs::remove_file(dir.join("one")).unwrap();
        symlink("d/two", dir.join("one")).unwrap();
    });
    is_noticed("FIFO", &["-q"], |dir| {
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.join("p"), rustix::fs::Mode::RUSR).unwrap();
    });
    is_noticed("link out", &[], |dir| symlink("/etc", dir.join("out")).unwrap());
    is_noticed("repository", &["-q"], |dir| fs::create_dir(dir.join(".git")).unwrap());
}

/// As for files: an entry with the recorded size and time is not read.
#[test]
fn a_file_with_its_recorded_size_and_time_is_found_by_verification_only() {
    let lab = evaluated();
    let file = output(&lab).join("d/two");
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    write_over(&file, "owt\n");
    fs::File::open(&file).unwrap().set_modified(time).unwrap();
    lab.ce_run(&[]).exit(0).called(vec![]);
    let ran = lab.run("ce", &["verify", "../storage"]);
    ran.exit(5).shows("it is not the recorded directory: d/two was changed");
}

#[test]
fn changed_times_and_modes_are_checked_without_an_execution() {
    let lab = evaluated();
    let dir = output(&lab);
    for entry in walkdir::WalkDir::new(&dir) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            let time = SystemTime::now() - Duration::from_secs(5000);
            fs::File::open(entry.path()).unwrap().set_modified(time).unwrap();
        }
    }
    lab.ce_run(&[]).exit(0).called(vec![]).says("1 reused");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(dir.join("one"), fs::Permissions::from_mode(0o644)).unwrap();
    lab.ce_run(&["-q"]).exit(0).called(vec![]);
    lab.ce_run(&[]).exit(0).called(vec![]).says("1 reused");
    // Another run had done the rest, or nobody: the directory itself is writable until it is sealed.
    assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o7777, 0o555);
    is_sound(&lab);
}

#[test]
fn a_copy_of_the_storage_has_all_results() {
    for option in ["-a", "-r"] {
        let lab = evaluated();
        let mut copy = Command::new("cp");
        copy.arg(option).arg(lab.path("storage")).arg(lab.path("copy"));
        assert!(copy.status().unwrap().success());
        fs::rename(lab.path("storage"), lab.path("elsewhere")).unwrap();
        fs::rename(lab.path("copy"), lab.path("storage")).unwrap();
        lab.ce_run(&["-q"]).exit(0).called(vec![]);
        lab.ce_run(&[]).exit(0).called(vec![]).says("1 reused");
        let job = values(&lab, "t_").remove(0);
        assert!(stored(&lab, &job).is_symlink());
        assert_eq!(entries(&stored(&lab, &format!("{job}/"))), entries(&output(&lab)));
        is_sound(&lab);
    }
}

#[test]
fn an_output_that_was_removed_is_made_again() {
    let lab = evaluated();
    let dir = output(&lab);
    fs::remove_dir_all(&dir).unwrap();
    lab.ce_run(&["-q"]).exit(0).called(vec!["make"]);
    assert!(dir.is_dir());
    // A job's link that is gone is made again.
    let job = stored(&lab, &values(&lab, "t_")[0]);
    fs::remove_file(&job).unwrap();
    lab.ce_run(&[]).exit(0).called(vec![]);
    assert!(job.join("one").exists());
    is_sound(&lab);
}

/// An entry that stands in its place goes to quarantine, and is not followed.
#[test]
fn a_foreign_entry_in_the_place_of_a_directory_is_replaced() {
    let ways: [fn(&Path); 4] = [
        |place| fs::write(place, "file").unwrap(),
        |place| symlink("/etc", place).unwrap(),
        |place| symlink("../../../..", place).unwrap(),
        |place| rustix::fs::mkfifoat(rustix::fs::CWD, place, rustix::fs::Mode::RUSR).unwrap(),
    ];
    for way in ways {
        for of_job in [false, true] {
            let lab = evaluated();
            let place = match of_job {
                false => output(&lab),
                true => stored(&lab, &values(&lab, "t_")[0]),
            };
            if of_job {
                fs::remove_file(&place).unwrap();
            } else {
                fs::remove_dir_all(&place).unwrap();
            }
            way(&place);
            lab.run("ce", &["verify", "../storage"]).exit(5);
            let called = if of_job { vec![] } else { vec!["make"] };
            lab.ce_run(&[]).exit(0).called(called);
            assert!(place.join("one").exists());
            is_sound(&lab);
        }
    }
}

/// A file of a call stands where a directory does: it is moved out of the way.
#[test]
fn a_directory_in_the_place_of_a_file_is_replaced() {
    let lab = Lab::task("Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))[0]").commit();
    lab.ce_run(&[]).exit(0).called(vec!["add"]);
    for prefix in ["c_", "t_", "tinputs/"] {
        let place = stored(&lab, &values(&lab, prefix)[0]);
        fs::remove_file(&place).unwrap();
        fs::create_dir(&place).unwrap();
        fs::write(place.join("f"), "f").unwrap();
        lab.ce_run(&[]).exit(0);
        assert!(place.is_file(), "{prefix}");
        lab.called();
        is_sound(&lab);
    }
}
