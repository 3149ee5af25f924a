//! Communication between a session and its user during an evaluation: signals in, messages out.
//!
//! After Ctrl-C, SIGTERM or SIGHUP, running computations are asked to end, then killed. The user is notified that the storage is
//! away, that a collection is waited for, that its hard links cannot be used for leases, and that nothing is isolated.

use std::collections::VecDeque;
use std::error::Error as _;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{env, io, thread};

use rayon::{ThreadBuilder, ThreadPoolBuilder};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::{Handle, Signals};

use super::options::local;
use super::{BeginError, Error, Frontend, Interrupted, RunOptions};
use ce_executor::slurm::HANDOVER;
use ce_executor::{Executor, GRACE, was_ignored};
use ce_model::exit::Explain;
use ce_model::host_use::HostUse;
use ce_model::humanize::duration;
use ce_storage::{Outage, Patience, Storage, StorageError};

/// The signals that ask a program to end, except signals that were ignored at the start, as by `nohup`.
fn signals() -> impl Iterator<Item = i32> {
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !was_ignored(*signal))
}

/// Passes signals on to the executor as long as it lives.
struct Interrupts {
    caught: Arc<AtomicU8>,
    asked: Arc<AtomicBool>,
    handle: Handle,
}

impl Interrupts {
    /// Begins to watch; the first signal cancels the executor, a second one kills, unless that is SIGHUP. A job is also asked to hand over
    /// to the next one. Who asks it to end meanwhile counts more.
    fn watch(executor: &Arc<dyn Executor>, is_job: bool) -> io::Result<Self> {
        if LACKS_POOL.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let (cancelled, killed) = (Arc::clone(executor), Arc::clone(executor));
        let interrupt = move || {
            cancelled.cancel();
            let executor = Arc::clone(&cancelled);
            let killing = thread::Builder::new().spawn(move || {
                thread::sleep(GRACE);
                executor.kill();
            });
            if killing.is_err() {
                // No thread can wait for them.
                cancelled.kill();
            }
        };
        let handover = is_job.then_some(i32::from(HANDOVER));
        let mut signals = Signals::new(signals().chain(handover))?;
        let handle = signals.handle();
        let caught = Arc::new(AtomicU8::new(0));
        let first = Arc::clone(&caught);
        let asked = Arc::new(AtomicBool::new(false));
        let ask = Arc::clone(&asked);
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                let number = u8::try_from(signal).unwrap_or(u8::MAX);
                let before = first.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |before| {
                    (before == 0 || before == HANDOVER).then_some(number)
                });
                ask.store(true, Ordering::SeqCst);
                match before {
                    Ok(0) => interrupt(),
                    // A terminal that is closed, its shell and a failed write each send one.
                    _ if signal == SIGHUP => {}
                    _ => killed.kill(),
                }
            }
        })?;
        Ok(Self { caught, asked, handle })
    }

    /// The flag that becomes true when a signal was caught.
    fn asked(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.asked)
    }

    /// The first signal that came, if any.
    fn caught(&self) -> Option<u8> {
        Some(self.caught.load(Ordering::SeqCst)).filter(|signal| *signal > 0)
    }
}

/// Whether no thread could be started for the pool.
static LACKS_POOL: AtomicBool = AtomicBool::new(false);

/// Starts the threads that read many files and records at once, up to the limit of threads. The pool would start them
/// by itself, and panic if it cannot start all. The process must not be split any more.
///
/// If no thread can be started, this one, the main thread, does all of the work, and no session begins.
pub fn start_pool() {
    let wanted = env::var("RAYON_NUM_THREADS").ok().and_then(|wanted| wanted.parse().ok());
    let cores = || thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let most = wanted.filter(|wanted| *wanted > 0).unwrap_or_else(cores);
    // The pool waits for all its threads, so they are started before.
    let mut started = Vec::new();
    for _ in 0..most {
        let (sender, begins) = channel::<ThreadBuilder>();
        let thread = thread::Builder::new().spawn(move || begins.recv().map(ThreadBuilder::run));
        if thread.is_err() {
            break;
        }
        started.push(sender);
    }
    if started.is_empty() {
        let alone = ThreadPoolBuilder::new().num_threads(1).use_current_thread();
        LACKS_POOL.store(alone.build_global().is_ok(), Ordering::Relaxed);
        return;
    }
    let pool = ThreadPoolBuilder::new().num_threads(started.len());
    let pool = pool.spawn_handler(|thread| {
        let sender = started.pop().ok_or(io::ErrorKind::WouldBlock)?;
        sender.send(thread).map_err(|_| io::ErrorKind::BrokenPipe.into())
    });
    // It may have been started before.
    let _started = pool.build_global();
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.handle.close();
    }
}

