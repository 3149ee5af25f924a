//! The facts of an execution that is over.

use std::fs;
use std::time::Duration;

use jiff::Timestamp;
use rustix::process::{Pid, getpid};

use crate::ended::{Ended, Failed, Isolation, SUSPENDED, Usage};
use crate::status::Status;
use crate::tasks::TaskStatuses;
use ce_model::task::access::Rule;

/// The signals by which users, shells and schedulers ask programs to end: HUP, INT and TERM.
const ASKING: [i32; 3] = [1, 2, 15];

/// The flag of the kernel for a process that has executed nothing since it was forked: `PF_FORKNOEXEC`.
const FORKED: u32 = 0x40;

/// An ended execution, as the system reports it.
pub(super) struct Over {
    /// Its exit status.
    pub(super) code: Option<i32>,
    /// The signal that ended it.
    pub(super) signal: Option<i32>,
    /// It took longer than its limit.
    pub(super) late: bool,
    pub(super) user: Duration,
    pub(super) system: Duration,
    /// In bytes.
    pub(super) peak: u64,
    pub(super) left_behind: bool,
    pub(super) passed_on: bool,
    /// Whether it was killed before it was another program than this one.
    pub(super) is_unborn: bool,
    pub(super) isolation: Isolation,
    pub(super) lacking: Vec<Rule>,
    /// How its tasks ended, if a launcher has started it.
    pub(super) tasks: TaskStatuses,
    /// What its launcher said last, if that is the reason why tasks did not end.
    pub(super) said: Option<String>,
}

impl Over {
    /// The signal that ended it although this program has not sent it: one that asks programs to end.
    fn foreign_signal(&self) -> Option<i32> {
        self.signal.filter(|signal| !self.late && ASKING.contains(signal))
    }

    /// The exit status or signal.
    pub(super) fn status(&self) -> Status {
        match self.code {
            Some(code) => Status::Exited(code),
            None => Status::Killed(self.signal.unwrap_or_default()),
        }
    }

    /// The end of the execution, by its start and its time limit.
    pub(super) fn ended(self, start: Timestamp, limit: Option<Duration>) -> Ended {
        let is_launched = !self.tasks.0.is_empty();
        if !is_launched && let Some(signal) = self.foreign_signal() {
            let status = Status::Killed(signal);
            return Ended::Lost(format!("{status}, which compeval had not sent"));
        }
        if self.is_unborn && !self.late {
            return Ended::Lost(format!("{} before it was started", self.status()));
        }
        let own = match self.tasks.failure() {
            _ if !is_launched => self.status(),
            None if self.tasks.are_done() => Status::Exited(0),
            // A launcher that was killed leaves tasks which may fail for that reason.
            Some(status) if self.late || self.signal.is_none() => status,
            _ if self.late => self.status(),
            _ => {
                let how = self.said.clone().unwrap_or_else(|| self.status().to_string());
                return Ended::Lost(format!("its launcher failed: {how}"));
            }
        };
        let status = match (own, limit) {
            (Status::Exited(0), _) => None,
            (_, Some(limit)) if self.late => {
                Some(Status::TimedOut(self.signal.unwrap_or(15), limit))
            }
            (status, _) => Some(status),
        };
        let Self { user, system, peak, left_behind, passed_on, isolation, lacking, tasks, .. } =
            self;
        let end = Timestamp::now();
        let usage =
            Usage { start, end, user, system, peak, left_behind, passed_on, isolation, tasks };
        match status {
            None => Ended::Done(usage),
            Some(Status::Exited(SUSPENDED)) if !is_launched => Ended::Suspended(usage),
            Some(status) => Ended::Failed(Failed { status, usage, lacking }),
        }
    }
}

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
    fn time_that_has_run_out_before_exec_is_a_failure_and_a_foreign_kill_is_none() {
        let ended = |late: bool| {
            let over = Over {
                code: None,
                signal: Some(9),
                late,
                user: Duration::ZERO,
                system: Duration::ZERO,
                peak: 0,
                left_behind: false,
                passed_on: false,
                is_unborn: true,
                isolation: Isolation::None,
                lacking: Vec::new(),
                tasks: TaskStatuses::default(),
                said: None,
            };
            over.ended(Timestamp::now(), Some(Duration::from_secs(1)))
        };
        assert!(matches!(ended(true), Ended::Failed(Failed { status: Status::TimedOut(..), .. })));
        assert!(matches!(ended(false), Ended::Lost(_)));
    }

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
