//! Collected results, kept results, and the fate of those who use them meanwhile.

use std::fs;

use compeval::history::History;
use compeval::history::collect::{CollectRequest, Fate, candidates, collect};
use compeval::storage::{Durability, Maintenance, Storage, Unrecorded};
use jiff::Timestamp;

use crate::faults::{is_taken, stride};
use crate::fifo::{Fifo, Never};
use crate::isolation;
use crate::lab::{Lab, Library};
use crate::program::{Ran, Running};
use crate::repository::{self, LAB};

const TASK: &str = "Inputs: 'x', 'y'
(add (divmod INPUT('x') INPUT('y'))[1, 0])[0]";

/// Keeps nothing for its age.
const OLDER: &str = "--older=0s";

/// Keeps nothing.
const ALL: [&str; 2] = [OLDER, "--no-keep"];

/// A laboratory in which the task was evaluated.
fn evaluated() -> Lab {
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&[]).exit(0).called(vec!["add", "divmod"]);
    lab
}

fn gc<'a>(lab: &'a Lab, options: &[&str]) -> Ran<'a> {
    lab.run("ce", &[&["gc", "--delete"], options, &["../storage"]].concat())
}

/// The same without deleting anything.
#[track_caller]
fn list<'a>(lab: &'a Lab, options: &[&str]) -> Ran<'a> {
    lab.unchanged(|| lab.run("ce", &[&["gc"], options, &["../storage"]].concat()))
}

/// The names of the outputs and task inputs that are listed, by the directory they begin with.
fn listed(ran: &Ran<'_>) -> Vec<String> {
    let name = |line: &&str| {
        let (_, name) = line.rsplit_once("../storage/")?;
        Some(name.split('/').next().unwrap().to_owned())
    };
    ran.lines().iter().filter_map(name).collect()
}

/// Forgets the task's history, and commits it anew with other computations: nothing can use any result of before.
fn abandon(lab: Lab) -> Lab {
    fs::remove_dir_all(lab.path("task/.git")).unwrap();
    let mut lab = lab;
    for name in ["add", "divmod", "mul"] {
        lab = lab.file(&format!("computations/{name}/README"), "");
    }
    lab.commit()
}

#[test]
fn results_of_reachable_commits_stay() {
    let lab = evaluated();
    let all = lab.results();
    assert_eq!(listed(&gc(&lab, &["--keep=."]).exit(0)), [""; 0]);
    // The next commit has the first as its parent.
    let lab = lab.file("README", "").commit_again();
    gc(&lab, &["--keep=."]).exit(0).says("collected 0 results: 0 B, 0.0 s of computing");
    assert_eq!(lab.results(), all);
    // A job protects its calls: its commit is reached, and that of its computations' submodule is not recorded there.
    let lab = Lab::task(TASK).commit_with(Library::Submodule);
    lab.ce_run(&[]).exit(0);
    assert_eq!(listed(&gc(&lab, &["--keep=."]).exit(0)), [""; 0]);
}

#[test]
fn results_of_unreachable_commits_are_collected_and_made_again() {
    let lab = abandon(evaluated());
    let listed_first =
        listed(&list(&lab, &["--keep=."]).exit(0).says("; give --delete to do so\n"));
    assert_eq!(listed(&list(&lab, &["-n", "--keep=."]).exit(0)), listed_first);
    assert_eq!(listed_first, ["c_add", "c_divmod", "t_task", "tinputs", "tinputs"]);
    let collected = gc(&lab, &["--keep=."]).exit(0).says("collected 5 results: 11 B");
    assert_eq!(listed(&collected), listed_first);
    assert!(lab.results().is_empty(), "{:?}", lab.results().keys());
    assert!(lab.is_tidy());
    gc(&lab, &["--keep=."]).exit(0).says("collected 0 results");
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
    lab.ce_run(&[]).exit(0).called(vec!["add", "divmod"]);
}