/// A program that does one thing after the other and looks in between whether it is to stop.
pub struct Stop {
    /// Whether it should stop.
    pub asked: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Stop {
    /// Begins to watch; the first signal asks, a second one ends the program. SIGHUP comes several times when a terminal is closed, and only
    /// asks.
    ///
    /// # Errors
    ///
    /// Fails if signals cannot be watched.
    pub fn watch() -> io::Result<Self> {
        let stop = Self { asked: Arc::default(), signal: Arc::default() };
        for signal in signals() {
            let number = usize::try_from(signal).unwrap_or_default();
            flag::register_usize(signal, Arc::clone(&stop.signal), number)?;
            if signal != SIGHUP {
                flag::register_conditional_default(signal, Arc::clone(&stop.asked))?;
            }
            flag::register(signal, Arc::clone(&stop.asked))?;
        }
        // A signal that came between these registrations has left its number only.
        if stop.caught().is_some() {
            stop.asked.store(true, Ordering::SeqCst);
        }
        Ok(stop)
    }

    /// The signal that asked, if any.
    pub fn caught(&self) -> Option<u8> {
        u8::try_from(self.signal.load(Ordering::SeqCst)).ok().filter(|signal| *signal > 0)
    }
}

/// Messages about the storage. Each is reported at once, unless a follower reports them beside the progress.
#[derive(Debug)]
struct StorageNotices {
    frontend: Frontend,
    untold: Mutex<VecDeque<String>>,
    is_followed: AtomicBool,
    has_warned: AtomicBool,
}

impl StorageNotices {
    fn new(frontend: Frontend) -> Self {
        let (is_followed, has_warned) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { frontend, untold: Mutex::default(), is_followed, has_warned }
    }

    /// Waits for a storage that is away until `stop` becomes true, and reports it here. If `quiet`, waits for
    /// collections are not reported.
    fn patience(self: &Arc<Self>, stop: Arc<AtomicBool>, is_quiet: bool) -> Patience {
        let notices = Arc::clone(self);
        let tell = move |outage: &Outage| {
            if !(is_quiet && matches!(outage, Outage::Collection { .. })) {
                notices.add(words(outage));
            }
        };
        Patience { stop, tell: Arc::new(tell) }
    }

    /// Sets whether a follower asks for the notices from now on.
    fn follow(&self, is_followed: bool) {
        self.is_followed.store(is_followed, Ordering::Release);
        if !is_followed {
            while let Some(text) = self.next() {
                (self.frontend.notify)(&text);
            }
        }
    }

    /// The next one.
    fn next(&self) -> Option<String> {
        self.lock().pop_front()
    }

