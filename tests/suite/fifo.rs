//! A named pipe at which a test and a computation meet: nobody has to guess how long to wait.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};

use super::program::PATIENCE;

/// A named pipe that nobody writes to: a reader waits until this goes.
pub(crate) struct Never(PathBuf);

impl Never {
    pub(crate) fn new(path: PathBuf) -> Self {
        make(&path);
        Self(path)
    }
}

impl Never {
    /// Lets go one that waits, or is about to.
    pub(crate) fn let_go(self) {
        drop(File::options().write(true).open(&self.0).unwrap());
    }
}

impl Drop for Never {
    /// Lets go what still waits, so that no test that fails leaves a process behind.
    fn drop(&mut self) {
        // Fails if nobody waits; who does reads the end of the file.
        drop(open(&self.0, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()));
    }
}

/// The reading end; computations write.
pub(crate) struct Fifo(mpsc::Receiver<String>);

pub(crate) fn make(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

impl Fifo {
    pub(crate) fn new(path: &Path) -> Self {
        make(path);
        let (sender, lines) = mpsc::channel();
        let path = path.to_owned();
        thread::spawn(move || {
            let lines = BufReader::new(File::open(path).unwrap()).lines();
            lines.map_while(|line| sender.send(line.unwrap()).ok()).for_each(drop);
        });
        Self(lines)
    }

    /// The next line that somebody writes.
    #[track_caller]
    pub(crate) fn line(&self) -> String {
        self.0.recv_timeout(PATIENCE).unwrap()
    }

    /// Reads what comes until all processes that hold the other end are gone, so that none of them is stopped by a
    /// full or closed pipe.
    pub(crate) fn drain(&self) {
        while self.0.recv().is_ok() {}
    }

    /// Waits until all processes that hold the other end are gone.
    #[track_caller]
    pub(crate) fn end(&self) {
        assert_eq!(self.0.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
    }
}
