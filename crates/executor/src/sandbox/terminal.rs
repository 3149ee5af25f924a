//! The terminal of an execution that a user looks into: a pseudo-terminal, with which the user's own exchanges everything.
//!
//! So Ctrl-C goes to what runs inside, and no more of the user's terminal is in reach than what is typed and shown.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{
    OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};
use signal_hook::consts::SIGWINCH;
use signal_hook::iterator::{Handle, Signals};

/// Whether a user types and reads: standard input and output are a terminal.
pub fn is_terminal() -> bool {
    isatty(io::stdin()) && isatty(io::stdout())
}

/// A pseudo-terminal. As long as it lives, the user's terminal passes on everything that is typed.
#[derive(Debug)]
pub struct TerminalRelay {
    /// Its path on the host.
    pub path: PathBuf,
    /// How the user's terminal was.
    saved: Termios,
    /// Kept open, so that it is not hung up before the execution has it.
    slave: Option<OwnedFd>,
    shows: Option<JoinHandle<()>>,
    resizes: Handle,
}

impl TerminalRelay {
    /// Opens one of the size of the user's terminal, and begins to exchange.
    ///
    /// # Errors
    ///
    /// Fails if there is no terminal, or no other one can be made.
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
        let resize = move || {
            let _no_size = tcgetwinsize(io::stdin()).map(|it| tcsetwinsize(&size, it));
        };
        resize();
        let mut signals = Signals::new([SIGWINCH])?;
        let resizes = signals.handle();
        thread::Builder::new().spawn(move || signals.forever().for_each(|_| resize()))?;
        let mut raw = saved.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        // This thread ends with the process: it may wait forever for the next key.
        thread::Builder::new().spawn(move || pass(&mut io::stdin().lock(), &mut typed))?;
        let shows = thread::Builder::new().spawn(move || pass(&mut shown, &mut io::stdout()))?;
        Ok(Self { path, saved, slave: Some(slave), shows: Some(shows), resizes })
    }
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

/// Passes bytes on as they come, until there are no more: a terminal without any process is an error.
fn pass(from: &mut dyn Read, to: &mut dyn Write) {
    let mut piece = [0; 4096];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return,
            Ok(count) => {
                if to.write_all(&piece[..count]).and_then(|()| to.flush()).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
