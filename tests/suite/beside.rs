//! Collections beside runs: results that a run has found stay in place at every moment, and a run that begins waits until
//! nothing is taken away.
//!
//! A longer form starts more runs: `CE_STARTS=300 cargo test --test suite beside`.

use std::collections::BTreeMap;
use std::fs;
#[cfg(debug_assertions)]
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
#[cfg(debug_assertions)]
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use compeval::history::History;
use compeval::history::collect::{CollectRequest, Fate, candidates, collect};
use compeval::storage::{Durability, Entry, InputSource, Maintenance, Storage, Unrecorded};
#[cfg(debug_assertions)]
use rustix::process::Signal;

#[cfg(debug_assertions)]
use crate::faults::stride;
use crate::lab::{Lab, files};
#[cfg(debug_assertions)]
use crate::program::{Ran, Running};

fn open(path: &Path) -> Storage {
    Storage::open(path, Unrecorded::Adopt, Durability::Unsynced).unwrap()
}

/// Collects everything that nobody uses. Returns the fates of results.
fn collect_all(storage: &Storage) -> Vec<Fate> {
    let history = History::read(storage).unwrap().with_recipes(storage).unwrap();
    let candidates = candidates(storage, &history, &CollectRequest::default()).unwrap();
    let mut fates = Vec::new();
    collect(storage, &history, &candidates, &mut |_, fate| fates.push(fate)).unwrap();
    fates
}

#[test]
fn an_input_that_a_run_has_found_is_not_moved_for_a_moment() {
    let dir = tempfile::tempdir().unwrap();
    let [run, other] = [(); 2].map(|()| open(dir.path()));
    let input = run.inputs().store(&InputSource::Bytes(b"x\n".to_vec())).unwrap().file;
    let history = History::read(&other).unwrap();
    let (entry, record) = &history.results()[0];
    let retired = Maintenance::new(&other).retire(entry, record).unwrap().unwrap();
    // Its record is gone, and it can be read all the same.
    run.inputs().verify_unchanged(&input).unwrap();
    assert!(retired.is_wanted(&other.gc_roots().read().unwrap()).unwrap());
    retired.restore().unwrap();
    assert_eq!(collect_all(&other), [Fate::Kept]);
    run.inputs().verify_unchanged(&input).unwrap();
    drop(run);
    assert_eq!(collect_all(&other), [Fate::Collected]);
    assert!(!other.has(&input.name).unwrap());
}

#[test]
fn a_run_that_begins_during_a_removal_waits_and_makes_the_result_again() {
    let dir = tempfile::tempdir().unwrap();
    let [run, other] = [(); 2].map(|()| open(dir.path()));
    let source = InputSource::Bytes(b"x\n".to_vec());
    let stored = open(dir.path()).inputs().store(&source).unwrap().file;
    let history = History::read(&other).unwrap();
    let (entry, record) = &history.results()[0];
    let mut retired = Maintenance::new(&other).retire(entry, record).unwrap().unwrap();
    let gate = other.gc_roots().close_gate();
    assert!(!retired.is_wanted(&other.gc_roots().read().unwrap()).unwrap());
    thread::scope(|scope| {
        let found = scope.spawn(|| run.inputs().store(&source).unwrap().file);
        // It has announced the input, and would find it.
        while !retired.is_wanted(&other.gc_roots().read().unwrap()).unwrap() {
            thread::yield_now();
        }
        retired.move_away().unwrap();
        assert!(!other.has(&stored.name).unwrap());
        drop(gate);
        retired.discard().unwrap();
        let found = found.join().unwrap();
        run.inputs().verify_unchanged(&found).unwrap();
        assert_eq!(found.digest, stored.digest);
    });
}

#[test]
fn the_gate_of_a_collection_that_has_died_is_open() {
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&[]).exit(0);
    let dead = "host-0-1-1-1";
    fs::write(lab.path("storage/tmp/collecting"), format!("{dead}\n")).unwrap();
    lab.run("ce", &["verify", "../storage"]).exit(0).says("1 odd").shows("tmp/collecting: a lease");
    let lab = lab.data("x", "7\n");
    lab.ce_run(&[]).exit(0);
    assert!(lab.is_tidy(), "{:?}", lab.storage());
}

