//! The facts of an execution that is over.

use std::time::Duration;

use jiff::Timestamp;

use crate::executor::ended::{Ended, Failed, Isolation, SUSPENDED, Status, Usage};
use crate::task::access::Rule;

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
    pub(super) isolation: Isolation,
    pub(super) lacking: Vec<Rule>,
}

impl Over {
    /// The exit status or signal.
    pub(super) fn status(&self) -> Status {
        match self.code {
            Some(code) => Status::Exited(code),
            None => Status::Killed(self.signal.unwrap_or_default()),
        }
    }

    /// The end of the execution, by its start and its time limit.
    pub(super) fn ended(self, start: Timestamp, limit: Option<Duration>) -> Ended {
        let status = match (self.status(), limit) {
            (Status::Exited(0), _) => None,
            (_, Some(limit)) if self.late => {
                Some(Status::TimedOut(self.signal.unwrap_or(15), limit))
            }
            (status, _) => Some(status),
        };
        let Self { user, system, peak, left_behind, isolation, lacking, .. } = self;
        let end = Timestamp::now();
        let usage = Usage { start, end, user, system, peak, left_behind, isolation };
        match status {
            None => Ended::Done(usage),
            Some(Status::Exited(SUSPENDED)) => Ended::Suspended(usage),
            Some(status) => Ended::Failed(Failed { status, usage, lacking }),
        }
    }
}
