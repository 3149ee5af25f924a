//! Opening a file without waiting for the other end of a FIFO, although another program may hold a lease on it.
//!
//! Opening a file breaks a lease (`F_SETLEASE`): its holder is told, and has 45 s to give it back, unless
//! `/proc/sys/fs/lease-break-time` says otherwise. An open that does not wait fails with `EWOULDBLOCK` meanwhile. The error
//! does not describe the file itself.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

/// The time for which a file is waited for: longer than the kernel lets a program keep its lease.
const PATIENCE: Duration = Duration::from_secs(60);

/// The first and the longest pause before it is tried again.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];

/// Opens a file by a function, which does not wait. While another program holds a lease on it, tries again, unless it
/// is to be stopped.
///
/// # Errors
///
/// Fails as the function does: with `EWOULDBLOCK` if there is a lease after a minute, or it was stopped.
pub fn open_leased<T>(
    is_stopped: impl Fn() -> bool,
    mut open: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    let begun = Instant::now();
    let [mut pause, longest] = PAUSES;
    loop {
        match open() {
            Err(Errno::WOULDBLOCK) if begun.elapsed() < PATIENCE && !is_stopped() => {
                thread::sleep(pause);
                pause = (pause * 2).min(longest);
            }
            opened => return opened,
        }
    }
}

/// Whether a file could not be opened since another program holds a lease on it.
pub fn is_leased(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::WOULDBLOCK.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_file_is_waited_for_until_its_lease_is_given_back() {
        let tries = Cell::new(0);
        let open = || {
            tries.set(tries.get() + 1);
            if tries.get() < 4 { Err(Errno::WOULDBLOCK) } else { Ok(()) }
        };
        assert_eq!((open_leased(|| false, open), tries.get()), (Ok(()), 4));
        let stopped = open_leased(|| true, || Err::<(), _>(Errno::WOULDBLOCK));
        assert_eq!(stopped, Err(Errno::WOULDBLOCK));
        assert_eq!(open_leased(|| false, || Err::<(), _>(Errno::NOENT)), Err(Errno::NOENT));
    }
}
