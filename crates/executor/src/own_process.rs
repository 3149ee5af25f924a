//! This process and its terminal: inherited signals, leaving for the background, and lending the terminal to an execution.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use fork::{Fork, fork};
use nix::sys::signal::SigSet;
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, setsid, waitpid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::termios::{
    OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};
use signal_hook::consts::{
    FORBIDDEN, SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGWINCH, SIGXFSZ,
};
use signal_hook::flag;
use signal_hook::iterator::{Handle, Signals};

/// The greatest number of a signal.
const LAST: i32 = 64;

/// The signals that were ignored when the program started, a bit for each.
static IGNORED: OnceLock<u64> = OnceLock::new();

/// Unblocks all signals, and lets no process inherit that one is ignored. The process must have one
/// thread yet: the others inherit from it.
///
/// A file that may not become larger (`ulimit -f`) is an error of a write, and does not kill this process.
pub fn reset_signals() {
    // Both calls succeed for any existing signal.
    let _unblocked = SigSet::empty().thread_set_mask();
    // Processes that it starts have the default action again.
    let _caught = flag::register(SIGXFSZ, Arc::default());
    // The standard library ignores SIGPIPE, and restores the default action in its children.
    for signal in 1..=LAST {
        if was_ignored(signal) && signal != SIGPIPE && !FORBIDDEN.contains(&signal) {
            let _caught = flag::register(signal, Arc::default());
        }
    }
}

/// Catches the signals of Ctrl-C and Ctrl-\ without effect. Processes that it starts get these signals.
pub fn outlive_typed_signals() {
    for signal in [SIGINT, SIGQUIT] {
        let _caught = flag::register(signal, Arc::default());
    }
}

/// Whether an output of this program was a terminal that is gone.
static HAS_HUNG_UP: AtomicBool = AtomicBool::new(false);

/// Takes note that an output could not be written. If that was a terminal, which is gone, the program ends as by SIGHUP: the terminal's own
/// signal reaches only some of its processes, and maybe later.
pub fn note_unwritten(output: impl AsFd, error: &io::Error) {
    let is_device = |mode| FileType::from_raw_mode(mode) == FileType::CharacterDevice;
    let is_gone = error.raw_os_error() == Some(Errno::IO.raw_os_error())
        && fstat(&output).is_ok_and(|stat| is_device(stat.st_mode))
        && !isatty(&output);
    if is_gone && !was_ignored(SIGHUP) && !HAS_HUNG_UP.swap(true, Ordering::SeqCst) {
        // A process may always send itself a signal.
        let _sent = kill_process(getpid(), Signal::HUP);
    }
}

/// Whether the program ends because its terminal is gone.
pub fn has_hung_up() -> bool {
    HAS_HUNG_UP.load(Ordering::SeqCst)
}

/// Whether a signal was ignored when this program started: then it stays ignored.
pub fn was_ignored(signal: i32) -> bool {
    let ignored = IGNORED.get_or_init(|| {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        // Without /proc it is not known. A handler of SIGCHLD does no harm.
        ignored(&status).unwrap_or(bit(SIGCHLD))
    });
    ignored & bit(signal) != 0
}

/// Reads the ignored signals from the text of `/proc/self/status`.
fn ignored(status: &str) -> Option<u64> {
    let digits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(digits.trim(), 16).ok()
}

const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// The role of this process after a split in two.
#[derive(Debug)]
pub enum Detach {
    /// The process that continues.
    Child(Leaving),
    /// The process that ends, with this exit code: the other process has left, or has ended.
    Parent(u8),
}

/// A process that is about to leave its terminal.
#[derive(Debug)]
pub struct Leaving(File);

/// Splits this process, which must have no other threads.
pub fn detach() -> io::Result<Detach> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    match fork()? {
        Fork::Child => {
            drop(reader);
            Ok(Detach::Child(Leaving(writer.into())))
        }
        Fork::Parent(child) => {
            drop(writer);
            let mut left = Vec::new();
            File::from(reader).read_to_end(&mut left)?;
            Ok(Detach::Parent(if left.is_empty() { exit_code(child)? } else { 0 }))
        }
    }
}