#[test]
fn a_collected_result_is_reported_until_it_is_made_again() {
    let lab = evaluated();
    gc(&lab, &ALL).exit(0);
    let told = "its result was collected at 2";
    lab.ce_run(&["-n"]).exit(3).says(&format!("divmod (divmod): {told}"));
    let json = lab.ce_run(&["-n", "--json"]).exit(3).shows("\"outcome\":\"missing\"");
    assert!(json.stdout.contains("\"collected\":\"2"), "{}", json.stdout);
    let output = lab.storage().into_iter().find(|name| name.contains("/collected/")).unwrap();
    let output = output.replace("/collected/", "/00/").replace(".json", "");
    lab.run("ce", &["show", "../storage", &output]).exit(2).says("was collected at 2");
    lab.ce_run(&[]).exit(0).says(&format!("divmod (divmod) is made again; {told}"));
    assert!(!lab.storage().iter().any(|name| name.contains("/collected/")));
    let again = lab.ce_run(&["-n"]).exit(0);
    assert!(!again.stderr.contains("collected"), "{}", again.stderr);
}

#[test]
fn older_results_are_collected_and_younger_ones_stay() {
    let lab = evaluated();
    gc(&lab, &["--older=1h"]).exit(0).says("collected 0 results");
    // Both must let it go.
    gc(&lab, &[OLDER, "--keep=."]).exit(0).says("collected 0 results");
    let lab = abandon(lab);
    gc(&lab, &["--older=1h", "--keep=."]).exit(0).says("collected 0 results");
    gc(&lab, &[OLDER, "--keep=."]).exit(0).says("collected 5 results");
    for future in ["--older=2100-01-01", "--older=-1d"] {
        gc(&lab, &["--no-keep", future]).exit(2).says("it is in the future; write a time before 2");
    }
    // An age of zero keeps nothing even if a clock was ahead.
    lab.ce_run(&[]).exit(0);
    for name in lab.storage().into_iter().filter(|name| name.contains("/record/")) {
        let record = lab.path("storage").join(name);
        let text = fs::read_to_string(&record).unwrap();
        fs::remove_file(&record).unwrap();
        fs::write(&record, text.replace("\"at\": \"20", "\"at\": \"21")).unwrap();
    }
    gc(&lab, &["--no-keep", "--older=1s"]).exit(0).says("collected 0 results");
    gc(&lab, &ALL).exit(0).says("collected 5 results");
}

#[test]
fn a_pin_protects_a_result_and_its_origins() {
    let lab = evaluated();
    let quotient = lab.results().into_keys().find(|it| it.starts_with("c_divmod/")).unwrap();
    lab.run("ce", &["pin", "--note=figure 3", "../storage", &quotient]).exit(0);
    let pins = lab.run("ce", &["pin", "../storage"]).exit(0);
    assert!(pins.stdout.trim_end().ends_with(&format!("../storage/{quotient}  figure 3")));
    assert_eq!(listed(&gc(&lab, &ALL).exit(0)), ["c_add", "t_task"]);
    lab.ce_run(&[]).exit(0).called(vec!["add"]);
    lab.run("ce", &["pin", "--remove", "../storage", &quotient]).exit(0);
    lab.run("ce", &["pin", "--remove", "../storage", &quotient]).exit(0).says("is not pinned");
    assert_eq!(listed(&gc(&lab, &ALL).exit(0)).len(), 5);
    lab.run("ce", &["pin", "../storage", &quotient]).exit(2).says("was collected at 2");
}

#[test]
fn submodules_are_looked_into_at_any_depth() {
    // computations/ is a submodule, in which each computation is one.
    let lab = Lab::task(TASK);
    let library = lab.path("task/computations");
    repository::init(&lab.path("task"));
    repository::init(&library);
    for name in ["add", "divmod", "mul"] {
        repository::commit(&library.join(name), LAB, "computation\n");
        repository::absorb(&library, name, &format!("../{name}"));
    }
    repository::commit(&library, LAB, "library\n");
    repository::absorb(&lab.path("task"), "computations", "../computations");
    // The inner ones still lead to the library's old place, and back.
    for name in ["add", "divmod", "mul"] {
        let gitdir = format!("gitdir: ../../.git/modules/computations/modules/{name}\n");
        fs::write(library.join(name).join(".git"), gitdir).unwrap();
        let config = format!(".git/modules/computations/modules/{name}/config");
        let config = lab.path("task").join(config);
        let worktree = format!("[core]\n\tworktree = ../../../../../computations/{name}\n");
        fs::write(&config, fs::read_to_string(&config).unwrap() + &worktree).unwrap();
    }
    repository::commit(&lab.path("task"), LAB, "task\n");
    lab.ce_run(&[]).exit(0);
    // Without the job, only the commits protect.
    let job = lab.storage().into_iter().find(|name| name.starts_with("t_task/")).unwrap();
    let jobs = lab.path("storage").join(job.split('/').next().unwrap());
    fs::remove_dir_all(jobs).unwrap();
    assert_eq!(listed(&gc(&lab, &["--keep=."]).exit(0)), [""; 0]);
    // A submodule that is not cloned cannot be looked into.
    fs::remove_dir_all(lab.path("task/.git/modules/computations")).unwrap();
    let told = "has a submodule computations at";
    gc(&lab, &["--keep=."]).exit(2).says(told).says("try: git submodule update");
}

