//! Executes the programs of a scheduler, each for a limited time and with a limited output.
//!
//! A program may hang for a minute or for ever when a daemon is down, or print without end. So it has a process group of its own, which is
//! killed at a time limit, when it has printed too much, or as soon as the caller has lost interest. A Ctrl-C at the terminal does not
//! reach it.

use ce_files::child_pipes::{ChildPipes, SHORT_LOOK};
use ce_files::umask;
use std::env;
use std::io;
use std::num::NonZeroU32;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::poll;
use rustix::process::{Pid, Signal, kill_process_group};

/// The time that a program has. A Slurm without its authentication was seen to answer after 49 s.
const LIMIT: Duration = Duration::from_secs(60);

/// The most bytes that a program may print, on each of its two outputs.
const MAX_OUTPUT: usize = 1 << 20;

/// The most characters of an output that a message repeats.
const MAX_EXCERPT: usize = 400;

/// The most lines of an error output that a message repeats.
const LINES: usize = 4;

/// Executes programs, until they end, their time is over, or it is interrupted.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) limit: Duration,
    interruptions: AtomicU64,
}

impl Default for Client {
    fn default() -> Self {
        Self { limit: LIMIT / haste(), interruptions: AtomicU64::new(0) }
    }
}

impl Client {
    /// Runs a program with a text as its standard input.
    pub(crate) fn run(
        &self,
        command: &mut Command,
        input: &[u8],
    ) -> Result<CommandOutput, CommandFailure> {
        let before = self.interruptions.load(Ordering::Relaxed);
        run_limited(command, input, self.limit, || {
            self.interruptions.load(Ordering::Relaxed) != before
        })
    }