    fn add(&self, text: String) {
        self.lock().push_back(text);
        if !self.is_followed.load(Ordering::Acquire) {
            self.follow(false);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a notice for the user, once, if hard links do not work as runs need.
    fn links(&self, storage: &Storage) -> Option<String> {
        (storage.availability().lacks_links() && !self.has_warned.swap(true, Ordering::AcqRel))
            .then(|| links_warning(storage.shown_place()))
    }
}

/// Returns the message about an outage.
fn words(outage: &Outage) -> String {
    match outage {
        Outage::Collection { storage, holder } => format!(
            "waiting for {holder}, which takes results away from the storage {}",
            storage.display()
        ),
        Outage::Began { storage, why, most } => format!(
            "the storage {} does not answer: {why}\n  waiting for up to {}; nothing else is started until then",
            storage.display(),
            duration(most.as_secs_f64())
        ),
        Outage::Over { storage, after } => format!(
            "the storage {} answers again after {}",
            storage.display(),
            duration(after.as_secs_f64())
        ),
    }
}

/// The warning that two runs may execute one call.
fn links_warning(storage: &Path) -> String {
    format!(
        "warning: hard links on the file system of {0} cannot be used for leases: runs at the same time may compute a call twice\n  try: let one run at a time use it, or put it on another file system; ce doctor {0} says more",
        storage.display()
    )
}

/// An executor of a session, the signals that interrupt it, and what its user is told meanwhile.
pub(super) struct InterruptibleExecutor {
    pub(super) executor: Arc<dyn Executor>,
    interrupts: Interrupts,
    notices: Arc<StorageNotices>,
    /// Whether the user was warned that nothing is isolated.
    warned: AtomicBool,
    /// Whether the user was warned that others use this host.
    warned_of_others: AtomicBool,
}

impl InterruptibleExecutor {
    /// From now on, SIGINT, SIGTERM and SIGHUP interrupt executions.
    pub(super) fn new(executor: Arc<dyn Executor>, options: &RunOptions) -> Result<Self, Error> {
        let interrupts = Interrupts::watch(&executor, options.is_job).map_err(BeginError::new)?;
        let notices = Arc::new(StorageNotices::new(options.frontend));
        let (warned, warned_of_others) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Self { executor, interrupts, notices, warned, warned_of_others })
    }

    /// Opens a storage that exists, for programs of its calls that are executed beside its runs.
    pub(super) fn beside_runs(storage: &Path) -> Result<(Arc<Storage>, Self), Error> {
        let options = RunOptions::default();
        let storage = Storage::existing(storage)?.treating(options.unrecorded);
        let storage = storage.into_writable(options.durability)?;
        Ok((Arc::new(storage), Self::new(local(&options, None, None), &options)?))
    }

    /// Opens a storage by a function that waits for it. A signal interrupts that, and reading from it later.
    pub(super) fn open(
        &self,
        options: &RunOptions,
        open: impl FnOnce(Patience) -> Result<Storage, StorageError>,
    ) -> Result<Storage, Error> {
        let asked = self.interrupts.asked();
        match open(self.notices.patience(Arc::clone(&asked), options.quiet)) {
            Ok(storage) => Ok(storage.until(asked)),
            Err(error) => Err(unless_interrupted(error, self.interrupted_by(), Error::from)),
        }
    }

    /// The first signal that came, if any.
    pub(super) fn interrupted_by(&self) -> Option<u8> {
        self.interrupts.caught()
    }

    /// Sets whether a follower asks for the notices from now on.
    pub(super) fn follow(&self, is_followed: bool) {
        self.notices.follow(is_followed);
    }

    /// Returns the next message about the storage for the user, each one once.
    pub(super) fn storage_notice(&self, storage: &Storage) -> Option<String> {
        self.notices.next().or_else(|| self.notices.links(storage))
    }

    /// Warns once that others use the processors of this host.
    pub(super) fn busy_host(&self) -> Option<String> {
        let used = self.executor.recent_host_use().filter(HostUse::is_busy)?;
        let is_told = self.warned_of_others.swap(true, Ordering::AcqRel);
        let [share, seconds] = [used.share() * 100.0, used.seconds];
        (!is_told).then(|| {
            format!(
                "warning: others have used {share:.0} % of the processors for {seconds:.0} s: what is measured meanwhile takes longer, and not always as long\n  try: end them, or measure when they have ended; top shows them, and ce doctor what else disturbs"
            )
        })
    }

    /// Returns the next message about executions here, each one once: the reason why they are not isolated although they should be, or
    /// one of the executor.
    pub(super) fn notice(&self) -> Option<String> {
        let Some(error) =
            self.executor.exposed().filter(|_| !self.warned.swap(true, Ordering::AcqRel))
        else {
            return self.executor.notice();
        };
        let because = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        let hint = error.hint();
        let hint = hint.as_deref().unwrap_or("ce doctor, which says what the host lacks");
        Some(format!(
            "warning: computations are not isolated here: {error}{because}\n  try: {hint}"
        ))
    }
}

/// The error of an operation on a storage, or the signal that has ended it.
pub(super) fn unless_interrupted(
    error: StorageError,
    signal: Option<u8>,
    failed: impl FnOnce(StorageError) -> Error,
) -> Error {
    match (error, signal) {
        (StorageError::Interrupted, Some(signal)) => Interrupted(signal).into(),
        (error, _) => failed(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_run_does_not_print_that_it_waits_for_a_collection() {
        let collection = Outage::Collection { storage: "results".into(), holder: "x".into() };
        let over = Outage::Over { storage: "results".into(), after: Default::default() };
        for (is_quiet, outage, is_told) in
            [(false, &collection, true), (true, &collection, false), (true, &over, true)]
        {
            let notices = Arc::new(StorageNotices::new(Frontend::default()));
            notices.is_followed.store(true, Ordering::Release);
            (notices.patience(Arc::default(), is_quiet).tell)(outage);
            assert_eq!(notices.next().is_some(), is_told, "{outage:?}");
        }
    }
}
