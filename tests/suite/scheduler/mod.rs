//! Workers that commands of the user start: on a scheduler of a few lines of shell, which fails in all ways; on a Slurm that is not known
//! to be one; and on Grid Engine.

mod gridengine;
mod slurm;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::fifo::{Fifo, Never};
use crate::lab::Lab;
use crate::program::{Ran, Running};
use crate::slurm::{MEET, one_call, wait_for};

/// A sum of products, in which two calls are the same.
const SUM: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] (add (mul INPUT('x') INPUT('y'))[0] INPUT('x'))[0])[0]";

/// Queues a job, with the environment of the run.
const START: &str = r#"echo "$@" >>"$LAB_STARTS"
id=job.$$; cd "$LAB_QUEUE" && export -p >"$id.env" && echo "$2" "$3" >"$id.put" && mv "$id.put" "$id.new" && echo "$id""#;
/// Puts a job where it waits for ever.
const HOLD: &str = r#"id=job.$$; touch "$LAB_QUEUE/$id" && echo "$id""#;
/// Prints the jobs that wait or run.
const POLL: &str = r#"cd "$LAB_QUEUE" && for id; do
    if [ -e "$id.new" ] || [ -e "$id" ]; then echo "$id is there"; fi
done"#;
const CANCEL: &str =
    r#"cd "$LAB_QUEUE" && rm "$1.new" 2>/dev/null || kill "$(cat "$1.pid")" || rm "$1""#;
/// Executes jobs as long as there is a queue. It is no child of a run, which would end it.
const DAEMON: &str = r#"cd "$1" && while [ -d "$1" ]; do
    for new in job.*.new; do
        id=${new%.new}
        mv "$new" "$id" 2>/dev/null || continue
        read -r script log <"$id"
        (. "./$id.env"; sh -c 'echo $$ >"$3"; exec "$1" >"$2" 2>&1' - "$script" "$log" "$id.pid"; rm "$id") &
    done
    sleep 0.05
done"#;

impl Lab {
    /// Sets the three commands.
    pub(super) fn commanding(self, start: &str, poll: &str, cancel: &str) -> Self {
        for (name, command) in [("start", start), ("poll", poll), ("cancel", cancel)] {
            let name = format!("compeval.scheduler.{name}");
            self.git("task", &["config", "--global", &name, command]);
        }
        self
    }

    /// A scheduler of these scripts.
    fn scheduling(self, start: &str, poll: &str, cancel: &str) -> Self {
        let queue = self.path("queue");
        fs::create_dir(&queue).unwrap();
        let mut daemon = Command::new("sh");
        let daemon = daemon.args(["-c", &format!("{{ {DAEMON}\n}} &"), "-"]).arg(queue);
        let daemon = daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(daemon.process_group(0).status().unwrap().success());
        let [start, poll, cancel] =
            [("start", start), ("poll", poll), ("cancel", cancel)].map(|(name, script)| {
                let path = self.path(name);
                fs::write(&path, format!("{script}\n")).unwrap();
                format!("sh {}", path.display())
            });
        let words = "{name} {script} {log} {cpus} {memory=512} {gpus} {minutes} {seconds}";
        let [start, poll] = [format!("{start} {words}"), format!("{poll} {{ids}}")];
        self.commanding(&start, &poll, &format!("{cancel} {{id}}"))
    }

    /// Types the settings that the documentation has for a scheduler, with another option of its `qsub`.
    fn configured(self, scheduler: &str, option: &str) -> Self {
        let guide = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/clusters.md"));
        let guide = guide.unwrap();
        let section = guide.split(&format!("\n{scheduler}")).nth(1).unwrap();
        let is_command = |line: &&str| line.starts_with("    git config --global compeval.");
        let lines = section.lines().skip_while(|line| !is_command(line));
        let lines: Vec<&str> = lines.take_while(is_command).collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        let commands = lines.join("\n").replace("qsub ", &format!("qsub {option} "));
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", &commands]).env("HOME", self.path("home"));
        assert!(shell.current_dir(self.path("task")).status().unwrap().success());
        self
    }

    /// A run whose workers are started by the commands, and that waits for them a twentieth of the time.
    pub(super) fn commanded(&self) -> Command {
        let mut run = self.evaluation(&["--on", "scheduler"]);
        run.env("LAB_STARTS", self.path("starts")).env("LAB_QUEUE", self.path("queue"));
        run.env("CE_HASTE", "20");
        run
    }

