//! Outputs without a record: adopted when they have settled, and by who believes that.

use std::fs;
use std::time::{Duration, SystemTime};

use super::version;
use crate::json::check_event;
use crate::lab::Lab;

const TASK: &str = "Inputs: 'x', 'y'\n(mul INPUT('x') INPUT('y'))[0]";
const NAME: &str = "ad48103e4fc7_5d9474c0309b";

/// A laboratory with a result whose record is gone.
fn unrecorded() -> Lab {
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["mul"]);
    fs::remove_dir_all(lab.path("storage/t_task")).unwrap();
    let version = version(&lab, "c_mul");
    let record = format!("storage/c_mul/{version}/record/{NAME}.json");
    fs::remove_file(lab.path(&record)).unwrap();
    lab
}

fn output(lab: &Lab) -> std::path::PathBuf {
    lab.path(&format!("storage/c_mul/{}/00/{NAME}", version(lab, "c_mul")))
}

/// Sets the time at which a file was last written so far back, as copying tools do when they have written it.
fn age(path: &std::path::Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    let file = fs::File::open(path).unwrap();
    file.set_modified(time).unwrap();
}

#[test]
fn a_file_that_is_still_written_is_waited_for() {
    let lab = unrecorded();
    let path = output(&lab);
    fs::remove_file(&path).unwrap();
    fs::write(&path, "half").unwrap();
    lab.unchanged(|| lab.ce_run(&["-n"]).exit(3).called(vec![]));
    let (ready, whole) = (path.with_file_name("ready"), "85\n");
    // A copying tool ends with the time of the original; until then nothing is adopted.
    let mut running = lab.evaluation(&["--no-sync", "--json"]);
    let mut child = running.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let waits = lines.by_ref().map(Result::unwrap).find(|line| line.contains("\"unsettled\""));
    waits.iter().for_each(|line| check_event(line));
    assert!(waits.is_some(), "it says that it waits");
    fs::write(&ready, whole).unwrap();
    age(&ready, 3600);
    fs::rename(&ready, &path).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(child.wait().unwrap().success(), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("\"reused\"")), "{rest:?}");
    assert_eq!(lab.called(), [""; 0]);
    assert_eq!(lab.output(), whole);
}

#[test]
fn waiting_for_a_file_ends_with_an_interrupt() {
    let lab = unrecorded();
    fs::remove_file(output(&lab)).unwrap();
    fs::write(output(&lab), "half").unwrap();
    let mut child = lab
        .evaluation(&["--no-sync", "--json"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut lines = lines.map(Result::unwrap);
    assert!(lines.any(|line| line.contains("\"unsettled\"")));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(lab.called(), [""; 0]);
}

#[test]
fn a_strict_run_does_not_use_adopted_results() {
    let lab = unrecorded();
    let path = output(&lab);
    age(&path, 3600);
    lab.ce_run(&["--no-sync"]).exit(0).called(vec![]);
    lab.ce_run(&["--strict", "-n"]).exit(3);
    lab.ce_run(&["--strict", "-n", "-q"]).exit(3);
    let ran = lab.ce_run(&["--strict", "--no-sync"]).exit(0).called(vec!["mul"]);
    ran.says("it was adopted, and not executed");
    lab.ce_run(&["--strict", "--no-sync"]).exit(0).called(vec![]);
}

#[test]
fn an_output_that_is_a_link_is_not_adopted() {
    let lab = unrecorded();
    let decoy = lab.path("decoy");
    fs::write(&decoy, "decoy\n").unwrap();
    fs::remove_file(output(&lab)).unwrap();
    std::os::unix::fs::symlink(&decoy, output(&lab)).unwrap();
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["mul"]);
    assert_eq!(lab.output(), "85\n");
    assert_eq!(fs::read_to_string(decoy).unwrap(), "decoy\n");
    assert!(output(&lab).symlink_metadata().unwrap().is_file());
}

#[test]
fn a_strict_run_does_not_use_a_job_with_an_adopted_call() {
    let task = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('y'))[0]";
    let lab = Lab::task(task).commit();
    let commit = lab.git("task", &["rev-parse", "HEAD"])[..12].to_owned();
    let forged = lab.path(&format!("storage/c_mul/{commit}/00/{NAME}"));
    fs::create_dir_all(lab.path("storage/tinputs")).unwrap();
    fs::create_dir_all(forged.parent().unwrap()).unwrap();
    fs::write(&forged, "1\n").unwrap();
    age(&forged, 3600);
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["add"]);
    assert_eq!(lab.output(), "6\n");
    let ran = lab.ce_run(&["--no-sync", "--strict", "-q"]).exit(0).called(vec!["add", "mul"]);
    assert_eq!(lab.stored(ran.lines()[0]), "90\n");
}
