//! How far a push or a pull is, for whoever shows that meanwhile.

use std::sync::Mutex;

/// How far a push or a pull is. It may be asked at any time, by any thread.
#[derive(Debug, Default)]
pub struct ExchangeProgress(Mutex<ExchangeStep>);

/// What a push or a pull is doing.
#[derive(Clone, Copy, Debug, Default)]
struct ExchangeStep {
    /// In words; empty before it begins.
    what: &'static str,
    done: usize,
    /// The number of results that it takes; none if nobody knows.
    all: usize,
}

impl ExchangeProgress {
    /// Begins something with a number of results, or with none.
    pub(super) fn begin(&self, what: &'static str, all: usize) {
        self.change(|step| *step = ExchangeStep { what, done: 0, all });
    }

    /// Adds results that are done.
    pub(super) fn advance(&self, results: usize) {
        self.change(|step| step.done += results);
    }

    /// How far it is, in words; `None` before it begins.
    pub fn shown(&self) -> Option<String> {
        let ExchangeStep { what, done, all } = *self.0.lock().ok()?;
        match (what, all) {
            ("", _) => None,
            (what, 0) => Some(what.to_owned()),
            (what, all) => Some(format!("{what}: {done} of {all}")),
        }
    }

    fn change(&self, change: impl FnOnce(&mut ExchangeStep)) {
        // Nothing panics while it is locked.
        if let Ok(mut step) = self.0.lock() {
            change(&mut step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_done_and_how_much_of_it() {
        let progress = ExchangeProgress::default();
        assert_eq!(progress.shown(), None);
        progress.begin("reading results", 99_407);
        progress.advance(11_000);
        progress.advance(1_000);
        assert_eq!(progress.shown().unwrap(), "reading results: 12000 of 99407");
        progress.begin("sending", 0);
        assert_eq!(progress.shown().unwrap(), "sending");
    }
}