#[test]
fn a_literal_that_a_reached_workflow_reads_stays() {
    let lab = evaluated();
    let sum = lab.results().into_keys().find(|name| name.starts_with("c_add/")).unwrap();
    let lab = abandon(lab);
    let lab = lab
        .file("workflow/inputs/00-left/kind", "literal\n")
        .file("workflow/inputs/00-left/value", format!("{sum}\n"));
    repository::commit(&lab.path("task"), LAB, "literal\n");
    assert_eq!(listed(&gc(&lab, &["--keep=."]).exit(0)), ["t_task"]);
}

#[test]
fn results_of_unknown_reachability_are_not_collected() {
    let lab = evaluated();
    let before = lab.results();
    fs::write(lab.path("task/.git/shallow"), repository::head(&lab.path("task")) + "\n").unwrap();
    gc(&lab, &["--keep=."]).exit(2).says("is a shallow clone").says("git fetch --unshallow");
    gc(&lab, &["--keep=../data"]).exit(2).says("../data is not in a Git repository");
    gc(&lab, &["--no-keep"]).exit(2).says("--older <TIME>");
    lab.run("ce", &["gc", OLDER, "nowhere"]).exit(5).says("cannot open the storage nowhere");
    lab.run("ce", &["pin", "nowhere", "abcd"]).exit(5).says("cannot open the storage nowhere");
    assert!(!lab.path("task/nowhere").exists());
    assert_eq!(lab.results(), before);
}

#[test]
fn a_running_evaluation_loses_nothing() {
    let wait = r#"
        if [ "${LAB_WAIT-}" ]; then
            exec 3>"$LAB_MEET"; echo here >&3; cat "$LAB_WAIT"
        fi
        cat "$1" "$2" >"$3""#;
    let text = "Inputs: 'x', 'y'\n(wait (divmod INPUT('x') INPUT('y'))[0, 1])[0]";
    let lab = Lab::task(text).computation("wait", "a b", "c", wait).commit();
    lab.ce_run(&[]).exit(0);
    let output = lab.results().into_keys().find(|name| name.starts_with("c_wait/")).unwrap();
    let owner = lab.path("storage").join(output.split('/').next().unwrap());
    fs::remove_dir_all(owner).unwrap();
    let (meet, never) = (lab.path("meet"), lab.path("never"));
    let fifo = Fifo::new(&meet);
    let mut command = lab.evaluation(&[]);
    command.env("LAB_MEET", &meet).env("LAB_WAIT", &never);
    let never = Never::new(never);
    let running = Running::start(&mut command);
    assert_eq!(fifo.line(), "here");
    // Results that would be collected are listed without those that would stay.
    for options in [&["gc"][..], &["gc", "--delete"]] {
        let ran = lab.run("ce", &[options, &ALL, &["../storage"]].concat()).exit(0);
        let ran = ran.says("stays: it is in use").says("0 results: 0 B");
        assert_eq!(listed(&ran), [""; 0], "{}", ran.stderr);
    }
    drop(never);
    Ran::new(&lab, running.output()).exit(0).says("2 calls: 1 reused, 1 computed");
    lab.called();
    lab.ce_run(&[]).exit(0).called(vec![]);
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong, 0 odd");
    assert!(lab.is_tidy());
}

fn open(lab: &Lab) -> Storage {
    Storage::open(&lab.path("storage"), Unrecorded::Refuse, Durability::Unsynced).unwrap()
}

