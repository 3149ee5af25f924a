//! Leaving a terminal: a process goes on in the background, after its user has seen that all is well so far.
//!
//! The process is split before it has any threads. The child does the work. Until it leaves, its errors go to the terminal, and
//! the parent ends as it does. Then the parent ends, and the child has a session of its own.

use std::fs::File;
use std::io::{self, Read, Write};

use fork::{Fork, fork};
use rustix::fs::{Mode, OFlags, open};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, setsid, waitpid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

/// Which of two processes this one is.
#[derive(Debug)]
pub enum Detach {
    /// The one that goes on.
    Child(Leaving),
    /// The one that ends, with this exit code: the other one has left, or has ended.
    Parent(u8),
}

/// A process that is about to leave its terminal.
#[derive(Debug)]
pub struct Leaving(File);

/// Splits this process, which must have no other threads.
///
/// # Errors
///
/// Fails if there can be no more processes.
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

/// Waits for the end of a child. Returns its exit code, or that of a shell for a signal.
fn exit_code(child: i32) -> io::Result<u8> {
    let ended = waitpid(Pid::from_raw(child), WaitOptions::empty())?;
    let Some((_, status)) = ended else { return Ok(1) };
    let code = status.exit_status().or_else(|| status.terminating_signal().map(|it| 128 + it));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

impl Leaving {
    /// Leaves the terminal: from now on, everything that is printed goes to `log`, and there is nothing to be read.
    ///
    /// # Errors
    ///
    /// Fails if there is no `/dev/null`.
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