const TASK: &str = "Inputs: 'x', 'y'\n(mul INPUT('x') INPUT('y'))[0]";

/// A sweep of two points, so that there is a table.
fn swept() -> Lab {
    let mut lab = Lab::task(
        "Inputs: 'x'\n(fit SWEEP(:factors/00-op 'one' 'two' :columns '00 value'
            :body (|{op}| INPUT('x'))[0])[0])[0]",
    );
    for name in ["one", "two", "fit"] {
        lab = lab.computation(name, "a", "b", r#"cat "$1" >"$2""#);
    }
    lab.inputs = vec!["x".to_owned()];
    lab.commit()
}

/// The names and contents of the values in a storage that begin so.
fn values(lab: &Lab, prefix: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = files(&lab.path("storage"));
    files.retain(|name, _| {
        let is_part = ["/00", "/recipe"].iter().any(|part| name.ends_with(part));
        let is_value = match prefix {
            "tables/" => is_part,
            "c_" => name.contains("/00/"),
            _ => !name.contains("/record/"),
        };
        name.starts_with(prefix) && is_value
    });
    files
}

/// Kills a collection at every third of its operations from the given one on, or at each with `CE_KILLS`, while a run uses
/// everything that begins so: it is all there.
#[cfg(debug_assertions)]
#[track_caller]
fn stays_at_any_moment(lab: &Lab, prefix: &str, options: &[&str], from: usize) {
    let used = values(lab, prefix);
    assert!(!used.is_empty(), "{prefix}: {:?}", lab.storage());
    lab.copy("storage", "stock");
    let step = stride(3);
    for at in (from.min(step)..).step_by(step) {
        lab.copy("stock", "storage");
        let run = open(&lab.path("storage"));
        // An export is announced as a whole.
        let export =
            |name: &String| Some(name.strip_prefix("trees/")?.split_once('/')?.0.to_owned());
        let name =
            |name: &String| export(name).map_or(name.clone(), |tree| format!("trees/{tree}"));
        run.gc_roots().announce(used.keys().map(name)).unwrap();
        let mut command = lab.command("ce");
        command.args(["gc", "--delete"]).args(options).arg("../storage");
        let ran = lab.finish(command.env("CE_FAULT", format!("{at}:KILL")));
        assert_eq!(values(lab, prefix), used, "killed at {at}\n{}", ran.stderr);
        if !ran.stderr.contains("fault at operation") {
            ran.exit(0);
            assert!(at > 20, "{at} operations");
            return;
        }
    }
}

#[test]
fn the_sources_of_a_job_in_use_stay() {
    let lab = swept();
    lab.ce_run(&[]).exit(0);
    let [user, other] = [(); 2].map(|()| open(&lab.path("storage")));
    let history = History::read(&other).unwrap();
    let is_job = |entry: &Entry| matches!(entry, Entry::Job(_));
    let job = history.results().iter().find(|(entry, _)| is_job(entry)).unwrap().0.short();
    user.gc_roots().announce([job]).unwrap();
    let stored = || ["c_", "t_", "tables/", "tinputs/"].map(|prefix| values(&lab, prefix));
    let before = stored();
    assert!(collect_all(&other).iter().all(|fate| *fate == Fate::Kept));
    assert_eq!(stored(), before);
    drop(user);
    assert!(collect_all(&other).iter().all(|fate| *fate == Fate::Collected));
}

const ALL: [&str; 2] = ["--no-keep", "--older=0s"];

#[test]
#[cfg(debug_assertions)]
fn inputs_in_use_stay_wherever_a_collection_dies() {
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&[]).exit(0);
    stays_at_any_moment(&lab, "tinputs/", &ALL, 1);
}

#[test]
#[cfg(debug_assertions)]
fn tables_in_use_stay_wherever_a_collection_dies() {
    let lab = swept();
    lab.ce_run(&[]).exit(0);
    stays_at_any_moment(&lab, "tables/", &ALL, 2);
}

