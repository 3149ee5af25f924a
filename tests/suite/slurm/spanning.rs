//! Calls of several hosts and tasks: allocations of their shape, steps on every task, and the end of these steps.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use super::cluster::{Cluster, wait_for};
use crate::fifo::{Fifo, Never};
use crate::lab::{Lab, files};
use crate::program::{Ran, Running};

/// Two hosts with two tasks each.
const WIDE: &str = "nodes 2\ntasks 4\n";

/// A task with one call, which makes a directory.
fn one_call(resources: &str, script: &str) -> Lab {
    Lab::task("Inputs: 'x'\n(call INPUT('x'))[0]")
        .computation("call", "x", "y/", script)
        .file("computations/call/resources", resources)
        .with_storage()
        .commit()
}

/// The files that the call has made, by their names in its output.
fn made(lab: &Lab) -> Vec<(String, String)> {
    let results = lab.results().into_iter().filter(|(name, _)| name.starts_with("c_call/"));
    let named = |(name, text): (String, Vec<u8>)| {
        let (_, name) = name.rsplit_once('/').unwrap();
        (name.to_owned(), String::from_utf8(text).unwrap())
    };
    results.map(named).collect()
}

/// The only record of the call in a room.
#[track_caller]
fn record(lab: &Lab, room: &str) -> serde_json::Value {
    let files = files(&lab.path("storage"));
    let room = format!("/{room}/");
    let is_record = |name: &&String| name.contains(&room) && name.ends_with(".json");
    let records: Vec<_> =
        files.keys().filter(|it| it.starts_with("c_")).filter(is_record).collect();
    let [record] = &records[..] else { panic!("these are records: {records:?}") };
    serde_json::from_slice(&files[*record]).unwrap()
}

#[test]
fn every_task_writes_and_the_directory_is_published_once() {
    let Some(cluster) = Cluster::shared() else { return };
    let script = r#"echo "$SLURM_NTASKS" >"$2/$SLURM_PROCID"; echo "$SLURMD_NODENAME""#;
    let lab = one_call(&format!("{WIDE}launcher srun\n"), script).isolated();
    let ran = lab.ce_run_on(cluster, &[]).exit(0);
    assert!(!ran.stderr.contains("not isolated"), "{}", ran.stderr);
    lab.is_left_alone_by(cluster);
    let expected = ["0", "1", "2", "3"].map(|task| (task.to_owned(), "4\n".to_owned()));
    assert_eq!(made(&lab), expected);
    let executed = &record(&lab, "record")["origin"]["executed"];
    assert_eq!(executed["tasks"].to_string(), "[0,0,0,0]");
    assert_eq!(executed["isolation"].as_str(), Some("namespaces"));
    let logs = files(&lab.path("storage"));
    let (_, log) = logs.iter().find(|(name, _)| name.contains("/log/")).unwrap();
    let log = String::from_utf8_lossy(log);
    let mut hosts: Vec<&str> = log.lines().map(|line| line.split_once(": ").unwrap().1).collect();
    hosts.sort_unstable();
    hosts.dedup();
    assert_eq!(hosts.len(), 2, "{log}");
    lab.ce_run(&[]).exit(0).called(vec![]);
}

#[test]
fn tasks_of_every_host_find_what_has_a_path_of_its_own() {
    let Some(cluster) = Cluster::shared() else { return };
    let text = "prefix: -> made/
    #CE access at /opt/made made
    echo 'knows /opt/made' > /opt/made/text; ln -s /opt/made/text $out_made/link

call: prefix/ -> y/
    #CE resources nodes 2
    #CE resources tasks 4
    #CE resources launcher srun
    #CE access at /opt/made prefix
    #CE access at /opt/y y
    cat /opt/made/link > /opt/y/$SLURM_PROCID; echo $1 $in_prefix $out_y >> $2/$SLURM_PROCID

(call (prefix))
";
    let lab = Lab::empty().isolated().one_text(text).with_storage().commit();
    lab.ce_run_on(cluster, &[]).exit(0);
    lab.is_left_alone_by(cluster);
    let expected = ["0", "1", "2", "3"].map(|task| {
        let said = "knows /opt/made\n/opt/made /opt/made /opt/y\n";
        (task.to_owned(), said.to_owned())
    });
    assert_eq!(made(&lab), expected);
}

