//! Signals: processes inherit which of them are blocked and ignored.
//!
//! A program that ignores SIGCHLD cannot wait for its children, and one that blocks SIGTERM cannot
//! be asked to end. So both are reset when this program starts, for all processes that it starts:
//! all signals are unblocked, and ignored ones are caught by a handler that does nothing. They
//! still have no effect here, so `nohup` works, and a handler becomes the default action with
//! `exec`.

use std::fs;
use std::sync::{Arc, OnceLock};

use nix::sys::signal::SigSet;
use signal_hook::consts::{FORBIDDEN, SIGCHLD, SIGPIPE};
use signal_hook::flag;

/// The greatest number of a signal.
const LAST: i32 = 64;

/// The signals that were ignored when the program started, a bit for each.
static IGNORED: OnceLock<u64> = OnceLock::new();

/// Unblocks all signals, and lets no process inherit that one is ignored. The process must have one
/// thread yet: the others inherit from it.
pub fn put_in_order() {
    // Neither can fail for a signal that there is.
    let _unblocked = SigSet::empty().thread_set_mask();
    // The standard library ignores SIGPIPE, and restores the default action in its children.
    let settled = |signal: &i32| *signal == SIGPIPE || FORBIDDEN.contains(signal);
    for signal in (1..=LAST).filter(|signal| was_ignored(*signal) && !settled(signal)) {
        let _caught = flag::register(signal, Arc::default());
    }
}

/// Whether a signal was ignored when this program started: then it is to go on having no effect.
pub fn was_ignored(signal: i32) -> bool {
    // Without /proc it is not known. A handler of SIGCHLD does no harm.
    let read = || ignored(&fs::read_to_string("/proc/self/status").ok()?);
    let ignored = IGNORED.get_or_init(|| read().unwrap_or(bit(SIGCHLD)));
    ignored & bit(signal) != 0
}

/// Reads the ignored signals from the text of `/proc/self/status`.
fn ignored(status: &str) -> Option<u64> {
    let digits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(digits.trim(), 16).ok()
}

const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

#[cfg(test)]
mod tests {
    use signal_hook::consts::{SIGHUP, SIGINT};

    use super::*;

    #[test]
    fn the_ignored_signals_are_read() {
        let read = ignored("Name:\tx\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000010001\n");
        assert_eq!(read, Some(bit(SIGHUP) | bit(SIGCHLD)));
        assert_eq!(read.map(|read| read & bit(SIGINT)), Some(0));
        assert_eq!(ignored("Name:\tx\n"), None);
        assert_eq!(bit(LAST), 1 << 63);
    }
}