    #[track_caller]
    fn ce_run_commanded(&self) -> Ran<'_> {
        let ran = Ran::new(self, Running::start(&mut self.commanded()).output());
        wait_for("tidy storage", || self.is_tidy().then_some(()));
        ran
    }

    /// The words with which each worker was started.
    fn starts(&self) -> Vec<Vec<String>> {
        let text = fs::read_to_string(self.path("starts")).unwrap_or_default();
        text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
    }

    /// A run, whose messages are read line by line.
    fn told(&self) -> (Command, Fifo) {
        let (mut run, fifo) = (self.commanded(), Fifo::new(&self.path("says")));
        run.stderr(fs::File::options().write(true).open(self.path("says")).unwrap());
        (run, fifo)
    }
}

#[test]
fn workers_started_by_commands_agree_with_a_local_run() {
    for isolated in [false, true] {
        let [here, there] = [(); 2].map(|()| {
            let lab = Lab::task(SUM).with_storage();
            if isolated { lab.isolated() } else { lab }.commit()
        });
        let expected = here.ce_run(&[]).exit(0);
        let there = there.scheduling(START, POLL, CANCEL);
        let ran = there.ce_run_commanded().exit(0);
        assert_eq!((ran.stdout, ran.stderr), (expected.stdout, expected.stderr));
        assert!(there.results() == here.results(), "isolated: {isolated}");
        assert_eq!(there.called(), here.called());
    }
}

#[test]
fn the_start_command_gets_the_requested_resources() {
    let resources = "call cpus 3\ncall memory 5000001K\ncall gpus 0\ncall time 2h\n";
    let lab = one_call("").file("resources", resources.replace("call gpus 0\n", "")).commit_again();
    let lab = lab.scheduling(START, POLL, CANCEL);
    lab.ce_run_commanded().exit(0).called(vec!["call"]);
    let starts = lab.starts();
    let [words] = &starts[..] else { panic!("{starts:?}") };
    assert_eq!(words[3..], ["3", "4883", "0", "125", "7500"], "cpus, MiB, gpus, minutes, seconds");
    let script = format!("home/.local/state/compeval/workers/{0}/{0}_1.sh", words[0]);
    assert_eq!(words[1], lab.path(&script).to_str().unwrap());
    assert!(words[2].ends_with(&format!("/scheduler/{}_1.log", words[0])), "{words:?}");

    let lab = one_call("").scheduling(START, POLL, CANCEL);
    lab.ce_run_commanded().exit(0);
    assert_eq!(
        lab.starts()[0][3..],
        ["1", "512", "0", "60", "3600"],
        "a call that asks for nothing"
    );
}

#[test]
fn nobody_else_can_change_the_script_of_a_worker() {
    let seen = r#"{ stat -c %a "$2" "${2%/*}" "${2%/*/*}"; cmp - "$2" && echo the same; } >"$LAB_QUEUE/../seen""#;
    let lab = one_call("").scheduling(&format!("{seen}; {START}"), POLL, CANCEL);
    let dir = lab.path("storage");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o2775)).unwrap();
    lab.ce_run_commanded().exit(0).called(vec!["call"]);
    let seen = fs::read_to_string(lab.path("seen")).unwrap();
    assert_eq!(seen, "700\n700\n700\nthe same\n", "it is the standard input, too");
    let left = fs::read_dir(lab.path("home/.local/state/compeval/workers")).unwrap();
    assert_eq!(left.count(), 0, "it goes with its run");
}

#[test]
fn a_call_of_several_tasks_is_refused_before_anything_is_executed() {
    let lab = one_call("").file("resources", "call tasks 2\n").commit_again();
    let lab = lab.scheduling(START, POLL, CANCEL);
    let ran = lab.ce_run_commanded().exit(2).says("call: it asks for 2 tasks, and an execution");
    ran.says("try: give --on slurm on a host of a cluster").called(vec![]);
    assert!(lab.starts().is_empty());
}

#[test]
fn a_worker_that_is_lost_before_it_begins_is_replaced() {
    let lose = format!("mkdir \"$LAB_QUEUE/once\" 2>/dev/null && echo lost && exit\n{START}");
    let lab = one_call("").scheduling(&lose, POLL, "exit 1");
    let ran = lab.ce_run_commanded().exit(0).called(vec!["call"]);
    let ran = ran.says("was lost: the scheduler knows no such job");
    assert!(!ran.stderr.contains("may be left"), "a job that is over need not be cancelled");
}

