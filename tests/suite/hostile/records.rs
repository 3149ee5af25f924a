//! Records from elsewhere, and what clones and backups change.

use std::fs;

use serde_json::Value;

use super::version;
use crate::lab::Lab;

const TASK: &str = "Inputs: 'x', 'y'\n(mul INPUT('x') INPUT('y'))[0]";
const NAME: &str = "ad48103e4fc7_5d9474c0309b";

fn evaluated() -> (Lab, String) {
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["mul"]);
    let version = version(&lab, "c_mul");
    (lab, version)
}

#[test]
fn a_foreign_stage_is_left_alone() {
    let (lab, version) = evaluated();
    let record = lab.path(&format!("storage/c_mul/{version}/record/{NAME}.json"));
    let output = lab.path(&format!("storage/c_mul/{version}/00/{NAME}"));
    let original = fs::read_to_string(&record).unwrap();
    for stage in ["data/raw", "tinputs/raw", "tmp/raw", "tmp/x/y/raw", "tmp/a-b-c-1-e/0/../../raw"]
    {
        let mut value: Value = serde_json::from_str(&original).unwrap();
        value["origin"]["executed"]["stage"] = stage.into();
        fs::write(&record, value.to_string()).unwrap();
        let raw = lab.path("storage").join(format!("{stage}.00"));
        fs::create_dir_all(raw.parent().unwrap()).unwrap();
        fs::write(&raw, "85\n").unwrap();
        fs::remove_file(&output).unwrap();
        lab.ce_run(&["--no-sync"]).exit(0).called(vec!["mul"]);
        assert_eq!(fs::read_to_string(&raw).unwrap(), "85\n", "{stage}");
    }
}

#[test]
fn a_staged_file_is_published_only_if_it_is_the_recorded_one() {
    let (lab, version) = evaluated();
    let record = lab.path(&format!("storage/c_mul/{version}/record/{NAME}.json"));
    let value: Value = serde_json::from_str(&fs::read_to_string(record).unwrap()).unwrap();
    let stage = value["origin"]["executed"]["stage"].as_str().unwrap().to_owned();
    let waiting = lab.path("storage").join(format!("{stage}.00"));
    fs::create_dir_all(waiting.parent().unwrap()).unwrap();
    fs::write(&waiting, "another\n").unwrap();
    fs::remove_file(lab.path(&format!("storage/c_mul/{version}/00/{NAME}"))).unwrap();
    lab.ce_run(&["-n"]).exit(3);
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["mul"]);
    assert_eq!(lab.output(), "85\n");
}

#[test]
fn a_file_whose_line_ends_a_clone_has_changed_is_reported_and_kept_aside() {
    let (lab, version) = evaluated();
    let output = lab.path(&format!("storage/c_mul/{version}/00/{NAME}"));
    fs::remove_file(&output).unwrap();
    fs::write(&output, "85\r\n").unwrap();
    let ran = lab.ce_run(&["--no-sync"]).exit(0).called(vec!["mul"]);
    ran.says("it has 4 bytes, and 3 are recorded").says("quarantined");
    assert!(lab.storage().iter().any(|name| name.contains("/aside/")));
}

#[test]
fn a_large_file_with_another_time_is_read_once() {
    let lab = Lab::task(TASK)
        .computation("mul", "a b", "product", r#"head -c 300000 /dev/zero >"$3""#)
        .commit();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["mul"]);
    let output = lab.path(&format!("storage/c_mul/{}/00/{NAME}", version(&lab, "c_mul")));
    let long_ago =
        std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::File::open(&output).unwrap().set_modified(long_ago).unwrap();
    // A racy digest is not cached: wait until the time of its change has passed.
    let changed = || {
        let age = fs::metadata(&output).unwrap();
        let age = std::os::unix::fs::MetadataExt::ctime(&age);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        now.as_secs().saturating_sub(age.unsigned_abs()) < 4
    };
    while changed() {
        std::thread::yield_now();
    }
    let hashes = || {
        let files = walkdir::WalkDir::new(lab.path("cache")).into_iter().flatten();
        files
            .filter(|file| {
                file.file_type().is_file() && file.path().to_str().unwrap().contains("/hashes/")
            })
            .count()
    };
    lab.ce_run(&["-n"]).exit(0);
    assert_eq!(hashes(), 1, "its digest is cached");
    lab.ce_run(&["-n"]).exit(0);
}
