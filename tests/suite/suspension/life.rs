//! The life of a suspended call: it begins, waits, is continued, and is over.

use std::fs;

use serde_json::Value;

use super::{spooling, with_script};
use crate::lab::Lab;

/// The totals of a run with one suspended call.
const SUSPENDED: &str = "2 calls: 1 suspended, 1 waiting";

#[test]
fn a_suspended_call_is_continued_until_it_is_over() {
    for isolated in [false, true] {
        let lab = spooling(&[]);
        let lab = if isolated { lab.isolated() } else { lab }.commit();
        let ran = lab.ce_run(&[]).exit(4).says(SUSPENDED).says("submit");
        assert!(ran.stdout.contains("`* suspended: what it has started goes on elsewhere"));
        assert!(ran.stdout.contains("`* not computed yet: an input is suspended"));
        let (place, state) = lab.one_suspended();
        assert_eq!(state["state"], "suspended");
        assert_eq!((&state["attempts"], &state["isolated"]), (&1.into(), &isolated.into()));
        assert!(place.join("own/work/job").exists());
        assert_eq!(fs::read_to_string(place.join("log")).unwrap(), "submitted\n");
        assert!(lab.is_tidy());
        lab.unchanged(|| lab.ce_run(&["-n"]).exit(4).says("1 suspended"));

        lab.ce_run(&[]).exit(4).says(SUSPENDED);
        let log = fs::read_to_string(place.join("log")).unwrap();
        assert_eq!(log, "submitted\nnot done\n");
        lab.finish_job();
        lab.ce_run(&[]).exit(0).says("2 calls: 2 computed");
        assert_eq!((lab.output(), lab.submitted()), ("21\n".to_owned(), 1));
        lab.is_over();
        let log = lab
            .storage()
            .into_iter()
            .find(|it| it.starts_with("c_submit/") && it.contains("/log/"));
        assert_eq!(lab.stored(&log.unwrap()), "submitted\nnot done\ndone\n");
        // Only of the other one is known on what kind of host it was executed.
        let records = lab.storage().into_iter().filter(|it| it.starts_with("c_"));
        let records = records.filter(|it| it.contains("/record/"));
        let has_kind = |name: &String| {
            let record = lab.stored(name);
            let has = |field: &str| record.contains(&format!("\"{field}\""));
            assert_eq!(has("host_kind"), has("machine"), "{record}");
            has("host_kind")
        };
        let with_kind: Vec<String> = records.filter(has_kind).collect();
        assert!(with_kind.len() == 1 && !with_kind[0].starts_with("c_submit/"), "{with_kind:?}");
        lab.ce_run(&[]).exit(0).says("2 calls: 2 reused");
        lab.run("ce", &["verify", "../storage"]).exit(0);
    }
}

#[test]
fn a_call_with_a_status_is_asked_before_it_is_continued() {
    for isolated in [false, true] {
        let lab = spooling(&["status"]);
        let lab = if isolated { lab.isolated() } else { lab }.commit();
        lab.ce_run(&[]).exit(4);
        let ran = lab.ce_run(&[]).exit(4).says("is suspended: one job ahead");
        assert!(ran.stdout.contains("`* suspended: one job ahead"), "{}", ran.stdout);
        let (place, state) = lab.one_suspended();
        assert_eq!(state["attempts"], 1, "exec was not started again");
        assert_eq!(fs::read_to_string(place.join("log")).unwrap(), "submitted\n");

        // Other answers of its program are reported, and change nothing.
        fs::write(lab.path("spool/lost"), "").unwrap();
        let ran = lab.ce_run(&[]).exit(1).says("it ended with exit status 3: the job is lost");
        ran.says("ce cancel --forget lets the next run start it from the beginning");
        assert_eq!(lab.one_suspended().1["state"], "suspended");
        fs::remove_file(lab.path("spool/lost")).unwrap();

        lab.finish_job();
        lab.ce_run(&[]).exit(0).says("2 calls: 2 computed");
        assert_eq!((lab.output(), lab.submitted()), ("21\n".to_owned(), 1));
        lab.is_over();
    }
}