/// Lets the k-th operation of a collection fail, for every fourth k from the given one on, or for each with `CE_KILLS`; then
/// everything must be right.
#[cfg(debug_assertions)]
fn fail_everywhere(from: usize, fault: &str, right: impl Fn(Option<i32>) -> bool) {
    let lab = evaluated();
    lab.copy("storage", "full");
    let step = stride(4);
    for (case, at) in (from.min(step)..).step_by(step).enumerate() {
        lab.copy("full", "storage");
        let mut command = lab.command("ce");
        command
            .args(["gc", "--delete", "--no-keep", OLDER, "../storage"])
            .env("CE_FAULT", format!("{at}{fault}"));
        let ran = lab.finish(&mut command);
        if !ran.stderr.contains("fault at operation") {
            assert!(at > 50, "{at} operations");
            return;
        }
        assert!(right(ran.status.code()), "{at}{fault} {:?} {}", ran.status, ran.stderr);
        lab.run("ce", &["verify", "../storage"]).exit(0);
        // Two ways on: a run, and another collection.
        if is_taken(case, 0, 2) {
            lab.copy("storage", "left");
            lab.ce_run(&[]).exit(0);
            let called = lab.called();
            assert!(called.len() <= 2, "{called:?}");
            assert_eq!(lab.output(), "5\n");
            assert!(lab.is_tidy());
            lab.run("ce", &["verify", "../storage"]).exit(0);
            lab.copy("left", "storage");
        }
        if !is_taken(case, 1, 2) {
            continue;
        }
        gc(&lab, &ALL).exit(0);
        let left: Vec<String> = lab.results().into_keys().collect();
        // A task input without a record is nobody's to take away.
        assert!(left.iter().all(|name| name.starts_with("tinputs/")), "{at}{fault} {left:?}");
        assert!(lab.is_tidy());
    }
}

#[test]
#[cfg(debug_assertions)]
fn a_collection_that_dies_at_any_operation_harms_nothing() {
    fail_everywhere(1, ":KILL", |code| code.is_none());
}

#[test]
#[cfg(debug_assertions)]
fn a_collection_on_a_disk_that_fails_harms_nothing() {
    fail_everywhere(3, "+:EIO", |code| matches!(code, Some(0 | 5)));
}

#[test]
fn exports_go_with_the_last_result_of_their_tree() {
    if !isolation::is_possible() {
        return; // Nothing is exported to be shared.
    }
    let lab = Lab::task(TASK).isolated().commit();
    lab.ce_run(&["--at", "HEAD"]).exit(0).says("2 calls: 2 computed");
    let left = |room: &str| lab.storage().iter().filter(|name| name.contains(room)).count();
    assert_eq!((left("trees/"), left("/commits/")), (6, 2));
    gc(&lab, &["--keep=."]).exit(0);
    assert_eq!((left("trees/"), left("/commits/")), (6, 2));
    let quotient = lab.results().into_keys().find(|it| it.starts_with("c_divmod/")).unwrap();
    lab.run("ce", &["pin", "../storage", &quotient]).exit(0);
    gc(&lab, &ALL).exit(0);
    assert_eq!((left("trees/"), left("/commits/")), (3, 1));
    lab.ce_run(&["--at", "HEAD"]).exit(0).says("1 computed");
    assert!(lab.is_tidy());
}

#[test]
fn a_retired_result_is_not_found_and_a_run_revives_it() {
    let lab = evaluated();
    let storage = open(&lab);
    let history = History::read(&storage).unwrap();
    let retire =
        |(entry, record): &_| Maintenance::new(&storage).retire(entry, record).unwrap().unwrap();
    let retired: Vec<_> = history.results().iter().map(retire).collect();
    lab.ce_run(&["-n"]).exit(3).says("2 calls: 2 missing");
    // As if the collection had died.
    drop(retired);
    lab.ce_run(&["-n"]).exit(3).says("2 calls: 2 missing");
    lab.ce_run(&[]).exit(0).says("2 calls: 2 reused").called(vec![]);
}

#[test]
fn a_job_that_was_done_meanwhile_keeps_its_results() {
    let lab = evaluated();
    let storage = open(&lab);
    let history = History::read(&storage).unwrap();
    let request =
        CollectRequest { since: Some("2100-01-01T00:00:00Z".parse().unwrap()), reach: None };
    let candidates = candidates(&storage, &history, &request).unwrap();
    assert_eq!(candidates.len(), 5);
    // The task changes its name, and so its job, and finds all calls.
    fs::rename(lab.path("task"), lab.path("other")).unwrap();
    let mut command = lab.command("ce-run");
    command.current_dir(lab.path("other")).args(["../storage", "../data/x", "../data/y"]);
    lab.finish(&mut command).exit(0).says("2 calls: 2 reused");
    let mut kept = 0;
    let mut tell = |_: &_, fate| kept += usize::from(fate == Fate::Kept);
    collect(&storage, &history, &candidates, &mut tell).unwrap();
    // The first job itself was not used.
    assert_eq!(kept, 4);
}