#[test]
fn the_call_of_a_worker_that_is_killed_is_executed_again() {
    let lab = one_call(MEET).scheduling(START, POLL, CANCEL);
    let [meet, wait, once] = ["meet", "wait", "once"].map(|it| lab.path(it));
    let (fifo, _never) = (Fifo::new(&meet), Never::new(wait.clone()));
    let mut run = lab.commanded();
    run.env("LAB_MEET", meet).env("LAB_WAIT", wait).env("LAB_ONCE", once);
    let run = Running::start(&mut run);
    assert_eq!(fifo.line(), "here");
    lab.kill_worker();
    Ran::new(&lab, run.output()).exit(0).called(vec!["call", "call"]);
    wait_for("tidy storage", || lab.is_tidy().then_some(()));
}

#[test]
fn a_start_that_fails_is_reported_once_with_its_cause() {
    let lab = one_call("").scheduling("echo unknown queue fast >&2; exit 3", POLL, CANCEL);
    let ran = lab.ce_run_commanded().exit(3).called(vec![]);
    let why = "compeval.scheduler.start failed (exit status: 3): unknown queue fast; it is: sh ";
    let ran = ran.says(&format!("workers are submitted again later: {why}"));
    let ran = ran.says(&format!("no more workers are submitted: {why}"));
    let ran = ran.says("; try: this command in a shell");
    let notices =
        ran.stderr.lines().filter(|line| line.starts_with("ce-run: ") && line.contains(why));
    assert_eq!(
        notices.count(),
        3,
        "once that it is tried again, once not, and of the call: {}",
        ran.stderr
    );

    let lab = one_call("").commanding("nosuchqsub {script}", "true", "true {id}");
    let ran = lab.ce_run_commanded().exit(3).called(vec![]);
    let ran = ran.says(
        "no more workers are submitted: compeval.scheduler.start failed (exit status: 127): ",
    );
    assert!(!ran.stderr.contains("again later"), "{}", ran.stderr);
}

#[test]
fn a_busy_scheduler_is_asked_again_until_it_answers() {
    let busy = format!(
        "echo x >>\"$LAB_QUEUE/tries\"; [ $(wc -l <\"$LAB_QUEUE/tries\") -gt 6 ] || exit 75\n{START}"
    );
    let lab = one_call("").scheduling(&busy, POLL, CANCEL);
    lab.ce_run_commanded().exit(0).says("workers are submitted again later").called(vec!["call"]);
}

#[test]
fn a_hanging_start_loses_no_worker_and_executes_nothing_twice() {
    // The job is queued, and nobody gets its id.
    let hang = format!("({START}) && mkdir \"$LAB_QUEUE/once\" 2>/dev/null && exec sleep 600\n:");
    let lab = one_call("sleep 1").scheduling(&hang, POLL, CANCEL);
    let ran = lab.ce_run_commanded().exit(0).called(vec!["call"]);
    assert!(lab.starts().len() <= 2, "{}", ran.stderr);

    // Nothing comes of it.
    let lab = one_call("").scheduling("exec sleep 600", POLL, CANCEL);
    let mut run = lab.commanded();
    let ran = Ran::new(&lab, Running::start(run.env("CE_HASTE", "120")).output()).exit(3);
    let ran =
        ran.says("no more workers are submitted: compeval.scheduler.start did not end within");
    ran.says("0.5 s; it is: sh ").called(vec![]);
    assert!(lab.is_tidy());
}

#[test]
fn a_start_that_prints_no_id_is_reported() {
    for (printed, told) in
        [("Your job 12 has been submitted", "\"Your job 12 has been submitted\""), ("", "\"\"")]
    {
        let lab = one_call("").scheduling(&format!("echo '{printed}'"), POLL, CANCEL);
        let ran = lab.ce_run_commanded().exit(3).called(vec![]);
        ran.says(&format!("compeval.scheduler.start printed {told}, and not the id of a job"));
    }
}

#[test]
fn commands_that_print_without_end_are_ended_and_not_repeated() {
    let told = "compeval.scheduler.start printed more than 1 MiB, and was ended; it is: sh ";
    for endless in ["exec yes", "exec yes >&2"] {
        let lab = one_call("").scheduling(endless, POLL, CANCEL);
        let ran = lab.ce_run_commanded().exit(3).called(vec![]).says(told);
        assert!(ran.stderr.len() < 10_000, "{}", ran.stderr.len());
    }
    for (to, end) in [("", "exit 0"), (" >&2", "exit 1")] {
        let long = format!("for i in $(seq 9999); do printf 0123456789; done{to}; {end}");
        let lab = one_call("").scheduling(&long, POLL, CANCEL);
        let ran = lab.ce_run_commanded().exit(3).called(vec![]).says("0123456789...");
        assert!(ran.stderr.len() < 10_000, "{}", ran.stderr.len());
    }

    let lab = one_call("").scheduling(START, "exec yes", CANCEL);
    lab.ce_run_commanded().exit(0).called(vec!["call"]);
}

