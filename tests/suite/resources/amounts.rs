//! Processors, memory, time and other resources: calls that fit at the same time, and calls that never fit.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::fifo::Never;
use crate::isolation;
use crate::lab::{Lab, Library};

/// Returns the resources that calls have requested, by their computations, as their records say.
pub(super) fn asked(lab: &Lab) -> BTreeMap<String, Vec<String>> {
    let mut asked = BTreeMap::<String, Vec<String>>::new();
    for name in lab.storage().iter().filter(|it| it.starts_with("c_") && it.contains("/record/")) {
        let record: Value = serde_json::from_str(&lab.stored(name)).unwrap();
        let lines = &record["origin"]["executed"]["resources"];
        let lines = lines.as_array().map_or(&[][..], Vec::as_slice);
        let lines: Vec<&str> = lines.iter().map(|line| line.as_str().unwrap()).collect();
        let computation = record["computation"].as_str().unwrap().to_owned();
        asked.entry(computation).or_default().push(lines.join(", "));
    }
    asked.values_mut().for_each(|lines| lines.sort());
    asked
}

/// A task with independent calls, each with its requested resources.
fn calls(asked: &[&str]) -> Lab {
    let names: Vec<String> = (0..asked.len()).map(|number| format!("c{number}")).collect();
    let arguments: String = names.iter().map(|name| format!(" ({name} INPUT('x'))[0]")).collect();
    let all = format!(r#"echo all >"${{{}}}""#, asked.len() + 1);
    let mut lab = Lab::task(&format!("Inputs: 'x'\n(all{arguments})[0]")).computation(
        "all",
        &names.join(" "),
        "y",
        &all,
    );
    for (name, line) in names.iter().zip(asked) {
        lab = lab.noting(name, "for n in 1 2 3; do cat \"$0\" >/dev/null; done");
        lab = lab.file(&format!("workflow/inputs/0{}-{name}/resources", &name[1..]), line);
    }
    lab.commit_with(Library::Submodule)
}

/// The greatest sum of what calls that are in progress together take.
fn most(notes: &[String], takes: impl Fn(usize) -> u32) -> u32 {
    let (mut sum, mut most) = (0, 0);
    for note in notes {
        let (word, name) = note.split_once(' ').unwrap();
        let taken = takes(name[1..].parse().unwrap());
        sum = if word == "begin" { sum + taken } else { sum - taken };
        most = most.max(sum);
    }
    most
}

#[test]
fn no_more_cpus_are_taken_than_there_are() {
    let cpus = [1, 2, 3, 4, 1, 2, 3, 1];
    let lines = cpus.map(|cpus| format!("cpus {cpus}\n"));
    let lab = calls(&lines.each_ref().map(String::as_str));
    lab.finish(&mut lab.noted(&["-j4"])).exit(0).says("9 calls: 9 computed");
    assert!(most(&lab.notes(), |number| cpus[number]) <= 4);
}

#[test]
fn a_request_that_never_fits_is_reported_before_any_call_runs() {
    for (line, says, hint) in [
        ("cpus 5", "asks for 5 cpus, and only 4 may be used", "give -j 5"),
        ("memory 9999T", "asks for 9.8 PiB of memory, and this host has", "more memory"),
        ("gpus 3", "asks for 3 gpus, and this host has 2", "CUDA_VISIBLE_DEVICES"),
        ("nodes 2", "asks for 2 nodes, and an execution has one", "cluster"),
        ("tasks 64", "asks for 64 tasks, and an execution starts one", "cluster"),
        (
            "launcher srun",
            "asks for the launcher srun, and an execution starts one process",
            "cluster",
        ),
    ] {
        let lab = calls(&["cpus 4\nnodes 1\ntasks 1\n", line]);
        let run = |lab: &Lab, jobs: &str, gpus: &str, code: i32| {
            let mut command = lab.evaluation(&[jobs]);
            let ran = lab.finish(command.env("CUDA_VISIBLE_DEVICES", gpus)).exit(code);
            (ran.stdout, ran.stderr)
        };
        let (stdout, stderr) = run(&lab, "-j4", "0,1", 2);
        let told = format!("nothing is executed: c1 (c1): it {says}");
        assert!(stderr.contains(&told) && stderr.contains(hint), "{stderr}");
        assert_eq!((stdout.as_str(), lab.called()), ("", vec![]));
        lab.ce_run(&["-n"]).exit(3);
        // A call with a result needs nothing.
        let lab = lab.without("workflow/inputs/01-c1/resources").commit_again();
        run(&lab, "-j4", "", 0);
        let lab = lab.file("workflow/inputs/01-c1/resources", line).commit_again();
        lab.called();
        let names: Vec<String> = lab.results().into_keys().collect();
        let name = names.iter().find(|name| name.starts_with("c_c1/")).unwrap();
        lab.ce_run(&["-j1", "--force", name]).exit(2).says("nothing is executed").called(vec![]);
        lab.ce_run(&["-j1"]).exit(0).called(vec![]);
    }
}

#[test]
fn more_cpus_than_the_host_has_may_be_used() {
    let lab = calls(&["cpus 500\n"]);
    lab.ce_run(&["-j500"]).exit(0).called(vec!["all", "c0"]);
    assert_eq!(asked(&lab)["c0"], ["cpus 500"]);
}

#[test]
fn resources_of_a_node_override_the_task_and_the_computation() {
    let lab = calls(&["cpus 1\n", "memory 1M\n", ""])
        .without("workflow/inputs/02-c2/resources")
        .file("resources", "c0 cpus 2\nc0 memory 2M\nc1 memory 2M\nc2 exclusive\n")
        .commit_again();
    let default = "cpus 3\nmemory 3M\ntime 3h\n";
    let names = ["c0", "c1", "c2"].map(|name| format!("computations/{name}/resources"));
    let lab = names.iter().fold(lab, |lab, name| lab.file(name, default));
    lab.ce_run(&["-j4", "--dirty"]).exit(0);
    let asked = asked(&lab);
    assert_eq!(asked["c0"], ["cpus 1, memory 2M, time 3h"]);
    assert_eq!(asked["c1"], ["cpus 3, memory 1M, time 3h"]);
    assert_eq!(asked["c2"], ["cpus 3, memory 3M, time 3h, exclusive"]);
    assert_eq!(asked["all"], [""]);
}

#[test]
fn nodes_that_are_one_call_get_the_maximum_of_each() {
    let lab = Lab::task(
        "Inputs: 'x'\n(add (mul INPUT('x') INPUT('x'))[0] (mul INPUT('x') INPUT('x'))[00])[0]",
    );
    let dirs: Vec<String> = fs::read_dir(lab.path("task/workflow/inputs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let [one, other] = [0, 1].map(|at| format!("workflow/inputs/{}/resources", dirs[at]));
    let lab = lab.file(&one, "cpus 2\nmemory 1M\n").file(&other, "cpus 1\nexclusive\n").commit();
    lab.ce_run(&["-j2"]).exit(0).called(vec!["add", "mul"]);
    assert_eq!(asked(&lab)["mul"], ["cpus 2, memory 1M, exclusive"]);
}

#[test]
fn a_call_sees_only_its_own_gpus() {
    for is_isolated in [false, true] {
        let script = r#"echo "${CUDA_VISIBLE_DEVICES-none}" >"$2""#;
        let lab = Lab::task(
            "Inputs: 'x'\n(all (one INPUT('x'))[0] (two INPUT('x'))[0] (none INPUT('x'))[0])[0]",
        )
        .computation("one", "x", "y", script)
        .computation("two", "x", "y", script)
        .computation("none", "x", "y", script)
        .computation("all", "a b c", "y", r#"cat "$1" "$2" "$3" >"$4""#)
        .file("resources", "one gpus 1\ntwo gpus 2\n")
        .commit();
        let lab = if is_isolated { lab.isolated() } else { lab };
        if is_isolated && !isolation::is_possible() {
            return;
        }
        let mut command = lab.evaluation(&["-j3"]);
        lab.finish(command.env("CUDA_VISIBLE_DEVICES", "3,5").env_remove("LAB_LOG")).exit(0);
        let rest = if is_isolated { "none" } else { "3,5" };
        let output = lab.output();
        let lines: Vec<&str> = output.lines().collect();
        assert!(["3", "5"].contains(&lines[0]), "{output}");
        assert_eq!(lines[1..], ["3,5", rest]);
    }
}

#[test]
fn the_smaller_time_limit_counts() {
    let lab = Lab::task("Inputs: 'x'\n(wait INPUT('x'))[0]")
        .computation("wait", "x", "y", r#"cat "$LAB_WAIT" >"$2""#)
        .file("resources", "wait time 100ms\n")
        .commit();
    let never = Never::new(lab.path("never"));
    let run = |options: &[&str]| {
        let mut command = lab.evaluation(options);
        lab.finish(command.env("LAB_WAIT", lab.path("never"))).exit(1)
    };
    run(&[]).says("timed out after 0.1 s");
    run(&["--timeout", "1h"]).says("timed out after 0.1 s");
    run(&["--timeout", "50ms"]).says("timed out after 0.05 s");
    drop(never);
}
