//! Ctrl-C, SIGTERM and SIGHUP: what is running is asked to end, then made to.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::{Handle, Signals};

use crate::executor::{GRACE, Local};

/// Watches for signals as long as it lives.
pub(super) struct Interrupts {
    caught: Arc<AtomicU8>,
    handle: Handle,
}

impl Interrupts {
    /// Begins to watch; the first signal interrupts the executor, a second one kills.
    pub(super) fn watch(executor: &Arc<Local>) -> io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let handle = signals.handle();
        let caught = Arc::new(AtomicU8::new(0));
        let (first, executor) = (Arc::clone(&caught), Arc::clone(executor));
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                let signal = u8::try_from(signal).unwrap_or(u8::MAX);
                let before = first.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
                if before.is_err() {
                    executor.kill();
                    continue;
                }
                executor.interrupt();
                let executor = Arc::clone(&executor);
                thread::spawn(move || {
                    thread::sleep(GRACE);
                    executor.kill();
                });
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

/// Notes that the user asked to stop, for programs that look from time to time.
pub(super) struct Stop(Arc<AtomicUsize>);

impl Stop {
    /// Begins to watch; the first signal is noted, a second one ends the process at once.
    pub(super) fn watch() -> io::Result<Self> {
        let (caught, again) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register_conditional_default(signal, Arc::clone(&again))?;
            flag::register(signal, Arc::clone(&again))?;
            flag::register_usize(signal, Arc::clone(&caught), signal.unsigned_abs() as usize)?;
        }
        Ok(Self(caught))
    }

    /// The signal that came last, if any.
    pub(super) fn caught(&self) -> Option<u8> {
        u8::try_from(self.0.load(Ordering::SeqCst)).ok().filter(|signal| *signal > 0)
    }
}