#[test]
fn a_failed_poll_proves_nothing_about_jobs() {
    // It begins when it is let go.
    let held = START.replace("\"$id.new\"", "\"$id.held\"");
    let lab = one_call("").scheduling(&held, "echo down >&2; exit 4", CANCEL);
    let (mut run, fifo) = lab.told();
    let run = Running::start(&mut run);
    let told = "the scheduler does not answer, and is asked again: compeval.scheduler.poll failed (exit status: 4): down";
    while !fifo.line().contains(told) {}
    let queue = fs::read_dir(lab.path("queue")).unwrap().map(|file| file.unwrap().path());
    for held in queue.filter(|file| file.extension().is_some_and(|it| it == "held")) {
        fs::rename(&held, held.with_extension("new")).unwrap();
    }
    Ran::new(&lab, run.output()).exit(0).called(vec!["call"]);
    wait_for("tidy storage", || lab.is_tidy().then_some(()));
}

#[test]
fn an_interrupted_run_cancels_its_workers() {
    let lab = one_call("").scheduling(HOLD, POLL, CANCEL);
    let jobs = || fs::read_dir(lab.path("queue")).unwrap().count();
    let run = Running::start(&mut lab.commanded());
    wait_for("job", || (jobs() == 1).then_some(()));
    run.signal(Signal::INT);
    let ran = Ran::new(&lab, run.output()).exit(130);
    assert_eq!(jobs(), 0, "{}", ran.stderr);
    assert!(lab.is_tidy() && !ran.stderr.contains("may be left"), "{}", ran.stderr);

    let cancel = "echo not yours >&2; exit 1";
    fs::write(lab.path("cancel"), cancel).unwrap();
    let run = Running::start(&mut lab.commanded());
    wait_for("job", || (jobs() == 1).then_some(()));
    run.signal(Signal::INT);
    let ran = Ran::new(&lab, run.output()).exit(130);
    let ran =
        ran.says("jobs may be left (compeval.scheduler.cancel failed (exit status: 1): not yours");
    let id = fs::read_dir(lab.path("queue")).unwrap().next().unwrap().unwrap().file_name();
    ran.says(&format!("try: sh LAB/cancel {}\n", id.display()));
}

#[test]
fn an_interrupt_does_not_wait_for_commands() {
    let lab = one_call("").scheduling("echo x >\"$LAB_QUEUE/here\"; exec sleep 600", POLL, CANCEL);
    let mut run = lab.commanded();
    let run = Running::start(run.env_remove("CE_HASTE"));
    wait_for("start", || lab.path("queue/here").exists().then_some(()));
    let begin = std::time::Instant::now();
    run.signal(Signal::INT);
    run.signal(Signal::TERM);
    assert!(matches!(run.output().status.code(), Some(130 | 143)));
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
}

#[test]
fn the_settings_of_the_documentation_are_understood() {
    for (scheduler, program) in
        [("Grid Engine", "qsub"), ("OpenPBS", "qsub"), ("LSF", "bsub"), ("A host", "ssh")]
    {
        let lab = one_call("").configured(scheduler, "");
        fs::create_dir(lab.path("bin")).unwrap();
        // The last word names the script, or has it in it.
        let script = format!(
            "#!/bin/sh\nfor last; do :; done; echo \"$last\" >'{}'; exit 127\n",
            lab.path("last").display()
        );
        let path = lab.path("bin").join(program);
        fs::write(&path, script).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        let places = format!("{}:/usr/bin:/bin", lab.path("bin").display());
        let mut run = lab.commanded();
        Ran::new(&lab, Running::start(run.env("PATH", places)).output()).exit(3);
        let last = fs::read_to_string(lab.path("last")).unwrap();
        assert!(last.contains("_1.sh"), "{scheduler}: {last}");
    }
}

#[test]
fn commands_that_are_missing_or_wrong_are_reported() {
    let lab = one_call("").commanding("x {script} {ids}", "y", "z {id}");
    let ran = lab.finish(&mut lab.commanded()).exit(2);
    let ran = ran.says("compeval.scheduler.start in LAB/home/.gitconfig is \"x {script} {ids}\", ");
    ran.says("in which {ids} stands for nothing").says("try: {script}, {name}, {log}, ");
    lab.ce_run(&["-n"]).exit(3);
    lab.git("task", &["config", "--global", "--unset", "compeval.scheduler.start"]);
    let ran = lab.finish(&mut lab.commanded()).exit(2);
    ran.says("compeval.scheduler.start is not set, and --on scheduler needs it");
    let mut job = lab.commanded();
    lab.finish(job.arg("--detach=job")).exit(2);
}
