//! How a verification goes on, on a terminal: how much is read, and how long the rest will take.

use std::io;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar of bytes.
pub struct Bar(ProgressBar);

impl Bar {
    /// Shows that nothing is done yet; `visible` or not at all.
    pub fn new(visible: bool) -> Self {
        let target =
            if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        let text = "[{bar:20}] {bytes}/{total_bytes} {bytes_per_sec}, {eta} to go";
        let style = ProgressStyle::with_template(text);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        Self(bar)
    }

    /// Says how much there is to be done.
    pub fn begin(&self, bytes: u64) {
        self.0.set_length(bytes);
    }

    /// Says that more is done.
    pub fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    /// Writes something else to the terminal, with the bar out of its way.
    ///
    /// # Errors
    ///
    /// Returns the error of what is done meanwhile.
    pub fn aside(&self, write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.0.suspend(write)
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}