#[test]
fn a_task_that_fails_ends_the_others_and_is_named() {
    let Some(cluster) = Cluster::shared() else { return };
    // The others wait until they are ended.
    let script = r#"[ $SLURM_PROCID != 2 ] || exit 3; cat "$LAB_WAIT""#;
    let lab = one_call(&format!("{WIDE}launcher srun\n"), script);
    let never = Never::new(lab.path("wait"));
    let mut run = lab.on(cluster, &[]);
    let ran = Ran::new(&lab, Running::start(run.env("LAB_WAIT", lab.path("wait"))).output());
    let ran = ran
        .exit(1)
        .says("failed: task 2 ended with exit status 3; the launcher ended 3 of 4 tasks");
    ran.says("srun: error: ");
    let failure = record(&lab, "failed");
    let tasks = failure["tasks"].as_array().unwrap();
    assert_eq!((tasks.len(), tasks[2].as_i64()), (4, Some(3)), "{failure}");
    assert_eq!(failure["exit_status"].as_i64(), Some(3));
    lab.run("ce", &["log", "../storage"]).exit(0).shows("FAILED: task 2 ended with exit status 3");
    lab.is_left_alone_by(cluster);
    drop(never);
}

#[test]
fn exec_without_a_launcher_sees_the_allocation_and_starts_steps_itself() {
    let Some(cluster) = Cluster::shared() else { return };
    // It leaves one behind, which ends with it.
    let script = r#"srun --input=none --ntasks=4 --nodes=2 sh -c 'echo "$SLURM_NNODES $SLURM_NTASKS" >"$0/$SLURM_PROCID"' "$2" || exit
srun --input=none --ntasks=1 --nodes=1 sh -c 'exec 9>"$LAB_MEET"; mkdir "$LAB_ONCE"; cat "$LAB_WAIT"' &
until [ -d "$LAB_ONCE" ]; do sleep 0.1; done"#;
    let lab = one_call(WIDE, script);
    let (mut run, fifo, never) = lab.holding_on(cluster);
    Ran::new(&lab, Running::start(&mut run).output()).exit(0).called(vec!["call"]);
    let expected = ["0", "1", "2", "3"].map(|task| (task.to_owned(), "2 4\n".to_owned()));
    assert_eq!(made(&lab), expected);
    fifo.end();
    drop(never);
    lab.is_left_alone_by(cluster);
}

