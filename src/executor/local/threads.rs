//! Threads that wait for processes: one for each execution at a time.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Threads that do one job after the other, started when they are needed and kept until this is
/// dropped.
pub(super) struct Threads<J> {
    most: NonZeroUsize,
    shared: Arc<Shared<J>>,
}

struct Shared<J> {
    /// Does a job.
    work: Box<dyn Fn(J) + Send + Sync>,
    state: Mutex<State<J>>,
    changed: Condvar,
}

struct State<J> {
    /// What is to be done, in order.
    jobs: VecDeque<J>,
    threads: usize,
    /// How many of the threads wait for a job.
    idle: usize,
    /// No job will come any more.
    closed: bool,
}

impl<J> fmt::Debug for Threads<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads").field("most", &self.most).finish_non_exhaustive()
    }
}

impl<J: Send + 'static> Threads<J> {
    /// At most so many threads, none of which is started yet, and what they do with a job.
    pub(super) fn new(most: NonZeroUsize, work: impl Fn(J) + Send + Sync + 'static) -> Self {
        let state = State { jobs: VecDeque::new(), threads: 0, idle: 0, closed: false };
        let (work, state) = (Box::new(work), Mutex::new(state));
        Self { most, shared: Arc::new(Shared { work, state, changed: Condvar::new() }) }
    }

    /// How many jobs are done at once.
    pub(super) const fn most(&self) -> NonZeroUsize {
        self.most
    }

    /// Queues a job.
    ///
    /// # Errors
    ///
    /// Gives the job back if no thread can be started, and there is none.
    pub(super) fn run(&self, job: J) -> Result<(), (io::Error, J)> {
        let mut state = self.shared.lock();
        if state.idle <= state.jobs.len() && state.threads < self.most.get() {
            let shared = Arc::clone(&self.shared);
            let name = "execution".to_owned();
            match thread::Builder::new().name(name).spawn(move || shared.work()) {
                Ok(_) => state.threads += 1,
                Err(error) if state.threads == 0 => return Err((error, job)),
                // It is done when another one is free.
                Err(_) => {}
            }
        }
        state.jobs.push_back(job);
        if state.idle > 0 {
            self.shared.changed.notify_one();
        }
        Ok(())
    }
}

impl<J> Drop for Threads<J> {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
    }
}

impl<J> Shared<J> {
    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does jobs, until there will be none any more.
    fn work(&self) {
        let _counted = Counted(self);
        while let Some(job) = self.next() {
            (self.work)(job);
        }
    }

    fn next(&self) -> Option<J> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.closed {
                return None;
            }
            state.idle += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

/// A thread that counts as one until it ends, also by a panic.
struct Counted<'a, J>(&'a Shared<J>);

impl<J> Drop for Counted<'_, J> {
    fn drop(&mut self) {
        self.0.lock().threads -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn jobs_wait_for_a_free_thread_and_no_more_threads_are_started() {
        let (sender, done) = channel();
        let work = move |number| sender.send((number, thread::current().id())).unwrap();
        let threads = Threads::new(NonZeroUsize::new(2).unwrap(), work);
        (0..20).for_each(|number| threads.run(number).map_err(|(error, _)| error).unwrap());
        let (mut numbers, ids): (Vec<i32>, HashSet<_>) = done.iter().take(20).unzip();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..20).collect::<Vec<_>>());
        assert!(ids.len() <= 2 && !ids.contains(&thread::current().id()));
    }
}