    /// Ends the programs that run now.
    pub(crate) fn interrupt(&self) {
        self.interruptions.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the factor by which all waiting for a scheduler, or for exhausted resources, is faster than real time: 1. A
/// build with debug assertions obeys `CE_HASTE`.
pub fn haste() -> u32 {
    static HASTE: OnceLock<Option<NonZeroU32>> = OnceLock::new();
    if !cfg!(debug_assertions) {
        return 1;
    }
    HASTE.get_or_init(|| env::var("CE_HASTE").ok()?.parse().ok()).map_or(1, NonZeroU32::get)
}

/// The time that a killed program has to go. A process that hangs in the kernel does not.
const GONE: Duration = Duration::from_secs(1);

/// The end of a program.
pub(crate) struct CommandOutput {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The reason why the end of a program is unknown.
pub(crate) enum CommandFailure {
    /// It could not be started.
    NotStarted(io::Error),
    /// It could not be waited for, or talked to.
    Lost(io::Error),
    /// It was killed at its time limit.
    TimedOut,
    /// It, or a process that it left behind, printed more than 1 MiB.
    TooMuchOutput,
    /// It was killed because the caller stopped it.
    Stopped,
}

/// Returns the beginning of a program's output, for a message.
pub(crate) fn excerpt(text: &str) -> String {
    let mut characters = text.trim().chars();
    let begin: String = characters.by_ref().take(MAX_EXCERPT).collect();
    if characters.next().is_some() { format!("{begin}...") } else { begin }
}

/// Joins the last lines of an error output, without empty ones, for a message.
pub(crate) fn last_lines<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let last: Vec<String> =
        lines[lines.len().saturating_sub(LINES)..].iter().map(|line| excerpt(line)).collect();
    last.join("; ")
}

/// Runs a program with a text as its standard input, until it ends, its time is over, it has printed too much, or it is stopped.
fn run_limited(
    command: &mut Command,
    input: &[u8],
    limit: Duration,
    is_stopped: impl Fn() -> bool,
) -> Result<CommandOutput, CommandFailure> {
    let begin = Instant::now();
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let streams = streams.process_group(0);
    let mut child = umask::as_user(|| streams.spawn()).map_err(CommandFailure::NotStarted)?;
    let mut pipes = ChildPipes::new(&mut child, input, [MAX_OUTPUT; 2]);
    let end = loop {
        match pipes.go_on().and_then(|()| child.try_wait()) {
            Ok(Some(status)) => break Ok(status),
            Ok(None) if pipes.is_flooded() => break Err(CommandFailure::TooMuchOutput),
            Ok(None) if is_stopped() => break Err(CommandFailure::Stopped),
            Ok(None) if begin.elapsed() >= limit => break Err(CommandFailure::TimedOut),
            Ok(None) => {}
            Err(error) => break Err(CommandFailure::Lost(error)),
        }
    };
    let status = end.inspect_err(|_| kill(&mut child))?;
    // All of its output is there. A process that it left behind may still hold the pipes, and is not waited for.
    // Output that cannot be read any more is lost.
    let _read = pipes.read();
    if pipes.is_flooded() {
        return Err(CommandFailure::TooMuchOutput);
    }
    let [stdout, stderr] = pipes.printed.map(|text| String::from_utf8_lossy(&text).into_owned());
    Ok(CommandOutput { status, stdout, stderr })
}

/// Kills the process group of a child, and reaps the child.
fn kill(child: &mut Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let _gone = pid.map(|pid| kill_process_group(pid, Signal::KILL));
    let begin = Instant::now();
    while matches!(child.try_wait(), Ok(None)) && begin.elapsed() < GONE {
        let _timeout = poll(&mut [], Some(&SHORT_LOOK));
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::sync::atomic::AtomicBool;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_reads_and_writes_more_than_a_pipe_holds() {
        let input = vec![b'x'; 300_000];
        let Ok(end) = run_limited(&mut shell("tee /dev/stderr; exit 3"), &input, LONG, || false)
        else {
            panic!("it ends")
        };
        assert_eq!((end.status.code(), end.stdout.len()), (Some(3), input.len()));
        assert_eq!(end.stderr.len(), input.len());
    }

    #[test]
    fn a_program_need_not_read_its_input() {
        let end = run_limited(
            &mut shell("exec <&-; echo no >&2; exit 1"),
            &vec![0; 300_000],
            LONG,
            || false,
        );
        assert!(matches!(end, Ok(end) if end.stderr == "no\n" && end.status.code() == Some(1)));
    }

    #[test]
    fn a_program_is_killed_with_its_child_processes() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        // A process that holds the FIFO open for writing keeps a reader waiting.
        let script = format!("exec 9>'{}'; sleep 600 & sleep 600", fifo.display());
        let is_open = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || {
                let mut file = File::open(fifo)?;
                is_open.store(true, Ordering::Relaxed);
                file.read(&mut [0])
            });
            let end =
                run_limited(&mut shell(&script), b"", LONG, || is_open.load(Ordering::Relaxed));
            assert!(matches!(end, Err(CommandFailure::Stopped)));
            assert_eq!(reader.join().unwrap().unwrap(), 0);
        });
        let end = run_limited(&mut shell("sleep 600"), b"", Duration::from_millis(50), || false);
        assert!(matches!(end, Err(CommandFailure::TimedOut)));
    }

    #[test]
    fn a_process_that_is_left_behind_is_not_waited_for() {
        let begin = Instant::now();
        let end = run_limited(&mut shell("sleep 20 & echo $!"), b"", LONG, || false);
        let Ok(end) = end else { panic!("it ends") };
        assert!(begin.elapsed() < Duration::from_secs(20));
        assert!(Command::new("kill").arg(end.stdout.trim()).status().unwrap().success());
    }

    #[test]
    fn a_program_that_prints_without_end_is_killed() {
        let endless = ["yes", "yes >&2", "yes & sleep 600", "head -c 9999999 /dev/zero"];
        for script in endless {
            let end = run_limited(&mut shell(script), b"", LONG, || false);
            assert!(matches!(end, Err(CommandFailure::TooMuchOutput)), "{script}");
        }
        let most = format!("head -c {MAX_OUTPUT} /dev/zero");
        assert!(run_limited(&mut shell(&most), b"", LONG, || false).is_ok());
    }

    #[test]
    fn messages_repeat_a_short_excerpt() {
        assert_eq!(excerpt(" a\nb \n"), "a\nb");
        let long = "\u{e4}".repeat(MAX_EXCERPT);
        assert_eq!(excerpt(&long), long);
        assert_eq!(excerpt(&format!("{long}x")), format!("{long}..."));
        let lines = ["1", "", "2", "3", "4", "5"];
        assert_eq!(last_lines(lines.into_iter()), "2; 3; 4; 5");
        assert!(last_lines(["x".repeat(99_999).as_str(); 9].into_iter()).len() < 2000);
    }

    #[test]
    fn a_missing_program_is_not_started() {
        let end = run_limited(&mut Command::new("/nowhere/sbatch"), b"", LONG, || false);
        assert!(matches!(end, Err(CommandFailure::NotStarted(_))));
    }
}
