//! What the user is told of the storage: that it is away, that a collection is waited for, and that its hard links are not what
//! leases need.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::interrupt::Interrupts;
use super::{Error, Frontend, Interrupted};
use ce_model::humanize::duration;
use ce_storage::{Outage, Patience, Storage, StorageError};

/// What is to be told. Unless somebody tells it beside the progress, it is told at once.
#[derive(Debug)]
pub(super) struct StorageNotices {
    frontend: Frontend,
    untold: Mutex<VecDeque<String>>,
    is_followed: AtomicBool,
    has_warned: AtomicBool,
}

impl StorageNotices {
    pub(super) fn new(frontend: Frontend) -> Self {
        let (is_followed, has_warned) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { frontend, untold: Mutex::default(), is_followed, has_warned }
    }

    /// Waits for a storage that is away until `stop` becomes true, and tells that here. If it is quiet, waits for collections
    /// are not told.
    pub(super) fn patience(self: &Arc<Self>, stop: Arc<AtomicBool>, is_quiet: bool) -> Patience {
        let notices = Arc::clone(self);
        let tell = move |outage: &Outage| {
            if !(is_quiet && matches!(outage, Outage::Collection { .. })) {
                notices.add(words(outage));
            }
        };
        Patience { stop, tell: Arc::new(tell) }
    }

    /// Somebody asks for the notices from now on, or does not any more.
    pub(super) fn follow(&self, is_followed: bool) {
        self.is_followed.store(is_followed, Ordering::Release);
        if !is_followed {
            while let Some(text) = self.next() {
                (self.frontend.notify)(&text);
            }
        }
    }

    /// The next one.
    pub(super) fn next(&self) -> Option<String> {
        self.lock().pop_front()
    }

    fn add(&self, text: String) {
        self.lock().push_back(text);
        if !self.is_followed.load(Ordering::Acquire) {
            self.follow(false);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns once what the user should know of hard links, if they are not what runs need.
    pub(super) fn links(&self, storage: &Storage) -> Option<String> {
        (storage.lacks_links() && !self.has_warned.swap(true, Ordering::AcqRel))
            .then(|| links_warning(storage.shown_place()))
    }
}

/// What is told of an outage.
fn words(outage: &Outage) -> String {
    match outage {
        Outage::Collection { storage, holder } => format!(
            "waiting for {holder}, which takes results away from the storage {}",
            storage.display()
        ),
        Outage::Began { storage, why, most } => format!(
            "the storage {} does not answer: {why}\n  waiting for up to {}; nothing else is started until then",
            storage.display(),
            duration(most.as_secs_f64())
        ),
        Outage::Over { storage, after } => format!(
            "the storage {} answers again after {}",
            storage.display(),
            duration(after.as_secs_f64())
        ),
    }
}

/// The warning that two runs may execute one call.
fn links_warning(storage: &Path) -> String {
    format!(
        "warning: hard links on the file system of {0} are not what leases need: runs at the same time may compute a call twice\n  try: let one run at a time use it, or put it on another file system; ce doctor {0} says more",
        storage.display()
    )
}

/// Turns the error of an operation that a signal has ended into that of the signal.
pub(super) fn unless_interrupted<T>(
    done: Result<T, StorageError>,
    interrupts: &Interrupts,
) -> Result<T, Error> {
    done.map_err(|error| match (error, interrupts.caught()) {
        (StorageError::Interrupted, Some(signal)) => Interrupted(signal).into(),
        (error, _) => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_quiet_does_not_tell_that_it_waits_for_a_collection() {
        let collection = Outage::Collection { storage: "results".into(), holder: "x".into() };
        let over = Outage::Over { storage: "results".into(), after: Default::default() };
        for (is_quiet, outage, is_told) in
            [(false, &collection, true), (true, &collection, false), (true, &over, true)]
        {
            let notices = Arc::new(StorageNotices::new(Frontend::default()));
            notices.is_followed.store(true, Ordering::Release);
            (notices.patience(Arc::default(), is_quiet).tell)(outage);
            assert_eq!(notices.next().is_some(), is_told, "{outage:?}");
        }
    }
}
