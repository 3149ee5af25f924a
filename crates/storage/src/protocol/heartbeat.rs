//! Runs: processes that work on the storage, and whether they are alive.
//!
//! Each run has a private directory in `tmp/`, named by host, boot, process namespace and process.
//! On the same host, a process that has ended is noticed at once. Elsewhere a run shows that it is
//! alive by a file `beat` that changes every few seconds. The time since its last change is
//! measured by the clock of the reader, so differing clocks do not matter.
//!
//! A run writes the list of the calls that it executes once a second, if it has changed, so that others find their logs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fmt, fs, io};

use ce_files::state::keep;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::Serialize;

use crate::disk::{Disk, FileId, Result, Root, lock};
use crate::paths::{ResultName, RunName};
use crate::records::host;
use ce_model::digest::Digest;

/// The time without a heartbeat after which a run is taken for dead.
pub(crate) const LEASE_TIMEOUT: Duration = Duration::from_secs(60);

/// The factor for [`LEASE_TIMEOUT`] on a file system that may show a heartbeat late: NFS caches a directory for up to a
/// minute.
const ON_NETWORK: u32 = 3;

/// The number of heartbeats in `LEASE_TIMEOUT`.
const HEARTBEATS: u32 = 12;

/// The number of times in `LEASE_TIMEOUT` that a run records its progress.
const STATES: u32 = 60;

/// The time without a heartbeat after which a run is taken for dead. A build with debug assertions obeys `CE_SILENCE`, in seconds.
pub fn lease_timeout() -> Duration {
    static TIMEOUT: OnceLock<Option<Duration>> = OnceLock::new();
    if !cfg!(debug_assertions) {
        return LEASE_TIMEOUT;
    }
    TIMEOUT
        .get_or_init(|| {
            let seconds = std::env::var("CE_SILENCE").ok()?.parse().ok()?;
            Duration::try_from_secs_f64(seconds).ok()
        })
        .unwrap_or(LEASE_TIMEOUT)
}

/// The time after which a run says again how far it has come.
pub fn state_interval() -> Duration {
    lease_timeout() / STATES
}

/// The time without a heartbeat after which a run is taken for dead whose heartbeat is on this disk.
fn silence(disk: &Disk) -> Duration {
    lease_timeout() * if disk.is_on_network() { ON_NETWORK } else { 1 }
}

/// The unique name of this run.
fn own_name() -> RunName {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    RunName {
        host: host()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' })
            .take(64)
            .collect(),
        boot: boot.chars().filter(char::is_ascii_hexdigit).take(8).collect(),
        namespace: namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect(),
        process: std::process::id(),
        time: format!("{:x}", moment()),
    }
}

/// Whether the process of a run does not exist any more.
fn is_gone(run: &RunName) -> bool {
    let pid = i32::try_from(run.process).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// The nanoseconds since 1970, greater at each call in this process: threads may read the same time
/// from a clock.
fn moment() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = u64::try_from(since.as_nanos()).unwrap_or_default();
    let last = LAST.fetch_update(Relaxed, Relaxed, |last| Some(now.max(last + 1)));
    now.max(last.unwrap_or_default() + 1)
}

/// A run that holds a lease, for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// The name of its host.
    pub host: String,
    /// The number of its process there.
    pub process: u32,
    /// When the run began, in nanoseconds since 1970, if its name says so.
    #[serde(skip)]
    pub began: Option<i64>,
    /// Whether it is this run.
    #[serde(skip)]
    pub own: bool,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.process, self.host)
    }
}

impl Holder {
    pub(crate) fn new(name: &RunName, own: bool) -> Self {
        let began = i64::from_str_radix(&name.time, 16).ok();
        Self { host: name.host.clone(), process: name.process, began, own }
    }
}

/// Whether this host can determine if a run is alive.
#[derive(Clone, Debug)]
pub(crate) struct LivenessChecks {
    /// The name of the host.
    pub(crate) host: String,
    /// Whether its boot id can be read.
    pub(crate) boot: bool,
    /// Whether the process namespace can be read.
    pub(crate) namespace: bool,
    /// Whether an existing process is found.
    pub(crate) finds_live_processes: bool,
    /// Whether a missing process is noticed.
    pub(crate) notices_dead_processes: bool,
}

