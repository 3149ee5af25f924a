//! Where a run is told: standard output, progress, and complaints beside it.
//!
//! Events wait in a queue, so that nobody who reads slowly slows down the evaluation, and nobody
//! who stops reading stops it.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::say;
use crate::evaluate::Event;
use crate::exit::Exit;
use crate::report::{Progress, Reporter, TICK, Troubles, View};
use crate::storage::ResultName;

/// How many events are told at once.
const BATCH: usize = 1000;

/// How often whoever tells is woken for an event. After that events come too fast for that: each time
/// costs more than to tell ten.
const WOKEN: usize = 100;

/// How long events may wait then.
const PAUSE: Duration = Duration::from_millis(1);

/// Everything that a run writes.
pub(super) struct Screen<'a> {
    pub(super) program: &'static str,
    pub(super) view: View<'a>,
    pub(super) reporter: Box<dyn Reporter + 'a>,
    pub(super) progress: Progress<'a>,
    pub(super) troubles: Troubles,
    /// What is to be written next.
    pub(super) text: Vec<u8>,
    pub(super) out: &'a mut dyn Write,
    /// Why nothing more is written.
    pub(super) broken: Option<io::Error>,
}

impl Screen<'_> {
    /// Tells all events until there are no more, when the user asked to stop, and what is to be told
    /// once.
    pub(super) fn follow(
        &mut self,
        events: &Receiver<Event>,
        caught: &dyn Fn() -> Option<u8>,
        warning: &dyn Fn() -> Option<String>,
    ) {
        self.write();
        let mut interrupted = false;
        let mut warned = false;
        let mut woken = 0;
        loop {
            match events.recv_timeout(TICK) {
                Ok(event) => {
                    self.event(&event);
                    woken += 1;
                    if woken > WOKEN {
                        thread::sleep(PAUSE);
                    }
                    events.try_iter().take(BATCH).for_each(|event| self.event(&event));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if !warned && let Some(text) = warning() {
                warned = true;
                self.complain(&text);
            }
            self.write();
            if !interrupted && caught().is_some() {
                interrupted = true;
                self.complain("interrupted: ending what is running (once more to kill it)");
            }
            self.progress.show();
        }
        self.progress.clear();
        let rest: Vec<String> = self.troubles.rest().collect();
        rest.iter().for_each(|text| self.complain(text));
    }

    fn event(&mut self, event: &Event) {
        self.progress.event(event);
        let told = self.reporter.event(event, &mut self.text);
        self.note(told);
        if let Some(text) = self.troubles.tell(self.view, event) {
            self.write();
            self.complain(text.trim_end());
        }
    }

    fn complain(&mut self, text: &str) {
        let complaint = self.progress.aside(|| {
            say(self.program, &text);
            Ok(())
        });
        self.note(complaint);
    }

    /// Tells the end.
    pub(super) fn end(&mut self, job: Option<&ResultName>, exit: Exit) {
        let told = self.reporter.end(job, exit, &mut self.text);
        self.note(told);
        self.write();
    }

    fn write(&mut self) {
        if !self.text.is_empty() && self.broken.is_none() {
            let (out, text) = (&mut *self.out, &self.text);
            let written = self.progress.aside(|| {
                out.write_all(text)?;
                out.flush()
            });
            self.note(written);
        }
        self.text.clear();
    }

    fn note(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.broken.get_or_insert(error);
        }
    }
}
