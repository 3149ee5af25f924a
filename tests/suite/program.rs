//! The programs, run with a cleared environment; their output and their exit codes.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Once, mpsc};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::golden;
use super::json::Asked;
use super::lab::Lab;

/// The time that a program may take before it counts as hanging: far more than any needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The variable that keeps what else uses this host from tests: it says that the kernel's files are nowhere.
pub(crate) const NO_HOST: (&str, &str) = ("CE_HOST", "/nowhere");

/// A program of this package, as a command without arguments and with next to no environment.
pub(crate) fn command(name: &str) -> Command {
    static ONCE: Once = Once::new();
    // The program that started the tests in the background may have SIGINT ignored.
    ONCE.call_once(compeval::executor::reset_signals);
    let mut command = Command::new(match name {
        "ce" => env!("CARGO_BIN_EXE_ce"),
        "ce-run" => env!("CARGO_BIN_EXE_ce-run"),
        "ce-sym" => env!("CARGO_BIN_EXE_ce-sym"),
        "ce-viz" => env!("CARGO_BIN_EXE_ce-viz"),
        other => panic!("no program {other}"),
    });
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    // Programs that are installed on the host write there, too.
    command.env("GIT_CONFIG_NOSYSTEM", "1");
    command.envs([NO_HOST]);
    command
}

/// The same command, started by another program that is given it as its last arguments.
pub(crate) fn through(starter: &[&str], command: &Command) -> Command {
    let mut through = Command::new(starter[0]);
    through.args(&starter[1..]).arg(command.get_program()).args(command.get_args());
    through.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    through.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.get_current_dir().map(|dir| through.current_dir(dir));
    through
}

/// A program that was started.
pub(crate) struct Running {
    pub(crate) pid: Pid,
    output: mpsc::Receiver<Output>,
    asked: Option<Asked>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let child: Child = command.spawn().unwrap();
        let pid = Pid::from_child(&child);
        let (sender, output) = mpsc::channel();
        thread::spawn(move || sender.send(child.wait_with_output().unwrap()));
        Self { pid, output, asked: Asked::from_command(command) }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    /// Waits until the program catches a signal.
    pub(crate) fn wait_until_it_catches(&self, signal: Signal) {
        let catches = || {
            let status = fs::read_to_string(format!("/proc/{}/status", self.pid.as_raw_nonzero()));
            let status = status.unwrap_or_default();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = caught.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
            caught.is_some_and(|caught| caught >> (signal.as_raw() - 1) & 1 == 1)
        };
        while !catches() {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the program is stopped, or has ended. Returns whether it is stopped.
    pub(crate) fn comes_to_a_stop(&self) -> bool {
        while self.is_stopped() == Some(false) {
            thread::yield_now();
        }
        self.is_stopped().is_some()
    }

    /// Whether the program has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_stopped().is_none()
    }

    /// Whether the program is stopped; `None` if it has ended.
    fn is_stopped(&self) -> Option<bool> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid.as_raw_nonzero()));
        let stat = stat.ok()?;
        let state = stat.rsplit_once(") ")?.1.chars().next()?;
        (state != 'Z').then_some(state == 'T')
    }

    /// Waits for its end; one that hangs is killed. JSON that it has printed is compared with its schema.
    #[track_caller]
    pub(crate) fn output(self) -> Output {
        let output = self.output.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            kill_process(self.pid, Signal::KILL).unwrap();
            panic!("the program hangs");
        });
        self.asked.iter().for_each(|asked| asked.check(&output));
        output
    }
}

/// A program that has ended: each method checks something and passes it on.
pub(crate) struct Ran<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl<'a> Ran<'a> {
    /// Takes the place of the laboratory out of the texts: it is another one each time.
    pub(crate) fn new(lab: &'a Lab, output: Output) -> Self {
        let place = lab.path("").display().to_string();
        let text =
            |bytes| String::from_utf8(bytes).unwrap().replace(place.trim_end_matches('/'), "LAB");
        Self {
            lab,
            status: output.status,
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// It ended with this exit code.
    #[track_caller]
    pub(crate) fn exit(self, code: i32) -> Self {
        let Self { status, stdout, stderr, .. } = &self;
        assert_eq!(status.signal(), None, "it was killed\n{stdout}\n{stderr}");
        assert_eq!(status.code(), Some(code), "its exit code\n{stdout}\n{stderr}");
        self
    }

    /// Its standard output is the golden file of this name.
    #[track_caller]
    pub(crate) fn prints(self, name: &str) -> Self {
        golden::check(name, &self.stdout);
        self
    }

    /// Its standard error is the golden file of this name.
    #[track_caller]
    pub(crate) fn complains(self, name: &str) -> Self {
        golden::check(name, &self.stderr);
        self
    }

    /// Its standard error contains this.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "no {text:?} in\n{}", self.stderr);
        self
    }

    /// Its standard output contains this.
    #[track_caller]
    pub(crate) fn shows(self, text: &str) -> Self {
        assert!(self.stdout.contains(text), "no {text:?} in\n{}", self.stdout);
        self
    }

    /// These computations, in any order, are all that was executed since the last time it was asked.
    #[track_caller]
    pub(crate) fn called(self, mut expected: Vec<&str>) -> Self {
        let mut called = self.lab.called();
        called.sort();
        expected.sort_unstable();
        assert_eq!(called, expected, "what was executed\n{}\n{}", self.stdout, self.stderr);
        self
    }

    /// The lines of its standard output.
    pub(crate) fn lines(&self) -> Vec<&str> {
        self.stdout.lines().collect()
    }
}