/// This run, and its observations of others.
#[derive(Debug)]
pub(crate) struct CurrentRun {
    name: RunName,
    directory: String,
    /// The file that names the run, and its heartbeat.
    heartbeat: OnceLock<(PathBuf, Heartbeat)>,
    /// The last heartbeat of each other run, and the time when it was first seen.
    seen: Mutex<HashMap<RunName, (Vec<u8>, Instant)>>,
    /// The calls that it executes.
    pub(super) executing: Arc<Executing>,
    /// The paths of the leases that it holds, on a file system of several hosts.
    pub(super) held: Mutex<HashSet<PathBuf>>,
    /// The files that have named the run before, and had as many links as a file may have.
    pub(super) earlier: Mutex<Vec<FileId>>,
    /// The collection that was last reported to the user.
    told: Mutex<Option<Holder>>,
    /// The size of its announcements, in bytes.
    pub(super) announced: Mutex<usize>,
    /// The inputs that it has announced together.
    pub(super) announced_inputs: Mutex<HashSet<Digest>>,
    /// Hard links cannot be used for leases, as was tried.
    lacks_links: AtomicBool,
    /// A directory of the run outside of the storage.
    outside: Arc<OnceLock<PathBuf>>,
}

/// The thread that shows that a run is alive. It ends when the sender is dropped.
#[derive(Debug)]
struct Heartbeat {
    thread: io::Result<JoinHandle<()>>,
    sender: Sender<()>,
}

impl CurrentRun {
    pub(crate) fn new() -> Self {
        let name = own_name();
        let directory = name.directory();
        Self {
            name,
            directory,
            heartbeat: OnceLock::default(),
            seen: Mutex::default(),
            executing: Arc::default(),
            held: Mutex::default(),
            earlier: Mutex::default(),
            told: Mutex::default(),
            announced: Mutex::default(),
            announced_inputs: Mutex::default(),
            lacks_links: AtomicBool::default(),
            outside: Arc::default(),
        }
    }

    pub(crate) const fn name(&self) -> &RunName {
        &self.name
    }

    /// The private directory of this run, relative to the storage.
    pub(crate) fn directory(&self) -> &str {
        &self.directory
    }

    /// Starts the heartbeat of this run, in its directory, which must exist.
    ///
    /// Returns the file that names the run; a link to it is a lease.
    pub(crate) fn start_heartbeat(&self, disk: &Arc<Disk>, directory: &Path) -> &Path {
        let (file, _) = self.heartbeat.get_or_init(|| {
            let (sender, stop) = channel();
            let (disk, directory) = (Arc::clone(disk), directory.to_owned());
            let file = directory.join("run");
            // Without the file, calls have no leases, which is harmless.
            drop(self.write_name(&disk, &file));
            write_heartbeat(&disk, &directory, 0);
            if disk.may_lack_links() {
                let refuse = disk
                    .links_refuse([&file, &heartbeat_file(&directory)], &directory.join("link"));
                self.lacks_links.store(!refuse, Relaxed);
            }
            let (executing, outside) = (Arc::clone(&self.executing), Arc::clone(&self.outside));
            // Without it, the run looks dead to other hosts after a while, and a call may be executed twice.
            let thread = thread::Builder::new().spawn(move || {
                for count in 1_u64.. {
                    match stop.recv_timeout(state_interval()) {
                        Err(RecvTimeoutError::Timeout) => executing.note(&disk, &directory),
                        _ => break,
                    }
                    if disk.is_on_network() {
                        // An execution may write while the storage is away, and not notice.
                        drop(disk.await_answer());
                    }
                    if count % u64::from(STATES / HEARTBEATS) == 0 {
                        write_heartbeat(&disk, &directory, count);
                        outside.get().into_iter().for_each(|outside| keep(outside));
                    }
                }
            });
            (file, Heartbeat { thread, sender })
        });
        file
    }

    /// Shows from now on that the run to which a directory outside of the storage belongs is alive.
    pub(super) fn keep(&self, outside: &Path) {
        self.outside.get_or_init(|| outside.to_owned());
    }

    fn write_name(&self, disk: &Disk, file: &Path) -> Result<()> {
        disk.write(file, format!("{}\n", self.name).as_bytes())
    }

