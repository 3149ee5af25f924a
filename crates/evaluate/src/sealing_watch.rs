//! Sealing of the outputs of an execution, which takes long if they are large: signals and the time limit of the call end it as they end
//! the execution.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::CallError;
use super::launcher::{Launch, limit};
use ce_executor::{Ended, ExecuteError, Executor, Failed, Usage};
use ce_storage::{PublishError, StageProgress, StorageError};

/// The time between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// Ends the sealing of a stage, after its execution, on a signal or at the time limit of the call.
pub(super) struct SealingWatch<'a> {
    executor: &'a dyn Executor,
    /// The time limit of the call, and when it is over.
    limit: Option<(Duration, Instant)>,
    progress: StageProgress,
    is_long: bool,
    is_over_time: AtomicBool,
}

impl<'a> SealingWatch<'a> {
    /// Notes where the execution may have left something of these outputs. The time that sealing takes counts for the time limit of the
    /// call.
    pub(super) fn start(
        executor: &'a dyn Executor,
        launch: &mut Launch<'_>,
        outputs: &[String],
        end: &Result<Ended, ExecuteError>,
    ) -> Self {
        let (usage, time) = match end {
            Ok(Ended::Done(usage)) => (Some(usage), launch.limit),
            Ok(Ended::Suspended(usage)) => (Some(usage), None),
            Ok(Ended::Failed(failed)) => (Some(&failed.usage), None),
            Ok(Ended::Lost(_)) | Err(_) => (None, None),
        };
        usage.into_iter().for_each(|usage| limit(&mut launch.stage, usage));
        let limit = time.zip(usage).and_then(|(limit, usage)| {
            let left = limit.saturating_sub(Duration::from_secs_f64(usage.seconds().max(0.0)));
            Some((limit, Instant::now().checked_add(left)?))
        });
        let is_long = usage.is_some() && launch.stage.is_large(outputs);
        let (progress, is_over_time) = (launch.stage.progress(), AtomicBool::new(false));
        Self { executor, limit, progress, is_long, is_over_time }
    }

    /// Acts on the stage. The action fails as interrupted once the user does not want to wait any longer, or the time limit of the call is
    /// over. Once a second, `tell` gets the name of the file that is being read. Short actions are not watched.
    pub(super) fn during<T>(&self, tell: impl Fn(String) + Send, act: impl FnOnce() -> T) -> T {
        let result = thread::scope(|scope| {
            let (done, over) = channel::<()>();
            let watch = move || {
                while over.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                    self.look();
                    if let Some(file) = self.progress.file() {
                        tell(file);
                    }
                }
            };
            if self.is_long {
                // Without a thread, nothing but a third signal ends it.
                drop(thread::Builder::new().name("sealing".to_owned()).spawn_scoped(scope, watch));
            }
            let result = act();
            drop(done);
            result
        });
        // The time limit of the call does not end later actions on the stage, even if it was over at the last moment.
        if self.is_over_time.load(Ordering::SeqCst) && !self.executor.is_killed() {
            self.progress.go_on();
        }
        result
    }

    fn look(&self) {
        if self.executor.is_killed() {
            self.progress.stop();
        } else if let Some((_, end)) = self.limit
            && Instant::now() >= end
            && !self.is_over_time.swap(true, Ordering::SeqCst)
        {
            self.progress.stop();
        }
    }

    /// Returns the error of the call that an error of sealing causes; `None` if the user does not want to wait any
    /// longer.
    pub(super) fn judge(&self, error: PublishError, usage: Usage) -> Option<CallError> {
        if !matches!(error, PublishError::Storage(StorageError::Interrupted)) {
            return Some(error.into());
        }
        if self.executor.is_killed() {
            return None;
        }
        Some(match self.limit.filter(|_| self.is_over_time.load(Ordering::SeqCst)) {
            Some((limit, _)) => CallError::Ended(Box::new(Failed::over_time(limit, usage))),
            None => error.into(),
        })
    }
}
