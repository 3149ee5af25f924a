//! A program at a pseudo-terminal: its display, and typed keys.

use std::fs::File;
use std::io::{PipeWriter, Read, Write, pipe};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::program::{PATIENCE, through};

/// The output of a program that goes to its terminal. Nobody reads the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Both,
    Output,
    Errors,
}

/// A program whose input is a terminal, in a session of its own, so that Ctrl-C reaches it.
pub(crate) struct Terminal {
    child: Child,
    typed: File,
    pieces: mpsc::Receiver<Vec<u8>>,
    /// Ends the reader as soon as it goes.
    reads: PipeWriter,
    reader: JoinHandle<()>,
    text: String,
}

impl Terminal {
    /// Starts a program at a terminal with this number of columns.
    pub(crate) fn start(command: &Command, columns: u16, shown: Shown) -> Self {
        Self::start_through(&["setsid", "--ctty"], command, columns, shown)
    }

    /// Does the same through another program, which may let the terminal be none that sends signals.
    pub(crate) fn start_through(
        starter: &[&str],
        command: &Command,
        columns: u16,
        shown: Shown,
    ) -> Self {
        let (master, slave) = open_pair();
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let stream = |is_shown: bool| match is_shown {
            true => Stdio::from(slave.try_clone().unwrap()),
            false => Stdio::null(),
        };
        // Becomes the program itself, since it leads no process group.
        let mut command = through(starter, command);
        if !command.get_envs().any(|(name, _)| name == "TERM") {
            command.env("TERM", "xterm");
        }
        command.stdin(stream(true));
        command.stdout(stream(shown != Shown::Errors)).stderr(stream(shown != Shown::Output));
        let child = command.spawn().unwrap();
        let (master, (sender, pieces)) = (File::from(master), mpsc::channel());
        let mut output = master.try_clone().unwrap();
        let (end, reads) = pipe().unwrap();
        // Reading fails when nobody has the terminal any more.
        let reader = thread::spawn(move || {
            let mut piece = [0; 4096];
            loop {
                let mut ready = [&output.as_fd(), &end.as_fd()]
                    .map(|it| PollFd::from_borrowed_fd(*it, PollFlags::IN));
                poll(&mut ready, None).unwrap();
                if !ready[1].revents().is_empty() {
                    return;
                }
                let Ok(count @ 1..) = output.read(&mut piece) else { return };
                drop(sender.send(piece[..count].to_vec()));
            }
        });
        Self { child, typed: master, pieces, reads, reader, text: String::new() }
    }

    /// Closes the terminal, as a window is closed.
    pub(crate) fn hang_up(self) -> HungUp {
        let Self { child, typed, reads, reader, .. } = self;
        drop(reads);
        reader.join().unwrap();
        drop(typed);
        HungUp(child)
    }

    /// Types something.
    pub(crate) fn type_in(&mut self, text: &str) {
        self.typed.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until the terminal has shown something, and returns all that it has shown so far.
    #[track_caller]
    pub(crate) fn await_text(&mut self, wanted: &str) -> &str {
        self.await_that(wanted, |text| text.contains(wanted))
    }

    /// Waits until this is true of all that the terminal has shown, and returns that.
    #[track_caller]
    pub(crate) fn await_that(&mut self, wanted: &str, is_so: impl Fn(&str) -> bool) -> &str {
        let begun = Instant::now();
        while !is_so(&self.text) {
            let Ok(piece) = self.pieces.recv_timeout(PATIENCE.saturating_sub(begun.elapsed()))
            else {
                drop(self.child.kill());
                panic!("no {wanted:?} in {:?}", self.text);
            };
            self.text.push_str(&String::from_utf8_lossy(&piece));
        }
        &self.text
    }

    /// Waits for the end of the program. Returns how it ended, and all that the terminal has shown.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let begun = Instant::now();
        while let Ok(piece) = self.pieces.recv_timeout(PATIENCE.saturating_sub(begun.elapsed())) {
            self.text.push_str(&String::from_utf8_lossy(&piece));
        }
        if begun.elapsed() >= PATIENCE {
            drop(self.child.kill());
            panic!("the program hangs: {:?}", self.text);
        }
        (self.child.wait().unwrap(), self.text)
    }
}

/// A program whose terminal is gone.
pub(crate) struct HungUp(Child);

impl HungUp {
    /// Waits for the end of the program.
    #[track_caller]
    pub(crate) fn end(mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            match self.0.try_wait().unwrap() {
                Some(status) => return status,
                None if begun.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(5)),
                None => {
                    drop(self.0.kill());
                    panic!("the program hangs");
                }
            }
        }
    }
}

/// Opens a terminal. Returns both of its ends.
fn open_pair() -> (OwnedFd, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let path = std::ffi::OsString::from_vec(ptsname(&master, Vec::new()).unwrap().into_bytes());
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = open(path, flags, Mode::empty()).unwrap();
    (master, slave)
}

/// A terminal that is gone.
pub(crate) fn gone() -> OwnedFd {
    let slave = open_pair().1;
    // A process that another test is just starting has the other end for a moment.
    loop {
        let mut fds = [PollFd::new(&slave, PollFlags::empty())];
        let _interrupted = poll(&mut fds, None);
        if fds[0].revents().contains(PollFlags::HUP) {
            return slave;
        }
    }
}

/// The lines that a terminal with this number of columns has shown, one after the other, without colours and without empty lines. A
/// longer line goes on in the next one.
pub(crate) fn lines(text: &str, columns: usize) -> Vec<String> {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic()).unwrap();
        // Every sequence that is no colour moves the cursor, or clears a line.
        plain.push_str(if after[end..].starts_with('m') { "" } else { "\n" });
        rest = &after[end + 1..];
    }
    plain.push_str(rest);
    let mut lines = Vec::new();
    for line in plain.split(['\r', '\n']) {
        let characters: Vec<char> = line.chars().collect();
        lines.extend(characters.chunks(columns).map(|line| line.iter().collect::<String>()));
    }
    let lines = lines.iter().map(|line| line.trim_end()).filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}
