//! Ctrl-C, SIGTERM and SIGHUP: what is running is asked to end, then made to.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;

use crate::executor::{GRACE, Local};

/// Watches for signals as long as it lives.
pub(super) struct Interrupts {
    caught: Arc<AtomicU8>,
    handle: Handle,
}

impl Interrupts {
    /// Begins to watch; the first signal interrupts the executor, a second one kills.
    pub(super) fn watch(executor: &Arc<Local>) -> io::Result<Self> {
        let (interrupted, killed) = (Arc::clone(executor), Arc::clone(executor));
        let interrupt = move || {
            interrupted.interrupt();
            let executor = Arc::clone(&interrupted);
            thread::spawn(move || {
                thread::sleep(GRACE);
                executor.kill();
            });
        };
        Self::begin(interrupt, move |_| killed.kill())
    }

    /// Begins to watch; the first signal sets `stop`, a second one ends the program.
    pub(super) fn stop(stop: &Arc<AtomicBool>) -> io::Result<Self> {
        let stop = Arc::clone(stop);
        let end = |signal| drop(emulate_default_handler(signal));
        Self::begin(move || stop.store(true, Ordering::SeqCst), end)
    }

    /// Begins to watch; the first signal does one thing, any other one another.
    fn begin(
        interrupt: impl Fn() + Send + 'static,
        again: impl Fn(i32) + Send + 'static,
    ) -> io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let handle = signals.handle();
        let caught = Arc::new(AtomicU8::new(0));
        let first = Arc::clone(&caught);
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                let number = u8::try_from(signal).unwrap_or(u8::MAX);
                let before = first.compare_exchange(0, number, Ordering::SeqCst, Ordering::SeqCst);
                if before.is_ok() { interrupt() } else { again(signal) }
            }
        })?;
        Ok(Self { caught, handle })
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
