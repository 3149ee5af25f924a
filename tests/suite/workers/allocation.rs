//! Calls of several tasks at a worker in an allocation. Programs that play Slurm start and list the tasks.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;

use super::QUEUED;
use crate::fifo::{Fifo, Never};
use crate::lab::{Lab, files};
use crate::needs::needs;
use crate::program::{Ran, Running};

/// Starts each task as a child.
const SRUN: &str = r#"echo "$*" >>"$FAKE/srun.asked"
while :; do
    case $1 in --ntasks=*) tasks=${1#*=} ;; --chdir=*) cd "${1#*=}" || exit ;; -*) ;; *) break ;; esac
    shift
done
export SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=$tasks
for task in $(seq 0 $((tasks - 1))); do
    SLURM_PROCID=$task SLURM_LOCALID=$task "$@" &
    started="$started $!"
done
for process in $started; do wait $process || worst=$?; done
exit $worst"#;
/// Lists the steps in a file; of jobs, only the worker's own.
const SQUEUE: &str = r#"case $* in *--steps*) cat "$FAKE/steps" ;; *) echo 7 7 ;; esac"#;
/// Ends all steps but one.
const SCANCEL: &str =
    r#"echo "$*" >>"$FAKE/scancel.asked"; printf '%s\n' 7.batch 7.0 >"$FAKE/steps""#;
const SCONTROL: &str = "echo 'ProctrackType           = proctrack/cgroup'";

/// A task with one call, and the programs of a Slurm.
fn lab(resources: &str, script: &str) -> Lab {
    let lab = Lab::task("Inputs: 'x'\n(call INPUT('x'))[0]")
        .computation("call", "x", "y/", script)
        .file("computations/call/resources", resources)
        .with_storage()
        .commit();
    with_slurm(&lab);
    lab
}

/// Makes the programs of a Slurm, which has a step of somebody else's.
fn with_slurm(lab: &Lab) {
    fs::create_dir(lab.path("bin")).unwrap();
    fs::write(lab.path("steps"), "7.batch\n7.0\n").unwrap();
    for (name, script) in
        [("srun", SRUN), ("squeue", SQUEUE), ("scancel", SCANCEL), ("scontrol", SCONTROL)]
    {
        lab.plays(name, script);
    }
}

impl Lab {
    /// Makes a program of Slurm.
    fn plays(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\nFAKE=${{0%/bin/*}}\n{script}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A worker in an allocation of one node.
    fn worker_with(&self, tasks: &str) -> Command {
        let mut worker = self.worker(&[]);
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        worker.env("PATH", path).env("FAKE", self.path("")).env("SLURM_CONF", "/dev/null");
        worker.env("SLURM_JOB_ID", "7").env("SLURM_NNODES", "1").env("SLURM_NTASKS", tasks);
        worker
    }

    /// Lets a worker with three tasks execute the calls of a run.
    #[track_caller]
    fn ce_run_on_tasks(&self) -> Ran<'_> {
        let worker = Running::start(&mut self.worker_with("3"));
        worker.wait_until_it_catches(Signal::TERM);
        let ran = self.ce_run(QUEUED);
        self.dismiss(worker);
        ran
    }

    /// The arguments that a program of Slurm has got.
    fn asked(&self, name: &str) -> String {
        fs::read_to_string(self.path(&format!("{name}.asked"))).unwrap_or_default()
    }

    /// The only record of a call in a room.
    #[track_caller]
    fn record_in(&self, room: &str) -> serde_json::Value {
        let files = files(&self.path("storage"));
        let name = |name: &&String| name.starts_with("c_") && name.contains(&format!("/{room}/"));
        let records: Vec<_> =
            files.keys().filter(name).filter(|it| it.ends_with(".json")).collect();
        let [record] = &records[..] else { panic!("these are records: {records:?}") };
        serde_json::from_slice(&files[*record]).unwrap()
    }
}

#[test]
fn exec_is_started_on_every_task_and_each_status_is_recorded() {
    let script = r#"pwd; echo "$SLURM_NTASKS" >"$2/$SLURM_PROCID""#;
    let lab = lab("tasks 3\ncpus 2\nlauncher srun\n", script);
    lab.ce_run_on_tasks().exit(0).called(vec!["call"; 3]);
    let made: Vec<String> =
        lab.results().into_keys().filter(|name| name.starts_with("c_call/")).collect();
    assert_eq!(made.len(), 3, "{made:?}");
    let executed = &lab.record_in("record")["origin"]["executed"];
    assert_eq!(executed["tasks"].to_string(), "[0,0,0]");
    assert_eq!(
        (executed["isolation"].as_str(), executed["exit_status"].as_i64()),
        (Some("none"), Some(0))
    );
    let srun = lab.asked("srun");
    assert!(srun.starts_with("--ntasks=3 --cpus-per-task=2 --job-name=ce-"), "{srun}");
    assert!(srun.contains(" --kill-on-bad-exit=1 "), "{srun}");
    let shown = lab.run("ce", &["log", "../storage", "--json"]).exit(0).stdout;
    assert!(shown.contains("\"peak_bytes\":null"), "srun is not the call: {shown}");
    assert_eq!(lab.asked("scancel"), "");
    assert!(lab.is_tidy());
}

/// All tasks of a host are in one sandbox, in which they meet, and have what their launcher has set.
#[test]
fn tasks_of_a_host_share_a_sandbox() {
    let script = r#"[ -e "$1" ] && [ ! -e "$HIDDEN" ] && [ -z "$SECRET" ] || exit 3
[ "$(pwd) $(hostname) $HOME $LAUNCHED" = '/tmp sandbox /home/compeval yes' ] || exit 4
touch "/dev/shm/$SLURM_PROCID"
until [ "$(ls /dev/shm | wc -l)" -ge 3 ]; do sleep 0.01; done
echo $$ >"$2/$SLURM_PROCID"; touch "/dev/shm/$SLURM_PROCID.over"
until [ "$(ls /dev/shm | wc -l)" = 6 ]; do sleep 0.01; done
(sleep 1000 &)"#;
    let lab = lab("tasks 3\nlauncher srun\n", script).isolated();
    lab.plays(
        "srun",
        &format!("export LAUNCHED=yes HIDDEN={}\n{SRUN}", lab.path("bin/srun").display()),
    );
    let mut worker = lab.worker_with("3");
    let worker = Running::start(worker.env("SECRET", "hold-off"));
    worker.wait_until_it_catches(Signal::TERM);
    lab.ce_run(QUEUED).exit(0);
    lab.dismiss(worker);
    let made = lab.results().into_iter().filter(|(name, _)| name.starts_with("c_call/"));
    let pids: Vec<String> = made.map(|(_, text)| String::from_utf8(text).unwrap()).collect();
    assert_eq!(pids.len(), 3);
    // They are numbers of a namespace of their own, and differ.
    assert!(pids.iter().all(|pid| pid.trim().parse::<u32>().unwrap() < 1000), "{pids:?}");
    let executed = &lab.record_in("record")["origin"]["executed"];
    assert_eq!(executed["isolation"].as_str(), Some("namespaces"));
    assert!(lab.is_tidy());
}

/// A task takes the files of other processes in its sandbox if it can, and looks for a way out there.
const TAKE: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
taken = []
for process in filter(str.isdigit, os.listdir('/proc')):
    other = libc.syscall(434, int(process), 0)
    for number in range(40):
        if libc.syscall(438, other, number, 0) >= 0: taken.append(number)
    # The first process is ours, and has nothing. Those of other tasks are as this one.
    if process == '1':
        try: taken += os.listdir('/proc/1/fd')
        except OSError: pass
open(sys.argv[1], 'w').write(f'{taken}\n')"#;

#[test]
fn a_task_can_take_no_files_of_visible_processes() {
    needs(&["python3"]);
    let script = format!("python3 - \"$2/$SLURM_PROCID\" <<'END'\n{TAKE}\nEND");
    let lab = lab("tasks 3\nlauncher srun\n", &script).isolated();
    lab.ce_run_on_tasks().exit(0);
    let made = lab.results().into_iter().filter(|(name, _)| name.starts_with("c_call/"));
    let taken: Vec<String> = made.map(|(_, text)| String::from_utf8(text).unwrap()).collect();
    assert_eq!(taken, ["[]\n"; 3]);
    assert_eq!(
        lab.record_in("record")["origin"]["executed"]["isolation"].as_str(),
        Some("namespaces")
    );
}

#[test]
fn tasks_that_cannot_begin_in_their_sandbox_say_why() {
    let lab = lab("tasks 3\nlauncher srun\n", "")
        .file("computations/call/exec", "#!/nowhere/sh\n")
        .isolated()
        .commit_again();
    lab.ce_run_on_tasks().exit(1).says("its exec cannot be started: No such file or directory");
    assert!(lab.is_tidy());
}

#[test]
fn a_task_that_fails_fails_the_call_and_the_message_names_it() {
    let lab = lab("tasks 3\nlauncher srun\n", "[ $SLURM_PROCID != 1 ] || exit 3");
    let ran = lab.ce_run_on_tasks().exit(1).called(vec!["call"; 3]);
    ran.says("failed: task 1 ended with exit status 3");
    let failure = lab.record_in("failed");
    assert_eq!(failure["tasks"].to_string(), "[0,3,0]");
    assert_eq!(failure["exit_status"].as_i64(), Some(3));
    lab.run("ce", &["log", "../storage"]).exit(0).shows("FAILED: task 1 ended with exit status 3");
}

#[test]
fn tasks_that_are_asked_to_end_have_not_failed() {
    // The parent of exec is what notes its status.
    for script in ["kill -TERM $PPID; exit 3", "kill -TERM $$"] {
        let lab = lab("tasks 3\nlauncher srun\n", script);
        lab.ce_run_on_tasks().exit(3).says("it was lost: its launcher failed");
        assert!(!lab.storage().iter().any(|name| name.contains("/failed")), "{script}");
    }
}

#[test]
fn a_task_that_was_killed_alone_has_failed() {
    // The kernel does so for lack of memory.
    let script = "[ $SLURM_PROCID != 1 ] || kill -KILL $$; touch \"$2/$SLURM_PROCID\"";
    let lab = lab("tasks 3\nlauncher srun\n", script);
    lab.ce_run_on_tasks().exit(1).says("failed: task 1 ended with exit status 137");
}

#[test]
fn a_killed_launcher_leaves_no_recorded_failure() {
    // The output that its tasks write to is closed then.
    let lab = lab("tasks 3\nlauncher srun\n", "exit 3");
    lab.plays("srun", &format!("{}\nkill -KILL $$", SRUN.trim_end_matches("exit $worst")));
    lab.ce_run_on_tasks().exit(3).says("it was lost: its launcher failed");
}

#[test]
fn a_launcher_that_starts_nothing_is_not_the_fault_of_the_call() {
    let lab = lab("tasks 3\nlauncher srun\n", "");
    lab.plays("srun", "echo 'srun: error: Unable to create step' >&2; exit 1");
    let ran = lab.ce_run_on_tasks().exit(3).called(vec![]);
    ran.says("it was lost: its launcher failed: srun: error: Unable to create step");
}

#[test]
fn without_a_launcher_exec_has_the_allocation_and_its_steps_end_with_it() {
    // It leaves a step behind. That of somebody else goes on.
    let script = r#"[ "$SLURM_NTASKS" = 3 ] && printf '%s\n' 7.batch 7.0 7.1 7.2 >"$FAKE/steps""#;
    let lab = lab("tasks 3\n", script);
    let ran = lab.ce_run_on_tasks().exit(0).called(vec!["call"]);
    assert_eq!(
        lab.asked("scancel").lines().next(),
        Some("--quiet --signal=KILL 7.1"),
        "{}",
        ran.stderr
    );
    assert_eq!(lab.asked("srun"), "");
    assert!(lab.record_in("record")["origin"]["executed"].get("tasks").is_none());
}

#[test]
fn a_stage_is_not_used_again_while_slurm_does_not_answer() {
    let lab = lab("tasks 3\nlauncher srun\n", r#"echo done >"$2/$SLURM_PROCID""#);
    lab.plays("squeue", "exit 1");
    lab.ce_run_on_tasks().exit(0).called(vec!["call"; 3]);
    assert_eq!(lab.results().keys().filter(|name| name.starts_with("c_call/")).count(), 3);
}

/// Lists the steps that a job has by now, which is an element of an array beside another one.
const SQUEUE_OF_ARRAY: &str = r#"case $* in
*--steps*--jobs=7_2) sed -n /7_2/p "$FAKE/steps" ;;
*--steps*) cat "$FAKE/steps" ;;
*) printf '%s\n' '7 7_2' '8 7_1' ;;
esac"#;
/// Ends a step.
const SCANCEL_ONE: &str = r#"echo "$*" >>"$FAKE/scancel.asked"
for step; do :; done; grep -vxF "$step" "$FAKE/steps" >"$FAKE/left"; mv "$FAKE/left" "$FAKE/steps""#;

#[test]
fn an_element_of_an_array_ends_its_own_steps_and_no_others() {
    // The array has the number of its last element.
    let script = r#"printf '%s\n' 7_2.batch 7_2.0 7_1.batch 7_1.0 7_1.1 >"$FAKE/steps""#;
    let lab = lab("tasks 3\n", script);
    lab.plays("squeue", SQUEUE_OF_ARRAY);
    lab.plays("scancel", SCANCEL_ONE);
    lab.ce_run_on_tasks().exit(0).called(vec!["call"]);
    assert_eq!(lab.asked("scancel").lines().last(), Some("--quiet --signal=KILL 7_2.0"));
    assert!(!lab.asked("scancel").contains("7_1"), "{}", lab.asked("scancel"));
}

#[test]
fn a_job_submitted_by_an_array_element_is_not_an_array_element() {
    let script = r#"printf '%s\n' 7.batch 7.0 7.1 >"$FAKE/steps""#;
    let lab = lab("tasks 3\n", script);
    let mut worker = lab.worker_with("3");
    // Slurm leaves it these.
    worker.env("SLURM_ARRAY_JOB_ID", "3").env("SLURM_ARRAY_TASK_ID", "1");
    let worker = Running::start(&mut worker);
    worker.wait_until_it_catches(Signal::TERM);
    lab.ce_run(QUEUED).exit(0);
    lab.dismiss(worker);
    assert_eq!(lab.asked("scancel").lines().next(), Some("--quiet --signal=KILL 7.1"));
}

#[test]
fn no_step_is_cancelled_if_slurm_did_not_list_the_steps_before() {
    let script = r#"printf '%s\n' 7.batch 7.0 7.1 >"$FAKE/steps"; touch "$FAKE/up""#;
    let lab = lab("tasks 3\n", script);
    lab.plays("squeue", &format!("[ -e \"$FAKE/up\" ] || exit 1\n{SQUEUE}"));
    lab.ce_run_on_tasks().exit(0).called(vec!["call"]);
    assert_eq!(lab.asked("scancel"), "");
}

#[test]
fn a_call_of_one_process_does_not_see_the_allocation() {
    let script = r#"env | grep ^SLURM | sort >"$2/all"; true"#;
    let lab = lab("", script);
    lab.ce_run_on_tasks().exit(0);
    let seen = lab.results().into_iter().find(|(name, _)| name.ends_with("/all")).unwrap().1;
    assert_eq!(String::from_utf8(seen).unwrap(), "SLURM_CONF=/dev/null\n");
}

#[test]
fn a_worker_submitted_for_several_tasks_takes_no_other_calls() {
    let text = "Inputs: 'x'\n(one (call INPUT('x'))[0])[0]";
    let lab = Lab::task(text)
        .computation("one", "y", "z", "[ -z \"${FAKE-}\" ] && cat \"$1/done\" >\"$2\"")
        .computation("call", "x", "y/", "echo $SLURM_NTASKS >\"$2/done\"")
        .file("computations/call/resources", "tasks 3\n")
        .with_storage()
        .commit();
    with_slurm(&lab);
    let mut wide = lab.worker_with("3");
    let wide = Running::start(
        wide.env("SLURM_JOB_NAME", "ce-0123456789abcdef").env("SLURM_ARRAY_TASK_ID", "1"),
    );
    wide.wait_until_it_catches(Signal::TERM);
    let run = Running::start(&mut lab.evaluation(QUEUED));
    let waits =
        |run: PathBuf| fs::read_dir(run.join("queue/cpus=1")).is_ok_and(|it| it.count() > 0);
    let runs = || fs::read_dir(lab.path("storage/tmp")).into_iter().flatten().flatten();
    while !runs().any(|run| waits(run.path())) {
        std::thread::yield_now();
    }
    let narrow = lab.serve(&["--no-isolate"]);
    narrow.wait_until_it_catches(Signal::TERM);
    Ran::new(&lab, run.output()).exit(0).called(vec!["call", "one"]);
    assert_eq!(lab.output(), "3\n");
    lab.dismiss(wide);
    lab.dismiss(narrow);
}

#[test]
fn a_launcher_ends_with_its_worker() {
    let lab = lab("tasks 3\nlauncher srun\n", "");
    let [meet, wait] = ["meet", "wait"].map(|name| lab.path(name));
    let (fifo, never) = (Fifo::new(&meet), Never::new(wait));
    let script = r#"exec >"$FAKE/meet"; trap 'echo asked to end; exit 1' TERM; cat "$FAKE/wait" & echo here; wait"#;
    lab.plays("srun", script);
    let run = Running::start(&mut lab.evaluation(QUEUED));
    let worker = Running::start(&mut lab.worker_with("3"));
    assert_eq!(fifo.line(), "here");
    worker.signal(Signal::KILL);
    worker.output();
    assert_eq!(fifo.line(), "asked to end");
    never.let_go();
    run.signal(Signal::INT);
    run.signal(Signal::INT);
    Ran::new(&lab, run.output()).exit(130);
}

#[test]
fn workers_without_a_suitable_allocation_leave_the_call_with_a_message() {
    for (tasks, shape) in
        [("tasks 3\n", "cpus=1,tasks=3"), ("launcher srun\n", "cpus=1,launcher=srun")]
    {
        let lab = lab(tasks, "");
        let workers = [lab.serve(&[]), Running::start(&mut lab.worker_with("2"))];
        workers.iter().for_each(|worker| worker.wait_until_it_catches(Signal::TERM));
        let fifo = Fifo::new(&lab.path("told"));
        let told = File::options().write(true).open(lab.path("told")).unwrap();
        let run = Running::start(lab.evaluation(QUEUED).stderr(told));
        let text = format!("no worker has an allocation for {shape}; such calls wait");
        while !fifo.line().contains(&text) {}
        run.signal(Signal::INT);
        Ran::new(&lab, run.output()).exit(130).called(vec![]);
        for worker in workers {
            lab.dismiss(worker);
        }
    }
}

#[test]
fn a_call_with_a_root_is_refused_in_an_allocation() {
    let lab = lab("tasks 3\n", "").isolated().file("computations/call/access", "root x\n");
    let lab = lab.commit_again();
    let ran = lab.ce_run(QUEUED).exit(2).called(vec![]);
    ran.says("it starts tasks itself, so it is not isolated, and its root is the input x");
}
