//! The pipes of a child: it is given an input, and its outputs are read up to a limit, by one thread that can look at other things
//! meanwhile.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};

/// The longest time between two looks at a child.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// The same once it has closed its outputs, which it does by ending.
pub const SHORT_LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// The pipes of a child. Closed ones are `None`.
#[derive(Debug)]
pub struct ChildPipes<'a> {
    stdin: Option<ChildStdin>,
    input: &'a [u8],
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// The most bytes that are read of its output, and of its error output.
    limits: [usize; 2],
    /// Both so far: a little more than the limit, if it has printed more.
    pub printed: [Vec<u8>; 2],
}

impl<'a> ChildPipes<'a> {
    /// Takes the pipes of a child.
    pub fn new(child: &mut Child, input: &'a [u8], limits: [usize; 2]) -> Self {
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let fds = [stdin.as_ref().map(AsFd::as_fd), stdout.as_ref().map(AsFd::as_fd)];
        for fd in fds.into_iter().chain([stderr.as_ref().map(AsFd::as_fd)]).flatten() {
            // A pipe can always be set so.
            let _never_fails = ioctl_fionbio(fd, true);
        }
        Self { stdin, input, stdout, stderr, limits, printed: [Vec::new(), Vec::new()] }
    }

    /// Waits for a moment, and transfers as much as possible.
    ///
    /// # Errors
    ///
    /// Fails if an output cannot be read.
    pub fn go_on(&mut self) -> io::Result<()> {
        let inputs = self.stdin.as_ref().map(|it| (it.as_fd(), PollFlags::OUT));
        let outputs =
            [self.stdout.as_ref().map(AsFd::as_fd), self.stderr.as_ref().map(AsFd::as_fd)];
        let outputs = outputs.into_iter().flatten().map(|fd: BorrowedFd<'_>| (fd, PollFlags::IN));
        let ends = inputs.into_iter().chain(outputs);
        let mut ends: Vec<_> =
            ends.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect();
        let look = if ends.is_empty() { &SHORT_LOOK } else { &LOOK };
        match poll(&mut ends, Some(look)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.write();
        self.read()
    }

    /// Whether the child has printed more than is read.
    pub fn is_flooded(&self) -> bool {
        self.printed.iter().zip(self.limits).any(|(text, limit)| text.len() > limit)
    }

    /// Whether the child, and all that it has started, have closed its outputs.
    pub const fn are_closed(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// Writes as much input as the child accepts now.
    fn write(&mut self) {
        while let Some(stdin) = self.stdin.as_mut().filter(|_| !self.input.is_empty()) {
            match stdin.write(self.input) {
                Ok(count) => self.input = &self.input[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // It does not want to read: its exit status says why.
                Err(_) => break,
            }
        }
        self.stdin = None;
    }

    /// Reads available output, up to the limits.
    ///
    /// # Errors
    ///
    /// Fails if an output cannot be read.
    pub fn read(&mut self) -> io::Result<()> {
        let ([out, err], [most, most_errors]) = (&mut self.printed, self.limits);
        read(&mut self.stdout, out, most)?;
        read(&mut self.stderr, err, most_errors)
    }
}

/// Reads available output, up to the limit, and closes the pipe at its end.
fn read<R: Read>(pipe: &mut Option<R>, text: &mut Vec<u8>, limit: usize) -> io::Result<()> {
    let mut piece = [0; 16 << 10];
    while let Some(open) = pipe.as_mut().filter(|_| text.len() <= limit) {
        match open.read(&mut piece) {
            Ok(0) => *pipe = None,
            Ok(count) => text.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