#[test]
fn a_job_that_was_recorded_again_meanwhile_keeps_its_results() {
    let lab = evaluated();
    let storage = open(&lab);
    let history = History::read(&storage).unwrap();
    let request = CollectRequest { since: Some(Timestamp::MAX), reach: None };
    let candidates = candidates(&storage, &history, &request).unwrap();
    let record = lab
        .storage()
        .into_iter()
        .find(|name| name.starts_with("t_task/") && name.contains("/record/"));
    fs::remove_file(lab.path("storage").join(record.unwrap())).unwrap();
    lab.ce_run(&[]).exit(0).says("2 calls: 2 reused");
    let mut fates = Vec::new();
    collect(&storage, &history, &candidates, &mut |_, fate| fates.push(fate)).unwrap();
    assert_eq!(fates, [Fate::Kept; 5]);
    lab.ce_run(&["-n"]).exit(0);
}

/// A laboratory that takes over by trees, with a task that is one text.
fn trusting(text: &str) -> Lab {
    let lab = Lab::task("Inputs: 'x'\n(add INPUT('x') INPUT('x'))").one_text(text);
    let config = "[safe]\n\tdirectory = *\n[compeval]\n\ttakeover = tree\n";
    fs::write(lab.path("home/.gitconfig"), config).unwrap();
    let mut lab = lab;
    lab.inputs.clear();
    lab.commit()
}

/// The number of records of calls.
fn calls(lab: &Lab) -> usize {
    let names = lab.storage();
    names.iter().filter(|it| it.starts_with("c_") && it.contains("/record/")).count()
}

#[test]
fn results_that_a_squash_or_an_amended_commit_would_use_stay() {
    let lab = trusting("(add '8' '9')");
    lab.git("task", &["checkout", "-q", "-b", "topic"]);
    let lab = lab.file("workflow.ce", "SWEEP((add n n) :over n 10 70 500)\n").commit_again();
    lab.ce_run(&[]).exit(0).says("3 calls: 3 computed; 1 table: 1 made");
    lab.git("task", &["checkout", "-q", "-"]);
    lab.git("task", &["merge", "-q", "--squash", "topic"]);
    lab.git("task", &["commit", "-qm", "squashed"]);
    lab.git("task", &["branch", "-q", "-D", "topic"]);
    gc(&lab, &["--keep=."]).exit(0).says("collected 1 result: 0 B");
    lab.ce_run(&["-n"]).exit(0).says("3 calls: 3 taken over; 1 table: 1 reused");
    lab.git("task", &["commit", "-q", "--amend", "-m", "another message"]);
    gc(&lab, &["--keep=."]).exit(0).says("collected 0 results");
    // A text that no commit has any more.
    let lab = lab.file("workflow.ce", "SWEEP((add n n) :over n 10 500 800)\n");
    lab.git("task", &["commit", "-q", "-a", "--amend", "-m", "others"]);
    gc(&lab, &["--keep=."]).exit(0).says("collected 3 results");
    lab.ce_run(&["-n"]).exit(3).says("3 calls: 2 taken over, 1 missing; 1 table: 1 missing");
}

#[test]
fn the_original_of_copies_at_deleted_commits_stays() {
    let lab = trusting("(add '1' '2')");
    lab.ce_run(&[]).exit(0).says("1 computed");
    let original = lab.results().into_keys().find(|name| name.starts_with("c_add/"));
    for message in ["one", "two", "three"] {
        lab.git("task", &["commit", "-q", "--amend", "-m", message]);
        lab.ce_run(&[]).exit(0).says("1 taken over");
    }
    assert_eq!(calls(&lab), 4);
    // The last copy belongs to the commit that is there.
    gc(&lab, &["--keep=."]).exit(0);
    assert_eq!(calls(&lab), 2);
    lab.git("task", &["commit", "-q", "--amend", "-m", "four"]);
    gc(&lab, &["--keep=."]).exit(0);
    assert_eq!(lab.results().into_keys().find(|name| name.starts_with("c_add/")), original);
    assert_eq!(calls(&lab), 1);
    lab.ce_run(&["-n"]).exit(0).says("1 taken over");
}