#[test]
fn events_name_suspended_calls() {
    let lab = spooling(&["status"]).commit();
    lab.ce_run(&[]).exit(4);
    let ran = lab.ce_run(&["--json"]).exit(4);
    let lines: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ended = |outcome: &str| {
        let mut ended = lines.iter().filter(|it| it["event"] == "ended");
        ended.find(|it| it["outcome"] == outcome).unwrap()
    };
    assert_eq!(ended("suspended")["reason"], "one job ahead");
    assert_eq!(ended("suspended")["computation"], "submit");
    assert_eq!(ended("waiting")["computation"], "add");
    let end = lines.last().unwrap();
    assert_eq!((&end["exit"], &end["tally"]["suspended"]), (&4.into(), &1.into()));
    assert_eq!(end["tally"]["waiting"], 1);
}

#[test]
fn exit_codes_rank_failed_before_suspended_before_missing() {
    let lab = Lab::task("Inputs: 'x'\n(both (wait INPUT('x'))[0] (fail INPUT('x'))[0])[0]")
        .computation("wait", "x", "y", "exit 75")
        .computation("fail", "x", "y", "exit 1")
        .computation("both", "a b", "c", "exit 1")
        .commit();
    lab.ce_run(&[]).exit(1).says("1 suspended").says("1 blocked").says("1 failed");
    // Nothing says of a missing call that it would fail.
    lab.ce_run(&["-n"]).exit(4);
    // A picture says what goes on with each.
    let drawn = lab.run("ce-viz", &["../storage", "../data/x"]).exit(0).stdout;
    for (label, fill) in
        [("wait: suspended", "#efe7f8"), ("fail: failed", "#fde4e1"), ("both", "#fff7e8")]
    {
        let line = drawn.lines().find(|it| it.contains(&format!("[label=\"{label}\""))).unwrap();
        assert!(line.contains(fill), "{line}");
    }
}

#[test]
fn a_call_without_a_directory_is_suspended_too() {
    let exec = r#"
[ -z "$CE_DIRECTORY" ] || exit 3
[ -e SPOOL/done ] || { echo waits; exit 75; }
cat SPOOL/done >"$2""#;
    let lab = with_script(exec, &["status"]);
    let access = lab.path("spool").display().to_string();
    let lab = lab.file("computations/submit/access", format!("write {access}\n")).commit();
    lab.ce_run(&[]).exit(4).says("1 suspended");
    let (place, state) = lab.one_suspended();
    assert!(!place.join("own/work").exists());
    assert_eq!(state["attempts"], 1);
    lab.ce_run(&[]).exit(4).says("one job ahead");
    lab.finish_job();
    lab.ce_run(&[]).exit(0);
    lab.is_over();
}

#[test]
fn a_failed_call_keeps_its_directory_if_it_is_not_empty() {
    let exec = r#"
[ ! -e SPOOL/kept ] || : >"$CE_DIRECTORY/job"
exit 3"#;
    let lab = with_script(exec, &[]).commit();
    lab.ce_run(&[]).exit(1);
    lab.is_over();
    fs::write(lab.path("spool/kept"), "").unwrap();
    lab.ce_run(&[]).exit(1).says("the next run continues with what is in its directory");
    assert_eq!(lab.one_suspended().1["state"], "failed");
    lab.ce_run(&[]).exit(1);
    let (place, state) = lab.one_suspended();
    assert_eq!(state["attempts"], 2);
    assert!(place.join("own/work/job").exists());
}

#[test]
fn a_table_waits_for_a_suspended_point_and_the_other_points_do_not() {
    let exec = r#"
[ "$(cat "$1")" != 2 ] || [ -e SPOOL/done ] || exit 75
cat "$1" >"$2""#;
    let lab = with_script(exec, &[]).commit();
    let each = ["--each", "x=1,2,3"];
    let mut command = lab.command("ce-run");
    let ran = lab.finish(command.args(["../storage"]).args(each));
    ran.exit(4).says("6 calls: 4 computed, 1 suspended, 1 waiting");
    lab.finish_job();
    let ran = lab.finish(lab.command("ce-run").args(["../storage"]).args(each));
    ran.exit(0).says("6 calls: 4 reused, 2 computed");
}
