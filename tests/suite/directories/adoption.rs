//! Directories without a record.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{is_sound, made_by, output, records, stored, values};
use crate::lab::{Lab, settle};

/// A laboratory with a directory whose record is gone.
fn unrecorded() -> Lab {
    let lab = made_by(r#"mkdir "$2/empty"; cp "$1" "$2/f""#).commit();
    lab.ce_run(&[]).exit(0).called(vec!["make"]);
    fs::remove_dir_all(lab.path("storage/t_task")).unwrap();
    for name in lab.storage() {
        if name.starts_with("c_make/") && name.contains("/record/") {
            fs::remove_file(stored(&lab, &name)).unwrap();
        }
    }
    lab
}

/// Makes a directory, and all in it, an hour old.
fn age(dir: &Path) {
    settle(dir);
    let time = SystemTime::now() - Duration::from_secs(3600);
    for entry in walkdir::WalkDir::new(dir) {
        let entry = entry.unwrap();
        if entry.file_type().is_dir() {
            fs::File::open(entry.path()).unwrap().set_modified(time).unwrap();
        }
    }
}

#[test]
fn a_directory_that_has_settled_is_adopted() {
    let lab = unrecorded();
    let dir = stored(&lab, &values(&lab, "c_make/")[0]);
    lab.ce_run(&["-n"]).exit(3);
    age(&dir);
    lab.unchanged(|| lab.ce_run(&["-n", "--strict"]).exit(3));
    lab.ce_run(&[]).exit(0).called(vec![]).says("1 reused");
    let record = records(&lab, "c_make/").remove(0);
    assert_eq!((&record["origin"], &record["format"]), (&"adopted".into(), &2.into()));
    is_sound(&lab);
    lab.ce_run(&[]).exit(0).called(vec![]);
    lab.ce_run(&["--strict"]).exit(0).called(vec!["make"]);
    assert_eq!(output(&lab), lab.path("task").join(output(&lab)));
    is_sound(&lab);
}

/// Any entry that changed a moment ago counts, even an empty directory.
#[test]
fn a_directory_that_is_still_written_is_not_adopted() {
    for fresh in ["f", "empty", ""] {
        let lab = unrecorded();
        let dir = stored(&lab, &values(&lab, "c_make/")[0]);
        age(&dir);
        fs::File::open(dir.join(fresh)).unwrap().set_modified(SystemTime::now()).unwrap();
        lab.unchanged(|| lab.ce_run(&["-n"]).exit(3));
    }
}

#[test]
fn an_invalid_directory_is_not_adopted() {
    let ways: [fn(&Path); 4] = [
        |dir| fs::write(dir, "file").unwrap(),
        |dir| std::os::unix::fs::symlink("/etc", dir).unwrap(),
        |dir| {
            fs::create_dir(dir).unwrap();
            std::os::unix::fs::symlink("/etc", dir.join("out")).unwrap();
        },
        |dir| fs::create_dir_all(dir.join(".git")).unwrap(),
    ];
    for way in ways {
        let lab = unrecorded();
        let dir = stored(&lab, &values(&lab, "c_make/")[0]);
        fs::remove_dir_all(&dir).unwrap();
        way(&dir);
        if dir.is_dir() && !dir.is_symlink() {
            age(&dir);
        } else if dir.is_file() {
            settle(dir.parent().unwrap());
        }
        lab.ce_run(&["-n"]).exit(3);
        lab.ce_run(&[]).exit(0).called(vec!["make"]);
        assert!(dir.join("f").is_file());
        is_sound(&lab);
    }
}
