//! A private Grid Engine, which `tests/gridengine/ge-up` starts where its packages are installed, with the settings of the documentation.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use rustix::process::Signal;

use crate::harness;
use crate::lab::Lab;
use crate::needs;
use crate::program::{Ran, Running};
use crate::slurm::{one_call, wait_for};

/// The exit status of `ge-up` where no cluster is possible.
const IMPOSSIBLE: i32 = 77;

/// A cluster, which ends when it is dropped, or else with this process, however that ends.
struct GridEngine {
    /// The variables that its programs need.
    variables: Vec<(String, String)>,
    /// Waits for the end of its standard input, and then ends the cluster.
    keeper: Child,
}

impl GridEngine {
    /// The cluster that the tests of this process share. `None` if none is possible.
    fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<GridEngine>> = OnceLock::new();
        let shared = SHARED.get_or_init(Self::start).as_ref();
        if shared.is_none() {
            needs::lacks("sge_qmaster");
        }
        shared
    }

    fn start() -> Option<Self> {
        let dir = tempfile::Builder::new().prefix("ce-ge-").tempdir_in("/tmp").unwrap().keep();
        let mut keeper = Command::new("sh");
        keeper.args(["-c", "cat >/dev/null; exec \"$0\" \"$1\""]).arg(script("ge-down")).arg(&dir);
        let keeper = keeper.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
        let keeper = keeper.stderr(Stdio::null()).spawn().unwrap();
        let mut cluster = Self { variables: Vec::new(), keeper };
        let mut up = Command::new(script("ge-up"));
        let up = up.arg(&dir).stdin(Stdio::null()).output().unwrap();
        let told = String::from_utf8_lossy(&up.stderr);
        if up.status.code() == Some(IMPOSSIBLE) {
            harness::print(&told);
            return None;
        }
        assert!(up.status.success(), "{told}");
        let variables = String::from_utf8(up.stdout).unwrap();
        let variables = variables.lines().filter_map(|line| line.split_once('='));
        cluster.variables = variables.map(|(name, value)| (name.into(), value.into())).collect();
        Some(cluster)
    }

    fn run(&self, lab: &Lab) -> Command {
        let mut run = lab.commanded();
        run.envs(self.variables.iter().cloned());
        run
    }

    /// The jobs that log to a directory.
    fn jobs_in(&self, dir: &Path) -> usize {
        let ask = |arguments: &[&str]| {
            let mut command = Command::new("qstat");
            let output = command.args(arguments).envs(self.variables.iter().cloned()).output();
            String::from_utf8(output.unwrap().stdout).unwrap()
        };
        let jobs = ask(&[]);
        let ids = jobs.lines().skip(2).filter_map(|line| line.split_whitespace().next());
        ids.filter(|id| ask(&["-j", id]).contains(dir.to_str().unwrap())).count()
    }
}

impl Drop for GridEngine {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        drop(self.keeper.wait());
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gridengine").join(name)
}

#[test]
fn grid_engine_executes_calls_by_the_settings_of_the_documentation() {
    let Some(cluster) = GridEngine::shared() else { return };
    for isolated in [false, true] {
        let [here, there] = [(); 2].map(|()| {
            let lab = Lab::task(super::SUM).with_storage();
            let lab = lab.file("resources", "mul cpus 2\nmul memory 8M\nadd time 1min\n");
            if isolated { lab.isolated() } else { lab }.commit()
        });
        let expected = here.ce_run(&["-j2"]).exit(0);
        let there = there.configured("Grid Engine", "");
        let prologue = "shopt -q login_shell && [ $NSLOTS -ge 1 ]";
        there.git("task", &["config", "--global", "compeval.scheduler.prologue", prologue]);
        let ran = Ran::new(&there, Running::start(&mut cluster.run(&there)).output()).exit(0);
        assert_eq!((ran.stdout, ran.stderr), (expected.stdout, expected.stderr));
        assert_eq!(there.called(), here.called());
        // A worker that is cancelled while it ends is killed by Grid Engine. The next program that writes removes its
        // leftovers: a run with nothing to do does not write, a collection does.
        wait_for("tidy storage", || {
            there.run("ce", &["gc", "--delete", "--older", "9999d", "../storage"]).exit(0);
            there.is_tidy().then_some(())
        });
        assert!(there.results() == here.results(), "isolated: {isolated}");
    }
}

#[test]
fn an_interrupted_run_leaves_nothing_to_grid_engine() {
    let Some(cluster) = GridEngine::shared() else { return };
    // Jobs are held.
    let lab = one_call("").configured("Grid Engine", "-h");
    let run = Running::start(&mut cluster.run(&lab));
    let storage = lab.path("storage");
    wait_for("job", || (cluster.jobs_in(&storage) == 1).then_some(()));
    run.signal(Signal::INT);
    let ran = Ran::new(&lab, run.output()).exit(130);
    assert_eq!(cluster.jobs_in(&storage), 0, "{}", ran.stderr);
    assert!(lab.is_tidy());
}

#[test]
fn a_refusal_of_grid_engine_is_reported() {
    let Some(cluster) = GridEngine::shared() else { return };
    let lab = one_call("").configured("Grid Engine", "-q nosuch.q -w e");
    let ran = Ran::new(&lab, Running::start(&mut cluster.run(&lab)).output()).exit(3);
    let ran = ran
        .says("no more workers are submitted: compeval.scheduler.start failed (exit status: 1): ");
    ran.says("it is: qsub -q nosuch.q ").called(vec![]);
    assert!(lab.is_tidy());
}