#[test]
#[cfg(debug_assertions)]
fn outputs_in_use_stay_wherever_a_collection_dies_that_makes_them_away() {
    let lab = super::shared::lab();
    lab.ce_run(&[]).exit(0);
    super::shared::push(&lab, &[], "storage", "results.git").exit(0);
    stays_at_any_moment(&lab, "c_", &["--published", "../results.git"], 1);
}

#[test]
#[cfg(debug_assertions)]
fn exports_in_use_stay_wherever_a_collection_dies() {
    if !crate::isolation::is_possible() {
        return;
    }
    let lab = Lab::task(TASK).isolated().commit();
    lab.ce_run(&[]).exit(0);
    stays_at_any_moment(&lab, "trees/", &ALL, 3);
}

#[test]
fn runs_that_start_beside_collections_end_well_and_execute_each_call_once() {
    let starts = std::env::var("CE_STARTS").map_or(8, |text| text.parse().unwrap());
    let lab = Lab::task(TASK).commit();
    lab.ce_run(&[]).exit(0);
    lab.called();
    for at in 0..starts {
        fs::write(lab.path(&format!("data/x{at}")), format!("{}\n", at + 2)).unwrap();
    }
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let collector = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                lab.run("ce", &["gc", "--delete", "../storage"]).exit(0);
            }
        });
        let run = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= starts {
                    return;
                }
                // Two runs of each task input, which may be at the same time.
                let x = format!("../data/x{}", at / 2);
                let mut command = lab.command("ce-run");
                let command = command.args(["--no-sync", "../storage", &x, "../data/y"]);
                lab.finish(command).exit(0);
            }
        };
        let runs: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        let ended: Vec<_> = runs.into_iter().map(thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        collector.join().unwrap();
        ended.into_iter().for_each(|ended| ended.unwrap());
    });
    assert_eq!(lab.called().len(), starts.div_ceil(2), "each call is executed once");
    lab.run("ce", &["verify", "../storage"]).exit(0).says("0 wrong");
    assert!(lab.is_tidy(), "{:?}", lab.storage());
}

/// A laboratory with one call, which has made a directory and a file, and copies of it as it is now.
#[cfg(debug_assertions)]
fn made() -> Lab {
    let make = r#"mkdir "$2/d"; cp "$1" "$2/d/x"; cp "$1" "$2/y"; cp "$1" "$3""#;
    let mut lab = Lab::task("Inputs: 'x'\n(make INPUT('x'))[0, 1]")
        .computation("make", "x", "plots/ text", make)
        .data("x", "1\n");
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    lab.ce_run(&[]).exit(0);
    lab.copy("storage", "stock");
    lab
}

/// Runs a command, and does something with a fresh storage while it is stopped at an operation of that. `None` if it has fewer.
#[cfg(debug_assertions)]
fn stopped_at<'a>(
    lab: &'a Lab,
    command: &mut Command,
    at: usize,
    act: &dyn Fn(),
) -> Option<Ran<'a>> {
    lab.copy("stock", "storage");
    let running = Running::start(command.env("CE_FAULT", format!("{at}:STOP")));
    let is_stopped = running.comes_to_a_stop();
    if is_stopped {
        act();
        running.signal(Signal::CONT);
    }
    let ran = Ran::new(lab, running.output());
    is_stopped.then_some(ran)
}

/// Stops an export at each operation, and does something then: all is exported, or nothing, and a result is named.
#[cfg(debug_assertions)]
fn exports_all_or_nothing(lab: &Lab, options: &[&str], act: &dyn Fn()) {
    let results = lab.results().into_keys();
    let job = results.filter(|name| name.starts_with("t_")).min().unwrap();
    let short = job.splitn(5, '/').collect::<Vec<_>>();
    let short = [short[0], short[1], short[3]].join("/");
    let whole = ["README.md", "plots/d/x", "plots/y", "text"];
    let mut ends = [0, 0];
    for at in 1.. {
        let mut command = lab.command("ce");
        command.arg("export").args(options).args(["../storage", &short, "../out"]);
        let Some(ran) = stopped_at(lab, &mut command, at, act) else { break };
        let is_done = ran.status.success();
        ends[usize::from(is_done)] += 1;
        if is_done {
            let names: Vec<String> = files(&lab.path("out")).into_keys().collect();
            assert_eq!(names, whole, "stopped at {at}");
            fs::remove_dir_all(lab.path("out")).unwrap();
            continue;
        }
        assert!(matches!(ran.status.code(), Some(2 | 5)), "stopped at {at}\n{}", ran.stderr);
        let is_named = [&short, &job].iter().any(|name| ran.stderr.contains(name.as_str()));
        let is_named = is_named || ran.stderr.contains("c_make/") || ran.stderr.contains("t_task/");
        assert!(is_named, "stopped at {at}\n{}", ran.stderr);
        assert!(!lab.path("out").exists(), "stopped at {at}");
    }
    fs::remove_dir_all(lab.path("out")).unwrap();
    assert!(ends[0] > 10, "{ends:?}");
    assert!(fs::read_dir(lab.path("")).unwrap().all(|it| {
        let name = it.unwrap().file_name().into_string().unwrap();
        !name.ends_with(".part")
    }));
}

