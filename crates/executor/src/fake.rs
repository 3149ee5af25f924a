//! An executor that starts nothing: for tests and for measuring everything else.

use std::num::NonZeroUsize;

use jiff::Timestamp;

use super::contract::{Completion, Executor};
use super::ended::{Ended, Failed, SUSPENDED, Usage};
use super::invocation::Invocation;
use super::status::Status;

/// Calls a function in place of a process, in the thread that submits. Its result is the exit
/// status.
#[derive(Debug)]
pub struct Fake<F>(pub F);

impl<F: Fn(&Invocation) -> i32 + Send + Sync> Executor for Fake<F> {
    fn submit(&self, invocation: Invocation, completion: Completion) {
        let start = Timestamp::now();
        let code = (self.0)(&invocation);
        let usage = Usage::since(start);
        completion.deliver(Ok(match code {
            0 => Ended::Done(usage),
            SUSPENDED => Ended::Suspended(usage),
            code => {
                Ended::Failed(Failed { status: Status::Exited(code), usage, lacking: Vec::new() })
            }
        }));
    }

    fn capacity(&self) -> NonZeroUsize {
        NonZeroUsize::MAX
    }
}