    /// Lets another file name the run: the number of links to a file is limited.
    pub(super) fn renew_file(&self, disk: &Disk, file: &Path) -> Result<()> {
        let mut earlier = lock(&self.earlier);
        let new = file.with_extension("new");
        disk.remove(&new)?;
        self.write_name(disk, &new)?;
        earlier.extend(disk.id(file)?);
        disk.rename(&new, file).map(drop)
    }

    /// Reports to the user, once, that this run waits for a collection.
    pub(super) fn tell_of_collection(&self, disk: &Disk, holder: &Holder) {
        let mut told = lock(&self.told);
        if told.as_ref() != Some(holder) {
            *told = Some(holder.clone());
            disk.tell_of_collection(holder.to_string());
        }
    }

    /// Whether hard links cannot be used for leases, as far as that was tried.
    pub(super) fn lacks_links(&self) -> bool {
        self.lacks_links.load(Relaxed)
    }

    /// Ends the heartbeat: from now on, nothing is written to the directory of the run.
    pub(super) fn end_heartbeat(&mut self) {
        if let Some((_, Heartbeat { thread, sender })) = self.heartbeat.take() {
            drop(sender);
            drop(thread.map(JoinHandle::join));
        }
    }

    /// Creates this run's directory and starts the heartbeat. Returns the file that names the run.
    pub(super) fn appear(&self, root: &Root) -> Result<&Path> {
        let heartbeat = root.place(&format!("{}/beat", self.directory))?;
        Ok(self.start_heartbeat(&root.disk, heartbeat.parent().unwrap_or(root.disk.root())))
    }

    /// Whether another run is alive, as far as this host knows. A run that cannot be looked at counts as alive until
    /// its heartbeat would have stopped.
    pub(crate) fn is_alive(&self, other: &RunName, disk: &Disk, directory: &Path) -> bool {
        let may_be_there = match disk.metadata(directory) {
            Ok(found) => found.is_some_and(|it| it.is_dir()),
            Err(error) => !error.is_foreign(),
        };
        if !may_be_there || other.is_near(&self.name) && is_gone(other) {
            return false;
        }
        let heartbeat = disk.read(&heartbeat_file(directory)).ok().flatten().unwrap_or_default();
        let mut seen = lock(&self.seen);
        let known =
            seen.entry(other.clone()).or_insert_with(|| (heartbeat.clone(), Instant::now()));
        if known.0 != heartbeat {
            *known = (heartbeat, Instant::now());
        }
        known.1.elapsed() < silence(disk)
    }

    /// The means of this host to determine whether a run is alive.
    pub(crate) fn checks(&self) -> LivenessChecks {
        let RunName { host, boot, namespace, .. } = &self.name;
        let nobody = RunName { process: i32::MAX.unsigned_abs(), ..self.name.clone() };
        LivenessChecks {
            host: host.clone(),
            boot: !boot.is_empty(),
            namespace: !namespace.is_empty(),
            finds_live_processes: !is_gone(&self.name),
            notices_dead_processes: is_gone(&nobody),
        }
    }

    /// Whether another run has certainly ended.
    pub(crate) fn is_over(&self, other: &RunName) -> bool {
        other.is_near(&self.name) && is_gone(other)
    }

    /// Whether another run has ended if its heartbeat has stopped: it is of an earlier boot of this
    /// host, or of another host with the same name. An unknown boot is not an earlier one.
    pub(crate) fn may_precede(&self, other: &RunName) -> bool {
        let differ = other.boot != self.name.boot;
        let known = !other.boot.is_empty() && !self.name.boot.is_empty();
        other.host == self.name.host && known && differ
    }
}

/// Whether a run is taken for dead because its last heartbeat is too much older than the heartbeat of `since`, by the
/// times of the file system.
pub(crate) fn is_timed_out(disk: &Disk, directory: &Path, since: &Path) -> bool {
    let last =
        modified_ns(disk, &heartbeat_file(directory)).or_else(|| modified_ns(disk, directory));
    let now = modified_ns(disk, &heartbeat_file(since));
    let silent = now.and_then(|now| u64::try_from(now - last?).ok());
    silent.is_some_and(|silent| Duration::from_nanos(silent) > silence(disk))
}

