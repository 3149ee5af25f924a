//! Processes that were killed between their fork and the execution of a program: they were no `exec` yet.

use std::fs;

use rustix::process::{Pid, getpid};

/// The flag of the kernel for a process that has executed nothing since it was forked: `PF_FORKNOEXEC`.
const FORKED: u32 = 0x40;

/// Whether a process, which has ended and was not reaped, has never executed a program. False if that is not known.
pub(super) fn is_unborn(pid: Pid) -> bool {
    // In a mount of /proc that belongs to another process namespace all numbers are different.
    let own = getpid().as_raw_nonzero().to_string();
    let is_own = fs::read_link("/proc/self").is_ok_and(|to| to.as_os_str() == own.as_str());
    let stat = || fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    is_own && stat().is_ok_and(|stat| is_only_forked(&String::from_utf8_lossy(&stat)))
}

/// Reads the flags of a process, which stand behind its name and six other fields.
fn is_only_forked(stat: &str) -> bool {
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let flags = fields.split(' ').nth(6).and_then(|flags| flags.parse::<u32>().ok());
    flags.is_some_and(|flags| flags & FORKED != 0)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::{WaitId, WaitIdOptions, waitid};

    use super::*;

    #[test]
    fn flags_stand_behind_any_name() {
        assert!(is_only_forked("12 (a) b) Z 1 12 12 0 -1 4194372 99 0"));
        assert!(!is_only_forked("12 (ce) Z 1 12 12 0 -1 4194308 99 0"));
        assert!(!is_only_forked("") && !is_only_forked("12 (ce) Z 1"));
    }

    #[test]
    fn a_program_that_has_ended_was_executed() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = Pid::from_child(&child);
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert!(!is_unborn(pid));
        child.wait().unwrap();
    }
}
