//! Fault injection: in a build with debug assertions, any operation of the storage can fail.
//!
//! `CE_FAULT=7:ENOSPC` makes the seventh operation of the process fail once, `7+:EIO` that one and
//! all after it, and `7:KILL` kills the process there; `ERRORS` lists the other errors. A release
//! build ignores the variable.

#[cfg(not(debug_assertions))]
pub(in crate::storage) use self::none::fault;
#[cfg(debug_assertions)]
pub(in crate::storage) use self::some::fault;

#[cfg(not(debug_assertions))]
mod none {
    /// Injects no fault.
    #[inline(always)]
    pub(in crate::storage) const fn fault() -> std::io::Result<()> {
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
    const ERRORS: [(&str, Errno); 7] = [
        ("EACCES", Errno::ACCESS),
        ("EDQUOT", Errno::DQUOT),
        ("EIO", Errno::IO),
        ("ENAMETOOLONG", Errno::NAMETOOLONG),
        ("ENOSPC", Errno::NOSPC),
        ("EROFS", Errno::ROFS),
        ("ESTALE", Errno::STALE),
    ];

    #[derive(Clone, Copy)]
    struct InjectedFault {
        at: u64,
        and_after: bool,
        error: Option<Errno>,
    }

    fn parse(text: &str) -> Option<InjectedFault> {
        let (at, error) = text.split_once(':')?;
        let (at, and_after) = at.strip_suffix('+').map_or((at, false), |at| (at, true));
        let error = match error {
            "KILL" => None,
            name => Some(ERRORS.iter().find(|(known, _)| *known == name)?.1),
        };
        Some(InjectedFault { at: at.parse().ok()?, and_after, error })
    }

    /// Counts this operation, and fails if a fault is injected into it.
    pub(in crate::storage) fn fault() -> io::Result<()> {
        static FAULT: OnceLock<Option<InjectedFault>> = OnceLock::new();
        static OPERATIONS: AtomicU64 = AtomicU64::new(0);
        let fault = FAULT.get_or_init(|| parse(&std::env::var("CE_FAULT").ok()?));
        let Some(InjectedFault { at, and_after, error }) = *fault else { return Ok(()) };
        let now = OPERATIONS.fetch_add(1, Ordering::Relaxed) + 1;
        if now < at || now > at && !and_after {
            return Ok(());
        }
        if now == at {
            drop(writeln!(io::stderr(), "fault at operation {now}"));
        }
        match error {
            Some(error) => Err(error.into()),
            None => Ok(kill_process(getpid(), Signal::KILL)?),
        }
    }
}
