//! The exit statuses of the tasks of an execution that a launcher has started.

use std::fmt;

use super::status::Status;

/// What a shell adds to the number of the signal that has ended a process.
const SIGNALLED: u8 = 128;
/// The greatest number of a signal.
const LAST_SIGNAL: u8 = 64;
/// The status of one that was killed: by a launcher when another one has failed, or for lack of memory.
const KILLED: u8 = SIGNALLED + 9;
/// Those of tasks that were asked to end by HUP, INT or TERM: by a launcher when another one has failed, or by a stranger.
const ASKED: [u8; 3] = [SIGNALLED + 1, SIGNALLED + 2, SIGNALLED + 15];

/// The exit statuses of tasks, by their numbers, as a shell has them: 128 and the number of a signal for one that was killed. A
/// task that was ended before it could note a status has none.
///
/// Empty unless a launcher has started tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskStatuses(pub Box<[Option<u8>]>);

impl TaskStatuses {
    /// Whether there are tasks, and all have ended well.
    pub fn are_done(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|status| *status == Some(0))
    }

    /// The end of the first task that has failed by itself, or else of the first one that was killed; `None` if no task has
    /// noted that it has failed, or was but asked to end.
    pub fn failure(&self) -> Option<Status> {
        let status = self.causes().first().map(|(status, _)| *status)?;
        Some(match status.checked_sub(SIGNALLED) {
            Some(signal @ 1..=LAST_SIGNAL) => Status::Killed(signal.into()),
            _ => Status::Exited(status.into()),
        })
    }

    /// The statuses of those that have failed by themselves, each with its tasks. If none has, that of those that were killed.
    fn causes(&self) -> Vec<(u8, Vec<usize>)> {
        let failed = |is_cause: fn(u8) -> bool| {
            let mut causes: Vec<(u8, Vec<usize>)> = Vec::new();
            for (task, status) in self.0.iter().enumerate() {
                let Some(status) = status.filter(|status| is_cause(*status)) else { continue };
                match causes.iter_mut().find(|(other, _)| *other == status) {
                    Some((_, tasks)) => tasks.push(task),
                    None => causes.push((status, vec![task])),
                }
            }
            causes
        };
        let own = failed(|status| !matches!(status, 0 | KILLED) && !ASKED.contains(&status));
        if own.is_empty() { failed(|status| status == KILLED) } else { own }
    }
}

impl fmt::Display for TaskStatuses {
    /// Says which tasks have failed, and how.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let causes = self.causes();
        let mut told = 0;
        for (at, (status, tasks)) in causes.iter().enumerate() {
            let separator = if at > 0 { "; " } else { "" };
            let (word, list) = (if tasks.len() == 1 { "task" } else { "tasks" }, ranges(tasks));
            write!(f, "{separator}{word} {list} ended with exit status {status}")?;
            told += tasks.len();
        }
        let ended = self.0.iter().filter(|status| **status != Some(0)).count() - told;
        match ended {
            0 => Ok(()),
            ended => write!(f, "; the launcher ended {ended} of {} tasks", self.0.len()),
        }
    }
}

/// Numbers in ascending order, as `0-2, 5`.
fn ranges(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let written = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(written).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_failed_by_themselves_are_told_first() {
        let told = |statuses: &[Option<u8>]| {
            let statuses = TaskStatuses(statuses.into());
            (statuses.failure(), statuses.to_string())
        };
        assert_eq!(
            told(&[Some(143), Some(3), None, Some(0)]),
            (
                Some(Status::Exited(3)),
                "task 1 ended with exit status 3; the launcher ended 2 of 4 tasks".to_owned()
            )
        );
        assert_eq!(
            told(&[Some(3), Some(3), Some(3), Some(9), Some(0), Some(3)]),
            (
                Some(Status::Exited(3)),
                "tasks 0-2, 5 ended with exit status 3; task 3 ended with exit status 9".to_owned()
            )
        );
        assert_eq!(told(&[Some(139), Some(137)]).0, Some(Status::Killed(11)));
        assert_eq!(
            told(&[Some(0), Some(137)]),
            (Some(Status::Killed(9)), "task 1 ended with exit status 137".to_owned())
        );
        assert_eq!(told(&[Some(200)]).0, Some(Status::Exited(200)));
        assert_eq!(told(&[None, Some(0)]).0, None);
        assert_eq!(told(&[Some(143), Some(130), Some(129), None]).0, None, "a stranger ended them");
    }

    #[test]
    fn only_tasks_that_all_ended_well_are_done() {
        let are_done = |statuses: &[Option<u8>]| TaskStatuses(statuses.into()).are_done();
        assert!(are_done(&[Some(0), Some(0)]));
        assert!(!are_done(&[Some(0), None]) && !are_done(&[Some(0), Some(1)]) && !are_done(&[]));
    }
}
