//! Ctrl-C, SIGTERM and SIGHUP: running computations are asked to end, then killed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::{Handle, Signals};

use ce_executor::slurm::HANDOVER;
use ce_executor::{Executor, GRACE, was_ignored};

/// The signals that ask a program to end, except those that were ignored at the start, as by
/// `nohup`.
fn signals() -> impl Iterator<Item = i32> {
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !was_ignored(*signal))
}

/// Passes signals on to the executor as long as it lives.
pub(super) struct Interrupts {
    caught: Arc<AtomicU8>,
    asked: Arc<AtomicBool>,
    handle: Handle,
}

impl Interrupts {
    /// Begins to watch; the first signal cancels the executor, a second one kills.
    pub(super) fn watch(executor: &Arc<dyn Executor>) -> io::Result<Self> {
        Self::of_run(executor, false)
    }

    /// Does the same; one that is a job is also asked to hand over to the next one. Who asks it to end meanwhile counts more.
    pub(super) fn of_run(executor: &Arc<dyn Executor>, is_job: bool) -> io::Result<Self> {
        let (cancelled, killed) = (Arc::clone(executor), Arc::clone(executor));
        let interrupt = move || {
            cancelled.cancel();
            let executor = Arc::clone(&cancelled);
            thread::spawn(move || {
                thread::sleep(GRACE);
                executor.kill();
            });
        };
        let handover = is_job.then_some(i32::from(HANDOVER));
        let mut signals = Signals::new(signals().chain(handover))?;
        let handle = signals.handle();
        let caught = Arc::new(AtomicU8::new(0));
        let first = Arc::clone(&caught);
        let asked = Arc::new(AtomicBool::new(false));
        let ask = Arc::clone(&asked);
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                let number = u8::try_from(signal).unwrap_or(u8::MAX);
                let before = first.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |before| {
                    (before == 0 || before == HANDOVER).then_some(number)
                });
                ask.store(true, Ordering::SeqCst);
                if before == Ok(0) { interrupt() } else { killed.kill() }
            }
        })?;
        Ok(Self { caught, asked, handle })
    }

    /// The flag that becomes true when a signal was caught.
    pub(super) fn asked(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.asked)
    }

    /// The first signal that came, if any.
    pub(super) fn caught(&self) -> Option<u8> {
        Some(self.caught.load(Ordering::SeqCst)).filter(|signal| *signal > 0)
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.handle.close();
    }
}

/// A program that does one thing after the other and looks in between whether it is to stop.
pub struct Stop {
    /// Whether it should stop.
    pub asked: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Stop {
    /// Begins to watch; the first signal asks, a second one ends the program.
    ///
    /// # Errors
    ///
    /// Fails if signals cannot be watched.
    pub fn watch() -> io::Result<Self> {
        let stop = Self { asked: Arc::default(), signal: Arc::default() };
        for signal in signals() {
            let number = usize::try_from(signal).unwrap_or_default();
            flag::register_usize(signal, Arc::clone(&stop.signal), number)?;
            flag::register_conditional_default(signal, Arc::clone(&stop.asked))?;
            flag::register(signal, Arc::clone(&stop.asked))?;
        }
        // A signal that came between these registrations has left its number only.
        if stop.caught().is_some() {
            stop.asked.store(true, Ordering::SeqCst);
        }
        Ok(stop)
    }

    /// The signal that asked, if any.
    pub fn caught(&self) -> Option<u8> {
        u8::try_from(self.signal.load(Ordering::SeqCst)).ok().filter(|signal| *signal > 0)
    }
}
