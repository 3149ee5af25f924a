//! Suspended calls across commits, and under another isolation.

use std::fs;

use super::spooling;

#[test]
fn another_commit_continues_an_isolated_call_and_takes_it_over() {
    let lab = spooling(&["status"]).isolated().commit();
    lab.ce_run(&[]).exit(4);
    let (place, _) = lab.one_suspended();
    let lab = lab.file("README", "more\n").commit_again();
    lab.ce_run(&["-n"]).exit(4).says("1 suspended");
    lab.ce_run(&[]).exit(4).says("one job ahead");
    let (same, state) = lab.one_suspended();
    assert_eq!(place, same, "it stays where it was begun");
    assert_eq!(state["jobs"].as_array().unwrap().len(), 2, "{state}");
    lab.finish_job();
    lab.ce_run(&[]).exit(0).says("2 calls: 1 taken over, 1 computed");
    assert_eq!((lab.output(), lab.submitted()), ("21\n".to_owned(), 1));
    lab.is_over();
    let records = lab.storage().into_iter().filter(|it| it.starts_with("c_submit/"));
    let records: Vec<String> = records.filter(|it| it.contains("/record/")).collect();
    assert_eq!(records.len(), 2, "{records:?}");
    let taken = records.iter().filter(|it| lab.stored(it).contains("\"taken_over\""));
    assert_eq!(taken.count(), 1);
    lab.run("ce", &["verify", "../storage"]).exit(0);
}

#[test]
fn a_call_that_is_not_isolated_is_continued_by_its_commit_only() {
    let lab = spooling(&[]).commit();
    lab.ce_run(&[]).exit(4);
    let first = lab.suspended();
    let lab = lab.file("README", "more\n").commit_again();
    let ran = lab.ce_run(&[]).exit(4).says("submit (submit) is begun anew");
    ran.says("is suspended, and not continued for another commit");
    assert_eq!((lab.suspended().len(), lab.submitted()), (2, 2));
    assert!(lab.suspended().contains(&first[0]));
}

#[test]
fn a_call_is_continued_with_the_isolation_that_it_was_begun_with() {
    let lab = spooling(&["status"]).commit();
    lab.ce_run(&[]).exit(4);
    let lab = lab.isolated();
    let (_, before) = lab.one_suspended();
    lab.ce_run(&[]).exit(4).says("it was begun without isolation, and this run isolates");
    // It does not wait for a call that it would not continue.
    lab.ce_run(&["--wait"]).exit(4);
    assert_eq!(lab.one_suspended().1, before);
    assert_eq!(lab.submitted(), 1);
}

#[test]
fn a_collection_keeps_a_suspended_call_and_its_inputs() {
    let lab = spooling(&["status", "cancel"]).isolated().commit();
    lab.ce_run(&[]).exit(4);
    let before: Vec<String> = lab.storage();
    lab.run("ce", &["gc", "--no-keep", "--older", "0s", "--delete", "../storage"]).exit(0);
    assert_eq!(lab.storage(), before);
    // Its programs are found without its repository.
    fs::rename(lab.path("task/.git"), lab.path("moved")).unwrap();
    lab.run("ce", &["status", "--ask", "../storage"]).exit(0).shows("status: one job ahead");
    lab.run("ce", &["cancel", "--all", "../storage"]).exit(0).shows(": removed");
    assert_eq!(lab.submitted(), 0);
    lab.is_over();
    lab.run("ce", &["gc", "--no-keep", "--older", "0s", "--delete", "../storage"]).exit(0);
    assert!(!lab.storage().iter().any(|name| name.starts_with("trees/")));
}

#[test]
fn a_lost_index_is_found_and_restored() {
    let lab = spooling(&["status"]).isolated().commit();
    lab.ce_run(&[]).exit(4);
    fs::remove_dir_all(lab.path("storage/suspended")).unwrap();
    lab.run("ce", &["verify", "../storage"]).exit(5).shows("the index does not have this");
    lab.run("ce", &["verify", "--repair", "../storage"]).exit(5);
    lab.run("ce", &["verify", "../storage"]).exit(0);
    lab.ce_run(&[]).exit(4).says("one job ahead");
    // Without a repair, the place is found under its own name.
    fs::remove_dir_all(lab.path("storage/suspended")).unwrap();
    lab.finish_job();
    lab.ce_run(&[]).exit(0);
    assert_eq!(lab.submitted(), 1);
    lab.is_over();
}

#[test]
fn a_spoiled_record_does_not_lose_a_started_call() {
    let lab = spooling(&["status"]).commit();
    lab.ce_run(&[]).exit(4);
    let (place, _) = lab.one_suspended();
    fs::write(place.join("state.json"), "{").unwrap();
    lab.run("ce", &["verify", "../storage"]).exit(5).shows("cannot be understood");
    lab.ce_run(&[]).exit(4);
    assert_eq!(lab.submitted(), 1);
    lab.run("ce", &["verify", "../storage"]).exit(0);
}
