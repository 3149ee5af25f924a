//! Results of other commits that cannot be taken over: the call is executed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use super::version;
use crate::fifo;
use crate::lab::Lab;

const TASK: &str = "Inputs: 'x', 'y'\n(mul INPUT('x') INPUT('y'))[0]";
const NAME: &str = "ad48103e4fc7_5d9474c0309b";

/// A laboratory with the result of an earlier commit, as if it had been isolated, and with its log.
/// Returns the earlier version.
fn with_source() -> (Lab, String) {
    let script = r#"echo said; echo $(($(cat "$1") * $(cat "$2"))) >"$3""#;
    let lab = Lab::task(TASK).computation("mul", "a b", "product", script).commit();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["mul"]);
    let source = version(&lab, "c_mul");
    let record = lab.path("storage/c_mul").join(&source).join(format!("record/{NAME}.json"));
    let mut text: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    text["origin"]["executed"]["isolation"] = json!("namespaces");
    fs::write(record, text.to_string()).unwrap();
    (lab.file("README", "").commit_again(), source)
}

/// Moves a directory of the storage out of it, and puts a link in its place.
fn move_out(lab: &Lab, place: &Path) {
    fs::rename(place, lab.path("elsewhere")).unwrap();
    symlink(lab.path("elsewhere"), place).unwrap();
}

#[test]
fn an_unreadable_result_is_not_taken_over() {
    type Spoil = fn(&Lab, &Path, &Path);
    let spoil: [(&str, Spoil); 6] = [
        ("the tree's versions", |lab, commits, _| {
            let tree = fs::read_dir(commits).unwrap().next().unwrap().unwrap();
            move_out(lab, &tree.path());
        }),
        ("all versions", |lab, commits, _| move_out(lab, commits)),
        ("the version", |lab, _, source| move_out(lab, source)),
        ("its records", |lab, _, source| move_out(lab, &source.join("record"))),
        ("its outputs", |lab, _, source| move_out(lab, &source.join("00"))),
        ("its record", |_, _, source| {
            let record = source.join(format!("record/{NAME}.json"));
            fs::write(record, r#"{"format": 99}"#).unwrap();
        }),
    ];
    for (what, spoil) in spoil {
        let (lab, source) = with_source();
        let computation = lab.path("storage/c_mul");
        spoil(&lab, &computation.join("commits"), &computation.join(source));
        lab.ce_run(&["-n"]).exit(3);
        lab.ce_run(&["--no-sync"]).exit(0).called(vec!["mul"]).says("1 call: 1 computed");
        assert_eq!(lab.output(), "85\n", "{what}");
        lab.ce_run(&["--no-sync"]).exit(0).called(vec![]);
    }
}

#[test]
fn a_result_is_taken_over_without_its_unreadable_log() {
    type Spoil = fn(&Lab, &Path);
    let spoil: [Spoil; 3] = [
        |lab, log| move_out(lab, log.parent().unwrap()),
        |_, log| {
            fs::remove_file(log).unwrap();
            fs::create_dir(log).unwrap();
        },
        |_, log| {
            fs::remove_file(log).unwrap();
            fifo::make(log);
        },
    ];
    for spoil in spoil {
        let (lab, source) = with_source();
        spoil(&lab, &lab.path("storage/c_mul").join(source).join("log").join(NAME));
        lab.ce_run(&["--no-sync"]).exit(0).called(vec![]).says("1 call: 1 taken over");
        assert_eq!(lab.output(), "85\n");
    }
}

#[test]
fn a_result_directory_that_is_a_link_is_an_error() {
    let (lab, _) = with_source();
    let commit = lab.git("task", &["rev-parse", "HEAD"]);
    fs::create_dir(lab.path("decoy")).unwrap();
    symlink(lab.path("decoy"), lab.path("storage/c_mul").join(&commit[..12])).unwrap();
    lab.ce_run(&["--no-sync"]).exit(5).called(vec![]).says("symbolic link");
}