/// Waits for the end of a child. Returns its exit code, or for a signal the code that a shell would return.
fn exit_code(child: i32) -> io::Result<u8> {
    let ended = waitpid(Pid::from_raw(child), WaitOptions::empty())?;
    let Some((_, status)) = ended else { return Ok(1) };
    let code = status.exit_status().or_else(|| status.terminating_signal().map(|it| 128 + it));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

impl Leaving {
    /// Leaves the terminal: from now on, all output goes to `log`, and the input is empty.
    pub fn leave(self, log: &File) -> io::Result<()> {
        let Self(mut parent) = self;
        let nothing = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        setsid()?;
        dup2_stdin(&nothing)?;
        dup2_stdout(log)?;
        dup2_stderr(log)?;
        // The parent may have been killed.
        drop(parent.write_all(b"left"));
        Ok(())
    }
}

/// Whether a user types and reads: standard input and output are a terminal.
pub fn is_terminal() -> bool {
    isatty(io::stdin()) && isatty(io::stdout())
}

/// A pseudo-terminal. As long as it lives, the user's terminal passes on everything that is typed.
#[derive(Debug)]
pub struct TerminalRelay {
    /// Its path on the host.
    pub path: PathBuf,
    /// The settings of the user's terminal before.
    saved: Termios,
    /// Keeps the terminal open, so that it is not hung up before the execution has it.
    slave: Option<OwnedFd>,
    shows: Option<JoinHandle<()>>,
    resizes: Handle,
}

impl TerminalRelay {
    /// Opens a terminal of the size of the user's terminal, and begins to forward data.
    pub fn start() -> io::Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?.into_bytes();
        let path = PathBuf::from(std::ffi::OsString::from_vec(name));
        let slave = open(&path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
        let saved = tcgetattr(io::stdin())?;
        tcsetattr(&slave, OptionalActions::Now, &saved)?;
        let master = File::from(master);
        let (size, mut typed, mut shown) = (master.try_clone()?, master.try_clone()?, master);
        resize(&size);
        let mut signals = Signals::new([SIGWINCH])?;
        let resizes = signals.handle();
        thread::Builder::new().spawn(move || signals.forever().for_each(|_| resize(&size)))?;
        let mut raw = saved.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        // This thread ends with the process: it may wait forever for the next key.
        thread::Builder::new().spawn(move || {
            pass(&mut io::stdin().lock(), &mut typed);
            // A terminal that is gone has nothing to be read, either.
            note_unwritten(io::stdin(), &Errno::IO.into());
        })?;
        let shows = thread::Builder::new().spawn(move || pass(&mut shown, &mut io::stdout()))?;
        Ok(Self { path, saved, slave: Some(slave), shows: Some(shows), resizes })
    }
}

/// Gives a terminal the size of the user's terminal.
fn resize(terminal: &File) {
    let _no_size = tcgetwinsize(io::stdin()).map(|it| tcsetwinsize(terminal, it));
}

impl Drop for TerminalRelay {
    /// Shows the rest, and leaves the user's terminal as it was.
    fn drop(&mut self) {
        drop(self.slave.take());
        if let Some(shows) = self.shows.take() {
            drop(shows.join());
        }
        self.resizes.close();
        let _hung_up = tcsetattr(io::stdin(), OptionalActions::Now, &self.saved);
    }
}

/// Copies bytes as they arrive, until the input ends or cannot be read, or the output cannot be written. A terminal without any process is
/// a read error.
fn pass(from: &mut dyn Read, to: &mut dyn Write) {
    let mut piece = [0; 4096];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return,
            Ok(count) => {
                if let Err(error) = to.write_all(&piece[..count]).and_then(|()| to.flush()) {
                    return note_unwritten(io::stdout(), &error);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn the_ignored_signals_are_read() {
        let read = ignored("Name:\tx\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000010001\n");
        assert_eq!(read, Some(bit(SIGHUP) | bit(SIGCHLD)));
        assert_eq!(read.map(|read| read & bit(SIGINT)), Some(0));
        assert_eq!(ignored("Name:\tx\n"), None);
        assert_eq!(bit(LAST), 1 << 63);
    }
}