/// When something was last written, by the clock of its file system.
fn modified_ns(disk: &Disk, path: &Path) -> Option<i64> {
    Some(disk.metadata(path).ok()??.modified_ns())
}

fn heartbeat_file(directory: &Path) -> PathBuf {
    directory.join("beat")
}

/// Replaces the file, since readers may have cached the contents of the old one.
fn write_heartbeat(disk: &Disk, directory: &Path, count: u64) {
    let new = directory.join("beat.new");
    // Without a heartbeat, others execute the calls of this run, too, which is harmless.
    let written =
        disk.remove(&new).and_then(|()| disk.write(&new, format!("{count}\n").as_bytes()));
    drop(written.and_then(|()| disk.rename(&new, &heartbeat_file(directory))));
}

/// The file in the private directory of a run that lists its executions: the name of a stage, and the short name of a call, in
/// each line.
pub(super) const EXECUTING: &str = "executing";

/// The calls that a run executes.
#[derive(Debug, Default)]
pub(super) struct Executing(Mutex<Executions>);

#[derive(Debug, Default)]
struct Executions {
    /// The short names of calls by the names of their stages.
    calls: BTreeMap<String, String>,
    is_changed: bool,
}

impl Executing {
    /// Notes that a call is executed in a stage.
    pub(super) fn begin(&self, stage: &str, name: &ResultName) {
        let mut executions = lock(&self.0);
        executions.calls.insert(stage.to_owned(), name.short());
        executions.is_changed = true;
    }

    /// Notes the end of the execution in this stage, if there was one.
    pub(super) fn end(&self, stage: &str) {
        let mut executions = lock(&self.0);
        executions.is_changed |= executions.calls.remove(stage).is_some();
    }

    /// Writes the list into the directory of the run, if it has changed.
    pub(super) fn note(&self, disk: &Disk, directory: &Path) {
        let mut executions = lock(&self.0);
        if !std::mem::take(&mut executions.is_changed) {
            return;
        }
        let text: String =
            executions.calls.iter().map(|(stage, call)| format!("{stage} {call}\n")).collect();
        drop(executions);
        let new = directory.join("executing.new");
        // Without the list, only following a log fails.
        let written = disk.write(&new, text.as_bytes());
        drop(written.and_then(|()| disk.rename(&new, &directory.join(EXECUTING))));
    }
}

#[cfg(test)]
mod tests {
    use std::thread::ScopedJoinHandle;

    use super::*;

    /// Reaches everything on this host.
    fn disk() -> Disk {
        Disk::open(Path::new("/")).unwrap()
    }

    #[test]
    fn a_name_reads_as_it_was_written() {
        let own = own_name();
        assert_eq!(own.to_string().parse(), Ok(own));
        assert_eq!("a-b".parse::<RunName>(), Err(()));
        assert_eq!("a-b-c-d-e".parse::<RunName>(), Err(()));
        assert!("a-b-c-1-e".parse::<RunName>().is_ok());
        for outside in ["../../a-b-c-1-e", "/a-b-c-1-e", "a-b-c-1-e/..", "a\0-b-c-1-e"] {
            assert_eq!(outside.parse::<RunName>(), Err(()), "{outside}");
        }
    }

    #[test]
    fn no_two_runs_of_a_process_have_the_same_name() {
        let threads = thread::scope(|scope| {
            [(); 4]
                .map(|()| {
                    scope.spawn(|| -> Vec<String> {
                        (0..1000).map(|_| own_name().to_string()).collect()
                    })
                })
                .map(ScopedJoinHandle::join)
        });
        let names: Vec<String> = threads.into_iter().flat_map(Result::unwrap).collect();
        let different: HashSet<&String> = names.iter().collect();
        assert_eq!(different.len(), names.len());
    }

    #[test]
    fn only_the_dead_of_this_host_are_over() {
        let run = CurrentRun::new();
        let own = run.name().clone();
        assert!(!run.is_over(&own));
        let gone = RunName { process: i32::MAX as u32, ..own.clone() };
        assert!(run.is_over(&gone));
        assert!(!run.is_over(&RunName { host: "elsewhere".into(), ..gone.clone() }));
        assert!(!run.is_over(&RunName { namespace: "1".into(), ..gone }));
        let earlier = RunName { boot: "00000000".into(), ..own.clone() };
        assert!(!run.is_over(&earlier) && run.may_precede(&earlier) && !run.may_precede(&own));
        assert!(!run.may_precede(&RunName { host: "elsewhere".into(), ..earlier }));
    }

