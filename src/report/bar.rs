//! Progress in bytes or calls, on a terminal.

use std::io::{self, IsTerminal};
use std::panic;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::columns::terminal_width;
use super::{TICK, harmless};
use crate::report::say;
use ce_evaluate::session::{Frontend, InputReading};
use ce_exchange::ExchangeProgress;

/// The least number of columns for a bar and the longest numbers.
const WIDE: usize = 75;

/// A progress bar.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar without progress; hidden unless `visible`.
    pub fn new(visible: bool) -> Self {
        Self::with(
            visible,
            match is_wide() {
                true => "[{bar:20}] {bytes}/{total_bytes} {bytes_per_sec}, {eta} to go",
                false => "{bytes}/{total_bytes}, {eta} to go",
            },
        )
    }

    /// A bar of so many calls; hidden unless `visible`.
    pub fn of_calls(visible: bool, calls: usize) -> Self {
        let bar = Self::with(
            visible,
            match is_wide() {
                true => "[{bar:20}] {pos}/{len} calls, {elapsed}",
                false => "{pos}/{len} calls, {elapsed}",
            },
        );
        bar.begin(calls as u64);
        bar
    }

    fn with(visible: bool, text: &str) -> Self {
        let target =
            if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template(text);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        Self(bar)
    }

    /// Sets the total, in bytes or calls.
    pub fn begin(&self, bytes: u64) {
        self.0.set_length(bytes);
    }

    /// Adds to the progress, in bytes or calls.
    pub fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    /// Writes to the terminal while the bar is hidden.
    ///
    /// # Errors
    ///
    /// Returns the error of `write`.
    pub fn aside(&self, write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.0.suspend(write)
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// Whether the terminal has room for a bar beside its numbers. A line that wraps is not taken away.
fn is_wide() -> bool {
    terminal_width(&io::stderr()).is_none_or(|columns| columns >= WIDE)
}

/// Sets the text of a bar. It is drawn only if it has changed.
pub(super) fn set_text(bar: &ProgressBar, text: &str) {
    let text = harmless(text);
    if bar.message() != text {
        bar.set_message(text.into_owned());
    }
}

/// Pushes or pulls; if that takes a while, shows on a terminal how far it is.
pub fn exchanging<T>(progress: &ExchangeProgress, exchange: impl FnOnce() -> T) -> T {
    let text = "{wide_msg}";
    thread::scope(|scope| {
        let (sender, end) = mpsc::channel::<()>();
        scope.spawn(move || {
            let bar = Bar::with(io::stderr().is_terminal(), text);
            while end.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if let Some(shown) = progress.shown() {
                    set_text(&bar.0, &shown);
                }
            }
            bar.clear();
        });
        let exchanged = exchange();
        // Goes also if that panics.
        drop(sender);
        exchanged
    })
}

/// Does some work that reads inputs. If that takes a while, shows on a terminal how many bytes of how many were read, or that
/// something is read.
pub fn while_reading(done: &dyn Fn() -> (u64, u64), read: InputReading<'_>) {
    if !io::stderr().is_terminal() {
        return read();
    }
    thread::scope(|scope| {
        let (sender, end) = mpsc::channel::<()>();
        let reader = scope.spawn(move || {
            // Goes when all is read, or reading panics.
            let _sender = sender;
            read();
        });
        let (bar, mut waiting) = (Bar::new(true), Some(Bar::with(true, "{msg}")));
        while end.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            let (bytes, of) = done();
            if of > 0 {
                waiting.take().iter().for_each(Bar::clear);
                bar.begin(of);
                bar.0.set_position(bytes);
            } else if let Some(waiting) = &waiting {
                // The size of a pipe is unknown.
                set_text(&waiting.0, "reading inputs");
            }
        }
        waiting.iter().chain([&bar]).for_each(Bar::clear);
        reader.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
    });
}

/// The front end of sessions that shows its user what goes on.
pub fn terminal() -> Frontend {
    Frontend { notify: |text| say("ce", &text), while_reading }
}
