//! Private clusters for tests, which `tests/slurm/slurm-up` starts where the packages of Slurm are installed.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use compeval::executor::slurm::Slurm;
use rustix::process::{Pid, Signal, kill_process};

use crate::harness;
use crate::needs;
use crate::program::PATIENCE;

/// The exit status of `slurm-up` where no cluster is possible.
const IMPOSSIBLE: i32 = 77;

/// A cluster. It ends when it is dropped, or else with this process, however that ends.
pub(crate) struct Cluster {
    dir: PathBuf,
    /// The configuration: `SLURM_CONF` of all programs of Slurm.
    pub(crate) conf: PathBuf,
    /// Waits for the end of its standard input, and then ends the cluster.
    keeper: Child,
}

impl Cluster {
    /// The cluster that the tests of this process share: three nodes with many processors. `None` if none is possible.
    pub(crate) fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| Self::start(3)).as_ref();
        if shared.is_none() {
            needs::lacks("slurmctld");
        }
        shared
    }

    /// A cluster of the caller's, who may damage it.
    pub(crate) fn start(nodes: u32) -> Option<Self> {
        // The names of sockets are short.
        let dir = tempfile::Builder::new().prefix("ce-slurm-").tempdir_in("/tmp").unwrap().keep();
        let keep = "cat >/dev/null; exec \"$0\" \"$1\"";
        let mut keeper = Command::new("sh");
        keeper.args(["-c", keep]).arg(script("slurm-down")).arg(&dir).process_group(0);
        let keeper = keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let keeper = keeper.spawn().unwrap();
        let cluster = Self { conf: dir.join("slurm.conf"), dir, keeper };
        cluster.repair(nodes).then_some(cluster)
    }

    /// Starts the daemons that are not alive. Returns whether a cluster is possible.
    pub(crate) fn repair(&self, nodes: u32) -> bool {
        let mut up = Command::new(script("slurm-up"));
        up.arg(&self.dir).args(["--cpus", "64", "--nodes", &nodes.to_string()]);
        let up = up.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&up.stderr);
        if up.status.code() == Some(IMPOSSIBLE) {
            harness::print(&text);
            needs::lacks("slurmctld");
            return false;
        }
        assert!(up.status.success(), "{text}");
        true
    }

    /// Its Slurm.
    pub(crate) fn slurm(&self) -> Slurm {
        Slurm::default().with_variable("SLURM_CONF", &self.conf)
    }

    /// Returns the output of a program of Slurm with these arguments.
    #[track_caller]
    pub(crate) fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(program);
        let output = command.args(arguments).env("SLURM_CONF", &self.conf).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The jobs that have not ended and work in a directory: a line for each, with its number, its state and its node.
    #[track_caller]
    pub(crate) fn jobs_in(&self, dir: &Path) -> Vec<String> {
        let text = self.ask("squeue", &["--noheader", "--array", "--format", "%i %T %N|%Z"]);
        let jobs = text.lines().filter_map(|line| line.split_once('|'));
        jobs.filter(|(_, place)| Path::new(place) == dir).map(|(job, _)| job.to_owned()).collect()
    }

    /// Sends a signal to one of its daemons: `slurmctld`, `munged`, `slurmd-n1`.
    pub(crate) fn signal(&self, daemon: &str, signal: Signal) {
        kill_process(self.pid(daemon), signal).unwrap();
    }

    /// Forgets all jobs, as a controller does that dies before it has written them down. It must be dead.
    pub(crate) fn forget_jobs(&self) {
        for entry in fs::read_dir(self.dir.join("state")).unwrap().map(Result::unwrap) {
            if entry.file_name().to_string_lossy().starts_with("job_state") {
                fs::remove_file(entry.path()).unwrap();
            }
        }
    }

    /// Ends one of its daemons.
    pub(crate) fn stop(&self, daemon: &str) {
        let arguments = format!("/proc/{}/cmdline", self.pid(daemon).as_raw_nonzero());
        self.signal(daemon, Signal::TERM);
        // Nobody may reap it.
        let is_alive = || fs::read(&arguments).is_ok_and(|it| !it.is_empty());
        wait_for("end of a daemon", || (!is_alive()).then_some(()));
    }

    fn pid(&self, daemon: &str) -> Pid {
        let file = self.dir.join("run").join(daemon).with_extension("pid");
        Pid::from_raw(fs::read_to_string(file).unwrap().trim().parse().unwrap()).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        drop(self.keeper.wait());
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slurm").join(name)
}

/// Waits until something is there.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "there is still no {what}");
        thread::sleep(Duration::from_millis(50));
    }
}