    #[test]
    fn unknown_boots_and_namespaces_never_count_as_equal() {
        let whole = CurrentRun::new();
        let gone = RunName { process: i32::MAX as u32, ..whole.name().clone() };
        let directory = tempfile::tempdir().unwrap();
        write_heartbeat(&disk(), directory.path(), 0);
        for (boot, namespace) in [("", "1"), ("1", ""), ("", "")].map(|(b, n)| (b.into(), n.into()))
        {
            let other = RunName { boot, namespace, ..gone.clone() };
            let own = CurrentRun { name: other.clone(), ..CurrentRun::new() };
            for (run, other) in [(&own, &other), (&whole, &other), (&own, &gone)] {
                assert!(
                    !run.is_over(other) && run.is_alive(other, &disk(), directory.path()),
                    "{other}"
                );
                let known = [run.name(), other].iter().all(|name| !name.boot.is_empty());
                assert_eq!(run.may_precede(other), known && run.name.boot != other.boot);
            }
        }
    }

    #[test]
    fn a_heartbeat_is_timed_out_that_was_written_long_before_another() {
        let [theirs, own] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let disk = disk();
        write_heartbeat(&disk, own.path(), 0);
        write_heartbeat(&disk, theirs.path(), 0);
        let now = SystemTime::now();
        for (after, silent) in [(LEASE_TIMEOUT / 2, false), (LEASE_TIMEOUT * 2, true)] {
            for (late, other) in [(own.path(), theirs.path()), (theirs.path(), own.path())] {
                set_beat(other, now);
                set_beat(late, now + after);
                assert_eq!(is_timed_out(&disk, other, late), silent);
                assert!(!is_timed_out(&disk, late, other), "a clock that went back");
            }
        }
        fs::remove_file(heartbeat_file(theirs.path())).unwrap();
        assert!(!is_timed_out(&disk, theirs.path(), own.path()), "its directory has a time, too");
    }

    fn set_beat(directory: &Path, time: SystemTime) {
        fs::File::open(heartbeat_file(directory)).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn the_clock_of_another_host_does_not_matter() {
        let year = Duration::from_secs(365 * 86_400);
        for time in [SystemTime::now() - year, SystemTime::now() + year] {
            let run = CurrentRun::new();
            let other = RunName { host: "elsewhere".into(), ..run.name().clone() };
            let directory = tempfile::tempdir().unwrap();
            let is_alive = || {
                set_beat(directory.path(), time);
                run.is_alive(&other, &disk(), directory.path())
            };
            let keep_silent = |long: Duration| {
                let since = Instant::now().checked_sub(long).unwrap();
                lock(&run.seen).get_mut(&other).unwrap().1 = since;
            };
            write_heartbeat(&disk(), directory.path(), 0);
            assert!(is_alive());
            keep_silent(LEASE_TIMEOUT / 2);
            assert!(is_alive());
            keep_silent(LEASE_TIMEOUT);
            assert!(!is_alive());
            write_heartbeat(&disk(), directory.path(), 1);
            assert!(is_alive(), "its time is the same, and it beats");
        }
    }

    #[test]
    fn a_run_without_a_directory_is_dead_and_one_elsewhere_lives_while_it_beats() {
        let run = CurrentRun::new();
        let other = RunName { host: "elsewhere".into(), ..run.name().clone() };
        assert!(!run.is_alive(&other, &disk(), Path::new("/nowhere/at/all")));
        let directory = tempfile::tempdir().unwrap();
        write_heartbeat(&disk(), directory.path(), 0);
        assert!(run.is_alive(&other, &disk(), directory.path()));
        let long_ago = Instant::now().checked_sub(LEASE_TIMEOUT).unwrap();
        lock(&run.seen).get_mut(&other).unwrap().1 = long_ago;
        assert!(!run.is_alive(&other, &disk(), directory.path()));
        write_heartbeat(&disk(), directory.path(), 1);
        assert!(run.is_alive(&other, &disk(), directory.path()));
    }
}
