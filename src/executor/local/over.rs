//! The facts of an execution that is over.

use std::time::Duration;

use jiff::Timestamp;

use crate::executor::ended::{Ended, Failed, Isolation, SUSPENDED, Usage};
use crate::executor::status::Status;
use crate::executor::tasks::TaskStatuses;
use crate::task::access::Rule;

/// The signals by which users, shells and schedulers ask programs to end: HUP, INT and TERM.
const ASKING: [i32; 3] = [1, 2, 15];

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

#[cfg(test)]
mod tests {
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
}