#[test]
fn a_time_limit_ends_all_tasks() {
    let Some(cluster) = Cluster::shared() else { return };
    let resources = format!("{WIDE}launcher srun\ntime 1s\n");
    let lab = one_call(&resources, r#"trap '' TERM; cat "$LAB_WAIT""#);
    let never = Never::new(lab.path("wait"));
    let mut run = lab.on(cluster, &[]);
    let ran = Ran::new(&lab, Running::start(run.env("LAB_WAIT", lab.path("wait"))).output());
    ran.exit(1).says("it timed out after 1 s");
    lab.is_left_alone_by(cluster);
    drop(never);
    // In a sandbox, which ends with its tasks.
    let lab = one_call(&resources, "trap '' TERM; sleep 1000 & wait").isolated();
    lab.ce_run_on(cluster, &[]).exit(1).says("it timed out after 1 s");
    lab.is_left_alone_by(cluster);
}

/// A worker in an allocation of the user's that gets a signal while its call is executed. The allocation goes on after it.
#[track_caller]
fn after(signal: Signal) {
    let Some(cluster) = Cluster::shared() else { return };
    let script = r#"trap '' TERM INT; exec 9>"$LAB_MEET"; echo here >&9; cat "$LAB_WAIT""#;
    let lab = one_call(&format!("{WIDE}launcher srun\n"), script);
    let (fifo, never) = (Fifo::new(&lab.path("meet")), Never::new(lab.path("wait")));
    let held = Never::new(lab.path("held"));
    let job = lab.path("job");
    let (root, program) = (lab.path("").display().to_string(), env!("CARGO_BIN_EXE_ce"));
    let text = format!(
        "#!/bin/sh\nexport LAB_MEET={root}meet LAB_WAIT={root}wait HOME={root}home XDG_CACHE_HOME={root}cache\n\
         {program} worker --no-isolate --idle 10h storage & echo $! >pid.new && mv pid.new pid && wait $!\ncat held\n"
    );
    fs::write(&job, text).unwrap();
    let run = Running::start(&mut lab.evaluation(&["--on", "workers"]));
    let [script, output] = [job.display().to_string(), format!("--output={root}job.log")];
    let place = format!("--chdir={root}");
    let shape = ["--parsable", "--nodes=2", "--ntasks=4", &output, &place, &script];
    let number = cluster.ask("sbatch", &shape);
    let heard: Vec<String> = (0..4).map(|_| fifo.line()).collect();
    assert_eq!(heard, ["here"; 4]);
    let pid: i32 = fs::read_to_string(lab.path("pid")).unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    // All processes of all tasks are gone, and the job is not.
    fifo.end();
    let steps = ["--noheader", "--steps", "--format=%i", "--jobs", number.trim()];
    wait_for("end of the step", || {
        let steps = cluster.ask("squeue", &steps);
        (steps.lines().eq([format!("{}.batch", number.trim())])).then_some(())
    });
    held.let_go();
    run.signal(Signal::INT);
    run.signal(Signal::INT);
    Ran::new(&lab, run.output()).exit(130);
    drop(never);
    wait_for("end of the job", || cluster.jobs_in(&lab.path("")).is_empty().then_some(()));
}

#[test]
fn an_interrupted_worker_leaves_no_step() {
    after(Signal::TERM);
}

#[test]
fn a_killed_worker_leaves_no_step() {
    after(Signal::KILL);
}

/// Two workers of one array. The one with the array's number ends a call while the other one has a step that began later.
#[track_caller]
fn steps_of_an_array(cluster: &Cluster) {
    let script = r#"exec 9>"$LAB_MEET"; read -r text <"$1"
echo "$SLURM_JOB_ID $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $text" >&9
until [ -e "$LAB_WAIT.$text" ]; do sleep 0.1; done; touch "$2/$SLURM_PROCID""#;
    let call = |input: &str| format!("(call INPUT('{input}'))[0]");
    let [x, y, z] = ["x", "y", "z"].map(call);
    let lab = Lab::task(&format!("Inputs: 'x', 'y', 'z'\n(all {x} {y} {z})[0]"))
        .computation("call", "x", "y/", script)
        .computation("all", "a b c", "all", r#"ls "$1" "$2" "$3" >"$4""#)
        .file("computations/call/resources", "nodes 2\ntasks 2\nlauncher srun\n")
        .with_storage()
        .commit()
        .set("workers", "2");
    let fifo = Fifo::new(&lab.path("meet"));
    let mut run = lab.on(cluster, &[]);
    run.env("LAB_MEET", lab.path("meet")).env("LAB_WAIT", lab.path("wait"));
    let run = Running::start(&mut run);
    // One line for each of two tasks.
    let heard = |calls: usize| {
        let lines: BTreeSet<String> = (0..2 * calls).map(|_| fifo.line()).collect();
        let calls = lines.iter().map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        calls.collect::<Vec<_>>()
    };
    let let_go = |call: &[String]| fs::write(lab.path(&format!("wait.{}", call[3])), "").unwrap();
    let has_results = |count: usize| {
        wait_for("result", || {
            let is_record =
                |name: &&String| name.starts_with("c_call/") && name.contains("/record/");
            (lab.storage().iter().filter(is_record).count() == count).then_some(())
        });
    };
    let begun = heard(2);
    let is_array = |call: &&Vec<String>| call[0] == call[1];
    let (array, element): (Vec<_>, Vec<_>) = begun.iter().partition(is_array);
    let ([array], [element]) = (&array[..], &element[..]) else { panic!("{begun:?}") };
    assert_eq!((&array[1], array[2] == element[2]), (&element[1], false));
    let_go(element);
    let later = heard(1).remove(0);
    assert_eq!(later[..3], element[..3]);
    has_results(1);
    let_go(array);
    has_results(2);
    let_go(&later);
    Ran::new(&lab, run.output()).exit(0).called([vec!["call"; 6], vec!["all"]].concat());
    lab.is_left_alone_by(cluster);
}

/// A longer form: `CE_ROUNDS=10 cargo test --test suite workers_of_one_array`.
#[test]
fn workers_of_one_array_end_their_own_steps_only() {
    let Some(cluster) = Cluster::shared() else { return };
    let rounds = std::env::var("CE_ROUNDS").map_or(1, |rounds| rounds.parse().unwrap());
    (0..rounds).for_each(|_| steps_of_an_array(cluster));
}
