//! Fault injection: in a build with debug assertions, any operation of the storage can fail.
//!
//! `CE_FAULT=7:ENOSPC` makes the seventh operation of the process fail once, `7-9:ENOTCONN` that one and
//! the two after it, `7+:EIO` that one and all after it, `7:KILL` kills the process there, and `7:STOP` stops it,
//! until it gets SIGCONT; `ERRORS` lists the other errors. A release build ignores the variable.

#[cfg(not(debug_assertions))]
pub(crate) use self::none::fault;
#[cfg(debug_assertions)]
pub(crate) use self::some::fault;

#[cfg(not(debug_assertions))]
mod none {
    /// Injects no fault.
    #[inline(always)]
    pub(crate) const fn fault() -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(debug_assertions)]
mod some {
    use std::io::{self, Write};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustix::io::Errno;
    use rustix::process::{Signal, getpid, kill_process};

    /// The errors that can be injected, by name.
    const ERRORS: [(&str, Errno); 11] = [
        ("EACCES", Errno::ACCESS),
        ("EDQUOT", Errno::DQUOT),
        ("EHOSTDOWN", Errno::HOSTDOWN),
        ("EIO", Errno::IO),
        ("ENAMETOOLONG", Errno::NAMETOOLONG),
        ("ENOENT", Errno::NOENT),
        ("ENOSPC", Errno::NOSPC),
        ("ENOTCONN", Errno::NOTCONN),
        ("ENOTEMPTY", Errno::NOTEMPTY),
        ("EROFS", Errno::ROFS),
        ("ESTALE", Errno::STALE),
    ];

    /// The signals that can be sent to this process, by name.
    const SIGNALS: [(&str, Signal); 2] = [("KILL", Signal::KILL), ("STOP", Signal::STOP)];

    #[derive(Clone, Copy)]
    struct InjectedFault {
        first: u64,
        last: u64,
        what: Result<Signal, Errno>,
    }

    fn parse(text: &str) -> Option<InjectedFault> {
        let (at, error) = text.split_once(':')?;
        let (first, last) = match (at.strip_suffix('+'), at.split_once('-')) {
            (Some(first), _) => (first.parse().ok()?, u64::MAX),
            (None, Some((first, last))) => (first.parse().ok()?, last.parse().ok()?),
            (None, None) => (at.parse().ok()?, at.parse().ok()?),
        };
        let signal =
            SIGNALS.iter().find(|(known, _)| *known == error).map(|(_, signal)| Ok(*signal));
        Some(InjectedFault {
            first,
            last,
            what: signal
                .or_else(|| Some(Err(ERRORS.iter().find(|(known, _)| *known == error)?.1)))?,
        })
    }

    /// Counts this operation, and fails if a fault is injected into it.
    pub(crate) fn fault() -> io::Result<()> {
        static FAULT: OnceLock<Option<InjectedFault>> = OnceLock::new();
        static OPERATIONS: AtomicU64 = AtomicU64::new(0);
        let fault = FAULT.get_or_init(|| parse(&std::env::var("CE_FAULT").ok()?));
        let Some(InjectedFault { first, last, what }) = *fault else { return Ok(()) };
        let now = OPERATIONS.fetch_add(1, Ordering::Relaxed) + 1;
        if !(first..=last).contains(&now) {
            return Ok(());
        }
        if now == first {
            drop(writeln!(io::stderr(), "fault at operation {now}"));
        }
        match what {
            Err(error) => Err(error.into()),
            Ok(signal) => Ok(kill_process(getpid(), signal)?),
        }
    }
}
