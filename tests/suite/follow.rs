//! `ce show --log` and `--follow`: the log of a call, also while it is executed.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::lab::Lab;
use crate::program::{Ran, Running};

const CALL: &str = "ad48103e4fc7_5d9474c0309b";

/// A call that says `begun`, waits for a file `go`, and ends.
fn lab() -> Lab {
    let script = r#"echo begun; until [ -e "$LAB_GO" ]; do sleep 0.01; done; echo done; [ "${LAB_FAILS-}" ] && exit 3; echo 1 >"$3""#;
    Lab::task("Inputs: 'x', 'y'\n(slow INPUT('x') INPUT('y'))[0]")
        .computation("slow", "a b", "c", script)
        .with_storage()
        .commit()
}

/// A command whose call waits for the file; runs list their running calls every few milliseconds.
fn waits(lab: &Lab, mut command: Command) -> Running {
    Running::start(command.env("LAB_GO", lab.path("go")).env("CE_SILENCE", "2"))
}

fn show(lab: &Lab, arguments: &[&str]) -> Command {
    let mut command = lab.command("ce");
    command.env("CE_SILENCE", "2").arg("show").args(arguments);
    command
}

/// Waits until the log of a call can be read.
fn await_begin(lab: &Lab) {
    loop {
        let ran = lab.finish(&mut show(lab, &["--log", "../storage", CALL]));
        if ran.stdout == "begun\n" {
            return ran.exit(0).drop_it();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Ran<'_> {
    fn drop_it(self) {}
}

#[test]
fn the_log_of_a_running_call_is_followed_to_its_end() {
    for fails in [false, true] {
        let lab = lab();
        let mut command = lab.evaluation(&[]);
        if fails {
            command.env("LAB_FAILS", "1");
        }
        let run = waits(&lab, command);
        await_begin(&lab);
        let mut follower = show(&lab, &["-f", "../storage", &CALL[..6]]).spawn().unwrap();
        let mut said = [0; 6];
        follower.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
        assert_eq!(&said, b"begun\n");
        fs::write(lab.path("go"), "").unwrap();
        let output = follower.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n");
        assert!(output.status.success());
        Ran::new(&lab, run.output()).exit(i32::from(fails)).drop_it();
        // The same of a call that is over, by any of its names.
        let version = lab.storage().into_iter().find(|name| name.starts_with("c_slow/")).unwrap();
        let version = version.split('/').nth(1).unwrap().to_owned();
        let room = if fails { "failed" } else { "00" };
        if fails {
            for file in
                [format!("failed/{CALL}"), format!("failed/{CALL}.json"), format!("00/{CALL}")]
            {
                let name = format!("../storage/c_slow/{version}/{file}");
                let ran = lab.finish(&mut show(&lab, &["../storage", &name])).exit(2);
                ran.says("failed at 2").says("it ended with exit status 3").says("ce show --log");
            }
        }
        for name in [
            format!("c_slow/{version}/{CALL}"),
            format!("../storage/c_slow/{version}/{room}/{CALL}"),
            CALL.to_owned(),
        ] {
            for option in ["--log", "--follow"] {
                let ran = lab.finish(&mut show(&lab, &[option, "../storage", &name])).exit(0);
                assert_eq!(ran.stdout, "begun\ndone\n", "{name}");
            }
        }
    }
}

#[test]
fn a_call_of_a_worker_is_followed_and_the_follower_is_interrupted() {
    let lab = lab();
    let mut worker = lab.command("ce");
    worker.args(["worker", "--idle=10h", "--no-isolate", "../storage"]);
    let worker = waits(&lab, worker);
    let run = waits(&lab, lab.evaluation(&["--on=workers"]));
    await_begin(&lab);
    let follower = Running::start(&mut show(&lab, &["-f", "../storage", CALL]));
    follower.wait_until_it_catches(Signal::INT);
    follower.signal(Signal::INT);
    Ran::new(&lab, follower.output()).exit(130).drop_it();
    // A reader who closes the output ends it without a word.
    let mut follower = show(&lab, &["-f", "../storage", CALL]).spawn().unwrap();
    drop(follower.stdout.take());
    fs::write(lab.path("go"), "").unwrap();
    let output = follower.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    Ran::new(&lab, run.output()).exit(0).drop_it();
    worker.signal(Signal::TERM);
    Ran::new(&lab, worker.output()).exit(143).drop_it();
}

#[test]
fn a_call_that_nobody_knows_is_an_error() {
    let lab = lab();
    for name in [CALL, "c_slow/000000000000/ad48103e4fc7_5d9474c0309b", "nothing"] {
        let ran = lab.finish(&mut show(&lab, &["--log", "../storage", name])).exit(2);
        let ran = ran.says("does not name a call that has ended or is running");
        ran.says("try: ce log lists calls, and ce status those that are executed now").drop_it();
    }
    let mut command = show(&lab, &["--log", "--json", "../storage", CALL]);
    lab.finish(command.stdin(Stdio::null())).exit(2).drop_it();
}