#[test]
fn references_of_a_linked_work_tree_and_the_head_of_the_main_one_count() {
    let lab = trusting("(add '1' '2')");
    let first = lab.git("task", &["rev-parse", "HEAD"]);
    let lab = lab.file("workflow.ce", "(add '3' '4')\n").commit_again();
    lab.ce_run(&["--no-sync"]).exit(0);
    let second = lab.git("task", &["rev-parse", "HEAD"]);
    let branch = lab.git("task", &["symbolic-ref", "--short", "HEAD"]);
    lab.git("task", &["worktree", "add", "-q", "--detach", "../linked", &first]);
    lab.git("linked", &["update-ref", "refs/bisect/bad", &second]);
    lab.git("task", &["checkout", "-q", "--detach", &first]);
    lab.git("task", &["branch", "-q", "-D", &branch]);
    gc(&lab, &["--keep=."]).exit(0).says("collected 0 results");
    // The other way round: only the main work tree is there, and the collection is told of the linked one.
    lab.git("linked", &["update-ref", "-d", "refs/bisect/bad"]);
    lab.git("task", &["checkout", "-q", "--detach", &second]);
    gc(&lab, &["--keep=../linked"]).exit(0).says("collected 0 results");
    lab.git("task", &["checkout", "-q", "--detach", &first]);
    gc(&lab, &["--keep=../linked"]).exit(0).says("collected 4 results");
}

#[test]
fn an_unreadable_workflow_keeps_the_results_that_it_names() {
    for (file, text, told) in [
        (
            "workflow.ce",
            "(add FILE('NAME') (",
            "workflow.ce cannot be read, so it uses no results: 1:",
        ),
        ("workflow.ce", "<<<<<<< HEAD\n(add 'NAME' 2)\n=======\n", "workflow.ce cannot be read"),
        ("doc/workflow.ce", "add: \u{e9} \"NAME\", no workflow", "doc/workflow.ce cannot be read"),
        ("workflow.ce", "\u{0}\nNAME\n", "workflow.ce cannot be read"),
    ] {
        let lab = trusting("(add '1' '2')");
        lab.git("task", &["checkout", "-q", "-b", "topic"]);
        let mut kept = String::new();
        for number in ["5", "6"] {
            let text = format!("(add '{number}' '7')\n");
            lab.git("task", &["config", "user.name", "Lab"]);
            fs::write(lab.path("task/workflow.ce"), text).unwrap();
            lab.git("task", &["commit", "-q", "-a", "-m", number]);
            kept = lab.ce_run(&["-q"]).exit(0).lines()[0].replace("../storage/", "");
        }
        lab.git("task", &["checkout", "-q", "-"]);
        lab.git("task", &["branch", "-q", "-D", "topic"]);
        let text = text.replace("NAME", &kept);
        let lab = lab.file(file, text).commit_again();
        let lab = lab.file("workflow.ce", "(add '1' '2')\n").commit_again();
        gc(&lab, &["--keep=."]).exit(0).says("ce: warning: .: at the commit ").says(told);
        let left: Vec<String> =
            lab.results().into_keys().filter(|it| it.starts_with("c_")).collect();
        assert_eq!(left, [kept], "{file}");
    }
}

#[test]
fn a_literal_of_a_directory_keeps_its_files() {
    let lab = trusting("(add '1' '2')");
    let file = lab.ce_run(&["-q"]).exit(0).lines()[0].replace("../storage/", "");
    let parts: Vec<&str> = file.rsplitn(2, '/').collect();
    let [member, directory] = parts[..] else { panic!() };
    let mut lab = lab.file("computations/add/README", "");
    for (text, is_kept) in [
        (format!("(mul MEMBER('{member}' FILE('{directory}')) '3')\n"), true),
        ("Inputs: x\n(mul MEMBER('{x}' FILE('c_add/{x}/00')) '3')\n".to_owned(), true),
        (format!("(mul FILE('{file}') '3')\n"), true),
        ("(mul '2' '3')\n".to_owned(), false),
    ] {
        fs::remove_dir_all(lab.path("task/.git")).unwrap();
        lab = lab.file("workflow.ce", &text).commit();
        gc(&lab, &["--keep=."]).exit(0);
        assert_eq!(calls(&lab), usize::from(is_kept), "{text}");
    }
}