#[test]
#[cfg(debug_assertions)]
fn an_export_beside_a_collection_is_whole_or_says_what_is_missing() {
    let lab = made();
    for options in [&[][..], &["--link"]] {
        exports_all_or_nothing(&lab, options, &|| collect_everything(&lab));
    }
}

#[test]
#[cfg(debug_assertions)]
fn an_export_never_has_half_a_directory() {
    let lab = made();
    exports_all_or_nothing(&lab, &[], &|| begin_to_remove(&lab));
}

/// Removes a part of the directory, as a collection that has just begun with that.
#[cfg(debug_assertions)]
fn begin_to_remove(lab: &Lab) {
    let name = values(lab, "c_").into_keys().find(|name| name.ends_with("/y")).unwrap();
    let file = lab.path("storage").join(name);
    let directory = file.parent().unwrap();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(file).unwrap();
}

/// Collects everything in the storage.
#[cfg(debug_assertions)]
fn collect_everything(lab: &Lab) {
    lab.run("ce", &[&["gc", "--delete"][..], &ALL, &["../storage"]].concat()).exit(0);
}

/// Returns the step between two operations at which a push is stopped: with `CE_STARTS` set, none is left out.
#[cfg(debug_assertions)]
fn step() -> usize {
    if std::env::var_os("CE_STARTS").is_some() { 1 } else { 9 }
}

/// Stops a push at some operations, and does something then: the repository has whole results, and a missing result is
/// named.
#[cfg(debug_assertions)]
fn pushes_all_or_nothing(lab: &Lab, act: &dyn Fn()) {
    use super::shared::{pull, repository};

    let mut ends = [0, 0];
    for at in (1..).step_by(step()) {
        let name = format!("results{at}.git");
        repository(lab, &name);
        let mut command = lab.command("ce");
        command.args(["push", "../storage", &format!("../{name}")]);
        let Some(ran) = stopped_at(lab, &mut command, at, act) else { break };
        let is_done = ran.status.success();
        ends[usize::from(is_done)] += 1;
        if !is_done {
            let is_named = ["c_make/", "t_task/"].iter().any(|name| ran.stdout.contains(name));
            assert!(is_named, "stopped at {at}\n{}\n{}", ran.stdout, ran.stderr);
            assert_eq!(ran.status.code(), Some(1), "stopped at {at}\n{}", ran.stderr);
        }
        if lab.git(&name, &["for-each-ref"]).is_empty() {
            continue;
        }
        let storage = format!("pulled{at}");
        let pulled = pull(lab, &[], &storage, &name);
        let pulled = if is_done { pulled.exit(0) } else { pulled };
        let whole = lab.run("ce", &["verify", &format!("../{storage}")]).exit(0);
        drop((pulled, whole.says("0 wrong")));
    }
    assert!(ends.iter().sum::<usize>() > 4, "{ends:?}");
}

#[test]
#[cfg(debug_assertions)]
fn a_push_beside_a_collection_is_whole_or_says_what_is_missing() {
    let lab = made();
    pushes_all_or_nothing(&lab, &|| collect_everything(&lab));
}

#[test]
#[cfg(debug_assertions)]
fn a_push_never_has_half_a_directory() {
    let lab = made();
    pushes_all_or_nothing(&lab, &|| begin_to_remove(&lab));
}
