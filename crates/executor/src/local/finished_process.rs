//! An execution that is over: what the system says of it, and what that means for its call.

use std::fs;
use std::time::Duration;

use ce_model::access::Rule;
use ce_model::host_use::HostUse;
use jiff::Timestamp;
use rustix::process::{Pid, getpid};

use super::limits::MetLimit;
use crate::executor::{Ended, Failed, Isolation, SUSPENDED, Status, TaskStatuses, Usage};

/// The signals by which users, shells and schedulers ask programs to end: HUP, INT and TERM.
const ASKING: [i32; 3] = [1, 2, 15];

/// The flag of the kernel for a process that has executed nothing since it was forked: `PF_FORKNOEXEC`.
const FORKED: u32 = 0x40;

/// An ended execution, as the system reports it.
pub(super) struct FinishedProcess {
    /// Its exit status.
    pub(super) code: Option<i32>,
    /// The signal that ended it.
    pub(super) signal: Option<i32>,
    /// The limit that has ended it.
    pub(super) met: Option<MetLimit>,
    pub(super) user: Duration,
    pub(super) system: Duration,
    /// In bytes.
    pub(super) peak: u64,
    /// How often a processor was taken from it, if that was counted for it alone.
    pub(super) switches: Option<u64>,
    pub(super) left_behind: bool,
    pub(super) passed_on: bool,
    /// Whether it was killed before it had replaced this program by another one.
    pub(super) never_executed: bool,
    pub(super) isolation: Isolation,
    pub(super) lacking: Vec<Rule>,
    /// The statuses of its tasks, if a launcher has started it.
    pub(super) tasks: TaskStatuses,
    /// The last error of its launcher, if that is the reason why tasks did not end.
    pub(super) launcher_error: Option<String>,
    /// The use of its host by others, if it is known.
    pub(super) host: Option<HostUse>,
}

impl FinishedProcess {
    /// A signal that asks programs to end and that ended it, although this program has not sent it.
    fn foreign_signal(&self) -> Option<i32> {
        self.signal.filter(|signal| self.met.is_none() && ASKING.contains(signal))
    }

    /// The exit status or signal.
    pub(super) fn status(&self) -> Status {
        match self.code {
            Some(code) => Status::Exited(code),
            None => Status::Killed(self.signal.unwrap_or_default()),
        }
    }

    /// The end of the execution, by its start.
    pub(super) fn ended(self, start: Timestamp) -> Ended {
        let is_launched = !self.tasks.0.is_empty();
        if !is_launched && let Some(signal) = self.foreign_signal() {
            let status = Status::Killed(signal);
            return Ended::Lost(format!("{status}, which compeval had not sent"));
        }
        if self.never_executed && self.met.is_none() {
            return Ended::Lost(format!("{} before it was started", self.status()));
        }
        let own = match self.tasks.failure() {
            _ if !is_launched => self.status(),
            None if self.tasks.are_done() => Status::Exited(0),
            // A launcher that was killed leaves tasks which may fail for that reason.
            Some(status) if self.met.is_some() || self.signal.is_none() => status,
            _ if self.met.is_some() => self.status(),
            _ => {
                let how = self.launcher_error.clone().unwrap_or_else(|| self.status().to_string());
                return Ended::Lost(format!("its launcher failed: {how}"));
            }
        };
        let status = match (own, self.met) {
            // It may have gone on without a part that was ended.
            (_, Some(MetLimit::Memory(limit))) => Some(Status::OutOfMemory(limit)),
            // It may have been asked to end, and have left what it had so far.
            (_, Some(MetLimit::Time(limit))) => {
                Some(Status::TimedOut(self.signal.unwrap_or(15), limit))
            }
            (Status::Exited(0), None) => None,
            (status, None) => Some(status),
        };
        let Self { user, system, peak, left_behind, passed_on, isolation, .. } = self;
        let Self { lacking, tasks, host, .. } = self;
        let end = Timestamp::now();
        let usage = Usage {
            start,
            end,
            user,
            system,
            peak,
            left_behind,
            passed_on,
            isolation,
            tasks,
            host,
        };
        match status {
            None => Ended::Done(usage),
            Some(Status::Exited(SUSPENDED)) if !is_launched => Ended::Suspended(usage),
            Some(status) => Ended::Failed(Failed { status, usage, lacking }),
        }
    }
}

/// Whether a process, which has ended and was not reaped, has never executed a program. False if that is not known.
pub(super) fn never_executed(pid: Pid) -> bool {
    // In a mount of /proc that belongs to another process namespace all numbers are different.
    let own = getpid().as_raw_nonzero().to_string();
    let is_own = fs::read_link("/proc/self").is_ok_and(|to| to.as_os_str() == own.as_str());
    let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    is_own && stat.is_ok_and(|stat| is_only_forked(&String::from_utf8_lossy(&stat)))
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
    fn a_timeout_before_exec_is_a_failure_but_a_foreign_kill_is_not() {
        let ended = |met| {
            let over = FinishedProcess {
                code: None,
                signal: Some(9),
                met,
                user: Duration::ZERO,
                system: Duration::ZERO,
                peak: 0,
                switches: None,
                left_behind: false,
                passed_on: false,
                never_executed: true,
                isolation: Isolation::None,
                lacking: Vec::new(),
                tasks: TaskStatuses::default(),
                launcher_error: None,
                host: None,
            };
            over.ended(Timestamp::now())
        };
        assert!(matches!(
            ended(Some(MetLimit::Time(Duration::from_secs(1)))),
            Ended::Failed(Failed { status: Status::TimedOut(..), .. })
        ));
        assert!(matches!(ended(None), Ended::Lost(_)));
    }

    #[test]
    fn process_flags_are_found_behind_any_program_name() {
        assert!(is_only_forked("12 (a) b) Z 1 12 12 0 -1 4194372 99 0"));
        assert!(!is_only_forked("12 (ce) Z 1 12 12 0 -1 4194308 99 0"));
        assert!(!is_only_forked("") && !is_only_forked("12 (ce) Z 1"));
    }

    #[test]
    fn an_ended_program_counts_as_executed() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = Pid::from_child(&child);
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert!(!never_executed(pid));
        child.wait().unwrap();
    }
}
